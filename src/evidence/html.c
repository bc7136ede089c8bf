/*
 * html.c - writes text from outside into a page.
 */
#include "evidence/html.h"

#include "base/api.h"
#include "crypto/api.h"

/* Invisible, or shown at another position than its own. */
static bool is_hidden(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xad || code == 0x34f ||
           code == 0x61c || (code >= 0x115f && code <= 0x1160) ||
           (code >= 0x17b4 && code <= 0x17b5) || (code >= 0x180b && code <= 0x180f) ||
           (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2060 && code <= 0x206f) || code == 0x3164 ||
           (code >= 0xfe00 && code <= 0xfe0f) || code == 0xfeff || code == 0xffa0 ||
           (code >= 0xfff0 && code <= 0xfffb) || (code >= 0xe0000 && code <= 0xe0fff);
}

static void add_character(cx_buf *out, cx_str text, bool keep_lines)
{
    for (size_t at = 0; at < text.size;) {
        const uint8_t *data = (const uint8_t *)text.data + at;
        size_t size = cx_utf8_sequence(data, text.size - at);
        if (size == 0) {
            cx_buf_printf(out, "<b>\\x%02x</b>", data[0]);
            at++;
            continue;
        }
        uint32_t code = cx_utf8_decode(data, &size);
        at += size;
        if (code == '<')
            cx_buf_add_z(out, "&lt;");
        else if (code == '>')
            cx_buf_add_z(out, "&gt;");
        else if (code == '&')
            cx_buf_add_z(out, "&amp;");
        else if (code == '"')
            cx_buf_add_z(out, "&quot;");
        else if (code == '\'')
            cx_buf_add_z(out, "&#39;");
        else if ((code == '\n' || code == '\t') && keep_lines)
            cx_buf_add_byte(out, (uint8_t)code);
        else if (is_hidden(code))
            cx_buf_printf(out, "<b>U+%04X</b>", (unsigned)code);
        else
            cx_buf_add(out, data, size);
    }
}

void cx_html_text(cx_buf *out, cx_str text)
{
    add_character(out, text, false);
}

void cx_html_block(cx_buf *out, cx_str text)
{
    add_character(out, text, true);
}

void cx_html_hex(cx_buf *out, const void *bytes, size_t size)
{
    cx_hex_add(out, cx_bytes_from(bytes, size));
}

void cx_html_time(cx_buf *out, int64_t ns)
{
    int64_t seconds = ns / INT64_C(1000000000) - (ns % INT64_C(1000000000) < 0);
    cx_civil_time time = cx_civil_of_seconds(seconds);
    cx_buf_printf(out, "%04d-%02u-%02uT%02u:%02u:%02uZ", (int)time.date.year, time.date.month,
                  time.date.day, time.hour, time.minute, time.second);
}
