/*
 * external_internal.h - the two kinds of branches of external.h.
 */
#ifndef CX_SERVER_EXTERNAL_INTERNAL_H
#define CX_SERVER_EXTERNAL_INTERNAL_H

#include "server/feed/external.h"

bool cx_external_is_session(cx_str branch);
CX_RESULT cx_external_session_lines(cx_home *home, const cx_external_options *wanted, cx_buf *out,
                                    cx_err *err);

/*
 * What the hooks of the session with this actor recorded (external_live.c).  `alone`: without a
 * transcript; else its nodes are in `out` from `transcript_from` on, and those of decisions are
 * appended.  Only entries `from` .. `until` - 1 of its journal are read.
 */
typedef struct cx_live_told {
    cx_str actor;
    bool alone;
    size_t transcript_from;
    size_t max_bytes; /* of nodes; 0 = no limit */
    uint64_t from, until;
} cx_live_told;
CX_RESULT cx_external_live_lines(cx_home *home, const cx_live_told *told, cx_buf *out, cx_err *err);
/* The entries of a journal that were created after the one time and not after the other. */
CX_RESULT cx_external_live_between(cx_home *home, cx_live_told *told, int64_t after_ns,
                                   int64_t until_ns, cx_err *err);

#endif
