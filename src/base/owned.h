/*
 * owned.h - giving a buffer's bytes to a caller of the library.
 */
#ifndef CX_BASE_OWNED_H
#define CX_BASE_OWNED_H

#include "base/buf.h"

/* Moves the buffer's bytes; the buffer is empty afterwards, also when this fails. */
CX_RESULT cx_owned_take(cx_buf *from, cx_owned *out, cx_err *err);

#endif
