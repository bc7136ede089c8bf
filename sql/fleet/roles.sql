-- roles.sql: what nodes and readers of a fleet may do (docs/fleet.md).  Run by a DBA, not by Cortex:
--
--     psql -d DATABASE -f roles.sql
--     GRANT cortex_fleet_node TO node_1;
--
-- A node cannot change or remove a group, a piece, a key or an event that is committed, and cannot
-- change the tables.  `cortex fleet init` needs the owner of the schema.

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
GRANT SELECT ON ALL TABLES IN SCHEMA cortex_fleet TO cortex_fleet_reader, cortex_fleet_node;

GRANT UPDATE (epoch, owner, lease_until, next, head, frames, bytes)
    ON cortex_fleet.cx_part TO cortex_fleet_node;
GRANT UPDATE (count) ON cortex_fleet.cx_pulse TO cortex_fleet_node;
GRANT INSERT ON cortex_fleet.cx_group, cortex_fleet.cx_piece, cortex_fleet.cx_live,
    cortex_fleet.cx_seen, cortex_fleet.cx_actor, cortex_fleet.cx_event TO cortex_fleet_node;
GRANT UPDATE (bytes), DELETE ON cortex_fleet.cx_live TO cortex_fleet_node;
