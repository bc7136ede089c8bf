/*
 * test_backup.c - records of backups, the file `format`, and headers of archives: what is accepted,
 * and what is refused with which reason.
 */
#include <stdio.h>
#include <string.h>

#include "ledger/backup/backup_parts.h"
#include "ledger/backup/unpack.h"
#include "tests/test.h"

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID "0123456789abcdef0123456789abcdef"
#define KEY "keys/checkpoint-" ID
#define RECORD(format, record, files)                                              \
    "{\"commits\":7,\"cortex\":\"0.9.1\",\"end\":\"" DIGEST "\",\"files\":[" files \
    "],\"format\":" format ",\"home_id\":\"" ID                                    \
    "\",\"made_at\":\"2026-11-28T14:00:00Z\",\"record\":" record ",\"segments\":2}\n"
#define FILE_OF(name, size) "{\"name\":\"" name "\",\"sha256\":\"" DIGEST "\",\"size\":" size "}"

typedef struct outcome {
    cx_status status;
    cx_err err;
} outcome;

/* The outcome of reading `text`; what is accepted is written as it was read. */
static outcome read_record(const char *text)
{
    outcome result = {.err = {0}};
    cx_backup_record record;
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    result.status = cx_backup_record_parse(cx_str_z(text), &arena, &record, &result.err);
    if (!cx_failed(result.status)) {
        cx_buf out;
        cx_buf_init(&out, cx_alloc_default());
        CHECK_STATUS(cx_backup_record_write(&record, &arena, &out, &result.err), &result.err);
        CHECK_STR(cx_buf_str(&out), text);
        cx_buf_done(&out);
    }
    cx_arena_done(&arena);
    return result;
}

static void refuse_record(const char *text, cx_code code, const char *tag)
{
    outcome result = read_record(text);
    CHECK_INT(result.status.code, code);
    CHECK_STR(cx_str_z(result.err.tag == NULL ? "" : result.err.tag), tag);
}

CX_TEST(backup_records_are_read_and_written)
{
    CHECK_INT(read_record(RECORD("1", "1", "")).status.code, CX_OK);
    CHECK_INT(
        read_record(RECORD("1", "1", FILE_OF("config.toml", "12") "," FILE_OF(KEY, "1048576")))
            .status.code,
        CX_OK);
}

CX_TEST(backup_records_that_are_none_are_refused)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{",
        RECORD("0", "1", ""),
        RECORD("1", "0", ""),
        RECORD("1", "\"1\"", ""),
        RECORD("1", "1", "1"),
        RECORD("1", "1", FILE_OF("token", "1")),
        RECORD("1", "1", FILE_OF("/config.toml", "1")),
        RECORD("1", "1", FILE_OF("../config.toml", "1")),
        RECORD("1", "1", FILE_OF("keys/checkpoint-", "1")),
        RECORD("1", "1", FILE_OF(KEY "0", "1")),
        RECORD("1", "1", FILE_OF(KEY, "1048577")),
        RECORD("1", "1", FILE_OF(KEY, "-1")),
        RECORD("1", "1", "{\"name\":\"" KEY "\",\"size\":1}"),
    };
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++)
        refuse_record(bad[i], CX_E_FORMAT, "BadBackupRecord");
}

CX_TEST(later_backup_records_name_their_version)
{
    refuse_record(RECORD("2", "1", ""), CX_E_UNSUPPORTED, "NewerFormat");
    refuse_record(RECORD("1", "2", ""), CX_E_UNSUPPORTED, "NewerFormat");
    outcome result = read_record(RECORD("1", "2", ""));
    CHECK(strstr(result.err.message, "0.9.1") != NULL);
}

CX_TEST(format_files_are_read)
{
    static const char *const bad[] = {
        "",
        "{}",
        "1",
        "{\"format\":0}",
        "{\"format\":1.0}",
        "{\"format\":-1}",
        "{\"format\":\"1\"}",
        "{\"format\":1,\"written_by\":\"\"}",
        "{\"format\":1,\"written_by\":\"a b\"}",
        "{\"format\":1,\"written_by\":\"123456789012345678901234567890123\"}"};
    cx_home_format found;
    cx_err err = {0};
    CHECK_STATUS(cx_home_format_parse(CX_STR("{\"format\":7,\"written_by\":\"1.0~rc+1\",\"x\":[]}"),
                                      &found, &err),
                 &err);
    CHECK_INT(found.number, 7);
    CHECK_STR(cx_str_z(found.written_by), "1.0~rc+1");
    CHECK_STATUS(cx_home_format_parse(CX_STR("{\"format\":1}"), &found, &err), &err);
    CHECK_STR(cx_str_z(found.written_by), "");
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++)
        CHECK_INT(cx_home_format_parse(cx_str_z(bad[i]), &found, &err).code, CX_E_FORMAT);
    CHECK_INT(cx_home_format_refuse(&found, "x", &err).code, CX_E_UNSUPPORTED);
}

CX_TEST(only_files_of_backups_have_good_names)
{
    static const char *const good[] = {"config.toml", "format",         KEY,
                                       "backup.json", "log/000000.seg", "log/1000000.seg"};
    static const char *const bad[] = {"",
                                      "log",
                                      "log/lock",
                                      "log/0.seg",
                                      "log/00000a.seg",
                                      "log/../x.seg",
                                      "log/000000.seg/",
                                      "keys/x",
                                      "token",
                                      "./format",
                                      ("KEYS/checkpoint-" ID)};
    for (size_t i = 0; i < CX_COUNT_OF(good); i++)
        CHECK(cx_backup_is_file(cx_str_z(good[i])));
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++)
        CHECK(!cx_backup_is_file(cx_str_z(bad[i])));
}

/* --- archives --------------------------------------------------------------------------------- */

static void make_header(uint8_t block[CX_TAR_BLOCK], const char *name, const char *size, char type)
{
    unsigned sum = 0;
    memset(block, 0, CX_TAR_BLOCK);
    memcpy(block, name, strlen(name) > 100 ? 100 : strlen(name));
    memcpy(block + 124, size, strlen(size));
    memset(block + 148, ' ', 8);
    block[156] = (uint8_t)type;
    memcpy(block + 257,
           "ustar\0"
           "00",
           8);
    for (size_t i = 0; i < CX_TAR_BLOCK; i++)
        sum += block[i];
    (void)snprintf((char *)block + 148, 7, "%06o", sum);
}

static cx_tar_kind kind_of(const char *name, const char *size, char type)
{
    uint8_t block[CX_TAR_BLOCK];
    cx_tar_header header;
    make_header(block, name, size, type);
    cx_tar_header_parse(block, &header);
    return header.kind;
}

CX_TEST(archive_headers_are_read)
{
    static const uint8_t zeros[CX_TAR_BLOCK] = {0};
    uint8_t block[CX_TAR_BLOCK];
    cx_tar_header header;
    make_header(block, "log/000000.seg", "00000200000", '0');
    cx_tar_header_parse(block, &header);
    CHECK_INT(header.kind, CX_TAR_FILE);
    CHECK_INT(header.size_bytes, 65536);
    CHECK_STR(cx_str_z(header.name), "log/000000.seg");
    cx_tar_header_parse(zeros, &header);
    CHECK_INT(header.kind, CX_TAR_END);
    CHECK_INT(kind_of("x", "0", 0), CX_TAR_FILE);
    CHECK_INT(kind_of("x", "77777777777", '0'), CX_TAR_FILE);
    CHECK_INT(kind_of("x/", "0", '5'), CX_TAR_FOLDER);
    CHECK_INT(kind_of("x", "0", '1'), CX_TAR_LINK);
    CHECK_INT(kind_of("x", "0", '2'), CX_TAR_LINK);
    CHECK_INT(kind_of("x", "0", '3'), CX_TAR_SPECIAL);
    CHECK_INT(kind_of("x", "0", '6'), CX_TAR_SPECIAL);
    CHECK_INT(kind_of("x", "0", 'x'), CX_TAR_EXTENSION);
    CHECK_INT(kind_of("x", "0", 'S'), CX_TAR_OTHER);
    CHECK_INT(kind_of("x", "0", 'L'), CX_TAR_OTHER);
    CHECK_INT(kind_of("x", "", '0'), CX_TAR_BAD);
    CHECK_INT(kind_of("x", "8", '0'), CX_TAR_BAD);
    CHECK_INT(kind_of("x", "1z", '0'), CX_TAR_BAD);
    CHECK_INT(kind_of("x", "\x80", '0'), CX_TAR_BAD); /* GNU's sizes in base 256 */
    for (size_t i = 0; i < CX_TAR_BLOCK; i++) {
        make_header(block, "log/000000.seg", "00000200000", '0');
        block[i] ^= 1;
        cx_tar_header_parse(block, &header);
        /* A bit of the checksum field's padding is not read. */
        if (i < 148 || i >= 156)
            CHECK_INT(header.kind, CX_TAR_BAD);
    }
}

CX_TEST(archive_headers_with_full_fields_end_in_a_zero)
{
    uint8_t block[CX_TAR_BLOCK];
    cx_tar_header header;
    unsigned sum = 0;
    make_header(block, "", "0", '0');
    memset(block, 'n', 100);
    memset(block + 345, 'p', 155);
    memset(block + 148, ' ', 8);
    for (size_t i = 0; i < CX_TAR_BLOCK; i++)
        sum += block[i];
    (void)snprintf((char *)block + 148, 7, "%06o", sum);
    cx_tar_header_parse(block, &header);
    CHECK_INT(header.kind, CX_TAR_FILE);
    CHECK_INT(strlen(header.name), 155 + 1 + 100);
}

static bool path_of(const char *name, const char *top, cx_str *out)
{
    static cx_tar_header header;
    memset(&header, 0, sizeof header);
    memcpy(header.name, name, strlen(name));
    return cx_tar_path(&header, cx_str_z(top), out);
}

CX_TEST(archive_paths_stay_inside)
{
    static const char *const bad[] = {"/etc/passwd", "..", "../x",  "log/../../x",
                                      "log/..",      "/",  "a/../b"};
    cx_str path;
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++)
        CHECK(!path_of(bad[i], "", &path));
    CHECK(path_of("./log/000000.seg", "", &path) && cx_str_is(path, "log/000000.seg"));
    CHECK(path_of("././keys/", "", &path) && cx_str_is(path, "keys"));
    CHECK(path_of("./", "", &path) && path.size == 0);
    CHECK(path_of(".", "", &path) && path.size == 0);
    CHECK(path_of("copy/format", "copy/", &path) && cx_str_is(path, "format"));
    CHECK(path_of("copy/", "copy/", &path) && path.size == 0);
    CHECK(!path_of("other/format", "copy/", &path));
    CHECK(!path_of("format", "copy/", &path));
    CHECK(path_of("..x/y", "", &path));
}
