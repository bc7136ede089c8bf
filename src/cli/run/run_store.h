/*
 * run_store.h - the bundle of a run goes where other machines reach it: into the journal of its
 * runs (decision 0056, stores/run_bundle.h), or into an object store (decision 0060).
 *
 *   T1  Only a sealed bundle is stored: its manifest has the hash that the seal in the ledger says.
 *   T2  Storing again changes nothing: parts that are there are not sent again, and the first entry
 *       run.bundle stays.  So what a crash or a full quota interrupted is continued.
 *   T3  The entry that names an object is recorded when the object was read back, and not before.
 */
#ifndef CX_CLI_RUN_STORE_H
#define CX_CLI_RUN_STORE_H

#include "cli/run/run_ledger.h"
#include "stores/api.h"

/* What storing did. */
typedef struct cx_cli_run_storing {
    cx_run_stored stored;
    bool was_there;    /* the entry run.bundle: nothing was sent */
    size_t sent_parts; /* of this call, or 1 object; the others were there */
} cx_cli_run_storing;

/* Stores the bundle in `folder`.  Text of *out is in the cli's arena. */
CX_RESULT cx_cli_run_store_bundle(cx_cli_run_ledger *ledger, cx_str run_id, const char *folder,
                                  cx_cli_run_storing *out, cx_err *err);

/* The stored bundle of a run that is not in this clone, from the data directory that the arguments
 * name: its bytes, checked (B1).  *out_found is false when the ledger knows of none. */
CX_RESULT cx_cli_run_fetch(cx_cli *cli, const cx_cli_args *args, cx_str run_id, cx_buf *out,
                           bool *out_found, cx_err *err);

#endif
