/*
 * test_data_json.c - data as people write it, and back.
 */
#include <math.h>

#include "memory/type.h"
#include "tests/unit/memory/fixture.h"

/* The bytes of what the JSON says, in kit->buf; false when it is refused. */
static bool from_json(fixture *kit, uint8_t type, const char *text)
{
    cx_json json = fixture_json(kit, text);
    cx_data data;
    if (cx_failed(cx_data_from_json(type, &json, &kit->arena, &data, &kit->err)))
        return false;
    cx_buf_clear(&kit->buf);
    cx_data_encode(&data, &kit->buf);
    return true;
}

typedef struct json_case {
    uint8_t type;
    const char *json;
    const char *hex;
} json_case;

/* The vectors of codec.json, said in JSON. */
static const json_case cases[] = {
    {1, "{\"name\":\"Andrew\"}", "a200010166416e64726577"},
    {1, "{\"name\":\"Andrew\",\"did\":\"did:pax:owner\"}",
     "a300010166416e64726577026d6469643a7061783a6f776e6572"},
    {1,
     "{\"name\":\"Andrew\",\"did\":\"did:pax:owner\",\"wallets\":[\"0xabc\",\"pax1x\"],"
     "\"roles\":[\"owner\"],\"public_keys\":[{\"base64\":\"AQID\"}]}",
     "a600010166416e64726577026d6469643a7061783a6f776e6572038265307861626365706178317804816"
     "56f776e6572058143010203"},
    {2,
     "{\"statement\":\"s\",\"subject\":\"u\",\"predicate\":\"p\",\"object\":{\"base64\":\"9Q==\"},"
     "\"source\":\"src\",\"as_of\":\"2023-11-14T22:13:20.123456789Z\"}",
     "a700010161730261750361700441f50563737263061a6553f100"},
    {3,
     "{\"topic\":\"tone\",\"polarity\":\"prefer\",\"strength\":0.9,\"rationale\":\"terse\","
     "\"value\":null}",
     "a600010164746f6e6502f6036670726566657204fa3f66666605657465727365"},
    {3, "{\"topic\":\"t\",\"polarity\":\"p\",\"value\":\"\"}", "a5000101617402400361700 4f90000"},
    {4,
     "{\"statement\":\"b\",\"stance\":\"doubt\",\"evidence_for\":[\"a\",\"b\"],"
     "\"evidence_against\":[\"c\"]}",
     "a6000101616202600365646f75627404826161616205816163"},
    {5,
     "{\"kind\":\"payment\",\"intent_ref\":\"i1\",\"counterparty\":\"bob\",\"outcome\":\"success\","
     "\"cost\":{\"asset\":\"PAX\",\"amount\":\"1.50\"},\"duration\":\"1m30s\","
     "\"artifacts\":[\"a1\"],\"summary\":\"paid\"}",
     "a9000101677061796d656e74026269310363626f6204677375636365737305a201635041580264312e35300"
     "61b00000014f46b04000781626131086470616964"},
    {6,
     "{\"statement\":\"ship\",\"horizon_end\":1700000000,\"success_criteria\":[\"c\"],"
     "\"status\":\"paused\",\"subgoals\":[\"g\"],\"verb_hint\":\"build\","
     "\"objects\":[{\"kind\":\"service\",\"ref\":\"r\",\"value\":{\"base64\":\"AQ==\"}}],"
     "\"constraints\":[{\"type\":\"budget\",\"hard\":true,\"statement\":\"s\","
     "\"data\":{\"base64\":\"Ag==\"}}],\"budget\":{\"daily_max\":\"1\",\"intents_per_day\":3},"
     "\"persistent\":true,\"created_by\":\"w\"}",
     "ac0001016473686970021a6553f1000381616304667061757365640581616706656275696c640781a3016773657"
     "2766963650261720341010881a4016662756467657402f503617304410209a201613103030af50b6177"},
    {6, "{\"statement\":\"ship\",\"status\":\"active\",\"budget\":{}}",
     "a400010164736869700466616374697665"
     "09a0"},
    {6, "{\"statement\":\"ship\",\"status\":\"active\",\"budget\":null}",
     "a300010164736869700466616374697665"},
    {5, "{\"kind\":\"k\",\"outcome\":\"o\",\"duration\":\"0s\"}", "a4000101616b04616f0600"},
    {5, "{\"kind\":\"k\",\"outcome\":\"o\",\"duration\":0}", "a4000101616b04616f0600"},
    {5, "{\"kind\":\"k\",\"outcome\":\"o\",\"duration\":null}", "a3000101616b04616f"},
    {7,
     "{\"statement\":\"no PII\",\"polarity\":\"dont\",\"trigger\":\"t\",\"strength\":\"hard\","
     "\"source\":\"user_declared\"}",
     "a6000101666e6f205049490264646f6e74036174046468617264056d757365725f6465636c61726564"},
    {8,
     "{\"subject\":\"gpu\",\"capability\":\"infer\",\"parameters\":{\"base64\":\"AQ==\"},"
     "\"verified\":true,\"last_observed\":\"2023-11-14T23:13:20+01:00\"}",
     "a6000101636770750265696e66657203410104f5051a6553f100"},
    {8, "{\"subject\":\"gpu\",\"capability\":\"infer\"}", "a5000101636770750265696e66657204f405f6"},
    {9, "{\"statement\":\"p\",\"derived_from\":[\"x\"],\"strength\":0.75,\"coverage\":12}",
     "a500010161700281617803f93a00040c"},
};

CX_TEST(data_from_json)
{
    fixture kit;
    fixture_init(&kit);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        char hex[512];
        size_t size = 0;
        for (const char *c = cases[i].hex; *c != 0; c++)
            if (*c != ' ')
                hex[size++] = *c;
        if (!from_json(&kit, cases[i].type, cases[i].json))
            cx_test_fail(__FILE__, __LINE__, "%s: %s", cases[i].json, kit.err.message);
        else if (!fixture_same(cx_buf_bytes(&kit.buf), fixture_hex(&kit, cx_str_from(hex, size))))
            cx_test_fail(__FILE__, __LINE__, "%s: other bytes", cases[i].json);
    }
    fixture_done(&kit);
}

typedef struct refused_case {
    uint8_t type;
    const char *json;
    const char *tag;
} refused_case;

static const refused_case refused[] = {
    {1, "{}", "EmptyData"},
    {0, "{\"name\":\"a\"}", "InvalidType"},
    {1, "[]", "TypeDataMismatch"},
    {1, "\"Andrew\"", "TypeDataMismatch"},
    {1, "null", "TypeDataMismatch"},
    {1, "{\"name\":1}", "TypeDataMismatch"},
    {1, "{\"Name\":\"a\"}", "TypeDataMismatch"},
    {1, "{\"name\":\"a\",\"statement\":\"s\"}", "TypeDataMismatch"},
    {1, "{\"name\":\"\\ud800\"}", "TypeDataMismatch"},
    {1, "{\"wallets\":\"x\"}", "TypeDataMismatch"},
    {1, "{\"wallets\":[1]}", "TypeDataMismatch"},
    {1, "{\"wallets\":[null]}", "TypeDataMismatch"},
    {1, "{\"public_keys\":[1]}", "TypeDataMismatch"},
    {1, "{\"public_keys\":[{\"base64\":\"AQI\"}]}", "TypeDataMismatch"},
    {1, "{\"public_keys\":[{\"base64\":\"AQID\",\"more\":1}]}", "TypeDataMismatch"},
    {1, "{\"public_keys\":[{\"hex\":\"00\"}]}", "TypeDataMismatch"},
    {1, "{\"schema\":\"1\",\"name\":\"a\"}", "TypeDataMismatch"},
    {2, "{\"as_of\":\"yesterday\"}", "TypeDataMismatch"},
    {2, "{\"as_of\":\"2023-02-29T00:00:00Z\"}", "TypeDataMismatch"},
    {2, "{\"as_of\":1.5}", "TypeDataMismatch"},
    {2, "{\"as_of\":9223372036854775808}", "TypeDataMismatch"},
    {3, "{\"strength\":\"0.9\"}", "TypeDataMismatch"},
    {3, "{\"strength\":1e39}", "TypeDataMismatch"},
    {3, "{\"strength\":1e999}", "TypeDataMismatch"},
    {5, "{\"cost\":1}", "TypeDataMismatch"},
    {5, "{\"cost\":{\"asset\":\"a\",\"price\":\"1\"}}", "TypeDataMismatch"},
    {5, "{\"duration\":\"1 minute\"}", "TypeDataMismatch"},
    {5, "{\"duration\":1.5}", "TypeDataMismatch"},
    {6, "{\"objects\":[[]]}", "TypeDataMismatch"},
    {6, "{\"persistent\":1}", "TypeDataMismatch"},
    {9, "{\"coverage\":1.0}", "TypeDataMismatch"},
};

CX_TEST(data_from_json_refuses)
{
    fixture kit;
    fixture_init(&kit);
    for (size_t i = 0; i < CX_COUNT_OF(refused); i++) {
        if (from_json(&kit, refused[i].type, refused[i].json))
            cx_test_fail(__FILE__, __LINE__, "accepted: %s", refused[i].json);
        else if (!cx_str_is(fixture_tag(&kit.err), refused[i].tag))
            cx_test_fail(__FILE__, __LINE__, "%s: %s", refused[i].json, kit.err.message);
    }
    CHECK(!from_json(&kit, 2, "{\"as_of\":true}"));
    CHECK_STR(cx_str_z(kit.err.message),
              "Fact.as_of: expected a time (RFC 3339, or seconds), found boolean");
    fixture_done(&kit);
}

static cx_str shown(fixture *kit, const cx_data *data)
{
    cx_json json;
    cx_buf text;
    cx_str copy;
    CHECK_STATUS(cx_data_to_json(data, &kit->arena, &json, &kit->err), &kit->err);
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(cx_json_write(&text, &json, CX_JSON_PY_COMPACT, &kit->err), &kit->err);
    copy = cx_arena_copy_str(&kit->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return copy;
}

CX_TEST(data_vectors_survive_json)
{
    fixture kit;
    cx_json file;
    fixture_init(&kit);
    if (fixture_load(&kit, "vectors/ledger/matrix-1/codec.json", &file)) {
        const cx_json *all = CX_JSON_GET(&file, "data");
        for (uint32_t i = 0; i < all->count; i++) {
            cx_bytes bytes = fixture_hex_of(&kit, &all->items[i], "cbor");
            uint8_t type = (uint8_t)fixture_uint(&all->items[i], "type_code");
            cx_data data;
            CHECK_STATUS(cx_data_decode(type, bytes, &kit.arena, &data, &kit.err), &kit.err);
            cx_str text = shown(&kit, &data);
            if (!from_json(&kit, type, text.data))
                cx_test_fail(__FILE__, __LINE__, "%s: %s", text.data, kit.err.message);
            else if (!fixture_same(cx_buf_bytes(&kit.buf), bytes))
                cx_test_fail(__FILE__, __LINE__, "%s: other bytes", text.data);
        }
    }
    fixture_done(&kit);
}

CX_TEST(data_shown)
{
    fixture kit;
    cx_data data;
    static const cx_maybe_bytes keys[] = {{.null = true},
                                          {.bytes = {(const uint8_t *)"", 0}},
                                          {.bytes = {(const uint8_t *)"\x01\x02", 2}}};
    fixture_init(&kit);
    data = (cx_data){.type = CX_TYPE_IDENTITY,
                     .schema = 1,
                     .as.identity = {.name = CX_STR("A"), .public_keys = {keys, 3}}};
    CHECK_STR(shown(&kit, &data),
              "{\"name\":\"A\",\"public_keys\":[null,\"\",{\"base64\":\"AQI=\"}]}");
    data = (cx_data){.type = CX_TYPE_EVENT,
                     .schema = 3,
                     .as.event = {.kind = CX_STR("k"), .duration = {true, INT64_MIN}}};
    CHECK_STR(shown(&kit, &data), "{\"duration\":\"-2562047h47m16.854775808s\",\"kind\":\"k\","
                                  "\"outcome\":\"\",\"schema\":3}");
    data = (cx_data){.type = CX_TYPE_GOAL, .schema = 1, .as.goal = {.status = CX_STR("s")}};
    data.as.goal.horizon_end = (cx_maybe_time){true, INT64_MAX};
    CHECK_STR(shown(&kit, &data),
              "{\"horizon_end\":9223372036854775807,\"statement\":\"\",\"status\":\"s\"}");
    fixture_done(&kit);
}

/* Any finite float is shown with the fewest digits that give it back. */
CX_TEST(data_floats_survive_json)
{
    fixture kit;
    uint64_t state = cx_test_seed();
    fixture_init(&kit);
    for (size_t i = 0; i < 3000; i++) {
        uint32_t bits = (uint32_t)cx_test_random(&state);
        cx_data data = {.type = CX_TYPE_PATTERN, .schema = 1}, back;
        cx_arena_mark mark = cx_arena_mark_now(&kit.arena);
        cx_json json;
        memcpy(&data.as.pattern.strength, &bits, sizeof bits);
        if (!isfinite(data.as.pattern.strength))
            continue;
        CHECK_STATUS(cx_data_to_json(&data, &kit.arena, &json, &kit.err), &kit.err);
        CHECK_STATUS(cx_data_from_json(CX_TYPE_PATTERN, &json, &kit.arena, &back, &kit.err),
                     &kit.err);
        if (memcmp(&back.as.pattern.strength, &bits, sizeof bits) != 0)
            cx_test_fail(__FILE__, __LINE__, "float %08x is lost", (unsigned)bits);
        const cx_json *strength = CX_JSON_GET(&json, "strength");
        float size = fabsf(data.as.pattern.strength);
        REQUIRE(strength != NULL);
        CHECK(size < 1e-4f || size > 1e9f || cx_json_text(strength).size <= 16);
        cx_arena_reset(&kit.arena, mark);
    }
    cx_data data = {.type = CX_TYPE_PATTERN, .schema = 1, .as.pattern = {.strength = 0.1f}};
    CHECK_STR(shown(&kit, &data), "{\"coverage\":0,\"statement\":\"\",\"strength\":0.1}");
    data.as.pattern.strength = 16777216.0f;
    CHECK_STR(shown(&kit, &data), "{\"coverage\":0,\"statement\":\"\",\"strength\":16777216.0}");
    data.as.pattern.strength = -0.99999994f;
    CHECK_STR(shown(&kit, &data), "{\"coverage\":0,\"statement\":\"\",\"strength\":-0.99999994}");
    data.as.pattern.strength = NAN;
    CHECK_STR(shown(&kit, &data), "{\"coverage\":0,\"statement\":\"\",\"strength\":null}");
    fixture_done(&kit);
}

static bool member_is(fixture *kit, const cx_data *data, const char *name, const char *expected)
{
    cx_buf_clear(&kit->buf);
    bool found = cx_data_member_text(data, cx_str_z(name), &kit->buf);
    return expected == NULL ? !found : found && cx_str_is(cx_buf_str(&kit->buf), expected);
}

CX_TEST(data_members_as_text)
{
    fixture kit;
    fixture_init(&kit);
    cx_data data = {.type = CX_TYPE_CAPABILITY,
                    .schema = 1,
                    .as.capability = {.subject = CX_STR("gpu"),
                                      .verified = true,
                                      .last_observed = {true, 1700000000}}};
    CHECK(member_is(&kit, &data, "subject", "gpu"));
    CHECK(member_is(&kit, &data, "capability", ""));
    CHECK(member_is(&kit, &data, "verified", "true"));
    CHECK(member_is(&kit, &data, "last_observed", "2023-11-14T22:13:20Z"));
    CHECK(member_is(&kit, &data, "parameters", NULL));
    CHECK(member_is(&kit, &data, "statement", NULL));
    cx_data pattern = {
        .type = CX_TYPE_PATTERN, .schema = 1, .as.pattern = {.strength = 0.9f, .coverage = -3}};
    CHECK(member_is(&kit, &pattern, "strength", "0.9"));
    CHECK(member_is(&kit, &pattern, "coverage", "-3"));
    cx_data event = {.type = CX_TYPE_EVENT, .schema = 1, .as.event = {.kind = CX_STR("k")}};
    CHECK(member_is(&kit, &event, "duration", NULL));
    event.as.event.duration.is_set = true;
    CHECK(member_is(&kit, &event, "duration", "0"));
    fixture_done(&kit);
}
