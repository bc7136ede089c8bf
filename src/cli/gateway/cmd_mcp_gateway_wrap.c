/*
 * cmd_mcp_gateway_wrap.c - `cortex mcp-gateway wrap|unwrap AGENT`: puts the gateway in front of the
 * servers that an agent's configuration names, and takes it away again (wrap.h).
 *
 *   A1  Nothing is written before what will change is shown and agreed to (--yes).
 *   A2  A file that another program has changed meanwhile is not written.
 */
#include <stdlib.h>
#include <string.h>

#include "base/api.h"
#include "cli/gateway/gateway.h"
#include "cli/live/agent_file.h"
#include "cli/live/live.h"
#include "os/api.h"

#define SERVERS_MAX 1024 /* of one file */

/* Where agents keep their servers: below the user's folder, a variable's, or the project's. */
static const struct {
    const char *agent, *variable, *below_variable, *below_home, *below_project;
    const cx_gateway_wrap_syntax *syntax;
} places[] = {
    {"claude", "CLAUDE_CONFIG_DIR", ".claude.json", ".claude.json", ".mcp.json",
     &cx_gateway_wrap_json},
    {"codex", "CODEX_HOME", "config.toml", ".codex/config.toml", ".codex/config.toml",
     &cx_gateway_wrap_toml},
    {"gemini", NULL, NULL, ".gemini/settings.json", ".gemini/settings.json", &cx_gateway_wrap_json},
    {"cursor", NULL, NULL, ".cursor/mcp.json", ".cursor/mcp.json", &cx_gateway_wrap_json},
};

typedef struct wrap_file {
    const char *path; /* real */
    cx_buf before, now;
    size_t changed;
} wrap_file;

typedef struct wrap_job {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_arena *arena;
    const cx_gateway_wrap_syntax *syntax;
    cx_gateway_wrap_how how;
    const char *folder; /* the present one */
    wrap_file files[2];
    size_t file_count;
    cx_buf shown;
    size_t changed, left; /* servers; left: that could not be changed */
    bool *named;          /* by operand: it was found */
} wrap_job;

/* --- files ------------------------------------------------------------------------------------ */

static cx_status real_text(wrap_job *w, const char *path, const char **out, cx_err *err)
{
    cx_buf real;
    cx_buf_init(&real, w->cli->alloc);
    cx_status status = cx_path_real(path, &real, err);
    if (!cx_failed(status)) {
        cx_str kept = cx_arena_copy_str(w->arena, cx_buf_str(&real));
        *out = kept.data;
        status = kept.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    cx_buf_done(&real);
    return status;
}

/* A file that is not there is none of the agent's. */
static cx_status add_file(wrap_job *w, const char *path, bool needed, cx_err *err)
{
    const char *real;
    cx_err why;
    if (path == NULL)
        return cx_fail_nomem(err);
    cx_status status = real_text(w, path, &real, &why);
    if (cx_failed(status) && status.code == CX_E_NOT_FOUND && !needed)
        return CX_SUCCESS;
    if (cx_failed(status)) {
        *err = why;
        return status;
    }
    for (size_t i = 0; i < w->file_count; i++)
        if (strcmp(w->files[i].path, real) == 0)
            return CX_SUCCESS;
    wrap_file *file = &w->files[w->file_count++];
    file->path = real;
    cx_buf_init(&file->before, w->cli->alloc);
    cx_buf_init(&file->now, w->cli->alloc);
    CX_TRY(cx_io_read_file(w->cli->io, real, CX_GATEWAY_WRAP_FILE_MAX, &file->before, err));
    cx_buf_add_str(&file->now, cx_buf_str(&file->before));
    return cx_buf_check(&file->now, err);
}

static cx_status find_files(wrap_job *w, cx_err *err)
{
    const char *agent = w->args->operands[0], *given = cx_cli_value(w->args, "file");
    const char *home = getenv("HOME");
    for (size_t i = 0; i < CX_COUNT_OF(places); i++) {
        if (strcmp(agent, places[i].agent) != 0)
            continue;
        w->syntax = places[i].syntax;
        if (given != NULL)
            return add_file(w, given, true, err);
        const char *variable = places[i].variable == NULL ? NULL : getenv(places[i].variable);
        if (variable != NULL && variable[0] != 0)
            CX_TRY(add_file(
                w, cx_arena_printf(w->arena, "%s/%s", variable, places[i].below_variable).data,
                false, err));
        else if (home != NULL && home[0] == '/')
            CX_TRY(add_file(w, cx_arena_printf(w->arena, "%s/%s", home, places[i].below_home).data,
                            false, err));
        CX_TRY(add_file(w, places[i].below_project, false, err));
        if (w->file_count == 0)
            return cx_fail(err, CX_E_NOT_FOUND,
                           "no configuration of %s here (%s) or in the user's folder (%s)", agent,
                           places[i].below_project, places[i].below_home);
        return CX_SUCCESS;
    }
    return cx_fail(err, CX_E_USAGE, "AGENT: found \"%s\", expected claude, codex, gemini or cursor",
                   agent);
}

/* --- servers ---------------------------------------------------------------------------------- */

typedef struct entry_list {
    cx_gateway_wrap_entry *items;
    size_t count;
} entry_list;

static cx_status add_entry(void *arg, const cx_gateway_wrap_entry *entry, cx_err *err)
{
    entry_list *list = arg;
    if (list->count == SERVERS_MAX)
        return cx_fail(err, CX_E_LIMIT, "more than %d servers", SERVERS_MAX);
    list->items[list->count++] = *entry;
    return CX_SUCCESS;
}

static cx_status read_entries(wrap_job *w, const wrap_file *file, entry_list *out, cx_err *err)
{
    cx_err why;
    out->count = 0;
    out->items = CX_ARENA_ARRAY(w->arena, cx_gateway_wrap_entry, SERVERS_MAX);
    if (out->items == NULL)
        return cx_fail_nomem(err);
    cx_status status =
        w->syntax->each(cx_buf_str(&file->now), w->folder, w->arena, add_entry, out, &why);
    if (cx_failed(status))
        return cx_fail(err, CX_E_FORMAT, "%s: %s", file->path, why.message);
    return CX_SUCCESS;
}

static bool is_named(wrap_job *w, cx_str name)
{
    bool found = w->args->operand_count == 1;
    for (size_t i = 1; i < w->args->operand_count; i++)
        if (cx_str_is(name, w->args->operands[i]))
            found = w->named[i] = true;
    return found;
}

static void show_change(wrap_job *w, const wrap_file *file, const cx_gateway_wrap_entry *entry,
                        const cx_buf *before, const cx_buf *after, const char *why)
{
    cx_shown_add(&w->shown, cx_str_z(file->path));
    cx_buf_add_z(&w->shown, ": ");
    cx_shown_add(&w->shown, entry->name);
    if (why != NULL) {
        cx_buf_printf(&w->shown, " is left as it is: %s\n", why);
        return;
    }
    cx_buf_add_z(&w->shown, "\n  - ");
    cx_buf_add_str(&w->shown, cx_buf_str(before));
    cx_buf_add_z(&w->shown, "\n  + ");
    cx_buf_add_str(&w->shown, cx_buf_str(after));
    cx_buf_add_z(&w->shown, "\n");
}

static cx_status change_entry(wrap_job *w, wrap_file *file, const cx_gateway_wrap_entry *entry,
                              cx_err *err)
{
    cx_buf text, before, after;
    cx_gateway_wrap_result result;
    const char *why = NULL;
    cx_buf_init(&text, w->cli->alloc);
    cx_buf_init(&before, w->cli->alloc);
    cx_buf_init(&after, w->cli->alloc);
    cx_status status =
        cx_gateway_wrap_entry_change(w->syntax, cx_buf_str(&file->now), entry, &w->how, w->arena,
                                     &text, &before, &after, &result, &why, err);
    if (!cx_failed(status) && result != CX_GATEWAY_WRAP_SAME) {
        show_change(w, file, entry, &before, &after, why);
        w->left += result == CX_GATEWAY_WRAP_IMPOSSIBLE;
    }
    if (!cx_failed(status) && result == CX_GATEWAY_WRAP_CHANGED) {
        cx_buf old = file->now;
        file->now = text;
        text = old;
        file->changed++;
        w->changed++;
    }
    cx_buf_done(&text);
    cx_buf_done(&before);
    cx_buf_done(&after);
    return status;
}

/* Each change moves what follows it: the text is read again. */
static cx_status change_file(wrap_job *w, wrap_file *file, cx_err *err)
{
    entry_list list;
    size_t index = 0;
    do {
        cx_arena_mark mark = cx_arena_mark_now(w->arena);
        CX_TRY(read_entries(w, file, &list, err));
        if (index < list.count && is_named(w, list.items[index].name))
            CX_TRY(change_entry(w, file, &list.items[index], err));
        cx_arena_reset(w->arena, mark);
    } while (++index < list.count);
    return CX_SUCCESS;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* A2 */
static cx_status write_file(wrap_job *w, const wrap_file *file, cx_err *err)
{
    cx_buf present;
    cx_facts facts;
    cx_buf_init(&present, w->cli->alloc);
    cx_status status = cx_path_facts(file->path, true, &facts, err);
    if (!cx_failed(status))
        status = cx_io_read_file(w->cli->io, file->path, CX_GATEWAY_WRAP_FILE_MAX, &present, err);
    if (!cx_failed(status) && !cx_str_eq(cx_buf_str(&present), cx_buf_str(&file->before)))
        status = cx_fail(err, CX_E_CONFLICT, "%s was changed meanwhile: nothing was written to it",
                         file->path);
    cx_buf_done(&present);
    CX_TRY(status);
    return (facts.mode & 077) == 0
               ? cx_io_replace_private_file(w->cli->io, file->path, cx_buf_bytes(&file->now), err)
               : cx_io_replace_file(w->cli->io, file->path, cx_buf_bytes(&file->now), err);
}

/* A1 */
static cx_status agree_and_write(wrap_job *w, cx_err *err)
{
    if (w->changed == 0 || cx_cli_has(w->args, "dry-run"))
        return CX_SUCCESS;
    if (!cx_cli_has(w->args, "yes")) {
        cx_buf_add_z(&w->shown, "Write this? Write \"yes\": ");
        CX_TRY(cx_buf_check(&w->shown, err));
        CX_TRY(cx_cli_ask_person(
            &w->shown,
            "a change is agreed to by a person on a terminal, or with --yes; there is no terminal "
            "here",
            err));
        cx_buf_clear(&w->shown);
    }
    for (size_t i = 0; i < w->file_count; i++)
        if (w->files[i].changed != 0)
            CX_TRY(write_file(w, &w->files[i], err));
    return CX_SUCCESS;
}

static cx_status check_named(const wrap_job *w, cx_err *err)
{
    for (size_t i = 1; i < w->args->operand_count; i++)
        if (!w->named[i])
            return cx_fail(err, CX_E_NOT_FOUND, "%s has no server \"%s\" in its configuration",
                           w->args->operands[0], w->args->operands[i]);
    return CX_SUCCESS;
}

static void show_end(wrap_job *w)
{
    const char *done = cx_cli_has(w->args, "dry-run") ? "would be " : "";
    cx_buf_printf(&w->shown, "%zu server%s %s%s", w->changed, w->changed == 1 ? "" : "s", done,
                  w->how.unwrap ? "unwrapped" : "wrapped");
    if (w->left != 0)
        cx_buf_printf(&w->shown, ", %zu left as %s", w->left, w->left == 1 ? "it is" : "they are");
    cx_buf_add_z(&w->shown, w->changed != 0 && done[0] == 0
                                ? "; the agent starts them so the next time it starts\n"
                                : "\n");
}

/* --- options ---------------------------------------------------------------------------------- */

/* "cortex" where that is this program, else its file. */
static cx_status find_program(wrap_job *w, cx_err *err)
{
    const char *self, *found = NULL;
    cx_buf path;
    cx_err missing;
    CX_TRY(real_text(w, cx_machine_program(), &self, err));
    cx_buf_init(&path, w->cli->alloc);
    const char *named = cx_failed(cx_proc_find("cortex", &path, &missing)) ? NULL : cx_buf_z(&path);
    bool same = named != NULL && !cx_failed(real_text(w, named, &found, &missing)) &&
                strcmp(found, self) == 0;
    cx_buf_done(&path);
    w->how.program = same ? CX_STR("cortex") : cx_str_z(self);
    return CX_SUCCESS;
}

static cx_status read_options(wrap_job *w, cx_err *err)
{
    static const char *const passed[] = {"home", "mode", "wait"};
    cx_str *list = CX_ARENA_ARRAY(w->arena, cx_str, 2 * CX_COUNT_OF(passed));
    w->named = CX_ARENA_ARRAY(w->arena, bool, w->args->operand_count);
    if (list == NULL || w->named == NULL)
        return cx_fail_nomem(err);
    memset(w->named, 0, w->args->operand_count * sizeof *w->named);
    CX_TRY(real_text(w, ".", &w->folder, err));
    CX_TRY(find_program(w, err));
    w->how.options = list;
    for (size_t i = 0; i < CX_COUNT_OF(passed) && !w->how.unwrap; i++) {
        const char *value = cx_cli_value(w->args, passed[i]);
        if (value == NULL)
            continue;
        if (i == 0)
            CX_TRY(real_text(w, value, &value, err));
        cx_str option = cx_arena_printf(w->arena, "--%s", passed[i]);
        if (option.data == NULL)
            return cx_fail_nomem(err);
        list[w->how.option_count++] = option;
        list[w->how.option_count++] = cx_str_z(value);
    }
    return CX_SUCCESS;
}

/* --- running ---------------------------------------------------------------------------------- */

static cx_status work(wrap_job *w, cx_err *err)
{
    CX_TRY(read_options(w, err));
    CX_TRY(find_files(w, err));
    for (size_t i = 0; i < w->file_count; i++)
        CX_TRY(change_file(w, &w->files[i], err));
    CX_TRY(check_named(w, err));
    CX_TRY(agree_and_write(w, err));
    show_end(w);
    return CX_SUCCESS;
}

static int run_either(cx_cli *cli, const cx_cli_args *args, bool unwrap)
{
    wrap_job w = {.cli = cli, .args = args, .arena = &cli->arena, .how = {.unwrap = unwrap}};
    cx_err err = {0};
    int code;
    cx_buf_init(&w.shown, cli->alloc);
    cx_status status = work(&w, &err);
    if (cx_failed(status)) {
        cx_cli_complain("%s: %s", args->command->name, err.message);
        code = err.code == CX_E_USAGE || err.code == CX_E_NOT_FOUND ? CX_EXIT_USAGE
                                                                    : CX_EXIT_UNCHECKED;
    } else {
        code = cx_cli_answer(cli, &w.shown, w.left != 0 ? CX_EXIT_BROKEN : CX_EXIT_HOLDS);
    }
    for (size_t i = 0; i < w.file_count; i++) {
        cx_buf_done(&w.files[i].before);
        cx_buf_done(&w.files[i].now);
    }
    cx_buf_done(&w.shown);
    return code;
}

static int run_mcp_gateway_wrap(cx_cli *cli, const cx_cli_args *args)
{
    return run_either(cli, args, false);
}
static int run_mcp_gateway_unwrap(cx_cli *cli, const cx_cli_args *args)
{
    return run_either(cli, args, true);
}

static const cx_cli_operand operands[] = {
    {"AGENT", CX_CLI_CHOICE, "claude|codex|gemini|cursor", false, false},
    {"SERVER", CX_CLI_TEXT, NULL, true, true}};

#define OPTION_FILE                                                                           \
    CX_CLI_OPT("file", 0, CX_CLI_FILE, "FILE",                                                \
               "This file alone; default: the agent's own files in the user's folder and in " \
               "the present one.")
#define OPTION_YES CX_CLI_OPT_FLAG("yes", 'y', "Do not ask.")
#define OPTION_DRY CX_CLI_OPT_FLAG("dry-run", 0, "Show what would change, write nothing.")

static const cx_cli_option wrap_options[] = {
    OPTION_FILE,
    CX_CLI_OPT("mode", 0, CX_CLI_CHOICE, "observe|ask|enforce",
               "With which the gateways are started; default: observe."),
    CX_CLI_OPT("wait", 0, CX_CLI_COUNT, "SECONDS", "The gateways' --wait."),
    CX_CLI_OPT("home", 0, CX_CLI_FILE, "DIR",
               "The gateways' data directory; default: as found when they start."),
    OPTION_YES,
    OPTION_DRY,
    CX_CLI_OPTIONS_COMMON};
static const cx_cli_option unwrap_options[] = {OPTION_FILE, OPTION_YES, OPTION_DRY,
                                               CX_CLI_OPTIONS_COMMON};

#define WRAP_EXITS                                                                             \
    "0 done, or nothing was to be done\n1 a server is left as it is: the answer says why\n2 "  \
    "usage error, no configuration, or no such server\n3 not written: unreadable, changed by " \
    "another program meanwhile, or not agreed to"

const cx_cli_command cx_cli_mcp_gateway_wrap = {
    .name = "mcp-gateway wrap",
    .purpose = "start an agent's MCP servers through the gateway",
    .about = "Changes the agent's own configuration so that each of its servers (or those named) "
             "is started by 'cortex mcp-gateway', under the name that it has. Shows the change and "
             "asks; every other byte of the files stays. Servers at an address that need headers "
             "are left as they are.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = wrap_options,
    .option_count = CX_COUNT_OF(wrap_options),
    .exits = WRAP_EXITS,
    .example = "cortex mcp-gateway wrap claude --mode enforce",
    .run = run_mcp_gateway_wrap,
};

const cx_cli_command cx_cli_mcp_gateway_unwrap = {
    .name = "mcp-gateway unwrap",
    .purpose = "start an agent's MCP servers without the gateway again",
    .about = "Takes back what 'cortex mcp-gateway wrap' did: the files are again what they were, "
             "byte for byte, where no other program has written them meanwhile.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = unwrap_options,
    .option_count = CX_COUNT_OF(unwrap_options),
    .exits = WRAP_EXITS,
    .example = "cortex mcp-gateway unwrap claude",
    .run = run_mcp_gateway_unwrap,
};
