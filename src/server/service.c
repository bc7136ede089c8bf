/*
 * service.c - the request lifecycle: route, method, token, parameters, body, handler, answer.
 *
 *   S1  A client without a token learns which paths exist (the document is public) and nothing
 *       else.
 *   S2  No scope and no level comes from the query: it can only request less than the token allows.
 */
#include "server/service.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/api.h"
#include "server/feed/live_feed.h"
#include "server/feed/session_list.h"
#include "server/origin.h"
#include "server/otlp_answer.h"
#include "server/param.h"
#include "server/route.h"
#include "server/feed/view_cache.h"

/* --- opening ---------------------------------------------------------------------------------- */

/* Without those of before people sign in again. */
static cx_status keep_sessions(cx_service *service, cx_str home, cx_err *err)
{
    cx_err why = {0};
    cx_str path = cx_arena_printf(&service->arena, "%.*s/sessions.json", (int)home.size, home.data);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    if (cx_failed(cx_sessions_keep(&service->sessions, path.data, &why)))
        cx_service_log(service, "browsers have to sign in again: %s", why.message);
    return CX_SUCCESS;
}

static cx_status init_service(cx_service *service, cx_err *err)
{
    const cx_service_options *options = &service->options;
    if (options->part_id != NULL)
        (void)snprintf(service->cookie, sizeof service->cookie, "cortex_%.16s", options->part_id);
    else
        (void)snprintf(service->cookie, sizeof service->cookie, "cortex_%u",
                       (unsigned)options->port);
    cx_sessions_init(&service->sessions, service->io);
    cx_str home = cx_arena_copy_str(&service->arena,
                                    cx_str_z(options->home_path == NULL ? "" : options->home_path));
    if (home.data == NULL)
        return cx_fail_nomem(err);
    if (options->part_id != NULL)
        CX_TRY(keep_sessions(service, home, err));
    cx_token_guard_init(&service->guard, service->io, service->alloc, home.data);
    double requests =
        options->open_requests == 0 ? CX_OPEN_REQUESTS_DEFAULT : options->open_requests;
    double events = options->open_events == 0 ? CX_OPEN_EVENTS_DEFAULT : options->open_events;
    cx_sender_rate_init(&service->open_addresses, cx_io_seed(service->io), requests, requests);
    /* A whole batch of one key always fits. */
    cx_sender_rate_init(&service->open_keys, cx_io_seed(service->io), events,
                        events < CX_BATCH_EVENTS_MAX ? CX_BATCH_EVENTS_MAX : events);
    if (options->only_token != NULL)
        cx_token_guard_only(&service->guard, options->only_token);
    service->index_where = options->index_where;
    if (service->index_where == NULL)
        service->index_where = cx_recorder_index_path(home.data, &service->arena);
    if (service->index_where == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_view_cache_open(service->alloc, &service->cache, err));
    if (service->recorder == NULL)
        return CX_SUCCESS;
    cx_status status = cx_session_list_open(cx_recorder_home(service->recorder), service->alloc,
                                            &service->live_sessions, err);
    if (cx_failed(status))
        cx_view_cache_close(service->cache);
    return status;
}

cx_status cx_service_open(const cx_service_options *options, cx_service **out, cx_err *err)
{
    const cx_alloc *alloc = options->alloc == NULL ? cx_alloc_default() : options->alloc;
    cx_service *service = cx_alloc_zeroed(alloc, 1, sizeof *service);
    if (service == NULL)
        return cx_fail_nomem(err);
    service->options = *options;
    service->alloc = alloc;
    service->io = options->io == NULL ? cx_io_system() : options->io;
    service->recorder = options->recorder;
    service->runs = options->runs;
    service->body_max = options->body_max == 0 ? CX_SERVER_BODY_MAX_DEFAULT : options->body_max;
    service->started_ns = service->io->monotonic_ns(service->io);
    cx_arena_init(&service->arena, alloc, 0);
    cx_status status = init_service(service, err);
    if (cx_failed(status)) {
        cx_arena_done(&service->arena);
        cx_alloc_free(alloc, service, sizeof *service);
        return status;
    }
    *out = service;
    return CX_SUCCESS;
}

void cx_service_close(cx_service *service)
{
    if (service == NULL)
        return;
    cx_live_feed_close(service->feed);
    cx_view_cache_close(service->cache);
    cx_session_list_close(service->live_sessions);
    cx_sender_rate_done(&service->open_addresses);
    cx_sender_rate_done(&service->open_keys);
    cx_token_guard_done(&service->guard);
    cx_sessions_done(&service->sessions);
    cx_arena_done(&service->arena);
    cx_alloc_free(service->alloc, service, sizeof *service);
}

/* One line in which nothing acts on a terminal. */
void cx_service_log(cx_service *service, const char *format, ...)
{
    char line[512];
    cx_buf shown;
    va_list args;
    if (service->options.log == NULL)
        return;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    cx_buf_init(&shown, service->alloc);
    cx_shown_add(&shown, cx_str_z(line));
    const char *text = cx_buf_z(&shown);
    if (text != NULL)
        service->options.log(service->options.log_arg, text);
    cx_buf_done(&shown);
}

/* --- beginning -------------------------------------------------------------------------------- */

void cx_call_init(cx_call *call, cx_service *service, const cx_request *request,
                  char *target_storage)
{
    CX_ASSERT(service != NULL && (target_storage != NULL || request->target.size == 0));
    memset(call, 0, offsetof(cx_call, target));
    call->service = service;
    call->request = *request;
    call->target.segment_count = call->target.param_count = 0;
    call->fault = CX_TARGET_OK;
    call->route = NULL;
    call->capture_count = 0;
    memset(call->values, 0, sizeof call->values);
    memset(&call->token, 0, sizeof call->token);
    call->by_session = call->by_signature = false;
    memset(&call->response, 0, sizeof call->response);
    cx_buf_init(&call->response.body, service->alloc);
    call->target_storage = target_storage;
    call->began_ns = service->io->monotonic_ns(service->io);
    call->worker = NULL;
    call->arena = NULL;
}

void cx_call_done(cx_call *call)
{
    cx_buf_done(&call->response.body);
}

static void answer_problem(cx_call *call, unsigned status, const char *type, cx_str detail)
{
    const cx_problem problem = {.status = status, .type = type, .detail = detail};
    cx_call_problem(call, &problem);
}

/* Exporters are often configured for all signals at once; this text appears in their logs. */
static void reject_path(cx_call *call)
{
    cx_str reason = CX_STR("no such endpoint");
    if (call->request.otlp)
        reason = cx_str_starts(call->request.target, CX_STR("/v1/metrics"))
                     ? CX_STR("metrics are not supported: send them elsewhere, or set "
                              "OTEL_METRICS_EXPORTER=none")
                     : CX_STR("only /v1/traces and /v1/logs are supported here");
    call->route = NULL;
    answer_problem(call, 404, "not-found", reason);
}

static bool find_route(cx_call *call)
{
    char allow[64];
    cx_target_fault fault =
        cx_target_parse(call->request.target, call->target_storage, &call->target);
    call->fault = fault;
    if (fault == CX_TARGET_LONG) {
        const cx_problem problem = {.status = 414,
                                    .type = "too-large",
                                    .detail = CX_STR("the request target is too long"),
                                    .max_bytes = CX_TARGET_BYTES_MAX};
        cx_call_problem(call, &problem);
        return false;
    }
    cx_route_found found = CX_ROUTE_NO_PATH;
    if (fault != CX_TARGET_PATH)
        found = cx_route_find(call, allow, sizeof allow);
    if (found == CX_ROUTE_FOUND && call->service->options.file_path != NULL &&
        !call->route->without_ledger)
        found = CX_ROUTE_NO_PATH;
    if (found == CX_ROUTE_NO_PATH) {
        reject_path(call);
        return false;
    }
    if (found == CX_ROUTE_NO_METHOD) {
        answer_problem(call, 405, "method", CX_STR("method not allowed; see Allow"));
        cx_call_header(call, "Allow", "%s", allow);
        return false;
    }
    return true;
}

/* "Bearer", in any case, one space or more, and the token (RFC 6750 §2.1). */
static cx_str bearer(cx_str header)
{
    static const char word[] = "bearer";
    size_t at = 0;
    for (; word[at] != 0; at++)
        if (at >= header.size || (header.data[at] | 0x20) != word[at])
            return (cx_str){NULL, 0};
    size_t start = at;
    while (at < header.size && header.data[at] == ' ')
        at++;
    if (at == start || at == header.size)
        return (cx_str){NULL, 0};
    return cx_str_from(header.data + at, header.size - at);
}

/* Authenticates by a session cookie, if the request comes from our own page; *out_presented:
 * there was a cookie. */
static cx_status authenticate_session(cx_call *call, bool *out_presented, bool *out_known,
                                      cx_err *err)
{
    cx_digest digest;
    cx_str cookie = cx_session_cookie(call->request.cookie, call->service->cookie);
    *out_presented = cookie.data != NULL;
    if (cookie.data == NULL || !cx_sessions_find(&call->service->sessions, cookie, &digest))
        return CX_SUCCESS;
    if (!cx_origin_host(call->service, &call->request) || !cx_origin_is_own_page(&call->request)) {
        answer_problem(call, 403, "forbidden",
                       CX_STR("a session is valid only for requests from this server's own page"));
        return CX_SUCCESS;
    }
    call->by_session = true;
    return cx_token_guard_check_digest(&call->service->guard, &digest, &call->token, out_known,
                                       err);
}

/* While a database is away, each request meets the same failure. */
static void log_tokens_change(cx_service *service, const cx_err *failure)
{
    if (failure == NULL && !atomic_load(&service->tokens_failed))
        return;
    if (atomic_exchange(&service->tokens_failed, failure != NULL) == (failure != NULL))
        return;
    if (failure == NULL)
        cx_service_log(service, "the tokens can be read again");
    else
        cx_service_log(service, "the tokens cannot be read: %s; requests are answered with 503",
                       failure->message);
}

static bool authenticate_sender(cx_call *call)
{
    cx_str text = bearer(call->request.authorization);
    bool known = false, asked = false;
    cx_err err;
    cx_status status = text.data != NULL ? cx_token_guard_check(&call->service->guard, text,
                                                                &call->token, &known, &err)
                                         : authenticate_session(call, &asked, &known, &err);
    if (call->response.status != 0)
        return false;
    log_tokens_change(call->service, cx_failed(status) ? &err : NULL);
    if (cx_failed(status)) {
        answer_problem(call, 503, "unavailable",
                       CX_STR("the tokens cannot be read; see the server's log"));
        return false;
    }
    if (known)
        return true;
    memset(&call->token, 0, sizeof call->token);
    answer_problem(call, 401, "unauthorized",
                   asked ? CX_STR("this session has ended; open the page with its token again")
                   : text.data == NULL ? CX_STR("expected the header Authorization: Bearer TOKEN")
                                       : CX_STR("this token is unknown, revoked or has expired"));
    return false;
}

static bool allow_sender(cx_call *call)
{
    const cx_route *route = call->route;
    if (route->scopes != 0 && (route->scopes & call->token.scopes) == 0) {
        cx_buf detail;
        cx_buf_init(&detail, call->service->alloc);
        cx_buf_add_z(&detail, "this needs a token with the scope");
        for (unsigned scope = 1; scope <= CX_SCOPES_ALL; scope <<= 1)
            if (route->scopes & scope)
                cx_buf_printf(&detail, " %s", cx_scope_name(scope).data);
        answer_problem(call, 403, "forbidden",
                       detail.failed ? CX_STR("the token lacks a scope") : cx_buf_str(&detail));
        cx_buf_done(&detail);
        return false;
    }
    if (route->full_level && call->token.level != CX_LEVEL_FULL) {
        answer_problem(
            call, 403, "forbidden",
            CX_STR("this shows contents in full, so it needs a token with the level full_traces"));
        return false;
    }
    return true;
}

/* S2 */
static bool allow_levels(cx_call *call)
{
    for (size_t i = 0; i < call->route->param_count; i++) {
        if (call->route->params[i].type != CX_PARAM_LEVEL || !call->values[i].given ||
            call->values[i].level <= call->token.level)
            continue;
        answer_problem(call, 403, "forbidden",
                       CX_STR("the token may not read traces of this level"));
        return false;
    }
    return true;
}

static bool is_json_type(cx_str type)
{
    static const char expected[] = "application/json";
    size_t at = 0;
    for (; expected[at] != 0; at++)
        if (at >= type.size || (char)(type.data[at] | 0x20) != (char)(expected[at] | 0x20))
            return false;
    while (at < type.size && (type.data[at] == ' ' || type.data[at] == '\t'))
        at++;
    return at == type.size || type.data[at] == ';';
}

/* OTLP has encodings of its own; its handler unpacks. */
static bool accept_export(cx_call *call)
{
    const cx_request *request = &call->request;
    if (request->content_encoding.data != NULL &&
        !cx_str_is(request->content_encoding, "identity") &&
        !cx_str_is(request->content_encoding, "gzip"))
        answer_problem(call, 415, "media-type", CX_STR("expected Content-Encoding: gzip, or none"));
    else if (cx_otlp_encoding_of(request->content_type) == CX_OTLP_NEITHER)
        answer_problem(call, 415, "media-type",
                       CX_STR("expected Content-Type: application/x-protobuf or application/json"));
    else if (request->has_length && request->length > call->service->body_max)
        cx_service_too_large(call);
    return call->response.status == 0;
}

static bool accept_body(cx_call *call)
{
    const cx_request *request = &call->request;
    bool empty = request->has_length && request->length == 0;
    if (request->otlp)
        return accept_export(call);
    if (request->content_encoding.data != NULL &&
        !cx_str_is(request->content_encoding, "identity")) {
        answer_problem(call, 415, "media-type", CX_STR("compressed bodies are not supported"));
        return false;
    }
    if (call->route->body_optional && empty)
        return true;
    if (!is_json_type(request->content_type)) {
        answer_problem(call, 415, "media-type", CX_STR("expected Content-Type: application/json"));
        return false;
    }
    if (request->has_length && request->length > call->service->body_max) {
        cx_service_too_large(call);
        return false;
    }
    return true;
}

static void begin_authenticated(cx_call *call)
{
    /* The fault of an undecodable query is shown to authenticated clients only. */
    if (call->fault == CX_TARGET_QUERY && !call->route->any_query) {
        answer_problem(
            call, 422, "invalid-parameter",
            CX_STR("the query is not UTF-8 with %XX escapes, or has too many parameters"));
        return;
    }
    if ((!call->route->any_query && !cx_params_read(call)) || !allow_levels(call))
        return;
    if (call->route->has_body)
        (void)accept_body(call);
}

/* Exporters send no token where none is needed; one that is sent must be valid.  Browsers state
 * with every POST which page it is from, and no page may write here. */
static bool is_exporter(cx_call *call)
{
    if (!call->request.otlp_open || call->request.authorization.data != NULL)
        return false;
    if (call->request.origin.data == NULL)
        return true;
    answer_problem(call, 403, "forbidden", CX_STR("a web page needs a token to send spans"));
    return false;
}

/* Agents that sign what they send and have no token (trace.md §4.6).  One that is shown must be
 * valid, and no page may write here. */
static bool is_signer(cx_call *call)
{
    const cx_request *request = &call->request;
    cx_service *service = call->service;
    if (!service->options.open_signed || !call->route->open_signed ||
        request->authorization.data != NULL || request->cookie.data != NULL)
        return false;
    if (request->origin.data != NULL) {
        answer_problem(call, 403, "forbidden", CX_STR("a web page needs a token to send traces"));
        return false;
    }
    if (!cx_sender_rate_take(&service->open_addresses, cx_str_z(request->address), 1,
                             call->began_ns)) {
        cx_counter_add(&service->metrics.rejected_slow, 1);
        answer_problem(call, 429, "rate",
                       CX_STR("this address sends more requests without a token than its rate; "
                              "nothing of this request was stored"));
        return false;
    }
    call->by_signature = true;
    return true;
}

void cx_service_begin(cx_call *call)
{
    CX_ASSERT(call->route == NULL && call->response.status == 0); /* I1 */
    if (!find_route(call))
        return;
    bool known = call->route->open || is_exporter(call) || is_signer(call);
    if (!known && call->response.status == 0)
        known = authenticate_sender(call) && allow_sender(call);
    if (known)
        begin_authenticated(call);
}

void cx_service_begin_for(cx_call *call, const cx_token *token)
{
    CX_ASSERT(call->route == NULL && call->response.status == 0); /* I1 */
    call->token = *token;
    if (find_route(call) && (call->route->open || allow_sender(call)))
        begin_authenticated(call);
}

void cx_service_too_large(cx_call *call)
{
    const cx_problem problem = {.status = 413,
                                .type = "too-large",
                                .detail = CX_STR("the body is too long"),
                                .max_bytes = call->route != NULL && !call->route->has_body
                                                 ? CX_BODY_IGNORED_MAX
                                                 : call->service->body_max};
    cx_call_problem(call, &problem);
}

void cx_service_reject_busy(cx_call *call, unsigned status, const char *why)
{
    CX_ASSERT(status == 429 || status == 503);
    answer_problem(call, status, status == 429 ? "rate" : "unavailable", cx_str_z(why));
}

/* --- running ---------------------------------------------------------------------------------- */

void cx_worker_init(cx_worker *worker, cx_service *service)
{
    CX_ASSERT(service != NULL);
    *worker = (cx_worker){.service = service};
    cx_arena_init(&worker->arena, service->alloc, 0);
}

void cx_worker_done(cx_worker *worker)
{
    cx_index_close(worker->index);
    cx_arena_done(&worker->arena);
}

/* A worker's arena keeps its memory for the next call, but not what one large call used. */
#define WORKER_ARENA_BYTES_MAX ((size_t)4 << 20)

static void reset_worker_arena(cx_worker *worker, cx_arena_mark empty)
{
    if (worker->arena.total_bytes > WORKER_ARENA_BYTES_MAX)
        cx_arena_done(&worker->arena);
    else
        cx_arena_reset(&worker->arena, empty);
}

void cx_service_handle(cx_call *call, cx_worker *worker)
{
    cx_err err = {0};
    CX_ASSERT(call->route != NULL && call->response.status == 0);        /* I1 */
    CX_ASSERT(call->worker == NULL && worker->service == call->service); /* I4 */
    cx_arena_mark empty = cx_arena_mark_now(&worker->arena);
    call->worker = worker;
    call->arena = &worker->arena;
    cx_status status = call->route->handler(call, &err);
    if (!cx_failed(status))
        status = cx_buf_check(&call->response.body, &err);
    if (cx_failed(status))
        cx_call_fail(call, &err);
    CX_ASSERT(call->response.status != 0); /* I2 */
    /* The connection may be what failed, so the next call makes a new one. */
    if (cx_failed(status) && worker->index != NULL && call->response.status >= 500) {
        cx_index_close(worker->index);
        worker->index = NULL;
    }
    reset_worker_arena(worker, empty);
    call->worker = NULL;
    call->arena = NULL;
}

void cx_service_count(const cx_call *call)
{
    CX_ASSERT(call->worker == NULL); /* I1: not while it is handled */
    cx_metrics *metrics = &call->service->metrics;
    size_t class = call->response.status / 100;
    if (class >= CX_METRICS_CLASSES)
        class = 0;
    cx_counter_add(&metrics->requests[cx_route_index(call->route)][class], 1);
    if (call->route == NULL || call->route->thread == CX_THREAD_ANY)
        return;
    uint64_t took = call->service->io->monotonic_ns(call->service->io) - call->began_ns;
    cx_histogram_add(call->route->thread == CX_THREAD_WRITE ? &metrics->intake : &metrics->reads,
                     took);
}

/* --- for handlers ----------------------------------------------------------------------------- */

cx_status cx_call_index(cx_call *call, cx_index **out, cx_err *err)
{
    cx_worker *worker = call->worker;
    CX_ASSERT(worker != NULL);
    cx_status status = CX_SUCCESS;
    if (worker->index == NULL)
        status = cx_index_open(call->service->index_where, CX_INDEX_READ, &worker->index, err);
    /* The feed has not created the index yet: this is not about the requested object. */
    if (status.code == CX_E_NOT_FOUND)
        return cx_fail_at(err, CX_E_BUSY, "IndexNotThere", CX_NO_OFFSET,
                          "the index does not exist yet; try again");
    if (!cx_failed(status))
        *out = worker->index;
    /* A database that refuses the login says nothing about the request. */
    else if (status.code == CX_E_DENIED || status.code == CX_E_USAGE ||
             status.code == CX_E_UNSUPPORTED)
        return cx_fail_at(err, CX_E_IO, "DatabaseAway", CX_NO_OFFSET, "%s", err->message);
    return status;
}

void cx_call_answer(cx_call *call, unsigned status, const char *content_type)
{
    CX_ASSERT(status >= 200 && status < 600);
    call->response.status = status;
    call->response.content_type = content_type;
}

cx_status cx_call_answer_json(cx_call *call, unsigned status, const cx_json *value, cx_err *err)
{
    CX_TRY(cx_json_write(&call->response.body, value, CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(&call->response.body, '\n');
    cx_call_answer(call, status, "application/json");
    return CX_SUCCESS;
}

void cx_call_header(cx_call *call, const char *name, const char *format, ...)
{
    cx_response *response = &call->response;
    CX_ASSERT(response->header_count < CX_RESPONSE_HEADERS_MAX);
    cx_response_header *header = &response->headers[response->header_count++];
    va_list args;
    header->name = name;
    va_start(args, format);
    int size = vsnprintf(header->value, sizeof header->value, format, args);
    va_end(args);
    CX_ASSERT(size >= 0 && (size_t)size < sizeof header->value);
}

cx_str cx_call_principal(cx_call *call)
{
    const cx_token *token = &call->token;
    CX_ASSERT(call->arena != NULL);
    return cx_arena_printf(call->arena, "token:%s", token->name[0] == 0 ? token->id : token->name);
}

/* The type of a body that is no JSON, by what was found. */
static const char *type_of(const cx_err *err)
{
    if (err->tag != NULL && strcmp(err->tag, "U_DUPKEY") == 0)
        return "duplicate-key";
    if (err->tag != NULL && strcmp(err->tag, "U_UTF8") == 0)
        return "invalid-utf8";
    return "malformed-json";
}

cx_status cx_call_json(cx_call *call, cx_json *out, bool *out_read, cx_err *err)
{
    static const cx_json_limits limits = {.depth = 64, .integer_digits = 4300};
    cx_json_parser parser;
    CX_ASSERT(call->route->has_body && call->arena != NULL);
    cx_json_parser_init(&parser, call->service->alloc, &limits);
    cx_status status =
        cx_json_parse(&parser, cx_bytes_str(call->request.body), call->arena, out, err);
    cx_json_parser_done(&parser);
    *out_read = !cx_failed(status);
    if (*out_read || status.code == CX_E_NOMEM)
        return status;
    const cx_problem problem = {
        .status = 400, .type = type_of(err), .detail = cx_str_z(err->message)};
    cx_call_problem(call, &problem);
    return CX_SUCCESS;
}
