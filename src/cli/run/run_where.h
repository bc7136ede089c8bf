/*
 * run_where.h - finds the run that a name means, and what the ledger knows of it.
 */
#ifndef CX_CLI_RUN_WHERE_H
#define CX_CLI_RUN_WHERE_H

#include "cli/cli.h"
#include "stores/api.h"
#include "audit/api.h"

/* The runtime root of $CORTEXPILOT_RUNTIME_ROOT, or of the repository at `repo` (NULL = where this
 * is started); lives in the cli's arena.  CX_E_NOT_FOUND when there is neither. */
CX_RESULT cx_cli_run_store(cx_cli *cli, const char *repo, bool make, cx_run_store *out,
                           cx_err *err);
/* The data directory that the arguments name, opened for reading; or the node at $CORTEX_URL when
 * they name none.  NULL when there is none of both, and none was named. */
CX_RESULT cx_cli_run_home(cx_cli *cli, const cx_cli_args *args, cx_home **out, cx_err *err);
/* Whether the store of the repository has a run of that id. */
bool cx_cli_run_is_here(cx_cli *cli, const cx_cli_args *args, const char *run_id);
/* A run id of the store of the repository (option --repo); or, when it is an existing path or
 * contains a slash, the folder or archive of a bundle; or a run whose bundle other machines have
 * stored (run_store.h), of which the errors are, too. */
CX_RESULT cx_cli_run_open(cx_cli *cli, const cx_cli_args *args, const char *name,
                          cx_run_bundle **out, cx_err *err);
/* The same, but CX_E_NOT_FOUND for a folder with neither manifest nor events nor contract.
 * (Verifying and replaying report missing files themselves.) */
CX_RESULT cx_cli_run_find(cx_cli *cli, const cx_cli_args *args, const char *name,
                          cx_run_bundle **out, cx_err *err);
/* As cx_run_view_list, with the seals of the ledger; without a data directory no run is sealed. */
CX_RESULT cx_cli_run_page(cx_cli *cli, const cx_cli_args *args, const cx_run_store *store,
                          const cx_run_list_query *query, cx_json *out, cx_err *err);
/* Zeroed when there is no data directory, or the run is unknown. The data directory is only
 * read. */
CX_RESULT cx_cli_run_known(cx_cli *cli, const cx_cli_args *args, cx_str run_id, cx_run_known *out,
                           cx_err *err);

#endif
