/*
 * tests_demand.h - whether the report of a test command is what its contract demands (run.md §12).
 *
 *     CX_TRY(cx_tests_leftover_read(&demand, text, folder, arena, &left, err));     one run's
 *     report CX_TRY(cx_tests_check_requirement(&demand, &left, &baseline, arena, &verdict, err));
 *
 * What cannot be read is a fact about the run, and then the demand does not hold.
 */
#ifndef CX_BUNDLE_TESTS_DEMAND_H
#define CX_BUNDLE_TESTS_DEMAND_H

#include "rules/api.h"

/* What one run of a command left. */
typedef struct cx_tests_leftover {
    cx_str trouble; /* why there is no report; without data: there is */
    int exit_code;
    cx_tests_report report;
} cx_tests_leftover;

typedef struct cx_tests_verdict {
    bool holds;
    cx_str problem; /* one clause; empty when it holds */
    /* Of test_report.json and TEST_COMMAND_RESULT: {format, path (o), min_tests, same_as_baseline,
     * holds, problem (o), passed, failed, skipped (o: with a report), lost (o), baseline (o)}. */
    cx_json json;
} cx_tests_verdict;

CX_RESULT cx_tests_leftover_read(const cx_tests_requirement *demand, cx_str text, cx_str root,
                                 cx_arena *arena, cx_tests_leftover *out, cx_err *err);
/* `baseline` NULL: it was not run, which a demand for same_as_baseline does not survive. */
CX_RESULT cx_tests_check_requirement(const cx_tests_requirement *demand,
                                     const cx_tests_leftover *made,
                                     const cx_tests_leftover *baseline, cx_arena *arena,
                                     cx_tests_verdict *out, cx_err *err);

#endif
