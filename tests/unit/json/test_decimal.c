/*
 * Decimals as they are spelled: order, integers, multiples, without rounding.
 */
#include "base/diag.h"
#include "json/decimal.h"
#include "tests/test.h"

static cx_decimal read(const char *text)
{
    return cx_decimal_read(cx_str_z(text));
}

CX_TEST(decimals_are_ordered_by_what_they_amount_to)
{
    /* Each is less than the next; those in one line are equal. */
    static const char *const ordered[][4] = {
        {"-1e400"},
        {"-9007199254740993"},
        {"-9007199254740992", "-9007199254740992.0", "-9.007199254740992E15"},
        {"-2"},
        {"-1.5", "-15e-1", "-0.15e1"},
        {"0", "-0", "0.000", "0e99"},
        {"1e-400"},
        {"0.1", "1e-1", "0.10", "100e-3"},
        {"0.1000000000000000000000000001"},
        {"1", "1.0", "10e-1", "0.01e2"},
        {"9", "9.0", "9e0", "900e-2"},
        {"10", "1e1", "1E+1", "10.000"},
        {"18446744073709551615"},
        {"18446744073709551616", "18446744073709551616.0"},
        {"1e400", "10e399", "0.1e401"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(ordered); i++)
        for (size_t k = 0; k < CX_COUNT_OF(ordered); k++)
            for (size_t m = 0; m < 4 && ordered[i][m] != NULL; m++)
                for (size_t n = 0; n < 4 && ordered[k][n] != NULL; n++) {
                    cx_decimal a = read(ordered[i][m]), b = read(ordered[k][n]);
                    int order = cx_decimal_compare(&a, &b);
                    if ((i < k) != (order < 0) || (i == k) != (order == 0))
                        cx_test_fail(__FILE__, __LINE__, "%s against %s gives %d", ordered[i][m],
                                     ordered[k][n], order);
                    if (i == k && cx_decimal_hash(&a, 7) != cx_decimal_hash(&b, 7))
                        cx_test_fail(__FILE__, __LINE__, "%s and %s have different hashes",
                                     ordered[i][m], ordered[k][n]);
                }
}

CX_TEST(integers_are_integers_however_they_are_spelled)
{
    static const char *const integers[] = {"0",     "-0.0",   "1",      "1.0",   "1e3",
                                           "15e-0", "1.50e2", "100e-2", "1e400", "-7.000"};
    static const char *const others[] = {"0.5", "1e-1", "1.05e1", "-0.001", "123e-4"};
    for (size_t i = 0; i < CX_COUNT_OF(integers); i++) {
        cx_decimal value = read(integers[i]);
        if (!cx_decimal_is_integer(&value))
            cx_test_fail(__FILE__, __LINE__, "%s is no integer", integers[i]);
    }
    for (size_t i = 0; i < CX_COUNT_OF(others); i++) {
        cx_decimal value = read(others[i]);
        if (cx_decimal_is_integer(&value))
            cx_test_fail(__FILE__, __LINE__, "%s is an integer", others[i]);
    }
}

CX_TEST(multiples_are_exact)
{
    static const struct {
        const char *value, *divisor;
        bool is_multiple;
    } cases[] = {
        {"0", "3", true},
        {"9", "3", true},
        {"10", "3", false},
        {"-9", "3", true},
        {"0.3", "0.1", true}, /* not so in binary */
        {"0.35", "0.1", false},
        {"4.35", "0.05", true},
        {"1", "0.0001", true},
        {"0.0075", "0.0001", true},
        {"0.00751", "0.0001", false},
        {"1e308", "0.5", true},
        {"1e308", "0.123456789", false},
        {"12391239123", "1e-8", true},
        {"123456789012345678901234567890", "10", true},
        {"123456789012345678901234567891", "10", false},
        {"1e1000000", "7", false},
        {"7e1000000", "7", true},
        {"5", "10", false},
        {"4.5", "1.5", true},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_decimal value = read(cases[i].value), divisor = read(cases[i].divisor);
        if (cx_decimal_is_multiple(&value, &divisor) != cases[i].is_multiple)
            cx_test_fail(__FILE__, __LINE__, "%s of %s", cases[i].value, cases[i].divisor);
    }
}

CX_TEST(decimals_become_numbers_when_they_fit)
{
    static const struct {
        const char *text;
        bool fits;
        uint64_t value;
    } cases[] = {
        {"0", true, 0},         {"7.0", true, 7},
        {"1e3", true, 1000},    {"18446744073709551615", true, UINT64_MAX},
        {"-1", false, 0},       {"0.5", false, 0},
        {"1e20", false, 0},     {"18446744073709551616", false, 0},
        {"1e999999", false, 0},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_decimal value = read(cases[i].text);
        uint64_t got = 0;
        if (cx_decimal_to_uint64(&value, &got) != cases[i].fits ||
            (cases[i].fits && got != cases[i].value))
            cx_test_fail(__FILE__, __LINE__, "%s", cases[i].text);
    }
}
