/*
 * files.c - SQLite's view of the files of files.h: a VFS.
 *
 * Main files below the prefix are images (files_image.c); their write-ahead log belongs to the
 * image. Rollback journals are temporary files of the system without a name: what is not synced is
 * gone with the process, so nothing is ever rolled back from them by another.
 *
 * Of what SQLite asks about a device only "an overwrite touches nothing else" is claimed.  That
 * writes are atomic is true as well, but would make it leave out journals, which are cheap here.
 */
#include "db/files.h"

#include <errno.h>
#include <sqlite3.h>

#include "db/files_internal.h"

/* Of the last failure on this thread, as xGetLastError of SQLite's own layers. */
static _Thread_local int last_errno;

int cx_files_take_errno(void)
{
    int taken = last_errno;
    last_errno = 0;
    return taken;
}

/* `otherwise` is the code for an errno that has none of its own. */
static int code_of(int failed, int otherwise)
{
    last_errno = -failed;
    switch (-failed) {
    case ENOMEM: return SQLITE_IOERR_NOMEM;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return SQLITE_FULL;
    case EROFS:
    case EACCES:
    case EPERM: return SQLITE_READONLY;
    default: return otherwise;
    }
}

/* --- a main file ------------------------------------------------------------------------------ */

typedef struct main_file {
    sqlite3_file base;
    cx_image_user user;
} main_file;

static cx_image_user *user_of(sqlite3_file *file)
{
    return &((main_file *)(void *)file)->user;
}

static int main_close(sqlite3_file *file)
{
    cx_image_user *user = user_of(file);
    cx_image_index_leave(user);
    cx_image_unlock(user, SQLITE_LOCK_NONE);
    cx_image_close(user->image);
    user->image = NULL;
    file->pMethods = NULL;
    return SQLITE_OK;
}

static int finish_read(int failed, void *data, int size, size_t count)
{
    if (failed != 0)
        return code_of(failed, SQLITE_IOERR_READ);
    if (count == (size_t)size)
        return SQLITE_OK;
    memset((uint8_t *)data + count, 0, (size_t)size - count);
    return SQLITE_IOERR_SHORT_READ;
}

static int main_read(sqlite3_file *file, void *data, int size, sqlite3_int64 offset)
{
    size_t count = 0;
    int failed = cx_image_read(user_of(file)->image, data, (size_t)size, (uint64_t)offset, &count);
    return finish_read(failed, data, size, count);
}

static int main_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset)
{
    if (!user_of(file)->writes)
        return SQLITE_READONLY;
    int failed = cx_image_write(user_of(file)->image, data, (size_t)size, (uint64_t)offset);
    return failed == 0 ? SQLITE_OK : code_of(failed, SQLITE_IOERR_WRITE);
}

static int main_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    if (!user_of(file)->writes)
        return SQLITE_READONLY;
    int failed = cx_image_truncate(user_of(file)->image, (uint64_t)size);
    return failed == 0 ? SQLITE_OK : code_of(failed, SQLITE_IOERR_TRUNCATE);
}

static int main_sync(sqlite3_file *file, int flags)
{
    (void)flags;
    int failed = user_of(file)->writes ? cx_image_sync(user_of(file)->image) : 0;
    return failed == 0 ? SQLITE_OK : code_of(failed, SQLITE_IOERR_FSYNC);
}

static int main_size(sqlite3_file *file, sqlite3_int64 *out)
{
    *out = (sqlite3_int64)cx_image_size(user_of(file)->image);
    return SQLITE_OK;
}

static int main_lock(sqlite3_file *file, int level)
{
    return cx_image_lock(user_of(file), level);
}

static int main_unlock(sqlite3_file *file, int level)
{
    cx_image_unlock(user_of(file), level);
    return SQLITE_OK;
}

static int main_check_reserved(sqlite3_file *file, int *out)
{
    *out = cx_image_is_reserved(user_of(file));
    return SQLITE_OK;
}

static int main_control(sqlite3_file *file, int what, void *arg)
{
    (void)file;
    if (what == SQLITE_FCNTL_HAS_MOVED) {
        *(int *)arg = 0;
        return SQLITE_OK;
    }
    return SQLITE_NOTFOUND;
}

static int sector_size(sqlite3_file *file)
{
    (void)file;
    return CX_IMAGE_BLOCK;
}

static int characteristics(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int main_index(sqlite3_file *file, int region, int size, int make, void volatile **out)
{
    return cx_image_index(user_of(file), (size_t)region, (size_t)size, make != 0, out);
}

static int main_index_lock(sqlite3_file *file, int slot, int count, int flags)
{
    return cx_image_index_lock(user_of(file), slot, count, flags);
}

static void main_index_barrier(sqlite3_file *file)
{
    cx_image_index_barrier(user_of(file));
}

static int main_index_unmap(sqlite3_file *file, int remove)
{
    (void)remove;
    cx_image_index_leave(user_of(file));
    return SQLITE_OK;
}

static const sqlite3_io_methods main_methods = {
    .iVersion = 2,
    .xClose = main_close,
    .xRead = main_read,
    .xWrite = main_write,
    .xTruncate = main_truncate,
    .xSync = main_sync,
    .xFileSize = main_size,
    .xLock = main_lock,
    .xUnlock = main_unlock,
    .xCheckReservedLock = main_check_reserved,
    .xFileControl = main_control,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = characteristics,
    .xShmMap = main_index,
    .xShmLock = main_index_lock,
    .xShmBarrier = main_index_barrier,
    .xShmUnmap = main_index_unmap,
};

/* --- a write-ahead log ------------------------------------------------------------------------ */

typedef struct log_file {
    sqlite3_file base;
    const cx_image *image; /* lives as long as the main file is open, which closes after this one */
} log_file;

static const cx_image *image_of(sqlite3_file *file)
{
    return ((const log_file *)(const void *)file)->image;
}

static int log_close(sqlite3_file *file)
{
    file->pMethods = NULL;
    return SQLITE_OK;
}

static int log_read(sqlite3_file *file, void *data, int size, sqlite3_int64 offset)
{
    size_t count = 0;
    int failed = cx_image_log_read(image_of(file), data, (size_t)size, (uint64_t)offset, &count);
    return finish_read(failed, data, size, count);
}

static int log_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset)
{
    int failed = cx_image_log_write(image_of(file), data, (size_t)size, (uint64_t)offset);
    return failed == 0 ? SQLITE_OK : code_of(failed, SQLITE_IOERR_WRITE);
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int failed = cx_image_log_truncate(image_of(file), (uint64_t)size);
    return failed == 0 ? SQLITE_OK : code_of(failed, SQLITE_IOERR_TRUNCATE);
}

/* It does not outlive the process. */
static int log_sync(sqlite3_file *file, int flags)
{
    (void)file;
    (void)flags;
    return SQLITE_OK;
}

static int log_size(sqlite3_file *file, sqlite3_int64 *out)
{
    uint64_t size = 0;
    int failed = cx_image_log_size(image_of(file), &size);
    *out = (sqlite3_int64)size;
    return failed == 0 ? SQLITE_OK : code_of(failed, SQLITE_IOERR_FSTAT);
}

static int no_lock(sqlite3_file *file, int level)
{
    (void)file;
    (void)level;
    return SQLITE_OK;
}

static int not_reserved(sqlite3_file *file, int *out)
{
    (void)file;
    *out = 0;
    return SQLITE_OK;
}

static int no_control(sqlite3_file *file, int what, void *arg)
{
    (void)file;
    (void)what;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static const sqlite3_io_methods log_methods = {
    .iVersion = 1,
    .xClose = log_close,
    .xRead = log_read,
    .xWrite = log_write,
    .xTruncate = log_truncate,
    .xSync = log_sync,
    .xFileSize = log_size,
    .xLock = no_lock,
    .xUnlock = no_lock,
    .xCheckReservedLock = not_reserved,
    .xFileControl = no_control,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = characteristics,
};

/* --- opening ---------------------------------------------------------------------------------- */

static sqlite3_vfs *system_files;

static int open_main(const char *name, sqlite3_file *file, int flags, int *out_flags)
{
    main_file *at = (main_file *)(void *)file;
    const bool writes = (flags & SQLITE_OPEN_READWRITE) != 0;
    *at = (main_file){.user = {.writes = writes}};
    if (cx_files_io(name) == NULL)
        return code_of(-ENOENT, SQLITE_CANTOPEN);
    int failed = cx_image_open(name, writes, (flags & SQLITE_OPEN_CREATE) != 0, &at->user.image);
    if (failed == -ENOENT || failed == -ENOTDIR)
        return code_of(failed, SQLITE_CANTOPEN);
    if (failed == -EAGAIN || failed == -EBUSY)
        return code_of(failed, SQLITE_BUSY);
    if (failed != 0)
        return code_of(failed, SQLITE_IOERR);
    file->pMethods = &main_methods;
    if (out_flags != NULL)
        *out_flags = flags;
    return SQLITE_OK;
}

static const char log_ending[] = "-wal", journal_ending[] = "-journal";

static bool ends_with(const char *name, const char *ending, size_t *out_rest)
{
    const size_t size = strlen(name), end = strlen(ending);
    *out_rest = size - end;
    return size > end && strcmp(name + size - end, ending) == 0;
}

#define NAME_MAX_BYTES 4096 /* of what SQLite hands down, which is shorter */

/* The path of the main file whose write-ahead log has this name; false: it is none's. */
static bool path_of_log(const char *name, char out[NAME_MAX_BYTES])
{
    size_t size;
    if (!ends_with(name, log_ending, &size) || size >= NAME_MAX_BYTES)
        return false;
    memcpy(out, name, size);
    out[size] = 0;
    return true;
}

static int open_log(const char *name, sqlite3_file *file, int flags, int *out_flags)
{
    char path[NAME_MAX_BYTES];
    log_file *at = (log_file *)(void *)file;
    sqlite3_file *main = sqlite3_database_file_object(name);
    /* Below a layer of another it is one that writes, whose image is the one of that name. */
    at->image = main->pMethods == &main_methods ? user_of(main)->image
                : path_of_log(name, path)       ? cx_image_find(path)
                                                : NULL;
    if (at->image == NULL)
        return code_of(-ENOENT, SQLITE_CANTOPEN);
    file->pMethods = &log_methods;
    if (out_flags != NULL)
        *out_flags = flags;
    return SQLITE_OK;
}

static int open_unnamed(sqlite3_file *file, int *out_flags)
{
    return system_files->xOpen(system_files, NULL, file,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXCLUSIVE |
                                   SQLITE_OPEN_DELETEONCLOSE | SQLITE_OPEN_TEMP_JOURNAL,
                               out_flags);
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *out_flags)
{
    (void)vfs;
    file->pMethods = NULL;
    if ((flags & SQLITE_OPEN_MAIN_DB) != 0 && name != NULL)
        return open_main(name, file, flags, out_flags);
    if ((flags & SQLITE_OPEN_WAL) != 0)
        return open_log(name, file, flags, out_flags);
    if ((flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL)) == 0)
        return system_files->xOpen(system_files, name, file, flags, out_flags);
    if ((flags & SQLITE_OPEN_CREATE) == 0) /* one of before: there is none */
        return code_of(-ENOENT, SQLITE_CANTOPEN);
    return open_unnamed(file, out_flags);
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
    (void)vfs;
    size_t rest;
    uint64_t size;
    char path[NAME_MAX_BYTES];
    const cx_io *io = cx_files_io(name);
    if (io == NULL)
        return system_files->xDelete(system_files, name, sync_folder);
    int failed = 0;
    if (path_of_log(name, path))
        failed = cx_image_find_log(path, true, &size);
    else if (!ends_with(name, journal_ending, &rest))
        failed = io->unlink(io, name);
    if (failed == -ENOENT)
        return SQLITE_IOERR_DELETE_NOENT;
    return failed == 0 ? SQLITE_OK : code_of(failed, SQLITE_IOERR_DELETE);
}

static int is_there(const cx_io *io, const char *name, int *out)
{
    cx_file file;
    int failed = io->open(io, name, CX_IO_READ, &file);
    *out = failed == 0;
    if (failed == 0)
        (void)io->close(io, file);
    return failed == 0 || failed == -ENOENT || failed == -ENOTDIR
               ? SQLITE_OK
               : code_of(failed, SQLITE_IOERR_ACCESS);
}

static int access_file(sqlite3_vfs *vfs, const char *name, int what, int *out)
{
    (void)vfs;
    size_t rest;
    uint64_t size;
    char path[NAME_MAX_BYTES];
    const cx_io *io = cx_files_io(name);
    if (io == NULL)
        return system_files->xAccess(system_files, name, what, out);
    *out = 0;
    if (ends_with(name, journal_ending, &rest))
        return SQLITE_OK;
    if (!path_of_log(name, path))
        return is_there(io, name, out);
    int failed = cx_image_find_log(path, false, &size);
    *out = size != 0;
    return failed == 0 ? SQLITE_OK : code_of(failed, SQLITE_IOERR_ACCESS);
}

static int full_path(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
    (void)vfs;
    if (cx_files_io(name) == NULL)
        return system_files->xFullPathname(system_files, name, size, out);
    if (strlen(name) >= (size_t)size)
        return code_of(-ENAMETOOLONG, SQLITE_CANTOPEN);
    memcpy(out, name, strlen(name) + 1);
    return SQLITE_OK;
}

static int last_error(sqlite3_vfs *vfs, int size, char *out)
{
    (void)vfs;
    (void)size;
    (void)out;
    return last_errno;
}

static bool make_vfs(void)
{
    static sqlite3_vfs vfs;
    system_files = sqlite3_vfs_find(NULL);
    if (system_files == NULL)
        return false;
    /* Its other calls know nothing of files: libraries, randomness, time. */
    vfs = *system_files;
    vfs.pNext = NULL;
    vfs.zName = CX_FILES_VFS;
    if (vfs.szOsFile < (int)sizeof(main_file))
        vfs.szOsFile = (int)sizeof(main_file);
    vfs.xOpen = open_file;
    vfs.xDelete = delete_file;
    vfs.xAccess = access_file;
    vfs.xFullPathname = full_path;
    vfs.xGetLastError = last_error;
    return sqlite3_vfs_register(&vfs, 0) == SQLITE_OK;
}

const char *cx_files_register(void)
{
    if (sqlite3_initialize() != SQLITE_OK)
        return NULL;
    sqlite3_mutex *mutex = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_APP1);
    sqlite3_mutex_enter(mutex);
    const bool there = sqlite3_vfs_find(CX_FILES_VFS) != NULL || make_vfs();
    sqlite3_mutex_leave(mutex);
    return there ? CX_FILES_VFS : NULL;
}
