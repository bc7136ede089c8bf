/*
 * bench_pages.c - trees in tables (src/pages): what a change, a key and a proof cost.
 *
 *     bench_pages [KEYS [FOLDER [RANGES]]]   1,000,000 keys, in a folder of its own under $TMPDIR
 *
 * With RANGES (a power of two) only so many of the 8,192 ranges of keys are there, below all pages
 * of the upper levels: so a tree of 1,000,000,000 keys fits on a disk (pages_sample.h).
 *
 * The tree is built at once from sorted random keys; then keys that are there get other values, in
 * transactions of several sizes.  Printed are least, median and greatest over the transactions, of
 * wall and of CPU time; bytes are what the process gave to files (wchar: the database's write-ahead
 * log and what is moved from it into the file) and what of it went to a device (write_bytes).
 *
 * Keys are 8 random bytes, ascending, and the hash of their number.  The 8 bytes are in a file, so
 * that the memory of this program is that of the trees.
 */
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "bench/bench.h"
#include "bench/must.h"
#include "bench/pages_sample.h"
#include "db/api.h"
#include "pages/api.h"

enum { TREE = 14, PROOFS = 2000, FLUSHES_MAX = 2000, SNAPSHOTS = 1000 };

static cx_err err;

typedef struct bench {
    char folder[400];
    char path[448];
    uint64_t key_count; /* of keys that are there */
    unsigned ranges;    /* 0 = the whole tree is there */
    FILE *words;
    cx_db *db;
    cx_pages *pages;
    cx_pages_anchor anchor;
    cx_pages_moment moment;
    uint64_t random;
} bench;

static cx_digest numbered(uint64_t number)
{
    return cx_digest_of(cx_bytes_from(&number, sizeof number));
}

static cx_digest random_key(bench *b)
{
    uint64_t number = bench_random(&b->random) % b->key_count, word;
    CX_ASSERT(fseek(b->words, (long)(8 * number), SEEK_SET) == 0 &&
              fread(&word, sizeof word, 1, b->words) == 1);
    return pages_sample_pair(word, number).key;
}

/* --- what the process uses ------------------------------------------------------------------- */

static uint64_t proc_number(const char *file, const char *name)
{
    char line[256];
    unsigned long long value = 0;
    FILE *f = fopen(file, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtoull(line + strlen(name), NULL, 10);
    if (f != NULL)
        (void)fclose(f);
    return value;
}

static void print_memory(const char *what)
{
    printf("     %-44s %.1f MB resident, peak %.1f MB\n", what,
           (double)proc_number("/proc/self/status", "VmRSS:") / 1024,
           (double)proc_number("/proc/self/status", "VmHWM:") / 1024);
}

static uint64_t file_size(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

static void print_spread(const char *what, double *values, size_t count, const char *unit)
{
    qsort(values, count, sizeof *values, bench_compare);
    printf("     %-44s min %9.4g  median %9.4g  max %9.4g %s\n", what, values[0], values[count / 2],
           values[count - 1], unit);
}

/* --- the tree -------------------------------------------------------------------------------- */

typedef struct sorted_keys {
    bench *b;
    uint64_t number;
    double at;
} sorted_keys;

/* The next of sorted random numbers: gaps between them are exponential. */
static cx_status next_key(void *arg, cx_smt_pair *out, bool *out_more, cx_err *ignored)
{
    sorted_keys *s = arg;
    bench *b = s->b;
    (void)ignored;
    *out_more = s->number < b->key_count;
    if (!*out_more)
        return CX_SUCCESS;
    double u = ((double)(bench_random(&b->random) >> 11) + 1) * 0x1p-53;
    s->at -= log(u) / ((double)b->key_count * 1.01);
    CX_ASSERT(s->at < 1);
    uint64_t word = (uint64_t)(s->at * 0x1p53) << 11 | (s->number & 0x7ff);
    CX_ASSERT(fwrite(&word, sizeof word, 1, b->words) == 1);
    *out = pages_sample_pair(word, s->number++);
    return CX_SUCCESS;
}

static void build_tree(bench *b)
{
    sorted_keys keys = {b, 0, 0};
    double wall = bench_seconds(CLOCK_MONOTONIC), cpu = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    MUST(cx_db_begin_write(b->db, &err));
    MUST(cx_pages_build(b->pages, &b->anchor, next_key, &keys, 0, &err));
    MUST(cx_db_commit(b->db, &err));
    CX_ASSERT(fflush(b->words) == 0);
    wall = bench_seconds(CLOCK_MONOTONIC) - wall;
    cpu = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    MUST(cx_db_empty_log(b->db, &err));
    printf("     built %llu keys, height %u: %.2f us wall, %.2f us CPU a key\n",
           (unsigned long long)b->key_count, b->anchor.height, wall * 1e6 / (double)b->key_count,
           cpu * 1e6 / (double)b->key_count);
    printf("D8   bytes a key: %.1f\n", (double)file_size(b->path) / (double)b->key_count);
    print_memory("after building");
}

static void build_sample(bench *b)
{
    pages_sample sample = {.path = b->path,
                           .words = b->words,
                           .tree = TREE,
                           .whole = b->key_count,
                           .ranges = b->ranges};
    MUST(pages_sample_build(&sample, &err));
    b->anchor = sample.anchor;
    b->key_count = sample.keys;
    printf("     %llu keys, height %u, of which %llu are there, and %llu rows of pages above\n"
           "     %.2f GB\n",
           (unsigned long long)sample.whole, sample.anchor.height, (unsigned long long)sample.keys,
           (unsigned long long)sample.page_rows, (double)file_size(b->path) / 1e9);
}

static void open_tables(bench *b)
{
    cx_pages_options options = CX_PAGES_OPTIONS_INIT;
    MUST(cx_db_open(b->path, CX_DB_WRITE, &b->db, &err));
    MUST(cx_pages_create_tables(b->db, &err));
    MUST(cx_pages_open(b->db, &options, &b->pages, &err));
}

static void close_tables(bench *b)
{
    cx_pages_close(b->pages);
    cx_db_close(b->db);
}

/* What the page cache has of the database is given back. */
static void forget_file(const bench *b)
{
    int file = open(b->path, O_RDONLY | O_CLOEXEC);
    CX_ASSERT(file >= 0 && fsync(file) == 0 && posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0);
    (void)close(file);
}

typedef struct spent {
    double wall, cpu;
    uint64_t read, device; /* bytes */
} spent;

static spent spent_now(void)
{
    return (spent){bench_seconds(CLOCK_MONOTONIC), bench_seconds(CLOCK_PROCESS_CPUTIME_ID),
                   proc_number("/proc/self/io", "rchar:"),
                   proc_number("/proc/self/io", "read_bytes:")};
}

static void print_spent(const char *what, const spent *before)
{
    const spent now = spent_now();
    printf("     %-44s %7.2f ms wall, %6.2f ms CPU, %llu KB read, %llu KB from the device\n", what,
           (now.wall - before->wall) * 1e3, (now.cpu - before->cpu) * 1e3,
           (unsigned long long)(now.read - before->read) / 1000,
           (unsigned long long)(now.device - before->device) / 1000);
}

/* From a closed database to the first root, proof and change. */
static void answer_first(bench *b, const cx_digest *key, bool cold)
{
    const cx_smt_pair change = {*key, numbered(bench_random(&b->random))};
    const cx_smt_path *path;
    cx_arena arena;
    cx_digest root;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    printf("     %s:\n", cold ? "nothing in the page cache" : "what is needed in the page cache");
    for (unsigned what = 0; what < 3; what++) {
        cx_pages_view view = cx_pages_view_now(&b->anchor);
        close_tables(b);
        if (cold)
            forget_file(b);
        const spent before = spent_now();
        open_tables(b);
        if (what == 0) {
            MUST(cx_pages_root(b->pages, &view, &root, &err));
            CX_ASSERT(cx_digest_eq(&root, &b->anchor.root));
        } else if (what == 1) {
            MUST(cx_pages_prove(b->pages, &view, key, 1, &arena, &path, &err));
            root = cx_smt_fold(CX_SCHEME_CORTEX_1, path);
            CX_ASSERT(path->member && cx_digest_eq(&root, &b->anchor.root));
        } else {
            MUST(cx_db_begin_write(b->db, &err));
            MUST(cx_pages_put(b->pages, &b->anchor, &change, 1, &b->moment, &err));
            MUST(cx_db_commit(b->db, &err));
        }
        print_spent(what == 0   ? "open, root"
                    : what == 1 ? "open, proof of a key"
                                : "open, change of a key",
                    &before);
    }
    cx_arena_done(&arena);
}

/* --- changes --------------------------------------------------------------------------------- */

static void make_snapshot(bench *b)
{
    b->moment.has_newest = true;
    b->moment.newest = b->moment.next_snapshot++;
}

static void flush_changes(bench *b, cx_smt_pair *pairs, size_t count, double *wall, double *cpu)
{
    for (size_t i = 0; i < count; i++)
        pairs[i] = (cx_smt_pair){random_key(b), numbered(bench_random(&b->random))};
    *wall = bench_seconds(CLOCK_MONOTONIC);
    *cpu = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    MUST(cx_db_begin_write(b->db, &err));
    MUST(cx_pages_put(b->pages, &b->anchor, pairs, count, &b->moment, &err));
    MUST(cx_db_commit(b->db, &err));
    *wall = bench_seconds(CLOCK_MONOTONIC) - *wall;
    *cpu = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - *cpu;
}

/* Transactions of `count` changes, a snapshot before each if asked. */
static double change_keys(bench *b, size_t count, size_t flushes, bool snapshots)
{
    static double rates[FLUSHES_MAX], costs[FLUSHES_MAX];
    cx_smt_pair *pairs = malloc(count * sizeof *pairs);
    char what[64];
    double wall, cpu, changes = (double)(count * flushes);
    CX_ASSERT(pairs != NULL && flushes <= FLUSHES_MAX);
    for (size_t i = 0; i < 1 + flushes / 10; i++) /* warms up */
        flush_changes(b, pairs, count, &wall, &cpu);
    MUST(cx_db_empty_log(b->db, &err));
    uint64_t given = proc_number("/proc/self/io", "wchar:");
    uint64_t device = proc_number("/proc/self/io", "write_bytes:");
    uint64_t size = file_size(b->path);
    cx_pages_stats before = cx_pages_stats_of(b->pages);
    for (size_t i = 0; i < flushes; i++) {
        if (snapshots)
            make_snapshot(b);
        flush_changes(b, pairs, count, &wall, &cpu);
        rates[i] = (double)count / wall;
        costs[i] = cpu * 1e6 / (double)count;
    }
    MUST(cx_db_empty_log(b->db, &err));
    cx_pages_stats after = cx_pages_stats_of(b->pages);
    double bytes = (double)(proc_number("/proc/self/io", "wchar:") - given) / changes;
    (void)snprintf(what, sizeof what, "%zu a flush%s", count, snapshots ? ", snapshot each" : "");
    print_spread(what, rates, flushes, "changes/s");
    print_spread("", costs, flushes, "us CPU a change");
    printf("D7   %s: %.0f bytes given, %.0f to the device; %.2f pages written, %.2f read, %.2f"
           " found, %.0f hashes a change\n",
           what, bytes, (double)(proc_number("/proc/self/io", "write_bytes:") - device) / changes,
           (double)(after.pages_written - before.pages_written) / changes,
           (double)(after.pages_read - before.pages_read) / changes,
           (double)(after.pages_cached - before.pages_cached) / changes,
           (double)(after.hashes - before.hashes) / changes);
    if (snapshots)
        printf("D8   %s: the file grew by %.0f bytes a change\n", what,
               (double)(file_size(b->path) - size) / changes);
    free(pairs);
    return bytes;
}

/* --- proofs ---------------------------------------------------------------------------------- */

/* The median time of a proof of one random key, microseconds. */
static double prove_keys(bench *b, const cx_pages_view *view, const char *what)
{
    static double times[PROOFS];
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < PROOFS; i++) {
        cx_arena_mark mark = cx_arena_mark_now(&arena);
        cx_digest key = random_key(b);
        const cx_smt_path *path;
        double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        MUST(cx_pages_prove(b->pages, view, &key, 1, &arena, &path, &err));
        times[i] = (bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start) * 1e6;
        cx_digest root = cx_smt_fold(CX_SCHEME_CORTEX_1, path);
        CX_ASSERT(cx_digest_eq(&root, &view->anchor.root));
        cx_arena_reset(&arena, mark);
    }
    cx_arena_done(&arena);
    qsort(times, PROOFS, sizeof *times, bench_compare);
    printf("     %-44s min %9.4g  median %9.4g  max %9.4g us CPU\n", what, times[0],
           times[PROOFS / 2], times[PROOFS - 1]);
    return times[PROOFS / 2];
}

static cx_pages_view view_then(const bench *b, const cx_pages_anchor *then, uint64_t snapshot)
{
    return cx_pages_view_past(then, &b->anchor, snapshot);
}

static void bench_past(bench *b)
{
    cx_smt_pair pairs[64];
    double wall, cpu;
    cx_pages_view now = cx_pages_view_now(&b->anchor);
    double present = prove_keys(b, &now, "proof now");
    make_snapshot(b);
    cx_pages_anchor then = b->anchor;
    uint64_t first = b->moment.newest;
    cx_pages_view view = view_then(b, &then, first);
    double none = prove_keys(b, &view, "at a snapshot, no changes since");
    for (size_t i = 0; i < 16; i++) {
        flush_changes(b, pairs, 64, &wall, &cpu);
        flush_changes(b, pairs, 64, &wall, &cpu);
    }
    view = view_then(b, &then, first);
    double one = prove_keys(b, &view, "2,048 changes since, 1 snapshot");
    for (size_t i = 1; i < SNAPSHOTS; i++) {
        make_snapshot(b);
        flush_changes(b, pairs, 64, &wall, &cpu);
    }
    view = view_then(b, &then, first);
    double many = prove_keys(b, &view, "64,000 changes since, 1,000 snapshots");
    cx_smt_pair *batch = malloc(16384 * sizeof *batch);
    CX_ASSERT(batch != NULL);
    for (size_t i = 0; i < 58; i++)
        flush_changes(b, batch, 16384, &wall, &cpu);
    free(batch);
    view = view_then(b, &then, first);
    double late = prove_keys(b, &view, "1,000,000 changes since, 1,000 snapshots");
    now = cx_pages_view_now(&b->anchor);
    double again = prove_keys(b, &now, "proof now");
    printf("D9   snapshot/now %.2f (bound 5); 1,000 snapshots/1: %.2f (1.5); 1 M changes/none: %.2f"
           " (1.5)\n",
           many / present, many / one, late / none);
    printf("     now, before and after: %.0f %.0f us\n", present, again);
    print_memory("after proofs of the past");
}

/* From 50 keys to as many as in the first tree, or 400,000, under snapshots; proofs at the
 * first. */
static void bench_growth(bench *b)
{
    bench small = *b;
    cx_smt_pair *pairs = malloc(2000 * sizeof *pairs);
    uint64_t number = 0;
    CX_ASSERT(pairs != NULL);
    small.anchor = cx_pages_anchor_empty(TREE + 1, CX_SCHEME_CORTEX_1);
    small.moment = (cx_pages_moment){.next_snapshot = 0};
    cx_pages_anchor then = small.anchor;
    cx_digest keys[50];
    for (size_t round = 0; round < 200; round++) {
        size_t count = round == 0 ? 50 : 2000;
        for (size_t i = 0; i < count; i++)
            pairs[i] = (cx_smt_pair){numbered(number), numbered(~number)}, number++;
        MUST(cx_db_begin_write(b->db, &err));
        MUST(cx_pages_put(b->pages, &small.anchor, pairs, count, &small.moment, &err));
        MUST(cx_db_commit(b->db, &err));
        if (round < 100)
            make_snapshot(&small);
        if (round == 0)
            then = small.anchor;
        for (size_t i = 0; i < 50 && round == 0; i++)
            keys[i] = pairs[i].key;
    }
    free(pairs);
    static double times[1000], present[1000];
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < CX_COUNT_OF(times); i++) {
        cx_pages_view view = cx_pages_view_past(&then, &small.anchor, 0);
        cx_pages_view now = cx_pages_view_now(&small.anchor);
        const cx_smt_path *path;
        cx_digest any = numbered(bench_random(&b->random) % number);
        cx_pages_forget(b->pages);
        double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        MUST(cx_pages_prove(b->pages, &view, &keys[i % 50], 1, &arena, &path, &err));
        double middle = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        CX_ASSERT(path->member);
        cx_pages_forget(b->pages);
        double again = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        MUST(cx_pages_prove(b->pages, &now, &any, 1, &arena, &path, &err));
        present[i] = (bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - again) * 1e6;
        times[i] = (middle - start) * 1e6;
    }
    cx_arena_done(&arena);
    print_spread("at the first of 100 snapshots, nothing cached", times, CX_COUNT_OF(times),
                 "us CPU");
    print_spread("now, nothing cached", present, CX_COUNT_OF(present), "us CPU");
    printf("D9   after growth from 50 keys to %llu: snapshot/now %.2f (bound 5)\n",
           (unsigned long long)number,
           times[CX_COUNT_OF(times) / 2] / present[CX_COUNT_OF(present) / 2]);
}

static void bench_overlay(bench *b)
{
    enum { WAITING = 4096 };
    cx_smt_pair *pairs = malloc(WAITING * sizeof *pairs);
    cx_pages_overlay *overlay;
    CX_ASSERT(pairs != NULL);
    for (size_t i = 0; i < WAITING; i++)
        pairs[i] = (cx_smt_pair){random_key(b), numbered(bench_random(&b->random))};
    double start = bench_seconds(CLOCK_MONOTONIC);
    MUST(cx_pages_overlay_open(b->pages, &b->anchor, WAITING, &overlay, &err));
    MUST(cx_pages_overlay_put(overlay, pairs, WAITING, &err));
    printf("     overlay of %d changes: %.1f ms\n", WAITING,
           (bench_seconds(CLOCK_MONOTONIC) - start) * 1e3);
    print_memory("with the overlay");
    cx_pages_overlay_close(overlay);
    free(pairs);
}

static void open_bench(bench *b, int argc, char **argv)
{
    char words[448];
    const char *temporary = getenv("TMPDIR");
    b->key_count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    b->random = 88172645463325252u;
    (void)snprintf(b->folder, sizeof b->folder, "%s/cortex-pages-%ld",
                   argc > 2            ? argv[2]
                   : temporary != NULL ? temporary
                                       : "/tmp",
                   (long)getpid());
    CX_ASSERT(b->key_count > 1000 && mkdir(b->folder, 0700) == 0);
    (void)snprintf(b->path, sizeof b->path, "%s/t.db", b->folder);
    (void)snprintf(words, sizeof words, "%s/words", b->folder);
    b->words = fopen(words, "w+b");
    CX_ASSERT(b->words != NULL);
    b->ranges = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    if (b->ranges != 0)
        build_sample(b);
    open_tables(b);
    if (b->ranges != 0)
        return;
    b->anchor = cx_pages_anchor_empty(TREE, CX_SCHEME_CORTEX_1);
}

static void close_bench(bench *b)
{
    static const char *const names[] = {"t.db", "t.db-wal", "t.db-shm", "words"};
    close_tables(b);
    (void)fclose(b->words);
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        char path[448];
        (void)snprintf(path, sizeof path, "%s/%s", b->folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(b->folder);
}

int main(int argc, char **argv)
{
    bench b = {.db = NULL};
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    open_bench(&b, argc, argv);
    print_memory("before");
    if (b.ranges == 0)
        build_tree(&b);
    const cx_digest key = random_key(&b);
    answer_first(&b, &key, true);
    answer_first(&b, &key, false); /* what it needs was read just now */
    print_memory("after the first answers");
    (void)change_keys(&b, 1, FLUSHES_MAX, false);
    (void)change_keys(&b, 256, 100, false);
    double without = change_keys(&b, 4096, 20, false);
    (void)change_keys(&b, 16384, 8, false);
    print_memory("after changes");
    bench_overlay(&b);
    bench_past(&b);
    double with = change_keys(&b, 4096, 20, true);
    printf("D7   a snapshot between/without, 4,096: %.2f (bound 2.2)\n", with / without);
    (void)change_keys(&b, 64, 100, true);
    bench_growth(&b);
    print_memory("in the end");
    close_bench(&b);
    return 0;
}
