/*
 * time.c - the timestamps of traces (§1): text to nanoseconds since 1970 and back.
 *
 * Days are counted in the proleptic Gregorian calendar with years that begin in March, so that the
 * leap day is the last of its year (H. Hinnant, "chrono-compatible low-level date algorithms").
 */
#include "trace/trace.h"

#define NS_PER_SECOND INT64_C(1000000000)
#define SECONDS_PER_DAY INT64_C(86400)

static int64_t days_of(int64_t year, unsigned month, unsigned day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    unsigned of_era = (unsigned)(year - era * 400);
    unsigned of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    unsigned day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    return era * 146097 + (int64_t)day_of_era - 719468;
}

static void date_of(int64_t days, int64_t *out_year, unsigned *out_month, unsigned *out_day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    unsigned day_of_era = (unsigned)(days - era * 146097);
    unsigned of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned of_year = day_of_era - (365 * of_era + of_era / 4 - of_era / 100);
    unsigned month = (5 * of_year + 2) / 153;
    *out_day = of_year - (153 * month + 2) / 5 + 1;
    *out_month = month < 10 ? month + 3 : month - 9;
    *out_year = (int64_t)of_era + era * 400 + (*out_month <= 2);
}

static unsigned days_in(unsigned year, unsigned month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

/* `count` digits, then one of `behind` unless that is NULL; moves *text behind them. */
static bool digits(cx_str *text, unsigned count, char behind, unsigned *out)
{
    unsigned value = 0, size = count + (behind != 0);
    if (text->size < size || (behind != 0 && text->data[count] != behind))
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

/* One to nine digits behind a point. */
static bool fraction(cx_str *text, int64_t *out_ns)
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

/* What is left: nothing, Z, or an offset. */
static bool zone(cx_str text, int64_t *out_seconds, bool *out_naive)
{
    unsigned hours, minutes;
    *out_naive = text.size == 0;
    *out_seconds = 0;
    if (text.size == 0 || cx_str_eq(text, CX_STR("Z")))
        return true;
    char sign = text.data[0];
    text = (cx_str){text.data + 1, text.size - 1};
    if ((sign != '+' && sign != '-') || !digits(&text, 2, ':', &hours) ||
        !digits(&text, 2, 0, &minutes) || text.size != 0 || hours > 23 || minutes > 59)
        return false;
    *out_seconds = (int64_t)(hours * 3600 + minutes * 60) * (sign == '-' ? -1 : 1);
    return true;
}

bool cx_trace_time_parse(cx_str text, int64_t *out_ns, bool *out_naive)
{
    unsigned year, month, day, hour, minute, second;
    int64_t ns, offset;
    bool naive;
    if (!digits(&text, 4, '-', &year) || !digits(&text, 2, '-', &month) ||
        !digits(&text, 2, 'T', &day) || !digits(&text, 2, ':', &hour) ||
        !digits(&text, 2, ':', &minute) || !digits(&text, 2, 0, &second) || !fraction(&text, &ns) ||
        !zone(text, &offset, &naive))
        return false;
    if (year < 1970 || year > 2262 || month < 1 || month > 12 || day < 1 ||
        day > days_in(year, month) || hour > 23 || minute > 59 || second > 59)
        return false;
    int64_t seconds =
        days_of(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second - offset;
    /* 64 bits of nanoseconds end in April 2262. */
    if (seconds > INT64_MAX / NS_PER_SECOND ||
        (seconds == INT64_MAX / NS_PER_SECOND && ns > INT64_MAX % NS_PER_SECOND))
        return false;
    *out_ns = seconds * NS_PER_SECOND + ns;
    *out_naive = naive;
    return true;
}

/* So many digits, and what stands behind them. */
static char *put_digits(char *to, unsigned value, unsigned count, char behind)
{
    for (unsigned i = count; i-- > 0; value /= 10)
        to[i] = (char)('0' + value % 10);
    to[count] = behind;
    return to + count + 1;
}

void cx_trace_time_write(int64_t ns, char out[CX_TRACE_TIME_SIZE])
{
    int64_t seconds = ns / NS_PER_SECOND, rest = ns % NS_PER_SECOND, year;
    unsigned month, day;
    if (rest < 0) {
        rest += NS_PER_SECOND;
        seconds--;
    }
    int64_t days = seconds / SECONDS_PER_DAY, of_day = seconds % SECONDS_PER_DAY;
    if (of_day < 0) {
        of_day += SECONDS_PER_DAY;
        days--;
    }
    date_of(days, &year, &month, &day);
    /* 64 bits of nanoseconds lie between 1677 and 2262. */
    out = put_digits(out, (unsigned)year, 4, '-');
    out = put_digits(out, month, 2, '-');
    out = put_digits(out, day, 2, 'T');
    out = put_digits(out, (unsigned)(of_day / 3600), 2, ':');
    out = put_digits(out, (unsigned)(of_day / 60 % 60), 2, ':');
    out = put_digits(out, (unsigned)(of_day % 60), 2, '.');
    out = put_digits(out, (unsigned)rest, 9, 'Z');
    *out = 0;
}
