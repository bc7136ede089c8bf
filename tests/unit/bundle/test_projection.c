/*
 * What events say by themselves: golden runs, the rules about attempts, isolation, tools and
 * approvals, tasks of a run that was split, lines that cannot be read.
 */
#include "base/alloc.h"
#include "base/io.h"
#include "bundle/projection.h"
#include "tests/test.h"

typedef struct fixture {
    cx_arena arena;
    cx_buf text;
    cx_run_projection projection;
    cx_err err;
} fixture;

static void fixture_begin(fixture *s)
{
    memset(s, 0, sizeof *s);
    cx_arena_init(&s->arena, cx_alloc_default(), 0);
    cx_buf_init(&s->text, cx_alloc_default());
    cx_run_projection_init(&s->projection);
}

static void fixture_end(fixture *s)
{
    cx_run_projection_done(&s->projection, &s->arena);
    cx_buf_done(&s->text);
    cx_arena_done(&s->arena);
}

static void add(fixture *s, const char *type, const char *task, int attempt, const char *payload)
{
    cx_buf_printf(
        &s->text,
        "{\"ts\":\"2026-01-01T00:00:00.000000Z\",\"level\":\"INFO\",\"event_type\":\"%s\","
        "\"run_id\":\"run_x\",\"task_id\":",
        type);
    if (task == NULL)
        cx_buf_add_z(&s->text, "null,\"attempt\":null");
    else
        cx_buf_printf(&s->text, "\"%s\",\"attempt\":%d", task, attempt);
    cx_buf_printf(&s->text, ",\"trace_id\":\"0123456789abcdef0123456789abcdef\",\"payload\":%s}\n",
                  payload);
}

static cx_status tell(fixture *s)
{
    return cx_run_projection_read(cx_buf_str(&s->text), &s->arena, &s->projection, &s->err);
}

static bool passes(const fixture *s, unsigned gate)
{
    return cx_run_projection_passed(&s->projection, gate);
}

CX_TEST(projection_of_golden_runs)
{
    static const struct {
        const char *scenario, *state, *gate;
        int exit_code;
        bool passed[CX_RUN_GATE_COUNT]; /* diff, policy, review, tests */
    } cases[] = {
        {"success", "S6", "", 0, {true, true, true, true}},
        {"fix_loop", "S6", "", 0, {true, true, true, true}},
        {"out_of_scope", "FAIL", "diff", 4, {false, true, false, false}},
        {"tests_fail", "FAIL", "tests", 4, {true, true, true, false}},
        {"tool_gate", "FAIL", "tool", 4, {true, true, true, false}},
        {"wide_path", "FAIL", "policy", 4, {false, false, false, false}},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        fixture s;
        char path[128];
        fixture_begin(&s);
        snprintf(path, sizeof path, "vectors/run/golden/%s/bundle/events.jsonl", cases[i].scenario);
        CHECK_STATUS(cx_io_read_file(cx_io_system(), cx_test_path(path), 1 << 20, &s.text, &s.err),
                     &s.err);
        CHECK_STATUS(tell(&s), &s.err);
        CHECK_STR(s.projection.state, cases[i].state);
        CHECK_STR(s.projection.failed_gate, cases[i].gate);
        CHECK_STR(s.projection.status, cases[i].exit_code == 0 ? "SUCCESS" : "FAILURE");
        CHECK_INT(s.projection.exit_code, cases[i].exit_code);
        CHECK_INT(s.projection.tasks.count, 1);
        CHECK_STR(s.projection.baseline_commit, "93b8680ba499415e135df3981f4ad09433e69a54");
        CHECK(!s.projection.torn);
        for (unsigned gate = 0; gate < CX_RUN_GATE_COUNT; gate++)
            CHECK_INT(passes(&s, gate), cases[i].passed[gate]);
        fixture_end(&s);
    }
}

CX_TEST(a_new_contract_takes_back_what_was_said_of_the_last)
{
    fixture s;
    fixture_begin(&s);
    add(&s, "POLICY_GATE_RESULT", "t", 0, "{\"passed\":true}");
    add(&s, "DIFF_GATE_RESULT", "t", 0, "{\"passed\":true}");
    add(&s, "REVIEWER_GATE_RESULT", "t", 0, "{\"passed\":true}");
    add(&s, "REVIEW_RESULT", "t", 0, "{\"verdict\":\"PASS\"}");
    add(&s, "TEST_RESULT", "t", 0, "{\"status\":\"FAIL\"}");
    add(&s, "STATE_TRANSITION", "t", 1,
        "{\"from\":\"S5\",\"to\":\"S2\",\"reason\":\"fix_contract\"}");
    CHECK_STATUS(tell(&s), &s.err);
    CHECK(passes(&s, CX_RUN_GATE_POLICY));
    CHECK(!passes(&s, CX_RUN_GATE_DIFF) && !passes(&s, CX_RUN_GATE_REVIEW));
    CHECK_INT(s.projection.tasks.items[0].attempt, 1);
    CHECK(s.projection.status.data == NULL); /* still going on */
    fixture_end(&s);
}

CX_TEST(a_reviewer_that_left_a_trace_passed_nothing)
{
    fixture s;
    fixture_begin(&s);
    add(&s, "REVIEWER_GATE_RESULT", "t", 0, "{\"passed\":false,\"changed\":[\"x\"]}");
    add(&s, "REVIEW_RESULT", "t", 0, "{\"verdict\":\"PASS\"}");
    CHECK_STATUS(tell(&s), &s.err);
    CHECK(!passes(&s, CX_RUN_GATE_REVIEW));
    fixture_end(&s);
    fixture_begin(&s);
    add(&s, "REVIEW_RESULT", "t", 0, "{\"verdict\":\"PASS\"}");
    add(&s, "REVIEWER_GATE_RESULT", "t", 0, "{\"passed\":false}");
    CHECK_STATUS(tell(&s), &s.err);
    CHECK(!passes(&s, CX_RUN_GATE_REVIEW));
    fixture_end(&s);
}

CX_TEST(a_refused_command_of_the_tests_is_a_failed_test)
{
    fixture s;
    fixture_begin(&s);
    add(&s, "STATE_TRANSITION", "t", 0, "{\"from\":\"S3\",\"to\":\"S4\",\"reason\":\"x\"}");
    add(&s, "TOOL_GATE_RESULT", "t", 0, "{\"passed\":false,\"rule\":\"C14\"}");
    CHECK_STATUS(tell(&s), &s.err);
    CHECK(s.projection.tasks.items[0].gates[CX_RUN_GATE_TESTS].reached);
    CHECK(!passes(&s, CX_RUN_GATE_TESTS));
    fixture_end(&s);
}

CX_TEST(an_approval_lifts_the_policy_gate)
{
    fixture s;
    fixture_begin(&s);
    add(&s, "POLICY_GATE_RESULT", "t", 0, "{\"passed\":false,\"violations\":[\"wide_path src/\"]}");
    add(&s, "HUMAN_APPROVAL_COMPLETED", "t", 0, "{\"scopes\":[\"wide_path:src/\"]}");
    CHECK_STATUS(tell(&s), &s.err);
    CHECK(passes(&s, CX_RUN_GATE_POLICY));
    CHECK_INT(s.projection.rulings.items[0].violation_count, 1);
    CHECK_STR(s.projection.rulings.items[0].violations[0], "wide_path src/");
    fixture_end(&s);
}

CX_TEST(tasks_of_a_split_run_share_the_policy_verdict)
{
    fixture s;
    fixture_begin(&s);
    add(&s, "POLICY_GATE_RESULT", "parent", 0, "{\"passed\":true}");
    add(&s, "DIFF_GATE_RESULT", "a", 0, "{\"passed\":true}");
    add(&s, "DIFF_GATE_RESULT", "b", 0,
        "{\"passed\":false,\"violations\":[{\"rule\":\"D07\",\"path\":\"x\"}]}");
    CHECK_STATUS(tell(&s), &s.err);
    const cx_run_projection_task *a = cx_run_projection_find(&s.projection, CX_STR("a"));
    REQUIRE(a != NULL);
    CHECK(cx_run_projection_task_passed(&s.projection, a, CX_RUN_GATE_POLICY));
    CHECK(cx_run_projection_task_passed(&s.projection, a, CX_RUN_GATE_DIFF));
    CHECK(passes(&s, CX_RUN_GATE_POLICY));
    CHECK(!passes(&s, CX_RUN_GATE_DIFF)); /* not in b */
    CHECK_STR(s.projection.rulings.items[2].violations[0], "D07 x");
    CHECK(cx_run_projection_find(&s.projection, CX_STR("c")) == NULL);
    fixture_end(&s);
}

CX_TEST(no_events_pass_nothing)
{
    fixture s;
    fixture_begin(&s);
    CHECK_STATUS(tell(&s), &s.err);
    for (unsigned gate = 0; gate < CX_RUN_GATE_COUNT; gate++)
        CHECK(!passes(&s, gate));
    CHECK_STR(s.projection.state, "S0");
    fixture_end(&s);
}

CX_TEST(lines_that_cannot_be_read_are_named)
{
    fixture s;
    fixture_begin(&s);
    add(&s, "RUN_CREATED", NULL, 0, "{}");
    add(&s, "A_TYPE_OF_TOMORROW", NULL, 0, "{\"passed\":false}");
    cx_buf_add_z(&s.text, "{\"torn\"");
    CHECK_STATUS(tell(&s), &s.err);
    CHECK(s.projection.torn);
    CHECK_INT(s.projection.moments.count, 2);
    CHECK_INT(s.projection.rulings.count, 0);
    fixture_end(&s);
    fixture_begin(&s);
    add(&s, "RUN_CREATED", NULL, 0, "{}");
    cx_buf_add_z(&s.text, "[]\n");
    CHECK(cx_failed(tell(&s)));
    CHECK_INT(s.err.line, 2);
    fixture_end(&s);
}
