/*
 * hex.h - CBOR written down as hex, in and out.
 */
#ifndef CX_TESTS_CBOR_HEX_H
#define CX_TESTS_CBOR_HEX_H

#include "cbor/cbor.h"
#include "base/hex.h"
#include "tests/test.h"

typedef struct hex_item {
    uint8_t bytes[128];
    size_t size;
} hex_item;

static inline hex_item hex_item_of(const char *hex)
{
    hex_item item = {.size = strlen(hex) / 2};
    if (item.size > sizeof item.bytes || !cx_hex_decode(cx_str_z(hex), item.bytes, item.size))
        cx_test_fail(__FILE__, __LINE__, "not hex: %s", hex);
    return item;
}

static inline cx_bytes hex_item_bytes(const hex_item *item)
{
    return cx_bytes_from(item->bytes, item->size);
}

static inline void hex_check_at(int line, const char *file, const cx_buf *got, const char *expected)
{
    cx_buf hex;
    cx_buf_init(&hex, cx_alloc_default());
    cx_hex_add(&hex, cx_buf_bytes(got));
    if (got->failed || !cx_str_is(cx_buf_str(&hex), expected))
        cx_test_fail(file, line, "%.*s, expected %s", (int)hex.size, (const char *)hex.data,
                     expected);
    cx_buf_done(&hex);
}
#define CHECK_HEX(buf, expected) hex_check_at(__LINE__, __FILE__, (buf), (expected))

#endif
