/*
 * run.h - the parts of the run suite's runner.
 *
 * A folder of cases holds files {note, context.., cases: [{id, .., expected}]} (README.md of
 * tests/vectors/run).  Each file is a theme: one line of the table in run.c, its functions in
 * run_<area>.c.
 */
#ifndef CX_TESTS_RUNNER_RUN_H
#define CX_TESTS_RUNNER_RUN_H

#include "tests/runner/runner.h"

typedef struct run_theme {
    const char *file;
    /* Answers one case without looking at its `expected`; r->root is the whole file.  NULL: no
     * function answers this file, which is reported. */
    runner_answer got;
    runner_answer expect; /* NULL: the case's member `expected` */
    runner_agrees agrees; /* NULL: `got` must equal what is expected */
} run_theme;

/* run_command.c */
cx_status run_command_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);
cx_status run_trivial_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);

/* run_diff.c */
cx_status run_diff_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);
cx_status run_attack_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);
cx_status run_isolation_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);

/* run_lock.c */
cx_status run_lock_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);

/* run_tamper.c */
cx_status run_tamper_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);
bool run_tamper_agrees(const cx_json *expected, const cx_json *got);
cx_status run_golden_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);
cx_status run_golden_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err);

#endif
