-- The views and columns that dashboards for the trace format 1.0 read; after 011.
--
-- For psql, PostgreSQL 15 or later, with TimescaleDB where the database has it:
--     psql URL -f 011_covenant_traces.sql -f 012_trace_levels_idma.sql -f 013_histories.sql
--         -f 014_words.sql
-- What is there already stays as it is. docs/sql.md describes tables and views.
-- Made of the program's own statements; cortex makes the same by itself.
\set ON_ERROR_STOP on
BEGIN;
CREATE SCHEMA IF NOT EXISTS cirislens;
CREATE TABLE IF NOT EXISTS cirislens.cortex_index_versions (version bigint NOT NULL PRIMARY KEY, name text NOT NULL);
SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'timescaledb') AS timescale,
    COALESCE(max(version), 0) = 3 AS due FROM cirislens.cortex_index_versions \gset
\if :due

-- Version 4: names of spec 1.0.
\if :timescale
ALTER MATERIALIZED VIEW cirislens.covenant_traces_hourly RENAME TO covenant_agent_hours;
ALTER TABLE cirislens.covenant_trace_batches ADD COLUMN traces_received bigint GENERATED ALWAYS AS (received_count) STORED;
ALTER TABLE cirislens.covenant_trace_batches ADD COLUMN traces_accepted bigint GENERATED ALWAYS AS (accepted_count) STORED;
ALTER TABLE cirislens.covenant_trace_batches ADD COLUMN traces_rejected bigint GENERATED ALWAYS AS (rejected_count) STORED;
ALTER TABLE cirislens.covenant_trace_batches ADD COLUMN rejection_reasons jsonb GENERATED ALWAYS AS (reasons) STORED;
ALTER TABLE cirislens.covenant_trace_batches ADD COLUMN source_ip inet;
CREATE VIEW cirislens.covenant_traces_hourly AS
SELECT date_trunc('hour', timestamp, 'UTC') AS hour,
    count(*) AS trace_count,
    count(DISTINCT agent_id_hash) AS unique_agents,
    sum(CASE WHEN trace_type = 'VERIFY_IDENTITY' THEN 1 ELSE 0 END) AS verify_identity_count,
    sum(CASE WHEN trace_type = 'VALIDATE_INTEGRITY' THEN 1 ELSE 0 END) AS validate_integrity_count,
    sum(CASE WHEN trace_type = 'EVALUATE_RESILIENCE' THEN 1 ELSE 0 END) AS evaluate_resilience_count,
    sum(CASE WHEN trace_type = 'ACCEPT_INCOMPLETENESS' THEN 1 ELSE 0 END) AS accept_incompleteness_count,
    sum(CASE WHEN trace_type = 'EXPRESS_GRATITUDE' THEN 1 ELSE 0 END) AS express_gratitude_count,
    sum(CASE WHEN selected_action = 'SPEAK' THEN 1 ELSE 0 END) AS speak_count,
    sum(CASE WHEN selected_action = 'DEFER' THEN 1 ELSE 0 END) AS defer_count,
    sum(CASE WHEN selected_action = 'PONDER' THEN 1 ELSE 0 END) AS ponder_count,
    sum(CASE WHEN selected_action = 'TASK_COMPLETE' THEN 1 ELSE 0 END) AS task_complete_count,
    avg(csdma_plausibility_score) AS avg_csdma_plausibility,
    min(csdma_plausibility_score) AS min_csdma_plausibility,
    avg(dsdma_domain_alignment) AS avg_dsdma_alignment,
    min(dsdma_domain_alignment) AS min_dsdma_alignment,
    avg(entropy_level) AS avg_entropy_level,
    avg(coherence_level) AS avg_coherence_level,
    avg(CASE WHEN conscience_passed = TRUE THEN CAST(1 AS double precision) WHEN conscience_passed = FALSE THEN CAST(0 AS double precision) END) AS conscience_pass_rate,
    avg(CASE WHEN entropy_passed = TRUE THEN CAST(1 AS double precision) WHEN entropy_passed = FALSE THEN CAST(0 AS double precision) END) AS entropy_pass_rate,
    avg(CASE WHEN coherence_passed = TRUE THEN CAST(1 AS double precision) WHEN coherence_passed = FALSE THEN CAST(0 AS double precision) END) AS coherence_pass_rate,
    avg(CASE WHEN optimization_veto_passed = TRUE THEN CAST(1 AS double precision) WHEN optimization_veto_passed = FALSE THEN CAST(0 AS double precision) END) AS optimization_veto_pass_rate,
    avg(CASE WHEN epistemic_humility_passed = TRUE THEN CAST(1 AS double precision) WHEN epistemic_humility_passed = FALSE THEN CAST(0 AS double precision) END) AS epistemic_humility_pass_rate,
    sum(CASE WHEN action_was_overridden = TRUE THEN 1 ELSE 0 END) AS overrides_count,
    sum(CAST(tokens_total AS double precision)) AS total_tokens,
    sum(cost_cents) AS total_cost_cents,
    sum(CAST(llm_calls AS double precision)) AS total_llm_calls,
    avg(processing_ms) AS avg_processing_ms,
    max(processing_ms) AS max_processing_ms
FROM cirislens.covenant_traces
WHERE signature_verified = TRUE AND primary_row = TRUE GROUP BY 1;
CREATE VIEW cirislens.covenant_trace_metrics AS
SELECT time, sum(received) AS traces_received_total,
    sum(accepted) AS traces_accepted_total,
    sum(invalid_sig) AS traces_rejected_invalid_sig,
    sum(unknown_key) AS traces_rejected_unknown_key,
    sum(invalid_json) AS traces_rejected_invalid_json,
    sum(CASE WHEN kind = 'VERIFY_IDENTITY' THEN 1 ELSE 0 END) AS traces_verify_identity,
    sum(CASE WHEN kind = 'VALIDATE_INTEGRITY' THEN 1 ELSE 0 END) AS traces_validate_integrity,
    sum(CASE WHEN kind = 'EVALUATE_RESILIENCE' THEN 1 ELSE 0 END) AS traces_evaluate_resilience,
    sum(CASE WHEN kind = 'ACCEPT_INCOMPLETENESS' THEN 1 ELSE 0 END) AS traces_accept_incompleteness,
    sum(CASE WHEN kind = 'EXPRESS_GRATITUDE' THEN 1 ELSE 0 END) AS traces_express_gratitude,
    sum(CASE WHEN kind = '' THEN 1 ELSE 0 END) AS traces_other,
    avg(processing_ms) AS avg_processing_ms
FROM (SELECT date_trunc('hour', received_at, 'UTC') AS time, received_count AS received, accepted_count AS accepted, (CASE WHEN jsonb_typeof(reasons->'signature_invalid') = 'number' THEN CAST(reasons->>'signature_invalid' AS numeric) ELSE 0 END) AS invalid_sig, (CASE WHEN jsonb_typeof(reasons->'key_unknown') = 'number' THEN CAST(reasons->>'key_unknown' AS numeric) ELSE 0 END) AS unknown_key, (CASE WHEN jsonb_typeof(reasons->'duplicate_key') = 'number' THEN CAST(reasons->>'duplicate_key' AS numeric) ELSE 0 END) + (CASE WHEN jsonb_typeof(reasons->'depth_exceeded') = 'number' THEN CAST(reasons->>'depth_exceeded' AS numeric) ELSE 0 END) + (CASE WHEN jsonb_typeof(reasons->'limit_exceeded') = 'number' THEN CAST(reasons->>'limit_exceeded' AS numeric) ELSE 0 END) + (CASE WHEN jsonb_typeof(reasons->'number_not_finite') = 'number' THEN CAST(reasons->>'number_not_finite' AS numeric) ELSE 0 END) AS invalid_json, NULL AS kind, CAST(NULL AS double precision) AS processing_ms
    FROM cirislens.covenant_trace_batches WHERE received_at IS NOT NULL
    UNION ALL SELECT date_trunc('hour', received_at, 'UTC'), 0, 0, 0, 0, 0, COALESCE(trace_type, ''), processing_ms
    FROM cirislens.covenant_traces WHERE signature_verified = TRUE
        AND primary_row = TRUE AND received_at IS NOT NULL) AS parts
GROUP BY time;
CREATE VIEW cirislens.covenant_traces_fragile_day AS
SELECT trace_id, agent_id_hash, idma_k_eff, idma_phase, timestamp
FROM cirislens.covenant_traces WHERE idma_fragility_flag = TRUE AND timestamp > now() - INTERVAL '24 hours';
\else
ALTER TABLE cirislens.covenant_traces_hourly RENAME TO covenant_agent_hours;
ALTER TABLE cirislens.covenant_traces_hourly_stale RENAME TO covenant_agent_hours_stale;
ALTER TABLE cirislens.covenant_trace_batches ADD COLUMN traces_received bigint GENERATED ALWAYS AS (received_count) STORED;
ALTER TABLE cirislens.covenant_trace_batches ADD COLUMN traces_accepted bigint GENERATED ALWAYS AS (accepted_count) STORED;
ALTER TABLE cirislens.covenant_trace_batches ADD COLUMN traces_rejected bigint GENERATED ALWAYS AS (rejected_count) STORED;
ALTER TABLE cirislens.covenant_trace_batches ADD COLUMN rejection_reasons jsonb GENERATED ALWAYS AS (reasons) STORED;
ALTER TABLE cirislens.covenant_trace_batches ADD COLUMN source_ip inet;
CREATE VIEW cirislens.covenant_traces_hourly AS
SELECT date_trunc('hour', timestamp, 'UTC') AS hour,
    count(*) AS trace_count,
    count(DISTINCT agent_id_hash) AS unique_agents,
    sum(CASE WHEN trace_type = 'VERIFY_IDENTITY' THEN 1 ELSE 0 END) AS verify_identity_count,
    sum(CASE WHEN trace_type = 'VALIDATE_INTEGRITY' THEN 1 ELSE 0 END) AS validate_integrity_count,
    sum(CASE WHEN trace_type = 'EVALUATE_RESILIENCE' THEN 1 ELSE 0 END) AS evaluate_resilience_count,
    sum(CASE WHEN trace_type = 'ACCEPT_INCOMPLETENESS' THEN 1 ELSE 0 END) AS accept_incompleteness_count,
    sum(CASE WHEN trace_type = 'EXPRESS_GRATITUDE' THEN 1 ELSE 0 END) AS express_gratitude_count,
    sum(CASE WHEN selected_action = 'SPEAK' THEN 1 ELSE 0 END) AS speak_count,
    sum(CASE WHEN selected_action = 'DEFER' THEN 1 ELSE 0 END) AS defer_count,
    sum(CASE WHEN selected_action = 'PONDER' THEN 1 ELSE 0 END) AS ponder_count,
    sum(CASE WHEN selected_action = 'TASK_COMPLETE' THEN 1 ELSE 0 END) AS task_complete_count,
    avg(csdma_plausibility_score) AS avg_csdma_plausibility,
    min(csdma_plausibility_score) AS min_csdma_plausibility,
    avg(dsdma_domain_alignment) AS avg_dsdma_alignment,
    min(dsdma_domain_alignment) AS min_dsdma_alignment,
    avg(entropy_level) AS avg_entropy_level,
    avg(coherence_level) AS avg_coherence_level,
    avg(CASE WHEN conscience_passed = TRUE THEN CAST(1 AS double precision) WHEN conscience_passed = FALSE THEN CAST(0 AS double precision) END) AS conscience_pass_rate,
    avg(CASE WHEN entropy_passed = TRUE THEN CAST(1 AS double precision) WHEN entropy_passed = FALSE THEN CAST(0 AS double precision) END) AS entropy_pass_rate,
    avg(CASE WHEN coherence_passed = TRUE THEN CAST(1 AS double precision) WHEN coherence_passed = FALSE THEN CAST(0 AS double precision) END) AS coherence_pass_rate,
    avg(CASE WHEN optimization_veto_passed = TRUE THEN CAST(1 AS double precision) WHEN optimization_veto_passed = FALSE THEN CAST(0 AS double precision) END) AS optimization_veto_pass_rate,
    avg(CASE WHEN epistemic_humility_passed = TRUE THEN CAST(1 AS double precision) WHEN epistemic_humility_passed = FALSE THEN CAST(0 AS double precision) END) AS epistemic_humility_pass_rate,
    sum(CASE WHEN action_was_overridden = TRUE THEN 1 ELSE 0 END) AS overrides_count,
    sum(CAST(tokens_total AS double precision)) AS total_tokens,
    sum(cost_cents) AS total_cost_cents,
    sum(CAST(llm_calls AS double precision)) AS total_llm_calls,
    avg(processing_ms) AS avg_processing_ms,
    max(processing_ms) AS max_processing_ms
FROM cirislens.covenant_traces
WHERE signature_verified = TRUE AND primary_row = TRUE GROUP BY 1;
CREATE VIEW cirislens.covenant_trace_metrics AS
SELECT time, sum(received) AS traces_received_total,
    sum(accepted) AS traces_accepted_total,
    sum(invalid_sig) AS traces_rejected_invalid_sig,
    sum(unknown_key) AS traces_rejected_unknown_key,
    sum(invalid_json) AS traces_rejected_invalid_json,
    sum(CASE WHEN kind = 'VERIFY_IDENTITY' THEN 1 ELSE 0 END) AS traces_verify_identity,
    sum(CASE WHEN kind = 'VALIDATE_INTEGRITY' THEN 1 ELSE 0 END) AS traces_validate_integrity,
    sum(CASE WHEN kind = 'EVALUATE_RESILIENCE' THEN 1 ELSE 0 END) AS traces_evaluate_resilience,
    sum(CASE WHEN kind = 'ACCEPT_INCOMPLETENESS' THEN 1 ELSE 0 END) AS traces_accept_incompleteness,
    sum(CASE WHEN kind = 'EXPRESS_GRATITUDE' THEN 1 ELSE 0 END) AS traces_express_gratitude,
    sum(CASE WHEN kind = '' THEN 1 ELSE 0 END) AS traces_other,
    avg(processing_ms) AS avg_processing_ms
FROM (SELECT date_trunc('hour', received_at, 'UTC') AS time, received_count AS received, accepted_count AS accepted, (CASE WHEN jsonb_typeof(reasons->'signature_invalid') = 'number' THEN CAST(reasons->>'signature_invalid' AS numeric) ELSE 0 END) AS invalid_sig, (CASE WHEN jsonb_typeof(reasons->'key_unknown') = 'number' THEN CAST(reasons->>'key_unknown' AS numeric) ELSE 0 END) AS unknown_key, (CASE WHEN jsonb_typeof(reasons->'duplicate_key') = 'number' THEN CAST(reasons->>'duplicate_key' AS numeric) ELSE 0 END) + (CASE WHEN jsonb_typeof(reasons->'depth_exceeded') = 'number' THEN CAST(reasons->>'depth_exceeded' AS numeric) ELSE 0 END) + (CASE WHEN jsonb_typeof(reasons->'limit_exceeded') = 'number' THEN CAST(reasons->>'limit_exceeded' AS numeric) ELSE 0 END) + (CASE WHEN jsonb_typeof(reasons->'number_not_finite') = 'number' THEN CAST(reasons->>'number_not_finite' AS numeric) ELSE 0 END) AS invalid_json, NULL AS kind, CAST(NULL AS double precision) AS processing_ms
    FROM cirislens.covenant_trace_batches WHERE received_at IS NOT NULL
    UNION ALL SELECT date_trunc('hour', received_at, 'UTC'), 0, 0, 0, 0, 0, COALESCE(trace_type, ''), processing_ms
    FROM cirislens.covenant_traces WHERE signature_verified = TRUE
        AND primary_row = TRUE AND received_at IS NOT NULL) AS parts
GROUP BY time;
CREATE VIEW cirislens.covenant_traces_fragile_day AS
SELECT trace_id, agent_id_hash, idma_k_eff, idma_phase, timestamp
FROM cirislens.covenant_traces WHERE idma_fragility_flag = TRUE AND timestamp > now() - INTERVAL '24 hours';
\endif
INSERT INTO cirislens.cortex_index_versions (version, name) VALUES (4, 'names of spec 1.0');
\endif
COMMIT;
