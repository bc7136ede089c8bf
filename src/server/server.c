/*
 * server.c - starts the parts of the server, and stops them in the right order.
 */
#include "server/server.h"

#include <stdio.h>

#include "base/api.h"
#include "server/grpc_listener.h"
#include "server/http_mhd.h"
#include "server/feed/live_feed.h"
#include "server/service.h"

#define PEM_MAX ((size_t)1 << 20)
/* Descriptors for the log, the databases and whatever else is open. */
#define DESCRIPTORS_RESERVED 256
/* The index follows the ledger asynchronously; at shutdown it has this long to catch up. */
#define FEED_WAIT_MS 5000

struct cx_server {
    const cx_alloc *alloc;
    cx_server_options options;
    cx_service *service;
    cx_http *http;
    cx_http *otlp;         /* NULL = none */
    cx_grpc *grpc;         /* likewise */
    cx_alerting *alerting; /* NULL = without a recorder */
    bool feeds;
    cx_buf cert, key; /* PEM text */
    int socket;       /* -1 = owned by the HTTP listener, or not open */
    int otlp_socket;  /* likewise */
};

static unsigned value_or_default(unsigned given, unsigned otherwise)
{
    return given == 0 ? otherwise : given;
}

static unsigned clamp(unsigned value, unsigned min, unsigned max)
{
    return value < min ? min : value > max ? max : value;
}

cx_status cx_server_check_reach(const cx_tcp_address *address, bool tls, bool insecure, cx_err *err)
{
    if (address->is_loopback || insecure || tls)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_USAGE, "NotLoopback", CX_NO_OFFSET,
                      "%s is reachable by other machines, and tokens would be sent unencrypted; "
                      "give a certificate and its key, or allow it with --insecure",
                      address->host);
}

static cx_status check_reach(const cx_server_options *options, const cx_tcp_address *address,
                             cx_err *err)
{
    return cx_server_check_reach(address, options->tls_cert_path != NULL, options->insecure, err);
}

/* A certificate does not help: this listener has no TLS. */
static cx_status check_grpc_reach(const cx_server_options *options, cx_err *err)
{
    if (!options->grpc || options->grpc_address.is_loopback || options->insecure)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_USAGE, "NotLoopback", CX_NO_OFFSET,
                      "%s is reachable by other machines, and OTLP over gRPC is not encrypted; "
                      "listen on loopback, or allow it with --insecure",
                      options->grpc_address.host);
}

static cx_status check_addresses(const cx_server_options *options, cx_err *err)
{
    if ((options->tls_cert_path == NULL) != (options->tls_key_path == NULL))
        return cx_fail(err, CX_E_USAGE, "certificate and key must be given together");
    CX_TRY(check_reach(options, &options->address, err));
    CX_TRY(check_grpc_reach(options, err));
    return options->otlp ? check_reach(options, &options->otlp_address, err) : CX_SUCCESS;
}

static cx_status read_pem(cx_server *server, const char *path, cx_buf *out, cx_err *err)
{
    if (path == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_io_read_file(server->options.io, path, PEM_MAX, out, err));
    return cx_buf_z(out) == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* Recording goes on without an index; a person has to know why questions are not answered. */
static void log_index_change(void *arg, const cx_err *failure)
{
    cx_service *service = arg;
    if (failure == NULL) {
        cx_service_log(service, "the index can be reached again, and catches up");
        return;
    }
    cx_service_log(service,
                   "the index cannot be reached: %s. To do: %s. It is tried again every second; "
                   "until then traces are recorded, and searches and lists answer 503",
                   failure->message, cx_index_advice(service->index_where, failure));
}

static cx_status open_service(cx_server *server, cx_err *err)
{
    const cx_server_options *options = &server->options;
    const cx_service_options wanted = {
        .alloc = server->alloc,
        .io = options->io,
        .recorder = options->recorder,
        .home_path = options->home_path,
        .token_path =
            options->address.is_loopback && options->relayed_port == 0 ? options->token_path : NULL,
        .index_where = options->index_where,
        .body_max = options->body_max,
        .runs = options->runs,
        .watch = options->watch,
        .part_id = options->part_id,
        .objects = options->objects,
        .tls = options->tls_cert_path != NULL,
        .open_signed = options->open_signed,
        .open_requests = options->open_requests,
        .open_events = options->open_events,
        .port = options->relayed_port == 0 ? options->address.port : options->relayed_port,
        .relayed = options->relayed_port != 0,
        .may_answer = options->may_answer,
        .may_answer_arg = options->may_answer_arg,
        .join = options->join,
        .join_arg = options->join_arg,
        .mcp_writes = options->mcp_writes,
        .user_home = options->user_home,
        .program = options->program,
        .names = options->names,
        .name_count = options->name_count,
        .file_path = options->file_path,
        .only_lattice = options->only_lattice,
        .only_token = options->only_token,
        .log = options->log,
        .log_arg = options->log_arg,
    };
    CX_TRY(cx_service_open(&wanted, &server->service, err));
    if (options->recorder == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_recorder_feed_begin(options->recorder, server->service->index_where, log_index_change,
                                  server->service, err));
    server->feeds = true;
    return cx_live_feed_open(server->service, &server->service->feed, err);
}

/* What both listeners are opened with. */
static cx_status choose_http(cx_server *server, cx_http_options *out, cx_err *err)
{
    const cx_server_options *options = &server->options;
    unsigned cores = cx_thread_cores();
    unsigned connections = value_or_default(options->connections, 16384);
    uint64_t descriptors = cx_tcp_descriptors((uint64_t)connections + DESCRIPTORS_RESERVED);
    if (descriptors < DESCRIPTORS_RESERVED + 16)
        return cx_fail(err, CX_E_LIMIT,
                       "the limit of %llu file descriptors is too low; raise it with ulimit -n",
                       (unsigned long long)descriptors);
    if (connections > descriptors - DESCRIPTORS_RESERVED)
        connections = (unsigned)(descriptors - DESCRIPTORS_RESERVED);
    *out = (cx_http_options){
        .service = server->service,
        .otlp_too = options->relayed_port != 0,
        .tls_cert = options->tls_cert_path == NULL ? NULL : (const char *)server->cert.data,
        .tls_key = options->tls_cert_path == NULL ? NULL : (const char *)server->key.data,
        .io_threads = value_or_default(options->io_threads, clamp(cores, 2, 4)),
        .intake_threads = value_or_default(options->workers, clamp(cores * 4, 8, 64)),
        .read_threads = value_or_default(options->readers, clamp(cores, 2, 8)),
        .connections = connections,
        .connections_per_address = options->connections_per_address,
        .header_ms = value_or_default(options->header_ms, 30000),
        .body_ms = value_or_default(options->body_ms, 120000),
        .answer_ms = value_or_default(options->answer_ms, 300000),
        .body_memory = options->body_memory == 0 ? (size_t)256 << 20 : options->body_memory,
        .intake_places = value_or_default(options->queue, 1024),
        .read_places = 1024,
    };
    return CX_SUCCESS;
}

static cx_status open_listener(cx_http_options *http, cx_tcp_address *address, cx_http **out,
                               cx_err *err)
{
    /* On loopback all clients, a proxy included, have the same address. */
    if (http->connections_per_address == 0 && !address->is_loopback)
        http->connections_per_address = 1024;
    return cx_http_open(http, out, err);
}

/* Another collector may use the default address: then there is no OTLP listener, unless the user
 * requested one. */
static cx_status listen_for_otlp(cx_server *server, cx_err *err)
{
    cx_server_options *options = &server->options;
    cx_tcp_address *address = &options->otlp_address;
    if (!options->otlp)
        return CX_SUCCESS;
    cx_status status = cx_tcp_listen(address, &server->otlp_socket, err);
    if (status.code == CX_E_BUSY && !options->otlp_must) {
        cx_service_log(server->service, "OTLP is not received: %s", err->message);
        return CX_SUCCESS;
    }
    CX_TRY(status);
    bool tls = options->tls_cert_path != NULL && !address->is_loopback;
    (void)snprintf(server->service->otlp_url, sizeof server->service->otlp_url, "%s://%s%s%s:%u",
                   tls ? "https" : "http", address->is_v6 ? "[" : "", address->host,
                   address->is_v6 ? "]" : "", (unsigned)address->port);
    return CX_SUCCESS;
}

static cx_status open_otlp(cx_server *server, cx_http_options http, cx_err *err)
{
    const cx_server_options *options = &server->options;
    if (server->otlp_socket < 0)
        return CX_SUCCESS;
    http.otlp = true;
    http.otlp_open = options->otlp_address.is_loopback && !options->otlp_tokens;
    http.read_threads = 1; /* it has nothing to read */
    if (options->otlp_address.is_loopback)
        http.tls_cert = http.tls_key = NULL;
    http.socket = server->otlp_socket;
    server->otlp_socket = -1;
    return open_listener(&http, &server->options.otlp_address, &server->otlp, err);
}

static cx_status open_grpc_at(cx_server *server, const cx_http_options *http, cx_err *err)
{
    cx_server_options *options = &server->options;
    cx_tcp_address *address = &options->grpc_address;
    cx_grpc_options grpc = {
        .service = server->service,
        .open = address->is_loopback && !options->otlp_tokens,
        .threads = http->intake_threads,
        .connections = http->connections,
        .connections_per_address = http->connections_per_address,
        .header_ms = http->header_ms,
        .body_ms = http->body_ms,
        .answer_ms = http->answer_ms,
        .body_memory = http->body_memory,
        .places = http->intake_places,
    };
    if (grpc.connections_per_address == 0 && !address->is_loopback)
        grpc.connections_per_address = 1024;
    CX_TRY(cx_tcp_listen(address, &grpc.socket, err));
    return cx_grpc_open(&grpc, &server->grpc, err);
}

/* Likewise, and it also needs a library that may be missing. */
static cx_status open_grpc(cx_server *server, const cx_http_options *http, cx_err *err)
{
    if (!server->options.grpc)
        return CX_SUCCESS;
    cx_status status = open_grpc_at(server, http, err);
    if (server->options.grpc_must || (status.code != CX_E_BUSY && status.code != CX_E_UNSUPPORTED))
        return status;
    cx_service_log(server->service, "OTLP over gRPC is not received: %s", err->message);
    return CX_SUCCESS;
}

/* Both sockets first: from the first answer on, the page is told where OTLP is received. */
static cx_status open_http(cx_server *server, cx_err *err)
{
    cx_http_options http;
    CX_TRY(choose_http(server, &http, err));
    CX_TRY(listen_for_otlp(server, err));
    cx_http_options otlp = http;
    http.socket = server->socket;
    server->socket = -1;
    CX_TRY(open_listener(&http, &server->options.address, &server->http, err));
    CX_TRY(open_otlp(server, otlp, err));
    return open_grpc(server, &otlp, err);
}

static cx_status open_all(cx_server *server, cx_err *err)
{
    CX_TRY(check_addresses(&server->options, err));
    CX_TRY(read_pem(server, server->options.tls_cert_path, &server->cert, err));
    CX_TRY(read_pem(server, server->options.tls_key_path, &server->key, err));
    /* The port is known before anything is served: cookies are named after it. */
    CX_TRY(cx_tcp_listen(&server->options.address, &server->socket, err));
    CX_TRY(cx_alerting_check(&server->options.alerting, err));
    CX_TRY(open_service(server, err));
    if (server->options.recorder != NULL)
        CX_TRY(
            cx_alerting_open(server->service, &server->options.alerting, &server->alerting, err));
    return open_http(server, err);
}

cx_status cx_server_open(const cx_server_options *options, cx_server **out, cx_err *err)
{
    const cx_alloc *alloc = options->alloc == NULL ? cx_alloc_default() : options->alloc;
    cx_server *server = cx_alloc_zeroed(alloc, 1, sizeof *server);
    if (server == NULL)
        return cx_fail_nomem(err);
    server->alloc = alloc;
    server->options = *options;
    server->socket = server->otlp_socket = -1;
    if (server->options.io == NULL)
        server->options.io = cx_io_system();
    cx_buf_init(&server->cert, alloc);
    cx_buf_init(&server->key, alloc);
    cx_status status = open_all(server, err);
    if (cx_failed(status))
        cx_server_close(server, 0);
    else
        *out = server;
    return status;
}

const cx_tcp_address *cx_server_address(const cx_server *server)
{
    return &server->options.address;
}

const cx_tcp_address *cx_server_otlp_address(const cx_server *server)
{
    return server->otlp == NULL ? NULL : &server->options.otlp_address;
}

const cx_tcp_address *cx_server_grpc_address(const cx_server *server)
{
    return server->grpc == NULL ? NULL : &server->options.grpc_address;
}

void cx_server_close(cx_server *server, uint32_t grace_ms)
{
    cx_err err;
    if (server == NULL)
        return;
    cx_http_close(server->http, grace_ms);
    cx_http_close(server->otlp, grace_ms);
    cx_grpc_close(server->grpc, grace_ms);
    if (server->socket >= 0)
        cx_tcp_close(server->socket);
    cx_alerting_close(server->alerting);
    if (server->otlp_socket >= 0)
        cx_tcp_close(server->otlp_socket);
    if (server->feeds) {
        uint32_t wait_ms = grace_ms < FEED_WAIT_MS ? grace_ms : FEED_WAIT_MS;
        if (wait_ms != 0 &&
            cx_failed(cx_recorder_feed_wait(server->options.recorder, wait_ms, &err)))
            cx_service_log(server->service,
                           "the index lags the ledger (%s); it continues at the next start",
                           err.message);
        cx_recorder_feed_end(server->options.recorder);
    }
    cx_service_close(server->service);
    cx_buf_done(&server->cert);
    cx_buf_done(&server->key);
    cx_alloc_free(server->alloc, server, sizeof *server);
}
