/*
 * index_schema.c - the parts of the schema that both databases share (trace.md §10).
 *
 * SQL is written once with the type letters of §10 after an '@'; columns of covenant_traces come
 * from columns.c.  docs/sql.md describes every table for users.
 */
#include "index/index_internal.h"

/* Texts compare by bytes everywhere, so that the order does not depend on a server's locale. */
static const char *type_name(cx_dialect dialect, char letter)
{
    bool pg = dialect == CX_DIALECT_PG;
    switch (letter) {
    case 'T': return pg ? "text COLLATE \"C\"" : "TEXT";
    case 'I': return pg ? "bigint" : "INTEGER";
    case 'F': return pg ? "double precision" : "REAL";
    case 'B': return pg ? "boolean" : "INTEGER";
    case 'Z': return pg ? "timestamptz" : "TEXT";
    case 'J': return pg ? "jsonb" : "TEXT";
    case 'A': return pg ? "text[]" : "TEXT";
    case 'U': return pg ? "uuid" : "TEXT";
    default: break;
    }
    return NULL; /* unknown type letter: a bug in the SQL text */
}

void cx_schema_add(cx_buf *sql, cx_dialect dialect, const char *text)
{
    for (const char *at = text; *at != 0; at++) {
        const char *type = *at == '@' ? type_name(dialect, *++at) : NULL;
        if (type != NULL)
            cx_buf_add_z(sql, type);
        else
            cx_buf_add_byte(sql, (uint8_t)*at);
    }
}

void cx_schema_add_columns(cx_buf *sql, cx_dialect dialect)
{
    static const char letters[] = {
        [CX_CELL_TEXT] = 'T', [CX_CELL_INT] = 'I',  [CX_CELL_FLOAT] = 'F', [CX_CELL_BOOL] = 'B',
        [CX_CELL_TIME] = 'Z', [CX_CELL_JSON] = 'J', [CX_CELL_TEXTS] = 'A', [CX_CELL_UUID] = 'U',
    };
    cx_schema_add(sql, dialect, "id @I NOT NULL");
    for (unsigned i = 0; i < CX_COL_COUNT; i++) {
        const cx_column *column = &cx_trace_columns[i];
        cx_buf_printf(sql, ",\n    %s %s%s%s", column->name,
                      type_name(dialect, letters[column->type]),
                      column->required ? " NOT NULL" : "",
                      i == CX_COL_signature_verified ? " DEFAULT FALSE" : "");
    }
}

static const char tables[] =
    /* The key of each row, and the texts that the audit chain needs verbatim. */
    "CREATE TABLE cirislens.covenant_trace_keys (\n"
    "    agent_id_hash @T NOT NULL, trace_id @T NOT NULL, trace_level @T NOT NULL,\n"
    "    timestamp @Z NOT NULL, id @I NOT NULL, verified @B NOT NULL, signer_key_id @T,\n"
    "    action_executed @T, action_timestamp @T,\n"
    "    PRIMARY KEY (agent_id_hash, trace_id, trace_level));\n"
    "CREATE TABLE cirislens.covenant_trace_conflicts (\n"
    "    ledger_actor @T NOT NULL, ledger_seq @I NOT NULL, agent_id_hash @T NOT NULL,\n"
    "    trace_id @T NOT NULL, trace_level @T NOT NULL, content_sha256 @T NOT NULL,\n"
    "    received_at @Z, PRIMARY KEY (ledger_actor, ledger_seq));\n"
    "CREATE TABLE cirislens.covenant_public_keys (\n"
    "    key_id @T NOT NULL PRIMARY KEY, algorithm @T NOT NULL, public_key_base64 @T NOT NULL,\n"
    "    agents @A NOT NULL, not_before @Z, not_after @Z, revoked_at @Z, revoked_reason @T,\n"
    "    compromised_since @Z, replaces @T, chain_profile @T, description @T, added_by @T,\n"
    "    added_at @Z);\n"
    "CREATE TABLE cirislens.covenant_trace_batches (\n"
    "    batch_id @T NOT NULL PRIMARY KEY, received_at @Z, batch_timestamp @Z,\n"
    "    consent_timestamp @Z, trace_level @T, correlation_metadata @J,\n"
    "    received_count @I NOT NULL, accepted_count @I NOT NULL, rejected_count @I NOT NULL,\n"
    "    reasons @J, findings @J, ledger_seq @I NOT NULL);\n"
    "CREATE TABLE cirislens.coherence_ratchet_alerts (\n"
    "    alert_id @T NOT NULL PRIMARY KEY, severity @T NOT NULL, detection_mechanism @T NOT NULL,\n"
    "    agent_id_hash @T, domain @T, metric @T, value @F, baseline @F, deviation @F,\n"
    "    evidence_traces @A, recommended_action @T, timestamp @Z NOT NULL,\n"
    "    acknowledged @B NOT NULL DEFAULT FALSE, acknowledged_at @Z, acknowledged_by @T,\n"
    "    acknowledged_notes @T, resolved @B NOT NULL DEFAULT FALSE, resolved_at @Z,\n"
    "    resolved_by @T, resolved_notes @T, alert @J NOT NULL);\n"
    /* A single row: the log position up to which the tables are true, and the data directory's
     * id. */
    "CREATE TABLE cirislens.cortex_index_feed (\n"
    "    one @I NOT NULL PRIMARY KEY CHECK (one = 1), home_id @T NOT NULL,\n"
    "    log_commit @I NOT NULL, log_frames @I NOT NULL, last_id @I NOT NULL,\n"
    "    commits @I NOT NULL, retained_until @Z);\n";

const char *const cx_schema_tables[] = {
    "covenant_traces",
    "covenant_trace_keys",
    "covenant_trace_conflicts",
    "covenant_public_keys",
    "covenant_trace_batches",
    "coherence_ratchet_alerts",
    "cortex_index_feed",
    "cortex_index_versions",
    "cortex_histories",
    "cortex_steps",
    NULL,
};

void cx_schema_add_tables(cx_buf *sql, cx_dialect dialect)
{
    cx_schema_add(sql, dialect, tables);
}

static const char steps[] =
    "CREATE TABLE cirislens.cortex_histories (\n"
    "    id @I NOT NULL PRIMARY KEY, name @T NOT NULL UNIQUE, source @T NOT NULL, title @T,\n"
    "    title_rank @I NOT NULL, title_seq @I, agent @T, model @T, path @T, first_at @Z,\n"
    "    last_at @Z, steps @I NOT NULL, calls @I NOT NULL, errors @I NOT NULL,\n"
    "    tokens_input @I NOT NULL, tokens_output @I NOT NULL, cost_usd @F NOT NULL,\n"
    /* Of a file that is read as it grows; of the last answer of a model. */
    "    lines @I NOT NULL, pending @T, last_message @T, last_input @I NOT NULL,\n"
    "    last_output @I NOT NULL);\n"
    "CREATE TABLE cirislens.cortex_steps (\n"
    "    id @I NOT NULL PRIMARY KEY, history_id @I NOT NULL, ref @T NOT NULL, happened_at @Z,\n"
    "    kind @T, agent @T, role @T, tool @T, failed @B NOT NULL, tokens_input @I NOT NULL,\n"
    "    tokens_output @I NOT NULL, cost_usd @F NOT NULL, text @T NOT NULL,\n"
    "    ledger_actor @T NOT NULL, ledger_seq @I NOT NULL, UNIQUE (history_id, ref));\n"
    "UPDATE cirislens.cortex_index_feed SET log_commit = 0, log_frames = 0;\n";

static const struct {
    const char *name, *table, *columns;
} step_indexes[] = {
    {"cortex_histories_by_time", "cortex_histories", "(last_at DESC, id DESC)"},
    {"cortex_steps_by_history", "cortex_steps", "(history_id, id)"},
    {"cortex_steps_by_entry", "cortex_steps", "(ledger_actor, ledger_seq)"},
    {"cortex_steps_by_time", "cortex_steps", "(happened_at)"},
};

void cx_schema_add_steps(cx_buf *sql, cx_dialect dialect)
{
    cx_schema_add(sql, dialect, steps);
    for (size_t i = 0; i < CX_COUNT_OF(step_indexes); i++)
        cx_buf_printf(sql, "CREATE INDEX %s%s ON %s%s %s;\n",
                      dialect == CX_DIALECT_SQLITE ? "cirislens." : "", step_indexes[i].name,
                      dialect == CX_DIALECT_PG ? "cirislens." : "", step_indexes[i].table,
                      step_indexes[i].columns);
}

const char cx_schema_words_sql[] =
    "DELETE FROM cirislens.cortex_steps;\n"
    "DELETE FROM cirislens.cortex_histories;\n"
    "UPDATE cirislens.cortex_index_feed SET log_commit = 0, log_frames = 0;\n";

/* `id` follows `timestamp` so that pages of rows with one time need no sorting. */
static const struct {
    const char *name, *table, *columns;
} indexes[] = {
    {"covenant_traces_by_time", "covenant_traces", "(timestamp DESC, id DESC)"},
    {"covenant_traces_by_agent", "covenant_traces", "(agent_id_hash, timestamp DESC, id DESC)"},
    {"covenant_traces_by_task", "covenant_traces", "(task_id, timestamp DESC, id DESC)"},
    {"covenant_traces_by_type", "covenant_traces", "(trace_type, timestamp DESC, id DESC)"},
    {"covenant_traces_by_level", "covenant_traces", "(trace_level, timestamp DESC, id DESC)"},
    {"covenant_traces_by_csdma", "covenant_traces", "(csdma_plausibility_score, timestamp DESC)"},
    {"covenant_traces_by_dsdma", "covenant_traces", "(dsdma_domain_alignment, timestamp DESC)"},
    {"covenant_traces_by_domain", "covenant_traces", "(dsdma_domain, timestamp DESC, id DESC)"},
    {"covenant_traces_by_action", "covenant_traces", "(selected_action, timestamp DESC, id DESC)"},
    {"covenant_traces_by_thought", "covenant_traces", "(thought_id)"},
    {"covenant_traces_by_audit", "covenant_traces", "(agent_id_hash, audit_sequence_number)"},
    {"covenant_traces_by_k_eff", "covenant_traces",
     "(idma_k_eff, timestamp DESC) WHERE idma_k_eff IS NOT NULL"},
    {"covenant_traces_fragile", "covenant_traces",
     "(timestamp DESC, id DESC) WHERE idma_fragility_flag = TRUE"},
    {"covenant_traces_unverified", "covenant_traces",
     "(timestamp DESC, id DESC) WHERE signature_verified = FALSE"},
    {"covenant_traces_wakeups", "covenant_traces",
     "(agent_id_hash, timestamp) WHERE trace_type IS NOT NULL"},
    {"covenant_trace_keys_by_signer", "covenant_trace_keys", "(signer_key_id)"},
    {"covenant_trace_keys_by_time", "covenant_trace_keys", "(timestamp)"},
    {"covenant_trace_conflicts_by_trace", "covenant_trace_conflicts", "(agent_id_hash, trace_id)"},
    {"coherence_ratchet_alerts_by_time", "coherence_ratchet_alerts", "(timestamp DESC, alert_id)"},
};

void cx_schema_add_indexes(cx_buf *sql, cx_dialect dialect)
{
    for (size_t i = 0; i < CX_COUNT_OF(indexes); i++)
        cx_buf_printf(sql, "CREATE INDEX %s%s ON %s%s %s;\n",
                      dialect == CX_DIALECT_SQLITE ? "cirislens." : "", indexes[i].name,
                      dialect == CX_DIALECT_PG ? "cirislens." : "", indexes[i].table,
                      indexes[i].columns);
}

/* --- summaries -------------------------------------------------------------------------------- */

/* Sums are doubles: invented totals of a sender must not overflow. */
void cx_schema_add_hourly(cx_buf *sql, const char *bucket, const char *table)
{
    static const char *const scores[][2] = {
        {"csdma", "csdma_plausibility_score"},
        {"dsdma", "dsdma_domain_alignment"},
        {"k_eff", "idma_k_eff"},
        {"coherence", "coherence_level"},
        {"entropy", "entropy_level"},
    };
    static const char *const rates[][2] = {
        {"conscience", "conscience_passed"},
        {"entropy", "entropy_passed"},
        {"coherence", "coherence_passed"},
        {"optimization_veto", "optimization_veto_passed"},
        {"epistemic_humility", "epistemic_humility_passed"},
        {"success", "action_success"},
    };
    cx_buf_printf(sql,
                  "SELECT %s AS bucket, agent_id_hash, trace_type, selected_action,\n"
                  "    count(*) AS traces",
                  bucket);
    for (size_t i = 0; i < CX_COUNT_OF(scores); i++)
        cx_buf_printf(sql, ",\n    avg(%s) AS avg_%s, min(%s) AS min_%s", scores[i][1],
                      scores[i][0], scores[i][1], scores[i][0]);
    for (size_t i = 0; i < CX_COUNT_OF(rates); i++)
        cx_buf_printf(sql,
                      ",\n    avg(CASE WHEN %s = TRUE THEN CAST(1 AS double precision)"
                      " WHEN %s = FALSE THEN CAST(0 AS double precision) END) AS %s_rate",
                      rates[i][1], rates[i][1], rates[i][0]);
    cx_buf_printf(sql,
                  ",\n    sum(CASE WHEN action_was_overridden = TRUE THEN 1 ELSE 0 END)"
                  " AS overrides,\n"
                  "    sum(CASE WHEN idma_fragility_flag = TRUE THEN 1 ELSE 0 END) AS fragile,\n"
                  "    sum(CAST(tokens_total AS double precision)) AS tokens_total,\n"
                  "    sum(cost_cents) AS cost_cents\n"
                  "FROM %s\n"
                  "WHERE signature_verified = TRUE AND primary_row = TRUE",
                  table);
}
