/*
 * trees.c - an actor's trees.
 *
 * Of its journal an actor has the right edge, which is enough for its root; what a proof needs
 * beside it is read (tree/mmr.h).  The trees of its state are built on first use (trees_build.c)
 * and updated afterwards.
 */
#include "base/api.h"
#include "ledger/internal.h"

/* Mixes all bits of the digest: each step is invertible, so that a change of one word always shows.
 */
static uint64_t mix_digest(uint64_t sum, const cx_digest *digest)
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
    return mix_digest(seq, leaf);
}

uint64_t cx_sum_of_state(const cx_digest *key, const cx_digest *value)
{
    return mix_digest(mix_digest(0, key), value);
}

bool cx_state_key(cx_scheme scheme, cx_bytes record_key, cx_digest *out, bool *out_edge)
{
    if (record_key.size == CX_HEAD_KEY_SIZE && memcmp(record_key.data, "m/", 2) == 0) {
        *out = cx_scheme_memory_key(scheme, record_key.data + 2);
        *out_edge = false;
        return true;
    }
    if (record_key.size == CX_EDGE_KEY_SIZE &&
        memcmp(record_key.data, CX_EDGE_PREFIX, CX_EDGE_PREFIX_SIZE) == 0) {
        const uint8_t *at = record_key.data + CX_EDGE_PREFIX_SIZE;
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
    cx_smt_close(actor->trees.memories);
    cx_smt_close(actor->trees.edges);
    actor->trees.memories = actor->trees.edges = NULL;
    actor->pending[0].count = actor->pending[1].count = 0;
    actor->has_trees = false;
}

/* --- gathering changes ----------------------------------------------------------------------- */

/* Number of pairs at which inserting into a tree is most efficient. */
#define PENDING_MAX 65536

static cx_status insert_pending(cx_actor *actor, bool edge, cx_err *err)
{
    if (actor->pending[edge].count == 0)
        return CX_SUCCESS;
    cx_smt *tree = edge ? actor->trees.edges : actor->trees.memories;
    CX_TRY(cx_smt_put_many(tree, actor->pending[edge].items, actor->pending[edge].count, err));
    actor->pending[edge].count = 0;
    return CX_SUCCESS;
}

cx_status cx_actor_insert_pending(cx_actor *actor, cx_err *err)
{
    CX_TRY(insert_pending(actor, false, err));
    return insert_pending(actor, true, err);
}

cx_status cx_actor_put_state(cx_home *home, cx_actor *actor, bool edge, const cx_digest *key,
                             const cx_digest *value, cx_err *err)
{
    cx_smt_pair *slot = cx_vec_push(&actor->pending[edge], home->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = (cx_smt_pair){*key, *value};
    return actor->pending[edge].count < PENDING_MAX ? CX_SUCCESS : insert_pending(actor, edge, err);
}

/* --- the journal ------------------------------------------------------------------------------ */

static cx_status read_hashes(void *arg, unsigned level, uint64_t first, size_t count,
                             cx_digest *out, cx_err *err)
{
    const cx_journal_source *source = arg;
    cx_home *home = source->home;
    if (!source->locked)
        cx_lock_enter(&home->lock);
    cx_status status =
        cx_store_read_journal(&home->store, source->actor, level, first, count, out, err);
    if (!source->locked)
        cx_lock_leave(&home->lock);
    return status;
}

static cx_status read_leaves(void *arg, uint64_t first, size_t count, cx_digest *out, cx_err *err)
{
    return read_hashes(arg, 0, first, count, out, err);
}

/* `source` must live as long as the tree. */
static cx_status open_journal(const cx_actor *actor, cx_journal_source *source, cx_mmr **out,
                              cx_err *err)
{
    const cx_mmr_keeper keeper = {source, read_leaves, read_hashes};
    return cx_mmr_open_kept(actor->info.scheme, source->home->alloc, &actor->edge, &keeper, out,
                            err);
}

cx_status cx_actor_journal_root(cx_home *home, cx_actor *actor, uint64_t size, cx_digest *out,
                                cx_err *err)
{
    cx_journal_source source = {home, actor->id, true};
    cx_mmr *journal;
    CX_TRY(open_journal(actor, &source, &journal, err));
    cx_status status = cx_mmr_root(journal, size, out, err);
    cx_mmr_close(journal);
    return status;
}

/* --- asking for them ------------------------------------------------------------------------- */

cx_status cx_actor_open_trees(cx_home *home, cx_actor *actor, cx_err *err)
{
    cx_scheme scheme = actor->info.scheme;
    actor->trees.scheme = scheme;
    CX_TRY(cx_smt_open(scheme, home->alloc, &actor->trees.memories, err));
    CX_TRY(cx_smt_open(scheme, home->alloc, &actor->trees.edges, err));
    actor->has_trees = true;
    return CX_SUCCESS;
}

cx_status cx_home_need_trees(cx_home *home, cx_actor *actor, cx_err *err)
{
    if (actor->has_trees)
        return cx_actor_insert_pending(actor, err);
    CX_TRY(cx_home_flush_wait_locked(home, err));
    cx_status status = cx_actor_build_trees(home, actor, err);
    if (cx_failed(status))
        cx_actor_drop_trees(actor);
    return status;
}

void cx_home_forget_trees(cx_home *home, cx_str actor)
{
    cx_lock_enter(&home->lock);
    cx_actor *found = cx_home_actor_in_memory(home, actor);
    if (found != NULL)
        cx_actor_drop_trees(found);
    cx_lock_leave(&home->lock);
}

/* --- roots ----------------------------------------------------------------------------------- */

cx_status cx_actor_roots(cx_actor *actor, cx_roots *out, cx_err *err)
{
    cx_roots roots = {.journal_size = actor->edge.size,
                      .journal = cx_mmr_edge_root(&actor->edge, actor->info.scheme)};
    CX_TRY(cx_actor_insert_pending(actor, err));
    CX_TRY(cx_smt_root(actor->trees.edges, &roots.edges, err));
    CX_TRY(cx_smt_root(actor->trees.memories, &roots.memories, err));
    roots.overall =
        cx_scheme_overall(actor->info.scheme, &roots.journal, &roots.edges, &roots.memories);
    *out = roots;
    return CX_SUCCESS;
}

static void end_trees(cx_home *home)
{
    if (home->trees_of != NULL) {
        cx_mmr_close(home->trees_of->trees.journal);
        home->trees_of->trees.journal = NULL;
        cx_actor_release(home->trees_of);
    }
    home->trees_of = NULL;
    cx_home_unlock_txn(home);
}

static cx_status begin_trees(cx_home *home, cx_str actor, bool states, cx_trees *out, cx_err *err)
{
    if (home->remote != NULL)
        return cx_remote_unsupported(home, "a proof", err);
    cx_lock_enter(&home->lock);
    cx_actor *found = NULL;
    bool rotation = false;
    cx_status status = CX_SUCCESS;
    CX_TRY_GOTO(status, cx_home_lock_txn(home, err));
    rotation = true;
    CX_TRY_GOTO(status, cx_home_need_actor(home, actor, &found, err));
    cx_actor_hold(found);
    home->trees_of = found;
    home->journal_source = (cx_journal_source){home, found->id, false};
    CX_TRY_GOTO(status, open_journal(found, &home->journal_source, &found->trees.journal, err));
    if (states)
        CX_TRY_GOTO(status, cx_home_need_trees(home, found, err));
    *out = found->trees;
    out->scheme = found->info.scheme;
done:
    if (cx_failed(status) && rotation)
        end_trees(home);
    cx_lock_leave(&home->lock);
    return status;
}

cx_status cx_home_trees_begin(cx_home *home, cx_str actor, cx_trees *out, cx_err *err)
{
    return begin_trees(home, actor, true, out, err);
}

cx_status cx_home_journal_begin(cx_home *home, cx_str actor, cx_trees *out, cx_err *err)
{
    return begin_trees(home, actor, false, out, err);
}

void cx_home_trees_end(cx_home *home)
{
    cx_lock_enter(&home->lock);
    end_trees(home);
    cx_lock_leave(&home->lock);
}

cx_status cx_home_roots(cx_home *home, cx_str actor, cx_roots *out, cx_err *err)
{
    if (home->remote != NULL)
        return cx_remote_roots(home, actor, out, err);
    cx_lock_enter(&home->lock);
    cx_actor *found = NULL;
    bool rotation = false;
    cx_roots roots;
    cx_status status = CX_SUCCESS;
    CX_TRY_GOTO(status, cx_home_lock_txn(home, err));
    rotation = true;
    CX_TRY_GOTO(status, cx_home_need_actor(home, actor, &found, err));
    cx_actor_hold(found);
    status = cx_home_need_trees(home, found, err);
    if (!cx_failed(status))
        status = cx_actor_roots(found, &roots, err);
    cx_actor_release(found);
done:
    if (rotation)
        cx_home_unlock_txn(home);
    cx_lock_leave(&home->lock);
    /* What is returned must be durable. */
    if (!cx_failed(status))
        status = cx_home_sync_shown(home, err);
    if (!cx_failed(status))
        *out = roots;
    return status;
}
