/*
 * test_uri.c - URIs and ULIDs of the vectors, the traps of ledger.md §14.17, new ids, names.
 */
#include "memory/uri.h"

#include <errno.h>

#include "base/thread.h"
#include "tests/unit/memory/fixture.h"

CX_TEST(uri_vectors)
{
    fixture kit;
    cx_json file;
    fixture_init(&kit);
    if (fixture_load(&kit, "vectors/ledger/matrix-1/keys_uri.json", &file)) {
        const cx_json *uris = CX_JSON_GET(&file, "uris");
        size_t good = 0;
        REQUIRE(uris != NULL && uris->count > 20);
        for (uint32_t i = 0; i < uris->count; i++) {
            const cx_json *item = &uris->items[i];
            cx_str text = CX_JSON_GET_STR(item, "uri");
            bool is_good = cx_str_is(CX_JSON_GET_STR(item, "cortex_expects"), "ok");
            cx_uri uri;
            cx_status status = cx_memory_uri_parse(text, &uri, &kit.err);
            if (cx_failed(status) == is_good)
                cx_test_fail(__FILE__, __LINE__, "%.*s: %s", (int)text.size, text.data,
                             is_good ? "refused" : "accepted");
            if (!is_good) {
                CHECK_INT(status.code, CX_E_FORMAT);
                CHECK_STR(fixture_tag(&kit.err), "BadURI");
                continue;
            }
            good++;
            cx_buf_clear(&kit.buf);
            cx_uri_add(&uri, &kit.buf);
            CHECK(cx_str_eq(cx_buf_str(&kit.buf), text));
            CHECK_INT(uri.type, fixture_uint(item, "type"));
            CHECK(fixture_same(cx_bytes_from(uri.id.bytes, 16), fixture_hex_of(&kit, item, "id")));
        }
        CHECK_INT(good, 3);
    }
    fixture_done(&kit);
}

CX_TEST(ulid_vectors)
{
    fixture kit;
    cx_json file;
    fixture_init(&kit);
    if (fixture_load(&kit, "vectors/ledger/matrix-1/keys_uri.json", &file)) {
        const cx_json *ulids = CX_JSON_GET(&file, "ulids");
        REQUIRE(ulids != NULL && ulids->count == 4);
        for (uint32_t i = 0; i < ulids->count; i++) {
            cx_str text = CX_JSON_GET_STR(&ulids->items[i], "text");
            cx_bytes bytes = fixture_hex_of(&kit, &ulids->items[i], "id");
            char written[CX_ULID_SIZE];
            cx_id id;
            REQUIRE(cx_ulid_parse(text, &id));
            CHECK(fixture_same(cx_bytes_from(id.bytes, 16), bytes));
            cx_ulid_format(&id, written);
            CHECK(cx_str_eq(cx_str_from(written, sizeof written), text));
        }
    }
    fixture_done(&kit);
}

CX_TEST(ulid_every_character)
{
    char text[CX_ULID_SIZE + 1] = "01HF7YAT00000000000000000A";
    static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    cx_id id;
    for (size_t at = 0; at < CX_ULID_SIZE; at++) {
        char kept = text[at];
        for (unsigned c = 0; c < 256; c++) {
            text[at] = (char)c;
            bool expected = c != 0 && strchr(alphabet, (char)c) != NULL && (at != 0 || c <= '7');
            if (cx_ulid_parse(cx_str_from(text, CX_ULID_SIZE), &id) != expected)
                cx_test_fail(__FILE__, __LINE__, "character %u at %zu", c, at);
        }
        text[at] = kept;
    }
    CHECK(!cx_ulid_parse(cx_str_from(text, CX_ULID_SIZE - 1), &id));
    CHECK(!cx_ulid_parse(CX_STR("01HF7YAT00000000000000000A0"), &id));
    CHECK(!cx_ulid_parse(cx_str_from(NULL, 0), &id));
}

CX_TEST(uri_one_spelling)
{
    static const char *const bad[] = {
        "matrix://cortex/Fact/01HF7YAT00000000000000000A#",
        "matrix://cortex/Fact/01HF7YAT00000000000000000A#01",
        "matrix://cortex/Fact/01HF7YAT00000000000000000A#1 ",
        "matrix://cortex/Fact/01HF7YAT00000000000000000A#1\n",
        "matrix://cortex/Fact/01HF7YAT00000000000000000A#0x1",
        "matrix://cortex/Fact/01HF7YAT00000000000000000A#1.0",
        "matrix://cortex/Fact/01HF7YAT00000000000000000A#99999999999999999999",
        "matrix://cortex/Fact/01HF7YAT0000000000000000OA#1",
        "matrix://cortex/FACT/01HF7YAT00000000000000000A#1",
        "matrix://cortex/Facts/01HF7YAT00000000000000000A#1",
        "matrix://cortex//01HF7YAT00000000000000000A#1",
        "matrix://cortex/Fact//01HF7YAT00000000000000000A#1",
        "Matrix://cortex/Fact/01HF7YAT00000000000000000A#1",
        " matrix://cortex/Fact/01HF7YAT00000000000000000A#1",
        "matrix://cortex/Fact/01HF7YAT00000000000000000A?x#1",
        "matrix://cortex/edge/01HF7YAT00000000000000000A/references/01HF7YAT00000000000000000B"};
    cx_uri uri;
    cx_err err;
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++)
        if (!cx_failed(cx_memory_uri_parse(cx_str_z(bad[i]), &uri, &err)))
            cx_test_fail(__FILE__, __LINE__, "accepted: %s", bad[i]);
        else
            CHECK_STR(fixture_tag(&err), "BadURI");
}

/* --- new ids ---------------------------------------------------------------------------------- */

typedef struct fake_io {
    cx_io io;
    uint64_t now_ns;
    uint8_t random;
    int random_failure;
    unsigned random_calls;
} fake_io;

static uint64_t fake_wall_ns(const cx_io *io)
{
    return ((const fake_io *)io->ctx)->now_ns;
}

static int fake_random(const cx_io *io, void *data, size_t size)
{
    fake_io *fake = io->ctx;
    fake->random_calls++;
    memset(data, fake->random, size);
    return fake->random_failure;
}

static void fake_init(fake_io *fake, uint64_t now_ns, uint8_t random)
{
    *fake = (fake_io){.now_ns = now_ns, .random = random};
    fake->io = *cx_io_system();
    fake->io.wall_ns = fake_wall_ns;
    fake->io.random = fake_random;
    fake->io.ctx = fake;
}

static int compare_ids(const cx_id *a, const cx_id *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes);
}

CX_TEST(new_ids_ascend_with_any_clock)
{
    fake_io fake;
    cx_id last = {{0}}, a, b, c, d;
    cx_err err;
    fake_init(&fake, UINT64_C(1700000000123456789), 0xff);
    CHECK_STATUS(cx_id_next(&last, &fake.io, &a, &err), &err);
    CHECK(memcmp(a.bytes, "\x01\x8b\xcf\xe5\x68\x7b\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16) ==
          0);
    /* Within the millisecond the next one carries into the time. */
    CHECK_STATUS(cx_id_next(&last, &fake.io, &b, &err), &err);
    CHECK(memcmp(b.bytes, "\x01\x8b\xcf\xe5\x68\x7c\0\0\0\0\0\0\0\0\0\0", 16) == 0);
    /* A clock that goes back changes nothing. */
    fake.now_ns -= UINT64_C(1000000000);
    CHECK_STATUS(cx_id_next(&last, &fake.io, &c, &err), &err);
    CHECK(compare_ids(&b, &c) < 0 && c.bytes[15] == 1);
    CHECK_INT(fake.random_calls, 1);
    fake.now_ns += UINT64_C(2000000000);
    CHECK_STATUS(cx_id_next(&last, &fake.io, &d, &err), &err);
    CHECK(compare_ids(&c, &d) < 0);
    CHECK_INT(fake.random_calls, 2);
}

CX_TEST(new_ids_without_randomness_are_refused)
{
    fake_io fake;
    cx_id last = {{0}}, before, id = {{7}};
    cx_err err;
    fake_init(&fake, UINT64_C(1700000000123456789), 0);
    fake.random_failure = -EIO;
    before = last;
    CHECK_INT(cx_id_next(&last, &fake.io, &id, &err).code, CX_E_IO);
    CHECK(compare_ids(&last, &before) == 0 && id.bytes[0] == 7);
}

CX_TEST(new_ids_end)
{
    fake_io fake;
    cx_id last, id;
    cx_err err;
    fake_init(&fake, UINT64_MAX, 0);
    memset(last.bytes, 0xff, sizeof last.bytes);
    CHECK_INT(cx_id_next(&last, &fake.io, &id, &err).code, CX_E_LIMIT);
    /* 2^64 ns are fewer than 2^48 ms: the time is not cut. */
    memset(&last, 0, sizeof last);
    CHECK_STATUS(cx_id_next(&last, &fake.io, &id, &err), &err);
    CHECK(memcmp(id.bytes, "\x10\xc6\xf7\xa0\xb5\xed", 6) == 0);
}

#define IDS_EACH 2000
#define ID_THREADS 4
static cx_id ids_made[ID_THREADS][IDS_EACH];
static bool ids_failed[ID_THREADS];

static void make_ids(void *arg, unsigned index)
{
    (void)arg;
    for (size_t i = 0; i < IDS_EACH; i++)
        ids_failed[index] |= cx_failed(cx_id_new(cx_io_system(), &ids_made[index][i], NULL));
}

static int order_ids(const void *a, const void *b)
{
    return compare_ids(a, b);
}

CX_TEST(new_ids_of_many_threads_are_distinct_and_ascend)
{
    memset(ids_made, 0, sizeof ids_made);
    cx_thread_team(ID_THREADS, make_ids, NULL);
    for (size_t t = 0; t < ID_THREADS; t++) {
        CHECK(!ids_failed[t]);
        for (size_t i = 1; i < IDS_EACH; i++)
            if (compare_ids(&ids_made[t][i - 1], &ids_made[t][i]) >= 0) {
                cx_test_fail(__FILE__, __LINE__, "thread %zu, id %zu does not ascend", t, i);
                break;
            }
    }
    qsort(ids_made, ID_THREADS * IDS_EACH, sizeof(cx_id), order_ids);
    const cx_id *all = ids_made[0];
    for (size_t i = 1; i < ID_THREADS * IDS_EACH; i++)
        if (compare_ids(&all[i - 1], &all[i]) == 0)
            cx_test_fail(__FILE__, __LINE__, "an id twice");
}

/* --- names ------------------------------------------------------------------------------------ */

CX_TEST(actor_names)
{
    char longest[CX_ACTOR_NAME_MAX + 1];
    memset(longest, 'a', sizeof longest);
    CHECK(cx_actor_ok(CX_STR("andrew")));
    CHECK(cx_actor_ok(CX_STR("key:3f")));
    CHECK(cx_actor_ok(CX_STR("J\xc3\xbcrgen \xe6\x97\xa5")));
    CHECK(cx_actor_ok(cx_str_from(longest, CX_ACTOR_NAME_MAX)));
    CHECK(!cx_actor_ok(cx_str_from(longest, CX_ACTOR_NAME_MAX + 1)));
    CHECK(!cx_actor_ok(CX_STR("")));
    CHECK(!cx_actor_ok(CX_STR("a/b")));
    CHECK(!cx_actor_ok(CX_STR("a\0b")));
    CHECK(!cx_actor_ok(CX_STR("a\nb")));
    CHECK(!cx_actor_ok(CX_STR("a\x7f")));
    CHECK(!cx_actor_ok(CX_STR("a\xc2\x85")));     /* U+0085, a control too */
    CHECK(cx_actor_ok(CX_STR("a\xc2\xa0")));      /* U+00A0 is none */
    CHECK(!cx_actor_ok(CX_STR("a\xff")));         /* not UTF-8 */
    CHECK(!cx_actor_ok(CX_STR("a\xed\xa0\x80"))); /* a surrogate */
}

CX_TEST(compaction_uri)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_compact_uri_add(CX_STR("intent_a"), CX_STR("step_1"), &text);
    CHECK_STR(cx_buf_str(&text), "matrix://journal/logs/intent_a/step_1");
    cx_buf_done(&text);
    CHECK(cx_compact_name_ok(CX_STR("plan/draft")));
    CHECK(!cx_compact_name_ok(CX_STR("")));
    CHECK(!cx_compact_name_ok(CX_STR("a\0")));
}
