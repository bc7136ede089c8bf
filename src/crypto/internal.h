/*
 * internal.h - shared by the SHA kernels; private to this module.
 *
 * There are two sorts of kernels.  A *unit* has the processor's own SHA instructions and hashes one
 * message, or two next to each other.  *Lanes* have nothing but vectors, with the same word of a
 * message in each place.  Both advance states over whole 64-byte blocks, and hash rows of 64-byte
 * messages.  Padding, bookkeeping and choice are in digest.c; which kernels there are, in
 * kernels_*.c, one file for each kind of processor.
 */
#ifndef CX_CRYPTO_INTERNAL_H
#define CX_CRYPTO_INTERNAL_H

#include "base/api.h"
#include "crypto/digest.h"

#if defined(__x86_64__) || defined(__i386__)
#define CX_DIGEST_X86 1
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define CX_DIGEST_ARM 1
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

void cx_sha1_plain_compress(uint32_t state[5], const uint8_t *data, size_t block_count);

/* --- kernels of a processor ------------------------------------------------------------------- */

/* Digests of rows of 64-byte messages; `out` may lie over `pairs`. */
typedef void cx_digest_pairs_kernel(const uint8_t *pairs, cx_digest *out, size_t count);
/* out[i] = the digest of the i-th message of `block_count` blocks at `blocks`, padding included,
 * when what came before led to `state`. */
typedef void cx_digest_padded_kernel(const uint32_t state[8], const uint8_t *blocks,
                                     size_t block_count, cx_digest *out, size_t count);
/* SHA-1, advanced over whole blocks. */
typedef void cx_sha1_compress(uint32_t state[5], const uint8_t *data, size_t block_count);

typedef struct cx_digest_unit {
    cx_digest_kernel kernel;
    cx_digest_compress *compress;
    cx_digest_compress_lanes *compress_two; /* each state in one piece */
    cx_digest_pairs_kernel *pairs;
    cx_digest_padded_kernel *padded;
    cx_sha1_compress *sha1_compress;
} cx_digest_unit;

typedef struct cx_digest_vectors {
    cx_digest_kernel kernel;
    size_t lane_count;  /* divides CX_DIGEST_LANES_MAX */
    size_t worth_alone; /* the fewest messages that are worth all lanes, without a unit */
    size_t worth_unit;  /* .. when a unit could hash them; 0 = a unit is always faster */
    /* Word by word (word_stride lane_count, lane_stride 1). */
    cx_digest_compress_lanes *compress;
    /* `count` is a multiple of lane_count. */
    cx_digest_pairs_kernel *pairs;
    cx_digest_padded_kernel *padded;
} cx_digest_vectors;

/* What a machine has, or what a kernel by name works with: NULL = nothing of this sort. */
typedef struct cx_digest_parts {
    const cx_digest_unit *unit;
    const cx_digest_vectors *vectors;
} cx_digest_parts;

/* In one file for each kind of processor: asks it.  Constant as long as the process lives. */
const cx_digest_parts *cx_digest_parts_find(void);
/* The same, asked once. */
const cx_digest_parts *cx_digest_parts_here(void);
/* Both are NULL for CX_DIGEST_PORTABLE. */
cx_digest_parts cx_digest_parts_of(cx_digest_kernel kernel);

/* The fewest messages for which the lanes of these parts are worth it. */
static inline size_t cx_digest_parts_worth(const cx_digest_parts *parts)
{
    return parts->unit != NULL ? parts->vectors->worth_unit : parts->vectors->worth_alone;
}

/* The kernels themselves, each defined on machines of its kind alone, and to be called only where
 * the processor has what they need. */
cx_digest_compress cx_digest_shani_compress, cx_digest_armv8_compress;
cx_digest_compress_lanes cx_digest_shani_compress_lanes, cx_digest_armv8_compress_lanes;
cx_digest_compress_lanes cx_digest_avx512_compress_lanes, cx_digest_neon_compress_lanes;
cx_digest_pairs_kernel cx_digest_shani_pairs, cx_digest_armv8_pairs;
cx_digest_pairs_kernel cx_digest_avx512_pairs, cx_digest_neon_pairs;
cx_digest_padded_kernel cx_digest_shani_padded, cx_digest_armv8_padded;
cx_digest_padded_kernel cx_digest_avx512_padded, cx_digest_neon_padded;
cx_sha1_compress cx_sha1_shani_compress, cx_sha1_armv8_compress;

#endif
