/*
 * net.h - Unix stream sockets: two programs of one machine that talk.
 *
 * Every wait has an end, a peer that is gone is an error and never a signal, and no program that is
 * started inherits a socket.  A socket belongs to one thread at a time; cx_net_stop may be called
 * from any.
 */
#ifndef CX_OS_NET_H
#define CX_OS_NET_H

#include "base/api.h"

typedef int cx_socket; /* as a descriptor; CX_SOCKET_NONE when there is none */
#define CX_SOCKET_NONE (-1)

/* No limit, for the waits that may have none. */
#define CX_NET_FOREVER UINT32_MAX

typedef struct cx_listener {
    cx_socket socket;
    cx_socket stop; /* readable once cx_net_stop was called */
} cx_listener;

/*
 * Listens at `path`, which only this user can connect to (mode 0600).  A socket that stands there
 * is replaced: the caller knows that nobody serves it.  CX_E_EXISTS when something else stands
 * there.
 */
CX_RESULT cx_net_listen(const char *path, cx_listener *out, cx_err *err);
/* From now on cx_net_accept and cx_net_wait with this listener return at once. */
void cx_net_stop(const cx_listener *listener);
/* Waits for the next that connects; *out_stopped instead of a socket when it was stopped. */
CX_RESULT cx_net_accept(const cx_listener *listener, cx_socket *out, bool *out_stopped,
                        cx_err *err);
/* Removes no file. */
void cx_net_listen_end(cx_listener *listener);

/* CX_E_NOT_FOUND when nobody listens there, CX_E_BUSY when too many wait to be heard. */
CX_RESULT cx_net_connect(const char *path, cx_socket *out, cx_err *err);
void cx_net_close(cx_socket socket); /* CX_SOCKET_NONE is fine */

typedef enum cx_net_event {
    CX_NET_READY, /* there are bytes to read, or the peer has gone */
    CX_NET_LATE,
    CX_NET_STOPPED /* which comes before what can be read */
} cx_net_event;
/* `listener` may be NULL. */
cx_net_event cx_net_wait(cx_socket socket, const cx_listener *listener, uint32_t timeout_ms);

/*
 * `size` bytes within that time; *out_size < size only where the peer has ended.  CX_E_TIMEOUT, and
 * CX_E_IO for a peer that was killed.
 */
CX_RESULT cx_net_read(cx_socket socket, void *data, size_t size, uint32_t timeout_ms,
                      size_t *out_size, cx_err *err);
/* All of it, or an error: then the peer has not got everything. */
CX_RESULT cx_net_write(cx_socket socket, const void *data, size_t size, uint32_t timeout_ms,
                       cx_err *err);

/* Who is at the other end, as the kernel knows it: whoever connected, or listened. */
typedef struct cx_net_peer {
    uint64_t user;
    uint64_t process; /* 0 = not to be seen from here */
} cx_net_peer;
CX_RESULT cx_net_peer_of(cx_socket socket, cx_net_peer *out, cx_err *err);
/* Only the same user is let in, the superuser no more than anybody else. */
bool cx_net_peer_ok(const cx_net_peer *peer, uint64_t user);
/* The user this process acts as. */
uint64_t cx_net_user(void);

#endif
