/*
 * digest.h - SHA-256 (FIPS 180-4).
 *
 * Kernels are chosen at run time.  With the SHA instructions of x86 or ARMv8 our own code hashes
 * everything, two messages side by side where there are two; with AVX-512 sixteen of them.  An ARM
 * processor without SHA instructions hashes four at a time with NEON and leaves a single one to
 * OpenSSL, which does everything where there is nothing else.  All give the same bytes and are
 * tested against each other.  Hashing cannot fail.  Thread-safe.
 */
#ifndef CX_CRYPTO_DIGEST_H
#define CX_CRYPTO_DIGEST_H

#include "base/api.h"

/* Of those that a machine has, the last one is its fastest. */
typedef enum cx_digest_kernel {
    CX_DIGEST_PORTABLE, /* OpenSSL libcrypto, whatever it chooses */
    CX_DIGEST_NEON,
    CX_DIGEST_ARMV8, /* its SHA instructions */
    CX_DIGEST_SHANI,
    CX_DIGEST_AVX512
} cx_digest_kernel;
#define CX_DIGEST_KERNEL_COUNT 5

/* Streaming state; copyable by assignment.  After cx_sha256_end it must be initialised again. */
typedef struct cx_sha256 {
    uint32_t state[8];
    uint64_t size_bytes;
    uint8_t block[64];
} cx_sha256;

void cx_sha256_init(cx_sha256 *hash);
void cx_sha256_add(cx_sha256 *hash, const void *data, size_t size_bytes);
cx_digest cx_sha256_end(cx_sha256 *hash);

cx_digest cx_digest_of(cx_bytes message);

/* out[i] = SHA-256(messages[i]), in whichever kernel is fastest here. */
void cx_digest_many(const cx_bytes *messages, cx_digest *out, size_t count);

/* A message in two pieces, so that a long body need not be copied after its prefix. */
typedef struct cx_digest_pieces {
    cx_bytes head; /* at most 63 bytes */
    cx_bytes body;
} cx_digest_pieces;

/* out[i] = SHA-256(head ‖ body) of messages[i]. */
void cx_digest_many_pieces(const cx_digest_pieces *messages, cx_digest *out, size_t count);

/* out[i] = SHA-256 of the 64 bytes at pairs + 64*i: Merkle parents of two children.  `out` may
 * overlay `pairs` from its start. */
void cx_digest_pairs(const uint8_t *pairs, cx_digest *out, size_t count);

/*
 * Many messages that are alike except for bytes of their own in one place, as Merkle nodes after
 * their prefix are.  Whole blocks before that place are hashed once; the rest goes through the
 * lanes, already padded.
 */
enum { CX_DIGEST_TEMPLATE_SIZE_MAX = 192 };

typedef struct cx_digest_template {
    uint32_t state[8];                            /* after the blocks that are hashed already */
    uint8_t message[CX_DIGEST_TEMPLATE_SIZE_MAX]; /* padded; own bytes are zero */
    uint32_t size_bytes;                          /* of the message without padding */
    uint32_t own_offset;
    uint32_t own_size;
    uint32_t done_count;  /* blocks hashed already */
    uint32_t block_count; /* blocks to come: 1 or 2 */
} cx_digest_template;

/* Messages are `before`, own_size bytes (1 to 64), `after`.  At most 183 bytes together, of which
 * two padded blocks must hold everything from the block on in which the own bytes begin. */
void cx_digest_template_init(cx_digest_template *template, cx_bytes before, size_t own_size,
                             cx_bytes after);

/* out[i] = SHA-256 of the message whose own bytes are at own + own_size*i.  With own_size >= 32,
 * `out` may overlay `own` from its start. */
void cx_digest_template_many(const cx_digest_template *template, const uint8_t *own, cx_digest *out,
                             size_t count);

/* Whether this machine can run a kernel; the one chosen; the same work on a named one (tests and
 * benchmarks).  Not to be called for a kernel that is absent. */
bool cx_digest_has(cx_digest_kernel kernel);
cx_digest_kernel cx_digest_chosen(void);
const char *cx_digest_kernel_name(cx_digest_kernel kernel);
void cx_digest_pairs_with(cx_digest_kernel kernel, const uint8_t *pairs, cx_digest *out,
                          size_t count);
void cx_digest_many_with(cx_digest_kernel kernel, const cx_bytes *messages, cx_digest *out,
                         size_t count);
void cx_digest_many_pieces_with(cx_digest_kernel kernel, const cx_digest_pieces *messages,
                                cx_digest *out, size_t count);
void cx_digest_template_many_with(cx_digest_kernel kernel, const cx_digest_template *template,
                                  const uint8_t *own, cx_digest *out, size_t count);
cx_digest cx_digest_of_with(cx_digest_kernel kernel, cx_bytes message);

#endif
