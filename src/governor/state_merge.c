/*
 * state_merge.c - S6: bringing the candidate to the main branch (run.md §15).
 *
 * When main has moved, what will be merged is another tree than the one that was judged: it is
 * judged again, against main, and tested again, before main is moved by compare and swap.
 *
 * A run whose locks other machines see announces the move before it is made, in the transaction
 * that finds its lease.  One that was ended by another machine is refused there; was it ended
 * between that and the record of the merge, the branch is put back.
 */
#include <stdio.h>

#include "governor/state_internal.h"
#include "candidate/api.h"

#define TRIES 3 /* when others merge at the same moment */

cx_status cx_task_refuse_merge(cx_governor_task *t, cx_str reason, cx_str detail, cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_str why = cx_arena_copy_str(&t->arena, reason);
    cx_texts violations = {&detail, detail.size == 0 ? 0u : 1u};
    if (why.data == NULL)
        return cx_fail_nomem(err);
    t->gate = CX_GATE_MERGE;
    t->refusal.hint = detail;
    cx_json_put_quoted(&payload, "reason", reason);
    cx_json_put_quoted(&payload, "detail", detail);
    CX_TRY(cx_task_event(t, CX_RUN_ERROR, CX_RUN_EVENT_MERGE_REFUSED, &payload, err));
    return cx_task_refuse(t, CX_GATE_MERGE, why.data, false, &violations, err);
}

/* §15: the merge's tree against main stays inside allowed_paths. */
static cx_status outside_paths(cx_governor_task *t, const cx_merge_plan *plan, cx_texts *changed,
                               cx_texts *outside, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_buf patch, names;
    size_t out = 0;
    cx_buf_init(&patch, g->alloc);
    cx_buf_init(&names, g->alloc);
    cx_status status = cx_run_patch_between(g->git, &plan->old, &plan->commit, &patch, &names, err);
    if (!cx_failed(status))
        status = cx_names_of(cx_buf_str(&names), &t->arena, changed, err);
    cx_buf_done(&patch);
    cx_buf_done(&names);
    CX_TRY(status);
    cx_str *items = CX_ARENA_ARRAY(&t->arena, cx_str, changed->count + 1);
    if (items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < changed->count; i++) {
        cx_str path = changed->items[i];
        bool inside = cx_run_path_covered(t->contract.allowed_paths.items,
                                          t->contract.allowed_paths.count, path);
        bool closed = cx_run_path_protected(path, &g->ground);
        if (inside && !closed)
            continue;
        items[out] = cx_arena_printf(&t->arena, "%s %.*s", closed ? "D06" : "D07", (int)path.size,
                                     path.data);
        if (items[out++].data == NULL)
            return cx_fail_nomem(err);
    }
    *outside = (cx_texts){items, out};
    return CX_SUCCESS;
}

cx_status cx_task_check_merge(cx_governor_task *t, const cx_merge_plan *plan, cx_err *err)
{
    cx_texts changed = {NULL, 0}, outside = {NULL, 0};
    t->gate = CX_GATE_MERGE;
    CX_TRY(outside_paths(t, plan, &changed, &outside, err));
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_bool(&payload, "passed", outside.count == 0);
    cx_json_put_z(&payload, "phase", "merge");
    cx_json_put_quoted_strs(&payload, "changed_files", changed.items, changed.count);
    cx_json_put_quoted_strs(&payload, "violations", outside.items, outside.count);
    CX_TRY(cx_task_event(t, outside.count == 0 ? CX_RUN_INFO : CX_RUN_ERROR,
                         CX_RUN_EVENT_DIFF_GATE_RESULT, &payload, err));
    if (outside.count != 0)
        return cx_task_refuse_merge(t, CX_STR("outside_allowed_paths"), outside.items[0], err);
    bool passed = false;
    CX_TRY(cx_task_test_merge(t, &plan->commit, &passed, err));
    if (!passed && !t->refused)
        return cx_task_refuse_merge(
            t, CX_STR("tests_failed"),
            CX_STR("the tests do not pass on the merge with the moved branch"), err);
    return CX_SUCCESS;
}

static cx_status write_merge_applied(cx_governor_task *t, const cx_merge_plan *plan, cx_err *err)
{
    char commit[CX_OID_TEXT_SIZE];
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_oid_text(&plan->commit, commit);
    t->candidate.merged = plan->commit;
    t->candidate.merged_kind =
        plan->kind == CX_MERGE_REAL ? CX_STR("merge") : CX_STR("fast_forward");
    cx_json_put_quoted(&payload, "branch", t->governor->policy.config.main_branch);
    cx_json_put_quoted(&payload, "kind", t->candidate.merged_kind);
    cx_json_put_z(&payload, "commit", commit);
    if (plan->detail.size != 0)
        cx_json_put_quoted(&payload, "detail", plan->detail);
    return cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_MERGE_APPLIED, &payload, err);
}

static cx_status announce_merge(cx_governor_task *t, const cx_merge_options *options,
                                const cx_merge_plan *plan, cx_err *err)
{
    const cx_run_shared_locks *shared = t->governor->options->shared_locks;
    char commit[CX_OID_TEXT_SIZE];
    if (shared == NULL)
        return CX_SUCCESS;
    cx_oid_text(&plan->commit, commit);
    return shared->merge(shared->ctx, options->run_id, options->main_ref, cx_str_z(commit), err);
}

/* `err` says why; what could not be put back is added to it. */
static cx_status take_merge_back(cx_governor_task *t, const cx_merge_options *options,
                                 const cx_merge_plan *plan, cx_status status, cx_err *err)
{
    cx_err why = {0};
    cx_merge_plan back = *plan;
    char commit[CX_OID_TEXT_SIZE], said[CX_ERR_MESSAGE_SIZE];
    back.kind = CX_MERGE_FAST_FORWARD;
    back.old = plan->commit;
    back.commit = plan->old;
    back.detail = CX_STR("");
    memset(&t->candidate.merged, 0, sizeof t->candidate.merged);
    t->candidate.merged_kind = CX_STR("");
    bool failed = cx_failed(cx_run_merge_apply(options, &back, &t->arena, &why));
    if (!failed && back.kind != CX_MERGE_REFUSED && back.detail.size == 0)
        return status;
    cx_oid_text(&plan->commit, commit);
    (void)snprintf(said, sizeof said, "%s", err->message);
    return cx_fail_at(err, CX_E_CONFLICT, CX_RUN_ENDED_TAG, CX_NO_OFFSET,
                      "%.150s; %s had moved to %.12s before, and was not put back: %.*s", said,
                      options->main_ref.data, commit, failed ? 100 : (int)back.detail.size,
                      failed ? why.message : back.detail.data);
}

static cx_status record_merge(cx_governor_task *t, const cx_merge_options *options,
                              const cx_merge_plan *plan, cx_err *err)
{
    cx_err why = {0};
    cx_status status = write_merge_applied(t, plan, &why);
    if (cx_failed(status) && why.tag != NULL && strcmp(why.tag, CX_RUN_ENDED_TAG) == 0)
        status = take_merge_back(t, options, plan, status, &why);
    if (cx_failed(status) && err != NULL)
        *err = why;
    return status;
}

static cx_status try_merge(cx_governor_task *t, const cx_merge_options *options, bool *out_again,
                           cx_err *err)
{
    cx_merge_plan plan;
    *out_again = false;
    CX_TRY(cx_run_merge_plan(options, &t->arena, &plan, err));
    if (plan.kind == CX_MERGE_REAL)
        CX_TRY(cx_task_check_merge(t, &plan, err));
    if (t->refused)
        return CX_SUCCESS;
    t->gate = CX_GATE_MERGE;
    if (plan.kind != CX_MERGE_REFUSED) {
        CX_TRY(announce_merge(t, options, &plan, err));
        CX_TRY(cx_run_merge_apply(options, &plan, &t->arena, err));
    }
    if (plan.kind != CX_MERGE_REFUSED)
        return record_merge(t, options, &plan, err);
    *out_again = cx_str_is(plan.reason, "moved");
    return *out_again ? CX_SUCCESS : cx_task_refuse_merge(t, plan.reason, plan.detail, err);
}

static bool gates_passed(const cx_governor_task *t)
{
    return t->verdicts.diff.passed && t->verdicts.policy.passed && t->verdicts.review.passed &&
           t->verdicts.tests.passed;
}

cx_status cx_state_done(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    bool again = true;
    t->gate = CX_GATE_MERGE;
    if (!gates_passed(t))
        return cx_task_refuse_merge(t, CX_STR("gates_not_passed"), CX_STR("a gate did not pass"),
                                    err);
    if (g->options->no_merge || cx_governor_is_diagnostic(g) || t->contract.audit_only ||
        t->candidate.changed.count == 0)
        return CX_SUCCESS;
    cx_str ref =
        cx_arena_printf(&t->arena, "refs/heads/%.*s", (int)g->policy.config.main_branch.size,
                        g->policy.config.main_branch.data);
    if (ref.data == NULL)
        return cx_fail_nomem(err);
    cx_merge_options options = {
        .git = g->git,
        .runtime_root = g->store.root,
        .main_ref = ref,
        .baseline = g->baseline_oid,
        .candidate = t->candidate.commit,
        .run_id = cx_run_id(g->run),
        .task_id = t->id,
        .contract_sha256 = cx_digest_text(&g->contract_sha256, &t->arena),
        .time_s = (int64_t)(g->io->wall_ns(g->io) / UINT64_C(1000000000)),
    };
    for (int tries = 0; again && tries < TRIES; tries++)
        CX_TRY(try_merge(t, &options, &again, err));
    return again ? cx_task_refuse_merge(t, CX_STR("moved"),
                                        CX_STR("the branch moved again and again"), err)
                 : CX_SUCCESS;
}
