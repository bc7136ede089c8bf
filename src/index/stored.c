/*
 * stored.c - reads a stored trace, or the redacted view of one (trace.md §2).
 */
#include "trace/api.h"

/* All fields are read even if some are missing: a view lacks only what its level removes. */
cx_status cx_trace_read_stored(cx_bytes bytes, cx_arena *arena, cx_trace *out,
                               cx_trace_problem *out_problem, cx_err *err)
{
    CX_TRY(cx_trace_read(bytes, arena, out, out_problem, err));
    if (out_problem->reason == CX_REASON_MISSING_FIELD && out_problem->path.data != NULL &&
        cx_str_starts(out_problem->path, CX_STR("/signature")))
        *out_problem = (cx_trace_problem){.reason = CX_REASON_NONE};
    return CX_SUCCESS;
}
