/*
 * view_compare.c - compares two nodes of a history, or two histories, for a page.
 *
 *   {"a":{node},"aligned","b":{node},"common":{node}|null,"counts":[A,B],
 *    "diff":[{"a","b","key","section"}],"first":ROW|null,"from","knowledge":[{node}],
 *    "matched":{"alike","only":[A,B],"same"},"more_diff","parted":ROW|null,"rows":N,
 *    "steps":[{"a":{node,"label"}|null,"b","differs":[text],"how","same"}],"verified"}
 *
 *   C1  within one history both paths begin after the last common node of their lineages; of two
 *       histories, after the common prefix of nodes with equal hashes, if both verify;
 *   C2  align.h pairs the steps; the first differing row is searched in the whole alignment, not
 *       only in the window;
 *   C3  what differs only by the sides' ids does not differ.
 *
 * "diff" and "more_diff" come from view_differ.c.
 */
#include "view/align.h"
#include "lattice/ancestors.h"
#include "lattice/answer.h"
#include "view/layout.h"
#include "view/view_internal.h"

#define KNOWLEDGE_TOLD 20
#define DIFFERS_TOLD 8

typedef struct pairing {
    const cx_lattice_view_side *sides;
    cx_buf *out;
    cx_node heads[2];
    cx_node common; /* of side a */
    align_side paths[2];
    alignment a;
    cx_arena arena;
    const cx_alloc *alloc;
    bool starved;
} pairing;

static const cx_lattice *lattice_of(const pairing *p, unsigned side)
{
    return p->sides[side].view->lattice;
}

static bool is_one_history(const pairing *p)
{
    return lattice_of(p, 0) == lattice_of(p, 1);
}

static bool side_holds(const pairing *p, unsigned side)
{
    return cx_lattice_report_verdict(p->sides[side].view->report) == CX_HOLDS;
}

/* C3 */
static bool is_equal_text(const pairing *p, const cx_buf *a, const cx_buf *b)
{
    return cx_align_equal(p->paths[0].id, p->paths[1].id, cx_buf_str(a), cx_buf_str(b));
}

static void put_ref(pairing *p, unsigned side, cx_node n)
{
    cx_buf_add_byte(p->out, '{');
    cx_lattice_view_put_node(p->out, p->sides[side].view, n);
    cx_buf_add_byte(p->out, '}');
}

/* --- the two paths ---------------------------------------------------------------------------- */

static cx_status load_path(pairing *p, unsigned side, cx_err *err)
{
    const cx_lattice *lattice = lattice_of(p, side);
    align_side *path = &p->paths[side];
    cx_node wanted = p->sides[side].node;
    *path = (align_side){.lattice = lattice, .id = p->sides[side].id};
    if (wanted == CX_NODE_NONE) {
        if (lattice->order_count == 0)
            return cx_fail_at(err, CX_E_NOT_FOUND, "NoNode", CX_NO_OFFSET,
                              "history %s has no event in topological order, so there is nothing "
                              "to compare",
                              side == 0 ? "a" : "b");
        path->path = lattice->order;
        path->count = lattice->order_count;
    } else {
        CX_TRY(cx_lattice_view_need_place(lattice, wanted, err));
        CX_TRY(cx_lattice_path(lattice, wanted, &p->arena, &path->path, &path->count, err));
    }
    p->heads[side] = path->path[path->count - 1];
    return CX_SUCCESS;
}

static bool has_one_hash(const pairing *p, size_t step)
{
    char scratch[2][64];
    cx_str hash[2];
    for (unsigned side = 0; side < 2; side++)
        hash[side] =
            cx_lattice_hash_text(lattice_of(p, side), p->paths[side].path[step], scratch[side]);
    return hash[0].size != 0 && cx_str_eq(hash[0], hash[1]);
}

/* C1 */
static void leave_out(pairing *p, size_t steps)
{
    p->common = steps == 0 ? CX_NODE_NONE : p->paths[0].path[steps - 1];
    for (unsigned side = 0; side < 2; side++) {
        p->paths[side].path += steps;
        p->paths[side].count -= steps;
    }
}

static cx_status find_paths(pairing *p, cx_err *err)
{
    size_t steps = 0;
    bool one = is_one_history(p);
    for (unsigned side = 0; side < 2; side++)
        CX_TRY(load_path(p, side, err));
    if (one && p->sides[0].node != CX_NODE_NONE && p->sides[1].node != CX_NODE_NONE) {
        lineage_paths paths;
        CX_TRY(
            cx_lattice_lineage(lattice_of(p, 0), p->heads[0], p->heads[1], &p->arena, &paths, err));
        p->common = paths.lca;
        for (unsigned side = 0; side < 2; side++) {
            p->paths[side].path = paths.path[side];
            p->paths[side].count = paths.count[side];
        }
        return CX_SUCCESS;
    }
    while ((one || (side_holds(p, 0) && side_holds(p, 1))) && steps < p->paths[0].count &&
           steps < p->paths[1].count && has_one_hash(p, steps))
        steps++;
    leave_out(p, steps);
    return CX_SUCCESS;
}

/* --- what differs between two steps that are alike -------------------------------------------- */

typedef struct differing {
    pairing *p;
    cx_buf texts[2];
    size_t told;
    cx_err *err;
} differing;

static cx_status are_equal(differing *d, const cx_json *a, const cx_json *b, bool *out)
{
    const cx_json *values[2] = {a, b};
    for (unsigned side = 0; side < 2; side++) {
        cx_buf_clear(&d->texts[side]);
        if (values[side] != NULL)
            CX_TRY(cx_json_write(&d->texts[side], values[side], CX_JSON_PY_COMPACT, d->err));
    }
    *out = (a == NULL) == (b == NULL) && is_equal_text(d->p, &d->texts[0], &d->texts[1]);
    return CX_SUCCESS;
}

static void put_name(differing *d, const cx_str *names, size_t count)
{
    if (d->told++ >= DIFFERS_TOLD)
        return;
    cx_arena_mark mark = cx_arena_mark_now(&d->p->arena);
    cx_str text = names[0];
    for (size_t i = 1; i < count && text.data != NULL; i++)
        text = cx_arena_printf(&d->p->arena, "%.*s.%.*s", (int)text.size, text.data,
                               (int)names[i].size, names[i].data);
    d->p->starved = d->p->starved || text.data == NULL;
    cx_buf_add_z(d->p->out, d->told == 1 ? "" : ",");
    cx_answer_str(d->p->out, shortened(text, 200));
    cx_arena_reset(&d->p->arena, mark);
}

/* Members of two objects, both sorted, down to section, key and member. */
static cx_status put_differing(differing *d, const cx_json *a, const cx_json *b, cx_str *names,
                               size_t depth)
{
    uint32_t i = 0, k = 0;
    while (i < a->count || k < b->count) {
        const cx_json_member *left = i < a->count ? &a->members[i] : NULL;
        const cx_json_member *right = k < b->count ? &b->members[k] : NULL;
        int order = left == NULL ? 1
                    : right == NULL
                        ? -1
                        : cx_str_cmp(cx_json_text(&left->name), cx_json_text(&right->name));
        const cx_json *one = order <= 0 ? &left->value : NULL;
        const cx_json *other = order >= 0 ? &right->value : NULL;
        bool equal;
        names[depth] = cx_json_text(order <= 0 ? &left->name : &right->name);
        i += order <= 0;
        k += order >= 0;
        CX_TRY(are_equal(d, one, other, &equal));
        if (equal)
            continue;
        if (depth < 2 && one != NULL && other != NULL && one->type == CX_JSON_OBJECT &&
            other->type == CX_JSON_OBJECT)
            CX_TRY(put_differing(d, one, other, names, depth + 1));
        else
            put_name(d, names, depth + 1);
    }
    return CX_SUCCESS;
}

/* Stored deltas are canonical JSON, so a failure here is out of memory. */
static cx_status put_differs(pairing *p, const align_row *row, cx_err *err)
{
    differing d = {.p = p, .err = err};
    cx_json deltas[2];
    cx_str names[3], texts[2];
    cx_arena_mark mark = cx_arena_mark_now(&p->arena);
    cx_status status = CX_SUCCESS;
    cx_buf_add_z(p->out, ",\"differs\":[");
    for (unsigned side = 0; side < 2; side++) {
        cx_buf_init(&d.texts[side], p->alloc);
        if (row->how != ALIGN_ALIKE || cx_failed(status))
            continue;
        texts[side] = lattice_of(p, side)->deltas.items[p->paths[side].path[row->step[side]]];
        status = cx_json_parse_text(texts[side], &p->arena, &deltas[side], err);
    }
    if (row->how == ALIGN_ALIKE && !cx_failed(status) && deltas[0].type == CX_JSON_OBJECT &&
        deltas[1].type == CX_JSON_OBJECT)
        status = put_differing(&d, &deltas[0], &deltas[1], names, 0);
    cx_buf_printf(p->out, "],\"differ_count\":%zu", d.told);
    for (unsigned side = 0; side < 2; side++)
        cx_buf_done(&d.texts[side]);
    cx_arena_reset(&p->arena, mark);
    return status;
}

/* --- rows ------------------------------------------------------------------------------------- */

static cx_status put_side(pairing *p, unsigned side, size_t step, cx_err *err)
{
    cx_str label;
    cx_buf_add_z(p->out, side == 0 ? "\"a\":" : "\"b\":");
    if (step == ALIGN_NONE) {
        cx_buf_add_z(p->out, "null");
        return CX_SUCCESS;
    }
    cx_arena_mark mark = cx_arena_mark_now(&p->arena);
    cx_node n = p->paths[side].path[step];
    CX_TRY(cx_lattice_label_of(lattice_of(p, side), n, &p->arena, &label, err));
    cx_buf_add_byte(p->out, '{');
    cx_lattice_view_put_node(p->out, p->sides[side].view, n);
    cx_buf_add_z(p->out, ",\"label\":");
    cx_answer_str(p->out, label);
    cx_buf_add_byte(p->out, '}');
    cx_arena_reset(&p->arena, mark);
    return CX_SUCCESS;
}

static cx_status put_row(pairing *p, const align_row *row, cx_err *err)
{
    static const char *const how[] = {"only", "alike", "same"};
    CX_TRY(put_side(p, 0, row->step[0], err));
    cx_buf_add_byte(p->out, ',');
    CX_TRY(put_side(p, 1, row->step[1], err));
    CX_TRY(put_differs(p, row, err));
    cx_buf_printf(p->out, ",\"how\":\"%s\",\"same\":%s}", how[row->how],
                  row->how == ALIGN_SAME ? "true" : "false");
    return CX_SUCCESS;
}

static cx_status put_steps(pairing *p, uint32_t from, uint32_t most, cx_err *err)
{
    size_t count = cx_align_count(&p->a);
    if (most == 0 || most > CX_LATTICE_VIEW_STEPS_MAX)
        most = CX_LATTICE_VIEW_STEPS_MAX;
    cx_buf_printf(p->out, ",\"rows\":%zu,\"steps\":[", count);
    for (size_t i = from; i < count && i - from < most; i++) {
        align_row row;
        CX_TRY(cx_align_row(&p->a, i, &row, err));
        cx_buf_add_z(p->out, i == from ? "{" : ",{");
        CX_TRY(put_row(p, &row, err));
    }
    cx_buf_add_byte(p->out, ']');
    return CX_SUCCESS;
}

static void put_place(pairing *p, const char *name, size_t row)
{
    if (row < cx_align_count(&p->a))
        cx_buf_printf(p->out, ",\"%s\":%zu", name, row);
    else
        cx_buf_printf(p->out, ",\"%s\":null", name);
}

/* C2 */
static void put_matched(pairing *p)
{
    size_t counts[3] = {0, 0, p->a.prefix}, parted = p->a.prefix + p->a.rows.count;
    for (size_t i = p->a.rows.count; i-- > 0;) {
        align_how how = p->a.rows.items[i].how;
        counts[how]++;
        if (how == ALIGN_ONLY)
            parted = p->a.prefix + i;
    }
    size_t pairs = counts[ALIGN_ALIKE] + counts[ALIGN_SAME];
    cx_buf_printf(p->out, ",\"matched\":{\"alike\":%zu,\"only\":[%zu,%zu],\"same\":%zu}",
                  counts[ALIGN_ALIKE], p->a.placed[0] - pairs, p->a.placed[1] - pairs,
                  counts[ALIGN_SAME]);
    put_place(p, "parted", parted);
}

/* --- the answer ------------------------------------------------------------------------------- */

static cx_status put_ancestors(pairing *p, cx_err *err)
{
    cx_node *known = NULL;
    size_t count = 0;
    if (is_one_history(p))
        CX_TRY(cx_lattice_common(lattice_of(p, 0), p->heads, 2, &p->arena, &known, &count, err));
    cx_buf_add_z(p->out, ",\"common\":");
    if (p->common == CX_NODE_NONE)
        cx_buf_add_z(p->out, "null");
    else
        put_ref(p, 0, p->common);
    cx_buf_printf(p->out, ",\"counts\":[%zu,%zu],\"knowledge\":[", p->paths[0].count,
                  p->paths[1].count);
    for (size_t i = 0; i < count && i < KNOWLEDGE_TOLD; i++) {
        if (i != 0)
            cx_buf_add_byte(p->out, ',');
        put_ref(p, 0, known[i]);
    }
    cx_buf_add_byte(p->out, ']');
    return CX_SUCCESS;
}

static cx_status put_aligned(pairing *p, const cx_lattice_view_range *rows, cx_err *err)
{
    CX_TRY(cx_align_init(&p->a, p->paths, p->alloc, err));
    cx_buf_printf(p->out, ",\"aligned\":%s,\"from\":%lu", align_is_whole(&p->a) ? "true" : "false",
                  (unsigned long)rows->from);
    put_place(p, "first", p->a.prefix);
    put_matched(p);
    return put_steps(p, rows->from, rows->count, err);
}

static cx_status put_pairing(pairing *p, const cx_lattice_view_range *rows, cx_err *err)
{
    CX_TRY(find_paths(p, err));
    cx_buf_add_z(p->out, "{\"a\":");
    put_ref(p, 0, p->heads[0]);
    cx_buf_add_z(p->out, ",\"b\":");
    put_ref(p, 1, p->heads[1]);
    CX_TRY(put_ancestors(p, err));
    CX_TRY(cx_lattice_view_put_differences(p->out, p->sides, p->heads, err));
    cx_status status = put_aligned(p, rows, err);
    cx_align_done(&p->a);
    CX_TRY(status);
    if (p->starved)
        return cx_fail_nomem(err);
    cx_buf_printf(p->out, ",\"verified\":%s}\n",
                  side_holds(p, 0) && side_holds(p, 1) ? "true" : "false");
    return cx_buf_check(p->out, err);
}

cx_status cx_lattice_view_compare(cx_buf *out, const cx_lattice_view_side sides[2],
                                  const cx_lattice_view_range *rows, cx_err *err)
{
    CX_ASSERT(out != NULL);
    const cx_alloc *alloc = sides[0].states->alloc;
    pairing p = {.sides = sides, .out = out, .common = CX_NODE_NONE, .alloc = alloc};
    cx_arena_init(&p.arena, alloc, 0);
    cx_status status = put_pairing(&p, rows, err);
    cx_arena_done(&p.arena);
    return status;
}
