/*
 * archive.c - archiving the closed segments of a log, and bringing them back.
 */
#include <errno.h>
#include <stdio.h>

#include "log/internal.h"
#include "os/api.h"

cx_status cx_log_is_archived(const cx_log *log, uint32_t segment, bool *out, cx_err *err)
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

cx_status cx_log_is_old(const cx_log *log, uint32_t segment, int64_t age_ns, bool *out, cx_err *err)
{
    char path[CX_LOG_PATH_SIZE];
    cx_facts facts;
    *out = age_ns <= 0;
    if (*out)
        return CX_SUCCESS;
    cx_log_segment_path(log, segment, path);
    cx_status status = cx_path_facts(path, false, &facts, err);
    if (status.code == CX_E_NOT_FOUND) { /* archived already */
        *out = true;
        return CX_SUCCESS;
    }
    CX_TRY(status);
    *out = facts.modified_ns <= (int64_t)log->io->wall_ns(log->io) - age_ns;
    return CX_SUCCESS;
}

static void segment_name(uint32_t segment, char out[24])
{
    (void)snprintf(out, 24, "%06u.seg", (unsigned)segment);
}

uint32_t cx_log_closed_segments(cx_log *log)
{
    cx_lock_enter(&log->lock);
    uint32_t count = log->head.number;
    cx_lock_leave(&log->lock);
    return count;
}

/* --- packing ------------------------------------------------------------------------------- */

/* With erase_lock held.  A copy that cannot be overwritten now is before the next erasure. */
static cx_status discard_copy(cx_log *log, cx_err *err)
{
    cx_status status = cx_archives_discard(log->archives, err);
    log->packing.left = cx_failed(status);
    return status;
}

cx_status cx_log_stop_packing(cx_log *log, uint32_t segment, cx_err *err)
{
    while (log->packing.active && log->packing.segment == segment) {
        log->packing.unwanted = true;
        cx_lock_wait(&log->erase_lock);
    }
    return log->packing.left ? discard_copy(log, err) : CX_SUCCESS;
}

/* With erase_lock held: waits until no thread packs. */
static void stop_all_packing(cx_log *log)
{
    while (log->packing.active) {
        log->packing.unwanted = true;
        cx_lock_wait(&log->erase_lock);
    }
}

typedef struct packer {
    cx_log *log;
    const cx_archive_pace *pace; /* may be NULL */
} packer;

static bool is_wanted(void *arg)
{
    const packer *p = arg;
    cx_lock_enter(&p->log->erase_lock);
    bool wanted = !p->log->packing.unwanted;
    cx_lock_leave(&p->log->erase_lock);
    return wanted && (p->pace == NULL || p->pace->go_on(p->pace->arg));
}

/* *out_begun false: it is archived already. */
static cx_status begin_packing(cx_log *log, uint32_t segment, bool *out_begun, cx_err *err)
{
    bool archived = true;
    cx_lock_enter(&log->erase_lock);
    stop_all_packing(log);
    cx_status status = log->packing.left ? discard_copy(log, err) : CX_SUCCESS;
    if (!cx_failed(status))
        status = cx_log_is_archived(log, segment, &archived, err);
    *out_begun = !cx_failed(status) && !archived;
    if (*out_begun)
        log->packing = (cx_log_packing){.active = true, .segment = segment};
    cx_lock_leave(&log->erase_lock);
    return status;
}

/* `status` is what packing ended with. */
static cx_status end_packing(cx_log *log, const char *name, cx_status status, bool *stopped,
                             cx_err *err)
{
    cx_lock_enter(&log->erase_lock);
    *stopped = !cx_failed(status) && (*stopped || log->packing.unwanted);
    if (!cx_failed(status) && !*stopped)
        status = cx_archives_finish(log->archives, name, err);
    else if (cx_failed(status))
        (void)cx_failed(discard_copy(log, NULL));
    else
        status = discard_copy(log, err);
    log->packing.active = false;
    cx_lock_wake(&log->erase_lock);
    cx_lock_leave(&log->erase_lock);
    return status;
}

cx_status cx_log_archive_segment(cx_log *log, uint32_t segment, const cx_archive_pace *pace,
                                 cx_log_archived *done, bool *out_stopped, cx_err *err)
{
    packer p = {log, pace};
    const cx_archive_pace asked = {is_wanted, &p};
    char name[24];
    cx_archive_sizes sizes = {0};
    bool begun;
    *out_stopped = false;
    CX_TRY(begin_packing(log, segment, &begun, err));
    if (!begun)
        return CX_SUCCESS;
    segment_name(segment, name);
    cx_status status = cx_archives_pack(log->archives, name, &asked, &sizes, out_stopped, err);
    CX_TRY(end_packing(log, name, status, out_stopped, err));
    if (*out_stopped)
        return CX_SUCCESS;
    /* Not with the lock held: who reads may wait for it. */
    cx_log_files_forget(log, segment);
    done->segments++;
    done->bytes_unpacked += sizes.unpacked;
    done->bytes_packed += sizes.packed;
    return CX_SUCCESS;
}

cx_status cx_log_archive_move(cx_log *log, const char *folder, cx_err *err)
{
    cx_lock_enter(&log->erase_lock);
    stop_all_packing(log);
    cx_status status = cx_archives_move(log->archives, folder, err);
    cx_lock_leave(&log->erase_lock);
    return status;
}

/* --- all segments -------------------------------------------------------------------------- */

/* Another thread erased in it each time: it stays as it is until the next call. */
#define PACKING_TURNS 8

static cx_status archive_asked(cx_log *log, uint32_t segment, int64_t age_ns, cx_log_archived *done,
                               cx_err *err)
{
    bool stopped;
    CX_TRY(cx_log_is_old(log, segment, age_ns, &stopped, err));
    for (int turn = 0; stopped && turn < PACKING_TURNS; turn++)
        CX_TRY(cx_log_archive_segment(log, segment, NULL, done, &stopped, err));
    return CX_SUCCESS;
}

static cx_status bring_back(cx_log *log, uint32_t segment, cx_log_archived *done, cx_err *err)
{
    char name[24];
    bool archived = false;
    cx_archive_sizes sizes = {0};
    segment_name(segment, name);
    cx_lock_enter(&log->erase_lock);
    cx_status status = cx_log_stop_packing(log, segment, err);
    if (!cx_failed(status))
        status = cx_log_is_archived(log, segment, &archived, err);
    if (!cx_failed(status) && archived)
        status = cx_archives_undo(log->archives, name, &sizes, err);
    cx_lock_leave(&log->erase_lock);
    CX_TRY(status);
    if (!archived)
        return CX_SUCCESS;
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
        CX_TRY(archive ? archive_asked(log, segment, options->age_ns, out, err)
                       : bring_back(log, segment, out, err));
    }
    return CX_SUCCESS;
}

static cx_status check_writable(const cx_log *log, cx_err *err)
{
    return log->read_only ? cx_fail(err, CX_E_DENIED, "%s is open for reading only", log->folder)
                          : CX_SUCCESS;
}

cx_status cx_log_archive(cx_log *log, const cx_log_archive_options *options, cx_log_archived *out,
                         cx_err *err)
{
    uint32_t closed = cx_log_closed_segments(log);
    uint32_t keep = options->keep > 1 ? options->keep - 1 : 0; /* the one written to is the first */
    CX_TRY(check_writable(log, err));
    if (options->folder != NULL)
        CX_TRY(cx_log_archive_move(log, options->folder, err));
    return change_forms(log, options, closed > keep ? closed - keep : 0, true, out, err);
}

cx_status cx_log_unarchive(cx_log *log, const cx_log_archive_options *options, cx_log_archived *out,
                           cx_err *err)
{
    CX_TRY(check_writable(log, err));
    return change_forms(log, options, cx_log_closed_segments(log), false, out, err);
}

/* --- space --------------------------------------------------------------------------------- */

static void add_archive(const cx_archive_sizes *sizes, cx_log_space *out)
{
    out->archived++;
    out->bytes += sizes->unpacked;
    out->bytes_stored += sizes->packed;
    *(sizes->elsewhere ? &out->bytes_elsewhere : &out->bytes_archived) += sizes->packed;
}

static cx_status add_plain(cx_log *log, uint32_t segment, cx_log_space *out, cx_err *err)
{
    cx_file file;
    cx_log_header header;
    CX_TRY(cx_log_segment_open(log, segment, CX_IO_READ, &file, &header, err));
    (void)log->io->close(log->io, file);
    out->bytes += header.size_bytes;
    out->bytes_stored += header.size_bytes;
    out->bytes_plain += header.size_bytes;
    return CX_SUCCESS;
}

/* Another process may change the form between the two looks; then it has the other one now. */
static cx_status add_space(cx_log *log, uint32_t segment, cx_log_space *out, cx_err *err)
{
    char name[24];
    cx_archive_sizes sizes;
    bool archived;
    CX_TRY(cx_log_is_archived(log, segment, &archived, err));
    segment_name(segment, name);
    if (archived && !cx_failed(cx_archives_sizes(log->archives, name, &sizes, err))) {
        add_archive(&sizes, out);
        return CX_SUCCESS;
    }
    return add_plain(log, segment, out, err);
}

cx_status cx_log_space_of(cx_log *log, cx_log_space *out, cx_err *err)
{
    *out = (cx_log_space){.elsewhere = cx_archives_elsewhere(log->archives)};
    CX_TRY(cx_log_segment_count(log, &out->segments, err));
    for (uint32_t segment = 0; segment < out->segments; segment++)
        CX_TRY(add_space(log, segment, out, err));
    cx_log_archiver_noted(log, out);
    return CX_SUCCESS;
}
