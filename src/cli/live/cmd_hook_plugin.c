/*
 * cmd_hook_plugin.c - `cortex hook plugin claude DIR`: the hooks as a plugin of Claude Code.
 *
 *   U1  A folder that has something else in it than an earlier plugin of ours is not written to.
 */
#include <string.h>

#include "cli/ledger/ledger.h"
#include "cli/live/agent_file.h"
#include "cli/live/live.h"
#include "os/api.h"

typedef struct plugin {
    cx_cli *cli;
    const cx_cli_args *args;
    const char *folder;
    cx_live_hook hook;
    cx_agent_file about, hooks; /* plugin.json, hooks.json */
} plugin;

/* --- the two files ---------------------------------------------------------------------------- */

static cx_status about_text(plugin *p, cx_str *out, cx_err *err)
{
    *out = cx_arena_printf(&p->cli->arena,
                           "{\n  \"name\": \"cortex\",\n  \"version\": \"%s\",\n  \"description\": "
                           "\"Each tool call is decided by policy and recorded by Cortex\",\n  "
                           "\"author\": {\"name\": \"Cortex\"}\n}\n",
                           cx_version());
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status hooks_text(plugin *p, cx_buf *out, cx_err *err)
{
    static const char start[] = "{\n  \"description\": \"Hooks of Cortex\"\n}\n";
    const cx_live_register_options options = {.managed = false};
    return cx_live_register_add(CX_STR(start), &p->hook, &options, &p->cli->arena, out, err);
}

/* U1 */
static cx_status check_folder(plugin *p, cx_err *err)
{
    cx_json value;
    cx_err ignored;
    CX_TRY(cx_agent_file_read(p->cli, p->about.path, true, &p->about, err));
    CX_TRY(cx_agent_file_read(p->cli, p->hooks.path, true, &p->hooks, err));
    if (!p->about.there && !p->hooks.there)
        return CX_SUCCESS;
    bool ours = p->about.there &&
                !cx_failed(cx_json_parse_text(p->about.text, &p->cli->arena, &value, &ignored)) &&
                cx_str_is(CX_JSON_GET_STR(&value, "name"), "cortex");
    return ours ? CX_SUCCESS
                : cx_fail(err, CX_E_EXISTS, "%s has a plugin that is not ours: name a new folder",
                          p->folder);
}

/* --- the command ------------------------------------------------------------------------------ */

static cx_status prepare_plugin(plugin *p, cx_err *err)
{
    const char *mode = cx_cli_value(p->args, "mode"), *home, *names[2];
    static const char *const below[] = {".claude-plugin/plugin.json", "hooks/hooks.json"};
    CX_TRY(cx_cli_read_agent(p->args->operands[0], &p->hook.agent, err));
    if (p->hook.agent != CX_LIVE_CLAUDE)
        return cx_fail(err, CX_E_USAGE,
                       "only Claude Code's plugins are written: 'cortex hook install %s' changes "
                       "its configuration",
                       p->args->operands[0]);
    p->hook.mode = CX_LIVE_OBSERVE;
    if (mode != NULL && !cx_live_mode_parse(cx_str_z(mode), &p->hook.mode))
        return cx_fail(err, CX_E_USAGE, "option --mode: expected observe, ask or enforce");
    CX_TRY(cx_cli_program_path(p->cli, &p->hook.program, err));
    if (cx_cli_value(p->args, "home") != NULL) {
        CX_TRY(cx_cli_home_path(p->cli, p->args, &home, err));
        CX_TRY(cx_cli_real_path(p->cli, home, &p->hook.home, err));
    }
    for (size_t i = 0; i < 2; i++) {
        names[i] = cx_arena_printf(&p->cli->arena, "%s/%s", p->folder, below[i]).data;
        if (names[i] == NULL)
            return cx_fail_nomem(err);
    }
    p->about.path = names[0];
    p->hooks.path = names[1];
    CX_TRY(cx_cli_outside_homes(p->cli->io, p->folder, err));
    return check_folder(p, err);
}

static cx_status write_plugin(plugin *p, cx_buf *out, cx_err *err)
{
    cx_str about;
    cx_buf hooks;
    CX_TRY(about_text(p, &about, err));
    cx_buf_init(&hooks, p->cli->alloc);
    cx_status status = hooks_text(p, &hooks, err);
    if (!cx_failed(status))
        status = cx_agent_file_write(p->cli, &p->about, about, 0644, err);
    if (!cx_failed(status))
        status = cx_agent_file_write(p->cli, &p->hooks, cx_buf_str(&hooks), 0644, err);
    cx_buf_done(&hooks);
    CX_TRY(status);
    if (cx_cli_has(p->args, "json")) {
        cx_json_list root = cx_json_list_begin(&p->cli->arena);
        cx_json_put_str(&root, "folder", cx_str_z(p->folder));
        cx_json_put_z(&root, "mode", cx_live_mode_name(p->hook.mode));
        return cx_cli_end_json(&root, out, err);
    }
    cx_buf_add_z(out, "written: ");
    cx_shown_add(out, cx_str_z(p->folder));
    cx_buf_printf(out, ", mode %s\nclaude --plugin-dir ", cx_live_mode_name(p->hook.mode));
    cx_shown_add(out, cx_str_z(p->folder));
    cx_buf_add_z(out, " loads it for one session; settings with disableAllHooks switch it off\n");
    return cx_buf_check(out, err);
}

static int run_plugin(cx_cli *cli, const cx_cli_args *args)
{
    plugin p = {.cli = cli, .args = args, .folder = args->operands[1]};
    cx_err err = {0};
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    cx_status status = prepare_plugin(&p, &err);
    if (!cx_failed(status))
        status = write_plugin(&p, &out, &err);
    int code = cx_failed(status) ? cx_cli_ledger_fail(cli, args, &err)
                                 : cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}

static const cx_cli_operand agent_and_folder[] = {{"AGENT", CX_CLI_CHOICE, "claude", false, false},
                                                  {"DIR", CX_CLI_FILE, NULL, false, false}};
static const cx_cli_option plugin_options[] = {
    CX_CLI_OPT("mode", 0, CX_CLI_CHOICE, "observe|ask|enforce",
               "As of 'cortex hook install'; default observe."),
    CX_CLI_OPT("home", 0, CX_CLI_FILE, "DIR",
               "Record in this data directory; default the one of whoever loads the plugin."),
    CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_hook_plugin = {
    .name = "hook plugin",
    .operands = agent_and_folder,
    .operand_count = CX_COUNT_OF(agent_and_folder),
    .purpose = "write the hooks as a Claude Code plugin",
    .about = "Writes .claude-plugin/plugin.json and hooks/hooks.json into DIR: for teams that "
             "distribute plugins, and for single sessions. A plugin of ours that is there already "
             "is replaced; nothing else is.",
    .options = plugin_options,
    .option_count = CX_COUNT_OF(plugin_options),
    .exits = "0 written\n1 nothing was written: DIR has another plugin, or cannot be written "
             "safely\n2 usage error\n3 could not be written",
    .example = "cortex hook plugin claude ./cortex-plugin\nclaude --plugin-dir ./cortex-plugin",
    .run = run_plugin,
};
