/*
 * attest_view.h - what commands that sign statements, and check them, share: keys that are trusted,
 * the envelope's file, the verdict.
 */
#ifndef CX_CLI_ATTEST_VIEW_H
#define CX_CLI_ATTEST_VIEW_H

#include "approval/api.h"
#include "cli/signer.h"

#define CX_CLI_OPTION_TRUSTED                                                                 \
    CX_CLI_OPT_MANY("trusted", 0, CX_CLI_TEXT, "KEY",                                         \
                    "With --check: a public key that may have signed it: a verifier key, 64 " \
                    "hex digits, or a file with one of them.")

/* The keys of --trusted, in the command's arena. */
CX_RESULT cx_cli_trusted_keys(cx_cli *cli, const cx_cli_args *args, cx_pubkey **out,
                              size_t *out_count, cx_err *err);

/* Signs as cx_run_sign does; `arg` is a cx_cli_signer. */
cx_status cx_cli_attest_sign(void *arg, cx_bytes message, cx_signature *out, cx_err *err);

/* Writes the envelope to --output, or appends it to `out`; with --json and --output appends its
 * path and key instead. */
CX_RESULT cx_cli_attest_answer(cx_cli *cli, const cx_cli_args *args, const cx_cli_signer *signer,
                               const cx_buf *envelope, cx_buf *out, cx_err *err);

/* Appends the verdict as text, or with --json as a line; sets the exit code. */
CX_RESULT cx_cli_attest_verdict(cx_cli *cli, const cx_cli_args *args,
                                const cx_run_attest_verdict *verdict, cx_buf *out, int *out_exit,
                                cx_err *err);

#endif
