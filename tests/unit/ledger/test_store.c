/*
 * test_store.c - tables that are derived from nothing: what was put is found before and after it
 * reached the database, what was not is not, the index of subjects is there when it is asked for
 * and at the end, and a row that is stored in another way is told.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "ledger/internal.h"
#include "ledger/store_internal.h"
#include "tests/support/folder.h"
#include "tests/test.h"

#define IDENTITY CX_STR("a test")
enum { ROW_COUNT = 500 };

static cx_err err;

static bool open_derived(const char *path, cx_store *out)
{
    bool stale;
    cx_status status =
        cx_store_open(path, CX_STORE_DERIVE, cx_alloc_default(), 7, IDENTITY, out, &stale, &err);
    if (!cx_failed(status))
        status = cx_store_clear(out, IDENTITY, &err);
    CHECK_STATUS(status, &err);
    return !cx_failed(status);
}

static bool has_index(cx_store *store)
{
    cx_db_statement *statement;
    bool row = false;
    CHECK_STATUS(cx_db_prepare(store->writing.db,
                               "SELECT 1 FROM sqlite_master WHERE name='entry_subject'", &statement,
                               &err),
                 &err);
    CHECK_STATUS(cx_db_step(statement, &row, &err), &err);
    cx_db_finish(statement);
    return row;
}

/* Entries about a subject cost what there are of these, not what the actor has: SQLite's plan
 * begins with the index. */
static void check_plan(cx_store *store)
{
    char sql[512];
    cx_db_statement *statement;
    bool row = false;
    (void)snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s", cx_store_about_sql);
    CHECK_STATUS(cx_db_prepare(store->writing.db, sql, &statement, &err), &err);
    CHECK_STATUS(cx_db_step(statement, &row, &err), &err);
    CHECK(row && cx_str_starts(cx_db_text(statement, 3),
                               CX_STR("SEARCH entry USING COVERING INDEX entry_subject ")));
    cx_db_finish(statement);
}

static cx_bytes key_of(uint32_t number, uint8_t out[6])
{
    memcpy(out, "m/", 2);
    memcpy(out + 2, &number, 4);
    return cx_bytes_from(out, 6);
}

static void put_all(cx_store *store)
{
    for (uint32_t i = 0; i < ROW_COUNT; i++) {
        uint8_t key[6];
        const cx_row row = {.actor = 1,
                            .key = key_of(2 * i, key),
                            .value = cx_str_bytes(CX_STR("value")),
                            .commit = i};
        const cx_entry_row entry = {.actor = 1,
                                    .seq = i,
                                    .kind = CX_STR("write"),
                                    .has_subject = true,
                                    .subject = {{(uint8_t)(i % 3)}},
                                    .place = {.size_bytes = 1}};
        CHECK_STATUS(cx_store_put(store, &row, &err), &err);
        CHECK_STATUS(cx_store_put_entry(store, &entry, &err), &err);
    }
}

static void flush(cx_store *store)
{
    CHECK_STATUS(cx_store_start_flush(store, (cx_position){ROW_COUNT, 0}, &err), &err);
    CHECK_STATUS(cx_store_flush_memtable(store, store->flushing, &err), &err);
    cx_store_flushed(store);
}

/* Every second number was put. */
static void check_rows(cx_store *store, cx_arena *arena)
{
    for (uint32_t i = 0; i < 2 * ROW_COUNT; i++) {
        uint8_t key[6];
        cx_bytes value = {NULL, 0};
        bool found = i % 2 != 0;
        CHECK_STATUS(cx_store_get(store, 1, key_of(i, key), arena, &value, &found, NULL, &err),
                     &err);
        CHECK(found == (i % 2 == 0));
        CHECK(!found || cx_str_is(cx_bytes_str(value), "value"));
    }
}

static cx_status count_entry(void *arg, const cx_entry_row *entry, bool *stop, cx_err *ignored)
{
    unsigned *count = arg;
    (void)stop;
    (void)ignored;
    CHECK(entry->seq % 3 == 1);
    ++*count;
    return CX_SUCCESS;
}

CX_TEST(store_derives_from_nothing)
{
    char folder[FOLDER_PATH_SIZE];
    cx_store store;
    cx_arena arena;
    const cx_id subject = {{1}};
    unsigned count = 0;
    folder_fresh(folder, "store");
    cx_arena_init(&arena, cx_alloc_default(), 0);
    if (!open_derived(folder, &store))
        return;
    put_all(&store);
    CHECK_INT(cx_store_memtable_rows(&store), 2 * ROW_COUNT);
    check_rows(&store, &arena);
    flush(&store);
    CHECK_INT(cx_store_memtable_rows(&store), 0);
    check_rows(&store, &arena);
    CHECK(!has_index(&store));
    CHECK_STATUS(cx_store_scan_entries(&store, 1, &subject, count_entry, &count, &err), &err);
    CHECK_INT(count, (ROW_COUNT + 1) / 3);
    CHECK(has_index(&store));
    CHECK_STATUS(cx_store_finish_derived(&store, &err), &err);
    cx_store_close(&store);
    cx_arena_done(&arena);
    folder_remove(folder);
}

static cx_status note_row(void *arg, const char *table, int64_t actor, cx_bytes key,
                          const char *how, cx_err *ignored)
{
    (void)key;
    (void)ignored;
    CHECK_INT(actor, 1);
    (void)snprintf(arg, 64, "%s %s", table, how);
    return CX_SUCCESS;
}

CX_TEST(store_compares_how_a_value_is_stored)
{
    static const char *const changes[] = {
        "UPDATE entry SET kind=CAST(kind AS BLOB) WHERE seq=9",
        "UPDATE entry SET created_ns=1 WHERE seq=9",
        "UPDATE entry SET subject=NULL WHERE seq=9",
    };
    char left_path[FOLDER_PATH_SIZE], right_path[FOLDER_PATH_SIZE], told[64];
    cx_store left, right;
    folder_fresh(left_path, "store-left");
    folder_fresh(right_path, "store-right");
    if (!open_derived(left_path, &left) || !open_derived(right_path, &right))
        return;
    put_all(&left);
    put_all(&right);
    flush(&left);
    flush(&right);
    CHECK_STATUS(cx_store_finish_derived(&left, &err), &err);
    CHECK(has_index(&left));
    check_plan(&left);
    const cx_store_comparison how = {.max = 10, .differ = note_row, .arg = told};
    for (size_t i = 0; i <= CX_COUNT_OF(changes); i++) {
        told[0] = 0;
        CHECK_STATUS(cx_store_compare(&left, &right, &how, &err), &err);
        CHECK_STR(cx_str_z(told), i == 0 ? "" : "entry different");
        if (i == CX_COUNT_OF(changes))
            break;
        CHECK_STATUS(cx_store_clear(&right, IDENTITY, &err), &err);
        put_all(&right);
        flush(&right);
        CHECK_STATUS(cx_db_run(right.writing.db, changes[i], &err), &err);
    }
    cx_store_close(&left);
    cx_store_close(&right);
    folder_remove(left_path);
    folder_remove(right_path);
}

/* What a row holds, in a store that is written to by a connection of its own. */
static bool reads(cx_store *store, cx_arena *arena, uint32_t number, const char *expected)
{
    uint8_t key[6];
    cx_bytes value = {NULL, 0};
    bool found = false;
    CHECK_STATUS(cx_store_get(store, 1, key_of(number, key), arena, &value, &found, NULL, &err),
                 &err);
    return expected == NULL ? !found : found && cx_str_is(cx_bytes_str(value), expected);
}

static void put_one(cx_store *store, uint32_t number, const char *value)
{
    uint8_t key[6];
    const cx_row row = {
        .actor = 1, .key = key_of(number, key), .value = cx_str_bytes(cx_str_z(value))};
    CHECK_STATUS(cx_store_put(store, &row, &err), &err);
}

/* A view is opened before a flush, used after it, and always closed. */
CX_TEST(store_views_see_what_a_flush_has_brought_meanwhile)
{
    char folder[FOLDER_PATH_SIZE];
    cx_store store;
    cx_arena arena;
    bool stale;
    folder_fresh(folder, "views");
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_store_open(folder, CX_STORE_WRITE, cx_alloc_default(), 7, IDENTITY,
                                     &store, &stale, &err);
    CHECK_STATUS(status, &err);
    if (cx_failed(status))
        return;
    CHECK_STATUS(cx_store_clear(&store, IDENTITY, &err), &err);
    put_one(&store, 1, "old");
    flush(&store);
    cx_store_view_begin(&store);
    CHECK(store.view == CX_VIEW_WANTED);
    CHECK(reads(&store, &arena, 1, "old") && reads(&store, &arena, 2, NULL));
    CHECK(store.view == CX_VIEW_OPEN);
    put_one(&store, 1, "new");
    put_one(&store, 2, "more");
    CHECK(reads(&store, &arena, 1, "new") && reads(&store, &arena, 2, "more"));
    flush(&store);
    CHECK(reads(&store, &arena, 1, "new") && reads(&store, &arena, 2, "more"));
    cx_store_view_end(&store);
    CHECK(store.view == CX_VIEW_NONE);
    /* Writing all pages again needs the database alone. */
    CHECK_STATUS(cx_store_scrub(&store, &err), &err);
    CHECK(reads(&store, &arena, 2, "more"));
    cx_store_close(&store);
    cx_arena_done(&arena);
    folder_remove(folder);
}
