/*
 * net.h - stream sockets between programs of one machine: Unix sockets, and TCP on loopback.
 *
 * Every wait has a timeout, a closed peer is an error and never a signal, and started programs do
 * not inherit sockets.  A socket belongs to one thread at a time; cx_net_stop may be called from
 * any.
 */
#ifndef CX_OS_NET_H
#define CX_OS_NET_H

#include "base/api.h"

typedef int cx_socket; /* as a descriptor; CX_SOCKET_NONE when there is none */
#define CX_SOCKET_NONE (-1)

/* No timeout, where one is optional. */
#define CX_NET_FOREVER UINT32_MAX

typedef struct cx_listener {
    cx_socket socket;
    cx_socket stop; /* readable once cx_net_stop was called */
} cx_listener;

/*
 * Listens at `path`; only this user can connect (mode 0600).  An existing socket there is replaced:
 * the caller has made sure that no process serves it.  CX_E_EXISTS when `path` is not a socket.
 */
CX_RESULT cx_net_listen(const char *path, cx_listener *out, cx_err *err);
/* Listens on 127.0.0.1, on a free port: any user of this machine can connect. */
CX_RESULT cx_net_listen_loopback(cx_listener *out, uint16_t *out_port, cx_err *err);
/* Listens nowhere: for cx_net_wait and cx_net_stop. */
CX_RESULT cx_net_listen_nowhere(cx_listener *out, cx_err *err);
/* Makes cx_net_accept and cx_net_wait with this listener return at once from now on. */
void cx_net_stop(const cx_listener *listener);
/* Waits for the next connection; *out_stopped instead of a socket after cx_net_stop. */
CX_RESULT cx_net_accept(const cx_listener *listener, cx_socket *out, bool *out_stopped,
                        cx_err *err);
/* Closes the listener; does not remove the socket's file. */
void cx_net_listen_end(cx_listener *listener);

/* CX_E_NOT_FOUND when no process listens there, CX_E_BUSY when the backlog is full. */
CX_RESULT cx_net_connect(const char *path, cx_socket *out, cx_err *err);
/* Two connected ends within this process. */
CX_RESULT cx_net_pair(cx_socket out[2], cx_err *err);
void cx_net_close(cx_socket socket); /* CX_SOCKET_NONE is accepted */

typedef enum cx_net_event {
    CX_NET_READY, /* bytes can be read, or the peer has closed */
    CX_NET_LATE,
    CX_NET_STOPPED /* takes precedence over CX_NET_READY */
} cx_net_event;
/* `listener` may be NULL. */
cx_net_event cx_net_wait(cx_socket socket, const cx_listener *listener, uint32_t timeout_ms);

/*
 * Reads `size` bytes within the timeout; *out_size < size only when the peer has closed.
 * CX_E_TIMEOUT, and CX_E_IO for a peer that was killed.
 */
CX_RESULT cx_net_read(cx_socket socket, void *data, size_t size, uint32_t timeout_ms,
                      size_t *out_size, cx_err *err);
/* Writes all of it; on an error the peer may have received a part. */
CX_RESULT cx_net_write(cx_socket socket, const void *data, size_t size, uint32_t timeout_ms,
                       cx_err *err);

/* The process at the other end as reported by the kernel: the one that connected, or listened. */
typedef struct cx_net_peer {
    uint64_t user;
    uint64_t process; /* 0 = not visible from this process namespace */
} cx_net_peer;
CX_RESULT cx_net_peer_of(cx_socket socket, cx_net_peer *out, cx_err *err);
/* Whether the peer is that same user; the superuser is no exception. */
bool cx_net_peer_ok(const cx_net_peer *peer, uint64_t user);
/* The effective user id of this process. */
uint64_t cx_net_user(void);

#endif
