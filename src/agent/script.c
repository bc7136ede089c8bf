/*
 * script.c - compares a script in a work tree with the baseline's.
 *
 * The path is walked as the kernel would walk it, '..' included, one component at a time, and no
 * component is followed: normalising `a/../b` to `b` first would miss that `a` is a symbolic link.
 */
#include "agent/script.h"

#include "base/api.h"
#include "os/api.h"

typedef struct path_walk {
    cx_file folder;
    char path[CX_PATH_BYTES_MAX + 1]; /* from the work tree to the current folder */
    size_t size;
} path_walk;

/* One step to `name`; *out stays SAME unless something is wrong. */
static cx_status step_into(path_walk *w, cx_str name, bool last, cx_run_script *out, cx_err *err)
{
    cx_facts facts;
    if (cx_str_is(name, "..")) {
        if (w->size == 0) {
            *out = CX_RUN_SCRIPT_OUTSIDE;
            return CX_SUCCESS;
        }
        while (w->size > 0 && w->path[w->size - 1] != '/')
            w->size--;
        w->size -= w->size != 0;
        w->path[w->size] = 0;
        if (last)
            *out = CX_RUN_SCRIPT_NOT_REGULAR;
        return CX_SUCCESS;
    }
    if (name.size + 2 > sizeof w->path - w->size) {
        *out = CX_RUN_SCRIPT_MISSING;
        return CX_SUCCESS;
    }
    if (w->size != 0)
        w->path[w->size++] = '/';
    memcpy(w->path + w->size, name.data, name.size);
    w->size += name.size;
    w->path[w->size] = 0;
    cx_status status = cx_folder_facts(w->folder, w->path, &facts, err);
    if (status.code == CX_E_NOT_FOUND) {
        *out = CX_RUN_SCRIPT_MISSING;
        return CX_SUCCESS;
    }
    CX_TRY(status);
    if (facts.kind == CX_FILE_LINK)
        *out = CX_RUN_SCRIPT_SYMLINK;
    else if (last ? facts.kind != CX_FILE_REGULAR : facts.kind != CX_FILE_FOLDER)
        *out = CX_RUN_SCRIPT_NOT_REGULAR;
    return CX_SUCCESS;
}

static cx_status walk_path(path_walk *w, cx_str path, cx_run_script *out, cx_err *err)
{
    size_t at = 0;
    *out = CX_RUN_SCRIPT_SAME;
    if (path.size == 0 || path.data[0] == '/' || path.data[path.size - 1] == '/') {
        *out = path.size != 0 && path.data[0] == '/' ? CX_RUN_SCRIPT_OUTSIDE
                                                     : CX_RUN_SCRIPT_NOT_REGULAR;
        return CX_SUCCESS;
    }
    while (at < path.size && *out == CX_RUN_SCRIPT_SAME) {
        size_t end = at;
        while (end < path.size && path.data[end] != '/')
            end++;
        cx_str name = cx_str_from(path.data + at, end - at);
        at = end + 1;
        if (name.size == 0 || cx_str_is(name, "."))
            continue;
        CX_TRY(step_into(w, name, at > path.size, out, err));
    }
    if (w->size == 0 && *out == CX_RUN_SCRIPT_SAME)
        *out = CX_RUN_SCRIPT_NOT_REGULAR; /* "." */
    return CX_SUCCESS;
}

static cx_status compare_with_baseline(const cx_run_script_context *ground, path_walk *w,
                                       cx_str plain, cx_run_script *out, cx_err *err)
{
    cx_arena arena;
    cx_buf file;
    cx_run_blob kind;
    cx_bytes blob = {NULL, 0};
    cx_arena_init(&arena, ground->alloc, 0);
    cx_buf_init(&file, ground->alloc);
    cx_status status = ground->repo->read(ground->repo->arg, ground->commit, plain,
                                          CX_RUN_SCRIPT_BYTES_MAX, &arena, &kind, &blob, err);
    if (!cx_failed(status) && kind != CX_BLOB_FILE)
        *out = CX_RUN_SCRIPT_DIFFERS;
    if (!cx_failed(status) && kind == CX_BLOB_FILE) {
        status = cx_folder_read_file(w->folder, w->path, CX_RUN_SCRIPT_BYTES_MAX, &file, err);
        if (status.code == CX_E_LIMIT) {
            *out = CX_RUN_SCRIPT_DIFFERS;
            status = CX_SUCCESS;
        } else if (!cx_failed(status) && !cx_str_eq(cx_buf_str(&file), cx_bytes_str(blob))) {
            *out = CX_RUN_SCRIPT_DIFFERS;
        }
    }
    cx_buf_done(&file);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_run_script_compare(void *ground_arg, cx_str path, cx_str plain, cx_run_script *out,
                                cx_err *err)
{
    CX_ASSERT(ground_arg != NULL);
    const cx_run_script_context *ground = ground_arg;
    path_walk *w = cx_alloc_zeroed(ground->alloc, 1, sizeof *w);
    if (w == NULL)
        return cx_fail_nomem(err);
    cx_status status = cx_folder_open(ground->worktree, &w->folder, err);
    if (!cx_failed(status)) {
        status = walk_path(w, path, out, err);
        if (!cx_failed(status) && *out == CX_RUN_SCRIPT_SAME)
            status = compare_with_baseline(ground, w, plain, out, err);
        cx_folder_close(w->folder);
    }
    cx_alloc_free(ground->alloc, w, sizeof *w);
    return status;
}
