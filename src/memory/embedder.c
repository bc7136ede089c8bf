/*
 * embedder.c - vectors from hashes (ledger.md §10.1).
 *
 *     block 0   H("hash-stub.v1" ‖ salt ‖ text), block i+1 = H(block i)
 *     numbers   8 a block: u32be / 2^31 - 1 in double, rounded to float
 *     length    each times float(1 / sqrt(sum of squares in double))
 */
#include "memory/embedder.h"

#include <math.h>

#include "base/api.h"
#include "crypto/api.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

#define DOMAIN "hash-stub.v1"

void cx_embedder_model(size_t dim, cx_str salt, char out[CX_EMBEDDER_MODEL_SIZE])
{
    static const char prefix[] = "hash-stub@";
    uint8_t size[8];
    cx_sha256 hash;
    cx_writer writer = cx_writer_over(size, sizeof size);
    cx_writer_uint(&writer, dim, sizeof size);
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, DOMAIN, sizeof DOMAIN - 1);
    cx_sha256_add(&hash, size, sizeof size);
    cx_sha256_add(&hash, salt.data, salt.size);
    cx_digest digest = cx_sha256_end(&hash);
    memcpy(out, prefix, sizeof prefix - 1);
    cx_hex_encode(cx_bytes_from(digest.bytes, 4), out + sizeof prefix - 1);
}

void cx_embedder_vector(cx_str text, cx_str salt, float *out, size_t dim)
{
    cx_sha256 hash;
    double squares = 0;
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, DOMAIN, sizeof DOMAIN - 1);
    cx_sha256_add(&hash, salt.data, salt.size);
    cx_sha256_add(&hash, text.data, text.size);
    cx_digest block = cx_sha256_end(&hash);
    for (size_t i = 0; i < dim; i++) {
        if (i != 0 && i % 8 == 0)
            block = cx_digest_of(cx_bytes_from(block.bytes, sizeof block.bytes));
        cx_reader reader = cx_reader_over(cx_bytes_from(block.bytes + i % 8 * 4, 4));
        double number = (double)cx_reader_u32(&reader) / 2147483648.0 - 1.0;
        out[i] = (float)number;
        squares += (double)out[i] * (double)out[i];
    }
    if (!(squares > 0))
        return;
    const float scale = (float)(1.0 / sqrt(squares));
    for (size_t i = 0; i < dim; i++)
        out[i] = out[i] * scale;
}
