/*
 * internal.h - shared by the SHA kernels; private to this module.
 *
 * A kernel has two functions: it advances states over whole 64-byte blocks, and it hashes rows of
 * 64-byte messages.  Padding, bookkeeping and choice are in digest.c.
 */
#ifndef CX_CRYPTO_INTERNAL_H
#define CX_CRYPTO_INTERNAL_H

#include "base/api.h"
#include "crypto/digest.h"

#if defined(__x86_64__) || defined(__i386__)
#define CX_DIGEST_X86 1
#endif

enum {
    CX_DIGEST_BLOCK_SIZE = 64,
    CX_DIGEST_TAIL_SIZE_MAX = 2 * CX_DIGEST_BLOCK_SIZE,
    CX_DIGEST_LANES_MAX = 16
};

/* The initial hash value (FIPS 180-4 §5.3.3). */
extern const uint32_t cx_digest_first_state[8];
/* The round constants (FIPS 180-4 §4.2.2). */
extern const uint32_t cx_digest_k[64];
/* The round constants plus the expanded message words of the block that pads a 64-byte message:
 * 0x80, zeros, and 512 as the length in bits.  Its schedule never changes. */
extern const uint32_t cx_digest_padding_wk[64];

/* Advances one state over `block_count` blocks. */
typedef void cx_digest_compress(uint32_t state[8], const uint8_t *data, size_t block_count);
/* Advances as many states as the kernel has lanes, each over its own `block_count` blocks. */
typedef void cx_digest_compress_lanes(uint32_t *states, const uint8_t *const *data,
                                      size_t block_count);

/* How to drive a kernel that works on several messages next to each other. */
typedef struct cx_digest_lanes {
    size_t lane_count;  /* at most CX_DIGEST_LANES_MAX */
    size_t word_stride; /* word w of lane l is states[w * word_stride + l * lane_stride] */
    size_t lane_stride;
    size_t worth_count; /* fewer lanes than this with work are finished one by one */
    cx_digest_compress_lanes *compress;
    cx_digest_compress *compress_one;
} cx_digest_lanes;

/* Messages in one piece, or in two. */
typedef struct cx_digest_messages {
    const cx_bytes *whole; /* NULL: `pieces` */
    const cx_digest_pieces *pieces;
    size_t count;
} cx_digest_messages;

static inline cx_digest_pieces cx_digest_message_at(const cx_digest_messages *messages, size_t i)
{
    if (messages->whole == NULL)
        return messages->pieces[i];
    return (cx_digest_pieces){.body = messages->whole[i]};
}

/* out[i] = SHA-256 of the i-th; lanes take the next message as soon as theirs is done. */
void cx_digest_lanes_many(const cx_digest_lanes *lanes, const cx_digest_messages *messages,
                          cx_digest *out);

/* Writes the rest of a message after its whole blocks, padded (FIPS 180-4 §5.1.1); returns 1 or 2
 * blocks.  `rest` is not read when message_size is a multiple of a block. */
size_t cx_digest_make_tail(const uint8_t *rest, uint64_t message_size,
                           uint8_t tail[CX_DIGEST_TAIL_SIZE_MAX]);
/* The digest that a state is, its words `word_stride` apart. */
cx_digest cx_digest_of_state(const uint32_t *state, size_t word_stride);

/* In plain C, for machines without SHA instructions; the reference the tests begin with. */
cx_digest_compress cx_digest_plain_compress;

/* Defined on x86 alone, and to be called only where the processor has them. */
cx_digest_compress cx_digest_shani_compress;
/* Two lanes; each state in one piece (word_stride 1, lane_stride 8). */
cx_digest_compress_lanes cx_digest_shani_compress_lanes;
void cx_digest_shani_pairs(const uint8_t *pairs, cx_digest *out, size_t count);
/* out[i] = the digest of the i-th message of `block_count` blocks at `blocks`, padding included,
 * when what came before led to `state`. */
void cx_digest_shani_padded(const uint32_t state[8], const uint8_t *blocks, size_t block_count,
                            cx_digest *out, size_t count);

/* Sixteen lanes; word by word (word_stride 16, lane_stride 1). */
cx_digest_compress_lanes cx_digest_avx512_compress_lanes;
/* Sixteen messages at a time: `count` is a multiple of 16. */
void cx_digest_avx512_pairs(const uint8_t *pairs, cx_digest *out, size_t count);
/* As cx_digest_shani_padded; `count` is a multiple of 16. */
void cx_digest_avx512_padded(const uint32_t state[8], const uint8_t *blocks, size_t block_count,
                             cx_digest *out, size_t count);

/* SHA-1, advanced over whole blocks; the second where the processor has CX_DIGEST_SHANI. */
void cx_sha1_plain_compress(uint32_t state[5], const uint8_t *data, size_t block_count);
void cx_sha1_shani_compress(uint32_t state[5], const uint8_t *data, size_t block_count);

#endif
