/*
 * test_hmac.c - HMAC-SHA-256 against the vectors of RFC 4231.
 */
#include "crypto/api.h"
#include "tests/test.h"

static void check_hmac(cx_bytes key, cx_bytes message, const char *expected)
{
    char hex[65] = {0};
    const cx_digest whole = cx_hmac_sha256(key, &message, 1);
    const cx_bytes halves[] = {
        cx_bytes_from(message.data, message.size / 2),
        cx_bytes_from(message.data + message.size / 2, message.size - message.size / 2)};
    const cx_digest pieces = cx_hmac_sha256(key, halves, 2);
    cx_hex_encode(cx_bytes_from(whole.bytes, sizeof whole.bytes), hex);
    CHECK_STR(cx_str_z(hex), expected);
    CHECK(cx_digest_eq(&whole, &pieces));
}

static cx_bytes filled(uint8_t *buffer, uint8_t byte, size_t size)
{
    memset(buffer, byte, size);
    return cx_bytes_from(buffer, size);
}

CX_TEST(rfc_4231)
{
    uint8_t key[131], data[50], counted[25];
    check_hmac(filled(key, 0x0b, 20), cx_str_bytes(CX_STR("Hi There")),
               "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    check_hmac(cx_str_bytes(CX_STR("Jefe")), cx_str_bytes(CX_STR("what do ya want for nothing?")),
               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    check_hmac(filled(key, 0xaa, 20), filled(data, 0xdd, 50),
               "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    for (size_t i = 0; i < sizeof counted; i++)
        counted[i] = (uint8_t)(i + 1);
    check_hmac(cx_bytes_from(counted, sizeof counted), filled(data, 0xcd, 50),
               "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
    /* A key that is longer than a block is hashed first. */
    check_hmac(filled(key, 0xaa, 131),
               cx_str_bytes(CX_STR("Test Using Larger Than Block-Size Key - Hash Key First")),
               "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

CX_TEST(an_empty_key_and_no_message)
{
    char hex[65] = {0};
    const cx_digest mac = cx_hmac_sha256(cx_bytes_from(NULL, 0), NULL, 0);
    cx_hex_encode(cx_bytes_from(mac.bytes, sizeof mac.bytes), hex);
    CHECK_STR(cx_str_z(hex), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}
