/*
 * utf8.c - RFC 3629, by the table of well-formed sequences in the Unicode standard (3.9, table
 * 3-7).
 */
#include "base/utf8.h"

#include "base/diag.h"

static bool is_tail(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

size_t cx_utf8_sequence(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    uint8_t lead = data[0];
    if (lead < 0x80)
        return 1;
    if (lead < 0xC2 || lead > 0xF4) /* a tail, an overlong form, or beyond U+10FFFF */
        return 0;
    if (lead < 0xE0)
        return size >= 2 && is_tail(data[1]) ? 2 : 0;
    if (size < 2)
        return 0;
    uint8_t low = 0x80, high = 0xBF; /* what the second byte may be */
    switch (lead) {
    case 0xE0: low = 0xA0; break;  /* overlong below */
    case 0xED: high = 0x9F; break; /* surrogates above */
    case 0xF0: low = 0x90; break;  /* overlong below */
    case 0xF4: high = 0x8F; break; /* beyond U+10FFFF above */
    default: break;
    }
    if (data[1] < low || data[1] > high)
        return 0;
    if (lead < 0xF0)
        return size >= 3 && is_tail(data[2]) ? 3 : 0;
    return size >= 4 && is_tail(data[2]) && is_tail(data[3]) ? 4 : 0;
}

size_t cx_utf8_valid_prefix(cx_str text)
{
    const uint8_t *data = (const uint8_t *)text.data;
    size_t at = 0;
    while (at < text.size) {
        uint64_t eight;
        if (text.size - at >= 8 &&
            (memcpy(&eight, data + at, 8), eight & 0x8080808080808080u) == 0) {
            at += 8;
            continue;
        }
        size_t length = cx_utf8_sequence(data + at, text.size - at);
        if (length == 0)
            break;
        at += length;
    }
    return at;
}

size_t cx_utf8_encode(uint32_t code, uint8_t out[4])
{
    CX_ASSERT(code <= 0x10FFFF);
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xC0 | code >> 6);
        out[1] = (uint8_t)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xE0 | code >> 12);
        out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | code >> 18);
    out[1] = (uint8_t)(0x80 | (code >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (code & 0x3F));
    return 4;
}

uint32_t cx_utf8_decode(const uint8_t *data, size_t *out_size)
{
    uint32_t lead = data[0];
    if (lead < 0x80) {
        *out_size = 1;
        return lead;
    }
    if (lead < 0xE0) {
        *out_size = 2;
        return (lead & 0x1F) << 6 | (data[1] & 0x3Fu);
    }
    if (lead < 0xF0) {
        *out_size = 3;
        return (lead & 0x0F) << 12 | (data[1] & 0x3Fu) << 6 | (data[2] & 0x3Fu);
    }
    *out_size = 4;
    return (lead & 0x07) << 18 | (data[1] & 0x3Fu) << 12 | (data[2] & 0x3Fu) << 6 |
           (data[3] & 0x3Fu);
}
