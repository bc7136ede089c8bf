/*
 * civil.h - the proleptic Gregorian calendar, in UTC: days and dates, without a time zone or
 * locale.
 *
 * Days count from 1970-01-01.  The arithmetic uses years that begin in March, so that the leap day
 * is the last day of its year, in eras of 400 years (H. Hinnant, "chrono-compatible low-level date
 * algorithms").
 */
#ifndef CX_BASE_CIVIL_H
#define CX_BASE_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define CX_SECONDS_PER_DAY INT64_C(86400)

typedef struct cx_civil {
    int64_t year;
    unsigned month, day; /* from 1 */
} cx_civil;

/* `date` is a valid calendar date whose day number fits int64_t. */
int64_t cx_civil_days(cx_civil date);
cx_civil cx_civil_of_days(int64_t days);
/* Number of days in a month, 1..12. */
unsigned cx_civil_days_in(int64_t year, unsigned month);

/* A time as calendar fields, rounded down. */
typedef struct cx_civil_time {
    cx_civil date;
    unsigned hour, minute, second;
} cx_civil_time;
cx_civil_time cx_civil_of_seconds(int64_t seconds);

/* "90m", "12h", "30d", "4w", "7y" (of 365 days) in nanoseconds; more than zero, at most 100
 * years. */
bool cx_age_parse(cx_str text, int64_t *out_ns);

#endif
