/*
 * folder_change.c - creating, renaming and changing entries of a folder, never through a link.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/folder_parts.h"
#include "os/system/system.h"

cx_status cx_path_make_folders(const char *path, cx_err *err)
{
    char part[CX_PATH_BYTES_MAX + 1];
    CX_TRY(cx_folder_check_path(path, err));
    size_t size = strlen(path);
    for (size_t end = 1; end <= size; end++) {
        if (path[end] != '/' && path[end] != '\0')
            continue;
        memcpy(part, path, end);
        part[end] = '\0';
        if (mkdir(part, 0700) == 0 || errno == EEXIST)
            continue;
        /* The next component may exist even where this folder is not writable. */
        int code = errno;
        struct stat info;
        if (stat(part, &info) != 0 || !S_ISDIR(info.st_mode))
            return cx_fail_os(err, code, "cannot make the folder %s", part);
    }
    struct stat info;
    if (stat(path, &info) != 0)
        return cx_fail_os(err, errno, "cannot make the folder %s", path);
    return S_ISDIR(info.st_mode)
               ? CX_SUCCESS
               : cx_fail(err, CX_E_EXISTS, "cannot make the folder %s: there is a file", path);
}

/* For mkdtemp and mkostemp; `out` has CX_PATH_BYTES_MAX + 1 bytes. */
static cx_status name_temporary(char *out, const char **out_base, cx_err *err)
{
    const char *base = getenv("TMPDIR");
    if (base == NULL || base[0] != '/')
        base = "/tmp";
    *out_base = base;
    int size = snprintf(out, CX_PATH_BYTES_MAX + 1, "%s/cortex-XXXXXX", base);
    if (size < 0 || size > CX_PATH_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "TMPDIR is longer than %d bytes", CX_PATH_BYTES_MAX);
    return CX_SUCCESS;
}

cx_status cx_path_make_temporary(char *out, cx_err *err)
{
    const char *base;
    CX_TRY(name_temporary(out, &base, err));
    return mkdtemp(out) != NULL
               ? CX_SUCCESS
               : cx_fail_os(err, errno, "cannot make a temporary folder in %s", base);
}

cx_status cx_path_open_unnamed(cx_file *out, cx_err *err)
{
    char name[CX_PATH_BYTES_MAX + 1];
    const char *base;
    CX_TRY(name_temporary(name, &base, err));
    int file = mkostemp(name, O_CLOEXEC);
    if (file < 0)
        return cx_fail_os(err, errno, "cannot make a temporary file in %s", base);
    (void)unlink(name);
    *out = file;
    return CX_SUCCESS;
}

cx_status cx_folder_make_folders(cx_file folder, const char *path, uint32_t mode, cx_err *err)
{
    char part[CX_PATH_BYTES_MAX + 1];
    CX_TRY(cx_folder_check_path(path, err));
    size_t size = strlen(path);
    for (size_t end = 1; end <= size; end++) {
        if (path[end] != '/' && path[end] != '\0')
            continue;
        cx_place p;
        memcpy(part, path, end);
        part[end] = '\0';
        CX_TRY(cx_place_find(folder, part, &p, err));
        bool made = mkdirat(p.folder, p.name, (mode_t)mode) == 0 || errno == EEXIST;
        CX_TRY(cx_place_end(&p, made, "make the folder", part, err));
    }
    cx_facts facts;
    CX_TRY(cx_folder_facts(folder, path, &facts, err));
    return facts.kind == CX_FILE_FOLDER
               ? CX_SUCCESS
               : cx_fail(err, CX_E_EXISTS, "cannot make the folder %s: there is a file", path);
}

cx_status cx_folder_make_link(cx_file folder, const char *target, const char *path, cx_err *err)
{
    cx_place p;
    CX_TRY(cx_place_find(folder, path, &p, err));
    return cx_place_end(&p, symlinkat(target, p.folder, p.name) == 0, "make the link", path, err);
}

cx_status cx_folder_make_hard_link(cx_file folder, const char *from, const char *to, cx_err *err)
{
    cx_place a, b;
    CX_TRY(cx_place_find(folder, from, &a, err));
    cx_status status = cx_place_find(folder, to, &b, err);
    if (cx_failed(status)) {
        cx_place_done(&a);
        return status;
    }
    bool made = linkat(a.folder, a.name, b.folder, b.name, 0) == 0;
    int code = errno;
    cx_place_done(&a);
    errno = code;
    return cx_place_end(&b, made, "make the link", to, err);
}

cx_status cx_folder_make_fifo(cx_file folder, const char *path, cx_err *err)
{
    cx_place p;
    CX_TRY(cx_place_find(folder, path, &p, err));
    return cx_place_end(&p, mkfifoat(p.folder, p.name, 0600) == 0, "make the FIFO", path, err);
}

cx_status cx_folder_rename(cx_file folder, const char *from, const char *to, cx_err *err)
{
    cx_place a, b;
    CX_TRY(cx_place_find(folder, from, &a, err));
    cx_status status = cx_place_find(folder, to, &b, err);
    if (cx_failed(status)) {
        cx_place_done(&a);
        return status;
    }
    bool moved = renameat(a.folder, a.name, b.folder, b.name) == 0;
    int code = errno;
    cx_place_done(&a);
    errno = code;
    return cx_place_end(&b, moved, "rename", from, err);
}

cx_status cx_folder_set_mode(cx_file folder, const char *path, uint32_t mode, cx_err *err)
{
    cx_place p;
    CX_TRY(cx_place_find(folder, path, &p, err));
    return cx_place_end(&p, cx_system_change_mode(p.folder, p.name, (mode_t)mode),
                        "change the mode of", path, err);
}

cx_status cx_path_set_mode(const char *path, uint32_t mode, cx_err *err)
{
    if (chmod(path, (mode_t)mode) != 0)
        return cx_fail_os(err, errno, "cannot change the mode of %s", path);
    return CX_SUCCESS;
}

cx_status cx_folder_touch(cx_file folder, const char *path, cx_err *err)
{
    cx_place p;
    CX_TRY(cx_place_find(folder, path, &p, err));
    bool done = utimensat(p.folder, p.name, NULL, AT_SYMLINK_NOFOLLOW) == 0;
    return cx_place_end(&p, done, "touch", path, err);
}

cx_status cx_folder_remove(cx_file folder, const char *path, cx_err *err)
{
    cx_place p;
    CX_TRY(cx_place_find(folder, path, &p, err));
    bool gone = unlinkat(p.folder, p.name, 0) == 0;
    if (!gone && (errno == EISDIR || errno == EPERM))
        gone = unlinkat(p.folder, p.name, AT_REMOVEDIR) == 0;
    return cx_place_end(&p, gone, "remove", path, err);
}
