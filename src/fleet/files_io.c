/*
 * files_io.c - the cx_io of a part: paths and handles, and which kind of file a call goes to.
 *
 * Folders are not stored: one exists while something lies in it, and one that was made exists in
 * this process.  The part itself, and its folders log and keys, are always there.
 */
#include <errno.h>
#include <stdlib.h>

#include "fleet/files_internal.h"

static cx_fleet_files *files_of(const cx_io *io)
{
    return io->ctx;
}

/* --- paths ------------------------------------------------------------------------------------ */

/* What is after "fleet:NAME"; NULL where the path is not one of the part's. */
static const char *inside(const cx_fleet_files *files, const char *path)
{
    size_t size = strlen(files->path);
    if (strncmp(path, files->path, size) != 0 || (path[size] != 0 && path[size] != '/'))
        return NULL;
    return path + size;
}

/* The name without empty parts and "."; "" is the part itself. */
static int name_of(const char *rest, char out[CX_FILES_NAME_SIZE])
{
    size_t size = 0;
    while (*rest != 0) {
        size_t step = strcspn(rest, "/");
        bool skip = step == 0 || (step == 1 && rest[0] == '.');
        if (step == 2 && rest[0] == '.' && rest[1] == '.')
            return -ENOENT;
        if (!skip) {
            if (size + (size != 0) + step >= CX_FILES_NAME_SIZE)
                return -ENAMETOOLONG;
            if (size != 0)
                out[size++] = '/';
            memcpy(out + size, rest, step);
            size += step;
        }
        rest += step + (rest[step] == '/');
    }
    out[size] = 0;
    return 0;
}

/* --- handles ---------------------------------------------------------------------------------- */

static bool is_ours(cx_file file)
{
    return file >= CX_FILES_FIRST && file < CX_FILES_FIRST + CX_FILES_HANDLES_MAX;
}

static cx_files_handle *handle_of(cx_fleet_files *files, cx_file file)
{
    size_t at = (size_t)(file - CX_FILES_FIRST);
    cx_lock_enter(&files->lock);
    cx_files_handle *found = at < files->handles.count ? files->handles.items[at] : NULL;
    cx_lock_leave(&files->lock);
    return found;
}

static int keep_handle(cx_fleet_files *files, cx_files_handle *handle, cx_file *out)
{
    size_t at = 0;
    int failed = 0;
    cx_lock_enter(&files->lock);
    while (at < files->handles.count && files->handles.items[at] != NULL)
        at++;
    if (at == CX_FILES_HANDLES_MAX)
        failed = -EMFILE;
    else if (at == files->handles.count && cx_vec_push(&files->handles, cx_files_alloc()) == NULL)
        failed = -ENOMEM;
    if (failed == 0) {
        files->handles.items[at] = handle;
        *out = CX_FILES_FIRST + (cx_file)at;
    }
    cx_lock_leave(&files->lock);
    return failed;
}

static cx_files_handle *take_handle(cx_fleet_files *files, cx_file file)
{
    size_t at = (size_t)(file - CX_FILES_FIRST);
    cx_lock_enter(&files->lock);
    cx_files_handle *found = at < files->handles.count ? files->handles.items[at] : NULL;
    if (found != NULL)
        files->handles.items[at] = NULL;
    cx_lock_leave(&files->lock);
    return found;
}

static void free_handle(cx_files_handle *handle)
{
    cx_buf_done(&handle->bytes);
    cx_alloc_free(cx_files_alloc(), handle, sizeof *handle);
}

/* --- folders ---------------------------------------------------------------------------------- */

/* Names directly in a folder, each once. */
typedef struct listing {
    cx_str folder; /* with "/" at its end, or empty */
    CX_VEC(char *) names;
    bool failed;
} listing;

static char *copy_text(cx_str text)
{
    char *copy = cx_alloc_new(cx_files_alloc(), text.size + 1);
    if (copy != NULL) {
        if (text.size != 0)
            memcpy(copy, text.data, text.size);
        copy[text.size] = 0;
    }
    return copy;
}

static void free_texts(char **items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cx_alloc_free(cx_files_alloc(), items[i], strlen(items[i]) + 1);
}

static void note_name(void *arg, cx_str name)
{
    listing *l = arg;
    if (!cx_str_starts(name, l->folder) || name.size == l->folder.size)
        return;
    cx_str below = {name.data + l->folder.size, name.size - l->folder.size};
    const char *slash = memchr(below.data, '/', below.size);
    if (slash != NULL)
        below.size = (size_t)(slash - below.data);
    char *copy = copy_text(below),
         **slot = copy == NULL ? NULL : cx_vec_push(&l->names, cx_files_alloc());
    if (slot != NULL)
        *slot = copy;
    else if (copy != NULL)
        free_texts(&copy, 1);
    l->failed = l->failed || slot == NULL;
}

static int by_text(const void *a, const void *b)
{
    char *const *left = a, *const *right = b;
    return strcmp(*left, *right);
}

static void listing_done(listing *l)
{
    free_texts(l->names.items, l->names.count);
    cx_vec_done(&l->names, cx_files_alloc());
}

static void list_owned(cx_fleet_files *files, listing *l)
{
    for (size_t i = 0; i < files->names.count; i++)
        if (!files->names.items[i]->private)
            note_name(l, cx_str_z(files->names.items[i]->name));
}

static void list_made(cx_fleet_files *files, listing *l)
{
    for (size_t i = 0; i < files->folders.count; i++)
        note_name(l, cx_str_z(files->folders.items[i]));
}

static void drop_double(listing *l)
{
    size_t kept = 0;
    if (l->names.count > 1)
        qsort(l->names.items, l->names.count, sizeof *l->names.items, by_text);
    for (size_t i = 0; i < l->names.count; i++) {
        if (kept != 0 && strcmp(l->names.items[kept - 1], l->names.items[i]) == 0)
            free_texts(&l->names.items[i], 1);
        else
            l->names.items[kept++] = l->names.items[i];
    }
    l->names.count = kept;
}

/* What lies in the folder `name`. */
static int collect(cx_fleet_files *files, const char *name, listing *l)
{
    char folder[CX_FILES_NAME_SIZE + 1];
    size_t size = strlen(name);
    memcpy(folder, name, size);
    if (size != 0)
        folder[size++] = '/';
    l->folder = cx_str_from(folder, size);
    int failed = cx_files_enter(files, true);
    if (failed != 0)
        return failed;
    list_owned(files, l);
    list_made(files, l);
    cx_files_leave(files);
    /* All that is below log is the owner's. */
    if (strcmp(name, "log") != 0)
        failed = cx_small_list(files, note_name, l);
    drop_double(l);
    return failed == 0 && l->failed ? -ENOMEM : failed;
}

static bool always_there(const char *name)
{
    return name[0] == 0 || strcmp(name, "log") == 0 || strcmp(name, "keys") == 0;
}

static bool was_made(cx_fleet_files *files, const char *name)
{
    bool found = false;
    cx_lock_enter(&files->lock);
    for (size_t i = 0; i < files->folders.count && !found; i++)
        found = strcmp(files->folders.items[i], name) == 0;
    cx_lock_leave(&files->lock);
    return found;
}

/* 0, or -ENOENT where there is no such folder. */
static int find_folder(cx_fleet_files *files, const char *name)
{
    if (always_there(name) || was_made(files, name))
        return 0;
    listing l = {0};
    int failed = collect(files, name, &l);
    if (failed == 0 && l.names.count == 0)
        failed = -ENOENT;
    listing_done(&l);
    return failed;
}

static int make_folder(cx_fleet_files *files, const char *name)
{
    int failed = find_folder(files, name);
    if (failed != -ENOENT)
        return failed == 0 ? -EEXIST : failed;
    if (files->options.read_only)
        return -EROFS;
    char *copy = copy_text(cx_str_z(name));
    if (copy == NULL)
        return -ENOMEM;
    cx_lock_enter(&files->lock);
    char **slot = files->folders.count < CX_FILES_FOLDERS_MAX
                      ? cx_vec_push(&files->folders, cx_files_alloc())
                      : NULL;
    if (slot != NULL)
        *slot = copy;
    cx_lock_leave(&files->lock);
    if (slot == NULL)
        free_texts(&copy, 1);
    return slot == NULL ? -ENOSPC : 0;
}

/* --- opening and closing ---------------------------------------------------------------------- */

static int open_kind(cx_fleet_files *files, const char *name, cx_files_handle *handle)
{
    if (name[0] == 0 || (handle->flags & CX_IO_DIRECTORY) != 0) {
        handle->kind = CX_FILES_FOLDER;
        if ((handle->flags & (CX_IO_WRITE | CX_IO_CREATE)) != 0)
            return -EISDIR;
        return find_folder(files, name);
    }
    handle->kind = cx_files_is_owned(name) ? CX_FILES_OWNED : CX_FILES_SMALL;
    return handle->kind == CX_FILES_OWNED ? cx_files_open_owned(files, name, handle)
                                          : cx_small_open(files, name, handle);
}

static int close_kind(cx_fleet_files *files, cx_files_handle *handle)
{
    if (handle->kind == CX_FILES_SMALL)
        return cx_small_close(files, handle);
    if (handle->kind != CX_FILES_OWNED)
        return 0;
    if (handle->file->private && handle->locked)
        cx_files_give_back(files);
    cx_lock_enter(&files->lock);
    cx_files_drop_handle(files, handle->file);
    cx_files_leave(files);
    return 0;
}

static int io_open(const cx_io *io, const char *path, unsigned flags, cx_file *out)
{
    cx_fleet_files *files = files_of(io);
    char name[CX_FILES_NAME_SIZE];
    const char *rest = inside(files, path);
    if (rest == NULL)
        return files->under->open(files->under, path, flags, out);
    int failed = name_of(rest, name);
    if (failed != 0)
        return failed;
    cx_files_handle *handle = cx_alloc_zeroed(cx_files_alloc(), 1, sizeof *handle);
    if (handle == NULL)
        return -ENOMEM;
    handle->flags = flags;
    cx_buf_init(&handle->bytes, cx_files_alloc());
    failed = open_kind(files, name, handle);
    if (failed == 0) {
        failed = keep_handle(files, handle, out);
        if (failed != 0)
            (void)close_kind(files, handle);
    }
    if (failed != 0)
        free_handle(handle);
    return failed;
}

static int io_close(const cx_io *io, cx_file file)
{
    cx_fleet_files *files = files_of(io);
    if (!is_ours(file))
        return files->under->close(files->under, file);
    cx_files_handle *handle = take_handle(files, file);
    if (handle == NULL)
        return -EBADF;
    int failed = close_kind(files, handle);
    free_handle(handle);
    return failed;
}

/* --- bytes ------------------------------------------------------------------------------------ */

static int64_t read_any(cx_fleet_files *files, cx_file file, void *data, size_t size,
                        const uint64_t *offset)
{
    cx_files_handle *handle = handle_of(files, file);
    if (handle == NULL)
        return -EBADF;
    switch (handle->kind) {
    case CX_FILES_OWNED: return cx_files_read(files, handle, data, size, offset);
    case CX_FILES_SMALL: return cx_small_read(files, handle, data, size, offset);
    default: return -EISDIR;
    }
}

static int64_t write_any(cx_fleet_files *files, cx_file file, const void *data, size_t size,
                         const uint64_t *offset)
{
    cx_files_handle *handle = handle_of(files, file);
    if (handle == NULL)
        return -EBADF;
    switch (handle->kind) {
    case CX_FILES_OWNED: return cx_files_write(files, handle, data, size, offset);
    case CX_FILES_SMALL: return cx_small_write(files, handle, data, size, offset);
    default: return -EBADF;
    }
}

static int64_t io_read(const cx_io *io, cx_file file, void *data, size_t size)
{
    cx_fleet_files *files = files_of(io);
    return is_ours(file) ? read_any(files, file, data, size, NULL)
                         : files->under->read(files->under, file, data, size);
}

static int64_t io_pread(const cx_io *io, cx_file file, void *data, size_t size, uint64_t offset)
{
    cx_fleet_files *files = files_of(io);
    return is_ours(file) ? read_any(files, file, data, size, &offset)
                         : files->under->pread(files->under, file, data, size, offset);
}

static int64_t io_write(const cx_io *io, cx_file file, const void *data, size_t size)
{
    cx_fleet_files *files = files_of(io);
    return is_ours(file) ? write_any(files, file, data, size, NULL)
                         : files->under->write(files->under, file, data, size);
}

static int64_t io_pwrite(const cx_io *io, cx_file file, const void *data, size_t size,
                         uint64_t offset)
{
    cx_fleet_files *files = files_of(io);
    return is_ours(file) ? write_any(files, file, data, size, &offset)
                         : files->under->pwrite(files->under, file, data, size, offset);
}

static int io_sync(const cx_io *io, cx_file file, bool data_only)
{
    cx_fleet_files *files = files_of(io);
    if (!is_ours(file))
        return files->under->sync(files->under, file, data_only);
    cx_files_handle *handle = handle_of(files, file);
    if (handle == NULL)
        return -EBADF;
    switch (handle->kind) {
    case CX_FILES_OWNED: return cx_files_sync(files, handle);
    case CX_FILES_SMALL: return cx_small_sync(files, handle);
    default: return 0; /* P3 */
    }
}

static void io_start_sync(const cx_io *io, cx_file file, uint64_t offset, uint64_t size)
{
    const cx_fleet_files *files = files_of(io);
    if (!is_ours(file))
        files->under->start_sync(files->under, file, offset, size);
}

static void io_forget(const cx_io *io, cx_file file)
{
    cx_fleet_files *files = files_of(io);
    if (!is_ours(file)) {
        files->under->forget(files->under, file);
        return;
    }
    const cx_files_handle *handle = handle_of(files, file);
    if (handle == NULL || handle->kind != CX_FILES_OWNED)
        return;
    cx_lock_enter(&files->lock);
    cx_files_chunks_forget(files, handle->file);
    cx_lock_leave(&files->lock);
}

static int resize_any(cx_fleet_files *files, cx_file file, uint64_t size, bool grow_only)
{
    cx_files_handle *handle = handle_of(files, file);
    if (handle == NULL)
        return -EBADF;
    switch (handle->kind) {
    case CX_FILES_OWNED: return cx_files_resize(files, handle, size, grow_only);
    case CX_FILES_SMALL: return cx_small_resize(files, handle, size, grow_only);
    default: return -EBADF;
    }
}

static int io_truncate(const cx_io *io, cx_file file, uint64_t size)
{
    cx_fleet_files *files = files_of(io);
    return is_ours(file) ? resize_any(files, file, size, false)
                         : files->under->truncate(files->under, file, size);
}

static int io_allocate(const cx_io *io, cx_file file, uint64_t size)
{
    cx_fleet_files *files = files_of(io);
    return is_ours(file) ? resize_any(files, file, size, true)
                         : files->under->allocate(files->under, file, size);
}

static int io_size(const cx_io *io, cx_file file, uint64_t *out, bool *out_regular)
{
    cx_fleet_files *files = files_of(io);
    if (!is_ours(file))
        return files->under->size(files->under, file, out, out_regular);
    const cx_files_handle *handle = handle_of(files, file);
    if (handle == NULL)
        return -EBADF;
    int failed = 0;
    if (handle->kind == CX_FILES_OWNED)
        failed = cx_files_enter(files, !handle->file->private);
    else
        cx_lock_enter(&files->lock);
    if (failed == 0 && handle->kind == CX_FILES_OWNED) {
        failed = cx_files_is_fresh(files, handle);
        if (failed != 0)
            cx_files_leave(files);
    }
    if (failed != 0)
        return failed;
    *out_regular = handle->kind != CX_FILES_FOLDER;
    if (handle->kind == CX_FILES_OWNED)
        *out = handle->file->private ? handle->file->bytes.size : handle->file->size;
    else
        *out = handle->bytes.size;
    cx_files_leave(files);
    return 0;
}

/* --- names ------------------------------------------------------------------------------------ */

static int io_rename(const cx_io *io, const char *from, const char *to)
{
    cx_fleet_files *files = files_of(io);
    char old_name[CX_FILES_NAME_SIZE], new_name[CX_FILES_NAME_SIZE];
    const char *old_rest = inside(files, from), *new_rest = inside(files, to);
    if (old_rest == NULL && new_rest == NULL)
        return files->under->rename(files->under, from, to);
    if (old_rest == NULL || new_rest == NULL)
        return -EXDEV;
    int failed = name_of(old_rest, old_name);
    if (failed == 0)
        failed = name_of(new_rest, new_name);
    if (failed != 0)
        return failed;
    if (old_name[0] == 0 || new_name[0] == 0)
        return -EBUSY;
    bool owned = cx_files_is_owned(old_name);
    if (owned != cx_files_is_owned(new_name))
        return -EXDEV;
    return owned ? cx_files_rename(files, old_name, new_name)
                 : cx_small_rename(files, old_name, new_name);
}

static int io_unlink(const cx_io *io, const char *path)
{
    cx_fleet_files *files = files_of(io);
    char name[CX_FILES_NAME_SIZE];
    const char *rest = inside(files, path);
    if (rest == NULL)
        return files->under->unlink(files->under, path);
    int failed = name_of(rest, name);
    if (failed != 0 || name[0] == 0)
        return failed != 0 ? failed : -EISDIR;
    return cx_files_is_owned(name) ? cx_files_remove(files, name) : cx_small_remove(files, name);
}

static int io_mkdir(const cx_io *io, const char *path)
{
    cx_fleet_files *files = files_of(io);
    char name[CX_FILES_NAME_SIZE];
    const char *rest = inside(files, path);
    if (rest == NULL)
        return files->under->mkdir(files->under, path);
    int failed = name_of(rest, name);
    return failed != 0 ? failed : make_folder(files, name);
}

static int io_list(const cx_io *io, const char *path, cx_io_name *each, void *arg)
{
    cx_fleet_files *files = files_of(io);
    char name[CX_FILES_NAME_SIZE];
    const char *rest = inside(files, path);
    if (rest == NULL)
        return files->under->list(files->under, path, each, arg);
    listing l = {0};
    int failed = name_of(rest, name);
    if (failed == 0)
        failed = collect(files, name, &l);
    if (failed == 0 && l.names.count == 0 && !always_there(name) && !was_made(files, name))
        failed = -ENOENT;
    for (size_t i = 0; failed == 0 && i < l.names.count; i++)
        if (!each(arg, l.names.items[i]))
            break;
    listing_done(&l);
    return failed;
}

/* --- locks ------------------------------------------------------------------------------------ */

/* Of a file of the owner that this process alone can have: whether another handle has it locked. */
static bool locked_by_other(cx_fleet_files *files, const cx_files_handle *handle)
{
    bool found = false;
    for (size_t i = 0; i < files->handles.count && !found; i++) {
        const cx_files_handle *other = files->handles.items[i];
        found = other != NULL && other != handle && other->kind == CX_FILES_OWNED &&
                other->file == handle->file && other->locked;
    }
    return found;
}

static int lock_owned(cx_fleet_files *files, cx_files_handle *handle)
{
    if (handle->file->private)
        return cx_files_take(files, handle);
    int failed = cx_files_enter(files, true);
    if (failed != 0)
        return failed;
    failed = locked_by_other(files, handle) ? -EAGAIN : cx_files_may_write(files);
    if (failed == 0)
        handle->locked = true;
    cx_files_leave(files);
    return failed;
}

static int io_lock(const cx_io *io, cx_file file)
{
    cx_fleet_files *files = files_of(io);
    if (!is_ours(file))
        return files->under->lock(files->under, file);
    cx_files_handle *handle = handle_of(files, file);
    if (handle == NULL)
        return -EBADF;
    switch (handle->kind) {
    case CX_FILES_OWNED: return lock_owned(files, handle);
    case CX_FILES_SMALL: return cx_small_lock(files, handle);
    default: return -EBADF;
    }
}

static int io_locked(const cx_io *io, cx_file file, bool *out_locked)
{
    cx_fleet_files *files = files_of(io);
    if (!is_ours(file))
        return files->under->locked(files->under, file, out_locked);
    const cx_files_handle *handle = handle_of(files, file);
    if (handle == NULL || handle->kind == CX_FILES_FOLDER)
        return -EBADF;
    if (handle->kind == CX_FILES_SMALL)
        return cx_small_locked(files, handle, out_locked);
    int failed = cx_files_enter(files, !handle->file->private);
    if (failed != 0)
        return failed;
    *out_locked = locked_by_other(files, handle);
    cx_files_leave(files);
    return 0;
}

static int io_write_began(const cx_io *io, cx_file file, uint64_t offset, bool *out_began)
{
    cx_fleet_files *files = files_of(io);
    const cx_files_handle *handle = is_ours(file) ? handle_of(files, file) : NULL;
    return handle == NULL || handle->kind != CX_FILES_OWNED
               ? -ENOTSUP
               : cx_files_write_began(files, handle, offset, out_began);
}

/* --- the rest --------------------------------------------------------------------------------- */

static uint64_t io_process_id(const cx_io *io)
{
    const cx_fleet_files *files = files_of(io);
    return files->under->process_id(files->under);
}

static uint64_t io_wall_ns(const cx_io *io)
{
    const cx_fleet_files *files = files_of(io);
    return files->under->wall_ns(files->under);
}

static uint64_t io_monotonic_ns(const cx_io *io)
{
    const cx_fleet_files *files = files_of(io);
    return files->under->monotonic_ns(files->under);
}

static int io_random(const cx_io *io, void *data, size_t size)
{
    const cx_fleet_files *files = files_of(io);
    return files->under->random(files->under, data, size);
}

void cx_files_io_init(cx_fleet_files *files)
{
    files->io = (cx_io){
        .open = io_open,
        .close = io_close,
        .read = io_read,
        .pread = io_pread,
        .write = io_write,
        .pwrite = io_pwrite,
        .sync = io_sync,
        .start_sync = io_start_sync,
        .forget = io_forget,
        .truncate = io_truncate,
        .size = io_size,
        .rename = io_rename,
        .unlink = io_unlink,
        .mkdir = io_mkdir,
        .list = io_list,
        .allocate = io_allocate,
        .lock = io_lock,
        .locked = io_locked,
        .write_began = io_write_began,
        .process_id = io_process_id,
        .wall_ns = io_wall_ns,
        .monotonic_ns = io_monotonic_ns,
        .random = io_random,
        .ctx = files,
    };
}

void cx_files_io_done(cx_fleet_files *files)
{
    for (size_t i = 0; i < files->handles.count; i++) {
        cx_files_handle *handle = files->handles.items[i];
        if (handle != NULL && handle->kind == CX_FILES_OWNED)
            cx_files_drop_handle(files, handle->file);
        if (handle != NULL)
            free_handle(handle);
    }
    cx_vec_done(&files->handles, cx_files_alloc());
    free_texts(files->folders.items, files->folders.count);
    cx_vec_done(&files->folders, cx_files_alloc());
}
