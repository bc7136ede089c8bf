/*
 * bytes.h - borrowed bytes and text: making, comparing, checked size arithmetic.
 */
#ifndef CX_BASE_BYTES_H
#define CX_BASE_BYTES_H

#include <string.h>

#include <cortex/base.h>

/* From a string literal. */
#define CX_STR(literal) ((cx_str){(literal), sizeof(literal) - 1})

static inline cx_str cx_str_from(const char *data, size_t size)
{
    return (cx_str){data, size};
}

static inline cx_bytes cx_str_bytes(cx_str text)
{
    return (cx_bytes){(const uint8_t *)text.data, text.size};
}

static inline cx_str cx_bytes_str(cx_bytes bytes)
{
    return (cx_str){(const char *)bytes.data, bytes.size};
}

static inline bool cx_str_eq(cx_str a, cx_str b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static inline bool cx_str_is(cx_str a, const char *terminated)
{
    return cx_str_eq(a, cx_str_z(terminated));
}

/* Byte order, which for UTF-8 is code point order; a prefix sorts first.  <0, 0, >0. */
static inline int cx_str_cmp(cx_str a, cx_str b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    if (order != 0)
        return order;
    return (a.size > b.size) - (a.size < b.size);
}

static inline bool cx_str_starts(cx_str text, cx_str prefix)
{
    return text.size >= prefix.size &&
           (prefix.size == 0 || memcmp(text.data, prefix.data, prefix.size) == 0);
}

static inline bool cx_str_ends(cx_str text, cx_str suffix)
{
    return text.size >= suffix.size &&
           (suffix.size == 0 ||
            memcmp(text.data + (text.size - suffix.size), suffix.data, suffix.size) == 0);
}

static inline bool cx_digest_eq(const cx_digest *a, const cx_digest *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* The last such byte of a block; NULL when it has none. */
const void *cx_bytes_last(const void *block, char byte, size_t size);

/* False on overflow; *out is then untouched. */
static inline bool cx_size_add(size_t a, size_t b, size_t *out)
{
    if (a > SIZE_MAX - b)
        return false;
    *out = a + b;
    return true;
}

static inline bool cx_size_mul(size_t a, size_t b, size_t *out)
{
    if (b != 0 && a > SIZE_MAX / b)
        return false;
    *out = a * b;
    return true;
}

#endif
