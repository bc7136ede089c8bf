/*
 * test_smt.c - the sparse Merkle tree against the vectors of both schemes, and at its edges.  The
 * model it is compared with over random keys is in tests/property/test_smt_model.c.
 */
#include "tree/smt.h"

#include <stdlib.h>

#include "tests/support/fault.h"
#include "tests/support/tree_vectors.h"

static cx_smt *smt_open(cx_scheme scheme)
{
    cx_smt *smt = NULL;
    cx_err err = {0};
    CHECK_STATUS(cx_smt_open(scheme, cx_alloc_default(), &smt, &err), &err);
    return smt;
}

static void put(cx_smt *smt, const cx_digest *key, const cx_digest *value)
{
    cx_err err = {0};
    CHECK_STATUS(cx_smt_put(smt, key, value, &err), &err);
}

static cx_digest root_of(cx_smt *smt)
{
    cx_digest root = {{0}};
    cx_err err = {0};
    CHECK_STATUS(cx_smt_root(smt, &root, &err), &err);
    return root;
}

static cx_digest text_value(cx_scheme scheme, const char *text)
{
    return cx_scheme_value(scheme, cx_str_bytes(cx_str_z(text)));
}

static cx_digest id_key(cx_scheme scheme, uint64_t i)
{
    cx_digest id = tree_id(i);
    return cx_scheme_memory_key(scheme, id.bytes);
}

/* --- vectors ------------------------------------------------------------------------------- */

/* What a file says of one path; in matrix-1 siblings that are not listed are empty. */
static void check_siblings(cx_scheme scheme, const cx_smt_path *path, const cx_json *expected)
{
    const cx_json *all = CX_JSON_GET(expected, "siblings");
    if (scheme == CX_SCHEME_CORTEX_1) {
        REQUIRE(all != NULL && path->sibling_count == all->count);
        for (uint32_t i = 0; i < all->count; i++)
            CHECK_DIGEST(path->siblings[i], tree_hex(&all->items[i]));
        return;
    }
    const cx_json *some = CX_JSON_GET(expected, "non_default_siblings");
    REQUIRE(some != NULL && path->sibling_count == 256);
    for (uint32_t i = 0, next = 0; i < 256; i++) {
        bool listed = next < some->count && tree_number(&some->items[next], "index") == i;
        CHECK_DIGEST(path->siblings[i], listed ? tree_digest(&some->items[next++], "hash")
                                               : cx_scheme_smt_empty(scheme, i + 1));
        CHECK(i < 255 || next == some->count);
    }
    CHECK_DIGEST(cx_digest_of(cx_bytes_from(path->siblings, 256 * sizeof *path->siblings)),
                 tree_digest(expected, "sha256_of_256_siblings_concat"));
}

static void check_proof(cx_smt *smt, cx_scheme scheme, const cx_json *expected)
{
    cx_arena arena;
    const cx_smt_path *path;
    cx_err err = {0};
    cx_digest key = tree_digest(expected, "key_hash"), root = tree_digest(expected, "root");
    const cx_json *other = CX_JSON_GET(expected, "other");
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_smt_prove(smt, &key, 1, &arena, &path, &err);
    CHECK(!cx_failed(status));
    if (!cx_failed(status)) {
        check_siblings(scheme, path, expected);
        CHECK_DIGEST(path->key, key);
        CHECK(path->member == (CX_JSON_GET(expected, "member")->type == CX_JSON_TRUE));
        if (path->member)
            CHECK_DIGEST(path->value, tree_digest(expected, "value_hash"));
        CHECK(path->has_other == (other != NULL && other->type == CX_JSON_ARRAY));
        if (path->has_other) {
            CHECK_DIGEST(path->other_key, tree_hex(&other->items[0]));
            CHECK_DIGEST(path->other_value, tree_hex(&other->items[1]));
        }
        CHECK_DIGEST(cx_smt_fold(scheme, path), root);
        CHECK_DIGEST(root_of(smt), root);
    }
    cx_arena_done(&arena);
}

/* Proofs that belong after that step; returns how many. */
static unsigned check_proofs_after(cx_smt *smt, cx_scheme scheme, const cx_json *proofs,
                                   uint64_t step)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < proofs->count; i++) {
        const cx_json *proof = &proofs->items[i];
        if (CX_JSON_GET(proof, "after_step") == NULL || tree_number(proof, "after_step") != step)
            continue;
        check_proof(smt, scheme, proof);
        count++;
    }
    return count;
}

/* Branches of the format, those with an empty side too: distinct beginnings of all paths. */
static uint64_t format_branches(cx_smt *smt, const cx_digest *keys, size_t count)
{
    cx_arena arena;
    const cx_smt_path *paths;
    uint64_t branches = 0;
    cx_err err = {0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    if (cx_failed(cx_smt_prove(smt, keys, count, &arena, &paths, &err)))
        count = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t depth = 0; depth < paths[i].sibling_count; depth++) {
            bool seen = false;
            for (size_t k = 0; k < i && !seen; k++) {
                size_t same = 0;
                while (same < depth && (keys[i].bytes[same / 8] >> (7 - same % 8) & 1) ==
                                           (keys[k].bytes[same / 8] >> (7 - same % 8) & 1))
                    same++;
                seen = same == depth && paths[k].sibling_count > depth;
            }
            branches += !seen;
        }
    }
    cx_arena_done(&arena);
    return branches;
}

static void check_steps(cx_smt *smt, cx_scheme scheme, const tree_file *file)
{
    const cx_json *steps = tree_list(file, "/steps"), *proofs = tree_list(file, "/proofs");
    cx_digest keys[32];
    size_t key_count = 0;
    unsigned proof_count = check_proofs_after(smt, scheme, proofs, 0);
    CHECK_DIGEST(root_of(smt), tree_digest(&file->root, "empty_root"));
    for (uint32_t i = 0; i < steps->count; i++) {
        const cx_json *step = &steps->items[i];
        cx_digest key = tree_digest(step, "key_hash"), value = tree_digest(step, "value_hash"), now;
        uint8_t text[64];
        cx_str hex = CX_JSON_GET_STR(step, "value");
        REQUIRE(hex.size / 2 < sizeof text && cx_hex_decode(hex, text, hex.size / 2));
        CHECK_DIGEST(cx_scheme_value(scheme, cx_bytes_from(text, hex.size / 2)), value);
        if (!cx_smt_get(smt, &key, &now)) {
            CHECK_DIGEST(id_key(scheme, key_count), key);
            keys[key_count++] = key;
        }
        put(smt, &key, &value);
        CHECK(cx_smt_get(smt, &key, &now) && cx_digest_eq(&now, &value));
        CHECK_DIGEST(root_of(smt), tree_digest(step, "root"));
        CHECK_INT(cx_smt_count(smt), key_count);
        if (scheme == CX_SCHEME_CORTEX_1) {
            CHECK_INT(key_count, tree_number(step, "keys"));
            CHECK_INT(format_branches(smt, keys, key_count), tree_number(step, "branch_nodes"));
        }
        proof_count += check_proofs_after(smt, scheme, proofs, tree_number(step, "step"));
    }
    CHECK(proof_count >= 4);
    /* And back, in another order. */
    for (size_t i = 0; i < key_count; i++) {
        bool was = false;
        cx_err err = {0};
        CHECK_STATUS(cx_smt_remove(smt, &keys[(i * 7 + 3) % key_count], &was, &err), &err);
        CHECK(was);
    }
    CHECK_DIGEST(root_of(smt), tree_digest(&file->root, "empty_root"));
    CHECK_INT(cx_smt_count(smt) + cx_smt_branches(smt), 0);
}

CX_TEST(smt_vectors)
{
    for (size_t s = 0; s < CX_COUNT_OF(tree_schemes); s++) {
        tree_file file;
        cx_smt *smt = smt_open(tree_schemes[s]);
        if (tree_file_open(&file, tree_schemes[s], "smt.json") && smt != NULL)
            check_steps(smt, tree_schemes[s], &file);
        cx_smt_close(smt);
        tree_file_close(&file);
    }
}

static cx_smt_pair edge_pair(cx_scheme scheme, uint64_t i)
{
    char text[32];
    cx_digest src = tree_id(i), dst = tree_id(i + 1);
    (void)snprintf(text, sizeof text, "edge-%llu", (unsigned long long)i);
    return (cx_smt_pair){cx_scheme_edge_key(scheme, src.bytes, (uint8_t)(1 + i % 14), dst.bytes),
                         text_value(scheme, text)};
}

/* Put one by one, and all at once. */
static void check_edge_tree(cx_scheme scheme, const cx_json *expected)
{
    size_t n = (size_t)tree_number(expected, "n");
    cx_digest root = tree_digest(expected, "root");
    cx_smt *one = smt_open(scheme), *many = smt_open(scheme);
    cx_smt_pair *pairs = calloc(n, sizeof *pairs);
    cx_err err = {0};
    REQUIRE(pairs != NULL && one != NULL && many != NULL);
    for (size_t i = 0; i < n; i++) {
        pairs[i] = edge_pair(scheme, i);
        put(one, &pairs[i].key, &pairs[i].value);
    }
    CHECK_STATUS(cx_smt_put_many(many, pairs, n, &err), &err);
    CHECK_DIGEST(root_of(one), root);
    CHECK_DIGEST(root_of(many), root);
    CHECK_INT(cx_smt_count(one), n);
    CHECK_INT(cx_smt_branches(many), n - 1);
    cx_smt_close(one);
    cx_smt_close(many);
    free(pairs);
}

CX_TEST(smt_edge_trees)
{
    for (size_t s = 0; s < CX_COUNT_OF(tree_schemes); s++) {
        tree_file file;
        if (tree_file_open(&file, tree_schemes[s], "smt.json")) {
            const cx_json *list = tree_list(&file, "/edge_tree_roots");
            for (uint32_t i = 0; i < list->count; i++)
                check_edge_tree(tree_schemes[s], &list->items[i]);
        }
        tree_file_close(&file);
    }
}

CX_TEST(smt_two_keys_sharing_255_bits)
{
    tree_file file;
    cx_smt *smt = smt_open(CX_SCHEME_CORTEX_1);
    if (tree_file_open(&file, CX_SCHEME_CORTEX_1, "smt.json") && smt != NULL) {
        const cx_json *proofs = tree_list(&file, "/proofs");
        unsigned seen = 0;
        cx_digest zero = {{0}}, one = {{0}};
        cx_digest a = text_value(CX_SCHEME_CORTEX_1, "a"), b = text_value(CX_SCHEME_CORTEX_1, "b");
        one.bytes[31] = 1;
        put(smt, &zero, &a);
        put(smt, &one, &b);
        for (uint32_t i = 0; i < proofs->count; i++) {
            if (CX_JSON_GET(&proofs->items[i], "after_step") != NULL)
                continue;
            check_proof(smt, CX_SCHEME_CORTEX_1, &proofs->items[i]);
            seen++;
        }
        CHECK_INT(seen, 1);
        CHECK_INT(cx_smt_branches(smt), 1);
    }
    cx_smt_close(smt);
    tree_file_close(&file);
}

/* --- edges --------------------------------------------------------------------------------- */

CX_TEST(smt_refuses_zero_values)
{
    cx_smt *smt = smt_open(CX_SCHEME_CORTEX_1);
    cx_digest key = tree_id(1), zeros = {{0}}, found;
    cx_smt_pair pairs[2] = {{tree_id(2), tree_id(3)}, {tree_id(4), zeros}};
    cx_err err = {0};
    REQUIRE(smt != NULL);
    CHECK(cx_smt_put(smt, &key, &zeros, &err).code == CX_E_USAGE);
    CHECK(cx_smt_put_many(smt, pairs, 2, &err).code == CX_E_USAGE);
    CHECK_INT(cx_smt_count(smt), 0);
    CHECK(!cx_smt_get(smt, &pairs[0].key, &found));
    CHECK(cx_smt_reserve(smt, UINT64_MAX, &err).code == CX_E_LIMIT);
    cx_smt_close(smt);
    cx_smt_close(NULL);
}

CX_TEST(smt_removing_what_is_absent)
{
    cx_smt *smt = smt_open(CX_SCHEME_CORTEX_1);
    cx_digest a = tree_id(1), b = tree_id(2);
    bool was = true;
    cx_err err = {0};
    REQUIRE(smt != NULL);
    CHECK_STATUS(cx_smt_remove(smt, &a, &was, &err), &err);
    CHECK(!was);
    put(smt, &a, &b);
    cx_digest before = root_of(smt);
    was = true;
    CHECK_STATUS(cx_smt_remove(smt, &b, &was, &err), &err);
    CHECK(!was);
    CHECK_DIGEST(root_of(smt), before);
    cx_smt_close(smt);
}

/* What did not change is not hashed again. */
CX_TEST(smt_hashes_only_what_is_stale)
{
    cx_smt *smt = smt_open(CX_SCHEME_CORTEX_1);
    REQUIRE(smt != NULL);
    for (uint64_t i = 0; i < 1000; i++) {
        cx_digest key = id_key(CX_SCHEME_CORTEX_1, i), value = tree_leaf(i);
        put(smt, &key, &value);
    }
    CHECK_INT(cx_smt_hashes(smt), 0);
    (void)root_of(smt);
    uint64_t whole = cx_smt_hashes(smt);
    CHECK(whole >= 1999 && whole <= 2 * 1999); /* leaves, branches, some one-sided ones */
    (void)root_of(smt);
    CHECK_INT(cx_smt_hashes(smt), whole);
    cx_digest key = id_key(CX_SCHEME_CORTEX_1, 5), same = tree_leaf(5), other = tree_leaf(6);
    put(smt, &key, &same);
    (void)root_of(smt);
    CHECK_INT(cx_smt_hashes(smt), whole);
    put(smt, &key, &other);
    (void)root_of(smt);
    /* The leaf, and the branches above it. */
    cx_arena arena;
    const cx_smt_path *path = NULL;
    cx_err err = {0};
    uint64_t after = cx_smt_hashes(smt);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_smt_prove(smt, &key, 1, &arena, &path, &err), &err);
    CHECK(path != NULL && after == whole + 1 + path->sibling_count);
    cx_arena_done(&arena);
    cx_smt_close(smt);
}

/* ledger.md §14.27: 140 bytes a key and what growth leaves unused. */
CX_TEST(smt_memory)
{
    cx_smt *smt = smt_open(CX_SCHEME_CORTEX_1);
    cx_err err = {0};
    REQUIRE(smt != NULL);
    CHECK(cx_smt_memory(smt) < 512);
    CHECK_STATUS(cx_smt_reserve(smt, 10000, &err), &err);
    size_t reserved = cx_smt_memory(smt);
    CHECK(reserved <= 145 * 10000);
    for (uint64_t i = 0; i < 10000; i++) {
        cx_digest key = tree_id(i);
        put(smt, &key, &key);
    }
    CHECK_INT(cx_smt_memory(smt), reserved);
    cx_smt_close(smt);
}

/* --- memory that fails --------------------------------------------------------------------- */

enum { FAULT_KEYS = 60 };

static cx_digest plain_root(cx_scheme scheme, const cx_smt_pair *pairs, size_t count)
{
    cx_smt *smt = smt_open(scheme);
    for (size_t i = 0; i < count; i++)
        put(smt, &pairs[i].key, &pairs[i].value);
    cx_digest root = root_of(smt);
    cx_smt_close(smt);
    return root;
}

/* Puts half one by one, half at once, asks for roots and proofs; each failing call is repeated, and
 * must have changed nothing. */
static void put_with_faults(cx_smt *smt, cx_scheme scheme, const cx_smt_pair *pairs)
{
    const size_t half = FAULT_KEYS / 2;
    cx_err err = {0};
    cx_digest root, keys[2] = {pairs[3].key, tree_id(1000)};
    const cx_smt_path *paths;
    for (size_t i = 0; i < half; i++) {
        if (cx_failed(cx_smt_put(smt, &pairs[i].key, &pairs[i].value, &err))) {
            CHECK(err.code == CX_E_NOMEM);
            CHECK_INT(cx_smt_count(smt), i);
            CHECK_DIGEST(root_of(smt), plain_root(scheme, pairs, i));
            put(smt, &pairs[i].key, &pairs[i].value);
        }
    }
    if (cx_failed(cx_smt_root(smt, &root, &err)))
        CHECK_DIGEST(root_of(smt), plain_root(scheme, pairs, half));
    if (cx_failed(cx_smt_put_many(smt, pairs + half, half, &err))) {
        CHECK(err.code == CX_E_NOMEM);
        CHECK_DIGEST(root_of(smt), plain_root(scheme, pairs, half));
        CHECK_STATUS(cx_smt_put_many(smt, pairs + half, half, &err), &err);
    }
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    if (cx_failed(cx_smt_prove(smt, keys, 2, &arena, &paths, &err)))
        CHECK_STATUS(cx_smt_prove(smt, keys, 2, &arena, &paths, &err), &err);
    cx_digest whole = plain_root(scheme, pairs, FAULT_KEYS);
    CHECK(paths[0].member && !paths[1].member);
    CHECK_DIGEST(cx_smt_fold(scheme, &paths[0]), whole);
    CHECK_DIGEST(cx_smt_fold(scheme, &paths[1]), whole);
    CHECK_DIGEST(root_of(smt), whole);
    cx_arena_done(&arena);
}

static void check_fault(cx_scheme scheme, const cx_smt_pair *pairs)
{
    unsigned fired_count = 0;
    for (uint64_t at = 1;; at++) {
        fault_alloc memory;
        cx_smt *smt = NULL;
        cx_err err = {0};
        fault_alloc_init(&memory, at, false);
        if (!cx_failed(cx_smt_open(scheme, &memory.alloc, &smt, &err)))
            put_with_faults(smt, scheme, pairs);
        else
            CHECK(at == 1 && err.code == CX_E_NOMEM);
        cx_smt_close(smt);
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
        CHECK(!atomic_load(&memory.wrong_size));
        if (atomic_load(&memory.fired) == 0)
            break;
        fired_count++;
        REQUIRE(at < 1000);
    }
    CHECK(fired_count > 8);
}

CX_TEST(smt_without_memory)
{
    for (size_t s = 0; s < CX_COUNT_OF(tree_schemes); s++) {
        cx_smt_pair pairs[FAULT_KEYS];
        for (size_t i = 0; i < FAULT_KEYS; i++)
            pairs[i] = (cx_smt_pair){tree_id(i), tree_leaf(i)};
        check_fault(tree_schemes[s], pairs);
    }
}

/* A tree that is hashed in pieces: where memory runs out half of the way, the rest is done later.
 */
CX_TEST(smt_large_root_without_memory)
{
    enum { COUNT = 5000 };
    cx_smt_pair *pairs = calloc(COUNT, sizeof *pairs);
    cx_digest expected = {{0}};
    unsigned fired_count = 0;
    REQUIRE(pairs != NULL);
    for (size_t i = 0; i < COUNT; i++)
        pairs[i] = (cx_smt_pair){tree_id(i), tree_leaf(i)};
    for (uint64_t at = 0;; at++) {
        fault_alloc memory;
        cx_smt *smt = NULL;
        cx_err err = {0};
        cx_digest root = {{0}};
        fault_alloc_init(&memory, FAULT_NEVER, false);
        CHECK_STATUS(cx_smt_open(CX_SCHEME_CORTEX_1, &memory.alloc, &smt, &err), &err);
        CHECK_STATUS(cx_smt_put_many(smt, pairs, COUNT, &err), &err);
        memory.fail_at = at == 0 ? FAULT_NEVER : atomic_load(&memory.calls) + at;
        cx_status status = cx_smt_root(smt, &root, &err);
        if (at == 0)
            expected = root;
        CHECK(cx_failed(status) == (atomic_load(&memory.fired) != 0));
        CHECK_DIGEST(root_of(smt), expected);
        fired_count += cx_failed(status);
        cx_smt_close(smt);
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
        if (at != 0 && !cx_failed(status))
            break;
        REQUIRE(at < 200);
    }
    CHECK(fired_count > 15);
    free(pairs);
}

CX_TEST(smt_proving_without_memory)
{
    cx_smt *smt = smt_open(CX_SCHEME_CORTEX_1);
    cx_err err = {0};
    REQUIRE(smt != NULL);
    cx_digest keys[3];
    for (uint64_t i = 0; i < 3; i++) {
        keys[i] = tree_id(i);
        put(smt, &keys[i], &keys[i]);
    }
    cx_digest root = root_of(smt);
    for (uint64_t at = 1;; at++) {
        fault_alloc memory;
        cx_arena arena;
        const cx_smt_path *paths = NULL;
        cx_digest roots[3];
        fault_alloc_init(&memory, at, true);
        cx_arena_init(&arena, &memory.alloc, 0);
        cx_status status = cx_smt_prove(smt, keys, 3, &arena, &paths, &err);
        if (!cx_failed(status))
            status = cx_smt_fold_many(CX_SCHEME_CORTEX_1, paths, 3, &arena, roots, &err);
        CHECK(!cx_failed(status) || err.code == CX_E_NOMEM);
        if (!cx_failed(status))
            CHECK_DIGEST(roots[2], root);
        cx_arena_done(&arena);
        if (atomic_load(&memory.fired) == 0)
            break;
        REQUIRE(at < 100);
    }
    cx_smt_close(smt);
}
