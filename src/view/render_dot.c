/*
 * render_dot.c - the picture as a Graphviz graph: one cluster per agent, time from left to right.
 *
 * Vertices are named by us (r0, r1: rows of the whole picture), so that no text of the file becomes
 * a name; it is only used in labels (RENDER_DOT).  An edge's end outside the window is a small grey
 * point.
 */
#include "view/render.h"

static const char *const lane_colours[] = {"#6E56CF", "#0B8A8F", "#A66A00", "#B83280",
                                           "#4A6785", "#6B7A12", "#8A4B2A", "#5B6EE1"};

static const char *colour_of(uint32_t lane)
{
    return lane_colours[lane % CX_COUNT_OF(lane_colours)];
}

static const char *fork_style(unsigned fork)
{
    switch (fork) {
    case CX_FORK_NATURAL: return "color=\"#009E73\",style=bold,label=\"natural\"";
    case CX_FORK_OBSERVATION:
        return "color=\"#0072B2\",style=\"bold,dashed\",label=\"observation\"";
    case CX_FORK_INJECTION: return "color=\"#D55E00\",style=\"bold,dotted\",label=\"injection\"";
    default: return "color=\"#777777\",style=bold";
    }
}

static void add_label(cx_buf *out, cx_str text)
{
    (void)cx_lattice_render_text(out, text, RENDER_DOT, RENDER_NO_LIMIT);
}

static void add_shape(cx_buf *out, const layout_row *row)
{
    const char *shape = "ellipse";
    if (row->folded != 0)
        shape = "box";
    else if ((row->marks & LAYOUT_IS_MERGE) != 0)
        shape = "diamond";
    else if (row->fork != CX_FORK_NONE)
        shape = "doublecircle";
    else if ((row->marks & LAYOUT_IS_HEAD) != 0)
        shape = "rarrow";
    cx_buf_printf(out, "shape=%s", shape);
    if ((row->marks & LAYOUT_HAS_ERROR) != 0)
        cx_buf_add_z(out, ",color=\"#D11A2A\",penwidth=3");
}

static void add_vertex(cx_buf *out, const picture *pic, const layout_row *row)
{
    char scratch[64];
    const node *n = node_at(pic->lattice, row->node);
    cx_str id = cx_lattice_label(pic->lattice, row->node, scratch);
    cx_buf_printf(out, "    r%u [label=\"",
                  pic->layout->first + (uint32_t)(row - pic->layout->rows));
    if (row->folded != 0) {
        cx_buf_printf(out, "\xE2\x8B\xAF %u nodes", row->folded);
    } else {
        add_label(out, cx_lattice_render_short_id(id));
        if (row->code != CX_LATTICE_CODE_COUNT)
            cx_buf_printf(out, "\\n%s", cx_lattice_code_name((cx_lattice_code)row->code));
    }
    cx_buf_add_z(out, "\",tooltip=\"");
    add_label(out, id);
    cx_buf_add_z(out, "\\n");
    add_label(out, cx_lattice_agent_label(pic->lattice, row->node));
    cx_buf_add_byte(out, '#');
    cx_buf_add_i64(out, n->seq);
    if (row->label.size != 0) {
        cx_buf_add_z(out, "\\n");
        add_label(out, row->label);
    }
    cx_buf_add_z(out, "\",");
    add_shape(out, row);
    cx_buf_add_z(out, "];\n");
}

static void add_cluster(cx_buf *out, const picture *pic, uint32_t lane, const uint32_t *next,
                        uint32_t first)
{
    const layout *l = pic->layout;
    cx_buf_printf(out, "  subgraph cluster_%u {\n    label=\"", lane);
    add_label(out, layout_lane_name(pic->lattice, &l->lanes[lane]));
    const char *verdict = cx_lattice_render_verdict(l->lanes[lane].verdict);
    if (verdict[0] != '\0')
        cx_buf_printf(out, ": %s", verdict);
    cx_buf_printf(out,
                  "\"; color=\"%s\"; fontcolor=\"%s\";\n"
                  "    node [fillcolor=\"%s22\",color=\"%s\"];\n",
                  colour_of(lane), colour_of(lane), colour_of(lane), colour_of(lane));
    for (uint32_t r = first; r != LAYOUT_OUTSIDE; r = next[r])
        add_vertex(out, pic, &l->rows[r]);
    cx_buf_add_z(out, "  }\n");
}

/* Rows as lists by lane, so that clusters cost O(rows) together. */
static cx_status add_clusters(cx_buf *out, const picture *pic, cx_err *err)
{
    const layout *l = pic->layout;
    cx_arena arena;
    cx_arena_init(&arena, pic->lattice->alloc, 0);
    uint32_t *first = CX_ARENA_ARRAY(&arena, uint32_t, l->lane_count);
    uint32_t *next = CX_ARENA_ARRAY(&arena, uint32_t, l->row_count);
    if (first == NULL || next == NULL) {
        cx_arena_done(&arena);
        return cx_fail_nomem(err);
    }
    for (uint32_t lane = 0; lane < l->lane_count; lane++)
        first[lane] = LAYOUT_OUTSIDE;
    for (uint32_t r = l->row_count; r-- > 0;) {
        next[r] = first[l->rows[r].lane];
        first[l->rows[r].lane] = r;
    }
    for (uint32_t lane = 0; lane < l->lane_count; lane++) {
        if (first[lane] != LAYOUT_OUTSIDE)
            add_cluster(out, pic, lane, next, first[lane]);
    }
    cx_arena_done(&arena);
    return CX_SUCCESS;
}

static void add_edge(cx_buf *out, const picture *pic, const layout_edge *edge, uint32_t number)
{
    const layout *l = pic->layout;
    bool above = edge->from == LAYOUT_OUTSIDE;
    bool below = edge->to == LAYOUT_OUTSIDE;
    if (above || below)
        cx_buf_printf(out, "  out%u [shape=point,color=\"#999999\"];\n", number);
    if (above)
        cx_buf_printf(out, "  out%u", number);
    else
        cx_buf_printf(out, "  r%u", l->first + edge->from);
    if (below)
        cx_buf_printf(out, " -> out%u [", number);
    else
        cx_buf_printf(out, " -> r%u [", l->first + edge->to);
    switch (edge->type) {
    case LAYOUT_LINEAGE: cx_buf_add_z(out, "penwidth=2,weight=8"); break;
    case LAYOUT_FORK: cx_buf_add_z(out, fork_style(edge->fork)); break;
    case LAYOUT_MERGE: cx_buf_add_z(out, "color=\"#555555\""); break;
    default: cx_buf_add_z(out, "color=\"#999999\",style=dotted"); break;
    }
    /* An edge against the order is part of a cycle; it must not reverse the drawing. */
    if (!above && !below && edge->from >= edge->to)
        cx_buf_add_z(out, ",constraint=false,fontcolor=\"#D11A2A\",xlabel=\"cycle\"");
    cx_buf_add_z(out, "];\n");
}

cx_status cx_lattice_render_dot(cx_buf *out, const picture *pic, cx_err *err)
{
    const layout *l = pic->layout;
    cx_buf_add_z(out, "digraph lattice {\n"
                      "  graph [rankdir=LR,fontname=\"sans-serif\",nodesep=0.2,ranksep=0.3];\n"
                      "  node [style=filled,fontname=\"sans-serif\",fontsize=10];\n"
                      "  edge [fontname=\"sans-serif\",fontsize=9,arrowsize=0.6];\n");
    CX_TRY(add_clusters(out, pic, err));
    for (uint32_t i = 0; i < l->edge_count; i++)
        add_edge(out, pic, &l->edges[i], i);
    cx_buf_add_z(out, "}\n");
    return cx_buf_check(out, err);
}
