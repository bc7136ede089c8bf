/*
 * gzip.h - gzip (RFC 1952) and zlib streams (RFC 1950) in memory, never unpacked to more than the
 * caller allows.
 *
 * zlib is loaded when it is first needed (os/library.h).  Thread-safe.
 */
#ifndef CX_OS_GZIP_H
#define CX_OS_GZIP_H

#include "base/api.h"

/*
 * Appends what `packed` holds, all its members one behind the other.  CX_E_LIMIT "U_LIMIT" when
 * that is more than `max_bytes`, found out before more than that was written; CX_E_SYNTAX "U_GZIP"
 * when it is no gzip, is cut short, or its checksum is wrong; CX_E_UNSUPPORTED "LibraryMissing".
 * On an error the buffer is as it was.
 */
CX_RESULT cx_gzip_unpack(cx_bytes packed, size_t max_bytes, cx_buf *out, cx_err *err);

/* The same for one zlib stream and nothing behind it. */
CX_RESULT cx_zlib_unpack(cx_bytes packed, size_t max_bytes, cx_buf *out, cx_err *err);
/* Appends a zlib stream that holds `plain`, packed for speed (level 1).  CX_E_LIMIT above 1 GiB. */
CX_RESULT cx_zlib_pack(cx_bytes plain, cx_buf *out, cx_err *err);

#endif
