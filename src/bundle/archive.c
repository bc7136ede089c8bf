/*
 * archive.c - a bundle as one compressed ustar file, written and read.
 *
 * ustar (POSIX.1-1988 Tar), blocks of 512 bytes; a header:
 *     0 name[100]   100 mode[8]   108 uid[8]   116 gid[8]   124 size[12]   136 mtime[12]
 *   148 chksum[8]   156 typeflag  157 linkname[100]  257 "ustar\0" "00"  265 uname[32]
 *   297 gname[32]   329 devmajor[8]  337 devminor[8]  345 prefix[155]
 * A path that does not fit into prefix and name is in a pax header ("x", "<n> path=<path>\n")
 * before its file.  Two blocks of zeros end it.  Reading takes exactly what writing makes, in one
 * folder, sorted, no name twice: an archive that another tar wrote is refused with the
 * reason.
 */
#include <stdio.h>

#include "os/api.h"
#include "bundle/archive.h"
#include "bundle/bundle_internal.h"

#define BLOCK 512
#define NAME_SIZE 100
#define PREFIX_SIZE 155
#define PREFIX_AT 345
#define LEVEL 9 /* of zstd */

bool cx_run_bundle_path_fits(cx_str path)
{
    size_t start = 0, depth = 0;
    if (path.size == 0 || path.size > CX_RUN_BUNDLE_PATH_MAX)
        return false;
    for (size_t i = 0; i <= path.size; i++) {
        if (i < path.size && path.data[i] != '/') {
            if ((uint8_t)path.data[i] < 0x20 || path.data[i] == 0x7f)
                return false;
            continue;
        }
        cx_str component = cx_str_from(path.data + start, i - start);
        if (component.size == 0 || cx_str_is(component, ".") || cx_str_is(component, ".."))
            return false;
        start = i + 1;
        depth++;
    }
    return depth <= CX_RUN_BUNDLE_DEPTH_MAX;
}

/* --- unpacking -------------------------------------------------------------------------------- */

/* Frames that do not say how large they are, or say more than the limit, are refused before a byte
 * is unpacked; more than they say cannot come out. */
cx_status cx_run_archive_unpack(cx_bytes archive, cx_buf *out, cx_err *err)
{
    CX_ASSERT(out != NULL);
    uint64_t size;
    cx_status status = cx_zstd_content_size(archive, &size, err);
    if (status.code == CX_E_FORMAT)
        return cx_fail(
            err, CX_E_FORMAT,
            "found no zstd frame that says its size, expected an archive of a run, made by "
            "'run export'");
    CX_TRY(status);
    if (size > CX_RUN_ARCHIVE_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "the archive unpacks to %llu bytes, expected at most %zu",
                       (unsigned long long)size, CX_RUN_ARCHIVE_BYTES_MAX);
    uint8_t *to = cx_buf_reserve(out, (size_t)size + 1);
    if (to == NULL)
        return cx_fail_nomem(err);
    status = cx_zstd_unpack(archive, to, (size_t)size, err);
    if (status.code == CX_E_FORMAT)
        return cx_fail(err, CX_E_FORMAT, "the archive is damaged: zstd cannot unpack it");
    CX_TRY(status);
    cx_buf_advance(out, (size_t)size);
    return CX_SUCCESS;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void put_octal(uint8_t *field, size_t width, uint64_t value)
{
    field[width - 1] = '\0';
    for (size_t i = width - 1; i-- > 0; value >>= 3)
        field[i] = (uint8_t)('0' + (value & 7));
}

/* All that is the same for every file: mode 0444, no owner, the beginning of time. */
static void fill_header(uint8_t header[BLOCK], cx_str prefix, cx_str name, uint64_t size, char type)
{
    uint32_t sum = 0;
    memset(header, 0, BLOCK);
    memcpy(header, name.data, name.size);
    if (prefix.size != 0)
        memcpy(header + PREFIX_AT, prefix.data, prefix.size);
    put_octal(header + 100, 8, 0444);
    put_octal(header + 108, 8, 0);
    put_octal(header + 116, 8, 0);
    put_octal(header + 124, 12, size);
    put_octal(header + 136, 12, 0);
    memset(header + 148, ' ', 8);
    header[156] = (uint8_t)type;
    memcpy(header + 257, "ustar\00000", 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += header[i];
    put_octal(header + 148, 7, sum);
}

/* Where a path is cut in two so that both parts fit: at the first slash that does it. */
static bool split(cx_str path, cx_str *out_prefix, cx_str *out_name)
{
    *out_prefix = CX_STR("");
    *out_name = path;
    if (path.size <= NAME_SIZE)
        return true;
    for (size_t i = path.size - NAME_SIZE - 1; i < path.size - 1 && i <= PREFIX_SIZE; i++) {
        if (path.data[i] != '/')
            continue;
        *out_prefix = cx_str_from(path.data, i);
        *out_name = cx_str_from(path.data + i + 1, path.size - i - 1);
        return true;
    }
    return false;
}

static void pad_to_block(cx_buf *out)
{
    static const uint8_t zeros[BLOCK];
    if (out->size % BLOCK != 0)
        cx_buf_add(out, zeros, BLOCK - out->size % BLOCK);
}

/* "<n> path=<path>\n", where n counts itself. */
static cx_str pax_record(cx_arena *arena, cx_str path)
{
    size_t rest = sizeof " path=\n" - 1 + path.size, total = rest + 1;
    for (size_t i = 0; i < 4; i++) {
        char number[24];
        int width = snprintf(number, sizeof number, "%zu", total);
        total = rest + (size_t)width;
    }
    return cx_arena_printf(arena, "%zu path=%.*s\n", total, (int)path.size, path.data);
}

static cx_status add_file(cx_run_bundle *bundle, const cx_run_entry *entry, cx_buf *tar,
                          cx_err *err)
{
    uint8_t header[BLOCK];
    cx_bytes contents;
    cx_str prefix, name;
    cx_str path = cx_arena_printf(&bundle->arena, "%.*s/%.*s", (int)bundle->name.size,
                                  bundle->name.data, (int)entry->path.size, entry->path.data);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    if (!split(path, &prefix, &name)) {
        cx_str record = pax_record(&bundle->arena, path);
        if (record.data == NULL)
            return cx_fail_nomem(err);
        fill_header(header, CX_STR(""), CX_STR("path"), record.size, 'x');
        cx_buf_add(tar, header, BLOCK);
        cx_buf_add_str(tar, record);
        pad_to_block(tar);
        prefix = CX_STR("");
        name = CX_STR("path");
    }
    CX_TRY(cx_run_bundle_read(bundle, entry->path, CX_RUN_ARCHIVE_BYTES_MAX, &contents, err));
    fill_header(header, prefix, name, contents.size, '0');
    cx_buf_add(tar, header, BLOCK);
    cx_buf_add(tar, contents.data, contents.size);
    pad_to_block(tar);
    CX_TRY(cx_buf_check(tar, err));
    if (tar->size > CX_RUN_ARCHIVE_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "the bundle has more than %zu bytes",
                       CX_RUN_ARCHIVE_BYTES_MAX);
    return CX_SUCCESS;
}

cx_status cx_run_archive_write(cx_run_bundle *bundle, cx_buf *out, cx_err *err)
{
    CX_ASSERT(bundle != NULL && out != NULL);
    static const uint8_t end[2 * BLOCK];
    cx_buf tar;
    cx_status status;
    if (!cx_run_id_valid(bundle->name))
        return cx_fail(err, CX_E_FORMAT, "the bundle's folder is not named after a run");
    cx_buf_init(&tar, bundle->alloc);
    for (size_t i = 0; i < bundle->entries.count; i++) {
        const cx_run_entry *entry = &bundle->entries.items[i];
        if (!entry->regular || !cx_run_bundle_path_fits(entry->path)) {
            status = cx_fail(err, CX_E_FORMAT, "'%.200s' is no regular file with a proper name",
                             entry->path.data);
            goto done;
        }
        CX_TRY_GOTO(status, add_file(bundle, entry, &tar, err));
    }
    cx_buf_add(&tar, end, sizeof end);
    CX_TRY_GOTO(status, cx_buf_check(&tar, err));
    status = cx_zstd_pack(cx_buf_bytes(&tar), LEVEL, false, out, err);
done:
    cx_buf_done(&tar);
    return status;
}

/* --- reading ---------------------------------------------------------------------------------- */

static cx_status fail_member(cx_err *err, size_t at, const char *what)
{
    return cx_fail_at(err, CX_E_FORMAT, NULL, at, "the archive at byte %zu: %s", at, what);
}

static cx_str field_text(const uint8_t *field, size_t width)
{
    size_t size = 0;
    while (size < width && field[size] != '\0')
        size++;
    return cx_str_from((const char *)field, size);
}

static bool read_octal(const uint8_t *field, size_t width, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i + 1 < width; i++) {
        if (field[i] < '0' || field[i] > '7')
            return false;
        *out = *out * 8 + (uint64_t)(field[i] - '0');
    }
    return field[width - 1] == '\0';
}

/* The path in a pax record, which must be as pax_record writes it. */
static bool read_pax_header(cx_arena *arena, cx_str record, cx_str *out)
{
    const char *equals = memchr(record.data, '=', record.size);
    if (equals == NULL || record.size == 0 || record.data[record.size - 1] != '\n')
        return false;
    *out = cx_str_from(equals + 1, record.size - (size_t)(equals + 1 - record.data) - 1);
    cx_str again = pax_record(arena, *out);
    return again.data != NULL && cx_str_eq(again, record);
}

typedef struct reading {
    cx_run_bundle *bundle;
    cx_str tar;
    size_t at;
    cx_str long_path; /* of a pax header before the file */
} reading;

/* The whole path "<name>/<path>" of one file into the list. */
static cx_status read_file_member(reading *r, cx_str whole, cx_bytes contents, cx_err *err)
{
    cx_run_bundle *bundle = r->bundle;
    const char *slash = memchr(whole.data, '/', whole.size);
    if (slash == NULL)
        return fail_member(err, r->at, "a file is outside the folder of the bundle");
    cx_str top = cx_str_from(whole.data, (size_t)(slash - whole.data));
    cx_str path = cx_str_from(slash + 1, whole.size - top.size - 1);
    if (bundle->entries.count == 0)
        bundle->name = top;
    if (!cx_str_eq(top, bundle->name) || !cx_run_id_valid(top))
        return fail_member(err, r->at, "a file is outside the folder of the bundle");
    if (!cx_run_bundle_path_fits(path))
        return fail_member(err, r->at, "a path is none of a bundle");
    if (bundle->entries.count >= CX_RUN_BUNDLE_FILES_MAX)
        return cx_fail(err, CX_E_LIMIT, "the archive holds more than %d files",
                       CX_RUN_BUNDLE_FILES_MAX);
    if (bundle->entries.count != 0 &&
        cx_str_cmp(bundle->entries.items[bundle->entries.count - 1].path, path) >= 0)
        return fail_member(err, r->at, "the files are not in the order of their paths, each once");
    cx_run_entry *slot = cx_vec_push(&bundle->entries, bundle->alloc);
    cx_str stored = cx_arena_copy_str(&bundle->arena, path);
    if (slot == NULL || stored.data == NULL)
        return cx_fail_nomem(err);
    *slot = (cx_run_entry){.path = stored, .regular = true, .size_bytes = contents.size};
    return CX_SUCCESS;
}

/* One header and what follows it; `*out_contents` is set for a file. */
static cx_status read_member(reading *r, const uint8_t *header, cx_bytes *out_contents, cx_err *err)
{
    uint8_t again[BLOCK];
    uint64_t size;
    char type = (char)header[156];
    cx_str name = field_text(header, NAME_SIZE);
    cx_str prefix = field_text(header + PREFIX_AT, PREFIX_SIZE);
    if (!read_octal(header + 124, 12, &size) || (type != '0' && type != 'x'))
        return fail_member(err, r->at, "found no header of a regular file");
    /* Written again it must be the same: owners, times, modes and sums are all fixed. */
    fill_header(again, prefix, name, size, type);
    if (memcmp(again, header, BLOCK) != 0)
        return fail_member(err, r->at, "a header is not as 'run export' writes it");
    size_t start = r->at + BLOCK;
    if (size > r->tar.size - start)
        return fail_member(err, r->at, "a file is longer than the archive");
    cx_str data = cx_str_from(r->tar.data + start, (size_t)size);
    size_t padded = ((size_t)size + BLOCK - 1) / BLOCK * BLOCK;
    if (padded > r->tar.size - start)
        return fail_member(err, r->at, "the archive ends inside a file");
    for (size_t i = (size_t)size; i < padded; i++)
        if (r->tar.data[start + i] != '\0')
            return fail_member(err, start + i,
                               "found bytes after the end of a file, expected zeros");
    *out_contents = (cx_bytes){NULL, 0};
    if (type == 'x') {
        if (r->long_path.data != NULL || !cx_str_is(name, "path") ||
            !read_pax_header(&r->bundle->arena, data, &r->long_path))
            return fail_member(err, r->at, "a pax header holds something else than a path");
    } else {
        cx_str whole = r->long_path;
        if (whole.data == NULL)
            whole = prefix.size == 0
                        ? name
                        : cx_arena_printf(&r->bundle->arena, "%.*s/%.*s", (int)prefix.size,
                                          prefix.data, (int)name.size, name.data);
        else if (!cx_str_is(name, "path") || prefix.size != 0)
            return fail_member(err, r->at, "a file has two names");
        if (whole.data == NULL)
            return cx_fail_nomem(err);
        *out_contents = cx_str_bytes(data);
        CX_TRY(read_file_member(r, whole, *out_contents, err));
        r->long_path = (cx_str){NULL, 0};
    }
    r->at = start + padded;
    return CX_SUCCESS;
}

static bool is_zeros(const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (data[i] != '\0')
            return false;
    return true;
}

cx_status cx_run_archive_list(cx_run_bundle *bundle, cx_err *err)
{
    CX_ASSERT(bundle != NULL);
    reading r = {.bundle = bundle, .tar = cx_buf_str(&bundle->unpacked)};
    CX_VEC(cx_bytes) contents = {0};
    cx_status status = CX_SUCCESS;
    for (;;) {
        cx_bytes data;
        if (r.tar.size - r.at < BLOCK) {
            status = fail_member(err, r.at, "the archive has no end");
            goto done;
        }
        if (is_zeros(r.tar.data + r.at, BLOCK))
            break;
        CX_TRY_GOTO(status, read_member(&r, (const uint8_t *)r.tar.data + r.at, &data, err));
        if (data.data == NULL)
            continue;
        cx_bytes *slot = cx_vec_push(&contents, bundle->alloc);
        if (slot == NULL) {
            status = cx_fail_nomem(err);
            goto done;
        }
        *slot = data;
    }
    if (r.tar.size - r.at != (size_t)2 * BLOCK || !is_zeros(r.tar.data + r.at, (size_t)2 * BLOCK) ||
        r.long_path.data != NULL || bundle->entries.count == 0) {
        status = fail_member(err, r.at, "the archive does not end as 'run export' ends it");
        goto done;
    }
    CX_TRY_GOTO(status, cx_run_bundle_sort(bundle, err));
    for (size_t i = 0; i < contents.count; i++)
        bundle->contents[i] = (cx_run_contents){.bytes = contents.items[i], .loaded = true};
done:
    cx_vec_done(&contents, bundle->alloc);
    return status;
}
