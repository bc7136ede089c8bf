/*
 * bench_steps.c - finding words in what agents said and did.
 *
 *     bench_steps [rows] [folder]
 *
 * T6 finds the first page of 20 steps among a million that have a word, and asks the same of the
 * same file through SQLite's C interface.  Two words: one that a thousandth of the rows have, and
 * one that all have.
 */
#include "bench/bench.h"

#include <sqlite3.h>
#include <unistd.h>

#include "base/alloc.h"
#include "index/index_internal.h"
#include "index/steps.h"

#define SEED_ROWS 1000
#define PAGE 20

static void must(cx_status status, const cx_err *err)
{
    if (cx_failed(status)) {
        fprintf(stderr, "bench_steps: %s\n", err->message);
        exit(1);
    }
}

static void check_sqlite(int code, sqlite3 *handle)
{
    if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE) {
        fprintf(stderr, "bench_steps: %s\n", sqlite3_errmsg(handle));
        exit(1);
    }
}

static void put_seed(cx_index *index, size_t i)
{
    static const char *const kinds[] = {"message", "tool_call", "tool_result", "message"};
    static const char *const words[] = {"ledger",  "refund", "order", "limit", "session",
                                        "history", "agent",  "proof", "entry", "commit"};
    char text[2048], ref[32], history[32];
    cx_err err = {0};
    size_t at =
        (size_t)snprintf(text, sizeof text, "common text %zu %s", i, i == 0 ? "zebra " : "");
    for (size_t k = 0; k < 80; k++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s ", words[(i * 7 + k * k) % 10]);
    (void)snprintf(ref, sizeof ref, "at:0:%zu", i);
    (void)snprintf(history, sizeof history, "session/%zu", i / 100);
    const cx_step_row row = {.history = cx_str_z(history),
                             .source = CX_STR("codex"),
                             .ref = cx_str_z(ref),
                             .at_ns = INT64_C(1800000000000000000) + (int64_t)i,
                             .end_ns = CX_TIME_NONE,
                             .kind = cx_str_z(kinds[i % 4]),
                             .agent = CX_STR("main"),
                             .text = cx_str_from(text, at),
                             .actor = CX_STR("sessions"),
                             .seq = i};
    must(cx_index_put_step(index, &row, &err), &err);
}

/* A thousand rows the usual way, the others from them. */
static void fill(const char *path, size_t count)
{
    static const uint8_t home[16] = {1};
    cx_err err = {0};
    cx_index *index;
    char sql[1024];
    must(cx_index_open(path, CX_INDEX_WRITE, &index, &err), &err);
    must(cx_index_begin(index, &err), &err);
    for (size_t i = 0; i < SEED_ROWS; i++)
        put_seed(index, i);
    must(cx_index_commit(index, home, (cx_feed_position){1, 0}, &err), &err);
    (void)snprintf(sql, sizeof sql,
                   "BEGIN; WITH RECURSIVE k (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM k"
                   " WHERE n < %zu) INSERT INTO cirislens.cortex_steps SELECT id + n * %d,"
                   " history_id, ref || '-' || n, happened_at, kind, agent, role, tool, failed,"
                   " tokens_input, tokens_output, cost_usd, text, ledger_actor, ledger_seq"
                   " FROM k, cirislens.cortex_steps; COMMIT; ANALYZE cirislens",
                   count / SEED_ROWS - 1, SEED_ROWS);
    if (count > SEED_ROWS)
        must(index->engine->run(index, sql, &err), &err);
    cx_index_close(index);
}

typedef struct finder {
    cx_index *index;
    sqlite3 *handle;
    sqlite3_stmt *statement;
    const char *word;
    size_t found;
} finder;

static void search(void *arg)
{
    finder *f = arg;
    cx_err err = {0};
    cx_arena arena;
    const cx_found_step *found;
    size_t count = 0;
    bool more = false;
    const cx_step_query query = {.words = cx_str_z(f->word), .limit = PAGE};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    must(cx_index_search(f->index, &query, &arena, &found, &count, &more, &err), &err);
    f->found += count;
    cx_arena_done(&arena);
}

static void search_bare(void *arg)
{
    finder *f = arg;
    char match[64];
    int code;
    uint64_t sum = 0;
    if (f->statement == NULL)
        check_sqlite(
            sqlite3_prepare_v3(
                f->handle,
                "SELECT s.id, h.name, h.title, h.source, s.ref, s.kind, s.agent, s.role, s.tool,"
                " s.happened_at, s.failed, s.text FROM cirislens.cortex_steps s"
                " JOIN cirislens.cortex_histories h ON h.id = s.history_id WHERE s.id IN"
                " (SELECT rowid FROM cirislens.cortex_steps_text WHERE cortex_steps_text MATCH ?1"
                " ORDER BY rowid DESC LIMIT 21) ORDER BY s.id DESC LIMIT 21",
                -1, SQLITE_PREPARE_PERSISTENT, &f->statement, NULL),
            f->handle);
    (void)snprintf(match, sizeof match, "\"%s\"*", f->word);
    check_sqlite(sqlite3_bind_text(f->statement, 1, match, -1, SQLITE_STATIC), f->handle);
    while ((code = sqlite3_step(f->statement)) == SQLITE_ROW) {
        f->found++;
        for (int i = 0; i < 12; i++)
            sum += (uint64_t)sqlite3_column_bytes(f->statement, i);
    }
    check_sqlite(code, f->handle);
    check_sqlite(sqlite3_reset(f->statement), f->handle);
    f->found += sum == 1; /* what was read is used */
}

static sqlite3 *open_bare(const char *path)
{
    sqlite3 *handle;
    sqlite3_stmt *attach;
    check_sqlite(sqlite3_open(":memory:", &handle), handle);
    check_sqlite(sqlite3_prepare_v2(handle, "ATTACH ?1 AS cirislens", -1, &attach, NULL), handle);
    check_sqlite(sqlite3_bind_text(attach, 1, path, -1, SQLITE_STATIC), handle);
    check_sqlite(sqlite3_step(attach), handle);
    check_sqlite(sqlite3_finalize(attach), handle);
    return handle;
}

static bool compare(const char *path, const char *what, const char *word)
{
    cx_err err = {0};
    finder ours = {.word = word}, bare = {.word = word};
    must(cx_index_open(path, CX_INDEX_READ, &ours.index, &err), &err);
    bare.handle = open_bare(path);
    bench_side sides[] = {{.name = "cx_index_search", .work = search, .arg = &ours, .units = 1},
                          {.name = "sqlite3_step", .work = search_bare, .arg = &bare, .units = 1}};
    bench_measure(sides, 2);
    for (size_t i = 0; i < 2; i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1, "pages/s");
    bool ok = bench_print_row("T6", what, &sides[0].rate, &sides[1].rate, 1, 0.5);
    check_sqlite(sqlite3_finalize(bare.statement), bare.handle);
    check_sqlite(sqlite3_close(bare.handle), bare.handle);
    cx_index_close(ours.index);
    return ok && ours.found > 0 && bare.found > 0;
}

int main(int argc, char **argv)
{
    size_t rows = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
    const char *folder = argc > 2 ? argv[2] : "/tmp";
    char path[512];
    (void)snprintf(path, sizeof path, "%s/bench_steps.%ld.db", folder, (long)getpid());
    double from = bench_seconds(CLOCK_MONOTONIC);
    fill(path, rows);
    printf("  %zu rows in %.1f s\n", rows, bench_seconds(CLOCK_MONOTONIC) - from);
    bool ok = compare(path, "a word of a thousandth of the steps / bare SQLite", "zebra");
    ok = compare(path, "a word of all steps / bare SQLite", "common") && ok;
    (void)unlink(path);
    return ok ? 0 : 1;
}
