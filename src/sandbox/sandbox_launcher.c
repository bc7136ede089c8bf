/*
 * sandbox_launcher.c - the program that bubblewrap starts inside (run.md §16): cortex itself, in
 * another mode.
 *
 *     cortex sandbox-stage [--alone] [--landlock] [--filter] [--online] [--egress] [--opened]
 *                          --limits A,B,C,D,E
 *                          [--write PATH].. [--read PATH].. --program PATH -- ARGV..
 *
 * It forks: one half watches, so that a program can be asked to end and nothing outlives it; the
 * other restricts itself by Landlock and seccomp, sets limits, reports what it did, and executes
 * the program.
 *
 *   L1  If a requested restriction cannot be applied, the launcher ends: the program is never
 *       started with fewer.
 *   L2  The program inherits 0, 1 and 2 only; it cannot write the report.
 *   L3  The listening socket of a proxy leaves before anything else runs here: no process inside
 *       has it, or the channel over which it left.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/api.h"
#include "sandbox/sandbox_internal.h"

enum { PATHS_MAX = 256, EXIT_LAUNCHER = 125 };

typedef struct launcher {
    bool alone, landlock, filter, online, egress, opened;
    cx_spawn_limits limits;
    bool limited;
    cx_confine_path paths[PATHS_MAX];
    size_t path_count;
    const char *program;
    char **argv;
    cx_sandbox_report report;
} launcher;

static bool read_limits(const char *text, cx_spawn_limits *out)
{
    uint64_t *const all[] = {&out->cpu_seconds, &out->processes, &out->file_bytes, &out->open_files,
                             &out->memory_bytes};
    for (size_t i = 0; i < CX_COUNT_OF(all); i++) {
        char *end = NULL;
        *all[i] = strtoull(text, &end, 10);
        if (end == text || *end != (i + 1 < CX_COUNT_OF(all) ? ',' : 0))
            return false;
        text = end + 1;
    }
    return true;
}

static bool read_arguments(launcher *s, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--") == 0) {
            s->argv = argv + i + 1;
            return i + 1 < argc && s->program != NULL && s->limited;
        }
        bool *flag = strcmp(name, "--alone") == 0      ? &s->alone
                     : strcmp(name, "--landlock") == 0 ? &s->landlock
                     : strcmp(name, "--filter") == 0   ? &s->filter
                     : strcmp(name, "--online") == 0   ? &s->online
                     : strcmp(name, "--egress") == 0   ? &s->egress
                     : strcmp(name, "--opened") == 0   ? &s->opened
                                                       : NULL;
        if (flag != NULL) {
            *flag = true;
            continue;
        }
        if (++i == argc)
            return false;
        bool writes = strcmp(name, "--write") == 0;
        if (strcmp(name, "--program") == 0)
            s->program = argv[i];
        else if (strcmp(name, "--limits") == 0)
            s->limited = read_limits(argv[i], &s->limits);
        else if ((writes || strcmp(name, "--read") == 0) && s->path_count < PATHS_MAX)
            s->paths[s->path_count++] = (cx_confine_path){argv[i], writes};
        else
            return false;
    }
    return false;
}

static void write_report(const launcher *s)
{
    const cx_io *io = cx_io_system();
    (void)io->pwrite(io, LAUNCHER_FD_REPORT, &s->report, sizeof s->report, 0);
}

static _Noreturn void fail_launch(launcher *s, const char *what, const cx_err *err)
{
    (void)snprintf(s->report.error, sizeof s->report.error, "%s: %s", what, err->message);
    write_report(s);
    (void)fprintf(stderr, "cortex: sandbox: %s\n", s->report.error);
    _Exit(EXIT_LAUNCHER);
}

/* L3 */
static void pass_listener(launcher *s)
{
    cx_err err = {0};
    cx_socket listener = CX_SOCKET_NONE;
    if (cx_failed(cx_stream_listen_loopback(CX_SANDBOX_EGRESS_PORT, &listener, &err)) ||
        cx_failed(cx_stream_pass(LAUNCHER_FD_EGRESS, listener, &err)))
        fail_launch(s, "the proxy", &err);
    cx_net_close(listener);
    cx_net_close(LAUNCHER_FD_EGRESS);
}

static void apply_restrictions(launcher *s)
{
    cx_err err = {0};
    if (cx_failed(cx_confine_privileges(&err)))
        fail_launch(s, "privileges", &err);
    if (s->landlock) {
        if (cx_failed(cx_confine_landlock(s->paths, s->path_count, s->online, &err)))
            fail_launch(s, "landlock", &err);
        s->report.landlock_abi = cx_confine_landlock_abi();
        s->report.layers |= CX_SANDBOX_LANDLOCK;
    }
    if (s->filter) {
        if (cx_failed(cx_confine_seccomp(LAUNCHER_FD_FILTER, &err)))
            fail_launch(s, "seccomp", &err);
        s->report.layers |= CX_SANDBOX_SECCOMP;
    }
    cx_confine_limits(&s->limits); /* last: the limits apply to the program, not to the launcher */
    s->report.layers |= CX_SANDBOX_RLIMITS;
}

int cx_sandbox_launcher_main(int argc, char **argv)
{
    static launcher s = {.report = {.magic = LAUNCHER_MAGIC}};
    cx_err err = {0};
    if (!read_arguments(&s, argc, argv)) {
        (void)snprintf(err.message, sizeof err.message, "not called by a sandbox");
        fail_launch(&s, "arguments", &err);
    }
    cx_confine_close_on_exec(); /* L2 */
    if (s.egress)
        pass_listener(&s);
    if (cx_failed(cx_confine_watched(LAUNCHER_FD_CONTROL, s.alone, &err)))
        fail_launch(&s, "watching", &err);
    apply_restrictions(&s);
    write_report(&s);
    int code = cx_confine_exec(s.opened ? LAUNCHER_FD_PROGRAM : CX_FILE_NONE, s.program, s.argv);
    s.report.exec_errno = code;
    write_report(&s);
    (void)fprintf(stderr, "cortex: sandbox: cannot execute %s: %s\n", s.program, strerror(code));
    _Exit(code == ENOENT ? 127 : 126);
}
