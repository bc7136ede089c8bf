/*
 * trees.c - an actor's trees: built from the tables when first asked for, kept up to date after.
 *
 * The tables are derived and may be damaged, so building adds up what it reads and compares it with
 * the sums that were kept while writing: a proof is never made from rows that were changed behind
 * the home's back.
 */
#include "base/alloc.h"
#include "ledger/internal.h"

/* Every bit of the digest counts: each step can be undone, so that no change of one word is lost.
 */
static uint64_t mix(uint64_t sum, const cx_digest *digest)
{
    for (size_t at = 0; at < sizeof digest->bytes; at += 8) {
        uint64_t word = 0;
        for (size_t i = 0; i < 8; i++)
            word = word << 8 | digest->bytes[at + i];
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 32;
    }
    return sum;
}

uint64_t cx_sum_of_entry(uint64_t seq, const cx_digest *leaf)
{
    return mix(seq, leaf);
}

uint64_t cx_sum_of_state(const cx_digest *key, const cx_digest *value)
{
    return mix(mix(0, key), value);
}

#define EDGE_PREFIX "e/from/"
#define EDGE_PREFIX_SIZE 7
#define EDGE_KEY_SIZE (EDGE_PREFIX_SIZE + 16 + 1 + 16)
#define HEAD_PREFIX "m/"
#define HEAD_PREFIX_SIZE 2
#define HEAD_KEY_SIZE (HEAD_PREFIX_SIZE + 16)

bool cx_state_key(cx_scheme scheme, cx_bytes record_key, cx_digest *out, bool *out_edge)
{
    if (record_key.size == HEAD_KEY_SIZE && memcmp(record_key.data, "m/", 2) == 0) {
        *out = cx_scheme_memory_key(scheme, record_key.data + 2);
        *out_edge = false;
        return true;
    }
    if (record_key.size == EDGE_KEY_SIZE &&
        memcmp(record_key.data, EDGE_PREFIX, EDGE_PREFIX_SIZE) == 0) {
        const uint8_t *at = record_key.data + EDGE_PREFIX_SIZE;
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

void cx_actor_drop_trees(cx_actor *actor)
{
    cx_mmr_close(actor->trees.journal);
    cx_smt_close(actor->trees.memories);
    cx_smt_close(actor->trees.edges);
    actor->trees = (cx_trees){0};
    actor->pending[0].count = actor->pending[1].count = 0;
    actor->has_trees = false;
}

/* --- gathering changes ----------------------------------------------------------------------- */

/* As many pairs at once make the best of a tree's way of taking them in. */
#define PENDING_MAX 65536

static cx_status bring_in(cx_actor *actor, bool edge, cx_err *err)
{
    if (actor->pending[edge].count == 0)
        return CX_SUCCESS;
    cx_smt *tree = edge ? actor->trees.edges : actor->trees.memories;
    CX_TRY(cx_smt_put_many(tree, actor->pending[edge].items, actor->pending[edge].count, err));
    actor->pending[edge].count = 0;
    return CX_SUCCESS;
}

cx_status cx_actor_bring_in(cx_actor *actor, cx_err *err)
{
    CX_TRY(bring_in(actor, false, err));
    return bring_in(actor, true, err);
}

cx_status cx_actor_put_state(cx_home *home, cx_actor *actor, bool edge, const cx_digest *key,
                             const cx_digest *value, cx_err *err)
{
    cx_smt_pair *slot = cx_vec_push(&actor->pending[edge], home->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = (cx_smt_pair){*key, *value};
    return actor->pending[edge].count < PENDING_MAX ? CX_SUCCESS : bring_in(actor, edge, err);
}

/* --- building -------------------------------------------------------------------------------- */

#define LEAF_BATCH 1024
#define STATE_BATCH 64

/* Rows of state that wait to be hashed together: behind one another, key and value. */
typedef struct state_batch {
    cx_buf bytes;
    size_t key_size;
    size_t value_sizes[STATE_BATCH];
    size_t count;
} state_batch;

typedef struct builder {
    cx_home *home;
    cx_actor *actor;
    cx_digest leaves[LEAF_BATCH];
    size_t leaf_count;
    uint64_t next_seq;
    uint64_t sum;
    state_batch batch;
} builder;

static cx_status add_leaves(builder *build, cx_err *err)
{
    size_t count = build->leaf_count;
    build->leaf_count = 0;
    return cx_mmr_append(build->actor->trees.journal, build->leaves, count, err);
}

static cx_status damaged(const cx_actor *actor, const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "the tables of actor \"%.*s\" are damaged: %s; run 'cortex tables rebuild'"
                      " (the log is the truth, nothing is lost)",
                      (int)(actor->info.name.size < 60 ? actor->info.name.size : 60), actor->name,
                      what);
}

static cx_status take_leaf(void *arg, uint64_t seq, const cx_digest *leaf, cx_err *err)
{
    builder *build = arg;
    if (seq != build->next_seq)
        return damaged(build->actor, "an entry's row is missing", err);
    build->next_seq++;
    build->sum += cx_sum_of_entry(seq, leaf);
    build->leaves[build->leaf_count++] = *leaf;
    return build->leaf_count < LEAF_BATCH ? CX_SUCCESS : add_leaves(build, err);
}

static cx_status build_journal(cx_home *home, builder *build, cx_err *err)
{
    CX_TRY(cx_store_scan_leaves(&home->store, build->actor->id, take_leaf, build, err));
    CX_TRY(add_leaves(build, err));
    if (build->next_seq != build->actor->info.entry_count || build->sum != build->actor->entry_sum)
        return damaged(build->actor, "the rows of its entries do not add up", err);
    return CX_SUCCESS;
}

static cx_status bring_in_batch(builder *build, bool edge, cx_err *err)
{
    state_batch *batch = &build->batch;
    cx_scheme scheme = build->actor->info.scheme;
    cx_bytes keys[STATE_BATCH], values[STATE_BATCH];
    cx_digest tree_keys[STATE_BATCH], tree_values[STATE_BATCH];
    CX_TRY(cx_buf_check(&batch->bytes, err));
    const uint8_t *at = batch->bytes.data;
    for (size_t i = 0; i < batch->count; i++) {
        keys[i] = cx_bytes_from(at, batch->key_size);
        values[i] = cx_bytes_from(at + batch->key_size, batch->value_sizes[i]);
        at += batch->key_size + batch->value_sizes[i];
    }
    cx_scheme_state_keys(scheme, edge, keys, tree_keys, batch->count);
    cx_scheme_values(scheme, values, tree_values, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        (void)cx_value_erased(values[i], &tree_values[i]);
        build->sum += cx_sum_of_state(&tree_keys[i], &tree_values[i]);
        CX_TRY(cx_actor_put_state(build->home, build->actor, edge, &tree_keys[i], &tree_values[i],
                                  err));
    }
    batch->count = 0;
    cx_buf_clear(&batch->bytes);
    return CX_SUCCESS;
}

static cx_status take_state(builder *build, bool edge, cx_bytes key, cx_bytes value, cx_err *err)
{
    state_batch *batch = &build->batch;
    size_t prefix = edge ? EDGE_PREFIX_SIZE : HEAD_PREFIX_SIZE;
    if (key.size != (edge ? EDGE_KEY_SIZE : HEAD_KEY_SIZE))
        return damaged(build->actor, "a record's key has the wrong length", err);
    batch->key_size = key.size - prefix;
    batch->value_sizes[batch->count++] = value.size;
    cx_buf_add(&batch->bytes, key.data + prefix, batch->key_size);
    cx_buf_add(&batch->bytes, value.data, value.size);
    return batch->count < STATE_BATCH ? CX_SUCCESS : bring_in_batch(build, edge, err);
}

static cx_status take_memory(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    (void)stop;
    return take_state(arg, false, key, value, err);
}

static cx_status take_edge(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    (void)stop;
    return take_state(arg, true, key, value, err);
}

static cx_status build_state(cx_home *home, builder *build, cx_err *err)
{
    cx_actor *actor = build->actor;
    build->sum = 0;
    CX_TRY(cx_smt_reserve(actor->trees.memories, actor->info.live_memories + actor->info.tombstoned,
                          err));
    CX_TRY(cx_smt_reserve(actor->trees.edges, actor->info.edge_count, err));
    CX_TRY(cx_store_scan_summed(&home->store, actor->id, cx_str_bytes(CX_STR(HEAD_PREFIX)),
                                take_memory, build, err));
    CX_TRY(bring_in_batch(build, false, err));
    CX_TRY(cx_store_scan_summed(&home->store, actor->id, cx_str_bytes(CX_STR(EDGE_PREFIX)),
                                take_edge, build, err));
    CX_TRY(bring_in_batch(build, true, err));
    CX_TRY(cx_actor_bring_in(actor, err));
    if (build->sum != actor->state_sum)
        return damaged(actor, "the records of its memories and edges do not add up", err);
    return CX_SUCCESS;
}

cx_status cx_actor_open_trees(cx_home *home, cx_actor *actor, cx_err *err)
{
    cx_scheme scheme = actor->info.scheme;
    actor->trees.scheme = scheme;
    CX_TRY(cx_mmr_open(scheme, home->alloc, &actor->trees.journal, err));
    CX_TRY(cx_smt_open(scheme, home->alloc, &actor->trees.memories, err));
    CX_TRY(cx_smt_open(scheme, home->alloc, &actor->trees.edges, err));
    actor->has_trees = true;
    return CX_SUCCESS;
}

static cx_status build_trees(cx_home *home, cx_actor *actor, cx_err *err)
{
    CX_TRY(cx_actor_open_trees(home, actor, err));
    builder *build = cx_alloc_zeroed(home->alloc, 1, sizeof *build);
    if (build == NULL)
        return cx_fail_nomem(err);
    build->home = home;
    build->actor = actor;
    cx_buf_init(&build->batch.bytes, home->alloc);
    cx_status status = build_journal(home, build, err);
    if (!cx_failed(status))
        status = build_state(home, build, err);
    cx_buf_done(&build->batch.bytes);
    cx_alloc_free(home->alloc, build, sizeof *build);
    return status;
}

cx_status cx_home_need_trees(cx_home *home, cx_actor *actor, cx_err *err)
{
    if (actor->has_trees)
        return cx_actor_bring_in(actor, err);
    CX_TRY(cx_home_settle_locked(home, err));
    cx_status status = build_trees(home, actor, err);
    if (cx_failed(status))
        cx_actor_drop_trees(actor);
    return status;
}

void cx_home_forget_trees(cx_home *home, cx_str actor)
{
    cx_lock_enter(&home->lock);
    cx_actor *found = cx_home_find_actor(home, actor);
    if (found != NULL)
        cx_actor_drop_trees(found);
    cx_lock_leave(&home->lock);
}

/* --- roots ----------------------------------------------------------------------------------- */

cx_status cx_actor_roots(cx_actor *actor, cx_roots *out, cx_err *err)
{
    cx_roots roots = {.journal_size = cx_mmr_size(actor->trees.journal)};
    CX_TRY(cx_actor_bring_in(actor, err));
    CX_TRY(cx_mmr_root(actor->trees.journal, roots.journal_size, &roots.journal, err));
    CX_TRY(cx_smt_root(actor->trees.edges, &roots.edges, err));
    CX_TRY(cx_smt_root(actor->trees.memories, &roots.memories, err));
    roots.overall =
        cx_scheme_overall(actor->info.scheme, &roots.journal, &roots.edges, &roots.memories);
    *out = roots;
    return CX_SUCCESS;
}

cx_status cx_home_trees_begin(cx_home *home, cx_str actor, cx_trees *out, cx_err *err)
{
    if (home->remote != NULL)
        return cx_remote_refuse(home, "a proof", err);
    cx_lock_enter(&home->lock);
    cx_actor *found = NULL;
    bool turn = false;
    cx_status status = CX_SUCCESS;
    CX_GO(status, cx_home_take_turn(home, err));
    turn = true;
    CX_GO(status, cx_home_need_actor(home, actor, &found, err));
    CX_GO(status, cx_home_need_trees(home, found, err));
    *out = found->trees;
done:
    if (cx_failed(status) && turn)
        cx_home_give_turn(home);
    cx_lock_leave(&home->lock);
    return status;
}

void cx_home_trees_end(cx_home *home)
{
    cx_lock_enter(&home->lock);
    cx_home_give_turn(home);
    cx_lock_leave(&home->lock);
}

cx_status cx_home_roots(cx_home *home, cx_str actor, cx_roots *out, cx_err *err)
{
    if (home->remote != NULL)
        return cx_remote_roots(home, actor, out, err);
    cx_lock_enter(&home->lock);
    cx_actor *found = NULL;
    bool turn = false;
    cx_roots roots;
    cx_status status = CX_SUCCESS;
    CX_GO(status, cx_home_take_turn(home, err));
    turn = true;
    CX_GO(status, cx_home_need_actor(home, actor, &found, err));
    CX_GO(status, cx_home_need_trees(home, found, err));
    CX_GO(status, cx_actor_roots(found, &roots, err));
done:
    if (turn)
        cx_home_give_turn(home);
    cx_lock_leave(&home->lock);
    /* What is handed out must not be lost with the machine's power. */
    if (!cx_failed(status))
        status = cx_home_sync_shown(home, err);
    if (!cx_failed(status))
        *out = roots;
    return status;
}
