/*
 * start_linux.c - system.h on Linux: programs.
 *
 * A child shares this process's memory until its exec (clone with CLONE_VM | CLONE_VFORK, as in
 * posix_spawn), so the cost of a start does not depend on the size of this process.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/system/system.h"

/* The child needs a few hundred bytes; a sanitizer's interceptors would need more. */
#define CHILD_STACK_BYTES 32768

/* Sanitizers track a process's memory; a child that shares it would corrupt that state. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SPAWN_BY_FORK 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define SPAWN_BY_FORK 1
#endif
#endif

const bool cx_system_executes_files = true;

pid_t cx_system_start(int (*child_main)(void *arg), void *arg)
{
#ifdef SPAWN_BY_FORK
    pid_t pid = fork();
    if (pid == 0)
        (void)child_main(arg);
    return pid;
#else
    _Alignas(16) unsigned char stack[CHILD_STACK_BYTES];
    return clone(child_main, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, arg);
#endif
}

/* Before Linux 5.3 there is none. */
int cx_system_process_file(pid_t child)
{
    return (int)syscall(SYS_pidfd_open, child, 0);
}

bool cx_system_die_with(pid_t starter)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == starter;
}

void cx_system_execute(int file, char *const *argv, char *const *envp)
{
    (void)syscall(SYS_execveat, file, "", argv, envp, AT_EMPTY_PATH);
}

void cx_system_close_on_exec(void)
{
    if (syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    /* Before Linux 5.11. */
    struct rlimit files;
    int end = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < 1048576
                  ? (int)files.rlim_cur
                  : 1048576;
    for (int file = 3; file < end; file++)
        (void)fcntl(file, F_SETFD, FD_CLOEXEC);
}

/* By the kernel's own call: C libraries differ in the type of the number of a limit. */
void cx_system_limit(int which, uint64_t value)
{
    if (value == 0)
        return;
    struct {
        uint64_t soft, hard;
    } now, wanted = {value, value};
    /* Never raises a limit. */
    if (syscall(SYS_prlimit64, 0, which, NULL, &now) == 0 && now.hard < value)
        wanted.soft = wanted.hard = now.hard;
    (void)syscall(SYS_prlimit64, 0, which, &wanted, NULL);
}
