/*
 * cortex/proof.h - making offline proofs of what a data directory contains, and checking them.
 *
 *     with the data directory                        anywhere, offline
 *     cx_proof_make_options make = ..INIT;           cx_proof_trust trust = CX_PROOF_TRUST_INIT;
 *     make.uris = &uri;                              trust.overall_root = &root;
 *     make.uri_count = 1;                            cx_proof_report *report;
 *     cx_owned proof;                                cx_proof_check(bytes, &trust, &report, &err);
 *     cx_proof_make(ledger, "andrew", &make,         cx_proof_report_summary(report)->verdict
 *                   &proof, &err);                   cx_proof_report_close(report);
 *     cx_owned_done(&proof);
 *
 * A proof rests on what its reader trusts: an overall root, a root of the journal, or a key that
 * signed one of them.  cx_proof_check accepts each of the proof formats and recognises which one it
 * is: proof packs, bare MultiProofs, manifests, inclusion and consistency proofs of journals, C2SP
 * checkpoints and tlog-proofs, COSE receipts.  A wrong proof is a verdict, never an error.
 *
 * § numbers refer to docs/formats/ledger.md; docs/formats/proof.md defines the pack.  Text
 * parameters as in cortex/journal.h.  Nothing here signs.  Thread-safe, except for closing.  C11
 * and C++ clean.
 */
#ifndef CORTEX_PROOF_H
#define CORTEX_PROOF_H

#include <cortex/journal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- making (§8, §9.1) ------------------------------------------------------------------------ */

/* One proof is about at most this many memories or edges. */
#define CX_PROOF_URIS_MAX 65536

typedef struct cx_proof_make_options {
    const char *const *uris; /* of memories, with their versions, or of edges; not of both */
    size_t uri_count;
    bool absent;         /* prove that none of them exists */
    bool fresh;          /* make a snapshot first (the ledger must be open for writing) */
    bool at;             /* prove the state of `snapshot`.  Without fresh and at: of the newest
                            snapshot, whose state must still be the present one */
    uint64_t snapshot;   /* when `at` */
    cx_bytes checkpoint; /* a signed note to include, which covers the snapshot's seal; empty =
                            none */
    bool compact; /* omit what can be derived from the rest (§8.3): a quarter of the size for
                            many keys; claims then come in the order of the keys */
} cx_proof_make_options;

#define CX_PROOF_MAKE_OPTIONS_INIT                         \
    {                                                      \
        NULL, 0, false, false, false, 0, {NULL, 0}, false, \
    }

/*
 * Makes a proof pack: the questions, the MultiProof, the manifest and, when the manifest was
 * sealed, its seal in the journal.  The pack is checked before it is returned.  CX_E_FORMAT
 * "BadURI"; CX_E_USAGE "EmptyProof", "InvalidArgument" (a name twice, memories and edges together);
 * CX_E_LIMIT; CX_E_NOT_FOUND "NoActor", "SnapshotNotFound"; CX_E_CONFLICT "ManifestRootMismatch"
 * (the state has changed since), "NotMember", "NotAbsent", "QuestionMismatch" (present in another
 * version), "NotSealed" or "Forked" (the checkpoint); CX_E_UNSUPPORTED "SchemeUnsupported"
 * (compact, with scheme matrix-1).
 */
CX_API CX_RESULT cx_proof_make(cx_ledger *ledger, const char *actor,
                               const cx_proof_make_options *options, cx_owned *out, cx_err *err);
/* Proves that entry `seq` is in the journal of the first `size` entries (0 = all); the proof
 * contains the entry.  CX_E_NOT_FOUND "OutOfRange", "NoActor". */
CX_API CX_RESULT cx_proof_make_entry(cx_ledger *ledger, const char *actor, uint64_t seq,
                                     uint64_t size, cx_owned *out, cx_err *err);
/* Proves that the journal of `older_size` entries is a prefix of that of `newer_size` (0 = all).
 * Errors as for cx_proof_make_entry. */
CX_API CX_RESULT cx_proof_make_consistency(cx_ledger *ledger, const char *actor,
                                           uint64_t older_size, uint64_t newer_size, cx_owned *out,
                                           cx_err *err);

/* --- checking --------------------------------------------------------------------------------- */

/* A journal's size and root as the reader knows them. */
typedef struct cx_proof_journal_root {
    uint64_t size; /* in entries; CX_PROOF_SIZE_UNKNOWN weakens the proof: give it when known */
    cx_digest root;
} cx_proof_journal_root;

#define CX_PROOF_SIZE_UNKNOWN UINT64_MAX

typedef enum cx_proof_require {
    CX_PROOF_REQUIRE_ANCHORED, /* indeterminate "NotAnchored" unless trusted input confirms it */
    CX_PROOF_REQUIRE_SIGNED,   /* indeterminate "NotSigned" unless a trusted key signed it */
    CX_PROOF_REQUIRE_SELF_CONSISTENT /* self-consistency is enough; anyone can forge that */
} cx_proof_require;

typedef enum cx_proof_expect {
    CX_PROOF_EXPECT_ANY,
    CX_PROOF_EXPECT_MEMBERS, /* every key is a member; else broken "NotMember" */
    CX_PROOF_EXPECT_ABSENT   /* every key is absent; else broken "NotAbsent" */
} cx_proof_expect;

/*
 * What the reader trusts and expects.  Every member is optional; a self-consistent proof that no
 * trusted input confirms is indeterminate (see cx_proof_require).
 */
typedef struct cx_proof_trust {
    const char *const
        *keys;        /* verifier keys (name+id+base64), or 64 hex digits of an Ed25519 key */
    size_t key_count; /* at most 64 */
    size_t cosigners_required;            /* of a checkpoint, in addition to its origin's key */
    const cx_digest *overall_root;        /* of the state */
    const cx_proof_journal_root *journal; /* of the (newer) journal; not for a bare checkpoint */
    const cx_proof_journal_root *older;
    cx_bytes checkpoint;        /* a signed note in place of `journal` .. */
    cx_bytes older_checkpoint;  /* .. and of `older` */
    cx_bytes manifest;          /* for a bare MultiProof */
    cx_bytes entry;             /* of an inclusion proof that does not contain its entry .. */
    const cx_digest *leaf_hash; /* .. or that entry's leaf hash */
    const char *name_space;     /* "memories" or "edges"; NULL = either */
    cx_proof_expect expect;
    cx_proof_require require;
    bool now_given; /* now_ns is set; otherwise a scope that expires is indeterminate "NoTime",
                       since this library reads no clock */
    int64_t now_ns; /* since 1970, UTC */
} cx_proof_trust;

#define CX_PROOF_TRUST_INIT                                                                   \
    {                                                                                         \
        NULL, 0, 0, NULL, NULL, NULL, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, NULL, NULL, \
            CX_PROOF_EXPECT_ANY, CX_PROOF_REQUIRE_ANCHORED, false, 0                          \
    }

typedef struct cx_proof_report cx_proof_report;

/* The kind of file, the verdict, and what the verdict rests on.  Borrowed from the report. */
typedef struct cx_proof_summary {
    cx_verdict verdict;
    const char *reason; /* "RootMismatch", ..: stable; NULL when it holds.  Static storage */
    cx_str message;     /* what was expected and found; empty when it holds */
    const char *kind;   /* pack multiproof manifest inclusion consistency checkpoint tlog_proof
                           receipt scope home unknown */
    const char *scheme; /* NULL when the file does not name one */
    bool anchored;      /* something the reader trusts confirms it */
    bool is_signed;     /* a trusted key signed it, directly or through the journal */
    size_t claim_count; /* of keys; see cx_proof_report_claim */
    size_t limit_count; /* of what is not proven; see cx_proof_report_limit */
    /* When has_manifest: the state that the proof is about.  A trusted overall root confirms the
     * state; actor, snapshot number and time are the signer's statement, good when is_signed. */
    bool has_manifest;
    cx_str actor;
    uint64_t snapshot;
    cx_digest overall_root;
    int64_t created_at_ns;
    /* When has_journal: the (newer) journal whose root the proof computes. */
    bool has_journal;
    cx_proof_journal_root journal;
    bool has_older;
    cx_proof_journal_root older;
    bool has_index;
    uint64_t index; /* of the entry */
} cx_proof_summary;

/*
 * Checks the bytes of one file.  Needs no data directory, network or clock, and writes nothing.
 * `trust` may be NULL.  The report copies what it needs: bytes and trust may be freed.  Errors:
 * CX_E_NOMEM, and about `trust` CX_E_USAGE "InvalidArgument" or CX_E_FORMAT "BadKey".
 */
CX_API CX_RESULT cx_proof_check(cx_bytes bytes, const cx_proof_trust *trust, cx_proof_report **out,
                                cx_err *err);
CX_API void cx_proof_report_close(cx_proof_report *report); /* NULL is accepted */
CX_API const cx_proof_summary *cx_proof_report_summary(const cx_proof_report *report);

typedef enum cx_proof_claim_kind {
    CX_PROOF_MEMBER,
    CX_PROOF_MEMBER_ERASED, /* a member whose content was erased */
    CX_PROOF_ABSENT
} cx_proof_claim_kind;

/* What is proven about one key; valid only when the verdict is CX_HOLDS. */
typedef struct cx_proof_claim {
    cx_str uri; /* empty in a bare MultiProof, which contains keys only */
    cx_proof_claim_kind kind;
    cx_digest key;   /* in the state tree */
    cx_bytes record; /* the Head or Edge, canonical CBOR; empty when it is not included */
} cx_proof_claim;

/* `index` < claim_count. */
CX_API void cx_proof_report_claim(const cx_proof_report *report, size_t index, cx_proof_claim *out);

/* A sentence about what is not proven; `index` < limit_count.  Static storage. */
CX_API const char *cx_proof_report_limit(const cx_proof_report *report, size_t index);

/* The report as cortex-verify prints it: one line of JSON, or lines of text (with hashes when
 * `details`).  `name` is the file name to print. */
CX_API CX_RESULT cx_proof_report_json(const cx_proof_report *report, const char *name,
                                      cx_owned *out, cx_err *err);
CX_API CX_RESULT cx_proof_report_text(const cx_proof_report *report, const char *name, bool details,
                                      cx_owned *out, cx_err *err);

/* --- checkpoints (§12; C2SP tlog-checkpoint, signed-note) ------------------------------------- */

/*
 * The journal as it is now.  Checkpoints exist for cortex-1 only: CX_E_UNSUPPORTED
 * "SchemeUnsupported".  CX_E_NOT_FOUND "NoActor".
 */
CX_API CX_RESULT cx_proof_checkpoint_now(cx_ledger *ledger, const char *actor,
                                         cx_proof_journal_root *out, cx_err *err);
/*
 * The text to sign with Ed25519, outside of this library: origin, size, root.  `origin` names the
 * log; spaces, control characters and '+' are CX_E_USAGE "InvalidArgument".  The signer must check
 * that the journal extends the one signed before (cx_proof_make_consistency).
 */
CX_API CX_RESULT cx_proof_checkpoint_text(const char *origin, const cx_proof_journal_root *journal,
                                          cx_owned *out, cx_err *err);
/* The signed note; the key's name is the origin.  CX_E_DENIED "BadSignature" when it is not a
 * signature of that text by that key.  cx_proof_check checks notes. */
CX_API CX_RESULT cx_proof_checkpoint_note(const char *origin, const cx_proof_journal_root *journal,
                                          const cx_pubkey *key, const cx_signature *signature,
                                          cx_owned *out, cx_err *err);
/* The verifier key as text, name+id+base64, for cx_proof_trust.keys and other tools. */
CX_API CX_RESULT cx_proof_key_text(const char *name, const cx_pubkey *key, cx_owned *out,
                                   cx_err *err);

#ifdef __cplusplus
}
#endif
#endif
