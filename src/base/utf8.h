/*
 * utf8.h - Unicode text as bytes.
 *
 * JSON escapes may denote lone surrogates, which UTF-8 cannot represent.  Inside the program such a
 * code point has its generalised 3-byte form (ED A0..BF 80..BF, "WTF-8"), so that byte order equals
 * code point order and nothing is lost.  Input bytes in that form are rejected.
 */
#ifndef CX_BASE_UTF8_H
#define CX_BASE_UTF8_H

#include "base/bytes.h"

/* Offset of the first byte that is not part of valid UTF-8 (RFC 3629), or text.size. */
size_t cx_utf8_valid_prefix(cx_str text);

static inline bool cx_utf8_valid(cx_str text)
{
    return cx_utf8_valid_prefix(text) == text.size;
}

/* Bytes of the sequence starting at data (1..4), 0 when invalid, with `size` bytes available. */
size_t cx_utf8_sequence(const uint8_t *data, size_t size);

/* Writes 1..4 bytes, surrogates in their 3-byte form; returns the count.  code <= 0x10FFFF. */
size_t cx_utf8_encode(uint32_t code, uint8_t out[4]);

/* Decodes one code point of text already validated (surrogate forms included). */
uint32_t cx_utf8_decode(const uint8_t *data, size_t *out_size);

#endif
