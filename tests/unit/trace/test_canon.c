/*
 * Canonical bytes (trace.md §3): the worked examples, all forms of one trace, stripping, spellings.
 */
#include "tests/support/trace_kit.h"

#include "crypto/digest.h"
#include "base/hex.h"

static void check_digest(cx_bytes bytes, const char *expected)
{
    cx_digest digest = cx_digest_of(bytes);
    char hex[65] = {0};
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), hex);
    CHECK_STR(cx_str_z(hex), expected);
}

static void spell(kit *k, const char *json, const cx_canon_style *style)
{
    cx_json value;
    cx_buf_clear(&k->scratch);
    CHECK_STATUS(cx_json_parse_text(cx_str_z(json), &k->arena, &value, &k->err), &k->err);
    if (style == NULL)
        CHECK_STATUS(cx_json_write(&k->scratch, &value, CX_JSON_JCS, &k->err), &k->err);
    else
        CHECK_STATUS(cx_trace_canon_value(&value, style, &k->scratch, &k->err), &k->err);
}

static const cx_canon_style spaced = {.spaces = true}, compact = {.spaces = false},
                            numbers = {.python_numbers = true}, strip = {.strip = true};

CX_TEST(canon_worked_examples)
{
    static const char two[] = "{\"b\":1.0,\"a\":\"\xc3\xa9\"}";
    static const char three[] = "{\"n\":1.10,\"m\":1E5,\"z\":-0}";
    static const char order[] = "{\"\\ue000\":1,\"\xf0\x9f\x98\x80\":2}";
    static const struct {
        const char *json;
        const cx_canon_style *style; /* NULL = JCS */
        const char *bytes, *sha256;
    } cases[] = {
        {two, &spaced, "{\"a\": \"\\u00e9\", \"b\": 1.0}",
         "7e7bcd39f317cc307d7ea3905f6e85d0f407bd4e10c5487573111d7c303876eb"},
        {two, &compact, "{\"a\":\"\\u00e9\",\"b\":1.0}",
         "8b3040a03e6b64d84012168038bf0f1dd0e6158376829eb58edf49e50d55e8ce"},
        {two, NULL, "{\"a\":\"\xc3\xa9\",\"b\":1}",
         "aa58fba8483623bed37c1b02edfccbdd9a53123837c20bfa4cb4049993a2872e"},
        {three, &compact, "{\"m\":1E5,\"n\":1.10,\"z\":-0}",
         "59a17f5c246f2ba773b83cd8db58294c493d23fb29349cff2bdaa8543eaf869b"},
        {three, &numbers, "{\"m\":100000.0,\"n\":1.1,\"z\":0}",
         "08d471cf0f602f5649807227fceebc7ed3101476e945083b4a96ef81a969f6fe"},
        {three, NULL, "{\"m\":100000,\"n\":1.1,\"z\":0}",
         "0f789a1db5ed01d192d3ab644111d1c061aa487ea914ae56a5b1bf1bb5df7e91"},
        {"{\"a\":{\"b\":null},\"l\":[null,\"\",[],0],\"d\":\"\"}", &strip, "{\"l\":[\"\",[],0]}",
         "9e35b0a895266eb7cbead717881c0744e9bd4318368cfd56f05157f9ca1bd502"},
        {order, &compact, "{\"\\ue000\":1,\"\\ud83d\\ude00\":2}",
         "cbc59ba170b24c28f6de748a91f6cd6c844aa7470605f4accc7bf644eb05f495"},
        {order, NULL, "{\"\xf0\x9f\x98\x80\":2,\"\xee\x80\x80\":1}",
         "28c95d1bbb2209223307e62f489020e8f9e0cfa16adf2daf6d88127a1e8dd22a"},
    };
    kit k;
    kit_init(&k);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        spell(&k, cases[i].json, cases[i].style);
        CHECK_STR(cx_buf_str(&k.scratch), cases[i].bytes);
        check_digest(cx_buf_bytes(&k.scratch), cases[i].sha256);
    }
    kit_done(&k);
}

#define C4 "\"event_type\":\"ACTION_RESULT\",\"timestamp\":\"2026-01-01T00:00:00Z\"}]"
#define ENV                                                                         \
    "\"started_at\":null,\"task_id\":\"k\",\"thought_id\":null,\"trace_id\":\"t\"," \
    "\"trace_level\":\"generic\",\"trace_schema_version\":\"2.7.9\"}"

static const char example[] =
    "{\"trace_id\":\"t\",\"task_id\":\"k\",\"agent_id_hash\":\"h\",\"trace_level\":\"generic\","
    "\"trace_schema_version\":\"2.7.9\",\"signature\":\"\",\"signature_key_id\":\"\","
    "\"components\":[{\"data\":{\"x\":0.50,\"y\":null},\"component_type\":\"action\"," C4 "}";

CX_TEST(canon_all_forms_of_one_trace)
{
    static const struct {
        cx_trace_form form;
        const char *bytes, *sha256;
    } cases[] = {
        {CX_FORM_A, "bc65b8a75384442e8136f5c6d0cd7f108acde790963de24f9869040f22192ecb",
         "211ebdc0841cbd585008991a0f50b9836e1d4c836ae2f559c80cd654237bbcf8"},
        {CX_FORM_B,
         "[{\"component_type\": \"action\", \"data\": {\"x\": 0.50, \"y\": null}, \"event_type\": "
         "\"ACTION_RESULT\", \"timestamp\": \"2026-01-01T00:00:00Z\"}]",
         "e54c4916e67bc706cc1ef97a17c240f1508b7a13d1edae58886e181f20d19eb1"},
        {CX_FORM_C, "[{\"component_type\":\"action\",\"data\":{\"x\":0.50,\"y\":null}," C4,
         "7df8854a3efb6c6dd08b6d3fecc754d9cd9b2f0bae6d50c88a1b575df77a2f4e"},
        {CX_FORM_D, "[{\"component_type\":\"action\",\"data\":{\"x\":0.50}," C4,
         "ec1a818dd8ff2354cb02d5831c58da91a1a3f6712c5d14be2061c41599f078db"},
        {CX_FORM_E,
         "{\"components\":[{\"component_type\":\"action\",\"data\":{\"x\":0.50}," C4
         ",\"trace_level\":\"generic\"}",
         "2f9c628420f59e0f8f3876896e1a8ed781ad3990af1f14ab00b56c4733c5ec58"},
        {CX_FORM_F,
         "{\"agent_id_hash\":\"h\",\"completed_at\":null,\"components\":[{\"component_type\":"
         "\"action\",\"data\":{\"x\":0.50}," C4 "," ENV,
         "809bccb7700657dea5b3618a5e69293124a0dff514919a569c390855796fb02f"},
        {CX_FORM_G,
         "{\"agent_id_hash\":\"h\",\"completed_at\":null,\"components\":[{\"agent_id_hash\":"
         "\"h\",\"component_type\":\"action\",\"data\":{\"x\":0.50}," C4 "," ENV,
         "0447f10fa5a4b467895fd009f59f56c51a3717f7fd7a10ffbd44a26f14e32641"},
        {CX_FORM_H,
         "{\"agent_id_hash\":\"h\",\"completed_at\":null,\"components\":[{\"agent_id_hash\":"
         "\"h\",\"component_type\":\"action\",\"data\":{\"x\":0.5}," C4 "," ENV,
         "0f017d5ac8f65542828e2544056e4d2c67b1fd50ee55f1ad59e87d01dad3e47b"},
    };
    kit k;
    kit_init(&k);
    /* Too few components to be accepted, and all there is to be written. */
    CHECK_REASON(kit_read(&k, CX_STR(example)), "components_missing");
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        const cx_trace_bytes which = {.form = cases[i].form, .batch_level = CX_LEVEL_ABSENT};
        cx_buf_clear(&k.scratch);
        CHECK_STATUS(cx_trace_canonical(&k.trace, &which, &k.scratch, &k.err), &k.err);
        CHECK_STR(cx_buf_str(&k.scratch), cases[i].bytes);
        check_digest(cx_buf_bytes(&k.scratch), cases[i].sha256);
    }
    kit_done(&k);
}

/* One form of a trace of which only the text is given, from its first difference to the example. */
static cx_str form_of(kit *k, cx_str text, cx_trace_bytes which)
{
    (void)kit_read(k, text);
    cx_buf_clear(&k->scratch);
    CHECK_STATUS(cx_trace_canonical(&k->trace, &which, &k->scratch, &k->err), &k->err);
    return cx_arena_copy_str(&k->arena, cx_buf_str(&k->scratch));
}

/* §14.5 */
CX_TEST(canon_other_members_of_a_component_are_not_signed)
{
    kit k;
    kit_init(&k);
    cx_trace_bytes which = {.form = CX_FORM_B, .batch_level = CX_LEVEL_ABSENT};
    cx_str more = kit_replace(&k, CX_STR(example), "[{", "[{\"agent_id_hash\":\"x\",\"n\":[1],");
    for (; which.form <= CX_FORM_F; which.form++)
        CHECK(cx_str_eq(form_of(&k, CX_STR(example), which), form_of(&k, more, which)));
    /* From G on the component's agent is. */
    cx_str signed_agent = form_of(&k, more, which);
    CHECK(strstr(signed_agent.data, "[{\"agent_id_hash\":\"x\",\"component_type\"") != NULL);
    kit_done(&k);
}

/* §3: under E the trace's level comes first (§14.7), null when no level is given. */
CX_TEST(canon_level_of_form_e)
{
    static const struct {
        const char *own;
        cx_trace_level batch;
        const char *end;
    } cases[] = {{"\"trace_level\":\"generic\"", CX_LEVEL_FULL, "\"trace_level\":\"generic\"}"},
                 {"\"trace_level\":null", CX_LEVEL_FULL, "\"trace_level\":\"full_traces\"}"},
                 {"\"trace_level\":null", CX_LEVEL_ABSENT, "\"trace_level\":null}"}};
    kit k;
    kit_init(&k);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_trace_bytes which = {.form = CX_FORM_E, .batch_level = cases[i].batch};
        cx_str text = kit_replace(&k, CX_STR(example), "\"trace_level\":\"generic\"", cases[i].own);
        CHECK(cx_str_ends(form_of(&k, text, which), cx_str_z(cases[i].end)));
    }
    kit_done(&k);
}

/* E drops data that is empty with the component's stripping, and keeps it with its second try. */
CX_TEST(canon_empty_data)
{
    static const struct {
        cx_trace_form form;
        bool data_only;
        const char *part;
    } cases[] = {{CX_FORM_D, false, "\"action\",\"data\":{},\"event_type\""},
                 {CX_FORM_E, false, "\"action\",\"event_type\""},
                 {CX_FORM_E, true, "\"action\",\"data\":{},\"event_type\""},
                 {CX_FORM_F, false, "\"action\",\"event_type\""}};
    kit k;
    kit_init(&k);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_trace_bytes which = {.form = cases[i].form,
                                .strip_data_only = cases[i].data_only,
                                .batch_level = CX_LEVEL_ABSENT};
        cx_str text = kit_replace(&k, CX_STR(example), "\"x\":0.50", "\"x\":[null]");
        CHECK(strstr(form_of(&k, text, which).data, cases[i].part) != NULL);
    }
    kit_done(&k);
}

/* §3: unstripped, and only when it is not null. */
CX_TEST(canon_deployment_profile)
{
    const cx_trace_bytes which = {.form = CX_FORM_G, .batch_level = CX_LEVEL_ABSENT};
    kit k;
    kit_init(&k);
    cx_str with = kit_replace(&k, CX_STR(example), "{\"trace_id\"",
                              "{\"deployment_profile\":{\"b\":null,\"a\":\"\"},\"trace_id\"");
    CHECK(strstr(form_of(&k, with, which).data,
                 "],\"deployment_profile\":{\"a\":\"\",\"b\":null},\"started_at\"") != NULL);
    with = kit_replace(&k, CX_STR(example), "{\"trace_id\"",
                       "{\"deployment_profile\":null,\"trace_id\"");
    CHECK(cx_str_eq(form_of(&k, with, which), form_of(&k, CX_STR(example), which)));
    kit_done(&k);
}

/* §14.3, §14.4, and lone surrogates: legal in A to G, and H is then not there. */
CX_TEST(canon_text_and_numbers_survive)
{
    static const char in[] =
        "{\"e\":0.0031992000000000006,\"d\":1e-05,\"i\":-123456789012345678901"
        "234567890,\"s\":\"\xe2\x82\xac\\/\\u007f\\u001f\\b\",\"u\":\"\\ud800\"}";
    static const char out[] = "{\"d\": 1e-05, \"e\": 0.0031992000000000006, \"i\": -12345678901234"
                              "5678901234567890, \"s\": \"\\u20ac/\\u007f\\u001f\\b\", \"u\": "
                              "\"\\ud800\"}";
    const cx_trace_bytes h = {.form = CX_FORM_H, .batch_level = CX_LEVEL_ABSENT};
    const cx_trace_bytes g = {.form = CX_FORM_G, .batch_level = CX_LEVEL_ABSENT};
    kit k;
    kit_init(&k);
    spell(&k, in, &spaced);
    CHECK_STR(cx_buf_str(&k.scratch), out);
    cx_str text = kit_replace(&k, CX_STR(example), "null", "\"\\udfff\"");
    (void)kit_read(&k, text);
    cx_buf_clear(&k.scratch);
    CHECK_INT(cx_trace_canonical(&k.trace, &h, &k.scratch, NULL).code, CX_E_FORMAT);
    CHECK_INT(k.scratch.size, 0);
    CHECK(strstr(form_of(&k, text, g).data, "\"y\":\"\\udfff\"") != NULL);
    kit_done(&k);
}

/* §14.6 and the corners of stripping. */
CX_TEST(canon_stripping)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"{\"a\":{\"b\":null}}", "{}"},
        {"[\"\"]", "[\"\"]"},
        {"[null]", "[]"},
        {"null", "null"},
        {"\"\"", "\"\""},
        {"{}", "{}"},
        {"{\"a\":0,\"b\":0.0,\"c\":false,\"d\":{},\"e\":[]}", "{\"a\":0,\"b\":0.0,\"c\":false}"},
        {"{\"a\":[null,null]}", "{}"},
        {"{\"a\":[{}]}", "{\"a\":[{}]}"},
        {"{\"a\":[{\"b\":\"\"}]}", "{\"a\":[{}]}"},
        {"{\"a\":{\"b\":{\"c\":{\"d\":[null]}}},\"z\":1}", "{\"z\":1}"},
        {"{\"a\":1,\"b\":{\"c\":[],\"d\":2,\"e\":\"\"},\"f\":null}", "{\"a\":1,\"b\":{\"d\":2}}"},
        {"[null,[null],{\"a\":null},1]", "[[],{},1]"}};
    kit k;
    kit_init(&k);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        spell(&k, cases[i].in, &strip);
        CHECK_STR(cx_buf_str(&k.scratch), cases[i].out);
    }
    kit_done(&k);
}

/* Deeper than the writer's own frames, with something to take back at the bottom. */
CX_TEST(canon_deep_values)
{
    enum { DEPTH = 400 };
    kit k;
    kit_init(&k);
    cx_buf in, out;
    cx_buf_init(&in, cx_alloc_default());
    cx_buf_init(&out, cx_alloc_default());
    for (int i = 0; i < DEPTH; i++) {
        cx_buf_add_z(&in, "[{\"a\":");
        cx_buf_add_z(&out, "[{");
        if (i + 1 < DEPTH)
            cx_buf_add_z(&out, "\"a\":");
    }
    cx_buf_add_z(&in, "null");
    for (int i = 0; i < DEPTH; i++) {
        cx_buf_add_z(&in, "}]");
        cx_buf_add_z(&out, "}]");
    }
    spell(&k, cx_buf_z(&in), &compact);
    CHECK(cx_str_eq(cx_buf_str(&k.scratch), cx_buf_str(&in)));
    spell(&k, cx_buf_z(&in), &strip);
    CHECK(cx_str_eq(cx_buf_str(&k.scratch), cx_buf_str(&out)));
    cx_buf_done(&in);
    cx_buf_done(&out);
    kit_done(&k);
}

/* The same value by the json room, whose forms have canonical numbers. */
CX_TEST(canon_agrees_with_the_json_room)
{
    static const char *const files[] = {"traces/depth-61.json", "traces/lexeme-signed.json",
                                        "traces/form-B-edge0.json",
                                        "traces/detailed-reasoning.json"};
    kit k;
    kit_init(&k);
    for (size_t i = 0; i < CX_COUNT_OF(files); i++) {
        for (int spaces = 0; spaces < 2; spaces++) {
            const cx_canon_style style = {.spaces = spaces != 0, .python_numbers = true};
            cx_json value;
            cx_buf other;
            cx_buf_init(&other, cx_alloc_default());
            CHECK_STATUS(cx_json_parse_text(kit_file(&k, files[i]), &k.arena, &value, &k.err),
                         &k.err);
            cx_buf_clear(&k.scratch);
            CHECK_STATUS(cx_trace_canon_value(&value, &style, &k.scratch, &k.err), &k.err);
            CHECK_STATUS(cx_json_write(&other, &value,
                                       spaces != 0 ? CX_JSON_PY_DEFAULT : CX_JSON_PY_COMPACT,
                                       &k.err),
                         &k.err);
            CHECK(cx_str_eq(cx_buf_str(&k.scratch), cx_buf_str(&other)));
            cx_buf_done(&other);
        }
    }
    kit_done(&k);
}

/* §9: white space, order and escapes of the wire do not matter; number spelling does. */
CX_TEST(canon_content_digest)
{
    kit k;
    cx_digest first, second;
    kit_init(&k);
    (void)kit_read(&k, CX_STR("{\"trace_id\":\"\\u0041/\",\"x\":1.0}"));
    CHECK_STATUS(cx_trace_content_digest(&k.trace, &first, &k.err), &k.err);
    (void)kit_read(&k, CX_STR(" { \"x\" : 1.0, \"trace_id\" : \"A\\/\" } "));
    CHECK_STATUS(cx_trace_content_digest(&k.trace, &second, &k.err), &k.err);
    CHECK(cx_digest_eq(&first, &second));
    second = cx_digest_of(cx_str_bytes(CX_STR("{\"trace_id\":\"A/\",\"x\":1.0}")));
    CHECK(cx_digest_eq(&first, &second));
    (void)kit_read(&k, CX_STR("{\"trace_id\":\"A/\",\"x\":1.00}"));
    CHECK_STATUS(cx_trace_content_digest(&k.trace, &second, &k.err), &k.err);
    CHECK(!cx_digest_eq(&first, &second));
    kit_done(&k);
}

CX_TEST(canon_numbers_that_are_not_finite_have_none)
{
    cx_json_limits limits = CX_JSON_LIMITS_INIT;
    cx_json_parser parser;
    cx_json value;
    kit k;
    kit_init(&k);
    limits.allow_nonfinite = true;
    cx_json_parser_init(&parser, cx_alloc_default(), &limits);
    CHECK_STATUS(cx_json_parse(&parser, CX_STR("[1,NaN]"), &k.arena, &value, &k.err), &k.err);
    CHECK_INT(cx_trace_canon_value(&value, &compact, &k.scratch, NULL).code, CX_E_FORMAT);
    cx_json_parser_done(&parser);
    kit_done(&k);
}
