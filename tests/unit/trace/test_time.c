/*
 * Timestamps of traces (trace.md §1): what is one, which moment it is, and back.
 */
#include "tests/support/trace_kit.h"

CX_TEST(trace_times_are_read)
{
    static const struct {
        const char *text;
        int64_t seconds, ns;
        bool naive;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0, 0, false},
        {"1970-01-01T00:00:00", 0, 0, true},
        {"1970-01-01T00:00:00.1Z", 0, 100000000, false},
        {"1970-01-01T00:00:00.123456789Z", 0, 123456789, false},
        {"2026-01-01T09:50:09.123456789+05:30", 1767241209, 123456789, false},
        {"2026-01-01T04:20:09.123456789-00:00", 1767241209, 123456789, false},
        {"2025-12-31T23:20:09.5-05:00", 1767241209, 500000000, false},
        {"2024-02-29T23:59:59Z", 1709251199, 0, false},
        {"2000-02-29T00:00:00.000001", 951782400, 1000, true},
        {"1970-01-01T00:00:00+23:59", -86340, 0, false},
        {"2262-04-11T23:47:16.854775807Z", 9223372036, 854775807, false},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        int64_t ns = 1;
        bool naive = !cases[i].naive;
        if (!cx_trace_time_parse(cx_str_z(cases[i].text), &ns, &naive))
            cx_test_fail(__FILE__, __LINE__, "'%s' is refused", cases[i].text);
        CHECK_INT(ns, cases[i].seconds * 1000000000 + cases[i].ns);
        CHECK_INT(naive, cases[i].naive);
    }
}

CX_TEST(trace_times_that_are_none)
{
    static const char *const cases[] = {"",
                                        "2026-01-01",
                                        "2026-01-01T00:00",
                                        "2026-01-01 00:00:00Z",
                                        "2026-01-01t00:00:00z",
                                        "2026-01-01T00:00:00z",
                                        "2026-01-01T00:00:00.Z",
                                        "2026-01-01T00:00:00.1234567890Z",
                                        "2026-01-01T00:00:00,5Z",
                                        "2026-02-29T00:00:00Z",
                                        "1900-02-29T00:00:00Z",
                                        "2026-13-01T00:00:00Z",
                                        "2026-00-01T00:00:00Z",
                                        "2026-01-00T00:00:00Z",
                                        "2026-04-31T00:00:00Z",
                                        "2026-01-01T24:00:00Z",
                                        "2026-01-01T00:60:00Z",
                                        "2026-01-01T00:00:60Z",
                                        "2026-01-01T00:00:00+24:00",
                                        "2026-01-01T00:00:00+05:60",
                                        "2026-01-01T00:00:00+0530",
                                        "2026-01-01T00:00:00+05",
                                        "2026-01-01T00:00:00ZZ",
                                        "2026-01-01T00:00:00+05:30Z",
                                        "1969-12-31T23:59:59Z",
                                        "2263-01-01T00:00:00Z",
                                        "2262-04-11T23:47:16.854775808Z",
                                        "2262-12-31T00:00:00Z",
                                        "1767241209",
                                        "+026-01-01T00:00:00Z",
                                        " 2026-01-01T00:00:00Z",
                                        "2026-01-01T00:00:00Z "};
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        int64_t ns = 7;
        bool naive = true;
        if (cx_trace_time_parse(cx_str_z(cases[i]), &ns, &naive) || ns != 7 || !naive)
            cx_test_fail(__FILE__, __LINE__, "'%s' is read as %lld", cases[i], (long long)ns);
    }
}

CX_TEST(trace_times_are_written)
{
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {{0, "1970-01-01T00:00:00.000000000Z"},
                 {-1, "1969-12-31T23:59:59.999999999Z"},
                 {INT64_C(1709251199000000001), "2024-02-29T23:59:59.000000001Z"},
                 {INT64_MAX, "2262-04-11T23:47:16.854775807Z"},
                 {INT64_MIN, "1677-09-21T00:12:43.145224192Z"}};
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        char text[CX_TRACE_TIME_SIZE];
        cx_trace_time_write(cases[i].ns, text);
        CHECK_STR(cx_str_z(text), cases[i].text);
    }
}

CX_TEST(trace_times_come_back)
{
    uint64_t state = cx_test_seed();
    for (int i = 0; i < 20000; i++) {
        char text[CX_TRACE_TIME_SIZE];
        int64_t ns = (int64_t)(cx_test_random(&state) >> 1), again = 0;
        bool naive = true;
        cx_trace_time_write(ns, text);
        CHECK(cx_trace_time_parse(cx_str_z(text), &again, &naive) && !naive);
        CHECK_INT(again, ns);
    }
}
