/*
 * verify_states.c - whether the events tell a run that can have happened (run.md §14, §17).
 */
#include "audit/verify_internal.h"

#define EVENTS CX_STR("events.jsonl")

/* §14: anything else is no transition.  any→FAIL is allowed besides, with any reason. */
static const struct {
    const char *from, *to, *reason;
} allowed[] = {
    {"S0", "S1", "contract_accepted"}, {"S1", "S2", "plan_single"},
    {"S1", "S2", "plan_split"},        {"S1", "S3", "audit_only"},
    {"S2", "S3", "diff_gate_passed"},  {"S3", "S4", "review_passed"},
    {"S3", "S5", "review_blocking"},   {"S4", "S6", "tests_passed"},
    {"S4", "S5", "tests_failed"},      {"S5", "S2", "fix_contract"},
};

static bool is_allowed_transition(cx_str from, cx_str to, cx_str reason)
{
    if (cx_str_is(to, "FAIL"))
        return !cx_str_is(from, "FAIL");
    for (size_t i = 0; i < CX_COUNT_OF(allowed); i++)
        if (cx_str_is(from, allowed[i].from) && cx_str_is(to, allowed[i].to) &&
            cx_str_is(reason, allowed[i].reason))
            return true;
    return false;
}

/* The task's state before the transition number `at`; for one that appears only now, where it may
 * begin: a task that another was split into begins after the plan. */
static bool starts_from_last_state(const cx_run_projection *projection, size_t at)
{
    const cx_run_transition *now = &projection->transitions.items[at];
    cx_str task = projection->moments.items[now->moment].task_id;
    bool split = false, any = false;
    for (size_t i = at; i-- > 0;) {
        const cx_run_transition *before = &projection->transitions.items[i];
        any = true;
        split |= cx_str_is(before->reason, "plan_split");
        if (cx_str_eq(projection->moments.items[before->moment].task_id, task))
            return cx_str_eq(before->to, now->from);
    }
    if (cx_str_is(now->from, "S0"))
        return true;
    return any && split && (cx_str_is(now->from, "S1") || cx_str_is(now->from, "S2"));
}

static void check_transitions(cx_run_verification *v)
{
    const cx_run_projection *projection = &v->projection;
    for (size_t i = 0; i < projection->transitions.count; i++) {
        const cx_run_transition *t = &projection->transitions.items[i];
        if (is_allowed_transition(t->from, t->to, t->reason) &&
            starts_from_last_state(projection, i))
            continue;
        cx_run_verify_add_finding(v, CX_RUN_STATE_ORDER, EVENTS,
                                  "line %llu: no run goes from %.*s to %.*s (%.*s) here",
                                  (unsigned long long)projection->moments.items[t->moment].index,
                                  (int)(t->from.size > 40 ? 40 : t->from.size), t->from.data,
                                  (int)(t->to.size > 40 ? 40 : t->to.size), t->to.data,
                                  (int)(t->reason.size > 60 ? 60 : t->reason.size), t->reason.data);
    }
}

/*
 * First RUN_CREATED, last RUN_FINISHED, neither twice.  Only a run that died after its
 * RUN_FINISHED and was ended by another process goes on: LOG_RECOVERED, then its end as a failure.
 */
static void check_ends(cx_run_verification *v)
{
    const cx_run_projection *projection = &v->projection;
    size_t count = projection->moments.count;
    bool finished = false, recovered = false;
    if (count == 0 || projection->moments.items[0].kind != CX_RUN_EVENT_RUN_CREATED)
        cx_run_verify_add_finding(v, CX_RUN_STATE_ORDER, EVENTS,
                                  "the first event is not RUN_CREATED");
    if (count == 0 || projection->moments.items[count - 1].kind != CX_RUN_EVENT_RUN_FINISHED)
        cx_run_verify_add_finding(v, CX_RUN_STATE_ORDER, EVENTS,
                                  "the last event is not RUN_FINISHED");
    for (size_t i = 0; i < count; i++) {
        const cx_run_moment *moment = &projection->moments.items[i];
        if (i != 0 && moment->kind == CX_RUN_EVENT_RUN_CREATED)
            cx_run_verify_add_finding(v, CX_RUN_STATE_ORDER, EVENTS, "line %llu: RUN_CREATED again",
                                      (unsigned long long)moment->index);
        if (finished && !recovered) {
            recovered = moment->kind == CX_RUN_EVENT_LOG_RECOVERED && i + 1 < count && !v->success;
            if (!recovered)
                cx_run_verify_add_finding(
                    v, CX_RUN_STATE_ORDER, EVENTS,
                    "line %llu: %.*s after RUN_FINISHED; nothing may follow it",
                    (unsigned long long)moment->index,
                    (int)(moment->type.size > 40 ? 40 : moment->type.size), moment->type.data);
        }
        finished |= moment->kind == CX_RUN_EVENT_RUN_FINISHED;
    }
}

/* A run that succeeded is done or stopped before the merge; one that failed says where. */
static void check_last_state(cx_run_verification *v)
{
    const cx_run_projection *projection = &v->projection;
    if (projection->status.data == NULL)
        return;
    if (cx_str_is(projection->status, "SUCCESS")) {
        for (size_t i = 0; i < projection->tasks.count; i++) {
            const cx_run_projection_task *task = &projection->tasks.items[i];
            bool whole = task->task_id.data == NULL;
            bool split = cx_str_is(task->state, "S2") && projection->tasks.count > 1;
            /* Who made the contract (S0 of --intent) is no task: it has no states. */
            whole |= cx_str_is(task->state, "S0") && !cx_str_eq(task->task_id, v->task_id) &&
                     cx_str_starts(task->task_id, CX_STR("intent_"));
            if (!whole && !split && !cx_str_is(task->state, "S6") && !cx_str_is(task->state, "S4"))
                cx_run_verify_add_finding(
                    v, CX_RUN_STATE_ORDER, EVENTS, "the run succeeded, but task %.*s ended in %.*s",
                    (int)(task->task_id.size > 128 ? 128 : task->task_id.size), task->task_id.data,
                    (int)task->state.size, task->state.data);
        }
    } else if (!cx_str_is(projection->state, "FAIL")) {
        cx_run_verify_add_finding(v, CX_RUN_STATE_ORDER, EVENTS,
                                  "the run failed without going to FAIL");
    }
}

cx_status cx_run_verify_states(cx_run_verification *v)
{
    check_ends(v);
    check_transitions(v);
    check_last_state(v);
    return CX_SUCCESS;
}
