/*
 * contract_repo.h - the repository that contracts and policies ask (repo.h), over git.h.
 */
#ifndef CX_CONTRACT_CONTRACT_REPO_H
#define CX_CONTRACT_CONTRACT_REPO_H

#include "git/api.h"

/*
 * Keeps the tree of the commit that was asked about last, so that asking for a file that is not
 * there starts no process.  For one thread at a time; `git` and `arena` outlive it.
 */
typedef struct cx_run_git_repo {
    const cx_git *git;
    cx_arena *arena;
    cx_str commit;
    cx_git_tree tree;
    cx_run_tree files; /* the same as paths */
} cx_run_git_repo;

/* The struct of functions borrows `out`.  Its `artifact` is NULL: the caller puts one there. */
cx_run_repo cx_run_git_repo_init(cx_run_git_repo *out, const cx_git *git, cx_arena *arena);

/* Where `runtime_root` lies inside of the worktree (both absolute, without '/' at the end); an
 * empty text when it does not.  Borrows. */
cx_run_ground cx_run_ground_of(const char *worktree, const char *runtime_root);

#endif
