/*
 * prove.c - makes proofs of the current state, of the state at a retained snapshot, and of the
 * journal.
 *
 * The tree at a snapshot is the current one with the old values of the records that changed since
 * put back (ledger.md §9.1); afterwards the current values are restored.  A root does not depend on
 * the order of changes, so the tree is then the same as before.
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

/* The bytes of a record; empty when it is absent or was erased. */
typedef cx_status leaf_reader(void *arg, cx_bytes key, cx_arena *arena, cx_bytes *out_leaf,
                              bool *out_erased, cx_err *err);

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
        if (paths[i].member)
            CX_TRY(read_leaf(arg,
                             cx_bytes_from(request->records[i].bytes, request->records[i].size),
                             arena, &leaves[i], &erased, err));
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
    bool past;
    uint64_t snapshot;
} leaf_source;

static cx_status read_leaf(void *arg, cx_bytes key, cx_arena *arena, cx_bytes *out_leaf,
                           bool *out_erased, cx_err *err)
{
    const leaf_source *source = arg;
    bool found = false;
    cx_digest hash;
    cx_bytes value = {NULL, 0};
    if (source->past) {
        CX_TRY(cx_home_get_at(source->home, source->actor, source->snapshot, key, arena, &value,
                              &found, out_erased, &hash, err));
    } else {
        CX_TRY(cx_home_get(source->home, source->actor, key, arena, &value, &found, err));
        *out_erased = found && cx_value_erased(value, &hash);
    }
    *out_leaf = found && !*out_erased ? value : (cx_bytes){NULL, 0};
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

static cx_status prove_now(const cx_trees *trees, const asked *request, const cx_digest *expected,
                           leaf_source *source, cx_arena *arena, cx_state_proof *out, cx_err *err)
{
    cx_smt *tree = request->name_space == CX_NAMESPACE_EDGES ? trees->edges : trees->memories;
    cx_digest root;
    CX_TRY(cx_smt_root(tree, &root, err));
    if (!cx_digest_eq(&root, expected))
        return cx_fail_at(err, CX_E_CONFLICT, "ManifestRootMismatch", CX_NO_OFFSET,
                          "the state has changed since that snapshot; ask for a proof at the"
                          " snapshot, or make a new one");
    const cx_smt_path *paths;
    CX_TRY(cx_smt_prove(tree, request->keys, request->count, arena, &paths, err));
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
    leaf_source source = {.home = home, .actor = actor};
    cx_status status = prove_now(&trees, &keys, manifest_root(&manifest, request->name_space),
                                 &source, arena, out, err);
    cx_home_trees_end(home);
    if (!cx_failed(status))
        out->manifest = manifest_bytes;
    return status;
}

/* --- the state at a snapshot ----------------------------------------------------------------- */

typedef struct undo_item {
    cx_digest key;
    cx_digest old_value;
    bool old_absent;
    cx_digest now_value;
    bool now_absent;
} undo_item;

typedef struct undo {
    cx_scheme scheme;
    cx_arena *arena;
    uint64_t snapshot;
    cx_smt *tree;
    CX_VEC(undo_item) items;
    uint8_t last[CX_KEY_SIZE_MAX];
    size_t last_size;
} undo;

/* Rows are sorted by record, then by snapshot: the first one at or after ours has the value of
 * ours. */
static cx_status collect_undo(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    undo *state = arg;
    (void)stop;
    if (key.size < 5 + 1 + 8)
        return CX_SUCCESS;
    uint64_t snapshot = 0;
    for (size_t i = key.size - 8; i < key.size; i++)
        snapshot = snapshot << 8 | key.data[i];
    const cx_bytes record = cx_bytes_from(key.data + 5, key.size - 5 - 9);
    bool same =
        record.size == state->last_size && memcmp(record.data, state->last, record.size) == 0;
    if (snapshot < state->snapshot || same)
        return CX_SUCCESS;
    undo_item item = {.old_absent = value.size == 0};
    bool edge;
    if (record.size > sizeof state->last || !cx_state_key(state->scheme, record, &item.key, &edge))
        return CX_SUCCESS;
    memcpy(state->last, record.data, record.size);
    state->last_size = record.size;
    if (!item.old_absent && !cx_value_erased(value, &item.old_value))
        item.old_value = cx_scheme_value(state->scheme, value);
    item.now_absent = !cx_smt_get(state->tree, &item.key, &item.now_value);
    undo_item *slot = cx_vec_push(&state->items, cx_alloc_default());
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = item;
    return CX_SUCCESS;
}

static cx_status set_key(cx_smt *tree, const cx_digest *key, const cx_digest *value, bool absent,
                         cx_err *err)
{
    bool was;
    return absent ? cx_smt_remove(tree, key, &was, err) : cx_smt_put(tree, key, value, err);
}

static cx_status undo_changes(undo *state, cx_err *err)
{
    for (size_t i = 0; i < state->items.count; i++) {
        const undo_item *item = &state->items.items[i];
        CX_TRY(set_key(state->tree, &item->key, &item->old_value, item->old_absent, err));
    }
    return CX_SUCCESS;
}

static cx_status redo_changes(undo *state, cx_err *err)
{
    for (size_t i = 0; i < state->items.count; i++) {
        const undo_item *item = &state->items.items[i];
        CX_TRY(set_key(state->tree, &item->key, &item->now_value, item->now_absent, err));
    }
    return CX_SUCCESS;
}

static cx_status prove_past(undo *state, const asked *request, const cx_digest *expected,
                            leaf_source *source, cx_state_proof *out, cx_err *err)
{
    cx_digest root;
    const cx_smt_path *paths;
    CX_TRY(undo_changes(state, err));
    CX_TRY(cx_smt_root(state->tree, &root, err));
    if (!cx_digest_eq(&root, expected))
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the history kept for snapshot %llu does not lead to its root; run"
                          " 'cortex tables rebuild'",
                          (unsigned long long)state->snapshot);
    CX_TRY(cx_smt_prove(state->tree, request->keys, request->count, state->arena, &paths, err));
    return assemble(request, state->scheme, &root, paths, read_leaf, source, state->arena, out,
                    err);
}

static cx_status scan_history(cx_home *home, cx_str actor, cx_namespace name_space, undo *state,
                              cx_err *err)
{
    const cx_scan scan = {.actor = actor,
                          .prefix = name_space == CX_NAMESPACE_EDGES
                                        ? cx_str_bytes(CX_STR("hist/e/from/"))
                                        : cx_str_bytes(CX_STR("hist/m/")),
                          .row = collect_undo,
                          .arg = state};
    return cx_home_scan(home, &scan, err);
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
    leaf_source source = {home, actor, true, snapshot_seq};
    undo state = {.scheme = trees.scheme,
                  .arena = arena,
                  .snapshot = snapshot_seq,
                  .tree = request->name_space == CX_NAMESPACE_EDGES ? trees.edges : trees.memories};
    cx_status status = scan_history(home, actor, request->name_space, &state, err);
    if (!cx_failed(status)) {
        status = prove_past(&state, &keys, manifest_root(&manifest, request->name_space), &source,
                            out, err);
        if (cx_failed(redo_changes(&state, NULL)))
            cx_home_forget_trees(home, actor); /* rebuilt on next use */
    }
    cx_vec_done(&state.items, cx_alloc_default());
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
    CX_TRY(cx_home_journal_begin(home, actor, &trees, err));
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
    CX_TRY(cx_home_journal_begin(home, actor, &trees, err));
    cx_status status = prove_growth(&trees, size1, size2, arena, out, out_root1, out_root2, err);
    cx_home_trees_end(home);
    CX_TRY(status);
    return cx_home_sync_shown(home, err);
}
