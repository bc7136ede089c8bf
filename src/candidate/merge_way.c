/*
 * merge_way.c - what an update of a checkout would destroy although git says that nothing is lost.
 *
 * `read-tree -m -u` keeps untracked files, but counts ignored ones as worthless: a new file of the
 * commit replaces an ignored file of its name, or a folder of its name with everything ignored in
 * it, and a new folder an ignored file.  Agents choose the names of new files, and a person's
 * ignored files are settings, data and environments that exist nowhere else.
 */
#include "candidate/merge_way.h"

#include <stdio.h>
#include <stdlib.h>

#include "candidate/diff_parts.h"

typedef struct checkout_way {
    cx_file root; /* of the checkout */
    cx_raw_diff changes;
    const char *folder; /* the one that is walked, from the root */
    cx_arena *arena;
    cx_str found; /* empty: nothing yet */
    cx_status status;
    cx_err *err;
} checkout_way;

static int compare_paths(const void *a, const void *b)
{
    return cx_str_cmp(((const cx_raw_change *)a)->path, ((const cx_raw_change *)b)->path);
}

/* Whether git has this path and changes it: then it was found unchanged before. */
static bool is_tracked_and_changes(const checkout_way *w, cx_str path)
{
    const cx_raw_change key = {.path = path};
    const cx_raw_change *found =
        bsearch(&key, w->changes.changes, w->changes.count, sizeof key, compare_paths);
    return found != NULL && found->old_mode != 0;
}

static void set_found(checkout_way *w, cx_str path)
{
    w->found = cx_arena_copy_str(w->arena, path);
    w->status = w->found.data == NULL ? cx_fail_nomem(w->err) : CX_SUCCESS;
}

static cx_walk_step visit_replaced(void *arg, const cx_walk_entry *entry)
{
    char path[2 * CX_PATH_BYTES_MAX + 2];
    checkout_way *w = arg;
    if (entry->facts.kind == CX_FILE_FOLDER)
        return CX_WALK_ON;
    (void)snprintf(path, sizeof path, "%s/%s", w->folder, entry->path);
    if (is_tracked_and_changes(w, cx_str_z(path)))
        return CX_WALK_ON;
    set_found(w, cx_str_z(path));
    return CX_WALK_STOP;
}

/* A folder where the commit has a file. */
static cx_status check_replaced_folder(checkout_way *w, const char *path)
{
    cx_file folder;
    CX_TRY(cx_folder_open_in(w->root, path, CX_IO_READ | CX_IO_DIRECTORY, &folder, w->err));
    w->folder = path;
    cx_status status = cx_folder_walk(folder, NULL, visit_replaced, w, w->err);
    cx_folder_close(folder);
    return cx_failed(status) ? status : w->status;
}

/* What is at `path`, where the commit has a new file, or a folder that leads to one. */
static cx_status check_place(checkout_way *w, const char *path, bool is_last, bool *out_absent)
{
    cx_facts facts;
    cx_status status = cx_folder_facts(w->root, path, &facts, w->err);
    *out_absent = status.code == CX_E_NOT_FOUND;
    if (*out_absent)
        return CX_SUCCESS;
    CX_TRY(status);
    if (facts.kind == CX_FILE_FOLDER)
        return is_last ? check_replaced_folder(w, path) : CX_SUCCESS;
    /* A link or a file on the way: the commit means nothing past it. */
    *out_absent = true;
    if (!is_tracked_and_changes(w, cx_str_z(path)))
        set_found(w, cx_str_z(path));
    return w->status;
}

static cx_status check_new_path(checkout_way *w, cx_str path)
{
    char place[CX_PATH_BYTES_MAX + 1];
    bool absent = false;
    if (path.size > CX_PATH_BYTES_MAX)
        return cx_fail(w->err, CX_E_LIMIT, "a path of the commit has more than %d bytes",
                       CX_PATH_BYTES_MAX);
    for (size_t end = 1; end <= path.size && !absent && w->found.size == 0; end++) {
        if (end != path.size && path.data[end] != '/')
            continue;
        memcpy(place, path.data, end);
        place[end] = 0;
        CX_TRY(check_place(w, place, end == path.size, &absent));
    }
    return CX_SUCCESS;
}

cx_status cx_merge_find_in_way(const cx_git *checkout, const cx_oid *from, const cx_oid *to,
                               cx_arena *arena, cx_str *out, cx_err *err)
{
    checkout_way w = {.arena = arena, .found = {"", 0}, .status = CX_SUCCESS, .err = err};
    CX_ASSERT(!cx_git_is_hostile(checkout)); /* git.h I3 */
    CX_TRY(cx_diff_changes_between(checkout, from, to, arena, &w.changes, err));
    CX_TRY(cx_folder_open(cx_git_worktree(checkout), &w.root, err));
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < w.changes.count && w.found.size == 0 && !cx_failed(status); i++)
        if (w.changes.changes[i].old_mode == 0 && w.changes.changes[i].new_mode != 0)
            status = check_new_path(&w, w.changes.changes[i].path);
    cx_folder_close(w.root);
    *out = w.found;
    return status;
}
