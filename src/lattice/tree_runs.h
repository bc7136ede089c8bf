/*
 * tree_runs.h - the directory of a tree: where all its nodes lie, in the order of their keys.
 *
 * It stands after the topmost node of a tree that is larger than a block, unless the tree has too
 * many runs.  A run is some nodes next to each other.  Its place is told from the node the
 * directory belongs to:
 *
 *   near   28 bits: how many times TREE_ALIGN bytes away, signed; 4 bits: its nodes
 *   far    the same in 60 and 4 bits, when one of the runs is too far away for the other form
 */
#ifndef CX_LATTICE_TREE_RUNS_H
#define CX_LATTICE_TREE_RUNS_H

#include "lattice/tree.h"

/* A tree of more runs has no directory. */
#define TREE_RUNS 64
#define RUN_NODES 15 /* at most, in one run */

/* What lies after a node of count 0: its `before`. */
enum { DIRECTORY_NONE = 0, DIRECTORY_NEAR = 1, DIRECTORY_FAR = 2 };

typedef struct tree_run {
    const tree *first, *end;
} tree_run;

static inline uint32_t tree_run_count(const tree *t)
{
    return t->count != 0 || t->before == DIRECTORY_NONE ? 0 : *(const uint32_t *)(t + 1);
}

static inline tree_run tree_run_at(const tree *t, uint32_t i)
{
    const uint32_t *near = (const uint32_t *)(t + 1) + 1;
    const int64_t *far = (const int64_t *)(t + 1) + 1;
    int64_t packed = t->before == DIRECTORY_NEAR ? (int32_t)near[i] : far[i];
    const tree *first = (const tree *)((uintptr_t)t + (uintptr_t)((packed >> 4) * TREE_ALIGN));
    return (tree_run){first, first + (packed & RUN_NODES)};
}

#endif
