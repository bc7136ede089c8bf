/*
 * block_sse2.h - sixteen bytes of text looked at together, with SSE2.  block_neon.h has the same
 * for ARM; internal.h takes one of them, and neither elsewhere.
 */
#ifndef CX_JSON_BLOCK_SSE2_H
#define CX_JSON_BLOCK_SSE2_H

#if defined(__SSE2__) /* elsewhere it is empty */

#include <emmintrin.h>

#include "base/api.h"

#define CX_JSON_BLOCKS 1
#define CX_JSON_BLOCK 16

typedef __m128i cx_json_block;
typedef unsigned cx_json_mask; /* bit i belongs to byte i */

static inline cx_json_block cx_json_block_load(const uint8_t *at)
{
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

static inline void cx_json_block_store(uint8_t *at, cx_json_block block)
{
    _mm_storeu_si128((__m128i *)(void *)at, block);
}

/* The first byte that is in a mask, which is not 0. */
static inline size_t cx_json_mask_first(cx_json_mask mask)
{
    return (size_t)__builtin_ctz(mask);
}

/* The bytes that are not plain (internal.h). */
static inline cx_json_mask cx_json_block_not_plain(cx_json_block block)
{
    /* One added, bytes outside 0x20..0x7E are exactly those below 0x21 as signed numbers. */
    __m128i shifted = _mm_add_epi8(block, _mm_set1_epi8(1));
    __m128i outside = _mm_cmplt_epi8(shifted, _mm_set1_epi8(0x21));
    __m128i quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
    __m128i slash = _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(outside, _mm_or_si128(quote, slash)));
}

/* The bytes that are not '0'..'9'. */
static inline cx_json_mask cx_json_block_not_digits(cx_json_block block)
{
    __m128i digits = _mm_sub_epi8(block, _mm_set1_epi8('0'));
    __m128i is_digits = _mm_cmpeq_epi8(_mm_min_epu8(digits, _mm_set1_epi8(9)), digits);
    return (unsigned)_mm_movemask_epi8(is_digits) ^ 0xFFFF;
}

/* Whether the first `size` bytes, at most 16, are equal. */
static inline bool cx_json_block_equal(cx_json_block a, cx_json_block b, size_t size)
{
    unsigned same = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(a, b));
    return ((same + 1) & ((1u << size) - 1)) == 0;
}

#endif
#endif
