/*
 * platform_linux.c - platform.h on Linux.
 */
#include "base/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

/* --- files ------------------------------------------------------------------------------------ */

int cx_platform_close(int file)
{
    /* The descriptor is gone even after EINTR. */
    return close(file) == 0 || errno == EINTR ? 0 : -errno;
}

void cx_platform_start_sync(int file, uint64_t offset, uint64_t size)
{
    /* Only this flag: with those that wait, an error would be reported here and not by the sync. */
    (void)sync_file_range(file, (off_t)offset, (off_t)size, SYNC_FILE_RANGE_WRITE);
}

/* Locks of the open file description: unlike process locks they also exclude two opens in one
 * process, and closing another descriptor of the file does not release them. */
static struct flock whole_file(void)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

int cx_platform_lock(int file)
{
    struct flock lock = whole_file();
    if (fcntl(file, F_OFD_SETLK, &lock) == 0)
        return 0;
    return errno == EACCES ? -EAGAIN : -errno;
}

int cx_platform_locked(int file, bool *out_locked)
{
    struct flock lock = whole_file();
    if (fcntl(file, F_OFD_GETLK, &lock) != 0)
        return -errno;
    *out_locked = lock.l_type != F_UNLCK;
    return 0;
}

int cx_platform_random(void *data, size_t size)
{
    uint8_t *at = data;
    while (size != 0) {
        ssize_t count = getrandom(at, size, 0);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return -errno;
        at += count;
        size -= (size_t)count;
    }
    return 0;
}

/* --- bytes ----------------------------------------------------------------------------------- */

const void *cx_bytes_last(const void *block, char byte, size_t size)
{
    return memrchr(block, byte, size);
}

/* --- memory and errors ------------------------------------------------------------------------ */

/* Without effect on systems that have no huge pages. */
void cx_platform_advise_huge(void *block, size_t size_bytes)
{
    (void)madvise(block, size_bytes, MADV_HUGEPAGE);
}

void cx_platform_return_large(void)
{
#ifdef M_MMAP_THRESHOLD /* not every C library has it */
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

/* strerror_r of glibc returns the text, which may be static; that of POSIX (musl) fills the
 * buffer. */
static const char *text_returned(const char *returned, const char *buffer)
{
    (void)buffer;
    return returned;
}

static const char *text_filled(int failed, const char *buffer)
{
    return failed == 0 ? buffer : "unknown error";
}

#define ERROR_TEXT(returned, buffer) \
    _Generic((returned), char * : text_returned, int : text_filled)((returned), (buffer))

const char *cx_platform_error_text(int code, char *room, size_t room_size)
{
    return ERROR_TEXT(strerror_r(code, room, room_size), room);
}

/* --- threads ---------------------------------------------------------------------------------- */

unsigned cx_platform_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count < 1 ? 1 : (unsigned)count;
}
