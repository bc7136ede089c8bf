/*
 * cmd_contract_explain.c - `cortex contract explain`: what a run of a contract would be allowed.
 */
#include <stdlib.h>

#include "cli/run/gate_report.h"
#include "cli/ledger/ledger.h"
#include "cli/run/run_place.h"
#include "contract/api.h"
#include "governor/api.h"

typedef struct explain_job {
    cx_cli *cli;
    cx_cli_place place;
    cx_run_findings findings; /* of the lints */
    cx_run_findings policy_findings;
    cx_contract contract;
    cx_run_policy policy;
    cx_run_tree tree;
    cx_json refusals; /* [{gate, reason}]: what a run would refuse now, besides the contract */
    size_t refusal_count;
} explain_job;

static void add_refusal(cx_json_list *list, cx_str gate, cx_str reason)
{
    cx_json_list one = cx_json_list_begin(list->arena);
    cx_json value;
    cx_json_put_str(&one, "gate", gate);
    cx_json_put_str(&one, "reason", reason);
    if (cx_failed(cx_json_list_end_object(&one, &value, NULL)))
        list->failed = true;
    else
        cx_json_list_add(list, value);
}

/* The gates of a dry run that reject; the policy's findings are listed apart. */
static void list_gates(const cx_json *dry, cx_json_list *list)
{
    const cx_json *gates = cx_json_get(dry, CX_STR("gates"));
    for (uint32_t i = 0; gates != NULL && i < gates->count; i++) {
        const cx_json_member *gate = &gates->members[i];
        const cx_json *violations = cx_json_get(&gate->value, CX_STR("violations"));
        if (cx_str_is(cx_json_text(&gate->name), "policy"))
            continue;
        for (uint32_t k = 0; violations != NULL && k < violations->count; k++)
            add_refusal(list, cx_json_text(&gate->name), cx_json_text(&violations->items[k]));
    }
}

/* Makes the checks that `cortex run` makes before an agent starts. */
static cx_status plan_run(explain_job *job, const cx_cli_args *args, cx_bytes contract, cx_err *err)
{
    cx_arena *arena = &job->cli->arena;
    cx_run_options options = {.alloc = job->cli->alloc,
                              .io = job->cli->io,
                              .repo = cx_cli_value(args, "repo"),
                              .contract = contract,
                              .runtime_root = getenv(CX_RUN_ROOT_ENV)};
    cx_json_list list = cx_json_list_begin(arena);
    cx_json dry;
    cx_err why = {0};
    bool allow;
    cx_status status = cx_run_dry(&options, arena, &dry, &allow, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status))
        add_refusal(&list, CX_STR("start"), cx_arena_copy_str(arena, cx_str_z(why.message)));
    else
        list_gates(&dry, &list);
    CX_TRY(cx_json_list_end_array(&list, &job->refusals, err));
    job->refusal_count = job->refusals.count;
    return CX_SUCCESS;
}

static cx_status explain_contract(explain_job *job, const cx_cli_args *args, cx_err *err)
{
    cx_arena *arena = &job->cli->arena;
    cx_bytes bytes;
    CX_TRY(cx_cli_read_file(job->cli, args->operands[0], &bytes, err));
    CX_TRY(cx_cli_place_open(job->cli, args, &job->place, err));
    CX_TRY(cx_run_contract_check(cx_bytes_str(bytes), &job->place.repo, &job->place.ground,
                                 &cx_run_contract_command_checks, arena, &job->findings,
                                 &job->contract, &job->policy, err));
    if (cx_run_findings_have(&job->findings, "K01"))
        return cx_fail(err, CX_E_FORMAT,
                       "this is not a task contract; 'cortex contract lint' lists the errors");
    if (job->contract.baseline_commit.size != 0)
        CX_TRY(job->place.repo.list(job->place.repo.arg, job->contract.baseline_commit, arena,
                                    &job->tree, err));
    CX_TRY(cx_run_gate_policy(&job->policy, &job->contract, &job->tree, &job->place.ground, NULL,
                              &job->policy_findings, err));
    return plan_run(job, args, bytes, err);
}

static size_t count_covered_files(const explain_job *job, cx_str path)
{
    size_t count = 0;
    for (size_t i = 0; i < job->tree.count; i++)
        count += cx_run_path_covers(path, job->tree.files[i]) ? 1 : 0;
    return count;
}

static void write_paths_json(explain_job *job, cx_json_list *object)
{
    cx_json_list list = cx_json_list_begin(object->arena);
    for (size_t i = 0; i < job->contract.allowed_paths.count; i++) {
        cx_json_list one = cx_json_list_begin(object->arena);
        cx_str path = job->contract.allowed_paths.items[i];
        cx_json_put_str(&one, "path", path);
        cx_json_put_bool(&one, "valid", cx_run_path_lint(path, &job->place.ground) == NULL);
        cx_json_put_bool(&one, "wide", cx_run_path_wide(path, &job->tree));
        cx_json_put_uint(&one, "files", count_covered_files(job, path));
        cx_json_add_object(&list, &one);
    }
    cx_json_put_array(object, "allowed_paths", &list);
}

static cx_status write_demand_json(cx_json_list *test, const cx_tests_requirement *demand,
                                   cx_err *err)
{
    cx_json_list object = cx_json_list_begin(test->arena);
    cx_json value;
    if (demand->format == CX_TESTS_NO_REPORT)
        return CX_SUCCESS;
    cx_json_put_str(&object, "format", cx_str_z(cx_tests_format_name(demand->format)));
    if (demand->path.data != NULL)
        cx_json_put_str(&object, "path", demand->path);
    cx_json_put_uint(&object, "min_tests", demand->min_tests);
    cx_json_put_bool(&object, "same_as_baseline", demand->same_as_baseline);
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    cx_json_list_put(test, CX_STR("report"), value);
    return CX_SUCCESS;
}

static cx_status write_tests_json(explain_job *job, cx_json_list *object, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(object->arena);
    for (size_t i = 0; i < job->contract.test_count; i++) {
        const cx_contract_test *test = &job->contract.tests[i];
        cx_json_list one = cx_json_list_begin(object->arena);
        cx_json_put_str(&one, "name", test->name);
        cx_json_put_str(&one, "cmd", test->cmd);
        cx_json_put_bool(&one, "must_pass", test->must_pass);
        CX_TRY(write_demand_json(&one, &test->report, err));
        cx_json_add_object(&list, &one);
    }
    cx_json_put_array(object, "acceptance_tests", &list);
    return CX_SUCCESS;
}

static cx_status write_explanation_json(explain_job *job, cx_json_list *object, cx_err *err)
{
    cx_arena *arena = &job->cli->arena;
    const cx_contract *contract = &job->contract;
    cx_json errors, violations, summary;
    CX_TRY(cx_run_findings_json(&job->findings, arena, &errors, err));
    CX_TRY(cx_run_gate_violations(&job->policy_findings, arena, &violations, err));
    CX_TRY(cx_run_role_summary(contract, &job->policy, arena, &summary, err));
    cx_json_put_str(object, "task_id", contract->task_id);
    cx_json_put_maybe(object, "baseline_commit", contract->baseline_commit);
    cx_json_put_bool(object, "valid", job->findings.refusing == 0);
    cx_json_list_put(object, CX_STR("errors"), errors);
    cx_json_put_bool(object, "policy_allows", job->policy_findings.refusing == 0);
    cx_json_list_put(object, CX_STR("violations"), violations);
    cx_json_list_put(object, CX_STR("refusals"), job->refusals);
    cx_json_put_str(object, "policy_pack", cx_str_z(cx_run_pack_name(contract->pack)));
    cx_json_put_str(object, "policies",
                    job->policy.built_in ? CX_STR("built-in") : CX_STR("baseline"));
    write_paths_json(job, object);
    CX_TRY(write_tests_json(job, object, err));
    cx_json_put_uint(object, "timeout_sec", contract->timeout_sec);
    cx_json_put_uint(object, "max_retries", contract->max_retries);
    cx_json_put_bool(object, "audit_only", contract->audit_only);
    cx_json_put_bool(object, "needs_network", cx_run_task_needs_network(contract, NULL));
    cx_json_put_strs(object, "network_hosts", contract->network_hosts.items,
                     contract->network_hosts.count);
    cx_json_list_put(object, CX_STR("role_contract_summary"), summary);
    return CX_SUCCESS;
}

/* --- text ------------------------------------------------------------------------------------- */

static void print_field(cx_buf *out, const char *label, cx_str text)
{
    cx_buf_printf(out, "%-12s ", label);
    cx_shown_add(out, text);
    cx_buf_add_byte(out, '\n');
}

static void print_findings(cx_buf *out, const char *label, const cx_run_findings *findings)
{
    for (size_t i = 0; i < findings->list.count; i++) {
        const cx_run_finding *finding = &findings->list.items[i];
        cx_buf_printf(out, "%-12s %s%s ", label, finding->rule, finding->informs ? " (note)" : "");
        cx_shown_add(out, finding->where);
        cx_buf_add_z(out, ": ");
        cx_shown_add(out, finding->message);
        cx_buf_add_byte(out, '\n');
    }
}

static void print_demand(cx_buf *out, const cx_tests_requirement *demand)
{
    if (demand->format == CX_TESTS_NO_REPORT)
        return;
    cx_buf_printf(out, "%-12s its %s report, ", "", cx_tests_format_name(demand->format));
    cx_shown_add(out, demand->path.data == NULL ? CX_STR("the standard output") : demand->path);
    cx_buf_printf(out, ", must name at least %u tests that ran, and none that failed",
                  demand->min_tests);
    if (demand->same_as_baseline)
        cx_buf_add_z(out, "; all that pass at the baseline, where it is run first, must pass");
    cx_buf_add_byte(out, '\n');
}

static void write_text(const explain_job *job, cx_buf *out)
{
    const cx_contract *contract = &job->contract;
    const cx_run_role_row *row = &job->policy.roles[contract->assigned.role];
    print_field(out, "task", contract->task_id);
    print_field(out, "baseline",
                contract->baseline_commit.size == 0 ? CX_STR("(does not resolve)")
                                                    : contract->baseline_commit);
    cx_buf_printf(out, "%-12s %s ", "agent", cx_run_role_name(contract->assigned.role));
    cx_shown_add(out, contract->assigned.agent_id);
    cx_buf_add_byte(out, '\n');
    if (row->purpose.data != NULL)
        print_field(out, "purpose", row->purpose);
    cx_buf_printf(out, "%-12s filesystem %s, shell %s, network %s, pack %s\n", "may",
                  cx_run_filesystem_name(contract->filesystem), cx_run_shell_name(contract->shell),
                  cx_run_network_name(contract->network), cx_run_pack_name(contract->pack));
    for (size_t i = 0; i < contract->allowed_paths.count; i++) {
        cx_str path = contract->allowed_paths.items[i];
        cx_buf_printf(out, "%-12s ", "may change");
        cx_shown_add(out, path);
        cx_buf_printf(out, " (%zu files now%s)\n", count_covered_files(job, path),
                      cx_run_path_wide(path, &job->tree) ? ", wide: needs an approval" : "");
    }
    for (size_t i = 0; i < contract->network_hosts.count; i++) {
        cx_buf_printf(out, "%-12s ", "may reach");
        cx_shown_add(out, contract->network_hosts.items[i]);
        cx_buf_add_z(out, contract->network == CX_NETWORK_DENY
                              ? " (no: network is deny)\n"
                              : ", through the proxy that records it\n");
    }
    for (size_t i = 0; i < contract->test_count; i++) {
        cx_buf_printf(out, "%-12s ", contract->tests[i].must_pass ? "must pass" : "is run");
        cx_shown_add(out, contract->tests[i].cmd);
        cx_buf_add_byte(out, '\n');
        print_demand(out, &contract->tests[i].report);
    }
    cx_buf_printf(out, "%-12s %u s a command, %u more attempts\n", "has", contract->timeout_sec,
                  contract->max_retries);
    print_findings(out, "contract", &job->findings);
    print_findings(out, "policy", &job->policy_findings);
    for (size_t i = 0; i < job->refusal_count; i++) {
        const cx_json *one = &job->refusals.items[i];
        cx_buf_printf(out, "%-12s ", "refused");
        cx_shown_add(out, cx_json_text(cx_json_get(one, CX_STR("gate"))));
        cx_buf_add_z(out, ": ");
        cx_shown_add(out, cx_json_text(cx_json_get(one, CX_STR("reason"))));
        cx_buf_add_byte(out, '\n');
    }
    if (job->findings.refusing + job->policy_findings.refusing + job->refusal_count == 0)
        cx_buf_add_z(out, "a run would refuse nothing before its agent starts\n");
}

static int run_contract_explain(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    explain_job job = {.cli = cli};
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    cx_run_findings_init(&job.findings, &cli->arena);
    cx_run_findings_init(&job.policy_findings, &cli->arena);
    cx_status status = explain_contract(&job, args, &err);
    if (!cx_failed(status) && cx_cli_has(args, "json")) {
        cx_json_list object = cx_json_list_begin(&cli->arena);
        status = write_explanation_json(&job, &object, &err);
        if (!cx_failed(status))
            status = cx_cli_end_json(&object, &out, &err);
    } else if (!cx_failed(status)) {
        write_text(&job, &out);
    }
    int code = cx_failed(status)
                   ? cx_cli_fail(cli, args->operands[0], &err, cx_cli_has(args, "json"))
                   : cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_cli_place_close(&job.place);
    cx_run_findings_done(&job.findings);
    cx_run_findings_done(&job.policy_findings);
    cx_buf_done(&out);
    return code;
}

static const cx_cli_operand operands[] = {{"CONTRACT", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPTION_REPO, CX_CLI_OPT_FLAG("json", 0, "One line of JSON instead of text."),
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_contract_explain = {
    .name = "contract explain",
    .purpose = "show what a run of a contract would be allowed to do",
    .about = "Explains what CONTRACT means under the policies of its baseline: the agent, its "
             "rights, the paths and how many files they contain now, the tests that must pass, and "
             "what a run would reject. It decides nothing: 'contract lint' and 'gate policy' have "
             "exit codes for that.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 explained, whatever the result\n2 usage error\n3 could not be read",
    .example = "cortex contract explain task.json",
    .run = run_contract_explain,
};
