/*
 * api_keys.c - public keys and alerts: changes to the trust store and to the state of alerts
 * (trace.md §4, §11).
 */
#include "server/route.h"

/* --- bodies ----------------------------------------------------------------------------------- */

static cx_status reject_body(cx_call *call, cx_str pointer, cx_str reason)
{
    const cx_problem problem = {
        .status = 422,
        .type = "invalid-request",
        .detail = CX_STR("the body has an invalid member"),
        .pointer = pointer,
        .reason = reason,
    };
    cx_call_problem(call, &problem);
    return CX_SUCCESS;
}

/* An object with members of these names only; false when the call was answered. */
static cx_status read_body_object(cx_call *call, const char *const *names, size_t count,
                                  cx_json *out, bool *out_good, cx_err *err)
{
    CX_TRY(cx_call_json(call, out, out_good, err));
    if (!*out_good)
        return CX_SUCCESS;
    *out_good = false;
    if (out->type != CX_JSON_OBJECT)
        return reject_body(call, CX_STR(""), CX_STR("expected an object"));
    for (uint32_t i = 0; i < out->count; i++) {
        cx_str name = cx_json_text(&out->members[i].name);
        size_t known = 0;
        while (known < count && !cx_str_is(name, names[known]))
            known++;
        if (known == count)
            return reject_body(call,
                               cx_arena_printf(call->arena, "/%.*s", (int)name.size, name.data),
                               CX_STR("unknown member"));
    }
    *out_good = true;
    return CX_SUCCESS;
}

/* The same with members of any name. */
static cx_status read_any_object(cx_call *call, cx_json *out, bool *out_good, cx_err *err)
{
    CX_TRY(cx_call_json(call, out, out_good, err));
    if (!*out_good || out->type == CX_JSON_OBJECT)
        return CX_SUCCESS;
    *out_good = false;
    return reject_body(call, CX_STR(""), CX_STR("expected an object"));
}

/* Text or null; `*out` has NULL data when it is absent.  False when the call was answered. */
static cx_status read_text_member(cx_call *call, const cx_json *object, const char *name,
                                  bool required, cx_str *out, bool *out_good)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    *out = (cx_str){NULL, 0};
    *out_good = false;
    if (value != NULL && value->type == CX_JSON_STRING) {
        *out = cx_json_text(value);
        *out_good = out->size <= 4096 && (out->size != 0 || !required);
    } else if (value == NULL || value->type == CX_JSON_NULL) {
        *out_good = !required;
    }
    if (*out_good)
        return CX_SUCCESS;
    return reject_body(call, cx_arena_printf(call->arena, "/%s", name),
                       required ? CX_STR("expected text of 1 to 4096 bytes")
                                : CX_STR("expected text of at most 4096 bytes, or null"));
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Agents state the algorithm in what they register. */
static bool is_algorithm(const cx_json *body)
{
    static const char expected[] = "ed25519";
    const cx_json *value = CX_JSON_GET(body, "algorithm");
    if (value == NULL)
        return true;
    cx_str text = value->type == CX_JSON_STRING ? cx_json_text(value) : CX_STR("");
    bool same = text.size == sizeof expected - 1;
    for (size_t i = 0; same && i < text.size; i++)
        same = (text.data[i] | 0x20) == expected[i];
    return same;
}

/* Of a key that registers itself: everything else is for those who approve it to state. */
static bool may_state(cx_str name)
{
    return cx_str_is(name, "key_id") || cx_str_is(name, "public_key_base64") ||
           cx_str_is(name, "description");
}

/* As the trust store spells it. */
static cx_status as_trust_key(cx_call *call, const cx_json *body, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(call->arena);
    for (uint32_t i = 0; i < body->count; i++) {
        cx_str name = cx_json_text(&body->members[i].name);
        if (cx_str_is(name, "algorithm") || (call->by_signature && !may_state(name)))
            continue;
        if (cx_str_is(name, "public_key_base64"))
            name = CX_STR("public_key");
        cx_json_list_put(&list, name, body->members[i].value);
    }
    cx_json_list_put(&list, CX_STR("algorithm"), cx_json_make_str(CX_STR("ed25519")));
    return cx_json_list_end_object(&list, out, err);
}

/* "/public_key: found ..": the member, as it is called here, and what is wrong with it. */
static cx_status reject_key(cx_call *call, const char *message)
{
    const char *colon = message[0] == '/' ? strstr(message, ": ") : NULL;
    if (colon == NULL)
        return reject_body(call, CX_STR(""), cx_str_z(message));
    cx_str pointer = cx_str_from(message, (size_t)(colon - message));
    if (cx_str_is(pointer, "/public_key"))
        pointer = CX_STR("/public_key_base64");
    return reject_body(call, pointer, cx_str_z(colon + 2));
}

/* Status 200, as senders take every other one for a failure. */
static cx_status register_key(cx_call *call, const cx_trust_key *key, cx_err *err)
{
    const cx_registration registration = {
        .key = key, .address = cx_str_z(call->request.address), .loopback = call->request.loopback};
    cx_registered found;
    cx_json value;
    CX_TRY(cx_recorder_register(call->service->recorder, &registration, &found, err));
    if (found == CX_REGISTERED_PENDING)
        cx_service_log(call->service,
                       "the key %.*s registered itself from %s and waits for a decision: 'cortex "
                       "key pending'",
                       (int)key->key_id.size, key->key_id.data, call->request.address);
    cx_json_list list = cx_json_list_begin(call->arena);
    cx_json_list_put(&list, CX_STR("key_id"), cx_json_make_str(key->key_id));
    cx_json_list_put(
        &list, CX_STR("status"),
        cx_json_make_str(found == CX_REGISTERED_TRUSTED ? CX_STR("exists") : CX_STR("pending")));
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

static cx_status answer_added(cx_call *call, const cx_trust_key *key, bool added, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(call->arena);
    cx_json value;
    cx_json_list_put(&list, CX_STR("key_id"), cx_json_make_str(key->key_id));
    cx_json_list_put(&list, CX_STR("status"),
                     cx_json_make_str(added ? CX_STR("registered") : CX_STR("exists")));
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    return cx_call_answer_json(call, added ? 201 : 200, &value, err);
}

cx_status cx_api_key_add(cx_call *call, cx_err *err)
{
    static const char *const names[] = {"key_id",        "public_key_base64", "agents",
                                        "not_before",    "not_after",         "replaces",
                                        "chain_profile", "description",       "algorithm"};
    cx_json body, value;
    cx_trust_key key;
    bool good, added;
    if (call->by_signature)
        CX_TRY(read_any_object(call, &body, &good, err));
    else
        CX_TRY(read_body_object(call, names, CX_COUNT_OF(names), &body, &good, err));
    if (!good)
        return CX_SUCCESS;
    if (!is_algorithm(&body))
        return reject_body(call, CX_STR("/algorithm"), CX_STR("expected ed25519"));
    CX_TRY(as_trust_key(call, &body, &value, err));
    cx_status status = cx_trust_key_parse(&value, CX_STR(""), call->arena, &key, err);
    if (cx_failed(status)) {
        if (status.code != CX_E_FORMAT && status.code != CX_E_LIMIT && status.code != CX_E_USAGE)
            return status;
        return reject_key(call, err->message);
    }
    if (call->by_signature)
        return register_key(call, &key, err);
    key.added_by = cx_call_principal(call);
    if (key.added_by.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_recorder_key_add(call->service->recorder, &key, &added, err));
    return answer_added(call, &key, added, err);
}

cx_status cx_api_keys(cx_call *call, cx_err *err)
{
    CX_TRY(cx_recorder_answer_keys(call->service->recorder, &call->response.body, err));
    cx_call_answer(call, 200, "application/json");
    return CX_SUCCESS;
}

cx_status cx_api_key_revoke(cx_call *call, cx_err *err)
{
    static const char *const names[] = {"reason", "compromised_since"};
    cx_json body, value;
    cx_str reason, since;
    int64_t since_ns = CX_TIME_NONE;
    bool good, naive;
    CX_TRY(read_body_object(call, names, CX_COUNT_OF(names), &body, &good, err));
    if (good)
        CX_TRY(read_text_member(call, &body, "reason", true, &reason, &good));
    if (good)
        CX_TRY(read_text_member(call, &body, "compromised_since", false, &since, &good));
    if (!good)
        return CX_SUCCESS;
    if (since.data != NULL && !cx_trace_time_parse(since, &since_ns, &naive))
        return reject_body(call, CX_STR("/compromised_since"),
                           CX_STR("expected a time such as 2026-01-31T12:00:00Z"));
    cx_str who = cx_call_principal(call);
    if (who.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_recorder_key_revoke(call->service->recorder, call->captures[0], reason, who, since_ns,
                                  err));
    cx_json_list list = cx_json_list_begin(call->arena);
    cx_json_list_put(&list, CX_STR("key_id"), cx_json_make_str(call->captures[0]));
    cx_json_list_put(&list, CX_STR("status"), cx_json_make_str(CX_STR("revoked")));
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

/* --- alerts ----------------------------------------------------------------------------------- */

cx_status cx_api_alerts(cx_call *call, cx_err *err)
{
    const cx_param *which = cx_call_param(call, "status"), *limit = cx_call_param(call, "limit");
    cx_index *index;
    CX_TRY(cx_call_index(call, &index, err));
    CX_TRY(cx_recorder_answer_alerts(
        call->service->recorder, index, !which->given || which->choice == 0,
        limit->given ? (uint32_t)limit->count : 100, &call->response.body, err));
    cx_call_answer(call, 200, "application/json");
    return CX_SUCCESS;
}

/* Who and why: {by?, notes?}, or no body at all. */
static cx_status read_acknowledgement(cx_call *call, cx_str *out_by, cx_str *out_notes,
                                      bool *out_good, cx_err *err)
{
    static const char *const names[] = {"by", "notes"};
    cx_json body;
    *out_by = *out_notes = (cx_str){NULL, 0};
    *out_good = true;
    if (call->request.body.size != 0) {
        CX_TRY(read_body_object(call, names, CX_COUNT_OF(names), &body, out_good, err));
        if (*out_good)
            CX_TRY(read_text_member(call, &body, "by", false, out_by, out_good));
        if (*out_good)
            CX_TRY(read_text_member(call, &body, "notes", false, out_notes, out_good));
    }
    if (out_by->data == NULL)
        *out_by = cx_call_principal(call);
    return out_by->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status acknowledge_alert(cx_call *call, bool resolved, cx_err *err)
{
    cx_str by, notes;
    cx_json value;
    bool good;
    CX_TRY(read_acknowledgement(call, &by, &notes, &good, err));
    if (!good)
        return CX_SUCCESS;
    CX_TRY(cx_recorder_alert_mark(call->service->recorder, call->captures[0], resolved, by, notes,
                                  err));
    cx_json_list list = cx_json_list_begin(call->arena);
    cx_json_list_put(&list, CX_STR("alert_id"), cx_json_make_str(call->captures[0]));
    cx_json_list_put(&list, CX_STR("by"), cx_json_make_str(by));
    cx_json_list_put(&list, CX_STR("status"),
                     cx_json_make_str(resolved ? CX_STR("resolved") : CX_STR("acknowledged")));
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

cx_status cx_api_alert_acknowledge(cx_call *call, cx_err *err)
{
    return acknowledge_alert(call, false, err);
}

cx_status cx_api_alert_resolve(cx_call *call, cx_err *err)
{
    return acknowledge_alert(call, true, err);
}
