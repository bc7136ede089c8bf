/*
 * smt.c - the sparse Merkle tree's shape: finding, setting, removing keys (ledger.md §7).
 *
 * The invariants are in smt_internal.h.  Nothing is hashed here: a change marks the sides from the
 * root down to it as stale.  Marking too much costs time, never the root.
 */
#include "tree/smt_internal.h"

enum { LINE = sizeof(smt_twin) };

CX_RESULT cx_smt_open(cx_scheme scheme, const cx_alloc *alloc, cx_smt **out, cx_err *err)
{
    cx_smt *smt = cx_alloc_zeroed(alloc, 1, sizeof *smt);
    if (smt == NULL)
        return cx_fail_nomem(err);
    smt->alloc = alloc;
    smt->scheme = scheme;
    smt->hasher.smt = smt;
    smt->root = smt->leaves.free = smt->sides.free = SMT_NONE;
    smt->root_hash = cx_scheme_smt_empty(scheme, 0);
    *out = smt;
    return CX_SUCCESS;
}

void cx_smt_close(cx_smt *smt)
{
    if (smt == NULL)
        return;
    cx_alloc_free(smt->alloc, smt->leaves.block, smt->leaves.block_size_bytes);
    cx_alloc_free(smt->alloc, smt->sides.block, smt->sides.block_size_bytes);
    cx_vec_done(&smt->branches, smt->alloc);
    cx_vec_done(&smt->hasher.tasks, smt->alloc);
    cx_vec_done(&smt->hasher.leaf_tasks, smt->alloc);
    cx_alloc_free(smt->alloc, smt, sizeof *smt);
}

size_t cx_smt_memory(const cx_smt *smt)
{
    return sizeof *smt + smt->leaves.block_size_bytes + smt->sides.block_size_bytes +
           smt->branches.capacity * sizeof *smt->branches.items +
           smt->hasher.tasks.capacity * sizeof *smt->hasher.tasks.items +
           smt->hasher.leaf_tasks.capacity * sizeof *smt->hasher.leaf_tasks.items;
}

uint64_t cx_smt_hashes(const cx_smt *smt)
{
    return smt->hasher.hash_count;
}

uint64_t cx_smt_count(const cx_smt *smt)
{
    return smt->leaves.kept_count;
}

uint64_t cx_smt_branches(const cx_smt *smt)
{
    return smt->sides.kept_count;
}

/* --- room ------------------------------------------------------------------------------------ */

/* Allocators align to 16 bytes; a twin that lies in one cache line costs one miss, not two. */
static bool grow_twins(smt_twins *twins, uint64_t needed, const cx_alloc *alloc)
{
    uint64_t wanted = (uint64_t)twins->capacity + twins->capacity / 2;
    wanted = wanted < needed ? needed : wanted;
    wanted = wanted < 8 ? 8 : wanted;
    if (needed <= twins->capacity)
        return true;
    if (wanted > SMT_LEAVES_MAX)
        wanted = SMT_LEAVES_MAX;
    if (wanted > SIZE_MAX / LINE - 1)
        return false;
    size_t size = ((size_t)wanted + 1) * LINE;
    size_t old_offset = twins->block == NULL ? 0 : (size_t)((uint8_t *)twins->items - twins->block);
    uint8_t *block = alloc->resize(alloc->ctx, twins->block, twins->block_size_bytes, size);
    if (block == NULL)
        return false;
    size_t offset = (LINE - (uintptr_t)block % LINE) % LINE;
    if (offset != old_offset)
        memmove(block + offset, block + old_offset, (size_t)twins->used * LINE);
    twins->items = (smt_twin *)(void *)(block + offset);
    twins->block = block;
    twins->block_size_bytes = size;
    twins->capacity = (uint32_t)wanted;
    return true;
}

bool cx_smt_grow(cx_smt *smt, uint64_t leaf_count)
{
    return grow_twins(&smt->leaves, leaf_count, smt->alloc) &&
           grow_twins(&smt->sides, leaf_count, smt->alloc) &&
           cx_vec_reserve(&smt->branches, (size_t)leaf_count, smt->alloc);
}

CX_RESULT cx_smt_reserve(cx_smt *smt, uint64_t count, cx_err *err)
{
    if (count > SMT_LEAVES_MAX)
        return cx_fail(err, CX_E_LIMIT, "a tree holds at most %u keys", SMT_LEAVES_MAX);
    return cx_smt_grow(smt, count) ? CX_SUCCESS : cx_fail_nomem(err);
}

/* The list of twins given back goes through their first bytes. */
static uint32_t acquire_twin(smt_twins *twins)
{
    uint32_t index = twins->free;
    if (index == SMT_NONE) {
        CX_ASSERT(twins->used < twins->capacity);
        index = twins->used++;
    } else {
        memcpy(&twins->free, &twins->items[index], sizeof twins->free);
    }
    twins->kept_count++;
    return index;
}

static void release_twin(smt_twins *twins, uint32_t index)
{
    memcpy(&twins->items[index], &twins->free, sizeof twins->free);
    twins->free = index;
    twins->kept_count--;
}

uint32_t cx_smt_add_leaf(cx_smt *smt, const cx_digest *key, const cx_digest *value)
{
    uint32_t leaf = acquire_twin(&smt->leaves);
    smt->leaves.items[leaf] = (smt_twin){{*key, *value}};
    return leaf;
}

uint32_t cx_smt_add_branch(cx_smt *smt, unsigned bit)
{
    uint32_t branch = acquire_twin(&smt->sides);
    smt->branches.items[branch] = (smt_branch){{SMT_NONE, SMT_NONE}, (uint16_t)bit, 3};
    return branch;
}

/* --- finding --------------------------------------------------------------------------------- */

unsigned cx_smt_difference(const cx_digest *a, const cx_digest *b)
{
    for (unsigned i = 0; i < sizeof a->bytes; i += 8) {
        uint64_t differing = smt_word(a, i) ^ smt_word(b, i);
        if (differing != 0)
            return 8 * i + (unsigned)__builtin_clzll(differing);
    }
    return SMT_DEPTH;
}

uint32_t cx_smt_descend(const cx_smt *smt, const cx_digest *key)
{
    uint32_t ref = smt->root;
    while (!smt_is_leaf(ref)) {
        const smt_branch *b = &smt->branches.items[ref];
        ref = b->child[smt_bit(key, b->bit)];
    }
    return ref & ~SMT_LEAF;
}

/* The key's leaf, or SMT_NONE. */
static uint32_t find_leaf(const cx_smt *smt, const cx_digest *key)
{
    if (smt->root == SMT_NONE)
        return SMT_NONE;
    uint32_t leaf = cx_smt_descend(smt, key);
    return cx_digest_eq(smt_key(smt, leaf), key) ? leaf : SMT_NONE;
}

bool cx_smt_get(const cx_smt *smt, const cx_digest *key, cx_digest *out_value)
{
    uint32_t leaf = find_leaf(smt, key);
    if (leaf == SMT_NONE)
        return false;
    *out_value = smt->leaves.items[leaf].half[1];
    return true;
}

/* --- changing -------------------------------------------------------------------------------- */

/* Marks the key's way through all branches before bit `until`; returns where it ends. */
static uint32_t *mark_path(cx_smt *smt, const cx_digest *key, unsigned until)
{
    uint32_t *link = &smt->root;
    smt->stale = true;
    while (!smt_is_leaf(*link)) {
        smt_branch *b = &smt->branches.items[*link];
        if (b->bit >= until)
            break;
        unsigned side = smt_bit(key, b->bit);
        b->stale |= (uint8_t)(1u << side);
        link = &b->child[side];
    }
    return link;
}

void cx_smt_hang_leaf(cx_smt *smt, uint32_t *link, unsigned bit, const cx_digest *key,
                      const cx_digest *value)
{
    uint32_t leaf = cx_smt_add_leaf(smt, key, value), branch = cx_smt_add_branch(smt, bit);
    unsigned side = smt_bit(key, bit);
    smt->branches.items[branch].child[side] = leaf | SMT_LEAF;
    smt->branches.items[branch].child[1 - side] = *link;
    *link = branch;
}

static void set_leaf(cx_smt *smt, const cx_digest *key, const cx_digest *value)
{
    if (smt->root == SMT_NONE) {
        smt->root = cx_smt_add_leaf(smt, key, value) | SMT_LEAF;
        smt->stale = true;
        return;
    }
    uint32_t found = cx_smt_descend(smt, key);
    unsigned bit = cx_smt_difference(key, smt_key(smt, found));
    if (bit == SMT_DEPTH) {
        cx_digest *now = &smt->leaves.items[found].half[1];
        if (!cx_digest_eq(now, value)) {
            *now = *value;
            (void)mark_path(smt, key, SMT_DEPTH);
        }
        return;
    }
    cx_smt_hang_leaf(smt, mark_path(smt, key, bit), bit, key, value);
}

CX_RESULT cx_smt_put(cx_smt *smt, const cx_digest *key, const cx_digest *value, cx_err *err)
{
    static const cx_digest absent = {{0}};
    if (cx_digest_eq(value, &absent))
        return cx_fail(err, CX_E_USAGE, "a value of zeros means absent");
    if (smt->leaves.kept_count == SMT_LEAVES_MAX && find_leaf(smt, key) == SMT_NONE)
        return cx_fail(err, CX_E_LIMIT, "a tree holds at most %u keys", SMT_LEAVES_MAX);
    if (smt->leaves.kept_count < SMT_LEAVES_MAX &&
        !cx_smt_grow(smt, (uint64_t)smt->leaves.kept_count + 1))
        return cx_fail_nomem(err);
    set_leaf(smt, key, value);
    return CX_SUCCESS;
}

CX_RESULT cx_smt_remove(cx_smt *smt, const cx_digest *key, bool *out_was, cx_err *err)
{
    (void)err;
    uint32_t leaf = find_leaf(smt, key);
    *out_was = leaf != SMT_NONE;
    if (leaf == SMT_NONE)
        return CX_SUCCESS;
    uint32_t *link = &smt->root, *above = NULL;
    (void)mark_path(smt, key, SMT_DEPTH);
    while (!smt_is_leaf(*link)) {
        smt_branch *b = &smt->branches.items[*link];
        above = link;
        link = &b->child[smt_bit(key, b->bit)];
    }
    if (above == NULL) {
        smt->root = SMT_NONE;
    } else {
        /* The other side takes the place of the branch; its side of the branch above is stale. */
        uint32_t branch = *above;
        smt_branch *b = &smt->branches.items[branch];
        *above = b->child[1 - smt_bit(key, b->bit)];
        release_twin(&smt->sides, branch);
    }
    release_twin(&smt->leaves, leaf);
    return CX_SUCCESS;
}
