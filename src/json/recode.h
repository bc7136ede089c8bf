/*
 * recode.h - from text to canonical text, with no values in between.
 *
 * A reader that only hashes and keeps what it reads has no use for values.  What is ordinary is
 * checked and rewritten in one pass here; everything else is declined, without a reason and without
 * a trace, and belongs to cx_json_parse: it alone knows errors.  So whatever is not declined is
 * what cx_json_parse accepts, and comes out as cx_json_write would write it (CX_JSON_PY_COMPACT).
 *
 * Declined are, beside all that is wrong: raw bytes that are not plain ASCII, escapes that Python
 * spells otherwise, surrogates, names with escapes, numbers whose canonical spelling is longer,
 * white space other than blanks, and what exceeds the CX_JSON_RECODE_ limits below.
 *
 * The text must hold an LF, which nothing here steps over, with CX_JSON_RECODE_SLACK readable bytes
 * behind it.  Functions take the place where something starts, blanks before it allowed, and return
 * the place behind it, or NULL when it is declined.
 */
#ifndef CX_JSON_RECODE_H
#define CX_JSON_RECODE_H

#include "json/json.h"

#define CX_JSON_RECODE_SLACK 32
#define CX_JSON_RECODE_DEPTH 16    /* nested brackets */
#define CX_JSON_RECODE_PARTS 256   /* in all brackets that are open at once */
#define CX_JSON_RECODE_UNSORTED 64 /* members of one object that are out of order */

/* Room for the canonical text of `size_bytes` of text, and for the pieces of it: a container that
 * must be composed is one on each level that it lies in.  When there are more, it is declined. */
#define CX_JSON_RECODE_EXTRA_BYTES(size_bytes) (4 * (size_bytes) + 2 * CX_JSON_RECODE_SLACK)

/* A member.  A string always lies in the text that was read; other values may not. */
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

/* `outer` brackets are open around what will be read. */
void cx_json_recoder_init(cx_json_recoder *recoder, const cx_json_limits *limits, uint32_t outer);

/*
 * Writes the canonical text of one value to `to`, which has CX_JSON_RECODE_EXTRA_BYTES for the text
 * up to its LF at `lf`.  A `to` of NULL only checks the value.  After an object,
 * parts[0..part_count) are its members in order; their values are of use until something is written
 * behind *out_size.
 */
const char *cx_json_recode(cx_json_recoder *recoder, const char *at, const char *lf, uint8_t *to,
                           size_t *out_size);

/* A name and its colon. */
const char *cx_json_recode_name(const char *at, cx_str *out);
/* A string, number or word as a value; of the flags of a number only what is said is certain. */
const char *cx_json_recode_scalar(const cx_json_recoder *recoder, const char *at, cx_json *out);

static inline const char *cx_json_recode_blanks(const char *at)
{
    while (CX_UNLIKELY(*at == ' '))
        at++;
    return at;
}

#endif
