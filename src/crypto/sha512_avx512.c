/*
 * sha512_avx512.c - SHA-512 of eight messages at once, one 64-bit lane each (FIPS 180-4 §6.4.2).
 *
 * As digest_avx512.c: a vector holds the same word of eight messages.  Lanes whose message is
 * shorter keep their state while the others go on.
 */
#include "crypto/key_lanes.h"
#include "crypto/sha2_rounds.h"

#if defined(CX_KEY_X86) || defined(CX_LANES_EMULATED)

#include <string.h>

#ifndef CX_LANES_EMULATED
#include <immintrin.h>
#endif

enum { BLOCK = CX_SHA512_BLOCK_SIZE, HEAD = 64 };

typedef cx_lanes lanes;

static const uint64_t first_state[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                        0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                                        0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

static const uint64_t round_constants[80] = {
    0x428a2f98d728ae22, 0x7137449123ef65cd, 0xb5c0fbcfec4d3b2f, 0xe9b5dba58189dbbc,
    0x3956c25bf348b538, 0x59f111f1b605d019, 0x923f82a4af194f9b, 0xab1c5ed5da6d8118,
    0xd807aa98a3030242, 0x12835b0145706fbe, 0x243185be4ee4b28c, 0x550c7dc3d5ffb4e2,
    0x72be5d74f27b896f, 0x80deb1fe3b1696b1, 0x9bdc06a725c71235, 0xc19bf174cf692694,
    0xe49b69c19ef14ad2, 0xefbe4786384f25e3, 0x0fc19dc68b8cd5b5, 0x240ca1cc77ac9c65,
    0x2de92c6f592b0275, 0x4a7484aa6ea6e483, 0x5cb0a9dcbd41fbd4, 0x76f988da831153b5,
    0x983e5152ee66dfab, 0xa831c66d2db43210, 0xb00327c898fb213f, 0xbf597fc7beef0ee4,
    0xc6e00bf33da88fc2, 0xd5a79147930aa725, 0x06ca6351e003826f, 0x142929670a0e6e70,
    0x27b70a8546d22ffc, 0x2e1b21385c26c926, 0x4d2c6dfc5ac42aed, 0x53380d139d95b3df,
    0x650a73548baf63de, 0x766a0abb3c77b2a8, 0x81c2c92e47edaee6, 0x92722c851482353b,
    0xa2bfe8a14cf10364, 0xa81a664bbc423001, 0xc24b8b70d0f89791, 0xc76c51a30654be30,
    0xd192e819d6ef5218, 0xd69906245565a910, 0xf40e35855771202a, 0x106aa07032bbd1b8,
    0x19a4c116b8d2d0c8, 0x1e376c085141ab53, 0x2748774cdf8eeb99, 0x34b0bcb5e19b48a8,
    0x391c0cb3c5c95a63, 0x4ed8aa4ae3418acb, 0x5b9cca4f7763e373, 0x682e6ff3d6b2b8a3,
    0x748f82ee5defb2fc, 0x78a5636f43172f60, 0x84c87814a1f0ab72, 0x8cc702081a6439ec,
    0x90befffa23631e28, 0xa4506cebde82bde9, 0xbef9a3f7b2c67915, 0xc67178f2e372532b,
    0xca273eceea26619c, 0xd186b8c721c0c207, 0xeada7dd6cde0eb1e, 0xf57d4f7fee6ed178,
    0x06f067aa72176fba, 0x0a637dc5a2c898a6, 0x113f9804bef90dae, 0x1b710b35131c471b,
    0x28db77f523047d84, 0x32caab7b40c72493, 0x3c9ebe0a15c9bebc, 0x431d67c49c100d4c,
    0x4cc5d4becb3e42b6, 0x597f299cfc657e2a, 0x5fcb6fab3ad6faec, 0x6c44198c4a475817,
};

/* --- bit functions ------------------------------------------------------------------------- */

/* Truth tables of VPTERNLOGQ: bit (a << 2 | b << 1 | c) is the result. */
enum { TABLE_XOR = 0x96, TABLE_CHOOSE = 0xca, TABLE_MAJORITY = 0xe8 };

#ifdef CX_LANES_EMULATED
#define TERM(table, bit, x, y, z) (((table) >> (bit)&1) != 0 ? ((x) & (y) & (z)) : ((x) & ~(x)))
#define TERNARY(a, b, c, table)                                           \
    (TERM(table, 0, ~(a), ~(b), ~(c)) | TERM(table, 1, ~(a), ~(b), (c)) | \
     TERM(table, 2, ~(a), (b), ~(c)) | TERM(table, 3, ~(a), (b), (c)) |   \
     TERM(table, 4, (a), ~(b), ~(c)) | TERM(table, 5, (a), ~(b), (c)) |   \
     TERM(table, 6, (a), (b), ~(c)) | TERM(table, 7, (a), (b), (c)))
#else
#define TERNARY(a, b, c, table) \
    ((lanes)_mm512_ternarylogic_epi64((__m512i)(a), (__m512i)(b), (__m512i)(c), (table)))
#endif

/* Compilers turn this into one VPRORQ. */
#define RIGHT(x, n) ((x) >> (n) | (x) << (64 - (n)))

#define BIG_SIGMA_0(x) TERNARY(RIGHT(x, 28), RIGHT(x, 34), RIGHT(x, 39), TABLE_XOR)
#define BIG_SIGMA_1(x) TERNARY(RIGHT(x, 14), RIGHT(x, 18), RIGHT(x, 41), TABLE_XOR)
#define SMALL_SIGMA_0(x) TERNARY(RIGHT(x, 1), RIGHT(x, 8), (x) >> 7, TABLE_XOR)
#define SMALL_SIGMA_1(x) TERNARY(RIGHT(x, 19), RIGHT(x, 61), (x) >> 6, TABLE_XOR)

/* --- blocks -------------------------------------------------------------------------------- */

#define LOW_64(a, b) CX_SHUFFLE(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define HIGH_64(a, b) CX_SHUFFLE(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#define EVEN_QUARTERS(a, b) CX_SHUFFLE(a, b, 0, 1, 4, 5, 8, 9, 12, 13)
#define ODD_QUARTERS(a, b) CX_SHUFFLE(a, b, 2, 3, 6, 7, 10, 11, 14, 15)

/* Vectors are only passed by address: how they travel by value depends on the target. */
CX_LANES_INLINE void swap_bytes(lanes *x)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const lanes odd_bytes = (lanes){0} + 0x00ff00ff00ff00ffu;
    const lanes odd_pairs = (lanes){0} + 0x0000ffff0000ffffu;
    lanes v = *x;
    v = (v >> 8 & odd_bytes) | (v & odd_bytes) << 8;
    v = (v >> 16 & odd_pairs) | (v & odd_pairs) << 16;
    *x = RIGHT(v, 32);
#else
    (void)x;
#endif
}

/* Eight rows become eight columns: r[i] = word i of the eight rows. */
CX_LANES_INLINE void transpose(lanes r[8])
{
    lanes pairs[8], quads[8];
    for (size_t i = 0; i < 8; i += 2) {
        pairs[i] = LOW_64(r[i], r[i + 1]);
        pairs[i + 1] = HIGH_64(r[i], r[i + 1]);
    }
    /* pairs[2k + h]: words h, h+2, h+4, h+6 of rows 2k and 2k+1, each two next to each other. */
    for (size_t h = 0; h < 2; h++) {
        quads[h] = EVEN_QUARTERS(pairs[h], pairs[2 + h]);         /* words h, h+4; rows 0-3 */
        quads[2 + h] = ODD_QUARTERS(pairs[h], pairs[2 + h]);      /* words h+2, h+6 */
        quads[4 + h] = EVEN_QUARTERS(pairs[4 + h], pairs[6 + h]); /* rows 4-7 */
        quads[6 + h] = ODD_QUARTERS(pairs[4 + h], pairs[6 + h]);
    }
    for (size_t w = 0; w < 4; w++) {
        r[w] = EVEN_QUARTERS(quads[w], quads[4 + w]);
        r[4 + w] = ODD_QUARTERS(quads[w], quads[4 + w]);
    }
}

/* w[i] = word i of the eight blocks. */
CX_LANES_INLINE void load_blocks(const uint8_t *const data[CX_KEY_LANES], lanes w[16])
{
    for (size_t i = 0; i < CX_KEY_LANES; i++) {
        memcpy(&w[i], data[i], sizeof w[i]);
        memcpy(&w[8 + i], data[i] + BLOCK / 2, sizeof w[i]);
    }
    transpose(w);
    transpose(w + 8);
    for (size_t i = 0; i < 16; i++)
        swap_bytes(&w[i]);
}

/* Eight blocks, already as words; w is used up.  Lanes that are not `active` keep their state. */
CX_LANES_INLINE void eight_blocks(lanes s[8], lanes w[16], const lanes *active)
{
    lanes a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
#define WK(i) (w[i] + round_constants[i])
    EIGHT_ROUNDS(0);
    EIGHT_ROUNDS(8);
#undef WK
#define WK(i) (EXPAND(i) + round_constants[round + (i)])
    for (size_t round = 16; round < 80; round += 16) {
        EIGHT_ROUNDS(0);
        EIGHT_ROUNDS(8);
    }
#undef WK
    const lanes sums[8] = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; i++)
        s[i] += sums[i] & *active;
}

/* --- messages ------------------------------------------------------------------------------ */

/* A message as blocks: whole ones of head and message, and what is padded. */
typedef struct feed {
    uint8_t first[BLOCK];    /* the head and what follows, when that is a whole block */
    uint8_t tail[2 * BLOCK]; /* the rest, 0x80, zeros, the length in bits */
    const uint8_t *message;
    size_t whole_count, count; /* blocks */
} feed;

static void feed_init(feed *f, const uint8_t *head, cx_bytes message)
{
    size_t total = HEAD + message.size, rest = total % BLOCK;
    uint64_t bits_high = (uint64_t)total >> 61, bits_low = (uint64_t)total << 3;
    f->message = message.data;
    f->whole_count = total / BLOCK;
    memset(f->tail, 0, sizeof f->tail);
    if (f->whole_count == 0) {
        memcpy(f->tail, head, HEAD);
        if (message.size != 0)
            memcpy(f->tail + HEAD, message.data, message.size);
    } else {
        memcpy(f->first, head, HEAD);
        memcpy(f->first + HEAD, message.data, BLOCK - HEAD);
        if (rest != 0)
            memcpy(f->tail, message.data + message.size - rest, rest);
    }
    f->tail[rest] = 0x80;
    size_t tail_size = rest + 17 > BLOCK ? 2 * BLOCK : BLOCK;
    for (size_t i = 0; i < 8; i++) {
        f->tail[tail_size - 1 - i] = (uint8_t)(bits_low >> 8 * i);
        f->tail[tail_size - 9 - i] = (uint8_t)(bits_high >> 8 * i);
    }
    f->count = f->whole_count + tail_size / BLOCK;
}

/* Block i; after the last any block, for a lane that is not active. */
static const uint8_t *feed_block(const feed *f, size_t i)
{
    if (i < f->whole_count)
        return i == 0 ? f->first : f->message + i * BLOCK - HEAD;
    return i < f->count ? f->tail + (i - f->whole_count) * BLOCK : f->tail;
}

CX_LANES_KERNEL static void store_digests(const lanes s[8], uint8_t out[CX_KEY_LANES][64])
{
    for (size_t w = 0; w < 8; w++)
        for (size_t lane = 0; lane < CX_KEY_LANES; lane++)
            for (size_t i = 0; i < 8; i++)
                out[lane][8 * w + i] = (uint8_t)(s[w][lane] >> (56 - 8 * i));
}

CX_LANES_KERNEL void cx_sha512_avx512(const cx_sha512_eight *in, uint8_t out[CX_KEY_LANES][64])
{
    feed feeds[CX_KEY_LANES];
    size_t count = 0;
    lanes s[8];
    for (size_t i = 0; i < CX_KEY_LANES; i++) {
        feed_init(&feeds[i], in->heads[i], in->messages[i]);
        count = feeds[i].count > count ? feeds[i].count : count;
    }
    for (size_t i = 0; i < 8; i++)
        s[i] = (lanes){0} + first_state[i];
    for (size_t i = 0; i < count; i++) {
        const uint8_t *data[CX_KEY_LANES];
        uint64_t busy[CX_KEY_LANES];
        lanes w[16], active;
        for (size_t lane = 0; lane < CX_KEY_LANES; lane++) {
            data[lane] = feed_block(&feeds[lane], i);
            busy[lane] = i < feeds[lane].count ? UINT64_MAX : 0;
        }
        memcpy(&active, busy, sizeof active);
        load_blocks(data, w);
        eight_blocks(s, w, &active);
    }
    store_digests(s, out);
}

#endif
