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
    cx_shown_add_lines(&out, text, true);
    CHECK_STR(cx_buf_str(&out), "a\tb\n\x1b[1;31mred\x1b[0m \\u001b[2J \\u001b[31 \\u001b[\\u0007");
    cx_buf_clear(&out);
    cx_shown_add_lines(&out, text, false);
    CHECK_STR(cx_buf_str(&out), "a\tb\n\\u001b[1;31mred\\u001b[0m \\u001b[2J \\u001b[31 "
                                "\\u001b[\\u0007");
    CHECK_INT(cx_shown_plain_prefix(text), 4);
    CHECK_INT(cx_shown_plain_prefix(cx_buf_str(&out)), out.size);
    cx_buf_done(&out);
}
