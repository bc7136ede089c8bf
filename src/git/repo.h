/*
 * repo.h - the questions about a repository that contracts and policies ask, as a struct of
 * functions.
 *
 * Contracts and policies know nothing of git: contract_repo.h implements the struct with git.h,
 * tests implement it with a table.  Every answer is about a commit, never about files in a work
 * tree, except for artifacts.
 */
#ifndef CX_GIT_REPO_H
#define CX_GIT_REPO_H

#include "rules/api.h"

typedef enum cx_run_blob {
    CX_BLOB_NONE,    /* no such path in that commit */
    CX_BLOB_FILE,    /* a regular file, executable or not; bytes are given */
    CX_BLOB_TOO_BIG, /* a regular file over the limit; no bytes */
    CX_BLOB_OTHER    /* a folder, a symbolic link, a gitlink */
} cx_run_blob;

/* Each function: an error only when the question could not be asked; text lives in the arena. */
typedef struct cx_run_repo {
    void *arg;
    /* The full id of the one commit that `ref` names; empty when it names none.  `ref` has passed
     * the text checks of K05. */
    cx_status (*resolve)(void *arg, cx_str ref, cx_arena *arena, cx_str *out_commit, cx_err *err);
    /* Whether `commit` (a full id) is HEAD or an ancestor of it. */
    cx_status (*in_head)(void *arg, cx_str commit, bool *out, cx_err *err);
    /* The bytes of `path` (normalised, relative) in the tree of `commit`. */
    cx_status (*read)(void *arg, cx_str commit, cx_str path, size_t limit_bytes, cx_arena *arena,
                      cx_run_blob *out_kind, cx_bytes *out, cx_err *err);
    /* Every tracked file of `commit`. */
    cx_status (*list)(void *arg, cx_str commit, cx_arena *arena, cx_run_tree *out, cx_err *err);
    /* The bytes of a bundle-relative artifact (K15: `artifacts/..`); CX_BLOB_NONE when there is no
     * bundle.  May be NULL. */
    cx_status (*artifact)(void *arg, cx_str path, size_t limit_bytes, cx_arena *arena,
                          cx_run_blob *out_kind, cx_bytes *out, cx_err *err);
} cx_run_repo;

#endif
