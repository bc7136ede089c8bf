/*
 * archive.c - archiving the closed segments of a log, and bringing them back.
 */
#include <errno.h>
#include <stdio.h>

#include "log/internal.h"

/* Which of the two forms a segment has. */
static cx_status is_archived(const cx_log *log, uint32_t segment, bool *out, cx_err *err)
{
    const cx_io *under = cx_archives_under(log->archives);
    char path[CX_LOG_PATH_SIZE];
    cx_file file;
    cx_log_segment_path(log, segment, path);
    int failed = under->open(under, path, CX_IO_READ, &file);
    *out = failed == -ENOENT;
    if (failed == 0)
        (void)under->close(under, file);
    return failed == 0 || *out ? CX_SUCCESS : cx_fail_os(err, -failed, "cannot open %s", path);
}

static void segment_name(uint32_t segment, char out[24])
{
    (void)snprintf(out, 24, "%06u.seg", (unsigned)segment);
}

/* With erase_lock held: one segment from the one form to the other. */
static cx_status change_form(cx_log *log, uint32_t segment, bool archive, cx_log_archived *done,
                             cx_err *err)
{
    char name[24];
    bool archived;
    cx_archive_sizes sizes;
    CX_TRY(is_archived(log, segment, &archived, err));
    if (archived == archive)
        return CX_SUCCESS;
    segment_name(segment, name);
    CX_TRY(archive ? cx_archives_add(log->archives, name, &sizes, err)
                   : cx_archives_undo(log->archives, name, &sizes, err));
    cx_log_files_forget(log, segment);
    done->segments++;
    done->bytes_unpacked += sizes.unpacked;
    done->bytes_packed += sizes.packed;
    return CX_SUCCESS;
}

static cx_status change_forms(cx_log *log, const cx_log_archive_options *options, uint32_t count,
                              bool archive, cx_log_archived *out, cx_err *err)
{
    *out = (cx_log_archived){0};
    for (uint32_t segment = 0; segment < count; segment++) {
        out->stopped = options->go_on != NULL && !options->go_on(options->arg, segment, count);
        if (out->stopped)
            break;
        cx_lock_enter(&log->erase_lock);
        cx_status status = change_form(log, segment, archive, out, err);
        cx_lock_leave(&log->erase_lock);
        CX_TRY(status);
    }
    return CX_SUCCESS;
}

/* Segments that have a successor. */
static uint32_t closed_segments(cx_log *log)
{
    cx_lock_enter(&log->lock);
    uint32_t count = log->head.number;
    cx_lock_leave(&log->lock);
    return count;
}

static cx_status check_writable(const cx_log *log, cx_err *err)
{
    return log->read_only ? cx_fail(err, CX_E_DENIED, "%s is open for reading only", log->folder)
                          : CX_SUCCESS;
}

cx_status cx_log_archive(cx_log *log, const cx_log_archive_options *options, cx_log_archived *out,
                         cx_err *err)
{
    uint32_t closed = closed_segments(log);
    uint32_t keep = options->keep > 1 ? options->keep - 1 : 0; /* the one written to is the first */
    CX_TRY(check_writable(log, err));
    if (options->folder != NULL)
        CX_TRY(cx_archives_move(log->archives, options->folder, err));
    return change_forms(log, options, closed > keep ? closed - keep : 0, true, out, err);
}

cx_status cx_log_unarchive(cx_log *log, const cx_log_archive_options *options, cx_log_archived *out,
                           cx_err *err)
{
    CX_TRY(check_writable(log, err));
    return change_forms(log, options, closed_segments(log), false, out, err);
}

static cx_status add_space(cx_log *log, uint32_t segment, cx_log_space *out, cx_err *err)
{
    char name[24];
    cx_archive_sizes sizes;
    bool archived;
    CX_TRY(is_archived(log, segment, &archived, err));
    if (archived) {
        segment_name(segment, name);
        CX_TRY(cx_archives_sizes(log->archives, name, &sizes, err));
        out->archived++;
        out->bytes += sizes.unpacked;
        out->bytes_stored += sizes.packed;
        return CX_SUCCESS;
    }
    cx_file file;
    cx_log_header header;
    CX_TRY(cx_log_segment_open(log, segment, CX_IO_READ, &file, &header, err));
    (void)log->io->close(log->io, file);
    out->bytes += header.size_bytes;
    out->bytes_stored += header.size_bytes;
    return CX_SUCCESS;
}

cx_status cx_log_space_of(cx_log *log, cx_log_space *out, cx_err *err)
{
    *out = (cx_log_space){.elsewhere = cx_archives_elsewhere(log->archives)};
    CX_TRY(cx_log_segment_count(log, &out->segments, err));
    for (uint32_t segment = 0; segment < out->segments; segment++)
        CX_TRY(add_space(log, segment, out, err));
    return CX_SUCCESS;
}
