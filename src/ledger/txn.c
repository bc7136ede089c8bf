/*
 * txn.c - an actor's write transaction: decide, collect frames, commit all of them or none.
 *
 * T1  What a transaction reads cannot change before it ends: there is one transaction at a time
 *     (D2).
 * T2  Frames go to the log first.  If applying them in memory fails, all further calls are refused:
 *     nothing is decided on a state that is not the log's (D5).
 * T3  Writeback starts before the frames are applied in memory.  If applying fails, they are
 *     withdrawn from the log before the error is returned, unless another caller's wait has synced
 *     them.
 */
#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/kinds.h"

/* The arena is reused by the next transaction unless it grew beyond this. */
#define TXN_ARENA_REUSED_MAX (4u << 20)

cx_status cx_home_check_alive(const cx_home *home, cx_err *err)
{
    if (home->poisoned)
        return cx_fail_at(err, CX_E_IO, "Poisoned", CX_NO_OFFSET,
                          "an earlier write failed; what is on the disk is whole, close this home"
                          " and open it again");
    return CX_SUCCESS;
}

cx_status cx_home_lock_txn(cx_home *home, cx_err *err)
{
    while (home->txn_active) {
        home->txn_waiters++;
        cx_lock_wait(&home->lock);
        home->txn_waiters--;
    }
    CX_TRY(cx_home_check_alive(home, err));
    home->txn_active = true;
    return CX_SUCCESS;
}

void cx_home_unlock_txn(cx_home *home)
{
    CX_ASSERT(home->txn_active);
    home->txn_active = false;
    if (home->txn_waiters != 0)
        cx_lock_wake(&home->lock);
}

/* With the lock held: releases the transaction and leaves its arena to the next one. */
static void release_txn(cx_txn *txn)
{
    cx_home *home = txn->home;
    if (txn->actor != NULL)
        cx_actor_release(txn->actor);
    txn->actor = NULL;
    if (txn->arena.total_bytes > TXN_ARENA_REUSED_MAX)
        cx_arena_done(&txn->arena);
    cx_arena_reset(&txn->arena, (cx_arena_mark){0});
    home->txn_arena = txn->arena;
    cx_home_unlock_txn(home);
}

/* 1..256 bytes of UTF-8 without '/', NUL or other controls (§4.3). */
static bool actor_name_ok(cx_str name)
{
    if (name.size == 0 || name.size > CX_ACTOR_SIZE_MAX || !cx_utf8_valid(name))
        return false;
    for (size_t i = 0; i < name.size; i++) {
        uint8_t c = (uint8_t)name.data[i];
        if (c < 0x20 || c == 0x7f || c == '/')
            return false;
    }
    return true;
}

/* The actor stays in memory until the transaction ends. */
static cx_status find_actor(cx_txn *txn, cx_str actor, cx_scheme scheme, cx_err *err)
{
    CX_TRY(cx_home_find_actor(txn->home, actor, &txn->actor, err));
    txn->is_new = txn->actor == NULL;
    txn->info = txn->is_new ? (cx_actor_info){.scheme = scheme} : txn->actor->info;
    txn->info.name = cx_str_from(txn->name, actor.size);
    txn->next_seq = txn->info.entry_count;
    if (!txn->is_new)
        cx_actor_hold(txn->actor);
    return CX_SUCCESS;
}

static cx_status acquire_txn(cx_txn *txn, cx_str actor, cx_scheme scheme, cx_err *err)
{
    cx_home *home = txn->home;
    cx_lock_enter(&home->lock);
    cx_status status = cx_home_lock_txn(home, err);
    if (!cx_failed(status))
        txn->arena = home->txn_arena;
    if (!cx_failed(status) && home->remote == NULL) {
        status = find_actor(txn, actor, scheme, err);
        if (cx_failed(status))
            release_txn(txn);
    }
    cx_lock_leave(&home->lock);
    if (cx_failed(status) || home->remote == NULL)
        return status;
    status = cx_remote_txn_begin(txn, actor, &scheme, err);
    if (cx_failed(status)) {
        cx_lock_enter(&home->lock);
        release_txn(txn);
        cx_lock_leave(&home->lock);
    }
    return status;
}

cx_status cx_txn_begin_as(cx_home *home, cx_str actor, cx_scheme scheme, cx_txn **out, cx_err *err)
{
    if (cx_home_root_reserved(actor))
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "the name \"" CX_HOME_ROOT_ACTOR "\" is reserved for the journal of home "
                          "roots; choose another actor");
    return cx_txn_begin_reserved(home, actor, scheme, out, err);
}

cx_status cx_txn_begin_reserved(cx_home *home, cx_str actor, cx_scheme scheme, cx_txn **out,
                                cx_err *err)
{
    CX_ASSERT(home != NULL && out != NULL);
    if (home->read_only)
        return cx_fail(err, CX_E_DENIED, "the data directory was opened for reading only");
    if (!actor_name_ok(actor))
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "an actor's name is 1 to %d bytes of UTF-8 without '/' and controls",
                          CX_ACTOR_SIZE_MAX);
    cx_txn *txn = cx_alloc_zeroed(home->alloc, 1, sizeof *txn);
    if (txn == NULL)
        return cx_fail_nomem(err);
    txn->home = home;
    memcpy(txn->name, actor.data, actor.size);
    cx_status status = acquire_txn(txn, actor, scheme, err);
    if (cx_failed(status)) {
        cx_alloc_free(home->alloc, txn, sizeof *txn);
        return status;
    }
    *out = txn;
    return CX_SUCCESS;
}

cx_status cx_txn_begin(cx_home *home, cx_str actor, cx_txn **out, cx_err *err)
{
    CX_ASSERT(home != NULL && out != NULL);
    return cx_txn_begin_as(home, actor, home->scheme, out, err);
}

static void txn_free(cx_txn *txn)
{
    const cx_alloc *alloc = txn->home->alloc;
    for (size_t i = 0; i < txn->frames.count; i++)
        cx_vec_done(&txn->frames.items[i].changes, alloc);
    cx_vec_done(&txn->frames, alloc);
    cx_alloc_free(alloc, txn, sizeof *txn);
}

static void end_txn(cx_txn *txn)
{
    cx_lock_enter(&txn->home->lock);
    release_txn(txn);
    cx_lock_leave(&txn->home->lock);
    txn_free(txn);
}

void cx_txn_abort(cx_txn *txn)
{
    if (txn == NULL)
        return;
    if (txn->home->remote != NULL)
        cx_remote_txn_abort(txn);
    end_txn(txn);
}

cx_scheme cx_txn_scheme(const cx_txn *txn)
{
    return txn->info.scheme;
}

cx_arena *cx_txn_arena(cx_txn *txn)
{
    return &txn->arena;
}

uint64_t cx_txn_next_seq(const cx_txn *txn)
{
    return txn->next_seq;
}

const cx_actor_info *cx_txn_actor(const cx_txn *txn)
{
    return &txn->info;
}

/* --- reading inside the transaction ----------------------------------------------------------- */

static const cx_change *find_change(const cx_txn *txn, cx_bytes key)
{
    for (size_t i = txn->frames.count; i-- > 0;) {
        const cx_txn_frame *frame = &txn->frames.items[i];
        for (size_t j = frame->changes.count; j-- > 0;)
            if (cx_str_eq(cx_bytes_str(frame->changes.items[j].key), cx_bytes_str(key)))
                return &frame->changes.items[j];
    }
    return NULL;
}

cx_status cx_txn_get(cx_txn *txn, cx_bytes key, cx_bytes *out_value, bool *out_found, cx_err *err)
{
    const cx_change *change = find_change(txn, key);
    if (change != NULL) {
        *out_found = !change->removed;
        if (*out_found)
            *out_value = change->value;
        return CX_SUCCESS;
    }
    *out_found = false;
    if (txn->home->remote != NULL)
        return cx_remote_txn_get(txn, key, false, out_value, out_found, err);
    if (txn->actor == NULL)
        return CX_SUCCESS;
    cx_lock_enter(&txn->home->lock);
    cx_status status = cx_store_get(&txn->home->store, txn->actor->id, key, &txn->arena, out_value,
                                    out_found, NULL, err);
    cx_lock_leave(&txn->home->lock);
    return status;
}

cx_status cx_txn_get_common(cx_txn *txn, cx_bytes key, cx_bytes *out_value, bool *out_found,
                            cx_err *err)
{
    *out_found = false;
    if (txn->home->remote != NULL)
        return cx_remote_txn_get(txn, key, true, out_value, out_found, err);
    cx_lock_enter(&txn->home->lock);
    cx_status status = cx_store_get(&txn->home->store, CX_ACTOR_HOME, key, &txn->arena, out_value,
                                    out_found, NULL, err);
    cx_lock_leave(&txn->home->lock);
    return status;
}

cx_status cx_txn_roots(cx_txn *txn, cx_roots *out, cx_err *err)
{
    cx_scheme scheme = txn->info.scheme;
    if (txn->home->remote != NULL && !txn->is_new)
        return cx_remote_txn_roots(txn, out, err);
    if (txn->actor == NULL) {
        *out = (cx_roots){.journal = cx_scheme_journal_root(scheme, 0, NULL),
                          .edges = cx_scheme_smt_empty(scheme, 0),
                          .memories = cx_scheme_smt_empty(scheme, 0)};
        out->overall = cx_scheme_overall(scheme, &out->journal, &out->edges, &out->memories);
        return CX_SUCCESS;
    }
    cx_lock_enter(&txn->home->lock);
    cx_status status = cx_actor_roots(txn->home, txn->actor, out, err);
    cx_lock_leave(&txn->home->lock);
    return status;
}

/* --- committing ------------------------------------------------------------------------------ */

/* The log's frames; their bytes are in the two buffers, which no longer move, or in the
 * transaction's arena. */
static cx_status encode_frames(cx_txn *txn, cx_buf *guarded, cx_buf *erasable, cx_log_frame *frames,
                               cx_err *err)
{
    for (size_t i = 0; i < txn->frames.count; i++) {
        cx_txn_frame *frame = &txn->frames.items[i];
        frame->frame.changes = frame->changes.items;
        frame->frame.change_count = frame->changes.count;
        size_t guarded_before = guarded->size, erasable_before = erasable->size;
        frames[i].erasable = cx_frame_erasable_in_place(&frame->frame);
        bool in_place = frames[i].erasable.size != 0;
        CX_TRY(cx_frame_encode(&frame->frame, guarded, in_place ? NULL : erasable, err));
        frames[i].guarded.size = guarded->size - guarded_before;
        if (!in_place)
            frames[i].erasable.size = erasable->size - erasable_before;
    }
    size_t guarded_at = 0, erasable_at = 0;
    for (size_t i = 0; i < txn->frames.count; i++) {
        frames[i].guarded.data = guarded->data + guarded_at;
        guarded_at += frames[i].guarded.size;
        if (frames[i].erasable.size == 0 || frames[i].erasable.data != NULL)
            continue;
        frames[i].erasable.data = erasable->data + erasable_at;
        erasable_at += frames[i].erasable.size;
    }
    return CX_SUCCESS;
}

static void advance_position(cx_home *home, uint64_t commit, size_t frames)
{
    if (home->applied.commit == commit)
        home->applied.frames += frames;
    else
        home->applied = (cx_position){commit, frames};
    home->last_commit = commit;
}

static size_t waiting_bytes(const cx_home *home)
{
    return home->options.waiting_bytes != 0 ? home->options.waiting_bytes : CX_MEMTABLE_BYTES;
}

static cx_status apply_frames(cx_txn *txn, const cx_log_place *places, uint64_t commit, cx_err *err)
{
    cx_home *home = txn->home;
    cx_lock_enter(&home->lock);
    cx_status status = CX_SUCCESS;
    cx_store_view_begin(&home->store);
    for (size_t i = 0; i < txn->frames.count && !cx_failed(status); i++) {
        const cx_txn_frame *frame = &txn->frames.items[i];
        cx_applied at = {.place = places[i], .commit = commit};
        if (frame->has_draft) {
            at.entry = &frame->entry;
            at.leaf = &frame->leaf;
        }
        status = cx_home_apply(home, &frame->frame, &at, &txn->arena, err);
        if (!cx_failed(status))
            advance_position(home, commit, 1);
    }
    cx_store_view_end(&home->store);
    if (cx_failed(status)) {
        home->poisoned = home->apply_failed = true;
        cx_lock_wake(&home->lock);
    } else if (home->flusher_idle) {
        home->flusher_idle = false;
        cx_lock_wake(&home->lock);
    }
    while (!cx_failed(status) && !home->poisoned && !cx_failed(home->flush_status) &&
           cx_store_memtable_bytes(&home->store) > waiting_bytes(home))
        cx_lock_wait(&home->lock);
    cx_lock_leave(&home->lock);
    return status;
}

/* T3 */
static cx_status apply_or_give_up(cx_txn *txn, const cx_log_place *places, uint64_t commit,
                                  cx_err *err)
{
    cx_err why = {0};
    cx_status status = apply_frames(txn, places, commit, &why);
    if (!cx_failed(status))
        return status;
    cx_log_discard_pending(txn->home->log, &why);
    if (err != NULL)
        *err = why;
    return status;
}

/* What erases, holds, or sums up what is there: it must go on where nothing new may be recorded. */
static bool is_upkeep(const cx_txn *txn)
{
    static const cx_dotted_kind kinds[] = {CX_KIND_ERASURE_REQUEST, CX_KIND_ERASURE_RECEIPT,
                                           CX_KIND_HOLD_ADD,        CX_KIND_HOLD_RELEASE,
                                           CX_KIND_HOME_ROOT,       CX_KIND_FLEET_CHECKPOINT};
    bool any = false;
    for (size_t i = 0; i < txn->frames.count; i++) {
        const cx_txn_frame *frame = &txn->frames.items[i];
        if (!frame->has_draft)
            continue;
        cx_entry_kind kind = cx_entry_kind_of(frame->draft.kind);
        bool found = kind == CX_ENTRY_REDACT || kind == CX_ENTRY_REDACT_MEMORY;
        for (size_t k = 0; k < CX_COUNT_OF(kinds) && !found; k++)
            found = cx_kinds_is(frame->draft.kind, kinds[k]);
        if (!found)
            return false;
        any = true;
    }
    return any;
}

static cx_status check_room(const cx_txn *txn, const cx_log_frame *frames, cx_err *err)
{
    const cx_home_options *options = &txn->home->options;
    uint64_t bytes = 0;
    if (options->room == NULL || is_upkeep(txn))
        return CX_SUCCESS;
    for (size_t i = 0; i < txn->frames.count; i++)
        bytes += frames[i].guarded.size + frames[i].erasable.size;
    return options->room(options->room_arg, bytes, err);
}

static cx_status submit_frames(cx_txn *txn, cx_log_frame *frames, cx_log_place *places,
                               uint64_t *out_commit, cx_err *err)
{
    cx_buf guarded, erasable;
    cx_buf_init(&guarded, txn->home->alloc);
    cx_buf_init(&erasable, txn->home->alloc);
    cx_status status = cx_txn_complete(txn, err);
    if (!cx_failed(status))
        status = encode_frames(txn, &guarded, &erasable, frames, err);
    if (!cx_failed(status))
        status = check_room(txn, frames, err);
    if (!cx_failed(status))
        status = cx_log_submit(txn->home->log, frames, txn->frames.count, places, out_commit, err);
    cx_buf_done(&guarded);
    cx_buf_done(&erasable);
    return status;
}

/* `wait_follows`: writeback starts before the frames are applied in memory (T3). */
static cx_status commit(cx_txn *txn, bool wait_follows, uint64_t *out_commit, cx_err *err)
{
    size_t count = txn->frames.count;
    CX_ASSERT(count != 0);
    if (txn->home->remote != NULL) {
        cx_status answered = cx_remote_txn_commit(txn, out_commit, err);
        end_txn(txn);
        return answered;
    }
    cx_log_frame *frames = CX_ARENA_ARRAY(&txn->arena, cx_log_frame, count);
    cx_log_place *places = CX_ARENA_ARRAY(&txn->arena, cx_log_place, count);
    cx_status status;
    uint64_t number = 0;
    if (frames == NULL || places == NULL) {
        status = cx_fail_nomem(err);
    } else {
        memset(frames, 0, count * sizeof *frames);
        status = submit_frames(txn, frames, places, &number, err);
        if (!cx_failed(status) && wait_follows)
            cx_log_start(txn->home->log);
        if (!cx_failed(status))
            status = apply_or_give_up(txn, places, number, err);
    }
    end_txn(txn);
    if (!cx_failed(status))
        *out_commit = number;
    return status;
}

cx_status cx_txn_commit_later(cx_txn *txn, uint64_t *out_commit, cx_err *err)
{
    CX_ASSERT(txn != NULL && out_commit != NULL);
    return commit(txn, false, out_commit, err);
}

cx_status cx_txn_commit(cx_txn *txn, cx_err *err)
{
    CX_ASSERT(txn != NULL);
    cx_home *home = txn->home;
    uint64_t number = 0;
    CX_TRY(commit(txn, true, &number, err));
    return cx_home_wait(home, number, err);
}

cx_status cx_home_wait(cx_home *home, uint64_t commit, cx_err *err)
{
    if (home->remote != NULL)
        return CX_SUCCESS; /* the writer process answers when the commit is durable */
    cx_status status = cx_log_wait(home->log, commit, err);
    if (cx_failed(status)) {
        cx_lock_enter(&home->lock);
        home->poisoned = true;
        cx_lock_wake(&home->lock);
        cx_lock_leave(&home->lock);
    }
    return status;
}

cx_status cx_home_sync(cx_home *home, cx_err *err)
{
    if (home->remote != NULL)
        return cx_remote_sync(home, err);
    cx_lock_enter(&home->lock);
    uint64_t commit = home->last_commit;
    cx_status status = cx_home_check_alive(home, err);
    cx_lock_leave(&home->lock);
    CX_TRY(status);
    return commit == UINT64_MAX ? CX_SUCCESS : cx_home_wait(home, commit, err);
}

cx_status cx_home_sync_shown(cx_home *home, cx_err *err)
{
    return home->read_only ? CX_SUCCESS : cx_home_sync(home, err);
}
