/*
 * files_names.c - names of the owner's files.  All of them are in memory, by name.
 */
#include <errno.h>
#include <stdlib.h>

#include "fleet/files_internal.h"

static const char lock_name[] = "log/lock";

bool cx_files_is_owned(const char *name)
{
    cx_str text = cx_str_z(name);
    return cx_str_starts(text, CX_STR("log/")) || cx_str_ends(text, CX_STR(".db")) ||
           cx_str_ends(text, CX_STR(".db.new"));
}

/* --- the list --------------------------------------------------------------------------------- */

/* Where a name is, or would be. */
static size_t place_of(const cx_fleet_files *files, const char *name, bool *out_there)
{
    size_t from = 0, to = files->names.count;
    *out_there = false;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = strcmp(name, files->names.items[middle]->name);
        if (order == 0) {
            *out_there = true;
            return middle;
        }
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

cx_files_file *cx_files_find(const cx_fleet_files *files, const char *name)
{
    bool there;
    size_t at = place_of(files, name, &there);
    return there ? files->names.items[at] : NULL;
}

/* Room for one more was reserved. */
static void insert(cx_fleet_files *files, cx_files_file *file)
{
    bool there;
    size_t at = place_of(files, file->name, &there);
    CX_ASSERT(!there && files->names.count < files->names.capacity);
    memmove(&files->names.items[at + 1], &files->names.items[at],
            (files->names.count - at) * sizeof *files->names.items);
    files->names.items[at] = file;
    files->names.count++;
}

static void take_out(cx_fleet_files *files, const cx_files_file *file)
{
    bool there;
    size_t at = place_of(files, file->name, &there);
    CX_ASSERT(there && files->names.items[at] == file);
    files->names.count--;
    memmove(&files->names.items[at], &files->names.items[at + 1],
            (files->names.count - at) * sizeof *files->names.items);
}

static cx_files_file *new_file(const char *name, size_t size)
{
    cx_files_file *file = cx_alloc_zeroed(cx_files_alloc(), 1, sizeof *file);
    if (file == NULL)
        return NULL;
    memcpy(file->name, name, size);
    file->pages = !cx_str_starts(cx_str_z(file->name), CX_STR("log/"));
    cx_buf_init(&file->bytes, cx_files_alloc());
    return file;
}

static void free_file(cx_fleet_files *files, cx_files_file *file)
{
    cx_files_chunks_drop(files, file, 0);
    cx_buf_done(&file->bytes);
    cx_alloc_free(cx_files_alloc(), file, sizeof *file);
}

/* A database that could not be written is again as it was synced, once it is closed. */
static void forget_changes(cx_fleet_files *files, cx_files_file *file)
{
    cx_files_chunks_drop(files, file, 0);
    file->size = file->low = file->committed;
    file->end = file->data_end = file->synced_end;
    file->failed = false;
}

void cx_files_drop_handle(cx_fleet_files *files, cx_files_file *file)
{
    if (--file->handles != 0)
        return;
    if (file->pages && file->failed && !file->removed)
        forget_changes(files, file);
    if (!file->removed && !file->private)
        return;
    if (!file->removed)
        take_out(files, file);
    free_file(files, file);
}

/* A file that is not in `names` any more stays while it is open.  The lock may be left
 * meanwhile. */
static void hide(cx_fleet_files *files, cx_files_file *file)
{
    file->removed = true;
    file->handles++;
    cx_files_wait_loads(files, file);
    cx_files_chunks_drop(files, file, 0);
    cx_files_drop_handle(files, file);
}

/* --- seeing ----------------------------------------------------------------------------------- */

typedef CX_VEC(cx_files_file *) file_list;

static cx_status note_file(void *arg, const cx_fleet_file *seen, cx_err *err)
{
    file_list *list = arg;
    if (seen->name.size == 0 || seen->name.size > CX_FLEET_FILE_NAME_MAX ||
        memchr(seen->name.data, 0, seen->name.size) != NULL || seen->size > CX_FILES_SIZE_MAX ||
        seen->end > CX_FILES_SIZE_MAX + CX_FLEET_CHUNK)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "file %llu of the part has a name or a size that no file has",
                          (unsigned long long)seen->file);
    if (list->count == CX_FILES_COUNT_MAX)
        return cx_fail(err, CX_E_LIMIT, "the part has more than %u files", CX_FILES_COUNT_MAX);
    cx_files_file *file = new_file(seen->name.data, seen->name.size);
    cx_files_file **slot = file == NULL ? NULL : cx_vec_push(list, cx_files_alloc());
    if (slot == NULL) {
        cx_alloc_free(cx_files_alloc(), file, file == NULL ? 0 : sizeof *file);
        return cx_fail_nomem(err);
    }
    file->number = seen->file;
    file->pages = seen->derived;
    file->size = file->committed = file->low = seen->size;
    file->end = file->data_end = file->synced_end = seen->end;
    *slot = file;
    return CX_SUCCESS;
}

static int by_name(const void *a, const void *b)
{
    const cx_files_file *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

/* A file that was open before the lease changed hands is the one with its number. */
static void keep_open_one(cx_fleet_files *files, cx_files_file *old, file_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        cx_files_file *seen = list->items[i];
        if (seen->number != old->number)
            continue;
        memcpy(old->name, seen->name, sizeof old->name);
        old->size = old->committed = old->low = seen->size;
        old->end = old->data_end = old->synced_end = seen->end;
        old->pages = seen->pages;
        list->items[i] = old;
        free_file(files, seen);
        return;
    }
    hide(files, old);
}

/* With `lock` held.  What is in `names` are files that are open, and private ones. */
static bool merge(cx_fleet_files *files, file_list *list)
{
    if (!cx_vec_reserve(list, list->count + files->names.count, cx_files_alloc()))
        return false;
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i]->number > files->top)
            files->top = list->items[i]->number;
    size_t own = 0;
    for (size_t i = 0; i < files->names.count; i++) {
        cx_files_file *old = files->names.items[i];
        if (old->private)
            files->names.items[own++] = old;
        else
            keep_open_one(files, old, list);
    }
    for (size_t i = 0; i < own; i++)
        list->items[list->count++] = files->names.items[i];
    if (list->count != 0)
        qsort(list->items, list->count, sizeof *list->items, by_name);
    file_list before = {files->names.items, files->names.count, files->names.capacity};
    files->names.items = list->items;
    files->names.count = list->count;
    files->names.capacity = list->capacity;
    *list = before;
    list->count = 0;
    files->seen = true;
    return true;
}

cx_status cx_files_see(cx_fleet_files *files, cx_fleet *fleet, cx_err *err)
{
    file_list list = {0};
    cx_status status = cx_fleet_list_files(fleet, files->number, note_file, &list, err);
    if (!cx_failed(status))
        status = cx_files_trail_load(files, fleet, err);
    cx_lock_enter(&files->lock);
    if (!cx_failed(status) && !files->seen && !merge(files, &list))
        status = cx_fail_nomem(err);
    for (size_t i = 0; i < list.count; i++)
        free_file(files, list.items[i]);
    cx_lock_leave(&files->lock);
    cx_vec_done(&list, cx_files_alloc());
    return status;
}

int cx_files_see_once(cx_fleet_files *files)
{
    cx_err err = {0};
    if (files->seen)
        return 0;
    files->loads++; /* M4 */
    cx_lock_leave(&files->lock);
    cx_lock_enter(&files->reader_lock);
    cx_lock_enter(&files->lock);
    bool seen = files->seen;
    cx_lock_leave(&files->lock);
    cx_status status = seen ? CX_SUCCESS : cx_files_open_reader(files, false, &err);
    if (!seen && !cx_failed(status))
        status = cx_files_see(files, files->reader, &err);
    cx_lock_leave(&files->reader_lock);
    cx_lock_enter(&files->lock);
    files->loads--;
    cx_lock_wake(&files->lock);
    return cx_failed(status) ? cx_files_errno(files, &err) : 0;
}

void cx_files_forget_names(cx_fleet_files *files)
{
    size_t left = 0;
    files->seen = false;
    for (size_t i = 0; i < files->names.count; i++) {
        cx_files_file *file = files->names.items[i];
        cx_files_chunks_drop(files, file, 0);
        if (file->handles == 0)
            free_file(files, file);
        else
            files->names.items[left++] = file;
    }
    files->names.count = left;
}

/* --- opening ---------------------------------------------------------------------------------- */

static int add_private(cx_fleet_files *files, const char *name, cx_files_file **out)
{
    if (!cx_vec_reserve(&files->names, files->names.count + 1, cx_files_alloc()))
        return -ENOMEM;
    cx_files_file *file = new_file(name, strlen(name));
    if (file == NULL)
        return -ENOMEM;
    file->private = true;
    insert(files, file);
    *out = file;
    return 0;
}

/* With writer_lock and `lock` held; the latter is left meanwhile. */
static int make_file(cx_fleet_files *files, const char *name, cx_files_file **out)
{
    int failed = cx_files_may_write(files);
    if (failed != 0)
        return failed;
    if (files->names.count >= CX_FILES_COUNT_MAX)
        return -ENFILE;
    if (!cx_vec_reserve(&files->names, files->names.count + 1, cx_files_alloc()))
        return -ENOMEM;
    cx_files_file *file = new_file(name, strlen(name));
    if (file == NULL)
        return -ENOMEM;
    /* A number that no file had: the part's commits are counted, and each makes one file at
     * most. */
    file->number = (files->top > files->part.next ? files->top : files->part.next) + 1;
    const cx_fleet_file_change made = {.op = CX_FLEET_MAKE,
                                       .file = file->number,
                                       .derived = file->pages,
                                       .name = cx_str_z(file->name)};
    cx_lock_leave(&files->lock);
    failed = cx_files_commit(files, &(cx_fleet_change){.files = &made, .file_count = 1}, 0);
    cx_lock_enter(&files->lock);
    if (failed == 0) {
        files->top = file->number;
        insert(files, file);
        *out = file;
    } else {
        free_file(files, file);
    }
    return failed;
}

/* With `lock` held: the file of that name, or *out NULL where it is to be made. */
static int look_for(const cx_fleet_files *files, const char *name, unsigned flags,
                    cx_files_file **out)
{
    *out = cx_files_find(files, name);
    if (*out == NULL)
        return flags & CX_IO_CREATE ? 0 : -ENOENT;
    if ((flags & CX_IO_CREATE) != 0 && (flags & CX_IO_EXCLUSIVE) != 0)
        return -EEXIST;
    return 0;
}

/* Who only reads sees what the owner left in it; who takes the lease sees it then. */
static int open_private(cx_fleet_files *files, const char *name, cx_files_handle *handle)
{
    cx_files_file *file;
    bool make = (handle->flags & CX_IO_CREATE) != 0;
    int failed = cx_files_enter(files, !make);
    if (failed != 0)
        return failed;
    failed = look_for(files, name, handle->flags, &file);
    bool left = failed == -ENOENT && files->trail.there && !files->owned;
    if ((failed == 0 && file == NULL) || left)
        failed = add_private(files, name, &file);
    if (failed == 0 && left)
        cx_files_trail_fill(files, file);
    if (failed == 0) {
        handle->file = file;
        handle->turn = files->turn;
        file->handles++;
    }
    cx_files_leave(files);
    return failed;
}

/* *out_make: it is to be made, with writer_lock. */
static int open_seen(cx_fleet_files *files, const char *name, cx_files_handle *handle, bool make,
                     bool *out_make)
{
    cx_files_file *file;
    int failed = cx_files_enter(files, true);
    if (failed != 0)
        return failed;
    failed = look_for(files, name, handle->flags, &file);
    if (failed == 0 && (handle->flags & CX_IO_WRITE) != 0)
        failed = cx_files_may_write(files);
    *out_make = failed == 0 && file == NULL;
    if (*out_make && make)
        failed = make_file(files, name, &file);
    if (failed == 0 && file != NULL) {
        handle->file = file;
        handle->turn = files->turn;
        file->handles++;
    }
    cx_files_leave(files);
    return failed;
}

int cx_files_open_owned(cx_fleet_files *files, const char *name, cx_files_handle *handle)
{
    bool make = false;
    if (strcmp(name, lock_name) == 0)
        return open_private(files, name, handle);
    int failed = open_seen(files, name, handle, false, &make);
    if (failed == 0 && make) {
        cx_lock_enter(&files->writer_lock);
        failed = open_seen(files, name, handle, true, &make);
        cx_lock_leave(&files->writer_lock);
    }
    if (failed != 0 || (handle->flags & CX_IO_TRUNCATE) == 0)
        return failed;
    failed = cx_files_resize(files, handle, 0, false);
    if (failed != 0) {
        cx_lock_enter(&files->lock);
        cx_files_drop_handle(files, handle->file);
        cx_files_leave(files);
    }
    return failed;
}

/* --- removing and renaming -------------------------------------------------------------------- */

/* With writer_lock and `lock` held; the latter is left meanwhile. */
static int change_name(cx_fleet_files *files, const cx_fleet_file_change *change)
{
    cx_lock_leave(&files->lock);
    int failed = cx_files_commit(files, &(cx_fleet_change){.files = change, .file_count = 1}, 0);
    cx_lock_enter(&files->lock);
    return failed;
}

static int remove_file(cx_fleet_files *files, const char *name)
{
    cx_files_file *file = cx_files_find(files, name);
    if (file == NULL)
        return -ENOENT;
    int failed = file->private ? 0 : cx_files_may_write(files);
    if (failed == 0 && !file->private)
        failed = change_name(files,
                             &(cx_fleet_file_change){.op = CX_FLEET_REMOVE, .file = file->number});
    if (failed == 0) {
        take_out(files, file);
        hide(files, file);
    }
    return failed;
}

int cx_files_remove(cx_fleet_files *files, const char *name)
{
    cx_lock_enter(&files->writer_lock);
    int failed = cx_files_enter(files, true);
    if (failed == 0) {
        failed = remove_file(files, name);
        cx_files_leave(files);
    }
    cx_lock_leave(&files->writer_lock);
    return failed;
}

static int rename_file(cx_fleet_files *files, const char *from, const char *to)
{
    cx_files_file *file = cx_files_find(files, from), *there = cx_files_find(files, to);
    if (file == NULL)
        return -ENOENT;
    if (file == there)
        return 0;
    if (file->private || strcmp(to, lock_name) == 0)
        return -EXDEV;
    int failed = cx_files_may_write(files);
    if (failed == 0)
        failed = change_name(files, &(cx_fleet_file_change){.op = CX_FLEET_RENAME,
                                                            .file = file->number,
                                                            .name = cx_str_z(to)});
    if (failed != 0)
        return failed;
    take_out(files, file);
    if (there != NULL)
        take_out(files, there);
    memset(file->name, 0, sizeof file->name);
    memcpy(file->name, to, strlen(to));
    insert(files, file);
    if (there != NULL)
        hide(files, there);
    return 0;
}

int cx_files_rename(cx_fleet_files *files, const char *from, const char *to)
{
    /* A file's kind is that of its name. */
    if (cx_str_starts(cx_str_z(from), CX_STR("log/")) !=
        cx_str_starts(cx_str_z(to), CX_STR("log/")))
        return -EXDEV;
    cx_lock_enter(&files->writer_lock);
    int failed = cx_files_enter(files, true);
    if (failed == 0) {
        failed = rename_file(files, from, to);
        cx_files_leave(files);
    }
    cx_lock_leave(&files->writer_lock);
    return failed;
}
