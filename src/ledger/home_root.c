/*
 * home_root.c - computing, recording and proving the home root (ledger.md §15).
 */
#include "ledger/home_root.h"

#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/kinds.h"
#include "ledger/snapshot.h"

#define LEAF_PREFIX "leaf/"
#define LEAF_KEY_SIZE (sizeof LEAF_PREFIX - 1 + 8)
/* Changed leaves in one frame; a home root with more is preceded by frames without an entry. */
#define LEAVES_PER_FRAME 16384

bool cx_home_root_reserved(cx_str actor)
{
    return cx_str_is(actor, CX_HOME_ROOT_ACTOR);
}

cx_bytes cx_home_leaf_key(uint64_t position, uint8_t out[CX_HOME_LEAF_KEY_SIZE])
{
    memcpy(out, LEAF_PREFIX, sizeof LEAF_PREFIX - 1);
    for (unsigned i = 0; i < 8; i++)
        out[sizeof LEAF_PREFIX - 1 + i] = (uint8_t)(position >> (8 * (7 - i)));
    return cx_bytes_from(out, LEAF_KEY_SIZE);
}

/* --- the leaves of this moment ---------------------------------------------------------------- */

/* Actors whose rows are read at once. */
#define LEAF_PAGE 256

static cx_status compute_overall(cx_home *home, cx_actor *actor, cx_digest *out, cx_err *err)
{
    cx_roots roots = {.journal_size = 0};
    cx_status status = cx_actor_roots(home, actor, &roots, err);
    *out = roots.overall;
    return status;
}

static cx_status refresh_actor(cx_home *home, uint64_t number, cx_err *err)
{
    cx_actor *actor;
    cx_digest overall;
    if (home->actors.overalls.items[number].known)
        return CX_SUCCESS;
    CX_TRY(cx_home_actor_numbered(home, (int64_t)number, &actor, err));
    CX_TRY(compute_overall(home, actor, &overall, err));
    home->actors.overalls.items[number] = (cx_known_overall){true, overall};
    return CX_SUCCESS;
}

/* One place for each actor. */
static cx_status reserve_overalls(cx_home *home, cx_err *err)
{
    cx_actors *all = &home->actors;
    if (!cx_vec_reserve(&all->overalls, (size_t)all->count, home->alloc))
        return cx_fail_nomem(err);
    for (; all->overalls.count < all->count; all->overalls.count++)
        all->overalls.items[all->overalls.count] = (cx_known_overall){.known = false};
    return CX_SUCCESS;
}

typedef struct refreshing {
    cx_home *home;
    cx_slots *slots;
    const cx_home_leaf_visit *visit;
    cx_mmr_edge edge; /* of the same tree, without slots */
    cx_buf bytes;     /* of one leaf */
    cx_arena page;
    cx_home_root root;
} refreshing;

static cx_status put_leaf(refreshing *r, const cx_home_leaf *leaf, cx_err *err)
{
    cx_mmr_fold folds[CX_MMR_FOLDS_MAX];
    size_t ignored = 0;
    cx_buf_clear(&r->bytes);
    cx_home_leaf_encode(leaf, &r->bytes);
    CX_TRY(cx_buf_check(&r->bytes, err));
    const cx_digest hash = cx_home_leaf_hash(cx_buf_bytes(&r->bytes));
    if (r->slots != NULL)
        return cx_slots_put(r->slots, r->root.actors, &hash, err);
    return cx_mmr_edge_append(&r->edge, CX_SCHEME_CORTEX_1, r->home->alloc, &hash, folds, &ignored,
                              err);
}

/* Its overall root, and whether that is another one than at the last call. */
static cx_status overall_of(refreshing *r, uint64_t number, cx_digest *out, bool *out_changed,
                            cx_err *err)
{
    const cx_known_overall *known = &r->home->actors.overalls.items[number];
    if (r->slots == NULL) {
        cx_actor *actor;
        *out_changed = true;
        CX_TRY(cx_home_actor_numbered(r->home, (int64_t)number, &actor, err));
        return compute_overall(r->home, actor, out, err);
    }
    *out_changed = !known->known || r->root.actors >= cx_slots_count(r->slots);
    CX_TRY(refresh_actor(r->home, number, err));
    *out = known->root;
    return CX_SUCCESS;
}

static cx_status refresh_leaf(refreshing *r, uint64_t number, const cx_actor_info *info,
                              cx_err *err)
{
    if (cx_home_root_reserved(info->name))
        return CX_SUCCESS;
    cx_digest overall;
    bool changed = false;
    CX_TRY(overall_of(r, number, &overall, &changed, err));
    const cx_home_leaf leaf = {
        .actor = info->name, .scheme = info->scheme, .size = info->entry_count, .overall = overall};
    if (changed)
        CX_TRY(put_leaf(r, &leaf, err));
    if (r->visit != NULL)
        CX_TRY(r->visit->leaf(r->visit->arg, r->root.actors, &leaf, changed, err));
    r->root.actors++;
    r->root.entries += leaf.size;
    return CX_SUCCESS;
}

static cx_status refresh_leaves(refreshing *r, cx_err *err)
{
    const cx_actor_info *infos;
    size_t count = 1;
    if (r->slots != NULL)
        CX_TRY(reserve_overalls(r->home, err));
    else
        cx_vec_done(&r->home->actors.overalls, r->home->alloc);
    for (uint64_t done = 0; count != 0; done += count) {
        cx_arena_mark mark = cx_arena_mark_now(&r->page);
        CX_TRY(cx_home_actor_page(r->home, done, LEAF_PAGE, &r->page, &infos, &count, err));
        for (size_t i = 0; i < count; i++)
            CX_TRY(refresh_leaf(r, done + i + 1, &infos[i], err));
        cx_arena_reset(&r->page, mark);
    }
    r->root.root =
        r->slots != NULL ? cx_slots_root(r->slots) : cx_mmr_edge_root(&r->edge, CX_SCHEME_CORTEX_1);
    return CX_SUCCESS;
}

cx_status cx_home_leaves_refresh(cx_home *home, cx_slots *slots, const cx_home_leaf_visit *visit,
                                 cx_home_root *out, cx_err *err)
{
    refreshing r = {.home = home, .slots = slots, .visit = visit};
    cx_buf_init(&r.bytes, home->alloc);
    cx_arena_init(&r.page, home->alloc, 0);
    cx_status status = refresh_leaves(&r, err);
    cx_buf_done(&r.bytes);
    cx_vec_done(&r.edge.peaks, home->alloc);
    cx_arena_done(&r.page);
    if (!cx_failed(status))
        *out = r.root;
    return status;
}

/* With the transaction, without the lock.  `visit` is called with the lock held. */
static cx_status compute_root(cx_home *home, const cx_home_leaf_visit *visit, cx_home_root *out,
                              cx_err *err)
{
    cx_slots *slots;
    CX_TRY(cx_slots_open(home->alloc, &slots, err));
    cx_lock_enter(&home->lock);
    cx_status status = cx_home_leaves_refresh(home, slots, visit, out, err);
    cx_lock_leave(&home->lock);
    cx_slots_close(slots);
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
    status = compute_root(home, NULL, out, err);
    cx_home_trees_end(home);
    CX_TRY(status);
    return cx_home_sync_shown(home, err);
}

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

/* --- recording -------------------------------------------------------------------------------- */

/* The leaves of this moment, encoded one after another in the transaction's arena. */
typedef struct leaf_list {
    cx_arena *arena;
    CX_VEC(cx_bytes) leaves;
} leaf_list;

static cx_status list_leaf(void *arg, uint64_t position, const cx_home_leaf *leaf, bool changed,
                           cx_err *err)
{
    leaf_list *list = arg;
    (void)position;
    (void)changed;
    cx_buf bytes;
    cx_buf_init(&bytes, cx_alloc_default());
    cx_home_leaf_encode(leaf, &bytes);
    cx_status status = cx_buf_check(&bytes, err);
    cx_str copy = {NULL, 0};
    if (!cx_failed(status))
        copy = cx_arena_copy_str(list->arena, cx_buf_str(&bytes));
    cx_buf_done(&bytes);
    CX_TRY(status);
    cx_bytes *slot = copy.data == NULL ? NULL : cx_vec_push(&list->leaves, cx_alloc_default());
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = cx_str_bytes(copy);
    return CX_SUCCESS;
}

/* Leaves that are as they were recorded last become empty. */
static cx_status drop_unchanged(cx_txn *txn, leaf_list *list, cx_err *err)
{
    uint8_t key[CX_HOME_LEAF_KEY_SIZE];
    for (size_t i = 0; i < list->leaves.count; i++) {
        cx_bytes before = {NULL, 0};
        bool found = false;
        CX_TRY(cx_txn_get(txn, cx_home_leaf_key(i, key), &before, &found, err));
        if (found && cx_str_eq(cx_bytes_str(before), cx_bytes_str(list->leaves.items[i])))
            list->leaves.items[i] = (cx_bytes){NULL, 0};
    }
    return CX_SUCCESS;
}

static cx_status put_changed(cx_txn *txn, const leaf_list *list, size_t *at, cx_err *err)
{
    uint8_t key[CX_HOME_LEAF_KEY_SIZE];
    for (size_t put = 0; *at < list->leaves.count && put < LEAVES_PER_FRAME; ++*at) {
        if (list->leaves.items[*at].size == 0)
            continue;
        CX_TRY(cx_txn_put(txn, cx_home_leaf_key(*at, key), list->leaves.items[*at], false, err));
        put++;
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

static cx_status write_root(cx_txn *txn, leaf_list *list, const cx_home_root *root, int64_t now_ns,
                            uint64_t *out_seq, cx_err *err)
{
    size_t at = 0, changed = 0;
    CX_TRY(drop_unchanged(txn, list, err));
    for (size_t i = 0; i < list->leaves.count; i++)
        changed += list->leaves.items[i].size != 0 ? 1 : 0;
    for (; changed > LEAVES_PER_FRAME; changed -= LEAVES_PER_FRAME) {
        CX_TRY(cx_txn_bare(txn, err));
        CX_TRY(put_changed(txn, list, &at, err));
    }
    CX_TRY(add_entry(txn, root, now_ns, out_seq, err));
    return put_changed(txn, list, &at, err);
}

/* Ends the transaction in any case. */
static cx_status record_in(cx_txn *txn, leaf_list *list, int64_t now_ns, cx_home_root_entry *out,
                           cx_err *err)
{
    cx_home *home = txn->home;
    const cx_home_leaf_visit visit = {list_leaf, list};
    const cx_actor_info *info = cx_txn_actor(txn);
    cx_home_root_entry last = {.seq = 0};
    cx_home_root root;
    uint64_t seq;
    cx_status status = CX_SUCCESS;
    CX_TRY_GOTO(status, compute_root(home, &visit, &root, err));
    if (root.actors == 0) {
        status = cx_fail_at(err, CX_E_NOT_FOUND, "NoActor", CX_NO_OFFSET,
                            "nothing is recorded yet, so there is no home root");
        goto done;
    }
    if (info->entry_count != 0)
        CX_TRY_GOTO(status, read_last(home, info->entry_count, cx_txn_arena(txn), &last, err));
    if (info->entry_count != 0 && last.root.actors == root.actors &&
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
    leaf_list list = {.arena = cx_txn_arena(txn)};
    cx_status status = record_in(txn, &list, now_ns, out, err);
    cx_vec_done(&list.leaves, cx_alloc_default());
    return status;
}

/* --- proving ---------------------------------------------------------------------------------- */

typedef struct leaf_search {
    cx_home *home;
    cx_str actor;
    cx_slots *slots;
    cx_arena *arena;
    uint64_t count; /* leaves under the root */
    bool found;
    uint64_t position;
    cx_bytes leaf;
} leaf_search;

static cx_status damaged_leaves(cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "the leaves of the home root are damaged; run 'cortex tables rebuild'");
}

static cx_status find_leaf(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    leaf_search *search = arg;
    uint8_t expected[CX_HOME_LEAF_KEY_SIZE];
    uint64_t position = cx_slots_count(search->slots);
    cx_home_leaf leaf;
    *stop = position == search->count;
    if (*stop)
        return CX_SUCCESS;
    if (!cx_str_eq(cx_bytes_str(key), cx_bytes_str(cx_home_leaf_key(position, expected))) ||
        cx_failed(cx_home_leaf_decode(value, &leaf, NULL)))
        return damaged_leaves(err);
    if (cx_str_eq(leaf.actor, search->actor)) {
        cx_str copy = cx_arena_copy_str(search->arena, cx_bytes_str(value));
        if (copy.data == NULL)
            return cx_fail_nomem(err);
        search->leaf = cx_str_bytes(copy);
        search->position = position;
        search->found = true;
    }
    cx_digest hash = cx_home_leaf_hash(value);
    return cx_slots_put(search->slots, position, &hash, err);
}

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

static cx_status prove_leaf(leaf_search *search, const cx_home_root_entry *last, uint64_t size,
                            cx_home_proof *out, cx_digest *out_root, cx_err *err)
{
    const cx_scan scan = {.actor = CX_STR(CX_HOME_ROOT_ACTOR),
                          .prefix = cx_str_bytes(CX_STR(LEAF_PREFIX)),
                          .row = find_leaf,
                          .arg = search};
    cx_inclusion inclusion;
    cx_digest root;
    cx_mmr_path path;
    CX_TRY(cx_home_scan(search->home, &scan, err));
    root = cx_slots_root(search->slots);
    if (cx_slots_count(search->slots) != search->count || !cx_digest_eq(&root, &last->root.root))
        return damaged_leaves(err);
    if (!search->found)
        return cx_fail_at(
            err, CX_E_NOT_FOUND, "NoActor", CX_NO_OFFSET,
            "the actor \"%.*s\" is not in the home root recorded last; record a newer "
            "one with 'cortex checkpoint --all'",
            (int)(search->actor.size < 80 ? search->actor.size : 80), search->actor.data);
    CX_TRY(cx_proof_journal(search->home, CX_STR(CX_HOME_ROOT_ACTOR), last->seq, size, true,
                            search->arena, &inclusion, out_root, err));
    cx_slots_inclusion(search->slots, search->position, &path);
    cx_digest *hashes = CX_ARENA_ARRAY(search->arena, cx_digest, path.count + 1);
    if (hashes == NULL)
        return cx_fail_nomem(err);
    memcpy(hashes, path.hashes, path.count * sizeof *hashes);
    *out = (cx_home_proof){
        .leaf = search->leaf, .index = search->position, .path = hashes, .path_count = path.count};
    return copy_inclusion(&inclusion, search->arena, &out->inclusion, err);
}

cx_status cx_home_root_prove(cx_home *home, cx_str actor, uint64_t size, cx_arena *arena,
                             cx_home_proof *out, cx_digest *out_root, cx_err *err)
{
    cx_home_root_entry last;
    bool found = false;
    if (home->remote != NULL)
        return cx_remote_unsupported(home, "a proof", err);
    CX_TRY(cx_home_root_last(home, &last, &found, err));
    if (!found)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoHomeRoot", CX_NO_OFFSET,
                          "no home root is recorded; record one with 'cortex checkpoint --all'");
    if (size != 0 && size <= last.seq)
        return cx_fail_at(err, CX_E_CONFLICT, "NotCovered", CX_NO_OFFSET,
                          "the first %llu home roots do not contain the newest one; make a new "
                          "checkpoint with 'cortex checkpoint --all'",
                          (unsigned long long)size);
    leaf_search search = {.home = home, .actor = actor, .arena = arena, .count = last.root.actors};
    CX_TRY(cx_slots_open(home->alloc, &search.slots, err));
    cx_status status = prove_leaf(&search, &last, size, out, out_root, err);
    cx_slots_close(search.slots);
    return status;
}
