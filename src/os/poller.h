/*
 * poller.h - one thread that serves many sockets: what is ready, and what can be read or written
 * without waiting.
 *
 * A poller belongs to one thread; cx_poller_wake may be called from any.
 */
#ifndef CX_OS_POLLER_H
#define CX_OS_POLLER_H

#include "os/net.h"
#include "os/tcp.h"

typedef struct cx_poller {
    int set;                     /* of epoll or kqueue; -1 = none */
    int wake_up;                 /* readable after cx_poller_wake */
    struct cx_poller_list *list; /* what is waited for, where poll(2) is all there is; else NULL */
} cx_poller;

#define CX_POLLER_NONE \
    {                  \
        -1, -1, NULL   \
    }

#define CX_POLL_READ 1u
#define CX_POLL_WRITE 2u

typedef struct cx_poll_event {
    void *arg;      /* as it was added */
    unsigned ready; /* CX_POLL_..; both after an error, so that the next call reports it */
} cx_poll_event;

CX_RESULT cx_poller_open(cx_poller *out, cx_err *err);
void cx_poller_close(cx_poller *poller); /* one that is not open is accepted */
/* `arg` is not NULL. */
CX_RESULT cx_poller_add(cx_poller *poller, cx_socket socket, unsigned wanted, void *arg,
                        cx_err *err);
CX_RESULT cx_poller_change(cx_poller *poller, cx_socket socket, unsigned wanted, void *arg,
                           cx_err *err);
void cx_poller_remove(cx_poller *poller, cx_socket socket);
/* Waits for sockets that are ready, for a wake-up, or for the timeout; returns how many of `out`
 * were filled. */
size_t cx_poller_wait(cx_poller *poller, cx_poll_event *out, size_t max, uint32_t timeout_ms);
/* Makes the current or next cx_poller_wait return. */
void cx_poller_wake(const cx_poller *poller);

typedef enum cx_socket_result {
    CX_SOCKET_DONE,
    CX_SOCKET_WAITS, /* not now */
    CX_SOCKET_ENDED  /* closed or failed */
} cx_socket_result;

/* The next connection of a listening socket, which does not block; the network of its peer as
 * cx_tcp_network.  CX_SOCKET_ENDED: none can be accepted now (no descriptors). */
cx_socket_result cx_tcp_accept(cx_socket listening, cx_socket *out, bool *out_loopback,
                               char out_network[CX_TCP_NETWORK_SIZE]);
/* Never wait; at least one byte after CX_SOCKET_DONE. */
cx_socket_result cx_tcp_receive(cx_socket socket, void *data, size_t size, size_t *out_size);
cx_socket_result cx_tcp_send(cx_socket socket, const void *data, size_t size, size_t *out_size);

#endif
