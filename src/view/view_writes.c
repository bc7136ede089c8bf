/*
 * view_writes.c - where a key got its value, for a page: the changes before a node, newest first,
 * and the next one after it.
 *
 *   {"changes":[{node..,
 *   "because"?,"new","old","source"?,"text"?,"thinking"?,"via"}],"key","more":N,"next":{node..} or
 *   null,"node",
 *    "section"}
 *
 * As why.c sees a change: a value that differs from the one after the lineage parent.  `more`
 * counts the older changes that are not listed.  `next` is the first in topological order that
 * descends from the node.
 */
#include "lattice/ancestors.h"
#include "lattice/answer.h"
#include "view/view_internal.h"

typedef struct noted_write {
    cx_node which;
    cx_value old, new;
    size_t reason; /* number of its reason, or SIZE_MAX */
} noted_write;

typedef struct writes {
    const cx_lattice_view *view;
    const cx_states *states;
    const cx_lattice *lattice;
    state_section section;
    cx_str key;
    cx_str spelled;
    cx_buf *out;
    tree_work work;
    uint32_t more;
    cx_arena arena;
    CX_VEC(noted_write) noted;
    CX_VEC(change_reason) reasons;
} writes;

static const tree *section_of(const writes *w, const state *s)
{
    return w->section == SECTION_MEMORY ? s->memory : s->beliefs;
}

/* Whether the key's value changed at a node that has a state. */
static bool changed_at(writes *w, cx_node which, cx_value *out_old, cx_value *out_new, bool *out)
{
    cx_node lineage = node_at(w->lattice, which)->lineage;
    const tree *after = section_of(w, cx_states_at(w->states, which));
    const tree *before =
        lineage == CX_NODE_NONE ? NULL : section_of(w, cx_states_at(w->states, lineage));
    bool equal = true;
    *out = false;
    if (before == after)
        return true;
    *out_old = tree_value(cx_tree_find(before, w->key));
    *out_new = tree_value(cx_tree_find(after, w->key));
    if (!cx_tree_equal(&w->work, *out_old, *out_new, &equal))
        return false;
    *out = !equal;
    return true;
}

static cx_status copy_value(writes *w, cx_value value, cx_str *out, cx_err *err)
{
    cx_buf text;
    if (value_is_absent(value))
        return CX_SUCCESS;
    cx_buf_init(&text, w->lattice->alloc);
    bool ok = cx_tree_write(&w->work, value, &text) && !text.failed;
    if (ok && text.size <= CHANGE_VALUE_MAX) {
        *out = cx_arena_copy_str(&w->arena, cx_buf_str(&text));
        ok = out->data != NULL;
    }
    cx_buf_done(&text);
    return ok ? CX_SUCCESS : cx_fail_nomem(err);
}

/* Reasons are those of changes that a node made by itself. */
static cx_status note_write(writes *w, cx_node which, cx_value old, cx_value new, cx_err *err)
{
    noted_write *write = cx_vec_push(&w->noted, w->lattice->alloc);
    if (write == NULL)
        return cx_fail_nomem(err);
    *write = (noted_write){which, old, new, SIZE_MAX};
    if (w->reasons.count == CHANGE_REASONS_MAX ||
        !cx_delta_names(w->lattice->deltas.items[which], w->section, w->spelled))
        return CX_SUCCESS;
    write->reason = w->reasons.count;
    change_reason *reason = cx_vec_push(&w->reasons, w->lattice->alloc);
    if (reason == NULL)
        return cx_fail_nomem(err);
    *reason = (change_reason){.which = which, .source = CX_NODE_NONE};
    if (w->reasons.count > CHANGE_SOURCES_MAX)
        return CX_SUCCESS;
    CX_TRY(copy_value(w, new, &reason->value, err));
    return copy_value(w, old, &reason->old, err);
}

static void put_words(writes *w, const char *name, cx_str text)
{
    if (text.size == 0)
        return;
    cx_buf_printf(w->out, ",\"%s\":", name);
    cx_answer_str(w->out, text);
}

static void put_source(writes *w, const change_reason *reason)
{
    if (reason->source == CX_NODE_NONE)
        return;
    cx_buf_add_z(w->out, ",\"source\":{");
    cx_lattice_view_put_node(w->out, w->view, reason->source);
    put_words(w, "text", reason->source_text);
    cx_buf_add_byte(w->out, '}');
}

static cx_status put_write(writes *w, const noted_write *write, cx_err *err)
{
    static const change_reason none = {.source = CX_NODE_NONE};
    bool own = cx_delta_names(w->lattice->deltas.items[write->which], w->section, w->spelled);
    const change_reason *reason =
        write->reason == SIZE_MAX ? &none : &w->reasons.items[write->reason];
    cx_buf_add_byte(w->out, '{');
    cx_lattice_view_put_node(w->out, w->view, write->which);
    put_words(w, "because", reason->because);
    cx_buf_add_z(w->out, ",\"new\":");
    CX_TRY(
        cx_lattice_view_put_value(w->out, &w->work, write->new, CX_LATTICE_VIEW_VALUE_BYTES, err));
    cx_buf_add_z(w->out, ",\"old\":");
    CX_TRY(
        cx_lattice_view_put_value(w->out, &w->work, write->old, CX_LATTICE_VIEW_VALUE_BYTES, err));
    put_source(w, reason);
    put_words(w, "text", reason->text);
    put_words(w, "thinking", reason->thinking);
    cx_buf_printf(w->out, ",\"via\":\"%s\"}", own ? "delta" : "merge");
    return CX_SUCCESS;
}

static cx_status put_noted(writes *w, cx_err *err)
{
    CX_TRY(cx_change_reasons(w->lattice, w->reasons.items, w->reasons.count, &w->arena, err));
    for (size_t i = 0; i < w->noted.count; i++) {
        if (i != 0)
            cx_buf_add_byte(w->out, ',');
        CX_TRY(put_write(w, &w->noted.items[i], err));
    }
    return CX_SUCCESS;
}

static bool has_bit(const uint64_t *bits, uint32_t position)
{
    return (bits[position / 64] >> (position % 64) & 1) != 0;
}

static cx_status put_before(writes *w, uint64_t *bits, uint32_t position, cx_err *err)
{
    bits[position / 64] |= UINT64_C(1) << (position % 64);
    cx_lattice_mark_ancestors(w->lattice, bits);
    for (uint32_t at = position + 1; at-- > 0;) {
        cx_value old, new;
        bool changed;
        if (!has_bit(bits, at))
            continue;
        cx_node which = w->lattice->order[at];
        if (!changed_at(w, which, &old, &new, &changed))
            return cx_fail_nomem(err);
        if (!changed)
            continue;
        if (w->noted.count < CX_LATTICE_VIEW_CHANGES_MAX)
            CX_TRY(note_write(w, which, old, new, err));
        else
            w->more++;
    }
    return put_noted(w, err);
}

/* Stops at the first change, so all following nodes are visited only when there is none. */
static cx_status put_next(writes *w, uint64_t *bits, uint32_t position, cx_err *err)
{
    const cx_lattice *lattice = w->lattice;
    bits[position / 64] |= UINT64_C(1) << (position % 64);
    for (uint32_t at = position + 1; at < lattice->order_count; at++) {
        cx_node which = lattice->order[at];
        const node *n = node_at(lattice, which);
        const cx_node *parents = node_parents(lattice, n);
        bool descends = false, changed;
        cx_value old, new;
        for (uint32_t i = 0; i < n->parent_count && !descends; i++)
            descends = lattice->position[parents[i]] != UINT32_MAX &&
                       has_bit(bits, lattice->position[parents[i]]);
        if (!descends)
            continue;
        bits[at / 64] |= UINT64_C(1) << (at % 64);
        if (!changed_at(w, which, &old, &new, &changed))
            return cx_fail_nomem(err);
        if (!changed)
            continue;
        cx_buf_add_byte(w->out, '{');
        cx_lattice_view_put_node(w->out, w->view, which);
        cx_buf_add_byte(w->out, '}');
        return CX_SUCCESS;
    }
    cx_buf_add_z(w->out, "null");
    return CX_SUCCESS;
}

static cx_status put_writes(writes *w, cx_node which, cx_err *err)
{
    const cx_lattice *lattice = w->lattice;
    uint32_t position = lattice->position[which];
    size_t words = ((size_t)lattice->order_count + 63) / 64;
    uint64_t *bits = cx_alloc_zeroed(lattice->alloc, words, sizeof *bits);
    if (bits == NULL)
        return cx_fail_nomem(err);
    cx_buf_add_z(w->out, "{\"changes\":[");
    cx_status status = put_before(w, bits, position, err);
    if (!cx_failed(status)) {
        cx_buf_add_z(w->out, "],\"key\":");
        cx_answer_str(w->out, w->key);
        cx_buf_printf(w->out, ",\"more\":%lu,\"next\":", (unsigned long)w->more);
        memset(bits, 0, words * sizeof *bits);
        status = put_next(w, bits, position, err);
    }
    cx_alloc_free(lattice->alloc, bits, words * sizeof *bits);
    CX_TRY(status);
    cx_buf_add_z(w->out, ",\"node\":");
    cx_answer_node_str(w->out, lattice, which);
    cx_buf_add_z(w->out, ",\"section\":");
    cx_answer_str(w->out, cx_state_section_name(w->section));
    cx_buf_add_z(w->out, "}\n");
    return cx_buf_check(w->out, err);
}

cx_status cx_lattice_view_writes(cx_buf *out, const cx_lattice_view *view, const cx_states *states,
                                 cx_node which, cx_str section, cx_str key, cx_err *err)
{
    cx_buf spelled;
    writes w = {.view = view,
                .states = states,
                .lattice = view->lattice,
                .section = cx_state_section_named(section),
                .key = key,
                .out = out};
    if (w.section != SECTION_MEMORY && w.section != SECTION_BELIEFS)
        return cx_fail(err, CX_E_USAGE, "a section is memory or beliefs: found '%.*s'",
                       (int)(section.size > 80 ? 80 : section.size), section.data);
    CX_TRY(cx_lattice_view_need_place(view->lattice, which, err));
    cx_buf_init(&spelled, states->alloc);
    cx_arena_init(&w.arena, states->alloc, 0);
    cx_tree_work_init(&w.work, states->alloc);
    cx_answer_str(&spelled, key);
    cx_status status = cx_buf_check(&spelled, err);
    if (!cx_failed(status)) {
        w.spelled = cx_str_from((const char *)spelled.data + 1, spelled.size - 2);
        status = put_writes(&w, which, err);
    }
    cx_vec_done(&w.noted, states->alloc);
    cx_vec_done(&w.reasons, states->alloc);
    cx_tree_work_done(&w.work);
    cx_arena_done(&w.arena);
    cx_buf_done(&spelled);
    return status;
}
