/*
 * Reading traces (trace.md §1, §4.3): which reason, at which path, and in which order.
 */
#include "tests/support/trace_kit.h"

static void check(kit *k, cx_str text, const char *reason, const char *path)
{
    CHECK_REASON(kit_read(k, text), reason);
    if (path == NULL)
        CHECK(k->problem.path.data == NULL);
    else
        CHECK_STR(k->problem.path, path);
    if (reason[0] != 0)
        CHECK(k->problem.detail.size != 0);
}

static cx_str small(kit *k)
{
    return kit_small(k, CX_EVENT_THOUGHT_START, "{}", "");
}

CX_TEST(read_a_whole_trace)
{
    kit k;
    kit_init(&k);
    check(&k, kit_file(&k, "traces/form-G-edge2.json"), "", NULL);
    CHECK_INT(k.trace.component_count, 6);
    CHECK_STR(k.trace.agent_id_hash, "976dbe5047633d39");
    CHECK_STR(k.trace.schema_version, "2.7.9");
    CHECK(k.trace.stamped && k.trace.has_started && k.trace.has_completed);
    CHECK_INT(k.trace.level, CX_LEVEL_FULL);
    for (unsigned i = 0; i < CX_EVENT_COUNT; i++) {
        CHECK_INT(k.trace.last[i] != NULL, i < CX_EVENT_REQUIRED_COUNT);
        if (k.trace.last[i] != NULL)
            CHECK_INT(k.trace.last[i]->event, i);
    }
    CHECK_INT(k.trace.signed_ns, k.trace.last[CX_EVENT_ACTION_RESULT]->timestamp_ns);
    kit_done(&k);
}

CX_TEST(read_members_of_the_envelope)
{
    static const struct {
        const char *old, *new_text, *reason, *path;
    } cases[] = {
        {"\"trace_id\":\"t\",", "", "missing_field", "/trace_id"},
        {"\"trace_id\":\"t\"", "\"trace_id\":null", "missing_field", "/trace_id"},
        {"\"trace_id\":\"t\"", "\"trace_id\":7", "field_type", "/trace_id"},
        {"\"signature\":\"AA\",", "", "missing_field", "/signature"},
        {"\"signature_key_id\":\"k\",", "", "missing_field", "/signature_key_id"},
        {"\"signature_key_id\":\"k\"", "\"signature_key_id\":[]", "field_type",
         "/signature_key_id"},
        {"{\"trace_id\"", "{\"task_id\":1,\"trace_id\"", "field_type", "/task_id"},
        {"{\"trace_id\"", "{\"thought_id\":{},\"trace_id\"", "field_type", "/thought_id"},
        {"{\"trace_id\"", "{\"agent_id_hash\":true,\"trace_id\"", "field_type", "/agent_id_hash"},
        {"{\"trace_id\"", "{\"started_at\":0,\"trace_id\"", "field_type", "/started_at"},
        {"{\"trace_id\"", "{\"completed_at\":\"now\",\"trace_id\"", "timestamp_invalid",
         "/completed_at"},
        {"{\"trace_id\"", "{\"trace_level\":\"Generic\",\"trace_id\"", "level_unknown",
         "/trace_level"},
        {"{\"trace_id\"", "{\"trace_level\":2,\"trace_id\"", "field_type", "/trace_level"},
        {"{\"trace_id\"", "{\"trace_schema_version\":2.7,\"trace_id\"", "field_type",
         "/trace_schema_version"},
        {"{\"trace_id\"", "{\"deployment_profile\":\"\",\"trace_id\"", "field_type",
         "/deployment_profile"},
        {"{\"trace_id\"", "{\"signature_ml_dsa_65\":1,\"trace_id\"", "field_type",
         "/signature_ml_dsa_65"},
        {"{\"trace_id\"",
         "{\"task_id\":null,\"trace_level\":null,\"started_at\":null,\"x/y\":[1e5],\"trace_id\"",
         "", NULL},
    };
    kit k;
    kit_init(&k);
    check(&k, small(&k), "", NULL);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++)
        check(&k, kit_replace(&k, small(&k), cases[i].old, cases[i].new_text), cases[i].reason,
              cases[i].path);
    kit_done(&k);
}

CX_TEST(read_components)
{
    static const struct {
        const char *old, *new_text, *reason, *path;
    } cases[] = {
        {"\"components\":[", "\"other\":[", "missing_field", "/components"},
        {"\"components\":[", "\"components\":[7,", "field_type", "/components/0"},
        {"\"component_type\":\"context\",", "", "missing_field", "/components/1/component_type"},
        {"\"event_type\":\"DMA_RESULTS\"", "\"event_type\":null", "missing_field",
         "/components/2/event_type"},
        {"\"timestamp\":\"2026-01-01T00:00:03Z\",", "", "missing_field", "/components/3/timestamp"},
        {",\"data\":{}}", "}", "missing_field", "/components/0/data"},
        {"\"data\":{}", "\"data\":null", "missing_field", "/components/0/data"},
        {"\"data\":{}", "\"data\":[]", "field_type", "/components/0/data"},
        {"\"timestamp\":\"2026-01-01T00:00:03Z\"", "\"timestamp\":3", "field_type",
         "/components/3/timestamp"},
        {"2026-01-01T00:00:03Z", "2026-01-32T00:00:03Z", "timestamp_invalid",
         "/components/3/timestamp"},
        {"\"observation\"", "\"context\"", "component_type_mismatch",
         "/components/0/component_type"},
        {"\"THOUGHT_START\"", "\"thought_start\"", "components_missing", "/components"},
        /* Unknown events and repeated ones are accepted. */
        {"[{",
         "[{\"component_type\":\"?\",\"event_type\":\"NEW\",\"timestamp\":"
         "\"2026-01-01T00:00:00\",\"data\":{}},{",
         "", NULL},
        {"[{",
         "[{\"component_type\":\"action\",\"event_type\":\"ACTION_RESULT\",\"timestamp\":"
         "\"2026-01-01T00:00:00Z\",\"data\":{\"first\":1}},{",
         "", NULL},
    };
    kit k;
    kit_init(&k);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++)
        check(&k, kit_replace(&k, small(&k), cases[i].old, cases[i].new_text), cases[i].reason,
              cases[i].path);
    CHECK_INT(k.trace.component_count, 7);
    CHECK(k.trace.last[CX_EVENT_ACTION_RESULT] == &k.trace.components[6]);
    check(&k,
          CX_STR("{\"trace_id\":\"t\",\"signature\":\"\",\"signature_key_id\":\"\","
                 "\"components\":[]}"),
          "components_missing", "/components");
    CHECK(strstr(k.problem.detail.data, "THOUGHT_START, SNAPSHOT_AND_CONTEXT") != NULL);
    kit_done(&k);
}

/* §4.3: the order of reasons decides, not the order of the text. */
/* I1 of trace.h */
CX_TEST(read_reports_the_first_reason)
{
    static const struct {
        const char *add, *reason, *path;
    } cases[] = {
        {"", "components_missing", "/components"},
        {",\"completed_at\":\"?\"", "timestamp_invalid", "/completed_at"},
        {",\"trace_level\":\"?\",\"completed_at\":\"?\"", "level_unknown", "/trace_level"},
        {",\"task_id\":[],\"trace_level\":\"?\",\"completed_at\":\"?\"", "field_type", "/task_id"},
        {",\"task_id\":[],\"signature\":null", "missing_field", "/signature"},
        {",\"task_id\":[NaN],\"signature\":null", "number_not_finite", "/task_id/0"},
        {",\"task_id\":[1e400,{\"\":-Infinity}],\"x\":NaN", "number_not_finite", "/task_id/0"},
    };
    kit k;
    kit_init(&k);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        bool signed_twice = strstr(cases[i].add, "\"signature\"") != NULL;
        cx_str text = cx_arena_printf(&k.arena,
                                      "{\"trace_id\":\"t\"%s,\"signature_key_id\":\"\","
                                      "\"components\":[]%s}",
                                      signed_twice ? "" : ",\"signature\":\"\"", cases[i].add);
        check(&k, text, cases[i].reason, cases[i].path);
        /* What can be named is named. */
        CHECK_STR(k.trace.trace_id, "t");
    }
    kit_done(&k);
}

CX_TEST(read_what_is_no_json)
{
    static const struct {
        const char *text, *reason, *path;
    } cases[] = {{"", "malformed_json", NULL},
                 {"{", "malformed_json", NULL},
                 {"{} {}", "malformed_json", NULL},
                 {"\xEF\xBB\xBF{}", "malformed_json", NULL},
                 {"{\"a\":\xC0\xAF}", "invalid_utf8", NULL},
                 {"{\"a\":\"\xE2\x82", "invalid_utf8", NULL},
                 {"{\"a\" 1, \"\xFF\"}", "invalid_utf8", NULL},
                 {"{\"a\":nan}", "malformed_json", NULL},
                 {"{\"a\":{\"b/c\":[0,{\"x\":1,\"\\u0078\":2}]}}", "duplicate_key", "/a/b~1c/1/x"},
                 {"7", "field_type", NULL},
                 {"[NaN]", "number_not_finite", "/0"},
                 {"NaN", "number_not_finite", ""}};
    kit k;
    kit_init(&k);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++)
        check(&k, cx_str_z(cases[i].text), cases[i].reason, cases[i].path);
    kit_done(&k);
}

static cx_str repeated(kit *k, const char *before, const char *what, size_t times,
                       const char *after)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, before);
    for (size_t i = 0; i < times; i++)
        cx_buf_add_z(&text, what);
    cx_buf_add_z(&text, after);
    cx_str copy = cx_arena_copy_str(&k->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return copy;
}

/* I2 of trace.h */
CX_TEST(read_limits)
{
    enum { TEXT_MAX = CX_TRACE_TEXT_BYTES_MAX };
    kit k;
    kit_init(&k);
    check(&k, repeated(&k, "{\"trace_id\":\"", "x", 257, "\"}"), "limit_exceeded", "/trace_id");
    check(&k, repeated(&k, "{\"trace_id\":\"", "x", 256, "\"}"), "missing_field", "/components");
    check(&k, repeated(&k, "{\"n\":[0,", "7", 4096, "]}"), "missing_field", "/trace_id");
    check(&k, repeated(&k, "{\"n\":[0,", "7", 4097, "]}"), "limit_exceeded", "/n/1");
    check(&k, repeated(&k, "{\"n\":[0,", "7", 4094, ".5]}"), "number_not_finite", "/n/1");
    check(&k, repeated(&k, "{\"n\":[0,0.", "7", 4094, "]}"), "missing_field", "/trace_id");
    check(&k, repeated(&k, "{\"n\":[0,0.", "7", 4095, "]}"), "limit_exceeded", "/n/1");
    check(&k, repeated(&k, "{\"n\":", "[", 63, ""), "malformed_json", NULL);
    check(&k, repeated(&k, "{\"n\":", "[", 64, ""), "depth_exceeded", NULL);
    check(&k, repeated(&k, "{\"components\":[0", ",0", 256, "]}"), "limit_exceeded", "/components");
    check(&k, repeated(&k, "{\"components\":[0", ",0", 255, "]}"), "missing_field", "/trace_id");
    check(&k, repeated(&k, "{\"n\":\"", "x", TEXT_MAX, "\"}"), "missing_field", "/trace_id");
    check(&k, repeated(&k, "{\"n\":\"", "x", TEXT_MAX + 1, "\"}"), "limit_exceeded", NULL);
    check(&k, repeated(&k, "", " ", CX_TRACE_BYTES_MAX + 1, ""), "limit_exceeded", NULL);
    check(&k, repeated(&k, "{}", " ", CX_TRACE_BYTES_MAX - 2, ""), "missing_field", "/trace_id");
    kit_done(&k);
}

CX_TEST(read_with_one_parser)
{
    static const char *const files[] = {"traces/form-B-edge0.json", "traces/json-plus.json",
                                        "traces/form-B-edge1.json", "traces/dup-key-top.json"};
    cx_json_parser parser;
    kit k;
    kit_init(&k);
    cx_trace_parser_init(&parser, cx_alloc_default());
    for (int turn = 0; turn < 3; turn++) {
        for (size_t i = 0; i < CX_COUNT_OF(files); i++) {
            cx_str text = kit_file(&k, files[i]);
            cx_digest first, second;
            cx_trace_reason reason = kit_read(&k, text);
            if (reason == CX_REASON_NONE)
                CHECK_STATUS(cx_trace_content_digest(&k.trace, &first, &k.err), &k.err);
            CHECK_STATUS(cx_trace_read_with(&parser, cx_str_bytes(text), &k.arena, &k.trace,
                                            &k.problem, &k.err),
                         &k.err);
            CHECK_INT(k.problem.reason, reason);
            if (reason != CX_REASON_NONE)
                continue;
            CHECK_STATUS(cx_trace_content_digest(&k.trace, &second, &k.err), &k.err);
            CHECK(cx_digest_eq(&first, &second));
        }
    }
    cx_json_parser_done(&parser);
    kit_done(&k);
}

CX_TEST(read_stamps)
{
    static const struct {
        const char *version;
        bool stamped;
    } cases[] = {{"2.7.0", true},  {"2.7", true},    {"2.10", true},
                 {"3.0.0", true},  {"10.1", true},   {"2.7-rc", true},
                 {"2.6.9", false}, {"1.9.9", false}, {"1.0", false},
                 {"2", false},     {"", false},      {"v2.7.9", false},
                 {"2.x", false},   {"2.", false},    {"99999999999999999999.0", true}};
    kit k;
    kit_init(&k);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_str more =
            cx_arena_printf(&k.arena, ",\"trace_schema_version\":\"%s\"", cases[i].version);
        CHECK_REASON(kit_read(&k, kit_small(&k, CX_EVENT_UNKNOWN, "", more.data)), "");
        if (k.trace.stamped != cases[i].stamped)
            cx_test_fail(__FILE__, __LINE__, "'%s' is stamped: %d", cases[i].version,
                         k.trace.stamped);
    }
    kit_done(&k);
}

CX_TEST(read_names_in_both_directions)
{
    cx_trace_level level;
    cx_trace_reason reason;
    unsigned bits = 99;
    for (unsigned i = 0; i < CX_LEVEL_ABSENT; i++) {
        CHECK(cx_trace_level_parse(cx_str_z(cx_trace_level_name((cx_trace_level)i)), &level));
        CHECK_INT(level, i);
    }
    for (unsigned i = 1; i <= CX_REASON_TRACE_ID_CONFLICT; i++) {
        CHECK(cx_trace_reason_parse(cx_str_z(cx_trace_reason_name((cx_trace_reason)i)), &reason));
        CHECK_INT(reason, i);
    }
    CHECK(!cx_trace_level_parse(CX_STR(""), &level) && !cx_trace_reason_parse(CX_STR(""), &reason));
    CHECK_STR(cx_str_z(cx_trace_level_name(CX_LEVEL_ABSENT)), "");
    CHECK_STR(cx_str_z(cx_trace_form_name(CX_FORM_NONE)), "");
    CHECK(!cx_trace_forms_parse(CX_STR(""), &bits) && !cx_trace_forms_parse(CX_STR("A,"), &bits));
    CHECK(!cx_trace_forms_parse(CX_STR("I"), &bits) && !cx_trace_forms_parse(CX_STR("AB"), &bits));
    CHECK(!cx_trace_forms_parse(CX_STR("A;B"), &bits) && bits == 99);
    CHECK(cx_trace_forms_parse(CX_STR("H,B,A"), &bits));
    CHECK_INT(bits, CX_FORM_BIT(CX_FORM_A) | CX_FORM_BIT(CX_FORM_B) | CX_FORM_BIT(CX_FORM_H));
}

/* §1, decision 0015: absent or unknown is no agent; §14.24: a wakeup is told by the task id
 * alone. */
CX_TEST(read_who_and_what)
{
    cx_trace trace = {.key_id = CX_STR("agent-1")};
    kit k;
    kit_init(&k);
    CHECK(cx_trace_agent(&trace).data == NULL);
    CHECK_STR(cx_trace_actor(&trace, &k.arena), "key:agent-1");
    trace.agent_id_hash = CX_STR("unknown");
    CHECK(cx_trace_agent(&trace).data == NULL);
    trace.agent_id_hash = CX_STR("976d");
    CHECK_STR(cx_trace_actor(&trace, &k.arena), "976d");
    CHECK_STR(cx_trace_wakeup_type(CX_STR("VERIFY_IDENTITY_")), "VERIFY_IDENTITY");
    CHECK(cx_trace_wakeup_type(CX_STR("VERIFY_IDENTITY")).data == NULL);
    CHECK(cx_trace_wakeup_type(CX_STR("verify_identity_1")).data == NULL);
    CHECK(cx_trace_wakeup_type((cx_str){NULL, 0}).data == NULL);
    CHECK_REASON(kit_read(&k, kit_small(&k, CX_EVENT_THOUGHT_START,
                                        "{\"task_description\":\"VERIFY_IDENTITY_1\"}",
                                        ",\"task_id\":\"x\"")),
                 "");
    CHECK(cx_trace_wakeup_type(k.trace.task_id).data == NULL);
    kit_done(&k);
}

CX_TEST(read_effective_level)
{
    cx_trace trace = {.level = CX_LEVEL_ABSENT};
    CHECK_INT(cx_trace_level_of(&trace, CX_LEVEL_ABSENT, CX_LEVEL_ABSENT), CX_LEVEL_GENERIC);
    CHECK_INT(cx_trace_level_of(&trace, CX_LEVEL_ABSENT, CX_LEVEL_FULL), CX_LEVEL_FULL);
    CHECK_INT(cx_trace_level_of(&trace, CX_LEVEL_DETAILED, CX_LEVEL_FULL), CX_LEVEL_DETAILED);
    trace.level = CX_LEVEL_GENERIC;
    CHECK_INT(cx_trace_level_of(&trace, CX_LEVEL_DETAILED, CX_LEVEL_FULL), CX_LEVEL_GENERIC);
}
