/*
 * platform_macos.c - the part of platform.h that is macOS's own.
 */
#include "base/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RANDOM_MAX 256 /* of one getentropy */

/*
 * fsync(2) leaves bytes in the cache of the device; F_FULLFSYNC is until they are on it.  A file
 * system that does not know it (some of networks) says so, and gets the fsync; every other error is
 * one.
 */
int cx_platform_sync(int file, bool data_only)
{
    (void)data_only;
    int failed;
    do {
        failed = fcntl(file, F_FULLFSYNC);
    } while (failed == -1 && errno == EINTR);
    if (failed != -1)
        return 0;
    if (errno != ENOTSUP && errno != EINVAL && errno != ENOTTY)
        return -errno;
    return fsync(file) == 0 ? 0 : -errno;
}

void cx_platform_forget(int file)
{
    (void)file; /* F_NOCACHE is of later calls, not of pages that are cached */
}

/* Space is asked for in one piece, then in any; the file is made longer by ftruncate. */
int cx_platform_allocate(int file, uint64_t size)
{
    struct stat info;
    if (fstat(file, &info) != 0)
        return -errno;
    if ((uint64_t)info.st_size >= size)
        return 0;
    fstore_t wanted = {.fst_flags = F_ALLOCATECONTIG | F_ALLOCATEALL,
                       .fst_posmode = F_PEOFPOSMODE,
                       .fst_offset = 0,
                       .fst_length = (off_t)(size - (uint64_t)info.st_size)};
    int failed = fcntl(file, F_PREALLOCATE, &wanted);
    if (failed == -1) {
        wanted.fst_flags = F_ALLOCATEALL;
        failed = fcntl(file, F_PREALLOCATE, &wanted);
    }
    if (failed == -1 && errno != ENOTSUP && errno != EINVAL)
        return -errno;
    return ftruncate(file, (off_t)size) == 0 ? 0 : -errno;
}

int cx_platform_random(void *data, size_t size)
{
    for (uint8_t *at = data; size != 0;) {
        size_t count = size < RANDOM_MAX ? size : RANDOM_MAX;
        if (getentropy(at, count) != 0)
            return -errno;
        at += count;
        size -= count;
    }
    return 0;
}

const char *cx_platform_error_text(int code, char *room, size_t room_size)
{
    if (strerror_r(code, room, room_size) != 0)
        (void)snprintf(room, room_size, "error %d", code);
    return room;
}

int cx_platform_condition_init(pthread_cond_t *condition)
{
    return pthread_cond_init(condition, NULL);
}

/* A time from now on, so that no clock is asked for. */
void cx_platform_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                uint32_t milliseconds)
{
    const struct timespec left = {(time_t)(milliseconds / 1000),
                                  (long)(milliseconds % 1000) * 1000000L};
    (void)pthread_cond_timedwait_relative_np(condition, mutex, &left);
}
