/*
 * home_kit.h - what tests need that break homes: one that holds every kind of record, and looking
 * at a home from outside, file by file and row by row.
 */
#ifndef CX_TESTS_HOME_KIT_H
#define CX_TESTS_HOME_KIT_H

#include <stdatomic.h>

#include "ledger/snapshot.h"
#include "ledger/verify.h"
#include "memory/memory.h"
#include "tests/support/folder.h"

#define KIT_ACTOR CX_STR("andrew")

/* Segments of 64 KiB, with the derived rows of the memory room. */
cx_home_options kit_options(void);

/* A clock and ids that can be foretold; may be shared by threads. */
typedef struct kit_source {
    _Atomic int64_t clock;
    atomic_ullong ids;
} kit_source;

void kit_source_init(kit_source *source, uint64_t number);
cx_memory_options kit_memory_options(kit_source *source);

/* One actor's memories in a home that is open. */
typedef struct kit {
    char path[FOLDER_PATH_SIZE];
    kit_source source;
    cx_home *home;
    cx_memory *memory;
    cx_arena arena;
    cx_err err;
} kit;

/* A new home, open.  False (and a failed check) when it cannot be made. */
bool kit_init(kit *k, const char *name, cx_scheme scheme);
void kit_done(kit *k); /* removes the home, too */
bool kit_open(kit *k);
void kit_close(kit *k);

/* Canonical data of a fact with this statement, appended. */
void kit_fact_data(const char *statement, cx_buf *out);
cx_status kit_write(cx_memory *memory, const char *statement, cx_uri *out, cx_err *err);
cx_status kit_update(cx_memory *memory, const cx_uri *uri, const char *statement, cx_uri *out,
                     cx_err *err);
/* Every kind of call once or more; about 40 entries and 3 snapshots, of which one is dropped. */
void kit_fill(kit *k);

/* --- a home from outside ---------------------------------------------------------------------- */

typedef struct kit_verdict {
    cx_status status;
    cx_verdict verdict;
    bool tables_checked;
    cx_digest overall; /* over the overall roots of all actors, in order */
    uint64_t entries;
    uint64_t half_erased;
    char first[600]; /* the first finding, or the error, or the note about the tables */
} kit_verdict;
/* Checks the home; `anchor` may be NULL. */
kit_verdict kit_verify(const char *path, cx_str actor, const cx_anchor_point *anchor);
/* .. and fails the test unless it holds.  `tables` must be equal as well. */
bool kit_holds(const char *path, bool tables, kit_verdict *out, const char *file, int line);
#define CHECK_HOLDS(path, tables, out) kit_holds(path, tables, out, __FILE__, __LINE__)

/* All rows of the tables as text, but those of planned erasures, which come and go; false when the
 * database does not say them. */
bool kit_rows(const char *path, cx_buf *out);
/* Bytes of all files of a home, those of the log included. */
void kit_bytes(const char *path, cx_buf *out);
void kit_copy(const char *from, const char *to);
void kit_remove_tables(const char *path);
/* Whether any file of the home contains these bytes. */
bool kit_contains(const char *path, const void *bytes, size_t size);

#endif
