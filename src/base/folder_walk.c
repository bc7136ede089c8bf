/*
 * folder_walk.c - going through everything below a folder.
 *
 * Invariant: nothing is left out silently; what cannot be read is an error (folder.c I2).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/folder_parts.h"

#define WALK_ENTRIES_MAX UINT64_C(2000000)
#define WALK_DEPTH_MAX 256

typedef struct walk {
    cx_walk_limits limits;
    cx_walk_visit *visit;
    void *arg;
    uint64_t seen;
    char path[CX_PATH_BYTES_MAX + 1];
    bool stopped;
} walk;

static cx_status walk_folder(walk *w, int file, size_t path_size, unsigned depth, cx_err *err);

static cx_status walk_below(walk *w, int folder, const cx_walk_entry *entry, unsigned depth,
                            cx_err *err)
{
    int file = openat(folder, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return cx_folder_fail(err, errno, "open the folder", w->path);
    return walk_folder(w, file, entry->path_size, depth + 1, err);
}

static cx_status walk_one(walk *w, int folder, const char *name, size_t path_size, unsigned depth,
                          cx_err *err)
{
    struct stat info;
    size_t name_size = strlen(name), start = path_size == 0 ? 0 : path_size + 1;
    if (start + name_size > CX_PATH_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "a path below the folder is longer than %d bytes",
                       CX_PATH_BYTES_MAX);
    if (++w->seen > w->limits.entries)
        return cx_fail(err, CX_E_LIMIT, "the folder holds more than %llu files",
                       (unsigned long long)w->limits.entries);
    if (start != 0)
        w->path[path_size] = '/';
    memcpy(w->path + start, name, name_size + 1);
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return cx_fail_os(err, errno, "cannot look at %s", w->path);
    cx_walk_entry entry = {
        .path = w->path, .path_size = start + name_size, .name = w->path + start, .parent = folder};
    cx_folder_take_facts(&info, &entry.facts);
    cx_walk_step step = w->visit(w->arg, &entry);
    w->stopped = step == CX_WALK_STOP;
    if (step != CX_WALK_ON || entry.facts.kind != CX_FILE_FOLDER)
        return CX_SUCCESS;
    if (depth + 1 > w->limits.depth)
        return cx_fail(err, CX_E_LIMIT, "folders are nested deeper than %u levels",
                       w->limits.depth);
    return walk_below(w, folder, &entry, depth, err);
}

/* Owns `file`. */
static cx_status walk_folder(walk *w, int file, size_t path_size, unsigned depth, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    DIR *dir = fdopendir(file);
    if (dir == NULL) {
        int code = errno;
        close(file);
        return cx_fail_os(err, code, "cannot read a folder");
    }
    while (!w->stopped && !cx_failed(status)) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL) {
            if (errno != 0)
                status = cx_fail_os(err, errno, "cannot read a folder");
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = walk_one(w, file, entry->d_name, path_size, depth, err);
    }
    (void)closedir(dir);
    w->path[path_size] = '\0';
    return status;
}

cx_status cx_folder_walk(cx_file folder, const cx_walk_limits *limits, cx_walk_visit *visit,
                         void *arg, cx_err *err)
{
    walk w = {.limits = {WALK_ENTRIES_MAX, WALK_DEPTH_MAX}, .visit = visit, .arg = arg};
    if (limits != NULL)
        w.limits = *limits;
    int file = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0)
        return cx_fail_os(err, errno, "cannot open a folder");
    return walk_folder(&w, file, 0, 0, err);
}
