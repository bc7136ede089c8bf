/*
 * cmd_up.c - `cortex up`: one command from nothing to the page with one's own sessions. Makes the
 * data directory, serves it, archives the sessions of this user, and opens the browser.
 *
 *   U1  The browser is signed in by a token of its own, which ends with the process: a command
 *       line, where other users may see it for a moment, never has a lasting one.
 *   U2  Where a server has the data directory already, that one is opened.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/api.h"
#include "cli/browser.h"
#include "cli/erasure/sensitive_args.h"
#include "cli/ledger/ledger.h"
#include "cli/service/serving.h"
#include "cli/service/watch.h"
#include "os/api.h"

#define GRACE_MS 2000
#define TOKEN_PREFIX "up-"
#define TOKEN_SECONDS 43200 /* as long as a browser's session */
#define NS_PER_S INT64_C(1000000000)

typedef struct upping {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_cli_args init_args, serve_args, watch_args; /* `args`, as those commands have them */
    cx_serving serving;
    cx_watch watch;
    bool watches;   /* there is something to watch, or will be */
    bool made_home; /* by this start */
    char token[CX_TOKEN_TEXT_SIZE + 1];
    cx_token added; /* its id is empty: no token was added */
    cx_str session; /* "session/ID", the newest one; empty = none */
} upping;

/* --- arguments -------------------------------------------------------------------------------- */

/* The options that the other command has, too, as its own: parts of it read them. */
static cx_status args_as(upping *u, const cx_cli_command *other, cx_cli_args *out, cx_err *err)
{
    const cx_cli_args *args = u->args;
    cx_cli_given *given = CX_ARENA_ARRAY(&u->cli->arena, cx_cli_given, args->given_count + 1);
    if (given == NULL)
        return cx_fail_nomem(err);
    *out = *args;
    out->command = other;
    out->given = given;
    out->given_count = 0;
    for (size_t i = 0; i < args->given_count; i++)
        for (size_t j = 0; j < other->option_count; j++)
            if (strcmp(args->command->options[args->given[i].option].name,
                       other->options[j].name) == 0) {
                given[out->given_count] = args->given[i];
                given[out->given_count++].option = j;
            }
    return CX_SUCCESS;
}

/* --- the data directory ----------------------------------------------------------------------- */

static bool on_name(void *arg, const char *name)
{
    (void)name;
    *(bool *)arg = true;
    return false;
}

/* A folder with files of others does not become a data directory because of a typing error. */
static cx_status check_place(upping *u, const char *path, cx_err *err)
{
    bool is_used = false;
    (void)u->cli->io->list(u->cli->io, path, on_name, &is_used);
    if (is_used)
        return cx_fail(err, CX_E_USAGE,
                       "%s has files, and is no data directory; expected one, or a folder that is "
                       "missing or empty ('cortex init' makes one in any folder)",
                       path);
    return cx_cli_outside_homes(u->cli->io, path, err);
}

static cx_status need_home(upping *u, const char *path, cx_err *err)
{
    cx_str log = cx_arena_printf(&u->cli->arena, "%s/log", path);
    cx_facts facts;
    if (log.data == NULL)
        return cx_fail_nomem(err);
    if (!cx_failed(cx_path_facts(log.data, true, &facts, NULL)))
        return CX_SUCCESS;
    CX_TRY(check_place(u, path, err));
    CX_TRY(cx_cli_make_home(u->cli, &u->init_args, path, CX_SCHEME_CORTEX_1, err));
    u->made_home = true;
    return CX_SUCCESS;
}

/* --- signing in (U1) -------------------------------------------------------------------------- */

/* Those of processes that were killed. */
static cx_status revoke_expired(upping *u, const char *home, cx_err *err)
{
    const cx_io *io = u->cli->io;
    cx_tokens tokens;
    cx_token revoked;
    CX_TRY(cx_tokens_read(io, home, &u->cli->arena, &tokens, err));
    for (size_t i = 0; i < tokens.count; i++) {
        const cx_token *token = &tokens.items[i];
        if (strncmp(token->name, TOKEN_PREFIX, strlen(TOKEN_PREFIX)) != 0 ||
            token->expires_ns == CX_TIME_NONE || (uint64_t)token->expires_ns > io->wall_ns(io))
            continue;
        cx_status status = cx_token_revoke(io, home, cx_str_z(token->id), &revoked, err);
        if (cx_failed(status) && status.code != CX_E_NOT_FOUND)
            return status;
    }
    return CX_SUCCESS;
}

static cx_status add_token(upping *u, const char *home, cx_err *err)
{
    const cx_io *io = u->cli->io;
    cx_token wanted = {.scopes = CX_SCOPE_WRITE | CX_SCOPE_READ | CX_SCOPE_RUN_READ,
                       .level = CX_LEVEL_FULL,
                       .expires_ns = (int64_t)io->wall_ns(io) + TOKEN_SECONDS * NS_PER_S};
    (void)snprintf(wanted.name, sizeof wanted.name, TOKEN_PREFIX "%016llx",
                   (unsigned long long)cx_io_seed(io));
    CX_TRY(revoke_expired(u, home, err));
    return cx_token_add(io, home, &wanted, u->token, &u->added, err);
}

static void revoke_token(upping *u)
{
    cx_token revoked;
    cx_err err;
    if (u->added.id[0] != 0 && cx_failed(cx_token_revoke(u->cli->io, u->serving.path,
                                                         cx_str_z(u->added.id), &revoked, &err)))
        cx_cli_complain("up: note: the browser's token could not be revoked: %s", err.message);
}

/* The address that signs in, and then shows the newest session, or the inbox. */
static cx_str page_url(const upping *u, cx_str url)
{
    if (u->session.size == 0)
        return cx_arena_printf(&u->cli->arena, "%.*s/#token=%s", (int)url.size, url.data, u->token);
    return cx_arena_printf(&u->cli->arena, "%.*s/#token=%s&to=%%2Fdebugger%%2F%.*s", (int)url.size,
                           url.data, u->token, (int)u->session.size, u->session.data);
}

/* --- what is printed -------------------------------------------------------------------------- */

static void add_row(cx_buf *out, const char *name, cx_str value, const char *more)
{
    cx_buf_printf(out, "%-9s", name);
    cx_shown_add(out, value);
    cx_buf_printf(out, "%s\n", more);
}

/* A token goes to a terminal, never to a log. */
static void print_up(const upping *u, cx_str page, cx_buf *out)
{
    const cx_serving *s = &u->serving;
    cx_str plain = cx_arena_printf(&u->cli->arena, "%.*s/", (int)s->url.size, s->url.data);
    add_row(out, "home", cx_str_z(s->path), u->made_home ? "  (made now)" : "");
    if (s->otlp_url.size != 0)
        cx_buf_printf(out, "otlp     OTEL_EXPORTER_OTLP_ENDPOINT=%.*s\n", (int)s->otlp_url.size,
                      s->otlp_url.data);
    for (size_t i = 0; u->watches && i < u->watch.folder_count; i++)
        add_row(out, "sessions", cx_str_z(u->watch.folders[i]), "");
    if (u->watches && u->watch.folder_count == 0)
        cx_buf_add_z(out,
                     "sessions none yet: ~/.claude/projects, ~/.codex/sessions and the folders of "
                     "other agents are watched once they exist\n");
    if (s->token_path != NULL)
        add_row(out, "token", cx_str_z(s->token_path), "  (for programs)");
    if (!cx_page_is_built())
        cx_buf_add_z(out, "page     not in this program: it was built without (see README.md)\n");
    else
        add_row(out, "page", isatty(1) ? page : plain, "");
    cx_buf_add_z(out, "Ctrl-C stops it; what was recorded stays.\n");
}

static cx_status print_up_json(const upping *u, cx_str url, bool is_running, cx_buf *out,
                               cx_err *err)
{
    const cx_serving *s = &u->serving;
    cx_json_list json = cx_json_list_begin(&u->cli->arena);
    cx_json_put_bool(&json, "already_running", is_running);
    cx_json_put_str(&json, "home", cx_str_z(s->path));
    cx_json_put_maybe(&json, "otlp_url", s->otlp_url);
    cx_json_put_bool(&json, "page", cx_page_is_built());
    cx_json_put_maybe(&json, "session", u->session);
    cx_json_put_maybe(&json, "token_file", cx_str_z(s->token_path == NULL ? "" : s->token_path));
    cx_json_put_str(&json, "url", url);
    return cx_cli_end_json(&json, out, err);
}

/* Prints, then opens the browser. */
static cx_status announce(upping *u, cx_str url, bool is_running, cx_err *err)
{
    cx_buf out;
    cx_str page = page_url(u, url);
    cx_status status = page.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    cx_buf_init(&out, u->cli->alloc);
    if (!cx_failed(status) && cx_cli_has(u->args, "json"))
        status = print_up_json(u, url, is_running, &out, err);
    else if (!cx_failed(status) && is_running)
        cx_buf_printf(&out, "already running: %.*s/\n", (int)url.size, url.data);
    else if (!cx_failed(status))
        print_up(u, page, &out);
    if (!cx_failed(status))
        status = cx_buf_check(&out, err);
    if (!cx_failed(status))
        cx_cli_out_write(&u->cli->out, cx_buf_str(&out));
    cx_buf_done(&out);
    CX_TRY(status);
    if (!cx_cli_has(u->args, "no-open") && cx_page_is_built() && !cx_cli_open_browser(page.data))
        cx_cli_complain("up: note: no browser could be opened; open the address above");
    return CX_SUCCESS;
}

/* --- all of it -------------------------------------------------------------------------------- */

static cx_status begin_watch(upping *u, cx_err *err)
{
    cx_watch *w = &u->watch;
    const cx_recorded_session *session;
    char hex[2 * CX_SESSION_ID_SIZE];
    w->home_path = u->serving.path;
    CX_TRY(cx_watch_begin(w, &u->watch_args, err));
    CX_TRY(cx_watch_scan(w, err));
    CX_TRY(cx_watch_archive_newest(w, &session, err));
    if (session == NULL)
        return CX_SUCCESS;
    cx_hex_encode(cx_bytes_from(session->id, CX_SESSION_ID_SIZE), hex);
    u->session = cx_arena_printf(&u->cli->arena, "session/%.*s", (int)sizeof hex, hex);
    return u->session.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* Returns when a signal ends it. */
static cx_status serve_and_watch(upping *u, const sigset_t *ends, const sigset_t *before,
                                 cx_err *err)
{
    CX_TRY(add_token(u, u->serving.path, err));
    if (!u->watches) {
        CX_TRY(announce(u, u->serving.url, false, err));
        cx_serving_await_end(ends, before);
        return CX_SUCCESS;
    }
    /* From here on this thread takes the signals, between two steps. */
    cx_watch_begin_signals();
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
    CX_TRY(begin_watch(u, err));
    CX_TRY(announce(u, u->serving.url, false, err));
    return cx_watch_until_end(&u->watch, CX_WATCH_RESCAN_S, err);
}

/* U2 */
static cx_status open_running(upping *u, cx_str url, cx_err *err)
{
    if (!cx_cli_has(u->args, "no-open"))
        CX_TRY(add_token(u, u->serving.path, err));
    CX_TRY(announce(u, url, true, err));
    u->added.id[0] = 0; /* the browser goes on with it; it expires */
    return CX_SUCCESS;
}

/* Access from other machines needs TLS and names, which `cortex serve` has. */
static cx_status check_loopback(const upping *u, cx_err *err)
{
    const char *listen = cx_cli_value(u->args, "listen");
    cx_tcp_address address = {.is_loopback = true};
    if (listen != NULL)
        CX_TRY(cx_tcp_address_parse(listen, &address, err));
    if (!address.is_loopback)
        return cx_fail(err, CX_E_USAGE,
                       "option --listen: %s is reachable by other machines; expected an address of "
                       "loopback, such as 127.0.0.1:8420 ('cortex serve' listens elsewhere)",
                       listen);
    return CX_SUCCESS;
}

static cx_status bring_up(upping *u, const sigset_t *ends, const sigset_t *before, cx_err *err)
{
    cx_serving *s = &u->serving;
    cx_str url;
    if (u->args->operand_count != 0 && !u->watches)
        return cx_fail(err, CX_E_USAGE, "expected either DIR or --no-watch");
    CX_TRY(check_loopback(u, err));
    CX_TRY(args_as(u, &cx_cli_init, &u->init_args, err));
    CX_TRY(args_as(u, &cx_cli_serve, &u->serve_args, err));
    CX_TRY(args_as(u, &cx_cli_watch, &u->watch_args, err));
    s->args = &u->serve_args;
    CX_TRY(cx_cli_home_path(u->cli, u->args, &s->path, err));
    CX_TRY(cx_serving_find(u->cli, s->path, &url, err));
    if (url.size != 0)
        return open_running(u, url, err);
    CX_TRY(need_home(u, s->path, err));
    CX_TRY(cx_serving_open(s, err));
    return serve_and_watch(u, ends, before, err);
}

static int run_up(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    sigset_t ends, before;
    upping u = {.cli = cli,
                .args = args,
                .serving = {.cli = cli, .or_free_port = true},
                .watches = !cx_cli_has(args, "no-watch")};
    cx_watch_init(&u.watch, cli);
    u.watch.quiet = u.watch.may_wait = true;
    cx_alloc_return_large();
    cx_serving_block_signals(&ends, &before);
    cx_status status = bring_up(&u, &ends, &before, &err);
    int code = cx_failed(status) ? cx_cli_ledger_fail(cli, args, &err) : CX_EXIT_HOLDS;
    cx_watch_done(&u.watch);
    revoke_token(&u);
    cx_serving_close(&u.serving, cx_failed(status) ? 0 : GRACE_MS);
    return code;
}

/* --- the table -------------------------------------------------------------------------------- */

static const cx_cli_operand operands[] = {{"DIR", CX_CLI_FILE, NULL, true, true}};

static const cx_cli_option options[] = {
    CX_CLI_OPTION_HOME,
    CX_CLI_OPT("listen", 0, CX_CLI_TEXT, "ADDR:PORT",
               "Where to listen, on loopback; default 127.0.0.1:8420, or a free port if that is in "
               "use. Port 0 selects a free port."),
    CX_CLI_OPT("otlp", 0, CX_CLI_TEXT, "ADDR:PORT|off",
               "Where OpenTelemetry exporters send spans and logs by OTLP/HTTP; default "
               "127.0.0.1:4318, or off if that port is in use."),
    CX_CLI_OPT_FLAG("no-watch", 0, "Do not archive sessions of coding agents."),
    CX_CLI_OPT_FLAG("no-open", 0, "Print the address; do not open a browser."),
    CX_CLI_OPTIONS_SENSITIVE,
    CX_CLI_OPT_FLAG("json", 0, "Print what is served as one line of JSON."),
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_up = {
    .name = "up",
    .purpose = "serve, archive this user's agent sessions, open the browser",
    .about =
        "One command from nothing to your own last Claude Code session. Makes the data directory "
        "if it is missing, serves it on this machine as 'cortex serve' does, archives the sessions "
        "of coding agents as 'cortex watch' does (or those below each DIR), and opens the "
        "page in the browser at the newest session. Everything recorded stays in the data "
        "directory; session files may contain secrets, which are then in it, too, unless "
        "--sensitive masks them. Settings of these options are in the section [up] of the "
        "configuration.\n\nThe browser "
        "is signed in by a token of its own that ends with this process. Where a server has the "
        "data directory open already, its page is opened instead, and nothing else is started.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 stopped by a signal, or opened the page of a running server\n2 usage error, or a "
             "DIR does not exist\n3 could not serve: the data directory cannot be made or opened, "
             "address in use, full disk",
    .example = "cortex up",
    .run = run_up,
};
