#include "import/internal.h"
#include "tests/test.h"

#include <time.h>

static int64_t iso(const char *text)
{
    int64_t ns = -42;
    return cx_import_time_iso(cx_str_z(text), &ns) ? ns : -42;
}

CX_TEST(tools_iso_times_are_exact)
{
    CHECK_INT(iso("1970-01-01T00:00:00Z"), 0);
    CHECK_INT(iso("1970-01-01T00:00:00.000000001Z"), 1);
    CHECK_INT(iso("2025-06-06T11:31:33.978Z"), 1749209493978000000);
    CHECK_INT(iso("2025-06-06T11:31:33.978123456Z"), 1749209493978123456);
    CHECK_INT(iso("2025-06-06 11:31:33.978"), 1749209493978000000);
    CHECK_INT(iso("2025-06-06T13:31:33.978+02:00"), 1749209493978000000);
    CHECK_INT(iso("2025-06-06T13:31:33,978+0200"), 1749209493978000000);
    CHECK_INT(iso("2025-06-06T05:01:33.978-06:30"), 1749209493978000000);
    CHECK_INT(iso("2025-06-06T11:31Z"), 1749209460000000000);
    CHECK_INT(iso("2024-02-29T00:00:00Z"), 1709164800000000000);
    CHECK_INT(iso("2000-02-29T00:00:00Z"), 951782400000000000);
    CHECK_INT(iso("2016-12-31T23:59:60Z"), 1483228800000000000);
    CHECK_INT(iso("1969-12-31T23:59:59.5Z"), -500000000);
    CHECK_INT(iso("2025-01-01T00:00:00.1234567890000Z"), 1735689600123456789);
}

CX_TEST(tools_iso_times_that_are_none)
{
    static const char *const bad[] = {
        "",
        "now",
        "2025-06-06",
        "2025-13-06T00:00:00Z",
        "2025-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2025-06-31T00:00:00Z",
        "2025-06-06T24:00:00Z",
        "2025-06-06T11:60:00Z",
        "2025-06-06T11:31:61Z",
        "2025-06-06T11:31:33.Z",
        "2025-06-06T11:31:33Zx",
        "2025-06-06T11:31:33+2:00",
        "2025-06-06T11:31:33.1234567891Z", /* would lose a digit */
        "9999-12-31T23:59:59Z",            /* beyond 64 bits of nanoseconds */
        "0001-01-01T00:00:00Z",
    };
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++) {
        if (iso(bad[i]) != -42)
            cx_test_fail(__FILE__, __LINE__, "'%s' was read as a time", bad[i]);
    }
}

/* Any nanosecond written as ISO text reads back as itself. */
CX_TEST(tools_iso_times_round_trip)
{
    uint64_t random = cx_test_seed();
    for (int i = 0; i < 2000; i++) {
        int64_t seconds = (int64_t)(cx_test_random(&random) % 4102444800u); /* until 2100 */
        int64_t ns = (int64_t)(cx_test_random(&random) % 1000000000u);
        time_t whole = (time_t)seconds;
        struct tm parts;
        char text[64];
        REQUIRE(gmtime_r(&whole, &parts) != NULL);
        (void)snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%09lldZ",
                       parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                       parts.tm_min, parts.tm_sec, (long long)ns);
        CHECK_INT(iso(text), seconds * 1000000000 + ns);
    }
}

CX_TEST(tools_ticks_never_pass_through_a_double)
{
    static const struct {
        const char *json;
        int64_t unit;
        bool good;
        int64_t ns;
    } cases[] = {
        {"9007199254740993", 1, true, 9007199254740993},
        {"\"9007199254740993\"", 1, true, 9007199254740993},
        {"1749209493978", 1000000, true, 1749209493978000000},
        {"-1", 1000000000, true, -1000000000},
        {"9223372036854775807", 1, true, INT64_MAX},
        {"-9223372036854775808", 1, true, INT64_MIN},
        {"9223372036854775808", 1, false, 0},
        {"9223372036854775807", 1000, false, 0},
        {"1.5", 1000000000, false, 0},
        {"\"12x\"", 1, false, 0},
        {"\"-\"", 1, false, 0},
        {"[]", 1, false, 0},
    };
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_import_record record = {.kind = CX_KIND_RUN};
        cx_json value;
        cx_err err = {0};
        CHECK_STATUS(cx_json_parse_text(cx_str_z(cases[i].json), &arena, &value, &err), &err);
        cx_import_set_ticks(&record, &value, cases[i].unit);
        CHECK(record.has_time == cases[i].good);
        CHECK(record.time_bad == !cases[i].good);
        if (cases[i].good)
            CHECK_INT(record.t_ns, cases[i].ns);
    }
    cx_arena_done(&arena);
}

CX_TEST(tools_digests_are_of_text_or_canonical_json)
{
    cx_arena arena;
    cx_json value;
    cx_err err = {0};
    cx_buf scratch;
    char hex[16];
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&scratch, cx_alloc_default());
    value = cx_json_make_str(CX_STR("abc"));
    CHECK_STATUS(cx_import_digest(&value, &scratch, hex, &err), &err);
    CHECK_STR(cx_str_from(hex, 16), "ba7816bf8f01cfea");
    /* SHA-256 of the two bytes {}. */
    CHECK_STATUS(cx_json_parse_text(CX_STR(" { } "), &arena, &value, &err), &err);
    CHECK_STATUS(cx_import_digest(&value, &scratch, hex, &err), &err);
    CHECK_STR(cx_str_from(hex, 16), "44136fa355b3678a");
    cx_buf_done(&scratch);
    cx_arena_done(&arena);
}
