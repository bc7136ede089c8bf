/*
 * test_export.c - signed notes, tlog-proofs, tiles and receipts: the vectors byte for byte (Ed25519
 * is deterministic), refusals, every bit flipped.
 */
#include "proof/export.h"

#include "tests/support/fault.h"
#include "tests/support/proof_util.h"

typedef struct exported {
    vectors v;
    vectors journal; /* entries of the scenario, for leaf hashes */
    signer log;
    cx_str origin;
    cx_vkey key;
    cx_checkpoint checkpoint;
    cx_str note;
    cx_digest leaves[19]; /* those the vectors speak of; others are zero */
} exported;

static bool exported_open(exported *e)
{
    if (!vectors_open(&e->v, "vectors/ledger/cortex-1/export.json") ||
        !vectors_open(&e->journal, "vectors/ledger/cortex-1/scenario.json"))
        return false;
    cx_bytes seed = member_bytes(&e->v, &e->v.root, "ed25519_seed");
    e->log = signer_from(seed.data);
    e->origin = CX_JSON_GET_STR(&e->v.root, "origin");
    cx_vkey_make(e->origin, CX_VKEY_NOTE, &e->log.key, &e->key);
    e->note = CX_JSON_GET_STR(&e->v.root, "checkpoint");
    const cx_json *proofs = CX_JSON_GET(&e->journal.root, "journal_proofs");
    for (size_t i = 0; i < proofs->count; i++)
        e->leaves[member_uint(&proofs->items[i], "index")] =
            cx_scheme_entry(member_bytes(&e->journal, &proofs->items[i], "entry"));
    const cx_json *steps = CX_JSON_GET(&e->journal.root, "steps");
    e->checkpoint = (cx_checkpoint){.origin = e->origin, .size = 19};
    for (size_t i = 0; i < steps->count; i++)
        if (member_uint(&steps->items[i], "next_seq") == 19)
            e->checkpoint.root = member_digest(&steps->items[i], "journal_root");
    return true;
}

static void exported_close(exported *e)
{
    vectors_close(&e->v);
    vectors_close(&e->journal);
}

static cx_finding verify_note(cx_str note, const cx_vkey *keys, size_t key_count, size_t cosigners,
                              cx_note_result *out)
{
    cx_note_check check = {keys, key_count, cosigners};
    cx_note_result result = {0};
    cx_finding finding;
    cx_err err;
    CHECK_STATUS(
        cx_note_verify(cx_str_bytes(note), &check, cx_alloc_default(), &result, &finding, &err),
        &err);
    if (out != NULL)
        *out = result;
    return finding;
}

/* --- keys and notes --------------------------------------------------------------------------- */

CX_TEST(export_vkey)
{
    exported e;
    cx_vkey parsed;
    cx_err err;
    cx_buf text;
    REQUIRE(exported_open(&e));
    cx_buf_init(&text, cx_alloc_default());
    cx_str expected = CX_JSON_GET_STR(&e.v.root, "vkey");
    cx_vkey_add(&e.key, &text);
    CHECK(cx_str_eq(cx_buf_str(&text), expected));
    CHECK_STATUS(cx_vkey_parse(expected, &parsed, &err), &err);
    CHECK(cx_str_eq(parsed.name, e.origin));
    CHECK_INT(parsed.algorithm, CX_VKEY_NOTE);
    CHECK(memcmp(parsed.key.bytes, e.log.key.bytes, 32) == 0);
    for (size_t bit = 0; bit < expected.size * 8; bit++) {
        uint8_t *copy = flipped(cx_str_bytes(expected), bit);
        if (!cx_failed(
                cx_vkey_parse(cx_str_from((const char *)copy, expected.size), &parsed, &err)))
            cx_test_fail(__FILE__, __LINE__, "bit %zu flipped and it is a key", bit);
        flipped_done(copy, cx_str_bytes(expected));
    }
    static const char *const bad[] = {"",
                                      "a",
                                      "a+b",
                                      "+f80cb66f+AX3u",
                                      "a b+f80cb66f+AX3u",
                                      "a+F80CB66F+AX3u",
                                      "a+f80cb66f+",
                                      "a+f80cb66f+AX3u"};
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++) {
        CHECK_INT(cx_vkey_parse(cx_str_z(bad[i]), &parsed, &err).code, CX_E_FORMAT);
        CHECK_STR(cx_str_z(err.tag), "BadKey");
    }
    /* Of another algorithm: not wrong, but not ours. */
    cx_vkey other;
    cx_vkey_make(CX_STR("a"), 6, &e.log.key, &other);
    cx_buf_clear(&text);
    cx_vkey_add(&other, &text);
    CHECK_INT(cx_vkey_parse(cx_buf_str(&text), &parsed, &err).code, CX_E_UNSUPPORTED);
    cx_buf_done(&text);
    exported_close(&e);
}

CX_TEST(export_checkpoint_vector)
{
    exported e;
    cx_buf text, note;
    cx_note_result result;
    REQUIRE(exported_open(&e));
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&note, cx_alloc_default());
    cx_checkpoint_text(&e.checkpoint, &text);
    cx_signature signature = sign(&e.log, cx_buf_bytes(&text));
    cx_checkpoint_note(&e.checkpoint, &e.key, &signature, &note);
    CHECK(cx_str_eq(cx_buf_str(&note), e.note));
    cx_finding finding = verify_note(e.note, &e.key, 1, 0, &result);
    CHECK_HOLDS(&finding);
    CHECK_INT(result.checkpoint.size, 19);
    CHECK(cx_str_eq(result.checkpoint.origin, e.origin));
    CHECK(cx_digest_eq(&result.checkpoint.root, &e.checkpoint.root));
    CHECK_INT(result.signed_by_origin, 1);
    for (size_t bit = 0; bit < e.note.size * 8; bit++) {
        uint8_t *copy = flipped(cx_str_bytes(e.note), bit);
        finding = verify_note(cx_str_from((const char *)copy, e.note.size), &e.key, 1, 0, NULL);
        if (finding.verdict != CX_BROKEN)
            cx_test_fail(__FILE__, __LINE__, "bit %zu flipped and it holds", bit);
        flipped_done(copy, cx_str_bytes(e.note));
    }
    for (size_t size = 0; size < e.note.size; size++) {
        finding = verify_note(cx_str_from(e.note.data, size), &e.key, 1, 0, NULL);
        CHECK_FINDING(&finding, CX_BROKEN, "BadNote");
    }
    cx_buf_done(&text);
    cx_buf_done(&note);
    exported_close(&e);
}

CX_TEST(export_note_without_its_key)
{
    exported e;
    cx_vkey other, renamed;
    cx_note_result result;
    signer stranger = signer_number(9);
    REQUIRE(exported_open(&e));
    cx_finding finding = verify_note(e.note, NULL, 0, 0, &result);
    CHECK_FINDING(&finding, CX_BROKEN, "NotSigned");
    CHECK_INT(result.unknown, 1);
    cx_vkey_make(e.origin, CX_VKEY_NOTE, &stranger.key, &other);
    finding = verify_note(e.note, &other, 1, 0, NULL);
    CHECK_FINDING(&finding, CX_BROKEN, "NotSigned");
    /* A key that claims the id of the one that signed: known, and its signature fails. */
    memcpy(other.key_id, e.key.key_id, 4);
    finding = verify_note(e.note, &other, 1, 0, NULL);
    CHECK_FINDING(&finding, CX_BROKEN, "SignatureInvalid");
    /* The right key under another name does not speak for this origin. */
    cx_vkey_make(CX_STR("elsewhere"), CX_VKEY_NOTE, &e.log.key, &renamed);
    finding = verify_note(e.note, &renamed, 1, 0, NULL);
    CHECK_FINDING(&finding, CX_BROKEN, "NotSigned");
    exported_close(&e);
}

/* A signature line added to a note. */
static void add_line(cx_buf *note, const cx_vkey *key, const uint8_t *bytes, size_t size)
{
    uint8_t all[4 + 8 + 64];
    memcpy(all, key->key_id, 4);
    memcpy(all + 4, bytes, size);
    cx_buf_add_z(note, "\xe2\x80\x94 ");
    cx_buf_add_str(note, key->name);
    cx_buf_add_byte(note, ' ');
    cx_base64_add(note, cx_bytes_from(all, 4 + size), CX_BASE64);
    cx_buf_add_byte(note, '\n');
}

static void cosign(const exported *e, const signer *witness, const cx_vkey *key, uint64_t time_s,
                   cx_buf *note)
{
    uint8_t bytes[8 + 64];
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_cosignature_text(&e->checkpoint, time_s, &text);
    CHECK(cx_str_starts(cx_buf_str(&text), CX_STR("cosignature/v1\ntime 1700000100\ncortex.")));
    cx_signature signature = sign(witness, cx_buf_bytes(&text));
    for (size_t i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(time_s >> (56 - 8 * i));
    memcpy(bytes + 8, signature.bytes, 64);
    add_line(note, key, bytes, sizeof bytes);
    cx_buf_done(&text);
}

CX_TEST(export_cosignatures)
{
    exported e;
    cx_buf note;
    cx_note_result result;
    signer w1 = signer_number(1), w2 = signer_number(2);
    cx_vkey keys[4];
    REQUIRE(exported_open(&e));
    cx_buf_init(&note, cx_alloc_default());
    keys[0] = e.key;
    cx_vkey_make(CX_STR("witness.one"), CX_VKEY_COSIGNATURE, &w1.key, &keys[1]);
    cx_vkey_make(CX_STR("witness.two"), CX_VKEY_COSIGNATURE, &w2.key, &keys[2]);
    cx_vkey_make(CX_STR("witness.one.again"), CX_VKEY_COSIGNATURE, &w1.key, &keys[3]);
    cx_buf_add_str(&note, e.note);
    cosign(&e, &w1, &keys[1], 1700000100, &note);
    cx_finding finding = verify_note(cx_buf_str(&note), keys, 4, 1, &result);
    CHECK_HOLDS(&finding);
    CHECK_INT(result.cosigned, 1);
    finding = verify_note(cx_buf_str(&note), keys, 4, 2, NULL);
    CHECK_FINDING(&finding, CX_BROKEN, "NotSigned");
    /* One witness under two names is one witness; the same line twice too. */
    cosign(&e, &w1, &keys[3], 1700000100, &note);
    cosign(&e, &w1, &keys[1], 1700000100, &note);
    finding = verify_note(cx_buf_str(&note), keys, 4, 2, &result);
    CHECK_FINDING(&finding, CX_BROKEN, "NotSigned");
    CHECK_INT(result.cosigned, 1);
    cosign(&e, &w2, &keys[2], 1700000100, &note);
    finding = verify_note(cx_buf_str(&note), keys, 4, 2, &result);
    CHECK_HOLDS(&finding);
    /* Witnesses alone do not make it the origin's. */
    finding = verify_note(cx_buf_str(&note), keys + 1, 3, 1, NULL);
    CHECK_FINDING(&finding, CX_BROKEN, "NotSigned");
    /* Lines of unknown keys are outside what is checked, whatever they say. */
    uint8_t noise[64] = {1, 2, 3};
    cx_vkey unknown;
    cx_vkey_make(CX_STR("nobody"), CX_VKEY_NOTE, &w2.key, &unknown);
    size_t before = note.size;
    add_line(&note, &unknown, noise, sizeof noise);
    finding = verify_note(cx_buf_str(&note), keys, 4, 2, &result);
    CHECK_HOLDS(&finding);
    CHECK_INT(result.unknown, 1);
    /* A known key that signed something else rejects the note. */
    note.size = before;
    add_line(&note, &keys[1], noise, sizeof noise);
    finding = verify_note(cx_buf_str(&note), keys, 4, 2, NULL);
    CHECK_FINDING(&finding, CX_BROKEN, "SignatureInvalid");
    cx_buf_done(&note);
    exported_close(&e);
}

CX_TEST(export_note_forms_refused)
{
    static const char *const bad[] = {
        "a\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n",
        "a b\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n\xe2\x80\x94 a AAAAAAA=\n",
        "a+b\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n\xe2\x80\x94 a AAAAAAA=\n",
        "a\xc2\xa0"
        "b\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n\xe2\x80\x94 a AAAAAAA=\n",
        "a\xff\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n\xe2\x80\x94 a AAAAAAA=\n",
        "a\n01\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n\xe2\x80\x94 a AAAAAAA=\n",
        "a\n-1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n\xe2\x80\x94 a AAAAAAA=\n",
        "a\n18446744073709551616\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n\xe2\x80\x94 a "
        "AAAAAAA=\n",
        "a\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=\n\n\xe2\x80\x94 a AAAAAAA=\n",
        "a\n1\nAAAA\n\n\xe2\x80\x94 a AAAAAAA=\n",
        "a\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\nextension\n\n\xe2\x80\x94 a "
        "AAAAAAA=\n",
        "a\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n- a AAAAAAA=\n",
        "a\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n\xe2\x80\x94 a AAAAAA==\n",
        "a\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n\xe2\x80\x94 a AAAAAAA=",
        "a\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n\xe2\x80\x94 a\n",
    };
    cx_checkpoint checkpoint;
    cx_err err;
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++) {
        cx_status status =
            cx_checkpoint_parse(cx_str_bytes(cx_str_z(bad[i])), &checkpoint, NULL, &err);
        if (status.code != CX_E_FORMAT || strcmp(err.tag, "BadNote") != 0)
            cx_test_fail(__FILE__, __LINE__, "accepted: %s", bad[i]);
    }
    /* The same with nothing wrong. */
    const char *good =
        "a\n18446744073709551615\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n\xe2\x80\x94 a "
        "AAAAAAA=\n";
    CHECK_STATUS(cx_checkpoint_parse(cx_str_bytes(cx_str_z(good)), &checkpoint, NULL, &err), &err);
    CHECK(checkpoint.size == UINT64_MAX);
}

/* --- tlog-proof ------------------------------------------------------------------------------- */

CX_TEST(export_tlog_proof_vectors)
{
    exported e;
    REQUIRE(exported_open(&e));
    cx_note_check check = {&e.key, 1, 0};
    const cx_json *proofs = CX_JSON_GET(&e.v.root, "tlog_proofs");
    for (size_t i = 0; i < proofs->count; i++) {
        cx_bytes text = cx_str_bytes(CX_JSON_GET_STR(&proofs->items[i], "text"));
        const cx_digest *leaf = &e.leaves[member_uint(&proofs->items[i], "index")];
        cx_arena *arena = &e.v.arena;
        cx_tlog_proof proof;
        cx_note_result result;
        cx_finding finding;
        cx_buf again;
        cx_err err;
        cx_buf_init(&again, cx_alloc_default());
        CHECK_STATUS(cx_tlog_proof_decode(text, arena, &proof, &err), &err);
        CHECK_INT(proof.index, member_uint(&proofs->items[i], "index"));
        cx_tlog_proof_encode(proof.index, proof.path, proof.path_count, proof.note, &again);
        CHECK(bytes_eq(cx_buf_bytes(&again), text));
        cx_buf_done(&again);
        CHECK_STATUS(cx_tlog_proof_verify(text, leaf, &check, arena, &result, &finding, &err),
                     &err);
        CHECK_HOLDS(&finding);
        for (size_t bit = 0; bit < text.size * 8; bit++) {
            uint8_t *copy = flipped(text, bit);
            cx_arena_mark mark = cx_arena_mark_now(arena);
            CHECK_STATUS(cx_tlog_proof_verify(cx_bytes_from(copy, text.size), leaf, &check, arena,
                                              &result, &finding, &err),
                         &err);
            if (finding.verdict != CX_BROKEN)
                cx_test_fail(__FILE__, __LINE__, "bit %zu flipped and it holds", bit);
            cx_arena_reset(arena, mark);
            flipped_done(copy, text);
        }
        CHECK_STATUS(
            cx_tlog_proof_verify(text, &e.leaves[7], &check, arena, &result, &finding, &err), &err);
        CHECK_FINDING(&finding, CX_BROKEN, "RootMismatch");
    }
    exported_close(&e);
}

/* --- tiles ------------------------------------------------------------------------------------ */

CX_TEST(export_tile_paths)
{
    static const struct {
        int level;
        uint64_t index;
        unsigned width;
        const char *path;
    } cases[] = {{0, 0, 256, "tile/0/000"},
                 {0, 3, 232, "tile/0/003.p/232"},
                 {1, 999, 256, "tile/1/999"},
                 {2, 1000, 1, "tile/2/x001/000.p/1"},
                 {0, 1234067, 256, "tile/0/x001/x234/067"},
                 {-1, 1234067, 256, "tile/entries/x001/x234/067"},
                 {-1, 0, 7, "tile/entries/000.p/7"},
                 {0, UINT64_MAX, 256, "tile/0/x018/x446/x744/x073/x709/x551/615"}};
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_buf_clear(&out);
        cx_tile_path(cases[i].level, cases[i].index, cases[i].width, &out);
        CHECK_STR(cx_buf_str(&out), cases[i].path);
    }
    cx_buf_done(&out);
}

static cx_mmr *thousand_leaves(void)
{
    cx_mmr *mmr = NULL;
    cx_err err;
    CHECK_STATUS(cx_mmr_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &mmr, &err), &err);
    for (unsigned i = 0; i < 1000; i++) {
        char text[40];
        int size = snprintf(text, sizeof text, "matrix-mmr-leaf-%u", i);
        cx_digest leaf = cx_digest_of(cx_bytes_from(text, (size_t)size));
        CHECK_STATUS(cx_mmr_append(mmr, &leaf, 1, &err), &err);
    }
    return mmr;
}

static void expect_tile(const cx_json *tiles, const cx_buf *tile, int level, uint64_t index,
                        unsigned width)
{
    cx_buf name;
    cx_buf_init(&name, cx_alloc_default());
    cx_tile_path(level, index, width, &name);
    cx_buf_add_z(&name, " sha256");
    const char *text = cx_buf_z(&name);
    cx_digest expected = member_digest(tiles, text), found = cx_digest_of(cx_buf_bytes(tile));
    if (!cx_digest_eq(&expected, &found))
        cx_test_fail(__FILE__, __LINE__, "%s differs", text);
    cx_buf_done(&name);
}

CX_TEST(export_tile_vectors)
{
    static const struct {
        unsigned level;
        uint64_t index;
        unsigned width;
    } cases[] = {{0, 0, 256}, {0, 3, 232}, {1, 0, 3}};
    vectors v;
    cx_buf tile;
    cx_err err;
    unsigned width = 0;
    REQUIRE(vectors_open(&v, "vectors/ledger/cortex-1/journal_tree.json"));
    const cx_json *tiles = CX_JSON_GET(&v.root, "tiles");
    cx_mmr *mmr = thousand_leaves();
    cx_buf_init(&tile, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_buf_clear(&tile);
        CHECK_STATUS(cx_tile_hashes(CX_SCHEME_CORTEX_1, mmr, 1000, cases[i].level, cases[i].index,
                                    &tile, &width, &err),
                     &err);
        CHECK_INT(width, cases[i].width);
        CHECK_INT(tile.size, width * 32);
        expect_tile(tiles, &tile, (int)cases[i].level, cases[i].index, width);
    }
    cx_buf_clear(&tile);
    CHECK_STATUS(cx_tile_entries(CX_SCHEME_CORTEX_1, mmr, 1000, 0, &tile, &width, &err), &err);
    expect_tile(tiles, &tile, -1, 0, width);
    /* What is not there, and an older size. */
    CHECK_INT(cx_tile_hashes(CX_SCHEME_CORTEX_1, mmr, 1000, 0, 4, &tile, &width, &err).code,
              CX_E_NOT_FOUND);
    CHECK_INT(cx_tile_hashes(CX_SCHEME_CORTEX_1, mmr, 1000, 2, 0, &tile, &width, &err).code,
              CX_E_NOT_FOUND);
    CHECK_INT(cx_tile_hashes(CX_SCHEME_CORTEX_1, mmr, 1000, 60, 0, &tile, &width, &err).code,
              CX_E_NOT_FOUND);
    CHECK_INT(cx_tile_hashes(CX_SCHEME_CORTEX_1, mmr, 1001, 0, 0, &tile, &width, &err).code,
              CX_E_NOT_FOUND);
    CHECK_INT(cx_tile_entries(CX_SCHEME_CORTEX_1, mmr, 512, 2, &tile, &width, &err).code,
              CX_E_NOT_FOUND);
    CHECK_INT(cx_tile_entries(CX_SCHEME_CORTEX_1, mmr, 512, UINT64_MAX, &tile, &width, &err).code,
              CX_E_NOT_FOUND);
    CHECK_INT(cx_tile_hashes(CX_SCHEME_MATRIX_1, mmr, 1000, 0, 0, &tile, &width, &err).code,
              CX_E_UNSUPPORTED);
    CHECK_STR(cx_str_z(err.tag), "SchemeUnsupported");
    cx_buf_clear(&tile);
    CHECK_STATUS(cx_tile_entries(CX_SCHEME_CORTEX_1, mmr, 300, 1, &tile, &width, &err), &err);
    CHECK_INT(width, 44);
    CHECK_INT(tile.size, 44 * 34);
    cx_mmr_close(mmr);
    cx_buf_done(&tile);
    vectors_close(&v);
}

/* --- receipts --------------------------------------------------------------------------------- */

static cx_finding verify_receipt(exported *e, cx_bytes bytes, const cx_digest *leaf,
                                 const cx_journal_point *older, const cx_journal_point *newer)
{
    cx_receipt_check check = {&e->key, leaf, older, newer};
    cx_finding finding;
    cx_err err;
    cx_arena_mark mark = cx_arena_mark_now(&e->v.arena);
    CHECK_STATUS(cx_receipt_verify(bytes, &check, &e->v.arena, &finding, &err), &err);
    cx_arena_reset(&e->v.arena, mark);
    return finding;
}

static void flip_receipt(exported *e, cx_bytes bytes, const cx_digest *leaf,
                         const cx_journal_point *older, const cx_journal_point *newer)
{
    for (size_t bit = 0; bit < bytes.size * 8; bit++) {
        uint8_t *copy = flipped(bytes, bit);
        cx_finding finding = verify_receipt(e, cx_bytes_from(copy, bytes.size), leaf, older, newer);
        if (finding.verdict == CX_HOLDS)
            cx_test_fail(__FILE__, __LINE__, "bit %zu flipped and it holds", bit);
        flipped_done(copy, bytes);
    }
}

static cx_signature sign_receipt(const exported *e, const cx_digest *root)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_receipt_to_sign(e->key.key_id, root, &text);
    cx_signature signature = sign(&e->log, cx_buf_bytes(&text));
    cx_buf_done(&text);
    return signature;
}

CX_TEST(export_inclusion_receipts)
{
    exported e;
    cx_err err;
    cx_buf out;
    REQUIRE(exported_open(&e));
    cx_buf_init(&out, cx_alloc_default());
    cx_journal_point at = {19, e.checkpoint.root};
    cx_signature signature = sign_receipt(&e, &at.root);
    const cx_json *receipts = CX_JSON_GET(&e.v.root, "cose_inclusion");
    const cx_json *proofs = CX_JSON_GET(&e.journal.root, "journal_proofs");
    for (size_t i = 0; i < receipts->count; i++) {
        cx_bytes expected = member_bytes(&e.v, &receipts->items[i], "cbor");
        uint64_t index = member_uint(&receipts->items[i], "index");
        cx_inclusion proof = {0};
        for (size_t k = 0; k < proofs->count; k++)
            if (member_uint(&proofs->items[k], "index") == index)
                CHECK_STATUS(cx_inclusion_decode(member_bytes(&e.v, &proofs->items[k], "cbor"),
                                                 &e.v.arena, &proof, &err),
                             &err);
        cx_buf_clear(&out);
        CHECK_STATUS(cx_receipt_inclusion(e.key.key_id, &proof, &signature, &out, &err), &err);
        CHECK(bytes_eq(cx_buf_bytes(&out), expected));
        cx_finding finding = verify_receipt(&e, expected, &e.leaves[index], NULL, &at);
        CHECK_HOLDS(&finding);
        finding = verify_receipt(&e, expected, &e.leaves[index], NULL, NULL);
        CHECK_HOLDS(&finding);
        finding = verify_receipt(&e, expected, NULL, NULL, &at);
        CHECK_FINDING(&finding, CX_INDETERMINATE, "NoLeaf");
        finding = verify_receipt(&e, expected, &e.leaves[7], NULL, NULL);
        CHECK_FINDING(&finding, CX_BROKEN, "SignatureInvalid");
        cx_journal_point other = {20, at.root};
        finding = verify_receipt(&e, expected, &e.leaves[index], NULL, &other);
        CHECK_FINDING(&finding, CX_BROKEN, "SizeMismatch");
        /* With the journal's size known every bit is bound; without it size and index are not
         * (CX_JOURNAL_SIZE_UNKNOWN in proof.h). */
        flip_receipt(&e, expected, &e.leaves[index], NULL, &at);
    }
    cx_buf_done(&out);
    exported_close(&e);
}

CX_TEST(export_consistency_receipt)
{
    exported e;
    cx_err err;
    cx_buf out;
    cx_consistency proof = {0};
    REQUIRE(exported_open(&e));
    cx_buf_init(&out, cx_alloc_default());
    const cx_json *vector = &CX_JSON_GET(&e.v.root, "cose_consistency")->items[0];
    const cx_json *proofs = CX_JSON_GET(&e.journal.root, "consistency");
    const cx_json *steps = CX_JSON_GET(&e.journal.root, "steps");
    cx_bytes expected = member_bytes(&e.v, vector, "cbor");
    cx_journal_point older = {8, {{0}}}, newer = {19, e.checkpoint.root};
    for (size_t i = 0; i < proofs->count; i++)
        if (member_uint(&proofs->items[i], "size1") == 8)
            CHECK_STATUS(cx_consistency_decode(member_bytes(&e.v, &proofs->items[i], "cbor"),
                                               &e.v.arena, &proof, &err),
                         &err);
    for (size_t i = 0; i < steps->count; i++)
        if (member_uint(&steps->items[i], "next_seq") == 8)
            older.root = member_digest(&steps->items[i], "journal_root");
    cx_signature signature = sign_receipt(&e, &newer.root);
    CHECK_STATUS(cx_receipt_consistency(e.key.key_id, &proof, &signature, &out, &err), &err);
    CHECK(bytes_eq(cx_buf_bytes(&out), expected));
    cx_finding finding = verify_receipt(&e, expected, NULL, &older, &newer);
    CHECK_HOLDS(&finding);
    finding = verify_receipt(&e, expected, NULL, NULL, &newer);
    CHECK_FINDING(&finding, CX_INDETERMINATE, "NoRoot");
    flip_receipt(&e, expected, NULL, &older, &newer);
    cx_buf_done(&out);
    exported_close(&e);
}

CX_TEST(export_receipts_refused)
{
    exported e;
    cx_err err;
    cx_buf out;
    cx_signature signature = {{0}};
    cx_digest path[1] = {{{1}}};
    REQUIRE(exported_open(&e));
    cx_buf_init(&out, cx_alloc_default());
    cx_inclusion alone = {.scheme = CX_SCHEME_CORTEX_1, .tree_size = 1};
    CHECK_INT(cx_receipt_inclusion(e.key.key_id, &alone, &signature, &out, &err).code, CX_E_USAGE);
    CHECK_STR(cx_str_z(err.tag), "ReceiptTooSmall");
    cx_consistency same = {.scheme = CX_SCHEME_CORTEX_1, .size1 = 4, .size2 = 4};
    CHECK_INT(cx_receipt_consistency(e.key.key_id, &same, &signature, &out, &err).code, CX_E_USAGE);
    CHECK_STR(cx_str_z(err.tag), "ReceiptTooSmall");
    cx_inclusion matrix = {
        .scheme = CX_SCHEME_MATRIX_1, .tree_size = 2, .path = path, .path_count = 1};
    CHECK_INT(cx_receipt_inclusion(e.key.key_id, &matrix, &signature, &out, &err).code,
              CX_E_UNSUPPORTED);
    CHECK_STR(cx_str_z(err.tag), "SchemeUnsupported");
    CHECK_INT(out.size, 0);
    cx_buf_done(&out);
    exported_close(&e);
}

/* --- memory ----------------------------------------------------------------------------------- */

CX_TEST(export_every_allocation)
{
    exported e;
    bool finished = false;
    REQUIRE(exported_open(&e));
    cx_note_check check = {&e.key, 1, 0};
    cx_bytes text =
        cx_str_bytes(CX_JSON_GET_STR(&CX_JSON_GET(&e.v.root, "tlog_proofs")->items[0], "text"));
    cx_bytes receipt =
        member_bytes(&e.v, &CX_JSON_GET(&e.v.root, "cose_inclusion")->items[0], "cbor");
    for (uint64_t at = 1; !finished && at < 100; at++) {
        fault_alloc memory;
        cx_arena arena;
        cx_finding finding;
        cx_err err;
        cx_receipt_check receipt_check = {&e.key, &e.leaves[0], NULL, NULL};
        fault_alloc_init(&memory, at, true);
        cx_arena_init(&arena, &memory.alloc, 0);
        cx_status status =
            cx_tlog_proof_verify(text, &e.leaves[0], &check, &arena, NULL, &finding, &err);
        if (!cx_failed(status))
            status = cx_receipt_verify(receipt, &receipt_check, &arena, &finding, &err);
        finished = !cx_failed(status);
        if (finished)
            CHECK_HOLDS(&finding);
        else
            CHECK_INT(status.code, CX_E_NOMEM);
        cx_arena_done(&arena);
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
    }
    CHECK(finished);
    exported_close(&e);
}
