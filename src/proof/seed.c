/*
 * seed.c - the D11 compiler seed (ledger.md §9.2).
 *
 *     cortex-1  H(intent_id ‖ actor ‖ OverallRoot ‖ mtx_digest ‖ H(model_id)), digests as raw bytes
 *     matrix-1  H of the same as text, digests in hex, with 1f between the parts
 *
 * cortex-1 has no separators: the intent's id has a fixed length and the digests have theirs, so
 * that the actor is what is left, and no two inputs give the same bytes.
 */
#include "proof/seed.h"

#include "crypto/api.h"
#include "proof/uri.h"

static void add_str(cx_sha256 *hash, cx_str text)
{
    cx_sha256_add(hash, text.data, text.size);
}

static void add_hex(cx_sha256 *hash, const cx_digest *digest)
{
    char hex[2 * sizeof digest->bytes];
    cx_hex_encode(cx_bytes_from(digest->bytes, sizeof digest->bytes), hex);
    cx_sha256_add(hash, hex, sizeof hex);
}

static cx_status cortex_seed(const cx_seed_input *input, const cx_digest *root,
                             const cx_digest *model, cx_digest *out, cx_err *err)
{
    cx_sha256 hash;
    cx_digest mtx;
    cx_id id;
    if (!cx_ulid_parse(input->intent_id, &id))
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "the intent's id is not a ULID of 26 characters");
    if (!cx_digest_parse(input->mtx_digest, &mtx))
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "mtx_digest is not 64 lower-case hex digits");
    cx_sha256_init(&hash);
    add_str(&hash, input->intent_id);
    add_str(&hash, input->actor);
    cx_sha256_add(&hash, root->bytes, sizeof root->bytes);
    cx_sha256_add(&hash, mtx.bytes, sizeof mtx.bytes);
    cx_sha256_add(&hash, model->bytes, sizeof model->bytes);
    *out = cx_sha256_end(&hash);
    return CX_SUCCESS;
}

static cx_digest matrix_seed(const cx_seed_input *input, const cx_digest *root,
                             const cx_digest *model)
{
    static const uint8_t separator = 0x1f;
    cx_sha256 hash;
    cx_sha256_init(&hash);
    add_str(&hash, input->intent_id);
    cx_sha256_add(&hash, &separator, 1);
    add_str(&hash, input->actor);
    cx_sha256_add(&hash, &separator, 1);
    add_hex(&hash, root);
    cx_sha256_add(&hash, &separator, 1);
    add_str(&hash, input->mtx_digest);
    cx_sha256_add(&hash, &separator, 1);
    add_hex(&hash, model);
    return cx_sha256_end(&hash);
}

cx_status cx_seed_make(cx_scheme scheme, const cx_seed_input *input, char out[CX_SEED_SIZE],
                       cx_err *err)
{
    static const cx_digest no_root = {{0}};
    const cx_digest *root = input->overall_root != NULL ? input->overall_root : &no_root;
    cx_digest model = cx_digest_of(cx_str_bytes(input->model_id)), seed;
    if (scheme == CX_SCHEME_CORTEX_1)
        CX_TRY(cortex_seed(input, root, &model, &seed, err));
    else
        seed = matrix_seed(input, root, &model);
    cx_hex_encode(cx_bytes_from(seed.bytes, sizeof seed.bytes), out);
    return CX_SUCCESS;
}
