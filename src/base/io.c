/*
 * io.c - cx_io over the operating system, and the functions built on any cx_io.
 */
#include "base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/platform.h"

/* --- cx_io over the operating system --------------------------------------------------------- */

static int system_open(const cx_io *io, const char *path, unsigned flags, cx_file *out)
{
    (void)io;
    int mode = O_CLOEXEC;
    if (flags & CX_IO_WRITE)
        mode |= flags & CX_IO_READ ? O_RDWR : O_WRONLY;
    else
        mode |= O_RDONLY;
    mode |= flags & CX_IO_CREATE ? O_CREAT : 0;
    mode |= flags & CX_IO_EXCLUSIVE ? O_EXCL : 0;
    mode |= flags & CX_IO_TRUNCATE ? O_TRUNC : 0;
    mode |= flags & CX_IO_APPEND ? O_APPEND : 0;
    mode |= flags & CX_IO_DIRECTORY ? O_DIRECTORY : 0;
    mode |= flags & CX_IO_NO_LINKS ? O_NOFOLLOW : 0;
    int file;
    do {
        file = open(path, mode, flags & CX_IO_PUBLIC ? 0666 : 0600);
    } while (file < 0 && errno == EINTR);
    if (file < 0)
        return -errno;
    *out = file;
    return 0;
}

static int system_close(const cx_io *io, cx_file file)
{
    (void)io;
    return cx_platform_close(file);
}

static int64_t system_read(const cx_io *io, cx_file file, void *data, size_t size)
{
    (void)io;
    ssize_t count = read(file, data, size);
    return count < 0 ? -errno : count;
}

static int64_t system_pread(const cx_io *io, cx_file file, void *data, size_t size, uint64_t offset)
{
    (void)io;
    ssize_t count = pread(file, data, size, (off_t)offset);
    return count < 0 ? -errno : count;
}

static int64_t system_write(const cx_io *io, cx_file file, const void *data, size_t size)
{
    (void)io;
    ssize_t count = write(file, data, size);
    return count < 0 ? -errno : count;
}

static int64_t system_pwrite(const cx_io *io, cx_file file, const void *data, size_t size,
                             uint64_t offset)
{
    (void)io;
    ssize_t count = pwrite(file, data, size, (off_t)offset);
    return count < 0 ? -errno : count;
}

static int system_sync(const cx_io *io, cx_file file, bool data_only)
{
    (void)io;
    return cx_platform_sync(file, data_only);
}

static void system_start_sync(const cx_io *io, cx_file file, uint64_t offset, uint64_t size)
{
    (void)io;
    cx_platform_start_sync(file, offset, size);
}

static void system_forget(const cx_io *io, cx_file file)
{
    (void)io;
    cx_platform_forget(file);
}

static int system_truncate(const cx_io *io, cx_file file, uint64_t size)
{
    (void)io;
    return ftruncate(file, (off_t)size) == 0 ? 0 : -errno;
}

static int system_size(const cx_io *io, cx_file file, uint64_t *out, bool *out_regular)
{
    (void)io;
    struct stat info;
    if (fstat(file, &info) != 0)
        return -errno;
    *out = (uint64_t)info.st_size;
    *out_regular = S_ISREG(info.st_mode);
    return 0;
}

static int system_rename(const cx_io *io, const char *from, const char *to)
{
    (void)io;
    return rename(from, to) == 0 ? 0 : -errno;
}

static int system_unlink(const cx_io *io, const char *path)
{
    (void)io;
    return unlink(path) == 0 ? 0 : -errno;
}

static int system_mkdir(const cx_io *io, const char *path)
{
    (void)io;
    return mkdir(path, 0700) == 0 ? 0 : -errno;
}

static int system_list(const cx_io *io, const char *path, cx_io_name *name, void *arg)
{
    (void)io;
    DIR *folder = opendir(path);
    if (folder == NULL)
        return -errno;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (entry == NULL)
            break;
        const char *found = entry->d_name;
        if (strcmp(found, ".") != 0 && strcmp(found, "..") != 0 && !name(arg, found)) {
            errno = 0;
            break;
        }
    }
    int failed = -errno;
    (void)closedir(folder);
    return failed;
}

static int system_allocate(const cx_io *io, cx_file file, uint64_t size)
{
    (void)io;
    return cx_platform_allocate(file, size);
}

static int system_lock(const cx_io *io, cx_file file)
{
    (void)io;
    return cx_platform_lock(file);
}

static int system_locked(const cx_io *io, cx_file file, bool *out_locked)
{
    (void)io;
    return cx_platform_locked(file, out_locked);
}

static uint64_t system_process_id(const cx_io *io)
{
    (void)io;
    return (uint64_t)getpid();
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t system_wall_ns(const cx_io *io)
{
    (void)io;
    return clock_ns(CLOCK_REALTIME);
}

static uint64_t system_monotonic_ns(const cx_io *io)
{
    (void)io;
    return clock_ns(CLOCK_MONOTONIC);
}

static int system_random(const cx_io *io, void *data, size_t size)
{
    (void)io;
    return cx_platform_random(data, size);
}

const cx_io *cx_io_system(void)
{
    static const cx_io io = {
        .open = system_open,
        .close = system_close,
        .read = system_read,
        .pread = system_pread,
        .write = system_write,
        .pwrite = system_pwrite,
        .sync = system_sync,
        .start_sync = system_start_sync,
        .forget = system_forget,
        .truncate = system_truncate,
        .size = system_size,
        .rename = system_rename,
        .unlink = system_unlink,
        .mkdir = system_mkdir,
        .list = system_list,
        .allocate = system_allocate,
        .lock = system_lock,
        .locked = system_locked,
        .process_id = system_process_id,
        .wall_ns = system_wall_ns,
        .monotonic_ns = system_monotonic_ns,
        .random = system_random,
    };
    return &io;
}

/* --- functions over any cx_io ---------------------------------------------------------------- */

cx_status cx_io_read_some(const cx_io *io, cx_file file, const char *path, void *data, size_t size,
                          size_t *out_size, cx_err *err)
{
    size_t done = 0;
    while (done < size) {
        int64_t count = io->read(io, file, (uint8_t *)data + done, size - done);
        if (count == -EINTR)
            continue;
        if (count < 0)
            return cx_fail_os(err, (int)-count, "cannot read %s", path);
        if (count == 0)
            break;
        done += (size_t)count;
    }
    *out_size = done;
    return CX_SUCCESS;
}

cx_status cx_io_write_all(const cx_io *io, cx_file file, const char *path, const void *data,
                          size_t size, cx_err *err)
{
    const uint8_t *at = data;
    while (size != 0) {
        int64_t count = io->write(io, file, at, size);
        if (count == -EINTR)
            continue;
        if (count <= 0)
            return cx_fail_os(err, count == 0 ? EIO : (int)-count, "cannot write %s", path);
        at += count;
        size -= (size_t)count;
    }
    return CX_SUCCESS;
}

cx_status cx_io_read_at(const cx_io *io, cx_file file, const char *path, void *data, size_t size,
                        uint64_t offset, size_t *out_size, cx_err *err)
{
    size_t done = 0;
    while (done < size) {
        int64_t count = io->pread(io, file, (uint8_t *)data + done, size - done, offset + done);
        if (count == -EINTR)
            continue;
        if (count < 0)
            return cx_fail_os(err, (int)-count, "cannot read %s", path);
        if (count == 0)
            break;
        done += (size_t)count;
    }
    *out_size = done;
    return CX_SUCCESS;
}

cx_status cx_io_write_at(const cx_io *io, cx_file file, const char *path, const void *data,
                         size_t size, uint64_t offset, cx_err *err)
{
    size_t done = 0;
    while (done < size) {
        int64_t count =
            io->pwrite(io, file, (const uint8_t *)data + done, size - done, offset + done);
        if (count == -EINTR)
            continue;
        if (count <= 0)
            return cx_fail_os(err, count == 0 ? EIO : (int)-count, "cannot write %s", path);
        done += (size_t)count;
    }
    return CX_SUCCESS;
}

cx_status cx_io_read_file(const cx_io *io, const char *path, size_t limit_bytes, cx_buf *buf,
                          cx_err *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    cx_file file = STDIN_FILENO;
    if (!is_stdin) {
        int failed = io->open(io, path, CX_IO_READ, &file);
        if (failed != 0)
            return cx_fail_os(err, -failed, "cannot open %s", path);
    }
    uint64_t size = 0;
    bool regular = false;
    if (io->size(io, file, &size, &regular) != 0 || !regular)
        size = 0;
    cx_status status = CX_SUCCESS;
    size_t start = buf->size;
    size_t step = size < ((size_t)1 << 30) ? (size_t)size + 1 : (size_t)1 << 30;
    for (;;) {
        /* One byte past the limit is enough to detect that the file is too long. */
        size_t left = limit_bytes - (buf->size - start);
        if (step > left)
            step = left + 1;
        uint8_t *room = cx_buf_reserve(buf, step < 65536 ? 65536 : step);
        if (room == NULL) {
            status = cx_fail_nomem(err);
            break;
        }
        size_t wanted = buf->capacity - buf->size, got;
        CX_TRY_GOTO(status, cx_io_read_some(io, file, path, room, wanted, &got, err));
        cx_buf_advance(buf, got);
        if (buf->size - start > limit_bytes) {
            status = cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", limit_bytes,
                                "%s is longer than the limit of %zu bytes", path, limit_bytes);
            break;
        }
        if (got < wanted)
            break;
        step = buf->size;
    }
done:
    if (!is_stdin)
        (void)io->close(io, file);
    return status;
}

cx_status cx_io_sync_folder(const cx_io *io, const char *folder, cx_err *err)
{
    cx_file file;
    int failed = io->open(io, folder, CX_IO_READ | CX_IO_DIRECTORY, &file);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot open the folder %s", folder);
    failed = io->sync(io, file, false);
    (void)io->close(io, file);
    return failed != 0 ? cx_fail_os(err, -failed, "cannot sync the folder %s", folder) : CX_SUCCESS;
}

/* Makes a rename in `path`'s folder durable. */
static cx_status sync_folder_of(const cx_io *io, const char *path, cx_err *err)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    size_t size = slash == NULL ? 0 : (size_t)(slash - path);
    if (size >= sizeof folder)
        return cx_fail(err, CX_E_LIMIT, "path too long: %s", path);
    memcpy(folder, path, size);
    folder[size] = 0;
    return cx_io_sync_folder(io, slash == NULL ? "." : size == 0 ? "/" : folder, err);
}

static cx_status replace_file(const cx_io *io, const char *path, cx_bytes contents, unsigned flags,
                              cx_err *err)
{
    char temporary[4096];
    uint64_t tail = cx_io_seed(io);
    int length =
        snprintf(temporary, sizeof temporary, "%s.%016llx.tmp", path, (unsigned long long)tail);
    if (length < 0 || (size_t)length >= sizeof temporary)
        return cx_fail(err, CX_E_LIMIT, "path too long: %s", path);
    cx_file file;
    int failed =
        io->open(io, temporary, CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE | flags, &file);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot create %s", temporary);
    cx_status status = cx_io_write_all(io, file, temporary, contents.data, contents.size, err);
    if (!cx_failed(status) && (failed = io->sync(io, file, false)) != 0)
        status = cx_fail_os(err, -failed, "cannot sync %s", temporary);
    if ((failed = io->close(io, file)) != 0 && !cx_failed(status))
        status = cx_fail_os(err, -failed, "cannot close %s", temporary);
    if (!cx_failed(status) && (failed = io->rename(io, temporary, path)) != 0)
        status = cx_fail_os(err, -failed, "cannot rename %s to %s", temporary, path);
    if (cx_failed(status)) {
        (void)io->unlink(io, temporary);
        return status;
    }
    return sync_folder_of(io, path, err);
}

cx_status cx_io_replace_file(const cx_io *io, const char *path, cx_bytes contents, cx_err *err)
{
    return replace_file(io, path, contents, CX_IO_PUBLIC, err);
}

cx_status cx_io_replace_private_file(const cx_io *io, const char *path, cx_bytes contents,
                                     cx_err *err)
{
    return replace_file(io, path, contents, 0, err);
}

uint64_t cx_io_seed(const cx_io *io)
{
    uint64_t seed = 0;
    return io->random(io, &seed, sizeof seed) == 0 ? seed : 0;
}
