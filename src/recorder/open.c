/*
 * open.c - keys that register themselves: registration, approval, rejection (trace.md §4.6).
 *
 * Approval adds the key to the trust store first, so that nothing new has to wait, and then records
 * what waits, batch by batch.  A batch leaves the queue when the ledger has it on the disk: after a
 * failure the approval is repeated, and what was recorded before is a duplicate then.
 */
#include "recorder/pending.h"

/* --- registration ----------------------------------------------------------------------------- */

static bool is_same_key(const cx_trust_key *a, const cx_trust_key *b)
{
    return memcmp(a->key.bytes, b->key.bytes, sizeof a->key.bytes) == 0;
}

/* Whether the trust store decides: it has the id. */
static cx_status find_trusted(cx_recorder *recorder, const cx_trust_key *key, bool *out_same,
                              bool *out_other, cx_err *err)
{
    cx_trust_view *view;
    CX_TRY(cx_recorder_trust_acquire(recorder, &view, err));
    const cx_trust_key *there = cx_trust_find(&view->trust, key->key_id);
    *out_same = there != NULL && is_same_key(there, key);
    *out_other = there != NULL && !*out_same;
    cx_recorder_trust_release(recorder, view);
    return CX_SUCCESS;
}

cx_status cx_recorder_register(cx_recorder *recorder, const cx_registration *registration,
                               cx_registered *out, cx_err *err)
{
    bool same, other, is_new;
    const cx_trust_key *key = registration->key;
    CX_TRY(find_trusted(recorder, key, &same, &other, err));
    if (other)
        return cx_fail_at(err, CX_E_CONFLICT, "KeyConflict", CX_NO_OFFSET,
                          "the key id %.*s belongs to another key; register under another id",
                          (int)key->key_id.size, key->key_id.data);
    if (same) {
        *out = CX_REGISTERED_TRUSTED;
        return CX_SUCCESS;
    }
    CX_TRY(cx_pending_add_key(recorder->pending, key, registration->address, registration->loopback,
                              cx_recorder_now(recorder), &is_new, err));
    *out = is_new ? CX_REGISTERED_PENDING : CX_REGISTERED_PENDING_BEFORE;
    return CX_SUCCESS;
}

/* --- approval --------------------------------------------------------------------------------- */

/* Records one batch that waits; `*out_more` false: none does. */
static cx_status record_batch(cx_recorder *recorder, cx_str key_id, cx_arena *arena,
                              cx_key_decided *sums, bool *out_more, cx_err *err)
{
    cx_batch batch;
    cx_intake intake;
    int64_t id = 0;
    CX_TRY(cx_pending_next(recorder->pending, key_id, arena, &batch, &id, err));
    *out_more = batch.event_count != 0;
    if (!*out_more)
        return CX_SUCCESS;
    CX_TRY(cx_recorder_receive_from(recorder, &batch, CX_CAPTURE_OPEN, NULL, arena, &intake, err));
    if (intake.problem.http != 0)
        return cx_fail(err, CX_E_FORMAT, "a batch that waits cannot be read any more: %.*s",
                       (int)intake.problem.detail.size, intake.problem.detail.data);
    CX_TRY(cx_pending_done(recorder->pending, key_id, id, err));
    sums->events += intake.received;
    sums->accepted += intake.accepted;
    sums->rejected += intake.rejected;
    return CX_SUCCESS;
}

static cx_status record_waiting(cx_recorder *recorder, cx_str key_id, cx_key_decided *sums,
                                cx_err *err)
{
    cx_arena arena;
    cx_status status = CX_SUCCESS;
    bool ended = false;
    cx_arena_init(&arena, recorder->alloc, 0);
    while (!cx_failed(status) && !ended) {
        cx_arena_mark empty = cx_arena_mark_now(&arena);
        bool more = true;
        while (more && !cx_failed(status)) {
            status = record_batch(recorder, key_id, &arena, sums, &more, err);
            cx_arena_reset(&arena, empty);
        }
        /* A request that began before the approval may have added some more. */
        if (!cx_failed(status))
            status = cx_pending_end(recorder->pending, key_id, &ended, err);
    }
    cx_arena_done(&arena);
    return status;
}

cx_status cx_recorder_key_approve(cx_recorder *recorder, const cx_approval_of_key *approval,
                                  cx_key_decided *out, cx_err *err)
{
    cx_arena arena;
    cx_trust_key key;
    bool is_new;
    cx_key_decided sums = {0};
    cx_arena_init(&arena, recorder->alloc, 0);
    cx_status status = cx_pending_key(recorder->pending, approval->key_id, &arena, &key, err);
    if (!cx_failed(status)) {
        key.agents = approval->agents;
        key.agent_count = approval->agent_count;
        key.added_by = approval->by;
        status = cx_recorder_key_add(recorder, &key, &is_new, err);
    }
    if (!cx_failed(status))
        status = record_waiting(recorder, approval->key_id, &sums, err);
    cx_arena_done(&arena);
    if (!cx_failed(status))
        *out = sums;
    return status;
}

/* --- rejection -------------------------------------------------------------------------------- */

static cx_status rejection_json(const cx_trust_key *key, const cx_pending_sums *sums, cx_str by,
                                cx_str reason, cx_arena *arena, cx_buf *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    cx_json value;
    cx_buf encoded;
    cx_buf_init(&encoded, arena->alloc);
    cx_base64_add(&encoded, cx_bytes_from(key->key.bytes, sizeof key->key.bytes), CX_BASE64_URL);
    cx_json_list_put(&list, CX_STR("key_id"), cx_json_make_str(key->key_id));
    cx_json_list_put(&list, CX_STR("public_key"), cx_json_make_str(cx_buf_str(&encoded)));
    cx_json_list_put(&list, CX_STR("by"), cx_json_make_str(by));
    cx_json_list_put(&list, CX_STR("reason"), cx_json_make_str(reason));
    cx_json_list_put(&list, CX_STR("events"), cx_json_make_uint(arena, sums->events));
    cx_json_list_put(&list, CX_STR("bytes"), cx_json_make_uint(arena, sums->bytes));
    cx_status status = cx_json_list_end_object(&list, &value, err);
    if (!cx_failed(status))
        status = cx_json_write(out, &value, CX_JSON_PY_COMPACT, err);
    cx_buf_done(&encoded);
    return status;
}

static cx_status append_rejection(cx_recorder *recorder, cx_bytes payload, int64_t now_ns,
                                  cx_err *err)
{
    cx_txn *txn;
    uint64_t seq;
    const cx_entry_draft draft = {
        .kind = CX_KIND_KEY_REJECTED, .created_at_ns = now_ns, .payload = payload};
    CX_TRY(cx_txn_begin(recorder->home, CX_ACTOR_TRUST, &txn, err));
    cx_status status = cx_txn_entry(txn, &draft, &seq, err);
    if (cx_failed(status)) {
        cx_txn_abort(txn);
        return status;
    }
    return cx_txn_commit(txn, err);
}

static cx_status reject_pending(cx_recorder *recorder, cx_str key_id, cx_str by, cx_str reason,
                                cx_arena *arena, cx_key_decided *out, cx_err *err)
{
    cx_trust_key key;
    cx_pending_sums sums;
    cx_buf payload;
    int64_t now_ns = cx_recorder_now(recorder);
    CX_TRY(cx_pending_key(recorder->pending, key_id, arena, &key, err));
    CX_TRY(cx_pending_key_counts(recorder->pending, key_id, &sums, err));
    cx_buf_init(&payload, recorder->alloc);
    cx_status status = rejection_json(&key, &sums, by, reason, arena, &payload, err);
    /* The decision is recorded before anything is discarded. */
    if (!cx_failed(status))
        status = append_rejection(recorder, cx_buf_bytes(&payload), now_ns, err);
    cx_buf_done(&payload);
    if (!cx_failed(status))
        status = cx_pending_reject(recorder->pending, key_id, now_ns, err);
    *out = (cx_key_decided){.events = sums.events, .rejected = sums.events, .bytes = sums.bytes};
    return status;
}

cx_status cx_recorder_key_reject(cx_recorder *recorder, cx_str key_id, cx_str by, cx_str reason,
                                 cx_key_decided *out, cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, recorder->alloc, 0);
    cx_status status = reject_pending(recorder, key_id, by, reason, &arena, out, err);
    cx_arena_done(&arena);
    return status;
}

/* --- showing ---------------------------------------------------------------------------------- */

cx_status cx_recorder_answer_pending(cx_recorder *recorder, cx_buf *out, cx_err *err)
{
    return cx_pending_json(recorder->pending, out, err);
}

cx_status cx_recorder_pending_counts(cx_recorder *recorder, cx_pending_sums *out, cx_err *err)
{
    return cx_pending_counts(recorder->pending, out, err);
}
