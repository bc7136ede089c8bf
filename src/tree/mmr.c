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
#include "base/api.h"
#include "tree/mmr_internal.h"

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
    mmr_rows_close(mmr->rows, mmr->alloc);
    for (size_t h = 0; h < MMR_LEVEL_MAX; h++)
        cx_vec_done(&mmr->levels[h], mmr->alloc);
    cx_vec_done(&mmr->leaves, mmr->alloc);
    cx_alloc_free(mmr->alloc, mmr, sizeof *mmr);
}

CX_RESULT cx_mmr_append(cx_mmr *mmr, const cx_digest *leaf_hashes, size_t count, cx_err *err)
{
    size_t needed;
    CX_ASSERT(mmr->rows == NULL);
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
    CX_ASSERT(mmr->rows == NULL);
    if (size >= mmr->leaves.count)
        return;
    mmr->leaves.count = (size_t)size;
    for (size_t h = 0; h < MMR_LEVEL_MAX; h++) {
        if (mmr->levels[h].count > size >> h)
            mmr->levels[h].count = (size_t)(size >> h);
    }
}

uint64_t cx_mmr_size(const cx_mmr *mmr)
{
    return mmr->rows != NULL ? mmr_rows_size(mmr->rows) : mmr->leaves.count;
}

cx_status cx_mmr_leaves(cx_mmr *mmr, uint64_t first, size_t count, cx_digest *out, cx_err *err)
{
    CX_ASSERT(first <= cx_mmr_size(mmr) && count <= cx_mmr_size(mmr) - first);
    if (mmr->rows != NULL)
        return mmr_rows_leaves(mmr, first, count, out, err);
    if (count != 0)
        memcpy(out, mmr->leaves.items + first, count * sizeof *out);
    return CX_SUCCESS;
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
    mmr_digests *level = &mmr->levels[height];
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
    if (size > cx_mmr_size(mmr))
        return cx_fail_at(err, CX_E_NOT_FOUND, "OutOfRange", CX_NO_OFFSET,
                          "the tree has %llu leaves, asked for %llu",
                          (unsigned long long)cx_mmr_size(mmr), (unsigned long long)size);
    if (mmr->rows != NULL)
        return CX_SUCCESS;
    unsigned height = mmr->scheme == CX_SCHEME_MATRIX_1 ? 1 : 0;
    for (; height < MMR_LEVEL_MAX && size >> height != 0; height++) {
        if (!hash_level(mmr, height, size))
            return cx_fail_nomem(err);
    }
    return CX_SUCCESS;
}

static cx_status node_at(cx_mmr *mmr, unsigned height, uint64_t index, cx_digest *out, cx_err *err)
{
    if (mmr->rows != NULL)
        return mmr_rows_node(mmr, height, index, out, err);
    *out = level_items(mmr, height)[index];
    return CX_SUCCESS;
}

/* --- subtrees -------------------------------------------------------------------------------- */

static unsigned trailing_zeros(uint64_t n)
{
    return (unsigned)__builtin_ctzll(n);
}

/* T of `count` leaves from `first`, which is a multiple of the power of two not below count. */
static cx_status range_root(cx_mmr *mmr, uint64_t first, uint64_t count, cx_digest *out,
                            cx_err *err)
{
    unsigned height = trailing_zeros(count);
    uint64_t last = first + count - (UINT64_C(1) << height);
    cx_digest acc, peak;
    CX_TRY(node_at(mmr, height, last >> height, &acc, err));
    for (uint64_t rest = count & (count - 1); rest != 0; rest &= rest - 1) {
        height = trailing_zeros(rest);
        last -= UINT64_C(1) << height;
        CX_TRY(node_at(mmr, height, last >> height, &peak, err));
        acc = cx_scheme_bag(mmr->scheme, &peak, &acc);
    }
    *out = acc;
    return CX_SUCCESS;
}

CX_RESULT cx_mmr_root(cx_mmr *mmr, uint64_t size, cx_digest *out, cx_err *err)
{
    cx_digest acc = {{0}};
    CX_TRY(hash_up_to(mmr, size, err));
    if (size != 0)
        CX_TRY(range_root(mmr, 0, size, &acc, err));
    *out = cx_scheme_journal_root(mmr->scheme, size, &acc);
    return CX_SUCCESS;
}

CX_RESULT cx_mmr_peaks(cx_mmr *mmr, uint64_t size, cx_digest *out, size_t *out_count, cx_err *err)
{
    size_t count = 0;
    uint64_t first = 0;
    CX_TRY(hash_up_to(mmr, size, err));
    for (unsigned height = MMR_LEVEL_MAX; height-- > 0;) {
        if ((size >> height & 1) == 0)
            continue;
        CX_TRY(node_at(mmr, height, first >> height, &out[count++], err));
        first += UINT64_C(1) << height;
    }
    *out_count = count;
    return CX_SUCCESS;
}

CX_RESULT cx_mmr_node(cx_mmr *mmr, unsigned height, uint64_t index, cx_digest *out, cx_err *err)
{
    uint64_t count = height < MMR_LEVEL_MAX ? cx_mmr_size(mmr) >> height : 0;
    if (index >= count)
        return cx_fail_at(err, CX_E_NOT_FOUND, "OutOfRange", CX_NO_OFFSET,
                          "no node %llu at height %u, there are %llu", (unsigned long long)index,
                          height, (unsigned long long)count);
    CX_TRY(hash_up_to(mmr, (index + 1) << height, err));
    return node_at(mmr, height, index, out, err);
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
        uint64_t k = mmr_left_count(n);
        if (index - first < k) {
            CX_TRY(range_root(mmr, first + k, n - k, &out->hashes[out->count++], err));
            n = k;
        } else {
            CX_TRY(range_root(mmr, first, k, &out->hashes[out->count++], err));
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
        uint64_t k = mmr_left_count(n);
        if (m <= k) {
            CX_TRY(range_root(mmr, first + k, n - k, &out->hashes[out->count++], err));
            n = k;
        } else {
            CX_TRY(range_root(mmr, first, k, &out->hashes[out->count++], err));
            first += k;
            m -= k;
            n -= k;
            known = false;
        }
    }
    if (!known)
        CX_TRY(range_root(mmr, first, m, &out->hashes[out->count++], err));
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
