-- 005: where in the log of a part reading may begin (docs/fleet.md).
--
-- Online: nodes of the earlier version go on, and leave the column as it is.
SET LOCAL lock_timeout = '5s';

-- What a folder's lock file has from byte 36 on (docs/formats/log.md).  NULL: the last segment is read from its beginning.  Never
-- believed without the mark that it names, and in no hash.
ALTER TABLE cortex_fleet.cx_part ADD COLUMN trail bytea CHECK (octet_length(trail) = 48);

-- Where the role of roles.sql is there, it may at once what roles.sql says of it.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'cortex_fleet_node') THEN
        GRANT UPDATE (trail) ON cortex_fleet.cx_part TO cortex_fleet_node;
    END IF;
END
$$;
