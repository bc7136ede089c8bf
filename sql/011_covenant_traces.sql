-- Traces, keys, batches, alerts and hourly summaries of agents.
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
    COALESCE(max(version), 0) = 0 AS due FROM cirislens.cortex_index_versions \gset
\if :due

-- Version 1: traces.
\if :timescale
CREATE TABLE cirislens.covenant_traces (
    id bigint NOT NULL,
    trace_id text COLLATE "C" NOT NULL,
    thought_id text COLLATE "C",
    task_id text COLLATE "C",
    agent_id_hash text COLLATE "C" NOT NULL,
    agent_name text COLLATE "C",
    trace_type text COLLATE "C",
    cognitive_state text COLLATE "C",
    thought_type text COLLATE "C",
    thought_depth bigint,
    started_at timestamptz,
    completed_at timestamptz,
    timestamp timestamptz NOT NULL,
    received_at timestamptz,
    consent_timestamp timestamptz,
    trace_level text COLLATE "C" NOT NULL,
    thought_start jsonb,
    snapshot_and_context jsonb,
    dma_results jsonb,
    aspdma_result jsonb,
    conscience_result jsonb,
    action_result jsonb,
    idma_result jsonb,
    csdma_plausibility_score double precision,
    dsdma_domain_alignment double precision,
    dsdma_domain text COLLATE "C",
    pdma_stakeholders text COLLATE "C",
    pdma_conflicts text COLLATE "C",
    action_rationale text COLLATE "C",
    idma_k_eff double precision,
    idma_correlation_risk double precision,
    idma_k_eff_computed double precision,
    idma_fragility_flag boolean,
    idma_phase text COLLATE "C",
    idma_phase_computed text COLLATE "C",
    idma_check text COLLATE "C",
    conscience_passed boolean,
    action_was_overridden boolean,
    updated_status_detected boolean,
    thought_depth_triggered boolean,
    entropy_passed boolean,
    coherence_passed boolean,
    optimization_veto_passed boolean,
    epistemic_humility_passed boolean,
    uncertainty_acknowledged boolean,
    entropy_level double precision,
    coherence_level double precision,
    reasoning_transparency double precision,
    entropy_score double precision,
    coherence_score double precision,
    optimization_veto_entropy_ratio double precision,
    epistemic_humility_certainty double precision,
    selection_confidence double precision,
    selected_action text COLLATE "C",
    is_recursive boolean,
    action_success boolean,
    has_positive_moment boolean,
    has_execution_error boolean,
    audit_entry_id uuid,
    audit_sequence_number bigint,
    audit_entry_hash text COLLATE "C",
    audit_signature text COLLATE "C",
    tokens_input bigint,
    tokens_output bigint,
    tokens_total bigint,
    llm_calls bigint,
    cost_cents double precision,
    carbon_grams double precision,
    energy_mwh double precision,
    execution_time_ms double precision,
    processing_ms double precision,
    models_used text[],
    signature text COLLATE "C" NOT NULL,
    signer_key_id text COLLATE "C" NOT NULL,
    signature_verified boolean NOT NULL DEFAULT FALSE,
    verification_error text COLLATE "C",
    canonical_form text COLLATE "C",
    canonical_sha256 text COLLATE "C",
    content_sha256 text COLLATE "C",
    schema_version text COLLATE "C",
    envelope_signed boolean,
    primary_row boolean,
    ledger_actor text COLLATE "C" NOT NULL,
    ledger_seq bigint NOT NULL,
    PRIMARY KEY (agent_id_hash, trace_id, trace_level, timestamp));
SELECT create_hypertable('cirislens.covenant_traces', 'timestamp', chunk_time_interval => INTERVAL '7 days', create_default_indexes => FALSE);
ALTER TABLE cirislens.covenant_traces SET (timescaledb.compress, timescaledb.compress_segmentby = 'agent_id_hash', timescaledb.compress_orderby = 'timestamp DESC');
SELECT add_compression_policy('cirislens.covenant_traces', INTERVAL '7 days');
SELECT add_retention_policy('cirislens.covenant_traces', INTERVAL '90 days');
CREATE TABLE cirislens.covenant_trace_keys (
    agent_id_hash text COLLATE "C" NOT NULL, trace_id text COLLATE "C" NOT NULL, trace_level text COLLATE "C" NOT NULL,
    timestamp timestamptz NOT NULL, id bigint NOT NULL, verified boolean NOT NULL, signer_key_id text COLLATE "C",
    action_executed text COLLATE "C", action_timestamp text COLLATE "C",
    PRIMARY KEY (agent_id_hash, trace_id, trace_level));
CREATE TABLE cirislens.covenant_trace_conflicts (
    ledger_actor text COLLATE "C" NOT NULL, ledger_seq bigint NOT NULL, agent_id_hash text COLLATE "C" NOT NULL,
    trace_id text COLLATE "C" NOT NULL, trace_level text COLLATE "C" NOT NULL, content_sha256 text COLLATE "C" NOT NULL,
    received_at timestamptz, PRIMARY KEY (ledger_actor, ledger_seq));
CREATE TABLE cirislens.covenant_public_keys (
    key_id text COLLATE "C" NOT NULL PRIMARY KEY, algorithm text COLLATE "C" NOT NULL, public_key_base64 text COLLATE "C" NOT NULL,
    agents text[] NOT NULL, not_before timestamptz, not_after timestamptz, revoked_at timestamptz, revoked_reason text COLLATE "C",
    compromised_since timestamptz, replaces text COLLATE "C", chain_profile text COLLATE "C", description text COLLATE "C", added_by text COLLATE "C",
    added_at timestamptz);
CREATE TABLE cirislens.covenant_trace_batches (
    batch_id text COLLATE "C" NOT NULL PRIMARY KEY, received_at timestamptz, batch_timestamp timestamptz,
    consent_timestamp timestamptz, trace_level text COLLATE "C", correlation_metadata jsonb,
    received_count bigint NOT NULL, accepted_count bigint NOT NULL, rejected_count bigint NOT NULL,
    reasons jsonb, findings jsonb, ledger_seq bigint NOT NULL);
CREATE TABLE cirislens.coherence_ratchet_alerts (
    alert_id text COLLATE "C" NOT NULL PRIMARY KEY, severity text COLLATE "C" NOT NULL, detection_mechanism text COLLATE "C" NOT NULL,
    agent_id_hash text COLLATE "C", domain text COLLATE "C", metric text COLLATE "C", value double precision, baseline double precision, deviation double precision,
    evidence_traces text[], recommended_action text COLLATE "C", timestamp timestamptz NOT NULL,
    acknowledged boolean NOT NULL DEFAULT FALSE, acknowledged_at timestamptz, acknowledged_by text COLLATE "C",
    acknowledged_notes text COLLATE "C", resolved boolean NOT NULL DEFAULT FALSE, resolved_at timestamptz,
    resolved_by text COLLATE "C", resolved_notes text COLLATE "C", alert jsonb NOT NULL);
CREATE TABLE cirislens.cortex_index_feed (
    one bigint NOT NULL PRIMARY KEY CHECK (one = 1), home_id text COLLATE "C" NOT NULL,
    log_commit bigint NOT NULL, log_frames bigint NOT NULL, last_id bigint NOT NULL,
    commits bigint NOT NULL, retained_until timestamptz);
CREATE INDEX covenant_traces_by_time ON cirislens.covenant_traces (timestamp DESC, id DESC);
CREATE INDEX covenant_traces_by_agent ON cirislens.covenant_traces (agent_id_hash, timestamp DESC, id DESC);
CREATE INDEX covenant_traces_by_task ON cirislens.covenant_traces (task_id, timestamp DESC, id DESC);
CREATE INDEX covenant_traces_by_type ON cirislens.covenant_traces (trace_type, timestamp DESC, id DESC);
CREATE INDEX covenant_traces_by_level ON cirislens.covenant_traces (trace_level, timestamp DESC, id DESC);
CREATE INDEX covenant_traces_by_csdma ON cirislens.covenant_traces (csdma_plausibility_score, timestamp DESC);
CREATE INDEX covenant_traces_by_dsdma ON cirislens.covenant_traces (dsdma_domain_alignment, timestamp DESC);
CREATE INDEX covenant_traces_by_domain ON cirislens.covenant_traces (dsdma_domain, timestamp DESC, id DESC);
CREATE INDEX covenant_traces_by_action ON cirislens.covenant_traces (selected_action, timestamp DESC, id DESC);
CREATE INDEX covenant_traces_by_thought ON cirislens.covenant_traces (thought_id);
CREATE INDEX covenant_traces_by_audit ON cirislens.covenant_traces (agent_id_hash, audit_sequence_number);
CREATE INDEX covenant_traces_by_k_eff ON cirislens.covenant_traces (idma_k_eff, timestamp DESC) WHERE idma_k_eff IS NOT NULL;
CREATE INDEX covenant_traces_fragile ON cirislens.covenant_traces (timestamp DESC, id DESC) WHERE idma_fragility_flag = TRUE;
CREATE INDEX covenant_traces_unverified ON cirislens.covenant_traces (timestamp DESC, id DESC) WHERE signature_verified = FALSE;
CREATE INDEX covenant_traces_wakeups ON cirislens.covenant_traces (agent_id_hash, timestamp) WHERE trace_type IS NOT NULL;
CREATE INDEX covenant_trace_keys_by_signer ON cirislens.covenant_trace_keys (signer_key_id);
CREATE INDEX covenant_trace_keys_by_time ON cirislens.covenant_trace_keys (timestamp);
CREATE INDEX covenant_trace_conflicts_by_trace ON cirislens.covenant_trace_conflicts (agent_id_hash, trace_id);
CREATE INDEX coherence_ratchet_alerts_by_time ON cirislens.coherence_ratchet_alerts (timestamp DESC, alert_id);
CREATE INDEX covenant_traces_text ON cirislens.covenant_traces USING gin (to_tsvector('simple', left(action_rationale, 100000)));
\else
CREATE TABLE cirislens.covenant_traces (
    id bigint NOT NULL,
    trace_id text COLLATE "C" NOT NULL,
    thought_id text COLLATE "C",
    task_id text COLLATE "C",
    agent_id_hash text COLLATE "C" NOT NULL,
    agent_name text COLLATE "C",
    trace_type text COLLATE "C",
    cognitive_state text COLLATE "C",
    thought_type text COLLATE "C",
    thought_depth bigint,
    started_at timestamptz,
    completed_at timestamptz,
    timestamp timestamptz NOT NULL,
    received_at timestamptz,
    consent_timestamp timestamptz,
    trace_level text COLLATE "C" NOT NULL,
    thought_start jsonb,
    snapshot_and_context jsonb,
    dma_results jsonb,
    aspdma_result jsonb,
    conscience_result jsonb,
    action_result jsonb,
    idma_result jsonb,
    csdma_plausibility_score double precision,
    dsdma_domain_alignment double precision,
    dsdma_domain text COLLATE "C",
    pdma_stakeholders text COLLATE "C",
    pdma_conflicts text COLLATE "C",
    action_rationale text COLLATE "C",
    idma_k_eff double precision,
    idma_correlation_risk double precision,
    idma_k_eff_computed double precision,
    idma_fragility_flag boolean,
    idma_phase text COLLATE "C",
    idma_phase_computed text COLLATE "C",
    idma_check text COLLATE "C",
    conscience_passed boolean,
    action_was_overridden boolean,
    updated_status_detected boolean,
    thought_depth_triggered boolean,
    entropy_passed boolean,
    coherence_passed boolean,
    optimization_veto_passed boolean,
    epistemic_humility_passed boolean,
    uncertainty_acknowledged boolean,
    entropy_level double precision,
    coherence_level double precision,
    reasoning_transparency double precision,
    entropy_score double precision,
    coherence_score double precision,
    optimization_veto_entropy_ratio double precision,
    epistemic_humility_certainty double precision,
    selection_confidence double precision,
    selected_action text COLLATE "C",
    is_recursive boolean,
    action_success boolean,
    has_positive_moment boolean,
    has_execution_error boolean,
    audit_entry_id uuid,
    audit_sequence_number bigint,
    audit_entry_hash text COLLATE "C",
    audit_signature text COLLATE "C",
    tokens_input bigint,
    tokens_output bigint,
    tokens_total bigint,
    llm_calls bigint,
    cost_cents double precision,
    carbon_grams double precision,
    energy_mwh double precision,
    execution_time_ms double precision,
    processing_ms double precision,
    models_used text[],
    signature text COLLATE "C" NOT NULL,
    signer_key_id text COLLATE "C" NOT NULL,
    signature_verified boolean NOT NULL DEFAULT FALSE,
    verification_error text COLLATE "C",
    canonical_form text COLLATE "C",
    canonical_sha256 text COLLATE "C",
    content_sha256 text COLLATE "C",
    schema_version text COLLATE "C",
    envelope_signed boolean,
    primary_row boolean,
    ledger_actor text COLLATE "C" NOT NULL,
    ledger_seq bigint NOT NULL,
    PRIMARY KEY (agent_id_hash, trace_id, trace_level, timestamp)) PARTITION BY RANGE (timestamp);
CREATE TABLE cirislens.covenant_traces_default PARTITION OF cirislens.covenant_traces DEFAULT;
CREATE TABLE cirislens.covenant_trace_keys (
    agent_id_hash text COLLATE "C" NOT NULL, trace_id text COLLATE "C" NOT NULL, trace_level text COLLATE "C" NOT NULL,
    timestamp timestamptz NOT NULL, id bigint NOT NULL, verified boolean NOT NULL, signer_key_id text COLLATE "C",
    action_executed text COLLATE "C", action_timestamp text COLLATE "C",
    PRIMARY KEY (agent_id_hash, trace_id, trace_level));
CREATE TABLE cirislens.covenant_trace_conflicts (
    ledger_actor text COLLATE "C" NOT NULL, ledger_seq bigint NOT NULL, agent_id_hash text COLLATE "C" NOT NULL,
    trace_id text COLLATE "C" NOT NULL, trace_level text COLLATE "C" NOT NULL, content_sha256 text COLLATE "C" NOT NULL,
    received_at timestamptz, PRIMARY KEY (ledger_actor, ledger_seq));
CREATE TABLE cirislens.covenant_public_keys (
    key_id text COLLATE "C" NOT NULL PRIMARY KEY, algorithm text COLLATE "C" NOT NULL, public_key_base64 text COLLATE "C" NOT NULL,
    agents text[] NOT NULL, not_before timestamptz, not_after timestamptz, revoked_at timestamptz, revoked_reason text COLLATE "C",
    compromised_since timestamptz, replaces text COLLATE "C", chain_profile text COLLATE "C", description text COLLATE "C", added_by text COLLATE "C",
    added_at timestamptz);
CREATE TABLE cirislens.covenant_trace_batches (
    batch_id text COLLATE "C" NOT NULL PRIMARY KEY, received_at timestamptz, batch_timestamp timestamptz,
    consent_timestamp timestamptz, trace_level text COLLATE "C", correlation_metadata jsonb,
    received_count bigint NOT NULL, accepted_count bigint NOT NULL, rejected_count bigint NOT NULL,
    reasons jsonb, findings jsonb, ledger_seq bigint NOT NULL);
CREATE TABLE cirislens.coherence_ratchet_alerts (
    alert_id text COLLATE "C" NOT NULL PRIMARY KEY, severity text COLLATE "C" NOT NULL, detection_mechanism text COLLATE "C" NOT NULL,
    agent_id_hash text COLLATE "C", domain text COLLATE "C", metric text COLLATE "C", value double precision, baseline double precision, deviation double precision,
    evidence_traces text[], recommended_action text COLLATE "C", timestamp timestamptz NOT NULL,
    acknowledged boolean NOT NULL DEFAULT FALSE, acknowledged_at timestamptz, acknowledged_by text COLLATE "C",
    acknowledged_notes text COLLATE "C", resolved boolean NOT NULL DEFAULT FALSE, resolved_at timestamptz,
    resolved_by text COLLATE "C", resolved_notes text COLLATE "C", alert jsonb NOT NULL);
CREATE TABLE cirislens.cortex_index_feed (
    one bigint NOT NULL PRIMARY KEY CHECK (one = 1), home_id text COLLATE "C" NOT NULL,
    log_commit bigint NOT NULL, log_frames bigint NOT NULL, last_id bigint NOT NULL,
    commits bigint NOT NULL, retained_until timestamptz);
CREATE INDEX covenant_traces_by_time ON cirislens.covenant_traces (timestamp DESC, id DESC);
CREATE INDEX covenant_traces_by_agent ON cirislens.covenant_traces (agent_id_hash, timestamp DESC, id DESC);
CREATE INDEX covenant_traces_by_task ON cirislens.covenant_traces (task_id, timestamp DESC, id DESC);
CREATE INDEX covenant_traces_by_type ON cirislens.covenant_traces (trace_type, timestamp DESC, id DESC);
CREATE INDEX covenant_traces_by_level ON cirislens.covenant_traces (trace_level, timestamp DESC, id DESC);
CREATE INDEX covenant_traces_by_csdma ON cirislens.covenant_traces (csdma_plausibility_score, timestamp DESC);
CREATE INDEX covenant_traces_by_dsdma ON cirislens.covenant_traces (dsdma_domain_alignment, timestamp DESC);
CREATE INDEX covenant_traces_by_domain ON cirislens.covenant_traces (dsdma_domain, timestamp DESC, id DESC);
CREATE INDEX covenant_traces_by_action ON cirislens.covenant_traces (selected_action, timestamp DESC, id DESC);
CREATE INDEX covenant_traces_by_thought ON cirislens.covenant_traces (thought_id);
CREATE INDEX covenant_traces_by_audit ON cirislens.covenant_traces (agent_id_hash, audit_sequence_number);
CREATE INDEX covenant_traces_by_k_eff ON cirislens.covenant_traces (idma_k_eff, timestamp DESC) WHERE idma_k_eff IS NOT NULL;
CREATE INDEX covenant_traces_fragile ON cirislens.covenant_traces (timestamp DESC, id DESC) WHERE idma_fragility_flag = TRUE;
CREATE INDEX covenant_traces_unverified ON cirislens.covenant_traces (timestamp DESC, id DESC) WHERE signature_verified = FALSE;
CREATE INDEX covenant_traces_wakeups ON cirislens.covenant_traces (agent_id_hash, timestamp) WHERE trace_type IS NOT NULL;
CREATE INDEX covenant_trace_keys_by_signer ON cirislens.covenant_trace_keys (signer_key_id);
CREATE INDEX covenant_trace_keys_by_time ON cirislens.covenant_trace_keys (timestamp);
CREATE INDEX covenant_trace_conflicts_by_trace ON cirislens.covenant_trace_conflicts (agent_id_hash, trace_id);
CREATE INDEX coherence_ratchet_alerts_by_time ON cirislens.coherence_ratchet_alerts (timestamp DESC, alert_id);
CREATE INDEX covenant_traces_text ON cirislens.covenant_traces USING gin (to_tsvector('simple', left(action_rationale, 100000)));
\endif
INSERT INTO cirislens.cortex_index_versions (version, name) VALUES (1, 'traces');

-- Version 2: hourly summaries.
\if :timescale
CREATE MATERIALIZED VIEW cirislens.covenant_traces_hourly WITH (timescaledb.continuous) AS
SELECT time_bucket(INTERVAL '1 hour', timestamp) AS bucket, agent_id_hash, trace_type, selected_action,
    count(*) AS traces,
    avg(csdma_plausibility_score) AS avg_csdma, min(csdma_plausibility_score) AS min_csdma,
    avg(dsdma_domain_alignment) AS avg_dsdma, min(dsdma_domain_alignment) AS min_dsdma,
    avg(idma_k_eff) AS avg_k_eff, min(idma_k_eff) AS min_k_eff,
    avg(coherence_level) AS avg_coherence, min(coherence_level) AS min_coherence,
    avg(entropy_level) AS avg_entropy, min(entropy_level) AS min_entropy,
    avg(CASE WHEN conscience_passed = TRUE THEN CAST(1 AS double precision) WHEN conscience_passed = FALSE THEN CAST(0 AS double precision) END) AS conscience_rate,
    avg(CASE WHEN entropy_passed = TRUE THEN CAST(1 AS double precision) WHEN entropy_passed = FALSE THEN CAST(0 AS double precision) END) AS entropy_rate,
    avg(CASE WHEN coherence_passed = TRUE THEN CAST(1 AS double precision) WHEN coherence_passed = FALSE THEN CAST(0 AS double precision) END) AS coherence_rate,
    avg(CASE WHEN optimization_veto_passed = TRUE THEN CAST(1 AS double precision) WHEN optimization_veto_passed = FALSE THEN CAST(0 AS double precision) END) AS optimization_veto_rate,
    avg(CASE WHEN epistemic_humility_passed = TRUE THEN CAST(1 AS double precision) WHEN epistemic_humility_passed = FALSE THEN CAST(0 AS double precision) END) AS epistemic_humility_rate,
    avg(CASE WHEN action_success = TRUE THEN CAST(1 AS double precision) WHEN action_success = FALSE THEN CAST(0 AS double precision) END) AS success_rate,
    sum(CASE WHEN action_was_overridden = TRUE THEN 1 ELSE 0 END) AS overrides,
    sum(CASE WHEN idma_fragility_flag = TRUE THEN 1 ELSE 0 END) AS fragile,
    sum(CAST(tokens_total AS double precision)) AS tokens_total,
    sum(cost_cents) AS cost_cents
FROM cirislens.covenant_traces
WHERE signature_verified = TRUE AND primary_row = TRUE GROUP BY 1, 2, 3, 4 WITH NO DATA;
SELECT add_continuous_aggregate_policy('cirislens.covenant_traces_hourly', start_offset => INTERVAL '24 hours', end_offset => INTERVAL '1 hour', schedule_interval => INTERVAL '1 hour');
SELECT add_retention_policy('cirislens.covenant_traces_hourly', INTERVAL '1 year');
\else
CREATE TABLE cirislens.covenant_traces_hourly AS
SELECT date_trunc('hour', timestamp, 'UTC') AS bucket, agent_id_hash, trace_type, selected_action,
    count(*) AS traces,
    avg(csdma_plausibility_score) AS avg_csdma, min(csdma_plausibility_score) AS min_csdma,
    avg(dsdma_domain_alignment) AS avg_dsdma, min(dsdma_domain_alignment) AS min_dsdma,
    avg(idma_k_eff) AS avg_k_eff, min(idma_k_eff) AS min_k_eff,
    avg(coherence_level) AS avg_coherence, min(coherence_level) AS min_coherence,
    avg(entropy_level) AS avg_entropy, min(entropy_level) AS min_entropy,
    avg(CASE WHEN conscience_passed = TRUE THEN CAST(1 AS double precision) WHEN conscience_passed = FALSE THEN CAST(0 AS double precision) END) AS conscience_rate,
    avg(CASE WHEN entropy_passed = TRUE THEN CAST(1 AS double precision) WHEN entropy_passed = FALSE THEN CAST(0 AS double precision) END) AS entropy_rate,
    avg(CASE WHEN coherence_passed = TRUE THEN CAST(1 AS double precision) WHEN coherence_passed = FALSE THEN CAST(0 AS double precision) END) AS coherence_rate,
    avg(CASE WHEN optimization_veto_passed = TRUE THEN CAST(1 AS double precision) WHEN optimization_veto_passed = FALSE THEN CAST(0 AS double precision) END) AS optimization_veto_rate,
    avg(CASE WHEN epistemic_humility_passed = TRUE THEN CAST(1 AS double precision) WHEN epistemic_humility_passed = FALSE THEN CAST(0 AS double precision) END) AS epistemic_humility_rate,
    avg(CASE WHEN action_success = TRUE THEN CAST(1 AS double precision) WHEN action_success = FALSE THEN CAST(0 AS double precision) END) AS success_rate,
    sum(CASE WHEN action_was_overridden = TRUE THEN 1 ELSE 0 END) AS overrides,
    sum(CASE WHEN idma_fragility_flag = TRUE THEN 1 ELSE 0 END) AS fragile,
    sum(CAST(tokens_total AS double precision)) AS tokens_total,
    sum(cost_cents) AS cost_cents
FROM cirislens.covenant_traces
WHERE signature_verified = TRUE AND primary_row = TRUE GROUP BY 1, 2, 3, 4 WITH NO DATA;
CREATE INDEX covenant_traces_hourly_by_time ON cirislens.covenant_traces_hourly (bucket DESC, agent_id_hash);
CREATE TABLE cirislens.covenant_traces_hourly_stale (bucket timestamptz NOT NULL PRIMARY KEY);
\endif
INSERT INTO cirislens.cortex_index_versions (version, name) VALUES (2, 'hourly summaries');

-- Version 3: facets.
CREATE INDEX covenant_traces_by_facets ON cirislens.covenant_traces (timestamp DESC, agent_id_hash, trace_level, signature_verified, idma_k_eff, conscience_passed, action_was_overridden) WHERE primary_row = TRUE;
CREATE INDEX covenant_traces_by_trace ON cirislens.covenant_traces (trace_id);
INSERT INTO cirislens.cortex_index_versions (version, name) VALUES (3, 'facets');
\endif
COMMIT;
