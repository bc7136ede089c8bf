/*
 * proof_util.h - vectors, bytes and signatures for the tests of proofs and exports.
 */
#ifndef CX_TESTS_LEDGER_PROOF_UTIL_H
#define CX_TESTS_LEDGER_PROOF_UTIL_H

#include <sodium.h>

#include "base/io.h"
#include "base/hex.h"
#include "json/json.h"
#include "proof/proof.h"
#include "tests/test.h"

/* A file of vectors and the memory for everything made from it. */
typedef struct vectors {
    cx_arena arena;
    cx_buf text;
    cx_json root;
} vectors;

static inline bool vectors_open(vectors *v, const char *relative)
{
    cx_err err;
    cx_arena_init(&v->arena, cx_alloc_default(), 0);
    cx_buf_init(&v->text, cx_alloc_default());
    v->root = cx_json_make_null();
    cx_status status =
        cx_io_read_file(cx_io_system(), cx_test_path(relative), SIZE_MAX, &v->text, &err);
    if (!cx_failed(status))
        status = cx_json_parse_text(cx_buf_str(&v->text), &v->arena, &v->root, &err);
    if (cx_failed(status))
        cx_test_fail(__FILE__, __LINE__, "%s: %s", relative, err.message);
    return !cx_failed(status);
}

static inline void vectors_close(vectors *v)
{
    cx_arena_done(&v->arena);
    cx_buf_done(&v->text);
}

/* Bytes of a member in hex; the copy is the vector's own and may be changed. */
static inline cx_bytes hex_bytes(vectors *v, cx_str hex)
{
    uint8_t *bytes = CX_ARENA_ARRAY(&v->arena, uint8_t, hex.size / 2 + 1);
    if (bytes == NULL || !cx_hex_decode(hex, bytes, hex.size / 2))
        cx_test_fail(__FILE__, __LINE__, "not hex: %.*s", (int)(hex.size < 40 ? hex.size : 40),
                     hex.data);
    return cx_bytes_from(bytes, hex.size / 2);
}

static inline cx_digest random_digest(uint64_t *state)
{
    cx_digest digest;
    for (size_t i = 0; i < sizeof digest.bytes; i++)
        digest.bytes[i] = (uint8_t)cx_test_random(state);
    return digest;
}

static inline cx_bytes member_bytes(vectors *v, const cx_json *object, const char *name)
{
    return hex_bytes(v, cx_json_get_str(object, cx_str_z(name)));
}

static inline cx_digest member_digest(const cx_json *object, const char *name)
{
    cx_digest digest = {{0}};
    if (!cx_digest_parse(cx_json_get_str(object, cx_str_z(name)), &digest))
        cx_test_fail(__FILE__, __LINE__, "no digest: %s", name);
    return digest;
}

static inline uint64_t member_uint(const cx_json *object, const char *name)
{
    int64_t value = 0;
    const cx_json *member = cx_json_get(object, cx_str_z(name));
    if (member == NULL || !cx_json_int64(member, &value))
        cx_test_fail(__FILE__, __LINE__, "no number: %s", name);
    return (uint64_t)value;
}

static inline cx_digest item_digest(const cx_json *array, size_t at)
{
    cx_digest digest = {{0}};
    if (at >= array->count || !cx_digest_parse(cx_json_text(&array->items[at]), &digest))
        cx_test_fail(__FILE__, __LINE__, "no digest at %zu", at);
    return digest;
}

static inline bool bytes_eq(cx_bytes a, cx_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* A key pair from a seed; the library itself never signs. */
typedef struct signer {
    cx_pubkey key;
    uint8_t secret[crypto_sign_SECRETKEYBYTES];
} signer;

static inline signer signer_from(const uint8_t seed[32])
{
    signer s;
    CHECK(sodium_init() >= 0);
    CHECK(crypto_sign_seed_keypair(s.key.bytes, s.secret, seed) == 0);
    return s;
}

static inline signer signer_number(uint8_t number)
{
    uint8_t seed[32] = {0};
    seed[0] = number;
    return signer_from(seed);
}

static inline cx_signature sign(const signer *s, cx_bytes message)
{
    cx_signature signature;
    CHECK(crypto_sign_detached(signature.bytes, NULL, message.data, message.size, s->secret) == 0);
    return signature;
}

/* A copy with one bit changed, in memory of exactly that size so that sanitizers see its end. */
static inline uint8_t *flipped(cx_bytes bytes, size_t bit)
{
    uint8_t *copy = cx_alloc_new(cx_alloc_default(), bytes.size);
    if (copy != NULL) {
        memcpy(copy, bytes.data, bytes.size);
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    return copy;
}

static inline void flipped_done(uint8_t *copy, cx_bytes bytes)
{
    cx_alloc_free(cx_alloc_default(), copy, bytes.size);
}

static inline bool reason_is(const cx_finding *finding, const char *reason)
{
    return finding->reason != NULL && strcmp(finding->reason, reason) == 0;
}

#define CHECK_FINDING(finding, expected_verdict, expected_reason)                               \
    do {                                                                                        \
        const cx_finding *finding_ = (finding);                                                 \
        if (finding_->verdict != (expected_verdict) || !reason_is(finding_, (expected_reason))) \
            cx_test_fail(__FILE__, __LINE__, "found %s %s (%s), expected %s",                   \
                         cx_verdict_name(finding_->verdict),                                    \
                         finding_->reason == NULL ? "" : finding_->reason, finding_->message,   \
                         (expected_reason));                                                    \
    } while (0)

#define CHECK_HOLDS(finding)                                                                   \
    do {                                                                                       \
        const cx_finding *finding_ = (finding);                                                \
        if (finding_->verdict != CX_HOLDS)                                                     \
            cx_test_fail(__FILE__, __LINE__, "found %s %s (%s), expected holds",               \
                         cx_verdict_name(finding_->verdict),                                   \
                         finding_->reason == NULL ? "" : finding_->reason, finding_->message); \
    } while (0)

#endif
