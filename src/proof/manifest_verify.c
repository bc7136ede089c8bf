/*
 * manifest_verify.c - a manifest on its own (ledger.md §9): canonical, its overall root the hash of
 * its own roots, signed by a key when one is given.
 */
#include "proof/proof_internal.h"

cx_status cx_manifest_signed_by(const cx_manifest *manifest, const cx_pubkey *key,
                                const cx_alloc *alloc, bool *out_good, cx_err *err)
{
    cx_signature signature;
    cx_buf text;
    if (manifest->signature.null || manifest->signature.bytes.size != sizeof signature.bytes) {
        *out_good = false;
        return CX_SUCCESS;
    }
    memcpy(signature.bytes, manifest->signature.bytes.data, sizeof signature.bytes);
    cx_buf_init(&text, alloc);
    cx_buf_add_z(&text, "cortex.manifest.v1");
    cx_manifest_encode_body(manifest, &text);
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status))
        *out_good = cx_ed25519_verify(key, cx_buf_bytes(&text), &signature);
    cx_buf_done(&text);
    return status;
}

static cx_status check_signature(const cx_manifest *manifest, const cx_pubkey *key,
                                 const cx_alloc *alloc, cx_finding *out, cx_err *err)
{
    bool good = false;
    if (manifest->signature.null) {
        cx_finding_set(out, CX_BROKEN, "NotSigned", CX_FINDING_WHOLE,
                       "the manifest has no signature");
        return CX_SUCCESS;
    }
    CX_TRY(cx_manifest_signed_by(manifest, key, alloc, &good, err));
    if (!good)
        cx_finding_set(out, CX_BROKEN, "SignatureInvalid", CX_FINDING_WHOLE,
                       "the manifest's signature was not made by the key given");
    return CX_SUCCESS;
}

cx_status cx_manifest_verify(cx_bytes bytes, const cx_pubkey *key, const cx_alloc *alloc,
                             cx_manifest *out_manifest, cx_finding *out, cx_err *err)
{
    cx_manifest manifest;
    cx_err found;
    cx_finding_init(out);
    cx_status status = cx_manifest_decode(bytes, &manifest, &found);
    CX_TRY(cx_finding_from(status, &found, "NonCanonical", out, err));
    if (out->verdict != CX_HOLDS)
        return CX_SUCCESS;
    cx_digest overall = cx_manifest_overall(&manifest);
    if (!cx_digest_eq(&overall, &manifest.overall_root))
        cx_finding_set(out, CX_BROKEN, "OverallRootMismatch", CX_FINDING_WHOLE,
                       "the manifest's overall root is not the hash of its own roots");
    else if (key != NULL)
        CX_TRY(check_signature(&manifest, key, alloc, out, err));
    if (out_manifest != NULL)
        *out_manifest = manifest;
    return CX_SUCCESS;
}
