/*
 * snapshot.c - making, finding, sealing and dropping manifests (ledger.md §9), and what a scope
 * takes from one: the snapshot that it shows, and the proof of the ids that it includes (§10.3).
 */
#include "ledger/snapshot.h"

#include "base/api.h"
#include "ledger/internal.h"

typedef struct snap_key {
    uint8_t bytes[5 + 8];
} snap_key;

static cx_bytes name_snapshot(snap_key *out, uint64_t seq)
{
    memcpy(out->bytes, "snap/", 5);
    for (unsigned i = 0; i < 8; i++)
        out->bytes[5 + i] = (uint8_t)(seq >> (8 * (7 - i)));
    return cx_bytes_from(out->bytes, sizeof out->bytes);
}

static cx_status fail_not_found(uint64_t seq, cx_err *err)
{
    return cx_fail_at(err, CX_E_NOT_FOUND, "SnapshotNotFound", CX_NO_OFFSET,
                      "there is no snapshot %llu, or it was dropped", (unsigned long long)seq);
}

static cx_status check_text(cx_str text, const char *what, cx_err *err)
{
    if (cx_utf8_valid(text))
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                      "a snapshot's %s is not valid UTF-8", what);
}

/* --- making ---------------------------------------------------------------------------------- */

static cx_status put_manifest(cx_txn *txn, const cx_manifest *manifest, cx_err *err)
{
    snap_key key;
    cx_buf bytes;
    cx_buf_init(&bytes, cx_alloc_default());
    cx_manifest_encode(manifest, &bytes);
    cx_status status = cx_buf_check(&bytes, err);
    if (!cx_failed(status))
        status = cx_txn_put(txn, name_snapshot(&key, manifest->snapshot_seq), cx_buf_bytes(&bytes),
                            false, err);
    cx_buf_done(&bytes);
    return status;
}

static cx_status fill_manifest(cx_txn *txn, cx_str trigger, int64_t now_ns, cx_manifest *out,
                               cx_err *err)
{
    const cx_actor_info *actor = cx_txn_actor(txn);
    cx_roots roots;
    CX_TRY(cx_txn_roots(txn, &roots, err));
    *out = (cx_manifest){
        .scheme = actor->scheme,
        .actor = actor->name,
        .snapshot_seq = actor->snapshot_count,
        .journal_size = roots.journal_size,
        .journal_root = roots.journal,
        .has_edges = true,
        .has_memories = true,
        .edges_root = roots.edges,
        .memories_root = roots.memories,
        .overall_root = roots.overall,
        .created_ns = now_ns,
        .trigger = trigger,
        .signature = {.null = true},
        .live_memories = actor->live_memories,
        .edge_count = actor->edge_count,
        .tombstoned = actor->tombstoned,
    };
    return CX_SUCCESS;
}

cx_status cx_snapshot_make(cx_home *home, cx_str actor, cx_str trigger, int64_t now_ns,
                           cx_arena *arena, cx_manifest *out, cx_err *err)
{
    CX_ASSERT(out != NULL);
    if (trigger.size > 255)
        return cx_fail(err, CX_E_LIMIT,
                       "a snapshot's reason has %zu bytes; at most 255 are"
                       " allowed",
                       trigger.size);
    CX_TRY(check_text(trigger, "reason", err));
    cx_txn *txn;
    CX_TRY(cx_txn_begin(home, actor, &txn, err));
    cx_manifest manifest;
    cx_status status = CX_SUCCESS;
    CX_TRY_GOTO(status, fill_manifest(txn, trigger, now_ns, &manifest, err));
    manifest.actor = cx_arena_copy_str(arena, manifest.actor);
    manifest.trigger = cx_arena_copy_str(arena, trigger);
    if (manifest.actor.data == NULL || manifest.trigger.data == NULL) {
        status = cx_fail_nomem(err);
        goto done;
    }
    CX_TRY_GOTO(status, cx_txn_bare(txn, err));
    CX_TRY_GOTO(status, put_manifest(txn, &manifest, err));
    status = cx_txn_commit(txn, err);
    txn = NULL;
done:
    cx_txn_abort(txn);
    if (!cx_failed(status))
        *out = manifest;
    return status;
}

/* --- finding --------------------------------------------------------------------------------- */

cx_status cx_snapshot_get(cx_home *home, cx_str actor, uint64_t seq, cx_arena *arena,
                          cx_manifest *out, cx_bytes *out_bytes, cx_err *err)
{
    CX_ASSERT(out != NULL);
    snap_key key;
    cx_bytes bytes = {NULL, 0};
    bool found = false;
    CX_TRY(cx_home_get(home, actor, name_snapshot(&key, seq), arena, &bytes, &found, err));
    if (!found)
        return fail_not_found(seq, err);
    CX_TRY(cx_manifest_decode(bytes, out, err));
    if (out_bytes != NULL)
        *out_bytes = bytes;
    return CX_SUCCESS;
}

typedef struct listing {
    cx_arena *arena;
    CX_VEC(cx_manifest) manifests;
} listing;

static cx_status list_one(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    listing *list = arg;
    (void)key;
    (void)stop;
    cx_str copy = cx_arena_copy_str(list->arena, cx_bytes_str(value));
    cx_manifest *slot = cx_vec_push(&list->manifests, cx_alloc_default());
    if (copy.data == NULL || slot == NULL)
        return cx_fail_nomem(err);
    return cx_manifest_decode(cx_str_bytes(copy), slot, err);
}

cx_status cx_snapshot_list(cx_home *home, cx_str actor, cx_arena *arena, const cx_manifest **out,
                           size_t *out_count, cx_err *err)
{
    listing list = {.arena = arena};
    const cx_scan scan = {
        .actor = actor, .prefix = cx_str_bytes(CX_STR("snap/")), .row = list_one, .arg = &list};
    cx_status status = cx_home_scan(home, &scan, err);
    cx_manifest *manifests = NULL;
    if (!cx_failed(status)) {
        manifests = CX_ARENA_ARRAY(arena, cx_manifest, list.manifests.count + 1);
        if (manifests == NULL)
            status = cx_fail_nomem(err);
    }
    if (!cx_failed(status)) {
        if (list.manifests.count != 0)
            memcpy(manifests, list.manifests.items, list.manifests.count * sizeof *manifests);
        *out = manifests;
        *out_count = list.manifests.count;
    }
    cx_vec_done(&list.manifests, cx_alloc_default());
    return status;
}

typedef struct newest {
    bool found;
    uint64_t seq;
} newest;

static cx_status read_newest_seq(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    newest *state = arg;
    (void)value;
    (void)err;
    for (size_t i = key.size - 8; i < key.size; i++)
        state->seq = state->seq << 8 | key.data[i];
    state->found = true;
    *stop = true;
    return CX_SUCCESS;
}

cx_status cx_snapshot_by_root(cx_home *home, cx_str actor, const cx_digest *overall_root,
                              cx_arena *arena, cx_manifest *out, cx_bytes *out_bytes, cx_err *err)
{
    uint8_t prefix[9 + 32];
    memcpy(prefix, "idx/root/", 9);
    memcpy(prefix + 9, overall_root->bytes, 32);
    newest state = {0};
    const cx_scan scan = {.actor = actor,
                          .prefix = cx_bytes_from(prefix, sizeof prefix),
                          .backwards = true,
                          .row = read_newest_seq,
                          .arg = &state};
    CX_TRY(cx_home_scan(home, &scan, err));
    if (!state.found)
        return cx_fail_at(err, CX_E_NOT_FOUND, "SnapshotNotFound", CX_NO_OFFSET,
                          "no retained snapshot has this overall root");
    return cx_snapshot_get(home, actor, state.seq, arena, out, out_bytes, err);
}

/* --- sealing and dropping -------------------------------------------------------------------- */

static void add_signed_bytes(const cx_manifest *manifest, cx_buf *out)
{
    cx_buf_add_z(out, "cortex.manifest.v1");
    cx_manifest_encode_body(manifest, out);
}

cx_status cx_snapshot_to_sign(cx_home *home, cx_str actor, uint64_t seq, cx_buf *out, cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_manifest manifest;
    cx_status status = cx_snapshot_get(home, actor, seq, &arena, &manifest, NULL, err);
    if (!cx_failed(status)) {
        add_signed_bytes(&manifest, out);
        status = cx_buf_check(out, err);
    }
    cx_arena_done(&arena);
    return status;
}

static cx_status read_manifest_in_txn(cx_txn *txn, uint64_t seq, cx_manifest *out, cx_err *err)
{
    snap_key key;
    cx_bytes bytes = {NULL, 0};
    bool found = false;
    CX_TRY(cx_txn_get(txn, name_snapshot(&key, seq), &bytes, &found, err));
    return found ? cx_manifest_decode(bytes, out, err) : fail_not_found(seq, err);
}

static cx_status check_signature(const cx_manifest *manifest, const cx_signature *signature,
                                 const cx_pubkey *key, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    add_signed_bytes(manifest, &text);
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status) && !cx_ed25519_verify(key, cx_buf_bytes(&text), signature))
        status = cx_fail_at(err, CX_E_DENIED, "BadSignature", CX_NO_OFFSET,
                            "the signature is not that key's over this manifest");
    cx_buf_done(&text);
    return status;
}

/* Adds the transaction's single frame: an entry with this payload. */
static cx_status add_entry(cx_txn *txn, const cx_payload *payload, cx_str by, int64_t now_ns,
                           cx_err *err)
{
    cx_buf bytes;
    cx_buf_init(&bytes, cx_alloc_default());
    cx_payload_encode(payload, &bytes);
    const cx_entry_draft draft = {.kind = cx_entry_kind_name(payload->kind),
                                  .created_at_ns = now_ns,
                                  .created_by = cx_str_bytes(by),
                                  .payload = cx_buf_bytes(&bytes)};
    cx_status status = cx_buf_check(&bytes, err);
    if (!cx_failed(status))
        status = cx_txn_entry(txn, &draft, NULL, err);
    cx_buf_done(&bytes);
    return status;
}

static cx_status seal_in_txn(cx_txn *txn, uint64_t seq, cx_str signed_by,
                             const cx_signature *signature, const cx_pubkey *key, cx_str by,
                             int64_t now_ns, cx_err *err)
{
    cx_manifest manifest;
    CX_TRY(read_manifest_in_txn(txn, seq, &manifest, err));
    if (!manifest.signature.null)
        return cx_fail_at(err, CX_E_EXISTS, "AlreadySealed", CX_NO_OFFSET,
                          "snapshot %llu was sealed by \"%.*s\"", (unsigned long long)seq,
                          (int)(manifest.signed_by.size < 80 ? manifest.signed_by.size : 80),
                          manifest.signed_by.data);
    CX_TRY(check_signature(&manifest, signature, key, err));
    cx_payload payload = {.kind = CX_ENTRY_SEAL};
    payload.as.seal = (cx_payload_seal){
        .snapshot_seq = seq,
        .overall_root = manifest.overall_root,
        .signed_by = signed_by,
        .signature = cx_bytes_from(signature->bytes, sizeof signature->bytes),
    };
    CX_TRY(
        cx_manifest_digest(&manifest, cx_alloc_default(), &payload.as.seal.manifest_digest, err));
    manifest.signed_by = signed_by;
    manifest.signature =
        (cx_maybe_bytes){false, cx_bytes_from(signature->bytes, sizeof signature->bytes)};
    CX_TRY(add_entry(txn, &payload, by, now_ns, err));
    return put_manifest(txn, &manifest, err);
}

cx_status cx_snapshot_seal(cx_home *home, cx_str actor, uint64_t seq, cx_str signed_by,
                           const cx_signature *signature, const cx_pubkey *key, cx_str by,
                           int64_t now_ns, cx_err *err)
{
    CX_ASSERT(signature != NULL && key != NULL);
    if (signed_by.size > 1024)
        return cx_fail(err, CX_E_LIMIT, "the signer's name has %zu bytes; at most 1024 are allowed",
                       signed_by.size);
    CX_TRY(check_text(signed_by, "signer", err));
    cx_txn *txn;
    CX_TRY(cx_txn_begin(home, actor, &txn, err));
    cx_status status = seal_in_txn(txn, seq, signed_by, signature, key, by, now_ns, err);
    if (cx_failed(status)) {
        cx_txn_abort(txn);
        return status;
    }
    return cx_txn_commit(txn, err);
}

static cx_status drop_in_txn(cx_txn *txn, uint64_t seq, cx_str by, int64_t now_ns, cx_err *err)
{
    cx_manifest manifest;
    snap_key key;
    CX_TRY(read_manifest_in_txn(txn, seq, &manifest, err));
    cx_payload payload = {.kind = CX_ENTRY_DROP_SNAPSHOT};
    payload.as.drop_snapshot.snapshot_seq = seq;
    CX_TRY(cx_manifest_digest(&manifest, cx_alloc_default(),
                              &payload.as.drop_snapshot.manifest_digest, err));
    CX_TRY(add_entry(txn, &payload, by, now_ns, err));
    return cx_txn_remove(txn, name_snapshot(&key, seq), err);
}

cx_status cx_snapshot_drop(cx_home *home, cx_str actor, uint64_t seq, cx_str by, int64_t now_ns,
                           cx_err *err)
{
    cx_txn *txn;
    CX_TRY(cx_txn_begin(home, actor, &txn, err));
    cx_status status = drop_in_txn(txn, seq, by, now_ns, err);
    if (cx_failed(status)) {
        cx_txn_abort(txn);
        return status;
    }
    return cx_txn_commit(txn, err);
}

/* --- scopes ----------------------------------------------------------------------------------- */

static cx_status choose_snapshot(cx_home *home, cx_scope *scope, const uint64_t *at,
                                 cx_arena *arena, uint64_t *out_snapshot, cx_err *err)
{
    const cx_manifest *manifests;
    cx_manifest made;
    size_t count;
    if (at != NULL) {
        CX_TRY(cx_snapshot_get(home, scope->actor, *at, arena, &made, NULL, err));
        scope->snapshot_hash = made.overall_root;
        *out_snapshot = *at;
        return CX_SUCCESS;
    }
    CX_TRY(cx_snapshot_list(home, scope->actor, arena, &manifests, &count, err));
    if (count == 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, "SnapshotNotFound", CX_NO_OFFSET,
                          "there is no snapshot; a scope needs one: 'cortex snapshot' takes it");
    scope->snapshot_hash = manifests[count - 1].overall_root;
    *out_snapshot = manifests[count - 1].snapshot_seq;
    return CX_SUCCESS;
}

/* The ids are bound to their records by a proof that every one is a member. */
static cx_status prove_ids(cx_home *home, cx_scope *scope, uint64_t snapshot, cx_arena *arena,
                           cx_err *err)
{
    const cx_proof_request request = {.name_space = CX_NAMESPACE_MEMORIES,
                                      .ids = scope->include.ids,
                                      .id_count = scope->include.id_count};
    cx_state_proof proof;
    if (request.id_count == 0)
        return CX_SUCCESS;
    CX_TRY(cx_proof_at(home, scope->actor, &request, snapshot, arena, &proof, err));
    for (size_t i = 0; i < proof.proof.count; i++) {
        char id[CX_ULID_SIZE];
        cx_ulid_format(&request.ids[i], id);
        if (proof.proof.items[i].kind == CX_ABSENT)
            return cx_fail_at(err, CX_E_NOT_FOUND, "NotFound", CX_NO_OFFSET,
                              "%.26s is not in snapshot %llu", id, (unsigned long long)snapshot);
    }
    scope->multiproof = proof.bytes;
    return CX_SUCCESS;
}

cx_status cx_scope_pin(cx_home *home, cx_scope *scope, const uint64_t *at, cx_arena *arena,
                       uint64_t *out_snapshot, cx_err *err)
{
    CX_ASSERT(scope->actor.size != 0);
    if (cx_selector_is_empty(&scope->include))
        return cx_fail_at(err, CX_E_USAGE, "EmptyInclude", CX_NO_OFFSET,
                          "the scope includes nothing: name types, tags, ids or a frame");
    CX_TRY(choose_snapshot(home, scope, at, arena, out_snapshot, err));
    return prove_ids(home, scope, *out_snapshot, arena, err);
}
