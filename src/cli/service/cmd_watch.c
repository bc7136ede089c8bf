/*
 * cmd_watch.c - `cortex watch`: archives session files of coding agents in the ledger as they
 * are written. The data directory is owned only while something is appended, so that servers and
 * other commands can start at any time.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/api.h"
#include "cli/ledger/ledger.h"
#include "cli/erasure/sensitive_args.h"
#include "cli/service/watch.h"
#include "crypto/api.h"

/* Changes in quick succession are handled together. */
#define QUIET_MS 100
#define WAKE_MS 500
#define RESCAN_BLIND_S 2
#define USUAL_COUNT 64 /* folders of known programs, at most */

static volatile sig_atomic_t end_requested;

static void on_end(int number)
{
    (void)number;
    end_requested = 1;
}

/* A second one ends it at once: what was appended is on the disk. */
void cx_watch_begin_signals(void)
{
    struct sigaction action = {.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND};
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
}

bool cx_watch_is_ending(void)
{
    return end_requested != 0;
}

/* --- where ------------------------------------------------------------------------------------ */

static cx_status real_path(cx_cli *cli, const char *path, const char **out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cli->alloc);
    cx_status status = cx_path_real(path, &text, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(&cli->arena, cx_buf_str(&text)).data;
        status = *out == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    cx_buf_done(&text);
    return status;
}

static const char *environment_value(const char *name)
{
    const char *value = getenv(name);
    return value == NULL || value[0] == 0 ? NULL : value;
}

/* One that exists, and that is not below another one of them. */
static cx_status add_folder(cx_watch *w, cx_str path, cx_err *err)
{
    cx_facts facts;
    const char *real;
    if (path.data == NULL)
        return cx_fail_nomem(err);
    if (w->folder_count == USUAL_COUNT || cx_failed(real_path(w->cli, path.data, &real, NULL)) ||
        cx_failed(cx_path_facts(real, true, &facts, NULL)) || facts.kind != CX_FILE_FOLDER)
        return CX_SUCCESS;
    for (size_t i = 0; i < w->folder_count; i++) {
        size_t size = strlen(w->folders[i]);
        if (strncmp(w->folders[i], real, size) == 0 && (real[size] == 0 || real[size] == '/'))
            return CX_SUCCESS;
    }
    w->folders[w->folder_count++] = real;
    return CX_SUCCESS;
}

/* Where a program keeps its sessions: below the value of a variable, else below the home. */
typedef struct usual_place {
    const char *variable; /* NULL = none */
    const char *otherwise, *below;
} usual_place;

static const usual_place places[] = {
    {"CLAUDE_CONFIG_DIR", ".claude", "projects"},
    {"CODEX_HOME", ".codex", "sessions"},
    {NULL, ".gemini", "tmp"},
    {NULL, ".qwen", "projects"},
    {NULL, ".qwen", "tmp"},
    {NULL, ".cursor", "projects"},
    {"COPILOT_HOME", ".copilot", "session-state"},
    {NULL, ".factory", "sessions"},
    {"XDG_DATA_HOME", ".local/share", "opencode/storage/message"},
    {"XDG_DATA_HOME", ".local/share", "opencode/storage/part"},
    {NULL, ".openhands", "conversations"},
    {NULL, ".openhands", "sessions"},
    {NULL, ".openhands-state", "sessions"},
    {NULL, ".cline", "data/tasks"},
};

/* Cline, Roo Code and their like are extensions of these editors. */
static const char *const editors[] = {"Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"};
static const char *const servers[] = {".vscode-server/data", ".vscode-remote/data",
                                      ".cursor-server/data"};
static const char *const extensions[] = {"saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline",
                                         "kilocode.kilo-code"};

static cx_status add_extensions(cx_watch *w, const char *home, cx_err *err)
{
    const char *config = environment_value("XDG_CONFIG_HOME");
    cx_arena *arena = &w->cli->arena;
    cx_str root = config != NULL ? cx_str_z(config) : cx_arena_printf(arena, "%s/.config", home);
    if (root.data == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < CX_COUNT_OF(extensions); i++) {
        for (size_t k = 0; k < CX_COUNT_OF(editors); k++)
            CX_TRY(add_folder(w,
                              cx_arena_printf(arena, "%s/%s/User/globalStorage/%s/tasks", root.data,
                                              editors[k], extensions[i]),
                              err));
        for (size_t k = 0; k < CX_COUNT_OF(servers); k++)
            CX_TRY(add_folder(w,
                              cx_arena_printf(arena, "%s/%s/User/globalStorage/%s/tasks", home,
                                              servers[k], extensions[i]),
                              err));
    }
    return CX_SUCCESS;
}

/* Aider keeps its history where it is started. */
static cx_status find_here(cx_watch *w, cx_err *err)
{
    cx_facts facts;
    if (w->here == NULL && cx_failed(real_path(w->cli, ".", &w->here, NULL)))
        w->here = NULL;
    if (w->here == NULL)
        return CX_SUCCESS;
    cx_str path = cx_arena_printf(&w->cli->arena, "%s/.aider.chat.history.md", w->here);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    w->has_aider = !cx_failed(cx_path_facts(path.data, false, &facts, NULL));
    return CX_SUCCESS;
}

/* The existing session folders of known programs. */
static cx_status add_usual_folders(cx_watch *w, cx_err *err)
{
    const char *home = environment_value("HOME");
    w->folder_count = 0;
    for (size_t i = 0; i < CX_COUNT_OF(places); i++) {
        const usual_place *place = &places[i];
        const char *given = place->variable == NULL ? NULL : environment_value(place->variable);
        if (given != NULL)
            CX_TRY(
                add_folder(w, cx_arena_printf(&w->cli->arena, "%s/%s", given, place->below), err));
        else if (home != NULL)
            CX_TRY(add_folder(
                w,
                cx_arena_printf(&w->cli->arena, "%s/%s/%s", home, place->otherwise, place->below),
                err));
    }
    if (home != NULL)
        CX_TRY(add_extensions(w, home, err));
    CX_TRY(find_here(w, err));
    if (w->folder_count == 0 && !w->has_aider && !w->may_wait)
        return cx_fail(err, CX_E_NOT_FOUND,
                       "no known agent has session files here (~/.claude/projects, "
                       "~/.codex/sessions, ~/.gemini/tmp, ..; 'cortex watch --help' names them "
                       "all); name the DIR with the session files");
    return CX_SUCCESS;
}

/* Programs that were first used after the start have folders by now. */
static cx_status add_new_folders(cx_watch *w, cx_err *err)
{
    if (!w->usual)
        return CX_SUCCESS;
    cx_arena_mark mark = cx_arena_mark_now(&w->cli->arena);
    const char *before[USUAL_COUNT];
    size_t count = w->folder_count;
    for (size_t i = 0; i < count; i++)
        before[i] = w->folders[i];
    CX_TRY(add_usual_folders(w, err));
    if (w->folder_count > count)
        return CX_SUCCESS;
    for (size_t i = 0; i < count; i++)
        w->folders[i] = before[i];
    w->folder_count = count;
    cx_arena_reset(&w->cli->arena, mark);
    return CX_SUCCESS;
}

static cx_status find_folders(cx_watch *w, const cx_cli_args *args, cx_err *err)
{
    w->folders = CX_ARENA_ARRAY(&w->cli->arena, const char *, args->operand_count + USUAL_COUNT);
    if (w->folders == NULL)
        return cx_fail_nomem(err);
    w->usual = args->operand_count == 0;
    if (w->usual)
        return add_usual_folders(w, err);
    for (size_t i = 0; i < args->operand_count; i++) {
        cx_facts facts;
        cx_status status = real_path(w->cli, args->operands[i], &w->folders[i], err);
        if (status.code == CX_E_NOT_FOUND)
            return cx_fail(err, CX_E_USAGE,
                           "%s does not exist; expected the folder with the session files",
                           args->operands[i]);
        CX_TRY(status);
        CX_TRY(cx_path_facts(w->folders[i], true, &facts, err));
        if (facts.kind != CX_FILE_FOLDER)
            return cx_fail(err, CX_E_USAGE,
                           "%s is not a folder; expected the folder with the session files",
                           args->operands[i]);
        w->folder_count++;
    }
    return CX_SUCCESS;
}

/* --- going on --------------------------------------------------------------------------------- */

typedef struct seeing {
    cx_watch *w;
    bool rescan;
    cx_status status;
    cx_err *err;
} seeing;

static void on_change(void *arg, const char *folder, const char *name, bool is_folder)
{
    seeing *at = arg;
    at->rescan |= is_folder;
    if (!is_folder && !cx_failed(at->status))
        at->status = cx_watch_add(at->w, folder, name, at->err);
}

/* Waits for a change, the next full scan, or a stop signal. */
static cx_status wait_for_change(cx_watch *w, uint64_t until_ns, bool *out_rescan, cx_err *err)
{
    const cx_io *io = w->cli->io;
    seeing at = {.w = w, .status = CX_SUCCESS, .err = err};
    *out_rescan = false;
    while (!end_requested && !*out_rescan && !cx_watch_any_dirty(w)) {
        bool lost = false;
        if (w->notify == NULL)
            cx_thread_sleep_ms(WAKE_MS);
        else
            CX_TRY(cx_notify_wait(w->notify, WAKE_MS, on_change, &at, &lost, err));
        CX_TRY(at.status);
        *out_rescan = lost || at.rescan || io->monotonic_ns(io) >= until_ns;
    }
    if (!end_requested)
        cx_thread_sleep_ms(QUIET_MS);
    return CX_SUCCESS;
}

/* A data directory that is locked is waited for: nothing is lost, the files remain. */
static bool is_passing(const cx_err *err)
{
    return err->code == CX_E_BUSY || err->code == CX_E_TIMEOUT ||
           (err->tag != NULL &&
            (strcmp(err->tag, "HolderGone") == 0 || strcmp(err->tag, "AnswerLost") == 0));
}

static cx_status watch_changes(cx_watch *w, uint64_t rescan_s, cx_err *err)
{
    const cx_io *io = w->cli->io;
    bool complained = false, rescan = false;
    while (!end_requested) {
        bool is_blind = w->notify == NULL || w->folder_count == 0;
        uint64_t seconds = is_blind ? RESCAN_BLIND_S : rescan_s;
        uint64_t until = io->monotonic_ns(io) + seconds * UINT64_C(1000000000);
        CX_TRY(wait_for_change(w, until, &rescan, err));
        if (rescan) {
            CX_TRY(add_new_folders(w, err));
            CX_TRY(cx_watch_scan(w, err));
        }
        cx_status status = cx_watch_archive(w, err);
        if (!cx_failed(status))
            status = cx_watch_record_actions(w, false, err);
        if (cx_failed(status) && !is_passing(err))
            return status;
        if (cx_failed(status) && !complained)
            cx_cli_complain("watch: waiting for the data directory: %s", err->message);
        complained = cx_failed(status);
        if (cx_failed(status))
            cx_thread_sleep_ms(WAKE_MS);
    }
    return CX_SUCCESS;
}

/* --- the command ------------------------------------------------------------------------------ */

static void sum_up(cx_watch *w)
{
    for (size_t i = 0; i < w->files.count; i++) {
        w->counts.unknown += w->files.items[i].unknown;
        w->counts.waiting += w->files.items[i].waiting;
    }
    w->counts.files = w->files.count;
}

static void print_totals(cx_watch *w)
{
    const cx_watch_counts *c = &w->counts;
    sum_up(w);
    cx_buf_clear(&w->text);
    cx_buf_printf(&w->text,
                  w->json
                      ? "{\"bytes\":%llu,\"failed\":%llu,\"files\":%llu,\"lines\":%llu,"
                        "\"pieces\":%llu,\"sessions\":%llu,\"unknown\":%llu,"
                        "\"waiting_bytes\":%llu}\n"
                      : "archived %llu bytes; %llu files could not be read, %llu seen; %llu "
                        "lines in %llu pieces of %llu sessions; %llu files are of no known format, "
                        "%llu bytes wait for the end of their line\n",
                  (unsigned long long)c->bytes, (unsigned long long)c->failed,
                  (unsigned long long)c->files, (unsigned long long)c->lines,
                  (unsigned long long)c->pieces, (unsigned long long)c->sessions,
                  (unsigned long long)c->unknown, (unsigned long long)c->waiting);
    cx_cli_out_write(&w->cli->out, cx_buf_str(&w->text));
}

void cx_watch_init(cx_watch *w, cx_cli *cli)
{
    *w = (cx_watch){.cli = cli};
    cx_arena_init(&w->arena, cli->alloc, 0);
    cx_arena_init(&w->sessions_arena, cli->alloc, 0);
    cx_map_init(&w->by_path, cli->alloc, cx_io_seed(cli->io));
    cx_map_init(&w->session_by_path, cli->alloc, cx_io_seed(cli->io));
    cx_buf_init(&w->text, cli->alloc);
    cx_buf_init(&w->record, cli->alloc);
    cx_buf_init(&w->masked, cli->alloc);
}

void cx_watch_done(cx_watch *w)
{
    cx_notify_close(w->notify);
    cx_vec_done(&w->files, w->cli->alloc);
    cx_vec_done(&w->sessions, w->cli->alloc);
    cx_map_done(&w->by_path);
    cx_map_done(&w->session_by_path);
    cx_buf_done(&w->text);
    cx_buf_done(&w->record);
    cx_buf_done(&w->masked);
    cx_arena_done(&w->sessions_arena);
    cx_arena_done(&w->arena);
}

cx_status cx_watch_begin(cx_watch *w, const cx_cli_args *args, cx_err *err)
{
    CX_TRY(cx_cli_sensitive_rules(w->cli, args, &w->sensitive, err));
    CX_TRY(find_folders(w, args, err));
    if (!cx_cli_has(args, "once") && cx_failed(cx_notify_open(w->cli->alloc, &w->notify, NULL)))
        cx_cli_complain(
            "watch: note: file watching is unavailable; every file is checked every few seconds");
    return CX_SUCCESS;
}

cx_status cx_watch_until_end(cx_watch *w, uint64_t rescan_s, cx_err *err)
{
    CX_TRY(watch_changes(w, rescan_s, err));
    cx_status status = cx_watch_record_actions(w, true, err);
    if (!cx_failed(status) || !is_passing(err))
        return status;
    cx_cli_complain("watch: note: what sessions did could not be recorded as sets: %s",
                    err->message);
    return CX_SUCCESS;
}

static cx_status watch_sessions(cx_watch *w, const cx_cli_args *args, cx_err *err)
{
    uint64_t rescan_s = cx_cli_number(args, "rescan", CX_WATCH_RESCAN_S);
    if (rescan_s == 0 || rescan_s > 86400)
        return cx_fail(err, CX_E_USAGE, "option --rescan: expected 1 to 86400 seconds");
    CX_TRY(cx_cli_home_path(w->cli, args, &w->home_path, err));
    CX_TRY(cx_watch_begin(w, args, err));
    w->at_once = cx_cli_has(args, "once");
    CX_TRY(cx_watch_scan(w, err));
    CX_TRY(cx_watch_archive(w, err));
    return cx_cli_has(args, "once") ? cx_watch_record_actions(w, true, err)
                                    : cx_watch_until_end(w, rescan_s, err);
}

static cx_status list_sessions(cx_cli_ledger *l, void *state, cx_err *err);

static int run_watch(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job listing = {.access = CX_CLI_READ, .work = list_sessions};
    cx_err err = {0};
    if (cx_cli_has(args, "list"))
        return cx_cli_run_job(cli, args, &listing, NULL);
    cx_watch w;
    cx_watch_init(&w, cli);
    w.json = cx_cli_has(args, "json");
    cx_watch_begin_signals();
    cx_status status = watch_sessions(&w, args, &err);
    int code = CX_EXIT_HOLDS;
    if (cx_failed(status))
        code = cx_cli_ledger_fail(cli, args, &err);
    else
        print_totals(&w);
    if (code == CX_EXIT_HOLDS && cx_cli_has(args, "once") && w.counts.failed != 0)
        code = CX_EXIT_UNCHECKED;
    cx_watch_done(&w);
    return code;
}

/* --- what is archived ------------------------------------------------------------------------- */

static void list_one(const cx_recorded_session *s, bool json, cx_buf *out)
{
    char id[2 * CX_SESSION_ID_SIZE];
    cx_hex_encode(cx_bytes_from(s->id, CX_SESSION_ID_SIZE), id);
    if (json) {
        cx_buf_printf(out, "{\"bytes\":%llu,\"file\":", (unsigned long long)s->offset);
        cx_cli_add_json_text(out, s->path);
        cx_buf_printf(out, ",\"format\":\"%s\",\"generation\":%llu,\"session\":\"%.*s\"}\n",
                      cx_recorded_session_format_name(s->format), (unsigned long long)s->generation,
                      (int)sizeof id, id);
        return;
    }
    cx_buf_printf(out, "%.*s  %-11s  %10llu bytes  ", (int)sizeof id, id,
                  cx_recorded_session_format_name(s->format), (unsigned long long)s->offset);
    cx_shown_add(out, s->path);
    if (s->generation != 0)
        cx_buf_printf(out, "  (generation %llu)", (unsigned long long)s->generation);
    cx_buf_add_byte(out, '\n');
}

static cx_status list_sessions(cx_cli_ledger *l, void *state, cx_err *err)
{
    const cx_recorded_session *sessions;
    size_t count;
    (void)state;
    CX_TRY(cx_recorder_sessions(l->home, l->arena, &sessions, &count, err));
    for (size_t i = 0; i < count; i++)
        list_one(&sessions[i], l->json, &l->out);
    return CX_SUCCESS;
}

static const cx_cli_operand operands[] = {{"DIR", CX_CLI_FILE, NULL, true, true}};

static const cx_cli_option options[] = {
    CX_CLI_OPTION_HOME,
    CX_CLI_OPT_FLAG("once", 0, "Archive the existing files, then exit."),
    CX_CLI_OPT_FLAG("list", 0, "List the archived sessions, then exit."),
    CX_CLI_OPT("rescan", 0, CX_CLI_COUNT, "SECONDS",
               "How often all files are checked in addition to file watching; default 30."),
    CX_CLI_OPTIONS_SENSITIVE,
    CX_CLI_OPT_FLAG("json", 0, "One line of JSON for each step, and one at the end."),
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_watch = {
    .name = "watch",
    .purpose = "archive session files of coding agents as they are written",
    .about = "Watches the session files of Claude Code, Codex, Gemini CLI, Qwen Code, Cursor, "
             "Copilot CLI, Droid, OpenCode, OpenHands, Cline, Roo Code and Aider in the folders "
             "where these programs keep them, or those below each DIR. It appends every complete "
             "line to the ledger, each byte once: after a restart, a kill or a rename it continues "
             "where the ledger ends. A truncated or rewritten file counts as another session, and "
             "so does each version of a document that its program replaces. A file of no known "
             "format is archived as bytes and shown as unread. Other commands accept a session as "
             "@session/NAME, the file's name without its extension or the name of its folder: "
             "'cortex lattice render @session/NAME'. Folders: ~/.claude/projects, "
             "~/.codex/sessions, ~/.gemini/tmp, ~/.qwen, ~/.cursor/projects, "
             "~/.copilot/session-state, ~/.factory/sessions, ~/.local/share/opencode/storage, "
             "~/.openhands, ~/.cline/data/tasks, tasks of the extensions in VS Code and its like; "
             "of Aider the file in the folder where the command runs.\n\nThe data directory is "
             "owned only while something "
             "is appended; while a server owns it, the server appends. Session files may contain "
             "secrets, which are then in the ledger until they are erased ('cortex erase'): "
             "--sensitive mask keeps the known kinds of them out.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 everything was archived, or stopped by a signal\n2 usage error, or a DIR does not "
             "exist\n3 could not continue: no data directory, full disk; with --once also: a file "
             "could not be read",
    .example = "cortex watch",
    .run = run_watch,
};
