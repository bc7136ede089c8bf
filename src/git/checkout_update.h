/*
 * follow.h - a checkout comes to where its branch has moved, also when the process that moved the
 * branch dies before it has.
 *
 * A branch and its checkout cannot move in one step.  What is about to happen is therefore written
 * to `cortex-follow` in the repository's own folder first, and removed when the checkout has
 * followed; whoever finds it later ends what was begun.
 *
 * All of it under the lock of the work trees (cx_run_worktrees_lock).
 */
#ifndef CX_GIT_CHECKOUT_UPDATE_H
#define CX_GIT_CHECKOUT_UPDATE_H

#include "git/git.h"

typedef struct cx_checkout_update {
    cx_str ref; /* "refs/heads/main" */
    cx_oid from, to;
} cx_checkout_update;

/* On the disk when it returns: before the reference moves. */
CX_RESULT cx_run_begin_update(const cx_git *git, const cx_checkout_update *what, cx_err *err);
/* Forgets it: the checkout has followed, or the reference did not move. */
CX_RESULT cx_run_end_update(const cx_git *git, cx_err *err);
/* CX_E_NOT_FOUND when nothing was begun; CX_E_FORMAT when the file is none of ours.  *out_behind:
 * the reference did move and has not moved since; otherwise there is nothing left to do. */
CX_RESULT cx_run_find_update(const cx_git *git, cx_arena *arena, cx_checkout_update *out,
                             bool *out_pending, cx_err *err);

/* Looks again at files whose times are new: without it git takes a file that was only touched for
 * one that was changed. */
CX_RESULT cx_run_refresh_index(const cx_git *checkout, cx_err *err);

/*
 * Brings one checkout, opened as no hostile one, from commit to commit; changes that are in the way
 * are kept, and refuse it with CX_E_FORMAT and what git says.
 */
CX_RESULT cx_run_update(const cx_git *checkout, const cx_oid *from, const cx_oid *to, cx_err *err);

/*
 * Finds the checkout that has the branch: one of the user's, never a work tree of a run, in which
 * an agent may write what it likes.  *out NULL when there is none; to be closed.
 */
CX_RESULT cx_run_update_checkout(const cx_git *git, const char *runtime_root, cx_str ref,
                                 cx_arena *arena, cx_git **out, cx_err *err);

/*
 * Ends what a dead process began, if there is something.  *out_checkout is the checkout that was
 * behind and has followed, NULL when there was none.  What cannot follow stays to be tried again.
 */
CX_RESULT cx_run_resume_update(const cx_git *git, const char *runtime_root, cx_arena *arena,
                               const char **out_checkout, cx_err *err);

#endif
