/*
 * start_posix.c - the part of system.h that needs nothing but POSIX: programs.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "os/system/system.h"

#define FILES_MAX 1048576 /* of one process, when no lower limit is set */

const bool cx_system_executes_files = false;

pid_t cx_system_start(int (*child_main)(void *arg), void *arg)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(child_main(arg));
    return pid;
}

bool cx_system_die_with(pid_t starter)
{
    return getppid() == starter;
}

void cx_system_execute(int file, char *const *argv, char *const *envp)
{
    (void)file;
    (void)argv;
    (void)envp;
    errno = ENOTSUP;
}

void cx_system_close_on_exec(void)
{
    struct rlimit files;
    int end = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < FILES_MAX
                  ? (int)files.rlim_cur
                  : FILES_MAX;
    for (int file = 3; file < end; file++)
        (void)fcntl(file, F_SETFD, FD_CLOEXEC);
}
