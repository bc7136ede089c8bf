/*
 * archive.h - a bundle as one file: a ustar archive compressed with zstd
 * (docs/formats/run-archive.md).  The same bundle gives the same archive, byte for byte, with the
 * same version of libzstd.  Reading is cx_run_bundle_open's.
 */
#ifndef CX_BUNDLE_ARCHIVE_H
#define CX_BUNDLE_ARCHIVE_H

#include "bundle/bundle.h"

#define CX_RUN_ARCHIVE_BYTES_MAX ((size_t)1 << 30) /* of the archive before compression */

/*
 * Appends the archive of a bundle.  CX_E_FORMAT when it holds what no bundle may (links, special
 * files), CX_E_LIMIT when it is too large, CX_E_UNSUPPORTED when libzstd is not there.
 */
CX_RESULT cx_run_archive_write(cx_run_bundle *bundle, cx_buf *out, cx_err *err);

#endif
