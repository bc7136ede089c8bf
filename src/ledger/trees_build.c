/*
 * trees_build.c - builds the trees of an actor's state from the rows of the tables.
 *
 * The tables are derived and may be damaged, so building sums up what it reads and compares the
 * result with the sums stored while writing (H4): a proof is never made from rows that were changed
 * from outside.
 *
 * Reading the state rows takes about as long as hashing them and inserting them into a tree, so for
 * many rows a second thread does the latter and gets them through a queue of batches.  The caller
 * owns the transaction and the lock; the thread uses only the actor's state trees.
 */
#include "base/api.h"
#include "ledger/internal.h"

/* Size of a batch, and length of the queue. */
#define STATE_BATCH 1024
#define QUEUE_BATCHES 4
#define LANE_ROWS 64 /* rows hashed at once */
/* Below this many rows no thread is started. */
#define THREAD_FROM 10000

/* Rows of a batch, key and value one after the other. */
typedef struct state_batch {
    bool edges;
    cx_buf bytes;
    size_t key_size;
    size_t value_sizes[STATE_BATCH];
    size_t count;
} state_batch;

/* The queue of batches between the reader and the inserting thread. */
typedef struct batch_queue {
    cx_lock lock;
    cx_thread thread; /* not started: the reader inserts them itself */
    uint64_t filled, inserted;
    bool ended;
    cx_status status; /* result of inserting */
    cx_err err;
    state_batch batches[QUEUE_BATCHES];
} batch_queue;

typedef struct builder {
    cx_home *home;
    cx_actor *actor;
    uint64_t state_sum; /* over the inserted rows */
    batch_queue batch_queue;
} builder;

static cx_status fail_damaged(const cx_actor *actor, const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "the tables of actor \"%.*s\" are damaged: %s; run 'cortex tables rebuild'"
                      " (the log is the truth, nothing is lost)",
                      (int)(actor->info.name.size < 60 ? actor->info.name.size : 60), actor->name,
                      what);
}

/* --- state: bringing in ---------------------------------------------------------------------- */

static cx_status insert_rows(builder *build, bool edges, const cx_bytes *keys,
                             const cx_bytes *values, size_t count, cx_err *err)
{
    cx_scheme scheme = build->actor->info.scheme;
    cx_digest tree_keys[LANE_ROWS], tree_values[LANE_ROWS];
    cx_scheme_state_keys(scheme, edges, keys, tree_keys, count);
    cx_scheme_values(scheme, values, tree_values, count);
    for (size_t i = 0; i < count; i++) {
        (void)cx_value_erased(values[i], &tree_values[i]);
        build->state_sum += cx_sum_of_state(&tree_keys[i], &tree_values[i]);
        CX_TRY(cx_actor_put_state(build->home, build->actor, edges, &tree_keys[i], &tree_values[i],
                                  err));
    }
    return CX_SUCCESS;
}

static cx_status insert_batch(builder *build, state_batch *batch, cx_err *err)
{
    cx_bytes keys[LANE_ROWS], values[LANE_ROWS];
    CX_TRY(cx_buf_check(&batch->bytes, err));
    const uint8_t *at = batch->bytes.data;
    for (size_t done = 0; done < batch->count;) {
        size_t some = 0;
        for (; some < LANE_ROWS && done < batch->count; some++, done++) {
            keys[some] = cx_bytes_from(at, batch->key_size);
            values[some] = cx_bytes_from(at + batch->key_size, batch->value_sizes[done]);
            at += batch->key_size + batch->value_sizes[done];
        }
        CX_TRY(insert_rows(build, batch->edges, keys, values, some, err));
    }
    return CX_SUCCESS;
}

/* The inserting thread. */
static void insert_batches(void *arg)
{
    builder *build = arg;
    batch_queue *b = &build->batch_queue;
    cx_lock_enter(&b->lock);
    while (!cx_failed(b->status)) {
        if (b->inserted == b->filled) {
            if (b->ended)
                break;
            cx_lock_wait(&b->lock);
            continue;
        }
        cx_lock_leave(&b->lock);
        cx_status status = insert_batch(build, &b->batches[b->inserted % QUEUE_BATCHES], &b->err);
        cx_lock_enter(&b->lock);
        b->status = status;
        b->inserted++;
        cx_lock_wake(&b->lock);
    }
    cx_lock_leave(&b->lock);
}

/* --- state: reading -------------------------------------------------------------------------- */

static state_batch *current_batch(batch_queue *b)
{
    return &b->batches[b->filled % QUEUE_BATCHES];
}

static cx_status send_batch(batch_queue *b, cx_err *err)
{
    cx_lock_enter(&b->lock);
    b->filled++;
    cx_lock_wake(&b->lock);
    while (!cx_failed(b->status) && b->filled - b->inserted == QUEUE_BATCHES)
        cx_lock_wait(&b->lock);
    cx_status status = b->status;
    if (cx_failed(status) && err != NULL)
        *err = b->err;
    cx_lock_leave(&b->lock);
    return status;
}

/* Hands the current batch to the inserting thread; the next one is empty when this returns. */
static cx_status hand_off_batch(builder *build, cx_err *err)
{
    batch_queue *b = &build->batch_queue;
    CX_TRY(b->thread.started ? send_batch(b, err) : insert_batch(build, current_batch(b), err));
    cx_buf_clear(&current_batch(b)->bytes);
    current_batch(b)->count = 0;
    return CX_SUCCESS;
}

static cx_status add_state_row(builder *build, bool edges, cx_bytes key, cx_bytes value,
                               cx_err *err)
{
    state_batch *batch = current_batch(&build->batch_queue);
    size_t prefix = edges ? CX_EDGE_PREFIX_SIZE : CX_HEAD_PREFIX_SIZE;
    if (key.size != (edges ? CX_EDGE_KEY_SIZE : CX_HEAD_KEY_SIZE))
        return fail_damaged(build->actor, "a record's key has the wrong length", err);
    batch->edges = edges;
    batch->key_size = key.size - prefix;
    batch->value_sizes[batch->count++] = value.size;
    cx_buf_add(&batch->bytes, key.data + prefix, batch->key_size);
    cx_buf_add(&batch->bytes, value.data, value.size);
    return batch->count < STATE_BATCH ? CX_SUCCESS : hand_off_batch(build, err);
}

static cx_status add_memory_row(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    (void)stop;
    return add_state_row(arg, false, key, value, err);
}

static cx_status add_edge_row(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    (void)stop;
    return add_state_row(arg, true, key, value, err);
}

static cx_status read_state(builder *build, cx_err *err)
{
    cx_store *store = &build->home->store;
    int64_t actor = build->actor->id;
    CX_TRY(cx_store_scan_summed(store, actor, cx_str_bytes(CX_STR(CX_HEAD_PREFIX)), add_memory_row,
                                build, err));
    CX_TRY(hand_off_batch(build, err));
    CX_TRY(cx_store_scan_summed(store, actor, cx_str_bytes(CX_STR(CX_EDGE_PREFIX)), add_edge_row,
                                build, err));
    return hand_off_batch(build, err);
}

static void batch_queue_end(batch_queue *b)
{
    cx_lock_enter(&b->lock);
    b->ended = true;
    cx_lock_wake(&b->lock);
    cx_lock_leave(&b->lock);
    cx_thread_join(&b->thread);
}

static cx_status build_state(builder *build, cx_err *err)
{
    cx_actor *actor = build->actor;
    batch_queue *b = &build->batch_queue;
    uint64_t memories = actor->info.live_memories + actor->info.tombstoned;
    CX_TRY(cx_smt_reserve(actor->trees.memories, memories, err));
    CX_TRY(cx_smt_reserve(actor->trees.edges, actor->info.edge_count, err));
    if (memories + actor->info.edge_count >= THREAD_FROM && cx_thread_cores() > 1)
        (void)cx_thread_start(&b->thread, insert_batches, build);
    cx_status status = read_state(build, err);
    batch_queue_end(b);
    CX_TRY(status);
    if (cx_failed(b->status) && err != NULL)
        *err = b->err;
    CX_TRY(b->status);
    CX_TRY(cx_actor_insert_pending(actor, err));
    if (build->state_sum != actor->state_sum)
        return fail_damaged(actor, "the records of its memories and edges do not add up", err);
    return CX_SUCCESS;
}

/* --- all ------------------------------------------------------------------------------------- */

cx_status cx_actor_build_trees(cx_home *home, cx_actor *actor, cx_err *err)
{
    CX_TRY(cx_actor_open_trees(home, actor, err));
    builder *build = cx_alloc_zeroed(home->alloc, 1, sizeof *build);
    if (build == NULL)
        return cx_fail_nomem(err);
    build->home = home;
    build->actor = actor;
    cx_lock_init(&build->batch_queue.lock);
    for (size_t i = 0; i < QUEUE_BATCHES; i++)
        cx_buf_init(&build->batch_queue.batches[i].bytes, home->alloc);
    cx_status status = build_state(build, err);
    for (size_t i = 0; i < QUEUE_BATCHES; i++)
        cx_buf_done(&build->batch_queue.batches[i].bytes);
    cx_lock_done(&build->batch_queue.lock);
    cx_alloc_free(home->alloc, build, sizeof *build);
    return status;
}
