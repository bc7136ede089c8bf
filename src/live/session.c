/*
 * session.c - actors of sessions, their records, limits and approvals.
 */
#include <string.h>

#include "live/session_parts.h"
#include "rules/api.h"

#define ACTOR_PREFIX CX_LIVE_ACTOR_PREFIX

/* --- actors ----------------------------------------------------------------------------------- */

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

cx_status cx_live_actor(cx_live_agent agent, cx_str session, cx_arena *arena, cx_str *out,
                        cx_err *err)
{
    cx_buf text;
    if (session.size == 0 || session.size > CX_LIVE_SESSION_BYTES_MAX)
        return cx_fail(err, CX_E_FORMAT, "a session id has 1 to %d bytes",
                       CX_LIVE_SESSION_BYTES_MAX);
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_printf(&text, ACTOR_PREFIX "%s:", cx_live_agent_name(agent));
    for (size_t i = 0; i < session.size; i++) {
        if (is_plain(session.data[i]))
            cx_buf_add_byte(&text, (uint8_t)session.data[i]);
        else
            cx_buf_printf(&text, "%%%02X", (unsigned)(uint8_t)session.data[i]);
    }
    if (text.size > 256) { /* as long as an actor's name may be: the rest is a digest */
        char hex[65] = "";
        cx_digest digest = cx_digest_of(cx_str_bytes(session));
        cx_hex_encode(cx_bytes_from(digest.bytes, 32), hex);
        cx_buf_clear(&text);
        cx_buf_printf(&text, ACTOR_PREFIX "%s:%%%.64s", cx_live_agent_name(agent), hex);
    }
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(arena, cx_buf_str(&text));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

bool cx_live_actor_is_session(cx_str actor)
{
    return cx_str_starts(actor, CX_STR(ACTOR_PREFIX));
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

cx_status cx_live_actor_split(cx_str actor, cx_arena *arena, cx_str *out_agent, cx_str *out_session,
                              cx_err *err)
{
    size_t at = sizeof ACTOR_PREFIX - 1, end = at, size = 0;
    if (!cx_live_actor_is_session(actor))
        return cx_fail(err, CX_E_FORMAT, "\"%.*s\" is no session", (int)actor.size, actor.data);
    while (end < actor.size && actor.data[end] != ':')
        end++;
    if (out_agent != NULL)
        *out_agent = cx_str_from(actor.data + at, end - at);
    if (out_session == NULL)
        return CX_SUCCESS;
    char *bytes = cx_arena_push(arena, actor.size + 1, 1);
    if (bytes == NULL)
        return cx_fail_nomem(err);
    for (size_t i = end + 1; i < actor.size; i++) {
        int high = i + 2 < actor.size ? hex_digit(actor.data[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(actor.data[i + 2]) : -1;
        if (actor.data[i] == '%' && low >= 0) {
            bytes[size++] = (char)(high * 16 + low);
            i += 2;
        } else {
            bytes[size++] = actor.data[i];
        }
    }
    *out_session = cx_str_from(bytes, size);
    return CX_SUCCESS;
}

/* --- records ---------------------------------------------------------------------------------- */

cx_live_key cx_live_key_of(const char *prefix, const cx_digest *digest)
{
    cx_live_key key = {.size = strlen(prefix)};
    CX_ASSERT(key.size + sizeof digest->bytes <= sizeof key.bytes);
    memcpy(key.bytes, prefix, key.size);
    memcpy(key.bytes + key.size, digest->bytes, sizeof digest->bytes);
    key.size += sizeof digest->bytes;
    return key;
}

static uint64_t number_of(const cx_json *object, const char *name)
{
    uint64_t value = 0;
    const cx_json *member = cx_json_get(object, cx_str_z(name));
    return member != NULL && cx_json_uint64(member, &value) ? value : 0;
}

static cx_str text_of(const cx_json *object, const char *name)
{
    cx_str text = cx_json_get_str(object, cx_str_z(name));
    return text.data == NULL ? CX_STR("") : text;
}

cx_status cx_live_session_decode(cx_bytes bytes, cx_arena *arena, cx_live_session *out, cx_err *err)
{
    cx_json root;
    memset(out, 0, sizeof *out);
    CX_TRY(cx_run_json_read(cx_bytes_str(bytes), 0, arena, &root, err));
    if (root.type != CX_JSON_OBJECT)
        return cx_fail(err, CX_E_FORMAT, "the record of a session is no object");
    out->agent = text_of(&root, "agent");
    out->session = text_of(&root, "session");
    out->cwd = text_of(&root, "cwd");
    out->transcript = text_of(&root, "transcript");
    out->policy_from = text_of(&root, "policy_from");
    out->contract_task = text_of(&root, "contract_task");
    if (!cx_live_mode_parse(text_of(&root, "mode"), &out->mode))
        return cx_fail(err, CX_E_FORMAT, "the record of a session has no mode");
    const cx_json *ended = CX_JSON_GET(&root, "ended");
    out->ended = ended != NULL && ended->type == CX_JSON_TRUE;
    out->calls = number_of(&root, "calls");
    out->denied = number_of(&root, "denied");
    out->asked = number_of(&root, "asked");
    out->started_ns = (int64_t)number_of(&root, "started_ns");
    out->latest_ns = (int64_t)number_of(&root, "latest_ns");
    return CX_SUCCESS;
}

cx_status cx_live_session_encode(const cx_live_session *session, cx_arena *arena, cx_buf *out,
                                 cx_err *err)
{
    cx_json_list object = cx_json_list_begin(arena);
    cx_json value;
    cx_json_put_str(&object, "agent", session->agent);
    cx_json_put_str(&object, "session", session->session);
    cx_json_put_str(&object, "cwd", session->cwd);
    cx_json_put_str(&object, "transcript", session->transcript);
    cx_json_put_str(&object, "policy_from", session->policy_from);
    cx_json_put_str(&object, "contract_task", session->contract_task);
    cx_json_put_z(&object, "mode", cx_live_mode_name(session->mode));
    cx_json_put_bool(&object, "ended", session->ended);
    cx_json_put_uint(&object, "calls", session->calls);
    cx_json_put_uint(&object, "denied", session->denied);
    cx_json_put_uint(&object, "asked", session->asked);
    cx_json_put_uint(&object, "started_ns", (uint64_t)session->started_ns);
    cx_json_put_uint(&object, "latest_ns", (uint64_t)session->latest_ns);
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    return cx_json_write(out, &value, CX_JSON_PY_COMPACT, err);
}

cx_status cx_live_put_text(cx_txn *txn, cx_bytes key, const cx_buf *text, cx_err *err)
{
    CX_TRY(cx_buf_check(text, err));
    return cx_txn_put(txn, key, cx_buf_bytes(text), false, err);
}

cx_status cx_live_put_session(cx_txn *txn, const cx_live_session *session, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_live_session_encode(session, cx_txn_arena(txn), &text, err);
    if (!cx_failed(status))
        status = cx_live_put_text(txn, cx_str_bytes(CX_LIVE_SESSION_KEY), &text, err);
    cx_buf_done(&text);
    return status;
}

cx_status cx_live_put_policy(cx_txn *txn, const cx_live_policy *policy, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_live_policy_write(policy, cx_txn_arena(txn), &text, err);
    if (!cx_failed(status))
        status = cx_live_put_text(txn, cx_str_bytes(CX_LIVE_POLICY_KEY), &text, err);
    cx_buf_done(&text);
    return status;
}

cx_status cx_live_add_entry(cx_txn *txn, cx_dotted_kind kind, int64_t now_ns, const char *by,
                            cx_json_list *payload, uint64_t *out_seq, cx_err *err)
{
    cx_buf text;
    cx_json value;
    CX_TRY(cx_json_list_end_object(payload, &value, err));
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_json_write(&text, &value, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    const cx_entry_draft draft = {.kind = cx_kinds_name(kind),
                                  .created_at_ns = now_ns,
                                  .created_by = cx_str_bytes(cx_str_z(by)),
                                  .payload = cx_buf_bytes(&text),
                                  .committed = true};
    if (!cx_failed(status))
        status = cx_txn_entry(txn, &draft, out_seq, err);
    cx_buf_done(&text);
    return status;
}

/* --- finding ---------------------------------------------------------------------------------- */

cx_status cx_live_session_read(cx_home *home, cx_str actor, cx_arena *arena, cx_live_session *out,
                               bool *out_found, cx_err *err)
{
    cx_bytes value;
    CX_TRY(
        cx_home_get(home, actor, cx_str_bytes(CX_LIVE_SESSION_KEY), arena, &value, out_found, err));
    if (!*out_found)
        return CX_SUCCESS;
    CX_TRY(cx_live_session_decode(value, arena, out, err));
    out->actor = cx_arena_copy_str(arena, actor);
    return out->actor.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

typedef struct listed {
    cx_live_session session;
    size_t place; /* in order of the first entries */
} listed;

typedef struct listing {
    CX_VEC(listed) items;
} listing;

static int newest_first(const void *left, const void *right)
{
    const listed *a = left, *b = right;
    if (a->session.latest_ns != b->session.latest_ns)
        return a->session.latest_ns > b->session.latest_ns ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

static cx_status add_session(cx_home *home, cx_str actor, cx_arena *arena, listing *all,
                             cx_err *err)
{
    cx_live_session session;
    bool there = false;
    CX_TRY(cx_live_session_read(home, actor, arena, &session, &there, err));
    listed *slot = there ? cx_vec_push(&all->items, arena->alloc) : NULL;
    if (there && slot == NULL)
        return cx_fail_nomem(err);
    if (there)
        *slot = (listed){session, all->items.count};
    return CX_SUCCESS;
}

static cx_status read_sessions(cx_home *home, cx_arena *arena, listing *all, cx_err *err)
{
    const cx_actor_info *actor = NULL;
    cx_actor_walk walk;
    cx_actor_walk_begin_named(&walk, home, CX_STR(ACTOR_PREFIX));
    cx_status status = cx_actor_walk_next(&walk, &actor, err);
    while (!cx_failed(status) && actor != NULL) {
        status = add_session(home, actor->name, arena, all, err);
        if (!cx_failed(status))
            status = cx_actor_walk_next(&walk, &actor, err);
    }
    cx_actor_walk_end(&walk);
    return status;
}

cx_status cx_live_sessions(cx_home *home, cx_arena *arena, const cx_live_session **out,
                           size_t *out_count, cx_err *err)
{
    listing all = {{NULL, 0, 0}};
    cx_live_session *list = NULL;
    cx_status status = read_sessions(home, arena, &all, err);
    if (!cx_failed(status)) {
        list = CX_ARENA_ARRAY(arena, cx_live_session, all.items.count + 1);
        if (list == NULL)
            status = cx_fail_nomem(err);
    }
    if (!cx_failed(status)) {
        if (all.items.count != 0)
            qsort(all.items.items, all.items.count, sizeof(listed), newest_first);
        for (size_t i = 0; i < all.items.count; i++)
            list[i] = all.items.items[i].session;
        *out = list;
        *out_count = all.items.count;
    }
    cx_vec_done(&all.items, arena->alloc);
    return status;
}

cx_status cx_live_session_find(cx_home *home, cx_str name, cx_arena *arena, cx_live_session *out,
                               cx_err *err)
{
    const cx_live_session *list;
    size_t count;
    const cx_live_session *match = NULL;
    bool ambiguous = false;
    CX_TRY(cx_live_sessions(home, arena, &list, &count, err));
    if (name.size == 0 && count != 0) {
        *out = list[0];
        return CX_SUCCESS;
    }
    for (size_t i = 0; i < count; i++) {
        if (cx_str_eq(list[i].actor, name) || cx_str_eq(list[i].session, name)) {
            *out = list[i];
            return CX_SUCCESS;
        }
        if (name.size >= 4 && cx_str_starts(list[i].session, name)) {
            ambiguous = match != NULL;
            match = &list[i];
        }
    }
    if (ambiguous)
        return cx_fail_at(err, CX_E_CONFLICT, "Ambiguous", CX_NO_OFFSET,
                          "several sessions begin with \"%.*s\": give more of the id",
                          (int)name.size, name.data);
    if (count == 0)
        return cx_fail(
            err, CX_E_NOT_FOUND,
            "no session of a coding agent is recorded: `cortex hook install AGENT` begins "
            "with it, for sessions that start afterwards");
    if (match == NULL)
        return cx_fail(err, CX_E_NOT_FOUND, "no session \"%.*s\": `cortex session list` shows them",
                       (int)name.size, name.data);
    *out = *match;
    return CX_SUCCESS;
}

cx_status cx_live_session_policy(cx_home *home, cx_str actor, cx_arena *arena, cx_live_policy *out,
                                 bool *out_found, cx_err *err)
{
    cx_bytes stored;
    cx_actor_info info;
    cx_err missing;
    *out_found = false;
    cx_status status = cx_home_actor(home, actor, &info, &missing);
    if (cx_failed(status) && status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    if (!cx_failed(status))
        status = cx_home_get(home, actor, cx_str_bytes(CX_LIVE_POLICY_KEY), arena, &stored,
                             out_found, &missing);
    if (cx_failed(status)) {
        *err = missing;
        return status;
    }
    return *out_found ? cx_live_policy_stored(cx_bytes_str(stored), arena, out, err) : CX_SUCCESS;
}

/* --- limits ----------------------------------------------------------------------------------- */

static void put_limit(cx_json_list *object, const cx_live_session *session,
                      const cx_live_limit *limit, cx_str by)
{
    cx_json_put_uint(object, "v", 1);
    cx_json_put_str(object, "session", session->session);
    cx_json_put_str(object, "by", by);
    if (limit->has_mode)
        cx_json_put_z(object, "mode", cx_live_mode_name(limit->mode));
    else
        cx_json_put_null(object, "mode");
    cx_json_put_maybe(object, "network", limit->network);
    if (limit->has_paths)
        cx_json_put_strs(object, "paths", limit->paths.items, limit->paths.count);
    else
        cx_json_put_null(object, "paths");
    cx_json_put_strs(object, "tools_deny", limit->tools_deny.items, limit->tools_deny.count);
    cx_json_put_strs(object, "forbidden_actions", limit->forbidden.items, limit->forbidden.count);
    cx_json_put_bool(object, "deny_unlisted", limit->deny_unlisted);
    cx_json_put_maybe(object, "contract", limit->contract_task);
    if (limit->contract_task.size != 0)
        cx_json_put_digest(object, "contract_sha256", &limit->contract_sha256);
}

static cx_status limit_in_turn(cx_txn *txn, const cx_live_limit *limit, cx_str by, int64_t now_ns,
                               cx_live_policy *policy, cx_arena *arena, uint64_t *out_seq,
                               cx_err *err)
{
    cx_bytes stored, record;
    bool has_policy, has_session;
    cx_live_session session;
    cx_json_list payload = cx_json_list_begin(cx_txn_arena(txn));
    CX_TRY(cx_txn_get(txn, cx_str_bytes(CX_LIVE_POLICY_KEY), &stored, &has_policy, err));
    CX_TRY(cx_txn_get(txn, cx_str_bytes(CX_LIVE_SESSION_KEY), &record, &has_session, err));
    if (!has_policy || !has_session)
        return cx_fail(err, CX_E_NOT_FOUND,
                       "the session has no policy: nothing was recorded of it yet");
    CX_TRY(cx_live_policy_stored(cx_bytes_str(stored), arena, policy, err));
    CX_TRY(cx_live_session_decode(record, arena, &session, err));
    CX_TRY(cx_live_policy_narrow(policy, limit, arena, err));
    put_limit(&payload, &session, limit, by);
    CX_TRY(cx_live_add_entry(txn, CX_KIND_LIVE_LIMIT, now_ns, "limit", &payload, out_seq, err));
    if (policy->mode > session.mode)
        session.mode = policy->mode;
    session.latest_ns = now_ns;
    session.contract_task = policy->contract_task;
    CX_TRY(cx_live_put_policy(txn, policy, err));
    return cx_live_put_session(txn, &session, err);
}

cx_status cx_live_session_limit(cx_home *home, cx_str actor, const cx_live_limit *limit, cx_str by,
                                cx_live_policy *out, cx_arena *arena, uint64_t *out_seq,
                                cx_err *err)
{
    cx_txn *txn;
    const cx_io *io = cx_home_io(home);
    CX_TRY(cx_txn_begin(home, actor, &txn, err));
    cx_status status =
        limit_in_turn(txn, limit, by, (int64_t)io->wall_ns(io), out, arena, out_seq, err);
    if (!cx_failed(status))
        return cx_txn_commit(txn, err);
    cx_txn_abort(txn);
    return status;
}

/* --- approvals -------------------------------------------------------------------------------- */

static cx_status approve_in_turn(cx_txn *txn, const cx_live_approval *approval, int64_t now_ns,
                                 uint64_t *out_seq, cx_err *err)
{
    cx_buf text;
    cx_bytes record;
    bool found;
    cx_live_session session;
    cx_arena *arena = cx_txn_arena(txn);
    cx_json_list payload = cx_json_list_begin(arena);
    const cx_live_key asked = cx_live_key_of(CX_LIVE_ASKED_PREFIX, &approval->input_sha256);
    const cx_live_key approved = cx_live_key_of(CX_LIVE_APPROVED_PREFIX, &approval->input_sha256);
    CX_TRY(cx_txn_get(txn, cx_str_bytes(CX_LIVE_SESSION_KEY), &record, &found, err));
    if (!found)
        return cx_fail(err, CX_E_NOT_FOUND, "nothing was recorded of this session yet");
    CX_TRY(cx_live_session_decode(record, arena, &session, err));
    cx_json_put_uint(&payload, "v", 1);
    cx_json_put_str(&payload, "session", session.session);
    cx_json_put_str(&payload, "tool", approval->tool);
    cx_json_put_digest(&payload, "input_sha256", &approval->input_sha256);
    cx_json_put_bool(&payload, "allow", approval->allow);
    cx_json_put_bool(&payload, "whole_session", approval->whole_session);
    cx_json_put_str(&payload, "by", approval->by);
    cx_json_put_str(&payload, "reason", approval->reason);
    CX_TRY(
        cx_live_add_entry(txn, CX_KIND_LIVE_APPROVAL, now_ns, "approval", &payload, out_seq, err));
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_printf(&text, "{\"allow\":%s,\"seq\":%llu,\"whole\":%s}",
                  approval->allow ? "true" : "false", (unsigned long long)*out_seq,
                  approval->whole_session ? "true" : "false");
    cx_status status = cx_live_put_text(txn, cx_live_key_bytes(&approved), &text, err);
    cx_buf_done(&text);
    CX_TRY(status);
    CX_TRY(cx_txn_get(txn, cx_live_key_bytes(&asked), &record, &found, err));
    return found ? cx_txn_remove(txn, cx_live_key_bytes(&asked), err) : CX_SUCCESS;
}

cx_status cx_live_session_approve(cx_home *home, cx_str actor, const cx_live_approval *approval,
                                  uint64_t *out_seq, cx_err *err)
{
    cx_txn *txn;
    const cx_io *io = cx_home_io(home);
    CX_TRY(cx_txn_begin(home, actor, &txn, err));
    cx_status status = approve_in_turn(txn, approval, (int64_t)io->wall_ns(io), out_seq, err);
    if (!cx_failed(status))
        return cx_txn_commit(txn, err);
    cx_txn_abort(txn);
    return status;
}

typedef struct asked_list {
    cx_arena *arena;
    cx_live_asked *items;
    size_t count, room;
} asked_list;

static cx_status add_asked(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    asked_list *list = arg;
    cx_json root;
    (void)stop;
    if (list->count == list->room) {
        size_t room = list->room == 0 ? 16 : 2 * list->room;
        cx_live_asked *grown = CX_ARENA_ARRAY(list->arena, cx_live_asked, room);
        if (grown == NULL)
            return cx_fail_nomem(err);
        if (list->count != 0)
            memcpy(grown, list->items, list->count * sizeof *grown);
        list->items = grown;
        list->room = room;
    }
    cx_str kept = cx_arena_copy_str(list->arena, cx_bytes_str(value));
    if (kept.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_json_read(kept, 0, list->arena, &root, err));
    cx_live_asked *asked = &list->items[list->count];
    memset(asked, 0, sizeof *asked);
    if (key.size != sizeof CX_LIVE_ASKED_PREFIX - 1 + 32)
        return cx_fail(err, CX_E_FORMAT, "a record of what is asked has a key of %zu bytes",
                       key.size);
    memcpy(asked->input_sha256.bytes, key.data + sizeof CX_LIVE_ASKED_PREFIX - 1, 32);
    asked->tool = text_of(&root, "tool");
    asked->text = text_of(&root, "text");
    asked->why = text_of(&root, "why");
    asked->seq = number_of(&root, "seq");
    asked->at_ns = (int64_t)number_of(&root, "at_ns");
    list->count++;
    return CX_SUCCESS;
}

cx_status cx_live_session_asked(cx_home *home, cx_str actor, cx_arena *arena,
                                const cx_live_asked **out, size_t *out_count, cx_err *err)
{
    asked_list list = {.arena = arena};
    const cx_scan what = {.actor = actor,
                          .prefix = cx_str_bytes(CX_STR(CX_LIVE_ASKED_PREFIX)),
                          .row = add_asked,
                          .arg = &list};
    CX_TRY(cx_home_scan(home, &what, err));
    for (size_t i = 1; i < list.count; i++) {
        cx_live_asked moved = list.items[i];
        size_t at = i;
        for (; at != 0 && list.items[at - 1].seq > moved.seq; at--)
            list.items[at] = list.items[at - 1];
        list.items[at] = moved;
    }
    *out = list.items;
    *out_count = list.count;
    return CX_SUCCESS;
}
