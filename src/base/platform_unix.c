/*
 * platform_unix.c - the part of platform.h that is alike on Linux and on other systems than macOS.
 */
#include "base/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

int cx_platform_sync(int file, bool data_only)
{
    return (data_only ? fdatasync(file) : fsync(file)) == 0 ? 0 : -errno;
}

void cx_platform_forget(int file)
{
    (void)posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
}

int cx_platform_allocate(int file, uint64_t size)
{
    int failed;
    do {
        failed = posix_fallocate(file, 0, (off_t)size);
    } while (failed == EINTR);
    return -failed;
}

int cx_platform_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    int failed = pthread_condattr_init(&monotonic);
    if (failed != 0)
        return failed;
    failed = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    if (failed == 0)
        failed = pthread_cond_init(condition, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    return failed;
}

void cx_platform_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                uint32_t milliseconds)
{
    struct timespec until;
    if (clock_gettime(CLOCK_MONOTONIC, &until) != 0)
        return; /* spurious wakeups are allowed */
    uint64_t ns = (uint64_t)until.tv_nsec + (uint64_t)(milliseconds % 1000) * 1000000u;
    until.tv_sec += (time_t)(milliseconds / 1000) + (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    (void)pthread_cond_timedwait(condition, mutex, &until);
}
