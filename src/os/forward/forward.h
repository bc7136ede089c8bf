/*
 * forward.h - TCP connections handed on, byte for byte, to where something is served now.
 *
 *     cx_forward_open(&options, &forward, err);       one thread from now on
 *     cx_forward_to(forward, &own, NULL);             .. and again whenever that changes
 *
 * A connection of the outer socket goes to the own server, else to the other forwarder, else it is
 * held until there is one.  A connection of the inner socket is another forwarder's: it goes to the
 * own server, or is closed at once.
 *
 *   W1  A forwarder connects to the inner socket of others only, so that nothing goes in circles.
 *   W2  Nothing was sent to a server while a connection is held: it can be handed to any.
 *       Forwarders agree on that with one byte, '+', which says that the server has accepted.
 *   W3  A side is read only while nothing waits for the other; so a connection has at most
 *       CX_FORWARD_CHUNK bytes in each direction.
 *   W4  The end of a side is handed on after its bytes, and ends only that direction.
 *   W5  With TLS all that goes between forwarders goes through it, after both sides have shown who
 *       they are.
 *
 * The server sees connections from addresses of 127.0.0.0/8 that differ with the network of the
 * client, where the system lets a socket have them; else from 127.0.0.1.
 */
#ifndef CX_OS_FORWARD_H
#define CX_OS_FORWARD_H

#include "os/forward/forward_tls.h"
#include "os/stream.h"

#define CX_FORWARD_CHUNK ((size_t)32 << 10) /* bytes */

typedef struct cx_forward cx_forward;

typedef struct cx_forward_options {
    const cx_alloc *alloc;            /* NULL = default */
    cx_socket outer, inner;           /* listening; the forwarder's, also when opening fails */
    unsigned connections;             /* at once; 1 .. 1,000,000 */
    unsigned connections_per_address; /* of the outer socket; 0 = no limit */
    uint32_t hold_ms;                 /* then a held connection is given up */
    uint32_t idle_ms;                 /* without a byte in any direction */
    const cx_forward_tls *tls;        /* between forwarders; NULL = none.  Lives as long */
    /* T2: another forwarder was not trusted, or did not trust this one.  Of its thread; may be
     * NULL. */
    void (*refused)(void *arg, const char *why);
    void *refused_arg;
    const char *answer; /* of one that is given up, if it began as HTTP does; lives as long */
} cx_forward_options;

typedef struct cx_forward_counts {
    uint64_t open;     /* connections, and of them: */
    uint64_t held;     /* .. without a server */
    uint64_t own;      /* .. at the own server */
    uint64_t accepted; /* since it was opened */
    uint64_t given_up; /* .. for which no server was found in time */
    uint64_t refused;  /* .. beyond connections_per_address */
} cx_forward_counts;

CX_RESULT cx_forward_open(const cx_forward_options *options, cx_forward **out, cx_err *err);
/* From any thread; NULL = there is none.  `own` is on loopback, `other` an inner socket. */
void cx_forward_to(cx_forward *forward, const cx_tcp_address *own, const cx_tcp_address *other);
cx_forward_counts cx_forward_count(const cx_forward *forward);
/* Accepts no more, and closes both sockets; connections go on. */
void cx_forward_stop(cx_forward *forward);
/* Gives up and closes what is left.  NULL is accepted. */
void cx_forward_close(cx_forward *forward);

#endif
