/*
 * digest_armv8.c - SHA-256 with the SHA instructions of ARMv8, one message or two next to each
 * other.
 *
 * Each four rounds are SHA256H and SHA256H2, which wait for the four rounds before them; the rounds
 * of a second, independent message fill the unit meanwhile.
 *
 * The instructions want the state as it is written down: a to d in one register, e to h in another,
 * the first word lowest.  Only kernels_arm64.c names these functions, after asking the processor;
 * CMakeLists.txt lets the compiler use the instructions in this file.
 */
#include "crypto/internal.h"

#ifdef CX_DIGEST_ARM

#include <arm_neon.h>

#define ARM_INLINE __attribute__((always_inline)) static inline

typedef struct halves {
    uint32x4_t abcd;
    uint32x4_t efgh;
} halves;

/* Four words, big-endian as SHA-256 is throughout. */
ARM_INLINE uint32x4_t load_words(const uint8_t *from)
{
    return vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(from)));
}

ARM_INLINE halves load_state(const uint32_t state[8])
{
    return (halves){vld1q_u32(state), vld1q_u32(state + 4)};
}

ARM_INLINE void store_state(halves s, uint32_t state[8])
{
    vst1q_u32(state, s.abcd);
    vst1q_u32(state + 4, s.efgh);
}

ARM_INLINE void store_digest(halves s, cx_digest *out)
{
    vst1q_u8(out->bytes, vrev32q_u8(vreinterpretq_u8_u32(s.abcd)));
    vst1q_u8(out->bytes + 16, vrev32q_u8(vreinterpretq_u8_u32(s.efgh)));
}

ARM_INLINE halves add_states(halves a, halves b)
{
    return (halves){vaddq_u32(a.abcd, b.abcd), vaddq_u32(a.efgh, b.efgh)};
}

/* Four rounds; `wk` is four words of schedule plus constants. */
ARM_INLINE halves four_rounds(halves s, uint32x4_t wk)
{
    return (halves){vsha256hq_u32(s.abcd, s.efgh, wk), vsha256h2q_u32(s.efgh, s.abcd, wk)};
}

/* The four schedule words that follow the sixteen in w0..w3. */
ARM_INLINE uint32x4_t next_words(uint32x4_t w0, uint32x4_t w1, uint32x4_t w2, uint32x4_t w3)
{
    return vsha256su1q_u32(vsha256su0q_u32(w0, w1), w2, w3);
}

ARM_INLINE uint32x4_t add_k(uint32x4_t words, size_t round)
{
    return vaddq_u32(words, vld1q_u32(cx_digest_k + round));
}

ARM_INLINE halves one_block(halves before, const uint8_t *data)
{
    halves s = before;
    uint32x4_t w0 = load_words(data), w1 = load_words(data + 16);
    uint32x4_t w2 = load_words(data + 32), w3 = load_words(data + 48);
    s = four_rounds(s, add_k(w0, 0));
    s = four_rounds(s, add_k(w1, 4));
    s = four_rounds(s, add_k(w2, 8));
    s = four_rounds(s, add_k(w3, 12));
    for (size_t round = 16; round < 64; round += 16) {
        w0 = next_words(w0, w1, w2, w3);
        s = four_rounds(s, add_k(w0, round));
        w1 = next_words(w1, w2, w3, w0);
        s = four_rounds(s, add_k(w1, round + 4));
        w2 = next_words(w2, w3, w0, w1);
        s = four_rounds(s, add_k(w2, round + 8));
        w3 = next_words(w3, w0, w1, w2);
        s = four_rounds(s, add_k(w3, round + 12));
    }
    return add_states(before, s);
}

/* The same step of two messages, x and y: what stands on one line is independent. */
#define BOTH_ROUNDS(w, round)                             \
    do {                                                  \
        uint32x4_t k_ = vld1q_u32(cx_digest_k + (round)); \
        x = four_rounds(x, vaddq_u32(x##w, k_));          \
        y = four_rounds(y, vaddq_u32(y##w, k_));          \
    } while (0)
#define BOTH_NEXT(wa, wb, wc, wd)                       \
    do {                                                \
        x##wa = next_words(x##wa, x##wb, x##wc, x##wd); \
        y##wa = next_words(y##wa, y##wb, y##wc, y##wd); \
    } while (0)

ARM_INLINE void two_blocks(halves *state_x, halves *state_y, const uint8_t *data_x,
                           const uint8_t *data_y)
{
    halves x = *state_x, y = *state_y;
    uint32x4_t x0 = load_words(data_x), y0 = load_words(data_y);
    uint32x4_t x1 = load_words(data_x + 16), y1 = load_words(data_y + 16);
    uint32x4_t x2 = load_words(data_x + 32), y2 = load_words(data_y + 32);
    uint32x4_t x3 = load_words(data_x + 48), y3 = load_words(data_y + 48);
    BOTH_ROUNDS(0, 0);
    BOTH_ROUNDS(1, 4);
    BOTH_ROUNDS(2, 8);
    BOTH_ROUNDS(3, 12);
    for (size_t round = 16; round < 64; round += 16) {
        BOTH_NEXT(0, 1, 2, 3);
        BOTH_ROUNDS(0, round);
        BOTH_NEXT(1, 2, 3, 0);
        BOTH_ROUNDS(1, round + 4);
        BOTH_NEXT(2, 3, 0, 1);
        BOTH_ROUNDS(2, round + 8);
        BOTH_NEXT(3, 0, 1, 2);
        BOTH_ROUNDS(3, round + 12);
    }
    *state_x = add_states(*state_x, x);
    *state_y = add_states(*state_y, y);
}

/* The padding block of 64-byte messages: its schedule is a table. */
ARM_INLINE void two_paddings(halves *state_x, halves *state_y)
{
    halves x = *state_x, y = *state_y;
    for (size_t quad = 0; quad < 64; quad += 4) {
        uint32x4_t wk = vld1q_u32(cx_digest_padding_wk + quad);
        x = four_rounds(x, wk);
        y = four_rounds(y, wk);
    }
    *state_x = add_states(*state_x, x);
    *state_y = add_states(*state_y, y);
}

void cx_digest_armv8_compress(uint32_t state[8], const uint8_t *data, size_t block_count)
{
    halves s = load_state(state);
    for (; block_count > 0; block_count--, data += CX_DIGEST_BLOCK_SIZE)
        s = one_block(s, data);
    store_state(s, state);
}

void cx_digest_armv8_compress_lanes(uint32_t *states, const uint8_t *const *data,
                                    size_t block_count)
{
    halves x = load_state(states), y = load_state(states + 8);
    for (size_t i = 0; i < block_count; i++)
        two_blocks(&x, &y, data[0] + i * CX_DIGEST_BLOCK_SIZE, data[1] + i * CX_DIGEST_BLOCK_SIZE);
    store_state(x, states);
    store_state(y, states + 8);
}

/* Both messages are read before either digest is written, and digests are half as long: `out` may
 * lie over `pairs`. */
void cx_digest_armv8_pairs(const uint8_t *pairs, cx_digest *out, size_t count)
{
    const halves first = load_state(cx_digest_first_state);
    size_t i = 0;
    for (; i + 2 <= count; i += 2) {
        halves x = first, y = first;
        const uint8_t *data = pairs + i * CX_DIGEST_BLOCK_SIZE;
        two_blocks(&x, &y, data, data + CX_DIGEST_BLOCK_SIZE);
        two_paddings(&x, &y);
        store_digest(x, &out[i]);
        store_digest(y, &out[i + 1]);
    }
    if (i < count) {
        halves x = one_block(first, pairs + i * CX_DIGEST_BLOCK_SIZE), y = x;
        two_paddings(&x, &y);
        store_digest(x, &out[i]);
    }
}

void cx_digest_armv8_padded(const uint32_t state[8], const uint8_t *blocks, size_t block_count,
                            cx_digest *out, size_t count)
{
    const halves first = load_state(state);
    const size_t stride = block_count * CX_DIGEST_BLOCK_SIZE;
    size_t i = 0;
    for (; i + 2 <= count; i += 2, blocks += 2 * stride) {
        halves x = first, y = first;
        for (size_t at = 0; at < stride; at += CX_DIGEST_BLOCK_SIZE)
            two_blocks(&x, &y, blocks + at, blocks + stride + at);
        store_digest(x, &out[i]);
        store_digest(y, &out[i + 1]);
    }
    if (i < count) {
        halves x = first;
        for (size_t at = 0; at < stride; at += CX_DIGEST_BLOCK_SIZE)
            x = one_block(x, blocks + at);
        store_digest(x, &out[i]);
    }
}

#endif
