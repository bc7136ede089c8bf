/*
 * mmr.h - the journal tree: a Merkle mountain range whose root is the RFC 6962 tree hash
 * (ledger.md §6).
 *
 * Roots and proofs of every past size stay available.  A tree is in memory (cx_mmr_open): appending
 * only stores the leaf; interior nodes are hashed in lanes when a root or a proof is asked for.  Or
 * one node of 256 is kept somewhere, and what lies between is hashed again for each question
 * (cx_mmr_open_kept): then a tree of any size needs no memory and no time to open.
 * Not thread-safe: asking for a root changes the object.
 */
#ifndef CX_TREE_MMR_H
#define CX_TREE_MMR_H

#include "base/api.h"
#include "tree/scheme.h"

#define CX_MMR_PATH_MAX 65 /* hashes in a consistency path; an inclusion path has at most 64 */

typedef struct cx_mmr cx_mmr;

typedef struct cx_mmr_path {
    size_t count;
    cx_digest hashes[CX_MMR_PATH_MAX]; /* leaf first */
} cx_mmr_path;

CX_RESULT cx_mmr_open(cx_scheme scheme, const cx_alloc *alloc, cx_mmr **out, cx_err *err);
void cx_mmr_close(cx_mmr *mmr);

/*
 * The right edge of a tree: all that is needed to append to it, and its root.
 * peaks[i] is the root of the perfect subtree of the i-th binary digit of `size` that is 1, the
 * highest first.
 */
typedef struct cx_mmr_edge {
    uint64_t size; /* leaves */
    CX_VEC(cx_digest) peaks;
} cx_mmr_edge;

/* A node of height 8 * level that an append made whole: it covers the leaves from
 * number << 8 * level on.  It never changes, and is what the keeper keeps. */
typedef struct cx_mmr_fold {
    unsigned level; /* at least 1 */
    uint64_t number;
    cx_digest hash;
} cx_mmr_fold;

#define CX_MMR_FOLDS_MAX 7 /* that one leaf can make whole */

/* Appends a leaf and says which folds that made whole, lowest first.  A failed call changes
 * nothing. */
CX_RESULT cx_mmr_edge_append(cx_mmr_edge *edge, cx_scheme scheme, const cx_alloc *alloc,
                             const cx_digest *leaf_hash, cx_mmr_fold out[CX_MMR_FOLDS_MAX],
                             size_t *out_count, cx_err *err);
/* journal_root of all its leaves. */
cx_digest cx_mmr_edge_root(const cx_mmr_edge *edge, cx_scheme scheme);

/* Where leaves and folds are kept.  Both calls give `count` hashes from number `first` on, and are
 * asked only for those that exist; a count is at most 256, within one block of 256. */
typedef struct cx_mmr_keeper {
    void *arg;
    cx_status (*leaves)(void *arg, uint64_t first, size_t count, cx_digest *out, cx_err *err);
    cx_status (*folds)(void *arg, unsigned level, uint64_t first, size_t count, cx_digest *out,
                       cx_err *err);
} cx_mmr_keeper;

/*
 * A tree whose edge is true and whose other nodes are kept.  Nothing that the keeper says is
 * believed: each block that is used is hashed up to the edge, and one that does not lead there is
 * CX_E_FORMAT "DatabaseDamaged".  Nothing can be appended.  Keeps at most 128 KiB.
 */
CX_RESULT cx_mmr_open_kept(cx_scheme scheme, const cx_alloc *alloc, const cx_mmr_edge *edge,
                           const cx_mmr_keeper *keeper, cx_mmr **out, cx_err *err);

CX_RESULT cx_mmr_append(cx_mmr *mmr, const cx_digest *leaf_hashes, size_t count, cx_err *err);
/* Forgets the leaves from `size` on (an append that did not reach the disk). */
void cx_mmr_truncate(cx_mmr *mmr, uint64_t size);
uint64_t cx_mmr_size(const cx_mmr *mmr); /* leaves */
/* leaf_hash of `count` leaves from number `first` on; first + count <= size. */
CX_RESULT cx_mmr_leaves(cx_mmr *mmr, uint64_t first, size_t count, cx_digest *out, cx_err *err);

/* journal_root of the first `size` leaves; CX_E_NOT_FOUND "OutOfRange" beyond the end. */
CX_RESULT cx_mmr_root(cx_mmr *mmr, uint64_t size, cx_digest *out, cx_err *err);
/* Peaks, left to right; at most 64. */
CX_RESULT cx_mmr_peaks(cx_mmr *mmr, uint64_t size, cx_digest *out, size_t *out_count, cx_err *err);
/* Level-0 nodes etc. as tiles need them: node `index` of the perfect trees at `height`. */
CX_RESULT cx_mmr_node(cx_mmr *mmr, unsigned height, uint64_t index, cx_digest *out, cx_err *err);

CX_RESULT cx_mmr_inclusion(cx_mmr *mmr, uint64_t index, uint64_t size, cx_mmr_path *out,
                           cx_err *err);
CX_RESULT cx_mmr_consistency(cx_mmr *mmr, uint64_t size1, uint64_t size2, cx_mmr_path *out,
                             cx_err *err);

/* Positions, 1-based and depth-first, as the original system numbers nodes (§6). */
uint64_t cx_mmr_positions(uint64_t leaf_count); /* size(n) = 2n - popcount(n) */
uint64_t cx_mmr_leaf_position(uint64_t leaf_index);

/* --- checking without a tree: for those who have nothing but the proof ----------------------- */

/* False when the path has the wrong number of hashes or index >= size. */
bool cx_mmr_inclusion_root(cx_scheme scheme, uint64_t index, uint64_t size,
                           const cx_digest *leaf_hash, const cx_digest *path, size_t path_count,
                           cx_digest *out_root);
bool cx_mmr_inclusion_holds(cx_scheme scheme, uint64_t index, uint64_t size,
                            const cx_digest *leaf_hash, const cx_digest *path, size_t path_count,
                            const cx_digest *root);
bool cx_mmr_consistency_holds(cx_scheme scheme, uint64_t size1, const cx_digest *root1,
                              uint64_t size2, const cx_digest *root2, const cx_digest *path,
                              size_t path_count);

#endif
