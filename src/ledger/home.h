/*
 * home.h - a data directory: many actors' journals in one log, the tables derived from it, and the
 * trees over both (ledger.md §1, §5).
 *
 *     write   cx_txn_begin .. cx_txn_get .. cx_txn_entry .. cx_txn_put .. cx_txn_commit
 *     read    cx_home_get, cx_home_scan, cx_home_entry
 *     answer  cx_home_roots, ledger/snapshot.h, ledger/verify.h
 *
 * Invariants (cited by tests and asserts):
 *
 *   D1  The log is the only truth: tables, trees and counters are functions of its frames.
 *   D2  One write transaction exists at a time; what it reads cannot change before it ends.
 *   D3  A committed transaction is in memory at once, and durable when cx_txn_commit or
 *       cx_home_wait returns.  Transactions of several threads share one sync.
 *   D4  Tables never get ahead of the log: they are flushed asynchronously, each time with the log
 *       position up to which they are true.  Point reads see the memtable first; scans wait for the
 *       flush.
 *   D5  After a failed write or sync every call is refused until the data directory is opened
 *       again.
 *
 * No tree is in memory: what is asked for is read from the tables and checked against the root.
 *
 * Thread-safe, except that a transaction belongs to one thread.
 */
#ifndef CX_LEDGER_HOME_H
#define CX_LEDGER_HOME_H

#include "base/api.h"
#include "log/api.h"
#include "proof/api.h"
#include "tree/api.h"

#define CX_ACTOR_SIZE_MAX 256
#define CX_KEY_SIZE_MAX 1024
#define CX_VALUE_SIZE_MAX (UINT32_C(64) << 20)

typedef struct cx_home cx_home;
typedef struct cx_txn cx_txn;
typedef struct cx_derive cx_derive;

/* One change of a record, as a frame carries it. */
typedef struct cx_change {
    cx_bytes key;   /* logical key (§5): m/<id16>, mv/.., e/from/.., snap/<seq>, .. */
    cx_bytes value; /* empty when removed or erased */
    bool removed;
    bool erasable;        /* the value is in the frame's erasable part */
    bool erased;          /* the value was there and has been destroyed */
    cx_digest value_hash; /* of an erasable value, in the actor's scheme */
    cx_bytes previous;    /* for derivers, of keys m/ and e/from/: the value before this change */
    bool had_previous;
} cx_change;

/*
 * Rows that a higher module derives from entries; they are a function of the log (D1).  `derive` is
 * called for each frame in log order, with `entry` NULL for a frame without one, and writes its
 * rows with cx_derive_put and cx_derive_remove under prefixes of its own.
 */
typedef struct cx_deriver {
    /* with a version, "memory/1": a changed name means that the tables are rebuilt */
    const char *name;
    cx_status (*derive)(cx_derive *at, const cx_entry *entry, const cx_change *changes,
                        size_t count, cx_err *err);
    /* Fails for a frame on which `derive` would fail, and which must not be committed.  Called for
     * frames that other processes write through this one; may be NULL. */
    cx_status (*check)(const cx_entry *entry, const cx_change *changes, size_t count,
                       cx_arena *arena, cx_err *err);
} cx_deriver;

CX_RESULT cx_derive_get(cx_derive *at, cx_bytes key, cx_bytes *out_value, bool *out_found,
                        cx_err *err);
CX_RESULT cx_derive_put(cx_derive *at, cx_bytes key, cx_bytes value, cx_err *err);
CX_RESULT cx_derive_remove(cx_derive *at, cx_bytes key, cx_err *err);
/* Rows shared by all actors, for keys that must be unique across actors. */
CX_RESULT cx_derive_get_common(cx_derive *at, cx_bytes key, cx_bytes *out_value, bool *out_found,
                               cx_err *err);
CX_RESULT cx_derive_put_common(cx_derive *at, cx_bytes key, cx_bytes value, cx_err *err);
/*
 * That this frame's entry has to do with a hash: cx_home_find_hash leads from it to the entry.  No
 * call takes that back, so it must come from what is never erased.
 */
CX_RESULT cx_derive_hash(cx_derive *at, const cx_digest *hash, cx_err *err);
/* The same of an id, if it begins with 8 hex digits in lower case; else nothing happens. */
CX_RESULT cx_derive_name(cx_derive *at, cx_str id, cx_err *err);
/* The actor that the frame is of; empty = the data directory itself. */
cx_str cx_derive_actor(const cx_derive *at);
/* Lives as long as the frame is being derived. */
cx_arena *cx_derive_arena(cx_derive *at);

#define CX_HOME_WHO_SIZE 256

typedef struct cx_home_options {
    const cx_alloc *alloc; /* NULL = default */
    const cx_io *io;       /* NULL = system */
    bool read_only;        /* never changes a byte; sees what a writer process commits */
    bool or_remote;        /* use the writer process through its socket when there is one */
    /* With or_remote: how a writer process of another machine is reached.  *out is a connected
     * socket that speaks socket.md, closed by the data directory; `who` is for people: "the server
     * at URL".  CX_E_NOT_FOUND: as without.  NULL = only its socket. */
    cx_status (*reach)(void *arg, int *out, char who[CX_HOME_WHO_SIZE], cx_err *err);
    void *reach_arg;
    bool only_reach; /* with `reach`: there are no files here, every call goes to that process */
    uint64_t segment_bytes; /* of the log; 0 = default */
    const cx_deriver *derivers;
    size_t deriver_count;
    uint32_t flush_timeout_ms; /* how long a scan waits for the flush; 0 = 30,000 */
    /* how long to wait for an answer of the writer process; 0 = 120,000 */
    uint32_t answer_timeout_ms;
    /* Called while tables are brought up to date; may be NULL. */
    void (*progress)(void *arg, const char *what, uint64_t done, uint64_t total);
    void *progress_arg;
    /* Called before `progress`, with the same argument: how many entries (or rows) are done; may be
     * NULL. */
    void (*counted)(void *arg, uint64_t entries);
    /* Of a verification or a rebuild: 1 = only the calling one; 0 = as many as there are cores. */
    unsigned threads;
    /* Of the process that writes: asked before each commit that records something new, with the
     * bytes that it adds to the log; a failure refuses it, and nothing is recorded.  Not asked for
     * what erases, holds, or sums up.  NULL = no limit. */
    cx_status (*room)(void *arg, uint64_t bytes, cx_err *err);
    void *room_arg;
    size_t actor_limit; /* actors kept in memory; 0 = 16,384 */
    /* Of what waits for the tables; a commit waits beyond.  0 = 64 MiB.  More is faster for who
     * fills a home at once, and takes up to twice as much memory. */
    size_t waiting_bytes;
    /* Of the process that writes: segments of the log are archived by itself (log/log.h). */
    bool archives;
    cx_log_archiving archiving;
} cx_home_options;

/* Creates the folder (its parent must exist) and an empty log; the scheme is the default of new
 * actors. */
CX_RESULT cx_home_create(const char *path, cx_scheme scheme, const cx_home_options *options,
                         cx_err *err);
/* CX_E_NOT_FOUND "NoHome"; CX_E_BUSY "Locked" names the process that writes.  With `or_remote` see
 * socket/remote.h. */
CX_RESULT cx_home_open(const char *path, const cx_home_options *options, cx_home **out,
                       cx_err *err);
/* Flushes the tables and closes.  Returns the flush's first failure; the handle is closed in any
 * case. */
CX_RESULT cx_home_close(cx_home *home, cx_err *err);

cx_scheme cx_home_scheme(const cx_home *home);
const cx_io *cx_home_io(const cx_home *home);
const char *cx_home_path(const cx_home *home);
/* Bytes of an incomplete group that was truncated from the log's end at open; 0 = none. */
uint64_t cx_home_torn_bytes(const cx_home *home);

/* --- actors ---------------------------------------------------------------------------------- */

typedef struct cx_actor_info {
    cx_str name;
    cx_scheme scheme;
    uint64_t entry_count;
    uint64_t snapshot_count; /* ever made: the next number */
    uint64_t live_memories, tombstoned, edge_count;
} cx_actor_info;

/* CX_E_NOT_FOUND "NoActor".  The name is `actor`, not a copy. */
CX_RESULT cx_home_actor(cx_home *home, cx_str actor, cx_actor_info *out, cx_err *err);
/* At most `max` of them (of a remote home: some), the first `from` left out, in the order of their
 * first entry; memory from the arena.  None: there are no more. */
CX_RESULT cx_home_actors_from(cx_home *home, uint64_t from, size_t max, cx_arena *arena,
                              const cx_actor_info **out, size_t *out_count, cx_err *err);
/*
 * All of them, one after the other, in memory that does not grow with their number:
 *
 *     cx_actor_walk_begin(&walk, home);
 *     while (!cx_failed(status = cx_actor_walk_next(&walk, &info, err)) && info != NULL) ..
 *     cx_actor_walk_end(&walk);
 *
 * Each page is read when it is needed, so other calls of the home may come between; an actor that
 * is new meanwhile is met at the end.
 */
typedef struct cx_actor_walk {
    cx_home *home;
    cx_arena arena; /* of the page */
    const cx_actor_info *page;
    size_t count, at;
    uint64_t seen;   /* before the page */
    cx_str prefix;   /* of the names; borrowed */
    cx_arena chosen; /* the numbers of those with the prefix, once they are read .. */
    const int64_t *numbers;
    size_t number_count; /* .. */
    bool all;            /* each actor is looked at, as its name is in no index */
} cx_actor_walk;
void cx_actor_walk_begin(cx_actor_walk *walk, cx_home *home);
/* Only those whose name begins with `prefix`, which outlives the walk; the others are not read (of
 * a remote home they are).  The same order; one that is new meanwhile may be left out. */
void cx_actor_walk_begin_named(cx_actor_walk *walk, cx_home *home, cx_str prefix);
/* *out is NULL after the last one; it is valid until the next call. */
CX_RESULT cx_actor_walk_next(cx_actor_walk *walk, const cx_actor_info **out, cx_err *err);
void cx_actor_walk_end(cx_actor_walk *walk);
/* All at once, where that many are wanted; memory from the arena. */
CX_RESULT cx_home_actors(cx_home *home, cx_arena *arena, const cx_actor_info **out,
                         size_t *out_count, cx_err *err);

/* --- writing --------------------------------------------------------------------------------- */

/*
 * Begins the actor's write transaction; other callers wait (D2).  A new actor is created by the
 * commit, under the data directory's scheme (or that of cx_txn_begin_as).  End it with commit or
 * abort.
 */
CX_RESULT cx_txn_begin(cx_home *home, cx_str actor, cx_txn **out, cx_err *err);
CX_RESULT cx_txn_begin_as(cx_home *home, cx_str actor, cx_scheme scheme, cx_txn **out, cx_err *err);
cx_scheme cx_txn_scheme(const cx_txn *txn);
cx_arena *cx_txn_arena(cx_txn *txn); /* lives as long as the transaction */
uint64_t cx_txn_next_seq(const cx_txn *txn);
const cx_actor_info *cx_txn_actor(const cx_txn *txn);

/* A record as this transaction sees it, its own changes included; lives as long as the transaction.
 */
CX_RESULT cx_txn_get(cx_txn *txn, cx_bytes key, cx_bytes *out_value, bool *out_found, cx_err *err);

/* The same for a row of cx_derive_put_common.  Rows of this transaction's own frames are not
 * included. */
CX_RESULT cx_txn_get_common(cx_txn *txn, cx_bytes key, cx_bytes *out_value, bool *out_found,
                            cx_err *err);

typedef struct cx_entry_draft {
    cx_str kind;
    int64_t created_at_ns;
    cx_bytes created_by;
    cx_bytes payload;     /* if longer than CX_ENTRY_PAYLOAD_MAX, committed is implied */
    bool committed;       /* payload is salted, committed to and erasable */
    const uint8_t *salt;  /* 32 bytes, NULL = random; set to reproduce given bytes */
    const cx_id *subject; /* the memory the entry is about, NULL = none */
} cx_entry_draft;

/* Begins the next frame; the following puts belong to it. */
CX_RESULT cx_txn_entry(cx_txn *txn, const cx_entry_draft *draft, uint64_t *out_seq, cx_err *err);
/* Begins a frame without an entry (Snapshot). */
CX_RESULT cx_txn_bare(cx_txn *txn, cx_err *err);
/* `erasable`: cx_home_erase can destroy this copy later. */
CX_RESULT cx_txn_put(cx_txn *txn, cx_bytes key, cx_bytes value, bool erasable, cx_err *err);
/* CX_E_USAGE for the record of a memory or an edge (m/, e/from/): these stay. */
CX_RESULT cx_txn_remove(cx_txn *txn, cx_bytes key, cx_err *err);

/* Commits all frames of the transaction as one; returns when they are durable.  Ends the
 * transaction. */
CX_RESULT cx_txn_commit(cx_txn *txn, cx_err *err);
/* The same without waiting for the sync; pass *out_commit to cx_home_wait. */
CX_RESULT cx_txn_commit_later(cx_txn *txn, uint64_t *out_commit, cx_err *err);
void cx_txn_abort(cx_txn *txn); /* NULL is fine */
CX_RESULT cx_home_wait(cx_home *home, uint64_t commit, cx_err *err);
/* Returns when everything committed so far is durable. */
CX_RESULT cx_home_sync(cx_home *home, cx_err *err);

/* --- reading --------------------------------------------------------------------------------- */

/* The value lives in the arena. */
CX_RESULT cx_home_get(cx_home *home, cx_str actor, cx_bytes key, cx_arena *arena,
                      cx_bytes *out_value, bool *out_found, cx_err *err);
/*
 * Calls `row` for each record whose key begins with `prefix`, ascending (descending: `backwards`),
 * until it sets *stop; key and value are borrowed for the call.  Calls of the home are not allowed
 * inside.  With `from` not empty the scan starts at that key.
 */
typedef struct cx_scan {
    cx_str actor;
    bool common; /* rows of cx_derive_put_common, of no actor */
    cx_bytes prefix;
    cx_bytes from;
    bool backwards;
    cx_status (*row)(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err);
    void *arg;
} cx_scan;
CX_RESULT cx_home_scan(cx_home *home, const cx_scan *scan, cx_err *err);

/* A record as of the retained snapshot `snapshot_seq` (§9.1).  `*out_erased`: only its value hash
 * is left, *out_value_hash. */
CX_RESULT cx_home_get_at(cx_home *home, cx_str actor, uint64_t snapshot_seq, cx_bytes key,
                         cx_arena *arena, cx_bytes *out_value, bool *out_found, bool *out_erased,
                         cx_digest *out_value_hash, cx_err *err);

typedef struct cx_entry_view {
    cx_entry entry; /* decoded; borrows from `bytes` */
    cx_bytes bytes; /* canonical */
    cx_digest leaf_hash;
    cx_bytes payload; /* inline or committed; empty when there is none or it was erased */
    bool payload_erased;
    uint8_t salt[32]; /* of a committed payload that was not erased */
    bool has_subject;
    cx_id subject;
} cx_entry_view;

/* CX_E_NOT_FOUND "NoEntry". Memory from the arena. */
CX_RESULT cx_home_entry(cx_home *home, cx_str actor, uint64_t seq, cx_arena *arena,
                        cx_entry_view *out, cx_err *err);
/*
 * Appends the bytes from .. from + size - 1 of an entry's payload, of a committed one without
 * reading the others (of a remote home all are read).  They are compared with no checksum: the
 * caller knows a hash of them.  *out_erased: nothing was appended.  CX_E_NOT_FOUND "NoEntry";
 * CX_E_USAGE when the payload is shorter.
 */
CX_RESULT cx_home_entry_range(cx_home *home, cx_str actor, uint64_t seq, uint64_t from, size_t size,
                              cx_buf *out, bool *out_erased, cx_err *err);
/* Sequence numbers of the entries about a memory, ascending. */
CX_RESULT cx_home_entries_about(cx_home *home, cx_str actor, const cx_id *subject, cx_arena *arena,
                                const uint64_t **out_seqs, size_t *out_count, cx_err *err);

/* --- following the log ------------------------------------------------------------------------ */

/* All commits below `commit` and the first `frames` frames of that one. */
typedef struct cx_position {
    uint64_t commit;
    uint64_t frames;
} cx_position;

static inline bool cx_position_before(cx_position a, cx_position b)
{
    return a.commit != b.commit ? a.commit < b.commit : a.frames < b.frames;
}

/* Sixteen random bytes made with the home. */
void cx_home_id(const cx_home *home, uint8_t out[16]);
/* Durable commits: the position of a tail that has seen everything. */
uint64_t cx_home_durable(cx_home *home);

/* One frame of the log. */
typedef struct cx_tail_item {
    cx_str actor; /* empty = the home itself */
    bool has_entry;
    cx_entry entry;
    cx_bytes payload; /* inline or committed; empty when erased */
    bool erased;      /* its committed payload was destroyed */
    bool has_subject;
    cx_id subject;
    const cx_change *changes;
    size_t change_count;
    cx_position position_after; /* position after this frame, for cx_tail_begin */
} cx_tail_item;

typedef struct cx_tail cx_tail;
/* Also works when opened for reading; a tail belongs to one thread. */
CX_RESULT cx_tail_begin(cx_home *home, cx_position from, cx_tail **out, cx_err *err);
/* The next durable frame, valid until the next call; *out_end: none yet, call again later.
 * CX_E_FORMAT "LogDamaged" as cx_log_scan_next. */
CX_RESULT cx_tail_next(cx_tail *tail, cx_tail_item *out, bool *out_end, cx_err *err);
void cx_tail_end(cx_tail *tail); /* NULL is fine */

/* --- erasing --------------------------------------------------------------------------------- */

/*
 * Destroys what committed `redact` and `redact_memory` entries of the actor name: the payload of
 * the target entry, or the erasable copies in all frames about the memory (the entry's draft has it
 * as subject) before that entry.  Call it after such a commit; an erasure that a crash interrupted
 * is completed at the next open for writing.
 */
CX_RESULT cx_home_erase(cx_home *home, cx_str actor, cx_err *err);

/* --- roots and trees ------------------------------------------------------------------------- */

typedef struct cx_roots {
    uint64_t journal_size;
    cx_digest journal;
    cx_digest edges;
    cx_digest memories;
    cx_digest overall;
} cx_roots;

/* One consistent view, durable when this returns. */
CX_RESULT cx_home_roots(cx_home *home, cx_str actor, cx_roots *out, cx_err *err);
/* The same inside a transaction, of the state before its own changes. */
CX_RESULT cx_txn_roots(cx_txn *txn, cx_roots *out, cx_err *err);

/* An actor's trees, for proofs.  Holds the write transaction until cx_home_trees_end. */
typedef struct cx_trees {
    cx_scheme scheme;
    cx_mmr *journal; /* reads what it is asked for */
} cx_trees;
CX_RESULT cx_home_trees_begin(cx_home *home, cx_str actor, cx_trees *out, cx_err *err);
/* Between the two: paths of keys of its memories or edges, in the order asked, and the root they
 * lead to; memory from the arena.  CX_E_FORMAT "DatabaseDamaged" when pages do not lead there. */
CX_RESULT cx_trees_prove(cx_home *home, cx_namespace name_space, const cx_digest *keys,
                         size_t count, cx_arena *arena, cx_digest *out_root,
                         const cx_smt_path **out, cx_err *err);
/* The same at a retained snapshot whose root is known. */
CX_RESULT cx_trees_prove_at(cx_home *home, cx_namespace name_space, uint64_t snapshot,
                            const cx_digest *root, const cx_digest *keys, size_t count,
                            cx_arena *arena, const cx_smt_path **out, cx_err *err);
void cx_home_trees_end(cx_home *home);

/* --- tables ---------------------------------------------------------------------------------- */

typedef struct cx_tables_status {
    uint64_t log_commits;             /* durable */
    uint64_t table_commits;           /* flushed to the tables */
    uint64_t entry_rows, record_rows; /* as each flush keeps them */
} cx_tables_status;
CX_RESULT cx_home_tables_status(cx_home *home, cx_tables_status *out, cx_err *err);
/* Counts them, which reads all rows: CX_E_FORMAT "DatabaseDamaged" when the tables say other
 * numbers about themselves.  Not for a remote home. */
CX_RESULT cx_home_count_rows(cx_home *home, uint64_t *out_entries, uint64_t *out_records,
                             cx_err *err);
/* Waits until everything committed so far is flushed to the tables. */
CX_RESULT cx_home_flush(cx_home *home, cx_err *err);

/*
 * Archives closed segments of the log, or brings them back (log/log.h); of a remote home the writer
 * process does.  CX_E_USAGE: they cannot be brought back while that archives by itself.
 */
CX_RESULT cx_home_log_archive(cx_home *home, const cx_log_archive_options *options,
                              cx_log_archived *out, cx_err *err);
CX_RESULT cx_home_log_restore(cx_home *home, const cx_log_archive_options *options,
                              cx_log_archived *out, cx_err *err);
/* What this process archived by itself; all zero of a remote home. */
void cx_home_log_archiving(cx_home *home, cx_log_archiving_state *out);
/* What the log takes on the disk; grows with the number of segments.  CX_E_BUSY "Remote" of a
 * remote home. */
CX_RESULT cx_home_log_space(cx_home *home, cx_log_space *out, cx_err *err);

/* Makes a copy that is a complete data directory; writers are not stopped. */
CX_RESULT cx_home_backup(cx_home *home, const char *to_path, cx_err *err);
/* The same where the folder is there; CX_E_EXISTS when it has a log. */
CX_RESULT cx_home_copy_into(cx_home *home, const char *to_path, cx_err *err);

#endif
