/*
 * api_sessions.c - /api/v1/sessions: sessions of coding agents (docs/formats/live.md §10).
 *
 *   S1  An answer names the input that it is about by its digest, and counts only while that input
 *       waits: what was not seen cannot be approved.
 *   S2  Who answered is the token; a body cannot say it.
 */
#include <string.h>

#include "live/api.h"
#include "server/feed/live_feed.h"
#include "server/feed/session_list.h"
#include "server/route.h"

#define PAGE_DEFAULT 50
#define ENTRIES_DEFAULT 100
#define REASON_BYTES_MAX 1000
#define LIST_ITEMS_MAX 100
#define LIST_ITEM_BYTES_MAX 1024

static cx_home *home_of(const cx_call *call)
{
    return cx_recorder_home(call->service->recorder);
}

/* --- lists ------------------------------------------------------------------------------------ */

/* "LATEST_NS:ACTOR" */
static cx_status read_cursor(cx_call *call, cx_str *out_after, int64_t *out_ns, cx_err *err)
{
    cx_str text = cx_call_text(call, "cursor");
    size_t at = 0;
    int64_t value = 0;
    *out_after = (cx_str){NULL, 0};
    *out_ns = 0;
    if (text.data == NULL)
        return CX_SUCCESS;
    while (at < text.size && at < 18 + 1 && text.data[at] >= '0' && text.data[at] <= '9')
        value = 10 * value + (text.data[at++] - '0');
    cx_str actor = cx_str_from(text.data + at, text.size - at);
    if (at == 0 || actor.size < 2 || actor.data[0] != ':' ||
        !cx_live_actor_is_session(cx_str_from(actor.data + 1, actor.size - 1)))
        return cx_fail_at(err, CX_E_FORMAT, "BadCursor", CX_NO_OFFSET,
                          "expected next_cursor of a previous answer");
    *out_after = cx_str_from(actor.data + 1, actor.size - 1);
    *out_ns = value;
    return CX_SUCCESS;
}

static cx_status put_session(cx_call *call, cx_json_list *object, const cx_live_session *session,
                             cx_err *err)
{
    const cx_live_asked *asked = NULL;
    size_t waiting = 0;
    if (session->asked != 0)
        CX_TRY(cx_live_session_asked(home_of(call), session->actor, call->arena, &asked, &waiting,
                                     err));
    cx_live_session_put(object, session);
    cx_json_put_uint(object, "waiting", waiting);
    return CX_SUCCESS;
}

cx_status cx_api_sessions(cx_call *call, cx_err *err)
{
    const cx_param *limit = cx_call_param(call, "limit");
    cx_session_page page;
    cx_str after;
    int64_t after_ns;
    cx_json value;
    CX_TRY(read_cursor(call, &after, &after_ns, err));
    CX_TRY(cx_session_list_page(
        call->service->live_sessions, after, after_ns, cx_call_flag(call, "running"),
        limit->given ? (size_t)limit->count : PAGE_DEFAULT, call->arena, &page, err));
    cx_json_list root = cx_json_list_begin(call->arena), array = cx_json_list_begin(call->arena);
    for (size_t i = 0; i < page.count; i++) {
        cx_json_list object = cx_json_list_begin(call->arena);
        CX_TRY(put_session(call, &object, &page.items[i], err));
        cx_json_add_object(&array, &object);
    }
    cx_json_put_array(&root, "sessions", &array);
    cx_json_put_uint(&root, "total", page.total);
    if (page.more) {
        const cx_live_session *last = &page.items[page.count - 1];
        cx_json_put_str(&root, "next_cursor",
                        cx_arena_printf(call->arena, "%lld:%.*s", (long long)last->latest_ns,
                                        (int)last->actor.size, last->actor.data));
    } else {
        cx_json_put_null(&root, "next_cursor");
    }
    CX_TRY(cx_json_list_end_object(&root, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

static cx_status find_session(cx_call *call, cx_live_session *out, cx_err *err)
{
    return cx_session_list_find(call->service->live_sessions, call->captures[0], call->arena, out,
                                err);
}

cx_status cx_api_live_session(cx_call *call, cx_err *err)
{
    const cx_param *before = cx_call_param(call, "before"), *limit = cx_call_param(call, "limit");
    const cx_live_range range = {.before = before->given ? before->count : UINT64_MAX,
                                 .limit = limit->given ? (size_t)limit->count : ENTRIES_DEFAULT};
    cx_live_session session;
    uint64_t next;
    cx_json value;
    CX_TRY(find_session(call, &session, err));
    cx_json_list root = cx_json_list_begin(call->arena), object = cx_json_list_begin(call->arena),
                 entries = cx_json_list_begin(call->arena),
                 waiting = cx_json_list_begin(call->arena);
    CX_TRY(put_session(call, &object, &session, err));
    cx_json_put_object(&root, "session", &object);
    CX_TRY(cx_live_policy_put(home_of(call), session.actor, &root, "policy", err));
    CX_TRY(cx_live_entries_add(home_of(call), session.actor, &range, &entries, &next, err));
    CX_TRY(cx_live_waiting_add(home_of(call), session.actor, &waiting, err));
    cx_json_put_array(&root, "entries", &entries);
    if (next != 0)
        cx_json_put_uint(&root, "next", next);
    else
        cx_json_put_null(&root, "next");
    cx_json_put_array(&root, "waiting", &waiting);
    CX_TRY(cx_json_list_end_object(&root, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

/* --- bodies ----------------------------------------------------------------------------------- */

typedef struct body_member {
    const char *name, *pointer;
    cx_json_type type; /* CX_JSON_TRUE: true or false */
    const char *expected;
} body_member;

static bool has_type(const cx_json *value, cx_json_type type)
{
    return value->type == type || (type == CX_JSON_TRUE && value->type == CX_JSON_FALSE);
}

/* False: the call was answered. */
static bool check_members(cx_call *call, const cx_json *body, const body_member *members,
                          size_t count)
{
    if (body->type != CX_JSON_OBJECT) {
        cx_call_refuse_member(call, "", "expected an object");
        return false;
    }
    for (uint32_t i = 0; i < body->count; i++) {
        size_t at = 0;
        while (at < count && !cx_str_is(cx_json_text(&body->members[i].name), members[at].name))
            at++;
        if (at < count && has_type(&body->members[i].value, members[at].type))
            continue;
        cx_call_refuse_member(call, at < count ? members[at].pointer : "",
                              at < count ? members[at].expected
                                         : "found a member that is not known here");
        return false;
    }
    return true;
}

static bool is_true(const cx_json *body, const char *name)
{
    const cx_json *member = cx_json_get(body, cx_str_z(name));
    return member != NULL && member->type == CX_JSON_TRUE;
}

static cx_status read_body(cx_call *call, const body_member *members, size_t count, cx_json *out,
                           bool *out_good, cx_err *err)
{
    CX_TRY(cx_call_json(call, out, out_good, err));
    if (*out_good)
        *out_good = check_members(call, out, members, count);
    return CX_SUCCESS;
}

/* --- approve, deny ---------------------------------------------------------------------------- */

static const body_member answer_members[] = {
    {"input_sha256", "/input_sha256", CX_JSON_STRING, "expected 64 lower-case hex digits"},
    {"reason", "/reason", CX_JSON_STRING, "expected text"},
    {"whole_session", "/whole_session", CX_JSON_TRUE, "expected true or false"},
};

static bool read_answer(cx_call *call, const cx_json *body, cx_live_approval *out)
{
    cx_str digest = CX_JSON_GET_STR(body, "input_sha256"), reason = CX_JSON_GET_STR(body, "reason");
    if (!cx_hex_decode(digest, out->input_sha256.bytes, sizeof out->input_sha256.bytes)) {
        cx_call_refuse_member(call, "/input_sha256", "expected 64 lower-case hex digits");
        return false;
    }
    if (reason.size > REASON_BYTES_MAX) {
        cx_call_refuse_member(call, "/reason", "expected at most 1000 bytes");
        return false;
    }
    out->reason = reason.data == NULL ? CX_STR("") : reason;
    out->whole_session = is_true(body, "whole_session");
    return true;
}

/* S1 */
static cx_status find_waiting(cx_call *call, cx_str actor, cx_live_approval *approval, cx_err *err)
{
    const cx_live_asked *list;
    size_t count;
    CX_TRY(cx_live_session_asked(home_of(call), actor, call->arena, &list, &count, err));
    for (size_t i = 0; i < count; i++)
        if (memcmp(list[i].input_sha256.bytes, approval->input_sha256.bytes, 32) == 0) {
            approval->tool = list[i].tool;
            return CX_SUCCESS;
        }
    return cx_fail(err, CX_E_CONFLICT,
                   "no call with this input waits: it was answered already, or never asked");
}

static cx_status answer_waiting(cx_call *call, bool allow, cx_err *err)
{
    cx_live_session session;
    cx_live_approval approval = {.allow = allow, .by = cx_call_principal(call)};
    cx_json body, value;
    bool good;
    uint64_t seq;
    if (approval.by.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(read_body(call, answer_members, CX_COUNT_OF(answer_members), &body, &good, err));
    if (!good || !read_answer(call, &body, &approval))
        return CX_SUCCESS;
    CX_TRY(find_session(call, &session, err));
    CX_TRY(find_waiting(call, session.actor, &approval, err));
    CX_TRY(cx_live_session_approve(home_of(call), session.actor, &approval, &seq, err));
    cx_live_feed_wake(call->service->feed);
    cx_json_list root = cx_json_list_begin(call->arena);
    cx_json_put_str(&root, "actor", session.actor);
    cx_json_put_bool(&root, "allow", allow);
    cx_json_put_uint(&root, "seq", seq);
    cx_json_put_bool(&root, "whole_session", approval.whole_session);
    CX_TRY(cx_json_list_end_object(&root, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

cx_status cx_api_session_approve(cx_call *call, cx_err *err)
{
    return answer_waiting(call, true, err);
}

cx_status cx_api_session_deny(cx_call *call, cx_err *err)
{
    return answer_waiting(call, false, err);
}

/* --- limits ----------------------------------------------------------------------------------- */

static const body_member limit_members[] = {
    {"contract", "/contract", CX_JSON_OBJECT, "expected a task contract"},
    {"deny_unlisted", "/deny_unlisted", CX_JSON_TRUE, "expected true or false"},
    {"forbidden_actions", "/forbidden_actions", CX_JSON_ARRAY, "expected a list of texts"},
    {"mode", "/mode", CX_JSON_STRING, "expected observe, ask or enforce"},
    {"network", "/network", CX_JSON_STRING, "expected deny, on-request or allow"},
    {"paths", "/paths", CX_JSON_ARRAY, "expected a list of texts"},
    {"tools_deny", "/tools_deny", CX_JSON_ARRAY, "expected a list of texts"},
};

/* False: the call was answered. */
static bool read_texts(cx_call *call, const cx_json *body, const char *name, const char *pointer,
                       cx_str_list *out)
{
    const cx_json *list = cx_json_get(body, cx_str_z(name));
    if (list == NULL)
        return true;
    cx_str *items = CX_ARENA_ARRAY(call->arena, cx_str, (size_t)list->count + 1);
    bool good = items != NULL && list->count <= LIST_ITEMS_MAX;
    for (uint32_t i = 0; good && i < list->count; i++) {
        good = list->items[i].type == CX_JSON_STRING;
        items[i] = good ? cx_json_text(&list->items[i]) : CX_STR("");
        good = good && items[i].size != 0 && items[i].size <= LIST_ITEM_BYTES_MAX;
    }
    *out = (cx_str_list){items, list->count};
    if (!good)
        cx_call_refuse_member(call, pointer, "expected at most 100 texts of 1 to 1024 bytes");
    return good;
}

/* False: the call was answered. */
static bool read_own_limit(cx_call *call, const cx_json *body, cx_live_limit *out)
{
    const cx_json *mode = CX_JSON_GET(body, "mode");
    cx_str network = CX_JSON_GET_STR(body, "network");
    if (body->count == 0) {
        cx_call_refuse_member(call, "", "expected at least one limit");
        return false;
    }
    out->has_mode = mode != NULL;
    if (mode != NULL && !cx_live_mode_parse(cx_json_text(mode), &out->mode)) {
        cx_call_refuse_member(call, "/mode", "expected observe, ask or enforce");
        return false;
    }
    if (network.data != NULL && !cx_str_is(network, "deny") && !cx_str_is(network, "on-request") &&
        !cx_str_is(network, "allow")) {
        cx_call_refuse_member(call, "/network", "expected deny, on-request or allow");
        return false;
    }
    out->network = network;
    out->has_paths = CX_JSON_GET(body, "paths") != NULL;
    out->deny_unlisted = is_true(body, "deny_unlisted");
    return read_texts(call, body, "paths", "/paths", &out->paths) &&
           read_texts(call, body, "tools_deny", "/tools_deny", &out->tools_deny) &&
           read_texts(call, body, "forbidden_actions", "/forbidden_actions", &out->forbidden);
}

static cx_status read_limit(cx_call *call, const cx_json *body, cx_live_limit *out, bool *out_good,
                            cx_err *err)
{
    const cx_json *contract = CX_JSON_GET(body, "contract");
    cx_buf text;
    *out = (cx_live_limit){.has_mode = false};
    if (contract == NULL) {
        *out_good = read_own_limit(call, body, out);
        return CX_SUCCESS;
    }
    *out_good = body->count == 1;
    if (!*out_good) {
        cx_call_refuse_member(call, "/contract", "a contract has limits of its own: nothing else");
        return CX_SUCCESS;
    }
    cx_buf_init(&text, call->service->alloc);
    cx_status status = cx_json_write(&text, contract, CX_JSON_PY_COMPACT, err);
    cx_str kept = cx_arena_copy_str(call->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    CX_TRY(status);
    if (kept.data == NULL)
        return cx_fail_nomem(err);
    status = cx_live_limit_of_contract(kept, call->arena, out, err);
    if (status.code == CX_E_NOMEM || !cx_failed(status))
        return status;
    *out_good = false;
    cx_call_refuse_member(call, "/contract", err->message);
    return CX_SUCCESS;
}

cx_status cx_api_session_limit(cx_call *call, cx_err *err)
{
    cx_live_session session;
    cx_live_policy policy;
    cx_live_limit limit;
    cx_json body, value;
    bool good;
    uint64_t seq;
    cx_str by = cx_call_principal(call);
    if (by.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(read_body(call, limit_members, CX_COUNT_OF(limit_members), &body, &good, err));
    if (good)
        CX_TRY(read_limit(call, &body, &limit, &good, err));
    if (!good)
        return CX_SUCCESS;
    CX_TRY(find_session(call, &session, err));
    CX_TRY(cx_live_session_limit(home_of(call), session.actor, &limit, by, &policy, call->arena,
                                 &seq, err));
    cx_live_feed_wake(call->service->feed);
    cx_json_list root = cx_json_list_begin(call->arena);
    cx_json_put_str(&root, "actor", session.actor);
    CX_TRY(cx_live_policy_put(home_of(call), session.actor, &root, "policy", err));
    cx_json_put_uint(&root, "seq", seq);
    CX_TRY(cx_json_list_end_object(&root, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}
