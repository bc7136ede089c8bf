/*
 * run_place.c - finding the repository and its runtime root.
 */
#include "cli/run/run_place.h"

#include <stdlib.h>

cx_status cx_cli_place_open_at(cx_cli *cli, const char *folder, cx_cli_place *out, cx_err *err)
{
    memset(out, 0, sizeof *out);
    CX_TRY(cx_git_open(folder == NULL ? "." : folder, NULL, cli->alloc, &out->git, err));
    out->worktree = cx_git_worktree(out->git);
    cx_status status = cx_run_store_root(cx_git_main_worktree(out->git), getenv(CX_RUN_ROOT_ENV),
                                         &cli->arena, &out->root, err);
    if (cx_failed(status)) {
        cx_cli_place_close(out);
        return status;
    }
    out->ground = cx_run_path_context_of(out->worktree, out->root);
    out->repo = cx_run_git_repo_init(&out->git_repo, out->git, &cli->arena);
    return CX_SUCCESS;
}

cx_status cx_cli_place_open(cx_cli *cli, const cx_cli_args *args, cx_cli_place *out, cx_err *err)
{
    return cx_cli_place_open_at(cli, cx_cli_value(args, "repo"), out, err);
}

void cx_cli_place_close(cx_cli_place *place)
{
    cx_git_close(place->git);
    memset(place, 0, sizeof *place);
}
