/*
 * view_heat.c - a heat map of a history: agents from top to bottom, time from left to right.
 *
 *   {"axis","bins","cells":[lane,bin,nodes,value,hottest node, ..],"from","lanes","max","to",
 *    "total"}
 *
 * One value is summed over the nodes of a cell: branches beyond the first (divergence), seconds
 * since the node before (time), cents (cost), decisions that were overridden (overrides).
 */
#include <math.h>

#include "json/api.h"
#include "lattice/answer.h"
#include "view/view_internal.h"

typedef struct heat_cell {
    double value, hottest_value;
    uint32_t nodes;
    cx_node hottest;
} heat_cell;

typedef struct heat {
    const cx_lattice_view *view;
    const cx_lattice_view_heat_asked *asked;
    double from, to;
    bool by_order; /* asked for, or there are no times */
    uint32_t bins, lanes;
    heat_cell *cells;
} heat;

/* --- one node --------------------------------------------------------------------------------- */

static double sum_member(cx_str text, cx_str name)
{
    double sum = 0;
    size_t at = 0;
    for (cx_str rest; (rest = cx_lattice_next_member(text, name, &at)).data != NULL;) {
        double value = 0;
        size_t size = 0;
        while (size < rest.size && rest.data[size] != 0 &&
               strchr("0123456789+-.eE", rest.data[size]) != NULL)
            size++;
        if (!cx_number_parse(cx_str_from(rest.data, size), &value))
            continue;
        sum += isfinite(value) ? value : 0;
    }
    return sum;
}

static double time_since(const cx_lattice_view *view, cx_node n)
{
    cx_node before = node_at(view->lattice, n)->lineage;
    if (before == CX_NODE_NONE || !view->l.timed)
        return 0;
    double passed =
        cx_lattice_view_time(view->lattice, n) - cx_lattice_view_time(view->lattice, before);
    return isfinite(passed) && passed > 0 ? passed : 0;
}

static double value_of(const heat *h, cx_node n)
{
    const cx_lattice *lattice = h->view->lattice;
    cx_str delta = lattice->deltas.count > n ? lattice->deltas.items[n] : CX_STR("");
    uint32_t children = 0;
    switch (h->asked->layer) {
    case CX_HEAT_DIVERGENCE:
        if (in_graph(node_at(lattice, n)))
            (void)node_children(lattice, n, &children);
        return children > 1 ? children - 1 : 0;
    case CX_HEAT_TIME: return time_since(h->view, n);
    case CX_HEAT_COST:
        return sum_member(delta, CX_STR("cost_cents")) +
               100 * sum_member(delta, CX_STR("cost_usd"));
    case CX_HEAT_OVERRIDES: break;
    }
    return cx_lattice_overrides(lattice, n);
}

/* --- all of them ------------------------------------------------------------------------------ */

/* A node's position on the axis; by order, nodes of the same time have different positions. */
static double place_of(const heat *h, uint32_t order)
{
    const cx_lattice *lattice = h->view->lattice;
    return h->by_order ? (double)order : cx_lattice_view_time(lattice, lattice->order[order]);
}

static void find_range(heat *h)
{
    double first = INFINITY, last = -INFINITY;
    for (uint32_t i = 0; i < h->view->lattice->order_count; i++) {
        double at = place_of(h, i);
        first = at < first ? at : first;
        last = at > last ? at : last;
    }
    bool any = first <= last;
    h->from = isfinite(h->asked->from) ? h->asked->from : any ? first : 0;
    h->to = isfinite(h->asked->to) ? h->asked->to : any ? last : 0;
}

static void add_nodes(heat *h)
{
    const cx_lattice *lattice = h->view->lattice;
    double width = h->to - h->from;
    for (uint32_t i = 0; i < lattice->order_count; i++) {
        cx_node n = lattice->order[i];
        double at = place_of(h, i);
        uint32_t lane = view_lane(h->view, n);
        if (!(at >= h->from && at <= h->to) || lane >= h->lanes)
            continue;
        uint32_t bin = width > 0 ? (uint32_t)((at - h->from) / width * h->bins) : 0;
        heat_cell *cell = &h->cells[(size_t)lane * h->bins + (bin < h->bins ? bin : h->bins - 1)];
        double value = value_of(h, n);
        if (cell->nodes++ == 0 || value > cell->hottest_value) {
            cell->hottest = n;
            cell->hottest_value = value;
        }
        cell->value += value;
    }
}

static void put_heat(cx_buf *out, const heat *h)
{
    double most = 0, total = 0;
    bool first = true;
    cx_buf_printf(out, "{\"axis\":\"%s\",\"bins\":%lu,\"cells\":[", h->by_order ? "order" : "time",
                  (unsigned long)h->bins);
    for (size_t i = 0; i < (size_t)h->lanes * h->bins; i++) {
        const heat_cell *cell = &h->cells[i];
        if (cell->nodes == 0)
            continue;
        cx_buf_printf(out, "%s%lu,%lu,%lu,", first ? "" : ",", (unsigned long)(i / h->bins),
                      (unsigned long)(i % h->bins), (unsigned long)cell->nodes);
        cx_lattice_view_put_double(out, cell->value);
        cx_buf_printf(out, ",%lu", (unsigned long)cell->hottest);
        most = cell->value > most ? cell->value : most;
        total += cell->value;
        first = false;
    }
    cx_buf_add_z(out, "],\"from\":");
    cx_lattice_view_put_double(out, h->from);
    cx_buf_printf(out, ",\"lanes\":%lu,\"max\":", (unsigned long)h->lanes);
    cx_lattice_view_put_double(out, most);
    cx_buf_add_z(out, ",\"to\":");
    cx_lattice_view_put_double(out, h->to);
    cx_buf_add_z(out, ",\"total\":");
    cx_lattice_view_put_double(out, total);
    cx_buf_add_z(out, "}\n");
}

cx_status cx_lattice_view_heat(cx_buf *out, const cx_lattice_view *view,
                               const cx_lattice_view_heat_asked *asked, cx_err *err)
{
    CX_ASSERT(out != NULL);
    heat h = {.view = view, .asked = asked, .bins = asked->bins, .lanes = view->l.lane_count};
    h.by_order = asked->by_order || !view->l.timed;
    if (h.bins == 0 || h.bins > CX_LATTICE_VIEW_HEAT_BINS_MAX)
        h.bins = 120;
    if (h.lanes > CX_LATTICE_VIEW_HEAT_LANES_MAX)
        h.lanes = CX_LATTICE_VIEW_HEAT_LANES_MAX;
    find_range(&h);
    size_t count = (size_t)h.bins * h.lanes + 1;
    h.cells = cx_alloc_zeroed(view->lattice->alloc, count, sizeof *h.cells);
    if (h.cells == NULL)
        return cx_fail_nomem(err);
    add_nodes(&h);
    put_heat(out, &h);
    cx_alloc_free(view->lattice->alloc, h.cells, count * sizeof *h.cells);
    return cx_buf_check(out, err);
}
