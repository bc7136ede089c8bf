/*
 * candidates.h - the memories that a Find may be about, from an index, a batch at a time.
 */
#ifndef CX_MEMORY_CANDIDATES_H
#define CX_MEMORY_CANDIDATES_H

#include "memory/internal.h"

typedef struct cx_candidates {
    const cx_memory_find *find;
    const cx_words_query *words; /* of find->text */
    const cx_memory_source *from;
    /* Called for each, for some more than once; `similarity` where `near` is asked for and `from`
     * is not.  May call the data directory. */
    cx_status (*each)(void *arg, const cx_id *id, float similarity, cx_err *err);
    void *arg;
} cx_candidates;

/* Never too few: what a scope does not show, or what was removed since, may be among them. */
CX_RESULT cx_memory_candidates(const cx_candidates *what, cx_err *err);

#endif
