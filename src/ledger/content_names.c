/*
 * content_names.c - whether recorded content names a person, a run or an agent (erasure.md §1).
 *
 * Content is what was received: JSON, lines of JSON, parts of files, CBOR, protobuf.  Nothing is
 * parsed into memory; one pass over the bytes resolves JSON escapes as it goes.
 */
#include "base/api.h"
#include "ledger/holds.h"

enum { NESTING_MAX = 8 };

/* Letters, digits and everything outside of ASCII, as parts of letters, belong to a word. */
static bool is_word_byte(uint8_t c)
{
    return c >= 0x80 || c == '_' || (c >= '0' && c <= '9') ||
           ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* --- text, with JSON escapes resolved --------------------------------------------------------- */

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_code_unit(cx_bytes text, size_t at, uint32_t *out)
{
    uint32_t value = 0;
    if (text.size - at < 6 || text.data[at] != '\\' || text.data[at + 1] != 'u')
        return false;
    for (size_t i = 2; i < 6; i++) {
        int digit = hex_value(text.data[at + i]);
        if (digit < 0)
            return false;
        value = value << 4 | (uint32_t)digit;
    }
    *out = value;
    return true;
}

static size_t put_utf8(uint32_t code, uint8_t out[4])
{
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xc0 | code >> 6);
        out[1] = (uint8_t)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xe0 | code >> 12);
        out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | code >> 18);
    out[1] = (uint8_t)(0x80 | (code >> 12 & 0x3f));
    out[2] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
    out[3] = (uint8_t)(0x80 | (code & 0x3f));
    return 4;
}

/* One character at `at`, as the bytes that it stands for; returns how many bytes it takes. */
static size_t read_escaped(cx_bytes text, size_t at, uint8_t out[4], size_t *out_size)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    uint32_t code, low;
    out[0] = text.data[at];
    *out_size = 1;
    if (out[0] != '\\' || text.size - at < 2)
        return 1;
    if (read_code_unit(text, at, &code)) {
        if (code >= 0xd800 && code < 0xdc00 && read_code_unit(text, at + 6, &low) &&
            low >= 0xdc00 && low < 0xe000) {
            *out_size = put_utf8(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00), out);
            return 12;
        }
        *out_size = put_utf8(code, out);
        return 6;
    }
    const char *name = text.data[at + 1] == 0 ? NULL : strchr(names, text.data[at + 1]);
    if (name == NULL)
        return 1;
    out[0] = (uint8_t)values[name - names];
    return 2;
}

/* Whether `word` is at `at`; *out_end is the first byte after it. */
static bool word_is_at(cx_bytes text, size_t at, cx_str word, bool escapes, size_t *out_end)
{
    size_t matched = 0;
    while (matched < word.size) {
        uint8_t bytes[4];
        size_t size = 1;
        if (at >= text.size)
            return false;
        bytes[0] = text.data[at];
        at += escapes ? read_escaped(text, at, bytes, &size) : 1;
        if (size > word.size - matched || memcmp(bytes, word.data + matched, size) != 0)
            return false;
        matched += size;
    }
    *out_end = at;
    return true;
}

static bool ends_word(cx_bytes text, size_t end, bool escapes)
{
    uint8_t bytes[4];
    size_t size = 1;
    if (end >= text.size)
        return true;
    bytes[0] = text.data[end];
    if (escapes)
        (void)read_escaped(text, end, bytes, &size);
    return !is_word_byte(bytes[0]);
}

/* `anywhere`: what is before the word does not count. */
static bool text_names(cx_bytes text, cx_str word, bool escapes, bool anywhere)
{
    bool inside = false; /* the character before belongs to a word */
    for (size_t at = 0; at < text.size;) {
        uint8_t bytes[4];
        size_t size = 1, step = 1, end;
        bytes[0] = text.data[at];
        if (escapes)
            step = read_escaped(text, at, bytes, &size);
        if ((!inside || anywhere || !is_word_byte((uint8_t)word.data[0])) &&
            bytes[0] == (uint8_t)word.data[0] && word_is_at(text, at, word, escapes, &end) &&
            (ends_word(text, end, escapes) || !is_word_byte((uint8_t)word.data[word.size - 1])))
            return true;
        inside = is_word_byte(bytes[size - 1]);
        at += step;
    }
    return false;
}

/* --- CBOR ------------------------------------------------------------------------------------- */

static bool names_at_depth(cx_bytes content, cx_str text, unsigned depth);

/* The head of an item: major type and argument; false when the bytes are no CBOR. */
static bool read_head(cx_bytes bytes, size_t *at, unsigned *out_major, uint64_t *out_argument)
{
    if (*at >= bytes.size)
        return false;
    uint8_t first = bytes.data[(*at)++];
    unsigned info = first & 0x1f;
    *out_major = first >> 5;
    *out_argument = info;
    if (info < 24)
        return true;
    if (info > 27)
        return false;
    size_t size = (size_t)1 << (info - 24);
    if (bytes.size - *at < size)
        return false;
    *out_argument = 0;
    for (size_t i = 0; i < size; i++)
        *out_argument = *out_argument << 8 | bytes.data[(*at)++];
    return true;
}

/* Heads follow each other whatever the nesting.  *out_cbor: all bytes were CBOR. */
static bool cbor_names(cx_bytes bytes, cx_str text, unsigned depth, bool *out_cbor)
{
    size_t at = 0;
    bool named = false;
    *out_cbor = false;
    while (at < bytes.size) {
        unsigned major;
        uint64_t argument;
        if (!read_head(bytes, &at, &major, &argument))
            return false;
        if (major != 2 && major != 3)
            continue;
        if (argument > bytes.size - at)
            return false;
        cx_bytes part = cx_bytes_from(bytes.data + at, (size_t)argument);
        named = named || (major == 3 ? text_names(part, text, false, false)
                                     : names_at_depth(part, text, depth + 1));
        at += (size_t)argument;
    }
    *out_cbor = true;
    return named;
}

/* --- any content ------------------------------------------------------------------------------ */

static bool is_plain_text(cx_bytes content)
{
    for (size_t i = 0; i < content.size; i++)
        if (content.data[i] < 0x20 && content.data[i] != '\t' && content.data[i] != '\n' &&
            content.data[i] != '\r')
            return false;
    return true;
}

static bool names_at_depth(cx_bytes content, cx_str text, unsigned depth)
{
    bool is_cbor = false;
    if (content.size < text.size)
        return false;
    if (content.data[0] >> 5 == 5 && depth < NESTING_MAX) { /* a map, as all our records are */
        bool named = cbor_names(content, text, depth, &is_cbor);
        if (is_cbor)
            return named;
    }
    bool plain = is_plain_text(content);
    return text_names(content, text, false, !plain) ||
           (plain && memchr(content.data, '\\', content.size) != NULL &&
            text_names(content, text, true, false));
}

bool cx_content_names(cx_bytes content, cx_str text)
{
    return text.size != 0 && names_at_depth(content, text, 0);
}
