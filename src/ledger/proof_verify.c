/*
 * proof_verify.c - does a MultiProof hold against a manifest? (ledger.md §8.1)
 *
 * The steps stand in the order of that list and the first that fails is the verdict; each is done
 * for all keys before the next.
 *
 * Folding: all keys go up together, deepest first, and keys that come to the same node go on as
 * one, so that every distinct node is hashed once and in lanes.  Two keys may go on as one only if
 * they tell the same story: the node of each is what the other names as sibling, and all siblings
 * above are equal.  Where they do not, one of them cannot lead to the root, and the slow way
 * (key by key) finds out which.
 */
#include <stdlib.h>

#include "ledger/proof_internal.h"

typedef struct verifier {
    cx_scheme scheme;
    cx_raw_proof raw;
    cx_manifest manifest;
    bool has_manifest;
    const cx_multiproof_check *check;
    cx_arena *arena;
    cx_proof_item *items;
    const cx_raw_item **sorted; /* by key */
    cx_finding *out;
} verifier;

static bool holds(const verifier *v)
{
    return v->out->verdict == CX_HOLDS;
}

/* --- the proof and its manifest -------------------------------------------------------------- */

static void check_scheme(verifier *v)
{
    cx_str name = v->raw.scheme_name;
    cx_scheme expected = v->raw.pooled ? CX_SCHEME_CORTEX_1 : CX_SCHEME_MATRIX_1;
    v->scheme = expected;
    if (!cx_str_eq(name, cx_scheme_name(expected)))
        cx_finding_set(v->out, CX_BROKEN, "SchemeMismatch", CX_FINDING_WHOLE,
                       "the proof has the form of %s and names another scheme",
                       cx_scheme_name(expected).data);
    else if (v->has_manifest && v->manifest.scheme != expected)
        cx_finding_set(v->out, CX_BROKEN, "SchemeMismatch", CX_FINDING_WHOLE,
                       "the proof is of %s, the manifest of %s", cx_scheme_name(expected).data,
                       cx_scheme_name(v->manifest.scheme).data);
}

/* NULL when the manifest does not have it, or there is no such namespace. */
static const cx_digest *state_root(const verifier *v, cx_str name)
{
    const cx_manifest *manifest = &v->manifest;
    if (manifest->state_roots_null)
        return NULL;
    if (manifest->has_memories && cx_str_eq(name, cx_namespace_name(CX_NAMESPACE_MEMORIES)))
        return &manifest->memories_root;
    if (manifest->has_edges && cx_str_eq(name, cx_namespace_name(CX_NAMESPACE_EDGES)))
        return &manifest->edges_root;
    return NULL;
}

static bool is_namespace(cx_str name)
{
    return cx_str_eq(name, cx_namespace_name(CX_NAMESPACE_MEMORIES)) ||
           cx_str_eq(name, cx_namespace_name(CX_NAMESPACE_EDGES));
}

static void check_namespace_and_root(verifier *v)
{
    cx_namespace asked = v->check->name_space;
    cx_str name = v->raw.name_space;
    const cx_digest *expected = v->has_manifest ? state_root(v, name) : v->check->state_root;
    if (!is_namespace(name))
        cx_finding_set(v->out, CX_BROKEN, "NamespaceMismatch", CX_FINDING_WHOLE,
                       "the proof is about neither memories nor edges");
    else if (asked != CX_NAMESPACE_ANY && !cx_str_eq(name, cx_namespace_name(asked)))
        cx_finding_set(v->out, CX_BROKEN, "NamespaceMismatch", CX_FINDING_WHOLE,
                       "the proof is about %.*s, expected %s", (int)name.size, name.data,
                       cx_namespace_name(asked).data);
    else if (v->has_manifest && expected == NULL)
        cx_finding_set(v->out, CX_BROKEN, "NamespaceMismatch", CX_FINDING_WHOLE,
                       "the manifest has no root of %.*s", (int)name.size, name.data);
    else if (expected != NULL && !cx_digest_eq(expected, &v->raw.root))
        cx_finding_set(v->out, CX_BROKEN, v->has_manifest ? "ManifestRootMismatch" : "RootMismatch",
                       CX_FINDING_WHOLE, "the root of %.*s in the proof is not the one %s",
                       (int)name.size, name.data, v->has_manifest ? "of the manifest" : "given");
}

/* --- keys and leaves ------------------------------------------------------------------------- */

static int compare_items(const void *a, const void *b)
{
    const cx_raw_item *const *left = a, *const *right = b;
    return memcmp((*left)->key.bytes, (*right)->key.bytes, sizeof(*left)->key.bytes);
}

static cx_status sort_keys(verifier *v, cx_err *err)
{
    size_t count = v->raw.count;
    v->sorted = CX_ARENA_ARRAY(v->arena, const cx_raw_item *, count);
    v->items = CX_ARENA_ARRAY(v->arena, cx_proof_item, count);
    if (v->sorted == NULL || v->items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        v->sorted[i] = &v->raw.items[i];
    qsort(v->sorted, count, sizeof(const cx_raw_item *), compare_items);
    for (size_t i = 1; i < count && holds(v); i++)
        if (compare_items(&v->sorted[i - 1], &v->sorted[i]) == 0)
            cx_finding_set(v->out, CX_BROKEN, "DuplicateKey", (size_t)(v->sorted[i] - v->raw.items),
                           "a key is there twice");
    return CX_SUCCESS;
}

/* The key under which a record belongs; CX_E_FORMAT when it is no such record. */
static cx_status record_key(verifier *v, cx_bytes leaf, cx_digest *out, cx_err *err)
{
    cx_arena_mark mark = cx_arena_mark_now(v->arena);
    cx_status status;
    if (cx_str_eq(v->raw.name_space, cx_namespace_name(CX_NAMESPACE_MEMORIES))) {
        cx_head head;
        status = cx_head_decode(leaf, v->arena, &head, err);
        if (!cx_failed(status))
            *out = cx_scheme_memory_key(v->scheme, head.id.bytes);
    } else {
        cx_edge edge;
        status = cx_edge_decode(leaf, v->arena, &edge, err);
        if (!cx_failed(status))
            *out = cx_scheme_edge_key(v->scheme, edge.src.bytes, edge.type, edge.dst.bytes);
    }
    cx_arena_reset(v->arena, mark);
    return status;
}

static cx_status check_leaf(verifier *v, size_t at, cx_err *err)
{
    cx_proof_item *item = &v->items[at];
    cx_digest key, value = cx_scheme_value(v->scheme, item->leaf);
    cx_err found;
    cx_status status = record_key(v, item->leaf, &key, &found);
    if (cx_failed(status)) {
        CX_TRY(cx_finding_from(status, &found, "LeafMismatch", v->out, err));
        v->out->key_index = at;
        v->out->offset = CX_NO_OFFSET; /* it counts from the leaf, not from the proof */
    } else if (!cx_digest_eq(&key, &item->path.key)) {
        cx_finding_set(v->out, CX_BROKEN, "LeafMismatch", at,
                       "the record at key %zu belongs under another key", at);
    } else if (!cx_digest_eq(&value, &item->path.value)) {
        cx_finding_set(v->out, CX_BROKEN, "LeafMismatch", at,
                       "the record at key %zu is not the one whose hash the proof has", at);
    }
    return CX_SUCCESS;
}

/* matrix-1: the records travel beside the proof. */
static void attach_leaves(verifier *v)
{
    const cx_multiproof_check *check = v->check;
    if (check->leaf_count == 0 || v->raw.pooled)
        return;
    if (check->leaf_count != v->raw.count) {
        cx_finding_set(v->out, CX_BROKEN, "LeafMismatch", CX_FINDING_WHOLE,
                       "%zu records come with a proof of %zu keys", check->leaf_count,
                       v->raw.count);
        return;
    }
    for (size_t i = 0; i < v->raw.count; i++) {
        v->items[i].leaf = check->leaves[i];
        if (v->items[i].kind == CX_ABSENT && check->leaves[i].size != 0) {
            cx_finding_set(v->out, CX_BROKEN, "LeafMismatch", i,
                           "a record comes with key %zu, which is absent", i);
            return;
        }
    }
}

static cx_status check_leaves(verifier *v, cx_err *err)
{
    for (size_t i = 0; i < v->raw.count; i++)
        cx_raw_item_claim(&v->raw, &v->raw.items[i], &v->items[i]);
    attach_leaves(v);
    for (size_t i = 0; i < v->raw.count && holds(v); i++)
        if (v->raw.items[i].has_leaf || v->items[i].leaf.size != 0)
            CX_TRY(check_leaf(v, i, err));
    return CX_SUCCESS;
}

/* --- folding --------------------------------------------------------------------------------- */

/* A node on its way up, standing for all keys below it that have met.  All climbers stand at one
 * depth, sorted by key; those whose path is shorter wait until the others have come up to them. */
typedef struct climber {
    const cx_raw_item *item;
    cx_digest node;
    size_t shared; /* leading bits in common with the climber before it */
} climber;

/* Where the path of each key begins; `pairs` is room to work in. */
static void start_nodes(const verifier *v, cx_digest *pairs, cx_digest *out)
{
    const cx_digest empty =
        cx_scheme_smt_empty(v->scheme, v->scheme == CX_SCHEME_MATRIX_1 ? CX_PROOF_SIBLINGS_MAX : 0);
    for (size_t i = 0; i < v->raw.count; i++) {
        const cx_smt_path *path = &v->items[i].path;
        pairs[2 * i] = path->member ? path->key : path->other_key;
        pairs[2 * i + 1] = path->member ? path->value : path->other_value;
    }
    cx_scheme_smt_leaves(v->scheme, pairs, out, v->raw.count);
    for (size_t i = 0; i < v->raw.count; i++)
        if (!v->items[i].path.member && !v->items[i].path.has_other)
            out[i] = empty;
}

static size_t shared_bits(const cx_digest *a, const cx_digest *b)
{
    for (size_t i = 0; i < sizeof a->bytes; i++) {
        unsigned differs = (unsigned)(a->bytes[i] ^ b->bytes[i]);
        if (differs != 0)
            return 8 * i + (size_t)__builtin_clz(differs) - 24;
    }
    return 256;
}

static bool same_siblings(const verifier *v, const cx_raw_item *a, const cx_raw_item *b,
                          size_t count)
{
    if (v->raw.pooled) /* the pool has each hash once */
        return count == 0 || memcmp(a->indexes, b->indexes, count * sizeof *a->indexes) == 0;
    return count == 0 || memcmp(a->siblings, b->siblings, count * sizeof *a->siblings) == 0;
}

/* Whether b, which stands at the same depth and under the same parent, says what a says. */
static bool agree(const verifier *v, const climber *a, const climber *b, size_t depth)
{
    if (b->shared >= depth) /* the same node */
        return cx_digest_eq(&a->node, &b->node) && same_siblings(v, a->item, b->item, depth);
    return cx_digest_eq(&a->node, cx_raw_sibling(&v->raw, b->item, depth - 1)) &&
           cx_digest_eq(&b->node, cx_raw_sibling(&v->raw, a->item, depth - 1)) &&
           same_siblings(v, a->item, b->item, depth - 1);
}

/* Those whose path begins at this depth join the others; from behind, so that none is in the way.
 */
static size_t join(const verifier *v, const cx_digest *begins, climber *climbers, size_t count,
                   const cx_raw_item *const *arriving, size_t arriving_count)
{
    size_t total = count + arriving_count;
    for (size_t i = count, k = arriving_count; k > 0;) {
        const cx_raw_item *item = arriving[k - 1];
        climber *place = &climbers[i + k - 1];
        if (i > 0 && memcmp(climbers[i - 1].item->key.bytes, item->key.bytes, 32) > 0) {
            *place = climbers[--i];
        } else {
            *place = (climber){.item = item, .node = begins[item - v->raw.items]};
            k--;
        }
    }
    for (size_t i = 1; i < total && arriving_count != 0; i++)
        climbers[i].shared = shared_bits(&climbers[i - 1].item->key, &climbers[i].item->key);
    return total;
}

/* Neighbours that meet go on as one; returns how many are left, 0 when two disagree. */
static size_t meet(const verifier *v, climber *climbers, size_t count, size_t depth)
{
    size_t kept = 1;
    for (size_t i = 1; i < count; i++) {
        climber *last = &climbers[kept - 1], *next = &climbers[i];
        if (next->shared + 1 >= depth) {
            if (!agree(v, last, next, depth))
                return 0;
            /* The one behind now follows `last`: it has in common with it what all three have. */
            if (i + 1 < count && climbers[i + 1].shared > next->shared)
                climbers[i + 1].shared = next->shared;
        } else if (kept++ != i) {
            climbers[kept - 1] = *next;
        }
    }
    return kept;
}

/* All climbers at `depth` go one up. */
static void climb(const verifier *v, climber *climbers, size_t count, size_t depth,
                  cx_digest *pairs)
{
    size_t bit = depth - 1;
    for (size_t i = 0; i < count; i++) {
        const cx_raw_item *item = climbers[i].item;
        size_t right = (unsigned)item->key.bytes[bit / 8] >> (7 - bit % 8) & 1u;
        pairs[2 * i + right] = climbers[i].node;
        pairs[2 * i + 1 - right] = *cx_raw_sibling(&v->raw, item, bit);
    }
    cx_scheme_smt_nodes(v->scheme, pairs, pairs, count);
    for (size_t i = 0; i < count; i++)
        climbers[i].node = pairs[i];
}

/* Items by the depth where their path begins, and by key there; starts[d] is the first of depth d,
 * starts[d + 1] the end. */
static void sort_by_depth(const verifier *v, const cx_raw_item **out,
                          size_t starts[CX_PROOF_SIBLINGS_MAX + 2])
{
    size_t next[CX_PROOF_SIBLINGS_MAX + 1];
    memset(starts, 0, (CX_PROOF_SIBLINGS_MAX + 2) * sizeof *starts);
    for (size_t i = 0; i < v->raw.count; i++)
        starts[v->raw.items[i].sibling_count + 1]++;
    for (size_t depth = 0; depth <= CX_PROOF_SIBLINGS_MAX; depth++) {
        next[depth] = starts[depth];
        starts[depth + 1] += starts[depth];
    }
    for (size_t i = 0; i < v->raw.count; i++)
        out[next[v->sorted[i]->sibling_count]++] = v->sorted[i];
}

static cx_status fold_together(verifier *v, bool *out_good, cx_err *err)
{
    size_t starts[CX_PROOF_SIBLINGS_MAX + 2], count = 0;
    const cx_raw_item **waiting = CX_ARENA_ARRAY(v->arena, const cx_raw_item *, v->raw.count);
    climber *climbers = CX_ARENA_ARRAY(v->arena, climber, v->raw.count);
    cx_digest *pairs = CX_ARENA_ARRAY(v->arena, cx_digest, 2 * v->raw.count);
    cx_digest *begins = CX_ARENA_ARRAY(v->arena, cx_digest, v->raw.count);
    if (waiting == NULL || climbers == NULL || pairs == NULL || begins == NULL)
        return cx_fail_nomem(err);
    start_nodes(v, pairs, begins);
    sort_by_depth(v, waiting, starts);
    *out_good = true;
    for (size_t depth = CX_PROOF_SIBLINGS_MAX; *out_good; depth--) {
        count = join(v, begins, climbers, count, waiting + starts[depth],
                     starts[depth + 1] - starts[depth]);
        if (depth == 0)
            break;
        if (count == 0)
            continue;
        count = meet(v, climbers, count, depth);
        *out_good = count != 0;
        climb(v, climbers, count, depth, pairs);
    }
    for (size_t i = 0; i < count; i++)
        *out_good = *out_good && cx_digest_eq(&climbers[i].node, &v->raw.root);
    return CX_SUCCESS;
}

/* The slow way, which names the key. */
static void fold_one_by_one(verifier *v)
{
    cx_digest siblings[CX_PROOF_SIBLINGS_MAX];
    for (size_t i = 0; i < v->raw.count; i++) {
        const cx_raw_item *item = &v->raw.items[i];
        cx_smt_path path = v->items[i].path;
        path.sibling_count = item->sibling_count;
        path.siblings = siblings;
        for (size_t k = 0; k < item->sibling_count; k++)
            siblings[k] = *cx_raw_sibling(&v->raw, item, k);
        cx_digest root = cx_smt_fold(v->scheme, &path);
        if (!cx_digest_eq(&root, &v->raw.root)) {
            cx_finding_set(v->out, CX_BROKEN, "RootMismatch", i,
                           "the path of key %zu does not lead to the root", i);
            return;
        }
    }
    /* Each path alone leads there: then two that disagree would be a collision of SHA-256. */
    cx_finding_set(v->out, CX_BROKEN, "RootMismatch", CX_FINDING_WHOLE,
                   "the paths of two keys contradict each other");
}

static cx_status check_fold(verifier *v, cx_err *err)
{
    bool good = false;
    CX_TRY(fold_together(v, &good, err));
    if (!good)
        fold_one_by_one(v);
    for (size_t i = 0; i < v->raw.count && holds(v) && v->check->require_members; i++)
        if (v->items[i].kind == CX_ABSENT)
            cx_finding_set(v->out, CX_BROKEN, "NotMember", i, "key %zu is absent", i);
    return CX_SUCCESS;
}

/* --- all of it ------------------------------------------------------------------------------- */

static cx_status read_both(verifier *v, cx_bytes proof, cx_bytes manifest, cx_err *err)
{
    cx_err found;
    cx_status status = cx_raw_proof_read(proof, v->arena, &v->raw, &found);
    CX_TRY(cx_finding_from(status, &found, "NonCanonical", v->out, err));
    if (!holds(v) || !v->has_manifest)
        return CX_SUCCESS;
    return cx_manifest_verify(manifest, NULL, v->arena->alloc, &v->manifest, v->out, err);
}

static cx_status check_keys(verifier *v, cx_err *err)
{
    if (v->raw.count == 0) {
        cx_finding_set(v->out, CX_BROKEN, "EmptyProof", CX_FINDING_WHOLE, "it proves no key");
        return CX_SUCCESS;
    }
    CX_TRY(sort_keys(v, err));
    if (holds(v))
        CX_TRY(cx_raw_proof_check_form(&v->raw, v->arena, v->out, err));
    if (holds(v))
        CX_TRY(check_leaves(v, err));
    if (holds(v))
        CX_TRY(check_fold(v, err));
    return CX_SUCCESS;
}

cx_status cx_multiproof_verify(cx_bytes proof, cx_bytes manifest, const cx_multiproof_check *check,
                               cx_arena *arena, cx_multiproof *out_proof, cx_finding *out,
                               cx_err *err)
{
    verifier v = {.check = check, .arena = arena, .out = out, .has_manifest = manifest.size != 0};
    cx_finding_init(out);
    CX_TRY(read_both(&v, proof, manifest, err));
    if (holds(&v))
        check_scheme(&v);
    if (holds(&v))
        check_namespace_and_root(&v);
    if (holds(&v))
        CX_TRY(check_keys(&v, err));
    if (holds(&v) && out_proof != NULL)
        *out_proof = (cx_multiproof){.scheme = v.scheme,
                                     .name_space = v.raw.name_space,
                                     .root = v.raw.root,
                                     .count = v.raw.count,
                                     .items = v.items};
    return CX_SUCCESS;
}
