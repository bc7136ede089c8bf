/*
 * backup.c - copying a log while it is written to.
 *
 * Segments are copied as they are, the last one up to its last durable commit, and zeros after.
 * The first segment gets its name last: a copy that was cut short is no log.  Then the copy is read
 * through.  An erasure that came across the copying left a frame half erased in the copy: its
 * erasable part is erased there too.
 */
#include <errno.h>

#include "log/internal.h"

enum { STEP_SIZE = 1 << 20 };

/* Where the log ends for this copy. */
typedef struct copy_end {
    uint32_t segment;
    uint64_t offset;
    uint64_t commits;
} copy_end;

static cx_status find_end(cx_log *log, copy_end *out, cx_err *err)
{
    cx_log *fresh = log;
    if (log->read_only) { /* a living writer has gone on since it was opened */
        cx_log_options options = {.alloc = log->alloc, .io = log->io, .read_only = true};
        CX_TRY(cx_log_open(log->folder, &options, &fresh, NULL, err));
    }
    cx_lock_enter(&fresh->lock);
    *out = (copy_end){fresh->head.number, fresh->end_offset, fresh->durable};
    cx_lock_leave(&fresh->lock);
    if (log->read_only)
        cx_log_close(fresh);
    return CX_SUCCESS;
}

/* --- segments ------------------------------------------------------------------------------ */

static cx_status copy_bytes(const cx_log *from, cx_file in, const cx_log *to, cx_file out,
                            uint64_t end, uint64_t size, cx_err *err)
{
    uint8_t *step = cx_alloc_zeroed(from->alloc, 1, STEP_SIZE);
    if (step == NULL)
        return cx_fail_nomem(err);
    cx_status status = CX_SUCCESS;
    for (uint64_t at = 0; at < size && !cx_failed(status);) {
        uint64_t left = size - at;
        size_t want = left < STEP_SIZE ? (size_t)left : STEP_SIZE;
        size_t copied = at >= end ? 0 : end - at < want ? (size_t)(end - at) : want;
        size_t got = 0;
        memset(step + copied, 0, want - copied);
        if (copied != 0)
            status = cx_io_read_at(from->io, in, from->folder, step, copied, at, &got, err);
        if (!cx_failed(status) && got < copied)
            status = cx_log_damaged(err, from->folder, at + got, "a segment ends early");
        if (!cx_failed(status))
            status = cx_io_write_at(to->io, out, to->folder, step, want, at, err);
        at += want;
    }
    cx_alloc_free(from->alloc, step, STEP_SIZE);
    return status;
}

/* To a working name in the other folder. */
static cx_status copy_segment(const cx_log *from, const cx_log *to, uint32_t segment,
                              const copy_end *end, cx_err *err)
{
    char path[CX_LOG_PATH_SIZE], name[CX_LOG_PATH_SIZE];
    cx_file in, out;
    cx_log_header header;
    CX_TRY(cx_log_segment_open(from, segment, CX_IO_READ, &in, &header, err));
    cx_status status = CX_SUCCESS;
    cx_log_path(to, cx_log_spare_name, path);
    int failed = to->io->open(to->io, path, CX_IO_WRITE | CX_IO_CREATE | CX_IO_TRUNCATE, &out);
    if (failed != 0) {
        (void)from->io->close(from->io, in);
        return cx_fail_os(err, -failed, "cannot create %s", path);
    }
    uint64_t used = segment == end->segment ? end->offset : header.size_bytes;
    status = copy_bytes(from, in, to, out, used, header.size_bytes, err);
    if (!cx_failed(status) && (failed = to->io->sync(to->io, out, false)) != 0)
        status = cx_fail_os(err, -failed, "cannot sync %s", path);
    (void)from->io->close(from->io, in);
    failed = to->io->close(to->io, out);
    if (!cx_failed(status) && failed != 0)
        status = cx_fail_os(err, -failed, "cannot close %s", path);
    cx_log_segment_path(to, segment, name);
    if (!cx_failed(status) && (failed = to->io->rename(to->io, path, name)) != 0)
        status = cx_fail_os(err, -failed, "cannot rename %s to %s", path, name);
    if (cx_failed(status))
        (void)to->io->unlink(to->io, path);
    return status;
}

static cx_status copy_segments(const cx_log *from, const cx_log *to, const copy_end *end,
                               cx_err *err)
{
    for (uint32_t segment = end->segment; segment > 0; segment--)
        CX_TRY(copy_segment(from, to, segment, end, err));
    CX_TRY(cx_io_sync_folder(to->io, to->folder, err));
    CX_TRY(copy_segment(from, to, 0, end, err));
    CX_TRY(cx_io_sync_folder(to->io, to->folder, err));
    return cx_log_sync_above(to, err);
}

/* --- checking the copy --------------------------------------------------------------------- */

/* Half erased in the copy: when the frame is erased by now, it is there as well. */
static cx_status erase_in_copy(cx_log *from, cx_log *to, cx_log_place place, cx_err *err)
{
    cx_buf buf;
    cx_log_frame frame;
    bool erased = false;
    cx_buf_init(&buf, from->alloc);
    cx_status status = cx_log_read(from, place, &buf, &frame, &erased, err);
    cx_buf_done(&buf);
    if (status.code == CX_E_FORMAT)
        return CX_SUCCESS; /* as it is in the original */
    CX_TRY(status);
    return erased ? cx_log_erase(to, place, err) : CX_SUCCESS;
}

static cx_status check_commits(cx_log *from, cx_log *to, uint64_t expected, cx_err *err)
{
    cx_log_scan *scan;
    cx_log_commit commit;
    uint64_t seen = 0;
    bool end = false;
    CX_TRY(cx_log_scan_begin(to, 0, &scan, err));
    cx_status status = CX_SUCCESS;
    while (!end) {
        CX_TRY_GOTO(status, cx_log_scan_next(scan, &commit, &end, err));
        for (size_t i = 0; !end && i < commit.count; i++)
            if (commit.items[i].erasable_damaged)
                CX_TRY_GOTO(status, erase_in_copy(from, to, commit.items[i].place, err));
        seen += end ? 0 : 1;
    }
    if (seen != expected)
        status = cx_log_damaged(err, to->folder, CX_NO_OFFSET, "the copy lacks commits");
done:
    cx_log_scan_end(scan);
    return status;
}

cx_status cx_log_backup(cx_log *log, const char *to_folder, cx_err *err)
{
    cx_log_options options = {.alloc = log->alloc, .io = cx_archives_under(log->archives)};
    cx_log *to = NULL, *copy = NULL;
    copy_end end;
    uint32_t count;
    CX_TRY(find_end(log, &end, err));
    CX_TRY(cx_log_new(to_folder, &options, &to, err));
    cx_status status;
    int failed = log->io->mkdir(log->io, to_folder);
    if (failed != 0 && failed != -EEXIST)
        CX_TRY_GOTO(status, cx_fail_os(err, -failed, "cannot make %s", to_folder));
    CX_TRY_GOTO(status, cx_log_lock_acquire(to, err));
    status = cx_log_segment_count(to, &count, err);
    if (!cx_failed(status) || status.code == CX_E_FORMAT)
        CX_TRY_GOTO(status, cx_fail(err, CX_E_EXISTS, "there is a log in %s", to_folder));
    if (status.code != CX_E_NOT_FOUND)
        goto done;
    CX_TRY_GOTO(status, copy_segments(log, to, &end, err));
    cx_log_close(to); /* and with it the lock */
    to = NULL;
    CX_TRY_GOTO(status, cx_log_open(to_folder, &options, &copy, NULL, err));
    status = check_commits(log, copy, end.commits, err);
done:
    cx_log_close(copy);
    cx_log_close(to);
    return status;
}
