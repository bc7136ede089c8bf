/*
 * fleet.h - data directories in PostgreSQL, each written by one process at a time (docs/fleet.md).
 *
 *     cx_fleet_open(url, &options, &fleet, err);
 *     cx_fleet_find(fleet, CX_STR("main"), &part, err);
 *     cx_fleet_take(fleet, &part, &taken, err);          a lease, by the server's clock
 *     cx_fleet_commit(fleet, &part, &change, err);       all of it, durable, or an error
 *     cx_fleet_give_back(fleet, &part, err);
 *
 * A part is a data directory: a name, files, and the lease of the process that may change them.
 * What a file system does for a directory, this module does over tables: files.h has it as a cx_io.
 *
 * Invariants (cited by tests and asserts):
 *
 *   F1  A commit is one transaction that changes the part's row where epoch, owner, next and head
 *       are those that the writer knows.  No row changed: the writer was fenced, and nothing of the
 *       commit is there.
 *   F2  Safety rests on F1 alone; the lease is for liveness, and bounds how long an owner that
 *       hears nothing goes on answering from what it knows.
 *   F3  A lease is taken when the one before has ended, by the server's clock; epoch grows by one.
 *   F4  Small files are changed as a whole by any process; they have no lease.
 *   F5  cx_fleet_commit returns after COMMIT; in a strict fleet after a synchronous standby has it.
 *   F6  An outcome that is not known is resolved on a new connection, by a commit of its own: there
 *       or not.  A warning at COMMIT (a cancelled wait for the standby) counts as not known.
 *   F7  head is a hash chain over all commits.  A chain that does not fit, or that is shorter than
 *       it was, stops the part: the database was restored or changed.
 *   F8  The chain begins at the part's base.  Before it are only commits whose bytes are there, and
 *       a commit of the chain states base and all of these (cx_fleet_prune).
 *
 * Errors, besides those of db/pg.h:
 *
 *     CX_E_CONFLICT  Fenced          another process took the part; nothing of the commit is there
 *     CX_E_IO        OutcomeUnknown  not resolved in time: the part must be taken again
 *     CX_E_FORMAT    PartStopped     F7; nothing is written until an operator accepts the state
 *     CX_E_CONFLICT  PartMoved       the part was moved to another database
 *     CX_E_DENIED    NotStrict       a strict fleet, and the server waits for no standby
 *     CX_E_IO        DatabaseFull    the server's disk is full; nothing of the commit is there
 *     CX_E_NOT_FOUND NoFleet         the database has no fleet
 *     CX_E_NOT_FOUND NoPart          .. no part of that name
 *     CX_E_FORMAT    OldTables       the tables are of an earlier version: cx_fleet_init
 *
 * A cx_fleet is one connection and belongs to one thread at a time.
 */
#ifndef CX_FLEET_FLEET_H
#define CX_FLEET_FLEET_H

#include "base/api.h"

#define CX_FLEET_PARTS_MAX 65536
#define CX_FLEET_PART_NAME_MAX 63 /* bytes: [a-z0-9][a-z0-9._-]* */
#define CX_FLEET_MAIN "main"      /* the part that cx_fleet_init makes */
#define CX_FLEET_NODE_MAX 63      /* bytes of a node's name */
#define CX_FLEET_OWNER_SIZE (CX_FLEET_NODE_MAX + 18)
#define CX_FLEET_ADDRESS_MAX 255
#define CX_FLEET_FILE_NAME_MAX 255              /* bytes of a file's name, "log/000000.seg" */
#define CX_FLEET_CHUNK 65536u                   /* bytes */
#define CX_FLEET_SMALL_MAX ((size_t)16 << 20)   /* bytes of a small file */
#define CX_FLEET_CHANGE_MAX (UINT64_C(2) << 30) /* bytes of one commit */
#define CX_FLEET_LEASE_MS 4000
#define CX_FLEET_URL_MAX 4096

typedef struct cx_fleet cx_fleet;

typedef struct cx_fleet_options {
    const char *node;    /* name of this node: 1 to 63 printable ASCII characters without space */
    const char *owner;   /* NULL = a new one; of cx_fleet_new_owner, or of cx_fleet_owner for a
                            second connection */
    uint32_t lease_ms;   /* 100 .. 600,000; 0 = CX_FLEET_LEASE_MS */
    uint32_t answer_ms;  /* the server may be silent so long; 0 = 10,000 */
    uint32_t resolve_ms; /* an unknown outcome is resolved within; 0 = 30,000 */
    bool read_only;
    /* All that is read is one state, that of the first read (REPEATABLE READ); implies read_only.
     * A lost connection is then an error. */
    bool snapshot;
} cx_fleet_options;

/* --- the database ----------------------------------------------------------------------------- */

/* Makes the tables and the part "main", or brings them up to date; *out_applied = migrations that
 * were run.  `id`, of 16 bytes, is that of the fleet; NULL = random.  CX_E_CONFLICT "OtherFleet"
 * when the database has one with another id, or of the other strictness. */
CX_RESULT cx_fleet_init(const char *url, bool strict, const uint8_t *id, uint64_t *out_applied,
                        cx_err *err);
/* The SQL that cx_fleet_init runs, by the migration's number from 1 on, and that of the roles;
 * static.  False: there is none of that number. */
bool cx_fleet_sql(uint64_t number, cx_str *out);
cx_str cx_fleet_roles_sql(void);

CX_RESULT cx_fleet_open(const char *url, const cx_fleet_options *options, cx_fleet **out,
                        cx_err *err);
void cx_fleet_close(cx_fleet *fleet); /* leases end by themselves; NULL is accepted */
void cx_fleet_id(const cx_fleet *fleet, uint8_t out[16]);
bool cx_fleet_is_strict(const cx_fleet *fleet);
/* Node and process, "NAME/16 hex digits": the owner in the tables.  Lives as long as `fleet`. */
const char *cx_fleet_owner(const cx_fleet *fleet);
/* One that no process had; for a process that is started, so that its starter knows it. */
CX_RESULT cx_fleet_new_owner(const char *node, char out[CX_FLEET_OWNER_SIZE], cx_err *err);
uint32_t cx_fleet_lease_ms(const cx_fleet *fleet);

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

/* --- parts ------------------------------------------------------------------------------------ */

/* What a process knows of a part.  Of cx_fleet_find it knows number and id; it is kept while the
 * part is lost, for F7. */
typedef struct cx_fleet_part {
    unsigned number;
    bool owned;
    bool known; /* the following was true once */
    uint8_t id[16];
    uint64_t epoch;
    uint64_t next; /* commits */
    cx_digest head;
    uint64_t
        quota; /* bytes that its log may have, as of the last answer of an owned part; 0 = any */
} cx_fleet_part;

bool cx_fleet_is_part_name(cx_str name);
/* A new, empty part; CX_E_EXISTS "PartExists". */
CX_RESULT cx_fleet_add(cx_fleet *fleet, cx_str name, unsigned *out_number, cx_err *err);
CX_RESULT cx_fleet_find(cx_fleet *fleet, cx_str name, cx_fleet_part *out, cx_err *err);

/* *out_taken false: another process's lease is on.  Checks the newest links of the chain, and those
 * that came since `part` was known (F7), before it returns. */
CX_RESULT cx_fleet_take(cx_fleet *fleet, cx_fleet_part *part, bool *out_taken, cx_err *err);
/* Commits renew the lease, too. */
CX_RESULT cx_fleet_renew(cx_fleet *fleet, cx_fleet_part *part, cx_err *err);
CX_RESULT cx_fleet_give_back(cx_fleet *fleet, cx_fleet_part *part, cx_err *err);
/* Ends the lease of a process that is dead: its epoch ends, and with it all that it sent and that
 * is not committed yet.  *out_released false: it had the part no more.  Of a process that lives
 * after all nothing is damaged: it is fenced (F1). */
CX_RESULT cx_fleet_release(cx_fleet *fleet, unsigned part, const char *owner, bool *out_released,
                           cx_err *err);
/* Of an owned part: where it is served; "" = it is not (any more).  A take clears it. */
CX_RESULT cx_fleet_publish(cx_fleet *fleet, cx_fleet_part *part, const char *address, cx_err *err);
/* After F7 an operator takes the state as it is now: writes an event; the part can be taken. */
CX_RESULT cx_fleet_accept(cx_fleet *fleet, unsigned part, cx_err *err);
/* Of an owned part: it is at `where` now, and never taken here again. */
CX_RESULT cx_fleet_moved(cx_fleet *fleet, cx_fleet_part *part, const char *where, cx_err *err);

typedef struct cx_fleet_row {
    unsigned number;
    cx_str name;
    uint8_t id[16];
    uint64_t epoch, next, bytes, files, stops;
    uint64_t fences; /* owners that found the part taken by another process */
    uint64_t base;   /* commits before it were pruned; 0 = none were */
    uint64_t quota,
        stored; /* 0 = it has no quota; .. and what its log has, only where it has one */
    cx_digest head;
    cx_str owner;          /* empty = none */
    cx_str address;        /* empty = it is not served */
    cx_str moved_to;       /* empty = it was not */
    cx_str going_to;       /* the node that it is being handed over to; empty = none */
    uint64_t handed;       /* how often that was begun */
    int64_t lease_left_ms; /* <= 0: it has ended */
    bool stopped;
} cx_fleet_row;
/* All, by number.  The row is valid during the call. */
typedef cx_status cx_fleet_each_part(void *arg, const cx_fleet_row *row, cx_err *err);
CX_RESULT cx_fleet_list(cx_fleet *fleet, cx_fleet_each_part *each, void *arg, cx_err *err);

/*
 * What became of a part, of which `kind` is one of
 *
 *     take      a process took it; `ended_lease`: the lease of another process had run out
 *     fenced    an owner found that another process has it, and wrote nothing
 *     released  the lease of a worker that is dead was ended by its parent
 *     stopped   F7: `detail` says why
 *     accepted  an operator accepted the state after a stop
 *     moved     it is in another database now
 *     handed    its owner was told to give it to another node: `detail` is "to NODE"
 */
typedef struct cx_fleet_event {
    cx_str part, owner, kind, detail; /* the owner, "NODE/process", that it is told of */
    cx_str at;                        /* UTC by the server's clock, with milliseconds */
    uint64_t epoch;
    int64_t ago_ms;
    bool ended_lease;
} cx_fleet_event;
/* The newest first, at most `most`; of one part, or with an empty name of all.  The row is valid
 * during the call. */
typedef cx_status cx_fleet_each_event(void *arg, const cx_fleet_event *event, cx_err *err);
CX_RESULT cx_fleet_list_events(cx_fleet *fleet, cx_str part, unsigned most,
                               cx_fleet_each_event *each, void *arg, cx_err *err);

/* --- writing ---------------------------------------------------------------------------------- */

/*
 * Bytes of a file that the owner changes.  Extents never overlap.  Of a derived file a write
 * replaces the extent with the same start, which has the same size.  Of another one it is put where
 * no extent is, or it is `whole`.
 */
typedef struct cx_fleet_write {
    uint64_t file, chunk;
    uint32_t start; /* in the chunk */
    bool whole;     /* the chunk has nothing else from now on; start is 0 */
    bool derived;   /* as the file is */
    cx_bytes bytes; /* 1 .. CX_FLEET_CHUNK - start */
} cx_fleet_write;

typedef enum cx_fleet_op {
    CX_FLEET_MAKE,
    CX_FLEET_RESIZE,
    CX_FLEET_RENAME,
    CX_FLEET_REMOVE
} cx_fleet_op;

/* A change of the files themselves; they come before the writes of the same commit, in order. */
typedef struct cx_fleet_file_change {
    cx_fleet_op op;
    uint64_t file; /* MAKE: a number that no file had, chosen by the owner */
    bool derived;  /* of MAKE: what it holds can be made again, and is not in the chain */
    cx_str name;   /* of MAKE, RENAME (a file of that name is removed) */
    uint64_t
        size; /* of RESIZE: extents of later chunks are removed; the last one's are the caller's */
} cx_fleet_file_change;

typedef struct cx_fleet_change {
    const cx_fleet_write *writes;
    size_t write_count;
    const cx_fleet_file_change *files;
    size_t file_count;
} cx_fleet_change;

/* One commit; durable when it returns.  `part->owned` says whether the part is still this
 * process's.  Not empty. */
CX_RESULT cx_fleet_commit(cx_fleet *fleet, cx_fleet_part *part, const cx_fleet_change *change,
                          cx_err *err);

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct cx_fleet_file {
    uint64_t file;
    cx_str name;
    bool derived;
    uint64_t size;
    uint64_t end; /* after the last byte of an extent; 0 = there is none */
} cx_fleet_file;
/* By name; valid during the call. */
typedef cx_status cx_fleet_each_file(void *arg, const cx_fleet_file *file, cx_err *err);
CX_RESULT cx_fleet_list_files(cx_fleet *fleet, unsigned part, cx_fleet_each_file *each, void *arg,
                              cx_err *err);

/* Where reading of the log may begin, as an owner left it (docs/formats/log.md §1.1).  In no hash;
 * who reads the log tests it. */
#define CX_FLEET_TRAIL 48
CX_RESULT cx_fleet_read_trail(cx_fleet *fleet, unsigned part, uint8_t out[CX_FLEET_TRAIL],
                              bool *out_there, cx_err *err);
/* By the owner; changes nothing when the part is another process's by now.  No commit: it may be
 * gone with the server. */
CX_RESULT cx_fleet_write_trail(cx_fleet *fleet, const cx_fleet_part *part,
                               const uint8_t bytes[CX_FLEET_TRAIL], cx_err *err);
/* Whether an extent begins there. */
CX_RESULT cx_fleet_has_extent(cx_fleet *fleet, unsigned part, uint64_t file, uint64_t chunk,
                              uint32_t start, bool *out, cx_err *err);

/* By chunk and start; valid during the call.  Sizes and places are checked: they stay in the
 * chunk. */
typedef struct cx_fleet_extent {
    uint64_t chunk;
    uint32_t start;
    cx_bytes bytes;
} cx_fleet_extent;
typedef cx_status cx_fleet_each_extent(void *arg, const cx_fleet_extent *extent, cx_err *err);
/* Those of `count` chunks from `chunk` on. */
CX_RESULT cx_fleet_read(cx_fleet *fleet, unsigned part, uint64_t file, uint64_t chunk,
                        uint64_t count, cx_fleet_each_extent *each, void *arg, cx_err *err);

typedef struct cx_fleet_chain {
    uint64_t commits;     /* whose links were recomputed: those from the base on */
    uint64_t kept;        /* before the base, as it was stated */
    uint64_t recomputed;  /* .. and whose digest was, too */
    uint64_t overwritten; /* .. some of whose bytes are not there any more */
} cx_fleet_chain;
/* All commits of a part up to the head its row has, every link recomputed, and every digest whose
 * bytes are all there.  CX_E_FORMAT "ChainBroken" names the commit. */
CX_RESULT cx_fleet_check(cx_fleet *fleet, unsigned part, cx_fleet_chain *out, cx_err *err);

/* What was stated of a part: the chain after so many commits. */
typedef struct cx_fleet_point {
    unsigned number;
    uint8_t id[16];
    uint64_t epoch, commits;
    cx_digest head;
} cx_fleet_point;
/*
 * Whether the part of that name still leads from there: every link since is recomputed, up to the
 * head its row has.  *out_commits is how many it has now; 0 when it cannot be said.
 *
 *     CX_E_CONFLICT  PartRemoved   the fleet has no part of that name
 *                    PartReplaced  it has another one
 *                    RolledBack    fewer commits, or an older epoch
 *                    Forked        another commit at that place
 *     CX_E_FORMAT    ChainBroken
 *     CX_E_UNSUPPORTED  Pruned     the links from there on were pruned: it cannot be said
 */
CX_RESULT cx_fleet_follows(cx_fleet *fleet, cx_str name, const cx_fleet_point *then,
                           uint64_t *out_commits, cx_err *err);

/* --- bounds ----------------------------------------------------------------------------------- */

/* What the log of a part may have before nothing new is recorded; 0 = no limit.  By the owner of
 * the tables.  Its process hears of it with its next commit or renewal. */
CX_RESULT cx_fleet_set_quota(cx_fleet *fleet, unsigned part, uint64_t bytes, cx_err *err);

typedef struct cx_fleet_pruned {
    uint64_t base;    /* the chain begins here now */
    uint64_t removed; /* commits */
    uint64_t kept;    /* .. before the base, because their bytes are there */
} cx_fleet_pruned;
/*
 * Of an owned part, by the owner of the tables: all but the newest `keep` commits (at least 1;
 * CX_FLEET_KEEP_MIN leaves what nodes of earlier versions read) go, unless a file that is not
 * derived has bytes of them.  The chain is recomputed first; CX_E_FORMAT "ChainBroken", and nothing
 * is removed.  One commit (F1) for each 250,000 that states what stays (F8); what fails in between
 * leaves those before it pruned.  With nothing to remove it changes nothing: removed is 0.
 */
#define CX_FLEET_KEEP_MIN 128
CX_RESULT cx_fleet_prune(cx_fleet *fleet, cx_fleet_part *part, uint64_t keep, cx_fleet_pruned *out,
                         cx_err *err);

/* --- copying ---------------------------------------------------------------------------------- */

typedef struct cx_fleet_copied {
    uint64_t files, bytes; /* that only the owner changes */
    uint64_t small;        /* files */
} cx_fleet_copied;
/* All files of `from_part`, which no process may write meanwhile, to the owned part `to`, which is
 * empty (CX_E_EXISTS "PartNotEmpty"). */
CX_RESULT cx_fleet_copy(cx_fleet *from, unsigned from_part, cx_fleet *to, cx_fleet_part *to_part,
                        cx_fleet_copied *out, cx_err *err);

/* Removes all files of an owned part that only the owner changes, and gives the part back. */
CX_RESULT cx_fleet_clear(cx_fleet *fleet, cx_fleet_part *part, cx_err *err);

/* --- small files (F4) ------------------------------------------------------------------------- */

/* CX_E_NOT_FOUND "NoFile". */
CX_RESULT cx_fleet_small_read(cx_fleet *fleet, unsigned part, cx_str name, cx_buf *out,
                              cx_err *err);
/* Makes or replaces it. */
CX_RESULT cx_fleet_small_write(cx_fleet *fleet, unsigned part, cx_str name, cx_bytes bytes,
                               cx_err *err);
/* A file that is not there is no error. */
CX_RESULT cx_fleet_small_remove(cx_fleet *fleet, unsigned part, cx_str name, cx_err *err);
CX_RESULT cx_fleet_small_rename(cx_fleet *fleet, unsigned part, cx_str from, cx_str to,
                                cx_err *err);
typedef cx_status cx_fleet_each_small(void *arg, cx_str name, uint64_t size, cx_err *err);
CX_RESULT cx_fleet_small_list(cx_fleet *fleet, unsigned part, cx_fleet_each_small *each, void *arg,
                              cx_err *err);
/* A lock of the connection, gone with it (pg_try_advisory_lock); *out_locked false: another has
 * it. */
CX_RESULT cx_fleet_small_lock(cx_fleet *fleet, unsigned part, cx_str name, bool *out_locked,
                              cx_err *err);
CX_RESULT cx_fleet_small_unlock(cx_fleet *fleet, unsigned part, cx_str name, cx_err *err);

/* --- nodes ------------------------------------------------------------------------------------ */

/* Connections at the address of a node. */
typedef struct cx_fleet_counts {
    uint64_t open, held, own;             /* now: all, without a server, at its own worker */
    uint64_t accepted, given_up, refused; /* since it began */
} cx_fleet_counts;

/* This process is there and reached at `address`, for `part`; `balances`: with its part it takes
 * part in cx_fleet_balance_step.  *out_drain: an operator wants it to give its part back, and to
 * take none. */
CX_RESULT cx_fleet_node_tell(cx_fleet *fleet, unsigned part, const char *address, bool balances,
                             const cx_fleet_counts *counts, bool *out_drain, cx_err *err);
CX_RESULT cx_fleet_node_leave(cx_fleet *fleet, cx_err *err);
/* *out_count processes of that node's name were told. */
CX_RESULT cx_fleet_drain(cx_fleet *fleet, cx_str node, bool drain, uint64_t *out_count,
                         cx_err *err);

typedef struct cx_fleet_node_row {
    cx_str owner, node, part, address, version;
    bool draining, has_counts; /* nodes of earlier versions do not tell them */
    cx_fleet_counts counts;
    int64_t silent_ms, up_ms; /* since it was heard of last; since it began */
} cx_fleet_node_row;
typedef cx_status cx_fleet_each_node(void *arg, const cx_fleet_node_row *row, cx_err *err);
CX_RESULT cx_fleet_list_nodes(cx_fleet *fleet, cx_fleet_each_node *each, void *arg, cx_err *err);

/* Where a part is served now; *out_address is "" when it is not.  `address` has
 * CX_FLEET_ADDRESS_MAX + 1 bytes. */
CX_RESULT cx_fleet_address_of(cx_fleet *fleet, unsigned part, char *address, bool *out_own,
                              cx_err *err);

/* Whether no lease is on, and the part is not on its way to another node: one query that changes
 * nothing, for who waits.  *out_comes: it is on its way to this one. */
CX_RESULT cx_fleet_is_free(cx_fleet *fleet, unsigned part, bool *out_free, bool *out_comes,
                           cx_err *err);

/* --- spreading parts over nodes (balance.c) --------------------------------------------------- */

#define CX_FLEET_BALANCE_MS_MIN 100
#define CX_FLEET_BALANCE_MS_MAX 86400000

/* By the process that serves `part` as `owner`, once a second, and while it hands the part over.
 * *out_hands: it is to give the part back now, to the node whose name is in `to`, of
 * CX_FLEET_NODE_MAX + 1 bytes. */
CX_RESULT cx_fleet_balance_step(cx_fleet *fleet, unsigned part, const char *owner, char *to,
                                bool *out_hands, cx_err *err);

typedef struct cx_fleet_balance {
    bool enabled;
    uint64_t after_ms; /* a node is there, and a part at its owner, for so long before a move */
    uint64_t moves, failures; /* that ended; that ended otherwise than they were planned */
    cx_str part, from, to;    /* the move that is on: a part and two nodes; empty = none is */
} cx_fleet_balance;
CX_RESULT cx_fleet_balance_read(cx_fleet *fleet, cx_arena *arena, cx_fleet_balance *out,
                                cx_err *err);
/* By the owner of the tables.  NULL and 0 leave what is set; a move that is on goes on. */
CX_RESULT cx_fleet_balance_set(cx_fleet *fleet, const bool *enabled, uint64_t after_ms,
                               cx_err *err);

#endif
