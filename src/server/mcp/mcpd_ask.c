/*
 * mcpd_ask.c - between a tool and a route: encodes the target, makes the request, and extracts the
 * text of a refusal.
 */
#include <stdio.h>

#include "server/mcp/mcpd_parts.h"

/* RFC 3986 §2.3 */
static bool is_unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

void cx_mcpd_add_escaped(cx_buf *out, cx_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (is_unreserved(c))
            cx_buf_add_byte(out, c);
        else
            cx_buf_printf(out, "%%%02X", c);
    }
}

/* The detail, and the name and reason of the first error. */
cx_str cx_mcpd_problem_text(const cx_mcpd_reply *reply, cx_arena *arena)
{
    cx_json problem;
    cx_str text = {NULL, 0};
    if (!cx_failed(cx_json_parse_text(reply->body, arena, &problem, NULL))) {
        cx_str detail = CX_JSON_GET_STR(&problem, "detail");
        const cx_json *error = cx_json_pointer(&problem, CX_STR("/errors/0"));
        cx_str name = error == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(error, "parameter");
        cx_str reason = error == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(error, "reason");
        if (name.data != NULL && reason.data != NULL)
            text = cx_arena_printf(arena, "%.*s: %.*s", (int)name.size, name.data, (int)reason.size,
                                   reason.data);
        else if (detail.data != NULL)
            text = detail;
    }
    if (text.data == NULL)
        text = cx_arena_printf(arena, "the request failed (status %u)", reply->status);
    if (reply->log.data != NULL && text.data != NULL)
        text = cx_arena_printf(arena, "%.*s (%.*s)", (int)text.size, text.data,
                               (int)reply->log.size, reply->log.data);
    return text.data == NULL ? CX_STR("out of memory") : text;
}

static cx_status answer_request(cx_call *call, const cx_token *token, cx_worker *worker,
                                cx_arena *arena, cx_mcpd_reply *out, cx_err *err)
{
    cx_service_begin_for(call, token);
    if (call->response.status == 0)
        cx_service_handle(call, worker);
    out->status = call->response.status;
    out->body = cx_arena_copy_str(arena, cx_buf_str(&call->response.body));
    return out->body.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status make_request(cx_worker *worker, const cx_token *token, const cx_request *request,
                              cx_arena *arena, cx_mcpd_reply *out, cx_err *err)
{
    char *room = CX_ARENA_ARRAY(arena, char, request->target.size + 1);
    cx_call *call = CX_ARENA_NEW(arena, cx_call);
    cx_worker inner;
    if (room == NULL || call == NULL)
        return cx_fail_nomem(err);
    /* The worker may be in the middle of a call: this one gets an arena of its own, and shares
     * the index. */
    cx_worker_init(&inner, worker->service);
    inner.index = worker->index;
    worker->index = NULL;
    cx_call_init(call, worker->service, request, room);
    cx_status status = answer_request(call, token, &inner, arena, out, err);
    cx_call_done(call);
    worker->index = inner.index;
    inner.index = NULL;
    cx_worker_done(&inner);
    return status;
}

cx_status cx_mcpd_get(cx_worker *worker, const cx_token *token, cx_str target, cx_arena *arena,
                      cx_mcpd_reply *out, cx_err *err)
{
    const cx_request request = {.method = CX_STR("GET"), .target = target, .has_length = true};
    return make_request(worker, token, &request, arena, out, err);
}

cx_status cx_mcpd_post(cx_worker *worker, const cx_token *token, cx_str target, cx_str body,
                       cx_arena *arena, cx_mcpd_reply *out, cx_err *err)
{
    const cx_request request = {.method = CX_STR("POST"),
                                .target = target,
                                .content_type = CX_STR("application/json"),
                                .has_length = true,
                                .length = body.size,
                                .body = cx_str_bytes(body)};
    return make_request(worker, token, &request, arena, out, err);
}
