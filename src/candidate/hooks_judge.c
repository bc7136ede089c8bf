/*
 * hooks_judge.c - what a hook says to a commit or a push (run.md §19).
 *
 * No contract, two of them, or one that cannot be read is a rejection: a hook that does not know
 * what is allowed allows nothing.
 */
#include "candidate/diff_contract.h"
#include "candidate/diff_parts.h"
#include "git/api.h"
#include "candidate/hooks.h"

#define BRANCHES "refs/heads/cortex/"
#define LINES_MAX 1000

typedef struct judge {
    const cx_hook_options *options;
    cx_arena *arena;
    cx_hook_judgement *out;
    cx_contract contract;
    cx_diff_options diff;
    bool found;
} judge;

static void add_rejection(judge *j, cx_str where, const char *message)
{
    cx_run_refuse(&j->out->findings, "hook_contract", where, CX_STR(""), "%s", message);
}

/* --- the contract ----------------------------------------------------------------------------- */

static bool is_of_run(const judge *j, cx_str run_id)
{
    cx_str component = cx_run_ref_component(run_id, j->arena);
    cx_str rest = j->out->branch;
    if (component.data == NULL || !cx_str_starts(rest, CX_STR(BRANCHES)))
        return false;
    rest.data += sizeof BRANCHES - 1;
    rest.size -= sizeof BRANCHES - 1;
    return rest.size > component.size && cx_str_starts(rest, component) &&
           rest.data[component.size] == '/';
}

static cx_status read_contract(judge *j, cx_str run_id, cx_err *err)
{
    cx_buf text;
    cx_str path = cx_arena_printf(j->arena, "%s/active/runs/%.*s/contract.json",
                                  j->options->store->root, (int)run_id.size, run_id.data);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&text, cx_alloc_default());
    cx_err why;
    cx_status status =
        cx_io_read_file(cx_io_system(), path.data, CX_RUN_CONTRACT_BYTES_MAX, &text, &why);
    cx_str kept = {NULL, 0};
    if (!cx_failed(status))
        kept = cx_arena_copy_str(j->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    if (cx_failed(status)) {
        cx_run_refuse(&j->out->findings, "hook_contract", path, CX_STR(""),
                      "the contract of the run cannot be read: %s", why.message);
        return CX_SUCCESS;
    }
    if (kept.data == NULL)
        return cx_fail_nomem(err);
    size_t before = j->out->findings.refusing;
    CX_TRY(cx_run_contract_read(kept, j->arena, &j->out->findings, &j->contract, err));
    if (j->out->findings.refusing != before)
        add_rejection(j, path, "the contract of the run is not valid");
    else
        j->found = true;
    return CX_SUCCESS;
}

static cx_status find_contract(judge *j, cx_err *err)
{
    cx_str *runs, chosen = {NULL, 0};
    size_t count = 0, matches = 0;
    CX_TRY(cx_git_head_ref(j->options->git, j->arena, &j->out->branch, err));
    cx_status status = cx_run_active_list(j->options->store, j->arena, &runs, &count, err);
    if (status.code == CX_E_NOT_FOUND)
        count = 0;
    else
        CX_TRY(status);
    for (size_t i = 0; i < count; i++)
        if (is_of_run(j, runs[i])) {
            chosen = runs[i];
            matches++;
        }
    if (matches == 0)
        add_rejection(j, j->out->branch,
                      "there is no active run that this branch belongs to; without a "
                      "contract nothing is allowed");
    else if (matches > 1)
        add_rejection(j, j->out->branch, "several active runs claim this branch");
    if (matches != 1)
        return CX_SUCCESS;
    j->out->run_id = chosen;
    return read_contract(j, chosen, err);
}

static cx_status begin_judgement(judge *j, const cx_hook_options *options, cx_arena *arena,
                                 cx_hook_judgement *out, cx_err *err)
{
    memset(j, 0, sizeof *j);
    memset(out, 0, sizeof *out);
    j->options = options;
    j->arena = arena;
    j->out = out;
    out->branch = out->run_id = CX_STR("");
    cx_run_findings_init(&out->findings, arena);
    CX_TRY(find_contract(j, err));
    if (!j->found)
        return CX_SUCCESS;
    j->diff.git = options->git;
    j->diff.index_file = options->index_file;
    return cx_diff_options_contract(&j->contract, NULL, arena, &j->diff, err);
}

/* Findings of the gate become the hook's. */
static void move_findings(judge *j, cx_diff_report *report)
{
    for (size_t i = 0; i < report->findings.list.count; i++) {
        const cx_run_finding *finding = &report->findings.list.items[i];
        if (!finding->informs)
            cx_run_refuse(&j->out->findings, finding->rule, finding->where, finding->detail, "%.*s",
                          (int)finding->message.size, finding->message.data);
    }
    j->out->findings.failed |= report->findings.failed;
    cx_diff_report_done(report);
}

static cx_status end_judgement(judge *j, cx_status status, cx_err *err)
{
    if (!cx_failed(status))
        status = cx_run_findings_check(&j->out->findings, err);
    if (cx_failed(status))
        cx_run_findings_done(&j->out->findings);
    return status;
}

/* --- pre-commit ------------------------------------------------------------------------------- */

static cx_status check_index(judge *j, cx_err *err)
{
    cx_diff_report report;
    j->diff.index_only = true;
    CX_TRY(cx_diff_judge(&j->diff, j->arena, &report, err));
    move_findings(j, &report);
    return CX_SUCCESS;
}

cx_status cx_hook_pre_commit(const cx_hook_options *options, cx_arena *arena,
                             cx_hook_judgement *out, cx_err *err)
{
    judge j;
    cx_status status = begin_judgement(&j, options, arena, out, err);
    if (!cx_failed(status) && j.found)
        status = check_index(&j, err);
    return end_judgement(&j, status, err);
}

/* --- pre-push --------------------------------------------------------------------------------- */

static void add_push_rejection(judge *j, cx_str ref, const char *message)
{
    cx_run_refuse(&j->out->findings, "hook_push", ref, CX_STR(""), "%s", message);
}

static cx_status check_range(judge *j, cx_str ref, const cx_oid *local, const cx_oid *remote,
                             cx_err *err)
{
    cx_oid from = *remote;
    bool above = false;
    cx_diff_report report;
    if (cx_oid_is_zero(remote))
        CX_TRY(cx_git_resolve(j->options->git, j->diff.baseline, &from, err));
    cx_err why;
    cx_status status = cx_git_is_ancestor(j->options->git, &from, local, &above, &why);
    if (status.code == CX_E_NOT_FOUND || (!cx_failed(status) && !above)) {
        add_push_rejection(j, ref,
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
    CX_TRY(cx_diff_judge_commits(&j->diff, &from, local, j->arena, &report, err));
    move_findings(j, &report);
    return CX_SUCCESS;
}

/* "<local ref> <local oid> <remote ref> <remote oid>" */
static cx_status check_push_line(judge *j, cx_str line, cx_err *err)
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
        add_push_rejection(j, CX_STR(""), "git names what is pushed in a form that we do not know");
        return CX_SUCCESS;
    }
    if (cx_oid_is_zero(&local)) {
        add_push_rejection(j, words[2], "deleting a branch is not allowed");
        return CX_SUCCESS;
    }
    return check_range(j, words[2], &local, &remote, err);
}

static cx_status check_push_lines(judge *j, cx_err *err)
{
    cx_str rest = j->options->input;
    for (size_t count = 0; rest.size != 0; count++) {
        const char *end = memchr(rest.data, '\n', rest.size);
        cx_str line = {rest.data, end == NULL ? rest.size : (size_t)(end - rest.data)};
        if (count == LINES_MAX) {
            add_push_rejection(j, CX_STR(""), "too many branches are pushed at once");
            break;
        }
        CX_TRY(check_push_line(j, line, err));
        rest.data += line.size + (end != NULL);
        rest.size -= line.size + (end != NULL);
    }
    return CX_SUCCESS;
}

cx_status cx_hook_pre_push(const cx_hook_options *options, cx_arena *arena, cx_hook_judgement *out,
                           cx_err *err)
{
    judge j;
    cx_status status = begin_judgement(&j, options, arena, out, err);
    if (!cx_failed(status) && j.found)
        status = check_push_lines(&j, err);
    return end_judgement(&j, status, err);
}
