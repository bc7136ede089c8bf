/*
 * crc32c_armv8.c - CRC-32C by the CRC32C instructions of ARMv8: one chain of them, or three side by
 * side (crc32c_kernels.h) where PMULL joins their sums.
 *
 * CMakeLists.txt lets the compiler use the instructions in this file.
 */
#include "crypto/crc32c_kernels.h"

#if defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

#include <arm_acle.h>
#include <arm_neon.h>

#include "base/api.h"

#define ARM_INLINE __attribute__((always_inline)) static inline

enum { LONG = CX_CRC32C_LONG, SHORT = CX_CRC32C_SHORT };

ARM_INLINE uint64_t load_u64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint32_t one_chain(uint32_t crc, const uint8_t *at, size_t size)
{
    for (; size >= 8; at += 8, size -= 8)
        crc = __crc32cd(crc, load_u64(at));
    for (; size != 0; at++, size--)
        crc = __crc32cb(crc, *at);
    return crc;
}

ARM_INLINE uint32_t shift(uint32_t crc, uint32_t constant)
{
    poly128_t product = vmull_p64((poly64_t)crc, (poly64_t)constant);
    return __crc32cd(0, vgetq_lane_u64(vreinterpretq_u64_p128(product), 0));
}

ARM_INLINE uint32_t three_stretches(uint32_t a, const uint8_t *at, size_t size, cx_crc32c_shift by)
{
    uint32_t b = 0, c = 0;
    for (size_t i = 0; i < size; i += 8) {
        a = __crc32cd(a, load_u64(at + i));
        b = __crc32cd(b, load_u64(at + size + i));
        c = __crc32cd(c, load_u64(at + 2 * size + i));
    }
    return shift(a, by.twice) ^ shift(b, by.once) ^ c;
}

static uint32_t three_chains(uint32_t crc, const uint8_t *at, size_t size)
{
    for (; size >= 3 * LONG; at += 3 * LONG, size -= 3 * LONG)
        crc = three_stretches(crc, at, LONG, cx_crc32c_long_shift);
    for (; size >= 3 * SHORT; at += 3 * SHORT, size -= 3 * SHORT)
        crc = three_stretches(crc, at, SHORT, cx_crc32c_short_shift);
    return one_chain(crc, at, size);
}

cx_crc32c_function *cx_crc32c_here(cx_crc32c_kernel kernel)
{
    if (kernel == CX_CRC32C_ARMV8 && cx_processor_has(CX_PROCESSOR_ARM_CRC32))
        return one_chain;
    if (kernel == CX_CRC32C_ARMV8_PMULL &&
        cx_processor_has(CX_PROCESSOR_ARM_CRC32 | CX_PROCESSOR_ARM_PMULL))
        return three_chains;
    return NULL;
}

#endif
