/*
 * machine_macos.c - the part of machine.h that is macOS's own.
 */
#include <crt_externs.h>
#include <errno.h>
#include <libproc.h>
#include <limits.h>
#include <mach-o/dyld.h>
#include <pthread.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include "os/machine.h"

#define BOOT_ID_BYTES 128

const char *const cx_machine_opener = "open";
const bool cx_machine_has_desktop = true;

static char program[PATH_MAX];
static pthread_once_t program_once = PTHREAD_ONCE_INIT;

void cx_machine_begin(int argc, char *const *argv)
{
    (void)argc;
    (void)argv;
}

static void find_program(void)
{
    uint32_t size = sizeof program;
    if (_NSGetExecutablePath(program, &size) != 0)
        program[0] = 0; /* longer than a path may be */
}

const char *cx_machine_program(void)
{
    (void)pthread_once(&program_once, find_program);
    return program;
}

/* A shared library cannot reach `environ`. */
const char *const *cx_machine_environment(void)
{
    return (const char *const *)(uintptr_t)*_NSGetEnviron();
}

bool cx_machine_resident(uint64_t *out_bytes)
{
    struct proc_taskinfo info;
    if (proc_pidinfo(getpid(), PROC_PIDTASKINFO, 0, &info, sizeof info) != (int)sizeof info)
        return false;
    *out_bytes = info.pti_resident_size;
    return true;
}

cx_status cx_machine_boot_id(cx_buf *out, cx_err *err)
{
    char id[BOOT_ID_BYTES] = {0};
    size_t size = sizeof id - 1;
    if (sysctlbyname("kern.bootsessionuuid", id, &size, NULL, 0) != 0)
        return cx_fail_os(err, errno, "cannot read which start of this machine it is");
    cx_buf_add_z(out, id);
    return cx_buf_check(out, err);
}

/* Microseconds since 1970.  Zombies are not found without being asked for. */
cx_status cx_machine_process_start(uint64_t pid, uint64_t *out, cx_err *err)
{
    struct proc_bsdinfo info;
    int size = pid > INT_MAX ? 0 : proc_pidinfo((int)pid, PROC_PIDTBSDINFO, 0, &info, sizeof info);
    if (size == (int)sizeof info) {
        *out = info.pbi_start_tvsec * 1000000u + info.pbi_start_tvusec;
        return CX_SUCCESS;
    }
    if (pid > INT_MAX || errno == ESRCH)
        return cx_fail(err, CX_E_NOT_FOUND, "there is no process %llu", (unsigned long long)pid);
    return cx_fail_os(err, errno, "cannot look at process %llu", (unsigned long long)pid);
}

void cx_machine_command(uint64_t pid, size_t words, cx_buf *out)
{
    char path[PROC_PIDPATHINFO_MAXSIZE];
    if (words != 0 && pid <= INT_MAX && proc_pidpath((int)pid, path, sizeof path) > 0)
        cx_buf_add_z(out, path);
}
