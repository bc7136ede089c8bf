/*
 * run_bundle.h - the archive of a run's bundle in the journal of its runs (decision 0056,
 * docs/formats/run-archive.md §4): entries run.bundle_part with its bytes, and one entry run.bundle
 * that says which they are, and what they are together.
 *
 *   B1  Bytes are given out only when all of them have the hash and the size that run.bundle says.
 *   B2  Of several entries run.bundle about a run the first counts.
 *   B3  The bytes are committed payloads, so they can be erased; run.bundle stays, and says what
 *       was there.  Runs share no parts: what is erased of one takes nothing from another.
 */
#ifndef CX_STORES_RUN_BUNDLE_H
#define CX_STORES_RUN_BUNDLE_H

#include "bundle/api.h"
#include "ledger/api.h"

#define CX_RUN_PART_BYTES ((size_t)1 << 20) /* of each part but the last, which may have less */
#define CX_RUN_PARTS_MAX 512
#define CX_RUN_STORED_BYTES_MAX ((uint64_t)CX_RUN_PARTS_MAX * CX_RUN_PART_BYTES)

/* Why stored bytes are not given out; tags of errors. */
#define CX_RUN_BUNDLE_ERASED "BundleErased"   /* CX_E_NOT_FOUND */
#define CX_RUN_BUNDLE_MISSING "BundleMissing" /* CX_E_NOT_FOUND: a part is not there */
#define CX_RUN_BUNDLE_CHANGED "BundleChanged" /* CX_E_FORMAT: the bytes have another hash */

typedef struct cx_run_part {
    uint64_t seq; /* of the entry in the same journal */
    cx_digest sha256;
    uint64_t size_bytes; /* 1 .. CX_RUN_PART_BYTES */
} cx_run_part;

/* What an entry run.bundle says.  Text is borrowed. */
typedef struct cx_run_stored {
    cx_str run_id, actor;
    uint64_t seq; /* of the entry */
    cx_digest sha256, manifest_sha256;
    uint64_t size_bytes; /* 1 .. CX_RUN_STORED_BYTES_MAX */
    const cx_run_part *parts;
    size_t part_count; /* 1 .. CX_RUN_PARTS_MAX */
} cx_run_stored;

/* What entries about a run's bundle have as their subject; those of its parts:
 * cx_run_part_subject. */
cx_id cx_run_stored_subject(cx_str run_id);

/* B2, in the journal `actor`; *out_found is false when there is none.  Memory from the arena.
 * CX_E_FORMAT "BundleChanged" for an entry of that kind that is not of the form. */
CX_RESULT cx_run_stored_find(cx_home *home, cx_str actor, cx_str run_id, cx_arena *arena,
                             cx_run_stored *out, bool *out_found, cx_err *err);
/* The number of an entry that has these bytes as a part of the run, not erased. */
CX_RESULT cx_run_part_find(cx_home *home, cx_str actor, cx_str run_id, const cx_run_part *part,
                           uint64_t *out_seq, bool *out_found, cx_err *err);
/* The payload of the entry. */
CX_RESULT cx_run_stored_write(const cx_run_stored *stored, cx_arena *arena, cx_buf *out,
                              cx_err *err);

/* B1: appends the archive's bytes.  Errors: the tags above; then nothing was appended. */
CX_RESULT cx_run_stored_read(cx_home *home, const cx_run_stored *stored, cx_buf *out, cx_err *err);

#endif
