/*
 * build.c - makes the state at every node (lattice.md §6), in topological order.
 *
 *   inherited   no parent: the empty state; one: its state; several: their merge (§7)
 *   state       inherited with the node's own state_delta put on it
 *
 * Invariants:
 *   I1  a state is built when those of all parents are, since parents have smaller positions;
 *   I2  the forest's stamp is raised before each change, so a change writes to nodes of its own.
 */
#include "lattice/ancestors.h"
#include "lattice/merge.h"
#include "lattice/state.h"

/* --- building ------------------------------------------------------------------------------ */

/* What is needed while states are made, and not afterwards. */
typedef struct builder {
    cx_arena *arena;
    cx_forest *forest;
    cx_arena scratch; /* of one change */
    const cx_alloc *alloc;
    tree_work work;
    patcher patch;
    merger merge;
    CX_VEC(state) parents;
    CX_VEC(state) bases;
    CX_VEC(const tree *) roots;
    CX_VEC(cx_value) values;
    CX_VEC(double) priorities;
} builder;

static void builder_init(builder *build, cx_arena *arena, cx_forest *forest, const cx_alloc *alloc)
{
    *build = (builder){.arena = arena, .forest = forest, .alloc = alloc};
    cx_arena_init(&build->scratch, alloc, 0);
    forest->scratch = &build->scratch;
    cx_tree_work_init(&build->work, alloc);
    cx_patcher_init(&build->patch, forest, alloc);
    cx_merger_init(&build->merge, forest, &build->work, &build->patch, alloc);
}

static void builder_done(builder *build)
{
    cx_merger_done(&build->merge);
    cx_patcher_done(&build->patch);
    cx_tree_work_done(&build->work);
    cx_arena_done(&build->scratch);
    build->forest->scratch = NULL;
    cx_vec_done(&build->parents, build->alloc);
    cx_vec_done(&build->bases, build->alloc);
    cx_vec_done(&build->roots, build->alloc);
    cx_vec_done(&build->values, build->alloc);
    cx_vec_done(&build->priorities, build->alloc);
}

/* Called before each change (I2): the nodes that the last one left in scratch have been placed. */
static cx_status next_stamp(cx_forest *forest, cx_err *err)
{
    if (forest->stamp == UINT32_MAX)
        return cx_fail(err, CX_E_LIMIT, "more than 2^32 changes of state");
    forest->stamp++;
    cx_arena_reset(forest->scratch, (cx_arena_mark){0});
    return CX_SUCCESS;
}

/* Gives the state lists of its own when they are to differ. */
static bool set_lists(builder *build, state *s, cx_value goals, cx_value context_stack)
{
    if (value_is_same(s->lists->goals, goals) &&
        value_is_same(s->lists->context_stack, context_stack))
        return true;
    state_lists *lists = CX_ARENA_NEW(build->arena, state_lists);
    if (lists == NULL)
        return false;
    *lists = (state_lists){goals, context_stack};
    s->lists = lists;
    return true;
}

/* Puts a delta (canonical text of an object) on a state. */
static cx_status apply_delta(builder *build, cx_str delta, state *s, cx_err *err)
{
    CX_TRY(next_stamp(build->forest, err));
    cx_value goals = s->lists->goals, context_stack = s->lists->context_stack;
    canon_walk walk = cx_canon_walk(delta);
    cx_str name, text;
    while (cx_canon_member(&walk, &name, &text)) {
        switch (cx_state_section_named(name)) {
        case SECTION_MEMORY: CX_TRY(cx_patch_map(&build->patch, &s->memory, text, err)); break;
        case SECTION_BELIEFS: CX_TRY(cx_patch_map(&build->patch, &s->beliefs, text, err)); break;
        case SECTION_GOALS: CX_TRY(cx_patch_import(&build->patch, text, &goals, err)); break;
        case SECTION_CONTEXT_STACK:
            CX_TRY(cx_patch_import(&build->patch, text, &context_stack, err));
            break;
        default: break; /* kept and sealed, no effect on the state */
        }
    }
    return set_lists(build, s, goals, context_stack) ? CX_SUCCESS : cx_fail_nomem(err);
}

/* The merge of one of the two map sections, over build->parents and build->bases. */
static cx_status merge_map(builder *build, bool memory, const tree **out, cx_err *err)
{
    size_t parents = build->parents.count, bases = build->bases.count;
    if (!cx_vec_reserve(&build->roots, parents + bases, build->alloc))
        return cx_fail_nomem(err);
    const tree **roots = build->roots.items;
    for (size_t i = 0; i < parents + bases; i++) {
        const state *s = i < parents ? &build->parents.items[i] : &build->bases.items[i - parents];
        roots[i] = memory ? s->memory : s->beliefs;
    }
    return cx_merge_maps(&build->merge, roots, parents, roots + parents, bases, out, err);
}

static cx_status merge_list(builder *build, bool goals, cx_value *out, cx_err *err)
{
    size_t parents = build->parents.count, bases = build->bases.count;
    if (!cx_vec_reserve(&build->values, parents + bases, build->alloc))
        return cx_fail_nomem(err);
    cx_value *values = build->values.items;
    for (size_t i = 0; i < parents + bases; i++) {
        const state *s = i < parents ? &build->parents.items[i] : &build->bases.items[i - parents];
        values[i] = goals ? s->lists->goals : s->lists->context_stack;
    }
    return cx_merge_value(&build->merge, values, parents, values + parents, bases, out, err);
}

/* Merges build->parents over build->bases. */
static cx_status merge_states(builder *build, state *out, cx_err *err)
{
    CX_TRY(next_stamp(build->forest, err));
    state result = build->parents.items[0];
    cx_value goals, context_stack;
    CX_TRY(merge_map(build, true, &result.memory, err));
    CX_TRY(merge_map(build, false, &result.beliefs, err));
    CX_TRY(merge_list(build, true, &goals, err));
    CX_TRY(merge_list(build, false, &context_stack, err));
    if (!set_lists(build, &result, goals, context_stack))
        return cx_fail_nomem(err);
    *out = result;
    return CX_SUCCESS;
}

/* --- building: from a lattice -------------------------------------------------------------- */

static bool add_state(builder *build, bool to_bases, state s)
{
    state *slot = to_bases ? cx_vec_push(&build->bases, build->alloc)
                           : cx_vec_push(&build->parents, build->alloc);
    if (slot != NULL)
        *slot = s;
    return slot != NULL;
}

static bool states_are_same(const state *a, const state *b)
{
    return a->memory == b->memory && a->beliefs == b->beliefs && a->lists == b->lists;
}

/* The parents' states and their agents' priorities; *out_same when there is nothing to merge. */
static bool collect_parents(const cx_states *states, builder *build, const node *n, bool *out_same)
{
    const cx_lattice *lattice = states->lattice;
    build->parents.count = build->priorities.count = 0;
    *out_same = true;
    for (uint32_t i = 0; i < n->parent_count; i++) {
        cx_node parent = node_parents(lattice, n)[i];
        uint32_t of = node_at(lattice, parent)->agent;
        double *priority = cx_vec_push(&build->priorities, build->alloc);
        if (priority == NULL || !add_state(build, false, *cx_states_at(states, parent)))
            return false;
        *priority =
            states->agent_priority == NULL || of == NO_AGENT ? 0 : states->agent_priority[of];
        if (!states_are_same(&build->parents.items[0], &build->parents.items[i]))
            *out_same = false;
    }
    return true;
}

/* The states of the best common ancestors, or the empty one. */
static cx_status collect_bases(const cx_states *states, builder *build, ancestry *search,
                               const node *n, cx_err *err)
{
    build->bases.count = 0;
    if (!states->options.base_none) {
        const cx_node *parents = node_parents(states->lattice, n);
        CX_TRY(cx_ancestry_find(search, parents, n->parent_count, err));
        for (size_t i = 0; i < search->found.count; i++)
            if (!add_state(build, true, *cx_states_at(states, search->found.items[i])))
                return cx_fail_nomem(err);
    }
    if (build->bases.count == 0 && !add_state(build, true, cx_state_empty()))
        return cx_fail_nomem(err);
    return CX_SUCCESS;
}

/* The inherited state of a node with several parents. */
static cx_status inherit_merge(cx_states *states, builder *build, ancestry *search, cx_node which,
                               state *out, cx_err *err)
{
    const node *n = node_at(states->lattice, which);
    bool same;
    if (!collect_parents(states, build, n, &same))
        return cx_fail_nomem(err);
    if (same) {
        *out = build->parents.items[0];
    } else {
        CX_TRY(collect_bases(states, build, search, n, err));
        build->merge.strategy = states->options.strategy;
        (void)node_strategy(n, &build->merge.strategy); /* the node's own word wins */
        build->merge.priorities = build->priorities.items;
        CX_TRY(merge_states(build, out, err));
    }
    merged_state *slot = cx_vec_push(&states->merged, states->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = (merged_state){states->lattice->position[which], *out};
    return CX_SUCCESS;
}

static cx_status build_all(cx_states *states, builder *build, ancestry *search, cx_err *err)
{
    const cx_lattice *lattice = states->lattice;
    for (uint32_t position = 0; position < lattice->order_count; position++) {
        if (!cx_states_has(states, position))
            continue;
        cx_node which = lattice->order[position];
        const node *n = node_at(lattice, which);
        state s = cx_state_empty();
        if (n->parent_count == 1)
            s = *cx_states_at(states, node_parents(lattice, n)[0]);
        else if (n->parent_count > 1)
            CX_TRY(inherit_merge(states, build, search, which, &s, err));
        CX_TRY(apply_delta(build, lattice->deltas.items[which], &s, err));
        states->items[which] = s;
    }
    return CX_SUCCESS;
}

/* --- opening ------------------------------------------------------------------------------- */

/* Marks the targets and all their ancestors. */
static cx_status mark_wanted(cx_states *states, const cx_node *targets, size_t target_count,
                             cx_err *err)
{
    const cx_lattice *lattice = states->lattice;
    size_t words = ((size_t)lattice->order_count + 63) / 64;
    states->wanted = cx_alloc_zeroed(states->alloc, words == 0 ? 1 : words, sizeof(uint64_t));
    if (states->wanted == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < target_count; i++) {
        if (targets[i] >= lattice->nodes.count)
            return cx_fail(err, CX_E_NOT_FOUND, "no node has the number %lu",
                           (unsigned long)targets[i]);
        uint32_t position = lattice->position[targets[i]];
        if (position == UINT32_MAX)
            return cx_states_no_place(lattice, targets[i], err);
        states->wanted[position / 64] |= UINT64_C(1) << (position % 64);
    }
    cx_lattice_mark_ancestors(lattice, states->wanted);
    return CX_SUCCESS;
}

static cx_status set_priorities(cx_states *states, const cx_state_options *options, cx_err *err)
{
    const cx_lattice *lattice = states->lattice;
    states->options.priorities = NULL;
    states->options.priority_count = 0;
    if (options->priority_count == 0 || lattice->agents.count == 0)
        return CX_SUCCESS;
    states->agent_priority = cx_alloc_zeroed(states->alloc, lattice->agents.count, sizeof(double));
    if (states->agent_priority == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < options->priority_count; i++) {
        uint32_t of = cx_lattice_find_agent(lattice, options->priorities[i].agent);
        if (of != NO_AGENT)
            states->agent_priority[of] = options->priorities[i].priority;
    }
    return CX_SUCCESS;
}

static bool has_merges(const cx_states *states)
{
    const cx_lattice *lattice = states->lattice;
    for (uint32_t position = 0; position < lattice->order_count; position++)
        if (cx_states_has(states, position) &&
            node_at(lattice, lattice->order[position])->parent_count > 1)
            return true;
    return false;
}

static cx_status build_states(cx_states *states, cx_err *err)
{
    builder build;
    ancestry search;
    builder_init(&build, &states->arena, &states->forest, states->alloc);
    cx_ancestry_init(&search, states->lattice);
    cx_status status = CX_SUCCESS;
    if (!states->options.base_none && has_merges(states))
        CX_TRY_GOTO(status, cx_ancestry_span(&search, err));
    CX_TRY_GOTO(status, build_all(states, &build, &search, err));
done:
    cx_ancestry_done(&search);
    builder_done(&build);
    return status;
}

static cx_status open_states(const cx_lattice *lattice, const cx_state_options *given,
                             const cx_node *targets, size_t target_count, cx_states **out,
                             cx_err *err)
{
    const cx_state_options options =
        given == NULL ? (cx_state_options)CX_STATE_OPTIONS_INIT : *given;
    if (!lattice->keep_deltas)
        return cx_fail(err, CX_E_USAGE, "states need a lattice opened with keep_deltas");
    cx_states *states = cx_alloc_zeroed(lattice->alloc, 1, sizeof *states);
    if (states == NULL)
        return cx_fail_nomem(err);
    states->lattice = lattice;
    states->alloc = lattice->alloc;
    states->options = options;
    cx_arena_init(&states->arena, lattice->alloc, 0);
    states->forest = (cx_forest){&states->arena, lattice->seed, 0, NULL};

    cx_status status;
    CX_TRY_GOTO(status, set_priorities(states, &options, err));
    if (targets != NULL)
        CX_TRY_GOTO(status, mark_wanted(states, targets, target_count, err));
    size_t count = lattice->nodes.count == 0 ? 1 : lattice->nodes.count;
    states->items = cx_alloc_zeroed(states->alloc, count, sizeof *states->items);
    if (states->items == NULL) {
        status = cx_fail_nomem(err);
        goto done;
    }
    CX_TRY_GOTO(status, build_states(states, err));
    *out = states;
done:
    if (cx_failed(status))
        cx_states_close(states);
    return status;
}

cx_status cx_states_open(const cx_lattice *lattice, const cx_state_options *options,
                         cx_states **out, cx_err *err)
{
    return open_states(lattice, options, NULL, 0, out, err);
}

cx_status cx_states_open_for(const cx_lattice *lattice, const cx_state_options *options,
                             const cx_node *targets, size_t target_count, cx_states **out,
                             cx_err *err)
{
    static const cx_node none = CX_NODE_NONE;
    return open_states(lattice, options, target_count == 0 ? &none : targets, target_count, out,
                       err);
}

void cx_states_close(cx_states *states)
{
    if (states == NULL)
        return;
    const cx_alloc *alloc = states->alloc;
    size_t count = states->lattice->nodes.count;
    size_t words = ((size_t)states->lattice->order_count + 63) / 64;
    cx_alloc_free(alloc, states->items, (count == 0 ? 1 : count) * sizeof *states->items);
    cx_alloc_free(alloc, states->wanted, (words == 0 ? 1 : words) * sizeof *states->wanted);
    cx_alloc_free(alloc, states->agent_priority,
                  states->lattice->agents.count * sizeof *states->agent_priority);
    cx_vec_done(&states->merged, alloc);
    cx_arena_done(&states->arena);
    cx_alloc_free(alloc, states, sizeof *states);
}

/* --- for the test vectors ------------------------------------------------------------------ */

/* Canonical text of a value, kept in the arena. */
static cx_status store_text(builder *build, const cx_json *json, cx_str *out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, build->alloc);
    cx_status status = cx_json_write(&text, json, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(build->arena, cx_buf_str(&text));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

/* A state from its JSON, or from that of one section, which is put in the place of memory. */
static cx_status import_state(builder *build, const cx_json *json, bool whole, state *out,
                              cx_err *err)
{
    cx_str text;
    cx_value sections[SECTION_COUNT];
    CX_TRY(store_text(build, json, &text, err));
    CX_TRY(next_stamp(build->forest, err));
    *out = cx_state_empty();
    for (unsigned i = 0; i < SECTION_COUNT; i++)
        sections[i] = cx_state_section_value(out, (state_section)i);
    if (!whole) {
        CX_TRY(cx_patch_import(&build->patch, text, &sections[SECTION_MEMORY], err));
    } else {
        canon_walk walk = cx_canon_walk(text);
        cx_str name, member;
        while (cx_canon_member(&walk, &name, &member)) {
            state_section section = cx_state_section_named(name);
            if (section != SECTION_COUNT)
                CX_TRY(cx_patch_import(&build->patch, member, &sections[section], err));
        }
    }
    out->memory = value_root(sections[SECTION_MEMORY]);
    out->beliefs = value_root(sections[SECTION_BELIEFS]);
    return set_lists(build, out, sections[SECTION_GOALS], sections[SECTION_CONTEXT_STACK])
               ? CX_SUCCESS
               : cx_fail_nomem(err);
}

static double priority_in(const cx_merge_case *merge, cx_str agent_name)
{
    double priority = 0;
    for (size_t i = 0; i < merge->priority_count; i++)
        if (cx_str_eq(merge->priorities[i].agent, agent_name))
            priority = merge->priorities[i].priority;
    return priority;
}

static cx_status merge_case(builder *build, const cx_merge_case *merge, cx_buf *out, cx_err *err)
{
    for (size_t i = 0; i < merge->state_count; i++) {
        state s;
        double *priority = cx_vec_push(&build->priorities, build->alloc);
        CX_TRY(import_state(build, &merge->states[i], merge->whole_states, &s, err));
        if (priority == NULL || !add_state(build, false, s))
            return cx_fail_nomem(err);
        *priority = priority_in(merge, merge->agents[i]);
    }
    for (size_t i = 0; i < (merge->base_none ? 1 : merge->base_count); i++) {
        state s = cx_state_empty();
        if (!merge->base_none)
            CX_TRY(import_state(build, &merge->bases[i], merge->whole_states, &s, err));
        if (!add_state(build, true, s))
            return cx_fail_nomem(err);
    }
    build->merge.strategy = merge->strategy;
    build->merge.priorities = build->priorities.items;
    state result;
    CX_TRY(merge_states(build, &result, err));
    if (merge->whole_states)
        return cx_state_write(&build->work, &result, out, err);
    return cx_tree_write(&build->work, value_of_root(result.memory), out) ? cx_buf_check(out, err)
                                                                          : cx_fail_nomem(err);
}

cx_status cx_state_merge_json(const cx_merge_case *merge, const cx_alloc *alloc, cx_buf *out,
                              cx_err *err)
{
    cx_arena arena;
    builder build;
    cx_arena_init(&arena, alloc, 0);
    cx_forest forest = {&arena, cx_io_seed(cx_io_system()), 0, NULL};
    builder_init(&build, &arena, &forest, alloc);
    cx_status status = merge_case(&build, merge, out, err);
    builder_done(&build);
    cx_arena_done(&arena);
    return status;
}

static cx_status patch_case(builder *build, const cx_json *old, const cx_json *delta, cx_buf *out,
                            cx_err *err)
{
    state s;
    cx_str text;
    CX_TRY(import_state(build, old, false, &s, err));
    CX_TRY(store_text(build, delta, &text, err));
    CX_TRY(next_stamp(build->forest, err));
    CX_TRY(cx_patch_map(&build->patch, &s.memory, text, err));
    return cx_tree_write(&build->work, value_of_root(s.memory), out) ? cx_buf_check(out, err)
                                                                     : cx_fail_nomem(err);
}

cx_status cx_state_patch_json(const cx_json *old, const cx_json *delta, const cx_alloc *alloc,
                              cx_buf *out, cx_err *err)
{
    cx_arena arena;
    builder build;
    cx_arena_init(&arena, alloc, 0);
    cx_forest forest = {&arena, cx_io_seed(cx_io_system()), 0, NULL};
    builder_init(&build, &arena, &forest, alloc);
    cx_status status = patch_case(&build, old, delta, out, err);
    builder_done(&build);
    cx_arena_done(&arena);
    return status;
}
