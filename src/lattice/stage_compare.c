/*
 * stage_compare.c - two nodes of a history side by side, for a page.
 *
 *   {"a":{node},"b":{node},"common":{node}|null,"counts":[A,B],
 *    "diff":[{"a","b","key","section"}],"first":N|null,"from","knowledge":[{node}],"more_diff",
 *    "steps":[{"a":{node,"label"}|null,"b":..,"same"}],"verified"}
 *
 * Both paths begin behind the last node that lineage has in common; step i stands beside step i.
 *
 *   C1  two steps are the same when their events say the same and they changed the same;
 *   C2  the first step that is not is looked for along both paths, not in the window alone.
 */
#include "lattice/ancestors.h"
#include "lattice/answer.h"
#include "lattice/stage_internal.h"

#define KNOWLEDGE_TOLD 20

typedef struct pairing {
    const cx_stage *stage;
    const cx_states *states;
    cx_buf *out;
    cx_node heads[2];
    lineage_paths paths;
    cx_arena arena;
    tree_work work;
    state_section section; /* being compared */
    uint32_t told;
    bool more, starved;
} pairing;

static void put_ref(pairing *p, cx_node n)
{
    cx_buf_add_byte(p->out, '{');
    cx_stage_put_node(p->out, p->stage, n);
    cx_buf_add_byte(p->out, '}');
}

/* --- steps ------------------------------------------------------------------------------------ */

static size_t longest(const pairing *p)
{
    return p->paths.count[0] > p->paths.count[1] ? p->paths.count[0] : p->paths.count[1];
}

static cx_node step_of(const pairing *p, unsigned side, size_t i)
{
    return i < p->paths.count[side] ? p->paths.path[side][i] : CX_NODE_NONE;
}

static cx_status label_of(pairing *p, cx_node n, cx_str *out, cx_err *err)
{
    *out = (cx_str){"", 0};
    return n == CX_NODE_NONE
               ? CX_SUCCESS
               : cx_lattice_label_of(p->stage->lattice, n, &p->arena, out, err);
}

/* C1.  What changed is known without reading; the events are read only when that is the same. */
static cx_status is_same(pairing *p, size_t i, bool *out, cx_err *err)
{
    const cx_lattice *lattice = p->stage->lattice;
    cx_node a = step_of(p, 0, i), b = step_of(p, 1, i);
    cx_str labels[2];
    *out = false;
    if (a == CX_NODE_NONE || b == CX_NODE_NONE ||
        !cx_str_eq(lattice->deltas.items[a], lattice->deltas.items[b]))
        return CX_SUCCESS;
    cx_arena_mark mark = cx_arena_mark_now(&p->arena);
    CX_TRY(label_of(p, a, &labels[0], err));
    CX_TRY(label_of(p, b, &labels[1], err));
    *out = cx_str_eq(labels[0], labels[1]);
    cx_arena_reset(&p->arena, mark);
    return CX_SUCCESS;
}

/* C2 */
static cx_status put_first(pairing *p, cx_err *err)
{
    size_t count = longest(p);
    for (size_t i = 0; i < count; i++) {
        bool same;
        CX_TRY(is_same(p, i, &same, err));
        if (same)
            continue;
        cx_buf_printf(p->out, ",\"first\":%zu", i);
        return CX_SUCCESS;
    }
    cx_buf_add_z(p->out, ",\"first\":null");
    return CX_SUCCESS;
}

static cx_status put_side(pairing *p, const char *name, cx_node n, cx_err *err)
{
    cx_str label;
    cx_buf_printf(p->out, "\"%s\":", name);
    if (n == CX_NODE_NONE) {
        cx_buf_add_z(p->out, "null");
        return CX_SUCCESS;
    }
    cx_arena_mark mark = cx_arena_mark_now(&p->arena);
    CX_TRY(label_of(p, n, &label, err));
    cx_buf_add_byte(p->out, '{');
    cx_stage_put_node(p->out, p->stage, n);
    cx_buf_add_z(p->out, ",\"label\":");
    cx_answer_str(p->out, label);
    cx_buf_add_byte(p->out, '}');
    cx_arena_reset(&p->arena, mark);
    return CX_SUCCESS;
}

static cx_status put_steps(pairing *p, uint32_t from, uint32_t most, cx_err *err)
{
    size_t count = longest(p);
    if (most == 0 || most > CX_STAGE_STEPS_MAX)
        most = CX_STAGE_STEPS_MAX;
    cx_buf_printf(p->out, ",\"from\":%lu,\"steps\":[", (unsigned long)from);
    for (size_t i = from; i < count && i - from < most; i++) {
        bool same;
        CX_TRY(is_same(p, i, &same, err));
        cx_buf_add_z(p->out, i == from ? "{" : ",{");
        CX_TRY(put_side(p, "a", step_of(p, 0, i), err));
        cx_buf_add_byte(p->out, ',');
        CX_TRY(put_side(p, "b", step_of(p, 1, i), err));
        cx_buf_printf(p->out, ",\"same\":%s}", same ? "true" : "false");
    }
    cx_buf_add_byte(p->out, ']');
    return CX_SUCCESS;
}

/* --- the states after both -------------------------------------------------------------------- */

static bool put_difference(void *arg, cx_str key, cx_value a, cx_value b)
{
    pairing *p = arg;
    cx_err ignored;
    if (p->told == CX_STAGE_CHANGES_MAX) {
        p->more = true;
        return false;
    }
    tree_work work;
    cx_tree_work_init(&work, p->work.alloc);
    cx_buf_add_z(p->out, p->told++ == 0 ? "{\"a\":" : ",{\"a\":");
    cx_status status = cx_stage_put_value(p->out, &work, a, CX_STAGE_VALUE_BYTES, &ignored);
    cx_buf_add_z(p->out, ",\"b\":");
    if (!cx_failed(status))
        status = cx_stage_put_value(p->out, &work, b, CX_STAGE_VALUE_BYTES, &ignored);
    cx_tree_work_done(&work);
    cx_buf_add_z(p->out, ",\"key\":");
    if (key.data == NULL)
        cx_buf_add_z(p->out, "null");
    else
        cx_answer_str(p->out, key);
    cx_buf_add_z(p->out, ",\"section\":");
    cx_answer_str(p->out, cx_state_section_name(p->section));
    cx_buf_add_byte(p->out, '}');
    p->starved = cx_failed(status);
    return !p->starved;
}

static cx_status put_diff(pairing *p, cx_err *err)
{
    static const state_section lists[2] = {SECTION_GOALS, SECTION_CONTEXT_STACK};
    state a, b;
    CX_TRY(cx_states_get(p->states, p->heads[0], false, &a, err));
    CX_TRY(cx_states_get(p->states, p->heads[1], false, &b, err));
    cx_buf_add_z(p->out, ",\"diff\":[");
    p->section = SECTION_MEMORY;
    bool ok = cx_tree_diff(&p->work, a.memory, b.memory, put_difference, p);
    p->section = SECTION_BELIEFS;
    ok = ok && cx_tree_diff(&p->work, a.beliefs, b.beliefs, put_difference, p);
    for (size_t i = 0; ok && i < 2; i++) {
        cx_value left = cx_state_section_value(&a, lists[i]);
        cx_value right = cx_state_section_value(&b, lists[i]);
        bool equal;
        p->section = lists[i];
        ok = cx_tree_equal(&p->work, left, right, &equal) &&
             (equal || put_difference(p, (cx_str){NULL, 0}, left, right));
    }
    cx_buf_printf(p->out, "],\"more_diff\":%s", p->more ? "true" : "false");
    return (ok || p->more) && !p->starved ? CX_SUCCESS : cx_fail_nomem(err);
}

/* --- the answer ------------------------------------------------------------------------------- */

static cx_status put_ancestors(pairing *p, cx_err *err)
{
    cx_node *common;
    size_t count = 0;
    CX_TRY(cx_lattice_common(p->stage->lattice, p->heads, 2, &p->arena, &common, &count, err));
    cx_buf_add_z(p->out, ",\"common\":");
    if (p->paths.lca == CX_NODE_NONE)
        cx_buf_add_z(p->out, "null");
    else
        put_ref(p, p->paths.lca);
    cx_buf_printf(p->out, ",\"counts\":[%zu,%zu],\"knowledge\":[", p->paths.count[0],
                  p->paths.count[1]);
    for (size_t i = 0; i < count && i < KNOWLEDGE_TOLD; i++) {
        if (i != 0)
            cx_buf_add_byte(p->out, ',');
        put_ref(p, common[i]);
    }
    cx_buf_add_byte(p->out, ']');
    return CX_SUCCESS;
}

static cx_status put_pairing(pairing *p, uint32_t from, uint32_t most, cx_err *err)
{
    const cx_lattice *lattice = p->stage->lattice;
    CX_TRY(cx_lattice_lineage(lattice, p->heads[0], p->heads[1], &p->arena, &p->paths, err));
    cx_buf_add_z(p->out, "{\"a\":");
    put_ref(p, p->heads[0]);
    cx_buf_add_z(p->out, ",\"b\":");
    put_ref(p, p->heads[1]);
    CX_TRY(put_ancestors(p, err));
    CX_TRY(put_diff(p, err));
    CX_TRY(put_first(p, err));
    CX_TRY(put_steps(p, from, most, err));
    cx_buf_printf(p->out, ",\"verified\":%s}\n",
                  cx_lattice_report_verdict(p->stage->report) == CX_HOLDS ? "true" : "false");
    return cx_buf_check(p->out, err);
}

cx_status cx_stage_compare(cx_buf *out, const cx_stage *stage, const cx_states *states, cx_node a,
                           cx_node b, const cx_stage_range *steps, cx_err *err)
{
    pairing p = {.stage = stage, .states = states, .out = out, .heads = {a, b}};
    cx_arena_init(&p.arena, states->alloc, 0);
    cx_tree_work_init(&p.work, states->alloc);
    cx_status status = put_pairing(&p, steps->from, steps->count, err);
    cx_tree_work_done(&p.work);
    cx_arena_done(&p.arena);
    return status;
}
