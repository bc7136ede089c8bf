/*
 * run_book.h - what a home's ledger knows about governed runs: their seals, and the link of every
 * event (decision 0015: actors run:<..>, kinds run.event and run.seal; run.md §17).
 *
 * The book is made by reading the journals once; each question reads on from where the last one
 * ended.  Thread-safe.
 */
#ifndef CX_STORES_RUN_INDEX_H
#define CX_STORES_RUN_INDEX_H

#include "ledger/api.h"
#include "audit/api.h"

#define CX_RUN_ACTOR_PREFIX "run:"

typedef struct cx_run_index cx_run_index;

/* Over an open home, which must outlive it. */
CX_RESULT cx_run_index_open(cx_home *home, const cx_alloc *alloc, cx_run_index **out, cx_err *err);
void cx_run_index_close(cx_run_index *index); /* NULL is fine */

typedef struct cx_run_known {
    cx_run_witness witness; /* for cx_run_verify; everything in it lives in the arena */
    cx_json seal;           /* what witness.seal points to */
    bool sealed;
    cx_str actor;        /* whose journal the seal is in */
    uint64_t seal_index; /* its place there */
} cx_run_known;

/*
 * Zeroed when the ledger has never heard of the run.  The first entry that speaks of an event, and
 * the first seal, count: what was appended later under the same id changes nothing.
 */
CX_RESULT cx_run_index_find(cx_run_index *index, cx_str run_id, cx_arena *arena, cx_run_known *out,
                            cx_err *err);
/* Whether it has a seal: the short question. */
CX_RESULT cx_run_index_sealed(cx_run_index *index, cx_str run_id, bool *out, cx_err *err);

#endif
