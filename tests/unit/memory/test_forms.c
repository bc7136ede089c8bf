/*
 * test_forms.c - forms byte for byte: vectors, where texts are cut, times, durations, %.2f.
 */
#include "memory/forms.h"

#include <math.h>

#include "base/utf8.h"
#include "tests/unit/memory/fixture.h"

CX_TEST(forms_of_the_vectors)
{
    fixture kit;
    cx_json file;
    fixture_init(&kit);
    if (fixture_load(&kit, "vectors/ledger/matrix-1/codec.json", &file)) {
        const cx_json *cases = CX_JSON_GET(&file, "data");
        REQUIRE(cases != NULL && cases->count == 13);
        for (uint32_t i = 0; i < cases->count; i++) {
            const cx_json *item = &cases->items[i];
            cx_data data;
            cx_forms forms;
            CHECK_STATUS(cx_data_decode((uint8_t)fixture_uint(item, "type_code"),
                                        fixture_hex_of(&kit, item, "cbor"), &kit.arena, &data,
                                        &kit.err),
                         &kit.err);
            CHECK_STATUS(cx_forms_render(&data, &kit.arena, &forms, &kit.err), &kit.err);
            cx_buf_clear(&kit.buf);
            cx_forms_full(&data, &kit.buf);
            if (!cx_str_eq(forms.brief, CX_JSON_GET_STR(item, "form_short")) ||
                !cx_str_eq(forms.medium, CX_JSON_GET_STR(item, "form_medium")) ||
                !cx_str_eq(cx_buf_str(&kit.buf), CX_JSON_GET_STR(item, "form_full")))
                cx_test_fail(__FILE__, __LINE__, "data %u: short '%.*s', medium '%.*s'", i,
                             (int)forms.brief.size, forms.brief.data, (int)forms.medium.size,
                             forms.medium.data);
        }
    }
    fixture_done(&kit);
}

CX_TEST(forms_are_cut_as_in_the_vectors)
{
    fixture kit;
    cx_json file;
    fixture_init(&kit);
    if (fixture_load(&kit, "vectors/ledger/matrix-1/codec.json", &file)) {
        const cx_json *item = CX_JSON_GET(&file, "forms_truncation");
        REQUIRE(item != NULL);
        cx_data data = {.type = CX_TYPE_PREFERENCE,
                        .schema = 1,
                        .as.preference = {.topic = CX_JSON_GET_STR(item, "topic"),
                                          .polarity = CX_STR("prefer"),
                                          .strength = 0.125f,
                                          .rationale = CX_JSON_GET_STR(item, "rationale")}};
        cx_forms forms;
        REQUIRE(data.as.preference.topic.size > 200);
        CHECK_STATUS(cx_forms_render(&data, &kit.arena, &forms, &kit.err), &kit.err);
        CHECK(fixture_same(cx_str_bytes(forms.brief), fixture_hex_of(&kit, item, "short_hex")));
        CHECK(fixture_same(cx_str_bytes(forms.medium), fixture_hex_of(&kit, item, "medium_hex")));
        CHECK_INT(cx_tokens_of(forms.brief), fixture_uint(item, "short_tokens"));
        CHECK_INT(cx_tokens_of(forms.medium), fixture_uint(item, "medium_tokens"));

        const cx_json *cuts = CX_JSON_GET(&file, "truncate_to_tokens");
        REQUIRE(cuts != NULL && cuts->count == 6);
        for (uint32_t i = 0; i < cuts->count; i++) {
            cx_buf_clear(&kit.buf);
            cx_tokens_truncate(cx_bytes_str(fixture_hex_of(&kit, &cuts->items[i], "in_hex")),
                               fixture_uint(&cuts->items[i], "max_tokens"), &kit.buf);
            CHECK(fixture_same(cx_buf_bytes(&kit.buf),
                               fixture_hex_of(&kit, &cuts->items[i], "out_hex")));
        }
    }
    fixture_done(&kit);
}

static cx_str cut(cx_buf *out, cx_str text, size_t max)
{
    cx_buf_clear(out);
    cx_tokens_truncate(text, max, out);
    return cx_buf_str(out);
}

CX_TEST(cutting_keeps_whole_characters)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STR(cut(&out, CX_STR(""), 0), "");
    CHECK_STR(cut(&out, CX_STR("a"), 0), "");
    CHECK_STR(cut(&out, CX_STR("abcd"), 1), "abcd");
    CHECK_STR(cut(&out, CX_STR("abcde"), 1), "a\xe2\x80\xa6");
    /* One byte is left, and the first character needs two. */
    CHECK_STR(cut(&out, CX_STR("\xc3\xa9\xc3\xa9\xc3\xa9"), 1), "\xe2\x80\xa6");
    /* Four bytes, five are left. */
    CHECK_STR(cut(&out, CX_STR("\xf0\x9f\x98\x80\xf0\x9f\x98\x80x"), 2),
              "\xf0\x9f\x98\x80\xe2\x80\xa6");
    /* Bytes that are not UTF-8 count as a character each. */
    CHECK_STR(cut(&out, CX_STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff"), 2),
              "\xff\xff\xff\xff\xff\xe2\x80\xa6");
    CHECK_STR(cut(&out, CX_STR("\xe2\x80xxxxxxx"), 2), "\xe2\x80xxx\xe2\x80\xa6");
    cx_buf_done(&out);
}

/* A text of characters of all sizes, cut at every length: valid, within its tokens, and no longer
 * prefix would have done. */
CX_TEST(cutting_everywhere)
{
    static const char *const characters[] = {"a", "\xc3\xa9", "\xe6\x97\xa5", "\xf0\x9f\x98\x80"};
    uint64_t state = cx_test_seed();
    cx_buf text, out;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&out, cx_alloc_default());
    for (size_t round = 0; round < 200; round++) {
        cx_buf_clear(&text);
        for (size_t i = 0; i < 40; i++)
            cx_buf_add_z(&text, characters[cx_test_random(&state) % 4]);
        for (size_t max = 0; max < 45; max++) {
            cx_str got = cut(&out, cx_buf_str(&text), max), whole = cx_buf_str(&text);
            CHECK(cx_utf8_valid(got) && cx_tokens_of(got) <= max);
            if (cx_tokens_of(whole) <= max) {
                CHECK(cx_str_eq(got, whole));
                continue;
            }
            size_t kept = max == 0 ? 0 : got.size - 3;
            size_t next = cx_utf8_sequence(text.data + kept, text.size - kept);
            CHECK(max == 0 || kept + next > max * 4 - 3);
        }
    }
    cx_buf_done(&text);
    cx_buf_done(&out);
}

CX_TEST(forms_of_callers)
{
    char text[4 * CX_FORM_MEDIUM_TOKENS + 1];
    cx_err err;
    memset(text, 'x', sizeof text);
    cx_forms forms = {cx_str_from(text, 200), cx_str_from(text, 800)};
    CHECK_STATUS(cx_forms_check(&forms, &err), &err);
    forms.brief.size = 201;
    CHECK_INT(cx_forms_check(&forms, &err).code, CX_E_LIMIT);
    CHECK_STR(fixture_tag(&err), "FormTooLong");
    forms.brief.size = 0;
    forms.medium.size = 801;
    CHECK_INT(cx_forms_check(&forms, &err).code, CX_E_LIMIT);
    forms.medium = CX_STR("\xed\xa0\x80");
    CHECK_INT(cx_forms_check(&forms, &err).code, CX_E_USAGE);
}

/* --- parts ------------------------------------------------------------------------------------ */

typedef struct number_case {
    int64_t value;
    const char *text;
} number_case;

static const number_case times[] = {
    {0, "1970-01-01T00:00:00Z"},
    {-1, "1969-12-31T23:59:59Z"},
    {1700000000, "2023-11-14T22:13:20Z"},
    {951782400, "2000-02-29T00:00:00Z"},
    {4107542400, "2100-03-01T00:00:00Z"},
    {-62135596800, "0001-01-01T00:00:00Z"},
    {-62167219200, "0000-01-01T00:00:00Z"},
    {-62167219201, "-0001-12-31T23:59:59Z"},
    {253402300799, "9999-12-31T23:59:59Z"},
    {253402300800, "10000-01-01T00:00:00Z"},
    {INT64_MAX, "292277026596-12-04T15:30:07Z"},
    {INT64_MIN, "-292277022657-01-27T08:29:52Z"},
};

CX_TEST(times_written)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(times); i++) {
        cx_buf_clear(&out);
        cx_form_time(times[i].value, &out);
        CHECK_STR(cx_buf_str(&out), times[i].text);
    }
    cx_buf_done(&out);
}

CX_TEST(times_read)
{
    static const char *const bad[] = {
        "",
        "2023-11-14",
        "2023-11-14T22:13:20",
        "2023-11-14 22:13:20Z",
        "2023-11-14t22:13:20Z",
        "2023-11-14T22:13:20z",
        "2023-13-14T22:13:20Z",
        "2023-00-14T22:13:20Z",
        "2023-11-31T22:13:20Z",
        "1900-02-29T00:00:00Z",
        "2023-11-14T24:00:00Z",
        "2023-11-14T22:60:20Z",
        "2023-11-14T22:13:60Z",
        "2023-11-14T22:13:20.Z",
        "2023-11-14T22:13:20,5Z",
        "2023-11-14T22:13:20+1:00",
        "2023-11-14T22:13:20+24:00",
        "2023-11-14T22:13:20+01:60",
        "2023-11-14T22:13:20Zx",
        "10000-01-01T00:00:00Z",
        "-001-01-01T00:00:00Z",
    };
    int64_t s = 0;
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++)
        if (cx_form_parse_time(cx_str_z(bad[i]), &s))
            cx_test_fail(__FILE__, __LINE__, "accepted: %s", bad[i]);
    for (size_t i = 0; i < 9; i++)
        if (times[i].text[0] != '-') {
            CHECK(cx_form_parse_time(cx_str_z(times[i].text), &s));
            CHECK_INT(s, times[i].value);
        }
    CHECK(cx_form_parse_time(CX_STR("2023-11-14T22:13:20.999999999999Z"), &s));
    CHECK_INT(s, 1700000000);
    CHECK(cx_form_parse_time(CX_STR("1969-12-31T23:59:59.5Z"), &s));
    CHECK_INT(s, -1); /* -0.5 s, floored */
    CHECK(cx_form_parse_time(CX_STR("2023-11-14T17:43:20-04:30"), &s));
    CHECK_INT(s, 1700000000);
    CHECK(cx_form_parse_time(CX_STR("2000-02-29T00:00:00+00:00"), &s));
    CHECK_INT(s, 951782400);
}

static const number_case durations[] = {
    {0, "0s"},
    {1, "1ns"},
    {999, "999ns"},
    {1000, "1\xc2\xb5s"},
    {1500, "1.5\xc2\xb5s"},
    {100000000, "100ms"},
    {1000001, "1.000001ms"},
    {1000000000, "1s"},
    {1500000000, "1.5s"},
    {1000000001, "1.000000001s"},
    {60000000000, "1m0s"},
    {90000000000, "1m30s"},
    {3600000000000, "1h0m0s"},
    {3600000000001, "1h0m0.000000001s"},
    {360000000000000, "100h0m0s"},
    {-1, "-1ns"},
    {-90000000000, "-1m30s"},
    {INT64_MAX, "2562047h47m16.854775807s"},
    {INT64_MIN, "-2562047h47m16.854775808s"},
};

CX_TEST(durations_written_and_read)
{
    cx_buf out;
    int64_t ns = 0;
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(durations); i++) {
        cx_buf_clear(&out);
        cx_form_duration(durations[i].value, &out);
        CHECK_STR(cx_buf_str(&out), durations[i].text);
        CHECK(cx_form_parse_duration(cx_str_z(durations[i].text), &ns));
        CHECK_INT(ns, durations[i].value);
    }
    uint64_t state = cx_test_seed();
    for (size_t i = 0; i < 2000; i++) {
        int64_t value = (int64_t)(cx_test_random(&state) >> cx_test_random(&state) % 64);
        cx_buf_clear(&out);
        cx_form_duration(value, &out);
        CHECK(cx_form_parse_duration(cx_buf_str(&out), &ns) && ns == value);
    }
    cx_buf_done(&out);
}

CX_TEST(durations_refused)
{
    static const char *const bad[] = {"",
                                      "-",
                                      "1",
                                      "s",
                                      "1.s",
                                      ".5s",
                                      "1 s",
                                      "1s ",
                                      "1d",
                                      "+1s",
                                      "--1s",
                                      "0.1ns",
                                      "1.0000000001s",
                                      "9223372036854775808ns",
                                      "-9223372036854775809ns",
                                      "2562048h",
                                      "99999999999999999999999s",
                                      "1m30"};
    int64_t ns;
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++)
        if (cx_form_parse_duration(cx_str_z(bad[i]), &ns))
            cx_test_fail(__FILE__, __LINE__, "accepted: %s", bad[i]);
    CHECK(cx_form_parse_duration(CX_STR("1.50h"), &ns));
    CHECK_INT(ns, 5400000000000);
    CHECK(cx_form_parse_duration(CX_STR("2us"), &ns));
    CHECK_INT(ns, 2000);
}

static cx_str fixed2(cx_buf *out, float value)
{
    cx_buf_clear(out);
    cx_form_fixed2(value, out);
    return cx_buf_str(out);
}

CX_TEST(two_digits_after_the_point)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STR(fixed2(&out, 0.0f), "0.00");
    CHECK_STR(fixed2(&out, -0.0f), "-0.00");
    CHECK_STR(fixed2(&out, 1.0f), "1.00");
    CHECK_STR(fixed2(&out, 0.9f), "0.90");
    CHECK_STR(fixed2(&out, 0.125f), "0.12"); /* half to even */
    CHECK_STR(fixed2(&out, 0.375f), "0.38");
    CHECK_STR(fixed2(&out, 0.625f), "0.62");
    CHECK_STR(fixed2(&out, 0.005f), "0.00"); /* the float is below it */
    CHECK_STR(fixed2(&out, 0.995f), "1.00"); /* the float is above it */
    CHECK_STR(fixed2(&out, 0.015f), "0.01");
    CHECK_STR(fixed2(&out, 1e-45f), "0.00");
    CHECK_STR(fixed2(&out, 16777216.0f), "16777216.00");
    CHECK_STR(fixed2(&out, 3.40282347e38f), "340282346638528859811704183484516925440.00");
    CHECK_STR(fixed2(&out, NAN), "NaN");
    CHECK_STR(fixed2(&out, INFINITY), "+Inf");
    CHECK_STR(fixed2(&out, -INFINITY), "-Inf");
    /* The C library's answer, in the locale every program starts in. */
    uint64_t state = cx_test_seed();
    for (size_t i = 0; i < 20000; i++) {
        char expected[64];
        float value;
        uint32_t bits = (uint32_t)cx_test_random(&state);
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        (void)snprintf(expected, sizeof expected, "%.2f", (double)value);
        if (!cx_str_is(fixed2(&out, value), expected))
            cx_test_fail(__FILE__, __LINE__, "%08x: %.*s, expected %s", (unsigned)bits,
                         (int)out.size, (const char *)out.data, expected);
    }
    cx_buf_done(&out);
}

CX_TEST(forms_without_optional_parts)
{
    fixture kit;
    cx_forms forms;
    fixture_init(&kit);
    cx_data capability = {.type = CX_TYPE_CAPABILITY,
                          .schema = 1,
                          .as.capability = {.subject = CX_STR("a"), .capability = CX_STR("b")}};
    CHECK_STATUS(cx_forms_render(&capability, &kit.arena, &forms, &kit.err), &kit.err);
    CHECK_STR(forms.medium, "a can b (unverified) \xe2\x80\x94 last_observed=0001-01-01T00:00:00Z");
    cx_data event = {
        .type = CX_TYPE_EVENT,
        .schema = 1,
        .as.event = {.kind = CX_STR("k"), .outcome = CX_STR("o"), .duration = {true, -1500000000}}};
    CHECK_STATUS(cx_forms_render(&event, &kit.arena, &forms, &kit.err), &kit.err);
    CHECK_STR(forms.brief, "o k");
    CHECK_STR(forms.medium, "o k \xe2\x80\x94 duration=-1.5s");
    event.as.event.duration.ns = 0;
    CHECK_STATUS(cx_forms_render(&event, &kit.arena, &forms, &kit.err), &kit.err);
    CHECK_STR(forms.medium, "o k \xe2\x80\x94 duration=0s");
    cx_data belief = {.type = CX_TYPE_BELIEF,
                      .schema = 1,
                      .as.belief = {.statement = CX_STR("s"), .stance = CX_STR("t")}};
    CHECK_STATUS(cx_forms_render(&belief, &kit.arena, &forms, &kit.err), &kit.err);
    CHECK_STR(forms.medium, "t s \xe2\x80\x94 0 for / 0 against");
    static const cx_str roles[] = {{"a", 1}, {"b", 1}};
    cx_data identity = {.type = CX_TYPE_IDENTITY,
                        .schema = 1,
                        .as.identity = {.name = CX_STR("n"), .roles = {roles, 2}}};
    CHECK_STATUS(cx_forms_render(&identity, &kit.arena, &forms, &kit.err), &kit.err);
    CHECK_STR(forms.medium, "n \xe2\x80\x94 roles=a,b");
    fixture_done(&kit);
}
