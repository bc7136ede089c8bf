/*
 * zstd.h - zstd (RFC 8878) of whole buffers, loaded when it is first needed.
 *
 * Thread-safe.  CX_E_UNSUPPORTED "LibraryMissing" where libzstd is not installed.
 */
#ifndef CX_OS_ZSTD_H
#define CX_OS_ZSTD_H

#include "base/api.h"

/* Whether it can be loaded. */
CX_RESULT cx_zstd_load(cx_err *err);
/* Appends one frame, which names its size.  `level` 1 to 19; `checked`: with a checksum of the
 * contents. */
CX_RESULT cx_zstd_pack(cx_bytes from, int level, bool checked, cx_buf *out, cx_err *err);
/* What the first frame says that it unpacks to; CX_E_FORMAT when it is no frame or does not say
 * it. */
CX_RESULT cx_zstd_content_size(cx_bytes packed, uint64_t *out, cx_err *err);
/* Exactly `size` bytes to `to`; CX_E_FORMAT when there are more or fewer, or the frames are
 * damaged. */
CX_RESULT cx_zstd_unpack(cx_bytes packed, void *to, size_t size, cx_err *err);

#endif
