/*
 * session_part.h - some lines of a session that grows by lines, or some records of a document,
 * without reading those before them (docs/formats/view.md).  Below, a line is also a record of a
 * document.
 *
 *   P1  The records in a part become nodes with the events, changes and times that they have in the
 *       whole; what links them, hashes and numbers, is of the part.
 *   P2  Lines keep their numbers also where pieces before them, or among them, were erased.
 *   P3  The cost depends on the part, and on the number of files of subagents, never on the length
 *       of the session.
 *   P4  Lines of a session that an earlier version began to archive are counted when it is opened:
 *       its bytes are read, a piece at a time, and not parsed.  How many lines an erased piece
 *       had is not known: it counts as none, as in the whole.
 */
#ifndef CX_STORES_SESSION_PART_H
#define CX_STORES_SESSION_PART_H

#include "stores/session_files.h"

#define CX_SESSION_PART_LINES CX_STEPS_PART
/* Lines before a part that are read for what its records refer to. */
#define CX_SESSION_PART_BEFORE 512u
/* All that is read for a part. */
#define CX_SESSION_PART_BYTES_MAX ((size_t)256 << 20)

/* Whether the session can be read in parts: it is one file of lines, or documents that are read as
 * such lines, or a document with a list of records, or a text, and its format allows it.  Of such a
 * document or text it is known once its records were counted. */
bool cx_session_files_have_parts(const cx_session_files *files);
/* How many lines, or records of a text (session_place.h), it has, once they were counted. */
uint64_t cx_session_files_lines(const cx_session_files *files);
/* Sets items[0]->lines where the archive does not say them (P4), and finds the places of a document
 * (session_items.h) or of a text (session_place.h); for the calls that follow, that of have_parts
 * too, as either may turn out to have none.  Memory is the arena's. */
CX_RESULT cx_session_files_count(cx_home *home, cx_session_files *files, cx_arena *arena,
                                 cx_err *err);

/*
 * In which line, from 0, the record is that "at:0:LINE" or "src:ID" names (of a document or a text
 * "at:0:INDEX", from 0); the latter is looked for in all of the file's lines.  *out_found false: in
 * none, or the name is another one.
 */
CX_RESULT cx_session_files_line(cx_home *home, const cx_session_files *files, cx_str name,
                                uint64_t *out_line, bool *out_found, cx_err *err);

/* The times that the records of a part are of; INT64_MIN, INT64_MAX = open. */
typedef struct cx_session_times {
    int64_t after_ns, until_ns;
} cx_session_times;

/*
 * Imports lines (of a text, records) `from` .. `from` + CX_SESSION_PART_LINES - 1 of the session's
 * own file, and those of its subagents' files that are of the same time.  CX_E_NOT_FOUND "NoPart";
 * CX_E_UNSUPPORTED "NoParts"; CX_E_LIMIT "U_LIMIT".
 */
CX_RESULT cx_session_files_import_part(cx_home *home, const cx_session_files *files, uint64_t from,
                                       const cx_alloc *alloc, cx_import_write write,
                                       void *write_arg, cx_session_times *out_times, cx_err *err);

#endif
