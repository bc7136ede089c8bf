/*
 * poller_linux.c - readiness of many sockets, over epoll.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "os/poller.h"
#include "os/system/system.h"

#define EVENTS_MAX 64

cx_status cx_poller_open(cx_poller *out, cx_err *err)
{
    struct epoll_event wake = {.events = EPOLLIN, .data = {.ptr = NULL}};
    *out = (cx_poller){.set = epoll_create1(EPOLL_CLOEXEC), .wake_up = cx_system_wake_open()};
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
            cx_system_wake_clear(poller->wake_up);
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
