/*
 * api_mcp.c - POST /mcp: the MCP server over streamable HTTP, without sessions and streams: each
 * message is independent, and is answered as application/json.
 *
 *   H1  A request that another site's page caused is rejected: with an Origin, the Host must be a
 *       name of this server, and the Origin that Host or this machine ("Security Warning" of the
 *       transport).
 *   H2  The rights are those of the token; the route rejects what the token may not read.
 */
#include "server/mcp/mcpd.h"
#include "server/origin.h"
#include "server/route.h"

/* "http://127.0.0.1:8420" -> "127.0.0.1:8420" */
static cx_str authority_of(cx_str origin)
{
    static const cx_str schemes[] = {{"http://", 7}, {"https://", 8}};
    for (size_t i = 0; i < CX_COUNT_OF(schemes); i++)
        if (cx_str_starts(origin, schemes[i]))
            return cx_str_from(origin.data + schemes[i].size, origin.size - schemes[i].size);
    return (cx_str){NULL, 0};
}

/* The host alone, "[::1]:80" -> "[::1]"; data NULL when something else than a port follows. */
static cx_str host_of(cx_str authority)
{
    size_t size = 0;
    if (authority.size != 0 && authority.data[0] == '[') {
        const char *end = memchr(authority.data, ']', authority.size);
        size = end == NULL ? 0 : (size_t)(end - authority.data) + 1;
    } else {
        while (size < authority.size && authority.data[size] != ':')
            size++;
    }
    for (size_t i = size; i < authority.size; i++)
        if (i == size ? authority.data[i] != ':'
                      : authority.data[i] < '0' || authority.data[i] > '9')
            return (cx_str){NULL, 0};
    return cx_str_from(authority.data, size);
}

static bool is_this_machine(cx_str authority)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    cx_str host = authority.data == NULL ? authority : host_of(authority);
    for (size_t i = 0; host.data != NULL && i < CX_COUNT_OF(names); i++)
        if (cx_str_is(host, names[i]))
            return true;
    return false;
}

/* H1 */
static bool origin_is_allowed(const cx_call *call)
{
    const cx_request *request = &call->request;
    if (request->origin.data == NULL)
        return true; /* no browser */
    cx_str authority = authority_of(request->origin);
    return authority.data != NULL && request->host.data != NULL &&
           cx_origin_host(call->service, request) &&
           (is_this_machine(authority) || cx_str_eq(authority, request->host));
}

static void answer_rpc_error(cx_call *call, unsigned status, int code, const char *why)
{
    cx_buf_clear(&call->response.body);
    cx_mcpd_error(&call->response.body, code, why);
    cx_call_answer(call, status, "application/json");
}

/* A message that does not parse has no id to answer, and a stateless request whose headers or
 * revision are wrong was not made: the transport needs to know of them too. */
static bool is_parse_error(cx_str answer)
{
    return cx_str_starts(answer, CX_STR("{\"error\":{\"code\":-32020,")) ||
           cx_str_starts(answer, CX_STR("{\"error\":{\"code\":-32022,")) ||
           (cx_str_starts(answer, CX_STR("{\"error\":")) &&
            cx_str_ends(answer, CX_STR(",\"id\":null,\"jsonrpc\":\"2.0\"}")));
}

static cx_status get_for_tool(void *arg, cx_str target, cx_arena *arena, cx_mcpd_reply *out,
                              cx_err *err)
{
    cx_call *call = arg;
    return cx_mcpd_get(call->worker, &call->token, target, arena, out, err);
}

static cx_status post_for_tool(void *arg, cx_str target, cx_str body, cx_arena *arena,
                               cx_mcpd_reply *out, cx_err *err)
{
    cx_call *call = arg;
    return cx_mcpd_post(call->worker, &call->token, target, body, arena, out, err);
}

cx_status cx_api_mcp(cx_call *call, cx_err *err)
{
    cx_mcpd_session session = CX_MCPD_SESSION_INIT;
    const cx_mcpd_host host = {.arg = call,
                               .ask = get_for_tool,
                               .post = post_for_tool,
                               .scopes = call->token.scopes,
                               .writes = call->service->options.mcp_writes};
    cx_str message = cx_bytes_str(call->request.body);
    session.begun = true;
    session.is_http = true;
    session.http_version = call->request.mcp_version;
    session.http_method = call->request.mcp_method;
    session.http_name = call->request.mcp_name;
    if (!origin_is_allowed(call)) {
        answer_rpc_error(call, 403, CX_MCPD_INVALID, "requests from this origin are not allowed");
        return CX_SUCCESS;
    }
    if (call->request.mcp_version.data != NULL &&
        !cx_mcpd_version_parse(call->request.mcp_version, &session.version)) {
        answer_rpc_error(call, 400, CX_MCPD_INVALID,
                         "MCP-Protocol-Version: expected 2024-11-05, 2025-03-26, 2025-06-18, "
                         "2025-11-25 or 2026-07-28");
        return CX_SUCCESS;
    }
    if (message.size > CX_MCPD_MESSAGE_MAX) {
        answer_rpc_error(call, 413, CX_MCPD_INVALID, "the message is longer than 1 MiB");
        return CX_SUCCESS;
    }
    CX_TRY(
        cx_mcpd_answer(&host, &session, message, call->service->alloc, &call->response.body, err));
    cx_str answer = cx_buf_str(&call->response.body);
    cx_call_answer(call,
                   answer.size == 0         ? 202
                   : is_parse_error(answer) ? 400
                                            : 200,
                   "application/json");
    return CX_SUCCESS;
}
