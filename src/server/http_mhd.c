/*
 * http_mhd.c - the adapter between libmicrohttpd and the service.
 *
 * A request is an *exchange*: created when its first line has arrived, freed when its answer has
 * been sent or its connection has closed.  libmicrohttpd calls us on its threads; a call that waits
 * is suspended, submitted to a pool, and resumed with its answer.
 *
 *   M1  A connection is suspended before its exchange is submitted, and resumed exactly once.
 *   M2  Between the two only the pool's thread touches the exchange.
 *   M3  A socket is shut down only while its connection is in the list, which it leaves before the
 *       library closes it: a descriptor that was reused for another socket is never shut down.
 *   M4  Memory for bodies comes from one budget; a body that does not fit is rejected.
 *   M5  The library misses an end that arrives with the last bytes: it takes a short read for the
 *       last one until the kernel reports more, and an end is reported once.  So connections that
 *       are to be read are looked at, each LOOK_MS, and one that was seen ended twice is cut.
 */
#include "server/http_mhd.h"

#include <microhttpd.h>

#include "base/api.h"
#include "os/api.h"
#include "crypto/api.h"
#include "server/feed/live_feed.h"
#include "server/feed/runs.h"
#include "server/pool.h"
#include "server/route.h"

#define SWEEP_MS 100
#define LOOK_MS 1000
#define BODY_STEP ((size_t)64 << 10)
#define SENDER_SLOTS 256
#define CONNECTION_MEMORY ((size_t)32 << 10)
#define HEADER_BYTES_MAX ((size_t)16 << 10)

/* --- the library ------------------------------------------------------------------------------ */

#define FUNCTIONS(X)                     \
    X(MHD_start_daemon)                  \
    X(MHD_stop_daemon)                   \
    X(MHD_queue_response)                \
    X(MHD_create_response_from_buffer)   \
    X(MHD_create_response_from_callback) \
    X(MHD_create_response_for_upgrade)   \
    X(MHD_upgrade_action)                \
    X(MHD_destroy_response)              \
    X(MHD_add_response_header)           \
    X(MHD_lookup_connection_value)       \
    X(MHD_get_connection_values)         \
    X(MHD_suspend_connection)            \
    X(MHD_resume_connection)             \
    X(MHD_get_connection_info)           \
    X(MHD_is_feature_supported)

#define DECLARE(name) __typeof__(&name) name;
typedef struct mhd_library {
    cx_library *library;
    FUNCTIONS(DECLARE)
} mhd_library;

/* It stays loaded: what it pulls in for TLS leaves handlers that must not go away under us. */
static cx_status load_library(mhd_library *out, cx_err *err)
{
    if (cx_failed(cx_library_load("libmicrohttpd.so.12", &out->library, NULL)))
        return cx_fail_at(err, CX_E_UNSUPPORTED, "LibraryMissing", CX_NO_OFFSET,
                          "cannot load libmicrohttpd: install the package libmicrohttpd12");
#define LOAD(name) CX_TRY(cx_library_symbol(out->library, #name, &out->name, err));
    FUNCTIONS(LOAD)
    return CX_SUCCESS;
}

/* --- state ------------------------------------------------------------------------------------ */

typedef enum phase {
    PHASE_HEADER, /* nothing, or a part of a header, is there */
    PHASE_BODY,
    PHASE_HANDLER, /* ours; also the feed */
    PHASE_ANSWER
} phase;

typedef struct connection {
    struct connection *next, **link;
    int socket;
    phase phase;
    bool ended; /* M5: when it was looked at in this phase */
    uint64_t since_ns;
} connection;

struct cx_http {
    mhd_library mhd;
    cx_http_options options;
    cx_service *service;
    const cx_alloc *alloc;
    struct MHD_Daemon *daemon;
    cx_pool *intake, *reads;
    atomic_size_t body_used;           /* M4 */
    atomic_uint senders[SENDER_SLOTS]; /* writing calls under way, by token */
    atomic_int_fast64_t in_flight;     /* requests of this listener not answered yet */
    cx_lock lock;
    connection *connections;
    bool sweeping_ends;
    cx_thread sweeper;
};

typedef enum step {
    STEP_NEW,     /* the first line is there */
    STEP_BODY,    /* headers were checked; the body follows */
    STEP_DISCARD, /* answered already: the body is read and discarded */
    STEP_HANDLER, /* suspended */
    STEP_DONE     /* answered */
} step;

typedef struct exchange {
    cx_pool_job job; /* first: the pool passes it back */
    cx_http *http;
    struct MHD_Connection *connection;
    cx_call call;
    step step;
    bool counted; /* in in_flight */
    bool with_sender;
    bool close;      /* the connection, after the answer */
    unsigned sender; /* slot */
    uint8_t *body;
    size_t body_size, body_capacity;
    uint64_t received; /* of a body, also what was thrown away */
    size_t size_bytes; /* of this block */
    char text[];       /* the target, and space for it decoded */
} exchange;

/* A streamed body. */
typedef struct stream {
    cx_http *http;
    struct MHD_Connection *connection;
    cx_stream *source;
} stream;

static uint64_t now_ns(const cx_http *http)
{
    return http->service->io->monotonic_ns(http->service->io);
}

/* --- connections ------------------------------------------------------------------------------ */

static connection *connection_of(cx_http *http, struct MHD_Connection *handle)
{
    const union MHD_ConnectionInfo *info =
        http->mhd.MHD_get_connection_info(handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

static void enter_phase(cx_http *http, struct MHD_Connection *handle, phase next)
{
    connection *c = connection_of(http, handle);
    if (c == NULL)
        return;
    cx_lock_enter(&http->lock);
    c->phase = next;
    c->ended = false;
    c->since_ns = now_ns(http);
    cx_lock_leave(&http->lock);
}

static void register_connection(cx_http *http, struct MHD_Connection *handle, void **context)
{
    const union MHD_ConnectionInfo *info =
        http->mhd.MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD);
    connection *c = info == NULL ? NULL : cx_alloc_new(http->alloc, sizeof *c);
    if (c == NULL)
        return;
    *c = (connection){.socket = info->connect_fd, .since_ns = now_ns(http)};
    cx_lock_enter(&http->lock);
    c->next = http->connections;
    c->link = &http->connections;
    if (c->next != NULL)
        c->next->link = &c->next;
    http->connections = c;
    cx_lock_leave(&http->lock);
    cx_gauge_add(&http->service->metrics.connections, 1);
    *context = c;
}

/* M3 */
static void remove_connection(cx_http *http, void **context)
{
    connection *c = *context;
    if (c == NULL)
        return;
    cx_lock_enter(&http->lock);
    *c->link = c->next;
    if (c->next != NULL)
        c->next->link = c->link;
    cx_lock_leave(&http->lock);
    cx_gauge_add(&http->service->metrics.connections, -1);
    cx_alloc_free(http->alloc, c, sizeof *c);
    *context = NULL;
}

static void on_connection(void *arg, struct MHD_Connection *handle, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        register_connection(arg, handle, context);
    else
        remove_connection(arg, context);
}

static uint64_t allowed_ms(const cx_http *http, phase which)
{
    switch (which) {
    case PHASE_HEADER: return http->options.header_ms;
    case PHASE_BODY: return http->options.body_ms;
    case PHASE_ANSWER: return http->options.answer_ms;
    default: return UINT32_MAX;
    }
}

/* Under the lock.  A connection that is cut is seen as ended by its peer. */
static void closed_slow(cx_http *http)
{
    uint64_t now = now_ns(http);
    for (connection *c = http->connections; c != NULL; c = c->next) {
        if (c->phase == PHASE_HANDLER || (now - c->since_ns) / 1000000 < allowed_ms(http, c->phase))
            continue;
        cx_tcp_cut(c->socket);
        c->phase = PHASE_HANDLER;
        cx_counter_add(&http->service->metrics.closed_slow, 1);
    }
}

/* M5, under the lock. */
static void cut_ended(cx_http *http)
{
    for (connection *c = http->connections; c != NULL; c = c->next) {
        const bool is_read = c->phase == PHASE_HEADER || c->phase == PHASE_BODY;
        const bool ended = is_read && cx_tcp_has_ended(c->socket);
        if (ended && c->ended) {
            cx_tcp_cut(c->socket);
            c->phase = PHASE_HANDLER;
        }
        c->ended = ended;
    }
}

static void run_sweeper(void *arg)
{
    cx_http *http = arg;
    uint64_t looked_ns = now_ns(http);
    cx_lock_enter(&http->lock);
    while (!http->sweeping_ends) {
        cx_lock_wait_for(&http->lock, SWEEP_MS);
        closed_slow(http);
        if (now_ns(http) - looked_ns < LOOK_MS * UINT64_C(1000000))
            continue;
        cut_ended(http);
        looked_ns = now_ns(http);
    }
    cx_lock_leave(&http->lock);
}

/* --- exchanges -------------------------------------------------------------------------------- */

/* The first line is there; what the library would make of the target is not used. */
static void *on_target(void *arg, const char *target, struct MHD_Connection *handle)
{
    cx_http *http = arg;
    size_t size = strlen(target);
    /* One byte more than it may be is enough to know. */
    if (size > CX_TARGET_BYTES_MAX + 1)
        size = CX_TARGET_BYTES_MAX + 1;
    size_t bytes = sizeof(exchange) + 2 * size;
    exchange *x = cx_alloc_new(http->alloc, bytes);
    if (x == NULL)
        return NULL;
    memset(x, 0, offsetof(exchange, call));
    x->http = http;
    x->connection = handle;
    x->step = STEP_NEW;
    x->counted = x->with_sender = x->close = false;
    x->body = NULL;
    x->body_size = x->body_capacity = 0;
    x->received = 0;
    x->size_bytes = bytes;
    memcpy(x->text, target, size);
    bool otlp_too = http->options.otlp_too && size >= 4 && memcmp(x->text, "/v1/", 4) == 0;
    const cx_request request = {.target = {x->text, size},
                                .otlp = http->options.otlp || otlp_too,
                                .otlp_open = http->options.otlp_open};
    cx_call_init(&x->call, http->service, &request, x->text + size);
    return x;
}

static void release_body(exchange *x)
{
    if (x->body_capacity == 0)
        return;
    cx_alloc_free(x->http->alloc, x->body, x->body_capacity);
    (void)atomic_fetch_sub(&x->http->body_used, x->body_capacity);
    cx_gauge_add(&x->http->service->metrics.body_memory, -(int64_t)x->body_capacity);
    x->body = NULL;
    x->body_size = x->body_capacity = 0;
}

static void leave_sender(exchange *x)
{
    if (x->with_sender)
        (void)atomic_fetch_sub(&x->http->senders[x->sender], 1);
    x->with_sender = false;
}

static void on_completed(void *arg, struct MHD_Connection *handle, void **context,
                         enum MHD_RequestTerminationCode code)
{
    cx_http *http = arg;
    exchange *x = *context;
    (void)code;
    if (x == NULL)
        return;
    if (x->call.response.status != 0)
        cx_service_count(&x->call);
    if (x->counted) {
        cx_gauge_add(&http->service->metrics.in_flight, -1);
        cx_gauge_add(&http->in_flight, -1);
    }
    leave_sender(x);
    release_body(x);
    cx_call_done(&x->call);
    cx_alloc_free(http->alloc, x, x->size_bytes);
    *context = NULL;
    enter_phase(http, handle, PHASE_HEADER);
}

/* --- answers ---------------------------------------------------------------------------------- */

static void add_headers(exchange *x, struct MHD_Response *response)
{
    const mhd_library *mhd = &x->http->mhd;
    const cx_response *reply = &x->call.response;
    if (reply->content_type != NULL)
        (void)mhd->MHD_add_response_header(response, "Content-Type", reply->content_type);
    (void)mhd->MHD_add_response_header(response, "Cache-Control",
                                       reply->cache_control == NULL ? "no-store"
                                                                    : reply->cache_control);
    (void)mhd->MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    for (size_t i = 0; i < reply->header_count; i++)
        (void)mhd->MHD_add_response_header(response, reply->headers[i].name,
                                           reply->headers[i].value);
    if (x->close || atomic_load(&x->http->service->stopping))
        (void)mhd->MHD_add_response_header(response, "Connection", "close");
}

static enum MHD_Result queue_response(exchange *x, struct MHD_Response *response)
{
    const mhd_library *mhd = &x->http->mhd;
    if (response == NULL)
        return MHD_NO;
    add_headers(x, response);
    x->step = STEP_DONE;
    enum MHD_Result result =
        mhd->MHD_queue_response(x->connection, x->call.response.status, response);
    mhd->MHD_destroy_response(response);
    return result;
}

/* What an answer rests on may be lost meanwhile: then there is none. */
static bool may_answer(const cx_http *http)
{
    const cx_service_options *options = &http->service->options;
    return options->may_answer == NULL || options->may_answer(options->may_answer_arg);
}

/* The body stays with the exchange, which outlives the sending of it. */
static enum MHD_Result send_answer(exchange *x)
{
    cx_buf *body = &x->call.response.body;
    release_body(x);
    if (!may_answer(x->http))
        return MHD_NO;
    enter_phase(x->http, x->connection, PHASE_ANSWER);
    /* The problem document itself could not be written: close without an answer. */
    if (body->failed)
        return MHD_NO;
    return queue_response(x, x->http->mhd.MHD_create_response_from_buffer(body->size, body->data,
                                                                          MHD_RESPMEM_PERSISTENT));
}

/* --- streamed bodies -------------------------------------------------------------------------- */

static void pause_stream(void *arg)
{
    stream *s = arg;
    s->http->mhd.MHD_suspend_connection(s->connection);
}

static void wake_stream(void *arg)
{
    stream *s = arg;
    s->http->mhd.MHD_resume_connection(s->connection);
}

static ssize_t read_stream(void *arg, uint64_t offset, char *data, size_t size)
{
    stream *s = arg;
    size_t got = 0;
    (void)offset;
    if (!may_answer(s->http))
        return MHD_CONTENT_READER_END_OF_STREAM;
    switch (s->source->read(s->source, data, size, &got, pause_stream, s)) {
    case CX_STREAM_BYTES: return (ssize_t)got;
    case CX_STREAM_WAIT: return 0;
    default: return MHD_CONTENT_READER_END_OF_STREAM;
    }
}

static void close_stream(void *arg)
{
    stream *s = arg;
    s->source->leave(s->source);
    cx_alloc_free(s->http->alloc, s, sizeof *s);
}

static cx_status open_stream(exchange *x, stream **out, cx_err *err)
{
    cx_http *http = x->http;
    stream *s = cx_alloc_new(http->alloc, sizeof *s);
    if (s == NULL)
        return cx_fail_nomem(err);
    *s = (stream){.http = http, .connection = x->connection};
    cx_status status = x->call.response.stream(&x->call, wake_stream, s, &s->source, err);
    if (cx_failed(status))
        cx_alloc_free(http->alloc, s, sizeof *s);
    else
        *out = s;
    return status;
}

static enum MHD_Result answer_stream(exchange *x)
{
    cx_err err;
    stream *s = NULL;
    if (cx_failed(open_stream(x, &s, &err))) {
        cx_call_fail(&x->call, &err);
        return send_answer(x);
    }
    struct MHD_Response *response = x->http->mhd.MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, 4096, read_stream, s, close_stream);
    if (response == NULL)
        close_stream(s);
    enter_phase(x->http, x->connection, PHASE_HANDLER);
    return queue_response(x, response);
}

/* --- other protocols -------------------------------------------------------------------------- */

typedef struct joined {
    cx_http *http;
    struct MHD_UpgradeResponseHandle *handle;
} joined;

static void end_joined(void *arg)
{
    joined *j = arg;
    (void)j->http->mhd.MHD_upgrade_action(j->handle, MHD_UPGRADE_ACTION_CLOSE);
    cx_alloc_free(j->http->alloc, j, sizeof *j);
}

/* The answer was sent.  Bytes that came with the request are of a client that did not wait for it:
 * they are not in the socket any more, so that connection ends. */
static void on_upgraded(void *arg, struct MHD_Connection *of, void *context, const char *extra,
                        size_t extra_size, MHD_socket socket,
                        struct MHD_UpgradeResponseHandle *handle)
{
    cx_http *http = arg;
    const cx_service_options *options = &http->service->options;
    joined *j = extra_size != 0 ? NULL : cx_alloc_new(http->alloc, sizeof *j);
    (void)of;
    (void)context;
    (void)extra;
    if (j == NULL) {
        (void)http->mhd.MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
        return;
    }
    *j = (joined){http, handle};
    options->join(options->join_arg, socket, end_joined, j);
}

static enum MHD_Result answer_join(exchange *x)
{
    cx_http *http = x->http;
    struct MHD_Response *response = http->mhd.MHD_create_response_for_upgrade(on_upgraded, http);
    enter_phase(http, x->connection, PHASE_HANDLER);
    if (x->counted) {
        cx_gauge_add(&http->service->metrics.in_flight, -1);
        cx_gauge_add(&http->in_flight, -1);
    }
    x->counted = false;
    return queue_response(x, response);
}

/* --- working ---------------------------------------------------------------------------------- */

/* M1, M2 */
static void run_pool_job(cx_pool_job *job, cx_worker *worker)
{
    exchange *x = (exchange *)job;
    cx_service_handle(&x->call, worker);
    leave_sender(x);
    x->step = STEP_DONE;
    x->http->mhd.MHD_resume_connection(x->connection);
}

/* No sender may have more than half of the places, so that one cannot keep out the others. */
static bool enter_sender(exchange *x)
{
    cx_http *http = x->http;
    cx_digest digest = cx_digest_of(cx_bytes_from(x->call.token.id, strlen(x->call.token.id)));
    x->sender = digest.bytes[0];
    x->with_sender = true;
    return atomic_fetch_add(&http->senders[x->sender], 1) < (http->options.intake_places + 1) / 2;
}

static enum MHD_Result answer_busy(exchange *x, unsigned status, const char *why)
{
    cx_metrics *metrics = &x->http->service->metrics;
    cx_counter_add(status == 429 ? &metrics->rejected_slow : &metrics->rejected_full, 1);
    cx_service_reject_busy(&x->call, status, why);
    return send_answer(x);
}

static enum MHD_Result submit_to_pool(exchange *x)
{
    cx_http *http = x->http;
    bool writes = x->call.route->thread == CX_THREAD_WRITE;
    cx_pool *pool = writes ? http->intake : http->reads;
    if (writes && !enter_sender(x)) {
        leave_sender(x);
        return answer_busy(x, 429,
                           "too many requests with this token are in progress; wait for an answer");
    }
    if (!cx_pool_reserve(pool)) {
        leave_sender(x);
        return answer_busy(
            x, 503,
            atomic_load(&http->service->stopping)
                ? "the server is shutting down; nothing of this request was stored"
                : "too many requests are waiting; nothing of this request was stored");
    }
    enter_phase(http, x->connection, PHASE_HANDLER);
    x->step = STEP_HANDLER;
    x->job.run = run_pool_job;
    http->mhd.MHD_suspend_connection(x->connection);
    cx_pool_submit(pool, &x->job);
    return MHD_YES;
}

static enum MHD_Result handle_request(exchange *x)
{
    cx_call *call = &x->call;
    call->request.body = cx_bytes_from(x->body, x->body_size);
    if (call->route->thread != CX_THREAD_ANY)
        return submit_to_pool(x);
    cx_worker worker;
    cx_worker_init(&worker, x->http->service);
    cx_service_handle(call, &worker);
    cx_worker_done(&worker);
    if (call->response.joins)
        return answer_join(x);
    return call->response.stream != NULL ? answer_stream(x) : send_answer(x);
}

/* --- headers ---------------------------------------------------------------------------------- */

static cx_str header(exchange *x, const char *name)
{
    const char *value =
        x->http->mhd.MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
    return value == NULL ? (cx_str){NULL, 0} : cx_str_z(value);
}

static enum MHD_Result count_header(void *arg, enum MHD_ValueKind kind, const char *key,
                                    const char *value)
{
    size_t *total = arg;
    (void)kind;
    *total += strlen(key) + (value == NULL ? 0 : strlen(value)) + 4;
    return MHD_YES;
}

/* The library has seen to it that it is a number; one that is too large for us is "too large". */
static uint64_t length_of(cx_str text)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.size && text.data[i] >= '0' && text.data[i] <= '9'; i++) {
        if (value > UINT64_MAX / 16)
            return UINT64_MAX;
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    return value;
}

/*
 * The framing of a message must be unambiguous (RFC 9112 §6.3): a proxy that parses it differently
 * could let a second request hide in the body of the first.
 */
typedef struct framing {
    const char *length, *coding; /* the first of each */
    size_t hosts;
    const char *fault;
} framing;

/* Compares ASCII letters case-insensitively; `lower_ascii` is in lower case. */
static bool equals_nocase(const char *text, const char *lower_ascii)
{
    for (; *lower_ascii != '\0'; text++, lower_ascii++) {
        char c = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
        if (c != *lower_ascii)
            return false;
    }
    return *text == '\0';
}

static enum MHD_Result check_framing(void *arg, enum MHD_ValueKind kind, const char *key,
                                     const char *value)
{
    framing *f = arg;
    (void)kind;
    if (value == NULL)
        value = "";
    if (equals_nocase(key, "content-length")) {
        if (f->length != NULL && strcmp(f->length, value) != 0)
            f->fault = "the request has two Content-Length headers that differ";
        for (const char *at = value; *at != '\0'; at++)
            if (*at < '0' || *at > '9')
                f->fault = "Content-Length: expected one decimal number";
        if (*value == '\0')
            f->fault = "Content-Length: expected one decimal number";
        f->length = value;
    } else if (equals_nocase(key, "transfer-encoding")) {
        if (f->coding != NULL)
            f->fault = "the request has two Transfer-Encoding headers";
        else if (!equals_nocase(value, "chunked"))
            f->fault = "Transfer-Encoding: expected chunked";
        f->coding = value;
    } else if (equals_nocase(key, "host") && ++f->hosts > 1) {
        f->fault = "the request has two Host headers";
    }
    if (f->length != NULL && f->coding != NULL)
        f->fault = "the request has Content-Length and Transfer-Encoding; send one of them";
    return MHD_YES;
}

static void read_address(exchange *x)
{
    const union MHD_ConnectionInfo *info =
        x->http->mhd.MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    cx_request *request = &x->call.request;
    if (info != NULL && info->client_addr != NULL)
        request->loopback = cx_tcp_network(info->client_addr, request->address) &&
                            !x->http->service->options.relayed;
}

static void read_headers(exchange *x, const char *method)
{
    cx_request *request = &x->call.request;
    request->method = cx_str_z(method);
    read_address(x);
    request->authorization = header(x, "Authorization");
    request->content_type = header(x, "Content-Type");
    request->content_encoding = header(x, "Content-Encoding");
    request->last_event_id = header(x, "Last-Event-ID");
    request->if_none_match = header(x, "If-None-Match");
    request->accept_encoding = header(x, "Accept-Encoding");
    request->cookie = header(x, "Cookie");
    request->host = header(x, "Host");
    request->origin = header(x, "Origin");
    request->fetch_site = header(x, "Sec-Fetch-Site");
    request->page_header = header(x, "X-Cortex-Page");
    request->mcp_version = header(x, "MCP-Protocol-Version");
    request->mcp_method = header(x, "Mcp-Method");
    request->mcp_name = header(x, "Mcp-Name");
    request->upgrade = header(x, "Upgrade");
    request->has_length = header(x, "Transfer-Encoding").data == NULL;
    request->length = request->has_length ? length_of(header(x, "Content-Length")) : 0;
}

/* What may be thrown away to answer in peace; more than that, and the connection is closed. */
static uint64_t discard_max(const exchange *x)
{
    return 2 * (uint64_t)x->http->service->body_max;
}

static enum MHD_Result begin_request(exchange *x, const char *method)
{
    cx_http *http = x->http;
    cx_call *call = &x->call;
    size_t header_bytes = 0;
    x->counted = true;
    cx_gauge_add(&http->service->metrics.in_flight, 1);
    cx_gauge_add(&http->in_flight, 1);
    enter_phase(http, x->connection, PHASE_BODY);
    read_headers(x, method);
    (void)http->mhd.MHD_get_connection_values(x->connection, MHD_HEADER_KIND, count_header,
                                              &header_bytes);
    framing how = {NULL, NULL, 0, NULL};
    (void)http->mhd.MHD_get_connection_values(x->connection, MHD_HEADER_KIND, check_framing, &how);
    if (how.fault != NULL) {
        const cx_problem problem = {
            .status = 400, .type = "invalid-request", .detail = cx_str_z(how.fault)};
        x->close = true;
        cx_call_problem(call, &problem);
        return send_answer(x); /* what follows has no known end, so none of it is read */
    }
    if (header_bytes > HEADER_BYTES_MAX) {
        const cx_problem problem = {.status = 431,
                                    .type = "too-large",
                                    .detail = CX_STR("the request header is too long"),
                                    .max_bytes = HEADER_BYTES_MAX};
        cx_call_problem(call, &problem);
    } else {
        cx_service_begin(call);
    }
    x->step = call->response.status == 0 ? STEP_BODY : STEP_DISCARD;
    /* A client that sent Expect, or would send far too much, is answered before the body. */
    if (x->step == STEP_DISCARD &&
        (header(x, "Expect").data != NULL || call->request.length > discard_max(x)))
        return send_answer(x);
    return MHD_YES;
}

/* --- bodies ----------------------------------------------------------------------------------- */

/* M4 */
static bool reserve_body_space(exchange *x, size_t more)
{
    cx_http *http = x->http;
    size_t needed = x->body_size + more, wanted = x->body_capacity * 2;
    uint64_t declared = x->call.request.length;
    if (needed <= x->body_capacity)
        return true;
    if (wanted < BODY_STEP)
        wanted = BODY_STEP;
    if (declared >= needed && wanted > declared)
        wanted = (size_t)declared;
    if (wanted < needed)
        wanted = needed;
    size_t grown = wanted - x->body_capacity;
    if (atomic_fetch_add(&http->body_used, grown) + grown > http->options.body_memory) {
        (void)atomic_fetch_sub(&http->body_used, grown);
        return false;
    }
    uint8_t *body = http->alloc->resize(http->alloc->ctx, x->body, x->body_capacity, wanted);
    if (body == NULL) {
        (void)atomic_fetch_sub(&http->body_used, grown);
        return false;
    }
    cx_gauge_add(&http->service->metrics.body_memory, (int64_t)grown);
    x->body = body;
    x->body_capacity = wanted;
    return true;
}

static void discard_from_now(exchange *x)
{
    release_body(x);
    x->step = STEP_DISCARD;
}

static enum MHD_Result receive_body(exchange *x, const char *data, size_t size)
{
    cx_http *http = x->http;
    x->received += size;
    cx_counter_add(&http->service->metrics.body_bytes, size);
    if (x->step == STEP_DISCARD)
        return x->received > discard_max(x) ? MHD_NO : MHD_YES;
    const bool ignored = !x->call.route->has_body;
    if (x->received > (ignored ? CX_BODY_IGNORED_MAX : http->service->body_max)) {
        cx_service_too_large(&x->call);
        discard_from_now(x);
    } else if (ignored) {
        return MHD_YES;
    } else if (!reserve_body_space(x, size)) {
        cx_counter_add(&http->service->metrics.rejected_full, 1);
        cx_service_reject_busy(
            &x->call, 503,
            "too many request bodies are in progress; nothing of this request was stored");
        discard_from_now(x);
    } else {
        memcpy(x->body + x->body_size, data, size);
        x->body_size += size;
    }
    return MHD_YES;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *handle, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_size, void **context)
{
    exchange *x = *context;
    (void)arg;
    (void)handle;
    (void)url;
    (void)version;
    if (x == NULL)
        return MHD_NO;
    if (x->step == STEP_NEW)
        return begin_request(x, method);
    if (*data_size != 0) {
        enum MHD_Result result = receive_body(x, data, *data_size);
        *data_size = 0;
        return result;
    }
    switch (x->step) {
    case STEP_BODY: return handle_request(x);
    case STEP_DISCARD:
    case STEP_DONE: return send_answer(x);
    default: return MHD_NO;
    }
}

/* Targets and queries are decoded by us, once. */
static size_t keep_target_escapes(void *arg, struct MHD_Connection *handle, char *text)
{
    (void)arg;
    (void)handle;
    return strlen(text);
}

/* --- starting and ending ---------------------------------------------------------------------- */

static cx_status start_daemon(cx_http *http, cx_err *err)
{
    const cx_http_options *options = &http->options;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    if (http->service->options.join != NULL)
        flags |= MHD_ALLOW_UPGRADE;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->tls_cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->tls_key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0,
         (void *)(uintptr_t) "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
        {MHD_OPTION_END, 0, NULL}};
    if (options->tls_cert == NULL) {
        tls[0].option = MHD_OPTION_END;
    } else {
        flags |= MHD_USE_TLS;
        if (cx_library_is_linked())
            return cx_fail(err, CX_E_UNSUPPORTED,
                           "this program is one file and has no TLS of its own: serve on loopback "
                           "behind a TLS proxy, or use the packages");
        if (http->mhd.MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
            return cx_fail(err, CX_E_UNSUPPORTED, "this libmicrohttpd was built without TLS");
    }
    /* Our own limits come first; this one ends connections that neither send nor read. */
    unsigned quiet_s = options->answer_ms / 1000 + 1;
    http->daemon = http->mhd.MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, http, MHD_OPTION_LISTEN_SOCKET, options->socket,
        MHD_OPTION_THREAD_POOL_SIZE, options->io_threads < 2 ? 0u : options->io_threads,
        MHD_OPTION_CONNECTION_LIMIT, options->connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        options->connections_per_address, MHD_OPTION_CONNECTION_TIMEOUT, quiet_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, (void *)http, MHD_OPTION_NOTIFY_CONNECTION, on_connection, (void *)http,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, (void *)http, MHD_OPTION_UNESCAPE_CALLBACK,
        keep_target_escapes, (void *)http, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY, tls,
        MHD_OPTION_END);
    if (http->daemon == NULL)
        return cx_fail(err, CX_E_IO, "the HTTP server cannot be started%s",
                       options->tls_cert == NULL
                           ? ""
                           : "; check that certificate and key are in PEM and belong together");
    return CX_SUCCESS;
}

static cx_status start_listening(cx_http *http, cx_err *err)
{
    cx_metrics *metrics = &http->service->metrics;
    CX_TRY(load_library(&http->mhd, err));
    CX_TRY(cx_pool_open(http->service, http->options.intake_threads, http->options.intake_places,
                        &metrics->queued_intake, &http->intake, err));
    CX_TRY(cx_pool_open(http->service, http->options.read_threads, http->options.read_places,
                        &metrics->queued_reads, &http->reads, err));
    if (!cx_thread_start(&http->sweeper, run_sweeper, http))
        return cx_fail(err, CX_E_BUSY, "a thread cannot be started");
    return start_daemon(http, err);
}

cx_status cx_http_open(const cx_http_options *options, cx_http **out, cx_err *err)
{
    cx_http *http = cx_alloc_zeroed(options->service->alloc, 1, sizeof *http);
    if (http == NULL) {
        cx_tcp_close(options->socket);
        return cx_fail_nomem(err);
    }
    http->options = *options;
    http->service = options->service;
    http->alloc = options->service->alloc;
    cx_lock_init(&http->lock);
    cx_status status = start_listening(http, err);
    if (cx_failed(status))
        cx_http_close(http, 0);
    else
        *out = http;
    return status;
}

static void wait_for_answers(cx_http *http, uint32_t grace_ms)
{
    uint64_t end = now_ns(http) + grace_ms * UINT64_C(1000000);
    while (cx_gauge(&http->in_flight) != 0 && now_ns(http) < end)
        cx_thread_sleep_ms(5);
}

/* A client that is still sending has no answer yet, so nothing acknowledged is lost. */
static void close_all_connections(cx_http *http)
{
    cx_lock_enter(&http->lock);
    for (connection *c = http->connections; c != NULL; c = c->next)
        cx_tcp_cut(c->socket);
    cx_lock_leave(&http->lock);
}

static void stop_daemon(cx_http *http, uint32_t grace_ms)
{
    /* Stops accepting; the descriptor stays open until the library closes it.  Its own
     * MHD_quiesce_daemon (0.9.75) ends the process when one of its threads is quicker than it to
     * take the socket out of that thread's epoll set. */
    cx_tcp_stop_listening(http->options.socket);
    if (http->service->feed != NULL)
        cx_live_feed_end(http->service->feed);
    if (http->service->runs != NULL)
        cx_runs_end(http->service->runs);
    wait_for_answers(http, grace_ms);
}

void cx_http_close(cx_http *http, uint32_t grace_ms)
{
    if (http == NULL)
        return;
    atomic_store(&http->service->stopping, true);
    if (http->daemon != NULL)
        stop_daemon(http, grace_ms);
    /* M1: from here on nothing is or will be suspended: the pools reject requests that arrive on
     * connections that are still open. */
    cx_pool_join(http->intake);
    cx_pool_join(http->reads);
    if (http->daemon != NULL) {
        wait_for_answers(http, grace_ms < 1000 ? grace_ms : 1000);
        close_all_connections(http);
        http->mhd.MHD_stop_daemon(http->daemon); /* closes the socket */
    } else {
        cx_tcp_close(http->options.socket);
    }
    cx_pool_close(http->intake);
    cx_pool_close(http->reads);
    cx_lock_enter(&http->lock);
    http->sweeping_ends = true;
    cx_lock_wake(&http->lock);
    cx_lock_leave(&http->lock);
    cx_thread_join(&http->sweeper);
    cx_lock_done(&http->lock);
    cx_alloc_free(http->alloc, http, sizeof *http);
}
