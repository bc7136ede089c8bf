/*
 * bench_index.c - the searchable index of traces.
 *
 *     bench_index [rows of T4] [folder]
 *
 * T3 feeds traces into PostgreSQL and copies the same rows in bare binary COPY into a table with
 * the same columns and indexes; it needs CORTEX_TEST_PG (tests/support/postgres.sh bench_index).
 * The rows are made beforehand; a second line has their making in it too. T4 finds pages of 100
 * rows among a million and asks the same statement through SQLite's C interface, on the same file.
 */
#include "bench/bench.h"

#include <math.h>
#include <sqlite3.h>
#include <unistd.h>

#include "base/alloc.h"
#include "db/db.h"
#include "db/pg.h"
#include "tests/test.h"
#include "tests/support/rows.h"
#include "index/index_internal.h"

#define T3_ROWS 20000
#define T3_TURNS 5
#define SEED_ROWS 1000
#define PAGE 100

/* rows.h checks as tests do; a failed check ends a benchmark. */
void cx_test_fail(const char *file, int line, const char *format, ...)
{
    (void)format;
    fprintf(stderr, "%s:%d: a check failed\n", file, line);
    exit(1);
}

static void must(cx_status status, const cx_err *err)
{
    if (cx_failed(status)) {
        fprintf(stderr, "bench_index: %s\n", err->message);
        exit(1);
    }
}

static const uint8_t home[16] = {1};

/* About 3 KB of components each, twenty agents, five days. */
static void describe(rows_spec *spec, size_t i, char id[24], char agent[24], char *rationale)
{
    static const char *const actions[] = {"SPEAK", "TOOL", "PONDER", "DEFER"};
    *spec = (rows_spec)ROWS_SPEC_INIT;
    (void)snprintf(id, 24, "trace-%zu", i);
    (void)snprintf(agent, 24, "%016zx", (i % 20) * 7919);
    (void)snprintf(rationale, 2048, "%.1500s answer %zu",
                   "The request asks for a summary of the open tasks; nothing in it concerns "
                   "others, the sources agree, and speaking is reversible.  The alternatives, to "
                   "ponder and to defer, cost time without adding knowledge.  ",
                   i);
    spec->trace_id = id;
    spec->agent = agent;
    spec->rationale = rationale;
    spec->at_ns += (int64_t)i * 20 * 1000000000;
    spec->csdma = (double)(i % 100) / 100;
    spec->k_eff = 1.0 + (double)(i % 30) / 10;
    spec->action = actions[i % 4];
    spec->audit_seq = (int64_t)(i / 20);
    spec->seq = i;
}

static double now(void)
{
    return bench_seconds(CLOCK_MONOTONIC);
}

#ifdef CX_WITH_PG

/* --- T3 --------------------------------------------------------------------------------------- */

static cx_str texts[T3_ROWS];
static cx_trace_facts facts[T3_ROWS];
static cx_trace_row rows[T3_ROWS];

static void make_rows(cx_arena *arena)
{
    for (size_t i = 0; i < T3_ROWS; i++) {
        rows_spec spec;
        char *names = CX_ARENA_ARRAY(arena, char, 48 + 2048);
        describe(&spec, i, names, names + 24, names + 48);
        texts[i] = rows_trace_text(&spec, arena);
        facts[i] = rows_facts(&spec);
        if (!rows_make_text(texts[i], &facts[i], arena, &rows[i]))
            exit(1);
    }
}

static void feed(cx_index *index, bool make)
{
    cx_err err = {0};
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    must(cx_index_begin(index, &err), &err);
    for (size_t i = 0; i < T3_ROWS; i++) {
        cx_trace_row row = rows[i];
        bool established;
        cx_arena_mark mark = cx_arena_mark_now(&arena);
        must(cx_index_established(index, rows[i].cells[CX_COL_agent_id_hash].text, &established,
                                  &err),
             &err);
        if (make && !rows_make_text(texts[i], &facts[i], &arena, &row))
            exit(1);
        must(cx_index_put_trace(index, &row, &err), &err);
        cx_arena_reset(&arena, mark);
    }
    must(cx_index_commit(index, home, (cx_feed_position){1, 0}, &err), &err);
    cx_arena_done(&arena);
}

static void encode(cx_buf *out)
{
    cx_err err = {0};
    for (size_t i = 0; i < T3_ROWS; i++) {
        cx_pg_value id = {.type = CX_PG_INT, .i = (int64_t)i + 1};
        cx_pg_add_row(out, CX_COL_COUNT + 1);
        must(cx_pg_add_value(out, &id, &err), &err);
        for (unsigned c = 0; c < CX_COL_COUNT; c++) {
            const cx_cell *cell = &rows[i].cells[c];
            cx_pg_value value = {.type = (cx_pg_type)cx_trace_columns[c].type, .null = cell->null};
            switch (value.type) {
            case CX_PG_INT:
            case CX_PG_TIME: value.i = cell->i; break;
            case CX_PG_FLOAT: value.f = cell->f; break;
            case CX_PG_BOOL: value.b = cell->b; break;
            default: value.text = cell->text; break;
            }
            must(cx_pg_add_value(out, &value, &err), &err);
        }
    }
    must(cx_buf_check(out, &err), &err);
}

static double copy(cx_pg *pg, const char *sql, const cx_buf *bytes)
{
    cx_err err = {0};
    must(cx_pg_run(pg, "TRUNCATE cirislens.covenant_traces, bench_light; CHECKPOINT", &err), &err);
    double start = bench_seconds(CLOCK_MONOTONIC);
    must(cx_pg_begin(pg, &err), &err);
    must(cx_pg_copy_begin(pg, sql, &err), &err);
    must(cx_pg_copy_rows(pg, cx_buf_bytes(bytes), &err), &err);
    must(cx_pg_copy_end(pg, &err), &err);
    must(cx_pg_commit(pg, &err), &err);
    return bench_seconds(CLOCK_MONOTONIC) - start;
}

static bool bench_feed(const char *url)
{
    double ours[T3_TURNS], making[T3_TURNS], bare[T3_TURNS], light[T3_TURNS];
    cx_err err = {0};
    cx_arena arena;
    cx_buf bytes;
    cx_index *index;
    cx_pg *pg;
    cx_pg_options options = CX_PG_OPTIONS_INIT;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&bytes, cx_alloc_default());
    make_rows(&arena);
    encode(&bytes);
    must(cx_index_open(url, CX_INDEX_WRITE, &index, &err), &err);
    must(cx_pg_open(url, &options, &pg, &err), &err);
    must(cx_index_clear(index, &err), &err);
    must(cx_pg_run(pg,
                   "DROP TABLE IF EXISTS bench_light;"
                   "CREATE TABLE bench_light (LIKE cirislens.covenant_traces,"
                   " PRIMARY KEY (agent_id_hash, trace_id, trace_level, timestamp))",
                   &err),
         &err);
    for (size_t turn = 0; turn < T3_TURNS; turn++) {
        double start;
        for (int make = 0; make < 2; make++) {
            must(cx_index_clear(index, &err), &err);
            must(cx_pg_run(pg, "CHECKPOINT", &err), &err);
            start = now();
            feed(index, make == 1);
            (make == 1 ? making : ours)[turn] = now() - start;
        }
        bare[turn] = copy(pg, "COPY cirislens.covenant_traces FROM STDIN (FORMAT binary)", &bytes);
        light[turn] = copy(pg, "COPY bench_light FROM STDIN (FORMAT binary)", &bytes);
    }
    printf("     %d rows of %zu bytes in one transaction\n", T3_ROWS, bytes.size / T3_ROWS);
    bench_rate put = bench_rate_of(ours, T3_TURNS, T3_ROWS, 0);
    bench_rate made = bench_rate_of(making, T3_TURNS, T3_ROWS, 0);
    bench_rate reference = bench_rate_of(bare, T3_TURNS, T3_ROWS, 0);
    bench_rate key_only = bench_rate_of(light, T3_TURNS, T3_ROWS, 0);
    bench_print_side("feed", &put, 1, "rows/s");
    bench_print_side("feed, rows made too", &made, 1, "rows/s");
    bench_print_side("bare COPY", &reference, 1, "rows/s");
    bench_print_side("bare COPY, primary key only", &key_only, 1, "rows/s");
    bool ok =
        bench_print_row("T3", "feed into PostgreSQL / bare COPY, rows/s", &put, &reference, 1, 0.5);
    ok =
        bench_print_row("T3", "the same with reading and making rows", &made, &reference, 1, 0.5) &&
        ok;
    must(cx_pg_run(pg, "DROP TABLE bench_light", &err), &err);
    cx_pg_close(pg);
    cx_index_close(index);
    cx_buf_done(&bytes);
    cx_arena_done(&arena);
    return ok;
}

#else

static bool bench_feed(const char *url)
{
    (void)url;
    bench_print_skipped("T3", "feed into PostgreSQL / bare COPY, rows/s", 0.5,
                        "built without PostgreSQL");
    return true;
}

#endif

/* --- T4 --------------------------------------------------------------------------------------- */

typedef struct finder {
    cx_index *index;
    sqlite3 *handle;
    sqlite3_stmt *statement;
    cx_trace_query query;
    size_t row_count;
    uint64_t state; /* where pages start */
    size_t found;
} finder;

/* A thousand rows the usual way, the others from them. */
static void fill(cx_index *index, size_t count)
{
    cx_err err = {0};
    cx_arena arena;
    cx_buf sql;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&sql, cx_alloc_default());
    must(cx_index_begin(index, &err), &err);
    for (size_t i = 0; i < SEED_ROWS; i++) {
        rows_spec spec;
        char id[24], agent[24], rationale[2048];
        cx_trace_row row;
        describe(&spec, i, id, agent, rationale);
        if (!rows_make(&spec, &arena, &row))
            exit(1);
        must(cx_index_put_trace(index, &row, &err), &err);
    }
    must(cx_index_commit(index, home, (cx_feed_position){1, 0}, &err), &err);
    cx_buf_printf(&sql,
                  "BEGIN; WITH RECURSIVE k (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM k"
                  " WHERE n < %zu) INSERT INTO cirislens.covenant_traces SELECT id + n * %d",
                  count / SEED_ROWS - 1, SEED_ROWS);
    for (unsigned i = 0; i < CX_COL_COUNT; i++) {
        if (i == CX_COL_trace_id)
            cx_buf_add_z(&sql, ", trace_id || '-' || n");
        else if (i == CX_COL_timestamp)
            cx_buf_add_z(&sql, ", strftime('%Y-%m-%dT%H:%M:%S', timestamp, (n * 20000) ||"
                               " ' seconds') || '.000000000Z'");
        else
            cx_buf_printf(&sql, ", %s", cx_trace_columns[i].name);
    }
    cx_buf_add_z(&sql, " FROM k, cirislens.covenant_traces; COMMIT; ANALYZE cirislens");
    if (count > SEED_ROWS)
        must(index->engine->run(index, cx_buf_z(&sql), &err), &err);
    cx_buf_done(&sql);
    cx_arena_done(&arena);
}

/* Both sides start their pages at the same places. */
static void next_place(finder *f)
{
    f->state = f->state * 6364136223846793005u + 1442695040888963407u;
    size_t row = (size_t)(f->state >> 33) % f->row_count;
    f->query.has_cursor = true;
    f->query.cursor_ns = ROWS_START_NS + (int64_t)row * 20 * 1000000000;
    f->query.cursor_id = (int64_t)row + 1;
}

static void find(void *arg)
{
    finder *f = arg;
    cx_err err = {0};
    cx_arena arena;
    const cx_found_row *found;
    size_t count;
    bool more;
    next_place(f);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    must(cx_index_find(f->index, &f->query, &arena, &found, &count, &more, &err), &err);
    f->found += count;
    cx_arena_done(&arena);
}

static void check_sqlite(int code, sqlite3 *handle)
{
    if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE) {
        fprintf(stderr, "bench_index: %s\n", sqlite3_errmsg(handle));
        exit(1);
    }
}

/* The same statement; every column is fetched, as a caller that makes an answer of them must. */
static void find_bare(void *arg)
{
    finder *f = arg;
    char time[CX_TRACE_TIME_SIZE];
    cx_sql_value values[CX_SQL_VALUES_MAX];
    unsigned count;
    cx_err err = {0};
    cx_arena arena;
    cx_buf sql;
    next_place(f);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&sql, cx_alloc_default());
    if (f->statement == NULL) {
        must(cx_index_find_sql(f->index, &f->query, &arena, &sql, values, &count, &err), &err);
        char *text = (char *)(uintptr_t)cx_buf_z(&sql);
        for (char *at = text; *at != 0; at++)
            *at = *at == '$' ? '?' : *at;
        check_sqlite(
            sqlite3_prepare_v3(f->handle, text, -1, SQLITE_PREPARE_PERSISTENT, &f->statement, NULL),
            f->handle);
    }
    cx_trace_time_write(f->query.cursor_ns, time);
    int at = 1;
    if (f->query.agent.data != NULL)
        check_sqlite(sqlite3_bind_text(f->statement, at++, f->query.agent.data,
                                       (int)f->query.agent.size, SQLITE_STATIC),
                     f->handle);
    check_sqlite(sqlite3_bind_text(f->statement, at++, time, -1, SQLITE_STATIC), f->handle);
    check_sqlite(sqlite3_bind_int64(f->statement, at++, f->query.cursor_id), f->handle);
    check_sqlite(sqlite3_bind_int64(f->statement, at, PAGE + 1), f->handle);
    int columns = sqlite3_column_count(f->statement), code;
    uint64_t sum = 0;
    while ((code = sqlite3_step(f->statement)) == SQLITE_ROW) {
        f->found++;
        for (int i = 0; i < columns; i++)
            switch (sqlite3_column_type(f->statement, i)) {
            case SQLITE_INTEGER: sum += (uint64_t)sqlite3_column_int64(f->statement, i); break;
            case SQLITE_FLOAT: sum += sqlite3_column_double(f->statement, i) > 0.5; break;
            case SQLITE_TEXT:
                sum += *sqlite3_column_text(f->statement, i) +
                       (uint64_t)sqlite3_column_bytes(f->statement, i);
                break;
            default: break;
            }
    }
    check_sqlite(code, f->handle);
    check_sqlite(sqlite3_reset(f->statement), f->handle);
    f->state += sum == 1; /* what was read is used */
    cx_buf_done(&sql);
    cx_arena_done(&arena);
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
    check_sqlite(sqlite3_exec(handle, "PRAGMA cirislens.cache_size=-16384", NULL, NULL, NULL),
                 handle);
    return handle;
}

static bool bench_pages(const char *path, size_t row_count, const char *what, const char *agent)
{
    cx_err err = {0};
    finder ours = {.row_count = row_count, .state = 7}, bare = {.row_count = row_count, .state = 7};
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    if (agent != NULL)
        query.agent = cx_str_z(agent);
    query.limit = PAGE;
    ours.query = bare.query = query;
    must(cx_index_open(path, CX_INDEX_READ, &ours.index, &err), &err);
    bare.index = ours.index;
    bare.handle = open_bare(path);
    bench_side sides[] = {{.name = "cx_index_find", .work = find, .arg = &ours, .units = 1},
                          {.name = "sqlite3_step", .work = find_bare, .arg = &bare, .units = 1}};
    bench_measure(sides, 2);
    for (size_t i = 0; i < 2; i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1, "pages/s");
    bool ok = bench_print_row("T4", what, &sides[0].rate, &sides[1].rate, 1, 0.5);
    check_sqlite(sqlite3_finalize(bare.statement), bare.handle);
    check_sqlite(sqlite3_close(bare.handle), bare.handle);
    cx_index_close(ours.index);
    return ok && ours.found > 0 && bare.found > 0;
}

/* --- the inbox -------------------------------------------------------------------------------- */

static cx_status take_cell(void *arg, const cx_facet_cell *cell, cx_err *err)
{
    (void)err;
    *(uint64_t *)arg += cell->traces;
    return CX_SUCCESS;
}

static void facets(void *arg)
{
    finder *f = arg;
    cx_err err = {0};
    uint64_t count = 0;
    bool complete;
    must(cx_index_facets(f->index, &f->query, take_cell, &count, &complete, &err), &err);
    f->found += count;
}

static void find_first(void *arg)
{
    finder *f = arg;
    cx_err err = {0};
    cx_arena arena;
    const cx_found_row *found;
    size_t count;
    bool more;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    must(cx_index_find(f->index, &f->query, &arena, &found, &count, &more, &err), &err);
    f->found += count;
    cx_arena_done(&arena);
}

/* What the page asks first: counts of everything, and pages of what has a word. */
static void bench_inbox(const char *path, size_t row_count)
{
    static const struct {
        const char *name, *words;
        void (*work)(void *arg);
    } asked[] = {{"facets of all", NULL, facets},
                 {"page, newest first", NULL, find_first},
                 {"page, an id", "trace-77-", find_first},
                 {"page, a rare word", "answer 77", find_first},
                 {"page, a word of all", "summary", find_first},
                 {"facets, a rare word", "answer 77", facets},
                 {"facets, a word of all", "summary", facets}};
    cx_err err = {0};
    printf("     the inbox over %zu rows:\n", row_count);
    for (size_t i = 0; i < CX_COUNT_OF(asked); i++) {
        finder f = {.row_count = row_count, .query = CX_TRACE_QUERY_INIT};
        f.query.limit = PAGE;
        f.query.words = asked[i].words == NULL ? (cx_str){NULL, 0} : cx_str_z(asked[i].words);
        must(cx_index_open(path, CX_INDEX_READ, &f.index, &err), &err);
        bench_side side = {.name = asked[i].name, .work = asked[i].work, .arg = &f, .units = 1};
        bench_measure(&side, 1);
        bench_print_side(asked[i].name, &side.rate, 1, "answers/s");
        cx_index_close(f.index);
    }
}

static bool bench_find(size_t row_count, const char *folder)
{
    char path[512], side_file[520];
    cx_err err = {0};
    cx_index *index;
    (void)snprintf(path, sizeof path, "%s/bench-index-%ld", folder, (long)getpid());
    must(cx_index_open(path, CX_INDEX_WRITE, &index, &err), &err);
    double start = now();
    fill(index, row_count);
    cx_index_close(index);
    printf("     %zu rows made in %.0f s\n", row_count, now() - start);
    bool ok = bench_pages(path, row_count, "pages of 100 rows, newest first, pages/s", NULL);
    ok = bench_pages(path, row_count, "the same of one agent", "0000000000001eef") && ok;
    bench_inbox(path, row_count);
    static const char *const endings[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(side_file, sizeof side_file, "%s%s", path, endings[i]);
        (void)remove(side_file);
    }
    return ok;
}

int main(int argc, char **argv)
{
    const char *url = getenv("CORTEX_TEST_PG");
    size_t row_count = argc > 1 ? (size_t)strtoull(argv[1], NULL, 10) : 1000000;
    const char *folder = argc > 2 ? argv[2] : "/tmp";
    bool ok = true;
    if (url != NULL)
        ok = bench_feed(url);
    else
        bench_print_skipped("T3", "feed into PostgreSQL / bare COPY, rows/s", 0.5,
                            "CORTEX_TEST_PG names no database");
    if (row_count >= SEED_ROWS)
        ok = bench_find(row_count, folder) && ok;
    return ok ? 0 : 1;
}
