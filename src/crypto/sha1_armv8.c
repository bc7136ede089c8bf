/*
 * sha1_armv8.c - SHA-1 with the SHA instructions of ARMv8.
 *
 * The instructions take A to D in one register, A lowest, and E as a number.  The next E is found
 * by SHA1H from the A of four rounds ago, while the rounds go on.  Only kernels_arm64.c names this
 * function, after asking the processor.
 */
#include "crypto/internal.h"

#ifdef CX_DIGEST_ARM

#include <arm_neon.h>

#define ARM_INLINE __attribute__((always_inline)) static inline

ARM_INLINE uint32x4_t load_words(const uint8_t *from)
{
    return vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(from)));
}

/* The schedule's next four words from the sixteen before them, oldest first. */
ARM_INLINE uint32x4_t next_words(uint32x4_t a, uint32x4_t b, uint32x4_t c, uint32x4_t d)
{
    return vsha1su1q_u32(vsha1su0q_u32(a, b, c), d);
}

/* Rounds 4i to 4i + 3; the last sixteen words are in w, the newest at w[i % 4].  SHA1_OP is C, P or
 * M: choose, parity, majority. */
#define FOUR_ROUNDS(i, SHA1_OP, k)                                                            \
    do {                                                                                      \
        if ((i) >= 4)                                                                         \
            w[(i) % 4] =                                                                      \
                next_words(w[(i) % 4], w[((i) + 1) % 4], w[((i) + 2) % 4], w[((i) + 3) % 4]); \
        uint32x4_t sum_ = vaddq_u32(w[(i) % 4], vdupq_n_u32(k));                              \
        uint32_t next_e_ = vsha1h_u32(vgetq_lane_u32(abcd, 0));                               \
        abcd = SHA1_OP(abcd, e, sum_);                                                        \
        e = next_e_;                                                                          \
    } while (0)
#define TWENTY_ROUNDS(i, SHA1_OP, k)      \
    do {                                  \
        FOUR_ROUNDS((i), SHA1_OP, k);     \
        FOUR_ROUNDS((i) + 1, SHA1_OP, k); \
        FOUR_ROUNDS((i) + 2, SHA1_OP, k); \
        FOUR_ROUNDS((i) + 3, SHA1_OP, k); \
        FOUR_ROUNDS((i) + 4, SHA1_OP, k); \
    } while (0)

void cx_sha1_armv8_compress(uint32_t state[5], const uint8_t *data, size_t block_count)
{
    uint32x4_t abcd = vld1q_u32(state);
    uint32_t e = state[4];
    for (; block_count > 0; block_count--, data += CX_DIGEST_BLOCK_SIZE) {
        const uint32x4_t abcd_before = abcd;
        const uint32_t e_before = e;
        uint32x4_t w[4] = {load_words(data), load_words(data + 16), load_words(data + 32),
                           load_words(data + 48)};
        TWENTY_ROUNDS(0, vsha1cq_u32, UINT32_C(0x5a827999));
        TWENTY_ROUNDS(5, vsha1pq_u32, UINT32_C(0x6ed9eba1));
        TWENTY_ROUNDS(10, vsha1mq_u32, UINT32_C(0x8f1bbcdc));
        TWENTY_ROUNDS(15, vsha1pq_u32, UINT32_C(0xca62c1d6));
        abcd = vaddq_u32(abcd, abcd_before);
        e += e_before;
    }
    vst1q_u32(state, abcd);
    state[4] = e;
}

#endif
