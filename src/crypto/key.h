/*
 * key.h - Ed25519 public keys, and checking what they signed (RFC 8032).  The library never signs.
 *
 * Acceptance rule, as libsodium's crypto_sign_verify_detached: S < L; A canonical; neither A nor R
 * of small order; the equation without cofactor, R compared byte by byte.  Libraries disagree here,
 * so it is written down and held by vectors: tests/vectors/crypto/README.md.
 */
#ifndef CX_CRYPTO_KEY_H
#define CX_CRYPTO_KEY_H

#include "base/api.h"

/* True when the signature is good.  Thread-safe. */
bool cx_ed25519_verify(const cx_pubkey *key, cx_bytes message, const cx_signature *signature);

typedef struct cx_ed25519_item {
    cx_pubkey key;
    cx_signature signature;
    cx_bytes message;
} cx_ed25519_item;

/* out_good[i] = the same answer as cx_ed25519_verify, item by item (never a batch equation).  From
 * two items on in lanes, where the processor has AVX-512 IFMA. */
void cx_ed25519_verify_many(const cx_ed25519_item *items, bool *out_good, size_t count);

#endif
