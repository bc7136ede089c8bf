/*
 * store_trees.c - the trees of states: what a memtable changes of them is written with its rows.
 *
 * R1  A tree's rows, and its root in the actor's row, are true at the position of the tables.
 * R2  Changes before a snapshot and after it are applied one after the other, so that what the
 *     snapshot saw is kept (pages/pages.h).
 */
#include <stdlib.h>

#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/past/history.h"
#include "ledger/store_internal.h"

/* --- snapshots -------------------------------------------------------------------------------- */

static cx_status write_past(cx_store *store, int64_t actor, uint64_t snapshot,
                            const cx_pages_anchor trees[2], cx_err *err)
{
    cx_db_statement *statement = store->writing.put_past;
    cx_db_bind_int(statement, 1, actor);
    cx_db_bind_int(statement, 2, (int64_t)snapshot);
    cx_db_bind_int(statement, 3, trees[CX_TREE_MEMORIES].height);
    cx_db_bind_int(statement, 4, trees[CX_TREE_EDGES].height);
    return cx_db_execute(statement, err);
}

static cx_status remove_past(cx_store *store, int64_t actor, uint64_t snapshot, cx_err *err)
{
    cx_db_statement *statement = store->writing.remove_past;
    cx_db_bind_int(statement, 1, actor);
    cx_db_bind_int(statement, 2, (int64_t)snapshot);
    return cx_db_execute(statement, err);
}

cx_status cx_store_write_snapshot(cx_store *store, const cx_snapshot_row *row,
                                  const cx_pages_anchor trees[2], cx_err *err)
{
    if (!row->dropped)
        return write_past(store, row->actor, row->snapshot, trees, err);
    CX_TRY(cx_history_want_sweep(store, row->actor, err));
    return remove_past(store, row->actor, row->snapshot, err);
}

cx_status cx_store_past_heights(cx_store *store, int64_t actor, uint64_t snapshot, uint8_t out[2],
                                cx_err *err)
{
    cx_db_statement *statement = store->reading.get_past;
    bool there = false;
    cx_db_bind_int(statement, 1, actor);
    cx_db_bind_int(statement, 2, (int64_t)snapshot);
    CX_TRY(cx_db_step(statement, &there, err));
    for (int i = 0; there && i < 2; i++)
        out[i] = (uint8_t)cx_db_int(statement, i);
    cx_db_reset(statement);
    return there ? CX_SUCCESS
                 : cx_store_damaged("what was kept of a snapshot's trees is missing", err);
}

/* --- changes ---------------------------------------------------------------------------------- */

typedef struct tree_flush {
    cx_store *store;
    const cx_memtable *memtable;
    const cx_state_row **states; /* by tree, then as they came */
    size_t state_count, next;
    cx_actor_row **actors; /* by number */
    size_t actor_count;
    cx_smt_pair *pairs; /* as many as there are states */
} tree_flush;

/* The changes of one tree that are left. */
typedef struct tree_changes {
    const cx_state_row **at, **end;
} tree_changes;

static int compare_states(const void *a, const void *b)
{
    const cx_state_row *x = *(const cx_state_row *const *)a, *y = *(const cx_state_row *const *)b;
    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    return x < y ? -1 : x > y; /* of one array */
}

static int compare_actors(const void *a, const void *b)
{
    const cx_actor_row *x = *(cx_actor_row *const *)a, *y = *(cx_actor_row *const *)b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x < y ? -1 : x > y; /* of one array: the later one is the newer */
}

/* The next changes that belong to one batch. */
static cx_status apply_batch(tree_flush *f, tree_changes *changes, cx_pages_anchor *anchor,
                             cx_err *err)
{
    const cx_state_row *first = *changes->at;
    const bool retained = first->newest != CX_NO_SNAPSHOT;
    const cx_pages_moment moment = {.next_snapshot = first->next_snapshot,
                                    .has_newest = retained,
                                    .newest = retained ? first->newest : 0};
    size_t count = 0;
    while (changes->at < changes->end && (*changes->at)->next_snapshot == first->next_snapshot &&
           (*changes->at)->newest == first->newest)
        f->pairs[count++] = (*changes->at++)->pair;
    return cx_pages_put(f->store->writing.pages, anchor, f->pairs, count, &moment, err);
}

/* R2: what came before the snapshot; UINT64_MAX = all. */
static cx_status apply_until(tree_flush *f, tree_changes *changes, cx_pages_anchor *anchor,
                             uint64_t snapshot, cx_err *err)
{
    while (changes->at < changes->end && (*changes->at)->next_snapshot <= snapshot)
        CX_TRY(apply_batch(f, changes, anchor, err));
    return CX_SUCCESS;
}

static cx_status apply_snapshot(tree_flush *f, const cx_snapshot_row *snapshot,
                                tree_changes changes[2], cx_pages_anchor trees[2], cx_err *err)
{
    for (unsigned which = 0; which < 2 && !snapshot->dropped; which++)
        CX_TRY(apply_until(f, &changes[which], &trees[which], snapshot->snapshot, err));
    return cx_store_write_snapshot(f->store, snapshot, trees, err);
}

static tree_changes take_changes(tree_flush *f, uint64_t tree)
{
    tree_changes changes = {f->states + f->next, f->states + f->next};
    while (f->next < f->state_count && f->states[f->next]->tree == tree)
        f->next++;
    changes.end = f->states + f->next;
    return changes;
}

static cx_status write_actor(tree_flush *f, cx_actor_row *row, cx_err *err)
{
    tree_changes changes[2];
    for (unsigned which = 0; which < 2; which++)
        changes[which] = take_changes(f, cx_tree_of(row->id, which));
    memcpy(row->trees_after, row->trees, sizeof row->trees);
    for (size_t i = 0; i < f->memtable->snapshots.count; i++)
        if (f->memtable->snapshots.items[i].actor == row->id)
            CX_TRY(apply_snapshot(f, &f->memtable->snapshots.items[i], changes, row->trees_after,
                                  err));
    for (unsigned which = 0; which < 2; which++)
        CX_TRY(apply_until(f, &changes[which], &row->trees_after[which], UINT64_MAX, err));
    return CX_SUCCESS;
}

static cx_status write_all(tree_flush *f, cx_err *err)
{
    const cx_memtable *memtable = f->memtable;
    for (size_t i = 0; i < f->state_count; i++)
        f->states[i] = &memtable->states.items[i];
    for (size_t i = 0; i < f->actor_count; i++)
        f->actors[i] = &memtable->actors.items[i];
    qsort(f->states, f->state_count, sizeof *f->states, compare_states);
    qsort(f->actors, f->actor_count, sizeof *f->actors, compare_actors);
    for (size_t i = 0; i < f->actor_count; i++) {
        cx_actor_row *row = f->actors[i];
        /* An actor that was saved again after a failure: the first row took its changes. */
        if (i > 0 && f->actors[i - 1]->id == row->id)
            memcpy(row->trees_after, f->actors[i - 1]->trees_after, sizeof row->trees_after);
        else
            CX_TRY(write_actor(f, row, err));
    }
    CX_ASSERT(f->next == f->state_count); /* what changed has an actor's row */
    return cx_history_continue_sweep(f->store, err);
}

cx_status cx_store_write_states(cx_store *store, const cx_memtable *memtable, cx_err *err)
{
    tree_flush f = {.store = store,
                    .memtable = memtable,
                    .state_count = memtable->states.count,
                    .actor_count = memtable->actors.count};
    const size_t states_size = (f.state_count + 1) * sizeof *f.states;
    const size_t pairs_size = (f.state_count + 1) * sizeof *f.pairs;
    const size_t actors_size = (f.actor_count + 1) * sizeof *f.actors;
    f.states = cx_alloc_new(store->alloc, states_size);
    f.pairs = cx_alloc_new(store->alloc, pairs_size);
    f.actors = cx_alloc_new(store->alloc, actors_size);
    cx_status status = f.states == NULL || f.pairs == NULL || f.actors == NULL ? cx_fail_nomem(err)
                                                                               : write_all(&f, err);
    cx_alloc_free(store->alloc, f.states, states_size);
    cx_alloc_free(store->alloc, f.pairs, pairs_size);
    cx_alloc_free(store->alloc, f.actors, actors_size);
    return status;
}
