/*
 * external_live.c - what an agent's hooks recorded, as nodes (docs/formats/live.md §7): next to
 * the nodes of a session's transcript, or alone.
 *
 *     next to it    a lane "hook" with a node for each decision, and "person" with answers and
 *                   limits; a decision descends from the step that makes the call
 *     alone         a lane for the agent and one for each of its sub-agents, with a node for each
 *                   entry, and "person"
 *
 *   N1  No node of a transcript changes: none descends from one of these.
 *   N2  The nodes are a function of the entries, of their number in the journal and of the
 *       transcript; erased entries have none.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/api.h"
#include "live/api.h"
#include "recorder/api.h"
#include "rules/api.h"
#include "server/feed/external_internal.h"

#define PERSON "person"
#define HOOK "hook"
#define MAIN "main"
#define PARENTS_MAX 4

typedef struct lane {
    cx_str name;
    int64_t next_seq;
    bool begun;
    char newest[CX_NODE_HASH_SIZE];
} lane;

/* Hashes of nodes by what they are about. */
typedef struct known_nodes {
    cx_map map; /* -> place in `hashes` */
    CX_VEC(cx_str) hashes;
} known_nodes;

typedef struct telling {
    cx_home *home;
    cx_str actor;
    bool alone;
    size_t max_bytes; /* of nodes; 0 = no limit */
    uint64_t from, until;
    cx_arena arena;   /* of the whole */
    cx_arena scratch; /* of one node */
    cx_buf preimage;
    cx_buf *out;
    CX_VEC(lane) lanes;
    known_nodes steps;   /* by call id: the transcript's node that makes the call */
    known_nodes decided; /* by call id or input: the decision */
    known_nodes entries; /* by number: approvals */
} telling;

/* --- what is known ---------------------------------------------------------------------------- */

static cx_status know(telling *t, known_nodes *nodes, cx_str key, cx_str hash, cx_err *err)
{
    uint64_t *place;
    bool is_new;
    cx_str name = cx_arena_copy_str(&t->arena, key), kept = cx_arena_copy_str(&t->arena, hash);
    if (name.data == NULL || kept.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_map_put(&nodes->map, name, &place, &is_new, err));
    cx_str *slot =
        is_new ? cx_vec_push(&nodes->hashes, t->arena.alloc) : &nodes->hashes.items[*place];
    if (slot == NULL)
        return cx_fail_nomem(err);
    if (is_new)
        *place = nodes->hashes.count - 1;
    *slot = kept;
    return CX_SUCCESS;
}

/* Data NULL when it is not known. */
static cx_str known(const known_nodes *nodes, cx_str key)
{
    const uint64_t *place = key.size == 0 ? NULL : cx_map_find(&nodes->map, key);
    return place == NULL ? (cx_str){NULL, 0} : nodes->hashes.items[*place];
}

/* The first node that makes a call counts. */
static cx_status know_step(telling *t, cx_str id, cx_str hash, cx_err *err)
{
    bool wanted = id.size != 0 && hash.size != 0 && known(&t->steps, id).data == NULL;
    return wanted ? know(t, &t->steps, id, hash, err) : CX_SUCCESS;
}

/* The calls that a node of the transcript makes. */
static cx_status know_calls(telling *t, cx_str line, cx_err *err)
{
    cx_json node;
    cx_err ignored;
    cx_status status = cx_run_json_read(line, line.size, &t->scratch, &node, &ignored);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    const cx_json *event = cx_failed(status) || node.type != CX_JSON_OBJECT
                               ? NULL
                               : cx_json_get_typed(&node, CX_STR("event"), CX_JSON_OBJECT);
    const cx_json *calls =
        event == NULL ? NULL : cx_json_get_typed(event, CX_STR("tool_calls"), CX_JSON_ARRAY);
    cx_str hash = event == NULL ? CX_STR("") : CX_JSON_GET_STR(&node, "node_id");
    for (uint32_t i = 0; calls != NULL && i < calls->count; i++)
        CX_TRY(know_step(t, CX_JSON_GET_STR(&calls->items[i], "call_id"), hash, err));
    /* A call alone is told in the event itself, as its answer is. */
    if (event != NULL && cx_str_is(CX_JSON_GET_STR(event, "kind"), "act"))
        CX_TRY(know_step(t, CX_JSON_GET_STR(event, "call_id"), hash, err));
    return CX_SUCCESS;
}

static cx_status read_transcript(telling *t, cx_str lines, cx_err *err)
{
    static const char wanted[] = "\"call_id\":";
    while (lines.size != 0) {
        const char *end = memchr(lines.data, '\n', lines.size);
        size_t size = end == NULL ? lines.size : (size_t)(end - lines.data);
        cx_arena_mark mark = cx_arena_mark_now(&t->scratch);
        if (memmem(lines.data, size, wanted, sizeof wanted - 1) != NULL)
            CX_TRY(know_calls(t, cx_str_from(lines.data, size), err));
        cx_arena_reset(&t->scratch, mark);
        size += end != NULL;
        lines = cx_str_from(lines.data + size, lines.size - size);
    }
    return CX_SUCCESS;
}

/* --- lanes ------------------------------------------------------------------------------------ */

static cx_status find_lane(telling *t, cx_str name, lane **out, cx_err *err)
{
    for (size_t i = 0; i < t->lanes.count; i++)
        if (cx_str_eq(t->lanes.items[i].name, name)) {
            *out = &t->lanes.items[i];
            return CX_SUCCESS;
        }
    cx_str kept = cx_arena_copy_str(&t->arena, name);
    lane *added = kept.data == NULL ? NULL : cx_vec_push(&t->lanes, t->arena.alloc);
    if (added == NULL)
        return cx_fail_nomem(err);
    *added = (lane){.name = kept};
    *out = added;
    return CX_SUCCESS;
}

/* Where an entry is told: a sub-agent's on its own lane. */
static cx_status lane_of(telling *t, cx_str kind, const cx_json *payload, lane **out, cx_err *err)
{
    const cx_json *subagent = cx_json_get_typed(payload, CX_STR("subagent"), CX_JSON_OBJECT);
    cx_str id = subagent == NULL ? CX_STR("") : CX_JSON_GET_STR(subagent, "id");
    if (cx_str_is(kind, "live.approval") || cx_str_is(kind, "live.limit"))
        return find_lane(t, CX_STR(PERSON), out, err);
    if (!t->alone)
        return find_lane(t, CX_STR(HOOK), out, err);
    if (id.size == 0)
        return find_lane(t, CX_STR(MAIN), out, err);
    cx_str name = cx_arena_printf(&t->scratch, "agent-%.*s", (int)id.size, id.data);
    return name.data == NULL ? cx_fail_nomem(err) : find_lane(t, name, out, err);
}

/* --- one node --------------------------------------------------------------------------------- */

typedef struct told_entry {
    const cx_entry *entry;
    const cx_json *payload;
    cx_str id, tool, input; /* of the call */
    cx_str key;             /* what the call is known by */
} told_entry;

static void add_parent(cx_str *parents, size_t *count, cx_str hash)
{
    for (size_t i = 0; i < *count; i++)
        if (cx_str_eq(parents[i], hash))
            return;
    if (hash.data != NULL && *count < PARENTS_MAX)
        parents[(*count)++] = hash;
}

static cx_str number_text(telling *t, const cx_json *number)
{
    uint64_t value;
    return number != NULL && cx_json_uint64(number, &value)
               ? cx_arena_printf(&t->scratch, "%llu", (unsigned long long)value)
               : (cx_str){NULL, 0};
}

/* The lane's newest node comes first (prev_hash is its hash). */
static void choose_parents(telling *t, const told_entry *e, const lane *own, cx_str *parents,
                           size_t *count)
{
    const lane *main_lane = t->alone && t->lanes.count != 0 ? &t->lanes.items[0] : NULL;
    *count = 0;
    if (own->begun)
        add_parent(parents, count, cx_str_from(own->newest, CX_NODE_HASH_SIZE));
    if (cx_kinds_is(e->entry->kind, CX_KIND_LIVE_DECISION)) {
        add_parent(parents, count, known(&t->steps, e->id));
        add_parent(parents, count,
                   known(&t->entries, number_text(t, cx_json_get(e->payload, CX_STR("approval")))));
    } else if (e->key.size != 0) {
        add_parent(parents, count, known(&t->decided, e->key));
    } else if (cx_kinds_is(e->entry->kind, CX_KIND_LIVE_APPROVAL)) {
        add_parent(parents, count, known(&t->decided, CX_JSON_GET_STR(e->payload, "input_sha256")));
    }
    /* A sub-agent's lane, and a person's, begin where the agent is. */
    if (*count == 0 && main_lane != NULL && main_lane != own && main_lane->begun)
        add_parent(parents, count, cx_str_from(main_lane->newest, CX_NODE_HASH_SIZE));
}

static void put_member(cx_json_list *list, const cx_json *payload, const char *name)
{
    const cx_json *member = cx_json_get(payload, cx_str_z(name));
    if (member != NULL)
        cx_json_put(list, name, *member);
}

/* What was decided, by which rule, and who answered. */
static void put_decision(telling *t, const told_entry *e, cx_str by, cx_json_list *list)
{
    static const char *const members[] = {"effects", "mode",    "reason", "rewrite",
                                          "rule",    "verdict", "would"};
    cx_json_list decision = cx_json_list_begin(&t->scratch);
    for (size_t i = 0; i < CX_COUNT_OF(members); i++)
        put_member(&decision, e->payload, members[i]);
    cx_json_put_maybe(&decision, "answered_by", by);
    cx_json_put_object(list, "decision", &decision);
}

/* The call as importers write it, with its input where the entry has it. */
static void put_calls(telling *t, const told_entry *e, cx_json_list *list)
{
    const cx_json *call = cx_json_get(e->payload, CX_STR("call"));
    cx_json_list calls = cx_json_list_begin(&t->scratch), one = cx_json_list_begin(&t->scratch);
    const cx_json *input = call == NULL ? NULL : cx_json_get(call, CX_STR("input"));
    if (input != NULL)
        cx_json_put(&one, "arguments", *input);
    cx_json_put_str(&one, "call_id", e->key);
    cx_json_put_str(&one, "tool", e->tool);
    cx_json_add_object(&calls, &one);
    cx_json_put_array(list, "tool_calls", &calls);
}

static void put_text(telling *t, cx_json_list *list, const char *format, ...) CX_PRINTF(3, 4);
static void put_text(telling *t, cx_json_list *list, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cx_str line = cx_str_z(text);
    line.size = cx_utf8_valid_prefix(line);
    cx_str kept = cx_arena_copy_str(&t->scratch, line);
    if (kept.data == NULL)
        list->failed = true;
    else
        cx_json_put_str(list, "text", kept);
}

static void put_decided(telling *t, const told_entry *e, cx_str by, cx_json_list *list)
{
    cx_str verdict = CX_JSON_GET_STR(e->payload, "verdict"),
           rule = CX_JSON_GET_STR(e->payload, "rule");
    cx_str reason = CX_JSON_GET_STR(e->payload, "reason");
    cx_json_put_z(list, "kind", t->alone ? "act" : "decision");
    cx_json_put_str(list, "tool", e->tool);
    cx_json_put_str(list, "call_id", e->key);
    put_decision(t, e, by, list);
    if (t->alone)
        put_calls(t, e, list);
    put_text(t, list, "%.*s by rule %.*s%s%.*s%s%.*s", (int)verdict.size, verdict.data,
             (int)rule.size, rule.data, reason.size == 0 ? "" : ": ",
             (int)(reason.size > 400 ? 400 : reason.size), reason.data,
             by.size == 0 ? "" : ", answered by ", (int)by.size, by.data);
}

static void put_rest(telling *t, const told_entry *e, cx_json_list *list)
{
    cx_str kind = e->entry->kind, by = CX_JSON_GET_STR(e->payload, "by");
    bool failed = cx_str_is(CX_JSON_GET_STR(e->payload, "outcome"), "failed");
    if (cx_kinds_is(kind, CX_KIND_LIVE_RESULT)) {
        cx_json_put_z(list, "kind", "tool_result");
        cx_json_put_str(list, "tool", e->tool);
        cx_json_put_str(list, "call_id", e->key);
        cx_json_put_z(list, "status", failed ? "error" : "ok");
        put_member(list, e->payload, "output_sha256");
        put_member(list, e->payload, "output_bytes");
    } else if (cx_kinds_is(kind, CX_KIND_LIVE_APPROVAL)) {
        const cx_json *allow = cx_json_get(e->payload, CX_STR("allow"));
        bool allowed = allow != NULL && allow->type == CX_JSON_TRUE;
        cx_json_put_z(list, "kind", "message");
        put_member(list, e->payload, "input_sha256");
        put_member(list, e->payload, "whole_session");
        cx_str tool = CX_JSON_GET_STR(e->payload, "tool");
        put_text(t, list, "%s a call of %.*s", allowed ? "approved" : "refused", (int)tool.size,
                 tool.data == NULL ? "" : tool.data);
        cx_json_put_bool(list, "allow", allowed);
        cx_json_put_str(list, "by", by);
    } else if (cx_kinds_is(kind, CX_KIND_LIVE_LIMIT)) {
        static const char *const members[] = {"mode",       "network",           "paths",
                                              "tools_deny", "forbidden_actions", "deny_unlisted",
                                              "contract"};
        cx_json_put_z(list, "kind", "config");
        cx_json_put_str(list, "by", by);
        for (size_t i = 0; i < CX_COUNT_OF(members); i++)
            put_member(list, e->payload, members[i]);
    } else {
        cx_json_put_z(list, "kind", cx_kinds_is(kind, CX_KIND_LIVE_START) ? "run" : "state");
        cx_json_put_str(list, "name", CX_JSON_GET_STR(e->payload, "event"));
        put_member(list, e->payload, "detail");
        put_member(list, e->payload, "policy");
        put_member(list, e->payload, "mode");
    }
}

static cx_status delta_of(telling *t, const told_entry *e, cx_str by, cx_json *out, cx_err *err)
{
    cx_str kind = e->entry->kind, name = CX_STR("event");
    cx_json value = cx_json_make_str(CX_JSON_GET_STR(e->payload, "event"));
    cx_json_list list = cx_json_list_begin(&t->scratch);
    bool decision = cx_kinds_is(kind, CX_KIND_LIVE_DECISION);
    if (decision) {
        put_member(&list, e->payload, "rule");
        put_member(&list, e->payload, "verdict");
        cx_json_put_maybe(&list, "answered_by", by);
    } else if (cx_kinds_is(kind, CX_KIND_LIVE_RESULT)) {
        put_member(&list, e->payload, "outcome");
    } else if (cx_kinds_is(kind, CX_KIND_LIVE_APPROVAL)) {
        put_member(&list, e->payload, "allow");
        name = CX_STR("answer");
    } else if (cx_kinds_is(kind, CX_KIND_LIVE_LIMIT)) {
        put_member(&list, e->payload, "network");
        put_member(&list, e->payload, "paths");
        name = CX_STR("limit");
    } else {
        return cx_node_memory(name, value, &t->scratch, out, err);
    }
    if (e->key.size != 0)
        name = cx_arena_printf(&t->scratch, "%s.%.*s", decision ? "decision" : "result",
                               (int)e->key.size, e->key.data);
    if (name.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    return cx_node_memory(name, value, &t->scratch, out, err);
}

/* Who gave the answer that a decision rests on. */
static cx_status answerer_of(telling *t, const told_entry *e, cx_str *out, cx_err *err)
{
    uint64_t seq;
    cx_entry_view view;
    cx_json approval;
    cx_err ignored;
    const cx_json *member = cx_json_get(e->payload, CX_STR("approval"));
    *out = CX_STR("");
    if (member == NULL || !cx_json_uint64(member, &seq))
        return CX_SUCCESS;
    cx_status status = cx_home_entry(t->home, t->actor, seq, &t->scratch, &view, &ignored);
    if (!cx_failed(status) && !view.payload_erased)
        status = cx_run_json_read(cx_bytes_str(view.payload), 0, &t->scratch, &approval, &ignored);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (!cx_failed(status) && !view.payload_erased && approval.type == CX_JSON_OBJECT)
        *out = CX_JSON_GET_STR(&approval, "by");
    return CX_SUCCESS;
}

static cx_status remember(telling *t, const told_entry *e, cx_str hash, cx_err *err)
{
    if (cx_kinds_is(e->entry->kind, CX_KIND_LIVE_DECISION)) {
        CX_TRY(know(t, &t->decided, e->key, hash, err));
        return e->input.size == 0 ? CX_SUCCESS : know(t, &t->decided, e->input, hash, err);
    }
    if (!cx_kinds_is(e->entry->kind, CX_KIND_LIVE_APPROVAL))
        return CX_SUCCESS;
    cx_str number = cx_arena_printf(&t->scratch, "%llu", (unsigned long long)e->entry->seq);
    return number.data == NULL ? cx_fail_nomem(err) : know(t, &t->entries, number, hash, err);
}

static cx_status write_node(telling *t, const told_entry *e, lane *own, cx_err *err)
{
    cx_str parents[PARENTS_MAX], by;
    char hash[CX_NODE_HASH_SIZE];
    cx_node_draft draft = {.agent_id = own->name, .seq = own->next_seq, .parents = parents};
    cx_json_list entry = cx_json_list_begin(&t->scratch);
    choose_parents(t, e, own, parents, &draft.parent_count);
    draft.prev_hash = draft.parent_count == 0 ? CX_STR(CX_NODE_GENESIS) : parents[0];
    draft.event = cx_json_list_begin(&t->scratch);
    CX_TRY(answerer_of(t, e, &by, err));
    if (cx_kinds_is(e->entry->kind, CX_KIND_LIVE_DECISION))
        put_decided(t, e, by, &draft.event);
    else
        put_rest(t, e, &draft.event);
    cx_json_put_z(&draft.event, "source", "hook");
    cx_json_put_str(&entry, "actor", t->actor);
    cx_json_put_uint(&entry, "seq", e->entry->seq);
    cx_json_put_object(&draft.event, "entry", &entry);
    CX_TRY(cx_node_seconds(e->entry->created_at_ns, &t->scratch, &draft.timestamp, err));
    CX_TRY(delta_of(t, e, by, &draft.delta, err));
    CX_TRY(cx_node_write(&draft, &t->scratch, &t->preimage, t->out, hash, err));
    memcpy(own->newest, hash, sizeof hash); /* not before: it is among the parents */
    own->begun = true;
    own->next_seq++;
    return remember(t, e, cx_str_from(own->newest, CX_NODE_HASH_SIZE), err);
}

/* --- all of them ------------------------------------------------------------------------------ */

static bool is_told(const telling *t, cx_str kind)
{
    if (!cx_str_starts(kind, CX_STR("live.")))
        return false;
    return t->alone || cx_kinds_is(kind, CX_KIND_LIVE_DECISION) ||
           cx_kinds_is(kind, CX_KIND_LIVE_APPROVAL) || cx_kinds_is(kind, CX_KIND_LIVE_LIMIT);
}

static cx_status tell_entry(telling *t, uint64_t seq, cx_err *err)
{
    cx_entry_view view;
    cx_json payload;
    cx_err ignored;
    lane *own;
    CX_TRY(cx_home_entry(t->home, t->actor, seq, &t->scratch, &view, err));
    if (!is_told(t, view.entry.kind) || view.payload_erased) /* N2 */
        return CX_SUCCESS;
    cx_status status =
        cx_run_json_read(cx_bytes_str(view.payload), 0, &t->scratch, &payload, &ignored);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status) || payload.type != CX_JSON_OBJECT)
        return CX_SUCCESS;
    told_entry e = {.entry = &view.entry, .payload = &payload};
    const cx_json *call = cx_json_get_typed(&payload, CX_STR("call"), CX_JSON_OBJECT);
    if (call != NULL) {
        e.id = CX_JSON_GET_STR(call, "id");
        e.tool = CX_JSON_GET_STR(call, "tool");
        e.input = CX_JSON_GET_STR(call, "input_sha256");
        /* Agents that send no id: the input is what both events have. */
        e.key = e.id.size != 0 ? e.id
                               : cx_str_from(e.input.data, e.input.size < 16 ? e.input.size : 16);
    }
    CX_TRY(lane_of(t, view.entry.kind, &payload, &own, err));
    return write_node(t, &e, own, err);
}

static cx_status tell_all(telling *t, cx_str transcript, cx_err *err)
{
    cx_actor_info info;
    lane *first;
    CX_TRY(cx_home_actor(t->home, t->actor, &info, err));
    CX_TRY(read_transcript(t, transcript, err));
    if (t->alone) /* the first lane is the agent's, also when a sub-agent comes first */
        CX_TRY(find_lane(t, CX_STR(MAIN), &first, err));
    for (uint64_t seq = t->from; seq < info.entry_count && seq < t->until; seq++) {
        cx_arena_mark mark = cx_arena_mark_now(&t->scratch);
        CX_TRY(tell_entry(t, seq, err));
        cx_arena_reset(&t->scratch, mark);
        if (t->max_bytes != 0 && t->out->size > t->max_bytes)
            return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", CX_NO_OFFSET,
                              "what hooks recorded of the session has more than %zu bytes",
                              t->max_bytes);
    }
    return cx_buf_check(t->out, err);
}

static void begin_known(known_nodes *nodes, const cx_alloc *alloc, uint64_t seed)
{
    cx_map_init(&nodes->map, alloc, seed);
}

static void end_known(known_nodes *nodes, const cx_alloc *alloc)
{
    cx_map_done(&nodes->map);
    cx_vec_done(&nodes->hashes, alloc);
}

cx_status cx_external_live_lines(cx_home *home, const cx_live_told *told, cx_buf *out, cx_err *err)
{
    const cx_alloc *alloc = out->alloc;
    uint64_t seed = cx_io_seed(cx_home_io(home));
    cx_buf lines; /* the transcript is read while it is here */
    telling t = {.home = home,
                 .actor = told->actor,
                 .alone = told->alone,
                 .max_bytes = told->max_bytes,
                 .from = told->from,
                 .until = told->until,
                 .out = &lines};
    cx_arena_init(&t.arena, alloc, 0);
    cx_arena_init(&t.scratch, alloc, 0);
    cx_buf_init(&t.preimage, alloc);
    cx_buf_init(&lines, alloc);
    begin_known(&t.steps, alloc, seed);
    begin_known(&t.decided, alloc, seed);
    begin_known(&t.entries, alloc, seed);
    cx_status status = tell_all(&t,
                                cx_str_from((const char *)out->data + told->transcript_from,
                                            out->size - told->transcript_from),
                                err);
    if (!cx_failed(status)) {
        cx_buf_add_str(out, cx_buf_str(&lines));
        status = cx_buf_check(out, err);
    }
    end_known(&t.steps, alloc);
    end_known(&t.decided, alloc);
    end_known(&t.entries, alloc);
    cx_vec_done(&t.lanes, alloc);
    cx_buf_done(&lines);
    cx_buf_done(&t.preimage);
    cx_arena_done(&t.scratch);
    cx_arena_done(&t.arena);
    return status;
}

/* --- entries of a time ------------------------------------------------------------------------ */

/* The first entry that is later than that time, of `count`: an actor's times never decrease. */
static cx_status first_after(cx_home *home, cx_str actor, int64_t t_ns, uint64_t count,
                             cx_arena *arena, uint64_t *out, cx_err *err)
{
    uint64_t low = 0, high = count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        cx_entry_view view;
        cx_arena_mark mark = cx_arena_mark_now(arena);
        CX_TRY(cx_home_entry(home, actor, middle, arena, &view, err));
        if (view.entry.created_at_ns <= t_ns)
            low = middle + 1;
        else
            high = middle;
        cx_arena_reset(arena, mark);
    }
    *out = low;
    return CX_SUCCESS;
}

cx_status cx_external_live_between(cx_home *home, cx_live_told *told, int64_t after_ns,
                                   int64_t until_ns, cx_err *err)
{
    cx_actor_info info;
    cx_arena arena;
    CX_TRY(cx_home_actor(home, told->actor, &info, err));
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status =
        first_after(home, told->actor, after_ns, info.entry_count, &arena, &told->from, err);
    if (!cx_failed(status))
        status =
            first_after(home, told->actor, until_ns, info.entry_count, &arena, &told->until, err);
    cx_arena_done(&arena);
    return status;
}
