/*
 * cmd_hook_install.c - `cortex hook install|uninstall`: our hooks in an agent's own configuration.
 *
 *   N1  Nothing is written before a person has seen the change and said yes on a terminal, or
 *       --yes was given.
 *   N2  What was there before is stored first (agent_file.h A3): an undo is exact while no one else
 *       has changed the file, and else takes only our entries out.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/ledger/ledger.h"
#include "cli/live/agent_file.h"
#include "cli/live/codex_trust.h"
#include "cli/live/hook_state.h"
#include "cli/live/live.h"
#include "crypto/api.h"
#include "os/api.h"

typedef struct registering {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_live_agent agent;
    cx_agent_scope scope;
    const char *home; /* the data directory */
    bool home_there;
    cx_live_hook hook;
    cx_live_register_options options;
    cx_agent_file file;
    cx_agent_undo undo;
    cx_buf after;      /* what the file becomes */
    bool removes;      /* the file itself is removed */
    bool exact;        /* an undo that restores what was there */
    size_t removed;    /* entries of ours */
    const char *codex; /* its program, when its trust is part of it; else NULL */
    bool trusted;      /* Codex trusts what is installed */
    cx_str trust;      /* what to say about it */
} registering;

/* --- what was asked for ----------------------------------------------------------------------- */

static cx_status read_scope(const cx_cli_args *args, cx_agent_scope *out, cx_err *err)
{
    size_t given = 0;
    *out = CX_SCOPE_USER;
    for (size_t i = 0; i < CX_SCOPE_COUNT; i++)
        if (cx_cli_has(args, cx_agent_scope_name((cx_agent_scope)i))) {
            *out = (cx_agent_scope)i;
            given++;
        }
    return given <= 1
               ? CX_SUCCESS
               : cx_fail(err, CX_E_USAGE, "expected one of --user, --project, --local, --managed");
}

cx_status cx_cli_read_agent(const char *word, cx_live_agent *out, cx_err *err)
{
    *out = cx_live_agent_parse(cx_str_z(word));
    return *out < CX_LIVE_MCP
               ? CX_SUCCESS
               : cx_fail(err, CX_E_USAGE,
                         "found '%s', expected an agent: claude, codex, gemini, cursor, copilot",
                         word);
}

cx_status cx_cli_real_path(cx_cli *cli, const char *path, cx_str *out, cx_err *err)
{
    cx_buf real;
    cx_buf_init(&real, cli->alloc);
    cx_status status = cx_path_real(path, &real, err);
    *out =
        cx_failed(status) ? (cx_str){NULL, 0} : cx_arena_copy_str(&cli->arena, cx_buf_str(&real));
    cx_buf_done(&real);
    return !cx_failed(status) && out->data == NULL ? cx_fail_nomem(err) : status;
}

cx_status cx_cli_program_path(cx_cli *cli, cx_str *out, cx_err *err)
{
    CX_TRY(cx_cli_real_path(cli, cx_machine_program(), out, err));
    return cx_str_ends(*out, CX_STR("/cortex"))
               ? CX_SUCCESS
               : cx_fail(err, CX_E_USAGE,
                         "this program is %s: its hooks are recognised by the name cortex, so it "
                         "has to have it",
                         out->data);
}

/* The data directory, by its real path; one that is not there yet by its future one. */
static cx_status find_home(registering *r, cx_err *err)
{
    const char *path;
    cx_str real;
    CX_TRY(cx_cli_home_path(r->cli, r->args, &path, err));
    r->home_there = !cx_failed(cx_cli_real_path(r->cli, path, &real, NULL));
    if (r->home_there)
        path = real.data;
    else if (path[0] != '/') {
        CX_TRY(cx_cli_real_path(r->cli, ".", &real, err));
        path = cx_arena_printf(&r->cli->arena, "%s/%s", real.data, path).data;
    }
    r->home = path;
    return path == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status read_words(registering *r, cx_err *err)
{
    CX_TRY(cx_cli_read_agent(r->args->operands[0], &r->agent, err));
    CX_TRY(read_scope(r->args, &r->scope, err));
    CX_TRY(find_home(r, err));
    return cx_agent_file_path(r->cli, r->agent, r->scope, &r->file.path, err);
}

/* Names the file and keeps the position of what was found in it. */
static cx_status in_file(const registering *r, cx_status status, const cx_err *why, cx_err *err)
{
    return cx_failed(status) ? cx_fail(err, status.code == CX_E_NOMEM ? CX_E_NOMEM : CX_E_CONFLICT,
                                       "%s: %s; nothing was changed", r->file.path, why->message)
                             : status;
}

/* --- install ---------------------------------------------------------------------------------- */

static cx_status read_install(registering *r, cx_err *err)
{
    const char *mode = cx_cli_value(r->args, "mode");
    CX_TRY(read_words(r, err));
    r->hook = (cx_live_hook){.agent = r->agent, .mode = CX_LIVE_OBSERVE};
    if (mode != NULL && !cx_live_mode_parse(cx_str_z(mode), &r->hook.mode))
        return cx_fail(err, CX_E_USAGE, "option --mode: expected observe, ask or enforce");
    CX_TRY(cx_cli_program_path(r->cli, &r->hook.program, err));
    /* Each user of a machine has a data directory of their own. */
    if (r->scope != CX_SCOPE_MANAGED || cx_cli_value(r->args, "home") != NULL)
        r->hook.home = cx_str_z(r->home);
    r->options.managed = r->scope == CX_SCOPE_MANAGED;
    r->options.managed_only = cx_cli_has(r->args, "managed-only");
    if (r->options.managed_only && (!r->options.managed || r->agent != CX_LIVE_CLAUDE))
        return cx_fail(err, CX_E_USAGE,
                       "--managed-only is for --managed of claude: it writes "
                       "allowManagedHooksOnly");
    return CX_SUCCESS;
}

/* The text without ours: what an undo leaves. */
static cx_status text_without_ours(registering *r, cx_str *out, size_t *out_removed, cx_err *err)
{
    cx_buf text;
    const cx_live_register_options options = {.managed_only = r->undo.managed_only};
    cx_buf_init(&text, r->cli->alloc);
    cx_status status = cx_live_register_remove(r->file.text, r->agent, &options, &r->cli->arena,
                                               &text, out_removed, err);
    *out = cx_failed(status) ? (cx_str){NULL, 0}
                             : cx_arena_copy_str(&r->cli->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return !cx_failed(status) && out->data == NULL ? cx_fail_nomem(err) : status;
}

static bool is_as_written(const registering *r)
{
    cx_digest now = cx_digest_of(cx_str_bytes(r->file.text));
    return r->undo.known && r->file.there && cx_digest_eq(&now, &r->undo.wrote);
}

/* Nothing but what a new file of ours begins with. */
static bool is_empty(cx_str text)
{
    char bare[16] = "";
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (strchr(" \t\r\n", text.data[i]) != NULL)
            continue;
        if (size == sizeof bare - 1)
            return false;
        bare[size++] = text.data[i];
    }
    return size == 0 || strcmp(bare, "{}") == 0 || strcmp(bare, "{\"version\":1}") == 0;
}

/* N2: from what was there before, where that is known. */
static cx_status plan_install(registering *r, cx_err *err)
{
    cx_err why = {0};
    cx_str base = r->file.text;
    size_t removed;
    CX_TRY(cx_agent_file_read(r->cli, r->file.path, true, &r->file, err));
    base = r->file.text;
    if (r->home_there)
        CX_TRY(cx_agent_undo_read(r->cli, r->home, r->file.path, &r->undo, err));
    cx_status status =
        cx_live_register_add(r->file.text, &r->hook, &r->options, &r->cli->arena, &r->after, &why);
    CX_TRY(in_file(r, status, &why, err));
    if (cx_str_eq(cx_buf_str(&r->after), r->file.text))
        return CX_SUCCESS;
    if (is_as_written(r)) {
        base = r->undo.before;
    } else {
        CX_TRY(in_file(r, text_without_ours(r, &base, &removed, &why), &why, err));
        bool made = r->undo.known && !r->undo.was_there && removed != 0 && is_empty(base);
        r->undo.was_there = r->file.there && !made;
    }
    cx_buf_clear(&r->after);
    status = cx_live_register_add(base, &r->hook, &r->options, &r->cli->arena, &r->after, &why);
    CX_TRY(in_file(r, status, &why, err));
    r->undo.before = base;
    r->undo.managed_only = r->options.managed_only;
    return CX_SUCCESS;
}

static cx_status add_plan(registering *r, cx_buf *out, cx_err *err)
{
    const char *color = cx_cli_value(r->args, "color");
    CX_TRY(cx_cli_line_diff(r->file.text, r->removes ? CX_STR("") : cx_buf_str(&r->after),
                            r->file.path, cx_cli_colour(&r->cli->out, color), out, err));
    if (r->hook.program.data != NULL && !r->home_there) {
        cx_buf_add_z(out, "and makes the data directory ");
        cx_shown_add(out, cx_str_z(r->home));
        cx_buf_add_z(out, "\n");
    }
    if (r->hook.program.data != NULL && r->codex != NULL && !r->trusted)
        cx_buf_add_z(out, "and lets Codex trust these hooks: their hashes go into config.toml "
                          "([hooks.state])\n");
    return CX_SUCCESS;
}

/* N1 */
static cx_status ask(registering *r, cx_err *err)
{
    cx_buf text, shown;
    if (cx_cli_has(r->args, "yes"))
        return CX_SUCCESS;
    cx_buf_init(&text, r->cli->alloc);
    cx_buf_init(&shown, r->cli->alloc);
    cx_status status = add_plan(r, &text, err);
    cx_shown_add_lines(&shown, cx_buf_str(&text), CX_SHOWN_COLOURS);
    cx_buf_add_z(&shown, "Write \"yes\" to change the file: ");
    if (!cx_failed(status))
        status = cx_cli_ask_person(&shown,
                                   "a person has to agree to the change, and there is no terminal "
                                   "here: look at it with --dry-run, then give --yes",
                                   err);
    cx_buf_done(&text);
    cx_buf_done(&shown);
    return status;
}

static cx_status make_home(registering *r, cx_err *err)
{
    const cx_home_options options = cx_cli_home_options(r->cli, CX_CLI_WRITE, NULL);
    const char *slash = strrchr(r->home, '/');
    if (r->home_there)
        return CX_SUCCESS;
    cx_str parent =
        cx_arena_copy_str(&r->cli->arena, cx_str_from(r->home, (size_t)(slash - r->home)));
    if (parent.data == NULL)
        return cx_fail_nomem(err);
    if (parent.size != 0)
        CX_TRY(cx_path_make_folders(parent.data, err));
    return cx_home_create(r->home, CX_SCHEME_CORTEX_1, &options, err);
}

static cx_status apply_install(registering *r, cx_err *err)
{
    CX_TRY(ask(r, err));
    CX_TRY(make_home(r, err));
    if (cx_str_eq(cx_buf_str(&r->after), r->file.text))
        return CX_SUCCESS;
    r->undo.wrote = cx_digest_of(cx_buf_bytes(&r->after));
    CX_TRY(cx_agent_undo_write(r->cli, r->home, r->file.path, &r->undo, err));
    return cx_agent_file_write(
        r->cli, &r->file, cx_buf_str(&r->after),
        r->scope == CX_SCOPE_USER || r->scope == CX_SCOPE_LOCAL ? 0600 : 0644, err);
}

/* --- Codex: what its user has reviewed -------------------------------------------------------- */

/* Whether Codex trusts what is installed already; *out_missing: it has to be written. */
static cx_status plan_trust(registering *r, bool changed, bool *out_missing, cx_err *err)
{
    cx_err why = {0};
    *out_missing = false;
    r->trust = CX_STR("");
    if (r->agent != CX_LIVE_CODEX || r->scope != CX_SCOPE_USER)
        return CX_SUCCESS;
    r->trust = CX_STR("Codex runs hooks that its user has reviewed: do so in codex with /hooks");
    r->codex = cx_cli_has(r->args, "no-trust") ? NULL : cx_agent_program(r->cli, r->agent);
    if (r->codex == NULL || changed)
        return CX_SUCCESS;
    cx_status status = cx_codex_trust_ours(r->cli, r->codex, NULL, &r->trust, &r->trusted, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    *out_missing = !r->trusted;
    return CX_SUCCESS;
}

/* The hooks stay when Codex cannot be asked: that is said, and status says it, too. */
static cx_status apply_trust(registering *r, cx_err *err)
{
    cx_err why = {0};
    if (r->codex == NULL || r->trusted)
        return CX_SUCCESS;
    cx_status status = cx_codex_trust_ours(r->cli, r->codex, r->home, &r->trust, &r->trusted, &why);
    if (!cx_failed(status))
        return CX_SUCCESS;
    r->trust = cx_arena_printf(&r->cli->arena, "NOT trusted by Codex yet: %s", why.message);
    return r->trust.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* --- uninstall -------------------------------------------------------------------------------- */

/* What was there before is in the data directory that the entries name. */
static cx_status follow_home(registering *r, cx_err *err)
{
    cx_live_registered found;
    cx_facts facts;
    cx_err why = {0};
    if (!r->file.there)
        return CX_SUCCESS;
    CX_TRY(in_file(r, cx_live_register_read(r->file.text, r->agent, &r->cli->arena, &found, &why),
                   &why, err));
    if (found.ours == 0 || found.hook.home.size == 0)
        return CX_SUCCESS;
    r->home = found.hook.home.data;
    r->home_there = !cx_failed(cx_path_facts(r->home, true, &facts, &why));
    return CX_SUCCESS;
}

static cx_status plan_uninstall(registering *r, cx_err *err)
{
    cx_err why = {0};
    cx_str text;
    CX_TRY(cx_agent_file_read(r->cli, r->file.path, true, &r->file, err));
    CX_TRY(follow_home(r, err));
    if (r->home_there)
        CX_TRY(cx_agent_undo_read(r->cli, r->home, r->file.path, &r->undo, err));
    if (!r->file.there)
        return CX_SUCCESS;
    CX_TRY(in_file(r, text_without_ours(r, &text, &r->removed, &why), &why, err));
    r->exact = is_as_written(r);
    if (r->exact)
        text = r->undo.before;
    r->removes =
        r->removed != 0 && r->undo.known && !r->undo.was_there && (r->exact || is_empty(text));
    cx_buf_add_str(&r->after, text);
    return cx_buf_check(&r->after, err);
}

static cx_status apply_uninstall(registering *r, cx_err *err)
{
    CX_TRY(ask(r, err));
    if (r->removes)
        CX_TRY(cx_agent_file_remove(r->cli, &r->file, err));
    else
        CX_TRY(cx_agent_file_write(r->cli, &r->file, cx_buf_str(&r->after), r->file.mode, err));
    if (r->agent == CX_LIVE_CODEX && r->scope == CX_SCOPE_USER && r->home_there)
        CX_TRY(cx_codex_trust_undo(r->cli, r->home, err));
    return r->undo.known ? cx_agent_undo_forget(r->cli, r->home, r->file.path, err) : CX_SUCCESS;
}

/* --- answers ---------------------------------------------------------------------------------- */

static void add_text_answer(registering *r, bool install, bool changed, bool dry, cx_buf *out)
{
    if (!changed) {
        cx_buf_add_z(out, install ? "already installed, nothing was changed: "
                                  : "no hooks of ours, nothing was changed: ");
    } else if (dry) {
        cx_buf_add_z(out, "nothing was written (--dry-run): ");
    } else if (install) {
        cx_buf_add_z(out, "installed: ");
    } else {
        cx_buf_add_z(out, r->exact ? "undone, as it was before: "
                                   : "our entries were taken out, the rest was left: ");
    }
    cx_shown_add(out, cx_str_z(r->file.path));
    if (r->trust.size != 0 && !dry) {
        cx_buf_add_z(out, "\n");
        cx_shown_add(out, r->trust);
    }
    if (install)
        cx_buf_printf(out,
                      "\n%s, mode %s; sessions that run already keep what they began with.\n"
                      "'cortex hook status' shows whether it holds, 'cortex hook uninstall "
                      "%s' undoes it",
                      cx_live_agent_name(r->agent), cx_live_mode_name(r->hook.mode),
                      r->args->operands[0]);
    cx_buf_add_z(out, "\n");
}

static cx_status add_answer(registering *r, bool install, bool changed, cx_buf *out, cx_err *err)
{
    bool dry = cx_cli_has(r->args, "dry-run");
    cx_json_list root = cx_json_list_begin(&r->cli->arena);
    if (!cx_cli_has(r->args, "json")) {
        if (changed && (dry || cx_cli_has(r->args, "yes")))
            CX_TRY(add_plan(r, out, err));
        add_text_answer(r, install, changed, dry, out);
        return cx_buf_check(out, err);
    }
    cx_json_put_z(&root, "agent", cx_live_agent_name(r->agent));
    cx_json_put_bool(&root, "changed", changed && !dry);
    cx_json_put_bool(&root, "dry_run", dry);
    cx_json_put_str(&root, "path", cx_str_z(r->file.path));
    cx_json_put_z(&root, "scope", cx_agent_scope_name(r->scope));
    if (install) {
        cx_json_put_z(&root, "mode", cx_live_mode_name(r->hook.mode));
        cx_json_put_str(&root, "program", r->hook.program);
        cx_json_put_maybe(&root, "home", r->hook.home);
        cx_json_put_maybe(&root, "trust", r->trust);
    } else {
        cx_json_put_bool(&root, "exact", r->exact);
        cx_json_put_uint(&root, "removed", r->removed);
    }
    return cx_cli_end_json(&root, out, err);
}

static int run_registering(cx_cli *cli, const cx_cli_args *args, bool install)
{
    registering r = {.cli = cli, .args = args};
    cx_err err = {0};
    cx_buf out;
    cx_buf_init(&r.after, cli->alloc);
    cx_buf_init(&out, cli->alloc);
    cx_status status = install ? read_install(&r, &err) : read_words(&r, &err);
    if (!cx_failed(status))
        status = install ? plan_install(&r, &err) : plan_uninstall(&r, &err);
    bool changed = !cx_failed(status) &&
                   (install ? !cx_str_eq(cx_buf_str(&r.after), r.file.text) : r.removed != 0);
    bool untrusted = false, real = !cx_cli_has(args, "dry-run");
    if (!cx_failed(status) && install)
        status = plan_trust(&r, changed, &untrusted, &err);
    if (!cx_failed(status) && (changed || untrusted) && real)
        status = install ? apply_install(&r, &err) : apply_uninstall(&r, &err);
    if (!cx_failed(status) && install && real)
        status = apply_trust(&r, &err);
    if (!cx_failed(status))
        status = add_answer(&r, install, changed, &out, &err);
    int code = cx_failed(status) ? cx_cli_ledger_fail(cli, args, &err)
                                 : cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&r.after);
    cx_buf_done(&out);
    return code;
}

static int run_install(cx_cli *cli, const cx_cli_args *args)
{
    return run_registering(cli, args, true);
}

static int run_uninstall(cx_cli *cli, const cx_cli_args *args)
{
    return run_registering(cli, args, false);
}

/* --- commands --------------------------------------------------------------------------------- */

static const cx_cli_operand one_agent[] = {
    {"AGENT", CX_CLI_CHOICE, "claude|codex|gemini|cursor|copilot", false, false}};

#define SCOPE_OPTIONS                                                                           \
    CX_CLI_OPT_FLAG("user", 0, "The user's configuration; this is the default."),               \
        CX_CLI_OPT_FLAG("project", 0,                                                           \
                        "The configuration of the project in the current folder, which others " \
                        "may share."),                                                          \
        CX_CLI_OPT_FLAG("local", 0,                                                             \
                        "The project's, for this user only (.claude/settings.local.json of "    \
                        "Claude Code)."),                                                       \
        CX_CLI_OPT_FLAG("managed", 0,                                                           \
                        "The administrator's, which no agent, user or project can switch off.")
#define CHANGE_OPTIONS                                                                           \
    CX_CLI_OPT_FLAG("yes", 0, "Do not ask."),                                                    \
        CX_CLI_OPT_FLAG("dry-run", 0, "Show the change and write nothing."), CX_CLI_OPTION_HOME, \
        CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON

static const cx_cli_option install_options[] = {
    SCOPE_OPTIONS,
    CX_CLI_OPT("mode", 0, CX_CLI_CHOICE, "observe|ask|enforce",
               "observe, the default: record what would be decided, block nothing. ask: a person "
               "decides what the policy does not allow. enforce: the policy decides."),
    CX_CLI_OPT_FLAG("managed-only", 0,
                    "With --managed, Claude Code: hooks of users and projects do not run any "
                    "more."),
    CX_CLI_OPT_FLAG("no-trust", 0,
                    "Codex: do not write the hashes with which it trusts the hooks; review them "
                    "there."),
    CHANGE_OPTIONS};
static const cx_cli_option uninstall_options[] = {SCOPE_OPTIONS, CHANGE_OPTIONS};

#define CHANGE_EXITS                                                                            \
    "0 done, or nothing to do\n1 nothing was changed: the person did not agree, or the file "   \
    "cannot be changed safely\n2 usage error, or the agent has no such configuration\n3 could " \
    "not be done: unreadable, full disk"

const cx_cli_command cx_cli_hook_install = {
    .name = "hook install",
    .operands = one_agent,
    .operand_count = CX_COUNT_OF(one_agent),
    .purpose = "register the hooks with a coding agent",
    .about = "Shows the change to the agent's own configuration, asks on the terminal, and writes "
             "it. Everything else in the file stays as it is. In modes ask and enforce an answer "
             "that does not come is a \"no\". Makes the data directory if there is none.\n\n"
             "A file that is not strict JSON, that is a link, belongs to someone else or can be "
             "written by every user is not changed.",
    .options = install_options,
    .option_count = CX_COUNT_OF(install_options),
    .exits = CHANGE_EXITS,
    .example = "cortex hook install claude\ncortex hook install --mode enforce --yes codex",
    .run = run_install,
};

const cx_cli_command cx_cli_hook_uninstall = {
    .name = "hook uninstall",
    .operands = one_agent,
    .operand_count = CX_COUNT_OF(one_agent),
    .purpose = "take the hooks out of an agent's configuration again",
    .about = "Restores the file byte for byte when no one has changed it since; else takes out "
             "our entries and leaves the rest.",
    .options = uninstall_options,
    .option_count = CX_COUNT_OF(uninstall_options),
    .exits = CHANGE_EXITS,
    .example = "cortex hook uninstall claude",
    .run = run_uninstall,
};
