/*
 * test_crc32c.c - the values of RFC 3720 §B.4, and every kernel compared with a bit-by-bit model.
 */
#include "crypto/crc32c.h"

#include "tests/test.h"

static uint32_t model(uint32_t crc, const uint8_t *data, size_t size)
{
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
    return ~crc;
}

static const cx_crc32c_kernel kernels[] = {
    CX_CRC32C_PORTABLE, CX_CRC32C_ARMV8, CX_CRC32C_ARMV8_PMULL, CX_CRC32C_SSE42, CX_CRC32C_AVX512};
enum { KERNELS = sizeof kernels / sizeof *kernels };
_Static_assert((int)KERNELS == CX_CRC32C_KERNEL_COUNT, "every kernel is compared");

CX_TEST(crc32c_gives_the_values_of_the_rfc)
{
    uint8_t zeros[32] = {0}, ones[32], up[32], down[32];
    /* RFC 3720 §B.4: an iSCSI SCSI Read (10) command. */
    static const uint8_t command[48] = {0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0,
                                        0x14, 0,    0, 0, 0, 0, 4, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18,
                                        0x28, 0,    0, 0, 0, 0, 0, 0, 2, 0, 0, 0,    0, 0, 0, 0};
    memset(ones, 0xff, sizeof ones);
    for (size_t i = 0; i < 32; i++) {
        up[i] = (uint8_t)i;
        down[i] = (uint8_t)(31 - i);
    }
    for (size_t k = 0; k < KERNELS; k++) {
        if (!cx_crc32c_has(kernels[k]))
            continue;
        CHECK_INT(cx_crc32c_add_with(kernels[k], 0, zeros, 32), 0x8a9136aa);
        CHECK_INT(cx_crc32c_add_with(kernels[k], 0, ones, 32), 0x62a8ab43);
        CHECK_INT(cx_crc32c_add_with(kernels[k], 0, up, 32), 0x46dd794e);
        CHECK_INT(cx_crc32c_add_with(kernels[k], 0, down, 32), 0x113fdb5c);
        CHECK_INT(cx_crc32c_add_with(kernels[k], 0, command, 48), 0xd9963a56);
        CHECK_INT(cx_crc32c_add_with(kernels[k], 0, "123456789", 9), 0xe3069283);
        CHECK_INT(cx_crc32c_add_with(kernels[k], 0, "", 0), 0);
    }
    CHECK_INT(cx_crc32c_add(0, "123456789", 9), 0xe3069283);
}

CX_TEST(crc32c_kernels_agree_at_every_length_and_alignment)
{
    static uint8_t data[10000];
    uint64_t seed = cx_test_seed();
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)cx_test_random(&seed);
    for (size_t k = 0; k < KERNELS; k++) {
        if (!cx_crc32c_has(kernels[k]))
            continue;
        uint32_t expected = 0x12345678; /* grows by a byte each time */
        for (size_t size = 0; size < 9000; size++) {
            if (size < 600 || size % 7 == 0 || (size > 4070 && size < 4110))
                CHECK_INT(cx_crc32c_add_with(kernels[k], 0x12345678, data + 3, size), expected);
            expected = model(expected, data + 3 + size, 1);
        }
        for (size_t at = 0; at < 16; at++)
            CHECK_INT(cx_crc32c_add_with(kernels[k], 0, data + at, 5000),
                      model(0, data + at, 5000));
    }
}

CX_TEST(crc32c_goes_on_where_it_stopped)
{
    static uint8_t data[9000];
    uint64_t seed = cx_test_seed() + 1;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)cx_test_random(&seed);
    uint32_t whole = cx_crc32c_add(0, data, sizeof data);
    for (size_t cut = 0; cut <= sizeof data; cut += 13)
        CHECK_INT(cx_crc32c_add(cx_crc32c_add(0, data, cut), data + cut, sizeof data - cut), whole);
}
