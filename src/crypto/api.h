/*
 * crypto - SHA-256 and SHA-512, Ed25519 and ML-DSA verification, hex and base64, keys as text.
 *
 * Holds no private key and never signs; HMAC and boxes are for secrets that both sides have.
 */
#ifndef CX_CRYPTO_API_H
#define CX_CRYPTO_API_H

#include "crypto/box.h"
#include "crypto/crc32c.h"
#include "crypto/digest.h"
#include "crypto/hmac.h"
#include "crypto/key.h"
#include "crypto/ml_dsa.h"
#include "crypto/sha1.h"

#endif
