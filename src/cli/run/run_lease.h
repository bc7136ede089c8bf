/*
 * run_lease.h - the leases and locks of runs that are recorded in a part of a fleet (lease.h,
 * decision 0039): one record of the journal of the repository's runs, which each change reads,
 * decides on and writes in one transaction.
 *
 *   S1  An entry of a run is in the transaction that found the run's lease with its token.  So a
 *       run that another machine has ended records nothing after that, however late it wakes.
 *   S2  Each change of the record is an entry run.lease: what changed, of which run and token, and,
 *       when a run was ended by another, by whom and why.
 *   S3  What an agent can write reaches neither the record nor its entries.
 *
 * Thread-safe.
 */
#ifndef CX_CLI_RUN_LEASE_H
#define CX_CLI_RUN_LEASE_H

#include <stdatomic.h>

#include "approval/api.h"
#include "cli/run/run_ledger.h"
#include "git/api.h"

/* Of runs that this process starts: each has a lease from its first event on, renewed by a thread.
 * `*cancel` turns true when one of them was ended by another machine.  With `cancel` NULL nothing
 * is started: only runs that ended are sealed (run cleanup), and one that was ended by another as a
 * success only when the ledger has all of its events.  The ledger closes it. */
CX_RESULT cx_cli_run_leases_open(cx_cli_run_ledger *ledger, atomic_bool *cancel, cx_err *err);
/* Removes what the process still has in the table. NULL is fine. */
void cx_cli_run_leases_close(cx_cli_run_leases *leases);
/* For cx_run_options. */
const cx_run_shared_locks *cx_cli_run_leases_locks(const cx_cli_run_leases *leases);

/* S1: in the transaction of an entry, before it.  CX_E_CONFLICT "RunEnded".  NULL is fine. */
CX_RESULT cx_cli_run_leases_admit(cx_cli_run_leases *leases, cx_txn *txn, const char *kind,
                                  cx_str run_id, cx_bytes payload, cx_err *err);
/* The entry is durable. */
void cx_cli_run_leases_admitted(cx_cli_run_leases *leases, const char *kind, cx_str run_id);

/* Whether runs started with these arguments are recorded in a part of a fleet. */
bool cx_cli_run_in_part(const cx_cli *cli, const cx_cli_args *args);
/* The table as it is; empty when the journal does not exist.  Memory from the arena. */
CX_RESULT cx_cli_run_leases_list(cx_home *home, cx_str actor, cx_arena *arena, cx_run_leases *out,
                                 cx_err *err);
/* The same of a part that is only read for this; the journal is that of the repository `git` is of.
 * Empty when cx_cli_run_in_part is false. */
CX_RESULT cx_cli_run_leases_peek(cx_cli *cli, const cx_cli_args *args, const cx_git *git,
                                 cx_run_leases *out, cx_err *err);
/* Ends a run of another process when that may be done now, or with an approval (`force`).
 * *out_why: "owner_dead", "lease_expired", "approved"; NULL: it was not ended. */
CX_RESULT cx_cli_run_leases_end(cx_cli_run_ledger *ledger, cx_str run_id, bool force,
                                const char **out_why, cx_err *err);
/* In a transaction of the journal: who has ended a run, as an object; false when no other has. */
CX_RESULT cx_cli_run_leases_ended(cx_txn *txn, cx_str run_id, cx_json *out, bool *out_found,
                                  cx_err *err);
/* Runs that were ended by another and that have neither a seal nor an entry run.end (stores/
 * run_end.h), in `home`; ids from the arena. */
CX_RESULT cx_cli_run_leases_unsealed(cx_home *home, cx_str actor, cx_arena *arena, cx_str **out,
                                     size_t *out_count, cx_err *err);
/* Records run.end of one of these.  *out_done is false when there is a seal, or an entry, by
 * now. */
CX_RESULT cx_cli_run_leases_note_end(cx_cli_run_ledger *ledger, cx_str run_id, bool *out_done,
                                     cx_err *err);

#endif
