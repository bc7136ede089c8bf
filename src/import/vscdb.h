/*
 * vscdb.h - conversations in the database of Cursor's editor (state.vscdb, a SQLite file) as JSON
 * lines, which cursor.c reads (imports.md §2.15).
 */
#ifndef CX_IMPORT_VSCDB_H
#define CX_IMPORT_VSCDB_H

#include "base/api.h"

/* Limits of one file; more is CX_E_LIMIT "U_LIMIT". */
#define CX_VSCDB_VALUE_MAX ((size_t)64 << 20) /* of a value: a longer one is left out */
#define CX_VSCDB_CONVERSATIONS_MAX 100000u
#define CX_VSCDB_ROWS_MAX 5000000u

bool cx_import_is_sqlite(cx_bytes head);
/*
 * Appends a line for each conversation and each of its messages: {"composerId","composer"},
 * {"bubble","bubbleId","composerId"}; a message that is named and not there, or too long, has
 * "missing" with the reason instead.  The file is read as it is on the disk, and no byte of it
 * changes.  CX_E_FORMAT "U_SHAPE" when it has no conversations of Cursor, or is damaged.
 */
CX_RESULT cx_import_read_vscdb(const char *path, size_t max_bytes, cx_buf *out, cx_err *err);

#endif
