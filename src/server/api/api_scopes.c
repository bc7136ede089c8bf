/*
 * api_scopes.c - POST /api/v1/scopes/..: an agent presents a scope that was granted to it
 * (ledger.md §10.3), and reads, searches or writes what the scope allows.
 *
 *   G1  A scope counts when its grantor's key is registered, of that id or for that agent, and is
 *       neither revoked nor out of its time; and when its grantee is the name of the token.
 *   G2  What the scope does not allow is refused and journaled (memory/scoped.c).
 *   G3  The journal is that of the scope's actor; nothing in the request chooses another.
 */
#include "crypto/api.h"
#include "ledger/api.h"
#include "server/api/scope_call.h"

#define FIND_LIMIT_DEFAULT 50

/* --- the scope -------------------------------------------------------------------------------- */

/* G1 */
static cx_status find_key(void *arg, cx_str agent, cx_pubkey *out, bool *out_found, cx_err *err)
{
    const cx_scope_call *s = arg;
    (void)err;
    *out_found = cx_trust_key_of_agent(&s->trust, agent, s->now_ns, out);
    return CX_SUCCESS;
}

static cx_status find_snapshot(void *arg, const cx_digest *overall_root, cx_bytes *out_manifest,
                               bool *out_found, cx_err *err)
{
    cx_scope_call *s = arg;
    cx_manifest manifest;
    cx_err why;
    cx_status status =
        cx_snapshot_by_root(cx_recorder_home(s->call->service->recorder), s->scope.actor,
                            overall_root, s->call->arena, &manifest, out_manifest, &why);
    *out_found = !cx_failed(status);
    if (!cx_failed(status) || status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    if (err != NULL)
        *err = why;
    return status;
}

cx_status cx_scope_call_base64(cx_scope_call *s, const char *name, cx_bytes *out, bool *out_read,
                               cx_err *err)
{
    cx_call *call = s->call;
    cx_buf bytes;
    cx_buf_init(&bytes, call->service->alloc);
    cx_str text = s->body.type == CX_JSON_OBJECT ? cx_json_get_str(&s->body, cx_str_z(name))
                                                 : (cx_str){NULL, 0};
    *out_read = text.size != 0 && cx_base64_decode(text, CX_BASE64, &bytes);
    cx_str kept = cx_arena_copy_str(call->arena, cx_buf_str(&bytes));
    bool failed = bytes.failed || kept.data == NULL;
    cx_buf_done(&bytes);
    *out = cx_str_bytes(kept);
    return failed ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_scope_call_put_base64(cx_call *call, cx_json_list *list, const char *name,
                                   cx_bytes bytes, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, call->service->alloc);
    cx_base64_add(&text, bytes, CX_BASE64);
    cx_str kept = cx_arena_copy_str(call->arena, cx_buf_str(&text));
    bool failed = text.failed || kept.data == NULL;
    cx_buf_done(&text);
    if (failed)
        return cx_fail_nomem(err);
    cx_json_put_str(list, name, kept);
    return CX_SUCCESS;
}

/* A scope that was sent is named by its id, 64 hex digits: too short to be the base64 of any scope
 * that is signed. */
static cx_status find_sent(cx_scope_call *s, const cx_digest *id, bool *out_read, cx_err *err)
{
    cx_sent_scope sent;
    CX_TRY(cx_sent_scope_find(cx_recorder_home(s->call->service->recorder), id, s->call->arena,
                              &sent, out_read, err));
    if (*out_read)
        s->bytes = sent.bytes;
    else
        cx_call_refuse_member(s->call, "/scope", "no scope with this id was sent to this server");
    return CX_SUCCESS;
}

cx_status cx_scope_call_read(cx_scope_call *s, bool *out_read, cx_err *err)
{
    cx_digest id;
    CX_TRY(cx_call_json(s->call, &s->body, out_read, err));
    if (!*out_read)
        return CX_SUCCESS;
    if (s->body.type == CX_JSON_OBJECT && cx_digest_parse(CX_JSON_GET_STR(&s->body, "scope"), &id))
        return find_sent(s, &id, out_read, err);
    CX_TRY(cx_scope_call_base64(s, "scope", &s->bytes, out_read, err));
    if (!*out_read)
        cx_call_refuse_member(s->call, "/scope",
                              "expected the bytes of a scope ('cortex scope make') as base64, or "
                              "the id of one that was sent");
    return CX_SUCCESS;
}

cx_status cx_scope_call_verify(cx_scope_call *s, bool presented, cx_err *err)
{
    cx_call *call = s->call;
    const cx_io *io = call->service->io;
    s->now_ns = (int64_t)io->wall_ns(io);
    CX_TRY(cx_recorder_trust(call->service->recorder, call->arena, &s->trust, err));
    if (cx_failed(cx_scope_decode(s->bytes, call->arena, &s->scope, NULL)))
        s->scope = (cx_scope){.actor = CX_STR("")}; /* G3: which the verification says */
    const cx_scope_check check = {
        .actor = s->scope.actor,
        .now_ns = s->now_ns,
        .key = find_key,
        .key_arg = s,
        .snapshot = find_snapshot,
        .snapshot_arg = s,
        .has_presenter = presented,
        .presenter = cx_str_z(call->token.name),
    };
    return cx_scope_verify(s->bytes, &check, call->arena, &s->granted, &s->finding, err);
}

cx_status cx_scope_call_require(cx_scope_call *s, cx_err *err)
{
    if (s->finding.verdict == CX_HOLDS)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_DENIED, s->finding.reason, CX_NO_OFFSET,
                      "the scope does not hold: %s: %s", s->finding.reason, s->finding.message);
}

typedef cx_status scoped_answer(cx_scope_call *s, cx_memory *memory, cx_err *err);

static cx_status answer_under_scope(cx_call *call, scoped_answer *answer, cx_err *err)
{
    cx_scope_call s = {.call = call};
    cx_memory *memory = NULL;
    bool read;
    CX_TRY(cx_scope_call_read(&s, &read, err));
    if (!read)
        return CX_SUCCESS;
    CX_TRY(cx_scope_call_verify(&s, true, err));
    CX_TRY(cx_scope_call_require(&s, err));
    CX_TRY(cx_memory_open(cx_recorder_home(call->service->recorder), s.scope.actor, NULL, &memory,
                          err));
    cx_status status = answer(&s, memory, err);
    cx_memory_close(memory);
    return status;
}

/* --- check ------------------------------------------------------------------------------------ */

cx_status cx_api_scope_check(cx_call *call, cx_err *err)
{
    cx_scope_call s = {.call = call};
    cx_json_list answer = cx_json_list_begin(call->arena);
    cx_json value;
    bool read;
    CX_TRY(cx_scope_call_read(&s, &read, err));
    if (!read)
        return CX_SUCCESS;
    CX_TRY(cx_scope_call_verify(&s, true, err));
    cx_json_put_str(&answer, "actor", s.scope.actor);
    cx_json_put_str(&answer, "detail", cx_str_z(s.finding.message));
    cx_json_put_time(&answer, "expires_at", s.scope.expires, s.scope.expires_at);
    cx_json_put_str(&answer, "granted_by", s.scope.granted_by);
    cx_json_put_str(&answer, "granted_to", s.scope.granted_to);
    if (s.finding.reason == NULL)
        cx_json_put_null(&answer, "reason");
    else
        cx_json_put_z(&answer, "reason", s.finding.reason);
    cx_json_put_z(&answer, "verdict", cx_verdict_name(s.finding.verdict));
    cx_json_put_bool(&answer, "writable", s.scope.writable);
    CX_TRY(cx_json_list_end_object(&answer, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

/* --- read ------------------------------------------------------------------------------------- */

static cx_status answer_read(cx_scope_call *s, cx_memory *memory, cx_err *err)
{
    cx_str text = CX_JSON_GET_STR(&s->body, "uri");
    cx_json_list answer = cx_json_list_begin(s->call->arena);
    cx_memory_view view;
    cx_json value;
    cx_uri uri;
    if (text.data == NULL || s->body.count != 2) {
        cx_call_refuse_member(s->call, "/uri", "expected scope and uri, the memory to read");
        return CX_SUCCESS;
    }
    CX_TRY(cx_memory_uri_parse(text, &uri, err));
    CX_TRY(cx_memory_resolve_scoped(memory, &uri, &s->granted, s->call->arena, &view, err));
    CX_TRY(cx_view_memory(&view, &answer, err));
    CX_TRY(cx_json_list_end_object(&answer, &value, err));
    return cx_call_answer_json(s->call, 200, &value, err);
}

cx_status cx_api_scope_read(cx_call *call, cx_err *err)
{
    return answer_under_scope(call, answer_read, err);
}

/* --- find ------------------------------------------------------------------------------------- */

/* NULL, or the member that is wrong. */
static const char *read_query(cx_scope_call *s, cx_memory_find *find)
{
    cx_arena *arena = s->call->arena;
    const cx_json *types = CX_JSON_GET(&s->body, "types"), *tags = CX_JSON_GET(&s->body, "tags");
    const cx_json *limit = CX_JSON_GET(&s->body, "limit"), *words = CX_JSON_GET(&s->body, "words");
    size_t count = 1;
    uint64_t most = FIND_LIMIT_DEFAULT;
    count += types != NULL;
    count += tags != NULL;
    count += limit != NULL;
    count += words != NULL;
    if (s->body.count != count)
        return "";
    if (limit != NULL && (!cx_json_uint64(limit, &most) || most == 0 || most > CX_FIND_LIMIT_MAX))
        return "/limit";
    find->limit = (size_t)most;
    if (words != NULL && (words->type != CX_JSON_STRING || words->count == 0))
        return "/words";
    if (words != NULL)
        find->text = cx_json_text(words);
    if ((types != NULL && types->type != CX_JSON_ARRAY) ||
        (types == NULL && tags == NULL && words == NULL))
        return "/types";
    uint8_t *codes = CX_ARENA_ARRAY(arena, uint8_t, types == NULL ? 1 : types->count + 1);
    cx_str *texts = CX_ARENA_ARRAY(arena, cx_str, tags == NULL ? 1 : tags->count + 1);
    for (uint32_t i = 0; types != NULL && codes != NULL && i < types->count; i++) {
        codes[i] = types->items[i].type == CX_JSON_STRING
                       ? cx_uri_type_code(cx_json_text(&types->items[i]))
                       : 0;
        if (codes[i] == 0)
            return "/types";
    }
    if (tags != NULL && tags->type != CX_JSON_ARRAY)
        return "/tags";
    for (uint32_t i = 0; tags != NULL && texts != NULL && i < tags->count; i++) {
        if (tags->items[i].type != CX_JSON_STRING)
            return "/tags";
        texts[i] = cx_json_text(&tags->items[i]);
    }
    if (codes == NULL || texts == NULL)
        return "";
    find->types = cx_bytes_from(codes, types == NULL ? 0 : types->count);
    find->tags = texts;
    find->tag_count = tags == NULL ? 0 : tags->count;
    return NULL;
}

static cx_status answer_find(cx_scope_call *s, cx_memory *memory, cx_err *err)
{
    cx_json_list answer = cx_json_list_begin(s->call->arena);
    cx_json_list hits = cx_json_list_begin(s->call->arena);
    cx_memory_find find = {.scope = &s->granted, .budget_tokens = s->scope.budget_tokens};
    const cx_memory_hit *found;
    size_t count;
    cx_json value;
    const char *wrong = read_query(s, &find);
    if (wrong != NULL) {
        cx_call_refuse_member(
            s->call, wrong,
            "expected scope, types (names), tags (texts) or words (text), and limit (1 to "
            "1000)");
        return CX_SUCCESS;
    }
    CX_TRY(cx_memory_find_all(memory, &find, s->call->arena, &found, &count, err));
    for (size_t i = 0; i < count; i++) {
        cx_json_list hit = cx_json_list_begin(s->call->arena);
        CX_TRY(cx_view_memory(&found[i].view, &hit, err));
        cx_json_add_object(&hits, &hit);
    }
    cx_json_put_str(&answer, "actor", s->scope.actor);
    cx_json_put_uint(&answer, "count", count);
    cx_json_put_array(&answer, "memories", &hits);
    cx_json_put_null(&answer, "next");
    CX_TRY(cx_json_list_end_object(&answer, &value, err));
    return cx_call_answer_json(s->call, 200, &value, err);
}

cx_status cx_api_scope_find(cx_call *call, cx_err *err)
{
    return answer_under_scope(call, answer_find, err);
}

/* --- writing ---------------------------------------------------------------------------------- */

static cx_status answer_written(cx_scope_call *s, const char *op, cx_err *err)
{
    const cx_digest grant = cx_digest_of(s->bytes);
    return cx_api_write_under(s->call, op, &s->body, &s->granted, &grant, err);
}

static cx_status answer_write(cx_scope_call *s, cx_memory *memory, cx_err *err)
{
    (void)memory;
    return answer_written(s, "write", err);
}

cx_status cx_api_scope_write(cx_call *call, cx_err *err)
{
    return answer_under_scope(call, answer_write, err);
}

static cx_status answer_update(cx_scope_call *s, cx_memory *memory, cx_err *err)
{
    (void)memory;
    return answer_written(s, "update", err);
}

cx_status cx_api_scope_update(cx_call *call, cx_err *err)
{
    return answer_under_scope(call, answer_update, err);
}

static cx_status answer_labels(cx_scope_call *s, cx_memory *memory, cx_err *err)
{
    (void)memory;
    return answer_written(s, "update_head", err);
}

cx_status cx_api_scope_labels(cx_call *call, cx_err *err)
{
    return answer_under_scope(call, answer_labels, err);
}
