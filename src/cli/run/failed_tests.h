/*
 * failed_tests.h - the end of what failed tests printed, next to the refusal.
 */
#ifndef CX_CLI_RUN_FAILED_TESTS_H
#define CX_CLI_RUN_FAILED_TESTS_H

#include "cli/cli.h"

/* `tests` as cx_run_view_failed_tests makes it; each line is escaped (cx_shown_add). */
void cx_cli_add_failed_tests(cx_buf *out, const cx_json *tests);

#endif
