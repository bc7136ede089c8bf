/*
 * civil.c - see civil.h.
 */
#include "base/civil.h"

#include <stdbool.h>

#define ERA_DAYS INT64_C(146097) /* of 400 years */
#define TO_MARCH_OF_YEAR_0 INT64_C(719468)

int64_t cx_civil_days(cx_civil date)
{
    int64_t year = date.year - (date.month <= 2);
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400;
    unsigned month = date.month > 2 ? date.month - 3 : date.month + 9;
    int64_t day_of_year = (int64_t)((153 * month + 2) / 5 + date.day) - 1;
    int64_t day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + day_of_year;
    return era * ERA_DAYS + day_of_era - TO_MARCH_OF_YEAR_0;
}

cx_civil cx_civil_of_days(int64_t days)
{
    days += TO_MARCH_OF_YEAR_0;
    int64_t era = (days >= 0 ? days : days - (ERA_DAYS - 1)) / ERA_DAYS;
    unsigned day_of_era = (unsigned)(days - era * ERA_DAYS);
    unsigned of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned day_of_year = day_of_era - (365 * of_era + of_era / 4 - of_era / 100);
    unsigned month = (5 * day_of_year + 2) / 153;
    cx_civil date;
    date.day = day_of_year - (153 * month + 2) / 5 + 1;
    date.month = month < 10 ? month + 3 : month - 9;
    date.year = (int64_t)of_era + era * 400 + (date.month <= 2);
    return date;
}

unsigned cx_civil_days_in(int64_t year, unsigned month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

cx_civil_time cx_civil_of_seconds(int64_t seconds)
{
    int64_t days = seconds / CX_SECONDS_PER_DAY, rest = seconds % CX_SECONDS_PER_DAY;
    if (rest < 0) {
        rest += CX_SECONDS_PER_DAY;
        days--;
    }
    unsigned of_day = (unsigned)rest;
    return (cx_civil_time){cx_civil_of_days(days), of_day / 3600, of_day / 60 % 60, of_day % 60};
}

bool cx_age_parse(cx_str text, int64_t *out_ns)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'m', 60},
                 {'h', 3600},
                 {'d', CX_SECONDS_PER_DAY},
                 {'w', 7 * CX_SECONDS_PER_DAY},
                 {'y', 365 * CX_SECONDS_PER_DAY}};
    const int64_t seconds_max = 100 * 366 * CX_SECONDS_PER_DAY;
    int64_t count = 0;
    size_t at = 0;
    for (; at < text.size && text.data[at] >= '0' && text.data[at] <= '9'; at++)
        if ((count = 10 * count + (text.data[at] - '0')) > seconds_max)
            return false;
    if (count == 0 || at + 1 != text.size)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (text.data[at] != units[i].unit || count > seconds_max / units[i].seconds)
            continue;
        *out_ns = count * units[i].seconds * INT64_C(1000000000);
        return true;
    }
    return false;
}
