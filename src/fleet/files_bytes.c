/*
 * files_bytes.c - reading, writing and syncing the owner's files.
 *
 * A sync is one commit (P2).  What it has of a file log/..:
 *
 *   - what was written from `end` on: an extent for each range, cut at the borders of chunks;
 *   - of a chunk in which something before `end` was written: the whole of it, less the zeros at
 *     its end.
 *
 * And of a database: each page of 4,096 bytes that was written to, as an extent of its own, always
 * of that size; the database's size is apart, and what was cut off it goes with the same commit.
 */
#include <errno.h>
#include <stdlib.h>

#include "fleet/files_internal.h"

#define TABLES "cortex.db"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The pages that [from, to) touches, or that are all in it. */
static uint32_t pages_in(uint32_t from, uint32_t to, bool whole)
{
    uint32_t first = whole ? (from + CX_FILES_PAGE - 1) / CX_FILES_PAGE : from / CX_FILES_PAGE;
    uint32_t end = whole ? to / CX_FILES_PAGE : (to + CX_FILES_PAGE - 1) / CX_FILES_PAGE;
    return first >= end ? 0 : ((1u << end) - 1) & ~((1u << first) - 1);
}

/* --- reading ---------------------------------------------------------------------------------- */

static int64_t read_private(const cx_files_file *file, void *data, size_t size, uint64_t offset)
{
    if (offset >= file->bytes.size)
        return 0;
    size_t step = (size_t)least(size, file->bytes.size - offset);
    memcpy(data, file->bytes.data + offset, step);
    return (int64_t)step;
}

/* Copies what is in memory of one chunk; a negated errno, or 0 with *out_done = 0: look again. */
static int read_piece(cx_fleet_files *files, cx_files_file *file, uint8_t *data, uint64_t offset,
                      size_t size, uint64_t left, bool *out_done)
{
    uint64_t index = offset / CX_FLEET_CHUNK;
    uint32_t from = (uint32_t)(offset % CX_FLEET_CHUNK);
    cx_files_chunk *chunk = cx_files_chunk_find(files, file, index);
    *out_done = true;
    if (file->removed || (chunk == NULL && offset - from >= file->end)) { /* M3 */
        memset(data, 0, size);
        return 0;
    }
    if (chunk != NULL) {
        uint32_t wanted = pages_in(from, from + (uint32_t)size, false);
        if ((chunk->valid & wanted) == wanted) {
            memcpy(data, chunk->bytes + from, size);
            return 0;
        }
    }
    *out_done = false;
    int failed =
        cx_files_load(files, file, index, (from + left + CX_FLEET_CHUNK - 1) / CX_FLEET_CHUNK);
    return failed != 0 ? failed : cx_files_still(files);
}

static int64_t read_bytes(cx_fleet_files *files, cx_files_file *file, uint8_t *data, size_t size,
                          uint64_t offset)
{
    size_t done = 0;
    if (file->private)
        return read_private(file, data, size, offset);
    while (done < size && offset + done < file->size) {
        uint64_t at = offset + done, left = least(size - done, file->size - at);
        size_t step = (size_t)least(left, CX_FLEET_CHUNK - at % CX_FLEET_CHUNK);
        bool copied;
        int failed = read_piece(files, file, data + done, at, step, left, &copied);
        if (failed != 0)
            return failed;
        done += copied ? step : 0;
    }
    return (int64_t)done;
}

int64_t cx_files_read(cx_fleet_files *files, cx_files_handle *handle, void *data, size_t size,
                      const uint64_t *offset)
{
    if ((handle->flags & CX_IO_WRITE) != 0 && (handle->flags & CX_IO_READ) == 0)
        return -EBADF;
    int failed = cx_files_enter(files, !handle->file->private);
    if (failed != 0)
        return failed;
    uint64_t at = offset != NULL ? *offset : handle->at;
    failed = cx_files_is_fresh(files, handle);
    int64_t done = failed != 0 || at >= CX_FILES_SIZE_MAX
                       ? failed
                       : read_bytes(files, handle->file, data, (size_t)least(size, 1u << 30), at);
    if (done > 0 && offset == NULL)
        handle->at = at + (uint64_t)done;
    cx_files_leave(files);
    return done;
}

/* --- writing ---------------------------------------------------------------------------------- */

static bool is_zero(const uint8_t *data, size_t size)
{
    static const uint8_t zeros[4096];
    for (size_t at = 0; at < size; at += sizeof zeros)
        if (memcmp(data + at, zeros, (size_t)least(size - at, sizeof zeros)) != 0)
            return false;
    return true;
}

static int64_t write_private(cx_files_file *file, const void *data, size_t size, uint64_t offset)
{
    if (offset > CX_FILES_PRIVATE_MAX || size > CX_FILES_PRIVATE_MAX - offset)
        return -EFBIG;
    size_t end = (size_t)offset + size;
    if (end > file->bytes.size) {
        uint8_t *room = cx_buf_reserve(&file->bytes, end - file->bytes.size);
        if (room == NULL)
            return -ENOMEM;
        memset(room, 0, end - file->bytes.size);
        cx_buf_advance(&file->bytes, end - file->bytes.size);
    }
    memcpy(file->bytes.data + offset, data, size);
    return (int64_t)size;
}

/* Within one chunk; *out_done false: something was loaded, look again. */
static int write_piece(cx_fleet_files *files, cx_files_file *file, const uint8_t *data,
                       uint64_t offset, size_t size, bool *out_done)
{
    uint64_t index = offset / CX_FLEET_CHUNK;
    uint32_t from = (uint32_t)(offset % CX_FLEET_CHUNK), to = from + (uint32_t)size;
    *out_done = true;
    if (offset >= file->data_end && is_zero(data, size)) /* M3 */
        return 0;
    cx_files_chunk *chunk = cx_files_chunk_make(files, file, index);
    if (chunk == NULL)
        return -ENOMEM;
    uint32_t touched = pages_in(from, to, false), whole = pages_in(from, to, true);
    if (chunk->loading || (touched & ~whole & ~chunk->valid) != 0) {
        *out_done = false;
        int failed = cx_files_load(files, file, index, 1);
        return failed != 0 ? failed : cx_files_still(files);
    }
    /* A log that is opened writes its last group again: that is a commit already, or dirty. */
    if ((touched & ~chunk->valid) == 0 && memcmp(chunk->bytes + from, data, size) == 0)
        return 0;
    memcpy(chunk->bytes + from, data, size);
    chunk->valid |= whole;
    if (file->pages)
        chunk->dirt.pages |= touched;
    else
        cx_files_dirty_range(&chunk->dirt, from, to);
    cx_files_chunk_relist(chunk);
    file->data_end = offset + size > file->data_end ? offset + size : file->data_end;
    return 0;
}

static int64_t write_bytes(cx_fleet_files *files, cx_files_file *file, const uint8_t *data,
                           size_t size, uint64_t offset)
{
    size_t done = 0;
    if (file->private)
        return write_private(file, data, size, offset);
    if (offset > CX_FILES_SIZE_MAX || size > CX_FILES_SIZE_MAX - offset)
        return -EFBIG;
    while (done < size) {
        uint64_t at = offset + done;
        size_t step = (size_t)least(size - done, CX_FLEET_CHUNK - at % CX_FLEET_CHUNK);
        bool copied = true;
        /* What is written to a file that has no name any more is gone with it. */
        int failed = file->removed ? 0 : write_piece(files, file, data + done, at, step, &copied);
        if (failed != 0)
            return done != 0 ? (int64_t)done : failed;
        if (!copied)
            continue;
        done += step;
        file->size = at + step > file->size ? at + step : file->size;
    }
    return (int64_t)done;
}

int64_t cx_files_write(cx_fleet_files *files, cx_files_handle *handle, const void *data,
                       size_t size, const uint64_t *offset)
{
    if ((handle->flags & CX_IO_WRITE) == 0)
        return -EBADF;
    int failed = cx_files_enter(files, !handle->file->private);
    if (failed != 0)
        return failed;
    cx_files_file *file = handle->file;
    uint64_t at = offset != NULL ? *offset : handle->flags & CX_IO_APPEND ? file->size : handle->at;
    int64_t done = file->private ? 0 : cx_files_may_write(files);
    if (done == 0)
        done = cx_files_is_fresh(files, handle);
    if (done == 0)
        done = write_bytes(files, file, data, (size_t)least(size, 1u << 30), at);
    if (done > 0 && file->private)
        cx_files_trail_note(files, file);
    if (done > 0 && offset == NULL)
        handle->at = at + (uint64_t)done;
    file->failed = file->failed || done < 0;
    cx_files_leave(files);
    return done;
}

/* --- syncing ---------------------------------------------------------------------------------- */

typedef struct sync_job {
    cx_fleet_files *files;
    cx_files_file *file;
    CX_VEC(cx_files_chunk *) chunks;
    CX_VEC(cx_fleet_write) writes;
    cx_fleet_file_change sizes[2];
    size_t size_count;
    uint64_t size, end; /* afterwards */
    cx_buf bytes;
} sync_job;

static bool needs_sync(const cx_files_file *file)
{
    if (file->removed || file->private)
        return false;
    if (file->size != file->committed || file->low < file->committed)
        return true;
    return file->chunks[1] != NULL;
}

/* Something before `end` was written, where bytes may be. */
static bool is_rewritten(const cx_files_file *file, const cx_files_chunk *chunk)
{
    return !file->pages && chunk->dirt.count != 0 &&
           chunk->index * CX_FLEET_CHUNK + chunk->dirt.ranges[0].from < file->end;
}

static int by_index(const void *a, const void *b)
{
    const cx_files_chunk *const *left = a, *const *right = b;
    return ((*left)->index > (*right)->index) - ((*left)->index < (*right)->index);
}

/* With `lock` held, which may be left; *out_again: look again. */
static int find_dirty(sync_job *job, bool *out_again)
{
    *out_again = false;
    job->chunks.count = 0;
    for (cx_files_chunk *at = job->file->chunks[1]; at != NULL; at = at->next) {
        if (at->loading || (is_rewritten(job->file, at) && at->valid != CX_FILES_ALL_PAGES)) {
            *out_again = true;
            int failed = cx_files_load(job->files, job->file, at->index, 1);
            return failed != 0 ? failed : cx_files_still(job->files);
        }
        cx_files_chunk **slot = cx_vec_push(&job->chunks, cx_files_alloc());
        if (slot == NULL)
            return -ENOMEM;
        *slot = at;
    }
    if (job->chunks.count != 0)
        qsort(job->chunks.items, job->chunks.count, sizeof *job->chunks.items, by_index);
    return 0;
}

static bool add_write(sync_job *job, const cx_files_chunk *chunk, uint32_t from, uint32_t to,
                      bool whole)
{
    cx_fleet_write *write = cx_vec_push(&job->writes, cx_files_alloc());
    if (write == NULL)
        return false;
    *write = (cx_fleet_write){.file = job->file->number,
                              .chunk = chunk->index,
                              .start = from,
                              .whole = whole,
                              .derived = job->file->pages,
                              .bytes = {NULL, to - from}};
    cx_buf_add(&job->bytes, chunk->bytes + from, to - from);
    uint64_t end = chunk->index * CX_FLEET_CHUNK + to;
    job->end = end > job->end ? end : job->end;
    return true;
}

static bool add_chunk(sync_job *job, const cx_files_chunk *chunk)
{
    if (is_rewritten(job->file, chunk)) {
        uint32_t to = CX_FLEET_CHUNK;
        while (to > 1 && chunk->bytes[to - 1] == 0)
            to--;
        return add_write(job, chunk, 0, to, true);
    }
    for (uint32_t i = 0; i < chunk->dirt.count; i++)
        if (!add_write(job, chunk, chunk->dirt.ranges[i].from, chunk->dirt.ranges[i].to, false))
            return false;
    for (uint32_t page = 0; page < CX_FILES_PAGES; page++)
        if ((chunk->dirt.pages >> page & 1) != 0 &&
            !add_write(job, chunk, page * CX_FILES_PAGE, (page + 1) * CX_FILES_PAGE, false))
            return false;
    return true;
}

static void add_size(sync_job *job, uint64_t size)
{
    job->sizes[job->size_count++] =
        (cx_fleet_file_change){.op = CX_FLEET_RESIZE, .file = job->file->number, .size = size};
}

/* With `lock` held: copies all that is to be written, and marks it as taken. */
static int take_dirty(sync_job *job)
{
    cx_files_file *file = job->file;
    job->size = file->size;
    job->end = file->end;
    if (file->low < file->committed)
        add_size(job, file->low);
    if (file->size != least(file->low, file->committed))
        add_size(job, file->size);
    for (size_t i = 0; i < job->chunks.count; i++)
        if (!add_chunk(job, job->chunks.items[i]))
            return -ENOMEM;
    if (job->bytes.failed)
        return -ENOMEM;
    if (job->bytes.size > CX_FLEET_CHANGE_MAX)
        return -EFBIG;
    size_t at = 0;
    for (size_t i = 0; i < job->writes.count; i++) {
        job->writes.items[i].bytes.data = job->bytes.data + at;
        at += job->writes.items[i].bytes.size;
    }
    for (size_t i = 0; i < job->chunks.count; i++) {
        cx_files_chunk *chunk = job->chunks.items[i];
        chunk->taken = chunk->dirt;
        chunk->dirt = (cx_files_dirt){0};
        chunk->syncing = true;
        cx_files_chunk_relist(chunk);
    }
    return 0;
}

/* With `lock` held, after the commit: what failed stays to be written. */
static void finish(sync_job *job, bool written)
{
    cx_files_file *file = job->file;
    for (size_t i = 0; i < job->chunks.count; i++) {
        cx_files_chunk *chunk = job->chunks.items[i];
        chunk->syncing = false;
        if (!written)
            cx_files_dirty_add(&chunk->dirt, &chunk->taken);
        cx_files_chunk_relist(chunk);
    }
    if (!written)
        return;
    file->committed = job->size;
    file->synced_end = job->end;
    file->low = file->size < job->size ? file->size : job->size;
    file->end = job->end;
}

/* With writer_lock and `lock` held; the latter is left meanwhile. */
static int run_sync(sync_job *job)
{
    int failed;
    bool again;
    do {
        failed = find_dirty(job, &again);
    } while (failed == 0 && again);
    if (failed == 0)
        failed = take_dirty(job);
    if (failed != 0 || (job->writes.count == 0 && job->size_count == 0))
        return failed;
    const cx_fleet_change change = {.writes = job->writes.items,
                                    .write_count = job->writes.count,
                                    .files = job->sizes,
                                    .file_count = job->size_count};
    cx_lock_leave(&job->files->lock);
    failed = cx_files_commit(job->files, &change, job->bytes.size);
    cx_lock_enter(&job->files->lock);
    finish(job, failed == 0);
    return failed;
}

/* With writer_lock and `lock` held. */
static int sync_file(cx_fleet_files *files, cx_files_file *file)
{
    int failed = cx_files_may_write(files);
    if (failed != 0 || !needs_sync(file))
        return failed;
    sync_job job = {.files = files, .file = file};
    cx_buf_init(&job.bytes, cx_files_alloc());
    failed = run_sync(&job);
    file->failed = file->failed || failed != 0;
    if (failed == 0 && file->pages && strcmp(file->name, TABLES) == 0)
        files->tables_ns = files->under->monotonic_ns(files->under);
    cx_buf_done(&job.bytes);
    cx_vec_done(&job.chunks, cx_files_alloc());
    cx_vec_done(&job.writes, cx_files_alloc());
    return failed;
}

int cx_files_sync(cx_fleet_files *files, const cx_files_handle *handle)
{
    int failed = cx_files_enter(files, !handle->file->private);
    if (failed != 0)
        return failed;
    failed = cx_files_is_fresh(files, handle);
    bool needed = needs_sync(handle->file);
    cx_files_leave(files);
    if (failed != 0 || !needed)
        return failed;
    cx_lock_enter(&files->writer_lock);
    failed = cx_files_enter(files, !handle->file->private);
    if (failed == 0) {
        failed = sync_file(files, handle->file);
        cx_files_leave(files);
    }
    cx_lock_leave(&files->writer_lock);
    return failed;
}

/* --- sizes ------------------------------------------------------------------------------------ */

/* With `lock` held, nothing being loaded or synced: the bytes from `size` on are gone.  In the
 * chunk that is cut, zeros replace them, since its extents stay. */
static void cut(cx_fleet_files *files, cx_files_file *file, uint64_t size, cx_files_chunk *last)
{
    uint64_t first_gone = (size + CX_FLEET_CHUNK - 1) / CX_FLEET_CHUNK;
    cx_files_chunks_drop(files, file, first_gone);
    if (last != NULL) {
        uint32_t from = (uint32_t)(size % CX_FLEET_CHUNK);
        memset(last->bytes + from, 0, CX_FLEET_CHUNK - from);
        if (file->pages)
            last->dirt.pages |= pages_in(from, CX_FLEET_CHUNK, false);
        else
            cx_files_dirty_range(&last->dirt, from, CX_FLEET_CHUNK);
        cx_files_chunk_relist(last);
    }
    file->end = least(file->end, first_gone * CX_FLEET_CHUNK);
    file->data_end = least(file->data_end, size);
    file->low = least(file->low, size);
    file->size = size;
}

/* With writer_lock and `lock` held; the latter may be left. */
static int shrink(cx_fleet_files *files, cx_files_file *file, uint64_t size)
{
    for (;;) {
        cx_files_chunk *last = NULL;
        cx_files_wait_loads(files, file);
        if (file->removed || size >= file->size)
            return 0;
        if (size % CX_FLEET_CHUNK != 0 && size < file->data_end) {
            last = cx_files_chunk_make(files, file, size / CX_FLEET_CHUNK);
            if (last == NULL)
                return -ENOMEM;
            if (last->valid != CX_FILES_ALL_PAGES) {
                int failed = cx_files_load(files, file, last->index, 1);
                if (failed == 0)
                    failed = cx_files_still(files);
                if (failed != 0)
                    return failed;
                continue;
            }
        }
        cut(files, file, size, last);
        return 0;
    }
}

static int resize_private(cx_files_file *file, uint64_t size)
{
    if (size > CX_FILES_PRIVATE_MAX)
        return -EFBIG;
    if (size < file->bytes.size)
        file->bytes.size = (size_t)size;
    else if (size > file->bytes.size && write_private(file, "", 1, size - 1) < 0)
        return -ENOMEM;
    return 0;
}

/* With writer_lock and `lock` held. */
static int resize(cx_fleet_files *files, cx_files_file *file, uint64_t size)
{
    int failed = file->private ? 0 : cx_files_may_write(files);
    if (failed != 0 || file->private)
        return failed != 0 ? failed : resize_private(file, size);
    if (size < file->size)
        failed = shrink(files, file, size);
    else
        file->size = size;
    /* P3; the size of a database belongs to its bytes. */
    return failed != 0 || file->pages ? failed : sync_file(files, file);
}

int cx_files_resize(cx_fleet_files *files, const cx_files_handle *handle, uint64_t size,
                    bool grow_only)
{
    if ((handle->flags & CX_IO_WRITE) == 0)
        return -EBADF;
    if (size > CX_FILES_SIZE_MAX)
        return -EFBIG;
    cx_lock_enter(&files->writer_lock);
    int failed = cx_files_enter(files, !handle->file->private);
    if (failed == 0) {
        cx_files_file *file = handle->file;
        uint64_t present = file->private ? file->bytes.size : file->size;
        failed = cx_files_is_fresh(files, handle);
        if (failed == 0 && size != present && (!grow_only || size > present))
            failed = resize(files, file, size);
        cx_files_leave(files);
    }
    cx_lock_leave(&files->writer_lock);
    return failed;
}
