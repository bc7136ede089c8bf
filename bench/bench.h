/*
 * bench.h - measuring for the programs of this folder.
 *
 * A *side* is a piece of work that is done again and again; the sides of one comparison take turns,
 * so that a busy machine slows all of them.  Rates are units of work a second of wall time; the CPU
 * time next to it shows whether another process had the core.
 *
 *     ID what: ours X, reference Y, ratio Z [MIN..MAX] (target T): ok
 *
 * The ratio is the median of the turns' ratios where the sides took turns, so that a machine whose
 * speed drifts slows both of a pair; else that of the medians.  A row that cannot be measured here
 * is printed as skipped, never as ok.
 */
#ifndef CX_BENCH_BENCH_H
#define CX_BENCH_BENCH_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BENCH_TURNS 11
/* A turn repeats its work until it takes about this long: shorter ones measure cold caches. */
#define BENCH_TURN_SECONDS 0.03

/* Turns that are remembered; a side with more has none that pair with another's. */
#define BENCH_TURNS_MAX 64

typedef struct bench_rate {
    double min, median, max;         /* units a second */
    double cpu_share;                /* CPU time / wall time of all turns */
    size_t turns;                    /* 0 = not remembered */
    double by_turn[BENCH_TURNS_MAX]; /* units a second, in the order they were measured */
} bench_rate;

typedef struct bench_side {
    const char *name;
    void (*work)(void *arg);
    void *arg;
    double units; /* of work, done once */
    bench_rate rate;
} bench_side;

static inline double bench_seconds(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0)
        abort();
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The rate of turns that each did `units` of work in so many seconds; sorts them. */
static inline bench_rate bench_rate_of(double *seconds, size_t turns, double units,
                                       double cpu_share)
{
    bench_rate rate = {.cpu_share = cpu_share, .turns = turns <= BENCH_TURNS_MAX ? turns : 0};
    for (size_t i = 0; i < rate.turns; i++)
        rate.by_turn[i] = units / seconds[i];
    qsort(seconds, turns, sizeof *seconds, bench_compare);
    rate.min = units / seconds[turns - 1];
    rate.median = units / seconds[turns / 2];
    rate.max = units / seconds[0];
    return rate;
}

typedef struct bench_ratio {
    double min, median, max;
} bench_ratio;

/* Turn by turn where both have as many, else of the medians and what they can be at most. */
static inline bench_ratio bench_ratio_of(const bench_rate *ours, const bench_rate *reference)
{
    double ratios[BENCH_TURNS_MAX];
    size_t turns = ours->turns;
    if (turns == 0 || turns != reference->turns)
        return (bench_ratio){ours->min / reference->max, ours->median / reference->median,
                             ours->max / reference->min};
    for (size_t i = 0; i < turns; i++)
        ratios[i] = ours->by_turn[i] / reference->by_turn[i];
    qsort(ratios, turns, sizeof *ratios, bench_compare);
    return (bench_ratio){ratios[0], ratios[turns / 2], ratios[turns - 1]};
}

/* CX_BENCH_CLOCK=cpu counts CPU seconds instead of wall time: on a machine that others use too,
 * they say what one core does.  They say nothing about rows with several threads or a disk. */
static inline bool bench_by_cpu(void)
{
    const char *clock = getenv("CX_BENCH_CLOCK");
    return clock != NULL && strcmp(clock, "cpu") == 0;
}

/* Does the work so often; returns the wall time of one, and adds up wall and CPU time. */
static inline double bench_turn(const bench_side *side, size_t times, double *wall, double *cpu)
{
    double wall_before = bench_seconds(CLOCK_MONOTONIC);
    double cpu_before = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t i = 0; i < times; i++)
        side->work(side->arg);
    double took = bench_seconds(CLOCK_MONOTONIC) - wall_before;
    double used = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_before;
    *cpu += used;
    *wall += took;
    return (bench_by_cpu() ? used : took) / (double)times;
}

/* Measures all sides, taking turns, after two runs each to warm up and to see how long one takes.
 */
static inline void bench_measure(bench_side *sides, size_t count)
{
    double seconds[8][BENCH_TURNS], cpu[8] = {0}, wall[8] = {0};
    size_t times[8];
    if (count > 8)
        abort();
    for (size_t i = 0; i < count; i++) {
        double ignored = 0, once;
        (void)bench_turn(&sides[i], 1, &ignored, &ignored);
        once = bench_turn(&sides[i], 1, &ignored, &ignored);
        times[i] = once < BENCH_TURN_SECONDS ? 1 + (size_t)(BENCH_TURN_SECONDS / once) : 1;
    }
    for (size_t turn = 0; turn < BENCH_TURNS; turn++)
        for (size_t i = 0; i < count; i++)
            seconds[i][turn] = bench_turn(&sides[i], times[i], &wall[i], &cpu[i]);
    for (size_t i = 0; i < count; i++)
        sides[i].rate = bench_rate_of(seconds[i], BENCH_TURNS, sides[i].units, cpu[i] / wall[i]);
}

/* One line for a side; `scale` divides the rate, as 1e6 for MB/s. */
static inline void bench_print_side(const char *name, const bench_rate *rate, double scale,
                                    const char *unit)
{
    printf("     %-28s min %9.4g  median %9.4g  max %9.4g %s  cpu/wall %.2f\n", name,
           rate->min / scale, rate->median / scale, rate->max / scale, unit, rate->cpu_share);
}

/* The row; false when below the target.  A target of 0 is for information only. */
static inline bool bench_print_row(const char *id, const char *what, const bench_rate *ours,
                                   const bench_rate *reference, double scale, double target)
{
    bench_ratio ratio = bench_ratio_of(ours, reference);
    printf("%s %s: ours %.4g, reference %.4g, ratio %.2f [%.2f..%.2f]", id, what,
           ours->median / scale, reference->median / scale, ratio.median, ratio.min, ratio.max);
    if (target > 0)
        printf(" (target %g): %s\n", target, ratio.median >= target ? "ok" : "below");
    else
        printf("\n");
    return target <= 0 || ratio.median >= target;
}

static inline void bench_print_skipped(const char *id, const char *what, double target,
                                       const char *why)
{
    printf("%s %s: ours -, reference -, ratio - (target %g): skipped (%s)\n", id, what, target,
           why);
}

#endif
