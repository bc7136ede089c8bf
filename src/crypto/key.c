/*
 * key.c - Ed25519 verification (RFC 8032 §5.1.7) through libsodium.
 *
 * What is accepted is libsodium's rule, written down in tests/vectors/crypto/README.md and held
 * there by vectors: a library that answers one of them differently must not be put in its place.
 */
#include "crypto/key.h"

#include <pthread.h>

#include <sodium.h>

#include "base/diag.h"

_Static_assert(sizeof(cx_pubkey) == crypto_sign_PUBLICKEYBYTES, "libsodium's key size");
_Static_assert(sizeof(cx_signature) == crypto_sign_BYTES, "libsodium's signature size");

static void start_sodium(void)
{
    CX_ASSERT(sodium_init() >= 0);
}

/* libsodium picks its implementations here; it must come first, and once is enough. */
static void need_sodium(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    CX_ASSERT(pthread_once(&once, start_sodium) == 0);
}

static bool verify(const cx_pubkey *key, cx_bytes message, const cx_signature *signature)
{
    return crypto_sign_verify_detached(signature->bytes, message.data, message.size, key->bytes) ==
           0;
}

bool cx_ed25519_verify(const cx_pubkey *key, cx_bytes message, const cx_signature *signature)
{
    need_sodium();
    return verify(key, message, signature);
}

void cx_ed25519_verify_many(const cx_ed25519_item *items, bool *out_good, size_t count)
{
    need_sodium();
    for (size_t i = 0; i < count; i++)
        out_good[i] = verify(&items[i].key, items[i].message, &items[i].signature);
}
