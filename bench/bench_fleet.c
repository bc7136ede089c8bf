/*
 * bench_fleet.c - commits of a fleet in PostgreSQL (PERFORMANCE.md, F1 and F3).
 *
 *     F1@N      durable commits of N records of 4 KB at the end of a file of a part, against COPY
 *     of the
 *               same bytes in the same commit, a row a record, into a table without an index
 *     F1x8@N    the same by 8 connections at once, each with a part of its own, against 8 that COPY
 *     F1i@N     against INSERT of the same bytes in one statement, one row a commit
 *     WAL       bytes of write-ahead log a byte that was recorded
 *     F3        a part of so many entries, whose owner is gone: from the end of its lease to the
 *               first acknowledged commit of the next owner, which is already waiting
 *
 * CORTEX_TEST_PG names the database; what is in its schema cortex_fleet is removed.  It should
 * sync:
 *
 *     CORTEX_TEST_PG_CONF=$'fsync=on\nfull_page_writes=on' tests/support/postgres.sh bench_fleet
 *
 * `bench_fleet node PART RECORDS SECONDS` is one node for bench/fleet_scale.py (F2): it makes or
 * takes the part, prints "ready", waits for a line, commits so many records at a time for so long,
 * and prints what it did as JSON.
 *
 * Takeover here is lease, chain and first commit; what the tables of a data directory add is not in
 * it.
 */
#include "bench.h"

#include <inttypes.h>
#include <sys/resource.h>

#include "db/api.h"
#include "fleet/api.h"

#define RECORD_BYTES 4096
#define RECORDS_MAX 256
#define BYTES_MAX ((size_t)RECORDS_MAX * RECORD_BYTES)
#define WRITES_MAX (BYTES_MAX / CX_FLEET_CHUNK + 2)
#define WORKERS 8
#define LEASE_MS 60000
#define F3_LEASE_MS 1000
#define F3_TARGET_S 5.0
#define FILE_NUMBER 1

static void must(cx_status status, const cx_err *err)
{
    if (!cx_failed(status))
        return;
    fprintf(stderr, "%s\n", err->message);
    exit(2);
}

typedef struct worker {
    cx_fleet *fleet;
    cx_fleet_part part;
    uint64_t end; /* of its file */
    cx_pg *pg;
    cx_buf rows;
    cx_thread thread;
    void (*work)(struct worker *w);
} worker;

static struct {
    worker workers[WORKERS];
    size_t worker_count;
    size_t count;   /* records a commit */
    size_t commits; /* a turn of a worker: a single one says more of the disk's mood */
    uint8_t bytes[BYTES_MAX];
} a;

/* Bytes that do not compress. */
static void fill_bytes(void)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < sizeof a.bytes; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        a.bytes[i] = (uint8_t)state;
    }
}

/* --- a commit, three ways --------------------------------------------------------------------- */

static void append(worker *w, size_t size)
{
    cx_fleet_write writes[WRITES_MAX];
    cx_fleet_change change = {.writes = writes};
    cx_err err = {0};
    for (size_t at = 0; at < size;) {
        size_t start = w->end % CX_FLEET_CHUNK, piece = CX_FLEET_CHUNK - start;
        piece = piece < size - at ? piece : size - at;
        writes[change.write_count++] =
            (cx_fleet_write){.file = FILE_NUMBER,
                             .chunk = w->end / CX_FLEET_CHUNK,
                             .start = (uint32_t)start,
                             .bytes = cx_bytes_from(a.bytes + at, piece)};
        at += piece;
        w->end += piece;
    }
    must(cx_fleet_commit(w->fleet, &w->part, &change, &err), &err);
}

static void append_records(worker *w)
{
    append(w, a.count * RECORD_BYTES);
}

static void copy_rows(worker *w)
{
    cx_err err = {0};
    cx_buf_clear(&w->rows);
    for (size_t i = 0; i < a.count; i++) {
        cx_pg_value number = {.type = CX_PG_INT, .i = (int64_t)i};
        cx_pg_value bytes = {.type = CX_PG_BYTES,
                             .text = {(const char *)a.bytes + i * RECORD_BYTES, RECORD_BYTES}};
        cx_pg_add_row(&w->rows, 2);
        must(cx_pg_add_value(&w->rows, &number, &err), &err);
        must(cx_pg_add_value(&w->rows, &bytes, &err), &err);
    }
    must(cx_buf_check(&w->rows, &err), &err);
    must(cx_pg_copy_begin(w->pg, "COPY bench_fleet FROM STDIN (FORMAT binary)", &err), &err);
    must(cx_pg_copy_rows(w->pg, cx_buf_bytes(&w->rows), &err), &err);
    must(cx_pg_copy_end(w->pg, &err), &err);
}

static void insert_row(worker *w)
{
    const cx_pg_value values[] = {
        {.type = CX_PG_INT, .i = 1},
        {.type = CX_PG_BYTES, .text = {(const char *)a.bytes, a.count * RECORD_BYTES}}};
    cx_err err = {0};
    must(cx_pg_query(w->pg, "INSERT INTO bench_fleet VALUES ($1, $2)", values, 2, NULL, 0, NULL,
                     NULL, NULL, &err),
         &err);
}

/* --- all workers at once ---------------------------------------------------------------------- */

static void work_a_turn(void *arg)
{
    worker *w = arg;
    for (size_t i = 0; i < a.commits; i++)
        w->work(w);
}

static void run_workers(void (*work)(worker *w))
{
    for (size_t i = 0; i < a.worker_count; i++)
        a.workers[i].work = work;
    if (a.worker_count == 1) {
        work_a_turn(&a.workers[0]);
        return;
    }
    for (size_t i = 0; i < a.worker_count; i++)
        if (!cx_thread_start(&a.workers[i].thread, work_a_turn, &a.workers[i]))
            abort();
    for (size_t i = 0; i < a.worker_count; i++)
        cx_thread_join(&a.workers[i].thread);
}

static void side_append(void *arg)
{
    (void)arg;
    run_workers(append_records);
}

static void side_copy(void *arg)
{
    (void)arg;
    run_workers(copy_rows);
}

static void side_insert(void *arg)
{
    (void)arg;
    run_workers(insert_row);
}

static bool bench_append(size_t workers, size_t count)
{
    char id[24], id_insert[24];
    const char *by = workers == 1 ? "" : "x8";
    a.worker_count = workers;
    a.count = count;
    a.commits = (16 + 256 / count) / workers;
    double units = (double)(a.count * a.commits * workers);
    bench_side sides[] = {{.name = "commit of a part", .work = side_append, .units = units},
                          {.name = "COPY, a row a record", .work = side_copy, .units = units},
                          {.name = "INSERT, one row", .work = side_insert, .units = units}};
    bench_measure(sides, 3);
    printf("     %zu records of %d bytes a commit, %zu at once:\n", count, RECORD_BYTES, workers);
    for (size_t i = 0; i < 3; i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1, "records/s");
    (void)snprintf(id, sizeof id, "F1%s@%zu", by, count);
    (void)snprintf(id_insert, sizeof id_insert, "F1i%s@%zu", by, count);
    bool ok = bench_print_row(id, "durable commit / COPY of the same bytes, a row a record",
                              &sides[0].rate, &sides[1].rate, 1, 0.7);
    (void)bench_print_row(id_insert, "durable commit / INSERT of the same bytes, one row",
                          &sides[0].rate, &sides[2].rate, 1, 0);
    return ok;
}

/* --- write-ahead log -------------------------------------------------------------------------- */

static cx_status read_int(void *arg, const cx_pg_value *columns, cx_err *err)
{
    (void)err;
    *(int64_t *)arg = columns[0].i;
    return CX_SUCCESS;
}

static double wal_position(void)
{
    static const cx_pg_type types[] = {CX_PG_INT};
    int64_t at = 0;
    cx_err err = {0};
    must(cx_pg_query(a.workers[0].pg,
                     "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint", NULL, 0,
                     types, 1, read_int, &at, NULL, &err),
         &err);
    return (double)at;
}

/* Without the pages that are written whole after a checkpoint, which depend on its moment. */
static void bench_wal(size_t count)
{
    static const struct {
        const char *name;
        void (*work)(worker *w);
    } ways[] = {{"commit of a part", append_records},
                {"COPY, a row a record", copy_rows},
                {"INSERT, one row", insert_row}};
    a.count = count;
    for (size_t i = 0; i < CX_COUNT_OF(ways); i++) {
        size_t commits = 16 + 2048 / count;
        ways[i].work(&a.workers[0]);
        double before = wal_position();
        for (size_t j = 0; j < commits; j++)
            ways[i].work(&a.workers[0]);
        printf("     WAL a recorded byte, %zu records a commit, %s: %.3f\n", count, ways[i].name,
               (wal_position() - before) / (double)(commits * count * RECORD_BYTES));
    }
}

/* --- takeover --------------------------------------------------------------------------------- */

static cx_fleet *open_node(const char *url, const char *name, uint32_t lease_ms)
{
    const cx_fleet_options options = {.node = name, .lease_ms = lease_ms};
    cx_fleet *fleet = NULL;
    cx_err err = {0};
    must(cx_fleet_open(url, &options, &fleet, &err), &err);
    return fleet;
}

/* A part of its own with a file, taken. */
static void open_worker(const char *url, const char *name, uint32_t lease_ms, worker *w)
{
    const cx_fleet_file_change made = {
        .op = CX_FLEET_MAKE, .file = FILE_NUMBER, .name = CX_STR("log/x")};
    const cx_fleet_change change = {.files = &made, .file_count = 1};
    cx_pg_options options = CX_PG_OPTIONS_INIT;
    bool taken = false;
    unsigned ignored;
    cx_err err = {0};
    w->fleet = open_node(url, name, lease_ms);
    must(cx_fleet_add(w->fleet, cx_str_z(name), &ignored, &err), &err);
    must(cx_fleet_find(w->fleet, cx_str_z(name), &w->part, &err), &err);
    must(cx_fleet_take(w->fleet, &w->part, &taken, &err), &err);
    must(cx_fleet_commit(w->fleet, &w->part, &change, &err), &err);
    must(cx_pg_open(url, &options, &w->pg, &err), &err);
    must(cx_pg_run(w->pg, "SET synchronous_commit = on", &err), &err);
    cx_buf_init(&w->rows, cx_alloc_default());
}

static void close_worker(worker *w)
{
    cx_fleet_close(w->fleet);
    cx_pg_close(w->pg);
    cx_buf_done(&w->rows);
}

static bool bench_takeover(const char *url, uint64_t entries)
{
    worker first = {0}, second = {0};
    cx_err err = {0};
    bool taken = false;
    open_worker(url, "first", F3_LEASE_MS, &first);
    for (uint64_t done = 0; done < entries; done += RECORDS_MAX)
        append(&first, (size_t)RECORDS_MAX * 128);
    second.fleet = open_node(url, "second", F3_LEASE_MS);
    must(cx_fleet_find(second.fleet, CX_STR("first"), &second.part, &err), &err);
    must(cx_fleet_renew(first.fleet, &first.part, &err), &err);
    double lease_end = bench_seconds(CLOCK_MONOTONIC) + F3_LEASE_MS / 1000.0;
    while (!taken) {
        must(cx_fleet_take(second.fleet, &second.part, &taken, &err), &err);
        cx_thread_sleep_ms(taken ? 0 : 10);
    }
    second.end = first.end;
    append(&second, 128);
    double took = bench_seconds(CLOCK_MONOTONIC) - lease_end;
    bool ok = took <= F3_TARGET_S && second.part.next == first.part.next + 1;
    printf("F3 takeover of a part with %" PRIu64
           " entries, seconds from the end of the lease: ours "
           "%.3f, reference %g, ratio %.2f (target 1): %s\n",
           entries, took, F3_TARGET_S, F3_TARGET_S / (took > 0.001 ? took : 0.001),
           ok ? "ok" : "below");
    close_worker(&first);
    cx_fleet_close(second.fleet);
    return ok;
}

/* --- main ------------------------------------------------------------------------------------- */

static void run_sql(const char *url, const char *sql)
{
    cx_pg_options options = CX_PG_OPTIONS_INIT;
    cx_pg *pg = NULL;
    cx_err err = {0};
    must(cx_pg_open(url, &options, &pg, &err), &err);
    must(cx_pg_run(pg, sql, &err), &err);
    cx_pg_close(pg);
}

static void open_database(const char *url)
{
    uint64_t applied;
    cx_err err = {0};
    run_sql(url, "DROP SCHEMA IF EXISTS cortex_fleet CASCADE; DROP TABLE IF EXISTS bench_fleet; "
                 "CREATE TABLE bench_fleet (n bigint, bytes bytea); "
                 "ALTER TABLE bench_fleet ALTER COLUMN bytes SET STORAGE EXTERNAL");
    must(cx_fleet_init(url, false, NULL, &applied, &err), &err);
}

/* --- one node of several (F2) ----------------------------------------------------------------- */

static double cpu_seconds(void)
{
    struct rusage used;
    (void)getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static int run_node(const char *url, char **words)
{
    worker *w = &a.workers[0];
    double seconds = strtod(words[2], NULL);
    char line[16];
    size_t commits = 0;
    a.count = strtoull(words[1], NULL, 10);
    if (a.count == 0 || a.count > RECORDS_MAX || seconds <= 0) {
        fprintf(stderr, "expected node PART, 1 to %d records, seconds\n", RECORDS_MAX);
        return 2;
    }
    fill_bytes();
    open_worker(url, words[0], LEASE_MS, w);
    append_records(w); /* the statement is prepared */
    printf("ready\n");
    (void)fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL)
        return 2;
    double cpu = cpu_seconds(), begun = bench_seconds(CLOCK_MONOTONIC), now = begun;
    for (; now < begun + seconds; commits++, now = bench_seconds(CLOCK_MONOTONIC))
        append_records(w);
    printf("{\"commits\": %zu, \"seconds\": %.6f, \"cpu\": %.6f}\n", commits, now - begun,
           cpu_seconds() - cpu);
    close_worker(w);
    return 0;
}

int main(int argc, char **argv)
{
    const char *url = getenv("CORTEX_TEST_PG");
    uint64_t entries = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    if (url == NULL) {
        bench_print_skipped("F1", "durable commit / COPY of the same bytes", 0.7,
                            "CORTEX_TEST_PG names no database");
        return 0;
    }
    if (argc == 5 && strcmp(argv[1], "node") == 0)
        return run_node(url, argv + 2);
    fill_bytes();
    open_database(url);
    for (unsigned i = 0; i < WORKERS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "bench-%u", i);
        open_worker(url, name, LEASE_MS, &a.workers[i]);
    }
    bool ok = bench_append(1, 1);
    ok = bench_append(1, 16) && ok;
    ok = bench_append(1, 256) && ok;
    ok = bench_append(WORKERS, 16) && ok;
    ok = bench_append(WORKERS, 256) && ok;
    bench_wal(16);
    bench_wal(256);
    ok = bench_takeover(url, entries) && ok;
    for (unsigned i = 0; i < WORKERS; i++)
        close_worker(&a.workers[i]);
    run_sql(url, "DROP TABLE bench_fleet");
    return ok ? 0 : 1;
}
