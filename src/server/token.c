/*
 * token.c - creates, stores and checks bearer tokens.
 *
 *   T1  The text of a token is in no file except where its owner stores it.
 *   T2  The duration of a check reveals nothing about the tokens but their number.
 */
#include "server/token.h"

#include <string.h>

#include "crypto/api.h"

#define FILE_MAX ((size_t)16 << 20)
#define FORMAT "cortex-tokens-1"
#define PREFIX "cortex_"

/* --- words ------------------------------------------------------------------------------------ */

static const struct scope_name {
    unsigned scope;
    cx_str name;
} scope_names[] = {
    {CX_SCOPE_WRITE, {"trace:write", 11}},
    {CX_SCOPE_READ, {"trace:read", 10}},
    {CX_SCOPE_KEYS, {"key:admin", 9}},
    {CX_SCOPE_RUN_READ, {"run:read", 8}},
    {CX_SCOPE_RUN_START, {"run:start", 9}},
    {CX_SCOPE_RUN_APPROVE, {"run:approve", 11}},
    {CX_SCOPE_MEMORY_WRITE, {"memory:write", 12}},
    {CX_SCOPE_MEMORY_SCOPED, {"memory:scoped", 13}},
    {CX_SCOPE_HOOK, {"hook", 4}},
    {CX_SCOPE_SESSION_APPROVE, {"session:approve", 15}},
    {CX_SCOPE_HOME_WRITE, {"home:write", 10}},
};

cx_str cx_scope_name(unsigned scope)
{
    for (size_t i = 0; i < CX_COUNT_OF(scope_names); i++)
        if (scope_names[i].scope == scope)
            return scope_names[i].name;
    return (cx_str){NULL, 0};
}

unsigned cx_scope_parse(cx_str text)
{
    for (size_t i = 0; i < CX_COUNT_OF(scope_names); i++)
        if (cx_str_eq(scope_names[i].name, text))
            return scope_names[i].scope;
    return 0;
}

/* --- the file --------------------------------------------------------------------------------- */

static cx_status bad_file(cx_err *err, const char *what, size_t index)
{
    return cx_fail_at(err, CX_E_FORMAT, "BadTokens", CX_NO_OFFSET,
                      "tokens.json: token %zu: found no usable %s", index, what);
}

static bool read_text(const cx_json *object, const char *name, char *out, size_t size)
{
    cx_str text = cx_json_get_str(object, cx_str_z(name));
    if (text.data == NULL || text.size >= size)
        return false;
    memcpy(out, text.data, text.size);
    out[text.size] = 0;
    return true;
}

static bool read_time(const cx_json *object, const char *name, int64_t *out)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    bool naive;
    *out = CX_TIME_NONE;
    if (value == NULL || value->type == CX_JSON_NULL)
        return true;
    return value->type == CX_JSON_STRING && cx_trace_time_parse(cx_json_text(value), out, &naive);
}

static bool read_scopes(const cx_json *object, unsigned *out)
{
    const cx_json *list = cx_json_get_typed(object, CX_STR("scopes"), CX_JSON_ARRAY);
    *out = 0;
    for (uint32_t i = 0; list != NULL && i < list->count; i++) {
        const cx_json *item = &list->items[i];
        unsigned scope = item->type == CX_JSON_STRING ? cx_scope_parse(cx_json_text(item)) : 0;
        if (scope == 0)
            return false;
        *out |= scope;
    }
    return *out != 0;
}

static cx_status read_token(const cx_json *object, size_t index, cx_token *out, cx_err *err)
{
    cx_str level = CX_JSON_GET_STR(object, "level"), digest = CX_JSON_GET_STR(object, "sha256");
    memset(out, 0, sizeof *out);
    if (!read_text(object, "id", out->id, sizeof out->id))
        return bad_file(err, "id", index);
    if (!read_text(object, "name", out->name, sizeof out->name))
        return bad_file(err, "name", index);
    if (!read_scopes(object, &out->scopes))
        return bad_file(err, "scopes", index);
    if (level.data == NULL || !cx_trace_level_parse(level, &out->level))
        return bad_file(err, "level", index);
    if (!read_time(object, "created_at", &out->created_ns) ||
        !read_time(object, "expires_at", &out->expires_ns))
        return bad_file(err, "time", index);
    return digest.data != NULL && cx_digest_parse(digest, &out->digest)
               ? CX_SUCCESS
               : bad_file(err, "sha256", index);
}

static cx_status parse_tokens(cx_str text, cx_arena *arena, cx_tokens *out, cx_err *err)
{
    cx_json root;
    CX_TRY(cx_json_parse_text(text, arena, &root, err));
    const cx_json *list = cx_json_get_typed(&root, CX_STR("tokens"), CX_JSON_ARRAY);
    if (list == NULL || !cx_str_is(CX_JSON_GET_STR(&root, "format"), FORMAT) ||
        list->count > CX_TOKENS_MAX)
        return cx_fail_at(err, CX_E_FORMAT, "BadTokens", CX_NO_OFFSET,
                          "tokens.json is not of format " FORMAT);
    cx_tokens tokens = {CX_ARENA_ARRAY(arena, cx_token, (size_t)list->count + 1), 0};
    if (tokens.items == NULL)
        return cx_fail_nomem(err);
    for (; tokens.count < list->count; tokens.count++)
        CX_TRY(
            read_token(&list->items[tokens.count], tokens.count, &tokens.items[tokens.count], err));
    *out = tokens;
    return CX_SUCCESS;
}

static cx_str file_path(const char *home_path, const char *name, cx_arena *arena)
{
    return cx_arena_printf(arena, "%s/%s", home_path, name);
}

/* The file's bytes; empty when there is no file. */
static cx_status read_file(const cx_io *io, const char *home_path, cx_arena *arena, cx_buf *out,
                           cx_err *err)
{
    cx_str path = file_path(home_path, "tokens.json", arena);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    cx_status status = cx_io_read_file(io, path.data, FILE_MAX, out, err);
    if (status.code != CX_E_NOT_FOUND)
        return status;
    cx_buf_clear(out);
    return CX_SUCCESS;
}

cx_status cx_tokens_read(const cx_io *io, const char *home_path, cx_arena *arena, cx_tokens *out,
                         cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, arena->alloc);
    cx_status status = read_file(io, home_path, arena, &text, err);
    *out = (cx_tokens){NULL, 0};
    /* Everything in a cx_token is a copy, so the text need not stay. */
    if (!cx_failed(status) && text.size != 0)
        status = parse_tokens(cx_buf_str(&text), arena, out, err);
    cx_buf_done(&text);
    return status;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void add_text(cx_json_list *list, const char *name, cx_str text)
{
    cx_json_list_put(list, cx_str_z(name), cx_json_make_str(text));
}

static cx_status add_time(cx_json_list *list, const char *name, int64_t ns, cx_err *err)
{
    char text[CX_TRACE_TIME_SIZE];
    if (ns == CX_TIME_NONE) {
        cx_json_list_put(list, cx_str_z(name), cx_json_make_null());
        return CX_SUCCESS;
    }
    cx_trace_time_write(ns, text);
    cx_str stored = cx_arena_copy_str(list->arena, cx_str_z(text));
    if (stored.data == NULL)
        return cx_fail_nomem(err);
    add_text(list, name, stored);
    return CX_SUCCESS;
}

static cx_status begin_object(const cx_token *token, cx_json_list *list, cx_err *err)
{
    cx_json_list scopes = cx_json_list_begin(list->arena);
    cx_json value;
    for (size_t i = 0; i < CX_COUNT_OF(scope_names); i++)
        if (token->scopes & scope_names[i].scope)
            cx_json_list_add(&scopes, cx_json_make_str(scope_names[i].name));
    CX_TRY(cx_json_list_end_array(&scopes, &value, err));
    add_text(list, "id", cx_str_z(token->id));
    add_text(list, "name", cx_str_z(token->name));
    add_text(list, "level", cx_str_z(cx_trace_level_name(token->level)));
    cx_json_list_put(list, CX_STR("scopes"), value);
    CX_TRY(add_time(list, "created_at", token->created_ns, err));
    return add_time(list, "expires_at", token->expires_ns, err);
}

cx_status cx_token_json(const cx_token *token, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    CX_TRY(begin_object(token, &list, err));
    return cx_json_list_end_object(&list, out, err);
}

static cx_status token_json(const cx_token *token, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    char *hex = CX_ARENA_ARRAY(arena, char, 64);
    if (hex == NULL)
        return cx_fail_nomem(err);
    cx_hex_encode(cx_bytes_from(token->digest.bytes, sizeof token->digest.bytes), hex);
    CX_TRY(begin_object(token, &list, err));
    add_text(&list, "sha256", cx_str_from(hex, 64));
    return cx_json_list_end_object(&list, out, err);
}

static cx_status write_tokens(const cx_io *io, const char *home_path, const cx_tokens *tokens,
                              cx_arena *arena, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena), root = cx_json_list_begin(arena);
    cx_json value;
    cx_str path = file_path(home_path, "tokens.json", arena);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < tokens->count; i++) {
        CX_TRY(token_json(&tokens->items[i], arena, &value, err));
        cx_json_list_add(&list, value);
    }
    CX_TRY(cx_json_list_end_array(&list, &value, err));
    add_text(&root, "format", CX_STR(FORMAT));
    cx_json_list_put(&root, CX_STR("tokens"), value);
    CX_TRY(cx_json_list_end_object(&root, &value, err));
    cx_buf text;
    cx_buf_init(&text, arena->alloc);
    cx_status status = cx_json_write(&text, &value, CX_JSON_PY_COMPACT, err);
    cx_buf_add_byte(&text, '\n');
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    if (!cx_failed(status))
        status = cx_io_replace_private_file(io, path.data, cx_buf_bytes(&text), err);
    cx_buf_done(&text);
    return status;
}

/* --- changing --------------------------------------------------------------------------------- */

/* Two programs that change the file at once would lose one of the changes. */
static cx_status acquire_file_lock(const cx_io *io, const char *home_path, cx_arena *arena,
                                   cx_file *out, cx_err *err)
{
    cx_str path = file_path(home_path, "tokens.lock", arena);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    int failed = io->open(io, path.data, CX_IO_READ | CX_IO_WRITE | CX_IO_CREATE, out);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot open %s", path.data);
    for (unsigned tries = 0; (failed = io->lock(io, *out)) != 0 && tries < 200; tries++)
        cx_thread_sleep_ms(10);
    if (failed == 0)
        return CX_SUCCESS;
    (void)io->close(io, *out);
    return cx_fail(err, CX_E_BUSY, "%s is locked by another process", path.data);
}

typedef cx_status edit_tokens(void *arg, cx_tokens *tokens, cx_arena *arena, cx_err *err);

static cx_status change_token_file(const cx_io *io, const char *home_path, edit_tokens *edit,
                                   void *arg, cx_err *err)
{
    cx_arena arena;
    cx_file lock;
    cx_tokens tokens;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = acquire_file_lock(io, home_path, &arena, &lock, err);
    if (!cx_failed(status)) {
        status = cx_tokens_read(io, home_path, &arena, &tokens, err);
        if (!cx_failed(status))
            status = edit(arg, &tokens, &arena, err);
        if (!cx_failed(status))
            status = write_tokens(io, home_path, &tokens, &arena, err);
        (void)io->close(io, lock);
    }
    cx_arena_done(&arena);
    /* Wait until every server of the data directory has reloaded the file. */
    if (!cx_failed(status))
        cx_thread_sleep_ms(2 * CX_TOKENS_FRESH_MS);
    return status;
}

static cx_status add_token(void *arg, cx_tokens *tokens, cx_arena *arena, cx_err *err)
{
    const cx_token *made = arg;
    for (size_t i = 0; i < tokens->count; i++)
        if (made->name[0] != 0 && strcmp(tokens->items[i].name, made->name) == 0)
            return cx_fail_at(err, CX_E_EXISTS, "TokenExists", CX_NO_OFFSET,
                              "a token with this name exists: %s", tokens->items[i].id);
    if (tokens->count >= CX_TOKENS_MAX)
        return cx_fail(err, CX_E_LIMIT, "the limit of %d tokens is reached: revoke one first",
                       CX_TOKENS_MAX);
    cx_token *items = CX_ARENA_ARRAY(arena, cx_token, tokens->count + 1);
    if (items == NULL)
        return cx_fail_nomem(err);
    if (tokens->count != 0)
        memcpy(items, tokens->items, tokens->count * sizeof *items);
    items[tokens->count] = *made;
    *tokens = (cx_tokens){items, tokens->count + 1};
    return CX_SUCCESS;
}

/* Letters of a random id that cannot be misread. */
static void make_id(const uint8_t *random, char out[CX_TOKEN_ID_SIZE + 1])
{
    static const char letters[] = "0123456789abcdefghjkmnpqrstvwxyz";
    for (size_t i = 0; i < CX_TOKEN_ID_SIZE; i++)
        out[i] = letters[random[i] & 31];
    out[CX_TOKEN_ID_SIZE] = 0;
}

cx_status cx_token_make_text(const cx_io *io, char out_text[CX_TOKEN_TEXT_SIZE + 1],
                             cx_digest *out_digest, cx_err *err)
{
    uint8_t random[32];
    cx_buf text;
    int failed = io->random(io, random, sizeof random);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot read random bytes");
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, PREFIX);
    cx_base64_add(&text, cx_bytes_from(random, sizeof random), CX_BASE64_URL);
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status)) {
        CX_ASSERT(text.size == CX_TOKEN_TEXT_SIZE);
        *out_digest = cx_digest_of(cx_buf_bytes(&text));
        memcpy(out_text, text.data, CX_TOKEN_TEXT_SIZE);
        out_text[CX_TOKEN_TEXT_SIZE] = 0;
    }
    cx_buf_done(&text);
    return status;
}

cx_status cx_token_add(const cx_io *io, const char *home_path, const cx_token *wanted,
                       char out_text[CX_TOKEN_TEXT_SIZE + 1], cx_token *out, cx_err *err)
{
    uint8_t random[CX_TOKEN_ID_SIZE];
    char text[CX_TOKEN_TEXT_SIZE + 1];
    cx_token made = *wanted;
    CX_TRY(cx_token_make_text(io, text, &made.digest, err));
    int failed = io->random(io, random, sizeof random);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot read random bytes");
    make_id(random, made.id);
    made.created_ns = (int64_t)io->wall_ns(io);
    CX_TRY(change_token_file(io, home_path, add_token, &made, err));
    memcpy(out_text, text, sizeof text);
    *out = made;
    return CX_SUCCESS;
}

typedef struct removal {
    cx_str which;
    cx_token found;
} removal;

static cx_status revoke_token(void *arg, cx_tokens *tokens, cx_arena *arena, cx_err *err)
{
    removal *wanted = arg;
    (void)arena;
    for (size_t i = 0; i < tokens->count; i++) {
        cx_token *item = &tokens->items[i];
        if (!cx_str_is(wanted->which, item->id) &&
            (item->name[0] == 0 || !cx_str_is(wanted->which, item->name)))
            continue;
        wanted->found = *item;
        memmove(item, item + 1, (tokens->count - i - 1) * sizeof *item);
        tokens->count--;
        return CX_SUCCESS;
    }
    return cx_fail_at(err, CX_E_NOT_FOUND, "NoToken", CX_NO_OFFSET, "no token has this id or name");
}

cx_status cx_token_revoke(const cx_io *io, const char *home_path, cx_str which, cx_token *out,
                          cx_err *err)
{
    removal wanted = {.which = which};
    CX_TRY(change_token_file(io, home_path, revoke_token, &wanted, err));
    *out = wanted.found;
    return CX_SUCCESS;
}

/* --- checking a request's token --------------------------------------------------------------- */

void cx_token_guard_init(cx_token_guard *guard, const cx_io *io, const cx_alloc *alloc,
                         const char *home_path)
{
    *guard = (cx_token_guard){.io = io, .alloc = alloc, .home_path = home_path};
    cx_lock_init(&guard->lock);
    cx_arena_init(&guard->arenas[0], alloc, 0);
    cx_arena_init(&guard->arenas[1], alloc, 0);
}

void cx_token_guard_done(cx_token_guard *guard)
{
    cx_arena_done(&guard->arenas[0]);
    cx_arena_done(&guard->arenas[1]);
    cx_lock_done(&guard->lock);
}

/* Reads the file when it is another one than before. */
static cx_status reload_if_changed(cx_token_guard *guard, cx_err *err)
{
    cx_arena *arena = &guard->arenas[1 - guard->using];
    cx_buf text;
    cx_tokens tokens = {NULL, 0};
    cx_arena_done(arena);
    cx_buf_init(&text, guard->alloc);
    cx_status status = read_file(guard->io, guard->home_path, arena, &text, err);
    if (!cx_failed(status)) {
        cx_digest digest = cx_digest_of(cx_buf_bytes(&text));
        if (!guard->known || !cx_digest_eq(&digest, &guard->seen)) {
            if (text.size != 0)
                status = parse_tokens(cx_buf_str(&text), arena, &tokens, err);
            if (!cx_failed(status)) {
                guard->tokens = tokens;
                guard->using = 1 - guard->using;
                guard->seen = digest;
            }
        }
    }
    guard->known = !cx_failed(status);
    cx_buf_done(&text);
    return status;
}

/* T2 */
static bool is_same_file(const cx_digest *a, const cx_digest *b)
{
    unsigned different = 0;
    for (size_t i = 0; i < sizeof a->bytes; i++)
        different |= (unsigned)(a->bytes[i] ^ b->bytes[i]);
    return different == 0;
}

void cx_token_guard_only(cx_token_guard *guard, const cx_token *token)
{
    guard->only = true;
    guard->one = *token;
    guard->tokens = (cx_tokens){&guard->one, 1};
    guard->known = true;
}

cx_status cx_token_guard_check(cx_token_guard *guard, cx_str text, cx_token *out, bool *out_known,
                               cx_err *err)
{
    cx_digest digest = cx_digest_of(cx_str_bytes(text));
    return cx_token_guard_check_digest(guard, &digest, out, out_known, err);
}

cx_status cx_token_guard_check_digest(cx_token_guard *guard, const cx_digest *digest, cx_token *out,
                                      bool *out_known, cx_err *err)
{
    uint64_t now = guard->io->monotonic_ns(guard->io);
    cx_status status = CX_SUCCESS;
    bool known = false;
    cx_lock_enter(&guard->lock);
    if (!guard->only &&
        (!guard->known || now - guard->looked_ns >= CX_TOKENS_FRESH_MS * UINT64_C(1000000))) {
        status = reload_if_changed(guard, err);
        guard->looked_ns = now;
    }
    for (size_t i = 0; !cx_failed(status) && i < guard->tokens.count; i++) {
        bool found = is_same_file(digest, &guard->tokens.items[i].digest);
        if (found)
            *out = guard->tokens.items[i];
        known |= found;
    }
    cx_lock_leave(&guard->lock);
    if (known && out->expires_ns != CX_TIME_NONE)
        known = (int64_t)guard->io->wall_ns(guard->io) < out->expires_ns;
    *out_known = known;
    return status;
}
