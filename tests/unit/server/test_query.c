/* Request targets: splitting, decoding, and what is refused. */
#include "server/query.h"

#include "base/diag.h"
#include "tests/test.h"

static char room[CX_TARGET_BYTES_MAX + 16];
static cx_target target;

static cx_target_fault parse(const char *text)
{
    return cx_target_parse(cx_str_z(text), room, &target);
}

CX_TEST(query_path_is_split_before_it_is_decoded)
{
    REQUIRE(parse("/a%2Fb/c%20d/%2e%2e") == CX_TARGET_OK);
    CHECK_INT(target.segment_count, 3);
    CHECK_STR(target.segments[0], "a/b");
    CHECK_STR(target.segments[1], "c d");
    CHECK_STR(target.segments[2], "..");
    /* Decoded once. */
    REQUIRE(parse("/%252e") == CX_TARGET_OK);
    CHECK_STR(target.segments[0], "%2e");
    REQUIRE(parse("/a+b") == CX_TARGET_OK);
    CHECK_STR(target.segments[0], "a+b");
    REQUIRE(parse("/") == CX_TARGET_OK);
    CHECK_INT(target.segment_count, 0);
}

CX_TEST(query_segments_in_a_row_are_one_text)
{
    REQUIRE(parse("/x/agent%2Fa/b%41/state?k=v") == CX_TARGET_OK);
    cx_str first = target.segments[1], last = target.segments[2];
    CHECK_STR(cx_str_from(first.data, (size_t)(last.data + last.size - first.data)), "agent/a/bA");
}

CX_TEST(query_rejects_invalid_paths)
{
    static const char *const bad[] = {"",           "a",    "*",    "//",      "/a//b", "/a/",
                                      "/%",         "/%4",  "/%zz", "/%00",    "/%ff",  "/%c0%ae",
                                      "/%ed%a0%80", "?a=b", "http", "/a/%fe/b"};
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++)
        if (parse(bad[i]) != CX_TARGET_PATH)
            cx_test_fail(__FILE__, __LINE__, "'%s' is a path", bad[i]);
    char many[2 * (CX_TARGET_SEGMENTS_MAX + 1) + 1];
    for (size_t i = 0; i < sizeof many - 1; i++)
        many[i] = i % 2 == 0 ? '/' : 'a';
    many[sizeof many - 1] = 0;
    CHECK(parse(many) == CX_TARGET_PATH);
    many[sizeof many - 3] = 0;
    CHECK(parse(many) == CX_TARGET_OK);
    CHECK_INT(target.segment_count, CX_TARGET_SEGMENTS_MAX);
}

CX_TEST(query_absolute_form)
{
    REQUIRE(parse("http://host:1/a?b=c") == CX_TARGET_OK);
    CHECK_STR(target.segments[0], "a");
    CHECK_STR(target.params[0].value, "c");
    REQUIRE(parse("https://host") == CX_TARGET_OK);
    CHECK_INT(target.segment_count, 0);
}

CX_TEST(query_parameters)
{
    REQUIRE(parse("/a?x=1&y=a+b%2Bc&&z&=e&q=%C3%A9=f&") == CX_TARGET_OK);
    CHECK_INT(target.param_count, 5);
    CHECK_STR(target.params[0].name, "x");
    CHECK_STR(target.params[1].value, "a b+c");
    CHECK_STR(target.params[2].name, "z");
    CHECK_STR(target.params[2].value, "");
    CHECK_STR(target.params[3].name, "");
    CHECK_STR(target.params[4].value, "\xc3\xa9=f");
    REQUIRE(parse("/a?") == CX_TARGET_OK);
    CHECK_INT(target.param_count, 0);
}

CX_TEST(query_parameters_that_cannot_be_read_leave_the_path)
{
    static const char *const bad[] = {"/a?%", "/a?b=%4", "/a?b=%00", "/a?b=%ff", "/a?%e9=1"};
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++) {
        if (parse(bad[i]) != CX_TARGET_QUERY)
            cx_test_fail(__FILE__, __LINE__, "'%s' is a query", bad[i]);
        CHECK_STR(target.segments[0], "a");
    }
    char many[3 + 2 * (CX_TARGET_PARAMS_MAX + 1)];
    memcpy(many, "/a?", 3);
    for (size_t i = 3; i < sizeof many; i++)
        many[i] = i % 2 == 1 ? 'p' : '&';
    many[sizeof many - 1] = 0;
    CHECK(parse(many) == CX_TARGET_QUERY);
    many[sizeof many - 3] = 0;
    CHECK(parse(many) == CX_TARGET_OK);
    CHECK_INT(target.param_count, CX_TARGET_PARAMS_MAX);
}

CX_TEST(query_length_has_a_limit)
{
    static char text[CX_TARGET_BYTES_MAX + 2];
    memset(text, 'a', sizeof text - 1);
    text[0] = '/';
    CHECK(parse(text) == CX_TARGET_LONG);
    text[CX_TARGET_BYTES_MAX] = 0;
    CHECK(parse(text) == CX_TARGET_OK);
}
