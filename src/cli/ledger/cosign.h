/*
 * cosign.h - cosignatures of witnesses on a checkpoint (C2SP tlog-witness, tlog-cosignature).
 */
#ifndef CX_CLI_COSIGN_H
#define CX_CLI_COSIGN_H

#include "cli/ledger/checkpoint.h"

typedef struct cx_cli_witness_at {
    const char *url; /* without add-checkpoint */
    cx_vkey key;
} cx_cli_witness_at;

typedef struct cx_cli_witnesses {
    const cx_cli_witness_at *items;
    size_t count;
    size_t needed;
    size_t cosigned; /* set by cx_cli_cosign */
} cx_cli_witnesses;

/* --witness URL=KEY and --witnesses N. */
CX_RESULT cx_cli_witnesses_read(cx_cli_ledger *l, cx_cli_witnesses *out, cx_err *err);
/*
 * Asks each, appends the good cosignatures to the signed note, and stores it as the checkpoint
 * signed last.  A witness that does not answer is complained of; CX_E_IO "NotCosigned" when fewer
 * cosigned than are needed.
 */
CX_RESULT cx_cli_cosign(cx_cli_ledger *l, cx_cli_witnesses *witnesses, const cx_checkpoint *now,
                        cx_buf *note, cx_err *err);

#endif
