/*
 * session_files.h - the archived files that make a session: its own and those of its subagents, or
 * all documents of one that is kept in many (docs/formats/sessions.md §4).
 */
#ifndef CX_STORES_SESSION_FILES_H
#define CX_STORES_SESSION_FILES_H

#include "import/api.h"
#include "stores/session_index.h"
#include "stores/session_items.h"
#include "stores/session_told.h"

/* Memory is the arena's that it was found with. */
typedef struct cx_session_files {
    const cx_recorded_session *const *items; /* the session itself first */
    size_t count;
    bool joined; /* documents of a group: they are read as the lines of one file */
    /* .. where in `items` each of the lines begins, and the end after the last one. */
    const size_t *lines;
    size_t line_count;
    /* Of the session's own file, in order: the pieces, whose lines were counted here and not when
     * they were archived (session_part.h).  NULL = they need not be. */
    const cx_session_piece *pieces;
    size_t piece_count;
    /* Of one document: where its records are, once they were counted (session_part.h); NULL = it
     * has no parts. */
    const cx_session_items *items_at;
    /* Of lines whose format asks for it: what they tell again; likewise. */
    const cx_session_told *told;
    bool placed; /* these were looked for */
    /* Of a text that is read by places (session_place.h): those of `pieces`, and that at its end,
     * as it is and as it ends the text. */
    const cx_import_place *places;
    const cx_import_place *last, *end;
} cx_session_files;

/* The name of the session of a file: without folders and ending, or the folder's where all sessions
 * name their files alike. */
cx_str cx_session_stem(cx_str path);

/*
 * The session of that name (cx_session_stem: its newest generation) or id; of a group of documents
 * the id is that of the group, or of one of them.
 * CX_E_NOT_FOUND "NoBranch", CX_E_CONFLICT "Ambiguous", CX_E_FORMAT "Unread" when it is of no known
 * format.
 */
CX_RESULT cx_session_files_find(cx_home *home, cx_str name, cx_arena *arena, cx_session_files *out,
                                cx_err *err);

/* Appends one line of a joined session, from 0; an empty one where it was erased. */
CX_RESULT cx_session_files_add_line(cx_home *home, const cx_session_files *files, size_t line,
                                    cx_buf *out, cx_err *err);

/*
 * Imports all archived bytes that were not erased.  `max_bytes` 0 = no limit, else CX_E_LIMIT
 * "U_LIMIT".  `out_erased` (may be NULL) counts erased pieces; `summary` may be NULL.
 */
CX_RESULT cx_session_files_import(cx_home *home, const cx_session_files *files, size_t max_bytes,
                                  const cx_import_options *options, cx_import_write write,
                                  void *write_arg, cx_import_summary *summary, uint64_t *out_erased,
                                  cx_err *err);

#endif
