/*
 * owned.h - transfers a buffer's bytes to a caller of the library.
 */
#ifndef CX_BASE_OWNED_H
#define CX_BASE_OWNED_H

#include "base/buf.h"

/* Moves the buffer's bytes to *out; the buffer is empty afterwards, also on failure
 * (CX_E_NOMEM). */
CX_RESULT cx_owned_from_buf(cx_buf *from, cx_owned *out, cx_err *err);

#endif
