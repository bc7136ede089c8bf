/*
 * server_call.c - a request to a server of this program (server_call.h).
 */
#include "cli/server_call.h"

#include "os/api.h"

#define TIMEOUT_MS 60000
#define ANSWER_MAX ((size_t)16 << 20)
#define TOKEN_FILE_MAX ((size_t)4 << 10)

bool cx_cli_server_given(const cx_cli_args *args)
{
    return cx_cli_value(args, "url") != NULL;
}

static cx_status read_token(cx_cli *cli, const cx_cli_args *args, cx_str *out, cx_err *err)
{
    const char *path = cx_cli_value(args, "token-file");
    cx_buf bytes;
    if (path == NULL)
        return cx_fail(err, CX_E_USAGE,
                       "expected --token-file FILE: the token that 'cortex token add' printed");
    cx_buf_init(&bytes, cli->alloc);
    cx_status status = cx_io_read_file(cli->io, path, TOKEN_FILE_MAX, &bytes, err);
    cx_str text = cx_buf_str(&bytes);
    while (text.size != 0 && (uint8_t)text.data[text.size - 1] <= ' ')
        text.size--;
    if (!cx_failed(status) && text.size == 0)
        status = cx_fail(err, CX_E_USAGE, "option --token-file: %s has no token", path);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(&cli->arena, text);
        status = out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    cx_buf_done(&bytes);
    return status;
}

static cx_status read_body(cx_cli *cli, const char *url, unsigned status, cx_bytes body,
                           cx_json *out, cx_err *err)
{
    cx_str text = cx_arena_copy_str(&cli->arena, cx_bytes_str(body));
    if (text.data == NULL)
        return cx_fail_nomem(err);
    if (cx_failed(cx_json_parse_text(text, &cli->arena, out, NULL)) || out->type != CX_JSON_OBJECT)
        return cx_fail_at(err, CX_E_IO, "ServerAnswer", CX_NO_OFFSET,
                          "%.200s answered HTTP %u without a JSON object; is it 'cortex serve'?",
                          url, status);
    if (status >= 200 && status < 300)
        return CX_SUCCESS;
    cx_str detail = CX_JSON_GET_STR(out, "detail");
    return cx_fail_at(err,
                      status == 401 || status == 403  ? CX_E_DENIED
                      : status == 404                 ? CX_E_NOT_FOUND
                      : status >= 400 && status < 500 ? CX_E_USAGE
                                                      : CX_E_IO,
                      "ServerRefused", CX_NO_OFFSET, "%.200s answered HTTP %u: %.*s", url, status,
                      (int)(detail.size > 300 ? 300 : detail.size),
                      detail.size == 0 ? "" : detail.data);
}

cx_status cx_cli_server_call(cx_cli *cli, const cx_cli_args *args, const char *path, cx_bytes body,
                             cx_json *out, cx_err *err)
{
    cx_http_client_request request = {.method = body.size == 0 ? "GET" : "POST",
                                      .url = cx_cli_value(args, "url"),
                                      .path = path,
                                      .body = body,
                                      .timeout_ms = TIMEOUT_MS,
                                      .body_max = ANSWER_MAX};
    unsigned status = 0;
    cx_err why = {0};
    cx_buf answer;
    CX_ASSERT(request.url != NULL);
    if (cx_failed(cx_http_client_check_url(request.url, &why)))
        return cx_fail_at(err, CX_E_USAGE, why.tag, CX_NO_OFFSET, "option --url: %s", why.message);
    CX_TRY(read_token(cli, args, &request.token, err));
    cx_buf_init(&answer, cli->alloc);
    cx_status done = cx_http_client_exchange(&request, cli->alloc, &status, &answer, err);
    if (!cx_failed(done))
        done = read_body(cli, request.url, status, cx_buf_bytes(&answer), out, err);
    else if (done.code == CX_E_NOT_FOUND && err != NULL)
        done.code = err->code = CX_E_IO; /* of a server, not of what it was asked for */
    cx_buf_done(&answer);
    return done;
}
