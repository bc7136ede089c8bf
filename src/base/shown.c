/*
 * shown.c - which characters are escaped, and their escaped forms.
 */
#include "base/shown.h"

#include <string.h>

#include "base/bytes.h"
#include "base/utf8.h"

bool cx_shown_acts(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0xAD || code == 0x61C ||
           (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
           (code >= 0x2060 && code <= 0x206F) || (code >= 0xD800 && code <= 0xDFFF) ||
           code == 0xFEFF || (code >= 0xFFF9 && code <= 0xFFFB) ||
           (code >= 0xE0000 && code <= 0xE0FFF);
}

static size_t put_hex(char *out, char letter, uint32_t value, unsigned digits)
{
    out[0] = '\\';
    out[1] = letter;
    for (unsigned i = 0; i < digits; i++)
        out[2 + i] = "0123456789abcdef"[value >> (4 * (digits - 1 - i)) & 15];
    return 2 + digits;
}

static size_t put_code(char *out, uint32_t code)
{
    if (code < 0x10000)
        return put_hex(out, 'u', code, 4);
    code -= 0x10000;
    size_t size = put_hex(out, 'u', 0xD800 + (code >> 10), 4);
    return size + put_hex(out + size, 'u', 0xDC00 + (code & 0x3FF), 4);
}

/* A lone surrogate in its 3-byte form (utf8.h). */
static bool is_surrogate(const uint8_t *data, size_t size)
{
    return size >= 3 && data[0] == 0xED && data[1] >= 0xA0 && data[1] <= 0xBF &&
           (data[2] & 0xC0) == 0x80;
}

size_t cx_shown_step(const uint8_t *data, size_t size, char out[CX_SHOWN_SIZE_MAX],
                     size_t *out_size)
{
    size_t length = cx_utf8_sequence(data, size);
    if (length == 0 && is_surrogate(data, size))
        length = 3;
    if (length == 0) {
        *out_size = put_hex(out, 'x', data[0], 2);
        return 1;
    }
    size_t read;
    uint32_t code = cx_utf8_decode(data, &read);
    *out_size = cx_shown_acts(code) ? put_code(out, code) : 0;
    return length;
}

static bool is_plain(uint8_t byte)
{
    return (byte >= 0x20 && byte < 0x7F) || byte == '\n' || byte == '\t';
}

/* Size of the colour sequence at `data` (ESC [ digits and semicolons, m), 0 when there is none. */
static size_t colour_size(const uint8_t *data, size_t size)
{
    if (size < 3 || data[0] != 0x1B || data[1] != '[')
        return 0;
    for (size_t i = 2; i < size; i++) {
        if (data[i] == 'm')
            return i + 1;
        if ((data[i] < '0' || data[i] > '9') && data[i] != ';')
            break;
    }
    return 0;
}

/* --- links ------------------------------------------------------------------------------------ */

#define LINK_BEGIN "\033]8;;"
#define LINK_END "\033\\"

bool cx_shown_is_link(cx_str uri)
{
    static const char *const schemes[] = {"file://", "vscode://file/", "vscodium://file/",
                                          "cursor://file/", "idea://open?file=/"};
    bool known = false;
    for (size_t i = 0; i < CX_COUNT_OF(schemes); i++)
        known = known || cx_str_starts(uri, cx_str_z(schemes[i]));
    if (!known || uri.size > CX_SHOWN_URI_MAX)
        return false;
    for (size_t i = 0; i < uri.size; i++) {
        char c = uri.data[i];
        bool letter = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && (c == 0 || strchr("-._~/%:?=&#", c) == NULL))
            return false;
    }
    return true;
}

void cx_shown_add_link(cx_buf *out, cx_str uri, cx_str text)
{
    bool linked = cx_shown_is_link(uri);
    if (linked) {
        cx_buf_add_z(out, LINK_BEGIN);
        cx_buf_add_str(out, uri);
        cx_buf_add_z(out, LINK_END);
    }
    cx_shown_add(out, text);
    if (linked)
        cx_buf_add_z(out, LINK_BEGIN LINK_END);
}

/* Size of the beginning or the end of a link at the start of `text`, 0 when there is none. */
static size_t link_size(cx_str text)
{
    const size_t begin = sizeof LINK_BEGIN - 1, end = sizeof LINK_END - 1;
    if (!cx_str_starts(text, CX_STR(LINK_BEGIN)))
        return 0;
    size_t size = 0, limit = text.size - begin;
    while (size < limit && size <= CX_SHOWN_URI_MAX && text.data[begin + size] != '\033')
        size++;
    if (limit - size < end || memcmp(text.data + begin + size, LINK_END, end) != 0)
        return 0;
    return size == 0 || cx_shown_is_link(cx_str_from(text.data + begin, size)) ? begin + size + end
                                                                               : 0;
}

/* --- text ------------------------------------------------------------------------------------- */

void cx_shown_add(cx_buf *out, cx_str text)
{
    for (size_t at = 0; at < text.size;) {
        char shown[CX_SHOWN_SIZE_MAX];
        size_t size;
        const uint8_t *data = (const uint8_t *)text.data + at;
        size_t read = cx_shown_step(data, text.size - at, shown, &size);
        cx_buf_add(out, size == 0 ? (const void *)data : shown, size == 0 ? read : size);
        at += read;
    }
}

void cx_shown_add_lines(cx_buf *out, cx_str text, unsigned allowed)
{
    const uint8_t *data = (const uint8_t *)text.data;
    for (size_t at = 0; at < text.size;) {
        size_t run = at;
        while (run < text.size && is_plain(data[run]))
            run++;
        if (run == at && (allowed & CX_SHOWN_COLOURS) != 0)
            run += colour_size(data + at, text.size - at);
        if (run == at && (allowed & CX_SHOWN_LINKS) != 0)
            run += link_size(cx_str_from(text.data + at, text.size - at));
        if (run != at) {
            cx_buf_add(out, data + at, run - at);
            at = run;
            continue;
        }
        char shown[CX_SHOWN_SIZE_MAX];
        size_t size, read = cx_shown_step(data + at, text.size - at, shown, &size);
        cx_buf_add(out, size == 0 ? (const void *)(data + at) : shown, size == 0 ? read : size);
        at += read;
    }
}

size_t cx_shown_plain_prefix(cx_str text)
{
    const uint8_t *data = (const uint8_t *)text.data;
    size_t at = 0;
    while (at < text.size) {
        char shown[CX_SHOWN_SIZE_MAX];
        size_t size = 0, read = 1;
        if (!is_plain(data[at]))
            read = cx_shown_step(data + at, text.size - at, shown, &size);
        if (size != 0)
            break;
        at += read;
    }
    return at;
}
