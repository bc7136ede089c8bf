/*
 * index_schema_sqlite.c - the tables of the index in SQLite (trace.md §10).
 *
 * Names are qualified with the schema the file is attached as; inside triggers and the view they
 * are not, so that they mean the same to whoever opens the file by itself.
 */
#include "trace/index_internal.h"

/* The words of action_rationale, kept right by triggers; diacritics are kept, as PostgreSQL's
 * configuration `simple` keeps them. */
static const char text_index[] =
    "CREATE VIRTUAL TABLE cirislens.covenant_traces_text USING fts5(action_rationale,\n"
    "    content='covenant_traces', content_rowid='id',\n"
    "    tokenize='unicode61 remove_diacritics 0');\n"
    "CREATE TRIGGER cirislens.covenant_traces_text_insert AFTER INSERT ON covenant_traces\n"
    "    WHEN new.action_rationale IS NOT NULL BEGIN\n"
    "    INSERT INTO covenant_traces_text (rowid, action_rationale)\n"
    "        VALUES (new.id, new.action_rationale); END;\n"
    "CREATE TRIGGER cirislens.covenant_traces_text_delete AFTER DELETE ON covenant_traces\n"
    "    WHEN old.action_rationale IS NOT NULL BEGIN\n"
    "    INSERT INTO covenant_traces_text (covenant_traces_text, rowid, action_rationale)\n"
    "        VALUES ('delete', old.id, old.action_rationale); END;\n"
    "CREATE TRIGGER cirislens.covenant_traces_text_update\n"
    "    AFTER UPDATE OF id, action_rationale ON covenant_traces BEGIN\n"
    "    INSERT INTO covenant_traces_text (covenant_traces_text, rowid, action_rationale)\n"
    "        SELECT 'delete', old.id, old.action_rationale\n"
    "        WHERE old.action_rationale IS NOT NULL;\n"
    "    INSERT INTO covenant_traces_text (rowid, action_rationale)\n"
    "        SELECT new.id, new.action_rationale WHERE new.action_rationale IS NOT NULL; END;\n";

static cx_status run(cx_index *index, cx_buf *sql, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    const char *text = cx_buf_z(sql);
    status = text == NULL ? cx_fail_nomem(err) : index->engine->run(index, text, err);
    cx_buf_done(sql);
    return status;
}

static cx_status make_traces(cx_index *index, cx_err *err)
{
    cx_buf sql;
    cx_buf_init(&sql, cx_alloc_default());
    cx_buf_add_z(&sql, "CREATE TABLE cirislens.covenant_traces (\n    ");
    cx_schema_add_columns(&sql, CX_DIALECT_SQLITE);
    cx_buf_add_z(&sql,
                 ",\n    PRIMARY KEY (agent_id_hash, trace_id, trace_level), UNIQUE (id));\n");
    cx_schema_add_tables(&sql, CX_DIALECT_SQLITE);
    cx_schema_add_indexes(&sql, CX_DIALECT_SQLITE);
    cx_buf_add_z(&sql, text_index);
    return run(index, &sql, err);
}

/* One file is read by few: a view is always fresh and costs nothing to keep. */
static cx_status make_hourly(cx_index *index, cx_err *err)
{
    cx_buf sql;
    cx_buf_init(&sql, cx_alloc_default());
    cx_buf_add_z(&sql, "CREATE VIEW cirislens.covenant_traces_hourly AS ");
    cx_schema_add_hourly(&sql, "substr(timestamp, 1, 13) || ':00:00.000000000Z'",
                         "covenant_traces");
    cx_buf_add_z(&sql, CX_SCHEMA_HOURLY_GROUPS);
    return run(index, &sql, err);
}

const cx_index_migration cx_index_sqlite_migrations[CX_INDEX_VERSION] = {
    {"traces", make_traces},
    {"hourly summaries", make_hourly},
};

cx_status cx_index_sqlite_drop(cx_index *index, cx_err *err)
{
    cx_buf sql;
    cx_buf_init(&sql, cx_alloc_default());
    cx_buf_add_z(&sql, "DROP VIEW IF EXISTS cirislens.covenant_traces_hourly;"
                       "DROP TABLE IF EXISTS cirislens.covenant_traces_text;");
    for (size_t i = 0; cx_schema_tables[i] != NULL; i++)
        cx_buf_printf(&sql, "DROP TABLE IF EXISTS cirislens.%s;", cx_schema_tables[i]);
    return run(index, &sql, err);
}
