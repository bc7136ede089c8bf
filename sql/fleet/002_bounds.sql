-- 002: what a part may record, and where its chain of commits begins (docs/fleet.md).
--
-- Online: nodes go on meanwhile.  It needs the locks of cx_part and cx_event for a moment; where a transaction that is open has
-- it for longer, this ends with an error and changes nothing.
SET LOCAL lock_timeout = '5s';

-- Every node asks how often a part was stopped and its owners fenced; not among all the times that it was taken.
CREATE INDEX cx_event_kind ON cortex_fleet.cx_event (part, kind, id);

-- quota_bytes: what the log may have before nothing new is recorded; NULL = no limit.
--
-- base: the chain is checked from this commit on, with base_head before it.  Of the commits before it only those
-- are kept whose bytes are still there.  base_num: the commit whose digest is of base, base_head and these rows.
ALTER TABLE cortex_fleet.cx_part
    ADD COLUMN quota_bytes bigint CHECK (quota_bytes > 0),
    ADD COLUMN base        bigint NOT NULL DEFAULT 0 CHECK (base >= 0),
    ADD COLUMN base_head   bytea CHECK (octet_length(base_head) = 32),
    ADD COLUMN base_num    bigint CHECK (base_num >= base);
