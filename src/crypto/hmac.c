/*
 * hmac.c - HMAC over our SHA-256: H(key ^ opad ‖ H(key ^ ipad ‖ message)).
 */
#include "crypto/hmac.h"

#define BLOCK_SIZE 64

static void begin_padded(cx_sha256 *hash, const uint8_t key[BLOCK_SIZE], uint8_t pad)
{
    uint8_t block[BLOCK_SIZE];
    for (size_t i = 0; i < BLOCK_SIZE; i++)
        block[i] = key[i] ^ pad;
    cx_sha256_init(hash);
    cx_sha256_add(hash, block, sizeof block);
}

cx_digest cx_hmac_sha256(cx_bytes key, const cx_bytes *pieces, size_t count)
{
    uint8_t block[BLOCK_SIZE] = {0};
    cx_sha256 hash;
    if (key.size > BLOCK_SIZE) {
        const cx_digest shorter = cx_digest_of(key);
        memcpy(block, shorter.bytes, sizeof shorter.bytes);
    } else if (key.size != 0) {
        memcpy(block, key.data, key.size);
    }
    begin_padded(&hash, block, 0x36);
    for (size_t i = 0; i < count; i++)
        cx_sha256_add(&hash, pieces[i].data, pieces[i].size);
    const cx_digest inner = cx_sha256_end(&hash);
    begin_padded(&hash, block, 0x5c);
    cx_sha256_add(&hash, inner.bytes, sizeof inner.bytes);
    return cx_sha256_end(&hash);
}
