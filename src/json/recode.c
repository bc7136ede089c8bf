/*
 * recode.c - see recode.h.
 *
 * Nothing is copied while it is read.  Text that is canonical already is a slice of the input, up
 * to whole containers; only a container that differs somewhere inside is composed again, from its
 * slices.
 *
 * I1  Canonical text is never longer than what was read.
 * I2  A byte is examined only when none before it was the LF.  Blocks may be read past the LF,
 * which
 *     the slack allows.
 * I3  Containers composed inside of the value are written to the piece area, which starts after the
 *     space for the whole text; the value itself is written to that space, from intact pieces.
 * I4  Whole blocks are stored, past the end of the output, into slack or memory not written yet.
 * I5  Members of open brackets are parts in the order they came; each bracket knows its first.
 *     They are sorted when it closes, and only when they did not come so.
 */
#include "json/recode.h"

#include "json/internal.h"
#include "json/number.h"

_Static_assert(CX_JSON_RECODE_SLACK >= 2 * 16,
               "a block may start at the LF, or end one block later");

typedef struct open_bracket {
    const char *start;
    uint32_t first_part;
    bool is_object;
    bool same;   /* canonical so far */
    bool sorted; /* members ascend so far */
} open_bracket;

typedef struct recoding {
    cx_json_recoder *recoder;
    bool checks_only;
    uint8_t *pieces; /* where the next piece is written (I3) */
    uint8_t *limit;  /* followed by slack */
    uint32_t depth;
    open_bracket open[CX_JSON_RECODE_DEPTH];
} recoding;

static inline size_t output_left(const recoding *r)
{
    return (size_t)(r->limit - r->pieces);
}

void cx_json_recoder_init(cx_json_recoder *recoder, const cx_json_limits *limits, uint32_t outer)
{
    uint32_t left = limits->depth > outer ? limits->depth - outer : 0;
    recoder->depth = left < CX_JSON_RECODE_DEPTH ? left : CX_JSON_RECODE_DEPTH;
    recoder->integer_digits = limits->integer_digits;
    recoder->part_count = 0;
}

/* --- scalars ------------------------------------------------------------------------------- */

/* The first byte from `at` on that is not plain, at the latest the LF (I2). */
static inline const char *skip_plain(const char *at)
{
    const uint8_t *from = (const uint8_t *)at;
#ifdef CX_JSON_BLOCKS
    for (;; from += 16) {
        cx_json_mask mask = cx_json_block_not_plain(cx_json_block_load(from));
        if (mask != 0)
            return (const char *)from + cx_json_mask_first(mask);
    }
#else
    while (cx_json_byte_is_plain(*from))
        from++;
    return (const char *)from;
#endif
}

/* The value of a hex digit as Python writes it, above 15 for all else. */
static inline unsigned lower_hex(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

/* The size of an escape that Python writes the same way; 0 for all others. */
static size_t same_escape(const char *at)
{
    switch (at[1]) {
    case '"':
    case '\\':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't': return 2;
    case 'u': break;
    default: return 0;
    }
    unsigned code = 0;
    for (size_t i = 2; i < 6; i++) {
        unsigned digit = lower_hex(at[i]);
        if (digit > 15)
            return 0;
        code = code << 4 | digit;
    }
    /* Below 0x7F a shorter spelling exists; surrogates come in pairs. */
    return code < 0x7F || (code >= 0xD800 && code < 0xE000) ? 0 : 6;
}

/* From after the opening quote to after the closing one, of a string that Python writes the
 * same. */
static inline const char *skip_string(const char *at)
{
    for (;;) {
        at = skip_plain(at);
        if (CX_LIKELY(*at == '"'))
            return at + 1;
        size_t size = *at == '\\' ? same_escape(at) : 0;
        if (size == 0)
            return NULL;
        at += size;
    }
}

static inline bool is_digit(char c)
{
    return (uint8_t)(c - '0') <= 9;
}

static inline const char *skip_digits(const char *at)
{
#ifdef CX_JSON_BLOCKS
    /* Lengths of numbers are unpredictable: a whole block is classified at once. */
    for (;; at += 16) {
        cx_json_mask others = cx_json_block_not_digits(cx_json_block_load((const uint8_t *)at));
        if (CX_LIKELY(others != 0))
            return at + cx_json_mask_first(others);
    }
#else
    while (is_digit(*at))
        at++;
    return at;
#endif
}

/* Returns the end of a number; *out_whole is the end of its integer part. */
static inline const char *skip_number(const cx_json_recoder *recoder, const char *at,
                                      const char **out_whole)
{
    const char *first = at + (*at == '-');
    const char *after = skip_digits(first);
    size_t digits = (size_t)(after - first);
    if (CX_UNLIKELY(digits == 0 || (*first == '0' && digits > 1)))
        return NULL;
    *out_whole = after;
    bool is_int = *after != '.' && (*after | 0x20) != 'e';
    if (CX_LIKELY(is_int))
        return digits > recoder->integer_digits ? NULL : after;
    if (*after == '.') {
        after = skip_digits(after + 1);
        if (!is_digit(after[-1]))
            return NULL;
    }
    if ((*after | 0x20) == 'e') {
        after++;
        after += *after == '+' || *after == '-';
        if (!is_digit(*after))
            return NULL;
        after = skip_digits(after);
    }
    return after;
}

/* The size of true, false or null; 0 for anything else. */
static inline size_t word_size(const char *at)
{
    if (memcmp(at, "true", 4) == 0 || memcmp(at, "null", 4) == 0)
        return 4;
    return memcmp(at, "false", 5) == 0 ? 5 : 0;
}

/* A double whose spelling differs from Python's: its canonical form becomes a piece (I1, I3). */
static cx_str respell_double(recoding *r, cx_str literal)
{
    char text[CX_NUMBER_TEXT_SIZE];
    double value;
    if (!cx_number_parse(literal, &value))
        return (cx_str){NULL, 0};
    if (r->checks_only)
        return literal;
    cx_str made = {(const char *)r->pieces, cx_number_write_py(value, text)};
    if (made.size > literal.size || made.size > output_left(r))
        return (cx_str){NULL, 0};
    memcpy(r->pieces, text, made.size);
    r->pieces += made.size;
    return made;
}

/* The canonical text of a number; data NULL when it is declined. */
static inline cx_str recode_number(recoding *r, cx_str literal, bool is_int)
{
    /* Minus zero is the only integer whose canonical spelling differs. */
    if (CX_LIKELY(is_int))
        return literal.data[0] != '-' || literal.data[1] != '0' ? literal : (cx_str){NULL, 0};
    return cx_number_is_canonical_py(literal) ? literal : respell_double(r, literal);
}

/* Reads a scalar and returns its end; *out is its canonical text. */
static inline const char *recode_simple(recoding *r, const char *at, cx_str *out)
{
    const char *after;
    if (*at == '"') {
        after = skip_string(at + 1);
    } else if (is_digit(*at) || *at == '-') {
        const char *whole;
        after = skip_number(r->recoder, at, &whole);
        if (CX_UNLIKELY(after == NULL))
            return NULL;
        *out = recode_number(r, (cx_str){at, (size_t)(after - at)}, whole == after);
        return out->data != NULL ? after : NULL;
    } else {
        size_t size = word_size(at);
        after = size != 0 ? at + size : NULL;
    }
    if (CX_UNLIKELY(after == NULL))
        return NULL;
    *out = (cx_str){at, (size_t)(after - at)};
    return after;
}

/* --- parts --------------------------------------------------------------------------------- */

/* The first eight bytes as a number, zeros after a short name: their order is that of the names
 * where they differ. */
static inline uint64_t prefix_of(cx_str name)
{
    uint64_t prefix = 0;
    if (CX_UNLIKELY(name.size == 0))
        return 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(&prefix, name.data, 8);
    prefix = __builtin_bswap64(prefix);
    return name.size < 8 ? prefix & ~(uint64_t)0 << (64 - 8 * name.size) : prefix;
#else
    memcpy(&prefix, name.data, name.size < 8 ? name.size : 8);
    return prefix;
#endif
}

static inline int compare_parts(const cx_json_part *a, const cx_json_part *b)
{
    if (CX_LIKELY(a->prefix != b->prefix))
        return a->prefix < b->prefix ? -1 : 1;
    return cx_str_cmp(a->name, b->name);
}

/* Adds a part to the innermost bracket; NULL when there are too many. */
static inline cx_json_part *add_part(recoding *r)
{
    cx_json_recoder *recoder = r->recoder;
    if (CX_UNLIKELY(recoder->part_count == CX_JSON_RECODE_PARTS))
        return NULL;
    return &recoder->parts[recoder->part_count++];
}

static inline bool add_member(recoding *r, open_bracket *object, cx_str name)
{
    cx_json_part *part = add_part(r);
    if (CX_UNLIKELY(part == NULL))
        return false;
    part->name = name;
    part->prefix = prefix_of(name);
    if (part != &r->recoder->parts[object->first_part] && compare_parts(part - 1, part) >= 0)
        object->same = object->sorted = false;
    return true;
}

/* Consecutive items with only a comma between them are one part. */
static inline bool add_item(recoding *r, const open_bracket *array, cx_str value)
{
    cx_json_recoder *recoder = r->recoder;
    if (recoder->part_count != array->first_part) {
        cx_str *last = &recoder->parts[recoder->part_count - 1].value;
        if (last->data + last->size + 1 == value.data && *(value.data - 1) == ',') {
            last->size += 1 + value.size;
            return true;
        }
    }
    cx_json_part *part = add_part(r);
    if (part != NULL)
        part->value = value;
    return part != NULL;
}

/* False when two names are equal. */
static bool sort_parts(cx_json_part *parts, uint32_t count)
{
    if (count > CX_JSON_RECODE_UNSORTED)
        return false;
    for (uint32_t i = 1; i < count; i++) {
        cx_json_part held = parts[i];
        uint32_t at = i;
        int order = 1;
        while (at > 0 && (order = compare_parts(&held, &parts[at - 1])) < 0) {
            parts[at] = parts[at - 1];
            at--;
        }
        parts[at] = held;
        if (order == 0)
            return false;
    }
    return true;
}

/* --- composing ----------------------------------------------------------------------------- */

/* As memcpy, but reads and stores whole blocks, up to 15 bytes past the end (I4).  Those may be in
 * `to` itself when a piece is right before it, so each block is read before it is stored. */
static inline uint8_t *copy_blocks(uint8_t *to, const char *from, size_t size)
{
    uint8_t block[16];
    for (size_t done = 0; done < size; done += sizeof block) {
        memcpy(block, from + done, sizeof block);
        memcpy(to + done, block, sizeof block);
    }
    return to + size;
}

static inline uint8_t *put_member(uint8_t *to, const cx_json_part *part)
{
    const char *start = part->name.data - 1, *colon = part->name.data + part->name.size + 1;
    /* Nearly always the value directly follows the colon, as in the output. */
    if (CX_LIKELY(part->value.data == colon + 1))
        return copy_blocks(to, start, (size_t)(colon + 1 - start) + part->value.size);
    to = copy_blocks(to, start, (size_t)(colon - start));
    *to++ = ':';
    return copy_blocks(to, part->value.data, part->value.size);
}

/* Writes an array or object from its parts; returns the position after it. */
static uint8_t *compose_container(uint8_t *to, const cx_json_part *parts, uint32_t count,
                                  bool is_object)
{
    *to++ = is_object ? '{' : '[';
    for (uint32_t i = 0; i < count; i++) {
        if (i != 0)
            *to++ = ',';
        to = is_object ? put_member(to, &parts[i])
                       : copy_blocks(to, parts[i].value.data, parts[i].value.size);
    }
    *to++ = is_object ? '}' : ']';
    return to;
}

/* --- the grammar --------------------------------------------------------------------------- */

static inline bool open_container(recoding *r, const char *at)
{
    if (CX_UNLIKELY(r->depth == r->recoder->depth))
        return false;
    r->open[r->depth++] = (open_bracket){at, r->recoder->part_count, *at == '{', true, true};
    return true;
}

/* At a closing bracket.  *out is the canonical text of the innermost container; at depth 0 it is
 * the text as read, and finish_recode writes the canonical form. */
static inline bool close_container(recoding *r, const char *at, cx_str *out)
{
    cx_json_recoder *recoder = r->recoder;
    const open_bracket *top = &r->open[--r->depth];
    cx_json_part *parts = &recoder->parts[top->first_part];
    uint32_t count = recoder->part_count - top->first_part;
    *out = (cx_str){top->start, (size_t)(at + 1 - top->start)};
    if (!top->sorted && !sort_parts(parts, count))
        return false;
    if (r->depth == 0)
        return true;
    recoder->part_count = top->first_part;
    if (top->same || r->checks_only)
        return true;
    /* Not longer than it was (I1). */
    if (out->size > output_left(r))
        return false;
    uint8_t *start = r->pieces;
    r->pieces = compose_container(start, parts, count, top->is_object);
    *out = (cx_str){(const char *)start, (size_t)(r->pieces - start)};
    return true;
}

/* Writes the outermost value to its final place; its pieces are after that (I3). */
static size_t finish_recode(const recoding *r, cx_str value, bool is_container, uint8_t *to)
{
    const open_bracket *outermost = &r->open[0];
    if (!is_container || outermost->same) {
        memcpy(to, value.data, value.size);
        return value.size;
    }
    return (size_t)(compose_container(to, r->recoder->parts, r->recoder->part_count,
                                      outermost->is_object) -
                    to);
}

/* Blanks inside of a container make its text not canonical. */
static inline const char *skip_blanks(recoding *r, const char *at)
{
    if (CX_LIKELY(*at != ' '))
        return at;
    if (r->depth != 0)
        r->open[r->depth - 1].same = false;
    return cx_json_recode_blanks(at);
}

static inline const char *read_name(recoding *r, const char *at)
{
    at = skip_blanks(r, at);
    if (CX_UNLIKELY(*at != '"'))
        return NULL;
    const char *end = skip_plain(at + 1);
    cx_str name = {at + 1, (size_t)(end - at) - 1};
    if (CX_UNLIKELY(*end != '"' || !add_member(r, &r->open[r->depth - 1], name)))
        return NULL;
    at = skip_blanks(r, end + 1);
    return CX_LIKELY(*at == ':') ? at + 1 : NULL;
}

/* Adds a value to the container around it. */
static inline bool add_value(recoding *r, cx_str value, const char *start)
{
    open_bracket *top = &r->open[r->depth - 1];
    if (value.data != start)
        top->same = false;
    if (!top->is_object)
        return add_item(r, top, value);
    r->recoder->parts[r->recoder->part_count - 1].value = value;
    return true;
}

/* The labels are positions in the grammar, as in parse.c. */
static const char *recode_value(recoding *r, const char *at, cx_str *value, bool *is_container)
{
    const char *start;

before_value:
    at = start = skip_blanks(r, at);
    *is_container = *at == '{' || *at == '[';
    if (!*is_container) {
        at = recode_simple(r, at, value);
        if (CX_UNLIKELY(at == NULL))
            return NULL;
        goto after_value;
    }
    if (CX_UNLIKELY(!open_container(r, at)))
        return NULL;
    at = skip_blanks(r, at + 1);
    if (CX_UNLIKELY(*at == ']' || *at == '}'))
        goto at_close;
    if (!r->open[r->depth - 1].is_object)
        goto before_value;

before_name:
    at = read_name(r, at);
    if (CX_UNLIKELY(at == NULL))
        return NULL;
    goto before_value;

after_value:
    if (r->depth == 0)
        return at;
    if (CX_UNLIKELY(!add_value(r, *value, start)))
        return NULL;
    at = skip_blanks(r, at);
    if (*at == ',') {
        at++;
        if (r->open[r->depth - 1].is_object)
            goto before_name;
        goto before_value;
    }

at_close:
    start = r->open[r->depth - 1].start;
    *is_container = true;
    if (CX_UNLIKELY(*at != (r->open[r->depth - 1].is_object ? '}' : ']') ||
                    !close_container(r, at, value)))
        return NULL;
    at++;
    goto after_value;
}

const char *cx_json_recode(cx_json_recoder *recoder, const char *at, const char *lf, uint8_t *to,
                           size_t *out_size)
{
    recoding r; /* the brackets need no clearing */
    cx_str value;
    bool is_container;
    size_t text_size = (size_t)(lf - at) + 1;
    r.recoder = recoder;
    r.depth = 0;
    r.checks_only = to == NULL;
    r.pieces = r.limit = NULL;
    recoder->part_count = 0;
    if (to != NULL) {
        r.pieces = to + text_size + CX_JSON_RECODE_SLACK;
        r.limit = to + CX_JSON_RECODE_EXTRA_BYTES(text_size) - CX_JSON_RECODE_SLACK;
    }
    at = recode_value(&r, at, &value, &is_container);
    if (at != NULL && to != NULL)
        *out_size = finish_recode(&r, value, is_container, to);
    return at;
}

/* --- pieces -------------------------------------------------------------------------------- */

const char *cx_json_recode_name(const char *at, cx_str *out)
{
    at = cx_json_recode_blanks(at);
    if (*at != '"')
        return NULL;
    const char *end = skip_plain(at + 1);
    if (*end != '"')
        return NULL;
    *out = (cx_str){at + 1, (size_t)(end - at) - 1};
    at = cx_json_recode_blanks(end + 1);
    return *at == ':' ? at + 1 : NULL;
}

/* A string, number or word as a value; a number may lack flags that cx_json_parse would set. */
const char *cx_json_recode_scalar(const cx_json_recoder *recoder, const char *at, cx_json *out)
{
    at = cx_json_recode_blanks(at);
    const char *after, *whole;
    if (*at == '"') {
        after = skip_plain(at + 1);
        *out = (cx_json){.type = CX_JSON_STRING,
                         .flags = CX_JSON_PLAIN,
                         .count = (uint32_t)(after - at - 1),
                         .text = at + 1};
        return *after == '"' ? after + 1 : NULL;
    }
    if (is_digit(*at) || *at == '-') {
        after = skip_number(recoder, at, &whole);
        if (after == NULL)
            return NULL;
        *out = (cx_json){.type = whole == after ? CX_JSON_INT : CX_JSON_DOUBLE,
                         .count = (uint32_t)(after - at),
                         .text = at};
        return after;
    }
    size_t size = word_size(at);
    *out = (cx_json){.type = *at == 'n' ? CX_JSON_NULL : *at == 't' ? CX_JSON_TRUE : CX_JSON_FALSE};
    return size != 0 ? at + size : NULL;
}
