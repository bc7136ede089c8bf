/*
 * session_list.h - the sessions of a data directory in the order of their latest entry, kept up to
 * date from the log.  Thread-safe.
 *
 * The first use reads the record of each session once; later uses read only what was written
 * meanwhile, so that a list does not cost more the more journals there are.  Only the newest
 * CX_SESSION_LIST_MAX are listed; older ones can still be asked for by name.
 */
#ifndef CX_SERVER_SESSION_LIST_H
#define CX_SERVER_SESSION_LIST_H

#include "live/api.h"

#define CX_SESSION_LIST_MAX 10000

typedef struct cx_session_list cx_session_list;

/* Reads nothing yet; `home` outlives it. */
CX_RESULT cx_session_list_open(cx_home *home, const cx_alloc *alloc, cx_session_list **out,
                               cx_err *err);
void cx_session_list_close(cx_session_list *list); /* NULL is fine */

typedef struct cx_session_page {
    const cx_live_session *items;
    size_t count;
    uint64_t total; /* that are listed at all */
    bool more;
} cx_session_page;

/* Those after the session `after` with its time `after_ns` (data NULL: from the newest on);
 * `running`: without those that ended.  Memory from the arena. */
CX_RESULT cx_session_list_page(cx_session_list *list, cx_str after, int64_t after_ns, bool running,
                               size_t limit, cx_arena *arena, cx_session_page *out, cx_err *err);
/* One by its actor, its id, or the first digits (4 or more) of its id.  CX_E_NOT_FOUND,
 * CX_E_CONFLICT "Ambiguous". */
CX_RESULT cx_session_list_find(cx_session_list *list, cx_str name, cx_arena *arena,
                               cx_live_session *out, cx_err *err);

#endif
