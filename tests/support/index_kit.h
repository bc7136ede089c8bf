/*
 * index_kit.h - an index to test with: on SQLite always, on PostgreSQL where CORTEX_TEST_PG names a
 * database (tests/support/postgres.sh).  A test is written once:
 *
 *     BOTH(rows_are_counted) { ... uses `where` and opens what it needs ... }
 */
#ifndef CX_TESTS_TRACE_INDEX_KIT_H
#define CX_TESTS_TRACE_INDEX_KIT_H

#include <stdlib.h>

#include "tests/support/folder.h"
#include "tests/support/index_dump.h"
#include "tests/support/rows.h"
#include "db/db.h"
#include "db/pg.h"
#include "index/index_internal.h"

static const uint8_t kit_home[16] = {7, 1, 2, 3};
static const cx_feed_position kit_position = {5, 2};

/* A fresh place for an index; NULL, with the test marked skipped, when there is none. */
static inline const char *kit_place(bool pg)
{
    static char path[FOLDER_PATH_SIZE + 16];
    if (!pg) {
        folder_fresh(path, "index");
        return path;
    }
#ifndef CX_WITH_PG
    cx_test_skip("built without PostgreSQL");
    return NULL;
#endif
    const char *url = getenv("CORTEX_TEST_PG");
    if (url == NULL || *url == 0) {
        cx_test_skip("CORTEX_TEST_PG names no database");
        return NULL;
    }
    return url;
}

static inline void kit_remove(const char *where, bool pg)
{
    char side_file[FOLDER_PATH_SIZE + 32];
    if (pg)
        return;
    (void)remove(where);
    (void)snprintf(side_file, sizeof side_file, "%s-wal", where);
    (void)remove(side_file);
    (void)snprintf(side_file, sizeof side_file, "%s-shm", where);
    (void)remove(side_file);
}

/* An empty index, open for writing; NULL with a failed check. */
static inline cx_index *kit_open_empty(const char *where)
{
    cx_index *index = NULL;
    cx_err err = {0};
    cx_status status = cx_index_open(where, CX_INDEX_WRITE, &index, &err);
    CHECK_STATUS(status, &err);
    if (cx_failed(status))
        return NULL;
    CHECK_STATUS(cx_index_clear(index, &err), &err);
    return index;
}

#define BOTH(test_name)                                       \
    static void body_##test_name(const char *where, bool pg); \
    static inline void run_##test_name(bool pg)               \
    {                                                         \
        const char *where = kit_place(pg);                    \
        if (where != NULL) {                                  \
            body_##test_name(where, pg);                      \
            kit_remove(where, pg);                            \
        }                                                     \
    }                                                         \
    CX_TEST(sqlite_##test_name)                               \
    {                                                         \
        run_##test_name(false);                               \
    }                                                         \
    CX_TEST(pg_##test_name)                                   \
    {                                                         \
        run_##test_name(true);                                \
    }                                                         \
    static void body_##test_name(const char *where, bool pg)

/* Puts rows in one transaction and commits. */
static inline void kit_put(cx_index *index, const rows_spec *specs, size_t count)
{
    cx_err err = {0};
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_index_begin(index, &err), &err);
    for (size_t i = 0; i < count; i++) {
        cx_trace_row row;
        if (rows_make(&specs[i], &arena, &row))
            CHECK_STATUS(cx_index_put_trace(index, &row, &err), &err);
    }
    CHECK_STATUS(cx_index_commit(index, kit_home, kit_position, &err), &err);
    cx_arena_done(&arena);
}

/* What a query finds, as "id id id", and " +" when there is more. */
static inline void kit_find(cx_index *index, const cx_trace_query *query, cx_buf *out)
{
    cx_err err = {0};
    cx_arena arena;
    const cx_found_row *rows;
    size_t count;
    bool more;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_clear(out);
    cx_status status = cx_index_find(index, query, &arena, &rows, &count, &more, &err);
    CHECK_STATUS(status, &err);
    for (size_t i = 0; !cx_failed(status) && i < count; i++) {
        cx_buf_printf(out, "%s%.*s", i == 0 ? "" : " ", (int)rows[i].cells[0].text.size,
                      rows[i].cells[0].text.data);
    }
    if (!cx_failed(status) && more)
        cx_buf_add_z(out, " +");
    cx_arena_done(&arena);
}

#define CHECK_FINDS(index, query, expected)       \
    do {                                          \
        cx_buf found_;                            \
        cx_buf_init(&found_, cx_alloc_default()); \
        kit_find((index), (query), &found_);      \
        cx_str found_text_ = cx_buf_str(&found_); \
        CHECK_STR(found_text_, (expected));       \
        cx_buf_done(&found_);                     \
    } while (0)

/* The number that a statement without values answers. */
static inline int64_t kit_number(cx_index *index, const char *sql)
{
    cx_err err = {0};
    int64_t number = -1;
    CHECK_STATUS(cx_index_number(index, sql, NULL, 0, -1, &number, &err), &err);
    return number;
}

static inline void kit_dump(cx_index *index, cx_buf *out)
{
    cx_err err = {0};
    cx_buf_clear(out);
    CHECK_STATUS(index_dump(index, out, &err), &err);
}

#endif
