/*
 * scope_pin.c - what a scope takes from the ledger: the snapshot that it shows, and the proof of
 * the ids that it includes (ledger.md §10.3).
 */
#include "ledger/snapshot.h"
#include "ledger/home.h"

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
