/*
 * crc32c_x86.c - CRC-32C by the CRC32 instruction of SSE 4.2, or by carry-less multiplication of
 * 512 bits at a time.
 *
 * The instruction has a latency of three cycles and can start every cycle, so one chain of it
 * leaves two thirds of the unit idle: three neighbouring stretches are summed side by side
 * (crc32c_kernels.h).
 *
 * The widest kernel never reduces until the end: 16 bytes are as good as what is congruent to them
 * n bits further on, which is their halves multiplied by x^(n + 63) and x^(n - 1) mod P.
 */
#include "crypto/crc32c_kernels.h"

#ifdef __x86_64__

#include <immintrin.h>

#include "base/api.h"

/* --- SSE 4.2 ------------------------------------------------------------------------------- */

#define SSE42 __attribute__((target("sse4.2,pclmul")))
#define SSE42_INLINE SSE42 __attribute__((always_inline)) static inline

enum { LONG = CX_CRC32C_LONG, SHORT = CX_CRC32C_SHORT };

SSE42_INLINE uint64_t load_u64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

SSE42_INLINE uint64_t shift(uint64_t crc, uint32_t constant)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc),
                                           _mm_cvtsi32_si128((int)constant), 0);
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

SSE42_INLINE uint64_t three_stretches(uint64_t a, const uint8_t *at, size_t size,
                                      cx_crc32c_shift by)
{
    uint64_t b = 0, c = 0;
    for (size_t i = 0; i < size; i += 8) {
        a = _mm_crc32_u64(a, load_u64(at + i));
        b = _mm_crc32_u64(b, load_u64(at + size + i));
        c = _mm_crc32_u64(c, load_u64(at + 2 * size + i));
    }
    return shift(a, by.twice) ^ shift(b, by.once) ^ c;
}

SSE42 static uint32_t sse42(uint32_t before, const uint8_t *at, size_t size)
{
    uint64_t crc = before;
    for (; size >= 3 * LONG; at += 3 * LONG, size -= 3 * LONG)
        crc = three_stretches(crc, at, LONG, cx_crc32c_long_shift);
    for (; size >= 3 * SHORT; at += 3 * SHORT, size -= 3 * SHORT)
        crc = three_stretches(crc, at, SHORT, cx_crc32c_short_shift);
    for (; size >= 8; at += 8, size -= 8)
        crc = _mm_crc32_u64(crc, load_u64(at));
    for (; size != 0; at++, size--)
        crc = _mm_crc32_u8((uint32_t)crc, *at);
    return (uint32_t)crc;
}

/* --- AVX-512 ------------------------------------------------------------------------------- */

#define WIDE __attribute__((target("avx512f,vpclmulqdq,sse4.2,pclmul")))
#define WIDE_INLINE WIDE __attribute__((always_inline)) static inline

enum { WIDE_LEAST = 256 }; /* bytes: shorter ones are left to the CRC32 instruction */

/* x^(n + 63) and x^(n - 1) mod P in reversed bit order, for n = four registers, one, and 128 bits.
 */
typedef struct fold_by {
    uint32_t low, high;
} fold_by;

static const fold_by four_registers = {0xe9a5d8be, 0x1426a815};
static const fold_by one_register = {0x1c19243b, 0x75bba45b};
static const fold_by one_lane = {0x3743f7bd, 0x3171d430};

/* 32 bits as the highest powers of a half. */
WIDE_INLINE __m128i fold_constants(fold_by by)
{
    /* All 64 bits are meant, as a number with a sign or without. */
    return _mm_set_epi64x((long long)((uint64_t)by.high << 32), /* NOLINT(*-widening-cast) */
                          (long long)((uint64_t)by.low << 32)); /* NOLINT(*-widening-cast) */
}

WIDE_INLINE __m512i fold(__m512i before, __m512i by, __m512i next)
{
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(before, by, 0x00),
                                     _mm512_clmulepi64_epi128(before, by, 0x11), next, 0x96);
}

WIDE_INLINE __m128i fold_lane(__m128i before, __m128i by, __m128i next)
{
    return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(before, by, 0x00),
                                       _mm_clmulepi64_si128(before, by, 0x11)),
                         next);
}

/* What has the same remainder as the four lanes in a row. */
WIDE_INLINE uint64_t reduce(__m512i lanes)
{
    const __m128i by = fold_constants(one_lane);
    __m128i sum = _mm512_castsi512_si128(lanes);
    sum = fold_lane(sum, by, _mm512_extracti32x4_epi32(lanes, 1));
    sum = fold_lane(sum, by, _mm512_extracti32x4_epi32(lanes, 2));
    sum = fold_lane(sum, by, _mm512_extracti32x4_epi32(lanes, 3));
    uint64_t crc = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(sum));
    return _mm_crc32_u64(crc, (uint64_t)_mm_extract_epi64(sum, 1));
}

WIDE static uint32_t wide(uint32_t crc, const uint8_t *at, size_t size)
{
    if (size < WIDE_LEAST)
        return sse42(crc, at, size);
    const __m512i far = _mm512_broadcast_i32x4(fold_constants(four_registers));
    const __m512i near = _mm512_broadcast_i32x4(fold_constants(one_register));
    __m512i a = _mm512_loadu_si512(at), b = _mm512_loadu_si512(at + 64);
    __m512i c = _mm512_loadu_si512(at + 128), d = _mm512_loadu_si512(at + 192);
    a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
    for (at += 256, size -= 256; size >= 256; at += 256, size -= 256) {
        a = fold(a, far, _mm512_loadu_si512(at));
        b = fold(b, far, _mm512_loadu_si512(at + 64));
        c = fold(c, far, _mm512_loadu_si512(at + 128));
        d = fold(d, far, _mm512_loadu_si512(at + 192));
    }
    a = fold(fold(fold(a, near, b), near, c), near, d);
    for (; size >= 64; at += 64, size -= 64)
        a = fold(a, near, _mm512_loadu_si512(at));
    return sse42((uint32_t)reduce(a), at, size);
}

/* --- which are here ------------------------------------------------------------------------ */

cx_crc32c_function *cx_crc32c_here(cx_crc32c_kernel kernel)
{
    const unsigned narrow_needs = CX_PROCESSOR_X86_CRC32;
    const unsigned wide_needs =
        narrow_needs | CX_PROCESSOR_X86_AVX512F | CX_PROCESSOR_X86_VPCLMULQDQ;
    if (kernel == CX_CRC32C_SSE42 && cx_processor_has(narrow_needs))
        return sse42;
    return kernel == CX_CRC32C_AVX512 && cx_processor_has(wide_needs) ? wide : NULL;
}

#endif
