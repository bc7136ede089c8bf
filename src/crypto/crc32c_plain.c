/*
 * crc32c_plain.c - machines for which there is no CRC-32C kernel but the portable one.
 */
#include "crypto/crc32c_kernels.h"

#if !defined(__x86_64__) && !(defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

cx_crc32c_function *cx_crc32c_here(cx_crc32c_kernel kernel)
{
    (void)kernel;
    return NULL;
}

#endif
