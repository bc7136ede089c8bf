/*
 * proof_compact.c - the MultiProof of schema 3 (docs/formats/ledger.md §8.3; cortex-1 only), which
 * leaves out what its keys tell already.
 *
 *     {0: 3, 1: namespace, 2: root, 3: [{0: key, 1: leaf or null, 2: depth, 3: [key, value] (o),
 *      4: value (o)}...], 4: "cortex-1", 5: siblings, 6: presence}
 *
 * Walk from the root, left side first, to where the paths of all keys end.  Wherever keys go to one
 * side only, the other side has a place in the proof: a bit of `presence`, most significant first,
 * and when it is 1 the next 32 bytes of `siblings`; when it is 0 the other side is empty.  In the
 * order of keys that is, of each key, the siblings that the key before it has not, from the root
 * down, without those to which greater keys lead.
 *
 *   K1  Keys ascend strictly.
 *   K2  Two paths end in one place, or neither ends on the other's way.
 *   K3  One bit a place, zeros up to the whole byte; a hash for each 1, none left; none is zero.
 *
 * So a state, the keys asked, and which of them show their record, have one spelling.
 */
#include "base/api.h"
#include "proof/proof_internal.h"

enum { HASH_SIZE = sizeof(cx_digest) };

static const cx_digest zeros;

/* --- reading --------------------------------------------------------------------------------- */

static void set_malformed(cx_finding *out, size_t key, const char *what)
{
    if (key == CX_FINDING_WHOLE)
        cx_finding_set(out, CX_BROKEN, "ProofMalformed", key, "%s", what);
    else
        cx_finding_set(out, CX_BROKEN, "ProofMalformed", key, "key %zu %s", key, what);
}

/* K1, K2, and each key by itself. */
static bool check_keys(const cx_raw_proof *proof, cx_trail *trails, cx_finding *out)
{
    for (size_t i = 0; i < proof->count; i++) {
        const char *wrong = cx_raw_item_wrong(&proof->items[i]);
        if (wrong == NULL && i != 0 &&
            memcmp(proof->items[i - 1].key.bytes, proof->items[i].key.bytes, HASH_SIZE) >= 0)
            wrong = "is not in ascending order";
        if (wrong != NULL) {
            set_malformed(out, i, wrong);
            return false;
        }
    }
    size_t against = cx_trails_link(trails, proof->count);
    if (against != SIZE_MAX)
        set_malformed(out, against,
                      "and the one before it: the path of one ends on the other's way");
    return against == SIZE_MAX;
}

/* How many siblings a key has of its own, those that other keys lead to among them. */
static size_t own_count(const cx_trail *trails, size_t at)
{
    return cx_trail_ends_with_last(trails, at) ? 0 : trails[at].depth - cx_trail_own(trails, at);
}

static bool bit_of(cx_bytes bits, size_t i)
{
    return (bits.data[i / 8] >> (7 - i % 8) & 1) != 0;
}

/* K3, but for the number of hashes; *out_own is the sum of own_count. */
static bool check_presence(const cx_raw_proof *proof, const cx_trail *trails, size_t *out_own,
                           cx_finding *out)
{
    size_t own = 0, meetings = 0;
    for (size_t i = 0; i < proof->count; i++) {
        own += own_count(trails, i);
        meetings += i != 0 && !cx_trail_ends_with_last(trails, i);
    }
    *out_own = own;
    size_t places = own - meetings; /* each meeting makes one sibling of the lesser key's known */
    cx_bytes presence = proof->presence;
    if (presence.size != places / 8 + (places % 8 != 0)) {
        cx_finding_set(out, CX_BROKEN, "ProofMalformed", CX_FINDING_WHOLE,
                       "%zu bytes say which of %zu siblings are there", presence.size, places);
        return false;
    }
    for (size_t i = places; i < 8 * presence.size; i++)
        if (bit_of(presence, i)) {
            set_malformed(out, CX_FINDING_WHOLE, "a bit is set after the last sibling");
            return false;
        }
    return true;
}

/* Numbers of the own siblings of one key; what others lead to is left as 0 and not read. */
static void number_siblings(const cx_raw_proof *proof, const cx_trail *trails, size_t at,
                            uint32_t *indexes, size_t *place, size_t *hashes)
{
    bool met[CX_PROOF_SIBLINGS_MAX];
    size_t own = cx_trail_own(trails, at);
    cx_trail_mark_met(trails, at, met);
    for (size_t i = own; i < trails[at].depth; i++) {
        bool there = !met[i] && bit_of(proof->presence, *place);
        *place += !met[i];
        *hashes += there;
        indexes[i - own] = there ? (uint32_t)*hashes : 0;
    }
}

cx_status cx_compact_check_form(cx_raw_proof *proof, cx_trail *trails, cx_arena *arena,
                                cx_finding *out, cx_err *err)
{
    size_t own, place = 0, hashes = 0;
    if (!check_keys(proof, trails, out) || !check_presence(proof, trails, &own, out))
        return CX_SUCCESS;
    uint32_t *indexes = CX_ARENA_ARRAY(arena, uint32_t, own + 1);
    if (indexes == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < proof->count; i++) {
        if (cx_trail_ends_with_last(trails, i))
            continue;
        proof->items[i].index_base = cx_trail_own(trails, i);
        proof->items[i].indexes = indexes;
        number_siblings(proof, trails, i, indexes, &place, &hashes);
        indexes += own_count(trails, i);
    }
    proof->pool = proof->hashes.data;
    proof->pool_stride = HASH_SIZE;
    proof->pool_count = hashes;
    if (proof->hashes.size != hashes * HASH_SIZE)
        cx_finding_set(out, CX_BROKEN, "ProofMalformed", CX_FINDING_WHOLE,
                       "%zu bytes of siblings, expected %zu times %d", proof->hashes.size, hashes,
                       HASH_SIZE);
    for (size_t i = 0; i < hashes && out->verdict == CX_HOLDS; i++)
        if (memcmp(proof->pool + i * HASH_SIZE, zeros.bytes, HASH_SIZE) == 0)
            cx_finding_set(out, CX_BROKEN, "ProofMalformed", CX_FINDING_WHOLE,
                           "sibling %zu is zero and said to be there", i);
    return CX_SUCCESS;
}

/* --- each key's siblings --------------------------------------------------------------------- */

/* From the root down: those of the key before it, the node where they part, those of its own. */
static void gather_siblings(const cx_raw_proof *proof, const cx_trail *trails,
                            const cx_digest *nodes, const cx_digest *lefts, size_t at,
                            const cx_digest *last, cx_digest *out)
{
    const cx_trail *t = &trails[at];
    size_t own = cx_trail_own(trails, at);
    size_t as_last = at == 0 ? 0 : t->shared < t->depth ? t->shared : t->depth;
    if (as_last != 0)
        memcpy(out, last, as_last * sizeof *out);
    if (cx_trail_ends_with_last(trails, at))
        return;
    if (at != 0)
        out[t->shared] = lefts[at];
    for (size_t i = own; i < t->depth; i++)
        memcpy(out[i].bytes, cx_raw_sibling(proof, &proof->items[t->item], i), HASH_SIZE);
    for (size_t met = t->meets; met != 0; met = trails[met].next)
        out[trails[met].shared] = nodes[met];
}

cx_status cx_compact_expand(const cx_raw_proof *proof, cx_trail *trails, cx_proof_item *items,
                            cx_arena *arena, cx_finding *form, cx_err *err)
{
    cx_digest *nodes = CX_ARENA_ARRAY(arena, cx_digest, proof->count + 1);
    cx_digest *lefts = CX_ARENA_ARRAY(arena, cx_digest, proof->count + 1);
    bool agree;
    size_t against;
    if (nodes == NULL || lefts == NULL)
        return cx_fail_nomem(err);
    cx_raw_proof_ends(CX_SCHEME_CORTEX_1, trails, items, proof->count, nodes);
    CX_TRY(cx_raw_proof_fold(proof, CX_SCHEME_CORTEX_1, trails, nodes, lefts, arena, &agree,
                             &against, err));
    if (!agree) {
        set_malformed(form, against, "and the one before it say different things of one place");
        return CX_SUCCESS;
    }
    const cx_digest *last = NULL;
    for (size_t i = 0; i < proof->count; i++) {
        cx_digest *siblings = CX_ARENA_ARRAY(arena, cx_digest, trails[i].depth + 1u);
        if (siblings == NULL)
            return cx_fail_nomem(err);
        gather_siblings(proof, trails, nodes, lefts, i, last, siblings);
        last = siblings;
        items[i].path.sibling_count = trails[i].depth;
        items[i].path.siblings = siblings;
    }
    return CX_SUCCESS;
}

/* --- writing --------------------------------------------------------------------------------- */

static void encode_item(const cx_proof_item *item, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_proof_begin_item(item, &fields, out);
    cx_cbor_uint(out, item->path.sibling_count);
    cx_proof_end_item(item, &fields, out);
}

/* Siblings as they come: hashes to a buffer, bits to another, of which the last byte may be
 * unfinished. */
typedef struct sibling_writer {
    cx_buf hashes;
    cx_buf presence;
    unsigned bits;
    unsigned bit_count;
} sibling_writer;

static void add_bits(sibling_writer *w)
{
    if (w->bit_count != 0)
        cx_buf_add_byte(&w->presence, (uint8_t)(w->bits << (8 - w->bit_count)));
    w->bits = w->bit_count = 0;
}

static void add_sibling(sibling_writer *w, const cx_digest *hash)
{
    bool there = !cx_digest_eq(hash, &zeros);
    w->bits = w->bits << 1 | there;
    if (++w->bit_count == 8)
        add_bits(w);
    if (there)
        cx_buf_add(&w->hashes, hash->bytes, HASH_SIZE);
}

static void add_siblings(const cx_multiproof *proof, const cx_trail *trails, sibling_writer *w)
{
    bool met[CX_PROOF_SIBLINGS_MAX];
    for (size_t i = 0; i < proof->count; i++) {
        if (cx_trail_ends_with_last(trails, i))
            continue;
        cx_trail_mark_met(trails, i, met);
        for (size_t k = cx_trail_own(trails, i); k < trails[i].depth; k++)
            if (!met[k])
                add_sibling(w, &proof->items[i].path.siblings[k]);
    }
    add_bits(w);
}

static cx_status link_items(const cx_multiproof *proof, cx_trail *trails, cx_err *err)
{
    for (size_t i = 0; i < proof->count; i++) {
        const cx_smt_path *path = &proof->items[i].path;
        if (i != 0 && memcmp(path->key.bytes, trails[i - 1].key->bytes, HASH_SIZE) <= 0)
            return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                              "key %zu of a compact proof is not in ascending order", i);
        CX_ASSERT(path->sibling_count <= CX_PROOF_SIBLINGS_MAX);
        trails[i] = (cx_trail){
            .key = &path->key, .item = (uint32_t)i, .depth = (uint16_t)path->sibling_count};
    }
    size_t against = cx_trails_link(trails, proof->count);
    if (against != SIZE_MAX)
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "key %zu and the one before it: the path of one ends on the other's way",
                          against);
    return CX_SUCCESS;
}

static cx_status encode_all(const cx_multiproof *proof, const cx_trail *trails, cx_buf *out,
                            cx_err *err)
{
    sibling_writer w = {.bits = 0};
    cx_status status;
    cx_buf_init(&w.hashes, out->alloc);
    cx_buf_init(&w.presence, out->alloc);
    cx_proof_put_head(proof, CX_FORM_COMPACT, 7, out);
    for (size_t i = 0; i < proof->count; i++)
        encode_item(&proof->items[i], out);
    add_siblings(proof, trails, &w);
    CX_TRY_GOTO(status, cx_buf_check(&w.hashes, err));
    CX_TRY_GOTO(status, cx_buf_check(&w.presence, err));
    cx_cbor_uint(out, 4);
    cx_cbor_text(out, cx_scheme_name(proof->scheme));
    cx_cbor_uint(out, 5);
    cx_cbor_bytes(out, cx_buf_bytes(&w.hashes));
    cx_cbor_uint(out, 6);
    cx_cbor_bytes(out, cx_buf_bytes(&w.presence));
done:
    cx_buf_done(&w.hashes);
    cx_buf_done(&w.presence);
    return status;
}

cx_status cx_compact_encode(const cx_multiproof *proof, cx_buf *out, cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, out->alloc, 0);
    cx_trail *trails = CX_ARENA_ARRAY(&arena, cx_trail, proof->count);
    cx_status status = trails == NULL ? cx_fail_nomem(err) : link_items(proof, trails, err);
    if (!cx_failed(status))
        status = encode_all(proof, trails, out, err);
    cx_arena_done(&arena);
    return status;
}
