/*
 * api_scopes_sent.c - scopes that travel: POST /api/v1/scopes/make writes one without its
 * signature, POST /api/v1/scopes takes one that is signed, and GET /api/v1/scopes gives it to its
 * grantee.
 *
 *   N1  Nothing here signs: what `make` answers are the bytes to sign, and the grantor's key never
 *       comes near the server.
 *   N2  What is taken holds now: signature, key, time, snapshot and proof.
 *   N3  A scope is shown to its grantee, and others learn nothing of it.
 */
#include "ledger/api.h"
#include "server/api/scope_call.h"

/* --- make: the members ------------------------------------------------------------------------ */

typedef struct draft {
    cx_call *call;
    const cx_json *body;
    cx_scope scope;
    cx_id object;
    bool at;
    uint64_t snapshot;
    const char *wrong; /* the pointer of the first member that is wrong */
    const char *expected;
    size_t known; /* members that were read */
} draft;

static void reject_member(draft *d, const char *pointer, const char *expected)
{
    if (d->wrong == NULL) {
        d->wrong = pointer;
        d->expected = expected;
    }
}

/* `pointer` is '/' and the member's name. */
static const cx_json *read_member(draft *d, const char *pointer)
{
    const cx_json *value = cx_json_get(d->body, cx_str_z(pointer + 1));
    d->known += value != NULL;
    return value;
}

static cx_str read_text(draft *d, const char *pointer, bool required)
{
    const cx_json *value = read_member(d, pointer);
    if (value != NULL && value->type == CX_JSON_STRING && value->count != 0)
        return cx_json_text(value);
    if (value != NULL || required)
        reject_member(d, pointer, "expected text that is not empty");
    return (cx_str){NULL, 0};
}

/* A list of texts; NULL when it is absent. */
static const cx_json *read_list(draft *d, const char *pointer)
{
    const cx_json *value = read_member(d, pointer);
    bool is_list = value != NULL && value->type == CX_JSON_ARRAY;
    for (uint32_t i = 0; is_list && i < value->count; i++)
        is_list = value->items[i].type == CX_JSON_STRING && value->items[i].count != 0;
    if (value != NULL && !is_list)
        reject_member(d, pointer, "expected a list of texts");
    return is_list ? value : NULL;
}

static cx_status read_types(draft *d, const char *pointer, cx_bytes *out, cx_err *err)
{
    const cx_json *list = read_list(d, pointer);
    uint8_t *types = CX_ARENA_ARRAY(d->call->arena, uint8_t, CX_TYPE_MAX + 1);
    size_t count = 0;
    if (types == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; list != NULL && i < list->count; i++) {
        uint8_t type = cx_uri_type_code(cx_json_text(&list->items[i]));
        if (type == 0)
            reject_member(d, pointer, "expected names of types, such as Fact");
        else if (memchr(types, type, count) == NULL)
            types[count++] = type;
    }
    *out = cx_bytes_from(types, count);
    return CX_SUCCESS;
}

static cx_status read_tags(draft *d, const char *pointer, cx_strs *out, cx_err *err)
{
    const cx_json *list = read_list(d, pointer);
    if (list == NULL)
        return CX_SUCCESS;
    cx_str *tags = CX_ARENA_ARRAY(d->call->arena, cx_str, list->count + 1);
    if (tags == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < list->count; i++)
        tags[i] = cx_json_text(&list->items[i]);
    out->items = tags;
    out->count = list->count;
    return CX_SUCCESS;
}

static cx_status read_ids(draft *d, const char *pointer, cx_selector *out, cx_err *err)
{
    const cx_json *list = read_list(d, pointer);
    if (list == NULL)
        return CX_SUCCESS;
    cx_id *ids = CX_ARENA_ARRAY(d->call->arena, cx_id, list->count + 1);
    if (ids == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < list->count; i++) {
        cx_str text = cx_json_text(&list->items[i]);
        cx_uri uri = {0};
        if (cx_ulid_parse(text, &ids[i]))
            continue;
        if (cx_failed(cx_memory_uri_parse(text, &uri, NULL)) || uri.is_edge)
            reject_member(d, pointer, "expected URIs or ULIDs of memories");
        ids[i] = uri.id;
    }
    out->ids = ids;
    out->id_count = list->count;
    return CX_SUCCESS;
}

static void read_frame(draft *d)
{
    const cx_json *frame = read_member(d, "/frame");
    if (frame == NULL)
        return;
    bool is_object = frame->type == CX_JSON_OBJECT && frame->count == 2;
    cx_str verb = is_object ? CX_JSON_GET_STR(frame, "verb") : (cx_str){NULL, 0};
    cx_str ref = is_object ? CX_JSON_GET_STR(frame, "ref") : (cx_str){NULL, 0};
    cx_selector *include = &d->scope.include;
    include->verb = verb.size == 0 ? 0 : cx_verb_code(verb);
    if (include->verb == 0 || ref.size == 0) {
        reject_member(d, "/frame", "expected {verb, ref}, such as acquire and gpu");
        return;
    }
    d->object = cx_obj_hash(ref);
    include->has_frame = true;
    include->objects = &d->object;
    include->object_count = 1;
}

static void read_rest(draft *d)
{
    const cx_json *expires = read_member(d, "/expires_at"), *budget = read_member(d, "/budget");
    const cx_json *writable = read_member(d, "/writable"), *at = read_member(d, "/snapshot");
    cx_scope *scope = &d->scope;
    scope->expires = expires != NULL;
    if (expires != NULL && (expires->type == CX_JSON_STRING
                                ? !cx_form_parse_time(cx_json_text(expires), &scope->expires_at)
                                : !cx_json_int64(expires, &scope->expires_at)))
        reject_member(d, "/expires_at", "expected RFC 3339, or seconds since 1970");
    if (budget != NULL && !cx_json_uint64(budget, &scope->budget_tokens))
        reject_member(d, "/budget", "expected a count of tokens");
    if (writable != NULL && writable->type != CX_JSON_TRUE && writable->type != CX_JSON_FALSE)
        reject_member(d, "/writable", "expected true or false");
    scope->writable = writable != NULL && writable->type == CX_JSON_TRUE;
    d->at = at != NULL;
    if (at != NULL && !cx_json_uint64(at, &d->snapshot))
        reject_member(d, "/snapshot", "expected the number of a snapshot");
}

static cx_status read_draft(draft *d, cx_err *err)
{
    cx_scope *scope = &d->scope;
    scope->schema = CX_SCOPE_SCHEMA;
    scope->signature.null = true;
    scope->actor = read_text(d, "/actor", true);
    scope->granted_to = read_text(d, "/granted_to", true);
    scope->granted_by = read_text(d, "/granted_by", false);
    if (scope->granted_by.size == 0)
        scope->granted_by = scope->actor;
    CX_TRY(read_types(d, "/types", &scope->include.types, err));
    CX_TRY(read_types(d, "/not_types", &scope->exclude.types, err));
    CX_TRY(read_tags(d, "/tags", &scope->include.tags, err));
    CX_TRY(read_tags(d, "/not_tags", &scope->exclude.tags, err));
    CX_TRY(read_ids(d, "/ids", &scope->include, err));
    CX_TRY(read_ids(d, "/not_ids", &scope->exclude, err));
    read_frame(d);
    read_rest(d);
    if (d->known != d->body->count)
        reject_member(d, "",
                      "unknown member; expected actor, granted_to, granted_by, snapshot, "
                      "types, tags, ids, frame, not_types, not_tags, not_ids, expires_at, "
                      "budget and writable");
    if (d->wrong == NULL && cx_selector_is_empty(&scope->include))
        reject_member(d, "",
                      "expected at least one of types, tags, ids and frame: what may be "
                      "read");
    return CX_SUCCESS;
}

/* --- make ------------------------------------------------------------------------------------- */

static cx_status answer_draft(draft *d, cx_err *err)
{
    cx_call *call = d->call;
    cx_json_list answer = cx_json_list_begin(call->arena);
    cx_json value;
    cx_buf bytes;
    cx_buf_init(&bytes, call->service->alloc);
    cx_scope_to_sign(&d->scope, &bytes);
    cx_status status = cx_buf_check(&bytes, err);
    cx_json_put_str(&answer, "actor", d->scope.actor);
    cx_json_put_str(&answer, "granted_by", d->scope.granted_by);
    cx_json_put_str(&answer, "granted_to", d->scope.granted_to);
    cx_json_put_digest(&answer, "overall_root", &d->scope.snapshot_hash);
    if (!cx_failed(status))
        status = cx_scope_call_put_base64(call, &answer, "scope", cx_buf_bytes(&bytes), err);
    cx_buf_done(&bytes);
    CX_TRY(status);
    cx_json_put_uint(&answer, "snapshot", d->snapshot);
    CX_TRY(cx_json_list_end_object(&answer, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

/* N1 */
cx_status cx_api_scope_make(cx_call *call, cx_err *err)
{
    cx_json body;
    draft d = {.call = call, .body = &body};
    bool read;
    CX_TRY(cx_call_json(call, &body, &read, err));
    if (!read)
        return CX_SUCCESS;
    if (body.type != CX_JSON_OBJECT) {
        cx_call_refuse_member(call, "", "expected an object");
        return CX_SUCCESS;
    }
    CX_TRY(read_draft(&d, err));
    if (d.wrong != NULL) {
        cx_call_refuse_member(call, d.wrong, d.expected);
        return CX_SUCCESS;
    }
    const uint64_t at = d.snapshot;
    CX_TRY(cx_scope_pin(cx_recorder_home(call->service->recorder), &d.scope, d.at ? &at : NULL,
                        call->arena, &d.snapshot, err));
    return answer_draft(&d, err);
}

/* --- send ------------------------------------------------------------------------------------- */

/* The member `signature` completes a scope that has none. */
static cx_status add_signature(cx_scope_call *s, bool *out_read, cx_err *err)
{
    cx_bytes signature = {NULL, 0};
    cx_scope scope;
    cx_buf bytes;
    if (CX_JSON_GET(&s->body, "signature") == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_scope_call_base64(s, "signature", &signature, out_read, err));
    if (!*out_read || signature.size != sizeof(cx_signature)) {
        *out_read = false;
        cx_call_refuse_member(s->call, "/signature",
                              "expected the 64 bytes of a signature as base64");
        return CX_SUCCESS;
    }
    if (cx_failed(cx_scope_decode(s->bytes, s->call->arena, &scope, NULL)) ||
        !scope.signature.null) {
        *out_read = false;
        cx_call_refuse_member(s->call, "/signature",
                              "expected none: the scope cannot be read, or has a signature");
        return CX_SUCCESS;
    }
    scope.signature = (cx_maybe_bytes){.bytes = signature};
    cx_buf_init(&bytes, s->call->service->alloc);
    cx_scope_encode(&scope, &bytes);
    cx_str whole = cx_arena_copy_str(s->call->arena, cx_buf_str(&bytes));
    bool failed = bytes.failed || whole.data == NULL;
    cx_buf_done(&bytes);
    s->bytes = cx_str_bytes(whole);
    return failed ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status send_scope(cx_scope_call *s, uint64_t *out_seq, bool *out_duplicate, cx_err *err)
{
    cx_call *call = s->call;
    cx_memory *memory = NULL;
    cx_str who = cx_call_principal(call);
    if (who.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_memory_open(cx_recorder_home(call->service->recorder), s->scope.actor, NULL, &memory,
                          err));
    cx_status status = cx_memory_send_scope(memory, s->bytes, who, out_seq, out_duplicate, err);
    cx_memory_close(memory);
    if (status.code == CX_E_IO)
        atomic_store(&call->service->ledger_failed, true);
    return status;
}

/* N2 */
cx_status cx_api_scope_send(cx_call *call, cx_err *err)
{
    cx_scope_call s = {.call = call};
    cx_json_list answer = cx_json_list_begin(call->arena);
    cx_json value;
    uint64_t seq = 0;
    bool read, duplicate = false;
    CX_TRY(cx_scope_call_read(&s, &read, err));
    if (read)
        CX_TRY(add_signature(&s, &read, err));
    if (!read)
        return CX_SUCCESS;
    CX_TRY(cx_scope_call_verify(&s, false, err));
    CX_TRY(cx_scope_call_require(&s, err));
    CX_TRY(send_scope(&s, &seq, &duplicate, err));
    const cx_digest id = cx_digest_of(s.bytes);
    cx_json_put_str(&answer, "actor", s.scope.actor);
    cx_json_put_bool(&answer, "duplicate", duplicate);
    cx_json_put_uint(&answer, "entry", seq);
    cx_json_put_str(&answer, "granted_to", s.scope.granted_to);
    cx_json_put_digest(&answer, "id", &id);
    CX_TRY(cx_json_list_end_object(&answer, &value, err));
    return cx_call_answer_json(call, duplicate ? 200 : 201, &value, err);
}

/* --- receive ---------------------------------------------------------------------------------- */

cx_status cx_api_scopes(cx_call *call, cx_err *err)
{
    cx_json_list answer = cx_json_list_begin(call->arena), list = cx_json_list_begin(call->arena);
    const cx_sent_scope *sent;
    size_t count;
    cx_json value;
    CX_TRY(cx_sent_scopes_of(cx_recorder_home(call->service->recorder), cx_str_z(call->token.name),
                             CX_SENT_SCOPES_MAX, call->arena, &sent, &count, err));
    for (size_t i = 0; call->token.name[0] != 0 && i < count; i++) { /* N3 */
        cx_json_list item = cx_json_list_begin(call->arena);
        cx_view_sent_scope(&sent[i], &item);
        cx_json_add_object(&list, &item);
    }
    cx_json_put_array(&answer, "scopes", &list);
    cx_json_put_bool(&answer, "truncated", count == CX_SENT_SCOPES_MAX);
    CX_TRY(cx_json_list_end_object(&answer, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

cx_status cx_api_scope(cx_call *call, cx_err *err)
{
    cx_json_list answer = cx_json_list_begin(call->arena);
    cx_sent_scope sent;
    cx_digest id;
    cx_json value;
    bool found = false;
    if (cx_digest_parse(call->captures[0], &id))
        CX_TRY(cx_sent_scope_find(cx_recorder_home(call->service->recorder), &id, call->arena,
                                  &sent, &found, err));
    if (!found || !cx_str_is(sent.scope.granted_to, call->token.name)) /* N3 */
        return cx_fail_at(err, CX_E_NOT_FOUND, "NotFound", CX_NO_OFFSET,
                          "no scope with that id was sent to %s; GET /api/v1/scopes lists those "
                          "that were",
                          call->token.name[0] == 0 ? "this token, which has no name"
                                                   : call->token.name);
    cx_view_sent_scope(&sent, &answer);
    CX_TRY(cx_scope_call_put_base64(call, &answer, "scope", sent.bytes, err));
    CX_TRY(cx_json_list_end_object(&answer, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}
