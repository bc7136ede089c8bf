/*
 * fault.c - allocators and files that fail at a chosen call.
 *
 * Every block carries its size in front, so that a size given back wrong is noticed: allocators
 * without headers depend on it.
 */
#include "tests/support/fault.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>

#define HEADER sizeof(max_align_t)

static bool fires(atomic_ullong *calls, atomic_ullong *fired, uint64_t fail_at, bool onwards)
{
    uint64_t call = atomic_fetch_add(calls, 1) + 1;
    bool now = onwards ? call >= fail_at : call == fail_at;
    if (now)
        atomic_fetch_add(fired, 1);
    return now;
}

static void *fault_resize(void *ctx, void *block, size_t old_size, size_t new_size)
{
    fault_alloc *memory = ctx;
    uint8_t *whole = block == NULL ? NULL : (uint8_t *)block - HEADER;
    if (whole != NULL && memcmp(whole, &old_size, sizeof old_size) != 0)
        atomic_store(&memory->wrong_size, true);
    if (new_size == 0) {
        if (whole != NULL)
            atomic_fetch_sub(&memory->live_bytes, (long long)old_size);
        free(whole);
        return NULL;
    }
    if (fires(&memory->calls, &memory->fired, memory->fail_at, memory->onwards))
        return NULL;
    uint8_t *moved = new_size > SIZE_MAX - HEADER ? NULL : realloc(whole, new_size + HEADER);
    if (moved == NULL)
        return NULL;
    memcpy(moved, &new_size, sizeof new_size);
    atomic_fetch_add(&memory->live_bytes, (long long)new_size - (long long)old_size);
    return moved + HEADER;
}

void fault_alloc_init(fault_alloc *memory, uint64_t fail_at, bool onwards)
{
    *memory =
        (fault_alloc){.alloc = {fault_resize, memory}, .fail_at = fail_at, .onwards = onwards};
}

/* --- files ---------------------------------------------------------------------------------- */

static bool io_fires(const cx_io *io, unsigned call)
{
    fault_io *files = io->ctx;
    return (files->which & call) != 0 &&
           fires(&files->calls, &files->fired, files->fail_at, files->onwards);
}

static const cx_io *below(const cx_io *io)
{
    return ((const fault_io *)io->ctx)->below;
}

/* 0, or -EINTR; *size is cut to what one call may move. */
static int transfer(const cx_io *io, size_t *size)
{
    fault_io *files = io->ctx;
    uint64_t number = atomic_fetch_add(&files->transfers, 1) + 1;
    if (files->eintr != 0 && number % files->eintr == 0)
        return -EINTR;
    if (files->at_most != 0 && *size > files->at_most)
        *size = files->at_most;
    return 0;
}

static int fault_open(const cx_io *io, const char *path, unsigned flags, cx_file *out)
{
    fault_io *files = io->ctx;
    if (io_fires(io, FAULT_OPEN))
        return -files->code;
    int failed = below(io)->open(below(io), path, flags, out);
    if (failed == 0)
        atomic_fetch_add(&files->open_files, 1);
    return failed;
}

static int fault_close(const cx_io *io, cx_file file)
{
    fault_io *files = io->ctx;
    atomic_fetch_sub(&files->open_files, 1);
    int failed = below(io)->close(below(io), file);
    return io_fires(io, FAULT_CLOSE) || files->close_fails ? -files->code : failed;
}

static int64_t fault_read(const cx_io *io, cx_file file, void *data, size_t size)
{
    if (io_fires(io, FAULT_READ))
        return -((const fault_io *)io->ctx)->code;
    int interrupted = transfer(io, &size);
    return interrupted != 0 ? interrupted : below(io)->read(below(io), file, data, size);
}

static int64_t fault_pread(const cx_io *io, cx_file file, void *data, size_t size, uint64_t offset)
{
    if (io_fires(io, FAULT_PREAD))
        return -((const fault_io *)io->ctx)->code;
    int interrupted = transfer(io, &size);
    return interrupted != 0 ? interrupted : below(io)->pread(below(io), file, data, size, offset);
}

static int64_t fault_write(const cx_io *io, cx_file file, const void *data, size_t size)
{
    if (io_fires(io, FAULT_WRITE))
        return -((const fault_io *)io->ctx)->code;
    int interrupted = transfer(io, &size);
    return interrupted != 0 ? interrupted : below(io)->write(below(io), file, data, size);
}

static int64_t fault_pwrite(const cx_io *io, cx_file file, const void *data, size_t size,
                            uint64_t offset)
{
    const fault_io *files = io->ctx;
    if (io_fires(io, FAULT_WRITE)) {
        if (files->torn)
            (void)below(io)->pwrite(below(io), file, data, size / 2, offset);
        return -files->code;
    }
    int interrupted = transfer(io, &size);
    return interrupted != 0 ? interrupted : below(io)->pwrite(below(io), file, data, size, offset);
}

static int fault_sync(const cx_io *io, cx_file file, bool data_only)
{
    return io_fires(io, FAULT_SYNC) ? -((const fault_io *)io->ctx)->code
                                    : below(io)->sync(below(io), file, data_only);
}

static void fault_start_sync(const cx_io *io, cx_file file, uint64_t offset, uint64_t size)
{
    below(io)->start_sync(below(io), file, offset, size);
}

static void fault_forget(const cx_io *io, cx_file file)
{
    below(io)->forget(below(io), file);
}

static int fault_truncate(const cx_io *io, cx_file file, uint64_t size)
{
    return io_fires(io, FAULT_WRITE) ? -((const fault_io *)io->ctx)->code
                                     : below(io)->truncate(below(io), file, size);
}

static int fault_size(const cx_io *io, cx_file file, uint64_t *out, bool *out_regular)
{
    const fault_io *files = io->ctx;
    if (io_fires(io, FAULT_SIZE))
        return -files->code;
    int failed = below(io)->size(below(io), file, out, out_regular);
    if (failed == 0 && files->no_size) {
        *out = 0;
        *out_regular = false;
    }
    return failed;
}

static int fault_rename(const cx_io *io, const char *from, const char *to)
{
    return io_fires(io, FAULT_RENAME) ? -((const fault_io *)io->ctx)->code
                                      : below(io)->rename(below(io), from, to);
}

static int fault_unlink(const cx_io *io, const char *path)
{
    return io_fires(io, FAULT_FOLDER) ? -((const fault_io *)io->ctx)->code
                                      : below(io)->unlink(below(io), path);
}

static int fault_mkdir(const cx_io *io, const char *path)
{
    return io_fires(io, FAULT_FOLDER) ? -((const fault_io *)io->ctx)->code
                                      : below(io)->mkdir(below(io), path);
}

static int fault_list(const cx_io *io, const char *path, cx_io_name *name, void *arg)
{
    return io_fires(io, FAULT_FOLDER) ? -((const fault_io *)io->ctx)->code
                                      : below(io)->list(below(io), path, name, arg);
}

static int fault_allocate(const cx_io *io, cx_file file, uint64_t size)
{
    return io_fires(io, FAULT_ALLOCATE) ? -((const fault_io *)io->ctx)->code
                                        : below(io)->allocate(below(io), file, size);
}

static int fault_lock(const cx_io *io, cx_file file)
{
    return io_fires(io, FAULT_LOCK) ? -((const fault_io *)io->ctx)->code
                                    : below(io)->lock(below(io), file);
}

static int fault_locked(const cx_io *io, cx_file file, bool *out_locked)
{
    return io_fires(io, FAULT_LOCK) ? -((const fault_io *)io->ctx)->code
                                    : below(io)->locked(below(io), file, out_locked);
}

static uint64_t fault_process_id(const cx_io *io)
{
    return below(io)->process_id(below(io));
}

static uint64_t fault_wall(const cx_io *io)
{
    return below(io)->wall_ns(below(io));
}

static uint64_t fault_monotonic(const cx_io *io)
{
    return below(io)->monotonic_ns(below(io));
}

static int fault_random(const cx_io *io, void *data, size_t size)
{
    return io_fires(io, FAULT_RANDOM) ? -((const fault_io *)io->ctx)->code
                                      : below(io)->random(below(io), data, size);
}

void fault_io_init(fault_io *files, const cx_io *real, unsigned which, uint64_t fail_at,
                   bool onwards)
{
    *files = (fault_io){.io = {.open = fault_open,
                               .close = fault_close,
                               .read = fault_read,
                               .pread = fault_pread,
                               .write = fault_write,
                               .pwrite = fault_pwrite,
                               .sync = fault_sync,
                               .start_sync = fault_start_sync,
                               .forget = fault_forget,
                               .truncate = fault_truncate,
                               .size = fault_size,
                               .rename = fault_rename,
                               .unlink = fault_unlink,
                               .mkdir = fault_mkdir,
                               .list = fault_list,
                               .allocate = fault_allocate,
                               .lock = fault_lock,
                               .locked = fault_locked,
                               .process_id = fault_process_id,
                               .wall_ns = fault_wall,
                               .monotonic_ns = fault_monotonic,
                               .random = fault_random,
                               .ctx = files},
                        .below = real,
                        .which = which,
                        .fail_at = fail_at,
                        .onwards = onwards,
                        .code = EIO};
}
