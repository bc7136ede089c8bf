/*
 * backup_record.c - backup.json, read and written.
 *
 *     {"commits":128,"cortex":"0.3.0","end":HEX,"files":[{"name":..,"sha256":HEX,"size":..},..],
 *      "format":1,"home_id":HEX,"made_at":"2026-11-28T14:00:00Z","record":1,"segments":2}
 *
 * The record is no proof: a process that can change a backup can change it, too.  It shows what an
 * accident took away.
 */
#include <string.h>

#include "json/api.h"
#include "ledger/backup/backup_parts.h"

#define RECORD_NUMBER 1
#define ID_SIZE 16

static cx_status bad_record(const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "BadBackupRecord", CX_NO_OFFSET,
                      "backup.json is not a record of a backup: expected %s", what);
}

/* --- names ------------------------------------------------------------------------------------ */

bool cx_backup_key_name_ok(cx_str name)
{
    static const char prefix[] = "checkpoint-";
    const size_t size = sizeof prefix - 1;
    if (name.size != size + 32 || memcmp(name.data, prefix, size) != 0)
        return false;
    for (size_t i = size; i < name.size; i++)
        if (strchr("0123456789abcdef", name.data[i]) == NULL || name.data[i] == 0)
            return false;
    return true;
}

bool cx_backup_name_ok(cx_str name)
{
    static const char keys[] = "keys/";
    const size_t size = sizeof keys - 1;
    if (cx_str_is(name, "config.toml") || cx_str_is(name, "format"))
        return true;
    return name.size > size && memcmp(name.data, keys, size) == 0 &&
           cx_backup_key_name_ok(cx_str_from(name.data + size, name.size - size));
}

bool cx_backup_is_segment(cx_str path)
{
    static const char start[] = "log/", end[] = ".seg";
    if (path.size < 14 || path.size > 18 || memcmp(path.data, start, 4) != 0 ||
        memcmp(path.data + path.size - 4, end, 4) != 0)
        return false;
    for (size_t i = 4; i < path.size - 4; i++)
        if (path.data[i] < '0' || path.data[i] > '9')
            return false;
    return true;
}

bool cx_backup_is_file(cx_str path)
{
    return cx_backup_name_ok(path) || cx_backup_is_segment(path) || cx_str_is(path, "backup.json");
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool read_hex(const cx_json *object, cx_str name, uint8_t *out, size_t size)
{
    cx_str text = cx_json_get_str(object, name);
    return text.data != NULL && text.size == 2 * size && cx_hex_decode(text, out, size);
}

static bool read_uint(const cx_json *object, cx_str name, uint64_t *out)
{
    const cx_json *member = cx_json_get(object, name);
    return member != NULL && cx_json_uint64(member, out);
}

static cx_status read_file(const cx_json *item, cx_backup_file *out, cx_err *err)
{
    out->name = CX_JSON_GET_STR(item, "name");
    if (out->name.data == NULL || !cx_backup_name_ok(out->name))
        return bad_record("files named config.toml, format or keys/checkpoint-HEX", err);
    if (!read_uint(item, CX_STR("size"), &out->size_bytes) ||
        out->size_bytes > CX_BACKUP_FILE_BYTES_MAX ||
        !read_hex(item, CX_STR("sha256"), out->sha256.bytes, sizeof out->sha256.bytes))
        return bad_record("a size and a SHA-256 of each file", err);
    return CX_SUCCESS;
}

static cx_status read_files(const cx_json *value, cx_arena *arena, cx_backup_record *out,
                            cx_err *err)
{
    const cx_json *list = cx_json_get_typed(value, CX_STR("files"), CX_JSON_ARRAY);
    if (list == NULL || list->count > CX_BACKUP_FILES_MAX)
        return bad_record("a list of at most 10000 files", err);
    cx_backup_file *files = CX_ARENA_ARRAY(arena, cx_backup_file, list->count + 1);
    if (files == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < list->count; i++)
        CX_TRY(read_file(&list->items[i], &files[i], err));
    out->files = files;
    out->file_count = list->count;
    return CX_SUCCESS;
}

static bool time_ok(cx_str text)
{
    static const char form[] = "0000-00-00T00:00:00Z";
    if (text.data == NULL || text.size != sizeof form - 1)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        bool digit = text.data[i] >= '0' && text.data[i] <= '9';
        if (form[i] == '0' ? !digit : text.data[i] != form[i])
            return false;
    }
    return true;
}

static cx_status read_version(const cx_json *value, cx_home_format *out, cx_err *err)
{
    cx_str version = CX_JSON_GET_STR(value, "cortex");
    if (version.data == NULL || !cx_home_version_ok(version))
        return bad_record("the version that made it", err);
    memcpy(out->written_by, version.data, version.size);
    if (!read_uint(value, CX_STR("format"), &out->number) || out->number == 0)
        return bad_record("the format of the data directory", err);
    return CX_SUCCESS;
}

/* A record or a data directory that is newer than this program. */
static cx_status check_known(const cx_json *value, const cx_home_format *format, cx_err *err)
{
    uint64_t number = 0;
    if (!read_uint(value, CX_STR("record"), &number) || number == 0)
        return bad_record("\"record\":1", err);
    if (format->number > CX_HOME_FORMAT)
        return cx_home_format_refuse(format, "the backup", err);
    if (number > RECORD_NUMBER)
        return cx_fail_at(err, CX_E_UNSUPPORTED, "NewerFormat", CX_NO_OFFSET,
                          "the backup has a record of form %llu, written by cortex %s; this is "
                          "cortex " CX_VERSION ", which reads %d",
                          (unsigned long long)number, format->written_by, RECORD_NUMBER);
    return CX_SUCCESS;
}

cx_status cx_backup_record_parse(cx_str text, cx_arena *arena, cx_backup_record *out, cx_err *err)
{
    cx_json value;
    cx_backup_record record = {0};
    uint64_t segments = 0;
    cx_status parsed = cx_json_parse_text(text, arena, &value, NULL);
    if (parsed.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(parsed) || value.type != CX_JSON_OBJECT)
        return bad_record("a JSON object", err);
    CX_TRY(read_version(&value, &record.format, err));
    CX_TRY(check_known(&value, &record.format, err));
    record.made_at = CX_JSON_GET_STR(&value, "made_at");
    if (!time_ok(record.made_at))
        return bad_record("the time when it was made", err);
    if (!read_hex(&value, CX_STR("home_id"), record.home_id, ID_SIZE) ||
        !read_hex(&value, CX_STR("end"), record.end.digest.bytes, sizeof record.end.digest.bytes))
        return bad_record("the id and the end of the log", err);
    if (!read_uint(&value, CX_STR("commits"), &record.end.commit_count) ||
        !read_uint(&value, CX_STR("segments"), &segments) || segments == 0 || segments > UINT32_MAX)
        return bad_record("counts of commits and segments", err);
    record.end.segment_count = (uint32_t)segments;
    CX_TRY(read_files(&value, arena, &record, err));
    *out = record;
    return CX_SUCCESS;
}

/* --- writing ---------------------------------------------------------------------------------- */

cx_status cx_backup_record_write(const cx_backup_record *record, cx_arena *arena, cx_buf *out,
                                 cx_err *err)
{
    cx_json value;
    cx_json_list json = cx_json_list_begin(arena), files = cx_json_list_begin(arena);
    for (size_t i = 0; i < record->file_count; i++) {
        cx_json_list item = cx_json_list_begin(arena);
        cx_json_put_str(&item, "name", record->files[i].name);
        cx_json_put_digest(&item, "sha256", &record->files[i].sha256);
        cx_json_put_uint(&item, "size", record->files[i].size_bytes);
        cx_json_add_object(&files, &item);
    }
    cx_json_put_uint(&json, "commits", record->end.commit_count);
    cx_json_put_z(&json, "cortex", record->format.written_by);
    cx_json_put_digest(&json, "end", &record->end.digest);
    cx_json_put_array(&json, "files", &files);
    cx_json_put_uint(&json, "format", record->format.number);
    cx_json_put_hex(&json, "home_id", cx_bytes_from(record->home_id, ID_SIZE));
    cx_json_put_str(&json, "made_at", record->made_at);
    cx_json_put_uint(&json, "record", RECORD_NUMBER);
    cx_json_put_uint(&json, "segments", record->end.segment_count);
    CX_TRY(cx_json_list_end_object(&json, &value, err));
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(out, '\n');
    return cx_buf_check(out, err);
}
