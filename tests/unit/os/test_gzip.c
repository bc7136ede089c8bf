/*
 * test_gzip.c - gzip of known bytes: whole, in pieces, cut, damaged, too large.
 */
#include "os/gzip.h"
#include "base/alloc.h"
#include "tests/test.h"

/* printf 'hello, hello, hello\n' | gzip -9n */
static const uint8_t hello[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
                                0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0xd7, 0x51, 0xc8, 0x40, 0xa2,
                                0xb8, 0x00, 0xe7, 0x42, 0x6e, 0x52, 0x14, 0x00, 0x00, 0x00};
#define HELLO "hello, hello, hello\n"
#define HELLO_SIZE (sizeof HELLO - 1)

static cx_status unpack(const uint8_t *data, size_t size, size_t max, cx_buf *out, cx_err *err)
{
    return cx_gzip_unpack(cx_bytes_from(data, size), max, out, err);
}

CX_TEST(gzip_whole_and_in_members)
{
    cx_buf out;
    cx_err err;
    uint8_t twice[2 * sizeof hello];
    memcpy(twice, hello, sizeof hello);
    memcpy(twice + sizeof hello, hello, sizeof hello);
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_add_z(&out, "before ");
    CHECK_STATUS(unpack(hello, sizeof hello, HELLO_SIZE, &out, &err), &err);
    CHECK_STR(cx_buf_str(&out), "before " HELLO);
    cx_buf_clear(&out);
    CHECK_STATUS(unpack(twice, sizeof twice, 2 * HELLO_SIZE, &out, &err), &err);
    CHECK_STR(cx_buf_str(&out), HELLO HELLO);
    CHECK_INT(unpack(twice, sizeof twice, 2 * HELLO_SIZE - 1, &out, &err).code, CX_E_LIMIT);
    cx_buf_done(&out);
}

CX_TEST(gzip_limits)
{
    cx_buf out;
    cx_err err;
    cx_buf_init(&out, cx_alloc_default());
    for (size_t max = 0; max < HELLO_SIZE; max++) {
        CHECK_INT(unpack(hello, sizeof hello, max, &out, &err).code, CX_E_LIMIT);
        CHECK_INT(out.size, 0);
    }
    cx_buf_done(&out);
}

CX_TEST(gzip_cut_and_damaged)
{
    cx_buf out;
    cx_err err;
    uint8_t bad[sizeof hello + 1];
    cx_buf_init(&out, cx_alloc_default());
    for (size_t size = 0; size < sizeof hello; size++) {
        CHECK_INT(unpack(hello, size, 1000, &out, &err).code, CX_E_SYNTAX);
        CHECK_INT(out.size, 0);
    }
    memcpy(bad, hello, sizeof hello);
    bad[sizeof hello] = 'x';
    CHECK_INT(unpack(bad, sizeof bad, 1000, &out, &err).code, CX_E_SYNTAX);
    for (size_t i = sizeof hello - 8; i < sizeof hello; i++) { /* checksum and length */
        bad[i] ^= 1;
        CHECK_INT(unpack(bad, sizeof hello, 1000, &out, &err).code, CX_E_SYNTAX);
        bad[i] ^= 1;
    }
    cx_buf_done(&out);
}

CX_TEST(zlib_there_and_back)
{
    cx_buf packed, out;
    cx_err err;
    cx_buf_init(&packed, cx_alloc_default());
    cx_buf_init(&out, cx_alloc_default());
    for (size_t size = 0; size < 3000; size = 2 * size + 1) {
        uint8_t plain[3000];
        for (size_t i = 0; i < size; i++)
            plain[i] = (uint8_t)(i * i >> 3);
        cx_buf_clear(&packed);
        cx_buf_clear(&out);
        CHECK_STATUS(cx_zlib_pack(cx_bytes_from(plain, size), &packed, &err), &err);
        CHECK_STATUS(cx_zlib_unpack(cx_buf_bytes(&packed), size, &out, &err), &err);
        CHECK_INT(out.size, size);
        CHECK(size == 0 || memcmp(out.data, plain, size) == 0);
        if (size != 0)
            CHECK_INT(cx_zlib_unpack(cx_buf_bytes(&packed), size - 1, &out, &err).code, CX_E_LIMIT);
        /* One stream and nothing after it; gzip is another format. */
        cx_buf_add_byte(&packed, 0);
        CHECK_INT(cx_zlib_unpack(cx_buf_bytes(&packed), size, &out, &err).code, CX_E_SYNTAX);
    }
    CHECK_INT(cx_zlib_unpack(cx_bytes_from(hello, sizeof hello), 1000, &out, &err).code,
              CX_E_SYNTAX);
    cx_buf_done(&packed);
    cx_buf_done(&out);
}
