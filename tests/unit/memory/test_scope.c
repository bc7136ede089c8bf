/*
 * test_scope.c - scopes: vectors of both schemes, every verdict and their order, strict bytes,
 * flipped bits, and what a scope lets through.
 */
#include "proof/scope.h"
#include "memory/type.h"

#include <cortex/proof.h>
#include <sodium.h>

#include "tree/smt.h"
#include "tests/unit/memory/fixture.h"

#define NOW INT64_C(1700000100000000000)
#define EXPIRES INT64_C(1700003600)

/* --- asking ----------------------------------------------------------------------------------- */

typedef struct world {
    fixture kit;
    cx_scheme scheme;
    uint8_t secret[64];
    cx_pubkey key;
    cx_bytes manifest; /* the one retained snapshot */
    cx_digest root;
    cx_smt *smt;
    cx_bytes leaves[3]; /* Heads of ids 1, 2, 3 */
    unsigned key_calls, snapshot_calls;
    bool lying; /* says that every root is that of the snapshot */
} world;

static cx_status find_key(void *arg, cx_str agent, cx_pubkey *out, bool *out_found, cx_err *err)
{
    world *w = arg;
    (void)err;
    w->key_calls++;
    *out_found = cx_str_is(agent, "did:parent");
    *out = w->key;
    return CX_SUCCESS;
}

static cx_status find_snapshot(void *arg, const cx_digest *root, cx_bytes *out, bool *out_found,
                               cx_err *err)
{
    world *w = arg;
    (void)err;
    w->snapshot_calls++;
    *out_found = w->lying || cx_digest_eq(root, &w->root);
    *out = w->manifest;
    return CX_SUCCESS;
}

static cx_scope_check question_of(world *w)
{
    return (cx_scope_check){.actor = CX_STR("andrew"),
                            .now_ns = NOW,
                            .key = find_key,
                            .key_arg = w,
                            .snapshot = find_snapshot,
                            .snapshot_arg = w};
}

/* "holds" or the reason's name. */
static const char *verdict_of(world *w, cx_bytes scope, const cx_scope_check *check,
                              cx_scope_use *out)
{
    cx_finding finding;
    cx_err err;
    cx_status status = cx_scope_verify(scope, check, &w->kit.arena, out, &finding, &err);
    if (cx_failed(status)) {
        cx_test_fail(__FILE__, __LINE__, "could not check: %s", err.message);
        return "error";
    }
    CHECK((finding.verdict == CX_HOLDS) == (finding.reason == NULL));
    CHECK((finding.verdict == CX_HOLDS) == (finding.message[0] == 0));
    return finding.verdict == CX_HOLDS ? "holds" : finding.reason;
}

#define CHECK_VERDICT(w, scope, check, expected)                           \
    do {                                                                   \
        cx_scope_use granted_;                                             \
        const char *found_ = verdict_of((w), (scope), (check), &granted_); \
        CHECK_STR(cx_str_z(found_), expected);                             \
    } while (0)

/* --- vectors ---------------------------------------------------------------------------------- */

static bool world_load(world *w, const char *name, cx_json *file)
{
    memset(w, 0, sizeof *w);
    fixture_init(&w->kit);
    if (!fixture_load(&w->kit, name, file))
        return false;
    cx_manifest manifest;
    w->manifest = fixture_hex_of(&w->kit, file, "manifest_cbor");
    CHECK_STATUS(cx_manifest_decode(w->manifest, &manifest, &w->kit.err), &w->kit.err);
    w->root = manifest.overall_root;
    memcpy(w->key.bytes, fixture_hex_of(&w->kit, file, "pub").data, sizeof w->key.bytes);
    return true;
}

static void check_bytes(world *w, const cx_json *item, cx_bytes bytes)
{
    cx_scope scope;
    CHECK_STATUS(cx_scope_decode(bytes, &w->kit.arena, &scope, &w->kit.err), &w->kit.err);
    cx_buf_clear(&w->kit.buf);
    cx_scope_encode(&scope, &w->kit.buf);
    CHECK(fixture_same(cx_buf_bytes(&w->kit.buf), bytes));
    cx_buf_clear(&w->kit.buf);
    cx_scope_to_sign(&scope, &w->kit.buf);
    /* Of the tampered ones a vector gives what was signed. */
    if (CX_JSON_GET(item, "unsigned_cbor") != NULL &&
        !cx_str_is(CX_JSON_GET_STR(item, "cortex_expects"), "SignatureInvalid"))
        CHECK(fixture_same(cx_buf_bytes(&w->kit.buf),
                           fixture_hex_of(&w->kit, item, "unsigned_cbor")));
    if (CX_JSON_GET(item, "unsigned_sha256") != NULL) {
        cx_digest digest = cx_digest_of(cx_buf_bytes(&w->kit.buf));
        CHECK(fixture_same(cx_bytes_from(digest.bytes, 32),
                           fixture_hex_of(&w->kit, item, "unsigned_sha256")));
        CHECK_INT(w->kit.buf.size, fixture_uint(item, "unsigned_len"));
    }
}

/* The absence of memory 1 in the tree of edges, which is empty. */
static void prove_absence_of_edge(cx_buf *out)
{
    static cx_digest siblings[256];
    const cx_proof_item item = {
        .path = {.key = cx_scheme_memory_key(CX_SCHEME_MATRIX_1, fixture_id(1).bytes),
                 .sibling_count = 256,
                 .siblings = siblings},
        .kind = CX_ABSENT};
    const cx_multiproof proof = {.scheme = CX_SCHEME_MATRIX_1,
                                 .name_space = CX_STR("edges"),
                                 .root = cx_scheme_smt_empty(CX_SCHEME_MATRIX_1, 0),
                                 .count = 1,
                                 .items = &item};
    cx_err err;
    for (unsigned i = 0; i < 256; i++)
        siblings[i] = cx_scheme_smt_empty(CX_SCHEME_MATRIX_1, i + 1);
    CHECK_STATUS(cx_multiproof_encode(&proof, out, &err), &err);
}

/* Two scopes of matrix-1 are given by their parts: the proof of memory 1, and one in the name of
 * the other tree. */
static cx_bytes scope_of_parts(world *w, const cx_json *file, const cx_json *item)
{
    cx_id id = fixture_id(1);
    cx_bytes proof = fixture_hex_of(&w->kit, file, "multiproof_cbor");
    cx_buf edges;
    cx_buf_init(&edges, cx_alloc_default());
    prove_absence_of_edge(&edges);
    if (cx_str_starts(CX_JSON_GET_STR(item, "label"), CX_STR("WEAKNESS")))
        proof = cx_buf_bytes(&edges);
    cx_scope scope = {.schema = 1,
                      .actor = CX_STR("andrew"),
                      .snapshot_hash = w->root,
                      .include = {.ids = &id, .id_count = 1},
                      .multiproof = proof,
                      .expires = true,
                      .expires_at = EXPIRES,
                      .granted_by = CX_STR("did:parent"),
                      .granted_to = CX_STR("did:child"),
                      .signature = {.bytes = fixture_hex_of(&w->kit, item, "signature")}};
    cx_buf_clear(&w->kit.buf);
    cx_scope_encode(&scope, &w->kit.buf);
    cx_str copy = cx_arena_copy_str(&w->kit.arena, cx_buf_str(&w->kit.buf));
    cx_buf_done(&edges);
    return cx_str_bytes(copy);
}

static void check_vectors(const char *name, uint32_t expected_count)
{
    world w;
    cx_json file;
    if (world_load(&w, name, &file)) {
        const cx_json *cases = CX_JSON_GET(&file, "cases");
        REQUIRE(cases != NULL && cases->count == expected_count);
        for (uint32_t i = 0; i < cases->count; i++) {
            const cx_json *item = &cases->items[i];
            cx_str expected = CX_JSON_GET_STR(item, "cortex_expects");
            cx_scope_check check = question_of(&w);
            cx_scope_use granted;
            bool is_whole = CX_JSON_GET(item, "cbor") != NULL;
            cx_bytes bytes =
                is_whole ? fixture_hex_of(&w.kit, item, "cbor") : scope_of_parts(&w, &file, item);
            check_bytes(&w, item, bytes);
            check.now_ns = (int64_t)fixture_uint(item, "now_ns");
            const char *found = verdict_of(&w, bytes, &check, &granted);
            if (!cx_str_is(expected, found))
                cx_test_fail(__FILE__, __LINE__, "case %u: %s, expected %.*s", i, found,
                             (int)expected.size, expected.data);
        }
    }
    fixture_done(&w.kit);
}

CX_TEST(scope_vectors_cortex_1)
{
    check_vectors("vectors/ledger/cortex-1/scope.json", 9);
}

CX_TEST(scope_vectors_matrix_1)
{
    check_vectors("vectors/ledger/matrix-1/scope.json", 9);
}

/* By a recipient with the library alone, which reads no clock: without the time a scope that ends
 * is not called good. */
CX_TEST(scope_of_a_file_needs_the_time)
{
    static const struct {
        bool given;
        int64_t now_ns;
        const char *reason;
    } rows[] = {{false, 0, "NoTime"},
                {true, NOW, NULL},
                {true, EXPIRES * INT64_C(1000000000), NULL},
                {true, (EXPIRES + 1) * INT64_C(1000000000), "ScopeExpired"}};
    world w;
    cx_json file;
    size_t tried = 0;
    if (world_load(&w, "vectors/ledger/cortex-1/scope.json", &file)) {
        const cx_json *cases = CX_JSON_GET(&file, "cases");
        const char *key = cx_arena_copy_str(&w.kit.arena, CX_JSON_GET_STR(&file, "pub")).data;
        for (uint32_t i = 0; i < cases->count; i++) {
            if (CX_JSON_GET(&cases->items[i], "cbor") == NULL ||
                !cx_str_is(CX_JSON_GET_STR(&cases->items[i], "cortex_expects"), "holds"))
                continue;
            cx_bytes bytes = fixture_hex_of(&w.kit, &cases->items[i], "cbor");
            for (size_t j = 0; j < CX_COUNT_OF(rows); j++) {
                cx_proof_trust trust = CX_PROOF_TRUST_INIT;
                cx_proof_report *report = NULL;
                cx_err err;
                trust.keys = &key;
                trust.key_count = 1;
                trust.now_given = rows[j].given;
                trust.now_ns = rows[j].now_ns;
                CHECK_STATUS(cx_proof_check(bytes, &trust, &report, &err), &err);
                const cx_proof_summary *said = cx_proof_report_summary(report);
                CHECK(strcmp(said->kind, "scope") == 0);
                CHECK((said->verdict == CX_HOLDS) == (rows[j].reason == NULL));
                if (rows[j].reason != NULL &&
                    (said->reason == NULL || strcmp(said->reason, rows[j].reason) != 0))
                    cx_test_fail(__FILE__, __LINE__, "case %u, row %zu: %s", i, j, said->reason);
                cx_proof_report_close(report);
                tried++;
            }
        }
    }
    CHECK(tried >= CX_COUNT_OF(rows));
    fixture_done(&w.kit);
}

/* Every bit of every scope that holds, flipped: it never holds. */
static void check_flips(const char *name, size_t largest)
{
    world w;
    cx_json file;
    size_t tried = 0;
    if (world_load(&w, name, &file)) {
        const cx_json *cases = CX_JSON_GET(&file, "cases");
        for (uint32_t i = 0; i < cases->count; i++) {
            cx_scope_check check = question_of(&w);
            if (CX_JSON_GET(&cases->items[i], "cbor") == NULL ||
                !cx_str_is(CX_JSON_GET_STR(&cases->items[i], "cortex_expects"), "holds"))
                continue;
            cx_bytes bytes = fixture_hex_of(&w.kit, &cases->items[i], "cbor");
            uint8_t *flipped = malloc(bytes.size);
            if (bytes.size > largest)
                cx_test_fail(__FILE__, __LINE__, "%zu bytes", bytes.size);
            for (size_t bit = 0; bit < bytes.size * 8; bit++) {
                cx_arena_mark mark = cx_arena_mark_now(&w.kit.arena);
                cx_scope_use granted;
                memcpy(flipped, bytes.data, bytes.size);
                flipped[bit / 8] ^= (uint8_t)(1u << bit % 8);
                const char *found =
                    verdict_of(&w, cx_bytes_from(flipped, bytes.size), &check, &granted);
                if (strcmp(found, "holds") == 0)
                    cx_test_fail(__FILE__, __LINE__, "case %u holds with bit %zu flipped", i, bit);
                cx_arena_reset(&w.kit.arena, mark);
                tried++;
            }
            for (size_t size = 0; size < bytes.size; size++)
                CHECK_VERDICT(&w, cx_bytes_from(bytes.data, size), &check, "NonCanonical");
            free(flipped);
        }
    }
    CHECK(tried > 1000);
    fixture_done(&w.kit);
}

CX_TEST(scope_flipped_bits_never_hold)
{
    check_flips("vectors/ledger/cortex-1/scope.json", 600);
    check_flips("vectors/ledger/matrix-1/scope.json", 600);
}

/* --- a world of the test's own ---------------------------------------------------------------- */

static void world_put(world *w, uint64_t number, const cx_head *like)
{
    cx_head head = *like;
    head.id = fixture_id(number);
    cx_buf_clear(&w->kit.buf);
    cx_head_encode(&head, &w->kit.buf);
    cx_str copy = cx_arena_copy_str(&w->kit.arena, cx_buf_str(&w->kit.buf));
    w->leaves[number - 1] = cx_str_bytes(copy);
    cx_digest key = cx_scheme_memory_key(w->scheme, head.id.bytes);
    cx_digest value = cx_scheme_value(w->scheme, w->leaves[number - 1]);
    CHECK_STATUS(cx_smt_put(w->smt, &key, &value, &w->kit.err), &w->kit.err);
}

static void world_init(world *w, cx_scheme scheme)
{
    uint8_t seed[32] = {7};
    memset(w, 0, sizeof *w);
    fixture_init(&w->kit);
    w->scheme = scheme;
    CHECK(sodium_init() >= 0);
    CHECK(crypto_sign_seed_keypair(w->key.bytes, w->secret, seed) == 0);
    CHECK_STATUS(cx_smt_open(scheme, cx_alloc_default(), &w->smt, &w->kit.err), &w->kit.err);
    cx_head head = {.type = CX_TYPE_FACT,
                    .current_version = 1,
                    .actor_scope = CX_STR("andrew"),
                    .visibility = CX_VISIBILITY_PRIVATE,
                    .forms = {CX_STR("s"), CX_STR("m")}};
    for (uint64_t number = 1; number <= 3; number++)
        world_put(w, number, &head);
    cx_manifest manifest = {.scheme = scheme,
                            .actor = CX_STR("andrew"),
                            .journal_size = 3,
                            .has_edges = true,
                            .has_memories = true,
                            .created_ns = NOW,
                            .live_memories = 3,
                            .signature = {.null = true}};
    manifest.edges_root = cx_scheme_smt_empty(scheme, 0);
    CHECK_STATUS(cx_smt_root(w->smt, &manifest.memories_root, &w->kit.err), &w->kit.err);
    manifest.overall_root = w->root = cx_manifest_overall(&manifest);
    cx_buf_clear(&w->kit.buf);
    cx_manifest_encode(&manifest, &w->kit.buf);
    w->manifest = cx_str_bytes(cx_arena_copy_str(&w->kit.arena, cx_buf_str(&w->kit.buf)));
}

static void world_done(world *w)
{
    cx_smt_close(w->smt);
    fixture_done(&w->kit);
}

/* A proof of these memories; numbers above 3 do not exist. */
static cx_bytes world_prove(world *w, const uint64_t *numbers, size_t count, bool erased)
{
    cx_proof_item items[4];
    cx_digest keys[4];
    const cx_smt_path *paths;
    cx_multiproof proof = {
        .scheme = w->scheme, .name_space = CX_STR("memories"), .count = count, .items = items};
    for (size_t i = 0; i < count; i++)
        keys[i] = cx_scheme_memory_key(w->scheme, fixture_id(numbers[i]).bytes);
    CHECK_STATUS(cx_smt_root(w->smt, &proof.root, &w->kit.err), &w->kit.err);
    CHECK_STATUS(cx_smt_prove(w->smt, keys, count, &w->kit.arena, &paths, &w->kit.err),
                 &w->kit.err);
    for (size_t i = 0; i < count; i++) {
        items[i] = (cx_proof_item){.path = paths[i], .kind = CX_ABSENT};
        if (numbers[i] <= 3) {
            items[i].kind = erased ? CX_MEMBER_ERASED : CX_MEMBER;
            items[i].leaf = erased ? (cx_bytes){NULL, 0} : w->leaves[numbers[i] - 1];
        }
    }
    cx_buf_clear(&w->kit.buf);
    CHECK_STATUS(cx_multiproof_encode(&proof, &w->kit.buf, &w->kit.err), &w->kit.err);
    return cx_str_bytes(cx_arena_copy_str(&w->kit.arena, cx_buf_str(&w->kit.buf)));
}

/* The same proof as one of schema 3. */
static cx_bytes compacted(world *w, cx_bytes bytes)
{
    cx_multiproof proof = {.count = 0};
    CHECK_STATUS(cx_multiproof_decode(bytes, &w->kit.arena, &proof, &w->kit.err), &w->kit.err);
    proof.compact = true;
    cx_buf_clear(&w->kit.buf);
    CHECK_STATUS(cx_multiproof_encode(&proof, &w->kit.buf, &w->kit.err), &w->kit.err);
    return cx_str_bytes(cx_arena_copy_str(&w->kit.arena, cx_buf_str(&w->kit.buf)));
}

static cx_bytes world_sign(world *w, cx_scope *scope)
{
    uint8_t signature[64];
    cx_buf_clear(&w->kit.buf);
    cx_scope_to_sign(scope, &w->kit.buf);
    CHECK(crypto_sign_detached(signature, NULL, w->kit.buf.data, w->kit.buf.size, w->secret) == 0);
    scope->signature = (cx_maybe_bytes){.bytes = cx_bytes_from(signature, sizeof signature)};
    cx_buf_clear(&w->kit.buf);
    cx_scope_encode(scope, &w->kit.buf);
    scope->signature = (cx_maybe_bytes){.null = true};
    return cx_str_bytes(cx_arena_copy_str(&w->kit.arena, cx_buf_str(&w->kit.buf)));
}

/* A scope of facts that holds. */
static cx_scope scope_of_facts(const world *w)
{
    return (cx_scope){.schema = 1,
                      .actor = CX_STR("andrew"),
                      .snapshot_hash = w->root,
                      .include = {.types = cx_str_bytes(CX_STR("\x02"))},
                      .expires = true,
                      .expires_at = EXPIRES,
                      .granted_by = CX_STR("did:parent"),
                      .granted_to = CX_STR("did:child"),
                      .signature = {.null = true}};
}

/* Two ids, swapped on demand. */
static const cx_id two_ids[2] = {{{0x01, 0x8b, 0xcf, 0xe5, 0x68, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}},
                                 {{0x01, 0x8b, 0xcf, 0xe5, 0x68, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}};
static const uint64_t two_numbers[2] = {2, 1};

static cx_scope scope_of_two(world *w)
{
    cx_scope scope = scope_of_facts(w);
    scope.include = (cx_selector){.ids = two_ids, .id_count = 2};
    scope.multiproof = world_prove(w, two_numbers, 2, false);
    return scope;
}

static void check_terms(cx_scheme scheme)
{
    world w;
    world_init(&w, scheme);
    cx_scope scope = scope_of_facts(&w);
    cx_scope_check check = question_of(&w);
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "holds");
    CHECK(w.key_calls == 1 && w.snapshot_calls == 1);

    scope.schema = 2;
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "SchemaVersion");
    scope.schema = 0;
    check.key = NULL; /* the schema is looked at first */
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "SchemaVersion");
    scope.schema = 1;
    cx_scope_use granted;
    cx_finding finding;
    CHECK_STATUS(cx_scope_verify(world_sign(&w, &scope), &check, &w.kit.arena, &granted, &finding,
                                 &w.kit.err),
                 &w.kit.err);
    CHECK_INT(finding.verdict, CX_INDETERMINATE);
    CHECK_STR(cx_str_z(finding.reason), "NoKeyResolver");
    check.key = find_key;

    check.actor = CX_STR("bob");
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "ActorMismatch");
    scope.actor = check.actor = CX_STR("");
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "ActorMismatch");
    scope.actor = check.actor = CX_STR("andrew");

    cx_bytes types = scope.include.types;
    scope.include.types.size = 0;
    scope.expires_at = 0; /* expired too, which comes later */
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "EmptyInclude");
    scope.include.types = types;
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "ScopeExpired");
    CHECK(w.snapshot_calls == 1); /* a scope that has failed asks no one */
    scope.expires = false;
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "holds");
    world_done(&w);
}

CX_TEST(scope_terms)
{
    check_terms(CX_SCHEME_CORTEX_1);
    check_terms(CX_SCHEME_MATRIX_1);
}

/* §14.15: any now inside the second expires_at passes, the next second does not. */
CX_TEST(scope_expires_after_its_second)
{
    static const struct {
        int64_t expires_at, now_ns;
        bool holds;
    } cases[] = {
        {EXPIRES, EXPIRES * 1000000000, true},
        {EXPIRES, EXPIRES * 1000000000 + 999999999, true},
        {EXPIRES, EXPIRES * 1000000000 + 1000000000, false},
        {0, 999999999, true},
        {0, 1000000000, false},
        {0, -1, true},
        {-1, -1, true}, /* floor, not towards zero */
        {-1, -1000000000, true},
        {-1, 0, false},
        {-2, -1000000001, true},
        {-2, -1000000000, false},
        {INT64_MAX, INT64_MAX, true},
        {INT64_MIN, INT64_MIN, false},
    };
    world w;
    world_init(&w, CX_SCHEME_CORTEX_1);
    cx_scope scope = scope_of_facts(&w);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_scope_check check = question_of(&w);
        scope.expires_at = cases[i].expires_at;
        check.now_ns = cases[i].now_ns;
        CHECK_VERDICT(&w, world_sign(&w, &scope), &check,
                      cases[i].holds ? "holds" : "ScopeExpired");
    }
    world_done(&w);
}

CX_TEST(scope_keys_and_signatures)
{
    world w;
    uint8_t short_signature[63] = {0};
    world_init(&w, CX_SCHEME_CORTEX_1);
    cx_scope scope = scope_of_facts(&w);
    cx_scope_check check = question_of(&w);
    scope.granted_by = CX_STR("did:stranger");
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "UnknownAgent");
    scope.granted_by = CX_STR("did:parent");
    cx_buf_clear(&w.kit.buf);
    cx_scope_encode(&scope, &w.kit.buf); /* not signed */
    CHECK_VERDICT(&w, cx_buf_bytes(&w.kit.buf), &check, "SignatureInvalid");
    scope.signature =
        (cx_maybe_bytes){.bytes = cx_bytes_from(short_signature, sizeof short_signature)};
    cx_buf_clear(&w.kit.buf);
    cx_scope_encode(&scope, &w.kit.buf);
    CHECK_VERDICT(&w, cx_buf_bytes(&w.kit.buf), &check, "SignatureInvalid");
    cx_bytes good = world_sign(&w, &scope);
    w.key.bytes[3] ^= 1;
    CHECK_VERDICT(&w, good, &check, "SignatureInvalid");
    CHECK_INT(w.snapshot_calls, 0);
    world_done(&w);
}

CX_TEST(scope_snapshots)
{
    world w, other;
    world_init(&w, CX_SCHEME_CORTEX_1);
    world_init(&other, CX_SCHEME_MATRIX_1);
    cx_scope scope = scope_of_facts(&w);
    cx_scope_check check = question_of(&w);
    scope.snapshot_hash.bytes[0] ^= 1;
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "SnapshotUnresolved");
    /* The answer may be wrong: the manifest is held against the root .. */
    w.lying = true;
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "SnapshotUnresolved");
    scope.snapshot_hash = w.root;
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "holds");
    cx_bytes kept = w.manifest;
    w.manifest = other.manifest;
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "SnapshotUnresolved");
    w.manifest = cx_bytes_from(kept.data, kept.size - 1);
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "SnapshotUnresolved");
    w.manifest = kept;
    /* .. and against the actor. */
    scope.actor = check.actor = CX_STR("bob");
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "SnapshotUnresolved");
    scope.actor = check.actor = CX_STR("andrew");
    check.snapshot = NULL;
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "SnapshotUnresolved");
    world_done(&other);
    world_done(&w);
}

static void check_proofs(cx_scheme scheme)
{
    static const uint64_t swapped[2] = {1, 2}, one[1] = {2}, three[3] = {2, 1, 3},
                          absent[2] = {2, 9};
    world w;
    cx_scope_use granted;
    world_init(&w, scheme);
    cx_scope scope = scope_of_two(&w);
    cx_scope_check check = question_of(&w);
    CHECK_STR(cx_str_z(verdict_of(&w, world_sign(&w, &scope), &check, &granted)), "holds");
    CHECK_INT(granted.proof.count, 2);
    if (scheme == CX_SCHEME_CORTEX_1) { /* in matrix-1 the leaves do not travel with the proof */
        cx_id id = fixture_id(1), none = fixture_id(3);
        CHECK(fixture_same(cx_granted_leaf(&granted, &id), w.leaves[0]));
        CHECK_INT(cx_granted_leaf(&granted, &none).size, 0);
    }
    cx_bytes good = scope.multiproof;
    scope.multiproof = world_prove(&w, swapped, 2, false);
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "ProofMismatch");
    scope.multiproof = world_prove(&w, one, 1, false);
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "ProofMismatch");
    scope.multiproof = world_prove(&w, three, 3, false);
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "ProofMismatch");
    scope.multiproof = (cx_bytes){NULL, 0};
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "ProofMismatch");
    scope.multiproof = cx_str_bytes(CX_STR("\xf6"));
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "ProofMismatch");
    if (scheme == CX_SCHEME_CORTEX_1) { /* a compact proof says the same and is not the form */
        cx_scope of_one = scope;
        cx_id first = fixture_id(one[0]);
        of_one.include = (cx_selector){.ids = &first, .id_count = 1};
        of_one.multiproof = world_prove(&w, one, 1, false);
        CHECK_VERDICT(&w, world_sign(&w, &of_one), &check, "holds");
        of_one.multiproof = compacted(&w, of_one.multiproof);
        CHECK_VERDICT(&w, world_sign(&w, &of_one), &check, "ProofMismatch");
    }
    scope.multiproof = good;
    scope.include = scope_of_facts(&w).include; /* a proof of nothing */
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "ProofMismatch");
    /* §14.9: what is not there is never granted by its id, though its absence is proven. */
    cx_id ids[2] = {fixture_id(2), fixture_id(9)};
    scope.include = (cx_selector){.ids = ids, .id_count = 2};
    scope.multiproof = world_prove(&w, absent, 2, false);
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "ProofMismatch");
    world_done(&w);
}

CX_TEST(scope_proofs)
{
    check_proofs(CX_SCHEME_CORTEX_1);
    check_proofs(CX_SCHEME_MATRIX_1);
}

/* A memory that was erased before the scope was written is still a member, without its leaf. */
CX_TEST(scope_of_an_erased_memory)
{
    world w;
    cx_scope_use granted;
    world_init(&w, CX_SCHEME_CORTEX_1);
    cx_scope scope = scope_of_two(&w);
    cx_scope_check check = question_of(&w);
    scope.multiproof = world_prove(&w, two_numbers, 2, true);
    CHECK_STR(cx_str_z(verdict_of(&w, world_sign(&w, &scope), &check, &granted)), "holds");
    CHECK_INT(cx_granted_leaf(&granted, &two_ids[0]).size, 0);
    world_done(&w);
}

/* A proof whose keys are distinct cannot stand for an id said twice. */
CX_TEST(scope_with_an_id_twice)
{
    world w;
    world_init(&w, CX_SCHEME_CORTEX_1);
    cx_scope scope = scope_of_two(&w);
    cx_scope_check check = question_of(&w);
    cx_id twice[2] = {two_ids[0], two_ids[0]};
    scope.include.ids = twice;
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "ProofMismatch");
    world_done(&w);
}

CX_TEST(scope_presenter_and_budget)
{
    world w;
    world_init(&w, CX_SCHEME_CORTEX_1);
    cx_scope scope = scope_of_facts(&w);
    cx_scope_check check = question_of(&w);
    scope.budget_tokens = 100;
    check.tokens = 101;
    check.has_presenter = true;
    check.presenter = CX_STR("did:thief");
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "NotGrantee");
    check.presenter = CX_STR("");
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "NotGrantee");
    check.presenter = CX_STR("did:child");
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "BudgetExceeded");
    check.tokens = 100;
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "holds");
    scope.budget_tokens = 0; /* none */
    check.tokens = UINT64_MAX;
    CHECK_VERDICT(&w, world_sign(&w, &scope), &check, "holds");
    world_done(&w);
}

static cx_status broken_key(void *arg, cx_str agent, cx_pubkey *out, bool *out_found, cx_err *err)
{
    (void)arg, (void)agent, (void)out, (void)out_found;
    return cx_fail(err, CX_E_IO, "the keys cannot be read");
}

CX_TEST(scope_errors_of_callbacks_are_errors)
{
    world w;
    cx_scope_use granted;
    cx_finding finding = {.reason = "untouched"};
    world_init(&w, CX_SCHEME_CORTEX_1);
    cx_scope scope = scope_of_facts(&w);
    cx_scope_check check = question_of(&w);
    check.key = broken_key;
    CHECK_INT(cx_scope_verify(world_sign(&w, &scope), &check, &w.kit.arena, &granted, &finding,
                              &w.kit.err)
                  .code,
              CX_E_IO);
    CHECK_STR(cx_str_z(finding.reason), "untouched");
    world_done(&w);
}

/* Names are put into messages, which stay one line whatever the names hold. */
CX_TEST(scope_messages_are_one_line)
{
    world w;
    cx_scope_use granted;
    cx_finding finding;
    world_init(&w, CX_SCHEME_CORTEX_1);
    cx_scope scope = scope_of_facts(&w);
    cx_scope_check check = question_of(&w);
    scope.actor = CX_STR("bob\n\x1b[31m");
    CHECK_STATUS(cx_scope_verify(world_sign(&w, &scope), &check, &w.kit.arena, &granted, &finding,
                                 &w.kit.err),
                 &w.kit.err);
    CHECK_STR(cx_str_z(finding.message),
              "scope: found actor \"bob\\u000a\\u001b[31m\", expected \"andrew\"");
    world_done(&w);
}

/* --- bytes ------------------------------------------------------------------------------------ */

CX_TEST(scope_strict_bytes)
{
    /* { .., 3: selector, .., 11: null } with what is tried in the place of the selector. */
    static const struct {
        const char *selector, *after, *why;
        bool good;
    } cases[] = {
        {"a101420203", "", "types", true},
        {"a0", "", "nothing", true},
        {"a10140", "", "empty types", false},
        {"a10180", "", "types as a list", false},
        {"a10280", "", "no tags, but there", false},
        {"a10281617a", "", "a tag", true},
        {"a10380", "", "no ids, but there", false},
        {"a1038150000102030405060708090a0b0c0d0e0f", "", "an id", true},
        {"a103814f000102030405060708090a0b0c0d0e", "", "a short id", false},
        {"a104a201020280", "", "a frame of no object", true},
        {"a104a2010202f6", "", "a frame of null", true},
        {"a104a10102", "", "a frame without objects", false},
        {"a104a20119010002f6", "", "a verb beyond a byte", false},
        {"a104a0", "", "an empty frame", false},
        {"a1054100", "", "an unknown member", false},
        {"a10140", "", "empty types", false},
        {"a101420203", "04a0", "an empty exclude", false},
        {"a101420203", "04a1014101", "an exclude", true},
        {"a101420203", "0500", "any canonical proof", true},
        {"a101420203", "051800", "a proof that is not canonical", false},
    };
    fixture kit;
    cx_scope scope;
    fixture_init(&kit);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_buf hex;
        cx_buf_init(&hex, cx_alloc_default());
        cx_buf_printf(&hex,
                      "%s0001016161025820%064d03%s%s06f6086162096163"
                      "0bf6",
                      cases[i].after[0] != 0 ? "a9" : "a8", 0, cases[i].selector, cases[i].after);
        cx_bytes bytes = fixture_hex(&kit, cx_buf_str(&hex));
        cx_status status = cx_scope_decode(bytes, &kit.arena, &scope, &kit.err);
        if ((status.code == CX_OK) != cases[i].good)
            cx_test_fail(__FILE__, __LINE__, "%s: %s", cases[i].why,
                         cases[i].good ? kit.err.message : "accepted");
        if (status.code == CX_OK) {
            cx_buf_clear(&kit.buf);
            cx_scope_encode(&scope, &kit.buf);
            CHECK(fixture_same(cx_buf_bytes(&kit.buf), bytes));
        } else {
            CHECK_STR(fixture_tag(&kit.err), "NonCanonical");
        }
        cx_buf_done(&hex);
    }
    fixture_done(&kit);
}

CX_TEST(scope_strict_members)
{
    static const struct {
        const char *hex, *why;
    } cases[] = {
        {"a8"
         "000101616102581f%062d03a0"
         "06f6"
         "086162096163"
         "0bf6",
         "a short root"},
        {"a8"
         "0001016161025820%064d03a0"
         "06f6"
         "086162096163"
         "0bf600",
         "a byte behind it"},
        {"a7"
         "0001016161025820%064d03a0"
         "086162096163"
         "0bf6",
         "no expires_at"},
        {"a7"
         "0001016161025820%064d03a0"
         "06f6"
         "086162096163",
         "no signature"},
        {"a9"
         "0001016161025820%064d03a0"
         "06f6"
         "0700"
         "086162096163"
         "0bf6",
         "a budget of zero"},
        {"a9"
         "0001016161025820%064d03a0"
         "06f6"
         "0720"
         "086162096163"
         "0bf6",
         "a budget below zero"},
        {"a9"
         "0001016161025820%064d03a0"
         "06f6"
         "086162096163"
         "0af4"
         "0bf6",
         "not writable, but there"},
        {"a9"
         "0001016161025820%064d03a0"
         "06f6"
         "086162096163"
         "0bf6"
         "0c00",
         "an unknown member"},
        {"a8"
         "0001016161025820%064d03f6"
         "06f6"
         "086162096163"
         "0bf6",
         "no include"},
        {"a8"
         "0001016161025820%064d03a0"
         "06f93c00"
         "086162096163"
         "0bf6",
         "a float for a time"},
    };
    fixture kit;
    cx_scope scope;
    fixture_init(&kit);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_buf_clear(&kit.buf);
        cx_buf_printf(&kit.buf, cases[i].hex, 0);
        cx_bytes bytes = fixture_hex(&kit, cx_buf_str(&kit.buf));
        if (cx_scope_decode(bytes, &kit.arena, &scope, &kit.err).code != CX_E_FORMAT)
            cx_test_fail(__FILE__, __LINE__, "accepted: %s", cases[i].why);
    }
    fixture_done(&kit);
}

/* --- what it lets through --------------------------------------------------------------------- */

CX_TEST(selectors)
{
    static const cx_str tags[] = {{"pub", 3}, {"x", 1}}, other_tags[] = {{"pu", 2}, {"public", 6}};
    const cx_frame frames[] = {{2, 1, CX_STR("gpu_inference")}};
    const cx_head head = {.id = fixture_id(5),
                          .type = CX_TYPE_EVENT,
                          .tags = tags,
                          .tag_count = 2,
                          .frames = frames,
                          .frame_count = 1};
    const cx_id objects[] = {cx_obj_hash(CX_STR("a")), cx_obj_hash(CX_STR("gpu_inference"))};
    const cx_id ids[] = {fixture_id(4), fixture_id(5)};
    const cx_selector empty = {0};
    CHECK(cx_selector_is_empty(&empty) && !cx_selector_matches(&empty, &head));
    cx_selector types = {.types = cx_str_bytes(CX_STR("\x02\x05"))};
    CHECK(cx_selector_matches(&types, &head));
    types.types.size = 1;
    CHECK(!cx_selector_matches(&types, &head) && !cx_selector_is_empty(&types));
    cx_selector by_tag = {.tags = {tags + 1, 1}};
    CHECK(cx_selector_matches(&by_tag, &head));
    by_tag.tags = (cx_strs){other_tags, 2};
    CHECK(!cx_selector_matches(&by_tag, &head));
    cx_selector by_id = {.ids = ids, .id_count = 2};
    CHECK(cx_selector_matches(&by_id, &head));
    by_id.id_count = 1;
    CHECK(!cx_selector_matches(&by_id, &head));
    cx_selector by_frame = {.has_frame = true, .verb = 2, .objects = objects, .object_count = 2};
    CHECK(cx_selector_matches(&by_frame, &head));
    by_frame.verb = 3;
    CHECK(!cx_selector_matches(&by_frame, &head));
    by_frame.verb = 2;
    by_frame.object_count = 1;
    CHECK(!cx_selector_matches(&by_frame, &head));
    by_frame.object_count = 0; /* of no object: matches nothing, but is not empty */
    CHECK(!cx_selector_matches(&by_frame, &head) && !cx_selector_is_empty(&by_frame));
    /* Any of them is enough. */
    by_frame.types = cx_str_bytes(CX_STR("\x05"));
    CHECK(cx_selector_matches(&by_frame, &head));
}

CX_TEST(scope_includes_and_excludes)
{
    world w;
    cx_scope_use granted;
    world_init(&w, CX_SCHEME_CORTEX_1);
    cx_scope scope = scope_of_two(&w);
    cx_scope_check check = question_of(&w);
    cx_head head = {.id = fixture_id(1), .type = CX_TYPE_FACT};
    static const cx_str secret[] = {{"secret", 6}};
    scope.exclude = (cx_selector){.tags = {secret, 1}};
    CHECK_STR(cx_str_z(verdict_of(&w, world_sign(&w, &scope), &check, &granted)), "holds");
    CHECK(cx_scope_use_allows(&granted, &head));
    head.tags = secret;
    head.tag_count = 1;
    CHECK(!cx_scope_use_allows(&granted, &head));
    head.tag_count = 0;
    head.id = fixture_id(3);
    CHECK(!cx_scope_use_allows(&granted, &head));
    /* Excluded by id, though included by id. */
    scope.exclude = (cx_selector){.ids = two_ids, .id_count = 1};
    CHECK_STR(cx_str_z(verdict_of(&w, world_sign(&w, &scope), &check, &granted)), "holds");
    head.id = fixture_id(1);
    CHECK(cx_scope_use_allows(&granted, &head));
    head.id = fixture_id(2);
    CHECK(!cx_scope_use_allows(&granted, &head));
    world_done(&w);
}
