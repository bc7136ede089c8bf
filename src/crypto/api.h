/*
 * crypto - SHA-256 and SHA-512, Ed25519 and ML-DSA verification, hex and base64, keys as text.
 *
 * Holds no secret key and never signs; HMAC is for secrets that both sides have.
 */
#ifndef CX_CRYPTO_API_H
#define CX_CRYPTO_API_H

#include "crypto/crc32c.h"
#include "crypto/digest.h"
#include "crypto/hmac.h"
#include "crypto/key.h"
#include "crypto/ml_dsa.h"
#include "crypto/sha1.h"

#endif
