/*
 * bench_crypto.c - rows C1 and C2: hashing Merkle nodes, verifying signatures.
 *
 * Both sides of a ratio are measured in one run, turn by turn, so that a busy machine slows both.
 */
#include <openssl/evp.h>
#include <sodium.h>

#include "base/diag.h"
#include "bench/bench.h"
#include "crypto/digest.h"
#include "crypto/internal.h"
#include "crypto/key.h"

/* --- measuring ----------------------------------------------------------------------------- */

typedef struct side {
    const char *name;
    void (*work)(void *arg);
    void *arg;
} side;

/* A target of 0 is only for information. */
static void compare(const char *row, const char *what, const side *ours, const side *theirs,
                    double per_turn, const char *unit, double target)
{
    bench_side sides[] = {
        {.name = ours->name, .work = ours->work, .arg = ours->arg, .units = per_turn},
        {.name = theirs->name, .work = theirs->work, .arg = theirs->arg, .units = per_turn}};
    bench_measure(sides, 2);
    for (size_t i = 0; i < 2; i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1, unit);
    (void)bench_print_row(row, what, &sides[0].rate, &sides[1].rate, 1, target);
}

/* --- C1 ------------------------------------------------------------------------------------ */

enum { NODE_COUNT = 1 << 16 };

typedef struct nodes {
    uint8_t *pairs;
    cx_digest *out;
    cx_digest_kernel kernel;
} nodes;

static void hash_nodes(void *arg)
{
    nodes *n = arg;
    cx_digest_pairs_with(n->kernel, n->pairs, n->out, NODE_COUNT);
}

static void hash_nodes_one_shot(void *arg)
{
    nodes *n = arg;
    for (size_t i = 0; i < NODE_COUNT; i++)
        CX_ASSERT(EVP_Digest(n->pairs + 64 * i, 64, n->out[i].bytes, NULL, EVP_sha256(), NULL) ==
                  1);
}

static void bench_nodes(void)
{
    static const cx_digest_kernel kernels[] = {CX_DIGEST_AVX512, CX_DIGEST_SHANI, CX_DIGEST_ARMV8,
                                               CX_DIGEST_NEON, CX_DIGEST_PORTABLE};
    nodes n = {malloc(NODE_COUNT * 64), malloc(NODE_COUNT * sizeof(cx_digest)), CX_DIGEST_PORTABLE};
    CX_ASSERT(n.pairs != NULL && n.out != NULL);
    for (size_t i = 0; i < NODE_COUNT * 64; i++)
        n.pairs[i] = (uint8_t)(i * 2654435761u >> 24);
    for (size_t i = 0; i < CX_COUNT_OF(kernels); i++) {
        char what[80];
        n.kernel = kernels[i];
        (void)snprintf(what, sizeof what, "64-byte nodes, %s / OpenSSL one-shot",
                       cx_digest_kernel_name(n.kernel));
        if (!cx_digest_has(n.kernel)) {
            if (n.kernel != CX_DIGEST_ARMV8 && n.kernel != CX_DIGEST_NEON)
                bench_print_skipped("C1", what, 11, "this machine has no such instructions");
            continue;
        }
        side ours = {"cx_digest_pairs", hash_nodes, &n};
        side theirs = {"EVP_Digest", hash_nodes_one_shot, &n};
        /* The target is for sixteen lanes. */
        compare(n.kernel == CX_DIGEST_AVX512 ? "C1" : "C1i", what, &ours, &theirs, NODE_COUNT,
                "nodes/s", n.kernel == CX_DIGEST_AVX512 ? 11 : 0);
    }
    free(n.pairs);
    free(n.out);
}

/* --- nodes after a prefix ------------------------------------------------------------------ */

typedef struct templated {
    nodes n;
    cx_digest_template template;
} templated;

static void hash_templated(void *arg)
{
    templated *m = arg;
    cx_digest_template_many(&m->template, m->n.pairs, m->n.out, NODE_COUNT);
}

/* Nodes of RFC 6962 (65 bytes) and of the original system (98) against bare ones (64). */
static void bench_prefixed(const char *what, size_t prefix_size)
{
    static const uint8_t prefix[64];
    templated m = {
        .n = {malloc(NODE_COUNT * 64), malloc(NODE_COUNT * sizeof(cx_digest)), cx_digest_chosen()}};
    CX_ASSERT(m.n.pairs != NULL && m.n.out != NULL);
    memset(m.n.pairs, 'x', NODE_COUNT * 64);
    cx_digest_template_init(&m.template, cx_bytes_from(prefix, prefix_size), 64,
                            cx_bytes_from(NULL, 0));
    side ours = {"cx_digest_template_many", hash_templated, &m};
    side theirs = {"cx_digest_pairs", hash_nodes, &m.n};
    compare("C1i", what, &ours, &theirs, NODE_COUNT, "nodes/s", 0);
    free(m.n.pairs);
    free(m.n.out);
}

/* --- messages of other sizes --------------------------------------------------------------- */

typedef struct texts {
    cx_bytes *messages;
    cx_digest *out;
    size_t count;
} texts;

static void hash_many(void *arg)
{
    texts *t = arg;
    cx_digest_many(t->messages, t->out, t->count);
}

static void hash_each(void *arg)
{
    texts *t = arg;
    for (size_t i = 0; i < t->count; i++)
        t->out[i] = cx_digest_of(t->messages[i]);
}

static void hash_portable(void *arg)
{
    texts *t = arg;
    cx_digest_many_with(CX_DIGEST_PORTABLE, t->messages, t->out, t->count);
}

static void bench_messages(const char *what, size_t size, size_t count, bool one_by_one)
{
    uint8_t *data = malloc(size + count);
    texts t = {malloc(count * sizeof(cx_bytes)), malloc(count * sizeof(cx_digest)), count};
    CX_ASSERT(data != NULL && t.messages != NULL && t.out != NULL);
    memset(data, 'x', size + count);
    /* Lengths vary a little, as lattice nodes do. */
    for (size_t i = 0; i < count; i++)
        t.messages[i] = cx_bytes_from(data + i, size - i * 37 % (size / 8 + 1));
    double bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += (double)t.messages[i].size;
    side ours = {one_by_one ? "cx_digest_of" : "cx_digest_many", one_by_one ? hash_each : hash_many,
                 &t};
    side theirs = {"EVP, context reused", hash_portable, &t};
    compare("C1i", what, &ours, &theirs, bytes, "B/s", 0);
    free(data);
    free(t.messages);
    free(t.out);
}

/* --- C2 ------------------------------------------------------------------------------------ */

enum { ITEM_COUNT = 400, MESSAGE_SIZE = 8192 };

typedef struct signatures {
    cx_ed25519_item items[ITEM_COUNT];
    bool good[ITEM_COUNT], good_by_sodium[ITEM_COUNT];
    uint8_t messages[ITEM_COUNT][MESSAGE_SIZE];
} signatures;

static void verify_many(void *arg)
{
    signatures *s = arg;
    cx_ed25519_verify_many(s->items, s->good, ITEM_COUNT);
}

static void verify_with_sodium(void *arg)
{
    signatures *s = arg;
    for (size_t i = 0; i < ITEM_COUNT; i++) {
        const cx_ed25519_item *item = &s->items[i];
        s->good_by_sodium[i] =
            crypto_sign_verify_detached(item->signature.bytes, item->message.data,
                                        item->message.size, item->key.bytes) == 0;
    }
}

static void bench_signatures(void)
{
    signatures *s = malloc(sizeof *s);
    uint8_t public_key[32], secret_key[64], seed[32] = {1};
    CX_ASSERT(s != NULL && sodium_init() >= 0);
    CX_ASSERT(crypto_sign_seed_keypair(public_key, secret_key, seed) == 0);
    for (size_t i = 0; i < ITEM_COUNT; i++) {
        memset(s->messages[i], (int)i, MESSAGE_SIZE);
        s->items[i].message = cx_bytes_from(s->messages[i], MESSAGE_SIZE);
        memcpy(s->items[i].key.bytes, public_key, sizeof public_key);
        CX_ASSERT(crypto_sign_detached(s->items[i].signature.bytes, NULL, s->messages[i],
                                       MESSAGE_SIZE, secret_key) == 0);
        if (i % 10 == 3)
            s->items[i].signature.bytes[5] ^= 1;
    }
    side ours = {"cx_ed25519_verify_many", verify_many, s};
    side theirs = {"crypto_sign_verify_detached", verify_with_sodium, s};
    compare("C2", "Ed25519, 8 KB messages / libsodium one by one", &ours, &theirs, ITEM_COUNT,
            "signatures/s", 1);
    CX_ASSERT(memcmp(s->good, s->good_by_sodium, sizeof s->good) == 0);
    free(s);
}

int main(void)
{
    printf("kernel %s\n", cx_digest_kernel_name(cx_digest_chosen()));
    bench_nodes();
    bench_prefixed("65-byte nodes / 64-byte nodes", 1);
    bench_prefixed("98-byte nodes / 64-byte nodes", 34);
    bench_messages("400-byte messages, many / one by one", 400, 20000, false);
    bench_messages("400-byte messages, one by one", 400, 20000, true);
    bench_messages("8 KB messages, many / one by one", 8192, 1000, false);
    bench_messages("1 MB messages, one by one", 1 << 20, 16, true);
    bench_signatures();
    return 0;
}
