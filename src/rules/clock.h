/*
 * clock.h - times in documents, read (run.md §1 R6).
 */
#ifndef CX_RULES_CLOCK_H
#define CX_RULES_CLOCK_H

#include "rules/run.h"

/* RFC 3339 with 'Z' or an offset, at most nine digits of a second's fraction; nanoseconds since
 * 1970.  A leap second is not accepted.  False when it is no such time, or before 1970. */
bool cx_run_time_parse(cx_str text, int64_t *out_ns);

#endif
