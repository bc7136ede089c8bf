/*
 * mmr.c - the journal tree in memory (ledger.md §6).
 *
 * levels[h] holds the roots of the perfect subtrees of 2^h leaves, left to right; node `i` of level
 * h covers the leaves i * 2^h onwards.  A tree of any size n is the peaks of n's binary digits,
 * bagged from the right.
 *
 * Invariants:
 *   I1  levels[h].count <= leaf_count >> h: what is hashed covers leaves that are there.
 *   I2  a node, once hashed, is never rewritten; truncating only forgets.
 */
#include "tree/mmr.h"

#include "base/api.h"

enum { LEVEL_MAX = 64 };

typedef CX_VEC(cx_digest) digests;

struct cx_mmr {
    const cx_alloc *alloc;
    cx_scheme scheme;
    digests leaves; /* leaf_hash; in matrix-1 these are level 0 too */
    digests levels[LEVEL_MAX];
};

CX_RESULT cx_mmr_open(cx_scheme scheme, const cx_alloc *alloc, cx_mmr **out, cx_err *err)
{
    cx_mmr *mmr = cx_alloc_zeroed(alloc, 1, sizeof *mmr);
    if (mmr == NULL)
        return cx_fail_nomem(err);
    mmr->alloc = alloc;
    mmr->scheme = scheme;
    *out = mmr;
    return CX_SUCCESS;
}

void cx_mmr_close(cx_mmr *mmr)
{
    if (mmr == NULL)
        return;
    for (size_t h = 0; h < LEVEL_MAX; h++)
        cx_vec_done(&mmr->levels[h], mmr->alloc);
    cx_vec_done(&mmr->leaves, mmr->alloc);
    cx_alloc_free(mmr->alloc, mmr, sizeof *mmr);
}

CX_RESULT cx_mmr_append(cx_mmr *mmr, const cx_digest *leaf_hashes, size_t count, cx_err *err)
{
    size_t needed;
    if (!cx_size_add(mmr->leaves.count, count, &needed) ||
        !cx_vec_reserve(&mmr->leaves, needed, mmr->alloc))
        return cx_fail_nomem(err);
    if (count != 0)
        memcpy(mmr->leaves.items + mmr->leaves.count, leaf_hashes, count * sizeof *leaf_hashes);
    mmr->leaves.count = needed;
    return CX_SUCCESS;
}

void cx_mmr_truncate(cx_mmr *mmr, uint64_t size)
{
    if (size >= mmr->leaves.count)
        return;
    mmr->leaves.count = (size_t)size;
    for (size_t h = 0; h < LEVEL_MAX; h++) {
        if (mmr->levels[h].count > size >> h)
            mmr->levels[h].count = (size_t)(size >> h);
    }
}

uint64_t cx_mmr_size(const cx_mmr *mmr)
{
    return mmr->leaves.count;
}

cx_digest cx_mmr_leaf(const cx_mmr *mmr, uint64_t index)
{
    CX_ASSERT(index < mmr->leaves.count);
    return mmr->leaves.items[index];
}

/* --- hashing what is asked for --------------------------------------------------------------- */

static const cx_digest *level_items(const cx_mmr *mmr, unsigned height)
{
    if (height == 0 && mmr->scheme == CX_SCHEME_MATRIX_1)
        return mmr->leaves.items;
    return mmr->levels[height].items;
}

/* Level `height` of all perfect subtrees within the first `size` leaves. */
static bool hash_level(cx_mmr *mmr, unsigned height, uint64_t size)
{
    digests *level = &mmr->levels[height];
    size_t wanted = (size_t)(size >> height), from = level->count;
    if (from >= wanted)
        return true;
    if (!cx_vec_reserve(level, wanted, mmr->alloc))
        return false;
    if (height == 0)
        cx_scheme_level0_many(mmr->scheme, mmr->leaves.items + from, level->items + from,
                              wanted - from);
    else
        cx_scheme_nodes(mmr->scheme, level_items(mmr, height - 1) + 2 * from, level->items + from,
                        wanted - from);
    level->count = wanted;
    return true;
}

static CX_RESULT hash_up_to(cx_mmr *mmr, uint64_t size, cx_err *err)
{
    if (size > mmr->leaves.count)
        return cx_fail_at(err, CX_E_NOT_FOUND, "OutOfRange", CX_NO_OFFSET,
                          "the tree has %llu leaves, asked for %llu",
                          (unsigned long long)mmr->leaves.count, (unsigned long long)size);
    unsigned height = mmr->scheme == CX_SCHEME_MATRIX_1 ? 1 : 0;
    for (; height < LEVEL_MAX && size >> height != 0; height++) {
        if (!hash_level(mmr, height, size))
            return cx_fail_nomem(err);
    }
    return CX_SUCCESS;
}

static cx_digest node_at(const cx_mmr *mmr, unsigned height, uint64_t index)
{
    return level_items(mmr, height)[index];
}

/* --- subtrees -------------------------------------------------------------------------------- */

static unsigned trailing_zeros(uint64_t n)
{
    return (unsigned)__builtin_ctzll(n);
}

/* The largest power of two below n; n > 1. */
static uint64_t left_count(uint64_t n)
{
    return UINT64_C(1) << (63 - __builtin_clzll(n - 1));
}

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

/* T of `count` leaves from `first`, which is a multiple of the power of two not below count. */
static cx_digest range_root(const cx_mmr *mmr, uint64_t first, uint64_t count)
{
    unsigned height = trailing_zeros(count);
    uint64_t last = first + count - (UINT64_C(1) << height);
    cx_digest acc = node_at(mmr, height, last >> height);
    for (uint64_t rest = count & (count - 1); rest != 0; rest &= rest - 1) {
        height = trailing_zeros(rest);
        last -= UINT64_C(1) << height;
        cx_digest peak = node_at(mmr, height, last >> height);
        acc = cx_scheme_bag(mmr->scheme, &peak, &acc);
    }
    return acc;
}

CX_RESULT cx_mmr_root(cx_mmr *mmr, uint64_t size, cx_digest *out, cx_err *err)
{
    cx_digest acc = {{0}};
    CX_TRY(hash_up_to(mmr, size, err));
    if (size != 0)
        acc = range_root(mmr, 0, size);
    *out = cx_scheme_journal_root(mmr->scheme, size, &acc);
    return CX_SUCCESS;
}

CX_RESULT cx_mmr_peaks(cx_mmr *mmr, uint64_t size, cx_digest *out, size_t *out_count, cx_err *err)
{
    size_t count = 0;
    uint64_t first = 0;
    CX_TRY(hash_up_to(mmr, size, err));
    for (unsigned height = LEVEL_MAX; height-- > 0;) {
        if ((size >> height & 1) == 0)
            continue;
        out[count++] = node_at(mmr, height, first >> height);
        first += UINT64_C(1) << height;
    }
    *out_count = count;
    return CX_SUCCESS;
}

CX_RESULT cx_mmr_node(cx_mmr *mmr, unsigned height, uint64_t index, cx_digest *out, cx_err *err)
{
    uint64_t count = height < LEVEL_MAX ? mmr->leaves.count >> height : 0;
    if (index >= count)
        return cx_fail_at(err, CX_E_NOT_FOUND, "OutOfRange", CX_NO_OFFSET,
                          "no node %llu at height %u, there are %llu", (unsigned long long)index,
                          height, (unsigned long long)count);
    CX_TRY(hash_up_to(mmr, (index + 1) << height, err));
    *out = node_at(mmr, height, index);
    return CX_SUCCESS;
}

/* --- proofs ---------------------------------------------------------------------------------- */

/* Paths are found from the root down and handed out leaf first. */
static void reverse_path(cx_mmr_path *path)
{
    for (size_t i = 0, j = path->count; i + 1 < j; i++) {
        cx_digest other = path->hashes[--j];
        path->hashes[j] = path->hashes[i];
        path->hashes[i] = other;
    }
}

CX_RESULT cx_mmr_inclusion(cx_mmr *mmr, uint64_t index, uint64_t size, cx_mmr_path *out,
                           cx_err *err)
{
    CX_TRY(hash_up_to(mmr, size, err));
    if (index >= size)
        return cx_fail_at(err, CX_E_NOT_FOUND, "OutOfRange", CX_NO_OFFSET,
                          "no leaf %llu in a tree of %llu", (unsigned long long)index,
                          (unsigned long long)size);
    out->count = 0;
    for (uint64_t first = 0, n = size; n > 1;) {
        uint64_t k = left_count(n);
        if (index - first < k) {
            out->hashes[out->count++] = range_root(mmr, first + k, n - k);
            n = k;
        } else {
            out->hashes[out->count++] = range_root(mmr, first, k);
            first += k;
            n -= k;
        }
    }
    reverse_path(out);
    return CX_SUCCESS;
}

/* SUBPROOF of RFC 6962 §2.1.2; m counts from `first`. */
CX_RESULT cx_mmr_consistency(cx_mmr *mmr, uint64_t size1, uint64_t size2, cx_mmr_path *out,
                             cx_err *err)
{
    CX_TRY(hash_up_to(mmr, size2, err));
    if (size1 > size2)
        return cx_fail_at(err, CX_E_NOT_FOUND, "OutOfRange", CX_NO_OFFSET,
                          "a tree of %llu leaves is not inside one of %llu",
                          (unsigned long long)size1, (unsigned long long)size2);
    out->count = 0;
    if (size1 == 0 || size1 == size2)
        return CX_SUCCESS;
    bool known = mmr->scheme == CX_SCHEME_CORTEX_1;
    uint64_t first = 0, m = size1, n = size2;
    while (m != n) {
        uint64_t k = left_count(n);
        if (m <= k) {
            out->hashes[out->count++] = range_root(mmr, first + k, n - k);
            n = k;
        } else {
            out->hashes[out->count++] = range_root(mmr, first, k);
            first += k;
            m -= k;
            n -= k;
            known = false;
        }
    }
    if (!known)
        out->hashes[out->count++] = range_root(mmr, first, m);
    reverse_path(out);
    return CX_SUCCESS;
}

/* --- positions ------------------------------------------------------------------------------- */

uint64_t cx_mmr_positions(uint64_t leaf_count)
{
    return 2 * leaf_count - (uint64_t)__builtin_popcountll(leaf_count);
}

uint64_t cx_mmr_leaf_position(uint64_t leaf_index)
{
    return cx_mmr_positions(leaf_index) + 1;
}

/* --- checking without a tree ----------------------------------------------------------------- */

/* The way from the root of a tree down: where it turned, and what kind of node that was. */
typedef struct way {
    size_t count;
    bool right[LEVEL_MAX];
    bool perfect[LEVEL_MAX];
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
        uint64_t k = left_count(n);
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
        uint64_t k = left_count(n);
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
