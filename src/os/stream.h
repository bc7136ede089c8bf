/*
 * stream.h - TCP connections that are opened to an address that was checked, or whose listening
 * socket another process passes on; moving bytes without waiting is in poller.h.
 *
 * Sockets do not block and are not inherited.  `stop` is a descriptor that becomes readable, or is
 * closed at its other end, when waiting shall end; CX_SOCKET_NONE = none.
 */
#ifndef CX_OS_STREAM_H
#define CX_OS_STREAM_H

#include "os/ip.h"
#include "os/poller.h"

typedef struct cx_stream_wait {
    cx_socket socket; /* CX_SOCKET_NONE is skipped */
    unsigned wanted;  /* CX_POLL_..; 0 reports only that it failed */
    unsigned ready;   /* CX_POLL_..; both after an error */
} cx_stream_wait;

/* False when the timeout has passed and nothing is ready.  At most 16. */
bool cx_stream_poll(cx_stream_wait *list, size_t count, uint32_t timeout_ms);

/* Connects to that address only.  CX_E_TIMEOUT; CX_E_IO with the reason, also when stopped. */
CX_RESULT cx_stream_connect(const cx_ip *ip, uint16_t port, uint32_t timeout_ms, cx_socket stop,
                            cx_socket *out, cx_err *err);
/* The same without waiting, for a poller: unless *out_connected the socket can be written to when
 * it is, or has failed; cx_stream_connected tells which.  `from` is an address of this machine to
 * connect from, if the system lets us; NULL = any. */
CX_RESULT cx_stream_connect_begin(const cx_ip *ip, uint16_t port, const cx_ip *from, cx_socket *out,
                                  bool *out_connected, cx_err *err);
bool cx_stream_connected(cx_socket socket);
/* The address at the other end, of an IPv4 one in IPv6 the former. */
bool cx_stream_peer(cx_socket socket, cx_ip *out);
/* No more bytes will be sent; others may still be received. */
void cx_stream_end_output(cx_socket socket);

/* --- listening sockets of other processes ----------------------------------------------------- */

/* Two connected ends, over which sockets can be passed. */
CX_RESULT cx_stream_pair(cx_socket out[2], cx_err *err);
/* Listens on 127.0.0.1 of this process's network namespace. */
CX_RESULT cx_stream_listen_loopback(uint16_t port, cx_socket *out, cx_err *err);
CX_RESULT cx_stream_pass(cx_socket channel, cx_socket passed, cx_err *err);
/* The next socket that was passed on; CX_SOCKET_WAITS when there is none now, CX_SOCKET_ENDED when
 * there will be none. */
cx_socket_result cx_stream_take(cx_socket channel, cx_socket *out);

#endif
