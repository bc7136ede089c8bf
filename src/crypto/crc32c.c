/*
 * crc32c.c - CRC-32C: eight tables in plain C, or the CRC32 instruction of SSE 4.2.
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
 */
#include "crypto/crc32c.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/bytes.h"
#include "base/diag.h"

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

static uint32_t plain(uint32_t crc, const uint8_t *at, size_t size)
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

#endif

/* --- choosing ------------------------------------------------------------------------------ */

/* Asked once: a hypervisor makes the question dear. */
static bool ask_processor(void)
{
#ifdef CRC_X86
    static _Atomic int known; /* 0 = not asked, 1 = no, 2 = yes */
    int found = atomic_load_explicit(&known, memory_order_relaxed);
    if (CX_UNLIKELY(found == 0)) {
        found = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") ? 2 : 1;
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return found == 2;
#else
    return false;
#endif
}

bool cx_crc32c_has(cx_crc32c_kernel kernel)
{
    return kernel == CX_CRC32C_PORTABLE || ask_processor();
}

uint32_t cx_crc32c_add_with(cx_crc32c_kernel kernel, uint32_t crc, const void *data,
                            size_t size_bytes)
{
#ifdef CRC_X86
    if (kernel == CX_CRC32C_SSE42)
        return ~sse42(~crc, data, size_bytes);
#endif
    CX_ASSERT(kernel == CX_CRC32C_PORTABLE);
    return ~plain(~crc, data, size_bytes);
}

uint32_t cx_crc32c_add(uint32_t crc, const void *data, size_t size_bytes)
{
    return cx_crc32c_add_with(ask_processor() ? CX_CRC32C_SSE42 : CX_CRC32C_PORTABLE, crc, data,
                              size_bytes);
}
