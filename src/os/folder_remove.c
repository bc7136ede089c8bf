/*
 * folder_remove.c - removing a tree.
 *
 * Needs one descriptor in all and one name per level: the way up is "..", which is checked to be
 * the folder that we came from.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "os/folder_parts.h"
#include "os/system/system.h"
#include "base/api.h"

typedef struct level {
    char name[NAME_MAX + 1]; /* of this folder in the one above */
    dev_t device;
    ino_t inode;
} level;

typedef struct removal {
    int at; /* the folder being emptied */
    CX_VEC(level) levels;
} removal;

/* Removes a file or an empty folder; returns 1 for a folder that is not empty. */
static int remove_name(int folder, const char *name)
{
    struct stat info;
    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
        return 0;
    int code = errno;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return -errno;
    if (!S_ISDIR(info.st_mode))
        return -code;
    return unlinkat(folder, name, AT_REMOVEDIR) == 0 ? 0 : 1;
}

static int enter_subfolder(removal *r, const char *name)
{
    struct stat info;
    const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int file = openat(r->at, name, how);
    /* Permissions that deny the owner are restored, for reading and for removing. */
    if ((file < 0 && errno == EACCES) || (file >= 0 && faccessat(file, ".", W_OK | X_OK, 0) != 0)) {
        if (file >= 0)
            close(file);
        file = cx_system_change_mode(r->at, name, 0700) ? openat(r->at, name, how) : -1;
    }
    if (file < 0)
        return -errno;
    level *below = cx_vec_push(&r->levels, cx_alloc_default());
    if (below == NULL || fstat(r->at, &info) != 0) {
        close(file);
        return below == NULL ? -ENOMEM : -EIO;
    }
    (void)snprintf(below->name, sizeof below->name, "%s", name);
    below->device = info.st_dev;
    below->inode = info.st_ino;
    if (r->levels.count > 1)
        close(r->at);
    r->at = file;
    return 0;
}

/* Returns to the parent folder and removes the one that is empty now. */
static int leave_subfolder(removal *r, int top)
{
    struct stat info;
    level *left = &r->levels.items[r->levels.count - 1];
    int above =
        r->levels.count == 1 ? top : openat(r->at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (above < 0)
        return -errno;
    close(r->at);
    r->at = above;
    if (fstat(above, &info) != 0 || info.st_dev != left->device || info.st_ino != left->inode)
        return -EXDEV;
    int failed = unlinkat(above, left->name, AT_REMOVEDIR) == 0 ? 0 : -errno;
    r->levels.count--;
    return failed;
}

/* Removes what it can from the folder at r->at, or enters the first subfolder that is not empty;
 * *out_down tells which. */
static int remove_contents_once(removal *r, bool *out_down)
{
    int failed = 0;
    *out_down = false;
    int copy = openat(r->at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (dir == NULL) {
        failed = -errno;
        if (copy >= 0)
            close(copy);
        return failed;
    }
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL) {
            failed = -errno;
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int left = remove_name(r->at, entry->d_name);
        if (left == 1) {
            failed = enter_subfolder(r, entry->d_name);
            *out_down = failed == 0;
            break;
        }
        if (left < 0) {
            failed = left;
            break;
        }
    }
    (void)closedir(dir);
    return failed;
}

static int remove_below(removal *r, int top, const char *name)
{
    int failed = remove_name(top, name);
    if (failed != 1)
        return failed;
    failed = enter_subfolder(r, name);
    while (failed == 0 && r->levels.count != 0) {
        bool down;
        failed = remove_contents_once(r, &down);
        if (failed == 0 && !down)
            failed = leave_subfolder(r, top);
    }
    return failed;
}

static int remove_tree_at(int top, const char *name)
{
    removal r = {.at = top};
    int failed = remove_below(&r, top, name);
    if (r.levels.count != 0 && r.at != top)
        close(r.at);
    cx_vec_done(&r.levels, cx_alloc_default());
    return failed;
}

cx_status cx_folder_remove_tree(cx_file folder, const char *path, cx_err *err)
{
    cx_place p;
    cx_status status = cx_place_find(folder, path, &p, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    int failed = remove_tree_at(p.folder, p.name);
    cx_place_done(&p);
    return failed == 0 ? CX_SUCCESS : cx_folder_fail(err, -failed, "remove", path);
}

cx_status cx_path_remove_tree(const char *path, cx_err *err)
{
    char parent[CX_PATH_BYTES_MAX + 1];
    CX_TRY(cx_folder_check_path(path, err));
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    size_t start = size;
    while (start > 0 && path[start - 1] != '/')
        start--;
    char name[CX_PATH_BYTES_MAX + 1];
    memcpy(name, path + start, size - start);
    name[size - start] = '\0';
    memcpy(parent, start == 0 ? "." : path, start == 0 ? 1 : start);
    parent[start == 0 ? 1 : start] = '\0';
    cx_file folder;
    cx_status status = cx_folder_open(parent, &folder, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    status = cx_folder_remove_tree(folder, name, err);
    cx_folder_close(folder);
    return status;
}
