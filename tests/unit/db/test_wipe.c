/*
 * test_wipe.c - the layer that wipes the unused part of pages: what it takes for one, what it
 * leaves alone, and that a database written through it is the one that was written.
 */
#include "db/wipe.h"

#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/api.h"
#include "db/db.h"
#include "tests/support/folder.h"
#include "tests/test.h"

enum { SIZE = 4096 };

static uint8_t page[SIZE];

static void make_page(size_t head, uint8_t kind, unsigned cells, unsigned start)
{
    memset(page, 0x5a, sizeof page);
    page[head] = kind;
    page[head + 3] = (uint8_t)(cells >> 8);
    page[head + 4] = (uint8_t)cells;
    page[head + 5] = (uint8_t)(start >> 8);
    page[head + 6] = (uint8_t)start;
}

static bool gap_is(bool first, size_t from, size_t to)
{
    size_t found_from = 0, found_to = 0;
    return cx_db_wipe_gap(page, SIZE, first, &found_from, &found_to) && found_from == from &&
           found_to == to;
}

static bool no_gap(void)
{
    size_t from, to;
    return !cx_db_wipe_gap(page, SIZE, false, &from, &to);
}

CX_TEST(wipe_gap_of_each_kind)
{
    make_page(0, 13, 3, 4000);
    CHECK(gap_is(false, 8 + 6, 4000));
    make_page(0, 10, 0, 4096);
    CHECK(gap_is(false, 8, 4096));
    make_page(0, 5, 10, 200);
    CHECK(gap_is(false, 12 + 20, 200));
    make_page(0, 2, 1, 300);
    CHECK(gap_is(false, 12 + 2, 300));
    make_page(100, 13, 2, 3000);
    CHECK(gap_is(true, 100 + 8 + 4, 3000));
}

CX_TEST(wipe_leaves_other_pages_alone)
{
    for (unsigned kind = 0; kind < 256; kind++) {
        make_page(0, (uint8_t)kind, 3, 4000);
        bool cells = kind == 2 || kind == 5 || kind == 10 || kind == 13;
        CHECK(no_gap() == !cells);
    }
    make_page(0, 13, 2044, 4096); /* full */
    CHECK(no_gap());
    make_page(0, 13, 3, 4097); /* begins past the page */
    CHECK(no_gap());
    make_page(0, 13, 3, 0); /* 65536 */
    CHECK(no_gap());
    make_page(0, 13, 2000, 4000); /* the list ends past the first cell */
    CHECK(no_gap());
}

/* --- a database ------------------------------------------------------------------------------- */

static cx_err err;

static void run(cx_db *db, const char *sql)
{
    CHECK_STATUS(cx_db_run(db, sql, &err), &err);
}

static uint64_t sum_of(cx_db *db)
{
    cx_db_statement *statement;
    bool row = false;
    uint64_t sum = 0;
    CHECK_STATUS(cx_db_prepare(db,
                               "SELECT count(*) + sum(length(b) * (a % 97)) +"
                               " sum(unicode(substr(b, 1 + a % 50, 1))) FROM t",
                               &statement, &err),
                 &err);
    CHECK_STATUS(cx_db_step(statement, &row, &err), &err);
    if (row)
        sum = (uint64_t)cx_db_int(statement, 0);
    cx_db_finish(statement);
    return sum;
}

/* Pages of a file whose unused part has a byte that is not zero. */
static unsigned unwiped_pages(const char *path)
{
    unsigned found = 0;
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    for (bool first = true; file != NULL && fread(page, 1, SIZE, file) == SIZE; first = false) {
        size_t from, to;
        bool dirty = false;
        if (!cx_db_wipe_gap(page, SIZE, first, &from, &to))
            continue;
        for (size_t i = from; i < to; i++)
            dirty = dirty || page[i] != 0;
        found += dirty ? 1 : 0;
    }
    if (file != NULL)
        (void)fclose(file);
    return found;
}

/* The same statements with and without the layer. */
static const char *const statements[] = {
    "CREATE TABLE t(a INTEGER, b TEXT, PRIMARY KEY(b, a)) WITHOUT ROWID;"
    "CREATE INDEX i ON t(a)",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 6000)"
    " INSERT INTO t SELECT x, (x * 7919 % 6007) || hex(zeroblob(20 + x % 90)) FROM n",
    "UPDATE t SET b = b || hex(zeroblob(a % 3000)) WHERE a % 11 = 0",
    "DELETE FROM t WHERE a % 3 = 1",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3000)"
    " INSERT INTO t SELECT x + 10000, (x * 31 % 3001) || hex(zeroblob(x % 200)) FROM n"};

static void work(cx_db *db)
{
    for (size_t i = 0; i < CX_COUNT_OF(statements); i++)
        run(db, statements[i]);
}

static void work_bare(const char *path)
{
    sqlite3 *bare = NULL;
    CHECK(sqlite3_open(path, &bare) == SQLITE_OK);
    CHECK(sqlite3_exec(bare, "PRAGMA secure_delete=ON", NULL, NULL, NULL) == SQLITE_OK);
    for (size_t i = 0; i < CX_COUNT_OF(statements); i++)
        CHECK(sqlite3_exec(bare, statements[i], NULL, NULL, NULL) == SQLITE_OK);
    CHECK(sqlite3_close(bare) == SQLITE_OK);
}

CX_TEST(wipe_keeps_what_was_written)
{
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 16], plain[FOLDER_PATH_SIZE + 16];
    cx_db *db;
    folder_fresh(folder, "wipe");
    CHECK(mkdir(folder, 0700) == 0);
    (void)snprintf(path, sizeof path, "%s/wiped.db", folder);
    (void)snprintf(plain, sizeof plain, "%s/plain.db", folder);
    REQUIRE(!cx_failed(cx_db_open(path, CX_DB_WRITE, &db, &err)));
    work(db);
    uint64_t written = sum_of(db);
    CHECK_STATUS(cx_db_forget_deleted(db, true, &err), &err);
    CHECK_INT(unwiped_pages(path), 0);
    CHECK_STATUS(cx_db_check(db, &err), &err);
    CHECK(sum_of(db) == written);
    cx_db_close(db);
    /* Without the layer such pages are left. */
    work_bare(plain);
    CHECK(unwiped_pages(plain) > 100);
    REQUIRE(!cx_failed(cx_db_open(plain, CX_DB_READ, &db, &err)));
    CHECK(sum_of(db) == written);
    CHECK_STATUS(cx_db_check(db, &err), &err);
    cx_db_close(db);
    folder_remove(folder);
}

CX_TEST(wipe_rewrites_what_maps_pointers)
{
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 16];
    cx_db *db;
    sqlite3 *bare;
    folder_fresh(folder, "wipe_mapped");
    CHECK(mkdir(folder, 0700) == 0);
    (void)snprintf(path, sizeof path, "%s/mapped.db", folder);
    REQUIRE(sqlite3_open(path, &bare) == SQLITE_OK);
    CHECK(sqlite3_exec(bare, "PRAGMA auto_vacuum=FULL; CREATE TABLE first(a)", NULL, NULL, NULL) ==
          SQLITE_OK);
    (void)sqlite3_close(bare);
    REQUIRE(!cx_failed(cx_db_open(path, CX_DB_WRITE, &db, &err)));
    work(db);
    uint64_t written = sum_of(db);
    CHECK_STATUS(cx_db_forget_deleted(db, true, &err), &err);
    CHECK_STATUS(cx_db_check(db, &err), &err);
    CHECK(sum_of(db) == written);
    cx_db_close(db);
    folder_remove(folder);
}
