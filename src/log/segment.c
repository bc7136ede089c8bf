/*
 * segment.c - segment files and the lock file of a log's folder.
 *
 * A segment is prepared under a working name: room taken, zeros written, synced.  Only then it gets
 * its header, and after a sync its name.  So whatever bears a segment's name has a whole header and
 * its full size, and a full disk is found before anything depends on the file.  Zeros are written
 * because a file system has to note, at each sync, which of merely reserved blocks were written.
 *
 * The lock file says who writes and how many commits were durable when it last said so:
 *
 *     0 20  process id, decimal, blanks after      24  8  count of durable commits
 *    20  4  line feed, zeros                        32  4  CRC-32C of home id and count
 *
 * It is never synced: after a crash it may name fewer commits than there are, never more.
 */
#include <errno.h>
#include <stdio.h>

#include "crypto/api.h"
#include "log/internal.h"

const char cx_log_spare_name[] = "spare";
const char cx_log_large_name[] = "large";

cx_status cx_log_damaged(cx_err *err, const char *path, uint64_t offset, const char *what)
{
    return cx_fail_at(err, CX_E_FORMAT, CX_LOG_DAMAGED, offset, "%s is damaged at byte %llu: %s",
                      path, (unsigned long long)offset, what);
}

/* --- names --------------------------------------------------------------------------------- */

void cx_log_path(const cx_log *log, const char *name, char out[CX_LOG_PATH_SIZE])
{
    int size = snprintf(out, CX_LOG_PATH_SIZE, "%s/%s", log->folder, name);
    CX_ASSERT(size > 0 && size < CX_LOG_PATH_SIZE);
}

void cx_log_segment_path(const cx_log *log, uint32_t segment, char out[CX_LOG_PATH_SIZE])
{
    char name[24];
    (void)snprintf(name, sizeof name, "%06u.seg", (unsigned)segment);
    cx_log_path(log, name, out);
}

/* Six digits, or more without a leading zero: each number has one name. */
static bool parse_name(const char *name, uint32_t *out)
{
    size_t digits = strspn(name, "0123456789");
    uint64_t number = 0;
    if (digits < 6 || digits > 10 || (digits > 6 && name[0] == '0') ||
        strcmp(name + digits, ".seg") != 0)
        return false;
    for (size_t i = 0; i < digits; i++)
        number = number * 10 + (uint64_t)(name[i] - '0');
    *out = (uint32_t)number;
    return number < UINT32_MAX;
}

typedef struct listing {
    uint32_t count;
    uint32_t highest;
} listing;

static bool count_name(void *arg, const char *name)
{
    listing *seen = arg;
    uint32_t number;
    if (parse_name(name, &number)) {
        seen->count++;
        seen->highest = number > seen->highest ? number : seen->highest;
    }
    return true;
}

/* Another process may give a segment its other name while the folder is read: then a number is in
 * no listing, and in the next one. */
enum { LISTINGS = 5 };

cx_status cx_log_segment_count(const cx_log *log, uint32_t *out, cx_err *err)
{
    listing seen = {0, 0};
    for (int turn = 0; turn < LISTINGS; turn++) {
        seen = (listing){0, 0};
        int failed = log->io->list(log->io, log->folder, count_name, &seen);
        if (failed != 0)
            return cx_fail_os(err, -failed, "cannot list %s", log->folder);
        if (seen.count != 0 && seen.highest == seen.count - 1)
            break;
    }
    if (seen.count == 0)
        return cx_fail(err, CX_E_NOT_FOUND, "there is no log in %s", log->folder);
    if (seen.highest != seen.count - 1)
        return cx_fail_at(err, CX_E_FORMAT, CX_LOG_DAMAGED, CX_NO_OFFSET,
                          "%s has %u segments, but the highest number is %u: some are missing",
                          log->folder, (unsigned)seen.count, (unsigned)seen.highest);
    *out = seen.count;
    return CX_SUCCESS;
}

/* --- files --------------------------------------------------------------------------------- */

/* Synced every so often, so that a commit meanwhile does not wait after all of it. */
enum { ZEROS_SIZE = 256 << 10, SYNC_EVERY = 4 << 20 };

static cx_status write_zeros(const cx_log *log, cx_file file, const char *path, uint64_t size_bytes,
                             cx_err *err)
{
    uint8_t *zeros = cx_alloc_zeroed(log->alloc, 1, ZEROS_SIZE);
    if (zeros == NULL)
        return cx_fail_nomem(err);
    cx_status status = CX_SUCCESS;
    for (uint64_t at = 0; at < size_bytes && !cx_failed(status);) {
        uint64_t left = size_bytes - at, step = left < ZEROS_SIZE ? left : ZEROS_SIZE;
        status = cx_io_write_at(log->io, file, path, zeros, (size_t)step, at, err);
        at += step;
        int failed = 0;
        if (!cx_failed(status) && (at % SYNC_EVERY == 0 || at == size_bytes))
            failed = log->io->sync(log->io, file, at != size_bytes);
        if (failed != 0)
            status = cx_fail_os(err, -failed, "cannot sync %s", path);
        if (!cx_failed(status) && atomic_load_explicit(&log->spare.stop, memory_order_relaxed))
            status = cx_fail(err, CX_E_BUSY, "%s is being closed", log->folder);
    }
    cx_alloc_free(log->alloc, zeros, ZEROS_SIZE);
    return status;
}

cx_status cx_log_segment_prepare(const cx_log *log, const char *name, uint64_t size_bytes,
                                 cx_file *out, cx_err *err)
{
    char path[CX_LOG_PATH_SIZE];
    cx_file file;
    cx_log_path(log, name, path);
    int failed = log->io->open(log->io, path,
                               CX_IO_READ | CX_IO_WRITE | CX_IO_CREATE | CX_IO_TRUNCATE, &file);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot create %s", path);
    cx_status status = CX_SUCCESS;
    failed = log->io->allocate(log->io, file, size_bytes);
    /* Where room cannot be reserved, writing the zeros takes it as well. */
    if (failed != 0 && failed != -EOPNOTSUPP && failed != -EINVAL && failed != -ENOSYS)
        status = cx_fail_os(err, -failed, "cannot reserve %llu bytes of disk space in %s",
                            (unsigned long long)size_bytes, path);
    if (!cx_failed(status))
        status = write_zeros(log, file, path, size_bytes, err);
    if (cx_failed(status)) {
        (void)log->io->close(log->io, file);
        (void)log->io->unlink(log->io, path);
        return status;
    }
    *out = file;
    return CX_SUCCESS;
}

cx_status cx_log_segment_begin(const cx_log *log, const char *name, cx_file file,
                               const cx_log_header *header, cx_err *err)
{
    char from[CX_LOG_PATH_SIZE], to[CX_LOG_PATH_SIZE];
    uint8_t block[CX_LOG_HEADER_SIZE];
    cx_log_path(log, name, from);
    cx_log_segment_path(log, header->number, to);
    cx_log_header_encode(header, block);
    CX_TRY(cx_io_write_at(log->io, file, from, block, sizeof block, 0, err));
    int failed = log->io->sync(log->io, file, false);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot sync %s", from);
    failed = log->io->rename(log->io, from, to);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot rename %s to %s", from, to);
    return cx_io_sync_folder(log->io, log->folder, err);
}

static cx_status read_header(const cx_log *log, cx_file file, const char *path, uint32_t segment,
                             cx_log_header *out, cx_err *err)
{
    uint8_t block[CX_LOG_HEADER_SIZE];
    size_t got;
    uint64_t size;
    bool regular;
    CX_TRY(cx_io_read_at(log->io, file, path, block, sizeof block, 0, &got, err));
    if (got < sizeof block || !cx_log_header_decode(block, out))
        return cx_log_damaged(err, path, 0, "the header is not as it was written");
    if (out->version != CX_LOG_VERSION)
        return cx_fail_at(err, CX_E_UNSUPPORTED,
                          out->version > CX_LOG_VERSION ? "NewerFormat" : "UnknownFormat", 8,
                          "%s has log format %u; this is cortex " CX_VERSION ", which reads %u",
                          path, (unsigned)out->version, CX_LOG_VERSION);
    if (out->number != segment)
        return cx_log_damaged(err, path, 12, "the header bears another segment's number");
    int failed = log->io->size(log->io, file, &size, &regular);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot ask for the size of %s", path);
    if (!regular || size != out->size_bytes)
        return cx_log_damaged(err, path, size, "the file does not have the size in its header");
    return CX_SUCCESS;
}

static cx_status open_once(const cx_log *log, uint32_t segment, unsigned flags, cx_file *out,
                           cx_log_header *out_header, cx_err *err)
{
    char path[CX_LOG_PATH_SIZE];
    cx_file file;
    cx_log_header header;
    cx_log_segment_path(log, segment, path);
    int failed = log->io->open(log->io, path, flags, &file);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot open %s", path);
    cx_status status = read_header(log, file, path, segment, &header, err);
    if (cx_failed(status)) {
        (void)log->io->close(log->io, file);
        return status;
    }
    *out = file;
    *out_header = header;
    return CX_SUCCESS;
}

/* Once more when it is damaged: the file may have been overwritten because it was archived. */
cx_status cx_log_segment_open(const cx_log *log, uint32_t segment, unsigned flags, cx_file *out,
                              cx_log_header *out_header, cx_err *err)
{
    cx_status status = open_once(log, segment, flags, out, out_header, err);
    return status.code == CX_E_FORMAT ? open_once(log, segment, flags, out, out_header, err)
                                      : status;
}

/* --- the lock file ------------------------------------------------------------------------- */

enum { LOCK_ID_SIZE = 24, LOCK_COUNT_AT = 24, LOCK_COUNT_SIZE = 12 };

static uint32_t count_crc(const cx_log *log, const uint8_t count[8])
{
    return cx_crc32c_add(cx_crc32c_add(0, log->home_id, CX_LOG_ID_SIZE), count, 8);
}

static cx_status lock_busy(const cx_log *log, const char *path, cx_err *err)
{
    char owner[LOCK_ID_SIZE + 1] = "";
    size_t got = 0;
    cx_status status =
        cx_io_read_at(log->io, log->lock_file, path, owner, LOCK_ID_SIZE, 0, &got, NULL);
    owner[cx_failed(status) ? 0 : strspn(owner, "0123456789")] = 0;
    return cx_fail_at(err, CX_E_BUSY, "Locked", CX_NO_OFFSET, "%s is open in writer process %s",
                      log->folder, owner[0] != 0 ? owner : "(unknown)");
}

cx_status cx_log_lock_acquire(cx_log *log, cx_err *err)
{
    char path[CX_LOG_PATH_SIZE], id[LOCK_ID_SIZE + 1];
    cx_log_path(log, "lock", path);
    int failed =
        log->io->open(log->io, path, CX_IO_READ | CX_IO_WRITE | CX_IO_CREATE, &log->lock_file);
    if (failed != 0) {
        log->lock_file = CX_FILE_NONE;
        return cx_fail_os(err, -failed, "cannot open %s", path);
    }
    failed = log->io->lock(log->io, log->lock_file);
    if (failed == -EAGAIN)
        return lock_busy(log, path, err);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot lock %s", path);
    memset(id, 0, sizeof id);
    (void)snprintf(id, sizeof id, "%-20llu\n", (unsigned long long)log->io->process_id(log->io));
    return cx_io_write_at(log->io, log->lock_file, path, id, LOCK_ID_SIZE, 0, err);
}

uint64_t cx_log_lock_count(const cx_log *log)
{
    uint8_t bytes[LOCK_COUNT_SIZE];
    /* The writer may be half-way through changing it: look again. */
    for (int turn = 0; turn < 3; turn++) {
        size_t got = 0;
        cx_status status = cx_io_read_at(log->io, log->lock_file, "lock", bytes, sizeof bytes,
                                         LOCK_COUNT_AT, &got, NULL);
        if (!cx_failed(status) && got == sizeof bytes &&
            cx_log_get_u32(bytes + 8) == count_crc(log, bytes))
            return cx_log_get_u64(bytes);
    }
    return 0;
}

void cx_log_lock_publish(const cx_log *log, uint64_t count)
{
    uint8_t bytes[LOCK_COUNT_SIZE];
    cx_log_put_u64(bytes, count);
    cx_log_put_u32(bytes + 8, count_crc(log, bytes));
    /* For readers alone: when it fails they see a commit later, nothing else. */
    cx_status ignored =
        cx_io_write_at(log->io, log->lock_file, "lock", bytes, sizeof bytes, LOCK_COUNT_AT, NULL);
    (void)ignored;
}

cx_status cx_log_lock_inspect(cx_log *log, uint64_t *out_required, uint64_t *out_limit, cx_err *err)
{
    char path[CX_LOG_PATH_SIZE];
    cx_log_path(log, "lock", path);
    cx_lock_enter(&log->files_lock);
    int failed = 0;
    if (log->lock_file == CX_FILE_NONE)
        failed = log->io->open(log->io, path, CX_IO_READ, &log->lock_file);
    if (failed != 0)
        log->lock_file = CX_FILE_NONE;
    cx_lock_leave(&log->files_lock);
    *out_required = 0;
    *out_limit = UINT64_MAX;
    if (failed == -ENOENT) /* never written to: a copy */
        return CX_SUCCESS;
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot open %s", path);
    bool held;
    failed = log->io->locked(log->io, log->lock_file, &held);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot ask for the lock on %s", path);
    *out_required = cx_log_lock_count(log);
    if (held)
        *out_limit = *out_required;
    return CX_SUCCESS;
}
