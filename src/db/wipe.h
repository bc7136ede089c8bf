/*
 * wipe.h - a layer under SQLite's files: pages reach the file without what was on them before.
 *
 * secure_delete overwrites a row that is deleted, but when rows move to another page the old bytes
 * stay in the unused part of the page they came from.  Below this layer the unused part of every
 * page that is written to a database file is zero.  A write-ahead log has pages as they are in
 * memory: it must be emptied, and the pages in memory dropped (cx_db_forget_deleted).
 */
#ifndef CX_DB_WIPE_H
#define CX_DB_WIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Registers it with SQLite, over the system's files; its name for sqlite3_open_v2 and in URIs.
 * NULL: that failed. */
const char *cx_db_wipe_register(void);
/* The same over the files of files.h, which must be registered. */
const char *cx_db_wipe_register_over_files(void);

/* Files from this number of pages on are written as they are: there the first byte of a page no
 * longer says for certain what the page is. */
#define CX_DB_WIPE_PAGES_MAX (UINT64_C(1) << 24)

/* The unused part of a page, between its list of cells and its first cell; false when the page has
 * none, or is not one with cells.  `first`: it is page 1, whose head begins later. */
bool cx_db_wipe_gap(const uint8_t *page, size_t size, bool first, size_t *out_from, size_t *out_to);

#endif
