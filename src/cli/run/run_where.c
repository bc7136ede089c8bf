/*
 * run_where.c - from a name on the command line to a bundle and its witness.
 */
#include "cli/run/run_where.h"

#include <stdlib.h>
#include <string.h>

#include "os/api.h"
#include "cli/fleet/part_home.h"
#include "cli/ledger/ledger.h"
#include "cli/run/run_lease.h"
#include "cli/run/run_store.h"
#include "git/api.h"

cx_status cx_cli_run_store(cx_cli *cli, const char *where, bool make, cx_run_store *out,
                           cx_err *err)
{
    const char *configured = getenv(CX_RUN_ROOT_ENV), *root;
    cx_git *git = NULL;
    cx_str repo = CX_STR("");
    if (configured == NULL || configured[0] == 0) {
        CX_TRY(cx_git_open(where == NULL ? "." : where, NULL, cli->alloc, &git, err));
        repo = cx_arena_copy_str(&cli->arena, cx_str_z(cx_git_worktree(git)));
        if (cx_git_is_linked(git)) /* runs belong to the main checkout */
            repo = cx_arena_printf(&cli->arena, "%s/..", cx_git_common_dir(git));
        cx_git_close(git);
        if (repo.data == NULL)
            return cx_fail_nomem(err);
    }
    CX_TRY(cx_run_store_root(repo.data, configured, &cli->arena, &root, err));
    return cx_run_store_open(out, root, make, cli->io, cli->alloc, err);
}

static bool is_there(const char *path)
{
    cx_facts facts;
    return !cx_failed(cx_path_facts(path, true, &facts, NULL));
}

/* Whether no data directory is named, but a node is. */
static bool is_reached(const cx_cli *cli, const cx_cli_args *args)
{
    const char *home = getenv("CORTEX_HOME"), *url = getenv("CORTEX_URL");
    return cx_cli_value(args, "home") == NULL && (home == NULL || home[0] == 0) &&
           cli->configured_home == NULL && url != NULL && url[0] != 0;
}

/* Of a run that is not here: what other machines have stored; else `local`, the error of here. */
static cx_status open_stored(cx_cli *cli, const cx_cli_args *args, cx_str run_id, cx_status local,
                             cx_run_bundle **out, cx_err *err)
{
    cx_buf archive;
    cx_err why = {0};
    bool found;
    cx_buf_init(&archive, cli->alloc);
    cx_status status = cx_cli_run_fetch(cli, args, run_id, &archive, &found, &why);
    if (!cx_failed(status) && found)
        status = cx_run_bundle_open_archive(cli->alloc, cx_buf_bytes(&archive), out, &why);
    cx_buf_done(&archive);
    if (!cx_failed(status))
        return found ? CX_SUCCESS : local;
    /* A data directory that was not named, and cannot be read, is not what was asked about. */
    if ((why.tag == NULL ||
         (strncmp(why.tag, "Bundle", 6) != 0 && strcmp(why.tag, CX_RUN_END_TAG) != 0)) &&
        !cx_cli_has(args, "home") && !cx_cli_run_in_part(cli, args) && !is_reached(cli, args))
        return local;
    *err = why;
    return status;
}

bool cx_cli_run_is_here(cx_cli *cli, const cx_cli_args *args, const char *run_id)
{
    cx_run_store store;
    if (cx_failed(cx_cli_run_store(cli, cx_cli_value(args, "repo"), false, &store, NULL)))
        return false;
    cx_str path = cx_run_store_path(&store, &cli->arena, "runs", cx_str_z(run_id));
    return path.data != NULL && is_there(path.data);
}

cx_status cx_cli_run_open(cx_cli *cli, const cx_cli_args *args, const char *name,
                          cx_run_bundle **out, cx_err *err)
{
    cx_run_store store;
    if (strchr(name, '/') != NULL || !cx_run_id_valid(cx_str_z(name)))
        return cx_run_bundle_open(cli->io, cli->alloc, name, out, err);
    cx_status status = cx_cli_run_store(cli, cx_cli_value(args, "repo"), false, &store, err);
    if (!cx_failed(status))
        status = cx_run_view_open(&store, cx_str_z(name), out, err);
    if (cx_failed(status) && is_there(name))
        return cx_run_bundle_open(cli->io, cli->alloc, name, out, err);
    return cx_failed(status) ? open_stored(cli, args, cx_str_z(name), status, out, err) : status;
}

cx_status cx_cli_run_find(cx_cli *cli, const cx_cli_args *args, const char *name,
                          cx_run_bundle **out, cx_err *err)
{
    static const char *const signs[] = {"manifest.json", "events.jsonl", "contract.json"};
    CX_TRY(cx_cli_run_open(cli, args, name, out, err));
    for (size_t i = 0; i < CX_COUNT_OF(signs); i++) {
        if (cx_run_bundle_find(*out, cx_str_z(signs[i])) != NULL)
            return CX_SUCCESS;
    }
    cx_run_bundle_close(*out);
    *out = NULL;
    return cx_fail(err, CX_E_NOT_FOUND,
                   "%s is not the bundle of a run: expected manifest.json, events.jsonl or "
                   "contract.json in it; 'cortex run list' lists the runs",
                   name);
}

cx_status cx_cli_run_home(cx_cli *cli, const cx_cli_args *args, cx_home **out, cx_err *err)
{
    const char *path;
    cx_home_options reading = cx_cli_home_options(cli, CX_CLI_READ, NULL);
    *out = NULL;
    if (is_reached(cli, args)) {
        reading.read_only = false; /* the process that is reached may write; this one does not */
        reading.reach = cx_cli_part_reach;
        reading.only_reach = true;
        return cx_home_open(getenv("CORTEX_URL"), &reading, out, err);
    }
    if (cx_failed(cx_cli_home_path(cli, args, &path, err)) || !is_there(path))
        return cx_cli_has(args, "home")
                   ? cx_fail(err, CX_E_NOT_FOUND,
                             "there is no data directory at %s; 'cortex init' creates one",
                             cx_cli_value(args, "home"))
                   : CX_SUCCESS;
    return cx_home_open(path, &reading, out, err);
}

/* *out_home and *out_index are NULL when there is no data directory and none was named: no seals
 * are known. */
static cx_status open_run_index(cx_cli *cli, const cx_cli_args *args, cx_home **out_home,
                                cx_run_index **out_index, cx_err *err)
{
    *out_index = NULL;
    CX_TRY(cx_cli_run_home(cli, args, out_home, err));
    return *out_home == NULL ? CX_SUCCESS
                             : cx_run_index_open(*out_home, cli->alloc, out_index, err);
}

static void close_run_index(cx_home *home, cx_run_index *index)
{
    cx_run_index_close(index);
    cx_status closed = home == NULL ? CX_SUCCESS : cx_home_close(home, NULL);
    (void)closed; /* nothing was written */
}

static cx_status is_sealed(void *ctx, cx_str run_id, bool *out, cx_err *err)
{
    return cx_run_index_sealed(ctx, run_id, out, err);
}

cx_status cx_cli_run_page(cx_cli *cli, const cx_cli_args *args, const cx_run_store *store,
                          const cx_run_list_query *query, cx_json *out, cx_err *err)
{
    cx_home *home;
    cx_run_index *index;
    cx_status status = open_run_index(cli, args, &home, &index, err);
    cx_run_seals seals = {.ctx = index, .sealed = index == NULL ? NULL : is_sealed};
    if (!cx_failed(status))
        status = cx_run_view_list(store, &seals, query, &cli->arena, out, err);
    close_run_index(home, index);
    return status;
}

cx_status cx_cli_run_known(cx_cli *cli, const cx_cli_args *args, cx_str run_id, cx_run_known *out,
                           cx_err *err)
{
    cx_home *home;
    cx_run_index *index;
    memset(out, 0, sizeof *out);
    cx_status status = open_run_index(cli, args, &home, &index, err);
    if (!cx_failed(status) && index != NULL)
        status = cx_run_index_find(index, run_id, &cli->arena, out, err);
    close_run_index(home, index);
    return status;
}
