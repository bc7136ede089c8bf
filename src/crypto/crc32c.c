/*
 * crc32c.c - CRC-32C: eight tables in plain C, the CRC32 instruction of SSE 4.2, or carry-less
 * multiplication of 512 bits at a time.
 *
 * The instruction has a latency of three cycles and can start every cycle, so one chain of it
 * leaves two thirds of the unit idle.  Three neighbouring stretches are therefore summed side by
 * side; a checksum is moved over a stretch of known length by one carry-less multiplication:
 *
 *     crc(A B C) = shift(crc(A), |B| + |C|) ^ shift(crc(B), |C|) ^ crc(C)
 *
 * In reversed bit order a product of two 32-bit values comes out one place too high, and the CRC32
 * instruction multiplies by x^32 when it reduces; so moving by n bytes takes the constant
 * x^(8n - 33) mod P.
 *
 * The widest kernel never reduces until the end: 16 bytes are as good as what is congruent to them
 * n bits further on, which is their halves multiplied by x^(n + 63) and x^(n - 1) mod P.
 */
#include "crypto/crc32c.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/api.h"

#ifdef __x86_64__
#include <immintrin.h>
#define CRC_X86 1
#endif

/* --- plain C ------------------------------------------------------------------------------- */

/* The polynomial x^32 + x^28 + x^27 + ... + 1 in reversed bit order. */
#define POLYNOMIAL 0x82f63b78u

/* table[k][b]: the checksum of byte b followed by k zero bytes, without the inversions. */
static uint32_t table[8][256];
static pthread_once_t table_made = PTHREAD_ONCE_INIT;

static void make_table(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ ((crc & 1) != 0 ? POLYNOMIAL : 0);
        table[0][byte] = crc;
    }
    for (size_t k = 1; k < 8; k++)
        for (size_t byte = 0; byte < 256; byte++) {
            uint32_t crc = table[k - 1][byte];
            table[k][byte] = crc >> 8 ^ table[0][crc & 0xff];
        }
}

static uint32_t crc_by_table(uint32_t crc, const uint8_t *at, size_t size)
{
    int failed = pthread_once(&table_made, make_table);
    CX_ASSERT(failed == 0);
    for (; size >= 8; at += 8, size -= 8) {
        uint32_t low =
            crc ^ ((uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0]);
        crc = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^
              table[4][low >> 24] ^ table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^
              table[0][at[7]];
    }
    for (; size != 0; at++, size--)
        crc = crc >> 8 ^ table[0][(crc ^ *at) & 0xff];
    return crc;
}

/* --- SSE 4.2 ------------------------------------------------------------------------------- */

#ifdef CRC_X86

#define SSE42 __attribute__((target("sse4.2,pclmul")))
#define SSE42_INLINE SSE42 __attribute__((always_inline)) static inline

/* Three stretches of a 4 KiB block, and of what is left of it; multiples of 8. */
enum { LONG = 1360, SHORT = 168 };

/* x^(8n - 33) mod P in reversed bit order, for n = twice and once the length of a stretch. */
typedef struct shift_by {
    uint32_t twice, once;
} shift_by;

static const shift_by long_shift = {0x5aa1f3cf, 0x3f70cc6f};
static const shift_by short_shift = {0xa60ce07b, 0x1b3d8f29};

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

SSE42_INLINE uint64_t three_stretches(uint64_t a, const uint8_t *at, size_t size, shift_by by)
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
        crc = three_stretches(crc, at, LONG, long_shift);
    for (; size >= 3 * SHORT; at += 3 * SHORT, size -= 3 * SHORT)
        crc = three_stretches(crc, at, SHORT, short_shift);
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

#endif

/* --- choosing ------------------------------------------------------------------------------ */

#ifdef CRC_X86
static cx_crc32c_kernel detect_kernel(void)
{
    if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("pclmul"))
        return CX_CRC32C_PORTABLE;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("vpclmulqdq"))
        return CX_CRC32C_SSE42;
    return CX_CRC32C_AVX512;
}
#endif

/* The fastest one, asked for once: a hypervisor makes the question dear. */
static cx_crc32c_kernel chosen_kernel(void)
{
#ifdef CRC_X86
    static _Atomic int known; /* 0 = not asked, else the kernel + 1 */
    int found = atomic_load_explicit(&known, memory_order_relaxed);
    if (CX_UNLIKELY(found == 0)) {
        found = (int)detect_kernel() + 1;
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return (cx_crc32c_kernel)(found - 1);
#else
    return CX_CRC32C_PORTABLE;
#endif
}

bool cx_crc32c_has(cx_crc32c_kernel kernel)
{
    return kernel <= chosen_kernel();
}

uint32_t cx_crc32c_add_with(cx_crc32c_kernel kernel, uint32_t crc, const void *data,
                            size_t size_bytes)
{
#ifdef CRC_X86
    if (kernel == CX_CRC32C_AVX512)
        return ~wide(~crc, data, size_bytes);
    if (kernel == CX_CRC32C_SSE42)
        return ~sse42(~crc, data, size_bytes);
#endif
    CX_ASSERT(kernel == CX_CRC32C_PORTABLE);
    return ~crc_by_table(~crc, data, size_bytes);
}

uint32_t cx_crc32c_add(uint32_t crc, const void *data, size_t size_bytes)
{
    return cx_crc32c_add_with(chosen_kernel(), crc, data, size_bytes);
}
