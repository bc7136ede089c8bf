/*
 * view_reach.c - what a node reached, for a page: the numbers of the nodes that follow from it, and
 * those of them that carry its text (lattice.md §8.1).
 *
 *   {"carries":[{node..,"by","keys","text"}],"cut","follows":[n..],"follows_total","node":{node..},
 *    "size","total","verified"}
 */
#include "lattice/answer.h"
#include "view/view_internal.h"

static void put_carriers(cx_buf *out, const cx_lattice_view *view, const lattice_reach *reach)
{
    cx_buf_add_z(out, "{\"carries\":[");
    for (size_t i = 0; i < reach->listed; i++) {
        const reach_carrier *carrier = &reach->carriers[i];
        cx_buf_add_z(out, i == 0 ? "{" : ",{");
        cx_lattice_view_put_node(out, view, carrier->which);
        cx_answer_reach_members(out, carrier);
        cx_buf_add_z(out, ",\"text\":");
        cx_answer_str(out, carrier->text);
        cx_buf_add_byte(out, '}');
    }
    cx_buf_add_byte(out, ']');
}

static void put_follows(cx_buf *out, const cx_lattice *lattice, const lattice_reach *reach)
{
    uint32_t listed = 0;
    cx_buf_add_z(out, ",\"follows\":[");
    for (uint32_t at = 0; at < lattice->order_count && listed < CX_LATTICE_VIEW_FOLLOWS_MAX; at++)
        if ((reach->follows[at / 64] >> (at % 64) & 1) != 0)
            cx_buf_printf(out, "%s%lu", listed++ == 0 ? "" : ",",
                          (unsigned long)lattice->order[at]);
    cx_buf_printf(out, "],\"follows_total\":%lu", (unsigned long)reach->follow_count);
}

cx_status cx_lattice_view_reach(cx_buf *out, const cx_lattice_view *view, cx_node which,
                                cx_err *err)
{
    const cx_lattice *lattice = view->lattice;
    lattice_reach reach;
    cx_arena arena;
    CX_TRY(cx_lattice_view_need_place(lattice, which, err));
    cx_arena_init(&arena, lattice->alloc, 0);
    cx_status status = cx_lattice_reach(lattice, which, &arena, &reach, err);
    if (!cx_failed(status)) {
        put_carriers(out, view, &reach);
        cx_buf_printf(out, ",\"cut\":%s", reach.is_cut ? "true" : "false");
        put_follows(out, lattice, &reach);
        cx_buf_add_z(out, ",\"node\":{");
        cx_lattice_view_put_node(out, view, which);
        cx_buf_printf(out, "},\"size\":%lu,\"total\":%lu,\"verified\":%s}\n",
                      (unsigned long)reach.size, (unsigned long)reach.carrier_count,
                      cx_lattice_report_verdict(view->report) == CX_HOLDS ? "true" : "false");
        status = cx_buf_check(out, err);
    }
    cx_arena_done(&arena);
    return status;
}
