/*
 * watch_scan.c - finds the files, and which of them changed since the last scan. Links are not
 * followed. Notifications of the kernel only name the folders to scan.
 */
#include "cli/service/watch.h"

#include <string.h>

#define DEPTH_MAX 8

/* A document that is being written again and again is archived when it rests, or at last then. */
#define REST_NS INT64_C(2000000000)
#define RESTLESS_NS UINT64_C(30000000000)

bool cx_watch_is_due(const cx_watch *w, const cx_watch_file *file)
{
    const cx_io *io = w->cli->io;
    if (!file->dirty || !file->document || w->at_once)
        return file->dirty;
    int64_t age = (int64_t)io->wall_ns(io) - file->modified_ns;
    return age >= REST_NS || age < 0 || io->monotonic_ns(io) - file->dirty_ns >= RESTLESS_NS;
}

bool cx_watch_any_dirty(const cx_watch *w)
{
    for (size_t i = 0; i < w->files.count; i++)
        if (cx_watch_is_due(w, &w->files.items[i]))
            return true;
    return false;
}

static cx_session_shape shape_of(const char *path)
{
    cx_session_path read;
    cx_session_path_read(cx_str_z(path), &read);
    return read.shape;
}

static cx_status record_facts(cx_watch *w, const char *path, const cx_facts *facts, cx_err *err)
{
    uint64_t *place;
    bool is_new = false;
    cx_watch_file *file;
    if ((place = cx_map_find(&w->by_path, cx_str_z(path))) == NULL) {
        cx_str kept = cx_arena_copy_str(&w->arena, cx_str_z(path));
        if (kept.data == NULL || (file = cx_vec_push(&w->files, w->cli->alloc)) == NULL)
            return cx_fail_nomem(err);
        CX_TRY(cx_map_put(&w->by_path, kept, &place, &is_new, err));
        *place = w->files.count - 1;
        *file = (cx_watch_file){.path = kept.data,
                                .document = shape_of(kept.data) >= CX_SESSION_DOCUMENT};
    }
    file = &w->files.items[*place];
    if (!is_new && file->device == facts->device && file->inode == facts->inode &&
        file->size == facts->size_bytes && file->modified_ns == facts->modified_ns)
        return CX_SUCCESS;
    file->device = facts->device;
    file->inode = facts->inode;
    file->size = facts->size_bytes;
    file->modified_ns = facts->modified_ns;
    if (!file->dirty)
        file->dirty_ns = w->cli->io->monotonic_ns(w->cli->io);
    file->dirty = true;
    return CX_SUCCESS;
}

cx_status cx_watch_add(cx_watch *w, const char *folder, const char *name, cx_err *err)
{
    cx_facts facts;
    cx_buf_clear(&w->text);
    cx_buf_printf(&w->text, "%s/%s", folder, name);
    const char *path = cx_buf_z(&w->text);
    if (path == NULL)
        return cx_fail_nomem(err);
    if (shape_of(path) == CX_SESSION_NO_FILE)
        return CX_SUCCESS;
    if (!cx_failed(cx_path_facts(path, false, &facts, NULL)) && facts.kind == CX_FILE_REGULAR)
        return record_facts(w, path, &facts, err);
    const uint64_t *place = cx_map_find(&w->by_path, cx_str_z(path));
    if (place != NULL) /* it went: what comes under this name is new */
        w->files.items[*place] = (cx_watch_file){.path = w->files.items[*place].path,
                                                 .document = w->files.items[*place].document};
    return CX_SUCCESS;
}

typedef struct walking {
    cx_watch *w;
    const char *folder;
    cx_status status;
    cx_err *err;
} walking;

/* A folder that the kernel cannot watch is checked by every scan. */
static void watch_folder(cx_watch *w, const char *folder)
{
    cx_err err;
    if (w->notify == NULL || !cx_failed(cx_notify_add(w->notify, folder, &err)) ||
        err.code == CX_E_NOT_FOUND)
        return;
    cx_cli_complain("watch: note: %s; every file is checked every few seconds", err.message);
    cx_notify_close(w->notify);
    w->notify = NULL;
}

static cx_walk_step visit_entry(void *arg, const cx_walk_entry *entry)
{
    walking *at = arg;
    bool is_folder = entry->facts.kind == CX_FILE_FOLDER;
    if (!is_folder && entry->facts.kind != CX_FILE_REGULAR)
        return CX_WALK_ON;
    cx_arena_mark mark = cx_arena_mark_now(&at->w->cli->arena);
    cx_str path = cx_arena_printf(&at->w->cli->arena, "%s/%s", at->folder, entry->path);
    if (path.data == NULL)
        at->status = cx_fail_nomem(at->err);
    else if (is_folder)
        watch_folder(at->w, path.data);
    else if (shape_of(path.data) != CX_SESSION_NO_FILE)
        at->status = record_facts(at->w, path.data, &entry->facts, at->err);
    cx_arena_reset(&at->w->cli->arena, mark);
    return cx_failed(at->status) ? CX_WALK_STOP : CX_WALK_ON;
}

static cx_status scan_folder(cx_watch *w, const char *folder, cx_err *err)
{
    const cx_walk_limits limits = {.entries = 2000000, .depth = DEPTH_MAX};
    walking at = {.w = w, .folder = folder, .status = CX_SUCCESS, .err = err};
    cx_file handle;
    cx_arena_mark mark = cx_arena_mark_now(&w->cli->arena);
    watch_folder(w, folder); /* first: changes during the walk are reported */
    CX_TRY(cx_folder_open(folder, &handle, err));
    cx_status status = cx_folder_walk(handle, &limits, visit_entry, &at, err);
    cx_folder_close(handle);
    cx_arena_reset(&w->cli->arena, mark);
    return cx_failed(at.status) ? at.status : status;
}

/* A folder that went, or changed while it was walked, is found again by the next scan. */
cx_status cx_watch_scan(cx_watch *w, cx_err *err)
{
    /* Of the folder that the command runs in, only one file is a session's. */
    if (w->usual && w->here != NULL)
        CX_TRY(cx_watch_add(w, w->here, ".aider.chat.history.md", err));
    for (size_t i = 0; i < w->folder_count; i++) {
        cx_err found;
        cx_status status = scan_folder(w, w->folders[i], &found);
        if (status.code == CX_E_NOT_FOUND)
            continue;
        if (cx_failed(status)) {
            *err = found;
            return status;
        }
    }
    return CX_SUCCESS;
}
