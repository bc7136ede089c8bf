/*
 * wipe.c - the unused part of each page is zero in the file.
 *
 * W1  Only whole pages of a database's main file are looked at; everything else, and everything
 *     that is read, passes unchanged.
 * W2  A page is changed only when it is certain that it holds cells: its first byte is 2, 5, 10 or
 *     13 (sqlite.org/fileformat2.html §1.6).  The first byte of the other kinds belongs to the
 *     number of a page, and so is 0 or 1 while the file has fewer than 2^25 pages; files that map
 *     pointers (auto_vacuum), whose maps begin with a kind, are left alone.
 * W3  SQLite gives the gap between the list of cells and the first cell no meaning: it writes there
 *     without reading it.
 * W4  A new length is announced before the pages beyond the old one are written, so a file that
 *     will be too long for W2 is known in time.
 */
#include "db/wipe.h"

#include <sqlite3.h>
#include <string.h>

#include "db/files_internal.h"

enum { PAGE_SIZE_MIN = 512, PAGE_SIZE_MAX = 65536, FILE_HEAD_SIZE = 100 };
/* In the head of a file: the largest root page, which is 0 unless pointers are mapped. */
enum { MAPPED_AT = 52 };

typedef enum mapped { MAPPED_UNKNOWN, MAPPED_NO, MAPPED_YES } mapped;

/* The real file follows directly. */
typedef struct wiped_file {
    sqlite3_file base;
    sqlite3_io_methods methods;
    uint8_t *copy; /* of a page, PAGE_SIZE_MAX bytes; NULL until it is needed */
    sqlite3_int64 announced_size;
    mapped pointers;
} wiped_file;

/* The layer over the files of one other VFS. */
typedef struct wipe_layer {
    sqlite3_vfs vfs;
    const char *name;
    const char *below_name; /* NULL = the system's */
    sqlite3_vfs *below;
} wipe_layer;

static wipe_layer over_system = {.name = "cortex-wipe"};
static wipe_layer over_files = {.name = "cortex-wipe-io", .below_name = CX_FILES_VFS};

static sqlite3_file *real_of(sqlite3_file *file)
{
    return (sqlite3_file *)(void *)((wiped_file *)(void *)file + 1);
}

/* --- the unused part -------------------------------------------------------------------------- */

static size_t read_u16(const uint8_t *at)
{
    return (size_t)at[0] << 8 | at[1];
}

bool cx_db_wipe_gap(const uint8_t *page, size_t size, bool first, size_t *out_from, size_t *out_to)
{
    const uint8_t *head = page + (first ? FILE_HEAD_SIZE : 0);
    const uint8_t kind = head[0];
    const size_t head_size = kind == 2 || kind == 5 ? 12 : kind == 10 || kind == 13 ? 8 : 0;
    if (head_size == 0)
        return false;
    const size_t cells = read_u16(head + 3), start = read_u16(head + 5);
    *out_from = (size_t)(head - page) + head_size + 2 * cells;
    *out_to = start == 0 ? PAGE_SIZE_MAX : start;
    return *out_to <= size && *out_from < *out_to;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* --- whether a page may be changed (W2) ------------------------------------------------------- */

static mapped mapped_by(const uint8_t *file_head)
{
    static const uint8_t none[4] = {0};
    return memcmp(file_head + MAPPED_AT, none, sizeof none) == 0 ? MAPPED_NO : MAPPED_YES;
}

static bool maps_pointers(wiped_file *file, const uint8_t *page, bool first)
{
    uint8_t head[FILE_HEAD_SIZE];
    sqlite3_file *real = real_of(&file->base);
    if (first)
        file->pointers = mapped_by(page);
    else if (file->pointers == MAPPED_UNKNOWN &&
             real->pMethods->xRead(real, head, sizeof head, 0) == SQLITE_OK)
        file->pointers = mapped_by(head);
    return file->pointers != MAPPED_NO;
}

static bool is_too_long(wiped_file *file, int page_size, sqlite3_int64 end)
{
    sqlite3_file *real = real_of(&file->base);
    sqlite3_int64 size = 0;
    const sqlite3_int64 max = (sqlite3_int64)CX_DB_WIPE_PAGES_MAX * page_size;
    return real->pMethods->xFileSize(real, &size) != SQLITE_OK || size >= max || end >= max ||
           file->announced_size >= max;
}

static int write_wiped(wiped_file *file, const uint8_t *page, int size, sqlite3_int64 offset,
                       size_t from, size_t to)
{
    sqlite3_file *real = real_of(&file->base);
    if (file->copy == NULL)
        file->copy = sqlite3_malloc(PAGE_SIZE_MAX);
    if (file->copy == NULL)
        return SQLITE_IOERR_NOMEM;
    memcpy(file->copy, page, (size_t)size);
    memset(file->copy + from, 0, to - from);
    return real->pMethods->xWrite(real, file->copy, size, offset);
}

static int file_write(sqlite3_file *base, const void *data, int size, sqlite3_int64 offset)
{
    wiped_file *file = (wiped_file *)(void *)base;
    sqlite3_file *real = real_of(base);
    size_t from = 0, to = 0;
    const bool whole = size >= PAGE_SIZE_MIN && size <= PAGE_SIZE_MAX && (size & (size - 1)) == 0 &&
                       offset % size == 0;
    if (whole && !maps_pointers(file, data, offset == 0) &&
        cx_db_wipe_gap(data, (size_t)size, offset == 0, &from, &to) &&
        !is_zero((const uint8_t *)data + from, to - from) &&
        !is_too_long(file, size, offset + size))
        return write_wiped(file, data, size, offset, from, to);
    return real->pMethods->xWrite(real, data, size, offset);
}

/* --- everything else -------------------------------------------------------------------------- */

static int file_close(sqlite3_file *base)
{
    wiped_file *file = (wiped_file *)(void *)base;
    sqlite3_free(file->copy);
    file->copy = NULL;
    return real_of(base)->pMethods->xClose(real_of(base));
}

static int file_read(sqlite3_file *base, void *out, int size, sqlite3_int64 offset)
{
    return real_of(base)->pMethods->xRead(real_of(base), out, size, offset);
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    return real_of(base)->pMethods->xTruncate(real_of(base), size);
}

static int file_sync(sqlite3_file *base, int flags)
{
    return real_of(base)->pMethods->xSync(real_of(base), flags);
}

static int file_size(sqlite3_file *base, sqlite3_int64 *out)
{
    return real_of(base)->pMethods->xFileSize(real_of(base), out);
}

static int file_lock(sqlite3_file *base, int level)
{
    return real_of(base)->pMethods->xLock(real_of(base), level);
}

static int file_unlock(sqlite3_file *base, int level)
{
    return real_of(base)->pMethods->xUnlock(real_of(base), level);
}

static int file_check_reserved(sqlite3_file *base, int *out)
{
    return real_of(base)->pMethods->xCheckReservedLock(real_of(base), out);
}

static int file_control(sqlite3_file *base, int what, void *arg)
{
    wiped_file *file = (wiped_file *)(void *)base;
    if (what == SQLITE_FCNTL_SIZE_HINT)
        file->announced_size = *(const sqlite3_int64 *)arg;
    return real_of(base)->pMethods->xFileControl(real_of(base), what, arg);
}

static int file_sector_size(sqlite3_file *base)
{
    return real_of(base)->pMethods->xSectorSize(real_of(base));
}

static int file_characteristics(sqlite3_file *base)
{
    return real_of(base)->pMethods->xDeviceCharacteristics(real_of(base));
}

static int file_shm_map(sqlite3_file *base, int region, int size, int extend, void volatile **out)
{
    return real_of(base)->pMethods->xShmMap(real_of(base), region, size, extend, out);
}

static int file_shm_lock(sqlite3_file *base, int offset, int count, int flags)
{
    return real_of(base)->pMethods->xShmLock(real_of(base), offset, count, flags);
}

static void file_shm_barrier(sqlite3_file *base)
{
    real_of(base)->pMethods->xShmBarrier(real_of(base));
}

static int file_shm_unmap(sqlite3_file *base, int delete_it)
{
    return real_of(base)->pMethods->xShmUnmap(real_of(base), delete_it);
}

static int file_fetch(sqlite3_file *base, sqlite3_int64 offset, int size, void **out)
{
    return real_of(base)->pMethods->xFetch(real_of(base), offset, size, out);
}

static int file_unfetch(sqlite3_file *base, sqlite3_int64 offset, void *page)
{
    return real_of(base)->pMethods->xUnfetch(real_of(base), offset, page);
}

static const sqlite3_io_methods wiped_methods = {
    .iVersion = 3,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
    .xFetch = file_fetch,
    .xUnfetch = file_unfetch,
};

/* --- opening ---------------------------------------------------------------------------------- */

static int open_main(sqlite3_vfs *below, const char *name, sqlite3_file *base, int flags,
                     int *out_flags)
{
    wiped_file *file = (wiped_file *)(void *)base;
    sqlite3_file *real = real_of(base);
    *file = (wiped_file){.pointers = MAPPED_UNKNOWN};
    real->pMethods = NULL;
    int code = below->xOpen(below, name, real, flags, out_flags);
    if (real->pMethods == NULL)
        return code;
    file->methods = wiped_methods;
    if (real->pMethods->iVersion < file->methods.iVersion)
        file->methods.iVersion = real->pMethods->iVersion;
    base->pMethods = &file->methods;
    return code;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags,
                     int *out_flags)
{
    sqlite3_vfs *below = ((const wipe_layer *)(const void *)vfs)->below;
    if ((flags & SQLITE_OPEN_MAIN_DB) != 0)
        return open_main(below, name, base, flags, out_flags);
    return below->xOpen(below, name, base, flags, out_flags);
}

static bool make_layer(wipe_layer *layer)
{
    sqlite3_vfs *below = sqlite3_vfs_find(layer->below_name);
    if (below == NULL)
        return false;
    layer->below = below;
    /* Its other calls do not look at the files that it opened. */
    layer->vfs = *below;
    layer->vfs.pNext = NULL;
    layer->vfs.zName = layer->name;
    layer->vfs.szOsFile = (int)sizeof(wiped_file) + below->szOsFile;
    layer->vfs.xOpen = open_file;
    return sqlite3_vfs_register(&layer->vfs, 0) == SQLITE_OK;
}

static const char *register_layer(wipe_layer *layer)
{
    if (sqlite3_initialize() != SQLITE_OK)
        return NULL;
    sqlite3_mutex *mutex = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_APP1);
    sqlite3_mutex_enter(mutex);
    const bool there = sqlite3_vfs_find(layer->name) != NULL || make_layer(layer);
    sqlite3_mutex_leave(mutex);
    return there ? layer->name : NULL;
}

const char *cx_db_wipe_register(void)
{
    return register_layer(&over_system);
}

const char *cx_db_wipe_register_over_files(void)
{
    return register_layer(&over_files);
}
