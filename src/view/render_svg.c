/*
 * render_svg.c - the picture as one self-contained SVG: agents as lanes, time from left to right.
 *
 * No script, no font and no external link; colours follow the reader's light or dark scheme. Text
 * of the file is only used as escaped text (RENDER_XML).  All numbers are whole pixels, so the
 * bytes depend on nothing but the lattice.  Drawn in this order: bands, time, edges, nodes, legend;
 * a node's <title> is what a pointer over it shows.
 */
#include "view/render.h"

#include <math.h>

#define LANE_COLOURS 8
#define LANE_HEIGHT 60
#define TOP 62
#define STEP_MIN 38
#define STEP_MAX 76
#define ID_COLUMNS_MAX 10
#define NAME_COLUMNS_MAX 24
#define CODE_COLUMNS 8 /* space for most names of findings */
#define WIDTH_MIN 760
/* Distance from a lane of the long edges along it: above its nodes, or below their ids. */
#define CORRIDOR_ABOVE 20
#define CORRIDOR_BELOW 31

static const char style[] =
    "<style>\n"
    "text{font-family:ui-sans-serif,system-ui,-apple-system,'Segoe "
    "UI',Helvetica,Arial,sans-serif}\n"
    ".id{font:10px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    "text-anchor:middle;paint-order:stroke;stroke-width:3px;stroke-linejoin:round}\n"
    ".h1{font-size:16px;font-weight:650}.h2{font-size:13px}.nm{font-size:13px;font-weight:600}\n"
    ".sm{font-size:10.5px}.lt{font-size:9.5px;font-weight:700;text-anchor:middle}\n"
    ".cd{font-size:10px;font-weight:700;text-anchor:middle;paint-order:stroke;stroke-width:3px}\n"
    ".bg{fill:#ffffff}.bd{fill:#f5f7fa}.ha{stroke:#fafbfd}.fg{fill:#1f2328}.mu{fill:#656d76}.ax{"
    "stroke:#d8dee4}\n"
    ".ho{fill:#ffffff}.ok{fill:#1a7f37}.er{fill:#cf222e}.wa{fill:#9a6700}\n"
    ".e{fill:none;stroke-linecap:round}.n{stroke-width:2.5}.mg{stroke-width:1.8;opacity:.72}\n"
    ".ca{stroke-width:1.5;stroke-dasharray:1 4}.ou{opacity:.45}\n"
    ".k0{stroke:#6e7781;stroke-width:2.2}.k1{stroke:#009e73;stroke-width:2.4}\n"
    ".k2{stroke:#0072b2;stroke-width:2.4;stroke-dasharray:8 4}\n"
    ".k3{stroke:#d55e00;stroke-width:2.6;stroke-dasharray:2 5}\n"
    ".k4{stroke:#6e7781;stroke-width:2.2;stroke-dasharray:8 4 2 4}\n"
    ".n.k2,.n.k3,.n.k4{stroke-dasharray:none}\n"
    ".x1{fill:#009e73}.x2{fill:#0072b2}.x3{fill:#d55e00}.x4{fill:#6e7781}\n"
    ".cy{stroke:#cf222e;stroke-width:2;stroke-dasharray:4 3}\n"
    ".re{fill:none;stroke:#cf222e;stroke-width:2.5}\n"
    ".rw{fill:none;stroke:#bf8700;stroke-width:1.6;stroke-dasharray:3 2}\n"
    ".f0{fill:#6e56cf}.f1{fill:#0b8a8f}.f2{fill:#a66a00}.f3{fill:#b83280}\n"
    ".f4{fill:#4a6785}.f5{fill:#6b7a12}.f6{fill:#8a4b2a}.f7{fill:#5b6ee1}\n"
    ".s0{stroke:#6e56cf}.s1{stroke:#0b8a8f}.s2{stroke:#a66a00}.s3{stroke:#b83280}\n"
    ".s4{stroke:#4a6785}.s5{stroke:#6b7a12}.s6{stroke:#8a4b2a}.s7{stroke:#5b6ee1}\n"
    "@media(prefers-color-scheme:dark){\n"
    ".bg{fill:#0d1117}.bd{fill:#151b23}.ha{stroke:#11161d}.fg{fill:#e6edf3}.mu{fill:#8d96a0}.ax{"
    "stroke:#2a313a}\n"
    ".ho{fill:#0d1117}.ok{fill:#3fb950}.er{fill:#ff7b72}.wa{fill:#d29922}\n"
    ".k0,.k4{stroke:#8b949e}.k1{stroke:#1fc797}.k2{stroke:#4aa8e8}.k3{stroke:#ff8a3d}\n"
    ".x1{fill:#1fc797}.x2{fill:#4aa8e8}.x3{fill:#ff8a3d}.x4{fill:#8b949e}\n"
    ".cy,.re{stroke:#ff7b72}.rw{stroke:#d29922}\n"
    ".f0{fill:#a594f9}.f1{fill:#3cc4c9}.f2{fill:#dba23a}.f3{fill:#ec7fbb}\n"
    ".f4{fill:#8fadcc}.f5{fill:#b0c04a}.f6{fill:#cf8f6d}.f7{fill:#93a1ff}\n"
    ".s0{stroke:#a594f9}.s1{stroke:#3cc4c9}.s2{stroke:#dba23a}.s3{stroke:#ec7fbb}\n"
    ".s4{stroke:#8fadcc}.s5{stroke:#b0c04a}.s6{stroke:#cf8f6d}.s7{stroke:#93a1ff}\n"
    "}\n"
    "</style>\n";

typedef struct svg {
    cx_buf *out;
    const picture *pic;
    const layout *l;
    int64_t *lane_y;  /* by lane; 0 when not shown */
    uint32_t *latest; /* by lane: row drawn last, or LAYOUT_OUTSIDE */
    uint32_t lane_count;
    int64_t plot_left, plot_right, plot_bottom;
    int64_t step, width, height;
} svg;

static unsigned hue(uint32_t lane)
{
    return lane % LANE_COLOURS;
}

static int64_t column_x(const svg *s, uint32_t column)
{
    return s->plot_left + s->step * 3 / 4 + s->step * (int64_t)column;
}

static int64_t row_x(const svg *s, uint32_t row)
{
    return column_x(s, s->l->rows[row].column);
}

static uint32_t lane_of_node(const svg *s, cx_node n)
{
    return layout_lane_of(s->l, s->pic->lattice, n);
}

static void add_text(svg *s, cx_str text, uint32_t columns)
{
    (void)cx_lattice_render_text(s->out, text, RENDER_XML, columns);
}

static uint32_t shown_width(cx_str text, uint32_t most)
{
    uint32_t width = cx_lattice_render_width(text, RENDER_XML);
    return width < most ? width : most;
}

/* --- sizes ---------------------------------------------------------------------------------- */

static void measure_lanes(svg *s)
{
    const layout *l = s->l;
    uint32_t name = 8, id = 1;
    for (uint32_t i = 0; i < l->lane_count; i++) {
        s->lane_y[i] = 0;
        if (!l->lanes[i].in_window)
            continue;
        s->lane_y[i] = TOP + LANE_HEIGHT / 2 + LANE_HEIGHT * (int64_t)s->lane_count++;
        uint32_t width =
            shown_width(layout_lane_name(s->pic->lattice, &l->lanes[i]), NAME_COLUMNS_MAX);
        name = width > name ? width : name;
    }
    for (uint32_t r = 0; r < l->row_count; r++) {
        char label[16];
        cx_str text = cx_lattice_label(s->pic->lattice, l->rows[r].node, label);
        uint32_t width = shown_width(cx_lattice_render_short_id(text), ID_COLUMNS_MAX);
        id = width > id ? width : id;
        if (l->rows[r].code != CX_LATTICE_CODE_COUNT && id < CODE_COLUMNS)
            id = CODE_COLUMNS;
    }
    s->step = 12 + 6 * (int64_t)id;
    s->step = s->step < STEP_MIN ? STEP_MIN : s->step > STEP_MAX ? STEP_MAX : s->step;
    s->plot_left = 52 + 8 * (int64_t)name;
    s->plot_right = s->plot_left + s->step * (int64_t)l->column_count + s->step / 2;
    if (s->plot_right < WIDTH_MIN - 16)
        s->plot_right = WIDTH_MIN - 16;
    s->width = s->plot_right + 16;
    s->plot_bottom = TOP + LANE_HEIGHT * (int64_t)s->lane_count;
    s->height = s->plot_bottom + 84;
}

/* --- bands, names, time --------------------------------------------------------------------- */

static void add_heading(svg *s)
{
    const cx_lattice_report *report = s->pic->options->report;
    cx_buf_add_z(s->out, "<text x=\"18\" y=\"32\"><tspan class=\"fg h1\">Temporal lattice</tspan>"
                         "<tspan class=\"mu h2\" dx=\"14\">");
    cx_buf_printf(s->out, "%zu nodes, %u agents", s->pic->lattice->nodes.count, s->l->lane_count);
    if (s->l->row_count < s->l->row_total)
        cx_buf_printf(s->out, ", rows %u to %u of %u", s->l->first, s->l->first + s->l->row_count,
                      s->l->row_total);
    cx_buf_add_z(s->out, "</tspan>");
    if (report != NULL) {
        size_t errors;
        (void)cx_lattice_report_errors(report, &errors);
        cx_verdict verdict = cx_lattice_report_verdict(report);
        cx_buf_printf(s->out, "<tspan class=\"%s h2\" font-weight=\"700\" dx=\"14\">%s",
                      verdict == CX_HOLDS ? "ok" : "er", cx_verdict_name(verdict));
        if (errors != 0)
            cx_buf_printf(s->out, " (%zu %s)", errors, errors == 1 ? "error" : "errors");
        cx_buf_add_z(s->out, "</tspan>");
    }
    cx_buf_add_z(s->out, "</text>\n");
}

static void add_lane(svg *s, uint32_t lane, bool banded)
{
    const layout_lane *at = &s->l->lanes[lane];
    long long y = s->lane_y[lane];
    cx_str name = layout_lane_name(s->pic->lattice, at);
    const char *verdict = cx_lattice_render_verdict(at->verdict);
    if (banded)
        cx_buf_printf(s->out,
                      "<rect class=\"bd\" x=\"8\" y=\"%lld\" width=\"%lld\" height=\"%d\" "
                      "rx=\"8\"/>\n",
                      y - LANE_HEIGHT / 2, (long long)s->width - 16, LANE_HEIGHT);
    cx_buf_printf(s->out,
                  "<g><title>%u nodes</title><rect class=\"f%u\" x=\"18\" y=\"%lld\" width=\"4\" "
                  "height=\"30\" rx=\"2\"/><text class=\"fg nm\" x=\"30\" y=\"%lld\">",
                  at->node_count, hue(lane), y - 15, verdict[0] != '\0' ? y - 1 : y + 5);
    add_text(s, name, NAME_COLUMNS_MAX);
    cx_buf_add_z(s->out, "</text>");
    if (verdict[0] != '\0')
        cx_buf_printf(s->out, "<text class=\"%s sm\" x=\"30\" y=\"%lld\">%s</text>",
                      at->verdict == LAYOUT_VALID     ? "mu"
                      : at->verdict == LAYOUT_TAINTED ? "wa"
                                                      : "er",
                      y + 14, verdict);
    cx_buf_add_z(s->out, "</g>\n");
}

static void add_lanes(svg *s)
{
    bool banded = true;
    for (uint32_t i = 0; i < s->l->lane_count; i++) {
        if (s->lane_y[i] == 0)
            continue;
        add_lane(s, i, banded);
        banded = !banded;
    }
}

static double time_of(const svg *s, uint32_t row)
{
    const node *n = node_at(s->pic->lattice, s->l->rows[row].node);
    if ((n->flags & (NODE_UNUSABLE | NODE_TIME_BIG)) != 0)
        return HUGE_VAL;
    return (n->flags & NODE_TIME_INT) != 0 ? (double)n->time.i : n->time.d;
}

static void add_tick(svg *s, uint32_t row, const char *text)
{
    long long x = row_x(s, row);
    cx_buf_printf(s->out,
                  "<line class=\"ax\" x1=\"%lld\" y1=\"%d\" x2=\"%lld\" y2=\"%lld\"/>"
                  "<text class=\"mu sm\" x=\"%lld\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                  x, TOP - 4, x, (long long)s->plot_bottom, x, TOP - 8, text);
}

/* Seconds since the first row, in tenths; false when there is no such number.  Clocks may run
 * back. */
static bool write_since_start(const svg *s, uint32_t row, char *text, size_t room)
{
    double since = time_of(s, row) - time_of(s, 0);
    if (!(since > -1e12 && since < 1e12))
        return false;
    long long tenths = (long long)(since * 10 + (since < 0 ? -0.5 : 0.5));
    long long size = tenths < 0 ? -tenths : tenths;
    snprintf(text, room, "%s%lld.%lld s", tenths < 0 ? "-" : "+", size / 10, size % 10);
    return true;
}

/* Every 100 pixels or so: the time, or in a history without times the place in the order. */
static void add_times(svg *s)
{
    char text[48];
    uint32_t every = (uint32_t)((100 + s->step - 1) / s->step);
    uint32_t due = 0;
    for (uint32_t r = 0; r < s->l->row_count; r++) {
        if (s->l->rows[r].column < due)
            continue;
        due = s->l->rows[r].column + every;
        uint32_t place = s->pic->lattice->position[s->l->rows[r].node];
        if (!s->l->timed && place == UINT32_MAX)
            continue;
        if (!s->l->timed)
            snprintf(text, sizeof text, "step %lu", (unsigned long)place + 1);
        else if (!write_since_start(s, r, text, sizeof text))
            continue;
        add_tick(s, r, text);
    }
}

/* --- edges ---------------------------------------------------------------------------------- */

/* Between lanes: near nodes by one curve, far ones along a path next to the child's lane. */
static void add_curve(svg *s, long long x1, long long y1, long long x2, long long y2)
{
    long long step = s->step;
    if (x2 - x1 <= step * 2) {
        long long bend = (x2 - x1) * 11 / 20;
        cx_buf_printf(s->out, "M%lld %lldC%lld %lld %lld %lld %lld %lld", x1, y1, x1 + bend, y1,
                      x2 - bend, y2, x2, y2);
        return;
    }
    long long corridor = y1 < y2 ? y2 - CORRIDOR_ABOVE : y2 + CORRIDOR_BELOW;
    long long direction = x1 + step, leave = x2 - step * 3 / 4;
    cx_buf_printf(s->out,
                  "M%lld %lldC%lld %lld %lld %lld %lld %lldL%lld %lldC%lld %lld %lld %lld"
                  " %lld %lld",
                  x1, y1, x1 + step * 3 / 5, y1, x1 + step * 2 / 5, corridor, direction, corridor,
                  leave, corridor, leave + step / 3, corridor, x2 - step / 3, y2, x2, y2);
}

/* Within a lane, over the nodes between. */
static void add_arc(svg *s, long long x1, long long x2, long long y)
{
    long long bend = s->step / 2;
    cx_buf_printf(s->out, "M%lld %lldC%lld %lld %lld %lld %lld %lld", x1, y, x1 + bend, y - 26,
                  x2 - bend, y - 26, x2, y);
}

static void add_edge_class(svg *s, const layout_edge *edge, uint32_t parent_lane, bool backward)
{
    cx_buf_add_z(s->out, "<path class=\"e");
    if (edge->from == LAYOUT_OUTSIDE || edge->to == LAYOUT_OUTSIDE)
        cx_buf_add_z(s->out, " ou");
    if (backward)
        cx_buf_add_z(s->out, " cy");
    else if (edge->type == LAYOUT_FORK)
        cx_buf_printf(s->out, " k%u", edge->fork);
    else
        cx_buf_printf(s->out, " %s s%u",
                      edge->type == LAYOUT_LINEAGE ? "n"
                      : edge->type == LAYOUT_MERGE ? "mg"
                                                   : "ca",
                      hue(parent_lane));
    cx_buf_add_z(s->out, "\" d=\"");
}

static void add_edge(svg *s, const layout_edge *edge)
{
    uint32_t from_lane = lane_of_node(s, edge->parent);
    uint32_t to_lane = lane_of_node(s, edge->child);
    long long y1 = s->lane_y[from_lane], y2 = s->lane_y[to_lane];
    long long x1 = edge->from == LAYOUT_OUTSIDE ? s->plot_left : row_x(s, edge->from);
    long long x2 = edge->to == LAYOUT_OUTSIDE ? s->plot_right : row_x(s, edge->to);
    bool inside = edge->from != LAYOUT_OUTSIDE && edge->to != LAYOUT_OUTSIDE;
    bool backward = inside && edge->from >= edge->to;
    add_edge_class(s, edge, from_lane, backward);
    if (backward && edge->from == edge->to)
        cx_buf_printf(s->out, "M%lld %lldc-22 -34 22 -34 0 0", x1, y1);
    else if (backward)
        cx_buf_printf(s->out, "M%lld %lldC%lld %lld %lld %lld %lld %lld", x1, y1, x1 + 30, y1 - 34,
                      x2 - 30, y2 - 34, x2, y2);
    else if (y1 != y2)
        add_curve(s, x1, y1, x2, y2);
    else if (edge->type != LAYOUT_CAUSAL && (!inside || s->latest[to_lane] == edge->from))
        cx_buf_printf(s->out, "M%lld %lldH%lld", x1, y1, x2);
    else
        add_arc(s, x1, x2, y1);
    cx_buf_add_z(s->out, "\"/>\n");
}

static void add_edges(svg *s)
{
    const layout *l = s->l;
    for (uint32_t i = 0; i < l->lane_count; i++)
        s->latest[i] = LAYOUT_OUTSIDE;
    for (uint32_t r = 0; r < l->row_count; r++) {
        const layout_row *row = &l->rows[r];
        for (uint32_t i = row->edge_count; i-- > 0;)
            add_edge(s, &l->edges[row->first_edge + i]);
        s->latest[row->lane] = r;
    }
    for (uint32_t i = l->into_count; i < l->edge_count; i++)
        add_edge(s, &l->edges[i]);
}

/* --- nodes ---------------------------------------------------------------------------------- */

static void add_tooltip(svg *s, const layout_row *row)
{
    const cx_lattice *lattice = s->pic->lattice;
    const node *n = node_at(lattice, row->node);
    char label[16], time[32], hash[64];
    cx_buf_add_z(s->out, "<title>");
    add_text(s, cx_lattice_label(lattice, row->node, label), RENDER_NO_LIMIT);
    if (row->folded != 0) {
        cx_buf_add_z(s->out, " .. ");
        add_text(s, cx_lattice_label(lattice, row->last, label), RENDER_NO_LIMIT);
        cx_buf_printf(s->out, "\n%u quiet nodes</title>", row->folded);
        return;
    }
    cx_buf_add_byte(s->out, '\n');
    add_text(s, cx_lattice_agent_label(lattice, row->node), RENDER_NO_LIMIT);
    cx_buf_printf(s->out, "#%lld", (long long)n->seq);
    if (s->l->timed) {
        cx_buf_add_z(s->out, "\ntime ");
        add_text(s, cx_lattice_render_time(lattice, row->node, time), 80);
    }
    cx_buf_add_z(s->out, "\nhash ");
    add_text(s, cx_lattice_hash_text(lattice, row->node, hash), 80);
    if (row->fork != CX_FORK_NONE)
        cx_buf_printf(s->out, "\nfork %s", cx_lattice_render_fork(row->fork));
    if (row->label.size != 0) {
        cx_buf_add_byte(s->out, '\n');
        add_text(s, row->label, RENDER_NO_LIMIT);
    }
    if (row->code != CX_LATTICE_CODE_COUNT)
        cx_buf_printf(s->out, "\n%s, %u in all", cx_lattice_code_name((cx_lattice_code)row->code),
                      row->finding_count);
    cx_buf_add_z(s->out, "</title>");
}

static void add_fold(svg *s, const layout_row *row, long long x, long long y)
{
    cx_buf_printf(s->out,
                  "<rect class=\"ho n s%u\" x=\"%lld\" y=\"%lld\" width=\"34\" height=\"18\" "
                  "rx=\"9\"/><text class=\"mu lt\" x=\"%lld\" y=\"%lld\">%u</text>",
                  hue(row->lane), x - 17, y - 9, x, y + 4, row->folded);
}

static void add_shape(svg *s, const layout_row *row, long long x, long long y)
{
    static const char letters[] = " NOI?";
    unsigned lane = hue(row->lane);
    bool fork = row->fork != CX_FORK_NONE;
    if ((row->marks & LAYOUT_IS_MERGE) != 0 && fork)
        cx_buf_printf(s->out, "<path class=\"ho n k%u\" d=\"M%lld %lldl10 10l-10 10l-10 -10z\"/>",
                      row->fork, x, y - 10);
    else if ((row->marks & LAYOUT_IS_MERGE) != 0)
        cx_buf_printf(s->out, "<path class=\"f%u\" d=\"M%lld %lldl9 9l-9 9l-9 -9z\"/>", lane, x,
                      y - 9);
    else if (fork)
        cx_buf_printf(s->out, "<circle class=\"ho n k%u\" cx=\"%lld\" cy=\"%lld\" r=\"8\"/>",
                      row->fork, x, y);
    else if ((row->marks & LAYOUT_IS_ROOT) != 0)
        cx_buf_printf(s->out, "<circle class=\"ho n s%u\" cx=\"%lld\" cy=\"%lld\" r=\"6\"/>", lane,
                      x, y);
    else
        cx_buf_printf(s->out, "<circle class=\"f%u\" cx=\"%lld\" cy=\"%lld\" r=\"6\"/>", lane, x,
                      y);
    if (fork)
        cx_buf_printf(s->out, "<text class=\"lt x%u\" x=\"%lld\" y=\"%lld\">%c</text>", row->fork,
                      x, y + 4, letters[row->fork]);
}

static void add_rings(svg *s, const layout_row *row, long long x, long long y)
{
    if ((row->marks & LAYOUT_IS_HEAD) != 0)
        cx_buf_printf(s->out, "<path class=\"f%u\" d=\"M%lld %lldl8 5l-8 5z\"/>", hue(row->lane),
                      x + ((row->marks & LAYOUT_HAS_ERROR) != 0 ? 16 : 12), y - 5);
    if ((row->marks & LAYOUT_HAS_ERROR) != 0)
        cx_buf_printf(s->out, "<circle class=\"re\" cx=\"%lld\" cy=\"%lld\" r=\"13\"/>", x, y);
    else if ((row->marks & LAYOUT_HAS_WARNING) != 0)
        cx_buf_printf(s->out, "<circle class=\"rw\" cx=\"%lld\" cy=\"%lld\" r=\"12\"/>", x, y);
    if (row->code == CX_LATTICE_CODE_COUNT)
        return;
    cx_buf_printf(s->out, "<text class=\"cd ha %s\" x=\"%lld\" y=\"%lld\">%s",
                  (row->marks & LAYOUT_HAS_ERROR) != 0 ? "er" : "wa", x, y - 17,
                  cx_lattice_code_name((cx_lattice_code)row->code));
    if (row->finding_count > 1)
        cx_buf_printf(s->out, " +%u", row->finding_count - 1);
    cx_buf_add_z(s->out, "</text>");
}

static void add_node(svg *s, const layout_row *row)
{
    long long x = column_x(s, row->column), y = s->lane_y[row->lane];
    bool aside = (row->marks & (LAYOUT_LEFT_OUT | LAYOUT_NO_ORDER)) != 0;
    cx_buf_add_z(s->out, aside ? "<g opacity=\".6\">" : "<g>");
    add_tooltip(s, row);
    if (row->folded != 0) {
        add_fold(s, row, x, y);
    } else {
        char label[16];
        cx_str id = cx_lattice_label(s->pic->lattice, row->node, label);
        add_shape(s, row, x, y);
        add_rings(s, row, x, y);
        cx_buf_printf(s->out, "<text class=\"mu id ha\" x=\"%lld\" y=\"%lld\">", x, y + 24);
        add_text(s, cx_lattice_render_short_id(id), ID_COLUMNS_MAX);
        cx_buf_add_z(s->out, "</text>");
    }
    cx_buf_add_z(s->out, "</g>\n");
}

/* --- legend --------------------------------------------------------------------------------- */

/* Shapes are drawn around 0,0 and have fixed places in one row, so that pictures can be compared.
 */
static void add_legend(svg *s)
{
    static const struct {
        int x, row;
        const char *shape, *text;
    } items[] = {
        {22, 0, "<circle class=\"ho n s4\" r=\"6\"/>", "root"},
        {102, 0, "<circle class=\"f4\" r=\"6\"/>", "node"},
        {182, 0, "<path class=\"f4\" d=\"M0 -9l9 9l-9 9l-9 -9z\"/>", "merge"},
        {272, 0, "<path class=\"f4\" d=\"M-4 -5l8 5l-8 5z\"/>", "head"},
        {352, 0, "<circle class=\"f4\" r=\"5\"/><circle class=\"re\" r=\"10\"/>", "finding"},
        {452, 0, "<path class=\"e mg s4\" d=\"M-12 0H12\"/>", "flows in"},
        {552, 0, "<path class=\"e ca s4\" d=\"M-12 0H12\"/>", "older own node"},
        {22, 1,
         "<path class=\"e k1\" d=\"M8 0H26\"/><circle class=\"ho n k1\" r=\"8\"/>"
         "<text class=\"lt x1\" y=\"4\">N</text>",
         "natural fork"},
        {182, 1,
         "<path class=\"e k2\" d=\"M8 0H26\"/><circle class=\"ho n k2\" r=\"8\"/>"
         "<text class=\"lt x2\" y=\"4\">O</text>",
         "observation"},
        {352, 1,
         "<path class=\"e k3\" d=\"M8 0H26\"/><circle class=\"ho n k3\" r=\"8\"/>"
         "<text class=\"lt x3\" y=\"4\">I</text>",
         "injection"},
        {552, 1, "<path class=\"e k0\" d=\"M-12 0H12\"/>", "branch, type not given"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(items); i++) {
        bool fork = items[i].row == 1 && i + 1 < CX_COUNT_OF(items);
        cx_buf_printf(s->out,
                      "<g transform=\"translate(%d %lld)\">%s"
                      "<text class=\"mu sm\" x=\"%d\" y=\"4\">%s</text></g>\n",
                      items[i].x + 6, (long long)s->plot_bottom + 30 + 28 * items[i].row,
                      items[i].shape, fork ? 34 : 18, items[i].text);
    }
}

cx_status cx_lattice_render_svg(cx_buf *out, const picture *pic, cx_err *err)
{
    svg s = {.out = out, .pic = pic, .l = pic->layout};
    cx_arena arena;
    cx_arena_init(&arena, pic->lattice->alloc, 0);
    s.lane_y = CX_ARENA_ARRAY(&arena, int64_t, s.l->lane_count);
    s.latest = CX_ARENA_ARRAY(&arena, uint32_t, s.l->lane_count);
    if (s.lane_y == NULL || s.latest == NULL) {
        cx_arena_done(&arena);
        return cx_fail_nomem(err);
    }
    measure_lanes(&s);
    cx_buf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%lld\" height=\"%lld\" "
                  "viewBox=\"0 0 %lld %lld\" role=\"img\">\n<title>Temporal lattice</title>\n",
                  (long long)s.width, (long long)s.height, (long long)s.width, (long long)s.height);
    cx_buf_add_z(out, style);
    cx_buf_printf(out, "<rect class=\"bg\" width=\"%lld\" height=\"%lld\" rx=\"10\"/>\n",
                  (long long)s.width, (long long)s.height);
    add_heading(&s);
    add_lanes(&s);
    add_times(&s);
    add_edges(&s);
    for (uint32_t r = 0; r < s.l->row_count; r++)
        add_node(&s, &s.l->rows[r]);
    add_legend(&s);
    cx_buf_add_z(out, "</svg>\n");
    cx_arena_done(&arena);
    return cx_buf_check(out, err);
}
