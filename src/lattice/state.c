/*
 * state.c - asking for states: sections, whole states, places in them.
 *
 * A node's state is three pointers into shared structure.  Inherited states are kept for merges
 * only; elsewhere they are the parent's.  Everything lives in one arena and never changes once
 * built (build.c), so asking needs no locks.
 */
#include "lattice/state.h"

static const state_lists empty_lists = {{"[]", 2}, {"[]", 2}};

state cx_state_empty(void)
{
    return (state){NULL, NULL, &empty_lists};
}

cx_str cx_state_section_name(state_section section)
{
    static const char *const names[SECTION_COUNT] = {"beliefs", "context_stack", "goals", "memory"};
    return cx_str_z(names[section]);
}

cx_value cx_state_section_value(const state *s, state_section section)
{
    switch (section) {
    case SECTION_BELIEFS: return value_of_root(s->beliefs);
    case SECTION_CONTEXT_STACK: return s->lists->context_stack;
    case SECTION_GOALS: return s->lists->goals;
    default: return value_of_root(s->memory);
    }
}

state_section cx_state_section_named(cx_str name)
{
    for (unsigned i = 0; i < SECTION_COUNT; i++)
        if (cx_str_eq(name, cx_state_section_name((state_section)i)))
            return (state_section)i;
    return SECTION_COUNT;
}

/* --- asking -------------------------------------------------------------------------------- */

cx_status cx_states_no_place(const cx_lattice *lattice, cx_node which, cx_err *err)
{
    char scratch[16];
    cx_str label = cx_lattice_label(lattice, which, scratch);
    const char *why = in_graph(node_at(lattice, which))
                          ? "is on a cycle or below one"
                          : "is unusable or has the id of an earlier node";
    return cx_fail(err, CX_E_FORMAT, "node '%.*s' has no place in time: it %s",
                   (int)(label.size > 120 ? 120 : label.size), label.data, why);
}

static state inherited_of(const cx_states *states, const node *n, uint32_t position)
{
    if (n->parent_count == 0)
        return cx_state_empty();
    if (n->parent_count == 1)
        return *cx_states_at(states, node_parents(states->lattice, n)[0]);
    size_t low = 0, high = states->merged.count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (states->merged.items[middle].position <= position)
            low = middle;
        else
            high = middle;
    }
    CX_ASSERT(states->merged.items[low].position == position);
    return states->merged.items[low].s;
}

cx_status cx_states_get(const cx_states *states, cx_node which, bool inherited, state *out,
                        cx_err *err)
{
    const cx_lattice *lattice = states->lattice;
    if (which >= lattice->nodes.count)
        return cx_fail(err, CX_E_NOT_FOUND, "no node has the number %lu", (unsigned long)which);
    /* Most states that are asked for are there: then nothing else is looked at. */
    if (states->items[which].lists != NULL && !inherited) {
        *out = states->items[which];
        return CX_SUCCESS;
    }
    uint32_t position = lattice->position[which];
    if (position == UINT32_MAX)
        return cx_states_no_place(lattice, which, err);
    if (!cx_states_has(states, position)) {
        cx_str id = node_id(node_at(lattice, which));
        return cx_fail(err, CX_E_USAGE, "the state of node '%.*s' was not prepared",
                       (int)(id.size > 120 ? 120 : id.size), id.data);
    }
    *out =
        inherited ? inherited_of(states, node_at(lattice, which), position) : states->items[which];
    return CX_SUCCESS;
}

cx_status cx_state_write(tree_work *work, const state *s, cx_buf *out, cx_err *err)
{
    /* They lie apart: one is on its way while another is waited for. */
    cx_tree_expect(s->beliefs);
    cx_tree_expect(s->memory);
    __builtin_prefetch(s->lists);
    for (unsigned i = 0; i < SECTION_COUNT; i++) {
        cx_buf_add_z(out, i == 0 ? "{\"" : ",\"");
        cx_buf_add_str(out, cx_state_section_name((state_section)i));
        cx_buf_add_z(out, "\":");
        if (!cx_tree_write(work, cx_state_section_value(s, (state_section)i), out))
            return cx_fail_nomem(err);
    }
    cx_buf_add_byte(out, '}');
    return cx_buf_check(out, err);
}

cx_status cx_states_write(const cx_states *states, cx_node which, bool inherited, cx_buf *out,
                          cx_err *err)
{
    state s;
    CX_TRY(cx_states_get(states, which, inherited, &s, err));
    tree_work work;
    cx_tree_work_init(&work, states->alloc);
    cx_status status = cx_state_write(&work, &s, out, err);
    cx_tree_work_done(&work);
    return status;
}

bool cx_delta_names(cx_str delta, state_section section, cx_str spelled_key)
{
    canon_walk walk = cx_canon_walk(delta);
    cx_str name, text;
    while (cx_canon_member(&walk, &name, &text)) {
        if (cx_state_section_named(name) != section)
            continue;
        canon_walk members = cx_canon_walk(text);
        while (cx_canon_member(&members, &name, &text))
            if (cx_str_eq(name, spelled_key))
                return true;
        return false;
    }
    return false;
}

/* --- pointers ------------------------------------------------------------------------------ */

/* Takes one reference token off a pointer and decodes it (RFC 6901 §4). */
static cx_status next_token(cx_str *pointer, cx_arena *arena, cx_str *out, cx_err *err)
{
    const char *start = pointer->data + 1;
    const char *slash = memchr(start, '/', pointer->size - 1);
    size_t size = slash == NULL ? pointer->size - 1 : (size_t)(slash - start);
    *pointer = cx_str_from(start + size, pointer->size - 1 - size);
    *out = cx_str_from(start, size);
    if (memchr(start, '~', size) == NULL)
        return CX_SUCCESS;
    char *token = CX_ARENA_ARRAY(arena, char, size);
    if (token == NULL)
        return cx_fail_nomem(err);
    size_t used = 0;
    for (size_t i = 0; i < size; i++) {
        char c = start[i];
        if (c == '~') {
            if (++i == size || (start[i] != '0' && start[i] != '1'))
                return cx_fail(err, CX_E_USAGE,
                               "a pointer has '~' not followed by 0 or 1 (RFC 6901)");
            c = start[i] == '0' ? '~' : '/';
        }
        token[used++] = c;
    }
    *out = cx_str_from(token, used);
    return CX_SUCCESS;
}

cx_status cx_state_find(const state *s, cx_str pointer, cx_arena *arena, state_spot *out,
                        cx_err *err)
{
    *out = (state_spot){.is_there = true, .is_whole = pointer.size == 0};
    if (pointer.size == 0)
        return CX_SUCCESS;
    if (pointer.data[0] != '/')
        return cx_fail(err, CX_E_USAGE, "a pointer starts with '/' (RFC 6901): found '%.*s'",
                       (int)(pointer.size > 80 ? 80 : pointer.size), pointer.data);
    cx_str token;
    CX_TRY(next_token(&pointer, arena, &token, err));
    state_section section = cx_state_section_named(token);
    if (section == SECTION_COUNT)
        out->is_there = false;
    else
        out->v = cx_state_section_value(s, section);
    while (pointer.size != 0) {
        if (out->is_there && !value_is_map(out->v)) {
            out->inside = pointer;
            out->is_there = *(const char *)out->v.data == '[';
            return CX_SUCCESS;
        }
        CX_TRY(next_token(&pointer, arena, &token, err));
        if (out->is_there)
            out->v = tree_value(cx_tree_find(out->v.data, token));
        out->is_there = out->is_there && !value_is_absent(out->v);
    }
    return CX_SUCCESS;
}

static cx_status write_inside(const state_spot *spot, cx_arena *arena, cx_buf *out, cx_err *err)
{
    const cx_json_limits limits = {UINT32_MAX, UINT32_MAX, 0, false};
    cx_json_parser parser;
    cx_json array;
    cx_json_parser_init(&parser, out->alloc, &limits);
    cx_status status = cx_json_parse(&parser, value_text(spot->v), arena, &array, err);
    cx_json_parser_done(&parser);
    CX_TRY(status);
    const cx_json *held = cx_json_pointer(&array, spot->inside);
    if (held == NULL)
        return cx_fail(err, CX_E_NOT_FOUND, "nothing is there");
    return cx_json_write(out, held, CX_JSON_PY_COMPACT, err);
}

cx_status cx_state_write_spot(tree_work *work, const state *s, const state_spot *spot,
                              cx_arena *arena, cx_buf *out, cx_err *err)
{
    if (spot->is_whole)
        return cx_state_write(work, s, out, err);
    if (spot->inside.size != 0)
        return write_inside(spot, arena, out, err);
    return cx_tree_write(work, spot->v, out) ? cx_buf_check(out, err) : cx_fail_nomem(err);
}

cx_status cx_states_write_at(const cx_states *states, cx_node which, cx_str pointer, cx_buf *out,
                             cx_err *err)
{
    state s;
    state_spot spot;
    CX_TRY(cx_states_get(states, which, false, &s, err));
    cx_arena arena;
    tree_work work;
    cx_arena_init(&arena, states->alloc, 0);
    cx_tree_work_init(&work, states->alloc);
    cx_status status;
    CX_TRY_GOTO(status, cx_state_find(&s, pointer, &arena, &spot, err));
    if (spot.is_there)
        CX_TRY_GOTO(status, cx_state_write_spot(&work, &s, &spot, &arena, out, err));
    else
        status = cx_fail(err, CX_E_NOT_FOUND, "the state has nothing at '%.*s'",
                         (int)(pointer.size > 120 ? 120 : pointer.size), pointer.data);
done:
    cx_tree_work_done(&work);
    cx_arena_done(&arena);
    return status;
}
