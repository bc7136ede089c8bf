/*
 * show.h - sessions and their entries as JSON, for the command line and the server
 * (docs/formats/live.md §9.1).
 */
#ifndef CX_LIVE_SHOW_H
#define CX_LIVE_SHOW_H

#include "live/session.h"

#define CX_LIVE_SHOWN_MAX 500                     /* entries in an answer */
#define CX_LIVE_SHOWN_INPUT_MAX ((size_t)4 << 10) /* bytes of an input that is shown */
#define CX_LIVE_SHOWN_RESULTS_AFTER 64            /* a result is looked for this far on */

/* Members of a session; `object` stays open. */
void cx_live_session_put(cx_json_list *object, const cx_live_session *session);

typedef struct cx_live_range {
    uint64_t before; /* entries before this one; UINT64_MAX = from the newest */
    size_t limit;    /* 1 .. CX_LIVE_SHOWN_MAX */
} cx_live_range;

/*
 * Entries of a session, newest first, as {approved_by, erased, kind, payload, result, seq, time}.
 * A decision carries the result of its call, and who approved it.  `kind` is without "live.";
 * an input longer than CX_LIVE_SHOWN_INPUT_MAX is null.  `*out_next`: `before` of the older ones,
 * 0 = there are none.  Memory from the list's arena.
 */
CX_RESULT cx_live_entries_add(cx_home *home, cx_str actor, const cx_live_range *range,
                              cx_json_list *array, uint64_t *out_next, cx_err *err);
/* What waits for a person, oldest first: {dangerous, effects, input, input_sha256, rule, seq,
 * text, time, tool, why}.  `dangerous`: something forbids it, and only the mode `ask` asks. */
CX_RESULT cx_live_waiting_add(cx_home *home, cx_str actor, cx_json_list *array, cx_err *err);
/* The policy as it holds now, limits included; null when none could be read. */
CX_RESULT cx_live_policy_put(cx_home *home, cx_str actor, cx_json_list *object, const char *name,
                             cx_err *err);

#endif
