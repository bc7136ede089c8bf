/*
 * checkout_update.h - updates a checkout to the commit that its branch has moved to, also after a
 * crash of the process that moved the branch (run.md §15).
 *
 * A branch and its checkout cannot move in one step.  The intended update is therefore written to
 * `cortex-follow` in the repository's git directory first, and removed when the checkout is
 * updated. A process that finds the file later completes the update.
 *
 * All functions are called under the lock of the work trees (cx_run_worktrees_lock).
 */
#ifndef CX_GIT_CHECKOUT_UPDATE_H
#define CX_GIT_CHECKOUT_UPDATE_H

#include "git/git.h"

typedef struct cx_checkout_update {
    cx_str ref; /* "refs/heads/main" */
    cx_oid from, to;
} cx_checkout_update;

/* Records the update durably; call it before the reference moves. */
CX_RESULT cx_checkout_update_begin(const cx_git *git, const cx_checkout_update *what, cx_err *err);
/* Removes the record: the checkout is updated, or the reference did not move. */
CX_RESULT cx_checkout_update_end(const cx_git *git, cx_err *err);
/* CX_E_NOT_FOUND when no update was recorded; CX_E_FORMAT when the file is not such a record.
 * *out_pending: the reference was moved as recorded and has not moved since; otherwise nothing is
 * left to do. */
CX_RESULT cx_checkout_update_find(const cx_git *git, cx_arena *arena, cx_checkout_update *out,
                                  bool *out_pending, cx_err *err);

/* Refreshes the stat data of the index: without it git treats a file that was only touched as
 * changed. */
CX_RESULT cx_checkout_refresh_index(const cx_git *checkout, cx_err *err);

/*
 * Updates one checkout, which must not be opened as hostile, from one commit to another. Local
 * changes that conflict are preserved: the update then fails with CX_E_FORMAT and git's message.
 */
CX_RESULT cx_checkout_update_apply(const cx_git *checkout, const cx_oid *from, const cx_oid *to,
                                   cx_err *err);

/*
 * Finds the checkout that has the branch checked out: one of the user's, never a work tree of a
 * run, where an agent may write anything. *out is NULL when there is none; the caller closes it.
 */
CX_RESULT cx_checkout_update_target(const cx_git *git, const char *runtime_root, cx_str ref,
                                    cx_arena *arena, cx_git **out, cx_err *err);

/*
 * Completes an update that a crashed process left, if there is one. *out_checkout is the checkout
 * that was updated, NULL when there was none. An update that fails stays recorded and is tried
 * again.
 */
CX_RESULT cx_checkout_update_resume(const cx_git *git, const char *runtime_root, cx_arena *arena,
                                    const char **out_checkout, cx_err *err);

#endif
