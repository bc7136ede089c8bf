/*
 * signer.h - Ed25519 keys of tests, which sign what the library only checks.
 */
#ifndef CX_TESTS_SIGNER_H
#define CX_TESTS_SIGNER_H

#include "base/bytes.h"
#include "base/diag.h"
#include "base/status.h"

typedef struct test_signer {
    uint8_t seed[32];
    cx_pubkey key;
    uint8_t secret[64];
} test_signer;

/* From `seed`. */
void test_signer_from_seed(test_signer *signer);
/* From 32 bytes of that value. */
void test_signer_make(test_signer *signer, uint8_t value);
/* Fits cx_run_sign; `signer` is a test_signer. */
cx_status test_sign(void *signer, cx_bytes message, cx_signature *out, cx_err *err);

#endif
