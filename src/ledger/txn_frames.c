/*
 * txn_frames.c - the frames of a transaction: collecting them, and making their entries at commit.
 *
 * F1  Everything is copied when it is put: the caller may free its bytes at once.
 * F2  Salts, commitments, entries and hashes are made at commit, for all frames together: many
 *     hashes at once take a fraction of the time (crypto/digest.h).
 * F3  A committed payload directly follows its salt in memory, as in the log
 *     (cx_frame_erasable_in_place).
 */
#include "base/api.h"
#include "ledger/internal.h"

#define SALT_SIZE 32

static cx_status copy_bytes(cx_txn *txn, cx_bytes bytes, cx_bytes *out, cx_err *err)
{
    cx_str copy = cx_arena_copy_str(&txn->arena, cx_bytes_str(bytes));
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    *out = cx_str_bytes(copy);
    return CX_SUCCESS;
}

/* --- collecting ------------------------------------------------------------------------------ */

static cx_status begin_frame(cx_txn *txn, cx_txn_frame **out, cx_err *err)
{
    cx_txn_frame *frame = cx_vec_push(&txn->frames, txn->home->alloc);
    if (frame == NULL)
        return cx_fail_nomem(err);
    *frame = (cx_txn_frame){.frame = {.actor = txn->info.name}};
    *out = frame;
    if (!txn->is_new || txn->frames.count != 1)
        return CX_SUCCESS;
    /* This frame creates the actor. */
    CX_TRY(cx_txn_put(txn, cx_str_bytes(CX_STR("meta/scheme")),
                      cx_str_bytes(cx_scheme_name(txn->info.scheme)), false, err));
    return cx_txn_put(txn, cx_str_bytes(CX_STR("meta/actor")), cx_str_bytes(txn->info.name), false,
                      err);
}

cx_status cx_txn_bare(cx_txn *txn, cx_err *err)
{
    cx_txn_frame *frame;
    return begin_frame(txn, &frame, err);
}

static cx_status check_draft(const cx_entry_draft *draft, cx_err *err)
{
    if (!cx_entry_kind_ok(draft->kind))
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "an entry's kind is 1 to %d of a-z 0-9 _ and '.', such as trace.received",
                          CX_ENTRY_KIND_MAX);
    if (draft->created_by.size > CX_ENTRY_CREATED_BY_MAX)
        return cx_fail(err, CX_E_LIMIT, "created_by has %zu bytes; at most %d are allowed",
                       draft->created_by.size, CX_ENTRY_CREATED_BY_MAX);
    if (draft->payload.size > CX_LOG_ERASABLE_MAX / 2)
        return cx_fail(err, CX_E_LIMIT, "payload of %zu bytes; at most %llu are allowed",
                       draft->payload.size, (unsigned long long)(CX_LOG_ERASABLE_MAX / 2));
    return CX_SUCCESS;
}

/* F3: reserves space for the salt, which is drawn later unless the caller gave one. */
static cx_status copy_committed_draft(cx_txn *txn, const cx_entry_draft *draft, cx_txn_frame *frame,
                                      cx_err *err)
{
    uint8_t *block = cx_arena_push(&txn->arena, SALT_SIZE + draft->payload.size, 1);
    if (block == NULL)
        return cx_fail_nomem(err);
    if (draft->salt != NULL)
        memcpy(block, draft->salt, SALT_SIZE);
    if (draft->payload.size != 0)
        memcpy(block + SALT_SIZE, draft->payload.data, draft->payload.size);
    frame->salt = block;
    frame->draft.salt = draft->salt != NULL ? block : NULL;
    frame->draft.payload = cx_bytes_from(block + SALT_SIZE, draft->payload.size);
    return CX_SUCCESS;
}

static cx_status copy_draft(cx_txn *txn, const cx_entry_draft *draft, cx_txn_frame *frame,
                            cx_err *err)
{
    cx_bytes kind = cx_str_bytes(draft->kind);
    cx_entry_draft *copied = &frame->draft;
    *copied = *draft;
    CX_TRY(copy_bytes(txn, kind, &kind, err));
    copied->kind = cx_bytes_str(kind);
    CX_TRY(copy_bytes(txn, draft->created_by, &copied->created_by, err));
    if (draft->committed || draft->payload.size > CX_ENTRY_PAYLOAD_MAX)
        CX_TRY(copy_committed_draft(txn, draft, frame, err));
    else
        CX_TRY(copy_bytes(txn, draft->payload, &copied->payload, err));
    if (draft->subject != NULL) {
        cx_id *subject = CX_ARENA_NEW(&txn->arena, cx_id);
        if (subject == NULL)
            return cx_fail_nomem(err);
        *subject = *draft->subject;
        copied->subject = subject;
        frame->frame.has_subject = true;
        frame->frame.subject = *subject;
    }
    frame->has_draft = true;
    return CX_SUCCESS;
}

cx_status cx_txn_entry(cx_txn *txn, const cx_entry_draft *draft, uint64_t *out_seq, cx_err *err)
{
    CX_TRY(check_draft(draft, err));
    cx_txn_frame *frame;
    CX_TRY(begin_frame(txn, &frame, err));
    CX_TRY(copy_draft(txn, draft, frame, err));
    frame->seq = txn->next_seq++;
    if (out_seq != NULL)
        *out_seq = frame->seq;
    return CX_SUCCESS;
}

static cx_status add_change(cx_txn *txn, const cx_change *change, cx_err *err)
{
    CX_ASSERT(txn->frames.count != 0);
    cx_txn_frame *frame = &txn->frames.items[txn->frames.count - 1];
    cx_change *slot = cx_vec_push(&frame->changes, txn->home->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = *change;
    return CX_SUCCESS;
}

cx_status cx_txn_put(cx_txn *txn, cx_bytes key, cx_bytes value, bool erasable, cx_err *err)
{
    cx_change change = {.erasable = erasable};
    CX_TRY(copy_bytes(txn, key, &change.key, err));
    CX_TRY(copy_bytes(txn, value, &change.value, err));
    return add_change(txn, &change, err);
}

cx_status cx_txn_remove(cx_txn *txn, cx_bytes key, cx_err *err)
{
    cx_change change = {.removed = true};
    cx_digest ignored;
    bool edge;
    /* In the log for good, such a frame could not be applied: also not one of another process. */
    if (cx_state_key(CX_SCHEME_CORTEX_1, key, &ignored, &edge))
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "a memory or an edge cannot be removed; a memory is tombstoned, and its"
                          " content erased");
    CX_TRY(copy_bytes(txn, key, &change.key, err));
    return add_change(txn, &change, err);
}

/* --- completing (F2) ------------------------------------------------------------------------- */

/* Messages to hash, and where each hash goes. */
typedef struct hashing {
    cx_bytes *messages;
    const uint8_t **salts; /* of payloads */
    cx_digest **targets;
    cx_digest *digests;
    size_t count;
} hashing;

static cx_status hashing_begin(cx_txn *txn, size_t most, hashing *out, cx_err *err)
{
    out->messages = CX_ARENA_ARRAY(&txn->arena, cx_bytes, most);
    out->salts = CX_ARENA_ARRAY(&txn->arena, const uint8_t *, most);
    out->targets = CX_ARENA_ARRAY(&txn->arena, cx_digest *, most);
    out->digests = CX_ARENA_ARRAY(&txn->arena, cx_digest, most);
    out->count = 0;
    return out->messages != NULL && out->salts != NULL && out->targets != NULL &&
                   out->digests != NULL
               ? CX_SUCCESS
               : cx_fail_nomem(err);
}

static void hashing_add(hashing *work, cx_bytes message, cx_digest *target)
{
    work->messages[work->count] = message;
    work->targets[work->count++] = target;
}

static void hashing_end(hashing *work)
{
    for (size_t i = 0; i < work->count; i++)
        *work->targets[i] = work->digests[i];
    work->count = 0;
}

/* Draws all missing salts with one system call. */
static cx_status draw_salts(cx_txn *txn, cx_err *err)
{
    const cx_io *io = txn->home->io;
    size_t count = 0;
    for (size_t i = txn->completed; i < txn->frames.count; i++)
        count += txn->frames.items[i].salt != NULL && txn->frames.items[i].draft.salt == NULL;
    if (count == 0)
        return CX_SUCCESS;
    uint8_t *drawn = cx_arena_push_array(&txn->arena, count, SALT_SIZE, 1);
    if (drawn == NULL)
        return cx_fail_nomem(err);
    int failed = io->random(io, drawn, count * SALT_SIZE);
    if (failed != 0)
        return cx_fail_os(err, -failed, "random bytes for a payload's salt");
    for (size_t i = txn->completed; i < txn->frames.count; i++) {
        cx_txn_frame *frame = &txn->frames.items[i];
        if (frame->salt == NULL || frame->draft.salt != NULL)
            continue;
        memcpy(frame->salt, drawn, SALT_SIZE);
        frame->draft.salt = frame->salt;
        drawn += SALT_SIZE;
    }
    return CX_SUCCESS;
}

/* Erasable payloads are committed to (§3). */
static void commit_payloads(cx_txn *txn, hashing *work)
{
    for (size_t i = txn->completed; i < txn->frames.count; i++) {
        cx_txn_frame *frame = &txn->frames.items[i];
        if (frame->salt == NULL)
            continue;
        frame->frame.committed = true;
        frame->frame.salt = frame->salt;
        frame->frame.payload = frame->draft.payload;
        work->salts[work->count] = frame->salt;
        hashing_add(work, frame->draft.payload, &frame->entry.commitment);
    }
    cx_scheme_payload_commitments(work->salts, work->messages, work->digests, work->count);
    hashing_end(work);
}

static cx_status hash_values(cx_txn *txn, cx_err *err)
{
    hashing work;
    size_t most = 0;
    for (size_t i = txn->completed; i < txn->frames.count; i++)
        most += txn->frames.items[i].changes.count;
    CX_TRY(hashing_begin(txn, most, &work, err));
    for (size_t i = txn->completed; i < txn->frames.count; i++)
        for (size_t j = 0; j < txn->frames.items[i].changes.count; j++) {
            cx_change *change = &txn->frames.items[i].changes.items[j];
            if (change->erasable)
                hashing_add(&work, change->value, &change->value_hash);
        }
    cx_scheme_values(txn->info.scheme, work.messages, work.digests, work.count);
    hashing_end(&work);
    return CX_SUCCESS;
}

static cx_status make_entry(cx_txn *txn, cx_txn_frame *frame, cx_buf *bytes, cx_err *err)
{
    cx_entry *entry = &frame->entry;
    entry->seq = frame->seq;
    entry->kind = frame->draft.kind;
    entry->created_at_ns = frame->draft.created_at_ns;
    entry->created_by = frame->draft.created_by;
    entry->committed = frame->salt != NULL;
    if (entry->committed)
        entry->payload_size = frame->draft.payload.size;
    else
        entry->payload = frame->draft.payload;
    cx_buf_clear(bytes);
    cx_entry_encode(entry, bytes);
    CX_TRY(cx_buf_check(bytes, err));
    return copy_bytes(txn, cx_buf_bytes(bytes), &frame->frame.entry, err);
}

static cx_status make_entries(cx_txn *txn, hashing *work, cx_err *err)
{
    cx_buf bytes;
    cx_status status = CX_SUCCESS;
    cx_buf_init(&bytes, txn->home->alloc);
    for (size_t i = txn->completed; i < txn->frames.count && !cx_failed(status); i++) {
        cx_txn_frame *frame = &txn->frames.items[i];
        if (!frame->has_draft)
            continue;
        status = make_entry(txn, frame, &bytes, err);
        hashing_add(work, frame->frame.entry, &frame->leaf);
    }
    cx_buf_done(&bytes);
    CX_TRY(status);
    cx_scheme_entries(work->messages, work->digests, work->count);
    hashing_end(work);
    return CX_SUCCESS;
}

cx_status cx_txn_complete(cx_txn *txn, cx_err *err)
{
    hashing work;
    CX_TRY(hashing_begin(txn, txn->frames.count - txn->completed, &work, err));
    CX_TRY(draw_salts(txn, err));
    commit_payloads(txn, &work);
    CX_TRY(hash_values(txn, err));
    CX_TRY(make_entries(txn, &work, err));
    txn->completed = txn->frames.count;
    return CX_SUCCESS;
}
