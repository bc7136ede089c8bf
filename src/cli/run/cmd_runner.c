/*
 * cmd_runner.c - `cortex runner add|list`: the agents of a repository, in policies/cortex.json.
 * Adding one writes the two members that a run reads: how it is started, and the digest of its
 * program (run.md §13 integrated).
 */
#include "cli/ledger/ledger.h"
#include "cli/run/run_place.h"

#include "os/api.h"
#include "command/api.h"
#include "contract/api.h"

#define CONFIG_NAME "policies/cortex.json"

typedef struct editing {
    const cx_agent_preset *preset; /* NULL: the words of the call are the argv */
    cx_cli *cli;
    const cx_cli_args *args;
    cx_arena *arena;
    const char *path;
    cx_json document;
    cx_run_config config;
} editing;

static cx_status open_config(editing *e, cx_err *err)
{
    cx_cli_place place = {0};
    cx_bytes bytes;
    cx_status status = cx_cli_place_open(e->cli, e->args, &place, err);
    if (!cx_failed(status)) {
        cx_str path = cx_arena_printf(e->arena, "%s/" CONFIG_NAME, place.worktree);
        e->path = path.data;
        if (path.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_cli_place_close(&place);
    CX_TRY(status);
    cx_facts facts;
    status = cx_path_facts(e->path, true, &facts, err);
    if (!cx_failed(status) && facts.kind != CX_FILE_REGULAR)
        return cx_fail(err, CX_E_FORMAT, "%s is not a regular file", e->path);
    if (!cx_failed(status))
        status = cx_cli_read_file(e->cli, e->path, &bytes, err);
    if (status.code == CX_E_NOT_FOUND)
        return cx_fail(err, CX_E_NOT_FOUND, "%s does not exist; 'cortex init' creates it", e->path);
    CX_TRY(status);
    CX_TRY(cx_run_json_read(cx_bytes_str(bytes), 0, e->arena, &e->document, err));
    return cx_run_config_read(cx_bytes_str(bytes), e->arena, &e->config, err);
}

/* `object` (NULL = none yet) with one member set. */
static cx_status with_member(editing *e, const cx_json *object, cx_str name, cx_json value,
                             cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(e->arena);
    for (uint32_t i = 0; object != NULL && i < object->count; i++)
        if (!cx_str_eq(cx_json_text(&object->members[i].name), name))
            cx_json_list_put(&list, cx_json_text(&object->members[i].name),
                             object->members[i].value);
    cx_json_list_put(&list, name, value);
    return cx_json_list_end_object(&list, out, err);
}

/* Sets document.<section>.<name>. */
static cx_status set_config_member(editing *e, const char *section, cx_str name, cx_json value,
                                   cx_err *err)
{
    cx_json changed;
    const cx_json *old = cx_json_get(&e->document, cx_str_z(section));
    CX_TRY(with_member(e, old, name, value, &changed, err));
    return with_member(e, &e->document, cx_str_z(section), changed, &e->document, err);
}

static cx_status find_program(editing *e, cx_run_executable *out, cx_err *err)
{
    const char *why = NULL, *name = e->preset != NULL ? e->preset->name : e->args->operands[1];
    cx_run_trust trust = {.folders = e->config.trusted_dirs.items,
                          .folder_count = e->config.trusted_dirs.count,
                          .owner_uid = e->config.has_trusted_uid ? e->config.trusted_uid : 0};
    CX_TRY(cx_run_trusted_find(&trust, cx_str_z(name), e->arena, out, &why, err));
    if (why == NULL)
        return CX_SUCCESS;
    if (e->preset != NULL)
        return cx_fail(
            err, CX_E_USAGE,
            "%s cannot be used: %s. 'cortex doctor' says where it is installed, and what "
            "to add to trusted_dirs, trusted_uid and read_only of " CONFIG_NAME,
            e->preset->title, why);
    return cx_fail(
        err, CX_E_USAGE,
        "'%s' cannot be a runner: %s. Name a program of the trusted folders; a script of "
        "the repository is an argument of its interpreter",
        name, why);
}

static cx_status make_word_list(editing *e, size_t count, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(e->arena);
    for (size_t i = 0; i < count; i++)
        cx_json_list_add(&list,
                         cx_json_make_str(cx_str_z(e->preset != NULL ? e->preset->argv[i]
                                                                     : e->args->operands[1 + i])));
    return cx_json_list_end_array(&list, out, err);
}

static cx_status runner_json(editing *e, bool is_mcp, cx_json *out, cx_err *err)
{
    cx_json_list runner = cx_json_list_begin(e->arena), tools = cx_json_list_begin(e->arena);
    cx_json argv;
    size_t words = 0;
    while (e->preset != NULL && e->preset->argv[words] != NULL)
        words++;
    CX_TRY(make_word_list(e, e->preset != NULL ? words : e->args->operand_count - 1, &argv, err));
    cx_json_put_str(&runner, "kind", is_mcp ? CX_STR("mcp") : CX_STR("exec"));
    cx_json_list_put(&runner, CX_STR("argv"), argv);
    if (e->preset != NULL) {
        cx_json_list env = cx_json_list_begin(e->arena);
        for (size_t i = 0; e->preset->env[i] != NULL; i++)
            cx_json_list_add(&env, cx_json_make_str(cx_str_z(e->preset->env[i])));
        cx_json_put_array(&runner, "env", &env);
        cx_json_put_bool(&runner, "network", true);
    }
    /* The tool that contracts name when an agent works in its own sandbox. */
    cx_json_list_add(&tools, cx_json_make_str(CX_STR("codex")));
    cx_json_put_array(&runner, "provides", &tools);
    return cx_json_list_end_object(&runner, out, err);
}

static cx_status integration_json(editing *e, const cx_run_executable *program, cx_json *out,
                                  cx_err *err)
{
    cx_json_list integration = cx_json_list_begin(e->arena);
    cx_json argv;
    CX_TRY(make_word_list(e, 1, &argv, err));
    cx_json_list_put(&integration, CX_STR("argv"), argv);
    cx_json_put_digest(&integration, "sha256", &program->sha256);
    return cx_json_list_end_object(&integration, out, err);
}

/* Names appear in events, reports and file names. */
static bool is_name(cx_str name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-";
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] == 0 || strchr(letters, name.data[i]) == NULL)
            return false;
    return name.size != 0 && name.size <= 64 && strchr("._-", name.data[0]) == NULL;
}

static cx_status answer_added_runner(editing *e, const cx_run_executable *program, bool diagnostic,
                                     cx_buf *out, cx_err *err)
{
    if (cx_cli_has(e->args, "json")) {
        cx_json_list root = cx_json_list_begin(e->arena);
        cx_json_put_str(&root, "config", cx_str_z(e->path));
        cx_json_put_str(&root, "name", cx_str_z(e->args->operands[0]));
        cx_json_put_str(&root, "program", program->path);
        cx_json_put_digest(&root, "sha256", &program->sha256);
        cx_json_put_bool(&root, "diagnostic_only", diagnostic);
        return cx_cli_end_json(&root, out, err);
    }
    cx_shown_add(out, cx_str_z(e->path));
    cx_buf_printf(out, ": runner %s starts ", e->args->operands[0]); /* letters, digits, . _ - */
    cx_shown_add(out, program->path);
    cx_buf_add_byte(out, '\n');
    if (diagnostic)
        cx_buf_add_z(out, "runner.mcp_only is true: its runs need --diagnostic and never merge; "
                          "'--full' makes them full runs\n");
    if (cx_cli_has(e->args, "full"))
        cx_buf_add_z(out, "runner.mcp_only is now false: programs that are no MCP servers do full "
                          "runs. The governor cannot answer what such an agent asks for, and sees "
                          "its tool calls only as it prints them; every manifest records this "
                          "(runner.mcp_only false). Sandbox and gates are the same\n");
    if (e->preset != NULL)
        cx_buf_printf(out,
                      "it needs the network (tool_permissions.network \"allow\" in the "
                      "contract, and the role's row or an approval) and a login in the "
                      "environment: %s\n",
                      e->preset->login[0]);
    cx_buf_add_z(out, "commit " CONFIG_NAME ": runs read it from the baseline\n");
    return cx_buf_check(out, err);
}

static cx_status add_runner(editing *e, cx_buf *out, cx_err *err)
{
    cx_str name = cx_str_z(e->args->operands[0]);
    const char *kind = cx_cli_value(e->args, "kind");
    const char *role = cx_cli_value(e->args, "role");
    bool is_mcp = kind != NULL && strcmp(kind, "mcp") == 0;
    cx_run_executable program = {0};
    cx_json value;
    cx_run_config checked;
    cx_buf text;
    if (e->args->operand_count == 1)
        e->preset = cx_agent_preset_find(name);
    if (e->args->operand_count == 1 && (e->preset == NULL || is_mcp))
        return cx_fail(err, CX_E_USAGE,
                       "expected PROGRAM: only claude, codex and gemini are built in, as exec");
    if (!is_name(name))
        return cx_fail(
            err, CX_E_USAGE,
            "NAME: found '%.*s', expected letters, digits, '.', '_' and '-', at most 64, "
            "a letter or digit first",
            (int)(name.size > 80 ? 80 : name.size), name.data);
    CX_TRY(open_config(e, err));
    CX_TRY(find_program(e, &program, err));
    CX_TRY(runner_json(e, is_mcp, &value, err));
    CX_TRY(set_config_member(e, "runners", name, value, err));
    CX_TRY(integration_json(e, &program, &value, err));
    CX_TRY(set_config_member(e, "integrations", name, value, err));
    if (cx_cli_has(e->args, "default"))
        CX_TRY(set_config_member(e, "runner", CX_STR("default"), cx_json_make_str(name), err));
    if (role != NULL)
        CX_TRY(set_config_member(e, "roles", cx_str_z(role), cx_json_make_str(name), err));
    if (cx_cli_has(e->args, "full"))
        CX_TRY(set_config_member(e, "runner", CX_STR("mcp_only"), cx_json_make_bool(false), err));
    cx_buf_init(&text, e->cli->alloc);
    cx_status status = cx_run_json_write(&text, &e->document, err);
    if (!cx_failed(status))
        status = cx_run_config_read(cx_buf_str(&text), e->arena, &checked, err);
    if (!cx_failed(status))
        status = cx_io_replace_file(e->cli->io, e->path, cx_buf_bytes(&text), err);
    cx_buf_done(&text);
    CX_TRY(status);
    return answer_added_runner(e, &program, !is_mcp && checked.mcp_only, out, err);
}

static cx_status list_json(editing *e, cx_buf *out, cx_err *err)
{
    cx_json_list root = cx_json_list_begin(e->arena), runners = cx_json_list_begin(e->arena);
    for (size_t i = 0; i < e->config.runner_count; i++) {
        const cx_run_runner_config *runner = &e->config.runners[i];
        const cx_run_integration *pinned = cx_run_config_integration(&e->config, runner->name);
        cx_json_list one = cx_json_list_begin(e->arena);
        cx_json_put_str(&one, "name", runner->name);
        cx_json_put_str(&one, "kind",
                        runner->kind == CX_RUNNER_MCP ? CX_STR("mcp") : CX_STR("exec"));
        cx_json_put_strs(&one, "argv", runner->argv.items, runner->argv.count);
        cx_json_put_bool(&one, "default", cx_str_eq(runner->name, e->config.default_runner));
        cx_json_put_bool(&one, "integrated", pinned != NULL);
        cx_json_add_object(&runners, &one);
    }
    cx_json_put_array(&root, "runners", &runners);
    cx_json_put_bool(&root, "mcp_only", e->config.mcp_only);
    return cx_cli_end_json(&root, out, err);
}

static cx_status list_runners(editing *e, cx_buf *out, cx_err *err)
{
    CX_TRY(open_config(e, err));
    if (cx_cli_has(e->args, "json"))
        return list_json(e, out, err);
    for (size_t i = 0; i < e->config.runner_count; i++) {
        const cx_run_runner_config *runner = &e->config.runners[i];
        const cx_run_integration *pinned = cx_run_config_integration(&e->config, runner->name);
        cx_shown_add(out, runner->name);
        cx_buf_add_z(out, runner->kind == CX_RUNNER_MCP ? "  mcp " : "  exec");
        for (size_t k = 0; k < runner->argv.count; k++) {
            cx_buf_add_byte(out, ' ');
            cx_shown_add(out, runner->argv.items[k]);
        }
        cx_buf_add_z(out, cx_str_eq(runner->name, e->config.default_runner) ? "  (default)" : "");
        cx_buf_add_z(out, pinned == NULL ? "  (not integrated: no run can use it)\n" : "\n");
    }
    return CX_SUCCESS;
}

typedef cx_status (*cx_editing_work)(editing *e, cx_buf *out, cx_err *err);

static int run_editing_job(cx_cli *cli, const cx_cli_args *args, const char *what,
                           cx_editing_work work)
{
    cx_err err = {0};
    cx_buf out;
    editing e = {.cli = cli, .args = args, .arena = &cli->arena};
    cx_buf_init(&out, cli->alloc);
    cx_status status = work(&e, &out, &err);
    int code = cx_failed(status) ? cx_cli_fail(cli, what, &err, cx_cli_has(args, "json"))
                                 : cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}

static int run_runner_add(cx_cli *cli, const cx_cli_args *args)
{
    return run_editing_job(cli, args, "runner add", add_runner);
}

static int run_runner_list(cx_cli *cli, const cx_cli_args *args)
{
    return run_editing_job(cli, args, "runner list", list_runners);
}

static const cx_cli_operand add_operands[] = {{"NAME", CX_CLI_TEXT, NULL, false, false},
                                              {"PROGRAM", CX_CLI_TEXT, NULL, true, true}};

static const cx_cli_option add_options[] = {
    CX_CLI_OPT("kind", 0, CX_CLI_CHOICE, "exec|mcp",
               "exec: a command that reads the prompt and prints its reply; mcp: a server."),
    CX_CLI_OPT_FLAG("default", 0, "Make it the default runner."),
    CX_CLI_OPT("role", 0, CX_CLI_CHOICE, "PM|TECH_LEAD|WORKER|REVIEWER",
               "Use it for agents of that role: PM makes contracts of requests (run --intent)."),
    CX_CLI_OPT_FLAG("full", 0,
                    "Let exec runners do full runs, which merge: sets runner.mcp_only to false."),
    CX_CLI_OPTION_REPO,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

static const cx_cli_option list_options[] = {CX_CLI_OPTION_REPO, CX_CLI_OPTION_JSON,
                                             CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_runner_add = {
    .name = "runner add",
    .purpose = "register a program as an agent of this repository",
    .about = "Writes how the agent NAME is started into policies/cortex.json, and pins the program "
             "by its SHA-256: when it changes, runs reject it until it is added again. PROGRAM is "
             "searched in the trusted folders only; the words after it are its arguments, which "
             "may contain the placeholders {cwd}, {schema}, {thread} and {output} (put '--' before "
             "words that begin with a dash). For claude, codex and gemini, arguments, environment "
             "and network are known: leave out PROGRAM. 'cortex doctor' says what they still "
             "need.",
    .operands = add_operands,
    .operand_count = CX_COUNT_OF(add_operands),
    .options = add_options,
    .option_count = CX_COUNT_OF(add_options),
    .exits = "0 written\n2 usage error, or no such program\n3 could not be written",
    .example = "cortex runner add claude --default\ncortex runner add script sh scripts/agent.sh",
    .run = run_runner_add,
};

const cx_cli_command cx_cli_runner_list = {
    .name = "runner list",
    .purpose = "list the agents of this repository",
    .about = "Shows the runners of policies/cortex.json as it is in the work tree.",
    .options = list_options,
    .option_count = CX_COUNT_OF(list_options),
    .exits = "0 shown\n2 usage error\n3 could not be read",
    .example = "cortex runner list",
    .run = run_runner_list,
};
