/*
 * recode.h - from JSON text to canonical text, without building values.
 *
 * A reader that only hashes and stores its input needs no values.  Ordinary text is checked and
 * rewritten in one pass here; everything else is declined without a reason and without a side
 * effect, and must be read with cx_json_parse, which reports errors.  Text that is not declined is
 * text that cx_json_parse accepts, and the output is that of cx_json_write (CX_JSON_PY_COMPACT).
 *
 * Besides all errors, these are declined: raw bytes that are not plain ASCII, escapes that Python
 * spells differently, surrogates, names with escapes, numbers whose canonical spelling is longer,
 * white space other than blanks, and input beyond the CX_JSON_RECODE_ limits below.
 *
 * The text must contain an LF, which no function here passes, followed by CX_JSON_RECODE_SLACK
 * readable bytes.  Functions take the start of an element, blanks before it allowed, and return the
 * position after it, or NULL when it is declined.
 */
#ifndef CX_JSON_RECODE_H
#define CX_JSON_RECODE_H

#include "json/json.h"

#define CX_JSON_RECODE_SLACK 32
#define CX_JSON_RECODE_DEPTH 16    /* nested brackets */
#define CX_JSON_RECODE_PARTS 256   /* in all brackets that are open at once */
#define CX_JSON_RECODE_UNSORTED 64 /* members of one object that are out of order */

/* Output space for `size_bytes` of text: its canonical text, and the pieces of it.  A container
 * that must be composed is a piece on each level around it; text with more pieces is declined. */
#define CX_JSON_RECODE_EXTRA_BYTES(size_bytes) (4 * (size_bytes) + 2 * CX_JSON_RECODE_SLACK)

/* A member.  A string value is always a slice of the text that was read; other values may
 * not be. */
typedef struct cx_json_part {
    uint64_t prefix; /* the first bytes of its name: see recode.c */
    cx_str name;     /* without quotes */
    cx_str value;    /* canonical, unless it was only checked */
} cx_json_part;

typedef struct cx_json_recoder {
    uint32_t depth; /* limits */
    uint32_t integer_digits;
    uint32_t part_count;
    cx_json_part parts[CX_JSON_RECODE_PARTS];
} cx_json_recoder;

/* `outer`: number of brackets open around the text that will be read. */
void cx_json_recoder_init(cx_json_recoder *recoder, const cx_json_limits *limits, uint32_t outer);

/*
 * Writes the canonical text of one value to `to`, which has CX_JSON_RECODE_EXTRA_BYTES for the text
 * up to its LF at `lf`.  A `to` of NULL only checks the value.  After an object,
 * parts[0..part_count) are its members in order; their values are valid until something is written
 * after *out_size.
 */
const char *cx_json_recode(cx_json_recoder *recoder, const char *at, const char *lf, uint8_t *to,
                           size_t *out_size);

/* A name and its colon. */
const char *cx_json_recode_name(const char *at, cx_str *out);
/* A string, number or word as a value; a number may lack flags that cx_json_parse would set. */
const char *cx_json_recode_scalar(const cx_json_recoder *recoder, const char *at, cx_json *out);

static inline const char *cx_json_recode_blanks(const char *at)
{
    while (CX_UNLIKELY(*at == ' '))
        at++;
    return at;
}

#endif
