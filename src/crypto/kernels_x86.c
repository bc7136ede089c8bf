/*
 * kernels_x86.c - the SHA kernels of x86: SHA extensions, and sixteen lanes of AVX-512.
 */
#include "crypto/internal.h"

#ifdef CX_DIGEST_X86

static const cx_digest_unit shani = {
    .kernel = CX_DIGEST_SHANI,
    .compress = cx_digest_shani_compress,
    .compress_two = cx_digest_shani_compress_lanes,
    .pairs = cx_digest_shani_pairs,
    .padded = cx_digest_shani_padded,
    .sha1_compress = cx_sha1_shani_compress,
};

/* By instruction count, sixteen lanes cost about as much as six blocks with SHA-NI, or two
 * without. */
static const cx_digest_vectors avx512 = {
    .kernel = CX_DIGEST_AVX512,
    .lane_count = 16,
    .worth_alone = 2,
    .worth_unit = 6,
    .compress = cx_digest_avx512_compress_lanes,
    .pairs = cx_digest_avx512_pairs,
    .padded = cx_digest_avx512_padded,
};

const cx_digest_parts *cx_digest_parts_find(void)
{
    static const cx_digest_parts parts[2][2] = {{{NULL, NULL}, {NULL, &avx512}},
                                                {{&shani, NULL}, {&shani, &avx512}}};
    return &parts[cx_processor_has(CX_PROCESSOR_X86_SHA)]
                 [cx_processor_has(CX_PROCESSOR_X86_AVX512F)];
}

#endif
