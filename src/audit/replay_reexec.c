/*
 * replay_reexec.c - does a recorded run again (run.md §18): worktree, patch, tree, diff gate,
 * policy gate; tests and agent are in replay_rerun.c.
 *
 *   X1  A run with changes passes only when its stored patch was really applied, and applied
 * cleanly. X2  What could not be done is an error and never a pass; what came out otherwise is a
 * difference. X3  Nothing is written into the bundle; the new work tree and its branch are gone
 * afterwards. X4  A recorded refusal that the patch alone cannot show again (a hook, a reference, a
 * FIFO of the agent's) is a soft difference: nothing that was refused is accepted by it.
 */
#include "audit/replay_reexec.h"

#include <stdarg.h>
#include <stdio.h>

#include "os/api.h"
#include "contract/api.h"
#include "bundle/api.h"

/* --- notes ----------------------------------------------------------------------------------- */

static cx_str print(cx_reexec *x, const char *format, va_list args)
{
    char text[512];
    (void)vsnprintf(text, sizeof text, format, args);
    cx_str copy = cx_arena_copy_str(x->arena, cx_str_z(text));
    if (copy.data == NULL)
        x->failed = true;
    return copy;
}

void cx_reexec_hard(cx_reexec *x, cx_json expected, cx_json actual, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cx_run_difference *slot = cx_vec_push(&x->hard, x->arena->alloc);
    cx_str key = print(x, format, args);
    va_end(args);
    if (slot == NULL)
        x->failed = true;
    else
        *slot = (cx_run_difference){key, expected, actual};
}

void cx_reexec_soft(cx_reexec *x, cx_json expected, cx_json actual, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cx_run_difference *slot = cx_vec_push(&x->soft, x->arena->alloc);
    cx_str key = print(x, format, args);
    va_end(args);
    if (slot == NULL)
        x->failed = true;
    else
        *slot = (cx_run_difference){key, expected, actual};
}

void cx_reexec_error(cx_reexec *x, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cx_str *slot = cx_vec_push(&x->errors, x->arena->alloc);
    cx_str text = print(x, format, args);
    va_end(args);
    if (slot == NULL)
        x->failed = true;
    else
        *slot = text;
}

cx_json cx_reexec_text(cx_reexec *x, cx_str text)
{
    cx_str copy = cx_arena_copy_str(x->arena, text);
    if (copy.data == NULL)
        x->failed = true;
    return cx_run_part_str(x->arena, copy);
}

cx_status cx_reexec_note(cx_reexec *x, cx_status status, const cx_err *what, const char *doing,
                         cx_err *err)
{
    if (!cx_failed(status))
        return status;
    if (status.code == CX_E_NOMEM) {
        if (err != NULL)
            *err = *what;
        return status;
    }
    cx_reexec_error(x, "%s: %s", doing, what->message);
    return CX_SUCCESS;
}

bool cx_reexec_granted(void *arg, cx_str scope)
{
    const cx_reexec *x = arg;
    for (size_t i = 0; i < x->scope_count; i++)
        if (cx_str_eq(x->scopes[i], scope))
            return true;
    return false;
}

/* --- what was recorded ----------------------------------------------------------------------- */

static cx_str text_at(const cx_json *value, const char *pointer)
{
    const cx_json *found = cx_json_pointer(value, cx_str_z(pointer));
    return found == NULL || found->type != CX_JSON_STRING ? CX_STR("") : cx_json_text(found);
}

/* Approvals that the run used, from its own events. */
static cx_status read_scopes(cx_reexec *x, cx_err *err)
{
    CX_VEC(cx_str) list = {0};
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; !cx_failed(status) && i < x->projection.moments.count; i++) {
        const cx_run_moment *moment = &x->projection.moments.items[i];
        cx_run_event_read event;
        if (moment->kind != CX_RUN_EVENT_HUMAN_APPROVAL_COMPLETED)
            continue;
        status = cx_run_event_parse(moment->line, moment->index, x->arena, &event, err);
        const cx_json *scopes =
            cx_failed(status) ? NULL
                              : cx_json_get_typed(&event.payload, CX_STR("scopes"), CX_JSON_ARRAY);
        for (uint32_t k = 0; scopes != NULL && k < scopes->count; k++) {
            cx_str *slot = scopes->items[k].type != CX_JSON_STRING
                               ? NULL
                               : cx_vec_push(&list, x->arena->alloc);
            if (slot != NULL)
                *slot = cx_json_text(&scopes->items[k]);
        }
    }
    x->scopes = CX_ARENA_ARRAY(x->arena, cx_str, list.count + 1);
    if (!cx_failed(status) && x->scopes == NULL)
        status = cx_fail_nomem(err);
    for (size_t i = 0; !cx_failed(status) && i < list.count; i++)
        x->scopes[x->scope_count++] = list.items[i];
    cx_vec_done(&list, x->arena->alloc);
    return status;
}

static cx_status read_contract(cx_reexec *x, cx_err *err)
{
    cx_bytes bytes;
    cx_run_findings findings;
    CX_TRY(cx_run_bundle_read(x->bundle, CX_STR("contract.json"), CX_RUN_CONTRACT_BYTES_MAX, &bytes,
                              err));
    cx_run_findings_init(&findings, x->arena);
    cx_status status =
        cx_run_contract_read(cx_bytes_str(bytes), x->arena, &findings, &x->contract, err);
    if (!cx_failed(status) && findings.refusing != 0)
        status = cx_fail(err, CX_E_FORMAT, "its contract.json is no contract");
    cx_run_findings_done(&findings);
    return status;
}

/* The bundle as far as it is needed; not being able to read it is this run's error. */
static cx_status read_recorded(cx_reexec *x, cx_err *err)
{
    cx_bytes baseline, events;
    CX_TRY(cx_run_bundle_json(x->bundle, CX_STR("manifest.json"), &x->manifest, err));
    CX_TRY(cx_run_bundle_json(x->bundle, CX_STR("reports/task_result.json"), &x->result, err));
    CX_TRY(cx_run_bundle_json(x->bundle, CX_STR("reports/test_report.json"), &x->tests, err));
    CX_TRY(cx_run_bundle_read(x->bundle, CX_STR("events.jsonl"), CX_RUN_EVENTS_BYTES_MAX, &events,
                              err));
    CX_TRY(cx_run_projection_read(cx_bytes_str(events), x->arena, &x->projection, err));
    CX_TRY(cx_run_bundle_read(x->bundle, CX_STR("git/baseline_commit.txt"), 256, &baseline, err));
    x->baseline_text = cx_bytes_str(baseline);
    while (x->baseline_text.size != 0 && x->baseline_text.data[x->baseline_text.size - 1] == '\n')
        x->baseline_text.size--;
    x->run_id = text_at(&x->manifest, "/run_id");
    x->task = cx_run_projection_find(&x->projection, text_at(&x->result, "/task_id"));
    CX_TRY(read_contract(x, err));
    return read_scopes(x, err);
}

/* The newest event of a type of our task, else NULL. */
static const cx_run_moment *newest_event(const cx_reexec *x, cx_run_event_type type)
{
    for (size_t i = x->projection.moments.count; i > 0; i--) {
        const cx_run_moment *moment = &x->projection.moments.items[i - 1];
        if (moment->kind == type && x->task != NULL && cx_str_eq(moment->task_id, x->task->task_id))
            return moment;
    }
    return NULL;
}

/* --- where it is re-executed ------------------------------------------------------------------ */

static cx_status open_repository(cx_reexec *x, cx_err *err)
{
    char text[CX_OID_TEXT_SIZE];
    cx_err why = {0};
    CX_TRY(cx_git_open(x->options->repo, NULL, x->options->alloc, &x->git, err));
    x->repo = cx_run_git_repo_init(&x->git_repo, x->git, x->arena);
    x->ground = cx_run_path_context_of(cx_git_worktree(x->git), x->options->root);
    cx_status status = CX_SUCCESS;
    if (!cx_oid_parse(x->baseline_text, &x->baseline) ||
        x->baseline.size != cx_git_oid_size(x->git))
        status = cx_fail(&why, CX_E_FORMAT, "it is no commit id of this repository");
    else
        status = cx_git_resolve(x->git, x->baseline_text, &x->baseline, &why);
    if (cx_failed(status))
        return cx_fail(err, CX_E_NOT_FOUND, "the baseline commit %.*s is not there: %s",
                       (int)(x->baseline_text.size > 64 ? 64 : x->baseline_text.size),
                       x->baseline_text.data, why.message);
    cx_oid_text(&x->baseline, text);
    x->baseline_text = cx_arena_copy_str(x->arena, cx_str_z(text));
    return x->baseline_text.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static const char *const *as_z(cx_reexec *x, cx_str_list words)
{
    const char **items = CX_ARENA_ARRAY(x->arena, const char *, words.count + 1);
    for (size_t i = 0; items != NULL && i < words.count; i++) {
        items[i] = cx_arena_copy_str(x->arena, words.items[i]).data;
        x->failed = x->failed || items[i] == NULL;
    }
    x->failed = x->failed || items == NULL;
    return items;
}

/* As runs of this baseline have it. */
static cx_sandbox_options box_options(cx_reexec *x, const char *const *hide)
{
    const cx_run_config *config = &x->policy.config;
    cx_sandbox_options options = {.program = x->options->program, .hide = hide, .hide_count = 1};
    if (!x->has_policy)
        return options;
    options.trusted = as_z(x, config->trusted_dirs);
    options.trusted_count = config->trusted_dirs.count;
    options.read = as_z(x, config->read_only);
    options.read_count = config->read_only.count;
    options.env_names = as_z(x, config->env);
    options.env_name_count = config->env.count;
    options.limits = (cx_sandbox_limits){.processes = config->limits.processes,
                                         .file_bytes = config->limits.file_bytes,
                                         .open_files = config->limits.open_files,
                                         .memory_bytes = config->limits.memory_bytes};
    return options;
}

bool cx_reexec_sandbox(cx_reexec *x)
{
    cx_err err = {0};
    const char *hide[] = {x->options->root};
    if (x->box != NULL)
        return true;
    const cx_sandbox_options options = box_options(x, hide);
    if (x->failed)
        return false;
    if (cx_failed(cx_sandbox_open(&options, &x->box, &err))) {
        cx_reexec_error(x, "no sandbox: %s", err.message);
        return false;
    }
    if (x->box->missing == 0 || x->options->allow_degraded_sandbox)
        return true;
    for (unsigned i = 0; i < CX_SANDBOX_LAYER_COUNT; i++)
        if (x->box->missing & (1u << i))
            cx_reexec_error(x, "no sandbox: its layer %s is not to be had%s%s",
                            cx_sandbox_layer_name((cx_sandbox_layer)(1u << i)),
                            x->box->reason[i] == NULL ? "" : ": ",
                            x->box->reason[i] == NULL ? "" : x->box->reason[i]);
    return false;
}

/* --- patch, tree, diff gate ------------------------------------------------------------------ */

static const cx_str *binary_ok(cx_reexec *x, size_t *out_count)
{
    cx_str *list = CX_ARENA_ARRAY(x->arena, cx_str, x->contract.output_count + 1);
    *out_count = 0;
    for (size_t i = 0; list != NULL && i < x->contract.output_count; i++) /* D12 */
        if (cx_str_is(x->contract.outputs[i].type, "file") &&
            cx_str_starts(x->contract.outputs[i].acceptance, CX_STR("binary-ok")))
            list[(*out_count)++] = x->contract.outputs[i].name;
    x->failed = x->failed || list == NULL;
    return list;
}

cx_status cx_reexec_run_diff_gate(cx_reexec *x, const cx_worktree *tree, const cx_snapshot *before,
                                  cx_diff_report *out, cx_err *err)
{
    CX_ASSERT(x != NULL && before != NULL && out != NULL);
    cx_diff_options options = CX_DIFF_OPTIONS_INIT;
    options.git = tree->git;
    options.snapshot = before;
    options.baseline = x->baseline_text;
    options.allowed_paths = x->contract.allowed_paths.items;
    options.allowed_count = x->contract.allowed_paths.count;
    options.binary_ok = binary_ok(x, &options.binary_ok_count);
    options.shared = true;
    if (x->has_policy) {
        options.max_paths = x->policy.config.limits.changed_paths;
        options.max_bytes = x->policy.config.limits.changed_bytes;
    }
    return cx_diff_gate_run(&options, x->arena, out, err);
}

/* X4: whether the recorded refusal is one that a patch carries. */
static bool shows_in_patch(const cx_reexec *x)
{
    static const char *const rules[] = {"D06", "D07", "D09", "D10", "D11", "D12", "D13", "D15"};
    bool shows = false;
    for (size_t i = 0; i < x->projection.rulings.count; i++) {
        const cx_run_ruling *ruling = &x->projection.rulings.items[i];
        if (strcmp(ruling->judgement.gate, "diff") != 0)
            continue;
        shows = ruling->violation_count != 0;
        for (size_t k = 0; k < ruling->violation_count; k++) {
            bool known = false;
            for (size_t r = 0; r < CX_COUNT_OF(rules); r++)
                known = known || cx_str_starts(ruling->violations[k], cx_str_z(rules[r]));
            shows = shows && known;
        }
    }
    return shows;
}

static void compare_gate(cx_reexec *x, unsigned gate, bool passed, bool can_show_refusal)
{
    bool was = cx_run_projection_task_passed(&x->projection, x->task, gate);
    if (was == passed)
        return;
    if (!was && !can_show_refusal)
        cx_reexec_soft(x, cx_json_make_bool(was), cx_json_make_bool(passed), "gates/%s",
                       cx_run_gate_names[gate]);
    else
        cx_reexec_hard(x, cx_json_make_bool(was), cx_json_make_bool(passed), "gates/%s",
                       cx_run_gate_names[gate]);
}

static cx_json digest_json(cx_reexec *x, cx_bytes bytes)
{
    const cx_run_ref ref = cx_run_ref_of(CX_STR("x"), bytes);
    cx_json value;
    if (cx_failed(cx_run_ref_json(&ref, x->arena, &value, NULL))) {
        x->failed = true;
        return cx_json_make_null();
    }
    return *cx_json_get(&value, CX_STR("sha256"));
}

static void compare_bytes(cx_reexec *x, const char *key, cx_bytes expected, cx_bytes actual)
{
    if (expected.size != actual.size ||
        (expected.size != 0 && memcmp(expected.data, actual.data, expected.size) != 0))
        cx_reexec_hard(x, digest_json(x, expected), digest_json(x, actual), "%s", key);
}

/* The tree that CANDIDATE_COMMITTED recorded, and the one of that commit where it is reachable. */
static void compare_tree(cx_reexec *x, const cx_oid *tree)
{
    const cx_run_moment *moment = newest_event(x, CX_RUN_EVENT_CANDIDATE_COMMITTED);
    cx_run_event_read event;
    char text[CX_OID_TEXT_SIZE], stored[CX_OID_TEXT_SIZE];
    cx_oid commit, recorded;
    if (moment == NULL ||
        cx_failed(cx_run_event_parse(moment->line, moment->index, x->arena, &event, NULL)))
        return;
    cx_oid_text(tree, text);
    cx_str stated = CX_JSON_GET_STR(&event.payload, "tree");
    if (stated.data != NULL && !cx_str_is(stated, text))
        cx_reexec_hard(x, cx_reexec_text(x, stated), cx_reexec_text(x, cx_str_z(text)),
                       "candidate_tree");
    if (!cx_oid_parse(CX_JSON_GET_STR(&event.payload, "commit"), &commit) ||
        cx_failed(cx_git_tree_of(x->git, &commit, &recorded, NULL)))
        return; /* not reachable any more: the patch stands for it */
    cx_oid_text(&recorded, stored);
    if (!cx_oid_eq(&recorded, tree))
        cx_reexec_hard(x, cx_reexec_text(x, cx_str_z(stored)), cx_reexec_text(x, cx_str_z(text)),
                       "candidate_commit_tree");
}

/* X1 */
static cx_status apply_patch(cx_reexec *x, const cx_worktree *tree, cx_bytes patch, bool *out_clean,
                             cx_err *err)
{
    cx_err why = {0};
    int code = 0;
    cx_buf printed;
    *out_clean = true;
    if (patch.size == 0)
        return CX_SUCCESS;
    const cx_git_call call = {
        .args = CX_GIT_ARGS("apply", "--index", "--binary", "--whitespace=nowarn", "-"),
        .input = patch,
    };
    cx_git *checkout;
    const cx_git_checkout where = {.path = cx_git_worktree(tree->git),
                                   .git_dir = cx_git_dir(tree->git)};
    /* No agent has been in this work tree: git may use it. */
    CX_TRY(cx_git_open_checkout(x->git, &where, &checkout, err));
    cx_buf_init(&printed, x->options->alloc);
    cx_status status = cx_git_call_run(checkout, &call, &printed, &code, &why);
    cx_buf_done(&printed);
    cx_git_close(checkout);
    CX_TRY(cx_reexec_note(x, status, &why, "applying patch.diff", err));
    *out_clean = !cx_failed(status) && code == 0;
    if (!cx_failed(status) && code != 0)
        cx_reexec_hard(x, cx_json_make_str(CX_STR("applies cleanly")),
                       cx_json_make_str(CX_STR("does not apply to the baseline")),
                       "patch.diff/apply");
    return CX_SUCCESS;
}

static cx_status candidate_of(cx_reexec *x, const cx_worktree *tree, const cx_diff_report *report,
                              cx_oid *out, cx_err *err)
{
    cx_candidate_facts facts = {.run_id = cx_str_z(x->new_id),
                                .task_id = x->contract.task_id,
                                .contract_sha256 = x->projection.contract_sha256,
                                .time_s = 0};
    return cx_run_candidate_commit(tree->git, report, &facts, out, err);
}

/* Patch, names, tree and verdict of what the worktree holds now; the candidate's commit when the
 * tests are to be run. */
static cx_status repeat_diff_gate(cx_reexec *x, const cx_worktree *tree, const cx_snapshot *before,
                                  cx_bytes patch, cx_oid *out_candidate, cx_err *err)
{
    cx_diff_report report;
    cx_buf new_patch, new_names;
    cx_bytes names;
    CX_TRY(cx_run_bundle_read(x->bundle, CX_STR("diff_name_only.txt"), CX_RUN_JSON_BYTES_MAX,
                              &names, err));
    CX_TRY(cx_reexec_run_diff_gate(x, tree, before, &report, err));
    cx_buf_init(&new_patch, x->options->alloc);
    cx_buf_init(&new_names, x->options->alloc);
    cx_status status = cx_run_candidate_patch(tree->git, &report, &new_patch, &new_names, err);
    if (!cx_failed(status)) {
        compare_bytes(x, "patch.diff", patch, cx_buf_bytes(&new_patch));
        compare_bytes(x, "diff_name_only.txt", names, cx_buf_bytes(&new_names));
        compare_tree(x, &report.tree);
        compare_gate(x, CX_RUN_GATE_DIFF, report.passed, shows_in_patch(x));
    }
    if (!cx_failed(status) && report.passed && x->task->gates[CX_RUN_GATE_TESTS].reached)
        status = candidate_of(x, tree, &report, out_candidate, err);
    cx_buf_done(&new_names);
    cx_buf_done(&new_patch);
    cx_diff_report_done(&report);
    return status;
}

static cx_status repeat_in_worktree(cx_reexec *x, const cx_worktree *tree, cx_bytes patch,
                                    cx_oid *out_candidate, cx_err *err)
{
    cx_snapshot *before = NULL;
    bool clean;
    CX_TRY(cx_snapshot_read(tree->git, NULL, &before, err));
    cx_status status = apply_patch(x, tree, patch, &clean, err);
    if (!cx_failed(status) && clean)
        status = repeat_diff_gate(x, tree, before, patch, out_candidate, err);
    cx_snapshot_close(before);
    return status;
}

/* X3 */
static cx_status with_worktree(cx_reexec *x, cx_bytes patch, cx_oid *out_candidate, cx_err *err)
{
    cx_worktree tree;
    cx_err closing = {0};
    const cx_worktree_options where = {.runtime_root = x->options->root,
                                       .run_id = cx_str_z(x->new_id),
                                       .task_id = x->contract.task_id,
                                       .commit = x->baseline};
    CX_TRY(cx_run_worktree_add(x->git, &where, x->arena, &tree, err));
    cx_status status = repeat_in_worktree(x, &tree, patch, out_candidate, err);
    cx_status removed = cx_run_worktree_remove(x->git, &where, &tree, true, &closing);
    if (!cx_failed(status) && cx_failed(removed))
        cx_reexec_error(x, "the new work tree could not be removed: %s", closing.message);
    return status;
}

/* --- policy gate ----------------------------------------------------------------------------- */

static cx_status repeat_policy_gate(cx_reexec *x, cx_err *err)
{
    cx_run_findings findings;
    const cx_run_grants grants = {cx_reexec_granted, x};
    cx_run_findings_init(&findings, x->arena);
    cx_status status =
        cx_run_policy_load(&x->repo, x->baseline_text, x->arena, &findings, &x->policy, err);
    x->has_policy = !cx_failed(status) && findings.refusing == 0;
    if (x->has_policy && !cx_failed(status)) {
        cx_run_tree files = {0};
        status = x->repo.list(x->repo.arg, x->baseline_text, x->arena, &files, err);
        if (!cx_failed(status))
            status = cx_run_gate_policy(&x->policy, &x->contract, &files, &x->ground, &grants,
                                        &findings, err);
    }
    bool passed = !cx_failed(status) && findings.refusing == 0;
    if (!cx_failed(status) && x->task != NULL && x->task->gates[CX_RUN_GATE_POLICY].reached)
        compare_gate(x, CX_RUN_GATE_POLICY, passed, true);
    cx_run_findings_done(&findings);
    return status;
}

/* --- all of it ------------------------------------------------------------------------------- */

static void compare_versions(cx_reexec *x)
{
    cx_json meta;
    cx_str recorded = text_at(&x->manifest, "/versions/orchestrator");
    unsigned version;
    char text[32];
    if (!cx_str_is(recorded, CX_VERSION))
        cx_reexec_soft(x, cx_reexec_text(x, recorded), cx_json_make_str(CX_STR(CX_VERSION)),
                       "versions/cortex");
    if (cx_failed(cx_run_bundle_json(x->bundle, CX_STR("meta.json"), &meta, NULL)) ||
        cx_failed(cx_git_version(NULL, &version, NULL)))
        return;
    (void)snprintf(text, sizeof text, "%u.%u.%u", version / 10000, version / 100 % 100,
                   version % 100);
    recorded = text_at(&meta, "/versions/git");
    if (!cx_str_is(recorded, text))
        cx_reexec_soft(x, cx_reexec_text(x, recorded), cx_reexec_text(x, cx_str_z(text)),
                       "versions/git");
}

static cx_status execute_all(cx_reexec *x, cx_err *err)
{
    cx_bytes patch;
    cx_oid candidate = {.size = 0};
    CX_TRY(read_recorded(x, err));
    CX_TRY(open_repository(x, err));
    CX_TRY(cx_run_id_make(x->options->io, x->new_id, err));
    CX_TRY(
        cx_run_bundle_read(x->bundle, CX_STR("patch.diff"), CX_RUN_OUTPUT_BYTES_MAX, &patch, err));
    CX_TRY(repeat_policy_gate(x, err));
    compare_versions(x);
    if (x->task == NULL || !x->task->gates[CX_RUN_GATE_DIFF].reached) {
        /* Nothing was done that could be done again; a patch would be a claim without a cause. */
        if (patch.size != 0)
            cx_reexec_hard(x, cx_json_make_str(CX_STR("no diff gate in the events")),
                           cx_json_make_str(CX_STR("a patch that is not empty")), "patch.diff");
        return CX_SUCCESS;
    }
    CX_TRY(with_worktree(x, patch, &candidate, err));
    if (candidate.size != 0)
        CX_TRY(cx_reexec_tests(x, &candidate, err));
    else if (x->hard.count == 0 &&
             cx_run_projection_task_passed(&x->projection, x->task, CX_RUN_GATE_TESTS))
        cx_reexec_error(x, "there was nothing to test again although tests passed"); /* X2 */
    return x->options->script == NULL ? CX_SUCCESS : cx_reexec_agent(x, patch, err);
}

static cx_status make_report(cx_reexec *x, cx_json *out, int *out_exit, cx_err *err)
{
    char now[28];
    cx_run_time_text((int64_t)x->options->io->wall_ns(x->options->io), now);
    cx_str at = cx_arena_copy_str(x->arena, cx_str_z(now));
    if (x->failed || at.data == NULL)
        return cx_fail_nomem(err);
    const cx_run_reexec_facts facts = {
        .run_id = x->run_id.size != 0 ? x->run_id : cx_run_bundle_name(x->bundle),
        .at = at,
        .hard = x->hard.items,
        .hard_count = x->hard.count,
        .soft = x->soft.items,
        .soft_count = x->soft.count,
        .errors = x->errors.items,
        .error_count = x->errors.count,
    };
    *out_exit = x->hard.count != 0 ? CX_RUN_EXIT_DIVERGED : x->errors.count != 0 ? 3 : 0;
    return cx_run_report_reexec(&facts, x->arena, out, err);
}

/* X3: the folder that held the new work trees; whatever is in it keeps it. */
static void remove_folder(const cx_reexec *x)
{
    char path[32 + CX_RUN_ID_SIZE];
    cx_file root;
    if (x->new_id[0] == 0 || cx_failed(cx_folder_open(x->options->root, &root, NULL)))
        return;
    (void)snprintf(path, sizeof path, "worktrees/%s", x->new_id);
    cx_status removed = cx_folder_remove(root, path, NULL);
    (void)removed;
    cx_folder_close(root);
}

cx_status cx_run_reexecute(cx_run_bundle *bundle, const cx_run_reexec_options *options,
                           cx_arena *arena, cx_json *out, int *out_exit, cx_err *err)
{
    CX_ASSERT(bundle != NULL && options != NULL && arena != NULL && out != NULL);
    cx_reexec x = {.options = options, .bundle = bundle, .arena = arena};
    cx_err why = {0};
    cx_run_projection_init(&x.projection);
    cx_status status = execute_all(&x, &why);
    status = cx_reexec_note(&x, status, &why, "doing it again", err);
    if (!cx_failed(status))
        status = make_report(&x, out, out_exit, err);
    remove_folder(&x);
    cx_sandbox_close(x.box);
    cx_git_close(x.git);
    cx_run_projection_done(&x.projection, arena);
    cx_vec_done(&x.hard, arena->alloc);
    cx_vec_done(&x.soft, arena->alloc);
    cx_vec_done(&x.errors, arena->alloc);
    return status;
}
