/*
 * files_small.c - small files (files.h, P4): read whole when they are opened, written whole.
 */
#include <errno.h>

#include "fleet/files_internal.h"

/* --- opening and closing ---------------------------------------------------------------------- */

/* With writer_lock held. */
static int read_whole(cx_fleet_files *files, const char *name, cx_buf *out)
{
    cx_err err = {0};
    cx_status status = cx_fleet_small_read(files->writer, files->number, cx_str_z(name), out, &err);
    if (!cx_failed(status))
        status = cx_buf_check(out, &err);
    if (!cx_failed(status) && out->size > CX_FLEET_SMALL_MAX)
        return -EFBIG;
    if (!cx_failed(status))
        return 0;
    cx_lock_enter(&files->lock);
    int failed = cx_files_errno(files, &err);
    cx_lock_leave(&files->lock);
    return failed;
}

/* With writer_lock held. */
static int write_whole(cx_fleet_files *files, const char *name, cx_bytes bytes)
{
    cx_err err = {0};
    if (files->options.read_only)
        return -EROFS;
    cx_status status =
        cx_fleet_small_write(files->writer, files->number, cx_str_z(name), bytes, &err);
    if (!cx_failed(status))
        return 0;
    cx_lock_enter(&files->lock);
    int failed = cx_files_errno(files, &err);
    cx_lock_leave(&files->lock);
    return failed;
}

/* With writer_lock held: 0; -EAGAIN where another process has it. */
static int lock_name(cx_fleet_files *files, const char *name)
{
    cx_err err = {0};
    bool locked = false;
    cx_status status =
        cx_fleet_small_lock(files->writer, files->number, cx_str_z(name), &locked, &err);
    if (!cx_failed(status))
        return locked ? 0 : -EAGAIN;
    cx_lock_enter(&files->lock);
    int failed = cx_files_errno(files, &err);
    cx_lock_leave(&files->lock);
    return failed == -EAGAIN ? -EIO : failed;
}

static void unlock_name(cx_fleet_files *files, const char *name)
{
    cx_status ignored = cx_fleet_small_unlock(files->writer, files->number, cx_str_z(name), NULL);
    (void)ignored; /* it ends with the connection */
}

/* With writer_lock held: only one process makes it. */
static int make_exclusive(cx_fleet_files *files, cx_files_handle *handle)
{
    int failed = lock_name(files, handle->name);
    if (failed != 0)
        return failed == -EAGAIN ? -EEXIST : failed;
    failed = read_whole(files, handle->name, &handle->bytes);
    if (failed == 0)
        failed = -EEXIST;
    else if (failed == -ENOENT)
        failed = write_whole(files, handle->name, (cx_bytes){NULL, 0});
    unlock_name(files, handle->name);
    return failed;
}

/* With writer_lock held. */
static int open_whole(cx_fleet_files *files, cx_files_handle *handle)
{
    unsigned flags = handle->flags;
    if ((flags & CX_IO_CREATE) != 0 && (flags & CX_IO_EXCLUSIVE) != 0)
        return make_exclusive(files, handle);
    int failed = read_whole(files, handle->name, &handle->bytes);
    if (failed == -ENOENT && (flags & CX_IO_CREATE) != 0) {
        handle->dirty = true;
        return 0;
    }
    if (failed == 0 && (flags & CX_IO_TRUNCATE) != 0) {
        cx_buf_clear(&handle->bytes);
        handle->dirty = true;
    }
    return failed;
}

int cx_small_open(cx_fleet_files *files, const char *name, cx_files_handle *handle)
{
    if (files->options.read_only && (handle->flags & CX_IO_WRITE) != 0)
        return -EROFS;
    memcpy(handle->name, name, strlen(name) + 1);
    cx_lock_enter(&files->writer_lock);
    int failed = open_whole(files, handle);
    cx_lock_leave(&files->writer_lock);
    return failed;
}

/* With writer_lock held: writes what was changed. */
static int flush(cx_fleet_files *files, cx_files_handle *handle)
{
    cx_buf copy;
    cx_buf_init(&copy, cx_files_alloc());
    cx_lock_enter(&files->lock);
    bool needed = handle->dirty && !handle->orphan;
    uint64_t version = handle->version;
    if (needed)
        cx_buf_add(&copy, handle->bytes.data, handle->bytes.size);
    cx_lock_leave(&files->lock);
    int failed = copy.failed ? -ENOMEM : 0;
    if (needed && failed == 0) {
        failed = write_whole(files, handle->name, cx_buf_bytes(&copy));
        cx_lock_enter(&files->lock);
        if (failed == 0 && handle->version == version)
            handle->dirty = false;
        cx_lock_leave(&files->lock);
    }
    cx_buf_done(&copy);
    return failed;
}

int cx_small_sync(cx_fleet_files *files, cx_files_handle *handle)
{
    cx_lock_enter(&files->writer_lock);
    int failed = flush(files, handle);
    cx_lock_leave(&files->writer_lock);
    return failed;
}

int cx_small_close(cx_fleet_files *files, cx_files_handle *handle)
{
    cx_lock_enter(&files->writer_lock);
    int failed = flush(files, handle);
    if (handle->locked)
        unlock_name(files, handle->name);
    cx_lock_leave(&files->writer_lock);
    return failed;
}

/* --- bytes ------------------------------------------------------------------------------------ */

int64_t cx_small_read(cx_fleet_files *files, cx_files_handle *handle, void *data, size_t size,
                      const uint64_t *offset)
{
    if ((handle->flags & CX_IO_WRITE) != 0 && (handle->flags & CX_IO_READ) == 0)
        return -EBADF;
    cx_lock_enter(&files->lock);
    uint64_t at = offset != NULL ? *offset : handle->at;
    size_t there = at < handle->bytes.size ? handle->bytes.size - (size_t)at : 0;
    size_t step = size < there ? size : there;
    if (step != 0)
        memcpy(data, handle->bytes.data + at, step);
    if (offset == NULL)
        handle->at = at + step;
    cx_lock_leave(&files->lock);
    return (int64_t)step;
}

/* With `lock` held. */
static int set_size(cx_files_handle *handle, uint64_t size)
{
    cx_buf *bytes = &handle->bytes;
    if (size > CX_FLEET_SMALL_MAX)
        return -EFBIG;
    if (size > bytes->size) {
        size_t more = (size_t)size - bytes->size;
        uint8_t *room = cx_buf_reserve(bytes, more);
        if (room == NULL) {
            bytes->failed = false; /* what was there is there */
            return -ENOMEM;
        }
        memset(room, 0, more);
        cx_buf_advance(bytes, more);
    }
    bytes->size = (size_t)size;
    handle->dirty = true;
    handle->version++;
    return 0;
}

int64_t cx_small_write(cx_fleet_files *files, cx_files_handle *handle, const void *data,
                       size_t size, const uint64_t *offset)
{
    if ((handle->flags & CX_IO_WRITE) == 0)
        return -EBADF;
    cx_lock_enter(&files->lock);
    uint64_t at = offset != NULL                 ? *offset
                  : handle->flags & CX_IO_APPEND ? handle->bytes.size
                                                 : handle->at;
    int failed = at > CX_FLEET_SMALL_MAX || size > CX_FLEET_SMALL_MAX - at ? -EFBIG : 0;
    if (failed == 0 && size != 0)
        failed = set_size(handle, at + size > handle->bytes.size ? at + size : handle->bytes.size);
    if (failed == 0 && size != 0)
        memcpy(handle->bytes.data + at, data, size);
    if (failed == 0 && offset == NULL)
        handle->at = at + size;
    cx_lock_leave(&files->lock);
    return failed != 0 ? failed : (int64_t)size;
}

int cx_small_resize(cx_fleet_files *files, cx_files_handle *handle, uint64_t size, bool grow_only)
{
    if ((handle->flags & CX_IO_WRITE) == 0)
        return -EBADF;
    cx_lock_enter(&files->lock);
    int failed = grow_only && size <= handle->bytes.size ? 0 : set_size(handle, size);
    cx_lock_leave(&files->lock);
    return failed;
}

/* --- locks ------------------------------------------------------------------------------------ */

/* Whether another handle of this process has it: to the server both are one. */
static bool locked_here(cx_fleet_files *files, const cx_files_handle *handle)
{
    bool found = false;
    cx_lock_enter(&files->lock);
    for (size_t i = 0; i < files->handles.count; i++) {
        const cx_files_handle *other = files->handles.items[i];
        found = found || (other != NULL && other != handle && other->kind == CX_FILES_SMALL &&
                          other->locked && strcmp(other->name, handle->name) == 0);
    }
    cx_lock_leave(&files->lock);
    return found;
}

int cx_small_lock(cx_fleet_files *files, cx_files_handle *handle)
{
    int failed = 0;
    cx_lock_enter(&files->writer_lock);
    if (!handle->locked)
        failed = locked_here(files, handle) ? -EAGAIN : lock_name(files, handle->name);
    if (failed == 0) {
        cx_lock_enter(&files->lock);
        handle->locked = true;
        cx_lock_leave(&files->lock);
    }
    cx_lock_leave(&files->writer_lock);
    return failed;
}

int cx_small_locked(cx_fleet_files *files, const cx_files_handle *handle, bool *out_locked)
{
    int failed = 0;
    cx_lock_enter(&files->writer_lock);
    *out_locked = locked_here(files, handle);
    if (!*out_locked && !handle->locked) {
        failed = lock_name(files, handle->name);
        if (failed == 0)
            unlock_name(files, handle->name);
        *out_locked = failed == -EAGAIN;
        failed = *out_locked ? 0 : failed;
    }
    cx_lock_leave(&files->writer_lock);
    return failed;
}

/* --- names ------------------------------------------------------------------------------------ */

/* With writer_lock held: what is open as `name` is written, so that it can be renamed. */
static int flush_named(cx_fleet_files *files, const char *name)
{
    int failed = 0;
    for (size_t i = 0; failed == 0; i++) {
        cx_lock_enter(&files->lock);
        bool more = i < files->handles.count;
        cx_files_handle *handle = more ? files->handles.items[i] : NULL;
        bool named = handle != NULL && handle->kind == CX_FILES_SMALL && !handle->orphan &&
                     strcmp(handle->name, name) == 0;
        cx_lock_leave(&files->lock);
        if (!more)
            break;
        if (named)
            failed = flush(files, handle);
    }
    return failed;
}

/* What is open as `name` has no name any more, or, if `to` is not NULL, that one. */
static void move_handles(cx_fleet_files *files, const char *name, const char *to)
{
    cx_lock_enter(&files->lock);
    for (size_t i = 0; i < files->handles.count; i++) {
        cx_files_handle *handle = files->handles.items[i];
        if (handle == NULL || handle->kind != CX_FILES_SMALL || handle->orphan ||
            strcmp(handle->name, name) != 0)
            continue;
        if (to == NULL)
            handle->orphan = true;
        else if (!handle->locked) /* a lock stays that of the name that was locked */
            memcpy(handle->name, to, strlen(to) + 1);
    }
    cx_lock_leave(&files->lock);
}

int cx_small_rename(cx_fleet_files *files, const char *from, const char *to)
{
    cx_err err = {0};
    cx_buf bytes;
    if (files->options.read_only)
        return -EROFS;
    if (strcmp(from, to) == 0)
        return 0;
    cx_buf_init(&bytes, cx_files_alloc());
    cx_lock_enter(&files->writer_lock);
    int failed = flush_named(files, from);
    if (failed == 0) /* the rename itself does not say */
        failed = read_whole(files, from, &bytes);
    cx_buf_done(&bytes);
    if (failed == 0 && cx_failed(cx_fleet_small_rename(files->writer, files->number, cx_str_z(from),
                                                       cx_str_z(to), &err))) {
        cx_lock_enter(&files->lock);
        failed = cx_files_errno(files, &err);
        cx_lock_leave(&files->lock);
    }
    if (failed == 0) {
        move_handles(files, to, NULL);
        move_handles(files, from, to);
    }
    cx_lock_leave(&files->writer_lock);
    return failed;
}

int cx_small_remove(cx_fleet_files *files, const char *name)
{
    cx_err err = {0};
    cx_buf bytes;
    if (files->options.read_only)
        return -EROFS;
    cx_buf_init(&bytes, cx_files_alloc());
    cx_lock_enter(&files->writer_lock);
    int failed = flush_named(files, name);
    if (failed == 0)
        failed = read_whole(files, name, &bytes);
    if (failed == 0 &&
        cx_failed(cx_fleet_small_remove(files->writer, files->number, cx_str_z(name), &err))) {
        cx_lock_enter(&files->lock);
        failed = cx_files_errno(files, &err);
        cx_lock_leave(&files->lock);
    }
    if (failed == 0)
        move_handles(files, name, NULL);
    cx_lock_leave(&files->writer_lock);
    cx_buf_done(&bytes);
    return failed;
}

typedef struct lister {
    void (*each)(void *arg, cx_str name);
    void *arg;
} lister;

static cx_status pass_name(void *arg, cx_str name, uint64_t size, cx_err *err)
{
    const lister *l = arg;
    (void)size;
    (void)err;
    l->each(l->arg, name);
    return CX_SUCCESS;
}

int cx_small_list(cx_fleet_files *files, void (*each)(void *arg, cx_str name), void *arg)
{
    cx_err err = {0};
    lister l = {each, arg};
    cx_lock_enter(&files->writer_lock);
    cx_status status = cx_fleet_small_list(files->writer, files->number, pass_name, &l, &err);
    cx_lock_leave(&files->writer_lock);
    if (!cx_failed(status))
        return 0;
    cx_lock_enter(&files->lock);
    int failed = cx_files_errno(files, &err);
    cx_lock_leave(&files->lock);
    return failed;
}
