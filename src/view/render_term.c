/*
 * render_term.c - the picture for a terminal: one line a row, agents as lanes on the left.
 *
 *     ○         n0  system#0   genesis
 *     ├─◇       n1  agent_1#1  ◇ observation
 *     │ ●       n2  agent_1#2  act t3
 *     ◆─┤       n3  system#1   sync  ⇐ n2
 *
 * A line to the left or right of a node shows from which lane it merges: `─` from the newest node
 * of that lane, `┄` from an older one, which the text then names.  A line that crosses an unrelated
 * lane passes below it.  A lane is shown from its first node to the last row with an edge to it;
 * then its slot is free for another agent.
 *
 * Invariants:
 *   I1  without colour, no byte below 0x20 but LF; with it, ESC only in our own colour codes;
 *   I2  no line is wider than the columns asked for (as cx_lattice_render_width counts them).
 */
#include "view/render.h"

#include <stdio.h>

#define COLUMNS_DEFAULT 100
#define COLUMNS_MIN 40
#define COLUMNS_MAX 1000
#define ID_COLUMNS_MAX 16
#define AGENT_COLUMNS_MAX 26
#define LEGEND_AGENTS_MAX 40
#define PARENTS_NAMED_MAX 4
#define PARENTS_ROOM 16 /* columns a long label leaves for them */
#define NOWHERE UINT32_MAX

typedef enum glyph {
    GLYPH_SPACE,
    GLYPH_LANE,
    GLYPH_WAIT,
    GLYPH_ACROSS,
    GLYPH_ACROSS_OLD,
    GLYPH_OUT_RIGHT,
    GLYPH_OUT_LEFT,
    GLYPH_END_RIGHT,
    GLYPH_END_LEFT,
    GLYPH_OUT_BOTH,
    GLYPH_END_BOTH,
    GLYPH_NODE,
    GLYPH_ROOT,
    GLYPH_MERGE,
    GLYPH_FORK_NATURAL, /* the four in the order of cx_fork_type */
    GLYPH_FORK_OBSERVATION,
    GLYPH_FORK_INJECTION,
    GLYPH_FORK_UNKNOWN,
    GLYPH_ERROR,
    GLYPH_HEAD,
    GLYPH_FOLD,
    GLYPH_MORE,
    GLYPH_FROM
} glyph;

static const struct {
    const char *unicode, *ascii;
} glyphs[] = {
    [GLYPH_SPACE] = {" ", " "},          [GLYPH_LANE] = {"│", "|"},
    [GLYPH_WAIT] = {"┊", ":"},           [GLYPH_ACROSS] = {"─", "-"},
    [GLYPH_ACROSS_OLD] = {"┄", "."},     [GLYPH_OUT_RIGHT] = {"├", "+"},
    [GLYPH_OUT_LEFT] = {"┤", "+"},       [GLYPH_END_RIGHT] = {"╰", "'"},
    [GLYPH_END_LEFT] = {"╯", "'"},       [GLYPH_OUT_BOTH] = {"┼", "+"},
    [GLYPH_END_BOTH] = {"┴", "'"},       [GLYPH_NODE] = {"●", "*"},
    [GLYPH_ROOT] = {"○", "o"},           [GLYPH_MERGE] = {"◆", "M"},
    [GLYPH_FORK_NATURAL] = {"◇", "N"},   [GLYPH_FORK_OBSERVATION] = {"◇", "O"},
    [GLYPH_FORK_INJECTION] = {"◇", "I"}, [GLYPH_FORK_UNKNOWN] = {"◇", "?"},
    [GLYPH_ERROR] = {"✖", "X"},          [GLYPH_HEAD] = {"▲", "^"},
    [GLYPH_FOLD] = {"⋯", "="},           [GLYPH_MORE] = {"⋮", "!"},
    [GLYPH_FROM] = {"⇐", "<-"},
};

/* Colours of the 256-colour palette, readable on light and dark. */
static const char *const lane_colours[] = {"38;5;68",  "38;5;172", "38;5;134", "38;5;37",
                                           "38;5;168", "38;5;106", "38;5;136", "38;5;62"};
#define COLOUR_NONE ""
#define COLOUR_DIM "38;5;245"
#define COLOUR_ERROR "1;38;5;196"
#define COLOUR_WARNING "38;5;178"

typedef struct cell {
    glyph glyph;
    const char *colour;
    uint32_t distance; /* distance from the row's node; the nearest line wins a shared cell */
} cell;

typedef struct slot {
    uint32_t lane; /* or NOWHERE */
    uint32_t free_since;
} slot;

typedef struct terminal {
    cx_buf *out;
    const picture *pic;
    const layout *l;
    bool colour;
    render_escape escape; /* RENDER_ASCII or RENDER_PLAIN */
    uint32_t columns;
    uint32_t left; /* of the line being written */
    slot *slots;
    uint32_t slot_max;  /* one more slot is shared by all lanes without one */
    uint32_t slot_used; /* most ever needed */
    bool crowded;       /* some lane got no slot */
    uint32_t *slot_of;  /* by lane; NOWHERE, or slot_max when shared */
    uint32_t *latest;   /* by lane: its newest row drawn */
    uint32_t *coming;   /* by lane: its next row, NOWHERE after the window's last */
    uint32_t *next;     /* by row: next row of the same lane */
    cell *cells;
    uint32_t id_columns, agent_columns;
} terminal;

static const char *lane_colour(uint32_t lane)
{
    return lane_colours[lane % CX_COUNT_OF(lane_colours)];
}

static const char *fork_colour(unsigned fork)
{
    switch (fork) {
    case CX_FORK_NATURAL: return "1;38;5;35";
    case CX_FORK_OBSERVATION: return "1;38;5;33";
    case CX_FORK_INJECTION: return "1;38;5;202";
    default: return "1;38;5;245";
    }
}

static glyph fork_glyph(unsigned fork)
{
    CX_ASSERT(fork >= CX_FORK_NATURAL && fork <= CX_FORK_UNKNOWN);
    return (glyph)(GLYPH_FORK_NATURAL + (fork - CX_FORK_NATURAL));
}

/* --- writing within a line ----------------------------------------------------------------- */

static void put_text(terminal *t, cx_str text, const char *colour, uint32_t columns)
{
    if (t->left == 0 || text.size == 0)
        return;
    bool coloured = t->colour && colour[0] != '\0';
    if (coloured)
        cx_buf_printf(t->out, "\033[%sm", colour);
    t->left -=
        cx_lattice_render_text(t->out, text, t->escape, columns < t->left ? columns : t->left);
    if (coloured)
        cx_buf_add_z(t->out, "\033[0m");
}

static void put_z(terminal *t, const char *text, const char *colour)
{
    put_text(t, cx_str_z(text), colour, RENDER_NO_LIMIT);
}

static void put_spaces(terminal *t, uint32_t count)
{
    for (; count > 0 && t->left > 0; count--, t->left--)
        cx_buf_add_byte(t->out, ' ');
}

static void put_glyph(terminal *t, glyph g, const char *colour)
{
    put_z(t, t->escape == RENDER_ASCII ? glyphs[g].ascii : glyphs[g].unicode, colour);
}

/* Lines do not end in spaces: they would be noise in a diff. */
static void end_line(terminal *t)
{
    while (t->out->size > 0 && t->out->data[t->out->size - 1] == ' ')
        t->out->size--;
    cx_buf_add_byte(t->out, '\n');
    t->left = t->columns;
}

/* --- places of lanes ----------------------------------------------------------------------- */

/* A slot stays empty for one row before another agent gets it, otherwise their lines would touch.
 */
static void assign_slot(terminal *t, uint32_t lane, uint32_t row)
{
    for (uint32_t s = 0; s < t->slot_max; s++) {
        slot *place = &t->slots[s];
        if (place->lane != NOWHERE || (place->free_since != NOWHERE && place->free_since >= row))
            continue;
        place->lane = lane;
        t->slot_of[lane] = s;
        if (s + 1 > t->slot_used)
            t->slot_used = s + 1;
        return;
    }
    t->slot_of[lane] = t->slot_max;
    t->crowded = true;
}

static void free_slots(terminal *t, uint32_t row)
{
    for (uint32_t s = 0; s < t->slot_used; s++) {
        slot *place = &t->slots[s];
        if (place->lane != NOWHERE && t->l->lanes[place->lane].last_use <= t->l->first + row) {
            place->lane = NOWHERE;
            place->free_since = row + 1;
        }
    }
}

/* Assigns slots to the lanes that enter the window from above. */
static void begin_lanes(terminal *t)
{
    const layout *l = t->l;
    for (uint32_t s = 0; s < t->slot_max; s++)
        t->slots[s] = (slot){NOWHERE, NOWHERE};
    for (uint32_t lane = 0; lane < l->lane_count; lane++) {
        t->slot_of[lane] = t->latest[lane] = t->coming[lane] = NOWHERE;
        if (l->lanes[lane].in_window && l->lanes[lane].first < l->first &&
            l->lanes[lane].last_use >= l->first)
            assign_slot(t, lane, 0);
    }
    for (uint32_t r = l->row_count; r-- > 0;) {
        t->next[r] = t->coming[l->rows[r].lane];
        t->coming[l->rows[r].lane] = r;
    }
}

static cx_status open_terminal(terminal *t, cx_arena *arena, cx_err *err)
{
    const layout *l = t->l;
    uint32_t wanted = t->pic->options->columns == 0 ? COLUMNS_DEFAULT : t->pic->options->columns;
    t->columns = wanted < COLUMNS_MIN ? COLUMNS_MIN : wanted > COLUMNS_MAX ? COLUMNS_MAX : wanted;
    t->left = t->columns;
    t->slot_max = t->columns / 4;
    t->slots = CX_ARENA_ARRAY(arena, slot, t->slot_max);
    t->cells = CX_ARENA_ARRAY(arena, cell, 2 * ((size_t)t->slot_max + 1));
    t->slot_of = CX_ARENA_ARRAY(arena, uint32_t, l->lane_count);
    t->latest = CX_ARENA_ARRAY(arena, uint32_t, l->lane_count);
    t->coming = CX_ARENA_ARRAY(arena, uint32_t, l->lane_count);
    t->next = CX_ARENA_ARRAY(arena, uint32_t, l->row_count);
    if (t->slots == NULL || t->cells == NULL || t->slot_of == NULL || t->latest == NULL ||
        t->coming == NULL || t->next == NULL)
        return cx_fail_nomem(err);
    return CX_SUCCESS;
}

/* --- the graph of one row ------------------------------------------------------------------- */

/* An edge to be drawn: from above, and not part of a cycle. */
static bool comes_from_above(const layout_edge *edge, uint32_t row)
{
    return edge->from == LAYOUT_OUTSIDE || edge->from < row;
}

static uint32_t lane_of_node(const terminal *t, cx_node n)
{
    return layout_lane_of(t->l, t->pic->lattice, n);
}

/* True when a row has an edge to an earlier one of its own lane. */
static bool continues_lane(const terminal *t, uint32_t row)
{
    const layout_row *r = &t->l->rows[row];
    for (uint32_t i = 0; i < r->edge_count; i++) {
        const layout_edge *edge = &t->l->edges[r->first_edge + i];
        if (comes_from_above(edge, row) && lane_of_node(t, edge->parent) == r->lane)
            return true;
    }
    return false;
}

/* Solid while the branch continues, dashed when only later merges refer to it. */
static glyph lane_glyph(const terminal *t, uint32_t lane)
{
    if (t->coming[lane] != NOWHERE)
        return continues_lane(t, t->coming[lane]) ? GLYPH_LANE : GLYPH_WAIT;
    return t->l->lanes[lane].last >= t->l->first + t->l->row_count ? GLYPH_LANE : GLYPH_WAIT;
}

static const char *row_colour(const layout_row *row)
{
    if ((row->marks & LAYOUT_HAS_ERROR) != 0)
        return COLOUR_ERROR;
    return row->fork != CX_FORK_NONE ? fork_colour(row->fork) : lane_colour(row->lane);
}

static glyph row_glyph(const layout_row *row)
{
    if (row->folded != 0)
        return GLYPH_FOLD;
    if ((row->marks & LAYOUT_HAS_ERROR) != 0)
        return GLYPH_ERROR;
    if ((row->marks & LAYOUT_IS_MERGE) != 0)
        return GLYPH_MERGE;
    if (row->fork != CX_FORK_NONE)
        return fork_glyph(row->fork);
    if ((row->marks & LAYOUT_IS_HEAD) != 0)
        return GLYPH_HEAD;
    return (row->marks & LAYOUT_IS_ROOT) != 0 ? GLYPH_ROOT : GLYPH_NODE;
}

/* The line from lane position `from` to the node at `to`; positions are cells. */
static void draw_across(terminal *t, uint32_t from, uint32_t to, bool newest, const char *colour)
{
    uint32_t low = from < to ? from : to, high = from < to ? to : from;
    for (uint32_t at = low + 1; at < high; at++) {
        cell *c = &t->cells[at];
        uint32_t distance = high - low;
        bool is_line = c->glyph == GLYPH_ACROSS || c->glyph == GLYPH_ACROSS_OLD;
        if (c->glyph != GLYPH_SPACE && !is_line)
            continue;
        if (newest || c->glyph == GLYPH_SPACE)
            c->glyph = newest ? GLYPH_ACROSS : GLYPH_ACROSS_OLD;
        if (distance < c->distance) {
            c->distance = distance;
            c->colour = colour;
        }
    }
}

/* The glyph where a line leaves a lane: whether other lines pass through, and whether the lane
 * continues below. */
static glyph joint_glyph(bool node_is_right, bool passes, bool goes_on)
{
    if (passes)
        return goes_on ? GLYPH_OUT_BOTH : GLYPH_END_BOTH;
    if (node_is_right)
        return goes_on ? GLYPH_OUT_RIGHT : GLYPH_END_RIGHT;
    return goes_on ? GLYPH_OUT_LEFT : GLYPH_END_LEFT;
}

/* The farthest cells lines come from, left and right of the node. */
typedef struct reach {
    uint32_t left, right;
} reach;

static reach measure_reach(const terminal *t, uint32_t row, uint32_t home)
{
    const layout_row *r = &t->l->rows[row];
    reach far = {home, home};
    for (uint32_t i = 0; i < r->edge_count; i++) {
        const layout_edge *edge = &t->l->edges[r->first_edge + i];
        uint32_t lane = lane_of_node(t, edge->parent);
        if (lane == r->lane || !comes_from_above(edge, row) || t->slot_of[lane] == NOWHERE)
            continue;
        uint32_t at = 2 * t->slot_of[lane];
        far.left = at < far.left ? at : far.left;
        far.right = at > far.right ? at : far.right;
    }
    return far;
}

static bool is_newest(const terminal *t, const layout_edge *edge, uint32_t lane)
{
    return t->latest[lane] == NOWHERE || edge->from == t->latest[lane];
}

static void draw_edges(terminal *t, uint32_t row, uint32_t home)
{
    const layout_row *r = &t->l->rows[row];
    reach far = measure_reach(t, row, home);
    for (uint32_t i = 0; i < r->edge_count; i++) {
        const layout_edge *edge = &t->l->edges[r->first_edge + i];
        uint32_t lane = lane_of_node(t, edge->parent);
        if (lane == r->lane || !comes_from_above(edge, row) || t->slot_of[lane] == NOWHERE)
            continue;
        uint32_t at = 2 * t->slot_of[lane];
        if (at == home)
            continue; /* both share the last place */
        bool is_fork = edge->type == LAYOUT_FORK;
        draw_across(t, at, home, is_newest(t, edge, lane),
                    is_fork ? fork_colour(edge->fork) : lane_colour(lane));
        if (t->slot_of[lane] == t->slot_max)
            continue;
        bool passes = at < home ? far.left < at : far.right > at;
        bool goes_on = t->l->lanes[lane].last_use > t->l->first + row;
        t->cells[at].glyph = joint_glyph(at < home, passes, goes_on);
    }
}

static void draw_graph(terminal *t, uint32_t row, uint32_t width)
{
    const layout_row *r = &t->l->rows[row];
    for (uint32_t i = 0; i < width; i++)
        t->cells[i] = (cell){GLYPH_SPACE, COLOUR_NONE, UINT32_MAX};
    for (uint32_t s = 0; s < t->slot_used; s++) {
        uint32_t lane = t->slots[s].lane;
        if (lane != NOWHERE && lane != r->lane)
            t->cells[2 * s] = (cell){lane_glyph(t, lane), lane_colour(lane), UINT32_MAX};
    }
    if (t->crowded)
        t->cells[2 * t->slot_max] = (cell){GLYPH_MORE, COLOUR_DIM, UINT32_MAX};
    uint32_t home = 2 * t->slot_of[r->lane];
    t->cells[home] = (cell){row_glyph(r), row_colour(r), UINT32_MAX};
    draw_edges(t, row, home);
    for (uint32_t i = 0; i < width; i++) {
        if (t->cells[i].glyph == GLYPH_SPACE)
            put_spaces(t, 1);
        else
            put_glyph(t, t->cells[i].glyph, t->cells[i].colour);
    }
}

/* --- the text of one row --------------------------------------------------------------------- */

static cx_str agent_and_seq(const terminal *t, const layout_row *row, cx_buf *scratch)
{
    cx_buf_clear(scratch);
    char digits[24];
    int size = snprintf(digits, sizeof digits, "#%lld",
                        (long long)node_at(t->pic->lattice, row->node)->seq);
    cx_str name = cx_lattice_agent_label(t->pic->lattice, row->node);
    (void)cx_lattice_render_text(scratch, name, t->escape, AGENT_COLUMNS_MAX - (uint32_t)size);
    cx_buf_add(scratch, digits, (size_t)size);
    return cx_buf_str(scratch);
}

static void put_padded(terminal *t, cx_str text, const char *colour, uint32_t columns)
{
    uint32_t before = t->left;
    put_text(t, text, colour, columns);
    uint32_t used = before - t->left;
    put_spaces(t, columns > used ? columns - used + 2 : 2);
}

static void put_finding(terminal *t, const layout_row *row)
{
    if (row->code == CX_LATTICE_CODE_COUNT)
        return;
    bool error = (row->marks & LAYOUT_HAS_ERROR) != 0;
    char text[64];
    if (row->finding_count > 1)
        (void)snprintf(text, sizeof text, "%s +%u",
                       cx_lattice_code_name((cx_lattice_code)row->code), row->finding_count - 1);
    else
        (void)snprintf(text, sizeof text, "%s", cx_lattice_code_name((cx_lattice_code)row->code));
    put_z(t, text, error ? COLOUR_ERROR : COLOUR_WARNING);
    put_spaces(t, 2);
}

/* True for a parent a line alone does not tell: any but the row before in the same lane. */
static bool is_named(const terminal *t, const layout_row *row, const layout_edge *edge)
{
    if (edge->from == LAYOUT_OUTSIDE)
        return edge->type != LAYOUT_LINEAGE;
    return edge->from != t->latest[row->lane];
}

static bool names_parents(const terminal *t, uint32_t row)
{
    const layout_row *r = &t->l->rows[row];
    for (uint32_t i = 0; i < r->edge_count; i++) {
        if (is_named(t, r, &t->l->edges[r->first_edge + i]))
            return true;
    }
    return false;
}

static void put_parents(terminal *t, uint32_t row)
{
    const layout_row *r = &t->l->rows[row];
    uint32_t named = 0;
    for (uint32_t i = 0; i < r->edge_count; i++) {
        const layout_edge *edge = &t->l->edges[r->first_edge + i];
        if (!is_named(t, r, edge))
            continue;
        if (named++ == 0)
            put_glyph(t, GLYPH_FROM, COLOUR_DIM);
        if (named > PARENTS_NAMED_MAX)
            continue;
        char label[16];
        put_spaces(t, 1);
        put_text(t,
                 cx_lattice_render_short_id(cx_lattice_label(t->pic->lattice, edge->parent, label)),
                 lane_colour(lane_of_node(t, edge->parent)), ID_COLUMNS_MAX);
    }
    if (named > PARENTS_NAMED_MAX) {
        char more[24];
        (void)snprintf(more, sizeof more, " +%u", named - PARENTS_NAMED_MAX);
        put_z(t, more, COLOUR_DIM);
    }
    put_spaces(t, 2);
}

static void put_tags(terminal *t, uint32_t row)
{
    const layout_row *r = &t->l->rows[row];
    put_finding(t, r);
    if ((r->marks & (LAYOUT_NO_ORDER | LAYOUT_LEFT_OUT)) != 0) {
        put_z(t, (r->marks & LAYOUT_LEFT_OUT) != 0 ? "left out" : "no order", COLOUR_WARNING);
        put_spaces(t, 2);
    }
    if (r->fork != CX_FORK_NONE) {
        put_glyph(t, fork_glyph(r->fork), fork_colour(r->fork));
        put_spaces(t, 1);
        put_z(t, cx_lattice_render_fork(r->fork), fork_colour(r->fork));
        put_spaces(t, 2);
    }
    if ((r->marks & LAYOUT_IS_HEAD) != 0) {
        put_glyph(t, GLYPH_HEAD, "1");
        put_z(t, " head", "1");
        put_spaces(t, 2);
    }
    if (r->label.size != 0) {
        uint32_t kept = t->left > 2 * PARENTS_ROOM && names_parents(t, row) ? PARENTS_ROOM : 0;
        put_text(t, r->label, COLOUR_NONE, t->left - kept);
        put_spaces(t, 2);
    }
    put_parents(t, row);
}

static void put_fold(terminal *t, const layout_row *row)
{
    char text[48], first[16], last[16];
    const cx_lattice *lattice = t->pic->lattice;
    put_glyph(t, GLYPH_FOLD, COLOUR_DIM);
    (void)snprintf(text, sizeof text, " %u nodes  ", row->folded);
    put_z(t, text, COLOUR_DIM);
    put_text(t, cx_lattice_render_short_id(cx_lattice_label(lattice, row->node, first)), COLOUR_DIM,
             ID_COLUMNS_MAX);
    put_z(t, " .. ", COLOUR_DIM);
    put_text(t, cx_lattice_render_short_id(cx_lattice_label(lattice, row->last, last)), COLOUR_DIM,
             ID_COLUMNS_MAX);
}

static void draw_row(terminal *t, uint32_t row, uint32_t width, cx_buf *scratch)
{
    const layout_row *r = &t->l->rows[row];
    char label[16];
    t->coming[r->lane] = t->next[row];
    draw_graph(t, row, width);
    put_spaces(t, 1);
    if (r->folded != 0) {
        put_fold(t, r);
    } else {
        cx_str id = cx_lattice_render_short_id(cx_lattice_label(t->pic->lattice, r->node, label));
        put_padded(t, id, "1", t->id_columns);
        put_padded(t, agent_and_seq(t, r, scratch), lane_colour(r->lane), t->agent_columns);
        put_tags(t, row);
    }
    end_line(t);
    t->latest[r->lane] = row;
}

/* --- the whole of it ------------------------------------------------------------------------- */

/* A dry run over the rows: the number of slots, and the widths of ids and agents. */
static void measure_columns(terminal *t, cx_buf *scratch)
{
    begin_lanes(t);
    for (uint32_t r = 0; r < t->l->row_count; r++) {
        const layout_row *row = &t->l->rows[r];
        if (t->slot_of[row->lane] == NOWHERE)
            assign_slot(t, row->lane, r);
        free_slots(t, r);
        if (row->folded != 0)
            continue;
        char label[16];
        cx_str id = cx_lattice_render_short_id(cx_lattice_label(t->pic->lattice, row->node, label));
        uint32_t width = cx_lattice_render_width(id, t->escape);
        if (width > t->id_columns)
            t->id_columns = width < ID_COLUMNS_MAX ? width : ID_COLUMNS_MAX;
        width = cx_lattice_render_width(agent_and_seq(t, row, scratch), t->escape);
        if (width > t->agent_columns)
            t->agent_columns = width < AGENT_COLUMNS_MAX ? width : AGENT_COLUMNS_MAX;
    }
}

static void draw_rows(terminal *t, cx_buf *scratch)
{
    measure_columns(t, scratch);
    uint32_t width = 2 * t->slot_used;
    if (t->crowded)
        width = 2 * (t->slot_max + 1);
    t->crowded = false;
    begin_lanes(t);
    for (uint32_t r = 0; r < t->l->row_count; r++) {
        if (t->slot_of[t->l->rows[r].lane] == NOWHERE)
            assign_slot(t, t->l->rows[r].lane, r);
        draw_row(t, r, width, scratch);
        free_slots(t, r);
    }
}

static void put_more(terminal *t, uint64_t rows, const char *where)
{
    if (rows == 0)
        return;
    char text[64];
    put_glyph(t, GLYPH_MORE, COLOUR_DIM);
    (void)snprintf(text, sizeof text, " %llu rows %s", (unsigned long long)rows, where);
    put_z(t, text, COLOUR_DIM);
    end_line(t);
}

/* Starts a new line, under the first, when an item would not fit. */
static void reserve_columns(terminal *t, uint32_t columns)
{
    if (t->left < columns && t->left < t->columns - 8) {
        end_line(t);
        put_spaces(t, 8);
    }
}

static void put_item(terminal *t, glyph g, cx_str text, const char *colour)
{
    reserve_columns(t, cx_lattice_render_width(text, t->escape) + 2);
    put_glyph(t, g, colour);
    put_spaces(t, 1);
    put_text(t, text, COLOUR_NONE, RENDER_NO_LIMIT);
    put_spaces(t, 2);
}

static void put_verdict(terminal *t, layout_verdict verdict)
{
    const char *text = cx_lattice_render_verdict(verdict);
    const char *colour = verdict == LAYOUT_INVALID   ? COLOUR_ERROR
                         : verdict == LAYOUT_TAINTED ? COLOUR_WARNING
                                                     : "38;5;35";
    if (text[0] == '\0')
        return;
    reserve_columns(t, (uint32_t)strlen(text) + 2);
    put_z(t, text, colour);
    put_spaces(t, 2);
}

static void put_agents(terminal *t)
{
    uint32_t shown = 0, all = 0;
    put_z(t, "agents  ", COLOUR_DIM);
    for (uint32_t i = 0; i < t->l->lane_count; i++) {
        const layout_lane *lane = &t->l->lanes[i];
        if (!lane->in_window)
            continue;
        all++;
        if (shown == LEGEND_AGENTS_MAX)
            continue;
        shown++;
        put_item(t, GLYPH_NODE, layout_lane_name(t->pic->lattice, lane), lane_colour(i));
        put_verdict(t, lane->verdict);
    }
    if (all > shown) {
        char text[48];
        (void)snprintf(text, sizeof text, "%u more", all - shown);
        put_item(t, GLYPH_MORE, cx_str_z(text), COLOUR_DIM);
    }
    end_line(t);
}

static void put_marks(terminal *t)
{
    unsigned forks = 0, marks = 0;
    bool folded = false;
    for (uint32_t r = 0; r < t->l->row_count; r++) {
        forks |= 1u << t->l->rows[r].fork;
        marks |= t->l->rows[r].marks;
        folded = folded || t->l->rows[r].folded != 0;
    }
    put_z(t, "marks   ", COLOUR_DIM);
    put_item(t, GLYPH_ROOT, CX_STR("root"), COLOUR_NONE);
    put_item(t, GLYPH_NODE, CX_STR("node"), COLOUR_NONE);
    if ((marks & LAYOUT_IS_MERGE) != 0)
        put_item(t, GLYPH_MERGE, CX_STR("merge"), COLOUR_NONE);
    put_item(t, GLYPH_HEAD, CX_STR("head"), COLOUR_NONE);
    if ((marks & LAYOUT_HAS_ERROR) != 0)
        put_item(t, GLYPH_ERROR, CX_STR("finding"), COLOUR_ERROR);
    for (unsigned fork = CX_FORK_NATURAL; fork <= CX_FORK_UNKNOWN; fork++) {
        if ((forks & 1u << fork) != 0)
            put_item(t, fork_glyph(fork), cx_str_z(cx_lattice_render_fork(fork)),
                     fork_colour(fork));
    }
    put_item(t, GLYPH_ACROSS_OLD, CX_STR("not from the newest"), COLOUR_NONE);
    if (folded)
        put_item(t, GLYPH_FOLD, CX_STR("quiet nodes"), COLOUR_NONE);
    if (t->crowded)
        put_item(t, GLYPH_MORE, CX_STR("agents without room for a lane"), COLOUR_DIM);
    end_line(t);
}

static void put_total(terminal *t)
{
    const cx_lattice_report *report = t->pic->options->report;
    char text[96];
    (void)snprintf(text, sizeof text, "total   %zu nodes, %u agents", t->pic->lattice->nodes.count,
                   t->l->lane_count);
    put_z(t, text, COLOUR_DIM);
    if (report != NULL) {
        size_t errors, warnings;
        (void)cx_lattice_report_errors(report, &errors);
        (void)cx_lattice_report_warnings(report, &warnings);
        cx_verdict verdict = cx_lattice_report_verdict(report);
        put_z(t, ", ", COLOUR_DIM);
        put_z(t, cx_verdict_name(verdict), verdict == CX_HOLDS ? "1;38;5;35" : COLOUR_ERROR);
        (void)snprintf(text, sizeof text, ": %zu error%s, %zu warning%s", errors,
                       errors == 1 ? "" : "s", warnings, warnings == 1 ? "" : "s");
        put_z(t, text, COLOUR_DIM);
    }
    end_line(t);
}

cx_status cx_lattice_render_terminal(cx_buf *out, const picture *pic, cx_err *err)
{
    terminal t = {.out = out, .pic = pic, .l = pic->layout, .colour = pic->options->colour};
    t.escape = pic->options->ascii ? RENDER_ASCII : RENDER_PLAIN;
    cx_arena arena;
    cx_buf scratch;
    cx_arena_init(&arena, pic->lattice->alloc, 0);
    cx_buf_init(&scratch, pic->lattice->alloc);
    cx_status status;
    CX_TRY_GOTO(status, open_terminal(&t, &arena, err));
    put_more(&t, t.l->first, "above");
    draw_rows(&t, &scratch);
    put_more(&t, (uint64_t)t.l->row_total - t.l->first - t.l->row_count, "below");
    end_line(&t);
    put_agents(&t);
    put_marks(&t);
    put_total(&t);
    CX_TRY_GOTO(status, cx_buf_check(&scratch, err));
    status = cx_buf_check(out, err);
done:
    cx_buf_done(&scratch);
    cx_arena_done(&arena);
    return status;
}
