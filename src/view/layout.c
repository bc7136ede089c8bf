/*
 * layout.c - lanes, rows, edges and columns of a picture.
 *
 * Invariants:
 *   I1  every node of the file is in exactly one row;
 *   I2  an edge between nodes with a topological place goes from a smaller row to a greater one;
 *   I3  folding never hides an edge between lanes, a fork, a finding, a head, a root or an
 *       override;
 *   I4  every edge with an end in the window is listed once; edges within a fold are not.
 *
 * Passes over all nodes are loops over flat arrays: nothing recurses, and they need at most 13
 * bytes of memory for each node.
 */
#include "view/layout.h"

#include <math.h>

enum { SEEN_ERROR = 1, SEEN_WARNING = 2 };

/* Data of all nodes, needed until the window is computed. */
typedef struct scratch {
    const cx_lattice *lattice;
    uint32_t *row_of;     /* by node, of the whole picture */
    uint32_t *run_start;  /* by node: first node of its quiet stretch; NULL without folding */
    uint32_t *run_length; /* by first node of a stretch */
    uint8_t *seen;        /* by node: SEEN_* */
    cx_node *extras;      /* nodes without topological place, in file order */
    uint32_t extra_count;
} scratch;

static uint32_t sequence_count(const scratch *s)
{
    return s->lattice->order_count + s->extra_count;
}

static cx_node sequence_at(const scratch *s, uint32_t at)
{
    uint32_t ordered = s->lattice->order_count;
    return at < ordered ? s->lattice->order[at] : s->extras[at - ordered];
}

/* Nodes left out of the graph have no edges. */
static uint32_t parent_count(const node *n)
{
    return in_graph(n) ? n->parent_count : 0;
}

static cx_status scratch_fill(scratch *s, cx_arena *arena, const layout_options *options,
                              cx_err *err)
{
    const cx_lattice *lattice = s->lattice;
    uint32_t count = (uint32_t)lattice->nodes.count;
    s->row_of = CX_ARENA_ARRAY(arena, uint32_t, count);
    s->seen = CX_ARENA_ARRAY(arena, uint8_t, count);
    s->extra_count = count - lattice->order_count;
    s->extras = CX_ARENA_ARRAY(arena, cx_node, s->extra_count);
    if (s->row_of == NULL || s->seen == NULL || s->extras == NULL)
        return cx_fail_nomem(err);
    if (count != 0)
        memset(s->seen, 0, count);
    uint32_t extra = 0;
    for (cx_node n = 0; n < count; n++) {
        if (lattice->position[n] == UINT32_MAX)
            s->extras[extra++] = n;
    }
    CX_ASSERT(extra == s->extra_count);
    if (!options->fold)
        return CX_SUCCESS;
    s->run_start = CX_ARENA_ARRAY(arena, uint32_t, count);
    s->run_length = CX_ARENA_ARRAY(arena, uint32_t, count);
    if (s->run_start == NULL || s->run_length == NULL)
        return cx_fail_nomem(err);
    for (cx_node n = 0; n < count; n++) {
        s->run_start[n] = CX_NODE_NONE;
        s->run_length[n] = 0;
    }
    return CX_SUCCESS;
}

static void note_findings(scratch *s, const cx_lattice_finding *findings, size_t count, uint8_t bit)
{
    for (size_t i = 0; i < count; i++) {
        if (findings[i].node != CX_NODE_NONE)
            s->seen[findings[i].node] |= bit;
    }
}

/* --- folding ------------------------------------------------------------------------------- */

/* True when a node has nothing to show: one parent and one child, both of its own branch (I3). */
static bool is_foldable(const scratch *s, cx_node at)
{
    const cx_lattice *lattice = s->lattice;
    const node *n = node_at(lattice, at);
    if (n->parent_count != 1 || node_fork(n) != CX_FORK_NONE || s->seen[at] != 0 ||
        (n->flags & (NODE_MISSING_PARENT | NODE_FAILED)) != 0 ||
        cx_lattice_overrides(lattice, at) != 0)
        return false;
    cx_node parent = node_parents(lattice, n)[0];
    uint32_t child_count;
    const cx_node *children = node_children(lattice, at, &child_count);
    if (child_count != 1 || node_at(lattice, parent)->agent != n->agent)
        return false;
    const node *child = node_at(lattice, children[0]);
    return child->agent == n->agent && child->lineage == at &&
           lattice->position[children[0]] != UINT32_MAX;
}

/* A quiet node has one child, so stretches are paths and topological order visits them in order. */
static void find_stretches(scratch *s)
{
    const cx_lattice *lattice = s->lattice;
    for (uint32_t i = 0; i < lattice->order_count; i++) {
        cx_node at = lattice->order[i];
        if (!is_foldable(s, at))
            continue;
        uint32_t before = s->run_start[node_parents(lattice, node_at(lattice, at))[0]];
        s->run_start[at] = before == CX_NODE_NONE ? at : before;
        s->run_length[s->run_start[at]]++;
    }
}

static bool is_folded(const scratch *s, cx_node at)
{
    return s->run_start != NULL && s->run_start[at] != CX_NODE_NONE &&
           s->run_length[s->run_start[at]] >= LAYOUT_FOLD_MIN;
}

/* A fold gets the row of its first node, before anything that depends on the others (I1, I2). */
static uint32_t number_rows(scratch *s)
{
    uint32_t rows = 0;
    uint32_t count = sequence_count(s);
    for (uint32_t i = 0; i < count; i++) {
        cx_node at = sequence_at(s, i);
        if (is_folded(s, at) && s->run_start[at] != at)
            s->row_of[at] = s->row_of[s->run_start[at]];
        else
            s->row_of[at] = rows++;
    }
    return rows;
}

/* --- lanes --------------------------------------------------------------------------------- */

static void grow_lane(layout_lane *lane, uint32_t row)
{
    if (row < lane->first)
        lane->first = row;
    if (row > lane->last || lane->node_count == 0)
        lane->last = row;
    if (row > lane->last_use)
        lane->last_use = row;
    lane->node_count++;
}

static cx_status fill_lanes(layout *l, const scratch *s, cx_err *err)
{
    const cx_lattice *lattice = s->lattice;
    uint32_t slots = (uint32_t)lattice->agents.count + 1;
    l->lane_of = CX_ARENA_ARRAY(&l->arena, uint32_t, slots);
    l->lanes = CX_ARENA_ARRAY(&l->arena, layout_lane, slots);
    if (l->lane_of == NULL || l->lanes == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < slots; i++)
        l->lane_of[i] = UINT32_MAX;
    uint32_t count = sequence_count(s);
    for (uint32_t i = 0; i < count; i++) {
        cx_node at = sequence_at(s, i);
        const node *n = node_at(lattice, at);
        uint32_t *lane = &l->lane_of[layout_slot_of(lattice, n->agent)];
        if (*lane == UINT32_MAX) {
            *lane = l->lane_count++;
            l->lanes[*lane] = (layout_lane){.agent = n->agent, .first = UINT32_MAX};
        }
        grow_lane(&l->lanes[*lane], s->row_of[at]);
    }
    return CX_SUCCESS;
}

/* A lane lives until the last row with an edge to it. */
static void stretch_lanes(layout *l, const scratch *s)
{
    const cx_lattice *lattice = s->lattice;
    for (cx_node at = 0; at < lattice->nodes.count; at++) {
        const node *n = node_at(lattice, at);
        const cx_node *parents = node_parents(lattice, n);
        for (uint32_t i = 0; i < parent_count(n); i++) {
            layout_lane *lane = &l->lanes[layout_lane_of(l, lattice, parents[i])];
            if (s->row_of[at] > lane->last_use)
                lane->last_use = s->row_of[at];
        }
    }
}

static void fill_lane_verdicts(layout *l, const cx_lattice *lattice,
                               const cx_lattice_report *report)
{
    size_t count;
    const cx_lattice_branch *branches = cx_lattice_report_branches(report, &count);
    for (size_t i = 0; i < count; i++) {
        uint32_t who = cx_lattice_find_agent(lattice, branches[i].agent);
        uint32_t lane = l->lane_of[layout_slot_of(lattice, who)];
        if (lane != UINT32_MAX)
            l->lanes[lane].verdict = !branches[i].valid    ? LAYOUT_INVALID
                                     : branches[i].tainted ? LAYOUT_TAINTED
                                                           : LAYOUT_VALID;
    }
}

/* --- rows ---------------------------------------------------------------------------------- */

static uint16_t row_marks(const scratch *s, cx_node at)
{
    const node *n = node_at(s->lattice, at);
    unsigned marks = 0;
    if (!in_graph(n))
        marks |= LAYOUT_LEFT_OUT;
    else if (s->lattice->position[at] == UINT32_MAX)
        marks |= LAYOUT_NO_ORDER;
    if (parent_count(n) == 0)
        marks |= LAYOUT_IS_ROOT;
    if (in_graph(n) && n->agent != NO_AGENT && cx_lattice_head_of(s->lattice, n->agent) == at)
        marks |= LAYOUT_IS_HEAD;
    if ((s->seen[at] & SEEN_ERROR) != 0)
        marks |= LAYOUT_HAS_ERROR;
    if ((s->seen[at] & SEEN_WARNING) != 0)
        marks |= LAYOUT_HAS_WARNING;
    if (cx_lattice_overrides(s->lattice, at) != 0)
        marks |= LAYOUT_IS_OVERRIDE;
    if (n->flags & NODE_FAILED)
        marks |= LAYOUT_IS_FAILED;
    return (uint16_t)marks;
}

static void select_window(layout *l, const layout_options *options)
{
    l->first = options->first < l->row_total ? options->first : l->row_total;
    uint32_t left = l->row_total - l->first;
    l->row_count = options->max_rows == 0 || options->max_rows > left ? left : options->max_rows;
}

/* The row of the window a node is in, or LAYOUT_OUTSIDE. */
static uint32_t window_row(const layout *l, const scratch *s, cx_node at)
{
    uint32_t row = s->row_of[at];
    return row >= l->first && row - l->first < l->row_count ? row - l->first : LAYOUT_OUTSIDE;
}

static cx_status fill_rows(layout *l, const scratch *s, cx_err *err)
{
    l->rows = CX_ARENA_ARRAY(&l->arena, layout_row, l->row_count);
    if (l->rows == NULL)
        return cx_fail_nomem(err);
    uint32_t count = sequence_count(s);
    for (uint32_t i = 0; i < count; i++) {
        cx_node at = sequence_at(s, i);
        uint32_t r = window_row(l, s, at);
        if (r == LAYOUT_OUTSIDE)
            continue;
        layout_row *row = &l->rows[r];
        if (is_folded(s, at) && s->run_start[at] != at) {
            row->last = at;
            row->folded++;
            continue;
        }
        const node *n = node_at(s->lattice, at);
        *row = (layout_row){.node = at,
                            .last = at,
                            .folded = is_folded(s, at) ? 1 : 0,
                            .lane = layout_lane_of(l, s->lattice, at),
                            .marks = row_marks(s, at),
                            .code = CX_LATTICE_CODE_COUNT,
                            .fork = (uint8_t)node_fork(n)};
        l->lanes[row->lane].in_window = true;
    }
    return CX_SUCCESS;
}

static void add_findings(layout *l, const scratch *s, const cx_lattice_finding *findings,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (findings[i].node == CX_NODE_NONE)
            continue;
        uint32_t r = window_row(l, s, findings[i].node);
        if (r == LAYOUT_OUTSIDE)
            continue;
        if (l->rows[r].finding_count++ == 0)
            l->rows[r].code = (uint8_t)findings[i].code;
    }
}

/* --- edges --------------------------------------------------------------------------------- */

static layout_edge_type edge_type(const cx_lattice *lattice, cx_node parent, cx_node child)
{
    const node *p = node_at(lattice, parent);
    const node *c = node_at(lattice, child);
    bool same = p->agent == c->agent;
    if (c->lineage == parent)
        return same && node_fork(c) == CX_FORK_NONE ? LAYOUT_LINEAGE : LAYOUT_FORK;
    /* A twig of a self-fork that is merged back has the predecessor's seq. */
    return !same || p->seq == c->seq - 1 ? LAYOUT_MERGE : LAYOUT_CAUSAL;
}

static void put_edge(layout *l, const scratch *s, cx_node parent, cx_node child)
{
    layout_edge_type type = edge_type(s->lattice, parent, child);
    uint32_t from = window_row(l, s, parent);
    uint32_t to = window_row(l, s, child);
    uint8_t fork = type == LAYOUT_FORK ? (uint8_t)node_fork(node_at(s->lattice, child)) : 0;
    l->edges[l->edge_count++] = (layout_edge){.parent = parent,
                                              .child = child,
                                              .from = from,
                                              .to = to,
                                              .type = (uint8_t)type,
                                              .fork = fork};
    l->lanes[layout_lane_of(l, s->lattice, parent)].in_window = true;
    l->lanes[layout_lane_of(l, s->lattice, child)].in_window = true;
    if (to != LAYOUT_OUTSIDE && type == LAYOUT_MERGE)
        l->rows[to].marks |= LAYOUT_IS_MERGE;
}

/* Edges from a row to rows outside the window; with `put` false only counts them. */
static uint32_t leaving_edges(layout *l, const scratch *s, const layout_row *row, bool put)
{
    if (!in_graph(node_at(s->lattice, row->last)))
        return 0;
    uint32_t count = 0;
    uint32_t child_count;
    const cx_node *children = node_children(s->lattice, row->last, &child_count);
    for (uint32_t i = 0; i < child_count; i++) {
        if (window_row(l, s, children[i]) != LAYOUT_OUTSIDE)
            continue;
        count++;
        if (put)
            put_edge(l, s, row->last, children[i]);
    }
    return count;
}

static cx_status fill_edges(layout *l, const scratch *s, cx_err *err)
{
    size_t count = 0;
    for (uint32_t r = 0; r < l->row_count; r++) {
        count += parent_count(node_at(s->lattice, l->rows[r].node));
        count += leaving_edges(l, s, &l->rows[r], false);
    }
    if (count >= UINT32_MAX)
        return cx_fail(err, CX_E_LIMIT, "found %zu edges, expected fewer than 2^32", count);
    l->edges = CX_ARENA_ARRAY(&l->arena, layout_edge, count);
    if (l->edges == NULL)
        return cx_fail_nomem(err);
    for (uint32_t r = 0; r < l->row_count; r++) {
        layout_row *row = &l->rows[r];
        const node *n = node_at(s->lattice, row->node);
        const cx_node *parents = node_parents(s->lattice, n);
        row->first_edge = l->edge_count;
        row->edge_count = parent_count(n);
        for (uint32_t i = 0; i < row->edge_count; i++)
            put_edge(l, s, parents[i], row->node);
    }
    l->into_count = l->edge_count;
    for (uint32_t r = 0; r < l->row_count; r++)
        (void)leaving_edges(l, s, &l->rows[r], true);
    CX_ASSERT(l->edge_count == count);
    return CX_SUCCESS;
}

/* --- times --------------------------------------------------------------------------------- */

#define FIRST_CLOCK_TIME 1e8

static bool has_clock_time(const node *n)
{
    if ((n->flags & NODE_UNUSABLE) != 0)
        return false;
    if ((n->flags & NODE_TIME_BIG) != 0)
        return true;
    double value = (n->flags & NODE_TIME_INT) != 0 ? (double)n->time.i : n->time.d;
    return fabs(value) >= FIRST_CLOCK_TIME || value != floor(value);
}

bool cx_lattice_is_timed(const cx_lattice *lattice)
{
    for (cx_node n = 0; n < lattice->nodes.count; n++) {
        if (has_clock_time(node_at(lattice, n)))
            return true;
    }
    return false;
}

/* --- columns ------------------------------------------------------------------------------- */

static bool parent_in_column(const layout *l, const layout_row *row, uint32_t column)
{
    for (uint32_t i = 0; i < row->edge_count; i++) {
        uint32_t from = l->edges[row->first_edge + i].from;
        if (from != LAYOUT_OUTSIDE && &l->rows[from] < row && l->rows[from].column == column)
            return true;
    }
    return false;
}

static cx_status fill_columns(layout *l, cx_arena *arena, cx_err *err)
{
    uint32_t *taken = CX_ARENA_ARRAY(arena, uint32_t, l->lane_count);
    if (taken == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < l->lane_count; i++)
        taken[i] = UINT32_MAX;
    uint32_t column = 0;
    for (uint32_t r = 0; r < l->row_count; r++) {
        layout_row *row = &l->rows[r];
        if (taken[row->lane] == column || parent_in_column(l, row, column))
            column++;
        row->column = column;
        taken[row->lane] = column;
    }
    l->column_count = l->row_count == 0 ? 0 : column + 1;
    return CX_SUCCESS;
}

/* --- labels -------------------------------------------------------------------------------- */

#define LABEL_TEXT_MAX 120 /* bytes of each half; longer labels do not fit a line */

static cx_str first_string(const cx_json *event, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cx_str text = cx_json_get_str(event, cx_str_z(names[i]));
        if (text.size == 0)
            continue;
        if (text.size > LABEL_TEXT_MAX) {
            text.size = LABEL_TEXT_MAX;
            while (text.size > 0 && ((uint8_t)text.data[text.size] & 0xC0) == 0x80)
                text.size--;
        }
        return text;
    }
    return (cx_str){NULL, 0};
}

/* "act search": what kind of event, and of what; events are free-form, so these are guesses. */
static cx_str event_label(const cx_json *event, cx_str kind, cx_arena *arena)
{
    static const char *const things[] = {"tool", "name", "text", "action", "goal", "message"};
    cx_str thing = first_string(event, things, CX_COUNT_OF(things));
    if (kind.size == 0 || thing.size == 0 || cx_str_eq(kind, thing))
        return cx_arena_copy_str(arena, kind.size != 0 ? kind : thing);
    return cx_arena_printf(arena, "%.*s %.*s", (int)kind.size, kind.data, (int)thing.size,
                           thing.data);
}

/* If the source cannot be read again, labels are missing, but the picture is complete. */
cx_status cx_lattice_words_of(const cx_lattice *lattice, cx_node n, cx_arena *arena,
                              cx_str *out_kind, cx_str *out_label, cx_err *err)
{
    static const char *const kinds[] = {"type", "kind", "action", "event_type"};
    cx_json source;
    cx_err ignored;
    *out_kind = *out_label = (cx_str){"", 0};
    cx_status status = cx_lattice_source(lattice, n, arena, &source, &ignored);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    const cx_json *event = cx_failed(status) ? NULL : CX_JSON_GET(&source, "event");
    if (event == NULL)
        return CX_SUCCESS;
    *out_kind = cx_arena_copy_str(arena, first_string(event, kinds, CX_COUNT_OF(kinds)));
    *out_label = event_label(event, *out_kind, arena);
    return out_kind->data == NULL || out_label->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_lattice_label_of(const cx_lattice *lattice, cx_node n, cx_arena *arena, cx_str *out,
                              cx_err *err)
{
    cx_str kind;
    return cx_lattice_words_of(lattice, n, arena, &kind, out, err);
}

static cx_status fill_labels(layout *l, const cx_lattice *lattice, cx_arena *arena, cx_err *err)
{
    for (uint32_t r = 0; r < l->row_count; r++) {
        layout_row *row = &l->rows[r];
        if (row->folded != 0)
            continue;
        cx_arena_mark mark = cx_arena_mark_now(arena);
        cx_str label;
        CX_TRY(cx_lattice_label_of(lattice, row->node, arena, &label, err));
        row->label = cx_arena_copy_str(&l->arena, label);
        if (row->label.data == NULL)
            return cx_fail_nomem(err);
        cx_arena_reset(arena, mark);
    }
    return CX_SUCCESS;
}

/* --- all of it ----------------------------------------------------------------------------- */

static cx_status build(layout *l, scratch *s, cx_arena *temporary, const layout_options *options,
                       cx_err *err)
{
    const cx_lattice_finding *errors = NULL, *warnings = NULL;
    size_t error_count = 0, warning_count = 0;
    CX_TRY(scratch_fill(s, temporary, options, err));
    if (options->report != NULL) {
        errors = cx_lattice_report_errors(options->report, &error_count);
        warnings = cx_lattice_report_warnings(options->report, &warning_count);
        note_findings(s, errors, error_count, SEEN_ERROR);
        note_findings(s, warnings, warning_count, SEEN_WARNING);
    }
    if (options->fold)
        find_stretches(s);
    l->row_total = number_rows(s);
    CX_TRY(fill_lanes(l, s, err));
    stretch_lanes(l, s);
    if (options->report != NULL)
        fill_lane_verdicts(l, s->lattice, options->report);
    select_window(l, options);
    CX_TRY(fill_rows(l, s, err));
    add_findings(l, s, errors, error_count);
    add_findings(l, s, warnings, warning_count);
    CX_TRY(fill_edges(l, s, err));
    CX_TRY(fill_columns(l, temporary, err));
    return options->labels ? fill_labels(l, s->lattice, temporary, err) : CX_SUCCESS;
}

cx_status cx_lattice_layout_init(layout *l, const cx_lattice *lattice,
                                 const layout_options *options, cx_err *err)
{
    CX_ASSERT(lattice != NULL && options != NULL);
    *l = (layout){.timed = cx_lattice_is_timed(lattice)};
    cx_arena_init(&l->arena, lattice->alloc, 0);
    cx_arena temporary;
    cx_arena_init(&temporary, lattice->alloc, 0);
    scratch s = {.lattice = lattice};
    cx_status status = build(l, &s, &temporary, options, err);
    cx_arena_done(&temporary);
    if (cx_failed(status))
        cx_lattice_layout_done(l);
    return status;
}

void cx_lattice_layout_done(layout *l)
{
    cx_arena_done(&l->arena);
    *l = (layout){.arena = l->arena};
}
