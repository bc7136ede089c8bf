/*
 * foreign_internal.h - the two kinds of branches of foreign.h.
 */
#ifndef CX_SERVER_FOREIGN_INTERNAL_H
#define CX_SERVER_FOREIGN_INTERNAL_H

#include "server/feed/foreign.h"

bool cx_foreign_is_session(cx_str branch);
CX_RESULT cx_foreign_session_lines(cx_home *home, const cx_foreign_options *wanted, cx_buf *out,
                                   cx_err *err);

#endif
