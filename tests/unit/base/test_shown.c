/*
 * test_shown.c - nothing that acts is left, and nothing that is read is touched.
 */
#include "base/shown.h"

#include "base/utf8.h"
#include "tests/test.h"

static cx_str shown(cx_buf *out, cx_str text)
{
    cx_buf_clear(out);
    cx_shown_add(out, text);
    return cx_buf_str(out);
}

CX_TEST(shown_forms)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STR(shown(&out, CX_STR("")), "");
    CHECK_STR(shown(&out, CX_STR("plain \\ \"text\" \xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80")),
              "plain \\ \"text\" \xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80");
    CHECK_STR(shown(&out, CX_STR("\x1b[0m\n\t\r\x7f")), "\\u001b[0m\\u000a\\u0009\\u000d\\u007f");
    CHECK_STR(shown(&out, CX_STR("\xc2\x85\xc2\x9b")), "\\u0085\\u009b");
    CHECK_STR(shown(&out, CX_STR("\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xae\xe2\x81\xa6\xd8\x9c")),
              "\\u2028\\u2029\\u202e\\u2066\\u061c");
    CHECK_STR(shown(&out, CX_STR("\xf3\xa0\x81\x81")), "\\udb40\\udc41"); /* a tag */
    CHECK_STR(shown(&out, CX_STR("\xed\xa0\x80")), "\\ud800");            /* a lone surrogate */
    CHECK_STR(shown(&out, CX_STR("\x9b\xff\xc3\xf0\x9f\x98")), "\\x9b\\xff\\xc3\\xf0\\x9f\\x98");
    cx_buf_done(&out);
}

/* Every code point, by a list of what acts that is written another way. */
CX_TEST(shown_every_code_point)
{
    static const struct {
        uint32_t first, last;
    } acts[] = {{0, 0x1F},        {0x7F, 0x9F},     {0xAD, 0xAD},      {0x61C, 0x61C},
                {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},  {0xD800, 0xDFFF},
                {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE0FFF}};
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        uint8_t bytes[4];
        char text[CX_SHOWN_SIZE_MAX];
        size_t size = cx_utf8_encode(code, bytes), count = 99;
        bool wanted = false;
        for (size_t i = 0; i < CX_COUNT_OF(acts); i++)
            wanted = wanted || (code >= acts[i].first && code <= acts[i].last);
        if (cx_shown_step(bytes, size, text, &count) != size || count != (!wanted         ? 0u
                                                                          : code > 0xFFFF ? 12u
                                                                                          : 6u)) {
            cx_test_fail(__FILE__, __LINE__, "U+%04X is %zu bytes, %zu shown", (unsigned)code, size,
                         count);
            return;
        }
    }
}

CX_TEST(shown_lines_keep_lines_and_colours)
{
    cx_str text = CX_STR("a\tb\n\x1b[1;31mred\x1b[0m \x1b[2J \x1b[31 \x1b[\x07");
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_shown_add_lines(&out, text, CX_SHOWN_COLOURS);
    CHECK_STR(cx_buf_str(&out), "a\tb\n\x1b[1;31mred\x1b[0m \\u001b[2J \\u001b[31 \\u001b[\\u0007");
    cx_buf_clear(&out);
    cx_shown_add_lines(&out, text, 0);
    CHECK_STR(cx_buf_str(&out), "a\tb\n\\u001b[1;31mred\\u001b[0m \\u001b[2J \\u001b[31 "
                                "\\u001b[\\u0007");
    CHECK_INT(cx_shown_plain_prefix(text), 4);
    CHECK_INT(cx_shown_plain_prefix(cx_buf_str(&out)), out.size);
    cx_buf_done(&out);
}

#define LINK(uri) "\x1b]8;;" uri "\x1b\\"

CX_TEST(shown_links_are_of_a_fixed_list_and_end_where_they_should)
{
    static const char *const good[] = {"file://host/a%20b.c#3", "file:///a",
                                       "vscode://file/a:3",     "vscodium://file/a",
                                       "cursor://file/a",       "idea://open?file=/a&line=3"};
    static const char *const bad[] = {"",
                                      "http://a",
                                      "javascript:alert(1)",
                                      "vscode://extension/a",
                                      "FILE:///a",
                                      "file:/a",
                                      "file:///a b",
                                      "file:///a\x1b\\x",
                                      "file:///a\x07",
                                      "file:///a;b",
                                      "file:///\xc3\xa9",
                                      "file:///a\n"};
    cx_buf out, long_uri;
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_init(&long_uri, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(good); i++)
        CHECK(cx_shown_is_link(cx_str_z(good[i])));
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++)
        CHECK(!cx_shown_is_link(cx_str_z(bad[i])));
    CHECK(!cx_shown_is_link(cx_str_from("file:///a\0b", 11)));
    cx_buf_add_z(&long_uri, "file:///");
    while (long_uri.size < CX_SHOWN_URI_MAX)
        cx_buf_add_byte(&long_uri, 'a');
    CHECK(cx_shown_is_link(cx_buf_str(&long_uri)));
    cx_buf_add_byte(&long_uri, 'a');
    CHECK(!cx_shown_is_link(cx_buf_str(&long_uri)));
    cx_shown_add_link(&out, CX_STR("file:///a"), CX_STR("t\x1b]8;;\n"));
    CHECK_STR(cx_buf_str(&out), LINK("file:///a") "t\\u001b]8;;\\u000a" LINK(""));
    cx_buf_clear(&out);
    cx_shown_add_link(&out, CX_STR("http://a"), CX_STR("t\x07"));
    CHECK_STR(cx_buf_str(&out), "t\\u0007");
    cx_buf_done(&out);
    cx_buf_done(&long_uri);
}

CX_TEST(shown_lines_keep_links_only_where_they_are_allowed)
{
    cx_str text = CX_STR("a " LINK("file:///x") "x" LINK("") "\n" LINK("http://x")
                             LINK("file:///a b") "\x1b]0;t\x07\x1b]8;id=1;file:///x\x1b\\" LINK(
                                 "file:///cut") "\x1b]8;;file:///cut");
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_shown_add_lines(&out, text, CX_SHOWN_LINKS);
    CHECK_STR(cx_buf_str(&out), "a " LINK("file:///x") "x" LINK(
                                    "") "\n\\u001b]8;;http://x\\u001b\\\\u001b]8;;file:///a b"
                                        "\\u001b\\\\u001b]0;t\\u0007\\u001b]8;id=1;file:///x"
                                        "\\u001b\\" LINK("file:///cut") "\\u001b]8;;file:///cut");
    cx_buf_clear(&out);
    cx_shown_add_lines(&out, text, CX_SHOWN_COLOURS);
    for (size_t i = 0; i < out.size; i++)
        CHECK(out.data[i] != 0x1b);
    cx_buf_done(&out);
}
