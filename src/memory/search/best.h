/*
 * best.h - the best of any number of memories, in memory that is bounded.
 *
 * Higher ranks first, equal ones by id.  What does not fit is left out and noted (`cut`); the next
 * ones are those that come after `last`, when all are offered again.
 */
#ifndef CX_MEMORY_BEST_H
#define CX_MEMORY_BEST_H

#include "base/api.h"
#include "proof/api.h"

typedef struct cx_ranked {
    cx_id id;
    float rank;
} cx_ranked;

typedef struct cx_best {
    const cx_alloc *alloc;
    size_t keep; /* so many are kept; twice as many are in memory */
    bool has_after;
    cx_ranked after; /* only what comes after this one */
    bool cut;        /* there are more that come after `last` */
    cx_ranked last;
    CX_VEC(cx_ranked) items;
} cx_best;

/* Empties it: all (`after` NULL), or those that come after one. */
void cx_best_begin(cx_best *best, const cx_ranked *after);
/* Whether neither this rank nor a lower one of this memory is among the best. */
bool cx_best_is_low(const cx_best *best, const cx_id *id, float rank);
/* Whether cx_best_add would keep it now. */
bool cx_best_wants(const cx_best *best, const cx_id *id, float rank);
/* A memory may be offered more than once. */
CX_RESULT cx_best_add(cx_best *best, const cx_id *id, float rank, cx_err *err);
/* Then `items` are in order, and each memory is among them once. */
void cx_best_end(cx_best *best);
void cx_best_done(cx_best *best);

#endif
