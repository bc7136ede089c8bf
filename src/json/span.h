/*
 * span.h - where the parts of a JSON text lie, without judging them.
 *
 * A list of documents in one text must not be lost because one of them is bad.  So its elements are
 * found by their brackets and quotes alone, and each is then read on its own:
 *
 *     cx_json_span span;
 *     bool there = cx_json_span_begin(&span, text);
 *     while (there && cx_json_span_next(&span, &name, &value))
 *         ...
 *     if (!there || span.bad)
 *         ... the brackets do not balance, or something is missing between two commas ...
 *
 * What a slice holds may still be anything: "1 2" and "[}" are slices.  But text whose slices are
 * JSON each, and that is not `bad`, is JSON as a whole.  Linear, no recursion, no memory; nothing
 * here looks at UTF-8.
 */
#ifndef CX_JSON_SPAN_H
#define CX_JSON_SPAN_H

#include "base/api.h"

typedef struct cx_json_span {
    const char *at; /* what comes next */
    const char *end;
    char close; /* '}' or ']' */
    bool done;  /* the closing bracket was found */
    bool bad;   /* what is there is no list of members or elements */
} cx_json_span;

/* `container` is the text of one object or array, white space around it allowed; false when it
 * does not begin as one. */
bool cx_json_span_begin(cx_json_span *span, cx_str container);

/*
 * The next member or element; false behind the last, and from where `bad` was found on.  Slices are
 * raw, without the white space around them, and never empty.  *out_name is the name as it is
 * spelled, with its quotes; data NULL in arrays.  Text behind the closing bracket makes it `bad`.
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
