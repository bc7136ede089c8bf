/*
 * crc32c.c - CRC-32C: eight tables in plain C, and the choice of a faster kernel.
 */
#include "crypto/crc32c.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/api.h"
#include "crypto/crc32c_kernels.h"

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

/* --- choosing ------------------------------------------------------------------------------ */

/* The last one that is here is the fastest. */
cx_crc32c_kernel cx_crc32c_chosen(void)
{
    for (int kernel = CX_CRC32C_KERNEL_COUNT - 1; kernel > CX_CRC32C_PORTABLE; kernel--)
        if (cx_crc32c_here((cx_crc32c_kernel)kernel) != NULL)
            return (cx_crc32c_kernel)kernel;
    return CX_CRC32C_PORTABLE;
}

bool cx_crc32c_has(cx_crc32c_kernel kernel)
{
    return kernel == CX_CRC32C_PORTABLE || cx_crc32c_here(kernel) != NULL;
}

const char *cx_crc32c_kernel_name(cx_crc32c_kernel kernel)
{
    switch (kernel) {
    case CX_CRC32C_PORTABLE: return "portable";
    case CX_CRC32C_ARMV8: return "armv8-crc";
    case CX_CRC32C_ARMV8_PMULL: return "armv8-crc-pmull";
    case CX_CRC32C_SSE42: return "sse4.2";
    case CX_CRC32C_AVX512: return "avx-512";
    }
    return "unknown";
}

uint32_t cx_crc32c_add_with(cx_crc32c_kernel kernel, uint32_t crc, const void *data,
                            size_t size_bytes)
{
    cx_crc32c_function *function = cx_crc32c_here(kernel);
    CX_ASSERT(function != NULL || kernel == CX_CRC32C_PORTABLE);
    return ~(function != NULL ? function : crc_by_table)(~crc, data, size_bytes);
}

/* The fastest one, asked for once. */
static cx_crc32c_function *chosen_function(void)
{
    static _Atomic(cx_crc32c_function *) known;
    cx_crc32c_function *found = atomic_load_explicit(&known, memory_order_relaxed);
    if (CX_UNLIKELY(found == NULL)) {
        cx_crc32c_kernel kernel = cx_crc32c_chosen();
        found = kernel == CX_CRC32C_PORTABLE ? crc_by_table : cx_crc32c_here(kernel);
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return found;
}

uint32_t cx_crc32c_add(uint32_t crc, const void *data, size_t size_bytes)
{
    return ~chosen_function()(~crc, data, size_bytes);
}
