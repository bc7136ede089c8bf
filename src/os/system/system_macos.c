/*
 * system_macos.c - the part of system.h that is macOS's own.
 */
#include "os/system/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/event.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#define WAKE_ID 1 /* of the event in its queue */

const int cx_system_send_flags = 0; /* SO_NOSIGPIPE, in cx_system_adopt */

void cx_system_adopt(int socket)
{
    const int on = 1;
    (void)fcntl(socket, F_SETFD, FD_CLOEXEC);
    (void)setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
}

/* --- wake-ups: a queue with an event of ours, which makes it readable ------------------------- */

static int change_queue(int queue, uintptr_t id, short filter, unsigned flags, unsigned what)
{
    struct kevent change;
    EV_SET(&change, id, filter, (unsigned short)flags, what, 0, NULL);
    return kevent(queue, &change, 1, NULL, 0, NULL);
}

static int open_queue(uintptr_t id, short filter, unsigned flags, unsigned what)
{
    int queue = kqueue();
    if (queue < 0)
        return -1;
    (void)fcntl(queue, F_SETFD, FD_CLOEXEC);
    if (change_queue(queue, id, filter, flags, what) == 0)
        return queue;
    int code = errno;
    (void)close(queue);
    errno = code;
    return -1;
}

int cx_system_wake_open(void)
{
    return open_queue(WAKE_ID, EVFILT_USER, EV_ADD | EV_CLEAR, NOTE_FFNOP);
}

void cx_system_wake(int file)
{
    (void)change_queue(file, WAKE_ID, EVFILT_USER, 0, NOTE_TRIGGER);
}

void cx_system_wake_clear(int file)
{
    static const struct timespec at_once = {0, 0};
    struct kevent event;
    (void)kevent(file, NULL, 0, &event, 1, &at_once);
}

/* --- sockets and files ------------------------------------------------------------------------ */

bool cx_system_peer(int socket, uint64_t *out_user, uint64_t *out_process)
{
    uid_t user;
    gid_t group;
    pid_t process = 0;
    socklen_t size = sizeof process;
    if (getpeereid(socket, &user, &group) != 0)
        return false;
    if (getsockopt(socket, SOL_LOCAL, LOCAL_PEERPID, &process, &size) != 0)
        process = 0;
    *out_user = user;
    *out_process = process > 0 ? (uint64_t)process : 0;
    return true;
}

static int64_t time_ns(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void cx_system_times(const struct stat *info, int64_t *out_modified_ns, int64_t *out_changed_ns)
{
    *out_modified_ns = time_ns(info->st_mtimespec);
    *out_changed_ns = time_ns(info->st_ctimespec);
}

bool cx_system_space(const char *path, uint64_t *out_free, uint64_t *out_all)
{
    struct statfs info;
    if (statfs(path, &info) != 0)
        return false;
    *out_free = info.f_bavail * (uint64_t)info.f_bsize;
    *out_all = info.f_blocks * (uint64_t)info.f_bsize;
    return true;
}

/* --- libraries -------------------------------------------------------------------------------- */

const char *const cx_system_library_advice =
    "install it with Homebrew: brew install libmicrohttpd libnghttp2 pcre2 zstd utf8proc libpq";

/*
 * "libz.so.1" is libz.1.dylib, of the system or of Homebrew or MacPorts.  The folder is always
 * named: dlopen looks for a bare name in the working directory too, which may be an agent's.
 */
bool cx_system_library(const char *soname, unsigned turn, char *out, size_t size)
{
    static const char *const folders[] = {"/usr/lib",
                                          "/opt/homebrew/lib",
                                          "/opt/homebrew/opt/openssl@3/lib",
                                          "/opt/homebrew/opt/libpq/lib",
                                          "/usr/local/lib",
                                          "/usr/local/opt/openssl@3/lib",
                                          "/usr/local/opt/libpq/lib",
                                          "/opt/local/lib"};
    const char *ending = strstr(soname, ".so.");
    if (turn >= CX_COUNT_OF(folders) || ending == NULL || strchr(soname, '/') != NULL)
        return false;
    int wanted = snprintf(out, size, "%s/%.*s.%s.dylib", folders[turn], (int)(ending - soname),
                          soname, ending + 4);
    return wanted > 0 && (size_t)wanted < size;
}

/* --- programs --------------------------------------------------------------------------------- */

/* A child that has ended already gets none (ESRCH): its end is then looked for from time to
 * time. */
int cx_system_process_file(pid_t child)
{
    return open_queue((uintptr_t)child, EVFILT_PROC, EV_ADD, NOTE_EXIT);
}

void cx_system_limit(int which, uint64_t value)
{
    if (value == 0)
        return;
    struct rlimit now;
    rlim_t wanted = (rlim_t)value;
    if (getrlimit(which, &now) == 0 && now.rlim_max != RLIM_INFINITY && now.rlim_max < wanted)
        wanted = now.rlim_max;
    const struct rlimit both = {wanted, wanted};
    (void)setrlimit(which, &both);
}
