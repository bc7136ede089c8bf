/*
 * view.h - a lattice as a page shows it: the layout is computed once, and a window costs what the
 * window contains (docs/formats/view.md).
 *
 *     cx_lattice_view_open        computes and stores lanes, columns, edges of the whole picture
 *     cx_lattice_view_snapshots        marks the nodes that snapshots cover
 *     cx_lattice_view_summary     lanes, extent, verdict, findings
 *     cx_lattice_view_overview    counts of nodes and marks in bins: for zoomed-out pictures
 *     cx_lattice_view_window      nodes and edges between two columns
 *     cx_lattice_view_node        one node: event, changes, parents, children, findings
 *     cx_lattice_view_values      one level of the state at a node
 *     cx_lattice_view_writes      where a key got its value: changes before a node, and the next
 *                                 one after it
 *     cx_lattice_view_said        where a text was said before a node
 *     cx_lattice_view_reach       what follows from a node, and what carries its text
 *     cx_lattice_view_compare     two nodes, or two histories, aligned from where they diverge
 *     cx_lattice_view_heat        a heat map of branches, time, cost or overrides
 *
 * A *column* is a step of the picture from left to right: nodes of one column are of different
 * agents and none is a parent of another; a folded stretch takes one column.  Nodes are named by
 * number ("#K", their place in the file), which damaged ones have too.
 *
 * Invariants (cited by tests and asserts):
 *
 *   I1  An answer is one line of JSON, ended by LF; text of the file is data in it and never
 *       markup.
 *   I2  A view is read-only after open and hold: any number of threads may query it.
 *   I3  Every answer is bounded by the CX_LATTICE_VIEW_.._MAX below; a cut answer says so.
 */
#ifndef CX_VIEW_VIEW_H
#define CX_VIEW_VIEW_H

#include <cortex/lattice.h>

#include "base/api.h"

#define CX_LATTICE_VIEW_BINS_MAX 2000
#define CX_LATTICE_VIEW_ROWS_MAX 4000   /* nodes of one window */
#define CX_LATTICE_VIEW_EDGES_MAX 16000 /* edges of one window */
#define CX_LATTICE_VIEW_LABELS_MAX 400  /* nodes of a window with labels */
#define CX_LATTICE_VIEW_LANES_MAX 5000  /* lanes listed; the others are counted */
#define CX_LATTICE_VIEW_VALUES_MAX 500  /* members of one level of a state */
#define CX_LATTICE_VIEW_CHANGES_MAX 500 /* changes listed for a key or a node */
#define CX_LATTICE_VIEW_STEPS_MAX 400   /* rows of a comparison */
#define CX_LATTICE_VIEW_HEAT_BINS_MAX 400
#define CX_LATTICE_VIEW_HEAT_LANES_MAX 500
#define CX_LATTICE_VIEW_VALUE_BYTES 2048 /* bytes of a value in a list; longer ones are cut */
#define CX_LATTICE_VIEW_WHOLE_BYTES ((size_t)256 << 10) /* bytes of a single value or an event */

typedef struct cx_lattice_view cx_lattice_view;

/* Lattice and report are borrowed and outlive it. */
CX_RESULT cx_lattice_view_open(const cx_lattice *lattice, const cx_lattice_report *report,
                               bool fold, cx_lattice_view **out, cx_err *err);
void cx_lattice_view_close(cx_lattice_view *view); /* NULL is fine */

/* A snapshot: a state that the ledger has, so that it can be proven. */
typedef struct cx_lattice_view_snapshot {
    cx_node node; /* the newest event that it covers */
    uint64_t number;
    uint64_t entries; /* size of the journal then */
    int64_t created_ns;
    cx_str actor; /* whose journal */
    cx_str root;  /* overall root, hex */
    bool sealed;
} cx_lattice_view_snapshot;

/* Call it before the first query.  The list is copied; its texts are borrowed and must outlive the
 * view.  A node that does not exist is refused with CX_E_USAGE. */
CX_RESULT cx_lattice_view_snapshots(cx_lattice_view *view,
                                    const cx_lattice_view_snapshot *snapshots, size_t count,
                                    cx_err *err);

CX_RESULT cx_lattice_view_summary(cx_buf *out, const cx_lattice_view *view, cx_err *err);

typedef struct cx_lattice_view_range {
    uint32_t from, to; /* columns from .. to - 1; to 0 = all */
    uint32_t count;    /* overview: bins; window: maximum of nodes; 0 = the limit */
    bool labels;       /* window: with the labels of events */
    bool spans;        /* window: with when each began and ended */
} cx_lattice_view_range;

CX_RESULT cx_lattice_view_overview(cx_buf *out, const cx_lattice_view *view,
                                   const cx_lattice_view_range *range, cx_err *err);
CX_RESULT cx_lattice_view_window(cx_buf *out, const cx_lattice_view *view,
                                 const cx_lattice_view_range *range, cx_err *err);

/* The node of a name as cx_lattice_find knows it, or of "#K"; CX_E_NOT_FOUND "NoNode". */
CX_RESULT cx_lattice_view_find(const cx_lattice *lattice, cx_str name, cx_node *out, cx_err *err);

/* `states` must cover all nodes.  A node without a topological place has an event, but no changes.
 */
CX_RESULT cx_lattice_view_node(cx_buf *out, const cx_lattice_view *view, const cx_states *states,
                               cx_node node, cx_err *err);

#define CX_LATTICE_VIEW_READ_MAX 200
#define CX_LATTICE_VIEW_READ_BYTES ((size_t)4 << 20)

typedef struct cx_lattice_view_steps_asked {
    uint32_t from;  /* place in topological order of the first one */
    uint32_t count; /* steps at most; 0 = CX_LATTICE_VIEW_READ_MAX */
    cx_node node;   /* from `before` places before this one on, instead; CX_NODE_NONE = none */
    uint32_t before;
    bool all; /* also records that say nothing */
} cx_lattice_view_steps_asked;

/* What was said and done, in topological order, readable; fewer than asked for when they are
 * large. */
CX_RESULT cx_lattice_view_steps(cx_buf *out, const cx_lattice_view *view,
                                const cx_lattice_view_steps_asked *asked, cx_err *err);

#define CX_LATTICE_VIEW_IMAGES_MAX 64 /* of one event */

typedef enum cx_view_picture {
    CX_VIEW_NO_PICTURE, /* a file, not to be shown */
    CX_VIEW_PNG,
    CX_VIEW_JPEG,
    CX_VIEW_GIF,
    CX_VIEW_WEBP
} cx_view_picture;

/* Appends the bytes of the index-th image of a node's event; what it is, its own bytes say.
 * CX_E_NOT_FOUND when there is none. */
CX_RESULT cx_lattice_view_image(cx_buf *out, const cx_lattice_view *view, cx_node node,
                                uint32_t index, cx_view_picture *out_picture, cx_err *err);

typedef struct cx_lattice_view_level {
    cx_str pointer; /* RFC 6901; empty = the four sections */
    cx_str after;   /* continue after this key; data NULL = from the first */
    uint32_t count; /* 0 = CX_LATTICE_VIEW_VALUES_MAX */
} cx_lattice_view_level;

/* CX_E_NOT_FOUND when nothing exists at the pointer. */
CX_RESULT cx_lattice_view_values(cx_buf *out, const cx_lattice_view *view, const cx_states *states,
                                 cx_node node, const cx_lattice_view_level *level, cx_err *err);

/* A top-level key of "memory" or "beliefs". */
CX_RESULT cx_lattice_view_writes(cx_buf *out, const cx_lattice_view *view, const cx_states *states,
                                 cx_node node, cx_str section, cx_str key, cx_err *err);

/* Where a text was said before a node: cx_lattice_answer_said. */
CX_RESULT cx_lattice_view_said(cx_buf *out, const cx_lattice_view *view, cx_node node, cx_str text,
                               cx_err *err);

#define CX_LATTICE_VIEW_HITS_MAX 1000 /* nodes that have some words */

/* The nodes that have all words: cx_lattice_answer_grep. */
CX_RESULT cx_lattice_view_grep(cx_buf *out, const cx_lattice_view *view, const cx_str *words,
                               size_t word_count, cx_err *err);

#define CX_LATTICE_VIEW_FOLLOWS_MAX 20000 /* numbers of nodes that follow */

/* What a node reached: reads every node again. */
CX_RESULT cx_lattice_view_reach(cx_buf *out, const cx_lattice_view *view, cx_node node,
                                cx_err *err);

/* --- what a page carries with it -------------------------------------------------------------- */

#define CX_LATTICE_VIEW_CARRIED_NODES 2000
#define CX_LATTICE_VIEW_CARRIED_BYTES ((size_t)24 << 20)

typedef struct cx_lattice_view_part {
    cx_str title;
    uint32_t first; /* row of the picture */
    uint32_t count; /* rows; 0 = CX_LATTICE_VIEW_CARRIED_NODES, which is the most */
} cx_lattice_view_part;

/*
 * A part of a history for a page without a server: summary, picture, each node with its changes,
 * and the state at the part's edge.  It contains no '<', so it can be embedded in HTML. *out_nodes
 * = the number of nodes in it.
 */
CX_RESULT cx_lattice_view_carry(cx_buf *out, const cx_lattice_view *view, const cx_states *states,
                                const cx_lattice_view_part *part, uint32_t *out_nodes, cx_err *err);

/* One of the two compared sides. */
typedef struct cx_lattice_view_side {
    const cx_lattice_view *view;
    const cx_states *states;
    cx_node
        node; /* compared up to this node, from the common ancestor or the first; it has a topological place.  CX_NODE_NONE = the whole history, in its order */
    cx_str id; /* treated as equal to the other side's id in texts; empty = none */
} cx_lattice_view_side;

/* Two nodes of a history, or two histories; rows from .. from + count - 1 of the alignment (`to`
 * and `labels` are ignored).  CX_E_NOT_FOUND "NoState", "NoNode" (no events). */
CX_RESULT cx_lattice_view_compare(cx_buf *out, const cx_lattice_view_side sides[2],
                                  const cx_lattice_view_range *rows, cx_err *err);

typedef enum cx_heat_layer {
    CX_HEAT_DIVERGENCE, /* branches beyond the first */
    CX_HEAT_TIME,       /* seconds since the node before by lineage */
    CX_HEAT_COST,       /* cents: members cost_cents and cost_usd of the changes */
    CX_HEAT_OVERRIDES   /* members action_was_overridden that are true */
} cx_heat_layer;

typedef struct cx_lattice_view_heat_asked {
    cx_heat_layer layer;
    bool by_order;   /* by place in order; else by time */
    double from, to; /* on that axis, both included; NAN = all */
    uint32_t bins;   /* 0 = 120 */
} cx_lattice_view_heat_asked;

/* Visits all nodes: the cost is proportional to the history's length. */
CX_RESULT cx_lattice_view_heat(cx_buf *out, const cx_lattice_view *view,
                               const cx_lattice_view_heat_asked *asked, cx_err *err);

#endif
