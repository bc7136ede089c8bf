/*
 * dsse.c - Dead Simple Signing Envelopes (run.md §22).  Invariants D1 to D3: dsse.h.
 */
#include "approval/dsse.h"

#include "crypto/api.h"

static cx_status decode_base64(const cx_json *value, const char *name, cx_arena *arena,
                               cx_bytes *out, cx_err *err)
{
    cx_buf bytes;
    if (value == NULL || value->type != CX_JSON_STRING)
        return cx_fail(err, CX_E_FORMAT, "envelope: expected text in '%s'", name);
    cx_buf_init(&bytes, arena->alloc);
    bool good = cx_base64_decode(cx_json_text(value), CX_BASE64, &bytes);
    cx_str copy = cx_arena_copy_str(arena, cx_buf_str(&bytes));
    bool failed = bytes.failed || copy.data == NULL;
    cx_buf_done(&bytes);
    if (!good)
        return cx_fail(err, CX_E_FORMAT, "envelope: '%s' is not base64 with '+', '/' and padding",
                       name);
    if (failed)
        return cx_fail_nomem(err);
    *out = cx_str_bytes(copy);
    return CX_SUCCESS;
}

static cx_status copy_text(const cx_json *value, cx_arena *arena, cx_str *out, cx_err *err)
{
    *out = cx_arena_copy_str(arena, cx_json_text(value));
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* Only what is no object is an error: a signature may be of a kind that we do not know (D3). */
static cx_status read_signature(const cx_json *item, cx_arena *arena, cx_run_dsse_signature *out,
                                cx_err *err)
{
    cx_bytes bytes;
    cx_err why;
    if (item->type != CX_JSON_OBJECT)
        return cx_fail(err, CX_E_FORMAT, "envelope: expected signatures that are objects");
    memset(out, 0, sizeof *out);
    const cx_json *keyid = CX_JSON_GET(item, "keyid"), *sig = CX_JSON_GET(item, "sig");
    if (keyid != NULL && keyid->type == CX_JSON_STRING) {
        CX_TRY(copy_text(keyid, arena, &out->keyid_text, err));
        out->has_keyid = cx_digest_parse(out->keyid_text, &out->keyid);
    }
    cx_status status = decode_base64(sig, "sig", arena, &bytes, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status))
        out->unusable = "sig is not text in base64 with '+', '/' and padding";
    else if (bytes.size != sizeof out->signature.bytes)
        out->unusable = "not the 64 bytes of an Ed25519 signature";
    else
        memcpy(out->signature.bytes, bytes.data, sizeof out->signature.bytes);
    return CX_SUCCESS;
}

static cx_status read_signatures(const cx_json *list, cx_arena *arena, cx_run_dsse *out,
                                 cx_err *err)
{
    if (list == NULL || list->type != CX_JSON_ARRAY || list->count == 0 ||
        list->count > CX_RUN_DSSE_SIGNATURES_MAX)
        return cx_fail(err, CX_E_FORMAT, "envelope: expected 1 to %d 'signatures'",
                       CX_RUN_DSSE_SIGNATURES_MAX);
    cx_run_dsse_signature *items = CX_ARENA_ARRAY(arena, cx_run_dsse_signature, list->count);
    if (items == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < list->count; i++)
        CX_TRY(read_signature(&list->items[i], arena, &items[i], err));
    out->signatures = items;
    out->signature_count = list->count;
    return CX_SUCCESS;
}

cx_status cx_run_dsse_read(cx_str text, cx_arena *arena, cx_run_dsse *out, cx_err *err)
{
    cx_json root;
    cx_run_dsse envelope = {0};
    CX_TRY(cx_run_json_read(text, CX_RUN_DSSE_BYTES_MAX, arena, &root, err));
    const cx_json *type = CX_JSON_GET(&root, "payloadType");
    if (root.type != CX_JSON_OBJECT || type == NULL || type->type != CX_JSON_STRING)
        return cx_fail(err, CX_E_FORMAT,
                       "envelope: expected an object of 'payloadType', 'payload' and "
                       "'signatures'");
    CX_TRY(copy_text(type, arena, &envelope.payload_type, err));
    CX_TRY(decode_base64(CX_JSON_GET(&root, "payload"), "payload", arena, &envelope.payload, err));
    CX_TRY(read_signatures(CX_JSON_GET(&root, "signatures"), arena, &envelope, err));
    *out = envelope;
    return CX_SUCCESS;
}

void cx_run_dsse_pae(cx_str payload_type, cx_bytes payload, cx_buf *out)
{
    cx_buf_add_z(out, "DSSEv1 ");
    cx_buf_add_u64(out, payload_type.size);
    cx_buf_add_byte(out, ' ');
    cx_buf_add_str(out, payload_type);
    cx_buf_add_byte(out, ' ');
    cx_buf_add_u64(out, payload.size);
    cx_buf_add_byte(out, ' ');
    cx_buf_add(out, payload.data, payload.size);
}

cx_digest cx_run_dsse_keyid(const cx_pubkey *key)
{
    return cx_digest_of(cx_bytes_from(key->bytes, sizeof key->bytes));
}

cx_status cx_run_dsse_verify_each(const cx_run_dsse *envelope, const cx_pubkey *key,
                                  const cx_alloc *alloc, bool *valid, cx_err *err)
{
    CX_ASSERT(envelope->signature_count != 0 && envelope->signatures != NULL); /* D2 */
    cx_buf message;
    cx_buf_init(&message, alloc);
    cx_run_dsse_pae(envelope->payload_type, envelope->payload, &message);
    cx_status status = cx_buf_check(&message, err);
    for (size_t i = 0; !cx_failed(status) && i < envelope->signature_count; i++) {
        const cx_run_dsse_signature *item = &envelope->signatures[i];
        if (item->unusable == NULL &&
            cx_ed25519_verify(key, cx_buf_bytes(&message), &item->signature))
            valid[i] = true;
    }
    cx_buf_done(&message);
    return status;
}

cx_status cx_run_dsse_verify(const cx_run_dsse *envelope, const cx_pubkey *key,
                             const cx_alloc *alloc, bool *out_good, cx_err *err)
{
    bool valid[CX_RUN_DSSE_SIGNATURES_MAX] = {false}, good = false;
    CX_ASSERT(envelope->signature_count <= CX_COUNT_OF(valid));
    CX_TRY(cx_run_dsse_verify_each(envelope, key, alloc, valid, err));
    for (size_t i = 0; i < envelope->signature_count; i++)
        good = good || valid[i];
    *out_good = good;
    return CX_SUCCESS;
}

cx_status cx_run_dsse_write(cx_str payload_type, cx_bytes payload, const cx_pubkey *key,
                            cx_run_sign sign, void *sign_arg, cx_buf *out, cx_err *err)
{
    CX_ASSERT(sign != NULL && key != NULL);
    cx_digest keyid = cx_run_dsse_keyid(key);
    cx_signature signature;
    cx_buf message;
    cx_buf_init(&message, out->alloc);
    cx_run_dsse_pae(payload_type, payload, &message);
    cx_status status = cx_buf_check(&message, err);
    if (!cx_failed(status))
        status = sign(sign_arg, cx_buf_bytes(&message), &signature, err);
    if (!cx_failed(status) && !cx_ed25519_verify(key, cx_buf_bytes(&message), &signature))
        status = cx_fail_at(err, CX_E_DENIED, "BadSignature", CX_NO_OFFSET,
                            "the signature that came back is not one of the key given");
    cx_buf_done(&message);
    CX_TRY(status);
    cx_buf_add_z(out, "{\n  \"payloadType\": ");
    cx_json_write_str(out, payload_type, CX_JSON_JCS);
    cx_buf_add_z(out, ",\n  \"payload\": \"");
    cx_base64_add(out, payload, CX_BASE64);
    cx_buf_add_z(out, "\",\n  \"signatures\": [\n    {\n      \"keyid\": \"");
    cx_hex_add(out, cx_bytes_from(keyid.bytes, sizeof keyid.bytes));
    cx_buf_add_z(out, "\",\n      \"sig\": \"");
    cx_base64_add(out, cx_bytes_from(signature.bytes, sizeof signature.bytes), CX_BASE64);
    cx_buf_add_z(out, "\"\n    }\n  ]\n}\n");
    return cx_buf_check(out, err);
}
