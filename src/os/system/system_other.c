/*
 * system_other.c - the part of system.h that macOS has calls of its own for, on a POSIX system of
 * which nothing else is known.
 *
 * It is built to run the tests of the *_posix.c files on Linux, and for new systems to begin with.
 */
#include "os/system/system.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

const int cx_system_send_flags = MSG_NOSIGNAL;

void cx_system_adopt(int socket)
{
    (void)socket;
}

/* A datagram socket of loopback that is connected to itself: no one else can send to it. */
int cx_system_wake_open(void)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof own;
    int made = cx_system_socket(AF_INET, SOCK_DGRAM);
    if (made < 0)
        return -1;
    if (bind(made, (const struct sockaddr *)&own, sizeof own) == 0 &&
        getsockname(made, (struct sockaddr *)&own, &size) == 0 &&
        connect(made, (const struct sockaddr *)&own, sizeof own) == 0)
        return made;
    int code = errno;
    (void)close(made);
    errno = code;
    return -1;
}

void cx_system_wake(int file)
{
    (void)!send(file, "w", 1, MSG_NOSIGNAL); /* it is full only while a wake-up is pending */
}

void cx_system_wake_clear(int file)
{
    char byte;
    while (recv(file, &byte, 1, 0) > 0)
        continue;
}

/* No call of POSIX tells; this one is Linux's and some others'. */
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
    struct statvfs info;
    if (statvfs(path, &info) != 0)
        return false;
    *out_free = (uint64_t)info.f_bavail * info.f_frsize;
    *out_all = (uint64_t)info.f_blocks * info.f_frsize;
    return true;
}

const char *const cx_system_library_advice = NULL;

bool cx_system_library(const char *soname, unsigned turn, char *out, size_t size)
{
    int wanted = snprintf(out, size, "%s", soname);
    return turn == 0 && wanted > 0 && (size_t)wanted < size;
}

int cx_system_process_file(pid_t child)
{
    (void)child;
    return -1;
}

void cx_system_limit(int which, uint64_t value)
{
    if (value == 0)
        return;
    struct rlimit now;
    rlim_t wanted = (rlim_t)value;
    if (getrlimit((__rlimit_resource_t)which, &now) == 0 && now.rlim_max != RLIM_INFINITY &&
        now.rlim_max < wanted)
        wanted = now.rlim_max;
    struct rlimit both = {wanted, wanted};
    (void)setrlimit((__rlimit_resource_t)which, &both);
}
