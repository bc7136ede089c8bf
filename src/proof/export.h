/*
 * export.h - what transparency-log tools read: C2SP checkpoints (signed notes), tlog-proofs, tiles,
 * COSE receipts (ledger.md §12).  Only for cortex-1; matrix-1 is CX_E_UNSUPPORTED
 * "SchemeUnsupported".
 *
 * Nothing here signs.  Functions hand out the bytes to sign and take signatures back.
 */
#ifndef CX_PROOF_EXPORT_H
#define CX_PROOF_EXPORT_H

#include "proof/proof.h"

/* --- signed notes and checkpoints ------------------------------------------------------------ */

#define CX_NOTE_SIZE_MAX (UINT32_C(1) << 20)
#define CX_NOTE_SIGNATURES_MAX 100
#define CX_NOTE_KEYS_MAX 64

enum { CX_VKEY_NOTE = 1, CX_VKEY_COSIGNATURE = 4 };

/* A verifier key: name+hex(keyid)+base64(algorithm ‖ key). */
typedef struct cx_vkey {
    cx_str name;
    uint8_t key_id[4];
    uint8_t algorithm; /* CX_VKEY_NOTE (Ed25519) or CX_VKEY_COSIGNATURE */
    cx_pubkey key;
} cx_vkey;

/* CX_E_FORMAT "BadKey", also when the key id is not that of the key.  The name is borrowed. */
CX_RESULT cx_vkey_parse(cx_str text, cx_vkey *out, cx_err *err);
void cx_vkey_make(cx_str name, uint8_t algorithm, const cx_pubkey *key, cx_vkey *out);
void cx_vkey_add(const cx_vkey *vkey, cx_buf *out);

typedef struct cx_checkpoint {
    cx_str origin;
    uint64_t size;
    cx_digest root;
} cx_checkpoint;

/* Non-empty UTF-8 without spaces (Unicode's), controls or '+'; the same for the names of keys. */
bool cx_checkpoint_origin_ok(cx_str origin);

/*
 * The origin of a journal whose actor's name no origin can hold (spaces, '+'): the whole SHA-256 of
 * the name, in hex, under a prefix that is reserved: no log is given such a name, and the default
 * "HOME/ACTOR" has a '/' that this form has not (decision 0014).
 */
#define CX_ORIGIN_HASHED "actor-sha256:"
#define CX_ORIGIN_HASHED_SIZE (sizeof CX_ORIGIN_HASHED + 64) /* with a terminator */
void cx_origin_hashed(cx_str actor, char out[CX_ORIGIN_HASHED_SIZE]);
bool cx_origin_reserved(cx_str origin);
/* Whether the origin says that it is this actor's journal: entries do not name their actor. */
bool cx_origin_names_actor(cx_str origin, cx_str actor);
/* What a note says, its signatures not looked at; CX_E_FORMAT "BadNote".  The origin is borrowed.
 * *out_text (may be NULL) is what was signed. */
CX_RESULT cx_checkpoint_parse(cx_bytes note, cx_checkpoint *out, cx_bytes *out_text, cx_err *err);
/* The text: origin, size, root, one a line.  This is what is signed. */
void cx_checkpoint_text(const cx_checkpoint *checkpoint, cx_buf *out);
/* Text, empty line, one signature line. */
void cx_checkpoint_note(const cx_checkpoint *checkpoint, const cx_vkey *signer,
                        const cx_signature *signature, cx_buf *out);
/* "cosignature/v1\ntime <t>\n" ‖ text: what a witness signs. */
void cx_cosignature_text(const cx_checkpoint *checkpoint, uint64_t time_s, cx_buf *out);

typedef struct cx_note_check {
    const cx_vkey *keys;
    size_t key_count;
    /* A checkpoint counts as signed when its origin's own key (type 1) signed it and at least this
     * many different cosigners did: cosigners with the same public key are one. */
    size_t cosigners_required;
} cx_note_check;

typedef struct cx_note_result {
    cx_checkpoint checkpoint;
    size_t signed_by_origin; /* good signatures by known note keys */
    size_t cosigned;         /* good cosignatures by known keys */
    size_t unknown;          /* signature lines by keys we do not know: ignored */
} cx_note_result;

/*
 * Findings, all broken: "BadNote" (not the format), "SignatureInvalid" (of a known key),
 * "NotSigned" (too few good ones).  *out is written unless it is BadNote.
 */
CX_RESULT cx_note_verify(cx_bytes note, const cx_note_check *check, const cx_alloc *alloc,
                         cx_note_result *out, cx_finding *out_finding, cx_err *err);

/* The signature lines after the empty line of a note whose text is not a checkpoint: *out_good
 * different keys given signed `text`.  Findings: "BadNote", "SignatureInvalid", "NotSigned". */
CX_RESULT cx_note_check_signatures(cx_bytes text, cx_str signatures, const cx_note_check *check,
                                   const cx_alloc *alloc, size_t *out_good, size_t *out_unknown,
                                   cx_finding *out_finding, cx_err *err);
/* The name in the first of them; empty when there is none. */
cx_str cx_note_first_signer(cx_str signatures);
/* One such line. */
void cx_note_add_signature(const cx_vkey *signer, const cx_signature *signature, cx_buf *out);

/* --- tlog-proof ------------------------------------------------------------------------------ */

void cx_tlog_proof_encode(uint64_t index, const cx_digest *path, size_t path_count, cx_bytes note,
                          cx_buf *out);
typedef struct cx_tlog_proof {
    uint64_t index;
    const cx_digest *path;
    size_t path_count;
    cx_bytes note;
} cx_tlog_proof;
/* CX_E_FORMAT "BadProof"; the note in it is not read. */
CX_RESULT cx_tlog_proof_decode(cx_bytes bytes, cx_arena *arena, cx_tlog_proof *out, cx_err *err);
/* leaf_hash is the RFC 6962 log entry: level 0 is H(00 ‖ leaf_hash).  Findings: "BadProof", those
 * of the note, "ProofMalformed", "RootMismatch". */
CX_RESULT cx_tlog_proof_verify(cx_bytes bytes, const cx_digest *leaf_hash,
                               const cx_note_check *check, cx_arena *arena, cx_note_result *out,
                               cx_finding *out_finding, cx_err *err);

/* --- tiles ----------------------------------------------------------------------------------- */

#define CX_TILE_WIDTH 256

/* "tile/0/x001/x234/067" or, narrower than 256, with ".p/W"; level < 0 = "tile/entries/...". */
void cx_tile_path(int level, uint64_t index, unsigned width, cx_buf *out);
/* Hashes of a tile: 256, or fewer at the right edge; of the tree at `size`.  `scheme` is the
 * tree's.  CX_E_NOT_FOUND "OutOfRange" for a tile that the tree does not have. */
CX_RESULT cx_tile_hashes(cx_scheme scheme, cx_mmr *mmr, uint64_t size, unsigned level,
                         uint64_t index, cx_buf *out, unsigned *out_width, cx_err *err);
CX_RESULT cx_tile_entries(cx_scheme scheme, cx_mmr *mmr, uint64_t size, uint64_t index, cx_buf *out,
                          unsigned *out_width, cx_err *err);

/* --- COSE receipts (RFC 9942) ---------------------------------------------------------------- */

/* What is signed, Sig_structure with the root as detached payload. */
void cx_receipt_to_sign(const uint8_t key_id[4], const cx_digest *root, cx_buf *out);
/* CX_E_USAGE "ReceiptTooSmall": the format has no empty path, so a journal of one entry has no
 * receipt.  On any error `out` is as it was. */
CX_RESULT cx_receipt_inclusion(const uint8_t key_id[4], const cx_inclusion *proof,
                               const cx_signature *signature, cx_buf *out, cx_err *err);
CX_RESULT cx_receipt_consistency(const uint8_t key_id[4], const cx_consistency *proof,
                                 const cx_signature *signature, cx_buf *out, cx_err *err);

typedef struct cx_receipt {
    bool is_consistency;
    uint8_t key_id[4];
    uint64_t size;  /* of the tree; of the newer one */
    uint64_t first; /* the leaf's index; size of the older tree */
    const cx_digest *path;
    size_t path_count;
    cx_signature signature;
} cx_receipt;
/* CX_E_FORMAT "BadReceipt": only the bytes that we would write, one proof, no other headers. */
CX_RESULT cx_receipt_decode(cx_bytes bytes, cx_arena *arena, cx_receipt *out, cx_err *err);

typedef struct cx_receipt_check {
    const cx_vkey *key;
    const cx_digest *leaf_hash;    /* of an inclusion receipt */
    const cx_journal_point *older; /* of a consistency receipt */
    const cx_journal_point *newer; /* NULL for inclusion: the root that the path leads to */
} cx_receipt_check;
/* Findings: "BadReceipt", "NoLeaf", "NoRoot" (indeterminate), "KeyMismatch", "ProofMalformed",
 * "SizeMismatch", "RootMismatch", "SignatureInvalid". */
CX_RESULT cx_receipt_verify(cx_bytes receipt, const cx_receipt_check *check, cx_arena *arena,
                            cx_finding *out, cx_err *err);

#endif
