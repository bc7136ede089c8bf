/*
 * test_rows.c - many rows by one statement, and a file that is filled before anybody reads it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "db/db.h"
#include "tests/support/folder.h"
#include "tests/test.h"

enum { ROWS = 5000 };

typedef struct rows {
    int64_t next, end, fails_at, step;
    uint8_t key[4];
    char text[32];
} rows;

/* Keys ascend, or come in no order; every third value is NULL. */
static cx_status next_row(void *arg, cx_db_value *columns, bool *out_more, cx_err *err)
{
    rows *r = arg;
    *out_more = r->next < r->end;
    if (r->next == r->fails_at)
        return cx_fail(err, CX_E_LIMIT, "row %lld", (long long)r->next);
    if (!*out_more)
        return CX_SUCCESS;
    const int64_t key = r->next * r->step % ROWS;
    for (int i = 0; i < 4; i++)
        r->key[i] = (uint8_t)(key >> (8 * (3 - i)));
    (void)snprintf(r->text, sizeof r->text, "row %lld", (long long)key);
    columns[0] = (cx_db_value){.type = CX_DB_INT, .number = -7};
    columns[1] = (cx_db_value){.type = CX_DB_BYTES, .bytes = cx_bytes_from(r->key, sizeof r->key)};
    columns[2] = (cx_db_value){.type = CX_DB_TEXT, .bytes = cx_str_bytes(cx_str_z(r->text))};
    columns[3] = key % 3 == 0 ? (cx_db_value){.type = CX_DB_NULL}
                              : (cx_db_value){.type = CX_DB_BYTES, .bytes = {NULL, 0}};
    r->next++;
    return CX_SUCCESS;
}

static cx_status insert(cx_db *db, int64_t end, int64_t fails_at, int64_t step, cx_err *err)
{
    rows r = {.end = end, .fails_at = fails_at, .step = step};
    return cx_db_insert_rows(db, "t", 4, next_row, &r, err);
}

static int64_t ask(cx_db *db, const char *sql)
{
    cx_db_statement *statement = NULL;
    cx_err err = {0};
    bool row = false;
    int64_t answer = -1;
    CHECK_STATUS(cx_db_prepare(db, sql, &statement, &err), &err);
    if (statement != NULL && !cx_failed(cx_db_step(statement, &row, &err)) && row)
        answer = cx_db_int(statement, 0);
    cx_db_finish(statement);
    return answer;
}

#define RIGHT_ROWS                                                                             \
    "SELECT count(*) FROM t WHERE a = -7 AND typeof(b) = 'blob' AND length(b) = 4 AND"         \
    " typeof(c) = 'text' AND c = 'row ' || (SELECT count(*) FROM t AS u WHERE u.b < t.b) AND"  \
    " typeof(d) = CASE WHEN (SELECT count(*) FROM t AS u WHERE u.b < t.b) % 3 = 0 THEN 'null'" \
    " ELSE 'blob' END"

CX_TEST(db_rows_are_inserted_by_one_statement)
{
    static const char table[] = "CREATE TABLE t(a INTEGER NOT NULL, b BLOB NOT NULL, c TEXT, d,"
                                " PRIMARY KEY(a, b)) WITHOUT ROWID;";
    cx_db *db = NULL;
    cx_err err = {0};
    REQUIRE(!cx_failed(cx_db_open(NULL, CX_DB_SCRATCH, &db, &err)));
    CHECK_STATUS(cx_db_run(db, table, &err), &err);
    CHECK_STATUS(insert(db, 0, -1, 1, &err), &err);
    CHECK_INT(ask(db, "SELECT count(*) FROM t"), 0);
    /* 7 has no divisor in common with the number of rows: each key comes once. */
    for (int64_t step = 1; step <= 7; step += 6) {
        CHECK_STATUS(insert(db, ROWS, -1, step, &err), &err);
        CHECK_INT(ask(db, "SELECT count(*) FROM t"), ROWS);
        CHECK_INT(ask(db, "SELECT count(*) FROM (SELECT * FROM t LIMIT 60)"), 60);
        CHECK_STATUS(cx_db_run(db, "DELETE FROM t WHERE b >= x'00000040'", &err), &err);
        CHECK_INT(ask(db, RIGHT_ROWS), 64);
        CHECK_STATUS(cx_db_run(db, "DELETE FROM t", &err), &err);
    }
    cx_db_close(db);
}

CX_TEST(db_rows_that_fail_are_told_and_taken_back)
{
    cx_db *db = NULL;
    cx_err err = {0};
    REQUIRE(!cx_failed(cx_db_open(NULL, CX_DB_SCRATCH, &db, &err)));
    CHECK_STATUS(
        cx_db_run(db, "PRAGMA journal_mode=MEMORY; CREATE TABLE t(a, b PRIMARY KEY, c, d)", &err),
        &err);
    for (int64_t at = 0; at <= 100; at += 50) {
        CHECK_STATUS(cx_db_begin_write(db, &err), &err);
        CHECK_INT(insert(db, 100, at, 1, &err).code, CX_E_LIMIT);
        CHECK(strncmp(err.message, "row ", 4) == 0);
        cx_db_rollback(db);
        CHECK_INT(ask(db, "SELECT count(*) FROM t"), 0);
    }
    /* A key twice. */
    CHECK_STATUS(insert(db, 10, -1, 1, &err), &err);
    CHECK_STATUS(cx_db_begin_write(db, &err), &err);
    CHECK(cx_failed(insert(db, 20, -1, 1, &err)));
    cx_db_rollback(db);
    CHECK_INT(ask(db, "SELECT count(*) FROM t"), 10);
    cx_db_close(db);
}

static int byte_at(const char *path, long at)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return -1;
    const int byte = fseek(file, at, SEEK_SET) == 0 ? fgetc(file) : -1;
    CHECK(fclose(file) == 0);
    return byte;
}

static bool is_there(const char *path, const char *ending)
{
    char name[FOLDER_PATH_SIZE + 32];
    struct stat info;
    (void)snprintf(name, sizeof name, "%s%s", path, ending);
    return stat(name, &info) == 0;
}

/* What was not committed is gone, what was stays; in the end it is a file with a write-ahead
 * log. */
CX_TEST(db_file_is_filled_without_a_write_ahead_log)
{
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 16];
    cx_db *db = NULL;
    cx_err err = {0};
    folder_fresh(folder, "db_fill");
    REQUIRE(mkdir(folder, 0700) == 0);
    (void)snprintf(path, sizeof path, "%s/t.db", folder);
    for (int64_t round = 0; round < 3; round++) {
        REQUIRE(!cx_failed(cx_db_open(path, CX_DB_FILL, &db, &err)));
        CHECK_STATUS(cx_db_run(db, "CREATE TABLE IF NOT EXISTS t(a, b, c, d)", &err), &err);
        CHECK_INT(ask(db, "SELECT count(*) FROM t"), round * ROWS);
        CHECK_STATUS(cx_db_begin_write(db, &err), &err);
        CHECK_STATUS(insert(db, ROWS, -1, 1, &err), &err);
        CHECK_STATUS(cx_db_commit(db, &err), &err);
        CHECK(!is_there(path, "-wal"));
        CHECK_STATUS(cx_db_begin_write(db, &err), &err);
        CHECK_STATUS(cx_db_run(db, "UPDATE t SET c = 'no'", &err), &err);
        cx_db_rollback(db);
        if (round == 2)
            CHECK_STATUS(cx_db_filled(db, &err), &err);
        cx_db_close(db);
        CHECK_INT(byte_at(path, 18), round == 2 ? 2 : 1);
        CHECK(!is_there(path, "-wal") && (round != 2 || !is_there(path, "-journal")));
    }
    REQUIRE(!cx_failed(cx_db_open(path, CX_DB_READ, &db, &err)));
    CHECK_INT(ask(db, "SELECT count(*) FROM t WHERE c <> 'no'"), 3 * ROWS);
    cx_db_close(db);
    folder_remove(folder);
}
