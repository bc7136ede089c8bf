/*
 * attest_check.c - checks a signed statement against its bundle (run.md §22): decode strictly,
 * verify the signature over the received bytes, then compare every field.
 */
#include "approval/attest_internal.h"

cx_status cx_run_attest_set_verdict(cx_run_attest_verdict *out, const char *reason, cx_arena *arena,
                                    cx_str message, cx_err *err)
{
    out->reason = reason;
    out->message = cx_arena_copy_str(arena, message);
    return out->message.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* --- comparing -------------------------------------------------------------------------------- */

/* Pairs of values that remain to be compared, each with its JSON pointer. */
typedef struct pair {
    const cx_json *signed_value, *found;
    cx_str pointer;
} pair;

typedef struct json_differ {
    cx_arena *arena;
    CX_VEC(pair) todo;
    cx_str where; /* of a difference */
    bool differs;
    bool skip_ledger;
} json_differ;

static cx_status queue_pair(json_differ *d, const cx_json *a, const cx_json *b, cx_str above,
                            cx_str name, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, d->arena->alloc);
    cx_buf_add_str(&text, above);
    cx_json_pointer_add(&text, name);
    cx_str pointer = cx_arena_copy_str(d->arena, cx_buf_str(&text));
    bool failed = text.failed || pointer.data == NULL;
    cx_buf_done(&text);
    pair *slot = failed ? NULL : cx_vec_push(&d->todo, d->arena->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = (pair){a, b, pointer};
    return CX_SUCCESS;
}

static cx_status compare_objects(json_differ *d, const pair *p, cx_err *err)
{
    for (uint32_t i = 0; i < p->signed_value->count; i++) {
        const cx_json_member *member = &p->signed_value->members[i];
        cx_str name = cx_json_text(&member->name);
        CX_TRY(queue_pair(d, &member->value, cx_json_get(p->found, name), p->pointer, name, err));
    }
    for (uint32_t i = 0; i < p->found->count; i++) {
        const cx_json_member *member = &p->found->members[i];
        cx_str name = cx_json_text(&member->name);
        if (cx_json_get(p->signed_value, name) == NULL)
            CX_TRY(queue_pair(d, NULL, &member->value, p->pointer, name, err));
    }
    return CX_SUCCESS;
}

static cx_status compare_arrays(json_differ *d, const pair *p, cx_err *err)
{
    uint32_t count =
        p->signed_value->count > p->found->count ? p->signed_value->count : p->found->count;
    for (uint32_t i = 0; i < count; i++) {
        cx_str name = cx_arena_printf(d->arena, "%u", (unsigned)i);
        if (name.data == NULL)
            return cx_fail_nomem(err);
        CX_TRY(queue_pair(d, i < p->signed_value->count ? &p->signed_value->items[i] : NULL,
                          i < p->found->count ? &p->found->items[i] : NULL, p->pointer, name, err));
    }
    return CX_SUCCESS;
}

static cx_status compare_all(json_differ *d, const cx_json *signed_value, const cx_json *found,
                             cx_err *err)
{
    pair *first = cx_vec_push(&d->todo, d->arena->alloc);
    if (first == NULL)
        return cx_fail_nomem(err);
    *first = (pair){signed_value, found, {"", 0}};
    for (size_t i = 0; i < d->todo.count && !d->differs; i++) {
        pair p = d->todo.items[i];
        if (d->skip_ledger && cx_str_is(p.pointer, "/predicate/ledger") && p.signed_value != NULL)
            continue;
        bool both =
            p.signed_value != NULL && p.found != NULL && p.signed_value->type == p.found->type;
        if (both && p.found->type == CX_JSON_OBJECT)
            CX_TRY(compare_objects(d, &p, err));
        else if (both && p.found->type == CX_JSON_ARRAY)
            CX_TRY(compare_arrays(d, &p, err));
        else if (!both || !cx_json_equal(p.signed_value, p.found)) {
            d->differs = true;
            d->where = p.pointer;
        }
    }
    return CX_SUCCESS;
}

/* Whether a position in a ledger that cannot be looked up here at least has the right shape. */
static bool ledger_has_shape(const cx_json *statement)
{
    const cx_json *ledger = cx_json_pointer(statement, CX_STR("/predicate/ledger"));
    uint64_t index, size;
    if (ledger == NULL)
        return false;
    if (ledger->type == CX_JSON_NULL)
        return true;
    const cx_json *at = CX_JSON_GET(ledger, "index"), *of = CX_JSON_GET(ledger, "size");
    return ledger->type == CX_JSON_OBJECT && ledger->count == 4 &&
           CX_JSON_GET_STR(ledger, "origin").size != 0 &&
           CX_JSON_GET_STR(ledger, "root").size == 64 && at != NULL && of != NULL &&
           cx_json_uint64(at, &index) && cx_json_uint64(of, &size) && index < size;
}

/* --- the check -------------------------------------------------------------------------------- */

static cx_status check_signatures(const cx_run_dsse *envelope, const cx_pubkey *keys,
                                  size_t key_count, cx_arena *arena, cx_run_attest_verdict *out,
                                  cx_err *err)
{
    size_t count = envelope->signature_count;
    bool named = false, signed_by_any = false;
    cx_run_attest_signature *list = CX_ARENA_ARRAY(arena, cx_run_attest_signature, count);
    if (list == NULL)
        return cx_fail_nomem(err);
    for (size_t k = 0; k < count; k++) {
        const cx_run_dsse_signature *item = &envelope->signatures[k];
        list[k] =
            (cx_run_attest_signature){.keyid = item->keyid_text,
                                      .state = item->unusable != NULL ? "unusable" : "unknown_key",
                                      .why = item->unusable};
    }
    for (size_t i = 0; i < key_count; i++) {
        cx_digest keyid = cx_run_dsse_keyid(&keys[i]);
        bool valid[CX_RUN_DSSE_SIGNATURES_MAX] = {false};
        CX_TRY(cx_run_dsse_verify_each(envelope, &keys[i], arena->alloc, valid, err));
        for (size_t k = 0; k < count; k++) {
            const cx_run_dsse_signature *item = &envelope->signatures[k];
            bool names_it = item->has_keyid && cx_digest_eq(&keyid, &item->keyid);
            named = named || names_it;
            if (valid[k]) {
                list[k].state = "valid";
                if (!signed_by_any)
                    out->keyid = keyid;
                signed_by_any = true;
            } else if (names_it && item->unusable == NULL) {
                list[k].state = "invalid";
            }
        }
    }
    out->signatures = list;
    out->signature_count = count;
    if (signed_by_any)
        return CX_SUCCESS;
    return cx_run_attest_set_verdict(out, named ? "signature" : "key_unknown", arena,
                                     named ? CX_STR("the signature is invalid")
                                           : CX_STR("none of the keys given has signed it"),
                                     err);
}

cx_status cx_run_attest_open(cx_str text, const cx_pubkey *keys, size_t key_count, cx_arena *arena,
                             cx_run_dsse *out_envelope, bool *out_read, cx_run_attest_verdict *out,
                             cx_err *err)
{
    cx_err why;
    cx_status status = cx_run_dsse_read(text, arena, out_envelope, &why);
    *out_read = !cx_failed(status);
    if (*out_read)
        return check_signatures(out_envelope, keys, key_count, arena, out, err);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    return cx_run_attest_set_verdict(out, "envelope_invalid", arena, cx_str_z(why.message), err);
}

cx_status cx_run_attest_read_payload(const cx_run_dsse *envelope, bool canonical, cx_arena *arena,
                                     cx_json *out_statement, cx_run_attest_verdict *out,
                                     cx_err *err)
{
    cx_buf again;
    cx_err why;
    if (!cx_str_is(envelope->payload_type, CX_RUN_DSSE_ATTESTATION))
        return cx_run_attest_set_verdict(
            out, "payload_type", arena,
            CX_STR("expected the payload type " CX_RUN_DSSE_ATTESTATION), err);
    cx_status status = cx_run_json_read(cx_bytes_str(envelope->payload), CX_RUN_DSSE_BYTES_MAX,
                                        arena, out_statement, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status))
        return cx_run_attest_set_verdict(out, "envelope_invalid", arena, cx_str_z(why.message),
                                         err);
    if (!canonical)
        return CX_SUCCESS;
    cx_buf_init(&again, arena->alloc);
    status = cx_json_write(&again, out_statement, CX_JSON_JCS, &why);
    bool same =
        !cx_failed(status) && cx_str_eq(cx_buf_str(&again), cx_bytes_str(envelope->payload));
    cx_buf_done(&again);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    return same ? CX_SUCCESS
                : cx_run_attest_set_verdict(out, "payload_not_canonical", arena,
                                            CX_STR("the payload is not in the form of RFC 8785"),
                                            err);
}

cx_status cx_run_attest_check(cx_str text, cx_run_bundle *bundle, const cx_pubkey *keys,
                              size_t key_count, const cx_run_attest_ledger *ledger, cx_arena *arena,
                              cx_run_attest_verdict *out, cx_err *err)
{
    CX_ASSERT(key_count == 0 || keys != NULL);
    cx_run_dsse envelope;
    cx_run_attest_verdict verdict = {0};
    cx_json statement, found;
    bool read;
    CX_TRY(cx_run_attest_open(text, keys, key_count, arena, &envelope, &read, &verdict, err));
    /* Without keys the fields are still compared. */
    if (verdict.reason == NULL || (read && key_count == 0)) {
        cx_run_attest_verdict fields = {0};
        CX_TRY(cx_run_attest_read_payload(&envelope, true, arena, &statement, &fields, err));
        if (fields.reason == NULL) {
            json_differ d = {.arena = arena, .skip_ledger = ledger == NULL};
            CX_TRY(cx_run_attest_read(bundle, ledger, arena, &found, err));
            cx_status status = compare_all(&d, &statement, &found, err);
            cx_vec_done(&d.todo, arena->alloc);
            CX_TRY(status);
            if (!d.differs && ledger == NULL && !ledger_has_shape(&statement)) {
                d.differs = true;
                d.where = CX_STR("/predicate/ledger");
            }
            if (d.differs) {
                fields.where = d.where;
                CX_TRY(cx_run_attest_set_verdict(&fields, "field_mismatch", arena,
                                                 CX_STR("the statement differs from the bundle"),
                                                 err));
            }
        }
        fields.keyid = verdict.keyid;
        fields.signatures = verdict.signatures;
        fields.signature_count = verdict.signature_count;
        if (fields.reason != NULL)
            verdict = fields;
    }
    verdict.holds = verdict.reason == NULL;
    *out = verdict;
    return CX_SUCCESS;
}
