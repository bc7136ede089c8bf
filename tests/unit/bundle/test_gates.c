/*
 * test_gates.c - the table of gates (run.md §13), and the verdicts that events have by it.
 */
#include "bundle/api.h"
#include "tests/test.h"

CX_TEST(gates_have_distinct_names_and_a_question)
{
    for (int i = 1; i < CX_GATE_COUNT; i++) {
        const cx_gate_row *row = cx_gate_row_of((cx_gate_id)i);
        CHECK(row->name[0] != '\0' && row->where[0] != '\0' && row->question[0] != '\0');
        for (int k = i + 1; k < CX_GATE_COUNT; k++)
            CHECK(strcmp(row->name, cx_gate_name((cx_gate_id)k)) != 0);
    }
    CHECK_STR(cx_str_z(cx_gate_name(CX_GATE_NONE)), "");
}

CX_TEST(gates_are_found_by_the_event_of_their_verdict)
{
    size_t with_event = 0;
    for (int i = 1; i < CX_GATE_COUNT; i++) {
        const cx_gate_row *row = cx_gate_row_of((cx_gate_id)i);
        if (row->event == CX_RUN_EVENT_UNKNOWN)
            continue;
        with_event++;
        CHECK(row->member[0] != '\0');
        CHECK_INT(cx_gate_of_event(row->event), i); /* so no event is the verdict of two */
    }
    CHECK_INT(with_event, 12);
    CHECK_INT(cx_gate_of_event(CX_RUN_EVENT_UNKNOWN), CX_GATE_NONE);
    CHECK_INT(cx_gate_of_event(CX_RUN_EVENT_RUN_CREATED), CX_GATE_NONE);
    CHECK_INT(cx_gate_of_event(CX_RUN_EVENT_GATE_FAILED), CX_GATE_NONE);
}

CX_TEST(gates_have_reasons)
{
    CHECK(cx_gate_has_reason(CX_GATE_LOCK, "invalid_path"));
    CHECK(cx_gate_has_reason(CX_GATE_LOCK, "lease_lost"));
    CHECK(!cx_gate_has_reason(CX_GATE_LOCK, "lease"));
    CHECK(!cx_gate_has_reason(CX_GATE_LOCK, "lease_lost_"));
    CHECK(!cx_gate_has_reason(CX_GATE_LOCK, ""));
    CHECK(!cx_gate_has_reason(CX_GATE_LOCK, "signal"));
    CHECK(cx_gate_has_reason(CX_GATE_CONTRACT, "K04")); /* "K*" */
    CHECK(!cx_gate_has_reason(CX_GATE_CONTRACT, "C16"));
    CHECK(!cx_gate_has_reason(CX_GATE_WORKTREE, "K04"));
    for (int i = 1; i < CX_GATE_COUNT; i++) /* R1 */
        CHECK(cx_gate_has_reason((cx_gate_id)i, "could_not_evaluate"));
}

static bool verdict_of(cx_run_event_type type, const char *payload, cx_gate_id *out_gate)
{
    cx_arena arena;
    cx_err err;
    cx_json value;
    cx_run_gate_verdict judgement = {.passed = false};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_json_parse_text(cx_str_z(payload), &arena, &value, &err), &err);
    bool is_verdict = cx_run_gate_verdict_read(type, &value, &judgement);
    cx_arena_done(&arena);
    *out_gate = is_verdict ? judgement.id : CX_GATE_NONE;
    return judgement.passed;
}

CX_TEST(gates_pass_only_when_the_event_says_so)
{
    cx_gate_id gate;
    CHECK(verdict_of(CX_RUN_EVENT_DIFF_GATE_RESULT, "{\"passed\":true}", &gate));
    CHECK_INT(gate, CX_GATE_DIFF);
    CHECK(!verdict_of(CX_RUN_EVENT_DIFF_GATE_RESULT, "{\"passed\":false}", &gate));
    CHECK_INT(gate, CX_GATE_DIFF);
    CHECK(!verdict_of(CX_RUN_EVENT_DIFF_GATE_RESULT, "{}", &gate));
    CHECK(!verdict_of(CX_RUN_EVENT_DIFF_GATE_RESULT, "{\"passed\":\"true\"}", &gate));
    CHECK(verdict_of(CX_RUN_EVENT_REVIEW_RESULT, "{\"verdict\":\"PASS\"}", &gate));
    CHECK_INT(gate, CX_GATE_REVIEW);
    CHECK(!verdict_of(CX_RUN_EVENT_REVIEW_RESULT, "{\"verdict\":\"FAIL\"}", &gate));
    CHECK(!verdict_of(CX_RUN_EVENT_REVIEW_RESULT, "{\"passed\":true}", &gate));
    CHECK(verdict_of(CX_RUN_EVENT_TEST_RESULT, "{\"status\":\"PASS\"}", &gate));
    CHECK(!verdict_of(CX_RUN_EVENT_TEST_RESULT, "{\"status\":\"SKIPPED\"}", &gate));
    CHECK(!verdict_of(CX_RUN_EVENT_RUN_FINISHED, "{\"passed\":true}", &gate));
    CHECK_INT(gate, CX_GATE_NONE);
}
