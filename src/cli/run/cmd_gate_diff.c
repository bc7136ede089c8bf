/*
 * cmd_gate_diff.c - `cortex gate diff`: would this work tree's changes pass the diff gate? (run.md
 * §9)
 */
#include <stdlib.h>
#include <string.h>

#include "cli/run/gate_report.h"
#include "cli/ledger/ledger.h"
#include "cli/run/run_place.h"
#include "contract/api.h"
#include "candidate/api.h"

static int run_gate_diff(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_option options[] = {
    CX_CLI_OPT("contract", 0, CX_CLI_FILE, "FILE",
               "Apply this contract: its baseline, allowed paths and binary outputs."),
    CX_CLI_OPT_MANY("allow", 0, CX_CLI_TEXT, "PATH",
                    "A path that may change, as in allowed_paths; instead of --contract."),
    CX_CLI_OPT("baseline", 0, CX_CLI_TEXT, "REF",
               "The commit to compare with; default the contract's, else HEAD."),
    CX_CLI_OPT("head", 0, CX_CLI_TEXT, "REF",
               "Check the commits from the baseline to this one, and no work tree."),
    CX_CLI_OPT("contract-in", 0, CX_CLI_TEXT, "PATH",
               "Apply the contract that the commit of --baseline has under this path; no change to "
               "that path is allowed."),
    CX_CLI_OPT_FLAG(
        "index", 0,
        "Check only the index and the commits, not the files on disk; in a hook of git, the "
        "index of that commit (GIT_INDEX_FILE)."),
    CX_CLI_OPTION_REPO,
    CX_CLI_OPTIONS_GATE,
    CX_CLI_OPTIONS_LINKS,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_gate_diff = {
    .name = "gate diff",
    .purpose = "check the changes in a work tree by the rules of a run",
    .about = "Compares every commit since the baseline, HEAD, the index and the files on disk with "
             "the baseline, by contents and without filters, attributes or flags, and checks the "
             "changes by the rules D01 to D15. Files that git ignores count as changes too.\n\nA "
             "run also compares with a snapshot taken before the agent started. It thereby finds "
             "changes of the repository itself (D02, D03) and ignores older changes; this command "
             "compares with the baseline only.\n\nWith --head the changes of a pull request are "
             "checked: every commit that the baseline does not have, and all of them together "
             "against the newest commit that both descend from. Contract and policies are those "
             "of the baseline; nothing is checked out, and no shallow clone will do.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = CX_CLI_EXITS_GATE,
    .example = "cortex gate diff --allow src/app/\n"
               "cortex gate diff --contract task.json --format sarif\n"
               "cortex gate diff --baseline origin/main --head HEAD --contract-in "
               ".cortex/contract.json",
    .run = run_gate_diff,
};

typedef struct gate_job {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_cli_place place;
    cx_run_findings lints; /* of the contract */
    cx_contract contract;
    cx_run_policy policy;
    cx_diff_options diff;
    cx_diff_report report;
    bool judged;
    cx_oid base, fork, head; /* --head: fork is what base and head both descend from */
    cx_str base_text;        /* of --contract-in and --head, else empty */
} gate_job;

/* `baseline` empty: the contract's own. */
static cx_status apply_contract(gate_job *job, cx_str text, cx_str baseline, cx_err *err)
{
    CX_TRY(cx_run_contract_check_at(text, baseline, &job->place.repo, &job->place.ground,
                                    &cx_run_contract_command_checks, &job->cli->arena, &job->lints,
                                    &job->contract, &job->policy, err));
    if (job->lints.refusing != 0)
        return CX_SUCCESS;
    return cx_diff_options_contract(&job->contract, &job->policy.config, &job->cli->arena,
                                    &job->diff, err);
}

static cx_status read_contract(gate_job *job, const char *path, cx_err *err)
{
    cx_bytes bytes;
    CX_TRY(cx_cli_read_file(job->cli, path, &bytes, err));
    return apply_contract(job, cx_bytes_str(bytes), job->base_text, err);
}

static cx_status read_contract_in(gate_job *job, cx_str path, cx_err *err)
{
    cx_run_blob kind;
    cx_bytes bytes;
    CX_TRY(job->place.repo.read(job->place.repo.arg, job->base_text, path,
                                CX_RUN_CONTRACT_BYTES_MAX, &job->cli->arena, &kind, &bytes, err));
    if (kind != CX_BLOB_FILE)
        return cx_fail(err, CX_E_NOT_FOUND, "the baseline %.12s has no contract at %.*s%s",
                       job->base_text.data, (int)(path.size > 200 ? 200 : path.size), path.data,
                       kind == CX_BLOB_TOO_BIG ? " of at most 1 MiB"
                       : kind == CX_BLOB_OTHER ? ": it is no regular file"
                                               : "; commit one there, or name another");
    job->diff.contract_path = path;
    return apply_contract(job, cx_bytes_str(bytes), job->base_text, err);
}

/* A commit that has to be here: nothing can be judged without it. */
static cx_status find_commit(gate_job *job, const char *option, const char *ref, cx_oid *out,
                             cx_err *err)
{
    cx_err why = {0};
    cx_status status = cx_git_resolve(job->place.git, cx_str_z(ref), out, &why);
    if (status.code == CX_E_NOT_FOUND)
        return cx_fail(err, CX_E_NOT_FOUND,
                       "--%s: this repository does not have the commit '%.100s'; a shallow clone "
                       "has the newest only: fetch the whole history",
                       option, ref);
    if (cx_failed(status))
        *err = why;
    return status;
}

static cx_status find_baseline(gate_job *job, cx_err *err)
{
    const char *baseline = cx_cli_value(job->args, "baseline");
    char text[CX_OID_TEXT_SIZE];
    CX_TRY(find_commit(job, "baseline", baseline, &job->base, err));
    cx_oid_text(&job->base, text);
    job->base_text = cx_arena_copy_str(&job->cli->arena, cx_str_z(text));
    return job->base_text.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status find_range(gate_job *job, const char *head, cx_err *err)
{
    bool shallow = false;
    CX_TRY(find_commit(job, "head", head, &job->head, err));
    CX_TRY(cx_git_is_shallow(job->place.git, &shallow, err));
    if (shallow)
        return cx_fail(
            err, CX_E_UNSUPPORTED,
            "this repository is a shallow clone: what its missing commits changed cannot "
            "be checked; fetch the whole history (git fetch --unshallow)");
    CX_TRY(cx_git_merge_base(job->place.git, &job->base, &job->head, &job->fork, err));
    job->diff.baseline_merges = true;
    return CX_SUCCESS;
}

/* The runtime root inside the work tree is the governor's, not the agent's. */
static cx_status read_skipped_gates(gate_job *job, cx_err *err)
{
    size_t size = strlen(job->place.worktree);
    const char *root = job->place.root;
    (void)err;
    if (strncmp(root, job->place.worktree, size) == 0 && root[size] == '/')
        job->diff.skip = root + size + 1;
    return CX_SUCCESS;
}

/* In a hook, git says which index the commit will be made of: that of `git commit -a` or `git
 * commit FILE` is another one. */
static const char *hook_index(const cx_cli_args *args)
{
    const char *index = getenv("GIT_INDEX_FILE");
    return cx_cli_has(args, "index") && index != NULL && index[0] != '\0' ? index : NULL;
}

static cx_status check_usage(const cx_cli_args *args, size_t allowed, cx_err *err)
{
    bool inside = cx_cli_has(args, "contract-in"), head = cx_cli_has(args, "head");
    if (cx_cli_has(args, "contract") + inside + (allowed != 0) != 1)
        return cx_fail(err, CX_E_USAGE,
                       "expected one of --contract FILE, --contract-in PATH, or "
                       "at least one --allow PATH");
    if ((inside || head) && !cx_cli_has(args, "baseline"))
        return cx_fail(err, CX_E_USAGE, "--%s: expected --baseline REF, too",
                       inside ? "contract-in" : "head");
    if (head && cx_cli_has(args, "index"))
        return cx_fail(err, CX_E_USAGE, "expected --head or --index, not both");
    return CX_SUCCESS;
}

static cx_status gate_diff_job(gate_job *job, cx_err *err)
{
    const char *contract = cx_cli_value(job->args, "contract");
    const char *inside = cx_cli_value(job->args, "contract-in");
    const char *baseline = cx_cli_value(job->args, "baseline");
    const char *head = cx_cli_value(job->args, "head");
    const cx_str *allowed;
    size_t count;
    CX_TRY(cx_cli_all_values(job->cli, job->args, "allow", &allowed, &count, err));
    CX_TRY(check_usage(job->args, count, err));
    CX_TRY(cx_cli_place_open(job->cli, job->args, &job->place, err));
    job->diff.git = job->place.git;
    job->diff.ground = &job->place.ground;
    job->diff.baseline = CX_STR("HEAD");
    job->diff.allowed_paths = allowed;
    job->diff.allowed_count = count;
    job->diff.index_only = cx_cli_has(job->args, "index");
    job->diff.index_file = hook_index(job->args);
    if (head != NULL || inside != NULL)
        CX_TRY(find_baseline(job, err));
    if (head != NULL)
        CX_TRY(find_range(job, head, err));
    if (contract != NULL)
        CX_TRY(read_contract(job, contract, err));
    if (inside != NULL)
        CX_TRY(read_contract_in(job, cx_str_z(inside), err));
    if (job->lints.refusing != 0)
        return CX_SUCCESS;
    if (baseline != NULL)
        job->diff.baseline = job->base_text.size != 0 ? job->base_text : cx_str_z(baseline);
    CX_TRY(read_skipped_gates(job, err));
    if (head != NULL)
        CX_TRY(cx_diff_gate_run_commits(&job->diff, &job->fork, &job->head, &job->cli->arena,
                                        &job->report, err));
    else
        CX_TRY(cx_diff_gate_run(&job->diff, &job->cli->arena, &job->report, err));
    job->judged = true;
    return CX_SUCCESS;
}

/* A contract that is refused: the same members, with its lints as violations. */
static cx_status lints_json(gate_job *job, cx_json *out, cx_err *err)
{
    cx_arena *arena = &job->cli->arena;
    cx_json_list object = cx_json_list_begin(arena);
    cx_json violations;
    CX_TRY(cx_run_findings_json(&job->lints, arena, &violations, err));
    cx_json_put_bool(&object, "allow", false);
    cx_json_list_put(&object, CX_STR("violations"), violations);
    return cx_json_list_end_object(&object, out, err);
}

static int run_gate_diff(cx_cli *cli, const cx_cli_args *args)
{
    gate_job *job = CX_ARENA_NEW(&cli->arena, gate_job);
    cx_err err = {0};
    if (job == NULL)
        return cx_cli_misuse(args, "out of memory");
    memset(job, 0, sizeof *job);
    job->cli = cli;
    job->args = args;
    cx_run_findings_init(&job->lints, &cli->arena);
    cx_cli_gate_report report = {.gate = "diff"};
    cx_status status = gate_diff_job(job, &err);
    if (!cx_failed(status))
        status = job->judged ? cx_diff_report_json(&job->report, &cli->arena, &report.json, &err)
                             : lints_json(job, &report.json, &err);
    report.findings = job->judged ? &job->report.findings : &job->lints;
    report.where_is_path = job->judged;
    report.subject = cx_cli_value(args, cx_cli_has(args, "contract") ? "contract" : "contract-in");
    cx_cli_links links;
    cx_cli_links_begin(&links, args, cx_cli_has(args, "output") ? NULL : job->place.worktree);
    report.links = &links;
    report.allow = report.findings->refusing == 0;
    int code = cx_failed(status)
                   ? cx_cli_fail(cli, args->command->name, &err, cx_cli_gate_json(args))
                   : cx_cli_gate_answer(cli, args, &report);
    if (job->judged)
        cx_diff_report_done(&job->report);
    cx_run_findings_done(&job->lints);
    cx_cli_place_close(&job->place);
    return code;
}
