/*
 * compare.c - two agents next to each other (lattice.md §8).
 *
 *   {"agents":[A,B],"causal_lca":[...],"diff":[{"a","b","key","section"}],"heads":[...],"lca":ID,
 *    "paths":[[...],[...]],"verified":B}
 *
 * The lineage answer follows each head's chain of lineage parents: they form a tree, so from two
 * heads always the later one steps up until they meet.  The causal answer is the best common
 * ancestors over all edges.  The diff is of the states after the heads; structure they share is
 * skipped.
 */
#include "lattice/answer.h"
#include "lattice/state.h"

/* --- lineage ------------------------------------------------------------------------------- */

static cx_node lineage_of(const cx_lattice *lattice, cx_node which)
{
    return which == CX_NODE_NONE ? CX_NODE_NONE : node_at(lattice, which)->lineage;
}

/* Of two nodes, or none, the one that comes later; with both none, none. */
static bool is_first_later(const cx_lattice *lattice, cx_node a, cx_node b)
{
    if (a == CX_NODE_NONE || b == CX_NODE_NONE)
        return b == CX_NODE_NONE;
    return lattice->position[a] > lattice->position[b];
}

/* The `count` nodes from `last` upwards, genesis first. */
static const cx_node *path_to(const cx_lattice *lattice, cx_node last, size_t count,
                              cx_arena *arena)
{
    cx_node *path = CX_ARENA_ARRAY(arena, cx_node, count == 0 ? 1 : count);
    for (size_t i = count; path != NULL && i-- > 0; last = lineage_of(lattice, last))
        path[i] = last;
    return path;
}

cx_status cx_lattice_lineage(const cx_lattice *lattice, cx_node a, cx_node b, cx_arena *arena,
                             lineage_paths *out, cx_err *err)
{
    cx_node heads[2] = {a, b}, at[2] = {a, b};
    lineage_paths paths = {.lca = CX_NODE_NONE};
    for (size_t side = 0; side < 2; side++)
        if (lattice->position[heads[side]] == UINT32_MAX)
            return cx_states_no_place(lattice, heads[side], err);
    while (at[0] != at[1]) {
        size_t side = is_first_later(lattice, at[0], at[1]) ? 0 : 1;
        at[side] = lineage_of(lattice, at[side]);
        paths.count[side]++;
    }
    paths.lca = at[0];
    for (size_t side = 0; side < 2; side++) {
        paths.path[side] = path_to(lattice, heads[side], paths.count[side], arena);
        if (paths.path[side] == NULL)
            return cx_fail_nomem(err);
    }
    *out = paths;
    return CX_SUCCESS;
}

cx_status cx_lattice_path(const cx_lattice *lattice, cx_node which, cx_arena *arena,
                          const cx_node **out, size_t *out_count, cx_err *err)
{
    if (lattice->position[which] == UINT32_MAX)
        return cx_states_no_place(lattice, which, err);
    size_t count = 0;
    for (cx_node at = which; at != CX_NODE_NONE; at = lineage_of(lattice, at))
        count++;
    const cx_node *path = path_to(lattice, which, count, arena);
    if (path == NULL)
        return cx_fail_nomem(err);
    *out = path;
    *out_count = count;
    return CX_SUCCESS;
}

/* --- the answer ---------------------------------------------------------------------------- */

typedef struct comparison {
    const cx_states *states;
    const cx_answer_options *options;
    cx_buf *out;
    tree_work work;
    cx_arena arena;
    cx_str agents[2];
    cx_node heads[2];
    lineage_paths lineage;
    cx_node *causal;
    size_t causal_count;
    state_section section; /* being compared */
    size_t diff_count;
    size_t only[2], changed; /* keys with one side, keys with both */
    bool starved;            /* a difference could not be written: memory ran out */
} comparison;

static cx_status find_head(const cx_lattice *lattice, cx_str agent_name, cx_node *out, cx_err *err)
{
    int shown = (int)(agent_name.size > 120 ? 120 : agent_name.size);
    uint32_t index = cx_lattice_find_agent(lattice, agent_name);
    if (index == NO_AGENT)
        return cx_fail(err, CX_E_NOT_FOUND, "no agent is called '%.*s'", shown, agent_name.data);
    *out = cx_lattice_head_of(lattice, index);
    if (*out == CX_NODE_NONE)
        return cx_fail(err, CX_E_NOT_FOUND, "agent '%.*s' has no usable node", shown,
                       agent_name.data);
    return CX_SUCCESS;
}

static bool diff_json(comparison *c, cx_str key, cx_value a, cx_value b)
{
    cx_buf *out = c->out;
    bool ok = true;
    cx_buf_add_z(out, c->diff_count == 0 ? "{" : ",{");
    if (!value_is_absent(a)) {
        cx_buf_add_z(out, "\"a\":");
        ok = cx_tree_write(&c->work, a, out);
        cx_buf_add_byte(out, ',');
    }
    if (ok && !value_is_absent(b)) {
        cx_buf_add_z(out, "\"b\":");
        ok = cx_tree_write(&c->work, b, out);
        cx_buf_add_byte(out, ',');
    }
    cx_buf_add_z(out, "\"key\":");
    if (key.data == NULL)
        cx_buf_add_z(out, "null");
    else
        cx_answer_str(out, key);
    cx_buf_add_z(out, ",\"section\":\"");
    cx_buf_add_str(out, cx_state_section_name(c->section));
    cx_buf_add_z(out, "\"}");
    return ok;
}

static bool side_text(comparison *c, const char *before, cx_value v)
{
    cx_buf_add_z(c->out, before);
    if (value_is_absent(v))
        cx_buf_add_byte(c->out, '-');
    else if (!cx_tree_write(&c->work, v, c->out))
        return false;
    cx_buf_add_byte(c->out, '\n');
    return true;
}

static bool diff_text(comparison *c, cx_str key, cx_value a, cx_value b)
{
    cx_buf_add_z(c->out, "  ");
    cx_buf_add_str(c->out, cx_state_section_name(c->section));
    if (key.data != NULL) {
        cx_buf_add_byte(c->out, '.');
        cx_answer_name(c->out, key);
    }
    cx_buf_add_byte(c->out, '\n');
    return side_text(c, "    a: ", a) && side_text(c, "    b: ", b);
}

static bool visit_difference(void *arg, cx_str key, cx_value a, cx_value b)
{
    comparison *c = arg;
    bool ok = c->options->json ? diff_json(c, key, a, b) : diff_text(c, key, a, b);
    c->diff_count++;
    if (value_is_absent(a))
        c->only[1]++;
    else if (value_is_absent(b))
        c->only[0]++;
    else
        c->changed++;
    c->starved |= !ok;
    return ok;
}

/* The differences of both states: memory keys, beliefs keys, goals, context_stack. */
static cx_status write_diff(comparison *c, cx_err *err)
{
    const state *a = cx_states_at(c->states, c->heads[0]);
    const state *b = cx_states_at(c->states, c->heads[1]);
    c->section = SECTION_MEMORY;
    bool ok = cx_tree_diff(&c->work, a->memory, b->memory, visit_difference, c);
    c->section = SECTION_BELIEFS;
    ok = ok && cx_tree_diff(&c->work, a->beliefs, b->beliefs, visit_difference, c);
    static const state_section lists[2] = {SECTION_GOALS, SECTION_CONTEXT_STACK};
    for (size_t i = 0; ok && i < 2; i++) {
        cx_value left = cx_state_section_value(a, lists[i]);
        cx_value right = cx_state_section_value(b, lists[i]);
        bool equal;
        c->section = lists[i];
        ok = cx_tree_equal(&c->work, left, right, &equal) &&
             (equal || visit_difference(c, (cx_str){NULL, 0}, left, right));
    }
    return ok && !c->starved ? cx_buf_check(c->out, err) : cx_fail_nomem(err);
}

static void nodes_json(comparison *c, const cx_node *nodes, size_t count)
{
    cx_buf_add_byte(c->out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i != 0)
            cx_buf_add_byte(c->out, ',');
        cx_answer_node_str(c->out, c->states->lattice, nodes[i]);
    }
    cx_buf_add_byte(c->out, ']');
}

static cx_status answer_json(comparison *c, cx_err *err)
{
    cx_buf *out = c->out;
    cx_buf_add_z(out, "{\"agents\":[");
    cx_answer_str(out, c->agents[0]);
    cx_buf_add_byte(out, ',');
    cx_answer_str(out, c->agents[1]);
    cx_buf_add_z(out, "],\"causal_lca\":");
    nodes_json(c, c->causal, c->causal_count);
    cx_buf_add_z(out, ",\"diff\":[");
    CX_TRY(write_diff(c, err));
    cx_buf_add_z(out, "],\"heads\":");
    nodes_json(c, c->heads, 2);
    cx_buf_add_z(out, ",\"lca\":");
    if (c->lineage.lca == CX_NODE_NONE)
        cx_buf_add_z(out, "null");
    else
        cx_answer_node_str(out, c->states->lattice, c->lineage.lca);
    cx_buf_add_z(out, ",\"paths\":[");
    nodes_json(c, c->lineage.path[0], c->lineage.count[0]);
    cx_buf_add_byte(out, ',');
    nodes_json(c, c->lineage.path[1], c->lineage.count[1]);
    cx_buf_add_z(out, "],");
    cx_answer_end(out, c->options);
    return CX_SUCCESS;
}

/* --- for users ---------------------------------------------------------------------------- */

/* Content ids in full would hide a path among their digits: ten of them tell nodes apart. */
static void short_name(comparison *c, cx_node which)
{
    cx_str id = node_id(node_at(c->states->lattice, which));
    if (id.size == 64)
        cx_answer_name(c->out, (cx_str){id.data, 10});
    else
        cx_answer_node_name(c->out, c->states->lattice, which);
}

/* A path's ends are what people look for: of a long one the middle is left out. */
enum { PATH_SHOWN = 8 };

static void path_text(comparison *c, size_t side)
{
    const cx_node *path = c->lineage.path[side];
    size_t count = c->lineage.count[side];
    cx_buf_printf(c->out, "Path %c: %zu node%s", side == 0 ? 'a' : 'b', count,
                  count == 1 ? "" : "s");
    for (size_t i = 0; i < count; i++) {
        cx_buf_add_z(c->out, i == 0 ? ": " : " > ");
        if (count > PATH_SHOWN && i == PATH_SHOWN / 2) {
            cx_buf_add_z(c->out, "...");
            i = count - PATH_SHOWN / 2 - 1;
            continue;
        }
        short_name(c, path[i]);
    }
    cx_buf_add_byte(c->out, '\n');
}

static void head_text(comparison *c, size_t side)
{
    const cx_lattice *lattice = c->states->lattice;
    cx_buf_add_z(c->out, side == 0 ? "Head a: " : "Head b: ");
    cx_answer_name(c->out, c->agents[side]);
    cx_buf_printf(c->out, "#%lld ", (long long)node_at(lattice, c->heads[side])->seq);
    cx_answer_node_name(c->out, lattice, c->heads[side]);
    cx_buf_add_byte(c->out, '\n');
}

static cx_status answer_text(comparison *c, cx_err *err)
{
    cx_buf *out = c->out;
    cx_answer_heading(out, c->options, "Comparing ");
    cx_answer_name(out, c->agents[0]);
    cx_buf_add_z(out, " (a) with ");
    cx_answer_name(out, c->agents[1]);
    cx_buf_add_z(out, " (b)\n");
    head_text(c, 0);
    head_text(c, 1);
    cx_buf_add_z(out, "Last common node by lineage: ");
    if (c->lineage.lca == CX_NODE_NONE)
        cx_buf_add_z(out, "none");
    else
        cx_answer_node_name(out, c->states->lattice, c->lineage.lca);
    cx_buf_add_z(out, "\nLast common knowledge: ");
    if (c->causal_count == 0)
        cx_buf_add_z(out, "none");
    for (size_t i = 0; i < c->causal_count; i++) {
        cx_buf_add_z(out, i == 0 ? "" : ", ");
        cx_answer_node_name(out, c->states->lattice, c->causal[i]);
    }
    cx_buf_add_byte(out, '\n');
    path_text(c, 0);
    path_text(c, 1);
    cx_answer_heading(out, c->options, "State variance:\n");
    CX_TRY(write_diff(c, err));
    if (c->diff_count == 0)
        cx_buf_add_z(out, "  none\n");
    else
        cx_buf_printf(out, "%zu differ: %zu only in a, %zu only in b, %zu with other values\n",
                      c->diff_count, c->only[0], c->only[1], c->changed);
    cx_answer_verdict_line(out, c->options);
    return CX_SUCCESS;
}

static cx_status prepare_comparison(comparison *c, cx_err *err)
{
    const cx_lattice *lattice = c->states->lattice;
    for (size_t side = 0; side < 2; side++) {
        state ignored;
        CX_TRY(cx_states_get(c->states, c->heads[side], false, &ignored, err));
    }
    CX_TRY(cx_lattice_lineage(lattice, c->heads[0], c->heads[1], &c->arena, &c->lineage, err));
    return cx_lattice_common(lattice, c->heads, 2, &c->arena, &c->causal, &c->causal_count, err);
}

static cx_status answer_heads(cx_buf *out, const cx_states *states, const cx_str agents[2],
                              const cx_node nodes[2], const cx_answer_options *options, cx_err *err)
{
    comparison c = {.states = states,
                    .options = options,
                    .out = out,
                    .agents = {agents[0], agents[1]},
                    .heads = {nodes[0], nodes[1]}};
    cx_arena_init(&c.arena, states->alloc, 0);
    cx_tree_work_init(&c.work, states->alloc);
    cx_status status;
    CX_TRY_GOTO(status, prepare_comparison(&c, err));
    CX_TRY_GOTO(status, options->json ? answer_json(&c, err) : answer_text(&c, err));
    status = cx_buf_check(out, err);
done:
    cx_tree_work_done(&c.work);
    cx_arena_done(&c.arena);
    return status;
}

cx_status cx_lattice_answer_compare(cx_buf *out, const cx_states *states, cx_str agent_a,
                                    cx_str agent_b, const cx_answer_options *options, cx_err *err)
{
    cx_node heads[2];
    const cx_str agents[2] = {agent_a, agent_b};
    for (size_t side = 0; side < 2; side++)
        CX_TRY(find_head(states->lattice, agents[side], &heads[side], err));
    return answer_heads(out, states, agents, heads, options, err);
}

cx_status cx_lattice_answer_compare_nodes(cx_buf *out, const cx_states *states,
                                          const cx_node nodes[2], const cx_answer_options *options,
                                          cx_err *err)
{
    const cx_str agents[2] = {cx_lattice_agent_label(states->lattice, nodes[0]),
                              cx_lattice_agent_label(states->lattice, nodes[1])};
    return answer_heads(out, states, agents, nodes, options, err);
}
