/*
 * clock.h - parses times in documents (run.md §1 R6).
 */
#ifndef CX_RULES_CLOCK_H
#define CX_RULES_CLOCK_H

#include "rules/run.h"

/* RFC 3339 with 'Z' or an offset, and at most nine digits of a second's fraction, as nanoseconds
 * since 1970. False for any other text, a leap second, or a time before 1970. */
bool cx_run_time_parse(cx_str text, int64_t *out_ns);

#endif
