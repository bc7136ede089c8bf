/*
 * proof_read.c - a MultiProof from its bytes, in two steps, because the verdict of ledger.md §8.1
 * names the first rule that is broken: cx_raw_proof_read refuses what is not canonical,
 * cx_raw_proof_check_form judges pool, indexes and counts, which come later in that list.
 *
 *   P1  The pool holds every non-empty sibling once, in order of first use; none unused, none zero.
 *   P2  At most one of leaf, other, value_hash; `other` is another key below the same siblings.
 *   P3  At most 256 siblings; in matrix-1 exactly 256.
 *
 * The form of schema 3 is judged in proof_compact.c.
 */
#include "base/api.h"
#include "proof/proof_internal.h"

static const cx_digest zeros;

/* --- reading --------------------------------------------------------------------------------- */

typedef struct raw_reader {
    cx_cbor_reader cbor;
    cx_arena *arena;
    bool no_memory;
} raw_reader;

/* Memory for `count` items; what the input promises has been held against its size. */
static void *allocate_items(raw_reader *reader, size_t count, size_t item_size)
{
    void *block = cx_arena_push_array(reader->arena, count == 0 ? 1 : count, item_size, 8);
    if (block == NULL)
        reader->no_memory = true;
    return block;
}

/* Beyond the limit of siblings they are read but not kept: P3 fails on their number. */
static void read_indexes(raw_reader *reader, cx_raw_item *item)
{
    size_t count = cx_cbor_read_array(&reader->cbor, SIZE_MAX);
    item->sibling_count = count;
    if (count > CX_PROOF_SIBLINGS_MAX) {
        for (size_t i = 0; i < count && cx_cbor_ok(&reader->cbor); i++)
            (void)cx_cbor_read_uint(&reader->cbor);
        return;
    }
    item->indexes = allocate_items(reader, count, sizeof *item->indexes);
    if (item->indexes != NULL)
        cx_cbor_read_indexes(&reader->cbor, item->indexes, count);
}

/* As of a list that is too long: P3 fails on whatever is more than the limit. */
static void read_depth(cx_cbor_reader *cbor, cx_raw_item *item)
{
    uint64_t depth = cx_cbor_read_uint(cbor);
    item->sibling_count = depth > CX_PROOF_SIBLINGS_MAX ? CX_PROOF_SIBLINGS_MAX + 1 : (size_t)depth;
}

/* Of schemas 2 and 3, which differ in how a key's siblings are told. */
static void read_item(raw_reader *reader, cx_proof_form form, cx_raw_item *item)
{
    cx_cbor_reader *cbor = &reader->cbor;
    cx_cbor_members members = cx_cbor_read_members(cbor);
    while (cx_cbor_next_member(cbor, &members)) {
        switch (members.key) {
        case 0: item->key = cx_cbor_read_digest(cbor); break;
        case 1:
            item->has_leaf = !cx_cbor_skip_null(cbor);
            if (item->has_leaf)
                item->leaf = cx_cbor_read_bytes(cbor);
            break;
        case 2:
            if (form == CX_FORM_POOLED)
                read_indexes(reader, item);
            else
                read_depth(cbor, item);
            break;
        case 3:
            if (cx_cbor_read_array(cbor, 2) != 2)
                cx_cbor_reject(cbor, members.key_offset, "expected a key and a value");
            item->has_other = true;
            item->other_key = cx_cbor_read_digest(cbor);
            item->other_value = cx_cbor_read_digest(cbor);
            break;
        case 4:
            item->has_value = true;
            item->value = cx_cbor_read_digest(cbor);
            break;
        default: cx_cbor_reject_member(cbor, &members);
        }
    }
    cx_cbor_require(cbor, &members, 1u << 0 | 1u << 1 | 1u << 2);
}

static void expect_name(cx_cbor_reader *cbor, const char *name)
{
    size_t offset = cbor->offset;
    cx_str found = cx_cbor_read_text(cbor);
    if (cx_cbor_ok(cbor) && !cx_str_is(found, name))
        cx_cbor_reject(cbor, offset, "expected the member \"%s\"", name);
}

/* Keys of a map are sorted by their encoding: shorter names first. */
static void read_plain_item(raw_reader *reader, cx_raw_item *item)
{
    cx_cbor_reader *cbor = &reader->cbor;
    size_t offset = cbor->offset;
    if (cx_cbor_read_map(cbor, 3) != 3)
        cx_cbor_reject(cbor, offset, "expected the members KeyHash, Siblings, ValueHash");
    expect_name(cbor, "KeyHash");
    item->key = cx_cbor_read_digest(cbor);
    expect_name(cbor, "Siblings");
    item->siblings = cx_cbor_read_digests(cbor, SIZE_MAX, &item->sibling_count);
    expect_name(cbor, "ValueHash");
    item->value = cx_cbor_read_digest(cbor);
    item->has_value = !cx_digest_eq(&item->value, &zeros);
}

static void read_items(raw_reader *reader, cx_raw_proof *out)
{
    out->count = cx_cbor_read_array(&reader->cbor, CX_PROOF_KEYS_MAX);
    out->items = allocate_items(reader, out->count, sizeof *out->items);
    if (out->items != NULL)
        memset(out->items, 0, out->count * sizeof *out->items);
    for (size_t i = 0; i < out->count && cx_cbor_ok(&reader->cbor) && !reader->no_memory; i++) {
        if (out->form == CX_FORM_PLAIN)
            read_plain_item(reader, &out->items[i]);
        else
            read_item(reader, out->form, &out->items[i]);
    }
}

static void read_schema(cx_cbor_reader *cbor, const cx_cbor_members *members, cx_raw_proof *out)
{
    uint64_t schema = cx_cbor_read_uint(cbor);
    if (cx_cbor_ok(cbor) && (schema < CX_FORM_PLAIN || schema > CX_FORM_COMPACT))
        cx_cbor_reject(cbor, members->key_offset, "found schema %llu, expected 1, 2 or 3",
                       (unsigned long long)schema);
    if (!cx_cbor_ok(cbor))
        return;
    out->form = (cx_proof_form)schema;
    if (out->form == CX_FORM_PLAIN)
        out->scheme_name = cx_scheme_name(CX_SCHEME_MATRIX_1);
}

/* Members after the fields that all schemas have. */
static void read_siblings(raw_reader *reader, const cx_cbor_members *members, cx_raw_proof *out)
{
    cx_cbor_reader *cbor = &reader->cbor;
    if (members->key == 4 && out->form != CX_FORM_PLAIN) {
        out->scheme_name = cx_cbor_read_text(cbor);
    } else if (members->key == 5 && out->form == CX_FORM_POOLED) {
        out->pool = cx_cbor_read_digests(cbor, UINT32_MAX - 1, &out->pool_count);
        out->pool_stride = CX_CBOR_DIGEST_STRIDE;
    } else if (members->key == 5 && out->form == CX_FORM_COMPACT) {
        out->hashes = cx_cbor_read_bytes(cbor);
    } else if (members->key == 6 && out->form == CX_FORM_COMPACT) {
        out->presence = cx_cbor_read_bytes(cbor);
    } else {
        cx_cbor_reject_member(cbor, members);
    }
}

cx_status cx_raw_proof_read(cx_bytes bytes, cx_arena *arena, cx_raw_proof *out, cx_err *err)
{
    static const uint64_t required[] = {0x0f, 0x0f, 0x3f, 0x7f};
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
            cx_cbor_reject(cbor, members.key_offset, "expected the schema, field 0");
        else
            switch (members.key) {
            case 0: read_schema(cbor, &members, out); break;
            case 1: out->name_space = cx_cbor_read_text(cbor); break;
            case 2: out->root = cx_cbor_read_digest(cbor); break;
            case 3: read_items(&reader, out); break;
            default: read_siblings(&reader, &members, out);
            }
    }
    if (reader.no_memory)
        return cx_fail_nomem(err);
    cx_cbor_require(cbor, &members, required[out->form]);
    return cx_cbor_end(cbor, err);
}

/* --- form ------------------------------------------------------------------------------------ */

static const uint8_t *pool_entry(const cx_raw_proof *proof, size_t i)
{
    return proof->pool + i * proof->pool_stride;
}

static bool shares_prefix(const cx_digest *a, const cx_digest *b, size_t bits)
{
    size_t bytes = bits / 8;
    if (memcmp(a->bytes, b->bytes, bytes) != 0)
        return false;
    unsigned rest = bits % 8;
    return rest == 0 || (a->bytes[bytes] ^ b->bytes[bytes]) >> (8 - rest) == 0;
}

const char *cx_raw_item_wrong(const cx_raw_item *item)
{
    if (item->sibling_count > CX_PROOF_SIBLINGS_MAX)
        return "has more than 256 siblings";
    if (item->has_leaf + item->has_other + item->has_value > 1)
        return "has more than one of leaf, other key and value hash";
    if (item->has_other && (cx_digest_eq(&item->other_key, &item->key) ||
                            !shares_prefix(&item->other_key, &item->key, item->sibling_count)))
        return "names another leaf that is not another one on the same path";
    return NULL;
}

/* P2, P3, and P1 as far as one key can tell; *used pool entries have been met so far. */
static bool pooled_item_ok(const cx_raw_proof *proof, size_t at, size_t *used, cx_finding *out)
{
    const cx_raw_item *item = &proof->items[at];
    const char *wrong = cx_raw_item_wrong(item);
    size_t met = *used;
    for (size_t i = 0; wrong == NULL && i < item->sibling_count; i++) {
        if (item->indexes[i] <= met)
            continue;
        if (item->indexes[i] > proof->pool_count)
            wrong = "uses a sibling that is not in the pool";
        else if (item->indexes[i] != ++met)
            wrong = "uses the pool out of order";
    }
    *used = met;
    if (wrong != NULL)
        cx_finding_set(out, CX_BROKEN, "ProofMalformed", at, "key %zu %s", at, wrong);
    return wrong == NULL;
}

static bool none_is_zero(const cx_raw_proof *proof, cx_finding *out)
{
    for (size_t i = 0; i < proof->pool_count; i++)
        if (memcmp(pool_entry(proof, i), zeros.bytes, sizeof zeros) == 0) {
            cx_finding_set(out, CX_BROKEN, "ProofMalformed", CX_FINDING_WHOLE,
                           "pool entry %zu is zero", i);
            return false;
        }
    return true;
}

/* No two pool entries alike (P1): a table of their numbers from 1, open addressing; it is sparse,
 * since a slot that is taken costs more than many that are not.  Hashes are seeded with an address,
 * so that the author of a proof cannot aim at collisions. */
static cx_status check_pool(const cx_raw_proof *proof, cx_arena *arena, cx_finding *out,
                            cx_err *err)
{
    cx_arena_mark mark = cx_arena_mark_now(arena);
    size_t slots = 16;
    while (slots < 4 * proof->pool_count)
        slots *= 2;
    uint32_t *table = CX_ARENA_ARRAY(arena, uint32_t, slots);
    uint32_t *hashes = CX_ARENA_ARRAY(arena, uint32_t, proof->pool_count + 1);
    if (table == NULL || hashes == NULL)
        return cx_fail_nomem(err);
    memset(table, 0, slots * sizeof *table);
    size_t count = none_is_zero(proof, out) ? proof->pool_count : 0;
    cx_map_hash_digests((uint64_t)(uintptr_t)table, proof->pool, proof->pool_stride, count, hashes);
    for (size_t i = 0; i < count; i++) {
        size_t at = hashes[i] & (slots - 1);
        for (; table[at] != 0; at = (at + 1) & (slots - 1)) {
            size_t there = table[at] - 1;
            if (hashes[there] == hashes[i] &&
                memcmp(pool_entry(proof, there), pool_entry(proof, i), sizeof zeros) == 0) {
                cx_finding_set(out, CX_BROKEN, "ProofMalformed", CX_FINDING_WHOLE,
                               "pool entry %zu is there twice", i);
                count = 0;
                break;
            }
        }
        table[at] = (uint32_t)i + 1;
    }
    cx_arena_reset(arena, mark);
    return CX_SUCCESS;
}

static cx_status check_pooled(const cx_raw_proof *proof, cx_arena *arena, cx_finding *out,
                              cx_err *err)
{
    size_t used = 0;
    for (size_t i = 0; i < proof->count; i++)
        if (!pooled_item_ok(proof, i, &used, out))
            return CX_SUCCESS;
    if (used == proof->pool_count)
        return check_pool(proof, arena, out, err);
    cx_finding_set(out, CX_BROKEN, "ProofMalformed", CX_FINDING_WHOLE,
                   "%zu pool entries are not used", proof->pool_count - used);
    return CX_SUCCESS;
}

static void check_plain(const cx_raw_proof *proof, cx_finding *out)
{
    for (size_t i = 0; i < proof->count; i++) {
        size_t found = proof->items[i].sibling_count;
        if (found == CX_PROOF_SIBLINGS_MAX)
            continue;
        cx_finding_set(out, CX_BROKEN, "ProofMalformed", i,
                       "key %zu has %zu siblings, expected 256", i, found);
        return;
    }
}

cx_status cx_raw_proof_check_form(cx_raw_proof *proof, cx_trail *trails, cx_arena *arena,
                                  cx_finding *out, cx_err *err)
{
    switch (proof->form) {
    case CX_FORM_PLAIN: check_plain(proof, out); break;
    case CX_FORM_POOLED: return check_pooled(proof, arena, out, err);
    case CX_FORM_COMPACT: return cx_compact_check_form(proof, trails, arena, out, err);
    }
    return CX_SUCCESS;
}

const uint8_t *cx_raw_sibling(const cx_raw_proof *proof, const cx_raw_item *item, size_t i)
{
    if (proof->form == CX_FORM_PLAIN)
        return item->siblings + i * CX_CBOR_DIGEST_STRIDE;
    uint32_t index = item->indexes[i - item->index_base];
    return index == 0 ? zeros.bytes : pool_entry(proof, index - 1);
}

void cx_raw_item_claim(const cx_raw_proof *proof, const cx_raw_item *item, cx_proof_item *out)
{
    out->path.key = item->key;
    if (item->has_leaf) {
        out->kind = CX_MEMBER;
        out->leaf = item->leaf;
        out->path.member = true;
        out->path.value = cx_scheme_value(CX_SCHEME_CORTEX_1, item->leaf);
    } else if (item->has_value) {
        out->kind = proof->form == CX_FORM_PLAIN ? CX_MEMBER : CX_MEMBER_ERASED;
        out->path.member = true;
        out->path.value = item->value;
    } else {
        out->kind = CX_ABSENT;
        out->path.has_other = item->has_other;
        out->path.other_key = item->other_key;
        out->path.other_value = item->other_value;
    }
}
