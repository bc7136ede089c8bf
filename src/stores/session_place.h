/*
 * session_place.h - archived sessions whose text is read by places (import/place.h): each piece has
 * the place before it, so some records are read without those before them.
 *
 *   L1  Places that were recorded are not believed alone: what is read from one must lead to the
 *       next, also from the piece before a part, and in the last piece.  Where it does not, all are
 *       made again from the bytes.
 *   L2  Where a piece was erased, reading goes on from the place after it, in a part and in the
 *       whole, so that records keep what they are, and their numbers.
 *   L3  A session that an earlier version began to archive has no places: they are made when it is
 *       opened, and what was erased counts as none, as in the whole.
 */
#ifndef CX_STORES_SESSION_PLACE_H
#define CX_STORES_SESSION_PLACE_H

#include "stores/session_files.h"

/* Whether the session is a text that is read by places. */
bool cx_session_files_are_text(const cx_session_files *files);
/* Sets files->end, and places of the pieces where none were recorded; memory is the arena's. */
CX_RESULT cx_session_places_find(cx_home *home, cx_session_files *files, cx_arena *arena,
                                 cx_err *err);
/* Records `from` .. `until` - 1; the errors of cx_session_files_import_part. */
CX_RESULT cx_session_places_import(cx_home *home, const cx_session_files *files, uint64_t from,
                                   uint64_t until, const cx_alloc *alloc, cx_import_write write,
                                   void *write_arg, cx_err *err);

/* Where reading goes on after what was erased (L2), in a session that is read whole. */
typedef struct cx_session_gaps {
    cx_import_window window;
    cx_import_place end;
} cx_session_gaps;
/*
 * Of a session of whose pieces some were erased: its bytes, appended to `out`, and the window to
 * import them with.  *out_found false: its places cannot be used, and nothing is appended.
 */
CX_RESULT cx_session_places_gaps(cx_home *home, const cx_session_files *files, cx_arena *arena,
                                 cx_buf *out, cx_session_gaps *gaps, bool *out_found, cx_err *err);

#endif
