/*
 * cmd_gate_command.c - `cortex gate command`: checks a command (run.md §8). Nothing is executed,
 * and approvals are read without being used up.
 */
#include <string.h>
#include <unistd.h>

#include "cli/run/gate_report.h"
#include "cli/ledger/ledger.h"
#include "cli/run/run_place.h"
#include "approval/api.h"
#include "contract/api.h"
#include "agent/api.h"

static int run_gate_command(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_operand operands[] = {{"COMMAND", CX_CLI_TEXT, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("contract", 0, CX_CLI_FILE, "FILE",
               "Apply this contract: its pack, forbidden actions and network policy."),
    CX_CLI_OPT_MANY("approval", 0, CX_CLI_FILE, "FILE",
                    "A signed approval for that contract, in addition to those in the runtime "
                    "root; it is not used up."),
    CX_CLI_OPT("pack", 0, CX_CLI_CHOICE, "low|medium|high",
               "The policy pack; default: none, which is the repository's command allowlist."),
    CX_CLI_OPT("network", 0, CX_CLI_TEXT, "POLICY", "deny, on-request or allow; default deny."),
    CX_CLI_OPT_MANY("forbid", 0, CX_CLI_TEXT, "ACTION",
                    "An action that is forbidden besides those of the policy."),
    CX_CLI_OPT("baseline", 0, CX_CLI_TEXT, "REF",
               "The commit whose policies and scripts apply; default the contract's, else HEAD."),
    CX_CLI_OPTION_REPO,
    CX_CLI_OPTIONS_GATE,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_gate_command = {
    .name = "gate command",
    .purpose = "check a command by the rules of a run, without running it",
    .about =
        "Splits COMMAND into tokens exactly, without a shell, and checks them by the rules C01 to "
        "C16: forbidden actions, network, wrappers, interpreters, git, the allowlist of the policy "
        "pack, scripts that differ from the baseline, arguments that leave the work tree, and the "
        "program itself, which must be in a trusted folder. Nothing is executed.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = CX_CLI_EXITS_GATE,
    .example = "cortex gate command 'pytest -q'\n"
               "cortex gate command 'bash scripts/test.sh' --pack medium --format sarif",
    .run = run_gate_command,
};

typedef struct gate_job {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_cli_place place;
    cx_run_findings findings;
    cx_contract contract;
    bool has_contract;
    cx_run_policy policy;
    cx_str commit;
    cx_run_approval_context context;
    cx_run_approvals approvals;
    cx_run_command_verdict verdict;
} gate_job;

static bool is_granted(void *arg, cx_str scope)
{
    const gate_job *job = arg;
    return job->has_contract && cx_run_approvals_find(&job->approvals, scope) != NULL;
}

/* The contract and its policies, or the policies of a commit. */
static cx_status load_rules(gate_job *job, cx_err *err)
{
    const char *path = cx_cli_value(job->args, "contract");
    const char *baseline = cx_cli_value(job->args, "baseline");
    cx_arena *arena = &job->cli->arena;
    CX_TRY(cx_cli_place_open(job->cli, job->args, &job->place, err));
    if (path != NULL) {
        cx_bytes bytes;
        CX_TRY(cx_cli_read_file(job->cli, path, &bytes, err));
        job->has_contract = true;
        return cx_run_contract_check(cx_bytes_str(bytes), &job->place.repo, &job->place.ground,
                                     &cx_run_contract_command_checks, arena, &job->findings,
                                     &job->contract, &job->policy, err);
    }
    cx_str ref = baseline == NULL ? CX_STR("HEAD") : cx_str_z(baseline);
    CX_TRY(job->place.repo.resolve(job->place.repo.arg, ref, arena, &job->commit, err));
    if (job->commit.size == 0)
        return cx_fail(err, CX_E_USAGE,
                       "option --baseline: found '%s', expected a commit of the repository",
                       ref.data);
    return cx_run_policy_load(&job->place.repo, job->commit, arena, &job->findings, &job->policy,
                              err);
}

static cx_status load_approvals(gate_job *job, cx_err *err)
{
    const cx_cli_given *given = NULL;
    if (!job->has_contract) {
        return cx_cli_has(job->args, "approval")
                   ? cx_fail(err, CX_E_USAGE, "option --approval: expected --contract FILE too")
                   : CX_SUCCESS;
    }
    job->commit = job->contract.baseline_commit;
    job->context = (cx_run_approval_context){.io = job->cli->io,
                                             .runtime_root = job->place.root,
                                             .policy = &job->policy,
                                             .contract_sha256 = job->contract.sha256,
                                             .agent_id = job->contract.assigned.agent_id};
    CX_TRY(cx_run_approvals_add_folder(&job->approvals, err));
    while ((given = cx_cli_next(job->args, "approval", given)) != NULL)
        CX_TRY(cx_run_approvals_add_file(&job->approvals, given->values[0], err));
    return CX_SUCCESS;
}

static cx_status read_rules(gate_job *job, cx_run_command_rules *out, cx_err *err)
{
    const char *pack = cx_cli_value(job->args, "pack");
    const cx_str *more;
    size_t more_count;
    cx_str_list own = job->contract.forbidden_actions;
    cx_run_pack chosen = job->has_contract ? job->contract.pack : CX_PACK_NONE;
    bool known = true;
    CX_TRY(cx_cli_all_values(job->cli, job->args, "forbid", &more, &more_count, err));
    cx_str *actions = CX_ARENA_ARRAY(&job->cli->arena, cx_str, own.count + more_count + 1);
    if (actions == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < own.count; i++)
        actions[i] = own.items[i];
    for (size_t i = 0; i < more_count; i++)
        actions[own.count + i] = more[i];
    if (pack != NULL)
        known = cx_run_pack_parse(cx_str_z(pack), &chosen);
    CX_TRY(cx_run_policy_rules(&job->policy, known ? chosen : CX_PACK_NONE,
                               (cx_str_list){actions, own.count + more_count}, &job->cli->arena,
                               out, err));
    out->pack_known = out->pack_known && known;
    return CX_SUCCESS;
}

static cx_status check_command(gate_job *job, cx_err *err)
{
    const char *network = cx_cli_value(job->args, "network");
    cx_str forbidden[] = {cx_str_z(job->place.worktree), cx_str_z(job->place.root)};
    cx_run_trust trust = cx_run_config_trust(&job->policy.config, forbidden, 2);
    cx_run_script_context scripts = {job->place.worktree, &job->place.repo, job->commit,
                                     job->cli->alloc};
    cx_run_command_rules rules;
    CX_TRY(read_rules(job, &rules, err));
    cx_str policy = CX_STR("deny");
    if (network != NULL)
        policy = cx_str_z(network);
    else if (job->has_contract)
        policy = cx_str_z(cx_run_network_name(job->contract.network));
    const cx_run_command_options how = {.rules = &rules,
                                        .network_policy = policy,
                                        .network_approved = is_granted(job, CX_STR("network")),
                                        .worktree = job->place.worktree,
                                        .script = cx_run_script_compare,
                                        .script_arg = &scripts,
                                        .granted = is_granted,
                                        .granted_arg = job,
                                        .trust = &trust};
    return cx_run_command_check(&how, cx_str_z(job->args->operands[0]), &job->cli->arena,
                                &job->verdict, err);
}

/* {allow, rule, argv, violations, executable} */
static cx_status make_gate_json(const gate_job *job, cx_json *out, cx_err *err)
{
    cx_arena *arena = &job->cli->arena;
    cx_json_list object = cx_json_list_begin(arena);
    const cx_run_command_verdict *verdict = &job->verdict;
    cx_json value;
    cx_json_put_bool(&object, "allow", job->findings.refusing == 0);
    cx_json_put_maybe(&object, "rule",
                      verdict->rule == NULL ? (cx_str){NULL, 0} : cx_str_z(verdict->rule));
    if (verdict->lexed)
        CX_TRY(cx_run_argv_json(&verdict->argv, arena, &value, err));
    else
        value = cx_json_make_null();
    cx_json_list_put(&object, CX_STR("argv"), value);
    CX_TRY(cx_run_findings_json(&job->findings, arena, &value, err));
    cx_json_list_put(&object, CX_STR("violations"), value);
    if (verdict->executable.path.data != NULL) {
        cx_json_list executable = cx_json_list_begin(arena);
        cx_json_put_str(&executable, "path", verdict->executable.path);
        cx_json_put_digest(&executable, "sha256", &verdict->executable.sha256);
        cx_json_put_object(&object, "executable", &executable);
    }
    return cx_json_list_end_object(&object, out, err);
}

/* An unusable contract or policy rejects before the command is checked. */
static cx_status gate_command_job(gate_job *job, cx_err *err)
{
    CX_TRY(load_rules(job, err));
    if (job->findings.refusing != 0)
        return CX_SUCCESS;
    CX_TRY(load_approvals(job, err));
    CX_TRY(check_command(job, err));
    for (size_t i = 0; i < job->approvals.refused.list.count; i++) {
        const cx_run_finding *finding = &job->approvals.refused.list.items[i];
        cx_run_findings_inform(&job->findings, finding->rule, finding->where, finding->detail,
                               "%.*s", (int)finding->message.size, finding->message.data);
    }
    if (job->verdict.ignored_actions != 0)
        cx_run_findings_inform(&job->findings, "C07", CX_STR(""), CX_STR(""),
                               "%zu forbidden actions are blank and forbid nothing",
                               job->verdict.ignored_actions);
    if (!job->verdict.allow)
        cx_run_findings_reject(&job->findings, job->verdict.rule, CX_STR(""), CX_STR(""), "%.*s",
                               (int)job->verdict.reason.size, job->verdict.reason.data);
    return CX_SUCCESS;
}

static int run_gate_command(cx_cli *cli, const cx_cli_args *args)
{
    gate_job *job = CX_ARENA_NEW(&cli->arena, gate_job);
    cx_err err = {0};
    if (job == NULL)
        return cx_cli_misuse(args, "out of memory");
    memset(job, 0, sizeof *job);
    job->cli = cli;
    job->args = args;
    cx_run_findings_init(&job->findings, &cli->arena);
    cx_run_approvals_init(&job->approvals, &job->context, &cli->arena);
    cx_cli_gate_report report = {
        .gate = "command", .findings = &job->findings, .text = cx_str_z(args->operands[0])};
    cx_status status = gate_command_job(job, &err);
    if (!cx_failed(status))
        status = make_gate_json(job, &report.json, &err);
    report.allow = job->findings.refusing == 0;
    int code = cx_failed(status)
                   ? cx_cli_fail(cli, args->command->name, &err, cx_cli_gate_json(args))
                   : cx_cli_gate_answer(cli, args, &report);
    cx_run_approvals_done(&job->approvals);
    cx_run_findings_done(&job->findings);
    cx_cli_place_close(&job->place);
    return code;
}
