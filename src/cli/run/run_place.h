/*
 * run_place.h - what commands about runs share: which repository, and where its runs are stored.
 */
#ifndef CX_CLI_RUN_PLACE_H
#define CX_CLI_RUN_PLACE_H

#include "cli/cli.h"
#include "contract/api.h"
#include "bundle/api.h"

#define CX_CLI_OPTION_REPO                    \
    CX_CLI_OPT("repo", 0, CX_CLI_FILE, "DIR", \
               "A folder inside the repository; default: the one this is run in.")

typedef struct cx_cli_place {
    cx_git *git;
    const char *worktree; /* absolute */
    const char *root;     /* the runtime root (R2), which need not exist */
    cx_run_path_context ground;
    cx_run_git_repo git_repo;
    cx_run_repo repo; /* over git_repo */
} cx_cli_place;

/* --repo, else the working folder.  CX_E_NOT_FOUND outside of a repository.  `out` must stay where
 * it is. */
CX_RESULT cx_cli_place_open(cx_cli *cli, const cx_cli_args *args, cx_cli_place *out, cx_err *err);
/* Of a folder, NULL = the working folder. */
CX_RESULT cx_cli_place_open_at(cx_cli *cli, const char *folder, cx_cli_place *out, cx_err *err);
void cx_cli_place_close(cx_cli_place *place); /* fine for a zeroed one */

#endif
