/*
 * view_carry.c - a part of a history for a page that contains its data (web/src/base/carried.ts).
 *
 *   {"bases":{"#N":{"beliefs","context_stack","goals","memory"}},"first","format":"cortex-page-1",
 *    "nodes":[as cx_lattice_view_node],"summary","title","window"}
 *
 * `bases` has the state after each lineage parent that is not among the nodes, and each value is as
 * in view_state.c; so the state at any node here is a base (or nothing) plus the changes since.
 */
#include "lattice/answer.h"
#include "view/view_internal.h"

static bool is_carried(const cx_lattice_view *view, cx_node n, uint32_t first, uint32_t last)
{
    uint32_t row = view->row_of[n];
    return row >= first && row < last;
}

static cx_status put_base(cx_buf *out, const cx_states *states, cx_node n, cx_err *err)
{
    static const state_section sections[] = {SECTION_BELIEFS, SECTION_CONTEXT_STACK, SECTION_GOALS,
                                             SECTION_MEMORY};
    state s;
    tree_work work;
    cx_status status = CX_SUCCESS;
    CX_TRY(cx_states_get(states, n, false, &s, err));
    cx_tree_work_init(&work, states->alloc);
    for (size_t i = 0; i < CX_COUNT_OF(sections) && !cx_failed(status); i++) {
        cx_buf_add_z(out, i == 0 ? "{\"" : ",\"");
        cx_buf_add_str(out, cx_state_section_name(sections[i]));
        cx_buf_add_z(out, "\":");
        status = cx_lattice_view_put_value(out, &work, cx_state_section_value(&s, sections[i]),
                                           CX_LATTICE_VIEW_WHOLE_BYTES, err);
    }
    cx_buf_add_byte(out, '}');
    cx_tree_work_done(&work);
    return status;
}

/* The lineage parents before the part, each once: branches are few, so searching those that were
 * written is cheap. */
static cx_status put_bases(cx_buf *out, const cx_lattice_view *view, const cx_states *states,
                           uint32_t first, uint32_t last, cx_err *err)
{
    const cx_lattice *lattice = view->lattice;
    CX_VEC(cx_node) put = {0};
    cx_status status = CX_SUCCESS;
    cx_buf_add_z(out, "{\"bases\":{");
    for (uint32_t r = first; r < last && !cx_failed(status); r++) {
        cx_node parent = node_at(lattice, view->l.rows[r].node)->lineage;
        bool known = parent == CX_NODE_NONE || is_carried(view, parent, first, last) ||
                     lattice->position[parent] == UINT32_MAX;
        for (size_t i = 0; i < put.count && !known; i++)
            known = put.items[i] == parent;
        if (known)
            continue;
        cx_node *slot = cx_vec_push(&put, lattice->alloc);
        if (slot == NULL) {
            status = cx_fail_nomem(err);
            break;
        }
        *slot = parent;
        cx_buf_printf(out, "%s\"#%lu\":", put.count == 1 ? "" : ",", (unsigned long)parent);
        status = put_base(out, states, parent, err);
    }
    cx_vec_done(&put, lattice->alloc);
    return status;
}

/* What could begin markup becomes \u003c: in JSON it occurs in strings only. */
static cx_status hide_markup(cx_buf *out, size_t start, cx_err *err)
{
    size_t count = 0;
    for (size_t i = start; i < out->size; i++)
        count += out->data[i] == '<';
    size_t from = out->size, to = from + 5 * count;
    if (count == 0)
        return cx_buf_check(out, err);
    if (cx_buf_reserve(out, 5 * count) == NULL)
        return cx_fail_nomem(err);
    cx_buf_advance(out, 5 * count);
    while (from > start) {
        uint8_t c = out->data[--from];
        if (c == '<') {
            to -= 6;
            memcpy(out->data + to, "\\u003c", 6);
        } else {
            out->data[--to] = c;
        }
    }
    return cx_buf_check(out, err);
}

static cx_status put_nodes(cx_buf *out, const cx_lattice_view *view, const cx_states *states,
                           uint32_t first, uint32_t *last, cx_err *err)
{
    size_t start = out->size;
    cx_buf_add_z(out, ",\"nodes\":[");
    for (uint32_t r = first; r < *last; r++) {
        if (out->size - start > CX_LATTICE_VIEW_CARRIED_BYTES) {
            *last = r;
            break;
        }
        if (r != first)
            cx_buf_add_byte(out, ',');
        CX_TRY(cx_lattice_view_node(out, view, states, view->l.rows[r].node, err));
    }
    cx_buf_add_byte(out, ']');
    return CX_SUCCESS;
}

cx_status cx_lattice_view_carry(cx_buf *out, const cx_lattice_view *view, const cx_states *states,
                                const cx_lattice_view_part *part, uint32_t *out_nodes, cx_err *err)
{
    size_t start = out->size;
    uint32_t rows = view->l.row_count;
    uint32_t most = part->count == 0 || part->count > CX_LATTICE_VIEW_CARRIED_NODES
                        ? CX_LATTICE_VIEW_CARRIED_NODES
                        : part->count;
    uint32_t first = part->first < rows ? part->first : rows;
    uint32_t last = rows - first > most ? first + most : rows;
    CX_TRY(put_bases(out, view, states, first, last, err));
    cx_buf_printf(out, "},\"first\":%lu,\"format\":\"cortex-page-1\"", (unsigned long)first);
    CX_TRY(put_nodes(out, view, states, first, &last, err));
    cx_buf_add_z(out, ",\"summary\":");
    CX_TRY(cx_lattice_view_summary(out, view, err));
    cx_buf_add_z(out, ",\"title\":");
    cx_answer_str(out, part->title);
    cx_buf_add_z(out, ",\"window\":");
    const cx_lattice_view_range range = {
        .from = first < last ? view->l.rows[first].column : 0,
        .to = first < last ? view->l.rows[last - 1].column + 1 : 0,
        .count = CX_LATTICE_VIEW_ROWS_MAX,
        .labels = last - first <= CX_LATTICE_VIEW_LABELS_MAX,
        .spans = true,
    };
    CX_TRY(cx_lattice_view_window(out, view, &range, err));
    cx_buf_add_byte(out, '}');
    *out_nodes = last - first;
    return hide_markup(out, start, err);
}
