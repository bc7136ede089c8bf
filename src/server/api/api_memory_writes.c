/*
 * api_memory_writes.c - POST /api/v1/actors/{actor}/..: memories, their labels and edges, and
 * attestations.  A body has the members of a step of `cortex apply` (memory/apply.h), and `key`.
 *
 *   W1  Who wrote is the token: `created_by` and `by` are entered here and refused in a body.
 *   W2  A request with a key is carried out once (memory.h): sent again it is answered as before,
 *       with `duplicate` true.
 *   W3  200 and 201 are answered when the entries are on the disk.
 */
#include "crypto/api.h"
#include "memory/api.h"
#include "server/route.h"

typedef struct write_call {
    cx_call *call;
    cx_str actor;
    const char *op;
    const char *by; /* the member of the step that says who wrote */
    cx_json step;
    cx_memory_request request;
} write_call;

/* --- the body --------------------------------------------------------------------------------- */

/* W1 */
static const char *find_reserved(const cx_json *body)
{
    static const char *const reserved[] = {"created_by", "by", "op", "args", "now_ns"};
    static const char *const pointers[] = {"/created_by", "/by", "/op", "/args", "/now_ns"};
    for (size_t i = 0; i < CX_COUNT_OF(reserved); i++)
        if (cx_json_get(body, cx_str_z(reserved[i])) != NULL)
            return pointers[i];
    return NULL;
}

/* False: the call was answered. */
static bool check_body(write_call *w, const cx_json *body)
{
    const cx_json *key = body->type == CX_JSON_OBJECT ? CX_JSON_GET(body, "key") : NULL;
    const char *reserved = body->type == CX_JSON_OBJECT ? find_reserved(body) : NULL;
    if (body->type != CX_JSON_OBJECT) {
        cx_call_refuse_member(w->call, "", "expected an object");
        return false;
    }
    if (reserved != NULL) {
        cx_call_refuse_member(w->call, reserved,
                              "the server enters this member itself; leave it out");
        return false;
    }
    if (key != NULL &&
        (key->type != CX_JSON_STRING || key->count == 0 || key->count > CX_REQUEST_KEY_SIZE_MAX)) {
        cx_call_refuse_member(w->call, "/key", "expected text of 1 to 256 bytes");
        return false;
    }
    if (key != NULL)
        w->request.key = cx_json_text(key);
    return true;
}

/* The step, and the hash of what it asks for. */
static cx_status make_step(write_call *w, const cx_json *body, cx_err *err)
{
    cx_json_list args = cx_json_list_begin(w->call->arena);
    cx_json_list step = cx_json_list_begin(w->call->arena);
    cx_json value;
    cx_buf text;
    for (uint32_t i = 0; i < body->count; i++) {
        cx_str name = cx_json_text(&body->members[i].name);
        if (!cx_str_is(name, "key") && !(w->request.scope != NULL && cx_str_is(name, "scope")))
            cx_json_list_put(&args, name, body->members[i].value);
    }
    if (w->by != NULL) /* under a scope it is the agent that the scope was granted to */
        cx_json_put_str(&args, w->by, w->request.sender);
    CX_TRY(cx_json_list_end_object(&args, &value, err));
    cx_json_list_put(&step, CX_STR("args"), value);
    cx_json_put_z(&step, "op", w->op);
    CX_TRY(cx_json_list_end_object(&step, &w->step, err));
    cx_buf_init(&text, w->call->service->alloc);
    cx_buf_add_str(&text, w->actor);
    cx_buf_add_byte(&text, '\n');
    cx_status status = cx_json_write(&text, &w->step, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    if (!cx_failed(status))
        w->request.content = cx_digest_of(cx_buf_bytes(&text));
    cx_buf_done(&text);
    return status;
}

/* --- the answer ------------------------------------------------------------------------------- */

static cx_status answer_written(write_call *w, cx_err *err)
{
    const cx_memory_request *request = &w->request;
    cx_json_list answer = cx_json_list_begin(w->call->arena);
    cx_json value;
    cx_buf uri;
    cx_json_put_bool(&answer, "duplicate", request->repeated);
    if (request->wrote)
        cx_json_put_uint(&answer, "entry", request->seq);
    else
        cx_json_put_null(&answer, "entry");
    cx_buf_init(&uri, w->call->service->alloc);
    if (request->has_uri)
        cx_uri_add(&request->uri, &uri);
    cx_str text = cx_arena_copy_str(w->call->arena, cx_buf_str(&uri));
    bool failed = uri.failed || text.data == NULL;
    cx_buf_done(&uri);
    if (failed)
        return cx_fail_nomem(err);
    if (request->has_uri)
        cx_json_put_str(&answer, "uri", text);
    else
        cx_json_put_null(&answer, "uri");
    cx_json_put_uint(&answer, "used", request->used);
    CX_TRY(cx_json_list_end_object(&answer, &value, err));
    bool made = strcmp(w->op, "write") == 0 && !request->repeated;
    return cx_call_answer_json(w->call, made ? 201 : 200, &value, err);
}

/* A journal that other parts of the program write is no place for memories. */
static cx_status check_actor(cx_str actor, cx_err *err)
{
    if (!cx_kinds_journal_is_own(actor))
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_DENIED, "InvalidActor", CX_NO_OFFSET,
                      "the journal %.*s is written by this program itself", (int)actor.size,
                      actor.data);
}

static cx_status apply_step(write_call *w, cx_err *err)
{
    cx_call *call = w->call;
    const cx_memory_options options = {.alloc = call->service->alloc, .request = &w->request};
    cx_home *home = cx_recorder_home(call->service->recorder);
    cx_apply *apply;
    cx_applied_step applied;
    CX_TRY(cx_apply_open(home, w->actor, &options, &apply, err));
    cx_status status = cx_apply_step(apply, &w->step, call->arena, &applied, err);
    cx_apply_close(apply);
    if (status.code == CX_E_IO)
        atomic_store(&call->service->ledger_failed, true);
    CX_TRY(status);
    if (!applied.refused || w->request.repeated)
        return answer_written(w, err);
    if (err != NULL)
        *err = applied.reason;
    return (cx_status){applied.reason.code};
}

static cx_status write_body(write_call *w, const cx_json *body, cx_err *err)
{
    if (!check_body(w, body))
        return CX_SUCCESS;
    w->request.sender = cx_call_principal(w->call);
    if (w->request.sender.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(make_step(w, body, err));
    return apply_step(w, err);
}

static cx_status write_memory(cx_call *call, const char *op, const char *by, cx_err *err)
{
    write_call w = {.call = call, .actor = call->captures[0], .op = op, .by = by};
    cx_json body;
    bool read;
    CX_TRY(check_actor(w.actor, err));
    CX_TRY(cx_call_json(call, &body, &read, err));
    return read ? write_body(&w, &body, err) : CX_SUCCESS;
}

cx_status cx_api_write_under(cx_call *call, const char *op, const cx_json *body,
                             const cx_scope_use *scope, const cx_digest *grant, cx_err *err)
{
    write_call w = {.call = call,
                    .actor = scope->scope.actor,
                    .op = op,
                    .request = {.scope = scope, .grant = *grant}};
    CX_TRY(check_actor(w.actor, err));
    return write_body(&w, body, err);
}

cx_status cx_api_memory_write(cx_call *call, cx_err *err)
{
    return write_memory(call, "write", "created_by", err);
}

cx_status cx_api_memory_update(cx_call *call, cx_err *err)
{
    return write_memory(call, "update", "created_by", err);
}

cx_status cx_api_memory_labels(cx_call *call, cx_err *err)
{
    return write_memory(call, "update_head", "by", err);
}

cx_status cx_api_memory_tombstone(cx_call *call, cx_err *err)
{
    return write_memory(call, "tombstone", "by", err);
}

cx_status cx_api_edge_add(cx_call *call, cx_err *err)
{
    return write_memory(call, "add_edge", "by", err);
}

cx_status cx_api_edge_remove(cx_call *call, cx_err *err)
{
    return write_memory(call, "remove_edge", "by", err);
}

cx_status cx_api_memory_attest(cx_call *call, cx_err *err)
{
    return write_memory(call, "attest", "by", err);
}
