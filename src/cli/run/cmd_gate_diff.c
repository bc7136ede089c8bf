/*
 * cmd_gate_diff.c - `cortex gate diff`: would this work tree's changes pass the diff gate? (run.md
 * §9)
 */
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
    CX_CLI_OPT_FLAG("index", 0, "Check only the index and the commits, not the files on disk."),
    CX_CLI_OPTION_REPO,
    CX_CLI_OPTIONS_GATE,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_gate_diff = {
    .name = "gate diff",
    .purpose = "check the changes in a work tree by the rules of a run",
    .about = "Compares every commit since the baseline, HEAD, the index and the files on disk with "
             "the baseline, by contents and without filters, attributes or flags, and checks the "
             "changes by the rules D01 to D15. Files that git ignores count as changes too.\n\nA "
             "run also compares with a snapshot taken before the agent started. It thereby finds "
             "changes of the repository itself (D02, D03) and ignores older changes; this command "
             "compares with the baseline only.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = CX_CLI_EXITS_GATE,
    .example = "cortex gate diff --allow src/app/\n"
               "cortex gate diff --contract task.json --format sarif",
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
} gate_job;

static cx_status read_contract(gate_job *job, const char *path, cx_err *err)
{
    cx_bytes bytes;
    CX_TRY(cx_cli_read_file(job->cli, path, &bytes, err));
    CX_TRY(cx_run_contract_check(cx_bytes_str(bytes), &job->place.repo, &job->place.ground,
                                 &cx_run_contract_command_checks, &job->cli->arena, &job->lints,
                                 &job->contract, &job->policy, err));
    if (job->lints.refusing != 0)
        return CX_SUCCESS;
    return cx_diff_options_contract(&job->contract, &job->policy.config, &job->cli->arena,
                                    &job->diff, err);
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

static cx_status gate_diff_job(gate_job *job, cx_err *err)
{
    const char *contract = cx_cli_value(job->args, "contract");
    const char *baseline = cx_cli_value(job->args, "baseline");
    const cx_str *allowed;
    size_t count;
    CX_TRY(cx_cli_all_values(job->cli, job->args, "allow", &allowed, &count, err));
    if ((contract == NULL) == (count == 0))
        return cx_fail(err, CX_E_USAGE, "expected --contract FILE, or at least one --allow PATH");
    CX_TRY(cx_cli_place_open(job->cli, job->args, &job->place, err));
    job->diff.git = job->place.git;
    job->diff.ground = &job->place.ground;
    job->diff.baseline = CX_STR("HEAD");
    job->diff.allowed_paths = allowed;
    job->diff.allowed_count = count;
    job->diff.index_only = cx_cli_has(job->args, "index");
    if (contract != NULL)
        CX_TRY(read_contract(job, contract, err));
    if (job->lints.refusing != 0)
        return CX_SUCCESS;
    if (baseline != NULL)
        job->diff.baseline = cx_str_z(baseline);
    CX_TRY(read_skipped_gates(job, err));
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
    report.subject = cx_cli_value(args, "contract");
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
