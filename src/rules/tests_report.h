/*
 * tests_report.h - reads the reports of test runners (run.md §12).
 *
 * An exit code says only how the process ended.  A report names the tests: it is read completely or
 * rejected, and compared with the report of the baseline.  It is written by the process that runs
 * the code under test, which can write any report it likes.
 *
 *   junit    JUnit's XML: pytest --junitxml, node --test-reporter=junit, gotestsum, and others.  No
 *            document type, no entities but the five of XML
 *   tap      TAP version 13 or 14: node --test --test-reporter=tap, prove, and others.  Points that
 *            have subtests are not counted; they prefix the names of their subtests: "parent >
 *            child"
 *   go-json  the lines of go test -json: "package.Test/sub"
 *   cargo    the output of libtest for cargo test, one block a test program
 *
 * A test that its runner expects to fail, and that does, counts as skipped: it proves nothing.
 *
 *   I1  A report is read completely: what is not understood is an error, never left out.
 *   I2  For any input, time and memory are bounded by its size and the limits below.
 */
#ifndef CX_RULES_TESTS_REPORT_H
#define CX_RULES_TESTS_REPORT_H

#include "rules/run.h"

#define CX_TESTS_REPORT_BYTES_MAX (UINT32_C(16) << 20)
#define CX_TESTS_NAME_BYTES_MAX 4096                  /* of one test */
#define CX_TESTS_NAMES_BYTES_MAX (UINT32_C(64) << 20) /* of all tests of a report */
#define CX_TESTS_DEPTH_MAX 64                         /* of elements, and of subtests */
#define CX_TESTS_COUNT_MAX 1000000                    /* of a report, and of min_tests */

typedef enum cx_tests_format {
    CX_TESTS_NO_REPORT,
    CX_TESTS_JUNIT,
    CX_TESTS_TAP,
    CX_TESTS_GO_JSON,
    CX_TESTS_CARGO
} cx_tests_format;

/* The member `report` of an acceptance test. */
typedef struct cx_tests_requirement {
    cx_tests_format format;
    cx_str path; /* relative to the top of the checkout; without data: the standard output */
    uint32_t min_tests;
    bool same_as_baseline;
} cx_tests_requirement;

typedef enum cx_tests_state { CX_TEST_PASSED, CX_TEST_FAILED, CX_TEST_SKIPPED } cx_tests_state;

typedef struct cx_tests_one {
    cx_str name; /* valid UTF-8, in the arena */
    cx_tests_state state;
} cx_tests_one;

typedef struct cx_tests_report {
    const cx_tests_one *tests; /* in the order of the report; a name may occur more than once */
    size_t count;
    size_t passed, failed, skipped;
} cx_tests_report;

/* A test that passed in one report and did not in another. */
typedef struct cx_tests_regression {
    cx_str name;
    bool skipped; /* else it is missing, or occurs less often */
} cx_tests_regression;

/* "junit", "tap", "go-json", "cargo"; CX_TESTS_NO_REPORT for anything else. */
cx_tests_format cx_tests_format_parse(cx_str name);
const char *cx_tests_format_name(cx_tests_format format);

/*
 * Reads all of `text`; `root`, the folder that the tests ran in (empty = none), is removed from
 * their names. CX_E_FORMAT with the line for a malformed report, CX_E_LIMIT for one that is too
 * large.
 */
CX_RESULT cx_tests_report_read(cx_tests_format format, cx_str text, cx_str root, cx_arena *arena,
                               cx_tests_report *out, cx_err *err);

/* Tests of `before` that passed, and did not pass as often in `now`, in the order of `before`. */
CX_RESULT cx_tests_report_regressions(const cx_tests_report *before, const cx_tests_report *now,
                                      cx_arena *arena, const cx_tests_regression **out,
                                      size_t *out_count, cx_err *err);

#endif
