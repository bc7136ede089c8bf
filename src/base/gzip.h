/*
 * gzip.h - gzip (RFC 1952) unpacked in memory, never to more than the caller allows.
 *
 * zlib is loaded when it is first needed (base/library.h).  Thread-safe.
 */
#ifndef CX_BASE_GZIP_H
#define CX_BASE_GZIP_H

#include "base/buf.h"

/*
 * Appends what `packed` holds, all its members one behind the other.  CX_E_LIMIT "U_LIMIT" when
 * that is more than `max_bytes`, found out before more than that was written; CX_E_SYNTAX "U_GZIP"
 * when it is no gzip, is cut short, or its checksum is wrong; CX_E_UNSUPPORTED "LibraryMissing".
 * On an error the buffer is as it was.
 */
CX_RESULT cx_gzip_unpack(cx_bytes packed, size_t max_bytes, cx_buf *out, cx_err *err);

#endif
