/*
 * archived_folder.c - the names of archives in a log's folder and the other one; making an archive
 * of a segment and a segment of an archive.
 *
 * Both are written under a working name, synced, compared with what they were made of, and named;
 * then the folder is synced, and only then what they were made of is removed.  At each moment one
 * of the two is whole.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/archived_internal.h"
#include "os/api.h"

#define FOLDER_TEXT_MAX 4000

static const char where_name[] = "archive", ending[] = ".zst";
/* An archive that is replaced, or a segment that comes back; a segment that is packed. */
static const char working_name[] = "archiving", packing_name[] = "packing";

/* --- names --------------------------------------------------------------------------------- */

bool cx_archive_path(char out[CX_ARCHIVE_PATH_SIZE], const char *folder, const char *name,
                     bool archived)
{
    int size = snprintf(out, CX_ARCHIVE_PATH_SIZE, "%s/%s%s", folder, name, archived ? ending : "");
    return size > 0 && size < CX_ARCHIVE_PATH_SIZE;
}

const char *cx_archive_last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* The working name is shorter than those of archives. */
void cx_archive_working_path(char out[CX_ARCHIVE_PATH_SIZE], const char *path)
{
    int size = snprintf(out, CX_ARCHIVE_PATH_SIZE, "%.*s%s",
                        (int)(cx_archive_last_name(path) - path), path, working_name);
    CX_ASSERT(size > 0 && size < CX_ARCHIVE_PATH_SIZE);
}

static void packing_path(char out[CX_ARCHIVE_PATH_SIZE], const char *path)
{
    int size = snprintf(out, CX_ARCHIVE_PATH_SIZE, "%.*s%s",
                        (int)(cx_archive_last_name(path) - path), path, packing_name);
    CX_ASSERT(size > 0 && size < CX_ARCHIVE_PATH_SIZE);
}

static bool is_archive(const char *name)
{
    return cx_str_ends(cx_str_z(name), CX_STR(".seg.zst"));
}

/* Where archives are written. */
static const char *target(const cx_archives *archives)
{
    const char *elsewhere = cx_archives_elsewhere(archives);
    return elsewhere[0] != 0 ? elsewhere : archives->folder;
}

cx_status cx_archive_name(const cx_archives *archives, const char *working, const char *path,
                          cx_err *err)
{
    char folder[CX_ARCHIVE_PATH_SIZE];
    int failed = archives->under->rename(archives->under, working, path);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot rename %s to %s", working, path);
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(cx_archive_last_name(path) - path), path);
    return cx_io_sync_folder(archives->under, folder, err);
}

static int destroy_and_unlink(const cx_archives *archives, const char *path)
{
    cx_file file;
    int failed = archives->under->open(archives->under, path, CX_IO_READ | CX_IO_WRITE, &file);
    if (failed != 0)
        return failed == -ENOENT ? 0 : failed;
    /* The name goes first: what opens the file from here on gets the other one. */
    failed = archives->under->unlink(archives->under, path);
    if (failed == 0 && cx_failed(cx_archive_destroy(archives->under, path, file, NULL)))
        failed = -EIO;
    (void)archives->under->close(archives->under, file);
    return failed;
}

int cx_archives_remove(const cx_archives *archives, const char *name)
{
    const char *folders[] = {archives->folder, cx_archives_elsewhere(archives)};
    int failed = 0;
    for (size_t i = 0; i < CX_COUNT_OF(folders) && failed == 0; i++) {
        char path[CX_ARCHIVE_PATH_SIZE];
        if (folders[i][0] == 0)
            continue;
        failed = cx_archive_path(path, folders[i], name, true) ? destroy_and_unlink(archives, path)
                                                               : -ENAMETOOLONG;
    }
    return failed;
}

static cx_status discard_file(const cx_archives *archives, const char *folder, const char *name,
                              cx_err *err)
{
    char path[CX_ARCHIVE_PATH_SIZE];
    if (!cx_archive_path(path, folder, name, false))
        return cx_fail(err, CX_E_LIMIT, "path too long: %s", folder);
    int failed = destroy_and_unlink(archives, path);
    return failed == 0
               ? CX_SUCCESS
               : cx_fail_os(err, -failed,
                            "cannot overwrite %s, which has a copy of what is in a segment", path);
}

cx_status cx_archives_discard(cx_archives *archives, cx_err *err)
{
    const char *folders[] = {archives->folder, cx_archives_elsewhere(archives)};
    for (size_t i = 0; i < CX_COUNT_OF(folders); i++) {
        if (folders[i][0] == 0)
            continue;
        CX_TRY(discard_file(archives, folders[i], working_name, err));
        CX_TRY(discard_file(archives, folders[i], packing_name, err));
    }
    return CX_SUCCESS;
}

/* --- listing ------------------------------------------------------------------------------- */

typedef struct names {
    const cx_archives *archives;
    CX_VEC(char *) archived; /* without the ending */
    CX_VEC(char *) plain;
    bool failed;
    bool elsewhere; /* only archives are of interest */
} names;

static bool keep_name(void *arg, const char *name)
{
    names *n = arg;
    bool archive = is_archive(name);
    if (n->elsewhere && !archive)
        return true;
    size_t size = strlen(name) - (archive ? sizeof ending - 1 : 0);
    char *copy = cx_alloc_new(n->archives->alloc, size + 1);
    char **slot = copy == NULL ? NULL
                  : archive    ? cx_vec_push(&n->archived, n->archives->alloc)
                               : cx_vec_push(&n->plain, n->archives->alloc);
    if (slot == NULL) {
        cx_alloc_free(n->archives->alloc, copy, size + 1);
        n->failed = true;
        return false;
    }
    memcpy(copy, name, size);
    copy[size] = 0;
    *slot = copy;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool has_name(char *const *sorted, size_t count, const char *name)
{
    return count != 0 && bsearch(&name, sorted, count, sizeof *sorted, by_name) != NULL;
}

/* Each name once, an archive under its segment's. */
static void give_names(const names *n, cx_io_name *name, void *arg)
{
    bool more = true;
    for (size_t i = 0; i < n->plain.count && more; i++)
        more = name(arg, n->plain.items[i]);
    for (size_t i = 0; i < n->archived.count && more; i++) {
        bool again = i > 0 && strcmp(n->archived.items[i], n->archived.items[i - 1]) == 0;
        if (!again && !has_name(n->plain.items, n->plain.count, n->archived.items[i]))
            more = name(arg, n->archived.items[i]);
    }
}

static void free_names(names *n)
{
    for (size_t i = 0; i < n->archived.count; i++)
        cx_alloc_free(n->archives->alloc, n->archived.items[i], strlen(n->archived.items[i]) + 1);
    for (size_t i = 0; i < n->plain.count; i++)
        cx_alloc_free(n->archives->alloc, n->plain.items[i], strlen(n->plain.items[i]) + 1);
    cx_vec_done(&n->archived, n->archives->alloc);
    cx_vec_done(&n->plain, n->archives->alloc);
}

static int read_names(cx_archives *archives, names *n)
{
    if (cx_failed(cx_archives_read_elsewhere(archives, NULL)))
        return -EIO;
    const char *elsewhere = cx_archives_elsewhere(archives);
    int failed = archives->under->list(archives->under, archives->folder, keep_name, n);
    n->elsewhere = true;
    if (failed == 0 && elsewhere[0] != 0)
        failed = archives->under->list(archives->under, elsewhere, keep_name, n);
    if (failed == 0 && n->failed)
        failed = -ENOMEM;
    if (n->plain.count > 1)
        qsort(n->plain.items, n->plain.count, sizeof *n->plain.items, by_name);
    if (n->archived.count > 1)
        qsort(n->archived.items, n->archived.count, sizeof *n->archived.items, by_name);
    return failed;
}

int cx_archives_list(cx_archives *archives, cx_io_name *name, void *arg)
{
    names n = {.archives = archives};
    int failed = read_names(archives, &n);
    if (failed == 0)
        give_names(&n, name, arg);
    free_names(&n);
    return failed;
}

/* --- the other folder ---------------------------------------------------------------------- */

static bool note_archive(void *arg, const char *name)
{
    bool *found = arg;
    *found = *found || is_archive(name);
    return !*found;
}

static cx_status has_archives(const cx_archives *archives, const char *folder, bool *out,
                              cx_err *err)
{
    *out = false;
    int failed = archives->under->list(archives->under, folder, note_archive, out);
    if (failed == 0)
        return CX_SUCCESS;
    if (folder == archives->folder)
        return cx_fail_os(err, -failed, "cannot list %s", folder);
    return cx_fail_at(err, CX_E_IO, "ArchiveMissing", CX_NO_OFFSET,
                      "segments of %s are archived in %s, which cannot be listed (%s); mount it "
                      "there, or write where it is now into %s/%s",
                      archives->folder, folder, strerror(-failed), archives->folder, where_name);
}

static cx_status set_elsewhere(cx_archives *archives, cx_str folder, cx_err *err)
{
    if (cx_str_eq(cx_str_z(cx_archives_elsewhere(archives)), folder))
        return CX_SUCCESS;
    char *copy = cx_alloc_new(archives->alloc, folder.size + 1);
    cx_lock_enter(&archives->lock);
    char **slot = copy == NULL ? NULL : cx_vec_push(&archives->known, archives->alloc);
    if (slot != NULL) {
        memcpy(copy, folder.data, folder.size);
        copy[folder.size] = 0;
        *slot = copy;
        atomic_store(&archives->elsewhere, copy);
    }
    cx_lock_leave(&archives->lock);
    if (slot != NULL)
        return CX_SUCCESS;
    cx_alloc_free(archives->alloc, copy, folder.size + 1);
    return cx_fail_nomem(err);
}

/* One line, an absolute path. */
static cx_status take_elsewhere(cx_archives *archives, cx_str text, const char *path, cx_err *err)
{
    if (text.size != 0 && text.data[text.size - 1] == '\n')
        text.size--;
    if (text.size == 0 || text.size > FOLDER_TEXT_MAX || text.data[0] != '/' ||
        memchr(text.data, 0, text.size) != NULL || memchr(text.data, '\n', text.size) != NULL)
        return cx_fail(err, CX_E_FORMAT, "%s: expected one line, the absolute path of a folder",
                       path);
    return set_elsewhere(archives, text, err);
}

cx_status cx_archives_read_elsewhere(cx_archives *archives, cx_err *err)
{
    char path[CX_ARCHIVE_PATH_SIZE];
    cx_buf text;
    if (!cx_archive_path(path, archives->folder, where_name, false))
        return cx_fail(err, CX_E_LIMIT, "path too long: %s", archives->folder);
    cx_buf_init(&text, archives->alloc);
    cx_status status = cx_io_read_file(archives->under, path, CX_ARCHIVE_PATH_SIZE, &text, err);
    if (status.code == CX_E_NOT_FOUND)
        status = CX_SUCCESS;
    else if (status.code == CX_E_LIMIT)
        status = cx_fail(err, CX_E_FORMAT, "%s: expected one line of up to %d bytes", path,
                         FOLDER_TEXT_MAX);
    else if (!cx_failed(status))
        status = take_elsewhere(archives, cx_buf_str(&text), path, err);
    cx_buf_done(&text);
    return status;
}

cx_status cx_archives_find(cx_archives *archives, cx_err *err)
{
    bool here, there = false;
    CX_TRY(cx_archives_read_elsewhere(archives, err));
    CX_TRY(has_archives(archives, archives->folder, &here, err));
    const char *elsewhere = cx_archives_elsewhere(archives);
    if (elsewhere[0] != 0)
        CX_TRY(has_archives(archives, elsewhere, &there, err));
    return here || there ? cx_zstd_load(err) : CX_SUCCESS;
}

cx_status cx_archives_move(cx_archives *archives, const char *folder, cx_err *err)
{
    char path[CX_ARCHIVE_PATH_SIZE], line[CX_ARCHIVE_PATH_SIZE];
    const char *present = cx_archives_elsewhere(archives);
    bool used = false;
    if (strcmp(folder, present) == 0)
        return CX_SUCCESS;
    if (present[0] != 0)
        CX_TRY(has_archives(archives, present, &used, err));
    if (used)
        return cx_fail(
            err, CX_E_USAGE,
            "archives are in %s already; bring them back first, then name another folder", present);
    if (folder[0] != 0)
        CX_TRY(has_archives(archives, folder, &used, err));
    if (used)
        return cx_fail(err, CX_E_USAGE, "%s has archives of a log: name a folder of this log's own",
                       folder);
    int size = snprintf(line, sizeof line, "%s\n", folder);
    if (size < 0 || (size_t)size > FOLDER_TEXT_MAX ||
        !cx_archive_path(path, archives->folder, where_name, false))
        return cx_fail(err, CX_E_LIMIT, "path too long: %s", folder);
    if (folder[0] != 0) {
        CX_TRY(cx_io_replace_file(archives->under, path, cx_bytes_from(line, (size_t)size), err));
    } else {
        int failed = archives->under->unlink(archives->under, path);
        if (failed != 0)
            return cx_fail_os(err, -failed, "cannot remove %s", path);
        CX_TRY(cx_io_sync_folder(archives->under, archives->folder, err));
    }
    return set_elsewhere(archives, cx_str_z(folder), err);
}

/* --- a segment and its archive ------------------------------------------------------------- */

/* The path of the archive of a segment, where there is one. */
static cx_status open_existing(const cx_archives *archives, const char *name,
                               char path[CX_ARCHIVE_PATH_SIZE], cx_archive *out, cx_err *err)
{
    const char *folders[] = {archives->folder, cx_archives_elsewhere(archives)};
    int failed = -ENOENT;
    for (size_t i = 0; i < CX_COUNT_OF(folders) && failed == -ENOENT; i++) {
        if (folders[i][0] == 0)
            continue;
        if (!cx_archive_path(path, folders[i], name, true))
            return cx_fail(err, CX_E_LIMIT, "path too long: %s", folders[i]);
        failed = cx_archive_open(archives->under, archives->alloc, path, CX_IO_READ, out);
    }
    return failed == 0 ? CX_SUCCESS : cx_fail_os(err, -failed, "cannot open %s", path);
}

cx_status cx_archives_sizes(cx_archives *archives, const char *name, cx_archive_sizes *out,
                            cx_err *err)
{
    char path[CX_ARCHIVE_PATH_SIZE], here[CX_ARCHIVE_PATH_SIZE];
    cx_archive archive;
    CX_TRY(open_existing(archives, name, path, &archive, err));
    *out = (cx_archive_sizes){.unpacked = archive.size,
                              .packed = archive.file_size,
                              .elsewhere = !cx_archive_path(here, archives->folder, name, true) ||
                                           strcmp(path, here) != 0};
    cx_archive_close(archives->under, archives->alloc, &archive);
    return CX_SUCCESS;
}

/* A segment that is packed or unpacked, a block at a time. */
typedef struct job {
    const cx_archives *archives;
    char segment[CX_ARCHIVE_PATH_SIZE];
    char archive[CX_ARCHIVE_PATH_SIZE];
    char working[CX_ARCHIVE_PATH_SIZE];
    cx_file file; /* of the segment */
    uint64_t size;
    uint8_t *block; /* of the segment */
    uint8_t *other; /* of the archive */
    cx_buf scratch;
    const cx_archive_pace *pace; /* NULL = without a pause */
    bool stopped;                /* because it said so */
} job;

static void end_job(job *j)
{
    const cx_archives *archives = j->archives;
    if (j->file != CX_FILE_NONE)
        (void)archives->under->close(archives->under, j->file);
    j->file = CX_FILE_NONE;
    cx_alloc_free(archives->alloc, j->block, CX_ARCHIVE_BLOCK);
    cx_alloc_free(archives->alloc, j->other, CX_ARCHIVE_BLOCK);
    cx_buf_done(&j->scratch);
}

static cx_status begin_job(job *j, const cx_archives *archives, const char *name, cx_err *err)
{
    *j = (job){.archives = archives, .file = CX_FILE_NONE};
    cx_buf_init(&j->scratch, archives->alloc);
    j->block = cx_alloc_new(archives->alloc, CX_ARCHIVE_BLOCK);
    j->other = cx_alloc_new(archives->alloc, CX_ARCHIVE_BLOCK);
    if (j->block == NULL || j->other == NULL)
        return cx_fail_nomem(err);
    if (!cx_archive_path(j->segment, archives->folder, name, false) ||
        !cx_archive_path(j->archive, target(archives), name, true))
        return cx_fail(err, CX_E_LIMIT, "path too long: %s", archives->folder);
    return CX_SUCCESS;
}

/* The same open file reads what a sync has written; what is not on the disk is seen all the
 * same. */
static cx_status open_segment(job *j, cx_err *err)
{
    const cx_io *io = j->archives->under;
    bool regular;
    int failed = io->open(io, j->segment, CX_IO_READ, &j->file);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot open %s", j->segment);
    failed = io->size(io, j->file, &j->size, &regular);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot ask for the size of %s", j->segment);
    return CX_SUCCESS;
}

static cx_status read_segment_block(job *j, uint64_t offset, size_t *out_size, cx_err *err)
{
    size_t wanted =
        j->size - offset < CX_ARCHIVE_BLOCK ? (size_t)(j->size - offset) : CX_ARCHIVE_BLOCK;
    CX_TRY(cx_io_read_at(j->archives->under, j->file, j->segment, j->block, wanted, offset,
                         out_size, err));
    return *out_size == wanted
               ? CX_SUCCESS
               : cx_fail(err, CX_E_FORMAT, "%s ended while it was read", j->segment);
}

static bool goes_on(job *j)
{
    j->stopped = j->stopped || (j->pace != NULL && !j->pace->go_on(j->pace->arg));
    return !j->stopped;
}

static cx_status pack_segment(job *j, cx_err *err)
{
    cx_archive_writer writer;
    cx_status status =
        cx_archive_begin(&writer, j->archives->under, j->archives->alloc, j->working, err);
    for (uint64_t at = 0; !cx_failed(status) && at < j->size && goes_on(j);
         at += CX_ARCHIVE_BLOCK) {
        size_t size = 0;
        status = read_segment_block(j, at, &size, err);
        if (!cx_failed(status))
            status = cx_archive_add(&writer, (cx_bytes){j->block, size}, err);
    }
    if (!cx_failed(status) && !j->stopped)
        status = cx_archive_end(&writer, err);
    cx_archive_writer_done(&writer);
    return status;
}

/* Holds each block of the segment against the archive at `path`; a stop leaves it open. */
static cx_status compare(job *j, const char *path, cx_archive_sizes *out, cx_err *err)
{
    const cx_archives *archives = j->archives;
    cx_archive archive;
    int failed = cx_archive_open(archives->under, archives->alloc, path, CX_IO_READ, &archive);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot open %s", path);
    cx_status status = CX_SUCCESS;
    bool same = archive.size == j->size;
    *out = (cx_archive_sizes){.unpacked = archive.size, .packed = archive.file_size};
    for (uint32_t block = 0; same && block < archive.blocks && !cx_failed(status) && goes_on(j);
         block++) {
        size_t size = 0;
        bool whole;
        status = read_segment_block(j, (uint64_t)block * CX_ARCHIVE_BLOCK, &size, err);
        if (cx_failed(status))
            break;
        failed =
            cx_archive_read_block(archives->under, &archive, block, &j->scratch, j->other, &whole);
        if (failed != 0)
            status = cx_fail_os(err, -failed, "cannot read %s", path);
        same = whole && memcmp(j->block, j->other, size) == 0;
    }
    cx_archive_close(archives->under, archives->alloc, &archive);
    if (!cx_failed(status) && !same)
        status =
            cx_fail(err, CX_E_FORMAT, "%s does not unpack to what is in %s; nothing was removed",
                    path, j->segment);
    return status;
}

static cx_status remove_segment(const job *j, cx_err *err)
{
    int failed = destroy_and_unlink(j->archives, j->segment);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot remove %s", j->segment);
    return cx_io_sync_folder(j->archives->under, j->archives->folder, err);
}

cx_status cx_archives_pack(cx_archives *archives, const char *name, const cx_archive_pace *pace,
                           cx_archive_sizes *out, bool *out_stopped, cx_err *err)
{
    job j;
    cx_status status;
    CX_TRY_GOTO(status, begin_job(&j, archives, name, err));
    j.pace = pace;
    packing_path(j.working, j.archive);
    CX_TRY_GOTO(status, open_segment(&j, err));
    CX_TRY_GOTO(status, pack_segment(&j, err));
    if (!j.stopped)
        CX_TRY_GOTO(status, compare(&j, j.working, out, err));
done:
    *out_stopped = j.stopped;
    end_job(&j);
    return status;
}

cx_status cx_archives_finish(cx_archives *archives, const char *name, cx_err *err)
{
    job j;
    cx_status status;
    CX_TRY_GOTO(status, begin_job(&j, archives, name, err));
    packing_path(j.working, j.archive);
    CX_TRY_GOTO(status, cx_archive_name(archives, j.working, j.archive, err));
    status = remove_segment(&j, err);
done:
    end_job(&j);
    return status;
}

static cx_status unpack_archive(job *j, const cx_archive *archive, cx_err *err)
{
    const cx_io *io = j->archives->under;
    int failed = io->open(io, j->working, CX_IO_READ | CX_IO_WRITE | CX_IO_CREATE | CX_IO_TRUNCATE,
                          &j->file);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot create %s", j->working);
    for (uint32_t block = 0; block < archive->blocks; block++) {
        bool whole;
        failed = cx_archive_read_block(io, archive, block, &j->scratch, j->other, &whole);
        if (failed != 0)
            return cx_fail_os(err, -failed, "cannot read %s", j->archive);
        if (!whole)
            return cx_fail_at(err, CX_E_FORMAT, "LogDamaged", archive->starts[block],
                              "%s is damaged at byte %llu: a block does not unpack", j->archive,
                              (unsigned long long)archive->starts[block]);
        CX_TRY(cx_io_write_at(io, j->file, j->working, j->other,
                              cx_archive_block_size(archive, block),
                              (uint64_t)block * CX_ARCHIVE_BLOCK, err));
    }
    failed = io->sync(io, j->file, false);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot sync %s", j->working);
    j->size = archive->size;
    return CX_SUCCESS;
}

cx_status cx_archives_undo(cx_archives *archives, const char *name, cx_archive_sizes *out,
                           cx_err *err)
{
    job j;
    cx_archive archive = {.file = CX_FILE_NONE};
    cx_status status;
    CX_TRY_GOTO(status, begin_job(&j, archives, name, err));
    CX_TRY_GOTO(status, open_existing(archives, name, j.archive, &archive, err));
    cx_archive_working_path(j.working, j.segment);
    if (archive.blocks == 0)
        CX_TRY_GOTO(status,
                    cx_fail_at(err, CX_E_FORMAT, "LogDamaged", archive.file_size,
                               "%s is damaged: its table is not as it was written", j.archive));
    CX_TRY_GOTO(status, unpack_archive(&j, &archive, err));
    CX_TRY_GOTO(status, compare(&j, j.archive, out, err));
    CX_TRY_GOTO(status, cx_archive_name(archives, j.working, j.segment, err));
    int failed = cx_archives_remove(archives, name);
    if (failed != 0)
        status = cx_fail_os(err, -failed, "cannot remove %s", j.archive);
done:
    cx_archive_close(archives->under, archives->alloc, &archive);
    end_job(&j);
    return status;
}
