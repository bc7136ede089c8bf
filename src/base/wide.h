/*
 * wide.h - products of 64-bit numbers, also where the compiler has no 128-bit type (32-bit
 * machines).
 *
 * The _plain functions do not use one; tests compare them with the native ones where both exist.
 */
#ifndef CX_BASE_WIDE_H
#define CX_BASE_WIDE_H

#include <stdint.h>

typedef struct cx_wide {
    uint64_t high;
    uint64_t low;
} cx_wide;

static inline cx_wide cx_wide_product_plain(uint64_t a, uint64_t b)
{
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
    uint64_t carry = a0 * b1 + (uint32_t)middle;
    return (cx_wide){a1 * b1 + (middle >> 32) + (carry >> 32), a * b};
}

/* a + b modulo m; both are smaller than m. */
static inline uint64_t cx_wide_sum_mod(uint64_t a, uint64_t b, uint64_t m)
{
    return a >= m - b ? a - (m - b) : a + b;
}

/* a * b modulo m, by doubling: 64 steps; both are smaller than m. */
static inline uint64_t cx_wide_product_mod_plain(uint64_t a, uint64_t b, uint64_t m)
{
    uint64_t result = 0;
    for (; b != 0; b >>= 1) {
        if (b & 1)
            result = cx_wide_sum_mod(result, a, m);
        a = cx_wide_sum_mod(a, a, m);
    }
    return result;
}

#ifdef __SIZEOF_INT128__

__extension__ typedef unsigned __int128 cx_wide_native;

static inline cx_wide cx_wide_product(uint64_t a, uint64_t b)
{
    cx_wide_native product = (cx_wide_native)a * b;
    return (cx_wide){(uint64_t)(product >> 64), (uint64_t)product};
}

static inline uint64_t cx_wide_product_mod(uint64_t a, uint64_t b, uint64_t m)
{
    return (uint64_t)((cx_wide_native)a * b % m);
}

#else

static inline cx_wide cx_wide_product(uint64_t a, uint64_t b)
{
    return cx_wide_product_plain(a, b);
}

static inline uint64_t cx_wide_product_mod(uint64_t a, uint64_t b, uint64_t m)
{
    return cx_wide_product_mod_plain(a, b, m);
}

#endif

#endif
