/*
 * state_diff.c - the diff gate in a run: after the agent, after the review, after the tests, and
 * what is kept of it (run.md §9, §15 rollback).
 */
#include "governor/state_internal.h"

/* --- judging ---------------------------------------------------------------------------------- */

/* D12: exact paths of required outputs that may be binary. */
static cx_status binary_paths(cx_governor_task *t, cx_texts *out, cx_err *err)
{
    cx_str *items = CX_ARENA_ARRAY(&t->arena, cx_str, t->contract.output_count + 1);
    size_t count = 0;
    if (items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < t->contract.output_count; i++)
        if (cx_str_is(t->contract.outputs[i].type, "file") &&
            cx_str_starts(t->contract.outputs[i].acceptance, CX_STR("binary-ok")))
            items[count++] = t->contract.outputs[i].name;
    *out = (cx_texts){items, count};
    return CX_SUCCESS;
}

static cx_diff_phase phase_of(const char *phase)
{
    if (phase == NULL)
        return CX_DIFF_AGENT;
    return strcmp(phase, "after_review") == 0 ? CX_DIFF_REVIEW : CX_DIFF_TESTS;
}

static cx_status run_diff_gate(cx_governor_task *t, const char *phase, cx_diff_report *out,
                               cx_err *err)
{
    cx_governor *g = t->governor;
    cx_texts binary = {NULL, 0};
    CX_TRY(binary_paths(t, &binary, err));
    cx_oid expected = t->candidate.has_diff ? t->candidate.diff.tree : (cx_oid){.size = 0};
    cx_diff_options options = {
        .git = t->workspace.worktree.git,
        .snapshot = t->workspace.snapshot,
        .agent = cx_task_agent_git(t),
        .baseline = g->baseline,
        .allowed_paths = t->contract.allowed_paths.items,
        .allowed_count = t->contract.audit_only || (t->plans && t->state == CX_S1_PLAN)
                             ? 0
                             : t->contract.allowed_paths.count,
        .binary_ok = binary.items,
        .binary_ok_count = binary.count,
        .ground = &g->ground,
        .max_paths = g->policy.config.limits.changed_paths,
        .max_bytes = g->policy.config.limits.changed_bytes,
        .phase = phase_of(phase),
        .expected_tree = phase == NULL || expected.size == 0 ? NULL : &expected,
        .shared = !g->unconfined,
        .has_siblings = t->plans || t->part,
    };
    return cx_diff_gate_run(&options, &t->arena, out, err);
}

/* [{"rule","path"}], each pair once, in the order found. */
static cx_status violations_json(cx_governor_task *t, const cx_run_findings *findings,
                                 const cx_texts *texts, cx_json *out, cx_err *err)
{
    cx_json_list array = cx_json_list_begin(&t->arena);
    size_t seen = 0;
    for (size_t i = 0; i < findings->list.count; i++) {
        const cx_run_finding *finding = &findings->list.items[i];
        cx_json one;
        if (finding->informs || seen == texts->count)
            continue;
        cx_str pair = cx_arena_printf(&t->arena, "%s%s%.*s", finding->rule,
                                      finding->where.size == 0 ? "" : " ", (int)finding->where.size,
                                      finding->where.data);
        if (!cx_str_eq(pair, texts->items[seen]))
            continue;
        seen++;
        cx_json_list object = cx_json_list_begin(&t->arena);
        cx_json_put_z(&object, "rule", finding->rule);
        cx_json_put_quoted(&object, "path", finding->where);
        CX_TRY(cx_json_list_end_object(&object, &one, err));
        cx_json_list_add(&array, one);
    }
    return cx_json_list_end_array(&array, out, err);
}

/* The same violation seen in several views is one. */
static void drop_duplicates(cx_texts *texts)
{
    cx_str *items = (cx_str *)(uintptr_t)texts->items;
    size_t stored = 0;
    for (size_t i = 0; i < texts->count; i++) {
        bool known = false;
        for (size_t j = 0; j < stored && !known; j++)
            known = cx_str_eq(items[j], items[i]);
        if (!known)
            items[stored++] = items[i];
    }
    texts->count = stored;
}

static cx_status write_result(cx_governor_task *t, const char *phase, const cx_diff_report *report,
                              const cx_texts *violations, cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json list;
    CX_TRY(violations_json(t, &report->findings, violations, &list, err));
    cx_json_put_bool(&payload, "passed", report->passed);
    if (phase != NULL)
        cx_json_put_z(&payload, "phase", phase);
    /* A refused one names what any view saw, also what is not in the candidate any more. */
    if (report->passed)
        cx_json_put_quoted_strs(&payload, "changed_files", t->candidate.changed.items,
                                t->candidate.changed.count);
    else
        cx_json_put_quoted_strs(&payload, "changed_files", report->paths, report->path_count);
    cx_json_list_put(&payload, CX_STR("violations"), list);
    return cx_task_event(t, report->passed ? CX_RUN_INFO : CX_RUN_ERROR,
                         CX_RUN_EVENT_DIFF_GATE_RESULT, &payload, err);
}

/* --- commits of the agent --------------------------------------------------------------------- */

static cx_status import_agent_objects(cx_governor_task *t, cx_err *err)
{
    if (t->agent.spec_git.object_dir == NULL)
        return CX_SUCCESS;
    return cx_agent_git_import_objects(t->workspace.worktree.git, t->agent.spec_git.object_dir,
                                       &t->agent.objects, err);
}

/* The agent moved a branch of its own copy.  The repository's follows when it was judged: commits
 * of a refused run are evidence, too, and stay reachable. */
static cx_status publish_head(cx_governor_task *t, cx_err *err)
{
    cx_oid now, commit;
    char text[CX_OID_TEXT_SIZE];
    if (cx_task_agent_git(t) == NULL || t->workspace.worktree.branch.size == 0 ||
        t->candidate.diff.head.size == 0)
        return CX_SUCCESS;
    cx_oid_text(&t->candidate.diff.head, text);
    cx_status status = cx_git_resolve(t->workspace.worktree.git, cx_str_z(text), &commit, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS; /* its object is missing everywhere; the gate has refused that */
    CX_TRY(status);
    CX_TRY(cx_git_ref(t->workspace.worktree.git, t->workspace.worktree.branch, &now, err));
    return cx_oid_eq(&now, &commit)
               ? CX_SUCCESS
               : cx_git_ref_set(t->workspace.worktree.git, t->workspace.worktree.branch, &commit,
                                &now, err);
}

/* --- what is stored --------------------------------------------------------------------------- */

static cx_status write_both(cx_governor_task *t, const char *a, const char *b, cx_bytes bytes,
                            cx_err *err)
{
    CX_TRY(cx_run_file_write(t->governor->run, cx_str_z(a), bytes, err));
    return cx_run_file_write(t->governor->run, cx_str_z(b), bytes, err);
}

/* patch.diff, diff_name_only.txt and their mirrors (§17). */
cx_status cx_task_write_patch_bytes(cx_governor_task *t, cx_bytes patch, cx_bytes names,
                                    cx_err *err)
{
    cx_str own = cx_arena_printf(&t->arena, "results/%.*s/patch.diff", (int)t->id.size, t->id.data);
    cx_str flat = cx_arena_printf(&t->arena, "patches/%.*s.diff", (int)t->id.size, t->id.data);
    if (own.data == NULL || flat.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(write_both(t, own.data, flat.data, patch, err));
    if (t->part) {
        cx_str list = cx_task_file(t, "diff_name_only.txt");
        return list.data == NULL ? cx_fail_nomem(err)
                                 : cx_run_file_write(t->governor->run, list, names, err);
    }
    CX_TRY(write_both(t, "patch.diff", "git/patch.diff", patch, err));
    return write_both(t, "diff_name_only.txt", "git/diff_name_only.txt", names, err);
}

cx_status cx_task_write_patch(cx_governor_task *t, cx_err *err)
{
    cx_buf patch, names;
    cx_buf_init(&patch, t->governor->alloc);
    cx_buf_init(&names, t->governor->alloc);
    cx_status status =
        cx_run_candidate_patch(t->workspace.worktree.git, &t->candidate.diff, &patch, &names, err);
    if (!cx_failed(status))
        status = cx_names_of(cx_buf_str(&names), &t->arena, &t->candidate.changed, err);
    if (!cx_failed(status))
        status = cx_task_write_patch_bytes(t, cx_buf_bytes(&patch), cx_buf_bytes(&names), err);
    cx_buf_done(&patch);
    cx_buf_done(&names);
    return status;
}

/* --- back ------------------------------------------------------------------------------------- */

static cx_rollback_strategy strategy_of(cx_contract_rollback rollback)
{
    if (rollback == CX_ROLLBACK_RESET_HARD)
        return CX_ROLL_RESET_HARD;
    return rollback == CX_ROLLBACK_REVERT_COMMIT ? CX_ROLL_REVERT_COMMIT : CX_ROLL_WORKTREE_DROP;
}

static const char *strategy_name(cx_contract_rollback rollback)
{
    if (rollback == CX_ROLLBACK_RESET_HARD)
        return "git_reset_hard";
    return rollback == CX_ROLLBACK_REVERT_COMMIT ? "git_revert_commit" : "worktree_drop";
}

/* §15: what cannot be verified is a fault, and is reported. */
static cx_status roll_back_worktree(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_rollback_report report = {false, {NULL, 0}, {.size = 0}};
    cx_err why;
    cx_rollback_options options = {
        .git = t->workspace.worktree.git,
        .snapshot = t->workspace.snapshot,
        .baseline = g->baseline_oid,
        .branch = t->workspace.worktree.branch,
        .strategy = strategy_of(t->contract.rollback),
        .time_s = (int64_t)(g->io->wall_ns(g->io) / UINT64_C(1000000000)),
    };
    if (cx_failed(cx_run_rollback(&options, &t->arena, &report, &why))) {
        report.verified = false;
        report.reason = cx_governor_message(t->governor, &why, &t->arena);
    }
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_z(&payload, "strategy", strategy_name(t->contract.rollback));
    cx_json_put_quoted(&payload, "baseline_commit", g->baseline);
    cx_json_put_bool(&payload, "verified", report.verified);
    if (!report.verified)
        cx_json_put_quoted(&payload, "reason", report.reason);
    CX_TRY(cx_task_event(t, report.verified ? CX_RUN_INFO : CX_RUN_ERROR,
                         CX_RUN_EVENT_ROLLBACK_APPLIED, &payload, err));
    cx_texts violations = t->refusal.violations;
    if (!report.verified)
        CX_TRY(cx_task_gate_failed(t, CX_GATE_ROLLBACK, "not_verified", false, NULL, err));
    t->refusal.violations = violations;
    return CX_SUCCESS;
}

static const char *reason_of(const cx_run_findings *findings)
{
    static const struct {
        const char *rule, *reason;
    } known[] = {
        {"D00", "candidate_changed"},
        {"D01", "baseline_unresolved"},
        {"D02", "repository_changed"},
        {"D03", "refs_changed"},
        {"D04", "index_flags"},
        {"D05", "nested_repository"},
        {"D06", "protected_path"},
        {"D07", "outside_allowed_paths"},
        {"D08", "special_file"},
        {"D09", "symlink"},
        {"D10", "gitlink"},
        {"D11", "mode"},
        {"D12", "binary"},
        {"D13", "copy_from_outside"},
        {"D14", "path_collision"},
        {"D15", "too_much"},
    };
    for (size_t i = 0; i < findings->list.count; i++) {
        if (findings->list.items[i].informs)
            continue;
        for (size_t k = 0; k < CX_COUNT_OF(known); k++)
            if (strcmp(known[k].rule, findings->list.items[i].rule) == 0)
                return known[k].reason;
    }
    return "violation";
}

/* --- instructions to agents ------------------------------------------------------------------- */

/* §4: files by which an agent could change what the next one is told. */
static bool overrides_agents(cx_str path)
{
    static const char *const names[] = {"AGENTS.override.md", "CLAUDE.local.md",
                                        "GEMINI.override.md"};
    size_t start = path.size;
    while (start != 0 && path.data[start - 1] != '/')
        start--;
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if (cx_str_is((cx_str){path.data + start, path.size - start}, names[i]))
            return true;
    return false;
}

static cx_status check_overrides(cx_governor_task *t, cx_err *err)
{
    for (size_t i = 0; i < t->candidate.diff.change_count; i++) {
        const cx_diff_change *change = &t->candidate.diff.changes[i];
        bool granted = false;
        if (change->old_mode != 0 || !overrides_agents(change->path))
            continue;
        cx_str scope = cx_arena_printf(&t->arena, "override_file:%.*s", (int)change->path.size,
                                       change->path.data);
        cx_texts scopes = {&scope, 1};
        if (scope.data == NULL)
            return cx_fail_nomem(err);
        if (cx_governor_scope_granted(t->governor, scope))
            continue;
        CX_TRY(cx_task_ask_approval(t, &scopes, &granted, err));
        if (granted)
            continue;
        t->verdicts.policy = (cx_run_gate){true, false, NULL, 0};
        CX_TRY(cx_task_gate_event(t, CX_RUN_EVENT_POLICY_GATE_RESULT, false, &scopes, err));
        CX_TRY(cx_task_refuse(t, CX_GATE_POLICY, "override_file", true, &scopes, err));
        t->verdicts.policy.violations = t->refusal.violations.items;
        t->verdicts.policy.violation_count = t->refusal.violations.count;
        return roll_back_worktree(t, err);
    }
    return CX_SUCCESS;
}

/* --- the gate --------------------------------------------------------------------------------- */

static cx_status read_diff_report(cx_governor_task *t, const char *phase, cx_err *err)
{
    cx_diff_report report;
    CX_TRY(run_diff_gate(t, phase, &report, err));
    if (t->candidate.has_diff)
        cx_diff_report_done(&t->candidate.diff);
    t->candidate.diff = report;
    t->candidate.has_diff = true;
    return CX_SUCCESS;
}

/* Evidence of the first look stays what it was: a re-check only compares. */
cx_status cx_task_run_diff_gate(cx_governor_task *t, const char *phase, cx_err *err)
{
    cx_texts violations;
    t->gate = CX_GATE_DIFF;
    CX_TRY(import_agent_objects(t, err));
    CX_TRY(read_diff_report(t, phase, err));
    if (phase == NULL)
        CX_TRY(publish_head(t, err));
    CX_TRY(cx_findings_texts(&t->candidate.diff.findings, &t->arena, &violations, err));
    drop_duplicates(&violations);
    if (phase == NULL)
        CX_TRY(cx_task_write_patch(t, err));
    /* After the review the reviewer gate has the word; this look speaks up only to refuse. */
    if (!t->candidate.diff.passed || phase_of(phase) != CX_DIFF_REVIEW)
        CX_TRY(write_result(t, phase, &t->candidate.diff, &violations, err));
    t->verdicts.diff =
        (cx_run_gate){true, t->candidate.diff.passed, violations.items, violations.count};
    if (t->candidate.diff.passed)
        return phase == NULL ? check_overrides(t, err) : CX_SUCCESS;
    const char *reason = reason_of(&t->candidate.diff.findings);
    CX_TRY(cx_task_refuse(t, CX_GATE_DIFF, reason, true, &violations, err));
    return roll_back_worktree(t, err);
}
