/*
 * home_leaves.c - the home root of this moment from what has changed since the last one, and a leaf
 * with its path (ledger.md §15).
 */
#include "base/api.h"
#include "ledger/root/home_tree.h"
#include "ledger/snapshot.h"

static cx_status add_leaf(cx_home_leaf_list *list, uint64_t position, cx_bytes leaf, cx_err *err)
{
    cx_str copy = cx_arena_copy_str(list->arena, cx_bytes_str(leaf));
    cx_home_leaf_item *slot =
        copy.data == NULL ? NULL : cx_vec_push(&list->items, cx_alloc_default());
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = (cx_home_leaf_item){position, cx_str_bytes(copy)};
    return CX_SUCCESS;
}

typedef struct computing {
    cx_home *home;
    const cx_home_root_entry *last; /* NULL = none is recorded */
    int64_t roots_actor;            /* number of home:root; INT64_MAX = not there */
    cx_home_leaf_list *list;
    cx_home_tree *tree;
    cx_buf bytes;   /* of one leaf */
    cx_arena arena; /* of one recorded leaf */
    CX_VEC(int64_t) numbers;
    CX_VEC(cx_home_tree_change) changes;
    cx_home_root root;
} computing;

static uint64_t actors_before(const computing *c)
{
    return c->last == NULL ? 0 : c->last->root.actors;
}

static cx_status fail_tables(const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "%s; run 'cortex tables rebuild' (the log is the truth, nothing is lost)",
                      what);
}

/* *out = NULL when it is not recorded. */
static cx_status get_recorded(computing *c, uint64_t position, cx_bytes *out, cx_err *err)
{
    uint8_t key[CX_HOME_LEAF_KEY_SIZE];
    bool found = false;
    *out = (cx_bytes){NULL, 0};
    if (c->roots_actor == INT64_MAX)
        return CX_SUCCESS;
    return cx_store_get(&c->home->store, c->roots_actor, cx_home_leaf_key(position, key), &c->arena,
                        out, &found, NULL, err);
}

/* --- all leaves ------------------------------------------------------------------------------- */

static cx_status see_leaf(void *arg, uint64_t position, const cx_home_leaf *leaf, cx_err *err)
{
    computing *c = arg;
    cx_arena_mark mark = cx_arena_mark_now(&c->arena);
    cx_bytes before;
    cx_buf_clear(&c->bytes);
    cx_home_leaf_encode(leaf, &c->bytes);
    CX_TRY(cx_buf_check(&c->bytes, err));
    CX_TRY(get_recorded(c, position, &before, err));
    const bool same = cx_str_eq(cx_bytes_str(before), cx_buf_str(&c->bytes));
    cx_arena_reset(&c->arena, mark);
    return same ? CX_SUCCESS : add_leaf(c->list, position, cx_buf_bytes(&c->bytes), err);
}

static cx_status compute_all(computing *c, cx_err *err)
{
    const cx_home_leaf_visit visit = {see_leaf, c};
    c->list->items.count = 0;
    return cx_home_leaves_walk(c->home, &visit, &c->root, err);
}

/* --- what has changed (home_tree.h) ----------------------------------------------------------- */

static cx_status add_number(void *arg, int64_t actor, cx_err *err)
{
    computing *c = arg;
    if (actor == CX_ACTOR_HOME || actor == c->roots_actor)
        return CX_SUCCESS;
    if (actor < 0 || (uint64_t)actor >= c->home->actors.count)
        return fail_tables("an actor that has changed does not exist", err);
    int64_t *slot = cx_vec_push(&c->numbers, c->home->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = actor;
    return CX_SUCCESS;
}

/* T2, and that the recorded leaf is the one the tree has; *out_size: entries that it covers. */
static cx_status check_recorded(computing *c, uint64_t position, cx_str actor, cx_bytes before,
                                uint64_t *out_size, cx_err *err)
{
    cx_digest hash;
    cx_home_leaf leaf;
    CX_TRY(cx_home_tree_leaf(c->tree, position, &hash, err));
    const cx_digest found = cx_home_leaf_hash(before);
    if (!cx_digest_eq(&hash, &found) || cx_failed(cx_home_leaf_decode(before, &leaf, NULL)) ||
        !cx_str_eq(leaf.actor, actor))
        return fail_tables("a recorded leaf of the home root is damaged", err);
    *out_size = leaf.size;
    return CX_SUCCESS;
}

static cx_status note_change(computing *c, uint64_t position, cx_err *err)
{
    cx_home_tree_change *slot = cx_vec_push(&c->changes, c->home->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = (cx_home_tree_change){position, cx_home_leaf_hash(cx_buf_bytes(&c->bytes))};
    return add_leaf(c->list, position, cx_buf_bytes(&c->bytes), err);
}

/* The leaf of an actor that has changed, against the one that is recorded. */
static cx_status add_changed(computing *c, int64_t number, cx_err *err)
{
    const uint64_t position = cx_home_leaf_position(number, c->roots_actor);
    cx_bytes before = {NULL, 0};
    uint64_t size_before = 0;
    cx_actor *actor;
    cx_roots roots;
    CX_TRY(cx_home_actor_numbered(c->home, number, &actor, err));
    CX_TRY(cx_actor_roots(c->home, actor, &roots, err));
    const cx_home_leaf leaf = {.actor = actor->info.name,
                               .scheme = actor->info.scheme,
                               .size = actor->info.entry_count,
                               .overall = roots.overall};
    cx_buf_clear(&c->bytes);
    cx_home_leaf_encode(&leaf, &c->bytes);
    CX_TRY(cx_buf_check(&c->bytes, err));
    if (position < actors_before(c)) {
        CX_TRY(get_recorded(c, position, &before, err));
        CX_TRY(check_recorded(c, position, leaf.actor, before, &size_before, err));
    } else if (position != c->root.actors) {
        return fail_tables("a new actor is not among those that have changed", err);
    } else {
        c->root.actors++;
    }
    c->root.entries += leaf.size - size_before;
    return cx_str_eq(cx_bytes_str(before), cx_buf_str(&c->bytes)) ? CX_SUCCESS
                                                                  : note_change(c, position, err);
}

/* T3: had an actor been left out, the sums would differ. */
static cx_status check_sums(const computing *c, uint64_t roots_entries, cx_err *err)
{
    const cx_home *home = c->home;
    const uint64_t without = c->roots_actor == INT64_MAX ? 1 : 2;
    cx_actor *self;
    CX_TRY(cx_home_actor_numbered(c->home, CX_ACTOR_HOME, &self, err));
    const uint64_t entries = home->store.counters.entries - roots_entries - self->info.entry_count;
    return c->root.actors + without == home->actors.count && c->root.entries == entries
               ? CX_SUCCESS
               : fail_tables("the actors that have changed are not all there", err);
}

static cx_status compute_changed(computing *c, uint64_t roots_entries, cx_err *err)
{
    cx_home *home = c->home;
    CX_TRY(cx_home_tree_open(home, c->roots_actor, c->last == NULL ? NULL : &c->last->root,
                             &c->tree, err));
    CX_TRY(cx_store_scan_changed(&home->store, home->actors.home_roots, add_number, c, err));
    c->root = (cx_home_root){.actors = actors_before(c),
                             .entries = c->last == NULL ? 0 : c->last->root.entries};
    for (size_t i = 0; i < c->numbers.count; i++) {
        cx_arena_mark mark = cx_arena_mark_now(&c->arena);
        CX_TRY(add_changed(c, c->numbers.items[i], err));
        cx_arena_reset(&c->arena, mark);
    }
    CX_TRY(check_sums(c, roots_entries, err));
    return cx_home_tree_root_with(c->tree, c->changes.items, c->changes.count, c->root.actors,
                                  &c->root.root, err);
}

/* Rows that do not lead to the last home root, or do not add up, are not needed: all leaves give
 * the same root. */
static cx_status compute_locked(computing *c, cx_err *err)
{
    cx_actor *roots = NULL;
    cx_err reason = {0};
    CX_TRY(cx_home_flush_wait_locked(c->home, err));
    CX_TRY(cx_home_find_actor(c->home, CX_STR(CX_HOME_ROOT_ACTOR), &roots, err));
    c->roots_actor = roots == NULL ? INT64_MAX : roots->id;
    const uint64_t entries = roots == NULL ? 0 : roots->info.entry_count;
    cx_status status = (entries != 0) == (c->last != NULL)
                           ? compute_changed(c, entries, &reason)
                           : fail_tables("the last home root cannot be read", &reason);
    if (!cx_failed(status))
        return CX_SUCCESS;
    if (status.code == CX_E_FORMAT)
        return compute_all(c, err);
    if (err != NULL)
        *err = reason;
    return status;
}

cx_status cx_home_root_compute(cx_home *home, const cx_home_root_entry *last,
                               cx_home_leaf_list *list, cx_home_root *out, cx_err *err)
{
    computing c = {.home = home, .last = last, .list = list};
    cx_buf_init(&c.bytes, home->alloc);
    cx_arena_init(&c.arena, home->alloc, 0);
    cx_lock_enter(&home->lock);
    cx_status status = compute_locked(&c, err);
    cx_home_tree_close(c.tree);
    cx_lock_leave(&home->lock);
    cx_buf_done(&c.bytes);
    cx_arena_done(&c.arena);
    cx_vec_done(&c.numbers, home->alloc);
    cx_vec_done(&c.changes, home->alloc);
    if (!cx_failed(status))
        *out = c.root;
    return status;
}

/* --- one leaf --------------------------------------------------------------------------------- */

typedef struct finding {
    cx_str actor;
    cx_arena *arena;
    cx_home_proof *out;
} finding;

static cx_status fail_no_leaf(cx_str actor, cx_err *err)
{
    return cx_fail_at(err, CX_E_NOT_FOUND, "NoActor", CX_NO_OFFSET,
                      "the actor \"%.*s\" is not in the home root recorded last; record a newer "
                      "one with 'cortex checkpoint --all'",
                      (int)(actor.size < 80 ? actor.size : 80), actor.data);
}

/* The leaf, which the tree has there, and its path. */
static cx_status find_at(const finding *f, computing *c, uint64_t position, cx_err *err)
{
    cx_bytes recorded;
    uint64_t size;
    cx_mmr_path path;
    CX_TRY(get_recorded(c, position, &recorded, err));
    CX_TRY(check_recorded(c, position, f->actor, recorded, &size, err));
    CX_TRY(cx_home_tree_inclusion(c->tree, position, &path, err));
    cx_str leaf = cx_arena_copy_str(f->arena, cx_bytes_str(recorded));
    cx_digest *hashes = CX_ARENA_ARRAY(f->arena, cx_digest, path.count + 1);
    if (leaf.data == NULL || hashes == NULL)
        return cx_fail_nomem(err);
    if (path.count != 0)
        memcpy(hashes, path.hashes, path.count * sizeof *hashes);
    *f->out = (cx_home_proof){
        .leaf = cx_str_bytes(leaf), .index = position, .path = hashes, .path_count = path.count};
    return CX_SUCCESS;
}

static cx_status find_locked(const finding *f, computing *c, cx_err *err)
{
    cx_home *home = c->home;
    cx_actor *actor = NULL, *roots = NULL;
    CX_TRY(cx_home_find_actor(home, CX_STR(CX_HOME_ROOT_ACTOR), &roots, err));
    CX_ASSERT(roots != NULL); /* it has the last home root */
    c->roots_actor = roots->id;
    CX_TRY(cx_home_find_actor(home, f->actor, &actor, err));
    if (actor == NULL || actor->id == c->roots_actor ||
        cx_home_leaf_position(actor->id, c->roots_actor) >= actors_before(c))
        return fail_no_leaf(f->actor, err);
    const uint64_t position = cx_home_leaf_position(actor->id, c->roots_actor);
    CX_TRY(cx_home_tree_open(home, c->roots_actor, &c->last->root, &c->tree, err));
    return find_at(f, c, position, err);
}

cx_status cx_home_root_find_leaf(cx_home *home, const cx_home_root_entry *last, cx_str actor,
                                 cx_arena *arena, cx_home_proof *out, cx_err *err)
{
    const finding f = {actor, arena, out};
    computing c = {.home = home, .last = last};
    cx_arena_init(&c.arena, home->alloc, 0);
    cx_lock_enter(&home->lock);
    cx_status status = find_locked(&f, &c, err);
    cx_home_tree_close(c.tree);
    cx_lock_leave(&home->lock);
    cx_arena_done(&c.arena);
    return status;
}
