/*
 * number.h - number conversion: correctly rounded reading, shortest round-trip writing.
 */
#ifndef CX_JSON_NUMBER_H
#define CX_JSON_NUMBER_H

#include "base/api.h"

#define CX_NUMBER_TEXT_SIZE 32 /* enough for every form below */

/*
 * Reads a JSON number literal (already checked against the grammar) as the nearest binary64, ties
 * to even.  Returns false, and infinity of the right sign, when it overflows.  Any length.
 */
bool cx_number_parse(cx_str literal, double *out);

/* The shortest digits that read back as `value` (finite, not zero), nearest to it among those:
 * value = 0.d1d2d3... * 10^*out_point.  Returns the digit count, 1..17. */
int cx_number_shortest(double value, char out_digits[17], int *out_point);

/* Python repr(float).  Finite.  Returns the length. */
size_t cx_number_write_py(double value, char out[CX_NUMBER_TEXT_SIZE]);

/* ECMAScript Number::toString, as RFC 8785 §3.2.2.3 requires.  Finite. */
size_t cx_number_write_js(double value, char out[CX_NUMBER_TEXT_SIZE]);

/*
 * True when a literal with '.' or exponent is certainly already what cx_number_write_py would
 * give: a cheap sufficient test (at most 15 significant digits, no exponent, plain range).
 */
bool cx_number_is_canonical_py(cx_str literal);

/*
 * Exact comparison of two JSON number literals of any size, integers not rounded, doubles taken at
 * their binary64 value (as Python compares int with float).  <0, 0, >0.  Neither overflows.
 */
int cx_number_compare(cx_str a, cx_str b);

#endif
