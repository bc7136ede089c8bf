/*
 * hmac.h - HMAC-SHA-256 (RFC 2104, FIPS 198-1): for those who share a secret.  Thread-safe.
 */
#ifndef CX_CRYPTO_HMAC_H
#define CX_CRYPTO_HMAC_H

#include "crypto/digest.h"

/* Of the concatenated pieces, under a key of any length. */
cx_digest cx_hmac_sha256(cx_bytes key, const cx_bytes *pieces, size_t count);

#endif
