/*
 * digest_plain.c - SHA-256 in plain C: the rounds of the vector kernels with one word in place of a
 * vector.
 */
#include "crypto/internal.h"
#include "crypto/sha2_rounds.h"

typedef uint32_t lanes;

#define TABLE_XOR(a, b, c) ((a) ^ (b) ^ (c))
#define TABLE_CHOOSE(a, b, c) ((c) ^ ((a) & ((b) ^ (c))))
#define TABLE_MAJORITY(a, b, c) (((a) & (b)) | ((c) & ((a) | (b))))
#define TERNARY(a, b, c, table) table(a, b, c)

/* Compilers turn this into one instruction. */
#define RIGHT(x, n) ((x) >> (n) | (x) << (32 - (n)))

#define BIG_SIGMA_0(x) TERNARY(RIGHT(x, 2), RIGHT(x, 13), RIGHT(x, 22), TABLE_XOR)
#define BIG_SIGMA_1(x) TERNARY(RIGHT(x, 6), RIGHT(x, 11), RIGHT(x, 25), TABLE_XOR)
#define SMALL_SIGMA_0(x) TERNARY(RIGHT(x, 7), RIGHT(x, 18), (x) >> 3, TABLE_XOR)
#define SMALL_SIGMA_1(x) TERNARY(RIGHT(x, 17), RIGHT(x, 19), (x) >> 10, TABLE_XOR)

static uint32_t load_u32(const uint8_t *data)
{
    return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
}

static void one_block(uint32_t state[8], const uint8_t *data)
{
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5],
             g = state[6], h = state[7], w[16];
    for (size_t i = 0; i < 16; i++)
        w[i] = load_u32(data + 4 * i);
#define WK(i) (w[i] + cx_digest_k[i])
    EIGHT_ROUNDS(0);
    EIGHT_ROUNDS(8);
#undef WK
#define WK(i) (EXPAND(i) + cx_digest_k[round + (i)])
    for (size_t round = 16; round < 64; round += 16) {
        EIGHT_ROUNDS(0);
        EIGHT_ROUNDS(8);
    }
#undef WK
    const uint32_t sums[8] = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; i++)
        state[i] += sums[i];
}

void cx_digest_plain_compress(uint32_t state[8], const uint8_t *data, size_t block_count)
{
    for (; block_count > 0; block_count--, data += CX_DIGEST_BLOCK_SIZE)
        one_block(state, data);
}
