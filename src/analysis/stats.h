/*
 * stats.h - sums over values of which some are absent (NAN): what the detectors compute with.
 */
#ifndef CX_ANALYSIS_STATS_H
#define CX_ANALYSIS_STATS_H

#include <math.h>

#include "base/api.h"

/* A deviation below this is rounding: equal scores summed in another order differ by as much. */
#define CX_STATS_FLAT 1e-9

/* Mean and sample deviation in one pass (Welford): stable for many nearly equal values. */
typedef struct cx_stats {
    size_t count;
    double mean;
    double squares; /* sum of squared differences from the mean */
} cx_stats;

static inline void cx_stats_add(cx_stats *stats, double value)
{
    if (!isfinite(value))
        return;
    double before = value - stats->mean;
    stats->count++;
    stats->mean += before / (double)stats->count;
    stats->squares += before * (value - stats->mean);
}

/* NAN without values. */
static inline double cx_stats_mean(const cx_stats *stats)
{
    return stats->count == 0 ? (double)NAN : stats->mean;
}

/* Of a sample (n - 1); NAN below two values. */
static inline double cx_stats_deviation(const cx_stats *stats)
{
    return stats->count < 2 ? (double)NAN : sqrt(stats->squares / (double)(stats->count - 1));
}

/* How many different texts there are; those with NULL data are left out.  Sorts them. */
size_t cx_stats_distinct(cx_str *texts, size_t count);

#endif
