/*
 * run_fail.h - errors of commands about runs: an object that does not exist could not be checked
 * (run.md §20), which is exit code 3, where commands about a ledger report a usage error.
 */
#ifndef CX_CLI_RUN_FAIL_H
#define CX_CLI_RUN_FAIL_H

#include "cli/ledger/ledger.h"

static inline int cx_cli_run_fail(cx_cli *cli, const cx_cli_args *args, const cx_err *err)
{
    (void)cx_cli_ledger_fail(cli, args, err);
    return err->code == CX_E_USAGE ? CX_EXIT_USAGE : CX_EXIT_UNCHECKED;
}

#endif
