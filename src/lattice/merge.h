/*
 * merge.h - merging the values several parents have for one key (lattice.md §7).
 */
#ifndef CX_LATTICE_MERGE_H
#define CX_LATTICE_MERGE_H

#include <cortex/lattice.h>

#include "lattice/patch.h"

/* One parent's or base's part of a map. */
typedef struct merge_operand {
    const tree *at;
    uint32_t who; /* which parent */
} merge_operand;

/* What one parent or base has at a key. */
typedef struct merge_candidate {
    cx_value v;
    uint32_t who;
    bool competes;
} merge_candidate;

typedef enum merge_phase {
    MERGE_LEFT,  /* nothing done yet: keys before the topmost are next */
    MERGE_KEY,   /* then the topmost key */
    MERGE_INNER, /* its value is an object being merged */
    MERGE_RIGHT  /* keys after it have been merged */
} merge_phase;

/* A range of keys being merged. */
typedef struct merge_frame {
    merge_phase phase;
    size_t first; /* in operands: the parents, then the bases */
    uint32_t parent_count, base_count;
    tree_range range;
    const tree *top;  /* a node with the topmost key */
    const tree *left; /* merged keys before it */
    cx_value middle;  /* merged value */
} merge_frame;

typedef struct merger {
    cx_forest *forest;
    tree_work *work;
    patcher *patch;
    const cx_alloc *alloc;
    cx_merge_strategy strategy;
    const double *priorities; /* of the parents' agents, or NULL: all 0 */
    CX_VEC(merge_frame) frames;
    CX_VEC(merge_operand) operands;
    CX_VEC(merge_candidate) candidates;
    cx_buf text; /* a conflict marker being written */
} merger;

void cx_merger_init(merger *merge, cx_forest *forest, tree_work *work, patcher *patch,
                    const cx_alloc *alloc);
void cx_merger_done(merger *merge);

/* Parents in merge order; there is at least one base, and one parent. */
CX_RESULT cx_merge_maps(merger *merge, const tree *const *parents, size_t parent_count,
                        const tree *const *bases, size_t base_count, const tree **out, cx_err *err);
CX_RESULT cx_merge_value(merger *merge, const cx_value *parents, size_t parent_count,
                         const cx_value *bases, size_t base_count, cx_value *out, cx_err *err);

#endif
