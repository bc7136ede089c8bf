/*
 * verify_anchors.c - what was stored elsewhere against the data directory (ledger.md §11).
 */
#include "ledger/check/verifier.h"

#include <stdio.h>

#include "base/api.h"

/* --- anchors (§11) ---------------------------------------------------------------------------- */

/* An external manifest whose snapshot is still retained: the state roots must be equal. */
static cx_status check_stored_manifest(cx_verifier *check, cx_actor *actor,
                                       const cx_anchor_point *anchor, cx_err *err)
{
    uint8_t name[5 + 8];
    cx_bytes bytes = {NULL, 0};
    bool there = false;
    cx_manifest manifest;
    uint64_t seq = anchor->manifest->snapshot_seq;
    memcpy(name, "snap/", 5);
    for (unsigned i = 0; i < 8; i++)
        name[5 + i] = (uint8_t)(seq >> (8 * (7 - i)));
    CX_TRY(cx_store_get(&check->home->store, actor->id, cx_bytes_from(name, sizeof name),
                        &check->arena, &bytes, &there, NULL, err));
    if (!there || cx_failed(cx_manifest_decode(bytes, &manifest, NULL)) ||
        cx_digest_eq(&manifest.overall_root, &anchor->manifest->overall_root))
        return CX_SUCCESS;
    char where[64];
    (void)snprintf(where, sizeof where, "snapshot %llu", (unsigned long long)seq);
    return cx_verify_report(
        check, "anchor", "Forked", actor->info.name, where,
        "the snapshot of that number has another overall root than the manifest that was"
        " kept: the past was rewritten",
        err);
}

static cx_status check_anchor(cx_verifier *check, const cx_anchor_point *anchor, cx_err *err)
{
    cx_str name = anchor->actor.size != 0 ? anchor->actor : check->options->actor;
    cx_actor *actor = NULL;
    char where[64];
    CX_TRY(cx_home_find_actor(check->home, name, &actor, err));
    (void)snprintf(where, sizeof where, "size %llu", (unsigned long long)anchor->size);
    if (actor == NULL || actor->info.entry_count < anchor->size)
        return cx_verify_report(check, "anchor", "Truncated", name, where,
                                "the journal is shorter than it was: entries were cut off", err);
    cx_digest root;
    CX_TRY(cx_actor_journal_root(check->home, actor, anchor->size, &root, err));
    if (!cx_digest_eq(&root, &anchor->journal_root))
        return cx_verify_report(
            check, "anchor", "Forked", name, where,
            "the journal's root at that size is another one: the past was rewritten", err);
    check->report->totals.anchored = true;
    return anchor->manifest == NULL ? CX_SUCCESS : check_stored_manifest(check, actor, anchor, err);
}

cx_status cx_verify_anchors(cx_verifier *check, cx_err *err)
{
    const cx_home_verify_options *options = check->options;
    for (size_t i = 0; i < options->anchor_count; i++)
        CX_TRY(check_anchor(check, &options->anchors[i], err));
    return CX_SUCCESS;
}
