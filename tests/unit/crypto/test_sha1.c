/*
 * test_sha1.c - SHA-1: FIPS 180-4's examples, every way to cut a message, every kernel.
 */
#include "crypto/sha1.h"

#include "crypto/internal.h"
#include "tests/test.h"

static void hex_of(const uint8_t digest[CX_SHA1_SIZE], char out[41])
{
    for (unsigned i = 0; i < CX_SHA1_SIZE; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

static void check(const char *message, const char *expected)
{
    uint8_t digest[CX_SHA1_SIZE];
    char hex[41];
    cx_sha1 hash;
    cx_sha1_init(&hash);
    cx_sha1_add(&hash, message, strlen(message));
    cx_sha1_end(&hash, digest);
    hex_of(digest, hex);
    CHECK_STR(cx_str_z(hex), expected);
}

CX_TEST(sha1_known_answers)
{
    check("", "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    check("abc", "a9993e364706816aba3e25717850c26c9cd0d89d");
    check("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    check("The quick brown fox jumps over the lazy dog",
          "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12");
}

CX_TEST(sha1_of_a_million_letters)
{
    uint8_t digest[CX_SHA1_SIZE], block[1000];
    char hex[41];
    cx_sha1 hash;
    memset(block, 'a', sizeof block);
    cx_sha1_init(&hash);
    for (int i = 0; i < 1000; i++)
        cx_sha1_add(&hash, block, sizeof block);
    cx_sha1_end(&hash, digest);
    hex_of(digest, hex);
    CHECK_STR(cx_str_z(hex), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

/* I: however a message is cut, its hash is the same. */
CX_TEST(sha1_does_not_depend_on_the_cuts)
{
    uint8_t message[200], whole[CX_SHA1_SIZE], cut[CX_SHA1_SIZE];
    for (unsigned i = 0; i < sizeof message; i++)
        message[i] = (uint8_t)(i * 7);
    for (size_t size = 0; size <= sizeof message; size++) {
        cx_sha1 hash;
        cx_sha1_init(&hash);
        cx_sha1_add(&hash, message, size);
        cx_sha1_end(&hash, whole);
        for (size_t at = 0; at <= size; at += 13) {
            cx_sha1_init(&hash);
            cx_sha1_add(&hash, message, at);
            cx_sha1_add(&hash, message + at, size - at);
            cx_sha1_end(&hash, cut);
            CHECK(memcmp(whole, cut, sizeof cut) == 0);
        }
    }
}

/* From any state, over any number of blocks. */
CX_TEST(sha1_kernels_agree)
{
    uint8_t data[9 * 64 + 3];
    uint32_t plain[5], fast[5], noise = 1;
    const cx_digest_unit *unit = cx_digest_parts_here()->unit;
    if (unit == NULL) {
        cx_test_skip("this processor has no SHA instructions");
        return;
    }
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < sizeof data; i++)
            data[i] = (uint8_t)((noise = noise * 1664525u + 1013904223u) >> 24);
        for (size_t i = 0; i < 5; i++)
            plain[i] = fast[i] = noise = noise * 1664525u + 1013904223u;
        size_t blocks = (size_t)round % 10, at = (size_t)round % 4;
        cx_sha1_plain_compress(plain, data + at, blocks);
        unit->sha1_compress(fast, data + at, blocks);
        CHECK(memcmp(plain, fast, sizeof plain) == 0);
    }
}
