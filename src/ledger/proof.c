/*
 * proof.c - the bytes of a MultiProof (ledger.md §8.1 cortex-1, §8.2 matrix-1).
 *
 * cortex-1   {0: 2, 1: namespace, 2: root, 3: [SingleProof...], 4: "cortex-1", 5: [pool...]}
 *            SingleProof {0: key, 1: leaf or null, 2: [index...], 3: [key, value] (o), 4: value
 * (o)} matrix-1   {0: 1, 1: namespace, 2: root, 3: [{"KeyHash", "Siblings": 256 of them,
 * "ValueHash"}]}
 *
 * Reading is in two steps, because the verdict of §8.1 names the first rule that is broken:
 * cx_raw_proof_read refuses what is not canonical, cx_raw_proof_check_form judges pool, indexes and
 * counts, which come later in that list.
 *
 *   P1  The pool holds every non-empty sibling once, in order of first use; none unused, none zero.
 *   P2  At most one of leaf, other, value_hash; `other` is another key below the same siblings.
 *   P3  At most 256 siblings; in matrix-1 exactly 256.
 */
#include <stdio.h>

#include "base/map.h"
#include "cbor/cbor.h"
#include "ledger/proof_internal.h"

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

typedef struct raw_reader {
    cx_cbor_reader cbor;
    cx_arena *arena;
    bool no_memory;
} raw_reader;

/* Memory for `count` items; what the input promises has been held against its size. */
static void *take_memory(raw_reader *reader, size_t count, size_t item_size)
{
    void *block = cx_arena_push_array(reader->arena, count == 0 ? 1 : count, item_size, 8);
    if (block == NULL)
        reader->no_memory = true;
    return block;
}

static const cx_digest *read_digests(raw_reader *reader, size_t max, size_t *out_count)
{
    size_t count = cx_cbor_read_array(&reader->cbor, max);
    cx_digest *digests = take_memory(reader, count, sizeof *digests);
    *out_count = count;
    if (digests == NULL)
        return NULL;
    for (size_t i = 0; i < count && cx_cbor_ok(&reader->cbor); i++)
        digests[i] = cx_cbor_read_digest(&reader->cbor);
    return digests;
}

/* Beyond the limit of siblings they are read but not kept: P3 fails on their number. */
static void read_indexes(raw_reader *reader, cx_raw_item *item)
{
    size_t count = cx_cbor_read_array(&reader->cbor, SIZE_MAX);
    size_t kept = count > CX_PROOF_SIBLINGS_MAX ? 0 : count;
    uint32_t *indexes = take_memory(reader, kept, sizeof *indexes);
    item->indexes = indexes;
    item->sibling_count = count;
    for (size_t i = 0; i < count && cx_cbor_ok(&reader->cbor) && !reader->no_memory; i++) {
        uint64_t index = cx_cbor_read_uint(&reader->cbor);
        if (i < kept)
            indexes[i] = index > UINT32_MAX ? UINT32_MAX : (uint32_t)index;
    }
}

static void read_pooled_item(raw_reader *reader, cx_raw_item *item)
{
    cx_cbor_reader *cbor = &reader->cbor;
    cx_cbor_members members = cx_cbor_read_members(cbor);
    memset(item, 0, sizeof *item);
    while (cx_cbor_next_member(cbor, &members)) {
        switch (members.key) {
        case 0: item->key = cx_cbor_read_digest(cbor); break;
        case 1:
            item->has_leaf = !cx_cbor_take_null(cbor);
            if (item->has_leaf)
                item->leaf = cx_cbor_read_bytes(cbor);
            break;
        case 2: read_indexes(reader, item); break;
        case 3:
            if (cx_cbor_read_array(cbor, 2) != 2)
                cx_cbor_refuse(cbor, members.key_offset, "expected a key and a value");
            item->has_other = true;
            item->other_key = cx_cbor_read_digest(cbor);
            item->other_value = cx_cbor_read_digest(cbor);
            break;
        case 4:
            item->has_value = true;
            item->value = cx_cbor_read_digest(cbor);
            break;
        default: cx_cbor_refuse_member(cbor, &members);
        }
    }
    cx_cbor_require(cbor, &members, 1u << 0 | 1u << 1 | 1u << 2);
}

static void expect_name(cx_cbor_reader *cbor, const char *name)
{
    size_t offset = cbor->offset;
    cx_str found = cx_cbor_read_text(cbor);
    if (cx_cbor_ok(cbor) && !cx_str_is(found, name))
        cx_cbor_refuse(cbor, offset, "expected the member \"%s\"", name);
}

/* Keys of a map are sorted by their encoding: shorter names first. */
static void read_plain_item(raw_reader *reader, cx_raw_item *item)
{
    cx_cbor_reader *cbor = &reader->cbor;
    size_t offset = cbor->offset;
    memset(item, 0, sizeof *item);
    if (cx_cbor_read_map(cbor, 3) != 3)
        cx_cbor_refuse(cbor, offset, "expected the members KeyHash, Siblings, ValueHash");
    expect_name(cbor, "KeyHash");
    item->key = cx_cbor_read_digest(cbor);
    expect_name(cbor, "Siblings");
    item->siblings = read_digests(reader, SIZE_MAX, &item->sibling_count);
    expect_name(cbor, "ValueHash");
    item->value = cx_cbor_read_digest(cbor);
    item->has_value = !cx_digest_eq(&item->value, &zeros);
}

static void read_items(raw_reader *reader, cx_raw_proof *out)
{
    out->count = cx_cbor_read_array(&reader->cbor, CX_PROOF_KEYS_MAX);
    out->items = take_memory(reader, out->count, sizeof *out->items);
    for (size_t i = 0; i < out->count && cx_cbor_ok(&reader->cbor) && !reader->no_memory; i++) {
        if (out->pooled)
            read_pooled_item(reader, &out->items[i]);
        else
            read_plain_item(reader, &out->items[i]);
    }
}

static void read_schema(cx_cbor_reader *cbor, const cx_cbor_members *members, cx_raw_proof *out)
{
    uint64_t schema = cx_cbor_read_uint(cbor);
    if (cx_cbor_ok(cbor) && schema != 1 && schema != 2)
        cx_cbor_refuse(cbor, members->key_offset, "found schema %llu, expected 1 or 2",
                       (unsigned long long)schema);
    out->pooled = schema == 2;
    if (!out->pooled)
        out->scheme_name = cx_scheme_name(CX_SCHEME_MATRIX_1);
}

cx_status cx_raw_proof_read(cx_bytes bytes, cx_arena *arena, cx_raw_proof *out, cx_err *err)
{
    raw_reader reader = {.arena = arena};
    cx_cbor_reader *cbor = &reader.cbor;
    if (bytes.size > CX_PROOF_BYTES_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "ProofTooLong", 0,
                          "proof: found %zu bytes, expected at most %u", bytes.size,
                          CX_PROOF_BYTES_MAX);
    cx_cbor_begin(cbor, bytes, "proof");
    memset(out, 0, sizeof *out);
    cx_cbor_members members = cx_cbor_read_members(cbor);
    while (!reader.no_memory && cx_cbor_next_member(cbor, &members)) {
        /* Keys ascend, so the schema is known before what depends on it. */
        if (members.key != 0 && (members.seen & 1) == 0)
            cx_cbor_refuse(cbor, members.key_offset, "expected the schema, field 0");
        else if (members.key > 3 && !out->pooled)
            cx_cbor_refuse_member(cbor, &members);
        else
            switch (members.key) {
            case 0: read_schema(cbor, &members, out); break;
            case 1: out->name_space = cx_cbor_read_text(cbor); break;
            case 2: out->root = cx_cbor_read_digest(cbor); break;
            case 3: read_items(&reader, out); break;
            case 4: out->scheme_name = cx_cbor_read_text(cbor); break;
            case 5: out->pool = read_digests(&reader, UINT32_MAX - 1, &out->pool_count); break;
            default: cx_cbor_refuse_member(cbor, &members);
            }
    }
    if (reader.no_memory)
        return cx_fail_nomem(err);
    cx_cbor_require(cbor, &members, out->pooled ? 0x3f : 0x0f);
    return cx_cbor_end(cbor, err);
}

/* --- form ------------------------------------------------------------------------------------ */

static bool shares_prefix(const cx_digest *a, const cx_digest *b, size_t bits)
{
    size_t bytes = bits / 8;
    if (memcmp(a->bytes, b->bytes, bytes) != 0)
        return false;
    unsigned rest = bits % 8;
    return rest == 0 || (a->bytes[bytes] ^ b->bytes[bytes]) >> (8 - rest) == 0;
}

/* P2, P3, and P1 as far as one key can tell; *used pool entries have been met so far. */
static bool pooled_item_ok(const cx_raw_proof *proof, size_t at, size_t *used, cx_finding *out)
{
    const cx_raw_item *item = &proof->items[at];
    const char *wrong = NULL;
    if (item->sibling_count > CX_PROOF_SIBLINGS_MAX)
        wrong = "has more than 256 siblings";
    else if (item->has_leaf + item->has_other + item->has_value > 1)
        wrong = "has more than one of leaf, other key and value hash";
    else if (item->has_other && (cx_digest_eq(&item->other_key, &item->key) ||
                                 !shares_prefix(&item->other_key, &item->key, item->sibling_count)))
        wrong = "names another leaf that is not another one on the same path";
    for (size_t i = 0; wrong == NULL && i < item->sibling_count; i++) {
        if (item->indexes[i] > proof->pool_count)
            wrong = "uses a sibling that is not in the pool";
        else if (item->indexes[i] > *used + 1)
            wrong = "uses the pool out of order";
        else if (item->indexes[i] == *used + 1)
            *used += 1;
    }
    if (wrong != NULL)
        cx_finding_set(out, CX_BROKEN, "ProofMalformed", at, "key %zu %s", at, wrong);
    return wrong == NULL;
}

/*
 * No two pool entries alike (P1): a table of their numbers from 1, open addressing.  The hash is
 * seeded with an address, so that whoever writes a proof cannot aim at collisions.
 */
static cx_status check_pool(const cx_raw_proof *proof, cx_arena *arena, cx_finding *out,
                            cx_err *err)
{
    cx_arena_mark mark = cx_arena_mark_now(arena);
    size_t slots = 16;
    while (slots < 2 * proof->pool_count)
        slots *= 2;
    uint32_t *table = CX_ARENA_ARRAY(arena, uint32_t, slots);
    if (table == NULL)
        return cx_fail_nomem(err);
    memset(table, 0, slots * sizeof *table);
    for (size_t i = 0; i < proof->pool_count && out->verdict == CX_HOLDS; i++) {
        const cx_digest *hash = &proof->pool[i];
        size_t at =
            (size_t)cx_map_hash_bytes((uint64_t)(uintptr_t)table, hash, sizeof *hash) & (slots - 1);
        while (table[at] != 0 && !cx_digest_eq(&proof->pool[table[at] - 1], hash))
            at = (at + 1) & (slots - 1);
        if (table[at] != 0 || cx_digest_eq(hash, &zeros))
            cx_finding_set(out, CX_BROKEN, "ProofMalformed", CX_FINDING_WHOLE,
                           "pool entry %zu is %s", i, table[at] != 0 ? "there twice" : "zero");
        table[at] = (uint32_t)i + 1;
    }
    cx_arena_reset(arena, mark);
    return CX_SUCCESS;
}

cx_status cx_raw_proof_check_form(const cx_raw_proof *proof, cx_arena *arena, cx_finding *out,
                                  cx_err *err)
{
    size_t used = 0;
    for (size_t i = 0; i < proof->count; i++) {
        if (proof->pooled) {
            if (!pooled_item_ok(proof, i, &used, out))
                return CX_SUCCESS;
        } else if (proof->items[i].sibling_count != CX_PROOF_SIBLINGS_MAX) {
            cx_finding_set(out, CX_BROKEN, "ProofMalformed", i,
                           "key %zu has %zu siblings, expected 256", i,
                           proof->items[i].sibling_count);
            return CX_SUCCESS;
        }
    }
    if (used != proof->pool_count) {
        cx_finding_set(out, CX_BROKEN, "ProofMalformed", CX_FINDING_WHOLE,
                       "%zu pool entries are not used", proof->pool_count - used);
        return CX_SUCCESS;
    }
    return check_pool(proof, arena, out, err);
}

const cx_digest *cx_raw_sibling(const cx_raw_proof *proof, const cx_raw_item *item, size_t i)
{
    if (!proof->pooled)
        return &item->siblings[i];
    return item->indexes[i] == 0 ? &zeros : &proof->pool[item->indexes[i] - 1];
}

void cx_raw_item_claim(const cx_raw_proof *proof, const cx_raw_item *item, cx_proof_item *out)
{
    memset(out, 0, sizeof *out);
    out->path.key = item->key;
    if (proof->pooled && item->has_leaf) {
        out->kind = CX_MEMBER;
        out->leaf = item->leaf;
        out->path.member = true;
        out->path.value = cx_scheme_value(CX_SCHEME_CORTEX_1, item->leaf);
    } else if (item->has_value) {
        out->kind = proof->pooled ? CX_MEMBER_ERASED : CX_MEMBER;
        out->path.member = true;
        out->path.value = item->value;
    } else {
        out->kind = CX_ABSENT;
        out->path.has_other = item->has_other;
        out->path.other_key = item->other_key;
        out->path.other_value = item->other_value;
    }
}

/* Siblings shared through the pool become a list of each key's own. */
static cx_status expand(const cx_raw_proof *raw, cx_arena *arena, cx_multiproof *out, cx_err *err)
{
    cx_proof_item *items = CX_ARENA_ARRAY(arena, cx_proof_item, raw->count + 1);
    if (items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < raw->count; i++) {
        const cx_raw_item *from = &raw->items[i];
        cx_raw_item_claim(raw, from, &items[i]);
        items[i].path.sibling_count = from->sibling_count;
        if (!raw->pooled) {
            items[i].path.siblings = from->siblings;
            continue;
        }
        cx_digest *siblings = CX_ARENA_ARRAY(arena, cx_digest, from->sibling_count + 1);
        if (siblings == NULL)
            return cx_fail_nomem(err);
        for (size_t k = 0; k < from->sibling_count; k++)
            siblings[k] = *cx_raw_sibling(raw, from, k);
        items[i].path.siblings = siblings;
    }
    *out = (cx_multiproof){.scheme = raw->pooled ? CX_SCHEME_CORTEX_1 : CX_SCHEME_MATRIX_1,
                           .name_space = raw->name_space,
                           .root = raw->root,
                           .count = raw->count,
                           .items = items};
    return CX_SUCCESS;
}

cx_status cx_multiproof_decode(cx_bytes bytes, cx_arena *arena, cx_multiproof *out, cx_err *err)
{
    cx_raw_proof raw;
    cx_finding form;
    CX_TRY(cx_raw_proof_read(bytes, arena, &raw, err));
    cx_finding_init(&form);
    CX_TRY(cx_raw_proof_check_form(&raw, arena, &form, err));
    if (form.verdict == CX_HOLDS && raw.pooled &&
        !cx_str_eq(raw.scheme_name, cx_scheme_name(CX_SCHEME_CORTEX_1)))
        cx_finding_set(&form, CX_BROKEN, "ProofMalformed", CX_FINDING_WHOLE,
                       "schema 2 is of cortex-1 only");
    if (form.verdict != CX_HOLDS)
        return cx_fail_at(err, CX_E_FORMAT, form.reason, CX_NO_OFFSET, "proof: %s", form.message);
    return expand(&raw, arena, out, err);
}

/* --- writing --------------------------------------------------------------------------------- */

static void encode_plain(const cx_multiproof *proof, cx_buf *out)
{
    cx_cbor_map(out, 4);
    cx_cbor_uint(out, 0);
    cx_cbor_uint(out, 1);
    cx_cbor_uint(out, 1);
    cx_cbor_text(out, proof->name_space);
    cx_cbor_uint(out, 2);
    cx_cbor_digest(out, &proof->root);
    cx_cbor_uint(out, 3);
    cx_cbor_array(out, proof->count);
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
    bool other = item->kind == CX_ABSENT && item->path.has_other;
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_cbor_field(&fields, 0);
    cx_cbor_digest(out, &item->path.key);
    cx_cbor_field(&fields, 1);
    if (item->kind == CX_MEMBER)
        cx_cbor_bytes(out, item->leaf);
    else
        cx_cbor_null(out);
    cx_cbor_field(&fields, 2);
    cx_cbor_array(out, item->path.sibling_count);
    for (size_t k = 0; k < item->path.sibling_count; k++)
        CX_TRY(add_sibling(pool, &item->path.siblings[k], out, err));
    if (other) {
        cx_cbor_field(&fields, 3);
        cx_cbor_array(out, 2);
        cx_cbor_digest(out, &item->path.other_key);
        cx_cbor_digest(out, &item->path.other_value);
    }
    if (item->kind == CX_MEMBER_ERASED) {
        cx_cbor_field(&fields, 4);
        cx_cbor_digest(out, &item->path.value);
    }
    cx_cbor_fields_end(&fields);
    return CX_SUCCESS;
}

static cx_status encode_pooled(const cx_multiproof *proof, cx_buf *out, cx_err *err)
{
    pool_writer pool;
    cx_status status = CX_SUCCESS;
    cx_map_init(&pool.numbers, out->alloc, (uint64_t)(uintptr_t)proof->items);
    cx_buf_init(&pool.order, out->alloc);
    cx_cbor_map(out, 6);
    cx_cbor_uint(out, 0);
    cx_cbor_uint(out, 2);
    cx_cbor_uint(out, 1);
    cx_cbor_text(out, proof->name_space);
    cx_cbor_uint(out, 2);
    cx_cbor_digest(out, &proof->root);
    cx_cbor_uint(out, 3);
    cx_cbor_array(out, proof->count);
    for (size_t i = 0; i < proof->count; i++)
        CX_GO(status, encode_pooled_item(&proof->items[i], &pool, out, err));
    CX_GO(status, cx_buf_check(&pool.order, err));
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
    CX_GO(status, cx_map_reserve(&keys, proof->count, err));
    for (size_t i = 0; i < proof->count; i++) {
        const cx_digest *key = &proof->items[i].path.key;
        uint64_t *value;
        bool is_new;
        CX_GO(status, cx_map_put(&keys, cx_str_from((const char *)key->bytes, sizeof key->bytes),
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
    CX_TRY(check_keys_differ(proof, out->alloc, err));
    cx_status status = CX_SUCCESS;
    if (proof->scheme == CX_SCHEME_MATRIX_1)
        encode_plain(proof, out);
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
