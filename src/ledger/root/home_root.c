/*
 * home_root.c - computing, recording and proving the home root (ledger.md §15).
 */
#include "ledger/root/home_root.h"

#include "base/api.h"
#include "ledger/root/home_tree.h"
#include "ledger/internal.h"
#include "ledger/kinds.h"
#include "ledger/snapshot.h"

/* Changed leaves in one frame; a home root with more is preceded by frames without an entry. */
#define LEAVES_PER_FRAME 16384

/* --- what is recorded ------------------------------------------------------------------------- */

static cx_status read_last(cx_home *home, uint64_t count, cx_arena *arena, cx_home_root_entry *out,
                           cx_err *err)
{
    cx_entry_view view;
    CX_TRY(cx_home_entry(home, CX_STR(CX_HOME_ROOT_ACTOR), count - 1, arena, &view, err));
    if (!cx_kinds_is(view.entry.kind, CX_KIND_HOME_ROOT))
        return cx_fail_at(err, CX_E_FORMAT, "HomeRootMalformed", CX_NO_OFFSET,
                          "the last entry of the journal " CX_HOME_ROOT_ACTOR " is no home root; "
                          "check the data directory with 'cortex verify --home'");
    *out = (cx_home_root_entry){.seq = count - 1, .created_ns = view.entry.created_at_ns};
    return cx_home_root_decode(view.payload, &out->root, err);
}

cx_status cx_home_root_last(cx_home *home, cx_home_root_entry *out, bool *out_found, cx_err *err)
{
    cx_actor_info info;
    cx_err reason = {0};
    *out_found = false;
    cx_status status = cx_home_actor(home, CX_STR(CX_HOME_ROOT_ACTOR), &info, &reason);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    if (cx_failed(status)) {
        if (err != NULL)
            *err = reason;
        return status;
    }
    if (info.entry_count == 0)
        return CX_SUCCESS;
    cx_arena arena;
    cx_arena_init(&arena, home->alloc, 0);
    status = read_last(home, info.entry_count, &arena, out, err);
    cx_arena_done(&arena);
    *out_found = !cx_failed(status);
    return status;
}

static void set_status(cx_home *home, const cx_home_root_entry *last)
{
    home->home_roots = last->seq + 1;
    home->home_root_entries = last->root.entries;
    home->home_root_seconds =
        last->created_ns < 0 ? 0 : (uint64_t)last->created_ns / UINT64_C(1000000000);
}

void cx_home_root_note_applied(cx_home *home, const cx_entry *entry)
{
    cx_home_root_entry last = {.seq = entry->seq, .created_ns = entry->created_at_ns};
    if (cx_kinds_is(entry->kind, CX_KIND_HOME_ROOT) &&
        !cx_failed(cx_home_root_decode(entry->payload, &last.root, NULL)))
        set_status(home, &last);
}

/* A data directory opens also when its last home root cannot be read: verification reports that. */
void cx_home_root_load_status(cx_home *home)
{
    cx_home_root_entry last;
    bool found = false;
    if (!cx_failed(cx_home_root_last(home, &last, &found, NULL)) && found)
        set_status(home, &last);
}

void cx_home_root_get_status(const cx_home *home, cx_home_root_status *out)
{
    *out = (cx_home_root_status){.roots = home->home_roots,
                                 .entries = home->home_root_entries,
                                 .created_seconds = home->home_root_seconds};
}

/* --- of this moment --------------------------------------------------------------------------- */

static cx_status compute_now(cx_home *home, cx_home_root *out, cx_err *err)
{
    cx_home_root_entry last;
    bool found = false;
    cx_arena arena;
    cx_arena_init(&arena, home->alloc, 0);
    cx_home_leaf_list list = {.arena = &arena};
    /* One that cannot be read is not needed. */
    found = !cx_failed(cx_home_root_last(home, &last, &found, NULL)) && found;
    cx_status status = cx_home_root_compute(home, found ? &last : NULL, &list, out, err);
    cx_vec_done(&list.items, cx_alloc_default());
    cx_arena_done(&arena);
    return status;
}

cx_status cx_home_root_now(cx_home *home, cx_home_root *out, cx_err *err)
{
    if (home->remote != NULL)
        return cx_remote_unsupported(home, "the home root", err);
    cx_lock_enter(&home->lock);
    cx_status status = cx_home_lock_txn(home, err);
    cx_lock_leave(&home->lock);
    CX_TRY(status);
    status = compute_now(home, out, err);
    cx_home_trees_end(home);
    CX_TRY(status);
    return cx_home_sync_shown(home, err);
}

/* --- recording -------------------------------------------------------------------------------- */

static cx_status put_leaves(cx_txn *txn, const cx_home_leaf_list *list, size_t *at, cx_err *err)
{
    uint8_t key[CX_HOME_LEAF_KEY_SIZE];
    for (size_t put = 0; *at < list->items.count && put < LEAVES_PER_FRAME; ++*at, put++) {
        const cx_home_leaf_item *item = &list->items.items[*at];
        CX_TRY(cx_txn_put(txn, cx_home_leaf_key(item->position, key), item->leaf, false, err));
    }
    return CX_SUCCESS;
}

static cx_status add_entry(cx_txn *txn, const cx_home_root *root, int64_t now_ns, uint64_t *out_seq,
                           cx_err *err)
{
    cx_buf payload;
    cx_buf_init(&payload, cx_alloc_default());
    cx_home_root_encode(root, &payload);
    cx_status status = cx_buf_check(&payload, err);
    const cx_entry_draft draft = {.kind = cx_kinds_name(CX_KIND_HOME_ROOT),
                                  .created_at_ns = now_ns,
                                  .payload = cx_buf_bytes(&payload)};
    if (!cx_failed(status))
        status = cx_txn_entry(txn, &draft, out_seq, err);
    cx_buf_done(&payload);
    return status;
}

static cx_status write_root(cx_txn *txn, const cx_home_leaf_list *list, const cx_home_root *root,
                            int64_t now_ns, uint64_t *out_seq, cx_err *err)
{
    size_t at = 0;
    while (list->items.count - at > LEAVES_PER_FRAME) {
        CX_TRY(cx_txn_bare(txn, err));
        CX_TRY(put_leaves(txn, list, &at, err));
    }
    CX_TRY(add_entry(txn, root, now_ns, out_seq, err));
    return put_leaves(txn, list, &at, err);
}

/* Ends the transaction in any case. */
static cx_status record_in(cx_txn *txn, cx_home_leaf_list *list, int64_t now_ns,
                           cx_home_root_entry *out, cx_err *err)
{
    cx_home *home = txn->home;
    const uint64_t recorded = cx_txn_actor(txn)->entry_count;
    cx_home_root_entry last = {.seq = 0};
    cx_home_root root;
    uint64_t seq;
    cx_status status = CX_SUCCESS;
    if (recorded != 0)
        CX_TRY_GOTO(status, read_last(home, recorded, cx_txn_arena(txn), &last, err));
    CX_TRY_GOTO(status, cx_home_root_compute(home, recorded == 0 ? NULL : &last, list, &root, err));
    if (root.actors == 0) {
        status = cx_fail_at(err, CX_E_NOT_FOUND, "NoActor", CX_NO_OFFSET,
                            "nothing is recorded yet, so there is no home root");
        goto done;
    }
    if (recorded != 0 && last.root.actors == root.actors &&
        cx_digest_eq(&last.root.root, &root.root)) {
        *out = last;
        goto done;
    }
    CX_TRY_GOTO(status, write_root(txn, list, &root, now_ns, &seq, err));
    status = cx_txn_commit(txn, err);
    txn = NULL;
    if (!cx_failed(status))
        *out = (cx_home_root_entry){.root = root, .seq = seq, .created_ns = now_ns};
done:
    cx_txn_abort(txn);
    return status;
}

static cx_status record_remotely(cx_home *home, int64_t now_ns, cx_home_root_entry *out,
                                 cx_err *err)
{
    bool found = false;
    CX_TRY(cx_remote_record_home_root(home, now_ns, err));
    CX_TRY(cx_home_root_last(home, out, &found, err));
    if (!found)
        return cx_fail_at(err, CX_E_IO, "AnswerLost", CX_NO_OFFSET,
                          "the process that owns the data directory recorded no home root");
    return CX_SUCCESS;
}

cx_status cx_home_root_record(cx_home *home, int64_t now_ns, cx_home_root_entry *out, cx_err *err)
{
    cx_txn *txn;
    if (home->remote != NULL)
        return record_remotely(home, now_ns, out, err);
    CX_TRY(cx_txn_begin_reserved(home, CX_STR(CX_HOME_ROOT_ACTOR), CX_SCHEME_CORTEX_1, &txn, err));
    cx_home_leaf_list list = {.arena = cx_txn_arena(txn)};
    cx_status status = record_in(txn, &list, now_ns, out, err);
    cx_vec_done(&list.items, cx_alloc_default());
    return status;
}

/* --- proving ---------------------------------------------------------------------------------- */

static cx_status copy_inclusion(const cx_inclusion *inclusion, cx_arena *arena, cx_bytes *out,
                                cx_err *err)
{
    cx_buf bytes;
    cx_buf_init(&bytes, cx_alloc_default());
    cx_inclusion_encode(inclusion, &bytes);
    cx_status status = cx_buf_check(&bytes, err);
    cx_str copy = {NULL, 0};
    if (!cx_failed(status)) {
        copy = cx_arena_copy_str(arena, cx_buf_str(&bytes));
        if (copy.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&bytes);
    *out = cx_str_bytes(copy);
    return status;
}

/* In one transaction, so that the rows are those of the home root that is read. */
static cx_status find_leaf(cx_home *home, cx_str actor, cx_arena *arena, cx_home_root_entry *last,
                           cx_home_proof *out, cx_err *err)
{
    bool found = false;
    cx_lock_enter(&home->lock);
    cx_status status = cx_home_lock_txn(home, err);
    cx_lock_leave(&home->lock);
    CX_TRY(status);
    status = cx_home_root_last(home, last, &found, err);
    if (!cx_failed(status) && !found)
        status = cx_fail_at(err, CX_E_NOT_FOUND, "NoHomeRoot", CX_NO_OFFSET,
                            "no home root is recorded; record one with 'cortex checkpoint --all'");
    if (!cx_failed(status))
        status = cx_home_root_find_leaf(home, last, actor, arena, out, err);
    cx_home_trees_end(home);
    return status;
}

cx_status cx_home_root_prove(cx_home *home, cx_str actor, uint64_t size, cx_arena *arena,
                             cx_home_proof *out, cx_digest *out_root, cx_err *err)
{
    cx_home_root_entry last;
    cx_inclusion inclusion;
    if (home->remote != NULL)
        return cx_remote_unsupported(home, "a proof", err);
    CX_TRY(find_leaf(home, actor, arena, &last, out, err));
    if (size != 0 && size <= last.seq)
        return cx_fail_at(err, CX_E_CONFLICT, "NotCovered", CX_NO_OFFSET,
                          "the first %llu home roots do not contain the newest one; make a new "
                          "checkpoint with 'cortex checkpoint --all'",
                          (unsigned long long)size);
    CX_TRY(cx_proof_journal(home, CX_STR(CX_HOME_ROOT_ACTOR), last.seq, size, true, arena,
                            &inclusion, out_root, err));
    return copy_inclusion(&inclusion, arena, &out->inclusion, err);
}
