/*
 * fuzz_tests_report.c - any bytes as the report of a test runner: it is read whole or refused, and
 * a report that is compared with itself has lost nothing.
 */
#include <string.h>

#include "base/utf8.h"
#include "fuzz/fuzz.h"
#include "rules/tests_report.h"

static void check_report(const cx_tests_report *report, cx_arena *arena)
{
    const cx_tests_regression *lost;
    size_t count, states[3] = {0};
    cx_err err;
    for (size_t i = 0; i < report->count; i++) {
        FUZZ_CHECK(report->tests[i].name.size <= CX_TESTS_NAME_BYTES_MAX);
        FUZZ_CHECK(cx_utf8_valid(report->tests[i].name));
        states[report->tests[i].state]++;
    }
    FUZZ_CHECK(states[CX_TEST_PASSED] == report->passed);
    FUZZ_CHECK(states[CX_TEST_FAILED] == report->failed);
    FUZZ_CHECK(states[CX_TEST_SKIPPED] == report->skipped);
    FUZZ_CHECK(!cx_failed(cx_tests_report_regressions(report, report, arena, &lost, &count, &err)));
    FUZZ_CHECK(count == 0);
}

/* The first byte says which format the rest is of. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_arena arena;
    cx_tests_report report;
    cx_err err;
    if (size == 0)
        return 0;
    cx_str text = {(const char *)data + 1, size - 1};
    cx_tests_format format = (cx_tests_format)(CX_TESTS_JUNIT + data[0] % 4);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    if (!cx_failed(cx_tests_report_read(format, text, CX_STR("/src"), &arena, &report, &err)))
        check_report(&report, &arena);
    cx_arena_done(&arena);
    return 0;
}
