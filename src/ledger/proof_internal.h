/*
 * proof_internal.h - what the proof files of this room share: a MultiProof as it is on the wire,
 * and writing findings.
 */
#ifndef CX_LEDGER_PROOF_INTERNAL_H
#define CX_LEDGER_PROOF_INTERNAL_H

#include "ledger/proof.h"

/* One SingleProof, read but not yet judged. */
typedef struct cx_raw_item {
    cx_digest key;
    bool has_leaf, has_other, has_value;
    cx_bytes leaf;
    cx_digest other_key, other_value;
    cx_digest value;
    size_t sibling_count;      /* beyond CX_PROOF_SIBLINGS_MAX they were not kept */
    const uint32_t *indexes;   /* cortex-1: 0 = empty, i = pool[i - 1] */
    const cx_digest *siblings; /* matrix-1 */
} cx_raw_item;

typedef struct cx_raw_proof {
    bool pooled;        /* schema 2 */
    cx_str scheme_name; /* as written; of schema 1 "matrix-1" */
    cx_str name_space;
    cx_digest root;
    size_t count;
    cx_raw_item *items;
    size_t pool_count;
    const cx_digest *pool;
} cx_raw_proof;

/* Canonical and of a known schema, nothing else; CX_E_FORMAT "NonCanonical". */
CX_RESULT cx_raw_proof_read(cx_bytes bytes, cx_arena *arena, cx_raw_proof *out, cx_err *err);
/* The rule "ProofMalformed"; what is wrong is written to *out, which must hold before. */
CX_RESULT cx_raw_proof_check_form(const cx_raw_proof *proof, cx_arena *arena, cx_finding *out,
                                  cx_err *err);
/* Sibling i of an item; of an item whose form is good. */
const cx_digest *cx_raw_sibling(const cx_raw_proof *proof, const cx_raw_item *item, size_t i);
/* Membership as claimed, and the path without its siblings. */
void cx_raw_item_claim(const cx_raw_proof *proof, const cx_raw_item *item, cx_proof_item *out);

/* It holds, until something else is written. */
void cx_finding_init(cx_finding *out);
void cx_finding_set(cx_finding *out, cx_verdict verdict, const char *reason, size_t key_index,
                    const char *format, ...) CX_PRINTF(5, 6);
/*
 * Turns "these bytes are not of the format" into the finding `reason`, with the error's message
 * and offset; every other status is handed back.
 */
CX_RESULT cx_finding_from(cx_status status, const cx_err *found, const char *reason,
                          cx_finding *out, cx_err *err);

#define CX_FINDING_WHOLE SIZE_MAX

#endif
