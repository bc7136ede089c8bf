/*
 * seal.h - the last steps of a run (run.md §15, §17): append the seal to the ledger, make the files
 * read-only.
 */
#ifndef CX_BUNDLE_SEAL_H
#define CX_BUNDLE_SEAL_H

#include "bundle/bundle.h"

/* What a seal says of the bundle itself; text is borrowed. */
typedef struct cx_run_seal_about {
    cx_str run_id;
    const char *folder;                         /* of the bundle */
    cx_digest manifest_sha256, contract_sha256; /* of the files' bytes */
    uint64_t event_count;
    cx_str chain_head; /* 64 hex digits */
} cx_run_seal_about;

/* Appends the seal; returns when it is durable.  `out->index` and `out->in_ledger` are set. Without
 * a ledger (NULL) nothing is done: the bundle stays unsealed. */
CX_RESULT cx_run_seal_append(const cx_run_ledger *ledger, const cx_run_seal_about *about,
                             const cx_run_seal_facts *facts, cx_run_sealed *out, cx_err *err);
/* Files 0444, folders 0555, the bundle's own last.  `folder` is the one at `path`. */
CX_RESULT cx_run_seal_close(cx_file folder, const char *path, cx_err *err);

#endif
