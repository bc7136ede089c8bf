/*
 * poller_macos.c - readiness of many sockets, over kqueue.
 *
 * A socket has two filters, for reading and for writing, of which one that is not wanted is
 * disabled.  The kernel reports each by itself; a caller gets one event for both.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/event.h>
#include <unistd.h>

#include "os/poller.h"
#include "os/system/system.h"

#define EVENTS_MAX 64

cx_status cx_poller_open(cx_poller *out, cx_err *err)
{
    struct kevent wake;
    *out = (cx_poller){.set = kqueue(), .wake_up = cx_system_wake_open()};
    if (out->set >= 0 && out->wake_up >= 0) {
        (void)fcntl(out->set, F_SETFD, FD_CLOEXEC);
        EV_SET(&wake, (uintptr_t)out->wake_up, EVFILT_READ, EV_ADD, 0, 0, NULL);
        if (kevent(out->set, &wake, 1, NULL, 0, NULL) == 0)
            return CX_SUCCESS;
    }
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

/* EV_ADD of a filter that is there changes it. */
static cx_status set_filters(cx_poller *poller, cx_socket socket, unsigned wanted, void *arg,
                             cx_err *err)
{
    struct kevent both[2];
    CX_ASSERT(arg != NULL);
    unsigned short reads = (wanted & CX_POLL_READ) != 0 ? EV_ENABLE : EV_DISABLE;
    unsigned short writes = (wanted & CX_POLL_WRITE) != 0 ? EV_ENABLE : EV_DISABLE;
    EV_SET(&both[0], (uintptr_t)socket, EVFILT_READ, (unsigned short)(EV_ADD | reads), 0, 0, arg);
    EV_SET(&both[1], (uintptr_t)socket, EVFILT_WRITE, (unsigned short)(EV_ADD | writes), 0, 0, arg);
    if (kevent(poller->set, both, 2, NULL, 0, NULL) != 0)
        return cx_fail_os(err, errno, "cannot wait for a socket");
    return CX_SUCCESS;
}

cx_status cx_poller_add(cx_poller *poller, cx_socket socket, unsigned wanted, void *arg,
                        cx_err *err)
{
    return set_filters(poller, socket, wanted, arg, err);
}

cx_status cx_poller_change(cx_poller *poller, cx_socket socket, unsigned wanted, void *arg,
                           cx_err *err)
{
    return set_filters(poller, socket, wanted, arg, err);
}

void cx_poller_remove(cx_poller *poller, cx_socket socket)
{
    struct kevent both[2];
    EV_SET(&both[0], (uintptr_t)socket, EVFILT_READ, EV_DELETE, 0, 0, NULL);
    EV_SET(&both[1], (uintptr_t)socket, EVFILT_WRITE, EV_DELETE, 0, 0, NULL);
    /* One by one: the first failure ends a list of changes. */
    (void)kevent(poller->set, &both[0], 1, NULL, 0, NULL);
    (void)kevent(poller->set, &both[1], 1, NULL, 0, NULL);
}

static unsigned ready_of(const struct kevent *event)
{
    if ((event->flags & (EV_ERROR | EV_EOF)) != 0)
        return CX_POLL_READ | CX_POLL_WRITE;
    return event->filter == EVFILT_WRITE ? CX_POLL_WRITE : CX_POLL_READ;
}

/* The event of the same socket, which may be gone once its first event was handled; else a new
 * one; NULL when there is no room. */
static cx_poll_event *event_for(void *arg, cx_poll_event *out, size_t *count, size_t max)
{
    for (size_t i = 0; i < *count; i++)
        if (out[i].arg == arg)
            return &out[i];
    if (*count == max)
        return NULL; /* it stays ready */
    out[*count] = (cx_poll_event){.arg = arg, .ready = 0};
    return &out[(*count)++];
}

size_t cx_poller_wait(cx_poller *poller, cx_poll_event *out, size_t max, uint32_t timeout_ms)
{
    struct kevent events[EVENTS_MAX];
    const struct timespec timeout = {(time_t)(timeout_ms / 1000),
                                     (long)(timeout_ms % 1000) * 1000000L};
    size_t count = 0;
    int ready = kevent(poller->set, NULL, 0, events, EVENTS_MAX, &timeout);
    for (int i = 0; i < ready; i++) {
        if (events[i].udata == NULL) {
            cx_system_wake_clear(poller->wake_up);
            continue;
        }
        cx_poll_event *event = event_for(events[i].udata, out, &count, max);
        if (event != NULL)
            event->ready |= ready_of(&events[i]);
    }
    return count;
}
