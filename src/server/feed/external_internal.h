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
 * appended.
 */
CX_RESULT cx_external_live_lines(cx_home *home, cx_str actor, size_t transcript_from, bool alone,
                                 size_t max_bytes, cx_buf *out, cx_err *err);

#endif
