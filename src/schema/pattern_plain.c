/*
 * pattern_plain.c - patterns that need no search.
 *
 * What is not understood here is left to PCRE2, so the reader gives up early and often.
 */
#include "schema/pattern_plain.h"

#include <string.h>

#define TIMES_MAX 100000u /* written in braces; more is left to PCRE2 */

typedef struct reader {
    const char *at, *end;
} reader;

static bool next_is(reader *r, char wanted)
{
    if (r->at == r->end || *r->at != wanted)
        return false;
    r->at++;
    return true;
}

static void set_add(uint64_t set[2], unsigned first, unsigned last)
{
    for (unsigned c = first; c <= last; c++)
        set[c >> 6] |= (uint64_t)1 << (c & 63);
}

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* After a backslash: a class, or a character that stands for itself. */
static bool read_escape(reader *r, uint64_t set[2], unsigned *out_char)
{
    if (r->at == r->end)
        return false;
    char c = *r->at++;
    *out_char = 0;
    if (c == 'd' || c == 'w') {
        set_add(set, '0', '9');
        if (c == 'w') {
            set_add(set, 'a', 'z');
            set_add(set, 'A', 'Z');
            set_add(set, '_', '_');
        }
        return true;
    }
    if (c <= ' ' || c > '~' || is_letter_or_digit(c))
        return false;
    *out_char = (unsigned char)c;
    return true;
}

/* One character of a class, or a class within it (then *out_char is 0 and the set has grown). */
static bool read_member(reader *r, uint64_t set[2], unsigned *out_char)
{
    if (r->at == r->end)
        return false;
    char c = *r->at++;
    if (c == '\\')
        return read_escape(r, set, out_char);
    *out_char = (unsigned char)c;
    return c >= ' ' && c <= '~' && c != '[';
}

/* After '['. */
static bool read_class(reader *r, uint64_t set[2])
{
    if (next_is(r, '^') || next_is(r, ']'))
        return false;
    while (!next_is(r, ']')) {
        unsigned first, last;
        if (!read_member(r, set, &first))
            return false;
        if (first == 0)
            continue;
        last = first;
        /* A '-' in front of the bracket is itself. */
        if (r->end - r->at >= 2 && r->at[0] == '-' && r->at[1] != ']') {
            r->at++;
            if (first == '-' || !read_member(r, set, &last) || last < first)
                return false;
        }
        set_add(set, first, last);
    }
    return true;
}

static bool read_number(reader *r, uint32_t *out)
{
    const char *start = r->at;
    uint32_t value = 0;
    for (; r->at != r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        value = value * 10 + (uint32_t)(*r->at - '0');
        if (value > TIMES_MAX)
            return false;
    }
    *out = value;
    return r->at != start;
}

static bool read_times(reader *r, cx_pattern_part *part)
{
    part->min = part->max = 1;
    if (next_is(r, '*')) {
        part->min = 0;
        part->max = UINT32_MAX;
    } else if (next_is(r, '+')) {
        part->max = UINT32_MAX;
    } else if (next_is(r, '?')) {
        part->min = 0;
    } else if (next_is(r, '{')) {
        if (!read_number(r, &part->min))
            return false;
        part->max = part->min;
        if (next_is(r, ',')) {
            part->max = UINT32_MAX;
            if (r->at != r->end && *r->at != '}' && !read_number(r, &part->max))
                return false;
        }
        if (!next_is(r, '}') || part->max < part->min)
            return false;
    }
    /* Whether it is greedy, and doubled quantifiers: not ours. */
    return r->at == r->end || strchr("*+?{", *r->at) == NULL;
}

static bool read_part(reader *r, cx_pattern_part *part)
{
    char c = *r->at++;
    unsigned one = (unsigned char)c;
    memset(part, 0, sizeof *part);
    if (c == '[') {
        if (!read_class(r, part->set))
            return false;
    } else {
        if (c < ' ' || c > '~' || strchr("^$.*+?()]{}|", c) != NULL)
            return false;
        if (c == '\\' && !read_escape(r, part->set, &one))
            return false;
        if (one != 0)
            set_add(part->set, one, one);
    }
    return read_times(r, part);
}

/* Whether what repeats can be told from all that may come next. */
static bool is_definite(const cx_pattern_plain *plain)
{
    for (unsigned i = 0; i < plain->count; i++) {
        const cx_pattern_part *part = &plain->parts[i];
        if (part->min == part->max)
            continue;
        for (unsigned k = i + 1; k < plain->count; k++) {
            const cx_pattern_part *next = &plain->parts[k];
            if ((part->set[0] & next->set[0]) != 0 || (part->set[1] & next->set[1]) != 0)
                return false;
            if (next->min != 0)
                break;
        }
    }
    return true;
}

bool cx_pattern_plain_read(cx_str pattern, cx_pattern_plain *out)
{
    if (pattern.size < 2 || pattern.data[0] != '^' || pattern.data[pattern.size - 1] != '$')
        return false;
    /* An escaped '$' ends in the backslash, which is then cut off and no escape. */
    reader r = {pattern.data + 1, pattern.data + pattern.size - 1};
    out->count = 0;
    while (r.at != r.end)
        if (out->count == CX_PATTERN_PLAIN_PARTS || !read_part(&r, &out->parts[out->count++]))
            return false;
    return is_definite(out);
}

bool cx_pattern_plain_match(const cx_pattern_plain *plain, cx_str text)
{
    size_t at = 0;
    for (unsigned i = 0; i < plain->count; i++) {
        const cx_pattern_part *part = &plain->parts[i];
        size_t left = text.size - at, end = at + (left < part->max ? left : part->max), start = at;
        for (; at < end; at++) {
            uint8_t c = (uint8_t)text.data[at];
            if (c >= 128 || (part->set[c >> 6] >> (c & 63) & 1) == 0)
                break;
        }
        if (at - start < part->min)
            return false;
    }
    return at == text.size;
}
