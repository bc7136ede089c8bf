/*
 * hex.h - bytes as text: hex, base64, base64url (RFC 4648), strict on the way in.
 */
#ifndef CX_BASE_HEX_H
#define CX_BASE_HEX_H

#include "base/buf.h"
#include "base/bytes.h"

/* Writes 2 * bytes.size lower-case digits, no terminator. */
void cx_hex_encode(cx_bytes bytes, char *out);
/* Lower-case digits only; false when text is not exactly 2 * size of them. */
bool cx_hex_decode(cx_str text, uint8_t *out, size_t size);
/* The same, accepting upper case too. */
bool cx_hex_decode_any(cx_str text, uint8_t *out, size_t size);
void cx_hex_add(cx_buf *out, cx_bytes bytes);
static inline bool cx_digest_parse(cx_str text, cx_digest *out)
{
    return cx_hex_decode(text, out->bytes, sizeof out->bytes);
}

typedef enum cx_base64_kind {
    CX_BASE64,    /* '+' '/', padded */
    CX_BASE64_URL /* '-' '_', no padding */
} cx_base64_kind;

void cx_base64_add(cx_buf *out, cx_bytes bytes, cx_base64_kind kind);
/* Appends; false (nothing appended) on a character outside the alphabet, wrong padding, or bits
 * that are not 0 after the last byte: what the encoder would not write is refused.  When memory
 * runs out the answer is still about the text; the buffer has failed. */
bool cx_base64_decode(cx_str text, cx_base64_kind kind, cx_buf *out);
/* URL alphabet with optional padding, as senders vary; other rules the same. */
bool cx_base64_decode_any(cx_str text, cx_buf *out);
/* Either alphabet, but not both mixed, padded fully or not at all; other rules the same. */
bool cx_base64_decode_either(cx_str text, cx_buf *out);

#endif
