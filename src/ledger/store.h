/*
 * store.h - the tables of a home and what they have not taken yet.
 *
 * Changes gather in a *generation*, in memory; a flush writes a generation to the database in one
 * transaction together with the log position up to which the tables are then true.  A point read
 * looks at the generation being filled, then at the one being written, then at the database.
 *
 * The store has no lock of its own: the home's lock is held around every call but
 * cx_store_write_generation, which works on a generation that nobody changes any more.
 */
#ifndef CX_LEDGER_STORE_H
#define CX_LEDGER_STORE_H

#include "base/api.h"
#include "db/api.h"
#include "ledger/home.h"
#include "log/api.h"

typedef struct cx_row {
    int64_t actor;
    cx_bytes key;
    cx_bytes value; /* in a generation its checksum follows it */
    bool removed;
    uint64_t commit; /* that must be on the disk before the row is shown */
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
    uint64_t entry_sum, state_sum; /* see home.c: damaged rows are noticed */
} cx_actor_row;

typedef struct cx_generation {
    cx_arena arena;
    cx_map index; /* actor id (8) ‖ key -> row number */
    CX_VEC(cx_row) rows;
    CX_VEC(cx_entry_row) entries;
    size_t entries_written;      /* straight to the database, while deriving */
    CX_VEC(cx_actor_row) actors; /* as they are at the end of the generation */
    cx_position end;
} cx_generation;

/* Prepared statements of one connection. */
typedef struct cx_tables {
    cx_db *db;
    cx_db_statement *get, *put, *remove, *put_entry, *get_entry, *put_actor, *put_meta;
    cx_db_statement *begin, *end; /* of a view */
} cx_tables;

typedef enum cx_store_view { CX_VIEW_NONE, CX_VIEW_WANTED, CX_VIEW_OPEN } cx_store_view;

typedef struct cx_store {
    const cx_alloc *alloc;
    uint64_t seed;
    cx_str identity; /* borrowed */
    cx_tables reading;
    cx_tables writing; /* the same connection in a scratch store; none when read-only */
    bool shared;       /* reading and writing are one */
    bool derives;      /* a transaction is always open */
    uint64_t *filter;  /* of keys, while deriving from nothing; NULL = none */
    cx_generation *memtable;
    cx_generation *flushing; /* NULL = none */
    cx_position flushed;     /* what the tables have */
    cx_store_view view;      /* of a store that others write to as well */
} cx_store;

typedef enum cx_store_mode {
    CX_STORE_WRITE, /* readers beside the writer */
    CX_STORE_READ,
    CX_STORE_IMMUTABLE,
    CX_STORE_ALONE,
    CX_STORE_SCRATCH, /* private, gone when closed */
    CX_STORE_DERIVE   /* a file that nobody else looks at: one connection, long transactions */
} cx_store_mode;

/* `identity` names home, format and derivers and outlives the store; *out_stale: the tables were
 * made under another one (or are new) and must be filled from the first commit on. */
CX_RESULT cx_store_open(const char *path, cx_store_mode mode, const cx_alloc *alloc, uint64_t seed,
                        cx_str identity, cx_store *out, bool *out_stale, cx_err *err);
void cx_store_close(cx_store *store);
/* Empties all tables and takes on the identity. */
CX_RESULT cx_store_clear(cx_store *store, cx_str identity, cx_err *err);

CX_RESULT cx_store_get(cx_store *store, int64_t actor, cx_bytes key, cx_arena *arena,
                       cx_bytes *out_value, bool *out_found, uint64_t *out_commit, cx_err *err);
/*
 * Point reads from here to the end share one look at the database: each on its own takes and gives
 * back its locks.  For a moment only, since meanwhile the database's journal cannot start anew.
 */
void cx_store_view_begin(cx_store *store);
void cx_store_view_end(cx_store *store);
CX_RESULT cx_store_put(cx_store *store, const cx_row *row, cx_err *err); /* copies */
CX_RESULT cx_store_put_entry(cx_store *store, const cx_entry_row *row, cx_err *err);
CX_RESULT cx_store_put_actor(cx_store *store, const cx_actor_row *row, cx_err *err);
/* CX_E_NOT_FOUND when there is none. */
CX_RESULT cx_store_get_entry(cx_store *store, int64_t actor, uint64_t seq, cx_entry_row *out,
                             cx_err *err);
size_t cx_store_memtable_rows(const cx_store *store);

/* filling becomes flushing, an empty one takes its place. */
CX_RESULT cx_store_start_flush(cx_store *store, cx_position end, cx_err *err);
CX_RESULT cx_store_write_generation(cx_store *store, const cx_generation *generation, cx_err *err);
/* The flushing generation has been written. */
void cx_store_flushed(cx_store *store);

/* Everything was derived: what is cheaper over all rows at once is done. */
CX_RESULT cx_store_finish_derived(cx_store *store, cx_err *err);

/* Nothing that was deleted or overwritten stays in the database's files; nothing is being flushed.
 * CX_E_BUSY while somebody reads what was there before. */
CX_RESULT cx_store_scrub(cx_store *store, cx_err *err);

/* Range reads see only the database: the caller has flushed before. */
CX_RESULT
cx_store_scan(cx_store *store, int64_t actor, cx_bytes prefix, cx_bytes from, bool backwards,
              cx_status (*row)(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err),
              void *arg, cx_err *err);
/* The same, forward, without a look at the rows' checksums: what is made of them is held against
 * the actor's state_sum. */
CX_RESULT
cx_store_scan_summed(cx_store *store, int64_t actor, cx_bytes prefix,
                     cx_status (*row)(void *arg, cx_bytes key, cx_bytes value, bool *stop,
                                      cx_err *err),
                     void *arg, cx_err *err);
CX_RESULT cx_store_scan_entries(cx_store *store, int64_t actor, const cx_id *subject,
                                cx_status (*row)(void *arg, const cx_entry_row *entry, bool *stop,
                                                 cx_err *err),
                                void *arg, cx_err *err);
/* Numbers and leaf hashes alone, ascending; rows are not held against their checksums: what is made
 * of them is held against the actor's entry_sum. */
CX_RESULT cx_store_scan_leaves(cx_store *store, int64_t actor,
                               cx_status (*row)(void *arg, uint64_t seq, const cx_digest *leaf,
                                                cx_err *err),
                               void *arg, cx_err *err);
CX_RESULT cx_store_load_actors(cx_store *store,
                               cx_status (*row)(void *arg, const cx_actor_row *actor, cx_err *err),
                               void *arg, cx_err *err);
CX_RESULT cx_store_counts(cx_store *store, uint64_t *out_entries, uint64_t *out_records,
                          cx_err *err);

#endif
