/* Bearer tokens: kept as digests, known at once, gone at once. */
#include "server/token.h"

#include "tests/support/folder.h"
#include "tests/test.h"

typedef struct place {
    char path[FOLDER_PATH_SIZE];
    cx_arena arena;
    cx_token_guard guard;
    cx_err err;
} place;

static void place_init(place *p, const char *name)
{
    folder_fresh(p->path, name);
    CHECK_INT(cx_io_system()->mkdir(cx_io_system(), p->path), 0);
    cx_arena_init(&p->arena, cx_alloc_default(), 0);
    cx_token_guard_init(&p->guard, cx_io_system(), cx_alloc_default(), p->path);
}

static void place_done(place *p)
{
    cx_token_guard_done(&p->guard);
    cx_arena_done(&p->arena);
    folder_remove(p->path);
}

static cx_token make(place *p, const char *name, char text[CX_TOKEN_TEXT_SIZE + 1])
{
    cx_token token = {
        .scopes = CX_SCOPE_READ, .level = CX_LEVEL_DETAILED, .expires_ns = CX_TIME_NONE};
    (void)snprintf(token.name, sizeof token.name, "%s", name);
    CHECK_STATUS(cx_token_add(cx_io_system(), p->path, &token, text, &token, &p->err), &p->err);
    return token;
}

static bool knows(place *p, const char *text, cx_token *out)
{
    bool known = false;
    p->guard.known = false; /* look again, whatever the clock says */
    CHECK_STATUS(cx_token_guard_check(&p->guard, cx_str_z(text), out, &known, &p->err), &p->err);
    return known;
}

static void read_file(place *p, cx_buf *out)
{
    cx_str path = cx_arena_printf(&p->arena, "%s/tokens.json", p->path);
    CHECK_STATUS(cx_io_read_file(cx_io_system(), path.data, 1 << 20, out, &p->err), &p->err);
}

static void write_file(place *p, cx_str text)
{
    cx_str path = cx_arena_printf(&p->arena, "%s/tokens.json", p->path);
    CHECK_STATUS(cx_io_replace_private_file(cx_io_system(), path.data, cx_str_bytes(text), &p->err),
                 &p->err);
}

CX_TEST(token_is_known_until_it_is_revoked)
{
    place p;
    char text[CX_TOKEN_TEXT_SIZE + 1], other[CX_TOKEN_TEXT_SIZE + 1];
    cx_token made, found;
    place_init(&p, "token-known");
    CHECK(!knows(&p, "cortex_x", &found));
    made = make(&p, "one", text);
    (void)make(&p, "two", other);
    CHECK(memcmp(text, "cortex_", 7) == 0 && strcmp(text, other) != 0);
    REQUIRE(knows(&p, text, &found));
    CHECK_STR(cx_str_z(found.id), made.id);
    CHECK_STR(cx_str_z(found.name), "one");
    CHECK_INT(found.scopes, CX_SCOPE_READ);
    CHECK_INT(found.level, CX_LEVEL_DETAILED);
    for (size_t i = 0; i < CX_TOKEN_TEXT_SIZE; i++) {
        text[i] ^= 1;
        CHECK(!knows(&p, text, &found));
        text[i] ^= 1;
    }
    CHECK(!knows(&p, "", &found));
    CHECK_STATUS(cx_token_revoke(cx_io_system(), p.path, CX_STR("one"), &found, &p.err), &p.err);
    CHECK(!knows(&p, text, &found));
    CHECK(knows(&p, other, &found));
    CHECK_INT(cx_token_revoke(cx_io_system(), p.path, CX_STR("one"), &found, &p.err).code,
              CX_E_NOT_FOUND);
    CHECK_STATUS(cx_token_revoke(cx_io_system(), p.path, cx_str_z(found.id), &found, &p.err),
                 &p.err);
    place_done(&p);
}

CX_TEST(token_text_is_in_no_file)
{
    place p;
    char text[CX_TOKEN_TEXT_SIZE + 1];
    cx_buf file;
    place_init(&p, "token-file");
    cx_buf_init(&file, cx_alloc_default());
    (void)make(&p, "", text);
    (void)make(&p, "", text);
    read_file(&p, &file);
    cx_str all = cx_buf_str(&file);
    for (size_t i = 0; i + 20 <= all.size; i++)
        CHECK(memcmp(all.data + i, text + 7, 20) != 0);
    cx_buf_done(&file);
    place_done(&p);
}

CX_TEST(token_names_are_distinguished)
{
    place p;
    char text[CX_TOKEN_TEXT_SIZE + 1];
    place_init(&p, "token-names");
    (void)make(&p, "same", text);
    cx_token again = {.scopes = CX_SCOPE_READ, .name = "same", .expires_ns = CX_TIME_NONE};
    CHECK_INT(cx_token_add(cx_io_system(), p.path, &again, text, &again, &p.err).code, CX_E_EXISTS);
    place_done(&p);
}

CX_TEST(token_ends_with_its_time)
{
    place p;
    char text[CX_TOKEN_TEXT_SIZE + 1];
    cx_token token = {.scopes = CX_SCOPE_READ, .expires_ns = 1}, found;
    place_init(&p, "token-time");
    CHECK_STATUS(cx_token_add(cx_io_system(), p.path, &token, text, &token, &p.err), &p.err);
    CHECK(!knows(&p, text, &found));
    token.expires_ns = (int64_t)cx_io_system()->wall_ns(cx_io_system()) + INT64_C(3600000000000);
    CHECK_STATUS(cx_token_add(cx_io_system(), p.path, &token, text, &token, &p.err), &p.err);
    CHECK(knows(&p, text, &found));
    place_done(&p);
}

CX_TEST(damaged_token_file_admits_no_token)
{
    static const char *const damaged[] = {
        "{",
        "[]",
        "{\"format\":\"cortex-tokens-2\",\"tokens\":[]}",
        "{\"format\":\"cortex-tokens-1\",\"tokens\":{}}",
        "{\"format\":\"cortex-tokens-1\",\"tokens\":[{}]}",
        "{\"format\":\"cortex-tokens-1\",\"tokens\":[{\"id\":\"a\",\"name\":\"\"}]}"};
    place p;
    char text[CX_TOKEN_TEXT_SIZE + 1];
    cx_buf file;
    cx_token found;
    bool known = true;
    place_init(&p, "token-damaged");
    cx_buf_init(&file, cx_alloc_default());
    (void)make(&p, "", text);
    CHECK(knows(&p, text, &found));
    read_file(&p, &file);
    for (size_t i = 0; i < CX_COUNT_OF(damaged); i++) {
        write_file(&p, cx_str_z(damaged[i]));
        p.guard.known = false;
        CHECK(cx_failed(cx_token_guard_check(&p.guard, cx_str_z(text), &found, &known, &p.err)));
    }
    write_file(&p, cx_buf_str(&file));
    CHECK(knows(&p, text, &found));
    cx_buf_done(&file);
    place_done(&p);
}
