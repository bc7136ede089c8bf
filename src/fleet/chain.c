/*
 * chain.c - the hash chain over the commits of a part (F7).
 *
 *     first head = SHA-256("cortex.fleet.part.v1" ‖ id (16) ‖ part (8))
 *     head       = SHA-256("cortex.fleet.commit.v1" ‖ prev (32) ‖ part (8) ‖ epoch (8) ‖ num (8) ‖
 *                          digest (32))
 *     digest     = SHA-256("cortex.fleet.change.v1" ‖ nonce (16) ‖ for each extent: file (8) ‖
 *                          chunk (8) ‖ start (8) ‖ size (8) ‖ bytes)
 *
 * Integers are big-endian.  The nonce is random, and destroyed with the first of the bytes that is
 * overwritten: after an erasure nothing must be left by which a content could be tried.
 */
#include "crypto/api.h"
#include "fleet/internal.h"

static void add_u64(cx_sha256 *hash, uint64_t value)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> (56 - 8 * i));
    cx_sha256_add(hash, bytes, sizeof bytes);
}

static void begin(cx_sha256 *hash, const char *domain)
{
    cx_sha256_init(hash);
    cx_sha256_add(hash, domain, strlen(domain));
}

cx_digest cx_fleet_first_head(const uint8_t id[16], unsigned part)
{
    cx_sha256 hash;
    begin(&hash, "cortex.fleet.part.v1");
    cx_sha256_add(&hash, id, 16);
    add_u64(&hash, part);
    return cx_sha256_end(&hash);
}

cx_digest cx_fleet_next_head(const cx_digest *prev, unsigned part, uint64_t epoch, uint64_t num,
                             const cx_digest *digest)
{
    cx_sha256 hash;
    begin(&hash, "cortex.fleet.commit.v1");
    cx_sha256_add(&hash, prev->bytes, sizeof prev->bytes);
    add_u64(&hash, part);
    add_u64(&hash, epoch);
    add_u64(&hash, num);
    cx_sha256_add(&hash, digest->bytes, sizeof digest->bytes);
    return cx_sha256_end(&hash);
}

void cx_fleet_digest_begin(cx_sha256 *hash, const uint8_t nonce[CX_FLEET_NONCE_SIZE])
{
    begin(hash, "cortex.fleet.change.v1");
    cx_sha256_add(hash, nonce, CX_FLEET_NONCE_SIZE);
}

void cx_fleet_digest_add(cx_sha256 *hash, uint64_t file, uint64_t chunk, uint32_t start,
                         cx_bytes bytes)
{
    add_u64(hash, file);
    add_u64(hash, chunk);
    add_u64(hash, start);
    add_u64(hash, bytes.size);
    cx_sha256_add(hash, bytes.data, bytes.size);
}
