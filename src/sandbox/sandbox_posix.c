/*
 * sandbox_posix.c - sandbox.h where there is no sandbox: every call says so, and nothing runs
 * without one.
 *
 * A sandbox is made of what only Linux has: namespaces, mounts, seccomp, Landlock, control groups.
 */
#include "sandbox/sandbox.h"

#include <stdio.h>

/* Never made. */
struct cx_sandbox_child {
    char none;
};

cx_status cx_sandbox_supported(cx_err *err)
{
    return cx_fail(err, CX_E_UNSUPPORTED,
                   "needs Linux: agents and tests are run in a sandbox of its namespaces, seccomp "
                   "filters and Landlock; use this command on Linux, in a virtual machine or "
                   "container if need be");
}

cx_status cx_sandbox_open(const cx_sandbox_options *options, cx_sandbox **out, cx_err *err)
{
    (void)options;
    (void)out;
    return cx_sandbox_supported(err);
}

void cx_sandbox_close(cx_sandbox *box)
{
    CX_ASSERT(box == NULL);
}

const char *cx_sandbox_program(const cx_sandbox *box, const cx_sandbox_spec *spec)
{
    (void)box;
    (void)spec;
    return "";
}

cx_status cx_sandbox_describe(const cx_sandbox *box, cx_sandbox_network network, cx_arena *arena,
                              cx_json *out, cx_err *err)
{
    (void)box;
    (void)network;
    (void)arena;
    (void)out;
    return cx_sandbox_supported(err);
}

cx_status cx_sandbox_run(const cx_sandbox *box, const cx_sandbox_spec *spec,
                         cx_sandbox_result *result, cx_err *err)
{
    (void)box;
    (void)spec;
    (void)result;
    return cx_sandbox_supported(err);
}

cx_status cx_sandbox_start(const cx_sandbox *box, const cx_sandbox_spec *spec,
                           cx_sandbox_child **out, cx_err *err)
{
    (void)box;
    (void)spec;
    (void)out;
    return cx_sandbox_supported(err);
}

cx_spawn_child *cx_sandbox_process(cx_sandbox_child *child)
{
    (void)child;
    return NULL;
}

cx_status cx_sandbox_end(cx_sandbox_child *child, uint64_t wait_ms, cx_sandbox_result *result,
                         cx_err *err)
{
    (void)wait_ms;
    (void)result;
    return child == NULL ? CX_SUCCESS : cx_sandbox_supported(err);
}

cx_status cx_sandbox_env_names(const cx_sandbox *box, const cx_sandbox_spec *spec, cx_arena *arena,
                               cx_json *out, cx_err *err)
{
    (void)box;
    (void)spec;
    (void)arena;
    (void)out;
    return cx_sandbox_supported(err);
}

int cx_sandbox_launcher_main(int argc, char **argv)
{
    cx_err err;
    (void)argc;
    (void)argv;
    if (cx_failed(cx_sandbox_supported(&err)))
        (void)fprintf(stderr, "cortex: %s\n", err.message);
    return 126;
}
