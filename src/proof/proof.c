/*
 * proof.c - the bytes of a MultiProof (ledger.md §8.1 cortex-1, §8.2 matrix-1).
 *
 *     cortex-1   {0: 2, 1: namespace, 2: root, 3: [SingleProof...], 4: "cortex-1", 5: [pool...]}
 *                SingleProof {0: key, 1: leaf or null, 2: [index...], 3: [key, value] (o),
 *                             4: value (o)}
 *     matrix-1   {0: 1, 1: namespace, 2: root,
 *                 3: [{"KeyHash", "Siblings": 256 of them, "ValueHash"}]}
 *
 * The third, compact one is proof_compact.c; reading is proof_read.c, verifying proof_verify.c.
 */
#include "base/api.h"
#include "proof/proof_internal.h"

static const cx_digest zeros;

cx_str cx_namespace_name(cx_namespace name)
{
    switch (name) {
    case CX_NAMESPACE_EDGES: return CX_STR("edges");
    case CX_NAMESPACE_MEMORIES: return CX_STR("memories");
    case CX_NAMESPACE_ANY: break;
    }
    return CX_STR("");
}

/* --- reading --------------------------------------------------------------------------------- */

/* Siblings shared through the pool become a list of each key's own. */
static cx_status expand_pool(const cx_raw_proof *raw, cx_proof_item *items, cx_arena *arena,
                             cx_err *err)
{
    for (size_t i = 0; i < raw->count; i++) {
        size_t count = raw->items[i].sibling_count;
        cx_digest *siblings = CX_ARENA_ARRAY(arena, cx_digest, count + 1);
        if (siblings == NULL)
            return cx_fail_nomem(err);
        for (size_t k = 0; k < count; k++)
            memcpy(siblings[k].bytes, cx_raw_sibling(raw, &raw->items[i], k), sizeof *siblings);
        items[i].path.sibling_count = count;
        items[i].path.siblings = siblings;
    }
    return CX_SUCCESS;
}

/* Items, when the form is good. */
static cx_status read_items(cx_raw_proof *raw, cx_arena *arena, cx_proof_item **out,
                            cx_finding *form, cx_err *err)
{
    cx_proof_item *items = CX_ARENA_ARRAY(arena, cx_proof_item, raw->count + 1);
    cx_trail *trails = NULL;
    size_t twice;
    if (items == NULL)
        return cx_fail_nomem(err);
    if (raw->form == CX_FORM_COMPACT)
        CX_TRY(cx_trails_of(raw, arena, &trails, &twice, err));
    CX_TRY(cx_raw_proof_check_form(raw, trails, arena, form, err));
    if (form->verdict == CX_HOLDS && raw->form != CX_FORM_PLAIN &&
        !cx_str_eq(raw->scheme_name, cx_scheme_name(CX_SCHEME_CORTEX_1)))
        cx_finding_set(form, CX_BROKEN, "ProofMalformed", CX_FINDING_WHOLE,
                       "schema %d is of cortex-1 only", (int)raw->form);
    if (form->verdict != CX_HOLDS)
        return CX_SUCCESS;
    memset(items, 0, raw->count * sizeof *items);
    for (size_t i = 0; i < raw->count; i++)
        cx_raw_item_claim(raw, &raw->items[i], &items[i]);
    *out = items;
    return raw->form == CX_FORM_COMPACT ? cx_compact_expand(raw, trails, items, arena, form, err)
                                        : expand_pool(raw, items, arena, err);
}

cx_status cx_multiproof_decode(cx_bytes bytes, cx_arena *arena, cx_multiproof *out, cx_err *err)
{
    cx_raw_proof raw;
    cx_finding form;
    cx_proof_item *items = NULL;
    CX_TRY(cx_raw_proof_read(bytes, arena, &raw, err));
    cx_finding_init(&form);
    CX_TRY(read_items(&raw, arena, &items, &form, err));
    if (form.verdict != CX_HOLDS)
        return cx_fail_at(err, CX_E_FORMAT, form.reason, CX_NO_OFFSET, "proof: %s", form.message);
    *out = (cx_multiproof){.scheme =
                               raw.form == CX_FORM_PLAIN ? CX_SCHEME_MATRIX_1 : CX_SCHEME_CORTEX_1,
                           .compact = raw.form == CX_FORM_COMPACT,
                           .name_space = raw.name_space,
                           .root = raw.root,
                           .count = raw.count,
                           .items = items};
    return CX_SUCCESS;
}

/* --- writing --------------------------------------------------------------------------------- */

void cx_proof_put_head(const cx_multiproof *proof, cx_proof_form form, size_t field_count,
                       cx_buf *out)
{
    cx_cbor_map(out, field_count);
    cx_cbor_uint(out, 0);
    cx_cbor_uint(out, form);
    cx_cbor_uint(out, 1);
    cx_cbor_text(out, proof->name_space);
    cx_cbor_uint(out, 2);
    cx_cbor_digest(out, &proof->root);
    cx_cbor_uint(out, 3);
    cx_cbor_array(out, proof->count);
}

void cx_proof_begin_item(const cx_proof_item *item, cx_cbor_fields *fields, cx_buf *out)
{
    cx_cbor_fields_begin(fields, out);
    cx_cbor_field(fields, 0);
    cx_cbor_digest(out, &item->path.key);
    cx_cbor_field(fields, 1);
    if (item->kind == CX_MEMBER)
        cx_cbor_bytes(out, item->leaf);
    else
        cx_cbor_null(out);
    cx_cbor_field(fields, 2);
}

void cx_proof_end_item(const cx_proof_item *item, cx_cbor_fields *fields, cx_buf *out)
{
    if (item->kind == CX_ABSENT && item->path.has_other) {
        cx_cbor_field(fields, 3);
        cx_cbor_array(out, 2);
        cx_cbor_digest(out, &item->path.other_key);
        cx_cbor_digest(out, &item->path.other_value);
    }
    if (item->kind == CX_MEMBER_ERASED) {
        cx_cbor_field(fields, 4);
        cx_cbor_digest(out, &item->path.value);
    }
    cx_cbor_fields_end(fields);
}

static void encode_plain(const cx_multiproof *proof, cx_buf *out)
{
    cx_proof_put_head(proof, CX_FORM_PLAIN, 4, out);
    for (size_t i = 0; i < proof->count; i++) {
        const cx_proof_item *item = &proof->items[i];
        cx_cbor_map(out, 3);
        cx_cbor_text(out, CX_STR("KeyHash"));
        cx_cbor_digest(out, &item->path.key);
        cx_cbor_text(out, CX_STR("Siblings"));
        cx_cbor_array(out, item->path.sibling_count);
        for (size_t k = 0; k < item->path.sibling_count; k++)
            cx_cbor_digest(out, &item->path.siblings[k]);
        cx_cbor_text(out, CX_STR("ValueHash"));
        cx_cbor_digest(out, item->kind == CX_ABSENT ? &zeros : &item->path.value);
    }
}

/* The pool while it is made: hash to its number, from 1; `order` has them in order of first use. */
typedef struct pool_writer {
    cx_map numbers;
    cx_buf order;
} pool_writer;

static cx_status add_sibling(pool_writer *pool, const cx_digest *hash, cx_buf *out, cx_err *err)
{
    uint64_t *number;
    bool is_new;
    if (cx_digest_eq(hash, &zeros)) {
        cx_cbor_uint(out, 0);
        return CX_SUCCESS;
    }
    CX_TRY(cx_map_put(&pool->numbers, cx_str_from((const char *)hash->bytes, sizeof hash->bytes),
                      &number, &is_new, err));
    if (is_new) {
        *number = pool->numbers.used;
        cx_cbor_digest(&pool->order, hash);
    }
    cx_cbor_uint(out, *number);
    return CX_SUCCESS;
}

static cx_status encode_pooled_item(const cx_proof_item *item, pool_writer *pool, cx_buf *out,
                                    cx_err *err)
{
    cx_cbor_fields fields;
    cx_proof_begin_item(item, &fields, out);
    cx_cbor_array(out, item->path.sibling_count);
    for (size_t k = 0; k < item->path.sibling_count; k++)
        CX_TRY(add_sibling(pool, &item->path.siblings[k], out, err));
    cx_proof_end_item(item, &fields, out);
    return CX_SUCCESS;
}

static cx_status encode_pooled(const cx_multiproof *proof, cx_buf *out, cx_err *err)
{
    pool_writer pool;
    cx_status status = CX_SUCCESS;
    cx_map_init(&pool.numbers, out->alloc, (uint64_t)(uintptr_t)proof->items);
    cx_buf_init(&pool.order, out->alloc);
    cx_proof_put_head(proof, CX_FORM_POOLED, 6, out);
    for (size_t i = 0; i < proof->count; i++)
        CX_TRY_GOTO(status, encode_pooled_item(&proof->items[i], &pool, out, err));
    CX_TRY_GOTO(status, cx_buf_check(&pool.order, err));
    cx_cbor_uint(out, 4);
    cx_cbor_text(out, cx_scheme_name(proof->scheme));
    cx_cbor_uint(out, 5);
    cx_cbor_array(out, pool.numbers.used);
    cx_buf_add(out, pool.order.data, pool.order.size);
done:
    cx_map_done(&pool.numbers);
    cx_buf_done(&pool.order);
    return status;
}

static cx_status check_keys_differ(const cx_multiproof *proof, const cx_alloc *alloc, cx_err *err)
{
    cx_map keys;
    cx_status status;
    cx_map_init(&keys, alloc, (uint64_t)(uintptr_t)proof->items);
    CX_TRY_GOTO(status, cx_map_reserve(&keys, proof->count, err));
    for (size_t i = 0; i < proof->count; i++) {
        const cx_digest *key = &proof->items[i].path.key;
        uint64_t *value;
        bool is_new;
        CX_TRY_GOTO(status,
                    cx_map_put(&keys, cx_str_from((const char *)key->bytes, sizeof key->bytes),
                               &value, &is_new, err));
        if (!is_new) {
            status = cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                                "key %zu is asked for twice", i);
            goto done;
        }
    }
done:
    cx_map_done(&keys);
    return status;
}

cx_status cx_multiproof_encode(const cx_multiproof *proof, cx_buf *out, cx_err *err)
{
    size_t start = out->size;
    if (proof->count == 0)
        return cx_fail_at(err, CX_E_USAGE, "EmptyProof", CX_NO_OFFSET, "no key is asked for");
    if (proof->count > CX_PROOF_KEYS_MAX)
        return cx_fail(err, CX_E_LIMIT, "%zu keys are asked for, at most %d fit one proof",
                       proof->count, CX_PROOF_KEYS_MAX);
    if (proof->compact && proof->scheme != CX_SCHEME_CORTEX_1)
        return cx_fail_at(err, CX_E_UNSUPPORTED, "SchemeUnsupported", CX_NO_OFFSET,
                          "compact proofs exist for cortex-1 only");
    if (!proof->compact) /* whose keys ascend */
        CX_TRY(check_keys_differ(proof, out->alloc, err));
    cx_status status = CX_SUCCESS;
    if (proof->scheme == CX_SCHEME_MATRIX_1)
        encode_plain(proof, out);
    else if (proof->compact)
        status = cx_compact_encode(proof, out, err);
    else
        status = encode_pooled(proof, out, err);
    if (!cx_failed(status))
        status = cx_buf_check(out, err);
    if (!cx_failed(status) && out->size - start > CX_PROOF_BYTES_MAX)
        status = cx_fail(err, CX_E_LIMIT, "the proof has %zu bytes, expected at most %u",
                         out->size - start, CX_PROOF_BYTES_MAX);
    if (cx_failed(status))
        out->size = start;
    return status;
}
