-- 001: data directories in PostgreSQL, each written by one node at a time (docs/fleet.md).
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

-- One row a part, which is a data directory.  owner: the process that may write it until lease_until;
-- address: where it serves, NULL until it does.  head is the hash chain over all commits.  Each commit
-- changes the row; the free space in its page keeps that change in the page (HOT).
CREATE TABLE cortex_fleet.cx_part (
    part        bigint PRIMARY KEY CHECK (part BETWEEN 0 AND 65535),
    name        text NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
    id          bytea NOT NULL CHECK (octet_length(id) = 16),
    epoch       bigint NOT NULL DEFAULT 0,
    owner       text,
    address     text,
    lease_until timestamptz,
    next        bigint NOT NULL DEFAULT 0,
    head        bytea NOT NULL CHECK (octet_length(head) = 32),
    bytes       bigint NOT NULL DEFAULT 0,
    moved_to    text,
    created_at  timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE UNIQUE INDEX cx_part_name ON cortex_fleet.cx_part (name);

-- Changed where an answer must not rest on what a standby may not have: see docs/fleet.md.
CREATE TABLE cortex_fleet.cx_pulse (
    part        bigint PRIMARY KEY REFERENCES cortex_fleet.cx_part,
    count       bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);

-- One row a commit; never changed but for nonce.  digest covers what the commit wrote into files that
-- are not derived, and its nonce.  nonce is NULL where it wrote none, and once some of that was
-- overwritten or removed: from then on nothing can be tried against digest.
CREATE TABLE cortex_fleet.cx_commit (
    part        bigint NOT NULL,
    num         bigint NOT NULL,
    epoch       bigint NOT NULL,
    prev        bytea NOT NULL,
    head        bytea NOT NULL,
    digest      bytea NOT NULL,
    nonce       bytea,
    PRIMARY KEY (part, num)
);

-- The files of a data directory that only its owner changes: log/.. and the tables (*.db), which are
-- derived from it.
CREATE TABLE cortex_fleet.cx_file (
    part        bigint NOT NULL,
    file        bigint NOT NULL,
    name        text NOT NULL,
    derived     boolean NOT NULL,
    size        bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (part, file),
    UNIQUE (part, name)
);

-- Their bytes, by chunks of 65,536: an extent begins at chunk * 65536 + start, and stays in its chunk.
-- What no extent has is zero.  num is the commit that wrote it.
CREATE TABLE cortex_fleet.cx_extent (
    part        bigint NOT NULL,
    file        bigint NOT NULL,
    chunk       bigint NOT NULL,
    start       bigint NOT NULL,
    num         bigint NOT NULL,
    bytes       bytea NOT NULL,
    PRIMARY KEY (part, file, chunk, start)
);

-- Small files that several processes change, each as a whole: tokens, signed checkpoints, settings.
-- version: random, of the last write.
CREATE TABLE cortex_fleet.cx_small (
    part        bigint NOT NULL,
    name        text NOT NULL,
    bytes       bytea NOT NULL,
    version     bigint NOT NULL,
    changed_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (part, name)
);

-- Nodes that serve, as they said last.
CREATE TABLE cortex_fleet.cx_node (
    owner       text PRIMARY KEY,
    node        text NOT NULL,
    part        bigint NOT NULL,
    address     text NOT NULL,
    version     text NOT NULL,
    draining    boolean NOT NULL DEFAULT false,
    seen_at     timestamptz NOT NULL DEFAULT now(),
    started_at  timestamptz NOT NULL DEFAULT now()
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

-- No compression in the server: most of the bytes are hashes and signatures, and what is read often
-- must not be unpacked each time.
ALTER TABLE cortex_fleet.cx_extent ALTER COLUMN bytes SET STORAGE EXTERNAL;
ALTER TABLE cortex_fleet.cx_small ALTER COLUMN bytes SET STORAGE EXTERNAL;
