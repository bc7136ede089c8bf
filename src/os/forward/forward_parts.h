/*
 * forward_parts.h - shared by the files of this folder; private to it.
 *
 *   forward.c       the thread: listening sockets, where connections go, time
 *   forward_tls.c   TLS between forwarders
 *   forward_pair.c  one connection, from its first byte to the end of both directions
 */
#ifndef CX_OS_FORWARD_PARTS_H
#define CX_OS_FORWARD_PARTS_H

#include <stdatomic.h>

#include "os/forward/forward.h"

/* "CXR1" and 4 bytes that stand for the client's network; answered with '+'. */
#define CX_FORWARD_GREETING 8

typedef struct cx_forward_pair cx_forward_pair;

/* --- forward_tls.c ---------------------------------------------------------------------------- */

/* TLS of one socket, which stays the caller's. */
typedef struct cx_forward_session cx_forward_session;

/* NULL: no memory. */
cx_forward_session *cx_forward_session_open(const cx_forward_tls *tls, cx_socket socket,
                                            bool accepts, const cx_ip *peer);
void cx_forward_session_close(cx_forward_session *session); /* NULL is accepted */
/* T3.  DONE: each knows who the other is.  WAITS: for *out_wanted.  ENDED: see why. */
cx_socket_result cx_forward_session_shake(cx_forward_session *session, unsigned *out_wanted);
/* As cx_tcp_receive and cx_tcp_send. */
cx_socket_result cx_forward_session_receive(cx_forward_session *session, void *data, size_t size,
                                            size_t *out_size);
cx_socket_result cx_forward_session_send(cx_forward_session *session, const void *data, size_t size,
                                         size_t *out_size);
void cx_forward_session_end_output(cx_forward_session *session);
const char *cx_forward_session_address(const cx_forward_session *session); /* of the other side */
/* What went wrong; "" = nothing. */
const char *cx_forward_session_why(const cx_forward_session *session);

/* --- connections ------------------------------------------------------------------------------ */

/* One of the two sockets of a connection. */
typedef struct cx_forward_half {
    cx_forward_pair *pair;
    cx_socket socket;
    cx_forward_session *session; /* to another forwarder, over TLS; NULL = as it is */
    uint8_t *waiting; /* CX_FORWARD_CHUNK bytes; NULL = nothing waits to be written to it */
    size_t at, size;  /* .. that are in it */
    unsigned wanted;  /* as the poller has it */
    bool watched;     /* it is in the poller */
    bool readable;
    bool ended;    /* nothing more comes from it */
    bool finished; /* nothing more is written to it */
    bool broken;   /* .. because that failed */
} cx_forward_half;

typedef enum cx_forward_step {
    CX_FORWARD_SHAKING, /* W5: either of the two below is next */
    CX_FORWARD_GREETED, /* of the inner socket: its greeting is awaited */
    CX_FORWARD_HELD,    /* W2 */
    CX_FORWARD_CONNECTING,
    CX_FORWARD_GREETING_SENT,
    CX_FORWARD_MOVING,
    CX_FORWARD_CLOSED /* freed after the events that are under way */
} cx_forward_step;

struct cx_forward_pair {
    cx_forward_pair *prev, *next;
    cx_forward *forward;
    cx_forward_half client, server;
    cx_forward_step step;
    bool is_inner, at_own;
    uint8_t greeting[CX_FORWARD_GREETING];
    size_t greeting_size;
    uint64_t network;  /* a hash of the client's; 0 = this machine */
    uint64_t until_ns; /* of this step; when it is held, for all that it is */
    uint64_t retry_ns; /* when it is held */
    uint64_t moved_ns;
};

typedef struct cx_forward_place {
    cx_ip ip;
    uint16_t port;
    bool is_set;
} cx_forward_place;

struct cx_forward {
    const cx_alloc *alloc;
    cx_forward_options options;
    cx_poller poller;
    cx_thread thread;
    cx_lock lock;
    cx_forward_place own, other; /* under the lock */
    bool moved, stops, closes;   /* likewise: asked of the thread */
    /* Of the thread. */
    cx_forward_place to_own, to_other;
    cx_forward_pair *pairs, *closed;
    bool outer_watched, inner_watched, stopped;
    uint64_t pause_ns; /* nothing is accepted before */
    uint8_t block[CX_FORWARD_CHUNK];
    _Atomic uint64_t open, held, at_own, accepted, given_up, refused;
};

uint64_t cx_forward_now(void);
/* Takes over the socket; NULL when there is no memory. */
cx_forward_pair *cx_forward_pair_open(cx_forward *forward, cx_socket client, bool is_inner,
                                      uint64_t network);
/* One of its sockets is ready. */
void cx_forward_pair_ready(cx_forward_half *half, unsigned ready);
/* Time has passed, or there is another place to go to. */
void cx_forward_pair_look(cx_forward_pair *pair, uint64_t now);
void cx_forward_pair_close(cx_forward_pair *pair);
/* No server was found. */
void cx_forward_pair_give_up(cx_forward_pair *pair);

#endif
