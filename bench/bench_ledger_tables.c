/*
 * bench_ledger_tables.c - a home of many memories: opening it, and rebuilding its tables (rows G5,
 * G6).
 *
 *     bench_ledger_tables [FOLDER [RECORDS]]   on the file system of FOLDER (.), with RECORDS
 *                                              memories (1,000,000)
 *
 * G5  opening a home until its roots answer / reading its rows once and hashing two nodes a record.
 * G6  rebuilding all tables / reading the log and inserting the same rows with bare SQLite; once
 *     with the old tables lost, and once (for information) comparing with them, row by row.
 *
 * Ratios are of rates: a target of "at most 3 times as long" reads as 0.333.
 */
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/ledger_home.h"
#include "ledger/verify.h"
#include "log/log.h"

/* CX_BENCH_CLOCK=cpu: what one core does, of all threads together. */
static double now(void)
{
    return bench_seconds(bench_by_cpu() ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC);
}

static double open_and_answer(const char *name)
{
    const cx_home_options options = {0};
    cx_home *home;
    cx_roots roots;
    double before = now();
    bench_must(cx_home_open(bench_path(name), &options, &home, &bench_err));
    bench_must(cx_home_roots(home, CX_STR("bench"), &roots, &bench_err));
    double took = now() - before;
    bench_must(cx_home_close(home, &bench_err));
    return took;
}

static double read_and_hash(const char *name, uint64_t records)
{
    char path[4096];
    sqlite3 *db;
    sqlite3_stmt *statement;
    uint64_t sum = 0;
    static uint8_t pairs[1024 * 64];
    static cx_digest out[1024];
    (void)snprintf(path, sizeof path, "%s/cortex.db", bench_path(name));
    double before = now();
    bench_must_be(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK, "SQLite");
    const char *const queries[] = {"SELECT seq, leaf FROM entry", "SELECT key, value FROM record"};
    for (int q = 0; q < 2; q++) {
        bench_must_be(sqlite3_prepare_v2(db, queries[q], -1, &statement, NULL) == SQLITE_OK,
                      "prepare");
        while (sqlite3_step(statement) == SQLITE_ROW)
            sum += ((const uint8_t *)sqlite3_column_blob(statement, 1))[0] +
                   (uint64_t)sqlite3_column_bytes(statement, 1);
        sqlite3_finalize(statement);
    }
    sqlite3_close(db);
    for (uint64_t done = 0; done < 2 * records; done += 1024)
        cx_digest_pairs(pairs, out, 1024);
    double took = now() - before;
    return sum == 1 ? 0 : took;
}

static void measure_open(const char *name, uint64_t records)
{
    enum { TURNS = 5 };
    double ours[TURNS], theirs[TURNS];
    for (size_t i = 0; i < TURNS; i++) {
        ours[i] = open_and_answer(name);
        theirs[i] = read_and_hash(name, records);
    }
    bench_print_times("G5", "open until roots answer", ours, theirs, TURNS, 3);
}

static double rebuild_once(const char *name, bool tables_lost)
{
    const cx_home_options options = {0};
    cx_rebuild_result result;
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/cortex.db", bench_path(name));
    if (tables_lost)
        bench_must_be(unlink(path) == 0, path);
    double before = now();
    bench_must(cx_home_rebuild(bench_path(name), &options, CX_REBUILD, &result, &bench_err));
    return now() - before;
}

/* Reads every frame of the log, then copies the rows of the tables into a new database. */
static double read_and_insert(const char *name)
{
    static const char copy[] =
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-65536;"
        "CREATE TABLE entry(actor INTEGER NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL,"
        " created_ns INTEGER NOT NULL, subject BLOB, segment INTEGER NOT NULL,"
        " offset INTEGER NOT NULL, size INTEGER NOT NULL, leaf BLOB NOT NULL, sum INTEGER NOT NULL,"
        " PRIMARY KEY(actor, seq)) WITHOUT ROWID;"
        "CREATE INDEX entry_subject ON entry(actor, subject, seq) WHERE subject IS NOT NULL;"
        "CREATE TABLE record(actor INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,"
        " PRIMARY KEY(actor, key)) WITHOUT ROWID;";
    char path[4096], sql[8192];
    sqlite3 *db;
    cx_log *log;
    cx_log_scan *scan;
    cx_log_opened opened;
    const cx_log_options options = {.read_only = true};
    (void)snprintf(path, sizeof path, "%s/log", bench_path(name));
    (void)unlink(bench_path("copy.db"));
    double before = now();
    bench_must(cx_log_open(path, &options, &log, &opened, &bench_err));
    bench_must(cx_log_scan_begin(log, 0, &scan, &bench_err));
    for (bool end = false; !end;) {
        cx_log_commit commit;
        bench_must(cx_log_scan_next(scan, &commit, &end, &bench_err));
    }
    cx_log_scan_end(scan);
    cx_log_close(log);
    bench_must_be(sqlite3_open(bench_path("copy.db"), &db) == SQLITE_OK, "SQLite");
    bench_must_be(sqlite3_exec(db, copy, NULL, NULL, NULL) == SQLITE_OK, "schema");
    (void)snprintf(sql, sizeof sql,
                   "ATTACH '%s/cortex.db' AS old; BEGIN;"
                   "INSERT INTO entry SELECT * FROM old.entry ORDER BY actor, seq;"
                   "INSERT INTO record SELECT * FROM old.record ORDER BY actor, key; COMMIT;",
                   bench_path(name));
    bench_must_be(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, sqlite3_errmsg(db));
    sqlite3_close(db);
    return now() - before;
}

static void measure_rebuild(const char *name)
{
    enum { TURNS = 3 };
    double ours[TURNS], compared[TURNS], theirs[TURNS];
    for (size_t i = 0; i < TURNS; i++) {
        ours[i] = rebuild_once(name, true);
        theirs[i] = read_and_insert(name);
        compared[i] = rebuild_once(name, false);
    }
    bench_print_times("G6", "rebuild all tables", ours, theirs, TURNS, 2);
    qsort(compared, TURNS, sizeof *compared, bench_compare);
    printf("     with the old tables compared: %.3f / %.3f / %.3f s (min/median/max), time ratio"
           " %.2f\n",
           compared[0], compared[TURNS / 2], compared[TURNS - 1],
           compared[TURNS / 2] / theirs[TURNS / 2]);
}

int main(int argc, char **argv)
{
    uint64_t records = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000;
    bench_folder_make(argc > 1 ? argv[1] : ".");
    printf("     filling a home with %llu memories: %.4g a second, tables included\n",
           (unsigned long long)records, bench_home_fill("many", records));
    sync(); /* the disk is done with what filling wrote */
    measure_open("many", records);
    measure_rebuild("many");
    return bench_folder_remove();
}
