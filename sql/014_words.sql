-- Words of traces and memories, read again; after 013.
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
    COALESCE(max(version), 0) = 5 AS due FROM cirislens.cortex_index_versions \gset
\if :due

-- Version 6: words of traces and memories.
DELETE FROM cirislens.cortex_steps;
DELETE FROM cirislens.cortex_histories;
UPDATE cirislens.cortex_index_feed SET log_commit = 0, log_frames = 0;
INSERT INTO cirislens.cortex_index_versions (version, name) VALUES (6, 'words of traces and memories');
\endif
COMMIT;
