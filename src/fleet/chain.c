/*
 * chain.c - the hash chain over the groups of a part (F7).
 *
 *     first head = SHA-256("cortex.fleet.part.v1" ‖ home id (16) ‖ part (1))
 *     head       = SHA-256("cortex.fleet.group.v1" ‖ prev (32) ‖ part (1) ‖ epoch (8) ‖ num (8) ‖
 *                          SHA-256(guarded bytes))
 *
 * Integers are big-endian.  Erasable parts are not in it, not even as a hash: after an erasure
 * nothing must be left by which a content could be tried.  The ledger's entries commit to them.
 */
#include "crypto/api.h"
#include "fleet/internal.h"

unsigned cx_fleet_part_of(cx_str actor)
{
    return cx_digest_of(cx_str_bytes(actor)).bytes[0];
}

static void add_u64(cx_sha256 *hash, uint64_t value)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> (56 - 8 * i));
    cx_sha256_add(hash, bytes, sizeof bytes);
}

cx_digest cx_fleet_first_head(const uint8_t home_id[16], unsigned part)
{
    static const char domain[] = "cortex.fleet.part.v1";
    uint8_t number = (uint8_t)part;
    cx_sha256 hash;
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, domain, sizeof domain - 1);
    cx_sha256_add(&hash, home_id, 16);
    cx_sha256_add(&hash, &number, 1);
    return cx_sha256_end(&hash);
}

cx_digest cx_fleet_next_head(const cx_digest *prev, unsigned part, uint64_t epoch, uint64_t num,
                             cx_bytes guarded)
{
    static const char domain[] = "cortex.fleet.group.v1";
    uint8_t number = (uint8_t)part;
    cx_digest contents = cx_digest_of(guarded);
    cx_sha256 hash;
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, domain, sizeof domain - 1);
    cx_sha256_add(&hash, prev->bytes, sizeof prev->bytes);
    cx_sha256_add(&hash, &number, 1);
    add_u64(&hash, epoch);
    add_u64(&hash, num);
    cx_sha256_add(&hash, contents.bytes, sizeof contents.bytes);
    return cx_sha256_end(&hash);
}
