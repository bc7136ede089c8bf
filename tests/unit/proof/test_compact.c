/*
 * test_compact.c - MultiProofs of schema 3: the vectors of an independent model, random states
 * against schema 2, every bit flipped, every allocation failing.
 */
#include "cbor/cbor.h"
#include "proof/proof.h"
#include "tests/support/fault.h"
#include "tests/support/proof_util.h"

static const cx_bytes no_bytes = {NULL, 0};

static cx_finding verify(cx_bytes proof, const cx_digest *root, cx_arena *arena,
                         cx_multiproof *out_proof)
{
    const cx_multiproof_check check = {.name_space = CX_NAMESPACE_ANY, .state_root = root};
    cx_finding finding;
    cx_err err;
    cx_arena_mark mark = cx_arena_mark_now(arena);
    CHECK_STATUS(cx_multiproof_verify(proof, no_bytes, &check, arena, out_proof, &finding, &err),
                 &err);
    if (out_proof == NULL)
        cx_arena_reset(arena, mark);
    return finding;
}

static bool same_path(const cx_smt_path *a, const cx_smt_path *b)
{
    bool same = cx_digest_eq(&a->key, &b->key) && a->member == b->member &&
                a->has_other == b->has_other && a->sibling_count == b->sibling_count;
    if (same && a->member)
        same = cx_digest_eq(&a->value, &b->value);
    if (same && a->has_other)
        same = cx_digest_eq(&a->other_key, &b->other_key) &&
               cx_digest_eq(&a->other_value, &b->other_value);
    return same && (a->sibling_count == 0 ||
                    memcmp(a->siblings, b->siblings, a->sibling_count * sizeof(cx_digest)) == 0);
}

/* Encoded in both ways it verifies, and both decode to what was proven; the compact one is out. */
static void check_both(cx_multiproof *proof, cx_arena *arena, cx_buf *out)
{
    for (int compact = 0; compact < 2; compact++) {
        cx_multiproof again = {0}, verified = {0};
        cx_err err;
        proof->compact = compact != 0;
        cx_buf_clear(out);
        CHECK_STATUS(cx_multiproof_encode(proof, out, &err), &err);
        cx_finding finding = verify(cx_buf_bytes(out), &proof->root, arena, &verified);
        CHECK_HOLDS(&finding);
        CHECK_STATUS(cx_multiproof_decode(cx_buf_bytes(out), arena, &again, &err), &err);
        REQUIRE(again.count == proof->count && verified.count == proof->count);
        CHECK_INT(again.compact, compact);
        CHECK_INT(verified.compact, compact);
        CHECK(cx_digest_eq(&again.root, &proof->root));
        for (size_t i = 0; i < proof->count; i++) {
            if (!same_path(&again.items[i].path, &proof->items[i].path))
                cx_test_fail(__FILE__, __LINE__, "key %zu of %zu has another path", i,
                             proof->count);
            CHECK_INT(again.items[i].kind, proof->items[i].kind);
            CHECK_INT(verified.items[i].kind, proof->items[i].kind);
        }
        cx_buf bytes;
        cx_buf_init(&bytes, cx_alloc_default());
        CHECK_STATUS(cx_multiproof_encode(&again, &bytes, &err), &err);
        CHECK(bytes_eq(cx_buf_bytes(&bytes), cx_buf_bytes(out)));
        cx_buf_done(&bytes);
    }
}

/* --- the vectors of make_compact.py ----------------------------------------------------------- */

static cx_smt *tree_of(const cx_json *pairs)
{
    cx_smt *smt = NULL;
    cx_err err;
    CHECK_STATUS(cx_smt_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &smt, &err), &err);
    for (size_t i = 0; i < pairs->count; i++) {
        cx_digest key = item_digest(&pairs->items[i], 0), value = item_digest(&pairs->items[i], 1);
        CHECK_STATUS(cx_smt_put(smt, &key, &value, &err), &err);
    }
    return smt;
}

static cx_proof_item item_of(vectors *v, const cx_json *key, const cx_smt_path *path)
{
    cx_str kind = CX_JSON_GET_STR(key, "kind");
    cx_digest siblings =
        cx_digest_of(cx_bytes_from(path->siblings, path->sibling_count * sizeof *path->siblings));
    cx_digest expected = member_digest(key, "siblings_digest");
    CHECK_INT(path->sibling_count, member_uint(key, "depth"));
    CHECK(cx_digest_eq(&siblings, &expected));
    CHECK_INT(path->member, !cx_str_is(kind, "absent"));
    cx_proof_item item = {.path = *path,
                          .kind = cx_str_is(kind, "member")   ? CX_MEMBER
                                  : cx_str_is(kind, "erased") ? CX_MEMBER_ERASED
                                                              : CX_ABSENT};
    if (item.kind == CX_MEMBER)
        item.leaf = member_bytes(v, key, "leaf");
    return item;
}

/* Our tree and our encoder come to the model's bytes; our reader to its siblings. */
static void check_whole(vectors *v, const cx_json *c)
{
    const cx_json *keys = CX_JSON_GET(c, "keys");
    cx_smt *smt = tree_of(CX_JSON_GET(c, "pairs"));
    cx_digest *asked = CX_ARENA_ARRAY(&v->arena, cx_digest, keys->count);
    cx_proof_item *items = CX_ARENA_ARRAY(&v->arena, cx_proof_item, keys->count);
    const cx_smt_path *paths = NULL;
    cx_err err;
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < keys->count; i++)
        asked[i] = member_digest(&keys->items[i], "key");
    CHECK_STATUS(cx_smt_prove(smt, asked, keys->count, &v->arena, &paths, &err), &err);
    for (size_t i = 0; i < keys->count; i++)
        items[i] = item_of(v, &keys->items[i], &paths[i]);
    cx_multiproof proof = {.scheme = CX_SCHEME_CORTEX_1,
                           .name_space = CX_STR("memories"),
                           .root = member_digest(c, "root"),
                           .count = keys->count,
                           .items = items};
    check_both(&proof, &v->arena, &out);
    if (!bytes_eq(cx_buf_bytes(&out), member_bytes(v, c, "cbor")))
        cx_test_fail(__FILE__, __LINE__, "%.*s: other bytes", (int)CX_JSON_GET_STR(c, "label").size,
                     CX_JSON_GET_STR(c, "label").data);
    cx_buf_done(&out);
    cx_smt_close(smt);
}

CX_TEST(compact_whole_vectors)
{
    vectors v;
    REQUIRE(vectors_open(&v, "vectors/ledger/cortex-1/compact_proofs.json"));
    const cx_json *cases = CX_JSON_GET(&v.root, "whole");
    REQUIRE(cases != NULL && cases->count >= 15);
    for (size_t i = 0; i < cases->count; i++)
        check_whole(&v, &cases->items[i]);
    vectors_close(&v);
}

CX_TEST(compact_broken_vectors)
{
    vectors v;
    REQUIRE(vectors_open(&v, "vectors/ledger/cortex-1/compact_proofs.json"));
    const cx_json *cases = CX_JSON_GET(&v.root, "broken");
    REQUIRE(cases != NULL && cases->count >= 30);
    for (size_t i = 0; i < cases->count; i++) {
        const cx_json *c = &cases->items[i];
        cx_str reason = CX_JSON_GET_STR(c, "reason"), label = CX_JSON_GET_STR(c, "label");
        cx_finding finding = verify(member_bytes(&v, c, "cbor"), NULL, &v.arena, NULL);
        if (finding.verdict != CX_BROKEN || !cx_str_is(reason, finding.reason))
            cx_test_fail(__FILE__, __LINE__, "%.*s: found %s (%s), expected %.*s", (int)label.size,
                         label.data, finding.reason == NULL ? "holds" : finding.reason,
                         finding.message, (int)reason.size, reason.data);
    }
    vectors_close(&v);
}

/* --- random states ---------------------------------------------------------------------------- */

/* Keys of a state, or, as often as not, near one: with the same beginning of any length. */
static cx_digest near(const cx_digest *keys, size_t count, bool may_be_one, uint64_t *state)
{
    cx_digest key = random_digest(state);
    if (count == 0 || cx_test_random(state) % 4 == 0)
        return key;
    const cx_digest *other = &keys[cx_test_random(state) % count];
    if (may_be_one && cx_test_random(state) % 2 == 0)
        return *other;
    size_t bits = (size_t)(cx_test_random(state) % (cx_test_random(state) % 8 == 0 ? 256 : 24));
    memcpy(key.bytes, other->bytes, bits / 8);
    if (bits % 8 != 0) {
        unsigned low = 0xffu >> bits % 8;
        key.bytes[bits / 8] =
            (uint8_t)((other->bytes[bits / 8] & ~low) | (key.bytes[bits / 8] & low));
    }
    return key;
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(cx_digest));
}

/* Sorts; keys that are there twice are dropped. */
static size_t sort_keys(cx_digest *keys, size_t count)
{
    size_t kept = 0;
    qsort(keys, count, sizeof *keys, by_bytes);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !cx_digest_eq(&keys[kept - 1], &keys[i]))
            keys[kept++] = keys[i];
    return kept;
}

/* A proof, with its memory. */
typedef struct made {
    cx_arena arena;
    cx_smt *smt;
    cx_proof_item *items;
    cx_multiproof proof;
    cx_buf bytes;
} made;

static void made_open(made *m, size_t state_count, size_t asked_count, uint64_t *random)
{
    cx_err err;
    const cx_smt_path *paths = NULL;
    cx_arena_init(&m->arena, cx_alloc_default(), 0);
    cx_buf_init(&m->bytes, cx_alloc_default());
    cx_digest *keys = CX_ARENA_ARRAY(&m->arena, cx_digest, state_count + 1);
    cx_digest *asked = CX_ARENA_ARRAY(&m->arena, cx_digest, asked_count);
    CHECK_STATUS(cx_smt_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &m->smt, &err), &err);
    for (size_t i = 0; i < state_count; i++) {
        cx_digest value = random_digest(random);
        keys[i] = near(keys, i, false, random);
        CHECK_STATUS(cx_smt_put(m->smt, &keys[i], &value, &err), &err);
    }
    for (size_t i = 0; i < asked_count; i++)
        asked[i] = near(keys, state_count, true, random);
    asked_count = sort_keys(asked, asked_count);
    m->items = CX_ARENA_ARRAY(&m->arena, cx_proof_item, asked_count);
    m->proof = (cx_multiproof){.scheme = CX_SCHEME_CORTEX_1,
                               .compact = true,
                               .name_space = CX_STR("memories"),
                               .count = asked_count,
                               .items = m->items};
    CHECK_STATUS(cx_smt_root(m->smt, &m->proof.root, &err), &err);
    CHECK_STATUS(cx_smt_prove(m->smt, asked, asked_count, &m->arena, &paths, &err), &err);
    for (size_t i = 0; i < asked_count; i++)
        m->items[i] = (cx_proof_item){.path = paths[i],
                                      .kind = paths[i].member ? CX_MEMBER_ERASED : CX_ABSENT};
}

static void made_close(made *m)
{
    cx_smt_close(m->smt);
    cx_buf_done(&m->bytes);
    cx_arena_done(&m->arena);
}

CX_TEST(compact_random_states)
{
    static const size_t states[] = {0, 1, 2, 3, 5, 17, 200, 3000};
    static const size_t asked[] = {1, 2, 3, 10, 80, 700};
    uint64_t random = cx_test_seed();
    for (size_t round = 0; round < 4; round++)
        for (size_t i = 0; i < CX_COUNT_OF(states); i++)
            for (size_t k = 0; k < CX_COUNT_OF(asked); k++) {
                made m;
                made_open(&m, states[i], asked[k], &random);
                check_both(&m.proof, &m.arena, &m.bytes);
                made_close(&m);
            }
}

/* What is told wrongly does not lead to the root, whatever it is. */
CX_TEST(compact_random_lies)
{
    uint64_t random = cx_test_seed() + 1;
    for (size_t round = 0; round < 60; round++) {
        made m;
        cx_err err;
        made_open(&m, 1 + round * 3, 1 + round, &random);
        size_t at = (size_t)(cx_test_random(&random) % m.proof.count);
        cx_smt_path *path = &m.items[at].path;
        if (path->member)
            path->value.bytes[3] ^= 8;
        else if (path->has_other)
            path->other_value.bytes[30] ^= 1;
        else
            m.proof.root.bytes[0] ^= 1;
        CHECK_STATUS(cx_multiproof_encode(&m.proof, &m.bytes, &err), &err);
        cx_finding finding = verify(cx_buf_bytes(&m.bytes), &m.proof.root, &m.arena, NULL);
        CHECK_FINDING(&finding, CX_BROKEN, "RootMismatch");
        made_close(&m);
    }
}

/* What is left out is exactly what follows: one key alone has all its siblings, all keys have none
 * but empty ones. */
CX_TEST(compact_leaves_out_what_follows)
{
    enum { COUNT = 300 };
    uint64_t random = cx_test_seed() + 2;
    cx_digest keys[COUNT];
    cx_proof_item items[COUNT];
    const cx_smt_path *paths;
    cx_arena arena;
    cx_smt *smt;
    cx_buf one, all;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&one, cx_alloc_default());
    cx_buf_init(&all, cx_alloc_default());
    REQUIRE(!cx_failed(cx_smt_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &smt, &err)));
    for (size_t i = 0; i < COUNT; i++) {
        keys[i] = random_digest(&random);
        CHECK_STATUS(cx_smt_put(smt, &keys[i], &keys[i], &err), &err);
    }
    CHECK_INT(sort_keys(keys, COUNT), COUNT);
    cx_multiproof proof = {.scheme = CX_SCHEME_CORTEX_1,
                           .compact = true,
                           .name_space = CX_STR("memories"),
                           .count = COUNT,
                           .items = items};
    CHECK_STATUS(cx_smt_root(smt, &proof.root, &err), &err);
    REQUIRE(!cx_failed(cx_smt_prove(smt, keys, COUNT, &arena, &paths, &err)));
    for (size_t i = 0; i < COUNT; i++)
        items[i] = (cx_proof_item){.path = paths[i], .kind = CX_MEMBER_ERASED};
    CHECK_STATUS(cx_multiproof_encode(&proof, &all, &err), &err);
    /* A key is 76 bytes with its value; what is around the keys and the bits of empty siblings is
     * little. */
    CHECK(all.size < 76 * COUNT + 200 + COUNT);
    proof.count = 1;
    CHECK_STATUS(cx_multiproof_encode(&proof, &one, &err), &err);
    size_t siblings = 0;
    for (size_t i = 0; i < paths[0].sibling_count; i++)
        siblings += !cx_digest_eq(&paths[0].siblings[i], &(cx_digest){{0}});
    CHECK(one.size > 32 * siblings && one.size < 32 * siblings + 200);
    cx_smt_close(smt);
    cx_buf_done(&one);
    cx_buf_done(&all);
    cx_arena_done(&arena);
}

/* --- what is refused -------------------------------------------------------------------------- */

static void expect_refused(const cx_multiproof *proof, cx_code code, const char *tag)
{
    cx_buf out;
    cx_err err;
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_add_z(&out, "before");
    CHECK_INT(cx_multiproof_encode(proof, &out, &err).code, code);
    CHECK_STR(cx_str_z(err.tag), tag);
    CHECK_STR(cx_buf_str(&out), "before");
    cx_buf_done(&out);
}

CX_TEST(compact_encoding_refuses)
{
    cx_digest siblings[2] = {{{1}}, {{2}}};
    cx_proof_item items[2] = {{.kind = CX_ABSENT}, {.kind = CX_ABSENT}};
    cx_multiproof proof = {.scheme = CX_SCHEME_CORTEX_1,
                           .compact = true,
                           .name_space = CX_STR("memories"),
                           .count = 2,
                           .items = items};
    expect_refused(&proof, CX_E_USAGE, "InvalidArgument"); /* twice */
    items[0].path.key.bytes[0] = 1;
    expect_refused(&proof, CX_E_USAGE, "InvalidArgument"); /* descending */
    items[0].path.key.bytes[0] = 0;
    items[1].path.key.bytes[0] = 1; /* 7 bits in common */
    items[1].path.siblings = siblings;
    items[1].path.sibling_count = 2;
    expect_refused(&proof, CX_E_USAGE, "InvalidArgument"); /* one ends on the other's way */
    proof.scheme = CX_SCHEME_MATRIX_1;
    expect_refused(&proof, CX_E_UNSUPPORTED, "SchemeUnsupported");
    proof.scheme = CX_SCHEME_CORTEX_1;
    proof.count = 0;
    expect_refused(&proof, CX_E_USAGE, "EmptyProof");
}

/*
 * Of a proof of members nothing can be changed.  With absent keys in it a flipped bit can make a
 * valid proof about another absent key; the caller compares the keys (test_proof.c).
 */
static void flip_every_bit(cx_bytes bytes, bool has_absent, size_t step)
{
    cx_arena arena;
    cx_multiproof whole, found;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    REQUIRE(!cx_failed(cx_multiproof_decode(bytes, &arena, &whole, &err)));
    for (size_t bit = 0; bit < bytes.size * 8; bit += step) {
        uint8_t *copy = flipped(bytes, bit);
        cx_arena_mark mark = cx_arena_mark_now(&arena);
        cx_finding finding = verify(cx_bytes_from(copy, bytes.size), &whole.root, &arena, &found);
        size_t changed = 0, other = 0;
        for (size_t i = 0; finding.verdict == CX_HOLDS && i < whole.count; i++) {
            bool same_key = cx_digest_eq(&found.items[i].path.key, &whole.items[i].path.key);
            changed += !same_key;
            other += found.items[i].kind != whole.items[i].kind ||
                     (!same_key && whole.items[i].kind != CX_ABSENT);
        }
        if (finding.verdict == CX_HOLDS && (!has_absent || changed != 1 || other != 0))
            cx_test_fail(__FILE__, __LINE__, "bit %zu flipped and it holds", bit);
        cx_arena_reset(&arena, mark);
        flipped_done(copy, bytes);
    }
    cx_arena_done(&arena);
}

CX_TEST(compact_every_bit)
{
    vectors v;
    REQUIRE(vectors_open(&v, "vectors/ledger/cortex-1/compact_proofs.json"));
    const cx_json *cases = CX_JSON_GET(&v.root, "whole");
    size_t of_members = 0;
    for (size_t i = 0; i < cases->count; i++) {
        const cx_json *keys = CX_JSON_GET(&cases->items[i], "keys");
        cx_bytes bytes = member_bytes(&v, &cases->items[i], "cbor");
        bool has_absent = false;
        for (size_t k = 0; k < keys->count; k++)
            has_absent =
                has_absent || cx_str_is(CX_JSON_GET_STR(&keys->items[k], "kind"), "absent");
        of_members += !has_absent;
        flip_every_bit(bytes, has_absent, bytes.size < 1500 ? 1 : 101);
    }
    CHECK(of_members >= 5);
    vectors_close(&v);
}

/* --- memory ----------------------------------------------------------------------------------- */

CX_TEST(compact_every_allocation)
{
    vectors v;
    bool finished = false;
    REQUIRE(vectors_open(&v, "vectors/ledger/cortex-1/compact_proofs.json"));
    const cx_json *cases = CX_JSON_GET(&v.root, "whole");
    cx_bytes bytes = member_bytes(&v, &cases->items[cases->count - 2], "cbor");
    for (uint64_t at = 1; !finished && at < 300; at++) {
        fault_alloc memory;
        cx_arena arena;
        cx_multiproof proof;
        cx_finding finding;
        cx_buf out;
        cx_err err;
        const cx_multiproof_check check = {.name_space = CX_NAMESPACE_ANY};
        fault_alloc_init(&memory, at, true);
        cx_arena_init(&arena, &memory.alloc, 0);
        cx_buf_init(&out, &memory.alloc);
        cx_status status =
            cx_multiproof_verify(bytes, no_bytes, &check, &arena, NULL, &finding, &err);
        if (!cx_failed(status))
            status = cx_multiproof_decode(bytes, &arena, &proof, &err);
        if (!cx_failed(status))
            status = cx_multiproof_encode(&proof, &out, &err);
        finished = !cx_failed(status);
        if (!finished) {
            CHECK_INT(status.code, CX_E_NOMEM);
            CHECK_INT(out.size, 0);
        } else {
            CHECK_HOLDS(&finding);
            CHECK(bytes_eq(cx_buf_bytes(&out), bytes));
        }
        cx_buf_done(&out);
        cx_arena_done(&arena);
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
        CHECK(!atomic_load(&memory.wrong_size));
    }
    CHECK(finished);
    vectors_close(&v);
}
