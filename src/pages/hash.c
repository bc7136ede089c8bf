/*
 * hash.c - hashing what is stale in many pages at once, in lanes.
 *
 * First the leaves, then branches by the bit at which they part, the last bit first: what is below
 * a branch parts at a later bit, and branches at one bit do not depend on each other.
 */
#include "pages/internal.h"

/* --- leaves ---------------------------------------------------------------------------------- */

typedef struct leaf_group {
    cx_page *pages[SMT_GROUP];
    cx_page_item *items[SMT_GROUP];
    size_t count;
} leaf_group;

/* matrix-1: from depth 256 up to where each parts from its neighbours.  One that stood higher
 * before is followed up to there: what it said then must be what its value says. */
static uint64_t climb_leaves(leaf_group *g, cx_digest *hashes)
{
    smt_chain chains[SMT_GROUP];
    uint64_t hash_count;
    for (size_t i = 0; i < g->count; i++) {
        size_t at = (size_t)(g->items[i] - g->pages[i]->items);
        chains[i] = (smt_chain){hashes[i], &g->items[i]->key, SMT_DEPTH,
                                cx_page_item_depth(g->pages[i], at)};
    }
    hash_count = cx_smt_climb(CX_SCHEME_MATRIX_1, chains, g->count);
    for (size_t i = 0; i < g->count; i++) {
        hashes[i] = chains[i].hash;
        if (g->items[i]->moved)
            chains[i].to = g->items[i]->old_depth;
    }
    hash_count += cx_smt_climb(CX_SCHEME_MATRIX_1, chains, g->count);
    for (size_t i = 0; i < g->count; i++) {
        if (g->items[i]->moved && !cx_digest_eq(&chains[i].hash, &g->items[i]->hash))
            g->pages[i]->broken = true;
    }
    return hash_count;
}

static void hash_leaves(cx_pages *pages, cx_scheme scheme, leaf_group *g)
{
    cx_digest twins[2 * SMT_GROUP], hashes[SMT_GROUP];
    for (size_t i = 0; i < g->count; i++) {
        twins[2 * i] = g->items[i]->key;
        twins[2 * i + 1] = g->items[i]->value;
    }
    cx_scheme_smt_leaves(scheme, twins, hashes, g->count);
    pages->stats.hashes += g->count;
    if (scheme == CX_SCHEME_MATRIX_1)
        pages->stats.hashes += climb_leaves(g, hashes);
    for (size_t i = 0; i < g->count; i++) {
        cx_page_item *item = g->items[i];
        item->hash = hashes[i];
        item->stale = false;
        item->moved = false;
        item->checked = scheme == CX_SCHEME_MATRIX_1;
    }
    g->count = 0;
}

static void hash_stale_leaves(cx_pages *pages, cx_scheme scheme, cx_page **list, size_t count)
{
    leaf_group group = {.count = 0};
    for (size_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < list[i]->item_count; k++) {
            if (!list[i]->items[k].stale)
                continue;
            group.pages[group.count] = list[i];
            group.items[group.count++] = &list[i]->items[k];
            if (group.count == SMT_GROUP)
                hash_leaves(pages, scheme, &group);
        }
    }
    if (group.count != 0)
        hash_leaves(pages, scheme, &group);
}

/* --- branches -------------------------------------------------------------------------------- */

static const cx_digest *child_hash(const cx_page *page, unsigned child)
{
    return (child & PAGE_LEAF) != 0 ? &page->items[child & ~PAGE_LEAF].hash
                                    : &page->branches[child].hash;
}

/* Any key below a child: its bits say where one-sided branches turn. */
static const cx_digest *child_key(const cx_page *page, unsigned child)
{
    return &page->items[child & ~PAGE_LEAF].key;
}

/* All of one bit, up to SMT_GROUP. */
static void hash_branches(cx_pages *pages, cx_scheme scheme, cx_page **list,
                          const cx_page_task *tasks, size_t count)
{
    cx_digest pairs[2 * SMT_GROUP], hashes[SMT_GROUP];
    smt_chain chains[SMT_GROUP];
    size_t which[SMT_GROUP], some = 0;
    for (size_t i = 0; i < count; i++) {
        const cx_page *page = list[tasks[i].page];
        const cx_page_branch *b = &page->branches[tasks[i].branch];
        pairs[2 * i] = *child_hash(page, b->child[0]);
        pairs[2 * i + 1] = *child_hash(page, b->child[1]);
    }
    cx_scheme_smt_nodes(scheme, pairs, hashes, count);
    for (size_t i = 0; i < count; i++) {
        cx_page *page = list[tasks[i].page];
        cx_page_branch *b = &page->branches[tasks[i].branch];
        b->hash = hashes[i];
        b->stale = false;
        if (b->bit == b->depth)
            continue;
        chains[some] = (smt_chain){hashes[i], child_key(page, tasks[i].branch), b->bit, b->depth};
        which[some++] = i;
    }
    pages->stats.hashes += count + cx_smt_climb(scheme, chains, some);
    for (size_t k = 0; k < some; k++) {
        const cx_page_task *task = &tasks[which[k]];
        list[task->page]->branches[task->branch].hash = chains[k].hash;
    }
}

static bool list_stale_branches(cx_pages *pages, cx_page **list, size_t count)
{
    pages->tasks.count = 0;
    for (size_t i = 0; i < count; i++) {
        const cx_page *page = list[i];
        if (page->item_count == 0)
            continue;
        if (!cx_vec_reserve(&pages->tasks, pages->tasks.count + page->item_count, pages->alloc))
            return false;
        for (uint32_t k = 0; k + 1 < page->item_count; k++) {
            if (page->branches[k].stale)
                pages->tasks.items[pages->tasks.count++] =
                    (cx_page_task){(uint32_t)i, (uint16_t)k, page->branches[k].bit};
        }
    }
    return cx_vec_reserve(&pages->sorted, pages->tasks.count, pages->alloc);
}

/* By bit, the last one first; starts[b] is where bit b begins. */
static void sort_tasks(cx_pages *pages, size_t *starts)
{
    size_t sum = 0, at[SMT_DEPTH] = {0};
    for (size_t i = 0; i < pages->tasks.count; i++)
        at[pages->tasks.items[i].bit]++;
    for (size_t bit = SMT_DEPTH; bit-- > 0;) {
        size_t here = at[bit];
        at[bit] = starts[bit] = sum;
        sum += here;
    }
    for (size_t i = 0; i < pages->tasks.count; i++)
        pages->sorted.items[at[pages->tasks.items[i].bit]++] = pages->tasks.items[i];
}

CX_RESULT cx_page_hash(cx_pages *pages, cx_scheme scheme, cx_page **list, size_t count, cx_err *err)
{
    size_t starts[SMT_DEPTH];
    hash_stale_leaves(pages, scheme, list, count);
    if (!list_stale_branches(pages, list, count))
        return cx_fail_nomem(err);
    sort_tasks(pages, starts);
    for (size_t bit = SMT_DEPTH; bit-- > 0;) {
        size_t end = bit == 0 ? pages->tasks.count : starts[bit - 1];
        for (size_t at = starts[bit]; at < end; at += SMT_GROUP)
            hash_branches(pages, scheme, list, pages->sorted.items + at,
                          end - at < SMT_GROUP ? end - at : SMT_GROUP);
    }
    for (size_t i = 0; i < count; i++) {
        cx_page *page = list[i];
        page->hash = page->item_count == 0 ? cx_scheme_smt_empty(scheme, page->depth)
                                           : *child_hash(page, page->top);
    }
    return CX_SUCCESS;
}

/* --- single ones ----------------------------------------------------------------------------- */

cx_digest cx_page_branch_at(cx_pages *pages, cx_scheme scheme, const cx_page *page, unsigned child,
                            unsigned depth)
{
    const cx_page_branch *b = &page->branches[child];
    CX_ASSERT((child & PAGE_LEAF) == 0 && depth <= b->bit);
    smt_chain chain = {.key = child_key(page, child), .from = b->bit, .to = depth};
    chain.hash =
        cx_scheme_smt_node(scheme, child_hash(page, b->child[0]), child_hash(page, b->child[1]));
    pages->stats.hashes += 1 + cx_smt_climb(scheme, &chain, 1);
    return chain.hash;
}

bool cx_page_check_leaf(cx_pages *pages, cx_scheme scheme, const cx_page *page, size_t at,
                        unsigned depth, cx_digest *out)
{
    cx_page_item *item = &page->items[at];
    unsigned own = cx_page_item_depth(page, at);
    CX_ASSERT(depth >= own);
    smt_chain chain = {.key = &item->key, .from = SMT_DEPTH, .to = depth};
    if (item->checked && depth == own) {
        *out = item->hash;
        return true;
    }
    chain.hash = cx_scheme_smt_leaf(scheme, &item->key, &item->value);
    pages->stats.hashes += 1 + cx_smt_climb(scheme, &chain, 1);
    *out = chain.hash;
    chain.to = own;
    pages->stats.hashes += cx_smt_climb(scheme, &chain, 1);
    item->checked = cx_digest_eq(&chain.hash, &item->hash);
    return item->checked;
}
