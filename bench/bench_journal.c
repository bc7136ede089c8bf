/*
 * bench_journal.c - the tree of a journal of up to 1,000,000,000 entries (tree/mmr.h).
 *
 *     bench_journal [ENTRIES [FOLDER]]
 *
 * For 10,000 entries, ten times as many, and so on up to ENTRIES: what the first root costs with a
 * database that was closed, an inclusion proof now and in a journal of any former size, a
 * consistency proof from any former size, and 4,096 appended entries.  Every proof is verified.
 *
 * All rows of `fold` are there, as in the tables of a data directory.  Entries are not: the hash of
 * one is made from its number when it is asked for (256 of them take about 15 us), and repeats
 * after 2^24, so that 2^24 of them are hashed and not all.  The log is left out.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "bench/bench.h"
#include "bench/must.h"
#include "db/api.h"
#include "tree/mmr.h"

enum { PERIOD_BITS = 24, PROOFS = 1000, APPENDED = 4096 };
#define PERIOD (UINT64_C(1) << PERIOD_BITS)
#define SCHEME CX_SCHEME_CORTEX_1

static cx_err err;

typedef struct journal {
    char path[448];
    cx_db *db;
    cx_db_statement *read, *write;
    int64_t actor;
    cx_mmr_edge edge;
    uint64_t rows_read;
    uint64_t random;
} journal;

static cx_digest leaf_of(uint64_t number)
{
    number %= PERIOD;
    return cx_digest_of(cx_bytes_from(&number, sizeof number));
}

/* --- rows ------------------------------------------------------------------------------------ */

static void open_rows(journal *j)
{
    MUST(cx_db_open(j->path, CX_DB_WRITE, &j->db, &err));
    MUST(
        cx_db_run(j->db,
                  "CREATE TABLE IF NOT EXISTS fold(actor INTEGER NOT NULL, level INTEGER NOT NULL,"
                  " number INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY(actor, level, number))"
                  " WITHOUT ROWID",
                  &err));
    MUST(cx_db_prepare(j->db,
                       "SELECT number, hash FROM fold WHERE actor=?1 AND number>=?2 AND number<?3"
                       " AND level=?4 ORDER BY number",
                       &j->read, &err));
    MUST(cx_db_prepare(j->db, "INSERT OR REPLACE INTO fold VALUES(?,?,?,?)", &j->write, &err));
}

static void close_rows(journal *j)
{
    cx_db_finish(j->read);
    cx_db_finish(j->write);
    cx_db_close(j->db);
}

static void write_fold(journal *j, unsigned level, uint64_t number, const cx_digest *hash)
{
    cx_db_bind_int(j->write, 1, j->actor);
    cx_db_bind_int(j->write, 2, level);
    cx_db_bind_int(j->write, 3, (int64_t)number);
    cx_db_bind_bytes(j->write, 4, cx_bytes_from(hash->bytes, sizeof hash->bytes));
    MUST(cx_db_execute(j->write, &err));
}

static cx_status read_folds(void *arg, unsigned level, uint64_t first, size_t count, cx_digest *out,
                            cx_err *why)
{
    journal *j = arg;
    cx_db_bind_int(j->read, 1, j->actor);
    cx_db_bind_int(j->read, 2, (int64_t)first);
    cx_db_bind_int(j->read, 3, (int64_t)(first + count));
    cx_db_bind_int(j->read, 4, level);
    size_t found = 0;
    for (bool row = true;; found++) {
        CX_TRY(cx_db_step(j->read, &row, why));
        if (!row)
            break;
        CX_ASSERT(found < count && cx_db_bytes(j->read, 1).size == sizeof out->bytes);
        memcpy(out[found].bytes, cx_db_bytes(j->read, 1).data, sizeof out->bytes);
    }
    cx_db_reset(j->read);
    j->rows_read += found;
    return found == count ? CX_SUCCESS : cx_fail(why, CX_E_FORMAT, "a fold is missing");
}

static cx_status make_leaves(void *arg, uint64_t first, size_t count, cx_digest *out, cx_err *why)
{
    (void)arg;
    (void)why;
    for (size_t i = 0; i < count; i++)
        out[i] = leaf_of(first + i);
    return CX_SUCCESS;
}

/* --- building -------------------------------------------------------------------------------- */

static cx_digest *all_folds(size_t count)
{
    cx_digest *folds = malloc(count * sizeof *folds);
    CX_ASSERT(folds != NULL);
    return folds;
}

/* The folds of one period: of level 1, 65,536, and so on. */
static void fold_period(cx_digest *folds[4])
{
    cx_mmr_edge edge = {0};
    for (unsigned level = 1; level <= 3; level++)
        folds[level] = all_folds((size_t)1 << (PERIOD_BITS - 8 * level));
    for (uint64_t i = 0; i < PERIOD; i++) {
        const cx_digest leaf = leaf_of(i);
        cx_mmr_fold made[CX_MMR_FOLDS_MAX];
        size_t count;
        MUST(cx_mmr_edge_append(&edge, SCHEME, cx_alloc_default(), &leaf, made, &count, &err));
        for (size_t k = 0; k < count; k++)
            folds[made[k].level][made[k].number] = made[k].hash;
    }
    cx_vec_done(&edge.peaks, cx_alloc_default());
}

/* The edge: whole periods, of which two and two have the same hash, then the last one's
 * beginning. */
static void make_edge(journal *j, const cx_digest *period, uint64_t size)
{
    const cx_alloc *alloc = cx_alloc_default();
    cx_mmr_edge rest = {0};
    cx_digest heights[64];
    for (uint64_t i = 0; i < size % PERIOD; i++) {
        const cx_digest leaf = leaf_of(i);
        cx_mmr_fold made[CX_MMR_FOLDS_MAX];
        size_t count;
        MUST(cx_mmr_edge_append(&rest, SCHEME, alloc, &leaf, made, &count, &err));
    }
    heights[PERIOD_BITS] = *period;
    for (unsigned h = PERIOD_BITS; h + 1 < CX_COUNT_OF(heights); h++)
        heights[h + 1] = cx_scheme_node(SCHEME, &heights[h], &heights[h]);
    cx_vec_done(&j->edge.peaks, alloc);
    j->edge = (cx_mmr_edge){.size = size};
    CX_ASSERT(cx_vec_reserve(&j->edge.peaks, 64, alloc));
    for (unsigned h = 64; h-- > PERIOD_BITS;)
        if ((size >> h & 1) != 0)
            j->edge.peaks.items[j->edge.peaks.count++] = heights[h];
    for (size_t i = 0; i < rest.peaks.count; i++)
        j->edge.peaks.items[j->edge.peaks.count++] = rest.peaks.items[i];
    cx_vec_done(&rest.peaks, alloc);
}

static void build(journal *j, cx_digest *const folds[4], uint64_t size)
{
    double cpu = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t rows = 0;
    MUST(cx_db_begin_write(j->db, &err));
    for (unsigned level = 1; level <= 3; level++) {
        const uint64_t count = size >> (8 * level), period = PERIOD >> (8 * level);
        for (uint64_t n = 0; n < count; n++)
            write_fold(j, level, n, &folds[level][n % period]);
        rows += count;
    }
    MUST(cx_db_commit(j->db, &err));
    MUST(cx_db_empty_log(j->db, &err));
    make_edge(j, folds[3], size);
    printf("     %llu entries: %llu rows, %.1f s CPU\n", (unsigned long long)size,
           (unsigned long long)rows, bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
}

/* --- questions ------------------------------------------------------------------------------- */

static double since(double start)
{
    return (bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start) * 1e6;
}

static cx_mmr *open_tree(journal *j)
{
    const cx_mmr_keeper keeper = {j, make_leaves, read_folds};
    cx_mmr *mmr;
    MUST(cx_mmr_open_kept(SCHEME, cx_alloc_default(), &j->edge, &keeper, &mmr, &err));
    return mmr;
}

static void print_times(const char *what, double *times, uint64_t rows)
{
    qsort(times, PROOFS, sizeof *times, bench_compare);
    printf("     %-36s min %8.1f  median %8.1f  max %8.1f us CPU, %llu rows of folds read\n", what,
           times[0], times[PROOFS / 2], times[PROOFS - 1], (unsigned long long)rows / PROOFS);
}

static void ask_inclusion(journal *j, bool past)
{
    static double times[PROOFS];
    uint64_t rows = j->rows_read;
    for (size_t i = 0; i < PROOFS; i++) {
        const uint64_t size = past ? 1 + bench_random(&j->random) % j->edge.size : j->edge.size;
        const uint64_t index = bench_random(&j->random) % size;
        const cx_digest leaf = leaf_of(index);
        cx_mmr_path path;
        cx_digest root;
        double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        cx_mmr *mmr = open_tree(j);
        MUST(cx_mmr_root(mmr, size, &root, &err));
        MUST(cx_mmr_inclusion(mmr, index, size, &path, &err));
        cx_mmr_close(mmr);
        times[i] = since(start);
        CX_ASSERT(
            cx_mmr_inclusion_holds(SCHEME, index, size, &leaf, path.hashes, path.count, &root));
    }
    print_times(past ? "inclusion at a former size" : "inclusion now", times, j->rows_read - rows);
}

static void ask_consistency(journal *j)
{
    static double times[PROOFS];
    uint64_t rows = j->rows_read, size = j->edge.size;
    for (size_t i = 0; i < PROOFS; i++) {
        const uint64_t former = 1 + bench_random(&j->random) % size;
        cx_mmr_path path;
        cx_digest root, old;
        double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        cx_mmr *mmr = open_tree(j);
        MUST(cx_mmr_root(mmr, former, &old, &err));
        MUST(cx_mmr_root(mmr, size, &root, &err));
        MUST(cx_mmr_consistency(mmr, former, size, &path, &err));
        cx_mmr_close(mmr);
        times[i] = since(start);
        CX_ASSERT(
            cx_mmr_consistency_holds(SCHEME, former, &old, size, &root, path.hashes, path.count));
    }
    print_times("consistency with a former size", times, j->rows_read - rows);
}

static void ask_first_root(journal *j)
{
    close_rows(j);
    double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    open_rows(j);
    cx_digest edge = cx_mmr_edge_root(&j->edge, SCHEME), root;
    cx_mmr *mmr = open_tree(j);
    MUST(cx_mmr_root(mmr, j->edge.size, &root, &err));
    cx_mmr_close(mmr);
    CX_ASSERT(cx_digest_eq(&edge, &root));
    printf("     %-36s %8.1f us CPU\n", "database opened, first root", since(start));
}

static void append_entries(journal *j)
{
    double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    MUST(cx_db_begin_write(j->db, &err));
    for (uint64_t i = 0; i < APPENDED; i++) {
        const cx_digest leaf = leaf_of(j->edge.size);
        cx_mmr_fold made[CX_MMR_FOLDS_MAX];
        size_t count;
        MUST(cx_mmr_edge_append(&j->edge, SCHEME, cx_alloc_default(), &leaf, made, &count, &err));
        for (size_t k = 0; k < count; k++)
            write_fold(j, made[k].level, made[k].number, &made[k].hash);
    }
    MUST(cx_db_commit(j->db, &err));
    printf("     %-36s %8.2f us CPU each\n", "4,096 entries appended", since(start) / APPENDED);
}

static void print_memory(void)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "VmRSS:", 6) == 0)
            printf("     resident %.1f MB\n", strtod(line + 6, NULL) / 1024);
    if (f != NULL)
        (void)fclose(f);
}

int main(int argc, char **argv)
{
    const uint64_t most = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000000;
    const char *temporary = getenv("TMPDIR");
    journal j = {.random = 88172645463325252u};
    cx_digest *folds[4];
    char side[460];
    CX_ASSERT(most >= 10000 && most <= UINT32_MAX);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)snprintf(j.path, sizeof j.path, "%s/cortex-journal-%ld.db",
                   argc > 2            ? argv[2]
                   : temporary != NULL ? temporary
                                       : "/tmp",
                   (long)getpid());
    fold_period(folds);
    for (uint64_t size = 10000; size <= most; size *= 10) {
        j.actor++;
        open_rows(&j);
        build(&j, folds, size);
        ask_first_root(&j);
        ask_inclusion(&j, false);
        ask_inclusion(&j, true);
        ask_consistency(&j);
        append_entries(&j);
        close_rows(&j);
    }
    for (unsigned level = 1; level <= 3; level++)
        free(folds[level]);
    print_memory();
    cx_vec_done(&j.edge.peaks, cx_alloc_default());
    static const char *const endings[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < CX_COUNT_OF(endings); i++) {
        (void)snprintf(side, sizeof side, "%s%s", j.path, endings[i]);
        (void)unlink(side);
    }
    return 0;
}
