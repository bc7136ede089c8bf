/*
 * key_lanes.c - fills eight lanes with signatures and asks the kernels (key_lanes.h).
 *
 * Invariant:
 *   I1  a signature is called good only where S < L, A is canonical, neither A nor R is of small
 *       order, and the kernel found the equation true: rules 1 to 5 of
 *       tests/vectors/crypto/README.md.  All else is for libsodium to judge.
 */
#include "crypto/key_lanes.h"

#include <string.h>

#include <sodium.h>

bool cx_key_lanes_has(void)
{
#ifdef CX_KEY_X86
    return cx_processor_has(CX_PROCESSOR_X86_AVX512F | CX_PROCESSOR_X86_AVX512_IFMA);
#else
    return false;
#endif
}

/* --- what is asked before the equation ----------------------------------------------------- */

/* Little-endian numbers of 256 bits. */
static bool is_below(const uint8_t a[32], const uint8_t b[32])
{
    for (size_t i = 32; i-- > 0;)
        if (a[i] != b[i])
            return a[i] < b[i];
    return false;
}

static bool is_below_order(const uint8_t scalar[32])
{
    static const uint8_t order[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58,       0xd6,
                                      0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, [31] = 0x10};
    return is_below(scalar, order);
}

/* The y of an encoded point: without the sign of x. */
static void y_of(const uint8_t encoded[32], uint8_t out[32])
{
    memcpy(out, encoded, 32);
    out[31] &= 0x7f;
}

/* y below p, and not that of a point of small order, of which there are five: 0, 1, -1 and, of
 * order 8, two opposite ones. */
static bool is_plain_point(const uint8_t encoded[32])
{
    static const uint8_t prime[32] = {0xed, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    static const uint8_t small[5][32] = {
        {0},
        {1},
        {0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
         0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
         0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
        {0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4,
         0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6,
         0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05},
        {0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b,
         0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39,
         0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a}};
    uint8_t y[32];
    y_of(encoded, y);
    for (size_t i = 0; i < CX_COUNT_OF(small); i++)
        if (memcmp(y, small[i], sizeof y) == 0)
            return false;
    return is_below(y, prime);
}

static bool fits_lanes(const cx_ed25519_item *item)
{
    return is_below_order(item->signature.bytes + 32) && is_plain_point(item->key.bytes) &&
           is_plain_point(item->signature.bytes);
}

/* --- filling lanes ------------------------------------------------------------------------- */

static void put_words(const uint8_t bytes[32], uint64_t words[4][CX_KEY_LANES], size_t lane)
{
    for (size_t w = 0; w < 4; w++) {
        words[w][lane] = 0;
        for (size_t i = 8; i-- > 0;)
            words[w][lane] = words[w][lane] << 8 | bytes[8 * w + i];
    }
}

/* A scalar below L, so below 2^253, in digits of -8..7; nothing is carried out of the last. */
static void put_digits(const uint8_t scalar[32], int8_t digits[64][CX_KEY_LANES], size_t lane)
{
    int carry = 0;
    for (size_t i = 0; i < 64; i++) {
        int value = (scalar[i / 2] >> (4 * (i % 2)) & 15) + carry;
        carry = (value + 8) >> 4;
        digits[i][lane] = (int8_t)(value - 16 * carry);
    }
    CX_ASSERT(carry == 0);
}

static void put_challenges(const cx_ed25519_item *const items[CX_KEY_LANES],
                           cx_ed25519_eight *eight, cx_key_hash *hash)
{
    cx_sha512_eight in;
    uint8_t heads[CX_KEY_LANES][64], hashes[CX_KEY_LANES][64], challenge[32];
    for (size_t i = 0; i < CX_KEY_LANES; i++) {
        memcpy(heads[i], items[i]->signature.bytes, 32);
        memcpy(heads[i] + 32, items[i]->key.bytes, 32);
        in.heads[i] = heads[i];
        in.messages[i] = items[i]->message;
    }
    hash(&in, hashes);
    for (size_t i = 0; i < CX_KEY_LANES; i++) {
        crypto_core_ed25519_scalar_reduce(challenge, hashes[i]);
        put_digits(challenge, eight->challenge, i);
    }
}

unsigned cx_key_lanes_with(const cx_ed25519_item *const items[CX_KEY_LANES], cx_key_hash *hash,
                           cx_key_equation *equation)
{
    static const uint8_t zero[32];
    cx_ed25519_eight eight;
    unsigned asked = 0;
    for (size_t i = 0; i < CX_KEY_LANES; i++) {
        bool ask = fits_lanes(items[i]);
        asked |= (unsigned)ask << i;
        put_words(items[i]->key.bytes, eight.keys, i);
        put_words(items[i]->signature.bytes, eight.points, i);
        put_digits(ask ? items[i]->signature.bytes + 32 : zero, eight.response, i);
    }
    if (asked == 0)
        return 0;
    put_challenges(items, &eight, hash);
    return equation(&eight) & asked;
}
