/*
 * test_scheme.c - the table of ledger.md §1.1, row by row: against the vectors, and against the
 * formulas written out byte by byte.
 */
#include "tree/scheme.h"

#include "tests/support/tree_vectors.h"

#define MATRIX "matrix.cortex.snapshot."

/* H of some texts one after the other. */
static cx_digest joined(const cx_str *parts, size_t count)
{
    uint8_t data[512];
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        memcpy(data + size, parts[i].data, parts[i].size);
        size += parts[i].size;
    }
    return cx_digest_of(cx_bytes_from(data, size));
}
#define JOINED(...) \
    joined((const cx_str[]){__VA_ARGS__}, sizeof((const cx_str[]){__VA_ARGS__}) / sizeof(cx_str))

static cx_str raw(const cx_digest *digest)
{
    return cx_str_from((const char *)digest->bytes, sizeof digest->bytes);
}

CX_TEST(scheme_names)
{
    cx_scheme scheme = CX_SCHEME_MATRIX_1;
    CHECK_STR(cx_scheme_name(CX_SCHEME_CORTEX_1), "cortex-1");
    CHECK_STR(cx_scheme_name(CX_SCHEME_MATRIX_1), "matrix-1");
    CHECK(cx_scheme_parse(CX_STR("cortex-1"), &scheme) && scheme == CX_SCHEME_CORTEX_1);
    CHECK(cx_scheme_parse(CX_STR("matrix-1"), &scheme) && scheme == CX_SCHEME_MATRIX_1);
    CHECK(!cx_scheme_parse(CX_STR("matrix-2"), &scheme) && scheme == CX_SCHEME_MATRIX_1);
    CHECK(!cx_scheme_parse(CX_STR(""), &scheme));
    CHECK(!cx_scheme_parse(CX_STR("Cortex-1"), &scheme));
}

CX_TEST(scheme_formulas_of_cortex_1)
{
    const cx_scheme s = CX_SCHEME_CORTEX_1;
    const cx_str zero = cx_str_from("\0", 1), one = CX_STR("\x01");
    cx_digest a = tree_leaf(1), b = tree_leaf(2), c = tree_leaf(3), none = {{0}};
    cx_str ra = raw(&a), rb = raw(&b), rc = raw(&c);
    CHECK_DIGEST(cx_scheme_level0(s, &a), JOINED(zero, ra));
    CHECK_DIGEST(cx_scheme_node(s, &a, &b), JOINED(one, ra, rb));
    CHECK_DIGEST(cx_scheme_bag(s, &a, &b), JOINED(one, ra, rb));
    CHECK_DIGEST(cx_scheme_journal_root(s, 5, &a), a);
    CHECK_DIGEST(cx_scheme_journal_root(s, 0, &a), JOINED(CX_STR("")));
    CHECK_DIGEST(cx_scheme_memory_key(s, a.bytes), JOINED(CX_STR("m/"), cx_str_from(ra.data, 16)));
    CHECK_DIGEST(cx_scheme_edge_key(s, a.bytes, 7, b.bytes),
                 JOINED(cx_str_from(ra.data, 16), CX_STR("\x07"), cx_str_from(rb.data, 16)));
    CHECK_DIGEST(cx_scheme_value(s, cx_str_bytes(ra)), JOINED(ra));
    CHECK_DIGEST(cx_scheme_smt_leaf(s, &a, &b), JOINED(zero, ra, rb));
    CHECK_DIGEST(cx_scheme_smt_node(s, &a, &b), JOINED(one, ra, rb));
    CHECK_DIGEST(cx_scheme_smt_empty(s, 0), none);
    CHECK_DIGEST(cx_scheme_smt_empty(s, 256), none);
    CHECK_DIGEST(cx_scheme_overall(s, &a, &b, &c), JOINED(ra, rc, rb));
}

CX_TEST(scheme_formulas_of_matrix_1)
{
    const cx_scheme s = CX_SCHEME_MATRIX_1;
    cx_digest a = tree_leaf(1), b = tree_leaf(2), c = tree_leaf(3);
    cx_str ra = raw(&a), rb = raw(&b), rc = raw(&c);
    CHECK_DIGEST(cx_scheme_level0(s, &a), a);
    CHECK_DIGEST(cx_scheme_node(s, &a, &b), JOINED(CX_STR(MATRIX "mmr.node.v1"), ra, rb));
    CHECK_DIGEST(cx_scheme_bag(s, &a, &b), JOINED(CX_STR(MATRIX "mmr.bag.v1"), ra, rb));
    CHECK_DIGEST(cx_scheme_journal_root(s, 0x0102030405060708, &a),
                 JOINED(CX_STR(MATRIX "mmr.root.v1\x01\x02\x03\x04\x05\x06\x07\x08"), ra));
    CHECK_DIGEST(cx_scheme_memory_key(s, a.bytes),
                 JOINED(CX_STR(MATRIX "smt.key.memories.v1"), cx_str_from(ra.data, 16)));
    CHECK_DIGEST(cx_scheme_edge_key(s, a.bytes, 7, b.bytes),
                 JOINED(CX_STR(MATRIX "smt.key.edges.v1"), cx_str_from(ra.data, 16), CX_STR("\x07"),
                        cx_str_from(rb.data, 16)));
    CHECK_DIGEST(cx_scheme_value(s, cx_str_bytes(ra)), JOINED(CX_STR(MATRIX "smt.value.v1"), ra));
    CHECK_DIGEST(cx_scheme_smt_leaf(s, &a, &b), JOINED(CX_STR(MATRIX "smt.leaf.v1"), ra, rb));
    CHECK_DIGEST(cx_scheme_smt_node(s, &a, &b), JOINED(CX_STR(MATRIX "smt.node.v1"), ra, rb));
    CHECK_DIGEST(cx_scheme_overall(s, &a, &b, &c),
                 JOINED(CX_STR(MATRIX "overall.v1\x01"), ra, cx_str_from("\0\2\5edges", 8), rb,
                        CX_STR("\x08memories"), rc));
}

CX_TEST(scheme_formulas_of_both)
{
    cx_digest a = tree_leaf(1);
    cx_str ra = raw(&a), text = CX_STR("some bytes");
    CHECK_DIGEST(cx_scheme_entry(cx_str_bytes(text)),
                 JOINED(CX_STR("matrix.cortex.journal.v1"), text));
    CHECK_DIGEST(
        cx_scheme_payload_commitment(a.bytes, cx_str_bytes(text)),
        JOINED(CX_STR("cortex.payload.v1"), ra, cx_str_from("\0\0\0\0\0\0\0\x0a", 8), text));
    CHECK_DIGEST(cx_scheme_version(3, cx_str_bytes(text)),
                 JOINED(CX_STR("matrix.cortex.memory.v1\x03"), text));
    CHECK_DIGEST(cx_scheme_manifest(cx_str_bytes(text)),
                 JOINED(CX_STR("cortex.manifest.v1"), text));
}

CX_TEST(scheme_vectors_of_cortex_1)
{
    tree_file file;
    if (tree_file_open(&file, CX_SCHEME_CORTEX_1, "anchors.json")) {
        const cx_json *examples = tree_list(&file, "/overall_examples");
        cx_digest unused = {{0}}, journal, memories, edges;
        journal = cx_scheme_journal_root(CX_SCHEME_CORTEX_1, 0, &unused);
        edges = cx_scheme_smt_empty(CX_SCHEME_CORTEX_1, 0);
        CHECK_DIGEST(edges, tree_digest(&file.root, "smt_empty"));
        CHECK_DIGEST(cx_scheme_overall(CX_SCHEME_CORTEX_1, &journal, &edges, &edges),
                     tree_digest(&file.root, "overall_fresh"));
        for (uint32_t i = 0; i < examples->count; i++) {
            journal = tree_digest(&examples->items[i], "journal");
            memories = tree_digest(&examples->items[i], "memories");
            edges = tree_digest(&examples->items[i], "edges");
            CHECK_DIGEST(cx_scheme_overall(CX_SCHEME_CORTEX_1, &journal, &edges, &memories),
                         tree_digest(&examples->items[i], "overall"));
        }
    }
    tree_file_close(&file);
}

static void get_id(const cx_json *object, const char *name, uint8_t id[16])
{
    CHECK(cx_hex_decode(cx_json_get_str(object, cx_str_z(name)), id, 16));
}

CX_TEST(scheme_vectors_of_matrix_1)
{
    tree_file file;
    if (tree_file_open(&file, CX_SCHEME_MATRIX_1, "smt.json")) {
        const cx_json *empty = tree_list(&file, "/empty_hashes");
        const cx_json *keys = tree_list(&file, "/key_hash_examples");
        unsigned memory_count = 0, edge_count = 0;
        CHECK_INT(empty->count, 257);
        for (unsigned i = 0; i < empty->count; i++)
            CHECK_DIGEST(cx_scheme_smt_empty(CX_SCHEME_MATRIX_1, 256 - i),
                         tree_hex(&empty->items[i]));
        for (uint32_t i = 0; i < keys->count; i++) {
            const cx_json *k = &keys->items[i];
            uint8_t id[16], src[16], dst[16];
            if (CX_JSON_GET(k, "id") != NULL) {
                get_id(k, "id", id);
                memory_count++;
                CHECK_DIGEST(cx_scheme_memory_key(CX_SCHEME_MATRIX_1, id),
                             tree_digest(k, "memory_key_hash"));
            } else {
                get_id(k, "src", src);
                get_id(k, "dst", dst);
                edge_count++;
                CHECK_DIGEST(cx_scheme_edge_key(CX_SCHEME_MATRIX_1, src,
                                                (uint8_t)tree_number(k, "type"), dst),
                             tree_digest(k, "edge_key_hash"));
            }
        }
        CHECK(memory_count != 0 && edge_count != 0);
    }
    tree_file_close(&file);
}

CX_TEST(scheme_fresh_ledgers)
{
    static const char *const fresh[] = {
        "95901a7673e48be0461e5465057b1bd85304070a2db83264af2da8a56a4a398e",
        "8e576145c782e2be7186686cab1a721f67ebcd44aa9e91d3900802813f98046a"};
    for (size_t i = 0; i < CX_COUNT_OF(tree_schemes); i++) {
        cx_digest zeros = {{0}}, expected;
        cx_digest journal = cx_scheme_journal_root(tree_schemes[i], 0, &zeros);
        cx_digest empty = cx_scheme_smt_empty(tree_schemes[i], 0);
        REQUIRE(cx_digest_parse(cx_str_z(fresh[i]), &expected));
        CHECK_DIGEST(cx_scheme_overall(tree_schemes[i], &journal, &empty, &empty), expected);
    }
}

enum { MANY = 70 };

CX_TEST(scheme_many_equal_one_by_one)
{
    static cx_digest pairs[2 * MANY], out[MANY];
    for (size_t i = 0; i < 2 * MANY; i++)
        pairs[i] = tree_leaf(i);
    for (size_t s = 0; s < CX_COUNT_OF(tree_schemes); s++) {
        const cx_scheme scheme = tree_schemes[s];
        for (size_t count = 0; count <= MANY; count++) {
            cx_scheme_nodes(scheme, pairs, out, count);
            for (size_t i = 0; i < count; i++)
                CHECK_DIGEST(out[i], cx_scheme_node(scheme, &pairs[2 * i], &pairs[2 * i + 1]));
            cx_scheme_smt_nodes(scheme, pairs, out, count);
            for (size_t i = 0; i < count; i++)
                CHECK_DIGEST(out[i], cx_scheme_smt_node(scheme, &pairs[2 * i], &pairs[2 * i + 1]));
            cx_scheme_smt_leaves(scheme, pairs, out, count);
            for (size_t i = 0; i < count; i++)
                CHECK_DIGEST(out[i], cx_scheme_smt_leaf(scheme, &pairs[2 * i], &pairs[2 * i + 1]));
            cx_scheme_level0_many(scheme, pairs, out, count);
            for (size_t i = 0; i < count; i++)
                CHECK_DIGEST(out[i], cx_scheme_level0(scheme, &pairs[i]));
        }
    }
}

CX_TEST(scheme_one_sided_branches)
{
    static cx_digest hashes[MANY], out[MANY];
    for (size_t i = 0; i < MANY; i++)
        hashes[i] = tree_leaf(i);
    for (unsigned depth = 1; depth <= 256; depth++) {
        for (unsigned turn = 0; turn < 4; turn++) {
            const cx_scheme scheme = tree_schemes[turn / 2];
            const unsigned side = turn % 2;
            const size_t count = depth % (MANY + 1);
            cx_digest empty = cx_scheme_smt_empty(scheme, depth);
            memcpy(out, hashes, sizeof out);
            cx_scheme_smt_one_sided(scheme, depth, side, out, out, count);
            for (size_t i = 0; i < count; i++)
                CHECK_DIGEST(out[i], side == 0 ? cx_scheme_smt_node(scheme, &hashes[i], &empty)
                                               : cx_scheme_smt_node(scheme, &empty, &hashes[i]));
        }
    }
}
