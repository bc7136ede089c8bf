/*
 * server.h - serves a data directory over HTTP, from start to graceful shutdown.
 *
 *     cx_server_open    listens, feeds the index, answers
 *     cx_server_close   finishes requests in progress, brings the index up to date if time allows
 */
#ifndef CX_SERVER_SERVER_H
#define CX_SERVER_SERVER_H

#include "os/api.h"
#include "recorder/api.h"
#include "server/alerts/alerting.h"
#include "server/token.h"

typedef struct cx_runs cx_runs;             /* server/feed/runs.h */
typedef struct cx_part_watch cx_part_watch; /* server/feed/part_watch.h */

typedef struct cx_server cx_server;

typedef struct cx_object_store cx_object_store; /* stores/object_store.h */

typedef struct cx_server_options {
    const cx_alloc *alloc; /* NULL = default */
    const cx_io *io;       /* NULL = system */
    cx_recorder *recorder; /* open, over an open data directory; outlives the server */
    const char *home_path;
    const char *token_path;   /* of a file with a token, shown on loopback only; NULL = none */
    const char *const *names; /* by which browsers may call it (cx_origin_host) */
    size_t name_count;
    const char *file_path; /* instead of recorder and data directory: serves this one file, */
    const cx_lattice *only_lattice; /* which was opened with keep_deltas and outlives the server */
    const cx_token *only_token;     /* then: what opens it */
    cx_runs *runs;        /* of a repository; outlives the server; NULL = none is served */
    cx_part_watch *watch; /* of the fleet of a part; outlives the server; NULL = it is none */
    const char *part_id;  /* of that part; as cx_service_options */
    const cx_object_store *objects; /* likewise */
    const char *index_where;        /* NULL = HOME/cirislens.db */
    bool mcp_writes;                /* as cx_service_options, as the next two */
    const char *user_home, *program;
    cx_tcp_address address;
    bool otlp;        /* also a listener for OpenTelemetry exporters */
    bool otlp_must;   /* the user requested it: an address in use is an error */
    bool otlp_tokens; /* it needs a token on loopback, too */
    cx_tcp_address otlp_address;
    bool grpc;      /* also one for OTLP over gRPC, which has no TLS */
    bool grpc_must; /* as otlp_must; otlp_tokens is for both */
    cx_tcp_address grpc_address;
    const char *tls_cert_path, *tls_key_path; /* both or none */
    bool open_signed;                         /* signed traces need no token (cx_service_options) */
    unsigned open_requests, open_events;
    bool insecure; /* any address, without TLS */
    /* Reached through another process on this machine, whose peers clients are: none of them is
     * taken for a user of this machine.  0 = no; else the port that clients use. */
    uint16_t relayed_port;
    /* Asked before an answer is sent: false = what it rests on is lost, and it is not.  NULL = it
     * never is. */
    bool (*may_answer)(void *arg);
    void *may_answer_arg;
    /* Takes over connections that write as commands do; see cx_service_options.  NULL = none. */
    void (*join)(void *arg, int socket, void (*ended)(void *arg), void *ended_arg);
    void *join_arg;
    unsigned io_threads, workers, readers;  /* 0 = chosen */
    unsigned connections;                   /* 0 = 16384 */
    unsigned connections_per_address;       /* 0 = 1024, on loopback no limit */
    uint32_t header_ms, body_ms, answer_ms; /* 0 = 30 s, 120 s, 300 s */
    size_t body_max;                        /* 0 = 8 MiB */
    size_t body_memory;                     /* 0 = 256 MiB */
    cx_alerting_options alerting;           /* the schedule of the detectors, and where alerts go */
    uint32_t queue;                         /* writing requests that may wait; 0 = 1024 */
    void (*log)(void *arg, const char *line);
    void *log_arg;
} cx_server_options;

/* The rule for one address: CX_E_USAGE "NotLoopback" when others reach it and would send tokens
 * unencrypted. */
CX_RESULT cx_server_check_reach(const cx_tcp_address *address, bool tls, bool insecure,
                                cx_err *err);
/* CX_E_USAGE "NotLoopback": an address that others can reach needs TLS, or `insecure`. */
CX_RESULT cx_server_open(const cx_server_options *options, cx_server **out, cx_err *err);
/* With the port that was chosen. */
const cx_tcp_address *cx_server_address(const cx_server *server);
/* Of the listener for OTLP; NULL = not listening. */
const cx_tcp_address *cx_server_otlp_address(const cx_server *server);
/* Of the one for OTLP over gRPC; likewise. */
const cx_tcp_address *cx_server_grpc_address(const cx_server *server);
/* Requests under way have `grace_ms` to finish.  NULL is fine. */
void cx_server_close(cx_server *server, uint32_t grace_ms);

#endif
