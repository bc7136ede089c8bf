/*
 * archived_internal.h - what the two files of the archives share.
 */
#ifndef CX_LOG_ARCHIVED_INTERNAL_H
#define CX_LOG_ARCHIVED_INTERNAL_H

#include <stdatomic.h>

#include "log/archive_file.h"
#include "log/archived.h"

typedef struct cx_archive_change {
    uint32_t block;
    uint8_t *bytes; /* CX_ARCHIVE_BLOCK */
} cx_archive_change;

/* One opening of an archived segment. */
typedef struct cx_archive_opening {
    char path[CX_ARCHIVE_PATH_SIZE]; /* of the archive */
    bool writable;
    cx_lock lock; /* guards what follows */
    cx_archive archive;
    cx_buf scratch;
    uint32_t held; /* the block in `block`, or none */
    uint8_t *block;
    CX_VEC(cx_archive_change) changes;
} cx_archive_opening;

struct cx_archives {
    cx_io io;
    const cx_io *under;
    const cx_alloc *alloc;
    const char *folder;
    const char *_Atomic elsewhere; /* the other folder, "" = there is none; one of `known`, or "" */
    cx_lock lock;                  /* guards what follows */
    CX_VEC(char *) known;          /* that were the other folder, to be freed at the end */
    CX_VEC(cx_archive_opening *) openings;
};

/* --- archived_folder.c --------------------------------------------------------------------- */

/* folder/name, and the ending of archives; false when it does not fit. */
bool cx_archive_path(char out[CX_ARCHIVE_PATH_SIZE], const char *folder, const char *name,
                     bool archived);
/* The file that an archive is written to before it gets its name. */
void cx_archive_working_path(char out[CX_ARCHIVE_PATH_SIZE], const char *path);
/* What stands after the last slash. */
const char *cx_archive_last_name(const char *path);
/* Gives a working file its name, durably. */
CX_RESULT cx_archive_name(const cx_archives *archives, const char *working, const char *path,
                          cx_err *err);
/* Reads the file `archive` again. */
CX_RESULT cx_archives_read_elsewhere(cx_archives *archives, cx_err *err);
/* Removes the archives of a segment, overwritten; that there is none is no error.  0 or -errno. */
int cx_archives_remove(const cx_archives *archives, const char *name);
/* Lists the log's folder, each segment once. */
int cx_archives_list(cx_archives *archives, cx_io_name *name, void *arg);

#endif
