/*
 * actors.c - the actors of a data directory.
 */
#include "base/api.h"
#include "ledger/internal.h"

cx_actor *cx_home_find_actor(cx_home *home, cx_str name)
{
    const uint64_t *at = cx_map_find(&home->actor_names, name);
    return at == NULL ? NULL : home->actors[*at];
}

static void actor_close(cx_home *home, cx_actor *actor)
{
    cx_actor_drop_trees(actor);
    cx_vec_done(&actor->retained, home->alloc);
    cx_vec_done(&actor->pending[0], home->alloc);
    cx_vec_done(&actor->pending[1], home->alloc);
    cx_alloc_free(home->alloc, actor, sizeof *actor);
}

cx_status cx_home_add_actor(cx_home *home, int64_t id, cx_str name, cx_scheme scheme,
                            cx_actor **out, cx_err *err)
{
    CX_ASSERT(name.size <= CX_ACTOR_SIZE_MAX);
    if (!cx_vec_reserve_raw(&home->actors, &home->actor_capacity, home->actor_count + 1,
                            sizeof *home->actors, home->alloc))
        return cx_fail_nomem(err);
    cx_actor *actor = cx_alloc_zeroed(home->alloc, 1, sizeof *actor);
    if (actor == NULL)
        return cx_fail_nomem(err);
    actor->id = id;
    memcpy(actor->name, name.data, name.size);
    actor->info.name = cx_str_from(actor->name, name.size);
    actor->info.scheme = scheme;
    uint64_t *at = NULL;
    bool is_new = false;
    cx_status status = cx_map_put(&home->actor_names, actor->info.name, &at, &is_new, err);
    if (cx_failed(status)) {
        actor_close(home, actor);
        return status;
    }
    CX_ASSERT(is_new);
    *at = home->actor_count;
    home->actors[home->actor_count++] = actor;
    *out = actor;
    return CX_SUCCESS;
}

cx_status cx_home_need_actor(cx_home *home, cx_str name, cx_actor **out, cx_err *err)
{
    if (home->apply_failed)
        return cx_home_check_alive(home, err);
    cx_actor *actor = name.size == 0 ? NULL : cx_home_find_actor(home, name);
    if (actor == NULL)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoActor", CX_NO_OFFSET,
                          "the data directory has no actor \"%.*s\"",
                          (int)(name.size < 80 ? name.size : 80), name.data);
    *out = actor;
    return CX_SUCCESS;
}

void cx_home_drop_actors(cx_home *home)
{
    for (size_t i = 0; i < home->actor_count; i++)
        actor_close(home, home->actors[i]);
    cx_alloc_free(home->alloc, home->actors, home->actor_capacity * sizeof *home->actors);
    home->actors = NULL;
    home->actor_count = home->actor_capacity = 0;
    cx_map_done(&home->actor_names);
}

static cx_status load_actor_row(void *arg, const cx_actor_row *row, cx_err *err)
{
    cx_home *home = arg;
    cx_actor *actor;
    if (row->name.size > CX_ACTOR_SIZE_MAX || row->id != (int64_t)home->actor_count ||
        cx_home_find_actor(home, row->name) != NULL)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "an actor's row is damaged; run 'cortex tables rebuild'");
    CX_TRY(cx_home_add_actor(home, row->id, row->name, row->scheme, &actor, err));
    actor->info.entry_count = row->entries;
    actor->info.snapshot_count = row->snapshots;
    actor->info.live_memories = row->live;
    actor->info.tombstoned = row->dead;
    actor->info.edge_count = row->edges;
    actor->entry_sum = row->entry_sum;
    actor->state_sum = row->state_sum;
    if (row->id == 0)
        home->scheme = row->scheme;
    return CX_SUCCESS;
}

cx_status cx_home_load_actors(cx_home *home, cx_err *err)
{
    return cx_store_load_actors(&home->store, load_actor_row, home, err);
}

cx_status cx_home_save_actors(cx_home *home, cx_err *err)
{
    for (size_t i = 0; i < home->actor_count; i++) {
        cx_actor *actor = home->actors[i];
        if (!actor->dirty)
            continue;
        const cx_actor_row row = {
            .id = actor->id,
            .name = actor->info.name,
            .scheme = actor->info.scheme,
            .entries = actor->info.entry_count,
            .snapshots = actor->info.snapshot_count,
            .live = actor->info.live_memories,
            .dead = actor->info.tombstoned,
            .edges = actor->info.edge_count,
            .entry_sum = actor->entry_sum,
            .state_sum = actor->state_sum,
        };
        CX_TRY(cx_store_put_actor(&home->store, &row, err));
        actor->dirty = false;
    }
    return CX_SUCCESS;
}

typedef struct retained_scan {
    cx_home *home;
    cx_actor *actor;
} retained_scan;

static cx_status load_retained_snapshot(void *arg, cx_bytes key, cx_bytes value, bool *stop,
                                        cx_err *err)
{
    retained_scan *scan = arg;
    (void)value;
    (void)stop;
    if (key.size != 5 + 8)
        return CX_SUCCESS;
    uint64_t seq = 0;
    for (size_t i = 0; i < 8; i++)
        seq = seq << 8 | key.data[5 + i];
    uint64_t *slot = cx_vec_push(&scan->actor->retained, scan->home->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = seq;
    return CX_SUCCESS;
}

cx_status cx_home_know_retained(cx_home *home, cx_actor *actor, cx_err *err)
{
    if (actor->retained_known)
        return CX_SUCCESS;
    actor->retained.count = 0;
    if (actor->info.snapshot_count != 0) {
        retained_scan scan = {home, actor};
        CX_TRY(cx_store_scan(&home->store, actor->id, cx_str_bytes(CX_STR("snap/")),
                             (cx_bytes){NULL, 0}, false, load_retained_snapshot, &scan, err));
    }
    actor->retained_known = true;
    return CX_SUCCESS;
}
