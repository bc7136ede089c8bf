/*
 * store.h - the tables of a data directory and the memtables that are not flushed yet.
 *
 * Changes are collected in a *memtable* (cx_memtable); a flush writes it to the database in one
 * transaction, together with the log position up to which the tables are then true.  A point read
 * looks in the active memtable, then in the one being flushed, then in the database.
 *
 * The store has no lock: the caller holds the data directory's lock around every call but
 * cx_store_flush_memtable, whose memtable does not change any more.
 */
#ifndef CX_LEDGER_STORE_H
#define CX_LEDGER_STORE_H

#include "base/api.h"
#include "db/api.h"
#include "ledger/home.h"
#include "log/api.h"
#include "pages/api.h"
#include "tree/api.h"

typedef struct cx_row {
    int64_t actor;
    cx_bytes key;
    cx_bytes value; /* in a memtable its checksum follows it */
    bool removed;
    uint64_t commit; /* commit that must be durable before the row is shown */
} cx_row;

typedef struct cx_entry_row {
    int64_t actor;
    uint64_t seq;
    cx_str kind;
    int64_t created_ns;
    bool has_subject;
    cx_id subject;
    cx_log_place place;
    cx_digest leaf;
    uint64_t commit;
} cx_entry_row;

typedef struct cx_actor_row {
    int64_t id;
    cx_str name;
    cx_scheme scheme;
    uint64_t entries, snapshots, live, dead, edges;
    cx_bytes peaks; /* of the journal's right edge (tree/mmr.h), 32 bytes each; borrowed */
    /* The trees of its state: before a flush, and when it has written what they changed by. */
    cx_pages_anchor trees[2], trees_after[2];
    uint64_t home_roots; /* recorded before it changed last; not read back */
} cx_actor_row;

/* Of an actor's state: tree number 2 * actor for memories, and one more for edges. */
#define CX_TREE_MEMORIES 0
#define CX_TREE_EDGES 1
static inline uint64_t cx_tree_of(int64_t actor, unsigned which)
{
    return 2 * (uint64_t)actor + which;
}

#define CX_NO_SNAPSHOT UINT64_MAX

/* A change of a state tree, and where it stands between the actor's snapshots. */
typedef struct cx_state_row {
    uint64_t tree;
    cx_smt_pair pair;
    uint64_t next_snapshot;
    uint64_t newest; /* retained; or CX_NO_SNAPSHOT */
} cx_state_row;

/* A snapshot that was made or dropped. */
typedef struct cx_snapshot_row {
    int64_t actor;
    uint64_t snapshot;
    bool dropped;
    bool expected;      /* cx_store_expect_roots */
    cx_digest roots[2]; /* .. which its manifest names */
} cx_snapshot_row;

/* A node of an actor's journal tree that is kept (tree/mmr.h). */
typedef struct cx_fold_row {
    int64_t actor;
    cx_mmr_fold fold;
} cx_fold_row;

/* That an entry or a snapshot has to do with a hash (find/hash_rows.h). */
typedef struct cx_hash_row {
    uint64_t head; /* the first 8 bytes of the hash */
    int64_t actor;
    uint64_t number; /* 2 * entry, or 2 * snapshot + 1 */
} cx_hash_row;

typedef struct cx_memtable {
    cx_arena arena;
    cx_map index; /* actor id (8) ‖ key -> row number */
    CX_VEC(cx_row) rows;
    CX_VEC(cx_entry_row) entries;
    CX_VEC(cx_fold_row) folds;
    CX_VEC(cx_state_row) states;
    uint64_t first_state; /* of all that this process put, the number of the first one here */
    CX_VEC(cx_snapshot_row) snapshots;
    CX_VEC(cx_hash_row) hashes;
    CX_VEC(cx_actor_row) actors; /* as of the end of the memtable */
    uint64_t home_roots;         /* recorded; likewise */
    cx_position end;
} cx_memtable;

/* Prepared statements of one connection. */
typedef struct cx_tables {
    cx_db *db;
    cx_db_statement *get, *put, *replace, *remove, *put_entry, *get_entry, *put_actor, *put_meta;
    cx_db_statement *scan_actors, *find_actor;
    cx_db_statement *put_fold, *scan_leaves, *scan_folds;
    cx_db_statement *scan_up; /* cx_store_scan; NULL while one uses it */
    cx_db_statement *get_position, *get_past, *put_past, *remove_past, *scan_past;
    cx_db_statement *put_changed, *forget_changed, *scan_changed;
    cx_db_statement *scan_history, *get_sweep, *put_sweep, *remove_sweep;
    cx_db_statement *put_hash, *scan_hashes, *put_hash_block, *get_hash_block, *count_hashes;
    cx_pages *pages;              /* of the trees of states */
    cx_db_statement *begin, *end; /* of a view */
} cx_tables;

/* Numbers of rows, kept by each flush. */
typedef struct cx_store_counters {
    uint64_t actors;  /* the home itself included: the number of the next one */
    uint64_t entries; /* of all actors */
    uint64_t records; /* of table record, without plans of erasures and the past */
    uint64_t hashes;  /* of find/hash_rows.h */
} cx_store_counters;

/* A flush by a thread of its own, while there is no flusher thread. */
typedef struct cx_store_aside {
    cx_thread thread;
    bool runs;        /* or has failed: then it stays so */
    cx_status status; /* once it has ended */
    cx_err err;
} cx_store_aside;

/* Changes of trees that wait until these are built at once (store_later.c). */
typedef struct cx_store_later {
    bool on;
    bool wanted;        /* the next flush builds them, and then none waits any more */
    bool built;         /* since actors were read: theirs are newer in the tables */
    uint64_t runs;      /* that are stored */
    uint64_t runs_max;  /* .. of which so many are merged */
    uint64_t snapshots; /* the id of the next one that waits */
    cx_db_statement *put, *get;
    cx_db_statement *put_snapshot, *next_snapshot, *remove_snapshot, *set_found;
} cx_store_later;

typedef struct cx_record_runs cx_record_runs; /* store_runs.c */

typedef enum cx_store_view { CX_VIEW_NONE, CX_VIEW_WANTED, CX_VIEW_OPEN } cx_store_view;

typedef struct cx_store {
    const cx_alloc *alloc;
    uint64_t seed;
    cx_str identity; /* borrowed */
    cx_tables reading;
    cx_tables
        writing;  /* in a scratch store the same connection as for reading; none when read-only */
    bool shared;  /* reading and writing are one */
    bool derives; /* a transaction is always open */
    bool holds_transaction;                      /* while deriving: only cx_store_keep commits */
    cx_db_statement *note_record, *note_journal; /* cx_store_note_changes; NULL = not noted */
    uint64_t *filter; /* Bloom filter of keys, of private tables that began empty; NULL = none */
    cx_memtable *memtable;
    cx_memtable *flushing;               /* NULL = none */
    cx_position flushed;                 /* position up to which the tables are true */
    cx_store_counters counters;          /* as of `flushed` */
    cx_store_counters flushing_counters; /* as of the end of `flushing`, once it is written */
    cx_store_aside aside;
    cx_store_later later;
    cx_record_runs *runs; /* of a new file that is filled; NULL = none */
    size_t uncommitted;   /* bytes of memtables flushed since the last commit, while deriving */
    size_t commit_bytes;  /* .. of which so many share one, with runs */
    cx_store_view view;   /* of a store that another process writes to */
    bool sweeps;          /* rows of the past are to be given back (past/history.h) */
} cx_store;

typedef enum cx_store_mode {
    CX_STORE_WRITE, /* concurrent readers */
    CX_STORE_READ,
    CX_STORE_IMMUTABLE,
    CX_STORE_ALONE,
    CX_STORE_SCRATCH, /* private; deleted at close */
    CX_STORE_DERIVE,  /* a file that only this process uses: one connection, long transactions */
    CX_STORE_FILL     /* the same, of a new file that is used when it is complete */
} cx_store_mode;

/* `identity` names data directory, format and derivers and outlives the store; *out_stale: the
 * tables have another identity (or are new) and must be cleared and filled from the first commit
 * on.
 */
CX_RESULT cx_store_open(const char *path, cx_store_mode mode, const cx_alloc *alloc, uint64_t seed,
                        cx_str identity, cx_store *out, bool *out_stale, cx_err *err);
void cx_store_close(cx_store *store);
/* Empties all tables and sets the identity. */
CX_RESULT cx_store_clear(cx_store *store, cx_str identity, cx_err *err);

CX_RESULT cx_store_get(cx_store *store, int64_t actor, cx_bytes key, cx_arena *arena,
                       cx_bytes *out_value, bool *out_found, uint64_t *out_commit, cx_err *err);
/*
 * Point reads until the end share one read transaction, which saves taking the locks for each.
 * Keep it short: meanwhile the database's write-ahead log cannot be reset.
 */
void cx_store_view_begin(cx_store *store);
/* Opens the view if one is wanted: what is read afterwards is of this moment. */
CX_RESULT cx_store_need_view(cx_store *store, cx_err *err);
void cx_store_view_end(cx_store *store);
CX_RESULT cx_store_put(cx_store *store, const cx_row *row, cx_err *err); /* copies */
CX_RESULT cx_store_put_entry(cx_store *store, const cx_entry_row *row, cx_err *err);
CX_RESULT cx_store_put_actor(cx_store *store, const cx_actor_row *row, cx_err *err);
CX_RESULT cx_store_put_fold(cx_store *store, const cx_fold_row *row, cx_err *err);
CX_RESULT cx_store_put_state(cx_store *store, const cx_state_row *row, cx_err *err);
CX_RESULT cx_store_put_snapshot(cx_store *store, const cx_snapshot_row *row, cx_err *err);
/*
 * `count` hashes of an actor's journal from number `first` on: leaves (level 0) or folds of that
 * level; at most 256.  They are not checked (tree/mmr.h does).  CX_E_FORMAT "DatabaseDamaged" when
 * one is missing.
 */
CX_RESULT cx_store_read_journal(cx_store *store, int64_t actor, unsigned level, uint64_t first,
                                size_t count, cx_digest *out, cx_err *err);
/* CX_E_NOT_FOUND when there is none. */
CX_RESULT cx_store_get_entry(cx_store *store, int64_t actor, uint64_t seq, cx_entry_row *out,
                             cx_err *err);
size_t cx_store_memtable_rows(const cx_store *store);
/* What the active memtable takes of memory. */
size_t cx_store_memtable_bytes(const cx_store *store);
/* A memtable of this size is flushed where memory must be bounded; callers that commit wait when
 * the next one is as large while it is written. */
#define CX_MEMTABLE_BYTES ((size_t)64 << 20)

/* Makes the active memtable the one being flushed, and starts an empty one. */
CX_RESULT cx_store_start_flush(cx_store *store, cx_position end, cx_err *err);
CX_RESULT cx_store_flush_memtable(cx_store *store, const cx_memtable *generation, cx_err *err);
/*
 * The same of `flushing`, by another thread, or by this one when none is to be started or can be.
 * Other uses of that connection wait until it has ended (cx_db_lend).
 */
void cx_store_flush_aside(cx_store *store, bool by_thread);
/* Waits for it; the same failure each time. */
CX_RESULT cx_store_flush_end(cx_store *store, cx_err *err);
/* The flush is complete: drops the flushed memtable. */
void cx_store_flushed(cx_store *store);

/* Deriving is complete: creates the indexes that are cheaper to build once over all rows. */
CX_RESULT cx_store_finish_derived(cx_store *store, cx_err *err);

/* Of a store that derives and holds its transaction: commits what was flushed. */
CX_RESULT cx_store_keep(cx_store *store, cx_err *err);
/* From here on the names of records that are flushed go to the table touched, and the first new
 * entry of each actor to began (check/kept.c, which makes them). */
CX_RESULT cx_store_note_changes(cx_store *store, cx_err *err);

/* Removes all deleted or overwritten bytes from the database's files; no flush may be active.
 * CX_E_BUSY while a reader uses an older version. */
CX_RESULT cx_store_scrub(cx_store *store, cx_err *err);

/* Range reads see only the database: the caller flushes first. */
CX_RESULT
cx_store_scan(cx_store *store, int64_t actor, cx_bytes prefix, cx_bytes from, bool backwards,
              cx_status (*row)(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err),
              void *arg, cx_err *err);
CX_RESULT cx_store_scan_entries(cx_store *store, int64_t actor, const cx_id *subject,
                                cx_status (*row)(void *arg, const cx_entry_row *entry, bool *stop,
                                                 cx_err *err),
                                void *arg, cx_err *err);
/* How many actors there are, the data directory itself included. */
CX_RESULT cx_store_count_actors(cx_store *store, uint64_t *out, cx_err *err);
/* The rows of the actors `from` .. `to` - 1, ascending; rows that are not flushed are not seen.
 * CX_E_FORMAT "DatabaseDamaged" when one of them is missing. */
CX_RESULT cx_store_scan_actors(cx_store *store, int64_t from, int64_t to,
                               cx_status (*row)(void *arg, const cx_actor_row *actor, cx_err *err),
                               void *arg, cx_err *err);
/* The numbers of the actors that have changed since the first `home_roots` home roots were recorded
 * and before the next one, ascending; flushed rows only. */
CX_RESULT cx_store_scan_changed(cx_store *store, uint64_t home_roots,
                                cx_status (*number)(void *arg, int64_t actor, cx_err *err),
                                void *arg, cx_err *err);
/*
 * The number of the actor with that name.  Two indexes must agree, the row actor/<name> and the one
 * of table actor: an actor that one of them has lost is not taken for a new one, whose first entry
 * would then be in the log a second time.
 */
CX_RESULT cx_store_find_actor(cx_store *store, cx_str name, cx_arena *arena, int64_t *out_id,
                              bool *out_found, cx_err *err);
/* The row actor/<name> of a new actor. */
CX_RESULT cx_store_put_actor_name(cx_store *store, int64_t id, cx_str name, uint64_t commit,
                                  cx_err *err);
/* How many rows a comparison reads, nearly: folds and pages are not counted. */
static inline uint64_t cx_store_rows_about(const cx_store *store)
{
    const cx_store_counters *rows = &store->counters;
    return rows->actors + rows->entries + rows->records;
}
/* Counts all rows, which reads all of them. */
CX_RESULT cx_store_count_rows(cx_store *store, uint64_t *out_entries, uint64_t *out_records,
                              cx_err *err);

/* Reads all records of an actor that are flushed, and adds their number to *count; CX_E_FORMAT
 * "DatabaseDamaged" at the first without its checksum. */
CX_RESULT cx_store_check_records(cx_store *store, int64_t actor, uint64_t *count, cx_err *err);
/* Overwrites nodes of journals, which the caller has computed again from the leaves. */
CX_RESULT cx_store_repair_folds(cx_store *store, const cx_fold_row *rows, size_t count,
                                cx_err *err);

/* --- store_trees.c: the trees of states ------------------------------------------------------- */

/* Applies the changes of a memtable; sets trees_after of its actors. */
CX_RESULT cx_store_write_states(cx_store *store, const cx_memtable *memtable, cx_err *err);

/* --- store_later.c: .. which are built at once ------------------------------------------------ */

/* Of a store that derives and is empty: changes of trees and snapshots wait, and the roots of
 * actors' rows are older than these, until a flush with `later.wanted`, which builds them, and ends
 * this. */
CX_RESULT cx_store_defer_trees(cx_store *store, cx_err *err);
/* Of one that was opened again: goes on with what waits, if something does. */
CX_RESULT cx_store_resume_deferred(cx_store *store, cx_err *err);
void cx_store_end_deferred(cx_store *store);
/*
 * Right after a snapshot was put: the roots that its manifest names are held against those of the
 * trees when these are built.  False when it is not the one that was put last, or nothing waits.
 */
bool cx_store_expect_roots(cx_store *store, int64_t actor, uint64_t snapshot,
                           const cx_digest *memories, const cx_digest *edges);
/* Shows the snapshots whose roots were others, as far as the trees are built, in the order in which
 * they were made; memories are the first of two roots. */
CX_RESULT cx_store_other_roots(cx_store *store,
                               cx_status (*differs)(void *arg, const cx_snapshot_row *named,
                                                    const cx_digest found[2], cx_err *err),
                               void *arg, cx_err *err);
/* Within a flush: instead of cx_store_write_states; and after the rows of actors, when it is due:
 * wanted, or so much waits that memory would not be bounded. */
CX_RESULT cx_store_write_later(cx_store *store, const cx_memtable *memtable, cx_err *err);
bool cx_store_deferred_is_due(const cx_store *store);
CX_RESULT cx_store_build_deferred(cx_store *store, cx_err *err);
/* What was kept for cx_store_other_roots is no longer needed. */
CX_RESULT cx_store_forget_roots(cx_store *store, cx_err *err);

/* --- store_runs.c: rows of records, merged in the end ----------------------------------------- */

/* What is added to the path of the tables. */
#define CX_RUNS_ENDING "-runs"

/* Of a store that derives into a file: flushes append their rows of records to a file next to it,
 * and commits are fewer.  Goes on with what waits, if something does; CX_E_FORMAT when that cannot
 * be read.  Between, only point reads see all rows. */
CX_RESULT cx_store_begin_runs(cx_store *store, const cx_io *io, const char *path, cx_err *err);
/* Before a range is read, or in the end; no flush may be under way. */
CX_RESULT cx_store_merge_waiting(cx_store *store, cx_err *err);

/* The position up to which the rows are true that a read view shows; the view must be wanted. */
CX_RESULT cx_store_shown_position(cx_store *store, cx_position *out, cx_err *err);
/* Heights of an actor's trees when a snapshot was made; CX_E_FORMAT "DatabaseDamaged" when they are
 * not there. */
CX_RESULT cx_store_past_heights(cx_store *store, int64_t actor, uint64_t snapshot, uint8_t out[2],
                                cx_err *err);

#endif
