/*
 * bundle_internal.h - a bundle being read: a list of files, wherever their bytes are.
 */
#ifndef CX_BUNDLE_BUNDLE_INTERNAL_H
#define CX_BUNDLE_BUNDLE_INTERNAL_H

#include "bundle/bundle.h"

typedef struct cx_run_contents {
    cx_bytes bytes;   /* when `loaded` */
    cx_digest digest; /* when `hashed` */
    bool loaded, hashed;
} cx_run_contents;

struct cx_run_bundle {
    const cx_io *io;
    const cx_alloc *alloc;
    cx_arena arena;
    cx_file folder; /* CX_FILE_NONE: an archive, all of whose files are loaded */
    cx_str name;
    cx_buf unpacked; /* of an archive */
    cx_buf scratch;
    CX_VEC(cx_run_entry) entries; /* sorted by path once it is open */
    cx_run_contents *contents;    /* next to them */
};

/* An empty bundle over no folder; NULL when out of memory.  `io` and `alloc` may be NULL. */
cx_run_bundle *cx_run_bundle_make(const cx_io *io, const cx_alloc *alloc);
/* Relative, no component that is empty, "." or "..", no control characters, within the limits. */
bool cx_run_bundle_path_fits(cx_str path);
/* Sorts the entries and makes room for their contents. */
CX_RESULT cx_run_bundle_sort(cx_run_bundle *bundle, cx_err *err);
/* Lists what the unpacked archive (ustar) holds; see docs/formats/run-archive.md. */
CX_RESULT cx_run_archive_list(cx_run_bundle *bundle, cx_err *err);
/* Decompresses into `out`. */
CX_RESULT cx_run_archive_unpack(cx_bytes archive, cx_buf *out, cx_err *err);

#endif
