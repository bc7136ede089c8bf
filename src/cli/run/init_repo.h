/*
 * init_repo.h - `cortex init` inside of a git repository: what governed runs need there.
 */
#ifndef CX_CLI_INIT_REPO_H
#define CX_CLI_INIT_REPO_H

#include "cli/run/run_place.h"

typedef struct cx_cli_prepared {
    bool prepared;           /* false: not in a repository, or in a folder that git ignores */
    const char *root;        /* the runtime root */
    const char *gitignore;   /* "ok", "added" or "refused" */
    CX_VEC(cx_str) created;  /* all of them: folders and files, relative to the repository */
    CX_VEC(cx_str) policies; /* of them */
    CX_VEC(cx_str) schemas;
} cx_cli_prepared;

/*
 * Makes the runtime root, an entry in .gitignore and the files of policies/ and schemas/, as far
 * as they do not exist: nothing is ever overwritten. A folder that git ignores (a build folder)
 * is rejected.
 */
CX_RESULT cx_cli_prepare_repo(cx_cli *cli, cx_cli_prepared *out, cx_err *err);
/* What cx_cli_prepare_repo would make; nothing is written. */
CX_RESULT cx_cli_plan_repo(cx_cli *cli, cx_cli_prepared *out, cx_err *err);
void cx_cli_prepared_done(cx_cli *cli, cx_cli_prepared *prepared);

#endif
