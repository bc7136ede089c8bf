/*
 * test_index_pg.c - the index when PostgreSQL goes away, is slow or full, and its partitions.
 *
 * After whatever happened the feed goes on from cx_index_position, and the rows are those of an
 * index that nothing ever happened to.
 */
#ifdef CX_WITH_PG

#include "os/proc.h"
#include "tests/support/index_kit.h"

/* Takes stop, start, restart, crash; false, with the test marked skipped, when there is no such
 * script. */
static bool control(const char *what)
{
    const char *script = getenv("CORTEX_TEST_PG_CONTROL");
    if (script == NULL) {
        cx_test_skip("CORTEX_TEST_PG_CONTROL names no script");
        return false;
    }
    cx_err err = {0};
    cx_proc_result result = {0};
    const char *argv[] = {script, what, NULL};
    cx_proc_options options = {.argv = argv, .inherit_env = true, .timeout_ms = 120000};
    CHECK_STATUS(cx_proc_run(&options, NULL, NULL, &result, &err), &err);
    CHECK_INT(result.exit_code, 0);
    return result.exit_code == 0;
}

enum { FEED_ROWS = 200, FEED_STEP = 20 };

static void make_feed(rows_spec *specs)
{
    static char ids[FEED_ROWS][16];
    for (size_t i = 0; i < FEED_ROWS; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "f-%zu", i);
        specs[i] = (rows_spec)ROWS_SPEC_INIT;
        specs[i].trace_id = ids[i];
        specs[i].agent = i % 3 == 0 ? "agent-a" : "agent-b";
        specs[i].at_ns += (int64_t)i * ROWS_DAY_NS / 40;
        specs[i].verified = i % 5 != 0;
        specs[i].seq = i;
    }
}

/* Feeds from the position on, a transaction a step; stops at the first failure. */
static cx_status feed(cx_index *index, const rows_spec *specs, void (*between)(size_t at),
                      cx_err *err)
{
    cx_feed_position position;
    CX_TRY(cx_index_position(index, kit_home, &position, err));
    for (size_t at = position.commit; at < FEED_ROWS; at += FEED_STEP) {
        cx_arena arena;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        cx_status status = cx_index_begin(index, err);
        for (size_t i = 0; i < FEED_STEP && !cx_failed(status); i++) {
            cx_trace_row row;
            if (rows_make(&specs[at + i], &arena, &row))
                status = cx_index_put_trace(index, &row, err);
            if (between != NULL && i == FEED_STEP / 2)
                between(at + i);
        }
        position = (cx_feed_position){at + FEED_STEP, 0};
        if (!cx_failed(status))
            status = cx_index_commit(index, kit_home, position, err);
        else
            cx_index_rollback(index);
        cx_arena_done(&arena);
        if (cx_failed(status))
            return status;
    }
    return CX_SUCCESS;
}

/* What an index holds that nothing happened to. */
static void expected_dump(const rows_spec *specs, cx_buf *out)
{
    cx_err err = {0};
    const char *path = kit_place(false);
    cx_index *index = kit_open_empty(path);
    REQUIRE(index != NULL);
    CHECK_STATUS(feed(index, specs, NULL, &err), &err);
    kit_dump(index, out);
    cx_index_close(index);
    kit_remove(path, false);
}

static bool is_away(cx_status status, const cx_err *err)
{
    return (status.code == CX_E_IO || status.code == CX_E_BUSY) && err->tag != NULL &&
           strcmp(err->tag, "DatabaseAway") == 0;
}

static const char *stop_how;
static size_t stop_at;

static void stop_between(size_t at)
{
    if (stop_how != NULL && at >= stop_at) {
        (void)control(stop_how);
        stop_how = NULL;
    }
}

static void feed_through(const char *how)
{
    const char *url = kit_place(true);
    if (url == NULL || getenv("CORTEX_TEST_PG_CONTROL") == NULL) {
        cx_test_skip("CORTEX_TEST_PG_CONTROL names no script");
        return;
    }
    static rows_spec specs[FEED_ROWS];
    cx_err err = {0};
    cx_buf expected, found;
    cx_buf_init(&expected, cx_alloc_default());
    cx_buf_init(&found, cx_alloc_default());
    make_feed(specs);
    expected_dump(specs, &expected);
    cx_index *index = kit_open_empty(url);
    REQUIRE(index != NULL);
    stop_how = how;
    stop_at = 90;
    cx_status status = feed(index, specs, stop_between, &err);
    CHECK(is_away(status, &err));
    if (strcmp(how, "restart") != 0) {
        /* While it is away everything says so, and nothing hangs or crashes. */
        status = cx_index_begin(index, &err);
        CHECK(is_away(status, &err));
        cx_index *other;
        status = cx_index_open(url, CX_INDEX_READ, &other, &err);
        CHECK(is_away(status, &err));
        CHECK(control("start"));
    }
    /* The same object goes on. */
    status = feed(index, specs, NULL, &err);
    CHECK_STATUS(status, &err);
    kit_dump(index, &found);
    CHECK(expected.size > 10000 && cx_str_eq(cx_buf_str(&expected), cx_buf_str(&found)));
    cx_index_close(index);
    cx_buf_done(&expected);
    cx_buf_done(&found);
}

CX_TEST(pg_stopped_in_a_transaction)
{
    feed_through("stop");
}

CX_TEST(pg_restarted_in_a_transaction)
{
    feed_through("restart");
}

CX_TEST(pg_crashed_in_a_transaction)
{
    feed_through("crash");
}

/* --- other ways to be away -------------------------------------------------------------------- */

static cx_pg *connect_plain(const char *url, unsigned timeout_ms)
{
    cx_err err = {0};
    cx_pg *pg = NULL;
    cx_pg_options options = CX_PG_OPTIONS_INIT;
    options.statement_timeout_ms = timeout_ms;
    CHECK_STATUS(cx_pg_open(url, &options, &pg, &err), &err);
    return pg;
}

CX_TEST(pg_a_killed_session_is_fed_again)
{
    const char *url = kit_place(true);
    if (url == NULL)
        return;
    static rows_spec specs[FEED_ROWS];
    cx_err err = {0};
    make_feed(specs);
    cx_index *index = kit_open_empty(url);
    cx_pg *other = connect_plain(url, 10000);
    REQUIRE(index != NULL && other != NULL);
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    CHECK_STATUS(cx_pg_run(other,
                           "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                           " WHERE application_name = 'cortex feed'",
                           &err),
                 &err);
    cx_arena arena;
    cx_trace_row row;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    REQUIRE(rows_make(&specs[0], &arena, &row));
    /* A row only waits; what needs the server fails. */
    CHECK_STATUS(cx_index_put_trace(index, &row, &err), &err);
    cx_status status = cx_index_commit(index, kit_home, kit_position, &err);
    CHECK(is_away(status, &err));
    CHECK_STATUS(feed(index, specs, NULL, &err), &err);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"), FEED_ROWS);
    cx_arena_done(&arena);
    cx_pg_close(other);
    cx_index_close(index);
}

CX_TEST(pg_a_locked_table_is_busy_and_not_a_hang)
{
    const char *url = kit_place(true);
    if (url == NULL)
        return;
    cx_err err = {0};
    rows_spec spec = ROWS_SPEC_INIT;
    cx_arena arena;
    cx_trace_row row;
    cx_index *index = kit_open_empty(url);
    cx_pg *other = connect_plain(url, 10000);
    REQUIRE(index != NULL && other != NULL);
    CHECK_STATUS(index->engine->run(index, "SET statement_timeout = 300", &err), &err);
    CHECK_STATUS(cx_pg_begin(other, &err), &err);
    CHECK_STATUS(cx_pg_run(other, "LOCK TABLE cirislens.covenant_traces", &err), &err);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    REQUIRE(rows_make(&spec, &arena, &row));
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    CHECK_STATUS(cx_index_put_trace(index, &row, &err), &err);
    cx_status status = cx_index_commit(index, kit_home, kit_position, &err);
    CHECK(status.code == CX_E_BUSY && is_away(status, &err));
    cx_pg_rollback(other);
    kit_put(index, &spec, 1);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"), 1);
    cx_arena_done(&arena);
    cx_pg_close(other);
    cx_index_close(index);
}

CX_TEST(pg_one_program_writes_at_a_time_and_any_may_read)
{
    const char *url = kit_place(true);
    if (url == NULL)
        return;
    cx_err err = {0};
    cx_index *second = NULL, *index = kit_open_empty(url);
    REQUIRE(index != NULL);
    cx_status status = cx_index_open(url, CX_INDEX_WRITE, &second, &err);
    CHECK(status.code == CX_E_BUSY);
    CHECK_STR(cx_str_z(err.tag), "IndexBusy");
    rows_spec spec = ROWS_SPEC_INIT;
    kit_put(index, &spec, 1);
    CHECK_STATUS(cx_index_open(url, CX_INDEX_READ, &second, &err), &err);
    CHECK_INT(kit_number(second, "SELECT count(*) FROM cirislens.covenant_traces"), 1);
    status = cx_index_do(second, "DELETE FROM cirislens.covenant_traces", NULL, 0, &err);
    CHECK(status.code == CX_E_DENIED);
    cx_index_close(second);
    cx_index_close(index);
}

/* --- partitions ------------------------------------------------------------------------------- */

CX_TEST(pg_days_have_partitions_and_strays_move_into_them)
{
    const char *url = kit_place(true);
    if (url == NULL)
        return;
    cx_err err = {0};
    uint64_t dropped;
    cx_index *index = kit_open_empty(url);
    REQUIRE(index != NULL);
    rows_spec spec = ROWS_SPEC_INIT;
    kit_put(index, &spec, 1);
    static const char parts[] = "SELECT count(*) FROM pg_inherits WHERE inhparent ="
                                " to_regclass('cirislens.covenant_traces')";
    CHECK_INT(kit_number(index, parts), 3); /* the default one, the day, the day after */
    /* It says that it is of the day after next year: no table for that. */
    cx_arena arena;
    cx_trace_row row;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    spec.trace_id = "t-future";
    spec.at_ns += 365 * ROWS_DAY_NS;
    REQUIRE(rows_make(&spec, &arena, &row));
    row.cells[CX_COL_received_at].i = ROWS_START_NS;
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    CHECK_STATUS(cx_index_put_trace(index, &row, &err), &err);
    CHECK_STATUS(cx_index_commit(index, kit_home, kit_position, &err), &err);
    CHECK_INT(kit_number(index, parts), 3);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces_default"), 1);
    /* When that day has come, both are in its partition. */
    spec.trace_id = "t-then";
    kit_put(index, &spec, 1);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces_default"), 0);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces_p20270101"), 2);
    CHECK_INT(kit_number(index, parts), 5);
    CHECK_STATUS(cx_index_retain(index, ROWS_START_NS + 30 * ROWS_DAY_NS, &dropped, &err), &err);
    CHECK_INT(dropped, 1);
    CHECK_INT(kit_number(index, parts), 3);
    /* A rolled back partition is made again. */
    spec.at_ns += 5 * ROWS_DAY_NS;
    REQUIRE(rows_make(&spec, &arena, &row));
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    CHECK_STATUS(cx_index_put_trace(index, &row, &err), &err);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"), 2);
    cx_index_rollback(index);
    kit_put(index, &spec, 1);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces_p20270106"), 1);
    cx_arena_done(&arena);
    cx_index_close(index);
}

/* A sender with a year of history does not use up the server's locks. */
CX_TEST(pg_many_days_in_one_transaction)
{
    const char *url = kit_place(true);
    if (url == NULL)
        return;
    enum { DAYS = 95 };
    static rows_spec specs[DAYS];
    static char ids[DAYS][16];
    cx_err err = {0};
    uint64_t dropped;
    cx_index *index = kit_open_empty(url);
    REQUIRE(index != NULL);
    for (size_t i = 0; i < DAYS; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "y-%zu", i);
        specs[i] = (rows_spec)ROWS_SPEC_INIT;
        specs[i].trace_id = ids[i];
        specs[i].at_ns += (int64_t)i * ROWS_DAY_NS;
    }
    kit_put(index, specs, DAYS);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"), DAYS);
    CHECK(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces_default") > 0);
    kit_put(index, specs, DAYS); /* the rest of the days get theirs now */
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces_default"), 0);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"), DAYS);
    CHECK_STATUS(cx_index_retain(index, ROWS_START_NS + DAYS * ROWS_DAY_NS, &dropped, &err), &err);
    CHECK_INT(dropped, DAYS);
    cx_index_close(index);
}

/* --- TimescaleDB ------------------------------------------------------------------------------ */

static cx_status take_there(void *arg, const cx_pg_value *columns, cx_err *err)
{
    (void)err;
    *(bool *)arg = columns[0].b;
    return CX_SUCCESS;
}

CX_TEST(pg_timescale_has_hypertable_and_policies)
{
    static const cx_pg_type types[] = {CX_PG_BOOL};
    const char *url = kit_place(true);
    if (url == NULL)
        return;
    cx_err err = {0};
    bool there = false;
    cx_pg *pg = connect_plain(url, 10000);
    REQUIRE(pg != NULL);
    CHECK_STATUS(cx_pg_query(pg,
                             "SELECT EXISTS (SELECT FROM pg_available_extensions"
                             " WHERE name = 'timescaledb')",
                             NULL, 0, types, 1, take_there, &there, NULL, &err),
                 &err);
    cx_pg_close(pg);
    cx_index *index = kit_open_empty(url);
    REQUIRE(index != NULL);
    if (!there) {
        CHECK_STR(cx_str_z(cx_index_engine(index)), "postgresql");
        cx_index_close(index);
        cx_test_skip("the server has no TimescaleDB");
        return;
    }
    CHECK_STR(cx_str_z(cx_index_engine(index)), "timescaledb");
    CHECK_INT(kit_number(index, "SELECT count(*) FROM timescaledb_information.jobs WHERE"
                                " hypertable_schema = 'cirislens' AND proc_name IN"
                                " ('policy_compression', 'policy_retention')"),
              2);
    rows_spec spec = ROWS_SPEC_INIT;
    kit_put(index, &spec, 1);
    CHECK_INT(kit_number(index, "SELECT count(*) FROM cirislens.covenant_traces"), 1);
    cx_index_close(index);
}

#endif
