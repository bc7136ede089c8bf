/*
 * test_history.c - rows of the past are given back in steps, also over several openings, and no
 * other row is.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "ledger/internal.h"
#include "ledger/past/history.h"
#include "tests/support/folder.h"
#include "tests/test.h"

#define IDENTITY CX_STR("a test")
enum { RECORDS = 9000 };

static cx_err err;

static bool open_store(const char *path, bool is_new, cx_store *out)
{
    bool stale;
    cx_status status =
        cx_store_open(path, CX_STORE_DERIVE, cx_alloc_default(), 7, IDENTITY, out, &stale, &err);
    if (!cx_failed(status) && is_new)
        status = cx_store_clear(out, IDENTITY, &err);
    CHECK_STATUS(status, &err);
    return !cx_failed(status);
}

static void flush(cx_store *store)
{
    CHECK_STATUS(cx_store_start_flush(store, (cx_position){1, 0}, &err), &err);
    CHECK_STATUS(cx_store_flush_memtable(store, store->flushing, &err), &err);
    cx_store_flushed(store);
}

static cx_history_key name_of(uint32_t record, uint64_t snapshot)
{
    uint8_t key[6] = "m/";
    memcpy(key + 2, &record, 4);
    return cx_history_key_of(cx_bytes_from(key, sizeof key), snapshot);
}

/* Every record changed after snapshot 2, every second one after 0, every third one after 5. */
static bool has_row(uint32_t record, uint64_t snapshot)
{
    return snapshot == 2 || (snapshot == 0 && record % 2 == 0) ||
           (snapshot == 5 && record % 3 == 0);
}

static const uint64_t snapshots[] = {0, 2, 5};

static void fill(cx_store *store)
{
    for (int64_t actor = 1; actor <= 2; actor++)
        for (uint32_t i = 0; i < RECORDS; i++)
            for (size_t s = 0; s < CX_COUNT_OF(snapshots); s++) {
                const cx_history_key key = name_of(i, snapshots[s]);
                const cx_row row = {.actor = actor, .key = cx_history_key_bytes(&key)};
                if (has_row(i, snapshots[s]))
                    CHECK_STATUS(cx_store_put(store, &row, &err), &err);
            }
    CHECK_STATUS(cx_db_run(store->writing.db,
                           "INSERT INTO past VALUES(1,0,0,0),(1,2,0,0),(1,5,0,0),"
                           "(2,0,0,0),(2,2,0,0),(2,5,0,0)",
                           &err),
                 &err);
    flush(store);
    CHECK_INT(store->counters.records, 0); /* G4 */
}

static uint64_t count_history(cx_store *store)
{
    cx_db_statement *statement;
    bool row = false;
    CHECK_STATUS(cx_db_prepare(store->reading.db,
                               "SELECT count(*) FROM record WHERE " CX_HISTORY_ROWS, &statement,
                               &err),
                 &err);
    CHECK_STATUS(cx_db_step(statement, &row, &err), &err);
    const uint64_t count = row ? (uint64_t)cx_db_int(statement, 0) : 0;
    cx_db_finish(statement);
    return count;
}

static bool is_there(cx_store *store, int64_t actor, uint32_t record, uint64_t snapshot)
{
    const cx_history_key key = name_of(record, snapshot);
    cx_arena arena;
    cx_bytes value;
    bool found = false;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(
        cx_store_get(store, actor, cx_history_key_bytes(&key), &arena, &value, &found, NULL, &err),
        &err);
    cx_arena_done(&arena);
    return found;
}

static void drop(cx_store *store, int64_t actor, uint64_t snapshot)
{
    char sql[80];
    (void)snprintf(sql, sizeof sql, "DELETE FROM past WHERE actor=%lld AND snapshot=%llu",
                   (long long)actor, (unsigned long long)snapshot);
    CHECK_STATUS(cx_db_run(store->writing.db, sql, &err), &err);
    CHECK_STATUS(cx_history_want_sweep(store, actor, &err), &err);
    store->sweeps = true;
}

/* Sweeps to the end, and opens the store again after each step. */
static void sweep_all(cx_store *store, const char *path)
{
    unsigned steps = 0;
    while (store->sweeps && steps++ < 40) {
        const uint64_t before = count_history(store);
        flush(store);
        CHECK(before - count_history(store) <= CX_SWEEP_ROWS);
        cx_store_close(store);
        if (!open_store(path, false, store))
            return;
    }
    /* Two actors with 16,500 rows each: three steps for these, and one for each tree. */
    CHECK_INT(steps, 2 * (3 + 2));
    CHECK(!store->sweeps);
}

CX_TEST(history_is_swept_in_steps_and_only_where_nothing_needs_it)
{
    char path[FOLDER_PATH_SIZE];
    cx_store store;
    folder_fresh(path, "history");
    if (!open_store(path, true, &store))
        return;
    fill(&store);
    CHECK_INT(count_history(&store), 2 * (RECORDS + RECORDS / 2 + RECORDS / 3));
    flush(&store);
    CHECK_INT(count_history(&store), 2 * (RECORDS + RECORDS / 2 + RECORDS / 3));
    drop(&store, 1, 2); /* between two others: snapshot 0 still needs rows that carry it */
    drop(&store, 2, 0); /* the oldest */
    sweep_all(&store, path);
    for (uint32_t i = 0; i < RECORDS; i += 7)
        for (size_t s = 0; s < CX_COUNT_OF(snapshots); s++) {
            const uint64_t snapshot = snapshots[s];
            const bool first = has_row(i, snapshot) && (snapshot != 2 || !has_row(i, 0));
            const bool second = has_row(i, snapshot) && snapshot != 0;
            CHECK_INT(is_there(&store, 1, i, snapshot), first);
            CHECK_INT(is_there(&store, 2, i, snapshot), second);
        }
    cx_store_close(&store);
    folder_remove(path);
}

CX_TEST(history_of_what_is_needed_is_the_same_before_and_after)
{
    char path[FOLDER_PATH_SIZE];
    cx_store store;
    folder_fresh(path, "history-needed");
    if (!open_store(path, true, &store))
        return;
    fill(&store);
    for (int swept = 0; swept < 2; swept++) {
        for (uint32_t i = 0; i < 60; i++) {
            bool needed = false;
            const cx_history_key key = name_of(i, 2);
            CHECK_STATUS(cx_history_needs(&store, 1, cx_history_key_bytes(&key), &needed, &err),
                         &err);
            CHECK_INT(needed, swept == 0 || !has_row(i, 0));
        }
        if (swept == 0)
            drop(&store, 1, 2);
    }
    while (store.sweeps)
        flush(&store);
    for (uint32_t i = 0; i < 60; i++) {
        bool needed = true;
        const cx_history_key key = name_of(i, 2);
        CHECK_STATUS(cx_history_needs(&store, 1, cx_history_key_bytes(&key), &needed, &err), &err);
        CHECK_INT(needed, !has_row(i, 0));
    }
    cx_store_close(&store);
    folder_remove(path);
}
