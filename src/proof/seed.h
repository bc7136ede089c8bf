/*
 * seed.h - the D11 compiler seed: one number that names everything a compilation depended on
 * (ledger.md §9.2).
 */
#ifndef CX_PROOF_SEED_H
#define CX_PROOF_SEED_H

#include "tree/api.h"

#define CX_SEED_SIZE 64

typedef struct cx_seed_input {
    cx_str intent_id; /* cortex-1: a ULID, 26 characters; matrix-1: any text */
    cx_str actor;
    const cx_digest *overall_root; /* NULL = no ledger: 32 zero bytes */
    cx_str mtx_digest;             /* cortex-1: 64 hex digits; matrix-1: any text */
    cx_str model_id;
} cx_seed_input;

/* Lower-case hex, not terminated.  CX_E_USAGE "InvalidArgument". */
CX_RESULT cx_seed_make(cx_scheme scheme, const cx_seed_input *input, char out[CX_SEED_SIZE],
                       cx_err *err);

#endif
