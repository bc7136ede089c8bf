/*
 * mmr_check.c - checks paths of a journal tree without having the tree (ledger.md §6, §8).
 */
#include "base/api.h"
#include "tree/mmr_internal.h"

static bool is_perfect(uint64_t n)
{
    return (n & (n - 1)) == 0;
}

/* C of §6. */
static cx_digest combine_children(cx_scheme scheme, const cx_digest *left, const cx_digest *right,
                                  bool perfect)
{
    return perfect ? cx_scheme_node(scheme, left, right) : cx_scheme_bag(scheme, left, right);
}

/* The way from the root of a tree down: where it turned, and what kind of node that was. */
typedef struct way {
    size_t count;
    bool right[MMR_LEVEL_MAX];
    bool perfect[MMR_LEVEL_MAX];
} way;

static void add_step(way *w, bool right, uint64_t n)
{
    w->right[w->count] = right;
    w->perfect[w->count++] = is_perfect(n);
}

bool cx_mmr_inclusion_root(cx_scheme scheme, uint64_t index, uint64_t size,
                           const cx_digest *leaf_hash, const cx_digest *path, size_t path_count,
                           cx_digest *out_root)
{
    way w = {0};
    if (index >= size)
        return false;
    for (uint64_t m = index, n = size; n > 1;) {
        uint64_t k = mmr_left_count(n);
        add_step(&w, m >= k, n);
        m -= m >= k ? k : 0;
        n = w.right[w.count - 1] ? n - k : k;
    }
    if (path_count != w.count)
        return false;
    cx_digest acc = cx_scheme_level0(scheme, leaf_hash);
    for (size_t i = w.count; i-- > 0; path++) {
        acc = w.right[i] ? combine_children(scheme, path, &acc, w.perfect[i])
                         : combine_children(scheme, &acc, path, w.perfect[i]);
    }
    *out_root = cx_scheme_journal_root(scheme, size, &acc);
    return true;
}

bool cx_mmr_inclusion_holds(cx_scheme scheme, uint64_t index, uint64_t size,
                            const cx_digest *leaf_hash, const cx_digest *path, size_t path_count,
                            const cx_digest *root)
{
    cx_digest found;
    return cx_mmr_inclusion_root(scheme, index, size, leaf_hash, path, path_count, &found) &&
           cx_digest_eq(&found, root);
}

/* Both trees rebuilt from the path, which has a hash for every turn. */
static bool rebuild_roots(cx_scheme scheme, const way *w, const cx_digest *start,
                          const cx_digest *path, uint64_t size1, const cx_digest *root1,
                          uint64_t size2, const cx_digest *root2)
{
    cx_digest older = *start, newer = *start;
    for (size_t i = w->count; i-- > 0; path++) {
        if (w->right[i]) {
            older = cx_scheme_bag(scheme, path, &older);
            newer = combine_children(scheme, path, &newer, w->perfect[i]);
        } else {
            newer = combine_children(scheme, &newer, path, w->perfect[i]);
        }
    }
    older = cx_scheme_journal_root(scheme, size1, &older);
    newer = cx_scheme_journal_root(scheme, size2, &newer);
    return cx_digest_eq(&older, root1) && cx_digest_eq(&newer, root2);
}

bool cx_mmr_consistency_holds(cx_scheme scheme, uint64_t size1, const cx_digest *root1,
                              uint64_t size2, const cx_digest *root2, const cx_digest *path,
                              size_t path_count)
{
    way w = {0};
    if (size1 > size2)
        return false;
    if (size1 == 0) {
        cx_digest zeros = {{0}}, empty = cx_scheme_journal_root(scheme, 0, &zeros);
        return path_count == 0 && cx_digest_eq(root1, &empty) &&
               (size2 != 0 || cx_digest_eq(root2, &empty));
    }
    if (size1 == size2)
        return path_count == 0 && cx_digest_eq(root1, root2);
    bool known = scheme == CX_SCHEME_CORTEX_1;
    for (uint64_t m = size1, n = size2; m != n;) {
        uint64_t k = mmr_left_count(n);
        bool right = m > k;
        add_step(&w, right, n);
        m -= right ? k : 0;
        n = right ? n - k : k;
        known = known && !right;
    }
    if (path_count != w.count + (known ? 0 : 1))
        return false;
    const cx_digest *start = known ? root1 : path;
    return rebuild_roots(scheme, &w, start, known ? path : path + 1, size1, root1, size2, root2);
}
