/*
 * sha1.c - SHA-1 (FIPS 180-4 §6.1), in plain C where the processor has nothing better.
 *
 * Invariant: the last size_bytes % 64 bytes added wait in `block`; all before them are in `state`.
 */
#include "crypto/sha1.h"

#include "crypto/internal.h"

static uint32_t rotate_left(uint32_t value, unsigned count)
{
    return value << count | value >> (32 - count);
}

static uint32_t load_u32(const uint8_t *data)
{
    return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
}

static void store_u32(uint8_t *data, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        data[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* One round; the roles of the five words turn by one from each to the next. */
#define ROUND(a, b, c, d, e, f, k)                        \
    do {                                                  \
        (e) += rotate_left((a), 5) + (f) + (k) + WORD(i); \
        (b) = rotate_left((b), 30);                       \
        i++;                                              \
    } while (0)
#define FIVE(F, k)                             \
    do {                                       \
        ROUND(a, b, c, d, e, F(b, c, d), (k)); \
        ROUND(e, a, b, c, d, F(a, b, c), (k)); \
        ROUND(d, e, a, b, c, F(e, a, b), (k)); \
        ROUND(c, d, e, a, b, F(d, e, a), (k)); \
        ROUND(b, c, d, e, a, F(c, d, e), (k)); \
    } while (0)
#define CHOOSE(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define PARITY(x, y, z) ((x) ^ (y) ^ (z))
#define MAJORITY(x, y, z) (((x) & (y)) | ((z) & ((x) | (y))))
#define WORD(t) (words[t])

void cx_sha1_plain_compress(uint32_t state[5], const uint8_t *data, size_t block_count)
{
    uint32_t words[80];
    for (; block_count > 0; block_count--, data += 64) {
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
        unsigned i = 0;
        for (unsigned t = 0; t < 16; t++)
            words[t] = load_u32(data + 4 * t);
        for (unsigned t = 16; t < 80; t++)
            words[t] = rotate_left(words[t - 3] ^ words[t - 8] ^ words[t - 14] ^ words[t - 16], 1);
        while (i < 20)
            FIVE(CHOOSE, UINT32_C(0x5a827999));
        while (i < 40)
            FIVE(PARITY, UINT32_C(0x6ed9eba1));
        while (i < 60)
            FIVE(MAJORITY, UINT32_C(0x8f1bbcdc));
        while (i < 80)
            FIVE(PARITY, UINT32_C(0xca62c1d6));
        state[0] += a;
        state[1] += b;
        state[2] += c;
        state[3] += d;
        state[4] += e;
    }
}

static void compress_blocks(uint32_t state[5], const uint8_t *data, size_t block_count)
{
    const cx_digest_unit *unit = cx_digest_parts_here()->unit;
    if (unit != NULL)
        unit->sha1_compress(state, data, block_count);
    else
        cx_sha1_plain_compress(state, data, block_count);
}

void cx_sha1_init(cx_sha1 *hash)
{
    hash->state[0] = UINT32_C(0x67452301);
    hash->state[1] = UINT32_C(0xefcdab89);
    hash->state[2] = UINT32_C(0x98badcfe);
    hash->state[3] = UINT32_C(0x10325476);
    hash->state[4] = UINT32_C(0xc3d2e1f0);
    hash->size_bytes = 0;
}

void cx_sha1_add(cx_sha1 *hash, const void *data, size_t size_bytes)
{
    const uint8_t *bytes = data;
    size_t waiting = (size_t)(hash->size_bytes % 64);
    hash->size_bytes += size_bytes;
    if (waiting != 0) {
        size_t take = size_bytes < 64 - waiting ? size_bytes : 64 - waiting;
        if (take != 0)
            memcpy(hash->block + waiting, bytes, take);
        bytes += take;
        size_bytes -= take;
        if (waiting + take < 64)
            return;
        compress_blocks(hash->state, hash->block, 1);
    }
    compress_blocks(hash->state, bytes, size_bytes / 64);
    if (size_bytes % 64 != 0)
        memcpy(hash->block, bytes + size_bytes / 64 * 64, size_bytes % 64);
}

void cx_sha1_end(cx_sha1 *hash, uint8_t out[CX_SHA1_SIZE])
{
    uint8_t tail[128] = {0};
    size_t waiting = (size_t)(hash->size_bytes % 64), size = waiting < 56 ? 64 : 128;
    uint64_t bits = hash->size_bytes * 8;
    memcpy(tail, hash->block, waiting);
    tail[waiting] = 0x80;
    store_u32(tail + size - 8, (uint32_t)(bits >> 32));
    store_u32(tail + size - 4, (uint32_t)bits);
    compress_blocks(hash->state, tail, size / 64);
    for (unsigned i = 0; i < 5; i++)
        store_u32(out + 4 * i, hash->state[i]);
}
