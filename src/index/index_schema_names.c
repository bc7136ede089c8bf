/*
 * index_schema_names.c - what the SQL of the trace format 1.0 calls by name, over our tables, so
 * that dashboards made for it work (trace.md §10, docs/sql.md).
 *
 * The views compute when they are read, so they are always up to date.  A rate is the share of the
 * values that are not NULL; a faculty that was skipped is no failure.
 */
#include "index/index_internal.h"

const char *const cx_schema_views[] = {"covenant_traces_hourly", "covenant_trace_metrics",
                                       "covenant_traces_fragile_day", NULL};

static void add_hour(cx_buf *sql, cx_dialect dialect, const char *column)
{
    if (dialect == CX_DIALECT_PG)
        cx_buf_printf(sql, "date_trunc('hour', %s, 'UTC')", column);
    else
        cx_buf_printf(sql, "substr(%s, 1, 13) || ':00:00.000000000Z'", column);
}

static const struct counted {
    const char *column, *value, *name;
} counts[] = {
    {"trace_type", "VERIFY_IDENTITY", "verify_identity"},
    {"trace_type", "VALIDATE_INTEGRITY", "validate_integrity"},
    {"trace_type", "EVALUATE_RESILIENCE", "evaluate_resilience"},
    {"trace_type", "ACCEPT_INCOMPLETENESS", "accept_incompleteness"},
    {"trace_type", "EXPRESS_GRATITUDE", "express_gratitude"},
    {"selected_action", "SPEAK", "speak"},
    {"selected_action", "DEFER", "defer"},
    {"selected_action", "PONDER", "ponder"},
    {"selected_action", "TASK_COMPLETE", "task_complete"},
};
#define WAKEUPS 5 /* the first of them */

#define SPEC_RATE(column, name)                                                            \
    ",\n    avg(CASE WHEN " column " = TRUE THEN CAST(1 AS double precision) WHEN " column \
    " = FALSE THEN CAST(0 AS double precision) END) AS " name

static void add_hourly_view(cx_buf *sql, cx_dialect dialect, const char *made, const char *from)
{
    cx_buf_printf(sql, "CREATE VIEW %scovenant_traces_hourly AS\nSELECT ", made);
    add_hour(sql, dialect, "timestamp");
    cx_buf_add_z(sql, " AS hour,\n    count(*) AS trace_count,\n"
                      "    count(DISTINCT agent_id_hash) AS unique_agents");
    for (size_t i = 0; i < CX_COUNT_OF(counts); i++)
        cx_buf_printf(sql, ",\n    sum(CASE WHEN %s = '%s' THEN 1 ELSE 0 END) AS %s_count",
                      counts[i].column, counts[i].value, counts[i].name);
    cx_buf_add_z(sql, ",\n    avg(csdma_plausibility_score) AS avg_csdma_plausibility,\n"
                      "    min(csdma_plausibility_score) AS min_csdma_plausibility,\n"
                      "    avg(dsdma_domain_alignment) AS avg_dsdma_alignment,\n"
                      "    min(dsdma_domain_alignment) AS min_dsdma_alignment,\n"
                      "    avg(entropy_level) AS avg_entropy_level,\n"
                      "    avg(coherence_level) AS avg_coherence_level");
    cx_buf_add_z(
        sql, SPEC_RATE("conscience_passed", "conscience_pass_rate")
                 SPEC_RATE("entropy_passed", "entropy_pass_rate") SPEC_RATE("coherence_passed",
                                                                            "coherence_pass_rate")
                     SPEC_RATE("optimization_veto_passed", "optimization_veto_pass_rate")
                         SPEC_RATE("epistemic_humility_passed", "epistemic_humility_pass_rate"));
    cx_buf_printf(sql,
                  ",\n    sum(CASE WHEN action_was_overridden = TRUE THEN 1 ELSE 0 END)"
                  " AS overrides_count,\n"
                  "    sum(CAST(tokens_total AS double precision)) AS total_tokens,\n"
                  "    sum(cost_cents) AS total_cost_cents,\n"
                  "    sum(CAST(llm_calls AS double precision)) AS total_llm_calls,\n"
                  "    avg(processing_ms) AS avg_processing_ms,\n"
                  "    max(processing_ms) AS max_processing_ms\n"
                  "FROM %scovenant_traces\n"
                  "WHERE signature_verified = TRUE AND primary_row = TRUE GROUP BY 1;\n",
                  from);
}

/* How many events of a batch had this reason; a raw entry may contain anything. */
static void add_reason(cx_buf *sql, cx_dialect dialect, const char *reason)
{
    if (dialect == CX_DIALECT_PG)
        cx_buf_printf(sql,
                      "(CASE WHEN jsonb_typeof(reasons->'%s') = 'number'"
                      " THEN CAST(reasons->>'%s' AS numeric) ELSE 0 END)",
                      reason, reason);
    else
        cx_buf_printf(sql,
                      "(CASE WHEN json_type(reasons, '$.%s') = 'integer'"
                      " THEN json_extract(reasons, '$.%s') ELSE 0 END)",
                      reason, reason);
}

static void add_metrics_view(cx_buf *sql, cx_dialect dialect, const char *made, const char *from)
{
    static const char *const unreadable[] = {"duplicate_key", "depth_exceeded", "limit_exceeded",
                                             "number_not_finite"};
    cx_buf_printf(sql,
                  "CREATE VIEW %scovenant_trace_metrics AS\n"
                  "SELECT time, sum(received) AS traces_received_total,\n"
                  "    sum(accepted) AS traces_accepted_total,\n"
                  "    sum(invalid_sig) AS traces_rejected_invalid_sig,\n"
                  "    sum(unknown_key) AS traces_rejected_unknown_key,\n"
                  "    sum(invalid_json) AS traces_rejected_invalid_json",
                  made);
    for (size_t i = 0; i < WAKEUPS; i++)
        cx_buf_printf(sql, ",\n    sum(CASE WHEN kind = '%s' THEN 1 ELSE 0 END) AS traces_%s",
                      counts[i].value, counts[i].name);
    cx_buf_add_z(sql, ",\n    sum(CASE WHEN kind = '' THEN 1 ELSE 0 END) AS traces_other,\n"
                      "    avg(processing_ms) AS avg_processing_ms\nFROM (SELECT ");
    add_hour(sql, dialect, "received_at");
    cx_buf_add_z(sql, " AS time, received_count AS received, accepted_count AS accepted, ");
    add_reason(sql, dialect, "signature_invalid");
    cx_buf_add_z(sql, " AS invalid_sig, ");
    add_reason(sql, dialect, "key_unknown");
    cx_buf_add_z(sql, " AS unknown_key, ");
    for (size_t i = 0; i < CX_COUNT_OF(unreadable); i++) {
        cx_buf_add_z(sql, i == 0 ? "" : " + ");
        add_reason(sql, dialect, unreadable[i]);
    }
    cx_buf_printf(sql,
                  " AS invalid_json, NULL AS kind, CAST(NULL AS double precision)"
                  " AS processing_ms\n"
                  "    FROM %scovenant_trace_batches WHERE received_at IS NOT NULL\n"
                  "    UNION ALL SELECT ",
                  from);
    add_hour(sql, dialect, "received_at");
    cx_buf_printf(sql,
                  ", 0, 0, 0, 0, 0, COALESCE(trace_type, ''), processing_ms\n"
                  "    FROM %scovenant_traces WHERE signature_verified = TRUE\n"
                  "        AND primary_row = TRUE AND received_at IS NOT NULL) AS parts\n"
                  "GROUP BY time;\n",
                  from);
}

/* The second query of the specification: SQLite has no INTERVAL, so it has a name in both. */
static void add_fragile_view(cx_buf *sql, cx_dialect dialect, const char *made, const char *from)
{
    cx_buf_printf(sql,
                  "CREATE VIEW %scovenant_traces_fragile_day AS\n"
                  "SELECT trace_id, agent_id_hash, idma_k_eff, idma_phase, timestamp\n"
                  "FROM %scovenant_traces WHERE idma_fragility_flag = TRUE AND timestamp > %s;\n",
                  made, from,
                  dialect == CX_DIALECT_PG ? "now() - INTERVAL '24 hours'"
                                           : "strftime('%Y-%m-%dT%H:%M:%S', 'now', '-24 hours')");
}

/* Of covenant_trace_batches, under the names of the specification.  Cortex records no addresses of
 * senders: source_ip is always NULL. */
static void add_batch_columns(cx_buf *sql, cx_dialect dialect)
{
    static const struct {
        const char *name, *from;
        bool json;
    } columns[] = {{"traces_received", "received_count", false},
                   {"traces_accepted", "accepted_count", false},
                   {"traces_rejected", "rejected_count", false},
                   {"rejection_reasons", "reasons", true}};
    bool pg = dialect == CX_DIALECT_PG;
    for (size_t i = 0; i < CX_COUNT_OF(columns); i++)
        cx_buf_printf(sql,
                      "ALTER TABLE cirislens.covenant_trace_batches ADD COLUMN %s %s"
                      " GENERATED ALWAYS AS (%s) %s;\n",
                      columns[i].name,
                      columns[i].json ? (pg ? "jsonb" : "TEXT") : (pg ? "bigint" : "INTEGER"),
                      columns[i].from, pg ? "STORED" : "VIRTUAL");
    cx_buf_printf(sql, "ALTER TABLE cirislens.covenant_trace_batches ADD COLUMN source_ip %s;\n",
                  pg ? "inet" : "TEXT");
}

void cx_schema_add_names(cx_buf *sql, cx_dialect dialect)
{
    /* Views of an attached SQLite file name its tables without the schema (index_schema_sqlite.c).
     */
    const char *from = dialect == CX_DIALECT_PG ? "cirislens." : "";
    add_batch_columns(sql, dialect);
    add_hourly_view(sql, dialect, "cirislens.", from);
    add_metrics_view(sql, dialect, "cirislens.", from);
    add_fragile_view(sql, dialect, "cirislens.", from);
}
