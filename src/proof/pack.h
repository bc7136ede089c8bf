/*
 * pack.h - the proof pack: everything a state proof needs, in one file (docs/formats/proof.md).
 *
 * What was asked and what is claimed, the MultiProof, its manifest, and, when there are any, the
 * records that matrix-1 keeps apart from its proofs and the manifest's seal in the journal.  A pack
 * is what `cortex prove` writes and `cortex-verify` reads.  It proves nothing that its parts do not
 * prove, and trusts nothing: keys and roots come from the verifier.
 */
#ifndef CX_PROOF_PACK_H
#define CX_PROOF_PACK_H

#include "proof/proof.h"
#include "proof/uri.h"

#define CX_PACK_MAGIC "cortex.proof"
#define CX_PACK_QUESTION_SIZE_MAX 256

typedef struct cx_pack_question {
    cx_str uri;
    cx_membership claim;
} cx_pack_question;

typedef struct cx_pack {
    cx_scheme scheme;
    cx_bytes proof; /* a MultiProof */
    cx_bytes manifest;
    const cx_pack_question *questions; /* one a key, in the proof's order */
    size_t question_count;
    const cx_bytes *leaves; /* matrix-1: one a key, empty = not shown; else NULL */
    cx_bytes inclusion;     /* of the seal of this manifest, with its entry; empty = left out */
    cx_bytes checkpoint;    /* a signed note; empty = left out */
} cx_pack;

/* CX_E_LIMIT when longer than CX_PROOF_BYTES_MAX; on any error `out` is as it was. */
CX_RESULT cx_pack_encode(const cx_pack *pack, cx_buf *out, cx_err *err);
/* The container only; CX_E_FORMAT "NonCanonical". */
CX_RESULT cx_pack_decode(cx_bytes bytes, cx_arena *arena, cx_pack *out, cx_err *err);

/*
 * The state part: MultiProof against manifest, and every question answered as claimed.  Reasons of
 * cx_multiproof_verify, and "QuestionMismatch".  What is put in *out_proof borrows from the pack.
 */
CX_RESULT cx_pack_verify(const cx_pack *pack, cx_arena *arena, cx_multiproof *out_proof,
                         cx_manifest *out_manifest, cx_finding *out, cx_err *err);
/*
 * The journal part: the inclusion proof holds at `journal`, and its entry is the seal of this
 * manifest.  Reasons of cx_inclusion_verify, and "SealMismatch".
 */
CX_RESULT cx_pack_verify_seal(const cx_pack *pack, const cx_manifest *manifest,
                              const cx_journal_point *journal, cx_arena *arena, cx_finding *out,
                              cx_err *err);

#endif
