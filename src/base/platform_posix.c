/*
 * platform_posix.c - the part of platform.h that needs nothing but POSIX and flock(2).
 */
#include "base/platform.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/*
 * Locks of flock(2) belong to the open file, as those of platform_linux.c do.  But it has no
 * question, so a shared lock is tried and given back; and that would end the exclusive one of the
 * same open file.  So the files that are locked here are known by number until they are closed.
 */
#define FILES_MAX 65536
#define BUSY_TRIES 20

static atomic_uchar locked_files[FILES_MAX / 8];

static void mark_locked(int file, bool locked)
{
    atomic_uchar *byte = &locked_files[file / 8];
    unsigned char bit = (unsigned char)(1u << (file % 8));
    if (locked)
        atomic_fetch_or(byte, bit);
    else
        atomic_fetch_and(byte, (unsigned char)~bit);
}

static bool is_marked(int file)
{
    return file >= 0 && file < FILES_MAX &&
           (atomic_load(&locked_files[file / 8]) >> (file % 8) & 1) != 0;
}

int cx_platform_close(int file)
{
    if (is_marked(file))
        mark_locked(file, false);
    return close(file) == 0 || errno == EINTR ? 0 : -errno;
}

static int try_lock(int file, int how)
{
    int failed;
    do {
        failed = flock(file, how | LOCK_NB);
    } while (failed != 0 && errno == EINTR);
    return failed == 0 ? 0 : errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

/* A question of another process is over in an instant; only then is the lock really taken. */
int cx_platform_lock(int file)
{
    static const struct timespec pause = {0, 1000000};
    if (file < 0 || file >= FILES_MAX)
        return file < 0 ? -EBADF : -ENOLCK;
    int failed = try_lock(file, LOCK_EX);
    for (unsigned i = 0; failed == -EAGAIN && i < BUSY_TRIES; i++) {
        (void)nanosleep(&pause, NULL);
        failed = try_lock(file, LOCK_EX);
    }
    if (failed == 0)
        mark_locked(file, true);
    return failed;
}

int cx_platform_locked(int file, bool *out_locked)
{
    if (is_marked(file)) { /* ours, and so no one else's */
        *out_locked = false;
        return 0;
    }
    int failed = try_lock(file, LOCK_SH);
    if (failed == 0)
        (void)flock(file, LOCK_UN);
    *out_locked = failed == -EAGAIN;
    return failed == -EAGAIN ? 0 : failed;
}

const void *cx_bytes_last(const void *block, char byte, size_t size)
{
    for (const char *at = (const char *)block + size; size != 0; size--)
        if (*--at == byte)
            return at;
    return NULL;
}

void cx_platform_start_sync(int file, uint64_t offset, uint64_t size)
{
    (void)file; /* no call only starts it; the sync does it all */
    (void)offset;
    (void)size;
}

void cx_platform_advise_huge(void *block, size_t size_bytes)
{
    (void)block;
    (void)size_bytes;
}

void cx_platform_return_large(void) {}

unsigned cx_platform_cores(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : (unsigned)count;
}
