/*
 * verify_parts.h - what `cortex verify` checks besides lattices: proof files, data directories,
 * and the trusted keys of both.
 */
#ifndef CX_CLI_VERIFY_PARTS_H
#define CX_CLI_VERIFY_PARTS_H

#include "cli/ledger/checkpoint.h"
#include "proof/api.h"

/* Reads the trusted keys and the questions of the command line into `out`; lives in the
 * command's arena.
 */
CX_RESULT cx_cli_read_trust(cx_cli *cli, const cx_cli_args *args, cx_check_options *out,
                            cx_err *err);
/* A proof file that was recognised; `bytes` is all of it. */
int cx_cli_verify_proof(cx_cli *cli, const cx_cli_args *args, const char *path, cx_bytes bytes);
/* A data directory. */
int cx_cli_verify_home(cx_cli *cli, const cx_cli_args *args, const char *path);

#endif
