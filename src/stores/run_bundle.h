/*
 * run_bundle.h - the archive of a run's bundle, stored for other machines
 * (docs/formats/run-archive.md): in the journal of its runs (decision 0056), as entries
 * run.bundle_part with its bytes and one entry run.bundle that says which they are; or sealed in an
 * object store (decision 0060, run_object.h), as an entry run.bundle_part with the key and one
 * entry run.bundle_object that says which object it is.
 *
 *   B1  Bytes are given out only when all of them have the hash and the size that the entry says.
 *   B2  Of several entries run.bundle and run.bundle_object about a run the first counts.
 *   B3  The bytes, or the key, are committed payloads, so they can be erased; the entry stays, and
 *       says what was there.  Runs share no parts, keys or objects: what is erased of one takes
 *       nothing from another.
 */
#ifndef CX_STORES_RUN_BUNDLE_H
#define CX_STORES_RUN_BUNDLE_H

#include "bundle/api.h"
#include "ledger/api.h"
#include "stores/object_store.h"

#define CX_RUN_PART_BYTES ((size_t)1 << 20) /* of each part but the last, which may have less */
#define CX_RUN_PARTS_MAX 512
#define CX_RUN_STORED_BYTES_MAX ((uint64_t)CX_RUN_PARTS_MAX * CX_RUN_PART_BYTES)

/* Why stored bytes are not given out; tags of errors. */
#define CX_RUN_BUNDLE_ERASED "BundleErased"   /* CX_E_NOT_FOUND */
#define CX_RUN_BUNDLE_MISSING "BundleMissing" /* CX_E_NOT_FOUND: a part is not there */
#define CX_RUN_BUNDLE_CHANGED "BundleChanged" /* CX_E_FORMAT: the bytes have another hash */
#define CX_RUN_BUNDLE_UNREACHABLE CX_OBJECT_UNREACHABLE /* CX_E_NOT_FOUND: it is not known */

typedef struct cx_run_part {
    uint64_t seq; /* of the entry in the same journal */
    cx_digest sha256;
    uint64_t size_bytes; /* 1 .. CX_RUN_PART_BYTES */
} cx_run_part;

/* The archive, sealed, as an object. */
typedef struct cx_run_object {
    cx_digest sha256;              /* of the object, which is its name, too */
    uint64_t size_bytes;           /* .. CX_BOX_EXTRA more than the archive */
    uint64_t key_seq;              /* the entry with its key, in the same journal */
    cx_str endpoint, bucket, name; /* where it was put; for people, never used to find it */
} cx_run_object;

/* What an entry run.bundle or run.bundle_object says.  Text is borrowed. */
typedef struct cx_run_stored {
    cx_str run_id, actor;
    uint64_t seq; /* of the entry */
    cx_digest sha256, manifest_sha256;
    uint64_t size_bytes; /* 1 .. CX_RUN_STORED_BYTES_MAX */
    bool in_object;
    cx_run_object object;     /* then; and there are no parts */
    const cx_run_part *parts; /* else */
    size_t part_count;        /* 1 .. CX_RUN_PARTS_MAX */
} cx_run_stored;

/* What entries about a run's bundle have as their subject; those of its parts:
 * cx_run_part_subject. */
cx_id cx_run_stored_subject(cx_str run_id);

/* B2, in the journal `actor`; *out_found is false when there is none.  Memory from the arena.
 * CX_E_FORMAT "BundleChanged" for an entry of these kinds that is not of the form. */
CX_RESULT cx_run_stored_find(cx_home *home, cx_str actor, cx_str run_id, cx_arena *arena,
                             cx_run_stored *out, bool *out_found, cx_err *err);
/* All of them, one a call: *at is 0 at first. */
CX_RESULT cx_run_stored_next(cx_home *home, cx_str actor, cx_str run_id, size_t *at,
                             cx_arena *arena, cx_run_stored *out, bool *out_found, cx_err *err);
/* The number of an entry that has these bytes as a part of the run, not erased. */
CX_RESULT cx_run_part_find(cx_home *home, cx_str actor, cx_str run_id, const cx_run_part *part,
                           uint64_t *out_seq, bool *out_found, cx_err *err);
/* The kind of the entry, and its payload. */
cx_str cx_run_stored_kind(const cx_run_stored *stored);
CX_RESULT cx_run_stored_write(const cx_run_stored *stored, cx_arena *arena, cx_buf *out,
                              cx_err *err);

/* B1: appends the archive's bytes.  `store` NULL: none is known here.  Errors: the tags above; then
 * nothing was appended. */
CX_RESULT cx_run_stored_read(cx_home *home, const cx_run_stored *stored,
                             const cx_object_store *store, cx_buf *out, cx_err *err);

#endif
