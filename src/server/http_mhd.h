/*
 * http_mhd.h - HTTP: connections, requests and answers, by libmicrohttpd.
 *
 * The library is loaded at run time (os/library.h): linking it would cost every start of the
 * program two milliseconds.  Nothing outside http_mhd.c knows it.
 *
 * A few threads do all sending and receiving; handlers run in two pools, one that waits for the
 * disk and one that reads.  A slow client costs a descriptor and some kilobytes, and is
 * disconnected when a header or a body exceeds its time limit.  A request over a limit is rejected
 * before any of it is stored.
 */
#ifndef CX_SERVER_HTTP_MHD_H
#define CX_SERVER_HTTP_MHD_H

#include "server/service.h"

typedef struct cx_http cx_http;

typedef struct cx_http_options {
    cx_service *service;
    bool otlp;            /* the listener for OTLP: serves only routes that are marked `otlp` */
    bool otlp_open;       /* .. without a token */
    bool otlp_too;        /* what begins with /v1/ is for OTLP, with a token; the rest is not */
    int socket;           /* listening; the server's from now on, also when opening fails */
    const char *tls_cert; /* PEM text; NULL = no TLS */
    const char *tls_key;
    unsigned io_threads;
    unsigned intake_threads;
    unsigned read_threads;
    unsigned connections;             /* at once, in all */
    unsigned connections_per_address; /* 0 = no limit */
    uint32_t header_ms; /* a whole header after connecting, or after the answer before it */
    uint32_t body_ms;   /* a whole body after its header */
    uint32_t answer_ms; /* reading a whole answer */
    size_t body_memory; /* bytes of all bodies at once */
    size_t intake_places, read_places; /* calls that may wait */
} cx_http_options;

CX_RESULT cx_http_open(const cx_http_options *options, cx_http **out, cx_err *err);
/*
 * Accepts no new connections; ends the feed; lets requests in progress finish, for at most
 * `grace_ms`; then closes everything.  A write that a handler has started is always completed.
 */
void cx_http_close(cx_http *http, uint32_t grace_ms); /* NULL is fine */

#endif
