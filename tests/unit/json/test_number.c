/*
 * Tests of json/number.c: reading, shortest writing, canonical spelling, order.
 */
#include "json/number.h"

#include <math.h>
#include <stdlib.h>

#include "tests/test.h"

#define BITS_INFINITY UINT64_C(0x7ff0000000000000)

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void check_bits(int line, cx_str literal, uint64_t expected)
{
    double value = 12345;
    bool finite = cx_number_parse(literal, &value);
    int shown = (int)(literal.size > 60 ? 60 : literal.size);
    if (bits_of(value) != expected)
        cx_test_fail(__FILE__, line, "%.*s is %016llx, expected %016llx", shown, literal.data,
                     (unsigned long long)bits_of(value), (unsigned long long)expected);
    if (finite != ((expected & BITS_INFINITY) != BITS_INFINITY))
        cx_test_fail(__FILE__, line, "%.*s: finite is %d", shown, literal.data, finite);
}

#define CHECK_BITS(literal, expected) check_bits(__LINE__, cx_str_z(literal), (expected))

static void check_written(int line, uint64_t bits, const char *py, const char *js)
{
    char text[CX_NUMBER_TEXT_SIZE];
    if (py != NULL) {
        cx_str got = cx_str_from(text, cx_number_write_py(double_of(bits), text));
        if (!cx_str_is(got, py))
            cx_test_fail(__FILE__, line, "py '%.*s', expected '%s'", (int)got.size, text, py);
    }
    if (js != NULL) {
        cx_str got = cx_str_from(text, cx_number_write_js(double_of(bits), text));
        if (!cx_str_is(got, js))
            cx_test_fail(__FILE__, line, "js '%.*s', expected '%s'", (int)got.size, text, js);
    }
}

/* The literal read and written again in both forms. */
#define CHECK_FORMS(literal, py, js)                        \
    do {                                                    \
        double value_ = 0;                                  \
        CHECK(cx_number_parse(cx_str_z(literal), &value_)); \
        check_written(__LINE__, bits_of(value_), py, js);   \
    } while (0)

/* `head`, `count` times `repeated`, `tail`; the caller frees. */
static cx_str long_literal(const char *head, char repeated, size_t count, const char *tail)
{
    size_t head_size = strlen(head), tail_size = strlen(tail);
    char *text = malloc(head_size + count + tail_size + 1);
    if (text == NULL)
        abort();
    memcpy(text, head, head_size);
    memset(text + head_size, repeated, count);
    memcpy(text + head_size + count, tail, tail_size + 1);
    return cx_str_from(text, head_size + count + tail_size);
}

static void check_long(int line, const char *head, char repeated, size_t count, const char *tail,
                       uint64_t expected)
{
    cx_str literal = long_literal(head, repeated, count, tail);
    check_bits(line, literal, expected);
    free((void *)(uintptr_t)literal.data);
}

#define CHECK_LONG(head, repeated, count, tail, expected) \
    check_long(__LINE__, head, repeated, count, tail, expected)

CX_TEST(number_parse_plain)
{
    CHECK_BITS("0", 0);
    CHECK_BITS("-0", 0x8000000000000000);
    CHECK_BITS("-0.0", 0x8000000000000000);
    CHECK_BITS("0e999999999999999999999", 0);
    CHECK_BITS("1", 0x3ff0000000000000);
    CHECK_BITS("-1.5", 0xbff8000000000000);
    CHECK_BITS("0.1", 0x3fb999999999999a);
    CHECK_BITS("1E+2", 0x4059000000000000);
    CHECK_BITS("1e22", 0x4480f0cf064dd592);
    CHECK_BITS("1e23", 0x44b52d02c7e14af6);
    CHECK_BITS("3.14159265358979323846", 0x400921fb54442d18);
    CHECK_BITS("18446744073709551615", 0x43f0000000000000);
    CHECK_BITS("18446744073709551616", 0x43f0000000000000);
    CHECK_BITS("12345678.12345678", 0x41678c29c3f35ba2);
}

CX_TEST(number_parse_ties_to_even)
{
    CHECK_BITS("9007199254740993", 0x4340000000000000);
    CHECK_BITS("9007199254740993.0", 0x4340000000000000);
    CHECK_BITS("9007199254740995", 0x4340000000000002);
    CHECK_BITS("9007199254740993.00000000000000000000000000000001", 0x4340000000000001);
    CHECK_BITS("9007199254740992.99999999999999999999999999999999", 0x4340000000000000);
    CHECK_BITS("900719925474099.3e1", 0x4340000000000000);
    CHECK_BITS("9007199254740995.0", 0x4340000000000002);
    CHECK_BITS("9007199254740995.00", 0x4340000000000002);
    CHECK_BITS("9007199254740995000e-3", 0x4340000000000002);
    /* 1 + 2^-53 and 1 + 3 * 2^-53, then a last digit more or less. */
    CHECK_BITS("1.00000000000000011102230246251565404236316680908203125", 0x3ff0000000000000);
    CHECK_BITS("1.00000000000000011102230246251565404236316680908203124", 0x3ff0000000000000);
    CHECK_BITS("1.00000000000000011102230246251565404236316680908203126", 0x3ff0000000000001);
    CHECK_BITS("1.00000000000000033306690738754696212708950042724609375", 0x3ff0000000000002);
    CHECK_LONG("1.00000000000000011102230246251565404236316680908203125", '0', 5000, "",
               0x3ff0000000000000);
    CHECK_LONG("1.00000000000000011102230246251565404236316680908203125", '0', 5000, "1",
               0x3ff0000000000001);
    CHECK_LONG("1.00000000000000011102230246251565404236316680908203124", '9', 5000, "",
               0x3ff0000000000000);
}

CX_TEST(number_parse_at_the_lower_end)
{
    CHECK_BITS("5e-324", 1);
    CHECK_BITS("4.9406564584124654e-324", 1);
    CHECK_BITS("2.4703282292062327e-324", 0);
    CHECK_BITS("2.4703282292062328e-324", 1);
    CHECK_BITS("-2.4703282292062327e-324", 0x8000000000000000);
    CHECK_BITS("7.4109846876186981e-324", 1);
    CHECK_BITS("7.4109846876186982e-324", 2);
    CHECK_BITS("1e-400", 0);
    CHECK_BITS("-1e-400", 0x8000000000000000);
    CHECK_BITS("1e-99999999999999999999999999", 0);
    CHECK_BITS("2.2250738585072014e-308", 0x0010000000000000);
    CHECK_BITS("2.2250738585072011e-308", 0x000fffffffffffff);
    CHECK_BITS("2.225073858507201136057409796709131975934819546351645648023426109724822e-308",
               0x000fffffffffffff);
    CHECK_BITS("2.225073858507201136057409796709131975934819546351645648023426109724823e-308",
               0x0010000000000000);
    CHECK_BITS("18446744073709551615e-343", 0);
    CHECK_BITS("9999999999999999999e-342", 2);
}

CX_TEST(number_parse_at_the_upper_end)
{
    CHECK_BITS("1.7976931348623157e308", 0x7fefffffffffffff);
    CHECK_BITS("1.7976931348623158e308", 0x7fefffffffffffff);
    CHECK_BITS("1.7976931348623159e308", BITS_INFINITY);
    CHECK_BITS("-1.7976931348623159e308", 0xfff0000000000000);
    CHECK_BITS("1e309", BITS_INFINITY);
    CHECK_BITS("1e400", BITS_INFINITY);
    CHECK_BITS("-1e400", 0xfff0000000000000);
    CHECK_BITS("0.1e310", BITS_INFINITY);
    CHECK_BITS("0.1e309", 0x7fe1ccf385ebc8a0);
    CHECK_BITS("1e99999999999999999999999999", BITS_INFINITY);
    CHECK_BITS("1e18446744073709551616", BITS_INFINITY);
    /* 2^1024 - 2^970: halfway to the double that is not there. */
    static const char top[] =
        "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017"
        "977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273"
        "854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704"
        "342711559699508093042880177904174497792";
    char below[sizeof top];
    memcpy(below, top, sizeof top);
    below[sizeof top - 2] = '1'; /* was a 2 */
    CHECK_BITS(top, BITS_INFINITY);
    CHECK_BITS(below, 0x7fefffffffffffff);
}

CX_TEST(number_parse_any_length)
{
    CHECK_LONG("1", '0', 308, "", 0x7fe1ccf385ebc8a0);
    CHECK_LONG("1", '0', 309, "", BITS_INFINITY);
    CHECK_LONG("1", '0', 5000, "e-5000", 0x3ff0000000000000);
    CHECK_LONG("0.", '0', 4999, "1e5000", 0x3ff0000000000000);
    CHECK_LONG("0.", '0', 100000, "25e100001", 0x4004000000000000);
    CHECK_LONG("", '9', 5000, "e-5000", 0x3ff0000000000000);
    CHECK_LONG("0.", '3', 3000, "", 0x3fd5555555555555);
    CHECK_LONG("-0.", '6', 3000, "", 0xbfe5555555555555);
    CHECK_LONG("0.", '0', 3000, "", 0);
    CHECK_LONG("2.4703282292062327208", '0', 900, "e-324", 0);
    CHECK_LONG("2.4703282292062327209", '0', 900, "e-324", 1);
}

/* The table of lattice.md §3.2. */
CX_TEST(number_forms_of_the_lattice_table)
{
    CHECK_FORMS("1e15", "1000000000000000.0", "1000000000000000");
    CHECK_FORMS("1e16", "1e+16", "10000000000000000");
    CHECK_FORMS("9999999999999998.0", "9999999999999998.0", "9999999999999998");
    CHECK_FORMS("99999999999999990.0", "9.999999999999998e+16", "99999999999999980");
    CHECK_FORMS("0.0001", "0.0001", "0.0001");
    CHECK_FORMS("0.00001", "1e-05", "0.00001");
    CHECK_FORMS("1e-7", "1e-07", "1e-7");
    CHECK_FORMS("1e23", "1e+23", "1e+23");
    CHECK_FORMS("1E+2", "100.0", "100");
    CHECK_FORMS("100.0", "100.0", "100");
    CHECK_FORMS("-0.0", "-0.0", "0");
    CHECK_FORMS("0.0", "0.0", "0");
    CHECK_FORMS("1e-400", "0.0", "0");
    CHECK_FORMS("5e-324", "5e-324", "5e-324");
    CHECK_FORMS("9007199254740993.0", "9007199254740992.0", "9007199254740992");
    CHECK_FORMS("3.14159265358979323846", "3.141592653589793", "3.141592653589793");
}

/* RFC 8785 Appendix B. */
CX_TEST(number_forms_of_rfc8785)
{
    static const struct {
        uint64_t bits;
        const char *js;
    } samples[] = {
        {0x0000000000000000, "0"},
        {0x8000000000000000, "0"},
        {0x0000000000000001, "5e-324"},
        {0x8000000000000001, "-5e-324"},
        {0x7fefffffffffffff, "1.7976931348623157e+308"},
        {0xffefffffffffffff, "-1.7976931348623157e+308"},
        {0x4340000000000000, "9007199254740992"},
        {0xc340000000000000, "-9007199254740992"},
        {0x4430000000000000, "295147905179352830000"},
        {0x44b52d02c7e14af5, "9.999999999999997e+22"},
        {0x44b52d02c7e14af6, "1e+23"},
        {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
        {0x444b1ae4d6e2ef4e, "999999999999999700000"},
        {0x444b1ae4d6e2ef4f, "999999999999999900000"},
        {0x444b1ae4d6e2ef50, "1e+21"},
        {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
        {0x3eb0c6f7a0b5ed8d, "0.000001"},
        {0x41b3de4355555553, "333333333.3333332"},
        {0x41b3de4355555554, "333333333.33333325"},
        {0x41b3de4355555555, "333333333.3333333"},
        {0x41b3de4355555556, "333333333.3333334"},
        {0x41b3de4355555557, "333333333.33333343"},
        {0xbecbf647612f3696, "-0.0000033333333333333333"},
        {0x43143ff3c1cb0959, "1424953923781206.2"},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        check_written(__LINE__, samples[i].bits, NULL, samples[i].js);
}

CX_TEST(number_forms_at_the_switch_of_notation)
{
    CHECK_FORMS("123456789012345680.0", "1.2345678901234568e+17", "123456789012345680");
    CHECK_FORMS("1234567890123456800000.0", "1.2345678901234568e+21", "1.2345678901234568e+21");
    CHECK_FORMS("-0.00012345678901234567", "-0.00012345678901234567", "-0.00012345678901234567");
    CHECK_FORMS("0.000012345678901234567", "1.2345678901234568e-05", "0.000012345678901234568");
    CHECK_FORMS("-1.5e-10", "-1.5e-10", "-1.5e-10");
    CHECK_FORMS("-2.2250738585072014e-308", "-2.2250738585072014e-308", "-2.2250738585072014e-308");
    CHECK_FORMS("1e100", "1e+100", "1e+100");
    CHECK_FORMS("12e-1", "1.2", "1.2");
    /* Two 16-digit decimals are equally near 2^-44; the even one is written. */
    CHECK_FORMS("5.684341886080801486968994140625e-14", "5.684341886080802e-14",
                "5.684341886080802e-14");
    /* Powers of two, whose lower neighbour is nearer. */
    CHECK_FORMS("9007199254740992e1", "9.007199254740992e+16", "90071992547409920");
    CHECK_FORMS("2.2204460492503131e-16", "2.220446049250313e-16", "2.220446049250313e-16");
    check_written(__LINE__, 0x0060000000000000, "7.120236347223045e-307", NULL);
    check_written(__LINE__, 0x44b0000000000000, "7.555786372591432e+22", NULL);
}

CX_TEST(number_shortest_gives_digits_and_point)
{
    char digits[17];
    int point = 99;
    CHECK_INT(cx_number_shortest(123.25, digits, &point), 5);
    CHECK_STR(cx_str_from(digits, 5), "12325");
    CHECK_INT(point, 3);
    CHECK_INT(cx_number_shortest(-0.001, digits, &point), 1);
    CHECK_INT(digits[0], '1');
    CHECK_INT(point, -2);
    CHECK_INT(cx_number_shortest(5e-324, digits, &point), 1);
    CHECK_INT(point, -323);
    CHECK_INT(cx_number_shortest(1.7976931348623157e308, digits, &point), 17);
    CHECK_STR(cx_str_from(digits, 17), "17976931348623157");
    CHECK_INT(point, 309);
}

/* Reading what was written gives the double back, and no form is longer than it has to be. */
CX_TEST(number_round_trip)
{
    uint64_t state = cx_test_seed();
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = cx_test_random(&state);
        if (i % 4 == 0)
            bits = (bits & 0xfff0000000000000) + (uint64_t)(i / 4 % 64) - 32; /* powers of two */
        if ((bits & BITS_INFINITY) == BITS_INFINITY)
            continue;
        char text[CX_NUMBER_TEXT_SIZE];
        check_bits(__LINE__, cx_str_from(text, cx_number_write_py(double_of(bits), text)), bits);
        size_t size = cx_number_write_js(double_of(bits), text);
        check_bits(__LINE__, cx_str_from(text, size), bits == 0x8000000000000000 ? 0 : bits);
    }
}

CX_TEST(number_canonical_literals)
{
    static const char *const certain[] = {"0.0",
                                          "-0.0",
                                          "1.0",
                                          "100.0",
                                          "0.5",
                                          "-0.25",
                                          "1.05",
                                          "0.0001",
                                          "0.00012",
                                          "0.10001",
                                          "1000.0001",
                                          "123456789012345.0",
                                          "1700000000.123456",
                                          "-3.14",
                                          "0.001"};
    for (size_t i = 0; i < sizeof certain / sizeof certain[0]; i++) {
        cx_str literal = cx_str_z(certain[i]);
        if (!cx_number_is_canonical_py(literal))
            cx_test_fail(__FILE__, __LINE__, "%s is canonical", certain[i]);
        CHECK_FORMS(certain[i], certain[i], NULL);
    }
    static const char *const refused[] = {"1.50",
                                          "0.00001",
                                          "0.000012",
                                          "00",
                                          "00.5",
                                          "01.5",
                                          "1.0e5",
                                          "1e5",
                                          "1E5",
                                          "0.00",
                                          "-0.00",
                                          "1.00",
                                          "10.10",
                                          "9007199254740993.0",
                                          "1",
                                          "-1",
                                          "0",
                                          "",
                                          "-",
                                          ".",
                                          "1.",
                                          ".5",
                                          "-.5",
                                          "1.2.3",
                                          "1..0",
                                          "12-3.0",
                                          "+1.0",
                                          "99999999999999990.0",
                                          "0.30000000000000004",
                                          "8.888888888888888888",
                                          "1e-05",
                                          "10000000000000000000000.0",
                                          "9007199254740.9931"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (cx_number_is_canonical_py(cx_str_z(refused[i])))
            cx_test_fail(__FILE__, __LINE__, "%s must not be taken for canonical", refused[i]);
    }
}

/* "Certain" must never be wrong: random digit strings around every limit of the quick test. */
CX_TEST(number_canonical_is_never_wrong)
{
    uint64_t state = cx_test_seed();
    unsigned certain = 0;
    for (int i = 0; i < 300000; i++) {
        char literal[48], text[CX_NUMBER_TEXT_SIZE];
        unsigned places = 1 + (unsigned)(cx_test_random(&state) % 19);
        uint64_t digits = cx_test_random(&state) >> cx_test_random(&state) % 64;
        if (i % 3 == 0)
            digits = 3002399751580330 + cx_test_random(&state) % 64 - 32;
        char all[32];
        int count =
            snprintf(all, sizeof all, "%0*llu", (int)places + 1, (unsigned long long)digits);
        int whole = count - (int)places;
        int size = snprintf(literal, sizeof literal, "%s%.*s.%s", i % 2 ? "-" : "", whole, all,
                            all + whole);
        cx_str given = cx_str_from(literal, (size_t)size);
        if (!cx_number_is_canonical_py(given))
            continue;
        double value = 0;
        certain++;
        CHECK(cx_number_parse(given, &value));
        CHECK_STR(cx_str_from(text, cx_number_write_py(value, text)), literal);
    }
    CHECK(certain > 50000);
}

static void check_order(int line, cx_str a, cx_str b, int expected)
{
    int forward = cx_number_compare(a, b), backward = cx_number_compare(b, a);
    if ((forward > 0) - (forward < 0) != expected || (backward > 0) - (backward < 0) != -expected)
        cx_test_fail(__FILE__, line, "%.40s against %.40s: %d and back %d, expected %d", a.data,
                     b.data, forward, backward, expected);
}

#define CHECK_ORDER(a, b, expected) check_order(__LINE__, cx_str_z(a), cx_str_z(b), (expected))

CX_TEST(number_compare_integers)
{
    CHECK_ORDER("0", "-0", 0);
    CHECK_ORDER("1", "2", -1);
    CHECK_ORDER("-1", "-2", 1);
    CHECK_ORDER("-10", "9", -1);
    CHECK_ORDER("10", "9", 1);
    CHECK_ORDER("9007199254740993", "9007199254740992", 1);
    cx_str nines = long_literal("", '9', 4000, ""), less = long_literal("", '9', 3999, "8");
    cx_str power = long_literal("1", '0', 4000, "");
    cx_str minus_nines = long_literal("-", '9', 4000, ""),
           minus_less = long_literal("-", '9', 3999, "8");
    check_order(__LINE__, nines, less, 1);
    check_order(__LINE__, nines, nines, 0);
    check_order(__LINE__, nines, power, -1);
    check_order(__LINE__, minus_nines, minus_less, -1);
    check_order(__LINE__, minus_nines, power, -1);
    check_order(__LINE__, nines, CX_STR("1.7976931348623157e308"), 1);
    check_order(__LINE__, minus_nines, CX_STR("-1.7976931348623157e308"), -1);
    cx_str in_range = cx_str_from(power.data, 309), above = cx_str_from(power.data, 310);
    check_order(__LINE__, in_range, CX_STR("1.7976931348623157e308"), -1);
    check_order(__LINE__, in_range, CX_STR("1e307"), 1);
    check_order(__LINE__, above, CX_STR("1.7976931348623157e308"), 1);
    cx_str all[] = {nines, less, power, minus_nines, minus_less};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free((void *)(uintptr_t)all[i].data);
}

CX_TEST(number_compare_doubles_and_mixed)
{
    CHECK_ORDER("1.0", "1.00", 0);
    CHECK_ORDER("0.1", "0.10000000000000001", 0);
    CHECK_ORDER("-0.0", "0", 0);
    CHECK_ORDER("-0.0", "0.0", 0);
    CHECK_ORDER("1", "1.0", 0);
    CHECK_ORDER("1e2", "100", 0);
    CHECK_ORDER("1", "1.0000000000000002", -1);
    CHECK_ORDER("-1", "-1.0000000000000002", 1);
    CHECK_ORDER("0", "5e-324", -1);
    CHECK_ORDER("0", "-5e-324", 1);
    CHECK_ORDER("0", "1e-400", 0);
    CHECK_ORDER("-1", "0.5", -1);
    CHECK_ORDER("1", "-0.5", 1);
    CHECK_ORDER("2", "2.5", -1);
    CHECK_ORDER("3", "2.5", 1);
    CHECK_ORDER("-2", "-2.5", 1);
    /* The double is 2^53, the integer one more. */
    CHECK_ORDER("9007199254740993", "9007199254740993.0", 1);
    CHECK_ORDER("9007199254740992", "9007199254740993.0", 0);
    CHECK_ORDER("-9007199254740993", "-9007199254740993.0", -1);
    /* 1e23 is 99999999999999991611392. */
    CHECK_ORDER("99999999999999991611392", "1e23", 0);
    CHECK_ORDER("99999999999999991611393", "1e23", 1);
    CHECK_ORDER("100000000000000000000000", "1e23", 1);
    CHECK_ORDER("99999999999999991611391", "1e23", -1);
    CHECK_ORDER("36893488147419103232", "3.6893488147419103e19", 0);
}
