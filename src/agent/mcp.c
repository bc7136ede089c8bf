/*
 * mcp.c - an MCP client over lines.  Invariants M1 to M4: mcp.h.
 */
#include "agent/mcp.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/api.h"

/* A tool of the server, with the required arguments of its input schema. */
typedef struct known_tool {
    cx_str name;
    const cx_str *required;
    size_t required_count;
} known_tool;

struct cx_mcp {
    cx_mcp_options options;
    cx_arena tools_arena;
    CX_VEC(known_tool) tools;
    cx_arena message; /* of the message being read */
    uint64_t next_id;
    uint64_t received_bytes;
    bool is_stateless; /* M4 */
    bool over;         /* the session has ended: nothing is sent any more */
};

/* One request that waits for its answer. */
typedef struct pending_request {
    cx_mcp *client;
    uint64_t id;
    uint64_t deadline_ns;
    cx_mcp_end *end;
    cx_err *err;
} pending_request;

static uint64_t now_ns(const cx_mcp *client)
{
    return client->options.io->monotonic_ns(client->options.io);
}

static uint64_t deadline_of(const cx_mcp *client, uint64_t timeout_ms)
{
    uint64_t now = now_ns(client);
    return timeout_ms > (UINT64_MAX - now) / 1000000 ? UINT64_MAX : now + timeout_ms * 1000000;
}

/* At least 1: an answer may have arrived already. */
static uint64_t remaining_ms(const pending_request *w)
{
    uint64_t now = now_ns(w->client);
    return now >= w->deadline_ns ? 1 : (w->deadline_ns - now) / 1000000 + 1;
}

static void end_session(pending_request *w, cx_mcp_end_kind kind, const char *format, ...)
    CX_PRINTF(3, 4);

static void end_session(pending_request *w, cx_mcp_end_kind kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(w->end->message, sizeof w->end->message, format, args);
    va_end(args);
    w->end->kind = kind;
    w->client->over = true;
}

static void end_session_by_status(pending_request *w, cx_status status, const cx_err *why)
{
    if (status.code == CX_E_TIMEOUT)
        end_session(w, CX_MCP_TIMED_OUT, "the server did not answer in time");
    else if (status.code == CX_E_BUSY)
        end_session(w, CX_MCP_CANCELLED, "cancelled");
    else if (status.code == CX_E_LIMIT)
        end_session(w, CX_MCP_TOO_MUCH, "the server sent more than the limit: %.180s",
                    why->message);
    else
        end_session(w, CX_MCP_BROKEN, "the connection to the server failed: %.200s", why->message);
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Evidence that reaches its limit ends the session, too. */
static cx_status report_raw_line(pending_request *w, cx_bytes line)
{
    const cx_mcp_host *host = &w->client->options.host;
    if (host->raw == NULL)
        return CX_SUCCESS;
    cx_status status = host->raw(host->arg, line, w->err);
    if (status.code != CX_E_LIMIT)
        return status;
    end_session(w, CX_MCP_TOO_MUCH, "the record of the session reached its size limit");
    return CX_SUCCESS;
}

/* Sends one message; a failure of the pipe counts as the server's and is recorded in w->end. */
static cx_status send_message(pending_request *w, const cx_json *message)
{
    cx_buf line;
    cx_err why;
    cx_buf_init(&line, w->client->options.alloc);
    cx_status status = cx_json_write(&line, message, CX_JSON_JCS, w->err);
    if (!cx_failed(status))
        status = cx_buf_check(&line, w->err);
    if (!cx_failed(status))
        status = report_raw_line(w, cx_buf_bytes(&line));
    cx_buf_add_byte(&line, '\n');
    if (!cx_failed(status))
        status = cx_buf_check(&line, w->err);
    if (!cx_failed(status) && w->end->kind == CX_MCP_OK) {
        cx_status sent = w->client->options.lines.send(w->client->options.lines.arg,
                                                       cx_buf_bytes(&line), remaining_ms(w), &why);
        if (sent.code == CX_E_NOMEM)
            status = cx_fail_nomem(w->err);
        else if (cx_failed(sent))
            end_session_by_status(w, sent, &why);
    }
    cx_buf_done(&line);
    return status;
}

/* The next line, or w->end. */
static cx_status receive_message_line(pending_request *w, cx_str *out)
{
    cx_mcp *client = w->client;
    bool end = false;
    cx_err why;
    if (now_ns(client) >= w->deadline_ns) {
        end_session(w, CX_MCP_TIMED_OUT, "the server did not answer in time");
        return CX_SUCCESS;
    }
    cx_status status = client->options.lines.receive(
        client->options.lines.arg, CX_MCP_LINE_BYTES_MAX, remaining_ms(w), out, &end, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(w->err);
    if (cx_failed(status)) {
        end_session_by_status(w, status, &why);
        return CX_SUCCESS;
    }
    if (end) {
        end_session(w, CX_MCP_BROKEN, "the server ended without an answer");
        return CX_SUCCESS;
    }
    client->received_bytes += out->size + 1;
    CX_TRY(report_raw_line(w, cx_str_bytes(*out)));
    if (w->end->kind == CX_MCP_OK && client->received_bytes > CX_MCP_SESSION_BYTES_MAX)
        end_session(w, CX_MCP_TOO_MUCH, "the server sent more than %llu bytes",
                    (unsigned long long)CX_MCP_SESSION_BYTES_MAX);
    return CX_SUCCESS;
}

/* --- messages --------------------------------------------------------------------------------- */

static void put_message_head(cx_json_list *message, const cx_json *id)
{
    cx_json_list_put(message, CX_STR("jsonrpc"), cx_json_make_str(CX_STR("2.0")));
    if (id != NULL)
        cx_json_list_put(message, CX_STR("id"), *id);
}

static cx_status send_request(pending_request *w, cx_str method, const cx_json *params)
{
    cx_arena *arena = &w->client->message;
    cx_json_list message = cx_json_list_begin(arena);
    cx_json value, id = cx_json_make_uint(arena, w->id);
    put_message_head(&message, w->id == 0 ? NULL : &id); /* 0: a notification */
    cx_json_list_put(&message, CX_STR("method"), cx_json_make_str(method));
    if (params != NULL)
        cx_json_list_put(&message, CX_STR("params"), *params);
    CX_TRY(cx_json_list_end_object(&message, &value, w->err));
    return send_message(w, &value);
}

static cx_status send_answer(pending_request *w, const cx_json *id, const cx_mcp_answer *answer)
{
    cx_arena *arena = &w->client->message;
    cx_json_list message = cx_json_list_begin(arena);
    cx_json value;
    put_message_head(&message, id);
    if (answer->refused) {
        cx_json_list fault = cx_json_list_begin(arena);
        cx_json_list_put(&fault, CX_STR("code"), cx_json_make_int(arena, answer->code));
        cx_json_list_put(&fault, CX_STR("message"), cx_json_make_str(answer->message));
        CX_TRY(cx_json_list_end_object(&fault, &value, w->err));
        cx_json_list_put(&message, CX_STR("error"), value);
    } else {
        cx_json_list_put(&message, CX_STR("result"), answer->result);
    }
    CX_TRY(cx_json_list_end_object(&message, &value, w->err));
    return send_message(w, &value);
}

static cx_status answer_request(pending_request *w, cx_str method, const cx_json *id,
                                const cx_json *params)
{
    const cx_mcp_host *host = &w->client->options.host;
    cx_arena *arena = &w->client->message;
    cx_mcp_answer answer = {.refused = true,
                            .code = CX_MCP_E_METHOD,
                            .message = CX_STR("this client does not offer that method")};
    if (cx_str_is(method, "ping")) {
        cx_json_list nothing = cx_json_list_begin(arena);
        answer.refused = false;
        CX_TRY(cx_json_list_end_object(&nothing, &answer.result, w->err));
    } else if (host->request != NULL) {
        cx_status status = host->request(host->arg, method, params, arena, &answer, w->err);
        if (cx_failed(status)) {
            /* The host ends the turn because of this; the server still receives the rejection. */
            cx_err saved = *w->err;
            cx_mcp_answer no = {
                .refused = true, .code = CX_MCP_E_METHOD, .message = CX_STR("refused")};
            cx_status sent = send_answer(w, id, &no);
            (void)sent;
            *w->err = saved;
            return status;
        }
    }
    return send_answer(w, id, &answer);
}

/* The parts of one message (M2). */
typedef struct message {
    bool is_answer;
    cx_str method; /* of a request or notification */
    const cx_json *id, *params, *result, *fault;
} message;

/* Text, or an integer that every JSON reader preserves (RFC 8259 §6). */
static bool is_id(const cx_json *id)
{
    int64_t number;
    if (id->type == CX_JSON_STRING)
        return (id->flags & CX_JSON_SURROGATE) == 0;
    return id->type == CX_JSON_INT && cx_json_int64(id, &number) && number > -(INT64_C(1) << 53) &&
           number < INT64_C(1) << 53;
}

/* Parses a message; returns NULL, or why it is invalid. */
static const char *read_message(const cx_json *value, message *out)
{
    const cx_json *version = CX_JSON_GET(value, "jsonrpc");
    const cx_json *method = CX_JSON_GET(value, "method");
    memset(out, 0, sizeof *out);
    if (value->type != CX_JSON_OBJECT)
        return "a line that is not a JSON object";
    if (version == NULL || version->type != CX_JSON_STRING ||
        !cx_str_is(cx_json_text(version), "2.0"))
        return "a message without \"jsonrpc\":\"2.0\"";
    out->id = CX_JSON_GET(value, "id");
    out->params = CX_JSON_GET(value, "params");
    out->result = CX_JSON_GET(value, "result");
    out->fault = CX_JSON_GET(value, "error");
    if (out->id != NULL && !is_id(out->id) &&
        !(out->id->type == CX_JSON_NULL && out->fault != NULL))
        return "a message whose id is neither a number nor text";
    if (method != NULL) {
        if (method->type != CX_JSON_STRING || out->result != NULL || out->fault != NULL)
            return "a message that is neither a request nor an answer";
        out->method = cx_json_text(method);
        return NULL;
    }
    out->is_answer = true;
    if (out->id == NULL || (out->result == NULL) == (out->fault == NULL))
        return "an answer without an id, or not with exactly one of result and error";
    if (out->fault != NULL && out->fault->type != CX_JSON_OBJECT)
        return "an error that is not an object";
    return NULL;
}

/* Reads lines until the answer arrives; *out borrows from client->message. Handles other messages
 * meanwhile. */
static cx_status wait_for_answer(pending_request *w, message *out)
{
    cx_mcp *client = w->client;
    const cx_mcp_host *host = &client->options.host;
    while (w->end->kind == CX_MCP_OK) {
        cx_str line = {NULL, 0};
        cx_json *value;
        cx_err why;
        uint64_t id;
        CX_TRY(receive_message_line(w, &line));
        if (w->end->kind != CX_MCP_OK)
            break;
        cx_arena_reset(&client->message, (cx_arena_mark){0});
        value = CX_ARENA_NEW(&client->message, cx_json);
        cx_str copy = cx_arena_copy_str(&client->message, line);
        if (value == NULL || copy.data == NULL)
            return cx_fail_nomem(w->err);
        cx_status status =
            cx_run_json_read(copy, CX_MCP_LINE_BYTES_MAX, &client->message, value, &why);
        if (status.code == CX_E_NOMEM)
            return cx_fail_nomem(w->err);
        const char *fault = cx_failed(status) ? why.message : read_message(value, out);
        if (fault != NULL) {
            end_session(w, CX_MCP_BROKEN, "the server sent an invalid message: %.180s", fault);
        } else if (!out->is_answer && out->id != NULL) {
            CX_TRY(answer_request(w, out->method, out->id, out->params));
        } else if (!out->is_answer) {
            if (host->notified != NULL)
                CX_TRY(host->notified(host->arg, out->method, out->params, w->err));
        } else if (!cx_json_uint64(out->id, &id) || id != w->id) {
            end_session(w, CX_MCP_BROKEN, "the server answered a request that was not made");
        } else {
            break;
        }
    }
    return CX_SUCCESS;
}

/* One request and its answer; *out is set only when w->end is OK. */
static cx_status request_and_wait(pending_request *w, cx_str method, const cx_json *params,
                                  message *out)
{
    w->id = ++w->client->next_id;
    CX_TRY(send_request(w, method, params));
    return w->end->kind == CX_MCP_OK ? wait_for_answer(w, out) : CX_SUCCESS;
}

static pending_request begin_request(cx_mcp *client, uint64_t timeout_ms, cx_mcp_end *end,
                                     cx_err *err)
{
    pending_request w = {
        .client = client, .deadline_ns = deadline_of(client, timeout_ms), .end = end, .err = err};
    memset(end, 0, sizeof *end);
    cx_arena_reset(&client->message, (cx_arena_mark){0});
    if (client->over)
        end_session(&w, CX_MCP_BROKEN, "the session is over");
    return w;
}

/* --- what a client says of itself ------------------------------------------------------------- */

/* Revision, capabilities (none) and name, under these names. */
static cx_status put_client(pending_request *w, const char *const names[3], const char *version,
                            cx_json_list *out)
{
    cx_arena *arena = &w->client->message;
    cx_json_list info = cx_json_list_begin(arena), nothing = cx_json_list_begin(arena);
    cx_json value;
    cx_json_list_put(out, cx_str_z(names[0]), cx_json_make_str(cx_str_z(version)));
    CX_TRY(cx_json_list_end_object(&nothing, &value, w->err));
    cx_json_list_put(out, cx_str_z(names[1]), value);
    cx_json_list_put(&info, CX_STR("name"),
                     cx_json_make_str(cx_str_z(w->client->options.client_name)));
    cx_json_list_put(&info, CX_STR("version"),
                     cx_json_make_str(cx_str_z(w->client->options.client_version)));
    CX_TRY(cx_json_list_end_object(&info, &value, w->err));
    cx_json_list_put(out, cx_str_z(names[2]), value);
    return CX_SUCCESS;
}

/* The params of a request; `_meta` says of a stateless one what initialize said of a session. */
static cx_status end_params(pending_request *w, cx_json_list *params, cx_json *out)
{
    static const char *const names[] = {"io.modelcontextprotocol/protocolVersion",
                                        "io.modelcontextprotocol/clientCapabilities",
                                        "io.modelcontextprotocol/clientInfo"};
    cx_json_list meta = cx_json_list_begin(&w->client->message);
    cx_json value;
    if (w->client->is_stateless) {
        CX_TRY(put_client(w, names, CX_MCP_STATELESS, &meta));
        CX_TRY(cx_json_list_end_object(&meta, &value, w->err));
        cx_json_list_put(params, CX_STR("_meta"), value);
    }
    return cx_json_list_end_object(params, out, w->err);
}

/* --- connecting ------------------------------------------------------------------------------- */

static cx_status make_initialize_params(pending_request *w, cx_json *out)
{
    static const char *const names[] = {"protocolVersion", "capabilities", "clientInfo"};
    cx_json_list params = cx_json_list_begin(&w->client->message);
    CX_TRY(put_client(w, names, CX_MCP_PROTOCOL, &params));
    return cx_json_list_end_object(&params, out, w->err);
}

/* The result, or NULL and w->end with the server's error. */
static const cx_json *require_result(pending_request *w, const char *method, const message *answer)
{
    if (w->end->kind != CX_MCP_OK)
        return NULL;
    if (answer->fault != NULL) {
        cx_str reason = CX_JSON_GET_STR(answer->fault, "message");
        end_session(w, CX_MCP_BROKEN, "the server refused %s: %.*s", method,
                    reason.size > 150 ? 150 : (int)reason.size,
                    reason.size == 0 ? "" : reason.data);
        return NULL;
    }
    if (answer->result->type != CX_JSON_OBJECT) {
        end_session(w, CX_MCP_BROKEN, "the server answered %s with no object", method);
        return NULL;
    }
    return answer->result;
}

static bool is_known_version(cx_str version)
{
    static const char *const versions[] = {CX_MCP_PROTOCOL, "2025-06-18", "2025-03-26",
                                           "2024-11-05"};
    for (size_t i = 0; i < CX_COUNT_OF(versions); i++) {
        if (cx_str_is(version, versions[i]))
            return true;
    }
    return false;
}

/* M4: an error that says "no such method" or "no such revision". */
static bool has_no_initialize(const pending_request *w, const message *answer)
{
    int64_t code;
    const cx_json *number = w->end->kind == CX_MCP_OK && answer->fault != NULL
                                ? CX_JSON_GET(answer->fault, "code")
                                : NULL;
    return number != NULL && cx_json_int64(number, &code) &&
           (code == CX_MCP_E_METHOD || code == CX_MCP_E_VERSION);
}

static bool lists_version(const cx_json *versions, const char *wanted)
{
    for (uint32_t i = 0; versions != NULL && i < versions->count; i++)
        if (versions->items[i].type == CX_JSON_STRING &&
            cx_str_is(cx_json_text(&versions->items[i]), wanted))
            return true;
    return false;
}

static cx_status discover_server(pending_request *w)
{
    cx_arena_reset(&w->client->message, (cx_arena_mark){0});
    cx_json_list none = cx_json_list_begin(&w->client->message);
    cx_json params;
    message answer;
    w->client->is_stateless = true;
    CX_TRY(end_params(w, &none, &params));
    CX_TRY(request_and_wait(w, CX_STR("server/discover"), &params, &answer));
    const cx_json *result = require_result(w, "initialize and server/discover", &answer);
    if (result != NULL &&
        !lists_version(cx_json_get_typed(result, CX_STR("supportedVersions"), CX_JSON_ARRAY),
                       CX_MCP_STATELESS))
        end_session(w, CX_MCP_BROKEN, "the server refused initialize, and speaks no revision %s",
                    CX_MCP_STATELESS);
    return CX_SUCCESS;
}

static cx_status initialize_session(pending_request *w)
{
    cx_json params;
    message answer;
    CX_TRY(make_initialize_params(w, &params));
    CX_TRY(request_and_wait(w, CX_STR("initialize"), &params, &answer));
    if (has_no_initialize(w, &answer))
        return discover_server(w);
    const cx_json *result = require_result(w, "initialize", &answer);
    if (result == NULL)
        return CX_SUCCESS;
    cx_str version = CX_JSON_GET_STR(result, "protocolVersion");
    if (!is_known_version(version)) {
        end_session(w, CX_MCP_BROKEN, "the server speaks protocol '%.*s', expected %s or older",
                    version.size > 60 ? 60 : (int)version.size,
                    version.size == 0 ? "" : version.data, CX_MCP_PROTOCOL);
        return CX_SUCCESS;
    }
    w->id = 0;
    return send_request(w, CX_STR("notifications/initialized"), NULL);
}

/* Names that are not text cannot be sent as arguments. */
static cx_status read_required_arguments(cx_mcp *client, const cx_json *described, known_tool *out,
                                         cx_err *err)
{
    const cx_json *schema = CX_JSON_GET(described, "inputSchema");
    const cx_json *names =
        schema == NULL ? NULL : cx_json_get_typed(schema, CX_STR("required"), CX_JSON_ARRAY);
    if (names == NULL || names->count == 0)
        return CX_SUCCESS;
    cx_str *required = CX_ARENA_ARRAY(&client->tools_arena, cx_str, names->count);
    if (required == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < names->count; i++) {
        if (names->items[i].type != CX_JSON_STRING)
            continue;
        cx_str copy = cx_arena_copy_str(&client->tools_arena, cx_json_text(&names->items[i]));
        if (copy.data == NULL)
            return cx_fail_nomem(err);
        required[out->required_count++] = copy;
    }
    out->required = required;
    return CX_SUCCESS;
}

/* The tools on one page; *out_cursor is empty on the last one, else copied. */
static cx_status read_tools_page(pending_request *w, const cx_json *result, cx_str *out_cursor)
{
    cx_mcp *client = w->client;
    const cx_json *tools = CX_JSON_GET(result, "tools");
    *out_cursor = (cx_str){NULL, 0};
    if (tools == NULL || tools->type != CX_JSON_ARRAY) {
        end_session(w, CX_MCP_BROKEN, "the server answered tools/list without a list of tools");
        return CX_SUCCESS;
    }
    for (uint32_t i = 0; i < tools->count; i++) {
        cx_str name = CX_JSON_GET_STR(&tools->items[i], "name");
        if (name.size == 0 || client->tools.count == CX_MCP_TOOLS_MAX) {
            end_session(w, CX_MCP_BROKEN, "the server has a tool without a name, or more than %d",
                        CX_MCP_TOOLS_MAX);
            return CX_SUCCESS;
        }
        known_tool *slot = cx_vec_push(&client->tools, client->options.alloc);
        if (slot == NULL)
            return cx_fail_nomem(w->err);
        *slot = (known_tool){.name = cx_arena_copy_str(&client->tools_arena, name)};
        if (slot->name.data == NULL)
            return cx_fail_nomem(w->err);
        CX_TRY(read_required_arguments(client, &tools->items[i], slot, w->err));
    }
    cx_str cursor = CX_JSON_GET_STR(result, "nextCursor");
    if (cursor.size != 0) {
        *out_cursor = cx_arena_copy_str(&client->tools_arena, cursor);
        if (out_cursor->data == NULL)
            return cx_fail_nomem(w->err);
    }
    return CX_SUCCESS;
}

static cx_status list_tools(pending_request *w)
{
    cx_str cursor = {NULL, 0};
    for (unsigned page = 0; w->end->kind == CX_MCP_OK; page++) {
        cx_json_list params;
        cx_json value;
        message answer;
        if (page == CX_MCP_PAGES_MAX) {
            end_session(w, CX_MCP_BROKEN, "the server's tools have more than %d pages",
                        CX_MCP_PAGES_MAX);
            break;
        }
        cx_arena_reset(&w->client->message, (cx_arena_mark){0});
        params = cx_json_list_begin(&w->client->message);
        if (cursor.size != 0)
            cx_json_list_put(&params, CX_STR("cursor"), cx_json_make_str(cursor));
        CX_TRY(end_params(w, &params, &value));
        CX_TRY(request_and_wait(w, CX_STR("tools/list"), &value, &answer));
        const cx_json *result = require_result(w, "tools/list", &answer);
        if (result == NULL)
            break;
        CX_TRY(read_tools_page(w, result, &cursor));
        if (cursor.size == 0)
            break;
    }
    return CX_SUCCESS;
}

cx_status cx_mcp_connect(cx_mcp *client, uint64_t timeout_ms, cx_mcp_end *out, cx_err *err)
{
    pending_request w = begin_request(client, timeout_ms, out, err);
    if (out->kind == CX_MCP_OK)
        CX_TRY(initialize_session(&w));
    if (out->kind == CX_MCP_OK)
        CX_TRY(list_tools(&w));
    return CX_SUCCESS;
}

static const known_tool *find_tool(const cx_mcp *client, cx_str name)
{
    for (size_t i = 0; i < client->tools.count; i++)
        if (cx_str_eq(client->tools.items[i].name, name))
            return &client->tools.items[i];
    return NULL;
}

bool cx_mcp_has_tool(const cx_mcp *client, cx_str name)
{
    return find_tool(client, name) != NULL;
}

bool cx_mcp_tool_requires(const cx_mcp *client, cx_str name, cx_str argument)
{
    const known_tool *found = find_tool(client, name);
    for (size_t i = 0; found != NULL && i < found->required_count; i++)
        if (cx_str_eq(found->required[i], argument))
            return true;
    return false;
}

/* --- calling ---------------------------------------------------------------------------------- */

/* Text of the content, joined. */
static cx_status join_content_text(const cx_json *value, cx_arena *arena, cx_str *out, cx_err *err)
{
    const cx_json *content = CX_JSON_GET(value, "content");
    cx_buf text;
    cx_buf_init(&text, arena->alloc);
    for (uint32_t i = 0; content != NULL && content->type == CX_JSON_ARRAY && i < content->count;
         i++) {
        const cx_json *item = &content->items[i];
        if (!cx_str_is(CX_JSON_GET_STR(item, "type"), "text"))
            continue;
        if (text.size != 0)
            cx_buf_add_byte(&text, '\n');
        cx_buf_add_str(&text, CX_JSON_GET_STR(item, "text"));
    }
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(arena, cx_buf_str(&text));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

static cx_status read_call_result(pending_request *w, const message *answer, cx_arena *arena,
                                  cx_mcp_result *result)
{
    if (answer->fault != NULL) {
        const cx_json *code = CX_JSON_GET(answer->fault, "code");
        result->refused = true;
        if (code != NULL)
            (void)cx_json_int64(code, &result->code);
        result->message = cx_arena_copy_str(arena, CX_JSON_GET_STR(answer->fault, "message"));
        return result->message.data == NULL ? cx_fail_nomem(w->err) : CX_SUCCESS;
    }
    CX_ASSERT(answer->result != NULL); /* an answer has one of both: read_message */
    if (answer->result->type != CX_JSON_OBJECT) {
        end_session(w, CX_MCP_BROKEN, "the server answered tools/call with no object");
        return CX_SUCCESS;
    }
    cx_str type = CX_JSON_GET_STR(answer->result, "resultType");
    if (w->client->is_stateless && type.size != 0 && !cx_str_is(type, "complete")) {
        end_session(w, CX_MCP_BROKEN, "the server answered tools/call with a result of type %.*s",
                    type.size > 60 ? 60 : (int)type.size, type.data);
        return CX_SUCCESS;
    }
    CX_TRY(cx_json_copy(answer->result, arena, &result->value, w->err));
    const cx_json *is_error = CX_JSON_GET(&result->value, "isError");
    result->is_error = is_error != NULL && is_error->type == CX_JSON_TRUE;
    result->structured =
        cx_json_get_typed(&result->value, CX_STR("structuredContent"), CX_JSON_OBJECT);
    return join_content_text(&result->value, arena, &result->text, w->err);
}

/* What a stateless server asks before it can go on (M4): the host's answers, by the server's names.
 * A request that the host rejects has no place among them, so it ends the session. */
static cx_status answer_input(pending_request *w, const cx_json_member *input, cx_json_list *out)
{
    const cx_mcp_host *host = &w->client->options.host;
    const cx_json *asked = &input->value;
    const cx_json *params = asked->type == CX_JSON_OBJECT ? CX_JSON_GET(asked, "params") : NULL;
    cx_str method =
        asked->type == CX_JSON_OBJECT ? CX_JSON_GET_STR(asked, "method") : (cx_str){NULL, 0};
    cx_mcp_answer answer = {.refused = true};
    if (method.size == 0) {
        end_session(w, CX_MCP_BROKEN, "the server asks for input without a method");
        return CX_SUCCESS;
    }
    if (host->request != NULL)
        CX_TRY(host->request(host->arg, method, params, &w->client->message, &answer, w->err));
    if (answer.refused)
        end_session(w, CX_MCP_BROKEN, "the server asks for %.*s, which this client does not offer",
                    method.size > 60 ? 60 : (int)method.size, method.data);
    else
        cx_json_list_put(out, cx_json_text(&input->name), answer.result);
    return CX_SUCCESS;
}

/* Whether the call is to be made again, with what is put into `params`. */
static cx_status answer_inputs(pending_request *w, const message *answer, cx_json_list *params,
                               bool *out_again)
{
    const cx_json *result = answer->result;
    *out_again = false;
    if (!w->client->is_stateless || result == NULL || result->type != CX_JSON_OBJECT ||
        !cx_str_is(CX_JSON_GET_STR(result, "resultType"), "input_required"))
        return CX_SUCCESS;
    const cx_json *inputs = cx_json_get_typed(result, CX_STR("inputRequests"), CX_JSON_OBJECT);
    const cx_json *state = cx_json_get_typed(result, CX_STR("requestState"), CX_JSON_STRING);
    cx_json_list responses = cx_json_list_begin(&w->client->message);
    cx_json value;
    if ((inputs == NULL && state == NULL) ||
        (inputs != NULL && inputs->count > CX_MCP_INPUTS_MAX)) {
        end_session(w, CX_MCP_BROKEN, "the server asks for no input, or for more than %d at once",
                    CX_MCP_INPUTS_MAX);
        return CX_SUCCESS;
    }
    for (uint32_t i = 0; inputs != NULL && i < inputs->count && w->end->kind == CX_MCP_OK; i++)
        CX_TRY(answer_input(w, &inputs->members[i], &responses));
    CX_TRY(cx_json_list_end_object(&responses, &value, w->err));
    if (inputs != NULL)
        cx_json_list_put(params, CX_STR("inputResponses"), value);
    if (state != NULL)
        cx_json_list_put(params, CX_STR("requestState"), *state);
    *out_again = w->end->kind == CX_MCP_OK;
    return CX_SUCCESS;
}

cx_status cx_mcp_call(cx_mcp *client, cx_str tool, const cx_json *arguments, uint64_t timeout_ms,
                      cx_arena *arena, cx_mcp_result *result, cx_mcp_end *out, cx_err *err)
{
    CX_ASSERT(arguments->type == CX_JSON_OBJECT);
    pending_request w = begin_request(client, timeout_ms, out, err);
    cx_json_list params = cx_json_list_begin(&client->message);
    message answer = {0};
    bool again = true;
    memset(result, 0, sizeof *result);
    for (unsigned round = 0; again && out->kind == CX_MCP_OK; round++) {
        cx_json value;
        if (round == CX_MCP_ROUNDS_MAX) {
            end_session(&w, CX_MCP_BROKEN, "the server asked for input %d times in one call",
                        CX_MCP_ROUNDS_MAX);
            break;
        }
        cx_json_list_put(&params, CX_STR("name"), cx_json_make_str(tool));
        cx_json_list_put(&params, CX_STR("arguments"), *arguments);
        CX_TRY(end_params(&w, &params, &value));
        CX_TRY(request_and_wait(&w, CX_STR("tools/call"), &value, &answer));
        params = cx_json_list_begin(&client->message);
        if (out->kind == CX_MCP_OK)
            CX_TRY(answer_inputs(&w, &answer, &params, &again));
    }
    return out->kind == CX_MCP_OK ? read_call_result(&w, &answer, arena, result) : CX_SUCCESS;
}

/* --- opening and closing ---------------------------------------------------------------------- */

cx_status cx_mcp_open(const cx_mcp_options *options, cx_mcp **out, cx_err *err)
{
    CX_ASSERT(options->lines.send != NULL && options->lines.receive != NULL);
    CX_ASSERT(options->alloc != NULL && options->io != NULL);
    cx_mcp *client = cx_alloc_zeroed(options->alloc, 1, sizeof *client);
    if (client == NULL)
        return cx_fail_nomem(err);
    client->options = *options;
    cx_arena_init(&client->tools_arena, options->alloc, 0);
    cx_arena_init(&client->message, options->alloc, 0);
    *out = client;
    return CX_SUCCESS;
}

void cx_mcp_close(cx_mcp *client)
{
    if (client == NULL)
        return;
    cx_vec_done(&client->tools, client->options.alloc);
    cx_arena_done(&client->tools_arena);
    cx_arena_done(&client->message);
    cx_alloc_free(client->options.alloc, client, sizeof *client);
}
