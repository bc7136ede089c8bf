/*
 * poller_other.c - readiness of many sockets, over poll(2), in time that grows with their number.
 *
 * Entry 0 is the wake-up.  A round begins after the last socket that was reported, so that one
 * that is always ready does not keep others from their turn.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include "os/poller.h"
#include "os/system/system.h"

typedef struct cx_poller_list {
    CX_VEC(struct pollfd) files;
    CX_VEC(void *) args; /* of the same number */
    size_t next;
} cx_poller_list;

static cx_status push_file(cx_poller_list *list, int file, short events, void *arg, cx_err *err)
{
    struct pollfd *entry = cx_vec_push(&list->files, cx_alloc_default());
    if (entry == NULL)
        return cx_fail_nomem(err);
    void **place = cx_vec_push(&list->args, cx_alloc_default());
    if (place == NULL) {
        list->files.count--;
        return cx_fail_nomem(err);
    }
    *entry = (struct pollfd){file, events, 0};
    *place = arg;
    return CX_SUCCESS;
}

cx_status cx_poller_open(cx_poller *out, cx_err *err)
{
    *out = (cx_poller){.set = -1,
                       .wake_up = cx_system_wake_open(),
                       .list = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *out->list)};
    cx_status status = CX_SUCCESS;
    if (out->wake_up < 0)
        status = cx_fail_os(err, errno, "cannot wait for sockets");
    else if (out->list == NULL)
        status = cx_fail_nomem(err);
    else
        status = push_file(out->list, out->wake_up, POLLIN, NULL, err);
    if (cx_failed(status))
        cx_poller_close(out);
    return status;
}

void cx_poller_close(cx_poller *poller)
{
    if (poller->wake_up >= 0)
        (void)close(poller->wake_up);
    if (poller->list != NULL) {
        cx_vec_done(&poller->list->files, cx_alloc_default());
        cx_vec_done(&poller->list->args, cx_alloc_default());
        cx_alloc_free(cx_alloc_default(), poller->list, sizeof *poller->list);
    }
    *poller = (cx_poller)CX_POLLER_NONE;
}

static short events_of(unsigned wanted)
{
    return (short)(((wanted & CX_POLL_READ) != 0 ? POLLIN : 0) |
                   ((wanted & CX_POLL_WRITE) != 0 ? POLLOUT : 0));
}

/* 0: it is not waited for. */
static size_t find_socket(const cx_poller_list *list, cx_socket socket)
{
    for (size_t i = 1; i < list->files.count; i++)
        if (list->files.items[i].fd == socket)
            return i;
    return 0;
}

cx_status cx_poller_add(cx_poller *poller, cx_socket socket, unsigned wanted, void *arg,
                        cx_err *err)
{
    CX_ASSERT(arg != NULL);
    if (find_socket(poller->list, socket) != 0)
        return cx_fail_os(err, EEXIST, "cannot wait for a socket");
    return push_file(poller->list, socket, events_of(wanted), arg, err);
}

cx_status cx_poller_change(cx_poller *poller, cx_socket socket, unsigned wanted, void *arg,
                           cx_err *err)
{
    CX_ASSERT(arg != NULL);
    size_t at = find_socket(poller->list, socket);
    if (at == 0)
        return cx_fail_os(err, ENOENT, "cannot wait for a socket");
    poller->list->files.items[at].events = events_of(wanted);
    poller->list->args.items[at] = arg;
    return CX_SUCCESS;
}

void cx_poller_remove(cx_poller *poller, cx_socket socket)
{
    cx_poller_list *list = poller->list;
    size_t at = find_socket(list, socket);
    if (at == 0)
        return;
    list->files.items[at] = list->files.items[--list->files.count];
    list->args.items[at] = list->args.items[--list->args.count];
}

static unsigned ready_of(short events)
{
    unsigned got = 0;
    if ((events & POLLIN) != 0)
        got |= CX_POLL_READ;
    if ((events & POLLOUT) != 0)
        got |= CX_POLL_WRITE;
    if ((events & (POLLERR | POLLHUP | POLLNVAL)) != 0)
        got |= CX_POLL_READ | CX_POLL_WRITE;
    return got;
}

size_t cx_poller_wait(cx_poller *poller, cx_poll_event *out, size_t max, uint32_t timeout_ms)
{
    cx_poller_list *list = poller->list;
    struct pollfd *files = list->files.items;
    size_t sockets = list->files.count - 1, count = 0, first = list->next;
    if (poll(files, (nfds_t)list->files.count, timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms) <=
        0)
        return 0;
    if (files[0].revents != 0)
        cx_system_wake_clear(poller->wake_up);
    for (size_t i = 0; i < sockets && count < max; i++) {
        size_t at = (first + i) % sockets;
        if (files[at + 1].revents == 0)
            continue;
        out[count++] = (cx_poll_event){list->args.items[at + 1], ready_of(files[at + 1].revents)};
        list->next = at + 1;
    }
    return count;
}
