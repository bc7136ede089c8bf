/*
 * question.c - the installed calls that answer questions (cortex/lattice.h), over answer_*.
 */
#include <stdlib.h>

#include "lattice/answer.h"
#include "lattice/state.h"

void cx_lattice_keep_bytes(cx_lattice *lattice, cx_buf *lines)
{
    CX_ASSERT(lattice->path == NULL && lattice->slurped.data == NULL);
    lattice->slurped = *lines;
    cx_buf_init(lines, lattice->slurped.alloc);
}

/* One question on its way. */
typedef struct asking {
    const cx_lattice *lattice;
    const cx_question *question;
    cx_answer_options options;
    const cx_node *nodes;
    size_t node_count;
    bool inherited;
    const char *text; /* key, pointer or predicate */
    cx_states *states;
    cx_arena arena;
    cx_buf out;
} asking;

typedef cx_status ask_answer(asking *a, cx_err *err);

/* --- what all need ---------------------------------------------------------------------------- */

static cx_status check_nodes(const asking *a, cx_err *err)
{
    for (size_t i = 0; i < a->node_count; i++)
        if (a->nodes[i] >= a->lattice->nodes.count || !in_graph(node_at(a->lattice, a->nodes[i])))
            return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                              "node %lu is not in the graph", (unsigned long)a->nodes[i]);
    return CX_SUCCESS;
}

static cx_status check_verified(asking *a, cx_err *err)
{
    cx_lattice_report *report = NULL;
    const cx_lattice_report *given = a->question->report;
    if (given == NULL)
        CX_TRY(cx_lattice_verify(a->lattice, NULL, &report, err));
    a->options.verified = cx_lattice_report_verdict(given != NULL ? given : report) == CX_HOLDS;
    cx_lattice_report_close(report);
    return CX_SUCCESS;
}

static cx_status open_states(asking *a, cx_err *err)
{
    if (!a->lattice->keep_deltas)
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "the lattice was opened without keep_deltas");
    return cx_states_open_for(a->lattice, &a->question->states, a->nodes, a->node_count, &a->states,
                              err);
}

static cx_status run_answer(asking *a, bool states, ask_answer *answer, cx_err *err)
{
    CX_TRY(check_nodes(a, err));
    CX_TRY(check_verified(a, err));
    if (states)
        CX_TRY(open_states(a, err));
    CX_TRY(answer(a, err));
    return cx_buf_check(&a->out, err);
}

static cx_status ask(asking *a, bool states, ask_answer *answer, cx_owned *out, cx_err *err)
{
    static const cx_question plain = CX_QUESTION_INIT;
    if (a->question == NULL)
        a->question = &plain;
    a->options.json = true;
    cx_arena_init(&a->arena, a->lattice->alloc, 0);
    cx_buf_init(&a->out, a->lattice->alloc);
    cx_status status = run_answer(a, states, answer, err);
    if (!cx_failed(status))
        status = cx_owned_from_buf(&a->out, out, err);
    cx_states_close(a->states);
    cx_buf_done(&a->out);
    cx_arena_done(&a->arena);
    return status;
}

static cx_status check_text(const char *text, const char *what, cx_err *err)
{
    if (text != NULL && cx_utf8_valid(cx_str_z(text)))
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET, "%s is needed, as UTF-8",
                      what);
}

/* --- the questions ---------------------------------------------------------------------------- */

static cx_status answer_state(asking *a, cx_err *err)
{
    return cx_lattice_answer_state(&a->out, a->states, a->nodes[0], a->inherited, &a->options, err);
}

cx_status cx_lattice_ask_state(const cx_lattice *lattice, cx_node which, bool inherited,
                               const cx_question *question, cx_owned *out, cx_err *err)
{
    asking a = {.lattice = lattice,
                .question = question,
                .nodes = &which,
                .node_count = 1,
                .inherited = inherited};
    return ask(&a, true, answer_state, out, err);
}

static cx_status answer_value(asking *a, cx_err *err)
{
    return cx_states_write_at(a->states, a->nodes[0], cx_str_z(a->text), &a->out, err);
}

cx_status cx_lattice_ask_value(const cx_lattice *lattice, cx_node which, const char *pointer,
                               const cx_question *question, cx_owned *out, cx_err *err)
{
    asking a = {.lattice = lattice,
                .question = question,
                .nodes = &which,
                .node_count = 1,
                .text = pointer};
    CX_TRY(check_text(pointer, "a pointer", err));
    return ask(&a, true, answer_value, out, err);
}

static cx_status answer_why(asking *a, cx_err *err)
{
    return cx_lattice_answer_why(&a->out, a->states, a->nodes[0], cx_str_z(a->text), CX_STR(""),
                                 &a->options, err);
}

cx_status cx_lattice_ask_why(const cx_lattice *lattice, cx_node which, const char *key,
                             const cx_question *question, cx_owned *out, cx_err *err)
{
    asking a = {
        .lattice = lattice, .question = question, .nodes = &which, .node_count = 1, .text = key};
    CX_TRY(check_text(key, "a key", err));
    return ask(&a, true, answer_why, out, err);
}

static cx_status answer_compare(asking *a, cx_err *err)
{
    return cx_lattice_answer_compare_nodes(&a->out, a->states, a->nodes, &a->options, err);
}

cx_status cx_lattice_ask_compare(const cx_lattice *lattice, cx_node a, cx_node b,
                                 const cx_question *question, cx_owned *out, cx_err *err)
{
    const cx_node nodes[2] = {a, b};
    asking both = {.lattice = lattice, .question = question, .nodes = nodes, .node_count = 2};
    return ask(&both, true, answer_compare, out, err);
}

static cx_status answer_bisect(asking *a, cx_err *err)
{
    cx_predicate predicate;
    CX_TRY(cx_predicate_parse(cx_str_z(a->text), &a->arena, &predicate, err));
    return cx_lattice_answer_bisect(&a->out, a->states, a->nodes[0], &predicate, &a->options, err);
}

cx_status cx_lattice_ask_bisect(const cx_lattice *lattice, cx_node which, const char *predicate,
                                const cx_question *question, cx_owned *out, cx_err *err)
{
    asking a = {.lattice = lattice,
                .question = question,
                .nodes = &which,
                .node_count = 1,
                .text = predicate};
    CX_TRY(check_text(predicate, "a predicate", err));
    return ask(&a, true, answer_bisect, out, err);
}

static cx_status answer_heatmap(asking *a, cx_err *err)
{
    return cx_lattice_answer_heatmap(&a->out, a->lattice, &a->options, err);
}

cx_status cx_lattice_ask_heatmap(const cx_lattice *lattice, const cx_question *question,
                                 cx_owned *out, cx_err *err)
{
    asking a = {.lattice = lattice, .question = question};
    return ask(&a, false, answer_heatmap, out, err);
}

static cx_status answer_heads(asking *a, cx_err *err)
{
    return cx_lattice_answer_heads(&a->out, a->lattice, &a->options, err);
}

cx_status cx_lattice_ask_heads(const cx_lattice *lattice, const cx_question *question,
                               cx_owned *out, cx_err *err)
{
    asking a = {.lattice = lattice, .question = question};
    return ask(&a, false, answer_heads, out, err);
}

static cx_status answer_show(asking *a, cx_err *err)
{
    return cx_lattice_answer_show(&a->out, a->lattice, a->nodes[0], &a->options, err);
}

cx_status cx_lattice_ask_show(const cx_lattice *lattice, cx_node which, const cx_question *question,
                              cx_owned *out, cx_err *err)
{
    asking a = {.lattice = lattice, .question = question, .nodes = &which, .node_count = 1};
    return ask(&a, false, answer_show, out, err);
}

/* --- a merge that is not there ---------------------------------------------------------------- */

static cx_status state_json(asking *a, cx_node which, cx_json *out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, a->arena.alloc);
    cx_status status = cx_states_write(a->states, which, false, &text, err);
    cx_str copy =
        cx_failed(status) ? (cx_str){NULL, 0} : cx_arena_copy_str(&a->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    CX_TRY(status);
    return copy.data == NULL ? cx_fail_nomem(err) : cx_json_parse_text(copy, &a->arena, out, err);
}

/* Merge order (§3.4), each node once. */
static cx_status order_nodes(asking *a, cx_node **out, size_t *out_count, cx_err *err)
{
    cx_node *list = CX_ARENA_ARRAY(&a->arena, cx_node, a->node_count + 1);
    size_t count = 0;
    if (list == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < a->node_count; i++) {
        size_t at = count;
        while (at > 0 && a->lattice->rank[list[at - 1]] > a->lattice->rank[a->nodes[i]])
            at--;
        if (at > 0 && list[at - 1] == a->nodes[i])
            continue;
        memmove(list + at + 1, list + at, (count - at) * sizeof *list);
        list[at] = a->nodes[i];
        count++;
    }
    *out = list;
    *out_count = count;
    return CX_SUCCESS;
}

static cx_status answer_merge(asking *a, cx_err *err)
{
    cx_node *nodes = NULL, *common = NULL;
    size_t count = 0, common_count = 0;
    const cx_state_options *states = &a->question->states;
    CX_TRY(order_nodes(a, &nodes, &count, err));
    if (count == 1)
        return cx_states_write(a->states, nodes[0], false, &a->out, err);
    CX_TRY(cx_lattice_common(a->lattice, nodes, count, &a->arena, &common, &common_count, err));
    cx_json *values = CX_ARENA_ARRAY(&a->arena, cx_json, count + common_count + 1);
    cx_str *agents = CX_ARENA_ARRAY(&a->arena, cx_str, count + 1);
    if (values == NULL || agents == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        CX_TRY(state_json(a, nodes[i], &values[i], err));
        agents[i] = cx_lattice_agent_label(a->lattice, nodes[i]);
    }
    for (size_t i = 0; i < common_count; i++)
        CX_TRY(state_json(a, common[i], &values[count + i], err));
    const cx_merge_case merge = {.bases = values + count,
                                 .base_count = common_count,
                                 .states = values,
                                 .state_count = count,
                                 .agents = agents,
                                 .strategy = states->strategy,
                                 .priorities = states->priorities,
                                 .priority_count = states->priority_count,
                                 .base_none = states->base_none || common_count == 0,
                                 .whole_states = true};
    return cx_state_merge_json(&merge, a->arena.alloc, &a->out, err);
}

cx_status cx_lattice_ask_merge(const cx_lattice *lattice, const cx_node *nodes, size_t node_count,
                               const cx_question *question, cx_owned *out, cx_err *err)
{
    asking a = {.lattice = lattice, .question = question, .nodes = nodes, .node_count = node_count};
    if (node_count == 0)
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "at least one node is needed");
    return ask(&a, true, answer_merge, out, err);
}
