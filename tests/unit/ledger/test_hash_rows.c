/*
 * test_hash_rows.c - rows that lead from hashes to entries: the same whatever the flushes were,
 * found at every place, and never without what is missing.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "ledger/find/hash_rows.h"
#include "ledger/internal.h"
#include "tests/support/folder.h"
#include "tests/test.h"

#define IDENTITY CX_STR("a test")
/* Two blocks, and something that is in none yet. */
enum { HASHES = 2 * CX_HASH_BLOCK + 5000 };

static cx_err err;

static uint64_t head_of(uint64_t number)
{
    number += UINT64_C(0x9e3779b97f4a7c15);
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

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

static void flush(cx_store *store, uint64_t position)
{
    CHECK_STATUS(cx_store_start_flush(store, (cx_position){position, 0}, &err), &err);
    CHECK_STATUS(cx_store_flush_memtable(store, store->flushing, &err), &err);
    cx_store_flushed(store);
}

/* Every third hash comes twice and has one row; but not the last of a block, which would get
 * another one in the next. */
static void put_all(cx_store *store, uint64_t flush_each)
{
    for (uint64_t i = 0; i < HASHES; i++) {
        const cx_hash_row row = {head_of(i), (int64_t)(i % 3), i};
        for (int times = i % 3 == 0 && i != CX_HASH_BLOCK - 1 ? 2 : 1; times > 0; times--)
            CHECK_STATUS(cx_store_put_hash(store, &row, &err), &err);
        if (i % flush_each == flush_each - 1)
            flush(store, i);
    }
    flush(store, HASHES);
    CHECK_INT(store->counters.hashes, HASHES);
}

typedef struct asked {
    uint64_t count;
    cx_hash_row last;
} asked;

static cx_status note_found(void *arg, const cx_hash_row *row, bool *stop, cx_err *ignored)
{
    asked *found = arg;
    (void)stop;
    (void)ignored;
    found->count++;
    found->last = *row;
    return CX_SUCCESS;
}

static cx_status note_difference(void *arg, const char *table, int64_t actor, cx_bytes key,
                                 const char *how, cx_err *ignored)
{
    (void)actor;
    (void)key;
    (void)ignored;
    (void)snprintf(arg, 64, "%s %s", table, how);
    return CX_SUCCESS;
}

CX_TEST(hash_rows_do_not_depend_on_flushes)
{
    char left_path[FOLDER_PATH_SIZE], right_path[FOLDER_PATH_SIZE], told[64] = "";
    cx_store left, right;
    const cx_store_comparison how = {.max = 1, .differ = note_difference, .arg = told};
    folder_fresh(left_path, "hashes-left");
    folder_fresh(right_path, "hashes-right");
    if (!open_derived(left_path, &left) || !open_derived(right_path, &right))
        return;
    put_all(&left, 777);
    put_all(&right, CX_HASH_BLOCK + 1);
    right.flushed = left.flushed;
    CHECK_STATUS(cx_store_compare(&left, &right, &how, &err), &err);
    CHECK_STR(cx_str_z(told), "");
    CHECK_STATUS(
        cx_db_run(right.writing.db, "UPDATE hash_block SET items=x'00' WHERE id=300", &err), &err);
    CHECK_STATUS(cx_store_compare_hashes(&left, &right, 2 * CX_HASH_BLOCK, &how, &err), &err);
    CHECK_STR(cx_str_z(told), ""); /* before what is compared */
    CHECK_STATUS(cx_store_compare_hashes(&left, &right, 2 * CX_HASH_BLOCK - 1, &how, &err), &err);
    CHECK_STR(cx_str_z(told), "hash_block different");
    CHECK_STATUS(cx_db_run(right.writing.db, "DELETE FROM hash_new WHERE actor=1", &err), &err);
    CHECK_STATUS(cx_store_compare_hashes(&left, &right, 2 * CX_HASH_BLOCK, &how, &err), &err);
    CHECK_STR(cx_str_z(told), "hash_new missing");
    cx_store_close(&left);
    cx_store_close(&right);
    folder_remove(left_path);
    folder_remove(right_path);
}

CX_TEST(hash_rows_lead_to_each_entry_and_to_no_other)
{
    char path[FOLDER_PATH_SIZE];
    cx_store store;
    uint64_t count = 0;
    folder_fresh(path, "hashes");
    if (!open_derived(path, &store))
        return;
    put_all(&store, 4096);
    for (uint64_t i = 0; i < HASHES; i += i < 200 || i > HASHES - 200 ? 1 : 97) {
        const uint64_t head = head_of(i);
        asked found = {0}, absent = {0};
        CHECK_STATUS(cx_store_find_hashes(&store, head, head, note_found, &found, &err), &err);
        CHECK_INT(found.count, 1);
        CHECK(found.last.head == head && found.last.number == i);
        CHECK_INT(found.last.actor, (int64_t)(i % 3));
        CHECK_STATUS(cx_store_find_hashes(&store, head ^ 1, head ^ 1, note_found, &absent, &err),
                     &err);
        CHECK_INT(absent.count, 0);
    }
    asked all = {0};
    for (uint64_t byte = 0; byte < 256; byte++)
        CHECK_STATUS(cx_store_find_hashes(&store, byte << 56, byte << 56 | UINT64_MAX >> 8,
                                          note_found, &all, &err),
                     &err);
    CHECK_INT(all.count, HASHES);
    CHECK_STATUS(cx_store_check_hashes(&store, &count, &err), &err);
    CHECK_INT(count, HASHES);
    cx_store_close(&store);
    folder_remove(path);
}

/* H3 */
CX_TEST(hash_rows_that_are_damaged_or_missing_are_no_answer)
{
    static const char *const changes[] = {
        "UPDATE hash_block SET items=zeroblob(length(items)) WHERE id=300",
        "UPDATE hash_block SET items=x'' WHERE id=300",
        "DELETE FROM hash_block WHERE id=300",
        "UPDATE hash_block SET id=1000 WHERE id=300",
        "UPDATE hash_new SET number=number+2 WHERE head>>56=44-128",
        "UPDATE hash_new SET actor=7 WHERE head>>56=44-128",
        "DELETE FROM hash_new WHERE head>>56=44-128",
        "DELETE FROM hash_new",
        "UPDATE meta SET value=value-1 WHERE name='hashes'",
    };
    char path[FOLDER_PATH_SIZE];
    cx_store store;
    folder_fresh(path, "hashes-damaged");
    if (!open_derived(path, &store))
        return;
    put_all(&store, 4096);
    for (size_t i = 0; i < CX_COUNT_OF(changes); i++) {
        const uint64_t low = UINT64_C(44) << 56; /* of part 44 in each block */
        asked found = {0};
        uint64_t count = 0;
        CHECK_STATUS(cx_db_run(store.writing.db, "SAVEPOINT before", &err), &err);
        CHECK_STATUS(cx_db_run(store.writing.db, changes[i], &err), &err);
        cx_status status =
            cx_store_find_hashes(&store, low, low | UINT64_MAX >> 8, note_found, &found, &err);
        CHECK_INT(status.code, CX_E_FORMAT);
        CHECK_STR(cx_str_z(err.tag), "DatabaseDamaged");
        CHECK_INT(cx_store_check_hashes(&store, &count, &err).code, CX_E_FORMAT);
        CHECK_STATUS(cx_db_run(store.writing.db, "ROLLBACK TO before", &err), &err);
    }
    cx_store_close(&store);
    folder_remove(path);
}
