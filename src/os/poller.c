/*
 * poller.c - readiness of many sockets, over epoll.
 */
#include "os/poller.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX 64

cx_status cx_poller_open(cx_poller *out, cx_err *err)
{
    struct epoll_event wake = {.events = EPOLLIN, .data = {.ptr = NULL}};
    *out = (cx_poller){.set = epoll_create1(EPOLL_CLOEXEC),
                       .wake_up = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (out->set >= 0 && out->wake_up >= 0 &&
        epoll_ctl(out->set, EPOLL_CTL_ADD, out->wake_up, &wake) == 0)
        return CX_SUCCESS;
    cx_status status = cx_fail_os(err, errno, "cannot wait for sockets");
    cx_poller_close(out);
    return status;
}

void cx_poller_close(cx_poller *poller)
{
    if (poller->set >= 0)
        (void)close(poller->set);
    if (poller->wake_up >= 0)
        (void)close(poller->wake_up);
    *poller = (cx_poller)CX_POLLER_NONE;
}

static cx_status control_socket(cx_poller *poller, int operation, cx_socket socket, unsigned wanted,
                                void *arg, cx_err *err)
{
    struct epoll_event event = {.events = 0, .data = {.ptr = arg}};
    CX_ASSERT(arg != NULL);
    if ((wanted & CX_POLL_READ) != 0)
        event.events |= EPOLLIN;
    if ((wanted & CX_POLL_WRITE) != 0)
        event.events |= EPOLLOUT;
    if (epoll_ctl(poller->set, operation, socket, &event) != 0)
        return cx_fail_os(err, errno, "cannot wait for a socket");
    return CX_SUCCESS;
}

cx_status cx_poller_add(cx_poller *poller, cx_socket socket, unsigned wanted, void *arg,
                        cx_err *err)
{
    return control_socket(poller, EPOLL_CTL_ADD, socket, wanted, arg, err);
}

cx_status cx_poller_change(cx_poller *poller, cx_socket socket, unsigned wanted, void *arg,
                           cx_err *err)
{
    return control_socket(poller, EPOLL_CTL_MOD, socket, wanted, arg, err);
}

void cx_poller_remove(cx_poller *poller, cx_socket socket)
{
    (void)epoll_ctl(poller->set, EPOLL_CTL_DEL, socket, NULL);
}

static void clear_wake_up(const cx_poller *poller)
{
    uint64_t times;
    while (read(poller->wake_up, &times, sizeof times) == (ssize_t)sizeof times)
        continue;
}

size_t cx_poller_wait(cx_poller *poller, cx_poll_event *out, size_t max, uint32_t timeout_ms)
{
    struct epoll_event events[EVENTS_MAX];
    size_t count = 0;
    int timeout = timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms;
    /* One more, for the wake-up. */
    int ready =
        epoll_wait(poller->set, events, max + 1 < EVENTS_MAX ? (int)max + 1 : EVENTS_MAX, timeout);
    for (int i = 0; i < ready; i++) {
        if (events[i].data.ptr == NULL) {
            clear_wake_up(poller);
            continue;
        }
        if (count == max)
            break; /* it stays ready */
        unsigned got = 0;
        if ((events[i].events & EPOLLIN) != 0)
            got |= CX_POLL_READ;
        if ((events[i].events & EPOLLOUT) != 0)
            got |= CX_POLL_WRITE;
        if ((events[i].events & (EPOLLERR | EPOLLHUP)) != 0)
            got |= CX_POLL_READ | CX_POLL_WRITE;
        out[count++] = (cx_poll_event){.arg = events[i].data.ptr, .ready = got};
    }
    return count;
}

void cx_poller_wake(const cx_poller *poller)
{
    const uint64_t once = 1;
    ssize_t written = write(poller->wake_up, &once, sizeof once);
    (void)written; /* it is full only while a wake-up is pending */
}

/* --- sockets ---------------------------------------------------------------------------------- */

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
    int made = accept4(listening, (struct sockaddr *)&peer, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
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
    ssize_t sent = send(socket, data, size, MSG_NOSIGNAL);
    if (sent < 0)
        return result_of_errno();
    *out_size = (size_t)sent;
    return sent == 0 ? CX_SOCKET_WAITS : CX_SOCKET_DONE;
}
