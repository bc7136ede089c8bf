/*
 * span.h - finds the elements of a JSON container without validating them.
 *
 * One bad document must not make the others in a list unreadable.  So the elements are found by
 * their brackets and quotes alone, and each is then parsed on its own:
 *
 *     cx_json_span span;
 *     bool there = cx_json_span_begin(&span, text);
 *     while (there && cx_json_span_next(&span, &name, &value))
 *         ...
 *     if (!there || span.bad)
 *         ... the brackets do not balance, or something is missing between two commas ...
 *
 * A slice may contain anything: "1 2" and "[}" are slices.  But text whose slices are all valid
 * JSON, and that is not `bad`, is valid JSON as a whole.  Linear time, no recursion, no allocation;
 * UTF-8 is not checked here.
 */
#ifndef CX_JSON_SPAN_H
#define CX_JSON_SPAN_H

#include "base/api.h"

typedef struct cx_json_span {
    const char *at; /* the position of the next element */
    const char *end;
    char close; /* '}' or ']' */
    bool done;  /* the closing bracket was found */
    bool bad;   /* not a list of members or elements */
} cx_json_span;

/* `container` is the text of one object or array, white space around it allowed; false when it
 * does not begin as one. */
bool cx_json_span_begin(cx_json_span *span, cx_str container);

/*
 * The next member or element; false after the last, and once `bad` is set.  Slices are raw, without
 * the white space around them, and never empty.  *out_name is the name as spelled, with its quotes;
 * data NULL in arrays.  Text after the closing bracket sets `bad`.
 */
bool cx_json_span_next(cx_json_span *span, cx_str *out_name, cx_str *out_value);

/*
 * Appends the JSON pointer of the value that byte `offset` of `text` belongs to (a byte of a name
 * belongs to its member, a closing bracket to what it closes).  Everything before must have been
 * read as JSON.  False, nothing appended, when it lies over 64 levels deep; or when memory ran out,
 * then `out` has failed.
 */
bool cx_json_pointer_at(cx_str text, size_t offset, cx_buf *out);

#endif
