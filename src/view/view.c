/*
 * view.c - stores the layout of a whole picture, and extracts windows of it.
 *
 *   summary   {"agents","columns","errors","findings":[{"code","col","detail","id","lane","n"}],
 *              "fold","lanes":[{"agent","first","last","nodes","verdict"}],"nodes","rows",
 *              "time":[first,last],"verified","warnings"}
 *   overview  {"bins","cells":[lane,bin,nodes,marks, ..],"from","marks":[kind,column,node,
 *             ..],"to"}
 *   window    {"cut","edges":[parent,its column,its lane,child,its column,its lane,type,fork, ..],
 *              "from","nodes":{"code","col","fold","fork","label","lane","marks","n","span",
 *             "t"},"to"}
 *
 *   G1  columns never decrease from one row to the next, so a range of columns is a range of rows;
 *   G2  an edge with an end in the window is listed once.
 */
#include <math.h>

#include "json/api.h"
#include "lattice/answer.h"
#include "view/render.h"
#include "view/view_internal.h"

#define FINDINGS_TOLD 500
#define FINDING_DETAIL_BYTES 400

/* --- opening ---------------------------------------------------------------------------------- */

/* A folded stretch is a path of lineage from its first node to its last. */
static void fill_row_of(cx_lattice_view *view)
{
    const cx_lattice *lattice = view->lattice;
    for (uint32_t r = 0; r < view->l.row_count; r++) {
        const layout_row *row = &view->l.rows[r];
        for (cx_node at = row->last; at != row->node; at = node_at(lattice, at)->lineage)
            view->row_of[at] = r;
        view->row_of[row->node] = r;
    }
}

/* G1 */
static void fill_column_rows(cx_lattice_view *view)
{
    uint32_t next = 0;
    for (uint32_t r = 0; r < view->l.row_count; r++)
        while (next <= view->l.rows[r].column)
            view->column_row[next++] = r;
    while (next <= view->l.column_count)
        view->column_row[next++] = view->l.row_count;
}

static cx_status compute_view(cx_lattice_view *view, cx_err *err)
{
    const layout_options options = {.fold = view->fold, .report = view->report};
    CX_TRY(cx_lattice_layout_init(&view->l, view->lattice, &options, err));
    cx_arena *arena = &view->l.arena;
    view->row_of = CX_ARENA_ARRAY(arena, uint32_t, view->lattice->nodes.count + 1);
    view->column_row = CX_ARENA_ARRAY(arena, uint32_t, (size_t)view->l.column_count + 1);
    if (view->row_of == NULL || view->column_row == NULL)
        return cx_fail_nomem(err);
    fill_row_of(view);
    fill_column_rows(view);
    return CX_SUCCESS;
}

cx_status cx_lattice_view_open(const cx_lattice *lattice, const cx_lattice_report *report,
                               bool fold, cx_lattice_view **out, cx_err *err)
{
    CX_ASSERT(lattice != NULL && out != NULL);
    cx_lattice_view *view = cx_alloc_zeroed(lattice->alloc, 1, sizeof *view);
    if (view == NULL)
        return cx_fail_nomem(err);
    view->lattice = lattice;
    view->report = report;
    view->fold = fold;
    cx_status status = compute_view(view, err);
    if (cx_failed(status))
        cx_lattice_view_close(view);
    else
        *out = view;
    return status;
}

void cx_lattice_view_close(cx_lattice_view *view)
{
    if (view == NULL)
        return;
    cx_lattice_layout_done(&view->l);
    cx_alloc_free(view->lattice->alloc, view, sizeof *view);
}

/* --- pieces ----------------------------------------------------------------------------------- */

double cx_lattice_view_time(const cx_lattice *lattice, cx_node n)
{
    cx_lattice_node_info info;
    cx_lattice_node(lattice, n, &info);
    return info.timestamp;
}

void cx_lattice_view_put_double(cx_buf *out, double value)
{
    char text[CX_NUMBER_TEXT_SIZE];
    if (isfinite(value))
        cx_buf_add(out, text, cx_number_write_js(value, text));
    else
        cx_buf_add_z(out, "null");
}

void cx_lattice_view_put_time(cx_buf *out, const cx_lattice_view *view, cx_node n)
{
    if (view->l.timed)
        cx_lattice_view_put_double(out, cx_lattice_view_time(view->lattice, n));
    else
        cx_buf_add_z(out, "null");
}

void cx_lattice_view_put_node(cx_buf *out, const cx_lattice_view *view, cx_node n)
{
    const cx_lattice *lattice = view->lattice;
    cx_buf_add_z(out, "\"agent\":");
    cx_answer_str(out, cx_lattice_agent_label(lattice, n));
    cx_buf_printf(out, ",\"col\":%lu,\"id\":", (unsigned long)view_column(view, n));
    cx_answer_node_str(out, lattice, n);
    cx_buf_printf(out,
                  ",\"lane\":%lu,\"n\":%lu,\"seq\":%lld,\"t\":", (unsigned long)view_lane(view, n),
                  (unsigned long)n, (long long)node_at(lattice, n)->seq);
    cx_lattice_view_put_time(out, view, n);
}

cx_status cx_lattice_view_find(const cx_lattice *lattice, cx_str name, cx_node *out, cx_err *err)
{
    return cx_lattice_resolve(lattice, name, out, err);
}

cx_status cx_lattice_view_need_place(const cx_lattice *lattice, cx_node n, cx_err *err)
{
    if (lattice->position[n] != UINT32_MAX)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_NOT_FOUND, "NoState", CX_NO_OFFSET,
                      "this node has no topological place (it is unusable, repeated, on a cycle or "
                      "after one), so it has no state");
}

/* --- summary ---------------------------------------------------------------------------------- */

static uint32_t row_column(const cx_lattice_view *view, uint32_t row)
{
    return row < view->l.row_count ? view->l.rows[row].column : 0;
}

static void put_lanes(cx_buf *out, const cx_lattice_view *view)
{
    static const char *const verdicts[] = {"unchecked", "valid", "tainted", "invalid"};
    uint32_t count = view->l.lane_count;
    if (count > CX_LATTICE_VIEW_LANES_MAX)
        count = CX_LATTICE_VIEW_LANES_MAX;
    cx_buf_add_z(out, ",\"lanes\":[");
    for (uint32_t i = 0; i < count; i++) {
        const layout_lane *lane = &view->l.lanes[i];
        cx_buf_add_z(out, i == 0 ? "{\"agent\":" : ",{\"agent\":");
        cx_answer_str(out, layout_lane_name(view->lattice, lane));
        cx_buf_printf(out, ",\"first\":%lu,\"last\":%lu,\"nodes\":%lu,\"verdict\":\"%s\"}",
                      (unsigned long)row_column(view, lane->first),
                      (unsigned long)row_column(view, lane->last_use),
                      (unsigned long)lane->node_count, verdicts[lane->verdict]);
    }
    cx_buf_add_byte(out, ']');
}

static void put_finding(cx_buf *out, const cx_lattice_view *view, const cx_lattice_finding *finding,
                        bool first)
{
    cx_buf_printf(out, "%s{\"code\":\"%s\",\"detail\":", first ? "" : ",",
                  cx_lattice_code_name(finding->code));
    cx_answer_str(out, shortened(finding->detail, FINDING_DETAIL_BYTES));
    if (finding->node != CX_NODE_NONE) {
        cx_buf_add_byte(out, ',');
        cx_lattice_view_put_node(out, view, finding->node);
    }
    cx_buf_add_byte(out, '}');
}

static void put_findings(cx_buf *out, const cx_lattice_view *view)
{
    size_t counts[2], told = 0;
    const cx_lattice_finding *lists[2] = {cx_lattice_report_errors(view->report, &counts[0]),
                                          cx_lattice_report_warnings(view->report, &counts[1])};
    cx_buf_printf(out, ",\"errors\":%zu,\"findings\":[", counts[0]);
    for (size_t kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < counts[kind] && told < FINDINGS_TOLD; i++, told++)
            put_finding(out, view, &lists[kind][i], told == 0);
    cx_buf_printf(out, "],\"warnings\":%zu", counts[1]);
}

cx_status cx_lattice_view_summary(cx_buf *out, const cx_lattice_view *view, cx_err *err)
{
    CX_ASSERT(view != NULL && out != NULL);
    const cx_lattice *lattice = view->lattice;
    cx_buf_printf(out, "{\"agents\":%lu,\"columns\":%lu", (unsigned long)view->l.lane_count,
                  (unsigned long)view->l.column_count);
    put_findings(out, view);
    cx_buf_printf(out, ",\"fold\":%s", view->fold ? "true" : "false");
    put_lanes(out, view);
    cx_buf_printf(out, ",\"nodes\":%zu,\"rows\":%lu,\"time\":[", lattice->nodes.count,
                  (unsigned long)view->l.row_count);
    if (lattice->order_count != 0 && view->l.timed) {
        cx_lattice_view_put_double(out, cx_lattice_view_time(lattice, lattice->order[0]));
        cx_buf_add_byte(out, ',');
        cx_lattice_view_put_double(
            out, cx_lattice_view_time(lattice, lattice->order[lattice->order_count - 1]));
    }
    cx_buf_printf(out, "],\"verified\":%s}\n",
                  cx_lattice_report_verdict(view->report) == CX_HOLDS ? "true" : "false");
    return cx_buf_check(out, err);
}

/* --- overview --------------------------------------------------------------------------------- */

static void clip_range(const cx_lattice_view *view, const cx_lattice_view_range *range,
                       uint32_t *from, uint32_t *to)
{
    uint32_t columns = view->l.column_count;
    *to = range->to == 0 || range->to > columns ? columns : range->to;
    *from = range->from < *to ? range->from : *to;
}

typedef struct cell {
    uint32_t nodes;
    uint32_t marks; /* of layout_row, and fork types from bit 8 on */
} cell;

static void put_cells(cx_buf *out, const cx_lattice_view *view, const cell *cells, uint32_t bins)
{
    bool first = true;
    cx_buf_add_z(out, ",\"cells\":[");
    for (uint32_t lane = 0; lane < view->l.lane_count; lane++)
        for (uint32_t bin = 0; bin < bins; bin++) {
            const cell *c = &cells[(size_t)lane * bins + bin];
            if (c->nodes == 0)
                continue;
            cx_buf_printf(out, "%s%lu,%lu,%lu,%lu", first ? "" : ",", (unsigned long)lane,
                          (unsigned long)bin, (unsigned long)c->nodes, (unsigned long)c->marks);
            first = false;
        }
    cx_buf_add_byte(out, ']');
}

cx_status cx_lattice_view_overview(cx_buf *out, const cx_lattice_view *view,
                                   const cx_lattice_view_range *range, cx_err *err)
{
    uint32_t from, to, bins = range->count == 0 ? 400 : range->count;
    clip_range(view, range, &from, &to);
    if (bins > CX_LATTICE_VIEW_BINS_MAX)
        bins = CX_LATTICE_VIEW_BINS_MAX;
    if (bins > to - from)
        bins = to - from;
    size_t count = (size_t)bins * view->l.lane_count;
    cell *cells = cx_alloc_zeroed(view->lattice->alloc, count + 1, sizeof *cells);
    if (cells == NULL)
        return cx_fail_nomem(err);
    for (uint32_t r = bins == 0 ? 0 : view->column_row[from]; bins != 0 && r < view->column_row[to];
         r++) {
        const layout_row *row = &view->l.rows[r];
        uint32_t bin = (uint32_t)((uint64_t)(row->column - from) * bins / (to - from));
        cell *c = &cells[(size_t)row->lane * bins + bin];
        c->nodes += row->folded == 0 ? 1 : row->folded;
        c->marks |= row->marks | (row->fork != 0 ? 1u << (7 + row->fork) : 0);
    }
    cx_buf_printf(out, "{\"bins\":%lu", (unsigned long)bins);
    put_cells(out, view, cells, bins);
    cx_alloc_free(view->lattice->alloc, cells, (count + 1) * sizeof *cells);
    cx_buf_printf(out, ",\"from\":%lu", (unsigned long)from);
    cx_lattice_view_put_marks(out, view, from, to);
    cx_buf_printf(out, ",\"to\":%lu}\n", (unsigned long)to);
    return cx_buf_check(out, err);
}

/* --- window ----------------------------------------------------------------------------------- */

typedef struct window {
    const cx_lattice_view *view;
    cx_buf *out;
    uint32_t first, last; /* rows first .. last - 1 */
    uint32_t edges;
    bool cut;
} window;

static bool is_inside(const window *w, uint32_t row)
{
    return row >= w->first && row < w->last;
}

static void put_edge(window *w, const layout_edge *edge)
{
    const cx_lattice_view *view = w->view;
    if (w->edges == CX_LATTICE_VIEW_EDGES_MAX) {
        w->cut = true;
        return;
    }
    cx_buf_printf(w->out, "%s%lu,%lu,%lu,%lu,%lu,%lu,%u,%u", w->edges == 0 ? "" : ",",
                  (unsigned long)edge->parent, (unsigned long)view_column(view, edge->parent),
                  (unsigned long)view_lane(view, edge->parent), (unsigned long)edge->child,
                  (unsigned long)view_column(view, edge->child),
                  (unsigned long)view_lane(view, edge->child), edge->type, edge->fork);
    w->edges++;
}

/* The edge into a row that comes from this node. */
static const layout_edge *edge_from(const cx_lattice_view *view, uint32_t row, cx_node parent)
{
    const layout_row *to = &view->l.rows[row];
    for (uint32_t i = 0; i < to->edge_count; i++)
        if (view->l.edges[to->first_edge + i].parent == parent)
            return &view->l.edges[to->first_edge + i];
    return NULL;
}

/* G2 */
static void put_edges(window *w)
{
    const cx_lattice_view *view = w->view;
    const cx_lattice *lattice = view->lattice;
    cx_buf_add_z(w->out, "\"edges\":[");
    for (uint32_t r = w->first; r < w->last && !w->cut; r++) {
        const layout_row *row = &view->l.rows[r];
        for (uint32_t i = 0; i < row->edge_count; i++)
            put_edge(w, &view->l.edges[row->first_edge + i]);
        if (!in_graph(node_at(lattice, row->last)))
            continue;
        uint32_t count;
        const cx_node *children = node_children(lattice, row->last, &count);
        for (uint32_t i = 0; i < count && !w->cut; i++) {
            uint32_t to = view->row_of[children[i]];
            const layout_edge *edge = is_inside(w, to) ? NULL : edge_from(view, to, row->last);
            if (edge != NULL)
                put_edge(w, edge);
        }
    }
    cx_buf_add_byte(w->out, ']');
}

static unsigned long code_of(const layout_row *row)
{
    return row->code;
}
static unsigned long column_of(const layout_row *row)
{
    return row->column;
}
static unsigned long fold_of(const layout_row *row)
{
    return row->folded;
}
static unsigned long fork_of(const layout_row *row)
{
    return row->fork;
}
static unsigned long lane_of(const layout_row *row)
{
    return row->lane;
}
static unsigned long marks_of(const layout_row *row)
{
    return row->marks;
}
static unsigned long node_of(const layout_row *row)
{
    return row->node;
}

static void put_list(const window *w, const char *name, unsigned long (*of)(const layout_row *row))
{
    cx_buf_printf(w->out, "\"%s\":[", name);
    for (uint32_t r = w->first; r < w->last; r++)
        cx_buf_printf(w->out, "%s%lu", r == w->first ? "" : ",", of(&w->view->l.rows[r]));
    cx_buf_add_z(w->out, "],");
}

static void put_times(const window *w)
{
    cx_buf_add_z(w->out, "\"t\":[");
    for (uint32_t r = w->first; r < w->last; r++) {
        if (r != w->first)
            cx_buf_add_byte(w->out, ',');
        cx_lattice_view_put_time(w->out, w->view, w->view->l.rows[r].node);
    }
    cx_buf_add_byte(w->out, ']');
}

static cx_status put_labels(const window *w, cx_err *err)
{
    const cx_lattice *lattice = w->view->lattice;
    cx_arena arena;
    cx_status status = CX_SUCCESS;
    cx_arena_init(&arena, lattice->alloc, 0);
    cx_arena_mark empty = cx_arena_mark_now(&arena);
    cx_buf_add_z(w->out, "\"label\":[");
    for (uint32_t r = w->first; r < w->last && !cx_failed(status); r++) {
        cx_str label = {"", 0};
        const layout_row *row = &w->view->l.rows[r];
        if (row->folded == 0)
            status = cx_lattice_label_of(lattice, row->node, &arena, &label, err);
        if (r != w->first)
            cx_buf_add_byte(w->out, ',');
        cx_answer_str(w->out, label);
        cx_arena_reset(&arena, empty);
    }
    cx_buf_add_z(w->out, "],");
    cx_arena_done(&arena);
    return status;
}

cx_status cx_lattice_view_window(cx_buf *out, const cx_lattice_view *view,
                                 const cx_lattice_view_range *range, cx_err *err)
{
    uint32_t from, to;
    uint32_t most = range->count == 0 || range->count > CX_LATTICE_VIEW_ROWS_MAX
                        ? CX_LATTICE_VIEW_ROWS_MAX
                        : range->count;
    clip_range(view, range, &from, &to);
    window w = {
        .view = view, .out = out, .first = view->column_row[from], .last = view->column_row[to]};
    if (w.last - w.first > most) {
        w.last = w.first + most;
        w.cut = true;
        to = view->l.rows[w.last].column;
    }
    bool was_cut = w.cut;
    w.cut = false;
    cx_buf_add_byte(out, '{');
    put_edges(&w);
    cx_buf_printf(out, ",\"cut\":%s,\"from\":%lu,\"nodes\":{", was_cut || w.cut ? "true" : "false",
                  (unsigned long)from);
    put_list(&w, "code", code_of);
    put_list(&w, "col", column_of);
    put_list(&w, "fold", fold_of);
    put_list(&w, "fork", fork_of);
    if (range->labels && w.last - w.first <= CX_LATTICE_VIEW_LABELS_MAX)
        CX_TRY(put_labels(&w, err));
    put_list(&w, "lane", lane_of);
    put_list(&w, "marks", marks_of);
    put_list(&w, "n", node_of);
    if (range->spans)
        CX_TRY(cx_lattice_view_put_spans(out, view, w.first, w.last, err));
    put_times(&w);
    cx_buf_printf(out, "},\"to\":%lu}\n", (unsigned long)to);
    return cx_buf_check(out, err);
}
