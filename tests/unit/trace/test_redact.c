/*
 * Views of a lower level (trace.md §2): what is gone, what is told, what never is.
 */
#include "tests/support/trace_kit.h"

/* The view as text; the trace is read again from it, as a kept view is. */
static cx_str lower(kit *k, cx_trace_level from, cx_trace_level to)
{
    static const cx_canon_style compact = {.spaces = false};
    const cx_trace_redaction how = {
        .from = from, .to = to, .form = CX_FORM_B, .content = {{7}}, .has_canonical = true};
    const cx_str *removed;
    size_t count;
    cx_json view;
    CHECK_STATUS(cx_trace_redact(&k->trace, &how, &k->arena, &view, &removed, &count, &k->err),
                 &k->err);
    cx_buf_clear(&k->scratch);
    CHECK_STATUS(cx_trace_canon_value(&view, &compact, &k->scratch, &k->err), &k->err);
    return cx_arena_copy_str(&k->arena, cx_buf_str(&k->scratch));
}

/* I4 of trace.h */
CX_TEST(redact_names_the_original_level)
{
    kit k;
    kit_init(&k);
    CHECK_REASON(kit_read(&k, kit_small(&k, CX_EVENT_THOUGHT_START,
                                        "{\"thought_type\":\"x\",\"round_number\":1.50,"
                                        "\"task_description\":\"t\"}",
                                        ",\"note\":\"kept\",\"derived\":1,\"pqc_key_id\":\"p\","
                                        "\"trace_level\":\"full_traces\"")),
                 "");
    cx_str view = lower(&k, CX_LEVEL_FULL, CX_LEVEL_GENERIC);
    cx_str start = CX_STR("{\"components\":[{\"component_type\":\"observation\",\"data\":"
                          "{\"round_number\":1.50},\"event_type\"");
    CHECK(cx_str_starts(view, start));
    cx_str end = CX_STR(
        "\"derived\":{\"canonical_form\":\"B\",\"canonical_sha256\":"
        "\"0000000000000000000000000000000000000000000000000000000000000000\",\"content_sha256\":"
        "\"0700000000000000000000000000000000000000000000000000000000000000\",\"from_level\":"
        "\"full_traces\",\"removed\":[\"/components/0/data/task_description\","
        "\"/components/0/data/thought_type\"],\"signature_key_id\":\"k\"},\"note\":\"kept\","
        "\"trace_id\":\"t\",\"trace_level\":\"generic\"}");
    CHECK(cx_str_ends(view, end));
    kit_done(&k);
}

CX_TEST(redact_without_a_verdict)
{
    const cx_trace_redaction how = {
        .from = CX_LEVEL_FULL, .to = CX_LEVEL_FULL, .form = CX_FORM_NONE};
    const cx_str *removed;
    size_t count;
    cx_json view;
    kit k;
    kit_init(&k);
    CHECK_REASON(kit_read(&k, kit_small(&k, CX_EVENT_THOUGHT_START, "{\"x\":\"y\"}", "")), "");
    CHECK_STATUS(cx_trace_redact(&k.trace, &how, &k.arena, &view, &removed, &count, &k.err),
                 &k.err);
    CHECK_INT(count, 0);
    const cx_json *derived = CX_JSON_GET(&view, "derived");
    CHECK_INT(CX_JSON_GET(derived, "canonical_form")->type, CX_JSON_NULL);
    CHECK_INT(CX_JSON_GET(derived, "canonical_sha256")->type, CX_JSON_NULL);
    CHECK(CX_JSON_GET(&view, "signature") == NULL);
    CHECK(CX_JSON_GET(&view, "signature_key_id") == NULL);
    kit_done(&k);
}

/* §2 */
CX_TEST(redact_never_raises_a_level)
{
    static const cx_trace_level pairs[][2] = {{CX_LEVEL_GENERIC, CX_LEVEL_DETAILED},
                                              {CX_LEVEL_DETAILED, CX_LEVEL_FULL},
                                              {CX_LEVEL_FULL, CX_LEVEL_ABSENT}};
    kit k;
    kit_init(&k);
    CHECK_REASON(kit_read(&k, kit_small(&k, CX_EVENT_UNKNOWN, "", "")), "");
    for (size_t i = 0; i < CX_COUNT_OF(pairs); i++) {
        const cx_trace_redaction how = {.from = pairs[i][0], .to = pairs[i][1]};
        const cx_str *removed;
        size_t count;
        cx_json view;
        cx_status status =
            cx_trace_redact(&k.trace, &how, &k.arena, &view, &removed, &count, &k.err);
        CHECK_INT(status.code, CX_E_USAGE);
        CHECK(k.err.tag != NULL && strcmp(k.err.tag, "Raising") == 0);
    }
    kit_done(&k);
}

/* §2: full -> generic equals full -> detailed -> generic, here to the byte; and a view has no
 * violations at its level. */
CX_TEST(redact_in_two_steps)
{
    static const char *const files[] = {"traces/lower-1-generic.json",
                                        "traces/lower-2-generic.json",
                                        "traces/form-E-as2.7.0-full_traces0.json",
                                        "traces/form-G-edge2.json", "traces/form-B-edge0.json"};
    kit k;
    kit_init(&k);
    for (size_t i = 0; i < CX_COUNT_OF(files); i++) {
        const cx_str *paths;
        size_t count;
        CHECK_REASON(kit_read(&k, kit_file(&k, files[i])), "");
        cx_str detailed = lower(&k, CX_LEVEL_FULL, CX_LEVEL_DETAILED);
        cx_str generic = lower(&k, CX_LEVEL_FULL, CX_LEVEL_GENERIC);
        CHECK(!cx_str_eq(generic, detailed));
        CHECK_REASON(kit_read(&k, detailed), "missing_field");
        CHECK_STR(k.problem.path, "/signature");
        CHECK_STATUS(
            cx_trace_violations(&k.trace, CX_LEVEL_DETAILED, &k.arena, &paths, &count, &k.err),
            &k.err);
        CHECK_INT(count, 0);
        cx_str again = lower(&k, CX_LEVEL_DETAILED, CX_LEVEL_GENERIC);
        if (!cx_str_eq(generic, again))
            cx_test_fail(__FILE__, __LINE__, "%s: two steps give something else", files[i]);
        CHECK_REASON(kit_read(&k, again), "missing_field");
        CHECK_STATUS(
            cx_trace_violations(&k.trace, CX_LEVEL_GENERIC, &k.arena, &paths, &count, &k.err),
            &k.err);
        CHECK_INT(count, 0);
    }
    kit_done(&k);
}
