/*
 * sha1.h - SHA-1 (FIPS 180-4), for one purpose: names of git objects.
 *
 * SHA-1 is broken where an attacker chooses both messages.  Nothing here relies on it against one:
 * what an agent left is compared with its snapshot by SHA-256, and git, which refuses known
 * attacks, computes each name again when an object is written.  Hashing cannot fail.  Thread-safe.
 */
#ifndef CX_CRYPTO_SHA1_H
#define CX_CRYPTO_SHA1_H

#include "base/api.h"

#define CX_SHA1_SIZE 20

typedef struct cx_sha1 {
    uint32_t state[5];
    uint64_t size_bytes;
    uint8_t block[64];
} cx_sha1;

void cx_sha1_init(cx_sha1 *hash);
void cx_sha1_add(cx_sha1 *hash, const void *data, size_t size_bytes);
void cx_sha1_end(cx_sha1 *hash, uint8_t out[CX_SHA1_SIZE]);

#endif
