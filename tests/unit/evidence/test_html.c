/*
 * test_html.c - text from outside does nothing on a page.
 */
#include "evidence/html.h"
#include "tests/test.h"

static bool becomes(const char *text, size_t size, bool block, const char *wanted)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    if (block)
        cx_html_block(&out, cx_str_from(text, size));
    else
        cx_html_text(&out, cx_str_from(text, size));
    bool same = cx_str_is(cx_buf_str(&out), wanted);
    cx_buf_done(&out);
    return same;
}

#define BECOMES(literal, block, wanted) \
    CHECK(becomes((literal), sizeof(literal) - 1, (block), (wanted)))

CX_TEST(markup_is_text)
{
    BECOMES("<a href=\"x\">&'", false, "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
    BECOMES("", true, "");
    BECOMES("gr\xc3\xbc\xc3\x9f", false, "gr\xc3\xbc\xc3\x9f");
}

CX_TEST(what_is_not_seen_is_shown)
{
    BECOMES("a\n\tb", true, "a\n\tb");
    BECOMES("a\nb", false, "a<b>U+000A</b>b");
    BECOMES("\x00", true, "<b>U+0000</b>");
    BECOMES("\x1b[0m", true, "<b>U+001B</b>[0m");
    BECOMES("\xe2\x80\xae", true, "<b>U+202E</b>");
    BECOMES("\xe2\x81\xa6", true, "<b>U+2066</b>");
    BECOMES("\xe2\x80\x8b", true, "<b>U+200B</b>");
    BECOMES("\xef\xbb\xbf", true, "<b>U+FEFF</b>");
    BECOMES("\xf3\xa0\x81\x81", true, "<b>U+E0041</b>");
    BECOMES("\xff\xc3", true, "<b>\\xff</b><b>\\xc3</b>");
}

/* No byte at all gets out as markup of its own. */
CX_TEST(no_byte_becomes_markup)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[3] = {'a', (char)byte, 'b'};
        cx_buf out;
        cx_buf_init(&out, cx_alloc_default());
        cx_html_block(&out, cx_str_from(text, sizeof text));
        for (size_t i = 0; i < out.size; i++)
            CHECK(out.data[i] != '<' || memcmp(out.data + i, "<b>", 3) == 0 ||
                  memcmp(out.data + i, "</b>", 4) == 0);
        cx_buf_done(&out);
    }
}

CX_TEST(times_are_written_in_utc)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_html_time(&out, 0);
    cx_html_time(&out, -1);
    CHECK(cx_str_is(cx_buf_str(&out), "1970-01-01T00:00:00Z1969-12-31T23:59:59Z"));
    cx_buf_clear(&out);
    cx_html_time(&out, INT64_MAX);
    cx_html_time(&out, INT64_MIN);
    CHECK(out.size != 0 && !out.failed);
    cx_buf_done(&out);
}
