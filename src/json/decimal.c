/*
 * decimal.c - exact decimals over borrowed digits.
 */
#include "json/decimal.h"

#include "base/api.h"

#define EXPONENT_MAX INT64_C(1000000000000000000)

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* The exponent after 'e', clamped. */
static int64_t read_exponent(cx_str text)
{
    int64_t value = 0;
    size_t at = text.size != 0 && (text.data[0] == '+' || text.data[0] == '-') ? 1 : 0;
    bool negative = at == 1 && text.data[0] == '-';
    for (; at < text.size; at++)
        if (value < EXPONENT_MAX / 100)
            value = value * 10 + (text.data[at] - '0');
    return negative ? -value : value;
}

cx_decimal cx_decimal_read(cx_str literal)
{
    cx_decimal out = {false, {literal.data, 0}, 0, 0};
    size_t at = 0;
    if (literal.size != 0 && literal.data[0] == '-') {
        out.negative = true;
        at = 1;
    }
    /* The first and the last significant digit, and the position of the point. */
    size_t first = literal.size, last = 0, digits = 0, first_digit = 0, last_digit = 0;
    int64_t point = -1;
    for (; at < literal.size; at++) {
        char byte = literal.data[at];
        if (byte == '.') {
            point = (int64_t)digits;
        } else if (is_digit(byte)) {
            if (byte != '0') {
                if (first == literal.size) {
                    first = at;
                    first_digit = digits;
                }
                last = at;
                last_digit = digits;
            }
            digits++;
        } else {
            break;
        }
    }
    if (first == literal.size) { /* zero, however it is spelled */
        out.negative = false;
        return out;
    }
    if (at < literal.size)
        out.exponent = read_exponent(cx_str_from(literal.data + at + 1, literal.size - at - 1));
    if (point < 0)
        point = (int64_t)digits;
    out.digits = cx_str_from(literal.data + first, last - first + 1);
    out.count = last_digit - first_digit + 1;
    out.exponent += point - (int64_t)last_digit - 1;
    return out;
}

/* The digit at `*at`, which moves on; 0 after the last. */
static char next_digit(const cx_decimal *value, size_t *at)
{
    if (*at < value->digits.size && value->digits.data[*at] == '.')
        *at += 1;
    return *at < value->digits.size ? value->digits.data[(*at)++] : '0';
}

static int compare_magnitude(const cx_decimal *a, const cx_decimal *b)
{
    if (a->count == 0 || b->count == 0)
        return (a->count != 0) - (b->count != 0);
    /* The place of the first digit decides; the digits decide only when it is the same. */
    int64_t top_a = a->exponent + (int64_t)a->count, top_b = b->exponent + (int64_t)b->count;
    if (top_a != top_b)
        return top_a < top_b ? -1 : 1;
    size_t longest = a->count > b->count ? a->count : b->count;
    size_t at_a = 0, at_b = 0;
    for (size_t i = 0; i < longest; i++) {
        char digit_a = next_digit(a, &at_a), digit_b = next_digit(b, &at_b);
        if (digit_a != digit_b)
            return digit_a < digit_b ? -1 : 1;
    }
    return 0;
}

int cx_decimal_compare(const cx_decimal *a, const cx_decimal *b)
{
    if (a->negative != b->negative)
        return a->negative ? -1 : 1;
    int order = compare_magnitude(a, b);
    return a->negative ? -order : order;
}

uint64_t cx_decimal_hash(const cx_decimal *value, uint64_t seed)
{
    uint64_t hash = seed ^ (uint64_t)value->exponent ^ (value->negative ? UINT64_C(1) << 63 : 0);
    size_t at = 0;
    for (size_t i = 0; i < value->count; i++)
        hash = (hash ^ (uint64_t)(next_digit(value, &at) - '0')) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 29);
}

/* 10^exponent mod modulus. */
static uint64_t power_of_ten(uint64_t exponent, uint64_t modulus)
{
    uint64_t base = 10 % modulus, result = 1 % modulus;
    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1)
            result = cx_wide_product_mod(result, base, modulus);
        base = cx_wide_product_mod(base, base, modulus);
    }
    return result;
}

/*
 * Neither has trailing zeros, so a value with more decimal places than the divisor is no multiple
 * of it: a number divisible by a power of ten ends in zeros.
 */
bool cx_decimal_is_multiple(const cx_decimal *value, const cx_decimal *divisor)
{
    CX_ASSERT(divisor->count != 0 && divisor->count <= CX_DECIMAL_DIVISOR_DIGITS);
    if (value->count == 0)
        return true;
    if (value->exponent < divisor->exponent)
        return false;
    uint64_t modulus = 0;
    size_t at = 0;
    for (size_t i = 0; i < divisor->count; i++)
        modulus = modulus * 10 + (uint64_t)(next_digit(divisor, &at) - '0');
    CX_ASSERT(modulus != 0); /* zero has no digits */
    uint64_t rest = 0;
    at = 0;
    for (size_t i = 0; i < value->count; i++) {
        uint64_t digit = (uint64_t)(next_digit(value, &at) - '0');
        if (modulus <= UINT64_MAX / 10)
            rest = (rest * 10 + digit) % modulus;
        else
            rest = cx_wide_sum_mod(cx_wide_product_mod(rest, 10, modulus), digit, modulus);
    }
    uint64_t shift = power_of_ten((uint64_t)(value->exponent - divisor->exponent), modulus);
    return cx_wide_product_mod(rest, shift, modulus) == 0;
}

bool cx_decimal_to_uint64(const cx_decimal *value, uint64_t *out)
{
    if (value->count == 0) {
        *out = 0;
        return true;
    }
    if (value->negative || value->exponent < 0 || value->exponent > 20 || value->count > 20)
        return false;
    uint64_t sum = 0;
    size_t at = 0;
    for (size_t i = 0; i < value->count + (size_t)value->exponent; i++)
        if (__builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_add_overflow(sum, (uint64_t)(next_digit(value, &at) - '0'), &sum))
            return false;
    *out = sum;
    return true;
}
