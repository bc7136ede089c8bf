/*
 * view_writes.c - where a key got its value, for a page: the changes before a node, newest first,
 * and the next one after it.
 *
 *   {"changes":[{node.., "new","old","via"}],"key","more":N,"next":{node..} or null,"node",
 *    "section"}
 *
 * As why.c sees a change: a value that differs from the one after the lineage parent.  `more`
 * counts the older changes that are not listed.  `next` is the first in topological order that
 * descends from the node.
 */
#include "lattice/ancestors.h"
#include "lattice/answer.h"
#include "view/view_internal.h"

typedef struct writes {
    const cx_lattice_view *view;
    const cx_states *states;
    const cx_lattice *lattice;
    state_section section;
    cx_str key;
    cx_str spelled;
    cx_buf *out;
    tree_work work;
    uint32_t told, more;
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

static cx_status put_write(writes *w, cx_node which, cx_value old, cx_value new, cx_err *err)
{
    cx_str delta = w->lattice->deltas.items[which];
    cx_buf_add_z(w->out, w->told++ == 0 ? "{" : ",{");
    cx_lattice_view_put_node(w->out, w->view, which);
    cx_buf_add_z(w->out, ",\"new\":");
    CX_TRY(cx_lattice_view_put_value(w->out, &w->work, new, CX_LATTICE_VIEW_VALUE_BYTES, err));
    cx_buf_add_z(w->out, ",\"old\":");
    CX_TRY(cx_lattice_view_put_value(w->out, &w->work, old, CX_LATTICE_VIEW_VALUE_BYTES, err));
    cx_buf_printf(w->out, ",\"via\":\"%s\"}",
                  cx_delta_names(delta, w->section, w->spelled) ? "delta" : "merge");
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
        if (w->told < CX_LATTICE_VIEW_CHANGES_MAX)
            CX_TRY(put_write(w, which, old, new, err));
        else
            w->more++;
    }
    return CX_SUCCESS;
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
    cx_tree_work_init(&w.work, states->alloc);
    cx_answer_str(&spelled, key);
    cx_status status = cx_buf_check(&spelled, err);
    if (!cx_failed(status)) {
        w.spelled = cx_str_from((const char *)spelled.data + 1, spelled.size - 2);
        status = put_writes(&w, which, err);
    }
    cx_tree_work_done(&w.work);
    cx_buf_done(&spelled);
    return status;
}
