/*
 * session_told.h - what records of a growing session tell again, so that some lines are read
 * without those before them (docs/formats/sessions.md §6).
 *
 *     HOME/places/<session id>        made of the archived lines alone: by `cortex watch`, or when
 *                                     the session is opened first; it goes on where it ended when
 *                                     the session has grown, and is made again when it is missing
 *                                     or damaged
 *     64 hex digits, LF               SHA-256 of what follows
 *     {"bytes","lines"                how much was read, in whole lines
 *      "format":"cortex-session-told-1"
 *      "seq","session"}, LF           whose it is: the entry of its first piece, its id
 *     rows                            of each question of the importer that was answered with yes
 *                                     (cx_import_options.was_told), in order: its line less that of
 *                                     the row before, and its number in the line, in groups of
 *                                     seven bits, the least first, 0x80 = there are more
 *
 *     HOME/places/<session id>.ids    64 hex digits, LF: likewise; then the first 16 bytes of
 *                                     SHA-256(space and id) of all that was told, sorted; read when
 *                                     the session has grown
 */
#ifndef CX_STORES_SESSION_TOLD_H
#define CX_STORES_SESSION_TOLD_H

#include "import/api.h"
#include "stores/session_index.h"

#define CX_SESSION_TOLD_IDS ".ids"

typedef struct cx_session_told {
    uint64_t bytes, lines;
    cx_bytes rows;
} cx_session_told;

/* Appends the piece that begins at byte `at` of a session, with as many empty lines as it had when
 * it was erased. */
typedef cx_status (*cx_session_told_read)(void *arg, uint64_t at, uint64_t *out_end, cx_buf *out,
                                          cx_err *err);

/*
 * What all of its lines tell again; memory is the arena's.  NULL in *out when it cannot be read in
 * parts: it is no file of lines (yet).
 */
CX_RESULT cx_session_told_open(cx_home *home, const cx_recorded_session *session,
                               cx_session_told_read read, void *read_arg, cx_arena *arena,
                               const cx_session_told **out, cx_err *err);

/* Answers to the questions of some lines. */
typedef struct cx_session_answers {
    CX_VEC(uint64_t) lines; /* 1-based, in order; a line that is there twice has two answers */
    CX_VEC(uint32_t) questions;
} cx_session_answers;
/* Those of the first `head` lines, and of lines from .. until - 1 (from 0). */
CX_RESULT cx_session_told_answers(const cx_session_told *told, uint64_t head, uint64_t from,
                                  uint64_t until, cx_session_answers *out, cx_err *err);
void cx_session_answers_done(cx_session_answers *answers);
/* cx_import_options.was_told, with answers as its argument. */
bool cx_session_was_told(void *arg, uint64_t line, uint32_t question, char space, cx_str id,
                         bool known);

#endif
