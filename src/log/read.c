/*
 * read.c - single frames: reading one while others write, and erasing.
 *
 * A frame that is on the disk never changes but for its erasable part, which can become zeros at
 * any time; so a mismatch there alone is looked at again.
 */
#include "log/internal.h"

/* Most frames are smaller: one read brings head and contents. */
enum { GUESS_SIZE = 8192 };

/* --- open files ---------------------------------------------------------------------------- */

/* The slot that has it open, or the free or idle one to open it in; NULL when all are in use. */
static cx_log_file *find_slot(cx_log *log, uint32_t segment)
{
    cx_log_file *best = NULL;
    for (size_t i = 0; i < CX_LOG_FILES_MAX; i++) {
        cx_log_file *slot = &log->files[i];
        if (slot->last_used != 0 && slot->segment == segment && !slot->stale)
            return slot;
        if (slot->users == 0 && (best == NULL || slot->last_used < best->last_used))
            best = slot;
    }
    return best;
}

/* With files_lock held. */
static int open_slot(cx_log *log, cx_log_file *slot, uint32_t segment)
{
    char path[CX_LOG_PATH_SIZE];
    if (slot->last_used != 0)
        (void)log->io->close(log->io, slot->file);
    slot->last_used = 0;
    slot->stale = false;
    cx_log_segment_path(log, segment, path);
    int failed = log->io->open(log->io, path, CX_IO_READ, &slot->file);
    if (failed == 0) {
        slot->segment = segment;
        slot->last_used = ++log->file_clock;
    }
    return failed;
}

static cx_status file_acquire(cx_log *log, uint32_t segment, cx_log_file **out, cx_err *err)
{
    int failed = 0;
    cx_lock_enter(&log->files_lock);
    cx_log_file *slot;
    while ((slot = find_slot(log, segment)) == NULL)
        cx_lock_wait(&log->files_lock);
    if (slot->last_used == 0 || slot->segment != segment || slot->stale)
        failed = open_slot(log, slot, segment);
    if (failed == 0) {
        slot->users++;
        slot->last_used = ++log->file_clock;
    }
    cx_lock_leave(&log->files_lock);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot open segment %u of %s", (unsigned)segment,
                          log->folder);
    *out = slot;
    return CX_SUCCESS;
}

static void file_release(cx_log *log, cx_log_file *slot)
{
    cx_lock_enter(&log->files_lock);
    if (--slot->users == 0)
        cx_lock_wake(&log->files_lock);
    cx_lock_leave(&log->files_lock);
}

/* With files_lock held: a later reader of that segment opens its file again. */
static void make_stale(cx_log *log, uint32_t segment)
{
    for (size_t i = 0; i < CX_LOG_FILES_MAX; i++)
        if (log->files[i].last_used != 0 && log->files[i].segment == segment)
            log->files[i].stale = true;
}

void cx_log_files_forget(cx_log *log, uint32_t segment)
{
    cx_lock_enter(&log->files_lock);
    make_stale(log, segment);
    for (size_t i = 0; i < CX_LOG_FILES_MAX; i++) {
        cx_log_file *slot = &log->files[i];
        while (slot->stale && slot->users != 0)
            cx_lock_wait(&log->files_lock);
        if (!slot->stale)
            continue;
        (void)log->io->close(log->io, slot->file);
        slot->last_used = 0;
        slot->stale = false;
    }
    cx_lock_leave(&log->files_lock);
}

void cx_log_files_done(cx_log *log)
{
    for (size_t i = 0; i < CX_LOG_FILES_MAX; i++)
        if (log->files[i].last_used != 0)
            (void)log->io->close(log->io, log->files[i].file);
}

/* --- reading ------------------------------------------------------------------------------- */

static cx_status check_place(cx_log *log, cx_log_place place, cx_err *err)
{
    bool there = place.offset >= CX_LOG_HEADER_SIZE && place.offset % CX_LOG_ALIGNMENT == 0;
    if (!log->read_only) {
        cx_lock_enter(&log->lock);
        there = there &&
                (place.segment < log->head.number ||
                 (place.segment == log->head.number && place.offset < log->end_offset &&
                  (place.size_bytes == 0 || place.size_bytes <= log->end_offset - place.offset)));
        cx_lock_leave(&log->lock);
    }
    if (!there)
        return cx_fail_at(err, CX_E_NOT_FOUND, NULL, place.offset,
                          "no frame is on the disk at byte %llu of segment %u",
                          (unsigned long long)place.offset, (unsigned)place.segment);
    return CX_SUCCESS;
}

typedef struct reading {
    cx_log *log;
    cx_file file;
    cx_log_place place;
    char path[CX_LOG_PATH_SIZE];
} reading;

static cx_status begin_reading(reading *r, cx_log_file **slot, cx_err *err)
{
    CX_TRY(check_place(r->log, r->place, err));
    CX_TRY(file_acquire(r->log, r->place.segment, slot, err));
    r->file = (*slot)->file;
    cx_log_segment_path(r->log, r->place.segment, r->path);
    return CX_SUCCESS;
}

/* A file with what is damaged is opened again. */
static void end_reading(const reading *r, cx_log_file *slot, cx_status status)
{
    if (status.code == CX_E_FORMAT) {
        cx_lock_enter(&r->log->files_lock);
        make_stale(r->log, r->place.segment);
        cx_lock_leave(&r->log->files_lock);
    }
    file_release(r->log, slot);
}

static cx_status fail_spoilt(const char *path, uint64_t offset, cx_err *err)
{
    return cx_log_damaged(err, path, offset,
                          "an erasable part is neither as it was written nor erased");
}

/* Has the first `size` bytes of the frame in buf, or fewer where the file ends. */
static cx_status read_up_to(const reading *r, cx_buf *buf, uint64_t size, cx_err *err)
{
    size_t got;
    if (buf->size >= size)
        return CX_SUCCESS;
    if (size > SIZE_MAX)
        return cx_fail_nomem(err);
    uint8_t *room = cx_buf_reserve(buf, (size_t)size - buf->size);
    if (room == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_io_read_at(r->log->io, r->file, r->path, room, (size_t)size - buf->size,
                         r->place.offset + buf->size, &got, err));
    cx_buf_advance(buf, got);
    return CX_SUCCESS;
}

/* A damaged head must not make us ask for a gigabyte. */
static cx_status check_size(const reading *r, uint64_t size, cx_err *err)
{
    uint64_t file_size;
    bool regular;
    int failed = r->log->io->size(r->log->io, r->file, &file_size, &regular);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot ask for the size of %s", r->path);
    if (r->place.offset > file_size || size > file_size - r->place.offset)
        return cx_log_damaged(err, r->path, r->place.offset, "a frame is longer than its segment");
    return CX_SUCCESS;
}

static cx_status read_once(const reading *r, cx_buf *buf, cx_log_frame *out,
                           cx_log_erasable *out_state, cx_err *err)
{
    uint32_t guarded, erasable;
    uint64_t first =
        r->place.size_bytes > CX_LOG_FRAME_HEAD_SIZE ? r->place.size_bytes : GUESS_SIZE;
    cx_buf_clear(buf);
    if (first > GUESS_SIZE)
        CX_TRY(check_size(r, first, err));
    CX_TRY(read_up_to(r, buf, first, err));
    if (buf->size < CX_LOG_FRAME_HEAD_SIZE || !cx_log_frame_sizes(buf->data, &guarded, &erasable))
        return cx_log_damaged(err, r->path, r->place.offset, "no frame begins here");
    uint64_t size = cx_log_frame_bytes(guarded, erasable);
    if (size > buf->size)
        CX_TRY(check_size(r, size, err));
    CX_TRY(read_up_to(r, buf, size, err));
    if (size > buf->size ||
        !cx_log_frame_decode(buf->data, cx_log_seed(r->log->home_id, r->place.segment),
                             r->place.offset, out, out_state))
        return cx_log_damaged(err, r->path, r->place.offset, "a frame is not as it was written");
    return CX_SUCCESS;
}

/* Perhaps an erasure is half-way through. */
static bool erasure_is_partial(cx_log_erasable state)
{
    return state == CX_LOG_SPOILT || state == CX_LOG_HALF_ERASED;
}

/* `locked`: the caller keeps erasures of this process out. */
static cx_status read_open(cx_log *log, cx_log_place place, bool locked, cx_buf *buf,
                           cx_log_frame *out, cx_log_erasable *out_state, cx_err *err)
{
    reading r = {.log = log, .place = place};
    cx_log_file *slot = NULL;
    CX_TRY(begin_reading(&r, &slot, err));
    cx_status status = read_once(&r, buf, out, out_state, err);
    for (int turn = 0; turn < 3 && !cx_failed(status) && erasure_is_partial(*out_state); turn++) {
        if (!locked)
            cx_lock_enter(&log->erase_lock);
        status = read_once(&r, buf, out, out_state, err);
        if (!locked)
            cx_lock_leave(&log->erase_lock);
    }
    end_reading(&r, slot, status);
    return status;
}

/* What is damaged is read once more from a newly opened file: the segment may have been archived or
 * brought back by another process, which overwrites the old file. */
static cx_status read_frame(cx_log *log, cx_log_place place, bool locked, cx_buf *buf,
                            cx_log_frame *out, cx_log_erasable *out_state, cx_err *err)
{
    cx_status status = read_open(log, place, locked, buf, out, out_state, err);
    return status.code == CX_E_FORMAT ? read_open(log, place, locked, buf, out, out_state, err)
                                      : status;
}

cx_status cx_log_read(cx_log *log, cx_log_place place, cx_buf *buf, cx_log_frame *out,
                      bool *out_erased, cx_err *err)
{
    cx_log_frame frame;
    cx_log_erasable state;
    CX_TRY(read_frame(log, place, false, buf, &frame, &state, err));
    if (state == CX_LOG_SPOILT) {
        char path[CX_LOG_PATH_SIZE];
        cx_log_segment_path(log, place.segment, path);
        return fail_spoilt(path, place.offset, err);
    }
    *out = frame;
    *out_erased = state != CX_LOG_LIVE;
    return CX_SUCCESS;
}

/* --- some of a frame ------------------------------------------------------------------------ */

static cx_status read_exactly(const reading *r, void *data, size_t size, uint64_t at, cx_err *err)
{
    size_t got;
    CX_TRY(
        cx_io_read_at(r->log->io, r->file, r->path, data, size, r->place.offset + at, &got, err));
    return got == size ? CX_SUCCESS
                       : cx_log_damaged(err, r->path, r->place.offset,
                                        "a frame is longer than its segment");
}

static cx_status read_said(const reading *r, uint64_t at, cx_log_erasable *out, cx_err *err)
{
    uint8_t head[CX_LOG_ERASABLE_HEAD_SIZE];
    CX_TRY(read_exactly(r, head, sizeof head, at, err));
    *out = cx_log_erasable_said(head);
    return *out == CX_LOG_SPOILT ? fail_spoilt(r->path, r->place.offset, err) : CX_SUCCESS;
}

static cx_status read_guarded(const reading *r, cx_buf *buf, cx_log_range *out, cx_err *err)
{
    uint32_t guarded, erasable;
    cx_buf_clear(buf);
    CX_TRY(read_up_to(r, buf, GUESS_SIZE, err));
    if (buf->size < CX_LOG_FRAME_HEAD_SIZE || !cx_log_frame_sizes(buf->data, &guarded, &erasable))
        return cx_log_damaged(err, r->path, r->place.offset, "no frame begins here");
    CX_TRY(check_size(r, cx_log_frame_bytes(guarded, erasable), err));
    CX_TRY(read_up_to(r, buf, cx_log_erasable_at(guarded), err));
    if (buf->size < cx_log_erasable_at(guarded) ||
        !cx_log_frame_guarded(buf->data, cx_log_seed(r->log->home_id, r->place.segment),
                              r->place.offset, &out->guarded))
        return cx_log_damaged(err, r->path, r->place.offset, "a frame is not as it was written");
    out->erasable_size = erasable;
    return CX_SUCCESS;
}

/* The head is looked at again after the bytes: an erasure writes it before the zeros. */
static cx_status read_range_once(const reading *r, uint64_t from, size_t size, cx_buf *buf,
                                 cx_buf *bytes, cx_log_range *out, cx_err *err)
{
    cx_log_erasable said = CX_LOG_LIVE;
    CX_TRY(read_guarded(r, buf, out, err));
    const uint64_t at = cx_log_erasable_at(out->guarded.size);
    if (from > out->erasable_size || size > out->erasable_size - from)
        return cx_fail_at(err, CX_E_USAGE, NULL, r->place.offset,
                          "found an erasable part of %llu bytes, expected %llu",
                          (unsigned long long)out->erasable_size,
                          (unsigned long long)(from + size));
    if (out->erasable_size != 0)
        CX_TRY(read_said(r, at, &said, err));
    if (said == CX_LOG_LIVE && size != 0) {
        uint8_t *room = cx_buf_reserve(bytes, size);
        if (room == NULL)
            return cx_fail_nomem(err);
        CX_TRY(read_exactly(r, room, size, at + CX_LOG_ERASABLE_HEAD_SIZE + from, err));
        CX_TRY(read_said(r, at, &said, err));
        if (said == CX_LOG_LIVE)
            cx_buf_advance(bytes, size);
    }
    out->erased = said != CX_LOG_LIVE;
    return CX_SUCCESS;
}

static cx_status read_range(cx_log *log, cx_log_place place, uint64_t from, size_t size,
                            cx_buf *buf, cx_buf *bytes, cx_log_range *out, cx_err *err)
{
    reading r = {.log = log, .place = place};
    cx_log_file *slot = NULL;
    CX_TRY(begin_reading(&r, &slot, err));
    cx_status status = read_range_once(&r, from, size, buf, bytes, out, err);
    end_reading(&r, slot, status);
    return status;
}

/* As read_frame. */
cx_status cx_log_read_range(cx_log *log, cx_log_place place, uint64_t from, size_t size,
                            cx_buf *buf, cx_buf *bytes, cx_log_range *out, cx_err *err)
{
    cx_status status = read_range(log, place, from, size, buf, bytes, out, err);
    return status.code == CX_E_FORMAT ? read_range(log, place, from, size, buf, bytes, out, err)
                                      : status;
}

/* --- erasing ------------------------------------------------------------------------------- */

static cx_status write_zeros(const cx_log *log, cx_file file, const char *path, uint64_t from,
                             uint64_t to, cx_err *err)
{
    static const uint8_t zeros[65536];
    while (from < to) {
        size_t size = to - from < sizeof zeros ? (size_t)(to - from) : sizeof zeros;
        CX_TRY(cx_io_write_at(log->io, file, path, zeros, size, from, err));
        from += size;
    }
    return CX_SUCCESS;
}

/* The erasable part of a frame, with its head. */
typedef struct erase_range {
    uint64_t from, to;
} erase_range;

typedef CX_VEC(erase_range) erase_ranges;

static cx_status sync_erased(const cx_log *log, cx_file file, const char *path, cx_err *err)
{
    int failed = log->io->sync(log->io, file, true);
    return failed != 0 ? cx_fail_os(err, -failed, "cannot sync %s", path) : CX_SUCCESS;
}

/*
 * First the heads say that the parts are to be erased, and that is synced; then come the zeros.  In
 * the other order a crash could leave what looks like a torn write.  A head lies within a sector.
 */
static cx_status write_erased(const cx_log *log, cx_file file, const char *path,
                              const erase_ranges *ranges, cx_err *err)
{
    uint8_t head[CX_LOG_ERASABLE_HEAD_SIZE];
    cx_log_erased_head(head);
    for (size_t i = 0; i < ranges->count; i++)
        CX_TRY(cx_io_write_at(log->io, file, path, head, sizeof head, ranges->items[i].from, err));
    CX_TRY(sync_erased(log, file, path, err));
    for (size_t i = 0; i < ranges->count; i++)
        CX_TRY(write_zeros(log, file, path, ranges->items[i].from + sizeof head,
                           ranges->items[i].to, err));
    return sync_erased(log, file, path, err);
}

/*
 * Through a descriptor of its own: the system tells each opening of a file once that its data did
 * not reach the disk, and the news must not be taken from the thread that syncs commits.
 */
static cx_status erase_bytes(cx_log *log, uint32_t segment, const erase_ranges *ranges,
                             bool *out_touched, cx_err *err)
{
    char path[CX_LOG_PATH_SIZE];
    cx_file file;
    cx_log_segment_path(log, segment, path);
    *out_touched = false;
    int failed = log->io->open(log->io, path, CX_IO_READ | CX_IO_WRITE, &file);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot open %s", path);
    *out_touched = true;
    cx_status status = write_erased(log, file, path, ranges, err);
    (void)log->io->close(log->io, file);
    return status;
}

static cx_status add_range(cx_log *log, cx_log_place place, cx_buf *buf, erase_ranges *ranges,
                           cx_err *err)
{
    cx_log_frame frame;
    cx_log_erasable state;
    uint32_t guarded, erasable;
    CX_TRY(read_frame(log, place, true, buf, &frame, &state, err));
    if (!cx_log_frame_sizes(buf->data, &guarded, &erasable) || erasable == 0)
        return CX_SUCCESS;
    erase_range *range = cx_vec_push(ranges, log->alloc);
    if (range == NULL)
        return cx_fail_nomem(err);
    range->from = place.offset + cx_log_erasable_at(guarded);
    range->to = range->from + CX_LOG_ERASABLE_HEAD_SIZE + erasable;
    return CX_SUCCESS;
}

/* Frames of one segment, with erase_lock held: two syncs for all of them. */
static cx_status erase_frames(cx_log *log, const cx_log_place *places, size_t count, cx_buf *buf,
                              erase_ranges *ranges, cx_err *err)
{
    cx_err why = {0};
    bool touched;
    ranges->count = 0;
    CX_TRY(cx_log_stop_packing(log, places[0].segment, err));
    for (size_t i = 0; i < count; i++)
        CX_TRY(add_range(log, places[i], buf, ranges, err));
    if (ranges->count == 0)
        return CX_SUCCESS;
    /* Also when they are erased already: that may not have reached the disk. */
    cx_status status = erase_bytes(log, places[0].segment, ranges, &touched, &why);
    if (cx_failed(status) && touched) {
        cx_lock_enter(&log->lock);
        cx_log_poison(log, &why);
        cx_lock_wake(&log->lock);
        cx_lock_leave(&log->lock);
    }
    if (cx_failed(status) && err != NULL)
        *err = why;
    return status;
}

cx_status cx_log_erase_many(cx_log *log, const cx_log_place *places, size_t count, cx_err *err)
{
    cx_buf buf;
    erase_ranges ranges = {NULL, 0, 0};
    cx_status status = CX_SUCCESS;
    if (log->read_only)
        return cx_fail(err, CX_E_DENIED, "%s is open for reading only", log->folder);
    cx_buf_init(&buf, log->alloc);
    cx_lock_enter(&log->erase_lock);
    for (size_t at = 0, same; at < count && !cx_failed(status); at += same) {
        same = 1;
        while (at + same < count && places[at + same].segment == places[at].segment)
            same++;
        status = erase_frames(log, places + at, same, &buf, &ranges, err);
    }
    cx_lock_leave(&log->erase_lock);
    cx_vec_done(&ranges, log->alloc);
    cx_buf_done(&buf);
    return status;
}

cx_status cx_log_erase(cx_log *log, cx_log_place place, cx_err *err)
{
    return cx_log_erase_many(log, &place, 1, err);
}
