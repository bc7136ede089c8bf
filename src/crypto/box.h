/*
 * box.h - bytes that only those who have a key can read or change: XChaCha20-Poly1305 through
 * libsodium.  Thread-safe.
 *
 *   B1  A key seals one text: the nonce is fixed, so that the same text gives the same bytes.
 *       Derive a key for each text from what distinguishes it (cx_hmac_sha256).
 */
#ifndef CX_CRYPTO_BOX_H
#define CX_CRYPTO_BOX_H

#include "crypto/digest.h"

#define CX_BOX_EXTRA ((size_t)16) /* bytes that a sealed text has more */

/* Seals the first `size` bytes of `bytes`, which has room for CX_BOX_EXTRA more, in place. */
void cx_box_seal(const cx_digest *key, uint8_t *bytes, size_t size);
/* The reverse, of `size` sealed bytes: the first size - CX_BOX_EXTRA are the text then.  False when
 * they are not what was sealed with this key; the bytes are of no use after that. */
bool cx_box_open(const cx_digest *key, uint8_t *bytes, size_t size);

#endif
