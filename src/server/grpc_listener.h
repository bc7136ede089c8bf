/*
 * grpc_listener.h - OTLP over gRPC: connections, calls and answers (docs/formats/otlp.md §6).
 *
 * One thread does all sending and receiving, for all connections; exports are stored by a pool, by
 * the handlers that OTLP/HTTP uses.  There is no TLS.
 */
#ifndef CX_SERVER_GRPC_LISTENER_H
#define CX_SERVER_GRPC_LISTENER_H

#include "os/api.h"
#include "server/service.h"

typedef struct cx_grpc cx_grpc;

typedef struct cx_grpc_options {
    cx_service *service;
    bool open;            /* takes exports without a token */
    int socket;           /* listening; the listener's from now on, also when opening fails */
    unsigned threads;     /* that store */
    unsigned connections; /* at once, in all */
    unsigned connections_per_address;       /* 0 = no limit */
    uint32_t header_ms, body_ms, answer_ms; /* as cx_http_options */
    size_t body_memory;                     /* bytes of all messages at once */
    size_t places;                          /* calls that may wait */
} cx_grpc_options;

/* CX_E_UNSUPPORTED "LibraryMissing". */
CX_RESULT cx_grpc_open(const cx_grpc_options *options, cx_grpc **out, cx_err *err);
/* Accepts no new connections and no new calls (GOAWAY); lets calls in progress finish, for at most
 * `grace_ms`; then closes everything.  A write that a handler has started is always completed. */
void cx_grpc_close(cx_grpc *grpc, uint32_t grace_ms); /* NULL is fine */

#endif
