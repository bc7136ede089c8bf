/*
 * test_mmr_kept.c - a journal tree of which one node in 256 is kept against the tree in memory:
 * roots, paths, nodes and leaves at every kind of size, both schemes; and hashes that were changed
 * where they are kept, which must be found or have no effect.
 */
#include <stdlib.h>

#include "base/api.h"
#include "tests/test.h"
#include "tree/mmr.h"

enum { LEAVES = 70000, LEVELS = 3 };

typedef struct kept {
    cx_scheme scheme;
    cx_mmr *model;
    cx_digest *leaves;
    cx_mmr_edge edge;
    CX_VEC(cx_digest) folds[LEVELS]; /* of level i + 1 */
    uint64_t reads;
} kept;

static cx_status keep_leaves(void *arg, uint64_t first, size_t count, cx_digest *out, cx_err *err)
{
    kept *k = arg;
    (void)err;
    CHECK(count <= 256 && first / 256 == (first + count - 1) / 256);
    CHECK(first + count <= k->edge.size);
    memcpy(out, k->leaves + first, count * sizeof *out);
    k->reads++;
    return CX_SUCCESS;
}

static cx_status keep_folds(void *arg, unsigned level, uint64_t first, size_t count, cx_digest *out,
                            cx_err *err)
{
    kept *k = arg;
    (void)err;
    CHECK(level >= 1 && level <= LEVELS && first + count <= k->folds[level - 1].count);
    memcpy(out, k->folds[level - 1].items + first, count * sizeof *out);
    k->reads++;
    return CX_SUCCESS;
}

static cx_digest leaf_of(uint64_t number)
{
    cx_digest out;
    for (size_t i = 0; i < sizeof out.bytes; i++)
        out.bytes[i] = (uint8_t)((number + 1) * 0x9e3779b97f4a7c15u >> (i % 8 * 8)) ^ (uint8_t)i;
    return out;
}

static void append(kept *k, const cx_digest *leaf)
{
    cx_err err = {0};
    cx_mmr_fold folds[CX_MMR_FOLDS_MAX];
    size_t count = 0;
    CHECK_STATUS(
        cx_mmr_edge_append(&k->edge, k->scheme, cx_alloc_default(), leaf, folds, &count, &err),
        &err);
    for (size_t i = 0; i < count; i++) {
        cx_digest *slot = cx_vec_push(&k->folds[folds[i].level - 1], cx_alloc_default());
        CHECK_INT(folds[i].number, k->folds[folds[i].level - 1].count - 1);
        *slot = folds[i].hash;
    }
}

static void open_kept(kept *k, cx_scheme scheme)
{
    cx_err err = {0};
    *k = (kept){.scheme = scheme};
    k->leaves = malloc(LEAVES * sizeof *k->leaves);
    CHECK(k->leaves != NULL);
    for (uint64_t i = 0; i < LEAVES; i++)
        k->leaves[i] = leaf_of(i);
    CHECK_STATUS(cx_mmr_open(scheme, cx_alloc_default(), &k->model, &err), &err);
    CHECK_STATUS(cx_mmr_append(k->model, k->leaves, LEAVES, &err), &err);
}

static void close_kept(kept *k)
{
    for (size_t i = 0; i < LEVELS; i++)
        cx_vec_done(&k->folds[i], cx_alloc_default());
    cx_vec_done(&k->edge.peaks, cx_alloc_default());
    cx_mmr_close(k->model);
    free(k->leaves);
}

static cx_mmr *open_tree(kept *k)
{
    cx_err err = {0};
    cx_mmr *tree = NULL;
    const cx_mmr_keeper keeper = {k, keep_leaves, keep_folds};
    CHECK_STATUS(cx_mmr_open_kept(k->scheme, cx_alloc_default(), &k->edge, &keeper, &tree, &err),
                 &err);
    return tree;
}

static bool same_path(const cx_mmr_path *a, const cx_mmr_path *b)
{
    return a->count == b->count && memcmp(a->hashes, b->hashes, a->count * sizeof *a->hashes) == 0;
}

/* Everything about one pair of sizes; `m` < `n` <= the tree's size. */
static void check_pair(kept *k, cx_mmr *tree, uint64_t m, uint64_t n)
{
    cx_err err = {0};
    cx_digest a = {{1}}, b = {{2}};
    cx_mmr_path path, expected;
    CHECK_STATUS(cx_mmr_root(tree, n, &a, &err), &err);
    CHECK_STATUS(cx_mmr_root(k->model, n, &b, &err), &err);
    CHECK(cx_digest_eq(&a, &b));
    CHECK_STATUS(cx_mmr_inclusion(tree, m, n, &path, &err), &err);
    CHECK_STATUS(cx_mmr_inclusion(k->model, m, n, &expected, &err), &err);
    CHECK(same_path(&path, &expected));
    CHECK_STATUS(cx_mmr_consistency(tree, m, n, &path, &err), &err);
    CHECK_STATUS(cx_mmr_consistency(k->model, m, n, &expected, &err), &err);
    CHECK(same_path(&path, &expected));
    CHECK_STATUS(cx_mmr_leaves(tree, m, 1, &a, &err), &err);
    CHECK(cx_digest_eq(&a, &k->leaves[m]));
}

static void check_size(kept *k, uint64_t *seed)
{
    cx_err err = {0};
    const uint64_t size = k->edge.size;
    cx_mmr *tree = open_tree(k);
    cx_digest a = cx_mmr_edge_root(&k->edge, k->scheme), b = {{0}};
    CHECK_INT(cx_mmr_size(tree), size);
    CHECK_STATUS(cx_mmr_root(k->model, size, &b, &err), &err);
    CHECK(cx_digest_eq(&a, &b));
    CHECK_STATUS(cx_mmr_root(tree, size, &a, &err), &err);
    CHECK(cx_digest_eq(&a, &b));
    CHECK(cx_mmr_root(tree, size + 1, &a, &err).code == CX_E_NOT_FOUND);
    for (unsigned i = 0; size != 0 && i < 12; i++) {
        const uint64_t n = i < 4 ? size : 1 + cx_test_random(seed) % size;
        check_pair(k, tree, cx_test_random(seed) % n, n);
    }
    for (unsigned height = 0; height < 17 && size >> height != 0; height++) {
        const uint64_t number = cx_test_random(seed) % (size >> height);
        CHECK_STATUS(cx_mmr_node(tree, height, number, &a, &err), &err);
        CHECK_STATUS(cx_mmr_node(k->model, height, number, &b, &err), &err);
        CHECK(cx_digest_eq(&a, &b));
    }
    cx_mmr_close(tree);
}

static bool is_asked(uint64_t size)
{
    static const uint64_t sizes[] = {255,  256,   257,   511,   512,  513,
                                     4095, 65535, 65536, 65537, 65792};
    bool asked = size < 6 || size == LEAVES || size % 9973 == 0;
    for (size_t i = 0; i < CX_COUNT_OF(sizes); i++)
        asked = asked || size == sizes[i];
    return asked;
}

CX_TEST(kept_tree_answers_as_the_tree_in_memory)
{
    static const cx_scheme schemes[] = {CX_SCHEME_CORTEX_1, CX_SCHEME_MATRIX_1};
    for (size_t s = 0; s < CX_COUNT_OF(schemes); s++) {
        kept k;
        uint64_t seed = 7 + s;
        open_kept(&k, schemes[s]);
        check_size(&k, &seed);
        for (uint64_t i = 0; i < LEAVES; i++) {
            append(&k, &k.leaves[i]);
            if (is_asked(k.edge.size))
                check_size(&k, &seed);
        }
        close_kept(&k);
    }
}

/* A proof reads at most two blocks of each level and their checks: not the whole. */
CX_TEST(kept_tree_reads_few_blocks)
{
    kept k;
    cx_err err = {0};
    cx_mmr_path path;
    open_kept(&k, CX_SCHEME_CORTEX_1);
    for (uint64_t i = 0; i < LEAVES; i++)
        append(&k, &k.leaves[i]);
    cx_mmr *tree = open_tree(&k);
    CHECK_STATUS(cx_mmr_inclusion(tree, 12345, LEAVES - 77, &path, &err), &err);
    CHECK(k.reads <= 6);
    cx_mmr_close(tree);
    close_kept(&k);
}

typedef struct answers {
    bool told;
    cx_digest root, leaf;
    cx_mmr_path path, growth;
} answers;

static answers ask(kept *k, uint64_t m, uint64_t n)
{
    answers a = {.told = false};
    cx_err err = {0};
    cx_mmr *tree = open_tree(k);
    const cx_status all[] = {
        cx_mmr_root(tree, n, &a.root, &err), cx_mmr_inclusion(tree, m, n, &a.path, &err),
        cx_mmr_consistency(tree, m, n, &a.growth, &err), cx_mmr_leaves(tree, m, 1, &a.leaf, &err)};
    for (size_t i = 0; i < CX_COUNT_OF(all); i++) {
        a.told = a.told || cx_failed(all[i]);
        CHECK(!cx_failed(all[i]) || all[i].code == CX_E_FORMAT);
    }
    cx_mmr_close(tree);
    return a;
}

/* A bit of a hash is changed where it is kept: the question fails, or its answer is the old one. */
CX_TEST(kept_tree_believes_no_hash)
{
    kept k;
    uint64_t seed = 99, told = 0;
    open_kept(&k, CX_SCHEME_CORTEX_1);
    for (uint64_t i = 0; i < 66000; i++)
        append(&k, &k.leaves[i]);
    for (unsigned turn = 0; turn < 600; turn++) {
        const uint64_t n = 1 + cx_test_random(&seed) % k.edge.size, m = cx_test_random(&seed) % n;
        const answers before = ask(&k, m, n);
        CHECK(!before.told);
        const uint64_t near = cx_test_random(&seed) % 512;
        cx_digest *victim = turn % 3 == 0 ? &k.leaves[(m / 256 * 256 + near) % k.edge.size]
                            : turn % 3 == 1
                                ? &k.folds[0].items[cx_test_random(&seed) % k.folds[0].count]
                                : &k.folds[1].items[0];
        uint8_t *byte = &victim->bytes[cx_test_random(&seed) % 32];
        const uint8_t flip = (uint8_t)(1u << cx_test_random(&seed) % 8);
        *byte ^= flip;
        const answers after = ask(&k, m, n);
        *byte ^= flip;
        told += after.told ? 1 : 0;
        CHECK(after.told ||
              (cx_digest_eq(&before.root, &after.root) && cx_digest_eq(&before.leaf, &after.leaf) &&
               same_path(&before.path, &after.path) && same_path(&before.growth, &after.growth)));
    }
    CHECK(told > 200);
    close_kept(&k);
}
