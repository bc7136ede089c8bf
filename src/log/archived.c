/*
 * archived.c - the cx_io of a log in which archived segments are where they were.
 *
 * A segment that is open from its archive has a number from FIRST on, which no descriptor has.
 *   I1  Of a segment and its archive the segment counts: the archive is of an interrupted call, and
 *       is removed before the segment is written to, so that nothing erased stays in it.
 *   I2  An archive is replaced as a whole, under a new inode, and the old one overwritten before
 *       anything is acknowledged: a process that still has that open finds that its blocks are
 *       gone, also one that it holds unpacked, and opens the new one.
 */
#include "log/archived.h"

#include <errno.h>

#include "log/archived_internal.h"

#define FIRST (1 << 28)
#define OPEN_MAX 4096
#define NO_BLOCK UINT32_MAX

/* --- openings ------------------------------------------------------------------------------ */

static cx_archive_opening *find_opening(const cx_io *io, cx_file file)
{
    cx_archives *archives = io->ctx;
    if (file < FIRST)
        return NULL;
    cx_lock_enter(&archives->lock);
    cx_archive_opening *found = archives->openings.items[file - FIRST];
    cx_lock_leave(&archives->lock);
    return found;
}

static void free_opening(const cx_archives *archives, cx_archive_opening *o)
{
    cx_archive_close(archives->under, archives->alloc, &o->archive);
    cx_buf_done(&o->scratch);
    cx_alloc_free(archives->alloc, o->block, CX_ARCHIVE_BLOCK);
    for (size_t i = 0; i < o->changes.count; i++)
        cx_alloc_free(archives->alloc, o->changes.items[i].bytes, CX_ARCHIVE_BLOCK);
    cx_vec_done(&o->changes, archives->alloc);
    cx_lock_done(&o->lock);
    cx_alloc_free(archives->alloc, o, sizeof *o);
}

static cx_archive_opening *new_opening(const cx_archives *archives)
{
    cx_archive_opening *o = cx_alloc_zeroed(archives->alloc, 1, sizeof *o);
    if (o == NULL)
        return NULL;
    cx_lock_init(&o->lock);
    cx_buf_init(&o->scratch, archives->alloc);
    o->archive.file = CX_FILE_NONE;
    o->held = NO_BLOCK;
    o->block = cx_alloc_new(archives->alloc, CX_ARCHIVE_BLOCK);
    if (o->block != NULL)
        return o;
    free_opening(archives, o);
    return NULL;
}

/* -ENOENT when no folder has an archive of that segment. */
static int open_archive(const cx_archives *archives, const char *name, unsigned flags,
                        cx_archive_opening *out)
{
    const char *folders[] = {archives->folder, cx_archives_elsewhere(archives)};
    int failed = -ENOENT;
    for (size_t i = 0; i < CX_COUNT_OF(folders) && failed == -ENOENT; i++) {
        if (folders[i][0] == 0)
            continue;
        if (!cx_archive_path(out->path, folders[i], name, true))
            return -ENAMETOOLONG;
        failed = cx_archive_open(archives->under, archives->alloc, out->path, flags, &out->archive);
    }
    return failed;
}

static int keep_opening(cx_archives *archives, cx_archive_opening *o, cx_file *out)
{
    int failed = 0;
    cx_lock_enter(&archives->lock);
    size_t at = 0;
    while (at < archives->openings.count && archives->openings.items[at] != NULL)
        at++;
    if (at == OPEN_MAX)
        failed = -EMFILE;
    else if (at == archives->openings.count &&
             cx_vec_push(&archives->openings, archives->alloc) == NULL)
        failed = -ENOMEM;
    else
        archives->openings.items[at] = o;
    cx_lock_leave(&archives->lock);
    *out = FIRST + (cx_file)at;
    return failed;
}

/* When it is in neither folder, another process may have chosen the other one meanwhile. */
static int open_from_archive(cx_archives *archives, const char *name, unsigned flags, cx_file *out)
{
    cx_archive_opening *o = new_opening(archives);
    if (o == NULL)
        return -ENOMEM;
    int failed = open_archive(archives, name, flags, o);
    if (failed == -ENOENT && !cx_failed(cx_archives_read_elsewhere(archives, NULL)))
        failed = open_archive(archives, name, flags, o);
    o->writable = (flags & CX_IO_WRITE) != 0;
    if (failed == 0)
        failed = keep_opening(archives, o, out);
    if (failed != 0)
        free_opening(archives, o);
    return failed;
}

static int archived_open(const cx_io *io, const char *path, unsigned flags, cx_file *out)
{
    cx_archives *archives = io->ctx;
    int failed = archives->under->open(archives->under, path, flags, out);
    bool segment = (flags & CX_IO_CREATE) == 0 && cx_str_ends(cx_str_z(path), CX_STR(".seg"));
    if (failed == -ENOENT && segment)
        failed = open_from_archive(archives, cx_archive_last_name(path), flags, out);
    if (failed == -ENOENT && segment) /* another process may have brought it back just now */
        failed = archives->under->open(archives->under, path, flags, out);
    if (failed == 0 && *out >= FIRST)
        return 0;
    if (failed != 0 || !segment || (flags & CX_IO_WRITE) == 0)
        return failed;
    failed = cx_archives_remove(archives, cx_archive_last_name(path));
    if (failed != 0)
        (void)archives->under->close(archives->under, *out);
    return failed;
}

static int archived_close(const cx_io *io, cx_file file)
{
    cx_archives *archives = io->ctx;
    cx_archive_opening *o = find_opening(io, file);
    if (o == NULL)
        return archives->under->close(archives->under, file);
    cx_lock_enter(&archives->lock);
    archives->openings.items[file - FIRST] = NULL;
    cx_lock_leave(&archives->lock);
    free_opening(archives, o);
    return 0;
}

/* --- reading ------------------------------------------------------------------------------- */

/* With its lock held: the archive that has the name now. */
static int reopen(const cx_archives *archives, cx_archive_opening *o)
{
    cx_archive now;
    int failed = cx_archive_open(archives->under, archives->alloc, o->path,
                                 CX_IO_READ | (o->writable ? CX_IO_WRITE : 0U), &now);
    if (failed != 0)
        return failed;
    if (now.size != o->archive.size) { /* a segment has one size for ever */
        cx_archive_close(archives->under, archives->alloc, &now);
        return 0;
    }
    cx_archive_close(archives->under, archives->alloc, &o->archive);
    o->archive = now;
    o->held = NO_BLOCK;
    return 0;
}

static const cx_archive_change *find_change(const cx_archive_opening *o, uint32_t block)
{
    for (size_t i = 0; i < o->changes.count; i++)
        if (o->changes.items[i].block == block)
            return &o->changes.items[i];
    return NULL;
}

/* With its lock held: `block` is in o->block, as zeros when it cannot be unpacked. */
static int hold_block(const cx_archives *archives, cx_archive_opening *o, uint32_t block,
                      bool *out_whole)
{
    *out_whole = true;
    if (o->held == block) {
        bool still = false;
        int failed = cx_archive_has_block(archives->under, &o->archive, block, &still);
        if (failed != 0 || still)
            return failed;
    }
    o->held = NO_BLOCK;
    for (int turn = 0; turn < 2; turn++) {
        int failed = cx_archive_read_block(archives->under, &o->archive, block, &o->scratch,
                                           o->block, out_whole);
        if (failed == 0 && !*out_whole && turn == 0)
            failed = reopen(archives, o); /* another process may have replaced it */
        if (failed ==
            -ENOENT) /* it was brought back: who reads opens the segment when told damage */
            break;
        if (failed != 0)
            return failed;
        if (*out_whole) {
            o->held = block;
            return 0;
        }
    }
    memset(o->block, 0, CX_ARCHIVE_BLOCK);
    return 0;
}

static int64_t archived_pread(const cx_io *io, cx_file file, void *data, size_t size,
                              uint64_t offset)
{
    cx_archives *archives = io->ctx;
    cx_archive_opening *o = find_opening(io, file);
    if (o == NULL)
        return archives->under->pread(archives->under, file, data, size, offset);
    int failed = 0;
    size_t done = 0;
    cx_lock_enter(&o->lock);
    while (failed == 0 && done < size && offset + done < o->archive.size) {
        uint32_t block = (uint32_t)((offset + done) / CX_ARCHIVE_BLOCK);
        size_t from = (size_t)((offset + done) % CX_ARCHIVE_BLOCK);
        size_t step = cx_archive_block_size(&o->archive, block) - from;
        const cx_archive_change *changed = find_change(o, block);
        bool whole;
        if (step > size - done)
            step = size - done;
        if (changed == NULL)
            failed = hold_block(archives, o, block, &whole);
        if (failed == 0)
            memcpy((uint8_t *)data + done, (changed != NULL ? changed->bytes : o->block) + from,
                   step);
        done += failed == 0 ? step : 0;
    }
    cx_lock_leave(&o->lock);
    return failed != 0 ? failed : (int64_t)done;
}

static int archived_size(const cx_io *io, cx_file file, uint64_t *out, bool *out_regular)
{
    cx_archives *archives = io->ctx;
    cx_archive_opening *o = find_opening(io, file);
    if (o == NULL)
        return archives->under->size(archives->under, file, out, out_regular);
    cx_lock_enter(&o->lock);
    *out = o->archive.size;
    cx_lock_leave(&o->lock);
    *out_regular = true;
    return 0;
}

/* --- writing ------------------------------------------------------------------------------- */

/* With its lock held: the bytes of a block that are written to.  NULL: *out_failed. */
static uint8_t *change_block(const cx_archives *archives, cx_archive_opening *o, uint32_t block,
                             int *out_failed)
{
    bool whole;
    const cx_archive_change *there = find_change(o, block);
    *out_failed = 0;
    if (there != NULL)
        return there->bytes;
    *out_failed = hold_block(archives, o, block, &whole);
    if (*out_failed == 0 && !whole)
        *out_failed = -EIO; /* its other bytes would be lost */
    if (*out_failed != 0)
        return NULL;
    uint8_t *bytes = cx_alloc_new(archives->alloc, CX_ARCHIVE_BLOCK);
    cx_archive_change *made = bytes == NULL ? NULL : cx_vec_push(&o->changes, archives->alloc);
    if (made == NULL) {
        cx_alloc_free(archives->alloc, bytes, CX_ARCHIVE_BLOCK);
        *out_failed = -ENOMEM;
        return NULL;
    }
    memcpy(bytes, o->block, CX_ARCHIVE_BLOCK);
    *made = (cx_archive_change){block, bytes};
    return bytes;
}

static int64_t archived_pwrite(const cx_io *io, cx_file file, const void *data, size_t size,
                               uint64_t offset)
{
    cx_archives *archives = io->ctx;
    cx_archive_opening *o = find_opening(io, file);
    if (o == NULL)
        return archives->under->pwrite(archives->under, file, data, size, offset);
    int failed = 0;
    size_t done = 0;
    cx_lock_enter(&o->lock);
    if (!o->writable || offset > o->archive.size || size > o->archive.size - offset)
        failed = -EBADF;
    while (failed == 0 && done < size) {
        uint32_t block = (uint32_t)((offset + done) / CX_ARCHIVE_BLOCK);
        size_t to = (size_t)((offset + done) % CX_ARCHIVE_BLOCK);
        size_t step = CX_ARCHIVE_BLOCK - to < size - done ? CX_ARCHIVE_BLOCK - to : size - done;
        uint8_t *bytes = change_block(archives, o, block, &failed);
        if (bytes != NULL)
            memcpy(bytes + to, (const uint8_t *)data + done, step);
        done += bytes != NULL ? step : 0;
    }
    cx_lock_leave(&o->lock);
    return failed != 0 ? failed : (int64_t)done;
}

static cx_status write_changed(const cx_archives *archives, cx_archive_opening *o,
                               cx_archive_writer *writer, cx_err *err)
{
    for (uint32_t block = 0; block < o->archive.blocks; block++) {
        size_t size = cx_archive_block_size(&o->archive, block);
        const cx_archive_change *changed = find_change(o, block);
        if (changed != NULL) {
            CX_TRY(cx_archive_add(writer, (cx_bytes){changed->bytes, size}, err));
            continue;
        }
        cx_buf_clear(&o->scratch);
        int failed = cx_archive_read_packed(archives->under, &o->archive, block, &o->scratch);
        if (failed != 0)
            return cx_fail_os(err, -failed, "cannot read %s", o->path);
        CX_TRY(cx_archive_add_packed(writer, cx_buf_bytes(&o->scratch), size, err));
    }
    return cx_archive_end(writer, err);
}

/* With its lock held. */
static cx_status replace_archive(cx_archives *archives, cx_archive_opening *o, cx_err *err)
{
    char working[CX_ARCHIVE_PATH_SIZE];
    cx_archive_writer writer;
    cx_archive_working_path(working, o->path);
    cx_status status = cx_archive_begin(&writer, archives->under, archives->alloc, working, err);
    if (!cx_failed(status))
        status = write_changed(archives, o, &writer, err);
    cx_archive_writer_done(&writer);
    CX_TRY(status);
    CX_TRY(cx_archive_name(archives, working, o->path, err));
    CX_TRY(cx_archive_destroy(archives->under, o->path, o->archive.file, err));
    int failed = reopen(archives, o);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot open %s", o->path);
    for (size_t i = 0; i < o->changes.count; i++)
        cx_alloc_free(archives->alloc, o->changes.items[i].bytes, CX_ARCHIVE_BLOCK);
    o->changes.count = 0;
    return CX_SUCCESS;
}

static int archived_sync(const cx_io *io, cx_file file, bool data_only)
{
    cx_archives *archives = io->ctx;
    cx_archive_opening *o = find_opening(io, file);
    if (o == NULL)
        return archives->under->sync(archives->under, file, data_only);
    cx_err why = {0};
    cx_lock_enter(&o->lock);
    cx_status status = o->changes.count == 0 ? CX_SUCCESS : replace_archive(archives, o, &why);
    cx_lock_leave(&o->lock);
    return !cx_failed(status) ? 0 : why.os_errno != 0 ? -why.os_errno : -EIO;
}

/* --- the rest of the io -------------------------------------------------------------------- */

static int archived_list(const cx_io *io, const char *path, cx_io_name *name, void *arg)
{
    cx_archives *archives = io->ctx;
    if (strcmp(path, archives->folder) != 0)
        return archives->under->list(archives->under, path, name, arg);
    return cx_archives_list(archives, name, arg);
}

static void archived_start_sync(const cx_io *io, cx_file file, uint64_t offset, uint64_t size)
{
    cx_archives *archives = io->ctx;
    if (file < FIRST)
        archives->under->start_sync(archives->under, file, offset, size);
}

static void archived_forget(const cx_io *io, cx_file file)
{
    cx_archives *archives = io->ctx;
    if (file < FIRST)
        archives->under->forget(archives->under, file);
}

static int64_t archived_read(const cx_io *io, cx_file file, void *data, size_t size)
{
    const cx_archives *archives = io->ctx;
    return file < FIRST ? archives->under->read(archives->under, file, data, size) : -EBADF;
}

static int64_t archived_write(const cx_io *io, cx_file file, const void *data, size_t size)
{
    const cx_archives *archives = io->ctx;
    return file < FIRST ? archives->under->write(archives->under, file, data, size) : -EBADF;
}

static int archived_truncate(const cx_io *io, cx_file file, uint64_t size)
{
    const cx_archives *archives = io->ctx;
    return file < FIRST ? archives->under->truncate(archives->under, file, size) : -EBADF;
}

static int archived_allocate(const cx_io *io, cx_file file, uint64_t size)
{
    const cx_archives *archives = io->ctx;
    return file < FIRST ? archives->under->allocate(archives->under, file, size) : -EBADF;
}

static int archived_lock(const cx_io *io, cx_file file)
{
    const cx_archives *archives = io->ctx;
    return file < FIRST ? archives->under->lock(archives->under, file) : -EBADF;
}

static int archived_locked(const cx_io *io, cx_file file, bool *out_locked)
{
    const cx_archives *archives = io->ctx;
    return file < FIRST ? archives->under->locked(archives->under, file, out_locked) : -EBADF;
}

static int archived_write_began(const cx_io *io, cx_file file, uint64_t offset, bool *out_began)
{
    const cx_archives *archives = io->ctx;
    return file < FIRST && archives->under->write_began != NULL
               ? archives->under->write_began(archives->under, file, offset, out_began)
               : -ENOTSUP;
}

static int archived_rename(const cx_io *io, const char *from, const char *to)
{
    const cx_archives *archives = io->ctx;
    return archives->under->rename(archives->under, from, to);
}

static int archived_unlink(const cx_io *io, const char *path)
{
    const cx_archives *archives = io->ctx;
    return archives->under->unlink(archives->under, path);
}

static int archived_mkdir(const cx_io *io, const char *path)
{
    const cx_archives *archives = io->ctx;
    return archives->under->mkdir(archives->under, path);
}

static uint64_t archived_process_id(const cx_io *io)
{
    const cx_archives *archives = io->ctx;
    return archives->under->process_id(archives->under);
}

static uint64_t archived_wall_ns(const cx_io *io)
{
    const cx_archives *archives = io->ctx;
    return archives->under->wall_ns(archives->under);
}

static uint64_t archived_monotonic_ns(const cx_io *io)
{
    const cx_archives *archives = io->ctx;
    return archives->under->monotonic_ns(archives->under);
}

static int archived_random(const cx_io *io, void *data, size_t size)
{
    const cx_archives *archives = io->ctx;
    return archives->under->random(archives->under, data, size);
}

static const cx_io calls = {
    .open = archived_open,
    .close = archived_close,
    .read = archived_read,
    .pread = archived_pread,
    .write = archived_write,
    .pwrite = archived_pwrite,
    .sync = archived_sync,
    .start_sync = archived_start_sync,
    .forget = archived_forget,
    .truncate = archived_truncate,
    .size = archived_size,
    .rename = archived_rename,
    .unlink = archived_unlink,
    .mkdir = archived_mkdir,
    .list = archived_list,
    .allocate = archived_allocate,
    .lock = archived_lock,
    .locked = archived_locked,
    .write_began = archived_write_began,
    .process_id = archived_process_id,
    .wall_ns = archived_wall_ns,
    .monotonic_ns = archived_monotonic_ns,
    .random = archived_random,
};

/* --- the object ---------------------------------------------------------------------------- */

cx_status cx_archives_new(const char *folder, const cx_io *under, const cx_alloc *alloc,
                          cx_archives **out, cx_err *err)
{
    cx_archives *archives = cx_alloc_zeroed(alloc, 1, sizeof *archives);
    if (archives == NULL)
        return cx_fail_nomem(err);
    archives->io = calls;
    archives->io.ctx = archives;
    archives->under = under;
    archives->alloc = alloc;
    archives->folder = folder;
    atomic_init(&archives->elsewhere, "");
    cx_lock_init(&archives->lock);
    *out = archives;
    return CX_SUCCESS;
}

void cx_archives_free(cx_archives *archives)
{
    if (archives == NULL)
        return;
    for (size_t i = 0; i < archives->known.count; i++)
        cx_alloc_free(archives->alloc, archives->known.items[i],
                      strlen(archives->known.items[i]) + 1);
    cx_vec_done(&archives->known, archives->alloc);
    cx_vec_done(&archives->openings, archives->alloc);
    cx_lock_done(&archives->lock);
    cx_alloc_free(archives->alloc, archives, sizeof *archives);
}

const cx_io *cx_archives_io(const cx_archives *archives)
{
    return &archives->io;
}

const cx_io *cx_archives_under(const cx_archives *archives)
{
    return archives->under;
}

const char *cx_archives_elsewhere(const cx_archives *archives)
{
    return atomic_load(&archives->elsewhere);
}
