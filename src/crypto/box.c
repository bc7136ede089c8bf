/*
 * box.c - sealed bytes, through libsodium.  Invariant B1: box.h.
 */
#include "crypto/box.h"

#include <sodium.h>

_Static_assert(sizeof(cx_digest) == crypto_aead_xchacha20poly1305_ietf_KEYBYTES,
               "libsodium's key size");
_Static_assert(CX_BOX_EXTRA == crypto_aead_xchacha20poly1305_ietf_ABYTES, "libsodium's tag size");

static const uint8_t nonce[crypto_aead_xchacha20poly1305_ietf_NPUBBYTES]; /* B1 */

void cx_box_seal(const cx_digest *key, uint8_t *bytes, size_t size)
{
    CX_ASSERT(sodium_init() >= 0);
    const int sealed = crypto_aead_xchacha20poly1305_ietf_encrypt(bytes, NULL, bytes, size, NULL, 0,
                                                                  NULL, nonce, key->bytes);
    CX_ASSERT(sealed == 0);
}

bool cx_box_open(const cx_digest *key, uint8_t *bytes, size_t size)
{
    CX_ASSERT(sodium_init() >= 0);
    return size >= CX_BOX_EXTRA &&
           crypto_aead_xchacha20poly1305_ietf_decrypt(bytes, NULL, NULL, bytes, size, NULL, 0,
                                                      nonce, key->bytes) == 0;
}
