/*
 * show.c - what a session did, as JSON.
 */
#include "live/show.h"

#include <string.h>

#include "live/session_parts.h"
#include "rules/api.h"

static void put_time(cx_json_list *object, const char *name, int64_t ns)
{
    char text[28];
    cx_run_time_text(ns, text);
    cx_str kept = cx_arena_copy_str(object->arena, cx_str_z(text));
    if (kept.data == NULL)
        object->failed = true;
    else
        cx_json_put_str(object, name, kept);
}

void cx_live_session_put(cx_json_list *object, const cx_live_session *session)
{
    cx_json_put_str(object, "actor", session->actor);
    cx_json_put_str(object, "agent", session->agent);
    cx_json_put_str(object, "session", session->session);
    cx_json_put_str(object, "cwd", session->cwd);
    cx_json_put_maybe(object, "transcript", session->transcript);
    cx_json_put_z(object, "mode", cx_live_mode_name(session->mode));
    cx_json_put_bool(object, "ended", session->ended);
    cx_json_put_uint(object, "calls", session->calls);
    cx_json_put_uint(object, "denied", session->denied);
    cx_json_put_uint(object, "asked", session->asked);
    cx_json_put_str(object, "policy_from", session->policy_from);
    cx_json_put_maybe(object, "contract", session->contract_task);
    put_time(object, "started", session->started_ns);
    put_time(object, "latest", session->latest_ns);
}

/* --- entries ---------------------------------------------------------------------------------- */

typedef struct known_result {
    cx_str id, tool, input; /* of the call; id empty = the agent sends none */
    uint64_t seq;
    int64_t at_ns;
    const cx_json *payload;
    bool used;
} known_result;

typedef struct showing {
    cx_home *home;
    cx_str actor;
    cx_arena *arena;
    known_result *results; /* those after the entry that is looked at, newest first */
    size_t result_count;
} showing;

/* False: the entry is none of a session, or cannot be shown. */
static cx_status read_entry(showing *s, uint64_t seq, cx_entry_view *out, cx_json **out_payload,
                            cx_err *err)
{
    cx_err ignored;
    *out_payload = NULL;
    CX_TRY(cx_home_entry(s->home, s->actor, seq, s->arena, out, err));
    if (!cx_str_starts(out->entry.kind, CX_STR("live.")) || out->payload_erased)
        return CX_SUCCESS;
    cx_json *payload = CX_ARENA_NEW(s->arena, cx_json);
    if (payload == NULL)
        return cx_fail_nomem(err);
    cx_status status = cx_run_json_read(cx_bytes_str(out->payload), 0, s->arena, payload, &ignored);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (!cx_failed(status) && payload->type == CX_JSON_OBJECT)
        *out_payload = payload;
    return CX_SUCCESS;
}

static cx_str call_text(const cx_json *payload, const char *name)
{
    const cx_json *call = cx_json_get_typed(payload, CX_STR("call"), CX_JSON_OBJECT);
    return call == NULL ? (cx_str){NULL, 0} : cx_json_get_str(call, cx_str_z(name));
}

static void keep_result(showing *s, const cx_entry_view *entry, const cx_json *payload)
{
    s->results[s->result_count++] = (known_result){.id = call_text(payload, "id"),
                                                   .tool = call_text(payload, "tool"),
                                                   .input = call_text(payload, "input_sha256"),
                                                   .seq = entry->entry.seq,
                                                   .at_ns = entry->entry.created_at_ns,
                                                   .payload = payload};
}

/* The oldest result after a decision that is of its call. */
static const known_result *find_result(showing *s, const cx_json *payload)
{
    cx_str id = call_text(payload, "id"), tool = call_text(payload, "tool");
    cx_str input = call_text(payload, "input_sha256");
    for (size_t i = s->result_count; i-- > 0;) {
        known_result *result = &s->results[i];
        bool same = id.size != 0 ? cx_str_eq(result->id, id) && cx_str_eq(result->tool, tool)
                                 : result->id.size == 0 && cx_str_eq(result->input, input);
        if (!same || result->used)
            continue;
        result->used = true;
        return result;
    }
    return NULL;
}

static void put_result(cx_json_list *object, const known_result *result)
{
    cx_json_list value = cx_json_list_begin(object->arena);
    if (result == NULL) {
        cx_json_put_null(object, "result");
        return;
    }
    const cx_json *size = cx_json_get(result->payload, CX_STR("output_bytes"));
    cx_json_put_str(&value, "outcome", CX_JSON_GET_STR(result->payload, "outcome"));
    cx_json_put_maybe(&value, "output_sha256", CX_JSON_GET_STR(result->payload, "output_sha256"));
    if (size != NULL)
        cx_json_put(&value, "output_bytes", *size);
    else
        cx_json_put_uint(&value, "output_bytes", 0);
    cx_json_put_uint(&value, "seq", result->seq);
    put_time(&value, "time", result->at_ns);
    cx_json_put_object(object, "result", &value);
}

static cx_status put_approver(showing *s, cx_json_list *object, const cx_json *payload, cx_err *err)
{
    uint64_t seq;
    cx_entry_view entry;
    cx_json *approval = NULL;
    const cx_json *member = cx_json_get(payload, CX_STR("approval"));
    if (member != NULL && cx_json_uint64(member, &seq)) {
        cx_status status = read_entry(s, seq, &entry, &approval, err);
        if (status.code != CX_E_NOT_FOUND)
            CX_TRY(status);
    }
    cx_json_put_maybe(object, "approved_by",
                      approval == NULL ? CX_STR("") : CX_JSON_GET_STR(approval, "by"));
    return CX_SUCCESS;
}

/* A call's input is left out when it is long. */
static cx_json shown_call(showing *s, const cx_json *call, bool *failed)
{
    uint64_t size = 0;
    const cx_json *bytes = cx_json_get(call, CX_STR("input_bytes"));
    cx_json_list object = cx_json_list_begin(s->arena);
    cx_json value = *call;
    cx_err ignored;
    if (call->type != CX_JSON_OBJECT || bytes == NULL || !cx_json_uint64(bytes, &size) ||
        size <= CX_LIVE_SHOWN_INPUT_MAX)
        return value;
    for (uint32_t i = 0; i < call->count; i++) {
        cx_str name = cx_json_text(&call->members[i].name);
        if (cx_str_is(name, "input"))
            cx_json_put_null(&object, "input");
        else
            cx_json_list_put(&object, name, call->members[i].value);
    }
    *failed = cx_failed(cx_json_list_end_object(&object, &value, &ignored));
    return value;
}

static void put_payload(showing *s, cx_json_list *object, const cx_json *payload)
{
    cx_json_list shown = cx_json_list_begin(s->arena);
    for (uint32_t i = 0; i < payload->count; i++) {
        cx_str name = cx_json_text(&payload->members[i].name);
        const cx_json *member = &payload->members[i].value;
        if (cx_str_is(name, "call"))
            cx_json_list_put(&shown, name, shown_call(s, member, &object->failed));
        else
            cx_json_list_put(&shown, name, *member);
    }
    cx_json_put_object(object, "payload", &shown);
}

static cx_status add_entry(showing *s, const cx_entry_view *entry, const cx_json *payload,
                           cx_json_list *array, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(s->arena);
    cx_str kind = entry->entry.kind;
    bool decision = cx_kinds_is(kind, CX_KIND_LIVE_DECISION);
    cx_json_put_uint(&object, "seq", entry->entry.seq);
    cx_json_put_str(&object, "kind", cx_str_from(kind.data + 5, kind.size - 5));
    put_time(&object, "time", entry->entry.created_at_ns);
    cx_json_put_bool(&object, "erased", entry->payload_erased);
    if (payload != NULL) {
        put_payload(s, &object, payload);
        CX_TRY(put_approver(s, &object, payload, err));
    } else {
        cx_json_put_null(&object, "payload");
        cx_json_put_null(&object, "approved_by");
    }
    put_result(&object, decision && payload != NULL ? find_result(s, payload) : NULL);
    cx_json_add_object(array, &object);
    return CX_SUCCESS;
}

cx_status cx_live_entries_add(cx_home *home, cx_str actor, const cx_live_range *range,
                              cx_json_list *array, uint64_t *out_next, cx_err *err)
{
    cx_actor_info info;
    showing s = {.home = home, .actor = actor, .arena = array->arena};
    CX_ASSERT(range->limit >= 1 && range->limit <= CX_LIVE_SHOWN_MAX);
    CX_TRY(cx_home_actor(home, actor, &info, err));
    uint64_t end = range->before < info.entry_count ? range->before : info.entry_count;
    uint64_t first = end > range->limit ? end - range->limit : 0;
    uint64_t seq = info.entry_count - end > CX_LIVE_SHOWN_RESULTS_AFTER
                       ? end + CX_LIVE_SHOWN_RESULTS_AFTER
                       : info.entry_count;
    s.results =
        CX_ARENA_ARRAY(s.arena, known_result, CX_LIVE_SHOWN_MAX + CX_LIVE_SHOWN_RESULTS_AFTER);
    if (s.results == NULL)
        return cx_fail_nomem(err);
    while (seq-- > first) {
        cx_entry_view entry;
        cx_json *payload;
        CX_TRY(read_entry(&s, seq, &entry, &payload, err));
        if (!cx_str_starts(entry.entry.kind, CX_STR("live.")))
            continue;
        if (payload != NULL && cx_kinds_is(entry.entry.kind, CX_KIND_LIVE_RESULT))
            keep_result(&s, &entry, payload);
        if (seq < end)
            CX_TRY(add_entry(&s, &entry, payload, array, err));
    }
    *out_next = first;
    return CX_SUCCESS;
}

/* --- what waits ------------------------------------------------------------------------------- */

/* Members of the decision that asked. */
static void put_decision(showing *s, cx_json_list *object, const cx_json *payload)
{
    const cx_json *call = cx_json_get_typed(payload, CX_STR("call"), CX_JSON_OBJECT);
    const cx_json *effects = cx_json_get_typed(payload, CX_STR("effects"), CX_JSON_ARRAY);
    const cx_json *input = call == NULL ? NULL : cx_json_get(call, CX_STR("input"));
    cx_json_list none = cx_json_list_begin(s->arena);
    uint64_t size = 0;
    bool dangerous = false;
    for (uint32_t i = 0; effects != NULL && i < effects->count; i++)
        dangerous |= cx_str_is(CX_JSON_GET_STR(&effects->items[i], "verdict"), "forbidden");
    if (call != NULL && cx_json_get(call, CX_STR("input_bytes")) != NULL)
        (void)cx_json_uint64(cx_json_get(call, CX_STR("input_bytes")), &size);
    cx_json_put_bool(object, "dangerous", dangerous);
    cx_json_put_str(object, "rule", CX_JSON_GET_STR(payload, "rule"));
    if (effects != NULL)
        cx_json_put(object, "effects", *effects);
    else
        cx_json_put_array(object, "effects", &none);
    if (input != NULL && size <= CX_LIVE_SHOWN_INPUT_MAX)
        cx_json_put(object, "input", *input);
    else
        cx_json_put_null(object, "input");
}

cx_status cx_live_waiting_add(cx_home *home, cx_str actor, cx_json_list *array, cx_err *err)
{
    const cx_live_asked *list;
    size_t count;
    showing s = {.home = home, .actor = actor, .arena = array->arena};
    CX_TRY(cx_live_session_asked(home, actor, s.arena, &list, &count, err));
    for (size_t i = 0; i < count; i++) {
        cx_json_list object = cx_json_list_begin(s.arena), none = cx_json_list_begin(s.arena);
        cx_entry_view entry;
        cx_json *payload;
        CX_TRY(read_entry(&s, list[i].seq, &entry, &payload, err));
        cx_json_put_digest(&object, "input_sha256", &list[i].input_sha256);
        cx_json_put_str(&object, "tool", list[i].tool);
        cx_json_put_str(&object, "text", list[i].text);
        cx_json_put_str(&object, "why", list[i].why);
        cx_json_put_uint(&object, "seq", list[i].seq);
        put_time(&object, "time", list[i].at_ns);
        if (payload != NULL) {
            put_decision(&s, &object, payload);
        } else { /* erased: it cannot be told what it would do */
            cx_json_put_bool(&object, "dangerous", true);
            cx_json_put_z(&object, "rule", "");
            cx_json_put_array(&object, "effects", &none);
            cx_json_put_null(&object, "input");
        }
        cx_json_add_object(array, &object);
    }
    return CX_SUCCESS;
}

/* --- the policy ------------------------------------------------------------------------------- */

cx_status cx_live_policy_put(cx_home *home, cx_str actor, cx_json_list *object, const char *name,
                             cx_err *err)
{
    static const char *const unlisted[] = {"ask", "sandbox", "deny"};
    cx_bytes stored;
    bool found;
    cx_live_policy policy;
    cx_json_list value = cx_json_list_begin(object->arena),
                 write = cx_json_list_begin(object->arena);
    CX_TRY(cx_home_get(home, actor, cx_str_bytes(CX_LIVE_POLICY_KEY), object->arena, &stored,
                       &found, err));
    if (!found) {
        cx_json_put_null(object, name);
        return CX_SUCCESS;
    }
    CX_TRY(cx_live_policy_stored(cx_bytes_str(stored), object->arena, &policy, err));
    cx_json_put_str(&value, "from", policy.from);
    cx_json_put_maybe(&value, "commit", policy.commit);
    cx_json_put_str(&value, "root", policy.root);
    cx_json_put_z(&value, "mode", cx_live_mode_name(policy.mode));
    cx_json_put_z(&value, "unlisted", unlisted[policy.unlisted]);
    cx_json_put_str(&value, "network", policy.network);
    cx_json_put_strs(&value, "hosts", policy.hosts.items, policy.hosts.count);
    for (size_t i = 0; i < policy.write_count; i++) {
        cx_json_list paths = cx_json_list_begin(object->arena);
        cx_json inner;
        for (size_t k = 0; k < policy.write[i].items.count; k++)
            cx_json_list_add(&paths, cx_json_make_str(policy.write[i].items.items[k]));
        CX_TRY(cx_json_list_end_array(&paths, &inner, err));
        cx_json_list_add(&write, inner);
    }
    cx_json_put_array(&value, "write", &write);
    cx_json_put_strs(&value, "tools_deny", policy.tools_deny.items, policy.tools_deny.count);
    cx_json_put_strs(&value, "forbidden_actions", policy.forbidden.items, policy.forbidden.count);
    cx_json_put_maybe(&value, "contract", policy.contract_task);
    cx_json_put_object(object, name, &value);
    return CX_SUCCESS;
}
