/*
 * cortex/proof.h - showing somebody without the home what is in it, and checking such a proof.
 *
 *     with the home                                  anywhere, with nothing else at hand
 *     cx_proof_make_options make = ..INIT;           cx_proof_trust trust = CX_PROOF_TRUST_INIT;
 *     make.uris = &uri;                              trust.overall_root = &root;
 *     make.uri_count = 1;                            cx_proof_report *report;
 *     cx_owned proof;                                cx_proof_check(bytes, &trust, &report, &err);
 *     cx_proof_make(ledger, "andrew", &make,         cx_proof_report_summary(report)->verdict
 *                   &proof, &err);                   cx_proof_report_close(report);
 *     cx_owned_done(&proof);
 *
 * A proof rests on what its reader trusts: an overall root, a root of the journal, or a key whose
 * holder signed one of them.  cx_proof_check takes any file of ours and says what it is: proof
 * packs, bare MultiProofs, manifests, inclusion and consistency proofs of journals, C2SP
 * checkpoints and tlog-proofs, COSE receipts.  A wrong proof is a verdict, never an error.
 *
 * § numbers are of docs/formats/ledger.md; the pack is docs/formats/proof.md.  Text parameters as
 * in cortex/journal.h.  Nothing here signs.  Thread-safe but for closing.  C11 and C++ clean.
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
    bool absent;         /* prove that none of them is there */
    bool fresh;          /* make a snapshot first (needs a home open for writing) */
    bool at;             /* prove the state of `snapshot`.  Neither: the newest one's, which must */
    uint64_t snapshot;   /* still be the present state */
    cx_bytes checkpoint; /* a signed note to put in, by which the snapshot's seal is trusted; empty
                            = none */
    bool compact;        /* leave out of it what follows from the rest (§8.3), a quarter of a proof
                            of many; the claims come in the order of the keys */
} cx_proof_make_options;

#define CX_PROOF_MAKE_OPTIONS_INIT                         \
    {                                                      \
        NULL, 0, false, false, false, 0, {NULL, 0}, false, \
    }

/*
 * The pack: what was asked, the MultiProof, the manifest, and the manifest's seal in the journal
 * when it was sealed.  It has been checked before it is given out.  CX_E_FORMAT "BadURI";
 * CX_E_USAGE "EmptyProof", "InvalidArgument" (a name twice, memories and edges together);
 * CX_E_LIMIT; CX_E_NOT_FOUND "NoActor", "SnapshotNotFound"; CX_E_CONFLICT "ManifestRootMismatch"
 * (the state has moved on), "NotMember", "NotAbsent", "QuestionMismatch" (there in another
 * version), "NotSealed" or "Forked" (the checkpoint); CX_E_UNSUPPORTED "SchemeUnsupported"
 * (compact, and the home is of matrix-1).
 */
CX_API CX_RESULT cx_proof_make(cx_ledger *ledger, const char *actor,
                               const cx_proof_make_options *options, cx_owned *out, cx_err *err);
/* That entry `seq` is in the journal of the first `size` entries (0 = all); the entry is in the
 * proof.  CX_E_NOT_FOUND "OutOfRange", "NoActor". */
CX_API CX_RESULT cx_proof_make_entry(cx_ledger *ledger, const char *actor, uint64_t seq,
                                     uint64_t size, cx_owned *out, cx_err *err);
/* That the journal of `older_size` entries is the beginning of that of `newer_size` (0 = all). */
CX_API CX_RESULT cx_proof_make_consistency(cx_ledger *ledger, const char *actor,
                                           uint64_t older_size, uint64_t newer_size, cx_owned *out,
                                           cx_err *err);

/* --- checking --------------------------------------------------------------------------------- */

/* A journal as its reader knows it. */
typedef struct cx_proof_journal_root {
    uint64_t size; /* CX_PROOF_SIZE_UNKNOWN weakens what is proven: take the size when you can */
    cx_digest root;
} cx_proof_journal_root;

#define CX_PROOF_SIZE_UNKNOWN UINT64_MAX

typedef enum cx_proof_require {
    CX_PROOF_REQUIRE_ANCHORED, /* indeterminate "NotAnchored" unless something given bears it out */
    CX_PROOF_REQUIRE_SIGNED,   /* indeterminate "NotSigned" unless a key given signed it */
    CX_PROOF_REQUIRE_SELF_CONSISTENT /* agreeing with itself is enough, which anybody can arrange */
} cx_proof_require;

typedef enum cx_proof_expect {
    CX_PROOF_EXPECT_ANY,
    CX_PROOF_EXPECT_MEMBERS, /* all that was asked is there; else broken "NotMember" */
    CX_PROOF_EXPECT_ABSENT   /* nothing of it is; else broken "NotAbsent" */
} cx_proof_expect;

/*
 * What the reader trusts and asks.  All of it may be left out; a proof that agrees with itself and
 * rests on nothing given is indeterminate then (see cx_proof_require).
 */
typedef struct cx_proof_trust {
    const char *const
        *keys;        /* verifier keys (name+id+base64), or 64 hex digits of an Ed25519 key */
    size_t key_count; /* at most 64 */
    size_t cosigners_required;            /* of a checkpoint, besides its origin's own key */
    const cx_digest *overall_root;        /* of the state */
    const cx_proof_journal_root *journal; /* of the (newer) journal; not for a bare checkpoint */
    const cx_proof_journal_root *older;
    cx_bytes checkpoint;        /* a signed note in place of `journal` .. */
    cx_bytes older_checkpoint;  /* .. and of `older` */
    cx_bytes manifest;          /* for a bare MultiProof */
    cx_bytes entry;             /* what an inclusion proof is about, when it does not say so .. */
    const cx_digest *leaf_hash; /* .. or its hash */
    const char *name_space;     /* "memories" or "edges"; NULL = either */
    cx_proof_expect expect;
    cx_proof_require require;
    bool now_given; /* whether the next is the time; without it a scope that ends is indeterminate
                       "NoTime", since this library reads no clock */
    int64_t now_ns; /* since 1970, UTC */
} cx_proof_trust;

#define CX_PROOF_TRUST_INIT                                                                   \
    {                                                                                         \
        NULL, 0, 0, NULL, NULL, NULL, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, NULL, NULL, \
            CX_PROOF_EXPECT_ANY, CX_PROOF_REQUIRE_ANCHORED, false, 0                          \
    }

typedef struct cx_proof_report cx_proof_report;

/* What it is, whether it holds, what that rests on.  All borrowed from the report. */
typedef struct cx_proof_summary {
    cx_verdict verdict;
    const char *reason; /* "RootMismatch", ..: stable; NULL when it holds.  Static storage */
    cx_str message;     /* expected, found; empty when it holds */
    const char *kind;   /* pack multiproof manifest inclusion consistency checkpoint tlog_proof
                           receipt scope unknown */
    const char *scheme; /* NULL when the file does not say */
    bool anchored;      /* something the reader trusts bears it */
    bool is_signed;     /* a trusted key signed it, directly or through the journal */
    size_t claim_count; /* of what was asked */
    size_t limit_count; /* of what is not proven, see cx_proof_report_limit */
    /* When has_manifest: the state that the proof speaks of.  An overall root that is trusted bears
     * the state; who, which snapshot and when are the signer's word: true when is_signed. */
    bool has_manifest;
    cx_str actor;
    uint64_t snapshot;
    cx_digest overall_root;
    int64_t created_at_ns;
    /* When has_journal: the (newer) journal that the proof leads to. */
    bool has_journal;
    cx_proof_journal_root journal;
    bool has_older;
    cx_proof_journal_root older;
    bool has_index;
    uint64_t index; /* of the entry */
} cx_proof_summary;

/*
 * Checks the bytes of one file; no home, no network, no clock, and nothing is written.  `trust` may
 * be NULL.  The report keeps what it needs: bytes and trust may go.  Errors: CX_E_NOMEM, and about
 * `trust` CX_E_USAGE "InvalidArgument" or CX_E_FORMAT "BadKey".
 */
CX_API CX_RESULT cx_proof_check(cx_bytes bytes, const cx_proof_trust *trust, cx_proof_report **out,
                                cx_err *err);
CX_API void cx_proof_report_close(cx_proof_report *report); /* NULL is fine */
CX_API const cx_proof_summary *cx_proof_report_summary(const cx_proof_report *report);

typedef enum cx_proof_claim_kind {
    CX_PROOF_MEMBER,
    CX_PROOF_MEMBER_ERASED, /* it is there; its content was destroyed */
    CX_PROOF_ABSENT
} cx_proof_claim_kind;

/* What is proven of one thing asked; true only when the verdict is CX_HOLDS. */
typedef struct cx_proof_claim {
    cx_str uri; /* empty in a bare MultiProof, which does not say */
    cx_proof_claim_kind kind;
    cx_digest key;   /* in the state tree */
    cx_bytes record; /* the Head or Edge, canonical CBOR; empty when it is not shown */
} cx_proof_claim;

/* `index` < claim_count. */
CX_API void cx_proof_report_claim(const cx_proof_report *report, size_t index, cx_proof_claim *out);

/* What is not proven, for people; `index` < limit_count.  Static storage. */
CX_API const char *cx_proof_report_limit(const cx_proof_report *report, size_t index);

/* The report as cortex-verify prints it, one line of JSON, or lines for people (`details`: hashes
 * too).  `name` is what the file is called there. */
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
 * log; text without spaces, controls and '+': CX_E_USAGE "InvalidArgument".  Whoever signs must
 * make sure that it follows from what was signed before (cx_proof_make_consistency).
 */
CX_API CX_RESULT cx_proof_checkpoint_text(const char *origin, const cx_proof_journal_root *journal,
                                          cx_owned *out, cx_err *err);
/* The signed note; the key's name is the origin.  CX_E_DENIED "BadSignature" when it is not the
 * key's over that text.  cx_proof_check checks notes. */
CX_API CX_RESULT cx_proof_checkpoint_note(const char *origin, const cx_proof_journal_root *journal,
                                          const cx_pubkey *key, const cx_signature *signature,
                                          cx_owned *out, cx_err *err);
/* The verifier key, for cx_proof_trust.keys and other tools: name+id+base64. */
CX_API CX_RESULT cx_proof_key_text(const char *name, const cx_pubkey *key, cx_owned *out,
                                   cx_err *err);

#ifdef __cplusplus
}
#endif
#endif
