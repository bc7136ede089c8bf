/*
 * archived.h - segments that were compressed or moved, read and erased in as if they were where
 * they were (docs/formats/log.md §7).
 *
 * A cx_io above another: all else passes through to that.  A name `N.seg` that is not there is
 * answered from `N.seg.zst`, in the log's folder or in the one that the file `archive` names.
 * Readers see the bytes of the segment.  What is written to one is kept in memory until a sync,
 * which makes the archive again and destroys the old one.  A block that cannot be unpacked reads as
 * zeros, and an archive without a correct table as an empty file: what expects a frame there says
 * what is damaged, and where.
 */
#ifndef CX_LOG_ARCHIVED_H
#define CX_LOG_ARCHIVED_H

#include "base/api.h"

#define CX_ARCHIVE_PATH_SIZE 4096

typedef struct cx_archives cx_archives;

/* `folder`, the log's, and `under` are borrowed. */
CX_RESULT cx_archives_new(const char *folder, const cx_io *under, const cx_alloc *alloc,
                          cx_archives **out, cx_err *err);
/* Nothing may be open.  NULL is accepted. */
void cx_archives_free(cx_archives *archives);

/* The io of the log, and the one below it; they live as long as `archives`. */
const cx_io *cx_archives_io(const cx_archives *archives);
const cx_io *cx_archives_under(const cx_archives *archives);

/*
 * Reads the file `archive`.  CX_E_IO "ArchiveMissing" when the folder that it names cannot
 * be listed, CX_E_UNSUPPORTED when something is archived and zstd is not installed.
 */
CX_RESULT cx_archives_find(cx_archives *archives, cx_err *err);

/* The other folder, "" when there is none. */
const char *cx_archives_elsewhere(const cx_archives *archives);
/*
 * From now on archives are written to that folder, which is noted in the file `archive`; "" = the
 * log's own.  CX_E_USAGE when the present one is another and has archives.
 */
CX_RESULT cx_archives_move(cx_archives *archives, const char *folder, cx_err *err);

typedef struct cx_archive_sizes {
    uint64_t unpacked; /* of the segment */
    uint64_t packed;   /* of the archive's file */
    bool elsewhere;    /* in the other folder */
} cx_archive_sizes;

/* Of the archive of segment `name` ("000007.seg"); CX_E_NOT_FOUND when there is none. */
CX_RESULT cx_archives_sizes(cx_archives *archives, const char *name, cx_archive_sizes *out,
                            cx_err *err);
/* Asked before each block; false: stop. */
typedef struct cx_archive_pace {
    bool (*go_on)(void *arg);
    void *arg;
} cx_archive_pace;

/*
 * An archive is made in two steps.  Packing writes the working file `packing`, syncs it, and
 * compares what it unpacks to with the segment; nothing else is touched, so others may read
 * meanwhile, and erase in other segments.  Finishing gives the file its name, durably, and only
 * then removes the segment, whose bytes are overwritten.
 */
CX_RESULT cx_archives_pack(cx_archives *archives, const char *name, const cx_archive_pace *pace,
                           cx_archive_sizes *out, bool *out_stopped, cx_err *err);
CX_RESULT cx_archives_finish(cx_archives *archives, const char *name, cx_err *err);
/*
 * Overwrites and removes the working files of calls that were stopped or interrupted: they are
 * copies of what may be erased.  That there are none is no error.
 */
CX_RESULT cx_archives_discard(cx_archives *archives, cx_err *err);
/* An archive becomes a segment again; compared, named and removed in the same order. */
CX_RESULT cx_archives_undo(cx_archives *archives, const char *name, cx_archive_sizes *out,
                           cx_err *err);

#endif
