/*
 * repo_kit.h - real repositories for tests: made in a temporary folder, changed by lists of
 * operations as the case files have them (tests/vectors/run/README.md).
 */
#ifndef CX_TESTS_REPO_KIT_H
#define CX_TESTS_REPO_KIT_H

#include "os/folder.h"
#include "json/json.h"
#include "git/git.h"
#include "tests/support/folder.h"

typedef struct repo_kit {
    char path[FOLDER_PATH_SIZE];
    cx_file folder;
    cx_git *git; /* opened when there is a commit, or with repo_open */
    cx_arena arena;
    cx_buf said; /* by the last git */
    cx_err err;
} repo_kit;

/* An empty repository with branch main, in a folder of this name and process. */
CX_RESULT repo_begin(repo_kit *kit, const char *name, cx_err *err);
void repo_end(repo_kit *kit); /* removes it; a kit of zeros is fine */
CX_RESULT repo_open(repo_kit *kit, cx_err *err);

/* git with hooks off, a fixed identity and date, no user's configuration, in the repository. */
CX_RESULT repo_git_argv(repo_kit *kit, const char *const *args, cx_err *err);
#define repo_git(kit, err, ...) \
    repo_git_argv((kit), (const char *const[]){__VA_ARGS__, NULL}, (err))

CX_RESULT repo_write(repo_kit *kit, const char *path, cx_str contents, cx_err *err);
/* ["write", path, text] and so on; `out_git` counts git and gitlink operations, may be NULL. */
CX_RESULT repo_apply(repo_kit *kit, const cx_json *ops, bool *out_plain, cx_err *err);
/* {path: text, ..} */
CX_RESULT repo_write_all(repo_kit *kit, const cx_json *files, cx_err *err);
/* git add -A -f, commit. */
CX_RESULT repo_commit(repo_kit *kit, const char *message, cx_err *err);
/* A commit's id. */
CX_RESULT repo_head(repo_kit *kit, char out[CX_OID_TEXT_SIZE], cx_err *err);

#endif
