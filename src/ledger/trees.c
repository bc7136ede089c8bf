/*
 * trees.c - an actor's trees: roots and proofs.
 *
 * Nothing is built in memory.  An actor has the right edge of its journal, and the anchors of its
 * two state trees as the tables have them; what a question needs besides is read (tree/mmr.h,
 * pages/pages.h).
 *
 *   V1  What changed since the tables were flushed is laid over copies of the pages it touches, and
 *       never written from there.  The copies stay for the next question about the tree, which lays
 *       only later changes over them, until a flush is complete: the tables below them do not
 *       change before.
 *   V2  Changes whose copies could have more than overlay_bytes of the home are flushed first, as
 *       are more than OVERLAY_CHANGES.
 *   V3  Pages, and the anchor they must lead to, are read in one view of the tables; its position
 *       tells which memtables it lacks.
 */
#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/store_internal.h"

#define OVERLAY_CHANGES 32768

bool cx_state_key(cx_scheme scheme, cx_bytes record_key, cx_digest *out, bool *out_edge)
{
    if (record_key.size == CX_HEAD_KEY_SIZE && memcmp(record_key.data, "m/", 2) == 0) {
        *out = cx_scheme_memory_key(scheme, record_key.data + 2);
        *out_edge = false;
        return true;
    }
    if (record_key.size == CX_EDGE_KEY_SIZE &&
        memcmp(record_key.data, CX_EDGE_PREFIX, CX_EDGE_PREFIX_SIZE) == 0) {
        const uint8_t *at = record_key.data + CX_EDGE_PREFIX_SIZE;
        *out = cx_scheme_edge_key(scheme, at, at[16], at + 17);
        *out_edge = true;
        return true;
    }
    return false;
}

bool cx_value_erased(cx_bytes value, cx_digest *out_hash)
{
    if (value.size != 1 + sizeof out_hash->bytes || value.data[0] != 0)
        return false;
    memcpy(out_hash->bytes, value.data + 1, sizeof out_hash->bytes);
    return true;
}

cx_status cx_actor_put_state(cx_home *home, cx_actor *actor, bool edge, const cx_digest *key,
                             const cx_digest *value, cx_err *err)
{
    const size_t retained = actor->retained.count;
    const cx_state_row row = {
        .tree = cx_tree_of(actor->id, edge ? CX_TREE_EDGES : CX_TREE_MEMORIES),
        .pair = {*key, *value},
        .next_snapshot = actor->info.snapshot_count,
        .newest = retained == 0 ? CX_NO_SNAPSHOT : actor->retained.items[retained - 1]};
    CX_TRY(cx_store_put_state(&home->store, &row, err));
    actor->pending[0]++;
    return CX_SUCCESS;
}

/* --- the journal ------------------------------------------------------------------------------ */

static cx_status read_hashes(void *arg, unsigned level, uint64_t first, size_t count,
                             cx_digest *out, cx_err *err)
{
    const cx_journal_source *source = arg;
    cx_home *home = source->home;
    if (!source->locked)
        cx_lock_enter(&home->lock);
    cx_status status =
        cx_store_read_journal(&home->store, source->actor, level, first, count, out, err);
    if (!source->locked)
        cx_lock_leave(&home->lock);
    return status;
}

static cx_status read_leaves(void *arg, uint64_t first, size_t count, cx_digest *out, cx_err *err)
{
    return read_hashes(arg, 0, first, count, out, err);
}

/* `source` must live as long as the tree. */
static cx_status open_journal(const cx_actor *actor, cx_journal_source *source, cx_mmr **out,
                              cx_err *err)
{
    const cx_mmr_keeper keeper = {source, read_leaves, read_hashes};
    return cx_mmr_open_kept(actor->info.scheme, source->home->alloc, &actor->edge, &keeper, out,
                            err);
}

cx_status cx_actor_journal_root(cx_home *home, cx_actor *actor, uint64_t size, cx_digest *out,
                                cx_err *err)
{
    cx_journal_source source = {home, actor->id, true};
    cx_mmr *journal;
    CX_TRY(open_journal(actor, &source, &journal, err));
    cx_status status = cx_mmr_root(journal, size, out, err);
    cx_mmr_close(journal);
    return status;
}

cx_status cx_actor_journal_peaks(cx_home *home, cx_actor *actor, uint64_t size, cx_digest *out,
                                 size_t *out_count, cx_err *err)
{
    cx_journal_source source = {home, actor->id, true};
    cx_mmr *journal;
    CX_TRY(open_journal(actor, &source, &journal, err));
    cx_status status = cx_mmr_peaks(journal, size, out, out_count, err);
    cx_mmr_close(journal);
    return status;
}

/* --- a state tree as it is now ---------------------------------------------------------------- */

typedef struct state_view {
    cx_pages *pages;
    cx_pages_view view; /* its overlay is the home's */
    bool ends_view;     /* of the tables */
} state_view;

static void close_state(cx_home *home, state_view *s)
{
    if (s->ends_view)
        cx_store_view_end(&home->store);
    *s = (state_view){0};
}

static void drop_overlay(cx_kept_overlay *kept)
{
    cx_pages_overlay_close(kept->overlay);
    *kept = (cx_kept_overlay){0};
}

void cx_home_drop_overlays(cx_home *home)
{
    for (size_t i = 0; i < CX_COUNT_OF(home->overlays); i++)
        drop_overlay(&home->overlays[i]);
}

void cx_home_end_overlays(cx_home *home)
{
    for (size_t i = 0; i < CX_COUNT_OF(home->overlays); i++) {
        cx_pages_overlay_end(home->overlays[i].overlay);
        home->overlays[i] = (cx_kept_overlay){0};
    }
}

/* Lays the changes of the overlay's tree that a memtable has over the pages, but for those that are
 * there already. */
static cx_status lay_over(cx_kept_overlay *kept, const cx_home *home, const cx_memtable *memtable,
                          cx_err *err)
{
    CX_VEC(cx_smt_pair) pairs = {0};
    cx_status status = CX_SUCCESS;
    if (memtable == NULL)
        return CX_SUCCESS;
    CX_ASSERT(kept->next >= memtable->first_state);
    for (uint64_t i = kept->next - memtable->first_state; i < memtable->states.count; i++) {
        const cx_state_row *row = &memtable->states.items[i];
        if (row->tree != kept->base.tree)
            continue;
        cx_smt_pair *slot = cx_vec_push(&pairs, home->alloc);
        if (slot == NULL) {
            status = cx_fail_nomem(err);
            break;
        }
        *slot = row->pair;
    }
    if (!cx_failed(status) && pairs.count != 0)
        status = cx_pages_overlay_put(kept->overlay, pairs.items, pairs.count, err);
    if (!cx_failed(status))
        kept->next = memtable->first_state + memtable->states.count;
    cx_vec_done(&pairs, home->alloc);
    return status;
}

typedef struct found_row {
    cx_pages_anchor trees[2];
} found_row;

static cx_status take_trees(void *arg, const cx_actor_row *row, cx_err *err)
{
    found_row *found = arg;
    (void)err;
    memcpy(found->trees, row->trees, sizeof found->trees);
    return CX_SUCCESS;
}

/* V3: the anchor in the view, and whether the view has what is being flushed. */
static cx_status find_anchor(cx_home *home, const cx_actor *actor, unsigned which,
                             cx_pages_anchor *out, bool *out_flushed, cx_err *err)
{
    const cx_memtable *flushing = home->store.flushing;
    cx_position shown = {0, 0};
    *out = actor->trees[which];
    *out_flushed = false;
    if (actor->pending[1] == 0 || flushing == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_store_shown_position(&home->store, &shown, err));
    *out_flushed = shown.commit == flushing->end.commit && shown.frames == flushing->end.frames;
    if (!*out_flushed)
        return CX_SUCCESS;
    found_row found;
    CX_TRY(cx_store_scan_actors(&home->store, actor->id, actor->id + 1, take_trees, &found, err));
    *out = found.trees[which];
    return CX_SUCCESS;
}

/* An overlay of this base that lacks nothing before number `first`. */
static cx_status continue_overlay(cx_kept_overlay *kept, cx_pages *pages,
                                  const cx_pages_anchor *base, uint64_t first, cx_err *err)
{
    if (kept->overlay != NULL && kept->first == first && kept->base.tree == base->tree &&
        kept->base.height == base->height && cx_digest_eq(&kept->base.root, &base->root))
        return CX_SUCCESS;
    drop_overlay(kept);
    CX_TRY(cx_pages_overlay_open(pages, base, OVERLAY_CHANGES, &kept->overlay, err));
    kept->base = *base;
    kept->first = kept->next = first;
    return CX_SUCCESS;
}

static cx_status open_overlay(cx_home *home, const cx_actor *actor, unsigned which, state_view *s,
                              cx_err *err)
{
    cx_kept_overlay *kept = &home->overlays[which];
    const cx_store *store = &home->store;
    cx_pages_anchor anchor;
    bool flushed = false;
    CX_TRY(find_anchor(home, actor, which, &anchor, &flushed, err));
    s->view = cx_pages_view_now(&anchor);
    if (actor->pending[0] == 0 && (flushed || actor->pending[1] == 0))
        return CX_SUCCESS;
    const cx_memtable *flushing = flushed ? NULL : store->flushing;
    const cx_memtable *oldest = flushing != NULL ? flushing : store->memtable;
    cx_status status = continue_overlay(kept, s->pages, &anchor, oldest->first_state, err);
    if (!cx_failed(status) && flushing != NULL && kept->next < store->memtable->first_state)
        status = lay_over(kept, home, flushing, err);
    if (!cx_failed(status))
        status = lay_over(kept, home, store->memtable, err);
    if (cx_failed(status))
        drop_overlay(kept);
    else
        s->view = cx_pages_view_overlay(kept->overlay);
    return status;
}

/* V2.  What changes need at most: all pages of both trees, or some for each that is not laid
 * yet. */
static bool fits_in_overlays(const cx_home *home, const cx_actor *actor)
{
    const cx_memtable *memtable = home->store.memtable;
    const uint64_t pending = actor->pending[0] + actor->pending[1];
    const uint64_t end = memtable->first_state + memtable->states.count;
    uint64_t keys = pending, unlaid = 0;
    size_t bytes = 0;
    if (pending > OVERLAY_CHANGES)
        return false;
    for (unsigned which = 0; which < 2; which++) {
        const cx_kept_overlay *kept = &home->overlays[which];
        const bool is_its = kept->overlay != NULL && kept->base.tree == actor->trees[which].tree;
        const uint64_t lacks = is_its && end - kept->next < pending ? end - kept->next : pending;
        unlaid = lacks > unlaid ? lacks : unlaid;
        bytes += is_its ? cx_pages_overlay_bytes(kept->overlay) : 0;
        keys += actor->trees[which].key_count;
    }
    return keys <= home->overlay_bytes / CX_PAGES_KEY_BYTES ||
           bytes + unlaid * CX_PAGES_CHANGE_BYTES <= home->overlay_bytes;
}

static cx_status open_state(cx_home *home, cx_actor *actor, unsigned which, state_view *s,
                            cx_err *err)
{
    *s = (state_view){.pages = home->store.reading.pages};
    CX_ASSERT(!home->store.later.on);
    if (!fits_in_overlays(home, actor))
        CX_TRY(cx_home_flush_wait_locked(home, err));
    if (home->store.view == CX_VIEW_NONE) {
        cx_store_view_begin(&home->store);
        s->ends_view = true;
    }
    cx_status status = cx_store_need_view(&home->store, err);
    if (!cx_failed(status))
        status = open_overlay(home, actor, which, s, err);
    if (cx_failed(status))
        close_state(home, s);
    return status;
}

/* --- roots ------------------------------------------------------------------------------------ */

static cx_status state_root(cx_home *home, cx_actor *actor, unsigned which, cx_digest *out,
                            cx_err *err)
{
    if (actor->pending[0] + actor->pending[1] == 0) {
        *out = actor->trees[which].root;
        return CX_SUCCESS;
    }
    state_view s;
    CX_TRY(open_state(home, actor, which, &s, err));
    *out = s.view.anchor.root;
    close_state(home, &s);
    return CX_SUCCESS;
}

cx_status cx_actor_roots(cx_home *home, cx_actor *actor, cx_roots *out, cx_err *err)
{
    cx_roots roots = {.journal_size = actor->edge.size,
                      .journal = cx_mmr_edge_root(&actor->edge, actor->info.scheme)};
    cx_actor_hold(actor); /* the lock may be released to flush */
    cx_status status = CX_SUCCESS;
    if (home->store.later.on)
        status = cx_home_finish_derived(home, err);
    if (!cx_failed(status))
        status = state_root(home, actor, CX_TREE_EDGES, &roots.edges, err);
    if (!cx_failed(status))
        status = state_root(home, actor, CX_TREE_MEMORIES, &roots.memories, err);
    cx_actor_release(actor);
    CX_TRY(status);
    roots.overall =
        cx_scheme_overall(actor->info.scheme, &roots.journal, &roots.edges, &roots.memories);
    *out = roots;
    return CX_SUCCESS;
}

cx_status cx_home_roots(cx_home *home, cx_str actor, cx_roots *out, cx_err *err)
{
    if (home->remote != NULL)
        return cx_remote_roots(home, actor, out, err);
    cx_lock_enter(&home->lock);
    cx_actor *found = NULL;
    bool rotation = false;
    cx_roots roots;
    cx_status status = CX_SUCCESS;
    CX_TRY_GOTO(status, cx_home_lock_txn(home, err));
    rotation = true;
    CX_TRY_GOTO(status, cx_home_need_actor(home, actor, &found, err));
    status = cx_actor_roots(home, found, &roots, err);
done:
    if (rotation)
        cx_home_unlock_txn(home);
    cx_lock_leave(&home->lock);
    /* What is returned must be durable. */
    if (!cx_failed(status))
        status = cx_home_sync_shown(home, err);
    if (!cx_failed(status))
        *out = roots;
    return status;
}

/* --- asking for proofs ------------------------------------------------------------------------ */

static void end_trees(cx_home *home)
{
    cx_mmr_close(home->journal_of);
    home->journal_of = NULL;
    if (home->trees_of != NULL)
        cx_actor_release(home->trees_of);
    home->trees_of = NULL;
    cx_home_unlock_txn(home);
}

cx_status cx_home_trees_begin(cx_home *home, cx_str actor, cx_trees *out, cx_err *err)
{
    if (home->remote != NULL)
        return cx_remote_unsupported(home, "a proof", err);
    cx_lock_enter(&home->lock);
    cx_actor *found = NULL;
    bool rotation = false;
    cx_status status = CX_SUCCESS;
    CX_TRY_GOTO(status, cx_home_lock_txn(home, err));
    rotation = true;
    CX_TRY_GOTO(status, cx_home_need_actor(home, actor, &found, err));
    cx_actor_hold(found);
    home->trees_of = found;
    home->journal_source = (cx_journal_source){home, found->id, false};
    CX_TRY_GOTO(status, open_journal(found, &home->journal_source, &home->journal_of, err));
    *out = (cx_trees){found->info.scheme, home->journal_of};
done:
    if (cx_failed(status) && rotation)
        end_trees(home);
    cx_lock_leave(&home->lock);
    return status;
}

void cx_home_trees_end(cx_home *home)
{
    cx_lock_enter(&home->lock);
    end_trees(home);
    cx_lock_leave(&home->lock);
}

static unsigned tree_in(cx_namespace name_space)
{
    return name_space == CX_NAMESPACE_EDGES ? CX_TREE_EDGES : CX_TREE_MEMORIES;
}

cx_status cx_trees_prove(cx_home *home, cx_namespace name_space, const cx_digest *keys,
                         size_t count, cx_arena *arena, cx_digest *out_root,
                         const cx_smt_path **out, cx_err *err)
{
    state_view s;
    CX_ASSERT(home->trees_of != NULL);
    cx_lock_enter(&home->lock);
    cx_status status = open_state(home, home->trees_of, tree_in(name_space), &s, err);
    if (!cx_failed(status)) {
        status = cx_pages_prove(s.pages, &s.view, keys, count, arena, out, err);
        *out_root = s.view.anchor.root;
        close_state(home, &s);
    }
    cx_lock_leave(&home->lock);
    return status;
}

/* The rows of the past are complete when all is flushed. */
static cx_status prove_past(cx_home *home, const cx_actor *actor, unsigned which, uint64_t snapshot,
                            const cx_digest *root, const cx_digest *keys, size_t count,
                            cx_arena *arena, const cx_smt_path **out, cx_err *err)
{
    const cx_pages_anchor *now = &actor->trees[which];
    uint8_t heights[2];
    CX_TRY(cx_home_flush_wait_locked(home, err));
    CX_TRY(cx_store_past_heights(&home->store, actor->id, snapshot, heights, err));
    cx_pages_anchor then = *now;
    then.root = *root;
    then.height = heights[which];
    const cx_pages_view view = cx_pages_view_past(&then, now, snapshot);
    return cx_pages_prove(home->store.reading.pages, &view, keys, count, arena, out, err);
}

cx_status cx_trees_prove_at(cx_home *home, cx_namespace name_space, uint64_t snapshot,
                            const cx_digest *root, const cx_digest *keys, size_t count,
                            cx_arena *arena, const cx_smt_path **out, cx_err *err)
{
    CX_ASSERT(home->trees_of != NULL);
    cx_lock_enter(&home->lock);
    cx_status status = prove_past(home, home->trees_of, tree_in(name_space), snapshot, root, keys,
                                  count, arena, out, err);
    cx_lock_leave(&home->lock);
    return status;
}
