/*
 * sha1_shani.c - SHA-1 with the SHA extensions of x86.
 *
 * The instructions want A, B, C and D in one register, A highest, and E in the highest word of
 * another; likewise each four words of the message.  SHA1NEXTE finds E by itself from the A of four
 * rounds ago: the register of that time is kept as `e`.  Only sha1.c calls this file, after asking
 * the processor.
 */
#include "crypto/internal.h"

#ifdef CX_DIGEST_X86

#include <immintrin.h>

#define SHANI __attribute__((target("sha,sse4.1,ssse3")))
#define SHANI_INLINE SHANI __attribute__((always_inline)) static inline

/* Four words, big-endian, the first one highest: all sixteen bytes turned round. */
SHANI_INLINE __m128i load_words(const uint8_t *from)
{
    __m128i words = _mm_loadu_si128((const __m128i *)(const void *)from);
    return _mm_shuffle_epi8(words, _mm_set_epi64x(0x0001020304050607, 0x08090a0b0c0d0e0f));
}

/* The schedule's next four words from the sixteen before them, oldest first. */
SHANI_INLINE __m128i next_words(__m128i a, __m128i b, __m128i c, __m128i d)
{
    return _mm_sha1msg2_epu32(_mm_xor_si128(_mm_sha1msg1_epu32(a, b), c), d);
}

/* Rounds 4i to 4i + 3; the last sixteen words are in w, the newest at w[i % 4]. */
#define FOUR_ROUNDS(i)                                                                        \
    do {                                                                                      \
        if ((i) >= 4)                                                                         \
            w[(i) % 4] =                                                                      \
                next_words(w[(i) % 4], w[((i) + 1) % 4], w[((i) + 2) % 4], w[((i) + 3) % 4]); \
        __m128i sum = (i) == 0 ? _mm_add_epi32(e, w[0]) : _mm_sha1nexte_epu32(e, w[(i) % 4]); \
        e = abcd;                                                                             \
        abcd = _mm_sha1rnds4_epu32(abcd, sum, (i) / 5);                                       \
    } while (0)

SHANI void cx_sha1_shani_compress(uint32_t state[5], const uint8_t *data, size_t block_count)
{
    __m128i abcd = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)state), 0x1b);
    __m128i e = _mm_set_epi32((int)state[4], 0, 0, 0);
    for (; block_count > 0; block_count--, data += CX_DIGEST_BLOCK_SIZE) {
        const __m128i abcd_before = abcd, e_before = e;
        __m128i w[4] = {load_words(data), load_words(data + 16), load_words(data + 32),
                        load_words(data + 48)};
        FOUR_ROUNDS(0);
        FOUR_ROUNDS(1);
        FOUR_ROUNDS(2);
        FOUR_ROUNDS(3);
        FOUR_ROUNDS(4);
        FOUR_ROUNDS(5);
        FOUR_ROUNDS(6);
        FOUR_ROUNDS(7);
        FOUR_ROUNDS(8);
        FOUR_ROUNDS(9);
        FOUR_ROUNDS(10);
        FOUR_ROUNDS(11);
        FOUR_ROUNDS(12);
        FOUR_ROUNDS(13);
        FOUR_ROUNDS(14);
        FOUR_ROUNDS(15);
        FOUR_ROUNDS(16);
        FOUR_ROUNDS(17);
        FOUR_ROUNDS(18);
        FOUR_ROUNDS(19);
        e = _mm_sha1nexte_epu32(e, e_before);
        abcd = _mm_add_epi32(abcd, abcd_before);
    }
    _mm_storeu_si128((__m128i *)(void *)state, _mm_shuffle_epi32(abcd, 0x1b));
    state[4] = (uint32_t)_mm_extract_epi32(e, 3);
}

#endif
