/*
 * view_marks.c - the notable nodes of a history: for the strip below its picture, and for one node.
 *
 *   overview   ,"marks":[kind,column,node, ..]
 *   node
 *              ,"failed":bool,"override":times,"snapshots":[{"actor","created_ns","entries","number","root", "sealed"}]
 *
 *   M1  each kind is listed at most once in a thousandth of the range, so the number of marks is
 *       bounded for any length of history; the first of a stretch is listed.  Where a thousandth is
 *       at most one column, up to as many nodes of that column are listed as people may step
 *       through.
 */
#include "lattice/answer.h"
#include "view/view_internal.h"

#define MARK_BINS 1000
#define MARKS_IN_COLUMN 16

enum {
    MARK_ERROR,
    MARK_WARNING,
    MARK_NATURAL, /* forks in the order of cx_fork_type */
    MARK_OBSERVATION,
    MARK_INJECTION,
    MARK_MERGE,
    MARK_OVERRIDE,
    MARK_SNAPSHOT,
    MARK_FAILED,
    MARK_KINDS
};

typedef struct marking {
    cx_buf *out;
    uint32_t from, to;
    uint64_t last_bin[MARK_KINDS];
    unsigned in_bin[MARK_KINDS];
    bool any;
} marking;

static unsigned mark_kinds(const layout_row *row)
{
    unsigned kinds = 0;
    if (row->marks & LAYOUT_HAS_ERROR)
        kinds |= 1u << MARK_ERROR;
    if (row->marks & LAYOUT_HAS_WARNING)
        kinds |= 1u << MARK_WARNING;
    if (row->fork >= CX_FORK_NATURAL && row->fork <= CX_FORK_INJECTION)
        kinds |= 1u << (MARK_NATURAL + row->fork - CX_FORK_NATURAL);
    if (row->marks & LAYOUT_IS_MERGE)
        kinds |= 1u << MARK_MERGE;
    if (row->marks & LAYOUT_IS_OVERRIDE)
        kinds |= 1u << MARK_OVERRIDE;
    if (row->marks & LAYOUT_IS_FAILED)
        kinds |= 1u << MARK_FAILED;
    return kinds;
}

/* M1 */
static void put_mark(marking *m, unsigned kind, uint32_t column, cx_node n)
{
    uint64_t bin = (uint64_t)(column - m->from) * MARK_BINS / (m->to - m->from);
    unsigned most = m->to - m->from <= MARK_BINS ? MARKS_IN_COLUMN : 1;
    if (m->last_bin[kind] != bin)
        m->in_bin[kind] = 0;
    if (m->in_bin[kind] == most)
        return;
    m->last_bin[kind] = bin;
    m->in_bin[kind]++;
    cx_buf_printf(m->out, "%s%u,%lu,%lu", m->any ? "," : "", kind, (unsigned long)column,
                  (unsigned long)n);
    m->any = true;
}

void cx_lattice_view_put_marks(cx_buf *out, const cx_lattice_view *view, uint32_t from, uint32_t to)
{
    marking m = {.out = out, .from = from, .to = to};
    for (unsigned k = 0; k < MARK_KINDS; k++)
        m.last_bin[k] = UINT64_MAX;
    cx_buf_add_z(out, ",\"marks\":[");
    for (uint32_t r = from < to ? view->column_row[from] : 0; from < to && r < view->column_row[to];
         r++) {
        const layout_row *row = &view->l.rows[r];
        unsigned kinds = mark_kinds(row);
        for (unsigned k = 0; kinds != 0; k++, kinds >>= 1)
            if ((kinds & 1) != 0)
                put_mark(&m, k, row->column, row->node);
    }
    for (size_t i = 0; i < view->snapshot_count; i++) {
        uint32_t column = view_column(view, view->snapshots[i].node);
        if (column >= from && column < to)
            put_mark(&m, MARK_SNAPSHOT, column, view->snapshots[i].node);
    }
    cx_buf_add_byte(out, ']');
}

void cx_lattice_view_put_signs(cx_buf *out, const cx_lattice_view *view, cx_node n)
{
    bool any = false;
    bool failed = (node_at(view->lattice, n)->flags & NODE_FAILED) != 0;
    cx_buf_printf(out, ",\"failed\":%s,\"override\":%lu,\"snapshots\":[", failed ? "true" : "false",
                  (unsigned long)cx_lattice_overrides(view->lattice, n));
    for (size_t i = 0; i < view->snapshot_count; i++) {
        const cx_lattice_view_snapshot *one = &view->snapshots[i];
        if (one->node != n)
            continue;
        cx_buf_add_z(out, any ? ",{\"actor\":" : "{\"actor\":");
        cx_answer_str(out, one->actor);
        cx_buf_printf(out, ",\"created_ns\":%lld,\"entries\":%llu,\"number\":%llu,\"root\":",
                      (long long)one->created_ns, (unsigned long long)one->entries,
                      (unsigned long long)one->number);
        cx_answer_str(out, one->root);
        cx_buf_printf(out, ",\"sealed\":%s}", one->sealed ? "true" : "false");
        any = true;
    }
    cx_buf_add_byte(out, ']');
}

/* Insertion sort is enough: a journal's snapshots come in the order of its events. */
cx_status cx_lattice_view_snapshots(cx_lattice_view *view,
                                    const cx_lattice_view_snapshot *snapshots, size_t count,
                                    cx_err *err)
{
    cx_lattice_view_snapshot *list =
        CX_ARENA_ARRAY(&view->l.arena, cx_lattice_view_snapshot, count + 1);
    if (list == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        if (snapshots[i].node >= view->lattice->nodes.count)
            return cx_fail(err, CX_E_USAGE, "snapshot %zu covers no node of this lattice", i);
        uint32_t column = view_column(view, snapshots[i].node);
        size_t at = i;
        for (; at > 0 && view_column(view, list[at - 1].node) > column; at--)
            list[at] = list[at - 1];
        list[at] = snapshots[i];
    }
    view->snapshots = list;
    view->snapshot_count = count;
    return CX_SUCCESS;
}
