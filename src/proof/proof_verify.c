/*
 * proof_verify.c - does a MultiProof hold against a manifest? (ledger.md §8.1)
 *
 * The steps are in the order of that list and the first that fails is the verdict; each is done
 * for all keys before the next.
 *
 * Folding is proof_fold.c.  When two keys that tell all their siblings contradict each other, one
 * of them cannot lead to the root, and the slow way (key by key) finds out which.
 */
#include "proof/proof_internal.h"

typedef struct verifier {
    cx_scheme scheme;
    cx_raw_proof raw;
    cx_manifest manifest;
    bool has_manifest;
    const cx_multiproof_check *check;
    cx_arena *arena;
    cx_proof_item *items;
    cx_trail *trails; /* in the order of keys */
    cx_finding *out;
} verifier;

static bool verdict_holds(const verifier *v)
{
    return v->out->verdict == CX_HOLDS;
}

/* --- the proof and its manifest -------------------------------------------------------------- */

static void check_scheme(verifier *v)
{
    cx_str name = v->raw.scheme_name;
    cx_scheme expected = v->raw.form == CX_FORM_PLAIN ? CX_SCHEME_MATRIX_1 : CX_SCHEME_CORTEX_1;
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

static cx_status sort_keys(verifier *v, cx_err *err)
{
    size_t twice;
    v->items = CX_ARENA_ARRAY(v->arena, cx_proof_item, v->raw.count);
    if (v->items == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_trails_of(&v->raw, v->arena, &v->trails, &twice, err));
    if (twice != SIZE_MAX)
        cx_finding_set(v->out, CX_BROKEN, "DuplicateKey", twice, "a key is there twice");
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

/* matrix-1: the records are passed with the proof. */
static void attach_leaves(verifier *v)
{
    const cx_multiproof_check *check = v->check;
    if (check->leaf_count == 0 || v->raw.form != CX_FORM_PLAIN)
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
    memset(v->items, 0, v->raw.count * sizeof *v->items);
    for (size_t i = 0; i < v->raw.count; i++)
        cx_raw_item_claim(&v->raw, &v->raw.items[i], &v->items[i]);
    attach_leaves(v);
    for (size_t i = 0; i < v->raw.count && verdict_holds(v); i++)
        if (v->raw.items[i].has_leaf || v->items[i].leaf.size != 0)
            CX_TRY(check_leaf(v, i, err));
    return CX_SUCCESS;
}

/* --- folding --------------------------------------------------------------------------------- */

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
            memcpy(siblings[k].bytes, cx_raw_sibling(&v->raw, item, k), sizeof siblings[k]);
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

/* A compact proof leads to its root as a whole or not at all. */
static void report_compact(verifier *v, size_t against)
{
    if (against == SIZE_MAX)
        cx_finding_set(v->out, CX_BROKEN, "RootMismatch", CX_FINDING_WHOLE,
                       "the keys and siblings do not lead to the root");
    else
        cx_finding_set(v->out, CX_BROKEN, "RootMismatch", against,
                       "key %zu and the one before it say different things of one place", against);
}

static cx_status check_fold(verifier *v, cx_err *err)
{
    bool agree = false;
    size_t against;
    cx_digest *nodes = CX_ARENA_ARRAY(v->arena, cx_digest, v->raw.count);
    if (nodes == NULL)
        return cx_fail_nomem(err);
    cx_raw_proof_ends(v->scheme, v->trails, v->items, v->raw.count, nodes);
    CX_TRY(cx_raw_proof_fold(&v->raw, v->scheme, v->trails, nodes, NULL, v->arena, &agree, &against,
                             err));
    if (!agree || !cx_digest_eq(&nodes[0], &v->raw.root)) {
        if (v->raw.form == CX_FORM_COMPACT)
            report_compact(v, against);
        else
            fold_one_by_one(v);
    }
    for (size_t i = 0; i < v->raw.count && verdict_holds(v) && v->check->require_members; i++)
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
    if (!verdict_holds(v) || !v->has_manifest)
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
    if (verdict_holds(v))
        CX_TRY(cx_raw_proof_check_form(&v->raw, v->trails, v->arena, v->out, err));
    if (verdict_holds(v))
        CX_TRY(check_leaves(v, err));
    if (verdict_holds(v))
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
    if (verdict_holds(&v))
        check_scheme(&v);
    if (verdict_holds(&v))
        check_namespace_and_root(&v);
    if (verdict_holds(&v))
        CX_TRY(check_keys(&v, err));
    if (verdict_holds(&v) && out_proof != NULL)
        *out_proof = (cx_multiproof){.scheme = v.scheme,
                                     .compact = v.raw.form == CX_FORM_COMPACT,
                                     .name_space = v.raw.name_space,
                                     .root = v.raw.root,
                                     .count = v.raw.count,
                                     .items = v.items};
    return CX_SUCCESS;
}
