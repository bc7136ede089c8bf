/*
 * snapshot_parts.h - shared by snapshot.c and snapshot_repo.c.
 */
#ifndef CX_GIT_SNAPSHOT_PARTS_H
#define CX_GIT_SNAPSHOT_PARTS_H

#include "git/snapshot.h"

#define CX_BINARY_BYTES 8000 /* the prefix that D12 examines */

/* Fills in index, references, HEAD and the repository's own files. */
CX_RESULT cx_snapshot_repository(const cx_git *git, const cx_snapshot_options *options,
                                 cx_snapshot *snapshot, cx_err *err);

#endif
