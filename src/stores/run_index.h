/*
 * run_index.h - an index of governed runs in the ledger: their seals, and the link of every event
 * (decision 0015: actors run:<..>, kinds run.event and run.seal; run.md §17).
 *
 * Of a run that is asked for, its rows (recorder/rows/run_rows.h) and the entries they lead to are
 * read, and of other runs nothing.  The newest answers are kept.  Thread-safe.
 */
#ifndef CX_STORES_RUN_INDEX_H
#define CX_STORES_RUN_INDEX_H

#include "ledger/api.h"
#include "audit/api.h"

typedef struct cx_run_index cx_run_index;

/* Opens the index over an open data directory, which must outlive it. */
CX_RESULT cx_run_index_open(cx_home *home, const cx_alloc *alloc, cx_run_index **out, cx_err *err);
void cx_run_index_close(cx_run_index *index); /* NULL is fine */

typedef struct cx_run_known {
    cx_run_witness witness; /* for cx_run_verify; everything in it lives in the arena */
    cx_json seal;           /* what witness.seal points to */
    bool sealed;
    cx_str journal;      /* of the first entry about the run; empty when there is none */
    cx_str actor;        /* the actor whose journal has the seal */
    uint64_t seal_index; /* its sequence number there */
} cx_run_known;

/*
 * Zeroed when the ledger has no entry about the run.  The first entry about an event, and the first
 * seal, count: later entries with the same id change nothing (I1).  CX_E_FORMAT "DatabaseDamaged"
 * when a row is missing, or leads to an entry that says something else.
 */
CX_RESULT cx_run_index_find(cx_run_index *index, cx_str run_id, cx_arena *arena, cx_run_known *out,
                            cx_err *err);
/* Whether the run has a seal. */
CX_RESULT cx_run_index_sealed(cx_run_index *index, cx_str run_id, bool *out, cx_err *err);

#endif
