/*
 * test_sql_files.c - the files in sql/ are the statements by which an index makes its tables in
 * PostgreSQL.  With CORTEX_UPDATE_SQL=1 they are written again.  tests/cli/test_sql_files.py loads
 * them into a server.
 */
#ifdef CX_WITH_PG

#include <stdlib.h>

#include "index/index_internal.h"
#include "index/index_pg.h"
#include "tests/test.h"

#define FOLDER CX_TEST_ROOT "/../sql/"

static cx_status collect_statements(cx_index *index, const char *sql, cx_err *err)
{
    cx_pg_index *own_index = index->connection;
    cx_buf_add_z(&own_index->rows, sql);
    return cx_buf_check(&own_index->rows, err);
}

static void add_statements(cx_buf *out, unsigned version, bool timescale)
{
    static const cx_index_driver collecting = {.run = collect_statements};
    cx_err err = {0};
    cx_pg_index own_index = {.timescale = timescale};
    cx_index index = {.engine = &collecting, .connection = &own_index};
    cx_buf_init(&own_index.rows, cx_alloc_default());
    CHECK_STATUS(cx_index_pg_migrations[version - 1].make(&index, &err), &err);
    cx_buf_add_str(out, cx_buf_str(&own_index.rows));
    cx_buf_done(&own_index.rows);
}

/* Those of one version; those that TimescaleDB changes twice. */
static void add_version(cx_buf *out, unsigned version)
{
    cx_buf plain, timescale;
    cx_buf_init(&plain, cx_alloc_default());
    cx_buf_init(&timescale, cx_alloc_default());
    add_statements(&plain, version, false);
    add_statements(&timescale, version, true);
    cx_buf_printf(out, "\n-- Version %u: %s.\n", version, cx_index_pg_migrations[version - 1].name);
    if (cx_str_eq(cx_buf_str(&plain), cx_buf_str(&timescale))) {
        cx_buf_add_str(out, cx_buf_str(&plain));
    } else {
        cx_buf_add_z(out, "\\if :timescale\n");
        cx_buf_add_str(out, cx_buf_str(&timescale));
        cx_buf_add_z(out, "\\else\n");
        cx_buf_add_str(out, cx_buf_str(&plain));
        cx_buf_add_z(out, "\\endif\n");
    }
    cx_buf_printf(
        out, "INSERT INTO cirislens.cortex_index_versions (version, name) VALUES (%u, '%s');\n",
        version, cx_index_pg_migrations[version - 1].name);
    cx_buf_done(&plain);
    cx_buf_done(&timescale);
}

static void add_head(cx_buf *out, const char *what, unsigned due)
{
    cx_buf_printf(
        out,
        "-- %s\n"
        "--\n"
        "-- For psql, PostgreSQL 15 or later, with TimescaleDB where the database has it:\n"
        "--     psql URL -f 011_covenant_traces.sql -f 012_trace_levels_idma.sql -f "
        "013_histories.sql\n"
        "--         -f 014_words.sql\n"
        "-- What is there already stays as it is. docs/sql.md describes tables and views.\n"
        "-- Made of the program's own statements; cortex makes the same by itself.\n"
        "\\set ON_ERROR_STOP on\n"
        "BEGIN;\n"
        "CREATE SCHEMA IF NOT EXISTS cirislens;\n"
        "CREATE TABLE IF NOT EXISTS cirislens.cortex_index_versions"
        " (version bigint NOT NULL PRIMARY KEY, name text NOT NULL);\n"
        "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'timescaledb')"
        " AS timescale,\n"
        "    COALESCE(max(version), 0) = %u AS due FROM cirislens.cortex_index_versions"
        " \\gset\n"
        "\\if :due\n",
        what, due);
}

static void check_file(const char *path, cx_buf *made)
{
    cx_buf found;
    cx_err err = {0};
    const cx_io *io = cx_io_system();
    cx_buf_add_z(made, "\\endif\nCOMMIT;\n");
    CHECK_STATUS(cx_buf_check(made, &err), &err);
    if (getenv("CORTEX_UPDATE_SQL") != NULL)
        CHECK_STATUS(cx_io_replace_file(io, path, cx_buf_bytes(made), &err), &err);
    cx_buf_init(&found, cx_alloc_default());
    CHECK_STATUS(cx_io_read_file(io, path, (size_t)1 << 20, &found, &err), &err);
    /* Else: CORTEX_UPDATE_SQL=1 build/dev/bin/test_index sql_files */
    CHECK(cx_str_eq(cx_buf_str(&found), cx_buf_str(made)));
    cx_buf_done(&found);
    cx_buf_done(made);
}

CX_TEST(the_sql_files_are_the_statements_of_the_program)
{
    static const struct {
        const char *path, *what;
        unsigned first, last; /* versions of the tables */
    } files[] = {
        {FOLDER "011_covenant_traces.sql",
         "Traces, keys, batches, alerts and hourly summaries of agents.", 1, 3},
        {FOLDER "012_trace_levels_idma.sql",
         "The views and columns that dashboards for the trace format 1.0 read; after 011.", 4, 4},
        {FOLDER "013_histories.sql", "Steps and histories, to be searched; after 012.", 5, 5},
        {FOLDER "014_words.sql", "Words of traces and memories, read again; after 013.", 6, 6},
    };
    for (size_t i = 0; i < CX_COUNT_OF(files); i++) {
        cx_buf made;
        cx_buf_init(&made, cx_alloc_default());
        add_head(&made, files[i].what, files[i].first - 1);
        for (unsigned version = files[i].first; version <= files[i].last; version++)
            add_version(&made, version);
        check_file(files[i].path, &made);
    }
    /* A new version belongs into a new file. */
    CHECK_INT(files[CX_COUNT_OF(files) - 1].last, CX_INDEX_VERSION);
}

#endif
