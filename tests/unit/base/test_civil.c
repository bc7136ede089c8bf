/*
 * test_civil.c - every day of 1,200 years compared with a calendar that is walked day by day.
 */
#include "base/civil.h"

#include "tests/test.h"

CX_TEST(civil_agrees_with_walking_the_calendar)
{
    cx_civil walked = {1400, 1, 1};
    for (int64_t day = cx_civil_days(walked); walked.year < 2600; day++) {
        cx_civil date = cx_civil_of_days(day);
        if (date.year != walked.year || date.month != walked.month || date.day != walked.day ||
            cx_civil_days(walked) != day) {
            cx_test_fail(__FILE__, __LINE__, "day %d is not %d-%u-%u", (int)day, (int)walked.year,
                         walked.month, walked.day);
            return;
        }
        if (++walked.day > cx_civil_days_in(walked.year, walked.month)) {
            walked.day = 1;
            if (++walked.month > 12) {
                walked.month = 1;
                walked.year++;
            }
        }
    }
}

CX_TEST(civil_known_moments)
{
    CHECK(cx_civil_days((cx_civil){1970, 1, 1}) == 0);
    CHECK(cx_civil_days((cx_civil){2000, 2, 29}) == 11016);
    CHECK(cx_civil_days((cx_civil){0, 3, 1}) == -719468);
    CHECK(cx_civil_days_in(1900, 2) == 28 && cx_civil_days_in(2000, 2) == 29);
    cx_civil_time before = cx_civil_of_seconds(-1);
    CHECK(before.date.year == 1969 && before.date.month == 12 && before.date.day == 31);
    CHECK(before.hour == 23 && before.minute == 59 && before.second == 59);
    /* Far beyond any calendar in use, in both directions. */
    for (int64_t year = -200000; year <= 200000; year += 12345) {
        cx_civil date = cx_civil_of_days(cx_civil_days((cx_civil){year, 7, 31}));
        CHECK(date.year == year && date.month == 7 && date.day == 31);
    }
}
