/*
 * trail.c - where in the last segment reading may begin (docs/formats/log.md §1.1).
 *
 * Opening a log reads its last segment, to find where it ends.  What lies a good way before the end
 * was on the disk long ago and cannot be torn, so a writer notes in the lock file the
 * place after one of those commits.  It is believed only where the very mark that it names stands
 * right before that place; anything else, and the segment is read from its beginning.
 *
 * A record can have bytes that are a mark for the place where they come to lie, and the note of a
 * part of a fleet is where others may change it.  So a write must have begun at that place, where
 * that can be told, and what is read from there on must end where all marks end (open.c).
 */
#include <errno.h>

#include "crypto/api.h"
#include "log/internal.h"

enum {
    POINT_AT = 36, /* in the lock file, after the count */
    POINT_OFFSET_AT = 4,
    POINT_MARK_AT = 12,
    POINT_CRC_AT = POINT_MARK_AT + CX_LOG_MARK_SIZE,
    POINT_SIZE = POINT_CRC_AT + 4,
};

static uint32_t point_crc(const cx_log *log, const uint8_t *bytes)
{
    return cx_crc32c_add(cx_crc32c_add(0, log->home_id, CX_LOG_ID_SIZE), bytes, POINT_CRC_AT);
}

/* --- the lock file ---------------------------------------------------------------------------- */

void cx_log_trail_publish(const cx_log *log)
{
    const cx_log_point *point = &log->trail.known;
    uint8_t bytes[POINT_SIZE];
    cx_log_put_u32(bytes, point->segment);
    cx_log_put_u64(bytes + POINT_OFFSET_AT, point->offset);
    memcpy(bytes + POINT_MARK_AT, point->mark, CX_LOG_MARK_SIZE);
    cx_log_put_u32(bytes + POINT_CRC_AT, point_crc(log, bytes));
    /* When it fails, the next open reads more, nothing else. */
    cx_status ignored =
        cx_io_write_at(log->io, log->lock_file, "lock", bytes, sizeof bytes, POINT_AT, NULL);
    (void)ignored;
}

static bool read_point(const cx_log *log, cx_log_point *out)
{
    uint8_t bytes[POINT_SIZE];
    size_t got = 0;
    if (log->lock_file == CX_FILE_NONE)
        return false;
    cx_status status =
        cx_io_read_at(log->io, log->lock_file, "lock", bytes, sizeof bytes, POINT_AT, &got, NULL);
    if (cx_failed(status) || got != sizeof bytes ||
        cx_log_get_u32(bytes + POINT_CRC_AT) != point_crc(log, bytes))
        return false;
    *out = (cx_log_point){.segment = cx_log_get_u32(bytes),
                          .offset = cx_log_get_u64(bytes + POINT_OFFSET_AT)};
    memcpy(out->mark, bytes + POINT_MARK_AT, CX_LOG_MARK_SIZE);
    return true;
}

/* Where it can be told, a write begins at a group and nowhere in it. */
static bool may_be_border(const cx_log_window *window, uint64_t offset)
{
    const cx_io *io = window->log->io;
    bool began = false;
    int failed =
        io->write_began == NULL ? -ENOTSUP : io->write_began(io, window->file, offset, &began);
    return failed == -ENOTSUP || (failed == 0 && began);
}

/* Whether that mark stands there. */
static bool stands(const cx_log_window *window, cx_log_point *point)
{
    const cx_log_header *header = &window->header;
    uint8_t bytes[CX_LOG_MARK_SIZE];
    cx_log_mark mark;
    size_t got = 0;
    if (point->segment != header->number || point->offset % CX_LOG_ALIGNMENT != 0 ||
        point->offset < CX_LOG_HEADER_SIZE + sizeof bytes || point->offset > header->size_bytes)
        return false;
    uint64_t place = point->offset - sizeof bytes;
    const cx_io *io = window->log->io;
    cx_status status =
        cx_io_read_at(io, window->file, "segment", bytes, sizeof bytes, place, &got, NULL);
    if (cx_failed(status) || got != sizeof bytes || memcmp(bytes, point->mark, sizeof bytes) != 0 ||
        !cx_log_mark_decode(bytes, window->seed, place, &mark) ||
        mark.commit < header->first_commit || mark.commit == UINT64_MAX ||
        !may_be_border(window, point->offset))
        return false;
    point->commits = mark.commit + 1;
    return true;
}

void cx_log_trail_begin(cx_log_trail *trail, const cx_log_window *window)
{
    cx_log_point point;
    *trail = (cx_log_trail){0};
    if (read_point(window->log, &point) && stands(window, &point))
        trail->known = trail->next = point;
}

/* --- going on --------------------------------------------------------------------------------- */

bool cx_log_trail_step(cx_log_trail *trail, uint64_t step_bytes, const cx_log_point *end)
{
    bool same = trail->next.offset != 0 && trail->next.segment == end->segment;
    if (same && end->offset - trail->next.offset < step_bytes)
        return false;
    bool moved = same && trail->known.offset != trail->next.offset;
    trail->known = same ? trail->next : (cx_log_point){0};
    trail->next = *end;
    return moved;
}
