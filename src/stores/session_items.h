/*
 * session_items.h - where the records of an archived document are in its bytes, so that some of
 * them are read without the others (docs/formats/sessions.md §5).
 *
 *     HOME/places/<session id>    made of the archived bytes alone: when `cortex watch` archived
 *                                 the document, or when it is opened first; made again when it is
 *                                 missing, damaged, or found to be of other bytes
 *
 *     64 hex digits, LF           SHA-256 of what follows
 *     {"begin","end"              the list of records, with its brackets
 *      "bytes","seq","session"    whose they are: its size, the entry of its first piece, its id
 *      "chunk","chunks":[hex..]   SHA-256 of each `chunk` bytes of the document
 *      "format":"cortex-session-places-1"
 *      "items","rows":[offset..]  how many records there are, and where each one whose number is
 *      "stride"}                  divisible by `stride` begins
 *
 *   L1  Bytes are used only if their chunk has the hash that it had when all of the document was
 *       read; so what is between two places is what was between them then.
 *   L2  Between two places are exactly `stride` records, or those that are left; else all places
 *       are wrong (CX_E_CONFLICT "PlacesWrong").
 *   L3  A chunk of which something was erased has no records: those of the others keep their
 *       numbers.
 */
#ifndef CX_STORES_SESSION_ITEMS_H
#define CX_STORES_SESSION_ITEMS_H

#include "import/api.h"
#include "stores/session_index.h"

typedef struct cx_session_items {
    uint64_t begin, end, items;
    const uint64_t *rows;
    const cx_digest *chunks;
    size_t row_count, chunk_count;
} cx_session_items;

/*
 * The places of a document, in the arena; NULL in *out when it has none: it cannot be read as a
 * whole, is longer than `max_bytes`, or was erased.  `again`: those on the disk are wrong.
 */
CX_RESULT cx_session_items_open(cx_home *home, const cx_recorded_session *session, size_t max_bytes,
                                bool again, cx_arena *arena, const cx_session_items **out,
                                cx_err *err);
/* Removes the files of a session, if there are some. */
void cx_session_items_remove(cx_home *home, const uint8_t *id);

/*
 * A file of that folder, whose name is the id with `ending`.  `text` begins with
 * CX_SESSION_ITEMS_HEAD bytes of anything, which become the checksum of those after them and a
 * line feed.  Derived, and made again when it is missing: that it cannot be written is no error.
 */
#define CX_SESSION_ITEMS_HEAD 65u
void cx_session_items_save(cx_home *home, const uint8_t *id, const char *ending, cx_buf *text);
/* What follows the checksum, in `text`; false when there is none, or it is damaged. */
bool cx_session_items_load(cx_home *home, const uint8_t *id, const char *ending, cx_buf *text,
                           cx_str *out);

/* A number of records, and of bytes from the first one to the last; at least. */
uint64_t cx_session_items_size(const cx_session_items *places, uint64_t from, uint64_t until);

/* Appends records from .. until - 1 as lines, an empty one where it was erased. */
CX_RESULT cx_session_items_read(cx_home *home, const cx_recorded_session *session,
                                const cx_session_items *places, uint64_t from, uint64_t until,
                                cx_buf *out, cx_err *err);
/* Appends the document with an empty list in the place of its records.  CX_E_FORMAT "Erased". */
CX_RESULT cx_session_items_rest(cx_home *home, const cx_recorded_session *session,
                                const cx_session_items *places, cx_buf *out, cx_err *err);

#endif
