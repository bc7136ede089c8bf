/*
 * actors.c - the actors of a data directory, as many of them as are needed in memory.
 *
 * C1  An actor is read from the tables when it is asked for.  At most `actor_limit` stay in memory,
 *     but for those that must (C2): of the others one that was not used lately makes room.
 * C2  An actor stays while it is held (cx_actor_hold), and while it has changes that are not in
 *     the tables.  So an actor that is not in memory is in the tables as it is.
 * C3  A pointer to an actor that is not held is valid until the lock is released or another actor
 *     is asked for.
 */
#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/store_internal.h"

/* How many places are looked at, and actors removed, to make room for one. */
#define LOOKS 64
#define REMOVED_AT_ONCE 2
#define BUCKETS_MIN 64

/* --- in memory -------------------------------------------------------------------------------- */

static size_t bucket_of_name(const cx_actors *all, cx_str name)
{
    return (size_t)cx_map_hash_bytes(all->seed, name.data, name.size) & (all->bucket_count - 1);
}

static size_t bucket_of_id(const cx_actors *all, int64_t id)
{
    return (size_t)cx_map_hash_bytes(all->seed, &id, sizeof id) & (all->bucket_count - 1);
}

static void link_actor(cx_actors *all, cx_actor *actor)
{
    cx_actor **by_name = &all->by_name[bucket_of_name(all, actor->info.name)];
    cx_actor **by_id = &all->by_id[bucket_of_id(all, actor->id)];
    actor->next_by_name = *by_name;
    *by_name = actor;
    actor->next_by_id = *by_id;
    *by_id = actor;
}

static void unlink_actor(cx_actors *all, const cx_actor *actor)
{
    cx_actor **at = &all->by_name[bucket_of_name(all, actor->info.name)];
    while (*at != actor)
        at = &(*at)->next_by_name;
    *at = actor->next_by_name;
    at = &all->by_id[bucket_of_id(all, actor->id)];
    while (*at != actor)
        at = &(*at)->next_by_id;
    *at = actor->next_by_id;
}

cx_actor *cx_home_actor_in_memory(const cx_home *home, cx_str name)
{
    const cx_actors *all = &home->actors;
    cx_actor *at = all->bucket_count == 0 ? NULL : all->by_name[bucket_of_name(all, name)];
    while (at != NULL && !cx_str_eq(at->info.name, name))
        at = at->next_by_name;
    return at;
}

static cx_actor *numbered_in_memory(const cx_home *home, int64_t id)
{
    const cx_actors *all = &home->actors;
    cx_actor *at = all->bucket_count == 0 ? NULL : all->by_id[bucket_of_id(all, id)];
    while (at != NULL && at->id != id)
        at = at->next_by_id;
    return at;
}

static cx_status grow_buckets(cx_home *home, cx_err *err)
{
    cx_actors *all = &home->actors;
    if (all->held.count < all->bucket_count)
        return CX_SUCCESS;
    const size_t count = all->bucket_count == 0 ? BUCKETS_MIN : 2 * all->bucket_count;
    cx_actor **by_name = cx_alloc_zeroed(home->alloc, count, sizeof *by_name);
    cx_actor **by_id = cx_alloc_zeroed(home->alloc, count, sizeof *by_id);
    if (by_name == NULL || by_id == NULL) {
        cx_alloc_free(home->alloc, by_name, count * sizeof *by_name);
        cx_alloc_free(home->alloc, by_id, count * sizeof *by_id);
        return cx_fail_nomem(err);
    }
    cx_alloc_free(home->alloc, all->by_name, all->bucket_count * sizeof *by_name);
    cx_alloc_free(home->alloc, all->by_id, all->bucket_count * sizeof *by_id);
    all->by_name = by_name;
    all->by_id = by_id;
    all->bucket_count = count;
    for (size_t i = 0; i < all->held.count; i++)
        link_actor(all, all->held.items[i]);
    return CX_SUCCESS;
}

static void actor_close(cx_home *home, cx_actor *actor)
{
    cx_vec_done(&actor->retained, home->alloc);
    cx_vec_done(&actor->edge.peaks, home->alloc);
    cx_alloc_free(home->alloc, actor, sizeof *actor);
}

/* C2 */
static bool must_stay(const cx_home *home, const cx_actor *actor)
{
    return actor->id == CX_ACTOR_HOME || actor->holds != 0 || actor->dirty ||
           actor->saved_with > home->actors.flushes;
}

static void remove_actor(cx_home *home, size_t at)
{
    cx_actors *all = &home->actors;
    cx_actor *actor = all->held.items[at];
    unlink_actor(all, actor);
    all->held.items[at] = all->held.items[--all->held.count];
    actor_close(home, actor);
}

size_t cx_home_actor_limit(const cx_home *home)
{
    return home->options.actor_limit != 0 ? home->options.actor_limit : CX_HOME_ACTORS_DEFAULT;
}

bool cx_home_actors_crowded(const cx_home *home)
{
    return home->actors.changed.count >= cx_home_actor_limit(home);
}

/* C1: a hand goes round; an actor that was used since it last came by is passed over once. */
static void make_room(cx_home *home)
{
    cx_actors *all = &home->actors;
    const size_t limit = cx_home_actor_limit(home);
    size_t removed = 0;
    if (home->remote != NULL)
        return;
    for (size_t i = 0; i < LOOKS && all->held.count >= limit && removed < REMOVED_AT_ONCE; i++) {
        all->hand = all->hand < all->held.count ? all->hand : 0;
        cx_actor *actor = all->held.items[all->hand];
        if (!actor->used && !must_stay(home, actor)) {
            remove_actor(home, all->hand);
            removed++;
            continue;
        }
        actor->used = false;
        all->hand++;
    }
}

void cx_actor_hold(cx_actor *actor)
{
    actor->holds++;
}

void cx_actor_release(cx_actor *actor)
{
    CX_ASSERT(actor->holds != 0);
    actor->holds--;
}

static cx_status hold_in_memory(cx_home *home, int64_t id, cx_str name, cx_scheme scheme,
                                cx_actor **out, cx_err *err)
{
    cx_actors *all = &home->actors;
    CX_ASSERT(name.size <= CX_ACTOR_SIZE_MAX);
    make_room(home);
    CX_TRY(grow_buckets(home, err));
    cx_actor *actor = cx_alloc_zeroed(home->alloc, 1, sizeof *actor);
    cx_actor **slot = actor == NULL ? NULL : cx_vec_push(&all->held, home->alloc);
    if (slot == NULL) {
        cx_alloc_free(home->alloc, actor, sizeof *actor);
        return cx_fail_nomem(err);
    }
    actor->id = id;
    memcpy(actor->name, name.data, name.size);
    actor->info.name = cx_str_from(actor->name, name.size);
    actor->info.scheme = scheme;
    for (unsigned which = 0; which < 2; which++)
        actor->trees[which] = cx_pages_anchor_empty(cx_tree_of(id, which), scheme);
    actor->used = true;
    *slot = actor;
    link_actor(all, actor);
    *out = actor;
    return CX_SUCCESS;
}

cx_status cx_home_add_actor(cx_home *home, cx_str name, cx_scheme scheme, cx_actor **out,
                            cx_err *err)
{
    CX_ASSERT(cx_home_actor_in_memory(home, name) == NULL);
    CX_TRY(hold_in_memory(home, (int64_t)home->actors.count, name, scheme, out, err));
    home->actors.count++;
    return CX_SUCCESS;
}

void cx_home_drop_actors(cx_home *home)
{
    cx_actors *all = &home->actors;
    for (size_t i = 0; i < all->held.count; i++)
        actor_close(home, all->held.items[i]);
    cx_vec_done(&all->held, home->alloc);
    cx_vec_done(&all->changed, home->alloc);
    cx_alloc_free(home->alloc, all->by_name, all->bucket_count * sizeof *all->by_name);
    cx_alloc_free(home->alloc, all->by_id, all->bucket_count * sizeof *all->by_id);
    *all = (cx_actors){.seed = all->seed};
}

/* --- from the tables -------------------------------------------------------------------------- */

typedef struct loading {
    cx_home *home;
    cx_actor *actor; /* the last one */
} loading;

static cx_status load_edge(const cx_home *home, const cx_actor_row *row, cx_mmr_edge *out,
                           cx_err *err)
{
    const size_t count = row->peaks.size / sizeof(cx_digest);
    *out = (cx_mmr_edge){.size = row->entries};
    if (!cx_vec_reserve(&out->peaks, count, home->alloc))
        return cx_fail_nomem(err);
    if (count != 0)
        memcpy(out->peaks.items, row->peaks.data, row->peaks.size);
    out->peaks.count = count;
    return CX_SUCCESS;
}

static cx_status load_row(void *arg, const cx_actor_row *row, cx_err *err)
{
    loading *load = arg;
    if (row->name.size > CX_ACTOR_SIZE_MAX ||
        cx_home_actor_in_memory(load->home, row->name) != NULL)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "an actor's row is damaged; run 'cortex tables rebuild'");
    cx_actor *actor;
    if (row->peaks.size != sizeof(cx_digest) * (size_t)__builtin_popcountll(row->entries))
        return cx_store_damaged("an actor's row has another number of peaks than of entries", err);
    cx_mmr_edge edge;
    CX_TRY(load_edge(load->home, row, &edge, err));
    cx_status status = hold_in_memory(load->home, row->id, row->name, row->scheme, &actor, err);
    if (cx_failed(status)) {
        cx_vec_done(&edge.peaks, load->home->alloc);
        return status;
    }
    actor->edge = edge;
    actor->info.entry_count = row->entries;
    actor->info.snapshot_count = row->snapshots;
    actor->info.live_memories = row->live;
    actor->info.tombstoned = row->dead;
    actor->info.edge_count = row->edges;
    memcpy(actor->trees, row->trees, sizeof actor->trees);
    load->actor = actor;
    return CX_SUCCESS;
}

cx_status cx_home_actor_numbered(cx_home *home, int64_t id, cx_actor **out, cx_err *err)
{
    loading load = {home, NULL};
    *out = numbered_in_memory(home, id);
    if (*out == NULL) {
        CX_TRY(cx_store_scan_actors(&home->store, id, id + 1, load_row, &load, err));
        *out = load.actor;
    }
    (*out)->used = true;
    return CX_SUCCESS;
}

cx_status cx_home_load_actors(cx_home *home, cx_err *err)
{
    uint64_t count = 0;
    cx_actor *self, *roots;
    CX_TRY(cx_store_count_actors(&home->store, &count, err));
    home->actors.count = count;
    if (count == 0)
        return CX_SUCCESS;
    CX_TRY(cx_home_actor_numbered(home, CX_ACTOR_HOME, &self, err));
    home->scheme = self->info.scheme;
    CX_TRY(cx_home_find_actor(home, CX_STR(CX_HOME_ROOT_ACTOR), &roots, err));
    home->actors.home_roots = roots == NULL ? 0 : roots->info.entry_count;
    return CX_SUCCESS;
}

static cx_status find_in_tables(cx_home *home, cx_str name, cx_actor **out, cx_err *err)
{
    cx_arena arena;
    int64_t id = 0;
    bool found = false;
    cx_arena_init(&arena, home->alloc, 0);
    cx_status status = cx_store_find_actor(&home->store, name, &arena, &id, &found, err);
    cx_arena_done(&arena);
    if (cx_failed(status) || !found)
        return status;
    if (id <= CX_ACTOR_HOME || (uint64_t)id >= home->actors.count)
        return cx_store_damaged("an actor's name leads to no actor", err);
    CX_TRY(cx_home_actor_numbered(home, id, out, err));
    return cx_str_eq((*out)->info.name, name)
               ? CX_SUCCESS
               : cx_store_damaged("an actor's name leads to another actor", err);
}

cx_status cx_home_find_actor(cx_home *home, cx_str name, cx_actor **out, cx_err *err)
{
    *out = cx_home_actor_in_memory(home, name);
    if (*out != NULL) {
        (*out)->used = true;
        return CX_SUCCESS;
    }
    /* When all are in memory the tables have no other one. */
    if (name.size == 0 || name.size > CX_ACTOR_SIZE_MAX ||
        home->actors.held.count == home->actors.count)
        return CX_SUCCESS;
    cx_status status = find_in_tables(home, name, out, err);
    if (cx_failed(status))
        *out = NULL;
    return status;
}

cx_status cx_home_need_actor(cx_home *home, cx_str name, cx_actor **out, cx_err *err)
{
    cx_actor *actor = NULL;
    if (home->apply_failed)
        return cx_home_check_alive(home, err);
    if (name.size != 0)
        CX_TRY(cx_home_find_actor(home, name, &actor, err));
    if (actor == NULL)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoActor", CX_NO_OFFSET,
                          "the data directory has no actor \"%.*s\"",
                          (int)(name.size < 80 ? name.size : 80), name.data);
    *out = actor;
    return CX_SUCCESS;
}

/* --- in order --------------------------------------------------------------------------------- */

typedef struct page {
    cx_arena *arena;
    cx_actor_info *infos;
    size_t count;
} page;

static cx_status add_to_page(page *p, const cx_actor_info *info, cx_err *err)
{
    cx_actor_info copy = *info;
    copy.name = cx_arena_copy_str(p->arena, info->name);
    if (copy.name.data == NULL)
        return cx_fail_nomem(err);
    p->infos[p->count++] = copy;
    return CX_SUCCESS;
}

static cx_status add_row_to_page(void *arg, const cx_actor_row *row, cx_err *err)
{
    const cx_actor_info info = {.name = row->name,
                                .scheme = row->scheme,
                                .entry_count = row->entries,
                                .snapshot_count = row->snapshots,
                                .live_memories = row->live,
                                .tombstoned = row->dead,
                                .edge_count = row->edges};
    return add_to_page(arg, &info, err);
}

/* Those in memory are as they are now; the others are in the tables as they are (C2). */
static cx_status fill_page(cx_home *home, int64_t from, int64_t to, page *p, cx_err *err)
{
    for (int64_t id = from; id < to;) {
        const cx_actor *actor = numbered_in_memory(home, id);
        if (actor != NULL) {
            CX_TRY(add_to_page(p, &actor->info, err));
            id++;
            continue;
        }
        int64_t next = id + 1;
        while (next < to && numbered_in_memory(home, next) == NULL)
            next++;
        CX_TRY(cx_store_scan_actors(&home->store, id, next, add_row_to_page, p, err));
        id = next;
    }
    return CX_SUCCESS;
}

cx_status cx_home_actor_page(cx_home *home, uint64_t from, size_t max, cx_arena *arena,
                             const cx_actor_info **out, size_t *out_count, cx_err *err)
{
    const uint64_t end = home->actors.count;
    uint64_t first = from + 1; /* number 0 is the home itself */
    first = first < end ? first : end;
    const uint64_t last = end - first < max ? end : first + max;
    page p = {.arena = arena};
    if (home->apply_failed)
        return cx_home_check_alive(home, err);
    p.infos = CX_ARENA_ARRAY(arena, cx_actor_info, (size_t)(last - first) + 1);
    if (p.infos == NULL)
        return cx_fail_nomem(err);
    CX_TRY(fill_page(home, (int64_t)first, (int64_t)last, &p, err));
    *out = p.infos;
    *out_count = p.count;
    return CX_SUCCESS;
}

/* --- by name ---------------------------------------------------------------------------------- */

typedef struct number_list {
    CX_VEC(int64_t) items;
    const cx_alloc *alloc;
    uint64_t actors;
} number_list;

static cx_status add_number(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    number_list *list = arg;
    uint64_t number = 0;
    (void)key;
    (void)stop;
    for (size_t i = 0; i < value.size && i < sizeof number; i++)
        number = number << 8 | value.data[i];
    if (value.size != sizeof number || number <= CX_ACTOR_HOME || number >= list->actors)
        return cx_store_damaged("an actor's name leads to no actor", err);
    int64_t *slot = cx_vec_push(&list->items, list->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = (int64_t)number;
    return CX_SUCCESS;
}

static int compare_numbers(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* What the other index of names says, so that a lost row is no lost actor. */
static cx_status count_named(cx_store *store, cx_str prefix, uint64_t *out, cx_err *err)
{
    cx_db_statement *statement;
    char end[CX_ACTOR_SIZE_MAX];
    bool row = false;
    memcpy(end, prefix.data, prefix.size);
    CX_ASSERT((uint8_t)end[prefix.size - 1] < 0x7e);
    end[prefix.size - 1]++;
    CX_TRY(cx_db_prepare(store->reading.db, "SELECT count(*) FROM actors WHERE name>=? AND name<?",
                         &statement, err));
    cx_db_bind_text(statement, 1, prefix);
    cx_db_bind_text(statement, 2, cx_str_from(end, prefix.size));
    cx_status status = cx_db_step(statement, &row, err);
    if (!cx_failed(status))
        *out = row ? (uint64_t)cx_db_int(statement, 0) : 0;
    cx_db_finish(statement);
    return status;
}

static cx_status read_numbers(cx_home *home, cx_str prefix, number_list *list, bool *out_agree,
                              cx_err *err)
{
    uint8_t key[sizeof CX_ACTOR_PREFIX - 1 + CX_ACTOR_SIZE_MAX];
    const size_t size = sizeof CX_ACTOR_PREFIX - 1;
    uint64_t expected = 0;
    CX_ASSERT(prefix.size != 0 && prefix.size <= CX_ACTOR_SIZE_MAX);
    if (home->apply_failed)
        return cx_home_check_alive(home, err);
    memcpy(key, CX_ACTOR_PREFIX, size);
    memcpy(key + size, prefix.data, prefix.size);
    CX_TRY(cx_home_flush_wait_locked(home, err));
    list->actors = home->actors.count;
    CX_TRY(cx_store_scan(&home->store, CX_ACTOR_HOME, cx_bytes_from(key, size + prefix.size),
                         (cx_bytes){NULL, 0}, false, add_number, list, err));
    CX_TRY(count_named(&home->store, prefix, &expected, err));
    *out_agree = list->items.count == expected;
    if (list->items.count != 0)
        qsort(list->items.items, list->items.count, sizeof(int64_t), compare_numbers);
    return CX_SUCCESS;
}

cx_status cx_home_actor_numbers(cx_home *home, cx_str prefix, cx_arena *arena, const int64_t **out,
                                size_t *out_count, cx_err *err)
{
    number_list list = {.alloc = home->alloc};
    bool agree = false;
    cx_status status = read_numbers(home, prefix, &list, &agree, err);
    int64_t *numbers = NULL;
    *out = NULL;
    *out_count = 0;
    if (!cx_failed(status) && agree) {
        numbers = CX_ARENA_ARRAY(arena, int64_t, list.items.count + 1);
        if (numbers == NULL)
            status = cx_fail_nomem(err);
    }
    if (!cx_failed(status) && agree) {
        if (list.items.count != 0)
            memcpy(numbers, list.items.items, list.items.count * sizeof *numbers);
        *out = numbers;
        *out_count = list.items.count;
    }
    cx_vec_done(&list.items, home->alloc);
    return status;
}

cx_status cx_home_actors_numbered(cx_home *home, const int64_t *numbers, size_t count,
                                  cx_arena *arena, const cx_actor_info **out, size_t *out_count,
                                  cx_err *err)
{
    page p = {.arena = arena, .infos = CX_ARENA_ARRAY(arena, cx_actor_info, count + 1)};
    if (home->apply_failed)
        return cx_home_check_alive(home, err);
    if (p.infos == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        CX_TRY(fill_page(home, numbers[i], numbers[i] + 1, &p, err));
    *out = p.infos;
    *out_count = p.count;
    return CX_SUCCESS;
}

/* --- changes ---------------------------------------------------------------------------------- */

cx_status cx_home_actor_changes(cx_home *home, cx_actor *actor, cx_err *err)
{
    cx_actors *all = &home->actors;
    if (!actor->dirty) {
        cx_actor **slot = cx_vec_push(&all->changed, home->alloc);
        if (slot == NULL)
            return cx_fail_nomem(err);
        *slot = actor;
        actor->dirty = true;
    }
    actor->home_roots = all->home_roots;
    return CX_SUCCESS;
}

static cx_status save_actor(cx_home *home, const cx_actor *actor, cx_err *err)
{
    const cx_actor_row row = {
        .id = actor->id,
        .name = actor->info.name,
        .scheme = actor->info.scheme,
        .entries = actor->info.entry_count,
        .snapshots = actor->info.snapshot_count,
        .live = actor->info.live_memories,
        .dead = actor->info.tombstoned,
        .edges = actor->info.edge_count,
        .peaks = cx_bytes_from((const uint8_t *)actor->edge.peaks.items,
                               actor->edge.peaks.count * sizeof(cx_digest)),
        .trees = {actor->trees[0], actor->trees[1]},
        .home_roots = actor->home_roots,
    };
    return cx_store_put_actor(&home->store, &row, err);
}

cx_status cx_home_save_actors(cx_home *home, cx_err *err)
{
    cx_actors *all = &home->actors;
    size_t saved = 0;
    cx_status status = CX_SUCCESS;
    home->store.memtable->home_roots = all->home_roots;
    for (; saved < all->changed.count; saved++) {
        cx_actor *actor = all->changed.items[saved];
        status = save_actor(home, actor, err);
        if (cx_failed(status))
            break;
        actor->dirty = false;
        actor->saved_with = all->flushes + 1;
        /* More than 0 there: an earlier attempt had saved it, and then ran out of memory. */
        actor->pending[1] += actor->pending[0];
        actor->pending[0] = 0;
    }
    all->changed.count -= saved;
    if (all->changed.count != 0)
        memmove(all->changed.items, all->changed.items + saved,
                all->changed.count * sizeof *all->changed.items);
    return status;
}

void cx_home_actors_flushed(cx_home *home, const cx_memtable *flushed)
{
    for (size_t i = 0; i < flushed->actors.count; i++) {
        const cx_actor_row *row = &flushed->actors.items[i];
        cx_actor *actor = numbered_in_memory(home, row->id); /* C2 */
        memcpy(actor->trees, row->trees_after, sizeof actor->trees);
        actor->pending[1] = 0;
    }
    home->actors.flushes++;
}

static cx_status take_trees(void *arg, const cx_actor_row *row, cx_err *err)
{
    cx_actor *actor = arg;
    (void)err;
    memcpy(actor->trees, row->trees, sizeof actor->trees);
    return CX_SUCCESS;
}

cx_status cx_home_reload_trees(cx_home *home, cx_err *err)
{
    const cx_actors *all = &home->actors;
    for (size_t i = 0; i < all->held.count; i++) {
        cx_actor *actor = all->held.items[i];
        if ((uint64_t)actor->id < home->store.counters.actors) /* flushed */
            CX_TRY(cx_store_scan_actors(&home->store, actor->id, actor->id + 1, take_trees, actor,
                                        err));
    }
    home->store.later.built = false;
    return CX_SUCCESS;
}

/* --- retained snapshots ----------------------------------------------------------------------- */

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
        CX_TRY(cx_home_merge_runs(home, err));
        CX_TRY(cx_store_scan(&home->store, actor->id, cx_str_bytes(CX_STR("snap/")),
                             (cx_bytes){NULL, 0}, false, load_retained_snapshot, &scan, err));
    }
    actor->retained_known = true;
    return CX_SUCCESS;
}
