/*
 * cmd_lattice_view.c - `cortex view`, also `cortex lattice view`: one history in the browser,
 * without a data directory. The file is read once. The server listens on loopback only and accepts
 * a token that is generated for it and stored nowhere.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/api.h"
#include "cli/browser.h"
#include "cli/cli.h"
#include "lattice/api.h"
#include "server/api.h"

static int run_lattice_view(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_operand operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("port", 0, CX_CLI_COUNT, "N", "Where to listen on 127.0.0.1; default 0, any free."),
    CX_CLI_OPT_FLAG("no-browser", 0, "Print the address; do not open a browser."),
    CX_CLI_OPT_FLAG("json", 0, "Print the address as one line of JSON."), CX_CLI_OPTIONS_READING,
    CX_CLI_OPTIONS_COMMON};

#define VIEW_ABOUT                                                                                 \
    "Opens the debugger for one history: lanes of agents, every event, the state at any moment, "  \
    "and for each value the chain of changes that made it. The page is served on 127.0.0.1 until " \
    "an interrupt; its address contains a secret key. The file is read once, at the start. Files " \
    "of other programs are imported for it ('cortex import --list' names them)."
#define VIEW_EXITS                                                                                 \
    "0 stopped by an interrupt\n2 usage error\n3 unreadable, the port is in use, or this program " \
    "was built without the page"

const cx_cli_command cx_cli_lattice_view = {
    .name = "lattice view",
    .purpose = "open a history in the browser",
    .about = VIEW_ABOUT,
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = VIEW_EXITS,
    .example = "cortex lattice view history.jsonl",
    .run = run_lattice_view,
};

/* The same under the name that is a newcomer's first. */
const cx_cli_command cx_cli_view = {
    .name = "view",
    .purpose = "open a session or history that an agent left in the browser",
    .about = VIEW_ABOUT,
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = VIEW_EXITS,
    .example = "cortex view session.jsonl",
    .run = run_lattice_view,
};

typedef struct viewing {
    cx_cli *cli;
    const cx_cli_args *args;
    char token[CX_TOKEN_TEXT_SIZE + 1];
    cx_token known;
    cx_server *server;
} viewing;

static void log_line(void *arg, const char *line)
{
    (void)arg;
    cx_cli_complain("%s", line);
}

static cx_status open_server(viewing *v, const cx_lattice *lattice, cx_err *err)
{
    uint64_t port = cx_cli_number(v->args, "port", 0);
    if (port > UINT16_MAX)
        return cx_fail(err, CX_E_USAGE, "option --port: expected 0 to 65535");
    if (!cx_page_is_built())
        return cx_fail(err, CX_E_UNSUPPORTED,
                       "this program was built without the page; 'cortex lattice render' draws, "
                       "and README.md says how to build it with the page");
    v->known = (cx_token){.id = "view",
                          .name = "view",
                          .scopes = CX_SCOPE_READ,
                          .level = CX_LEVEL_FULL,
                          .expires_ns = CX_TIME_NONE};
    CX_TRY(cx_token_make_text(v->cli->io, v->token, &v->known.digest, err));
    cx_server_options wanted = {.alloc = v->cli->alloc,
                                .io = v->cli->io,
                                .file_path = v->args->operands[0],
                                .only_lattice = lattice,
                                .only_token = &v->known,
                                .connections = 256,
                                .log = log_line};
    CX_TRY(cx_tcp_address_parse("127.0.0.1:0", &wanted.address, err));
    wanted.address.port = (uint16_t)port;
    return cx_server_open(&wanted, &v->server, err);
}

static cx_status print_url(viewing *v, cx_err *err)
{
    const cx_tcp_address *address = cx_server_address(v->server);
    cx_str url = cx_arena_printf(&v->cli->arena, "http://127.0.0.1:%u/#token=%s",
                                 (unsigned)address->port, v->token);
    cx_buf out;
    if (url.data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&out, v->cli->alloc);
    if (cx_cli_has(v->args, "json")) {
        cx_json_list json = cx_json_list_begin(&v->cli->arena);
        cx_json value;
        cx_json_list_put(&json, CX_STR("url"), cx_json_make_str(url));
        CX_TRY(cx_json_list_end_object(&json, &value, err));
        CX_TRY(cx_json_write(&out, &value, CX_JSON_PY_COMPACT, err));
        cx_buf_add_byte(&out, '\n');
    } else {
        cx_buf_printf(&out, "%s\nThis address is the key to the page; an interrupt ends it.\n",
                      url.data);
    }
    cx_status status = cx_buf_check(&out, err);
    if (!cx_failed(status))
        cx_cli_out_write(&v->cli->out, cx_buf_str(&out));
    cx_buf_done(&out);
    if (!cx_failed(status) && !cx_cli_has(v->args, "no-browser") && !cx_cli_has(v->args, "json"))
        (void)cx_cli_open_browser(url.data);
    return status;
}

static int run_lattice_view(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    viewing v = {.cli = cli, .args = args};
    sigset_t ends, before;
    int code, got;
    cx_lattice *lattice =
        cx_cli_open_lattice(cli, args, args->operands[0], CX_CLI_KEEP_DELTAS, &code);
    if (lattice == NULL)
        return code;
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGTERM);
    (void)sigaddset(&ends, SIGINT);
    /* Threads that are started from now on leave them to us. */
    (void)pthread_sigmask(SIG_BLOCK, &ends, &before);
    cx_status status = open_server(&v, lattice, &err);
    if (!cx_failed(status))
        status = print_url(&v, &err);
    if (cx_failed(status)) {
        code = cx_cli_fail(cli, args->operands[0], &err, cx_cli_has(args, "json"));
    } else {
        while (sigwait(&ends, &got) != 0)
            continue;
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        code = CX_EXIT_HOLDS;
    }
    cx_server_close(v.server, 1000);
    cx_lattice_close(lattice);
    return code;
}
