/*
 * gzip.h - gzip (RFC 1952) and zlib streams (RFC 1950) in memory, with a limit on the unpacked
 * size.
 *
 * zlib is loaded when it is first needed (os/library.h).  Thread-safe.
 */
#ifndef CX_OS_GZIP_H
#define CX_OS_GZIP_H

#include "base/api.h"

/*
 * Appends the unpacked contents of all members.  CX_E_LIMIT "U_LIMIT" when they exceed `max_bytes`,
 * detected before more is written; CX_E_SYNTAX "U_GZIP" when the input is not gzip, is truncated,
 * or has a wrong checksum; CX_E_UNSUPPORTED "LibraryMissing".  On an error `out` is unchanged.
 */
CX_RESULT cx_gzip_unpack(cx_bytes packed, size_t max_bytes, cx_buf *out, cx_err *err);

/* The same for one zlib stream with no trailing bytes. */
CX_RESULT cx_zlib_unpack(cx_bytes packed, size_t max_bytes, cx_buf *out, cx_err *err);
/* Appends `plain` compressed as a zlib stream (level 1, for speed).  CX_E_LIMIT above 1 GiB. */
CX_RESULT cx_zlib_pack(cx_bytes plain, cx_buf *out, cx_err *err);

#endif
