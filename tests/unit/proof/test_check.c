/*
 * test_check.c - proof packs, and checking any file against what is trusted: kinds, anchors, what
 * is indeterminate, every bit of a pack, every allocation.
 */
#include "proof/check.h"

#include "tests/support/fault.h"
#include "tests/support/proof_util.h"

/* The scenario's state proof as a pack, its manifest signed, its seal in a journal of 20 entries
 * with a signed checkpoint. */
typedef struct fixture {
    vectors v;
    cx_bytes manifest; /* signed by alice */
    cx_bytes plain_manifest;
    cx_bytes proof;
    cx_bytes inclusion;
    cx_bytes checkpoint;
    cx_pack_question questions[4];
    cx_pack pack;
    cx_bytes bytes;
    signer alice, log;
    cx_vkey alice_key, log_key;
    cx_journal_point journal;
    cx_digest overall_root;
} fixture;

static cx_bytes kept(fixture *f, cx_buf *bytes)
{
    cx_str copy = cx_arena_copy_str(&f->v.arena, cx_buf_str(bytes));
    CHECK(!bytes->failed);
    cx_buf_done(bytes);
    return cx_str_bytes(copy);
}

static cx_bytes signed_manifest(fixture *f)
{
    cx_manifest manifest;
    cx_buf text;
    cx_err err;
    CHECK_STATUS(cx_manifest_decode(f->plain_manifest, &manifest, &err), &err);
    f->overall_root = manifest.overall_root;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, "cortex.manifest.v1");
    cx_manifest_encode_body(&manifest, &text);
    cx_signature signature = sign(&f->alice, cx_buf_bytes(&text));
    manifest.signed_by = CX_STR("alice");
    manifest.signature = (cx_maybe_bytes){false, cx_bytes_from(signature.bytes, 64)};
    cx_buf_clear(&text);
    cx_manifest_encode(&manifest, &text);
    return kept(f, &text);
}

static cx_bytes seal_entry(fixture *f, uint64_t seq)
{
    cx_manifest manifest;
    cx_payload payload = {.kind = CX_ENTRY_SEAL};
    cx_buf bytes, entry_bytes;
    cx_err err;
    CHECK_STATUS(cx_manifest_decode(f->manifest, &manifest, &err), &err);
    payload.as.seal.snapshot_seq = manifest.snapshot_seq;
    payload.as.seal.overall_root = manifest.overall_root;
    payload.as.seal.signed_by = manifest.signed_by;
    payload.as.seal.signature = manifest.signature.bytes;
    CHECK_STATUS(
        cx_manifest_digest(&manifest, cx_alloc_default(), &payload.as.seal.manifest_digest, &err),
        &err);
    cx_buf_init(&bytes, cx_alloc_default());
    cx_payload_encode(&payload, &bytes);
    cx_entry entry = {.seq = seq,
                      .kind = CX_STR("seal"),
                      .created_at_ns = 1700000000000000000,
                      .payload = cx_buf_bytes(&bytes)};
    cx_buf_init(&entry_bytes, cx_alloc_default());
    cx_entry_encode(&entry, &entry_bytes);
    cx_buf_done(&bytes);
    return kept(f, &entry_bytes);
}

/* A journal whose last entry is the seal; the others are made up. */
static void seal_in_journal(fixture *f)
{
    cx_mmr *mmr = NULL;
    cx_mmr_path path;
    cx_buf bytes;
    cx_err err;
    cx_bytes entry = seal_entry(f, 19);
    CHECK_STATUS(cx_mmr_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &mmr, &err), &err);
    for (unsigned i = 0; i < 20; i++) {
        cx_digest leaf = i == 19 ? cx_scheme_entry(entry) : cx_digest_of(cx_bytes_from(&i, 1));
        CHECK_STATUS(cx_mmr_append(mmr, &leaf, 1, &err), &err);
    }
    f->journal.size = 20;
    CHECK_STATUS(cx_mmr_root(mmr, 20, &f->journal.root, &err), &err);
    CHECK_STATUS(cx_mmr_inclusion(mmr, 19, 20, &path, &err), &err);
    cx_inclusion inclusion = {.scheme = CX_SCHEME_CORTEX_1,
                              .tree_size = 20,
                              .index = 19,
                              .path = path.hashes,
                              .path_count = path.count,
                              .entry = entry};
    cx_buf_init(&bytes, cx_alloc_default());
    cx_inclusion_encode(&inclusion, &bytes);
    f->inclusion = kept(f, &bytes);
    cx_mmr_close(mmr);
    cx_checkpoint checkpoint = {CX_STR("log.example/andrew"), 20, f->journal.root};
    cx_buf_init(&bytes, cx_alloc_default());
    cx_checkpoint_text(&checkpoint, &bytes);
    cx_signature signature = sign(&f->log, cx_buf_bytes(&bytes));
    cx_buf_clear(&bytes);
    cx_checkpoint_note(&checkpoint, &f->log_key, &signature, &bytes);
    f->checkpoint = kept(f, &bytes);
}

static cx_bytes encoded(fixture *f, const cx_pack *pack)
{
    cx_buf bytes;
    cx_err err;
    cx_buf_init(&bytes, cx_alloc_default());
    CHECK_STATUS(cx_pack_encode(pack, &bytes, &err), &err);
    return kept(f, &bytes);
}

static bool fixture_open(fixture *f)
{
    memset(f, 0, sizeof *f);
    if (!vectors_open(&f->v, "vectors/ledger/cortex-1/scenario.json"))
        return false;
    const cx_json *vector = CX_JSON_GET(&f->v.root, "multiproof");
    const cx_json *uris = CX_JSON_GET(vector, "uris");
    f->alice = signer_number(1);
    f->log = signer_number(2);
    cx_vkey_make(CX_STR("alice"), CX_VKEY_NOTE, &f->alice.key, &f->alice_key);
    cx_vkey_make(CX_STR("log.example/andrew"), CX_VKEY_NOTE, &f->log.key, &f->log_key);
    f->plain_manifest = member_bytes(&f->v, CX_JSON_GET(&f->v.root, "manifest"), "cbor");
    f->proof = member_bytes(&f->v, vector, "cbor");
    f->manifest = signed_manifest(f);
    seal_in_journal(f);
    for (size_t i = 0; i < 4; i++)
        f->questions[i] =
            (cx_pack_question){cx_json_text(&uris->items[i]), i == 3 ? CX_ABSENT : CX_MEMBER};
    f->pack = (cx_pack){.scheme = CX_SCHEME_CORTEX_1,
                        .proof = f->proof,
                        .manifest = f->manifest,
                        .questions = f->questions,
                        .question_count = 4,
                        .inclusion = f->inclusion,
                        .checkpoint = f->checkpoint};
    f->bytes = encoded(f, &f->pack);
    return true;
}

static void fixture_close(fixture *f)
{
    vectors_close(&f->v);
}

static cx_check_result run(fixture *f, cx_bytes bytes, const cx_check_options *options)
{
    cx_check_result result;
    cx_err err;
    memset(&result, 0, sizeof result);
    CHECK_STATUS(cx_check_run(bytes, options, &f->v.arena, &result, &err), &err);
    return result;
}

#define EXPECT(options_, bytes_, verdict_, reason_)               \
    do {                                                          \
        cx_check_result expect_ = run(&f, (bytes_), &(options_)); \
        CHECK_FINDING(&expect_.finding, (verdict_), (reason_));   \
    } while (0)
#define EXPECT_HOLDS(options_, bytes_, anchors_)                  \
    do {                                                          \
        cx_check_result expect_ = run(&f, (bytes_), &(options_)); \
        CHECK_HOLDS(&expect_.finding);                            \
        CHECK_INT(expect_.anchors, (anchors_));                   \
    } while (0)

/* --- recognising ------------------------------------------------------------------------------ */

CX_TEST(check_recognises)
{
    fixture f;
    vectors ex;
    REQUIRE(fixture_open(&f));
    REQUIRE(vectors_open(&ex, "vectors/ledger/cortex-1/export.json"));
    CHECK_INT(cx_check_recognise(f.bytes), CX_CHECK_PACK);
    CHECK_INT(cx_check_recognise(f.proof), CX_CHECK_MULTIPROOF);
    CHECK_INT(cx_check_recognise(f.manifest), CX_CHECK_MANIFEST);
    CHECK_INT(cx_check_recognise(f.inclusion), CX_CHECK_INCLUSION);
    CHECK_INT(cx_check_recognise(f.checkpoint), CX_CHECK_CHECKPOINT);
    CHECK_INT(cx_check_recognise(
                  member_bytes(&f.v, &CX_JSON_GET(&f.v.root, "consistency")->items[0], "cbor")),
              CX_CHECK_CONSISTENCY);
    CHECK_INT(cx_check_recognise(
                  member_bytes(&ex, &CX_JSON_GET(&ex.root, "cose_inclusion")->items[0], "cbor")),
              CX_CHECK_RECEIPT);
    CHECK_INT(cx_check_recognise(cx_str_bytes(
                  CX_JSON_GET_STR(&CX_JSON_GET(&ex.root, "tlog_proofs")->items[0], "text"))),
              CX_CHECK_TLOG_PROOF);
    static const char *const others[] = {"", "{\"a\":1}", "\xa0", "\xa1\x00\x01", "\x80", "text"};
    cx_check_options options = {0};
    for (size_t i = 0; i < CX_COUNT_OF(others); i++) {
        CHECK_INT(cx_check_recognise(cx_str_bytes(cx_str_z(others[i]))), CX_CHECK_UNKNOWN);
        EXPECT(options, cx_str_bytes(cx_str_z(others[i])), CX_INDETERMINATE, "NotRecognised");
    }
    /* What is cut is still seen for what it was. */
    cx_bytes cut = {f.bytes.data, f.bytes.size - 1};
    CHECK_INT(cx_check_recognise(cut), CX_CHECK_PACK);
    EXPECT(options, cut, CX_BROKEN, "NonCanonical");
    vectors_close(&ex);
    fixture_close(&f);
}

/* --- packs ------------------------------------------------------------------------------------ */

CX_TEST(pack_round)
{
    fixture f;
    cx_pack again;
    cx_err err;
    REQUIRE(fixture_open(&f));
    CHECK_STATUS(cx_pack_decode(f.bytes, &f.v.arena, &again, &err), &err);
    CHECK(bytes_eq(encoded(&f, &again), f.bytes));
    CHECK_INT(again.question_count, 4);
    CHECK_INT(again.questions[3].claim, CX_ABSENT);
    again.inclusion = again.checkpoint = (cx_bytes){NULL, 0};
    cx_bytes bare = encoded(&f, &again);
    CHECK_STATUS(cx_pack_decode(bare, &f.v.arena, &again, &err), &err);
    CHECK_INT(again.inclusion.size + again.checkpoint.size, 0);
    CHECK(bytes_eq(encoded(&f, &again), bare));
    fixture_close(&f);
}

CX_TEST(pack_anchors)
{
    fixture f;
    REQUIRE(fixture_open(&f));
    cx_check_options none = {.require = CX_REQUIRE_SELF_CONSISTENT};
    EXPECT_HOLDS(none, f.bytes, 0);
    cx_check_result result = run(&f, f.bytes, &none);
    CHECK(result.limit_count >= 2); /* nothing vouches, and the seal's journal is not anchored */
    CHECK(!result.is_signed);
    CHECK_INT(result.proof.items[0].kind, CX_MEMBER);
    CHECK_INT(result.proof.items[3].kind, CX_ABSENT);

    cx_check_options anchored = {.require = CX_REQUIRE_ANCHORED};
    EXPECT(anchored, f.bytes, CX_INDETERMINATE, "NotAnchored");
    anchored.overall_root = &f.overall_root;
    EXPECT_HOLDS(anchored, f.bytes, CX_CHECK_BY_OVERALL_ROOT);
    anchored.require = CX_REQUIRE_SIGNED;
    EXPECT(anchored, f.bytes, CX_INDETERMINATE, "NotSigned");
    cx_digest other = f.overall_root;
    other.bytes[0] ^= 1;
    anchored.overall_root = &other;
    EXPECT(anchored, f.bytes, CX_BROKEN, "AnchorMismatch");

    cx_check_options by_alice = {
        .keys = &f.alice_key, .key_count = 1, .require = CX_REQUIRE_SIGNED};
    EXPECT_HOLDS(by_alice, f.bytes, CX_CHECK_BY_MANIFEST_SIGNATURE);
    cx_check_options by_log = {.keys = &f.log_key, .key_count = 1, .require = CX_REQUIRE_SIGNED};
    EXPECT_HOLDS(by_log, f.bytes, CX_CHECK_BY_SEAL);
    cx_vkey both[2] = {f.alice_key, f.log_key};
    cx_check_options by_both = {.keys = both, .key_count = 2};
    EXPECT_HOLDS(by_both, f.bytes, CX_CHECK_BY_SEAL | CX_CHECK_BY_MANIFEST_SIGNATURE);
    cx_vkey bare = {.key = f.alice.key};
    cx_check_options by_bare = {.keys = &bare, .key_count = 1};
    EXPECT_HOLDS(by_bare, f.bytes, CX_CHECK_BY_MANIFEST_SIGNATURE);
    bare.key = signer_number(7).key;
    EXPECT(by_bare, f.bytes, CX_BROKEN, "SignatureInvalid");
    /* A key of another signer: nothing it could have signed, and that is said. */
    cx_vkey carol;
    cx_vkey_make(CX_STR("carol"), CX_VKEY_NOTE, &bare.key, &carol);
    cx_check_options by_carol = {.keys = &carol, .key_count = 1};
    EXPECT(by_carol, f.bytes, CX_INDETERMINATE, "NotSigned");
    /* A key that claims to be alice's. */
    cx_vkey_make(CX_STR("alice"), CX_VKEY_NOTE, &bare.key, &carol);
    EXPECT(by_carol, f.bytes, CX_BROKEN, "SignatureInvalid");
    fixture_close(&f);
}

CX_TEST(pack_in_a_given_journal)
{
    fixture f;
    REQUIRE(fixture_open(&f));
    cx_journal_point journal = f.journal;
    cx_check_options options = {.journal = &journal};
    EXPECT_HOLDS(options, f.bytes, CX_CHECK_BY_SEAL);
    journal.size = CX_JOURNAL_SIZE_UNKNOWN;
    EXPECT_HOLDS(options, f.bytes, CX_CHECK_BY_SEAL);
    journal.root.bytes[3] ^= 2;
    EXPECT(options, f.bytes, CX_BROKEN, "RootMismatch");
    journal = f.journal;
    journal.size = 21;
    EXPECT(options, f.bytes, CX_BROKEN, "SizeMismatch");
    cx_check_options noted = {.checkpoint = f.checkpoint, .keys = &f.log_key, .key_count = 1};
    EXPECT_HOLDS(noted, f.bytes, CX_CHECK_BY_SEAL);
    /* The seal of another manifest does not anchor this one. */
    cx_pack pack = f.pack;
    pack.manifest = f.plain_manifest;
    EXPECT_HOLDS(noted, encoded(&f, &pack),
                 CX_CHECK_BY_SEAL); /* the same body: the same manifest */
    pack.inclusion =
        member_bytes(&f.v, &CX_JSON_GET(&f.v.root, "journal_proofs")->items[0], "cbor");
    pack.checkpoint = (cx_bytes){NULL, 0};
    cx_check_options none = {0};
    EXPECT(none, encoded(&f, &pack), CX_BROKEN, "SealMismatch");
    /* Without a seal, a journal of the manifest's own size must have its root. */
    pack.inclusion = (cx_bytes){NULL, 0};
    journal = (cx_journal_point){19, f.journal.root};
    EXPECT(options, encoded(&f, &pack), CX_BROKEN, "JournalRootMismatch");
    fixture_close(&f);
}

CX_TEST(pack_questions)
{
    fixture f;
    REQUIRE(fixture_open(&f));
    cx_check_options none = {.require = CX_REQUIRE_SELF_CONSISTENT};
    cx_pack pack = f.pack;
    cx_pack_question questions[5];
    memcpy(questions, f.questions, sizeof f.questions);
    pack.questions = questions;
    questions[0].claim = CX_ABSENT;
    EXPECT(none, encoded(&f, &pack), CX_BROKEN, "QuestionMismatch");
    questions[0] = f.questions[1];
    EXPECT(none, encoded(&f, &pack), CX_BROKEN, "QuestionMismatch");
    questions[0].uri = CX_STR("matrix://cortex/Fact/01HF7YAT000000000000000001#1");
    EXPECT(none, encoded(&f, &pack), CX_BROKEN, "QuestionMismatch");
    questions[0].uri = CX_STR("matrix://cortex/Identity/01HF7YAT000000000000000001#2");
    EXPECT(none, encoded(&f, &pack), CX_BROKEN, "QuestionMismatch");
    questions[0].uri = CX_STR("matrix://cortex/Identity/01HF7YAT000000000000000001#latest");
    EXPECT(none, encoded(&f, &pack), CX_BROKEN, "QuestionMismatch");
    questions[0].uri = CX_STR("matrix://cortex/edge/01HF7YAT000000000000000001/part_of/"
                              "01HF7YAT000000000000000001");
    EXPECT(none, encoded(&f, &pack), CX_BROKEN, "QuestionMismatch");
    questions[0] = f.questions[0];
    questions[1].uri = CX_STR("matrix://cortex/Preference/01HF7YAT000000000000000002#1");
    EXPECT_HOLDS(none, encoded(&f, &pack), 0); /* an earlier version of what is at version 2 */
    pack.question_count = 3;
    EXPECT(none, encoded(&f, &pack), CX_BROKEN, "QuestionMismatch");
    fixture_close(&f);
}

CX_TEST(check_expectations)
{
    fixture f;
    REQUIRE(fixture_open(&f));
    cx_check_options options = {.expect = CX_EXPECT_MEMBERS};
    EXPECT(options, f.bytes, CX_BROKEN, "NotMember");
    options.expect = CX_EXPECT_ABSENT;
    EXPECT(options, f.bytes, CX_BROKEN, "NotAbsent");
    cx_check_options edges = {.namespace_given = true, .name_space = CX_NAMESPACE_EDGES};
    EXPECT(edges, f.bytes, CX_BROKEN, "NamespaceMismatch");
    edges.manifest = f.manifest;
    EXPECT(edges, f.proof, CX_BROKEN, "NamespaceMismatch");
    edges.name_space = CX_NAMESPACE_MEMORIES;
    EXPECT_HOLDS(edges, f.proof, CX_CHECK_BY_MANIFEST);
    cx_check_options none = {0};
    EXPECT(none, f.proof, CX_INDETERMINATE, "NoManifest");
    fixture_close(&f);
}

/* matrix-1: the records are in the pack. */
CX_TEST(pack_matrix_1)
{
    fixture f;
    vectors m;
    REQUIRE(fixture_open(&f));
    REQUIRE(vectors_open(&m, "vectors/ledger/matrix-1/scenario.json"));
    const cx_json *proofs = CX_JSON_GET(CX_JSON_GET(&f.v.root, "multiproof"), "proofs");
    cx_bytes leaves[4] = {{NULL, 0}};
    for (size_t i = 0; i < 3; i++)
        leaves[i] = member_bytes(&f.v, &proofs->items[i], "leaf");
    cx_pack pack = {.scheme = CX_SCHEME_MATRIX_1,
                    .proof = member_bytes(&m, CX_JSON_GET(&m.root, "multiproof"), "cbor"),
                    .manifest = member_bytes(&m, CX_JSON_GET(&m.root, "manifest"), "cbor"),
                    .questions = f.questions,
                    .question_count = 4,
                    .leaves = leaves};
    cx_check_options none = {.require = CX_REQUIRE_SELF_CONSISTENT};
    cx_check_result result = run(&f, encoded(&f, &pack), &none);
    CHECK_HOLDS(&result.finding);
    CHECK_INT(result.proof.items[0].leaf.size, leaves[0].size);
    pack.leaves = NULL;
    result = run(&f, encoded(&f, &pack), &none);
    CHECK_HOLDS(&result.finding);
    CHECK_INT(result.proof.items[0].leaf.size, 0);
    /* The records of cortex-1 have no place in a pack: they are in the proof. */
    pack.scheme = CX_SCHEME_CORTEX_1;
    EXPECT(none, encoded(&f, &pack), CX_BROKEN, "SchemeMismatch");
    vectors_close(&m);
    fixture_close(&f);
}

/* Another question about the same absent id: whatever version it asks for, the answer is true. */
static bool asks_same_absence(const cx_check_result *result, const cx_pack_question *whole,
                              size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cx_str uri = result->questions[i].uri;
        if (cx_str_eq(uri, whole[i].uri))
            continue;
        cx_uri before, after;
        return whole[i].claim == CX_ABSENT && result->questions[i].claim == CX_ABSENT &&
               !cx_failed(cx_uri_parse(whole[i].uri, &before, NULL)) &&
               !cx_failed(cx_uri_parse(uri, &after, NULL)) &&
               memcmp(&before.id, &after.id, sizeof before.id) == 0;
    }
    return false;
}

/*
 * Every bit of a pack, whose manifest and journal are both signed by keys that are given.  What
 * still holds is outside what anybody signed: the name in `signed_by` of the manifest, where the
 * bare key is used; and the version in a question about an id that is absent, which then asks
 * something else that is true as well.
 */
CX_TEST(pack_every_bit)
{
    fixture f;
    REQUIRE(fixture_open(&f));
    cx_vkey keys[2] = {{.key = f.alice.key}, f.log_key};
    cx_check_options options = {.keys = keys, .key_count = 2, .require = CX_REQUIRE_SIGNED};
    unsigned all = CX_CHECK_BY_SEAL | CX_CHECK_BY_MANIFEST_SIGNATURE;
    EXPECT_HOLDS(options, f.bytes, all);
    for (size_t bit = 0; bit < f.bytes.size * 8; bit++) {
        uint8_t *copy = flipped(f.bytes, bit);
        cx_arena_mark mark = cx_arena_mark_now(&f.v.arena);
        cx_check_result result = run(&f, cx_bytes_from(copy, f.bytes.size), &options);
        if (result.finding.verdict == CX_HOLDS && cx_str_is(result.manifest.signed_by, "alice") &&
            result.anchors == all && !asks_same_absence(&result, f.questions, 4))
            cx_test_fail(__FILE__, __LINE__, "bit %zu flipped and it holds", bit);
        cx_arena_reset(&f.v.arena, mark);
        flipped_done(copy, f.bytes);
    }
    for (size_t size = 0; size < f.bytes.size; size++) {
        cx_arena_mark mark = cx_arena_mark_now(&f.v.arena);
        cx_check_result result = run(&f, cx_bytes_from(f.bytes.data, size), &options);
        CHECK(result.finding.verdict != CX_HOLDS);
        cx_arena_reset(&f.v.arena, mark);
    }
    fixture_close(&f);
}

/* --- the other kinds -------------------------------------------------------------------------- */

CX_TEST(check_manifest_alone)
{
    fixture f;
    REQUIRE(fixture_open(&f));
    cx_check_options none = {.require = CX_REQUIRE_SELF_CONSISTENT},
                     keyed = {.keys = &f.alice_key, .key_count = 1};
    EXPECT_HOLDS(none, f.plain_manifest, 0);
    EXPECT_HOLDS(keyed, f.manifest, CX_CHECK_BY_MANIFEST_SIGNATURE);
    EXPECT(keyed, f.plain_manifest, CX_INDETERMINATE, "NotSigned");
    cx_journal_point journal = {19, f.journal.root};
    none.journal = &journal;
    EXPECT(none, f.plain_manifest, CX_BROKEN, "JournalRootMismatch");
    fixture_close(&f);
}

CX_TEST(check_journal_proofs)
{
    fixture f;
    REQUIRE(fixture_open(&f));
    cx_check_options none = {0}, rooted = {.journal = &f.journal};
    EXPECT(none, f.inclusion, CX_INDETERMINATE, "NoRoot");
    EXPECT_HOLDS(rooted, f.inclusion, CX_CHECK_BY_ROOT);
    rooted.require = CX_REQUIRE_SIGNED;
    EXPECT(rooted, f.inclusion, CX_INDETERMINATE, "NotSigned");
    cx_check_options noted = {.checkpoint = f.checkpoint, .require = CX_REQUIRE_ANCHORED};
    EXPECT_HOLDS(noted, f.inclusion, CX_CHECK_BY_ROOT);
    noted.keys = &f.log_key;
    noted.key_count = 1;
    noted.require = CX_REQUIRE_SIGNED;
    EXPECT_HOLDS(noted, f.inclusion, CX_CHECK_BY_CHECKPOINT);
    noted.keys = &f.alice_key;
    EXPECT(noted, f.inclusion, CX_BROKEN, "NotSigned");
    cx_digest leaf = {{1}};
    rooted = (cx_check_options){.journal = &f.journal, .leaf_hash = &leaf};
    EXPECT(rooted, f.inclusion, CX_BROKEN, "LeafMismatch");

    cx_bytes consistency =
        member_bytes(&f.v, &CX_JSON_GET(&f.v.root, "consistency")->items[1], "cbor");
    const cx_json *steps = CX_JSON_GET(&f.v.root, "steps");
    cx_journal_point older = {8, {{0}}}, newer = {19, {{0}}};
    for (size_t i = 0; i < steps->count; i++) {
        if (member_uint(&steps->items[i], "next_seq") == 8)
            older.root = member_digest(&steps->items[i], "journal_root");
        if (member_uint(&steps->items[i], "next_seq") == 19)
            newer.root = member_digest(&steps->items[i], "journal_root");
    }
    cx_check_options between = {.journal = &newer, .older = &older};
    EXPECT_HOLDS(between, consistency, CX_CHECK_BY_ROOT);
    between.older = NULL;
    EXPECT(between, consistency, CX_INDETERMINATE, "NoRoot");
    between.older = &newer;
    EXPECT(between, consistency, CX_BROKEN, "SizeMismatch");
    fixture_close(&f);
}

CX_TEST(check_exports)
{
    fixture f;
    vectors ex;
    cx_vkey key;
    cx_err err;
    REQUIRE(fixture_open(&f));
    REQUIRE(vectors_open(&ex, "vectors/ledger/cortex-1/export.json"));
    REQUIRE(!cx_failed(cx_vkey_parse(CX_JSON_GET_STR(&ex.root, "vkey"), &key, &err)));
    cx_bytes entry =
        member_bytes(&f.v, &CX_JSON_GET(&f.v.root, "journal_proofs")->items[0], "entry");
    cx_bytes note = cx_str_bytes(CX_JSON_GET_STR(&ex.root, "checkpoint"));
    cx_bytes tlog =
        cx_str_bytes(CX_JSON_GET_STR(&CX_JSON_GET(&ex.root, "tlog_proofs")->items[0], "text"));
    cx_bytes receipt =
        member_bytes(&ex, &CX_JSON_GET(&ex.root, "cose_inclusion")->items[0], "cbor");
    cx_check_options none = {0}, keyed = {.keys = &key, .key_count = 1};
    EXPECT(none, note, CX_INDETERMINATE, "NoKey");
    EXPECT_HOLDS(keyed, note, CX_CHECK_BY_CHECKPOINT);
    EXPECT(none, tlog, CX_INDETERMINATE, "NoLeaf");
    EXPECT(keyed, tlog, CX_INDETERMINATE, "NoLeaf");
    EXPECT(none, receipt, CX_INDETERMINATE, "NoKey");
    EXPECT(keyed, receipt, CX_INDETERMINATE, "NoLeaf");
    none.entry = keyed.entry = entry;
    EXPECT(none, tlog, CX_INDETERMINATE, "NoKey");
    EXPECT_HOLDS(keyed, tlog, CX_CHECK_BY_CHECKPOINT);
    EXPECT_HOLDS(keyed, receipt, CX_CHECK_BY_RECEIPT);
    cx_vkey bare = {.key = key.key};
    keyed.keys = &bare;
    EXPECT_HOLDS(keyed, note, CX_CHECK_BY_CHECKPOINT);
    EXPECT_HOLDS(keyed, receipt, CX_CHECK_BY_RECEIPT);
    bare.key = f.alice.key;
    EXPECT(keyed, note, CX_BROKEN, "NotSigned");
    EXPECT(keyed, receipt, CX_BROKEN, "SignatureInvalid");
    vectors_close(&ex);
    fixture_close(&f);
}

/* --- what is printed -------------------------------------------------------------------------- */

static void check_report(fixture *f, cx_bytes bytes, const cx_check_options *options,
                         const char *verdict, const char *kind)
{
    static const char *const members[] = {"anchors", "checkpoint", "file",   "index",  "journal",
                                          "key",     "keys",       "kind",   "limits", "manifest",
                                          "message", "namespace",  "offset", "older",  "reason",
                                          "scheme",  "scope",      "signed", "verdict"};
    cx_check_result result = run(f, bytes, options);
    cx_buf out, again;
    cx_json value;
    cx_err err;
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_init(&again, cx_alloc_default());
    cx_check_write_json(&result, CX_STR("a \"file\""), &out);
    REQUIRE(!out.failed && out.size != 0 && out.data[out.size - 1] == '\n');
    CHECK_STATUS(cx_json_parse_text(cx_buf_str(&out), &f->v.arena, &value, &err), &err);
    CHECK_STR(CX_JSON_GET_STR(&value, "verdict"), verdict);
    CHECK_STR(CX_JSON_GET_STR(&value, "kind"), kind);
    CHECK_STR(CX_JSON_GET_STR(&value, "file"), "a \"file\"");
    CHECK_INT(value.count, CX_COUNT_OF(members));
    for (size_t i = 0; i < CX_COUNT_OF(members); i++)
        CHECK(cx_json_get(&value, cx_str_z(members[i])) != NULL);
    /* It is canonical already. */
    CHECK_STATUS(cx_json_write(&again, &value, CX_JSON_PY_COMPACT, &err), &err);
    cx_buf_add_byte(&again, '\n');
    CHECK(cx_str_eq(cx_buf_str(&again), cx_buf_str(&out)));
    cx_buf_clear(&out);
    cx_check_write_text(&result, CX_STR("x\x1b[31m"), true, &out);
    for (size_t i = 0; i < out.size; i++)
        CHECK(out.data[i] == '\n' || (out.data[i] >= 0x20 && out.data[i] != 0x7f));
    cx_buf_done(&out);
    cx_buf_done(&again);
}

CX_TEST(check_reports)
{
    fixture f;
    REQUIRE(fixture_open(&f));
    cx_check_options none = {0}, keyed = {.keys = &f.log_key, .key_count = 1};
    check_report(&f, f.bytes, &keyed, "holds", "pack");
    check_report(&f, f.bytes, &none, "indeterminate", "pack");
    check_report(&f, f.proof, &none, "indeterminate", "multiproof");
    check_report(&f, f.manifest, &none, "indeterminate", "manifest");
    check_report(&f, f.inclusion, &none, "indeterminate", "inclusion");
    check_report(&f, f.checkpoint, &keyed, "holds", "checkpoint");
    check_report(&f, cx_bytes_from(f.proof.data, f.proof.size - 3), &none, "broken", "multiproof");
    check_report(&f, cx_str_bytes(CX_STR("?")), &none, "indeterminate", "unknown");
    fixture_close(&f);
}

CX_TEST(check_safe_text)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_check_write_safe(&out, CX_STR("a\x1b[2J\n\xff\xe2\x80\xae\xc2\x9b\xc3\xa9"));
    CHECK_STR(cx_buf_str(&out), "a\\u001b[2J\\u000a\\xff\\u202e\\u009b\xc3\xa9");
    cx_buf_done(&out);
}

/* --- memory ----------------------------------------------------------------------------------- */

CX_TEST(check_every_allocation)
{
    fixture f;
    bool finished = false;
    REQUIRE(fixture_open(&f));
    cx_vkey keys[2] = {f.alice_key, f.log_key};
    cx_check_options options = {.keys = keys, .key_count = 2};
    for (uint64_t at = 1; !finished && at < 300; at++) {
        fault_alloc memory;
        cx_arena arena;
        cx_check_result result;
        cx_err err;
        fault_alloc_init(&memory, at, true);
        cx_arena_init(&arena, &memory.alloc, 0);
        cx_status status = cx_check_run(f.bytes, &options, &arena, &result, &err);
        finished = !cx_failed(status);
        if (finished)
            CHECK_HOLDS(&result.finding);
        else
            CHECK_INT(status.code, CX_E_NOMEM);
        cx_arena_done(&arena);
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
    }
    CHECK(finished);
    fixture_close(&f);
}
