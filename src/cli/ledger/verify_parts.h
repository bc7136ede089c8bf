/*
 * verify_parts.h - what `cortex verify` checks besides lattices: proof files, data directories,
 * and the trusted keys of both.
 */
#ifndef CX_CLI_VERIFY_PARTS_H
#define CX_CLI_VERIFY_PARTS_H

#include "cli/ledger/checkpoint.h"
#include "ledger/api.h"
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

/* --- what a verification keeps (ledger/check/kept.h) ------------------------------------------ */

/* CX_E_USAGE unless only this user can write the file, and it is outside of all data directories.
 */
CX_RESULT cx_cli_check_state_file(cx_cli *cli, const char *path, cx_err *err);
/* From here on SIGINT and SIGTERM stop the verification at the next commit. */
void cx_cli_verify_begin_signals(void);
bool cx_cli_verify_goes_on(void *arg);

/* --- backups ---------------------------------------------------------------------------------- */

/* What `backup --verify` and `restore` compare a backup with; as in `verify --home`. */
#define CX_CLI_OPTIONS_ANCHORS                                                                    \
    CX_CLI_OPT_MANY("key", 0, CX_CLI_TEXT, "KEY",                                                 \
                    "A public key that must have signed the checkpoint: a verifier key, 64 hex "  \
                    "digits, or a file with one of them. May be repeated."),                      \
        CX_CLI_OPT("seal-key", 0, CX_CLI_TEXT, "KEY",                                             \
                   "The public key that signed the snapshots."),                                  \
        CX_CLI_OPT(                                                                               \
            "checkpoint", 0, CX_CLI_FILE, "NOTE",                                                 \
            "A checkpoint stored elsewhere, which the journal must extend: only this shows "      \
            "that the backup is not older than the checkpoint."),                                 \
        CX_CLI_OPT_FLAG(                                                                          \
            "all", 0, "NOTE is of the whole data directory, made by 'cortex checkpoint --all'."), \
        CX_CLI_OPT("cosigners", 0, CX_CLI_COUNT, "N", "It must be cosigned by N of the keys."),   \
        CX_CLI_OPT("require", 0, CX_CLI_CHOICE, "anchored|signed",                                \
                   "Without a checkpoint, or without one signed by a given key, the verdict is "  \
                   "indeterminate."),                                                             \
        CX_CLI_OPT("actor", 0, CX_CLI_TEXT, "NAME",                                               \
                   "Verify only this actor, whose checkpoint is given; default all actors, or "   \
                   "with a checkpoint the default actor.")

/* The anchors alone. */
CX_RESULT cx_cli_read_home_trust(cx_cli *cli, const cx_cli_args *args, cx_check_options *out,
                                 cx_err *err);

/* What is known of the data directory that is verified, when it is a backup. */
typedef struct cx_cli_backup_facts {
    const cx_backup_state *state;
    bool record_wanted; /* false: that it has no record is no reason */
    const char *shown;  /* what the answer calls it */
} cx_cli_backup_facts;

/*
 * Verifies the data directory at `path` and appends the answer to `out`; *out_code is the exit code
 * of the verdict.  `backup` may be NULL.
 */
CX_RESULT cx_cli_audit_home(cx_cli *cli, const cx_cli_args *args, const char *path,
                            const cx_cli_backup_facts *backup, cx_buf *out, int *out_code,
                            cx_err *err);
/* The members of "backup" in answers. */
void cx_cli_put_backup(cx_json_list *json, const cx_backup_state *state);

#endif
