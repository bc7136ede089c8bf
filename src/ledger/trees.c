/*
 * trees.c - an actor's trees: built on first use (trees_build.c), updated afterwards.
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
    cx_mmr_close(actor->trees.journal);
    cx_smt_close(actor->trees.memories);
    cx_smt_close(actor->trees.edges);
    actor->trees = (cx_trees){0};
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

/* --- asking for them ------------------------------------------------------------------------- */

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
    cx_roots roots = {.journal_size = cx_mmr_size(actor->trees.journal)};
    CX_TRY(cx_actor_insert_pending(actor, err));
    CX_TRY(cx_mmr_root(actor->trees.journal, roots.journal_size, &roots.journal, err));
    CX_TRY(cx_smt_root(actor->trees.edges, &roots.edges, err));
    CX_TRY(cx_smt_root(actor->trees.memories, &roots.memories, err));
    roots.overall =
        cx_scheme_overall(actor->info.scheme, &roots.journal, &roots.edges, &roots.memories);
    *out = roots;
    return CX_SUCCESS;
}

static void end_trees(cx_home *home)
{
    if (home->trees_of != NULL)
        cx_actor_release(home->trees_of);
    home->trees_of = NULL;
    cx_home_unlock_txn(home);
}

cx_status cx_home_trees_begin(cx_home *home, cx_str actor, cx_trees *out, cx_err *err)
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
    CX_TRY_GOTO(status, cx_home_need_trees(home, found, err));
    *out = found->trees;
done:
    if (cx_failed(status) && rotation)
        end_trees(home);
    cx_lock_leave(&home->lock);
    return status;
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
