/*
 * prove_never.h - `cortex prove --never`: proofs that a run or session did not do something.
 */
#ifndef CX_CLI_PROVE_NEVER_H
#define CX_CLI_PROVE_NEVER_H

#include "cli/cli.h"

int cx_cli_prove_never(cx_cli *cli, const cx_cli_args *args);

#endif
