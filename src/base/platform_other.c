/*
 * platform_other.c - the part of platform.h that macOS has calls of its own for, on a POSIX system
 * of which nothing else is known.
 */
#include "base/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

int cx_platform_random(void *data, size_t size)
{
    int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC), failed = 0;
    if (file < 0)
        return -errno;
    for (uint8_t *at = data; size != 0 && failed == 0;) {
        ssize_t count = read(file, at, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) {
            failed = count < 0 ? -errno : -EIO;
            break;
        }
        at += count;
        size -= (size_t)count;
    }
    (void)close(file);
    return failed;
}

const char *cx_platform_error_text(int code, char *room, size_t room_size)
{
    (void)room;
    (void)room_size;
    return strerror_l(code, uselocale((locale_t)0));
}
