/*
 * checkpoint.h - signed checkpoints of a journal, shared by all commands that sign one.
 *
 *   S1  A checkpoint is signed only if it extends the one last signed under its origin, which is
 *       stored in the keys/ folder of the data directory.
 */
#ifndef CX_CLI_CHECKPOINT_H
#define CX_CLI_CHECKPOINT_H

#include "cli/ledger/ledger.h"
#include "cli/signer.h"

#define CX_CLI_OPTION_ORIGIN                                                                     \
    CX_CLI_OPT("origin", 0, CX_CLI_TEXT, "NAME",                                                 \
               "The name of the log; default the signing key's name, else the name of the data " \
               "directory's folder, '/', the actor.")

/* A checkpoint as people keep it: a signed note, or the three lines alone. */
typedef struct cx_cli_stored_checkpoint {
    cx_checkpoint checkpoint;
    cx_bytes bytes;
    bool is_note;
} cx_cli_stored_checkpoint;
/* CX_E_FORMAT "BadNote"; borrows from the bytes. */
CX_RESULT cx_cli_parse_checkpoint(cx_bytes bytes, cx_cli_stored_checkpoint *out, cx_err *err);
/* The same of a file. */
CX_RESULT cx_cli_read_checkpoint(cx_cli *cli, const char *path, cx_cli_stored_checkpoint *out,
                                 cx_err *err);

/* The origin that options and key (NULL = none) name, checked. */
CX_RESULT cx_cli_read_origin(cx_cli_ledger *l, const cx_cli_signer *signer, cx_str *out,
                             cx_err *err);

/* The actor's journal as it is now; CX_E_UNSUPPORTED "SchemeUnsupported". */
CX_RESULT cx_cli_checkpoint_now(cx_cli_ledger *l, cx_str origin, cx_checkpoint *out, cx_err *err);
/* CX_E_CONFLICT "Truncated" or "Forked" when the journal does not follow from `older`. */
CX_RESULT cx_cli_check_follows(cx_cli_ledger *l, const cx_checkpoint *older,
                               const cx_checkpoint *now, cx_consistency *out_proof, cx_err *err);
/* Appends the signed note (S1); the data directory must be open for writing. */
CX_RESULT cx_cli_checkpoint_sign(cx_cli_ledger *l, const cx_checkpoint *now, cx_cli_signer *signer,
                                 cx_buf *out, cx_err *err);
/* Replaces the stored note of the checkpoint signed last by one with more signatures. */
CX_RESULT cx_cli_checkpoint_store(cx_cli_ledger *l, const cx_checkpoint *now, cx_bytes note,
                                  cx_err *err);

#endif
