/*
 * crc32c_kernels.h - what the CRC-32C kernels have in common; private to this module.
 *
 * CRC instructions take three or so cycles and can start every cycle.  Kernels therefore sum three
 * neighbouring stretches side by side; a checksum is moved over a stretch of known length by one
 * carry-less multiplication:
 *
 *     crc(A B C) = shift(crc(A), |B| + |C|) ^ shift(crc(B), |C|) ^ crc(C)
 *
 * In reversed bit order a product of two 32-bit values comes out one place too high, and the CRC
 * instructions multiply by x^32 when they reduce; so moving by n bytes takes the constant
 * x^(8n - 33) mod P.
 */
#ifndef CX_CRYPTO_CRC32C_KERNELS_H
#define CX_CRYPTO_CRC32C_KERNELS_H

#include "crypto/crc32c.h"

/* Three stretches of a 4 KiB block, and of what is left of it; multiples of 8. */
enum { CX_CRC32C_LONG = 1360, CX_CRC32C_SHORT = 168 };

/* x^(8n - 33) mod P in reversed bit order, for n = twice and once the length of a stretch. */
typedef struct cx_crc32c_shift {
    uint32_t twice, once;
} cx_crc32c_shift;

static const cx_crc32c_shift cx_crc32c_long_shift = {0x5aa1f3cf, 0x3f70cc6f};
static const cx_crc32c_shift cx_crc32c_short_shift = {0xa60ce07b, 0x1b3d8f29};

/* The checksum of bytes after those of `crc`, without the inversions at both ends. */
typedef uint32_t cx_crc32c_function(uint32_t crc, const uint8_t *at, size_t size);

/* A kernel that this machine can run; NULL for others and for CX_CRC32C_PORTABLE. */
cx_crc32c_function *cx_crc32c_here(cx_crc32c_kernel kernel);

#endif
