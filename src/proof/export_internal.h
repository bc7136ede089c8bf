/*
 * export_internal.h - reading the lines of C2SP formats: strict, without memory of their own.
 */
#ifndef CX_PROOF_EXPORT_INTERNAL_H
#define CX_PROOF_EXPORT_INTERNAL_H

#include "proof/export.h"

/* The line that `rest` begins with, without its newline; false when none ends. */
bool cx_line_next(cx_str *rest, cx_str *out_line);
/* Decimal, no sign, no leading zero, fits 64 bits. */
bool cx_line_number(cx_str text, uint64_t *out);
/* Padded base64; at most `capacity` bytes are kept, *out_size says how many there were. */
bool cx_line_base64(cx_str text, uint8_t *out, size_t capacity, size_t *out_size);
/* Base64 of exactly 32 bytes. */
bool cx_line_digest(cx_str text, cx_digest *out);

#endif
