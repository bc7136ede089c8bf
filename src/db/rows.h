/*
 * rows.h - the rows of cx_db_insert_rows as a table of SQLite.
 */
#ifndef CX_DB_ROWS_H
#define CX_DB_ROWS_H

#include <sqlite3.h>

#include "db/db.h"

typedef struct cx_db_rows cx_db_rows;

/* Once for each connection; `current` lives as long as that. */
int cx_db_rows_register(sqlite3 *handle, cx_db_rows **current);
/* SQLite's code; *out_next is what `next` said last. */
int cx_db_rows_insert(sqlite3 *handle, cx_db_rows **current, const char *table, size_t columns,
                      cx_db_next_row *next, void *arg, cx_status *out_next, cx_err *err);

#endif
