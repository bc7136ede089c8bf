/*
 * lattice_graph.c - everything that is asked about one whole lattice: order, forks, merges, states,
 * comparisons, changes (lattice.md §6-§8).
 *
 * The file of expectations also holds the questions: `pair` of compare, `target` and `key` of
 * backtrack, the agents of head_states_lww, `priority`.  Answering reads nothing else of it.
 */
#include "tests/runner/lattice.h"

#include <stdio.h>

#include "crypto/digest.h"
#include "base/hex.h"
#include "lattice/record.h"

typedef struct strategy_name {
    const char *name;
    cx_merge_strategy strategy;
} strategy_name;

static const strategy_name strategies[] = {{"lww", CX_MERGE_LWW},
                                           {"confidence", CX_MERGE_CONFIDENCE},
                                           {"policy", CX_MERGE_POLICY},
                                           {"manual", CX_MERGE_MANUAL}};

/* What is asked about. */
typedef struct graph {
    runner *r;
    const cx_json *asked;
    cx_lattice *lattice;
    cx_state_options options; /* lww, lca, and the priorities */
    cx_states *states;        /* under these options */
    bool holds;
    cx_buf text;
} graph;

/* --- values -------------------------------------------------------------------------------- */

cx_status runner_strategy(cx_str name, cx_merge_strategy *out, cx_err *err)
{
    for (size_t i = 0; i < CX_COUNT_OF(strategies); i++) {
        if (cx_str_is(name, strategies[i].name)) {
            *out = strategies[i].strategy;
            return CX_SUCCESS;
        }
    }
    return cx_fail(err, CX_E_FORMAT, "the case has an unknown strategy");
}

cx_status runner_priorities(runner *r, const cx_json *value, const cx_agent_priority **out,
                            size_t *out_count, cx_err *err)
{
    *out = NULL;
    *out_count = 0;
    if (value == NULL || value->type == CX_JSON_NULL)
        return CX_SUCCESS;
    if (value->type != CX_JSON_OBJECT)
        return cx_fail(err, CX_E_FORMAT, "the case has priorities that are no object");
    cx_agent_priority *list =
        CX_ARENA_ARRAY(&r->arena, cx_agent_priority, (size_t)value->count + 1);
    if (list == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < value->count; i++) {
        list[i].agent = cx_json_text(&value->members[i].name);
        if (!cx_json_double(&value->members[i].value, &list[i].priority))
            return cx_fail(err, CX_E_FORMAT, "the case has a priority that is no number");
    }
    *out = list;
    *out_count = value->count;
    return CX_SUCCESS;
}

static cx_json id_value(const graph *g, cx_node n)
{
    return cx_json_make_str(node_id(node_at(g->lattice, n)));
}

/* Takes a member of an answer that was written as JSON. */
static cx_status take_answer(graph *g, cx_json *out, cx_err *err)
{
    cx_status status = runner_parse(g->r, &g->text, out, err);
    cx_buf_clear(&g->text);
    return status;
}

/* --- the graph ----------------------------------------------------------------------------- */

static cx_status answer_verify(graph *g, cx_json *out, cx_err *err)
{
    cx_lattice_report *report;
    cx_json value;
    CX_TRY(cx_lattice_verify(g->lattice, NULL, &report, err));
    g->holds = cx_lattice_report_verdict(report) == CX_HOLDS;
    cx_status status = cx_lattice_report_json(&g->text, g->lattice, report, err);
    cx_lattice_report_close(report);
    CX_TRY(status);
    CX_TRY(take_answer(g, &value, err));
    return runner_report(g->r, &value, out, err);
}

static cx_status answer_order(graph *g, cx_json *out, cx_err *err)
{
    for (uint32_t i = 0; i < g->lattice->order_count; i++) {
        if (i != 0)
            cx_buf_add_byte(&g->text, ',');
        cx_buf_add_str(&g->text, node_id(node_at(g->lattice, g->lattice->order[i])));
    }
    CX_TRY(cx_buf_check(&g->text, err));
    cx_status status = runner_sha256(g->r, cx_buf_bytes(&g->text), out, err);
    cx_buf_clear(&g->text);
    return status;
}

static cx_status answer_heatmap(graph *g, cx_json *out, cx_err *err)
{
    cx_answer_options options = {.verified = g->holds, .json = true};
    cx_json answer;
    const cx_json *nodes;
    CX_TRY(cx_lattice_answer_heatmap(&g->text, g->lattice, &options, err));
    CX_TRY(take_answer(g, &answer, err));
    CX_TRY(runner_member(&answer, "nodes", CX_JSON_ARRAY, &nodes, err));
    *out = *nodes;
    return CX_SUCCESS;
}

static cx_status answer_bases(graph *g, const node *merge, cx_json *out, cx_err *err)
{
    cx_node *bases;
    size_t count;
    CX_TRY(cx_lattice_common(g->lattice, node_parents(g->lattice, merge), merge->parent_count,
                             &g->r->arena, &bases, &count, err));
    cx_json_list list = cx_json_list_begin(&g->r->arena);
    for (size_t i = 0; i < count; i++)
        cx_json_list_add(&list, id_value(g, bases[i]));
    return cx_json_list_end_array(&list, out, err);
}

static cx_status answer_merge_bases(graph *g, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&g->r->arena);
    for (uint32_t i = 0; i < g->lattice->order_count; i++) {
        const node *n = node_at(g->lattice, g->lattice->order[i]);
        cx_json bases;
        if (n->parent_count < 2)
            continue;
        CX_TRY(answer_bases(g, n, &bases, err));
        cx_json_list_put(&list, node_id(n), bases);
    }
    return cx_json_list_end_object(&list, out, err);
}

/* --- states -------------------------------------------------------------------------------- */

/* Goes through the agents that have a head. */
static bool next_head(const graph *g, uint32_t *next, cx_node *out)
{
    while (*next < g->lattice->agents.count) {
        *out = cx_lattice_head_of(g->lattice, (*next)++);
        if (*out != CX_NODE_NONE)
            return true;
    }
    return false;
}

/* For the agents the file names; for all when it names none. */
static cx_status answer_head_states(graph *g, cx_json *out, cx_err *err)
{
    const cx_json *named = cx_json_get_typed(g->asked, CX_STR("head_states_lww"), CX_JSON_OBJECT);
    cx_json_list list = cx_json_list_begin(&g->r->arena);
    cx_node head;
    for (uint32_t next = 0; next_head(g, &next, &head);) {
        cx_json value;
        cx_str name = cx_lattice_agent_label(g->lattice, head);
        if (named != NULL && cx_json_get(named, name) == NULL)
            continue;
        CX_TRY(cx_states_write(g->states, head, false, &g->text, err));
        CX_TRY(take_answer(g, &value, err));
        cx_json_list_put(&list, name, value);
    }
    return cx_json_list_end_object(&list, out, err);
}

static cx_status digest_heads(graph *g, const cx_states *states, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&g->r->arena);
    cx_node head;
    for (uint32_t next = 0; next_head(g, &next, &head);) {
        cx_json value;
        cx_buf_clear(&g->text);
        CX_TRY(cx_states_write(states, head, false, &g->text, err));
        CX_TRY(runner_sha256(g->r, cx_buf_bytes(&g->text), &value, err));
        cx_json_list_put(&list, cx_lattice_agent_label(g->lattice, head), value);
    }
    cx_buf_clear(&g->text);
    return cx_json_list_end_object(&list, out, err);
}

/* Over the lines `node_id canonical(state)`, sorted by id, joined by LF. */
static cx_status digest_all(graph *g, const cx_states *states, cx_json *out, cx_err *err)
{
    uint32_t count = g->lattice->order_count;
    cx_str *ids = CX_ARENA_ARRAY(&g->r->arena, cx_str, (size_t)count + 1);
    if (ids == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < count; i++)
        ids[i] = node_id(node_at(g->lattice, g->lattice->order[i]));
    cx_lattice_sort_ids(ids, count);
    cx_buf_clear(&g->text);
    for (uint32_t i = 0; i < count; i++) {
        if (i != 0)
            cx_buf_add_byte(&g->text, '\n');
        cx_buf_add_str(&g->text, ids[i]);
        cx_buf_add_byte(&g->text, ' ');
        CX_TRY(
            cx_states_write(states, cx_lattice_find_id(g->lattice, ids[i]), false, &g->text, err));
    }
    CX_TRY(cx_buf_check(&g->text, err));
    cx_status status = runner_sha256(g->r, cx_buf_bytes(&g->text), out, err);
    cx_buf_clear(&g->text);
    return status;
}

static cx_status answer_states(graph *g, cx_merge_strategy strategy, bool base_none, cx_json *out,
                               cx_err *err)
{
    cx_state_options options = g->options;
    options.strategy = strategy;
    options.base_none = base_none;
    cx_states *states;
    cx_json all, heads;
    CX_TRY(cx_states_open(g->lattice, &options, &states, err));
    cx_status status = digest_all(g, states, &all, err);
    if (!cx_failed(status))
        status = digest_heads(g, states, &heads, err);
    cx_states_close(states);
    CX_TRY(status);
    cx_json_list list = cx_json_list_begin(&g->r->arena);
    cx_json_list_put(&list, CX_STR("digest_all"), all);
    cx_json_list_put(&list, CX_STR("heads"), heads);
    return cx_json_list_end_object(&list, out, err);
}

/* --- questions ----------------------------------------------------------------------------- */

/* {"pair",...}: the answer with its question, without what the lattice as a whole says. */
static cx_status answer_pair(graph *g, const cx_json *question, cx_json *out, cx_err *err)
{
    static const char *const names[] = {"causal_lca", "diff", "heads", "lca", "paths"};
    cx_answer_options options = {.verified = g->holds, .json = true};
    const cx_json *pair;
    cx_str *agents;
    cx_json answer;
    CX_TRY(runner_member(question, "pair", CX_JSON_ARRAY, &pair, err));
    CX_TRY(runner_texts(g->r, pair, &agents, err));
    if (pair->count != 2)
        return cx_fail(err, CX_E_FORMAT, "a question has a 'pair' that is none");
    CX_TRY(cx_lattice_answer_compare(&g->text, g->states, agents[0], agents[1], &options, err));
    CX_TRY(take_answer(g, &answer, err));
    cx_json_list list = cx_json_list_begin(&g->r->arena);
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        const cx_json *value = cx_json_get(&answer, cx_str_z(names[i]));
        if (value != NULL)
            cx_json_list_put(&list, cx_str_z(names[i]), *value);
    }
    const cx_json *named = CX_JSON_GET(&answer, "agents");
    if (named != NULL)
        cx_json_list_put(&list, CX_STR("pair"), *named);
    return cx_json_list_end_object(&list, out, err);
}

/* {"target","key"}: the changes as `expect`. */
static cx_status answer_changes(graph *g, const cx_json *question, cx_json *out, cx_err *err)
{
    cx_answer_options options = {.verified = g->holds, .json = true, .allow_absent = true};
    cx_str target, key;
    cx_json answer;
    const cx_json *changes;
    CX_TRY(runner_text(question, "target", &target, err));
    CX_TRY(runner_text(question, "key", &key, err));
    cx_node at = cx_lattice_find(g->lattice, target);
    if (at == CX_NODE_NONE)
        return cx_fail(err, CX_E_NOT_FOUND, "a question has a 'target' the lattice does not have");
    CX_TRY(cx_lattice_answer_why(&g->text, g->states, at, key, CX_STR(""), &options, err));
    CX_TRY(take_answer(g, &answer, err));
    CX_TRY(runner_member(&answer, "changes", CX_JSON_ARRAY, &changes, err));
    cx_json_list list = cx_json_list_begin(&g->r->arena);
    cx_json_list_put(&list, CX_STR("expect"), *changes);
    cx_json_list_put(&list, CX_STR("key"), cx_json_make_str(key));
    cx_json_list_put(&list, CX_STR("target"), cx_json_make_str(target));
    return cx_json_list_end_object(&list, out, err);
}

typedef cx_status (*question_answer)(graph *g, const cx_json *question, cx_json *out, cx_err *err);

static cx_status answer_each(graph *g, const char *name, question_answer answer, cx_json *out,
                             cx_err *err)
{
    const cx_json *questions;
    CX_TRY(runner_member(g->asked, name, CX_JSON_ARRAY, &questions, err));
    cx_json_list list = cx_json_list_begin(&g->r->arena);
    for (uint32_t i = 0; i < questions->count; i++) {
        cx_json value;
        CX_TRY(answer(g, &questions->items[i], &value, err));
        cx_json_list_add(&list, value);
    }
    return cx_json_list_end_array(&list, out, err);
}

/* --- the answer as a whole ----------------------------------------------------------------- */

static cx_status answer_compare(graph *g, cx_json *out, cx_err *err)
{
    return answer_each(g, "compare", answer_pair, out, err);
}

static cx_status answer_backtrack(graph *g, cx_json *out, cx_err *err)
{
    return answer_each(g, "backtrack", answer_changes, out, err);
}

typedef struct part {
    const char *name;
    cx_status (*answer)(graph *g, cx_json *out, cx_err *err);
    bool asks; /* can only be answered when the file asks */
} part;

/* Verification comes first: the others say what it said. */
static const part parts[] = {{"verify", answer_verify, false},
                             {"topological_order_sha256", answer_order, false},
                             {"heatmap", answer_heatmap, false},
                             {"merge_bases", answer_merge_bases, false},
                             {"head_states_lww", answer_head_states, false},
                             {"compare", answer_compare, true},
                             {"backtrack", answer_backtrack, true}};

/* With --got everything is printed; else only what has an expected value. */
static bool is_wanted(const graph *g, cx_str name, bool asks)
{
    return (g->r->got_only && !asks) || cx_json_get(g->asked, name) != NULL;
}

static cx_status add_parts(graph *g, cx_json_list *list, cx_err *err)
{
    for (size_t i = 0; i < CX_COUNT_OF(parts); i++) {
        cx_json value;
        bool wanted = is_wanted(g, cx_str_z(parts[i].name), parts[i].asks);
        if (i != 0 && !wanted)
            continue;
        CX_TRY(parts[i].answer(g, &value, err));
        if (wanted)
            cx_json_list_put(list, cx_str_z(parts[i].name), value);
    }
    return CX_SUCCESS;
}

static cx_status add_states(graph *g, cx_json_list *list, cx_err *err)
{
    for (size_t i = 0; i < 2 * CX_COUNT_OF(strategies); i++) {
        const strategy_name *s = &strategies[i / 2];
        bool none = i % 2 != 0;
        cx_json value;
        cx_str name = cx_arena_printf(&g->r->arena, "states_%s_%s", s->name, none ? "none" : "lca");
        if (name.data == NULL)
            return cx_fail_nomem(err);
        if (!is_wanted(g, name, false))
            continue;
        CX_TRY(answer_states(g, s->strategy, none, &value, err));
        cx_json_list_put(list, name, value);
    }
    return CX_SUCCESS;
}

static cx_status answer_graph(graph *g, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&g->r->arena);
    const cx_json *priority = CX_JSON_GET(g->asked, "priority");
    CX_TRY(cx_states_open(g->lattice, &g->options, &g->states, err));
    CX_TRY(add_parts(g, &list, err));
    CX_TRY(add_states(g, &list, err));
    if (priority != NULL)
        cx_json_list_put(&list, CX_STR("priority"), *priority);
    return cx_json_list_end_object(&list, out, err);
}

static cx_status read_asked(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str file;
    CX_TRY(runner_text(item, "expected", &file, err));
    CX_TRY(runner_read_json(r, file, out, err));
    if (out->type != CX_JSON_OBJECT)
        return cx_fail(err, CX_E_FORMAT, "the file of expectations holds no object");
    return CX_SUCCESS;
}

static cx_status read_priorities(graph *g, cx_err *err)
{
    static const cx_agent_priority usual[] = {
        {{"agent_a", 7}, 2}, {{"agent_b", 7}, 1}, {{"system", 6}, 3}};
    const cx_json *given = CX_JSON_GET(g->asked, "priority");
    g->options = (cx_state_options)CX_STATE_OPTIONS_INIT;
    if (given != NULL)
        return runner_priorities(g->r, given, &g->options.priorities, &g->options.priority_count,
                                 err);
    g->options.priorities = usual;
    g->options.priority_count = CX_COUNT_OF(usual);
    return CX_SUCCESS;
}

cx_status runner_graph_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_json asked;
    cx_str file, path;
    graph g = {.r = r, .asked = &asked};
    CX_TRY(read_asked(r, item, &asked, err));
    CX_TRY(read_priorities(&g, err));
    CX_TRY(runner_text(item, "file", &file, err));
    path = runner_path(r, file);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    options.keep_deltas = true;
    CX_TRY(cx_lattice_open(path.data, &options, &g.lattice, err));
    cx_buf_init(&g.text, cx_alloc_default());
    cx_json borrowed;
    cx_status status = answer_graph(&g, &borrowed, err);
    if (!cx_failed(status))
        status = cx_json_copy(&borrowed, &r->arena, out, err);
    cx_buf_done(&g.text);
    cx_states_close(g.states);
    cx_lattice_close(g.lattice);
    return status;
}

/* --- what is expected ---------------------------------------------------------------------- */

static bool is_known(cx_str name)
{
    bool known = cx_str_is(name, "priority");
    for (size_t i = 0; i < CX_COUNT_OF(parts); i++)
        known |= cx_str_is(name, parts[i].name);
    for (size_t i = 0; i < 2 * CX_COUNT_OF(strategies); i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "states_%s_%s", strategies[i / 2].name,
                       i % 2 != 0 ? "none" : "lca");
        known |= cx_str_is(name, text);
    }
    return known;
}

cx_status runner_graph_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_json file;
    CX_TRY(read_asked(r, item, &file, err));
    cx_json_list list = cx_json_list_begin(&r->arena);
    for (uint32_t i = 0; i < file.count; i++) {
        cx_str name = cx_json_text(&file.members[i].name);
        cx_json value = file.members[i].value;
        if (!is_known(name)) {
            runner_skip(r, name, "unknown question about a graph");
            continue;
        }
        if (cx_str_is(name, "verify"))
            CX_TRY(runner_report(r, &file.members[i].value, &value, err));
        cx_json_list_put(&list, name, value);
    }
    return cx_json_list_end_object(&list, out, err);
}
