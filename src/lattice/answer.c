/*
 * answer.c - what the answers of §8 share, and the answer to `state`.
 *
 *   {"base":"lca"|"none","conflicts":[pointer],"node":ID,"state":{...},"strategy":S,"verified":B}
 *
 * `conflicts` names every conflict marker (`__conflict` true with a `values` array), inside arrays
 * too, in order of the pointers' bytes.
 */
#include "lattice/answer.h"

#include "base/api.h"
#include "lattice/record.h"
#include "lattice/state.h"

/* --- pieces -------------------------------------------------------------------------------- */

void cx_answer_name(cx_buf *out, cx_str name)
{
    cx_shown_add(out, name);
}

void cx_answer_str(cx_buf *out, cx_str text)
{
    cx_json_write_str(out, text, CX_JSON_PY_COMPACT);
}

void cx_answer_node_name(cx_buf *out, const cx_lattice *lattice, cx_node which)
{
    char scratch[16];
    cx_answer_name(out, cx_lattice_label(lattice, which, scratch));
}

void cx_answer_node_str(cx_buf *out, const cx_lattice *lattice, cx_node which)
{
    char scratch[16];
    cx_answer_str(out, cx_lattice_label(lattice, which, scratch));
}

void cx_answer_end(cx_buf *out, const cx_answer_options *options)
{
    cx_buf_add_z(out, options->verified ? "\"verified\":true}\n" : "\"verified\":false}\n");
}

void cx_answer_verdict_line(cx_buf *out, const cx_answer_options *options)
{
    if (options->verified)
        cx_buf_add_z(out, "The lattice holds.\n");
    else if (options->colour)
        cx_buf_add_z(out, "\033[31mThe lattice does not hold:\033[0m run verify for its errors.\n");
    else
        cx_buf_add_z(out, "The lattice does not hold: run verify for its errors.\n");
}

void cx_answer_heading(cx_buf *out, const cx_answer_options *options, const char *text)
{
    if (options->colour)
        cx_buf_add_z(out, "\033[1m");
    cx_buf_add_z(out, text);
    if (options->colour)
        cx_buf_add_z(out, "\033[0m");
}

/* Reads back what we wrote; nothing of it is refused for its size. */
static cx_status read_back(cx_str canonical, const cx_alloc *alloc, cx_arena *arena, cx_json *out,
                           cx_err *err)
{
    const cx_json_limits limits = {UINT32_MAX, UINT32_MAX, 0, false};
    cx_json_parser parser;
    cx_json_parser_init(&parser, alloc, &limits);
    cx_status status = cx_json_parse(&parser, canonical, arena, out, err);
    cx_json_parser_done(&parser);
    return status;
}

cx_status cx_answer_pretty(cx_buf *out, cx_str canonical, const cx_alloc *alloc, cx_err *err)
{
    cx_arena arena;
    cx_json json;
    cx_arena_init(&arena, alloc, 0);
    cx_status status = read_back(canonical, alloc, &arena, &json, err);
    if (!cx_failed(status))
        status = cx_json_write_pretty(out, &json, 0, err);
    cx_arena_done(&arena);
    return status;
}

/* --- conflicts ----------------------------------------------------------------------------- */

static bool is_marker(const cx_json *json)
{
    return CX_JSON_GET(json, "__conflict") != NULL &&
           CX_JSON_GET(json, "__conflict")->type == CX_JSON_TRUE &&
           cx_json_get_typed(json, CX_STR("values"), CX_JSON_ARRAY) != NULL;
}

/* A container on the way through the state. */
typedef struct visit {
    const cx_json *container;
    uint32_t next;       /* item or member */
    size_t pointer_size; /* of the pointer that names it */
} visit;

typedef struct conflict_walk {
    const cx_alloc *alloc;
    cx_arena *arena;
    cx_buf pointer;
    CX_VEC(visit) open;
    CX_VEC(cx_str) found;
} conflict_walk;

/* Goes into a value when it is a container, and notes it when it is a marker. */
static bool visit_json(conflict_walk *walk, const cx_json *json)
{
    if (json->type != CX_JSON_OBJECT && json->type != CX_JSON_ARRAY)
        return true;
    visit *level = cx_vec_push(&walk->open, walk->alloc);
    if (level == NULL || walk->pointer.failed)
        return false;
    *level = (visit){json, 0, walk->pointer.size};
    if (json->type != CX_JSON_OBJECT || !is_marker(json))
        return true;
    cx_str *slot = cx_vec_push(&walk->found, walk->alloc);
    if (slot == NULL)
        return false;
    *slot = cx_arena_copy_str(walk->arena, cx_buf_str(&walk->pointer));
    return slot->data != NULL;
}

static bool visit_next(conflict_walk *walk)
{
    visit *level = &walk->open.items[walk->open.count - 1];
    walk->pointer.size = level->pointer_size;
    if (level->next == level->container->count) {
        walk->open.count--;
        return true;
    }
    uint32_t at = level->next++;
    if (level->container->type == CX_JSON_OBJECT) {
        const cx_json_member *member = &level->container->members[at];
        cx_json_pointer_add(&walk->pointer, cx_json_text(&member->name));
        return visit_json(walk, &member->value);
    }
    cx_buf_printf(&walk->pointer, "/%lu", (unsigned long)at);
    return visit_json(walk, &level->container->items[at]);
}

/* The pointers of all markers, into walk->found. */
static cx_status find_conflicts(conflict_walk *walk, cx_str canonical, cx_err *err)
{
    /* Most states have none, and then need not be read. */
    if (canonical.size == 0 ||
        memmem(canonical.data, canonical.size, "\"__conflict\":true", 17) == NULL)
        return CX_SUCCESS;
    cx_json json;
    CX_TRY(read_back(canonical, walk->alloc, walk->arena, &json, err));
    bool ok = visit_json(walk, &json);
    while (ok && walk->open.count != 0)
        ok = visit_next(walk);
    if (!ok)
        return cx_fail_nomem(err);
    cx_lattice_sort_ids(walk->found.items, walk->found.count);
    return CX_SUCCESS;
}

/* --- the answer ---------------------------------------------------------------------------- */

static const char *strategy_name(cx_merge_strategy strategy)
{
    static const char *const names[] = {"lww", "confidence", "policy", "manual"};
    return names[strategy];
}

static void state_json(cx_buf *out, const cx_states *states, cx_node which, cx_str canonical,
                       const conflict_walk *walk, const cx_answer_options *options)
{
    cx_buf_printf(out, "{\"base\":\"%s\",\"conflicts\":[",
                  states->options.base_none ? "none" : "lca");
    for (size_t i = 0; i < walk->found.count; i++) {
        if (i != 0)
            cx_buf_add_byte(out, ',');
        cx_answer_str(out, walk->found.items[i]);
    }
    cx_buf_add_z(out, "],\"node\":");
    cx_answer_node_str(out, states->lattice, which);
    cx_buf_add_z(out, ",\"state\":");
    cx_buf_add_str(out, canonical);
    cx_buf_printf(out, ",\"strategy\":\"%s\",", strategy_name(states->options.strategy));
    cx_answer_end(out, options);
}

static cx_status state_text(cx_buf *out, const cx_states *states, cx_node which, bool inherited,
                            cx_str canonical, const conflict_walk *walk,
                            const cx_answer_options *options, cx_err *err)
{
    const cx_lattice *lattice = states->lattice;
    cx_answer_heading(out, options, inherited ? "State before " : "State after ");
    cx_answer_node_name(out, lattice, which);
    cx_buf_add_z(out, " (");
    cx_answer_name(out, cx_lattice_agent_label(lattice, which));
    cx_buf_printf(out, "#%lld), merges: %s, base %s\n", (long long)node_at(lattice, which)->seq,
                  strategy_name(states->options.strategy),
                  states->options.base_none ? "none" : "lca");
    CX_TRY(cx_answer_pretty(out, canonical, states->alloc, err));
    cx_buf_add_byte(out, '\n');
    for (size_t i = 0; i < walk->found.count; i++) {
        cx_buf_add_z(out, "Conflict: ");
        cx_answer_name(out, walk->found.items[i]);
        cx_buf_add_byte(out, '\n');
    }
    cx_answer_verdict_line(out, options);
    return CX_SUCCESS;
}

cx_status cx_lattice_answer_state(cx_buf *out, const cx_states *states, cx_node which,
                                  bool inherited, const cx_answer_options *options, cx_err *err)
{
    cx_arena arena;
    cx_buf canonical;
    cx_arena_init(&arena, states->alloc, 0);
    cx_buf_init(&canonical, states->alloc);
    conflict_walk walk = {.alloc = states->alloc, .arena = &arena};
    cx_buf_init(&walk.pointer, states->alloc);
    cx_status status;
    CX_TRY_GOTO(status, cx_states_write(states, which, inherited, &canonical, err));
    CX_TRY_GOTO(status, find_conflicts(&walk, cx_buf_str(&canonical), err));
    if (options->json)
        state_json(out, states, which, cx_buf_str(&canonical), &walk, options);
    else
        CX_TRY_GOTO(status, state_text(out, states, which, inherited, cx_buf_str(&canonical), &walk,
                                       options, err));
    status = cx_buf_check(out, err);
done:
    cx_vec_done(&walk.open, states->alloc);
    cx_vec_done(&walk.found, states->alloc);
    cx_buf_done(&walk.pointer);
    cx_buf_done(&canonical);
    cx_arena_done(&arena);
    return status;
}
