/*
 * system_linux.c - system.h on Linux: descriptors, folders, signals.
 */
#include "os/system/system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

const int cx_system_send_flags = MSG_NOSIGNAL, cx_system_receive_flags = MSG_CMSG_CLOEXEC;
const int cx_system_pass_flag = O_PATH;

/* --- descriptors ------------------------------------------------------------------------------ */

bool cx_system_pipe(int out[2])
{
    return pipe2(out, O_CLOEXEC) == 0;
}

int cx_system_unnamed_file(void)
{
    return memfd_create("cortex", MFD_CLOEXEC);
}

int cx_system_socket(int family, int type)
{
    return socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

bool cx_system_socket_pair(int out[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, out) == 0;
}

bool cx_system_stream_pair(int out[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, out) == 0;
}

int cx_system_accept(int listening, struct sockaddr *peer, socklen_t *size)
{
    return accept4(listening, peer, size, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

void cx_system_adopt(int socket)
{
    (void)socket; /* MSG_CMSG_CLOEXEC */
}

bool cx_system_silence(int file)
{
    int silent = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool done = silent >= 0 && dup3(silent, file, O_CLOEXEC) >= 0;
    if (silent >= 0)
        (void)close(silent);
    return done;
}

int cx_system_wake_open(void)
{
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void cx_system_wake(int file)
{
    static const uint64_t one = 1;
    (void)!write(file, &one, sizeof one); /* it is full only while a wake-up is pending */
}

void cx_system_wake_clear(int file)
{
    uint64_t times;
    (void)!read(file, &times, sizeof times);
}

bool cx_system_bind_private(int socket, const struct sockaddr *address, socklen_t size)
{
    /* The file gets its mode from the socket. */
    return fchmod(socket, S_IRUSR | S_IWUSR) == 0 && bind(socket, address, size) == 0;
}

bool cx_system_peer(int socket, uint64_t *out_user, uint64_t *out_process)
{
    struct ucred who;
    socklen_t size = sizeof who;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
        return false;
    *out_user = who.uid;
    *out_process = who.pid > 0 ? (uint64_t)who.pid : 0;
    return true;
}

bool cx_system_way_open(const char *folder, cx_system_way *out)
{
    out->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(out->path, sizeof out->path, "/proc/self/fd/%d", out->folder);
    return out->folder >= 0;
}

void cx_system_way_close(const cx_system_way *way)
{
    if (way->folder >= 0)
        (void)close(way->folder);
}

/* --- folders ---------------------------------------------------------------------------------- */

/* openat2 checks which flags go together. */
bool cx_system_open_beneath(int folder, const char *path, int flags, mode_t mode, int *out)
{
    static atomic_bool absent; /* it failed once; a racing store sets the same value */
    while (!atomic_load_explicit(&absent, memory_order_relaxed)) {
        struct open_how how = {.flags = (uint64_t)(unsigned)flags | O_NOFOLLOW,
                               .mode = flags & O_CREAT ? mode : 0,
                               .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
        *out = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
        /* A sandbox whose filter does not know the call fails with EPERM. */
        if (*out < 0 && (errno == ENOSYS || errno == EPERM))
            atomic_store_explicit(&absent, true, memory_order_relaxed);
        else if (*out >= 0 || (errno != EINTR && errno != EAGAIN))
            return true;
    }
    return false;
}

/* fchmodat of this C library follows links: the file is opened with O_PATH and changed through its
 * entry in /proc, which refers to that very file. */
bool cx_system_change_mode(int folder, const char *name, mode_t mode)
{
    char through[64];
    struct stat info;
    int file = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return false;
    bool done = fstat(file, &info) == 0;
    if (done && S_ISLNK(info.st_mode)) {
        errno = ELOOP;
        done = false;
    }
    if (done) {
        (void)snprintf(through, sizeof through, "/proc/self/fd/%d", file);
        done = chmod(through, mode) == 0;
    }
    int code = errno;
    (void)close(file);
    errno = code;
    return done;
}

static int64_t time_ns(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void cx_system_times(const struct stat *info, int64_t *out_modified_ns, int64_t *out_changed_ns)
{
    *out_modified_ns = time_ns(info->st_mtim);
    *out_changed_ns = time_ns(info->st_ctim);
}

bool cx_system_space(const char *path, uint64_t *out_free, uint64_t *out_all)
{
    struct statfs info;
    if (statfs(path, &info) != 0)
        return false;
    uint64_t block = (uint64_t)info.f_bsize;
    *out_free = (uint64_t)info.f_bavail * block;
    *out_all = (uint64_t)info.f_blocks * block;
    return true;
}

bool cx_system_keeps_times(int folder)
{
    /* linux/magic.h: ext2 to ext4, XFS and Btrfs have nanosecond timestamps and update them also at
     * the first write to a mapped page. */
    enum { EXT = 0xEF53, XFS = 0x58465342 };
    const uint32_t btrfs = 0x9123683Eu;
    struct statfs info;
    if (fstatfs(folder, &info) != 0)
        return false;
    uint32_t type = (uint32_t)info.f_type;
    return type == EXT || type == XFS || type == btrfs;
}

int64_t cx_system_file_clock_ns(void)
{
    struct timespec now = {0};
    if (clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0)
        return 0; /* then no file is old enough */
    return time_ns(now);
}

/* --- libraries -------------------------------------------------------------------------------- */

const char *const cx_system_library_advice = NULL;

bool cx_system_library(const char *soname, unsigned turn, char *out, size_t size)
{
    int wanted = snprintf(out, size, "%s", soname);
    return turn == 0 && wanted > 0 && (size_t)wanted < size;
}

/* --- signals ---------------------------------------------------------------------------------- */

void cx_system_drop_pending(int number)
{
    static const struct timespec at_once = {0, 0};
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    while (sigtimedwait(&one, NULL, &at_once) < 0 && errno == EINTR)
        continue;
}

int cx_system_signals_open(const sigset_t *taken)
{
    return signalfd(-1, taken, SFD_CLOEXEC | SFD_NONBLOCK);
}

int cx_system_signals_read(int file)
{
    struct signalfd_siginfo info;
    return read(file, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}

void cx_system_signals_close(int file)
{
    (void)close(file);
}
