/*
 * internal.h - what the files of a home share.
 *
 * Two locks guard a home.  `lock` is short: it is held around every look at and change of memory.
 * The *turn* (turn_taken, under `lock`) is long: whoever has it is the only one that decides and
 * writes, also while it waits for the tables with `lock` let go.
 */
#ifndef CX_LEDGER_INTERNAL_H
#define CX_LEDGER_INTERNAL_H

#include "base/api.h"
#include "ledger/frame.h"
#include "ledger/home.h"
#include "ledger/store.h"

#define CX_ACTOR_HOME 0 /* the home itself, and the rows its actors share */

typedef struct cx_actor {
    int64_t id;
    char name[CX_ACTOR_SIZE_MAX + 1];
    cx_actor_info info; /* name borrows from `name` */
    uint64_t entry_sum; /* sum over entries and state records, to notice damaged rows (H4) */
    uint64_t state_sum;
    CX_VEC(uint64_t) retained; /* snapshots not dropped, ascending */
    bool retained_known;
    bool dirty; /* its row must be written with the next generation */
    bool has_trees;
    cx_trees trees;
    CX_VEC(cx_smt_pair) pending[2]; /* not yet in the tree of memories [0], of edges [1] */
} cx_actor;

/* The way to the process that holds the home (remote_client.c). */
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
    bool holds_lock; /* of the log: nobody else writes */

    cx_remote_client *remote; /* calls go to a holder; log and store are not open then */
    bool serving;             /* remote_serve.c */

    cx_lock lock;
    bool txn_active;
    unsigned txn_waiters; /* threads that wait for it */
    cx_arena txn_arena;   /* of whoever has the turn; kept from one to the next */
    bool flusher_idle;
    bool poisoned;
    bool
        apply_failed; /* memory could not follow the log: `filling` holds half a frame, and is not used */
    bool closing;
    bool flush_wanted;
    cx_status flush_status; /* the flusher's first failure */
    cx_err flush_err;
    cx_thread flusher;
    cx_position applied;  /* what is in memory */
    uint64_t last_commit; /* of the log; UINT64_MAX = none by this process */

    bool trees_from_start; /* trees follow from the first entry on: verification and rebuild */

    cx_actor **actors; /* by order of appearance; [0] is the home itself */
    size_t actor_count, actor_capacity;
    cx_map actor_names;
};

/* --- actors.c -------------------------------------------------------------------------------- */

cx_actor *cx_home_find_actor(cx_home *home, cx_str name); /* NULL = none */
CX_RESULT cx_home_add_actor(cx_home *home, int64_t id, cx_str name, cx_scheme scheme,
                            cx_actor **out, cx_err *err);
CX_RESULT cx_home_need_actor(cx_home *home, cx_str name, cx_actor **out, cx_err *err);
void cx_home_drop_actors(cx_home *home);
CX_RESULT cx_home_load_actors(cx_home *home, cx_err *err);
CX_RESULT cx_home_save_actors(cx_home *home, cx_err *err); /* the dirty ones, into `filling` */
/* Retained snapshots from the tables, once; the tables must be settled. */
CX_RESULT cx_home_know_retained(cx_home *home, cx_actor *actor, cx_err *err);

/* --- apply.c: one frame of the log into memory ----------------------------------------------- */

typedef struct cx_applied {
    cx_log_place place;
    uint64_t commit;
    const cx_entry *entry; /* of the frame, and its hash, where they are known; else NULL */
    const cx_digest *leaf;
} cx_applied;
CX_RESULT cx_home_apply(cx_home *home, const cx_ledger_frame *frame, const cx_applied *at,
                        cx_arena *arena, cx_err *err);
/* What a record holds when its content was erased: 00 ‖ value hash. */
bool cx_value_erased(cx_bytes value, cx_digest *out_hash);

/* --- flush.c --------------------------------------------------------------------------------- */

CX_RESULT cx_home_start_flusher(cx_home *home, cx_err *err);
void cx_home_stop_flusher(cx_home *home);
/* Everything applied is in the tables when this returns.  Lets go of the lock meanwhile. */
CX_RESULT cx_home_flush_wait_locked(cx_home *home, cx_err *err);
/* .. and nothing is on its way to them, rows that belong to no commit included; needs the turn. */
CX_RESULT cx_home_drain_locked(cx_home *home, cx_err *err);
/* The same by the caller itself, while there is no flusher. */
CX_RESULT cx_home_flush_now(cx_home *home, cx_err *err);

/* --- turn.c ---------------------------------------------------------------------------------- */

typedef struct cx_txn_frame {
    cx_ledger_frame frame; /* its changes are set when it is encoded */
    CX_VEC(cx_change) changes;
    bool has_draft;       /* there is to be an entry; a remote home's holder makes it */
    cx_entry_draft draft; /* all of it in the turn's arena */
    uint64_t seq;
    uint8_t *salt;  /* of a committed payload, which lies behind it; NULL = none */
    cx_entry entry; /* made of the draft, and its hash */
    cx_digest leaf;
} cx_txn_frame;

struct cx_txn {
    cx_home *home;
    cx_actor *actor; /* NULL = new with this turn, or of a remote home */
    bool is_new;
    char name[CX_ACTOR_SIZE_MAX];
    cx_actor_info info; /* as at the beginning */
    cx_arena arena;
    CX_VEC(cx_txn_frame) frames;
    size_t completed; /* frames that have entry and hashes */
    uint64_t next_seq;
};

/* --- turn_frames.c: entries and hashes of the frames that have none yet ----------------------- */

/*
 * (not of a remote home)
 */
CX_RESULT cx_txn_complete(cx_txn *txn, cx_err *err);

/* What an actor's first frame begins with: it comes into being there. */
#define CX_TXN_BIRTH_CHANGES 2

CX_RESULT cx_home_take_txn(cx_home *home, cx_err *err); /* with the lock held, also afterwards */
void cx_home_give_txn(cx_home *home);

/* --- remote_client.c: the same calls of a home that another process holds --------------------- */

/* CX_E_NOT_FOUND when nobody serves this home. */
CX_RESULT cx_remote_join(cx_home *home, cx_err *err);
void cx_remote_leave(cx_home *home);
/* CX_E_BUSY "Remote": what only the files can answer. */
CX_RESULT cx_remote_refuse(const cx_home *home, const char *what, cx_err *err);

CX_RESULT cx_remote_actor(cx_home *home, cx_str actor, cx_actor_info *out, cx_err *err);
CX_RESULT cx_remote_actors(cx_home *home, cx_arena *arena, const cx_actor_info **out,
                           size_t *out_count, cx_err *err);
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
CX_RESULT cx_remote_settle(cx_home *home, cx_err *err);
CX_RESULT cx_remote_sync(cx_home *home, cx_err *err);
CX_RESULT cx_remote_erase(cx_home *home, cx_str actor, cx_err *err);
void cx_remote_home_id(const cx_home *home, uint8_t out[16]);

/* The turn's arena, home and name are set; the turn of this process is the caller's already. */
CX_RESULT cx_remote_turn_begin(cx_txn *txn, cx_str actor, const cx_scheme *scheme, cx_err *err);
CX_RESULT cx_remote_turn_get(cx_txn *txn, cx_bytes key, bool common, cx_bytes *out_value,
                             bool *out_found, cx_err *err);
CX_RESULT cx_remote_turn_roots(cx_txn *txn, cx_roots *out, cx_err *err);
/* Ends the holder's turn, not the turn of this process. */
CX_RESULT cx_remote_turn_commit(cx_txn *txn, uint64_t *out_commit, cx_err *err);
void cx_remote_turn_abort(cx_txn *txn);

/* --- remote_check.c -------------------------------------------------------------------------- */

/* CX_E_FORMAT "BadFrame" unless what another process put into its turn can be applied: a log with a
 * frame that cannot would never open again. */
CX_RESULT cx_remote_check_turn(cx_txn *txn, cx_err *err);

/* What is handed out must be on the disk; a reader's view is. */
CX_RESULT cx_home_sync_shown(cx_home *home, cx_err *err);

/* --- trees.c ------------------------------------------------------------------------------- */

/* Under the turn and the lock. */
CX_RESULT cx_home_need_trees(cx_home *home, cx_actor *actor, cx_err *err);
/* trees_build.c: from the tables, which have all of it; has_trees even when it fails. */
CX_RESULT cx_actor_build_trees(cx_home *home, cx_actor *actor, cx_err *err);
void cx_actor_drop_trees(cx_actor *actor);
CX_RESULT cx_actor_roots(cx_actor *actor, cx_roots *out, cx_err *err);
/* The actor's trees are no longer right: they are built again when next asked for. */
void cx_home_forget_trees(cx_home *home, cx_str actor);
/* Contributions to entry_sum and state_sum. */
uint64_t cx_sum_of_entry(uint64_t seq, const cx_digest *leaf);
uint64_t cx_sum_of_state(const cx_digest *key, const cx_digest *value);
/* Logical keys of the records that stand in a tree: a memory's Head, an edge. */
#define CX_EDGE_PREFIX "e/from/"
#define CX_EDGE_PREFIX_SIZE 7
#define CX_EDGE_KEY_SIZE (CX_EDGE_PREFIX_SIZE + 16 + 1 + 16)
#define CX_HEAD_PREFIX "m/"
#define CX_HEAD_PREFIX_SIZE 2
#define CX_HEAD_KEY_SIZE (CX_HEAD_PREFIX_SIZE + 16)
/* Tree key and namespace of a record's logical key; false for records that are in no tree. */
bool cx_state_key(cx_scheme scheme, cx_bytes record_key, cx_digest *out, bool *out_edge);

/* --- erase.c: content that an entry on the disk says is to be destroyed ----------------------- */

/* The row that remembers what is still to be destroyed; it goes when that is done. */
CX_RESULT cx_home_plan_erasure(cx_derive *at, const cx_entry *entry, const cx_ledger_frame *frame,
                               cx_err *err);
CX_RESULT cx_home_finish_all_erasures(cx_home *home, cx_err *err);

/* --- rebuild.c: what an interrupted run left; only whoever holds the lock may ask ------------- */

void cx_home_remove_new_tables(const cx_io *io, const char *path);

/* --- home.c ----------------------------------------------------------------------------------- */

CX_RESULT cx_home_check_alive(const cx_home *home, cx_err *err);
/* Applies what the log has and the tables do not; `open_tables` must be ready. */
CX_RESULT cx_home_catch_up(cx_home *home, cx_err *err);
/*
 * For verification and rebuild: the log is open (for reading unless `lock`), the tables at
 * `db_path` (NULL = private ones) hold what an earlier run left, or nothing; nothing has been
 * applied yet. Without a flusher: cx_home_flush_now writes.
 */
CX_RESULT cx_home_open_derived(const char *path, const char *db_path, bool lock,
                               const cx_home_options *options, cx_home **out, cx_err *err);
void cx_home_close_derived(cx_home *home);
/* Only the tables: the log, and with it the lock, stays. */
void cx_home_close_derived_tables(cx_home *home);
/* The home's own tables, beside derived ones; *out_there: there is a database file. */
CX_RESULT cx_home_open_tables_to_check(const cx_home *home, cx_store *out, bool *out_there,
                                       bool *out_stale, cx_err *err);
CX_RESULT cx_actor_open_trees(cx_home *home, cx_actor *actor, cx_err *err);
/* A tree takes many keys at once much faster than one by one: they gather, and cx_home_need_trees
 * and cx_actor_roots bring them in. */
CX_RESULT cx_actor_put_state(cx_home *home, cx_actor *actor, bool edge, const cx_digest *key,
                             const cx_digest *value, cx_err *err);
CX_RESULT cx_actor_insert_pending(cx_actor *actor, cx_err *err);

/*
 * Differences between two stores, row by row: `differ` is called with the table's name and where.
 * At most `max` calls.
 */
CX_RESULT cx_store_compare(cx_store *left, cx_store *right, size_t max,
                           cx_status (*differ)(void *arg, const char *table, int64_t actor,
                                               cx_bytes key, const char *how, cx_err *err),
                           void *arg, cx_err *err);

/* --- check_frame.c: an entry against the records of its frame -------------------------------- */

/* Reasons found, told one by one. */
typedef struct cx_check_sink {
    cx_status (*found)(void *arg, const char *check, const char *reason, cx_str actor,
                       const char *where, const char *message, cx_err *err);
    void *arg;
} cx_check_sink;

CX_RESULT cx_home_check_frame(const cx_ledger_frame *frame, cx_scheme scheme, cx_arena *arena,
                              const cx_check_sink *sink, cx_err *err);
/* The manifest in a frame without entry against the state at that moment (trees are kept). */
CX_RESULT cx_home_check_manifests(cx_home *home, const cx_ledger_frame *frame, cx_arena *arena,
                                  const cx_check_sink *sink, cx_err *err);

#endif
