/*
 * home_format.c - the file HOME/format.
 *
 * F1  A format above this program's is refused, whatever else the file says.
 * F2  A file that is not such a file is refused, too: what a later version meant by it is not
 *     known.
 */
#include "ledger/backup/home_format.h"

#include <string.h>

#include "json/api.h"

#define ARENA_BYTES 0 /* the default */

bool cx_home_version_ok(cx_str name)
{
    if (name.size == 0 || name.size >= CX_HOME_VERSION_SIZE)
        return false;
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool letter = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && (c == 0 || strchr(".+~-", c) == NULL))
            return false;
    }
    return true;
}

static cx_status parse_members(cx_str text, cx_arena *arena, cx_home_format *out, cx_err *err)
{
    static const char bad[] =
        "found a file 'format' that is not one; expected {\"format\":1,\"written_by\":\"VERSION\"}";
    cx_json value;
    uint64_t number = 0;
    cx_status parsed = cx_json_parse_text(text, arena, &value, NULL);
    if (parsed.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(parsed))
        return cx_fail_at(err, CX_E_FORMAT, "BadFormatFile", CX_NO_OFFSET, "%s", bad);
    const cx_json *member = CX_JSON_GET(&value, "format");
    cx_str version = CX_JSON_GET_STR(&value, "written_by");
    if (member == NULL || !cx_json_uint64(member, &number) || number == 0 ||
        (version.data != NULL && !cx_home_version_ok(version)))
        return cx_fail_at(err, CX_E_FORMAT, "BadFormatFile", CX_NO_OFFSET, "%s", bad);
    *out = (cx_home_format){.number = number};
    if (version.data != NULL)
        memcpy(out->written_by, version.data, version.size);
    return CX_SUCCESS;
}

cx_status cx_home_format_parse(cx_str text, cx_home_format *out, cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), ARENA_BYTES);
    cx_status status = parse_members(text, &arena, out, err);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_home_format_refuse(const cx_home_format *found, const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_UNSUPPORTED, "NewerFormat", CX_NO_OFFSET,
                      "%s has format %llu, written by cortex %s; this is cortex " CX_VERSION
                      ", which reads formats up to %d",
                      what, (unsigned long long)found->number,
                      found->written_by[0] == 0 ? "(unknown)" : found->written_by, CX_HOME_FORMAT);
}

/* HOME/format into `path`; NULL when memory ran out. */
static const char *format_path(const char *home, cx_buf *path)
{
    cx_buf_add_z(path, home);
    cx_buf_add_z(path, "/format");
    return cx_buf_z(path);
}

/* The whole file; positioned reads, because simulated disks have no others. */
static cx_status read_whole(const cx_io *io, const char *path, char *text, size_t *out_size,
                            cx_err *err)
{
    cx_file file;
    int failed = io->open(io, path, CX_IO_READ, &file);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot open %s", path);
    cx_status status =
        cx_io_read_at(io, file, path, text, CX_HOME_FORMAT_BYTES_MAX + 1, 0, out_size, err);
    (void)io->close(io, file);
    CX_TRY(status);
    return *out_size <= CX_HOME_FORMAT_BYTES_MAX
               ? CX_SUCCESS
               : cx_fail_at(err, CX_E_FORMAT, "BadFormatFile", CX_NO_OFFSET,
                            "%s is longer than %d bytes", path, CX_HOME_FORMAT_BYTES_MAX);
}

static cx_status check_file(const cx_io *io, const char *home, const char *path, cx_err *err)
{
    char text[CX_HOME_FORMAT_BYTES_MAX + 1];
    size_t size = 0;
    cx_home_format found;
    cx_err why = {0};
    cx_status status = read_whole(io, path, text, &size, &why);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS; /* made by 0.1 or 0.2 */
    if (!cx_failed(status))
        status = cx_home_format_parse(cx_str_from(text, size), &found, &why);
    if (cx_failed(status)) {
        if (err != NULL)
            *err = why;
        return status;
    }
    return found.number > CX_HOME_FORMAT ? cx_home_format_refuse(&found, home, err) : CX_SUCCESS;
}

cx_status cx_home_format_check(const cx_io *io, const char *path, const cx_alloc *alloc,
                               cx_err *err)
{
    cx_buf name;
    cx_buf_init(&name, alloc);
    const char *file = format_path(path, &name);
    cx_status status = file == NULL ? cx_fail_nomem(err) : check_file(io, path, file, err);
    cx_buf_done(&name);
    return status;
}

static bool exists(const cx_io *io, const char *path)
{
    cx_file file;
    if (io->open(io, path, CX_IO_READ, &file) != 0)
        return false;
    (void)io->close(io, file);
    return true;
}

/* Under a name that is always the same, so that a crash leaves no more than one such file. */
static cx_status write_whole(const cx_io *io, const char *path, cx_bytes text, cx_err *err)
{
    cx_file file;
    int failed =
        io->open(io, path, CX_IO_WRITE | CX_IO_CREATE | CX_IO_TRUNCATE | CX_IO_NO_LINKS, &file);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot create %s", path);
    cx_status status = cx_io_write_at(io, file, path, text.data, text.size, 0, err);
    if (!cx_failed(status) && (failed = io->sync(io, file, false)) != 0)
        status = cx_fail_os(err, -failed, "cannot sync %s", path);
    failed = io->close(io, file);
    if (!cx_failed(status) && failed != 0)
        status = cx_fail_os(err, -failed, "cannot close %s", path);
    return status;
}

static cx_status replace(const cx_io *io, const char *folder, const char *file,
                         const char *temporary, cx_bytes text, cx_err *err)
{
    CX_TRY(write_whole(io, temporary, text, err));
    int failed = io->rename(io, temporary, file);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot rename %s to %s", temporary, file);
    return cx_io_sync_folder(io, folder, err);
}

cx_status cx_home_format_write(const cx_io *io, const char *path, const cx_alloc *alloc,
                               cx_err *err)
{
    cx_buf name, working, text;
    cx_buf_init(&name, alloc);
    cx_buf_init(&working, alloc);
    cx_buf_init(&text, alloc);
    cx_buf_printf(&working, "%s/format.tmp", path);
    cx_buf_printf(&text, "{\"format\":%d,\"written_by\":\"" CX_VERSION "\"}\n", CX_HOME_FORMAT);
    const char *file = format_path(path, &name), *temporary = cx_buf_z(&working);
    cx_status status =
        file == NULL || temporary == NULL ? cx_fail_nomem(err) : cx_buf_check(&text, err);
    if (!cx_failed(status) && !exists(io, file))
        status = replace(io, path, file, temporary, cx_buf_bytes(&text), err);
    cx_buf_done(&name);
    cx_buf_done(&working);
    cx_buf_done(&text);
    return status;
}
