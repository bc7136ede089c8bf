/*
 * proxy_internal.h - shared by the files of the proxy.
 */
#ifndef CX_EGRESS_PROXY_INTERNAL_H
#define CX_EGRESS_PROXY_INTERNAL_H

#include "egress/hello.h"
#include "egress/proxy.h"
#include "egress/request.h"

#define EGRESS_LISTENERS_MAX 4
#define EGRESS_PENDING_MAX ((size_t)64 << 10) /* bytes that wait to be sent, each way */
#define EGRESS_REFUSALS_KEPT 1000             /* records after `connections_total` was reached */

struct cx_egress {
    cx_egress_options options;
    cx_egress_limits limits;
    cx_thread acceptor;
    cx_socket channel[2]; /* ours, the launcher's */
    cx_file stop[2];      /* a pipe; its write end is closed to stop */
    cx_socket listeners[EGRESS_LISTENERS_MAX];
    size_t newest;
    struct egress_slot *slots; /* limits.connections of them */
    cx_lock lock;              /* for what follows */
    size_t busy;
    uint64_t requests; /* numbers given out */
    cx_egress_totals totals;
};

typedef struct egress_slot {
    cx_egress *proxy;
    cx_thread thread;
    cx_socket client;
    bool used, done; /* guarded by the lock */
} egress_slot;

/* The other side of a connection: TCP, or TLS over it. */
typedef struct egress_peer {
    cx_socket socket;
    cx_tls *tls; /* NULL = none */
} egress_peer;

/* One connection of a client. */
typedef struct egress_connection {
    cx_egress *proxy;
    cx_socket client;
    egress_peer upstream;
    uint64_t end_ns; /* monotonic: of all of it */
    cx_egress_record record;
    cx_egress_request request;
    cx_ip addresses[CX_IP_LOOKUP_MAX];
    size_t address_count;
    const cx_egress_credential *credential;
    bool opened;   /* its record */
    bool answered; /* bytes were sent to the client */
    char error[200];
    size_t received; /* of `bytes` */
    uint8_t bytes[CX_EGRESS_HEAD_MAX + 1];
} egress_connection;

uint64_t egress_now_ns(const cx_egress *proxy);
/* Serves one client to its end, and closes it; a thread's work (connection.c). */
void egress_serve(void *slot);

/* Waits until `socket` is ready; false after the deadline or when stopped. */
bool egress_wait(const egress_connection *c, cx_socket socket, unsigned wanted, uint64_t end_ns);
/* Sends all of it to the client within the limits; false when it cannot. */
bool egress_answer(egress_connection *c, const void *data, size_t size);
/* Sets the record's error, once. */
void egress_note(egress_connection *c, const char *format, ...) CX_PRINTF(2, 3);

/* What happens to bytes on their way: false ends the connection. */
typedef bool (*egress_filter)(void *arg, cx_bytes bytes, cx_buf *out);

/* --- body.c: framing of one request and of its answer ----------------------------------------- */

typedef struct egress_body {
    cx_egress_framing framing;
    uint64_t left; /* of a length, or of a chunk */
    int state;
    size_t line, trailer; /* bytes of a line of framing, and of all trailers, so far */
    bool complete;
} egress_body;

void egress_body_init(egress_body *body, const cx_egress_request *request);
/* A filter: the body as it goes on; bytes after it are dropped. */
bool egress_body_filter(void *body, cx_bytes bytes, cx_buf *out);

typedef struct egress_head {
    cx_buf held; /* of a head that is not complete */
    bool done;   /* the final head has passed: everything else goes as it comes */
} egress_head;

/* A filter: heads of answers, without what is of one connection. */
bool egress_head_filter(void *head, cx_bytes bytes, cx_buf *out);

/* --- flow.c: bytes both ways ------------------------------------------------------------------ */

typedef struct egress_half {
    cx_buf pending;
    size_t sent; /* of pending */
    bool ended;  /* the source gives no more, or nothing more is wanted of it */
    bool shut;   /* the sink knows */
    bool more;   /* the source may have bytes that no poll tells of */
    egress_filter filter;
    void *arg;
} egress_half;

typedef struct egress_flow {
    egress_connection *connection;
    egress_half up, down;    /* to the host, to the client */
    const egress_body *body; /* of the one request; NULL: bytes go both ways until both end */
} egress_flow;

void egress_flow_init(egress_flow *flow, egress_connection *c);
void egress_flow_done(egress_flow *flow);
/* Moves bytes until both sides have ended, or something ends it; `start` are bytes of the client
 * that were received before. */
void egress_flow_run(egress_flow *flow, cx_bytes start);

#endif
