/*
 * test_mmr_model.c - the journal tree against the recursion of ledger.md §6, written down as it
 * stands: all sizes up to 64 with every leaf and every pair of sizes, larger ones at random, both
 * schemes.
 */
#include "tree/mmr.h"

#include <stdlib.h>

#include "tests/test.h"

enum { SMALL = 64, LARGE = 10000 };

static const cx_scheme schemes[] = {CX_SCHEME_CORTEX_1, CX_SCHEME_MATRIX_1};

/* --- the model ------------------------------------------------------------------------------- */

static uint64_t split(uint64_t n)
{
    uint64_t k = 1;
    while (2 * k < n)
        k *= 2;
    return k;
}

static cx_digest join(cx_scheme scheme, cx_digest left, cx_digest right, bool perfect)
{
    return perfect ? cx_scheme_node(scheme, &left, &right) : cx_scheme_bag(scheme, &left, &right);
}

static cx_digest tree(cx_scheme scheme, const cx_digest *leaves, uint64_t n)
{
    if (n == 1)
        return cx_scheme_level0(scheme, leaves);
    uint64_t k = split(n);
    return join(scheme, tree(scheme, leaves, k), tree(scheme, leaves + k, n - k), n == 2 * k);
}

static cx_digest model_root(cx_scheme scheme, const cx_digest *leaves, uint64_t n)
{
    cx_digest acc = {{0}};
    if (n != 0)
        acc = tree(scheme, leaves, n);
    return cx_scheme_journal_root(scheme, n, &acc);
}

static void model_inclusion(cx_scheme scheme, const cx_digest *leaves, uint64_t m, uint64_t n,
                            cx_mmr_path *path)
{
    if (n == 1)
        return;
    uint64_t k = split(n);
    model_inclusion(scheme, m < k ? leaves : leaves + k, m < k ? m : m - k, m < k ? k : n - k,
                    path);
    path->hashes[path->count++] = m < k ? tree(scheme, leaves + k, n - k) : tree(scheme, leaves, k);
}

static void model_subproof(cx_scheme scheme, const cx_digest *leaves, uint64_t m, uint64_t n,
                           bool known, cx_mmr_path *path)
{
    if (m == n) {
        if (!known)
            path->hashes[path->count++] = tree(scheme, leaves, n);
        return;
    }
    uint64_t k = split(n);
    if (m <= k) {
        model_subproof(scheme, leaves, m, k, known, path);
        path->hashes[path->count++] = tree(scheme, leaves + k, n - k);
    } else {
        model_subproof(scheme, leaves + k, m - k, n - k, false, path);
        path->hashes[path->count++] = tree(scheme, leaves, k);
    }
}

/* --- comparing ------------------------------------------------------------------------------- */

typedef struct world {
    cx_scheme scheme;
    cx_digest *leaves;
    cx_digest *roots; /* of all sizes up to SMALL */
    cx_mmr *mmr;
    uint64_t seed;
} world;

static bool open_world(world *w, cx_scheme scheme, uint64_t leaf_count)
{
    cx_err err = {0};
    *w = (world){.scheme = scheme, .seed = cx_test_seed()};
    w->leaves = calloc(leaf_count, sizeof *w->leaves);
    w->roots = calloc(SMALL + 1, sizeof *w->roots);
    cx_status status = cx_mmr_open(scheme, cx_alloc_default(), &w->mmr, &err);
    CHECK(w->leaves != NULL && w->roots != NULL && !cx_failed(status));
    for (uint64_t i = 0; w->leaves != NULL && i < leaf_count; i++) {
        uint64_t number = cx_test_random(&w->seed);
        w->leaves[i] = cx_digest_of(cx_bytes_from(&number, sizeof number));
    }
    return w->leaves != NULL && w->roots != NULL && !cx_failed(status);
}

static void close_world(world *w)
{
    cx_mmr_close(w->mmr);
    free(w->leaves);
    free(w->roots);
}

static bool same_path(const cx_mmr_path *a, const cx_mmr_path *b)
{
    return a->count == b->count && memcmp(a->hashes, b->hashes, a->count * sizeof *a->hashes) == 0;
}

/* A path that differs in one bit, or in length, proves nothing. */
static void check_inclusion_is_tight(const world *w, uint64_t m, uint64_t n, cx_mmr_path *path,
                                     uint64_t *seed)
{
    const cx_digest *leaf = &w->leaves[m], *root = &w->roots[n];
    size_t bits = path->count * 256;
    for (size_t bit = cx_test_random(seed) % 61; bit < bits; bit += 61) {
        path->hashes[bit / 256].bytes[bit / 8 % 32] ^= (uint8_t)(1u << bit % 8);
        CHECK(!cx_mmr_inclusion_holds(w->scheme, m, n, leaf, path->hashes, path->count, root));
        path->hashes[bit / 256].bytes[bit / 8 % 32] ^= (uint8_t)(1u << bit % 8);
    }
    path->hashes[path->count] = *leaf;
    CHECK(!cx_mmr_inclusion_holds(w->scheme, m, n, leaf, path->hashes, path->count + 1, root));
    if (path->count != 0)
        CHECK(!cx_mmr_inclusion_holds(w->scheme, m, n, leaf, path->hashes, path->count - 1, root));
    CHECK(!cx_mmr_inclusion_holds(w->scheme, (m + 1) % (n + 1), n, leaf, path->hashes, path->count,
                                  root));
}

static void check_inclusion(world *w, uint64_t m, uint64_t n, const cx_digest *root)
{
    cx_mmr_path got = {.count = 0}, expected = {.count = 0};
    cx_err err = {0};
    CHECK_STATUS(cx_mmr_inclusion(w->mmr, m, n, &got, &err), &err);
    model_inclusion(w->scheme, w->leaves, m, n, &expected);
    CHECK(same_path(&got, &expected));
    CHECK(cx_mmr_inclusion_holds(w->scheme, m, n, &w->leaves[m], got.hashes, got.count, root));
    CHECK(
        !cx_mmr_inclusion_holds(w->scheme, m, n, &w->leaves[m ^ 1], got.hashes, got.count, root) ||
        cx_digest_eq(&w->leaves[m], &w->leaves[m ^ 1]));
    if (n <= SMALL)
        check_inclusion_is_tight(w, m, n, &got, &w->seed);
}

static void check_consistency_is_tight(const world *w, uint64_t m, uint64_t n, cx_mmr_path *path,
                                       uint64_t *seed)
{
    const cx_digest *old_root = &w->roots[m], *root = &w->roots[n];
    size_t bits = path->count * 256;
    for (size_t bit = cx_test_random(seed) % 127; bit < bits; bit += 127) {
        path->hashes[bit / 256].bytes[bit / 8 % 32] ^= (uint8_t)(1u << bit % 8);
        CHECK(
            !cx_mmr_consistency_holds(w->scheme, m, old_root, n, root, path->hashes, path->count));
        path->hashes[bit / 256].bytes[bit / 8 % 32] ^= (uint8_t)(1u << bit % 8);
    }
    path->hashes[path->count] = *root;
    CHECK(
        !cx_mmr_consistency_holds(w->scheme, m, old_root, n, root, path->hashes, path->count + 1));
    if (path->count != 0)
        CHECK(!cx_mmr_consistency_holds(w->scheme, m, old_root, n, root, path->hashes,
                                        path->count - 1));
    if (m != n) {
        CHECK(!cx_mmr_consistency_holds(w->scheme, m, root, n, root, path->hashes, path->count));
        if (m != 0)
            CHECK(!cx_mmr_consistency_holds(w->scheme, m, old_root, n, old_root, path->hashes,
                                            path->count));
    }
}

static void check_consistency(world *w, uint64_t m, uint64_t n, const cx_digest *old_root,
                              const cx_digest *root)
{
    cx_mmr_path got = {.count = 0}, expected = {.count = 0};
    cx_err err = {0};
    CHECK_STATUS(cx_mmr_consistency(w->mmr, m, n, &got, &err), &err);
    if (m != 0 && m != n)
        model_subproof(w->scheme, w->leaves, m, n, w->scheme == CX_SCHEME_CORTEX_1, &expected);
    CHECK(same_path(&got, &expected));
    CHECK(cx_mmr_consistency_holds(w->scheme, m, old_root, n, root, got.hashes, got.count));
    if (n <= SMALL)
        check_consistency_is_tight(w, m, n, &got, &w->seed);
}

CX_TEST(mmr_every_small_size)
{
    for (size_t s = 0; s < CX_COUNT_OF(schemes); s++) {
        world w;
        cx_err err = {0};
        if (!open_world(&w, schemes[s], SMALL + 1)) {
            close_world(&w);
            return;
        }
        CHECK_STATUS(cx_mmr_append(w.mmr, w.leaves, SMALL, &err), &err);
        for (uint64_t n = 0; n <= SMALL; n++) {
            cx_digest got = {{0}};
            w.roots[n] = model_root(w.scheme, w.leaves, n);
            CHECK_STATUS(cx_mmr_root(w.mmr, n, &got, &err), &err);
            CHECK(cx_digest_eq(&got, &w.roots[n]));
            for (uint64_t m = 0; m < n; m++)
                check_inclusion(&w, m, n, &w.roots[n]);
            for (uint64_t m = 0; m <= n; m++)
                check_consistency(&w, m, n, &w.roots[m], &w.roots[n]);
        }
        close_world(&w);
    }
}

/* However leaves come and roots are asked for, in what pieces and with what falling away. */
CX_TEST(mmr_random_histories)
{
    for (unsigned turn = 0; turn < 40; turn++) {
        world w;
        cx_err err = {0};
        uint64_t size = 0;
        if (!open_world(&w, schemes[turn % 2], 400)) {
            close_world(&w);
            return;
        }
        w.seed += turn;
        for (unsigned step = 0; step < 60; step++) {
            uint64_t some = cx_test_random(&w.seed) % 20;
            if (cx_test_random(&w.seed) % 4 == 0) {
                size = some < size ? size - some : 0;
                cx_mmr_truncate(w.mmr, size);
            } else if (size + some <= 400) {
                CHECK_STATUS(cx_mmr_append(w.mmr, w.leaves + size, (size_t)some, &err), &err);
                size += some;
            }
            CHECK_INT(cx_mmr_size(w.mmr), size);
            uint64_t asked = cx_test_random(&w.seed) % (size + 1);
            cx_digest got = {{0}}, expected = model_root(w.scheme, w.leaves, asked);
            CHECK_STATUS(cx_mmr_root(w.mmr, asked, &got, &err), &err);
            CHECK(cx_digest_eq(&got, &expected));
        }
        close_world(&w);
    }
}

CX_TEST(mmr_random_large_sizes)
{
    for (size_t s = 0; s < CX_COUNT_OF(schemes); s++) {
        world w;
        cx_err err = {0};
        if (!open_world(&w, schemes[s], LARGE + 1)) {
            close_world(&w);
            return;
        }
        CHECK_STATUS(cx_mmr_append(w.mmr, w.leaves, LARGE, &err), &err);
        for (unsigned turn = 0; turn < 12; turn++) {
            uint64_t n = 1 + cx_test_random(&w.seed) % LARGE, m = cx_test_random(&w.seed) % n;
            cx_digest root = model_root(w.scheme, w.leaves, n), got = {{0}};
            cx_digest old_root = model_root(w.scheme, w.leaves, m);
            CHECK_STATUS(cx_mmr_root(w.mmr, n, &got, &err), &err);
            CHECK(cx_digest_eq(&got, &root));
            check_inclusion(&w, m, n, &root);
            check_consistency(&w, m, n, &old_root, &root);
        }
        close_world(&w);
    }
}
