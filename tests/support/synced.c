/*
 * synced.c - files in memory with what was synced kept apart.
 */
#include "tests/support/synced.h"

#include <errno.h>
#include <stdio.h>

static synced_files *enter(const cx_io *io)
{
    synced_files *s = io->ctx;
    cx_lock_enter(&s->lock);
    return s;
}

static int leave(synced_files *s, int result)
{
    cx_lock_leave(&s->lock);
    return result;
}

static void copy_buf(cx_buf *to, const cx_buf *from)
{
    cx_buf_clear(to);
    cx_buf_add(to, from->data, from->size);
    CX_ASSERT(!to->failed);
}

static synced_file *find(synced_files *s, const char *path, bool make)
{
    for (int i = 0; i < SYNCED_FILES; i++)
        if (strcmp(s->files[i].path, path) == 0)
            return &s->files[i];
    for (int i = 0; i < SYNCED_FILES && make; i++) {
        if (s->files[i].path[0] != 0)
            continue;
        (void)snprintf(s->files[i].path, sizeof s->files[i].path, "%s", path);
        return &s->files[i];
    }
    return NULL;
}

static int free_opening(const synced_files *s)
{
    int i = 0;
    while (i < SYNCED_OPENINGS && s->openings[i].file != NULL)
        i++;
    return i;
}

static int synced_open(const cx_io *io, const char *path, unsigned flags, cx_file *out)
{
    synced_files *s = enter(io);
    const bool writes = (flags & CX_IO_WRITE) != 0;
    if (writes && s->refuse_open != 0)
        return leave(s, -s->refuse_open);
    synced_file *file = find(s, path, (flags & CX_IO_CREATE) != 0);
    if (file == NULL || (!file->there && file->writers == 0 && (flags & CX_IO_CREATE) == 0))
        return leave(s, -ENOENT);
    int number = free_opening(s);
    if (number == SYNCED_OPENINGS)
        return leave(s, -EMFILE);
    synced_opening *opening = &s->openings[number];
    opening->file = file;
    opening->writes = writes;
    opening->is_frozen = !writes && file->writers == 0;
    if (opening->is_frozen)
        copy_buf(&opening->frozen, &file->synced);
    file->writers += writes ? 1 : 0;
    *out = number;
    return leave(s, 0);
}

static int synced_close(const cx_io *io, cx_file number)
{
    synced_files *s = enter(io);
    synced_opening *opening = &s->openings[number];
    CX_ASSERT(opening->file != NULL);
    if (opening->writes && --opening->file->writers == 0)
        copy_buf(&opening->file->now, &opening->file->synced);
    opening->file = NULL;
    return leave(s, 0);
}

static cx_buf *contents_of(synced_opening *opening)
{
    return opening->is_frozen ? &opening->frozen : &opening->file->now;
}

static int64_t synced_pread(const cx_io *io, cx_file number, void *data, size_t size,
                            uint64_t offset)
{
    synced_files *s = enter(io);
    const cx_buf *now = contents_of(&s->openings[number]);
    size_t count = offset >= now->size ? 0 : now->size - (size_t)offset;
    if (count > size)
        count = size;
    if (count != 0)
        memcpy(data, now->data + offset, count);
    (void)leave(s, 0);
    return (int64_t)count;
}

static void grow(cx_buf *buf, uint64_t size)
{
    static const uint8_t zeros[4096];
    while (buf->size < size) {
        const uint64_t more = size - buf->size;
        cx_buf_add(buf, zeros, more < sizeof zeros ? (size_t)more : sizeof zeros);
    }
    CX_ASSERT(!buf->failed);
}

static int64_t synced_pwrite(const cx_io *io, cx_file number, const void *data, size_t size,
                             uint64_t offset)
{
    synced_files *s = enter(io);
    const synced_opening *opening = &s->openings[number];
    if (!opening->writes)
        return leave(s, -EBADF);
    if (s->room != 0 && offset + size > s->room)
        return leave(s, -ENOSPC);
    grow(&opening->file->now, offset + size);
    memcpy(opening->file->now.data + offset, data, size);
    (void)leave(s, 0);
    return (int64_t)size;
}

static int synced_truncate(const cx_io *io, cx_file number, uint64_t size)
{
    synced_files *s = enter(io);
    const synced_opening *opening = &s->openings[number];
    if (!opening->writes)
        return leave(s, -EBADF);
    grow(&opening->file->now, size);
    opening->file->now.size = (size_t)size;
    return leave(s, 0);
}

static int synced_size(const cx_io *io, cx_file number, uint64_t *out, bool *out_regular)
{
    synced_files *s = enter(io);
    *out = contents_of(&s->openings[number])->size;
    *out_regular = true;
    return leave(s, 0);
}

static int synced_sync(const cx_io *io, cx_file number, bool data_only)
{
    (void)data_only;
    synced_files *s = enter(io);
    const synced_opening *opening = &s->openings[number];
    synced_file *file = opening->file;
    if (s->refuse_sync != 0)
        return leave(s, -s->refuse_sync);
    if (!opening->writes)
        return leave(s, 0);
    copy_buf(&file->synced, &file->now);
    file->there = true;
    (void)leave(s, 0);
    if (s->on_sync != NULL)
        s->on_sync(s->arg, file->path);
    return 0;
}

static int synced_unlink(const cx_io *io, const char *path)
{
    synced_files *s = enter(io);
    synced_file *file = find(s, path, false);
    if (file == NULL || !file->there)
        return leave(s, -ENOENT);
    file->there = false;
    cx_buf_clear(&file->synced);
    return leave(s, 0);
}

void synced_init(synced_files *s)
{
    *s = (synced_files){.io = {.open = synced_open,
                               .close = synced_close,
                               .pread = synced_pread,
                               .pwrite = synced_pwrite,
                               .sync = synced_sync,
                               .truncate = synced_truncate,
                               .size = synced_size,
                               .unlink = synced_unlink}};
    s->io.ctx = s;
    cx_lock_init(&s->lock);
    for (int i = 0; i < SYNCED_FILES; i++) {
        cx_buf_init(&s->files[i].now, cx_alloc_default());
        cx_buf_init(&s->files[i].synced, cx_alloc_default());
    }
    for (int i = 0; i < SYNCED_OPENINGS; i++)
        cx_buf_init(&s->openings[i].frozen, cx_alloc_default());
}

void synced_done(synced_files *s)
{
    for (int i = 0; i < SYNCED_FILES; i++) {
        cx_buf_done(&s->files[i].now);
        cx_buf_done(&s->files[i].synced);
    }
    for (int i = 0; i < SYNCED_OPENINGS; i++)
        cx_buf_done(&s->openings[i].frozen);
    cx_lock_done(&s->lock);
}

void synced_kill(synced_files *s)
{
    cx_lock_enter(&s->lock);
    for (int i = 0; i < SYNCED_FILES; i++)
        copy_buf(&s->files[i].now, &s->files[i].synced);
    cx_lock_leave(&s->lock);
}

cx_buf synced_image(synced_files *s, const char *path, bool *out_there)
{
    cx_buf copy;
    cx_buf_init(&copy, cx_alloc_default());
    cx_lock_enter(&s->lock);
    const synced_file *file = find(s, path, false);
    *out_there = file != NULL && file->there;
    if (*out_there)
        copy_buf(&copy, &file->synced);
    cx_lock_leave(&s->lock);
    return copy;
}

unsigned synced_open_count(synced_files *s)
{
    unsigned count = 0;
    cx_lock_enter(&s->lock);
    for (int i = 0; i < SYNCED_OPENINGS; i++)
        count += s->openings[i].file != NULL;
    cx_lock_leave(&s->lock);
    return count;
}
