/*
 * span.h - where a value is in a JSON text, so that a part can be left out or replaced while
 * every other byte stays.
 *
 * Texts are JSON that a strict reader (json.h) has accepted; nothing here checks it again, and for
 * other texts the answer may be wrong but stays inside of the text.
 */
#ifndef CX_GATEWAY_SPAN_H
#define CX_GATEWAY_SPAN_H

#include "base/api.h"

/* Iterates over the members of an object or the items of an array: begins with an offset of 0, and
 * is false at the end.  Names are as spelled, with quotes; an array's items have none. */
bool cx_gateway_span_next(cx_str text, size_t *offset, cx_str *out_name, cx_str *out_value);
/* The value of an object's member; false when there is none.  Names with escapes are decoded. */
bool cx_gateway_span_member(cx_str object, const char *name, cx_str *out);
/* `text` without the white space around it. */
cx_str cx_gateway_span_trim(cx_str text);

#endif
