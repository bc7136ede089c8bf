/*
 * ancestors.h - finding best common ancestors again and again, as building all states does.
 */
#ifndef CX_LATTICE_ANCESTORS_H
#define CX_LATTICE_ANCESTORS_H

#include "lattice/internal.h"

/* A node met on the way down from the heads. */
typedef struct met {
    uint32_t position;
    bool stale; /* an ancestor of a common ancestor already found */
} met;

/* One place of the table position -> met; of an older round it counts as free. */
typedef struct met_slot {
    uint32_t round;
    uint32_t position;
    uint32_t index;
} met_slot;

/* How many waiting, not stale nodes a head reaches, and the exclusive or of their indexes. */
typedef struct frontier {
    uint32_t count;
    uint32_t index_xor;
} frontier;

/* Where a node's subtree lies when the tree of lineage parents is numbered from the top. */
typedef struct lineage_span {
    uint32_t first;
    uint32_t size;
} lineage_span;

/* Memory of the search, kept from one to the next; nothing in it is as large as the lattice but
 * `spans`, which are optional. */
typedef struct ancestry {
    const cx_lattice *lattice;
    const cx_alloc *alloc;
    CX_VEC(met) met;
    CX_VEC(uint64_t) masks; /* words_each for each of met: which heads reach it */
    CX_VEC(uint32_t) heap;  /* waiting nodes, indexes of met, greatest position first */
    CX_VEC(frontier) frontiers;
    CX_VEC(cx_node) found;
    met_slot *slots;
    size_t slot_count; /* 0 or a power of two */
    uint32_t round;
    size_t words_each;
    size_t head_count;
    size_t lost_heads;   /* heads with an empty frontier */
    lineage_span *spans; /* by position, or NULL */
} ancestry;

void cx_ancestry_init(ancestry *search, const cx_lattice *lattice);
void cx_ancestry_done(ancestry *search);

/* Numbers the lineage tree: worth it before many searches. */
CX_RESULT cx_ancestry_span(ancestry *search, cx_err *err);

/* As cx_lattice_common; the answer is search->found, good until the next search. */
CX_RESULT cx_ancestry_find(ancestry *search, const cx_node *nodes, size_t count, cx_err *err);

/* Adds all ancestors of the nodes whose bits (by position) are set. */
void cx_lattice_mark_ancestors(const cx_lattice *lattice, uint64_t *bits);

#endif
