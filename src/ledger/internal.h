/*
 * internal.h - declarations shared by the files of this module.
 *
 * Two locks guard a data directory.  `lock` is short: it is held around every access to memory.
 * The *transaction* (txn_active, under `lock`) is long: its owner is the only thread that decides
 * and writes, also while it waits for the tables with `lock` released (D2).
 */
#ifndef CX_LEDGER_INTERNAL_H
#define CX_LEDGER_INTERNAL_H

#include "base/api.h"
#include "ledger/frame.h"
#include "ledger/home.h"
#include "ledger/root/home_root.h"
#include "ledger/store.h"

/* Numbers of snapshots are below it: tables have signed numbers, and the next one is one more. */
#define CX_SNAPSHOT_END ((uint64_t)INT64_MAX)

#define CX_ACTOR_HOME 0 /* the data directory itself, and the rows that actors share */

typedef struct cx_actor {
    int64_t id;
    char name[CX_ACTOR_SIZE_MAX + 1];
    cx_actor_info info;       /* name borrows from `name` */
    cx_mmr_edge edge;         /* of its journal; edge.size is info.entry_count */
    cx_pages_anchor trees[2]; /* of its state, as the tables have them */
    size_t pending[2]; /* changes of these in the active memtable, in the one being flushed */
    CX_VEC(uint64_t) retained; /* snapshots not dropped, ascending */
    bool retained_known;
    bool dirty;          /* its row must be written with the next flush */
    uint64_t saved_with; /* number of the flush that writes its row */
    uint64_t home_roots; /* recorded before it changed last; 0 until it changes */
    unsigned holds;      /* it stays in memory while this is not 0 */
    bool used;           /* since the hand of actors.c came by */
    struct cx_actor *next_by_name, *next_by_id;
} cx_actor;

/* The actors that are in memory (actors.c). */
typedef struct cx_actors {
    uint64_t count; /* in the data directory, itself included: the number of the next one */
    CX_VEC(cx_actor *) held;
    CX_VEC(cx_actor *) changed;
    cx_actor **by_name, **by_id; /* chains */
    size_t bucket_count;         /* 0 or a power of two */
    uint64_t seed;
    size_t hand;         /* where room is looked for next */
    uint64_t flushes;    /* that are complete */
    uint64_t home_roots; /* recorded, as far as frames are applied */
} cx_actors;

/* What an actor's journal tree reads its nodes from (trees.c). */
typedef struct cx_journal_source {
    cx_home *home;
    int64_t actor;
    bool locked; /* by the caller, already */
} cx_journal_source;

/* Changes that the tables lack, laid over one state tree, for the next question about it (trees.c).
 */
typedef struct cx_kept_overlay {
    cx_pages_overlay *overlay; /* NULL = none */
    cx_pages_anchor base;      /* of the tables */
    uint64_t first, next;      /* numbers of changes: the first that the base lacks, the first that
                                  is not laid over it yet */
} cx_kept_overlay;

#define CX_OVERLAY_BYTES ((size_t)48 << 20)

/* The connection to the writer process (socket/remote_client.c). */
typedef struct cx_remote_client cx_remote_client;

struct cx_home {
    const cx_alloc *alloc;
    const cx_io *io;
    cx_home_options options;
    char *path;
    char *log_path;
    char *db_path;
    cx_buf identity;
    cx_log *log;
    uint64_t torn_bytes;
    cx_scheme scheme;
    cx_store store;
    bool store_open;
    bool read_only;
    bool holds_lock; /* owns the log's lock: no other process writes */

    cx_remote_client *remote; /* calls go to the writer process; log and store are not open then */
    bool serving;             /* remote_serve.c */

    cx_lock lock;
    bool txn_active;
    cx_actor *trees_of; /* held for the owner of the transaction (cx_home_trees_begin) */
    cx_mmr *journal_of; /* its journal's tree */
    cx_journal_source journal_source;
    cx_kept_overlay overlays[2]; /* of the last memories' and the last edges' tree asked about */
    size_t overlay_bytes;        /* that they may have: CX_OVERLAY_BYTES */
    unsigned txn_waiters;        /* threads that wait for the transaction */
    cx_arena txn_arena;          /* of the current transaction; reused by the next */
    bool flusher_idle;
    bool poisoned;
    /* applying a frame failed after it was logged: the memtable holds half of it, and is never
     * flushed */
    bool apply_failed;
    bool closing;
    bool flush_wanted;
    cx_status flush_status; /* the flusher's first failure */
    cx_err flush_err;
    cx_thread flusher;
    cx_position applied;  /* position up to which frames are applied in memory */
    uint64_t last_commit; /* of the log; UINT64_MAX = none by this process */

    /* of the home root recorded last, for cx_home_root_get_status */
    _Atomic uint64_t home_roots, home_root_entries, home_root_seconds;

    cx_actors actors;
};

/* --- actors.c -------------------------------------------------------------------------------- */

/*
 * Actors are read from the tables when they are asked for, and may leave memory again: a pointer is
 * valid until the lock is released or another actor is asked for, and longer only while it is held.
 */
CX_RESULT cx_home_find_actor(cx_home *home, cx_str name, cx_actor **out /* NULL = none */,
                             cx_err *err);
CX_RESULT cx_home_need_actor(cx_home *home, cx_str name, cx_actor **out, cx_err *err);
CX_RESULT cx_home_actor_numbered(cx_home *home, int64_t id, cx_actor **out, cx_err *err);
/* Only what is in memory. */
cx_actor *cx_home_actor_in_memory(const cx_home *home, cx_str name);
/* Actors in memory unless the options say another number: about 10 MB. */
#define CX_HOME_ACTORS_DEFAULT 16384
size_t cx_home_actor_limit(const cx_home *home);
/* So many have changed that a flush must make room, where nothing else starts one. */
bool cx_home_actors_crowded(const cx_home *home);
void cx_actor_hold(cx_actor *actor);
void cx_actor_release(cx_actor *actor);
/* The next actor of the data directory; its name must be new. */
CX_RESULT cx_home_add_actor(cx_home *home, cx_str name, cx_scheme scheme, cx_actor **out,
                            cx_err *err);
void cx_home_drop_actors(cx_home *home);
/* Of a data directory whose tables have just been opened. */
CX_RESULT cx_home_load_actors(cx_home *home, cx_err *err);
/* At most `max` actors, the first `from` of them left out, in the order of their first entry. */
CX_RESULT cx_home_actor_page(cx_home *home, uint64_t from, size_t max, cx_arena *arena,
                             const cx_actor_info **out, size_t *out_count, cx_err *err);
/* The numbers of the actors whose names begin so, ascending; from the rows actor/<name>, so the
 * cost is theirs.  `prefix` is of printable ASCII and not empty.  NULL when the two indexes of
 * names disagree: then each actor must be looked at. */
CX_RESULT cx_home_actor_numbers(cx_home *home, cx_str prefix, cx_arena *arena, const int64_t **out,
                                size_t *out_count, cx_err *err);
CX_RESULT cx_home_actors_numbered(cx_home *home, const int64_t *numbers, size_t count,
                                  cx_arena *arena, const cx_actor_info **out, size_t *out_count,
                                  cx_err *err);
/* Its row will be written with the next flush. */
CX_RESULT cx_home_actor_changes(cx_home *home, cx_actor *actor, cx_err *err);
/* Writes those that have changed to the memtable. */
CX_RESULT cx_home_save_actors(cx_home *home, cx_err *err);
/* The flush of that memtable is complete. */
void cx_home_actors_flushed(cx_home *home, const cx_memtable *flushed);
/* Reads the roots of all actors in memory again: their trees were built in the tables. */
CX_RESULT cx_home_reload_trees(cx_home *home, cx_err *err);
/* Loads the retained snapshots from the tables, once. */
CX_RESULT cx_home_know_retained(cx_home *home, cx_actor *actor, cx_err *err);

/* --- apply.c: one frame of the log into memory ----------------------------------------------- */

typedef struct cx_applied {
    cx_log_place place;
    uint64_t commit;
    const cx_entry *entry; /* the frame's entry and its hash if already decoded; else NULL */
    const cx_digest *leaf;
} cx_applied;
CX_RESULT cx_home_apply(cx_home *home, const cx_ledger_frame *frame, const cx_applied *at,
                        cx_arena *arena, cx_err *err);
/* The value of a record whose content was erased: 00 ‖ value hash. */
bool cx_value_erased(cx_bytes value, cx_digest *out_hash);

/* --- flush.c --------------------------------------------------------------------------------- */

CX_RESULT cx_home_start_flusher(cx_home *home, cx_err *err);
void cx_home_stop_flusher(cx_home *home);
/* Returns when everything applied is in the tables.  Releases the lock while waiting. */
CX_RESULT cx_home_flush_wait_locked(cx_home *home, cx_err *err);
/* The same, including rows that belong to no commit; the caller must own the transaction. */
CX_RESULT cx_home_drain_locked(cx_home *home, cx_err *err);
/* Flushes in the calling thread, while there is no flusher thread. */
CX_RESULT cx_home_flush_now(cx_home *home, cx_err *err);
/* How many threads a verification or a rebuild may have at work (options.threads). */
unsigned cx_home_derive_threads(const cx_home *home);
/* For deriving: whether rows must be flushed so that memory is bounded.  There are two memtables
 * while a thread flushes, so each is half as large. */
bool cx_home_is_flush_due(const cx_home *home);
/* Waits for the flush that was begun before, and begins one, in another thread if there may be one
 * (options.threads). */
CX_RESULT cx_home_flush_aside(cx_home *home, cx_err *err);
/* Waits for that; its failure. */
CX_RESULT cx_home_flush_end(cx_home *home, cx_err *err);
/* While deriving, before a range of records is read whose rows are not in the memtable. */
CX_RESULT cx_home_merge_runs(cx_home *home, cx_err *err);
/* Flushes what is left while deriving, and builds trees that wait (store_later.c). */
CX_RESULT cx_home_finish_derived(cx_home *home, cx_err *err);

/* --- txn.c ---------------------------------------------------------------------------------- */

typedef struct cx_txn_frame {
    cx_ledger_frame frame; /* its changes are set when it is encoded */
    CX_VEC(cx_change) changes;
    /* the frame gets an entry; for a remote data directory the writer process makes it */
    bool has_draft;
    cx_entry_draft draft; /* copied to the transaction's arena */
    uint64_t seq;
    uint8_t *salt;  /* of a committed payload, which directly follows it; NULL = none */
    cx_entry entry; /* made from the draft; `leaf` is its hash */
    cx_digest leaf;
} cx_txn_frame;

struct cx_txn {
    cx_home *home;
    cx_actor *actor; /* NULL = created by this transaction, or remote */
    bool is_new;
    char name[CX_ACTOR_SIZE_MAX];
    cx_actor_info info; /* as of the transaction's begin */
    cx_arena arena;
    CX_VEC(cx_txn_frame) frames;
    size_t completed; /* frames that have entry and hashes */
    uint64_t next_seq;
};

/* --- turn_frames.c: entries and hashes of the frames that have none yet ----------------------- */

/*
 * Makes entries and hashes of all frames of the transaction.  Not for a remote data directory.
 */
CX_RESULT cx_txn_complete(cx_txn *txn, cx_err *err);

/* Number of changes that an actor's first frame starts with, which create the actor. */
#define CX_TXN_BIRTH_CHANGES 2

/* cx_txn_begin_as for a name that cx_home_root_reserved refuses to all others. */
CX_RESULT cx_txn_begin_reserved(cx_home *home, cx_str actor, cx_scheme scheme, cx_txn **out,
                                cx_err *err);

CX_RESULT cx_home_lock_txn(cx_home *home, cx_err *err); /* with the lock held, also afterwards */
void cx_home_unlock_txn(cx_home *home);

/* --- remote_client.c: the same calls of a home that another process holds --------------------- */

/* CX_E_NOT_FOUND when no process serves this data directory. */
CX_RESULT cx_remote_join(cx_home *home, cx_err *err);
void cx_remote_leave(cx_home *home);
/* CX_E_BUSY "Remote": the call needs direct access to the files. */
CX_RESULT cx_remote_unsupported(const cx_home *home, const char *what, cx_err *err);

CX_RESULT cx_remote_actor(cx_home *home, cx_str actor, cx_actor_info *out, cx_err *err);
CX_RESULT cx_remote_actor_page(cx_home *home, uint64_t from, cx_arena *arena,
                               const cx_actor_info **out, size_t *out_count, cx_err *err);
CX_RESULT cx_remote_get(cx_home *home, cx_str actor, cx_bytes key, cx_arena *arena,
                        cx_bytes *out_value, bool *out_found, cx_err *err);
CX_RESULT cx_remote_get_at(cx_home *home, cx_str actor, uint64_t snapshot_seq, cx_bytes key,
                           cx_arena *arena, cx_bytes *out_value, bool *out_found, bool *out_erased,
                           cx_digest *out_value_hash, cx_err *err);
CX_RESULT cx_remote_scan(cx_home *home, const cx_scan *scan, cx_err *err);
CX_RESULT cx_remote_entry(cx_home *home, cx_str actor, uint64_t seq, cx_arena *arena,
                          cx_entry_view *out, cx_err *err);
CX_RESULT cx_remote_entries_about(cx_home *home, cx_str actor, const cx_id *subject,
                                  cx_arena *arena, const uint64_t **out_seqs, size_t *out_count,
                                  cx_err *err);
CX_RESULT cx_remote_roots(cx_home *home, cx_str actor, cx_roots *out, cx_err *err);
CX_RESULT cx_remote_tables_status(cx_home *home, cx_tables_status *out, cx_err *err);
CX_RESULT cx_remote_flush(cx_home *home, cx_err *err);
CX_RESULT cx_remote_sync(cx_home *home, cx_err *err);
CX_RESULT cx_remote_erase(cx_home *home, cx_str actor, cx_err *err);
CX_RESULT cx_remote_record_home_root(cx_home *home, int64_t now_ns, cx_err *err);
CX_RESULT cx_remote_archive(cx_home *home, const cx_log_archive_options *options, bool restore,
                            cx_log_archived *out, cx_err *err);
void cx_remote_home_id(const cx_home *home, uint8_t out[16]);

/* The transaction's arena, home and name are set; the caller owns the transaction of this process.
 */
CX_RESULT cx_remote_txn_begin(cx_txn *txn, cx_str actor, const cx_scheme *scheme, cx_err *err);
CX_RESULT cx_remote_txn_get(cx_txn *txn, cx_bytes key, bool common, cx_bytes *out_value,
                            bool *out_found, cx_err *err);
CX_RESULT cx_remote_txn_roots(cx_txn *txn, cx_roots *out, cx_err *err);
/* Ends the writer process' transaction, not the one of this process. */
CX_RESULT cx_remote_txn_commit(cx_txn *txn, uint64_t *out_commit, cx_err *err);
void cx_remote_txn_abort(cx_txn *txn);

/* --- remote_check.c -------------------------------------------------------------------------- */

/* CX_E_FORMAT "BadFrame" unless the frames that another process put into its transaction can be
 * applied: a log with a frame that cannot be applied would never open again. */
CX_RESULT cx_remote_check_txn(cx_txn *txn, cx_err *err);

/* Waits until everything applied is durable, before it is shown to a caller.  A reader's view
 * always is. */
CX_RESULT cx_home_sync_shown(cx_home *home, cx_err *err);

/* --- trees.c ------------------------------------------------------------------------------- */

/* Needs the transaction and the lock, which it may release for a while. */
CX_RESULT cx_actor_roots(cx_home *home, cx_actor *actor, cx_roots *out, cx_err *err);
/* A change of a state tree goes into the memtable. */
CX_RESULT cx_actor_put_state(cx_home *home, cx_actor *actor, bool edge, const cx_digest *key,
                             const cx_digest *value, cx_err *err);
/* What was laid over the tables: before they close, and after a flush. */
void cx_home_drop_overlays(cx_home *home);
void cx_home_end_overlays(cx_home *home);
/* The root that an actor's journal had at `size` entries; needs the lock. */
CX_RESULT cx_actor_journal_root(cx_home *home, cx_actor *actor, uint64_t size, cx_digest *out,
                                cx_err *err);
/* The peaks that it had then, at most 64; checked against the edge that it has now. */
CX_RESULT cx_actor_journal_peaks(cx_home *home, cx_actor *actor, uint64_t size, cx_digest *out,
                                 size_t *out_count, cx_err *err);
/* Logical keys of the records that are in a tree: a memory's Head, an edge. */
#define CX_EDGE_PREFIX "e/from/"
#define CX_EDGE_PREFIX_SIZE 7
#define CX_EDGE_KEY_SIZE (CX_EDGE_PREFIX_SIZE + 16 + 1 + 16)
#define CX_HEAD_PREFIX "m/"
#define CX_HEAD_PREFIX_SIZE 2
#define CX_HEAD_KEY_SIZE (CX_HEAD_PREFIX_SIZE + 16)
/* Tree key and namespace of a record's logical key; false for records that are in no tree. */
bool cx_state_key(cx_scheme scheme, cx_bytes record_key, cx_digest *out, bool *out_edge);

/* --- erase.c: content that an entry on the disk says is to be destroyed ----------------------- */

/* Keys of planned erasures, of actor CX_ACTOR_HOME: then the actor and the entry, u64be each. */
#define CX_ERASE_PREFIX "erase/"
#define CX_ERASE_PREFIX_SIZE 6
/* Adds the row of an erasure that is still to be done; it is removed when it is done. */
CX_RESULT cx_home_plan_erasure(cx_derive *at, int64_t actor, const cx_entry *entry,
                               const cx_ledger_frame *frame, cx_err *err);
CX_RESULT cx_home_finish_all_erasures(cx_home *home, cx_err *err);

/* --- rebuild.c: what an interrupted run left; only for the owner of the lock ------------------ */

void cx_home_remove_new_tables(const cx_io *io, const char *path);

/* --- home.c ----------------------------------------------------------------------------------- */

CX_RESULT cx_home_check_alive(const cx_home *home, cx_err *err);
/* Applies the frames that the log has and the tables lack; the tables must be open. */
CX_RESULT cx_home_catch_up(cx_home *home, cx_err *err);
/*
 * For verification and rebuild: opens the log (for reading unless `lock`) and the tables at
 * `db_path` (NULL = private ones), which hold what an interrupted run left, or nothing.  No frame
 * is applied.  There is no flusher thread: use cx_home_flush_now.
 */
CX_RESULT cx_home_open_derived(const char *path, const char *db_path, bool lock,
                               const cx_home_options *options, cx_home **out, cx_err *err);
void cx_home_close_derived(cx_home *home);
/*
 * For a verification that keeps its tables at `db_path` (check/kept.h): the log is opened for
 * reading.  Nothing in the file is changed but that missing tables are made; *out_stale: it must
 * start from the first commit.
 */
CX_RESULT cx_home_open_kept(const char *path, const char *db_path, const cx_home_options *options,
                            cx_home **out, bool *out_stale, cx_err *err);
/* Then: empties it, or goes on from its position. */
CX_RESULT cx_home_begin_kept(cx_home *home, bool empty, cx_err *err);
/* Closes only the tables; the log and its lock stay open. */
void cx_home_close_derived_tables(cx_home *home);
/* Opens the data directory's own tables, next to derived ones; *out_there: the database file
 * exists. */
CX_RESULT cx_home_open_tables_to_check(const cx_home *home, cx_store *out, bool *out_there,
                                       bool *out_stale, cx_err *err);

typedef struct cx_store_comparison {
    size_t max; /* calls of `differ` */
    /* A row that is not the same; the key is what follows the first column of its table. */
    cx_status (*differ)(void *arg, const char *table, int64_t actor, cx_bytes key, const char *how,
                        cx_err *err);
    void (*compared)(void *arg, uint64_t rows); /* from time to time; may be NULL */
    void *arg;
} cx_store_comparison;
/* Compares two stores row by row. */
CX_RESULT cx_store_compare(cx_store *left, cx_store *right, const cx_store_comparison *how,
                           cx_err *err);
/* One record; the entries of an actor from `first` on, and its row; what the tables say of their
 * number of rows. */
CX_RESULT cx_store_compare_record(cx_store *left, cx_store *right, int64_t actor, cx_bytes key,
                                  const cx_store_comparison *how, cx_err *err);
CX_RESULT cx_store_compare_journal(cx_store *left, cx_store *right, int64_t actor, uint64_t first,
                                   const cx_store_comparison *how, cx_err *err);
/* The rows of hashes that came after the first `before`. */
CX_RESULT cx_store_compare_hashes(cx_store *left, cx_store *right, uint64_t before,
                                  const cx_store_comparison *how, cx_err *err);
CX_RESULT cx_store_compare_totals(cx_store *left, cx_store *right, const cx_store_comparison *how,
                                  cx_err *err);

/* --- home_root.c ------------------------------------------------------------------------------ */

/* Whether only home_root.c writes under this name. */
bool cx_home_root_reserved(cx_str actor);
/* An entry of home:root has been applied. */
void cx_home_root_note_applied(cx_home *home, const cx_entry *entry);
/* The status of a data directory that has just been opened. */
void cx_home_root_load_status(cx_home *home);

#define CX_HOME_LEAF_KEY_SIZE 16
/* leaf/<u64be position>, in `out`. */
cx_bytes cx_home_leaf_key(uint64_t position, uint8_t out[CX_HOME_LEAF_KEY_SIZE]);
bool cx_home_leaf_is(cx_bytes key, uint64_t *out_position);

/* --- home_walk.c: the leaves of all actors ---------------------------------------------------- */

/* Is shown each leaf in order. */
typedef struct cx_home_leaf_visit {
    cx_status (*leaf)(void *arg, uint64_t position, const cx_home_leaf *leaf, cx_err *err);
    void *arg;
} cx_home_leaf_visit;
/* The home root of this moment from the leaves of all actors; needs the transaction and the lock.
 * `visit` may be NULL. */
CX_RESULT cx_home_leaves_walk(cx_home *home, const cx_home_leaf_visit *visit, cx_home_root *out,
                              cx_err *err);
/* Where an actor's leaf is: they are numbered without the home itself and home:root, whose number
 * is `roots` (INT64_MAX = not there). */
static inline uint64_t cx_home_leaf_position(int64_t actor, int64_t roots)
{
    return (uint64_t)actor - 1 - (actor > roots ? 1 : 0);
}

/* --- home_root_check.c: recorded home roots against the log ----------------------------------- */

typedef struct cx_home_root_check cx_home_root_check;
typedef struct cx_check_sink cx_check_sink;

CX_RESULT cx_home_root_check_open(cx_home *home, const cx_check_sink *sink,
                                  cx_home_root_check **out, cx_err *err);
void cx_home_root_check_close(cx_home_root_check *check); /* NULL is fine */
/* After the frame has been applied: an entry of home:root against the state at its position. */
CX_RESULT cx_home_root_check_frame(cx_home_root_check *check, const cx_ledger_frame *frame,
                                   cx_arena *arena, cx_err *err);
/* What the tables have was checked by another run, of home roots up to `last`; NULL = none. */
CX_RESULT cx_home_root_check_resume(cx_home_root_check *check, const cx_home_root_entry *last,
                                    cx_err *err);
/* The last entry that was checked; false = none. */
bool cx_home_root_check_last(const cx_home_root_check *check, cx_home_root_entry *out);

/* --- check_frame.c: an entry against the records of its frame -------------------------------- */

/* Receives findings one by one. */
struct cx_check_sink {
    cx_status (*found)(void *arg, const char *check, const char *reason, cx_str actor,
                       const char *where, const char *message, cx_err *err);
    void *arg;
};

CX_RESULT cx_home_check_frame(const cx_ledger_frame *frame, cx_scheme scheme, cx_arena *arena,
                              const cx_check_sink *sink, cx_err *err);
/* The manifest in a frame without entry against the state at that moment, right after the frame was
 * applied; but for the roots of trees that wait. */
CX_RESULT cx_home_check_manifests(cx_home *home, const cx_ledger_frame *frame, cx_arena *arena,
                                  const cx_check_sink *sink, cx_err *err);
/* .. which are checked here, once they are built. */
CX_RESULT cx_home_check_built(cx_home *home, const cx_check_sink *sink, cx_err *err);

#endif
