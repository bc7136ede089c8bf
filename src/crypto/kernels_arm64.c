/*
 * kernels_arm64.c - the SHA kernels of 64-bit ARM: SHA instructions, and four lanes of NEON.
 */
#include "crypto/internal.h"

#ifdef CX_DIGEST_ARM

static const cx_digest_unit armv8 = {
    .kernel = CX_DIGEST_ARMV8,
    .compress = cx_digest_armv8_compress,
    .compress_two = cx_digest_armv8_compress_lanes,
    .pairs = cx_digest_armv8_pairs,
    .padded = cx_digest_armv8_padded,
    .sha1_compress = cx_sha1_armv8_compress,
};

static const cx_digest_vectors neon = {
    .kernel = CX_DIGEST_NEON,
    .lane_count = 4,
    .worth_alone = 2,
    .compress = cx_digest_neon_compress_lanes,
    .pairs = cx_digest_neon_pairs,
    .padded = cx_digest_neon_padded,
};

/* Every 64-bit processor has NEON; SHA instructions are optional. */
const cx_digest_parts *cx_digest_parts_find(void)
{
    static const cx_digest_parts parts[2] = {{NULL, &neon}, {&armv8, &neon}};
    return &parts[cx_processor_has(CX_PROCESSOR_ARM_SHA1 | CX_PROCESSOR_ARM_SHA2)];
}

#endif
