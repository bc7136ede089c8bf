-- 003: parts are spread over the nodes that are there (docs/fleet.md).
--
-- Online: nodes of the earlier version go on, and are neither asked to hand a part over nor given one.
SET LOCAL lock_timeout = '5s';

-- One row: how parts are spread, and the one move that is on.  Every change is one UPDATE of this row, so there are never two
-- moves at once.  part: NULL = none is moved.  until: then the move counts as failed.
CREATE TABLE cortex_fleet.cx_balance (
    only_one    boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    enabled     boolean NOT NULL DEFAULT true,
    after_ms    bigint NOT NULL DEFAULT 10000 CHECK (after_ms BETWEEN 100 AND 86400000),
    part        bigint REFERENCES cortex_fleet.cx_part,
    from_owner  text,
    to_node     text,
    until       timestamptz,
    ended_at    timestamptz NOT NULL DEFAULT now(),
    moves       bigint NOT NULL DEFAULT 0,
    failures    bigint NOT NULL DEFAULT 0,
    in_a_row    bigint NOT NULL DEFAULT 0,
    CHECK ((part IS NULL) = (until IS NULL))
) WITH (fillfactor = 10);
INSERT INTO cortex_fleet.cx_balance DEFAULT VALUES;

-- balances: its node takes part in this.
ALTER TABLE cortex_fleet.cx_node ADD COLUMN balances boolean NOT NULL DEFAULT false;
-- Who is there for a part, without reading what all parts have.
CREATE INDEX cx_node_part ON cortex_fleet.cx_node (part);

-- Where the roles of roles.sql are there, they may at once what roles.sql says of it.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'cortex_fleet_reader') THEN
        GRANT SELECT ON cortex_fleet.cx_balance TO cortex_fleet_reader;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'cortex_fleet_node') THEN
        GRANT SELECT ON cortex_fleet.cx_balance TO cortex_fleet_node;
        GRANT UPDATE (part, from_owner, to_node, until, ended_at, moves, failures, in_a_row)
            ON cortex_fleet.cx_balance TO cortex_fleet_node;
    END IF;
END
$$;
