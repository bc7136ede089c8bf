/*
 * run_where.h - which run a person means, and what the home's ledger knows of it.
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
/* A run id of that store; or, when it names something on the disk or holds a slash, the folder or
 * archive of a bundle. */
CX_RESULT cx_cli_run_open(cx_cli *cli, const char *repo, const char *name, cx_run_bundle **out,
                          cx_err *err);
/* The same, but CX_E_NOT_FOUND for what has neither manifest nor events nor contract: there is
 * nothing to look at.  (Verifying and replaying say by themselves what is missing.) */
CX_RESULT cx_cli_run_find(cx_cli *cli, const char *repo, const char *name, cx_run_bundle **out,
                          cx_err *err);
/* As cx_run_view_list, with what the home knows of seals; without a home no run is sealed. */
CX_RESULT cx_cli_run_page(cx_cli *cli, const cx_cli_args *args, const cx_run_store *store,
                          const cx_run_list_query *query, cx_json *out, cx_err *err);
/* Zeroed when there is no home, or it has never heard of the run.  The home is only read. */
CX_RESULT cx_cli_run_known(cx_cli *cli, const cx_cli_args *args, cx_str run_id, cx_run_known *out,
                           cx_err *err);

#endif
