/*
 * index_internal.h - the columns, and the interface between the index and its two engines.
 *
 * A query is written once, in SQL that both engines read; `$1`, `$2` .. are its values.  What
 * differs (writing rows, creating tables, retention) is in the engine's files.
 */
#ifndef CX_INDEX_INDEX_INTERNAL_H
#define CX_INDEX_INDEX_INTERNAL_H

#include "base/api.h"
#include "analysis/api.h"
#include "index/index.h"

/* --- columns (trace.md §10) ------------------------------------------------------------------- */

/* X(name, type, required), in the order of §10, after `id`. */
#define CX_TRACE_COLUMNS(X)                          \
    X(trace_id, TEXT, true)                          \
    X(thought_id, TEXT, false)                       \
    X(task_id, TEXT, false)                          \
    X(agent_id_hash, TEXT, true)                     \
    X(agent_name, TEXT, false)                       \
    X(trace_type, TEXT, false)                       \
    X(cognitive_state, TEXT, false)                  \
    X(thought_type, TEXT, false)                     \
    X(thought_depth, INT, false)                     \
    X(started_at, TIME, false)                       \
    X(completed_at, TIME, false)                     \
    X(timestamp, TIME, true)                         \
    X(received_at, TIME, false)                      \
    X(consent_timestamp, TIME, false)                \
    X(trace_level, TEXT, true)                       \
    X(thought_start, JSON, false)                    \
    X(snapshot_and_context, JSON, false)             \
    X(dma_results, JSON, false)                      \
    X(aspdma_result, JSON, false)                    \
    X(conscience_result, JSON, false)                \
    X(action_result, JSON, false)                    \
    X(idma_result, JSON, false)                      \
    X(csdma_plausibility_score, FLOAT, false)        \
    X(dsdma_domain_alignment, FLOAT, false)          \
    X(dsdma_domain, TEXT, false)                     \
    X(pdma_stakeholders, TEXT, false)                \
    X(pdma_conflicts, TEXT, false)                   \
    X(action_rationale, TEXT, false)                 \
    X(idma_k_eff, FLOAT, false)                      \
    X(idma_correlation_risk, FLOAT, false)           \
    X(idma_k_eff_computed, FLOAT, false)             \
    X(idma_fragility_flag, BOOL, false)              \
    X(idma_phase, TEXT, false)                       \
    X(idma_phase_computed, TEXT, false)              \
    X(idma_check, TEXT, false)                       \
    X(conscience_passed, BOOL, false)                \
    X(action_was_overridden, BOOL, false)            \
    X(updated_status_detected, BOOL, false)          \
    X(thought_depth_triggered, BOOL, false)          \
    X(entropy_passed, BOOL, false)                   \
    X(coherence_passed, BOOL, false)                 \
    X(optimization_veto_passed, BOOL, false)         \
    X(epistemic_humility_passed, BOOL, false)        \
    X(uncertainty_acknowledged, BOOL, false)         \
    X(entropy_level, FLOAT, false)                   \
    X(coherence_level, FLOAT, false)                 \
    X(reasoning_transparency, FLOAT, false)          \
    X(entropy_score, FLOAT, false)                   \
    X(coherence_score, FLOAT, false)                 \
    X(optimization_veto_entropy_ratio, FLOAT, false) \
    X(epistemic_humility_certainty, FLOAT, false)    \
    X(selection_confidence, FLOAT, false)            \
    X(selected_action, TEXT, false)                  \
    X(is_recursive, BOOL, false)                     \
    X(action_success, BOOL, false)                   \
    X(has_positive_moment, BOOL, false)              \
    X(has_execution_error, BOOL, false)              \
    X(audit_entry_id, UUID, false)                   \
    X(audit_sequence_number, INT, false)             \
    X(audit_entry_hash, TEXT, false)                 \
    X(audit_signature, TEXT, false)                  \
    X(tokens_input, INT, false)                      \
    X(tokens_output, INT, false)                     \
    X(tokens_total, INT, false)                      \
    X(llm_calls, INT, false)                         \
    X(cost_cents, FLOAT, false)                      \
    X(carbon_grams, FLOAT, false)                    \
    X(energy_mwh, FLOAT, false)                      \
    X(execution_time_ms, FLOAT, false)               \
    X(processing_ms, FLOAT, false)                   \
    X(models_used, TEXTS, false)                     \
    X(signature, TEXT, true)                         \
    X(signer_key_id, TEXT, true)                     \
    X(signature_verified, BOOL, true)                \
    X(verification_error, TEXT, false)               \
    X(canonical_form, TEXT, false)                   \
    X(canonical_sha256, TEXT, false)                 \
    X(content_sha256, TEXT, false)                   \
    X(schema_version, TEXT, false)                   \
    X(envelope_signed, BOOL, false)                  \
    X(primary_row, BOOL, false)                      \
    X(ledger_actor, TEXT, true)                      \
    X(ledger_seq, INT, true)

enum {
#define CX_COLUMN_ENUM(name, type, required) CX_COL_##name,
    CX_TRACE_COLUMNS(CX_COLUMN_ENUM)
#undef CX_COLUMN_ENUM
        CX_COL_COUNT
};

#define CX_NULL_CELL ((cx_cell){.null = true})

bool cx_index_form_signs_envelope(cx_trace_form form);

/* Replaces what PostgreSQL cannot store (U+0000, lone surrogates, invalid UTF-8) by U+FFFD.
 * Returns the text itself when nothing is replaced; NULL data when out of memory. */
bool cx_index_is_clean(cx_str text);
cx_str cx_index_clean(cx_str text, cx_arena *arena);
/* The same for the texts inside a JSON value, written compactly. */
cx_status cx_index_clean_json(const cx_json *value, cx_arena *arena, cx_str *out, cx_err *err);

/* --- questions to a database ------------------------------------------------------------------ */

/* A value for `$n`. */
typedef struct cx_sql_value {
    cx_cell_type type;
    cx_cell cell;
} cx_sql_value;

static inline cx_sql_value cx_sql_text(cx_str text)
{
    cx_sql_value value = {CX_CELL_TEXT, {.null = text.data == NULL}};
    value.cell.text = text;
    return value;
}
static inline cx_sql_value cx_sql_json(cx_str text)
{
    cx_sql_value value = cx_sql_text(text);
    value.type = CX_CELL_JSON;
    return value;
}
static inline cx_sql_value cx_sql_int(int64_t i)
{
    return (cx_sql_value){CX_CELL_INT, {.i = i}};
}
static inline cx_sql_value cx_sql_double(double f) /* NAN = NULL */
{
    cx_sql_value value = {CX_CELL_FLOAT, {.null = f != f}};
    value.cell.f = f;
    return value;
}
static inline cx_sql_value cx_sql_bool(bool b)
{
    return (cx_sql_value){CX_CELL_BOOL, {.b = b}};
}
static inline cx_sql_value cx_sql_time(int64_t ns) /* CX_TIME_NONE = NULL */
{
    cx_sql_value value = {CX_CELL_TIME, {.null = ns == CX_TIME_NONE}};
    value.cell.i = ns;
    return value;
}

#define CX_SQL_COLUMNS_MAX (CX_COL_COUNT + 8)
#define CX_SQL_VALUES_MAX CX_SQL_COLUMNS_MAX /* of a statement that is assembled from parts */

/* One statement with its values; `row` is called for each row with cells that are borrowed until it
 * returns.  `row` is NULL for statements without rows.  It must not ask the same again. */
typedef struct cx_question {
    const char *sql;
    const cx_sql_value *values;
    size_t value_count;
    const cx_cell_type *types; /* of the columns */
    size_t column_count;
    cx_status (*row)(void *arg, const cx_cell *cells, cx_err *err);
    void *arg;
} cx_question;

/* --- the index -------------------------------------------------------------------------------- */

/* Where a row lies: a line of covenant_trace_keys. */
typedef struct cx_row_key {
    cx_trace_level level;
    int64_t timestamp_ns;
    int64_t id;
    bool verified;
} cx_row_key;

typedef struct cx_index_migration {
    const char *name;
    cx_status (*make)(cx_index *index, cx_err *err); /* inside a transaction */
} cx_index_migration;

typedef struct cx_index_driver {
    const char *(*name)(const cx_index *index);
    void (*close)(cx_index *index);
    cx_status (*has_tables)(cx_index *index, bool *out, cx_err *err);
    cx_status (*drop_tables)(cx_index *index, cx_err *err); /* inside a transaction */
    cx_status (*begin)(cx_index *index, cx_err *err);
    cx_status (*commit)(cx_index *index, cx_err *err);
    void (*rollback)(cx_index *index);
    cx_status (*ask)(cx_index *index, const cx_question *question, cx_err *err);
    /* Statements without values and rows. */
    cx_status (*run)(cx_index *index, const char *sql, cx_err *err);
    /* Keeps the row, under a new id unless its key is there; see cx_index_put_trace. */
    cx_status (*put)(cx_index *index, const cx_trace_row *row, cx_err *err);
    cx_status (*flush)(cx_index *index, cx_err *err);
    /* The summary of that time's hour is not true any more. */
    cx_status (*touch)(cx_index *index, int64_t ns, cx_err *err);
    /* Leaves nothing of deleted rows in the full-text index. */
    cx_status (*scrub)(cx_index *index, cx_err *err);
    /* After the commit of that: leaves nothing of deleted rows in the files.  False: not yet, a
     * reader uses them.  NULL where the engine does it in its own time. */
    bool (*empty_log)(cx_index *index);
    /* Makes summaries true again; counts the hours. */
    cx_status (*refresh)(cx_index *index, uint64_t *out, cx_err *err);
    /* Drops rows older than `*before_ns`, the start of a day, which may become earlier; counts
     * them. */
    cx_status (*retain)(cx_index *index, int64_t *before_ns, uint64_t *out, cx_err *err);
    const cx_index_migration *migrations; /* version n is migrations[n - 1] */
    /* A row whose action_rationale has the words of value `$%u`; each word of that is in double
     * quotes where `quotes_words` says so. */
    const char *words_condition;
    bool quotes_words;
    /* The same for words in a row: the text before, between and after the words of the value.
     * Whole ones: of a beginning, SQLite would gather all rows for each row that is asked. */
    const char *phrase_condition;
    const char *phrase_parts[3];
    /* Rows that are alike, counted: agent, level, verified, k_eff, gate, hour, count; no values. */
    const char *facets_sql;
    /* A set of ids is a table to it that costs its size to make: see words.c. */
    bool has_sets;
} cx_index_driver;

extern const cx_index_driver cx_index_sqlite_driver;
extern const cx_index_driver cx_index_pg_driver;
extern const cx_index_migration cx_index_sqlite_migrations[];
extern const cx_index_migration cx_index_pg_migrations[];
cx_status cx_index_sqlite_drop(cx_index *index, cx_err *err);
cx_status cx_index_pg_drop(cx_index *index, cx_err *err);
cx_status cx_index_sqlite_open(cx_index *index, const char *path, cx_err *err);
cx_status cx_index_pg_open(cx_index *index, const char *url, cx_err *err);
/* Puts rows one by one; PostgreSQL has its own way. */
cx_status cx_index_put_one(cx_index *index, const cx_trace_row *row, cx_err *err);

#define CX_INDEX_VERSION 6
#define CX_INDEX_FEW_IDS 5000
#define CX_INDEX_SOME_IDS 50000

/* What is known of an agent that is not established yet (§6). */
typedef struct cx_agent_state {
    bool established;
    unsigned count;
    cx_str ids[CX_IDMA_ESTABLISHED_AFTER]; /* its verified traces */
} cx_agent_state;

struct cx_index {
    const cx_index_driver *engine;
    void *connection; /* the engine's own */
    cx_index_mode mode;
    unsigned version;
    bool in_transaction;
    int64_t last_id;
    int64_t retained_ns;    /* rows before this time were dropped; CX_TIME_NONE */
    int64_t commits;        /* of the tables; another writer's make what follows useless */
    bool must_scrub;        /* before the next commit: words were deleted */
    bool must_empty;        /* after it */
    cx_buf insert_sql;      /* made when first needed */
    int few_ids, some_ids;  /* that a word stands for: words.c */
    cx_arena agents_memory; /* of the two below */
    cx_map agents;          /* agent -> number in agent_states */
    CX_VEC(cx_agent_state *) agent_states;
};

cx_status cx_index_ask(cx_index *index, const cx_question *question, cx_err *err);
/* The same inside a transaction without flushing the waiting rows first. */
cx_status cx_index_ask_as_is(cx_index *index, const cx_question *question, cx_err *err);
/* Runs a statement that returns no rows. */
cx_status cx_index_do(cx_index *index, const char *sql, const cx_sql_value *values, size_t count,
                      cx_err *err);
/* Reads one row with one number; `otherwise` when there is no row. */
/* Bytes of pages that are in use, and of the file; 0 of an index that is not in a file. */
CX_RESULT cx_index_bytes(cx_index *index, uint64_t *out_used, uint64_t *out_file, cx_err *err);
cx_status cx_index_number(cx_index *index, const char *sql, const cx_sql_value *values,
                          size_t count, int64_t otherwise, int64_t *out, cx_err *err);

/* Copies a vector's items to the arena; *out is set to the first of them. */
CX_RESULT cx_index_give(const void *items, size_t count, size_t item_size, size_t align,
                        cx_arena *arena, void *out, cx_err *err);
#define CX_INDEX_GIVE(vec, arena, out, err)                                                     \
    cx_index_give((vec).items, (vec).count, sizeof *(vec).items, alignof(max_align_t), (arena), \
                  (out), (err))

/* A statement being assembled, with its values. */
typedef struct cx_sql_statement {
    cx_buf sql;
    cx_arena *arena;
    cx_sql_value values[CX_SQL_VALUES_MAX];
    unsigned count;
    bool sorts; /* few rows match: they are fetched first and sorted then */
} cx_sql_statement;
/* Adds a value and returns its number, for `$n`. */
unsigned cx_sql_statement_value(cx_sql_statement *s, cx_sql_value value);
/* Append " AND .." to its text: a column of the traces, their time; nothing for an absent text or
 * time. */
void cx_sql_add_text(cx_sql_statement *s, const char *column, cx_str text);
void cx_sql_add_time(cx_sql_statement *s, const char *comparison, int64_t ns);
/* Appends " AND .." for each word of query->words: words.c. */
cx_status cx_index_add_beginnings(cx_index *index, cx_sql_statement *s, const cx_trace_query *query,
                                  cx_err *err);
/* The classes of columns of covenant_traces; `row` is the prefix of their names. */
#define CX_SQL_K_EFF_CLASS(row)                                                    \
    "CASE WHEN " row "idma_k_eff IS NULL THEN 0 WHEN " row "idma_k_eff < 2 THEN 1" \
    " WHEN " row "idma_k_eff < 5 THEN 2 ELSE 3 END"
#define CX_SQL_GATE_CLASS(row)                             \
    "CASE WHEN " row "action_was_overridden = TRUE THEN 3" \
    " WHEN " row "conscience_passed = TRUE THEN 1"         \
    " WHEN " row "conscience_passed = FALSE THEN 2 ELSE 0 END"

/* The statement of cx_index_find and its values, at most CX_SQL_VALUES_MAX of them. */
cx_status cx_index_find_sql(cx_index *index, const cx_trace_query *query, cx_arena *arena,
                            cx_buf *sql, cx_sql_value *values, unsigned *out_count, cx_err *err);

/* Rows of one trace, at most one a level. */
cx_status cx_index_row_keys(cx_index *index, cx_str agent, cx_str trace_id, cx_row_key out[3],
                            size_t *out_count, cx_err *err);
/* The primary one of them (§9, I3): verified before unverified, then the highest level. */
size_t cx_index_primary_of(const cx_row_key *keys, size_t count);
cx_row_key cx_index_key_of(const cx_trace_row *row, int64_t id);
cx_sql_value cx_index_signer(const cx_trace_row *row);
/* `hex` must live as long as the value. */
cx_sql_value cx_index_digest(const cx_digest *digest, char hex[65]);
/* Sets `primary_row` of a trace's rows (I3). */
cx_status cx_index_set_primary(cx_index *index, cx_str agent, cx_str trace_id, cx_err *err);

/* --- established agents ----------------------------------------------------------------------- */

void cx_index_forget_agents(cx_index *index);
/* One more verified trace of an agent. */
cx_status cx_index_learn_trace(cx_index *index, cx_agent_state *state, cx_str trace_id,
                               const cx_cell *k_eff, cx_err *err);

/* --- the feed's line -------------------------------------------------------------------------- */

/* The single row of cortex_index_feed: the position up to which the tables are true. */
typedef struct cx_feed_line {
    bool there;
    char home_id[33];
    cx_feed_position position;
    int64_t last_id, commits, retained_ns;
} cx_feed_line;

cx_status cx_index_read_feed(cx_index *index, cx_feed_line *out, cx_err *err);
cx_status cx_index_write_feed(cx_index *index, const char *home_id, cx_feed_position position,
                              cx_err *err);

/* --- tables ----------------------------------------------------------------------------------- */

typedef enum cx_dialect { CX_DIALECT_SQLITE, CX_DIALECT_PG } cx_dialect;
/* Appends SQL; `@T` `@I` `@F` `@B` `@Z` `@J` `@A` `@U` become the types of §10. */
void cx_schema_add(cx_buf *sql, cx_dialect dialect, const char *text);
/* `name type [not null]` of covenant_traces, with commas, `id` first. */
void cx_schema_add_columns(cx_buf *sql, cx_dialect dialect);
/* The side tables. */
void cx_schema_add_tables(cx_buf *sql, cx_dialect dialect);
void cx_schema_add_indexes(cx_buf *sql, cx_dialect dialect);
/* SELECT of covenant_agent_hours without its grouping; `bucket` is the hour of a row. */
void cx_schema_add_hourly(cx_buf *sql, const char *bucket, const char *table);
#define CX_SCHEMA_HOURLY_GROUPS " GROUP BY 1, 2, 3, 4"
/* Names of the tables of the index, for dropping; the last is NULL. */
extern const char *const cx_schema_tables[];
/* The names of spec 1.0: columns of batches, and views, which are dropped before the tables. */
void cx_schema_add_names(cx_buf *sql, cx_dialect dialect);
/* Histories and their steps; the feed starts again, so that they are filled. */
void cx_schema_add_steps(cx_buf *sql, cx_dialect dialect);
/* Everything is fed again, so that traces and memories are found by their words. */
extern const char cx_schema_words_sql[];
extern const char *const cx_schema_views[];

#endif
