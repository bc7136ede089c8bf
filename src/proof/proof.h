/*
 * proof.h - proof containers: making their bytes, and checking them with nothing else at hand
 * (ledger.md §6 containers, §8, §9).
 *
 * Verifying never needs a data directory, a network or a clock.  A proof that is wrong is a verdict
 * (broken, with the reason's name), never an error; errors are only "out of memory" and the like.
 */
#ifndef CX_PROOF_PROOF_H
#define CX_PROOF_PROOF_H

#include "crypto/api.h"
#include "tree/api.h"
#include "proof/record.h"

#define CX_PROOF_KEYS_MAX 65536
#define CX_PROOF_BYTES_MAX (UINT32_C(64) << 20)
#define CX_PROOF_SIBLINGS_MAX 256

typedef enum cx_namespace {
    CX_NAMESPACE_EDGES,
    CX_NAMESPACE_MEMORIES,
    CX_NAMESPACE_ANY /* in questions: whichever the proof names; its reader must look */
} cx_namespace;
cx_str cx_namespace_name(cx_namespace name); /* "edges", "memories", "" */

/* Why a proof does not hold; stable names. */
typedef struct cx_finding {
    cx_verdict verdict;
    const char *reason; /* "RootMismatch", ...; NULL when it holds.  Static storage. */
    size_t key_index;   /* of the key it is about, SIZE_MAX = the whole */
    uint64_t offset;    /* in the bytes checked, CX_NO_OFFSET when there is none */
    char message[CX_ERR_MESSAGE_SIZE]; /* what, expected, found; empty when it holds */
} cx_finding;

typedef enum cx_membership { CX_MEMBER, CX_MEMBER_ERASED, CX_ABSENT } cx_membership;

/* One key of a MultiProof, expanded. */
typedef struct cx_proof_item {
    cx_smt_path path;   /* key, siblings, other */
    cx_bytes leaf;      /* the record's canonical bytes; empty when not shown */
    cx_membership kind; /* as claimed; true once the proof is verified */
} cx_proof_item;

typedef struct cx_multiproof {
    cx_scheme scheme;
    cx_str name_space; /* as written; "memories" or "edges" */
    bool compact;      /* schema 3: keys ascend, what follows from them is left out (§8.3) */
    cx_digest root;
    size_t count;
    const cx_proof_item *items; /* in the order asked; of a compact one in that of the keys */
} cx_multiproof;

/*
 * cortex-1: §8.1 with a pool, or compact, §8.3; matrix-1: §8.2 (the leaves are passed with it).
 * CX_E_USAGE with tag "InvalidArgument" for a key asked twice and, when compact, for keys that do
 * not ascend and paths that contradict; "EmptyProof" for no key; CX_E_LIMIT for too many;
 * CX_E_UNSUPPORTED "SchemeUnsupported" for a compact one of matrix-1.  On any error `out` is as it
 * was.
 */
CX_RESULT cx_multiproof_encode(const cx_multiproof *proof, cx_buf *out, cx_err *err);
/* Format only; CX_E_FORMAT "NonCanonical" or "ProofMalformed".  Siblings are expanded; those of a
 * compact proof are hashed for that, and are right only when it leads to its root. */
CX_RESULT cx_multiproof_decode(cx_bytes bytes, cx_arena *arena, cx_multiproof *out, cx_err *err);

typedef struct cx_multiproof_check {
    cx_namespace name_space; /* the caller expects it */
    bool require_members;    /* an absent key is then broken "NotMember" */
    const cx_bytes *leaves; /* matrix-1: records next to the proof, one a key (empty = not shown) */
    size_t leaf_count;      /* 0, or as many as there are keys */
    const cx_digest *state_root; /* what the root is compared with when there is no manifest */
} cx_multiproof_check;

/*
 * The whole of §8.1 "verify against a manifest", first failure wins, each step for all keys before
 * the next; any of the three schemas.  Bytes of both, as received; an empty manifest leaves out
 * what needs one.  What is put in *out_proof (may be NULL) borrows from the bytes and the arena;
 * its paths have no siblings. Every distinct node is hashed once.
 */
CX_RESULT cx_multiproof_verify(cx_bytes proof, cx_bytes manifest, const cx_multiproof_check *check,
                               cx_arena *arena, cx_multiproof *out_proof, cx_finding *out,
                               cx_err *err);

#define CX_INCLUSION_PATH_MAX 64
#define CX_CONSISTENCY_PATH_MAX 65

typedef struct cx_inclusion {
    cx_scheme scheme;
    uint64_t tree_size;
    uint64_t index;
    const cx_digest *path;
    size_t path_count;
    cx_bytes entry; /* empty = left out */
} cx_inclusion;

typedef struct cx_consistency {
    cx_scheme scheme;
    uint64_t size1;
    uint64_t size2;
    const cx_digest *path;
    size_t path_count;
} cx_consistency;

void cx_inclusion_encode(const cx_inclusion *proof, cx_buf *out);
CX_RESULT cx_inclusion_decode(cx_bytes bytes, cx_arena *arena, cx_inclusion *out, cx_err *err);
void cx_consistency_encode(const cx_consistency *proof, cx_buf *out);
CX_RESULT cx_consistency_decode(cx_bytes bytes, cx_arena *arena, cx_consistency *out, cx_err *err);

/*
 * A journal as its reader knows it.  The size matters: a cortex-1 root does not hold it, so that
 * without it a proof can be restated for another size that has a path of the same shape.
 */
#define CX_JOURNAL_SIZE_UNKNOWN UINT64_MAX
typedef struct cx_journal_point {
    uint64_t size;
    cx_digest root;
} cx_journal_point;

/*
 * `leaf_hash` may be NULL when the proof carries its entry; both given must agree.  An entry must
 * decode and have the index as its seq.  Reasons: NonCanonical, NoLeaf (indeterminate),
 * LeafMismatch, SizeMismatch, ProofMalformed, RootMismatch.
 */
CX_RESULT cx_inclusion_verify(cx_bytes proof, const cx_digest *leaf_hash,
                              const cx_journal_point *journal, cx_arena *arena, cx_finding *out,
                              cx_err *err);
/* The same without a journal to compare with: the size and root that the proof leads to. */
CX_RESULT cx_inclusion_leads_to(cx_bytes proof, const cx_digest *leaf_hash, cx_arena *arena,
                                cx_inclusion *out_proof, cx_journal_point *out_journal,
                                cx_finding *out, cx_err *err);
/* Reasons: NonCanonical, SizeMismatch, ProofMalformed, RootMismatch. */
CX_RESULT cx_consistency_verify(cx_bytes proof, const cx_journal_point *older,
                                const cx_journal_point *newer, cx_arena *arena, cx_finding *out,
                                cx_err *err);

/*
 * A manifest on its own: canonical, overall root from its parts; signature when a key is given.
 * Reasons: NonCanonical, OverallRootMismatch, NotSigned, SignatureInvalid.
 */
CX_RESULT cx_manifest_verify(cx_bytes manifest, const cx_pubkey *key, const cx_alloc *alloc,
                             cx_manifest *out_manifest, cx_finding *out, cx_err *err);
/* The signature alone: true when `key` signed "cortex.manifest.v1" ‖ body. */
CX_RESULT cx_manifest_signed_by(const cx_manifest *manifest, const cx_pubkey *key,
                                const cx_alloc *alloc, bool *out_good, cx_err *err);

#endif
