/*
 * runner.c - opens the runner of a name.
 */
#include "agent/runner.h"

cx_status cx_runner_open(const cx_runner_settings *settings, const cx_alloc *alloc, const cx_io *io,
                         cx_runner **out, cx_err *err)
{
    CX_ASSERT(settings != NULL && alloc != NULL && io != NULL);
    if (cx_str_is(settings->name, CX_RUNNER_NAME_SCRIPT))
        return cx_runner_script_open(settings, alloc, io, out, err);
    if (cx_str_is(settings->name, CX_RUNNER_NAME_EXEC))
        return cx_runner_exec_open(settings, alloc, io, out, err);
    if (cx_str_is(settings->name, CX_RUNNER_NAME_MCP))
        return cx_runner_mcp_open(settings, alloc, io, out, err);
    return cx_fail(err, CX_E_UNSUPPORTED, "runner '%.*s' is none of mcp, exec, replay-script",
                   (int)settings->name.size, settings->name.data);
}
