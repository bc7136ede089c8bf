/*
 * state.h - the states of a lattice, as the files of this module see them.
 */
#ifndef CX_LATTICE_STATE_H
#define CX_LATTICE_STATE_H

#include "lattice/internal.h"
#include "lattice/patch.h"
#include "lattice/tree.h"

/* In alphabetical order of their names, which is the order in canonical JSON. */
typedef enum state_section {
    SECTION_BELIEFS,
    SECTION_CONTEXT_STACK,
    SECTION_GOALS,
    SECTION_MEMORY,
    SECTION_COUNT
} state_section;

/* The two sections that are one value each. */
typedef struct state_lists {
    cx_value goals;
    cx_value context_stack;
} state_lists;

/* Small, so that each node has its own: what is in it is shared. */
typedef struct state {
    const tree *memory;
    const tree *beliefs;
    const state_lists *lists;
} state;

/* What a merge made, before the node's own delta. */
typedef struct merged_state {
    uint32_t position;
    state s;
} merged_state;

struct cx_states {
    const cx_lattice *lattice;
    const cx_alloc *alloc;
    cx_state_options options; /* without the priorities */
    cx_arena arena;
    cx_forest forest;
    double *agent_priority;      /* by agent, or NULL when all are 0 */
    state *items;                /* by node; no lists: it has no state */
    uint64_t *wanted;            /* bits by position, or NULL: all */
    CX_VEC(merged_state) merged; /* by position */
};

/* Whether there is a state at a topological position. */
static inline bool cx_states_has(const cx_states *states, uint32_t position)
{
    return states->wanted == NULL || (states->wanted[position / 64] >> (position % 64) & 1) != 0;
}

/* Of a node that has one. */
static inline const state *cx_states_at(const cx_states *states, cx_node which)
{
    return &states->items[which];
}

/* CX_E_FORMAT, saying why a node has no topological place and so no state. */
cx_status cx_states_no_place(const cx_lattice *lattice, cx_node which, cx_err *err);

/* "memory", ...; static storage. */
cx_str cx_state_section_name(state_section section);
/* The section of that name as spelled in canonical text, or SECTION_COUNT. */
state_section cx_state_section_named(cx_str name);
cx_value cx_state_section_value(const state *s, state_section section);
/* The empty state (§6). */
state cx_state_empty(void);

/*
 * The state after (inherited: before the own delta of) a node.  CX_E_FORMAT when it has none,
 * CX_E_USAGE when it was not among the targets.
 */
CX_RESULT cx_states_get(const cx_states *states, cx_node node, bool inherited, state *out,
                        cx_err *err);

/* Appends the canonical JSON. */
CX_RESULT cx_state_write(tree_work *work, const state *s, cx_buf *out, cx_err *err);

/* True when a delta names the key in that section.  The key as canonical JSON spells it, without
 * its quotes. */
bool cx_delta_names(cx_str delta, state_section section, cx_str spelled_key);

/* What a pointer (RFC 6901) names in a state. */
typedef struct state_spot {
    bool is_there;
    bool is_whole; /* the empty pointer: the state itself */
    cx_value v;    /* else this, */
    cx_str inside; /* and this pointer into it when it is an array */
} state_spot;

/* CX_E_USAGE when the pointer is malformed.  What is decoded goes to the arena. */
CX_RESULT cx_state_find(const state *s, cx_str pointer, cx_arena *arena, state_spot *out,
                        cx_err *err);
/* Appends the canonical JSON of a spot that is there; CX_E_NOT_FOUND when its inside is not. */
CX_RESULT cx_state_write_spot(tree_work *work, const state *s, const state_spot *spot,
                              cx_arena *arena, cx_buf *out, cx_err *err);

/* compare.c: the chain of lineage parents up to a node, genesis first. */
CX_RESULT cx_lattice_path(const cx_lattice *lattice, cx_node which, cx_arena *arena,
                          const cx_node **out, size_t *out_count, cx_err *err);

/* --- for the test vectors ------------------------------------------------------------------ */

typedef struct cx_merge_case {
    const cx_json *bases; /* at least one */
    size_t base_count;
    const cx_json *states; /* in merge order */
    size_t state_count;
    const cx_str *agents; /* of the states */
    cx_merge_strategy strategy;
    const cx_agent_priority *priorities;
    size_t priority_count;
    bool base_none;    /* use the empty base in place of `bases` */
    bool whole_states; /* else each is one section */
} cx_merge_case;

/* Appends the canonical JSON of the merge. */
CX_RESULT cx_state_merge_json(const cx_merge_case *merge, const cx_alloc *alloc, cx_buf *out,
                              cx_err *err);
/* Appends the canonical JSON of old with delta put on it, both objects. */
CX_RESULT cx_state_patch_json(const cx_json *old, const cx_json *delta, const cx_alloc *alloc,
                              cx_buf *out, cx_err *err);

#endif
