/*
 * index_schema_pg.c - the tables of the index in PostgreSQL (trace.md §10).
 *
 * With TimescaleDB covenant_traces is a hypertable and covenant_agent_hours a continuous
 * aggregate, with policies for compression, retention and refresh.  Without it covenant_traces has
 * a partition for each day and one for the rest, and covenant_agent_hours is a table that
 * cx_index_refresh updates.  The kind of covenant_traces shows which of the two was chosen.
 */
#ifdef CX_WITH_PG

#include "index/index_internal.h"
#include "index/index_pg.h"

static cx_status run_schema_sql(cx_index *index, cx_buf *sql, cx_err *err)
{
    const char *text = cx_buf_z(sql);
    cx_status status = text == NULL ? cx_fail_nomem(err) : index->engine->run(index, text, err);
    cx_buf_done(sql);
    return status;
}

/* Chunks of a week; the order matters: compression is switched on before it has a policy. */
static const char hypertable[] =
    "SELECT create_hypertable('cirislens.covenant_traces', 'timestamp',"
    " chunk_time_interval => INTERVAL '7 days', create_default_indexes => FALSE);\n"
    "ALTER TABLE cirislens.covenant_traces SET (timescaledb.compress,"
    " timescaledb.compress_segmentby = 'agent_id_hash',"
    " timescaledb.compress_orderby = 'timestamp DESC');\n"
    "SELECT add_compression_policy('cirislens.covenant_traces', INTERVAL '7 days');\n"
    "SELECT add_retention_policy('cirislens.covenant_traces', INTERVAL '90 days');\n";

/* Words beyond the first hundred thousand characters are not indexed: a tsvector has a limit, and a
 * long text must not make an insert fail. */
static const char text_index[] =
    "CREATE INDEX covenant_traces_text ON cirislens.covenant_traces USING gin"
    " (to_tsvector('simple', left(action_rationale, 100000)));\n";

static cx_status make_traces(cx_index *index, cx_err *err)
{
    bool timescale = cx_index_pg_is_timescale(index);
    cx_buf sql;
    cx_buf_init(&sql, cx_alloc_default());
    cx_buf_add_z(&sql, "CREATE TABLE cirislens.covenant_traces (\n    ");
    cx_schema_add_columns(&sql, CX_DIALECT_PG);
    /* A unique index must hold the column of the partitions; `timestamp` comes from the trace, so
     * one trace still has one row. */
    cx_buf_add_z(&sql, ",\n    PRIMARY KEY (agent_id_hash, trace_id, trace_level, timestamp))");
    if (timescale) {
        cx_buf_add_z(&sql, ";\n");
        cx_buf_add_z(&sql, hypertable);
    } else {
        cx_buf_add_z(&sql, " PARTITION BY RANGE (timestamp);\n"
                           "CREATE TABLE cirislens.covenant_traces_default"
                           " PARTITION OF cirislens.covenant_traces DEFAULT;\n");
    }
    cx_schema_add_tables(&sql, CX_DIALECT_PG);
    cx_schema_add_indexes(&sql, CX_DIALECT_PG);
    cx_buf_add_z(&sql, text_index);
    return run_schema_sql(index, &sql, err);
}

/* Summaries for a year; refreshed each hour, a day back. */
static void add_aggregate(cx_buf *sql)
{
    cx_buf_add_z(sql, "CREATE MATERIALIZED VIEW cirislens.covenant_traces_hourly"
                      " WITH (timescaledb.continuous) AS\n");
    cx_schema_add_hourly(sql, "time_bucket(INTERVAL '1 hour', timestamp)",
                         "cirislens.covenant_traces");
    cx_buf_add_z(sql, CX_SCHEMA_HOURLY_GROUPS
                 " WITH NO DATA;\n"
                 "SELECT add_continuous_aggregate_policy('cirislens.covenant_traces_hourly',"
                 " start_offset => INTERVAL '24 hours', end_offset => INTERVAL '1 hour',"
                 " schedule_interval => INTERVAL '1 hour');\n"
                 "SELECT add_retention_policy('cirislens.covenant_traces_hourly',"
                 " INTERVAL '1 year');\n");
}

static void add_table(cx_buf *sql)
{
    cx_buf_add_z(sql, "CREATE TABLE cirislens.covenant_traces_hourly AS\n");
    cx_schema_add_hourly(sql, "date_trunc('hour', timestamp, 'UTC')", "cirislens.covenant_traces");
    cx_buf_add_z(sql, CX_SCHEMA_HOURLY_GROUPS
                 " WITH NO DATA;\n"
                 "CREATE INDEX covenant_traces_hourly_by_time"
                 " ON cirislens.covenant_traces_hourly (bucket DESC, agent_id_hash);\n"
                 /* Hours in which a row came or changed since the last refresh. */
                 "CREATE TABLE cirislens.covenant_traces_hourly_stale"
                 " (bucket timestamptz NOT NULL PRIMARY KEY);\n");
}

static cx_status make_hourly(cx_index *index, cx_err *err)
{
    cx_buf sql;
    cx_buf_init(&sql, cx_alloc_default());
    if (cx_index_pg_is_timescale(index))
        add_aggregate(&sql);
    else
        add_table(&sql);
    return run_schema_sql(index, &sql, err);
}

/* All columns that the inbox counts by, for index-only scans. */
static const char facets[] =
    "CREATE INDEX covenant_traces_by_facets ON cirislens.covenant_traces (timestamp DESC,"
    " agent_id_hash, trace_level, signature_verified, idma_k_eff, conscience_passed,"
    " action_was_overridden) WHERE primary_row = TRUE;\n"
    "CREATE INDEX covenant_traces_by_trace ON cirislens.covenant_traces (trace_id);\n";

static cx_status make_facets(cx_index *index, cx_err *err)
{
    return index->engine->run(index, facets, err);
}

/* Dashboards made for the SQL of spec 1.0 read covenant_traces_hourly: the name is theirs, and the
 * summaries of agents, which were called so, get another one. */
static cx_status make_names(cx_index *index, cx_err *err)
{
    cx_buf sql;
    cx_buf_init(&sql, cx_alloc_default());
    if (cx_index_pg_is_timescale(index))
        cx_buf_add_z(&sql, "ALTER MATERIALIZED VIEW cirislens.covenant_traces_hourly"
                           " RENAME TO covenant_agent_hours;\n");
    else
        cx_buf_add_z(&sql, "ALTER TABLE cirislens.covenant_traces_hourly"
                           " RENAME TO covenant_agent_hours;\n"
                           "ALTER TABLE cirislens.covenant_traces_hourly_stale"
                           " RENAME TO covenant_agent_hours_stale;\n");
    cx_schema_add_names(&sql, CX_DIALECT_PG);
    return run_schema_sql(index, &sql, err);
}

static cx_status make_steps(cx_index *index, cx_err *err)
{
    cx_buf sql;
    cx_buf_init(&sql, cx_alloc_default());
    cx_schema_add_steps(&sql, CX_DIALECT_PG);
    cx_buf_add_z(&sql, "CREATE INDEX cortex_steps_text ON cirislens.cortex_steps USING gin"
                       " (to_tsvector('simple', left(text, 100000)));\n");
    return run_schema_sql(index, &sql, err);
}

static cx_status make_words(cx_index *index, cx_err *err)
{
    return index->engine->run(index, cx_schema_words_sql, err);
}

const cx_index_migration cx_index_pg_migrations[CX_INDEX_VERSION] = {
    {"traces", make_traces},
    {"hourly summaries", make_hourly},
    {"facets", make_facets},
    {"names of spec 1.0", make_names},
    {"steps of histories", make_steps},
    {"words of traces and memories", make_words},
};

cx_status cx_index_pg_drop(cx_index *index, cx_err *err)
{
    cx_buf sql;
    cx_buf_init(&sql, cx_alloc_default());
    for (size_t i = 0; cx_schema_views[i] != NULL; i++)
        cx_buf_printf(&sql, "DROP VIEW IF EXISTS cirislens.%s;", cx_schema_views[i]);
    cx_buf_add_z(&sql, cx_index_pg_is_timescale(index)
                           ? "DROP MATERIALIZED VIEW IF EXISTS cirislens.covenant_agent_hours;"
                           : "DROP TABLE IF EXISTS cirislens.covenant_agent_hours;");
    cx_buf_add_z(&sql, "DROP TABLE IF EXISTS cirislens.covenant_agent_hours_stale;");
    for (size_t i = 0; cx_schema_tables[i] != NULL; i++)
        cx_buf_printf(&sql, "DROP TABLE IF EXISTS cirislens.%s;", cx_schema_tables[i]);
    return run_schema_sql(index, &sql, err);
}

void cx_index_pg_refresh_sql(cx_buf *sql)
{
    cx_buf_add_z(sql, "INSERT INTO cirislens.covenant_agent_hours SELECT h.*"
                      " FROM cirislens.covenant_agent_hours_stale s CROSS JOIN LATERAL (\n");
    cx_schema_add_hourly(sql, "s.bucket", "cirislens.covenant_traces");
    cx_buf_add_z(sql, " AND timestamp >= s.bucket AND timestamp < s.bucket + INTERVAL '1 hour'"
                      " GROUP BY 2, 3, 4) h");
}

#endif
