/*
 * test_db.c - a file that is read without locks stays as it is, whatever a writer does meanwhile
 * (D1).
 */
#include "db/db.h"

#include <stdio.h>
#include <sys/stat.h>

#include "os/share.h"
#include "tests/support/folder.h"
#include "tests/test.h"

enum { ROWS = 3000 };

typedef struct place {
    char folder[FOLDER_PATH_SIZE];
    char file[FOLDER_PATH_SIZE + 16];
    char log[FOLDER_PATH_SIZE + 32];
    cx_err err;
} place;

static void run(place *p, cx_db *db, const char *sql)
{
    CHECK_STATUS(cx_db_run(db, sql, &p->err), &p->err);
}

static cx_db *opened(place *p, cx_db_mode mode)
{
    cx_db *db = NULL;
    CHECK_STATUS(cx_db_open(p->file, mode, &db, &p->err), &p->err);
    return db;
}

/* Rows of more than a page cache holds, all of them "a". */
static bool place_init(place *p)
{
    folder_fresh(p->folder, "db");
    (void)mkdir(p->folder, 0700);
    (void)snprintf(p->file, sizeof p->file, "%s/t.db", p->folder);
    (void)snprintf(p->log, sizeof p->log, "%s-wal", p->file);
    cx_db *db = opened(p, CX_DB_WRITE);
    if (db == NULL)
        return false;
    run(p, db,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
        " INSERT INTO t SELECT i, 'a' || hex(zeroblob(1000)) FROM n;");
    cx_db_close(db);
    return true;
}

static void overwrite(place *p, bool vacuum)
{
    cx_db *db = opened(p, CX_DB_WRITE);
    if (db == NULL)
        return;
    run(p, db, "UPDATE t SET v = 'b' || hex(zeroblob(1100)); DELETE FROM t WHERE id > 2000;");
    if (vacuum) {
        run(p, db, "VACUUM");
        CHECK(cx_db_empty_log(db, &p->err).code == CX_E_BUSY);
    }
    cx_db_close(db);
}

static int64_t log_bytes(const place *p)
{
    struct stat info;
    return stat(p->log, &info) == 0 ? (int64_t)info.st_size : 0;
}

/* Reads a few rows, lets the file be written to, and reads the rest: all of them as they were. */
static void read_while_written(place *p, cx_db_mode mode, char expected, bool vacuum)
{
    cx_db *db = opened(p, mode);
    cx_db_statement *rows = NULL;
    REQUIRE(db != NULL);
    CHECK_STATUS(cx_db_prepare(db, "SELECT v FROM t ORDER BY id", &rows, &p->err), &p->err);
    unsigned count = 0, others = 0;
    bool row = rows != NULL;
    while (row) {
        CHECK_STATUS(cx_db_step(rows, &row, &p->err), &p->err);
        if (!row)
            break;
        others += cx_db_text(rows, 0).data[0] != expected;
        if (++count == 10)
            overwrite(p, vacuum);
    }
    CHECK(count == (expected == 'a' ? ROWS : 2000));
    CHECK_INT(others, 0);
    CHECK(log_bytes(p) > 0); /* left to the next one */
    cx_db_finish(rows);
    cx_db_close(db);
}

CX_TEST(db_read_without_locks_stays_as_it_is)
{
    place p;
    REQUIRE(place_init(&p));
    read_while_written(&p, CX_DB_IMMUTABLE, 'a', false);
    /* The same with a log that another process left, twice: now it is being read, too. */
    read_while_written(&p, CX_DB_ALONE, 'b', false);
    read_while_written(&p, CX_DB_ALONE, 'b', true);
    overwrite(&p, false);
    CHECK_INT(log_bytes(&p), 0);
    folder_remove(p.folder);
}

static int64_t number_of(place *p, const char *question)
{
    cx_db *db = opened(p, CX_DB_WRITE);
    cx_db_statement *ask = NULL;
    bool row = false;
    int64_t number = 0;
    if (db == NULL)
        return 0;
    CHECK_STATUS(cx_db_prepare(db, question, &ask, &p->err), &p->err);
    CHECK_STATUS(cx_db_step(ask, &row, &p->err), &p->err);
    if (row)
        number = cx_db_int(ask, 0);
    cx_db_finish(ask);
    cx_db_close(db);
    return number;
}

CX_TEST(db_keeps_no_more_pages_than_it_may)
{
    place p;
    REQUIRE(place_init(&p));
    CHECK_INT(number_of(&p, "PRAGMA cache_size"), -(64 << 10)); /* negative: KiB */
    cx_db_limit_cache(100 << 10);
    CHECK_INT(number_of(&p, "PRAGMA cache_size"), -100);
    overwrite(&p, false); /* of more than that */
    CHECK_INT(number_of(&p, "SELECT count(*) FROM t WHERE v GLOB 'b*'"), 2000);
    cx_db_limit_cache(0);
    CHECK_INT(number_of(&p, "PRAGMA cache_size"), -(int64_t)(CX_DB_CACHE_MIN >> 10));
    cx_db_limit_cache(CX_DB_CACHE_DEFAULT);
    folder_remove(p.folder);
}

static void add_rows(place *p)
{
    cx_db *db = opened(p, CX_DB_WRITE);
    if (db == NULL)
        return;
    run(p, db,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)"
        " INSERT INTO t (v) SELECT 'c' || hex(randomblob(500)) FROM n;");
    cx_db_close(db);
}

CX_TEST(db_leaves_a_short_log_to_the_next_one)
{
    place p;
    REQUIRE(place_init(&p));
    cx_db_leave_log(1 << 20);
    add_rows(&p);
    CHECK(log_bytes(&p) > 0);
    add_rows(&p); /* goes on in it */
    CHECK(log_bytes(&p) > 50000 && log_bytes(&p) < 1 << 20);
    cx_db_leave_log(4096); /* it is longer */
    add_rows(&p);
    CHECK_INT(log_bytes(&p), 0);
    cx_db_leave_log(1 << 20);
    add_rows(&p);
    /* Who reads without a writer sees it, and leaves it. */
    cx_db *db = opened(&p, CX_DB_ALONE);
    cx_db_statement *ask = NULL;
    bool row = false;
    REQUIRE(db != NULL);
    CHECK_STATUS(cx_db_prepare(db, "SELECT count(*) FROM t WHERE v GLOB 'c*'", &ask, &p.err),
                 &p.err);
    CHECK_STATUS(cx_db_step(ask, &row, &p.err), &p.err);
    CHECK(row && cx_db_int(ask, 0) == 200);
    cx_db_finish(ask);
    cx_db_close(db);
    CHECK(log_bytes(&p) > 0);
    cx_db_leave_log(0);
    CHECK_INT(number_of(&p, "SELECT count(*) FROM t WHERE v GLOB 'c*'"), 200);
    CHECK_INT(log_bytes(&p), 0);
    folder_remove(p.folder);
}

CX_TEST(db_is_not_read_without_locks_while_it_is_put_in_order)
{
    place p;
    cx_db *db = NULL;
    REQUIRE(place_init(&p));
    cx_file writer = cx_share_open(p.file);
    CHECK(writer != CX_FILE_NONE && cx_share_lock_exclusive(writer));
    CHECK(cx_db_open(p.file, CX_DB_IMMUTABLE, &db, &p.err).code == CX_E_BUSY);
    CHECK(cx_db_open(p.file, CX_DB_ALONE, &db, &p.err).code == CX_E_BUSY);
    cx_share_leave(writer);
    db = opened(&p, CX_DB_IMMUTABLE);
    CHECK(!cx_share_lock_exclusive(writer));
    CHECK(cx_share_lock_shared(writer));
    cx_db_close(db);
    CHECK(cx_share_lock_exclusive(writer));
    cx_share_close(writer);
    folder_remove(p.folder);
}
