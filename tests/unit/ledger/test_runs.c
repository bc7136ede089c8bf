/*
 * test_runs.c - rows of records that wait in runs are read as rows of the table, and become the
 * rows that each flush alone would have written, also when the tables were closed between.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "ledger/internal.h"
#include "ledger/store_internal.h"
#include "tests/support/folder.h"
#include "tests/test.h"

#define IDENTITY CX_STR("a test")
enum { ACTORS = 3, KEYS = 9000, FLUSHES = 55, LARGE = 5000, SMALL = 40, READS = 200 };

typedef struct side {
    cx_store store;
    char path[FOLDER_PATH_SIZE + 16];
    bool runs;
} side;

static cx_err err;

/* Calls of the file of runs, of which one kind fails. */
typedef enum failing { FAILS_NOTHING, FAILS_OPEN, FAILS_WRITE, FAILS_SYNC, FAILS_COUNT } failing;
static failing fails;

static int open_or_fail(const cx_io *io, const char *path, unsigned flags, cx_file *out)
{
    return fails == FAILS_OPEN ? -EACCES : cx_io_system()->open(io, path, flags, out);
}

static int64_t write_or_fail(const cx_io *io, cx_file file, const void *data, size_t size,
                             uint64_t offset)
{
    /* Half of it is there, as on a full disk. */
    if (fails == FAILS_WRITE && offset != 0)
        return -ENOSPC;
    return cx_io_system()->pwrite(io, file, data, fails == FAILS_WRITE ? size / 2 : size, offset);
}

static int sync_or_fail(const cx_io *io, cx_file file, bool data_only)
{
    return fails == FAILS_SYNC ? -EIO : cx_io_system()->sync(io, file, data_only);
}

static const cx_io *io_of_runs(void)
{
    static cx_io io;
    io = *cx_io_system();
    io.open = open_or_fail;
    io.pwrite = write_or_fail;
    io.sync = sync_or_fail;
    return &io;
}

static cx_status begin_runs(side *s)
{
    CX_TRY(cx_store_begin_runs(&s->store, io_of_runs(), s->path, &err));
    s->store.commit_bytes = 1; /* each flush is committed */
    return CX_SUCCESS;
}

static void open_side(side *s, bool is_new)
{
    bool stale = false;
    CHECK_STATUS(cx_store_open(s->path, s->runs ? CX_STORE_FILL : CX_STORE_DERIVE,
                               cx_alloc_default(), 7, IDENTITY, &s->store, &stale, &err),
                 &err);
    CHECK(stale == is_new);
    if (s->runs)
        CHECK_STATUS(begin_runs(s), &err);
    if (is_new)
        CHECK_STATUS(cx_store_clear(&s->store, IDENTITY, &err), &err);
}

static void make_sides(side sides[2], char folder[FOLDER_PATH_SIZE])
{
    static const char *const names[] = {"runs.db", "each.db"};
    folder_fresh(folder, "runs");
    REQUIRE(mkdir(folder, 0700) == 0);
    for (size_t i = 0; i < 2; i++) {
        sides[i] = (side){.runs = i == 0};
        (void)snprintf(sides[i].path, sizeof sides[i].path, "%s/%s", folder, names[i]);
        open_side(&sides[i], true);
    }
}

static cx_bytes key_of(uint64_t number, uint8_t out[32])
{
    static const char *const prefixes[] = {"m/", "idx/", "hist/m/", "s"};
    const uint64_t mixed = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    const char *prefix = prefixes[number % 4];
    const size_t size = strlen(prefix);
    memcpy(out, prefix, size);
    memcpy(out + size, &mixed, sizeof mixed);
    /* One is the beginning of another. */
    memset(out + size + sizeof mixed, 0, 12);
    return cx_bytes_from(out, size + sizeof mixed + (size_t)(number % 3) * 6);
}

/* One in six is a removal; one in a thousand does not fit into a part. */
static void put_random(side *sides, uint64_t *random, size_t count)
{
    static uint8_t value[40000];
    uint8_t bytes[32];
    const uint64_t draw = cx_test_random(random);
    const cx_row row = {.actor = (int64_t)(draw % ACTORS),
                        .key = key_of(cx_test_random(random) % KEYS, bytes),
                        .removed = draw % 6 == 5,
                        .commit = 1};
    cx_row with = row;
    if (!row.removed) {
        memcpy(value, &draw, sizeof draw);
        with.value =
            cx_bytes_from(value, draw % 1000 == 0 ? sizeof value : (size_t)(draw >> 32) % 60);
    }
    for (size_t i = 0; i < count; i++)
        CHECK_STATUS(cx_store_put(&sides[i].store, &with, &err), &err);
}

static void flush_sides(side sides[2], uint64_t commit)
{
    for (size_t i = 0; i < 2; i++) {
        cx_store *store = &sides[i].store;
        CHECK_STATUS(cx_store_start_flush(store, (cx_position){commit, 0}, &err), &err);
        CHECK_STATUS(cx_store_flush_memtable(store, store->flushing, &err), &err);
        cx_store_flushed(store);
    }
}

static void check_reads(side sides[2], uint64_t *random)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < READS; i++) {
        uint8_t bytes[32];
        const int64_t actor = (int64_t)(cx_test_random(random) % ACTORS);
        const cx_bytes key = key_of(cx_test_random(random) % (KEYS + 100), bytes);
        cx_bytes values[2] = {{NULL, 0}, {NULL, 0}};
        bool found[2] = {false, false};
        for (size_t s = 0; s < 2; s++)
            CHECK_STATUS(cx_store_get(&sides[s].store, actor, key, &arena, &values[s], &found[s],
                                      NULL, &err),
                         &err);
        CHECK(found[0] == found[1]);
        CHECK(cx_str_eq(cx_bytes_str(values[0]), cx_bytes_str(values[1])));
    }
    cx_arena_done(&arena);
}

static cx_status note_difference(void *arg, const char *table, int64_t actor, cx_bytes key,
                                 const char *how, cx_err *error)
{
    (void)key;
    (void)error;
    if ((*(size_t *)arg)++ == 0)
        printf("%s of %lld: %s\n", table, (long long)actor, how);
    return CX_SUCCESS;
}

/* All rows, and how many they are. */
static void check_same(side sides[2])
{
    size_t differences = 0;
    uint64_t entries = 0, records[2] = {0};
    const cx_store_comparison how = {.max = 10, .differ = note_difference, .arg = &differences};
    CHECK_STATUS(cx_store_compare(&sides[0].store, &sides[1].store, &how, &err), &err);
    CHECK_INT(differences, 0);
    for (size_t s = 0; s < 2; s++)
        CHECK_STATUS(cx_store_count_rows(&sides[s].store, &entries, &records[s], &err), &err);
    CHECK_INT(records[0], records[1]);
    CHECK_INT(records[0], sides[0].store.counters.records);
    CHECK(records[0] > 1000);
}

static int64_t ask(side *s, const char *sql)
{
    cx_db_statement *statement;
    bool row = false;
    CHECK_STATUS(cx_db_prepare(s->store.writing.db, sql, &statement, &err), &err);
    CHECK_STATUS(cx_db_step(statement, &row, &err), &err);
    const int64_t answer = row ? cx_db_int(statement, 0) : -1;
    cx_db_finish(statement);
    return answer;
}

#define WAITING "SELECT coalesce((SELECT length(value) / 16 FROM meta WHERE name='record_runs'), 0)"

/* What a killed process wrote after its last commit. */
static void append_to_runs(const side *s)
{
    char path[FOLDER_PATH_SIZE + 32];
    (void)snprintf(path, sizeof path, "%s-runs", s->path);
    FILE *file = fopen(path, "ab");
    REQUIRE(file != NULL);
    CHECK(fputs("what was not committed", file) >= 0);
    CHECK(fclose(file) == 0);
}

CX_TEST(runs_are_read_and_become_the_rows_of_each_flush)
{
    char folder[FOLDER_PATH_SIZE];
    uint64_t random = cx_test_seed();
    static side sides[2];
    int64_t most = 0;
    make_sides(sides, folder);
    for (uint64_t flush = 0; flush < FLUSHES; flush++) {
        /* Small ones come before the first run, between runs, and after a range was read. */
        const bool small = flush == 0 || flush == 35 || flush % 5 == 4;
        for (size_t i = 0; i < (small ? SMALL : LARGE); i++)
            put_random(sides, &random, 2);
        flush_sides(sides, flush + 1);
        check_reads(sides, &random);
        const int64_t waiting = ask(&sides[0], WAITING);
        most = waiting > most ? waiting : most;
        if (flush == 34)
            CHECK_STATUS(cx_store_merge_waiting(&sides[0].store, &err), &err);
        if (flush == 34 || flush == 35)
            CHECK_INT(ask(&sides[0], WAITING), 0);
        if (flush == 12 || flush == 36 || flush == 50) {
            cx_store_close(&sides[0].store);
            if (flush == 12)
                append_to_runs(&sides[0]);
            open_side(&sides[0], false);
            CHECK_INT(sides[0].store.flushed.commit, flush + 1);
            CHECK_INT(ask(&sides[0], WAITING), waiting);
            check_reads(sides, &random);
        }
    }
    CHECK(most > 25);
    CHECK(ask(&sides[0], WAITING) != 0);
    CHECK_STATUS(cx_store_finish_derived(&sides[0].store, &err), &err);
    CHECK_INT(ask(&sides[0], WAITING), 0);
    CHECK_STATUS(cx_store_finish_derived(&sides[1].store, &err), &err);
    check_same(sides);
    check_reads(sides, &random);
    for (size_t s = 0; s < 2; s++)
        cx_store_close(&sides[s].store);
    folder_remove(folder);
}

/* More runs than are kept: they are merged into a table that has rows already. */
CX_TEST(runs_are_merged_when_there_are_too_many)
{
    char folder[FOLDER_PATH_SIZE];
    uint64_t random = cx_test_seed();
    static side sides[2];
    bool fewer = false;
    int64_t before = 0;
    make_sides(sides, folder);
    for (size_t i = 0; i < LARGE; i++)
        put_random(sides, &random, 2);
    for (uint64_t flush = 0; flush < 90; flush++) {
        for (size_t i = 0; i < SMALL; i++)
            put_random(sides, &random, 2);
        flush_sides(sides, flush + 1);
        const int64_t waiting = ask(&sides[0], WAITING);
        fewer = fewer || waiting < before;
        before = waiting;
        check_reads(sides, &random);
        /* Runs come again when a flush is large. */
        for (size_t i = 0; i < LARGE && waiting == 0; i++)
            put_random(sides, &random, 2);
    }
    CHECK(fewer && before != 0);
    CHECK_STATUS(cx_store_merge_waiting(&sides[0].store, &err), &err);
    check_same(sides);
    for (size_t s = 0; s < 2; s++)
        cx_store_close(&sides[s].store);
    folder_remove(folder);
}

/* Nothing is committed of a flush whose run is not in the file: the next process begins before
 * it. */
CX_TEST(runs_that_cannot_be_written_are_told)
{
    char folder[FOLDER_PATH_SIZE];
    uint64_t random = cx_test_seed();
    static side sides[2];
    make_sides(sides, folder);
    for (uint64_t commit = 0; commit < FAILS_COUNT; commit++) {
        cx_store *store = &sides[0].store;
        for (fails = FAILS_WRITE; commit != 0 && fails < FAILS_COUNT; fails++) {
            const uint64_t same = random;
            for (size_t i = 0; i < LARGE; i++)
                put_random(&sides[0], &random, 1);
            CHECK_STATUS(cx_store_start_flush(store, (cx_position){commit + 1, 0}, &err), &err);
            CHECK_INT(cx_store_flush_memtable(store, store->flushing, &err).code, CX_E_IO);
            cx_store_close(store);
            const failing failed = fails;
            fails = FAILS_NOTHING;
            open_side(&sides[0], false);
            CHECK_INT(store->flushed.commit, commit);
            check_reads(sides, &random);
            fails = failed;
            random = same;
        }
        fails = FAILS_NOTHING;
        for (size_t i = 0; i < LARGE; i++)
            put_random(sides, &random, 2);
        flush_sides(sides, commit + 1);
    }
    cx_store_close(&sides[0].store);
    fails = FAILS_OPEN;
    bool stale = false;
    CHECK_STATUS(cx_store_open(sides[0].path, CX_STORE_FILL, cx_alloc_default(), 7, IDENTITY,
                               &sides[0].store, &stale, &err),
                 &err);
    CHECK_INT(begin_runs(&sides[0]).code, CX_E_DENIED);
    fails = FAILS_NOTHING;
    CHECK_STATUS(begin_runs(&sides[0]), &err);
    CHECK_STATUS(cx_store_merge_waiting(&sides[0].store, &err), &err);
    check_same(sides);
    for (size_t s = 0; s < 2; s++)
        cx_store_close(&sides[s].store);
    folder_remove(folder);
}

static void change_byte(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    REQUIRE(file != NULL);
    CHECK(fseek(file, at, SEEK_SET) == 0);
    const int byte = fgetc(file);
    CHECK(byte != EOF && fseek(file, at, SEEK_SET) == 0);
    CHECK(fputc(byte ^ 0x20, file) != EOF);
    CHECK(fclose(file) == 0);
}

/* A file that does not have what was committed is damage, and no rows are made of it. */
CX_TEST(runs_that_are_damaged_are_told)
{
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 32];
    uint64_t random = cx_test_seed();
    static side sides[2];
    make_sides(sides, folder);
    for (size_t i = 0; i < LARGE; i++)
        put_random(sides, &random, 2);
    flush_sides(sides, 1);
    CHECK_INT(ask(&sides[0], WAITING), 1);
    (void)snprintf(path, sizeof path, "%s-runs", sides[0].path);
    for (long at = 0; at < 150; at += 2) {
        change_byte(path, at);
        CHECK_INT(cx_store_merge_waiting(&sides[0].store, &err).code, CX_E_FORMAT);
        cx_store_close(&sides[0].store);
        bool stale = false;
        CHECK_STATUS(cx_store_open(sides[0].path, CX_STORE_FILL, cx_alloc_default(), 7, IDENTITY,
                                   &sides[0].store, &stale, &err),
                     &err);
        CHECK_INT(begin_runs(&sides[0]).code, CX_E_FORMAT);
        change_byte(path, at);
        CHECK_STATUS(begin_runs(&sides[0]), &err);
    }
    cx_store_close(&sides[0].store);
    REQUIRE(remove(path) == 0);
    bool stale = false;
    CHECK_STATUS(cx_store_open(sides[0].path, CX_STORE_FILL, cx_alloc_default(), 7, IDENTITY,
                               &sides[0].store, &stale, &err),
                 &err);
    CHECK_INT(begin_runs(&sides[0]).code, CX_E_FORMAT);
    for (size_t s = 0; s < 2; s++)
        cx_store_close(&sides[s].store);
    folder_remove(folder);
}
