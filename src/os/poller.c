/*
 * poller.c - sockets that do not block; the poller itself is in system/poller_*.c.
 */
#include "os/poller.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "os/system/system.h"

void cx_poller_wake(const cx_poller *poller)
{
    cx_system_wake(poller->wake_up);
}

static cx_socket_result result_of_errno(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? CX_SOCKET_WAITS
                                                                     : CX_SOCKET_ENDED;
}

cx_socket_result cx_tcp_accept(cx_socket listening, cx_socket *out, bool *out_loopback,
                               char out_network[CX_TCP_NETWORK_SIZE])
{
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
    socklen_t size = sizeof peer;
    const int on = 1;
    out_network[0] = 0;
    int made = cx_system_accept(listening, (struct sockaddr *)&peer, &size);
    if (made < 0)
        return errno == ECONNABORTED ? CX_SOCKET_WAITS : result_of_errno();
    (void)setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    *out_loopback = cx_tcp_network(&peer, out_network);
    *out = made;
    return CX_SOCKET_DONE;
}

cx_socket_result cx_tcp_receive(cx_socket socket, void *data, size_t size, size_t *out_size)
{
    ssize_t got = recv(socket, data, size, 0);
    if (got < 0)
        return result_of_errno();
    *out_size = (size_t)got;
    return got == 0 ? CX_SOCKET_ENDED : CX_SOCKET_DONE;
}

cx_socket_result cx_tcp_send(cx_socket socket, const void *data, size_t size, size_t *out_size)
{
    ssize_t sent = send(socket, data, size, cx_system_send_flags);
    if (sent < 0)
        return result_of_errno();
    *out_size = (size_t)sent;
    return sent == 0 ? CX_SOCKET_WAITS : CX_SOCKET_DONE;
}
