/*
 * tests_untouched.h - whether the commands of a contract find the candidate's own files (run.md
 * §12): what a checkout held before the first command, compared file by file.
 */
#ifndef CX_CANDIDATE_TESTS_UNTOUCHED_H
#define CX_CANDIDATE_TESTS_UNTOUCHED_H

#include "git/api.h"

/* The first file, link or folder of `before` that is not what it was, or `.git`, quoted as git
 * quotes paths, in the arena; empty: none.  What came in addition does not count.  Nothing that a
 * command left is followed or waited for. */
CX_RESULT cx_tests_find_touched(const char *checkout, const cx_snapshot *before, cx_arena *arena,
                                cx_str *out, cx_err *err);

#endif
