/*
 * test_proof.c - state proofs, manifests and proofs about the journal: the vectors of both schemes,
 * every rule of ledger.md §8.1 by itself, every bit flipped, every allocation failing.
 */
#include "proof/proof.h"

#include <stdlib.h>

#include "cbor/cbor.h"
#include "tests/support/fault.h"
#include "tests/support/proof_util.h"

static const cx_multiproof_check any_check = {.name_space = CX_NAMESPACE_ANY};
static const cx_bytes no_bytes = {NULL, 0};

static cx_finding verify(cx_bytes proof, cx_bytes manifest, const cx_multiproof_check *check,
                         cx_arena *arena, cx_multiproof *out_proof)
{
    cx_finding finding;
    cx_err err;
    cx_arena_mark mark = cx_arena_mark_now(arena);
    CHECK_STATUS(cx_multiproof_verify(proof, manifest, check, arena, out_proof, &finding, &err),
                 &err);
    if (out_proof == NULL)
        cx_arena_reset(arena, mark);
    return finding;
}

/* --- vectors ---------------------------------------------------------------------------------- */

CX_TEST(proof_verdict_vectors)
{
    vectors v;
    REQUIRE(vectors_open(&v, "vectors/ledger/cortex-1/proof_verdicts.json"));
    const cx_json *cases = CX_JSON_GET(&v.root, "cases");
    REQUIRE(cases != NULL && cases->count >= 15);
    for (size_t i = 0; i < cases->count; i++) {
        const cx_json *c = &cases->items[i];
        cx_str expected = CX_JSON_GET_STR(c, "cortex_expects");
        cx_finding finding = verify(member_bytes(&v, c, "proof"), member_bytes(&v, c, "manifest"),
                                    &any_check, &v.arena, NULL);
        char got[80];
        if (finding.verdict == CX_HOLDS)
            (void)snprintf(got, sizeof got, "holds");
        else
            (void)snprintf(got, sizeof got, "%s %s",
                           reason_is(&finding, "NonCanonical") ? "format error" : "broken",
                           finding.reason);
        if (!cx_str_starts(expected, cx_str_z(got)))
            cx_test_fail(__FILE__, __LINE__, "%.*s: found %s (%s), expected %.*s",
                         (int)CX_JSON_GET_STR(c, "label").size, CX_JSON_GET_STR(c, "label").data,
                         got, finding.message, (int)expected.size, expected.data);
    }
    vectors_close(&v);
}

static void check_item(vectors *v, const cx_json *expected, const cx_proof_item *item)
{
    cx_digest key = member_digest(expected, "key_hash");
    const cx_json *siblings = CX_JSON_GET(expected, "siblings");
    const cx_json *other = CX_JSON_GET(expected, "other");
    const cx_json *leaf = CX_JSON_GET(expected, "leaf");
    const cx_json *value = CX_JSON_GET(expected, "value_hash");
    CHECK(cx_digest_eq(&key, &item->path.key));
    CHECK_INT(item->path.sibling_count, siblings->count);
    for (size_t i = 0; i < siblings->count && i < item->path.sibling_count; i++) {
        cx_digest sibling = item_digest(siblings, i);
        CHECK(cx_digest_eq(&sibling, &item->path.siblings[i]));
    }
    if (leaf->type == CX_JSON_STRING) {
        CHECK_INT(item->kind, CX_MEMBER);
        CHECK(bytes_eq(item->leaf, hex_bytes(v, cx_json_text(leaf))));
    } else if (value->type == CX_JSON_STRING) {
        cx_digest hash = member_digest(expected, "value_hash");
        CHECK_INT(item->kind, CX_MEMBER_ERASED);
        CHECK(cx_digest_eq(&hash, &item->path.value));
    } else {
        CHECK_INT(item->kind, CX_ABSENT);
        CHECK_INT(item->path.has_other, other->type == CX_JSON_ARRAY);
        if (other->type == CX_JSON_ARRAY) {
            cx_digest other_key = item_digest(other, 0), other_value = item_digest(other, 1);
            CHECK(cx_digest_eq(&other_key, &item->path.other_key));
            CHECK(cx_digest_eq(&other_value, &item->path.other_value));
        }
    }
}

/* Decodes, encodes to the same bytes, verifies. */
static void check_round(vectors *v, cx_bytes bytes, cx_bytes manifest, cx_multiproof *out)
{
    cx_err err;
    cx_buf again;
    cx_multiproof proof, verified;
    cx_buf_init(&again, cx_alloc_default());
    cx_status status = cx_multiproof_decode(bytes, &v->arena, &proof, &err);
    CHECK_STATUS(status, &err);
    if (!cx_failed(status)) {
        CHECK_STATUS(cx_multiproof_encode(&proof, &again, &err), &err);
        CHECK(bytes_eq(cx_buf_bytes(&again), bytes));
        cx_finding finding = verify(bytes, manifest, &any_check, &v->arena, &verified);
        CHECK_HOLDS(&finding);
        if (finding.verdict == CX_HOLDS) {
            CHECK_INT(verified.count, proof.count);
            for (size_t i = 0; i < proof.count; i++)
                CHECK_INT(verified.items[i].kind, proof.items[i].kind);
        }
        *out = proof;
    }
    cx_buf_done(&again);
}

CX_TEST(proof_cortex_1_scenario)
{
    static const char *const names[] = {"multiproof", "edges_multiproof", "erased_leaf_multiproof"};
    vectors v;
    REQUIRE(vectors_open(&v, "vectors/ledger/cortex-1/scenario.json"));
    cx_bytes manifest = member_bytes(&v, CX_JSON_GET(&v.root, "manifest"), "cbor");
    for (size_t n = 0; n < CX_COUNT_OF(names); n++) {
        const cx_json *vector = cx_json_get(&v.root, cx_str_z(names[n]));
        const cx_json *proofs = CX_JSON_GET(vector, "proofs");
        cx_multiproof proof = {0};
        check_round(&v, member_bytes(&v, vector, "cbor"), manifest, &proof);
        cx_digest root = member_digest(vector, "root");
        CHECK(cx_digest_eq(&root, &proof.root));
        REQUIRE(proof.count == proofs->count);
        for (size_t i = 0; i < proof.count; i++)
            check_item(&v, &proofs->items[i], &proof.items[i]);
    }
    vectors_close(&v);
}

CX_TEST(proof_matrix_1_scenario)
{
    vectors v;
    REQUIRE(vectors_open(&v, "vectors/ledger/matrix-1/scenario.json"));
    cx_bytes manifest = member_bytes(&v, CX_JSON_GET(&v.root, "manifest"), "cbor");
    const cx_json *vector = CX_JSON_GET(&v.root, "multiproof");
    const cx_json *proofs = CX_JSON_GET(vector, "proofs");
    cx_multiproof proof = {0};
    check_round(&v, member_bytes(&v, &v.root, "edges_multiproof_cbor"), manifest, &proof);
    CHECK_STR(proof.name_space, "edges");
    check_round(&v, member_bytes(&v, vector, "cbor"), manifest, &proof);
    REQUIRE(proof.count == proofs->count);
    for (size_t i = 0; i < proof.count; i++) {
        const cx_proof_item *item = &proof.items[i];
        cx_digest key = member_digest(&proofs->items[i], "key_hash");
        cx_digest value = member_digest(&proofs->items[i], "value_hash");
        cx_digest all = member_digest(&proofs->items[i], "sha256_of_256_siblings_concat");
        static const cx_digest zeros;
        CHECK(cx_digest_eq(&key, &item->path.key));
        CHECK_INT(item->path.sibling_count, 256);
        CHECK(cx_digest_eq(&value, item->kind == CX_ABSENT ? &zeros : &item->path.value));
        cx_digest found = cx_digest_of(
            cx_bytes_from(item->path.siblings, item->path.sibling_count * sizeof(cx_digest)));
        CHECK(cx_digest_eq(&all, &found));
    }
    vectors_close(&v);
}

/* matrix-1: records next to the proof are held against the hashes in it. */
CX_TEST(proof_matrix_1_leaves)
{
    vectors v, heads;
    REQUIRE(vectors_open(&v, "vectors/ledger/matrix-1/scenario.json"));
    REQUIRE(vectors_open(&heads, "vectors/ledger/cortex-1/scenario.json"));
    cx_bytes manifest = member_bytes(&v, CX_JSON_GET(&v.root, "manifest"), "cbor");
    cx_bytes proof = member_bytes(&v, CX_JSON_GET(&v.root, "multiproof"), "cbor");
    const cx_json *proofs = CX_JSON_GET(CX_JSON_GET(&heads.root, "multiproof"), "proofs");
    cx_bytes leaves[4] = {{NULL, 0}};
    REQUIRE(proofs->count == 4);
    for (size_t i = 0; i < 3; i++)
        leaves[i] = member_bytes(&heads, &proofs->items[i], "leaf");
    cx_multiproof_check check = {
        .name_space = CX_NAMESPACE_MEMORIES, .leaves = leaves, .leaf_count = 4};
    cx_multiproof out;
    cx_finding finding = verify(proof, manifest, &check, &v.arena, &out);
    CHECK_HOLDS(&finding);
    CHECK(bytes_eq(out.items[0].leaf, leaves[0]));
    cx_bytes swapped[4] = {leaves[1], leaves[0], leaves[2], leaves[3]};
    check.leaves = swapped;
    finding = verify(proof, manifest, &check, &v.arena, NULL);
    CHECK_FINDING(&finding, CX_BROKEN, "LeafMismatch");
    CHECK_INT(finding.key_index, 0);
    cx_bytes extra[4] = {leaves[0], leaves[1], leaves[2], leaves[0]};
    check.leaves = extra;
    finding = verify(proof, manifest, &check, &v.arena, NULL);
    CHECK_FINDING(&finding, CX_BROKEN, "LeafMismatch");
    CHECK_INT(finding.key_index, 3);
    check.leaf_count = 3;
    finding = verify(proof, manifest, &check, &v.arena, NULL);
    CHECK_FINDING(&finding, CX_BROKEN, "LeafMismatch");
    vectors_close(&v);
    vectors_close(&heads);
}

/* --- one rule at a time ----------------------------------------------------------------------- */

typedef struct scenario {
    vectors v;
    cx_bytes manifest;
    cx_bytes memories;
    cx_bytes edges;
    cx_bytes erased;
} scenario;

static bool scenario_open(scenario *s)
{
    if (!vectors_open(&s->v, "vectors/ledger/cortex-1/scenario.json"))
        return false;
    const cx_json *root = &s->v.root;
    s->manifest = member_bytes(&s->v, CX_JSON_GET(root, "manifest"), "cbor");
    s->memories = member_bytes(&s->v, CX_JSON_GET(root, "multiproof"), "cbor");
    s->edges = member_bytes(&s->v, CX_JSON_GET(root, "edges_multiproof"), "cbor");
    s->erased = member_bytes(&s->v, CX_JSON_GET(root, "erased_leaf_multiproof"), "cbor");
    return true;
}

CX_TEST(proof_what_the_caller_asks)
{
    scenario s;
    REQUIRE(scenario_open(&s));
    cx_multiproof_check check = {.name_space = CX_NAMESPACE_MEMORIES};
    cx_finding finding = verify(s.memories, s.manifest, &check, &s.v.arena, NULL);
    CHECK_HOLDS(&finding);
    finding = verify(s.edges, s.manifest, &check, &s.v.arena, NULL);
    CHECK_FINDING(&finding, CX_BROKEN, "NamespaceMismatch");
    check.require_members = true;
    finding = verify(s.memories, s.manifest, &check, &s.v.arena, NULL);
    CHECK_FINDING(&finding, CX_BROKEN, "NotMember");
    CHECK_INT(finding.key_index, 3);
    finding = verify(s.erased, s.manifest, &check, &s.v.arena, NULL);
    CHECK_HOLDS(&finding);
    /* Without a manifest: the root alone. */
    cx_multiproof proof;
    cx_err err;
    REQUIRE(!cx_failed(cx_multiproof_decode(s.erased, &s.v.arena, &proof, &err)));
    cx_digest root = proof.root;
    check.state_root = &root;
    finding = verify(s.erased, no_bytes, &check, &s.v.arena, NULL);
    CHECK_HOLDS(&finding);
    root.bytes[31] ^= 1;
    finding = verify(s.erased, no_bytes, &check, &s.v.arena, NULL);
    CHECK_FINDING(&finding, CX_BROKEN, "RootMismatch");
    vectors_close(&s.v);
}

/* Encodes as given, right or wrong, and verifies against no manifest. */
typedef struct crafted {
    uint64_t schema;
    const char *name_space;
    const char *scheme;
    size_t item_count;
    struct {
        uint8_t key;
        bool leaf, value;
        uint8_t other; /* 0 = none */
        size_t sibling_count;
        uint64_t siblings[4];
    } items[3];
    size_t pool_count;
    uint8_t pool[4]; /* each a digest of that byte */
} crafted;

static void add_filled(cx_buf *out, uint8_t byte)
{
    cx_digest digest;
    memset(digest.bytes, byte, sizeof digest.bytes);
    cx_cbor_digest(out, &digest);
}

static void craft(const crafted *c, cx_buf *out)
{
    cx_cbor_map(out, 6);
    cx_cbor_uint(out, 0);
    cx_cbor_uint(out, c->schema);
    cx_cbor_uint(out, 1);
    cx_cbor_text(out, cx_str_z(c->name_space));
    cx_cbor_uint(out, 2);
    add_filled(out, 0x77);
    cx_cbor_uint(out, 3);
    cx_cbor_array(out, c->item_count);
    for (size_t i = 0; i < c->item_count; i++) {
        cx_cbor_fields fields;
        cx_cbor_fields_begin(&fields, out);
        cx_cbor_field(&fields, 0);
        add_filled(out, c->items[i].key);
        cx_cbor_field(&fields, 1);
        if (c->items[i].leaf)
            cx_cbor_bytes(out, cx_str_bytes(CX_STR("no record")));
        else
            cx_cbor_null(out);
        cx_cbor_field(&fields, 2);
        cx_cbor_array(out, c->items[i].sibling_count);
        for (size_t k = 0; k < c->items[i].sibling_count; k++)
            cx_cbor_uint(out, c->items[i].siblings[k % 4]);
        if (c->items[i].other != 0) {
            cx_cbor_field(&fields, 3);
            cx_cbor_array(out, 2);
            add_filled(out, c->items[i].other);
            add_filled(out, 0x11);
        }
        if (c->items[i].value) {
            cx_cbor_field(&fields, 4);
            add_filled(out, 0x22);
        }
        cx_cbor_fields_end(&fields);
    }
    cx_cbor_uint(out, 4);
    cx_cbor_text(out, cx_str_z(c->scheme));
    cx_cbor_uint(out, 5);
    cx_cbor_array(out, c->pool_count);
    for (size_t i = 0; i < c->pool_count; i++)
        add_filled(out, c->pool[i]);
}

static void expect_crafted(const char *what, const crafted *c, const char *reason)
{
    cx_arena arena;
    cx_buf bytes;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&bytes, cx_alloc_default());
    craft(c, &bytes);
    cx_finding finding = verify(cx_buf_bytes(&bytes), no_bytes, &any_check, &arena, NULL);
    if (finding.verdict != CX_BROKEN || !reason_is(&finding, reason))
        cx_test_fail(__FILE__, __LINE__, "%s: found %s (%s), expected %s", what,
                     finding.reason == NULL ? "holds" : finding.reason, finding.message, reason);
    cx_buf_done(&bytes);
    cx_arena_done(&arena);
}

#define GOOD .schema = 2, .name_space = "memories", .scheme = "cortex-1"

CX_TEST(proof_form_rules)
{
    expect_crafted("schema", &(crafted){.schema = 4, .name_space = "edges", .scheme = "cortex-1"},
                   "NonCanonical");
    expect_crafted("scheme", &(crafted){.schema = 2, .name_space = "edges", .scheme = "cortex-2"},
                   "SchemeMismatch");
    expect_crafted("namespace",
                   &(crafted){.schema = 2, .name_space = "vectors", .scheme = "cortex-1"},
                   "NamespaceMismatch");
    expect_crafted("no key", &(crafted){GOOD}, "EmptyProof");
    expect_crafted("a key twice",
                   &(crafted){GOOD, .item_count = 3, .items = {{.key = 1}, {.key = 2}, {.key = 1}}},
                   "DuplicateKey");
    expect_crafted(
        "leaf and other",
        &(crafted){GOOD, .item_count = 1, .items = {{.key = 1, .leaf = true, .other = 2}}},
        "ProofMalformed");
    expect_crafted(
        "leaf and value",
        &(crafted){GOOD, .item_count = 1, .items = {{.key = 1, .leaf = true, .value = true}}},
        "ProofMalformed");
    expect_crafted(
        "value and other",
        &(crafted){GOOD, .item_count = 1, .items = {{.key = 1, .value = true, .other = 2}}},
        "ProofMalformed");
    expect_crafted("other is the key itself",
                   &(crafted){GOOD, .item_count = 1, .items = {{.key = 1, .other = 1}}},
                   "ProofMalformed");
    expect_crafted(
        "other is not below the siblings",
        &(crafted){GOOD, .item_count = 1, .items = {{.key = 1, .other = 0x81, .sibling_count = 1}}},
        "ProofMalformed");
    /* 01… and 03… share six bits, and part in the seventh. */
    expect_crafted(
        "other shares enough",
        &(crafted){GOOD, .item_count = 1, .items = {{.key = 1, .other = 3, .sibling_count = 6}}},
        "RootMismatch");
    expect_crafted(
        "other shares one bit less",
        &(crafted){GOOD, .item_count = 1, .items = {{.key = 1, .other = 3, .sibling_count = 7}}},
        "ProofMalformed");
    expect_crafted("leaf is no record",
                   &(crafted){GOOD, .item_count = 1, .items = {{.key = 1, .leaf = true}}},
                   "LeafMismatch");
}

CX_TEST(proof_pool_rules)
{
    expect_crafted("in order",
                   &(crafted){GOOD, .item_count = 1,
                              .items = {{.key = 1, .sibling_count = 3, .siblings = {1, 2, 1}}},
                              .pool_count = 2, .pool = {8, 9}},
                   "RootMismatch");
    expect_crafted("out of order",
                   &(crafted){GOOD, .item_count = 1,
                              .items = {{.key = 1, .sibling_count = 2, .siblings = {2, 1}}},
                              .pool_count = 2, .pool = {8, 9}},
                   "ProofMalformed");
    expect_crafted("behind the pool's end",
                   &(crafted){GOOD, .item_count = 1,
                              .items = {{.key = 1, .sibling_count = 1, .siblings = {1}}}},
                   "ProofMalformed");
    expect_crafted("far behind it",
                   &(crafted){GOOD, .item_count = 1,
                              .items = {{.key = 1, .sibling_count = 1, .siblings = {UINT64_MAX}}}},
                   "ProofMalformed");
    expect_crafted(
        "an entry unused",
        &(crafted){GOOD, .item_count = 1, .items = {{.key = 1}}, .pool_count = 1, .pool = {8}},
        "ProofMalformed");
    expect_crafted("an entry twice",
                   &(crafted){GOOD, .item_count = 1,
                              .items = {{.key = 1, .sibling_count = 2, .siblings = {1, 2}}},
                              .pool_count = 2, .pool = {8, 8}},
                   "ProofMalformed");
    expect_crafted("a zero entry",
                   &(crafted){GOOD, .item_count = 1,
                              .items = {{.key = 1, .sibling_count = 1, .siblings = {1}}},
                              .pool_count = 1, .pool = {0}},
                   "ProofMalformed");
    expect_crafted("257 siblings",
                   &(crafted){GOOD, .item_count = 1, .items = {{.key = 1, .sibling_count = 257}}},
                   "ProofMalformed");
    expect_crafted("256 siblings",
                   &(crafted){GOOD, .item_count = 1, .items = {{.key = 1, .sibling_count = 256}}},
                   "RootMismatch");
}

/* A manifest of matrix-1 may have no root for a namespace, or for none. */
CX_TEST(proof_manifest_without_state)
{
    vectors v;
    cx_manifest manifest;
    cx_err err;
    cx_buf bytes;
    REQUIRE(vectors_open(&v, "vectors/ledger/matrix-1/scenario.json"));
    cx_bytes edges = member_bytes(&v, &v.root, "edges_multiproof_cbor");
    cx_bytes whole = member_bytes(&v, CX_JSON_GET(&v.root, "manifest"), "cbor");
    cx_buf_init(&bytes, cx_alloc_default());
    for (int null = 0; null < 2; null++) {
        REQUIRE(!cx_failed(cx_manifest_decode(whole, &manifest, &err)));
        manifest.has_edges = false;
        manifest.has_memories = null == 0;
        manifest.state_roots_null = null != 0;
        manifest.overall_root = cx_manifest_overall(&manifest);
        cx_buf_clear(&bytes);
        cx_manifest_encode(&manifest, &bytes);
        cx_finding finding = verify(edges, cx_buf_bytes(&bytes), &any_check, &v.arena, NULL);
        CHECK_FINDING(&finding, CX_BROKEN, "NamespaceMismatch");
    }
    cx_buf_done(&bytes);
    vectors_close(&v);
}

CX_TEST(proof_encoding_refuses)
{
    cx_buf out;
    cx_err err;
    cx_proof_item items[2] = {{.kind = CX_ABSENT}, {.kind = CX_ABSENT}};
    cx_multiproof proof = {.scheme = CX_SCHEME_CORTEX_1, .name_space = CX_STR("memories")};
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_add_z(&out, "before");
    CHECK_INT(cx_multiproof_encode(&proof, &out, &err).code, CX_E_USAGE);
    CHECK_STR(cx_str_z(err.tag), "EmptyProof");
    proof.items = items;
    proof.count = 2;
    CHECK_INT(cx_multiproof_encode(&proof, &out, &err).code, CX_E_USAGE);
    CHECK_STR(cx_str_z(err.tag), "InvalidArgument");
    proof.count = CX_PROOF_KEYS_MAX + 1;
    CHECK_INT(cx_multiproof_encode(&proof, &out, &err).code, CX_E_LIMIT);
    CHECK_STR(cx_buf_str(&out), "before");
    cx_buf_done(&out);
}

/* --- many keys: folding together gives what folding one by one gives -------------------------- */

/* Proves every third key and some that are absent, of a tree of `count` random keys. */
static void try_many(cx_scheme scheme, size_t count, bool clustered)
{
    enum { ASKED = 40 };
    uint64_t state = cx_test_seed() + count;
    cx_arena arena;
    cx_err err;
    cx_smt *smt = NULL;
    cx_digest keys[ASKED];
    const cx_smt_path *paths = NULL;
    cx_proof_item items[ASKED];
    cx_buf bytes;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&bytes, cx_alloc_default());
    CHECK_STATUS(cx_smt_open(scheme, cx_alloc_default(), &smt, &err), &err);
    for (size_t i = 0; i < count; i++) {
        cx_digest key = random_digest(&state), value = random_digest(&state);
        if (clustered) /* long shared beginnings: deep paths with empty sides */
            memset(key.bytes, 0x5a, 3);
        CHECK_STATUS(cx_smt_put(smt, &key, &value, &err), &err);
        if (i < ASKED)
            keys[i] = key;
    }
    for (size_t i = count / 2; i < ASKED; i++) {
        keys[i] = random_digest(&state);
        if (clustered)
            memset(keys[i].bytes, 0x5a, 2);
    }
    cx_digest root;
    CHECK_STATUS(cx_smt_root(smt, &root, &err), &err);
    CHECK_STATUS(cx_smt_prove(smt, keys, ASKED, &arena, &paths, &err), &err);
    for (size_t i = 0; i < ASKED; i++)
        items[i] = (cx_proof_item){.path = paths[i],
                                   .kind = !paths[i].member               ? CX_ABSENT
                                           : scheme == CX_SCHEME_CORTEX_1 ? CX_MEMBER_ERASED
                                                                          : CX_MEMBER};
    cx_multiproof proof = {.scheme = scheme,
                           .name_space = CX_STR("memories"),
                           .root = root,
                           .count = ASKED,
                           .items = items};
    cx_multiproof_check check = {.name_space = CX_NAMESPACE_MEMORIES, .state_root = &root};
    CHECK_STATUS(cx_multiproof_encode(&proof, &bytes, &err), &err);
    cx_finding finding = verify(cx_buf_bytes(&bytes), no_bytes, &check, &arena, NULL);
    CHECK_HOLDS(&finding);

    /* One sibling of one key wrong: that key is named. */
    for (size_t at = 0; at < ASKED; at += 7) {
        if (items[at].path.sibling_count == 0)
            continue;
        size_t which = (size_t)(cx_test_random(&state) % items[at].path.sibling_count);
        cx_digest *siblings = CX_ARENA_ARRAY(&arena, cx_digest, items[at].path.sibling_count);
        const cx_digest *good = items[at].path.siblings;
        memcpy(siblings, good, items[at].path.sibling_count * sizeof *siblings);
        siblings[which].bytes[5] ^= 4;
        items[at].path.siblings = siblings;
        cx_buf_clear(&bytes);
        CHECK_STATUS(cx_multiproof_encode(&proof, &bytes, &err), &err);
        finding = verify(cx_buf_bytes(&bytes), no_bytes, &check, &arena, NULL);
        CHECK_FINDING(&finding, CX_BROKEN, "RootMismatch");
        CHECK_INT(finding.key_index, at);
        items[at].path.siblings = good;
    }
    cx_smt_close(smt);
    cx_buf_done(&bytes);
    cx_arena_done(&arena);
}

CX_TEST(proof_many_keys)
{
    static const size_t counts[] = {0, 1, 2, 3, 17, 200, 3000};
    for (size_t i = 0; i < CX_COUNT_OF(counts); i++) {
        try_many(CX_SCHEME_CORTEX_1, counts[i], false);
        try_many(CX_SCHEME_CORTEX_1, counts[i], true);
        try_many(CX_SCHEME_MATRIX_1, counts[i] < 200 ? counts[i] : 60, false);
    }
}

/* --- every bit -------------------------------------------------------------------------------- */

/*
 * Where a flipped proof still holds it is a valid proof about another key: a key that is absent
 * may be exchanged for another absent one.  The caller compares the keys, which is what
 * cx_pack_verify does (test_check.c flips every bit of a pack, where nothing holds).
 */
static void flip_proof(cx_bytes proof, cx_bytes manifest, cx_arena *arena, size_t step)
{
    cx_multiproof whole, found;
    cx_err err;
    REQUIRE(!cx_failed(cx_multiproof_decode(proof, arena, &whole, &err)));
    for (size_t bit = 0; bit < proof.size * 8; bit += step) {
        uint8_t *copy = flipped(proof, bit);
        cx_arena_mark mark = cx_arena_mark_now(arena);
        cx_finding finding =
            verify(cx_bytes_from(copy, proof.size), manifest, &any_check, arena, &found);
        if (finding.verdict == CX_HOLDS) {
            bool other_absent_key = found.count == whole.count;
            for (size_t i = 0; i < whole.count && other_absent_key; i++)
                if (!cx_digest_eq(&found.items[i].path.key, &whole.items[i].path.key))
                    other_absent_key =
                        found.items[i].kind == CX_ABSENT && whole.items[i].kind == CX_ABSENT;
                else
                    other_absent_key = found.items[i].kind == whole.items[i].kind;
            size_t changed = 0;
            for (size_t i = 0; i < whole.count; i++)
                changed += !cx_digest_eq(&found.items[i].path.key, &whole.items[i].path.key);
            if (!other_absent_key || changed != 1)
                cx_test_fail(__FILE__, __LINE__, "bit %zu flipped and it holds", bit);
        }
        cx_arena_reset(arena, mark);
        flipped_done(copy, proof);
    }
}

CX_TEST(proof_every_bit)
{
    scenario s;
    vectors m;
    REQUIRE(scenario_open(&s));
    flip_proof(s.memories, s.manifest, &s.v.arena, 1);
    flip_proof(s.edges, s.manifest, &s.v.arena, 1);
    flip_proof(s.erased, s.manifest, &s.v.arena, 1);
    vectors_close(&s.v);
    REQUIRE(vectors_open(&m, "vectors/ledger/matrix-1/scenario.json"));
    flip_proof(member_bytes(&m, CX_JSON_GET(&m.root, "multiproof"), "cbor"),
               member_bytes(&m, CX_JSON_GET(&m.root, "manifest"), "cbor"), &m.arena, 211);
    vectors_close(&m);
}

/* The fields of a manifest that feed its overall root. */
static bool same_roots(const cx_manifest *a, const cx_manifest *b)
{
    return cx_digest_eq(&a->journal_root, &b->journal_root) &&
           cx_digest_eq(&a->memories_root, &b->memories_root) &&
           cx_digest_eq(&a->edges_root, &b->edges_root) &&
           cx_digest_eq(&a->overall_root, &b->overall_root);
}

/*
 * Without a key only the roots are bound; the rest (actor, sizes, times, trigger, counters) is
 * bound by the signature.  With a key only `signed_by` is outside what is signed (§9).
 */
CX_TEST(manifest_every_bit)
{
    vectors v;
    cx_manifest whole, found;
    cx_finding finding;
    cx_err err;
    REQUIRE(vectors_open(&v, "vectors/ledger/cortex-1/entries.json"));
    cx_bytes bytes = member_bytes(&v, CX_JSON_GET(&v.root, "seal"), "manifest_signed_cbor");
    REQUIRE(!cx_failed(cx_manifest_decode(bytes, &whole, &err)));
    vectors ex;
    cx_pubkey key;
    REQUIRE(vectors_open(&ex, "vectors/ledger/cortex-1/export.json"));
    memcpy(key.bytes, member_bytes(&ex, &ex.root, "pub").data, sizeof key.bytes);
    CHECK_STATUS(cx_manifest_verify(bytes, &key, cx_alloc_default(), &found, &finding, &err), &err);
    CHECK_HOLDS(&finding);
    for (size_t bit = 0; bit < bytes.size * 8; bit++) {
        uint8_t *copy = flipped(bytes, bit);
        cx_bytes changed = cx_bytes_from(copy, bytes.size);
        CHECK_STATUS(cx_manifest_verify(changed, &key, cx_alloc_default(), &found, &finding, &err),
                     &err);
        if (finding.verdict == CX_HOLDS && cx_str_eq(found.signed_by, whole.signed_by))
            cx_test_fail(__FILE__, __LINE__, "bit %zu flipped, the signature holds", bit);
        CHECK_STATUS(cx_manifest_verify(changed, NULL, cx_alloc_default(), &found, &finding, &err),
                     &err);
        if (finding.verdict == CX_HOLDS && !same_roots(&found, &whole))
            cx_test_fail(__FILE__, __LINE__, "bit %zu flipped, other roots hold", bit);
        flipped_done(copy, bytes);
    }
    vectors_close(&v);
    vectors_close(&ex);
}

CX_TEST(manifest_signatures)
{
    scenario s;
    cx_manifest manifest;
    cx_finding finding;
    cx_err err;
    cx_buf text;
    signer alice = signer_number(1), bob = signer_number(2);
    REQUIRE(scenario_open(&s));
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(
        cx_manifest_verify(s.manifest, &alice.key, cx_alloc_default(), &manifest, &finding, &err),
        &err);
    CHECK_FINDING(&finding, CX_BROKEN, "NotSigned");
    cx_buf_add_z(&text, "cortex.manifest.v1");
    cx_manifest_encode_body(&manifest, &text);
    cx_signature signature = sign(&alice, cx_buf_bytes(&text));
    manifest.signed_by = CX_STR("alice");
    manifest.signature =
        (cx_maybe_bytes){false, cx_bytes_from(signature.bytes, sizeof signature.bytes)};
    cx_buf_clear(&text);
    cx_manifest_encode(&manifest, &text);
    cx_bytes bytes = cx_buf_bytes(&text);
    CHECK_STATUS(cx_manifest_verify(bytes, &alice.key, cx_alloc_default(), NULL, &finding, &err),
                 &err);
    CHECK_HOLDS(&finding);
    CHECK_STATUS(cx_manifest_verify(bytes, &bob.key, cx_alloc_default(), NULL, &finding, &err),
                 &err);
    CHECK_FINDING(&finding, CX_BROKEN, "SignatureInvalid");
    cx_buf_done(&text);
    vectors_close(&s.v);
}

/* --- the journal ------------------------------------------------------------------------------ */

typedef struct journal_vectors {
    vectors v;
    const cx_json *inclusion;
    const cx_json *consistency;
    cx_journal_point at; /* 19 entries */
} journal_vectors;

static bool journal_open(journal_vectors *j, cx_scheme scheme)
{
    bool cortex = scheme == CX_SCHEME_CORTEX_1;
    if (!vectors_open(&j->v, cortex ? "vectors/ledger/cortex-1/scenario.json"
                                    : "vectors/ledger/matrix-1/journal_proofs.json"))
        return false;
    const cx_json *root = &j->v.root;
    j->inclusion = cx_json_get(root, cortex ? CX_STR("journal_proofs") : CX_STR("inclusion"));
    j->consistency = CX_JSON_GET(root, "consistency");
    j->at.size = 19;
    if (cortex) {
        cx_manifest manifest;
        cx_err err;
        cx_bytes bytes = member_bytes(&j->v, CX_JSON_GET(root, "manifest"), "cbor");
        CHECK_STATUS(cx_manifest_decode(bytes, &manifest, &err), &err);
        j->at.root = manifest.journal_root;
    } else {
        j->at.root = member_digest(root, "root");
    }
    return j->inclusion != NULL && j->consistency != NULL;
}

/* The root at a smaller size, from the steps of the scenario or next to the proof. */
static cx_digest older_root(journal_vectors *j, const cx_json *vector)
{
    const cx_json *steps = CX_JSON_GET(&j->v.root, "steps");
    uint64_t size = member_uint(vector, "size1");
    if (steps == NULL)
        return member_digest(vector, "old_root");
    for (size_t i = 0; i < steps->count; i++)
        if (member_uint(&steps->items[i], "next_seq") == size)
            return member_digest(&steps->items[i], "journal_root");
    cx_test_fail(__FILE__, __LINE__, "no step with that many entries");
    return (cx_digest){{0}};
}

static void check_inclusion_vector(journal_vectors *j, const cx_json *vector)
{
    cx_bytes bytes = member_bytes(&j->v, vector, "cbor");
    cx_inclusion proof;
    cx_finding finding;
    cx_journal_point at = j->at;
    cx_buf again;
    cx_err err;
    REQUIRE(!cx_failed(cx_inclusion_decode(bytes, &j->v.arena, &proof, &err)));
    CHECK_INT(proof.index, member_uint(vector, "index"));
    CHECK_INT(proof.tree_size, member_uint(vector, "size"));
    cx_buf_init(&again, cx_alloc_default());
    cx_inclusion_encode(&proof, &again);
    CHECK(bytes_eq(cx_buf_bytes(&again), bytes));
    cx_buf_done(&again);
    cx_digest leaf = cx_scheme_entry(proof.entry);
    CHECK_STATUS(cx_inclusion_verify(bytes, &leaf, &at, &j->v.arena, &finding, &err), &err);
    CHECK_HOLDS(&finding);
    CHECK_STATUS(cx_inclusion_verify(bytes, NULL, &at, &j->v.arena, &finding, &err), &err);
    CHECK_HOLDS(&finding);
    leaf.bytes[0] ^= 1;
    CHECK_STATUS(cx_inclusion_verify(bytes, &leaf, &at, &j->v.arena, &finding, &err), &err);
    CHECK_FINDING(&finding, CX_BROKEN, "LeafMismatch");
    at.size = 20;
    CHECK_STATUS(cx_inclusion_verify(bytes, NULL, &at, &j->v.arena, &finding, &err), &err);
    CHECK_FINDING(&finding, CX_BROKEN, "SizeMismatch");
    at = j->at;
    at.root.bytes[9] ^= 0x10;
    CHECK_STATUS(cx_inclusion_verify(bytes, NULL, &at, &j->v.arena, &finding, &err), &err);
    CHECK_FINDING(&finding, CX_BROKEN, "RootMismatch");
    for (size_t bit = 0; bit < bytes.size * 8; bit++) {
        uint8_t *copy = flipped(bytes, bit);
        cx_arena_mark mark = cx_arena_mark_now(&j->v.arena);
        CHECK_STATUS(cx_inclusion_verify(cx_bytes_from(copy, bytes.size), NULL, &j->at, &j->v.arena,
                                         &finding, &err),
                     &err);
        if (finding.verdict == CX_HOLDS)
            cx_test_fail(__FILE__, __LINE__, "bit %zu flipped and it holds", bit);
        cx_arena_reset(&j->v.arena, mark);
        flipped_done(copy, bytes);
    }
}

CX_TEST(proof_inclusion_vectors)
{
    for (int scheme = 0; scheme < 2; scheme++) {
        journal_vectors j;
        REQUIRE(journal_open(&j, (cx_scheme)scheme));
        for (size_t i = 0; i < j.inclusion->count; i++)
            check_inclusion_vector(&j, &j.inclusion->items[i]);
        vectors_close(&j.v);
    }
}

CX_TEST(proof_inclusion_without_entry)
{
    journal_vectors j;
    cx_inclusion proof;
    cx_finding finding;
    cx_buf bytes;
    cx_err err;
    REQUIRE(journal_open(&j, CX_SCHEME_CORTEX_1));
    cx_bytes whole = member_bytes(&j.v, &j.inclusion->items[0], "cbor");
    REQUIRE(!cx_failed(cx_inclusion_decode(whole, &j.v.arena, &proof, &err)));
    cx_digest leaf = cx_scheme_entry(proof.entry);
    cx_buf_init(&bytes, cx_alloc_default());
    proof.entry = no_bytes;
    cx_inclusion_encode(&proof, &bytes);
    cx_bytes bare = cx_buf_bytes(&bytes);
    CHECK_STATUS(cx_inclusion_verify(bare, &leaf, &j.at, &j.v.arena, &finding, &err), &err);
    CHECK_HOLDS(&finding);
    CHECK_STATUS(cx_inclusion_verify(bare, NULL, &j.at, &j.v.arena, &finding, &err), &err);
    CHECK_FINDING(&finding, CX_INDETERMINATE, "NoLeaf");
    /* An entry whose own number is another one is not accepted, whatever the path says. */
    cx_buf_clear(&bytes);
    proof.entry = member_bytes(&j.v, &j.inclusion->items[1], "entry");
    cx_inclusion_encode(&proof, &bytes);
    CHECK_STATUS(cx_inclusion_verify(cx_buf_bytes(&bytes), NULL, &j.at, &j.v.arena, &finding, &err),
                 &err);
    CHECK_FINDING(&finding, CX_BROKEN, "LeafMismatch");
    cx_buf_clear(&bytes);
    proof.entry = no_bytes;
    proof.path_count--;
    cx_inclusion_encode(&proof, &bytes);
    CHECK_STATUS(
        cx_inclusion_verify(cx_buf_bytes(&bytes), &leaf, &j.at, &j.v.arena, &finding, &err), &err);
    CHECK_FINDING(&finding, CX_BROKEN, "ProofMalformed");
    cx_buf_done(&bytes);
    vectors_close(&j.v);
}

static void check_consistency_vector(journal_vectors *j, const cx_json *vector)
{
    cx_bytes bytes = member_bytes(&j->v, vector, "cbor");
    cx_journal_point older = {member_uint(vector, "size1"), older_root(j, vector)};
    cx_consistency proof;
    cx_finding finding;
    cx_buf again;
    cx_err err;
    REQUIRE(!cx_failed(cx_consistency_decode(bytes, &j->v.arena, &proof, &err)));
    cx_buf_init(&again, cx_alloc_default());
    cx_consistency_encode(&proof, &again);
    CHECK(bytes_eq(cx_buf_bytes(&again), bytes));
    cx_buf_done(&again);
    CHECK_STATUS(cx_consistency_verify(bytes, &older, &j->at, &j->v.arena, &finding, &err), &err);
    CHECK_HOLDS(&finding);
    older.root.bytes[0] ^= 1;
    CHECK_STATUS(cx_consistency_verify(bytes, &older, &j->at, &j->v.arena, &finding, &err), &err);
    CHECK_FINDING(&finding, CX_BROKEN, "RootMismatch");
    older.root.bytes[0] ^= 1;
    older.size++;
    CHECK_STATUS(cx_consistency_verify(bytes, &older, &j->at, &j->v.arena, &finding, &err), &err);
    CHECK_FINDING(&finding, CX_BROKEN, "SizeMismatch");
    older.size--;
    for (size_t bit = 0; bit < bytes.size * 8; bit++) {
        uint8_t *copy = flipped(bytes, bit);
        cx_arena_mark mark = cx_arena_mark_now(&j->v.arena);
        CHECK_STATUS(cx_consistency_verify(cx_bytes_from(copy, bytes.size), &older, &j->at,
                                           &j->v.arena, &finding, &err),
                     &err);
        if (finding.verdict == CX_HOLDS)
            cx_test_fail(__FILE__, __LINE__, "bit %zu flipped and it holds", bit);
        cx_arena_reset(&j->v.arena, mark);
        flipped_done(copy, bytes);
    }
}

CX_TEST(proof_consistency_vectors)
{
    for (int scheme = 0; scheme < 2; scheme++) {
        journal_vectors j;
        REQUIRE(journal_open(&j, (cx_scheme)scheme));
        for (size_t i = 0; i < j.consistency->count; i++)
            check_consistency_vector(&j, &j.consistency->items[i]);
        vectors_close(&j.v);
    }
}

/* --- memory ----------------------------------------------------------------------------------- */

CX_TEST(proof_every_allocation)
{
    scenario s;
    bool finished = false;
    REQUIRE(scenario_open(&s));
    for (uint64_t at = 1; !finished && at < 200; at++) {
        fault_alloc memory;
        cx_arena arena;
        cx_multiproof proof;
        cx_finding finding;
        cx_buf out;
        cx_err err;
        fault_alloc_init(&memory, at, true);
        cx_arena_init(&arena, &memory.alloc, 0);
        cx_buf_init(&out, &memory.alloc);
        cx_status status =
            cx_multiproof_verify(s.memories, s.manifest, &any_check, &arena, NULL, &finding, &err);
        if (!cx_failed(status))
            status = cx_multiproof_decode(s.memories, &arena, &proof, &err);
        if (!cx_failed(status))
            status = cx_multiproof_encode(&proof, &out, &err);
        finished = !cx_failed(status);
        if (!finished) {
            CHECK_INT(status.code, CX_E_NOMEM);
            CHECK_INT(out.size, 0);
        } else {
            CHECK_HOLDS(&finding);
            CHECK(bytes_eq(cx_buf_bytes(&out), s.memories));
        }
        cx_buf_done(&out);
        cx_arena_done(&arena);
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
        CHECK(!atomic_load(&memory.wrong_size));
    }
    CHECK(finished);
    vectors_close(&s.v);
}
