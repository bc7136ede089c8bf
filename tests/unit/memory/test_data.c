/*
 * test_data.c - data of every type as bytes: vectors, what strict reading refuses, what may be
 * written.
 */
#include <math.h>

#include "cbor/cbor.h"
#include "memory/type.h"
#include "tests/unit/memory/fixture.h"

CX_TEST(data_vectors_decode_and_encode)
{
    fixture kit;
    cx_json file;
    fixture_init(&kit);
    if (fixture_load(&kit, "vectors/ledger/matrix-1/codec.json", &file)) {
        const cx_json *cases = CX_JSON_GET(&file, "data");
        REQUIRE(cases != NULL && cases->count == 13);
        for (uint32_t i = 0; i < cases->count; i++) {
            cx_bytes bytes = fixture_hex_of(&kit, &cases->items[i], "cbor");
            uint8_t type = (uint8_t)fixture_uint(&cases->items[i], "type_code");
            cx_data data;
            CHECK_STATUS(cx_data_decode(type, bytes, &kit.arena, &data, &kit.err), &kit.err);
            cx_buf_clear(&kit.buf);
            cx_data_encode(&data, &kit.buf);
            if (!fixture_same(cx_buf_bytes(&kit.buf), bytes))
                cx_test_fail(__FILE__, __LINE__, "data %u changes when encoded again", i);
            /* The last one is the zero value: readable, but it may not be written. */
            CHECK((cx_data_check(&data, &kit.err).code == CX_OK) == (i != cases->count - 1));
        }
    }
    fixture_done(&kit);
}

CX_TEST(data_members_land_where_they_belong)
{
    fixture kit;
    cx_data data;
    fixture_init(&kit);
    cx_bytes goal = fixture_hex(
        &kit, CX_STR("ac0001016473686970021a6553f1000381616304667061757365640581616706656275696c640"
                     "781a30167736572766963650261720341010881a4016662756467657402f50361730441020"
                     "9a201613103030af50b6177"));
    CHECK_STATUS(cx_data_decode(CX_TYPE_GOAL, goal, &kit.arena, &data, &kit.err), &kit.err);
    const cx_data_goal *g = &data.as.goal;
    CHECK_STR(g->statement, "ship");
    CHECK(g->horizon_end.is_set && g->horizon_end.s == 1700000000);
    CHECK_INT(g->success_criteria.count, 1);
    CHECK_STR(g->success_criteria.items[0], "c");
    CHECK_STR(g->status, "paused");
    CHECK_STR(g->verb_hint, "build");
    REQUIRE(g->objects.count == 1 && g->constraints.count == 1);
    CHECK_STR(g->objects.items[0].kind, "service");
    CHECK(g->objects.items[0].value.size == 1 && g->objects.items[0].value.data[0] == 1);
    CHECK_STR(g->constraints.items[0].type, "budget");
    CHECK(g->constraints.items[0].hard && g->constraints.items[0].data.data[0] == 2);
    CHECK(g->budget.is_set);
    CHECK_STR(g->budget.daily_max, "1");
    CHECK_INT(g->budget.intents_per_day, 3);
    CHECK(g->persistent);
    CHECK_STR(g->created_by, "w");
    fixture_done(&kit);
}

typedef struct refused_case {
    uint8_t type;
    const char *hex;
    const char *why;
} refused_case;

static const refused_case refused[] = {
    {1, "", "nothing"},
    {1, "a0", "no schema and no name"},
    {1, "a10001", "no name"},
    {1, "a101616e", "no schema"},
    {1, "a200010161", "cut"},
    {1, "a2000101616e00", "a byte behind it"},
    {1, "a3000101616e0260", "an empty did"},
    {1, "a3000101616e0380", "no wallets, but there"},
    {1, "a3000101616e0580", "no keys, but there"},
    {1, "a3000101616e066178", "an unknown member"},
    {1, "a2000101416e", "bytes for text"},
    {1, "a20001016278ff", "invalid UTF-8"},
    {1, "a201616e0001", "members out of order"},
    {1, "a3000101616e01616e", "a member twice"},
    {1, "a200180101616e", "a number longer than needed"},
    {1, "bf000101616eff", "an open map"},
    {1, "81a2000101616e", "a list"},
    {2, "a50001016173026175036170 0440", "an empty object"},
    {2, "a50001016173026175036170 06f6", "a time that is there but null"},
    {2, "a50001016173026175036170 06f93c00", "a float for a time"},
    {3, "a5000101617402f60361700401", "an integer for a float"},
    {3, "a5000101617402f6036170 04fb3fe0000000000000", "a float longer than needed"},
    {3, "a400010161740361700 4f90000", "no value"},
    {5, "a5000101616b04616f05a0", "a cost of nothing"},
    {5, "a5000101616b04616f05a1016161", "a cost without amount"},
    {5, "a4000101616b04616f06f6", "a duration that is there but null"},
    {6, "a400010161730461 61 09f6", "a budget that is there but null"},
    {6, "a4000101617304616109a10300", "a budget member of zero"},
    {6, "a400010161730461610af4", "persistent false, but there"},
    {6, "a4000101617304616107 81a10161 6b", "an object without reference"},
    {8, "a5000101616702616303 4004f5", "empty parameters"},
    {8, "a40001016167026163 04f5", "no last_observed"},
    {8, "a5000101616702616304f505f4", "false for a time"},
    {9, "a4000101617003f900000 418", "cut in a number"},
};

/* Hex with spaces that show the place. */
static cx_bytes spaced_hex(fixture *kit, const char *hex)
{
    cx_buf_clear(&kit->buf);
    for (; *hex != 0; hex++)
        if (*hex != ' ')
            cx_buf_add_byte(&kit->buf, (uint8_t)*hex);
    return fixture_hex(kit, cx_arena_copy_str(&kit->arena, cx_buf_str(&kit->buf)));
}

CX_TEST(data_strict_reading)
{
    fixture kit;
    cx_data data;
    fixture_init(&kit);
    for (size_t i = 0; i < CX_COUNT_OF(refused); i++) {
        cx_bytes bytes = spaced_hex(&kit, refused[i].hex);
        cx_status status = cx_data_decode(refused[i].type, bytes, &kit.arena, &data, &kit.err);
        if (status.code != CX_E_FORMAT)
            cx_test_fail(__FILE__, __LINE__, "%s: %s", refused[i].why, cx_code_name(status.code));
        else
            CHECK_STR(fixture_tag(&kit.err), "NonCanonical");
    }
    CHECK_INT(cx_data_decode(0, (cx_bytes){NULL, 0}, &kit.arena, &data, &kit.err).code, CX_E_USAGE);
    CHECK_INT(cx_data_decode(10, (cx_bytes){NULL, 0}, &kit.arena, &data, &kit.err).code,
              CX_E_USAGE);
    CHECK_STR(fixture_tag(&kit.err), "InvalidType");
    fixture_done(&kit);
}

/* Every vector with each bit flipped: what still decodes encodes to the same bytes. */
CX_TEST(data_flipped_bits_have_one_spelling)
{
    fixture kit;
    cx_json file;
    fixture_init(&kit);
    if (fixture_load(&kit, "vectors/ledger/matrix-1/codec.json", &file)) {
        const cx_json *cases = CX_JSON_GET(&file, "data");
        size_t accepted = 0;
        for (uint32_t i = 0; i < cases->count; i++) {
            cx_bytes bytes = fixture_hex_of(&kit, &cases->items[i], "cbor");
            uint8_t type = (uint8_t)fixture_uint(&cases->items[i], "type_code");
            uint8_t *flipped = malloc(bytes.size);
            for (size_t bit = 0; bit < bytes.size * 8; bit++) {
                cx_arena_mark mark = cx_arena_mark_now(&kit.arena);
                cx_data data;
                memcpy(flipped, bytes.data, bytes.size);
                flipped[bit / 8] ^= (uint8_t)(1u << bit % 8);
                if (!cx_failed(cx_data_decode(type, cx_bytes_from(flipped, bytes.size), &kit.arena,
                                              &data, NULL))) {
                    accepted++;
                    cx_buf_clear(&kit.buf);
                    cx_data_encode(&data, &kit.buf);
                    if (!fixture_same(cx_buf_bytes(&kit.buf), cx_bytes_from(flipped, bytes.size)))
                        cx_test_fail(__FILE__, __LINE__, "data %u, bit %zu: two spellings", i, bit);
                }
                cx_arena_reset(&kit.arena, mark);
            }
            free(flipped);
        }
        CHECK(accepted > 100); /* letters of texts */
    }
    fixture_done(&kit);
}

CX_TEST(data_checks_what_may_be_written)
{
    cx_err err;
    cx_data fact = {
        .type = CX_TYPE_FACT,
        .schema = 1,
        .as.fact = {.statement = CX_STR("s"), .subject = CX_STR("u"), .predicate = CX_STR("p")}};
    CHECK_STATUS(cx_data_check(&fact, &err), &err);
    fact.as.fact.predicate = CX_STR("");
    CHECK_INT(cx_data_check(&fact, &err).code, CX_E_USAGE);
    CHECK_STR(fixture_tag(&err), "FieldMissing");
    CHECK_STR(cx_str_z(err.message), "Fact.predicate: is missing");
    fact.as.fact.predicate = CX_STR(" \t\xc2\xa0\xe3\x80\x80");
    CHECK_INT(cx_data_check(&fact, &err).code, CX_E_USAGE);
    CHECK_STR(cx_str_z(err.message), "Fact.predicate: is blank");
    fact.as.fact.predicate = CX_STR("\xff");
    CHECK_INT(cx_data_check(&fact, &err).code, CX_E_USAGE);
    CHECK_STR(fixture_tag(&err), "InvalidArgument");
    fact.as.fact.predicate = CX_STR("p");
    fact.schema = 2;
    CHECK_INT(cx_data_check(&fact, &err).code, CX_E_USAGE);
    fact.schema = 1;
    fact.type = 77;
    CHECK_INT(cx_data_check(&fact, &err).code, CX_E_USAGE);
    CHECK_STR(fixture_tag(&err), "InvalidType");
}

CX_TEST(data_checks_strengths)
{
    static const float bad[] = {-0.001f, 1.001f, NAN, INFINITY, -INFINITY};
    static const float good[] = {0.0f, -0.0f, 1.0f, 0.5f};
    cx_err err;
    cx_data data = {.type = CX_TYPE_PATTERN, .schema = 1, .as.pattern = {.statement = CX_STR("s")}};
    for (size_t i = 0; i < CX_COUNT_OF(good); i++) {
        data.as.pattern.strength = good[i];
        CHECK_STATUS(cx_data_check(&data, &err), &err);
    }
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++) {
        data.as.pattern.strength = bad[i];
        CHECK_INT(cx_data_check(&data, &err).code, CX_E_USAGE);
        CHECK_STR(fixture_tag(&err), "InvalidArgument");
    }
}

CX_TEST(data_checks_words)
{
    cx_err err;
    cx_data data = {.type = CX_TYPE_CONSTRAINT,
                    .schema = 1,
                    .as.constraint = {.statement = CX_STR("no PII"),
                                      .strength = CX_STR("hard"),
                                      .source = CX_STR("learned")}};
    CHECK_STATUS(cx_data_check(&data, &err), &err);
    data.as.constraint.strength = CX_STR("har");
    CHECK_INT(cx_data_check(&data, &err).code, CX_E_USAGE);
    CHECK_STR(fixture_tag(&err), "InvalidArgument");
    data.as.constraint.strength = CX_STR("soft|firm");
    CHECK_INT(cx_data_check(&data, &err).code, CX_E_USAGE);
    cx_data belief = {.type = CX_TYPE_BELIEF, .schema = 1, .as.belief = {.statement = CX_STR("b")}};
    CHECK_STATUS(cx_data_check(&belief, &err), &err); /* a stance is not needed .. */
    belief.as.belief.stance = CX_STR("suspect");
    CHECK_STATUS(cx_data_check(&belief, &err), &err);
    belief.as.belief.stance = CX_STR("maybe"); /* .. but when there is one it is of the list */
    CHECK_INT(cx_data_check(&belief, &err).code, CX_E_USAGE);
}

CX_TEST(data_accepted_from_callers)
{
    fixture kit;
    cx_data data;
    fixture_init(&kit);
    cx_bytes identity = fixture_hex(&kit, CX_STR("a200010166416e64726577"));
    CHECK_STATUS(cx_data_accept(1, identity, &kit.arena, &data, &kit.err), &kit.err);
    CHECK_INT(cx_data_accept(0, identity, &kit.arena, &data, &kit.err).code, CX_E_USAGE);
    CHECK_STR(fixture_tag(&kit.err), "InvalidType");
    CHECK(cx_failed(cx_data_accept(2, identity, &kit.arena, &data, &kit.err)));
    CHECK_STR(fixture_tag(&kit.err), "TypeDataMismatch");
    CHECK(cx_failed(cx_data_accept(1, (cx_bytes){NULL, 0}, &kit.arena, &data, &kit.err)));
    CHECK_STR(fixture_tag(&kit.err), "EmptyData");
    CHECK(
        cx_failed(cx_data_accept(1, fixture_hex(&kit, CX_STR("a0")), &kit.arena, &data, &kit.err)));
    CHECK_STR(fixture_tag(&kit.err), "EmptyData");
    CHECK(cx_failed(
        cx_data_accept(1, fixture_hex(&kit, CX_STR("a20001016120")), &kit.arena, &data, &kit.err)));
    CHECK_STR(fixture_tag(&kit.err), "FieldMissing");
    CHECK(cx_failed(cx_data_accept(1, fixture_hex(&kit, CX_STR("a2001801016161")), &kit.arena,
                                   &data, &kit.err)));
    CHECK_STR(fixture_tag(&kit.err), "NonCanonical");
    fixture_done(&kit);
}
