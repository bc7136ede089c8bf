/*
 * folder.c - untrusted folders: opening and reading.
 *
 * Every access goes through cx_folder_beneath: openat2 with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
 * or, on a kernel or in a sandbox without it, one O_NOFOLLOW open per component.
 *
 * Invariants:
 *   I1  no link is followed below a folder that was opened, even if it is changed concurrently;
 *   I2  nothing is left out silently: what cannot be read is an error.
 */
#include "os/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "os/folder_parts.h"
#include "os/system/system.h"

/* --- opening --------------------------------------------------------------------------------- */

/* EXDEV is the error of openat2 for a path that leads outside. */
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
                file = openat(at, name, cx_system_pass_flag | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        int code = errno;
        /* Opening a link as a folder fails with ENOTDIR here, with ELOOP in openat2. */
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

int cx_folder_beneath(int folder, const char *path, int flags, mode_t mode)
{
    if (path[0] == '/') {
        errno = EXDEV;
        return -1;
    }
    if (path[0] == '\0')
        path = ".";
    /* A terminal does not become ours; a flag for passing through allows few others. */
    flags |= (flags & cx_system_pass_flag) != 0 ? O_CLOEXEC : O_CLOEXEC | O_NOCTTY;
    int file;
    if (cx_system_open_beneath(folder, path, flags, mode, &file))
        return file;
    return open_by_component(folder, path, flags, mode);
}

cx_status cx_folder_fail(cx_err *err, int code, const char *what, const char *path)
{
    if (code == ELOOP || code == EXDEV)
        return cx_fail(err, CX_E_DENIED,
                       "cannot %s %s: the path leads through a link or out of its folder", what,
                       path);
    return cx_fail_os(err, code, "cannot %s %s", what, path);
}

cx_status cx_folder_check_path(const char *path, cx_err *err)
{
    if (strnlen(path, CX_PATH_BYTES_MAX + 1) > CX_PATH_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "a path is longer than %d bytes", CX_PATH_BYTES_MAX);
    return CX_SUCCESS;
}

cx_status cx_folder_open(const char *path, cx_file *out, cx_err *err)
{
    CX_TRY(cx_folder_check_path(path, err));
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
    CX_TRY(cx_folder_check_path(path, err));
    if (flags & CX_IO_WRITE)
        how = flags & CX_IO_READ ? O_RDWR : O_WRONLY;
    how |= flags & CX_IO_CREATE ? O_CREAT : 0;
    how |= flags & CX_IO_EXCLUSIVE ? O_EXCL : 0;
    how |= flags & CX_IO_TRUNCATE ? O_TRUNC : 0;
    how |= flags & CX_IO_APPEND ? O_APPEND : 0;
    how |= flags & CX_IO_DIRECTORY ? O_DIRECTORY : 0;
    int file =
        cx_folder_beneath(folder, path, how | O_NONBLOCK, flags & CX_IO_PUBLIC ? 0666 : 0600);
    if (file < 0)
        return cx_folder_fail(err, errno, "open", path);
    *out = file;
    return CX_SUCCESS;
}

void cx_folder_close(cx_file folder)
{
    if (folder != CX_FILE_NONE)
        close(folder);
}

/* --- places ---------------------------------------------------------------------------------- */

cx_status cx_place_find(cx_file folder, const char *path, cx_place *out, cx_err *err)
{
    CX_TRY(cx_folder_check_path(path, err));
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
    int file = cx_folder_beneath(folder, parent, cx_system_pass_flag | O_DIRECTORY, 0);
    if (file < 0)
        return cx_folder_fail(err, errno, "reach", path);
    out->folder = file;
    out->opened = true;
    return CX_SUCCESS;
}

void cx_place_done(const cx_place *p)
{
    if (p->opened)
        close(p->folder);
}

cx_status cx_place_end(const cx_place *p, bool worked, const char *what, const char *path,
                       cx_err *err)
{
    int code = errno;
    cx_place_done(p);
    return worked ? CX_SUCCESS : cx_folder_fail(err, code, what, path);
}

/* --- reading --------------------------------------------------------------------------------- */

void cx_folder_read_facts(const struct stat *info, cx_facts *out)
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
    cx_system_times(info, &out->modified_ns, &out->changed_ns);
}

cx_status cx_folder_facts(cx_file folder, const char *path, cx_facts *out, cx_err *err)
{
    struct stat info;
    cx_place p;
    if (path[0] == '\0' || strcmp(path, ".") == 0)
        return cx_file_facts(folder, out, err);
    CX_TRY(cx_place_find(folder, path, &p, err));
    bool found = fstatat(p.folder, p.name, &info, AT_SYMLINK_NOFOLLOW) == 0;
    CX_TRY(cx_place_end(&p, found, "look at", path, err));
    cx_folder_read_facts(&info, out);
    return CX_SUCCESS;
}

/* --- files elsewhere -------------------------------------------------------------------------- */

static struct {
    const char *prefix;
    const cx_io *io;
} elsewhere;

void cx_path_use_files(const char *prefix, const cx_io *io)
{
    elsewhere.prefix = prefix;
    elsewhere.io = io;
}

static bool is_elsewhere(const char *path)
{
    size_t size = elsewhere.prefix == NULL ? 0 : strlen(elsewhere.prefix);
    return size != 0 && strncmp(path, elsewhere.prefix, size) == 0 &&
           (path[size] == 0 || path[size] == '/');
}

static bool has_a_name(void *arg, const char *name)
{
    (void)name;
    *(bool *)arg = true;
    return false;
}

static cx_status facts_elsewhere(const char *path, cx_facts *out, cx_err *err)
{
    const cx_io *io = elsewhere.io;
    cx_file file;
    bool regular = false, has_names = false;
    /* No times are stored there: what is asked counts as changed just now. */
    *out = (cx_facts){.kind = CX_FILE_REGULAR,
                      .mode = 0600,
                      .link_count = 1,
                      .modified_ns = (int64_t)io->wall_ns(io)};
    int failed = io->open(io, path, CX_IO_READ, &file);
    if (failed == 0) {
        failed = io->size(io, file, &out->size_bytes, &regular);
        (void)io->close(io, file);
        return failed == 0 ? CX_SUCCESS : cx_fail_os(err, -failed, "cannot look at %s", path);
    }
    *out = (cx_facts){.kind = CX_FILE_FOLDER, .mode = 0700, .link_count = 1};
    if (io->list(io, path, has_a_name, &has_names) == 0 && has_names)
        return CX_SUCCESS;
    return cx_fail_os(err, -failed, "cannot look at %s", path);
}

/* --- of a path -------------------------------------------------------------------------------- */

cx_status cx_path_facts(const char *path, bool follow, cx_facts *out, cx_err *err)
{
    struct stat info;
    if (is_elsewhere(path))
        return facts_elsewhere(path, out, err);
    if (fstatat(AT_FDCWD, path, &info, follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0)
        return cx_fail_os(err, errno, "cannot look at %s", path);
    cx_folder_read_facts(&info, out);
    return CX_SUCCESS;
}

cx_status cx_file_facts(cx_file file, cx_facts *out, cx_err *err)
{
    struct stat info;
    if (fstat(file, &info) != 0)
        return cx_fail_os(err, errno, "cannot look at an open file");
    cx_folder_read_facts(&info, out);
    return CX_SUCCESS;
}

static cx_status read_opened(int file, const char *path, size_t limit_bytes, cx_buf *out,
                             cx_err *err)
{
    cx_facts facts = {0};
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
    CX_TRY(cx_folder_check_path(path, err));
    int file = cx_folder_beneath(folder, path, O_RDONLY | O_NONBLOCK, 0);
    if (file < 0)
        return cx_folder_fail(err, errno, "open", path);
    cx_status status = read_opened(file, path, limit_bytes, out, err);
    close(file);
    return status;
}

cx_status cx_folder_read_link(cx_file folder, const char *path, cx_buf *out, cx_err *err)
{
    char target[CX_PATH_BYTES_MAX + 1];
    cx_place p;
    CX_TRY(cx_place_find(folder, path, &p, err));
    ssize_t size = readlinkat(p.folder, p.name, target, sizeof target);
    CX_TRY(cx_place_end(&p, size >= 0, "read the link", path, err));
    if ((size_t)size > CX_PATH_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "the target of the link %s is too long", path);
    cx_buf_add(out, target, (size_t)size);
    return cx_buf_check(out, err);
}

cx_status cx_path_real(const char *path, cx_buf *out, cx_err *err)
{
    if (is_elsewhere(path)) {
        cx_facts facts;
        CX_TRY(facts_elsewhere(path, &facts, err));
        cx_buf_add_z(out, path);
        return cx_buf_check(out, err);
    }
    char *real = realpath(path, NULL);
    if (real == NULL)
        return cx_fail_os(err, errno, "cannot resolve %s", path);
    cx_buf_add_z(out, real);
    free(real);
    return cx_buf_check(out, err);
}

cx_status cx_folder_list(cx_file folder, const char *path, cx_io_name *name, void *arg, cx_err *err)
{
    CX_TRY(cx_folder_check_path(path, err));
    int file = cx_folder_beneath(folder, path, O_RDONLY | O_DIRECTORY, 0);
    if (file < 0)
        return cx_folder_fail(err, errno, "open the folder", path);
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

cx_status cx_flock_acquire(const char *path, uint64_t wait_ms, cx_file *out, cx_err *err)
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
                       ? cx_fail(err, CX_E_BUSY, "another process holds the lock %s", path)
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

cx_status cx_path_space(const char *path, uint64_t *out_free, uint64_t *out_all, cx_err *err)
{
    return cx_system_space(path, out_free, out_all)
               ? CX_SUCCESS
               : cx_fail_os(err, errno, "looking at the file system of %s", path);
}

/* --- times ------------------------------------------------------------------------------------ */

bool cx_folder_keeps_times(cx_file folder)
{
    return cx_system_keeps_times(folder);
}

int64_t cx_folder_clock_ns(void)
{
    return cx_system_file_clock_ns();
}
