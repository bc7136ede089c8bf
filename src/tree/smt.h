/*
 * smt.h - a sparse Merkle tree over 256-bit keys (ledger.md §7).
 *
 * Bit i of a key is MSB-first; 0 goes left.  Only branches with two non-empty sides are kept.
 * Changing a key only marks its path; a root or a proof hashes all marked paths in one go, level by
 * level, in lanes.  The root does not depend on the order of changes.  Not thread-safe.
 */
#ifndef CX_TREE_SMT_H
#define CX_TREE_SMT_H

#include "base/api.h"
#include "tree/scheme.h"

typedef struct cx_smt cx_smt;

CX_RESULT cx_smt_open(cx_scheme scheme, const cx_alloc *alloc, cx_smt **out, cx_err *err);
void cx_smt_close(cx_smt *smt);
/* Room for `count` keys, so that a load does not grow piece by piece. */
CX_RESULT cx_smt_reserve(cx_smt *smt, uint64_t count, cx_err *err);

/* A key and its value. */
typedef struct cx_smt_pair {
    cx_digest key;
    cx_digest value;
} cx_smt_pair;

/* Sets a key's value.  Zeros, which mean absent, are CX_E_USAGE.  A failed call changes nothing. */
CX_RESULT cx_smt_put(cx_smt *smt, const cx_digest *key, const cx_digest *value, cx_err *err);
/* The same for many, in any order; of a key's values the last one stays.  Much faster than one by
 * one, above all into an empty tree.  All or nothing. */
CX_RESULT cx_smt_put_many(cx_smt *smt, const cx_smt_pair *pairs, size_t count, cx_err *err);
/* Removing a key restores the root there was without it; false in *out_was when it was absent. */
CX_RESULT cx_smt_remove(cx_smt *smt, const cx_digest *key, bool *out_was, cx_err *err);
/* False when absent. */
bool cx_smt_get(const cx_smt *smt, const cx_digest *key, cx_digest *out_value);
uint64_t cx_smt_count(const cx_smt *smt);
/* Branch nodes kept: at most 2 * count (ledger.md §14.27). */
uint64_t cx_smt_branches(const cx_smt *smt);

/* Bytes of memory held, and hashes computed since it was opened: for benches and tests. */
size_t cx_smt_memory(const cx_smt *smt);
uint64_t cx_smt_hashes(const cx_smt *smt);

/* Needs memory only for the list of what is dirty; when that fails, asking again later works. */
CX_RESULT cx_smt_root(cx_smt *smt, cx_digest *out, cx_err *err);

/*
 * The path of one key.  siblings[0] is the sibling at depth 1; an empty subtree is the scheme's
 * empty value at that depth (32 zero bytes in cortex-1).  In matrix-1 there are always 256; in
 * cortex-1 the path ends where the subtree holds one leaf or none.
 */
typedef struct cx_smt_path {
    cx_digest key;
    bool member; /* the key has the value `value` */
    cx_digest value;
    bool has_other; /* cortex-1, absent: another leaf stands at the end of the path */
    cx_digest other_key;
    cx_digest other_value;
    size_t sibling_count;      /* at most 256 */
    const cx_digest *siblings; /* top-down */
} cx_smt_path;

/* One path a key, in the order asked; memory from the arena. */
CX_RESULT cx_smt_prove(cx_smt *smt, const cx_digest *keys, size_t count, cx_arena *arena,
                       const cx_smt_path **out, cx_err *err);

/* The root that a path leads to (the fold of §8), nothing else checked; needs no tree. */
cx_digest cx_smt_fold(cx_scheme scheme, const cx_smt_path *path);
/* out[i] = cx_smt_fold(paths[i]), in lanes; what paths have in common is hashed once.  The arena is
 * for scratch. */
CX_RESULT cx_smt_fold_many(cx_scheme scheme, const cx_smt_path *paths, size_t count,
                           cx_arena *arena, cx_digest *out, cx_err *err);

#endif
