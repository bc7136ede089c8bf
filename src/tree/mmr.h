/*
 * mmr.h - the journal tree: a Merkle mountain range whose root is the RFC 6962 tree hash
 * (ledger.md §6).
 *
 * Nodes are kept in memory, level by level, and never rewritten, so roots and proofs of every past
 * size stay available.  Appending only stores the leaf; interior nodes are hashed in lanes when a
 * root or a proof is asked for.  Not thread-safe: asking for a root changes the object.
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

CX_RESULT cx_mmr_append(cx_mmr *mmr, const cx_digest *leaf_hashes, size_t count, cx_err *err);
/* Forgets the leaves from `size` on (an append that did not reach the disk). */
void cx_mmr_truncate(cx_mmr *mmr, uint64_t size);
uint64_t cx_mmr_size(const cx_mmr *mmr); /* leaves */
/* leaf_hash number `index`; index < size. */
cx_digest cx_mmr_leaf(const cx_mmr *mmr, uint64_t index);

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
