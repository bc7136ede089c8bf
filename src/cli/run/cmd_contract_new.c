/*
 * cmd_contract_new.c - `cortex contract new`: writes a contract that is as narrow as its options.
 */
#include "cli/ledger/ledger.h"
#include "crypto/api.h"
#include "rules/api.h"
#include "contract/api.h"

#define OUTPUT_SCHEMA "schemas/agent_task_result.v1.json"

typedef struct draft {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_arena *arena;
    cx_err *err;
} draft;

static cx_str option_text(const draft *d, const char *name, const char *fallback)
{
    const char *value = cx_cli_value(d->args, name);
    return cx_str_z(value == NULL ? fallback : value);
}

static cx_status write_agent(draft *d, cx_json_list *list, const char *name, const char *role,
                             cx_str agent_id)
{
    cx_json_list agent = cx_json_list_begin(d->arena);
    cx_json_put_str(&agent, "role", cx_str_z(role));
    cx_json_put_str(&agent, "agent_id", agent_id);
    cx_json_put_object(list, name, &agent);
    return CX_SUCCESS;
}

/* The spec, and the schema that the agent's reply is bound to (§6). */
static cx_status write_inputs(draft *d, cx_json_list *list, cx_str spec)
{
    cx_json_list inputs = cx_json_list_begin(d->arena), artifacts = cx_json_list_begin(d->arena),
                 schema = cx_json_list_begin(d->arena);
    cx_bytes bytes;
    if (!cx_run_asset(OUTPUT_SCHEMA, &bytes))
        return cx_fail(d->err, CX_E_UNSUPPORTED, "this program was built without " OUTPUT_SCHEMA);
    cx_digest digest = cx_digest_of(bytes);
    cx_json_put_str(&schema, "name", CX_STR("output_schema"));
    cx_json_put_str(&schema, "uri", CX_STR(OUTPUT_SCHEMA));
    cx_json_put_digest(&schema, "sha256", &digest);
    cx_json_add_object(&artifacts, &schema);
    cx_json_put_str(&inputs, "spec", spec);
    cx_json_put_array(&inputs, "artifacts", &artifacts);
    cx_json_put_object(list, "inputs", &inputs);
    return CX_SUCCESS;
}

static cx_status write_tests(draft *d, cx_json_list *list)
{
    cx_json_list tests = cx_json_list_begin(d->arena);
    const cx_str *commands;
    size_t count;
    CX_TRY(cx_cli_all_values(d->cli, d->args, "test", &commands, &count, d->err));
    for (size_t i = 0; i < count; i++) {
        cx_json_list test = cx_json_list_begin(d->arena);
        cx_json_put_str(&test, "name", cx_arena_printf(d->arena, "test-%zu", i + 1));
        cx_json_put_str(&test, "cmd", commands[i]);
        cx_json_put_bool(&test, "must_pass", true);
        cx_json_add_object(&tests, &test);
    }
    cx_json_put_array(list, "acceptance_tests", &tests);
    return CX_SUCCESS;
}

static cx_status write_permissions(draft *d, cx_json_list *list)
{
    cx_json_list permissions = cx_json_list_begin(d->arena), none = cx_json_list_begin(d->arena);
    static const cx_str tool = {"codex", 5};
    cx_json_put_str(&permissions, "filesystem", CX_STR("workspace-write"));
    cx_json_put_str(&permissions, "shell", CX_STR("never"));
    cx_json_put_str(&permissions, "network", CX_STR("deny"));
    cx_json_put_strs(&permissions, "mcp_tools", &tool, 1);
    cx_json_put_object(list, "tool_permissions", &permissions);
    cx_json_put_strs(list, "mcp_tool_set", &tool, 1);
    cx_json_put_array(list, "forbidden_actions", &none);
    return CX_SUCCESS;
}

static cx_status write_other_members(draft *d, cx_json_list *list)
{
    cx_json_list retry = cx_json_list_begin(d->arena), rollback = cx_json_list_begin(d->arena),
                 outputs = cx_json_list_begin(d->arena), links = cx_json_list_begin(d->arena),
                 logs = cx_json_list_begin(d->arena), paths = cx_json_list_begin(d->arena),
                 patch = cx_json_list_begin(d->arena);
    cx_json_put_uint(&retry, "timeout_sec", cx_cli_number(d->args, "timeout", 600));
    cx_json_put_uint(&retry, "max_retries", cx_cli_number(d->args, "retries", 1));
    cx_json_put_uint(&retry, "retry_backoff_sec", 0);
    cx_json_put_object(list, "timeout_retry", &retry);
    cx_json_put_str(&rollback, "strategy", CX_STR("git_reset_hard"));
    cx_json_put_str(&rollback, "baseline_ref", option_text(d, "baseline", "HEAD"));
    cx_json_put_object(list, "rollback", &rollback);
    cx_json_put_str(&patch, "name", CX_STR("patch.diff"));
    cx_json_put_str(&patch, "type", CX_STR("patch"));
    cx_json_put_str(&patch, "acceptance", CX_STR("the tests pass"));
    cx_json_add_object(&outputs, &patch);
    cx_json_put_array(list, "required_outputs", &outputs);
    cx_json_put_array(list, "evidence_links", &links);
    cx_json_put_str(&logs, "run_id", CX_STR(""));
    cx_json_put_object(&logs, "paths", &paths);
    cx_json_put_object(list, "log_refs", &logs);
    return CX_SUCCESS;
}

/* What no run would accept is not a contract to start from. */
static cx_status check_contract(draft *d, const cx_json *contract)
{
    const cx_schema *schema;
    cx_schema_check_options options = CX_SCHEMA_CHECK_INIT;
    cx_schema_report report;
    CX_TRY(cx_run_schema("task_contract.v1.json", &schema, d->err));
    CX_TRY(cx_schema_check(schema, contract, &options, d->arena, &report, d->err));
    if (report.error_count == 0)
        return CX_SUCCESS;
    const cx_schema_error *first = &report.errors[0];
    return cx_fail(d->err, CX_E_USAGE, "a run would reject this contract: %.*s: %.*s",
                   (int)first->instance.size, first->instance.data, (int)first->message.size,
                   first->message.data);
}

static cx_status make_contract(draft *d, cx_buf *out)
{
    cx_json_list list = cx_json_list_begin(d->arena);
    cx_json contract;
    const cx_str *paths;
    size_t path_count;
    cx_bytes spec;
    cx_str role_name = option_text(d, "role", "WORKER"), agent = option_text(d, "agent", "agent-1");
    cx_run_role role;
    if (!cx_run_role_parse(role_name, &role))
        return cx_fail(d->err, CX_E_USAGE,
                       "option --role: found '%.*s', expected PM, TECH_LEAD, WORKER or another "
                       "role of the policies",
                       role_name.size > 60 ? 60 : (int)role_name.size, role_name.data);
    CX_TRY(cx_cli_read_text(d->cli, d->args->operands[0], &spec, d->err));
    CX_TRY(cx_cli_all_values(d->cli, d->args, "path", &paths, &path_count, d->err));
    if (path_count == 0 || cx_cli_value(d->args, "test") == NULL)
        return cx_fail(d->err, CX_E_USAGE,
                       "expected at least one --path PATH that may change and one --test COMMAND "
                       "that decides");
    cx_json_put_str(&list, "task_id", option_text(d, "id", "task_0001"));
    cx_json_put_str(&list, "task_type", CX_STR("IMPLEMENT"));
    CX_TRY(write_agent(d, &list, "owner_agent", "TECH_LEAD", agent));
    CX_TRY(write_agent(d, &list, "assigned_agent", cx_run_role_name(role), agent));
    CX_TRY(write_inputs(d, &list, cx_bytes_str(spec)));
    cx_json_put_strs(&list, "allowed_paths", paths, path_count);
    CX_TRY(write_tests(d, &list));
    CX_TRY(write_permissions(d, &list));
    CX_TRY(write_other_members(d, &list));
    if (cx_cli_has(d->args, "json"))
        return cx_cli_end_json(&list, out, d->err);
    CX_TRY(cx_json_list_end_object(&list, &contract, d->err));
    CX_TRY(check_contract(d, &contract));
    return cx_run_json_write(out, &contract, d->err);
}

static int run_contract_new(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    cx_buf out;
    draft d = {cli, args, &cli->arena, &err};
    if (cx_cli_number(args, "retries", 1) > 10)
        return cx_cli_misuse(args, "option --retries: expected at most 10");
    if (cx_cli_number(args, "timeout", 600) == 0)
        return cx_cli_misuse(args, "option --timeout: expected at least 1 second");
    cx_buf_init(&out, cli->alloc);
    cx_status status = make_contract(&d, &out);
    if (!cx_failed(status))
        status = cx_cli_deliver(cli, args, cx_buf_bytes(&out), &err);
    int code = cx_failed(status) ? cx_cli_fail(cli, "contract new", &err, cx_cli_has(args, "json"))
                                 : CX_EXIT_HOLDS;
    cx_buf_done(&out);
    return code;
}

static const cx_cli_operand operands[] = {{"SPEC", CX_CLI_TEXT, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT_MANY("path", 'p', CX_CLI_TEXT, "PATH",
                    "May be changed: a file, or a folder with '/' at its end; repeatable."),
    CX_CLI_OPT_MANY("test", 't', CX_CLI_TEXT, "COMMAND",
                    "Must pass; no shell, and on the allowlist; repeatable."),
    CX_CLI_OPT("id", 0, CX_CLI_TEXT, "TASK", "The task's id, 8 bytes at least; default task_0001."),
    CX_CLI_OPT("role", 0, CX_CLI_TEXT, "ROLE", "The role of the agent; default WORKER."),
    CX_CLI_OPT("agent", 0, CX_CLI_TEXT, "ID",
               "As in policies/agent_registry.json; default agent-1."),
    CX_CLI_OPT("baseline", 0, CX_CLI_TEXT, "REF", "Where the work starts; default HEAD."),
    CX_CLI_OPT("timeout", 0, CX_CLI_COUNT, "SECONDS",
               "For the agent and for each test; default 600."),
    CX_CLI_OPT("retries", 0, CX_CLI_COUNT, "N",
               "Attempts to fix what failed, at most 10; default 1."),
    CX_CLI_OPTION_OUTPUT("the contract"),
    CX_CLI_OPT_FLAG("json", 0, "The contract in one line; errors as JSON, too."),
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_contract_new = {
    .name = "contract new",
    .purpose = "write a new task contract",
    .about = "Prints a contract for one task: SPEC describes the task ('@FILE' or '-' reads it), "
             "--path names the only paths that may change, and --test names the tests that decide. "
             "Everything else is as narrow as possible: no network, no shell outside the sandbox. "
             "Edit it, check it with 'cortex contract lint', and run it with 'cortex run'.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 printed\n2 usage error\n3 could not be written",
    .example = "cortex contract new 'add() must add' -p src/calc.py -t 'python3 -m pytest -q' -o "
               "task.json",
    .run = run_contract_new,
};
