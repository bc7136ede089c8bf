/*
 * view_state.c - one node, one level of its state, and the writes of a key, for a page.
 *
 *   node    {"agent","changes":[{"key","new","old","section","via"}],"child_count","children":[..],
 *            "col","event","findings":[{"code","detail"}],"fold","hash","id",
 *            "in_graph","lane","line","lineage","more_changes","n","next_own","parents":[..],
 *            "place","prev_hash","prev_own","seq","t","verified"}
 *   values  {"entries":[{"changed","key","kind","value"}],"kind","more","pointer","value"}
 *   writes  {"changes":[{node.., "new","old","via"}],"key","more","next","node","section"}
 *
 * A value is {"cut","size","text"}: canonical JSON as a text, so that no number changes on the way,
 * and only its first bytes when it is cut; null when it does not exist.
 *
 *   V1  changes are computed from the states, never from the delta alone: a merge changes values
 *       too.
 */
#include "lattice/ancestors.h"
#include "lattice/answer.h"
#include "view/render.h"
#include "view/view_internal.h"

#define NEIGHBOURS_TOLD 50
#define KIND_SCAN_MAX 1000 /* members of an inner object are counted up to this */

/* --- values ----------------------------------------------------------------------------------- */

static void put_part(cx_buf *out, cx_str text, size_t most, bool whole)
{
    cx_buf_printf(out, "{\"cut\":%s,%s\"size\":%zu,\"text\":", text.size > most ? "true" : "false",
                  whole ? "" : "\"least\":true,", text.size);
    cx_answer_str(out, shortened(text, most));
    cx_buf_add_byte(out, '}');
}

void cx_lattice_view_put_text(cx_buf *out, cx_str text, size_t most)
{
    put_part(out, text, most, true);
}

/* Of a large map only what is shown is written, and a little more, so that its size does not
 * decide how long that takes. */
cx_status cx_lattice_view_put_value(cx_buf *out, tree_work *work, cx_value v, size_t most,
                                    cx_err *err)
{
    if (value_is_absent(v)) {
        cx_buf_add_z(out, "null");
        return CX_SUCCESS;
    }
    cx_buf text;
    bool whole = true;
    size_t enough = most > CX_LATTICE_VIEW_WHOLE_BYTES ? most : CX_LATTICE_VIEW_WHOLE_BYTES;
    cx_buf_init(&text, out->alloc);
    cx_str shown = value_is_leaf(v) ? value_text(v) : (cx_str){NULL, 0};
    if (!value_is_leaf(v)) {
        if (!cx_tree_write_most(work, v, enough, &text, &whole)) {
            cx_buf_done(&text);
            return cx_fail_nomem(err);
        }
        shown = cx_buf_str(&text);
    }
    put_part(out, shown, most, whole);
    cx_buf_done(&text);
    return CX_SUCCESS;
}

static const char *kind_of(cx_value v)
{
    if (value_is_absent(v))
        return "absent";
    if (value_is_map(v))
        return "object";
    switch (*(const char *)v.data) {
    case '[': return "array";
    case '{': return "object";
    case '"': return "string";
    case 't':
    case 'f': return "boolean";
    case 'n': return "null";
    default: return "number";
    }
}

/* --- going through a map in order ------------------------------------------------------------- */

/* Treaps are about 2 log n deep; a deeper one was crafted. */
enum { WALK_DEPTH = 256 };

typedef struct map_walk {
    const tree *open[WALK_DEPTH];
    size_t depth;
    bool lost; /* deeper than can be walked */
} map_walk;

static void walk_left(map_walk *walk, const tree *t)
{
    for (; t != NULL; t = t->left) {
        if (walk->depth == WALK_DEPTH) {
            walk->lost = true;
            return;
        }
        walk->open[walk->depth++] = t;
    }
}

/* Starts at the first key after `after`. */
static map_walk walk_begin(const tree *root, cx_str after)
{
    map_walk walk = {.depth = 0};
    if (after.data == NULL) {
        walk_left(&walk, root);
        return walk;
    }
    for (const tree *t = root; t != NULL && walk.depth < WALK_DEPTH;) {
        if (cx_str_cmp(tree_key(t), after) > 0) {
            walk.open[walk.depth++] = t;
            t = t->left;
        } else {
            t = t->right;
        }
    }
    return walk;
}

static const tree *walk_next(map_walk *walk)
{
    if (walk->depth == 0)
        return NULL;
    const tree *t = walk->open[--walk->depth];
    walk_left(walk, t->right);
    return t;
}

static uint32_t count_members(const tree *root)
{
    map_walk walk = walk_begin(root, (cx_str){NULL, 0});
    uint32_t count = 0;
    while (count < KIND_SCAN_MAX && walk_next(&walk) != NULL)
        count++;
    return count;
}

/* --- one level of a state --------------------------------------------------------------------- */

typedef struct level {
    const cx_states *states;
    const cx_lattice_view_level *asked;
    cx_buf *out;
    tree_work work;
    cx_arena arena;
    state now, before; /* before: after the lineage parent */
    uint32_t told;
} level;

static cx_status put_entry(level *l, cx_str key, cx_value v, cx_value old, cx_err *err)
{
    bool equal;
    cx_buf_add_z(l->out, l->told++ == 0 ? "{" : ",{");
    if (!cx_tree_equal(&l->work, v, old, &equal))
        return cx_fail_nomem(err);
    cx_buf_printf(l->out, "\"changed\":%s,\"key\":", equal ? "false" : "true");
    cx_answer_str(l->out, key);
    cx_buf_printf(l->out, ",\"kind\":\"%s\"", kind_of(v));
    if (value_is_map(v)) {
        uint32_t count = count_members(value_root(v));
        cx_buf_printf(l->out, ",\"count\":%lu,\"many\":%s", (unsigned long)count,
                      count == KIND_SCAN_MAX ? "true" : "false");
    } else {
        cx_buf_add_z(l->out, ",\"value\":");
        CX_TRY(cx_lattice_view_put_value(l->out, &l->work, v, CX_LATTICE_VIEW_VALUE_BYTES, err));
    }
    cx_buf_add_byte(l->out, '}');
    return CX_SUCCESS;
}

static cx_status put_sections(level *l, cx_err *err)
{
    static const state_section sections[] = {SECTION_MEMORY, SECTION_BELIEFS, SECTION_GOALS,
                                             SECTION_CONTEXT_STACK};
    cx_buf_add_z(l->out, "{\"entries\":[");
    for (size_t i = 0; i < CX_COUNT_OF(sections); i++)
        CX_TRY(put_entry(l, cx_state_section_name(sections[i]),
                         cx_state_section_value(&l->now, sections[i]),
                         cx_state_section_value(&l->before, sections[i]), err));
    cx_buf_add_z(l->out, "],\"kind\":\"object\",\"more\":false");
    return CX_SUCCESS;
}

static cx_status put_members(level *l, cx_value v, cx_value old, cx_err *err)
{
    uint32_t most = l->asked->count == 0 || l->asked->count > CX_LATTICE_VIEW_VALUES_MAX
                        ? CX_LATTICE_VIEW_VALUES_MAX
                        : l->asked->count;
    map_walk walk = walk_begin(value_root(v), l->asked->after);
    const tree *t = NULL;
    cx_buf_add_z(l->out, "{\"entries\":[");
    while (l->told < most && (t = walk_next(&walk)) != NULL) {
        cx_arena_mark mark = cx_arena_mark_now(&l->arena);
        const tree *was = value_is_map(old) ? cx_tree_find(value_root(old), tree_key(t)) : NULL;
        CX_TRY(put_entry(l, tree_key(t), tree_value(t), tree_value(was), err));
        cx_arena_reset(&l->arena, mark);
    }
    if (walk.lost)
        return cx_fail(err, CX_E_LIMIT, "the state is nested too deeply to be listed");
    cx_buf_printf(l->out, "],\"kind\":\"object\",\"more\":%s",
                  t != NULL && walk_next(&walk) != NULL ? "true" : "false");
    return CX_SUCCESS;
}

/* A value inside an array is compared as part of the whole array. */
static cx_status put_leaf(level *l, const state_spot *spot, cx_err *err)
{
    cx_buf_printf(l->out,
                  "{\"entries\":[],\"kind\":\"%s\",\"more\":false,\"value\":", kind_of(spot->v));
    return cx_lattice_view_put_value(l->out, &l->work, spot->v, CX_LATTICE_VIEW_WHOLE_BYTES, err);
}

static cx_status put_level(level *l, cx_err *err)
{
    state_spot spot, was;
    CX_TRY(cx_state_find(&l->now, l->asked->pointer, &l->arena, &spot, err));
    CX_TRY(cx_state_find(&l->before, l->asked->pointer, &l->arena, &was, err));
    if (!spot.is_there)
        return cx_fail(err, CX_E_NOT_FOUND, "the state has no value at this pointer");
    if (spot.is_whole)
        CX_TRY(put_sections(l, err));
    else if (value_is_map(spot.v) && spot.inside.size == 0)
        CX_TRY(put_members(l, spot.v, was.is_there ? was.v : VALUE_ABSENT, err));
    else
        CX_TRY(put_leaf(l, &spot, err));
    cx_buf_add_z(l->out, ",\"pointer\":");
    cx_answer_str(l->out, l->asked->pointer);
    cx_buf_add_z(l->out, "}\n");
    return cx_buf_check(l->out, err);
}

/* The states after a node and after its lineage parent. */
static cx_status states_around(const cx_states *states, cx_node which, state *out_now,
                               state *out_before, cx_err *err)
{
    cx_node lineage = node_at(states->lattice, which)->lineage;
    CX_TRY(cx_states_get(states, which, false, out_now, err));
    *out_before = cx_state_empty();
    return lineage == CX_NODE_NONE ? CX_SUCCESS
                                   : cx_states_get(states, lineage, false, out_before, err);
}

cx_status cx_lattice_view_values(cx_buf *out, const cx_lattice_view *view, const cx_states *states,
                                 cx_node which, const cx_lattice_view_level *asked, cx_err *err)
{
    level l = {.states = states, .asked = asked, .out = out};
    CX_TRY(cx_lattice_view_need_place(view->lattice, which, err));
    cx_tree_work_init(&l.work, states->alloc);
    cx_arena_init(&l.arena, states->alloc, 0);
    cx_status status = states_around(states, which, &l.now, &l.before, err);
    if (!cx_failed(status))
        status = put_level(&l, err);
    cx_arena_done(&l.arena);
    cx_tree_work_done(&l.work);
    return status;
}

/* --- what a node changed (V1) ----------------------------------------------------------------- */

typedef struct changes {
    cx_buf *out;
    tree_work work;
    cx_str delta;
    state_section section;
    uint32_t told;
    bool more;
    cx_err *err;
    cx_status status;
} changes;

static const char *via_of(const changes *c, cx_str key)
{
    cx_buf spelled;
    cx_buf_init(&spelled, c->work.alloc);
    cx_answer_str(&spelled, key);
    bool named = !spelled.failed && spelled.size >= 2 &&
                 cx_delta_names(c->delta, c->section,
                                cx_str_from((const char *)spelled.data + 1, spelled.size - 2));
    cx_buf_done(&spelled);
    return named ? "delta" : "merge";
}

static bool put_change(void *arg, cx_str key, cx_value old, cx_value now)
{
    changes *c = arg;
    if (c->told == CX_LATTICE_VIEW_CHANGES_MAX) {
        c->more = true;
        return false;
    }
    cx_buf_add_z(c->out, c->told++ == 0 ? "{\"key\":" : ",{\"key\":");
    if (key.data == NULL)
        cx_buf_add_z(c->out, "null");
    else
        cx_answer_str(c->out, key);
    cx_buf_add_z(c->out, ",\"new\":");
    c->status =
        cx_lattice_view_put_value(c->out, &c->work, now, CX_LATTICE_VIEW_VALUE_BYTES, c->err);
    if (cx_failed(c->status))
        return false;
    cx_buf_add_z(c->out, ",\"old\":");
    c->status =
        cx_lattice_view_put_value(c->out, &c->work, old, CX_LATTICE_VIEW_VALUE_BYTES, c->err);
    cx_buf_add_z(c->out, ",\"section\":");
    cx_answer_str(c->out, cx_state_section_name(c->section));
    cx_buf_printf(c->out, ",\"via\":\"%s\"}",
                  key.data == NULL || c->section == SECTION_GOALS ? "delta" : via_of(c, key));
    return !cx_failed(c->status);
}

static cx_status diff_sections(changes *c, const state *before, const state *now, cx_err *err)
{
    static const state_section lists[2] = {SECTION_GOALS, SECTION_CONTEXT_STACK};
    tree_work work;
    cx_tree_work_init(&work, c->work.alloc);
    c->section = SECTION_MEMORY;
    bool ok = cx_tree_diff(&work, before->memory, now->memory, put_change, c);
    c->section = SECTION_BELIEFS;
    ok = ok && cx_tree_diff(&work, before->beliefs, now->beliefs, put_change, c);
    for (size_t i = 0; ok && i < 2; i++) {
        bool equal;
        cx_value old = cx_state_section_value(before, lists[i]);
        cx_value new = cx_state_section_value(now, lists[i]);
        c->section = lists[i];
        ok = cx_tree_equal(&work, old, new, &equal);
        if (ok && !equal)
            (void)put_change(c, (cx_str){NULL, 0}, old, new);
    }
    cx_tree_work_done(&work);
    if (cx_failed(c->status))
        return c->status;
    return ok ? CX_SUCCESS : cx_fail_nomem(err);
}

static cx_status put_changes(cx_buf *out, const cx_states *states, cx_node which, cx_err *err)
{
    state now, before;
    changes c = {.out = out, .delta = states->lattice->deltas.items[which], .err = err};
    cx_buf_add_z(out, ",\"changes\":[");
    if (states->lattice->position[which] != UINT32_MAX) {
        CX_TRY(states_around(states, which, &now, &before, err));
        cx_tree_work_init(&c.work, states->alloc);
        cx_status status = diff_sections(&c, &before, &now, err);
        cx_tree_work_done(&c.work);
        CX_TRY(status);
    }
    cx_buf_printf(out, "],\"more_changes\":%s", c.more ? "true" : "false");
    return CX_SUCCESS;
}

/* --- one node --------------------------------------------------------------------------------- */

static void put_neighbours(cx_buf *out, const cx_lattice_view *view, const char *name,
                           const cx_node *nodes, uint32_t count)
{
    cx_buf_printf(out, ",\"%s\":[", name);
    for (uint32_t i = 0; i < count && i < NEIGHBOURS_TOLD; i++) {
        cx_buf_add_z(out, i == 0 ? "{" : ",{");
        cx_lattice_view_put_node(out, view, nodes[i]);
        cx_buf_add_byte(out, '}');
    }
    cx_buf_add_byte(out, ']');
}

/* "at:FILE:LINE" of an imported record, which names it in the whole and in every part; *out_line is
 * its line in the source, 0 for none. */
static void put_place(cx_buf *out, const cx_json *event, uint64_t *out_line)
{
    const cx_json *at =
        event == NULL ? NULL : cx_json_get_typed(event, CX_STR("at"), CX_JSON_OBJECT);
    const cx_json *place = at == NULL ? NULL : CX_JSON_GET(at, "line");
    uint64_t file = 0, number = 0;
    if (place == NULL || !cx_json_uint64(place, out_line))
        *out_line = 0;
    if (at != NULL && place == NULL)
        place = CX_JSON_GET(at, "index");
    if (place != NULL && cx_json_uint64(CX_JSON_GET(at, "file"), &file) &&
        cx_json_uint64(place, &number))
        cx_buf_printf(out, ",\"place\":\"at:%llu:%llu\"", (unsigned long long)file,
                      (unsigned long long)number);
    else
        cx_buf_add_z(out, ",\"place\":null");
}

static cx_status put_event(cx_buf *out, const cx_lattice *lattice, cx_node which,
                           uint64_t *out_line, cx_err *err)
{
    cx_arena arena;
    cx_json source;
    cx_buf text;
    cx_arena_init(&arena, lattice->alloc, 0);
    cx_buf_init(&text, lattice->alloc);
    cx_status status = cx_lattice_source(lattice, which, &arena, &source, err);
    const cx_json *event = cx_failed(status) ? NULL : CX_JSON_GET(&source, "event");
    if (event != NULL)
        status = cx_json_has_canonical(event) ? cx_json_write(&text, event, CX_JSON_PY_COMPACT, err)
                                              : cx_json_write_pretty(&text, event, 0, err);
    if (!cx_failed(status)) {
        cx_buf_add_z(out, ",\"event\":");
        cx_lattice_view_put_text(out, cx_buf_str(&text), CX_LATTICE_VIEW_WHOLE_BYTES);
        put_place(out, event, out_line);
    }
    cx_buf_done(&text);
    cx_arena_done(&arena);
    return status;
}

static void put_findings(cx_buf *out, const cx_lattice_report *report, cx_node which)
{
    size_t counts[2], told = 0;
    const cx_lattice_finding *lists[2] = {cx_lattice_report_errors(report, &counts[0]),
                                          cx_lattice_report_warnings(report, &counts[1])};
    cx_buf_add_z(out, ",\"findings\":[");
    for (size_t kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < counts[kind]; i++) {
            if (lists[kind][i].node != which)
                continue;
            cx_buf_printf(out, "%s{\"code\":\"%s\",\"detail\":", told++ == 0 ? "" : ",",
                          cx_lattice_code_name(lists[kind][i].code));
            cx_answer_str(out, lists[kind][i].detail);
            cx_buf_add_byte(out, '}');
        }
    cx_buf_add_byte(out, ']');
}

/* The previous and the next node in its own branch. */
static void put_branch_neighbours(cx_buf *out, const cx_lattice *lattice, cx_node which)
{
    const node *n = node_at(lattice, which);
    cx_node around[2] = {CX_NODE_NONE, CX_NODE_NONE};
    if (in_graph(n) && n->agent != NO_AGENT) {
        const agent *who = &lattice->agents.items[n->agent];
        uint32_t low = who->first, high = who->first + who->count;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            cx_node at = lattice->branch_nodes[middle];
            if (node_at(lattice, at)->seq < n->seq ||
                (node_at(lattice, at)->seq == n->seq && lattice->rank[at] < lattice->rank[which]))
                low = middle + 1;
            else
                high = middle;
        }
        if (low > who->first)
            around[0] = lattice->branch_nodes[low - 1];
        if (low + 1 < who->first + who->count)
            around[1] = lattice->branch_nodes[low + 1];
    }
    static const char *const names[2] = {"prev_own", "next_own"};
    for (size_t i = 0; i < 2; i++)
        if (around[i] == CX_NODE_NONE)
            cx_buf_printf(out, ",\"%s\":null", names[i]);
        else
            cx_buf_printf(out, ",\"%s\":%lu", names[i], (unsigned long)around[i]);
}

cx_status cx_lattice_view_node(cx_buf *out, const cx_lattice_view *view, const cx_states *states,
                               cx_node which, cx_err *err)
{
    const cx_lattice *lattice = view->lattice;
    cx_lattice_node_info info;
    uint64_t source_line = 0;
    char scratch[64];
    cx_lattice_node(lattice, which, &info);
    cx_buf_add_byte(out, '{');
    cx_lattice_view_put_node(out, view, which);
    CX_TRY(put_changes(out, states, which, err));
    cx_buf_printf(out, ",\"child_count\":%lu", (unsigned long)info.child_count);
    put_neighbours(out, view, "children", info.children, info.child_count);
    CX_TRY(put_event(out, lattice, which, &source_line, err));
    put_findings(out, view->report, which);
    cx_buf_printf(out, ",\"fold\":%lu,\"fork\":\"%s\",\"hash\":",
                  (unsigned long)view->l.rows[view->row_of[which]].folded,
                  cx_lattice_render_fork(info.fork_type));
    cx_answer_str(out, cx_lattice_hash_text(lattice, which, scratch));
    cx_buf_printf(out,
                  ",\"in_graph\":%s,\"line\":%llu,\"lineage\":", info.in_graph ? "true" : "false",
                  /* A history that was made in memory has no lines that anyone can open. */
                  (unsigned long long)(lattice->path == NULL ? source_line : info.line));
    if (info.lineage == CX_NODE_NONE)
        cx_buf_add_z(out, "null");
    else
        cx_buf_printf(out, "%lu", (unsigned long)info.lineage);
    put_branch_neighbours(out, lattice, which);
    cx_lattice_view_put_signs(out, view, which);
    put_neighbours(out, view, "parents", info.parents, info.parent_count);
    cx_buf_add_z(out, ",\"prev_hash\":");
    cx_answer_str(out, cx_lattice_prev_text(lattice, which, scratch));
    cx_buf_printf(out, ",\"verified\":%s}\n",
                  cx_lattice_report_verdict(view->report) == CX_HOLDS ? "true" : "false");
    return cx_buf_check(out, err);
}
