/*
 * disk.c - files in memory, with what is on the disk kept apart from what is written.
 */
#include "tests/support/disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"
#include "tests/test.h"

enum { FILES_MAX = 4096, OPEN_MAX = 256, NAME_SIZE = 200 };

typedef struct change {
    uint64_t offset;
    size_t size;
    uint8_t *data;
} change;

/* A file without its name. */
typedef struct inode {
    cx_buf now;
    cx_buf synced;
    CX_VEC(change) changes; /* since the last sync, in order */
    bool is_folder;
    int locked_by; /* an opening, or -1 */
} inode;

typedef struct name {
    char path[NAME_SIZE];
    int inode; /* -1 = removed */
} name;

/* The names as they are, and the changes to them since the folder was synced. */
typedef struct name_change {
    char from[NAME_SIZE]; /* "" = made */
    char to[NAME_SIZE];   /* "" = removed */
    int inode;
} name_change;

typedef struct opening {
    int inode; /* -1 = free */
    char path[NAME_SIZE];
} opening;

struct disk_state {
    cx_lock lock;
    inode inodes[FILES_MAX];
    int inode_count;
    CX_VEC(name) names;
    CX_VEC(name) synced_names;
    CX_VEC(name_change) name_changes;
    opening openings[OPEN_MAX];
};

static const cx_alloc *heap(void)
{
    return cx_alloc_default();
}

static disk_state *enter(const cx_io *io)
{
    disk_state *s = ((disk *)io->ctx)->state;
    cx_lock_enter(&s->lock);
    return s;
}

static int leave(disk_state *s, int result)
{
    cx_lock_leave(&s->lock);
    return result;
}

/* Whether the power is off; counts the call. */
static bool off(const cx_io *io)
{
    disk *d = io->ctx;
    d->calls++;
    return d->off_at != 0 && d->calls >= d->off_at;
}

static void copy_path(char out[NAME_SIZE], const char *path)
{
    CX_ASSERT(strlen(path) < NAME_SIZE);
    (void)snprintf(out, NAME_SIZE, "%s", path);
}

static name *find(disk_state *s, const char *path)
{
    for (size_t i = 0; i < s->names.count; i++)
        if (strcmp(s->names.items[i].path, path) == 0)
            return &s->names.items[i];
    return NULL;
}

static void note_change(disk_state *s, const char *from, const char *to, int node)
{
    name_change *c = cx_vec_push(&s->name_changes, heap());
    CX_ASSERT(c != NULL);
    copy_path(c->from, from);
    copy_path(c->to, to);
    c->inode = node;
}

static void add_name(disk_state *s, const char *path, int node)
{
    name *n = find(s, path);
    if (n == NULL)
        n = cx_vec_push(&s->names, heap());
    CX_ASSERT(n != NULL);
    copy_path(n->path, path);
    n->inode = node;
}

static void remove_name(disk_state *s, const char *path)
{
    name *n = find(s, path);
    if (n != NULL)
        *n = s->names.items[--s->names.count];
}

static int new_inode(disk_state *s, bool is_folder)
{
    CX_ASSERT(s->inode_count < FILES_MAX);
    inode *node = &s->inodes[s->inode_count];
    cx_buf_init(&node->now, heap());
    cx_buf_init(&node->synced, heap());
    node->is_folder = is_folder;
    node->locked_by = -1;
    return s->inode_count++;
}

/* --- calls --------------------------------------------------------------------------------- */

static int disk_open(const cx_io *io, const char *path, unsigned flags, cx_file *out)
{
    disk_state *s = enter(io);
    name *n = find(s, path);
    if (n == NULL && (flags & CX_IO_CREATE) == 0)
        return leave(s, -ENOENT);
    if (n != NULL && (flags & CX_IO_CREATE) != 0 && (flags & CX_IO_EXCLUSIVE) != 0)
        return leave(s, -EEXIST);
    int node = n != NULL ? n->inode : -1;
    if (node < 0) {
        if (off(io))
            return leave(s, -EIO);
        node = new_inode(s, false);
        add_name(s, path, node);
        note_change(s, "", path, node);
    } else if ((flags & CX_IO_TRUNCATE) != 0 && s->inodes[node].now.size != 0) {
        /* As a file system does in truth: an emptied file is a new one. */
        node = new_inode(s, false);
        add_name(s, path, node);
        note_change(s, path, "", -1);
        note_change(s, "", path, node);
    }
    for (int i = 0; i < OPEN_MAX; i++) {
        if (s->openings[i].inode >= 0)
            continue;
        s->openings[i].inode = node;
        copy_path(s->openings[i].path, path);
        *out = i;
        return leave(s, 0);
    }
    return leave(s, -EMFILE);
}

static int disk_close(const cx_io *io, cx_file file)
{
    disk_state *s = enter(io);
    inode *node = &s->inodes[s->openings[file].inode];
    if (node->locked_by == file)
        node->locked_by = -1;
    s->openings[file].inode = -1;
    return leave(s, 0);
}

static int64_t disk_pread(const cx_io *io, cx_file file, void *data, size_t size, uint64_t offset)
{
    disk_state *s = enter(io);
    const cx_buf *now = &s->inodes[s->openings[file].inode].now;
    size_t count = 0;
    if (offset < now->size) {
        count = now->size - (size_t)offset < size ? now->size - (size_t)offset : size;
        memcpy(data, now->data + offset, count);
    }
    (void)leave(s, 0);
    return (int64_t)count;
}

static void apply(cx_buf *buf, uint64_t offset, const uint8_t *data, size_t size)
{
    static const uint8_t zeros[4096];
    while (buf->size < offset + size) {
        size_t more = (size_t)(offset + size - buf->size);
        cx_buf_add(buf, zeros, more < sizeof zeros ? more : sizeof zeros);
    }
    CX_ASSERT(!buf->failed);
    memcpy(buf->data + offset, data, size);
}

static uint64_t used_room(const disk_state *s)
{
    uint64_t used = 0;
    for (size_t i = 0; i < s->names.count; i++)
        used += s->inodes[s->names.items[i].inode].now.size;
    return used;
}

static int64_t disk_pwrite(const cx_io *io, cx_file file, const void *data, size_t size,
                           uint64_t offset)
{
    const disk *d = io->ctx;
    disk_state *s = enter(io);
    inode *node = &s->inodes[s->openings[file].inode];
    bool failing = off(io);
    /* When the power goes off half of the write may have come to memory, in whole words. */
    if (failing && d->calls != d->off_at)
        return leave(s, -EIO);
    if (d->room != 0 && offset + size > node->now.size &&
        used_room(s) + (offset + size - node->now.size) > d->room)
        return leave(s, -ENOSPC);
    size_t count = size;
    if (failing) {
        uint64_t cut = (offset + size / 2) / 8 * 8;
        count = cut > offset ? (size_t)(cut - offset) : 0;
    }
    change *c = cx_vec_push(&node->changes, heap());
    CX_ASSERT(c != NULL);
    *c = (change){offset, count, malloc(count == 0 ? 1 : count)};
    CX_ASSERT(c->data != NULL);
    memcpy(c->data, data, count);
    apply(&node->now, offset, data, count);
    (void)leave(s, 0);
    return failing ? -EIO : (int64_t)count;
}

static void forget_changes(inode *node)
{
    for (size_t i = 0; i < node->changes.count; i++)
        free(node->changes.items[i].data);
    node->changes.count = 0;
}

/* The names as they are become those on the disk, or the other way round. */
static void copy_names(disk_state *s, bool to_synced)
{
    size_t count = to_synced ? s->names.count : s->synced_names.count;
    bool room = cx_vec_reserve(&s->synced_names, count + 1, heap()) &&
                cx_vec_reserve(&s->names, count + 1, heap());
    CX_ASSERT(room);
    if (to_synced)
        memcpy(s->synced_names.items, s->names.items, count * sizeof(name));
    else
        memcpy(s->names.items, s->synced_names.items, count * sizeof(name));
    s->names.count = s->synced_names.count = count;
}

static int disk_sync(const cx_io *io, cx_file file, bool data_only)
{
    (void)data_only;
    const disk *d = io->ctx;
    disk_state *s = enter(io);
    inode *node = &s->inodes[s->openings[file].inode];
    if (off(io))
        return leave(s, -EIO);
    if (d->sync_fails) {
        if (!node->is_folder)
            forget_changes(node); /* a program still reads them, the disk never gets them */
        return leave(s, -EIO);
    }
    if (node->is_folder) { /* all names: there is one folder, or one in another */
        copy_names(s, true);
        s->name_changes.count = 0;
        return leave(s, 0);
    }
    for (size_t i = 0; i < node->changes.count; i++) {
        const change *c = &node->changes.items[i];
        apply(&node->synced, c->offset, c->data, c->size);
    }
    forget_changes(node);
    return leave(s, 0);
}

/* Whatever was not synced may be on the disk or not, started or not. */
static void disk_start_sync(const cx_io *io, cx_file file, uint64_t offset, uint64_t size)
{
    (void)io;
    (void)file;
    (void)offset;
    (void)size;
}

static void disk_forget(const cx_io *io, cx_file file)
{
    (void)io;
    (void)file;
}

static int disk_truncate(const cx_io *io, cx_file file, uint64_t size)
{
    (void)io;
    (void)file;
    (void)size;
    return -ENOSYS;
}

static int disk_size(const cx_io *io, cx_file file, uint64_t *out, bool *out_regular)
{
    disk_state *s = enter(io);
    const inode *node = &s->inodes[s->openings[file].inode];
    *out = node->now.size;
    *out_regular = !node->is_folder;
    return leave(s, 0);
}

static int disk_rename(const cx_io *io, const char *from, const char *to)
{
    disk_state *s = enter(io);
    name *n = find(s, from);
    if (n == NULL)
        return leave(s, -ENOENT);
    if (off(io))
        return leave(s, -EIO);
    int node = n->inode;
    remove_name(s, from);
    add_name(s, to, node);
    note_change(s, from, to, node);
    return leave(s, 0);
}

static int disk_unlink(const cx_io *io, const char *path)
{
    disk_state *s = enter(io);
    if (find(s, path) == NULL)
        return leave(s, -ENOENT);
    if (off(io))
        return leave(s, -EIO);
    remove_name(s, path);
    note_change(s, path, "", -1);
    return leave(s, 0);
}

static int disk_mkdir(const cx_io *io, const char *path)
{
    disk_state *s = enter(io);
    if (find(s, path) != NULL)
        return leave(s, -EEXIST);
    if (off(io))
        return leave(s, -EIO);
    int node = new_inode(s, true);
    add_name(s, path, node);
    note_change(s, "", path, node);
    return leave(s, 0);
}

static int disk_list(const cx_io *io, const char *path, cx_io_name *each, void *arg)
{
    disk_state *s = enter(io);
    size_t size = strlen(path);
    if (find(s, path) == NULL)
        return leave(s, -ENOENT);
    for (size_t i = 0; i < s->names.count; i++) {
        const char *other = s->names.items[i].path;
        if (strncmp(other, path, size) == 0 && other[size] == '/' &&
            strchr(other + size + 1, '/') == NULL && !each(arg, other + size + 1))
            break;
    }
    return leave(s, 0);
}

static int disk_allocate(const cx_io *io, cx_file file, uint64_t size)
{
    const disk *d = io->ctx;
    disk_state *s = enter(io);
    const inode *node = &s->inodes[s->openings[file].inode];
    if (d->room != 0 && size > node->now.size && used_room(s) + size - node->now.size > d->room)
        return leave(s, -ENOSPC);
    return leave(s, off(io) ? -EIO : 0);
}

static int disk_lock(const cx_io *io, cx_file file)
{
    disk_state *s = enter(io);
    inode *node = &s->inodes[s->openings[file].inode];
    if (node->locked_by >= 0 && node->locked_by != file)
        return leave(s, -EAGAIN);
    node->locked_by = file;
    return leave(s, 0);
}

static int disk_locked(const cx_io *io, cx_file file, bool *out_locked)
{
    disk_state *s = enter(io);
    int owner = s->inodes[s->openings[file].inode].locked_by;
    *out_locked = owner >= 0 && owner != file;
    return leave(s, 0);
}

static uint64_t disk_process_id(const cx_io *io)
{
    (void)io;
    return 4711;
}

static int disk_random(const cx_io *io, void *data, size_t size)
{
    disk *d = io->ctx;
    disk_state *s = enter(io);
    uint8_t *at = data;
    for (size_t i = 0; i < size; i++)
        at[i] = (uint8_t)cx_test_random(&d->random);
    return leave(s, 0);
}

static uint64_t disk_clock(const cx_io *io)
{
    (void)io;
    return 1;
}

/* --- the disk ------------------------------------------------------------------------------ */

void disk_init(disk *d, uint64_t seed)
{
    *d = (disk){.io = {.open = disk_open,
                       .close = disk_close,
                       .pread = disk_pread,
                       .pwrite = disk_pwrite,
                       .sync = disk_sync,
                       .start_sync = disk_start_sync,
                       .forget = disk_forget,
                       .truncate = disk_truncate,
                       .size = disk_size,
                       .rename = disk_rename,
                       .unlink = disk_unlink,
                       .mkdir = disk_mkdir,
                       .list = disk_list,
                       .allocate = disk_allocate,
                       .lock = disk_lock,
                       .locked = disk_locked,
                       .process_id = disk_process_id,
                       .wall_ns = disk_clock,
                       .monotonic_ns = disk_clock,
                       .random = disk_random,
                       .ctx = d},
                .random = seed,
                .state = calloc(1, sizeof(disk_state))};
    disk_state *s = d->state;
    CX_ASSERT(s != NULL);
    cx_lock_init(&s->lock);
    for (int i = 0; i < OPEN_MAX; i++)
        s->openings[i].inode = -1;
    add_name(s, ".", new_inode(s, true));
    copy_names(s, true);
}

void disk_done(disk *d)
{
    disk_state *s = d->state;
    for (int i = 0; i < s->inode_count; i++) {
        forget_changes(&s->inodes[i]);
        cx_vec_done(&s->inodes[i].changes, heap());
        cx_buf_done(&s->inodes[i].now);
        cx_buf_done(&s->inodes[i].synced);
    }
    cx_vec_done(&s->names, heap());
    cx_vec_done(&s->synced_names, heap());
    cx_vec_done(&s->name_changes, heap());
    cx_lock_done(&s->lock);
    free(s);
}

/* For each piece for itself: what was synced, with the first so many of the writes since. */
static void crash_file(disk *d, inode *node, size_t piece)
{
    uint64_t end = node->synced.size;
    /* How far the file reaches is one more state that may be old or new. */
    if (node->now.size > end && (cx_test_random(&d->random) & 1) != 0)
        end = node->now.size;
    for (uint64_t at = 0; at < end; at += piece) {
        size_t touching = 0;
        for (size_t i = 0; i < node->changes.count; i++) {
            const change *c = &node->changes.items[i];
            touching += c->offset < at + piece && c->offset + c->size > at;
        }
        size_t kept = touching == 0 ? 0 : (size_t)(cx_test_random(&d->random) % (touching + 1));
        for (size_t i = 0; kept > 0; i++) {
            const change *c = &node->changes.items[i];
            if (c->offset >= at + piece || c->offset + c->size <= at)
                continue;
            uint64_t from = c->offset > at ? c->offset : at;
            uint64_t to = c->offset + c->size < at + piece ? c->offset + c->size : at + piece;
            if (to > end)
                to = end;
            if (from < to)
                apply(&node->synced, from, c->data + (from - c->offset), (size_t)(to - from));
            kept--;
        }
    }
    static const uint8_t zero;
    if (node->synced.size < end)
        apply(&node->synced, end - 1, &zero, 1);
    cx_buf_clear(&node->now);
    cx_buf_add(&node->now, node->synced.data, node->synced.size);
    CX_ASSERT(!node->now.failed);
    forget_changes(node);
    node->locked_by = -1;
}

void disk_crash(disk *d, size_t piece_bytes)
{
    disk_state *s = d->state;
    for (int i = 0; i < s->inode_count; i++)
        if (!s->inodes[i].is_folder)
            crash_file(d, &s->inodes[i], piece_bytes);
    size_t kept = (size_t)(cx_test_random(&d->random) % (s->name_changes.count + 1));
    copy_names(s, false);
    for (size_t i = 0; i < kept; i++) {
        const name_change *c = &s->name_changes.items[i];
        if (c->from[0] != 0)
            remove_name(s, c->from);
        if (c->to[0] != 0)
            add_name(s, c->to, c->inode);
    }
    s->name_changes.count = 0;
    copy_names(s, true);
    for (int i = 0; i < OPEN_MAX; i++)
        s->openings[i].inode = -1;
    d->off_at = 0;
}

cx_buf *disk_file(disk *d, const char *path)
{
    const name *n = find(d->state, path);
    return n == NULL ? NULL : &d->state->inodes[n->inode].now;
}

void disk_each(disk *d, void (*each)(void *arg, const char *path, cx_buf *contents), void *arg)
{
    for (size_t i = 0; i < d->state->names.count; i++) {
        inode *node = &d->state->inodes[d->state->names.items[i].inode];
        if (!node->is_folder)
            each(arg, d->state->names.items[i].path, &node->now);
    }
}
