/*
 * parse.c - strict RFC 8259 reading in one pass, without recursion.
 *
 * Open brackets are frames on the parser's own stack; finished values wait on a second stack until
 * their bracket closes, and are then moved, contiguous, into the arena.  The parser retains both
 * stacks, so that a loop over documents soon stops allocating.
 *
 * I1  Text that is a proper prefix of a valid document gives CX_E_MORE (or, at the top level, a
 *     number or nothing more to say), never another code: callers refill their buffer and retry.
 * I2  A string is borrowed from the text when it has no escape, else decoded into the arena.
 * I3  Members are sorted, and duplicates found, when their object closes.
 * I4  An integer literal never passes through a double.
 *
 * Functions that read an element take its start and return the position after it, or NULL after a
 * failure, with `status` set.
 */
#include "base/api.h"
#include "json/internal.h"
#include <stdio.h>
#include "json/number.h"
#include "json/shape.h"

typedef struct frame {
    size_t first;         /* index of its first value on the stack */
    const uint8_t *start; /* its bracket */
    cx_json_shape *shape; /* expected shape of the object, or of an array's objects; or NULL */
    bool is_object;
    bool follows; /* all names so far match the shape */
} frame;

typedef struct reading {
    cx_json_parser *parser;
    cx_arena *arena;
    cx_err *err;
    const uint8_t *start;
    const uint8_t *end;
    size_t depth;   /* open brackets */
    size_t waiting; /* values on the stack */
    bool is_last;   /* nothing follows `end` */
    bool inherits;  /* some value so far has flags that its containers inherit */
    cx_status status;
} reading;

/* --- failing ------------------------------------------------------------------------------- */

void cx_json_locate(cx_str text, size_t offset, uint64_t *out_line, uint64_t *out_column)
{
    const char *at = text.data, *stop = at + (offset < text.size ? offset : text.size);
    uint64_t line = 1;
    while (at < stop) {
        const char *newline = memchr(at, '\n', (size_t)(stop - at));
        if (newline == NULL)
            break;
        line++;
        at = newline + 1;
    }
    *out_line = line;
    *out_column = (uint64_t)(stop - at) + 1;
}

static const uint8_t *fail_at(reading *r, cx_code code, const char *tag, const uint8_t *at,
                              const char *found, const char *expected)
{
    r->status = cx_fail_at(r->err, code, tag, (uint64_t)(at - r->start), "found %s, expected %s",
                           found, expected);
    if (r->err != NULL) {
        cx_str text = {(const char *)r->start, (size_t)(r->end - r->start)};
        cx_json_locate(text, (size_t)(at - r->start), &r->err->line, &r->err->column);
    }
    return NULL;
}

static const uint8_t *fail_nomem(reading *r)
{
    r->status = cx_fail_nomem(r->err);
    return NULL;
}

static const uint8_t *fail_more(reading *r, const char *expected)
{
    return fail_at(r, CX_E_MORE, "U_SYNTAX", r->end, "the end of the text", expected);
}

/* The byte at `at` is not allowed by the grammar. */
static const uint8_t *fail_here(reading *r, const uint8_t *at, const char *expected)
{
    char found[32];
    if (at == r->end)
        return fail_more(r, expected);
    if (*at >= 0x80 && cx_utf8_sequence(at, (size_t)(r->end - at)) == 0) {
        (void)snprintf(found, sizeof found, "byte 0x%02X", *at);
        return fail_at(r, CX_E_SYNTAX, "U_UTF8", at, found, "valid UTF-8");
    }
    size_t size;
    if (*at >= 0x80)
        (void)snprintf(found, sizeof found, "U+%04X", (unsigned)cx_utf8_decode(at, &size));
    else if (*at > 0x20 && *at < 0x7F)
        (void)snprintf(found, sizeof found, "'%c'", *at);
    else
        (void)snprintf(found, sizeof found, "U+%04X", *at);
    return fail_at(r, CX_E_SYNTAX, "U_SYNTAX", at, found, expected);
}

/* --- scratch memory ------------------------------------------------------------------------ */

static bool grow_block(reading *r, void **block, size_t *capacity, size_t needed, size_t item_size)
{
    if (cx_vec_reserve_raw(block, capacity, needed, item_size, r->parser->alloc))
        return true;
    (void)fail_nomem(r);
    return false;
}

/* The next free value on the stack; taken by raising `waiting`. */
static inline cx_json *next_slot(reading *r)
{
    cx_json_parser *parser = r->parser;
    if (CX_UNLIKELY(r->waiting == parser->stack_capacity) &&
        !grow_block(r, &parser->stack, &parser->stack_capacity, r->waiting + 256, sizeof(cx_json)))
        return NULL;
    return (cx_json *)parser->stack + r->waiting;
}

/* --- strings ------------------------------------------------------------------------------- */

/* `at` is a byte of 0x80 or above: returns the position after its sequence. */
static const uint8_t *read_utf8(reading *r, const uint8_t *at)
{
    size_t left = (size_t)(r->end - at), size = cx_utf8_sequence(at, left);
    if (CX_LIKELY(size != 0))
        return at + size;
    /* Truncated when continuation bytes could still complete it; every lead byte allows either the
     * least or the greatest of them. */
    if (left < 4) {
        uint8_t low[4] = {0x80, 0x80, 0x80, 0x80}, high[4] = {0xBF, 0xBF, 0xBF, 0xBF};
        memcpy(low, at, left);
        memcpy(high, at, left);
        if (cx_utf8_sequence(low, 4) > left || cx_utf8_sequence(high, 4) > left)
            return fail_more(r, "the rest of a UTF-8 sequence");
    }
    return fail_here(r, at, "valid UTF-8");
}

/* Four hex digits at `at`; *out is set when all four are present. */
static const uint8_t *read_hex4(reading *r, const uint8_t *at, uint32_t *out)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++, at++) {
        if (at == r->end)
            return fail_more(r, "four hex digits");
        uint32_t byte = *at, lower = byte | 0x20;
        if (byte >= '0' && byte <= '9')
            value = value << 4 | (byte - '0');
        else if (lower >= 'a' && lower <= 'f')
            value = value << 4 | (lower - 'a' + 10);
        else
            return fail_here(r, at, "four hex digits");
    }
    *out = value;
    return at;
}

/* The code point of `\u`, `at` after the 'u': reads two escapes when they are a surrogate pair. */
static const uint8_t *read_unicode_escape(reading *r, const uint8_t *at, uint32_t *out)
{
    uint32_t code, second;
    at = read_hex4(r, at, &code);
    if (at == NULL)
        return NULL;
    if (code >= 0xD800 && code < 0xDC00 && r->end - at >= 2 && at[0] == '\\' && at[1] == 'u') {
        const uint8_t *after = read_hex4(r, at + 2, &second);
        if (after == NULL)
            return NULL;
        if (second >= 0xDC00 && second < 0xE000) {
            code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
            at = after;
        }
    }
    *out = code;
    return at;
}

/* The byte denoted by a two-character escape, by its second character; 0 for invalid ones. */
static const uint8_t short_escapes[256] = {['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
                                           ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};

/* Decodes the escape whose backslash is at `at`; writes at most 4 bytes to *to and moves it. */
static inline const uint8_t *read_escape(reading *r, const uint8_t *at, uint8_t **to,
                                         uint8_t *flags)
{
    if (r->end - at < 2)
        return fail_more(r, "the rest of an escape");
    uint8_t byte = short_escapes[at[1]];
    if (CX_LIKELY(byte != 0)) {
        if (byte != '/')
            *flags &= (uint8_t)~CX_JSON_PLAIN;
        *(*to)++ = byte;
        return at + 2;
    }
    if (at[1] != 'u')
        return fail_here(r, at + 1, "one of \"\\/bfnrtu after a backslash");
    uint32_t code;
    at = read_unicode_escape(r, at + 2, &code);
    if (at == NULL)
        return NULL;
    if (code >= 0x7F || !cx_json_byte_is_plain((uint8_t)code))
        *flags &= (uint8_t)~CX_JSON_PLAIN;
    if (code >= 0xD800 && code < 0xE000)
        *flags |= CX_JSON_SURROGATE;
    *to += cx_utf8_encode(code, *to);
    return at;
}

static const uint8_t *finish_decoded(reading *r, const uint8_t *at, size_t size, uint8_t flags,
                                     cx_json *out)
{
    if (size > UINT32_MAX)
        return fail_at(r, CX_E_LIMIT, "U_LIMIT", at, "a string of over 4 GiB", "a shorter one");
    char *text = cx_arena_push(r->arena, size, 1);
    if (text == NULL)
        return fail_nomem(r);
    if (size != 0)
        memcpy(text, r->parser->text, size);
    *out = (cx_json){.type = CX_JSON_STRING, .flags = flags, .count = (uint32_t)size, .text = text};
    if (flags & CX_JSON_SURROGATE)
        r->inherits = true;
    return at + 1;
}

/*
 * A string with escapes: `at` is after its opening quote, [at, checked) is valid and has none.  It
 * is decoded into the parser's scratch memory, since its size is known only at the end.
 */
static const uint8_t *read_escaped(reading *r, const uint8_t *at, const uint8_t *checked,
                                   uint8_t flags, cx_json *out)
{
    cx_json_parser *parser = r->parser;
    size_t used = (size_t)(checked - at);
    if (!grow_block(r, &parser->text, &parser->text_capacity, used + 1024, 1))
        return NULL;
    memcpy(parser->text, at, used);
    at = checked;
    for (;;) {
        /* Space for a block after the run, or for one escape or sequence. */
        if (parser->text_capacity - used < 256 &&
            !grow_block(r, &parser->text, &parser->text_capacity, used + 1024, 1))
            return NULL;
        uint8_t *to = (uint8_t *)parser->text + used;
        size_t room = parser->text_capacity - used - 2 * CX_JSON_BLOCK;
        const uint8_t *stop = (size_t)(r->end - at) < room ? r->end : at + room;
        size_t run = cx_json_copy_plain(to, at, stop);
        at += run;
        to += run;
        if (at == r->end)
            return fail_more(r, "the closing quote of a string");
        if (at == stop) {
            used += run;
            continue;
        }
        if (*at == '"')
            return finish_decoded(r, at, used + run, flags, out);
        if (*at == '\\') {
            at = read_escape(r, at, &to, &flags);
        } else if (*at == 0x7F) {
            flags &= (uint8_t)~CX_JSON_PLAIN;
            *to++ = *at++;
        } else if (*at < 0x20) {
            return fail_here(r, at, "no raw control character in a string");
        } else {
            flags &= (uint8_t)~CX_JSON_PLAIN;
            const uint8_t *after = read_utf8(r, at);
            while (at < after)
                *to++ = *at++;
            at = after;
        }
        if (at == NULL)
            return NULL;
        used = (size_t)(to - (uint8_t *)parser->text);
    }
}

/* A string of which [at, checked) is plain and the byte at `checked` is not. */
static const uint8_t *read_string_rest(reading *r, const uint8_t *at, const uint8_t *checked,
                                       cx_json *out)
{
    uint8_t flags = CX_JSON_PLAIN;
    for (;;) {
        if (checked == r->end)
            return fail_more(r, "the closing quote of a string");
        if (*checked == '"')
            break;
        if (*checked == '\\')
            return read_escaped(r, at, checked, flags, out);
        if (*checked < 0x20)
            return fail_here(r, checked, "no raw control character in a string");
        flags = 0;
        if (*checked == 0x7F)
            checked++;
        while (checked < r->end && *checked >= 0x80) {
            checked = read_utf8(r, checked);
            if (checked == NULL)
                return NULL;
        }
        checked = cx_json_scan_plain(checked, r->end);
    }
    size_t size = (size_t)(checked - at);
    if (size > UINT32_MAX)
        return fail_at(r, CX_E_LIMIT, "U_LIMIT", at, "a string of over 4 GiB", "a shorter one");
    *out = (cx_json){
        .type = CX_JSON_STRING, .flags = flags, .count = (uint32_t)size, .text = (const char *)at};
    return checked + 1;
}

/* `at` is after the opening quote. */
static inline const uint8_t *read_string(reading *r, const uint8_t *at, cx_json *out)
{
    const uint8_t *stop = cx_json_scan_plain(at, r->end);
    size_t size = (size_t)(stop - at);
    if (CX_UNLIKELY(stop == r->end || *stop != '"' || size > UINT32_MAX))
        return read_string_rest(r, at, stop, out);
    *out = (cx_json){.type = CX_JSON_STRING,
                     .flags = CX_JSON_PLAIN,
                     .count = (uint32_t)size,
                     .text = (const char *)at};
    return stop + 1;
}

/* --- numbers and words --------------------------------------------------------------------- */

static inline bool is_digit(uint8_t byte)
{
    return (uint8_t)(byte - '0') <= 9;
}

/* One or more digits. */
static const uint8_t *read_digits(reading *r, const uint8_t *at)
{
    if (at == r->end || !is_digit(*at))
        return fail_here(r, at, "a digit");
    do
        at++;
    while (at < r->end && is_digit(*at));
    return at;
}

/* Whether a number that ends at the end of the text may be truncated. */
static bool number_may_go_on(const reading *r, const uint8_t *after)
{
    return after == r->end && (r->depth != 0 || !r->is_last);
}

/* The flags of a literal with so many digits before the point, and in the exponent. */
static uint8_t double_flags(cx_str literal, size_t whole, size_t exponent)
{
    if (cx_number_is_canonical_py(literal))
        return CX_JSON_CANONICAL;
    /* Too short to overflow: below 10^(200 + 99). */
    if (whole <= 200 && exponent <= 2)
        return 0;
    double value;
    return cx_number_parse(literal, &value) ? 0 : CX_JSON_OVERFLOW;
}

/* A number from `start` with a fraction or exponent; its integer part, of `whole` digits, ends at
 * `at`. */
static const uint8_t *read_double(reading *r, const uint8_t *start, const uint8_t *at, size_t whole,
                                  cx_json *out)
{
    size_t exponent = 0;
    if (*at == '.') {
        at = read_digits(r, at + 1);
        if (at == NULL)
            return NULL;
    }
    if (at < r->end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < r->end && (*at == '+' || *at == '-'))
            at++;
        const uint8_t *first = at;
        at = read_digits(r, at);
        if (at == NULL)
            return NULL;
        exponent = (size_t)(at - first);
    }
    if (number_may_go_on(r, at))
        return fail_more(r, "what follows a number");
    size_t size = (size_t)(at - start);
    if (size > UINT32_MAX)
        return fail_at(r, CX_E_LIMIT, "U_LIMIT", start, "a number of over 4 GiB", "a shorter one");
    cx_str literal = {(const char *)start, size};
    uint8_t flags = double_flags(literal, whole, exponent);
    if (flags & CX_JSON_OVERFLOW)
        r->inherits = true;
    *out = (cx_json){
        .type = CX_JSON_DOUBLE, .flags = flags, .count = (uint32_t)size, .text = literal.data};
    return at;
}

static const uint8_t *fail_digits(reading *r, const uint8_t *start, size_t digits)
{
    char found[64], expected[64];
    (void)snprintf(found, sizeof found, "an integer of %zu digits", digits);
    (void)snprintf(expected, sizeof expected, "at most %u", r->parser->limits.integer_digits);
    return fail_at(r, CX_E_LIMIT, "U_NUMBER", start, found, expected);
}

/* `at` is a digit or a minus sign. */
static const uint8_t *read_number(reading *r, const uint8_t *at, cx_json *out)
{
    const uint8_t *start = at, *first = at + (*at == '-');
    at = first;
    if (CX_UNLIKELY(at == r->end || !is_digit(*at)))
        return fail_here(r, at, "a digit");
    uint8_t lead = *at++;
    while (at < r->end && is_digit(*at))
        at++;
    size_t digits = (size_t)(at - first);
    if (CX_UNLIKELY(lead == '0' && digits > 1))
        return fail_here(r, first + 1, "no digit after a leading zero");
    if (at < r->end && (*at == '.' || (*at | 0x20) == 'e'))
        return read_double(r, start, at, digits, out);
    if (CX_UNLIKELY(number_may_go_on(r, at)))
        return fail_more(r, "what follows a number");
    if (CX_UNLIKELY(digits > r->parser->limits.integer_digits || digits >= UINT32_MAX))
        return fail_digits(r, start, digits);
    bool minus_zero = lead == '0' && first != start;
    *out = (cx_json){.type = CX_JSON_INT,
                     .flags = minus_zero ? 0 : CX_JSON_CANONICAL,
                     .count = (uint32_t)(at - start),
                     .text = (const char *)start};
    return at;
}

/* How many letters of a word match at `at`: its size, or fewer when the text is truncated or
 * differs. */
static size_t match_word(const reading *r, const uint8_t *at, cx_str word)
{
    size_t matched = 0;
    while (matched < word.size && at + matched < r->end &&
           at[matched] == (uint8_t)word.data[matched])
        matched++;
    return matched;
}

static const uint8_t *read_word(reading *r, const uint8_t *at, cx_str word, cx_json_type type,
                                cx_json *out)
{
    size_t matched = match_word(r, at, word);
    if (matched != word.size) {
        char expected[16];
        (void)snprintf(expected, sizeof expected, "%.*s", (int)word.size, word.data);
        return fail_here(r, at + matched, expected);
    }
    *out = (cx_json){.type = (uint8_t)type};
    return at + word.size;
}

/* NaN, Infinity or -Infinity, which Python writes and RFC 8259 does not allow. */
static const uint8_t *read_nonfinite(reading *r, const uint8_t *at, cx_json *out)
{
    cx_str word = *at == 'N'   ? CX_STR("NaN")
                  : *at == 'I' ? CX_STR("Infinity")
                               : CX_STR("-Infinity");
    if (match_word(r, at, word) == word.size && !r->parser->limits.allow_nonfinite)
        return fail_at(r, CX_E_SYNTAX, "U_NUMBER", at, word.data, "a finite number");
    if (!r->parser->limits.allow_nonfinite)
        return fail_here(r, at + (*at == '-'), *at == '-' ? "a digit" : "a value");
    const uint8_t *after = read_word(r, at, word, CX_JSON_DOUBLE, out);
    if (after != NULL) {
        out->text = (const char *)at;
        out->count = (uint32_t)word.size;
        out->flags = CX_JSON_NONFINITE;
        r->inherits = true;
    }
    return after;
}

/* Any value but a string, array or object. */
static const uint8_t *read_scalar(reading *r, const uint8_t *at, cx_json *out)
{
    switch (*at) {
    case 't': return read_word(r, at, CX_STR("true"), CX_JSON_TRUE, out);
    case 'f': return read_word(r, at, CX_STR("false"), CX_JSON_FALSE, out);
    case 'n': return read_word(r, at, CX_STR("null"), CX_JSON_NULL, out);
    case '-':
        if (CX_LIKELY(r->end - at < 2 || at[1] != 'I'))
            return read_number(r, at, out);
        return read_nonfinite(r, at, out);
    case 'N':
    case 'I': return read_nonfinite(r, at, out);
    default:
        if (CX_LIKELY(is_digit(*at)))
            return read_number(r, at, out);
        return fail_here(r, at, "a value");
    }
}

/* --- arrays and objects -------------------------------------------------------------------- */

static inline frame *top_frame(reading *r)
{
    return (frame *)r->parser->frames + (r->depth - 1);
}

/* The first document allocates the table; without memory no shape is expected. */
static cx_json_shape *outermost_shape(cx_json_parser *parser)
{
    if (CX_UNLIKELY(parser->shapes == NULL)) {
        parser->shapes = cx_alloc_zeroed(parser->alloc, 1, sizeof(cx_json_shapes));
        if (parser->shapes == NULL)
            return NULL;
        ((cx_json_shapes *)parser->shapes)->used = 1;
    }
    return ((cx_json_shapes *)parser->shapes)->items;
}

/* The expected shape for the bracket about to be opened. */
static inline cx_json_shape *expected_shape(reading *r)
{
    if (r->depth == 0)
        return outermost_shape(r->parser);
    const frame *outer = top_frame(r);
    if (!outer->is_object)
        return outer->shape;
    if (!outer->follows)
        return NULL;
    size_t member = (r->waiting - outer->first) / 2;
    cx_json_shape *known = member < CX_JSON_SHAPE_MEMBERS ? outer->shape->inside[member] : NULL;
    return known != NULL ? known : cx_json_shape_inside(r->parser->shapes, outer->shape, member);
}

static bool open_bracket(reading *r, const uint8_t *at)
{
    cx_json_parser *parser = r->parser;
    if (CX_UNLIKELY(r->depth >= parser->limits.depth)) {
        char expected[48];
        (void)snprintf(expected, sizeof expected, "at most %u levels", parser->limits.depth);
        (void)fail_at(r, CX_E_LIMIT, "U_DEPTH", at, "one bracket more", expected);
        return false;
    }
    if (CX_UNLIKELY(r->depth == parser->frame_capacity) &&
        !grow_block(r, &parser->frames, &parser->frame_capacity, r->depth + 64, sizeof(frame)))
        return false;
    bool is_object = *at == '{';
    cx_json_shape *shape = expected_shape(r);
    ((frame *)parser->frames)[r->depth++] =
        (frame){r->waiting, at, shape, is_object, is_object && shape != NULL};
    return true;
}

/* The position of the name of member `index` in the object that starts at `at` and was read without
 * failure.  Needed because a decoded name does not point into the text. */
static const uint8_t *find_name(const reading *r, const uint8_t *at, size_t index)
{
    size_t depth = 0, commas = 0;
    for (; at < r->end && (depth != 1 || commas != index); at++) {
        if (*at == '"') {
            for (at++; *at != '"'; at++)
                at += *at == '\\';
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']') {
            depth--;
        } else if (*at == ',' && depth == 1) {
            commas++;
        }
    }
    while (*at != '"')
        at++;
    return at;
}

static void fail_duplicate(reading *r, const frame *open, const cx_json_member *members,
                           uint32_t index)
{
    char found[80];
    cx_str name = cx_json_text(&members[index].name);
    bool shown = (members[index].name.flags & CX_JSON_PLAIN) != 0;
    if (shown)
        (void)snprintf(found, sizeof found, "the name \"%.*s%s\" again",
                       (int)(name.size > 40 ? 40 : name.size), name.data,
                       name.size > 40 ? "..." : "");
    (void)fail_at(r, CX_E_FORMAT, "U_DUPKEY", find_name(r, open->start, index),
                  shown ? found : "a name again", "distinct names in an object");
}

static bool close_object(reading *r, const frame *open, const cx_json *inside, uint32_t count,
                         cx_json *out)
{
    cx_json_parser *parser = r->parser;
    const cx_json_member *members = (const cx_json_member *)inside;
    cx_json_member *sorted = CX_ARENA_ARRAY(r->arena, cx_json_member, count);
    if (sorted == NULL) {
        (void)fail_nomem(r);
        return false;
    }
    *out = (cx_json){.type = CX_JSON_OBJECT, .count = count, .members = sorted};
    if (CX_LIKELY(open->follows && open->shape->count == count)) {
        for (uint32_t i = 0; i < count; i++)
            sorted[i] = members[open->shape->order[i]];
        open->shape->misses = 0;
        return true;
    }
    if (cx_json_keys_needed(count) > parser->key_capacity &&
        !grow_block(r, &parser->keys, &parser->key_capacity, cx_json_keys_needed(count) + 32,
                    sizeof(cx_json_key)))
        return false;
    uint32_t twice =
        cx_json_sort_members(members, count, CX_JSON_BY_CODE_POINT, parser->keys, sorted);
    if (CX_UNLIKELY(twice != count)) {
        fail_duplicate(r, open, members, twice);
        return false;
    }
    /* Few keys are sorted in place, so they are in order now. */
    if (open->shape != NULL && count <= CX_JSON_SHAPE_MEMBERS)
        cx_json_shape_miss(open->shape, members, parser->keys, count, r->start, r->end);
    return true;
}

static bool close_array(reading *r, const cx_json *inside, uint32_t count, cx_json *out)
{
    cx_json *items = CX_ARENA_ARRAY(r->arena, cx_json, count);
    if (items == NULL) {
        (void)fail_nomem(r);
        return false;
    }
    memcpy(items, inside, count * sizeof *items);
    *out = (cx_json){.type = CX_JSON_ARRAY, .count = count, .items = items};
    return true;
}

/* Replaces the values of the innermost open bracket by the array or object they make. */
static bool close_bracket(reading *r, const uint8_t *at)
{
    frame open = *top_frame(r);
    size_t held = r->waiting - open.first, count = open.is_object ? held / 2 : held;
    cx_json *inside = (cx_json *)r->parser->stack + open.first, made;
    if (CX_UNLIKELY(count > UINT32_MAX)) {
        (void)fail_at(r, CX_E_LIMIT, "U_LIMIT", at, "over 2^32 - 1 items", "fewer");
        return false;
    }
    if (count == 0)
        made = (cx_json){.type = open.is_object ? CX_JSON_OBJECT : CX_JSON_ARRAY};
    else if (open.is_object ? !close_object(r, &open, inside, (uint32_t)count, &made)
                            : !close_array(r, inside, (uint32_t)count, &made))
        return false;
    if (CX_UNLIKELY(r->inherits))
        made.flags = cx_json_inherit(inside, held);
    *inside = made;
    r->waiting = open.first + 1;
    r->depth--;
    return true;
}

/* --- the grammar --------------------------------------------------------------------------- */

static inline const uint8_t *skip_space(const uint8_t *at, const uint8_t *end)
{
    /* Usually there is no white space, else mostly one blank. */
    if (CX_LIKELY(at<end && * at> ' '))
        return at;
    if (CX_LIKELY(end - at >= 2 && *at == ' ' && at[1] > ' '))
        return at + 1;
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

/* From the start of a member to the start of its value. */
static inline const uint8_t *read_name(reading *r, const uint8_t *at, const char *expected)
{
    at = skip_space(at, r->end);
    if (CX_UNLIKELY(at == r->end || *at != '"'))
        return fail_here(r, at, expected);
    cx_json *slot = next_slot(r);
    if (CX_UNLIKELY(slot == NULL))
        return NULL;
    frame *open = top_frame(r);
    const uint8_t *after = NULL;
    if (CX_LIKELY(open->follows))
        after = cx_json_shape_match(open->shape, (r->waiting - open->first) / 2, at, r->end);
    if (CX_LIKELY(after != NULL)) {
        *slot = (cx_json){.type = CX_JSON_STRING,
                          .flags = CX_JSON_PLAIN,
                          .count = (uint32_t)(after - at - 2),
                          .text = (const char *)at + 1};
        at = after;
    } else {
        open->follows = false;
        at = read_string(r, at + 1, slot);
        if (CX_UNLIKELY(at == NULL))
            return NULL;
    }
    r->waiting++;
    at = skip_space(at, r->end);
    if (CX_UNLIKELY(at == r->end || *at != ':'))
        return fail_here(r, at, "':'");
    return at + 1;
}

/*
 * Reads one value and leaves it alone on the stack.  Three positions in the grammar, each a label:
 * before a value, after an opening bracket, after a value.
 */
static const uint8_t *read_value(reading *r, const uint8_t *at)
{
    cx_json *slot;

before_value:
    at = skip_space(at, r->end);
    if (CX_UNLIKELY(at == r->end))
        return fail_more(r, "a value");
    if (*at == '{' || *at == '[') {
        if (CX_UNLIKELY(!open_bracket(r, at)))
            return NULL;
        at++;
        goto after_bracket;
    }
    slot = next_slot(r);
    if (CX_UNLIKELY(slot == NULL))
        return NULL;
    at = *at == '"' ? read_string(r, at + 1, slot) : read_scalar(r, at, slot);
    if (CX_UNLIKELY(at == NULL))
        return NULL;
    r->waiting++;
    goto value_end;

after_bracket:
    at = skip_space(at, r->end);
    if (CX_UNLIKELY(at == r->end))
        return fail_more(r, top_frame(r)->is_object ? "a name or '}'" : "a value or ']'");
    if (!top_frame(r)->is_object) {
        if (*at != ']')
            goto before_value;
    } else if (*at != '}') {
        at = read_name(r, at, "a name or '}'");
        if (CX_UNLIKELY(at == NULL))
            return NULL;
        goto before_value;
    }
    if (CX_UNLIKELY(next_slot(r) == NULL || !close_bracket(r, at)))
        return NULL;
    at++;

value_end:
    if (r->depth == 0)
        return at;
    at = skip_space(at, r->end);
    bool is_object = top_frame(r)->is_object;
    if (CX_LIKELY(at != r->end && *at == ',')) {
        at++;
        if (is_object)
            at = read_name(r, at, "a name");
        if (CX_UNLIKELY(at == NULL))
            return NULL;
        goto before_value;
    }
    if (CX_UNLIKELY(at == r->end || *at != (is_object ? '}' : ']')))
        return fail_here(r, at, is_object ? "',' or '}'" : "',' or ']'");
    if (CX_UNLIKELY(!close_bracket(r, at)))
        return NULL;
    at++;
    goto value_end;
}

/* --- public functions ---------------------------------------------------------------------- */

void cx_json_parser_init(cx_json_parser *parser, const cx_alloc *alloc,
                         const cx_json_limits *limits)
{
    *parser = (cx_json_parser){.alloc = alloc};
    parser->limits = limits != NULL ? *limits : (cx_json_limits)CX_JSON_LIMITS_INIT;
}

void cx_json_parser_done(cx_json_parser *parser)
{
    if (parser == NULL || parser->alloc == NULL)
        return;
    const cx_alloc *alloc = parser->alloc;
    cx_alloc_free(alloc, parser->stack, parser->stack_capacity * sizeof(cx_json));
    cx_alloc_free(alloc, parser->frames, parser->frame_capacity * sizeof(frame));
    cx_alloc_free(alloc, parser->keys, parser->key_capacity * sizeof(cx_json_key));
    cx_alloc_free(alloc, parser->text, parser->text_capacity);
    cx_alloc_free(alloc, parser->shapes, sizeof(cx_json_shapes));
    *parser = (cx_json_parser){0};
}

/* Reads the first value of the text into *out; NULL on failure. */
static const uint8_t *read_first(reading *r, cx_json *out)
{
    if (r->end - r->start >= 3 && memcmp(r->start, "\xEF\xBB\xBF", 3) == 0)
        return fail_at(r, CX_E_SYNTAX, "U_BOM", r->start, "a byte order mark", "a value");
    const uint8_t *at = read_value(r, r->start);
    if (at != NULL)
        *out = *(const cx_json *)r->parser->stack;
    return at;
}

static reading reading_of(cx_json_parser *parser, cx_str text, bool is_last, cx_arena *arena,
                          cx_err *err)
{
    /* The data of an empty text may be NULL, on which pointer arithmetic is undefined. */
    const uint8_t *start = (const uint8_t *)(text.data != NULL ? text.data : "");
    return (reading){.parser = parser,
                     .arena = arena,
                     .err = err,
                     .start = start,
                     .end = start + text.size,
                     .is_last = is_last,
                     .status = CX_SUCCESS};
}

static cx_status fail_bytes(reading *r, const uint8_t *at)
{
    char expected[64];
    (void)snprintf(expected, sizeof expected, "at most %llu bytes",
                   (unsigned long long)r->parser->limits.bytes);
    (void)fail_at(r, CX_E_LIMIT, "U_LIMIT", at, "a longer text", expected);
    return r->status;
}

cx_status cx_json_parse(cx_json_parser *parser, cx_str text, cx_arena *arena, cx_json *out,
                        cx_err *err)
{
    reading r = reading_of(parser, text, true, arena, err);
    uint64_t limit = parser->limits.bytes;
    if (limit != 0 && text.size > limit)
        return fail_bytes(&r, r.start + limit);
    cx_json value;
    const uint8_t *at = read_first(&r, &value);
    if (at == NULL)
        return r.status;
    at = skip_space(at, r.end);
    if (at != r.end) {
        (void)fail_here(&r, at, "the end of the text");
        return r.status;
    }
    *out = value;
    return CX_SUCCESS;
}

cx_status cx_json_parse_prefix(cx_json_parser *parser, cx_str text, bool is_last, cx_arena *arena,
                               cx_json *out, size_t *out_used, cx_err *err)
{
    reading r = reading_of(parser, text, is_last, arena, err);
    uint64_t limit = parser->limits.bytes;
    cx_json value;
    const uint8_t *at = read_first(&r, &value);
    bool more = at == NULL && r.status.code == CX_E_MORE;
    if (limit != 0 &&
        ((at != NULL && (uint64_t)(at - r.start) > limit) || (more && text.size >= limit)))
        return fail_bytes(&r, r.start + limit);
    if (at == NULL)
        return r.status;
    *out = value;
    *out_used = (size_t)(at - r.start);
    return CX_SUCCESS;
}

cx_status cx_json_parse_text(cx_str text, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json_parser parser;
    cx_json_parser_init(&parser, cx_alloc_default(), NULL);
    cx_status status = cx_json_parse(&parser, text, arena, out, err);
    cx_json_parser_done(&parser);
    return status;
}
