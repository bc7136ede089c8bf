/*
 * test_key.c - Ed25519 verification: RFC 8032 §7.1, our edge vectors (see
 * tests/vectors/crypto/README.md), and project Wycheproof.
 *
 * The kernels of eight lanes are compiled here a second time without AVX-512, under other names, so
 * that their logic is checked on any machine; this must come before every other header.
 */
#define CX_LANES_EMULATED 1
#include "crypto/key_lanes.h"

static cx_key_hash emulated_sha512;
static cx_key_equation emulated_ed25519;
#define cx_sha512_avx512 emulated_sha512
#define cx_ed25519_avx512 emulated_ed25519
#include "crypto/sha512_avx512.c"

#include "crypto/ed25519_avx512.c"
#undef cx_sha512_avx512
#undef cx_ed25519_avx512

#include <sodium.h>

#include "base/arena.h"
#include "base/io.h"
#include "base/hex.h"
#include "json/json.h"
#include "tests/test.h"

static bool sodium_says(const cx_ed25519_item *item)
{
    return crypto_sign_verify_detached(item->signature.bytes, item->message.data,
                                       item->message.size, item->key.bytes) == 0;
}

/* What eight lanes say of one signature, which all of them hold. */
static bool lanes_say(const cx_ed25519_item *item, cx_key_hash *hash, cx_key_equation *equation)
{
    const cx_ed25519_item *eight[CX_KEY_LANES];
    for (size_t i = 0; i < CX_KEY_LANES; i++)
        eight[i] = item;
    unsigned found = cx_key_lanes_with(eight, hash, equation);
    CHECK(found == 0 || found == 0xff);
    return found != 0;
}

/* The lanes say yes exactly where libsodium does. */
static void check_lanes(const cx_ed25519_item *item, bool expected, cx_str comment)
{
    bool emulated = lanes_say(item, emulated_sha512, emulated_ed25519), real = emulated;
#ifdef CX_KEY_X86
    if (cx_key_lanes_has())
        real = lanes_say(item, cx_sha512_avx512, cx_ed25519_avx512);
#endif
    if (emulated != expected || real != expected)
        cx_test_fail(__FILE__, __LINE__, "%.*s: lanes emulated %d, real %d, expected %d",
                     (int)comment.size, comment.data, emulated, real, expected);
}

/* --- RFC 8032 ------------------------------------------------------------------------------ */

typedef struct rfc_case {
    const char *key, *message, *signature;
} rfc_case;

static const rfc_case rfc_cases[] = {
    {"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b"
     "4"
     "6bd25bf5f0595bbe24655141438e7a100b"},
    {"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11"
     "d"
     "8c387b2eaeb4302aeeb00d291612bb0c00"},
    {"fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc"
     "6"
     "594a7c15e9716ed28dc027beceea1ec40a"},
    {"ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
     "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3fee"
     "bb"
     "d454d4423643ce80e2a9ac94fa54ca49f",
     "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e"
     "03"
     "03dca179c138ac17ad9bef1177331a704"},
};

CX_TEST(ed25519_rfc_8032)
{
    for (size_t i = 0; i < CX_COUNT_OF(rfc_cases); i++) {
        const rfc_case *c = &rfc_cases[i];
        cx_pubkey key;
        cx_signature signature;
        uint8_t message[64 + 1];
        size_t size = strlen(c->message) / 2;
        REQUIRE(cx_hex_decode(cx_str_z(c->key), key.bytes, sizeof key.bytes));
        REQUIRE(cx_hex_decode(cx_str_z(c->signature), signature.bytes, sizeof signature.bytes));
        REQUIRE(cx_hex_decode(cx_str_z(c->message), message, size));
        CHECK(cx_ed25519_verify(&key, cx_bytes_from(message, size), &signature));
        message[size] = 0; /* one byte more is another message */
        CHECK(!cx_ed25519_verify(&key, cx_bytes_from(message, size + 1), &signature));
    }
}

/* Each single bit of key, signature and message matters. */
CX_TEST(ed25519_every_flipped_bit_is_refused)
{
    struct {
        cx_pubkey key;
        cx_signature signature;
        uint8_t message[2];
    } good, bad;
    cx_str key = cx_str_z(rfc_cases[2].key), signature = cx_str_z(rfc_cases[2].signature);
    REQUIRE(cx_hex_decode(key, good.key.bytes, sizeof good.key.bytes));
    REQUIRE(cx_hex_decode(signature, good.signature.bytes, sizeof good.signature.bytes));
    memcpy(good.message, "\xaf\x82", 2);
    CHECK(cx_ed25519_verify(&good.key, cx_bytes_from(good.message, 2), &good.signature));
    for (size_t bit = 0; bit < 8 * sizeof good; bit++) {
        bad = good;
        ((uint8_t *)&bad)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK(!cx_ed25519_verify(&bad.key, cx_bytes_from(bad.message, 2), &bad.signature));
    }
}

/* --- vectors in JSON ----------------------------------------------------------------------- */

typedef struct document {
    cx_buf file;
    cx_arena arena;
    cx_json root;
} document;

static bool document_open(document *doc, const char *path)
{
    cx_err err = {0};
    cx_buf_init(&doc->file, cx_alloc_default());
    cx_arena_init(&doc->arena, cx_alloc_default(), 0);
    cx_status status = cx_io_read_file(cx_io_system(), path, 64u << 20, &doc->file, &err);
    if (!cx_failed(status))
        status = cx_json_parse_text(cx_buf_str(&doc->file), &doc->arena, &doc->root, &err);
    if (cx_failed(status))
        cx_test_fail(__FILE__, __LINE__, "%s: %s", path, err.message);
    return !cx_failed(status);
}

static void document_done(document *doc)
{
    cx_arena_done(&doc->arena);
    cx_buf_done(&doc->file);
}

/* The bytes of a member in hex; false when it is absent or not hex. */
static bool get_bytes(document *doc, const cx_json *object, cx_str name, cx_bytes *out)
{
    cx_str text = cx_json_get_str(object, name);
    if (text.data == NULL)
        return false;
    uint8_t *data = cx_arena_push(&doc->arena, text.size / 2 + 1, 1);
    *out = cx_bytes_from(data, text.size / 2);
    return data != NULL && cx_hex_decode(text, data, text.size / 2);
}

static bool get_key(document *doc, const cx_json *object, cx_str name, cx_pubkey *out)
{
    cx_bytes bytes;
    if (!get_bytes(doc, object, name, &bytes) || bytes.size != sizeof out->bytes)
        return false;
    memcpy(out->bytes, bytes.data, bytes.size);
    return true;
}

static void check_item(const cx_ed25519_item *item, bool expected, cx_str comment)
{
    bool one = cx_ed25519_verify(&item->key, item->message, &item->signature), many = !one;
    cx_ed25519_verify_many(item, &many, 1);
    bool sodium = sodium_says(item);
    if (one != expected || many != expected || sodium != expected)
        cx_test_fail(__FILE__, __LINE__, "%.*s: verify %d, many %d, libsodium %d, expected %d",
                     (int)comment.size, comment.data, one, many, sodium, expected);
    check_lanes(item, expected, comment);
}

static void check_edges(document *doc)
{
    unsigned good_count = 0, lenient_count = 0, cofactored_count = 0;
    CHECK(doc->root.type == CX_JSON_ARRAY && doc->root.count >= 70);
    for (uint32_t i = 0; i < doc->root.count; i++) {
        const cx_json *c = &doc->root.items[i];
        const cx_json *good = CX_JSON_GET(c, "good");
        cx_ed25519_item item;
        cx_bytes signature;
        REQUIRE(good != NULL && (good->type == CX_JSON_TRUE || good->type == CX_JSON_FALSE));
        REQUIRE(get_key(doc, c, CX_STR("key"), &item.key));
        REQUIRE(get_bytes(doc, c, CX_STR("message"), &item.message));
        REQUIRE(get_bytes(doc, c, CX_STR("signature"), &signature));
        REQUIRE(signature.size == sizeof item.signature.bytes);
        memcpy(item.signature.bytes, signature.data, signature.size);
        check_item(&item, good->type == CX_JSON_TRUE, CX_JSON_GET_STR(c, "comment"));
        good_count += good->type == CX_JSON_TRUE;
        lenient_count += CX_JSON_GET(c, "lenient")->type == CX_JSON_TRUE;
        cofactored_count += CX_JSON_GET(c, "cofactored")->type == CX_JSON_TRUE;
    }
    /* The file is of use only while it tells the three rules apart. */
    CHECK(0 < good_count && good_count < lenient_count && lenient_count < cofactored_count);
}

CX_TEST(ed25519_edge_vectors)
{
    document doc;
    if (document_open(&doc, cx_test_path("vectors/crypto/ed25519_edges.json")))
        check_edges(&doc);
    document_done(&doc);
}

/* A signature of another size than 64 cannot be handed to us: it counts as refused. */
static unsigned check_wycheproof_group(document *doc, const cx_json *group)
{
    cx_ed25519_item item;
    const cx_json *tests = CX_JSON_GET(group, "tests");
    const cx_json *key = CX_JSON_GET(group, "publicKey");
    if (key == NULL || tests == NULL || tests->type != CX_JSON_ARRAY ||
        !get_key(doc, key, CX_STR("pk"), &item.key))
        return 0;
    for (uint32_t i = 0; i < tests->count; i++) {
        const cx_json *test = &tests->items[i];
        cx_str result = CX_JSON_GET_STR(test, "result");
        cx_bytes signature = {NULL, 0};
        bool valid = cx_str_is(result, "valid");
        CHECK(valid || cx_str_is(result, "invalid"));
        CHECK(get_bytes(doc, test, CX_STR("msg"), &item.message));
        CHECK(get_bytes(doc, test, CX_STR("sig"), &signature));
        if (signature.size != sizeof item.signature.bytes) {
            CHECK(!valid);
            continue;
        }
        memcpy(item.signature.bytes, signature.data, signature.size);
        check_item(&item, valid, CX_JSON_GET_STR(test, "comment"));
    }
    return tests->count;
}

CX_TEST(ed25519_wycheproof)
{
    const char *path = cx_test_data("suites/wycheproof/testvectors_v1/ed25519_test.json");
    document doc;
    unsigned count = 0;
    if (path == NULL) {
        cx_test_skip("no third-party test data");
        return;
    }
    if (document_open(&doc, path)) {
        const cx_json *groups = CX_JSON_GET(&doc.root, "testGroups");
        const cx_json *total = CX_JSON_GET(&doc.root, "numberOfTests");
        uint64_t expected_count = 0;
        for (uint32_t i = 0; groups != NULL && i < groups->count; i++)
            count += check_wycheproof_group(&doc, &groups->items[i]);
        CHECK(total != NULL && cx_json_uint64(total, &expected_count));
        CHECK_INT(count, expected_count);
    }
    document_done(&doc);
}

/* --- lanes --------------------------------------------------------------------------------- */

/* Every length up to three blocks, eight different ones side by side. */
CX_TEST(sha512_lanes)
{
    uint8_t text[64 + 400], out[CX_KEY_LANES][64], expected[64];
    uint64_t seed = cx_test_seed();
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)cx_test_random(&seed);
    for (size_t first = 0; first + 49 * 7 <= 400; first++) {
        cx_sha512_eight in;
        for (size_t i = 0; i < CX_KEY_LANES; i++) {
            in.heads[i] = text;
            in.messages[i] = cx_bytes_from(text + 64, first + 49 * i);
        }
        emulated_sha512(&in, out);
        for (size_t i = 0; i < CX_KEY_LANES; i++) {
            crypto_hash_sha512(expected, text, 64 + in.messages[i].size);
            CHECK(memcmp(out[i], expected, sizeof expected) == 0);
        }
#ifdef CX_KEY_X86
        uint8_t real[CX_KEY_LANES][64];
        if (cx_key_lanes_has()) {
            cx_sha512_avx512(&in, real);
            CHECK(memcmp(out, real, sizeof out) == 0);
        }
#endif
    }
}

static bool same_number(const field *a, const field *b)
{
    lanes zero;
    field rest;
    field_subtract(&rest, a, b);
    field_is_zero(&rest, &zero);
    bool same = true;
    for (size_t i = 0; i < CX_KEY_LANES; i++)
        same = same && zero[i] != 0;
    return same;
}

/* a·b by doubling and adding, b frozen: what multiplying must agree with. */
static void multiply_slowly(field *out, const field *a, const field *b)
{
    const field start = *a;
    lanes words[4];
    field_write(b, words);
    field_set_small(out, 0);
    for (unsigned bit = 255; bit-- > 0;) {
        lanes mask = (lanes){0} - (words[bit / 64] >> bit % 64 & 1);
        field sum;
        field_add(out, out, out);
        field_add(&sum, out, &start);
        field_replace(out, &sum, &mask);
    }
}

/* Limbs at the ends of what is tight (I1), and in between. */
static void make_number(uint64_t *seed, field *out)
{
    static const uint64_t ends[] = {
        0, 1, LIMB_MASK - 18, LIMB_MASK, LIMB_MASK + 1, LIMB_MASK + (1 << 15)};
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < CX_KEY_LANES; k++) {
            uint64_t dice = cx_test_random(seed);
            out->v[i][k] = dice % 3 == 0 ? dice >> 13 : ends[(dice >> 8) % CX_COUNT_OF(ends)];
        }
}

CX_TEST(ed25519_field_at_its_ends)
{
    uint64_t seed = cx_test_seed();
    for (unsigned round = 0; round < 40; round++) {
        field a, b, frozen, product, slow, square;
        make_number(&seed, &a);
        make_number(&seed, &b);
        frozen = b;
        field_freeze(&frozen);
        field_multiply(&product, &a, &b);
        multiply_slowly(&slow, &a, &frozen);
        CHECK(same_number(&product, &slow));
        field_square(&square, &a);
        field_multiply(&product, &a, &a);
        CHECK(same_number(&product, &square));
        field_invert(&slow, &product);
        field_multiply(&slow, &slow, &product);
        field_multiply(&slow, &slow, &a); /* a, also where it is 0 */
        CHECK(same_number(&slow, &a));
    }
}

/* p and its neighbours have one spelling each. */
CX_TEST(ed25519_field_is_frozen)
{
    static const struct {
        uint64_t low, rest, frozen_low, frozen_rest;
    } cases[] = {{LIMB_MASK - 18, LIMB_MASK, 0, 0},
                 {LIMB_MASK - 17, LIMB_MASK, 1, 0},
                 {LIMB_MASK - 19, LIMB_MASK, LIMB_MASK - 19, LIMB_MASK},
                 {LIMB_MASK, LIMB_MASK, 18, 0},
                 {LIMB_MASK + 1, LIMB_MASK, 19, 0},
                 {0, 0, 0, 0}};
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        field a;
        field_set(&a, (const uint64_t[5]){cases[i].low, cases[i].rest, cases[i].rest, cases[i].rest,
                                          cases[i].rest});
        field_freeze(&a);
        CHECK_INT(a.v[0][0], cases[i].frozen_low);
        for (size_t k = 1; k < 5; k++)
            CHECK_INT(a.v[k][7], cases[i].frozen_rest);
    }
}

/* --- many ---------------------------------------------------------------------------------- */

CX_TEST(ed25519_many_is_item_by_item)
{
    enum { COUNT = 147, SIZE = 700 };
    static uint8_t messages[COUNT][SIZE];
    uint8_t public_key[32], secret_key[64], seed_bytes[32];
    cx_ed25519_item items[COUNT];
    bool good[COUNT];
    uint64_t seed = cx_test_seed();
    for (size_t i = 0; i < COUNT; i++) {
        memset(seed_bytes, (int)i, sizeof seed_bytes);
        REQUIRE(crypto_sign_seed_keypair(public_key, secret_key, seed_bytes) == 0);
        for (size_t j = 0; j < sizeof messages[i]; j++)
            messages[i][j] = (uint8_t)cx_test_random(&seed);
        size_t size = i * 37 % SIZE;
        items[i].message = cx_bytes_from(messages[i], size);
        memcpy(items[i].key.bytes, public_key, sizeof public_key);
        REQUIRE(crypto_sign_detached(items[i].signature.bytes, NULL, messages[i], size,
                                     secret_key) == 0);
        if (i % 3 == 1)
            items[i].signature.bytes[i % 64] ^= 1;
        if (i % 15 == 2)
            messages[i][size] ^= 1; /* after the message: changes nothing */
        if (i % 15 == 5)
            items[i].key.bytes[i % 32] ^= 4;
    }
    for (size_t count = 0; count <= 20; count++) {
        memset(good, 2, sizeof good);
        cx_ed25519_verify_many(items, good, count);
        for (size_t i = 0; i < count; i++)
            CHECK_INT(good[i], i % 3 != 1 && i % 15 != 5);
    }
    cx_ed25519_verify_many(items, good, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_INT(good[i], i % 3 != 1 && i % 15 != 5);
        CHECK_INT(good[i], sodium_says(&items[i]));
        check_lanes(&items[i], good[i], CX_STR("many"));
    }
    cx_ed25519_verify_many(NULL, NULL, 0);
}
