-- roles.sql: what nodes and readers of a fleet may do (docs/fleet.md).  Run by a DBA, not by Cortex:
--
--     psql -d DATABASE -f roles.sql
--     GRANT cortex_fleet_node TO node_1;
--
-- A node cannot change or remove a commit or an event, and cannot change the tables.  `cortex fleet init` and
-- `cortex fleet add` need the owner of the schema.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'cortex_fleet_reader') THEN
        CREATE ROLE cortex_fleet_reader NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'cortex_fleet_node') THEN
        CREATE ROLE cortex_fleet_node NOLOGIN;
    END IF;
END
$$;

GRANT USAGE ON SCHEMA cortex_fleet TO cortex_fleet_reader, cortex_fleet_node;
GRANT SELECT ON ALL TABLES IN SCHEMA cortex_fleet TO cortex_fleet_node;
-- Not cx_small: it has the hashes of tokens.
GRANT SELECT ON cortex_fleet.cx_migration, cortex_fleet.cx_fleet, cortex_fleet.cx_part, cortex_fleet.cx_commit,
    cortex_fleet.cx_file, cortex_fleet.cx_extent, cortex_fleet.cx_node, cortex_fleet.cx_event, cortex_fleet.cx_balance
    TO cortex_fleet_reader;

GRANT UPDATE (epoch, owner, address, lease_until, next, head, bytes, moved_to, trail)
    ON cortex_fleet.cx_part TO cortex_fleet_node;
GRANT UPDATE (count) ON cortex_fleet.cx_pulse TO cortex_fleet_node;
GRANT INSERT ON cortex_fleet.cx_commit, cortex_fleet.cx_event TO cortex_fleet_node;
GRANT UPDATE (nonce) ON cortex_fleet.cx_commit TO cortex_fleet_node;
GRANT INSERT, UPDATE, DELETE ON cortex_fleet.cx_file, cortex_fleet.cx_extent, cortex_fleet.cx_small,
    cortex_fleet.cx_node TO cortex_fleet_node;
-- Not whether and how fast parts are spread: that is an operator's.
GRANT UPDATE (part, from_owner, to_node, until, ended_at, moves, failures, in_a_row)
    ON cortex_fleet.cx_balance TO cortex_fleet_node;
