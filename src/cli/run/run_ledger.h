/*
 * run_ledger.h - where a run's events and its seal go: the journal of the repository's runs in the
 * home (decisions 0008, 0015).
 *
 * While a run goes on it either holds the home and serves its socket, so that other commands go on,
 * or works through the process that holds it.  When that process ends in the middle, the run takes
 * the home itself.
 */
#ifndef CX_CLI_RUN_LEDGER_H
#define CX_CLI_RUN_LEDGER_H

#include "base/api.h"
#include "cli/cli.h"
#include "socket/api.h"
#include "bundle/api.h"

typedef struct cx_cli_run_ledger {
    cx_run_ledger ledger; /* give its address to the run */
    cx_cli *cli;
    const char *path;
    cx_str actor;
    cx_home *home;
    cx_remote *remote; /* our own serving, when we hold the home */
    cx_lock lock;      /* one append at a time: another one may have to open the home anew */
    bool has_lock;
} cx_cli_run_ledger;

/* "run:" and the first 16 hex digits of the repository's root commit. */
CX_RESULT cx_cli_run_actor(const char *root_commit, cx_arena *arena, cx_str *out, cx_err *err);

/* `actor` is borrowed.  Fails as opening a home does: CX_E_NOT_FOUND "NoHome", CX_E_BUSY. */
CX_RESULT cx_cli_run_ledger_open(cx_cli_run_ledger *ledger, cx_cli *cli, const cx_cli_args *args,
                                 cx_str actor, cx_err *err);
/* What was appended is in the log; tables that could not follow are made anew next time.  Fine for
 * a zeroed one. */
void cx_cli_run_ledger_close(cx_cli_run_ledger *ledger);

#endif
