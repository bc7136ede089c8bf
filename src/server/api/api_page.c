/*
 * api_page.c - the files of the web page, and the browser sessions that show it.
 */
#include "server/feed/runs.h"
#include "server/origin.h"
#include "server/page/page.h"
#include "server/route.h"

#include <cortex/base.h>

#include "json/api.h"

/* --- files ------------------------------------------------------------------------------------ */

static void answer_problem(cx_call *call, unsigned status, const char *type, cx_str detail)
{
    const cx_problem problem = {.status = status, .type = type, .detail = detail};
    cx_call_problem(call, &problem);
}

/* The page is not framed, sends no referrer, and shares no resource with other origins. */
static void add_security_headers(cx_call *call)
{
    cx_call_header(call, "Content-Security-Policy", "%s", CX_PAGE_CSP);
    cx_call_header(call, "Referrer-Policy", "no-referrer");
    cx_call_header(call, "Cross-Origin-Opener-Policy", "same-origin");
    cx_call_header(call, "Cross-Origin-Resource-Policy", "same-origin");
    cx_call_header(call, "X-Frame-Options", "DENY");
    cx_call_header(call, "Permissions-Policy",
                   "camera=(), geolocation=(), microphone=(), payment=(), usb=()");
}

static void answer_file(cx_call *call, const cx_page_file *file)
{
    cx_page_coding coding = cx_page_choose(call->request.accept_encoding);
    if (coding == CX_PAGE_BROTLI && file->brotli.size == 0)
        coding = CX_PAGE_GZIP;
    if (coding == CX_PAGE_GZIP && file->gzip.size == 0)
        coding = CX_PAGE_PLAIN;
    const cx_page_body *body = coding == CX_PAGE_BROTLI ? &file->brotli
                               : coding == CX_PAGE_GZIP ? &file->gzip
                                                        : &file->plain;
    add_security_headers(call);
    cx_call_header(call, "ETag", "\"%s\"", file->etag);
    cx_call_header(call, "Vary", "Accept-Encoding");
    call->response.cache_control =
        file->immutable ? "public, max-age=31536000, immutable" : "no-cache";
    if (cx_page_is_known(file, call->request.if_none_match)) {
        cx_call_answer(call, 304, file->type);
        return;
    }
    if (coding != CX_PAGE_PLAIN)
        cx_call_header(call, "Content-Encoding", coding == CX_PAGE_BROTLI ? "br" : "gzip");
    cx_buf_add(&call->response.body, body->data, body->size);
    cx_call_answer(call, 200, file->type);
}

static cx_status answer_page_file(cx_call *call, cx_str name)
{
    if (!cx_origin_host(call->service, &call->request)) {
        answer_problem(call, 421, "forbidden",
                       CX_STR("the Host header names another server; use this server's address, or "
                              "start it with --name NAME"));
        return CX_SUCCESS;
    }
    const cx_page_file *file = cx_page_find(name);
    if (file != NULL)
        answer_file(call, file);
    else if (!cx_page_is_built())
        answer_problem(
            call, 404, "not-found",
            CX_STR(
                "this program was built without the web page: install nodejs and npm, run 'npm ci' "
                "in web/, and build again with -DCORTEX_WEB=ON; /openapi.json describes the API"));
    else
        answer_problem(call, 404, "not-found", CX_STR("the page has no such file"));
    return CX_SUCCESS;
}

cx_status cx_api_page(cx_call *call, cx_err *err)
{
    (void)err;
    return answer_page_file(call, CX_STR(""));
}

cx_status cx_api_page_file(cx_call *call, cx_err *err)
{
    cx_str name = cx_arena_printf(call->arena, "assets/%.*s", (int)call->captures[0].size,
                                  call->captures[0].data);
    return name.data == NULL ? cx_fail_nomem(err) : answer_page_file(call, name);
}

/* --- sessions --------------------------------------------------------------------------------- */

static void add_flag(cx_json_list *list, const char *name, bool value)
{
    cx_json_list_put(list, cx_str_z(name), cx_json_make_bool(value));
}

/* {"file","fleet","folder","level","name","otlp_url","repo","scopes","token_file","traces","version"} */
static cx_status answer_session(cx_call *call, cx_err *err)
{
    const cx_service *service = call->service;
    cx_json_list list = cx_json_list_begin(call->arena), scopes = cx_json_list_begin(call->arena);
    cx_json value;
    for (unsigned scope = 1; scope <= CX_SCOPES_ALL; scope <<= 1)
        if (call->token.scopes & scope)
            cx_json_list_add(&scopes, cx_json_make_str(cx_scope_name(scope)));
    CX_TRY(cx_json_list_end_array(&scopes, &value, err));
    const char *file = service->options.file_path;
    cx_json_list_put(&list, CX_STR("file"),
                     file == NULL ? cx_json_make_null() : cx_json_make_str(cx_str_z(file)));
    add_flag(&list, "fleet", service->options.watch != NULL);
    bool reads_runs = service->runs != NULL && (call->token.scopes & CX_SCOPE_RUN_READ) != 0;
    cx_str folder = reads_runs ? cx_str_z(cx_runs_repo(service->runs)) : CX_STR("");
    cx_json_put_maybe(&list, "folder", cx_utf8_valid(folder) ? folder : CX_STR(""));
    cx_json_list_put(&list, CX_STR("level"),
                     cx_json_make_str(cx_str_z(cx_trace_level_name(call->token.level))));
    cx_json_list_put(
        &list, CX_STR("name"),
        cx_json_make_str(cx_str_z(call->token.name[0] == 0 ? call->token.id : call->token.name)));
    cx_json_put_maybe(&list, "otlp_url", cx_str_z(service->otlp_url));
    add_flag(&list, "repo", service->runs != NULL);
    cx_json_list_put(&list, CX_STR("scopes"), value);
    cx_json_put_maybe(
        &list, "token_file",
        cx_str_z(service->options.token_path == NULL ? "" : service->options.token_path));
    add_flag(&list, "traces", service->recorder != NULL);
    cx_json_list_put(&list, CX_STR("version"), cx_json_make_str(cx_str_z(cx_version())));
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

static const char *cookie_ends(const cx_call *call)
{
    return call->service->options.tls ? "; Secure" : "";
}

cx_status cx_api_session_begin(cx_call *call, cx_err *err)
{
    char text[CX_SESSION_TEXT_SIZE + 1];
    /* A session is made of a token, not of another session: its time is not to be prolonged. */
    if (call->by_session) {
        answer_problem(call, 401, "unauthorized",
                       CX_STR("expected the header Authorization: Bearer TOKEN"));
        return CX_SUCCESS;
    }
    CX_TRY(cx_sessions_begin(&call->service->sessions, &call->token.digest, text, err));
    cx_call_header(call, "Set-Cookie", "%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict%s",
                   call->service->cookie, text, CX_SESSION_SECONDS, cookie_ends(call));
    return answer_session(call, err);
}

cx_status cx_api_session(cx_call *call, cx_err *err)
{
    return answer_session(call, err);
}

cx_status cx_api_session_end(cx_call *call, cx_err *err)
{
    cx_str cookie = cx_session_cookie(call->request.cookie, call->service->cookie);
    if (cookie.data != NULL)
        CX_TRY(cx_sessions_end(&call->service->sessions, cookie, err));
    cx_call_header(call, "Set-Cookie", "%s=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict%s",
                   call->service->cookie, cookie_ends(call));
    cx_buf_add_z(&call->response.body, "{}\n");
    cx_call_answer(call, 200, "application/json");
    return CX_SUCCESS;
}
