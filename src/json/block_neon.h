/*
 * block_neon.h - sixteen bytes of text looked at together, with NEON.  block_sse2.h has the same
 * for x86, and says what the functions do.
 *
 * NEON has no instruction for a mask of one bit a byte: narrowing pairs of bytes by a shift of four
 * gives four bits a byte in 64 bits.
 */
#ifndef CX_JSON_BLOCK_NEON_H
#define CX_JSON_BLOCK_NEON_H

#if defined(__aarch64__) /* elsewhere it is empty */

#include <arm_neon.h>

#include "base/api.h"

#define CX_JSON_BLOCKS 1
#define CX_JSON_BLOCK 16

typedef uint8x16_t cx_json_block;
typedef uint64_t cx_json_mask; /* bits 4i to 4i + 3 belong to byte i, and are all equal */

static inline cx_json_block cx_json_block_load(const uint8_t *at)
{
    return vld1q_u8(at);
}

static inline void cx_json_block_store(uint8_t *at, cx_json_block block)
{
    vst1q_u8(at, block);
}

static inline size_t cx_json_mask_first(cx_json_mask mask)
{
    return (size_t)__builtin_ctzll(mask) / 4;
}

/* `bytes` are 0 or 0xff. */
static inline cx_json_mask cx_json_mask_of(uint8x16_t bytes)
{
    return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(bytes), 4)), 0);
}

static inline cx_json_mask cx_json_block_not_plain(cx_json_block block)
{
    /* 0x20..0x7E are the 0x5f values from 0x20 on. */
    uint8x16_t outside = vcgtq_u8(vsubq_u8(block, vdupq_n_u8(0x20)), vdupq_n_u8(0x5e));
    uint8x16_t quote = vceqq_u8(block, vdupq_n_u8('"'));
    uint8x16_t slash = vceqq_u8(block, vdupq_n_u8('\\'));
    return cx_json_mask_of(vorrq_u8(outside, vorrq_u8(quote, slash)));
}

static inline cx_json_mask cx_json_block_not_digits(cx_json_block block)
{
    return cx_json_mask_of(vcgtq_u8(vsubq_u8(block, vdupq_n_u8('0')), vdupq_n_u8(9)));
}

static inline bool cx_json_block_equal(cx_json_block a, cx_json_block b, size_t size)
{
    cx_json_mask same = cx_json_mask_of(vceqq_u8(a, b));
    return size == 0 || ~same << (64 - 4 * size) == 0;
}

#endif
#endif
