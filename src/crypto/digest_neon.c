/*
 * digest_neon.c - SHA-256 of four messages at once, one 32-bit lane of NEON each.
 *
 * As digest_avx512.c, with four lanes: a vector holds the same word of four messages, so the rounds
 * are those of FIPS 180-4 §6.2.2 read as they stand.  For processors without SHA instructions;
 * every 64-bit one has NEON.
 */
#include "crypto/internal.h"
#include "crypto/sha2_rounds.h"

#ifdef CX_DIGEST_ARM

#include <arm_neon.h>

#define NEON_INLINE __attribute__((always_inline)) static inline

enum { LANES = 4 };

typedef uint32x4_t lanes;

/* The names of sha2_rounds.h for functions of three words, each as NEON does it best. */
#define TABLE_XOR(a, b, c) ((a) ^ (b) ^ (c))
#define TABLE_CHOOSE(a, b, c) vbslq_u32(a, b, c)
#define TABLE_MAJORITY(a, b, c) vbslq_u32((a) ^ (b), c, b)
#define TERNARY(a, b, c, table) table(a, b, c)

/* A turn is a shift and a shift with insertion. */
#define RIGHT(x, n) vsriq_n_u32(vshlq_n_u32(x, 32 - (n)), x, n)

#define BIG_SIGMA_0(x) TERNARY(RIGHT(x, 2), RIGHT(x, 13), RIGHT(x, 22), TABLE_XOR)
#define BIG_SIGMA_1(x) TERNARY(RIGHT(x, 6), RIGHT(x, 11), RIGHT(x, 25), TABLE_XOR)
#define SMALL_SIGMA_0(x) TERNARY(RIGHT(x, 7), RIGHT(x, 18), vshrq_n_u32(x, 3), TABLE_XOR)
#define SMALL_SIGMA_1(x) TERNARY(RIGHT(x, 17), RIGHT(x, 19), vshrq_n_u32(x, 10), TABLE_XOR)

NEON_INLINE lanes swap_bytes(lanes x)
{
    return vreinterpretq_u32_u8(vrev32q_u8(vreinterpretq_u8_u32(x)));
}

NEON_INLINE lanes low_halves(lanes a, lanes b)
{
    return vreinterpretq_u32_u64(vtrn1q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
}

NEON_INLINE lanes high_halves(lanes a, lanes b)
{
    return vreinterpretq_u32_u64(vtrn2q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
}

/* Rows become columns. */
NEON_INLINE void transpose(lanes r[4])
{
    lanes even_01 = vtrn1q_u32(r[0], r[1]), odd_01 = vtrn2q_u32(r[0], r[1]);
    lanes even_23 = vtrn1q_u32(r[2], r[3]), odd_23 = vtrn2q_u32(r[2], r[3]);
    r[0] = low_halves(even_01, even_23);
    r[1] = low_halves(odd_01, odd_23);
    r[2] = high_halves(even_01, even_23);
    r[3] = high_halves(odd_01, odd_23);
}

/* w[i] = word i of the four blocks. */
NEON_INLINE void load_blocks(const uint8_t *const *data, size_t offset, lanes w[16])
{
    for (size_t quad = 0; quad < 16; quad += 4) {
        for (size_t i = 0; i < LANES; i++)
            w[quad + i] = swap_bytes(vreinterpretq_u32_u8(vld1q_u8(data[i] + offset + 4 * quad)));
        transpose(w + quad);
    }
}

#define OPEN_STATE(s)                                                                         \
    lanes a = (s)[0], b = (s)[1], c = (s)[2], d = (s)[3], e = (s)[4], f = (s)[5], g = (s)[6], \
          h = (s)[7]
#define CLOSE_STATE(s) \
    do {               \
        (s)[0] += a;   \
        (s)[1] += b;   \
        (s)[2] += c;   \
        (s)[3] += d;   \
        (s)[4] += e;   \
        (s)[5] += f;   \
        (s)[6] += g;   \
        (s)[7] += h;   \
    } while (0)

/* Four blocks, already as words; w is used up. */
NEON_INLINE void four_blocks(lanes s[8], lanes w[16])
{
    OPEN_STATE(s);
#define WK(i) (w[i] + vld1q_dup_u32(cx_digest_k + (i)))
    EIGHT_ROUNDS(0);
    EIGHT_ROUNDS(8);
#undef WK
#define WK(i) (EXPAND(i) + vld1q_dup_u32(cx_digest_k + round + (i)))
    for (size_t round = 16; round < 64; round += 16) {
        EIGHT_ROUNDS(0);
        EIGHT_ROUNDS(8);
    }
#undef WK
    CLOSE_STATE(s);
}

/* The padding block of 64-byte messages: the same words in every lane, from a table. */
NEON_INLINE void four_paddings(lanes s[8])
{
    OPEN_STATE(s);
#define WK(i) vld1q_dup_u32(cx_digest_padding_wk + round + (i))
    for (size_t round = 0; round < 64; round += 16) {
        EIGHT_ROUNDS(0);
        EIGHT_ROUNDS(8);
    }
#undef WK
    CLOSE_STATE(s);
}

NEON_INLINE void first_state(lanes s[8], const uint32_t state[8])
{
    for (size_t i = 0; i < 8; i++)
        s[i] = vdupq_n_u32(state[i]);
}

/* Lane i of the state becomes out[i]. */
NEON_INLINE void store_digests(lanes s[8], cx_digest *out)
{
    transpose(s);
    transpose(s + 4);
    for (size_t i = 0; i < LANES; i++) {
        vst1q_u8(out[i].bytes, vreinterpretq_u8_u32(swap_bytes(s[i])));
        vst1q_u8(out[i].bytes + 16, vreinterpretq_u8_u32(swap_bytes(s[4 + i])));
    }
}

void cx_digest_neon_compress_lanes(uint32_t *states, const uint8_t *const *data, size_t block_count)
{
    lanes s[8], w[16];
    for (size_t i = 0; i < 8; i++)
        s[i] = vld1q_u32(states + LANES * i);
    for (size_t i = 0; i < block_count; i++) {
        load_blocks(data, i * CX_DIGEST_BLOCK_SIZE, w);
        four_blocks(s, w);
    }
    for (size_t i = 0; i < 8; i++)
        vst1q_u32(states + LANES * i, s[i]);
}

/* Four messages are read before their digests are written: `out` may lie over `pairs`. */
void cx_digest_neon_pairs(const uint8_t *pairs, cx_digest *out, size_t count)
{
    for (size_t done = 0; done + LANES <= count; done += LANES) {
        const uint8_t *data[LANES];
        lanes s[8], w[16];
        for (size_t i = 0; i < LANES; i++)
            data[i] = pairs + (done + i) * CX_DIGEST_BLOCK_SIZE;
        first_state(s, cx_digest_first_state);
        load_blocks(data, 0, w);
        four_blocks(s, w);
        four_paddings(s);
        store_digests(s, out + done);
    }
}

void cx_digest_neon_padded(const uint32_t state[8], const uint8_t *blocks, size_t block_count,
                           cx_digest *out, size_t count)
{
    const size_t stride = block_count * CX_DIGEST_BLOCK_SIZE;
    for (size_t done = 0; done + LANES <= count; done += LANES) {
        const uint8_t *data[LANES];
        lanes s[8], w[16];
        for (size_t i = 0; i < LANES; i++)
            data[i] = blocks + (done + i) * stride;
        first_state(s, state);
        for (size_t at = 0; at < stride; at += CX_DIGEST_BLOCK_SIZE) {
            load_blocks(data, at, w);
            four_blocks(s, w);
        }
        store_digests(s, out + done);
    }
}

#endif
