/*
 * recover_parts.h - the parts of a split run in crash recovery; shared by recover.c and
 * recover_parts.c.
 */
#ifndef CX_GOVERNOR_RECOVER_PARTS_H
#define CX_GOVERNOR_RECOVER_PARTS_H

#include "bundle/api.h"

/*
 * The tasks that `whole` was split into, in the order of their first events, for the manifest;
 * `out` has room for every task of the projection.  Before the files are hashed: it restores the
 * copies of their patches.  What it finds lives in the arena and the projection.
 */
CX_RESULT cx_run_recover_parts(cx_run *run, const cx_run_projection *projection, cx_str whole,
                               cx_arena *arena, cx_run_manifest_task *out, size_t *out_count,
                               cx_err *err);

#endif
