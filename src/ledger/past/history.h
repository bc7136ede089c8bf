/*
 * history.h - what records were when a snapshot was made (ledger.md §9.1), and giving it back.
 *
 *     hist/<key>/<u64be S>   the record as snapshots up to S saw it, down to the row before
 *     sweep(actor, position) an actor of whom a snapshot was dropped, and how far its rows are
 *     swept
 *
 *   G1  Snapshot T sees the first row of a record whose number is T or more, else the record.
 *   G2  Dropping a snapshot changes no row: what its rows hold is still what the snapshots before
 *       it saw.  A row is needed while a retained snapshot lies between the row before and it.
 *   G3  A sweep deletes what is not needed, a bounded number of rows with each flush, in the
 *       transaction of the flush, and is continued by later processes.
 *   G4  Which rows are still there is no function of the log; which are needed is: only these are
 *       counted, compared and verified.
 */
#ifndef CX_LEDGER_PAST_HISTORY_H
#define CX_LEDGER_PAST_HISTORY_H

#include "ledger/store.h"

#define CX_HISTORY_PREFIX "hist/"
#define CX_HISTORY_PREFIX_SIZE 5
#define CX_HISTORY_KEY_MAX (CX_HISTORY_PREFIX_SIZE + CX_KEY_SIZE_MAX + 1 + 8)
/* Condition of a statement on table record. */
#define CX_HISTORY_ROWS "(key >= CAST('hist/' AS BLOB) AND key < CAST('hist0' AS BLOB))"

typedef struct cx_history_key {
    uint8_t bytes[CX_HISTORY_KEY_MAX];
    size_t size;
} cx_history_key;

/* hist/<key>/<snapshot>; the key has at most CX_KEY_SIZE_MAX bytes. */
cx_history_key cx_history_key_of(cx_bytes record, uint64_t snapshot);
static inline cx_bytes cx_history_key_bytes(const cx_history_key *key)
{
    return cx_bytes_from(key->bytes, key->size);
}
bool cx_history_is(cx_bytes key);

/* Tells which rows of the past are needed (G2), shown all of them in order of actor and key. */
typedef struct cx_history_filter {
    cx_store *store; /* whose snapshots are asked for */
    bool has_actor;
    int64_t actor;
    CX_VEC(uint64_t) retained;
    cx_history_key last; /* size 0 = none of this actor */
} cx_history_filter;

void cx_history_filter_done(cx_history_filter *filter);
/* A row that is no history is always needed. */
CX_RESULT cx_history_is_needed(cx_history_filter *filter, int64_t actor, cx_bytes key, bool *out,
                               cx_err *err);
/* The same of any single row, which need not be there. */
CX_RESULT cx_history_needs(cx_store *store, int64_t actor, cx_bytes key, bool *out, cx_err *err);

/* --- within a flush --------------------------------------------------------------------------- */

/* A snapshot of the actor was dropped: its sweep begins again. */
CX_RESULT cx_history_want_sweep(cx_store *store, int64_t actor, cx_err *err);
/* Rows of the past that are looked at with one flush, at most. */
#define CX_SWEEP_ROWS 8192
/* Continues one sweep; sets store->sweeps to whether there is more to do. */
CX_RESULT cx_history_continue_sweep(cx_store *store, cx_err *err);
/* Of a store that has just been opened: whether a sweep was begun. */
CX_RESULT cx_history_load(cx_store *store, cx_err *err);

#endif
