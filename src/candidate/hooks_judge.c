/*
 * hooks_judge.c - whether a hook allows a commit or a push (run.md §19).
 *
 * Without a contract, with two of them, or with one that cannot be read the hook rejects: when it
 * is unknown what is allowed, nothing is.  Unless people are to be checked, too, that is about runs
 * only: what is on a branch cortex/.. or in a work tree of a run.
 */
#include "candidate/diff_contract.h"
#include "candidate/diff_parts.h"
#include "git/api.h"
#include "candidate/hooks.h"

#define BRANCHES "refs/heads/cortex/"
#define LINES_MAX 1000

typedef struct hook_check {
    const cx_hook_options *options;
    cx_arena *arena;
    cx_hook_verdict *out;
    cx_contract contract;
    cx_diff_options diff;
    bool found;
} hook_check;

static void add_rejection(hook_check *check, cx_str where, const char *message)
{
    cx_run_findings_reject(&check->out->findings, "hook_contract", where, CX_STR(""), "%s",
                           message);
}

/* --- the contract ----------------------------------------------------------------------------- */

static bool is_of_run(const hook_check *check, cx_str run_id)
{
    cx_str component = cx_run_ref_component(run_id, check->arena);
    cx_str rest = check->out->branch;
    if (component.data == NULL || !cx_str_starts(rest, CX_STR(BRANCHES)))
        return false;
    rest.data += sizeof BRANCHES - 1;
    rest.size -= sizeof BRANCHES - 1;
    return rest.size > component.size && cx_str_starts(rest, component) &&
           rest.data[component.size] == '/';
}

static cx_status read_contract(hook_check *check, cx_str run_id, cx_err *err)
{
    cx_buf text;
    cx_str path = cx_arena_printf(check->arena, "%s/active/runs/%.*s/contract.json",
                                  check->options->store->root, (int)run_id.size, run_id.data);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&text, cx_alloc_default());
    cx_err why;
    cx_status status =
        cx_io_read_file(cx_io_system(), path.data, CX_RUN_CONTRACT_BYTES_MAX, &text, &why);
    cx_str stored = {NULL, 0};
    if (!cx_failed(status))
        stored = cx_arena_copy_str(check->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    if (cx_failed(status)) {
        cx_run_findings_reject(&check->out->findings, "hook_contract", path, CX_STR(""),
                               "the contract of the run cannot be read: %s", why.message);
        return CX_SUCCESS;
    }
    if (stored.data == NULL)
        return cx_fail_nomem(err);
    size_t before = check->out->findings.refusing;
    CX_TRY(
        cx_run_contract_read(stored, check->arena, &check->out->findings, &check->contract, err));
    if (check->out->findings.refusing != before)
        add_rejection(check, path, "the contract of the run is not valid");
    else
        check->found = true;
    return CX_SUCCESS;
}

static cx_status find_contract(hook_check *check, cx_err *err)
{
    cx_str *runs, chosen = {NULL, 0};
    size_t count = 0, matches = 0;
    CX_TRY(cx_git_head_ref(check->options->git, check->arena, &check->out->branch, err));
    cx_status status = cx_run_active_list(check->options->store, check->arena, &runs, &count, err);
    if (status.code == CX_E_NOT_FOUND)
        count = 0;
    else
        CX_TRY(status);
    for (size_t i = 0; i < count; i++)
        if (is_of_run(check, runs[i])) {
            chosen = runs[i];
            matches++;
        }
    if (matches == 0)
        add_rejection(check, check->out->branch,
                      "there is no active run that this branch belongs to; without a "
                      "contract nothing is allowed");
    else if (matches > 1)
        add_rejection(check, check->out->branch, "several active runs claim this branch");
    if (matches != 1)
        return CX_SUCCESS;
    check->out->run_id = chosen;
    return read_contract(check, chosen, err);
}

static bool is_in_a_run_tree(const cx_hook_options *options)
{
    cx_str place = cx_str_z(cx_git_worktree(options->git));
    cx_str root = cx_str_z(options->store->root);
    return cx_str_starts(place, root) &&
           cx_str_starts(cx_str_from(place.data + root.size, place.size - root.size),
                         CX_STR("/worktrees/"));
}

/* A person's own branch and checkout, which only CX_HOOK_ENFORCE_PEOPLE checks. */
static cx_status find_out_if_own(hook_check *check, bool *out, cx_err *err)
{
    *out = false;
    if (check->options->enforce != CX_HOOK_ENFORCE_RUNS)
        return CX_SUCCESS;
    CX_TRY(cx_git_head_ref(check->options->git, check->arena, &check->out->branch, err));
    *out =
        !cx_str_starts(check->out->branch, CX_STR(BRANCHES)) && !is_in_a_run_tree(check->options);
    return CX_SUCCESS;
}

static cx_status begin_judgement(hook_check *check, const cx_hook_options *options, cx_arena *arena,
                                 cx_hook_verdict *out, cx_err *err)
{
    memset(check, 0, sizeof *check);
    memset(out, 0, sizeof *out);
    check->options = options;
    check->arena = arena;
    check->out = out;
    out->branch = out->run_id = CX_STR("");
    cx_run_findings_init(&out->findings, arena);
    bool own;
    CX_TRY(find_out_if_own(check, &own, err));
    if (own)
        return CX_SUCCESS;
    CX_TRY(find_contract(check, err));
    if (!check->found)
        return CX_SUCCESS;
    check->diff.git = options->git;
    check->diff.index_file = options->index_file;
    return cx_diff_options_contract(&check->contract, NULL, arena, &check->diff, err);
}

/* Findings of the gate become the hook's. */
static void move_findings(hook_check *check, cx_diff_report *report)
{
    for (size_t i = 0; i < report->findings.list.count; i++) {
        const cx_run_finding *finding = &report->findings.list.items[i];
        if (!finding->informs)
            cx_run_findings_reject(&check->out->findings, finding->rule, finding->where,
                                   finding->detail, "%.*s", (int)finding->message.size,
                                   finding->message.data);
    }
    check->out->findings.failed |= report->findings.failed;
    cx_diff_report_done(report);
}

static cx_status end_judgement(hook_check *check, cx_status status, cx_err *err)
{
    if (!cx_failed(status))
        status = cx_run_findings_check(&check->out->findings, err);
    if (cx_failed(status))
        cx_run_findings_done(&check->out->findings);
    return status;
}

/* --- pre-commit ------------------------------------------------------------------------------- */

static cx_status check_index(hook_check *check, cx_err *err)
{
    cx_diff_report report;
    check->diff.index_only = true;
    CX_TRY(cx_diff_gate_run(&check->diff, check->arena, &report, err));
    move_findings(check, &report);
    return CX_SUCCESS;
}

cx_status cx_hook_pre_commit(const cx_hook_options *options, cx_arena *arena, cx_hook_verdict *out,
                             cx_err *err)
{
    CX_ASSERT(options != NULL && arena != NULL && out != NULL);
    hook_check check;
    cx_status status = begin_judgement(&check, options, arena, out, err);
    if (!cx_failed(status) && check.found)
        status = check_index(&check, err);
    return end_judgement(&check, status, err);
}

/* --- pre-push --------------------------------------------------------------------------------- */

static void add_push_rejection(hook_check *check, cx_str ref, const char *message)
{
    cx_run_findings_reject(&check->out->findings, "hook_push", ref, CX_STR(""), "%s", message);
}

static cx_status check_range(hook_check *check, cx_str ref, const cx_oid *local,
                             const cx_oid *remote, cx_err *err)
{
    cx_oid from = *remote;
    bool above = false;
    cx_diff_report report;
    if (cx_oid_is_zero(remote))
        CX_TRY(cx_git_resolve(check->options->git, check->diff.baseline, &from, err));
    cx_err why;
    cx_status status = cx_git_is_ancestor(check->options->git, &from, local, &above, &why);
    if (status.code == CX_E_NOT_FOUND || (!cx_failed(status) && !above)) {
        add_push_rejection(check, ref,
                           cx_oid_is_zero(remote)
                               ? "what is pushed does not descend from the baseline"
                               : "the push is not a fast-forward of what is there");
        return CX_SUCCESS;
    }
    if (cx_failed(status)) {
        if (err != NULL)
            *err = why;
        return status;
    }
    CX_TRY(cx_diff_gate_run_commits(&check->diff, &from, local, check->arena, &report, err));
    move_findings(check, &report);
    return CX_SUCCESS;
}

/* "<local ref> <local oid> <remote ref> <remote oid>" */
static cx_status check_push_line(hook_check *check, cx_str line, cx_err *err)
{
    cx_str words[4];
    size_t count = 0;
    cx_str rest = line;
    cx_oid local, remote;
    while (rest.size != 0 && count < CX_COUNT_OF(words)) {
        const char *space = memchr(rest.data, ' ', rest.size);
        size_t size = space == NULL ? rest.size : (size_t)(space - rest.data);
        words[count++] = (cx_str){rest.data, size};
        rest.data += size + (space != NULL);
        rest.size -= size + (space != NULL);
    }
    if (count != CX_COUNT_OF(words) || rest.size != 0 || !cx_oid_parse(words[1], &local) ||
        !cx_oid_parse(words[3], &remote)) {
        add_push_rejection(check, CX_STR(""),
                           "git names what is pushed in a form that we do not know");
        return CX_SUCCESS;
    }
    if (cx_oid_is_zero(&local)) {
        add_push_rejection(check, words[2], "deleting a branch is not allowed");
        return CX_SUCCESS;
    }
    return check_range(check, words[2], &local, &remote, err);
}

static cx_status check_push_lines(hook_check *check, cx_err *err)
{
    cx_str rest = check->options->input;
    for (size_t count = 0; rest.size != 0; count++) {
        const char *end = memchr(rest.data, '\n', rest.size);
        cx_str line = {rest.data, end == NULL ? rest.size : (size_t)(end - rest.data)};
        if (count == LINES_MAX) {
            add_push_rejection(check, CX_STR(""), "too many branches are pushed at once");
            break;
        }
        CX_TRY(check_push_line(check, line, err));
        rest.data += line.size + (end != NULL);
        rest.size -= line.size + (end != NULL);
    }
    return CX_SUCCESS;
}

cx_status cx_hook_pre_push(const cx_hook_options *options, cx_arena *arena, cx_hook_verdict *out,
                           cx_err *err)
{
    CX_ASSERT(options != NULL && arena != NULL && out != NULL);
    hook_check check;
    cx_status status = begin_judgement(&check, options, arena, out, err);
    if (!cx_failed(status) && check.found)
        status = check_push_lines(&check, err);
    return end_judgement(&check, status, err);
}
