/*
 * confine_posix.c - confine.h where a process cannot give up its rights by calls of Linux.
 *
 * Nothing here pretends: what cannot be done is an error.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/confine.h"
#include "os/machine.h"
#include "os/spawn_start.h"
#include "os/system/system.h"

static cx_status fail_unsupported(const char *what, cx_err *err)
{
    return cx_fail(err, CX_E_UNSUPPORTED, "needs Linux: this system has no %s", what);
}

int cx_confine_landlock_abi(void)
{
    return 0;
}

cx_status cx_confine_landlock(const cx_confine_path *paths, size_t count, bool network, cx_err *err)
{
    (void)paths;
    (void)count;
    (void)network;
    return fail_unsupported("Landlock", err);
}

cx_status cx_confine_seccomp(cx_file filter, cx_err *err)
{
    (void)filter;
    return fail_unsupported("filter of system calls", err);
}

bool cx_confine_has_seccomp(void)
{
    return false;
}

cx_status cx_confine_privileges(cx_err *err)
{
    return fail_unsupported("way to refuse set-uid programs", err);
}

void cx_confine_limits(const cx_spawn_limits *limits)
{
    cx_spawn_limit_self(limits);
}

cx_status cx_confine_memory_file(cx_file *out, cx_err *err)
{
    *out = cx_system_unnamed_file();
    return *out < 0 ? cx_fail_os(err, errno, "cannot make an unnamed file") : CX_SUCCESS;
}

cx_status cx_confine_pipe(cx_file out[2], cx_err *err)
{
    return cx_system_pipe(out) ? CX_SUCCESS : cx_fail_os(err, errno, "cannot make a pipe");
}

void cx_confine_close_on_exec(void)
{
    cx_system_close_on_exec();
}

int cx_confine_exec(cx_file executable, const char *path, char *const *argv)
{
    if (executable >= 0)
        return ENOTSUP;
    (void)execve(path, argv, (char *const *)(uintptr_t)cx_machine_environment());
    return errno;
}

cx_status cx_confine_watched(cx_file control, bool alone, cx_err *err)
{
    (void)control;
    (void)alone;
    return fail_unsupported("way to end what a program leaves running", err);
}

void cx_confine_pause(uint32_t milliseconds)
{
    (void)poll(NULL, 0, (int)milliseconds);
}
