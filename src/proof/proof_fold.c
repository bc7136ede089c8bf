/*
 * proof_fold.c - how the paths of a MultiProof's keys hang together, and folding them to the root.
 *
 * All keys go up together, deepest first, and keys that come to the same node go on as one, so that
 * every distinct node is hashed once and in lanes.  The least key below a node stands for it.  Two
 * keys that tell their siblings themselves (schemas 1 and 2) may go on as one only if they agree:
 * the node of each is what the other names as sibling, and all siblings above are
 * equal.  In schema 3 they have nothing to say about it: what one leads to is the other's sibling.
 *
 *   F1  Two paths end in one place, or neither ends on the other's way; else they contradict.
 *   F2  Paths that end in one place begin with one hash.
 *   F3  A trail that has met a lesser key goes no further; its node is read by that key only.
 */
#include <stdlib.h>

#include "base/api.h"
#include "proof/proof_internal.h"

static const cx_digest zeros;

enum { DEPTH_MAX = CX_PROOF_SIBLINGS_MAX, GROUP = 64 };

/* --- trails ---------------------------------------------------------------------------------- */

static int compare_trails(const void *a, const void *b)
{
    const cx_trail *left = a, *right = b;
    return memcmp(left->key->bytes, right->key->bytes, sizeof left->key->bytes);
}

cx_status cx_trails_of(const cx_raw_proof *proof, cx_arena *arena, cx_trail **out,
                       size_t *out_twice, cx_err *err)
{
    cx_trail *trails = CX_ARENA_ARRAY(arena, cx_trail, proof->count);
    bool ascending = true;
    if (trails == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < proof->count; i++) {
        const cx_raw_item *item = &proof->items[i];
        size_t depth = item->sibling_count;
        trails[i] = (cx_trail){.key = &item->key,
                               .item = (uint32_t)i,
                               .depth = (uint16_t)(depth > DEPTH_MAX ? DEPTH_MAX : depth)};
        ascending = ascending && (i == 0 || compare_trails(&trails[i - 1], &trails[i]) < 0);
    }
    *out = trails;
    *out_twice = SIZE_MAX;
    if (ascending)
        return CX_SUCCESS;
    qsort(trails, proof->count, sizeof *trails, compare_trails);
    for (size_t i = 1; i < proof->count && *out_twice == SIZE_MAX; i++)
        if (compare_trails(&trails[i - 1], &trails[i]) == 0)
            *out_twice = trails[i].item;
    return CX_SUCCESS;
}

static unsigned shared_bits(const cx_digest *a, const cx_digest *b)
{
    for (unsigned i = 0; i < sizeof a->bytes; i++) {
        unsigned differs = (unsigned)(a->bytes[i] ^ b->bytes[i]);
        if (differs != 0)
            return 8 * i + (unsigned)__builtin_clz(differs) - 24;
    }
    return DEPTH_MAX;
}

/*
 * From the left to the right, `open` has those whose subtree may still grow, each sharing more with
 * the key before it than the one below: the trail that meets a new one is the topmost that shares
 * less.  It is kept in `next` until, from the right to the left, lists are made of whom each meets.
 */
size_t cx_trails_link(cx_trail *trails, size_t count)
{
    uint32_t open[DEPTH_MAX + 2];
    size_t open_count = 0;
    for (size_t i = 0; i < count; i++) {
        cx_trail *t = &trails[i];
        t->meets = t->next = t->shared = 0;
        if (i != 0) {
            t->shared = (uint16_t)shared_bits(t[-1].key, t->key);
            if ((t->shared >= t->depth || t->shared >= t[-1].depth) && t->depth != t[-1].depth)
                return i;
        }
        if (cx_trail_ends_with_last(trails, i))
            continue;
        while (open_count > 1 && trails[open[open_count - 1]].shared > t->shared)
            open_count--;
        if (i != 0)
            t->next = open[open_count - 1];
        CX_ASSERT(open_count < CX_COUNT_OF(open));
        open[open_count++] = (uint32_t)i;
    }
    for (size_t i = count; i-- > 1;) {
        if (cx_trail_ends_with_last(trails, i))
            continue;
        cx_trail *meeter = &trails[trails[i].next];
        trails[i].next = meeter->meets;
        meeter->meets = (uint32_t)i;
    }
    return SIZE_MAX;
}

void cx_trail_mark_met(const cx_trail *trails, size_t at, bool met[CX_PROOF_SIBLINGS_MAX])
{
    size_t own = cx_trail_own(trails, at);
    if (own < trails[at].depth)
        memset(met + own, 0, (trails[at].depth - own) * sizeof *met);
    for (size_t i = trails[at].meets; i != 0; i = trails[i].next)
        met[trails[i].shared] = true;
}

/* --- where paths begin ----------------------------------------------------------------------- */

void cx_raw_proof_ends(cx_scheme scheme, const cx_trail *trails, const cx_proof_item *items,
                       size_t count, cx_digest *nodes)
{
    const cx_digest empty =
        cx_scheme_smt_empty(scheme, scheme == CX_SCHEME_MATRIX_1 ? DEPTH_MAX : 0);
    cx_digest pairs[2 * GROUP];
    size_t which[GROUP], some = 0;
    for (size_t i = 0; i < count; i++) {
        const cx_smt_path *path = &items[trails[i].item].path;
        nodes[i] = empty;
        if (path->member || path->has_other) {
            pairs[2 * some] = path->member ? path->key : path->other_key;
            pairs[2 * some + 1] = path->member ? path->value : path->other_value;
            which[some++] = i;
        }
        if (some == GROUP || (some != 0 && i + 1 == count)) {
            cx_scheme_smt_leaves(scheme, pairs, pairs, some);
            for (size_t k = 0; k < some; k++)
                nodes[which[k]] = pairs[k];
            some = 0;
        }
    }
}

/* --- folding --------------------------------------------------------------------------------- */

/* One trail on its way; small, because every level goes through all of them. */
typedef struct climber {
    uint64_t turns;          /* the first bits of its key */
    const uint32_t *indexes; /* of its siblings from index_base on; NULL when they are plain */
    uint32_t met;            /* whom it meets next .. */
    uint16_t met_bit;        /* .. and where; NOWHERE when there is none */
    uint16_t last_bit;       /* where a lesser one meets it; NOWHERE of the first */
    uint16_t index_base;
} climber;

#define NOWHERE UINT16_MAX

typedef struct folding {
    const cx_raw_proof *proof;
    cx_scheme scheme;
    const cx_trail *trails;
    cx_digest *nodes;
    cx_digest *lefts;
    climber *climbers;            /* of each trail */
    uint32_t *order;              /* trails by the depth where they begin */
    size_t starts[DEPTH_MAX + 2]; /* [d]: the first in `order` of depth d */
    uint32_t *live;               /* those on their way, at one depth */
} folding;

static bool allocate_climbers(folding *f, cx_arena *arena)
{
    f->order = CX_ARENA_ARRAY(arena, uint32_t, f->proof->count);
    f->live = CX_ARENA_ARRAY(arena, uint32_t, f->proof->count);
    f->climbers = CX_ARENA_ARRAY(arena, climber, f->proof->count);
    return f->order != NULL && f->live != NULL && f->climbers != NULL;
}

static uint64_t first_bits(const cx_digest *key)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof bits; i++)
        bits = bits << 8 | key->bytes[i];
    return bits;
}

static void set_met(const folding *f, climber *c, uint32_t met)
{
    c->met = met;
    c->met_bit = met == 0 ? NOWHERE : f->trails[met].shared;
}

static void start_climbers(folding *f)
{
    size_t next[DEPTH_MAX + 1];
    memset(f->starts, 0, sizeof f->starts);
    for (size_t i = 0; i < f->proof->count; i++)
        if (!cx_trail_ends_with_last(f->trails, i))
            f->starts[f->trails[i].depth + 1]++;
    for (size_t depth = 0; depth <= DEPTH_MAX; depth++) {
        next[depth] = f->starts[depth];
        f->starts[depth + 1] += f->starts[depth];
    }
    for (size_t i = 0; i < f->proof->count; i++) {
        const cx_trail *t = &f->trails[i];
        if (cx_trail_ends_with_last(f->trails, i))
            continue;
        const cx_raw_item *item = &f->proof->items[t->item];
        f->climbers[i] = (climber){.turns = first_bits(t->key),
                                   .indexes = item->indexes,
                                   .index_base = (uint16_t)item->index_base,
                                   .last_bit = i == 0 ? NOWHERE : t->shared};
        set_met(f, &f->climbers[i], t->meets);
        f->order[next[t->depth]++] = (uint32_t)i;
    }
}

/* Of one that tells all its siblings: whether it names the same first `count` as another. */
static bool same_siblings(const folding *f, const cx_trail *a, const cx_trail *b, size_t count)
{
    const cx_raw_item *left = &f->proof->items[a->item], *right = &f->proof->items[b->item];
    if (count == 0)
        return true;
    if (f->proof->form == CX_FORM_PLAIN)
        return memcmp(left->siblings, right->siblings,
                      (count - 1) * CX_CBOR_DIGEST_STRIDE + sizeof(cx_digest)) == 0;
    return memcmp(left->indexes, right->indexes, count * sizeof *left->indexes) == 0;
}

/* F2, and what neighbours tell of the nodes above the one where they part. */
static size_t find_contradiction(const folding *f)
{
    for (size_t i = 1; i < f->proof->count; i++) {
        const cx_trail *last = &f->trails[i - 1], *t = &f->trails[i];
        bool together = cx_trail_ends_with_last(f->trails, i);
        if (together && !cx_digest_eq(&f->nodes[i - 1], &f->nodes[i]))
            return i;
        if (f->proof->form != CX_FORM_COMPACT &&
            !same_siblings(f, last, t, together ? t->depth : t->shared))
            return i;
    }
    return SIZE_MAX;
}

static inline const uint8_t *sibling_of(const folding *f, size_t at, size_t bit)
{
    const climber *c = &f->climbers[at];
    const cx_raw_proof *proof = f->proof;
    if (c->indexes == NULL)
        return cx_raw_sibling(proof, &proof->items[f->trails[at].item], bit);
    uint32_t index = c->indexes[bit - c->index_base];
    return index == 0 ? zeros.bytes : proof->pool + (index - 1) * proof->pool_stride;
}

static bool names_sibling(const folding *f, size_t at, size_t bit, const cx_digest *node)
{
    return memcmp(sibling_of(f, at, bit), node->bytes, sizeof node->bytes) == 0;
}

static size_t key_bit(const folding *f, size_t at, size_t bit)
{
    if (bit < 64)
        return (size_t)(f->climbers[at].turns >> (63 - bit) & 1);
    return (unsigned)f->trails[at].key->bytes[bit / 8] >> (7 - bit % 8) & 1u;
}

/* The children of the node where a greater trail is met.  False: the two disagree. */
static bool meet_trails(folding *f, size_t at, size_t bit, cx_digest pair[2])
{
    climber *c = &f->climbers[at];
    size_t met = c->met;
    pair[0] = f->nodes[at];
    pair[1] = f->nodes[met];
    set_met(f, c, f->trails[met].next);
    if (f->lefts != NULL)
        f->lefts[met] = pair[0];
    return f->proof->form == CX_FORM_COMPACT ||
           (names_sibling(f, at, bit, &pair[1]) && names_sibling(f, met, bit, &pair[0]));
}

/* All that are live go one up, from depth bit + 1; returns how many still are, 0 when two disagree.
 */
static size_t climb_one_level(folding *f, size_t live_count, size_t bit)
{
    cx_digest pairs[2 * GROUP];
    size_t kept = 0, hashed = 0;
    for (size_t i = 0; i < live_count; i++) {
        uint32_t at = f->live[i];
        cx_digest *pair = &pairs[2 * (kept - hashed)];
        if (f->climbers[at].last_bit == bit) /* F3 */
            continue;
        if (f->climbers[at].met_bit != bit) {
            size_t right = key_bit(f, at, bit);
            pair[right] = f->nodes[at];
            memcpy(pair[1 - right].bytes, sibling_of(f, at, bit), sizeof(cx_digest));
        } else if (!meet_trails(f, at, bit, pair)) {
            return 0;
        }
        f->live[kept++] = at;
        if (kept - hashed == GROUP) {
            cx_scheme_smt_nodes(f->scheme, pairs, pairs, GROUP);
            for (size_t k = 0; k < GROUP; k++)
                f->nodes[f->live[hashed + k]] = pairs[k];
            hashed = kept;
        }
    }
    cx_scheme_smt_nodes(f->scheme, pairs, pairs, kept - hashed);
    for (size_t k = 0; hashed < kept; k++)
        f->nodes[f->live[hashed++]] = pairs[k];
    return kept;
}

cx_status cx_raw_proof_fold(const cx_raw_proof *proof, cx_scheme scheme, cx_trail *trails,
                            cx_digest *nodes, cx_digest *lefts, cx_arena *arena, bool *out_agree,
                            size_t *out_against, cx_err *err)
{
    folding f = {
        .proof = proof, .scheme = scheme, .trails = trails, .nodes = nodes, .lefts = lefts};
    size_t against = proof->form == CX_FORM_COMPACT ? SIZE_MAX /* linked already */
                                                    : cx_trails_link(trails, proof->count);
    *out_agree = false;
    *out_against = against;
    if (against != SIZE_MAX)
        return CX_SUCCESS;
    if (!allocate_climbers(&f, arena))
        return cx_fail_nomem(err);
    *out_against = against = find_contradiction(&f);
    if (against != SIZE_MAX)
        return CX_SUCCESS;
    start_climbers(&f);
    size_t live_count = 0;
    for (size_t depth = DEPTH_MAX; depth > 0; depth--) {
        size_t arriving = f.starts[depth + 1] - f.starts[depth];
        memcpy(f.live + live_count, f.order + f.starts[depth], arriving * sizeof *f.live);
        live_count += arriving;
        if (live_count == 0)
            continue;
        live_count = climb_one_level(&f, live_count, depth - 1);
        if (live_count == 0)
            return CX_SUCCESS;
    }
    *out_agree = true;
    return CX_SUCCESS;
}
