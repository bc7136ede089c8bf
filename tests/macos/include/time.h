/* Written for tests/macos: without CLOCK_REALTIME_COARSE and clock_nanosleep. */
#ifndef CX_MACOS_TIME_H
#define CX_MACOS_TIME_H
#include <sys/types.h>
typedef enum { CLOCK_REALTIME = 0, CLOCK_MONOTONIC = 6, CLOCK_PROCESS_CPUTIME_ID = 12 } clockid_t;
#define CLOCK_REALTIME CLOCK_REALTIME
#define CLOCK_MONOTONIC CLOCK_MONOTONIC
#define CLOCKS_PER_SEC 1000000ul
struct tm {
    int tm_sec, tm_min, tm_hour, tm_mday, tm_mon, tm_year, tm_wday, tm_yday, tm_isdst;
    long tm_gmtoff;
    char *tm_zone;
};
clock_t clock(void);
int clock_gettime(clockid_t clock, struct timespec *out);
struct tm *gmtime_r(const time_t *time, struct tm *out);
struct tm *localtime_r(const time_t *time, struct tm *out);
int nanosleep(const struct timespec *pause, struct timespec *left);
time_t time(time_t *out);
time_t timegm(struct tm *time);
#endif
