-- 004: what nodes tell of their connections, whether they serve or not (docs/fleet.md).
--
-- Online, as 003.
SET LOCAL lock_timeout = '5s';

-- Of its address: connections open, held, at its own worker; and since it began: accepted, given up, refused.  NULL: an
-- earlier version, which does not tell.
ALTER TABLE cortex_fleet.cx_node ADD COLUMN counts bigint[] CHECK (cardinality(counts) = 6);
