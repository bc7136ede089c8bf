/*
 * internal.h - the skeleton every file of this module works on.
 *
 * A node costs 128 bytes, its id, 4 bytes an edge each way, and 24 bytes of indexes; its event and
 * (unless deltas are kept) its delta are gone once it is hashed.  All arrays are indexed by
 * cx_node, the node's place in the file.
 */
#ifndef CX_LATTICE_INTERNAL_H
#define CX_LATTICE_INTERNAL_H

#include "base/api.h"
#include "lattice/lattice.h"

enum {
    NODE_UNUSABLE = 1u << 0,  /* E_SCHEMA, left out of the graph */
    NODE_DUPLICATE = 1u << 1, /* E_DUP_ID, left out of the graph */
    NODE_HASH_BAD = 1u << 2,  /* recomputed hash differs */
    NODE_HASH_ODD = 1u << 3,  /* `hash` is no 64 lower-case hex digits: text in odd[] */
    NODE_PREV_ODD = 1u << 4,  /* the same for prev_hash */
    NODE_HAS_SEAL = 1u << 5,
    NODE_SEAL_BAD = 1u << 6,
    NODE_ID_IS_HASH = 1u << 7,     /* node_id == hash, as text */
    NODE_GENESIS_PREV = 1u << 8,   /* prev_hash is "", GENESIS or 64 zeros */
    NODE_VERSION_BAD = 1u << 9,    /* E_VERSION */
    NODE_VERSION_EXACT = 1u << 10, /* exactly 2.0.0 */
    NODE_GENERATION_1 = 1u << 11,
    NODE_PARENTS_FIELD = 1u << 12,  /* `parents` is an array */
    NODE_MISSING_PARENT = 1u << 13, /* at least one entry resolved to nothing */
    NODE_PARENT_TWICE = 1u << 14,
    NODE_NO_ID = 1u << 15,        /* reported as #K */
    NODE_NO_AGENT = 1u << 16,     /* reported as ? */
    NODE_SCHEMA_MINOR = 1u << 17, /* usable E_SCHEMA found at load: detail in complaints */
    NODE_TIME_INT = 1u << 18,     /* time.i is exact */
    NODE_TIME_BIG = 1u << 19,     /* integer beyond int64: literal in odd[time.i] */
    NODE_ON_CYCLE = 1u << 20,     /* E_CYCLE */
    NODE_NO_ORDER = 1u << 21,     /* on or after a cycle: no topological place */
    NODE_FAILED = 1u << 22        /* its event says that something failed: content/failure.c */
};
#define NODE_FORK_SHIFT 24     /* 3 bits: cx_fork_type */
#define NODE_STRATEGY_SHIFT 27 /* 3 bits: 0 = none, else cx_merge_strategy + 1 */
#define NODE_LEFT_OUT (NODE_UNUSABLE | NODE_DUPLICATE)

/*
 * What walks over all nodes look at stands together, 48 bytes from the start: a large array begins
 * 16 bytes into a page, so these 64 bytes are one line of cache.
 */
typedef struct node {
    cx_digest hash; /* odd: the first 4 bytes are an index into odd[] */
    uint64_t offset;
    uint32_t line; /* 1-based, 0 beyond 2^32 */
    cx_node lineage;
    const char *id;
    uint32_t id_size;
    uint32_t agent; /* index, or NO_AGENT */
    int64_t seq;
    union {
        double d;
        int64_t i;
    } time;
    uint32_t first_parent; /* in parents[]; resolved ones, merge order */
    uint32_t parent_count;
    uint32_t flags;
    cx_digest prev;
} node;

#define NO_AGENT UINT32_MAX

typedef struct agent {
    cx_str name;
    uint32_t first; /* in branch_nodes[]: this agent's nodes by (seq, timestamp, id) */
    uint32_t count; /* nodes in the graph */
} agent;

/* A finding made while reading, with its own words. */
typedef struct complaint {
    cx_node node;
    cx_lattice_code code;
    cx_str detail;
} complaint;

/* A parents entry that resolves to nothing. */
typedef struct missing_parent {
    cx_node node;
    cx_str text;
} missing_parent;

/* See index.c. */
typedef struct node_index {
    uint64_t *slots;
    size_t size; /* 0 or a power of two */
    size_t used;
} node_index;

/* A parents entry that named nothing read so far. */
typedef struct pending_parent {
    cx_node node;
    uint32_t slot; /* in parents[] */
    cx_str text;
} pending_parent;

struct cx_lattice {
    const cx_alloc *alloc;
    cx_arena text; /* ids, names, odd strings, complaints, deltas */
    CX_VEC(node) nodes;
    CX_VEC(agent) agents;
    CX_VEC(uint32_t) parents;
    CX_VEC(cx_str) odd;
    CX_VEC(complaint) complaints;
    CX_VEC(missing_parent) missing;
    CX_VEC(pending_parent) pending; /* empty after link */
    CX_VEC(cx_str) deltas;          /* canonical state_delta of each node, with keep_deltas */
    CX_VEC(cx_digest) seals;        /* with keep_seals */
    node_index ids;
    node_index hashes; /* by `hash` text; empty until link needs it */
    uint64_t seed;
    cx_map agent_index; /* name -> index */

    /* Made by cx_lattice_link once everything is read. */
    uint32_t *children;     /* CSR over edges parent -> child, children in (timestamp, id) order */
    uint32_t *first_child;  /* count + 1 entries */
    uint32_t *branch_nodes; /* nodes of the graph, agent by agent */
    uint32_t branch_node_count;
    uint32_t *rank;     /* place in (timestamp, node_id) order; UINT32_MAX when left out */
    uint32_t *order;    /* topological order (§3.4), NODE_NO_ORDER nodes not in it */
    uint32_t *position; /* inverse of order; UINT32_MAX when it has none */
    uint32_t order_count;
    size_t edge_count;

    /* To read a node's source again. */
    const cx_io *io;
    char *path; /* NULL when over memory */
    size_t path_size;
    cx_buf slurped;  /* standard input and other streams are kept whole */
    cx_bytes memory; /* what offsets point into when there is no path */
    cx_json_limits limits;
    uint64_t max_nodes;
    unsigned threads; /* that may work at once, 1 or more */
    bool keep_deltas, keep_seals;
};

static inline const node *node_at(const cx_lattice *lattice, cx_node n)
{
    CX_DEBUG_ASSERT(n < lattice->nodes.count);
    return &lattice->nodes.items[n];
}

static inline bool in_graph(const node *n)
{
    return (n->flags & NODE_LEFT_OUT) == 0;
}

static inline cx_str node_id(const node *n)
{
    return (cx_str){n->id, n->id_size};
}

static inline const cx_node *node_parents(const cx_lattice *lattice, const node *n)
{
    return lattice->parents.items + n->first_parent;
}

/* As much of a text as a message shows; never half a character. */
static inline cx_str shortened(cx_str text, size_t most)
{
    if (text.size > most) {
        text.size = most;
        while (text.size != 0 && ((uint8_t)text.data[text.size] & 0xC0) == 0x80)
            text.size--;
    }
    return text;
}

static inline cx_fork_type node_fork(const node *n)
{
    return (cx_fork_type)(n->flags >> NODE_FORK_SHIFT & 7);
}

/* True and the strategy when event.merge_strategy names one. */
static inline bool node_strategy(const node *n, cx_merge_strategy *out)
{
    uint32_t bits = n->flags >> NODE_STRATEGY_SHIFT & 7;
    if (bits == 0)
        return false;
    *out = (cx_merge_strategy)(bits - 1);
    return true;
}

static inline const cx_node *node_children(const cx_lattice *lattice, cx_node n,
                                           uint32_t *out_count)
{
    *out_count = lattice->first_child[n + 1] - lattice->first_child[n];
    return lattice->children + lattice->first_child[n];
}

/* index.c */

CX_RESULT cx_lattice_index_reserve(node_index *index, const cx_alloc *alloc, cx_err *err);
/* So many ids will come, as far as anybody knows. */
void cx_lattice_index_expect(node_index *index, size_t count, const cx_alloc *alloc);
void cx_lattice_index_add(node_index *index, cx_node n, uint64_t hash);
void cx_lattice_index_prefetch(const node_index *index, uint64_t hash);
cx_node cx_lattice_index_find(const cx_lattice *lattice, cx_str id, uint64_t hash);
/* Makes find_hash fast; only while the lattice is being made. */
CX_RESULT cx_lattice_index_hashes(cx_lattice *lattice, cx_err *err);

/* graph.c */

/* (timestamp, node_id), exact.  After link use rank[] instead. */
int cx_lattice_node_compare(const cx_lattice *lattice, cx_node a, cx_node b);
int cx_lattice_time_compare(const cx_lattice *lattice, const node *a, const node *b);
/* Equal as texts. */
bool cx_lattice_prev_is_hash_of(const cx_lattice *lattice, const node *child, const node *parent);
cx_node cx_lattice_find_id(const cx_lattice *lattice, cx_str id);
/* By `hash` text, of several the smallest node_id. */
cx_node cx_lattice_find_hash(const cx_lattice *lattice, cx_str hash);
/* Resolves parents, finds order, cycles, branches, children.  Once, at the end of reading. */
CX_RESULT cx_lattice_link(cx_lattice *lattice, cx_err *err);
uint32_t cx_lattice_find_agent(const cx_lattice *lattice, cx_str name); /* or NO_AGENT */
/* Greatest (seq, timestamp, node_id) of an agent, CX_NODE_NONE without nodes. */
cx_node cx_lattice_head_of(const cx_lattice *lattice, uint32_t agent);
/* The hash field as text, into 64 bytes of scratch when it is ordinary. */
cx_str cx_lattice_hash_text(const cx_lattice *lattice, cx_node n, char scratch[64]);
cx_str cx_lattice_prev_text(const cx_lattice *lattice, cx_node n, char scratch[64]);
/* "#K" or the id; "?" or the agent; scratch for the former. */
cx_str cx_lattice_label(const cx_lattice *lattice, cx_node n, char scratch[16]);
cx_str cx_lattice_agent_label(const cx_lattice *lattice, cx_node n);

/* ancestors.c */

/*
 * Best common ancestors of `nodes` (§7): common ancestors, a node being its own, that are no proper
 * ancestors of another.  Latest in topological order first, into the arena.  All nodes must have a
 * topological place.
 */
CX_RESULT cx_lattice_common(const cx_lattice *lattice, const cx_node *nodes, size_t count,
                            cx_arena *arena, cx_node **out, size_t *out_count, cx_err *err);

/* compare.c */

/* Chains of lineage parents after the last common node, genesis first; *out_lca may be NONE. */
typedef struct lineage_paths {
    cx_node lca;
    const cx_node *path[2];
    size_t count[2];
} lineage_paths;
CX_RESULT cx_lattice_lineage(const cx_lattice *lattice, cx_node a, cx_node b, cx_arena *arena,
                             lineage_paths *out, cx_err *err);

#endif
