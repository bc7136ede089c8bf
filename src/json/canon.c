/*
 * canon.c - the canonical forms that are hashed and signed: Python's json.dumps with sorted keys
 * (ASCII only), and RFC 8785.
 *
 * I1  Members are stored in code point order, which is Python's.  RFC 8785 requires UTF-16 order,
 *     which differs only between U+E000..U+FFFF and code points above: members are sorted again
 *     only where a name has a byte of 0xEE or more.
 * I2  Text read in canonical spelling is copied: plain strings, numbers marked as canonical.
 * I3  Space is reserved before a piece is written, never inside of it; a failed buffer ends the
 * walk.
 */
#include "base/api.h"
#include "json/internal.h"
#include "json/number.h"

/* --- strings ------------------------------------------------------------------------------- */

/* The escape of a byte below 0x80 that is not plain: up to six characters. */
typedef struct escape {
    char text[7];
    uint8_t size;
} escape;

/* clang-format off */
#define SHORT(letter) {{'\\', (letter)}, 2}
#define HEX(high, low) {{'\\', 'u', '0', '0', (high), (low)}, 6}

static const escape escapes[0x80] = {
    HEX('0', '0'), HEX('0', '1'), HEX('0', '2'), HEX('0', '3'),
    HEX('0', '4'), HEX('0', '5'), HEX('0', '6'), HEX('0', '7'),
    SHORT('b'),    SHORT('t'),    SHORT('n'),    HEX('0', 'b'),
    SHORT('f'),    SHORT('r'),    HEX('0', 'e'), HEX('0', 'f'),
    HEX('1', '0'), HEX('1', '1'), HEX('1', '2'), HEX('1', '3'),
    HEX('1', '4'), HEX('1', '5'), HEX('1', '6'), HEX('1', '7'),
    HEX('1', '8'), HEX('1', '9'), HEX('1', 'a'), HEX('1', 'b'),
    HEX('1', 'c'), HEX('1', 'd'), HEX('1', 'e'), HEX('1', 'f'),
    ['"'] = SHORT('"'), ['\\'] = SHORT('\\'), [0x7F] = HEX('7', 'f'),
};
#undef SHORT
#undef HEX
/* clang-format on */

/* Strings are written in segments of this many bytes, so that the space reserved for the worst case
 * stays small. */
#define SEGMENT_BYTES 1024
/* The worst case: one byte becomes six; a sequence may end past the segment; whole blocks. */
#define SEGMENT_OUTPUT_BYTES(size) (6 * (size) + 24 + CX_JSON_BLOCK)

static inline uint8_t *put_escape(uint8_t *to, uint8_t byte)
{
    memcpy(to, &escapes[byte], sizeof escapes[byte]);
    return to + escapes[byte].size;
}

static inline uint8_t *put_hex4(uint8_t *to, uint32_t unit)
{
    static const char digits[] = "0123456789abcdef";
    to[0] = '\\';
    to[1] = 'u';
    to[2] = (uint8_t)digits[unit >> 12 & 15];
    to[3] = (uint8_t)digits[unit >> 8 & 15];
    to[4] = (uint8_t)digits[unit >> 4 & 15];
    to[5] = (uint8_t)digits[unit & 15];
    return to + 6;
}

static inline uint8_t *put_code(uint8_t *to, uint32_t code)
{
    if (code < 0x10000)
        return put_hex4(to, code);
    code -= 0x10000;
    return put_hex4(put_hex4(to, 0xD800 + (code >> 10)), 0xDC00 + (code & 0x3FF));
}

/* Writes one segment [at, stop) for Python; returns where reading ended, maybe past `stop`. */
static const uint8_t *put_segment_python(uint8_t **out, const uint8_t *at, const uint8_t *stop)
{
    uint8_t *to = *out;
    while (at < stop) {
        size_t run = cx_json_copy_plain(to, at, stop);
        at += run;
        to += run;
        if (at == stop)
            break;
        if (*at < 0x80) {
            to = put_escape(to, *at++);
            continue;
        }
        while (at < stop && *at >= 0x80) {
            size_t size;
            to = put_code(to, cx_utf8_decode(at, &size));
            at += size;
        }
    }
    *out = to;
    return at;
}

/* Writes one segment for RFC 8785 §3.2.2.2: only quote, backslash and controls are escaped. */
static const uint8_t *put_segment_jcs(uint8_t **out, const uint8_t *at, const uint8_t *stop)
{
    uint8_t *to = *out;
    while (at < stop) {
        size_t run = cx_json_copy_plain(to, at, stop);
        at += run;
        to += run;
        if (at == stop)
            break;
        if (*at < 0x7F)
            to = put_escape(to, *at++);
        while (at < stop && *at >= 0x7F)
            *to++ = *at++;
    }
    *out = to;
    return at;
}

/* Writes one segment of a string from *at on; moves *at past it. */
static inline uint8_t *put_segment(uint8_t *to, const uint8_t **at, const uint8_t *stop,
                                   cx_json_style style)
{
    *at =
        style == CX_JSON_JCS ? put_segment_jcs(&to, *at, stop) : put_segment_python(&to, *at, stop);
    return to;
}

static inline const uint8_t *segment_end(const uint8_t *at, const uint8_t *end)
{
    return end - at > SEGMENT_BYTES ? at + SEGMENT_BYTES : end;
}

void cx_json_write_str(cx_buf *out, cx_str text, cx_json_style style)
{
    /* The data of an empty text may be NULL. */
    const uint8_t *at = (const uint8_t *)text.data, *end = text.size == 0 ? at : at + text.size;
    cx_buf_add_byte(out, '"');
    while (at < end) {
        const uint8_t *stop = segment_end(at, end);
        uint8_t *to = cx_buf_reserve(out, SEGMENT_OUTPUT_BYTES((size_t)(stop - at)));
        if (to == NULL)
            return;
        cx_buf_advance(out, (size_t)(put_segment(to, &at, stop, style) - to));
    }
    cx_buf_add_byte(out, '"');
}

/* --- numbers ------------------------------------------------------------------------------- */

/* An integer of at most 15 digits is a double, and ECMAScript writes it the same. */
#define SAFE_DIGITS 15

/* True when the literal is canonical in that style. */
static inline bool number_is_copied(const cx_json *number, cx_json_style style)
{
    cx_str text = cx_json_text(number);
    if (CX_LIKELY(style != CX_JSON_JCS))
        return (number->flags & CX_JSON_CANONICAL) != 0 ||
               (number->type == CX_JSON_INT && !cx_str_eq(text, CX_STR("-0")));
    if ((number->flags & CX_JSON_CANONICAL) == 0)
        return false;
    if (number->type == CX_JSON_INT)
        return number->count <= SAFE_DIGITS;
    /* Python and ECMAScript differ on when to use an exponent and on whole numbers; a short literal
     * without exponent that does not end in ".0" is the same in both. */
    return text.size <= SAFE_DIGITS && text.data[text.size - 1] != '0' &&
           memchr(text.data, 'e', text.size) == NULL;
}

/* Writes a number that is not copied, at most CX_NUMBER_TEXT_SIZE bytes; NULL when it has no form
 * in that style. */
static uint8_t *put_number(uint8_t *to, const cx_json *number, cx_json_style style)
{
    double value;
    if (number->type == CX_JSON_INT && style != CX_JSON_JCS) {
        /* The one integer with two spellings. */
        *to = '0';
        return to + 1;
    }
    if ((number->flags & CX_JSON_NONFINITE) != 0 || !cx_number_parse(cx_json_text(number), &value))
        return NULL;
    return to + (style == CX_JSON_JCS ? cx_number_write_js(value, (char *)to)
                                      : cx_number_write_py(value, (char *)to));
}

void cx_json_write_number(cx_buf *out, const cx_json *number, cx_json_style style)
{
    if (number_is_copied(number, style)) {
        cx_buf_add_str(out, cx_json_text(number));
        return;
    }
    uint8_t *to = cx_buf_reserve(out, CX_NUMBER_TEXT_SIZE);
    if (to == NULL)
        return;
    uint8_t *after = put_number(to, number, style);
    CX_ASSERT(after != NULL);
    cx_buf_advance(out, (size_t)(after - to));
}

/* --- values -------------------------------------------------------------------------------- */

/*
 * While a value is written, the output position is passed from function to function rather than
 * stored in the buffer: each takes `to` and returns the position after its output, or NULL when
 * memory ran out or (`overflow`) a number has no canonical form.
 */
typedef struct writing {
    cx_buf *out;
    const uint8_t *limit; /* end of the buffer's memory */
    cx_json_style style;
    bool spaced;
    bool overflow;
    cx_json_path path;
    cx_arena sorted; /* RFC 8785: members that had to be sorted again */
} writing;

/* Space for brackets, quotes, a comma and a colon around copied text. */
#define AROUND_TEXT 8

static uint8_t *grow_output(writing *w, uint8_t *to, size_t size)
{
    if (to != NULL)
        w->out->size = (size_t)(to - w->out->data);
    to = cx_buf_reserve(w->out, size);
    if (to != NULL)
        w->limit = w->out->data + w->out->capacity;
    return to;
}

/* Reserves `size` bytes at `to`; returns `to`, moved when the buffer grew. */
static inline uint8_t *reserve_output(writing *w, uint8_t *to, size_t size)
{
    if (CX_UNLIKELY((size_t)(w->limit - to) < size))
        return grow_output(w, to, size);
    return to;
}

static uint8_t *put_escaped(writing *w, uint8_t *to, const cx_json *string)
{
    const uint8_t *at = (const uint8_t *)string->text, *end = at + string->count;
    to = reserve_output(w, to, AROUND_TEXT);
    if (to == NULL)
        return NULL;
    *to++ = '"';
    while (at < end) {
        const uint8_t *stop = segment_end(at, end);
        to = reserve_output(w, to, SEGMENT_OUTPUT_BYTES((size_t)(stop - at)) + AROUND_TEXT);
        if (to == NULL)
            return NULL;
        to = put_segment(to, &at, stop, w->style);
    }
    *to++ = '"';
    return to;
}

static inline uint8_t *put_string(writing *w, uint8_t *to, const cx_json *string)
{
    if (CX_UNLIKELY((string->flags & CX_JSON_PLAIN) == 0))
        return put_escaped(w, to, string);
    to = reserve_output(w, to, (size_t)string->count + AROUND_TEXT);
    if (CX_UNLIKELY(to == NULL))
        return NULL;
    *to++ = '"';
    cx_json_copy_bytes(to, string->text, string->count);
    to += string->count;
    *to++ = '"';
    return to;
}

/* Writes the comma before a name or an item; the space is reserved already. */
static inline uint8_t *put_comma(const writing *w, uint8_t *to)
{
    to[0] = ',';
    to[1] = ' ';
    return to + 1 + w->spaced;
}

/* Writes a name with its colon, after a bracket or a comma. */
static inline uint8_t *put_name(writing *w, uint8_t *to, const cx_json *name, bool first)
{
    to = reserve_output(w, to, AROUND_TEXT);
    if (CX_UNLIKELY(to == NULL))
        return NULL;
    if (first)
        *to++ = '{';
    else
        to = put_comma(w, to);
    to = put_string(w, to, name);
    if (CX_UNLIKELY(to == NULL))
        return NULL;
    /* put_string reserves space for these. */
    to[0] = ':';
    to[1] = ' ';
    return to + 1 + w->spaced;
}

static uint8_t *put_other_number(writing *w, uint8_t *to, const cx_json *number)
{
    to = reserve_output(w, to, CX_NUMBER_TEXT_SIZE);
    if (to == NULL)
        return NULL;
    to = put_number(to, number, w->style);
    w->overflow = to == NULL;
    return to;
}

static inline uint8_t *put_scalar(writing *w, uint8_t *to, const cx_json *value)
{
    static const struct {
        char text[8];
        size_t size;
    } words[] = {{"null", 4}, {"false", 5}, {"true", 4}};
    if (CX_LIKELY(value->type == CX_JSON_STRING))
        return put_string(w, to, value);
    if (value->type <= CX_JSON_TRUE) {
        to = reserve_output(w, to, sizeof words[0].text);
        if (CX_UNLIKELY(to == NULL))
            return NULL;
        memcpy(to, words[value->type].text, sizeof words[0].text);
        return to + words[value->type].size;
    }
    if (CX_UNLIKELY(!number_is_copied(value, w->style)))
        return put_other_number(w, to, value);
    to = reserve_output(w, to, value->count);
    if (CX_UNLIKELY(to == NULL))
        return NULL;
    cx_json_copy_bytes(to, value->text, value->count);
    return to + value->count;
}

static bool needs_utf16_order(const cx_json *object)
{
    for (uint32_t i = 0; i < object->count; i++) {
        const cx_json *name = &object->members[i].name;
        if ((name->flags & CX_JSON_PLAIN) != 0)
            continue;
        for (uint32_t k = 0; k < name->count; k++)
            if ((uint8_t)name->text[k] >= 0xEE)
                return true;
    }
    return false;
}

/* The members of an object in UTF-16 order; NULL when out of memory. */
static const cx_json *inside_by_utf16(writing *w, const cx_json *object)
{
    if (!needs_utf16_order(object))
        return cx_json_inside(object);
    cx_json_member *members = CX_ARENA_ARRAY(&w->sorted, cx_json_member, object->count);
    cx_json_key *keys = CX_ARENA_ARRAY(&w->sorted, cx_json_key, cx_json_keys_needed(object->count));
    if (members == NULL || keys == NULL)
        return NULL;
    uint32_t twice =
        cx_json_sort_members(object->members, object->count, CX_JSON_BY_UTF16, keys, members);
    CX_ASSERT(twice == object->count);
    return (const cx_json *)members;
}

/*
 * Writes a value.  `here` is the innermost open array or object; the path contains those around it.
 */
static uint8_t *put_value(writing *w, uint8_t *to, const cx_json *value)
{
    cx_json_step here = {0};
    for (;;) {
        if (!cx_json_is_container(value)) {
            to = put_scalar(w, to, value);
            if (CX_UNLIKELY(to == NULL))
                return NULL;
        } else if (value->count == 0) {
            to = reserve_output(w, to, 2);
            if (CX_UNLIKELY(to == NULL))
                return NULL;
            memcpy(to, value->type == CX_JSON_OBJECT ? "{}" : "[]", 2);
            to += 2;
        } else {
            if (CX_UNLIKELY(!cx_json_path_push(&w->path, &here)))
                return NULL;
            here.is_object = value->type == CX_JSON_OBJECT;
            here.left = value->count;
            here.at = cx_json_inside(value);
            if (w->style == CX_JSON_JCS && here.is_object)
                here.at = inside_by_utf16(w, value);
            if (CX_UNLIKELY(here.at == NULL || (to = reserve_output(w, to, 1)) == NULL))
                return NULL;
            if (!here.is_object)
                *to++ = '[';
            else if ((to = put_name(w, to, here.at, true)) == NULL)
                return NULL;
            value = cx_json_step_value(&here);
            continue;
        }
        while (here.left <= 1) {
            if (w->path.depth == 0)
                return to;
            to = reserve_output(w, to, 1);
            if (CX_UNLIKELY(to == NULL))
                return NULL;
            *to++ = here.is_object ? '}' : ']';
            here = w->path.steps[--w->path.depth];
        }
        (void)cx_json_step_next(&here);
        to = here.is_object ? put_name(w, to, here.at, false) : reserve_output(w, to, AROUND_TEXT);
        if (CX_UNLIKELY(to == NULL))
            return NULL;
        if (!here.is_object)
            to = put_comma(w, to);
        value = cx_json_step_value(&here);
    }
}

cx_status cx_json_write(cx_buf *out, const cx_json *value, cx_json_style style, cx_err *err)
{
    if (out->failed)
        return cx_fail_nomem(err);
    if (!cx_json_has_canonical(value))
        return cx_fail(err, CX_E_FORMAT,
                       "found a number beyond binary64, which has no canonical form, expected a "
                       "finite one");
    if (style == CX_JSON_JCS && (value->flags & CX_JSON_SURROGATE) != 0)
        return cx_fail(err, CX_E_FORMAT,
                       "found a lone surrogate, which RFC 8785 has no form for, expected Unicode "
                       "text");
    writing w; /* not cleared as a whole: the path is large and needs none of it */
    w.out = out;
    w.style = style;
    w.spaced = style == CX_JSON_PY_DEFAULT;
    w.overflow = false;
    cx_json_path_init(&w.path, out->alloc);
    cx_arena_init(&w.sorted, out->alloc, 0);
    size_t size_before = out->size;
    uint8_t *to = grow_output(&w, NULL, 512);
    if (to != NULL)
        to = put_value(&w, to, value);
    cx_arena_done(&w.sorted);
    cx_json_path_done(&w.path);
    out->size = to != NULL ? (size_t)(to - out->data) : size_before;
    if (to != NULL)
        return CX_SUCCESS;
    if (w.overflow)
        return cx_fail(err, CX_E_FORMAT,
                       "found an integer beyond binary64, which RFC 8785 has no form for, expected "
                       "a smaller one");
    return cx_fail_nomem(err);
}
