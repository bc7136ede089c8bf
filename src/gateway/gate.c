/*
 * gate.c - which message goes where (gate.h).
 */
#include "gateway/gate_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "crypto/api.h"
#include "gateway/span.h"

#define DEPTH_MAX 256 /* of a message */
#define SAID_MAX 1024
#define DETAIL_MAX 200

static const char *const side_names[] = {"client", "server"};

/* --- saying and recording --------------------------------------------------------------------- */

void cx_gateway_say(cx_gateway *g, const char *format, ...)
{
    char line[SAID_MAX];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (size > 0)
        g->options->say(
            g->options->arg,
            cx_str_from(line, (size_t)size < sizeof line ? (size_t)size : sizeof line - 1));
}

static cx_status add_problem(cx_gateway *g, cx_home *home, cx_gateway_side from, const char *what,
                             cx_str detail, uint64_t bytes, cx_err *err)
{
    cx_txn *txn;
    uint64_t seq;
    const cx_io *io = g->options->io;
    CX_TRY(cx_txn_begin(home, g->actor, &txn, err));
    cx_json_list payload = cx_json_list_begin(cx_txn_arena(txn));
    cx_json_put_uint(&payload, "v", 1);
    cx_json_put_str(&payload, "server", g->options->name);
    cx_json_put_str(&payload, "session", g->options->session);
    cx_json_put_z(&payload, "from", side_names[from]);
    cx_json_put_z(&payload, "problem", what);
    cx_json_put_str(&payload, "detail", detail);
    cx_json_put_uint(&payload, "bytes", bytes);
    cx_status status = cx_live_add_entry(txn, CX_KIND_GATEWAY_PROBLEM, (int64_t)io->wall_ns(io),
                                         "gateway", &payload, &seq, err);
    if (!cx_failed(status))
        return cx_txn_commit(txn, err);
    cx_txn_abort(txn);
    return status;
}

void cx_gateway_problem(cx_gateway *g, cx_gateway_side from, const char *what, cx_str detail,
                        uint64_t bytes)
{
    cx_home *home;
    cx_err err;
    size_t shown = detail.size < DETAIL_MAX ? detail.size : DETAIL_MAX;
    while (shown != 0 && shown < detail.size && ((uint8_t)detail.data[shown] & 0xc0) == 0x80)
        shown--;
    detail.size = shown;
    if (g->problems == CX_GATEWAY_PROBLEMS_MAX)
        cx_gateway_say(g, "%d problems are recorded; more are not", CX_GATEWAY_PROBLEMS_MAX);
    if (g->problems++ >= CX_GATEWAY_PROBLEMS_MAX)
        return;
    cx_gateway_say(g, "from the %s: %s: %.*s", side_names[from], what, (int)detail.size,
                   detail.size == 0 ? "" : detail.data);
    cx_status status = g->options->open_home(g->options->arg, &home, &err);
    if (!cx_failed(status)) {
        status = add_problem(g, home, from, what, detail, bytes, &err);
        g->options->close_home(g->options->arg, home);
    }
    if (cx_failed(status))
        cx_gateway_say(g, "this is not recorded: %s", err.message);
}

void cx_gateway_send(cx_gateway *g, cx_gateway_side to, cx_str line)
{
    cx_buf_add_str(&g->out[to], line);
    cx_buf_add_z(&g->out[to], "\n");
}

/* --- requests in flight ----------------------------------------------------------------------- */

cx_gateway_flight *cx_gateway_flight_find(cx_gateway_flights *flights, cx_str id)
{
    for (size_t i = 0; i < flights->count; i++)
        if (cx_str_eq(flights->items[i].id, id))
            return &flights->items[i];
    return NULL;
}

void cx_gateway_flight_remove(cx_gateway *g, cx_gateway_flights *flights, cx_gateway_flight *flight)
{
    cx_alloc_free(g->options->alloc, flight->block, flight->block_size);
    flights->count--;
    memmove(flight, flight + 1,
            (size_t)(&flights->items[flights->count] - flight) * sizeof *flight);
}

bool cx_gateway_has_room(cx_gateway *g, cx_gateway_flights *flights)
{
    for (size_t i = 0; i < flights->count && flights->count == CX_GATEWAY_FLIGHT_MAX; i++)
        if (flights->items[i].cancelled) {
            cx_gateway_flight_remove(g, flights, &flights->items[i]);
            break;
        }
    return flights->count < CX_GATEWAY_FLIGHT_MAX;
}

static cx_str keep_text(char *block, size_t *at, cx_str text)
{
    if (text.size != 0)
        memcpy(block + *at, text.data, text.size);
    *at += text.size;
    return cx_str_from(block + *at - text.size, text.size);
}

cx_status cx_gateway_flight_add(cx_gateway *g, cx_gateway_flights *flights,
                                cx_gateway_flight_kind kind, cx_str id, const cx_live_call *call,
                                cx_err *err)
{
    CX_ASSERT(flights->count < CX_GATEWAY_FLIGHT_MAX);
    cx_gateway_flight *flight = &flights->items[flights->count];
    size_t at = 0;
    memset(flight, 0, sizeof *flight);
    flight->kind = kind;
    flight->block_size = id.size + (call == NULL ? 0 : call->tool.size + call->id.size) + 1;
    flight->block = cx_alloc_new(g->options->alloc, flight->block_size);
    if (flight->block == NULL)
        return cx_fail_nomem(err);
    flight->id = keep_text(flight->block, &at, id);
    if (call != NULL) {
        flight->tool = keep_text(flight->block, &at, call->tool);
        flight->call_id = keep_text(flight->block, &at, call->id);
        flight->input_sha256 = call->input_sha256;
    }
    flights->count++;
    return CX_SUCCESS;
}

bool cx_gateway_is_stateless(const cx_gateway_message *message)
{
    const cx_json *meta = CX_JSON_GET(message->params, "_meta");
    return meta != NULL && CX_JSON_GET(meta, "io.modelcontextprotocol/protocolVersion") != NULL;
}

/* --- from the client -------------------------------------------------------------------------- */

static bool is_refused(const cx_gateway *g, cx_str method)
{
    return cx_str_list_has(g->options->refuse, method);
}

static size_t find_held(const cx_gateway *g, cx_str id)
{
    for (size_t i = 0; i < g->held_count; i++)
        if (cx_str_eq(g->held[i].id, id))
            return i;
    return g->held_count;
}

/* Some methods are requests: without an id the other side may still act on them, and answer
 * nothing. */
static bool may_notify(cx_gateway *g, cx_gateway_side from, const cx_gateway_message *m, cx_str raw)
{
    if (cx_str_starts(m->method, CX_STR("notifications/")) && !is_refused(g, m->method))
        return true;
    cx_gateway_problem(g, from, "a notification that may not pass", m->method, raw.size);
    return false;
}

static bool is_cancelling(cx_gateway *g, const cx_gateway_message *m, cx_str *out_id)
{
    cx_err ignored;
    const cx_json *id = m->params == NULL ? NULL : CX_JSON_GET(m->params, "requestId");
    return cx_str_is(m->method, "notifications/cancelled") && id != NULL &&
           !cx_failed(cx_gateway_id_read(id, &g->turn, out_id, &ignored));
}

static cx_status client_notification(cx_gateway *g, const cx_gateway_message *m, cx_str raw,
                                     cx_gateway_fate *out, cx_err *err)
{
    *out = CX_GATEWAY_STOPS;
    if (!may_notify(g, CX_GATEWAY_CLIENT, m, raw))
        return CX_SUCCESS;
    *out = CX_GATEWAY_PASSES;
    cx_str text;
    if (!is_cancelling(g, m, &text))
        return CX_SUCCESS;
    size_t held = find_held(g, text);
    if (held != g->held_count) { /* the server knows nothing of it */
        cx_gateway_held_remove(g, held);
        *out = CX_GATEWAY_STOPS;
        return CX_SUCCESS;
    }
    cx_gateway_flight *flight = cx_gateway_flight_find(&g->asked_server, text);
    if (flight != NULL)
        flight->cancelled = true;
    (void)err;
    return CX_SUCCESS;
}

static cx_status refuse_request(cx_gateway *g, cx_gateway_side to, const cx_gateway_message *m,
                                int code, const char *why)
{
    cx_gateway_add_error(&g->out[to], m->id, code, cx_str_z(why));
    return CX_SUCCESS;
}

static cx_status client_request(cx_gateway *g, const cx_gateway_message *m, cx_str raw,
                                cx_gateway_fate *out, cx_err *err)
{
    cx_gateway_flight_kind kind = CX_GATEWAY_FLIGHT_OTHER;
    *out = CX_GATEWAY_STOPS;
    if (cx_gateway_flight_find(&g->asked_server, m->id) != NULL ||
        find_held(g, m->id) != g->held_count)
        return refuse_request(g, CX_GATEWAY_CLIENT, m, CX_GATEWAY_E_REQUEST,
                              "cortex: a request with this id is not answered yet");
    if (is_refused(g, m->method))
        return refuse_request(g, CX_GATEWAY_CLIENT, m, CX_GATEWAY_E_METHOD,
                              "cortex: this method is refused by an option of the gateway");
    if (!cx_gateway_has_room(g, &g->asked_server))
        return refuse_request(g, CX_GATEWAY_CLIENT, m, CX_GATEWAY_E_BUSY, CX_GATEWAY_BUSY);
    if (cx_str_is(m->method, "tools/call"))
        return cx_gateway_call(g, m, raw, out, err);
    if (cx_str_is(m->method, "tools/list"))
        kind = CX_GATEWAY_FLIGHT_LIST;
    else if (cx_str_is(m->method, "initialize"))
        kind = CX_GATEWAY_FLIGHT_INIT;
    *out = CX_GATEWAY_PASSES;
    return cx_gateway_flight_add(g, &g->asked_server, kind, m->id, NULL, err);
}

static cx_status client_message(cx_gateway *g, const cx_gateway_message *m, cx_str raw,
                                cx_gateway_fate *out, cx_err *err)
{
    cx_gateway_flight *flight;
    switch (m->kind) {
    case CX_GATEWAY_REQUEST: return client_request(g, m, raw, out, err);
    case CX_GATEWAY_NOTIFICATION: return client_notification(g, m, raw, out, err);
    case CX_GATEWAY_ANSWER: break;
    }
    flight = m->id.size == 0 ? NULL : cx_gateway_flight_find(&g->asked_client, m->id);
    *out = flight == NULL ? CX_GATEWAY_STOPS : CX_GATEWAY_PASSES;
    if (flight == NULL)
        cx_gateway_problem(g, CX_GATEWAY_CLIENT, "an answer to no request", m->id, raw.size);
    else
        cx_gateway_flight_remove(g, &g->asked_client, flight);
    return CX_SUCCESS;
}

/* --- from the server -------------------------------------------------------------------------- */

static cx_status server_request(cx_gateway *g, const cx_gateway_message *m, cx_str raw,
                                cx_gateway_fate *out, cx_err *err)
{
    *out = CX_GATEWAY_STOPS;
    if (cx_gateway_flight_find(&g->asked_client, m->id) != NULL)
        return refuse_request(g, CX_GATEWAY_SERVER, m, CX_GATEWAY_E_REQUEST,
                              "cortex: a request with this id is not answered yet");
    if (is_refused(g, m->method)) {
        cx_gateway_problem(g, CX_GATEWAY_SERVER, "a refused request", m->method, raw.size);
        return refuse_request(g, CX_GATEWAY_SERVER, m, CX_GATEWAY_E_METHOD,
                              "cortex: this method is refused by an option of the gateway");
    }
    if (!cx_gateway_has_room(g, &g->asked_client))
        return refuse_request(g, CX_GATEWAY_SERVER, m, CX_GATEWAY_E_BUSY, CX_GATEWAY_BUSY);
    *out = CX_GATEWAY_PASSES;
    return cx_gateway_flight_add(g, &g->asked_client, CX_GATEWAY_FLIGHT_OTHER, m->id, NULL, err);
}

/* What the two agreed on decides whether there are batches. */
static void learn_protocol(cx_gateway *g, const cx_gateway_message *m)
{
    cx_str version = m->result == NULL ? CX_STR("") : CX_JSON_GET_STR(m->result, "protocolVersion");
    if (version.size == 0 || version.size >= sizeof g->protocol)
        return;
    memcpy(g->protocol, version.data, version.size);
    g->protocol[version.size] = 0;
}

/* What a server of the stateless revision asks the client is in a result, not a request of its own
 * (MCP 2026-07-28, inputRequests).  A name that differs in case only is taken for it. */
static bool asks_for_refused(const cx_gateway *g, const cx_gateway_message *m, cx_str *out_method)
{
    static const char *const of_result[] = {"inputRequests"}, *const of_request[] = {"method"};
    const cx_json *asked = m->result == NULL ? NULL : CX_JSON_GET(m->result, "inputRequests");
    *out_method = CX_STR("inputRequests");
    if (g->options->refuse.count == 0 || m->result == NULL)
        return false;
    if (cx_gateway_mistaken_member(m->result, of_result, CX_COUNT_OF(of_result)) != NULL ||
        (asked != NULL && asked->type != CX_JSON_OBJECT))
        return true;
    for (uint32_t i = 0; asked != NULL && i < asked->count; i++) {
        const cx_json *one = &asked->members[i].value;
        if (cx_gateway_mistaken_member(one, of_request, CX_COUNT_OF(of_request)) != NULL)
            return true;
        cx_str method = one->type == CX_JSON_OBJECT ? CX_JSON_GET_STR(one, "method") : CX_STR("");
        if (method.size == 0 || is_refused(g, method)) {
            *out_method = method.size == 0 ? *out_method : method;
            return true;
        }
    }
    return false;
}

static cx_status server_answer(cx_gateway *g, const cx_gateway_message *m, cx_str raw,
                               cx_gateway_fate *out, cx_err *err)
{
    cx_gateway_flight *found = cx_gateway_flight_find(&g->asked_server, m->id);
    *out = CX_GATEWAY_PASSES;
    if (m->id.size == 0) /* an error about what it could not read */
        return CX_SUCCESS;
    if (found == NULL) { /* G3 */
        *out = CX_GATEWAY_STOPS;
        cx_gateway_problem(g, CX_GATEWAY_SERVER, "an answer to no request", m->id, raw.size);
        return CX_SUCCESS;
    }
    cx_str method;
    if (asks_for_refused(g, m, &method)) {
        *out = CX_GATEWAY_STOPS;
        cx_gateway_problem(g, CX_GATEWAY_SERVER, "a refused request", method, raw.size);
        return cx_gateway_fail_request(
            g, m->id, CX_STR("cortex: the server asks for what an option of the gateway refuses"),
            err);
    }
    cx_status status = CX_SUCCESS;
    switch (found->kind) {
    case CX_GATEWAY_FLIGHT_OTHER: break;
    case CX_GATEWAY_FLIGHT_INIT: learn_protocol(g, m); break;
    case CX_GATEWAY_FLIGHT_LIST: status = cx_gateway_list_answer(g, m, raw, out, err); break;
    case CX_GATEWAY_FLIGHT_CALL: status = cx_gateway_call_answer(g, found, m, out, err); break;
    }
    cx_gateway_flight_remove(g, &g->asked_server, found);
    return status;
}

static cx_status server_message(cx_gateway *g, const cx_gateway_message *m, cx_str raw,
                                cx_gateway_fate *out, cx_err *err)
{
    *out = CX_GATEWAY_PASSES;
    switch (m->kind) {
    case CX_GATEWAY_REQUEST: return server_request(g, m, raw, out, err);
    case CX_GATEWAY_ANSWER: return server_answer(g, m, raw, out, err);
    case CX_GATEWAY_NOTIFICATION: break;
    }
    if (!may_notify(g, CX_GATEWAY_SERVER, m, raw)) {
        *out = CX_GATEWAY_STOPS;
        return CX_SUCCESS;
    }
    cx_str id;
    cx_gateway_flight *flight =
        is_cancelling(g, m, &id) ? cx_gateway_flight_find(&g->asked_client, id) : NULL;
    if (flight != NULL) /* it may never be answered, and must not take a place for good */
        flight->cancelled = true;
    return CX_SUCCESS;
}

/* --- lines ------------------------------------------------------------------------------------ */

static cx_gateway_side other(cx_gateway_side side)
{
    return side == CX_GATEWAY_CLIENT ? CX_GATEWAY_SERVER : CX_GATEWAY_CLIENT;
}

/* What is no message: its sender is told when it is the client, whose id may be known. */
static cx_status stop_unread(cx_gateway *g, cx_gateway_side from, cx_str raw, int code,
                             const cx_err *why)
{
    cx_gateway_skim skim;
    memset(&skim, 0, sizeof skim);
    cx_gateway_skim_bytes(&skim, cx_str_bytes(raw));
    cx_str id = cx_str_from(skim.id, skim.has_id && skim.has_method ? skim.id_size : 0);
    cx_arena_mark mark = cx_arena_mark_now(&g->turn);
    cx_json value;
    cx_err ignored;
    if (id.size != 0 && (cx_failed(cx_json_parse(&g->parser, id, &g->turn, &value, &ignored)) ||
                         cx_failed(cx_gateway_id_read(&value, &g->turn, &id, &ignored))))
        id = CX_STR("");
    cx_gateway_problem(g, from, "no message that can be read", cx_str_z(why->message), raw.size);
    if (from == CX_GATEWAY_CLIENT)
        cx_gateway_add_error(&g->out[from], id, code, cx_str_z(why->message));
    cx_arena_reset(&g->turn, mark);
    return CX_SUCCESS;
}

/* One message, alone or of a batch; *out says whether its bytes pass. */
static cx_status one_message(cx_gateway *g, cx_gateway_side from, const cx_json *value, cx_str raw,
                             cx_gateway_fate *out, cx_err *err)
{
    cx_gateway_message message;
    cx_err why;
    *out = CX_GATEWAY_STOPS;
    cx_status status = cx_gateway_message_read(value, &g->turn, &message, &why);
    if (cx_failed(status) && status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status))
        return stop_unread(g, from, raw, CX_GATEWAY_E_REQUEST, &why);
    return from == CX_GATEWAY_CLIENT ? client_message(g, &message, raw, out, err)
                                     : server_message(g, &message, raw, out, err);
}

static bool has_batches(const cx_gateway *g)
{
    return !g->options->no_batches &&
           (strcmp(g->protocol, "2025-03-26") == 0 || strcmp(g->protocol, "2024-11-05") == 0);
}

/* G1: what passes of a batch stays a batch. */
static cx_status batch(cx_gateway *g, cx_gateway_side from, const cx_json *root, cx_str raw,
                       cx_err *err)
{
    cx_buf kept;
    cx_str name, item;
    size_t offset = 0, passed = 0;
    cx_status status = CX_SUCCESS;
    cx_buf_init(&kept, g->options->alloc);
    for (uint32_t i = 0; i < root->count && !cx_failed(status); i++) {
        cx_gateway_fate fate;
        if (!cx_gateway_span_next(raw, &offset, &name, &item))
            break;
        status = one_message(g, from, &root->items[i], item, &fate, err);
        if (cx_failed(status) || fate != CX_GATEWAY_PASSES)
            continue;
        cx_buf_add_z(&kept, passed++ == 0 ? "[" : ",");
        cx_buf_add_str(&kept, item);
    }
    if (!cx_failed(status))
        status = cx_buf_check(&kept, err);
    if (!cx_failed(status) && passed == root->count) {
        cx_gateway_send(g, other(from), raw);
    } else if (!cx_failed(status) && passed != 0) {
        cx_buf_add_z(&kept, "]");
        cx_gateway_send(g, other(from), cx_buf_str(&kept));
    }
    cx_buf_done(&kept);
    return status;
}

static cx_status check_batch(const cx_gateway *g, const cx_json *root, cx_err *why)
{
    if (!has_batches(g))
        return cx_fail(why, CX_E_FORMAT,
                       "found a batch, expected one message: this revision has no batches");
    if (root->count == 0 || root->count > CX_GATEWAY_BATCH_MAX)
        return cx_fail(why, CX_E_FORMAT, "found a batch of %u messages, expected 1 to %d",
                       root->count, CX_GATEWAY_BATCH_MAX);
    return CX_SUCCESS;
}

/* Python's text files, and others, end a line at a carriage return, too: what we read as one
 * message would be several there, and one of them undecided.  As the end of the line it is
 * harmless. */
static bool has_inner_return(cx_str line)
{
    cx_str inner = cx_gateway_span_trim(line);
    return inner.size != 0 && memchr(inner.data, '\r', inner.size) != NULL;
}

static cx_status one_line(cx_gateway *g, cx_gateway_side from, cx_str line, cx_err *err)
{
    cx_json root;
    cx_err why;
    cx_gateway_fate fate;
    if (has_inner_return(line)) {
        (void)cx_fail(&why, CX_E_FORMAT,
                      "found a carriage return inside of a message: readers differ in whether a "
                      "line ends there");
        return stop_unread(g, from, line, CX_GATEWAY_E_PARSE, &why);
    }
    cx_status status = cx_json_parse(&g->parser, line, &g->turn, &root, &why);
    if (cx_failed(status) && status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status))
        return stop_unread(g, from, line, CX_GATEWAY_E_PARSE, &why);
    if (root.type == CX_JSON_ARRAY) {
        if (cx_failed(check_batch(g, &root, &why)))
            return stop_unread(g, from, line, CX_GATEWAY_E_REQUEST, &why);
        return batch(g, from, &root, line, err);
    }
    CX_TRY(one_message(g, from, &root, line, &fate, err));
    if (fate == CX_GATEWAY_PASSES)
        cx_gateway_send(g, other(from), line);
    return CX_SUCCESS;
}

static cx_status check_out(cx_gateway *g, cx_err *err)
{
    CX_TRY(cx_buf_check(&g->out[CX_GATEWAY_CLIENT], err));
    return cx_buf_check(&g->out[CX_GATEWAY_SERVER], err);
}

cx_status cx_gateway_line(cx_gateway *gateway, cx_gateway_side from, cx_str line, cx_err *err)
{
    cx_arena_mark mark = cx_arena_mark_now(&gateway->turn);
    cx_status status = one_line(gateway, from, line, err);
    cx_arena_reset(&gateway->turn, mark);
    return cx_failed(status) ? status : check_out(gateway, err);
}

/* --- what does not come as a line ------------------------------------------------------------- */

cx_status cx_gateway_fail_request(cx_gateway *gateway, cx_str id, cx_str why, cx_err *err)
{
    cx_gateway_flight *flight = cx_gateway_flight_find(&gateway->asked_server, id);
    cx_buf line;
    if (flight == NULL)
        return CX_SUCCESS;
    if (flight->cancelled) {
        cx_gateway_flight_remove(gateway, &gateway->asked_server, flight);
        return CX_SUCCESS;
    }
    /* As an answer of the server, so that a failed call is recorded. */
    cx_buf_init(&line, gateway->options->alloc);
    cx_gateway_add_error(&line, id, CX_GATEWAY_E_INTERNAL, why);
    cx_status status = cx_buf_check(&line, err);
    if (!cx_failed(status))
        status = cx_gateway_line(gateway, CX_GATEWAY_SERVER,
                                 cx_str_from((const char *)line.data, line.size - 1), err);
    cx_buf_done(&line);
    return status;
}

bool cx_gateway_awaits(cx_gateway *gateway, cx_str id)
{
    return cx_gateway_flight_find(&gateway->asked_server, id) != NULL;
}

cx_status cx_gateway_too_long(cx_gateway *gateway, cx_gateway_side from,
                              const cx_gateway_skim *skim, uint64_t bytes, cx_err *err)
{
    static const char why[] = "cortex: a message of more than 16 MiB does not pass";
    cx_arena_mark mark = cx_arena_mark_now(&gateway->turn);
    cx_json value;
    cx_str id = CX_STR("");
    cx_err ignored;
    if (skim->has_id &&
        (cx_failed(cx_json_parse(&gateway->parser, cx_str_from(skim->id, skim->id_size),
                                 &gateway->turn, &value, &ignored)) ||
         cx_failed(cx_gateway_id_read(&value, &gateway->turn, &id, &ignored))))
        id = CX_STR("");
    cx_gateway_problem(gateway, from, "a message of more than 16 MiB", id, bytes);
    cx_status status = CX_SUCCESS;
    if (from == CX_GATEWAY_SERVER && !skim->has_method) /* the client waits for it */
        status = cx_gateway_fail_request(gateway, id, CX_STR(why), err);
    else
        cx_gateway_add_error(&gateway->out[from], skim->has_method ? id : CX_STR(""),
                             CX_GATEWAY_E_REQUEST, CX_STR(why));
    cx_arena_reset(&gateway->turn, mark);
    return cx_failed(status) ? status : check_out(gateway, err);
}

cx_status cx_gateway_server_gone(cx_gateway *gateway, cx_str why, cx_err *err)
{
    char id[CX_GATEWAY_ID_MAX];
    while (gateway->asked_server.count != 0) {
        cx_str first = gateway->asked_server.items[0].id;
        memcpy(id, first.data, first.size);
        CX_TRY(cx_gateway_fail_request(gateway, cx_str_from(id, first.size), why, err));
    }
    return CX_SUCCESS;
}

/* --- life ------------------------------------------------------------------------------------- */

static cx_status begin(cx_gateway *g, cx_err *err)
{
    cx_home *home;
    cx_live_policy policy;
    const cx_gateway_options *o = g->options;
    CX_TRY(cx_gateway_check_name(o->name, err));
    CX_TRY(cx_live_actor(o->live.agent, o->session, &g->arena, &g->actor, err));
    CX_TRY(o->open_home(o->arg, &home, err));
    cx_status status = cx_gateway_read_policy(g, home, &policy, err);
    o->close_home(o->arg, home);
    return status;
}

cx_status cx_gateway_open(const cx_gateway_options *options, cx_gateway **out, cx_err *err)
{
    static const cx_json_limits start = CX_JSON_LIMITS_INIT;
    cx_json_limits limits = start;
    cx_gateway *g = cx_alloc_zeroed(options->alloc, 1, sizeof *g);
    if (g == NULL)
        return cx_fail_nomem(err);
    limits.depth = DEPTH_MAX;
    limits.bytes = CX_GATEWAY_MESSAGE_MAX;
    g->options = options;
    g->live = options->live;
    g->live.via = "mcp-gateway";
    g->origin = (cx_gateway_origin){.name = options->name,
                                    .target = cx_digest_of(cx_str_bytes(options->target)),
                                    .session = options->session};
    cx_arena_init(&g->arena, options->alloc, 0);
    cx_arena_init(&g->turn, options->alloc, 0);
    cx_json_parser_init(&g->parser, options->alloc, &limits);
    cx_buf_init(&g->out[CX_GATEWAY_CLIENT], options->alloc);
    cx_buf_init(&g->out[CX_GATEWAY_SERVER], options->alloc);
    cx_gateway_tools_init(&g->tools, options->alloc);
    *out = g;
    cx_status status = begin(g, err);
    cx_arena_reset(&g->turn, (cx_arena_mark){NULL, NULL});
    if (cx_failed(status)) {
        g->actor = (cx_str){NULL, 0};
        cx_gateway_close(g);
        *out = NULL;
    }
    return status;
}

static cx_status end_session(cx_gateway *g, cx_err *err)
{
    cx_home *home;
    cx_live_outcome outcome;
    const cx_live_call call = {.agent = g->live.agent,
                               .event = CX_LIVE_END,
                               .event_name = CX_STR("gateway/end"),
                               .session = g->options->session,
                               .cwd = g->options->cwd};
    CX_TRY(g->options->open_home(g->options->arg, &home, err));
    cx_status status = cx_live_take_call(home, &g->live, &call, &g->turn, &outcome, err);
    g->options->close_home(g->options->arg, home);
    return status;
}

void cx_gateway_close(cx_gateway *gateway)
{
    cx_err err;
    if (gateway == NULL)
        return;
    const cx_alloc *alloc = gateway->options->alloc;
    if (gateway->options->own_session && gateway->actor.data != NULL &&
        cx_failed(end_session(gateway, &err)))
        cx_gateway_say(gateway, "the end of the session is not recorded: %s", err.message);
    while (gateway->held_count != 0)
        cx_gateway_held_remove(gateway, 0);
    while (gateway->asked_server.count != 0)
        cx_gateway_flight_remove(gateway, &gateway->asked_server, gateway->asked_server.items);
    while (gateway->asked_client.count != 0)
        cx_gateway_flight_remove(gateway, &gateway->asked_client, gateway->asked_client.items);
    cx_gateway_tools_done(&gateway->tools);
    cx_buf_done(&gateway->out[CX_GATEWAY_CLIENT]);
    cx_buf_done(&gateway->out[CX_GATEWAY_SERVER]);
    cx_json_parser_done(&gateway->parser);
    cx_arena_done(&gateway->turn);
    cx_arena_done(&gateway->arena);
    cx_alloc_free(alloc, gateway, sizeof *gateway);
}

cx_buf *cx_gateway_out(cx_gateway *gateway, cx_gateway_side to)
{
    return &gateway->out[to];
}

cx_str cx_gateway_protocol(const cx_gateway *gateway)
{
    return cx_str_z(gateway->protocol);
}
