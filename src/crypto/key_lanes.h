/*
 * key_lanes.h - Ed25519 of eight signatures at once, one 64-bit lane each.  Private to this module.
 *
 * The lanes only ever say yes: what they do not prove good is put to libsodium, which decides.  So
 * a signature that they accept must be one that libsodium accepts (the rule in key.h), and nothing
 * else about them can change an answer.
 *
 * The kernels are written in the compilers' generic vectors, with three intrinsics.  A test
 * compiles them with CX_LANES_EMULATED, where those are computed lane by lane and the bounds of I1
 * in ed25519_avx512.c are asserted, so that the logic is proven on machines without AVX-512 too.
 */
#ifndef CX_CRYPTO_KEY_LANES_H
#define CX_CRYPTO_KEY_LANES_H

#include "base/api.h"
#include "crypto/key.h"

#if defined(__x86_64__)
#define CX_KEY_X86 1
#endif

enum { CX_KEY_LANES = 8, CX_SHA512_BLOCK_SIZE = 128 };

/* --- what the two kernels share ------------------------------------------------------------ */

#if defined(CX_KEY_X86) || defined(CX_LANES_EMULATED)

typedef uint64_t cx_lanes __attribute__((vector_size(64)));

#ifdef CX_LANES_EMULATED
#define CX_LANES_KERNEL
#else
#define CX_LANES_KERNEL __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512ifma")))
#endif
#define CX_LANES_INLINE CX_LANES_KERNEL __attribute__((always_inline)) static inline

#endif

/* --- the kernels --------------------------------------------------------------------------- */

/* Whether this machine has what the kernels need. */
bool cx_key_lanes_has(void);

/* Eight messages, each after 64 bytes of its own. */
typedef struct cx_sha512_eight {
    const uint8_t *heads[CX_KEY_LANES]; /* 64 bytes each */
    cx_bytes messages[CX_KEY_LANES];
} cx_sha512_eight;

/* out[i] = SHA-512(head i, message i) (FIPS 180-4). */
typedef void cx_key_hash(const cx_sha512_eight *in, uint8_t out[CX_KEY_LANES][64]);
cx_key_hash cx_sha512_avx512;

/* Eight signatures, word by word: word w of lane l is [w][l]. */
typedef struct cx_ed25519_eight {
    uint64_t keys[4][CX_KEY_LANES];   /* A as little-endian words, y below 2^255 - 19 */
    uint64_t points[4][CX_KEY_LANES]; /* R */
    /* S and H(R, A, M), both below L, in signed digits of base 16, the least first: -8..8. */
    int8_t response[64][CX_KEY_LANES];
    int8_t challenge[64][CX_KEY_LANES];
} cx_ed25519_eight;

/* Bit i: A is a point, and S·B - H·A encoded is R. */
typedef unsigned cx_key_equation(const cx_ed25519_eight *in);
cx_key_equation cx_ed25519_avx512;

/* Bit i: signature i is good.  Without it nothing is known: libsodium is to be asked. */
unsigned cx_key_lanes_with(const cx_ed25519_item *const items[CX_KEY_LANES], cx_key_hash *hash,
                           cx_key_equation *equation);

#endif
