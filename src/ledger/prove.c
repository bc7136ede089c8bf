/*
 * prove.c - makes proofs of the current state, of the state at a retained snapshot, and of the
 * journal.
 *
 * Paths come from the pages of the tables, of now or as a snapshot saw them (trees.c).
 */
#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/snapshot.h"

#define RECORD_KEY_MAX (7 + 16 + 1 + 16)

typedef struct record_key {
    uint8_t bytes[RECORD_KEY_MAX];
    size_t size;
} record_key;

typedef struct asked {
    cx_namespace name_space;
    size_t count;
    bool compact;
    record_key *records;
    cx_digest *keys;
    size_t *order; /* NULL = as asked */
} asked;

static void name_edge(record_key *out, const cx_edge *edge)
{
    memcpy(out->bytes, "e/from/", 7);
    memcpy(out->bytes + 7, edge->src.bytes, 16);
    out->bytes[23] = edge->type;
    memcpy(out->bytes + 24, edge->dst.bytes, 16);
    out->size = 40;
}

static void name_head(record_key *out, const cx_id *id)
{
    memcpy(out->bytes, "m/", 2);
    memcpy(out->bytes + 2, id->bytes, 16);
    out->size = 18;
}

static int compare_digests(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(cx_digest));
}

static cx_status check_distinct(const asked *request, cx_arena *arena, cx_err *err)
{
    cx_digest *sorted = CX_ARENA_ARRAY(arena, cx_digest, request->count);
    if (sorted == NULL)
        return cx_fail_nomem(err);
    memcpy(sorted, request->keys, request->count * sizeof *sorted);
    qsort(sorted, request->count, sizeof *sorted, compare_digests);
    for (size_t i = 1; i < request->count; i++)
        if (cx_digest_eq(&sorted[i - 1], &sorted[i]))
            return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                              "the same memory or edge is asked for twice");
    return CX_SUCCESS;
}

typedef struct ordered {
    cx_digest key;
    record_key record;
    size_t at;
} ordered;

static int compare_ordered(const void *a, const void *b)
{
    const ordered *left = a, *right = b;
    return memcmp(left->key.bytes, right->key.bytes, sizeof left->key.bytes);
}

/* Sorts the keys: those of a compact proof ascend. */
static cx_status order_keys(asked *request, cx_arena *arena, cx_err *err)
{
    ordered *all = CX_ARENA_ARRAY(arena, ordered, request->count);
    request->order = CX_ARENA_ARRAY(arena, size_t, request->count);
    if (all == NULL || request->order == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < request->count; i++)
        all[i] = (ordered){request->keys[i], request->records[i], i};
    qsort(all, request->count, sizeof *all, compare_ordered);
    for (size_t i = 0; i < request->count; i++) {
        request->keys[i] = all[i].key;
        request->records[i] = all[i].record;
        request->order[i] = all[i].at;
    }
    return CX_SUCCESS;
}

static cx_status read_request(const cx_proof_request *request, cx_scheme scheme, cx_arena *arena,
                              asked *out, cx_err *err)
{
    bool edges = request->name_space == CX_NAMESPACE_EDGES;
    size_t count = edges ? request->edge_count : request->id_count;
    if (count == 0)
        return cx_fail_at(err, CX_E_USAGE, "EmptyProof", CX_NO_OFFSET,
                          "a proof must be about something: name at least one memory or edge");
    if (count > CX_PROOF_KEYS_MAX)
        return cx_fail(err, CX_E_LIMIT, "%zu keys in one proof; at most %d are allowed", count,
                       CX_PROOF_KEYS_MAX);
    if (request->compact && scheme != CX_SCHEME_CORTEX_1)
        return cx_fail_at(err, CX_E_UNSUPPORTED, "SchemeUnsupported", CX_NO_OFFSET,
                          "compact proofs exist for cortex-1 only; ask for one that is not");
    *out = (asked){.name_space = request->name_space, .count = count, .compact = request->compact};
    out->records = CX_ARENA_ARRAY(arena, record_key, count);
    out->keys = CX_ARENA_ARRAY(arena, cx_digest, count);
    if (out->records == NULL || out->keys == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        if (edges)
            name_edge(&out->records[i], &request->edges[i]);
        else
            name_head(&out->records[i], &request->ids[i]);
        bool is_edge;
        bool known =
            cx_state_key(scheme, cx_bytes_from(out->records[i].bytes, out->records[i].size),
                         &out->keys[i], &is_edge);
        CX_ASSERT(known);
    }
    if (request->compact)
        CX_TRY(order_keys(out, arena, err));
    return check_distinct(out, arena, err);
}

/* --- from paths to a container --------------------------------------------------------------- */

/* The bytes of a record, empty when they were erased; and what the tree must have for it. */
typedef cx_status leaf_reader(void *arg, cx_bytes key, cx_arena *arena, cx_bytes *out_leaf,
                              bool *out_erased, cx_digest *out_value, cx_err *err);

/* The row of a record and the tree are read from different tables: they must agree. */
static cx_status check_leaf(const cx_smt_path *path, const cx_digest *value, cx_err *err)
{
    if (cx_digest_eq(&path->value, value))
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "a record in the tables is not the one that its tree has; run 'cortex tables"
                      " rebuild' (the log is the truth, nothing is lost)");
}

static cx_status assemble(const asked *request, cx_scheme scheme, const cx_digest *root,
                          const cx_smt_path *paths, leaf_reader *read_leaf, void *arg,
                          cx_arena *arena, cx_state_proof *out, cx_err *err)
{
    cx_proof_item *items = CX_ARENA_ARRAY(arena, cx_proof_item, request->count);
    cx_bytes *leaves = CX_ARENA_ARRAY(arena, cx_bytes, request->count);
    if (items == NULL || leaves == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < request->count; i++) {
        bool erased = false;
        leaves[i] = (cx_bytes){NULL, 0};
        if (paths[i].member) {
            cx_digest value;
            CX_TRY(read_leaf(arg,
                             cx_bytes_from(request->records[i].bytes, request->records[i].size),
                             arena, &leaves[i], &erased, &value, err));
            CX_TRY(check_leaf(&paths[i], &value, err));
        }
        items[i] = (cx_proof_item){.path = paths[i],
                                   .leaf = leaves[i],
                                   .kind = !paths[i].member ? CX_ABSENT
                                           : erased         ? CX_MEMBER_ERASED
                                                            : CX_MEMBER};
    }
    cx_state_proof result = {.leaves = leaves,
                             .order = request->order,
                             .proof = {.scheme = scheme,
                                       .compact = request->compact,
                                       .name_space = cx_namespace_name(request->name_space),
                                       .root = *root,
                                       .count = request->count,
                                       .items = items}};
    cx_buf bytes;
    cx_buf_init(&bytes, cx_alloc_default());
    cx_status status = cx_multiproof_encode(&result.proof, &bytes, err);
    if (!cx_failed(status)) {
        cx_str copy = cx_arena_copy_str(arena, cx_buf_str(&bytes));
        status = copy.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
        result.bytes = cx_str_bytes(copy);
    }
    cx_buf_done(&bytes);
    if (!cx_failed(status))
        *out = result;
    return status;
}

typedef struct leaf_source {
    cx_home *home;
    cx_str actor;
    cx_scheme scheme;
    bool past;
    uint64_t snapshot;
} leaf_source;

static cx_status read_leaf(void *arg, cx_bytes key, cx_arena *arena, cx_bytes *out_leaf,
                           bool *out_erased, cx_digest *out_value, cx_err *err)
{
    const leaf_source *source = arg;
    bool found = false;
    cx_digest hash = {{0}};
    cx_bytes value = {NULL, 0};
    if (source->past) {
        CX_TRY(cx_home_get_at(source->home, source->actor, source->snapshot, key, arena, &value,
                              &found, out_erased, &hash, err));
    } else {
        CX_TRY(cx_home_get(source->home, source->actor, key, arena, &value, &found, err));
        *out_erased = found && cx_value_erased(value, &hash);
    }
    *out_leaf = found && !*out_erased ? value : (cx_bytes){NULL, 0};
    *out_value = found && !*out_erased ? cx_scheme_value(source->scheme, value) : hash;
    return CX_SUCCESS;
}

/* --- the state now --------------------------------------------------------------------------- */

static cx_status manifest_of(cx_home *home, cx_str actor, uint64_t seq, cx_arena *arena,
                             cx_manifest *out, cx_bytes *out_bytes, cx_err *err)
{
    return cx_snapshot_get(home, actor, seq, arena, out, out_bytes, err);
}

static const cx_digest *manifest_root(const cx_manifest *manifest, cx_namespace name_space)
{
    return name_space == CX_NAMESPACE_EDGES ? &manifest->edges_root : &manifest->memories_root;
}

static cx_status prove_now(cx_home *home, const cx_trees *trees, const asked *request,
                           const cx_digest *expected, leaf_source *source, cx_arena *arena,
                           cx_state_proof *out, cx_err *err)
{
    cx_digest root;
    const cx_smt_path *paths;
    CX_TRY(cx_trees_prove(home, request->name_space, request->keys, request->count, arena, &root,
                          &paths, err));
    if (!cx_digest_eq(&root, expected))
        return cx_fail_at(err, CX_E_CONFLICT, "ManifestRootMismatch", CX_NO_OFFSET,
                          "the state has changed since that snapshot; ask for a proof at the"
                          " snapshot, or make a new one");
    return assemble(request, trees->scheme, &root, paths, read_leaf, source, arena, out, err);
}

cx_status cx_proof_now(cx_home *home, cx_str actor, const cx_proof_request *request,
                       uint64_t snapshot_seq, cx_arena *arena, cx_state_proof *out, cx_err *err)
{
    cx_manifest manifest;
    cx_bytes manifest_bytes;
    asked keys;
    CX_TRY(manifest_of(home, actor, snapshot_seq, arena, &manifest, &manifest_bytes, err));
    CX_TRY(read_request(request, manifest.scheme, arena, &keys, err));
    cx_trees trees;
    CX_TRY(cx_home_trees_begin(home, actor, &trees, err));
    leaf_source source = {.home = home, .actor = actor, .scheme = trees.scheme};
    cx_status status = prove_now(home, &trees, &keys, manifest_root(&manifest, request->name_space),
                                 &source, arena, out, err);
    cx_home_trees_end(home);
    if (!cx_failed(status))
        out->manifest = manifest_bytes;
    return status;
}

/* --- the state at a snapshot ----------------------------------------------------------------- */

static cx_status prove_past(cx_home *home, const cx_trees *trees, const asked *request,
                            const cx_digest *root, leaf_source *source, cx_arena *arena,
                            cx_state_proof *out, cx_err *err)
{
    const cx_smt_path *paths;
    CX_TRY(cx_trees_prove_at(home, request->name_space, source->snapshot, root, request->keys,
                             request->count, arena, &paths, err));
    return assemble(request, trees->scheme, root, paths, read_leaf, source, arena, out, err);
}

cx_status cx_proof_at(cx_home *home, cx_str actor, const cx_proof_request *request,
                      uint64_t snapshot_seq, cx_arena *arena, cx_state_proof *out, cx_err *err)
{
    cx_manifest manifest;
    cx_bytes manifest_bytes;
    asked keys;
    CX_TRY(manifest_of(home, actor, snapshot_seq, arena, &manifest, &manifest_bytes, err));
    CX_TRY(read_request(request, manifest.scheme, arena, &keys, err));
    cx_trees trees;
    CX_TRY(cx_home_trees_begin(home, actor, &trees, err));
    leaf_source source = {home, actor, trees.scheme, true, snapshot_seq};
    cx_status status =
        prove_past(home, &trees, &keys, manifest_root(&manifest, request->name_space), &source,
                   arena, out, err);
    cx_home_trees_end(home);
    if (!cx_failed(status))
        out->manifest = manifest_bytes;
    return status;
}

/* --- the journal ------------------------------------------------------------------------------ */

static cx_status copy_path(const cx_mmr_path *path, cx_arena *arena, const cx_digest **out,
                           cx_err *err)
{
    cx_digest *copy = CX_ARENA_ARRAY(arena, cx_digest, path->count + 1);
    if (copy == NULL)
        return cx_fail_nomem(err);
    memcpy(copy, path->hashes, path->count * sizeof *copy);
    *out = copy;
    return CX_SUCCESS;
}

static cx_status prove_entry(const cx_trees *trees, uint64_t index, uint64_t size, cx_arena *arena,
                             cx_inclusion *out, cx_digest *out_root, cx_err *err)
{
    cx_mmr_path path;
    uint64_t tree_size = size == 0 ? cx_mmr_size(trees->journal) : size;
    CX_TRY(cx_mmr_inclusion(trees->journal, index, tree_size, &path, err));
    CX_TRY(cx_mmr_root(trees->journal, tree_size, out_root, err));
    *out = (cx_inclusion){
        .scheme = trees->scheme, .tree_size = tree_size, .index = index, .path_count = path.count};
    return copy_path(&path, arena, &out->path, err);
}

cx_status cx_proof_journal(cx_home *home, cx_str actor, uint64_t index, uint64_t size,
                           bool with_entry, cx_arena *arena, cx_inclusion *out, cx_digest *out_root,
                           cx_err *err)
{
    cx_trees trees;
    cx_inclusion proof;
    cx_digest root;
    CX_TRY(cx_home_trees_begin(home, actor, &trees, err));
    cx_status status = prove_entry(&trees, index, size, arena, &proof, &root, err);
    cx_home_trees_end(home);
    CX_TRY(status);
    if (with_entry) {
        cx_entry_view entry;
        CX_TRY(cx_home_entry(home, actor, index, arena, &entry, err));
        proof.entry = entry.bytes;
    }
    CX_TRY(cx_home_sync_shown(home, err));
    *out = proof;
    *out_root = root;
    return CX_SUCCESS;
}

static cx_status prove_growth(const cx_trees *trees, uint64_t size1, uint64_t size2,
                              cx_arena *arena, cx_consistency *out, cx_digest *out_root1,
                              cx_digest *out_root2, cx_err *err)
{
    cx_mmr_path path;
    uint64_t newer = size2 == 0 ? cx_mmr_size(trees->journal) : size2;
    CX_TRY(cx_mmr_consistency(trees->journal, size1, newer, &path, err));
    CX_TRY(cx_mmr_root(trees->journal, size1, out_root1, err));
    CX_TRY(cx_mmr_root(trees->journal, newer, out_root2, err));
    *out = (cx_consistency){
        .scheme = trees->scheme, .size1 = size1, .size2 = newer, .path_count = path.count};
    return copy_path(&path, arena, &out->path, err);
}

cx_status cx_proof_consistency(cx_home *home, cx_str actor, uint64_t size1, uint64_t size2,
                               cx_arena *arena, cx_consistency *out, cx_digest *out_root1,
                               cx_digest *out_root2, cx_err *err)
{
    cx_trees trees;
    CX_TRY(cx_home_trees_begin(home, actor, &trees, err));
    cx_status status = prove_growth(&trees, size1, size2, arena, out, out_root1, out_root2, err);
    cx_home_trees_end(home);
    CX_TRY(status);
    return cx_home_sync_shown(home, err);
}
