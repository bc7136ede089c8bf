/*
 * api_prove.c - the installed calls that make proofs from a data directory (cortex/proof.h).
 *
 *   P1  Every proof passes the verifier before it is returned.
 */
#include <cortex/proof.h>

#include "ledger/handle.h"
#include "proof/api.h"
#include "ledger/snapshot.h"

_Static_assert(CX_PROOF_URIS_MAX == CX_PROOF_KEYS_MAX, "a name a key");

typedef struct maker {
    cx_home *home;
    const cx_proof_make_options *options;
    int64_t now_ns;
    cx_str actor;
    cx_arena *arena;
    cx_pack_question *questions;
    cx_proof_request request;
    uint64_t snapshot;
} maker;

/* P1 */
static cx_status check_made(maker *m, cx_bytes made, cx_err *err)
{
    static const cx_check_options no_trust;
    cx_check_result result;
    CX_TRY(cx_check_run(made, &no_trust, m->arena, &result, err));
    if (result.finding.verdict != CX_BROKEN)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_CONFLICT, result.finding.reason, CX_NO_OFFSET,
                      "cannot make the requested proof: %.200s", result.finding.message);
}

/* --- what is asked ---------------------------------------------------------------------------- */

static cx_status parse_uris(maker *m, cx_err *err)
{
    const cx_proof_make_options *options = m->options;
    size_t count = options->uri_count;
    if (count > CX_PROOF_URIS_MAX)
        return cx_fail(err, CX_E_LIMIT, "%zu names in one proof; at most %d are allowed", count,
                       CX_PROOF_URIS_MAX);
    cx_id *ids = CX_ARENA_ARRAY(m->arena, cx_id, count + 1);
    cx_edge *edges = CX_ARENA_ARRAY(m->arena, cx_edge, count + 1);
    m->questions = CX_ARENA_ARRAY(m->arena, cx_pack_question, count + 1);
    if (ids == NULL || edges == NULL || m->questions == NULL)
        return cx_fail_nomem(err);
    bool are_edges = false;
    for (size_t i = 0; i < count; i++) {
        cx_uri uri;
        CX_TRY(cx_api_text(options->uris[i], "a URI", &m->questions[i].uri, err));
        CX_TRY(cx_uri_parse(m->questions[i].uri, &uri, err));
        if (i == 0)
            are_edges = uri.is_edge;
        else if (uri.is_edge != are_edges)
            return cx_api_refuse(err, "one proof is about memories or about edges: make two");
        ids[i] = uri.id;
        edges[i] = (cx_edge){.type = uri.type, .src = uri.id, .dst = uri.dst};
    }
    m->request = (cx_proof_request){
        .name_space = are_edges ? CX_NAMESPACE_EDGES : CX_NAMESPACE_MEMORIES,
        .ids = ids,
        .id_count = are_edges ? 0 : count,
        .edges = edges,
        .edge_count = are_edges ? count : 0,
        .compact = options->compact,
    };
    return CX_SUCCESS;
}

static cx_status read_newest_snapshot(void *arg, cx_bytes key, cx_bytes value, bool *stop,
                                      cx_err *err)
{
    maker *m = arg;
    cx_manifest manifest;
    (void)key;
    CX_TRY(cx_manifest_decode(value, &manifest, err));
    m->snapshot = manifest.snapshot_seq;
    *stop = true;
    return CX_SUCCESS;
}

static cx_status choose_snapshot(maker *m, cx_err *err)
{
    const cx_proof_make_options *options = m->options;
    if (options->at && options->fresh)
        return cx_api_refuse(err, "request either a fresh snapshot or an existing one, not both");
    m->snapshot = options->at ? options->snapshot : UINT64_MAX;
    if (options->at)
        return CX_SUCCESS;
    if (options->fresh) {
        cx_manifest made;
        CX_TRY(cx_snapshot_make(m->home, m->actor, CX_STR("explicit"), m->now_ns, m->arena, &made,
                                err));
        m->snapshot = made.snapshot_seq;
        return CX_SUCCESS;
    }
    const cx_scan newest = {.actor = m->actor,
                            .prefix = cx_str_bytes(CX_STR("snap/")),
                            .backwards = true,
                            .row = read_newest_snapshot,
                            .arg = m};
    CX_TRY(cx_home_scan(m->home, &newest, err));
    if (m->snapshot == UINT64_MAX)
        return cx_fail_at(
            err, CX_E_NOT_FOUND, "SnapshotNotFound", CX_NO_OFFSET,
            "there is no snapshot to prove against; make one first, or request a fresh one");
    return CX_SUCCESS;
}

/* The claims in the order of the proof's keys, each with the proof's answer. */
static cx_status make_claims(maker *m, const cx_state_proof *proof, cx_err *err)
{
    bool absent = m->options->absent;
    const cx_pack_question *asked = m->questions;
    m->questions = CX_ARENA_ARRAY(m->arena, cx_pack_question, m->options->uri_count);
    if (m->questions == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < m->options->uri_count; i++) {
        size_t at = cx_state_proof_asked(proof, i);
        m->questions[i] = (cx_pack_question){asked[at].uri, proof->proof.items[i].kind};
        if ((m->questions[i].claim == CX_ABSENT) != absent)
            return cx_fail_at(err, CX_E_CONFLICT, absent ? "NotAbsent" : "NotMember", CX_NO_OFFSET,
                              "%.120s is %s in snapshot %llu", m->options->uris[at],
                              absent ? "there" : "not", (unsigned long long)m->snapshot);
    }
    return CX_SUCCESS;
}

/* --- the seal --------------------------------------------------------------------------------- */

/* The seal entry of a sealed manifest comes after the journal entries that the manifest covers. */
static cx_status find_seal(maker *m, const cx_manifest *manifest, uint64_t journal_size,
                           uint64_t *out_seq, bool *out_found, cx_err *err)
{
    *out_found = false;
    if (manifest->signature.null)
        return CX_SUCCESS;
    for (uint64_t seq = manifest->journal_size; seq < journal_size && !*out_found; seq++) {
        cx_entry_view view;
        cx_payload payload;
        cx_arena_mark mark = cx_arena_mark_now(m->arena);
        CX_TRY(cx_home_entry(m->home, m->actor, seq, m->arena, &view, err));
        if (cx_entry_kind_of(view.entry.kind) == CX_ENTRY_SEAL) {
            CX_TRY(cx_payload_decode(CX_ENTRY_SEAL, view.payload, m->arena, &payload, err));
            *out_found = payload.as.seal.snapshot_seq == manifest->snapshot_seq;
            *out_seq = seq;
        }
        cx_arena_reset(m->arena, mark);
    }
    return CX_SUCCESS;
}

/* The journal's size: the checkpoint's when there is one, else the current one. */
static cx_status journal_size(maker *m, const cx_checkpoint *checkpoint, uint64_t *out, cx_err *err)
{
    cx_actor_info actor;
    CX_TRY(cx_home_actor(m->home, m->actor, &actor, err));
    *out = checkpoint != NULL ? checkpoint->size : actor.entry_count;
    if (*out > actor.entry_count)
        return cx_fail_at(err, CX_E_CONFLICT, "Forked", CX_NO_OFFSET,
                          "the checkpoint covers %llu entries, the journal has %llu",
                          (unsigned long long)*out, (unsigned long long)actor.entry_count);
    return CX_SUCCESS;
}

/* Adds the seal's inclusion proof, at the checkpoint's size when there is one. */
static cx_status add_seal(maker *m, const cx_manifest *manifest, cx_pack *pack, cx_buf *bytes,
                          cx_err *err)
{
    cx_checkpoint checkpoint;
    cx_inclusion inclusion;
    cx_digest root;
    uint64_t size, seq = 0;
    bool found, has_checkpoint = m->options->checkpoint.size != 0;
    if (has_checkpoint)
        CX_TRY(cx_checkpoint_parse(m->options->checkpoint, &checkpoint, NULL, err));
    CX_TRY(journal_size(m, has_checkpoint ? &checkpoint : NULL, &size, err));
    CX_TRY(find_seal(m, manifest, size, &seq, &found, err));
    if (!found && has_checkpoint)
        return cx_fail_at(
            err, CX_E_CONFLICT, "NotSealed", CX_NO_OFFSET,
            "the first %llu entries contain no seal of snapshot %llu, so the checkpoint "
            "does not cover it",
            (unsigned long long)size, (unsigned long long)m->snapshot);
    if (!found)
        return CX_SUCCESS;
    CX_TRY(cx_proof_journal(m->home, m->actor, seq, size, true, m->arena, &inclusion, &root, err));
    if (has_checkpoint && !cx_digest_eq(&root, &checkpoint.root))
        return cx_fail_at(err, CX_E_CONFLICT, "Forked", CX_NO_OFFSET,
                          "the journal's first %llu entries are not those of the checkpoint",
                          (unsigned long long)size);
    cx_inclusion_encode(&inclusion, bytes);
    CX_TRY(cx_buf_check(bytes, err));
    pack->inclusion = cx_buf_bytes(bytes);
    pack->checkpoint = m->options->checkpoint;
    return CX_SUCCESS;
}

/* --- the proof -------------------------------------------------------------------------------- */

static cx_status make_pack(maker *m, cx_buf *inclusion, cx_buf *out, cx_err *err)
{
    cx_actor_info actor;
    cx_state_proof proof;
    cx_manifest manifest;
    CX_TRY(cx_home_actor(m->home, m->actor, &actor, err));
    CX_TRY(parse_uris(m, err));
    if (m->options->uri_count == 0)
        return cx_fail_at(err, CX_E_USAGE, "EmptyProof", CX_NO_OFFSET,
                          "a proof must be about something: name at least one memory or edge");
    CX_TRY(choose_snapshot(m, err));
    CX_TRY((m->options->at ? cx_proof_at : cx_proof_now)(m->home, m->actor, &m->request,
                                                         m->snapshot, m->arena, &proof, err));
    CX_TRY(make_claims(m, &proof, err));
    CX_TRY(cx_manifest_decode(proof.manifest, &manifest, err));
    cx_pack pack = {
        .scheme = manifest.scheme,
        .proof = proof.bytes,
        .manifest = proof.manifest,
        .questions = m->questions,
        .question_count = m->options->uri_count,
        .leaves = manifest.scheme == CX_SCHEME_MATRIX_1 ? proof.leaves : NULL,
    };
    CX_TRY(add_seal(m, &manifest, &pack, inclusion, err));
    CX_TRY(cx_pack_encode(&pack, out, err));
    return check_made(m, cx_buf_bytes(out), err);
}

cx_status cx_proof_make(cx_ledger *ledger, const char *actor, const cx_proof_make_options *options,
                        cx_owned *out, cx_err *err)
{
    maker m = {.home = ledger->home, .options = options, .now_ns = cx_api_now(ledger)};
    cx_arena arena;
    cx_buf inclusion, bytes;
    CX_TRY(cx_api_text(actor, "the actor", &m.actor, err));
    cx_arena_init(&arena, ledger->alloc, 0);
    cx_buf_init(&inclusion, ledger->alloc);
    cx_buf_init(&bytes, ledger->alloc);
    m.arena = &arena;
    cx_status status = make_pack(&m, &inclusion, &bytes, err);
    if (!cx_failed(status))
        status = cx_owned_from_buf(&bytes, out, err);
    cx_buf_done(&bytes);
    cx_buf_done(&inclusion);
    cx_arena_done(&arena);
    return status;
}

static cx_status check_and_return(maker *m, cx_buf *bytes, cx_owned *out, cx_err *err)
{
    cx_status status = cx_buf_check(bytes, err);
    if (!cx_failed(status))
        status = check_made(m, cx_buf_bytes(bytes), err);
    if (!cx_failed(status))
        status = cx_owned_from_buf(bytes, out, err);
    cx_buf_done(bytes);
    return status;
}

cx_status cx_proof_make_entry(cx_ledger *ledger, const char *actor, uint64_t seq, uint64_t size,
                              cx_owned *out, cx_err *err)
{
    maker m = {.home = ledger->home};
    cx_arena arena;
    cx_buf bytes;
    cx_inclusion proof;
    cx_digest root;
    CX_TRY(cx_api_text(actor, "the actor", &m.actor, err));
    cx_arena_init(&arena, ledger->alloc, 0);
    m.arena = &arena;
    cx_status status =
        cx_proof_journal(m.home, m.actor, seq, size, true, &arena, &proof, &root, err);
    if (!cx_failed(status)) {
        cx_buf_init(&bytes, ledger->alloc);
        cx_inclusion_encode(&proof, &bytes);
        status = check_and_return(&m, &bytes, out, err);
    }
    cx_arena_done(&arena);
    return status;
}

cx_status cx_proof_make_consistency(cx_ledger *ledger, const char *actor, uint64_t older_size,
                                    uint64_t newer_size, cx_owned *out, cx_err *err)
{
    maker m = {.home = ledger->home};
    cx_arena arena;
    cx_buf bytes;
    cx_consistency proof;
    cx_digest older, newer;
    CX_TRY(cx_api_text(actor, "the actor", &m.actor, err));
    cx_arena_init(&arena, ledger->alloc, 0);
    m.arena = &arena;
    cx_status status = cx_proof_consistency(m.home, m.actor, older_size, newer_size, &arena, &proof,
                                            &older, &newer, err);
    if (!cx_failed(status)) {
        cx_buf_init(&bytes, ledger->alloc);
        cx_consistency_encode(&proof, &bytes);
        status = check_and_return(&m, &bytes, out, err);
    }
    cx_arena_done(&arena);
    return status;
}

cx_status cx_proof_checkpoint_now(cx_ledger *ledger, const char *actor, cx_proof_journal_root *out,
                                  cx_err *err)
{
    cx_str name;
    cx_actor_info info;
    cx_roots roots;
    CX_TRY(cx_api_text(actor, "the actor", &name, err));
    CX_TRY(cx_home_actor(ledger->home, name, &info, err));
    if (info.scheme != CX_SCHEME_CORTEX_1)
        return cx_fail_at(err, CX_E_UNSUPPORTED, "SchemeUnsupported", CX_NO_OFFSET,
                          "checkpoints exist for cortex-1 only");
    CX_TRY(cx_home_roots(ledger->home, name, &roots, err));
    *out = (cx_proof_journal_root){roots.journal_size, roots.journal};
    return CX_SUCCESS;
}
