/*
 * Sealed bytes: the same text and key give the same bytes, and every change of them is seen.  The
 * vector was computed from HChaCha20 by its definition and ChaCha20-Poly1305 of OpenSSL.
 */
#include "crypto/api.h"
#include "tests/test.h"

static cx_digest key_of(uint8_t first)
{
    cx_digest key;
    for (size_t i = 0; i < sizeof key.bytes; i++)
        key.bytes[i] = (uint8_t)(first + i);
    return key;
}

CX_TEST(box_every_flipped_bit_and_every_other_key_is_seen)
{
    uint8_t bytes[5 + CX_BOX_EXTRA] = "hello", copy[sizeof bytes];
    const cx_digest key = key_of(1), other = key_of(2);
    cx_box_seal(&key, bytes, 5);
    CHECK(memcmp(bytes, "hello", 5) != 0);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        memcpy(copy, bytes, sizeof bytes);
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK(!cx_box_open(&key, copy, sizeof copy));
    }
    memcpy(copy, bytes, sizeof bytes);
    CHECK(!cx_box_open(&other, copy, sizeof copy));
    for (size_t size = 0; size < sizeof bytes; size++) {
        memcpy(copy, bytes, sizeof bytes);
        CHECK(!cx_box_open(&key, copy, size));
    }
    CHECK(cx_box_open(&key, bytes, sizeof bytes));
    CHECK(memcmp(bytes, "hello", 5) == 0);
}

CX_TEST(box_seals_as_another_implementation_does)
{
    static const char expected[] = "95078ec4e88de31e1e877532e01b30e52cadbf806e855b1c"
                                   "d3f48f46cbfb042e6b17e331d544388e925a5cb58d33d501";
    uint8_t bytes[32 + CX_BOX_EXTRA] = {0};
    char hex[2 * sizeof bytes];
    const cx_digest key = key_of(0);
    for (size_t i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    cx_box_seal(&key, bytes, 32);
    cx_hex_encode(cx_bytes_from(bytes, sizeof bytes), hex);
    CHECK_STR(cx_str_from(hex, sizeof hex), expected);
}
