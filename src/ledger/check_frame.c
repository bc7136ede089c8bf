/*
 * check_frame.c - checks an entry against the records in its frame, and a manifest against the
 * state at its position (ledger.md §11, checks 1, 3, 5, 7, 8).
 */
#include <stdio.h>

#include "base/api.h"
#include "crypto/api.h"
#include "ledger/internal.h"

typedef struct frame_check {
    const cx_ledger_frame *frame;
    const cx_entry *entry;
    const cx_payload *payload;
    cx_scheme scheme;
    cx_arena *arena;
    const cx_check_sink *sink;
    char where[64];
} frame_check;

static cx_status report_finding(const frame_check *check, const char *name, const char *reason,
                                const char *message, cx_err *err)
{
    return check->sink->found(check->sink->arg, name, reason, check->frame->actor, check->where,
                              message, err);
}

static cx_status report_mismatch(const frame_check *check, const char *name, const char *reason,
                                 const char *what, const cx_digest *expected, const cx_digest *got,
                                 cx_err *err)
{
    char message[CX_ERR_MESSAGE_SIZE], left[65], right[65];
    cx_hex_encode(cx_bytes_from(expected->bytes, 32), left);
    cx_hex_encode(cx_bytes_from(got->bytes, 32), right);
    left[64] = right[64] = 0;
    (void)snprintf(message, sizeof message, "%s: the entry says %s, the record gives %s", what,
                   left, right);
    return report_finding(check, name, reason, message, err);
}

/* Out of memory is an error, not a finding. */
static cx_status report_undecoded(const frame_check *check, cx_status why, const char *name,
                                  const char *message, cx_err *err)
{
    return why.code == CX_E_NOMEM ? cx_fail_nomem(err)
                                  : report_finding(check, name, "NonCanonical", message, err);
}

static const cx_change *change_of(const cx_ledger_frame *frame, const void *key, size_t size)
{
    for (size_t i = 0; i < frame->change_count; i++)
        if (frame->changes[i].key.size == size &&
            memcmp(frame->changes[i].key.data, key, size) == 0)
            return &frame->changes[i];
    return NULL;
}

static size_t head_key(const cx_id *id, uint8_t *out)
{
    memcpy(out, "m/", 2);
    memcpy(out + 2, id->bytes, 16);
    return 18;
}

static size_t version_key(const cx_id *id, uint64_t version, uint8_t *out)
{
    memcpy(out, "mv/", 3);
    memcpy(out + 3, id->bytes, 16);
    memcpy(out + 19, "/v/", 3);
    for (unsigned i = 0; i < 8; i++)
        out[22 + i] = (uint8_t)(version >> (8 * (7 - i)));
    return 30;
}

static const cx_change *require_change(const frame_check *check, const void *key, size_t size,
                                       const char *name, const char *what, cx_status *status,
                                       cx_err *err)
{
    const cx_change *change = change_of(check->frame, key, size);
    *status = CX_SUCCESS;
    if (change == NULL || change->removed) {
        *status = report_finding(check, name, "RecordMissing", what, err);
        return NULL;
    }
    return change->erased ? NULL : change;
}

static cx_status check_version(const frame_check *check, cx_err *err)
{
    const cx_payload_write *write = &check->payload->as.write;
    uint8_t key[64];
    cx_status status;
    size_t size = version_key(&write->id, write->version, key);
    const cx_change *change =
        require_change(check, key, size, "version",
                       "the version that this entry writes is not in its frame", &status, err);
    if (change == NULL)
        return status;
    cx_version_record version;
    cx_digest hash;
    cx_status decoded = cx_version_decode(change->value, check->arena, &version, NULL);
    if (cx_failed(decoded))
        return report_undecoded(check, decoded, "version", "the version's bytes are not canonical",
                                err);
    CX_TRY(cx_version_hash(&version, cx_alloc_default(), &hash, err));
    if (!cx_digest_eq(&hash, &write->version_hash))
        return report_mismatch(check, "version", "VersionHashMismatch", "version hash",
                               &write->version_hash, &hash, err);
    if (!cx_digest_eq(&version.hash, &hash) || memcmp(version.id.bytes, write->id.bytes, 16) != 0 ||
        version.version != write->version || version.type != write->type)
        return report_finding(check, "version", "VersionMismatch",
                              "the version's own id, number, type or hash is not the entry's", err);
    return CX_SUCCESS;
}

/* The Head in the frame must have the id that the entry names, and agree with the entry. */
static cx_status check_head(const frame_check *check, const cx_id *id, uint64_t version,
                            const cx_digest *head_hash, bool dead, cx_err *err)
{
    uint8_t key[32];
    cx_status status;
    const cx_change *change =
        require_change(check, key, head_key(id, key), "head",
                       "the Head that this entry changes is not in its frame", &status, err);
    if (change == NULL)
        return status;
    cx_head head;
    cx_status decoded = cx_head_decode(change->value, check->arena, &head, NULL);
    if (cx_failed(decoded))
        return report_undecoded(check, decoded, "head", "the Head's bytes are not canonical", err);
    if (memcmp(head.id.bytes, id->bytes, 16) != 0 ||
        (version != 0 && head.current_version != version) || (dead && !head.tombstoned))
        return report_finding(check, "head", "HeadMismatch",
                              "the Head's id, version or tombstone is not what the entry says",
                              err);
    cx_digest hash = cx_digest_of(change->value);
    if (head_hash != NULL && !cx_digest_eq(&hash, head_hash))
        return report_mismatch(check, "head", "HeadHashMismatch", "head hash", head_hash, &hash,
                               err);
    return CX_SUCCESS;
}

static cx_status check_edge(const frame_check *check, cx_err *err)
{
    const cx_payload_edge *edge = &check->payload->as.edge;
    uint8_t key[40];
    memcpy(key, "e/from/", 7);
    memcpy(key + 7, edge->src.bytes, 16);
    key[23] = edge->type;
    memcpy(key + 24, edge->dst.bytes, 16);
    cx_status status;
    const cx_change *change =
        require_change(check, key, sizeof key, "edge",
                       "the edge that this entry changes is not in its frame", &status, err);
    if (change == NULL)
        return status;
    cx_edge record;
    bool removed = check->payload->kind == CX_ENTRY_REMOVE_EDGE;
    cx_status decoded = cx_edge_decode(change->value, check->arena, &record, NULL);
    if (cx_failed(decoded))
        return report_undecoded(check, decoded, "edge", "the edge's bytes are not canonical", err);
    if (record.type != edge->type || memcmp(record.src.bytes, edge->src.bytes, 16) != 0 ||
        memcmp(record.dst.bytes, edge->dst.bytes, 16) != 0 || record.tombstoned != removed)
        return report_finding(check, "edge", "EdgeMismatch",
                              "the edge's ends, type or tombstone are not what the entry says",
                              err);
    return CX_SUCCESS;
}

static cx_status check_vector(const frame_check *check, cx_err *err)
{
    const cx_payload_embed *embed = &check->payload->as.embed;
    uint8_t key[32];
    memcpy(key, "vec/meta/", 9);
    memcpy(key + 9, embed->id.bytes, 16);
    const cx_change *change = change_of(check->frame, key, 25);
    if (change == NULL || change->removed || change->erased)
        return CX_SUCCESS; /* vectors are derived state and may be absent */
    cx_vector vector;
    cx_status decoded = cx_vector_decode(change->value, check->arena, &vector, NULL);
    if (cx_failed(decoded))
        return report_undecoded(check, decoded, "version", "the vector's bytes are not canonical",
                                err);
    cx_digest hash = cx_vector_hash(vector.values, (size_t)vector.dim);
    if (!cx_digest_eq(&hash, &embed->vector_hash) || !cx_digest_eq(&hash, &vector.hash))
        return report_mismatch(check, "version", "VectorHashMismatch", "vector hash",
                               &embed->vector_hash, &hash, err);
    return CX_SUCCESS;
}

static cx_status check_compaction(const frame_check *check, cx_err *err)
{
    const cx_payload_compact *compact = &check->payload->as.compact;
    for (size_t i = 0; i < check->frame->change_count; i++) {
        const cx_change *change = &check->frame->changes[i];
        if (change->key.size < 4 || memcmp(change->key.data, "chk/", 4) != 0 || change->erased)
            continue;
        cx_digest hash = cx_digest_of(change->value);
        if (!cx_digest_eq(&hash, &compact->record_hash))
            return report_mismatch(check, "version", "RecordHashMismatch", "checkpoint record",
                                   &compact->record_hash, &hash, err);
        return CX_SUCCESS;
    }
    return report_finding(check, "version", "RecordMissing",
                          "the checkpoint record of this entry is not in its frame", err);
}

static cx_status check_seal(const frame_check *check, cx_err *err)
{
    const cx_payload_seal *seal = &check->payload->as.seal;
    uint8_t key[13];
    memcpy(key, "snap/", 5);
    for (unsigned i = 0; i < 8; i++)
        key[5 + i] = (uint8_t)(seal->snapshot_seq >> (8 * (7 - i)));
    cx_status status;
    const cx_change *change =
        require_change(check, key, sizeof key, "seal",
                       "the manifest that this entry seals is not in its frame", &status, err);
    if (change == NULL)
        return status;
    cx_manifest manifest;
    cx_digest digest;
    cx_status decoded = cx_manifest_decode(change->value, &manifest, NULL);
    if (cx_failed(decoded))
        return report_undecoded(check, decoded, "seal", "the manifest's bytes are not canonical",
                                err);
    CX_TRY(cx_manifest_digest(&manifest, cx_alloc_default(), &digest, err));
    if (!cx_digest_eq(&digest, &seal->manifest_digest))
        return report_mismatch(check, "seal", "ManifestDigestMismatch", "manifest digest",
                               &seal->manifest_digest, &digest, err);
    if (!cx_digest_eq(&manifest.overall_root, &seal->overall_root))
        return report_mismatch(check, "seal", "OverallRootMismatch", "overall root",
                               &seal->overall_root, &manifest.overall_root, err);
    return CX_SUCCESS;
}

static cx_status check_payload(const frame_check *check, cx_err *err)
{
    const cx_ledger_frame *frame = check->frame;
    if (frame->committed != check->entry->committed)
        return report_finding(check, "payload", "PayloadMissing",
                              "entry and frame do not agree on whether the payload is committed to",
                              err);
    if (!frame->committed || frame->erased)
        return CX_SUCCESS;
    cx_digest commitment = cx_scheme_payload_commitment(frame->salt, frame->payload);
    if (!cx_digest_eq(&commitment, &check->entry->commitment) ||
        frame->payload.size != check->entry->payload_size)
        return report_mismatch(check, "payload", "CommitmentMismatch", "payload commitment",
                               &check->entry->commitment, &commitment, err);
    return CX_SUCCESS;
}

static cx_status check_kind(const frame_check *check, cx_err *err)
{
    const cx_payload *payload = check->payload;
    switch (payload->kind) {
    case CX_ENTRY_WRITE:
    case CX_ENTRY_UPDATE:
        CX_TRY(check_version(check, err));
        return check_head(check, &payload->as.write.id, payload->as.write.version, NULL, false,
                          err);
    case CX_ENTRY_TOMBSTONE: return check_head(check, &payload->as.id, 0, NULL, true, err);
    case CX_ENTRY_UPDATE_HEAD:
        return check_head(check, &payload->as.update_head.id, 0, &payload->as.update_head.head_hash,
                          false, err);
    case CX_ENTRY_REDACT_MEMORY:
        return check_head(check, &payload->as.redact_memory.id, 0,
                          &payload->as.redact_memory.head_hash, true, err);
    case CX_ENTRY_EMBED:
        CX_TRY(check_vector(check, err));
        return check_head(check, &payload->as.embed.id, 0, NULL, false, err);
    case CX_ENTRY_ADD_EDGE:
    case CX_ENTRY_REMOVE_EDGE: return check_edge(check, err);
    case CX_ENTRY_COMPACT: return check_compaction(check, err);
    case CX_ENTRY_SEAL: return check_seal(check, err);
    default: return CX_SUCCESS;
    }
}

cx_status cx_home_check_frame(const cx_ledger_frame *frame, cx_scheme scheme, cx_arena *arena,
                              const cx_check_sink *sink, cx_err *err)
{
    if (frame->entry.size == 0)
        return CX_SUCCESS;
    cx_entry entry;
    cx_payload payload;
    frame_check check = {.frame = frame,
                         .entry = &entry,
                         .payload = &payload,
                         .scheme = scheme,
                         .arena = arena,
                         .sink = sink};
    cx_err reason = {0};
    if (cx_failed(cx_entry_decode(frame->entry, &entry, &reason)))
        return report_finding(&check, "entry", "NonCanonical", reason.message, err);
    (void)snprintf(check.where, sizeof check.where, "seq %llu", (unsigned long long)entry.seq);
    CX_TRY(check_payload(&check, err));
    if (entry.committed)
        return CX_SUCCESS;
    cx_status decoded =
        cx_payload_decode(cx_entry_kind_of(entry.kind), entry.payload, arena, &payload, &reason);
    if (cx_failed(decoded))
        return report_undecoded(&check, decoded, "entry", reason.message, err);
    return check_kind(&check, err);
}

/* --- manifests ------------------------------------------------------------------------------- */

typedef struct root_pair {
    const char *what;
    const cx_digest *manifest;
    const cx_digest *state;
} root_pair;

static cx_status compare_roots(const frame_check *check, const cx_manifest *manifest,
                               const cx_roots *roots, const cx_actor_info *info, cx_err *err)
{
    const root_pair pairs[] = {
        {"journal root", &manifest->journal_root, &roots->journal},
        {"edges root", &manifest->edges_root, &roots->edges},
        {"memories root", &manifest->memories_root, &roots->memories},
        {"overall root", &manifest->overall_root, &roots->overall},
    };
    if (manifest->journal_size != roots->journal_size)
        return report_finding(check, "manifest", "JournalSizeMismatch",
                              "the manifest's journal size is not that of the journal at its place",
                              err);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (!cx_digest_eq(pairs[i].manifest, pairs[i].state))
            return report_mismatch(check, "manifest", "ManifestRootMismatch", pairs[i].what,
                                   pairs[i].manifest, pairs[i].state, err);
    if (manifest->live_memories != info->live_memories ||
        manifest->edge_count != info->edge_count || manifest->tombstoned != info->tombstoned)
        return report_finding(check, "counter", "CounterMismatch",
                              "the manifest's counters are not those of the records at its place",
                              err);
    return CX_SUCCESS;
}

/* While changes of trees wait: all but the roots of these is checked now.  *out_done is false for a
 * manifest that must be checked otherwise. */
static cx_status check_before_trees(const frame_check *check, cx_home *home, const cx_actor *actor,
                                    const cx_manifest *manifest, bool *out_done, cx_err *err)
{
    cx_roots roots = {.journal_size = actor->edge.size,
                      .journal = cx_mmr_edge_root(&actor->edge, actor->info.scheme),
                      .edges = manifest->edges_root,
                      .memories = manifest->memories_root};
    *out_done = false;
    if (check->frame->change_count != 1 ||
        !cx_store_expect_roots(&home->store, actor->id, manifest->snapshot_seq, &roots.memories,
                               &roots.edges))
        return CX_SUCCESS;
    *out_done = true;
    roots.overall =
        cx_scheme_overall(actor->info.scheme, &roots.journal, &roots.edges, &roots.memories);
    return compare_roots(check, manifest, &roots, &actor->info, err);
}

static cx_status check_manifest(const frame_check *check, cx_home *home, cx_actor *actor,
                                const cx_manifest *manifest, cx_err *err)
{
    cx_roots roots;
    bool done = false;
    CX_TRY(check_before_trees(check, home, actor, manifest, &done, err));
    if (done)
        return CX_SUCCESS;
    /* While deriving a snapshot ends a batch of the trees anyway. */
    if (cx_store_memtable_rows(&home->store) != 0)
        CX_TRY(cx_home_flush_now(home, err));
    CX_TRY(cx_actor_roots(home, actor, &roots, err));
    return compare_roots(check, manifest, &roots, &actor->info, err);
}

cx_status cx_home_check_manifests(cx_home *home, const cx_ledger_frame *frame, cx_arena *arena,
                                  const cx_check_sink *sink, cx_err *err)
{
    cx_actor *actor = NULL;
    if (frame->entry.size != 0)
        return CX_SUCCESS;
    CX_TRY(cx_home_find_actor(home, frame->actor, &actor, err));
    if (actor == NULL)
        return CX_SUCCESS;
    for (size_t i = 0; i < frame->change_count; i++) {
        const cx_change *change = &frame->changes[i];
        if (change->removed || change->key.size != 13 || memcmp(change->key.data, "snap/", 5) != 0)
            continue;
        frame_check check = {
            .frame = frame, .scheme = actor->info.scheme, .arena = arena, .sink = sink};
        cx_manifest manifest;
        cx_status decoded = cx_manifest_decode(change->value, &manifest, NULL);
        if (cx_failed(decoded))
            return report_undecoded(&check, decoded, "manifest", "the manifest is not canonical",
                                    err);
        (void)snprintf(check.where, sizeof check.where, "snapshot %llu",
                       (unsigned long long)manifest.snapshot_seq);
        if (!cx_str_eq(manifest.actor, frame->actor) || manifest.scheme != actor->info.scheme)
            CX_TRY(report_finding(&check, "manifest", "ManifestMismatch",
                                  "the manifest names another actor or scheme", err));
        CX_TRY(check_manifest(&check, home, actor, &manifest, err));
    }
    return CX_SUCCESS;
}

typedef struct tree_check {
    cx_home *home;
    const cx_check_sink *sink;
} tree_check;

static cx_status report_roots(void *arg, const cx_snapshot_row *named, const cx_digest found[2],
                              cx_err *err)
{
    const tree_check *trees = arg;
    const unsigned which = cx_digest_eq(&named->roots[CX_TREE_EDGES], &found[CX_TREE_EDGES])
                               ? CX_TREE_MEMORIES
                               : CX_TREE_EDGES;
    cx_actor *actor;
    CX_TRY(cx_home_actor_numbered(trees->home, named->actor, &actor, err));
    const cx_ledger_frame frame = {.actor = actor->info.name};
    frame_check check = {.frame = &frame, .sink = trees->sink};
    (void)snprintf(check.where, sizeof check.where, "snapshot %llu",
                   (unsigned long long)named->snapshot);
    return report_mismatch(&check, "manifest", "ManifestRootMismatch",
                           which == CX_TREE_EDGES ? "edges root" : "memories root",
                           &named->roots[which], &found[which], err);
}

cx_status cx_home_check_built(cx_home *home, const cx_check_sink *sink, cx_err *err)
{
    tree_check trees = {.home = home, .sink = sink};
    return cx_store_other_roots(&home->store, report_roots, &trees, err);
}
