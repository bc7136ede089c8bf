/*
 * home_tree.h - the tree over all actors as rows, so that a home root costs what has changed since
 * the last one, however many actors there are (ledger.md §15).
 *
 *   T1  The rows are a function of the log: of the records leaf/<position> of the journal
 *       home:root, with which they change.  So they are the tree under the home root recorded last.
 *   T2  They are not believed: each block that is used is hashed up to that home root.
 *   T3  The actors that have changed since are rows of a table of their own (changed, store.h).
 *       One that is missing there would make another sum of entries than the tables count.
 *
 *     tree/size               the number of leaves, u64be
 *     tree/<level><block>     one byte, u64be: at most 256 hashes, of leaves (level 0) or of the
 *                             whole blocks of the level below
 */
#ifndef CX_LEDGER_HOME_TREE_H
#define CX_LEDGER_HOME_TREE_H

#include "ledger/internal.h"

#define CX_HOME_TREE_PREFIX "tree/"

/* A leaf that is another one than under the last home root. */
typedef struct cx_home_tree_change {
    uint64_t position;
    cx_digest hash; /* leaf_hash */
} cx_home_tree_change;

/* T1: what a frame of home:root, whose rows are written, changes; `actor` is that one. */
CX_RESULT cx_home_tree_apply(cx_home *home, const cx_actor *actor, const cx_change *changes,
                             size_t count, uint64_t commit, cx_err *err);

typedef struct cx_home_tree cx_home_tree;

/*
 * The tree under `root`, which the log has, of the actor home:root with that number; NULL = none
 * recorded yet, the empty tree.  CX_E_FORMAT "DatabaseDamaged" when the rows do not lead there
 * (T2), here or in a later call.  The lock is held around each call, and the transaction from the
 * first to the last.
 */
CX_RESULT cx_home_tree_open(cx_home *home, int64_t actor, const cx_home_root *root,
                            cx_home_tree **out, cx_err *err);
void cx_home_tree_close(cx_home_tree *tree); /* NULL is fine */
/* leaf_hash of a leaf. */
CX_RESULT cx_home_tree_leaf(cx_home_tree *tree, uint64_t position, cx_digest *out, cx_err *err);
CX_RESULT cx_home_tree_inclusion(cx_home_tree *tree, uint64_t position, cx_mmr_path *out,
                                 cx_err *err);
/* The root of `size` leaves, of which these are others or new; ascending, no two alike, and all new
 * ones are among them. */
CX_RESULT cx_home_tree_root_with(cx_home_tree *tree, const cx_home_tree_change *changes,
                                 size_t count, uint64_t size, cx_digest *out, cx_err *err);

/* --- home_leaves.c: what a home root of this moment has --------------------------------------- */

typedef struct cx_home_leaf_item {
    uint64_t position;
    cx_bytes leaf; /* canonical (proof/home_root.h) */
} cx_home_leaf_item;

/* Leaves that are others than those recorded, ascending; their bytes are in the arena. */
typedef struct cx_home_leaf_list {
    cx_arena *arena;
    CX_VEC(cx_home_leaf_item) items; /* from cx_alloc_default */
} cx_home_leaf_list;

/*
 * The home root of this moment, with the transaction and without the lock.  `last` NULL: none is
 * recorded, or it cannot be read.  Rows that do not lead to the last one, or do not add up, are not
 * used: then the leaves of all actors are.
 */
CX_RESULT cx_home_root_compute(cx_home *home, const cx_home_root_entry *last,
                               cx_home_leaf_list *list, cx_home_root *out, cx_err *err);
/* The leaf of `actor` under `last`, its position and its path; with the
 * transaction and without the lock.  Memory from the arena.  CX_E_NOT_FOUND "NoActor" when the
 * actor has none under it. */
CX_RESULT cx_home_root_find_leaf(cx_home *home, const cx_home_root_entry *last, cx_str actor,
                                 cx_arena *arena, cx_home_proof *out, cx_err *err);

#endif
