/*
 * predicate.h - asking a predicate of a state.
 */
#ifndef CX_LATTICE_PREDICATE_H
#define CX_LATTICE_PREDICATE_H

#include "lattice/state.h"

/* A predicate made ready, and what it said last. */
typedef struct predicate_check {
    const cx_predicate *predicate;
    const cx_alloc *alloc;
    tree_work work;
    cx_arena arena;  /* of one question */
    cx_buf expected; /* canonical text of the predicate's value */
    cx_buf found;
    bool has_last;
    cx_value last;
    bool last_holds;
} predicate_check;

CX_RESULT cx_predicate_begin(predicate_check *check, const cx_predicate *predicate,
                             const cx_alloc *alloc, cx_err *err);
void cx_predicate_end(predicate_check *check);
CX_RESULT cx_predicate_holds(predicate_check *check, const state *s, bool *out, cx_err *err);

/* Appends the predicate as it could be written. */
CX_RESULT cx_predicate_write(const cx_predicate *predicate, cx_buf *out, cx_err *err);

#endif
