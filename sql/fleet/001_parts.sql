-- 001: parts, groups and keys of a fleet (docs/fleet.md).
--
-- `cortex fleet init` runs this file in one transaction and records its number and SHA-256 in
-- cx_migration.  A file that was released is never changed: the next change is the next number.

CREATE SCHEMA cortex_fleet;

CREATE TABLE cortex_fleet.cx_migration (
    number      bigint PRIMARY KEY,
    name        text NOT NULL,
    sha256      bytea NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT now()
);

-- One row.  strict: a commit is acknowledged only when a synchronous standby has it.
CREATE TABLE cortex_fleet.cx_fleet (
    only_one    boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    id          bytea NOT NULL CHECK (octet_length(id) = 16),
    strict      boolean NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now()
);

-- One row a part.  part = the first byte of SHA-256(actor).  head is the hash chain over all groups.
-- Each commit changes the row; the free space in its page keeps that change in the page (HOT).
CREATE TABLE cortex_fleet.cx_part (
    part        bigint PRIMARY KEY CHECK (part BETWEEN 0 AND 255),
    home_id     bytea NOT NULL CHECK (octet_length(home_id) = 16),
    epoch       bigint NOT NULL DEFAULT 0,
    owner       text,
    lease_until timestamptz,
    next        bigint NOT NULL DEFAULT 0,
    head        bytea NOT NULL CHECK (octet_length(head) = 32),
    frames      bigint NOT NULL DEFAULT 0,
    bytes       bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Changed where an answer must not rest on what a standby may not have: see docs/fleet.md.
CREATE TABLE cortex_fleet.cx_pulse (
    part        bigint PRIMARY KEY REFERENCES cortex_fleet.cx_part,
    count       bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);

-- One row a committed group; never changed.  bytes: the group without its erasable parts
-- (docs/formats/log.md §9), NULL when it is in cx_piece.
CREATE TABLE cortex_fleet.cx_group (
    part        bigint NOT NULL,
    num         bigint NOT NULL,
    epoch       bigint NOT NULL,
    prev        bytea NOT NULL,
    head        bytea NOT NULL,
    frames      bigint NOT NULL,
    bytes       bytea,
    PRIMARY KEY (part, num)
);

CREATE TABLE cortex_fleet.cx_piece (
    part        bigint NOT NULL,
    num         bigint NOT NULL,
    piece       bigint NOT NULL,
    bytes       bytea NOT NULL,
    PRIMARY KEY (part, num, piece)
);

-- What may have to be erased: the erasable part of a frame, with its head of eight bytes.  An
-- erasure overwrites the row and removes it.
CREATE TABLE cortex_fleet.cx_live (
    part        bigint NOT NULL,
    num         bigint NOT NULL,
    frame       bigint NOT NULL,
    bytes       bytea NOT NULL,
    PRIMARY KEY (part, num, frame)
);

-- Senders' keys: a request that is sent again finds its first place.
CREATE TABLE cortex_fleet.cx_seen (
    part        bigint NOT NULL,
    key         bytea NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    num         bigint NOT NULL,
    frame       bigint NOT NULL,
    PRIMARY KEY (part, key)
);

-- The actors of a part, and the group of each one's first frame.
CREATE TABLE cortex_fleet.cx_actor (
    part        bigint NOT NULL,
    actor       bytea NOT NULL,
    num         bigint NOT NULL,
    PRIMARY KEY (part, actor)
);

-- Takes, fences and stops.  prior_until: the lease that a take ended; before `at`, or NULL.
CREATE TABLE cortex_fleet.cx_event (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL DEFAULT now(),
    part        bigint NOT NULL,
    epoch       bigint NOT NULL,
    node        text NOT NULL,
    kind        text NOT NULL,
    prior_until timestamptz,
    detail      text
);
CREATE INDEX cx_event_part ON cortex_fleet.cx_event (part, id);

-- No compression in the server: the bytes are read as they are, and compressing them would cost
-- more than the disk that it saves.
ALTER TABLE cortex_fleet.cx_group ALTER COLUMN bytes SET STORAGE EXTERNAL;
ALTER TABLE cortex_fleet.cx_piece ALTER COLUMN bytes SET STORAGE EXTERNAL;
ALTER TABLE cortex_fleet.cx_live ALTER COLUMN bytes SET STORAGE EXTERNAL;
