/*
 * bridge.c - recorded traces as a lattice: one node a component, one branch an agent (trace.md §7,
 * decision 0017); recorded steps (step.h) are nodes already.
 *
 * Nodes are a function of the ledger: the same entries always give the same hashes.
 *
 *     agent_id      agent/<agent_id_hash>, or agent/key:<key id>
 *     seq           counts the branch's nodes from 0
 *     timestamp     the component's, in seconds, exact
 *     event         {"__seal","component","component_index","entry","event_type","source",
 *                    "trace_id"}
 *     state_delta   {"memory":{<event_type>:<data>}}
 *     fork_type     natural where the conscience overrode an action (a decision that diverges;
 *                   nothing came from outside), observation where it detected a changed status or
 *                   excessive depth of thought
 */
#include "base/api.h"
#include "lattice/api.h"
#include "recorder/internal.h"
#include "recorder/node.h"
#include "recorder/step.h"

typedef struct bridge {
    cx_home *home;
    cx_buf *out;
    cx_arena arena; /* of one entry */
    cx_buf preimage;
    char name[6 + CX_ACTOR_SIZE_MAX]; /* "agent/" and whose branch it is */
    cx_str agent_id;                  /* all of it that is used */
    cx_str actor;
    int64_t next_seq;
    char head[CX_NODE_HASH_SIZE + 1]; /* hash of the branch's newest node, or the genesis word */
} bridge;

/* --- one node --------------------------------------------------------------------------------- */

static bool is_true_member(const cx_json *data, cx_str name)
{
    const cx_json *value = cx_json_get(data, name);
    return value != NULL && value->type == CX_JSON_TRUE;
}

static cx_str fork_kind_of(const cx_trace_component *component)
{
    if (component->event != CX_EVENT_CONSCIENCE_RESULT)
        return (cx_str){NULL, 0};
    if (is_true_member(component->data, CX_STR("action_was_overridden")))
        return CX_STR("natural");
    if (is_true_member(component->data, CX_STR("updated_status_detected")) ||
        is_true_member(component->data, CX_STR("thought_depth_triggered")))
        return CX_STR("observation");
    return (cx_str){NULL, 0};
}

static cx_status begin_event(bridge *b, const cx_trace *trace, uint64_t entry, uint32_t index,
                             cx_json_list *list, cx_err *err)
{
    const cx_trace_component *component = &trace->components[index];
    cx_json where;
    *list = cx_json_list_begin(&b->arena);
    cx_json_list_put(list, CX_STR("actor"), cx_json_make_str(b->actor));
    cx_json_list_put(list, CX_STR("seq"), cx_json_make_uint(&b->arena, entry));
    CX_TRY(cx_json_list_end_object(list, &where, err));
    *list = cx_json_list_begin(&b->arena);
    cx_json_list_put(list, CX_STR("component"), cx_json_make_str(component->component_type));
    cx_json_list_put(list, CX_STR("component_index"), cx_json_make_uint(&b->arena, index));
    cx_json_list_put(list, CX_STR("entry"), where);
    cx_json_list_put(list, CX_STR("event_type"), cx_json_make_str(component->event_type));
    cx_json_list_put(list, CX_STR("source"), cx_json_make_str(CX_STR("trace")));
    cx_json_list_put(list, CX_STR("trace_id"), cx_json_make_str(trace->trace_id));
    return CX_SUCCESS;
}

static cx_status add_node(bridge *b, const cx_trace *trace, uint64_t entry, uint32_t index,
                          cx_err *err)
{
    const cx_trace_component *component = &trace->components[index];
    const cx_str parent = cx_str_from(b->head, CX_NODE_HASH_SIZE);
    cx_node_draft draft = {.agent_id = b->agent_id,
                           .seq = b->next_seq,
                           .fork = fork_kind_of(component),
                           .prev_hash = parent,
                           .parents = &parent,
                           .parent_count = b->next_seq != 0 ? 1 : 0};
    char hash[CX_NODE_HASH_SIZE];
    CX_TRY(cx_node_seconds(component->timestamp_ns, &b->arena, &draft.timestamp, err));
    CX_TRY(cx_node_memory(component->event_type, *component->data, &b->arena, &draft.delta, err));
    CX_TRY(begin_event(b, trace, entry, index, &draft.event, err));
    CX_TRY(cx_node_write(&draft, &b->arena, &b->preimage, b->out, hash, err));
    memcpy(b->head, hash, sizeof hash);
    b->next_seq++;
    return CX_SUCCESS;
}

/* --- branches --------------------------------------------------------------------------------- */

static cx_status add_entry(bridge *b, uint64_t seq, cx_err *err)
{
    cx_entry_view entry;
    cx_trace trace;
    cx_trace_problem problem;
    CX_TRY(cx_home_entry(b->home, b->actor, seq, &b->arena, &entry, err));
    if (cx_str_eq(entry.entry.kind, CX_KIND_NODE) && !entry.payload_erased) {
        cx_buf_add(b->out, entry.payload.data, entry.payload.size);
        cx_buf_add_byte(b->out, '\n');
        return cx_buf_check(b->out, err);
    }
    if (!cx_str_eq(entry.entry.kind, CX_KIND_RECEIVED) || entry.payload_erased)
        return CX_SUCCESS;
    CX_TRY(cx_trace_read_stored(entry.payload, &b->arena, &trace, &problem, err));
    for (uint32_t i = 0; i < trace.component_count; i++)
        CX_TRY(add_node(b, &trace, seq, i, err));
    return CX_SUCCESS;
}

static cx_status add_branch(bridge *b, const cx_actor_info *actor, cx_err *err)
{
    CX_ASSERT(actor->name.size <= CX_ACTOR_SIZE_MAX);
    memcpy(b->name, "agent/", 6);
    memcpy(b->name + 6, actor->name.data, actor->name.size);
    b->agent_id = cx_str_from(b->name, 6 + actor->name.size);
    b->actor = actor->name;
    b->next_seq = 0;
    memcpy(b->head, CX_NODE_GENESIS, sizeof b->head);
    cx_arena_mark mark = cx_arena_mark_now(&b->arena);
    for (uint64_t seq = 0; seq < actor->entry_count; seq++) {
        CX_TRY(add_entry(b, seq, err));
        cx_arena_reset(&b->arena, mark);
    }
    return CX_SUCCESS;
}

static cx_status add_with_followed(bridge *b, const cx_actor_info *actor, cx_err *err)
{
    CX_TRY(add_branch(b, actor, err));
    return cx_recorder_steps_follow(b->home, actor->name, b->out, err);
}

/* All journals, or those of two names, in the order of their first entries. */
static cx_status walk_branches(bridge *b, const cx_str *names, cx_err *err)
{
    const cx_actor_info *actor = NULL;
    cx_actor_walk walk;
    cx_actor_walk_begin(&walk, b->home);
    cx_status status = cx_actor_walk_next(&walk, &actor, err);
    while (!cx_failed(status) && actor != NULL) {
        if (names == NULL)
            status = add_branch(b, actor, err);
        else if (cx_str_eq(actor->name, names[0]) || cx_str_eq(actor->name, names[1]))
            status = add_with_followed(b, actor, err);
        if (!cx_failed(status))
            status = cx_actor_walk_next(&walk, &actor, err);
    }
    cx_actor_walk_end(&walk);
    return status;
}

/* Traces are in the journal of the agent's name, steps in that of the name escaped; they are one
 * but for names that no trace has. */
static cx_status add_branches(bridge *b, cx_str branch, cx_arena *arena, cx_err *err)
{
    cx_str names[2] = {{NULL, 0}, {NULL, 0}};
    cx_actor_info infos[2];
    size_t found = 0;
    if (branch.data == NULL)
        return walk_branches(b, NULL, err);
    if (!cx_str_starts(branch, CX_STR("agent/")))
        return CX_SUCCESS;
    names[0] = cx_str_from(branch.data + 6, branch.size - 6);
    CX_TRY(cx_step_actor(names[0], arena, &names[1], err));
    for (size_t i = 0; i < 2; i++) {
        if (i == 1 && cx_str_eq(names[0], names[1]))
            break;
        cx_status status = cx_home_actor(b->home, names[i], &infos[found], err);
        if (cx_failed(status) && status.code != CX_E_NOT_FOUND)
            return status;
        found += !cx_failed(status);
    }
    if (found == 2)
        return walk_branches(b, names, err);
    return found == 1 ? add_with_followed(b, &infos[0], err) : CX_SUCCESS;
}

cx_status cx_recorder_lattice_lines(cx_home *home, cx_str branch, cx_buf *out, cx_err *err)
{
    cx_arena arena;
    bridge b = {.home = home, .out = out};
    size_t before = out->size;
    cx_arena_init(&arena, out->alloc, 0);
    cx_arena_init(&b.arena, out->alloc, 0);
    cx_buf_init(&b.preimage, out->alloc);
    cx_status status = add_branches(&b, branch, &arena, err);
    cx_buf_done(&b.preimage);
    cx_arena_done(&b.arena);
    cx_arena_done(&arena);
    if (!cx_failed(status) && out->size == before)
        status = cx_fail_at(err, CX_E_NOT_FOUND, "NoBranch", CX_NO_OFFSET,
                            branch.data == NULL
                                ? "the data directory has no recorded traces or steps%.*s"
                                : "the data directory has no branch %.*s",
                            (int)branch.size, branch.data == NULL ? "" : branch.data);
    return status;
}

cx_status cx_recorder_lattice(cx_home *home, cx_str branch, const cx_lattice_options *options,
                              cx_buf *lines, cx_lattice **out, cx_err *err)
{
    CX_TRY(cx_recorder_lattice_lines(home, branch, lines, err));
    return cx_lattice_open_bytes(cx_buf_bytes(lines), options, out, err);
}
