/*
 * layout.h - the layout of a picture of a lattice, computed once for all output forms.
 *
 * A row is a node, or a folded stretch of quiet nodes; rows go down in topological order (§3.4).
 * Nodes without a topological place (on or after a cycle, unusable, repeated) follow at the end in
 * the order of the file: a picture of damaged evidence must not hide the damage.  A lane is an
 * agent.  Only rows inside the window are stored; edges that leave it are marked.
 */
#ifndef CX_VIEW_LAYOUT_H
#define CX_VIEW_LAYOUT_H

#include "lattice/internal.h"

#define LAYOUT_OUTSIDE UINT32_MAX /* a row above or below the window */
#define LAYOUT_FOLD_MIN 8         /* shorter quiet stretches are shown in full */

typedef enum layout_edge_type {
    LAYOUT_LINEAGE, /* to the lineage parent, within one agent */
    LAYOUT_FORK,    /* to the lineage parent, where a branch or a self-fork begins */
    LAYOUT_MERGE,   /* to any other parent whose branch is merged here */
    LAYOUT_CAUSAL   /* back to an older node of the same agent */
} layout_edge_type;

enum {
    LAYOUT_IS_MERGE = 1 << 0, /* has an edge of type LAYOUT_MERGE */
    LAYOUT_IS_HEAD = 1 << 1,
    LAYOUT_IS_ROOT = 1 << 2, /* has no resolved parents */
    LAYOUT_HAS_ERROR = 1 << 3,
    LAYOUT_HAS_WARNING = 1 << 4,
    LAYOUT_NO_ORDER = 1 << 5,    /* on or after a cycle */
    LAYOUT_LEFT_OUT = 1 << 6,    /* unusable, or a repeated node_id */
    LAYOUT_IS_OVERRIDE = 1 << 7, /* see cx_lattice_overrides; only when deltas were kept */
    LAYOUT_IS_FAILED = 1 << 11   /* its event says that something failed; after bits of forks */
};

typedef struct layout_row {
    cx_node node;    /* of a folded stretch the first */
    cx_node last;    /* of a folded stretch the last, else the same */
    uint32_t folded; /* nodes of the stretch, 0 = an ordinary row */
    uint32_t lane;
    uint32_t column;     /* rows with the same column are side by side, see layout.columns */
    uint32_t first_edge; /* into this row, in edges[] */
    uint32_t edge_count;
    uint32_t finding_count;
    uint16_t marks;
    uint8_t code; /* cx_lattice_code of the first error, else of the first warning */
    uint8_t fork; /* cx_fork_type */
    cx_str label; /* the event's own description; empty when not read */
} layout_row;

typedef struct layout_edge {
    cx_node parent, child;
    uint32_t from, to; /* rows of the window, or LAYOUT_OUTSIDE */
    uint8_t type;      /* layout_edge_type */
    uint8_t fork;      /* cx_fork_type of a LAYOUT_FORK edge */
} layout_edge;

typedef enum layout_verdict {
    LAYOUT_UNCHECKED,
    LAYOUT_VALID,
    LAYOUT_TAINTED,
    LAYOUT_INVALID
} layout_verdict;

typedef struct layout_lane {
    uint32_t agent; /* or NO_AGENT */
    uint32_t node_count;
    uint32_t first, last;   /* rows of the whole picture, not of the window */
    uint32_t last_use;      /* the last row that has an edge from or to this lane */
    bool in_window;         /* a node of it, or an edge to one of its nodes, is in the window */
    layout_verdict verdict; /* of the branch */
} layout_lane;

typedef struct layout {
    cx_arena arena;
    layout_lane *lanes; /* in order of first appearance */
    uint32_t lane_count;
    uint32_t row_total;  /* rows of the whole picture */
    uint32_t first;      /* first row of the window */
    layout_row *rows;    /* of the window */
    uint32_t row_count;  /* in the window */
    layout_edge *edges;  /* edges into rows, row by row, then those that leave the window below */
    uint32_t edge_count; /* all */
    uint32_t into_count; /* those into rows */
    /*
     * For horizontal pictures: consecutive rows share a column as long as they are of different
     * lanes and none is a parent of another.
     */
    uint32_t column_count;
    uint32_t *lane_of; /* by agent; agent_count is NO_AGENT's */
    bool timed;        /* see cx_lattice_is_timed */
} layout;

typedef struct layout_options {
    uint32_t first;
    uint32_t max_rows; /* 0 = all */
    bool fold;
    bool labels;                     /* read the events of the window's rows again */
    const cx_lattice_report *report; /* or NULL */
} layout_options;

/* Uses O(nodes) of memory, and releases all but the window's before returning. */
CX_RESULT cx_lattice_layout_init(layout *l, const cx_lattice *lattice,
                                 const layout_options *options, cx_err *err);
void cx_lattice_layout_done(layout *l);

/* A short description of a node's event; empty when it has none or cannot be read. */
CX_RESULT cx_lattice_label_of(const cx_lattice *lattice, cx_node n, cx_arena *arena, cx_str *out,
                              cx_err *err);

/* The same, and the event's kind; both from the arena, empty when absent. */
CX_RESULT cx_lattice_words_of(const cx_lattice *lattice, cx_node n, cx_arena *arena,
                              cx_str *out_kind, cx_str *out_label, cx_err *err);

/*
 * Whether the times are those of a clock.  When all of them are whole numbers below 10^8 (before
 * 1973), they count steps, as those of imports without times do (imports.md §1.9): they are an
 * order, and differences between them are no durations.
 */
bool cx_lattice_is_timed(const cx_lattice *lattice);

/*
 * How many overridden decisions the node records: members "action_was_overridden" that are true (a
 * conscience, trace.md §7), and in the branch of a run an approval by which a person allowed what
 * the contract forbids (run.md).  0 without deltas.
 */
uint32_t cx_lattice_overrides(const cx_lattice *lattice, cx_node n);
/* The text after the next `"NAME":` in canonical JSON, searching from `*at`; data NULL = no more.
 */
cx_str cx_lattice_next_member(cx_str text, cx_str name, size_t *at);

static inline uint32_t layout_slot_of(const cx_lattice *lattice, uint32_t who)
{
    return who == NO_AGENT ? (uint32_t)lattice->agents.count : who;
}

static inline uint32_t layout_lane_of(const layout *l, const cx_lattice *lattice, cx_node n)
{
    return l->lane_of[layout_slot_of(lattice, node_at(lattice, n)->agent)];
}

static inline cx_str layout_lane_name(const cx_lattice *lattice, const layout_lane *lane)
{
    return lane->agent == NO_AGENT ? (cx_str){"?", 1} : lattice->agents.items[lane->agent].name;
}

#endif
