/*
 * smt_load.c - putting many keys into a sparse Merkle tree at once.
 *
 * Sorted, neighbours share most of their way down.  Into an empty tree the sorted keys are not
 * searched for at all: the branches above them follow from where neighbours part.  Into a tree that
 * is there, the ways of some keys at a time are walked next to each other first, so that the memory
 * they need is on its way together; then each is put from where its way leaves that of the key
 * before.
 */
#include <stdlib.h>

#include "tree/smt_internal.h"

enum { DIGIT_BITS = 11, DIGIT_COUNT = 1 << DIGIT_BITS, PASS_COUNT = 2, FEW = 32, WALKERS = 32 };

typedef struct item {
    uint64_t head; /* of the key */
    const cx_smt_pair *pair;
} item;

/* --- sorting --------------------------------------------------------------------------------- */

/* By key; equal keys as they were given, which is how they lie in memory. */
static int compare_items(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->head != y->head)
        return x->head < y->head ? -1 : 1;
    int order = memcmp(x->pair->key.bytes, y->pair->key.bytes, sizeof x->pair->key.bytes);
    return order != 0 ? order : (x->pair > y->pair) - (x->pair < y->pair);
}

/* One pass of a radix sort; stable. */
static void distribute_items(const item *from, item *to, size_t count, unsigned shift)
{
    size_t starts[DIGIT_COUNT] = {0}, sum = 0;
    for (size_t i = 0; i < count; i++)
        starts[from[i].head >> shift & (DIGIT_COUNT - 1)]++;
    for (size_t i = 0; i < DIGIT_COUNT; i++) {
        size_t here = starts[i];
        starts[i] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++)
        to[starts[from[i].head >> shift & (DIGIT_COUNT - 1)]++] = from[i];
}

/* False when it would take long, as with keys that an attacker chose: sorted only in part then. */
static bool sort_by_insertion(item *items, size_t count)
{
    size_t moves = 0, moves_max = 16 * count;
    for (size_t i = 1; i < count; i++) {
        item now = items[i];
        size_t j = i;
        while (j > 0 && compare_items(&items[j - 1], &now) > 0) {
            items[j] = items[j - 1];
            j--;
        }
        items[j] = now;
        moves += i - j;
        if (moves > moves_max)
            return false;
    }
    return true;
}

/* `spare` has room for as many. */
static void sort_items(item *items, item *spare, size_t count)
{
    if (count > FEW) {
        unsigned shift = 64 - PASS_COUNT * DIGIT_BITS;
        distribute_items(items, spare, count, shift);
        distribute_items(spare, items, count, shift + DIGIT_BITS);
    }
    if (!sort_by_insertion(items, count))
        qsort(items, count, sizeof *items, compare_items);
}

/* Of equal keys the last one stays. */
static size_t drop_doubles(item *items, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (i + 1 == count || items[i].head != items[i + 1].head ||
            !cx_digest_eq(&items[i].pair->key, &items[i + 1].pair->key))
            items[kept++] = items[i];
    }
    return kept;
}

/* --- an empty tree --------------------------------------------------------------------------- */

/* The branches whose right side is not complete yet, from the root down. */
typedef struct spine {
    uint32_t branches[SMT_DEPTH];
    size_t count;
} spine;

/* Closes the branches below `bit`; `ref` is what hangs below the last of them on the right. */
static uint32_t close_below(cx_smt *smt, spine *s, unsigned bit, uint32_t ref)
{
    while (s->count > 0) {
        uint32_t branch = s->branches[s->count - 1];
        smt_branch *b = &smt->branches.items[branch];
        if (b->bit < bit)
            break;
        b->child[1] = ref;
        ref = branch;
        s->count--;
    }
    return ref;
}

static void build_tree(cx_smt *smt, const item *items, size_t count)
{
    spine s = {.count = 0};
    uint32_t ref = SMT_NONE;
    for (size_t i = 0; i < count; i++) {
        const cx_smt_pair *pair = items[i].pair;
        if (i + 8 < count)
            __builtin_prefetch(items[i + 8].pair);
        if (i > 0) {
            /* It differs from every branch of the spine: there two earlier keys part. */
            unsigned bit = cx_smt_difference(&items[i - 1].pair->key, &pair->key);
            ref = close_below(smt, &s, bit, ref);
            uint32_t branch = cx_smt_add_branch(smt, bit);
            smt->branches.items[branch].child[0] = ref;
            s.branches[s.count++] = branch;
        }
        ref = cx_smt_add_leaf(smt, &pair->key, &pair->value) | SMT_LEAF;
    }
    smt->root = close_below(smt, &s, 0, ref);
    smt->stale = true;
}

/* --- a tree that is there -------------------------------------------------------------------- */

/* Where the ways of sorted keys begin to part. */
static uint32_t common_ref(const cx_smt *smt, const item *items, size_t count)
{
    const cx_digest *key = &items[0].pair->key;
    unsigned shared = cx_smt_difference(key, &items[count - 1].pair->key);
    uint32_t ref = smt->root;
    while (!smt_is_leaf(ref) && smt->branches.items[ref].bit < shared) {
        const smt_branch *b = &smt->branches.items[ref];
        ref = b->child[smt_bit(key, b->bit)];
    }
    return ref;
}

static void fetch_ways(const cx_smt *smt, const item *items, size_t count)
{
    uint32_t refs[WALKERS], first = common_ref(smt, items, count);
    bool walking = !smt_is_leaf(first);
    for (size_t i = 0; i < count; i++)
        refs[i] = first;
    while (walking) {
        walking = false;
        for (size_t i = 0; i < count; i++) {
            if (smt_is_leaf(refs[i]))
                continue;
            const smt_branch *b = &smt->branches.items[refs[i]];
            refs[i] = b->child[smt_bit(&items[i].pair->key, b->bit)];
            if (smt_is_leaf(refs[i])) {
                __builtin_prefetch(&smt->leaves.items[refs[i] & ~SMT_LEAF], 1);
            } else {
                __builtin_prefetch(&smt->branches.items[refs[i]], 1);
                walking = true;
            }
        }
    }
}

/* The branches from the root to the key set last, the first `marked_count` of them marked stale. */
typedef struct trail {
    uint32_t branches[SMT_DEPTH];
    size_t count;
    size_t marked_count;
} trail;

static unsigned last_bit(const cx_smt *smt, const trail *t)
{
    return smt->branches.items[t->branches[t->count - 1]].bit;
}

/* Goes back to the branches before `bit`. */
static void go_back(const cx_smt *smt, trail *t, unsigned bit)
{
    while (t->count > 0 && last_bit(smt, t) >= bit)
        t->count--;
    t->marked_count = t->marked_count < t->count ? t->marked_count : t->count;
}

/* What hangs at the end of the trail on the key's side. */
static uint32_t *trail_link(cx_smt *smt, const trail *t, const cx_digest *key)
{
    if (t->count == 0)
        return &smt->root;
    smt_branch *b = &smt->branches.items[t->branches[t->count - 1]];
    return &b->child[smt_bit(key, b->bit)];
}

static void mark_trail(cx_smt *smt, trail *t, const cx_digest *key)
{
    smt->stale = true;
    for (; t->marked_count < t->count; t->marked_count++) {
        smt_branch *b = &smt->branches.items[t->branches[t->marked_count]];
        b->stale |= (uint8_t)(1u << smt_bit(key, b->bit));
    }
}

/* As cx_smt_set, from the end of a trail that the key follows so far. */
static void set_from_trail(cx_smt *smt, trail *t, const cx_smt_pair *pair)
{
    uint32_t ref = *trail_link(smt, t, &pair->key);
    while (!smt_is_leaf(ref)) {
        const smt_branch *b = &smt->branches.items[ref];
        t->branches[t->count++] = ref;
        ref = b->child[smt_bit(&pair->key, b->bit)];
    }
    smt_twin *found = &smt->leaves.items[ref & ~SMT_LEAF];
    unsigned bit = cx_smt_difference(&pair->key, &found->half[0]);
    if (bit == SMT_DEPTH) {
        if (cx_digest_eq(&found->half[1], &pair->value))
            return;
        found->half[1] = pair->value;
        mark_trail(smt, t, &pair->key);
        return;
    }
    go_back(smt, t, bit);
    mark_trail(smt, t, &pair->key);
    cx_smt_hang_leaf(smt, trail_link(smt, t, &pair->key), bit, &pair->key, &pair->value);
    /* A new branch is stale on both sides. */
    t->branches[t->count++] = *trail_link(smt, t, &pair->key);
    t->marked_count = t->count;
}

/* Into a tree that is not empty. */
static void insert_items(cx_smt *smt, const item *items, size_t count)
{
    trail t = {.count = 0, .marked_count = 0};
    for (size_t at = 0; at < count; at += WALKERS) {
        size_t some = count - at < WALKERS ? count - at : WALKERS;
        fetch_ways(smt, items + at, some);
        for (size_t i = at; i < at + some; i++) {
            const cx_smt_pair *pair = items[i].pair;
            go_back(smt, &t, i == 0 ? 0 : cx_smt_difference(&items[i - 1].pair->key, &pair->key));
            set_from_trail(smt, &t, pair);
        }
    }
}

static CX_RESULT check_pairs(const cx_smt *smt, const cx_smt_pair *pairs, size_t count, cx_err *err)
{
    static const cx_digest absent = {{0}};
    if (count > SMT_LEAVES_MAX - cx_smt_count(smt))
        return cx_fail(err, CX_E_LIMIT, "a tree holds at most %u keys", SMT_LEAVES_MAX);
    for (size_t i = 0; i < count; i++) {
        if (cx_digest_eq(&pairs[i].value, &absent))
            return cx_fail(err, CX_E_USAGE, "a value of zeros means absent");
    }
    return CX_SUCCESS;
}

CX_RESULT cx_smt_put_many(cx_smt *smt, const cx_smt_pair *pairs, size_t count, cx_err *err)
{
    size_t size;
    CX_TRY(check_pairs(smt, pairs, count, err));
    if (count == 0)
        return CX_SUCCESS;
    if (!cx_size_mul(count, 2 * sizeof(item), &size) ||
        !cx_smt_grow(smt, cx_smt_count(smt) + count))
        return cx_fail_nomem(err);
    item *items = cx_alloc_new(smt->alloc, size);
    if (items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        items[i] = (item){smt_word(&pairs[i].key, 0), &pairs[i]};
    sort_items(items, items + count, count);
    size_t kept = drop_doubles(items, count);
    if (smt->root == SMT_NONE)
        build_tree(smt, items, kept);
    else
        insert_items(smt, items, kept);
    cx_alloc_free(smt->alloc, items, size);
    return CX_SUCCESS;
}
