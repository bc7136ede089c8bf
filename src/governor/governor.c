/*
 * governor.c - the states of a task, which transitions there are, and the loop that makes them
 * (run.md §14).
 *
 * A state function never says where to go, only why. The table says where that leads; what is not
 * in it aborts the run as `illegal_transition`.
 */
#include "governor/state_internal.h"

#include "base/api.h"

static const char *const state_names[CX_S_COUNT] = {"S0", "S1", "S2", "S3",
                                                    "S4", "S5", "S6", "FAIL"};

static const struct transition {
    cx_governor_state from, to;
    const char *why;
} transitions[] = {
    {CX_S0_CONTRACT, CX_S1_PLAN, CX_WHY_ACCEPTED},
    {CX_S1_PLAN, CX_S2_WORK, CX_WHY_SINGLE},
    {CX_S1_PLAN, CX_S2_WORK, CX_WHY_SPLIT},
    {CX_S1_PLAN, CX_S3_REVIEW, CX_WHY_AUDIT},
    {CX_S2_WORK, CX_S3_REVIEW, CX_WHY_DIFF_PASSED},
    {CX_S3_REVIEW, CX_S4_TESTS, CX_WHY_REVIEW_PASSED},
    {CX_S3_REVIEW, CX_S5_FIX, CX_WHY_REVIEW_BLOCKING},
    {CX_S4_TESTS, CX_S6_DONE, CX_WHY_TESTS_PASSED},
    {CX_S4_TESTS, CX_S5_FIX, CX_WHY_TESTS_FAILED},
    {CX_S5_FIX, CX_S2_WORK, CX_WHY_FIX},
};

static cx_governor_step *const state_steps[CX_S_COUNT] = {
    [CX_S0_CONTRACT] = cx_state_contract, [CX_S1_PLAN] = cx_state_plan,
    [CX_S2_WORK] = cx_state_work,         [CX_S3_REVIEW] = cx_state_review,
    [CX_S4_TESTS] = cx_state_tests,       [CX_S5_FIX] = cx_state_fix,
    [CX_S6_DONE] = cx_state_done,
};

static cx_status write_transition(cx_governor_task *t, cx_governor_state to, const char *why,
                                  cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(&t->arena);
    CX_ASSERT(t->state != CX_S_FAIL);             /* I5 */
    CX_ASSERT(to != CX_S_FAIL || t->refused);     /* I5 */
    CX_ASSERT(to < CX_S_COUNT && to != t->state); /* I4 */
    cx_json_put_z(&payload, "from", state_names[t->state]);
    cx_json_put_z(&payload, "to", state_names[to]);
    cx_json_put_z(&payload, "reason", why);
    CX_TRY(cx_task_event(t, to == CX_S_FAIL ? CX_RUN_ERROR : CX_RUN_INFO,
                         CX_RUN_EVENT_STATE_TRANSITION, &payload, err));
    t->state = to;
    return CX_SUCCESS;
}

cx_status cx_task_advance(cx_governor_task *t, cx_err *err)
{
    const char *why = t->why;
    CX_ASSERT(!t->refused);
    t->why = NULL; /* I4 */
    for (size_t i = 0; why != NULL && i < CX_COUNT_OF(transitions); i++)
        if (transitions[i].from == t->state && strcmp(transitions[i].why, why) == 0)
            return write_transition(t, transitions[i].to, why, err);
    return cx_task_refuse(t, CX_GATE_STATE, "illegal_transition", false, NULL, err);
}

/* I1: what could not be evaluated is refused; only a run that cannot write events any more
 * fails. */
static cx_status run_state(cx_governor_task *t, cx_err *err)
{
    cx_err why;
    CX_ASSERT(!t->refused && t->why == NULL);
    if (cx_task_cancelled(t)) {
        t->refusal.aborted = true;
        return cx_task_refuse(t, CX_GATE_INTERRUPTED, "signal", false, NULL, err);
    }
    /* §11: a run whose lease is gone may not go on writing. */
    if (t->governor->locks_renewed && !cx_run_lock_renewer_ok(&t->governor->keeper))
        return cx_task_refuse(t, CX_GATE_LOCK, "lease_lost", false, NULL, err);
    CX_ASSERT(state_steps[t->state] != NULL); /* I5: a failed task runs no state */
    cx_status status = state_steps[t->state](t, &why);
    if (cx_failed(status) && t->governor->log_failed) {
        if (err != NULL)
            *err = why;
        return status;
    }
    if (cx_failed(status) && !t->refused)
        return cx_task_refuse_error(t, &why, err);
    return CX_SUCCESS;
}

/* §14: the transition to FAIL is the last event before RUN_FINISHED, so what the task holds is
 * released before. */
static cx_status end_task(cx_governor_task *t, cx_err *err)
{
    CX_TRY(cx_task_leave(t, err));
    return t->refused && t->state != CX_S_FAIL
               ? write_transition(t, CX_S_FAIL, cx_gate_name(t->refusal.gate), err)
               : CX_SUCCESS;
}

/* The parts of a task hold what they have until it has ended. */
static cx_status end_parts(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    for (size_t i = 1; i < g->task_count; i++) {
        cx_governor_task *part = &g->tasks[i];
        part->candidate.merged = t->candidate.merged;
        CX_TRY(end_task(part, err));
        if (part->refused && !t->refused)
            CX_TRY(cx_task_refuse(t, part->refusal.gate, "part_refused", false,
                                  &part->refusal.violations, err));
    }
    return CX_SUCCESS;
}

cx_status cx_task_run(cx_governor_task *t, cx_err *err)
{
    bool done = false;
    while (!done && !t->refused) {
        bool last = t->state == CX_S6_DONE;
        CX_TRY(run_state(t, err));
        if (t->part && t->why != NULL && strcmp(t->why, CX_WHY_TESTS_PASSED) == 0)
            return CX_SUCCESS;
        if (!t->refused && !last)
            CX_TRY(cx_task_advance(t, err));
        done = last;
    }
    if (!t->part)
        CX_TRY(end_parts(t, err));
    return end_task(t, err);
}

void cx_governor_enter(cx_governor *g)
{
    if (!g->shared)
        return;
    cx_lock_enter(&g->lock);
    CX_ASSERT(!g->inside); /* I6 */
    g->inside = true;
}

void cx_governor_leave(cx_governor *g)
{
    if (!g->shared)
        return;
    CX_ASSERT(g->inside); /* I6: a thread that leaves has entered */
    g->inside = false;
    cx_lock_leave(&g->lock);
}

void cx_governor_wait(cx_governor *g)
{
    CX_ASSERT(g->shared && g->inside); /* I6 */
    g->inside = false;
    cx_lock_wait(&g->lock);
    CX_ASSERT(!g->inside);
    g->inside = true;
}

void cx_governor_wake(cx_governor *g)
{
    CX_ASSERT(!g->shared || g->inside);
    if (g->shared)
        cx_lock_wake(&g->lock);
}

cx_status cx_run_execute(const cx_run_options *options, cx_arena *arena, cx_run_outcome *out,
                         cx_err *err)
{
    CX_ASSERT(options != NULL && arena != NULL && out != NULL);
    CX_TRY(cx_sandbox_supported(err));
    cx_arena own;
    cx_governor g = {.options = options,
                     .alloc = options->alloc == NULL ? cx_alloc_default() : options->alloc,
                     .io = options->io == NULL ? cx_io_system() : options->io};
    cx_arena_init(&own, g.alloc, 0);
    cx_lock_init(&g.lock);
    g.arena = &own;
    memset(out, 0, sizeof *out);
    cx_status status = cx_governor_open(&g, err);
    if (!cx_failed(status))
        status = cx_governor_begin(&g, err);
    if (!cx_failed(status) && g.run != NULL)
        status = cx_task_run(&g.tasks[0], err);
    if (!cx_failed(status))
        status = cx_governor_end(&g, out, arena, err);
    cx_governor_close(&g);
    cx_lock_done(&g.lock);
    cx_arena_done(&own);
    return status;
}
