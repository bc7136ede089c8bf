/*
 * unpack.c - a tar archive of a backup, unpacked into a new folder.
 *
 * ustar (POSIX), blocks of 512 bytes; of a header this reads
 *     0 name[100]   124 size[12], octal   148 checksum[8]   156 type   257 "ustar"   345
 *     prefix[155]
 *
 *   U1  Only files that a backup has get a name, below the folder, and each once.
 *   U2  Links, devices and paths that lead out of the folder make the whole archive refused.
 *   U3  Sizes are compared with what is free before they are written.
 */
#include "ledger/backup/unpack.h"

#include <string.h>

#include "ledger/backup/backup_parts.h"
#include "os/api.h"

enum { NAME_SIZE = 100, SIZE_AT = 124, SUM_AT = 148, KIND_AT = 156, MAGIC_AT = 257 };
enum { PREFIX_AT = 345, PREFIX_SIZE = 155, STEP_BLOCKS = 512 };

/* --- headers ---------------------------------------------------------------------------------- */

/* Octal digits between blanks and zeros; false for anything else. */
static bool read_octal(const uint8_t *at, size_t size, uint64_t *out)
{
    size_t i = 0;
    uint64_t value = 0;
    while (i < size && at[i] == ' ')
        i++;
    size_t digits = i;
    for (; i < size && at[i] >= '0' && at[i] <= '7'; i++)
        value = value << 3 | (uint64_t)(at[i] - '0');
    if (i == digits)
        return false;
    for (; i < size; i++)
        if (at[i] != 0 && at[i] != ' ')
            return false;
    *out = value;
    return true;
}

static bool is_zero(const uint8_t block[CX_TAR_BLOCK])
{
    return block[0] == 0 && memcmp(block, block + 1, CX_TAR_BLOCK - 1) == 0;
}

static bool sum_is_right(const uint8_t block[CX_TAR_BLOCK])
{
    uint64_t written, sum = 0;
    for (size_t i = 0; i < CX_TAR_BLOCK; i++)
        sum += i >= SUM_AT && i < KIND_AT ? ' ' : block[i];
    return read_octal(block + SUM_AT, KIND_AT - SUM_AT, &written) && written == sum;
}

static size_t text_size(const uint8_t *at, size_t size)
{
    const uint8_t *end = memchr(at, 0, size);
    return end == NULL ? size : (size_t)(end - at);
}

static cx_tar_kind kind_of(uint8_t type)
{
    switch (type) {
    case 0:
    case '0': return CX_TAR_FILE;
    case '1':
    case '2': return CX_TAR_LINK;
    case '3':
    case '4':
    case '6': return CX_TAR_SPECIAL;
    case '5': return CX_TAR_FOLDER;
    case 'x':
    case 'g': return CX_TAR_EXTENSION;
    default: return CX_TAR_OTHER;
    }
}

void cx_tar_header_parse(const uint8_t block[CX_TAR_BLOCK], cx_tar_header *out)
{
    *out = (cx_tar_header){.kind = is_zero(block) ? CX_TAR_END : CX_TAR_BAD};
    if (out->kind == CX_TAR_END || memcmp(block + MAGIC_AT, "ustar", 5) != 0 ||
        !sum_is_right(block) ||
        !read_octal(block + SIZE_AT, SUM_AT - 12 - SIZE_AT, &out->size_bytes))
        return;
    size_t prefix = text_size(block + PREFIX_AT, PREFIX_SIZE), name = text_size(block, NAME_SIZE);
    if (block[MAGIC_AT + 5] != 0)
        prefix = 0; /* GNU's older form has times there */
    memcpy(out->name, block + PREFIX_AT, prefix);
    if (prefix != 0)
        out->name[prefix++] = '/';
    memcpy(out->name + prefix, block, name);
    out->kind = kind_of(block[KIND_AT]);
    if (out->kind == CX_TAR_FOLDER)
        out->size_bytes = 0;
}

static bool has_dots(cx_str path)
{
    size_t start = 0;
    for (size_t i = 0; i <= path.size; i++) {
        if (i < path.size && path.data[i] != '/')
            continue;
        if (cx_str_is(cx_str_from(path.data + start, i - start), ".."))
            return true;
        start = i + 1;
    }
    return false;
}

bool cx_tar_path(const cx_tar_header *header, cx_str top, cx_str *out)
{
    cx_str path = cx_str_z(header->name);
    if ((path.size != 0 && path.data[0] == '/') || has_dots(path))
        return false;
    while (path.size >= 2 && path.data[0] == '.' && path.data[1] == '/')
        path = cx_str_from(path.data + 2, path.size - 2);
    if (cx_str_is(path, "."))
        path.size = 0;
    if (top.size != 0) {
        if (path.size < top.size || memcmp(path.data, top.data, top.size) != 0)
            return false;
        path = cx_str_from(path.data + top.size, path.size - top.size);
    }
    while (path.size != 0 && path.data[path.size - 1] == '/')
        path.size--;
    *out = path;
    return true;
}

/* --- unpacking -------------------------------------------------------------------------------- */

typedef struct unpacking {
    const cx_io *io;
    const char *archive;
    cx_file in, folder; /* folder: the one to fill */
    const char *to;
    cx_arena *arena;
    cx_backup_state *state;
    uint8_t *step; /* STEP_BLOCKS blocks */
    uint64_t bytes_left;
    size_t entries, members;   /* the latter without extensions */
    char top[CX_TAR_NAME_MAX]; /* the folder in which all of the archive is, with '/', or "" */
} unpacking;

static cx_status refuse(unpacking *u, const char *reason, cx_str name, const char *what,
                        cx_err *err)
{
    cx_buf shown;
    cx_buf_init(&shown, cx_alloc_default());
    cx_shown_add(&shown, name);
    u->state->verdict = CX_BROKEN;
    u->state->reason = reason;
    u->state->message = cx_arena_printf(u->arena, "%.*s%s%s", (int)shown.size,
                                        shown.size == 0 ? "" : (const char *)shown.data,
                                        shown.size == 0 ? "" : " ", what);
    cx_buf_done(&shown);
    return u->state->message.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static bool refused(const unpacking *u)
{
    return u->state->verdict == CX_BROKEN;
}

/* Exactly `size` bytes; false when the archive ends before. */
static cx_status read_exactly(unpacking *u, void *data, size_t size, bool *out_there, cx_err *err)
{
    size_t got = 0;
    CX_TRY(cx_io_read_some(u->io, u->in, u->archive, data, size, &got, err));
    *out_there = got == size;
    return *out_there ? CX_SUCCESS
                      : refuse(u, "ArchiveDamaged", CX_STR(""), "the archive ends early", err);
}

/* Passes the contents of an entry to `file`, or over them (CX_FILE_NONE). */
static cx_status copy_contents(unpacking *u, uint64_t size, cx_file file, const char *path,
                               cx_err *err)
{
    bool there = true;
    uint64_t at = 0;
    while (at < size) {
        uint64_t left = size - at, most = (uint64_t)STEP_BLOCKS * CX_TAR_BLOCK;
        size_t want = left < most ? (size_t)left : (size_t)most;
        size_t padded = (want + CX_TAR_BLOCK - 1) / CX_TAR_BLOCK * CX_TAR_BLOCK;
        CX_TRY(read_exactly(u, u->step, padded, &there, err));
        if (!there)
            return CX_SUCCESS;
        if (file != CX_FILE_NONE)
            CX_TRY(cx_io_write_at(u->io, file, path, u->step, want, at, err));
        at += want;
    }
    return CX_SUCCESS;
}

/* U1, U3 */
static cx_status unpack_file(unpacking *u, const cx_tar_header *header, cx_str path, cx_err *err)
{
    cx_file file;
    cx_str name = cx_arena_printf(u->arena, "%.*s", (int)path.size, path.data);
    if (name.data == NULL)
        return cx_fail_nomem(err);
    if (header->size_bytes > CX_BACKUP_SEGMENT_FILE_MAX)
        return refuse(u, "UnsafeFile", path, "is longer than any file of a backup", err);
    if (header->size_bytes > u->bytes_left)
        return cx_fail_at(err, CX_E_IO, "NoSpace", CX_NO_OFFSET,
                          "%s of the archive has %llu bytes; %llu are free for %s", name.data,
                          (unsigned long long)header->size_bytes, (unsigned long long)u->bytes_left,
                          u->to);
    u->bytes_left -= header->size_bytes;
    cx_err why = {0};
    cx_status status = cx_folder_open_in(u->folder, name.data,
                                         CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE, &file, &why);
    if (status.code == CX_E_EXISTS)
        return refuse(u, "UnsafeFile", path, "is in the archive twice", err);
    if (cx_failed(status)) {
        if (err != NULL)
            *err = why;
        return status;
    }
    status = copy_contents(u, header->size_bytes, file, name.data, err);
    int failed = u->io->close(u->io, file);
    if (!cx_failed(status) && failed != 0)
        return cx_fail_os(err, -failed, "cannot close %s", name.data);
    return status;
}

/* "copy/" when the first entry is a folder that no backup has: all others are in it. */
static void find_top(unpacking *u, const cx_tar_header *header)
{
    cx_str path;
    if (u->members != 1 || header->kind != CX_TAR_FOLDER ||
        !cx_tar_path(header, CX_STR(""), &path) || path.size == 0 ||
        path.size + 2 > sizeof u->top || memchr(path.data, '/', path.size) != NULL ||
        cx_str_is(path, "log") || cx_str_is(path, "keys"))
        return;
    memcpy(u->top, path.data, path.size);
    u->top[path.size] = '/';
}

static cx_status unpack_entry(unpacking *u, const cx_tar_header *header, cx_err *err)
{
    cx_str path, name = cx_str_z(header->name);
    u->entries++;
    if (header->kind != CX_TAR_EXTENSION)
        u->members++;
    find_top(u, header);
    if (u->entries > CX_BACKUP_ENTRIES_MAX)
        return refuse(u, "UnsafeFile", CX_STR(""), "the archive has too many entries", err);
    if (header->kind == CX_TAR_BAD)
        return refuse(u, "ArchiveDamaged", CX_STR(""),
                      "this is no tar archive, or a header in it is damaged", err);
    if (header->kind == CX_TAR_EXTENSION)
        return copy_contents(u, header->size_bytes, CX_FILE_NONE, u->archive, err);
    if (header->kind == CX_TAR_LINK || header->kind == CX_TAR_SPECIAL)
        return refuse(u, "UnsafeFile", name, "is a link, a device or a FIFO", err);
    if (header->kind == CX_TAR_OTHER)
        return refuse(u, "UnsafeFile", name,
                      "is of a kind that no backup needs; expected an archive of plain files", err);
    if (!cx_tar_path(header, cx_str_z(u->top), &path))
        return refuse(u, "UnsafeFile", name, "leads out of the backup's folder", err);
    if (header->kind == CX_TAR_FOLDER)
        return CX_SUCCESS;
    if (cx_backup_is_file(path))
        return unpack_file(u, header, path, err);
    u->state->other_count++;
    return copy_contents(u, header->size_bytes, CX_FILE_NONE, u->archive, err);
}

static cx_status unpack_all(unpacking *u, cx_err *err)
{
    uint8_t block[CX_TAR_BLOCK];
    cx_tar_header header;
    bool there = true;
    while (!refused(u)) {
        CX_TRY(read_exactly(u, block, sizeof block, &there, err));
        if (!there)
            return CX_SUCCESS;
        cx_tar_header_parse(block, &header);
        if (header.kind == CX_TAR_END)
            return CX_SUCCESS;
        CX_TRY(unpack_entry(u, &header, err));
    }
    return CX_SUCCESS;
}

static cx_status prepare_folder(unpacking *u, cx_err *err)
{
    uint64_t all;
    int failed = u->io->mkdir(u->io, u->to);
    if (failed != 0)
        return cx_fail_os(err, -failed, "making the folder %s", u->to);
    CX_TRY(cx_path_space(u->to, &u->bytes_left, &all, err));
    CX_TRY(cx_folder_open(u->to, &u->folder, err));
    CX_TRY(cx_folder_make_folders(u->folder, "log", 0700, err));
    return cx_folder_make_folders(u->folder, "keys", 0700, err);
}

cx_status cx_backup_unpack(const char *archive, const char *to, const cx_home_options *options,
                           cx_arena *arena, cx_backup_state *out, cx_err *err)
{
    unpacking u = {.io = options->io != NULL ? options->io : cx_io_system(),
                   .archive = archive,
                   .in = CX_FILE_STDIN,
                   .folder = CX_FILE_NONE,
                   .to = to,
                   .arena = arena,
                   .state = out};
    cx_status status = CX_SUCCESS;
    *out = (cx_backup_state){.verdict = CX_HOLDS};
    u.step = cx_arena_push(arena, (size_t)STEP_BLOCKS * CX_TAR_BLOCK, 1);
    if (u.step == NULL)
        return cx_fail_nomem(err);
    if (strcmp(archive, "-") != 0) {
        int failed = u.io->open(u.io, archive, CX_IO_READ, &u.in);
        if (failed != 0)
            return cx_fail_os(err, -failed, "cannot open %s", archive);
    }
    CX_TRY_GOTO(status, prepare_folder(&u, err));
    CX_TRY_GOTO(status, unpack_all(&u, err));
done:
    cx_folder_close(u.folder);
    if (u.in != CX_FILE_STDIN)
        (void)u.io->close(u.io, u.in);
    return status;
}
