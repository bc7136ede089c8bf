/*
 * fleet.h - parts of a log in PostgreSQL, each written by one node at a time (docs/fleet.md).
 *
 *     cx_fleet_open(url, &options, &fleet, err);
 *     cx_fleet_take(fleet, &part, &taken, err);                        a lease, by the server's
 *     clock cx_fleet_append(fleet, &part, records, count, places, err);      durable, or an error
 *     cx_fleet_give_back(fleet, &part, err);
 *
 * Invariants (cited by tests and asserts):
 *
 *   F1  A group is appended in one transaction that changes the part's row where epoch, owner, next
 *       and head are those that the writer knows.  No row changed: the writer was fenced, and
 *       nothing of the group is there.
 *   F2  Safety rests on F1 alone; the lease is for liveness.
 *   F3  A lease is taken when the one before has ended, by the server's clock; epoch grows by one.
 *   F4  A sender's key is stored in the same transaction.  A key that is there already is answered
 *       with its first place.
 *   F5  cx_fleet_append returns after COMMIT; in a strict fleet after a synchronous standby has it.
 *   F6  An outcome that is not known is resolved on a new connection, by a commit of its own: group
 *       there or not.  A warning at COMMIT (a cancelled wait for the standby) counts as not known.
 *   F7  head is a hash chain over all groups.  A chain that does not fit, or that is shorter than
 *       it was, stops the part: the database was restored or changed.
 *
 * Errors, besides those of db/pg.h:
 *
 *     CX_E_CONFLICT  Fenced          another node took the part; nothing of the group is there
 *     CX_E_IO        OutcomeUnknown  not resolved in time: send again with the same keys
 *     CX_E_FORMAT    PartStopped     F7; nothing is written until an operator accepts the state
 *     CX_E_DENIED    NotStrict       a strict fleet, and the server waits for no standby
 *     CX_E_IO        DatabaseFull    the server's disk is full; nothing of the group is there
 *     CX_E_EXISTS    ActorExists     the part has that actor already
 *     CX_E_NOT_FOUND NoFleet         the database has no fleet
 *
 * A cx_fleet is one connection and belongs to one thread at a time.
 */
#ifndef CX_FLEET_FLEET_H
#define CX_FLEET_FLEET_H

#include "base/api.h"
#include "log/api.h"

#define CX_FLEET_PARTS 256
#define CX_FLEET_NODE_MAX 63 /* bytes of a node's name */
#define CX_FLEET_KEY_MAX 255
#define CX_FLEET_RECORDS_MAX 65536               /* in one group */
#define CX_FLEET_GROUP_MAX (UINT64_C(256) << 20) /* bytes of one group, erasable parts included */
#define CX_FLEET_PIECE (UINT64_C(1) << 20)       /* a larger group is stored in pieces of it */
#define CX_FLEET_LEASE_MS 5000
#define CX_FLEET_URL_MAX 4096

typedef struct cx_fleet cx_fleet;

typedef struct cx_fleet_options {
    const char *node;    /* name of this node: 1 to 63 printable ASCII characters without space */
    uint32_t lease_ms;   /* 100 .. 600,000; 0 = CX_FLEET_LEASE_MS */
    uint32_t answer_ms;  /* the server may be silent so long; 0 = 10,000 */
    uint32_t resolve_ms; /* an unknown outcome is resolved within; 0 = 30,000 */
    bool read_only;
} cx_fleet_options;

/* The part of an actor: the first byte of SHA-256(name). */
unsigned cx_fleet_part_of(cx_str actor);

/* --- the database ----------------------------------------------------------------------------- */

/* Makes the tables, or brings them up to date; *out_applied = migrations that were run.  `id`, of
 * 16 bytes, is that of the fleet; NULL = random.  CX_E_CONFLICT "OtherFleet" when the database has
 * one with another id, or of the other strictness. */
CX_RESULT cx_fleet_init(const char *url, bool strict, const uint8_t *id, uint64_t *out_applied,
                        cx_err *err);
/* The SQL that cx_fleet_init runs, and that of the roles; static. */
cx_str cx_fleet_sql(void);
cx_str cx_fleet_roles_sql(void);

CX_RESULT cx_fleet_open(const char *url, const cx_fleet_options *options, cx_fleet **out,
                        cx_err *err);
void cx_fleet_close(cx_fleet *fleet); /* leases end by themselves; NULL is accepted */
void cx_fleet_id(const cx_fleet *fleet, uint8_t out[16]);
bool cx_fleet_is_strict(const cx_fleet *fleet);
/* Node and process, "NAME/16 hex digits": the owner in the tables.  Lives as long as `fleet`. */
const char *cx_fleet_owner(const cx_fleet *fleet);

/* --- parts ------------------------------------------------------------------------------------ */

/* What a node knows of a part.  Zeroed, with the number set, it knows nothing; it is kept while the
 * part is lost, for F7. */
typedef struct cx_fleet_part {
    unsigned number;
    bool owned;
    bool known; /* the following was true once */
    uint8_t home_id[16];
    uint64_t epoch;
    uint64_t next; /* groups */
    cx_digest head;
} cx_fleet_part;

/* *out_taken false: another node's lease is on.  Checks the newest groups, and those that came
 * since `part` was known (F7), before it returns. */
CX_RESULT cx_fleet_take(cx_fleet *fleet, cx_fleet_part *part, bool *out_taken, cx_err *err);
/* Appends renew the lease, too. */
CX_RESULT cx_fleet_renew(cx_fleet *fleet, cx_fleet_part *part, cx_err *err);
CX_RESULT cx_fleet_give_back(cx_fleet *fleet, cx_fleet_part *part, cx_err *err);
/* After F7 an operator takes the state as it is now: writes an event; the part can be taken. */
CX_RESULT cx_fleet_accept(cx_fleet *fleet, unsigned part, cx_err *err);
/* Gives an empty part that is owned the identity of a log. */
CX_RESULT cx_fleet_adopt(cx_fleet *fleet, cx_fleet_part *part, const uint8_t home_id[16],
                         cx_err *err);

typedef struct cx_fleet_row {
    unsigned number;
    uint8_t home_id[16];
    uint64_t epoch, next, frames, bytes, actors, stops;
    cx_digest head;
    cx_str owner;          /* empty = none */
    int64_t lease_left_ms; /* <= 0: it has ended */
    bool stopped;
} cx_fleet_row;
/* Those with an epoch or a group, ascending; `all`: every part.  The row is valid during the
 * call. */
typedef cx_status cx_fleet_each_part(void *arg, const cx_fleet_row *row, cx_err *err);
CX_RESULT cx_fleet_list(cx_fleet *fleet, bool all, cx_fleet_each_part *each, void *arg,
                        cx_err *err);

/* What the server is set to. */
typedef struct cx_fleet_server {
    uint64_t migrations, migrations_known; /* applied; in this program */
    bool standby_named;                    /* synchronous_standby_names is not empty */
    bool commit_waits;                     /* synchronous_commit is on or remote_apply */
    bool read_only;                        /* a standby, or set so */
    uint64_t long_transactions; /* open for more than a minute; 0 where it is not shown */
    char version[64];
} cx_fleet_server;
CX_RESULT cx_fleet_server_of(cx_fleet *fleet, cx_fleet_server *out, cx_err *err);

/* --- appending -------------------------------------------------------------------------------- */

typedef struct cx_fleet_record {
    cx_log_frame frame;
    cx_bytes key; /* the sender's, 1 to 255 bytes; empty = none */
    cx_str actor; /* the actor that begins with this frame; empty = none */
} cx_fleet_record;

typedef struct cx_fleet_place {
    uint64_t num;   /* the group */
    uint64_t frame; /* in it */
    bool repeated;  /* the key was there: this is its first place */
} cx_fleet_place;

/* Appends the records as one group (those whose keys are there already are left out); durable when
 * it returns.  `part->owned` says whether the part is still this node's. */
CX_RESULT cx_fleet_append(cx_fleet *fleet, cx_fleet_part *part, const cx_fleet_record *records,
                          size_t count, cx_fleet_place *out_places, cx_err *err);

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct cx_fleet_group {
    uint64_t num, epoch;
    cx_digest prev, head;
    const cx_log_item *items;
    size_t count;
} cx_fleet_group;
typedef cx_status cx_fleet_each_group(void *arg, const cx_fleet_group *group, cx_err *err);

/* All groups of a part from the first on, every hash recomputed, up to the head that its row had at
 * the begin.  CX_E_FORMAT "ChainBroken" or "LogDamaged" names the group.  `each` may be NULL. */
CX_RESULT cx_fleet_scan(cx_fleet *fleet, unsigned part, cx_fleet_each_group *each, void *arg,
                        cx_err *err);

/* --- data directories ------------------------------------------------------------------------- */

typedef struct cx_fleet_moved {
    uint64_t parts, actors, groups, frames, bytes;
    uint64_t repeated; /* groups that were there already */
    uint64_t left_out; /* frames of the journal home:root, which is about the directory */
} cx_fleet_moved;

/* The log at HOME/log, which no process may write, into the parts of its actors.  Sent again it
 * goes on where it was interrupted. */
CX_RESULT cx_fleet_import(cx_fleet *fleet, const char *home_path, cx_fleet_moved *out, cx_err *err);
/* A new data directory of one part; with actors, of these alone, wherever they are.  segment_bytes
 * is the size of the log's first file, as for cx_home_create. */
CX_RESULT cx_fleet_export(cx_fleet *fleet, unsigned part, const cx_str *actors, size_t actor_count,
                          const char *home_path, uint64_t segment_bytes, cx_fleet_moved *out,
                          cx_err *err);

#endif
