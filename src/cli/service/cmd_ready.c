/*
 * cmd_ready.c - `cortex ready`: asks the server of a data directory whether it accepts traces.
 *
 * It is what health checks of containers and service managers run: no token, one request, one
 * deadline, an exit code.
 */
#include <string.h>

#include "cli/ledger/ledger.h"
#include "cli/service/serving.h"
#include "os/api.h"

#define TIMEOUT_MS 4000
#define ANSWER_MAX ((size_t)64 << 10)

typedef struct readiness {
    cx_str url;
    cx_str index; /* empty: not asked */
    bool by_http;
} readiness;

static cx_status read_answer(cx_cli *cli, readiness *r, unsigned code, const cx_buf *body,
                             cx_err *err)
{
    cx_json value;
    cx_str text = cx_arena_copy_str(&cli->arena, cx_buf_str(body));
    if (text.data == NULL)
        return cx_fail_nomem(err);
    if (cx_failed(cx_json_parse_text(text, &cli->arena, &value, NULL)) ||
        value.type != CX_JSON_OBJECT)
        return cx_fail_at(err, CX_E_IO, "ServerAnswer", CX_NO_OFFSET,
                          "%.200s/readyz answered HTTP %u without a JSON object; is it 'cortex "
                          "serve'?",
                          r->url.data, code);
    cx_str detail = CX_JSON_GET_STR(&value, "detail"), state = CX_JSON_GET_STR(&value, "status");
    r->index = CX_JSON_GET_STR(&value, "index");
    if (code == 200 && cx_str_is(state, "ready"))
        return CX_SUCCESS;
    return cx_fail_at(
        err, CX_E_BUSY, "NotReady", CX_NO_OFFSET, "%.200s is not ready: HTTP %u, %.*s", r->url.data,
        code, (int)(detail.size > 300 ? 300 : detail.size), detail.size == 0 ? "" : detail.data);
}

static cx_status ask_http(cx_cli *cli, readiness *r, cx_err *err)
{
    const cx_http_client_request request = {.method = "GET",
                                            .url = r->url.data,
                                            .path = "/readyz",
                                            .timeout_ms = TIMEOUT_MS,
                                            .body_max = ANSWER_MAX};
    unsigned code = 0;
    cx_buf body;
    cx_buf_init(&body, cli->alloc);
    cx_status status = cx_http_client_exchange(&request, cli->alloc, &code, &body, err);
    r->by_http = true;
    if (!cx_failed(status))
        status = read_answer(cli, r, code, &body, err);
    else if (status.code == CX_E_NOT_FOUND && err != NULL)
        status.code = err->code = CX_E_IO;
    cx_buf_done(&body);
    return status;
}

/* Its certificate names the server as clients know it, which is not how it is reached from here. */
static cx_status ask_socket(const char *home, cx_arena *arena, cx_err *err)
{
    cx_str path = cx_arena_printf(arena, "%s/socket", home);
    cx_socket socket = CX_SOCKET_NONE;
    if (path.data == NULL)
        return cx_fail_nomem(err);
    cx_status status = cx_net_connect(path.data, &socket, err);
    cx_net_close(socket);
    if (status.code == CX_E_NOT_FOUND && err != NULL)
        status.code = err->code = CX_E_IO;
    return status;
}

static cx_status ask_server(cx_cli *cli, const cx_cli_args *args, readiness *r, cx_err *err)
{
    const char *url = cx_cli_value(args, "url"), *home;
    cx_err why = {0};
    if (url != NULL) {
        r->url = cx_str_z(url);
        if (cx_failed(cx_http_client_check_url(url, &why)))
            return cx_fail_at(err, CX_E_USAGE, why.tag, CX_NO_OFFSET, "option --url: %s",
                              why.message);
        return ask_http(cli, r, err);
    }
    CX_TRY(cx_cli_home_path(cli, args, &home, err));
    CX_TRY(cx_serving_find(cli, home, &r->url, err));
    if (cli->part != NULL)
        return cx_fail_at(err, CX_E_USAGE, "NoServer", CX_NO_OFFSET,
                          "%.200s is served by nodes; name one with --url ('cortex fleet nodes' "
                          "lists them)",
                          home);
    if (r->url.size == 0)
        return cx_fail_at(err, CX_E_IO, "NoServer", CX_NO_OFFSET,
                          "no server has the data directory %.200s open; start 'cortex serve', or "
                          "name one with --url",
                          home);
    /* A copy that ends: the URL is text of a JSON document. */
    r->url = cx_arena_printf(&cli->arena, "%.*s", (int)r->url.size, r->url.data);
    if (r->url.data == NULL)
        return cx_fail_nomem(err);
    return cx_str_starts(r->url, CX_STR("https://")) ? ask_socket(home, &cli->arena, err)
                                                     : ask_http(cli, r, err);
}

static cx_status write_answer(cx_cli *cli, const cx_cli_args *args, const readiness *r, cx_buf *out,
                              cx_err *err)
{
    if (cx_cli_has(args, "json")) {
        cx_json_list json = cx_json_list_begin(&cli->arena);
        cx_json_put_maybe(&json, "index", r->index);
        cx_json_put_str(&json, "url", r->url);
        cx_json_put_z(&json, "checked", r->by_http ? "readyz" : "socket");
        return cx_cli_end_json(&json, out, err);
    }
    cx_buf_add_z(out, "ready: ");
    cx_shown_add(out, r->url);
    if (r->by_http) {
        cx_buf_add_z(out, ", index ");
        cx_shown_add(out, r->index.size == 0 ? CX_STR("unknown") : r->index);
    } else {
        cx_buf_add_z(out, ", which speaks TLS: only its socket was asked; its clients ask /readyz");
    }
    cx_buf_add_byte(out, '\n');
    return cx_buf_check(out, err);
}

static int run_ready(cx_cli *cli, const cx_cli_args *args)
{
    readiness r = {0};
    cx_err err = {0};
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    cx_status status = ask_server(cli, args, &r, &err);
    if (!cx_failed(status))
        status = write_answer(cli, args, &r, &out, &err);
    int code = cx_failed(status) ? cx_cli_ledger_fail(cli, args, &err)
                                 : cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}

static const cx_cli_option options[] = {
    CX_CLI_OPTION_HOME,
    CX_CLI_OPT("url", 0, CX_CLI_TEXT, "URL",
               "Ask this server, such as http://127.0.0.1:8420, instead of the one that has the "
               "data directory open."),
    CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_ready = {
    .name = "ready",
    .purpose = "ask a running server whether it accepts traces",
    .about = "Finds the server that has the data directory open and asks its /readyz, which needs "
             "no token, for at most four seconds. Health checks of containers and service managers "
             "run this. Of a server with TLS only its socket in the data directory is asked: its "
             "certificate names it as its clients know it.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 it accepts traces\n2 usage error\n3 it does not, it does not answer, or no server "
             "has the data directory open",
    .example = "cortex ready --home /var/lib/cortex",
    .run = run_ready,
};
