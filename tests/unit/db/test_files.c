/*
 * test_files.c - databases over a cx_io: what others see after each sync is the end of one
 * transaction, connections of one process see each other at once, and a failure is never forgotten.
 */
#include "db/files.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>

#include "db/db.h"
#include "db/files_internal.h"
#include "db/wipe.h"
#include "tests/support/fault.h"
#include "tests/support/folder.h"
#include "tests/support/synced.h"
#include "tests/test.h"

#define DB "mem:t.db"

static synced_files files;
static cx_err err;

static void begin(void)
{
    synced_init(&files);
    CHECK_STATUS(cx_db_use_files("mem:", &files.io, &err), &err);
}

static void end(void)
{
    CHECK_INT(synced_open_count(&files), 0);
    CHECK_STATUS(cx_db_use_files(NULL, NULL, &err), &err);
    synced_done(&files);
}

static cx_db *open_db(const char *path, cx_db_mode mode)
{
    cx_db *db = NULL;
    CHECK_STATUS(cx_db_open(path, mode, &db, &err), &err);
    CX_ASSERT(db != NULL);
    return db;
}

static void run(cx_db *db, const char *sql)
{
    CHECK_STATUS(cx_db_run(db, sql, &err), &err);
}

static int64_t number(cx_db *db, const char *sql)
{
    cx_db_statement *statement = NULL;
    bool row = false;
    int64_t found = -1;
    CHECK_STATUS(cx_db_prepare(db, sql, &statement, &err), &err);
    if (statement == NULL)
        return found;
    CHECK_STATUS(cx_db_step(statement, &row, &err), &err);
    if (row)
        found = cx_db_int(statement, 0);
    cx_db_finish(statement);
    return found;
}

/* --- what another process would see ----------------------------------------------------------- */

static char folder[FOLDER_PATH_SIZE];

/* The image as a file of the file system; NULL when there is none. */
static cx_db *open_image(void)
{
    char path[FOLDER_PATH_SIZE + 16];
    bool there;
    cx_buf image = synced_image(&files, DB, &there);
    (void)snprintf(path, sizeof path, "%s/image.db", folder);
    FILE *file = there ? fopen(path, "wb") : NULL;
    if (file != NULL) {
        CHECK(fwrite(image.data, 1, image.size, file) == image.size);
        (void)fclose(file);
    }
    cx_buf_done(&image);
    return file == NULL ? NULL : open_db(path, CX_DB_IMMUTABLE);
}

static void begin_images(const char *name)
{
    folder_fresh(folder, name);
    CHECK(mkdir(folder, 0700) == 0);
}

static int64_t image_number(const char *sql)
{
    cx_db *db = open_image();
    if (db == NULL)
        return -2;
    CHECK_STATUS(cx_db_check(db, &err), &err);
    const int64_t found = number(db, sql);
    cx_db_close(db);
    return found;
}

/* Bytes of the write-ahead log. */
static uint64_t log_size(void)
{
    uint64_t size = 0;
    CHECK_INT(cx_image_find_log(DB, false, &size), 0);
    return size;
}

CX_TEST(files_others_see_what_was_published)
{
    begin();
    begin_images("files_publish");
    cx_db *writer = open_db(DB, CX_DB_WRITE);
    run(writer, "CREATE TABLE t(a)");
    cx_db *reader = open_db(DB, CX_DB_READ);
    CHECK_INT(image_number("SELECT count(*) FROM sqlite_master"), 0);
    run(writer, "INSERT INTO t VALUES(1), (2)");
    CHECK_INT(number(reader, "SELECT count(*) FROM t"), 2); /* at once */
    CHECK_INT(image_number("SELECT count(*) FROM sqlite_master"), 0);
    CHECK_STATUS(cx_db_publish(writer, &err), &err);
    CHECK_INT(image_number("SELECT count(*) FROM t"), 2);
    run(writer, "INSERT INTO t VALUES(3)");
    CHECK_INT(number(reader, "SELECT count(*) FROM t"), 3);
    CHECK_INT(image_number("SELECT count(*) FROM t"), 2);
    CHECK(!cx_failed(cx_db_publish(reader, &err))); /* has nothing to do */
    CHECK_INT(image_number("SELECT count(*) FROM t"), 2);
    CHECK(cx_db_run(reader, "INSERT INTO t VALUES(4)", &err).code == CX_E_DENIED);
    cx_db_close(reader);
    cx_db_close(writer); /* a checkpoint */
    CHECK_INT(image_number("SELECT count(*) FROM t"), 3);
    static const cx_db_mode modes[] = {CX_DB_READ, CX_DB_IMMUTABLE, CX_DB_ALONE, CX_DB_EXTERNAL};
    for (size_t i = 0; i < CX_COUNT_OF(modes); i++) {
        reader = open_db(DB, modes[i]);
        CHECK_INT(number(reader, "SELECT count(*) FROM t"), 3);
        CHECK_STATUS(cx_db_check(reader, &err), &err);
        cx_db_close(reader);
    }
    folder_remove(folder);
    end();
}

/* --- a kill at any time ----------------------------------------------------------------------- */

enum { STATES_MAX = 4000 };
#define SUM_SQL "SELECT coalesce(sum(a * 7 + length(b) * 3 + unicode(b)), 0) FROM t"
#define STATE_SQL "SELECT coalesce(max(n), 0) FROM state"

static struct {
    int64_t sums[STATES_MAX]; /* of each state that was committed */
    int64_t state;            /* the last one */
    int64_t last_seen;        /* outside */
    unsigned syncs;
} history;

static void check_image(void *arg, const char *path)
{
    (void)arg;
    cx_err why = {0};
    CHECK(strcmp(path, DB) == 0);
    history.syncs++;
    cx_db *db = open_image();
    if (db == NULL)
        return;
    CHECK_STATUS(cx_db_check(db, &why), &why);
    if (number(db, "SELECT count(*) FROM sqlite_master") != 0) {
        const int64_t state = number(db, STATE_SQL);
        CHECK(state >= history.last_seen && state <= history.state + 1);
        /* The transaction whose sums are noted only after its commit. */
        if (state <= history.state)
            CHECK_INT(number(db, SUM_SQL), history.sums[state]);
        history.last_seen = state;
    }
    cx_db_close(db);
}

static void change(cx_db *db, uint64_t *random)
{
    char sql[400];
    const unsigned what = (unsigned)(cx_test_random(random) % 8);
    const unsigned some = (unsigned)(cx_test_random(random) % 200);
    static const char insert[] =
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<%u+1)"
        " INSERT INTO t(b) SELECT hex(randomblob(x*7%%900+1)) FROM n";
    static const char *const statements[] = {
        insert,
        "DELETE FROM t WHERE a %% 200 = %u",
        "UPDATE t SET b = b || hex(zeroblob(%u)) WHERE a %% 17 = 3",
        "DELETE FROM t WHERE a > (SELECT max(a) FROM t) - %u",
    };
    (void)snprintf(sql, sizeof sql, statements[what % CX_COUNT_OF(statements)], some);
    run(db, sql);
}

static void commit_state(cx_db *db, uint64_t *random)
{
    char sql[100];
    CHECK_STATUS(cx_db_begin_write(db, &err), &err);
    change(db, random);
    if (cx_test_random(random) % 5 == 0) {
        cx_db_rollback(db);
        return;
    }
    (void)snprintf(sql, sizeof sql, "INSERT INTO state VALUES(%lld)",
                   (long long)(history.state + 1));
    run(db, sql);
    const int64_t sum = number(db, SUM_SQL);
    CHECK_STATUS(cx_db_commit(db, &err), &err);
    history.sums[++history.state] = sum;
}

/* Readers hold old transactions, so that checkpoints stop half-way. */
static void work_with_readers(cx_db *writer, unsigned steps, uint64_t *random)
{
    cx_db *readers[3];
    int64_t sums[3];
    bool reads[3] = {false};
    for (int i = 0; i < 3; i++)
        readers[i] = open_db(DB, CX_DB_READ);
    for (unsigned step = 0; step < steps; step++) {
        commit_state(writer, random);
        const int who = (int)(cx_test_random(random) % 3);
        if (reads[who]) {
            CHECK_INT(number(readers[who], SUM_SQL), sums[who]);
            CHECK_STATUS(cx_db_commit(readers[who], &err), &err);
        } else {
            CHECK_STATUS(cx_db_begin(readers[who], &err), &err);
            sums[who] = number(readers[who], SUM_SQL);
            CHECK_INT(sums[who], history.sums[history.state]);
        }
        reads[who] = !reads[who];
        if (cx_test_random(random) % 3 == 0)
            run(writer, "PRAGMA wal_checkpoint(PASSIVE)");
    }
    for (int i = 0; i < 3; i++)
        cx_db_close(readers[i]);
}

CX_TEST(files_each_sync_is_the_end_of_a_transaction)
{
    uint64_t random = cx_test_seed();
    begin();
    begin_images("files_kill");
    memset(&history, 0, sizeof history);
    files.on_sync = check_image;
    cx_db *writer = open_db(DB, CX_DB_WRITE);
    run(writer, "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT); CREATE INDEX i ON t(b);"
                "CREATE TABLE state(n)");
    for (int round = 0; round < 6; round++) {
        work_with_readers(writer, 40, &random);
        if (round % 2 == 0)
            CHECK_STATUS(cx_db_publish(writer, &err), &err);
        if (round == 3)
            run(writer, "VACUUM");
        if (round == 4)
            CHECK_STATUS(cx_db_forget_deleted(writer, true, &err), &err);
    }
    CHECK_STATUS(cx_db_publish(writer, &err), &err);
    CHECK_INT(history.last_seen, history.state);
    CHECK(history.syncs > 20);
    run(writer, "PRAGMA journal_mode=DELETE"); /* each commit is a sync */
    const unsigned before = history.syncs;
    for (int i = 0; i < 20; i++)
        commit_state(writer, &random);
    CHECK(history.syncs > before + 10);
    cx_db_close(writer);
    folder_remove(folder);
    end();
}

/* What was not published before a kill is gone, and the rest is whole. */
CX_TEST(files_a_kill_loses_what_was_not_published)
{
    begin();
    begin_images("files_lost");
    cx_db *writer = open_db(DB, CX_DB_WRITE);
    run(writer, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    CHECK_STATUS(cx_db_publish(writer, &err), &err);
    run(writer, "INSERT INTO t VALUES(2)");
    files.refuse_sync = EIO; /* nothing that comes now is ever synced, as after a kill */
    cx_db_close(writer);
    synced_kill(&files);
    files.refuse_sync = 0;
    CHECK_INT(image_number("SELECT count(*) FROM t"), 1);
    writer = open_db(DB, CX_DB_WRITE);
    CHECK_INT(number(writer, "SELECT count(*) FROM t"), 1);
    CHECK_STATUS(cx_db_check(writer, &err), &err);
    run(writer, "INSERT INTO t VALUES(3)");
    cx_db_close(writer);
    CHECK_INT(image_number("SELECT sum(a) FROM t"), 4);
    folder_remove(folder);
    end();
}

CX_TEST(files_a_reader_before_the_writer_keeps_its_image)
{
    begin();
    cx_db *writer = open_db(DB, CX_DB_WRITE);
    run(writer, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    cx_db_close(writer);
    cx_db *before = open_db(DB, CX_DB_READ), *lazy = open_db(DB, CX_DB_READ);
    CHECK_INT(number(before, "SELECT count(*) FROM t"), 1);
    writer = open_db(DB, CX_DB_WRITE);
    run(writer, "INSERT INTO t VALUES(2)");
    CHECK_INT(number(before, "SELECT count(*) FROM t"), 1);
    CHECK_INT(number(lazy, "SELECT count(*) FROM t"), 1); /* reads for the first time */
    CHECK_STATUS(cx_db_publish(writer, &err), &err);
    CHECK_INT(number(before, "SELECT count(*) FROM t"), 1);
    CHECK_STATUS(cx_db_check(before, &err), &err);
    cx_db *after = open_db(DB, CX_DB_READ);
    CHECK_INT(number(after, "SELECT count(*) FROM t"), 2);
    cx_db_close(before);
    run(writer, "INSERT INTO t VALUES(3)");
    CHECK_INT(number(after, "SELECT count(*) FROM t"), 3);
    CHECK_STATUS(cx_db_check(writer, &err), &err);
    cx_db_close(lazy);
    cx_db_close(after);
    cx_db_close(writer);
    end();
}

/* --- failures --------------------------------------------------------------------------------- */

CX_TEST(files_a_failed_sync_is_not_forgotten)
{
    begin();
    begin_images("files_failed");
    cx_db *writer = open_db(DB, CX_DB_WRITE);
    run(writer, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    CHECK_STATUS(cx_db_publish(writer, &err), &err);
    run(writer, "INSERT INTO t VALUES(2)");
    files.refuse_sync = ENOSPC;
    CHECK(cx_db_publish(writer, &err).code == CX_E_IO);
    CHECK(strstr(err.message, "No space left") != NULL);
    files.refuse_sync = 0;
    CHECK(cx_db_publish(writer, &err).code == CX_E_IO);
    CHECK(strstr(err.message, "failed before") != NULL);
    CHECK(cx_db_empty_log(writer, &err).code == CX_E_IO);
    CHECK(cx_db_run(writer, "INSERT INTO t VALUES(3)", &err).code == CX_E_IO);
    CHECK(strstr(err.message, "failed before") != NULL);
    CHECK_INT(number(writer, "SELECT count(*) FROM t"), 2); /* reading goes on */
    cx_db *other = NULL;
    CHECK(cx_db_open(DB, CX_DB_WRITE, &other, &err).code == CX_E_IO);
    CHECK(strstr(err.message, "failed before") != NULL);
    CHECK(cx_db_open(DB, CX_DB_READ, &other, &err).code == CX_E_IO);
    CHECK_INT(image_number("SELECT count(*) FROM t"), 1);
    cx_db_close(writer);
    CHECK_INT(image_number("SELECT count(*) FROM t"), 1);
    writer = open_db(DB, CX_DB_WRITE);
    CHECK_INT(number(writer, "SELECT count(*) FROM t"), 1);
    run(writer, "INSERT INTO t VALUES(4)");
    CHECK_STATUS(cx_db_publish(writer, &err), &err);
    CHECK_INT(image_number("SELECT sum(a) FROM t"), 5);
    cx_db_close(writer);
    folder_remove(folder);
    end();
}

CX_TEST(files_say_why_they_cannot_be_opened)
{
    cx_db *db = NULL;
    begin();
    CHECK(cx_db_open(DB, CX_DB_READ, &db, &err).code == CX_E_NOT_FOUND);
    static const struct {
        int code;
        cx_code expected;
    } rows[] = {{EROFS, CX_E_DENIED}, {EAGAIN, CX_E_BUSY}, {EBUSY, CX_E_BUSY},
                {EIO, CX_E_IO},       {ENOSPC, CX_E_IO},   {ENOMEM, CX_E_NOMEM}};
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        files.refuse_open = rows[i].code;
        CHECK_INT(cx_db_open(DB, CX_DB_WRITE, &db, &err).code, rows[i].expected);
    }
    files.refuse_open = 0;
    db = open_db(DB, CX_DB_WRITE);
    run(db, "CREATE TABLE t(a); INSERT INTO t VALUES(randomblob(50000))");
    files.room = 20000;
    CHECK(cx_db_publish(db, &err).code == CX_E_IO);
    CHECK(strstr(err.message, "No space left") != NULL);
    cx_db_close(db);
    end();
}

/* The n-th call on the io fails, once: whatever happened, others see the end of a transaction, and
 * a new opening goes on from there. */
static bool fail_one(unsigned which, uint64_t at)
{
    fault_io faults;
    cx_db *db = NULL;
    fault_io_init(&faults, &files.io, which, at, false);
    faults.code = EIO;
    CHECK_STATUS(cx_db_use_files(NULL, NULL, &err), &err);
    CHECK_STATUS(cx_db_use_files("mem:", &faults.io, &err), &err);
    const int64_t before = image_number("SELECT sum(a) FROM t");
    int64_t committed = before;
    if (!cx_failed(cx_db_open(DB, CX_DB_WRITE, &db, &err))) {
        bool good = true;
        for (int i = 0; i < 4 && good; i++) {
            good = !cx_failed(cx_db_run(db, "INSERT INTO t VALUES(1, randomblob(9000))", &err));
            committed += good ? 1 : 0;
            good = good && !cx_failed(cx_db_publish(db, &err));
            if (good)
                CHECK_INT(image_number("SELECT sum(a) FROM t"), committed);
        }
        cx_db_close(db);
    }
    const int64_t after = image_number("SELECT sum(a) FROM t");
    CHECK(after >= before && after <= committed);
    CHECK_INT(atomic_load(&faults.open_files), 0);
    const bool fired = atomic_load(&faults.fired) != 0;
    CHECK(fired || after == before + 4);
    CHECK_STATUS(cx_db_use_files(NULL, NULL, &err), &err);
    CHECK_STATUS(cx_db_use_files("mem:", &files.io, &err), &err);
    return fired;
}

CX_TEST(files_any_call_may_fail)
{
    begin();
    begin_images("files_fault");
    cx_db *db = open_db(DB, CX_DB_WRITE);
    run(db, "CREATE TABLE t(a, b); INSERT INTO t VALUES(0, '')");
    cx_db_close(db);
    static const unsigned kinds[] = {FAULT_OPEN, FAULT_PREAD, FAULT_WRITE, FAULT_SYNC, FAULT_SIZE};
    for (size_t i = 0; i < CX_COUNT_OF(kinds); i++) {
        uint64_t at = 1;
        while (fail_one(kinds[i], at))
            at++;
        CHECK(at > 1);
    }
    folder_remove(folder);
    end();
}

/* --- what was deleted, and how much is kept --------------------------------------------------- */

static bool image_has(const char *text)
{
    bool there;
    cx_buf image = synced_image(&files, DB, &there);
    bool found = false;
    const size_t size = strlen(text);
    for (size_t i = 0; there && !found && i + size <= image.size; i++)
        found = memcmp(image.data + i, text, size) == 0;
    cx_buf_done(&image);
    return found;
}

/* Pages of the image whose unused part has a byte that is not zero. */
static unsigned unwiped_pages(void)
{
    bool there;
    cx_buf image = synced_image(&files, DB, &there);
    unsigned found = 0;
    for (size_t at = 0; at + 4096 <= image.size; at += 4096) {
        size_t from, to;
        bool dirty = false;
        if (!cx_db_wipe_gap(image.data + at, 4096, at == 0, &from, &to))
            continue;
        for (size_t i = from; i < to; i++)
            dirty = dirty || image.data[at + i] != 0;
        found += dirty ? 1 : 0;
    }
    cx_buf_done(&image);
    return found;
}

static void check_forgotten(bool wiped)
{
    begin();
    cx_db *db = open_db(DB, CX_DB_WRITE), *reader = open_db(DB, CX_DB_READ);
    /* Keys in no order: rows move to other pages. */
    run(db, "CREATE TABLE t(a INTEGER, b TEXT, PRIMARY KEY(b, a)) WITHOUT ROWID;"
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<3000)"
            " INSERT INTO t SELECT x, (x*7919%3001) || 'geheim' || hex(zeroblob(x%90)) FROM n");
    CHECK_STATUS(cx_db_publish(db, &err), &err);
    CHECK(image_has("geheim"));
    CHECK_INT(unwiped_pages(), 0);
    CHECK_INT(number(reader, "SELECT count(*) FROM t"), 3000);
    run(db, "UPDATE t SET b='offen' WHERE a%3=0");
    run(db, "DELETE FROM t WHERE a%3<>0");
    CHECK(log_size() > 0);
    CHECK_STATUS(cx_db_forget_deleted(db, wiped, &err), &err);
    CHECK_INT(log_size(), 0);
    CHECK(!image_has("geheim"));
    CHECK_INT(unwiped_pages(), 0);
    CHECK(image_has("offen"));
    CHECK_STATUS(cx_db_check(db, &err), &err);
    CHECK_INT(number(reader, "SELECT count(*) FROM t"), 1000);
    cx_db_close(reader);
    cx_db_close(db);
    CHECK(!image_has("geheim"));
    end();
}

CX_TEST(files_forget_what_was_deleted)
{
    check_forgotten(true);
    check_forgotten(false); /* rewritten as a whole */
}

CX_TEST(files_are_there_or_not)
{
    char path[FOLDER_PATH_SIZE + 16];
    begin();
    CHECK(!cx_db_is_there(DB));
    cx_db *db = open_db(DB, CX_DB_WRITE);
    run(db, "CREATE TABLE t(a)");
    cx_db_close(db);
    CHECK(cx_db_is_there(DB));
    end();
    begin_images("files_there");
    (void)snprintf(path, sizeof path, "%s/t.db", folder);
    CHECK(!cx_db_is_there(path));
    db = open_db(path, CX_DB_WRITE);
    run(db, "CREATE TABLE t(a)");
    cx_db_close(db);
    CHECK(cx_db_is_there(path));
    /* What cannot be told is not called absent. */
    (void)snprintf(path, sizeof path, "%s/t.db/below", folder);
    CHECK(cx_db_is_there(path));
    folder_remove(folder);
}

CX_TEST(files_keep_their_log_small)
{
    uint64_t most = 0;
    begin();
    begin_images("files_small");
    cx_db *db = open_db(DB, CX_DB_WRITE), *reader = open_db(DB, CX_DB_READ);
    run(db, "CREATE TABLE t(a)");
    CHECK_INT(number(reader, "SELECT count(*) FROM t"), 0);
    for (int i = 0; i < 24; i++) {
        run(db, "INSERT INTO t VALUES(zeroblob(900000))"); /* 220 pages */
        most = most > log_size() ? most : log_size();
    }
    CHECK(most > 3000u * 4096 && most < 4400u * 4120);
    CHECK(log_size() < most / 2);
    CHECK(image_number("SELECT count(*) FROM t") > 15);
    CHECK_STATUS(cx_db_empty_log(db, &err), &err);
    CHECK_INT(log_size(), 0);
    CHECK_INT(image_number("SELECT count(*) FROM t"), 24);
    cx_db_close(reader);
    cx_db_close(db);
    folder_remove(folder);
    end();
}

/* --- attached --------------------------------------------------------------------------------- */

CX_TEST(files_can_be_attached)
{
    cx_db *writer = NULL, *reader = NULL;
    begin();
    begin_images("files_attached");
    writer = open_db(NULL, CX_DB_SCRATCH);
    reader = open_db(NULL, CX_DB_SCRATCH);
    CHECK(cx_db_attach(writer, DB, CX_DB_READ, "x", &err).code == CX_E_NOT_FOUND);
    CHECK_STATUS(cx_db_attach(writer, DB, CX_DB_WRITE, "x", &err), &err);
    run(writer, "CREATE VIRTUAL TABLE x.w USING fts5(s); INSERT INTO x.w VALUES('eins zwei')");
    CHECK_STATUS(cx_db_attach(reader, DB, CX_DB_READ, "x", &err), &err);
    CHECK_INT(number(reader, "SELECT count(*) FROM x.w WHERE w MATCH 'zwei'"), 1);
    CHECK_INT(image_number("SELECT count(*) FROM sqlite_master"), 0);
    CHECK(cx_db_empty_attached_log(writer, "x"));
    CHECK_INT(image_number("SELECT count(*) FROM w"), 1);
    CHECK_INT(log_size(), 0);
    run(writer, "INSERT INTO x.w VALUES('drei')");
    CHECK_STATUS(cx_db_publish(writer, &err), &err);
    CHECK_INT(image_number("SELECT count(*) FROM w"), 2);
    run(writer, "INSERT INTO x.w VALUES('vier')");
    cx_db_close(writer); /* while the reader is open */
    CHECK_INT(image_number("SELECT count(*) FROM w"), 3);
    cx_db_close(reader);
    folder_remove(folder);
    end();
}

/* --- the prefix ------------------------------------------------------------------------------- */

CX_TEST(files_prefix_is_checked)
{
    synced_files other;
    char path[FOLDER_PATH_SIZE + 16], long_prefix[CX_DB_PREFIX_MAX + 2];
    memset(long_prefix, 'p', sizeof long_prefix - 1);
    long_prefix[sizeof long_prefix - 1] = 0;
    synced_init(&other);
    CHECK(!cx_db_in_files(DB));
    static const char *const bad[] = {"", "/mem", "./mem", " mem:"};
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++)
        CHECK(cx_db_use_files(bad[i], &other.io, &err).code == CX_E_USAGE);
    CHECK(cx_db_use_files(long_prefix, &other.io, &err).code == CX_E_USAGE);
    begin();
    CHECK(cx_db_in_files(DB) && !cx_db_in_files("me:x") && !cx_db_in_files("/mem:x"));
    cx_db *db = open_db(DB, CX_DB_WRITE);
    CHECK(cx_db_use_files("mem:", &other.io, &err).code == CX_E_BUSY);
    CHECK(cx_db_use_files(NULL, NULL, &err).code == CX_E_BUSY);
    cx_db_close(db);
    /* Other paths are files as ever. */
    begin_images("files_plain");
    (void)snprintf(path, sizeof path, "%s/plain.db", folder);
    db = open_db(path, CX_DB_WRITE);
    run(db, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    CHECK_STATUS(cx_db_publish(db, &err), &err);
    cx_db_close(db);
    struct stat info;
    CHECK(stat(path, &info) == 0 && info.st_size == 8192);
    folder_remove(folder);
    end();
    CHECK(!cx_db_in_files(DB));
    synced_done(&other);
}

/* --- an image, byte by byte ------------------------------------------------------------------- */

enum { MODEL_SIZE = 60000 };

static void check_against(cx_image *image, const uint8_t *model, size_t size)
{
    static uint8_t bytes[MODEL_SIZE];
    size_t count = 0;
    CHECK_INT(cx_image_read(image, bytes, sizeof bytes, 0, &count), 0);
    CHECK_INT(count, size);
    CHECK(memcmp(bytes, model, size) == 0);
}

static void check_synced(const uint8_t *model, size_t size)
{
    bool there;
    cx_buf synced = synced_image(&files, "mem:image", &there);
    CHECK(there && synced.size == size && memcmp(synced.data, model, size) == 0);
    cx_buf_done(&synced);
}

/* Writes and cuts of any size anywhere are those of a file. */
CX_TEST(files_image_is_a_file)
{
    static uint8_t model[MODEL_SIZE], data[9000];
    uint64_t random = cx_test_seed();
    size_t size = 0;
    cx_image *image = NULL;
    begin();
    memset(model, 0, sizeof model);
    REQUIRE(cx_image_open("mem:image", true, true, &image) == 0);
    for (int step = 0; step < 3000; step++) {
        const size_t at = (size_t)(cx_test_random(&random) % (MODEL_SIZE - sizeof data));
        const size_t many = (size_t)(cx_test_random(&random) % sizeof data);
        switch (cx_test_random(&random) % 8) {
        case 0:
            CHECK_INT(cx_image_truncate(image, at), 0);
            memset(model + at, 0, MODEL_SIZE - at);
            size = at;
            break;
        case 1:
            CHECK_INT(cx_image_sync(image), 0);
            if (step > 100)
                check_synced(model, size);
            break;
        default:
            for (size_t i = 0; i < many; i++)
                data[i] = (uint8_t)cx_test_random(&random);
            CHECK_INT(cx_image_write(image, data, many, at), 0);
            if (many != 0)
                memcpy(model + at, data, many);
            size = many != 0 && at + many > size ? at + many : size;
        }
        check_against(image, model, size);
    }
    CHECK_INT(cx_image_sync(image), 0);
    check_synced(model, size);
    cx_image_close(image);
    end();
}

/* --- locks ------------------------------------------------------------------------------------ */

enum { SHARE = SQLITE_SHM_SHARED, ALONE = SQLITE_SHM_EXCLUSIVE };

static int take(cx_image_user *user, int slot, int count, int how)
{
    return cx_image_index_lock(user, slot, count, SQLITE_SHM_LOCK | how);
}

static void leave(cx_image_user *user, int slot, int count, int how)
{
    CHECK_INT(cx_image_index_lock(user, slot, count, SQLITE_SHM_UNLOCK | how), SQLITE_OK);
}

CX_TEST(files_locks_of_the_index)
{
    begin();
    cx_image *image = NULL;
    REQUIRE(cx_image_open("mem:locks", true, true, &image) == 0);
    cx_image_user a = {.image = image}, b = {.image = image};
    void volatile *first = NULL, *again = NULL;
    CHECK_INT(cx_image_index(&a, 0, 32768, false, &first), SQLITE_OK);
    CHECK(first == NULL);
    CHECK_INT(cx_image_index(&a, 0, 32768, true, &first), SQLITE_OK);
    CHECK_INT(cx_image_index(&b, 0, 32768, false, &again), SQLITE_OK);
    CHECK(first != NULL && first == again);
    CHECK_INT(take(&a, 3, 1, SHARE), SQLITE_OK);
    CHECK_INT(take(&a, 3, 1, SHARE), SQLITE_OK); /* once */
    CHECK_INT(take(&b, 3, 1, SHARE), SQLITE_OK);
    CHECK_INT(take(&a, 2, 3, ALONE), SQLITE_BUSY); /* all or none */
    CHECK_INT(take(&b, 2, 1, ALONE), SQLITE_OK);
    CHECK_INT(take(&a, 2, 1, SHARE), SQLITE_BUSY);
    CHECK_INT(take(&a, 2, 1, ALONE), SQLITE_BUSY);
    leave(&a, 3, 1, SHARE);
    CHECK_INT(take(&a, 3, 1, ALONE), SQLITE_BUSY);
    cx_image_index_leave(&b); /* with all its locks */
    CHECK_INT(take(&a, 0, 8, ALONE), SQLITE_OK);
    CHECK_INT(take(&b, 7, 1, SHARE), SQLITE_BUSY);
    CHECK(cx_image_index_is_used(image));
    cx_image_index_leave(&a);
    CHECK(!cx_image_index_is_used(image));
    CHECK_INT(cx_image_index(&a, 0, 32768, false, &first), SQLITE_OK);
    CHECK(first == NULL); /* dropped with the last */
    cx_image_index_leave(&a);
    cx_image_close(image);
    end();
}

CX_TEST(files_locks_of_the_file)
{
    begin();
    cx_image *image = NULL;
    REQUIRE(cx_image_open("mem:locks", true, true, &image) == 0);
    cx_image_user a = {.image = image}, b = {.image = image}, c = {.image = image};
    CHECK_INT(cx_image_lock(&a, SQLITE_LOCK_SHARED), SQLITE_OK);
    CHECK_INT(cx_image_lock(&b, SQLITE_LOCK_SHARED), SQLITE_OK);
    CHECK(!cx_image_is_reserved(&b));
    CHECK_INT(cx_image_lock(&a, SQLITE_LOCK_RESERVED), SQLITE_OK);
    CHECK(cx_image_is_reserved(&b));
    CHECK_INT(cx_image_lock(&b, SQLITE_LOCK_RESERVED), SQLITE_BUSY);
    CHECK_INT(cx_image_lock(&b, SQLITE_LOCK_EXCLUSIVE), SQLITE_BUSY);
    CHECK_INT(cx_image_lock(&c, SQLITE_LOCK_SHARED), SQLITE_OK);
    cx_image_unlock(&c, SQLITE_LOCK_NONE);
    CHECK_INT(cx_image_lock(&a, SQLITE_LOCK_EXCLUSIVE), SQLITE_BUSY);
    CHECK_INT(cx_image_lock(&c, SQLITE_LOCK_SHARED), SQLITE_BUSY); /* no new ones meanwhile */
    cx_image_unlock(&b, SQLITE_LOCK_NONE);
    CHECK_INT(cx_image_lock(&a, SQLITE_LOCK_EXCLUSIVE), SQLITE_OK);
    CHECK_INT(cx_image_lock(&c, SQLITE_LOCK_SHARED), SQLITE_BUSY);
    cx_image_unlock(&a, SQLITE_LOCK_SHARED);
    CHECK_INT(cx_image_lock(&c, SQLITE_LOCK_SHARED), SQLITE_OK);
    CHECK_INT(cx_image_lock(&c, SQLITE_LOCK_RESERVED), SQLITE_OK);
    cx_image_unlock(&c, SQLITE_LOCK_NONE);
    cx_image_unlock(&a, SQLITE_LOCK_NONE);
    CHECK(!cx_image_is_reserved(&a));
    cx_image_close(image);
    end();
}

/* --- threads ---------------------------------------------------------------------------------- */

enum { READERS = 4, THREAD_ROUNDS = 60 };

typedef struct readers_work {
    atomic_bool ended;
    atomic_uint reads;
    atomic_uint wrong;
} readers_work;

static bool ask(cx_db *db, const char *sql, int64_t *out)
{
    cx_db_statement *statement = NULL;
    bool row = false;
    cx_err why = {0};
    if (cx_failed(cx_db_prepare(db, sql, &statement, &why)))
        return false;
    bool good = !cx_failed(cx_db_step(statement, &row, &why)) && row;
    if (good)
        *out = cx_db_int(statement, 0);
    cx_db_finish(statement);
    return good;
}

/* In one transaction the same is read twice, and every state is one that was committed: the rows of
 * each round have the same sum. */
static bool read_once(cx_db *db, int64_t *seen)
{
    cx_err why = {0};
    int64_t first = 0, again = 0, odd = 0;
    bool good = !cx_failed(cx_db_begin(db, &why)) && ask(db, "SELECT max(n) FROM t", &first);
    cx_thread_sleep_ms(2);
    good = good && ask(db, "SELECT max(n) FROM t", &again) &&
           ask(db, "SELECT count(*) FROM (SELECT n FROM t GROUP BY n HAVING sum(v)<>0)", &odd);
    good = good && first == again && odd == 0 && first >= *seen;
    *seen = first;
    return !cx_failed(cx_db_commit(db, &why)) && good;
}

static void read_always(readers_work *work)
{
    cx_db *db = NULL;
    cx_err why = {0};
    int64_t seen = 0;
    while (!atomic_load(&work->ended)) {
        if (db == NULL && cx_failed(cx_db_open(DB, CX_DB_READ, &db, &why))) {
            atomic_fetch_add(&work->wrong, 1);
            return;
        }
        if (!read_once(db, &seen))
            atomic_fetch_add(&work->wrong, 1);
        if (atomic_fetch_add(&work->reads, 1) % 7 == 0) {
            cx_db_close(db);
            db = NULL;
        }
    }
    cx_db_close(db);
}

static void write_rounds(readers_work *work)
{
    cx_db *db = NULL;
    cx_err why = {0};
    char sql[300];
    bool good = !cx_failed(cx_db_open(DB, CX_DB_WRITE, &db, &why));
    for (int i = 1; i <= THREAD_ROUNDS && good; i++) {
        (void)snprintf(sql, sizeof sql,
                       "BEGIN IMMEDIATE; DELETE FROM t WHERE n=%d;"
                       "INSERT INTO t VALUES(%d, %d, randomblob(30000));"
                       "INSERT INTO t VALUES(%d, -%d, randomblob(5000)); COMMIT",
                       i - 5, i, i, i, i);
        good = !cx_failed(cx_db_run(db, sql, &why));
        if (i % 3 == 0)
            good = good && !cx_failed(cx_db_run(db, "PRAGMA wal_checkpoint(PASSIVE)", &why));
        else if (i % 25 == 0)
            good = good && !cx_failed(cx_db_empty_log(db, &why));
        else if (i % 4 == 0)
            good = good && !cx_failed(cx_db_publish(db, &why));
    }
    cx_db_close(db);
    atomic_fetch_add(&work->wrong, good ? 0 : 1);
    atomic_store(&work->ended, true);
}

static void work_in_thread(void *arg, unsigned index)
{
    if (index == 0)
        write_rounds(arg);
    else
        read_always(arg);
}

CX_TEST(files_threads_see_whole_transactions)
{
    readers_work work = {0};
    begin();
    begin_images("files_threads");
    cx_db *db = open_db(DB, CX_DB_WRITE);
    run(db, "CREATE TABLE t(n, v, b); INSERT INTO t VALUES(0, 0, '')");
    cx_thread_team(1 + READERS, work_in_thread, &work);
    CHECK_INT(atomic_load(&work.wrong), 0);
    CHECK(atomic_load(&work.reads) > 0);
    CHECK_STATUS(cx_db_publish(db, &err), &err);
    cx_db_close(db);
    CHECK_INT(image_number("SELECT max(n) FROM t"), THREAD_ROUNDS);
    folder_remove(folder);
    end();
}
