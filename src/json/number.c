/*
 * number.c - decimal text to binary64 and back, exactly.
 *
 * Reading.  A literal is w * 10^q with w its first 19 significant digits.  Three ways, each taken
 * only where it is certain to give the correctly rounded result:
 *   1. w < 2^53 and |q| <= 22: one multiplication or division of two exact doubles;
 *   2. w times the 128 leading bits of 10^q: the product bounds the value from below, the error is
 *      known, and the rounding is decided unless half an ulp lies within the error;
 *   3. big integers: all digits against the halfway point above the candidate of 2.
 *
 * Writing.  The rounding interval of a double is scaled by the power of ten that makes it between
 * one and ten units wide, and the shortest decimal in it is one of four integers near the scaled
 * value (the method R. Giulietti described as Schubfach).
 *
 * Invariants:
 *   I1  power_table[k] <= 10^k / 2^(floor(log2(10^k)) - 127) < power_table[k] + 1, equal on the
 *       left for 0 <= k <= POWER_EXACT_LAST.
 *   I2  The true value of a literal lies in [candidate, candidate + 3/2 ulp).
 *   I3  No scaled bound that is not an integer lies within 2^-67 of one.
 * I1, I3 and the three logarithms are proved by tools/make_number_tables.py --check.
 */
#include "json/number.h"

#include <float.h>

#include "base/api.h"
#include "json/number_tables.h"

#define WORD_DIGITS 19   /* any 19 digits fit a uint64_t */
#define EXACT_DIGITS 800 /* a halfway point has at most 767 significant digits */
#define BIG_WORDS 48     /* 3072 bits: 801 digits need 2661, 2^54 * 5^1125 needs 2667 */
#define EXPONENT_LIMIT INT64_C(100000000000000000)

#define SIGN_BIT (UINT64_C(1) << 63)
_Static_assert(FLT_EVAL_METHOD == 0, "sums would have other digits here: see cmake/flags.cmake");

#define HIDDEN_BIT (UINT64_C(1) << 52)
#define INFINITY_BITS (UINT64_C(0x7ff) << 52)

/* Eight characters in one word, the first in the lowest byte. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define CX_NUMBER_EIGHT 1
#endif

/* --- small arithmetic ---------------------------------------------------------------------- */

static inline int leading_zeros(uint64_t value)
{
#if defined(__GNUC__)
    return __builtin_clzll(value);
#else
    int count = 0;
    for (; (value & SIGN_BIT) == 0; value <<= 1)
        count++;
    return count;
#endif
}

/* >> of a negative number is arithmetic with every compiler we build with; so is this rounding. */
static inline int floor_log2_pow10(int k)
{
    return (k * 1741647) >> 19;
}

static inline int floor_log10_pow2(int q)
{
    return (q * 1262611) >> 22;
}

static inline int floor_log10_three_quarters_pow2(int q)
{
    return (q * 1262611 - 524031) >> 22;
}

static inline double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t to_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* --- big integers, only for what 64 and 128 bits cannot decide ------------------------------- */

typedef struct big {
    uint64_t words[BIG_WORDS]; /* least significant first, no zero on top */
    int count;
} big;

/* big = big * factor + addend */
static void big_multiply_add(big *number, uint64_t factor, uint64_t addend)
{
    uint64_t carry = addend;
    for (int i = 0; i < number->count; i++) {
        cx_wide product = cx_wide_product(number->words[i], factor);
        product.low += carry;
        carry = product.high + (product.low < carry);
        number->words[i] = product.low;
    }
    if (carry != 0) {
        CX_ASSERT(number->count < BIG_WORDS);
        number->words[number->count++] = carry;
    }
}

static void big_multiply_pow5(big *number, int64_t exponent)
{
    static const uint64_t pow5_27 = UINT64_C(7450580596923828125);
    for (; exponent >= 27; exponent -= 27)
        big_multiply_add(number, pow5_27, 0);
    for (; exponent > 0; exponent--)
        big_multiply_add(number, 5, 0);
}

static void big_shift_left(big *number, int64_t bits)
{
    int words = (int)(bits / 64), rest = (int)(bits % 64);
    if (rest != 0)
        big_multiply_add(number, UINT64_C(1) << rest, 0);
    if (words == 0 || number->count == 0)
        return;
    CX_ASSERT(number->count + words <= BIG_WORDS);
    memmove(number->words + words, number->words, (size_t)number->count * sizeof(uint64_t));
    memset(number->words, 0, (size_t)words * sizeof(uint64_t));
    number->count += words;
}

static void big_append_digits(big *number, const char *digits, size_t count)
{
    for (size_t i = 0; i < count;) {
        uint64_t chunk = 0, scale = 1;
        for (; i < count && scale < UINT64_C(1000000000000000000); i++, scale *= 10)
            chunk = chunk * 10 + (uint64_t)(digits[i] - '0');
        big_multiply_add(number, scale, chunk);
    }
}

static int big_compare(const big *a, const big *b)
{
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    for (int i = a->count - 1; i >= 0; i--) {
        if (a->words[i] != b->words[i])
            return a->words[i] < b->words[i] ? -1 : 1;
    }
    return 0;
}

/* --- reading ------------------------------------------------------------------------------- */

/* |literal| = word * 10^exponent, or more than that and less than (word + 1) * 10^exponent. */
typedef struct decimal {
    uint64_t word;
    int64_t exponent;
    bool cut;
    bool negative;
    const char *start; /* the first digit */
    const char *end;   /* after the last digit before 'e' */
    int64_t written_exponent;
} decimal;

#ifdef CX_NUMBER_EIGHT
/* Eight digits at once; false when one of the characters is not a digit. */
static inline bool read_eight_digits(const char *text, uint64_t *out)
{
    uint64_t chars;
    memcpy(&chars, text, sizeof chars);
    uint64_t digits = chars - UINT64_C(0x3030303030303030);
    if (((chars + UINT64_C(0x4646464646464646)) | digits) & UINT64_C(0x8080808080808080))
        return false;
    digits = digits * 10 + (digits >> 8);
    *out = ((digits & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064) +
            ((digits >> 16) & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001)) >>
           32;
    *out = (uint32_t)*out;
    return true;
}
#else
static inline bool read_eight_digits(const char *text, uint64_t *out)
{
    (void)text, (void)out;
    return false;
}
#endif

/* Appends a run of digits to *word (wrapping when there are too many); returns its end. */
static inline const char *read_digits(const char *at, const char *end, uint64_t *word)
{
    uint64_t eight, value = *word;
    while (end - at >= 8 && read_eight_digits(at, &eight)) {
        value = value * 100000000 + eight;
        at += 8;
    }
    for (; at < end; at++) {
        unsigned digit = (unsigned char)*at - (unsigned)'0';
        if (digit > 9)
            break;
        value = value * 10 + digit;
    }
    *word = value;
    return at;
}

/* `at` is after the 'e'.  Saturates far beyond what the digits of any text could offset. */
static int64_t read_exponent(const char *at, const char *end)
{
    bool negative = at < end && *at == '-';
    int64_t value = 0;
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    for (; at < end && value < EXPONENT_LIMIT; at++)
        value = value * 10 + (*at - '0');
    return negative ? -value : value;
}

/*
 * The first `capacity` significant digits, as text.  *out_exponent is the power of ten of the last
 * one kept, *out_cut says that a digit that is not zero was left out.  Returns the count.
 */
static size_t collect_digits(const decimal *number, char *out_digits, size_t capacity,
                             int64_t *out_exponent, bool *out_cut)
{
    size_t count = 0;
    bool after_point = false;
    *out_exponent = number->written_exponent;
    *out_cut = false;
    for (const char *at = number->start; at < number->end; at++) {
        if (*at == '.') {
            after_point = true;
        } else if (count < capacity) {
            if (count != 0 || *at != '0')
                out_digits[count++] = *at;
            *out_exponent -= after_point;
        } else {
            *out_exponent += !after_point;
            *out_cut |= *at != '0';
        }
    }
    return count;
}

/* Fills the caller's struct: returned by value it is copied, which stalls on the fresh stores. */
static inline void read_decimal(cx_str literal, decimal *out)
{
    const char *at = literal.data, *end = literal.data + literal.size;
    uint64_t word = 0;
    int64_t exponent = 0, written_exponent = 0;
    out->negative = at < end && *at == '-';
    at += out->negative;
    out->start = at;
    at = read_digits(at, end, &word);
    int64_t digit_count = at - out->start;
    if (at < end && *at == '.') {
        const char *fraction = ++at;
        at = read_digits(at, end, &word);
        exponent = fraction - at;
        digit_count += at - fraction;
    }
    out->end = at;
    if (at < end)
        written_exponent = read_exponent(at + 1, end);
    out->word = word;
    out->exponent = exponent + written_exponent;
    out->written_exponent = written_exponent;
    out->cut = false;
    if (CX_UNLIKELY(digit_count > WORD_DIGITS)) {
        char digits[WORD_DIGITS];
        size_t count = collect_digits(out, digits, WORD_DIGITS, &out->exponent, &out->cut);
        out->word = 0;
        (void)read_digits(digits, digits + count, &out->word);
    }
}

/*
 * Compares the literal with (2 * mantissa + 1) * 2^(exponent2 - 1), the point halfway between
 * mantissa * 2^exponent2 and its upper neighbour.  Digits after the 800th cannot be part of a
 * halfway point, so that they only count as "a little more".
 */
static int compare_with_halfway(const decimal *number, uint64_t mantissa, int exponent2)
{
    big value = {.count = 0}, halfway = {.count = 0};
    char digits[EXACT_DIGITS + 1];
    int64_t exponent;
    bool cut;
    size_t count = collect_digits(number, digits, EXACT_DIGITS, &exponent, &cut);
    if (cut) {
        digits[count++] = '1';
        exponent--;
    }
    big_append_digits(&value, digits, count);
    big_multiply_add(&halfway, 1, 2 * mantissa + 1);
    /* Both sides times 10^-exponent where that is positive, then times a power of two. */
    big_multiply_pow5(exponent < 0 ? &halfway : &value, exponent < 0 ? -exponent : exponent);
    int64_t shift = exponent2 - 1 - exponent;
    big_shift_left(shift < 0 ? &value : &halfway, shift < 0 ? -shift : shift);
    return big_compare(&value, &halfway);
}

/*
 * Rounds word * 10^exponent (word not zero, exponent within the table) by way 2, else way 3.
 * Returns the bits; those of infinity or above mean overflow.
 */
static uint64_t round_decimal(const decimal *number)
{
    int power = (int)number->exponent;
    const uint64_t *table = power_table[power - POWER_FIRST];
    int zeros = leading_zeros(number->word);
    uint64_t word = number->word << zeros;
    cx_wide upper = cx_wide_product(word, table[0]), lower = cx_wide_product(word, table[1]);
    uint64_t middle = upper.low + lower.high;
    uint64_t high = upper.high + (middle < lower.high);

    /* 2^log2 <= product < 2^(log2 + 1); `kept` bits of it make the mantissa, fewer if subnormal. */
    int top = (int)(high >> 63);
    int log2 = 63 + top + floor_log2_pow10(power) - zeros;
    int kept = log2 + 1075 < 53 ? log2 + 1075 : 53;
    if (kept < -1)
        return 0;
    int exponent2 = log2 - kept + 1;
    int drop = 63 + top - kept; /* 10..65 */
    uint64_t mantissa = drop < 64 ? high >> drop : 0;
    uint64_t rest = drop < 64 ? high & ((UINT64_C(1) << drop) - 1) : high;
    uint64_t bits = ((uint64_t)(exponent2 + 1074) << 52) + mantissa;
    if (bits >= INFINITY_BITS)
        return bits;

    /* I1: the value exceeds the product by less than `word` in the lowest place unless exact, and
     * a cut literal by at most 2^4 more of `high`, 19 digits having at most 4 leading zeros. */
    bool exact = !number->cut && power >= 0 && power <= POWER_EXACT_LAST;
    uint64_t error = number->cut ? 17 : !exact && middle == UINT64_MAX;
    uint64_t half = drop <= 64 ? UINT64_C(1) << (drop - 1) : 0;
    if (CX_UNLIKELY(drop > 64 || (rest < half && half - rest <= error))) {
        int order = compare_with_halfway(number, mantissa, exponent2);
        return bits + (order > 0 || (order == 0 && (mantissa & 1) != 0));
    }
    if (rest == half && (middle | lower.low) == 0 && exact)
        return bits + (mantissa & 1);
    return bits + (rest >= half);
}

/* Way 1.  Not where the compiler computes in more than 53 bits: that would round twice. */
static inline bool round_exactly(const decimal *number, double *out)
{
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD == 0
    static const double exact_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                          1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                          1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (number->cut || number->word > HIDDEN_BIT * 2 || number->exponent < -22 ||
        number->exponent > 22)
        return false;
    double value = (double)(int64_t)number->word;
    value = number->exponent < 0 ? value / exact_powers[-number->exponent]
                                 : value * exact_powers[number->exponent];
    *out = number->negative ? -value : value;
    return true;
#else
    (void)number, (void)out;
    return false;
#endif
}

bool cx_number_parse(cx_str literal, double *out)
{
    decimal number;
    read_decimal(literal, &number);
    if (CX_LIKELY(round_exactly(&number, out)))
        return true;
    uint64_t bits;
    if (number.word == 0 || number.exponent < POWER_FIRST)
        bits = 0; /* below 2^64 * 10^-343, which is less than half the least subnormal */
    else if (number.exponent > 308)
        bits = INFINITY_BITS;
    else
        bits = round_decimal(&number);
    bool finite = bits < INFINITY_BITS;
    *out = from_bits((finite ? bits : INFINITY_BITS) | (number.negative ? SIGN_BIT : 0));
    return finite;
}

/* --- writing ------------------------------------------------------------------------------- */

/* digits * 10^exponent */
typedef struct shortest {
    uint64_t digits;
    int exponent;
} shortest;

/*
 * floor(factor * power / 2^128), its lowest bit set when the quotient is inexact.  The power is
 * up to one too large, which makes the product too large by less than 2^60 in its lowest place;
 * I3 keeps everything that is not an integer out of that range.
 */
static inline uint64_t multiply_sticky(cx_wide power, uint64_t factor)
{
    cx_wide lower = cx_wide_product(power.low, factor), upper = cx_wide_product(power.high, factor);
    uint64_t fraction = upper.low + lower.high;
    uint64_t integer = upper.high + (fraction < lower.high);
    return integer | ((fraction | (lower.low >> 60)) != 0);
}

static inline shortest without_trailing_zeros(uint64_t digits, int exponent)
{
    while (digits % 100000000 == 0) {
        digits /= 100000000;
        exponent += 8;
    }
    if (digits % 10000 == 0) {
        digits /= 10000;
        exponent += 4;
    }
    if (digits % 100 == 0) {
        digits /= 100;
        exponent += 2;
    }
    if (digits % 10 == 0) {
        digits /= 10;
        exponent += 1;
    }
    return (shortest){digits, exponent};
}

/* The power of ten 10^k, rounded up to 128 bits. */
static inline cx_wide power_rounded_up(int k)
{
    const uint64_t *table = power_table[k - POWER_FIRST];
    cx_wide power = {table[0], table[1]};
    if (k < 0 || k > POWER_EXACT_LAST) {
        power.low += 1;
        power.high += power.low == 0;
    }
    return power;
}

/* value = mantissa * 2^q; `uneven`: the gap below is half of the one above. */
static shortest shorten_digits(uint64_t mantissa, int q, bool uneven)
{
    int k = uneven ? floor_log10_three_quarters_pow2(q) : floor_log10_pow2(q);
    int shift = q + floor_log2_pow10(-k) + 1; /* 0..4 */
    cx_wide power = power_rounded_up(-k);
    /* Four times the value and its two halfway points, in units of 10^k. */
    uint64_t center = multiply_sticky(power, 4 * mantissa << shift);
    uint64_t below = multiply_sticky(power, (4 * mantissa - (uneven ? 1 : 2)) << shift);
    uint64_t above = multiply_sticky(power, (4 * mantissa + 2) << shift);
    /* A halfway point rounds to the even mantissa: it belongs to the interval of that one only. */
    below += mantissa & 1;
    above -= mantissa & 1;

    uint64_t units = center / 4;
    uint64_t tens = units / 10 * 10;
    bool tens_in = below <= 4 * tens, next_tens_in = 4 * (tens + 10) <= above;
    if (tens_in || next_tens_in)
        return without_trailing_zeros(tens_in ? tens : tens + 10, k);
    bool unit_in = below <= 4 * units, next_unit_in = 4 * (units + 1) <= above;
    if (unit_in != next_unit_in)
        return (shortest){units + next_unit_in, k};
    uint64_t middle = 4 * units + 2;
    bool up = center > middle || (center == middle && (units & 1) != 0);
    return (shortest){units + up, k};
}

static inline shortest shortest_of_bits(uint64_t bits)
{
    uint64_t fraction = bits & (HIDDEN_BIT - 1);
    int biased = (int)(bits >> 52 & 0x7ff);
    if (biased == 0)
        return shorten_digits(fraction, -1074, false);
    uint64_t mantissa = fraction | HIDDEN_BIT;
    int q = biased - 1075;
    /* An integer below 2^53 is its own shortest form: its neighbours are a whole unit away. */
    if (q <= 0 && q > -53 && (mantissa & ((UINT64_C(1) << -q) - 1)) == 0)
        return without_trailing_zeros(mantissa >> -q, 0);
    return shorten_digits(mantissa, q, fraction == 0 && biased > 1);
}

static const char digit_pairs[] = "00010203040506070809101112131415161718192021222324"
                                  "25262728293031323334353637383940414243444546474849"
                                  "50515253545556575859606162636465666768697071727374"
                                  "75767778798081828384858687888990919293949596979899";

static inline int count_digits(uint64_t value)
{
    static const uint64_t powers[] = {0,
                                      UINT64_C(10),
                                      UINT64_C(100),
                                      UINT64_C(1000),
                                      UINT64_C(10000),
                                      UINT64_C(100000),
                                      UINT64_C(1000000),
                                      UINT64_C(10000000),
                                      UINT64_C(100000000),
                                      UINT64_C(1000000000),
                                      UINT64_C(10000000000),
                                      UINT64_C(100000000000),
                                      UINT64_C(1000000000000),
                                      UINT64_C(10000000000000),
                                      UINT64_C(100000000000000),
                                      UINT64_C(1000000000000000),
                                      UINT64_C(10000000000000000),
                                      UINT64_C(100000000000000000)};
    int estimate = (64 - leading_zeros(value)) * 1233 >> 12;
    return estimate + (value >= powers[estimate]);
}

int cx_number_shortest(double value, char out_digits[17], int *out_point)
{
    shortest decimal_form = shortest_of_bits(to_bits(value) & ~SIGN_BIT);
    uint64_t digits = decimal_form.digits;
    int count = count_digits(digits), at = count;
    *out_point = decimal_form.exponent + count;
    uint32_t head = (uint32_t)digits;
    if (digits >= UINT64_C(100000000)) {
        /* Two halves of 32 bits are cheaper to divide, and do not wait for each other. */
        head = (uint32_t)(digits / 100000000);
        uint32_t tail = (uint32_t)(digits % 100000000);
        uint32_t tail_high = tail / 10000, tail_low = tail % 10000;
        at -= 8;
        memcpy(out_digits + at, digit_pairs + tail_high / 100 * 2, 2);
        memcpy(out_digits + at + 2, digit_pairs + tail_high % 100 * 2, 2);
        memcpy(out_digits + at + 4, digit_pairs + tail_low / 100 * 2, 2);
        memcpy(out_digits + at + 6, digit_pairs + tail_low % 100 * 2, 2);
    }
    for (; head >= 100; head /= 100)
        memcpy(out_digits + (at -= 2), digit_pairs + head % 100 * 2, 2);
    if (at == 2)
        memcpy(out_digits, digit_pairs + head * 2, 2);
    else
        out_digits[0] = (char)('0' + head);
    return count;
}

/* Digits without exponent; integral values get no point. */
static char *write_positional(char *out, const char *digits, int count, int point)
{
    if (point <= 0) {
        memcpy(out, "0.", 2);
        memset(out + 2, '0', (size_t)-point);
        memcpy(out + 2 - point, digits, (size_t)count);
        return out + 2 - point + count;
    }
    if (point >= count) {
        memcpy(out, digits, (size_t)count);
        memset(out + count, '0', (size_t)(point - count));
        return out + point;
    }
    memcpy(out, digits, (size_t)point);
    out[point] = '.';
    memcpy(out + point + 1, digits + point, (size_t)(count - point));
    return out + count + 1;
}

/* d.ddde+XX, at least `exponent_digits` digits of exponent. */
static char *write_scientific(char *out, const char *digits, int count, int exponent,
                              int exponent_digits)
{
    *out++ = digits[0];
    if (count > 1) {
        *out++ = '.';
        memcpy(out, digits + 1, (size_t)(count - 1));
        out += count - 1;
    }
    *out++ = 'e';
    *out++ = exponent < 0 ? '-' : '+';
    int size = exponent < 0 ? -exponent : exponent;
    if (size >= 100)
        *out++ = (char)('0' + size / 100);
    if (size >= 10 || exponent_digits >= 2)
        *out++ = (char)('0' + size / 10 % 10);
    *out++ = (char)('0' + size % 10);
    return out;
}

size_t cx_number_write_py(double value, char out[CX_NUMBER_TEXT_SIZE])
{
    char digits[17], *at = out;
    int point;
    uint64_t bits = to_bits(value);
    CX_DEBUG_ASSERT((bits & ~SIGN_BIT) < INFINITY_BITS);
    if ((bits & SIGN_BIT) != 0)
        *at++ = '-';
    if ((bits & ~SIGN_BIT) == 0) {
        memcpy(at, "0.0", 3);
        return (size_t)(at + 3 - out);
    }
    int count = cx_number_shortest(value, digits, &point);
    if (point > -4 && point <= 16) {
        at = write_positional(at, digits, count, point);
        if (point >= count) {
            memcpy(at, ".0", 2);
            at += 2;
        }
    } else {
        at = write_scientific(at, digits, count, point - 1, 2);
    }
    return (size_t)(at - out);
}

size_t cx_number_write_js(double value, char out[CX_NUMBER_TEXT_SIZE])
{
    char digits[17], *at = out;
    int point;
    uint64_t bits = to_bits(value);
    CX_DEBUG_ASSERT((bits & ~SIGN_BIT) < INFINITY_BITS);
    if ((bits & ~SIGN_BIT) == 0) {
        out[0] = '0'; /* RFC 8785 §3.2.2.3: minus zero too */
        return 1;
    }
    if ((bits & SIGN_BIT) != 0)
        *at++ = '-';
    int count = cx_number_shortest(value, digits, &point);
    if (point > -6 && point <= 21)
        at = write_positional(at, digits, count, point);
    else
        at = write_scientific(at, digits, count, point - 1, 1);
    return (size_t)(at - out);
}

#ifdef CX_NUMBER_EIGHT
/* One bit for each of eight characters, the first lowest, set when it is not a digit. */
static inline unsigned mark_others(uint64_t chars)
{
    uint64_t digits = chars ^ UINT64_C(0x3030303030303030);
    uint64_t others =
        ((digits & UINT64_C(0x7f7f7f7f7f7f7f7f)) + UINT64_C(0x7676767676767676)) | digits;
    /* The top bit of byte i moves to bit 56 + i. */
    return (
        unsigned)(((others >> 7 & UINT64_C(0x0101010101010101)) * UINT64_C(0x0102040810204080)) >>
                  56);
}

/*
 * The offset of the only character of `text` that is not a digit, or 0 when there is not exactly
 * one. 4 <= size <= 16; the text is read as two overlapping words.
 */
static inline size_t find_only_other(const char *text, size_t size)
{
    unsigned others;
    if (size < 8) {
        uint32_t head, tail;
        memcpy(&head, text, 4);
        memcpy(&tail, text + size - 4, 4);
        unsigned both = mark_others((uint64_t)tail << 32 | head);
        others = (both & 15) | (both >> 4) << (size - 4);
    } else {
        uint64_t head, tail;
        memcpy(&head, text, 8);
        memcpy(&tail, text + size - 8, 8);
        others = mark_others(head) | mark_others(tail) << (size - 8);
    }
    return others != 0 && (others & (others - 1)) == 0 ? (size_t)__builtin_ctz(others) : 0;
}
#endif

/*
 * Digits around one point: no superfluous zeros, not below 0.0001.  `point` > 0 is the offset of
 * the character that is not a digit.
 */
static inline bool has_canonical_zeros(const char *text, size_t size, size_t point)
{
    /* Without branches, which would be unpredictable. */
    bool at_end = point + 1 == size, zero_to_lose = (text[size - 1] == '0') & (point + 2 < size);
    if ((text[point] != '.') | at_end | zero_to_lose)
        return false;
    if (text[0] != '0')
        return true;
    return point == 1 && (size < 6 || memcmp(text + 1, ".0000", 5) != 0);
}

/*
 * A literal without exponent and superfluous zeros is canonical when no other decimal with as many
 * places rounds to the same double: then no decimal as short or shorter does.  That is certain
 * for a digit string (the point left out) up to 2^53 / 3, as the places are then further apart than
 * 3/2 ulp, the widest a rounding interval gets; so it is for any 15 digits.
 */
bool cx_number_is_canonical_py(cx_str literal)
{
    const char *text = literal.data;
    size_t size = literal.size, point = 0;
    if (size != 0 && text[0] == '-') {
        text++;
        size--;
    }
    /* Nineteen digits cannot wrap; the shortest form is d.d . */
    if (size < 3 || size > WORD_DIGITS + 1)
        return false;
#ifdef CX_NUMBER_EIGHT
    if (size >= 4 && size <= 16) {
        point = find_only_other(text, size);
        return point != 0 && has_canonical_zeros(text, size, point);
    }
#endif
    uint64_t word = 0;
    const char *end = text + size, *at = read_digits(text, end, &word);
    point = (size_t)(at - text);
    if (at == end || read_digits(at + 1, end, &word) != end)
        return false;
    return point != 0 && word <= (HIDDEN_BIT * 2) / 3 && has_canonical_zeros(text, size, point);
}

/* --- comparing ----------------------------------------------------------------------------- */

static bool is_integer_literal(cx_str literal)
{
    for (size_t i = 0; i < literal.size; i++) {
        if (literal.data[i] == '.' || literal.data[i] == 'e' || literal.data[i] == 'E')
            return false;
    }
    return true;
}

/* The digits of an integer literal without sign and leading zeros; *out_negative never for 0. */
static cx_str integer_digits(cx_str literal, bool *out_negative)
{
    cx_str digits = literal;
    *out_negative = digits.size != 0 && digits.data[0] == '-';
    size_t skip = *out_negative;
    while (skip < digits.size && digits.data[skip] == '0')
        skip++;
    digits.data += skip;
    digits.size -= skip;
    if (digits.size == 0)
        *out_negative = false;
    return digits;
}

static int compare_integers(cx_str a, cx_str b)
{
    bool a_negative, b_negative;
    a = integer_digits(a, &a_negative);
    b = integer_digits(b, &b_negative);
    if (a_negative != b_negative)
        return a_negative ? -1 : 1;
    int order = a.size != b.size ? (a.size < b.size ? -1 : 1) : cx_str_cmp(a, b);
    return a_negative ? -order : order;
}

/* `value` >= 0, maybe infinite. */
static int compare_magnitude(cx_str digits, double value)
{
    uint64_t bits = to_bits(value);
    /* 10^309 is above every finite double. */
    if (digits.size > 309)
        return bits == INFINITY_BITS ? -1 : 1;
    if (bits == INFINITY_BITS)
        return -1;
    int biased = (int)(bits >> 52);
    uint64_t mantissa = (bits & (HIDDEN_BIT - 1)) | (biased != 0 ? HIDDEN_BIT : 0);
    int exponent2 = (biased != 0 ? biased : 1) - 1075;
    bool fraction = false;
    if (exponent2 < 0) {
        uint64_t whole = exponent2 > -64 ? mantissa >> -exponent2 : 0;
        fraction = exponent2 > -64 ? whole << -exponent2 != mantissa : mantissa != 0;
        mantissa = whole;
        exponent2 = 0;
    }
    big integer = {.count = 0}, whole = {.count = 0};
    big_append_digits(&integer, digits.data, digits.size);
    big_multiply_add(&whole, 1, mantissa);
    big_shift_left(&whole, exponent2);
    int order = big_compare(&integer, &whole);
    return order == 0 && fraction ? -1 : order;
}

static int compare_integer_with_double(cx_str integer, double value)
{
    bool negative;
    cx_str digits = integer_digits(integer, &negative);
    if (negative && value < 0)
        return -compare_magnitude(digits, -value);
    if (negative)
        return -1;
    return value < 0 ? 1 : compare_magnitude(digits, value == 0 ? 0.0 : value);
}

int cx_number_compare(cx_str a, cx_str b)
{
    bool a_integer = is_integer_literal(a), b_integer = is_integer_literal(b);
    if (a_integer && b_integer)
        return compare_integers(a, b);
    double a_value = 0, b_value = 0;
    if (!a_integer)
        (void)cx_number_parse(a, &a_value);
    if (!b_integer)
        (void)cx_number_parse(b, &b_value);
    if (a_integer)
        return compare_integer_with_double(a, b_value);
    if (b_integer)
        return -compare_integer_with_double(b, a_value);
    return (a_value > b_value) - (a_value < b_value);
}
