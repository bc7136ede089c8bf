/*
 * test_files.c - a part as a file system: against the real one, between processes, under threads.
 *
 * With CORTEX_TEST_PG (tests/support/postgres.sh) against a server.  Each test has a part of its
 * own.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "crypto/api.h"
#include "db/pg.h"
#include "fleet/files_internal.h"
#include "log/internal.h"
#include "tests/support/folder.h"
#include "tests/support/log_model.h"
#include "tests/test.h"

enum { PATH_SIZE = 600, RW = CX_IO_READ | CX_IO_WRITE };

/* --- a part ----------------------------------------------------------------------------------- */

/* NULL where there is no server. */
static const char *server(void)
{
    const char *url = getenv("CORTEX_TEST_PG");
    if (url != NULL && *url != 0)
        return url;
    cx_test_skip("CORTEX_TEST_PG names no database");
    return NULL;
}

/* A new part of the fleet in the server; the fleet is made where there is none. */
static bool new_part(const char *url, char name[64])
{
    static atomic_uint count;
    cx_fleet *fleet = NULL;
    cx_err err = {0};
    uint64_t applied;
    unsigned number;
    const cx_fleet_options options = {.node = "tester"};
    (void)snprintf(name, 64, "files-%llu-%u",
                   (unsigned long long)cx_io_system()->process_id(cx_io_system()),
                   atomic_fetch_add(&count, 1));
    cx_status status = cx_fleet_init(url, false, NULL, &applied, &err);
    if (!cx_failed(status))
        status = cx_fleet_open(url, &options, &fleet, &err);
    if (!cx_failed(status))
        status = cx_fleet_add(fleet, cx_str_z(name), &number, &err);
    cx_fleet_close(fleet);
    CHECK_STATUS(status, &err);
    return !cx_failed(status);
}

/* One process's sight of a part. */
typedef struct sight {
    cx_fleet_files *files;
    const cx_io *io;
    const char *path;
    cx_file lock;
    atomic_uint lost;
    cx_io clock; /* of `under`, ahead by `ahead_ns` */
    atomic_ullong ahead_ns;
} sight;

static void note_lost(void *arg, const char *why)
{
    sight *s = arg;
    CHECK(why[0] != 0);
    atomic_fetch_add(&s->lost, 1);
}

static uint64_t clock_ahead(const cx_io *io)
{
    sight *s = io->ctx;
    return cx_io_system()->monotonic_ns(cx_io_system()) + atomic_load(&s->ahead_ns);
}

static bool look(sight *s, const char *url, const char *part, bool read_only)
{
    cx_err err = {0};
    *s = (sight){.lock = CX_FILE_NONE};
    s->clock = *cx_io_system();
    s->clock.monotonic_ns = clock_ahead;
    s->clock.ctx = s;
    const cx_fleet_files_options options = {.url = url,
                                            .part = cx_str_z(part),
                                            .node = "tester",
                                            .under = &s->clock,
                                            .lease_ms = 20000,
                                            .cache_bytes = 1,
                                            .read_only = read_only,
                                            .lost = note_lost,
                                            .lost_arg = s};
    CHECK_STATUS(cx_fleet_files_open(&options, &s->files, &err), &err);
    if (s->files == NULL)
        return false;
    s->io = cx_fleet_files_io(s->files);
    s->path = cx_fleet_files_path(s->files);
    return true;
}

static const char *at(const sight *s, const char *name, char out[PATH_SIZE])
{
    (void)snprintf(out, PATH_SIZE, "%s/%s", s->path, name);
    return out;
}

static int open_at(const sight *s, const char *name, unsigned flags, cx_file *out)
{
    char path[PATH_SIZE];
    return s->io->open(s->io, at(s, name, path), flags, out);
}

static int own(sight *s)
{
    int failed = open_at(s, "log/lock", RW | CX_IO_CREATE, &s->lock);
    return failed != 0 ? failed : s->io->lock(s->io, s->lock);
}

/* Told by a thread of its own. */
static bool was_lost(sight *s)
{
    for (int i = 0; i < 3000 && atomic_load(&s->lost) == 0; i++)
        cx_thread_sleep_ms(10);
    return atomic_load(&s->lost) == 1;
}

static void give_back(sight *s)
{
    if (s->lock != CX_FILE_NONE)
        CHECK_INT(s->io->close(s->io, s->lock), 0);
    s->lock = CX_FILE_NONE;
}

static void leave(sight *s)
{
    give_back(s);
    cx_fleet_files_close(s->files);
    s->files = NULL;
}

static int put(const sight *s, const char *name, const char *text, bool sync)
{
    cx_file file;
    int failed = open_at(s, name, RW | CX_IO_CREATE | CX_IO_TRUNCATE, &file);
    if (failed != 0)
        return failed;
    int64_t done = s->io->pwrite(s->io, file, text, strlen(text), 0);
    failed = done == (int64_t)strlen(text) ? 0 : done < 0 ? (int)done : -EIO;
    if (failed == 0 && sync)
        failed = s->io->sync(s->io, file, false);
    int closed = s->io->close(s->io, file);
    return failed != 0 ? failed : closed;
}

/* Whether a file has this text; NULL: is not there. */
static bool has(const sight *s, const char *name, const char *text)
{
    char path[PATH_SIZE];
    cx_buf got;
    cx_err err;
    cx_buf_init(&got, cx_alloc_default());
    cx_status status = cx_io_read_file(s->io, at(s, name, path), 1 << 20, &got, &err);
    bool same = text == NULL ? status.code == CX_E_NOT_FOUND
                             : !cx_failed(status) && cx_str_is(cx_buf_str(&got), text);
    cx_buf_done(&got);
    return same;
}

static bool add_name(void *arg, const char *name)
{
    cx_buf *out = arg;
    cx_buf_printf(out, "%s ", name);
    return true;
}

static bool lists(const sight *s, const char *folder, const char *names)
{
    char path[PATH_SIZE];
    cx_buf got;
    cx_buf_init(&got, cx_alloc_default());
    int failed = s->io->list(s->io, at(s, folder, path), add_name, &got);
    bool same = failed == 0 && cx_str_is(cx_buf_str(&got), names);
    if (!same)
        cx_test_fail(__FILE__, __LINE__, "%s: %d, '%.*s', expected '%s'", path, failed,
                     (int)got.size, (const char *)got.data, names);
    cx_buf_done(&got);
    return same;
}

/* A part with one sight that owns it, or leaves the test. */
#define OWN_PART(s)                      \
    char part[64];                       \
    const char *url = server();          \
    if (url == NULL)                     \
        return;                          \
    sight s;                             \
    REQUIRE(new_part(url, part));        \
    REQUIRE(look(&s, url, part, false)); \
    CHECK_INT(own(&s), 0)

/* --- small files ------------------------------------------------------------------------------ */

CX_TEST(files_small_ones_need_no_lease)
{
    char part[64], path[PATH_SIZE], other[PATH_SIZE];
    const char *url = server();
    if (url == NULL)
        return;
    sight a, b;
    cx_file file, again;
    cx_err err;
    bool held;
    REQUIRE(new_part(url, part));
    REQUIRE(look(&a, url, part, false));
    REQUIRE(look(&b, url, part, false));
    CHECK(has(&a, "tokens.json", NULL));
    CHECK_INT(put(&a, "tokens.json", "one", false), 0);
    CHECK(has(&b, "tokens.json", "one"));
    CHECK_STATUS(cx_io_replace_private_file(b.io, at(&b, "tokens.json", path),
                                            cx_str_bytes(CX_STR("two")), &err),
                 &err);
    CHECK(has(&a, "tokens.json", "two"));
    CHECK_INT(open_at(&a, "tokens.json", RW | CX_IO_CREATE | CX_IO_EXCLUSIVE, &file), -EEXIST);
    CHECK_INT(open_at(&a, "keys/k", RW | CX_IO_CREATE | CX_IO_EXCLUSIVE, &file), 0);
    CHECK(has(&b, "keys/k", ""));
    CHECK_INT(a.io->write(a.io, file, "abc", 3), 3);
    CHECK_INT(a.io->write(a.io, file, "def", 3), 3);
    CHECK(has(&b, "keys/k", ""));
    CHECK_INT(a.io->sync(a.io, file, false), 0);
    CHECK(has(&b, "keys/k", "abcdef"));
    CHECK_INT(a.io->truncate(a.io, file, 2), 0);
    CHECK_INT(a.io->pwrite(a.io, file, "x", 1, 3), 1);
    CHECK_INT(a.io->close(a.io, file), 0);
    CHECK_INT(open_at(&b, "keys/k", CX_IO_READ, &file), 0);
    CHECK_INT(b.io->read(b.io, file, path, 10), 4);
    CHECK(memcmp(path, "ab\0x", 4) == 0);
    CHECK_INT(b.io->write(b.io, file, "no", 2), -EBADF);
    CHECK_INT(b.io->close(b.io, file), 0);
    CHECK_INT(b.io->close(b.io, file), -EBADF);
    CHECK(lists(&a, "", "keys tokens.json "));
    CHECK(lists(&a, "keys/", "k "));
    CHECK(lists(&a, "./keys//.", "k "));
    CHECK_INT(a.io->list(a.io, at(&a, "none", path), add_name, NULL), -ENOENT);
    CHECK_INT(a.io->mkdir(a.io, at(&a, "none", path)), 0);
    CHECK_INT(a.io->mkdir(a.io, at(&a, "none", path)), -EEXIST);
    CHECK_INT(a.io->mkdir(a.io, at(&a, "", path)), -EEXIST);
    CHECK(lists(&a, "none", ""));
    CHECK_STATUS(cx_io_sync_folder(a.io, at(&a, "none", path), &err), &err);
    CHECK_INT(a.io->rename(a.io, at(&a, "missing", path), at(&a, "new", other)), -ENOENT);
    CHECK_INT(a.io->rename(a.io, at(&a, "keys/k", path), at(&a, "log/k", other)), -EXDEV);
    CHECK_INT(a.io->rename(a.io, at(&a, "keys/k", path), "/tmp/k"), -EXDEV);
    CHECK_INT(a.io->unlink(a.io, at(&a, "keys/k", path)), 0);
    CHECK_INT(a.io->unlink(a.io, at(&a, "keys/k", path)), -ENOENT);
    CHECK_INT(open_at(&a, "../x", CX_IO_READ, &file), -ENOENT);
    /* A lock excludes other opens, in this process and others. */
    CHECK_INT(open_at(&a, "tokens.lock", RW | CX_IO_CREATE, &file), 0);
    CHECK_INT(a.io->lock(a.io, file), 0);
    CHECK_INT(open_at(&a, "tokens.lock", RW | CX_IO_CREATE, &again), 0);
    CHECK_INT(a.io->lock(a.io, again), -EAGAIN);
    CHECK_INT(a.io->locked(a.io, again, &held), 0);
    CHECK(held);
    CHECK_INT(a.io->locked(a.io, file, &held), 0);
    CHECK(!held);
    CHECK_INT(a.io->close(a.io, again), 0);
    CHECK_INT(open_at(&b, "tokens.lock", RW | CX_IO_CREATE, &again), 0);
    CHECK_INT(b.io->lock(b.io, again), -EAGAIN);
    CHECK_INT(b.io->locked(b.io, again, &held), 0);
    CHECK(held);
    CHECK_INT(a.io->close(a.io, file), 0);
    CHECK_INT(b.io->lock(b.io, again), 0);
    CHECK_INT(b.io->close(b.io, again), 0);
    leave(&a);
    leave(&b);
}

/* --- the owner's ------------------------------------------------------------------------------ */

CX_TEST(files_of_the_owner_need_the_lease_and_a_sync)
{
    OWN_PART(a);
    sight b, c;
    cx_file file;
    bool held;
    char path[PATH_SIZE];
    REQUIRE(look(&b, url, part, false));
    CHECK(cx_fleet_files_own(a.files));
    CHECK(!cx_fleet_files_own(b.files));
    CHECK_INT(put(&a, "log/a", "synced", true), 0);
    CHECK_INT(put(&a, "log/b", "not synced", false), 0);
    CHECK_INT(put(&a, "t.db", "pages", true), 0);
    CHECK(has(&a, "log/b", "not synced"));
    CHECK(has(&b, "log/a", "synced"));
    CHECK(has(&b, "log/b", ""));
    CHECK_INT(put(&b, "log/c", "x", true), -EROFS);
    CHECK_INT(open_at(&b, "log/a", RW, &file), -EROFS);
    CHECK_INT(open_at(&b, "log/lock", CX_IO_READ, &file), -ENOENT);
    CHECK_INT(own(&b), -EAGAIN);
    give_back(&b);
    /* The same process: its lock is seen, and excludes. */
    CHECK_INT(open_at(&a, "log/lock", CX_IO_READ, &file), 0);
    CHECK_INT(a.io->locked(a.io, file, &held), 0);
    CHECK(held);
    CHECK_INT(a.io->lock(a.io, file), -EAGAIN);
    CHECK_INT(a.io->close(a.io, file), 0);
    /* b reads one state, until it takes the lease. */
    CHECK_INT(put(&a, "log/a", "later", true), 0);
    CHECK(has(&a, "log/a", "later"));
    CHECK(has(&b, "log/a", "synced"));
    CHECK(has(&b, "log/a", "synced"));
    REQUIRE(look(&c, url, part, true));
    CHECK(has(&c, "log/a", "later"));
    CHECK_INT(own(&c), -EROFS);
    leave(&c);
    leave(&a);
    CHECK_INT(own(&b), 0);
    CHECK(has(&b, "log/a", "later"));
    CHECK(has(&b, "t.db", "pages"));
    CHECK(lists(&b, "log", "a b "));
    CHECK(lists(&b, "", "log t.db "));
    CHECK_INT(b.io->unlink(b.io, at(&b, "log/b", path)), 0);
    CHECK(has(&b, "log/b", NULL));
    /* What is open stays usable without its name. */
    CHECK_INT(open_at(&b, "log/a", RW, &file), 0);
    CHECK_INT(b.io->unlink(b.io, at(&b, "log/a", path)), 0);
    CHECK_INT(b.io->pwrite(b.io, file, "z", 1, 1), 1);
    CHECK_INT(b.io->sync(b.io, file, true), 0);
    CHECK_INT(b.io->pread(b.io, file, path, 9, 0), 5);
    CHECK_INT(b.io->close(b.io, file), 0);
    CHECK(has(&b, "log/a", NULL));
    leave(&b);
}

/* What only a database's administrator could do. */
static void run_sql(const char *url, const char *sql)
{
    cx_pg *pg = NULL;
    cx_err err;
    cx_pg_options options = CX_PG_OPTIONS_INIT;
    CHECK_STATUS(cx_pg_open(url, &options, &pg, &err), &err);
    if (pg == NULL)
        return;
    CHECK_STATUS(cx_pg_run(pg, sql, &err), &err);
    cx_pg_close(pg);
}

static void change_row(const char *url, const char *part, const char *what)
{
    char sql[300];
    (void)snprintf(sql, sizeof sql, "UPDATE cortex_fleet.cx_part SET %s WHERE name = '%s'", what,
                   part);
    run_sql(url, sql);
}

CX_TEST(files_on_a_full_disk_stay_to_be_written)
{
    OWN_PART(a);
    sight b;
    cx_file file, other, table;
    char sql[500];
    CHECK_INT(put(&a, "log/a", "before", true), 0);
    CHECK_INT(open_at(&a, "log/b", RW | CX_IO_CREATE, &other), 0);
    CHECK_INT(put(&a, "t.db", "before", true), 0);
    (void)snprintf(sql, sizeof sql,
                   "CREATE FUNCTION cortex_fleet.no_room() RETURNS trigger LANGUAGE plpgsql AS $$ "
                   "BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$; "
                   "CREATE TRIGGER no_room BEFORE INSERT ON cortex_fleet.cx_commit FOR EACH ROW "
                   "WHEN (NEW.part = %u) EXECUTE FUNCTION cortex_fleet.no_room()",
                   a.files->number);
    CHECK_INT(open_at(&a, "log/a", RW, &file), 0);
    CHECK_INT(open_at(&a, "t.db", RW, &table), 0);
    run_sql(url, sql);
    CHECK_INT(a.io->pwrite(a.io, file, "X and more", 10, 0), 10);
    CHECK_INT(a.io->sync(a.io, file, true), -ENOSPC);
    CHECK_INT(a.io->pwrite(a.io, other, "new", 3, 0), 3);
    CHECK_INT(a.io->sync(a.io, other, true), -ENOSPC);
    CHECK_INT(a.io->pwrite(a.io, file, "Y", 1, 2), 1);
    CHECK_INT(a.io->truncate(a.io, table, 3), 0);
    CHECK_INT(a.io->sync(a.io, table, true), -ENOSPC);
    CHECK_INT(a.io->sync(a.io, table, true), -ENOSPC);
    CHECK_INT(put(&a, "log/new", "", true), -ENOSPC);
    CHECK(strstr(cx_fleet_files_why(a.files), "full") != NULL);
    CHECK(cx_fleet_files_own(a.files));
    CHECK(has(&a, "log/a", "X Ynd more"));
    run_sql(url, "DROP FUNCTION cortex_fleet.no_room CASCADE");
    REQUIRE(look(&b, url, part, true));
    CHECK(has(&b, "log/a", "before"));
    CHECK(has(&b, "t.db", "before"));
    leave(&b);
    CHECK_INT(a.io->sync(a.io, file, true), 0);
    CHECK_INT(a.io->sync(a.io, other, true), 0);
    CHECK_INT(a.io->close(a.io, other), 0);
    CHECK(has(&a, "t.db", "bef"));
    CHECK_INT(a.io->close(a.io, table), 0);
    CHECK(has(&a, "t.db", "before"));
    CHECK_INT(open_at(&a, "t.db", RW, &table), 0);
    CHECK_INT(a.io->truncate(a.io, table, 3), 0);
    CHECK_INT(a.io->sync(a.io, table, true), 0);
    REQUIRE(look(&b, url, part, true));
    CHECK(has(&b, "log/a", "X Ynd more"));
    CHECK(has(&b, "log/b", "new"));
    CHECK(has(&b, "t.db", "bef"));
    CHECK(has(&b, "log/new", NULL));
    leave(&b);
    CHECK_INT(atomic_load(&a.lost), 0);
    CHECK_INT(a.io->close(a.io, file), 0);
    CHECK_INT(a.io->close(a.io, table), 0);
    leave(&a);
}

/* M6 */
CX_TEST(files_of_a_database_are_stale_when_the_lease_changes_hands)
{
    OWN_PART(a);
    sight b;
    cx_file table, log;
    char byte;
    uint64_t size;
    bool regular;
    CHECK_INT(put(&a, "t.db", "one", true), 0);
    CHECK_INT(put(&a, "log/a", "one", true), 0);
    REQUIRE(look(&b, url, part, false));
    CHECK_INT(open_at(&b, "t.db", CX_IO_READ, &table), 0);
    CHECK_INT(open_at(&b, "log/a", CX_IO_READ, &log), 0);
    CHECK_INT(put(&a, "t.db", "two", true), 0);
    CHECK_INT(put(&a, "log/a", "two", true), 0);
    CHECK_INT(b.io->pread(b.io, table, &byte, 1, 2), 1);
    CHECK(byte == 'e');
    give_back(&a);
    CHECK_INT(own(&b), 0);
    CHECK_INT(b.io->pread(b.io, table, &byte, 1, 2), -ESTALE);
    CHECK_INT(b.io->size(b.io, table, &size, &regular), -ESTALE);
    CHECK_INT(b.io->pread(b.io, log, &byte, 1, 2), 1);
    CHECK(byte == 'o');
    CHECK_INT(b.io->close(b.io, table), 0);
    CHECK_INT(b.io->close(b.io, log), 0);
    CHECK(has(&b, "t.db", "two"));
    CHECK_INT(open_at(&b, "t.db", RW, &table), 0);
    CHECK_INT(b.io->pwrite(b.io, table, "three", 5, 0), 5);
    give_back(&b);
    CHECK_INT(b.io->sync(b.io, table, true), -ESTALE);
    CHECK_INT(b.io->pwrite(b.io, table, "four", 4, 0), -EROFS);
    CHECK_INT(b.io->close(b.io, table), 0);
    CHECK(has(&b, "t.db", "two"));
    leave(&b);
    leave(&a);
}

/* M5 */
CX_TEST(files_are_not_read_from_a_server_that_lags)
{
    OWN_PART(a);
    cx_file file;
    char byte;
    CHECK_INT(put(&a, "log/a", "text", true), 0);
    CHECK_INT(open_at(&a, "log/a", CX_IO_READ, &file), 0);
    a.io->forget(a.io, file);
    change_row(url, part, "next = next - 1");
    CHECK_INT(a.io->pread(a.io, file, &byte, 1, 0), -EIO);
    CHECK_INT(atomic_load(&a.lost), 0);
    change_row(url, part, "next = next + 1");
    CHECK_INT(a.io->pread(a.io, file, &byte, 1, 0), 1);
    CHECK(byte == 't');
    CHECK_INT(a.io->close(a.io, file), 0);
    leave(&a);
}

CX_TEST(files_of_a_fenced_owner_fail)
{
    OWN_PART(a);
    sight b;
    cx_file file;
    char byte;
    REQUIRE(look(&b, url, part, false));
    CHECK_INT(put(&a, "log/a", "first", true), 0);
    CHECK_INT(open_at(&a, "log/a", RW, &file), 0);
    int failed = own(&b);
    CHECK_INT(failed, -EAGAIN);
    for (int i = 0; failed == -EAGAIN && i < 50; i++) {
        change_row(url, part, "lease_until = now() - interval '1 s'");
        failed = b.io->lock(b.io, b.lock);
    }
    CHECK_INT(failed, 0);
    CHECK(has(&b, "log/a", "first"));
    CHECK_INT(put(&b, "log/a", "second", true), 0);
    CHECK_INT(a.io->pwrite(a.io, file, "X", 1, 0), 1);
    CHECK_INT(a.io->sync(a.io, file, true), -EIO);
    CHECK(was_lost(&a));
    CHECK(cx_fleet_files_why(a.files)[0] != 0);
    CHECK_INT(a.io->pread(a.io, file, &byte, 1, 0), -EIO);
    CHECK_INT(a.io->sync(a.io, file, true), -EIO);
    CHECK_INT(put(&a, "log/b", "x", true), -EIO);
    CHECK(!cx_fleet_files_own(a.files));
    CHECK_INT(put(&a, "small", "goes on", true), 0);
    CHECK_INT(a.io->close(a.io, file), 0);
    give_back(&a);
    CHECK_INT(own(&a), -EIO); /* P6 */
    leave(&a);
    CHECK_INT(atomic_load(&a.lost), 1);
    CHECK(has(&b, "log/a", "second"));
    CHECK(cx_fleet_files_own(b.files));
    leave(&b);
}

CX_TEST(files_of_an_owner_that_hears_nothing_fail)
{
    OWN_PART(a);
    cx_file file;
    char byte;
    CHECK_INT(put(&a, "log/a", "first", true), 0);
    CHECK_INT(open_at(&a, "log/a", RW, &file), 0);
    CHECK_INT(a.io->pread(a.io, file, &byte, 1, 0), 1);
    atomic_store(&a.ahead_ns, UINT64_C(30000000000));
    CHECK_INT(a.io->pread(a.io, file, &byte, 1, 0), -EIO);
    CHECK_INT(a.io->pwrite(a.io, file, "X", 1, 0), -EIO);
    CHECK(was_lost(&a));
    CHECK_INT(a.io->close(a.io, file), 0);
    leave(&a);
}

/* --- against the real file system ------------------------------------------------------------- */

enum { NAMES = 4, SPAN = 1200000, PIECE = 100000, OPERATIONS = 160 };

typedef struct model {
    sight s;
    const cx_io *real;
    char folder[FOLDER_PATH_SIZE];
    const char *url, *part;
    uint64_t seed;
    cx_file ours[NAMES], theirs[NAMES];
    uint8_t *bytes, *got, *expected;
} model;

static const char *const model_names[NAMES] = {"log/a", "log/b", "t.db", "log/c"};

static uint64_t draw(model *m, uint64_t below)
{
    return cx_test_random(&m->seed) % below;
}

static const char *real_at(const model *m, const char *name, char out[PATH_SIZE])
{
    (void)snprintf(out, PATH_SIZE, "%s/%s", m->folder, name);
    return out;
}

static void model_open(model *m, unsigned i, unsigned flags)
{
    char path[PATH_SIZE];
    if (m->ours[i] != CX_FILE_NONE) {
        CHECK_INT(m->s.io->close(m->s.io, m->ours[i]), 0);
        CHECK_INT(m->real->close(m->real, m->theirs[i]), 0);
        m->ours[i] = CX_FILE_NONE;
    }
    int theirs = m->real->open(m->real, real_at(m, model_names[i], path), flags, &m->theirs[i]);
    int ours = open_at(&m->s, model_names[i], flags, &m->ours[i]);
    CHECK_INT(ours, theirs);
    if (ours != 0 || theirs != 0)
        m->ours[i] = CX_FILE_NONE;
}

/* Some of it zeros, as a log prepares them. */
static void model_write(model *m, unsigned i)
{
    uint64_t offset = draw(m, SPAN), size = draw(m, 3) == 0 ? draw(m, PIECE) : draw(m, 3000);
    bool zeros = draw(m, 4) == 0;
    if (draw(m, 2) == 0) { /* at the end, as a log appends */
        bool regular;
        CHECK_INT(m->real->size(m->real, m->theirs[i], &offset, &regular), 0);
        offset = offset > SPAN ? offset % SPAN : offset;
    }
    if (draw(m, 3) == 0) {
        offset -= offset % 4096;
        size = 4096;
    }
    for (uint64_t k = 0; k < size; k++)
        m->bytes[k] = zeros ? 0 : (uint8_t)cx_test_random(&m->seed);
    CHECK_INT(m->s.io->pwrite(m->s.io, m->ours[i], m->bytes, (size_t)size, offset), size);
    CHECK_INT(m->real->pwrite(m->real, m->theirs[i], m->bytes, (size_t)size, offset), size);
}

static void model_read(model *m, const sight *s, cx_file ours, cx_file theirs, uint64_t offset,
                       size_t size)
{
    int64_t expected = m->real->pread(m->real, theirs, m->expected, size, offset);
    int64_t got = s->io->pread(s->io, ours, m->got, size, offset);
    CHECK_INT(got, expected);
    CHECK(got != expected || got <= 0 || memcmp(m->got, m->expected, (size_t)got) == 0);
}

static void model_size(const model *m, unsigned i)
{
    uint64_t ours = 1, theirs = 2;
    bool regular;
    CHECK_INT(m->s.io->size(m->s.io, m->ours[i], &ours, &regular), 0);
    CHECK_INT(m->real->size(m->real, m->theirs[i], &theirs, &regular), 0);
    CHECK_INT(ours, theirs);
}

static void model_rename(model *m, unsigned i)
{
    char from[PATH_SIZE], to[PATH_SIZE];
    unsigned other = (i + 1) % 2; /* names of one kind */
    int theirs = m->real->rename(m->real, real_at(m, model_names[i], from),
                                 real_at(m, model_names[other], to));
    int ours = m->s.io->rename(m->s.io, at(&m->s, model_names[i], from),
                               at(&m->s, model_names[other], to));
    CHECK_INT(ours, theirs);
    model_open(m, i, RW | CX_IO_CREATE);
    model_open(m, other, RW | CX_IO_CREATE);
}

static void model_unlink(model *m, unsigned i)
{
    char path[PATH_SIZE];
    CHECK_INT(m->real->unlink(m->real, real_at(m, model_names[i], path)), 0);
    CHECK_INT(m->s.io->unlink(m->s.io, at(&m->s, model_names[i], path)), 0);
    model_open(m, i, RW | CX_IO_CREATE);
}

static void model_step(model *m)
{
    unsigned i = (unsigned)draw(m, NAMES);
    uint64_t size = draw(m, SPAN);
    switch (draw(m, 16)) {
    case 0:
        CHECK_INT(m->s.io->truncate(m->s.io, m->ours[i], size), 0);
        CHECK_INT(m->real->truncate(m->real, m->theirs[i], size), 0);
        break;
    case 1:
        CHECK_INT(m->s.io->allocate(m->s.io, m->ours[i], size + 1), 0);
        CHECK_INT(m->real->allocate(m->real, m->theirs[i], size + 1), 0);
        break;
    case 2:
    case 3: CHECK_INT(m->s.io->sync(m->s.io, m->ours[i], false), 0); break;
    case 4:
        if (i < 2)
            model_rename(m, i);
        break;
    case 5:
        if (draw(m, 3) == 0)
            model_unlink(m, i);
        break;
    case 6: model_open(m, i, RW | (draw(m, 4) == 0 ? CX_IO_CREATE | CX_IO_TRUNCATE : 0)); break;
    case 7:
    case 8:
    case 9: model_read(m, &m->s, m->ours[i], m->theirs[i], size, (size_t)draw(m, PIECE)); break;
    default: model_write(m, i); break;
    }
    model_size(m, i);
}

/* All bytes, as this process and one that begins now see them. */
static void model_compare(model *m, bool reopened)
{
    sight reader;
    for (unsigned i = 0; i < NAMES; i++)
        if (reopened)
            CHECK_INT(m->s.io->sync(m->s.io, m->ours[i], false), 0);
    if (reopened && !look(&reader, m->url, m->part, true))
        return;
    for (unsigned i = 0; i < NAMES; i++) {
        cx_file file = m->ours[i];
        if (reopened)
            CHECK_INT(open_at(&reader, model_names[i], CX_IO_READ, &file), 0);
        for (uint64_t offset = 0; offset < SPAN + PIECE; offset += PIECE)
            model_read(m, reopened ? &reader : &m->s, file, m->theirs[i], offset, PIECE);
        if (reopened)
            CHECK_INT(reader.io->close(reader.io, file), 0);
    }
    if (reopened)
        leave(&reader);
}

static bool model_init(model *m, const char *url, const char *part)
{
    char path[PATH_SIZE];
    *m = (model){.real = cx_io_system(), .url = url, .part = part};
    m->bytes = malloc(3 * PIECE);
    if (m->bytes == NULL || !look(&m->s, url, part, false)) {
        free(m->bytes);
        return false;
    }
    m->got = m->bytes + PIECE;
    m->expected = m->got + PIECE;
    folder_fresh(m->folder, "files");
    CHECK_INT(m->real->mkdir(m->real, m->folder), 0);
    CHECK_INT(m->real->mkdir(m->real, real_at(m, "log", path)), 0);
    CHECK_INT(own(&m->s), 0);
    for (unsigned i = 0; i < NAMES; i++) {
        m->ours[i] = CX_FILE_NONE;
        model_open(m, i, RW | CX_IO_CREATE);
    }
    return true;
}

static void model_done(model *m)
{
    for (unsigned i = 0; i < NAMES; i++) {
        CHECK_INT(m->s.io->close(m->s.io, m->ours[i]), 0);
        CHECK_INT(m->real->close(m->real, m->theirs[i]), 0);
    }
    leave(&m->s);
    folder_remove(m->folder);
    free(m->bytes);
}

CX_TEST(files_behave_as_those_of_a_disk)
{
    const char *url = server();
    if (url == NULL)
        return;
    for (unsigned round = 0; round < 4; round++) {
        char part[64];
        model m;
        REQUIRE(new_part(url, part));
        REQUIRE(model_init(&m, url, part));
        m.seed = cx_test_seed() + round;
        for (int i = 0; i < OPERATIONS; i++) {
            model_step(&m);
            if (i % 40 == 39)
                model_compare(&m, i % 80 == 79);
        }
        model_done(&m);
    }
}

/* --- what was not synced ---------------------------------------------------------------------- */

CX_TEST(files_have_after_a_crash_what_was_synced)
{
    OWN_PART(a);
    sight b;
    cx_file file, table;
    static uint8_t ones[70000], got[200000];
    memset(ones, 1, sizeof ones);
    CHECK_INT(open_at(&a, "log/a", RW | CX_IO_CREATE, &file), 0);
    CHECK_INT(open_at(&a, "t.db", RW | CX_IO_CREATE, &table), 0);
    CHECK_INT(a.io->allocate(a.io, file, 200000), 0);
    CHECK_INT(a.io->pwrite(a.io, file, ones, 1000, 0), 1000);
    CHECK_INT(a.io->sync(a.io, file, true), 0);
    CHECK_INT(a.io->pwrite(a.io, file, ones, sizeof ones, 1000), sizeof ones);
    CHECK_INT(a.io->pwrite(a.io, table, ones, 12288, 0), 12288);
    CHECK_INT(a.io->sync(a.io, table, true), 0);
    /* A database is cut and written in one commit, or not at all. */
    CHECK_INT(a.io->truncate(a.io, table, 4096), 0);
    CHECK_INT(a.io->pwrite(a.io, table, "!", 1, 0), 1);
    REQUIRE(look(&b, url, part, true));
    cx_file there;
    CHECK_INT(open_at(&b, "log/a", CX_IO_READ, &there), 0);
    CHECK_INT(b.io->pread(b.io, there, got, sizeof got, 0), sizeof got);
    CHECK(memcmp(got, ones, 1000) == 0);
    for (size_t i = 1000; i < sizeof got; i++)
        if (got[i] != 0) {
            cx_test_fail(__FILE__, __LINE__, "byte %zu was not synced", i);
            break;
        }
    CHECK_INT(b.io->close(b.io, there), 0);
    CHECK_INT(open_at(&b, "t.db", CX_IO_READ, &there), 0);
    CHECK_INT(b.io->pread(b.io, there, got, sizeof got, 0), 12288);
    CHECK(memcmp(got, ones, 12288) == 0);
    CHECK_INT(b.io->close(b.io, there), 0);
    leave(&b);
    CHECK_INT(a.io->sync(a.io, table, true), 0);
    REQUIRE(look(&b, url, part, true));
    CHECK_INT(open_at(&b, "t.db", CX_IO_READ, &there), 0);
    CHECK_INT(b.io->pread(b.io, there, got, sizeof got, 0), 4096);
    CHECK(got[0] == '!' && got[1] == 1);
    CHECK_INT(b.io->close(b.io, there), 0);
    leave(&b);
    CHECK_INT(a.io->close(a.io, file), 0);
    CHECK_INT(a.io->close(a.io, table), 0);
    leave(&a);
}

/* --- a log ------------------------------------------------------------------------------------ */

enum { COMMITS = 1000 };

static cx_log_options log_options(const sight *s, bool read_only)
{
    return (cx_log_options){
        .io = s->io, .segment_bytes = CX_LOG_SEGMENT_MIN, .read_only = read_only};
}

static void append(log_model *m, cx_log *log, int count)
{
    const size_t sizes[1][2] = {{200, 90}};
    cx_err err;
    for (int i = 0; i < count; i++) {
        uint64_t commit = 0;
        CHECK_STATUS(log_model_submit(m, log, sizes, 1, &commit, &err), &err);
        if (i % 5 != 4) /* a group of several */
            continue;
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        log_model_ack(m, commit);
    }
}

typedef struct part_count {
    cx_str name;
    uint64_t commits;
} part_count;

static cx_status note_commits(void *arg, const cx_fleet_row *row, cx_err *err)
{
    part_count *count = arg;
    (void)err;
    if (cx_str_eq(row->name, count->name))
        count->commits = row->next;
    return CX_SUCCESS;
}

static uint64_t commits_of(const char *url, const char *part)
{
    cx_fleet *fleet = NULL;
    cx_err err;
    part_count count = {.name = cx_str_z(part)};
    const cx_fleet_options options = {.node = "tester", .read_only = true};
    CHECK_STATUS(cx_fleet_open(url, &options, &fleet, &err), &err);
    if (fleet != NULL)
        CHECK_STATUS(cx_fleet_list(fleet, note_commits, &count, &err), &err);
    cx_fleet_close(fleet);
    return count.commits;
}

CX_TEST(files_carry_a_log)
{
    OWN_PART(a);
    sight b;
    char folder[PATH_SIZE];
    cx_log *log = NULL, *reader = NULL;
    cx_err err;
    log_model m;
    give_back(&a);
    (void)at(&a, "log", folder);
    cx_log_options options = log_options(&a, false);
    log_model_init(&m);
    CHECK_STATUS(cx_log_create(folder, &options, &err), &err);
    REQUIRE(!cx_failed(cx_log_open(folder, &options, &log, NULL, &err)));
    CHECK(cx_fleet_files_own(a.files));
    append(&m, log, COMMITS);
    CHECK(log_model_check(&m, log, m.acked, true));
    /* Another process reads while this one has it. */
    REQUIRE(look(&b, url, part, false));
    cx_log_options reading = log_options(&b, true);
    REQUIRE(!cx_failed(cx_log_open(folder, &reading, &reader, NULL, &err)));
    append(&m, log, 10);
    cx_log_close(reader);
    cx_log *second = NULL;
    options.io = b.io;
    CHECK_INT(cx_log_open(folder, &options, &second, NULL, &err).code, CX_E_BUSY);
    uint64_t before = commits_of(url, part);
    cx_log_close(log);
    options.io = a.io;
    REQUIRE(!cx_failed(cx_log_open(folder, &options, &log, NULL, &err)));
    CHECK_INT(commits_of(url, part), before); /* opening writes nothing */
    /* Erased bytes are gone from the database's rows, too. */
    for (size_t i = 0; i < 20; i++) {
        CHECK_STATUS(cx_log_erase(log, m.frames.items[i * 7].place, &err), &err);
        m.frames.items[i * 7].erasure = MODEL_ERASED;
    }
    CHECK(log_model_check(&m, log, m.acked, true));
    cx_log_close(log);
    CHECK(!cx_fleet_files_own(a.files));
    options.io = b.io;
    REQUIRE(!cx_failed(cx_log_open(folder, &options, &log, NULL, &err)));
    CHECK(log_model_check(&m, log, m.acked, true));
    cx_log_archived archived = {0};
    cx_status status = cx_log_archive(log, &(cx_log_archive_options){.keep = 1}, &archived, &err);
    if (status.code != CX_E_UNSUPPORTED) {
        CHECK_STATUS(status, &err);
        CHECK(archived.segments > 1);
        CHECK(log_model_check(&m, log, m.acked, true));
        CHECK_STATUS(cx_log_erase(log, m.frames.items[3].place, &err), &err);
        m.frames.items[3].erasure = MODEL_ERASED;
        CHECK_STATUS(cx_log_unarchive(log, &(cx_log_archive_options){0}, &archived, &err), &err);
        CHECK(log_model_check(&m, log, m.acked, true));
    }
    append(&m, log, 10);
    CHECK(log_model_check(&m, log, m.acked, true));
    cx_log_close(log);
    leave(&b);
    leave(&a);
    log_model_done(&m);
}

/* --- where reading of the log begins ---------------------------------------------------------- */

enum {
    LONG_SEGMENT = 1 << 20,
    STEP = 16 << 10,
    RECORD_BYTES = 2000,
    NEAR = 2 * STEP + 7 * RECORD_BYTES /* and headers, and the last group once more */
};

/* Of the segment, up to `data_end`: after it are zeros that no row has. */
static uint64_t read_below, data_end;
static int64_t (*real_pread)(const cx_io *io, cx_file file, void *data, size_t size,
                             uint64_t offset);

static int64_t counting_pread(const cx_io *io, cx_file file, void *data, size_t size,
                              uint64_t offset)
{
    int64_t got = real_pread(io, file, data, size, offset);
    if (got > 0 && offset < data_end)
        read_below += (uint64_t)got < data_end - offset ? (uint64_t)got : data_end - offset;
    return got;
}

typedef struct trail_test {
    const char *url, *part;
    char folder[PATH_SIZE];
    log_model m;
    uint64_t commits;
} trail_test;

/* As another process, which reads or writes; at most, or at least so much is read. */
static cx_log *open_counted(trail_test *t, sight *s, cx_io *io, bool read_only, uint64_t most,
                            uint64_t least)
{
    cx_log *log = NULL;
    cx_log_opened opened = {0};
    cx_err err;
    if (!look(s, t->url, t->part, read_only))
        return NULL;
    *io = *s->io;
    real_pread = io->pread;
    io->pread = counting_pread;
    const cx_log_options options = {
        .io = io, .segment_bytes = LONG_SEGMENT, .trail_bytes = STEP, .read_only = read_only};
    read_below = 0;
    CHECK_STATUS(cx_log_open(t->folder, &options, &log, &opened, &err), &err);
    CHECK_INT(opened.commit_count, t->commits);
    CHECK_INT(opened.torn_bytes, 0);
    if (read_below > most || read_below < least)
        cx_test_fail(__FILE__, __LINE__, "%llu of %llu bytes were read",
                     (unsigned long long)read_below, (unsigned long long)data_end);
    return log;
}

static void check_opened(trail_test *t, bool read_only, uint64_t most, uint64_t least)
{
    sight s;
    cx_io io;
    cx_log *log = open_counted(t, &s, &io, read_only, most, least);
    cx_log_close(log);
    leave(&s);
}

static void add_commits(trail_test *t, cx_log *log, int count)
{
    const size_t sizes[1][2] = {{RECORD_BYTES, 90}};
    cx_err err;
    for (int i = 0; i < count; i++) {
        uint64_t commit = 0;
        CHECK_STATUS(log_model_submit(&t->m, log, sizes, 1, &commit, &err), &err);
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        log_model_ack(&t->m, commit);
    }
    const cx_log_place *last = &t->m.frames.items[t->m.frames.count - 1].place;
    data_end = last->offset + last->size_bytes;
    t->commits += (uint64_t)count;
}

static void make_trail_test(trail_test *t, const char *url, const char *part, sight *s, int commits)
{
    cx_err err;
    *t = (trail_test){.url = url, .part = part};
    give_back(s);
    (void)at(s, "log", t->folder);
    log_model_init(&t->m);
    const cx_log_options options = {
        .io = s->io, .segment_bytes = LONG_SEGMENT, .trail_bytes = STEP};
    cx_log *log = NULL;
    CHECK_STATUS(cx_log_create(t->folder, &options, &err), &err);
    CHECK_STATUS(cx_log_open(t->folder, &options, &log, NULL, &err), &err);
    if (log != NULL)
        add_commits(t, log, commits);
    cx_log_close(log);
}

static bool trail_of(const trail_test *t, uint8_t out[CX_FLEET_TRAIL])
{
    cx_fleet *fleet = NULL;
    cx_fleet_part part;
    bool there = false;
    cx_err err;
    const cx_fleet_options options = {.node = "tester", .read_only = true};
    CHECK_STATUS(cx_fleet_open(t->url, &options, &fleet, &err), &err);
    if (fleet == NULL)
        return false;
    CHECK_STATUS(cx_fleet_find(fleet, cx_str_z(t->part), &part, &err), &err);
    CHECK_STATUS(cx_fleet_read_trail(fleet, part.number, out, &there, &err), &err);
    cx_fleet_close(fleet);
    return there;
}

static void set_trail(const trail_test *t, const uint8_t bytes[CX_FLEET_TRAIL])
{
    char hex[2 * CX_FLEET_TRAIL + 1] = "", what[200];
    cx_hex_encode(cx_bytes_from(bytes, CX_FLEET_TRAIL), hex);
    (void)snprintf(what, sizeof what, "trail = decode('%.*s', 'hex')", 2 * CX_FLEET_TRAIL, hex);
    change_row(t->url, t->part, what);
}

static void set_crc(const uint8_t id[16], uint8_t note[CX_FLEET_TRAIL])
{
    cx_log_put_u32(note + CX_FLEET_TRAIL - 4,
                   cx_crc32c_add(cx_crc32c_add(0, id, 16), note, CX_FLEET_TRAIL - 4));
}

static void id_of(trail_test *t, uint8_t id[16])
{
    sight s;
    cx_io io;
    cx_log *log = open_counted(t, &s, &io, true, UINT64_MAX, 1);
    if (log != NULL)
        cx_log_home_id(log, id);
    cx_log_close(log);
    leave(&s);
}

CX_TEST(files_have_where_reading_of_the_log_begins)
{
    OWN_PART(a);
    sight b;
    cx_io io;
    trail_test t;
    uint8_t before[CX_FLEET_TRAIL], after[CX_FLEET_TRAIL];
    make_trail_test(&t, url, part, &a, 60);
    CHECK(trail_of(&t, before) && data_end > 2 * NEAR);
    check_opened(&t, true, NEAR, 1);
    for (int i = 0; i < 4; i++) { /* it moves on with each process that writes */
        cx_log *log = open_counted(&t, &b, &io, false, NEAR, 1);
        REQUIRE(log != NULL);
        add_commits(&t, log, 13);
        CHECK(log_model_check(&t.m, log, t.commits, false));
        cx_log_close(log);
        leave(&b);
    }
    CHECK(trail_of(&t, after) && memcmp(before, after, sizeof before) != 0);
    check_opened(&t, true, NEAR, 1);
    /* A part of before has none, and its first writer leaves one. */
    change_row(url, part, "trail = NULL");
    check_opened(&t, true, UINT64_MAX, data_end);
    cx_log *log = open_counted(&t, &b, &io, false, UINT64_MAX, data_end);
    cx_log_close(log);
    leave(&b);
    check_opened(&t, true, NEAR, 1);
    leave(&a);
    log_model_done(&t.m);
}

/* Whatever the database says, the log ends where it ends. */
CX_TEST(files_do_not_believe_where_reading_of_the_log_begins)
{
    OWN_PART(a);
    trail_test t, other;
    sight c;
    char other_part[64];
    uint8_t right[CX_FLEET_TRAIL], wrong[CX_FLEET_TRAIL], id[16] = {0};
    make_trail_test(&t, url, part, &a, 40);
    REQUIRE(trail_of(&t, right));
    id_of(&t, id);
    for (size_t i = 0; i < sizeof right; i += 3) {
        memcpy(wrong, right, sizeof wrong);
        wrong[i] ^= 0x20;
        if (i + 4 < sizeof right)
            set_crc(id, wrong);
        set_trail(&t, wrong);
        check_opened(&t, true, UINT64_MAX, data_end / 2);
    }
    memcpy(wrong, right, sizeof wrong);
    wrong[20] ^= 1; /* and a checksum that does not fit */
    set_trail(&t, wrong);
    check_opened(&t, false, UINT64_MAX, data_end / 2);
    check_opened(&t, true, NEAR, 1); /* the writer left a true one */
    REQUIRE(new_part(url, other_part) && look(&c, url, other_part, false));
    uint64_t end = data_end;
    make_trail_test(&other, url, other_part, &c, 40);
    REQUIRE(trail_of(&other, wrong));
    data_end = end;
    set_trail(&t, wrong);
    check_opened(&t, true, UINT64_MAX, data_end / 2);
    check_opened(&t, false, UINT64_MAX, data_end / 2);
    leave(&c);
    leave(&a);
    log_model_done(&other.m);
    log_model_done(&t.m);
}

/* A record that has a mark of the commit 5000 where it comes to lie, and a note that names it. */
static void add_forged_record(trail_test *t, cx_log *log, uint8_t note[CX_FLEET_TRAIL])
{
    enum { BEFORE = 1000 };
    uint8_t id[16], bytes[3 * BEFORE] = {0};
    uint64_t commit = 0, place = data_end + CX_LOG_MARK_SIZE + CX_LOG_FRAME_HEAD_SIZE + BEFORE;
    const cx_log_mark mark = {.frame_count = 1, .commit = 5000, .group_bytes = 100};
    const cx_log_frame record = {.guarded = {bytes, sizeof bytes}};
    cx_err err;
    cx_log_home_id(log, id);
    cx_log_mark_encode(&mark, cx_log_seed(id, 0), place, bytes + BEFORE);
    CHECK_STATUS(cx_log_submit(log, &record, 1, NULL, &commit, &err), &err);
    CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
    CHECK_INT(commit, t->commits);
    t->commits++;
    cx_log_put_u32(note, 0);
    cx_log_put_u64(note + 4, place + CX_LOG_MARK_SIZE);
    memcpy(note + 12, bytes + BEFORE, CX_LOG_MARK_SIZE);
    set_crc(id, note);
}

static bool began(const sight *s, cx_file file, uint64_t offset)
{
    bool yes = false;
    CHECK_INT(s->io->write_began(s->io, file, offset, &yes), 0);
    return yes;
}

CX_TEST(files_know_where_a_write_began)
{
    OWN_PART(a);
    sight b;
    cx_io io;
    trail_test t;
    uint8_t note[CX_FLEET_TRAIL];
    bool yes;
    cx_file file, lock;
    make_trail_test(&t, url, part, &a, 40);
    cx_log *log = open_counted(&t, &b, &io, false, NEAR, 1);
    REQUIRE(log != NULL);
    add_forged_record(&t, log, note);
    cx_log_close(log);
    leave(&b);
    set_trail(&t, note);
    check_opened(&t, true, UINT64_MAX, data_end);
    check_opened(&t, false, UINT64_MAX, data_end);
    check_opened(&t, true, NEAR + 2 * RECORD_BYTES, 1); /* nothing was overwritten */
    REQUIRE(look(&b, url, part, true));
    CHECK_INT(open_at(&b, "log/000000.seg", CX_IO_READ, &file), 0);
    for (size_t i = 0; i < t.m.frames.count; i++) {
        uint64_t offset = t.m.frames.items[i].place.offset;
        CHECK(began(&b, file, offset) == (offset % CX_FLEET_CHUNK != 0));
        CHECK(!began(&b, file, offset + 8) && !began(&b, file, offset + 1000));
    }
    CHECK(!began(&b, file, CX_FLEET_CHUNK) && !began(&b, file, cx_log_get_u64(note + 4)));
    CHECK(!began(&b, file, UINT64_C(1) << 40));
    CHECK_INT(open_at(&b, "log/lock", CX_IO_READ, &lock), 0);
    CHECK_INT(b.io->write_began(b.io, lock, 0, &yes), -ENOTSUP);
    CHECK_INT(b.io->close(b.io, lock), 0);
    CHECK_INT(b.io->close(b.io, file), 0);
    leave(&b);
    leave(&a);
    log_model_done(&t.m);
}

/* Who lost the part leaves nothing in its row. */
CX_TEST(files_of_a_fenced_owner_leave_no_place_to_begin)
{
    OWN_PART(a);
    trail_test t;
    uint8_t before[CX_FLEET_TRAIL], after[CX_FLEET_TRAIL], mine[CX_FLEET_TRAIL] = {1};
    cx_err err;
    make_trail_test(&t, url, part, &a, 40);
    REQUIRE(trail_of(&t, before) && own(&a) == 0);
    cx_lock_enter(&a.files->writer_lock);
    change_row(url, part, "epoch = epoch + 1, owner = 'other/0123456789abcdef'");
    CHECK_STATUS(cx_fleet_write_trail(a.files->writer, &a.files->part, mine, &err), &err);
    CHECK(trail_of(&t, after) && memcmp(before, after, sizeof before) == 0);
    cx_lock_leave(&a.files->writer_lock);
    leave(&a);
    log_model_done(&t.m);
}

/* --- threads ---------------------------------------------------------------------------------- */

enum { TURNS = 60, RECORD = 5000 };

typedef struct crew {
    sight *s;
    atomic_ullong written; /* records, of the log */
    atomic_bool failed;
    uint64_t seed;
} crew;

static void fail_if(crew *c, bool wrong)
{
    if (wrong)
        atomic_store(&c->failed, true);
}

static void append_records(crew *c)
{
    cx_file file;
    uint8_t record[RECORD];
    fail_if(c, open_at(c->s, "log/a", RW, &file) != 0);
    for (unsigned i = 0; i < TURNS; i++) {
        memset(record, (int)(1 + i % 250), sizeof record);
        fail_if(c,
                c->s->io->pwrite(c->s->io, file, record, RECORD, (uint64_t)i * RECORD) != RECORD);
        fail_if(c, c->s->io->sync(c->s->io, file, true) != 0);
        atomic_store(&c->written, i + 1);
    }
    fail_if(c, c->s->io->close(c->s->io, file) != 0);
}

static void read_records(crew *c)
{
    cx_file file;
    uint8_t record[RECORD];
    uint64_t seed = c->seed;
    fail_if(c, open_at(c->s, "log/a", CX_IO_READ, &file) != 0);
    for (unsigned i = 0; i < 4 * TURNS; i++) {
        uint64_t count = atomic_load(&c->written);
        uint64_t which = count == 0 ? 0 : cx_test_random(&seed) % count;
        if (count == 0)
            continue;
        fail_if(c, c->s->io->pread(c->s->io, file, record, RECORD, which * RECORD) != RECORD);
        fail_if(c, record[0] != 1 + which % 250 || record[RECORD - 1] != record[0]);
        if (i % 16 == 0)
            c->s->io->forget(c->s->io, file);
    }
    fail_if(c, c->s->io->close(c->s->io, file) != 0);
}

static void write_table(crew *c)
{
    cx_file file;
    static const uint8_t page[4096] = {1, 2, 3};
    fail_if(c, open_at(c->s, "t.db", RW | CX_IO_CREATE, &file) != 0);
    for (unsigned i = 0; i < TURNS; i++) {
        fail_if(c, c->s->io->pwrite(c->s->io, file, page, 4096, (uint64_t)(i * 37 % 64) * 4096) !=
                       4096);
        if (i % 8 == 7)
            fail_if(c, c->s->io->truncate(c->s->io, file, (uint64_t)(i % 64) * 4096) != 0);
        if (i % 4 == 3)
            fail_if(c, c->s->io->sync(c->s->io, file, true) != 0);
    }
    fail_if(c, c->s->io->close(c->s->io, file) != 0);
}

static void make_names(crew *c)
{
    char from[PATH_SIZE], to[PATH_SIZE];
    for (unsigned i = 0; i < TURNS / 4; i++) {
        fail_if(c, put(c->s, "log/new", "text", i % 2 == 0) != 0);
        fail_if(c, c->s->io->rename(c->s->io, at(c->s, "log/new", from), at(c->s, "log/old", to)) !=
                       0);
        fail_if(c, put(c->s, "tokens.json", "small", false) != 0);
        fail_if(c, !has(c->s, "tokens.json", "small"));
        if (i % 3 == 0)
            fail_if(c, c->s->io->unlink(c->s->io, at(c->s, "log/old", to)) != 0);
    }
}

static void crew_work(void *arg, unsigned index)
{
    static void (*const works[])(crew *) = {append_records, read_records, write_table, make_names,
                                            read_records};
    works[index](arg);
}

CX_TEST(files_are_used_by_threads)
{
    OWN_PART(a);
    cx_file file;
    crew c = {.s = &a, .seed = cx_test_seed() + 7};
    CHECK_INT(open_at(&a, "log/a", RW | CX_IO_CREATE, &file), 0);
    CHECK_INT(a.io->allocate(a.io, file, TURNS * RECORD), 0);
    CHECK_INT(a.io->close(a.io, file), 0);
    cx_thread_team(5, crew_work, &c);
    CHECK(!atomic_load(&c.failed));
    CHECK_INT(atomic_load(&a.lost), 0);
    leave(&a);
}
