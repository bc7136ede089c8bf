/*
 * files_image.c - the contents of a database whose file is in a cx_io.
 *
 * F1  What SQLite writes is staged in a file without a name, and goes to the io only when SQLite
 *     syncs: a checkpoint that stopped half-way changes nothing there.  SQLite syncs a checkpoint
 *     only when it brought over the whole write-ahead log, so what goes there is the end of a
 *     transaction.
 * F2  When the way to the io fails, the image fails for good: no later sync may succeed, as nothing
 *     says which writes it would be about.  What is staged stays, so reading goes on.
 * F3  A block is read from the stage when its bit is set, else from the first `base` bytes of the
 *     io's file, else it is zero.
 * F4  Changes come one at a time (`changing`).  Bits, `size` and `base` change with `contents`
 *     locked for writing, and are read with either.
 */
#include <errno.h>
#include <stdlib.h>

#include "db/files.h"
#include "db/files_internal.h"
#include "os/api.h"

/* What one write to the io has at most. */
#define RUN_BYTES ((size_t)64 * CX_IMAGE_BLOCK)

static struct registry {
    pthread_mutex_t mutex;
    const cx_io *io; /* NULL = there is no prefix */
    char prefix[CX_DB_PREFIX_MAX + 1];
    cx_image *images; /* those that are written */
    unsigned open;    /* all */
} registry = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* So that nothing is locked where there is no prefix. */
static atomic_bool has_prefix;

static void enter_registry(void)
{
    int failed = pthread_mutex_lock(&registry.mutex);
    CX_ASSERT(failed == 0);
}

static void leave_registry(void)
{
    (void)pthread_mutex_unlock(&registry.mutex);
}

/* --- the prefix ------------------------------------------------------------------------------- */

cx_status cx_db_use_files(const char *prefix, const cx_io *io, cx_err *err)
{
    CX_ASSERT((prefix == NULL) == (io == NULL));
    if (prefix != NULL && (strlen(prefix) == 0 || strlen(prefix) > CX_DB_PREFIX_MAX ||
                           strchr("/. ", prefix[0]) != NULL))
        return cx_fail(err, CX_E_USAGE,
                       "the prefix of database paths has 1 to %d bytes and does not begin with '/',"
                       " '.' or a blank",
                       CX_DB_PREFIX_MAX);
    if (prefix != NULL && cx_files_register() == NULL)
        return cx_fail_nomem(err);
    enter_registry();
    const bool busy = registry.open != 0;
    if (!busy) {
        registry.io = io;
        (void)snprintf(registry.prefix, sizeof registry.prefix, "%s", prefix != NULL ? prefix : "");
        atomic_store(&has_prefix, io != NULL);
    }
    leave_registry();
    return !busy ? CX_SUCCESS
                 : cx_fail(err, CX_E_BUSY, "a database of the present prefix is still open");
}

const cx_io *cx_files_io(const char *path)
{
    if (!atomic_load(&has_prefix) || path == NULL)
        return NULL;
    enter_registry();
    const size_t size = strlen(registry.prefix);
    const cx_io *io = size != 0 && strncmp(path, registry.prefix, size) == 0 ? registry.io : NULL;
    leave_registry();
    return io;
}

bool cx_db_in_files(const char *path)
{
    return cx_files_io(path) != NULL;
}

bool cx_db_is_there(const char *path)
{
    const cx_io *io = cx_files_io(path);
    cx_file file;
    if (io == NULL)
        io = cx_io_system();
    int failed = io->open(io, path, CX_IO_READ, &file);
    if (failed == 0)
        (void)io->close(io, file);
    return failed != -ENOENT;
}

/* --- opening and closing ---------------------------------------------------------------------- */

static const cx_io *disk(void)
{
    return cx_io_system();
}

static int open_unnamed(cx_file *out)
{
    cx_err err = {0};
    if (!cx_failed(cx_path_open_unnamed(out, &err)))
        return 0;
    return err.os_errno != 0 ? -err.os_errno : -EIO;
}

static void close_unnamed(cx_file file)
{
    if (file != CX_FILE_NONE)
        (void)disk()->close(disk(), file);
}

static void free_image(cx_image *image)
{
    const cx_alloc *alloc = cx_alloc_default();
    if (image->file != CX_FILE_NONE)
        (void)image->io->close(image->io, image->file);
    close_unnamed(image->stage);
    close_unnamed(image->log);
    cx_buf_done(&image->staged);
    cx_image_locks_done(&image->locks);
    (void)pthread_rwlock_destroy(&image->contents);
    (void)pthread_mutex_destroy(&image->changing);
    if (image->path != NULL)
        cx_alloc_free(alloc, image->path, strlen(image->path) + 1);
    cx_alloc_free(alloc, image, sizeof *image);
}

static cx_image *new_image(const char *path, const cx_io *io)
{
    const cx_alloc *alloc = cx_alloc_default();
    cx_image *image = cx_alloc_zeroed(alloc, 1, sizeof *image);
    if (image == NULL)
        return NULL;
    image->io = io;
    image->file = image->stage = image->log = CX_FILE_NONE;
    cx_buf_init(&image->staged, alloc);
    bool made = cx_image_locks_init(&image->locks);
    made = pthread_rwlock_init(&image->contents, NULL) == 0 && made;
    made = pthread_mutex_init(&image->changing, NULL) == 0 && made;
    CX_ASSERT(made);
    const size_t size = strlen(path) + 1;
    image->path = cx_alloc_new(alloc, size);
    if (image->path == NULL) {
        free_image(image);
        return NULL;
    }
    memcpy(image->path, path, size);
    return image;
}

static int open_contents(cx_image *image, unsigned flags)
{
    cx_file file = CX_FILE_NONE;
    bool regular = true;
    int failed = image->io->open(image->io, image->path, flags, &file);
    if (failed != 0)
        return failed;
    image->file = file;
    failed = image->io->size(image->io, file, &image->size, &regular);
    image->base = image->size;
    if (failed == 0 && (!regular || image->size > INT64_MAX))
        failed = -EINVAL;
    return failed;
}

/* With the registry's lock. */
static int make_image(const char *path, bool writes, bool create, cx_image **out)
{
    cx_image *image = new_image(path, registry.io);
    if (image == NULL)
        return -ENOMEM;
    image->live = writes;
    int failed = open_contents(image, !writes  ? CX_IO_READ
                                      : create ? CX_IO_READ | CX_IO_WRITE | CX_IO_CREATE
                                               : CX_IO_READ | CX_IO_WRITE);
    if (failed == 0 && writes)
        failed = open_unnamed(&image->stage);
    if (failed == 0 && writes)
        failed = open_unnamed(&image->log);
    if (failed != 0) {
        free_image(image);
        return failed;
    }
    if (writes) {
        image->next = registry.images;
        registry.images = image;
    }
    *out = image;
    return 0;
}

/* With the registry's lock. */
static cx_image *find_live(const char *path)
{
    cx_image *image = registry.images;
    while (image != NULL && strcmp(image->path, path) != 0)
        image = image->next;
    return image;
}

int cx_image_open(const char *path, bool writes, bool create, cx_image **out)
{
    enter_registry();
    cx_image *image = find_live(path);
    int failed = 0;
    if (registry.io == NULL)
        failed = -ENOENT;
    else if (image == NULL)
        failed = make_image(path, writes, create, &image);
    else if (atomic_load(&image->failure) != 0)
        failed = -ESTALE;
    if (failed == 0) {
        image->users++;
        registry.open++;
        *out = image;
    }
    leave_registry();
    return failed;
}

cx_image *cx_image_find(const char *path)
{
    enter_registry();
    cx_image *image = find_live(path);
    leave_registry();
    return image;
}

int cx_image_find_log(const char *path, bool drop, uint64_t *out)
{
    *out = 0;
    enter_registry(); /* it could be closed meanwhile */
    cx_image *image = find_live(path);
    int failed = 0;
    if (image != NULL && drop && !cx_image_index_is_used(image))
        failed = cx_image_log_truncate(image, 0);
    if (image != NULL && failed == 0)
        failed = cx_image_log_size(image, out);
    leave_registry();
    return failed;
}

void cx_image_close(cx_image *image)
{
    enter_registry();
    registry.open--;
    const bool last = --image->users == 0;
    for (cx_image **at = &registry.images; last && *at != NULL;) {
        if (*at == image)
            *at = image->next;
        else
            at = &(*at)->next;
    }
    if (last)
        free_image(image); /* before the path can be opened again */
    leave_registry();
}

/* --- blocks ----------------------------------------------------------------------------------- */

static void lock_contents(cx_image *image, bool to_change)
{
    int failed = to_change ? pthread_rwlock_wrlock(&image->contents)
                           : pthread_rwlock_rdlock(&image->contents);
    CX_ASSERT(failed == 0);
}

static void unlock_contents(cx_image *image)
{
    (void)pthread_rwlock_unlock(&image->contents);
}

static bool is_staged(const cx_image *image, uint64_t block)
{
    return block / 8 < image->staged.size && (image->staged.data[block / 8] >> block % 8 & 1u) != 0;
}

static size_t left_in_block(uint64_t offset, size_t size)
{
    size_t left = CX_IMAGE_BLOCK - (size_t)(offset % CX_IMAGE_BLOCK);
    return left < size ? left : size;
}

/* All of `size` bytes. */
static int read_whole(const cx_io *io, cx_file file, void *data, size_t size, uint64_t offset)
{
    cx_err err = {0};
    size_t count = 0;
    if (cx_failed(cx_io_read_at(io, file, "the image", data, size, offset, &count, &err)))
        return err.os_errno != 0 ? -err.os_errno : -EIO;
    return count == size ? 0 : -EIO;
}

static int write_whole(const cx_io *io, cx_file file, const void *data, size_t size,
                       uint64_t offset)
{
    cx_err err = {0};
    if (!cx_failed(cx_io_write_at(io, file, "the image", data, size, offset, &err)))
        return 0;
    return err.os_errno != 0 ? -err.os_errno : -EIO;
}

/* In one block (F3). */
static int read_block(const cx_image *image, uint8_t *data, size_t size, uint64_t offset)
{
    if (is_staged(image, offset / CX_IMAGE_BLOCK))
        return read_whole(disk(), image->stage, data, size, offset);
    size_t there = offset >= image->base         ? 0
                   : image->base - offset < size ? (size_t)(image->base - offset)
                                                 : size;
    memset(data + there, 0, size - there);
    return there == 0 ? 0 : read_whole(image->io, image->file, data, there, offset);
}

int cx_image_read(cx_image *image, void *data, size_t size, uint64_t offset, size_t *out_count)
{
    int failed = 0;
    size_t done = 0;
    lock_contents(image, false);
    if (offset >= image->size)
        size = 0;
    else if (image->size - offset < size)
        size = (size_t)(image->size - offset);
    while (done < size && failed == 0) {
        size_t part = left_in_block(offset + done, size - done);
        failed = read_block(image, (uint8_t *)data + done, part, offset + done);
        done += part;
    }
    unlock_contents(image);
    *out_count = size;
    return failed;
}

uint64_t cx_image_size(cx_image *image)
{
    lock_contents(image, false);
    uint64_t size = image->size;
    unlock_contents(image);
    return size;
}

/* --- changing --------------------------------------------------------------------------------- */

/* The image may be changed until leave_changing. */
static int enter_changing(cx_image *image)
{
    int failed = pthread_mutex_lock(&image->changing);
    CX_ASSERT(failed == 0);
    return atomic_load(&image->failure) != 0 ? -ESTALE : 0;
}

static int leave_changing(cx_image *image, int result)
{
    (void)pthread_mutex_unlock(&image->changing);
    return result;
}

/* Bits up to this block's, cleared. */
static bool reserve_bits(cx_image *image, uint64_t block)
{
    static const uint8_t none[512];
    bool there = true;
    lock_contents(image, true);
    while (there && image->staged.size <= block / 8) {
        cx_buf_add(&image->staged, none, sizeof none);
        there = !image->staged.failed;
    }
    image->staged.failed = false;
    unlock_contents(image);
    return there;
}

/* In one block. */
static int stage_part(cx_image *image, const uint8_t *data, size_t size, uint64_t offset)
{
    uint8_t whole[CX_IMAGE_BLOCK];
    const uint64_t block = offset / CX_IMAGE_BLOCK, start = block * CX_IMAGE_BLOCK;
    if (size != CX_IMAGE_BLOCK && !is_staged(image, block)) {
        int failed = read_block(image, whole, sizeof whole, start);
        if (failed != 0)
            return failed;
        memcpy(whole + (offset - start), data, size);
        data = whole;
        size = sizeof whole;
        offset = start;
    }
    int failed = write_whole(disk(), image->stage, data, size, offset);
    if (failed != 0)
        return failed;
    lock_contents(image, true);
    image->staged.data[block / 8] |= (uint8_t)(1u << block % 8);
    unlock_contents(image);
    return 0;
}

static int stage(cx_image *image, const uint8_t *data, size_t size, uint64_t offset)
{
    if (size == 0)
        return 0;
    if (offset > (uint64_t)INT64_MAX - size)
        return -EFBIG;
    if (!reserve_bits(image, (offset + size - 1) / CX_IMAGE_BLOCK))
        return -ENOMEM;
    for (size_t done = 0; done < size;) {
        size_t part = left_in_block(offset + done, size - done);
        int failed = stage_part(image, data + done, part, offset + done);
        if (failed != 0)
            return failed;
        done += part;
    }
    lock_contents(image, true);
    if (image->size < offset + size)
        image->size = offset + size;
    unlock_contents(image);
    image->changed = true;
    return 0;
}

int cx_image_write(cx_image *image, const void *data, size_t size, uint64_t offset)
{
    int failed = enter_changing(image);
    return leave_changing(image, failed != 0 ? failed : stage(image, data, size, offset));
}

/* What is cut off must read as zeros when the file grows again. */
static int cut(cx_image *image, uint64_t size)
{
    static const uint8_t zeros[CX_IMAGE_BLOCK];
    const uint64_t block = size / CX_IMAGE_BLOCK, within = size % CX_IMAGE_BLOCK;
    int failed = within == 0 || !is_staged(image, block)
                     ? 0
                     : write_whole(disk(), image->stage, zeros, CX_IMAGE_BLOCK - within, size);
    if (failed != 0)
        return failed;
    lock_contents(image, true);
    for (uint64_t b = within == 0 ? block : block + 1; b / 8 < image->staged.size; b++)
        image->staged.data[b / 8] &= (uint8_t) ~(1u << b % 8);
    if (image->base > size)
        image->base = size;
    image->size = size;
    unlock_contents(image);
    image->changed = true;
    return 0;
}

int cx_image_truncate(cx_image *image, uint64_t size)
{
    int failed = enter_changing(image);
    if (failed == 0 && size > INT64_MAX)
        failed = -EFBIG;
    if (failed == 0 && size != image->size)
        failed = cut(image, size);
    return leave_changing(image, failed);
}

/* --- to the io -------------------------------------------------------------------------------- */

/* The next blocks in a row that are staged, from *at on; false: there are none. */
static bool next_run(const cx_image *image, uint64_t *at, uint64_t *out_from, size_t *out_size)
{
    const uint64_t bits = (uint64_t)image->staged.size * 8;
    uint64_t block = *at;
    while (block < bits && !is_staged(image, block))
        block += block % 8 == 0 && image->staged.data[block / 8] == 0 ? 8 : 1;
    if (block >= bits)
        return false;
    *out_from = block * CX_IMAGE_BLOCK;
    const uint64_t first = block;
    while (is_staged(image, block) && (block - first) * CX_IMAGE_BLOCK < RUN_BYTES)
        block++;
    const uint64_t end =
        block * CX_IMAGE_BLOCK < image->size ? block * CX_IMAGE_BLOCK : image->size;
    *out_size = (size_t)(end - *out_from);
    *at = block;
    return true;
}

static int write_runs(const cx_image *image, uint8_t *buffer, uint64_t *out_end)
{
    uint64_t at = 0, from = 0;
    size_t size = 0;
    int failed = 0;
    while (failed == 0 && next_run(image, &at, &from, &size)) {
        failed = read_whole(disk(), image->stage, buffer, size, from);
        if (failed == 0)
            failed = write_whole(image->io, image->file, buffer, size, from);
        if (*out_end < from + size)
            *out_end = from + size;
    }
    return failed;
}

static int send(const cx_image *image, uint8_t *buffer)
{
    const cx_io *io = image->io;
    uint64_t end = 0;
    bool regular;
    int failed = io->size(io, image->file, &end, &regular);
    if (failed == 0 && image->base < end) {
        failed = io->truncate(io, image->file, image->base);
        end = image->base;
    }
    if (failed == 0)
        failed = write_runs(image, buffer, &end);
    if (failed == 0 && end != image->size)
        failed = io->truncate(io, image->file, image->size);
    return failed != 0 ? failed : io->sync(io, image->file, false);
}

/* The io has it all. */
static int forget_staged(cx_image *image)
{
    lock_contents(image, true);
    cx_buf_clear(&image->staged);
    image->base = image->size;
    image->changed = false;
    unlock_contents(image);
    /* Nothing reads it any more; if its room cannot be given back, it is used again. */
    (void)disk()->truncate(disk(), image->stage, 0);
    return 0;
}

int cx_image_sync(cx_image *image)
{
    int failed = enter_changing(image);
    if (failed != 0 || !image->changed)
        return leave_changing(image, failed);
    uint8_t *buffer = cx_alloc_new(cx_alloc_default(), RUN_BYTES);
    if (buffer == NULL)
        return leave_changing(image, -ENOMEM); /* nothing was sent: it can be tried again */
    failed = send(image, buffer);
    cx_alloc_free(cx_alloc_default(), buffer, RUN_BYTES);
    if (failed != 0)
        atomic_store(&image->failure, -failed); /* F2 */
    else
        failed = forget_staged(image);
    return leave_changing(image, failed);
}

/* --- the write-ahead log ---------------------------------------------------------------------- */

int cx_image_log_read(const cx_image *image, void *data, size_t size, uint64_t offset,
                      size_t *out_count)
{
    cx_err err = {0};
    *out_count = 0;
    if (image->log == CX_FILE_NONE)
        return 0;
    if (!cx_failed(cx_io_read_at(disk(), image->log, "the write-ahead log", data, size, offset,
                                 out_count, &err)))
        return 0;
    return err.os_errno != 0 ? -err.os_errno : -EIO;
}

int cx_image_log_write(const cx_image *image, const void *data, size_t size, uint64_t offset)
{
    if (image->log == CX_FILE_NONE)
        return -EROFS;
    /* It could never be brought over (F2). */
    if (atomic_load(&image->failure) != 0)
        return -ESTALE;
    return write_whole(disk(), image->log, data, size, offset);
}

int cx_image_log_truncate(const cx_image *image, uint64_t size)
{
    return image->log == CX_FILE_NONE ? 0 : disk()->truncate(disk(), image->log, size);
}

int cx_image_log_size(const cx_image *image, uint64_t *out)
{
    bool regular;
    *out = 0;
    return image->log == CX_FILE_NONE ? 0 : disk()->size(disk(), image->log, out, &regular);
}
