/*
 * index_schema_sqlite.c - the tables of the index in SQLite (trace.md §10).
 *
 * Names are qualified with the schema the file is attached as; inside triggers and the view they
 * are not, so that these also work when the file is opened on its own.
 */
#include "index/index_internal.h"

/* The words of action_rationale, maintained by triggers; diacritics are kept, as in PostgreSQL's
 * configuration `simple`. */
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

static cx_status run_schema_sql(cx_index *index, cx_buf *sql, cx_err *err)
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
    return run_schema_sql(index, &sql, err);
}

/* A view is always up to date and costs nothing to maintain; a single file has few readers. */
static cx_status make_hourly(cx_index *index, cx_err *err)
{
    cx_buf sql;
    cx_buf_init(&sql, cx_alloc_default());
    cx_buf_add_z(&sql, "CREATE VIEW cirislens.covenant_traces_hourly AS ");
    cx_schema_add_hourly(&sql, "substr(timestamp, 1, 13) || ':00:00.000000000Z'",
                         "covenant_traces");
    cx_buf_add_z(&sql, CX_SCHEMA_HOURLY_GROUPS);
    return run_schema_sql(index, &sql, err);
}

/*
 * The number of primary rows for each combination of facet values, by hour; maintained by triggers,
 * so that counting a million rows means reading some thousand.
 */
/* Times of traces are of 1970 and later (time.c). */
#define HOUR(row) "CAST(strftime('%s', substr(" row "timestamp, 1, 19)) AS INTEGER) / 3600"
#define CLASSES(row)                                                                             \
    row "agent_id_hash, " row "trace_level, " row                                                \
        "signature_verified,\n        " CX_SQL_K_EFF_CLASS(row) ",\n        " CX_SQL_GATE_CLASS( \
            row) ",\n        " HOUR(row)
#define COUNT_IN                                              \
    "    INSERT INTO covenant_traces_facets SELECT " CLASSES( \
        "new.") ", 1\n"                                       \
                "        WHERE new.primary_row = TRUE\n"      \
                "        ON CONFLICT DO UPDATE SET traces = traces + 1;\n"
#define COUNT_OUT                                                                                  \
    "    UPDATE covenant_traces_facets SET traces = traces - 1 WHERE old.primary_row = TRUE AND\n" \
    "        (agent_id_hash, trace_level, verified, k_eff, gate, hour) = (" CLASSES(               \
        "old.") ");\n"                                                                             \
                "    DELETE FROM covenant_traces_facets WHERE old.primary_row = TRUE AND traces "  \
                "<= 0 AND\n"                                                                       \
                "        (agent_id_hash, trace_level, verified, k_eff, gate, hour) = (" CLASSES(   \
                    "old.") ");\n"

static const char facets[] =
    "CREATE TABLE cirislens.covenant_traces_facets (agent_id_hash @T NOT NULL,\n"
    "    trace_level @T NOT NULL, verified @B NOT NULL, k_eff @I NOT NULL, gate @I NOT NULL,\n"
    "    hour @I NOT NULL, traces @I NOT NULL,\n"
    "    PRIMARY KEY (agent_id_hash, trace_level, verified, k_eff, gate, hour)) WITHOUT ROWID;\n"
    "INSERT INTO cirislens.covenant_traces_facets SELECT " CLASSES(
        "t.") ", count(*)\n"
              "    FROM cirislens.covenant_traces t WHERE t.primary_row = TRUE GROUP BY 1, 2, 3, "
              "4, 5, 6;\n"
              "CREATE TRIGGER cirislens.covenant_traces_facets_insert AFTER INSERT ON "
              "covenant_traces BEGIN\n" COUNT_IN "END;\n"
              "CREATE TRIGGER cirislens.covenant_traces_facets_delete AFTER DELETE ON "
              "covenant_traces BEGIN\n" COUNT_OUT "END;\n"
              "CREATE TRIGGER cirislens.covenant_traces_facets_update AFTER UPDATE OF "
              "agent_id_hash,\n"
              "    trace_level, timestamp, signature_verified, idma_k_eff, action_was_overridden,\n"
              "    conscience_passed, primary_row ON covenant_traces BEGIN\n" COUNT_OUT COUNT_IN
              "END;\n"
              /* For searching by the beginning of an id, for any agent. */
              "CREATE INDEX cirislens.covenant_traces_by_trace ON covenant_traces (trace_id);\n";

static cx_status make_facets(cx_index *index, cx_err *err)
{
    cx_buf sql;
    cx_buf_init(&sql, cx_alloc_default());
    cx_schema_add(&sql, CX_DIALECT_SQLITE, facets);
    return run_schema_sql(index, &sql, err);
}

/* See index_schema_pg.c. */
static cx_status make_names(cx_index *index, cx_err *err)
{
    cx_buf sql;
    cx_buf_init(&sql, cx_alloc_default());
    cx_buf_add_z(&sql, "DROP VIEW cirislens.covenant_traces_hourly;\n"
                       "CREATE VIEW cirislens.covenant_agent_hours AS ");
    cx_schema_add_hourly(&sql, "substr(timestamp, 1, 13) || ':00:00.000000000Z'",
                         "covenant_traces");
    cx_buf_add_z(&sql, CX_SCHEMA_HOURLY_GROUPS ";\n");
    cx_schema_add_names(&sql, CX_DIALECT_SQLITE);
    return run_schema_sql(index, &sql, err);
}

/* The words of steps, maintained like those of traces. */
static const char steps_text[] =
    "CREATE VIRTUAL TABLE cirislens.cortex_steps_text USING fts5(text, content='cortex_steps',\n"
    "    content_rowid='id', tokenize='unicode61 remove_diacritics 0');\n"
    "CREATE TRIGGER cirislens.cortex_steps_text_insert AFTER INSERT ON cortex_steps BEGIN\n"
    "    INSERT INTO cortex_steps_text (rowid, text) VALUES (new.id, new.text); END;\n"
    "CREATE TRIGGER cirislens.cortex_steps_text_delete AFTER DELETE ON cortex_steps BEGIN\n"
    "    INSERT INTO cortex_steps_text (cortex_steps_text, rowid, text)\n"
    "        VALUES ('delete', old.id, old.text); END;\n"
    "CREATE TRIGGER cirislens.cortex_steps_text_update AFTER UPDATE OF text ON cortex_steps BEGIN\n"
    "    INSERT INTO cortex_steps_text (cortex_steps_text, rowid, text)\n"
    "        VALUES ('delete', old.id, old.text);\n"
    "    INSERT INTO cortex_steps_text (rowid, text) VALUES (new.id, new.text); END;\n";

static cx_status make_steps(cx_index *index, cx_err *err)
{
    cx_buf sql;
    cx_buf_init(&sql, cx_alloc_default());
    cx_schema_add_steps(&sql, CX_DIALECT_SQLITE);
    cx_buf_add_z(&sql, steps_text);
    return run_schema_sql(index, &sql, err);
}

static cx_status make_words(cx_index *index, cx_err *err)
{
    return index->engine->run(index, cx_schema_words_sql, err);
}

const cx_index_migration cx_index_sqlite_migrations[CX_INDEX_VERSION] = {
    {"traces", make_traces},
    {"hourly summaries", make_hourly},
    {"facets", make_facets},
    {"names of spec 1.0", make_names},
    {"steps of histories", make_steps},
    {"words of traces and memories", make_words},
};

cx_status cx_index_sqlite_drop(cx_index *index, cx_err *err)
{
    cx_buf sql;
    cx_buf_init(&sql, cx_alloc_default());
    for (size_t i = 0; cx_schema_views[i] != NULL; i++)
        cx_buf_printf(&sql, "DROP VIEW IF EXISTS cirislens.%s;", cx_schema_views[i]);
    cx_buf_add_z(&sql, "DROP VIEW IF EXISTS cirislens.covenant_agent_hours;"
                       "DROP TABLE IF EXISTS cirislens.covenant_traces_text;"
                       "DROP TABLE IF EXISTS cirislens.cortex_steps_text;"
                       "DROP TABLE IF EXISTS cirislens.covenant_traces_facets;");
    for (size_t i = 0; cx_schema_tables[i] != NULL; i++)
        cx_buf_printf(&sql, "DROP TABLE IF EXISTS cirislens.%s;", cx_schema_tables[i]);
    return run_schema_sql(index, &sql, err);
}
