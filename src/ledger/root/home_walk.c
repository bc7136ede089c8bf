/*
 * home_walk.c - the leaves of all actors as they are now (ledger.md §15).
 *
 * For those who cannot go by what has changed: verification, and a home root whose rows are
 * damaged.
 */
#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/snapshot.h"

#define LEAF_PREFIX "leaf/"
#define LEAF_KEY_SIZE (sizeof LEAF_PREFIX - 1 + 8)

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
