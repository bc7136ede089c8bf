/*
 * test_governor_states.c - the states of a task (run.md §14): which transitions there are, that
 * nothing else is one, how a task ends, and that the verifier of bundles knows the same table.
 *
 * Events are held in memory (cx_governor_defer_events): these tests need no repository.
 */
#include <string.h>

#include "governor/state_internal.h"
#include "audit/verify_internal.h"
#include "tests/test.h"

/* The table of run.md §14, written down a second time. */
static const struct {
    cx_governor_state from, to;
    const char *why;
} table[] = {
    {CX_S0_CONTRACT, CX_S1_PLAN, "contract_accepted"},
    {CX_S1_PLAN, CX_S2_WORK, "plan_single"},
    {CX_S1_PLAN, CX_S2_WORK, "plan_split"},
    {CX_S1_PLAN, CX_S3_REVIEW, "audit_only"},
    {CX_S2_WORK, CX_S3_REVIEW, "diff_gate_passed"},
    {CX_S3_REVIEW, CX_S4_TESTS, "review_passed"},
    {CX_S3_REVIEW, CX_S5_FIX, "review_blocking"},
    {CX_S4_TESTS, CX_S6_DONE, "tests_passed"},
    {CX_S4_TESTS, CX_S5_FIX, "tests_failed"},
    {CX_S5_FIX, CX_S2_WORK, "fix_contract"},
};
static const char *const reasons[] = {"contract_accepted", "plan_single",      "plan_split",
                                      "audit_only",        "diff_gate_passed", "review_passed",
                                      "review_blocking",   "tests_passed",     "tests_failed",
                                      "fix_contract",      "merged",           ""};
static const char *const names[CX_S_COUNT] = {"S0", "S1", "S2", "S3", "S4", "S5", "S6", "FAIL"};

/* The state that `why` leads to, or CX_S_COUNT. */
static cx_governor_state expected_from(cx_governor_state from, const char *why)
{
    for (size_t i = 0; why != NULL && i < CX_COUNT_OF(table); i++)
        if (table[i].from == from && strcmp(table[i].why, why) == 0)
            return table[i].to;
    return CX_S_COUNT;
}

/* --- a task without a repository -------------------------------------------------------------- */

typedef struct lone_task {
    cx_arena arena;
    cx_run_options options;
    atomic_bool cancel;
    cx_governor governor;
    cx_governor_task task;
    cx_err err;
} lone_task;

static void begin_task(lone_task *it)
{
    memset(it, 0, sizeof *it);
    cx_arena_init(&it->arena, cx_alloc_default(), 0);
    cx_arena_init(&it->task.arena, cx_alloc_default(), 0);
    it->options.cancel = &it->cancel;
    it->governor = (cx_governor){.options = &it->options,
                                 .alloc = cx_alloc_default(),
                                 .arena = &it->arena,
                                 .repo_root = "/r/repo",
                                 .store = {.root = "/r/repo/.cache/rt"},
                                 .tasks = &it->task,
                                 .task_count = 1};
    it->task.governor = &it->governor;
    it->task.id = CX_STR("task_1");
    cx_governor_defer_events(&it->governor);
}

static void end_task(lone_task *it)
{
    cx_arena_done(&it->task.arena);
    cx_arena_done(&it->arena);
}

static size_t event_count(const lone_task *it)
{
    size_t count = 0;
    for (const cx_deferred_event *held = it->governor.deferred; held != NULL; held = held->next)
        count++;
    return count;
}

/* The event number `at`; one that is of no type when there are fewer. */
static const cx_run_event *event_at(const lone_task *it, size_t at)
{
    static const cx_run_event none = {.type = CX_RUN_EVENT_UNKNOWN};
    const cx_deferred_event *held = it->governor.deferred;
    while (held != NULL && at-- > 0)
        held = held->next;
    return held == NULL ? &none : &held->event;
}

static void check_event(const lone_task *it, size_t at, cx_run_event_type type, cx_run_level level,
                        const char *payload)
{
    const cx_run_event *event = event_at(it, at);
    cx_err err;
    cx_buf text;
    CHECK_INT(event->type, type);
    CHECK_INT(event->level, level);
    CHECK_STR(event->task_id, "task_1");
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(cx_json_write(&text, &event->payload, CX_JSON_PY_COMPACT, &err), &err);
    CHECK_STR(cx_buf_str(&text), payload);
    cx_buf_done(&text);
}

/* --- transitions ------------------------------------------------------------------------------ */

static void check_advance(cx_governor_state from, const char *why)
{
    char payload[200];
    lone_task it;
    begin_task(&it);
    cx_governor_state to = expected_from(from, why);
    it.task.state = from;
    it.task.why = why;
    CHECK_STATUS(cx_task_advance(&it.task, &it.err), &it.err);
    CHECK(it.task.why == NULL); /* I4: a reason is used once */
    CHECK_INT(event_count(&it), 1);
    if (to == CX_S_COUNT) {
        CHECK_INT(it.task.state, from);
        CHECK(it.task.refused && it.task.refusal.gate == CX_GATE_STATE);
        CHECK_STR(it.task.refusal.reason, "illegal_transition");
        check_event(&it, 0, CX_RUN_EVENT_GATE_FAILED, CX_RUN_ERROR,
                    "{\"gate\":\"state\",\"reason\":\"illegal_transition\"}");
    } else {
        CHECK_INT(it.task.state, to);
        CHECK(!it.task.refused);
        (void)snprintf(payload, sizeof payload, "{\"from\":\"%s\",\"reason\":\"%s\",\"to\":\"%s\"}",
                       names[from], why, names[to]);
        check_event(&it, 0, CX_RUN_EVENT_STATE_TRANSITION, CX_RUN_INFO, payload);
    }
    end_task(&it);
}

/* I4 */
CX_TEST(governor_takes_the_transitions_of_the_table_and_no_other)
{
    for (int from = 0; from < CX_S_COUNT; from++) {
        check_advance((cx_governor_state)from, NULL); /* a stage that gave no reason */
        for (size_t i = 0; i < CX_COUNT_OF(reasons); i++)
            check_advance((cx_governor_state)from, reasons[i]);
    }
}

/* I5 */
CX_TEST(governor_done_and_failed_are_final)
{
    for (size_t i = 0; i < CX_COUNT_OF(table); i++)
        CHECK(table[i].from != CX_S6_DONE && table[i].from != CX_S_FAIL &&
              table[i].to != CX_S_FAIL);
}

/* --- how a task ends -------------------------------------------------------------------------- */

CX_TEST(governor_a_cancelled_task_runs_no_stage_and_fails)
{
    lone_task it;
    begin_task(&it);
    atomic_store(&it.cancel, true);
    it.task.attempt = 2;
    CHECK_STATUS(cx_task_run(&it.task, &it.err), &it.err);
    CHECK(it.task.refused && it.task.refusal.aborted && it.task.state == CX_S_FAIL);
    CHECK_INT(event_count(&it), 2);
    check_event(&it, 0, CX_RUN_EVENT_GATE_FAILED, CX_RUN_ERROR,
                "{\"gate\":\"interrupted\",\"reason\":\"signal\"}");
    check_event(&it, 1, CX_RUN_EVENT_STATE_TRANSITION, CX_RUN_ERROR,
                "{\"from\":\"S0\",\"reason\":\"interrupted\",\"to\":\"FAIL\"}");
    CHECK_INT(event_at(&it, 1)->attempt, 2);
    end_task(&it);
}

/* What one part was refused for, the task that it is a part of is refused for. */
CX_TEST(governor_a_refused_part_fails_the_whole)
{
    lone_task it;
    begin_task(&it);
    cx_governor_task tasks[2];
    tasks[0] = tasks[1] = it.task;
    it.governor.tasks = tasks;
    it.governor.task_count = 2;
    cx_arena_init(&tasks[1].arena, cx_alloc_default(), 0);
    tasks[1].id = CX_STR("part_1");
    tasks[1].part = true;
    tasks[1].state = CX_S3_REVIEW;
    const cx_str found[] = {CX_STR("D07 README.md")};
    const cx_texts violations = {found, 1};
    CHECK_STATUS(cx_task_refuse(&tasks[1], CX_GATE_DIFF, "outside_allowed_paths", true, &violations,
                                &it.err),
                 &it.err);
    tasks[0].refused = true; /* its work ended with the part */
    tasks[0].refusal.gate = CX_GATE_DIFF;
    tasks[0].state = CX_S2_WORK;
    CHECK_STATUS(cx_task_run(&tasks[0], &it.err), &it.err);
    CHECK(tasks[0].state == CX_S_FAIL && tasks[1].state == CX_S_FAIL);
    CHECK_INT(event_count(&it), 4); /* the part's refusal in two, then both go to FAIL */
    CHECK_STR(event_at(&it, 2)->task_id, "part_1"); /* parts end before the whole */
    CHECK_STR(event_at(&it, 3)->task_id, "task_1");
    cx_arena_done(&tasks[1].arena);
    it.task.arena = tasks[0].arena;
    end_task(&it);
}

/* --- the log (I6, I7) ------------------------------------------------------------------------- */

CX_TEST(governor_writes_no_event_after_one_that_failed)
{
    lone_task it;
    begin_task(&it);
    it.governor.deferring = false;
    it.governor.log_failed = true; /* I7; there is no log at all, so writing would crash */
    CHECK_INT(cx_task_event(&it.task, CX_RUN_INFO, CX_RUN_EVENT_TEST_RESULT, NULL, &it.err).code,
              CX_E_IO);
    CHECK_INT(event_count(&it), 0);
    end_task(&it);
}

CX_TEST(governor_knows_who_is_inside_only_while_parts_run)
{
    lone_task it;
    begin_task(&it);
    cx_lock_init(&it.governor.lock);
    cx_governor_enter(&it.governor); /* alone: nothing is locked */
    CHECK(!it.governor.inside);
    cx_governor_leave(&it.governor);
    it.governor.shared = true; /* I6 */
    cx_governor_enter(&it.governor);
    CHECK(it.governor.inside);
    CHECK_STATUS(cx_task_event(&it.task, CX_RUN_INFO, CX_RUN_EVENT_TEST_RESULT, NULL, &it.err),
                 &it.err);
    cx_governor_leave(&it.governor);
    CHECK(!it.governor.inside);
    CHECK_INT(event_count(&it), 1);
    it.governor.shared = false;
    cx_lock_done(&it.governor.lock);
    end_task(&it);
}

CX_TEST(governor_refused_task_releases_before_it_fails)
{
    lone_task it;
    begin_task(&it);
    it.task.state = CX_S2_WORK;
    CHECK_STATUS(cx_task_refuse(&it.task, CX_GATE_RUNNER, "timeout", false, NULL, &it.err),
                 &it.err);
    CHECK_STATUS(cx_task_run(&it.task, &it.err), &it.err);
    CHECK_INT(it.task.state, CX_S_FAIL); /* I5 */
    size_t count = event_count(&it);
    CHECK_STATUS(cx_task_run(&it.task, &it.err), &it.err); /* FAIL is final: nothing more happens */
    CHECK_INT(it.task.state, CX_S_FAIL);
    CHECK_INT(event_count(&it), count);
    check_event(&it, count - 1, CX_RUN_EVENT_STATE_TRANSITION, CX_RUN_ERROR,
                "{\"from\":\"S2\",\"reason\":\"runner\",\"to\":\"FAIL\"}");
    end_task(&it);
}

/* --- refusals --------------------------------------------------------------------------------- */

CX_TEST(governor_a_broken_contract_is_told_before_the_gate)
{
    char name[] = "D07 a";
    lone_task it;
    begin_task(&it);
    const cx_str found[] = {cx_str_z(name)};
    const cx_texts violations = {found, 1};
    CHECK_STATUS(
        cx_task_refuse(&it.task, CX_GATE_DIFF, "outside_allowed_paths", true, &violations, &it.err),
        &it.err);
    name[4] = 'b'; /* the texts were copied */
    CHECK_INT(event_count(&it), 2);
    check_event(
        &it, 0, CX_RUN_EVENT_POLICY_VIOLATION, CX_RUN_ERROR,
        "{\"gate\":\"diff\",\"reason\":\"outside_allowed_paths\",\"violations\":[\"D07 a\"]}");
    check_event(&it, 1, CX_RUN_EVENT_GATE_FAILED, CX_RUN_ERROR,
                "{\"gate\":\"diff\",\"reason\":\"outside_allowed_paths\"}");
    REQUIRE(it.task.refusal.violations.count == 1);
    CHECK_STR(it.task.refusal.violations.items[0], "D07 a");
    end_task(&it);
}

/* I1 */
CX_TEST(governor_what_cannot_be_evaluated_is_refused)
{
    lone_task it;
    begin_task(&it);
    cx_err why = {.code = CX_E_IO, .message = "cannot open /r/repo/a: denied"};
    it.task.gate = CX_GATE_TESTS;
    CHECK_STATUS(cx_task_refuse_error(&it.task, &why, &it.err), &it.err);
    CHECK(it.task.refused && !it.task.refusal.aborted);
    check_event(&it, 0, CX_RUN_EVENT_GATE_FAILED, CX_RUN_ERROR,
                "{\"gate\":\"tests\",\"reason\":\"could_not_evaluate\","
                "\"violations\":[\"cannot open REPOSITORY/a: denied\"]}");
    CHECK_STR(it.task.refusal.hint, "cannot open REPOSITORY/a: denied");
    atomic_store(&it.cancel, true); /* then the signal is the reason, not what it broke */
    CHECK_STATUS(cx_task_refuse_error(&it.task, &why, &it.err), &it.err);
    CHECK(it.task.refusal.aborted);
    check_event(&it, 1, CX_RUN_EVENT_GATE_FAILED, CX_RUN_ERROR,
                "{\"gate\":\"interrupted\",\"reason\":\"signal\"}");
    end_task(&it);
}

/* --- the verifier of bundles ------------------------------------------------------------------ */

/* How often the verifier finds fault with the states of a projection of these transitions. */
static unsigned faults_of(cx_run_transition *transitions, size_t count)
{
    cx_arena arena;
    cx_err err;
    cx_run_verdict verdict = {0};
    cx_run_moment moments[2] = {{.index = 1,
                                 .type = CX_STR("STATE_TRANSITION"),
                                 .kind = CX_RUN_EVENT_STATE_TRANSITION,
                                 .task_id = CX_STR("t")},
                                {.index = 2,
                                 .type = CX_STR("STATE_TRANSITION"),
                                 .kind = CX_RUN_EVENT_STATE_TRANSITION,
                                 .task_id = CX_STR("t")}};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_run_findings_init(&verdict.findings, &arena);
    cx_run_verification v = {.arena = &arena, .out = &verdict, .err = &err};
    cx_run_projection_init(&v.projection);
    v.projection.moments.items = moments;
    v.projection.moments.count = 2;
    v.projection.transitions.items = transitions;
    v.projection.transitions.count = count;
    CHECK_STATUS(cx_run_verify_states(&v), &err);
    cx_run_findings_done(&verdict.findings);
    cx_arena_done(&arena);
    return v.said[CX_RUN_STATE_ORDER];
}

CX_TEST(governor_and_verifier_know_the_same_transitions)
{
    for (int from = 0; from < CX_S_COUNT; from++)
        for (int to = 0; to < CX_S_COUNT; to++)
            for (size_t i = 0; i < CX_COUNT_OF(reasons); i++) {
                /* The first brings the task to `from`; what is said of it is left out. */
                cx_run_transition projection[] = {
                    {0, CX_STR("S0"), cx_str_z(names[from]), CX_STR("test")},
                    {1, cx_str_z(names[from]), cx_str_z(names[to]), cx_str_z(reasons[i])}};
                bool accepted = faults_of(projection, 2) == faults_of(projection, 1);
                bool expected = to == CX_S_FAIL
                                    ? from != CX_S_FAIL
                                    : (int)expected_from((cx_governor_state)from, reasons[i]) == to;
                if (accepted != expected)
                    cx_test_fail(__FILE__, __LINE__, "the verifier %s %s to %s (%s)",
                                 accepted ? "accepts" : "refuses", names[from], names[to],
                                 reasons[i]);
            }
}

CX_TEST(governor_verifier_wants_a_task_to_go_on_where_it_was)
{
    cx_run_transition projection[] = {{0, CX_STR("S0"), CX_STR("S1"), CX_STR("contract_accepted")},
                                      {1, CX_STR("S2"), CX_STR("S3"), CX_STR("diff_gate_passed")}};
    CHECK_INT(faults_of(projection, 2), faults_of(projection, 1) + 1);
    projection[1].from = CX_STR("S1");
    projection[1].to = CX_STR("S2");
    projection[1].reason = CX_STR("plan_single");
    CHECK_INT(faults_of(projection, 2), faults_of(projection, 1));
}
