/*
 * home_walk.c - the leaves of all actors as they are now (ledger.md §15).
 *
 * For those who cannot go by what has changed: a verification that found a difference, and a home
 * root whose rows are damaged.
 */
#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/snapshot.h"

#define LEAF_PREFIX "leaf/"
#define LEAF_KEY_SIZE (sizeof LEAF_PREFIX - 1 + 8)

/* Actors whose rows are read at once. */
#define LEAF_PAGE 256

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

bool cx_home_leaf_is(cx_bytes key, uint64_t *out_position)
{
    uint8_t again[CX_HOME_LEAF_KEY_SIZE];
    *out_position = 0;
    for (size_t i = key.size < 8 ? 0 : key.size - 8; i < key.size; i++)
        *out_position = *out_position << 8 | key.data[i];
    return cx_str_eq(cx_bytes_str(key), cx_bytes_str(cx_home_leaf_key(*out_position, again)));
}

typedef struct walking {
    cx_home *home;
    const cx_home_leaf_visit *visit;
    cx_mmr_edge edge;
    cx_buf bytes; /* of one leaf */
    cx_arena page;
    cx_home_root root;
} walking;

static cx_status append_leaf(walking *w, const cx_home_leaf *leaf, cx_err *err)
{
    cx_mmr_fold folds[CX_MMR_FOLDS_MAX];
    size_t ignored = 0;
    cx_buf_clear(&w->bytes);
    cx_home_leaf_encode(leaf, &w->bytes);
    CX_TRY(cx_buf_check(&w->bytes, err));
    const cx_digest hash = cx_home_leaf_hash(cx_buf_bytes(&w->bytes));
    return cx_mmr_edge_append(&w->edge, CX_SCHEME_CORTEX_1, w->home->alloc, &hash, folds, &ignored,
                              err);
}

static cx_status walk_actor(walking *w, uint64_t number, const cx_actor_info *info, cx_err *err)
{
    cx_actor *actor;
    cx_roots roots;
    if (cx_home_root_reserved(info->name))
        return CX_SUCCESS;
    CX_TRY(cx_home_actor_numbered(w->home, (int64_t)number, &actor, err));
    CX_TRY(cx_actor_roots(w->home, actor, &roots, err));
    const cx_home_leaf leaf = {.actor = info->name,
                               .scheme = info->scheme,
                               .size = info->entry_count,
                               .overall = roots.overall};
    CX_TRY(append_leaf(w, &leaf, err));
    if (w->visit != NULL)
        CX_TRY(w->visit->leaf(w->visit->arg, w->root.actors, &leaf, err));
    w->root.actors++;
    w->root.entries += leaf.size;
    return CX_SUCCESS;
}

static cx_status walk_all(walking *w, cx_err *err)
{
    const cx_actor_info *infos;
    size_t count = 1;
    for (uint64_t done = 0; count != 0; done += count) {
        cx_arena_mark mark = cx_arena_mark_now(&w->page);
        CX_TRY(cx_home_actor_page(w->home, done, LEAF_PAGE, &w->page, &infos, &count, err));
        for (size_t i = 0; i < count; i++)
            CX_TRY(walk_actor(w, done + i + 1, &infos[i], err));
        cx_arena_reset(&w->page, mark);
    }
    w->root.root = cx_mmr_edge_root(&w->edge, CX_SCHEME_CORTEX_1);
    return CX_SUCCESS;
}

cx_status cx_home_leaves_walk(cx_home *home, const cx_home_leaf_visit *visit, cx_home_root *out,
                              cx_err *err)
{
    walking w = {.home = home, .visit = visit};
    cx_buf_init(&w.bytes, home->alloc);
    cx_arena_init(&w.page, home->alloc, 0);
    cx_status status = walk_all(&w, err);
    cx_buf_done(&w.bytes);
    cx_vec_done(&w.edge.peaks, home->alloc);
    cx_arena_done(&w.page);
    if (!cx_failed(status))
        *out = w.root;
    return status;
}
