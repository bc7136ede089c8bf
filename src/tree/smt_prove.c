/*
 * smt_prove.c - paths of a sparse Merkle tree, and the roots they lead to (ledger.md §7, §8).
 *
 * A path lists the sibling at every depth; the tree keeps only those of branches with two sides, so
 * the rest is filled with the scheme's empty value.  Where an absent key parts from all keys of a
 * subtree, that whole subtree is a sibling, raised to the depth where they part.
 */
#include <stdlib.h>

#include "tree/smt_internal.h"

/* --- proving --------------------------------------------------------------------------------- */

/* Siblings that must be raised first, and where they go. */
typedef struct raising {
    smt_chain chains[SMT_GROUP];
    cx_digest *to[SMT_GROUP];
    size_t count;
} raising;

typedef struct proving {
    cx_smt *smt;
    cx_arena *arena;
    raising raise;
} proving;

static void raise_now(proving *p)
{
    p->smt->hasher.hash_count += cx_smt_climb(p->smt->scheme, p->raise.chains, p->raise.count);
    for (size_t i = 0; i < p->raise.count; i++)
        *p->raise.to[i] = p->raise.chains[i].hash;
    p->raise.count = 0;
}

/* The subtree `ref`, with `leaf` in it, becomes a sibling at `depth`. */
static void raise_later(proving *p, uint32_t ref, uint32_t leaf, unsigned depth, cx_digest *to)
{
    cx_smt *smt = p->smt;
    const cx_digest *key = smt_key(smt, leaf);
    smt_chain chain = {.key = key, .to = depth};
    smt->hasher.hash_count++;
    if (smt_is_leaf(ref)) {
        chain.hash = cx_scheme_smt_leaf(smt->scheme, key, &smt->leaves.items[leaf].half[1]);
        chain.from = SMT_DEPTH;
    } else {
        const smt_twin *sides = &smt->sides.items[ref];
        chain.hash = cx_scheme_smt_node(smt->scheme, &sides->half[0], &sides->half[1]);
        chain.from = smt->branches.items[ref].bit;
    }
    p->raise.chains[p->raise.count] = chain;
    p->raise.to[p->raise.count++] = to;
    if (p->raise.count == SMT_GROUP)
        raise_now(p);
}

/* siblings[i] stands at depth i + 1. */
static void fill_empty(cx_scheme scheme, cx_digest *siblings, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        siblings[i] = cx_scheme_smt_empty(scheme, (unsigned)i + 1);
}

/* Siblings of the branches before `bit`; *out_ref is what hangs after them. */
static unsigned collect_siblings(const cx_smt *smt, const cx_digest *key, unsigned bit,
                                 cx_digest *siblings, uint32_t *out_ref)
{
    unsigned depth = 0;
    uint32_t ref = smt->root;
    while (!smt_is_leaf(ref)) {
        const smt_branch *b = &smt->branches.items[ref];
        if (b->bit >= bit)
            break;
        unsigned side = smt_bit(key, b->bit);
        fill_empty(smt->scheme, siblings, depth, b->bit);
        siblings[b->bit] = smt->sides.items[ref].half[1 - side];
        depth = b->bit + 1u;
        ref = b->child[side];
    }
    *out_ref = ref;
    return depth;
}

/* How long the path will be; everything else about it. */
static void find_end(const cx_smt *smt, cx_smt_path *path, unsigned *out_bit, uint32_t *out_leaf)
{
    bool cortex = smt->scheme == CX_SCHEME_CORTEX_1;
    *out_bit = 0;
    *out_leaf = SMT_NONE;
    path->sibling_count = cortex ? 0 : SMT_DEPTH;
    if (smt->root == SMT_NONE)
        return;
    uint32_t leaf = cx_smt_descend(smt, &path->key), ref = smt->root;
    unsigned bit = cx_smt_difference(&path->key, smt_key(smt, leaf)), depth = 0;
    while (!smt_is_leaf(ref) && smt->branches.items[ref].bit < bit) {
        const smt_branch *b = &smt->branches.items[ref];
        depth = b->bit + 1u;
        ref = b->child[smt_bit(&path->key, b->bit)];
    }
    path->member = bit == SMT_DEPTH;
    if (path->member)
        path->value = smt->leaves.items[leaf].half[1];
    path->has_other = cortex && !path->member && smt_is_leaf(ref);
    if (path->has_other) {
        path->other_key = *smt_key(smt, leaf);
        path->other_value = smt->leaves.items[leaf].half[1];
    }
    if (cortex)
        path->sibling_count = smt_is_leaf(ref) ? depth : bit + 1;
    *out_bit = bit;
    *out_leaf = leaf;
}

static bool prove_one(proving *p, const cx_digest *key, cx_smt_path *path)
{
    const cx_smt *smt = p->smt;
    unsigned bit, depth;
    uint32_t leaf, ref;
    memset(path, 0, sizeof *path);
    path->key = *key;
    find_end(smt, path, &bit, &leaf);
    if (path->sibling_count == 0)
        return true;
    cx_digest *siblings = CX_ARENA_ARRAY(p->arena, cx_digest, path->sibling_count);
    if (siblings == NULL)
        return false;
    path->siblings = siblings;
    if (leaf == SMT_NONE) {
        fill_empty(smt->scheme, siblings, 0, path->sibling_count);
        return true;
    }
    depth = collect_siblings(smt, key, bit, siblings, &ref);
    fill_empty(smt->scheme, siblings, depth, path->sibling_count);
    if (bit < path->sibling_count)
        raise_later(p, ref, leaf, bit + 1, &siblings[bit]);
    return true;
}

CX_RESULT cx_smt_prove(cx_smt *smt, const cx_digest *keys, size_t count, cx_arena *arena,
                       const cx_smt_path **out, cx_err *err)
{
    cx_digest root;
    CX_TRY(cx_smt_root(smt, &root, err));
    proving p = {.smt = smt, .arena = arena, .raise = {.count = 0}};
    cx_smt_path *paths = CX_ARENA_ARRAY(arena, cx_smt_path, count);
    if (paths == NULL && count != 0)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        if (!prove_one(&p, &keys[i], &paths[i]))
            return cx_fail_nomem(err);
    }
    raise_now(&p);
    *out = paths;
    return CX_SUCCESS;
}

/* --- folding --------------------------------------------------------------------------------- */

/* What the fold of §8 begins with, at the end of the path. */
static cx_digest fold_start(cx_scheme scheme, const cx_smt_path *path)
{
    if (path->member)
        return cx_scheme_smt_leaf(scheme, &path->key, &path->value);
    if (path->has_other)
        return cx_scheme_smt_leaf(scheme, &path->other_key, &path->other_value);
    return cx_scheme_smt_empty(scheme, SMT_DEPTH);
}

cx_digest cx_smt_fold(cx_scheme scheme, const cx_smt_path *path)
{
    CX_ASSERT(path->sibling_count <= SMT_DEPTH);
    cx_digest acc = fold_start(scheme, path);
    for (unsigned i = (unsigned)path->sibling_count; i-- > 0;) {
        const cx_digest *sibling = &path->siblings[i];
        cx_digest empty = cx_scheme_smt_empty(scheme, i + 1);
        unsigned side = smt_bit(&path->key, i);
        if (cx_digest_eq(sibling, &empty))
            cx_scheme_smt_one_sided(scheme, i + 1, side, &acc, &acc, 1);
        else
            acc = side == 0 ? cx_scheme_smt_node(scheme, &acc, sibling)
                            : cx_scheme_smt_node(scheme, sibling, &acc);
    }
    return acc;
}

/* One path being folded, in the order of keys. */
typedef struct folding {
    const cx_smt_path *path;
    cx_digest acc;
    unsigned shared; /* bits shared with the key before it */
    size_t same_as;  /* folded to one with that earlier place; its own when not */
} folding;

static int by_key(const void *a, const void *b)
{
    const folding *x = a, *y = b;
    return memcmp(x->path->key.bytes, y->path->key.bytes, sizeof x->path->key.bytes);
}

/* Whether both fold to the same branch at `depth`, each being the other's sibling below it. */
static bool folds_meet(const folding *a, const folding *b, unsigned depth)
{
    const cx_smt_path *x = a->path, *y = b->path;
    return x->sibling_count > depth && y->sibling_count > depth &&
           cx_digest_eq(&x->siblings[depth], &b->acc) &&
           cx_digest_eq(&y->siblings[depth], &a->acc) &&
           (depth == 0 || memcmp(x->siblings, y->siblings, depth * sizeof *x->siblings) == 0);
}

/* Drops of each pair that meets at this depth the second: what is left goes on in `live`. */
static size_t join_pairs(folding *items, size_t *live, size_t live_count, unsigned depth)
{
    size_t kept = live_count == 0 ? 0 : 1;
    for (size_t i = 1; i < live_count; i++) {
        folding *now = &items[live[i]];
        if (now->shared == depth && folds_meet(&items[live[kept - 1]], now, depth))
            now->same_as = live[kept - 1];
        else
            live[kept++] = live[i];
    }
    return kept;
}

static void fold_depth(cx_scheme scheme, folding *items, const size_t *live, size_t live_count,
                       unsigned depth)
{
    cx_digest pairs[2 * SMT_GROUP], hashes[SMT_GROUP];
    size_t which[SMT_GROUP], some = 0;
    for (size_t i = 0; i < live_count; i++) {
        const folding *f = &items[live[i]];
        if (f->path->sibling_count > depth) {
            unsigned side = smt_bit(&f->path->key, depth);
            pairs[2 * some + side] = f->acc;
            pairs[2 * some + 1 - side] = f->path->siblings[depth];
            which[some++] = live[i];
        }
        if (some == SMT_GROUP || (some != 0 && i + 1 == live_count)) {
            cx_scheme_smt_nodes(scheme, pairs, hashes, some);
            for (size_t k = 0; k < some; k++)
                items[which[k]].acc = hashes[k];
            some = 0;
        }
    }
}

CX_RESULT cx_smt_fold_many(cx_scheme scheme, const cx_smt_path *paths, size_t count,
                           cx_arena *arena, cx_digest *out, cx_err *err)
{
    folding *items = CX_ARENA_ARRAY(arena, folding, count);
    size_t *live = CX_ARENA_ARRAY(arena, size_t, count), live_count = count, depth_max = 0;
    if (count == 0)
        return CX_SUCCESS;
    if (items == NULL || live == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        CX_ASSERT(paths[i].sibling_count <= SMT_DEPTH);
        items[i] = (folding){&paths[i], fold_start(scheme, &paths[i]), 0, i};
        depth_max = depth_max < paths[i].sibling_count ? paths[i].sibling_count : depth_max;
    }
    qsort(items, count, sizeof *items, by_key);
    for (size_t i = 0; i < count; i++) {
        live[i] = items[i].same_as = i;
        items[i].shared =
            i == 0 ? 0 : cx_smt_difference(&items[i - 1].path->key, &items[i].path->key);
    }
    for (unsigned depth = (unsigned)depth_max; depth-- > 0;) {
        live_count = join_pairs(items, live, live_count, depth);
        fold_depth(scheme, items, live, live_count, depth);
    }
    for (size_t i = 0; i < count; i++) {
        items[i].acc = items[items[i].same_as].acc;
        out[items[i].path - paths] = items[i].acc;
    }
    return CX_SUCCESS;
}
