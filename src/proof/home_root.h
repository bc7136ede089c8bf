/*
 * home_root.h - one root over all actors of a data directory, and proofs that an actor's overall
 * root is in it (ledger.md §15, proof.md "Home proofs").
 *
 * A leaf is what one actor's ledger comes to; the home root is the RFC 6962 root of the leaves in
 * the order of the actors' first entries.  It is recorded in a journal of its own, whose checkpoint
 * is the checkpoint of the whole data directory.
 */
#ifndef CX_PROOF_HOME_ROOT_H
#define CX_PROOF_HOME_ROOT_H

#include "proof/proof.h"

/* The actor whose journal holds the home roots.  Nothing else may write under this name. */
#define CX_HOME_ROOT_ACTOR "home:root"
#define CX_HOME_ROOT_KIND "home.root"
#define CX_HOME_PROOF_MAGIC "cortex.home-proof"

typedef struct cx_home_leaf {
    cx_str actor;
    cx_scheme scheme;
    uint64_t size; /* entries of its journal */
    cx_digest overall;
} cx_home_leaf;

void cx_home_leaf_encode(const cx_home_leaf *leaf, cx_buf *out);
/* CX_E_FORMAT "NonCanonical"; the name borrows from the bytes. */
CX_RESULT cx_home_leaf_decode(cx_bytes bytes, cx_home_leaf *out, cx_err *err);
/* The leaf_hash of its canonical bytes. */
cx_digest cx_home_leaf_hash(cx_bytes leaf);

/* The payload of an entry home.root. */
typedef struct cx_home_root {
    uint64_t actors;
    uint64_t entries; /* of all these journals together */
    cx_digest root;
} cx_home_root;

void cx_home_root_encode(const cx_home_root *root, cx_buf *out);
CX_RESULT cx_home_root_decode(cx_bytes payload, cx_home_root *out, cx_err *err);

/* A home proof: this leaf is in the home root that is recorded in this journal. */
typedef struct cx_home_proof {
    cx_bytes leaf;
    uint64_t index;
    const cx_digest *path;
    size_t path_count;
    cx_bytes inclusion;  /* of the home.root entry, with that entry */
    cx_bytes checkpoint; /* a signed note of that journal; empty = left out */
} cx_home_proof;

void cx_home_proof_encode(const cx_home_proof *proof, cx_buf *out);
/* The container only; CX_E_FORMAT "NonCanonical". */
CX_RESULT cx_home_proof_decode(cx_bytes bytes, cx_arena *arena, cx_home_proof *out, cx_err *err);

/*
 * The leaf leads to the root that the entry records, and the entry to *out_journal.  Reasons:
 * NonCanonical, ProofMalformed, NotHomeRoot (the entry is of another kind), HomeRootMismatch, and
 * those of cx_inclusion_leads_to.  With `journal`, SizeMismatch and RootMismatch too.
 */
CX_RESULT cx_home_proof_verify(const cx_home_proof *proof, const cx_journal_point *journal,
                               cx_arena *arena, cx_home_leaf *out_leaf, cx_home_root *out_root,
                               cx_journal_point *out_journal, cx_finding *out, cx_err *err);

#endif
