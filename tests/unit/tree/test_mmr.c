/*
 * test_mmr.c - the journal tree against the vectors of both schemes, and at its edges.  The model
 * it is compared with at all small sizes is in tests/property/test_mmr_model.c.
 */
#include "tree/mmr.h"

#include "tests/support/fault.h"
#include "tests/support/tree_vectors.h"

/* A tree of tree_leaf(0..count-1). */
static cx_mmr *mmr_of(cx_scheme scheme, uint64_t count)
{
    cx_mmr *mmr = NULL;
    cx_err err = {0};
    CHECK_STATUS(cx_mmr_open(scheme, cx_alloc_default(), &mmr, &err), &err);
    for (uint64_t i = 0; mmr != NULL && i < count; i++) {
        cx_digest leaf = tree_leaf(i);
        CHECK_STATUS(cx_mmr_append(mmr, &leaf, 1, &err), &err);
    }
    return mmr;
}

static cx_digest root_of(cx_mmr *mmr, uint64_t size)
{
    cx_digest root = {{0}};
    cx_err err = {0};
    CHECK_STATUS(cx_mmr_root(mmr, size, &root, &err), &err);
    return root;
}

static void check_path(const cx_mmr_path *path, const cx_json *expected)
{
    REQUIRE(expected != NULL && expected->type == CX_JSON_ARRAY);
    CHECK_INT(path->count, expected->count);
    for (size_t i = 0; i < path->count && i < expected->count; i++)
        CHECK_DIGEST(path->hashes[i], tree_hex(&expected->items[i]));
}

static void check_roots(cx_mmr *mmr, const cx_json *list)
{
    cx_err err = {0};
    for (uint32_t i = 0; i < list->count; i++) {
        const cx_json *item = &list->items[i], *peaks = CX_JSON_GET(item, "peaks");
        cx_mmr_path got;
        uint64_t n = tree_number(item, "n");
        CHECK_DIGEST(root_of(mmr, n), tree_digest(item, "root"));
        CHECK_STATUS(cx_mmr_peaks(mmr, n, got.hashes, &got.count, &err), &err);
        check_path(&got, peaks);
    }
}

static void check_inclusion(cx_scheme scheme, cx_mmr *mmr, const cx_json *list)
{
    cx_err err = {0};
    for (uint32_t i = 0; i < list->count; i++) {
        const cx_json *item = &list->items[i];
        uint64_t index = tree_number(item, "index"), size = tree_number(item, "size");
        cx_mmr_path path = {.count = 0};
        cx_digest leaf = tree_leaf(index), root = root_of(mmr, size);
        CHECK_STATUS(cx_mmr_inclusion(mmr, index, size, &path, &err), &err);
        check_path(&path, CX_JSON_GET(item, "path"));
        CHECK(cx_mmr_inclusion_holds(scheme, index, size, &leaf, path.hashes, path.count, &root));
    }
}

static void check_consistency(cx_scheme scheme, cx_mmr *mmr, const cx_json *list)
{
    cx_err err = {0};
    for (uint32_t i = 0; i < list->count; i++) {
        const cx_json *item = &list->items[i];
        uint64_t size1 = tree_number(item, "size1"), size2 = tree_number(item, "size2");
        cx_mmr_path path = {.count = 0};
        cx_digest root1 = root_of(mmr, size1), root2 = root_of(mmr, size2);
        CHECK_STATUS(cx_mmr_consistency(mmr, size1, size2, &path, &err), &err);
        check_path(&path, CX_JSON_GET(item, "path"));
        CHECK(cx_mmr_consistency_holds(scheme, size1, &root1, size2, &root2, path.hashes,
                                       path.count));
    }
}

/* Every path of every tree up to max_n, hashed together. */
static void check_exhaustive(cx_mmr *mmr, const cx_json *expected)
{
    cx_sha256 inclusion, consistency;
    cx_mmr_path path;
    cx_err err = {0};
    cx_sha256_init(&inclusion);
    cx_sha256_init(&consistency);
    for (uint64_t n = 1; n <= tree_number(expected, "max_n"); n++) {
        for (uint64_t m = 0; m < n; m++) {
            CHECK_STATUS(cx_mmr_inclusion(mmr, m, n, &path, &err), &err);
            cx_sha256_add(&inclusion, path.hashes, path.count * sizeof path.hashes[0]);
            if (m == 0)
                continue;
            CHECK_STATUS(cx_mmr_consistency(mmr, m, n, &path, &err), &err);
            cx_sha256_add(&consistency, path.hashes, path.count * sizeof path.hashes[0]);
        }
    }
    CHECK_DIGEST(cx_sha256_end(&inclusion), tree_digest(expected, "sha256_inclusion"));
    CHECK_DIGEST(cx_sha256_end(&consistency), tree_digest(expected, "sha256_consistency"));
}

CX_TEST(mmr_journal_tree_vectors)
{
    for (size_t s = 0; s < CX_COUNT_OF(tree_schemes); s++) {
        tree_file file;
        cx_mmr *mmr = mmr_of(tree_schemes[s], 1024);
        if (tree_file_open(&file, tree_schemes[s], "journal_tree.json") && mmr != NULL) {
            check_roots(mmr, tree_list(&file, "/roots"));
            check_inclusion(tree_schemes[s], mmr, tree_list(&file, "/inclusion"));
            check_consistency(tree_schemes[s], mmr, tree_list(&file, "/consistency"));
            check_exhaustive(mmr, CX_JSON_GET(&file.root, "exhaustive"));
        }
        cx_mmr_close(mmr);
        tree_file_close(&file);
    }
}

CX_TEST(mmr_anchors)
{
    tree_file file;
    cx_mmr *mmr = mmr_of(CX_SCHEME_CORTEX_1, 1000);
    if (tree_file_open(&file, CX_SCHEME_CORTEX_1, "anchors.json") && mmr != NULL) {
        const cx_json *roots = CX_JSON_GET(&file.root, "journal_root");
        REQUIRE(roots != NULL && roots->type == CX_JSON_OBJECT && roots->count >= 7);
        for (uint32_t i = 0; i < roots->count; i++) {
            cx_json number = roots->members[i].name;
            uint64_t n = 0;
            for (uint32_t k = 0; k < number.count; k++)
                n = 10 * n + (uint64_t)(number.text[k] - '0');
            CHECK_DIGEST(root_of(mmr, n), tree_hex(&roots->members[i].value));
        }
    }
    cx_mmr_close(mmr);
    tree_file_close(&file);
}

/* The published inputs are hashed once more than our leaf_hash: level 0 is H(00 ‖ input). */
CX_TEST(mmr_rfc_6962_inputs)
{
    tree_file file;
    if (tree_file_open(&file, CX_SCHEME_CORTEX_1, "journal_tree.json")) {
        const cx_json *inputs = tree_list(&file, "/rfc6962_reference/inputs");
        const cx_json *roots = tree_list(&file, "/rfc6962_reference/roots");
        cx_digest level[8], empty = {{0}};
        REQUIRE(inputs->count == 8 && roots->count == 9);
        CHECK_DIGEST(cx_scheme_journal_root(CX_SCHEME_CORTEX_1, 0, &empty),
                     tree_hex(&roots->items[0]));
        for (uint32_t i = 0; i < 8; i++) {
            uint8_t data[64] = {0};
            cx_str hex = cx_json_text(&inputs->items[i]);
            REQUIRE(cx_hex_decode(hex, data + 1, hex.size / 2));
            level[i] = cx_digest_of(cx_bytes_from(data, 1 + hex.size / 2));
        }
        CHECK_DIGEST(level[0], tree_hex(&roots->items[1]));
        for (size_t width = 8; width > 1; width /= 2)
            cx_scheme_nodes(CX_SCHEME_CORTEX_1, level, level, width / 2);
        CHECK_DIGEST(level[0], tree_hex(&roots->items[8]));
    }
    tree_file_close(&file);
}

static cx_digest tile(cx_mmr *mmr, unsigned height, uint64_t first, uint64_t count)
{
    cx_sha256 hash;
    cx_err err = {0};
    cx_sha256_init(&hash);
    for (uint64_t i = first; i < first + count; i++) {
        cx_digest node = {{0}};
        CHECK_STATUS(cx_mmr_node(mmr, height, i, &node, &err), &err);
        cx_sha256_add(&hash, node.bytes, sizeof node.bytes);
    }
    return cx_sha256_end(&hash);
}

static void check_leaf(cx_mmr *mmr, uint64_t index, cx_digest expected)
{
    cx_err err = {0};
    cx_digest got = {{0}};
    CHECK_STATUS(cx_mmr_leaves(mmr, index, 1, &got, &err), &err);
    CHECK_DIGEST(got, expected);
}

CX_TEST(mmr_tiles)
{
    tree_file file;
    cx_mmr *mmr = mmr_of(CX_SCHEME_CORTEX_1, 1000);
    if (tree_file_open(&file, CX_SCHEME_CORTEX_1, "journal_tree.json") && mmr != NULL) {
        const cx_json *tiles = CX_JSON_GET(&file.root, "tiles");
        CHECK_DIGEST(tile(mmr, 0, 0, 256), tree_digest(tiles, "tile/0/000 sha256"));
        CHECK_DIGEST(tile(mmr, 0, 768, 232), tree_digest(tiles, "tile/0/003.p/232 sha256"));
        CHECK_DIGEST(tile(mmr, 8, 0, 3), tree_digest(tiles, "tile/1/000.p/3 sha256"));
    }
    cx_mmr_close(mmr);
    tree_file_close(&file);
}

static void check_positions(cx_mmr *mmr, const tree_file *file)
{
    const cx_json *cases = tree_list(file, "/cases"), *nodes = tree_list(file, "/nodes_n16");
    for (uint32_t i = 0; i < cases->count; i++) {
        const cx_json *item = &cases->items[i], *peaks = CX_JSON_GET(item, "peaks");
        uint64_t n = tree_number(item, "n"), first = 0;
        cx_digest got[64];
        size_t count = 0;
        cx_err err = {0};
        CHECK_INT(cx_mmr_positions(n), tree_number(item, "size"));
        CHECK_DIGEST(root_of(mmr, n), tree_digest(item, "root"));
        CHECK_STATUS(cx_mmr_peaks(mmr, n, got, &count, &err), &err);
        REQUIRE(count == peaks->count);
        for (size_t k = 0; k < count; k++) {
            CHECK_DIGEST(got[k], tree_digest(&peaks->items[k], "hash"));
            /* A peak is the last node of its perfect tree. */
            uint64_t width = UINT64_C(1) << (63 - __builtin_clzll(n - first));
            first += width;
            CHECK_INT(cx_mmr_positions(first), tree_number(&peaks->items[k], "pos"));
        }
    }
    for (uint32_t i = 0, leaf = 0; i < nodes->count; i++) {
        if (leaf < 16 && cx_mmr_leaf_position(leaf) == tree_number(&nodes->items[i], "pos"))
            check_leaf(mmr, leaf++, tree_digest(&nodes->items[i], "hash"));
        CHECK(i + 1 < nodes->count || leaf == 16);
    }
}

CX_TEST(mmr_positions)
{
    tree_file file;
    cx_mmr *mmr = mmr_of(CX_SCHEME_MATRIX_1, 1000);
    if (tree_file_open(&file, CX_SCHEME_MATRIX_1, "mmr.json") && mmr != NULL)
        check_positions(mmr, &file);
    cx_mmr_close(mmr);
    tree_file_close(&file);
}

CX_TEST(mmr_out_of_range)
{
    cx_mmr *mmr = mmr_of(CX_SCHEME_CORTEX_1, 5);
    cx_mmr_path path = {.count = 77};
    cx_digest out = {{0x5a}};
    cx_err err = {0};
    REQUIRE(mmr != NULL);
    CHECK(cx_mmr_root(mmr, 6, &out, &err).code == CX_E_NOT_FOUND);
    CHECK_STR(cx_str_z(err.tag), "OutOfRange");
    CHECK(cx_mmr_inclusion(mmr, 5, 5, &path, &err).code == CX_E_NOT_FOUND);
    CHECK(cx_mmr_inclusion(mmr, 0, 6, &path, &err).code == CX_E_NOT_FOUND);
    CHECK(cx_mmr_inclusion(mmr, 0, 0, &path, &err).code == CX_E_NOT_FOUND);
    CHECK(cx_mmr_consistency(mmr, 5, 4, &path, &err).code == CX_E_NOT_FOUND);
    CHECK(cx_mmr_consistency(mmr, 3, 6, &path, &err).code == CX_E_NOT_FOUND);
    CHECK(cx_mmr_node(mmr, 0, 5, &out, &err).code == CX_E_NOT_FOUND);
    CHECK(cx_mmr_node(mmr, 2, 1, &out, &err).code == CX_E_NOT_FOUND);
    CHECK(cx_mmr_node(mmr, 64, 0, &out, &err).code == CX_E_NOT_FOUND);
    CHECK_INT(path.count, 77);
    CHECK_INT(out.bytes[0], 0x5a);
    cx_mmr_close(mmr);
}

CX_TEST(mmr_truncate_forgets_and_grows_differently)
{
    for (size_t s = 0; s < CX_COUNT_OF(tree_schemes); s++) {
        cx_mmr *mmr = mmr_of(tree_schemes[s], 21);
        cx_err err = {0};
        REQUIRE(mmr != NULL);
        cx_digest before = root_of(mmr, 13), whole = root_of(mmr, 21), other = tree_leaf(99);
        cx_mmr_truncate(mmr, 30); /* beyond the end: nothing */
        CHECK_INT(cx_mmr_size(mmr), 21);
        cx_mmr_truncate(mmr, 13);
        CHECK_INT(cx_mmr_size(mmr), 13);
        CHECK_DIGEST(root_of(mmr, 13), before);
        CHECK(cx_mmr_root(mmr, 14, &whole, &err).code == CX_E_NOT_FOUND);
        for (unsigned i = 0; i < 8; i++)
            CHECK_STATUS(cx_mmr_append(mmr, &other, 1, &err), &err);
        cx_digest now = root_of(mmr, 21);
        CHECK(!cx_digest_eq(&now, &whole));
        cx_mmr_truncate(mmr, 13);
        for (uint64_t i = 13; i < 21; i++) {
            other = tree_leaf(i);
            CHECK_STATUS(cx_mmr_append(mmr, &other, 1, &err), &err);
        }
        CHECK_DIGEST(root_of(mmr, 21), whole);
        cx_mmr_close(mmr);
    }
}

/* A checker has nothing but numbers from outside: the largest must not confuse it. */
CX_TEST(mmr_checking_absurd_sizes)
{
    cx_digest leaf = tree_leaf(0), root, path[66];
    for (size_t i = 0; i < CX_COUNT_OF(path); i++)
        path[i] = tree_leaf(i);
    for (size_t s = 0; s < CX_COUNT_OF(tree_schemes); s++) {
        const cx_scheme scheme = tree_schemes[s];
        bool some = false;
        for (size_t count = 0; count <= 66; count++) {
            some = cx_mmr_inclusion_root(scheme, 5, UINT64_MAX, &leaf, path, count, &root);
            CHECK(some == (count == 64));
            CHECK(
                !cx_mmr_inclusion_root(scheme, UINT64_MAX, UINT64_MAX, &leaf, path, count, &root));
            CHECK(!cx_mmr_consistency_holds(scheme, 3, &leaf, UINT64_MAX, &leaf, path, count));
        }
        CHECK(!cx_mmr_consistency_holds(scheme, 0, &leaf, 4, &leaf, path, 0));
        CHECK(!cx_mmr_consistency_holds(scheme, 4, &leaf, 3, &leaf, path, 0));
        CHECK(!cx_mmr_consistency_holds(scheme, 4, &leaf, 4, &path[1], path, 0));
        CHECK(!cx_mmr_consistency_holds(scheme, 4, &leaf, 4, &leaf, path, 1));
        CHECK(cx_mmr_consistency_holds(scheme, 4, &leaf, 4, &leaf, path, 0));
    }
}

/* Every allocation fails once: the tree says so, stays as it was, and answers when asked again. */
CX_TEST(mmr_without_memory)
{
    for (unsigned turn = 0; turn < 400; turn++) {
        fault_alloc memory;
        cx_mmr *mmr = NULL;
        cx_err err = {0};
        cx_digest root;
        fault_alloc_init(&memory, 1 + turn / 2, false);
        const cx_scheme scheme = tree_schemes[turn % 2];
        if (cx_failed(cx_mmr_open(scheme, &memory.alloc, &mmr, &err)))
            mmr = NULL;
        for (uint64_t i = 0; mmr != NULL && i < 50; i++) {
            cx_digest leaf = tree_leaf(i);
            if (cx_failed(cx_mmr_append(mmr, &leaf, 1, &err)))
                CHECK_STATUS(cx_mmr_append(mmr, &leaf, 1, &err), &err);
            CHECK_INT(cx_mmr_size(mmr), i + 1);
            if (cx_failed(cx_mmr_root(mmr, i + 1, &root, &err)))
                CHECK_STATUS(cx_mmr_root(mmr, i + 1, &root, &err), &err);
        }
        if (mmr != NULL) {
            cx_mmr *whole = mmr_of(scheme, 50);
            CHECK_DIGEST(root_of(mmr, 50), root_of(whole, 50));
            cx_mmr_close(whole);
        } else {
            CHECK(err.code == CX_E_NOMEM);
        }
        cx_mmr_close(mmr);
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
        CHECK(!atomic_load(&memory.wrong_size));
        if (atomic_load(&memory.fired) == 0) {
            CHECK(turn > 10);
            if (turn % 2 == 1)
                break;
        }
        CHECK(turn + 1 < 400);
    }
}
