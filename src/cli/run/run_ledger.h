/*
 * run_ledger.h - where a run's events and its seal go: the journal of the repository's runs in
 * the data directory (decisions 0008, 0015). An active run either owns the data directory and
 * serves its socket, so that other commands can continue, or writes through the owner. When that
 * process ends, the run becomes the owner itself.
 */
#ifndef CX_CLI_RUN_LEDGER_H
#define CX_CLI_RUN_LEDGER_H

#include "base/api.h"
#include "cli/cli.h"
#include "socket/api.h"
#include "bundle/api.h"

typedef struct cx_cli_run_leases cx_cli_run_leases; /* run_lease.h */

typedef struct cx_cli_run_ledger {
    cx_run_ledger ledger; /* give its address to the run */
    cx_cli *cli;
    const char *path;
    cx_str actor;
    cx_home *home;
    cx_remote *remote; /* our own socket server, when we own the data directory */
    cx_lock lock;      /* one append at a time: one may reopen the data directory */
    bool has_lock;
    cx_cli_run_leases *leases; /* of runs of a fleet; NULL = none */
    bool committed;            /* payloads of what is appended from now on can be erased */
} cx_cli_run_ledger;

/* "run:" and the first 16 hex digits of the repository's root commit. */
CX_RESULT cx_cli_run_actor(const char *root_commit, cx_arena *arena, cx_str *out, cx_err *err);

/* `actor` is borrowed.  Fails as opening a data directory does: CX_E_NOT_FOUND "NoHome",
 * CX_E_BUSY. */
CX_RESULT cx_cli_run_ledger_open(cx_cli_run_ledger *ledger, cx_cli *cli, const cx_cli_args *args,
                                 cx_str actor, cx_err *err);
/*
 * One transaction of the journal, begun again while owners of the data directory come and go:
 * `work` may be called several times.  It is committed when *write was set, and dropped otherwise.
 */
typedef struct cx_cli_run_work {
    cx_status (*work)(void *arg, cx_txn *txn, bool *write, cx_err *err);
    void *arg;
} cx_cli_run_work;
CX_RESULT cx_cli_run_ledger_transact(cx_cli_run_ledger *ledger, const cx_cli_run_work *work,
                                     cx_err *err);
/* Reads the data directory, between the writes of other threads; nothing is begun again. */
typedef struct cx_cli_run_look {
    cx_status (*look)(void *arg, cx_home *home, cx_err *err);
    void *arg;
} cx_cli_run_look;
CX_RESULT cx_cli_run_ledger_look(cx_cli_run_ledger *ledger, const cx_cli_run_look *look,
                                 cx_err *err);
/* Records what the run in that bundle did as an action set (docs/formats/actions.md). */
CX_RESULT cx_cli_run_record_actions(cx_cli *cli, cx_home *home, cx_str actor, cx_str run_id,
                                    const char *folder, uint64_t *out_seq, cx_err *err);
/* What was appended is in the log; tables that could not be flushed are rebuilt next time.  Fine
 * for
 * a zeroed one. */
void cx_cli_run_ledger_close(cx_cli_run_ledger *ledger);

#endif
