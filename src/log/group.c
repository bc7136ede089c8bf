/*
 * group.c - one commit without a log, for stores that are no folder (docs/formats/log.md §9).
 *
 *   guarded bytes   for each frame: head and guarded part, zeros up to a multiple of 8;
 *                   then the end mark
 *   erasable part   its head of 8 bytes, the bytes, zeros up to a multiple of 8
 *
 * Put together in order they are, byte for byte, what a segment with that number has after its
 * header.  All checksums are those of a segment: bytes of another log, or of another commit, never
 * pass.
 */
#include "base/api.h"
#include "crypto/api.h"
#include "log/internal.h"

#define GROUP_BYTES_MAX (UINT64_C(1) << 30)

static uint32_t seed_of(const cx_log_group_id *id)
{
    return cx_log_seed(id->home_id, (uint32_t)(id->number & UINT32_MAX));
}

/* --- writing ---------------------------------------------------------------------------------- */

static cx_status measure_group(const cx_log_frame *frames, size_t count, uint64_t *out, cx_err *err)
{
    *out = 0;
    if (count == 0 || count > UINT32_MAX)
        return cx_fail(err, CX_E_USAGE, "a commit has one frame or more");
    for (size_t i = 0; i < count; i++) {
        if (frames[i].guarded.size == 0 || frames[i].guarded.size > CX_LOG_GUARDED_MAX ||
            frames[i].erasable.size > CX_LOG_ERASABLE_MAX)
            return cx_fail(err, CX_E_LIMIT,
                           "a frame has 1 to %llu guarded and at most %llu "
                           "erasable bytes",
                           (unsigned long long)CX_LOG_GUARDED_MAX,
                           (unsigned long long)CX_LOG_ERASABLE_MAX);
        *out += cx_log_frame_bytes(frames[i].guarded.size, frames[i].erasable.size);
        if (*out > GROUP_BYTES_MAX)
            return cx_fail(err, CX_E_LIMIT, "a commit has more than %llu bytes",
                           (unsigned long long)GROUP_BYTES_MAX);
    }
    return CX_SUCCESS;
}

/* Of one that was erased already: only its size is in the guarded bytes. */
static void add_erased_frame(const cx_log_frame *frame, uint32_t seed, uint64_t offset,
                             cx_buf *scratch, cx_buf *guarded)
{
    size_t first = (size_t)cx_log_erasable_at(frame->guarded.size);
    size_t size = (size_t)cx_log_frame_bytes(frame->guarded.size, frame->erasable.size);
    uint8_t *room = cx_buf_reserve(scratch, size + frame->erasable.size);
    if (room == NULL)
        return;
    memset(room + size, 0, frame->erasable.size);
    const cx_log_frame zeros = {frame->guarded, {room + size, frame->erasable.size}};
    cx_log_frame_encode(&zeros, seed, offset, room);
    cx_buf_add(guarded, room, first);
}

/* Writes one frame that stands at `offset`, through `scratch` when it has an erasable part. */
static void add_frame(const cx_log_frame *frame, uint32_t seed, uint64_t offset, cx_buf *scratch,
                      cx_buf *guarded, cx_buf *erasable, uint64_t *out_size)
{
    size_t first = (size_t)cx_log_erasable_at(frame->guarded.size);
    size_t size = (size_t)cx_log_frame_bytes(frame->guarded.size, frame->erasable.size);
    cx_buf *into = size == first ? guarded : scratch;
    cx_buf_clear(scratch);
    *out_size = 0;
    if (frame->erasable.size != 0 && frame->erasable.data == NULL) {
        add_erased_frame(frame, seed, offset, scratch, guarded);
        return;
    }
    uint8_t *room = cx_buf_reserve(into, size);
    *out_size = size - first;
    if (room == NULL)
        return;
    cx_log_frame_encode(frame, seed, offset, room);
    cx_buf_advance(into, size);
    if (into == guarded)
        return;
    cx_buf_add(guarded, room, first);
    cx_buf_add(erasable, room + first, size - first);
}

static void add_mark(const cx_log_group_id *id, uint64_t frame_count, uint64_t bytes,
                     uint32_t heads_crc, cx_buf *guarded)
{
    uint8_t out[CX_LOG_MARK_SIZE];
    const cx_log_mark mark = {.frame_count = (uint32_t)frame_count,
                              .commit = id->number,
                              .group_bytes = bytes,
                              .heads_crc = heads_crc};
    cx_log_mark_encode(&mark, seed_of(id), CX_LOG_HEADER_SIZE + bytes, out);
    cx_buf_add(guarded, out, sizeof out);
}

cx_status cx_log_group_encode(const cx_log_group_id *id, const cx_log_frame *frames, size_t count,
                              cx_buf *guarded, cx_buf *erasable, uint64_t *out_sizes, cx_err *err)
{
    uint64_t bytes, offset = CX_LOG_HEADER_SIZE;
    uint32_t seed = seed_of(id), heads_crc = 0;
    cx_buf scratch;
    CX_TRY(measure_group(frames, count, &bytes, err));
    cx_buf_init(&scratch, cx_alloc_default());
    for (size_t i = 0; i < count; i++) {
        size_t at = guarded->size;
        add_frame(&frames[i], seed, offset, &scratch, guarded, erasable, &out_sizes[i]);
        if (guarded->size >= at + CX_LOG_FRAME_HEAD_SIZE)
            heads_crc = cx_crc32c_add(heads_crc, guarded->data + at, CX_LOG_FRAME_HEAD_SIZE);
        offset += cx_log_frame_bytes(frames[i].guarded.size, frames[i].erasable.size);
    }
    cx_status status = cx_buf_check(&scratch, err);
    cx_buf_done(&scratch);
    CX_TRY(status);
    add_mark(id, count, bytes, heads_crc, guarded);
    CX_TRY(cx_buf_check(erasable, err));
    return cx_buf_check(guarded, err);
}

/* --- reading ---------------------------------------------------------------------------------- */

static cx_status damaged_group(const cx_log_group_id *id, const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, CX_LOG_DAMAGED, CX_NO_OFFSET, "commit %llu: %s",
                      (unsigned long long)id->number, what);
}

static void add_erased(cx_buf *whole, size_t size)
{
    uint8_t *room = cx_buf_reserve(whole, size);
    if (room == NULL)
        return;
    memset(room, 0, size);
    cx_log_erased_head(room);
    cx_buf_advance(whole, size);
}

/* Puts one frame at the end of `whole`; *at is where it begins in `guarded`, then its end. */
static cx_status join_frame(const cx_log_group_id *id, cx_bytes guarded, size_t *at, size_t frame,
                            cx_log_group_part *part, void *arg, cx_buf *whole, cx_err *err)
{
    uint32_t guarded_size, erasable_size;
    cx_bytes stored = {NULL, 0};
    if (!cx_log_frame_sizes(guarded.data + *at, &guarded_size, &erasable_size))
        return damaged_group(id, "a frame does not begin where one should", err);
    uint64_t first = cx_log_erasable_at(guarded_size);
    uint64_t rest = cx_log_frame_bytes(guarded_size, erasable_size) - first;
    if (first > guarded.size - CX_LOG_MARK_SIZE - *at ||
        whole->size + first + rest > GROUP_BYTES_MAX)
        return damaged_group(id, "a frame is longer than the commit", err);
    cx_buf_add(whole, guarded.data + *at, (size_t)first);
    *at += (size_t)first;
    if (rest == 0)
        return CX_SUCCESS;
    CX_TRY(part(arg, frame, &stored, err));
    if (stored.size == 0)
        add_erased(whole, (size_t)rest);
    else if (stored.size == rest)
        cx_buf_add(whole, stored.data, stored.size);
    else
        return damaged_group(id, "an erasable part has another size than it was written with", err);
    return CX_SUCCESS;
}

/* Decodes the frame at `at` of `whole`. */
static cx_status read_item(const cx_log_group_id *id, const cx_buf *whole, size_t at,
                           cx_log_item *out, cx_err *err)
{
    cx_log_erasable state;
    uint32_t seed = seed_of(id);
    *out = (cx_log_item){0};
    uint32_t guarded_size = 0;
    (void)cx_log_frame_sizes(whole->data + at, &guarded_size, &out->erasable_size);
    if (!cx_log_frame_decode(whole->data + at, seed, CX_LOG_HEADER_SIZE + at, &out->frame, &state))
        return damaged_group(id, "a frame is not as it was written", err);
    out->erased = state == CX_LOG_ERASED;
    out->half_erased = state == CX_LOG_HALF_ERASED;
    out->erasable_damaged = state == CX_LOG_SPOILT || out->half_erased;
    out->place = (cx_log_place){.segment = (uint32_t)(id->number & UINT32_MAX),
                                .offset = CX_LOG_HEADER_SIZE + at};
    return CX_SUCCESS;
}

/* The frames of `whole`, which ends before the mark. */
static cx_status read_items(const cx_log_group_id *id, const cx_buf *whole, cx_log_item *items,
                            size_t count, uint32_t *out_heads_crc, cx_err *err)
{
    size_t at = 0;
    *out_heads_crc = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t guarded_size, erasable_size;
        CX_TRY(read_item(id, whole, at, &items[i], err));
        (void)cx_log_frame_sizes(whole->data + at, &guarded_size, &erasable_size);
        *out_heads_crc = cx_crc32c_add(*out_heads_crc, whole->data + at, CX_LOG_FRAME_HEAD_SIZE);
        at += (size_t)cx_log_frame_bytes(guarded_size, erasable_size);
    }
    return CX_SUCCESS;
}

cx_status cx_log_group_decode(const cx_log_group_id *id, cx_bytes guarded, cx_log_group_part *part,
                              void *arg, cx_buf *whole, cx_arena *arena, const cx_log_item **out,
                              size_t *out_count, cx_err *err)
{
    cx_log_mark mark;
    size_t count = 0, at = 0;
    uint32_t heads_crc;
    cx_buf_clear(whole);
    if (guarded.size < CX_LOG_MARK_SIZE)
        return damaged_group(id, "it is shorter than an end mark", err);
    while (guarded.size - at >= CX_LOG_MARK_SIZE + CX_LOG_FRAME_HEAD_SIZE)
        CX_TRY(join_frame(id, guarded, &at, count++, part, arg, whole, err));
    CX_TRY(cx_buf_check(whole, err));
    if (guarded.size - at != CX_LOG_MARK_SIZE ||
        !cx_log_mark_decode(guarded.data + at, seed_of(id), CX_LOG_HEADER_SIZE + whole->size,
                            &mark))
        return damaged_group(id, "its end mark is not as it was written", err);
    cx_log_item *items = cx_arena_push_array(arena, count, sizeof *items, _Alignof(cx_log_item));
    if (items == NULL && count != 0)
        return cx_fail_nomem(err);
    size_t bytes = whole->size;
    cx_buf_add(whole, guarded.data + at, CX_LOG_MARK_SIZE);
    CX_TRY(cx_buf_check(whole, err));
    whole->size = bytes; /* for read_items; the mark is put back below */
    CX_TRY(read_items(id, whole, items, count, &heads_crc, err));
    whole->size = bytes + CX_LOG_MARK_SIZE;
    if (count == 0 || mark.frame_count != count || mark.commit != id->number ||
        mark.group_bytes != bytes || mark.heads_crc != heads_crc)
        return damaged_group(id, "its end mark does not fit its frames", err);
    *out = items;
    *out_count = count;
    return CX_SUCCESS;
}
