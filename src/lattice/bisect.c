/*
 * bisect.c - where on a node's own path a predicate became true, and each later turn.
 *
 *   {"first":ID|null,"holds_at_end":B,"node":ID,"predicate":TEXT,"steps":N,
 *    "turns":[{"agent","holds":B,"node","seq"}],"verified":B}
 *
 * The path is the chain of lineage parents from genesis to the node; `steps` counts its nodes.
 * Before genesis the predicate counts as false, so a turn to true is always the first, and `first`
 * is its node.  A search by halving would find one turn and miss the others; states share
 * structure, so looking at every node costs one lookup each, and the predicate is asked again only
 * where the value named by its pointer is another one.
 */
#include "lattice/answer.h"
#include "lattice/predicate.h"

typedef struct turn {
    cx_node which;
    bool holds;
} turn;

typedef struct bisection {
    const cx_states *states;
    cx_arena arena;
    predicate_check check;
    const cx_node *path;
    size_t path_count;
    CX_VEC(turn) turns;
    bool holds_at_end;
} bisection;

static cx_status test_steps(bisection *b, cx_err *err)
{
    for (size_t i = 0; i < b->path_count; i++) {
        cx_node which = b->path[i];
        bool holds;
        CX_TRY(cx_predicate_holds(&b->check, cx_states_at(b->states, which), &holds, err));
        if (holds == b->holds_at_end)
            continue;
        turn *slot = cx_vec_push(&b->turns, b->states->alloc);
        if (slot == NULL)
            return cx_fail_nomem(err);
        *slot = (turn){which, holds};
        b->holds_at_end = holds;
    }
    return CX_SUCCESS;
}

static const char *yes_no(bool yes)
{
    return yes ? "true" : "false";
}

static void bisect_json(const bisection *b, cx_buf *out, cx_node which, cx_str predicate,
                        const cx_answer_options *options)
{
    const cx_lattice *lattice = b->states->lattice;
    cx_buf_add_z(out, "{\"first\":");
    if (b->turns.count == 0)
        cx_buf_add_z(out, "null");
    else
        cx_answer_node_str(out, lattice, b->turns.items[0].which);
    cx_buf_printf(out, ",\"holds_at_end\":%s,\"node\":", yes_no(b->holds_at_end));
    cx_answer_node_str(out, lattice, which);
    cx_buf_add_z(out, ",\"predicate\":");
    cx_answer_str(out, predicate);
    cx_buf_printf(out, ",\"steps\":%zu,\"turns\":[", b->path_count);
    for (size_t i = 0; i < b->turns.count; i++) {
        const turn *t = &b->turns.items[i];
        cx_buf_add_z(out, i == 0 ? "{\"agent\":" : ",{\"agent\":");
        cx_answer_str(out, cx_lattice_agent_label(lattice, t->which));
        cx_buf_printf(out, ",\"holds\":%s,\"node\":", yes_no(t->holds));
        cx_answer_node_str(out, lattice, t->which);
        cx_buf_printf(out, ",\"seq\":%lld}", (long long)node_at(lattice, t->which)->seq);
    }
    cx_buf_add_z(out, "],");
    cx_answer_end(out, options);
}

static void bisect_text(const bisection *b, cx_buf *out, cx_node which, cx_str predicate,
                        const cx_answer_options *options)
{
    const cx_lattice *lattice = b->states->lattice;
    cx_answer_heading(out, options, "Predicate ");
    cx_answer_name(out, predicate);
    cx_buf_printf(out, " on the %zu node%s up to ", b->path_count, b->path_count == 1 ? "" : "s");
    cx_answer_node_name(out, lattice, which);
    cx_buf_add_byte(out, '\n');
    for (size_t i = 0; i < b->turns.count; i++) {
        const turn *t = &b->turns.items[i];
        cx_buf_add_z(out, t->holds ? "  true from   " : "  false from  ");
        cx_answer_node_name(out, lattice, t->which);
        cx_buf_add_byte(out, ' ');
        cx_answer_name(out, cx_lattice_agent_label(lattice, t->which));
        cx_buf_printf(out, "#%lld\n", (long long)node_at(lattice, t->which)->seq);
    }
    if (b->turns.count == 0)
        cx_buf_add_z(out, "  never true\n");
    cx_answer_verdict_line(out, options);
}

cx_status cx_lattice_answer_bisect(cx_buf *out, const cx_states *states, cx_node which,
                                   const cx_predicate *predicate, const cx_answer_options *options,
                                   cx_err *err)
{
    state at_end;
    CX_TRY(cx_states_get(states, which, false, &at_end, err));
    bisection b = {.states = states};
    cx_buf text;
    cx_arena_init(&b.arena, states->alloc, 0);
    cx_buf_init(&text, states->alloc);
    cx_status status = cx_predicate_begin(&b.check, predicate, states->alloc, err);
    if (cx_failed(status))
        goto done;
    CX_TRY_GOTO(status,
                cx_lattice_path(states->lattice, which, &b.arena, &b.path, &b.path_count, err));
    CX_TRY_GOTO(status, test_steps(&b, err));
    CX_TRY_GOTO(status, cx_predicate_write(predicate, &text, err));
    if (options->json)
        bisect_json(&b, out, which, cx_buf_str(&text), options);
    else
        bisect_text(&b, out, which, cx_buf_str(&text), options);
    status = cx_buf_check(out, err);
done:
    cx_vec_done(&b.turns, states->alloc);
    cx_predicate_end(&b.check);
    cx_buf_done(&text);
    cx_arena_done(&b.arena);
    return status;
}
