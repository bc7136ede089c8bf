/*
 * bench_log.c - row G1, the log's part: durable appends of 4 KiB frames, 1, 16 and 256 a commit,
 * against a bare pwrite and fdatasync of as many bytes into a file that was filled with zeros
 * before.
 *
 *     bench_log [FOLDER [SECONDS]]     on the file system of FOLDER (.), SECONDS a row (6)
 *
 * The two sides take turns of a few milliseconds, each first every other time; a ratio is of two
 * neighbouring turns.  The log also makes its next segments in that time, which the bare file never
 * has to.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/thread.h"
#include "bench/bench.h"
#include "log/log.h"

enum { FRAME_SIZE = 4096, COUNT_MAX = 256, TURNS_MAX = 20000, RAW_SIZE = 64 << 20 };

static uint8_t contents[COUNT_MAX * FRAME_SIZE];
static char folder[4000], raw_path[4096];

static void must(cx_status status, const cx_err *err)
{
    if (cx_failed(status)) {
        fprintf(stderr, "bench_log: %s\n", err->message);
        exit(1);
    }
}

static void must_be(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "bench_log: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

/* --- the two sides ------------------------------------------------------------------------- */

typedef struct side {
    cx_log *log;
    int raw;
    off_t raw_at;
    size_t count; /* frames a commit */
} side;

static void raw_commit(side *s)
{
    size_t size = s->count * FRAME_SIZE;
    if (s->raw_at + (off_t)size > RAW_SIZE)
        s->raw_at = 0;
    must_be(pwrite(s->raw, contents, size, s->raw_at) == (ssize_t)size, "pwrite");
    must_be(fdatasync(s->raw) == 0, "fdatasync");
    s->raw_at += (off_t)size;
}

static void log_commit(side *s)
{
    static cx_log_frame frames[COUNT_MAX];
    cx_err err;
    uint64_t commit;
    for (size_t i = 0; i < s->count; i++)
        frames[i].guarded = cx_bytes_from(contents + i * FRAME_SIZE, FRAME_SIZE);
    must(cx_log_submit(s->log, frames, s->count, NULL, &commit, &err), &err);
    must(cx_log_wait(s->log, commit, &err), &err);
}

static void open_sides(side *s)
{
    static uint8_t zeros[1 << 20];
    cx_err err;
    must(cx_log_create(folder, NULL, &err), &err);
    must(cx_log_open(folder, NULL, &s->log, NULL, &err), &err);
    s->raw = open(raw_path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    must_be(s->raw >= 0 && posix_fallocate(s->raw, 0, RAW_SIZE) == 0, raw_path);
    for (off_t at = 0; at < RAW_SIZE; at += (off_t)sizeof zeros)
        must_be(pwrite(s->raw, zeros, sizeof zeros, at) == (ssize_t)sizeof zeros, "pwrite");
    must_be(fsync(s->raw) == 0, "fsync");
}

static bool remove_name(void *arg, const char *name)
{
    char path[4300];
    (void)arg;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)unlink(path);
    return true;
}

static void close_sides(side *s)
{
    cx_log_close(s->log);
    (void)close(s->raw);
    (void)unlink(raw_path);
    (void)cx_io_system()->list(cx_io_system(), folder, remove_name, NULL);
    (void)rmdir(folder);
}

/* --- measuring ----------------------------------------------------------------------------- */

static double timed(void (*work)(side *s), side *s, size_t times)
{
    double before = bench_seconds(CLOCK_MONOTONIC);
    for (size_t i = 0; i < times; i++)
        work(s);
    return (bench_seconds(CLOCK_MONOTONIC) - before) / (double)times;
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, bench_compare);
    return values[count / 2];
}

static void print_rates(const char *name, double *seconds, size_t turns, size_t count)
{
    bench_rate rate = bench_rate_of(seconds, turns, (double)count, 0);
    printf("     %-28s min %9.4g  median %9.4g  max %9.4g frames/s\n", name, rate.min, rate.median,
           rate.max);
}

static void measure(size_t count, double seconds)
{
    static double raw[TURNS_MAX], ours[TURNS_MAX], ratios[TURNS_MAX];
    side s = {.count = count};
    size_t turns = 0, times = count == 1 ? 8 : count == 16 ? 4 : 1;
    double raw_sum = 0, our_sum = 0;
    open_sides(&s);
    raw_commit(&s);
    log_commit(&s);
    double end = bench_seconds(CLOCK_MONOTONIC) + seconds;
    while (turns < TURNS_MAX && bench_seconds(CLOCK_MONOTONIC) < end) {
        if (turns % 2 == 0)
            raw[turns] = timed(raw_commit, &s, times);
        ours[turns] = timed(log_commit, &s, times);
        if (turns % 2 != 0)
            raw[turns] = timed(raw_commit, &s, times);
        raw_sum += raw[turns];
        our_sum += ours[turns];
        ratios[turns] = raw[turns] / ours[turns];
        turns++;
    }
    close_sides(&s);
    double middle = median(ratios, turns);
    printf("G1 log, %zu frames of 4 KiB a commit: ratio median %.2f (quarter to three quarters "
           "%.2f .. %.2f, min %.2f, max %.2f), of all time %.2f, %zu turns of %zu\n",
           count, middle, ratios[turns / 4], ratios[turns * 3 / 4], ratios[0], ratios[turns - 1],
           raw_sum / our_sum, turns, times);
    print_rates("log", ours, turns, count);
    print_rates("pwrite and fdatasync", raw, turns, count);
}

/* --- many callers -------------------------------------------------------------------------- */

enum { CALLERS = 16 };

typedef struct callers {
    cx_log *log;
    double end;
    atomic_ulong frames;
} callers;

static void one_caller(void *arg, unsigned index)
{
    callers *all = arg;
    cx_log_frame frame = {cx_bytes_from(contents + (size_t)index * FRAME_SIZE, FRAME_SIZE),
                          {NULL, 0}};
    while (bench_seconds(CLOCK_MONOTONIC) < all->end) {
        cx_err err;
        uint64_t commit;
        must(cx_log_submit(all->log, &frame, 1, NULL, &commit, &err), &err);
        must(cx_log_wait(all->log, commit, &err), &err);
        atomic_fetch_add(&all->frames, 1);
    }
}

static void measure_callers(double seconds)
{
    side s = {.count = 1};
    open_sides(&s);
    callers all = {.log = s.log, .end = bench_seconds(CLOCK_MONOTONIC) + seconds};
    cx_thread_team(CALLERS, one_caller, &all);
    unsigned long frames = atomic_load(&all.frames);
    printf("     %d callers, each a frame at a time: %.4g frames/s, %.1f frames a sync\n", CALLERS,
           (double)frames / seconds, (double)frames / (double)cx_log_durable(s.log));
    close_sides(&s);
}

static void measure_open(void)
{
    side s = {.count = 16};
    cx_err err;
    open_sides(&s);
    for (int i = 0; i < 200; i++)
        log_commit(&s);
    cx_log_close(s.log);
    double before = bench_seconds(CLOCK_MONOTONIC);
    must(cx_log_open(folder, NULL, &s.log, NULL, &err), &err);
    printf("     opening, a segment of 64 MiB with 12.5 MiB in it: %.1f ms\n",
           (bench_seconds(CLOCK_MONOTONIC) - before) * 1e3);
    close_sides(&s);
}

int main(int argc, char **argv)
{
    const char *where = argc > 1 ? argv[1] : ".";
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 6;
    if (strlen(where) > 3900)
        return 2;
    (void)snprintf(folder, sizeof folder, "%s/bench-log-%ld", where, (long)getpid());
    (void)snprintf(raw_path, sizeof raw_path, "%s/bench-log-%ld.raw", where, (long)getpid());
    for (size_t i = 0; i < sizeof contents; i++)
        contents[i] = (uint8_t)(i * 2654435761u >> 13);
    measure(1, seconds);
    measure(16, seconds);
    measure(256, seconds);
    measure_callers(seconds / 2);
    measure_open();
    return 0;
}
