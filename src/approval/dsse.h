/*
 * dsse.h - Dead Simple Signing Envelopes with Ed25519 (run.md §22): strict reading, the bytes that
 * are signed, verification.  The library never signs: the caller passes a function that does.
 *
 *     {"payloadType", "payload": base64, "signatures": [{"keyid", "sig": base64}]}
 *
 * keyid = hex SHA-256 of the 32 bytes of the public key, in what we write.  Others may leave it out
 * or write it in a form of their own: it is a hint, and each signature is tried with each key.
 *
 *   D1  The received bytes are verified: the payload is decoded once, and the pre-authentication
 *       encoding is made of those bytes, never of a re-encoded form.
 *   D2  Reading is strict where the signed bytes are concerned: payload type and payload each once,
 *       base64 as an encoder writes it.  Other members are ignored, as DSSE demands.
 *   D3  A signature that cannot be used (another algorithm, no text) is listed with the reason; it
 *       neither helps nor harms the others.
 */
#ifndef CX_APPROVAL_DSSE_H
#define CX_APPROVAL_DSSE_H

#include "rules/api.h"

#define CX_RUN_DSSE_BYTES_MAX (UINT32_C(1) << 20)
#define CX_RUN_DSSE_SIGNATURES_MAX 16

#define CX_RUN_DSSE_ATTESTATION "application/vnd.in-toto+json"
#define CX_RUN_DSSE_APPROVAL "application/vnd.cortex.approval+json"

typedef struct cx_run_dsse_signature {
    cx_str keyid_text; /* as given; empty = none */
    bool has_keyid;    /* it is one of ours: 64 lower-case hex digits */
    cx_digest keyid;
    const char *unusable; /* why it cannot be one of an Ed25519 key; NULL = it can */
    cx_signature signature;
} cx_run_dsse_signature;

typedef struct cx_run_dsse {
    cx_str payload_type;
    cx_bytes payload;
    const cx_run_dsse_signature *signatures; /* at least one */
    size_t signature_count;
} cx_run_dsse;

/* Text and bytes live in the arena.  CX_E_FORMAT, CX_E_SYNTAX, CX_E_LIMIT. */
CX_RESULT cx_run_dsse_read(cx_str text, cx_arena *arena, cx_run_dsse *out, cx_err *err);

/* "DSSEv1" SP len(type) SP type SP len(payload) SP payload. */
void cx_run_dsse_pae(cx_str payload_type, cx_bytes payload, cx_buf *out);
cx_digest cx_run_dsse_keyid(const cx_pubkey *key);

/* Sets valid[i] where signature i is one of `key`, whatever its keyid says; leaves the others. */
CX_RESULT cx_run_dsse_verify_each(const cx_run_dsse *envelope, const cx_pubkey *key,
                                  const cx_alloc *alloc, bool *valid, cx_err *err);
/* Whether `key` signed the envelope. */
CX_RESULT cx_run_dsse_verify(const cx_run_dsse *envelope, const cx_pubkey *key,
                             const cx_alloc *alloc, bool *out_good, cx_err *err);

/* Signs `message`; only the implementation has the private key. */
typedef cx_status (*cx_run_sign)(void *arg, cx_bytes message, cx_signature *out, cx_err *err);

/* Appends the envelope as a file (§1 R5), signed by `sign` and checked with `key`. */
CX_RESULT cx_run_dsse_write(cx_str payload_type, cx_bytes payload, const cx_pubkey *key,
                            cx_run_sign sign, void *sign_arg, cx_buf *out, cx_err *err);

#endif
