/*
 * store_internal.h - shared by the files of the store.
 */
#ifndef CX_LEDGER_STORE_INTERNAL_H
#define CX_LEDGER_STORE_INTERNAL_H

#include "ledger/store.h"

#define CX_ENTRY_COLUMNS "actor, seq, kind, created_ns, subject, segment, offset, size, leaf, sum"
#define CX_ACTOR_COLUMNS \
    "id, name, scheme, entries, snapshots, live, dead, edges, peaks, memory_tree, edge_tree, sum"

/* actor/<name> of actor CX_ACTOR_HOME: the number of that actor, u64be. */
#define CX_ACTOR_PREFIX "actor/"

/* Creates the index of entries by subject if it is missing. */
extern const char cx_store_about_sql[]; /* of actor ?1, about subject ?2 */
extern const char cx_store_subject_index[];

/* --- checksums (S3) --------------------------------------------------------------------------- */

enum { CX_ROW_SUM_SIZE = 4 };

void cx_store_sum_row(int64_t actor, cx_bytes key, cx_bytes value, uint8_t out[CX_ROW_SUM_SIZE]);
uint32_t cx_store_sum_entry(const cx_entry_row *row);
uint32_t cx_store_sum_actor(const cx_actor_row *row);
/* `counters` NULL: of the identity and the position alone. */
uint32_t cx_store_sum_meta(cx_str identity, cx_position position,
                           const cx_store_counters *counters);
/* CX_E_FORMAT; `what` says which row. */
cx_status cx_store_damaged(const char *what, cx_err *err);
/* Checks a row's checksum and returns the value without it. */
cx_status cx_store_check_row(int64_t actor, cx_bytes key, cx_bytes stored, cx_bytes *out,
                             cx_err *err);

/* --- writing past the memtable, in a transaction of store->writing ---------------------------- */

/* A snapshot that was made when the actor's trees were these, or dropped. */
CX_RESULT cx_store_write_snapshot(cx_store *store, const cx_snapshot_row *row,
                                  const cx_pages_anchor trees[2], cx_err *err);

/* An actor's row, with `trees`. */
CX_RESULT cx_store_write_actor(cx_store *store, const cx_actor_row *row, cx_err *err);

/* Whether the row is one of those that are counted. */
bool cx_store_is_counted(const cx_row *row);
/* One row of table record: put, replaced or removed; counts in *records. */
CX_RESULT cx_store_write_row(cx_tables *tables, const cx_row *row, uint64_t *records, cx_err *err);

/* A row with the first bytes of its key, which nearly always decide the order. */
typedef struct cx_sorted_row {
    int64_t actor;
    uint64_t head; /* of the key */
    const cx_row *row;
} cx_sorted_row;

/* --- store_runs.c: rows of records that wait -------------------------------------------------- */

/* Within a flush: whether so many rows become a run.  Otherwise runs that wait are merged first. */
bool cx_store_takes_run(const cx_store *store, size_t rows);
CX_RESULT cx_store_write_run(cx_store *store, const cx_sorted_row *rows, size_t count, cx_err *err);
/* Puts the rows of all runs into the table, and counts them in *records. */
CX_RESULT cx_store_merge_runs(cx_store *store, uint64_t *records, cx_err *err);
/* Before a commit (W1). */
CX_RESULT cx_store_sync_runs(cx_store *store, cx_err *err);
/* The flush merged the runs: it must be committed before the next run is written. */
bool cx_store_runs_merged(const cx_store *store);
/* The flush is complete. */
void cx_store_runs_flushed(cx_store *store);
/* The newest row of that name in a run.  It is valid until the next call. */
CX_RESULT cx_store_find_in_runs(cx_store *store, int64_t actor, cx_bytes key, cx_row *out,
                                bool *out_there, cx_err *err);
/* The tables were cleared. */
void cx_store_forget_runs(cx_store *store);
void cx_store_end_runs(cx_store *store);

/* --- rows of a generation --------------------------------------------------------------------- */

/* The key of a row in a memtable's index. */
typedef struct cx_row_name {
    char bytes[8 + CX_KEY_SIZE_MAX];
    size_t size;
} cx_row_name;

cx_str cx_store_name_row(int64_t actor, cx_bytes key, cx_row_name *name);
/* NULL when there is no such row, or no memtable. */
const cx_row *cx_store_find_row(const cx_memtable *generation, cx_str name, uint64_t hash);
/* Whether the database may have the key with that hash; without a filter always true. */
bool cx_store_may_have(const uint64_t *filter, uint64_t hash);

#endif
