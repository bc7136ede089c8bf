/*
 * fault_injector.c - a library put before a program (LD_PRELOAD) that makes its disk full and its
 * clock jump, for tests/torture.  Nothing of this is linked into any program.
 *
 * $CORTEX_FAULTS names a file of 24 bytes, in the machine's byte order, shared by all who read it:
 *
 *      0   8  int64   added to the wall clock, in nanoseconds
 *      8   8  int64   bytes left on the disk; negative: no limit
 *     16   8  uint64  how often a caller was told that the disk is full
 *
 * 1. Only files whose path lies under $CORTEX_FAULTS_UNDER are on that disk.
 * 2. Space is taken where a file grows, as on a real disk: writing over what is there costs
 *    nothing.
 * 3. The last bytes are given in a short write, and only the next one fails.
 * 4. The monotonic clock never jumps.
 * 5. With $CORTEX_KILL_AT=N, and without $CORTEX_FAULTS, the program is killed (SIGKILL) before its
 *    N-th change of a file under $CORTEX_FAULTS_UNDER: a write, a change of size, a sync, a name
 *    that is given or taken.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef struct faults {
    _Atomic int64_t clock_ns;
    _Atomic int64_t bytes_left;
    _Atomic uint64_t refusals;
} faults;

static faults none = {0, -1, 0};
static faults *current = &none;
static const char *under = "";
static size_t under_size;

#define REAL(result, name, ...)                     \
    static result (*name##_next)(__VA_ARGS__);      \
    static void name##_find(void)                   \
    {                                               \
        void *found = dlsym(RTLD_NEXT, #name);      \
        memcpy(&name##_next, &found, sizeof found); \
    }

REAL(ssize_t, write, int, const void *, size_t)
REAL(ssize_t, pwrite, int, const void *, size_t, off_t)
REAL(ssize_t, pwrite64, int, const void *, size_t, off_t)
REAL(int, posix_fallocate, int, off_t, off_t)
REAL(int, ftruncate, int, off_t)
REAL(int, ftruncate64, int, off_t)
REAL(int, clock_gettime, clockid_t, struct timespec *)
REAL(int, gettimeofday, struct timeval *, void *)
REAL(int, fsync, int)
REAL(int, fdatasync, int)
REAL(int, rename, const char *, const char *)
REAL(int, unlink, const char *)
REAL(int, mkdir, const char *, mode_t)

static _Atomic int64_t changes_left = -1; /* until the kill; negative: none */

__attribute__((constructor)) static void begin(void)
{
    write_find(), pwrite_find(), pwrite64_find(), posix_fallocate_find(), ftruncate_find();
    ftruncate64_find(), clock_gettime_find(), gettimeofday_find();
    const char *path = getenv("CORTEX_FAULTS");
    const char *folder = getenv("CORTEX_FAULTS_UNDER");
    const char *kill_at = getenv("CORTEX_KILL_AT");
    fsync_find(), fdatasync_find(), rename_find(), unlink_find(), mkdir_find();
    if (kill_at != NULL && folder != NULL && path == NULL) {
        under = folder;
        under_size = strlen(under);
        atomic_store(&changes_left, strtoll(kill_at, NULL, 10));
    }
    int file = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof(faults), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    (void)close(file);
    if (mapped == MAP_FAILED)
        return;
    current = mapped;
    under = folder != NULL ? folder : "";
    under_size = strlen(under);
}

/* --- the kill --------------------------------------------------------------------------------- */

static void count_change(const char *path)
{
    if (under_size == 0 || strncmp(path, under, under_size) != 0)
        return;
    if (atomic_fetch_sub(&changes_left, 1) == 1)
        (void)kill(getpid(), SIGKILL);
}

static void count_change_of(int file)
{
    char link[64], path[4096];
    if (atomic_load(&changes_left) < 0)
        return;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size > 0 ? size : 0] = 0;
    count_change(path);
}

int fsync(int file)
{
    count_change_of(file);
    return fsync_next(file);
}

int fdatasync(int file)
{
    count_change_of(file);
    return fdatasync_next(file);
}

int rename(const char *from, const char *to)
{
    if (atomic_load(&changes_left) >= 0)
        count_change(to);
    return rename_next(from, to);
}

int unlink(const char *path)
{
    if (atomic_load(&changes_left) >= 0)
        count_change(path);
    return unlink_next(path);
}

int mkdir(const char *path, mode_t mode)
{
    if (atomic_load(&changes_left) >= 0)
        count_change(path);
    return mkdir_next(path, mode);
}

/* --- the disk --------------------------------------------------------------------------------- */

static int on_the_disk(int file)
{
    char link[64], path[4096];
    if (atomic_load(&current->bytes_left) < 0)
        return 0;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < (ssize_t)under_size || under_size == 0)
        return 0;
    return memcmp(path, under, under_size) == 0;
}

/* How much of `wanted` more bytes there is room for; what is given is taken. */
static int64_t take(int64_t wanted)
{
    int64_t left = atomic_load(&current->bytes_left);
    int64_t given;
    do {
        if (left < 0)
            return wanted;
        given = left < wanted ? left : wanted;
    } while (!atomic_compare_exchange_weak(&current->bytes_left, &left, left - given));
    if (given < wanted)
        atomic_fetch_add(&current->refusals, 1);
    return given;
}

/* Room for a write that ends at `end`: how many of its bytes may be written. */
static int64_t room(int file, int64_t end, int64_t size)
{
    struct stat info;
    if (!on_the_disk(file) || fstat(file, &info) != 0 || !S_ISREG(info.st_mode))
        return size;
    int64_t more = end - (int64_t)info.st_size;
    if (more <= 0)
        return size;
    if (more > size)
        more = size;
    return size - (more - take(more));
}

static int full(void)
{
    errno = ENOSPC;
    return -1;
}

ssize_t write(int file, const void *data, size_t size)
{
    count_change_of(file);
    off_t at = size == 0 || atomic_load(&current->bytes_left) < 0 ? -1 : lseek(file, 0, SEEK_CUR);
    if (at < 0)
        return write_next(file, data, size);
    int64_t given = room(file, at + (int64_t)size, (int64_t)size);
    return given == 0 ? full() : write_next(file, data, (size_t)given);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t offset)
{
    count_change_of(file);
    int64_t given = room(file, offset + (int64_t)size, (int64_t)size);
    return given == 0 && size > 0 ? full() : pwrite_next(file, data, (size_t)given, offset);
}

ssize_t pwrite64(int file, const void *data, size_t size, off_t offset)
{
    count_change_of(file);
    int64_t given = room(file, offset + (int64_t)size, (int64_t)size);
    return given == 0 && size > 0 ? full() : pwrite64_next(file, data, (size_t)given, offset);
}

int posix_fallocate(int file, off_t offset, off_t size)
{
    struct stat info;
    count_change_of(file);
    if (on_the_disk(file) && fstat(file, &info) == 0) {
        int64_t more = offset + size - (int64_t)info.st_size;
        if (more > 0 && take(more) < more)
            return ENOSPC;
    }
    return posix_fallocate_next(file, offset, size);
}

/* A file that grows has holes; filling them costs nothing here, which is kinder than a disk. */
static int may_grow(int file, off_t size)
{
    struct stat info;
    if (!on_the_disk(file) || fstat(file, &info) != 0 || size <= info.st_size)
        return 1;
    return take(size - info.st_size) == size - info.st_size;
}

int ftruncate(int file, off_t size)
{
    count_change_of(file);
    return may_grow(file, size) ? ftruncate_next(file, size) : full();
}

int ftruncate64(int file, off_t size)
{
    count_change_of(file);
    return may_grow(file, size) ? ftruncate64_next(file, size) : full();
}

/* --- the clock -------------------------------------------------------------------------------- */

/* Not the coarse clock, which is compared with times of files: those come from the kernel. */
static int is_wall(clockid_t clock)
{
    return clock == CLOCK_REALTIME;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    if (clock_gettime_next == NULL)
        clock_gettime_find();
    int failed = clock_gettime_next(clock, out);
    int64_t jump = atomic_load(&current->clock_ns);
    if (failed == 0 && jump != 0 && is_wall(clock)) {
        int64_t now = (int64_t)out->tv_sec * 1000000000 + out->tv_nsec + jump;
        out->tv_sec = (time_t)(now / 1000000000);
        out->tv_nsec = (long)(now % 1000000000);
    }
    return failed;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    int failed = gettimeofday_next(out, zone);
    int64_t jump = atomic_load(&current->clock_ns);
    if (failed == 0 && jump != 0) {
        int64_t now = (int64_t)out->tv_sec * 1000000 + out->tv_usec + jump / 1000;
        out->tv_sec = (time_t)(now / 1000000);
        out->tv_usec = (suseconds_t)(now % 1000000);
    }
    return failed;
}

time_t time(time_t *out)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}
