/*
 * Levels (trace.md §2): which field may be there from which level on, told in received order.
 */
#include "trace/internal.h"
#include "tests/support/trace_kit.h"

/* Violations as one text. */
static cx_str violations(kit *k, cx_event_type event, const char *data, const char *more,
                         cx_trace_level level)
{
    const cx_str *paths;
    size_t count;
    CHECK_REASON(kit_read(k, kit_small(k, event, data, more)), "");
    CHECK_STATUS(cx_trace_violations(&k->trace, level, &k->arena, &paths, &count, &k->err),
                 &k->err);
    cx_buf_clear(&k->scratch);
    for (size_t i = 0; i < count; i++) {
        cx_str prefix = CX_STR("/components/0/data");
        cx_str path = paths[i];
        if (cx_str_starts(path, prefix))
            path = cx_str_from(path.data + prefix.size, path.size - prefix.size);
        cx_buf_printf(&k->scratch, "%s%.*s", i == 0 ? "" : " ", (int)path.size, path.data);
    }
    return cx_buf_str(&k->scratch);
}

static const char stamp[] = ",\"trace_schema_version\":\"2.7.0\"";

CX_TEST(level_rules)
{
    static const struct {
        const char *data;
        bool stamped;
        const char *generic, *detailed;
    } cases[] = {
        {"{}", false, "", ""},
        {"{\"thought_type\":null,\"task_description\":\"\",\"channel_id\":[],\"z\":{}}", false, "",
         ""},
        {"{\"thought_depth\":1,\"thought_type\":\"a\",\"task_description\":\"b\"}", false,
         "/thought_type /task_description", "/task_description"},
        /* In the order of the text, with escapes undone. */
        {"{\"task_description\":\"b\",\"a~/b\":\"c\",\"\\u0061\":\"d\",\"A\":\"e\"}", false,
         "/task_description /a~0~1b /a /A", "/task_description /a~0~1b /a /A"},
        {"{\"thought\\u005ftype\":\"a\"}", false, "/thought_type", ""},
        /* Rule 4. */
        {"{\"n\":1,\"b\":true,\"l\":[1,null,false],\"m\":[1,\"\"],\"s\":\"t\",\"e\":[[]]}", false,
         "/l /m /s /e", "/m /s /e"},
        {"{\"o\":{\"n\":1,\"p\":{\"l\":[2],\"s\":\"x\"},\"q\":{\"r\":\"\"}}}", false,
         "/o/p/l /o/p/s", "/o/p/s"},
        /* Rule 5: numbers where numbers are due, tokens where texts are. */
        {"{\"round_number\":\"some text\"}", false, "/round_number", ""},
        {"{\"round_number\":\"a-b_c.d:e+1\"}", false, "", ""},
        {"{\"round_number\":{\"text\":\"x\"},\"thought_depth\":[1]}", false,
         "/round_number /thought_depth", ""},
        {"{\"round_number\":\"some text\",\"thought_depth\":[1]}", true, "", ""},
        /* A field of another event is not in the table. */
        {"{\"csdma\":{\"reasoning\":\"x\",\"plausibility_score\":0.5}}", false, "/csdma/reasoning",
         "/csdma/reasoning"},
        /* L2 wins over L1, and only when stamped. */
        {"{\"thought_type\":\"a\",\"thought_content\":\"b\",\"attempt_index\":\"c d\"}", true,
         "/thought_content", "/thought_content"},
        {"{\"thought_content\":[1]}", false, "/thought_content", ""},
        {"{\"attempt_index\":\"c\"}", false, "/attempt_index", "/attempt_index"},
        {"{\"x\":{\"attempt_index\":\"c\"}}", true, "/x/attempt_index", "/x/attempt_index"},
    };
    kit k;
    kit_init(&k);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        const char *more = cases[i].stamped ? stamp : "";
        CHECK_STR(violations(&k, CX_EVENT_THOUGHT_START, cases[i].data, more, CX_LEVEL_GENERIC),
                  cases[i].generic);
        CHECK_STR(violations(&k, CX_EVENT_THOUGHT_START, cases[i].data, more, CX_LEVEL_DETAILED),
                  cases[i].detailed);
        CHECK_STR(violations(&k, CX_EVENT_THOUGHT_START, cases[i].data, more, CX_LEVEL_FULL), "");
    }
    kit_done(&k);
}

CX_TEST(level_tokens)
{
    static const struct {
        const char *data, *generic;
    } cases[] = {
        {"{\"cognitive_state\":\"WORK\"}", ""},
        {"{\"cognitive_state\":\"WORK HARD\"}", "/components/1/data/cognitive_state"},
        {"{\"cognitive_state\":\"caf\\u00e9\"}", "/components/1/data/cognitive_state"},
        {"{\"cognitive_state\":\"A\\u0000\"}", "/components/1/data/cognitive_state"},
        {"{\"cognitive_state\":"
         "\"0123456789012345678901234567890123456789012345678901234567890123\"}",
         ""},
        {"{\"cognitive_state\":"
         "\"01234567890123456789012345678901234567890123456789012345678901234\"}",
         "/components/1/data/cognitive_state"},
    };
    kit k;
    kit_init(&k);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++)
        CHECK_STR(
            violations(&k, CX_EVENT_SNAPSHOT_AND_CONTEXT, cases[i].data, "", CX_LEVEL_GENERIC),
            cases[i].generic);
    CHECK_STR(violations(&k, CX_EVENT_ACTION_RESULT, "{\"audit_entry_hash\":\"abc\"}", "",
                         CX_LEVEL_GENERIC),
              "/components/5/data/audit_entry_hash");
    CHECK_STR(violations(&k, CX_EVENT_ACTION_RESULT,
                         "{\"audit_entry_hash\":"
                         "\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"}",
                         "", CX_LEVEL_GENERIC),
              "");
    kit_done(&k);
}

/* Groups of the table, their fields, and what is in them without being in the table. */
CX_TEST(level_groups)
{
    kit k;
    kit_init(&k);
    CHECK_STR(
        violations(&k, CX_EVENT_DMA_RESULTS,
                   "{\"idma\":{\"k_eff\":2,\"phase\":\"x\",\"new\":3,\"note\":\"t\"},"
                   "\"csdma\":\"all of it\"}",
                   "", CX_LEVEL_GENERIC),
        "/components/2/data/idma/phase /components/2/data/idma/note /components/2/data/csdma");
    CHECK_STR(violations(&k, CX_EVENT_DMA_RESULTS,
                         "{\"idma\":{\"phase\":\"x\"},\"pdma\":{\"has_conflicts\":\"yes, two\"}}",
                         stamp, CX_LEVEL_GENERIC),
              "");
    CHECK_STR(violations(&k, CX_EVENT_CONSCIENCE_RESULT,
                         "{\"epistemic_data\":{\"entropy_level\":0.1,"
                         "\"CIRIS_OBSERVATION_UPDATED_STATUS\":\"text\"}}",
                         "", CX_LEVEL_DETAILED),
              "/components/4/data/epistemic_data/CIRIS_OBSERVATION_UPDATED_STATUS");
    kit_done(&k);
}

/* Rows are found by binary search. */
CX_TEST(level_table_is_sorted)
{
    size_t fields = 0;
    for (unsigned i = 0; i < CX_EVENT_COUNT; i++) {
        const cx_field_scope *scope = cx_field_scope_of((cx_event_type)i);
        for (size_t k = 0; k < scope->count; k++) {
            const cx_field *field = &scope->fields[k];
            const cx_field_scope *group = field->group;
            CHECK(cx_field_find(scope, cx_str_z(field->name)) == field);
            CHECK((group != NULL) ==
                  (field->unstamped == CX_LEVEL_ABSENT && field->stamped == CX_LEVEL_ABSENT));
            for (size_t n = 0; group != NULL && n < group->count; n++)
                CHECK(cx_field_find(group, cx_str_z(group->fields[n].name)) == &group->fields[n]);
            fields += group != NULL ? group->count : 1;
        }
    }
    fields += cx_field_scope_any.count;
    CHECK_INT(fields, 234); /* as many as §1.1 and §1.2 name together */
    CHECK_INT(cx_field_scope_of(CX_EVENT_UNKNOWN)->count, 0);
}

CX_TEST(level_unknown_events_follow_rule_4)
{
    kit k;
    const cx_str *paths;
    size_t count;
    kit_init(&k);
    cx_str text = kit_replace(&k, kit_small(&k, CX_EVENT_UNKNOWN, "", ""), "[{",
                              "[{\"component_type\":\"?\",\"event_type\":\"NEW\",\"timestamp\":"
                              "\"2026-01-01T00:00:00Z\",\"data\":{\"a\":1,\"b\":\"t\"}},{");
    CHECK_REASON(kit_read(&k, text), "");
    CHECK_STATUS(cx_trace_violations(&k.trace, CX_LEVEL_DETAILED, &k.arena, &paths, &count, &k.err),
                 &k.err);
    CHECK_INT(count, 1);
    CHECK_STR(paths[0], "/components/0/data/b");
    kit_done(&k);
}

/* Nested as deep as a trace may be. */
CX_TEST(level_deep_data)
{
    enum { DEPTH = 60 }; /* trace, components, component, data, and these */
    kit k;
    kit_init(&k);
    cx_buf data, path;
    cx_buf_init(&data, cx_alloc_default());
    cx_buf_init(&path, cx_alloc_default());
    cx_buf_add_byte(&data, '{');
    for (int i = 0; i < DEPTH; i++) {
        cx_buf_add_z(&data, "\"x\":{");
        cx_buf_add_z(&path, "/x");
    }
    cx_buf_add_z(&data, "\"y\":\"text\"");
    cx_buf_add_z(&path, "/y");
    for (int i = 0; i <= DEPTH; i++)
        cx_buf_add_byte(&data, '}');
    CHECK_STR(violations(&k, CX_EVENT_THOUGHT_START, cx_buf_z(&data), "", CX_LEVEL_GENERIC),
              cx_buf_z(&path));
    cx_buf_done(&data);
    cx_buf_done(&path);
    kit_done(&k);
}
