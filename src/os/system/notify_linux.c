/*
 * notify_linux.c - notify.h over inotify.  The kernel numbers the folders; their names are stored
 * by number.
 */
#include "os/notify.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdalign.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/api.h"

#define MASK (IN_CREATE | IN_MODIFY | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CLOSE_WRITE)

typedef struct watched {
    int number;
    char *folder;
    size_t size; /* of its block */
} watched;

struct cx_notify {
    const cx_alloc *alloc;
    int file;
    CX_VEC(watched) folders;
};

cx_status cx_notify_open(const cx_alloc *alloc, cx_notify **out, cx_err *err)
{
    int file = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (file < 0)
        return cx_fail_os(err, errno, "changes of files cannot be followed");
    cx_notify *notify = cx_alloc_zeroed(alloc, 1, sizeof *notify);
    if (notify == NULL) {
        (void)close(file);
        return cx_fail_nomem(err);
    }
    notify->alloc = alloc;
    notify->file = file;
    *out = notify;
    return CX_SUCCESS;
}

void cx_notify_close(cx_notify *notify)
{
    if (notify == NULL)
        return;
    (void)close(notify->file);
    for (size_t i = 0; i < notify->folders.count; i++)
        cx_alloc_free(notify->alloc, notify->folders.items[i].folder,
                      notify->folders.items[i].size);
    cx_vec_done(&notify->folders, notify->alloc);
    cx_alloc_free(notify->alloc, notify, sizeof *notify);
}

static const watched *find_watch(const cx_notify *notify, int number)
{
    for (size_t i = 0; i < notify->folders.count; i++)
        if (notify->folders.items[i].number == number)
            return &notify->folders.items[i];
    return NULL;
}

cx_status cx_notify_add(cx_notify *notify, const char *folder, cx_err *err)
{
    int number = inotify_add_watch(notify->file, folder, MASK | IN_ONLYDIR);
    if (number < 0 && errno == ENOSPC)
        return cx_fail(err, CX_E_LIMIT,
                       "the kernel follows no more folders (see "
                       "fs.inotify.max_user_watches)");
    if (number < 0)
        return cx_fail_os(err, errno, "changes in %s cannot be followed", folder);
    if (find_watch(notify, number) != NULL)
        return CX_SUCCESS;
    size_t size = strlen(folder) + 1;
    char *copy = cx_alloc_new(notify->alloc, size);
    watched *room = copy == NULL ? NULL : cx_vec_push(&notify->folders, notify->alloc);
    if (room == NULL) {
        cx_alloc_free(notify->alloc, copy, size);
        return cx_fail_nomem(err);
    }
    memcpy(copy, folder, size);
    *room = (watched){number, copy, size};
    return CX_SUCCESS;
}

/* The kernel removed the watch: the folder is gone, and its number may be reused. */
static void remove_watch(cx_notify *notify, int number)
{
    for (size_t i = 0; i < notify->folders.count; i++) {
        watched *at = &notify->folders.items[i];
        if (at->number != number)
            continue;
        cx_alloc_free(notify->alloc, at->folder, at->size);
        *at = notify->folders.items[--notify->folders.count];
        return;
    }
}

static void dispatch_event(cx_notify *notify, const struct inotify_event *event,
                           cx_notify_seen *seen, void *arg, bool *out_lost)
{
    if ((event->mask & IN_Q_OVERFLOW) != 0) {
        *out_lost = true;
        return;
    }
    const watched *at = find_watch(notify, event->wd);
    if (at != NULL && event->len != 0)
        seen(arg, at->folder, event->name, (event->mask & IN_ISDIR) != 0);
    if ((event->mask & IN_IGNORED) != 0) {
        remove_watch(notify, event->wd);
        *out_lost = true;
    }
}

cx_status cx_notify_wait(cx_notify *notify, uint32_t timeout_ms, cx_notify_seen *seen, void *arg,
                         bool *out_lost, cx_err *err)
{
    alignas(struct inotify_event) char events[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
    struct pollfd poller = {.fd = notify->file, .events = POLLIN};
    *out_lost = false;
    int got = poll(&poller, 1, timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms);
    if (got < 0 && errno != EINTR)
        return cx_fail_os(err, errno, "file watching is unavailable");
    if (got <= 0)
        return CX_SUCCESS;
    for (;;) {
        ssize_t size = read(notify->file, events, sizeof events);
        if (size < 0 && (errno == EAGAIN || errno == EINTR))
            return CX_SUCCESS;
        if (size <= 0)
            return cx_fail_os(err, size < 0 ? errno : EIO, "changes of files cannot be read");
        for (ssize_t at = 0; at < size;) {
            const struct inotify_event *event =
                (const struct inotify_event *)(const void *)(events + at);
            dispatch_event(notify, event, seen, arg, out_lost);
            at += (ssize_t)(sizeof *event + event->len);
        }
    }
}
