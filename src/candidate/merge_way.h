/*
 * merge_way.h - what an update of a checkout would destroy although git says that nothing is lost
 * (run.md §15).
 */
#ifndef CX_CANDIDATE_MERGE_WAY_H
#define CX_CANDIDATE_MERGE_WAY_H

#include "git/api.h"

/* The first path of the checkout that git ignores and that `read-tree -m -u` between these commits
 * would overwrite or remove; empty: there is none.  In the arena. */
CX_RESULT cx_merge_find_in_way(const cx_git *checkout, const cx_oid *from, const cx_oid *to,
                               cx_arena *arena, cx_str *out, cx_err *err);

#endif
