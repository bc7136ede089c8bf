/*
 * attest.h - a run as an in-toto Statement v1 in a DSSE envelope (run.md §22).
 *
 * The statement contains what a finished bundle contains, nothing more: cx_run_attest_read collects
 * the facts from its files, the payload is their RFC 8785 form, and the check compares a signed
 * payload with those facts, field by field.
 */
#ifndef CX_APPROVAL_ATTEST_H
#define CX_APPROVAL_ATTEST_H

#include "bundle/api.h"
#include "approval/dsse.h"

/* The position of the run's seal in a ledger, if known; origin empty = unknown ("ledger": null). */
typedef struct cx_run_attest_ledger {
    cx_str origin;
    uint64_t index; /* of the seal's entry */
    uint64_t size;  /* entries below the root */
    cx_digest root;
} cx_run_attest_ledger;

/*
 * The statement of a bundle, as a JSON value; CX_E_FORMAT names what is missing. The files are not
 * verified here: cx_run_verify does that.  `sandbox` is "degraded" after SANDBOX_DEGRADED, "none"
 * when something ran without SANDBOX_APPLIED, else "full".
 */
CX_RESULT cx_run_attest_read(cx_run_bundle *bundle, const cx_run_attest_ledger *ledger,
                             cx_arena *arena, cx_json *out, cx_err *err);
/* Appends the bytes that are signed. */
CX_RESULT cx_run_attest_payload(const cx_json *statement, cx_buf *out, cx_err *err);

typedef struct cx_run_attest_signature {
    cx_str keyid;      /* as the envelope has it; empty = none */
    const char *state; /* "valid", "invalid", "unknown_key" or "unusable"; static storage */
    const char *why;   /* of "unusable", else NULL */
} cx_run_attest_signature;

typedef struct cx_run_attest_verdict {
    bool holds;
    const char *reason; /* NULL, or "envelope_invalid", "payload_type", "payload_not_canonical",
                           "signature", "key_unknown", "field_mismatch"; static storage */
    cx_str where;       /* JSON pointer of the first field that differs */
    cx_str message;     /* one sentence */
    cx_digest keyid;    /* of the key that signed, when the signature is valid */
    const cx_run_attest_signature *signatures; /* of the envelope, in its order */
    size_t signature_count;
} cx_run_attest_verdict;

/*
 * Checks an envelope's bytes against the bundle.  One of `keys` must have signed, next to whatever
 * others signed; with no keys at
 * all only the fields are compared and the verdict cannot hold ("key_unknown").  `ledger` NULL: the
 * statement's member `ledger` is not compared.
 */
CX_RESULT cx_run_attest_check(cx_str envelope, cx_run_bundle *bundle, const cx_pubkey *keys,
                              size_t key_count, const cx_run_attest_ledger *ledger, cx_arena *arena,
                              cx_run_attest_verdict *out, cx_err *err);

#endif
