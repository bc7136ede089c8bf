/*
 * store_later.c - trees that are built at once, while tables are derived from the first commit on.
 *
 * A change of a tree costs the pages that it touches, read and written.  While no root is asked
 * for, and no snapshot must see what was there between, a flush only sorts its changes and stores
 * them as a *run*; in the end the runs are merged, and each tree is built from below in one pass
 * (cx_pages_build), which gives the same rows (P2 in pages/pages.h).
 *
 *     state_run(id, changes)  id: run * 2^20 + part; changes of 72 bytes, ascending by tree and
 *                             key, each key once in a run: tree (u64be), key, value
 *
 * L1  Runs are written in the transaction of the rows that they belong to; meta `trees_later` says
 *     that there are some, so that an interrupted rebuild continues.  Both are gone when the trees
 *     are there.
 * L2  Of a key's changes that of the last run stays.
 * L3  While there are runs no tree has a row, no row of an actor names a root, and no snapshot was
 *     made.
 */
#include <stdlib.h>

#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/store_internal.h"

enum {
    CHANGE_SIZE = 8 + 32 + 32,
    PART_CHANGES = 256,
    PART_BITS = 20,
    RUNS_MAX = 1024, /* 19 MB of parts while they are merged; then the trees are built */
};
#define LATER_NAME "trees_later"

/* --- runs ------------------------------------------------------------------------------------- */

static cx_status prepare_runs(cx_store *store, cx_err *err)
{
    cx_db *db = store->writing.db;
    CX_TRY(cx_db_prepare(db, "INSERT INTO state_run VALUES(?,?)", &store->later.put, err));
    return cx_db_prepare(db, "SELECT changes FROM state_run WHERE id=?", &store->later.get, err);
}

cx_status cx_store_defer_trees(cx_store *store, cx_err *err)
{
    CX_ASSERT(store->shared && store->flushed.commit == 0);
    CX_TRY(cx_db_run(store->writing.db,
                     "DROP TABLE IF EXISTS state_run;"
                     "CREATE TABLE state_run(id INTEGER PRIMARY KEY, changes BLOB NOT NULL);"
                     "INSERT OR REPLACE INTO meta VALUES('" LATER_NAME "', 1)",
                     err));
    CX_TRY(prepare_runs(store, err));
    store->later.runs = 0;
    store->later.on = true;
    return CX_SUCCESS;
}

cx_status cx_store_resume_deferred(cx_store *store, cx_err *err)
{
    cx_db_statement *statement;
    bool row = false;
    CX_ASSERT(store->shared);
    CX_TRY(cx_db_prepare(store->writing.db, "SELECT 1 FROM meta WHERE name='" LATER_NAME "'",
                         &statement, err));
    cx_status status = cx_db_step(statement, &row, err);
    cx_db_finish(statement);
    if (cx_failed(status) || !row)
        return status;
    CX_TRY(cx_db_prepare(store->writing.db, "SELECT coalesce(max(id), -1) FROM state_run",
                         &statement, err));
    status = cx_db_step(statement, &row, err);
    if (!cx_failed(status))
        store->later.runs = (uint64_t)((cx_db_int(statement, 0) + (1 << PART_BITS)) >> PART_BITS);
    cx_db_finish(statement);
    CX_TRY(status);
    CX_TRY(prepare_runs(store, err));
    store->later.on = true;
    return CX_SUCCESS;
}

void cx_store_end_deferred(cx_store *store)
{
    cx_db_finish(store->later.put);
    cx_db_finish(store->later.get);
    store->later = (cx_store_later){.on = false};
}

static int compare_changes(const void *a, const void *b)
{
    const cx_state_row *x = *(const cx_state_row *const *)a, *y = *(const cx_state_row *const *)b;
    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    const int order = memcmp(x->pair.key.bytes, y->pair.key.bytes, sizeof x->pair.key.bytes);
    return order != 0 ? order : (x > y) - (x < y); /* of one array */
}

static bool same_key(const cx_state_row *a, const cx_state_row *b)
{
    return a->tree == b->tree && cx_digest_eq(&a->pair.key, &b->pair.key);
}

static cx_status write_part(cx_store *store, uint64_t part, cx_bytes changes, cx_err *err)
{
    if (part >> PART_BITS != 0)
        return cx_fail(err, CX_E_LIMIT, "a flush changes too many rows of trees");
    cx_db_bind_int(store->later.put, 1, (int64_t)(store->later.runs << PART_BITS | part));
    cx_db_bind_bytes(store->later.put, 2, changes);
    return cx_db_execute(store->later.put, err);
}

static cx_status write_run(cx_store *store, const cx_state_row **sorted, size_t count, cx_err *err)
{
    uint8_t changes[PART_CHANGES * CHANGE_SIZE];
    cx_writer writer = cx_writer_over(changes, sizeof changes);
    uint64_t part = 0;
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count && same_key(sorted[i], sorted[i + 1]))
            continue;
        cx_writer_uint(&writer, sorted[i]->tree, 8);
        cx_writer_put(&writer, sorted[i]->pair.key.bytes, 32);
        cx_writer_put(&writer, sorted[i]->pair.value.bytes, 32);
        if (i + 1 < count && writer.offset < sizeof changes)
            continue;
        CX_TRY(write_part(store, part++, cx_bytes_from(changes, writer.offset), err));
        writer = cx_writer_over(changes, sizeof changes);
    }
    store->later.runs++;
    return CX_SUCCESS;
}

cx_status cx_store_write_later(cx_store *store, const cx_memtable *memtable, cx_err *err)
{
    const size_t count = memtable->states.count, size = (count + 1) * sizeof(cx_state_row *);
    CX_ASSERT(store->later.on && memtable->snapshots.count == 0); /* L3 */
    for (size_t i = 0; i < memtable->actors.count; i++) {
        cx_actor_row *actor = &memtable->actors.items[i];
        memcpy(actor->trees_after, actor->trees, sizeof actor->trees);
    }
    if (count == 0)
        return CX_SUCCESS;
    const cx_state_row **sorted = cx_alloc_new(store->alloc, size);
    if (sorted == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &memtable->states.items[i];
    qsort(sorted, count, sizeof *sorted, compare_changes);
    cx_status status = write_run(store, sorted, count, err);
    cx_alloc_free(store->alloc, sorted, size);
    return status;
}

bool cx_store_deferred_is_full(const cx_store *store)
{
    return store->later.on && store->later.runs >= RUNS_MAX;
}

/* --- merging ---------------------------------------------------------------------------------- */

typedef struct run_reader {
    uint64_t next_part; /* id of the row after this one */
    size_t size, at;    /* of `changes`, in bytes */
    uint64_t tree;      /* of the change at `at`; UINT64_MAX = none is left */
    uint8_t changes[PART_CHANGES * CHANGE_SIZE];
} run_reader;

typedef struct merge {
    cx_store *store;
    run_reader *runs;
    uint32_t *heap; /* numbers of runs, the first change of all in front */
    size_t count;   /* of runs that are not at their end */
    uint64_t tree;  /* that is built */
} merge;

static cx_status read_part(merge *m, run_reader *run, cx_err *err)
{
    cx_db_statement *get = m->store->later.get;
    bool there = false;
    cx_status status = CX_SUCCESS;
    cx_db_bind_int(get, 1, (int64_t)run->next_part++);
    CX_TRY(cx_db_step(get, &there, err));
    const cx_bytes changes = there ? cx_db_bytes(get, 0) : (cx_bytes){NULL, 0};
    run->size = run->at = 0;
    if (there && (changes.size == 0 || changes.size > sizeof run->changes ||
                  changes.size % CHANGE_SIZE != 0))
        status = cx_store_damaged("changes of trees that wait are damaged", err);
    else if (there)
        memcpy(run->changes, changes.data, run->size = changes.size);
    cx_db_reset(get);
    return status;
}

static cx_status look_at_next(merge *m, run_reader *run, cx_err *err)
{
    if (run->at == run->size)
        CX_TRY(read_part(m, run, err));
    run->tree = UINT64_MAX;
    if (run->size == 0)
        return CX_SUCCESS;
    cx_reader reader = cx_reader_over(cx_bytes_from(run->changes + run->at, 8));
    run->tree = cx_reader_u64(&reader);
    return CX_SUCCESS;
}

static const uint8_t *key_at(const run_reader *run)
{
    return run->changes + run->at + 8;
}

static int compare_runs(const merge *m, uint32_t a, uint32_t b)
{
    const run_reader *x = &m->runs[a], *y = &m->runs[b];
    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    const int order = memcmp(key_at(x), key_at(y), 32);
    return order != 0 ? order : a < b ? -1 : 1;
}

static void sift_down(merge *m, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < m->count; child++)
            if (compare_runs(m, m->heap[child], m->heap[least]) < 0)
                least = child;
        if (least == at)
            return;
        const uint32_t number = m->heap[at];
        m->heap[at] = m->heap[least];
        m->heap[least] = number;
        at = least;
    }
}

static cx_status begin_merge(merge *m, size_t runs, cx_err *err)
{
    for (size_t i = 0; i < runs; i++) {
        m->runs[i].next_part = (uint64_t)i << PART_BITS;
        m->runs[i].size = m->runs[i].at = 0;
        CX_TRY(look_at_next(m, &m->runs[i], err));
        if (m->runs[i].tree != UINT64_MAX)
            m->heap[m->count++] = (uint32_t)i;
    }
    for (size_t at = m->count / 2; at-- > 0;)
        sift_down(m, at);
    return CX_SUCCESS;
}

/* The tree of the first change; UINT64_MAX when none is left. */
static uint64_t first_tree(const merge *m)
{
    return m->count == 0 ? UINT64_MAX : m->runs[m->heap[0]].tree;
}

static cx_status take_first(merge *m, cx_smt_pair *out, cx_err *err)
{
    run_reader *run = &m->runs[m->heap[0]];
    memcpy(out->key.bytes, key_at(run), 32);
    memcpy(out->value.bytes, key_at(run) + 32, 32);
    run->at += CHANGE_SIZE;
    CX_TRY(look_at_next(m, run, err));
    if (run->tree == UINT64_MAX)
        m->heap[0] = m->heap[--m->count];
    sift_down(m, 0);
    return CX_SUCCESS;
}

/* cx_pages_next.  Equal keys come in the order of their runs: the last one stays (L2). */
static cx_status next_pair(void *arg, cx_smt_pair *out, bool *out_more, cx_err *err)
{
    merge *m = arg;
    *out_more = first_tree(m) == m->tree;
    if (!*out_more)
        return CX_SUCCESS;
    do
        CX_TRY(take_first(m, out, err));
    while (first_tree(m) == m->tree &&
           memcmp(key_at(&m->runs[m->heap[0]]), out->key.bytes, 32) == 0);
    return CX_SUCCESS;
}

/* --- building --------------------------------------------------------------------------------- */

typedef struct actor_copy {
    cx_arena *arena;
    cx_actor_row row;
} actor_copy;

static cx_status copy_actor(void *arg, const cx_actor_row *row, cx_err *err)
{
    actor_copy *copy = arg;
    copy->row = *row;
    copy->row.name = cx_arena_copy_str(copy->arena, row->name);
    copy->row.peaks = cx_str_bytes(cx_arena_copy_str(copy->arena, cx_bytes_str(row->peaks)));
    return copy->row.name.data == NULL || copy->row.peaks.data == NULL ? cx_fail_nomem(err)
                                                                       : CX_SUCCESS;
}

static cx_status build_actor(merge *m, cx_arena *arena, cx_err *err)
{
    cx_store *store = m->store;
    const cx_arena_mark mark = cx_arena_mark_now(arena);
    const int64_t actor = (int64_t)(first_tree(m) / 2);
    actor_copy copy = {.arena = arena};
    CX_TRY(cx_store_scan_actors(store, actor, actor + 1, copy_actor, &copy, err));
    for (unsigned which = 0; which < 2; which++) {
        m->tree = cx_tree_of(actor, which);
        if (first_tree(m) == m->tree)
            CX_TRY(
                cx_pages_build(store->writing.pages, &copy.row.trees[which], next_pair, m, 0, err));
    }
    CX_TRY(cx_store_write_actor(store, &copy.row, err));
    cx_arena_reset(arena, mark);
    return CX_SUCCESS;
}

static cx_status build_all(merge *m, size_t runs, cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, m->store->alloc, 0);
    cx_status status = begin_merge(m, runs, err);
    while (!cx_failed(status) && m->count != 0)
        status = build_actor(m, &arena, err);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_store_build_deferred(cx_store *store, cx_err *err)
{
    const size_t runs = (size_t)store->later.runs;
    CX_ASSERT(store->later.on);
    merge m = {.store = store,
               .runs = cx_alloc_new(store->alloc, (runs + 1) * sizeof(run_reader)),
               .heap = cx_alloc_new(store->alloc, (runs + 1) * sizeof(uint32_t))};
    cx_status status =
        m.runs == NULL || m.heap == NULL ? cx_fail_nomem(err) : build_all(&m, runs, err);
    cx_alloc_free(store->alloc, m.runs, (runs + 1) * sizeof(run_reader));
    cx_alloc_free(store->alloc, m.heap, (runs + 1) * sizeof(uint32_t));
    CX_TRY(status);
    cx_store_end_deferred(store);
    store->later.built = true;
    return cx_db_run(store->writing.db,
                     "DROP TABLE state_run; DELETE FROM meta WHERE name='" LATER_NAME "'", err);
}
