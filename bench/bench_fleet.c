/*
 * bench_fleet.c - a fleet's log in PostgreSQL (PERFORMANCE.md, F1 and F3).
 *
 *     F1@N   durable append of N records of 4 KB in a group, each with a sender's key, against COPY
 *     of
 *            the same bytes in the same commit, a row a record, into a table without an index
 *     F1g@N  the same against COPY of one row a commit
 *     F3     a part of so many entries, whose owner is gone: from the end of its lease to the first
 *            acknowledged group of the next owner, which is already waiting
 *
 * CORTEX_TEST_PG names the database; what is in its schema cortex_fleet is removed.  It should
 * sync:
 *
 *     CORTEX_TEST_PG_CONF=$'fsync=on\nfull_page_writes=on' tests/support/postgres.sh bench_fleet
 *
 * Takeover of a part has no tables to catch up with yet: F3 says what lease, check of the newest
 * groups and first commit take.
 */
#include "bench.h"

#include <inttypes.h>

#include "db/api.h"
#include "fleet/api.h"

#define RECORD_BYTES 4096
#define RECORDS_MAX 256
#define LEASE_MS 1000
#define F3_TARGET_S 5.0

static void must(cx_status status, const cx_err *err)
{
    if (!cx_failed(status))
        return;
    fprintf(stderr, "%s\n", err->message);
    exit(2);
}

typedef struct appender {
    cx_fleet *fleet;
    cx_fleet_part part;
    cx_pg *pg;
    size_t count;   /* records a commit */
    size_t commits; /* a turn: a single one says more of the disk's mood than of either side */
    uint64_t counter;
    cx_buf rows;
    uint8_t bytes[RECORD_BYTES];
} appender;

static appender a;

/* Bytes that differ from record to record, and do not compress. */
static void fill_bytes(void)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < sizeof a.bytes; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        a.bytes[i] = (uint8_t)state;
    }
}

static void append_one_group(void)
{
    static cx_fleet_record records[RECORDS_MAX];
    static cx_fleet_place places[RECORDS_MAX];
    static char keys[RECORDS_MAX][32];
    cx_err err = {0};
    for (size_t i = 0; i < a.count; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "bench-%" PRIu64, a.counter++);
        records[i] = (cx_fleet_record){.key = cx_str_bytes(cx_str_z(keys[i])),
                                       .frame.guarded = cx_bytes_from(a.bytes, sizeof a.bytes)};
    }
    must(cx_fleet_append(a.fleet, &a.part, records, a.count, places, &err), &err);
}

static void append_groups(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < a.commits; i++)
        append_one_group();
}

static void copy_commit(const char *sql, size_t rows, size_t records_a_row)
{
    cx_err err = {0};
    cx_buf_clear(&a.rows);
    for (size_t i = 0; i < rows; i++) {
        cx_pg_value number = {.type = CX_PG_INT, .i = (int64_t)a.counter++};
        uint8_t size[4];
        uint32_t bytes = (uint32_t)(records_a_row * sizeof a.bytes);
        cx_pg_add_row(&a.rows, 2);
        must(cx_pg_add_value(&a.rows, &number, &err), &err);
        for (unsigned at = 0; at < 4; at++)
            size[at] = (uint8_t)(bytes >> (24 - 8 * at));
        cx_buf_add(&a.rows, size, sizeof size);
        for (size_t j = 0; j < records_a_row; j++)
            cx_buf_add(&a.rows, a.bytes, sizeof a.bytes);
    }
    must(cx_buf_check(&a.rows, &err), &err);
    must(cx_pg_copy_begin(a.pg, sql, &err), &err);
    must(cx_pg_copy_rows(a.pg, cx_buf_bytes(&a.rows), &err), &err);
    must(cx_pg_copy_end(a.pg, &err), &err);
}

#define COPY_SQL "COPY bench_fleet FROM STDIN (FORMAT binary)"

static void copy_rows(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < a.commits; i++)
        copy_commit(COPY_SQL, a.count, 1);
}

static void copy_one_row(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < a.commits; i++)
        copy_commit(COPY_SQL, 1, a.count);
}

static bool bench_append(size_t count)
{
    char id[16], id_group[16];
    a.count = count;
    a.commits = 16 + 256 / count;
    double units = (double)(a.count * a.commits);
    bench_side sides[] = {{.name = "append of a group", .work = append_groups, .units = units},
                          {.name = "COPY, a row a record", .work = copy_rows, .units = units},
                          {.name = "COPY, one row", .work = copy_one_row, .units = units}};
    bench_measure(sides, 3);
    printf("     %zu records of %d bytes a commit:\n", count, RECORD_BYTES);
    for (size_t i = 0; i < 3; i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1, "records/s");
    (void)snprintf(id, sizeof id, "F1@%zu", count);
    (void)snprintf(id_group, sizeof id_group, "F1g@%zu", count);
    bool ok =
        bench_print_row(id, "durable append of a node / COPY of the same bytes, a row a record",
                        &sides[0].rate, &sides[1].rate, 1, 0.7);
    (void)bench_print_row(id_group, "durable append of a node / COPY of the same bytes, one row",
                          &sides[0].rate, &sides[2].rate, 1, 0);
    return ok;
}

/* --- takeover --------------------------------------------------------------------------------- */

static cx_fleet *open_node(const char *url, const char *name)
{
    const cx_fleet_options options = {.node = name, .lease_ms = LEASE_MS};
    cx_fleet *fleet = NULL;
    cx_err err = {0};
    must(cx_fleet_open(url, &options, &fleet, &err), &err);
    return fleet;
}

static void fill_part(cx_fleet *fleet, cx_fleet_part *part, uint64_t entries)
{
    static cx_fleet_record records[RECORDS_MAX];
    static cx_fleet_place places[RECORDS_MAX];
    cx_err err = {0};
    bool taken = false;
    must(cx_fleet_take(fleet, part, &taken, &err), &err);
    for (size_t i = 0; i < RECORDS_MAX; i++)
        records[i] = (cx_fleet_record){.frame.guarded = cx_bytes_from(a.bytes, 128)};
    for (uint64_t done = 0; done < entries; done += RECORDS_MAX)
        must(cx_fleet_append(fleet, part, records, RECORDS_MAX, places, &err), &err);
}

static bool bench_takeover(const char *url, uint64_t entries)
{
    cx_fleet *first = open_node(url, "first"), *second = open_node(url, "second");
    cx_fleet_part one = {.number = 1}, two = {.number = 1};
    cx_fleet_record record = {.frame.guarded = cx_bytes_from(a.bytes, 128)};
    cx_fleet_place place;
    cx_err err = {0};
    bool taken = false;
    fill_part(first, &one, entries);
    must(cx_fleet_renew(first, &one, &err), &err);
    double lease_end = bench_seconds(CLOCK_MONOTONIC) + LEASE_MS / 1000.0;
    while (!taken) {
        must(cx_fleet_take(second, &two, &taken, &err), &err);
        cx_thread_sleep_ms(taken ? 0 : 10);
    }
    must(cx_fleet_append(second, &two, &record, 1, &place, &err), &err);
    double took = bench_seconds(CLOCK_MONOTONIC) - lease_end;
    bool ok = took <= F3_TARGET_S && place.num == one.next;
    printf("F3 takeover of a part with %" PRIu64
           " entries, seconds from the end of the lease: ours "
           "%.3f, reference %g, ratio %.2f (target 1): %s\n",
           entries, took, F3_TARGET_S, F3_TARGET_S / (took > 0.001 ? took : 0.001),
           ok ? "ok" : "below");
    cx_fleet_close(first);
    cx_fleet_close(second);
    return ok;
}

/* --- main ------------------------------------------------------------------------------------- */

static void open_database(const char *url)
{
    cx_pg_options options = CX_PG_OPTIONS_INIT;
    uint64_t applied;
    cx_err err = {0};
    must(cx_pg_open(url, &options, &a.pg, &err), &err);
    must(cx_pg_run(a.pg,
                   "SET synchronous_commit = on; DROP SCHEMA IF EXISTS cortex_fleet CASCADE; DROP "
                   "TABLE IF EXISTS bench_fleet; CREATE TABLE bench_fleet (n bigint, bytes bytea); "
                   "ALTER TABLE bench_fleet ALTER COLUMN bytes SET STORAGE EXTERNAL",
                   &err),
         &err);
    must(cx_fleet_init(url, false, NULL, &applied, &err), &err);
}

int main(int argc, char **argv)
{
    const char *url = getenv("CORTEX_TEST_PG");
    uint64_t entries = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    bool taken = false;
    cx_err err = {0};
    if (url == NULL) {
        bench_print_skipped("F1", "durable append of a node / COPY of the same bytes", 0.7,
                            "CORTEX_TEST_PG names no database");
        return 0;
    }
    fill_bytes();
    cx_buf_init(&a.rows, cx_alloc_default());
    open_database(url);
    a.fleet = open_node(url, "bench");
    must(cx_fleet_take(a.fleet, &a.part, &taken, &err), &err);
    bool ok = bench_append(1);
    ok = bench_append(16) && ok;
    ok = bench_append(256) && ok;
    ok = bench_takeover(url, entries) && ok;
    cx_fleet_close(a.fleet);
    (void)cx_pg_run(a.pg, "DROP TABLE bench_fleet", NULL).code;
    cx_pg_close(a.pg);
    cx_buf_done(&a.rows);
    return ok ? 0 : 1;
}
