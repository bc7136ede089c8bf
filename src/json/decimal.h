/*
 * decimal.h - numbers as JSON spells them, compared without rounding.
 *
 * A JSON literal is a decimal number; JSON Schema is defined on that number, not on the nearest
 * double.  Digits are never copied: a value borrows its literal.
 */
#ifndef CX_JSON_DECIMAL_H
#define CX_JSON_DECIMAL_H

#include "base/api.h"

/* value = digits * 10^exponent, the digits without leading and trailing zeros; zero has none. */
typedef struct cx_decimal {
    bool negative;
    cx_str digits;    /* of the literal; may hold one '.' */
    size_t count;     /* of digits */
    int64_t exponent; /* clamped, far outside of practical values */
} cx_decimal;

/* `literal` must be a JSON number. */
cx_decimal cx_decimal_read(cx_str literal);

static inline bool cx_decimal_is_zero(const cx_decimal *value)
{
    return value->count == 0;
}
static inline bool cx_decimal_is_integer(const cx_decimal *value)
{
    return value->exponent >= 0;
}

/* <0, 0, >0. */
int cx_decimal_compare(const cx_decimal *a, const cx_decimal *b);

/* Equal values have equal hashes. */
uint64_t cx_decimal_hash(const cx_decimal *value, uint64_t seed);

/* The largest number of digits of a divisor. */
#define CX_DECIMAL_DIVISOR_DIGITS 18

/* Whether value / divisor is an integer; the divisor is not zero and not too long. */
bool cx_decimal_is_multiple(const cx_decimal *value, const cx_decimal *divisor);

/* The value when it is an integer of 0..UINT64_MAX. */
bool cx_decimal_to_uint64(const cx_decimal *value, uint64_t *out);

#endif
