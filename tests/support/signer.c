/*
 * signer.c - Ed25519 keys of tests.
 */
#include "tests/support/signer.h"

#include <sodium.h>

void test_signer_from_seed(test_signer *signer)
{
    int ready = sodium_init();
    CX_ASSERT(ready >= 0);
    int made = crypto_sign_seed_keypair(signer->key.bytes, signer->secret, signer->seed);
    CX_ASSERT(made == 0);
}

void test_signer_make(test_signer *signer, uint8_t value)
{
    memset(signer->seed, value, sizeof signer->seed);
    test_signer_from_seed(signer);
}

cx_status test_sign(void *signer, cx_bytes message, cx_signature *out, cx_err *err)
{
    const test_signer *with = signer;
    (void)err;
    (void)crypto_sign_detached(out->bytes, NULL, message.data, message.size, with->secret);
    return CX_SUCCESS;
}
