/*
 * worktree.h - the work trees of runs (run.md §11): ROOT/worktrees/<run_id>/<task_id> with branch
 * cortex/<run_id>/<task_id> (P1), or ROOT/worktrees/<run_id> (P0, one serial task).
 *
 * Everything that changes the list of work trees happens under flock(<common
 * dir>/cortex-worktrees.lock).  Nothing is ever checked out in the main checkout.
 *
 * They are work trees of git like any other, but git is not asked to make, list or remove them: it
 * would read the files of all of them, and an agent may write in some.
 */
#ifndef CX_GIT_WORKTREE_H
#define CX_GIT_WORKTREE_H

#include "git/git.h"

typedef struct cx_worktree_options {
    const char *runtime_root; /* absolute */
    cx_str run_id;
    cx_str task_id;
    cx_str suffix; /* ".test", ".review": a second one beside the task's, detached; may be empty */
    cx_oid commit; /* what is checked out */
    bool serial;   /* P0 */
    uint64_t wait_ms; /* for the lock; 0 = 60 s */
} cx_worktree_options;

typedef struct cx_worktree {
    const char *path;     /* absolute; terminated */
    const char *relative; /* from the runtime root: worktree_ref.txt */
    cx_str branch;        /* "refs/heads/cortex/..", empty when detached */
    cx_git *git;          /* opened on it, as hostile */
} cx_worktree;

/* CX_E_EXISTS when there is one already (P0: a second task); CX_E_NOT_FOUND when the commit is not
 * there.  Text lives in the arena. */
CX_RESULT cx_run_worktree_add(const cx_git *repo, const cx_worktree_options *options,
                              cx_arena *arena, cx_worktree *out, cx_err *err);

/* Makes its files and its git directory anew, as cx_run_worktree_add does, with the branch (empty =
 * detached) at `commit`; the branch itself is set already.  What was there goes, whatever it is. */
CX_RESULT cx_run_worktree_renew(const cx_git *repo, const cx_git *worktree, cx_str branch,
                                const cx_oid *commit, cx_err *err);

/*
 * Removes the work tree.  Its branch is deleted when `merged`; otherwise it becomes
 * refs/cortex/runs/<run_id>/<task_id>, so that evidence stays reachable.  Closes worktree->git.
 * What is gone already is fine.
 */
CX_RESULT cx_run_worktree_remove(const cx_git *repo, const cx_worktree_options *options,
                                 cx_worktree *worktree, bool merged, cx_err *err);
/* The lock of everything that changes work trees (cx_flock_release gives it back); `wait_ms` 0 = 60
 * s. Not to be taken by who calls one of the functions above. */
CX_RESULT cx_run_worktrees_lock(const cx_git *repo, uint64_t wait_ms, cx_file *out, cx_err *err);

/* A task or run id as one component of a path and a reference: bytes that git refuses there are
 * written %XX.  Data is NULL when out of memory. */
cx_str cx_run_ref_component(cx_str id, cx_arena *arena);

typedef struct cx_worktree_listed {
    cx_str path;    /* absolute; of a broken one its git directory's */
    cx_str git_dir; /* absolute; terminated */
    cx_str branch;  /* empty when detached */
    cx_oid head;    /* size 0: no commit yet, or it cannot be read */
    bool ours;      /* below ROOT/worktrees */
    bool of_a_run;  /* ours, or named as runs with another runtime root name theirs */
    bool prunable;  /* its folder is gone */
    bool broken;    /* its git directory does not say where it is */
    cx_str run_id;  /* of ours, as in the path */
} cx_worktree_listed;

/* All of the repository's, the main checkout first, the others by path.  Read by us: no file is
 * followed or waited for. */
CX_RESULT cx_run_worktree_list(const cx_git *repo, const char *runtime_root, cx_arena *arena,
                               cx_worktree_listed **out, size_t *out_count, cx_err *err);
/* Orphans: a listed one of ours by force, its branch kept as above. */
CX_RESULT cx_run_worktree_drop(const cx_git *repo, const char *runtime_root,
                               const cx_worktree_listed *listed, cx_err *err);

/* What a run that died half way leaves besides its work tree. */
typedef struct cx_worktree_stray {
    cx_str name; /* "refs/heads/cortex/<run>/<task>", or "worktrees/cortex-<hash>" */
    bool branch; /* else a git directory that does not say where its work tree is */
    bool done;   /* ended, or removed */
    cx_str why;  /* what kept it from that; empty */
} cx_worktree_stray;

/* Whether a run may still want its own. */
typedef bool cx_worktree_is_needed(void *arg, cx_str run_id);

/* Branches of runs that nobody wants and no work tree is on, and git directories as above; with
 * `apply` they go, and a branch's commits are kept as above. */
CX_RESULT cx_run_worktree_strays(const cx_git *repo, const char *runtime_root,
                                 cx_worktree_is_needed *is_needed, void *needed_arg, bool apply,
                                 cx_arena *arena, cx_worktree_stray **out, size_t *out_count,
                                 cx_err *err);

#endif
