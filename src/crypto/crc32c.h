/*
 * crc32c.h - CRC-32C (RFC 3720 §12.1, the Castagnoli polynomial).
 *
 * It finds what happens by accident to bytes on a disk: torn writes, flipped bits, blocks in the
 * wrong place.  It is no protection against anybody: that is what digests are for.  The kernel is
 * chosen at run time; all give the same values.  Thread-safe.
 */
#ifndef CX_CRYPTO_CRC32C_H
#define CX_CRYPTO_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of those that a machine has, the last one is its fastest. */
typedef enum cx_crc32c_kernel {
    CX_CRC32C_PORTABLE,
    CX_CRC32C_ARMV8,
    CX_CRC32C_ARMV8_PMULL,
    CX_CRC32C_SSE42,
    CX_CRC32C_AVX512 /* with VPCLMULQDQ */
} cx_crc32c_kernel;
#define CX_CRC32C_KERNEL_COUNT 5

/* The checksum of what `crc` is the checksum of (0 = nothing yet), followed by these bytes. */
uint32_t cx_crc32c_add(uint32_t crc, const void *data, size_t size_bytes);

/* Whether this machine can run a kernel; the one chosen; the same work on a named one (tests and
 * benchmarks). */
bool cx_crc32c_has(cx_crc32c_kernel kernel);
cx_crc32c_kernel cx_crc32c_chosen(void);
const char *cx_crc32c_kernel_name(cx_crc32c_kernel kernel);
uint32_t cx_crc32c_add_with(cx_crc32c_kernel kernel, uint32_t crc, const void *data,
                            size_t size_bytes);

#endif
