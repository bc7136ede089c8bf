/*
 * machine_other.c - the part of machine.h that macOS has calls of its own for, on a POSIX system of
 * which nothing else is known.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/machine.h"
#include "os/proc.h"

extern char **environ;

const char *const cx_machine_opener = "xdg-open";
const bool cx_machine_has_desktop = false;

/* The file that argv[0] led to when the process began. */
static char program[PATH_MAX];

void cx_machine_begin(int argc, char *const *argv)
{
    cx_buf path;
    cx_buf_init(&path, cx_alloc_default());
    if (argc > 0 && !cx_failed(cx_proc_find(argv[0], &path, NULL))) {
        const char *found = cx_buf_z(&path);
        if (found == NULL || realpath(found, program) == NULL)
            program[0] = 0;
    }
    cx_buf_done(&path);
}

const char *cx_machine_program(void)
{
    return program;
}

const char *const *cx_machine_environment(void)
{
    return (const char *const *)(uintptr_t)environ;
}

bool cx_machine_resident(uint64_t *out_bytes)
{
    (void)out_bytes;
    return false;
}

cx_status cx_machine_boot_id(cx_buf *out, cx_err *err)
{
    return cx_buf_check(out, err);
}

/* A child that has ended, and that we have not waited for. */
static bool is_own_zombie(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Only whether there is one: a process that got the number of another is taken for it. */
cx_status cx_machine_process_start(uint64_t pid, uint64_t *out, cx_err *err)
{
    if (pid == 0 || pid > INT_MAX || (kill((pid_t)pid, 0) != 0 && errno == ESRCH))
        return cx_fail(err, CX_E_NOT_FOUND, "there is no process %llu", (unsigned long long)pid);
    if (is_own_zombie((pid_t)pid))
        return cx_fail(err, CX_E_NOT_FOUND, "process %llu has ended", (unsigned long long)pid);
    *out = 0;
    return CX_SUCCESS;
}

void cx_machine_command(uint64_t pid, size_t words, cx_buf *out)
{
    (void)pid;
    (void)words;
    (void)out;
}
