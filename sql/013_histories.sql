-- Steps and histories, to be searched; after 012.
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
    COALESCE(max(version), 0) = 4 AS due FROM cirislens.cortex_index_versions \gset
\if :due

-- Version 5: steps of histories.
CREATE TABLE cirislens.cortex_histories (
    id bigint NOT NULL PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE, source text COLLATE "C" NOT NULL, title text COLLATE "C",
    title_rank bigint NOT NULL, title_seq bigint, agent text COLLATE "C", model text COLLATE "C", path text COLLATE "C", first_at timestamptz,
    last_at timestamptz, steps bigint NOT NULL, calls bigint NOT NULL, errors bigint NOT NULL,
    tokens_input bigint NOT NULL, tokens_output bigint NOT NULL, cost_usd double precision NOT NULL,
    lines bigint NOT NULL, pending text COLLATE "C", last_message text COLLATE "C", last_input bigint NOT NULL,
    last_output bigint NOT NULL);
CREATE TABLE cirislens.cortex_steps (
    id bigint NOT NULL PRIMARY KEY, history_id bigint NOT NULL, ref text COLLATE "C" NOT NULL, happened_at timestamptz,
    kind text COLLATE "C", agent text COLLATE "C", role text COLLATE "C", tool text COLLATE "C", failed boolean NOT NULL, tokens_input bigint NOT NULL,
    tokens_output bigint NOT NULL, cost_usd double precision NOT NULL, text text COLLATE "C" NOT NULL,
    ledger_actor text COLLATE "C" NOT NULL, ledger_seq bigint NOT NULL, UNIQUE (history_id, ref));
UPDATE cirislens.cortex_index_feed SET log_commit = 0, log_frames = 0;
CREATE INDEX cortex_histories_by_time ON cirislens.cortex_histories (last_at DESC, id DESC);
CREATE INDEX cortex_steps_by_history ON cirislens.cortex_steps (history_id, id);
CREATE INDEX cortex_steps_by_entry ON cirislens.cortex_steps (ledger_actor, ledger_seq);
CREATE INDEX cortex_steps_by_time ON cirislens.cortex_steps (happened_at);
CREATE INDEX cortex_steps_text ON cirislens.cortex_steps USING gin (to_tsvector('simple', left(text, 100000)));
INSERT INTO cirislens.cortex_index_versions (version, name) VALUES (5, 'steps of histories');
\endif
COMMIT;
