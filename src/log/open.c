/*
 * open.c - creating, opening, recovering and closing a log (docs/formats/log.md §4).
 *
 * Invariants of a log open for writing:
 *   I1  between end_offset and the end of the segment there are zeros on the disk, but for the one
 *       group that is being written: old bytes are never taken for a commit.
 *   I2  of all that was written only that one group is not synced, so only it can be torn.
 *   I3  a segment that has a successor has no incomplete group.
 */
#include <errno.h>
#include <stdio.h>

#include "log/internal.h"

#define TRAIL_BYTES (UINT64_C(2) << 20)

/* --- the object ---------------------------------------------------------------------------- */

static cx_status check_options(const cx_log_options *options, uint64_t *out_segment_bytes,
                               cx_err *err)
{
    uint64_t size = options->segment_bytes != 0 ? options->segment_bytes : CX_LOG_SEGMENT_DEFAULT;
    if (size < CX_LOG_SEGMENT_MIN || size > CX_LOG_SEGMENT_MAX)
        return cx_fail(err, CX_E_LIMIT, "a segment has %llu to %llu bytes",
                       (unsigned long long)CX_LOG_SEGMENT_MIN,
                       (unsigned long long)CX_LOG_SEGMENT_MAX);
    *out_segment_bytes = (size + CX_LOG_HEADER_SIZE - 1) / CX_LOG_HEADER_SIZE * CX_LOG_HEADER_SIZE;
    return CX_SUCCESS;
}

cx_status cx_log_new(const char *folder, const cx_log_options *options, cx_log **out, cx_err *err)
{
    static const cx_log_options defaults = {0};
    uint64_t segment_bytes = 0;
    if (options == NULL)
        options = &defaults;
    CX_TRY(check_options(options, &segment_bytes, err));
    const cx_alloc *alloc = options->alloc != NULL ? options->alloc : cx_alloc_default();
    size_t size = strlen(folder) + 1;
    if (size > CX_LOG_PATH_SIZE - 64)
        return cx_fail(err, CX_E_LIMIT, "path too long: %s", folder);
    cx_log *log = cx_alloc_zeroed(alloc, 1, sizeof *log);
    char *copy = cx_alloc_new(alloc, size);
    if (log == NULL || copy == NULL) {
        cx_alloc_free(alloc, log, sizeof *log);
        cx_alloc_free(alloc, copy, size);
        return cx_fail_nomem(err);
    }
    memcpy(copy, folder, size);
    log->alloc = alloc;
    log->folder = copy;
    log->folder_size = size;
    const cx_io *io = options->io != NULL ? options->io : cx_io_system();
    cx_status status = cx_archives_new(copy, io, alloc, &log->archives, err);
    if (cx_failed(status)) {
        cx_alloc_free(alloc, copy, size);
        cx_alloc_free(alloc, log, sizeof *log);
        return status;
    }
    log->io = cx_archives_io(log->archives);
    log->read_only = options->read_only;
    log->segment_bytes = segment_bytes;
    log->trail_bytes = options->trail_bytes != 0 ? options->trail_bytes : TRAIL_BYTES;
    log->file = log->lock_file = log->spare.file = CX_FILE_NONE;
    cx_buf_init(&log->pending, alloc);
    cx_buf_init(&log->writing, alloc);
    cx_lock_init(&log->lock);
    cx_lock_init(&log->files_lock);
    cx_lock_init(&log->erase_lock);
    cx_lock_init(&log->archiver.lock);
    *out = log;
    return CX_SUCCESS;
}

void cx_log_close(cx_log *log)
{
    if (log == NULL)
        return;
    cx_log_archiver_done(log);
    cx_log_spare_done(log);
    cx_log_files_done(log);
    if (log->file != CX_FILE_NONE)
        (void)log->io->close(log->io, log->file);
    if (log->lock_file != CX_FILE_NONE)
        (void)log->io->close(log->io, log->lock_file);
    cx_buf_done(&log->pending);
    cx_buf_done(&log->writing);
    cx_lock_done(&log->lock);
    cx_lock_done(&log->files_lock);
    cx_lock_done(&log->erase_lock);
    cx_lock_done(&log->archiver.lock);
    const cx_alloc *alloc = log->alloc;
    cx_archives_free(log->archives);
    cx_alloc_free(alloc, log->folder, log->folder_size);
    cx_alloc_free(alloc, log, sizeof *log);
}

void cx_log_home_id(const cx_log *log, uint8_t out[16])
{
    memcpy(out, log->home_id, CX_LOG_ID_SIZE);
}

/* --- creating ------------------------------------------------------------------------------ */

/* Makes the name of `folder` in the folder above it durable. */
cx_status cx_log_sync_above(const cx_log *log, cx_err *err)
{
    char above[CX_LOG_PATH_SIZE];
    size_t size = log->folder_size - 1;
    while (size > 1 && log->folder[size - 1] == '/')
        size--;
    while (size > 0 && log->folder[size - 1] != '/')
        size--;
    while (size > 1 && log->folder[size - 1] == '/')
        size--;
    memcpy(above, log->folder, size);
    above[size] = 0;
    return cx_io_sync_folder(log->io, size == 0 ? "." : above, err);
}

static cx_status make_first_segment(cx_log *log, const uint8_t *home_id, cx_err *err)
{
    cx_file file;
    cx_log_header header = {.version = CX_LOG_VERSION, .size_bytes = log->segment_bytes};
    int failed = 0;
    if (home_id != NULL)
        memcpy(header.home_id, home_id, sizeof header.home_id);
    else
        failed = log->io->random(log->io, header.home_id, sizeof header.home_id);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot get random bytes");
    CX_TRY(cx_log_segment_prepare(log, cx_log_spare_name, log->segment_bytes, &file, err));
    cx_status status = cx_log_segment_begin(log, cx_log_spare_name, file, &header, err);
    (void)log->io->close(log->io, file);
    return status;
}

cx_status cx_log_create(const char *folder, const cx_log_options *options, cx_err *err)
{
    cx_log *log;
    uint32_t count;
    CX_TRY(cx_log_new(folder, options, &log, err));
    cx_status status;
    int failed = log->io->mkdir(log->io, folder);
    if (failed != 0 && failed != -EEXIST)
        CX_TRY_GOTO(status, cx_fail_os(err, -failed, "cannot make %s", folder));
    CX_TRY_GOTO(status, cx_log_lock_acquire(log, err));
    status = cx_log_segment_count(log, &count, err);
    if (!cx_failed(status) || status.code == CX_E_FORMAT)
        CX_TRY_GOTO(status, cx_fail(err, CX_E_EXISTS, "there is a log in %s", folder));
    if (status.code != CX_E_NOT_FOUND)
        goto done;
    CX_TRY_GOTO(status, make_first_segment(log, options != NULL ? options->home_id : NULL, err));
    status = cx_log_sync_above(log, err);
done:
    cx_log_close(log);
    return status;
}

/* --- recovering ---------------------------------------------------------------------------- */

/* How far the last segment was read. */
typedef struct reach {
    uint64_t commits; /* whole ones of the whole log */
    uint64_t end;     /* after the last of them */
    uint64_t last_at; /* where the last one begins; 0 = none in this segment */
    bool last_spoilt;
    uint8_t last_mark[CX_LOG_MARK_SIZE];
} reach;

typedef struct tail {
    reach now, before;  /* before the last group */
    cx_log_trail trail; /* up to `before` */
    uint64_t data_end;  /* after the last byte that is not zero, >= now.end */
    bool damaged;       /* there are commits after what is not whole */
} tail;

static void reach_point(const cx_log_point *point, reach *out)
{
    out->commits = point->commits;
    out->end = point->offset;
    memcpy(out->last_mark, point->mark, CX_LOG_MARK_SIZE);
}

/* Where the segment begins, or where the trail says that reading may begin. */
static tail start_of(const cx_log_window *window, const cx_log_trail *trail)
{
    reach start = {.commits = window->header.first_commit, .end = CX_LOG_HEADER_SIZE};
    if (trail->known.offset != 0)
        reach_point(&trail->known, &start);
    return (tail){.now = start, .before = start, .trail = *trail};
}

/* A group follows on what was reached. */
static void step_trail(const cx_log_window *window, cx_log_trail *trail, const reach *before)
{
    cx_log_point end = {
        .segment = window->header.number, .offset = before->end, .commits = before->commits};
    memcpy(end.mark, before->last_mark, sizeof end.mark);
    if (end.offset != CX_LOG_HEADER_SIZE)
        (void)cx_log_trail_step(trail, window->log->trail_bytes, &end);
}

/* Goes on as long as whole groups with a number below `limit` follow one another. */
static cx_status read_groups(cx_log_window *window, uint64_t limit, tail *out, cx_err *err)
{
    while (out->now.commits < limit) {
        cx_log_group group;
        bool whole;
        CX_TRY(cx_log_window_group(window, out->now.end, &group, &whole, err));
        if (!whole || group.mark.commit != out->now.commits)
            break;
        step_trail(window, &out->trail, &out->now);
        out->before = out->now;
        out->now.commits++;
        out->now.last_at = group.offset;
        out->now.last_spoilt = group.spoilt;
        out->now.end = group.end;
        memcpy(out->now.last_mark, group.mark_bytes, CX_LOG_MARK_SIZE);
    }
    return CX_SUCCESS;
}

/*
 * `known`: so many commits were durable once, and cannot be torn.  Where reading began at a note,
 * any mark after what was reached says that the note is not true: out->damaged.
 */
static cx_status read_tail(cx_log_window *window, const cx_log_trail *from, uint64_t known,
                           tail *out, cx_err *err)
{
    bool noted = from->known.offset != 0;
    *out = start_of(window, from);
    CX_TRY(read_groups(window, UINT64_MAX, out, err));
    for (;;) {
        cx_log_found after;
        uint64_t commits = out->now.commits;
        uint64_t least = noted ? window->header.first_commit : commits + 1;
        /* I2: a torn group has nothing after it.  A mark of a later commit says that this one was
         * whole once. */
        CX_TRY(cx_log_window_search(window, out->now.end, least, &after, err));
        out->data_end = after.data_end;
        if (!after.found)
            break;
        /* A living writer may have finished it just now; then there are more. */
        CX_TRY(read_groups(window, UINT64_MAX, out, err));
        out->damaged = out->now.commits == commits;
        if (out->damaged)
            return CX_SUCCESS;
    }
    if (out->now.last_spoilt && out->now.commits > known)
        out->now = out->before;
    return CX_SUCCESS;
}

/* From the note, where that leads to an end without doubt, or else from the segment's beginning;
 * `from` is then none. */
static cx_status read_end(cx_log_window *window, cx_log_trail *from, uint64_t known, tail *out,
                          cx_err *err)
{
    CX_TRY(read_tail(window, from, known, out, err));
    if (from->known.offset == 0 || (!out->damaged && out->now.commits >= known))
        return CX_SUCCESS;
    *from = (cx_log_trail){0};
    return read_tail(window, from, known, out, err);
}

static cx_status damage_error(const cx_log *log, const tail *found, uint64_t required, cx_err *err)
{
    char path[CX_LOG_PATH_SIZE], what[120];
    cx_log_segment_path(log, log->head.number, path);
    if (found->damaged)
        return cx_log_damaged(err, path, found->now.end,
                              "a complete commit follows an incomplete one");
    (void)snprintf(what, sizeof what, "commits %llu to %llu were acknowledged and are not there",
                   (unsigned long long)found->now.commits, (unsigned long long)(required - 1));
    return cx_log_damaged(err, path, found->now.end, what);
}

/* Writes [from, to) again, either what is there or zeros. */
static cx_status write_again(cx_log *log, uint64_t from, uint64_t to, bool zeros, cx_err *err)
{
    enum { STEP = 1 << 20 };
    char path[CX_LOG_PATH_SIZE];
    cx_log_segment_path(log, log->head.number, path);
    uint8_t *step = cx_alloc_zeroed(log->alloc, 1, STEP);
    if (step == NULL)
        return cx_fail_nomem(err);
    cx_status status = CX_SUCCESS;
    while (from < to && !cx_failed(status)) {
        size_t size = to - from < STEP ? (size_t)(to - from) : STEP, got = size;
        if (!zeros)
            status = cx_io_read_at(log->io, log->file, path, step, size, from, &got, err);
        if (!cx_failed(status) && got != size)
            status = cx_log_damaged(err, path, from + got, "the file ends here");
        if (!cx_failed(status))
            status = cx_io_write_at(log->io, log->file, path, step, size, from, err);
        from += size;
    }
    cx_alloc_free(log->alloc, step, STEP);
    return status;
}

/*
 * Brings the disk to I1.  The last whole group may be in the system's memory alone: the former
 * writer ended, or failed, before its sync.  After a failed sync memory says nothing about the
 * disk, so the group is written again.
 */
static cx_status repair_tail(cx_log *log, const tail *found, cx_err *err)
{
    const reach *now = &found->now;
    if (now->last_at != 0)
        CX_TRY(write_again(log, now->last_at, now->end, false, err));
    CX_TRY(write_again(log, now->end, found->data_end, true, err));
    int failed = log->io->sync(log->io, log->file, true);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot sync the last segment of %s", log->folder);
    return CX_SUCCESS;
}

/* Until the first commit in a segment the names above it may not be durable. */
static cx_status sync_names(const cx_log *log, cx_err *err)
{
    CX_TRY(cx_io_sync_folder(log->io, log->folder, err));
    return log->head.number == 0 ? cx_log_sync_above(log, err) : CX_SUCCESS;
}

static void begin_at(cx_log *log, const tail *end)
{
    const reach *found = &end->now;
    log->trail = end->trail;
    log->seed = cx_log_seed(log->home_id, log->head.number);
    log->durable = log->next_commit = found->commits;
    log->end_offset = log->next_offset = found->end;
    memcpy(log->last_mark, found->last_mark, CX_LOG_MARK_SIZE);
}

/* Copies of segments are overwritten first: what is in them may be erased in a moment. */
static cx_status remove_working_files(const cx_log *log, cx_err *err)
{
    char path[CX_LOG_PATH_SIZE];
    cx_log_path(log, cx_log_spare_name, path);
    (void)log->io->unlink(log->io, path);
    cx_log_path(log, cx_log_large_name, path);
    (void)log->io->unlink(log->io, path);
    return cx_archives_discard(log->archives, err);
}

static cx_status open_writer(cx_log *log, cx_log_window *window, cx_log_opened *opened, cx_err *err)
{
    tail found;
    cx_log_trail from;
    CX_TRY(cx_log_segment_count(log, &opened->segment_count, err));
    CX_TRY(cx_log_lock_acquire(log, err));
    /* Counted again: only now no writer adds segments. */
    CX_TRY(cx_log_segment_count(log, &opened->segment_count, err));
    CX_TRY(cx_log_window_open(window, opened->segment_count - 1, err));
    log->head = window->header;
    memcpy(log->home_id, log->head.home_id, CX_LOG_ID_SIZE);
    uint64_t known = cx_log_lock_count(log);
    cx_log_trail_begin(&from, window);
    CX_TRY(read_end(window, &from, known, &found, err));
    if (found.damaged || known > found.now.commits)
        return damage_error(log, &found, known, err);
    CX_TRY(cx_log_segment_open(log, log->head.number, CX_IO_READ | CX_IO_WRITE, &log->file,
                               &log->head, err));
    if (known < found.now.commits || found.data_end != found.now.end)
        CX_TRY(repair_tail(log, &found, err));
    if (found.now.last_at == 0)
        CX_TRY(sync_names(log, err));
    CX_TRY(remove_working_files(log, err));
    begin_at(log, &found);
    cx_log_lock_publish(log, found.now.commits);
    if (log->trail.known.offset != from.known.offset)
        cx_log_trail_publish(log);
    opened->commit_count = found.now.commits;
    opened->torn_bytes = found.data_end - found.now.end;
    return CX_SUCCESS;
}

/* All whole commits count, whatever lies between them: reading in order names the damage. */
static cx_status count_past_damage(cx_log_window *window, reach *found, cx_err *err)
{
    for (;;) {
        cx_log_group group;
        bool more;
        CX_TRY(cx_log_window_next_whole(window, found->end, found->commits, &group, &more, err));
        if (!more)
            return CX_SUCCESS;
        found->commits = group.mark.commit + 1;
        found->end = group.end;
    }
}

static cx_status open_reader(cx_log *log, cx_log_window *window, cx_log_opened *opened, cx_err *err)
{
    tail found;
    cx_log_trail from;
    uint64_t required, limit;
    CX_TRY(cx_log_segment_count(log, &opened->segment_count, err));
    CX_TRY(cx_log_window_open(window, opened->segment_count - 1, err));
    log->head = window->header;
    memcpy(log->home_id, log->head.home_id, CX_LOG_ID_SIZE);
    CX_TRY(cx_log_lock_inspect(log, &required, &limit, err));
    cx_log_trail_begin(&from, window);
    CX_TRY(read_end(window, &from, required, &found, err));
    /* Asked again: a writer that began meanwhile has what it wrote since not synced, perhaps. */
    CX_TRY(cx_log_lock_inspect(log, &required, &limit, err));
    if (limit == UINT64_MAX && !found.damaged)
        opened->torn_bytes = found.data_end - found.now.end;
    if (found.damaged)
        CX_TRY(count_past_damage(window, &found.now, err));
    if (found.now.commits > limit) { /* what a living writer has not synced is not there yet */
        if (from.known.commits > limit)
            from = (cx_log_trail){0};
        found = start_of(window, &from);
        CX_TRY(read_groups(window, limit, &found, err));
    }
    begin_at(log, &found);
    opened->commit_count = found.now.commits;
    return CX_SUCCESS;
}

cx_status cx_log_open(const char *folder, const cx_log_options *options, cx_log **out,
                      cx_log_opened *out_opened, cx_err *err)
{
    cx_log *log;
    cx_log_opened opened = {0};
    cx_log_window window;
    CX_TRY(cx_log_new(folder, options, &log, err));
    cx_log_window_init(&window, log);
    cx_status status = cx_archives_find(log->archives, err);
    if (!cx_failed(status))
        status = log->read_only ? open_reader(log, &window, &opened, err)
                                : open_writer(log, &window, &opened, err);
    cx_log_window_done(&window);
    if (cx_failed(status)) {
        cx_log_close(log);
        return status;
    }
    *out = log;
    if (out_opened != NULL)
        *out_opened = opened;
    return CX_SUCCESS;
}
