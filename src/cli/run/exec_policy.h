/*
 * exec_policy.h - what `cortex exec` may reach: policies of a commit, a contract, options.
 */
#ifndef CX_CLI_EXEC_POLICY_H
#define CX_CLI_EXEC_POLICY_H

#include "cli/cli.h"
#include "cli/run/run_place.h"
#include "egress/api.h"

typedef struct cx_cli_exec_policy {
    cx_egress_policy egress;
    cx_egress_credentials credentials;
    const char *from; /* "commit", "file", "none"; static storage */
    cx_str commit;    /* empty = none */
    bool has_contract;
    cx_contract contract;
} cx_cli_exec_policy;

/* `place` is NULL outside of a repository.  Everything lives in the cli's arena.  CX_E_DENIED: the
 * contract does not allow what the options ask for. */
CX_RESULT cx_cli_exec_policy_load(cx_cli *cli, const cx_cli_args *args, const cx_cli_place *place,
                                  cx_cli_exec_policy *out, cx_err *err);
/* The user's store of credentials: $CORTEX_CREDENTIALS, else in the configuration folder.  NULL
 * when there is neither. */
const char *cx_cli_credentials_path(cx_cli *cli);

#endif
