/*
 * bridge.c - recorded traces as a lattice: one node a component, one branch an agent (trace.md §7,
 * DECISIONS 4).
 *
 * Nodes are a function of the ledger: the same entries give the same hashes, whoever asks,
 * whenever.
 *
 *     agent_id      agent/<agent_id_hash>, or agent/key:<key id>
 *     seq           counts the branch's nodes from 0
 *     timestamp     the component's, in seconds, exact
 *     event         {"__seal","component","component_index","entry","event_type","source",
 *                    "trace_id"}
 *     state_delta   {"memory":{<event_type>:<data>}}
 *     fork_type     injection where the conscience overrode an action, observation where it saw a
 *                   changed status or too deep a thought
 */
#include <stdio.h>

#include "base/alloc.h"
#include "crypto/digest.h"
#include "crypto/text.h"
#include "lattice/lattice.h"
#include "recorder/internal.h"

#define VERSION "2.0.0"
#define GENESIS "0000000000000000000000000000000000000000000000000000000000000000"
#define SECOND_NS INT64_C(1000000000)

typedef struct bridge {
    cx_home *home;
    cx_buf *out;
    cx_arena arena; /* of one entry */
    cx_buf preimage;
    cx_str agent_id; /* of the branch */
    cx_str actor;
    int64_t next_seq;
    char head[65]; /* hash of the branch's newest node, or GENESIS */
} bridge;

/* --- one node --------------------------------------------------------------------------------- */

static cx_str exact_seconds(int64_t ns, cx_arena *arena)
{
    char text[40];
    int64_t seconds = ns / SECOND_NS, rest = ns % SECOND_NS;
    int size = snprintf(text, sizeof text, "%lld", (long long)seconds);
    if (rest != 0) {
        size += snprintf(text + size, sizeof text - (size_t)size, ".%09lld", (long long)rest);
        while (text[size - 1] == '0')
            size--;
    }
    return cx_arena_copy_str(arena, cx_str_from(text, (size_t)size));
}

static bool says_true(const cx_json *data, cx_str name)
{
    const cx_json *value = cx_json_get(data, name);
    return value != NULL && value->type == CX_JSON_TRUE;
}

static cx_str fork_of(const cx_trace_component *component)
{
    if (component->event != CX_EVENT_CONSCIENCE_RESULT)
        return (cx_str){NULL, 0};
    if (says_true(component->data, CX_STR("action_was_overridden")))
        return CX_STR("injection");
    if (says_true(component->data, CX_STR("updated_status_detected")) ||
        says_true(component->data, CX_STR("thought_depth_triggered")))
        return CX_STR("observation");
    return (cx_str){NULL, 0};
}

static cx_status delta_of(const cx_trace_component *component, cx_arena *arena, cx_json *out,
                          cx_err *err)
{
    cx_json memory;
    cx_json_list list = cx_json_list_begin(arena);
    cx_json_list_put(&list, component->event_type, *component->data);
    CX_TRY(cx_json_list_end_object(&list, &memory, err));
    list = cx_json_list_begin(arena);
    cx_json_list_put(&list, CX_STR("memory"), memory);
    return cx_json_list_end_object(&list, out, err);
}

static cx_status hex_of(const cx_digest *digest, cx_arena *arena, cx_str *out, cx_err *err)
{
    char hex[64];
    cx_hex_encode(cx_bytes_from(digest->bytes, sizeof digest->bytes), hex);
    *out = cx_arena_copy_str(arena, cx_str_from(hex, sizeof hex));
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

typedef struct node {
    const cx_trace *trace;
    uint64_t entry;
    uint32_t index;
    const cx_trace_component *component;
    cx_str fork;
    cx_json timestamp, delta, event;
} node;

static cx_status event_of(bridge *b, node *n, cx_err *err)
{
    cx_json entry;
    cx_str seal;
    cx_buf_clear(&b->preimage);
    CX_TRY(cx_lattice_seal_preimage(&b->preimage, n->fork, &n->delta, &n->timestamp, err));
    const cx_digest digest = cx_digest_of(cx_buf_bytes(&b->preimage));
    CX_TRY(hex_of(&digest, &b->arena, &seal, err));
    cx_json_list list = cx_json_list_begin(&b->arena);
    cx_json_list_put(&list, CX_STR("actor"), cx_json_make_str(b->actor));
    cx_json_list_put(&list, CX_STR("seq"), cx_json_make_uint(&b->arena, n->entry));
    CX_TRY(cx_json_list_end_object(&list, &entry, err));
    list = cx_json_list_begin(&b->arena);
    cx_json_list_put(&list, CX_STR("__seal"), cx_json_make_str(seal));
    cx_json_list_put(&list, CX_STR("component"), cx_json_make_str(n->component->component_type));
    cx_json_list_put(&list, CX_STR("component_index"), cx_json_make_uint(&b->arena, n->index));
    cx_json_list_put(&list, CX_STR("entry"), entry);
    cx_json_list_put(&list, CX_STR("event_type"), cx_json_make_str(n->component->event_type));
    cx_json_list_put(&list, CX_STR("source"), cx_json_make_str(CX_STR("trace")));
    cx_json_list_put(&list, CX_STR("trace_id"), cx_json_make_str(n->trace->trace_id));
    return cx_json_list_end_object(&list, &n->event, err);
}

static cx_status write_line(bridge *b, const node *n, cx_str hash, cx_err *err)
{
    cx_buf *out = b->out;
    cx_buf_add_z(out, "{\"agent_id\":");
    cx_json_write_str(out, b->agent_id, CX_JSON_PY_COMPACT);
    cx_buf_add_z(out, ",\"event\":");
    CX_TRY(cx_json_write(out, &n->event, CX_JSON_PY_COMPACT, err));
    cx_buf_add_z(out, ",\"fork_type\":");
    if (n->fork.data == NULL)
        cx_buf_add_z(out, "null");
    else
        cx_json_write_str(out, n->fork, CX_JSON_PY_COMPACT);
    cx_buf_add_z(out, ",\"hash\":\"");
    cx_buf_add_str(out, hash);
    cx_buf_add_z(out, "\",\"node_id\":\"");
    cx_buf_add_str(out, hash);
    cx_buf_add_z(out, "\",\"parents\":[");
    if (b->next_seq != 0)
        cx_buf_printf(out, "\"%s\"", b->head);
    cx_buf_printf(out, "],\"prev_hash\":\"%s\",\"schema_version\":\"" VERSION "\",\"seq\":%lld",
                  b->head, (long long)b->next_seq);
    cx_buf_add_z(out, ",\"state_delta\":");
    CX_TRY(cx_json_write(out, &n->delta, CX_JSON_PY_COMPACT, err));
    cx_buf_add_z(out, ",\"timestamp\":");
    cx_buf_add_str(out, cx_json_text(&n->timestamp));
    cx_buf_add_z(out, "}\n");
    return cx_buf_check(out, err);
}

static cx_status add_node(bridge *b, const cx_trace *trace, uint64_t entry, uint32_t index,
                          cx_err *err)
{
    node n = {.trace = trace,
              .entry = entry,
              .index = index,
              .component = &trace->components[index],
              .fork = fork_of(&trace->components[index])};
    cx_str seconds = exact_seconds(n.component->timestamp_ns, &b->arena);
    if (seconds.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_json_parse_text(seconds, &b->arena, &n.timestamp, err));
    CX_TRY(delta_of(n.component, &b->arena, &n.delta, err));
    CX_TRY(event_of(b, &n, err));
    const cx_str parent = cx_str_from(b->head, 64);
    const cx_lattice_fields fields = {.prev_hash = parent,
                                      .event = &n.event,
                                      .seq = b->next_seq,
                                      .agent_id = b->agent_id,
                                      .schema_version = CX_STR(VERSION),
                                      .parents = &parent,
                                      .parent_count = b->next_seq != 0 ? 1 : 0};
    cx_str hash;
    cx_buf_clear(&b->preimage);
    CX_TRY(cx_lattice_preimage(&b->preimage, &fields, err));
    const cx_digest digest = cx_digest_of(cx_buf_bytes(&b->preimage));
    CX_TRY(hex_of(&digest, &b->arena, &hash, err));
    CX_TRY(write_line(b, &n, hash, err));
    memcpy(b->head, hash.data, 64);
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
    if (!cx_str_eq(entry.entry.kind, CX_KIND_RECEIVED) || entry.payload_erased)
        return CX_SUCCESS;
    CX_TRY(cx_trace_read_kept(entry.payload, &b->arena, &trace, &problem, err));
    for (uint32_t i = 0; i < trace.component_count; i++)
        CX_TRY(add_node(b, &trace, seq, i, err));
    return CX_SUCCESS;
}

static cx_status add_branch(bridge *b, const cx_actor_info *actor, cx_err *err)
{
    char name[6 + CX_ACTOR_SIZE_MAX];
    CX_ASSERT(actor->name.size <= CX_ACTOR_SIZE_MAX);
    memcpy(name, "agent/", 6);
    memcpy(name + 6, actor->name.data, actor->name.size);
    b->agent_id = cx_str_from(name, 6 + actor->name.size);
    b->actor = actor->name;
    b->next_seq = 0;
    memcpy(b->head, GENESIS, sizeof b->head);
    cx_arena_mark mark = cx_arena_mark_now(&b->arena);
    for (uint64_t seq = 0; seq < actor->entry_count; seq++) {
        CX_TRY(add_entry(b, seq, err));
        cx_arena_reset(&b->arena, mark);
    }
    return CX_SUCCESS;
}

static cx_status add_branches(bridge *b, cx_str branch, cx_arena *arena, cx_err *err)
{
    const cx_actor_info *actors;
    size_t count = 0;
    CX_TRY(cx_home_actors(b->home, arena, &actors, &count, err));
    for (size_t i = 0; i < count; i++)
        if (branch.data == NULL ||
            (cx_str_starts(branch, CX_STR("agent/")) &&
             cx_str_eq(actors[i].name, cx_str_from(branch.data + 6, branch.size - 6))))
            CX_TRY(add_branch(b, &actors[i], err));
    return CX_SUCCESS;
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
                            branch.data == NULL ? "the home holds no recorded traces%.*s"
                                                : "the home has no branch %.*s",
                            (int)branch.size, branch.data == NULL ? "" : branch.data);
    return status;
}

cx_status cx_recorder_lattice(cx_home *home, cx_str branch, const cx_lattice_options *options,
                              cx_buf *lines, cx_lattice **out, cx_err *err)
{
    CX_TRY(cx_recorder_lattice_lines(home, branch, lines, err));
    return cx_lattice_open_bytes(cx_buf_bytes(lines), options, out, err);
}
