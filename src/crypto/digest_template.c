/*
 * digest_template.c - SHA-256 of many messages that differ in one place only.
 *
 * A Merkle node of RFC 6962 is 65 bytes, one of the original system 98: two blocks, of which each
 * message brings 64 bytes that are at no multiple of anything.  Messages are therefore laid out,
 * padding included, some at a time: the padding is written once for all of them, and the kernels
 * read what has left the store buffer long ago.
 *
 * Invariants:
 *   I1  message[] holds before ‖ zeros ‖ after, padded as FIPS 180-4 §5.1.1 says, and ends with
 *       the last block.
 *   I2  own bytes are copied before the digests of their group are written: `out` may overlay them.
 */
#include "crypto/digest.h"
#include "crypto/internal.h"

enum { BLOCK = CX_DIGEST_BLOCK_SIZE, GROUP = CX_DIGEST_LANES_MAX, TAIL_MAX = 2 * BLOCK };

static void store_size_bits(uint8_t *out, uint64_t size_bits)
{
    for (size_t i = 0; i < 8; i++)
        out[i] = (uint8_t)(size_bits >> (56 - 8 * i));
}

void cx_digest_template_init(cx_digest_template *template, cx_bytes before, size_t own_size,
                             cx_bytes after)
{
    size_t size = before.size + own_size + after.size;
    size_t block_count = (size + 9 + BLOCK - 1) / BLOCK, done_count = before.size / BLOCK;
    CX_ASSERT(own_size >= 1 && own_size <= BLOCK);
    CX_ASSERT(block_count * BLOCK <= CX_DIGEST_TEMPLATE_SIZE_MAX && block_count - done_count <= 2);
    memset(template, 0, sizeof *template);
    if (before.size != 0)
        memcpy(template->message, before.data, before.size);
    if (after.size != 0)
        memcpy(template->message + before.size + own_size, after.data, after.size);
    template->message[size] = 0x80;
    store_size_bits(template->message + block_count * BLOCK - 8, (uint64_t)size * 8);
    template->size_bytes = (uint32_t)size;
    template->own_offset = (uint32_t)before.size;
    template->own_size = (uint32_t)own_size;
    template->done_count = (uint32_t)done_count;
    template->block_count = (uint32_t)(block_count - done_count);
    memcpy(template->state, cx_digest_first_state, sizeof template->state);
    cx_digest_plain_compress(template->state, template->message, done_count);
}

/* The sizes of Merkle nodes are worth constant copies. */
static void copy_own(uint8_t *to, const uint8_t *own, size_t own_size)
{
    if (own_size == 64)
        memcpy(to, own, 64);
    else if (own_size == 32)
        memcpy(to, own, 32);
    else
        memcpy(to, own, own_size);
}

static void with_openssl(const cx_digest_template *template, const uint8_t *own, cx_digest *out,
                         size_t count)
{
    uint8_t message[CX_DIGEST_TEMPLATE_SIZE_MAX];
    memcpy(message, template->message, template->size_bytes);
    for (size_t i = 0; i < count; i++) {
        copy_own(message + template->own_offset, own + i * template->own_size, template->own_size);
        out[i] =
            cx_digest_of_with(CX_DIGEST_PORTABLE, cx_bytes_from(message, template->size_bytes));
    }
}

/* Digests of `left` messages that are laid out at `blocks`, after which there is space for more. */
static void hash_group(const cx_digest_parts *parts, const cx_digest_template *template,
                       const uint8_t *blocks, cx_digest *out, size_t left)
{
    const cx_digest_vectors *vectors = parts->vectors;
    if (vectors != NULL && (parts->unit == NULL || left >= vectors->worth_unit)) {
        cx_digest digests[GROUP];
        size_t lanes_count = (left + vectors->lane_count - 1) / vectors->lane_count;
        vectors->padded(template->state, blocks, template->block_count, digests,
                        lanes_count * vectors->lane_count);
        memcpy(out, digests, left * sizeof *out);
    } else {
        parts->unit->padded(template->state, blocks, template->block_count, out, left);
    }
}

static void with_parts(const cx_digest_parts *parts, const cx_digest_template *template,
                       const uint8_t *own, cx_digest *out, size_t count)
{
    uint8_t blocks[GROUP * TAIL_MAX];
    const size_t stride = template->block_count * BLOCK;
    const size_t at = template->own_offset - template->done_count * BLOCK;
    /* All of them when lanes will read them. */
    size_t laid_count = parts->vectors != NULL || count > GROUP ? GROUP : count;
    for (size_t i = 0; i < laid_count; i++)
        memcpy(blocks + i * stride, template->message + template->done_count * BLOCK, stride);
    for (size_t done = 0; done < count; done += GROUP) {
        size_t left = count - done < GROUP ? count - done : GROUP;
        for (size_t i = 0; i < left; i++)
            copy_own(blocks + i * stride + at, own + (done + i) * template->own_size,
                     template->own_size);
        hash_group(parts, template, blocks, out + done, left);
    }
}

void cx_digest_template_many_with(cx_digest_kernel kernel, const cx_digest_template *template,
                                  const uint8_t *own, cx_digest *out, size_t count)
{
    CX_ASSERT(cx_digest_has(kernel));
    cx_digest_parts parts = cx_digest_parts_of(kernel);
    if (count == 0)
        return;
    if (parts.vectors != NULL && count < cx_digest_parts_worth(&parts))
        parts.vectors = NULL;
    if (parts.unit != NULL || parts.vectors != NULL)
        with_parts(&parts, template, own, out, count);
    else
        with_openssl(template, own, out, count);
}

void cx_digest_template_many(const cx_digest_template *template, const uint8_t *own, cx_digest *out,
                             size_t count)
{
    cx_digest_template_many_with(cx_digest_chosen(), template, own, out, count);
}
