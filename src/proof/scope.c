/*
 * scope.c - scopes as bytes, whom they bind, and what they let through (ledger.md §10.3).
 *
 *     { 0: schema, 1 actor, 2 snapshot_hash, 3 include, 4 exclude (o), 5 multiproof (o),
 *       6 expires_at or null, 7 budget_tokens (o), 8 granted_by, 9 granted_to, 10 writable (o),
 *       11 signature or null }
 *     selector { 1 types, 2 tags, 3 ids, 4 frame { 1 verb, 2 [obj_hash] } }, all (o)
 *
 * I1  encode(decode(bytes)) == bytes for all bytes that decode.
 * I2  a scope holds only when every step of the verification was done and held.
 */
#include "proof/scope.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cbor/api.h"

/* --- encode ---------------------------------------------------------------------------------- */

static void encode_ids(const cx_id *ids, size_t count, cx_buf *out)
{
    cx_cbor_array(out, count);
    for (size_t i = 0; i < count; i++)
        cx_cbor_bytes(out, cx_bytes_from(ids[i].bytes, sizeof ids[i].bytes));
}

static void encode_frame(const cx_selector *selector, cx_buf *out)
{
    cx_cbor_map(out, 2);
    cx_cbor_uint(out, 1);
    cx_cbor_uint(out, selector->verb);
    cx_cbor_uint(out, 2);
    if (selector->objects_null)
        cx_cbor_null(out);
    else
        encode_ids(selector->objects, selector->object_count, out);
}

static void encode_selector(const cx_selector *selector, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    if (selector->types.size != 0) {
        cx_cbor_field(&fields, 1);
        cx_cbor_bytes(out, selector->types);
    }
    if (selector->tags.count != 0) {
        cx_cbor_field(&fields, 2);
        cx_cbor_array(out, selector->tags.count);
        for (size_t i = 0; i < selector->tags.count; i++)
            cx_cbor_text(out, selector->tags.items[i]);
    }
    if (selector->id_count != 0) {
        cx_cbor_field(&fields, 3);
        encode_ids(selector->ids, selector->id_count, out);
    }
    if (selector->has_frame) {
        cx_cbor_field(&fields, 4);
        encode_frame(selector, out);
    }
    cx_cbor_fields_end(&fields);
}

/* Fields 0 to 7. */
static void encode_terms(const cx_scope *scope, cx_cbor_fields *fields, cx_buf *out)
{
    cx_cbor_field(fields, 0);
    cx_cbor_uint(out, scope->schema);
    cx_cbor_field(fields, 1);
    cx_cbor_text(out, scope->actor);
    cx_cbor_field(fields, 2);
    cx_cbor_digest(out, &scope->snapshot_hash);
    cx_cbor_field(fields, 3);
    encode_selector(&scope->include, out);
    if (!cx_selector_is_empty(&scope->exclude)) {
        cx_cbor_field(fields, 4);
        encode_selector(&scope->exclude, out);
    }
    if (scope->multiproof.size != 0) {
        cx_cbor_field(fields, 5);
        cx_buf_add(out, scope->multiproof.data, scope->multiproof.size);
    }
    cx_cbor_field(fields, 6);
    if (scope->expires)
        cx_cbor_int(out, scope->expires_at);
    else
        cx_cbor_null(out);
    if (scope->budget_tokens != 0) {
        cx_cbor_field(fields, 7);
        cx_cbor_uint(out, scope->budget_tokens);
    }
}

static void encode_scope(const cx_scope *scope, const cx_maybe_bytes *signature, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    encode_terms(scope, &fields, out);
    cx_cbor_field(&fields, 8);
    cx_cbor_text(out, scope->granted_by);
    cx_cbor_field(&fields, 9);
    cx_cbor_text(out, scope->granted_to);
    if (scope->writable) {
        cx_cbor_field(&fields, 10);
        cx_cbor_bool(out, true);
    }
    cx_cbor_field(&fields, 11);
    if (signature->null)
        cx_cbor_null(out);
    else
        cx_cbor_bytes(out, signature->bytes);
    cx_cbor_fields_end(&fields);
}

void cx_scope_encode(const cx_scope *scope, cx_buf *out)
{
    encode_scope(scope, &scope->signature, out);
}

void cx_scope_to_sign(const cx_scope *scope, cx_buf *out)
{
    static const cx_maybe_bytes none = {.null = true};
    encode_scope(scope, &none, out);
}

/* --- decode ---------------------------------------------------------------------------------- */

typedef struct decoder {
    cx_cbor_reader reader;
    cx_arena *arena;
    bool out_of_memory;
} decoder;

static const cx_id *decode_ids(decoder *d, size_t *out_count)
{
    size_t count = cx_cbor_read_array(&d->reader, SIZE_MAX);
    cx_id *ids = CX_ARENA_ARRAY(d->arena, cx_id, count + 1);
    *out_count = 0;
    if (ids == NULL) {
        d->out_of_memory = true;
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        if (!cx_cbor_read_exactly(&d->reader, ids[i].bytes, sizeof ids[i].bytes))
            return ids;
    *out_count = count;
    return ids;
}

static cx_strs decode_tags(decoder *d)
{
    size_t count = cx_cbor_read_array(&d->reader, SIZE_MAX);
    cx_str *tags = CX_ARENA_ARRAY(d->arena, cx_str, count + 1);
    if (tags == NULL) {
        d->out_of_memory = true;
        return (cx_strs){NULL, 0};
    }
    for (size_t i = 0; i < count; i++)
        tags[i] = cx_cbor_read_text(&d->reader);
    return (cx_strs){tags, count};
}

static void decode_frame(decoder *d, cx_selector *out)
{
    cx_cbor_members members = cx_cbor_read_members(&d->reader);
    out->has_frame = true;
    while (!d->out_of_memory && cx_cbor_next_member(&d->reader, &members)) {
        switch (members.key) {
        case 1: out->verb = (uint8_t)cx_cbor_read_uint_max(&d->reader, UINT8_MAX); break;
        case 2:
            out->objects_null = cx_cbor_skip_null(&d->reader);
            if (!out->objects_null)
                out->objects = decode_ids(d, &out->object_count);
            break;
        default: cx_cbor_reject_member(&d->reader, &members);
        }
    }
    cx_cbor_require(&d->reader, &members, 1u << 1 | 1u << 2);
}

static void decode_selector(decoder *d, cx_selector *out)
{
    cx_cbor_members members = cx_cbor_read_members(&d->reader);
    while (!d->out_of_memory && cx_cbor_next_member(&d->reader, &members)) {
        bool is_empty = false;
        switch (members.key) {
        case 1:
            out->types = cx_cbor_read_bytes(&d->reader);
            is_empty = out->types.size == 0;
            break;
        case 2:
            out->tags = decode_tags(d);
            is_empty = out->tags.count == 0;
            break;
        case 3:
            out->ids = decode_ids(d, &out->id_count);
            is_empty = out->id_count == 0;
            break;
        case 4: decode_frame(d, out); break;
        default: cx_cbor_reject_member(&d->reader, &members);
        }
        if (is_empty && cx_cbor_ok(&d->reader) && !d->out_of_memory)
            cx_cbor_reject_empty(&d->reader, &members);
    }
}

static void decode_late_member(decoder *d, const cx_cbor_members *members, cx_scope *out)
{
    switch (members->key) {
    case 6:
        out->expires = !cx_cbor_skip_null(&d->reader);
        if (out->expires)
            out->expires_at = cx_cbor_read_int(&d->reader);
        break;
    case 7:
        out->budget_tokens = cx_cbor_read_uint(&d->reader);
        if (out->budget_tokens == 0 && cx_cbor_ok(&d->reader))
            cx_cbor_reject_empty(&d->reader, members);
        break;
    case 8: out->granted_by = cx_cbor_read_text(&d->reader); break;
    case 9: out->granted_to = cx_cbor_read_text(&d->reader); break;
    case 10:
        out->writable = cx_cbor_read_bool(&d->reader);
        if (!out->writable && cx_cbor_ok(&d->reader))
            cx_cbor_reject_empty(&d->reader, members);
        break;
    case 11:
        out->signature.null = cx_cbor_skip_null(&d->reader);
        if (!out->signature.null)
            out->signature.bytes = cx_cbor_read_bytes(&d->reader);
        break;
    default: cx_cbor_reject_member(&d->reader, members);
    }
}

static void decode_member(decoder *d, const cx_cbor_members *members, cx_scope *out)
{
    switch (members->key) {
    case 0: out->schema = cx_cbor_read_uint(&d->reader); break;
    case 1: out->actor = cx_cbor_read_text(&d->reader); break;
    case 2: out->snapshot_hash = cx_cbor_read_digest(&d->reader); break;
    case 3: decode_selector(d, &out->include); break;
    case 4:
        decode_selector(d, &out->exclude);
        if (cx_cbor_ok(&d->reader) && !d->out_of_memory && cx_selector_is_empty(&out->exclude))
            cx_cbor_reject_empty(&d->reader, members);
        break;
    case 5:
        /* Its own rules are those of §8, looked at when the scope is verified. */
        out->multiproof = cx_cbor_read_any(&d->reader);
        break;
    default: decode_late_member(d, members, out);
    }
}

cx_status cx_scope_decode(cx_bytes bytes, cx_arena *arena, cx_scope *out, cx_err *err)
{
    decoder d = {.arena = arena};
    cx_scope scope;
    if (bytes.size > CX_SCOPE_BYTES_MAX)
        return cx_fail_at(err, CX_E_FORMAT, "NonCanonical", CX_NO_OFFSET,
                          "scope: longer than %u bytes", (unsigned)CX_SCOPE_BYTES_MAX);
    memset(&scope, 0, sizeof scope);
    cx_cbor_begin(&d.reader, bytes, "scope");
    cx_cbor_members members = cx_cbor_read_members(&d.reader);
    while (!d.out_of_memory && cx_cbor_next_member(&d.reader, &members))
        decode_member(&d, &members, &scope);
    if (d.out_of_memory)
        return cx_fail_nomem(err);
    cx_cbor_require(&d.reader, &members,
                    1u << 0 | 1u << 1 | 1u << 2 | 1u << 3 | 1u << 6 | 1u << 8 | 1u << 9 | 1u << 11);
    CX_TRY(cx_cbor_end(&d.reader, err));
    *out = scope;
    return CX_SUCCESS;
}

/* --- matching -------------------------------------------------------------------------------- */

bool cx_selector_is_empty(const cx_selector *selector)
{
    return selector->types.size == 0 && selector->tags.count == 0 && selector->id_count == 0 &&
           !selector->has_frame;
}

static bool has_id(const cx_id *ids, size_t count, const cx_id *id)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(ids[i].bytes, id->bytes, sizeof id->bytes) == 0)
            return true;
    return false;
}

static bool matches_tags(const cx_selector *selector, const cx_head *head)
{
    for (size_t i = 0; i < head->tag_count; i++)
        for (size_t j = 0; j < selector->tags.count; j++)
            if (cx_str_eq(head->tags[i], selector->tags.items[j]))
                return true;
    return false;
}

static bool matches_frame(const cx_selector *selector, const cx_head *head)
{
    for (size_t i = 0; selector->has_frame && i < head->frame_count; i++) {
        cx_id object = cx_obj_hash(head->frames[i].ref);
        if (head->frames[i].verb == selector->verb &&
            has_id(selector->objects, selector->object_count, &object))
            return true;
    }
    return false;
}

/* By anything but its ids. */
static bool matches_kind(const cx_selector *selector, const cx_head *head)
{
    if (selector->types.size != 0 &&
        memchr(selector->types.data, head->type, selector->types.size) != NULL)
        return true;
    return matches_tags(selector, head) || matches_frame(selector, head);
}

bool cx_selector_matches(const cx_selector *selector, const cx_head *head)
{
    return has_id(selector->ids, selector->id_count, &head->id) || matches_kind(selector, head);
}

static int compare_ids(const void *a, const void *b)
{
    return memcmp(((const cx_scope_id *)a)->id.bytes, ((const cx_scope_id *)b)->id.bytes,
                  sizeof(cx_id));
}

/* NULL when it is not among them. */
static const cx_scope_id *find_scope_id(const cx_scope_id *ids, size_t count, const cx_id *id)
{
    const cx_scope_id wanted = {.id = *id};
    return count == 0 ? NULL : bsearch(&wanted, ids, count, sizeof *ids, compare_ids);
}

static bool selector_matches(const cx_selector *selector, const cx_scope_id *ids,
                             const cx_head *head)
{
    return find_scope_id(ids, selector->id_count, &head->id) != NULL ||
           matches_kind(selector, head);
}

bool cx_scope_use_allows(const cx_scope_use *granted, const cx_head *head)
{
    return selector_matches(&granted->scope.include, granted->included_ids, head) &&
           !selector_matches(&granted->scope.exclude, granted->excluded_ids, head);
}

cx_bytes cx_granted_leaf(const cx_scope_use *granted, const cx_id *id)
{
    const cx_scope_id *found =
        find_scope_id(granted->included_ids, granted->scope.include.id_count, id);
    if (found == NULL || found->index >= granted->proof.count)
        return (cx_bytes){NULL, 0};
    return granted->proof.items[found->index].leaf;
}

static cx_status sort_ids(const cx_selector *selector, cx_arena *arena, const cx_scope_id **out,
                          cx_err *err)
{
    cx_scope_id *ids = CX_ARENA_ARRAY(arena, cx_scope_id, selector->id_count + 1);
    if (ids == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < selector->id_count; i++)
        ids[i] = (cx_scope_id){selector->ids[i], i};
    qsort(ids, selector->id_count, sizeof *ids, compare_ids);
    *out = ids;
    return CX_SUCCESS;
}

/* --- verification ---------------------------------------------------------------------------- */

typedef struct verification {
    const cx_scope_check *check;
    cx_arena *arena;
    cx_scope_use *granted; /* being filled */
    cx_finding *finding;
    cx_err *err;
} verification;

static bool verdict_holds(const verification *v)
{
    return v->finding->verdict == CX_HOLDS;
}

static void set_finding(const verification *v, cx_verdict verdict, const char *reason,
                        const char *format, ...) CX_PRINTF(4, 5);
static void set_finding(const verification *v, cx_verdict verdict, const char *reason,
                        const char *format, ...)
{
    va_list args;
    char text[CX_ERR_MESSAGE_SIZE];
    cx_err plain;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    /* Names come from outside: an error's message is one line of valid text whatever they hold. */
    (void)cx_fail(&plain, CX_E_FORMAT, "%s", text);
    v->finding->verdict = verdict;
    v->finding->reason = reason;
    memcpy(v->finding->message, plain.message, sizeof plain.message);
}

/* "%.*s" of a text that may be long. */
#define SHOWN(text) (int)((text).size > 80 ? 80 : (text).size), (text).data

static cx_status read_scope(const verification *v, cx_bytes bytes)
{
    cx_err found = {0};
    cx_status status = cx_scope_decode(bytes, v->arena, &v->granted->scope, &found);
    if (status.code == CX_E_FORMAT) {
        set_finding(v, CX_BROKEN, "NonCanonical", "%s", found.message);
        v->finding->offset = found.offset;
        return CX_SUCCESS;
    }
    if (cx_failed(status) && v->err != NULL)
        *v->err = found;
    return status;
}

/* floor(now in seconds) */
static int64_t seconds_of(int64_t ns)
{
    int64_t s = ns / 1000000000;
    return ns % 1000000000 < 0 ? s - 1 : s;
}

/* What can be said without keys and snapshots. */
static void check_terms(const verification *v)
{
    const cx_scope *scope = &v->granted->scope;
    int64_t now_s = seconds_of(v->check->now_ns);
    if (scope->schema != CX_SCOPE_SCHEMA)
        set_finding(v, CX_BROKEN, "SchemaVersion", "scope: found schema %llu, expected %d",
                    (unsigned long long)scope->schema, CX_SCOPE_SCHEMA);
    else if (v->check->key == NULL)
        set_finding(v, CX_INDETERMINATE, "NoKeyResolver", "scope: no key of its grantor is given");
    else if (scope->actor.size == 0 || !cx_str_eq(scope->actor, v->check->actor))
        set_finding(v, CX_BROKEN, "ActorMismatch", "scope: found actor \"%.*s\", expected \"%.*s\"",
                    SHOWN(scope->actor), SHOWN(v->check->actor));
    else if (cx_selector_is_empty(&scope->include))
        set_finding(v, CX_BROKEN, "EmptyInclude", "scope: it includes nothing");
    else if (scope->expires && now_s > scope->expires_at)
        set_finding(v, CX_BROKEN, "ScopeExpired", "scope: it expired at %lld, now is %lld",
                    (long long)scope->expires_at, (long long)now_s);
}

cx_status cx_scope_signed_by(const cx_scope *scope, const cx_pubkey *key, const cx_alloc *alloc,
                             bool *out, cx_err *err)
{
    cx_signature signature;
    cx_buf signed_bytes;
    *out = false;
    if (scope->signature.null || scope->signature.bytes.size != sizeof signature.bytes)
        return CX_SUCCESS;
    memcpy(signature.bytes, scope->signature.bytes.data, sizeof signature.bytes);
    cx_buf_init(&signed_bytes, alloc);
    cx_scope_to_sign(scope, &signed_bytes);
    cx_status status = cx_buf_check(&signed_bytes, err);
    if (!cx_failed(status))
        *out = cx_ed25519_verify(key, cx_buf_bytes(&signed_bytes), &signature);
    cx_buf_done(&signed_bytes);
    return status;
}

static cx_status check_signature(const verification *v)
{
    const cx_scope *scope = &v->granted->scope;
    cx_pubkey key;
    bool is_known = false, is_good = false;
    CX_TRY(v->check->key(v->check->key_arg, scope->granted_by, &key, &is_known, v->err));
    if (!is_known) {
        set_finding(v, CX_BROKEN, "UnknownAgent", "scope: there is no key of \"%.*s\"",
                    SHOWN(scope->granted_by));
        return CX_SUCCESS;
    }
    CX_TRY(cx_scope_signed_by(scope, &key, v->arena->alloc, &is_good, v->err));
    if (!is_good)
        set_finding(v, CX_BROKEN, "SignatureInvalid", "scope: \"%.*s\" did not sign this",
                    SHOWN(scope->granted_by));
    return CX_SUCCESS;
}

/* Trusts the answer as little as possible: the manifest must be of this root and this actor. */
static cx_status check_snapshot(const verification *v)
{
    cx_scope_use *granted = v->granted;
    cx_bytes bytes = {NULL, 0};
    bool is_known = false;
    if (v->check->snapshot != NULL)
        CX_TRY(v->check->snapshot(v->check->snapshot_arg, &granted->scope.snapshot_hash, &bytes,
                                  &is_known, v->err));
    if (is_known) {
        cx_status status = cx_manifest_decode(bytes, &granted->manifest, v->err);
        if (cx_failed(status) && status.code != CX_E_FORMAT)
            return status;
        is_known = !cx_failed(status);
    }
    if (is_known) {
        cx_digest overall = cx_manifest_overall(&granted->manifest);
        is_known = cx_digest_eq(&overall, &granted->scope.snapshot_hash) &&
                   cx_digest_eq(&overall, &granted->manifest.overall_root) &&
                   cx_str_eq(granted->manifest.actor, granted->scope.actor);
    }
    if (!is_known)
        set_finding(v, CX_BROKEN, "SnapshotUnresolved",
                    "scope: there is no snapshot with its root");
    granted->manifest_bytes = bytes;
    return CX_SUCCESS;
}

const char *cx_scope_ids_fault(const cx_scope *scope, const cx_multiproof *proof, size_t *out_index)
{
    const cx_selector *include = &scope->include;
    *out_index = SIZE_MAX;
    if (proof->compact)
        return "its proof is a compact one (schema 3); expected one of schema 2, whose keys stand "
               "in "
               "the order of the ids";
    if (proof->count != include->id_count)
        return "its proof has another number of keys than it has ids";
    for (size_t i = 0; i < proof->count; i++) {
        cx_digest key = cx_scheme_memory_key(proof->scheme, include->ids[i].bytes);
        if (!cx_digest_eq(&key, &proof->items[i].path.key)) {
            *out_index = i;
            return "a key of its proof is not that of the id in its place";
        }
    }
    return NULL;
}

static cx_status check_proof(const verification *v)
{
    const cx_scope *scope = &v->granted->scope;
    const cx_multiproof_check question = {.name_space = CX_NAMESPACE_MEMORIES,
                                          .require_members = true};
    cx_finding found;
    bool has_ids = scope->include.id_count != 0, has_proof = scope->multiproof.size != 0;
    if (has_ids != has_proof)
        set_finding(v, CX_BROKEN, "ProofMismatch",
                    has_ids ? "scope: it includes ids without a proof"
                            : "scope: a proof without ids");
    if (!has_ids || !has_proof)
        return CX_SUCCESS;
    CX_TRY(cx_multiproof_verify(scope->multiproof, v->granted->manifest_bytes, &question, v->arena,
                                &v->granted->proof, &found, v->err));
    if (found.verdict != CX_HOLDS) {
        set_finding(v, CX_BROKEN, "ProofMismatch", "scope: its proof: %s: %.200s", found.reason,
                    found.message);
        v->finding->key_index = found.key_index;
        return CX_SUCCESS;
    }
    size_t index;
    const char *fault = cx_scope_ids_fault(scope, &v->granted->proof, &index);
    if (fault == NULL)
        return CX_SUCCESS;
    set_finding(v, CX_BROKEN, "ProofMismatch", "scope: %s", fault);
    v->finding->key_index = index;
    return CX_SUCCESS;
}

static void check_presenter(const verification *v)
{
    const cx_scope *scope = &v->granted->scope;
    if (v->check->has_presenter && !cx_str_eq(v->check->presenter, scope->granted_to))
        set_finding(v, CX_BROKEN, "NotGrantee", "scope: shown by \"%.*s\", granted to \"%.*s\"",
                    SHOWN(v->check->presenter), SHOWN(scope->granted_to));
    else if (scope->budget_tokens != 0 && v->check->tokens > scope->budget_tokens)
        set_finding(v, CX_BROKEN, "BudgetExceeded", "scope: %llu tokens, granted are %llu",
                    (unsigned long long)v->check->tokens, (unsigned long long)scope->budget_tokens);
}

static cx_status verify_scope(const verification *v, cx_bytes scope)
{
    CX_TRY(read_scope(v, scope));
    if (verdict_holds(v))
        check_terms(v);
    if (verdict_holds(v))
        CX_TRY(check_signature(v));
    if (verdict_holds(v))
        CX_TRY(check_snapshot(v));
    if (verdict_holds(v))
        CX_TRY(check_proof(v));
    if (verdict_holds(v))
        check_presenter(v);
    if (!verdict_holds(v))
        return CX_SUCCESS;
    CX_TRY(sort_ids(&v->granted->scope.include, v->arena, &v->granted->included_ids, v->err));
    return sort_ids(&v->granted->scope.exclude, v->arena, &v->granted->excluded_ids, v->err);
}

cx_status cx_scope_verify(cx_bytes scope, const cx_scope_check *check, cx_arena *arena,
                          cx_scope_use *out, cx_finding *out_finding, cx_err *err)
{
    cx_scope_use granted;
    cx_finding finding;
    memset(&granted, 0, sizeof granted);
    memset(&finding, 0, sizeof finding);
    finding.verdict = CX_HOLDS;
    finding.key_index = SIZE_MAX;
    finding.offset = CX_NO_OFFSET;
    const verification v = {check, arena, &granted, &finding, err};
    CX_TRY(verify_scope(&v, scope));
    if (finding.verdict == CX_HOLDS)
        *out = granted;
    *out_finding = finding;
    return CX_SUCCESS;
}
