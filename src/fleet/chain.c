/*
 * chain.c - the hash chain over the commits of a part (F7).
 *
 *     first head = SHA-256("cortex.fleet.part.v1" ‖ id (16) ‖ part (8))
 *     head       = SHA-256("cortex.fleet.commit.v1" ‖ prev (32) ‖ part (8) ‖ epoch (8) ‖ num (8) ‖
 *                          digest (32))
 *     digest     = SHA-256("cortex.fleet.change.v1" ‖ nonce (16) ‖ for each extent: file (8) ‖
 *                          chunk (8) ‖ start (8) ‖ size (8) ‖ bytes)
 *
 * and of the commit that states a base (F8):
 *
 *     digest     = SHA-256("cortex.fleet.base.v1" ‖ base (8) ‖ head before it (32) ‖ kept (8) ‖
 *                          SHA-256("cortex.fleet.kept.v1" ‖ for each commit that was kept before
 *                          it: num (8) ‖ epoch (8) ‖ prev (32) ‖ head (32) ‖ digest (32)))
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

void cx_fleet_kept_begin(cx_fleet_kept *kept)
{
    kept->count = 0;
    begin(&kept->hash, "cortex.fleet.kept.v1");
}

void cx_fleet_kept_add(cx_fleet_kept *kept, uint64_t num, uint64_t epoch, const cx_digest *prev,
                       const cx_digest *head, const cx_digest *digest)
{
    kept->count++;
    add_u64(&kept->hash, num);
    add_u64(&kept->hash, epoch);
    cx_sha256_add(&kept->hash, prev->bytes, sizeof prev->bytes);
    cx_sha256_add(&kept->hash, head->bytes, sizeof head->bytes);
    cx_sha256_add(&kept->hash, digest->bytes, sizeof digest->bytes);
}

cx_digest cx_fleet_kept_end(cx_fleet_kept *kept, uint64_t base, const cx_digest *base_head)
{
    cx_digest rows = cx_sha256_end(&kept->hash);
    cx_sha256 hash;
    begin(&hash, "cortex.fleet.base.v1");
    add_u64(&hash, base);
    cx_sha256_add(&hash, base_head->bytes, sizeof base_head->bytes);
    add_u64(&hash, kept->count);
    cx_sha256_add(&hash, rows.bytes, sizeof rows.bytes);
    return cx_sha256_end(&hash);
}
