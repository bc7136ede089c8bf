/*
 * digest_shani.c - SHA-256 with the SHA extensions of x86, one message or two next to each other.
 *
 * SHA256RNDS2 has a latency of four cycles and can start every second one, so a single message
 * leaves the unit idle half of the time; two independent messages fill it.
 *
 * The instructions want the state as two registers of four words, named here from the highest word
 * down: abef and cdgh.  Only digest.c calls this file, after asking the processor.
 */
#include "crypto/internal.h"

#ifdef CX_DIGEST_X86

#include <immintrin.h>

#define SHANI __attribute__((target("sha,sse4.1,ssse3")))
#define SHANI_INLINE SHANI __attribute__((always_inline)) static inline

typedef struct halves {
    __m128i abef;
    __m128i cdgh;
} halves;

/* Reverses the bytes of each 32-bit word: SHA-256 is big-endian throughout. */
SHANI_INLINE __m128i swap_words(__m128i words)
{
    return _mm_shuffle_epi8(words, _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203));
}

SHANI_INLINE __m128i load(const void *from)
{
    return _mm_loadu_si128((const __m128i *)from);
}

SHANI_INLINE halves load_state(const uint32_t state[8])
{
    __m128i cdab = _mm_shuffle_epi32(load(state), 0xb1);
    __m128i efgh = _mm_shuffle_epi32(load(state + 4), 0x1b);
    return (halves){_mm_alignr_epi8(cdab, efgh, 8), _mm_blend_epi16(efgh, cdab, 0xf0)};
}

SHANI_INLINE void unpack_state(halves s, __m128i *out_low, __m128i *out_high)
{
    __m128i feba = _mm_shuffle_epi32(s.abef, 0x1b);
    __m128i dchg = _mm_shuffle_epi32(s.cdgh, 0xb1);
    *out_low = _mm_blend_epi16(feba, dchg, 0xf0);
    *out_high = _mm_alignr_epi8(dchg, feba, 8);
}

SHANI_INLINE void store_state(halves s, uint32_t state[8])
{
    __m128i low, high;
    unpack_state(s, &low, &high);
    _mm_storeu_si128((__m128i *)(void *)state, low);
    _mm_storeu_si128((__m128i *)(void *)(state + 4), high);
}

SHANI_INLINE void store_digest(halves s, cx_digest *out)
{
    __m128i low, high;
    unpack_state(s, &low, &high);
    _mm_storeu_si128((__m128i *)(void *)out->bytes, swap_words(low));
    _mm_storeu_si128((__m128i *)(void *)(out->bytes + 16), swap_words(high));
}

SHANI_INLINE halves add_states(halves a, halves b)
{
    return (halves){_mm_add_epi32(a.abef, b.abef), _mm_add_epi32(a.cdgh, b.cdgh)};
}

/* Four rounds; `wk` is four words of schedule plus constants.  Two rounds turn abef into the next
 * cdgh, so the names trade places and are right again after four. */
SHANI_INLINE halves four_rounds(halves s, __m128i wk)
{
    s.cdgh = _mm_sha256rnds2_epu32(s.cdgh, s.abef, wk);
    s.abef = _mm_sha256rnds2_epu32(s.abef, s.cdgh, _mm_shuffle_epi32(wk, 0x0e));
    return s;
}

/* The four schedule words that follow the sixteen in w0..w3. */
SHANI_INLINE __m128i next_words(__m128i w0, __m128i w1, __m128i w2, __m128i w3)
{
    __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4));
    return _mm_sha256msg2_epu32(sum, w3);
}

SHANI_INLINE __m128i add_k(__m128i words, size_t round)
{
    return _mm_add_epi32(words, load(cx_digest_k + round));
}

SHANI_INLINE halves one_block(halves before, const uint8_t *data)
{
    halves s = before;
    __m128i w0 = swap_words(load(data)), w1 = swap_words(load(data + 16));
    __m128i w2 = swap_words(load(data + 32)), w3 = swap_words(load(data + 48));
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
#define BOTH_ROUNDS(w, round)                   \
    do {                                        \
        x = four_rounds(x, add_k(x##w, round)); \
        y = four_rounds(y, add_k(y##w, round)); \
    } while (0)
#define BOTH_NEXT(wa, wb, wc, wd)                       \
    do {                                                \
        x##wa = next_words(x##wa, x##wb, x##wc, x##wd); \
        y##wa = next_words(y##wa, y##wb, y##wc, y##wd); \
    } while (0)

SHANI_INLINE void two_blocks(halves *state_x, halves *state_y, const uint8_t *data_x,
                             const uint8_t *data_y)
{
    halves x = *state_x, y = *state_y;
    __m128i x0 = swap_words(load(data_x)), y0 = swap_words(load(data_y));
    __m128i x1 = swap_words(load(data_x + 16)), y1 = swap_words(load(data_y + 16));
    __m128i x2 = swap_words(load(data_x + 32)), y2 = swap_words(load(data_y + 32));
    __m128i x3 = swap_words(load(data_x + 48)), y3 = swap_words(load(data_y + 48));
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
SHANI_INLINE void two_paddings(halves *state_x, halves *state_y)
{
    halves x = *state_x, y = *state_y;
    for (size_t round = 0; round < 64; round += 16) {
        for (size_t quad = round; quad < round + 16; quad += 4) {
            __m128i wk = load(cx_digest_padding_wk + quad);
            x = four_rounds(x, wk);
            y = four_rounds(y, wk);
        }
    }
    *state_x = add_states(*state_x, x);
    *state_y = add_states(*state_y, y);
}

SHANI void cx_digest_shani_compress(uint32_t state[8], const uint8_t *data, size_t block_count)
{
    halves s = load_state(state);
    for (; block_count > 0; block_count--, data += CX_DIGEST_BLOCK_SIZE)
        s = one_block(s, data);
    store_state(s, state);
}

SHANI void cx_digest_shani_compress_lanes(uint32_t *states, const uint8_t *const *data,
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
SHANI void cx_digest_shani_pairs(const uint8_t *pairs, cx_digest *out, size_t count)
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

SHANI void cx_digest_shani_padded(const uint32_t state[8], const uint8_t *blocks,
                                  size_t block_count, cx_digest *out, size_t count)
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
