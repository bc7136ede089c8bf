/*
 * rows.c - many rows inserted by one statement, which takes them from a callback.
 *
 * A statement that is run for each row looks its place up from the root of the tree each time, and
 * begins and ends some hundred instructions around it.  Here `INSERT .. SELECT .. FROM` reads a
 * virtual table whose rows are those of the callback, so that rows in the order of the table's key
 * are each put after the one before.
 */
#include <sqlite3.h>
#include <stdio.h>

#include "base/api.h"
#include "db/db.h"
#include "db/rows.h"

/* The only row that there is: the current one. */
struct cx_db_rows {
    cx_db_next_row *next;
    void *arg;
    cx_db_value values[CX_DB_COLUMNS_MAX];
    sqlite3_int64 number;
    bool more;
    cx_status status;
    cx_err *err;
};

typedef struct rows_table {
    sqlite3_vtab base;
    cx_db_rows **rows; /* of the connection */
} rows_table;

static cx_db_rows *rows_of(const sqlite3_vtab_cursor *cursor)
{
    return *((const rows_table *)(const void *)cursor->pVtab)->rows;
}

static int connect_table(sqlite3 *db, void *aux, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **message)
{
    (void)argc;
    (void)argv;
    (void)message;
    const int code = sqlite3_declare_vtab(
        db, "CREATE TABLE x(c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11)");
    if (code != SQLITE_OK)
        return code;
    rows_table *table = sqlite3_malloc(sizeof *table);
    if (table == NULL)
        return SQLITE_NOMEM;
    *table = (rows_table){.rows = aux};
    *out = &table->base;
    return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *table)
{
    sqlite3_free(table);
    return SQLITE_OK;
}

static int best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    info->estimatedCost = 1e6;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **out)
{
    (void)table;
    *out = sqlite3_malloc(sizeof **out);
    if (*out == NULL)
        return SQLITE_NOMEM;
    **out = (sqlite3_vtab_cursor){NULL};
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *cursor)
{
    cx_db_rows *rows = rows_of(cursor);
    rows->number++;
    rows->status = rows->next(rows->arg, rows->values, &rows->more, rows->err);
    return cx_failed(rows->status) ? SQLITE_ABORT : SQLITE_OK;
}

static int first_row(sqlite3_vtab_cursor *cursor, int number, const char *name, int argc,
                     sqlite3_value **argv)
{
    (void)number;
    (void)name;
    (void)argc;
    (void)argv;
    return next_row(cursor);
}

static int is_end(sqlite3_vtab_cursor *cursor)
{
    return rows_of(cursor)->more ? 0 : 1;
}

static int column(sqlite3_vtab_cursor *cursor, sqlite3_context *out, int number)
{
    const cx_db_value *value = &rows_of(cursor)->values[number];
    const void *data = value->bytes.data != NULL ? (const void *)value->bytes.data : "";
    switch (value->type) {
    case CX_DB_INT: sqlite3_result_int64(out, value->number); break;
    case CX_DB_BYTES: sqlite3_result_blob64(out, data, value->bytes.size, SQLITE_STATIC); break;
    case CX_DB_TEXT:
        sqlite3_result_text64(out, data, value->bytes.size, SQLITE_STATIC, SQLITE_UTF8);
        break;
    case CX_DB_NULL: sqlite3_result_null(out); break;
    }
    return SQLITE_OK;
}

static int row_number(sqlite3_vtab_cursor *cursor, sqlite3_int64 *out)
{
    *out = rows_of(cursor)->number;
    return SQLITE_OK;
}

/* Only as a table of that name: it cannot be created. */
static const sqlite3_module module = {
    .iVersion = 0,
    .xConnect = connect_table,
    .xBestIndex = best_index,
    .xDisconnect = disconnect_table,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = first_row,
    .xNext = next_row,
    .xEof = is_end,
    .xColumn = column,
    .xRowid = row_number,
};

int cx_db_rows_register(sqlite3 *handle, cx_db_rows **current)
{
    return sqlite3_create_module(handle, "cx_rows", &module, current);
}

/* OR FAIL: what was inserted before a failure stays, so nothing is noted to take it back; the
 * transaction is rolled back anyway. */
static void write_statement(const char *table, size_t columns, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "INSERT OR FAIL INTO %s SELECT c0", table);
    for (size_t i = 1; i < columns && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, ", c%zu", i);
    if (used < size)
        used += (size_t)snprintf(out + used, size - used, " FROM cx_rows");
    CX_ASSERT(used < size);
}

int cx_db_rows_insert(sqlite3 *handle, cx_db_rows **current, const char *table, size_t columns,
                      cx_db_next_row *next, void *arg, cx_status *out_next, cx_err *err)
{
    char sql[256];
    cx_db_rows rows = {.next = next, .arg = arg, .err = err};
    sqlite3_stmt *statement = NULL;
    CX_ASSERT(*current == NULL && columns > 0 && columns <= CX_DB_COLUMNS_MAX);
    write_statement(table, columns, sql, sizeof sql);
    *current = &rows;
    int code = sqlite3_prepare_v2(handle, sql, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    (void)sqlite3_finalize(statement); /* repeats the step's failure */
    *current = NULL;
    *out_next = rows.status;
    return code == SQLITE_DONE ? SQLITE_OK : code;
}
