/*
 * state_leave.c - releasing what a task holds: its agent, its locks, its worktree (I2).
 */
#include "os/api.h"
#include "governor/state_internal.h"

static cx_status release_locks(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_str *paths;
    size_t count;
    if (!t->workspace.has_locks)
        return CX_SUCCESS;
    cx_run_lock_renewer_expect_fewer(&g->keeper, t->workspace.lock_count);
    t->workspace.lock_count = 0;
    CX_TRY(
        cx_run_lock_release(&g->store, cx_run_id(g->run), t->id, &t->arena, &paths, &count, err));
    t->workspace.has_locks = false;
    const cx_run_shared_locks *shared = g->options->shared_locks;
    if (shared != NULL)
        CX_TRY(shared->release(shared->ctx, cx_run_id(g->run), t->id, err));
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_quoted_strs(&payload, "paths", t->contract.allowed_paths.items,
                            t->contract.allowed_paths.count);
    return cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_LOCK_RELEASED, &payload, err);
}

static cx_status remove_worktree(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    if (!t->workspace.has_worktree)
        return CX_SUCCESS;
    CX_TRY(cx_run_worktree_remove(g->git, &t->workspace.options, &t->workspace.worktree,
                                  t->candidate.merged.size != 0, err));
    t->workspace.has_worktree = false;
    if (t->workspace.scratch != NULL)
        CX_TRY(cx_path_remove_tree(t->workspace.scratch, err));
    if (t->workspace.private_folder != NULL)
        CX_TRY(cx_path_remove_tree(t->workspace.private_folder, err));
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_quoted(&payload, "path", t->workspace.ref);
    return cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_WORKTREE_REMOVED, &payload, err);
}

/* What cannot be released now is left for `run cleanup`, and said; the run still ends and is
 * sealed. */
static cx_status leave_by_step(cx_governor_task *t, cx_governor_step *step, cx_gate_id gate,
                               cx_err *err)
{
    cx_err why;
    cx_status status = step(t, &why);
    if (!cx_failed(status))
        return CX_SUCCESS;
    if (t->governor->log_failed) {
        if (err != NULL)
            *err = why;
        return status;
    }
    cx_str text = cx_governor_message(t->governor, &why, &t->arena);
    cx_texts violations = {&text, 1};
    if (text.data == NULL)
        return cx_fail_nomem(err);
    if (t->refused)
        return cx_task_gate_failed(t, gate, "not_given_back", false, &violations, err);
    return cx_task_refuse(t, gate, "not_given_back", false, &violations, err);
}

cx_status cx_task_leave(cx_governor_task *t, cx_err *err)
{
    cx_texts violations = t->refusal.violations;
    cx_task_stop_runner(t);
    cx_task_close_egress(t);
    CX_TRY(leave_by_step(t, release_locks, CX_GATE_LOCK, err));
    CX_TRY(leave_by_step(t, remove_worktree, CX_GATE_WORKTREE, err));
    if (violations.count != 0)
        t->refusal.violations = violations;
    return CX_SUCCESS;
}

void cx_task_release_silently(cx_governor_task *t)
{
    cx_governor *g = t->governor;
    cx_str *paths;
    size_t count;
    cx_run_lock_renewer_expect_fewer(&g->keeper, t->workspace.lock_count);
    t->workspace.lock_count = 0;
    cx_task_close_egress(t);
    if (t->workspace.has_locks)
        (void)cx_failed(cx_run_lock_release(&g->store, cx_run_id(g->run), t->id, &t->arena, &paths,
                                            &count, NULL));
    if (t->workspace.has_worktree)
        (void)cx_failed(cx_run_worktree_remove(g->git, &t->workspace.options,
                                               &t->workspace.worktree, false, NULL));
    if (t->workspace.scratch != NULL)
        (void)cx_failed(cx_path_remove_tree(t->workspace.scratch, NULL));
    if (t->workspace.private_folder != NULL)
        (void)cx_failed(cx_path_remove_tree(t->workspace.private_folder, NULL));
    t->workspace.has_locks = t->workspace.has_worktree = false;
}
