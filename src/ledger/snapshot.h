/*
 * snapshot.h - manifests, seals and proofs of the state (ledger.md §9, §10).
 *
 * Nothing here signs: cx_snapshot_to_sign returns the bytes to sign, cx_snapshot_seal accepts the
 * signature.
 */
#ifndef CX_LEDGER_SNAPSHOT_H
#define CX_LEDGER_SNAPSHOT_H

#include "ledger/home.h"
#include "proof/api.h"

/* Makes a manifest of one consistent view.  Adds no entry and changes no root.  Its texts live in
 * the arena. */
CX_RESULT cx_snapshot_make(cx_home *home, cx_str actor, cx_str trigger, int64_t now_ns,
                           cx_arena *arena, cx_manifest *out, cx_err *err);
/* CX_E_NOT_FOUND "SnapshotNotFound". */
CX_RESULT cx_snapshot_get(cx_home *home, cx_str actor, uint64_t seq, cx_arena *arena,
                          cx_manifest *out, cx_bytes *out_bytes, cx_err *err);
CX_RESULT cx_snapshot_list(cx_home *home, cx_str actor, cx_arena *arena, const cx_manifest **out,
                           size_t *out_count, cx_err *err);
/* The newest retained one with that OverallRoot; indexed. */
CX_RESULT cx_snapshot_by_root(cx_home *home, cx_str actor, const cx_digest *overall_root,
                              cx_arena *arena, cx_manifest *out, cx_bytes *out_bytes, cx_err *err);
/* "cortex.manifest.v1" ‖ body: the bytes to sign. */
CX_RESULT cx_snapshot_to_sign(cx_home *home, cx_str actor, uint64_t seq, cx_buf *out, cx_err *err);
/* BadSignature (CX_E_DENIED), AlreadySealed (CX_E_EXISTS). */
CX_RESULT cx_snapshot_seal(cx_home *home, cx_str actor, uint64_t seq, cx_str signed_by,
                           const cx_signature *signature, const cx_pubkey *key, cx_str by,
                           int64_t now_ns, cx_err *err);
CX_RESULT cx_snapshot_drop(cx_home *home, cx_str actor, uint64_t seq, cx_str by, int64_t now_ns,
                           cx_err *err);

/* What to prove: ids of memories, or edges. */
typedef struct cx_proof_request {
    cx_namespace name_space;
    const cx_id *ids;
    size_t id_count;
    const cx_edge *edges; /* only type, src and dst are used */
    size_t edge_count;
    bool compact; /* a MultiProof of schema 3, whose keys ascend; cortex-1 only */
} cx_proof_request;

typedef struct cx_state_proof {
    cx_multiproof proof;
    cx_bytes bytes; /* the container */
    cx_bytes manifest;
    const cx_bytes *leaves; /* canonical records, one for each key (empty: absent or erased) */
    /* compact proofs: key i answers request order[i]; NULL = in request order */
    const size_t *order;
} cx_state_proof;

/* The index in the request that key i answers. */
static inline size_t cx_state_proof_asked(const cx_state_proof *proof, size_t i)
{
    return proof->order == NULL ? i : proof->order[i];
}

/* Proves at the current tree; ManifestRootMismatch (CX_E_CONFLICT) when its root is not the
 * manifest's. EmptyProof, InvalidArgument (a key twice), SchemeUnsupported (compact in matrix-1).
 */
CX_RESULT cx_proof_now(cx_home *home, cx_str actor, const cx_proof_request *request,
                       uint64_t snapshot_seq, cx_arena *arena, cx_state_proof *out, cx_err *err);
/* Proves at a retained snapshot. */
CX_RESULT cx_proof_at(cx_home *home, cx_str actor, const cx_proof_request *request,
                      uint64_t snapshot_seq, cx_arena *arena, cx_state_proof *out, cx_err *err);

/*
 * Fills snapshot_hash and multiproof of a scope whose actor and include are set: from the snapshot
 * `at`, or the newest when it is NULL.  EmptyInclude, SnapshotNotFound, NotFound (an id that is not
 * in the snapshot).
 */
CX_RESULT cx_scope_pin(cx_home *home, cx_scope *scope, const uint64_t *at, cx_arena *arena,
                       uint64_t *out_snapshot, cx_err *err);

/* OutOfRange (CX_E_NOT_FOUND).  `size` 0 = the current size. */
CX_RESULT cx_proof_journal(cx_home *home, cx_str actor, uint64_t index, uint64_t size,
                           bool with_entry, cx_arena *arena, cx_inclusion *out, cx_digest *out_root,
                           cx_err *err);
CX_RESULT cx_proof_consistency(cx_home *home, cx_str actor, uint64_t size1, uint64_t size2,
                               cx_arena *arena, cx_consistency *out, cx_digest *out_root1,
                               cx_digest *out_root2, cx_err *err);

#endif
