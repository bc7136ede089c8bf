/*
 * commit.c - submitting, group commit, and going on to the next segment (docs/formats/log.md §3).
 *
 * There are two buffers.  What is submitted collects in `pending`, already with its final offsets
 * and checksums, while the leader, the first of those who wait, writes the group before from
 * `writing` and syncs it.  When it is done it wakes all; the first of the next group leads next.
 *
 *   I1  only who has set `busy` writes to the segment or changes head, file, seed, end_offset.
 *   I2  pending always has room reserved for its mark, so closing a group cannot fail.
 *   I3  the next segment is begun when nothing is pending and nothing is being written, and nothing
 *       becomes pending until it is there.
 *   I4  after a failed write or sync nothing is acknowledged any more.
 *   I5  a group that was begun is the one before the pending one; it is finished before the next is
 *       begun, by the first who waits for either.
 */
#include "crypto/api.h"
#include "log/internal.h"

/* A segment of this size or more is prepared by a thread of its own while the one before fills;
 * once a sixteenth of it was written here, so that a program that writes little never begins with
 * it. */
#define AHEAD_FROM_BYTES (UINT64_C(4) << 20)
#define AHEAD_SHARE 16
/* Of a log that grows fast so many full segments stay in the system's memory; more would only push
 * out what other programs need, and each new page would have to be allocated again. */
#define SEGMENTS_CACHED 4
/* A buffer that grew beyond this for one large group is given back. */
enum { BUFFER_RETAINED_BYTES = 8 << 20 };

void cx_log_poison(cx_log *log, const cx_err *cause)
{
    if (log->poisoned)
        return;
    log->poisoned = true;
    log->poison = *cause;
}

static cx_status poisoned_error(const cx_log *log, cx_err *err)
{
    cx_status status = cx_fail_at(err, CX_E_IO, "Poisoned", CX_NO_OFFSET,
                                  "nothing is written any more until the log is opened again: %s",
                                  log->poison.message);
    if (err != NULL)
        err->os_errno = log->poison.os_errno;
    return status;
}

/* --- the next segment ---------------------------------------------------------------------- */

static void forget_old(cx_log *log)
{
    char path[CX_LOG_PATH_SIZE];
    cx_file file;
    if (log->spare.ahead_of <= SEGMENTS_CACHED)
        return;
    cx_log_segment_path(log, log->spare.ahead_of - SEGMENTS_CACHED - 1, path);
    if (log->io->open(log->io, path, CX_IO_READ, &file) != 0)
        return; /* nothing depends on it */
    log->io->forget(log->io, file);
    (void)log->io->close(log->io, file);
}

static void prepare_ahead(void *arg)
{
    cx_log *log = arg;
    cx_file file = CX_FILE_NONE;
    forget_old(log);
    cx_status status =
        cx_log_segment_prepare(log, cx_log_spare_name, log->segment_bytes, &file, NULL);
    cx_lock_enter(&log->lock);
    log->spare.ready = !cx_failed(status);
    log->spare.file = file;
    log->spare.preparing = false;
    cx_lock_wake(&log->lock);
    cx_lock_leave(&log->lock);
}

/* With the lock held.  A failure is found again, and said, when the next segment is needed. */
static void prepare_ahead_if_due(cx_log *log)
{
    cx_log_spare *spare = &log->spare;
    if (log->segment_bytes < AHEAD_FROM_BYTES ||
        log->bytes_written < log->segment_bytes / AHEAD_SHARE || spare->ready || spare->preparing ||
        spare->tried)
        return;
    cx_thread_join(&spare->thread); /* one that has ended */
    spare->tried = true;
    spare->ahead_of = log->head.number;
    spare->preparing = true;
    spare->preparing = cx_thread_start(&spare->thread, prepare_ahead, log);
}

void cx_log_spare_done(cx_log *log)
{
    cx_log_spare *spare = &log->spare;
    atomic_store_explicit(&spare->stop, true, memory_order_relaxed);
    cx_thread_join(&spare->thread);
    if (!spare->ready)
        return;
    char path[CX_LOG_PATH_SIZE];
    (void)log->io->close(log->io, spare->file);
    cx_log_path(log, cx_log_spare_name, path);
    (void)log->io->unlink(log->io, path);
    spare->ready = false;
}

/* A file for a segment with room for `need` bytes, be it the one that was prepared ahead. */
static cx_status open_next_file(cx_log *log, uint64_t need, const char **out_name,
                                cx_file *out_file, uint64_t *out_size, cx_err *err)
{
    cx_log_spare *spare = &log->spare;
    uint64_t size = log->segment_bytes;
    bool large = need > size - CX_LOG_HEADER_SIZE;
    if (large)
        size = (need + 2 * CX_LOG_HEADER_SIZE - 1) / CX_LOG_HEADER_SIZE * CX_LOG_HEADER_SIZE;
    *out_name = large ? cx_log_large_name : cx_log_spare_name;
    *out_size = size;
    if (!large) {
        cx_thread_join(&spare->thread);
        if (spare->ready) {
            *out_file = spare->file;
            spare->ready = false;
            spare->file = CX_FILE_NONE;
            return CX_SUCCESS;
        }
    }
    return cx_log_segment_prepare(log, *out_name, size, out_file, err);
}

static void enter_segment(cx_log *log, const cx_log_header *header, cx_file file)
{
    cx_file old = log->file;
    log->head = *header;
    log->seed = cx_log_seed(log->home_id, header->number);
    log->file = file;
    log->end_offset = log->next_offset = CX_LOG_HEADER_SIZE;
    memset(log->last_mark, 0, sizeof log->last_mark);
    log->spare.tried = false;
    log->bytes_written = 0;
    (void)log->io->close(log->io, old);
}

/* Outside the lock, with busy set (I1).  *out_fatal: it went wrong where the segment may be there
 * already or not, so that the end of the log is not known. */
static cx_status make_next(cx_log *log, uint64_t need, cx_log_header *header, cx_file *file,
                           bool *out_fatal, cx_err *err)
{
    const char *name;
    char path[CX_LOG_PATH_SIZE];
    *out_fatal = false;
    CX_TRY(open_next_file(log, need, &name, file, &header->size_bytes, err));
    cx_status status = cx_log_segment_begin(log, name, *file, header, err);
    if (cx_failed(status)) {
        *out_fatal = true;
        (void)log->io->close(log->io, *file);
        cx_log_path(log, name, path);
        (void)log->io->unlink(log->io, path);
    }
    return status;
}

/* With the lock held, which is left meanwhile; nothing pending, no thread busy (I3). */
static cx_status next_segment(cx_log *log, uint64_t need, cx_err *err)
{
    cx_err why = {0};
    cx_file file;
    bool fatal;
    if (log->head.number == UINT32_MAX - 1)
        return cx_fail(err, CX_E_LIMIT, "%s has as many segments as can be", log->folder);
    cx_log_header header = {.version = CX_LOG_VERSION,
                            .number = log->head.number + 1,
                            .first_commit = log->next_commit,
                            .previous_end =
                                cx_log_end_digest(&log->head, log->end_offset, log->last_mark)};
    memcpy(header.home_id, log->home_id, CX_LOG_ID_SIZE);
    log->busy = log->switching = true;
    cx_lock_leave(&log->lock);
    cx_status status = make_next(log, need, &header, &file, &fatal, &why);
    cx_lock_enter(&log->lock);
    log->busy = log->switching = false;
    if (!cx_failed(status))
        enter_segment(log, &header, file);
    else if (fatal)
        cx_log_poison(log, &why);
    if (cx_failed(status) && err != NULL)
        *err = why;
    cx_lock_wake(&log->lock);
    return status;
}

/* --- group commit -------------------------------------------------------------------------- */

/* The pending group gets its mark (I2) and becomes the one that is written. */
static void close_group(cx_log *log)
{
    uint8_t mark_bytes[CX_LOG_MARK_SIZE];
    cx_log_mark mark = {.frame_count = log->pending_frames,
                        .commit = log->next_commit,
                        .group_bytes = log->pending.size,
                        .heads_crc = log->pending_crc};
    cx_log_mark_encode(&mark, log->seed, log->next_offset + log->pending.size, mark_bytes);
    cx_buf_add(&log->pending, mark_bytes, CX_LOG_MARK_SIZE);
    cx_buf group = log->pending;
    log->pending = log->writing;
    log->writing = group;
    cx_buf_clear(&log->pending);
    log->pending_frames = 0;
    log->pending_crc = 0;
    log->next_offset += group.size;
    log->next_commit++;
}

/* With the lock held, which is left meanwhile; something pending, no thread busy, nothing begun. */
static void begin_group(cx_log *log, bool start_sync)
{
    char path[CX_LOG_PATH_SIZE];
    cx_err why = {0};
    uint64_t offset = log->next_offset;
    close_group(log);
    log->busy = true;
    cx_lock_leave(&log->lock);
    cx_log_segment_path(log, log->head.number, path);
    cx_status status = cx_io_write_at(log->io, log->file, path, log->writing.data,
                                      log->writing.size, offset, &why);
    if (!cx_failed(status) && start_sync)
        log->io->start_sync(log->io, log->file, offset, log->writing.size);
    cx_lock_enter(&log->lock);
    log->busy = false;
    log->begun = !cx_failed(status);
    if (cx_failed(status))
        cx_log_poison(log, &why);
}

static cx_status sync_group(const cx_log *log, cx_err *err)
{
    int failed = log->io->sync(log->io, log->file, true);
    if (failed == 0)
        return CX_SUCCESS;
    char path[CX_LOG_PATH_SIZE];
    cx_log_segment_path(log, log->head.number, path);
    return cx_fail_os(err, -failed, "cannot sync %s", path);
}

/* With the lock held. */
static void step_trail(cx_log *log)
{
    cx_log_point end = {
        .segment = log->head.number, .offset = log->end_offset, .commits = log->durable};
    memcpy(end.mark, log->last_mark, sizeof end.mark);
    if (cx_log_trail_step(&log->trail, log->trail_bytes, &end))
        cx_log_trail_publish(log);
}

/* With the lock held, which is left meanwhile; no thread busy. */
static void finish_group(cx_log *log)
{
    cx_err why = {0};
    uint64_t count = log->next_commit, size = log->writing.size;
    uint8_t mark[CX_LOG_MARK_SIZE];
    memcpy(mark, log->writing.data + size - sizeof mark, sizeof mark);
    log->busy = true;
    cx_lock_leave(&log->lock);
    cx_status status = sync_group(log, &why);
    if (!cx_failed(status))
        cx_log_lock_publish(log, count);
    if (log->writing.capacity > BUFFER_RETAINED_BYTES)
        cx_buf_done(&log->writing);
    cx_lock_enter(&log->lock);
    log->busy = log->begun = false;
    if (cx_failed(status)) {
        cx_log_poison(log, &why);
    } else if (!log->poisoned) { /* I4: an erasure may have failed meanwhile */
        log->durable = count;
        log->end_offset = log->next_offset;
        log->bytes_written += size;
        memcpy(log->last_mark, mark, sizeof log->last_mark);
        step_trail(log);
        prepare_ahead_if_due(log);
    }
}

/* With the lock held, which is left meanwhile; something pending or begun, no thread busy. */
static void lead_group(cx_log *log)
{
    if (!log->begun)
        begin_group(log, false);
    if (log->begun)
        finish_group(log);
    cx_lock_wake(&log->lock);
}

void cx_log_start(cx_log *log)
{
    cx_lock_enter(&log->lock);
    if (log->pending_frames != 0 && !log->busy && !log->begun && !log->poisoned) {
        begin_group(log, true);
        cx_lock_wake(&log->lock);
    }
    cx_lock_leave(&log->lock);
}

/* With the lock held, which is left meanwhile; begun, no thread busy.  Where this fails, opening
 * the log again finds the group or not. */
static void discard_group(cx_log *log)
{
    char path[CX_LOG_PATH_SIZE];
    uint64_t size = log->writing.size;
    log->busy = true;
    cx_lock_leave(&log->lock);
    memset(log->writing.data, 0, size);
    cx_log_segment_path(log, log->head.number, path);
    cx_status status = cx_io_write_at(log->io, log->file, path, log->writing.data, size,
                                      log->next_offset - size, NULL);
    if (!cx_failed(status))
        (void)log->io->sync(log->io, log->file, true);
    cx_lock_enter(&log->lock);
    log->busy = log->begun = false;
}

void cx_log_discard_pending(cx_log *log, const cx_err *cause)
{
    cx_lock_enter(&log->lock);
    while (log->busy)
        cx_lock_wait(&log->lock);
    cx_log_poison(log, cause);
    if (log->begun)
        discard_group(log);
    cx_lock_wake(&log->lock);
    cx_lock_leave(&log->lock);
}

cx_status cx_log_wait(cx_log *log, uint64_t commit, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    cx_lock_enter(&log->lock);
    while (commit >= log->durable) {
        if (log->poisoned) {
            status = poisoned_error(log, err);
            break;
        }
        if (commit > log->next_commit || (commit == log->next_commit && log->pending_frames == 0)) {
            status = cx_fail(err, CX_E_USAGE, "commit %llu was never submitted",
                             (unsigned long long)commit);
            break;
        }
        if (log->busy)
            cx_lock_wait(&log->lock);
        else
            lead_group(log);
    }
    cx_lock_leave(&log->lock);
    return status;
}

void cx_log_get_end(cx_log *log, cx_log_end *out)
{
    cx_lock_enter(&log->lock);
    out->commit_count = log->durable;
    out->segment_count = log->head.number + 1;
    out->digest = cx_log_end_digest(&log->head, log->end_offset, log->last_mark);
    cx_lock_leave(&log->lock);
}

uint64_t cx_log_durable(cx_log *log)
{
    uint64_t required = 0, limit;
    if (log->read_only && cx_failed(cx_log_lock_inspect(log, &required, &limit, NULL)))
        required = 0;
    cx_lock_enter(&log->lock);
    uint64_t durable = log->durable > required ? log->durable : required;
    cx_lock_leave(&log->lock);
    return durable;
}

uint64_t cx_log_newest_frames(cx_log *log, uint64_t commit)
{
    uint64_t frames = 0;
    cx_lock_enter(&log->lock);
    if (!log->read_only && log->durable == commit + 1 && cx_log_is_mark(log->last_mark))
        frames = cx_log_mark_frames(log->last_mark);
    cx_lock_leave(&log->lock);
    return frames;
}

/* --- submitting ---------------------------------------------------------------------------- */

static cx_status measure_frames(const cx_log *log, const cx_log_frame *frames, size_t count,
                                uint64_t *out_bytes, cx_err *err)
{
    uint64_t bytes = 0;
    if (log->read_only)
        return cx_fail(err, CX_E_DENIED, "%s is open for reading only", log->folder);
    if (count == 0)
        return cx_fail(err, CX_E_USAGE, "a commit has at least one frame");
    for (size_t i = 0; i < count; i++) {
        size_t guarded = frames[i].guarded.size, erasable = frames[i].erasable.size;
        if (guarded == 0)
            return cx_fail(err, CX_E_USAGE, "a frame has at least one guarded byte");
        if (guarded > CX_LOG_GUARDED_MAX || erasable > CX_LOG_ERASABLE_MAX)
            return cx_fail(err, CX_E_LIMIT, "a frame of %zu and %zu bytes is too large", guarded,
                           erasable);
        bytes += cx_log_frame_bytes(guarded, erasable);
        if (bytes > CX_LOG_SEGMENT_MAX - CX_LOG_HEADER_SIZE - CX_LOG_MARK_SIZE ||
            bytes > SIZE_MAX / 4)
            return cx_fail(err, CX_E_LIMIT, "a commit must fit into %llu bytes",
                           (unsigned long long)CX_LOG_SEGMENT_MAX);
    }
    *out_bytes = bytes;
    return CX_SUCCESS;
}

/* With the lock held: until the pending group has room for so many bytes more. */
static cx_status wait_for_group_space(cx_log *log, uint64_t bytes, cx_err *err)
{
    for (;;) {
        if (log->poisoned)
            return poisoned_error(log, err);
        uint64_t used = log->next_offset + log->pending.size;
        if (!log->switching && bytes + CX_LOG_MARK_SIZE <= log->head.size_bytes - used)
            break;
        if (log->busy)
            cx_lock_wait(&log->lock);
        else if (log->pending_frames != 0 || log->begun)
            lead_group(log);
        else
            CX_TRY(next_segment(log, bytes + CX_LOG_MARK_SIZE, err));
    }
    if (cx_buf_reserve(&log->pending, (size_t)bytes + CX_LOG_MARK_SIZE) == NULL) {
        log->pending.failed = false; /* what it held is whole */
        return cx_fail_nomem(err);
    }
    return CX_SUCCESS;
}

static void append_frame(cx_log *log, const cx_log_frame *frame, cx_log_place *out_place)
{
    size_t size = (size_t)cx_log_frame_bytes(frame->guarded.size, frame->erasable.size);
    uint64_t offset = log->next_offset + log->pending.size;
    uint8_t *room = log->pending.data + log->pending.size;
    cx_log_frame_encode(frame, log->seed, offset, room);
    cx_buf_advance(&log->pending, size);
    log->pending_crc = cx_crc32c_add(log->pending_crc, room, CX_LOG_FRAME_HEAD_SIZE);
    log->pending_frames++;
    if (out_place != NULL)
        *out_place = (cx_log_place){log->head.number, (uint32_t)size, offset};
}

cx_status cx_log_submit(cx_log *log, const cx_log_frame *frames, size_t count,
                        cx_log_place *out_places, uint64_t *out_commit, cx_err *err)
{
    uint64_t bytes = 0;
    CX_TRY(measure_frames(log, frames, count, &bytes, err));
    cx_lock_enter(&log->lock);
    cx_status status = wait_for_group_space(log, bytes, err);
    if (!cx_failed(status)) {
        for (size_t i = 0; i < count; i++)
            append_frame(log, &frames[i], out_places != NULL ? &out_places[i] : NULL);
        *out_commit = log->next_commit;
    }
    cx_lock_leave(&log->lock);
    return status;
}
