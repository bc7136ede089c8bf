/*
 * run_diff.c - the diff gate and the reviewer's isolation (run.md §9, §10) on real repositories,
 * made again for each case.
 */
#include <stdio.h>

#include "candidate/candidate.h"
#include "candidate/isolation.h"
#include "git/worktree.h"
#include "tests/runner/run.h"
#include "tests/support/repo_kit.h"

static const cx_json *context(const runner *r, const char *name)
{
    return r->root == NULL ? NULL : cx_json_get_typed(r->root, cx_str_z(name), CX_JSON_OBJECT);
}

/* Set-up operations are committed, unless they are git's own: those leave the index as they want
 * it, and gitlinks are committed from there. */
static cx_status set_up(runner *r, const cx_json *item, repo_kit *kit, cx_err *err)
{
    const cx_json *files = context(r, "base_files"), *ops;
    bool plain = false, gitlink = false;
    if (files == NULL)
        return cx_fail(err, CX_E_FORMAT, "the file of cases has no 'base_files'");
    CX_TRY(repo_write_all(kit, files, err));
    CX_TRY(repo_commit(kit, "base", err));
    CX_TRY(runner_member(item, "setup_ops", CX_JSON_ARRAY, &ops, err));
    CX_TRY(repo_apply(kit, ops, &plain, err));
    for (uint32_t i = 0; i < ops->count; i++)
        gitlink |= cx_str_is(cx_json_text(&ops->items[i].items[0]), "gitlink");
    if (plain)
        return repo_commit(kit, "setup", err);
    return gitlink ? repo_git(kit, err, "commit", "-q", "-m", "setup") : CX_SUCCESS;
}

/* --- diff_gate.json --------------------------------------------------------------------------- */

static cx_status judge(runner *r, const cx_json *item, repo_kit *kit, cx_snapshot **before,
                       cx_json *out, cx_err *err)
{
    cx_diff_options options = CX_DIFF_OPTIONS_INIT;
    cx_diff_report report;
    const cx_json *ops, *allowed;
    cx_str *paths, baseline;
    cx_json whole;
    char base[CX_OID_TEXT_SIZE];
    CX_TRY(set_up(r, item, kit, err));
    CX_TRY(repo_head(kit, base, err));
    CX_TRY(repo_open(kit, err));
    CX_TRY(cx_snapshot_read(kit->git, NULL, before, err));
    CX_TRY(runner_member(item, "ops", CX_JSON_ARRAY, &ops, err));
    CX_TRY(repo_apply(kit, ops, NULL, err));
    CX_TRY(runner_member(item, "allowed_paths", CX_JSON_ARRAY, &allowed, err));
    CX_TRY(runner_texts(r, allowed, &paths, err));
    CX_TRY(runner_text(item, "baseline", &baseline, err));
    bool named = cx_str_is(baseline, "BASE") || cx_str_is(baseline, "HEAD");
    options.git = kit->git;
    options.snapshot = *before;
    options.baseline = named ? cx_str_z(base) : baseline;
    options.allowed_paths = paths;
    options.allowed_count = allowed->count;
    CX_TRY(cx_diff_gate_run(&options, &r->arena, &report, err));
    cx_status status = cx_diff_report_json(&report, &r->arena, &whole, err);
    cx_diff_report_done(&report);
    CX_TRY(status);
    static const char *const names[] = {"allow", "rules"};
    return runner_pick(r, &whole, names, CX_COUNT_OF(names), out, err);
}

cx_status run_diff_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    repo_kit kit;
    cx_snapshot *before = NULL;
    cx_status status = repo_begin(&kit, "case-diff", err);
    if (!cx_failed(status))
        status = judge(r, item, &kit, &before, out, err);
    cx_snapshot_close(before);
    repo_end(&kit);
    return status;
}

/* --- reviewer_isolation.json ------------------------------------------------------------------ */

static cx_status review(runner *r, const cx_json *item, repo_kit *kit, cx_snapshot **before,
                        cx_snapshot **after, cx_json *out, cx_err *err)
{
    const cx_json *files = context(r, "base_files"), *untracked = context(r, "untracked_files");
    const cx_json *setup, *ops;
    cx_run_findings findings;
    cx_json_list answer = cx_json_list_begin(&r->arena);
    if (files == NULL)
        return cx_fail(err, CX_E_FORMAT, "the file of cases has no 'base_files'");
    CX_TRY(repo_write_all(kit, files, err));
    CX_TRY(repo_commit(kit, "base", err));
    if (untracked != NULL)
        CX_TRY(repo_write_all(kit, untracked, err));
    CX_TRY(runner_member(item, "setup_ops", CX_JSON_ARRAY, &setup, err));
    CX_TRY(repo_apply(kit, setup, NULL, err));
    CX_TRY(repo_open(kit, err));
    CX_TRY(cx_snapshot_read(kit->git, NULL, before, err));
    CX_TRY(runner_member(item, "ops", CX_JSON_ARRAY, &ops, err));
    CX_TRY(repo_apply(kit, ops, NULL, err));
    cx_snapshot_options how = {.before = *before};
    CX_TRY(cx_snapshot_read(kit->git, &how, after, err));
    cx_run_findings_init(&findings, &r->arena);
    cx_run_isolation_compare(*before, *after, false, &findings);
    cx_json_list_put(&answer, CX_STR("violation"), cx_json_make_bool(findings.refusing != 0));
    cx_run_findings_done(&findings);
    return cx_json_list_end_object(&answer, out, err);
}

cx_status run_isolation_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    repo_kit kit;
    cx_snapshot *before = NULL, *after = NULL;
    cx_status status = repo_begin(&kit, "case-review", err);
    if (!cx_failed(status))
        status = review(r, item, &kit, &before, &after, out, err);
    cx_snapshot_close(before);
    cx_snapshot_close(after);
    repo_end(&kit);
    return status;
}

/* --- attacks.json ----------------------------------------------------------------------------- */

/* The work tree of a task next to the user's checkout, as a run has it. */
typedef struct attack {
    repo_kit user, agent;
    cx_worktree tree;
    cx_snapshot *user_before, *user_after, *before;
} attack;

static void attack_end(attack *a)
{
    cx_snapshot_close(a->user_before);
    cx_snapshot_close(a->user_after);
    cx_snapshot_close(a->before);
    cx_folder_close(a->agent.folder);
    cx_buf_done(&a->agent.said);
    cx_arena_done(&a->agent.arena);
    cx_git_close(a->tree.git);
    repo_end(&a->user);
}

static cx_status attack_begin(runner *r, const cx_json *item, attack *a, cx_oid *base, cx_err *err)
{
    char root[FOLDER_PATH_SIZE + 32];
    CX_TRY(repo_begin(&a->user, "case-attack", err));
    CX_TRY(set_up(r, item, &a->user, err));
    CX_TRY(repo_open(&a->user, err));
    CX_TRY(cx_git_resolve(a->user.git, CX_STR("HEAD"), base, err));
    (void)snprintf(root, sizeof root, "%s/.runtime-cache/cortexpilot", a->user.path);
    const cx_worktree_options where = {.runtime_root = root,
                                       .run_id = CX_STR("run_one"),
                                       .task_id = CX_STR("task_one"),
                                       .commit = *base};
    CX_TRY(cx_run_worktree_add(a->user.git, &where, &a->user.arena, &a->tree, err));
    (void)snprintf(a->agent.path, sizeof a->agent.path, "%s", a->tree.path);
    CX_TRY(cx_folder_open(a->tree.path, &a->agent.folder, err));
    CX_TRY(cx_snapshot_read(a->tree.git, NULL, &a->before, err));
    const cx_snapshot_options how = {.skip = ".runtime-cache"};
    return cx_snapshot_read(a->user.git, &how, &a->user_before, err);
}

static cx_status attack_judge(runner *r, const cx_json *item, attack *a, const cx_oid *base,
                              cx_json_list *answer, cx_err *err)
{
    char name[CX_OID_TEXT_SIZE];
    cx_diff_options options = CX_DIFF_OPTIONS_INIT;
    cx_diff_report report;
    const cx_json *allowed;
    cx_str *paths;
    cx_json whole;
    cx_buf patch, names;
    CX_TRY(runner_member(item, "allowed_paths", CX_JSON_ARRAY, &allowed, err));
    CX_TRY(runner_texts(r, allowed, &paths, err));
    cx_oid_text(base, name);
    options.git = a->tree.git;
    options.snapshot = a->before;
    options.baseline = cx_str_z(name);
    options.allowed_paths = paths;
    options.allowed_count = allowed->count;
    CX_TRY(cx_diff_gate_run(&options, &r->arena, &report, err));
    /* The evidence of a refusal can always be taken. */
    cx_buf_init(&patch, cx_alloc_default());
    cx_buf_init(&names, cx_alloc_default());
    cx_status status = cx_run_candidate_patch(a->tree.git, &report, &patch, &names, err);
    cx_buf_done(&patch);
    cx_buf_done(&names);
    if (!cx_failed(status))
        status = cx_diff_report_json(&report, &r->arena, &whole, err);
    cx_diff_report_done(&report);
    CX_TRY(status);
    cx_json_list_put(answer, CX_STR("allow"), *CX_JSON_GET(&whole, "allow"));
    cx_json_list_put(answer, CX_STR("rules"), *CX_JSON_GET(&whole, "rules"));
    return CX_SUCCESS;
}

/* `restored`: the rollback was verified.  `unchanged`: the user's checkout and repository are what
 * they were. */
static cx_status attack_undo(runner *r, attack *a, const cx_oid *base, cx_json_list *answer,
                             cx_err *err)
{
    const cx_rollback_options back = {.git = a->tree.git,
                                      .snapshot = a->before,
                                      .baseline = *base,
                                      .branch = a->tree.branch,
                                      .strategy = CX_ROLL_RESET_HARD};
    const cx_snapshot_options how = {.skip = ".runtime-cache"};
    cx_rollback_report report;
    cx_run_findings findings;
    CX_TRY(cx_run_rollback(&back, &r->arena, &report, err));
    CX_TRY(cx_snapshot_read(a->user.git, &how, &a->user_after, err));
    cx_run_findings_init(&findings, &r->arena);
    cx_run_isolation_compare(a->user_before, a->user_after, false, &findings);
    cx_json_list_put(answer, CX_STR("restored"), cx_json_make_bool(report.verified));
    cx_json_list_put(answer, CX_STR("unchanged"), cx_json_make_bool(findings.refusing == 0));
    cx_run_findings_done(&findings);
    return CX_SUCCESS;
}

static cx_status attack_all(runner *r, const cx_json *item, attack *a, cx_json *out, cx_err *err)
{
    const cx_json *ops;
    cx_oid base;
    cx_json_list answer = cx_json_list_begin(&r->arena);
    CX_TRY(attack_begin(r, item, a, &base, err));
    CX_TRY(runner_member(item, "ops", CX_JSON_ARRAY, &ops, err));
    CX_TRY(repo_apply(&a->agent, ops, NULL, err));
    CX_TRY(attack_judge(r, item, a, &base, &answer, err));
    CX_TRY(attack_undo(r, a, &base, &answer, err));
    return cx_json_list_end_object(&answer, out, err);
}

cx_status run_attack_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    attack a;
    memset(&a, 0, sizeof a);
    a.agent.folder = CX_FILE_NONE;
    cx_arena_init(&a.agent.arena, cx_alloc_default(), 0);
    cx_buf_init(&a.agent.said, cx_alloc_default());
    cx_status status = attack_all(r, item, &a, out, err);
    attack_end(&a);
    return status;
}
