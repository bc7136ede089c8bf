/*
 * grpc_listener.c - the thread that serves the connections of gRPC clients.
 *
 * An export is an *exchange*: created when its headers have arrived, given to the pool with its
 * message, and given back on a list that the thread empties.
 *
 *   G1  Between submission and the list only the pool's thread touches the call of an exchange.
 *       Its stream is known to the listener's thread only, and is cleared when it ends first.
 *   G2  A connection has at most CX_GRPC_STREAMS_MAX exchanges, also of streams that it reset.
 *   G3  Memory for messages comes from one budget; a message that does not fit is rejected.
 */
#include "server/grpc_listener.h"

#include "base/api.h"
#include "server/grpc_session.h"
#include "server/otlp_answer.h"
#include "server/pool.h"

#define TICK_MS 50
#define QUIET_TICK_MS 1000
#define IDLE_MS 300000
#define RECEIVE_BYTES ((size_t)16 << 10)
#define RECEIVES_AT_ONCE 16 /* of one connection, before the others have their turn */
#define ACCEPTS_AT_ONCE 64
#define EVENTS_AT_ONCE 32
#define RETRY_S 1

typedef struct exchange exchange;

typedef struct connection {
    struct connection *next, **link;
    cx_grpc *grpc;
    cx_socket socket;
    cx_grpc_session *session;
    cx_buf out; /* not sent yet, from `sent` on */
    size_t sent;
    uint64_t blocked_ns; /* since when nothing of it could be sent; 0 = it can */
    unsigned wanted;     /* CX_POLL_.. */
    size_t exchange_count;
    bool is_loopback, is_closed;
    char network[CX_TCP_NETWORK_SIZE];
} connection;

struct exchange {
    cx_pool_job job; /* first: the pool passes it back */
    cx_grpc *grpc;
    connection *connection;
    bool is_submitted;      /* to the pool, which gives it back */
    cx_grpc_stream *stream; /* NULL = the caller does not wait any longer */
    exchange *next;
    cx_call call;
    cx_grpc_message message;
    char target[16]; /* decoded */
};

struct cx_grpc {
    cx_grpc_options options;
    cx_service *service;
    const cx_alloc *alloc;
    cx_grpc_library *library;
    cx_grpc_limits limits;
    cx_poller poller;
    cx_pool *pool;
    cx_lock lock;   /* of `done` */
    exchange *done; /* newest first */
    connection *connections;
    size_t connection_count;
    size_t message_bytes; /* G3; also of exchanges */
    bool accepts, explained_tls, finishing;
    uint64_t tick_ns; /* the last one */
    atomic_bool stopping;
    uint64_t stop_ns; /* the latest time to end; set before `stopping` */
    cx_thread thread;
};

static uint64_t now_ns(const cx_grpc *grpc)
{
    return grpc->service->io->monotonic_ns(grpc->service->io);
}

/* --- memory: G3 ------------------------------------------------------------------------------- */

static bool reserve_bytes(void *arg, size_t bytes)
{
    cx_grpc *grpc = ((connection *)arg)->grpc;
    if (bytes > grpc->options.body_memory - grpc->message_bytes) {
        cx_counter_add(&grpc->service->metrics.rejected_full, 1);
        return false;
    }
    grpc->message_bytes += bytes;
    cx_gauge_add(&grpc->service->metrics.body_memory, (int64_t)bytes);
    return true;
}

static void return_bytes(cx_grpc *grpc, size_t bytes)
{
    grpc->message_bytes -= bytes;
    cx_gauge_add(&grpc->service->metrics.body_memory, -(int64_t)bytes);
}

static void release_bytes(void *arg, size_t bytes)
{
    return_bytes(((connection *)arg)->grpc, bytes);
}

/* --- exchanges -------------------------------------------------------------------------------- */

/* One that is closed lives as long as its exchanges do. */
static void free_connection(connection *c)
{
    if (!c->is_closed || c->exchange_count != 0)
        return;
    cx_buf_done(&c->out);
    cx_alloc_free(c->grpc->alloc, c, sizeof *c);
}

static void free_exchange(exchange *x)
{
    cx_grpc *grpc = x->grpc;
    connection *c = x->connection;
    if (x->call.response.status != 0)
        cx_service_count(&x->call);
    cx_gauge_add(&grpc->service->metrics.in_flight, -1);
    if (x->message.capacity != 0) {
        cx_alloc_free(grpc->alloc, x->message.data, x->message.capacity);
        return_bytes(grpc, x->message.capacity);
    }
    cx_call_done(&x->call);
    cx_alloc_free(grpc->alloc, x, sizeof *x);
    c->exchange_count--;
    free_connection(c);
}

/* Codes of HTTP answers, but for too many requests: what may be tried again is UNAVAILABLE. */
static void answer_exchange(exchange *x)
{
    const cx_response *response = &x->call.response;
    unsigned code = 0;
    cx_str text;
    if (x->stream == NULL)
        return;
    if (response->body.failed)
        cx_grpc_reject(x->stream, CX_GRPC_UNAVAILABLE, CX_STR("out of memory"), RETRY_S);
    else if (response->status == 200)
        cx_grpc_answer(x->stream, cx_buf_bytes(&response->body));
    else if (response->status == 429 || response->status == 503) {
        (void)cx_grpc_status_read(cx_buf_bytes(&response->body), &code, &text);
        cx_grpc_reject(x->stream, CX_GRPC_UNAVAILABLE, text, RETRY_S);
    } else if (cx_grpc_status_read(cx_buf_bytes(&response->body), &code, &text) &&
               cx_grpc_code_name(code) != NULL)
        cx_grpc_reject(x->stream, (cx_grpc_code)code, text, 0);
    else
        cx_grpc_reject(x->stream, CX_GRPC_INTERNAL, CX_STR("the request was not answered"), 0);
}

/* G1 */
static void run_exchange(cx_pool_job *job, cx_worker *worker)
{
    exchange *x = (exchange *)job;
    cx_grpc *grpc = x->grpc;
    cx_service_handle(&x->call, worker);
    cx_lock_enter(&grpc->lock);
    x->next = grpc->done;
    grpc->done = x;
    cx_lock_leave(&grpc->lock);
    cx_poller_wake(&grpc->poller);
}

static exchange *take_done(cx_grpc *grpc)
{
    cx_lock_enter(&grpc->lock);
    exchange *done = grpc->done;
    grpc->done = NULL;
    cx_lock_leave(&grpc->lock);
    return done;
}

/* --- calls ------------------------------------------------------------------------------------ */

#define COLLECTOR "/opentelemetry.proto.collector."

/* The path of OTLP/HTTP for a method; data NULL = it is not served. */
static cx_str target_of(cx_str path)
{
    if (cx_str_is(path, COLLECTOR "trace.v1.TraceService/Export"))
        return CX_STR("/v1/traces");
    if (cx_str_is(path, COLLECTOR "logs.v1.LogsService/Export"))
        return CX_STR("/v1/logs");
    return (cx_str){NULL, 0};
}

static void reject_method(cx_grpc_stream *stream, cx_str path)
{
    cx_str text = cx_str_starts(path, CX_STR(COLLECTOR "metrics."))
                      ? CX_STR("metrics are not supported: send them elsewhere, or set "
                               "OTEL_METRICS_EXPORTER=none")
                      : CX_STR("only TraceService/Export and LogsService/Export of "
                               "opentelemetry.proto.collector are supported here");
    cx_grpc_reject(stream, CX_GRPC_UNIMPLEMENTED, text, 0);
}

static void begin_call(exchange *x, const cx_grpc_question *question, cx_str target)
{
    cx_grpc *grpc = x->grpc;
    cx_request request = {.method = CX_STR("POST"),
                          .target = target,
                          .authorization = question->authorization,
                          .content_type = CX_STR(CX_OTLP_PROTOBUF),
                          .loopback = x->connection->is_loopback,
                          .otlp = true,
                          .otlp_open = grpc->options.open};
    if (question->from_page)
        request.origin = CX_STR("a page");
    _Static_assert(sizeof request.address == CX_TCP_NETWORK_SIZE, "both are texts of a network");
    memcpy(request.address, x->connection->network, sizeof request.address);
    cx_call_init(&x->call, grpc->service, &request, x->target);
    cx_service_begin(&x->call);
    /* It lives in the stream, which may end first. */
    x->call.request.authorization = (cx_str){NULL, 0};
}

static void begin_exchange(void *arg, cx_grpc_stream *stream, const cx_grpc_question *question,
                           void **out_user)
{
    connection *c = arg;
    cx_grpc *grpc = c->grpc;
    cx_str target = target_of(question->path);
    if (target.data == NULL) {
        reject_method(stream, question->path);
        return;
    }
    exchange *x = c->exchange_count < CX_GRPC_STREAMS_MAX && !atomic_load(&grpc->service->stopping)
                      ? cx_alloc_new(grpc->alloc, sizeof *x)
                      : NULL;
    if (x == NULL) {
        cx_counter_add(&grpc->service->metrics.rejected_full, 1);
        cx_grpc_reject(stream, CX_GRPC_UNAVAILABLE,
                       atomic_load(&grpc->service->stopping)
                           ? CX_STR("the server is shutting down; nothing of this was stored")
                           : CX_STR("too many calls of this connection are in progress; nothing "
                                    "of this was stored"),
                       RETRY_S);
        return;
    }
    _Static_assert(sizeof x->target >= sizeof "/v1/traces", "a decoded target has its place");
    memset(x, 0, offsetof(exchange, call));
    x->grpc = grpc;
    x->connection = c;
    x->stream = stream;
    x->is_submitted = false;
    x->message = (cx_grpc_message){NULL, 0, 0, false};
    c->exchange_count++;
    cx_gauge_add(&grpc->service->metrics.in_flight, 1);
    begin_call(x, question, target);
    if (x->call.response.status == 0) {
        *out_user = x;
        return;
    }
    answer_exchange(x);
    free_exchange(x);
}

static void submit_exchange(void *arg, cx_grpc_stream *stream, void *user,
                            const cx_grpc_message *message)
{
    connection *c = arg;
    cx_grpc *grpc = c->grpc;
    exchange *x = user;
    CX_ASSERT(x->stream == stream);
    x->message = *message;
    x->call.request.body = cx_bytes_from(message->data, message->size);
    if (message->is_gzip)
        x->call.request.content_encoding = CX_STR("gzip");
    cx_counter_add(&grpc->service->metrics.body_bytes, message->size);
    x->job.run = run_exchange;
    if (cx_pool_reserve(grpc->pool)) {
        x->is_submitted = true;
        cx_pool_submit(grpc->pool, &x->job);
        return;
    }
    cx_counter_add(&grpc->service->metrics.rejected_full, 1);
    /* Which ends the exchange. */
    cx_grpc_reject(stream, CX_GRPC_UNAVAILABLE,
                   CX_STR("too many requests are waiting; nothing of this one was stored"),
                   RETRY_S);
}

/* The stream ends, or is answered: an exchange that the pool has is left to it. */
static void end_exchange(void *arg, void *user)
{
    exchange *x = user;
    (void)arg;
    x->stream = NULL;
    if (!x->is_submitted)
        free_exchange(x);
}

_Static_assert(CX_METRICS_GRPC_CODES == CX_GRPC_CODES, "each code has a counter");

static void count_answer(void *arg, cx_grpc_code code)
{
    connection *c = arg;
    cx_counter_add(&c->grpc->service->metrics.grpc_calls[code], 1);
}

/* --- connections ------------------------------------------------------------------------------ */

static size_t pending_bytes(const connection *c)
{
    return c->out.size - c->sent;
}

static void close_connection(connection *c)
{
    cx_grpc *grpc = c->grpc;
    cx_grpc_session_close(c->session);
    c->session = NULL;
    cx_poller_remove(&grpc->poller, c->socket);
    cx_tcp_close(c->socket);
    *c->link = c->next;
    if (c->next != NULL)
        c->next->link = c->link;
    grpc->connection_count--;
    cx_gauge_add(&grpc->service->metrics.connections, -1);
    c->is_closed = true;
    free_connection(c);
}

static void count_end(connection *c, cx_grpc_end end)
{
    cx_grpc *grpc = c->grpc;
    cx_metrics *metrics = &grpc->service->metrics;
    if (end == CX_GRPC_ENDS_SLOW)
        cx_counter_add(&metrics->closed_slow, 1);
    if (end == CX_GRPC_ENDS_FLOOD)
        cx_counter_add(&metrics->grpc_closed_flood, 1);
    if (end == CX_GRPC_ENDS_TLS && !grpc->explained_tls) {
        grpc->explained_tls = true;
        cx_service_log(grpc->service,
                       "OTLP over gRPC: a client wants TLS, which this port does not have; set "
                       "OTEL_EXPORTER_OTLP_INSECURE=true for it, or give it an endpoint that "
                       "begins with http://");
    }
}

/* Sends what is pending and what the session adds; false = the connection is broken. */
static bool send_pending(connection *c, cx_grpc_end *end)
{
    for (;;) {
        if (pending_bytes(c) == 0) {
            cx_buf_clear(&c->out);
            c->sent = 0;
            *end = cx_grpc_session_output(c->session, &c->out);
            if (c->out.failed)
                return false;
            if (c->out.size == 0)
                return true;
        }
        size_t size = 0;
        cx_socket_result result =
            cx_tcp_send(c->socket, c->out.data + c->sent, pending_bytes(c), &size);
        if (result == CX_SOCKET_ENDED)
            return false;
        if (result == CX_SOCKET_WAITS) {
            if (c->blocked_ns == 0)
                c->blocked_ns = now_ns(c->grpc);
            return true;
        }
        c->sent += size;
        c->blocked_ns = 0;
    }
}

/* Sends, and closes or waits for what comes next.  The connection may be gone afterwards. */
static void continue_connection(connection *c)
{
    cx_grpc_end end = CX_GRPC_GOES_ON;
    bool works = send_pending(c, &end);
    if (!works || (end != CX_GRPC_GOES_ON && pending_bytes(c) == 0)) {
        count_end(c, end);
        close_connection(c);
        return;
    }
    unsigned wanted = pending_bytes(c) == 0 ? CX_POLL_READ : CX_POLL_WRITE;
    if (wanted == c->wanted)
        return;
    c->wanted = wanted;
    if (cx_failed(cx_poller_change(&c->grpc->poller, c->socket, wanted, c, NULL)))
        close_connection(c);
}

static void receive_from(connection *c)
{
    uint8_t bytes[RECEIVE_BYTES];
    for (int i = 0; i < RECEIVES_AT_ONCE && pending_bytes(c) == 0; i++) {
        size_t size = 0;
        cx_socket_result result = cx_tcp_receive(c->socket, bytes, sizeof bytes, &size);
        if (result == CX_SOCKET_WAITS)
            break;
        if (result == CX_SOCKET_ENDED) {
            close_connection(c);
            return;
        }
        if (cx_grpc_session_receive(c->session, cx_bytes_from(bytes, size), now_ns(c->grpc)) !=
            CX_GRPC_GOES_ON)
            break;
        /* Answers leave as they are made, so that nothing piles up. */
        cx_grpc_end end = CX_GRPC_GOES_ON;
        if (!send_pending(c, &end)) {
            close_connection(c);
            return;
        }
        if (end != CX_GRPC_GOES_ON)
            break;
    }
    continue_connection(c);
}

static bool has_place(const cx_grpc *grpc, const char *network)
{
    size_t same = 0;
    if (grpc->connection_count >= grpc->options.connections)
        return false;
    if (grpc->options.connections_per_address == 0)
        return true;
    for (const connection *c = grpc->connections; c != NULL; c = c->next)
        same += strcmp(c->network, network) == 0 ? 1u : 0u;
    return same < grpc->options.connections_per_address;
}

static cx_status add_connection(cx_grpc *grpc, connection *c, cx_err *err)
{
    cx_grpc_hooks hooks = {.arg = c,
                           .begin = begin_exchange,
                           .call = submit_exchange,
                           .closed = end_exchange,
                           .answered = count_answer,
                           .reserve = reserve_bytes,
                           .release = release_bytes};
    CX_TRY(cx_grpc_session_open(grpc->library, grpc->alloc, &hooks, &grpc->limits, now_ns(grpc),
                                &c->session, err));
    c->wanted = CX_POLL_READ;
    return cx_poller_add(&grpc->poller, c->socket, c->wanted, c, err);
}

static void open_connection(cx_grpc *grpc, const connection *accepted)
{
    connection *c =
        has_place(grpc, accepted->network) ? cx_alloc_new(grpc->alloc, sizeof *c) : NULL;
    if (c == NULL) {
        cx_counter_add(&grpc->service->metrics.rejected_full, 1);
        cx_tcp_close(accepted->socket);
        return;
    }
    *c = *accepted;
    c->grpc = grpc;
    cx_buf_init(&c->out, grpc->alloc);
    if (cx_failed(add_connection(grpc, c, NULL))) {
        cx_grpc_session_close(c->session);
        cx_tcp_close(c->socket);
        cx_alloc_free(grpc->alloc, c, sizeof *c);
        return;
    }
    c->next = grpc->connections;
    c->link = &grpc->connections;
    if (c->next != NULL)
        c->next->link = &c->next;
    grpc->connections = c;
    grpc->connection_count++;
    cx_gauge_add(&grpc->service->metrics.connections, 1);
    continue_connection(c);
}

/* --- the thread ------------------------------------------------------------------------------- */

static void pause_accepting(cx_grpc *grpc)
{
    if (grpc->accepts)
        cx_poller_remove(&grpc->poller, grpc->options.socket);
    grpc->accepts = false;
}

static void accept_connections(cx_grpc *grpc)
{
    for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
        connection accepted = {.socket = CX_SOCKET_NONE};
        cx_socket_result result = cx_tcp_accept(grpc->options.socket, &accepted.socket,
                                                &accepted.is_loopback, accepted.network);
        if (result == CX_SOCKET_ENDED)
            pause_accepting(grpc); /* until the next tick: no descriptor is free */
        if (result != CX_SOCKET_DONE)
            return;
        open_connection(grpc, &accepted);
    }
}

static void answer_done(cx_grpc *grpc)
{
    for (exchange *x = take_done(grpc), *next; x != NULL; x = next) {
        connection *c = x->connection;
        bool is_open = !c->is_closed;
        next = x->next;
        answer_exchange(x);
        free_exchange(x);
        if (is_open)
            continue_connection(c);
    }
}

static void expire_connection(connection *c, uint64_t now)
{
    cx_grpc *grpc = c->grpc;
    unsigned slow = 0;
    (void)cx_grpc_session_expire(c->session, now, &slow);
    if (c->blocked_ns != 0 && (now - c->blocked_ns) / 1000000 >= grpc->limits.answer_ms) {
        cx_counter_add(&grpc->service->metrics.closed_slow, 1);
        close_connection(c);
        return;
    }
    cx_counter_add(&grpc->service->metrics.closed_slow, slow);
    continue_connection(c);
}

static void expire_all(cx_grpc *grpc)
{
    uint64_t now = now_ns(grpc);
    if ((now - grpc->tick_ns) / 1000000 < TICK_MS)
        return;
    grpc->tick_ns = now;
    for (connection *c = grpc->connections, *next; c != NULL; c = next) {
        next = c->next;
        expire_connection(c, now);
    }
    if (!grpc->accepts && !grpc->finishing)
        grpc->accepts = !cx_failed(
            cx_poller_add(&grpc->poller, grpc->options.socket, CX_POLL_READ, grpc, NULL));
}

static void finish_all(cx_grpc *grpc)
{
    grpc->finishing = true;
    pause_accepting(grpc);
    cx_tcp_stop_listening(grpc->options.socket);
    for (connection *c = grpc->connections, *next; c != NULL; c = next) {
        next = c->next;
        cx_grpc_session_finish(c->session);
        continue_connection(c);
    }
}

static bool goes_on(cx_grpc *grpc)
{
    if (!atomic_load(&grpc->stopping))
        return true;
    if (!grpc->finishing)
        finish_all(grpc);
    return grpc->connection_count != 0 && now_ns(grpc) < grpc->stop_ns;
}

static void serve_connections(void *arg)
{
    cx_grpc *grpc = arg;
    cx_poll_event events[EVENTS_AT_ONCE];
    while (goes_on(grpc)) {
        bool is_quiet = grpc->connection_count == 0 && grpc->accepts;
        size_t count = cx_poller_wait(&grpc->poller, events, EVENTS_AT_ONCE,
                                      is_quiet ? QUIET_TICK_MS : TICK_MS);
        for (size_t i = 0; i < count; i++) {
            if (events[i].arg == grpc)
                accept_connections(grpc);
            else if ((events[i].ready & CX_POLL_READ) != 0)
                receive_from(events[i].arg);
            else
                continue_connection(events[i].arg);
        }
        answer_done(grpc);
        expire_all(grpc);
    }
    while (grpc->connections != NULL)
        close_connection(grpc->connections);
}

/* --- starting and ending ---------------------------------------------------------------------- */

static cx_status start_serving(cx_grpc *grpc, cx_err *err)
{
    CX_TRY(cx_grpc_library_load(grpc->alloc, &grpc->library, err));
    CX_TRY(cx_poller_open(&grpc->poller, err));
    CX_TRY(cx_poller_add(&grpc->poller, grpc->options.socket, CX_POLL_READ, grpc, err));
    grpc->accepts = true;
    CX_TRY(cx_pool_open(grpc->service, grpc->options.threads, grpc->options.places,
                        &grpc->service->metrics.queued_intake, &grpc->pool, err));
    if (!cx_thread_start(&grpc->thread, serve_connections, grpc))
        return cx_fail(err, CX_E_BUSY, "a thread cannot be started");
    return CX_SUCCESS;
}

cx_status cx_grpc_open(const cx_grpc_options *options, cx_grpc **out, cx_err *err)
{
    cx_service *service = options->service;
    cx_grpc *grpc = cx_alloc_zeroed(service->alloc, 1, sizeof *grpc);
    if (grpc == NULL) {
        cx_tcp_close(options->socket);
        return cx_fail_nomem(err);
    }
    grpc->options = *options;
    grpc->service = service;
    grpc->alloc = service->alloc;
    grpc->poller = (cx_poller)CX_POLLER_NONE;
    grpc->limits = (cx_grpc_limits){.message_bytes = service->body_max,
                                    .header_ms = options->header_ms,
                                    .body_ms = options->body_ms,
                                    .answer_ms = options->answer_ms,
                                    .idle_ms = IDLE_MS};
    cx_lock_init(&grpc->lock);
    cx_status status = start_serving(grpc, err);
    if (cx_failed(status))
        cx_grpc_close(grpc, 0);
    else
        *out = grpc;
    return status;
}

void cx_grpc_close(cx_grpc *grpc, uint32_t grace_ms)
{
    if (grpc == NULL)
        return;
    grpc->stop_ns = now_ns(grpc) + grace_ms * UINT64_C(1000000);
    atomic_store(&grpc->stopping, true);
    if (grpc->thread.started) {
        cx_poller_wake(&grpc->poller);
        cx_thread_join(&grpc->thread);
    }
    cx_pool_close(grpc->pool); /* runs what was submitted */
    for (exchange *x = take_done(grpc), *next; x != NULL; x = next) {
        next = x->next;
        free_exchange(x);
    }
    cx_tcp_close(grpc->options.socket);
    cx_poller_close(&grpc->poller);
    cx_grpc_library_free(grpc->library);
    cx_lock_done(&grpc->lock);
    cx_alloc_free(grpc->alloc, grpc, sizeof *grpc);
}
