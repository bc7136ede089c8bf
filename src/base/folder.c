/*
 * folder.c - folders whose contents are not to be trusted.
 *
 * Every way in goes through open_beneath: openat2 with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, or,
 * on a kernel or in a sandbox without it, one O_NOFOLLOW open per component.  Invariants:
 *   I1  no link is followed below a folder that was opened, whoever changes it meanwhile.
 *   I2  nothing is left out silently: what cannot be read is an error.
 */
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"

#define WALK_ENTRIES_MAX UINT64_C(2000000)
#define WALK_DEPTH_MAX 256

/* --- opening --------------------------------------------------------------------------------- */

/* -1 with errno; EXDEV is what openat2 says of a path that leads outside. */
static int open_by_component(int folder, const char *path, int flags, mode_t mode)
{
    int at = folder;
    for (const char *rest = path;;) {
        char name[NAME_MAX + 1];
        size_t size = strcspn(rest, "/");
        const char *next = rest + size + strspn(rest + size, "/");
        bool last = *next == '\0';
        int file = -1;
        if (size > NAME_MAX) {
            errno = ENAMETOOLONG;
        } else {
            memcpy(name, rest, size);
            name[size] = '\0';
            if (strcmp(name, "..") == 0)
                errno = EXDEV;
            else if (last)
                file = openat(at, name, flags | O_NOFOLLOW, mode);
            else
                file = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        int code = errno;
        /* A link that is opened as a folder is ENOTDIR here; openat2 says ELOOP. */
        struct stat link;
        if (file < 0 && code == ENOTDIR && fstatat(at, name, &link, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISLNK(link.st_mode))
            code = ELOOP;
        if (at != folder)
            close(at);
        errno = code;
        if (file < 0 || last)
            return file;
        at = file;
        rest = next;
    }
}

static int open_beneath(int folder, const char *path, int flags, mode_t mode)
{
    static atomic_bool absent; /* of openat2; asked once, both answers are right */
    if (path[0] == '/') {
        errno = EXDEV;
        return -1;
    }
    if (path[0] == '\0')
        path = ".";
    flags |=
        flags & O_PATH ? O_CLOEXEC : O_CLOEXEC | O_NOCTTY; /* openat2 checks what goes together */
    for (;;) {
        if (atomic_load_explicit(&absent, memory_order_relaxed))
            return open_by_component(folder, path, flags, mode);
        struct open_how how = {.flags = (uint64_t)(unsigned)flags | O_NOFOLLOW,
                               .mode = flags & O_CREAT ? mode : 0,
                               .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
        long file = syscall(SYS_openat2, folder, path, &how, sizeof how);
        if (file >= 0)
            return (int)file;
        /* A sandbox that does not know the call says EPERM. */
        if (errno == ENOSYS || errno == EPERM)
            atomic_store_explicit(&absent, true, memory_order_relaxed);
        else if (errno != EINTR && errno != EAGAIN)
            return -1;
    }
}

/* A link on the way or a way out is a refusal. */
static cx_status fail_path(cx_err *err, int code, const char *what, const char *path)
{
    if (code == ELOOP || code == EXDEV)
        return cx_fail(err, CX_E_DENIED,
                       "cannot %s %s: the path leads through a link or out of its folder", what,
                       path);
    return cx_fail_os(err, code, "cannot %s %s", what, path);
}

static cx_status check_size(const char *path, cx_err *err)
{
    if (strnlen(path, CX_PATH_BYTES_MAX + 1) > CX_PATH_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "a path is longer than %d bytes", CX_PATH_BYTES_MAX);
    return CX_SUCCESS;
}

cx_status cx_folder_open(const char *path, cx_file *out, cx_err *err)
{
    CX_TRY(check_size(path, err));
    int file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0)
        return cx_fail_os(err, errno, "cannot open the folder %s", path);
    *out = file;
    return CX_SUCCESS;
}

cx_status cx_folder_open_in(cx_file folder, const char *path, unsigned flags, cx_file *out,
                            cx_err *err)
{
    int how = O_RDONLY;
    CX_TRY(check_size(path, err));
    if (flags & CX_IO_WRITE)
        how = flags & CX_IO_READ ? O_RDWR : O_WRONLY;
    how |= flags & CX_IO_CREATE ? O_CREAT : 0;
    how |= flags & CX_IO_EXCLUSIVE ? O_EXCL : 0;
    how |= flags & CX_IO_TRUNCATE ? O_TRUNC : 0;
    how |= flags & CX_IO_APPEND ? O_APPEND : 0;
    how |= flags & CX_IO_DIRECTORY ? O_DIRECTORY : 0;
    int file = open_beneath(folder, path, how | O_NONBLOCK, flags & CX_IO_PUBLIC ? 0666 : 0600);
    if (file < 0)
        return fail_path(err, errno, "open", path);
    *out = file;
    return CX_SUCCESS;
}

void cx_folder_close(cx_file folder)
{
    if (folder != CX_FILE_NONE)
        close(folder);
}

/*
 * The folder that holds the last component of `path`, and that component.  A path without one, or
 * with one of "." and "..", is refused: there is nothing of that name in a folder.
 */
typedef struct place {
    int folder;
    bool opened;
    char name[NAME_MAX + 1];
} place;

static cx_status place_find(cx_file folder, const char *path, place *out, cx_err *err)
{
    CX_TRY(check_size(path, err));
    size_t size = strlen(path);
    while (size > 0 && path[size - 1] == '/')
        size--;
    size_t start = size;
    while (start > 0 && path[start - 1] != '/')
        start--;
    size_t name_size = size - start;
    if (name_size == 0 || (name_size == 1 && path[start] == '.') ||
        (name_size == 2 && path[start] == '.' && path[start + 1] == '.'))
        return cx_fail(err, CX_E_DENIED, "'%s' names nothing inside its folder", path);
    if (name_size > NAME_MAX)
        return cx_fail(err, CX_E_LIMIT, "a name is longer than %d bytes", NAME_MAX);
    memcpy(out->name, path + start, name_size);
    out->name[name_size] = '\0';
    out->folder = folder;
    out->opened = false;
    if (start == 0)
        return CX_SUCCESS;
    char parent[CX_PATH_BYTES_MAX + 1];
    memcpy(parent, path, start);
    parent[start] = '\0';
    int file = open_beneath(folder, parent, O_PATH | O_DIRECTORY, 0);
    if (file < 0)
        return fail_path(err, errno, "reach", path);
    out->folder = file;
    out->opened = true;
    return CX_SUCCESS;
}

static void place_done(const place *p)
{
    if (p->opened)
        close(p->folder);
}

/* Closes the place and says what went wrong with it, if anything did. */
static cx_status place_end(const place *p, bool worked, const char *what, const char *path,
                           cx_err *err)
{
    int code = errno;
    place_done(p);
    return worked ? CX_SUCCESS : fail_path(err, code, what, path);
}

/* --- looking --------------------------------------------------------------------------------- */

static int64_t time_ns(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void take_facts(const struct stat *info, cx_facts *out)
{
    out->kind = S_ISREG(info->st_mode)   ? CX_FILE_REGULAR
                : S_ISDIR(info->st_mode) ? CX_FILE_FOLDER
                : S_ISLNK(info->st_mode) ? CX_FILE_LINK
                                         : CX_FILE_SPECIAL;
    out->mode = info->st_mode & 07777;
    out->owner_id = info->st_uid;
    out->group_id = info->st_gid;
    out->size_bytes = (uint64_t)info->st_size;
    out->link_count = (uint64_t)info->st_nlink;
    out->device = (uint64_t)info->st_dev;
    out->inode = (uint64_t)info->st_ino;
    out->modified_ns = time_ns(info->st_mtim);
    out->changed_ns = time_ns(info->st_ctim);
}

cx_status cx_folder_facts(cx_file folder, const char *path, cx_facts *out, cx_err *err)
{
    struct stat info;
    place p;
    if (path[0] == '\0' || strcmp(path, ".") == 0)
        return cx_file_facts(folder, out, err);
    CX_TRY(place_find(folder, path, &p, err));
    bool found = fstatat(p.folder, p.name, &info, AT_SYMLINK_NOFOLLOW) == 0;
    CX_TRY(place_end(&p, found, "look at", path, err));
    take_facts(&info, out);
    return CX_SUCCESS;
}

cx_status cx_path_facts(const char *path, bool follow, cx_facts *out, cx_err *err)
{
    struct stat info;
    if (fstatat(AT_FDCWD, path, &info, follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0)
        return cx_fail_os(err, errno, "cannot look at %s", path);
    take_facts(&info, out);
    return CX_SUCCESS;
}

cx_status cx_file_facts(cx_file file, cx_facts *out, cx_err *err)
{
    struct stat info;
    if (fstat(file, &info) != 0)
        return cx_fail_os(err, errno, "cannot look at an open file");
    take_facts(&info, out);
    return CX_SUCCESS;
}

static cx_status read_opened(int file, const char *path, size_t limit_bytes, cx_buf *out,
                             cx_err *err)
{
    cx_facts facts;
    size_t total = 0;
    CX_TRY(cx_file_facts(file, &facts, err));
    if (facts.kind != CX_FILE_REGULAR)
        return cx_fail(err, CX_E_DENIED, "%s is no regular file", path);
    if (facts.size_bytes > limit_bytes)
        return cx_fail(err, CX_E_LIMIT, "%s is longer than %zu bytes", path, limit_bytes);
    for (;;) {
        size_t want = facts.size_bytes > total ? (size_t)facts.size_bytes - total : 4096;
        uint8_t *room = cx_buf_reserve(out, want);
        if (room == NULL)
            return cx_fail_nomem(err);
        ssize_t count = read(file, room, want);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return cx_fail_os(err, errno, "cannot read %s", path);
        if (count == 0)
            return CX_SUCCESS;
        total += (size_t)count;
        if (total > limit_bytes)
            return cx_fail(err, CX_E_LIMIT, "%s is longer than %zu bytes", path, limit_bytes);
        cx_buf_advance(out, (size_t)count);
    }
}

cx_status cx_folder_read_file(cx_file folder, const char *path, size_t limit_bytes, cx_buf *out,
                              cx_err *err)
{
    CX_TRY(check_size(path, err));
    int file = open_beneath(folder, path, O_RDONLY | O_NONBLOCK, 0);
    if (file < 0)
        return fail_path(err, errno, "open", path);
    cx_status status = read_opened(file, path, limit_bytes, out, err);
    close(file);
    return status;
}

cx_status cx_folder_read_link(cx_file folder, const char *path, cx_buf *out, cx_err *err)
{
    char target[CX_PATH_BYTES_MAX + 1];
    place p;
    CX_TRY(place_find(folder, path, &p, err));
    ssize_t size = readlinkat(p.folder, p.name, target, sizeof target);
    CX_TRY(place_end(&p, size >= 0, "read the link", path, err));
    if ((size_t)size > CX_PATH_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "the target of the link %s is too long", path);
    cx_buf_add(out, target, (size_t)size);
    return cx_buf_check(out, err);
}

cx_status cx_path_real(const char *path, cx_buf *out, cx_err *err)
{
    char *real = realpath(path, NULL);
    if (real == NULL)
        return cx_fail_os(err, errno, "cannot resolve %s", path);
    cx_buf_add_z(out, real);
    free(real);
    return cx_buf_check(out, err);
}

cx_status cx_folder_list(cx_file folder, const char *path, cx_io_name *name, void *arg, cx_err *err)
{
    CX_TRY(check_size(path, err));
    int file = open_beneath(folder, path, O_RDONLY | O_DIRECTORY, 0);
    if (file < 0)
        return fail_path(err, errno, "open the folder", path);
    DIR *dir = fdopendir(file);
    if (dir == NULL) {
        int code = errno;
        close(file);
        return cx_fail_os(err, code, "cannot read the folder %s", path);
    }
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL)
            break;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            !name(arg, entry->d_name)) {
            errno = 0;
            break;
        }
    }
    int code = errno;
    (void)closedir(dir);
    return code == 0 ? CX_SUCCESS : cx_fail_os(err, code, "cannot read the folder %s", path);
}

/* --- walking --------------------------------------------------------------------------------- */

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
        return fail_path(err, errno, "open the folder", w->path);
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
    take_facts(&info, &entry.facts);
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

/* --- changing -------------------------------------------------------------------------------- */

cx_status cx_path_make_folders(const char *path, cx_err *err)
{
    char part[CX_PATH_BYTES_MAX + 1];
    CX_TRY(check_size(path, err));
    size_t size = strlen(path);
    for (size_t end = 1; end <= size; end++) {
        if (path[end] != '/' && path[end] != '\0')
            continue;
        memcpy(part, path, end);
        part[end] = '\0';
        if (mkdir(part, 0700) == 0 || errno == EEXIST)
            continue;
        /* A place that cannot be written to may hold the next one all the same. */
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

cx_status cx_folder_make_folders(cx_file folder, const char *path, uint32_t mode, cx_err *err)
{
    char part[CX_PATH_BYTES_MAX + 1];
    CX_TRY(check_size(path, err));
    size_t size = strlen(path);
    for (size_t end = 1; end <= size; end++) {
        if (path[end] != '/' && path[end] != '\0')
            continue;
        place p;
        memcpy(part, path, end);
        part[end] = '\0';
        CX_TRY(place_find(folder, part, &p, err));
        bool made = mkdirat(p.folder, p.name, (mode_t)mode) == 0 || errno == EEXIST;
        CX_TRY(place_end(&p, made, "make the folder", part, err));
    }
    cx_facts facts;
    CX_TRY(cx_folder_facts(folder, path, &facts, err));
    return facts.kind == CX_FILE_FOLDER
               ? CX_SUCCESS
               : cx_fail(err, CX_E_EXISTS, "cannot make the folder %s: there is a file", path);
}

cx_status cx_folder_make_link(cx_file folder, const char *target, const char *path, cx_err *err)
{
    place p;
    CX_TRY(place_find(folder, path, &p, err));
    return place_end(&p, symlinkat(target, p.folder, p.name) == 0, "make the link", path, err);
}

cx_status cx_folder_make_hard_link(cx_file folder, const char *from, const char *to, cx_err *err)
{
    place a, b;
    CX_TRY(place_find(folder, from, &a, err));
    cx_status status = place_find(folder, to, &b, err);
    if (cx_failed(status)) {
        place_done(&a);
        return status;
    }
    bool made = linkat(a.folder, a.name, b.folder, b.name, 0) == 0;
    int code = errno;
    place_done(&a);
    errno = code;
    return place_end(&b, made, "make the link", to, err);
}

cx_status cx_folder_make_fifo(cx_file folder, const char *path, cx_err *err)
{
    place p;
    CX_TRY(place_find(folder, path, &p, err));
    return place_end(&p, mkfifoat(p.folder, p.name, 0600) == 0, "make the FIFO", path, err);
}

cx_status cx_folder_rename(cx_file folder, const char *from, const char *to, cx_err *err)
{
    place a, b;
    CX_TRY(place_find(folder, from, &a, err));
    cx_status status = place_find(folder, to, &b, err);
    if (cx_failed(status)) {
        place_done(&a);
        return status;
    }
    bool moved = renameat(a.folder, a.name, b.folder, b.name) == 0;
    int code = errno;
    place_done(&a);
    errno = code;
    return place_end(&b, moved, "rename", from, err);
}

/* fchmodat of this C library follows links: the file is held by an O_PATH descriptor and changed
 * through /proc, which leads to that very file. */
static bool set_mode_at(int folder, const char *name, uint32_t mode)
{
    char through[64];
    struct stat info;
    int file = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return false;
    bool done = fstat(file, &info) == 0;
    if (done && S_ISLNK(info.st_mode)) {
        errno = ELOOP;
        done = false;
    }
    if (done) {
        (void)snprintf(through, sizeof through, "/proc/self/fd/%d", file);
        done = chmod(through, (mode_t)mode) == 0;
    }
    int code = errno;
    close(file);
    errno = code;
    return done;
}

cx_status cx_folder_set_mode(cx_file folder, const char *path, uint32_t mode, cx_err *err)
{
    place p;
    CX_TRY(place_find(folder, path, &p, err));
    return place_end(&p, set_mode_at(p.folder, p.name, mode), "change the mode of", path, err);
}

cx_status cx_path_set_mode(const char *path, uint32_t mode, cx_err *err)
{
    if (chmod(path, (mode_t)mode) != 0)
        return cx_fail_os(err, errno, "cannot change the mode of %s", path);
    return CX_SUCCESS;
}

cx_status cx_folder_touch(cx_file folder, const char *path, cx_err *err)
{
    place p;
    CX_TRY(place_find(folder, path, &p, err));
    bool done = utimensat(p.folder, p.name, NULL, AT_SYMLINK_NOFOLLOW) == 0;
    return place_end(&p, done, "touch", path, err);
}

cx_status cx_folder_remove(cx_file folder, const char *path, cx_err *err)
{
    place p;
    CX_TRY(place_find(folder, path, &p, err));
    bool gone = unlinkat(p.folder, p.name, 0) == 0;
    if (!gone && (errno == EISDIR || errno == EPERM))
        gone = unlinkat(p.folder, p.name, AT_REMOVEDIR) == 0;
    return place_end(&p, gone, "remove", path, err);
}

/* --- removing a tree ------------------------------------------------------------------------- */

/*
 * One descriptor and one name a level, whatever the depth: the way up is "..", checked to be the
 * folder that we came down from.
 */
typedef struct level {
    char name[NAME_MAX + 1]; /* of this folder in the one above */
    dev_t device;
    ino_t inode;
} level;

typedef struct removal {
    int at; /* the folder being emptied */
    CX_VEC(level) levels;
} removal;

/* Removes a file or an empty folder, or finds that it must be gone into: 1. */
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

static int go_down(removal *r, const char *name)
{
    struct stat info;
    const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int file = openat(r->at, name, how);
    /* What its owner closed against himself is opened again, for reading and for removing. */
    if ((file < 0 && errno == EACCES) || (file >= 0 && faccessat(file, ".", W_OK | X_OK, 0) != 0)) {
        if (file >= 0)
            close(file);
        file = set_mode_at(r->at, name, 0700) ? openat(r->at, name, how) : -1;
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

/* Back to the folder above, and removes the one that is empty now. */
static int go_up(removal *r, int top)
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

/* Empties the folder at r->at of what can be removed, or goes into the first that is not empty;
 * *out_down says so. */
static int empty_once(removal *r, bool *out_down)
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
            failed = go_down(r, entry->d_name);
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
    failed = go_down(r, name);
    while (failed == 0 && r->levels.count != 0) {
        bool down;
        failed = empty_once(r, &down);
        if (failed == 0 && !down)
            failed = go_up(r, top);
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
    place p;
    cx_status status = place_find(folder, path, &p, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    int failed = remove_tree_at(p.folder, p.name);
    place_done(&p);
    return failed == 0 ? CX_SUCCESS : fail_path(err, -failed, "remove", path);
}

cx_status cx_path_remove_tree(const char *path, cx_err *err)
{
    char parent[CX_PATH_BYTES_MAX + 1];
    CX_TRY(check_size(path, err));
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

uint32_t cx_user_id(void)
{
    return (uint32_t)geteuid();
}

/* --- flock ------------------------------------------------------------------------------------ */

static uint64_t now_ms(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

cx_status cx_flock_take(const char *path, uint64_t wait_ms, cx_file *out, cx_err *err)
{
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return cx_fail_os(err, errno, "cannot open the lock %s", path);
    uint64_t began = now_ms();
    long nap_ns = 500000;
    while (flock(file, LOCK_EX | LOCK_NB) != 0) {
        int code = errno;
        if (code == EINTR)
            continue;
        if (code != EWOULDBLOCK || now_ms() - began >= wait_ms) {
            close(file);
            return code == EWOULDBLOCK
                       ? cx_fail(err, CX_E_BUSY, "somebody else holds the lock %s", path)
                       : cx_fail_os(err, code, "cannot lock %s", path);
        }
        struct timespec nap = {0, nap_ns};
        (void)nanosleep(&nap, NULL);
        nap_ns = nap_ns < 20000000 ? nap_ns * 2 : nap_ns;
    }
    *out = file;
    return CX_SUCCESS;
}

void cx_flock_release(cx_file file)
{
    cx_folder_close(file);
}

cx_status cx_path_room(const char *path, uint64_t *out_free, uint64_t *out_all, cx_err *err)
{
    struct statfs info;
    if (statfs(path, &info) != 0)
        return cx_fail_os(err, errno, "looking at the file system of %s", path);
    uint64_t block = (uint64_t)info.f_bsize;
    *out_free = (uint64_t)info.f_bavail * block;
    *out_all = (uint64_t)info.f_blocks * block;
    return CX_SUCCESS;
}

/* --- times ------------------------------------------------------------------------------------ */

bool cx_folder_keeps_times(cx_file folder)
{
    /* linux/magic.h: ext2 to ext4, XFS and Btrfs stamp with nanoseconds, at the first write to a
     * page that is mapped too. */
    enum { EXT = 0xEF53, XFS = 0x58465342 };
    const uint32_t btrfs = 0x9123683Eu;
    struct statfs info;
    if (fstatfs(folder, &info) != 0)
        return false;
    uint32_t type = (uint32_t)info.f_type;
    return type == EXT || type == XFS || type == btrfs;
}

int64_t cx_folder_clock_ns(void)
{
    struct timespec now = {0};
    if (clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0)
        return 0; /* then no file is old enough */
    return time_ns(now);
}
