/*
 * trust.h - what `cortex key show` hands a key id to that is no file.
 */
#ifndef CX_CLI_TRUST_H
#define CX_CLI_TRUST_H

#include "cli/cli.h"

/* Shows the key of the trust store that the first operand names. */
int cx_cli_show_trusted_key(cx_cli *cli, const cx_cli_args *args);

#endif
