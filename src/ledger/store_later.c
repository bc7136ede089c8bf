/*
 * store_later.c - changes of trees that wait, while tables are derived from the first commit on.
 *
 * A change of a tree costs the pages that it touches, read and written, and the keys are hashes: a
 * flush touches nearly all pages.  While no root is asked for, a flush only sorts its changes and
 * stores them as a *run*.  In the end the runs are merged.  What came before the first snapshot of
 * an actor builds its trees from below in one pass (cx_pages_build); what came between two
 * snapshots is one batch (cx_pages_put_sorted), so that each page is touched once for all of it.
 * The rows are those that a flush after the other leads to (P2 in pages/pages.h).
 *
 *     state_run(id, changes)  id: run * 2^20 + part; changes of 88 bytes, ascending by their first
 *                             56 bytes, which are different in a run:
 *                               0  u64be actor
 *                               8  u64be number that the actor's next snapshot gets
 *                              16  u64be order: the newest retained snapshot plus 1, or 0, each of
 *                                  its 63 bits turned over; then one bit, 1 in the tree of edges
 *                              24  key, value
 *
 *     state_snapshot(actor, id, snapshot, dropped, roots, found)
 *                             snapshots that were made and dropped, in the order of id; the roots
 *                             that its manifest names, or nothing; those of the trees, when they
 *                             are others
 *
 * L1  Both are written in the transaction of the rows that they belong to; meta `trees_later` says
 *     that changes may wait, so that an interrupted rebuild continues.  What is in the trees is in
 *     neither of them, but for a row with `found`.
 * L2  Of a key's changes in a batch that of the last run stays.
 * L3  Trees, the roots in actors' rows, table past and what is swept are those of the moment before
 *     the first change that waits.  Nothing is swept: snapshots that wait would not be seen.
 */
#include <stdlib.h>

#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/past/history.h"
#include "ledger/store_internal.h"

enum {
    MOMENT_SIZE = 8 + 8 + 8,
    NAME_SIZE = MOMENT_SIZE + 32,
    CHANGE_SIZE = NAME_SIZE + 32,
    PART_CHANGES = 256,
    PART_BITS = 20,
    RUNS_MAX = 1024, /* 23 MB of parts while they are merged */
};
#define LATER_NAME "trees_later"

/* --- runs ------------------------------------------------------------------------------------- */

static cx_status prepare_runs(cx_store *store, cx_err *err)
{
    cx_db *db = store->writing.db;
    cx_store_later *later = &store->later;
    CX_TRY(cx_db_prepare(db, "INSERT INTO state_run VALUES(?,?)", &later->put, err));
    CX_TRY(cx_db_prepare(db, "SELECT changes FROM state_run WHERE id=?", &later->get, err));
    CX_TRY(cx_db_prepare(db, "INSERT INTO state_snapshot VALUES(?,?,?,?,?,NULL)",
                         &later->put_snapshot, err));
    CX_TRY(cx_db_prepare(db,
                         "SELECT actor, id, snapshot, dropped, roots FROM state_snapshot WHERE"
                         " (actor, id)>(?1, ?2) AND found IS NULL ORDER BY actor, id LIMIT 1",
                         &later->next_snapshot, err));
    CX_TRY(cx_db_prepare(db, "DELETE FROM state_snapshot WHERE actor=?1 AND id=?2",
                         &later->remove_snapshot, err));
    return cx_db_prepare(db, "UPDATE state_snapshot SET found=?3 WHERE actor=?1 AND id=?2",
                         &later->set_found, err);
}

cx_status cx_store_defer_trees(cx_store *store, cx_err *err)
{
    CX_ASSERT(store->shared && store->flushed.commit == 0);
    CX_TRY(cx_db_run(store->writing.db,
                     "DROP TABLE IF EXISTS state_run;"
                     "CREATE TABLE state_run(id INTEGER PRIMARY KEY, changes BLOB NOT NULL);"
                     "DROP TABLE IF EXISTS state_snapshot;"
                     "CREATE TABLE state_snapshot(actor INTEGER NOT NULL, id INTEGER NOT NULL,"
                     " snapshot INTEGER NOT NULL, dropped INTEGER NOT NULL, roots BLOB, found BLOB,"
                     " PRIMARY KEY(actor, id)) WITHOUT ROWID;"
                     "INSERT OR REPLACE INTO meta VALUES('" LATER_NAME "', 1)",
                     err));
    store->later = (cx_store_later){.on = true, .runs_max = RUNS_MAX};
    CX_TRY(prepare_runs(store, err));
    return CX_SUCCESS;
}

static cx_status read_number(cx_store *store, const char *sql, int64_t *out, bool *out_there,
                             cx_err *err)
{
    cx_db_statement *statement;
    CX_TRY(cx_db_prepare(store->writing.db, sql, &statement, err));
    cx_status status = cx_db_step(statement, out_there, err);
    if (!cx_failed(status) && *out_there)
        *out = cx_db_int(statement, 0);
    cx_db_finish(statement);
    return status;
}

cx_status cx_store_resume_deferred(cx_store *store, cx_err *err)
{
    int64_t waits = 0, run = -1, snapshot = -1;
    bool there = false;
    CX_ASSERT(store->shared);
    CX_TRY(
        read_number(store, "SELECT 1 FROM meta WHERE name='" LATER_NAME "'", &waits, &there, err));
    if (!there)
        return CX_SUCCESS;
    CX_TRY(read_number(store, "SELECT coalesce(max(id), -1) FROM state_run", &run, &there, err));
    CX_TRY(read_number(store, "SELECT coalesce(max(id), -1) FROM state_snapshot", &snapshot, &there,
                       err));
    store->later = (cx_store_later){.on = true,
                                    .runs = (uint64_t)(run + (1 << PART_BITS)) >> PART_BITS,
                                    .runs_max = RUNS_MAX,
                                    .snapshots = (uint64_t)(snapshot + 1)};
    CX_TRY(prepare_runs(store, err));
    store->sweeps = false; /* L3 */
    return CX_SUCCESS;
}

void cx_store_end_deferred(cx_store *store)
{
    cx_db_finish(store->later.put);
    cx_db_finish(store->later.get);
    cx_db_finish(store->later.put_snapshot);
    cx_db_finish(store->later.next_snapshot);
    cx_db_finish(store->later.remove_snapshot);
    cx_db_finish(store->later.set_found);
    store->later = (cx_store_later){.on = false};
}

/* Changes of one batch have the same, and batches of an actor ascend by it. */
static uint64_t order_of(const cx_state_row *row)
{
    const uint64_t seen = row->newest == CX_NO_SNAPSHOT ? 0 : row->newest + 1;
    CX_ASSERT(seen <= INT64_MAX);
    return ~seen << 1 | (row->tree & 1);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Of two changes without their values, as their bytes in a run. */
static int compare_names(const cx_state_row *x, const cx_state_row *y)
{
    int order = compare_numbers(x->tree / 2, y->tree / 2);
    if (order == 0)
        order = compare_numbers(x->next_snapshot, y->next_snapshot);
    if (order == 0)
        order = compare_numbers(order_of(x), order_of(y));
    return order != 0 ? order
                      : memcmp(x->pair.key.bytes, y->pair.key.bytes, sizeof x->pair.key.bytes);
}

static int compare_changes(const void *a, const void *b)
{
    const cx_state_row *x = *(const cx_state_row *const *)a, *y = *(const cx_state_row *const *)b;
    const int order = compare_names(x, y);
    return order != 0 ? order : (x > y) - (x < y); /* of one array */
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
        if (i + 1 < count && compare_names(sorted[i], sorted[i + 1]) == 0)
            continue;
        cx_writer_uint(&writer, sorted[i]->tree / 2, 8);
        cx_writer_uint(&writer, sorted[i]->next_snapshot, 8);
        cx_writer_uint(&writer, order_of(sorted[i]), 8);
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

static cx_status write_snapshot(cx_store *store, const cx_snapshot_row *row, cx_err *err)
{
    cx_db_statement *put = store->later.put_snapshot;
    cx_db_bind_int(put, 1, row->actor);
    cx_db_bind_int(put, 2, (int64_t)store->later.snapshots++);
    cx_db_bind_int(put, 3, (int64_t)row->snapshot);
    cx_db_bind_int(put, 4, row->dropped ? 1 : 0);
    if (row->expected)
        cx_db_bind_bytes(put, 5, cx_bytes_from(row->roots[0].bytes, sizeof row->roots));
    else
        cx_db_bind_null(put, 5);
    return cx_db_execute(put, err);
}

cx_status cx_store_write_later(cx_store *store, const cx_memtable *memtable, cx_err *err)
{
    const size_t count = memtable->states.count, size = (count + 1) * sizeof(cx_state_row *);
    CX_ASSERT(store->later.on);
    for (size_t i = 0; i < memtable->actors.count; i++) {
        cx_actor_row *actor = &memtable->actors.items[i];
        memcpy(actor->trees_after, actor->trees, sizeof actor->trees);
    }
    for (size_t i = 0; i < memtable->snapshots.count; i++)
        CX_TRY(write_snapshot(store, &memtable->snapshots.items[i], err));
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

bool cx_store_deferred_is_due(const cx_store *store)
{
    return store->later.on && (store->later.wanted || store->later.runs >= store->later.runs_max);
}

/* --- merging ---------------------------------------------------------------------------------- */

typedef struct run_reader {
    uint64_t next_part; /* id of the row after this one */
    size_t size, at;    /* of `changes`, in bytes; 0 and 0: none is left */
    uint8_t changes[PART_CHANGES * CHANGE_SIZE];
} run_reader;

typedef struct merge {
    cx_store *store;
    run_reader *runs;
    uint32_t *heap;              /* numbers of runs, the first change of all in front */
    size_t count;                /* of runs that are not at their end */
    uint8_t moment[MOMENT_SIZE]; /* of the batch that is taken */
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
    return run->at == run->size ? read_part(m, run, err) : CX_SUCCESS;
}

static const uint8_t *change_at(const run_reader *run)
{
    return run->changes + run->at;
}

static int compare_runs(const merge *m, uint32_t a, uint32_t b)
{
    const int order = memcmp(change_at(&m->runs[a]), change_at(&m->runs[b]), NAME_SIZE);
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
        if (m->runs[i].size != 0)
            m->heap[m->count++] = (uint32_t)i;
    }
    for (size_t at = m->count / 2; at-- > 0;)
        sift_down(m, at);
    return CX_SUCCESS;
}

/* NULL when none is left. */
static const uint8_t *first_change(const merge *m)
{
    return m->count == 0 ? NULL : change_at(&m->runs[m->heap[0]]);
}

static cx_status take_first(merge *m, cx_smt_pair *out, cx_err *err)
{
    run_reader *run = &m->runs[m->heap[0]];
    memcpy(out->key.bytes, change_at(run) + MOMENT_SIZE, 32);
    memcpy(out->value.bytes, change_at(run) + NAME_SIZE, 32);
    run->at += CHANGE_SIZE;
    CX_TRY(look_at_next(m, run, err));
    if (run->size == 0)
        m->heap[0] = m->heap[--m->count];
    sift_down(m, 0);
    return CX_SUCCESS;
}

static bool is_in_batch(const merge *m)
{
    const uint8_t *first = first_change(m);
    return first != NULL && memcmp(first, m->moment, MOMENT_SIZE) == 0;
}

/* cx_pages_next.  Equal keys come in the order of their runs: the last one stays (L2). */
static cx_status next_pair(void *arg, cx_smt_pair *out, bool *out_more, cx_err *err)
{
    merge *m = arg;
    *out_more = is_in_batch(m);
    if (!*out_more)
        return CX_SUCCESS;
    do
        CX_TRY(take_first(m, out, err));
    while (is_in_batch(m) && memcmp(first_change(m) + MOMENT_SIZE, out->key.bytes, 32) == 0);
    return CX_SUCCESS;
}

/* --- snapshots that wait ---------------------------------------------------------------------- */

typedef struct waiting_snapshot {
    bool there;
    int64_t actor, id;
    cx_snapshot_row row;
} waiting_snapshot;

/* The one after it. */
static cx_status next_snapshot(cx_store *store, waiting_snapshot *at, cx_err *err)
{
    cx_db_statement *next = store->later.next_snapshot;
    cx_status status = CX_SUCCESS;
    cx_db_bind_int(next, 1, at->actor);
    cx_db_bind_int(next, 2, at->id);
    CX_TRY(cx_db_step(next, &at->there, err));
    if (at->there) {
        const cx_bytes roots = cx_db_bytes(next, 4);
        *at = (waiting_snapshot){true,
                                 cx_db_int(next, 0),
                                 cx_db_int(next, 1),
                                 {.actor = cx_db_int(next, 0),
                                  .snapshot = (uint64_t)cx_db_int(next, 2),
                                  .dropped = cx_db_int(next, 3) != 0,
                                  .expected = roots.size != 0}};
        if (roots.size == sizeof at->row.roots)
            memcpy(at->row.roots, roots.data, roots.size);
        else if (roots.size != 0)
            status = cx_store_damaged("snapshots that wait are damaged", err);
    }
    cx_db_reset(next);
    return status;
}

static cx_status bind_and_run(cx_db_statement *statement, const waiting_snapshot *at,
                              const cx_digest *found, cx_err *err)
{
    cx_db_bind_int(statement, 1, at->actor);
    cx_db_bind_int(statement, 2, at->id);
    if (found != NULL)
        cx_db_bind_bytes(statement, 3, cx_bytes_from(found->bytes, 2 * sizeof *found));
    return cx_db_execute(statement, err);
}

/* All changes before it are in the trees. */
static cx_status apply_snapshot(cx_store *store, const waiting_snapshot *at,
                                const cx_pages_anchor trees[2], cx_err *err)
{
    const cx_digest found[2] = {trees[0].root, trees[1].root};
    const bool differs = at->row.expected && (!cx_digest_eq(&found[0], &at->row.roots[0]) ||
                                              !cx_digest_eq(&found[1], &at->row.roots[1]));
    CX_TRY(cx_store_write_snapshot(store, &at->row, trees, err));
    return differs ? bind_and_run(store->later.set_found, at, found, err)
                   : bind_and_run(store->later.remove_snapshot, at, NULL, err);
}

bool cx_store_expect_roots(cx_store *store, int64_t actor, uint64_t snapshot,
                           const cx_digest *memories, const cx_digest *edges)
{
    cx_memtable *memtable = store->memtable;
    cx_snapshot_row *row = memtable->snapshots.count == 0
                               ? NULL
                               : &memtable->snapshots.items[memtable->snapshots.count - 1];
    if (!store->later.on || row == NULL || row->actor != actor || row->snapshot != snapshot ||
        row->dropped || row->expected)
        return false;
    row->expected = true;
    row->roots[CX_TREE_MEMORIES] = *memories;
    row->roots[CX_TREE_EDGES] = *edges;
    return true;
}

static cx_status show_differences(cx_db_statement *scan,
                                  cx_status (*differs)(void *arg, const cx_snapshot_row *named,
                                                       const cx_digest found[2], cx_err *err),
                                  void *arg, cx_err *err)
{
    for (bool row = true; row;) {
        cx_digest found[2];
        CX_TRY(cx_db_step(scan, &row, err));
        if (!row)
            break;
        cx_snapshot_row named = {.actor = cx_db_int(scan, 0),
                                 .snapshot = (uint64_t)cx_db_int(scan, 1),
                                 .expected = true};
        const cx_bytes roots = cx_db_bytes(scan, 2), others = cx_db_bytes(scan, 3);
        if (roots.size != sizeof named.roots || others.size != sizeof found)
            return cx_store_damaged("snapshots that wait are damaged", err);
        memcpy(named.roots, roots.data, roots.size);
        memcpy(found, others.data, others.size);
        CX_TRY(differs(arg, &named, found, err));
    }
    return CX_SUCCESS;
}

cx_status cx_store_other_roots(cx_store *store,
                               cx_status (*differs)(void *arg, const cx_snapshot_row *named,
                                                    const cx_digest found[2], cx_err *err),
                               void *arg, cx_err *err)
{
    cx_db_statement *scan;
    int64_t one;
    bool there = false;
    CX_TRY(read_number(store, "SELECT 1 FROM sqlite_master WHERE name='state_snapshot'", &one,
                       &there, err));
    if (!there)
        return CX_SUCCESS;
    CX_TRY(cx_db_prepare(store->writing.db,
                         "SELECT actor, snapshot, roots, found FROM state_snapshot WHERE found IS"
                         " NOT NULL ORDER BY id",
                         &scan, err));
    cx_status status = show_differences(scan, differs, arg, err);
    cx_db_finish(scan);
    return status;
}

cx_status cx_store_forget_roots(cx_store *store, cx_err *err)
{
    CX_ASSERT(!store->later.on);
    return cx_db_run(store->writing.db, "DROP TABLE IF EXISTS state_snapshot", err);
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

/* Numbers of a batch. */
typedef struct batch {
    int64_t actor;
    unsigned which; /* of its trees */
    cx_pages_moment moment;
} batch;

static batch read_batch(const uint8_t *change)
{
    cx_reader reader = cx_reader_over(cx_bytes_from(change, MOMENT_SIZE));
    batch b = {.actor = (int64_t)cx_reader_u64(&reader)};
    b.moment.next_snapshot = cx_reader_u64(&reader);
    const uint64_t order = cx_reader_u64(&reader), seen = ~(order >> 1) & INT64_MAX;
    b.which = order & 1;
    b.moment.has_newest = seen != 0;
    b.moment.newest = seen != 0 ? seen - 1 : 0;
    return b;
}

/* The first batch of what waits. */
static cx_status apply_batch(merge *m, const batch *b, cx_pages_anchor *anchor, cx_err *err)
{
    cx_pages *pages = m->store->writing.pages;
    if (b->moment.has_newest && b->moment.newest >= b->moment.next_snapshot)
        return cx_store_damaged("changes of trees that wait are damaged", err);
    memcpy(m->moment, first_change(m), MOMENT_SIZE);
    return anchor->key_count == 0
               ? cx_pages_build(pages, anchor, next_pair, m, b->moment.next_snapshot, err)
               : cx_pages_put_sorted(pages, anchor, next_pair, m, &b->moment, err);
}

/* R2 in store_trees.c: batches and snapshots of an actor in their order. */
static cx_status apply_all(merge *m, waiting_snapshot *at, cx_actor_row *row, cx_err *err)
{
    for (;;) {
        const uint8_t *first = first_change(m);
        const batch b = first != NULL ? read_batch(first) : (batch){.actor = -1};
        const bool has_batch = b.actor == row->id;
        const bool has_snapshot = at->there && at->actor == row->id;
        if (!has_batch && !has_snapshot)
            return CX_SUCCESS;
        if (has_batch && (!has_snapshot || b.moment.next_snapshot <= at->row.snapshot)) {
            CX_TRY(apply_batch(m, &b, &row->trees[b.which], err));
        } else {
            CX_TRY(apply_snapshot(m->store, at, row->trees, err));
            CX_TRY(next_snapshot(m->store, at, err));
        }
    }
}

static cx_status build_actor(merge *m, waiting_snapshot *at, cx_arena *arena, cx_err *err)
{
    const cx_arena_mark mark = cx_arena_mark_now(arena);
    const uint8_t *first = first_change(m);
    int64_t actor = first != NULL ? read_batch(first).actor : INT64_MAX;
    if (at->there && at->actor < actor)
        actor = at->actor;
    actor_copy copy = {.arena = arena};
    CX_TRY(cx_store_scan_actors(m->store, actor, actor + 1, copy_actor, &copy, err));
    CX_TRY(apply_all(m, at, &copy.row, err));
    CX_TRY(cx_store_write_actor(m->store, &copy.row, err));
    cx_arena_reset(arena, mark);
    return CX_SUCCESS;
}

static cx_status build_all(merge *m, size_t runs, cx_err *err)
{
    cx_arena arena;
    waiting_snapshot at = {.actor = -1, .id = -1};
    cx_arena_init(&arena, m->store->alloc, 0);
    cx_status status = begin_merge(m, runs, err);
    if (!cx_failed(status))
        status = next_snapshot(m->store, &at, err);
    while (!cx_failed(status) && (m->count != 0 || at.there))
        status = build_actor(m, &at, &arena, err);
    cx_arena_done(&arena);
    return status;
}

/* The trees are there: on with the next run, or with flushes that change them. */
static cx_status end_build(cx_store *store, cx_err *err)
{
    const bool ends = store->later.wanted;
    if (ends)
        cx_store_end_deferred(store);
    store->later.built = true;
    store->later.runs = 0;
    if (!ends)
        return cx_db_run(store->writing.db, "DELETE FROM state_run", err);
    CX_TRY(cx_db_run(store->writing.db,
                     "DROP TABLE state_run; DELETE FROM meta WHERE name='" LATER_NAME "'", err));
    return cx_history_load(store, err);
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
    return cx_failed(status) ? status : end_build(store, err);
}
