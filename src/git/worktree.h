/*
 * worktree.h - the work trees of runs (run.md §11): ROOT/worktrees/<run_id>/<task_id> with branch
 * cortex/<run_id>/<task_id> (P1), or ROOT/worktrees/<run_id> (P0, one serial task).
 *
 * Everything that changes the list of work trees happens under flock(<common
 * dir>/cortex-worktrees.lock).  Nothing is ever checked out in the main checkout.
 *
 * They are ordinary git work trees, but git does not create, list or remove them: it would read the
 * files of all of them, and an agent may write in some.
 *
 *   I1  The list of work trees changes under the lock alone, whichever process changes it.
 *   I2  A commit that evidence names stays reachable: a branch is deleted only when it was merged,
 *       or when another reference has its commit.
 *   I3  Git checks files out only into a folder that was just created, whose path no other process
 *       knows; nothing of an existing work tree is given to git.
 */
#ifndef CX_GIT_WORKTREE_H
#define CX_GIT_WORKTREE_H

#include "git/git.h"

typedef struct cx_worktree_options {
    const char *runtime_root; /* absolute */
    cx_str run_id;
    cx_str task_id;
    cx_str suffix;    /* ".test", ".review": an extra, detached work tree; may be empty */
    cx_oid commit;    /* what is checked out */
    bool serial;      /* P0 */
    uint64_t wait_ms; /* for the lock; 0 = 60 s */
} cx_worktree_options;

typedef struct cx_worktree {
    const char *path;     /* absolute; terminated */
    const char *relative; /* from the runtime root: worktree_ref.txt */
    cx_str branch;        /* "refs/heads/cortex/..", empty when detached */
    cx_git *git;          /* opened on it, as hostile */
} cx_worktree;

/* CX_E_EXISTS when the work tree exists already (P0: a second task); CX_E_NOT_FOUND when the commit
 * does not exist. Text lives in the arena. */
CX_RESULT cx_run_worktree_add(const cx_git *repo, const cx_worktree_options *options,
                              cx_arena *arena, cx_worktree *out, cx_err *err);

/* Recreates the files and the git directory as cx_run_worktree_add does, with the branch (empty =
 * detached) at `commit`; the caller has set the branch. All previous content is removed. */
CX_RESULT cx_run_worktree_renew(const cx_git *repo, const cx_git *worktree, cx_str branch,
                                const cx_oid *commit, cx_err *err);

/*
 * Removes the work tree. Its branch is deleted when `merged`; otherwise it becomes
 * refs/cortex/runs/<run_id>/<task_id>, so that evidence stays reachable (I2). Closes worktree->git.
 * A work tree that is absent already is no error.
 */
CX_RESULT cx_run_worktree_remove(const cx_git *repo, const cx_worktree_options *options,
                                 cx_worktree *worktree, bool merged, cx_err *err);
/* Takes the lock of I1 (cx_flock_release releases it); `wait_ms` 0 = 60 s. The functions above take
 * it themselves: a caller that holds it must not call them. */
CX_RESULT cx_run_worktrees_lock(const cx_git *repo, uint64_t wait_ms, cx_file *out, cx_err *err);

/* A task or run id as one component of a path and a reference: bytes that git forbids in references
 * are written %XX.  Data is NULL when out of memory. */
cx_str cx_run_ref_component(cx_str id, cx_arena *arena);

typedef struct cx_worktree_listed {
    cx_str path;    /* absolute; of a broken one the path of its git directory */
    cx_str git_dir; /* absolute; terminated */
    cx_str branch;  /* empty when detached */
    cx_oid head;    /* size 0: no commit yet, or unreadable */
    bool ours;      /* below ROOT/worktrees */
    bool of_a_run;  /* ours, or a name that runs with another runtime root use */
    bool prunable;  /* its folder is missing */
    bool broken;    /* its git directory does not name its folder */
    cx_str run_id;  /* of ours, as in the path */
} cx_worktree_listed;

/* Lists all work trees of the repository, the main checkout first, the others by path. Reads the
 * files itself, without following links or waiting for FIFOs. */
CX_RESULT cx_run_worktree_list(const cx_git *repo, const char *runtime_root, cx_arena *arena,
                               cx_worktree_listed **out, size_t *out_count, cx_err *err);
/* Removes a listed work tree of ours by force (an orphan); its branch is preserved as above. */
CX_RESULT cx_run_worktree_remove_orphan(const cx_git *repo, const char *runtime_root,
                                        const cx_worktree_listed *listed, cx_err *err);

/* What a crashed run leaves in addition to its work tree. */
typedef struct cx_worktree_leftover {
    cx_str name; /* "refs/heads/cortex/<run>/<task>", or "worktrees/cortex-<hash>" */
    bool branch; /* else a git directory that does not name its work tree */
    bool done;   /* retired, or removed */
    cx_str why;  /* why that failed; else empty */
} cx_worktree_leftover;

/* Whether a run may still need its branches. */
typedef bool cx_worktree_is_needed(void *arg, cx_str run_id);

/* Branches of runs that are not needed and that no work tree has checked out, and git directories
 * as above; with `apply` they are removed, and a branch's commits stay reachable as above. */
CX_RESULT cx_run_worktree_leftovers(const cx_git *repo, const char *runtime_root,
                                    cx_worktree_is_needed *is_needed, void *needed_arg, bool apply,
                                    cx_arena *arena, cx_worktree_leftover **out, size_t *out_count,
                                    cx_err *err);

#endif
