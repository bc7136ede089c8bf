/*
 * state_review.c - S3: the review, and proof that it changed nothing (run.md §10).
 *
 * Without a runner for the role REVIEWER the review is a list of checks made here, and says so.  An
 * agent that fails as a reviewer is BLOCKED; the checks never replace it.
 */
#include "candidate/api.h"
#include "governor/state_internal.h"
#include "governor/state_review.h"

/* --- the built-in checks ---------------------------------------------------------------------- */

static bool output_is_there(cx_governor_task *t, const cx_contract_output *output)
{
    if (cx_str_is(output->type, "patch"))
        return t->candidate.changed.count != 0 || t->contract.audit_only;
    if (cx_str_is(output->type, "commit"))
        return t->candidate.commit.size != 0;
    if (cx_str_is(output->type, "file")) {
        cx_facts facts;
        cx_file folder;
        bool there = false;
        if (!cx_failed(cx_folder_open(t->workspace.worktree.path, &folder, NULL))) {
            cx_str path = cx_arena_copy_str(&t->arena, output->name);
            there = path.data != NULL &&
                    !cx_failed(cx_folder_facts(folder, path.data, &facts, NULL)) &&
                    facts.kind == CX_FILE_REGULAR;
            cx_folder_close(folder);
        }
        return there;
    }
    return t->agent.has_reply || t->contract.audit_only; /* report, json: the reply that passed */
}

static cx_status review_built_in(cx_governor_task *t, cx_err *err)
{
    static const char *const evidence[] = {"contract.json", "patch.diff", "diff_name_only.txt"};
    cx_str *found =
        CX_ARENA_ARRAY(&t->arena, cx_str, t->contract.output_count + CX_COUNT_OF(evidence) + 1);
    size_t count = 0;
    if (found == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < t->contract.output_count; i++)
        if (!output_is_there(t, &t->contract.outputs[i]))
            found[count++] = cx_arena_printf(&t->arena, "missing_output %.*s",
                                             (int)t->contract.outputs[i].name.size,
                                             t->contract.outputs[i].name.data);
    for (size_t i = 0; i < CX_COUNT_OF(evidence); i++) {
        cx_str path = cx_task_file(t, evidence[i]);
        if (path.data == NULL)
            return cx_fail_nomem(err);
        if (!cx_run_file_exists(t->governor->run, path))
            found[count++] = cx_arena_printf(&t->arena, "missing_evidence %s", path.data);
    }
    for (size_t i = 0; i < count; i++)
        if (found[i].data == NULL)
            return cx_fail_nomem(err);
    t->reports.review.verdict = count == 0 ? CX_RUN_REVIEW_PASS : CX_RUN_REVIEW_FAIL;
    t->reports.review.scope_passed = count == 0;
    t->reports.review.violations = found;
    t->reports.review.violation_count = count;
    t->reports.review.agent_id = CX_STR("cortex");
    t->reports.review.summary =
        count == 0 ? CX_STR("built-in checks: no finding")
                   : CX_STR("built-in checks: required outputs or evidence missing");
    return CX_SUCCESS;
}

/* --- isolation -------------------------------------------------------------------------------- */

static cx_status compare_with(cx_governor_task *t, const cx_snapshot *before,
                              cx_run_findings *findings, cx_err *err)
{
    cx_snapshot *after;
    cx_snapshot_options options = {.before = before, .agent = cx_task_agent_git(t)};
    CX_TRY(cx_snapshot_read(t->workspace.worktree.git, &options, &after, err));
    cx_run_isolation_compare(before, after, !t->governor->unconfined, findings);
    cx_snapshot_close(after);
    return CX_SUCCESS;
}

static cx_status write_isolation(cx_governor_task *t, const cx_run_findings *findings, cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_str *items = CX_ARENA_ARRAY(&t->arena, cx_str, findings->refusing + 1);
    size_t count = 0;
    bool passed = findings->refusing == 0;
    CX_TRY(cx_run_findings_check(findings, err));
    if (items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < findings->list.count; i++)
        if (!findings->list.items[i].informs)
            items[count++] = findings->list.items[i].where;
    cx_json_put_bool(&payload, "passed", passed);
    cx_json_put_quoted_strs(&payload, "changed", items, count);
    CX_TRY(cx_task_event(t, passed ? CX_RUN_INFO : CX_RUN_ERROR, CX_RUN_EVENT_REVIEWER_GATE_RESULT,
                         &payload, err));
    if (passed)
        return CX_SUCCESS;
    cx_texts texts = {items, count};
    t->verdicts.review = (cx_run_gate){true, false, items, count};
    return cx_task_refuse(t, CX_GATE_REVIEW, "reviewer_side_effect", true, &texts, err);
}

/* Both trees: that of the task, and the reviewer's own checkout when an agent has one. */
static cx_status review_isolated(cx_governor_task *t, cx_err *err)
{
    cx_snapshot *before = NULL;
    cx_run_findings findings;
    cx_snapshot_options options = {.before = t->workspace.snapshot, .agent = cx_task_agent_git(t)};
    CX_TRY(cx_snapshot_read(t->workspace.worktree.git, &options, &before, err));
    cx_run_findings_init(&findings, &t->arena);
    cx_status status = cx_governor_has_reviewer(t->governor)
                           ? cx_task_agent_review(t, &findings, err)
                           : review_built_in(t, err);
    if (!cx_failed(status))
        status = compare_with(t, before, &findings, err);
    if (!cx_failed(status))
        status = write_isolation(t, &findings, err);
    cx_run_findings_done(&findings);
    cx_snapshot_close(before);
    return status;
}

/* --- the verdict ------------------------------------------------------------------------------ */

static cx_status write_verdict(cx_governor_task *t, cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(&t->arena);
    bool passed = t->reports.review.verdict == CX_RUN_REVIEW_PASS;
    cx_json_put_z(&payload, "verdict", cx_run_review_verdict_name(t->reports.review.verdict));
    if (t->reports.review.violation_count != 0)
        cx_json_put_quoted_strs(&payload, "violations", t->reports.review.violations,
                                t->reports.review.violation_count);
    t->verdicts.review = (cx_run_gate){true, passed, t->reports.review.violations,
                                       passed ? 0 : t->reports.review.violation_count};
    return cx_task_event(t, passed ? CX_RUN_INFO : CX_RUN_ERROR, CX_RUN_EVENT_REVIEW_RESULT,
                         &payload, err);
}

static cx_status store_failed_review(cx_governor_task *t, cx_err *err)
{
    cx_json failed;
    cx_str path = cx_arena_printf(&t->arena, "artifacts/review_failed_attempt_%u.json", t->attempt);
    if (path.data != NULL)
        path = cx_task_file(t, path.data);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_report_review_failed(t->attempt, &t->reports.review, &t->arena, &failed, err));
    CX_TRY(cx_run_file_write_json(t->governor->run, path, &failed, err));
    return cx_task_add_artifact(t, path, err);
}

/* audit_only: nothing was worked on yet, but worktree, locks and sandbox are needed all the same,
 * and whatever differs from the baseline is a fault. */
static cx_status enter_audit(cx_governor_task *t, cx_err *err)
{
    if (t->workspace.has_worktree)
        return CX_SUCCESS;
    CX_TRY(cx_task_enter(t, err));
    if (!t->refused)
        CX_TRY(cx_task_run_diff_gate(t, NULL, err));
    t->candidate.commit = t->governor->baseline_oid;
    t->candidate.commit_text = t->governor->baseline;
    return CX_SUCCESS;
}

cx_status cx_state_review(cx_governor_task *t, cx_err *err)
{
    cx_texts found;
    CX_TRY(enter_audit(t, err));
    if (t->refused)
        return CX_SUCCESS;
    t->gate = CX_GATE_REVIEW;
    memset(&t->reports.review, 0, sizeof t->reports.review);
    t->reports.review.reached = true;
    t->reports.review.reviewed_at = cx_governor_now(t->governor, &t->arena);
    CX_TRY(review_isolated(t, err));
    if (t->refused)
        return CX_SUCCESS;
    CX_TRY(write_verdict(t, err));
    found = (cx_texts){t->reports.review.violations, t->reports.review.violation_count};
    if (t->reports.review.verdict != CX_RUN_REVIEW_PASS)
        t->refusal.hint = t->reports.review.summary;
    if (t->reports.review.verdict == CX_RUN_REVIEW_BLOCKED)
        return cx_task_refuse(t, CX_GATE_REVIEW, "reviewer_blocked", false, &found, err);
    CX_TRY(cx_task_run_diff_gate(t, "after_review", err));
    if (t->refused)
        return CX_SUCCESS;
    t->gate = CX_GATE_REVIEW;
    if (t->reports.review.verdict == CX_RUN_REVIEW_PASS) {
        cx_task_go(t, CX_WHY_REVIEW_PASSED);
        return CX_SUCCESS;
    }
    CX_TRY(store_failed_review(t, err));
    if (t->contract.audit_only)
        return cx_task_refuse(t, CX_GATE_REVIEW, "review_failed", false, &found, err);
    CX_TRY(cx_task_gate_failed(t, CX_GATE_REVIEW, "review_failed", false, &found, err));
    cx_task_go(t, CX_WHY_REVIEW_BLOCKING);
    return CX_SUCCESS;
}
