/*
 * fuzz_backup.c - any bytes as the record of a backup, as the file `format`, and as a header of an
 * archive: what is accepted is inside the limits, names stay inside of the folder, and a record is
 * written as it was read.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "ledger/backup/backup_parts.h"
#include "ledger/backup/unpack.h"

static void check_record(cx_str text)
{
    cx_arena arena;
    cx_backup_record record, again;
    cx_err err = {0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    if (!cx_failed(cx_backup_record_parse(text, &arena, &record, &err))) {
        cx_buf out;
        cx_buf_init(&out, cx_alloc_default());
        FUZZ_CHECK(!cx_failed(cx_backup_record_write(&record, &arena, &out, &err)));
        FUZZ_CHECK(!cx_failed(cx_backup_record_parse(cx_buf_str(&out), &arena, &again, &err)));
        FUZZ_CHECK(record.file_count == again.file_count && again.end.segment_count != 0);
        FUZZ_CHECK(record.format.number == again.format.number);
        for (size_t i = 0; i < again.file_count; i++)
            FUZZ_CHECK(cx_backup_name_ok(again.files[i].name) &&
                       again.files[i].size_bytes <= CX_BACKUP_FILE_BYTES_MAX);
        cx_buf_done(&out);
    }
    cx_arena_done(&arena);
}

static void check_header(const uint8_t *block)
{
    cx_tar_header header;
    cx_str path;
    cx_tar_header_parse(block, &header);
    FUZZ_CHECK(memchr(header.name, 0, sizeof header.name) != NULL);
    if (header.kind != CX_TAR_FILE || !cx_tar_path(&header, CX_STR(""), &path))
        return;
    FUZZ_CHECK(path.size == 0 || path.data[0] != '/');
    if (cx_backup_is_file(path))
        FUZZ_CHECK(memchr(path.data, 0, path.size) == NULL && path.size < 64);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_home_format format;
    cx_str text = {(const char *)data, size};
    if (!cx_failed(cx_home_format_parse(text, &format, NULL)))
        FUZZ_CHECK(format.number != 0 && strlen(format.written_by) < CX_HOME_VERSION_SIZE);
    check_record(text);
    if (size >= CX_TAR_BLOCK)
        check_header(data);
    return 0;
}
