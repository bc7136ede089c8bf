/*
 * digest_avx512.c - SHA-256 of sixteen messages at once, one 32-bit lane each.
 *
 * A vector holds the same word of sixteen messages, so the rounds are those of FIPS 180-4 §6.2.2
 * read as they stand.  Only two steps are special: rows of bytes become vectors by transposing
 * (rows in, words out), and every three-operand bit function is one VPTERNLOGD.
 *
 * The kernel is written in the compilers' generic vectors, with one intrinsic.  A test compiles
 * this file with CX_DIGEST_LANES_EMULATED, where that intrinsic is computed from its truth table,
 * so that the logic is proven on machines without AVX-512 too.  Only digest.c calls this file,
 * after asking the processor.
 */
#include "crypto/internal.h"
#include "crypto/sha2_rounds.h"

#if defined(CX_DIGEST_X86) || defined(CX_DIGEST_LANES_EMULATED)

#ifdef CX_DIGEST_LANES_EMULATED
#define KERNEL
#else
#include <immintrin.h>
#define KERNEL __attribute__((target("avx512f")))
#endif
#define KERNEL_INLINE KERNEL __attribute__((always_inline)) static inline

enum { LANES = 16 };

typedef uint32_t lanes __attribute__((vector_size(64)));

/* Truth tables of VPTERNLOGD: bit (a << 2 | b << 1 | c) is the result. */
enum { TABLE_XOR = 0x96, TABLE_CHOOSE = 0xca, TABLE_MAJORITY = 0xe8 };

#ifdef CX_DIGEST_LANES_EMULATED
#define TERM(table, bit, x, y, z) (((table) >> (bit)&1) != 0 ? ((x) & (y) & (z)) : ((x) & ~(x)))
#define TERNARY(a, b, c, table)                                           \
    (TERM(table, 0, ~(a), ~(b), ~(c)) | TERM(table, 1, ~(a), ~(b), (c)) | \
     TERM(table, 2, ~(a), (b), ~(c)) | TERM(table, 3, ~(a), (b), (c)) |   \
     TERM(table, 4, (a), ~(b), ~(c)) | TERM(table, 5, (a), ~(b), (c)) |   \
     TERM(table, 6, (a), (b), ~(c)) | TERM(table, 7, (a), (b), (c)))
#else
#define TERNARY(a, b, c, table) \
    ((lanes)_mm512_ternarylogic_epi32((__m512i)(a), (__m512i)(b), (__m512i)(c), (table)))
#endif

/* Compilers turn this into one VPRORD. */
#define RIGHT(x, n) ((x) >> (n) | (x) << (32 - (n)))

#define BIG_SIGMA_0(x) TERNARY(RIGHT(x, 2), RIGHT(x, 13), RIGHT(x, 22), TABLE_XOR)
#define BIG_SIGMA_1(x) TERNARY(RIGHT(x, 6), RIGHT(x, 11), RIGHT(x, 25), TABLE_XOR)
#define SMALL_SIGMA_0(x) TERNARY(RIGHT(x, 7), RIGHT(x, 18), (x) >> 3, TABLE_XOR)
#define SMALL_SIGMA_1(x) TERNARY(RIGHT(x, 17), RIGHT(x, 19), (x) >> 10, TABLE_XOR)

/* Vectors are only passed by address: how they travel by value depends on the target. */
KERNEL_INLINE void swap_bytes(lanes *x)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const lanes odd = (lanes){0} + 0x00ff00ffu;
    lanes left = RIGHT(*x, 24), right = RIGHT(*x, 8);
    *x = TERNARY(odd, left, right, TABLE_CHOOSE);
#else
    (void)x;
#endif
}

/* Interleavings within each 128-bit quarter, and of quarters. */
#define LOW_32(a, b) CX_SHUFFLE(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define HIGH_32(a, b) CX_SHUFFLE(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define LOW_64(a, b) CX_SHUFFLE(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define HIGH_64(a, b) CX_SHUFFLE(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define EVEN_QUARTERS(a, b) \
    CX_SHUFFLE(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define ODD_QUARTERS(a, b) \
    CX_SHUFFLE(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)

/* Four rows become four vectors; in quarter k, the j-th holds column 4k + j of the four rows. */
KERNEL_INLINE void transpose_quarters(lanes r[4])
{
    lanes low_01 = LOW_32(r[0], r[1]), high_01 = HIGH_32(r[0], r[1]);
    lanes low_23 = LOW_32(r[2], r[3]), high_23 = HIGH_32(r[2], r[3]);
    r[0] = LOW_64(low_01, low_23);
    r[1] = HIGH_64(low_01, low_23);
    r[2] = LOW_64(high_01, high_23);
    r[3] = HIGH_64(high_01, high_23);
}

/* w[i] = word i of the sixteen blocks. */
KERNEL_INLINE void load_blocks(const uint8_t *const *data, size_t offset, lanes w[16])
{
    lanes rows[16];
    for (size_t i = 0; i < LANES; i++)
        memcpy(&rows[i], data[i] + offset, sizeof rows[i]);
    for (size_t i = 0; i < LANES; i += 4)
        transpose_quarters(rows + i);
    for (size_t j = 0; j < 4; j++) {
        lanes even_01 = EVEN_QUARTERS(rows[j], rows[4 + j]);
        lanes even_23 = EVEN_QUARTERS(rows[8 + j], rows[12 + j]);
        lanes odd_01 = ODD_QUARTERS(rows[j], rows[4 + j]);
        lanes odd_23 = ODD_QUARTERS(rows[8 + j], rows[12 + j]);
        w[j] = EVEN_QUARTERS(even_01, even_23);
        w[4 + j] = EVEN_QUARTERS(odd_01, odd_23);
        w[8 + j] = ODD_QUARTERS(even_01, even_23);
        w[12 + j] = ODD_QUARTERS(odd_01, odd_23);
    }
    for (size_t i = 0; i < 16; i++)
        swap_bytes(&w[i]);
}

#define OPEN_STATE(s)                                                                         \
    lanes a = (s)[0], b = (s)[1], c = (s)[2], d = (s)[3], e = (s)[4], f = (s)[5], g = (s)[6], \
          h = (s)[7]
#define CLOSE_STATE(s) \
    do {               \
        (s)[0] += a;   \
        (s)[1] += b;   \
        (s)[2] += c;   \
        (s)[3] += d;   \
        (s)[4] += e;   \
        (s)[5] += f;   \
        (s)[6] += g;   \
        (s)[7] += h;   \
    } while (0)

/* Sixteen blocks, already as words; w is used up. */
KERNEL_INLINE void sixteen_blocks(lanes s[8], lanes w[16])
{
    OPEN_STATE(s);
#define WK(i) (w[i] + cx_digest_k[i])
    EIGHT_ROUNDS(0);
    EIGHT_ROUNDS(8);
#undef WK
#define WK(i) (EXPAND(i) + cx_digest_k[round + (i)])
    for (size_t round = 16; round < 64; round += 16) {
        EIGHT_ROUNDS(0);
        EIGHT_ROUNDS(8);
    }
#undef WK
    CLOSE_STATE(s);
}

/* The padding block of 64-byte messages: the same words in every lane, from a table. */
KERNEL_INLINE void sixteen_paddings(lanes s[8])
{
    OPEN_STATE(s);
#define WK(i) cx_digest_padding_wk[round + (i)]
    for (size_t round = 0; round < 64; round += 16) {
        EIGHT_ROUNDS(0);
        EIGHT_ROUNDS(8);
    }
#undef WK
    CLOSE_STATE(s);
}

KERNEL void cx_digest_avx512_compress_lanes(uint32_t *states, const uint8_t *const *data,
                                            size_t block_count)
{
    lanes s[8];
    memcpy(s, states, sizeof s);
    for (size_t i = 0; i < block_count; i++) {
        lanes w[16];
        load_blocks(data, i * CX_DIGEST_BLOCK_SIZE, w);
        sixteen_blocks(s, w);
    }
    memcpy(states, s, sizeof s);
}

/* Lane i of the state becomes out[i]: quarter k of vector j holds four words of message 4k + j. */
KERNEL_INLINE void store_digests(lanes s[8], cx_digest *out)
{
    uint8_t quarters[8][64];
    for (size_t i = 0; i < 8; i++)
        swap_bytes(&s[i]);
    transpose_quarters(s);
    transpose_quarters(s + 4);
    memcpy(quarters, s, sizeof quarters);
    for (size_t i = 0; i < LANES; i++) {
        memcpy(out[i].bytes, quarters[i % 4] + 16 * (i / 4), 16);
        memcpy(out[i].bytes + 16, quarters[4 + i % 4] + 16 * (i / 4), 16);
    }
}

/* Sixteen messages are read before their digests are written: `out` may lie over `pairs`. */
KERNEL void cx_digest_avx512_pairs(const uint8_t *pairs, cx_digest *out, size_t count)
{
    for (size_t done = 0; done + LANES <= count; done += LANES) {
        const uint8_t *data[LANES];
        lanes s[8], w[16];
        for (size_t i = 0; i < LANES; i++)
            data[i] = pairs + (done + i) * CX_DIGEST_BLOCK_SIZE;
        for (size_t i = 0; i < 8; i++)
            s[i] = (lanes){0} + cx_digest_first_state[i];
        load_blocks(data, 0, w);
        sixteen_blocks(s, w);
        sixteen_paddings(s);
        store_digests(s, out + done);
    }
}

KERNEL void cx_digest_avx512_padded(const uint32_t state[8], const uint8_t *blocks,
                                    size_t block_count, cx_digest *out, size_t count)
{
    const size_t stride = block_count * CX_DIGEST_BLOCK_SIZE;
    for (size_t done = 0; done + LANES <= count; done += LANES) {
        const uint8_t *data[LANES];
        lanes s[8], w[16];
        for (size_t i = 0; i < LANES; i++)
            data[i] = blocks + (done + i) * stride;
        for (size_t i = 0; i < 8; i++)
            s[i] = (lanes){0} + state[i];
        for (size_t at = 0; at < stride; at += CX_DIGEST_BLOCK_SIZE) {
            load_blocks(data, at, w);
            sixteen_blocks(s, w);
        }
        store_digests(s, out + done);
    }
}

#endif
