/*
 * smt_hash.c - hashing what is stale in a sparse Merkle tree, in lanes (ledger.md §7).
 *
 * Stale sides are listed from the root down, level by level; then leaves are hashed, and branches
 * from the last level up.  Within a level nothing depends on anything else.  A level that is wider
 * than a cache holds is worked on in pieces, each with all that is below it, so that what was
 * listed is still near when it is hashed, and a load of a million keys needs no long lists.
 *
 * Pieces share nothing: several threads take them where there are many.  Each lists its own.
 *
 * Only listing allocates.  When that fails half of the way, what was hashed hangs below sides that
 * are still stale (I4): nothing is wrong, and the next time goes on from there.
 */
#include <stdatomic.h>

#include "base/api.h"
#include "tree/smt_internal.h"

#define UP_ROOT UINT32_MAX

/* A level with more tasks than WIDE is worked on in pieces of PIECE, by several threads. */
enum { WIDE = 1024, PIECE = 128, TEAM_MAX = 4 };

/* --- one-sided branches ---------------------------------------------------------------------- */

/* Chains of any lengths, one step of each at a time. */
static uint64_t climb_step_by_step(cx_scheme scheme, smt_chain *chains, size_t count)
{
    cx_digest pairs[2 * SMT_GROUP], hashes[SMT_GROUP];
    size_t active[SMT_GROUP], active_count = 0;
    uint64_t hash_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (chains[i].from > chains[i].to)
            active[active_count++] = i;
    }
    while (active_count != 0) {
        for (size_t i = 0; i < active_count; i++) {
            const smt_chain *c = &chains[active[i]];
            unsigned side = smt_bit(c->key, c->from - 1);
            pairs[2 * i + side] = c->hash;
            pairs[2 * i + 1 - side] = cx_scheme_smt_empty(scheme, c->from);
        }
        cx_scheme_smt_nodes(scheme, pairs, hashes, active_count);
        hash_count += active_count;
        size_t left_count = 0;
        for (size_t i = 0; i < active_count; i++) {
            smt_chain *c = &chains[active[i]];
            c->hash = hashes[i];
            c->from--;
            if (c->from > c->to)
                active[left_count++] = active[i];
        }
        active_count = left_count;
    }
    return hash_count;
}

/* Those chains that turn to `side` at this depth and go on above it. */
static size_t step_one_side(cx_scheme scheme, smt_chain *chains, size_t count, unsigned depth,
                            unsigned side)
{
    cx_digest hashes[SMT_GROUP];
    size_t which[SMT_GROUP], some = 0;
    for (size_t i = 0; i < count; i++) {
        if (chains[i].to < depth && smt_bit(chains[i].key, depth - 1) == side) {
            which[some] = i;
            hashes[some++] = chains[i].hash;
        }
    }
    if (some == 0)
        return 0;
    cx_scheme_smt_one_sided(scheme, depth, side, hashes, hashes, some);
    for (size_t i = 0; i < some; i++)
        chains[which[i]].hash = hashes[i];
    return some;
}

/* Chains that begin at the same depth; where the left side is empty half of the work is done
 * already (scheme.h). */
static uint64_t climb_side_by_side(cx_scheme scheme, smt_chain *chains, size_t count)
{
    uint64_t hash_count = 0;
    for (unsigned depth = chains[0].from; depth > 0; depth--) {
        size_t some = step_one_side(scheme, chains, count, depth, 0) +
                      step_one_side(scheme, chains, count, depth, 1);
        if (some == 0)
            break;
        hash_count += some;
    }
    for (size_t i = 0; i < count; i++)
        chains[i].from = chains[i].to;
    return hash_count;
}

uint64_t cx_smt_climb(cx_scheme scheme, smt_chain *chains, size_t count)
{
    CX_ASSERT(count <= SMT_GROUP);
    /* Two chains fill both lanes of SHA-NI at every step, but seldom turn the same way. */
    bool side_by_side = scheme == CX_SCHEME_MATRIX_1 && count != 0 && count != 2;
    for (size_t i = 1; i < count; i++)
        side_by_side = side_by_side && chains[i].from == chains[0].from;
    return side_by_side ? climb_side_by_side(scheme, chains, count)
                        : climb_step_by_step(scheme, chains, count);
}

/* --- listing --------------------------------------------------------------------------------- */

/* A side whose value stands at depth `depth`. */
static bool list_side(smt_hasher *h, uint32_t ref, uint32_t up, unsigned depth)
{
    if (smt_is_leaf(ref)) {
        smt_leaf_task *task = cx_vec_push(&h->leaf_tasks, h->smt->alloc);
        if (task == NULL)
            return false;
        *task = (smt_leaf_task){ref & ~SMT_LEAF, up, (uint16_t)depth};
        __builtin_prefetch(&h->smt->leaves.items[ref & ~SMT_LEAF]);
        return true;
    }
    smt_task *task = cx_vec_push(&h->tasks, h->smt->alloc);
    if (task == NULL)
        return false;
    *task = (smt_task){ref, up, SMT_NONE, 0, (uint16_t)depth};
    __builtin_prefetch(&h->smt->branches.items[ref], 1);
    __builtin_prefetch(&h->smt->sides.items[ref], 1);
    return true;
}

/* The level below the tasks from `first` to `end`. */
static bool list_below(smt_hasher *h, size_t first, size_t end)
{
    for (size_t at = first; at < end; at++) {
        const smt_branch *b = &h->smt->branches.items[h->tasks.items[at].branch];
        h->tasks.items[at].bit = b->bit;
        for (uint32_t side = 0; side < 2; side++) {
            if ((b->stale >> side & 1) != 0 &&
                !list_side(h, b->child[side], (uint32_t)(2 * at) + side, b->bit + 1u))
                return false;
        }
    }
    return true;
}

/* --- hashing --------------------------------------------------------------------------------- */

static void attach_hash(smt_hasher *h, uint32_t up, const cx_digest *hash, uint32_t leaf)
{
    if (up == UP_ROOT) {
        h->smt->root_hash = *hash;
        return;
    }
    smt_task *above = &h->tasks.items[up / 2];
    h->smt->sides.items[above->branch].half[up % 2] = *hash;
    if (leaf != SMT_NONE)
        above->leaf = leaf;
}

static void hash_leaves(smt_hasher *h, const smt_leaf_task *tasks, size_t count)
{
    CX_ASSERT(count >= 1);
    smt_twin twins[SMT_GROUP];
    cx_digest hashes[SMT_GROUP];
    smt_chain chains[SMT_GROUP];
    for (size_t i = 0; i < count; i++)
        twins[i] = h->smt->leaves.items[tasks[i].leaf];
    cx_scheme_smt_leaves(h->smt->scheme, twins[0].half, hashes, count);
    h->hash_count += count;
    /* In cortex-1 a leaf stands anywhere, in matrix-1 at depth 256. */
    if (h->smt->scheme == CX_SCHEME_MATRIX_1) {
        for (size_t i = 0; i < count; i++)
            chains[i] = (smt_chain){hashes[i], &twins[i].half[0], SMT_DEPTH, tasks[i].depth};
        h->hash_count += cx_smt_climb(h->smt->scheme, chains, count);
        for (size_t i = 0; i < count; i++)
            hashes[i] = chains[i].hash;
    }
    for (size_t i = 0; i < count; i++)
        attach_hash(h, tasks[i].up, &hashes[i], tasks[i].leaf);
}

/* A leaf below the task's branch: the one that was hashed, else any. */
static uint32_t leaf_below(const cx_smt *smt, const smt_task *task)
{
    uint32_t ref = task->branch;
    if (task->leaf != SMT_NONE)
        return task->leaf;
    while (!smt_is_leaf(ref))
        ref = smt->branches.items[ref].child[0];
    return ref & ~SMT_LEAF;
}

/* Raises the hashes of branches that do not stand right below the branch above them. */
static void raise_hashes(smt_hasher *h, const smt_task *tasks, cx_digest *hashes, size_t count)
{
    smt_chain chains[SMT_GROUP];
    size_t which[SMT_GROUP], some = 0;
    for (size_t i = 0; i < count; i++) {
        if (tasks[i].bit == tasks[i].depth)
            continue;
        const cx_digest *key = smt_key(h->smt, leaf_below(h->smt, &tasks[i]));
        chains[some] = (smt_chain){hashes[i], key, tasks[i].bit, tasks[i].depth};
        which[some++] = i;
    }
    h->hash_count += cx_smt_climb(h->smt->scheme, chains, some);
    for (size_t i = 0; i < some; i++)
        hashes[which[i]] = chains[i].hash;
}

static void hash_branches(smt_hasher *h, const smt_task *tasks, size_t count)
{
    CX_ASSERT(count >= 1);
    smt_twin twins[SMT_GROUP];
    cx_digest hashes[SMT_GROUP];
    for (size_t i = 0; i < count; i++) {
        twins[i] = h->smt->sides.items[tasks[i].branch];
        h->smt->branches.items[tasks[i].branch].stale = 0; /* I3: its sides have been hung */
    }
    cx_scheme_smt_nodes(h->smt->scheme, twins[0].half, hashes, count);
    h->hash_count += count;
    raise_hashes(h, tasks, hashes, count);
    for (size_t i = 0; i < count; i++)
        attach_hash(h, tasks[i].up, &hashes[i], tasks[i].leaf);
}

static size_t group_size(size_t left)
{
    return left < SMT_GROUP ? left : SMT_GROUP;
}

static void hash_level(smt_hasher *h, size_t first, size_t end)
{
    for (size_t at = first; at < end; at += SMT_GROUP)
        hash_branches(h, h->tasks.items + at, group_size(end - at));
}

static void hash_leaves_from(smt_hasher *h, size_t first)
{
    for (size_t at = first; at < h->leaf_tasks.count; at += SMT_GROUP)
        hash_leaves(h, h->leaf_tasks.items + at, group_size(h->leaf_tasks.count - at));
    h->leaf_tasks.count = first;
}

static bool hash_below(smt_hasher *h, size_t first, size_t end);

/* A level whose pieces several threads take, one after the other. */
typedef struct sharing {
    cx_smt *smt;
    smt_task *tasks;
    size_t count;
    _Atomic size_t next;
    _Atomic bool failed;
    uint64_t hash_counts[TEAM_MAX];
} sharing;

static void hash_pieces_worker(void *arg, unsigned index)
{
    sharing *s = arg;
    smt_hasher h = {.smt = s->smt, .helps = true};
    size_t at;
    while (!s->failed && (at = atomic_fetch_add(&s->next, PIECE)) < s->count) {
        size_t count = s->count - at < PIECE ? s->count - at : PIECE;
        if (!cx_vec_reserve(&h.tasks, count, h.smt->alloc)) {
            s->failed = true;
            break;
        }
        memcpy(h.tasks.items, s->tasks + at, count * sizeof *s->tasks);
        h.tasks.count = count;
        h.leaf_tasks.count = 0;
        if (!hash_below(&h, 0, count))
            s->failed = true;
        /* Bits and leaves are known now. */
        memcpy(s->tasks + at, h.tasks.items, count * sizeof *s->tasks);
    }
    s->hash_counts[index] = h.hash_count;
    cx_vec_done(&h.tasks, h.smt->alloc);
    cx_vec_done(&h.leaf_tasks, h.smt->alloc);
}

static bool hash_pieces(smt_hasher *h, size_t first, size_t end)
{
    unsigned cores = h->helps ? 1 : cx_thread_cores();
    if (cores > 1) {
        sharing s = {.smt = h->smt, .tasks = h->tasks.items + first, .count = end - first};
        cx_thread_team(cores < TEAM_MAX ? cores : TEAM_MAX, hash_pieces_worker, &s);
        for (size_t i = 0; i < TEAM_MAX; i++)
            h->hash_count += s.hash_counts[i];
        return !s.failed;
    }
    for (size_t at = first; at < end; at += PIECE)
        if (!hash_below(h, at, end - at < PIECE ? end : at + PIECE))
            return false;
    return true;
}

/* Hashes all that is stale below the tasks of a level, so that their sides are right.  Each call
 * inside itself goes down by some levels: SMT_DEPTH bounds it. */
static bool hash_below(smt_hasher *h, size_t first, size_t end)
{
    size_t levels[SMT_DEPTH + 2], level_count = 0;
    const size_t task_count = h->tasks.count, leaf_task_count = h->leaf_tasks.count;
    for (levels[0] = task_count; first < end; levels[++level_count] = end) {
        if (!list_below(h, first, end))
            return false;
        first = levels[level_count];
        end = h->tasks.count;
        if (end - first <= WIDE)
            continue;
        if (!hash_pieces(h, first, end))
            return false;
        levels[++level_count] = end;
        break;
    }
    hash_leaves_from(h, leaf_task_count);
    while (level_count-- > 0)
        hash_level(h, levels[level_count], levels[level_count + 1]);
    h->tasks.count = task_count;
    return true;
}

CX_RESULT cx_smt_root(cx_smt *smt, cx_digest *out, cx_err *err)
{
    smt_hasher *h = &smt->hasher;
    h->tasks.count = h->leaf_tasks.count = 0;
    if (smt->stale && smt->root == SMT_NONE) {
        smt->root_hash = cx_scheme_smt_empty(smt->scheme, 0);
    } else if (smt->stale) {
        if (!list_side(h, smt->root, UP_ROOT, 0) || !hash_below(h, 0, h->tasks.count))
            return cx_fail_nomem(err);
        hash_leaves_from(h, 0);
        hash_level(h, 0, h->tasks.count);
    }
    smt->stale = false;
    *out = smt->root_hash;
    return CX_SUCCESS;
}
