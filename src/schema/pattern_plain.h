/*
 * pattern_plain.h - patterns that need no search: `^`, characters or classes of them, each so many
 * times, `$` (the names and digests of schemas are of this kind).
 *
 * Only of ASCII, without groups and alternatives, and only where taking as many characters as fit
 * is never wrong: what repeats shares no character with what may follow it.  So matching looks at
 * each byte once, and has no limits to pass.
 */
#ifndef CX_SCHEMA_PATTERN_PLAIN_H
#define CX_SCHEMA_PATTERN_PLAIN_H

#include "base/api.h"

#define CX_PATTERN_PLAIN_PARTS 8

typedef struct cx_pattern_part {
    uint64_t set[2]; /* of the 128 characters */
    uint32_t min, max;
} cx_pattern_part;

typedef struct cx_pattern_plain {
    cx_pattern_part parts[CX_PATTERN_PLAIN_PARTS];
    unsigned count;
} cx_pattern_plain;

/* False when it is not of this kind; `pattern` is known to be one of ECMA-262. */
bool cx_pattern_plain_read(cx_str pattern, cx_pattern_plain *out);
bool cx_pattern_plain_match(const cx_pattern_plain *plain, cx_str text);

#endif
