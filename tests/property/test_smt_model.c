/*
 * test_smt_model.c - the sparse Merkle tree against the recursion of ledger.md §7 over a plain
 * sorted array: random keys, keys that share long beginnings, and a tree whose keys differ in their
 * first eight bits only, each in both schemes; lazily and eagerly, one by one and many at once.
 */
#include "tree/smt.h"

#include <stdlib.h>

#include "tests/test.h"

enum { KEYS_MAX = 400 };

static const cx_scheme schemes[] = {CX_SCHEME_CORTEX_1, CX_SCHEME_MATRIX_1};

/* --- the model ------------------------------------------------------------------------------- */

typedef struct model {
    cx_scheme scheme;
    cx_smt_pair pairs[KEYS_MAX]; /* sorted by key */
    size_t count;
} model;

static unsigned bit_of(const cx_digest *key, unsigned index)
{
    return (unsigned)key->bytes[index / 8] >> (7 - index % 8) & 1;
}

/* The place of a key, or where it would be. */
static size_t place(const model *m, const cx_digest *key)
{
    size_t i = 0;
    while (i < m->count && memcmp(m->pairs[i].key.bytes, key->bytes, 32) < 0)
        i++;
    return i;
}

static bool model_has(const model *m, const cx_digest *key)
{
    size_t i = place(m, key);
    return i < m->count && cx_digest_eq(&m->pairs[i].key, key);
}

static int by_key(const void *a, const void *b)
{
    const cx_smt_pair *x = a, *y = b;
    return memcmp(x->key.bytes, y->key.bytes, sizeof x->key.bytes);
}

static void model_put(model *m, const cx_smt_pair *pair)
{
    size_t i = place(m, &pair->key);
    if (!model_has(m, &pair->key)) {
        memmove(m->pairs + i + 1, m->pairs + i, (m->count - i) * sizeof *m->pairs);
        m->count++;
    }
    m->pairs[i] = *pair;
}

static void model_remove(model *m, const cx_digest *key)
{
    size_t i = place(m, key);
    m->count--;
    memmove(m->pairs + i, m->pairs + i + 1, (m->count - i) * sizeof *m->pairs);
}

/* root(S) of §7 for the sorted pairs from..to, which agree in their first `depth` bits. */
static cx_digest root_of_sorted(cx_scheme scheme, const cx_smt_pair *pairs, size_t from, size_t to,
                                unsigned depth)
{
    if (from == to)
        return cx_scheme_smt_empty(scheme, depth);
    if (depth == 256 || (to - from == 1 && scheme == CX_SCHEME_CORTEX_1))
        return cx_scheme_smt_leaf(scheme, &pairs[from].key, &pairs[from].value);
    size_t middle = from;
    while (middle < to && bit_of(&pairs[middle].key, depth) == 0)
        middle++;
    cx_digest left = root_of_sorted(scheme, pairs, from, middle, depth + 1);
    cx_digest right = root_of_sorted(scheme, pairs, middle, to, depth + 1);
    return cx_scheme_smt_node(scheme, &left, &right);
}

static cx_digest subtree(const model *m, size_t from, size_t to, unsigned depth)
{
    return root_of_sorted(m->scheme, m->pairs, from, to, depth);
}

/* --- paths ----------------------------------------------------------------------------------- */

/* Whether a path is what §8.1 or §8.2 says of this key. */
static void check_path(const model *m, const cx_smt_path *path, const cx_digest *key)
{
    size_t from = 0, to = m->count, depth = 0, at = place(m, key);
    bool has = model_has(m, key), cortex = m->scheme == CX_SCHEME_CORTEX_1;
    CHECK(cx_digest_eq(&path->key, key));
    CHECK(path->member == has);
    CHECK(!has || cx_digest_eq(&path->value, &m->pairs[at].value));
    for (; depth < 256 && (!cortex || to - from > 1); depth++) {
        size_t middle = from;
        while (middle < to && bit_of(&m->pairs[middle].key, (unsigned)depth) == 0)
            middle++;
        bool right = bit_of(key, (unsigned)depth) == 1;
        cx_digest sibling = right ? subtree(m, from, middle, (unsigned)depth + 1)
                                  : subtree(m, middle, to, (unsigned)depth + 1);
        REQUIRE(depth < path->sibling_count);
        CHECK(cx_digest_eq(&path->siblings[depth], &sibling));
        from = right ? middle : from;
        to = right ? to : middle;
    }
    CHECK_INT(path->sibling_count, depth);
    CHECK(path->has_other == (cortex && !has && to - from == 1));
    if (path->has_other) {
        CHECK(cx_digest_eq(&path->other_key, &m->pairs[from].key));
        CHECK(cx_digest_eq(&path->other_value, &m->pairs[from].value));
    }
}

/* Changes one part of a path that must change what it folds to. */
static void check_fold_is_tight(cx_scheme scheme, const cx_smt_path *path, const cx_digest *root,
                                uint64_t *seed)
{
    cx_smt_path changed = *path;
    cx_digest siblings[256], got;
    unsigned bit = (unsigned)(cx_test_random(seed) % 256);
    if (path->sibling_count != 0)
        memcpy(siblings, path->siblings, path->sibling_count * sizeof *siblings);
    changed.siblings = siblings;
    if (path->sibling_count != 0) {
        size_t which = cx_test_random(seed) % path->sibling_count;
        siblings[which].bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        got = cx_smt_fold(scheme, &changed);
        CHECK(!cx_digest_eq(&got, root));
        siblings[which] = path->siblings[which];
    }
    if (path->member) {
        changed.value.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        got = cx_smt_fold(scheme, &changed);
        CHECK(!cx_digest_eq(&got, root));
        changed.value = path->value;
        changed.member = false; /* a member is not proven absent */
        got = cx_smt_fold(scheme, &changed);
        CHECK(!cx_digest_eq(&got, root));
    }
}

static void check_proofs(model *m, cx_smt *smt, const cx_digest *keys, size_t count, uint64_t *seed)
{
    cx_arena arena;
    const cx_smt_path *paths = NULL;
    cx_err err = {0};
    cx_digest root = subtree(m, 0, m->count, 0), folded[KEYS_MAX];
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_smt_prove(smt, keys, count, &arena, &paths, &err);
    if (!cx_failed(status))
        status = cx_smt_fold_many(m->scheme, paths, count, &arena, folded, &err);
    CHECK(!cx_failed(status));
    for (size_t i = 0; !cx_failed(status) && i < count; i++) {
        cx_digest one = cx_smt_fold(m->scheme, &paths[i]);
        CHECK(cx_digest_eq(&one, &root));
        CHECK(cx_digest_eq(&folded[i], &root));
        check_path(m, &paths[i], &keys[i]);
        if (i < 4)
            check_fold_is_tight(m->scheme, &paths[i], &root, seed);
    }
    cx_arena_done(&arena);
}

static cx_digest smt_root(cx_smt *smt)
{
    cx_digest root = {{0}};
    cx_err err = {0};
    CHECK_STATUS(cx_smt_root(smt, &root, &err), &err);
    return root;
}

/* --- keys ------------------------------------------------------------------------------------ */

typedef enum key_kind { RANDOM_KEYS, SHARED_KEYS, EIGHT_BIT_KEYS, KEY_KINDS } key_kind;

static cx_digest random_digest(uint64_t *seed)
{
    uint64_t number = cx_test_random(seed);
    return cx_digest_of(cx_bytes_from(&number, sizeof number));
}

static cx_digest make_key(key_kind kind, uint64_t *seed)
{
    cx_digest key = {{0}};
    if (kind == RANDOM_KEYS)
        return random_digest(seed);
    if (kind == EIGHT_BIT_KEYS) {
        key.bytes[0] = (uint8_t)cx_test_random(seed);
        return key;
    }
    /* A few bits set anywhere: many agree in hundreds of bits. */
    for (unsigned i = 0; i < 3; i++) {
        unsigned bit = (unsigned)(cx_test_random(seed) % 256);
        if (cx_test_random(seed) % 2 == 0)
            bit = 255 - bit % 16;
        key.bytes[bit / 8] |= (uint8_t)(0x80u >> bit % 8);
    }
    return key;
}

/* --- histories ------------------------------------------------------------------------------- */

typedef struct history {
    model m;
    cx_smt *lazy;  /* asked for its root now and then */
    cx_smt *eager; /* after every change */
    key_kind kind;
    uint64_t seed;
} history;

static void put_both(history *h, const cx_smt_pair *pairs, size_t count)
{
    cx_err err = {0};
    if (count == 1)
        CHECK_STATUS(cx_smt_put(h->lazy, &pairs->key, &pairs->value, &err), &err);
    else
        CHECK_STATUS(cx_smt_put_many(h->lazy, pairs, count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        model_put(&h->m, &pairs[i]);
        CHECK_STATUS(cx_smt_put(h->eager, &pairs[i].key, &pairs[i].value, &err), &err);
        (void)smt_root(h->eager);
    }
}

/* Some new keys, some that are there, some twice with different values. */
static void put_some(history *h, size_t count)
{
    cx_smt_pair pairs[KEYS_MAX];
    if (h->m.count + count > KEYS_MAX)
        return;
    for (size_t i = 0; i < count; i++) {
        pairs[i] = (cx_smt_pair){make_key(h->kind, &h->seed), random_digest(&h->seed)};
        if (h->m.count != 0 && cx_test_random(&h->seed) % 3 == 0)
            pairs[i].key = h->m.pairs[cx_test_random(&h->seed) % h->m.count].key;
        else if (i != 0 && cx_test_random(&h->seed) % 4 == 0)
            pairs[i].key = pairs[cx_test_random(&h->seed) % i].key;
    }
    put_both(h, pairs, count);
}

static void remove_some(history *h, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool lazy_was = false, eager_was = false;
        cx_err err = {0};
        cx_digest key = make_key(h->kind, &h->seed);
        if (h->m.count != 0 && cx_test_random(&h->seed) % 4 != 0)
            key = h->m.pairs[cx_test_random(&h->seed) % h->m.count].key;
        bool had = model_has(&h->m, &key);
        if (had)
            model_remove(&h->m, &key);
        CHECK_STATUS(cx_smt_remove(h->lazy, &key, &lazy_was, &err), &err);
        CHECK_STATUS(cx_smt_remove(h->eager, &key, &eager_was, &err), &err);
        (void)smt_root(h->eager);
        CHECK(lazy_was == had && eager_was == had);
    }
}

static void check_now(history *h)
{
    cx_digest expected = subtree(&h->m, 0, h->m.count, 0), got = smt_root(h->lazy);
    cx_digest keys[24], value;
    size_t count = 0;
    CHECK(cx_digest_eq(&got, &expected));
    got = smt_root(h->eager);
    CHECK(cx_digest_eq(&got, &expected));
    CHECK_INT(cx_smt_count(h->lazy), h->m.count);
    CHECK_INT(cx_smt_branches(h->lazy), h->m.count == 0 ? 0 : h->m.count - 1);
    for (size_t i = 0; i < h->m.count; i++)
        CHECK(cx_smt_get(h->lazy, &h->m.pairs[i].key, &value) &&
              cx_digest_eq(&value, &h->m.pairs[i].value));
    for (; count < 12; count++) {
        keys[count] = make_key(h->kind, &h->seed);
        CHECK(cx_smt_get(h->lazy, &keys[count], &value) == model_has(&h->m, &keys[count]));
    }
    for (; count < 24 && h->m.count != 0; count++) {
        keys[count] = h->m.pairs[cx_test_random(&h->seed) % h->m.count].key;
        /* An absent key next to one that is there. */
        if (cx_test_random(&h->seed) % 2 == 0) {
            unsigned bit = (unsigned)(cx_test_random(&h->seed) % 256);
            keys[count].bytes[bit / 8] ^= (uint8_t)(0x80u >> bit % 8);
        }
    }
    check_proofs(&h->m, h->lazy, keys, count, &h->seed);
}

static bool open_history(history *h, cx_scheme scheme, key_kind kind, uint64_t seed)
{
    cx_err err = {0};
    memset(h, 0, sizeof *h);
    h->m.scheme = scheme;
    h->kind = kind;
    h->seed = seed;
    cx_status status = cx_smt_open(scheme, cx_alloc_default(), &h->lazy, &err);
    if (!cx_failed(status))
        status = cx_smt_open(scheme, cx_alloc_default(), &h->eager, &err);
    CHECK(!cx_failed(status));
    return !cx_failed(status);
}

static void close_history(history *h)
{
    cx_smt_close(h->lazy);
    cx_smt_close(h->eager);
}

static void run_history(cx_scheme scheme, key_kind kind, uint64_t seed, unsigned steps)
{
    history h;
    if (open_history(&h, scheme, kind, seed)) {
        check_now(&h);
        for (unsigned step = 0; step < steps; step++) {
            uint64_t choice = cx_test_random(&h.seed) % 8;
            if (choice < 3)
                put_some(&h, 1);
            else if (choice < 5)
                put_some(&h, 1 + cx_test_random(&h.seed) % 60);
            else if (choice < 7)
                remove_some(&h, 1 + cx_test_random(&h.seed) % 20);
            else
                check_now(&h);
        }
        check_now(&h);
        remove_some(&h, 1000);
        while (h.m.count != 0)
            remove_some(&h, 1);
        check_now(&h);
    }
    close_history(&h);
}

CX_TEST(smt_histories_cortex_1)
{
    for (unsigned turn = 0; turn < 60; turn++)
        run_history(CX_SCHEME_CORTEX_1, (key_kind)(turn % KEY_KINDS), cx_test_seed() + turn, 30);
}

/* The model alone hashes 256 nodes a key there. */
CX_TEST(smt_histories_matrix_1)
{
    for (unsigned turn = 0; turn < 6; turn++)
        run_history(CX_SCHEME_MATRIX_1, (key_kind)(turn % KEY_KINDS), cx_test_seed() + turn, 10);
}

/* Loading into an empty tree is another way to the same tree; so is every order. */
CX_TEST(smt_loading_equals_putting)
{
    static const size_t counts[] = {1, 2, 3, 31, 32, 33, 63, 64, 65, 100, 300};
    for (unsigned turn = 0; turn < 2 * KEY_KINDS * CX_COUNT_OF(counts); turn++) {
        history h;
        if (open_history(&h, schemes[turn % 2], (key_kind)(turn / 2 % KEY_KINDS),
                         cx_test_seed() + turn)) {
            put_some(&h, counts[turn / 2 / KEY_KINDS]);
            cx_digest lazy = smt_root(h.lazy), eager = smt_root(h.eager);
            cx_digest expected = subtree(&h.m, 0, h.m.count, 0);
            CHECK(cx_digest_eq(&lazy, &expected) && cx_digest_eq(&eager, &expected));
        }
        close_history(&h);
    }
}

/* Large enough to be hashed in pieces.  Random keys, and keys chosen to be near one another
 * , which must not make loading slow, or wrong. */
static void check_large_tree(bool near)
{
    enum { COUNT = 20000 };
    cx_smt_pair *pairs = calloc(COUNT, sizeof *pairs);
    cx_smt *loaded = NULL, *put = NULL;
    cx_err err = {0};
    uint64_t seed = cx_test_seed();
    REQUIRE(pairs != NULL);
    CHECK_STATUS(cx_smt_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &loaded, &err), &err);
    CHECK_STATUS(cx_smt_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &put, &err), &err);
    for (size_t i = 0; i < COUNT; i++) {
        pairs[i] = (cx_smt_pair){random_digest(&seed), random_digest(&seed)};
        if (near)
            memset(pairs[i].key.bytes, 0x77, 24);
        CHECK_STATUS(cx_smt_put(put, &pairs[i].key, &pairs[i].value, &err), &err);
        if (i % 1500 == 0)
            (void)smt_root(put);
    }
    CHECK_STATUS(cx_smt_put_many(loaded, pairs, COUNT, &err), &err);
    qsort(pairs, COUNT, sizeof *pairs, by_key);
    cx_digest expected = root_of_sorted(CX_SCHEME_CORTEX_1, pairs, 0, COUNT, 0);
    cx_digest a = smt_root(loaded), b = smt_root(put);
    CHECK(cx_digest_eq(&a, &expected));
    CHECK(cx_digest_eq(&b, &expected));
    cx_smt_close(loaded);
    cx_smt_close(put);
    free(pairs);
}

CX_TEST(smt_large_trees)
{
    check_large_tree(false);
    check_large_tree(true);
}

/* All trees over two bits, and every way to change one into another: 4^4 states (absent or one of
 * three values for each of four keys), each change of one key. */
CX_TEST(smt_every_small_tree)
{
    for (size_t s = 0; s < CX_COUNT_OF(schemes); s++) {
        history h;
        cx_digest values[4];
        cx_err err = {0};
        uint64_t seed = cx_test_seed();
        unsigned state = 0;
        if (!open_history(&h, schemes[s], EIGHT_BIT_KEYS, seed)) {
            close_history(&h);
            return;
        }
        for (size_t i = 0; i < 4; i++)
            values[i] = random_digest(&seed);
        /* A walk long enough to take nearly all of the 256 * 12 changes. */
        for (unsigned step = 0; step < (s == 0 ? 20000 : 600); step++) {
            unsigned which = (unsigned)(cx_test_random(&seed) % 4);
            unsigned what = (unsigned)(cx_test_random(&seed) % 4);
            cx_smt_pair pair = {{{(uint8_t)(which << 6)}}, values[what]};
            bool was = false, had = (state >> 2 * which & 3) != 0;
            if (what == 0) {
                CHECK_STATUS(cx_smt_remove(h.lazy, &pair.key, &was, &err), &err);
                CHECK(was == had);
                if (had)
                    model_remove(&h.m, &pair.key);
            } else {
                CHECK_STATUS(cx_smt_put(h.lazy, &pair.key, &pair.value, &err), &err);
                model_put(&h.m, &pair);
            }
            state = (state & ~(3u << 2 * which)) | what << 2 * which;
            cx_digest got = smt_root(h.lazy), expected = subtree(&h.m, 0, h.m.count, 0);
            CHECK(cx_digest_eq(&got, &expected));
        }
        close_history(&h);
    }
}

/* The eight-bit tree whole: every key put, each proven, each absent while the tree fills and
 * empties again. */
CX_TEST(smt_eight_bit_tree)
{
    for (size_t s = 0; s < CX_COUNT_OF(schemes); s++) {
        history h;
        cx_digest keys[256], roots[257];
        uint64_t seed = cx_test_seed();
        if (!open_history(&h, schemes[s], EIGHT_BIT_KEYS, seed)) {
            close_history(&h);
            return;
        }
        for (unsigned i = 0; i < 256; i++)
            keys[i] = (cx_digest){{(uint8_t)(i * 167)}};
        for (unsigned i = 0; i <= 256; i++) {
            roots[i] = smt_root(h.lazy);
            if (i % (s == 0 ? 16 : 128) == 0)
                check_proofs(&h.m, h.lazy, keys, 256, &seed);
            if (i < 256) {
                cx_smt_pair pair = {keys[i], random_digest(&seed)};
                put_both(&h, &pair, 1);
            }
        }
        for (unsigned i = 256; i-- > 0;) {
            bool was = false;
            cx_err err = {0};
            CHECK_STATUS(cx_smt_remove(h.lazy, &keys[i], &was, &err), &err);
            cx_digest got = smt_root(h.lazy);
            CHECK(was && cx_digest_eq(&got, &roots[i]));
        }
        close_history(&h);
    }
}

/* ledger.md §14.27: at most 2n branches (ours have two sides, so n - 1), and short paths. */
CX_TEST(smt_sizes_of_random_trees)
{
    uint64_t seed = cx_test_seed();
    cx_smt *smt = NULL;
    cx_err err = {0};
    CHECK_STATUS(cx_smt_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &smt, &err), &err);
    REQUIRE(smt != NULL);
    for (uint64_t n = 1; n <= 30000; n++) {
        cx_smt_pair pair = {random_digest(&seed), random_digest(&seed)};
        CHECK_STATUS(cx_smt_put(smt, &pair.key, &pair.value, &err), &err);
        if ((n & (n - 1)) != 0 || n < 16)
            continue;
        cx_arena arena;
        const cx_smt_path *path = NULL;
        cx_digest keys[2] = {pair.key, random_digest(&seed)};
        cx_arena_init(&arena, cx_alloc_default(), 0);
        CHECK_STATUS(cx_smt_prove(smt, keys, 2, &arena, &path, &err), &err);
        CHECK(cx_smt_branches(smt) <= 2 * n);
        for (size_t i = 0; path != NULL && i < 2; i++)
            CHECK(path[i].sibling_count <= 2 * (size_t)__builtin_ctzll(n) + 20);
        cx_arena_done(&arena);
    }
    cx_smt_close(smt);
}

/* Paths that do not belong together must not be folded together. */
CX_TEST(smt_fold_many_of_forged_paths)
{
    history h;
    uint64_t seed = cx_test_seed();
    if (open_history(&h, CX_SCHEME_CORTEX_1, RANDOM_KEYS, seed)) {
        put_some(&h, 200);
        cx_digest keys[100], folded[100];
        cx_arena arena;
        const cx_smt_path *paths = NULL;
        cx_err err = {0};
        cx_arena_init(&arena, cx_alloc_default(), 0);
        for (size_t i = 0; i < 100; i++)
            keys[i] = i % 4 == 3 ? random_digest(&seed) : h.m.pairs[i].key;
        CHECK_STATUS(cx_smt_prove(h.lazy, keys, 100, &arena, &paths, &err), &err);
        for (unsigned turn = 0; paths != NULL && turn < 300; turn++) {
            cx_smt_path forged[100];
            cx_digest siblings[256], value = random_digest(&seed);
            size_t which = cx_test_random(&seed) % 100;
            memcpy(forged, paths, sizeof forged);
            if (paths[which].sibling_count != 0)
                memcpy(siblings, paths[which].siblings,
                       paths[which].sibling_count * sizeof *siblings);
            forged[which].siblings = siblings;
            if (turn % 3 == 0)
                forged[which].value = value;
            else if (forged[which].sibling_count != 0)
                siblings[cx_test_random(&seed) % forged[which].sibling_count] = value;
            if (turn % 5 == 0)
                forged[(which + 1) % 100] = forged[which]; /* a key twice */
            CHECK_STATUS(cx_smt_fold_many(CX_SCHEME_CORTEX_1, forged, 100, &arena, folded, &err),
                         &err);
            for (size_t i = 0; i < 100; i++) {
                cx_digest one = cx_smt_fold(CX_SCHEME_CORTEX_1, &forged[i]);
                CHECK(cx_digest_eq(&folded[i], &one));
            }
        }
        cx_arena_done(&arena);
    }
    close_history(&h);
}
