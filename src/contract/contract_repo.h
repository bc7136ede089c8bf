/*
 * contract_repo.h - implements the repository that contracts and policies ask (repo.h) with git.h.
 */
#ifndef CX_CONTRACT_CONTRACT_REPO_H
#define CX_CONTRACT_CONTRACT_REPO_H

#include "git/api.h"

/*
 * Caches the tree of the last commit, so that a question about a missing file starts no process.
 * For one thread at a time; `git` and `arena` outlive it.
 */
typedef struct cx_run_git_repo {
    const cx_git *git;
    cx_arena *arena;
    cx_str commit;
    cx_git_tree tree;
    cx_run_tree files; /* the same as paths */
} cx_run_git_repo;

/* The struct of functions borrows `out`. Its `artifact` is NULL: the caller may set it. */
cx_run_repo cx_run_git_repo_init(cx_run_git_repo *out, const cx_git *git, cx_arena *arena);

/* The path of `runtime_root` inside the work tree (both absolute, without '/' at the end); empty
 * when it is outside. Borrows. */
cx_run_path_context cx_run_path_context_of(const char *worktree, const char *runtime_root);

#endif
