/*
 * index_pg.c - the index in PostgreSQL: connection, queries, transactions, retention.
 *
 * One program writes at a time: it holds an advisory lock while it is connected.  After a lost
 * connection the next transaction, or the next query outside one, reconnects; what was not
 * committed is fed again from cx_index_position (I2).
 */
#ifdef CX_WITH_PG

#include "index/index_pg.h"

#include "base/api.h"

/* "cortexix" as a number. */
#define WRITER_LOCK "7165915922364365176"

/* Summaries are retained this much longer than rows: with the default 90 days, a year. */
#define SUMMARY_MORE_NS (INT64_C(275) * 86400 * 1000000000)

_Static_assert((int)CX_CELL_TEXT == (int)CX_PG_TEXT && (int)CX_CELL_INT == (int)CX_PG_INT &&
                   (int)CX_CELL_FLOAT == (int)CX_PG_FLOAT && (int)CX_CELL_BOOL == (int)CX_PG_BOOL &&
                   (int)CX_CELL_TIME == (int)CX_PG_TIME && (int)CX_CELL_JSON == (int)CX_PG_JSON &&
                   (int)CX_CELL_TEXTS == (int)CX_PG_TEXTS && (int)CX_CELL_UUID == (int)CX_PG_UUID,
               "cell types have the same numbers");

static cx_pg_index *pg_index_of(const cx_index *index)
{
    return index->connection;
}

bool cx_index_pg_is_timescale(const cx_index *index)
{
    return pg_index_of(index)->timescale;
}

static const char *engine_name(const cx_index *index)
{
    return pg_index_of(index)->timescale ? "timescaledb" : "postgresql";
}

/* --- the session ------------------------------------------------------------------------------ */

static cx_status read_bool(void *arg, const cx_pg_value *columns, cx_err *err)
{
    (void)err;
    *(bool *)arg = !columns[0].null && columns[0].b;
    return CX_SUCCESS;
}

static cx_status ask_bool(cx_pg *pg, const char *sql, bool *out, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BOOL};
    *out = false;
    return cx_pg_query(pg, sql, NULL, 0, types, 1, read_bool, out, NULL, err);
}

/* Waits briefly: the server may not have closed the session of a program that just ended. */
static cx_status lock_writer(cx_pg_index *own_index, cx_err *err)
{
    cx_pg *pg = own_index->pg;
    CX_TRY(cx_pg_run(pg, "SET lock_timeout = 1500", err));
    cx_status status = cx_pg_run(pg, "SELECT pg_advisory_lock(" WRITER_LOCK ")", err);
    if (cx_failed(status))
        return status.code != CX_E_BUSY ? status
                                        : cx_fail_at(err, CX_E_BUSY, "IndexBusy", CX_NO_OFFSET,
                                                     "another program writes to this trace index");
    return cx_pg_run(pg, "SET lock_timeout = 0", err);
}

/* Uses the extension where it is installed, and installs it where that is allowed; existing tables
 * keep the choice that was made when they were created. */
static cx_status choose_engine(cx_index *index, cx_err *err)
{
    cx_pg_index *own_index = pg_index_of(index);
    bool there, installed, available;
    CX_TRY(ask_bool(own_index->pg, "SELECT to_regclass('cirislens.covenant_traces') IS NOT NULL",
                    &there, err));
    CX_TRY(ask_bool(own_index->pg,
                    "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'timescaledb')",
                    &installed, err));
    if (there) {
        bool partitioned;
        CX_TRY(ask_bool(own_index->pg,
                        "SELECT relkind = 'p' FROM pg_class"
                        " WHERE oid = to_regclass('cirislens.covenant_traces')",
                        &partitioned, err));
        own_index->timescale = installed && !partitioned;
        return CX_SUCCESS;
    }
    CX_TRY(ask_bool(own_index->pg,
                    "SELECT EXISTS (SELECT FROM pg_available_extensions"
                    " WHERE name = 'timescaledb')",
                    &available, err));
    own_index->timescale = installed;
    if (!installed && available && index->mode == CX_INDEX_WRITE)
        own_index->timescale = !cx_failed(
            cx_pg_run(own_index->pg, "CREATE EXTENSION IF NOT EXISTS timescaledb", NULL));
    return CX_SUCCESS;
}

static cx_status start_session(cx_index *index, cx_err *err)
{
    cx_pg_index *own_index = pg_index_of(index);
    cx_index_pg_forget_rows(own_index);
    own_index->days.count = 0;
    own_index->days_known = false;
    if (index->mode == CX_INDEX_WRITE)
        CX_TRY(lock_writer(own_index, err));
    return choose_engine(index, err);
}

/* Reconnects unless that would lose an open transaction. */
static cx_status reconnect_if_away(cx_index *index, cx_err *err)
{
    cx_pg_index *own_index = pg_index_of(index);
    if (index->in_transaction || !cx_pg_is_away(own_index->pg))
        return CX_SUCCESS;
    CX_TRY(cx_pg_reconnect(own_index->pg, err));
    return start_session(index, err);
}

/* --- questions -------------------------------------------------------------------------------- */

typedef struct row_bridge {
    const cx_question *question;
    cx_cell cells[CX_SQL_COLUMNS_MAX];
} row_bridge;

static cx_status pass_row(void *arg, const cx_pg_value *columns, cx_err *err)
{
    row_bridge *bridge = arg;
    for (size_t i = 0; i < bridge->question->column_count; i++) {
        cx_cell *cell = &bridge->cells[i];
        *cell = (cx_cell){.null = columns[i].null};
        if (cell->null)
            continue;
        switch (columns[i].type) {
        case CX_PG_INT:
        case CX_PG_TIME: cell->i = columns[i].i; break;
        case CX_PG_FLOAT: cell->f = columns[i].f; break;
        case CX_PG_BOOL: cell->b = columns[i].b; break;
        default: cell->text = columns[i].text; break;
        }
    }
    return bridge->question->row(bridge->question->arg, bridge->cells, err);
}

static cx_pg_value value_of(const cx_sql_value *value)
{
    cx_pg_value out = {.type = (cx_pg_type)value->type, .null = value->cell.null};
    switch (value->type) {
    case CX_CELL_INT:
    case CX_CELL_TIME: out.i = value->cell.i; break;
    case CX_CELL_FLOAT: out.f = value->cell.f; break;
    case CX_CELL_BOOL: out.b = value->cell.b; break;
    default: out.text = value->cell.text; break;
    }
    return out;
}

static cx_status ask_engine_once(cx_index *index, const cx_question *question, cx_err *err)
{
    cx_pg_value values[CX_SQL_COLUMNS_MAX];
    cx_pg_type types[CX_SQL_COLUMNS_MAX];
    row_bridge bridge = {.question = question};
    CX_ASSERT(question->value_count <= CX_SQL_COLUMNS_MAX &&
              question->column_count <= CX_SQL_COLUMNS_MAX);
    for (size_t i = 0; i < question->value_count; i++)
        values[i] = value_of(&question->values[i]);
    for (size_t i = 0; i < question->column_count; i++)
        types[i] = (cx_pg_type)question->types[i];
    return cx_pg_query(pg_index_of(index)->pg, question->sql, values, question->value_count, types,
                       question->column_count, question->row == NULL ? NULL : pass_row, &bridge,
                       NULL, err);
}

static cx_status ask_engine(cx_index *index, const cx_question *question, cx_err *err)
{
    CX_TRY(reconnect_if_away(index, err));
    return ask_engine_once(index, question, err);
}

static cx_status run_sql(cx_index *index, const char *sql, cx_err *err)
{
    return cx_pg_run(pg_index_of(index)->pg, sql, err);
}

/* --- transactions ----------------------------------------------------------------------------- */

static cx_status begin_txn(cx_index *index, cx_err *err)
{
    cx_pg_index *own_index = pg_index_of(index);
    CX_TRY(reconnect_if_away(index, err));
    cx_index_pg_forget_rows(own_index);
    own_index->stale_hours.count = 0;
    own_index->days_made = 0;
    CX_TRY(cx_pg_begin(own_index->pg, err));
    /* The feed looks up single keys; missing statistics must not mislead the planner. */
    cx_status status = cx_pg_run(own_index->pg, "SET LOCAL enable_seqscan = off", err);
    if (cx_failed(status))
        cx_pg_rollback(own_index->pg);
    return status;
}

static cx_status commit_txn(cx_index *index, cx_err *err)
{
    return cx_pg_commit(pg_index_of(index)->pg, err);
}

static void rollback_txn(cx_index *index)
{
    cx_pg_index *own_index = pg_index_of(index);
    cx_pg_rollback(own_index->pg);
    cx_index_pg_forget_rows(own_index);
    own_index->days.count = 0; /* partitions of the aborted transaction were rolled back */
    own_index->days_known = false;
}

/* --- tables ----------------------------------------------------------------------------------- */

static cx_status has_tables(cx_index *index, bool *out, cx_err *err)
{
    bool schema;
    cx_pg *pg = pg_index_of(index)->pg;
    CX_TRY(ask_bool(pg, "SELECT to_regclass('cirislens.cortex_index_versions') IS NOT NULL", out,
                    err));
    if (*out || index->mode != CX_INDEX_WRITE)
        return CX_SUCCESS;
    CX_TRY(ask_bool(pg, "SELECT to_regnamespace('cirislens') IS NOT NULL", &schema, err));
    return schema ? CX_SUCCESS : cx_pg_run(pg, "CREATE SCHEMA cirislens", err);
}

static cx_status drop_tables(cx_index *index, cx_err *err)
{
    pg_index_of(index)->days.count = 0;
    pg_index_of(index)->days_known = false;
    CX_TRY(cx_pg_forget(pg_index_of(index)->pg, err));
    return cx_index_pg_drop(index, err);
}

/* The server's vacuum removes dead rows and index entries (docs/sql.md). */
static cx_status scrub_deleted(cx_index *index, cx_err *err)
{
    (void)index;
    (void)err;
    return CX_SUCCESS;
}

/* --- summaries and age ------------------------------------------------------------------------ */

static cx_status change_rows(cx_index *index, const char *sql, const cx_pg_value *values,
                             size_t count, uint64_t *out, cx_err *err)
{
    return cx_pg_query(pg_index_of(index)->pg, sql, values, count, NULL, 0, NULL, NULL, out, err);
}

static cx_status refresh_summaries(cx_index *index, uint64_t *out, cx_err *err)
{
    cx_pg_value kept = {.type = CX_PG_TIME,
                        .i = index->retained_ns == CX_TIME_NONE ? 0 : index->retained_ns};
    cx_buf sql;
    *out = 0;
    if (pg_index_of(index)->timescale)
        return CX_SUCCESS;
    /* Rows before the last retention were dropped; only their summaries are left. */
    CX_TRY(change_rows(index, "DELETE FROM cirislens.covenant_agent_hours_stale WHERE bucket < $1",
                       &kept, 1, NULL, err));
    CX_TRY(change_rows(index,
                       "DELETE FROM cirislens.covenant_agent_hours WHERE bucket IN"
                       " (SELECT bucket FROM cirislens.covenant_agent_hours_stale)",
                       NULL, 0, NULL, err));
    cx_buf_init(&sql, cx_alloc_default());
    cx_index_pg_refresh_sql(&sql);
    const char *text = cx_buf_z(&sql);
    cx_status status =
        text == NULL ? cx_fail_nomem(err) : change_rows(index, text, NULL, 0, NULL, err);
    cx_buf_done(&sql);
    if (cx_failed(status))
        return status;
    return change_rows(index, "DELETE FROM cirislens.covenant_agent_hours_stale", NULL, 0, out,
                       err);
}

/* Only whole chunks are dropped: rows are retained from the start of the oldest chunk with a row to
 * retain. */
static cx_status drop_chunks(cx_index *index, int64_t *before_ns, uint64_t *out, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_INT};
    cx_sql_value before = cx_sql_time(*before_ns);
    int64_t start = *before_ns;
    cx_question question = {"SELECT CAST(extract(epoch FROM min(range_start)) AS bigint)"
                            " FROM timescaledb_information.chunks"
                            " WHERE hypertable_schema = 'cirislens'"
                            " AND hypertable_name = 'covenant_traces' AND range_end > $1",
                            &before,
                            1,
                            types,
                            1,
                            NULL,
                            NULL};
    int64_t seconds;
    CX_TRY(
        cx_index_number(index, question.sql, &before, 1, *before_ns / 1000000000, &seconds, err));
    if (seconds * 1000000000 < start)
        start = seconds * 1000000000;
    cx_pg_value value = {.type = CX_PG_TIME, .i = start};
    int64_t count;
    before = cx_sql_time(start);
    CX_TRY(cx_index_number(index,
                           "SELECT count(*) FROM cirislens.covenant_traces WHERE timestamp < $1",
                           &before, 1, 0, &count, err));
    CX_TRY(change_rows(index, "SELECT drop_chunks('cirislens.covenant_traces', older_than => $1)",
                       &value, 1, NULL, err));
    *before_ns = start;
    *out = (uint64_t)count;
    return CX_SUCCESS;
}

static cx_status retain_rows(cx_index *index, int64_t *before_ns, uint64_t *out, cx_err *err)
{
    uint64_t hours, rest = 0;
    if (pg_index_of(index)->timescale)
        return drop_chunks(index, before_ns, out, err);
    CX_TRY(refresh_summaries(index, &hours, err));
    CX_TRY(cx_index_pg_drop_days(index, *before_ns, out, err));
    cx_pg_value before = {.type = CX_PG_TIME, .i = *before_ns};
    CX_TRY(change_rows(index, "DELETE FROM cirislens.covenant_traces WHERE timestamp < $1", &before,
                       1, &rest, err));
    *out += rest;
    before.i = *before_ns > SUMMARY_MORE_NS ? *before_ns - SUMMARY_MORE_NS : 0;
    return change_rows(index, "DELETE FROM cirislens.covenant_agent_hours WHERE bucket < $1",
                       &before, 1, NULL, err);
}

/* --- opening ---------------------------------------------------------------------------------- */

static void close_index(cx_index *index)
{
    cx_pg_index *own_index = pg_index_of(index);
    if (own_index == NULL)
        return;
    cx_pg_close(own_index->pg);
    cx_buf_done(&own_index->rows);
    cx_arena_done(&own_index->texts);
    cx_map_done(&own_index->traces);
    cx_vec_done(&own_index->pending, cx_alloc_default());
    cx_vec_done(&own_index->days, cx_alloc_default());
    cx_vec_done(&own_index->stale_hours, cx_alloc_default());
    cx_alloc_free(cx_alloc_default(), own_index, sizeof *own_index);
    index->connection = NULL;
}

const cx_index_driver cx_index_pg_driver = {
    .name = engine_name,
    .close = close_index,
    .has_tables = has_tables,
    .drop_tables = drop_tables,
    .begin = begin_txn,
    .commit = commit_txn,
    .rollback = rollback_txn,
    .ask = ask_engine,
    .run = run_sql,
    .put = cx_index_pg_put,
    .flush = cx_index_pg_flush,
    .touch = cx_index_pg_touch,
    .scrub = scrub_deleted,
    .refresh = refresh_summaries,
    .retain = retain_rows,
    .migrations = cx_index_pg_migrations,
    .words_condition = "to_tsvector('simple', left(t.action_rationale, 100000))"
                       " @@ plainto_tsquery('simple', $%u)",
    .quotes_words = false,
    .phrase_condition = "to_tsvector('simple', left(t.action_rationale, 100000))"
                        " @@ to_tsquery('simple', $%u)",
    .phrase_parts = {"'", "' <-> '", "'"},
    .facets_sql =
        "SELECT agent_id_hash, trace_level, signature_verified, k_eff, gate,"
        " CAST(extract(epoch FROM hour) / 3600 AS bigint), traces FROM (SELECT t.agent_id_hash,"
        " t.trace_level, t.signature_verified, CAST(" CX_SQL_K_EFF_CLASS(
            "t.") " AS bigint) AS k_eff,"
                  " CAST(" CX_SQL_GATE_CLASS(
                      "t.") " AS bigint) AS gate,"
                            " date_trunc('hour', t.timestamp, 'UTC') AS hour, count(*) AS traces"
                            " FROM cirislens.covenant_traces t WHERE t.primary_row = TRUE"
                            " GROUP BY 1, 2, 3, 4, 5, 6) c",
};

cx_status cx_index_pg_open(cx_index *index, const char *url, cx_err *err)
{
    cx_pg_options options = CX_PG_OPTIONS_INIT;
    cx_pg_index *own_index = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *own_index);
    if (own_index == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&own_index->rows, cx_alloc_default());
    cx_arena_init(&own_index->texts, cx_alloc_default(), 0);
    cx_map_init(&own_index->traces, cx_alloc_default(), index->agents.seed);
    index->connection = own_index;
    options.read_only = index->mode == CX_INDEX_READ;
    options.application_name = options.read_only ? "cortex reader" : "cortex feed";
    CX_TRY(cx_pg_open(url, &options, &own_index->pg, err));
    return start_session(index, err);
}

#else

#include "db/api.h"
#include "index/index_internal.h"

static void close_nothing(cx_index *index)
{
    (void)index;
}

/* Opening fails, so only close is ever called. */
const cx_index_driver cx_index_pg_driver = {.close = close_nothing};

cx_status cx_index_pg_open(cx_index *index, const char *url, cx_err *err)
{
    cx_pg *pg;
    cx_pg_options options = CX_PG_OPTIONS_INIT;
    (void)index;
    return cx_pg_open(url, &options, &pg, err);
}

#endif
