/*
 * bench_memories.c - durable changes of memories in a data directory that has many (D6, D10 of
 * docs/scale.md).
 *
 *     bench_memories FOLDER COUNT         makes FOLDER with COUNT memories of the agent "bench",
 *                                         says "ready", and measures a turn for each line that it
 *                                         reads
 *     bench_memories FOLDER COUNT CHANGE  changes CHANGE of its memories, 256 a commit, and ends
 *     bench_memories FOLDER COUNT CHANGE snapshots SNAPSHOTS
 *                                         the same, with so many snapshots between
 *     bench_memories FOLDER COUNT AT_ONCE SECONDS
 *                                         changes memories for so long without a rest, AT_ONCE a
 *                                         commit, each synced: memories a second of each ten
 *                                         seconds, and of the second half of all
 *
 * A turn commits changes of memories at random, 1, 16 and 256 a commit, a second of each, each
 * commit synced; then the same with both roots after each commit.  It prints a line
 *
 *     D6@N ours RATE
 *
 * of each: memories a second.  bench/older.py runs it of this build and of an older one in turn.
 * FOLDER is made without syncs: it must not be trusted after a loss of power.
 */
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/ledger_home.h"
#include "ledger/snapshot.h"
#include "recorder/recorder.h"

enum { AT_ONCE = 256 };

static bool syncs;

static int sync_or_not(const cx_io *io, cx_file file, bool data_only)
{
    return syncs ? cx_io_system()->sync(io, file, data_only) : 0;
}

/* Of a stream of numbers that is the same in each build. */
static uint64_t some_memory(uint64_t count)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 20) % count;
}

static void put_memories(cx_home *home, uint64_t first, uint64_t count, uint64_t among)
{
    static int64_t time = 1700000000;
    cx_txn *txn;
    time += among != 0;
    bench_must(cx_txn_begin(home, CX_STR("bench"), &txn, &bench_err));
    for (uint64_t i = 0; i < count; i++)
        bench_put_memory(txn, among != 0 ? some_memory(among) : first + i, time);
    bench_must(cx_txn_commit(txn, &bench_err));
}

static void measure(cx_home *home, uint64_t memories, uint64_t at_once, bool roots)
{
    double begin = bench_seconds(CLOCK_MONOTONIC), passed;
    uint64_t done = 0;
    do {
        put_memories(home, 0, at_once, memories);
        if (roots)
            bench_roots(home);
        done += at_once;
        passed = bench_seconds(CLOCK_MONOTONIC) - begin;
    } while (passed < 1);
    printf("D6%s@%llu ours %.0f\n", roots ? "r" : "", (unsigned long long)at_once,
           (double)done / passed);
}

/* What waits for the tables after the first half is as much as ever may. */
static void sustain(cx_home *home, uint64_t memories, uint64_t at_once, double seconds)
{
    const double begin = bench_seconds(CLOCK_MONOTONIC);
    double passed = 0, told = 0, half = 0;
    uint64_t done = 0, done_told = 0, done_half = 0;
    while (passed < seconds) {
        put_memories(home, 0, at_once, memories);
        done += at_once;
        passed = bench_seconds(CLOCK_MONOTONIC) - begin;
        if (passed - told >= 10) {
            printf("%.0f s: %.0f a second\n", passed, (double)(done - done_told) / (passed - told));
            (void)fflush(stdout);
            told = passed;
            done_told = done;
        }
        if (half == 0 && passed >= seconds / 2) {
            half = passed;
            done_half = done;
        }
    }
    printf("D6s@%llu ours %.0f\n", (unsigned long long)at_once,
           (double)(done - done_half) / (passed - half));
}

static void take_turns(cx_home *home, uint64_t memories)
{
    char line[16];
    printf("ready\n");
    (void)fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        for (int roots = 0; roots < 2; roots++)
            for (uint64_t at_once = 1; at_once <= AT_ONCE; at_once *= 16)
                measure(home, memories, at_once, roots != 0);
        printf("done\n");
        (void)fflush(stdout);
    }
}

static cx_home *open_home(const char *folder, size_t waiting)
{
    static cx_io io;
    io = *cx_io_system();
    io.sync = sync_or_not;
    cx_home_options options = {.io = &io, .derivers = &cx_recorder_deriver, .deriver_count = 1};
    cx_home *home;
#ifdef CX_BENCH_WAITING /* 0.2.0 has no such option */
    options.waiting_bytes = waiting;
#else
    (void)waiting;
#endif
    if (access(folder, F_OK) != 0)
        bench_must(cx_home_create(folder, CX_SCHEME_CORTEX_1, &options, &bench_err));
    bench_must(cx_home_open(folder, &options, &home, &bench_err));
    return home;
}

static void make_snapshot(cx_home *home)
{
    cx_arena arena;
    cx_manifest made;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    bench_must(cx_snapshot_make(home, CX_STR("bench"), CX_STR("explicit"),
                                INT64_C(1700000000000000000), &arena, &made, &bench_err));
    cx_arena_done(&arena);
}

/* Without syncs; changes of some among so many, or of all in order.  The first snapshot is before
 * the first change. */
static void fill(const char *folder, uint64_t count, uint64_t among, uint64_t snapshots)
{
    cx_home *home = open_home(folder, (size_t)768 << 20);
    uint64_t made = 0;
    for (uint64_t i = 0; i < count; i += AT_ONCE) { /* the last commit is whole, too */
        for (; made < snapshots && i >= made * count / snapshots; made++)
            make_snapshot(home);
        put_memories(home, i, AT_ONCE, among);
    }
    bench_must(cx_home_close(home, &bench_err));
}

int main(int argc, char **argv)
{
    const bool spreads = argc == 6 && strcmp(argv[4], "snapshots") == 0;
    if ((argc < 3 || argc > 5) && !spreads) {
        (void)fprintf(stderr, "usage: bench_memories FOLDER COUNT [CHANGE [snapshots SNAPSHOTS] |"
                              " AT_ONCE SECONDS]\n");
        return 2;
    }
    const uint64_t memories = strtoull(argv[2], NULL, 10);
    if (access(argv[1], F_OK) != 0)
        fill(argv[1], memories, 0, 0);
    if (argc == 4 || spreads) {
        fill(argv[1], strtoull(argv[3], NULL, 10), memories,
             spreads ? strtoull(argv[5], NULL, 10) : 0);
        return 0;
    }
    syncs = true;
#ifdef CX_BENCH_WAITING
    cx_alloc_return_large(); /* as the server does */
#endif
    cx_home *home = open_home(argv[1], 0);
    if (argc == 5)
        sustain(home, memories, strtoull(argv[3], NULL, 10), strtod(argv[4], NULL));
    else
        take_turns(home, memories);
    bench_must(cx_home_close(home, &bench_err));
    return 0;
}
