/*
 * digest.c - SHA-256 (FIPS 180-4): choosing a kernel, padding, streaming.
 *
 * Invariants:
 *   I1  every kernel gives the bytes of FIPS 180-4; the choice changes time only.
 *   I2  hashing never fails: it allocates nothing but OpenSSL's context, and without one our own C
 *       code answers.
 *   I3  in cx_sha256, the last size_bytes % 64 bytes added wait in `block`; all before them are in
 *       `state`.
 */
#include "crypto/digest.h"

#include <pthread.h>
#include <stdatomic.h>

#include "crypto/internal.h"
#include "crypto/openssl.h"

enum { BLOCK = CX_DIGEST_BLOCK_SIZE };

const uint32_t cx_digest_first_state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

const uint32_t cx_digest_k[64] __attribute__((aligned(64))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

const uint32_t cx_digest_padding_wk[64] __attribute__((aligned(64))) = {
    0xc28a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf374,
    0x649b69c1, 0xf0fe4786, 0x0fe1edc6, 0x240cf254, 0x4fe9346f, 0x6cc984be, 0x61b9411e, 0x16f988fa,
    0xf2c65152, 0xa88e5a6d, 0xb019fc65, 0xb9d99ec7, 0x9a1231c3, 0xe70eeaa0, 0xfdb1232b, 0xc7353eb0,
    0x3069bad5, 0xcb976d5f, 0x5a0f118f, 0xdc1eeefd, 0x0a35b689, 0xde0b7a04, 0x58f4ca9d, 0xe15d5b16,
    0x007f3e86, 0x37088980, 0xa507ea32, 0x6fab9537, 0x17406110, 0x0d8cd6f1, 0xcdaa3b6d, 0xc0bbbe37,
    0x83613bda, 0xdb48a363, 0x0b02e931, 0x6fd15ca7, 0x521afaca, 0x31338431, 0x6ed41a95, 0x6d437890,
    0xc39c91f2, 0x9eccabbd, 0xb5c9a0e6, 0x532fb63c, 0xd2c741c6, 0x07237ea3, 0xa4954b68, 0x4c191d76,
};

/* --- what the machine has ------------------------------------------------------------------ */

/* Relaxed: what is pointed to is constant, and two threads that ask at the same time find the
 * same. */
static inline const cx_digest_parts *parts_here(void)
{
    static _Atomic(const cx_digest_parts *) known;
    const cx_digest_parts *found = atomic_load_explicit(&known, memory_order_relaxed);
    if (CX_UNLIKELY(found == NULL)) {
        found = cx_digest_parts_find();
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return found;
}

const cx_digest_parts *cx_digest_parts_here(void)
{
    return parts_here();
}

cx_digest_parts cx_digest_parts_of(cx_digest_kernel kernel)
{
    const cx_digest_parts *here = parts_here();
    cx_digest_parts parts = {NULL, NULL};
    if (here->vectors != NULL && here->vectors->kernel == kernel)
        parts.vectors = here->vectors;
    bool helps = parts.vectors != NULL && parts.vectors->worth_unit != 0;
    if (here->unit != NULL && (here->unit->kernel == kernel || helps))
        parts.unit = here->unit;
    return parts;
}

bool cx_digest_has(cx_digest_kernel kernel)
{
    const cx_digest_parts parts = cx_digest_parts_of(kernel);
    return kernel == CX_DIGEST_PORTABLE || parts.unit != NULL || parts.vectors != NULL;
}

cx_digest_kernel cx_digest_chosen(void)
{
    const cx_digest_parts *here = parts_here();
    cx_digest_kernel chosen = here->unit != NULL ? here->unit->kernel : CX_DIGEST_PORTABLE;
    return here->vectors != NULL && here->vectors->kernel > chosen ? here->vectors->kernel : chosen;
}

const char *cx_digest_kernel_name(cx_digest_kernel kernel)
{
    switch (kernel) {
    case CX_DIGEST_PORTABLE: return "portable";
    case CX_DIGEST_NEON: return "neon";
    case CX_DIGEST_ARMV8: return "armv8-sha2";
    case CX_DIGEST_SHANI: return "sha-ni";
    case CX_DIGEST_AVX512: return "avx-512";
    }
    return "unknown";
}

static void store_u32(uint8_t *data, uint32_t value)
{
    for (size_t i = 0; i < 4; i++)
        data[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* The fastest way to advance one state. */
static cx_digest_compress *compress_one(void)
{
    const cx_digest_unit *unit = parts_here()->unit;
    return unit != NULL ? unit->compress : cx_digest_plain_compress;
}

/* --- padding (FIPS 180-4 §5.1.1) ----------------------------------------------------------- */

size_t cx_digest_make_tail(const uint8_t *rest, uint64_t message_size,
                           uint8_t tail[CX_DIGEST_TAIL_SIZE_MAX])
{
    size_t rest_size = (size_t)(message_size % BLOCK);
    size_t block_count = rest_size < BLOCK - 8 ? 1 : 2;
    uint64_t size_bits = message_size << 3;
    if (rest_size != 0)
        memcpy(tail, rest, rest_size);
    memset(tail + rest_size, 0, block_count * BLOCK - rest_size);
    tail[rest_size] = 0x80;
    store_u32(tail + block_count * BLOCK - 8, (uint32_t)(size_bits >> 32));
    store_u32(tail + block_count * BLOCK - 4, (uint32_t)size_bits);
    return block_count;
}

cx_digest cx_digest_of_state(const uint32_t *state, size_t word_stride)
{
    cx_digest digest;
    for (size_t i = 0; i < 8; i++)
        store_u32(digest.bytes + 4 * i, state[i * word_stride]);
    return digest;
}

static cx_digest digest_with(cx_digest_compress *compress, cx_bytes message)
{
    uint32_t state[8];
    uint8_t tail[CX_DIGEST_TAIL_SIZE_MAX];
    size_t whole = message.size / BLOCK;
    memcpy(state, cx_digest_first_state, sizeof state);
    if (whole != 0)
        compress(state, message.data, whole);
    const uint8_t *rest = message.size % BLOCK == 0 ? NULL : message.data + whole * BLOCK;
    size_t tail_count = cx_digest_make_tail(rest, message.size, tail);
    compress(state, tail, tail_count);
    return cx_digest_of_state(state, 1);
}

/* --- OpenSSL ------------------------------------------------------------------------------- */

static struct {
    pthread_once_t once;
    const cx_openssl *library; /* NULL = not usable */
    pthread_key_t key;         /* each thread's EVP_MD_CTX, freed when it ends */
    EVP_MD *sha256; /* fetched once: a fetch costs several hashes; lives as long as the process */
} openssl = {.once = PTHREAD_ONCE_INIT};

static void free_context(void *context)
{
    openssl.library->EVP_MD_CTX_free(context);
}

static void open_openssl(void)
{
    const cx_openssl *library = cx_openssl_get();
    if (library == NULL)
        return;
    openssl.sha256 = library->EVP_MD_fetch(NULL, "SHA256", NULL);
    if (openssl.sha256 != NULL && pthread_key_create(&openssl.key, free_context) == 0)
        openssl.library = library;
}

/* This thread's context, or NULL when there can be none. */
static EVP_MD_CTX *thread_context(void)
{
    if (pthread_once(&openssl.once, open_openssl) != 0 || openssl.library == NULL)
        return NULL;
    EVP_MD_CTX *context = pthread_getspecific(openssl.key);
    if (context != NULL)
        return context;
    context = openssl.library->EVP_MD_CTX_new();
    if (context != NULL && pthread_setspecific(openssl.key, context) != 0) {
        openssl.library->EVP_MD_CTX_free(context);
        context = NULL;
    }
    return context;
}

/* I2: whatever OpenSSL cannot do, our own code does. */
static cx_digest openssl_digest(EVP_MD_CTX *context, cx_bytes message)
{
    const cx_openssl *library = openssl.library;
    cx_digest digest;
    unsigned size = 0;
    if (context == NULL || library->EVP_DigestInit_ex2(context, openssl.sha256, NULL) != 1 ||
        library->EVP_DigestUpdate(context, message.data, message.size) != 1 ||
        library->EVP_DigestFinal_ex(context, digest.bytes, &size) != 1)
        return digest_with(cx_digest_plain_compress, message);
    CX_ASSERT(size == sizeof digest.bytes);
    return digest;
}

/* --- one kernel by name -------------------------------------------------------------------- */

cx_digest cx_digest_of_with(cx_digest_kernel kernel, cx_bytes message)
{
    CX_DEBUG_ASSERT(cx_digest_has(kernel));
    const cx_digest_parts parts = cx_digest_parts_of(kernel);
    if (parts.unit != NULL)
        return digest_with(parts.unit->compress, message);
    /* A single message has no use for lanes. */
    return openssl_digest(thread_context(), message);
}

static cx_digest digest_of_pieces(cx_digest_kernel kernel, const cx_digest_pieces *message)
{
    if (message->head.size == 0)
        return cx_digest_of_with(kernel, message->body);
    cx_sha256 hash;
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, message->head.data, message->head.size);
    cx_sha256_add(&hash, message->body.data, message->body.size);
    return cx_sha256_end(&hash);
}

static void many_with(cx_digest_kernel kernel, const cx_digest_messages *messages, cx_digest *out)
{
    CX_ASSERT(cx_digest_has(kernel));
    const cx_digest_parts parts = cx_digest_parts_of(kernel);
    if (parts.vectors != NULL && messages->count >= cx_digest_parts_worth(&parts)) {
        const cx_digest_lanes lanes = {parts.vectors->lane_count,
                                       parts.vectors->lane_count,
                                       1,
                                       cx_digest_parts_worth(&parts),
                                       parts.vectors->compress,
                                       parts.unit != NULL ? parts.unit->compress
                                                          : cx_digest_plain_compress};
        cx_digest_lanes_many(&lanes, messages, out);
        return;
    }
    if (parts.unit != NULL && messages->count > 1) {
        const cx_digest_lanes two = {2, 1, 8, 2, parts.unit->compress_two, parts.unit->compress};
        cx_digest_lanes_many(&two, messages, out);
        return;
    }
    for (size_t i = 0; i < messages->count; i++) {
        const cx_digest_pieces message = cx_digest_message_at(messages, i);
        out[i] = digest_of_pieces(kernel, &message);
    }
}

void cx_digest_many_with(cx_digest_kernel kernel, const cx_bytes *messages, cx_digest *out,
                         size_t count)
{
    many_with(kernel, &(cx_digest_messages){.whole = messages, .count = count}, out);
}

void cx_digest_many_pieces_with(cx_digest_kernel kernel, const cx_digest_pieces *messages,
                                cx_digest *out, size_t count)
{
    many_with(kernel, &(cx_digest_messages){.pieces = messages, .count = count}, out);
}

/* Each pair is read before its digest is written: see the overlay rule in digest.h. */
static void pairs_with_openssl(const uint8_t *pairs, cx_digest *out, size_t count)
{
    EVP_MD_CTX *context = thread_context();
    for (size_t i = 0; i < count; i++)
        out[i] = openssl_digest(context, cx_bytes_from(pairs + i * BLOCK, BLOCK));
}

void cx_digest_pairs_with(cx_digest_kernel kernel, const uint8_t *pairs, cx_digest *out,
                          size_t count)
{
    CX_ASSERT(cx_digest_has(kernel));
    size_t done = 0;
    if (count == 0)
        return;
    const cx_digest_parts parts = cx_digest_parts_of(kernel);
    if (parts.vectors != NULL) {
        done = count - count % parts.vectors->lane_count;
        parts.vectors->pairs(pairs, out, done);
    }
    if (parts.unit != NULL) {
        parts.unit->pairs(pairs + done * BLOCK, out + done, count - done);
        return;
    }
    pairs_with_openssl(pairs + done * BLOCK, out + done, count - done);
}

/* --- the fastest kernel -------------------------------------------------------------------- */

cx_digest cx_digest_of(cx_bytes message)
{
    return cx_digest_of_with(cx_digest_chosen(), message);
}

void cx_digest_many(const cx_bytes *messages, cx_digest *out, size_t count)
{
    cx_digest_many_with(cx_digest_chosen(), messages, out, count);
}

void cx_digest_many_pieces(const cx_digest_pieces *messages, cx_digest *out, size_t count)
{
    cx_digest_many_pieces_with(cx_digest_chosen(), messages, out, count);
}

void cx_digest_pairs(const uint8_t *pairs, cx_digest *out, size_t count)
{
    cx_digest_pairs_with(cx_digest_chosen(), pairs, out, count);
}

/* --- streaming ----------------------------------------------------------------------------- */

void cx_sha256_init(cx_sha256 *hash)
{
    memcpy(hash->state, cx_digest_first_state, sizeof hash->state);
    hash->size_bytes = 0;
}

void cx_sha256_add(cx_sha256 *hash, const void *data, size_t size_bytes)
{
    const uint8_t *from = data;
    size_t waiting = (size_t)(hash->size_bytes % BLOCK);
    if (size_bytes == 0)
        return;
    hash->size_bytes += size_bytes;
    if (waiting + size_bytes < BLOCK) {
        memcpy(hash->block + waiting, from, size_bytes);
        return;
    }
    cx_digest_compress *compress = compress_one();
    if (waiting != 0) {
        size_t missing = BLOCK - waiting;
        memcpy(hash->block + waiting, from, missing);
        compress(hash->state, hash->block, 1);
        from += missing;
        size_bytes -= missing;
    }
    size_t whole = size_bytes / BLOCK;
    if (whole != 0)
        compress(hash->state, from, whole);
    if (size_bytes % BLOCK != 0)
        memcpy(hash->block, from + whole * BLOCK, size_bytes % BLOCK);
}

cx_digest cx_sha256_end(cx_sha256 *hash)
{
    uint8_t tail[CX_DIGEST_TAIL_SIZE_MAX];
    size_t tail_count = cx_digest_make_tail(hash->block, hash->size_bytes, tail);
    compress_one()(hash->state, tail, tail_count);
    return cx_digest_of_state(hash->state, 1);
}
