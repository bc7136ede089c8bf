/*
 * files_trail.c - where in the last segment of the log reading may begin.
 *
 * The log's lock file says so from byte 36 on (docs/formats/log.md §1.1).  In a part that file is
 * of this process alone; what is there from that byte on is a column of the part's row.  It is read
 * with the names of files, is in the lock file of who takes the part or reads it, and is written
 * after a commit, or before the part is given back, when the log changed it.  The log believes it
 * no more than in a folder, and asks besides whether a write began at that place.
 */
#include <errno.h>

#include "fleet/files_internal.h"

enum { TRAIL_AT = 36 };

cx_status cx_files_trail_load(cx_fleet_files *files, cx_fleet *fleet, cx_err *err)
{
    uint8_t bytes[CX_FLEET_TRAIL];
    bool there;
    CX_TRY(cx_fleet_read_trail(fleet, files->number, bytes, &there, err));
    cx_lock_enter(&files->lock);
    files->trail.there = there;
    files->trail.changed = false;
    if (there)
        memcpy(files->trail.bytes, bytes, sizeof bytes);
    cx_lock_leave(&files->lock);
    return CX_SUCCESS;
}

void cx_files_trail_fill(const cx_fleet_files *files, cx_files_file *file)
{
    cx_buf *bytes = &file->bytes;
    if (bytes->size > TRAIL_AT)
        bytes->size = TRAIL_AT;
    if (!files->trail.there)
        return;
    size_t gap = TRAIL_AT - bytes->size;
    uint8_t *room = cx_buf_reserve(bytes, gap + CX_FLEET_TRAIL);
    if (room == NULL) {
        bytes->failed = false; /* without it more is read */
        return;
    }
    memset(room, 0, gap);
    memcpy(room + gap, files->trail.bytes, CX_FLEET_TRAIL);
    cx_buf_advance(bytes, gap + CX_FLEET_TRAIL);
}

void cx_files_trail_note(cx_fleet_files *files, const cx_files_file *file)
{
    if (!files->owned || file->bytes.size < TRAIL_AT + CX_FLEET_TRAIL)
        return;
    const uint8_t *bytes = file->bytes.data + TRAIL_AT;
    if (files->trail.there && memcmp(files->trail.bytes, bytes, CX_FLEET_TRAIL) == 0)
        return;
    memcpy(files->trail.bytes, bytes, CX_FLEET_TRAIL);
    files->trail.there = files->trail.changed = true;
}

void cx_files_trail_store(cx_fleet_files *files)
{
    uint8_t bytes[CX_FLEET_TRAIL];
    cx_lock_enter(&files->lock);
    bool changed = files->trail.changed;
    files->trail.changed = false;
    memcpy(bytes, files->trail.bytes, sizeof bytes);
    cx_lock_leave(&files->lock);
    if (!changed || !files->part.owned)
        return;
    /* Not again when it fails: the next one comes with the next megabytes. */
    cx_status ignored = cx_fleet_write_trail(files->writer, &files->part, bytes, NULL);
    (void)ignored;
}

/* With reader_lock held. */
static cx_status ask_extent(cx_fleet_files *files, uint64_t file, bool owned, uint64_t offset,
                            bool *out, cx_err *err)
{
    CX_TRY(cx_files_open_reader(files, owned, err));
    return cx_fleet_has_extent(files->reader, files->number, file, offset / CX_FLEET_CHUNK,
                               (uint32_t)(offset % CX_FLEET_CHUNK), out, err);
}

int cx_files_write_began(cx_fleet_files *files, const cx_files_handle *handle, uint64_t offset,
                         bool *out_began)
{
    cx_err err = {0};
    bool began = false;
    if (handle->file->private || handle->file->pages)
        return -ENOTSUP;
    int failed = cx_files_enter(files, true);
    if (failed != 0)
        return failed;
    uint64_t number = handle->file->number;
    bool owned = files->owned;
    files->loads++; /* M4 */
    cx_lock_leave(&files->lock);
    cx_lock_enter(&files->reader_lock);
    /* At the border of a chunk extents begin that are the middle of a write. */
    cx_status status = offset % CX_FLEET_CHUNK == 0
                           ? CX_SUCCESS
                           : ask_extent(files, number, owned, offset, &began, &err);
    cx_lock_leave(&files->reader_lock);
    cx_lock_enter(&files->lock);
    files->loads--;
    cx_lock_wake(&files->lock);
    failed = cx_failed(status) ? cx_files_errno(files, &err) : cx_files_still(files);
    cx_files_leave(files);
    if (failed == 0)
        *out_began = began;
    return failed;
}
