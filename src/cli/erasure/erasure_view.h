/*
 * erasure_view.h - what `cortex erase` and `cortex retention apply` share: planning, carrying out,
 * showing, and the receipt.
 */
#ifndef CX_CLI_ERASURE_VIEW_H
#define CX_CLI_ERASURE_VIEW_H

#include "cli/ledger/ledger.h"
#include "cli/signer.h"
#include "erasure/api.h"

#define CX_CLI_OPTION_DRY_RUN                                                     \
    CX_CLI_OPT_FLAG("dry-run", 0,                                                 \
                    "Show what would be destroyed and what a hold keeps; change " \
                    "nothing.")
#define CX_CLI_OPTIONS_RECEIPT                                                              \
    CX_CLI_OPTIONS_SIGNER, CX_CLI_OPTION_OUTPUT("the receipt"),                             \
        CX_CLI_OPT("db", 0, CX_CLI_TEXT, "WHERE",                                           \
                   "The index, from which it is removed too: a file, or postgresql://...; " \
                   "default HOME/cirislens.db when there is one.")

typedef struct cx_cli_erasing {
    cx_erasure_filter filter;
    cx_cli_signer signer;
    bool has_signer;
} cx_cli_erasing;

/* The signer, and that the receipt can be written: before anything is destroyed. */
CX_RESULT cx_cli_erasing_prepare(cx_cli_ledger *l, cx_cli_erasing *erasing, cx_err *err);
/* Shows the plan with --dry-run, else destroys and answers; exit code 4 when a hold kept a part. */
CX_RESULT cx_cli_erasing_job(cx_cli_ledger *l, cx_cli_erasing *erasing, cx_err *err);
/* After an erasure: what links.db has of it goes, too; a note where it cannot. */
void cx_cli_forget_links(const cx_cli_ledger *l);
/* The receipt of a request of before, signed when there is a signer. */
CX_RESULT cx_cli_receipt_job(cx_cli_ledger *l, cx_cli_erasing *erasing, uint64_t seq, cx_err *err);

#endif
