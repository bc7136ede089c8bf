/*
 * cbor.h - deterministic CBOR (RFC 8949 §4.2.1): what is written has one spelling, and the reader
 * refuses every other one.
 *
 * Written forms: shortest integers and lengths, definite lengths, map keys sorted bytewise by their
 * encoding, floats in the shortest of f16, f32, f64 that is exact (NaN is f97e00), UTF-8 text, no
 * undefined, no simple values but false, true, null; the only tag is 18, in COSE (ledger.md §2).
 */
#ifndef CX_CBOR_CBOR_H
#define CX_CBOR_CBOR_H

#include "base/api.h"

/* Nested arrays, maps and tags (ledger.md §13). */
#define CX_CBOR_DEPTH_MAX 32

/* --- writing: appends to a buffer; the caller checks the buffer once, at the end ------------- */

void cx_cbor_uint(cx_buf *out, uint64_t value);
void cx_cbor_int(cx_buf *out, int64_t value);
void cx_cbor_bytes(cx_buf *out, cx_bytes bytes);
void cx_cbor_digest(cx_buf *out, const cx_digest *digest);
/* The text must be valid UTF-8: callers check external input. */
void cx_cbor_text(cx_buf *out, cx_str text);
void cx_cbor_array(cx_buf *out, uint64_t count);
void cx_cbor_map(cx_buf *out, uint64_t count);
void cx_cbor_bool(cx_buf *out, bool value);
void cx_cbor_null(cx_buf *out);
void cx_cbor_tag(cx_buf *out, uint64_t tag);
/* Both write the shortest form that is exact. */
void cx_cbor_f32(cx_buf *out, float value);
void cx_cbor_f64(cx_buf *out, double value);

/*
 * A map with small unsigned keys, some of which may be left out:
 *
 *     cx_cbor_fields fields;
 *     cx_cbor_fields_begin(&fields, out);
 *     cx_cbor_field(&fields, 1);  cx_cbor_uint(out, seq);        keys 0..23, ascending
 *     if (reason.size != 0) { cx_cbor_field(&fields, 3);  cx_cbor_text(out, reason); }
 *     cx_cbor_fields_end(&fields);                               at most 23 fields
 */
typedef struct cx_cbor_fields {
    cx_buf *out;
    size_t header_offset;
    uint8_t count;
    uint8_t next_key; /* keys below this one have been passed */
} cx_cbor_fields;

void cx_cbor_fields_begin(cx_cbor_fields *fields, cx_buf *out);
void cx_cbor_field(cx_cbor_fields *fields, uint8_t key);
void cx_cbor_fields_end(cx_cbor_fields *fields);

/* --- reading --------------------------------------------------------------------------------- */

/*
 * The first failure is stored: later reads return zeros, and cx_cbor_end returns it.  Its tag is
 * "NonCanonical" and its offset that of the invalid item.  Text and bytes are borrowed from the
 * input.
 */
typedef struct cx_cbor_reader {
    const uint8_t *data;
    size_t size;
    size_t offset;
    const char *what; /* "entry", "Head": the start of the message; static storage */
    cx_status status; /* the first failure */
    cx_err err;
} cx_cbor_reader;

void cx_cbor_begin(cx_cbor_reader *reader, cx_bytes bytes, const char *what);
/* Rejects trailing bytes; returns the first failure. */
CX_RESULT cx_cbor_end(cx_cbor_reader *reader, cx_err *err);
static inline bool cx_cbor_ok(const cx_cbor_reader *reader)
{
    return reader->status.code == CX_OK;
}
/* Makes the reader fail at `offset` (an item's start) with a message of the caller. */
void cx_cbor_reject(cx_cbor_reader *reader, size_t offset, const char *format, ...) CX_PRINTF(3, 4);

typedef enum cx_cbor_type {
    CX_CBOR_UINT = 0,
    CX_CBOR_NEGATIVE = 1,
    CX_CBOR_BYTES = 2,
    CX_CBOR_TEXT = 3,
    CX_CBOR_ARRAY = 4,
    CX_CBOR_MAP = 5,
    CX_CBOR_TAG = 6,
    CX_CBOR_SIMPLE = 7, /* false, true, null, floats */
    CX_CBOR_NONE        /* the input has ended or the reader has failed */
} cx_cbor_type;

/* The type of the next item, which is not consumed. */
cx_cbor_type cx_cbor_peek(const cx_cbor_reader *reader);
/* Consumes a null when it is the next item; else returns false and consumes nothing. */
bool cx_cbor_skip_null(cx_cbor_reader *reader);

uint64_t cx_cbor_read_uint(cx_cbor_reader *reader);
/* Rejects values above `max`. */
uint64_t cx_cbor_read_uint_max(cx_cbor_reader *reader, uint64_t max);
int64_t cx_cbor_read_int(cx_cbor_reader *reader);
cx_bytes cx_cbor_read_bytes(cx_cbor_reader *reader);
/* Exactly `size` bytes, copied out; false (out untouched) on failure. */
bool cx_cbor_read_exactly(cx_cbor_reader *reader, void *out, size_t size);
cx_digest cx_cbor_read_digest(cx_cbor_reader *reader);
/* An array of digests, in place: digest i is at the returned address + i * CX_CBOR_DIGEST_STRIDE.
 * NULL when the array is empty or on failure. */
#define CX_CBOR_DIGEST_STRIDE 34
const uint8_t *cx_cbor_read_digests(cx_cbor_reader *reader, size_t max, size_t *out_count);
/* `count` unsigned integers; those beyond 32 bits are given as UINT32_MAX. */
void cx_cbor_read_indexes(cx_cbor_reader *reader, uint32_t *out, size_t count);
/* Valid UTF-8 (no surrogates, no overlong forms). */
cx_str cx_cbor_read_text(cx_cbor_reader *reader);
bool cx_cbor_read_bool(cx_cbor_reader *reader);
/* A float in its shortest form that fits a float exactly. */
float cx_cbor_read_f32(cx_cbor_reader *reader);
double cx_cbor_read_f64(cx_cbor_reader *reader);
/* The number of items or pairs that follow; never more than the bytes left could hold, nor `max`.
 */
size_t cx_cbor_read_array(cx_cbor_reader *reader, size_t max);
size_t cx_cbor_read_map(cx_cbor_reader *reader, size_t max);
uint64_t cx_cbor_read_tag(cx_cbor_reader *reader);
/* Takes one item whatever it is, checking all of it; its bytes are returned (borrowed). */
cx_bytes cx_cbor_read_any(cx_cbor_reader *reader);

/*
 * A map with small unsigned keys, strictly ascending:
 *
 *     cx_cbor_members members = cx_cbor_read_members(&reader);
 *     while (cx_cbor_next_member(&reader, &members))
 *         switch (members.key) {
 *         case 1: seq = cx_cbor_read_uint(&reader); break;
 *         default: cx_cbor_reject_member(&reader, &members);
 *         }
 *     cx_cbor_require(&reader, &members, 1u << 1 | 1u << 2);
 */
typedef struct cx_cbor_members {
    size_t offset;     /* of the map */
    size_t key_offset; /* of the member at hand */
    size_t left;
    uint64_t key;
    uint64_t seen; /* bit k: key k (0..63) was there */
} cx_cbor_members;

cx_cbor_members cx_cbor_read_members(cx_cbor_reader *reader);
bool cx_cbor_next_member(cx_cbor_reader *reader, cx_cbor_members *members);
/* An unknown field. */
void cx_cbor_reject_member(cx_cbor_reader *reader, const cx_cbor_members *members);
/* An omittable field that is there though its value is empty. */
void cx_cbor_reject_empty(cx_cbor_reader *reader, const cx_cbor_members *members);
/* Refuses the map when a key of `mask` (bit k for key k) was not there. */
void cx_cbor_require(cx_cbor_reader *reader, const cx_cbor_members *members, uint64_t mask);

/* Any bytes: one item, strictly, with nothing after it. */
CX_RESULT cx_cbor_check(cx_bytes bytes, cx_err *err);

#endif
