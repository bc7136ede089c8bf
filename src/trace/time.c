/*
 * time.c - the timestamps of traces (§1): text to nanoseconds since 1970 and back.
 */
#include "trace/trace.h"

#include "base/api.h"

#define NS_PER_SECOND INT64_C(1000000000)

/* Parses `count` digits and then one of `terminators` unless that is NULL; moves *text past them.
 */
static bool parse_digits(cx_str *text, unsigned count, char terminators, unsigned *out)
{
    unsigned value = 0, size = count + (terminators != 0);
    if (text->size < size || (terminators != 0 && text->data[count] != terminators))
        return false;
    for (unsigned i = 0; i < count; i++) {
        unsigned digit = (unsigned)(uint8_t)text->data[i] - '0';
        if (digit > 9)
            return false;
        value = value * 10 + digit;
    }
    *text = (cx_str){text->data + size, text->size - size};
    *out = value;
    return true;
}

/* One to nine digits after a point. */
static bool parse_fraction(cx_str *text, int64_t *out_ns)
{
    int64_t value = 0, unit = NS_PER_SECOND;
    size_t size = 1;
    *out_ns = 0;
    if (text->size == 0 || text->data[0] != '.')
        return true;
    for (; size < text->size && text->data[size] >= '0' && text->data[size] <= '9'; size++) {
        if (size > 9)
            return false;
        value = value * 10 + (text->data[size] - '0');
        unit /= 10;
    }
    *text = (cx_str){text->data + size, text->size - size};
    *out_ns = value * unit;
    return size > 1;
}

/* The rest: nothing, Z, or an offset. */
static bool parse_zone(cx_str text, int64_t *out_seconds, bool *out_naive)
{
    unsigned hours, minutes;
    *out_naive = text.size == 0;
    *out_seconds = 0;
    if (text.size == 0 || cx_str_eq(text, CX_STR("Z")))
        return true;
    char sign = text.data[0];
    text = (cx_str){text.data + 1, text.size - 1};
    if ((sign != '+' && sign != '-') || !parse_digits(&text, 2, ':', &hours) ||
        !parse_digits(&text, 2, 0, &minutes) || text.size != 0 || hours > 23 || minutes > 59)
        return false;
    *out_seconds = (int64_t)(hours * 3600 + minutes * 60) * (sign == '-' ? -1 : 1);
    return true;
}

bool cx_trace_time_parse(cx_str text, int64_t *out_ns, bool *out_naive)
{
    unsigned year, month, day, hour, minute, second;
    int64_t ns, offset;
    bool naive;
    if (!parse_digits(&text, 4, '-', &year) || !parse_digits(&text, 2, '-', &month) ||
        !parse_digits(&text, 2, 'T', &day) || !parse_digits(&text, 2, ':', &hour) ||
        !parse_digits(&text, 2, ':', &minute) || !parse_digits(&text, 2, 0, &second) ||
        !parse_fraction(&text, &ns) || !parse_zone(text, &offset, &naive))
        return false;
    if (year < 1970 || year > 2262 || month < 1 || month > 12 || day < 1 ||
        day > cx_civil_days_in(year, month) || hour > 23 || minute > 59 || second > 59)
        return false;
    int64_t seconds = cx_civil_days((cx_civil){year, month, day}) * CX_SECONDS_PER_DAY +
                      hour * 3600 + minute * 60 + second - offset;
    /* 64-bit nanoseconds end in April 2262. */
    if (seconds > INT64_MAX / NS_PER_SECOND ||
        (seconds == INT64_MAX / NS_PER_SECOND && ns > INT64_MAX % NS_PER_SECOND))
        return false;
    *out_ns = seconds * NS_PER_SECOND + ns;
    *out_naive = naive;
    return true;
}

/* Writes a number with `count` digits and the character after it. */
static char *put_digits(char *to, unsigned value, unsigned count, char terminators)
{
    for (unsigned i = count; i-- > 0; value /= 10)
        to[i] = (char)('0' + value % 10);
    to[count] = terminators;
    return to + count + 1;
}

void cx_trace_time_write(int64_t ns, char out[CX_TRACE_TIME_SIZE])
{
    int64_t seconds = ns / NS_PER_SECOND, rest = ns % NS_PER_SECOND;
    if (rest < 0) {
        rest += NS_PER_SECOND;
        seconds--;
    }
    cx_civil_time time = cx_civil_of_seconds(seconds);
    /* 64-bit nanoseconds cover 1677 to 2262. */
    out = put_digits(out, (unsigned)time.date.year, 4, '-');
    out = put_digits(out, time.date.month, 2, '-');
    out = put_digits(out, time.date.day, 2, 'T');
    out = put_digits(out, time.hour, 2, ':');
    out = put_digits(out, time.minute, 2, ':');
    out = put_digits(out, time.second, 2, '.');
    out = put_digits(out, (unsigned)rest, 9, 'Z');
    *out = 0;
}
