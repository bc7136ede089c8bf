/*
 * clock.c - parses times in documents (run.md §1 R6).
 */
#include "rules/clock.h"

#include "base/api.h"

/* Consumes `count` digits of the text. */
static bool parse_digits(cx_str *text, size_t count, unsigned *out)
{
    unsigned value = 0;
    if (text->size < count)
        return false;
    for (size_t i = 0; i < count; i++) {
        char c = text->data[i];
        if (c < '0' || c > '9')
            return false;
        value = value * 10 + (unsigned)(c - '0');
    }
    *text = cx_str_from(text->data + count, text->size - count);
    *out = value;
    return true;
}

static bool parse_one_of(cx_str *text, const char *characters, char *out)
{
    if (text->size == 0 || text->data[0] == 0 || strchr(characters, text->data[0]) == NULL)
        return false;
    *out = text->data[0];
    *text = cx_str_from(text->data + 1, text->size - 1);
    return true;
}

static bool parse_fraction(cx_str *text, int64_t *out_ns)
{
    int64_t value = 0, unit = 1000000000;
    size_t count = 0;
    char c;
    *out_ns = 0;
    if (!parse_one_of(text, ".", &c))
        return true;
    while (parse_one_of(text, "0123456789", &c)) {
        if (++count > 9)
            return false;
        unit /= 10;
        value += unit * (c - '0');
    }
    *out_ns = value;
    return count != 0;
}

static bool parse_zone(cx_str *text, int64_t *out_seconds)
{
    unsigned hours, minutes;
    char sign, colon;
    *out_seconds = 0;
    if (!parse_one_of(text, "Zz+-", &sign))
        return false;
    if (sign == 'Z' || sign == 'z')
        return true;
    if (!parse_digits(text, 2, &hours) || !parse_one_of(text, ":", &colon) ||
        !parse_digits(text, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *out_seconds = (int64_t)(hours * 3600 + minutes * 60) * (sign == '-' ? 1 : -1);
    return true;
}

bool cx_run_time_parse(cx_str text, int64_t *out_ns)
{
    unsigned year, month, day, hour, minute, second;
    int64_t fraction_ns, zone;
    char c;
    if (!parse_digits(&text, 4, &year) || !parse_one_of(&text, "-", &c) ||
        !parse_digits(&text, 2, &month) || !parse_one_of(&text, "-", &c) ||
        !parse_digits(&text, 2, &day) || !parse_one_of(&text, "Tt", &c) ||
        !parse_digits(&text, 2, &hour) || !parse_one_of(&text, ":", &c) ||
        !parse_digits(&text, 2, &minute) || !parse_one_of(&text, ":", &c) ||
        !parse_digits(&text, 2, &second) || !parse_fraction(&text, &fraction_ns) ||
        !parse_zone(&text, &zone) || text.size != 0)
        return false;
    if (month < 1 || month > 12 || day < 1 || day > cx_civil_days_in(year, month) || hour > 23 ||
        minute > 59 || second > 59 || year > 2200)
        return false;
    int64_t seconds = cx_civil_days((cx_civil){year, month, day}) * CX_SECONDS_PER_DAY +
                      hour * 3600 + minute * 60 + second + zone;
    if (seconds < 0)
        return false;
    *out_ns = seconds * 1000000000 + fraction_ns;
    return true;
}
