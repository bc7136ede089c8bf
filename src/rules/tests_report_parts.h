/*
 * tests_report_parts.h - shared by the readers of tests_report.h, and internal to them.
 */
#ifndef CX_RULES_TESTS_REPORT_PARTS_H
#define CX_RULES_TESTS_REPORT_PARTS_H

#include "base/api.h"
#include "rules/tests_report.h"

typedef struct cx_tests_reader {
    cx_arena *arena;
    cx_str text; /* valid UTF-8 */
    cx_str root;
    size_t line; /* number of the current line, from 1 */
    size_t at;   /* of the next byte */
    CX_VEC(cx_tests_one) tests;
    uint64_t name_bytes; /* of all names created */
    cx_err *err;
} cx_tests_reader;

/* The next line without its end; false after the last one. */
bool cx_tests_line(cx_tests_reader *r, cx_str *out);
/* CX_E_FORMAT: "line 7: <message>". */
cx_status cx_tests_fail(cx_tests_reader *r, const char *format, ...) CX_PRINTF(2, 3);
/* Adds a test, named by `group`, `between` and `name`, or by `name` alone when `group` is empty. */
cx_status cx_tests_add(cx_tests_reader *r, cx_str group, const char *between, cx_str name,
                       cx_tests_state state);
/* Puts "group > " before the names of the tests from `first` on. */
cx_status cx_tests_group(cx_tests_reader *r, size_t first, cx_str group);
/* A decimal number of at most nine digits, and nothing else. */
bool cx_tests_number(cx_str text, uint32_t *out);
/* For "%.*s": at most 80 bytes, whole characters. */
int cx_tests_shown(cx_str text);

cx_status cx_tests_read_junit(cx_tests_reader *r);
cx_status cx_tests_read_tap(cx_tests_reader *r);
cx_status cx_tests_read_go_json(cx_tests_reader *r);
cx_status cx_tests_read_cargo(cx_tests_reader *r);

#endif
