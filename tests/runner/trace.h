/*
 * trace.h - the parts of the trace suite's runner.
 */
#ifndef CX_TESTS_RUNNER_TRACE_H
#define CX_TESTS_RUNNER_TRACE_H

#include "tests/runner/runner.h"

/* Each answers the cases of one `op`. */
typedef cx_status runner_trace_op(runner *r, const cx_json *item, cx_json *out, cx_err *err);

runner_trace_op runner_trace_chain, runner_trace_idma, runner_trace_ingest;

/* A time as traces spell it, in ns since 1970. */
CX_RESULT runner_trace_time(const cx_json *item, const char *name, int64_t *out, cx_err *err);

#endif
