/*
 * window.c - a segment file in memory, a piece at a time: reading group by group, and searching for
 * what is whole after what is not.
 *
 * A group is whole when its frames follow one another without a gap, each with a right checksum, up
 * to a mark with a right checksum that counts and sums up exactly these frames.  Anything else is
 * not whole; whether that is a torn write or damage is for the caller to say.  Erasable parts are
 * not asked for that, since they change; but in the last group one that was neither written whole
 * nor erased is a torn write too.
 */
#include "base/api.h"
#include "crypto/api.h"
#include "log/internal.h"

enum { STEP_SIZE = 256 << 10, SEARCH_SIZE = 1 << 20 };

void cx_log_window_init(cx_log_window *window, cx_log *log)
{
    *window = (cx_log_window){.log = log, .file = CX_FILE_NONE};
    cx_buf_init(&window->bytes, log->alloc);
}

cx_status cx_log_window_open(cx_log_window *window, uint32_t segment, cx_err *err)
{
    cx_log_window_close(window);
    CX_TRY(
        cx_log_segment_open(window->log, segment, CX_IO_READ, &window->file, &window->header, err));
    window->seed = cx_log_seed(window->header.home_id, segment);
    return CX_SUCCESS;
}

void cx_log_window_close(cx_log_window *window)
{
    if (window->file != CX_FILE_NONE)
        (void)window->log->io->close(window->log->io, window->file);
    window->file = CX_FILE_NONE;
    cx_buf_clear(&window->bytes);
}

void cx_log_window_done(cx_log_window *window)
{
    cx_log_window_close(window);
    cx_buf_done(&window->bytes);
    cx_vec_done(&window->items, window->log->alloc);
}

/* --- the piece in memory ------------------------------------------------------------------- */

/* Lets go of what lies before `offset`. */
static void forget_before(cx_log_window *window, uint64_t offset)
{
    uint64_t end = window->base + window->bytes.size;
    if (offset < window->base || offset >= end) {
        cx_buf_clear(&window->bytes);
    } else if (offset != window->base) {
        size_t kept = (size_t)(end - offset);
        memmove(window->bytes.data, window->bytes.data + (offset - window->base), kept);
        window->bytes.size = kept;
    }
    window->base = offset;
}

/*
 * Makes the bytes [keep, end) available, and reads some more when it reads at all.  `end` is within
 * the file; a file that was cut meanwhile is damage.
 */
static cx_status fill_window(cx_log_window *window, uint64_t keep, uint64_t end, uint64_t step,
                             cx_err *err)
{
    if (keep >= window->base && end <= window->base + window->bytes.size)
        return CX_SUCCESS;
    forget_before(window, keep);
    uint64_t from = keep + window->bytes.size;
    uint64_t to = end - from < step ? from + step : end;
    if (to > window->header.size_bytes)
        to = window->header.size_bytes;
    if (to - keep > SIZE_MAX)
        return cx_fail_nomem(err);
    char path[CX_LOG_PATH_SIZE];
    size_t got;
    cx_log_segment_path(window->log, window->header.number, path);
    uint8_t *room = cx_buf_reserve(&window->bytes, (size_t)(to - from));
    if (room == NULL) {
        cx_buf_clear(&window->bytes);
        return cx_fail_nomem(err);
    }
    CX_TRY(cx_io_read_at(window->log->io, window->file, path, room, (size_t)(to - from), from, &got,
                         err));
    cx_buf_advance(&window->bytes, got);
    return from + got >= end ? CX_SUCCESS
                             : cx_log_damaged(err, path, from + got, "the file ends here");
}

static const uint8_t *window_at(const cx_log_window *window, uint64_t offset)
{
    return window->bytes.data + (offset - window->base);
}

/* --- groups -------------------------------------------------------------------------------- */

/* What has been read of a group. */
typedef struct progress {
    uint64_t offset;
    uint32_t heads_crc;
    bool good; /* so far */
    bool closed;
    bool spoilt; /* an erasable part */
} progress;

static bool window_has(const cx_log_window *window, uint64_t offset, uint64_t size)
{
    return offset <= window->header.size_bytes && size <= window->header.size_bytes - offset;
}

static cx_status read_frame(cx_log_window *window, uint64_t start, progress *seen, cx_err *err)
{
    uint32_t guarded, erasable;
    cx_log_erasable state;
    seen->good = cx_log_frame_sizes(window_at(window, seen->offset), &guarded, &erasable);
    uint64_t size = seen->good ? cx_log_frame_bytes(guarded, erasable) : 0;
    seen->good = seen->good && window_has(window, seen->offset, size) && size <= UINT32_MAX;
    if (!seen->good)
        return CX_SUCCESS;
    CX_TRY(fill_window(window, start, seen->offset + size, STEP_SIZE, err));
    cx_log_item item = {
        .place = {window->header.number, (uint32_t)size, seen->offset},
        .erasable_size = erasable,
    };
    const uint8_t *frame = window_at(window, seen->offset);
    seen->good = cx_log_frame_decode(frame, window->seed, seen->offset, &item.frame, &state);
    if (!seen->good)
        return CX_SUCCESS;
    item.erased = state == CX_LOG_ERASED;
    item.erasable_damaged = state == CX_LOG_SPOILT || state == CX_LOG_HALF_ERASED;
    item.half_erased = state == CX_LOG_HALF_ERASED;
    seen->spoilt = seen->spoilt || state == CX_LOG_SPOILT;
    seen->heads_crc = cx_crc32c_add(seen->heads_crc, frame, CX_LOG_FRAME_HEAD_SIZE);
    seen->offset += size;
    cx_log_item *slot = cx_vec_push(&window->items, window->log->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = item;
    return CX_SUCCESS;
}

static cx_status read_mark(cx_log_window *window, uint64_t start, progress *seen,
                           cx_log_group *group, cx_err *err)
{
    seen->good = window_has(window, seen->offset, CX_LOG_MARK_SIZE);
    if (!seen->good)
        return CX_SUCCESS;
    CX_TRY(fill_window(window, start, seen->offset + CX_LOG_MARK_SIZE, STEP_SIZE, err));
    const uint8_t *bytes = window_at(window, seen->offset);
    const cx_log_mark *mark = &group->mark;
    seen->good = cx_log_mark_decode(bytes, window->seed, seen->offset, &group->mark) &&
                 mark->frame_count == window->items.count && mark->frame_count != 0 &&
                 mark->group_bytes == seen->offset - start && mark->heads_crc == seen->heads_crc;
    seen->closed = true;
    memcpy(group->mark_bytes, bytes, CX_LOG_MARK_SIZE);
    group->offset = start;
    group->end = seen->offset + CX_LOG_MARK_SIZE;
    return CX_SUCCESS;
}

/* While a group is read its bytes may move; now they stay. */
static void point_items(cx_log_window *window)
{
    for (size_t i = 0; i < window->items.count; i++) {
        cx_log_item *item = &window->items.items[i];
        const uint8_t *frame = window_at(window, item->place.offset);
        item->frame.guarded.data = frame + CX_LOG_FRAME_HEAD_SIZE;
        if (item->frame.erasable.size != 0)
            item->frame.erasable.data =
                frame + cx_log_erasable_at(item->frame.guarded.size) + CX_LOG_ERASABLE_HEAD_SIZE;
    }
}

static cx_status try_group(cx_log_window *window, uint64_t offset, cx_log_group *out,
                           bool *out_whole, cx_err *err)
{
    progress seen = {.offset = offset, .good = true};
    window->items.count = 0;
    while (seen.good && !seen.closed) {
        seen.good = window_has(window, seen.offset, CX_LOG_FRAME_HEAD_SIZE);
        if (!seen.good)
            break;
        CX_TRY(fill_window(window, offset, seen.offset + CX_LOG_FRAME_HEAD_SIZE, STEP_SIZE, err));
        if (cx_log_is_mark(window_at(window, seen.offset)))
            CX_TRY(read_mark(window, offset, &seen, out, err));
        else
            CX_TRY(read_frame(window, offset, &seen, err));
    }
    *out_whole = seen.good;
    out->spoilt = seen.spoilt;
    if (seen.good)
        point_items(window);
    return CX_SUCCESS;
}

static bool any_damaged(const cx_log_window *window)
{
    for (size_t i = 0; i < window->items.count; i++)
        if (window->items.items[i].erasable_damaged)
            return true;
    return false;
}

cx_status cx_log_window_group(cx_log_window *window, uint64_t offset, cx_log_group *out,
                              bool *out_whole, cx_err *err)
{
    bool fresh = window->bytes.size == 0;
    CX_TRY(try_group(window, offset, out, out_whole, err));
    /* What was in memory may be older than what a writer has added since. */
    if (!*out_whole && !fresh) {
        cx_buf_clear(&window->bytes);
        CX_TRY(try_group(window, offset, out, out_whole, err));
    }
    /* An erasure may have been half-way through: ours waits for the lock, that of another process
     * is done when it is looked at again. */
    for (int turn = 0; turn < 3 && *out_whole && any_damaged(window); turn++) {
        cx_lock *lock = &window->log->erase_lock;
        cx_buf_clear(&window->bytes);
        cx_lock_enter(lock);
        cx_status status = try_group(window, offset, out, out_whole, err);
        cx_lock_leave(lock);
        CX_TRY(status);
    }
    return CX_SUCCESS;
}

/* --- searching ----------------------------------------------------------------------------- */

/* Goes through [offset, end) in memory; where a mark could be cut off by `end`, it is the caller
 * who comes again. */
static void search_piece(const cx_log_window *window, uint64_t offset, uint64_t end, uint64_t least,
                         cx_log_found *out)
{
    for (uint64_t place = offset; place + 8 <= end; place += CX_LOG_ALIGNMENT) {
        uint64_t word, four[4];
        const uint8_t *bytes = window_at(window, place);
        if (end - place >= sizeof four) { /* mostly zeros */
            memcpy(four, bytes, sizeof four);
            if ((four[0] | four[1] | four[2] | four[3]) == 0) {
                place += sizeof four - CX_LOG_ALIGNMENT;
                continue;
            }
        }
        memcpy(&word, bytes, sizeof word);
        if (CX_LIKELY(word == 0))
            continue;
        out->data_end = place + 8;
        if (cx_log_is_mark(bytes) && end - place >= CX_LOG_MARK_SIZE &&
            cx_log_mark_decode(bytes, window->seed, place, &out->mark) &&
            out->mark.commit >= least) {
            out->found = true;
            out->mark_offset = place;
            return;
        }
    }
}

cx_status cx_log_window_search(cx_log_window *window, uint64_t offset, uint64_t least,
                               cx_log_found *out, cx_err *err)
{
    uint64_t size = window->header.size_bytes;
    CX_ASSERT(offset % CX_LOG_ALIGNMENT == 0);
    *out = (cx_log_found){.data_end = offset};
    cx_buf_clear(&window->bytes);
    while (offset < size && !out->found) {
        uint64_t end = size - offset < SEARCH_SIZE ? size : offset + SEARCH_SIZE;
        CX_TRY(fill_window(window, offset, end, end - offset, err));
        search_piece(window, offset, end, least, out);
        offset = end == size ? size : end - CX_LOG_MARK_SIZE + CX_LOG_ALIGNMENT;
    }
    cx_buf_clear(&window->bytes);
    return CX_SUCCESS;
}

cx_status cx_log_window_next_whole(cx_log_window *window, uint64_t offset, uint64_t least,
                                   cx_log_group *out, bool *out_found, cx_err *err)
{
    uint64_t from = offset;
    *out_found = false;
    while (!*out_found) {
        cx_log_found mark;
        CX_TRY(cx_log_window_search(window, from, least, &mark, err));
        if (!mark.found)
            return CX_SUCCESS;
        from = mark.mark_offset + CX_LOG_ALIGNMENT;
        if (mark.mark.group_bytes > mark.mark_offset - offset)
            continue;
        uint64_t start = mark.mark_offset - mark.mark.group_bytes;
        CX_TRY(cx_log_window_group(window, start, out, out_found, err));
        *out_found = *out_found && out->end == mark.mark_offset + CX_LOG_MARK_SIZE;
    }
    return CX_SUCCESS;
}
