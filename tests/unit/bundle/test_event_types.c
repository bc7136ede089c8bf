/*
 * test_event_types.c - the table of event types (run.md §17).
 */
#include "bundle/api.h"
#include "tests/test.h"

CX_TEST(event_types_are_found_by_their_text)
{
    for (int i = 1; i < CX_RUN_EVENT_TYPE_COUNT; i++) {
        const char *text = cx_run_event_type_name((cx_run_event_type)i);
        CHECK(text[0] != '\0');
        CHECK_INT(cx_run_event_type_find(cx_str_z(text)), i); /* so no text is there twice */
    }
}

CX_TEST(event_types_unknown_to_the_format_have_no_constant)
{
    static const char *const texts[] = {
        "",           "SOMETHING_ELSE", "POLICY_VIOLATION", "GATE_FAILED", "run_created",
        "RUN_CREATE", "RUN_CREATED "};
    for (size_t i = 0; i < CX_COUNT_OF(texts); i++)
        CHECK_INT(cx_run_event_type_find(cx_str_z(texts[i])), CX_RUN_EVENT_UNKNOWN);
    CHECK_INT(cx_run_event_type_find(CX_STR("policy_violation")), CX_RUN_EVENT_POLICY_VIOLATION);
    CHECK_INT(cx_run_event_type_find(CX_STR("gate_failed")), CX_RUN_EVENT_GATE_FAILED);
}

CX_TEST(event_types_have_levels)
{
    for (int i = 1; i < CX_RUN_EVENT_TYPE_COUNT; i++) {
        cx_run_event_type type = (cx_run_event_type)i;
        CHECK(cx_run_event_type_has_level(type, CX_RUN_INFO) ||
              cx_run_event_type_has_level(type, CX_RUN_WARN) ||
              cx_run_event_type_has_level(type, CX_RUN_ERROR));
    }
    CHECK(!cx_run_event_type_has_level(CX_RUN_EVENT_GATE_FAILED, CX_RUN_INFO));
    CHECK(!cx_run_event_type_has_level(CX_RUN_EVENT_RUN_FINISHED, CX_RUN_WARN));
    CHECK(cx_run_event_type_has_level(CX_RUN_EVENT_LOG_RECOVERED, CX_RUN_WARN));
    CHECK(!cx_run_event_type_has_level(CX_RUN_EVENT_UNKNOWN, CX_RUN_ERROR));
}
