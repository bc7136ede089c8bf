/*
 * page.c - a page in memory: its branches, finding in it, and where it is cut (P2).
 */
#include "pages/internal.h"

/* --- branches -------------------------------------------------------------------------------- */

static void attach_child(cx_page *page, unsigned child, unsigned depth)
{
    if ((child & PAGE_LEAF) == 0)
        page->branches[child].depth = (uint16_t)depth;
}

/* As in a load of smt: sorted neighbours say where branches are.  A branch is closed after those
 * below it, which gives their order. */
static void link_branches(cx_page *page)
{
    uint16_t spine[SMT_DEPTH + 1];
    size_t spine_count = 0, closed_count = 0;
    uint32_t count = page->item_count;
    unsigned ref = PAGE_LEAF;
    for (uint32_t i = 0; i < count; i++) {
        int bit = -1;
        if (i + 1 < count)
            bit = (int)cx_smt_difference(&page->items[i].key, &page->items[i + 1].key);
        while (spine_count > 0 && page->branches[spine[spine_count - 1]].bit > bit) {
            uint16_t closed = spine[--spine_count];
            page->branches[closed].child[1] = (uint16_t)ref;
            page->branches[closed_count++].order = closed;
            attach_child(page, ref, page->branches[closed].bit + 1u);
            ref = closed;
        }
        if (i + 1 == count)
            break;
        cx_page_branch *b = &page->branches[i];
        b->bit = (uint16_t)bit;
        b->child[0] = (uint16_t)ref;
        b->stale = true;
        attach_child(page, ref, b->bit + 1u);
        spine[spine_count++] = (uint16_t)i;
        ref = PAGE_LEAF | (i + 1);
    }
    page->top = (uint16_t)ref;
    attach_child(page, ref, page->depth);
}

unsigned cx_page_item_depth(const cx_page *page, size_t item)
{
    unsigned depth = page->depth;
    if (item > 0 && page->branches[item - 1].bit + 1u > depth)
        depth = page->branches[item - 1].bit + 1u;
    if (item + 1 < page->item_count && page->branches[item].bit + 1u > depth)
        depth = page->branches[item].bit + 1u;
    return depth;
}

/* matrix-1: where a new neighbour moved a leaf down, it is hashed again. */
static void mark_moved_leaves(cx_page *page, const cx_page *old)
{
    for (uint32_t i = 0; i < page->item_count; i++) {
        cx_page_item *item = &page->items[i];
        if (item->stale || item->old >= old->item_count)
            continue;
        unsigned old_depth = cx_page_item_depth(old, item->old);
        if (cx_page_item_depth(page, i) != old_depth) {
            item->stale = true;
            item->moved = true;
            item->old_depth = (uint16_t)old_depth;
            item->change = item->change == PAGE_SAME ? PAGE_CHANGED : item->change;
        }
    }
}

static bool is_child_stale(const cx_page *page, unsigned child)
{
    if ((child & PAGE_LEAF) == 0)
        return page->branches[child].stale;
    const cx_page_item *item = &page->items[child & ~PAGE_LEAF];
    return item->stale || item->change != PAGE_SAME;
}

/* What stands between the same items, below a branch at the same bit, and has nothing new below it,
 * is as it was. */
static void copy_branches(cx_page *page, const cx_page *old)
{
    for (uint32_t k = 0; k + 1 < page->item_count; k++) {
        uint32_t at = page->branches[k].order, was = page->items[at].old;
        cx_page_branch *b = &page->branches[at];
        if (was >= old->item_count || was + 1 >= old->item_count ||
            page->items[at + 1].old != was + 1 || old->branches[was].depth != b->depth ||
            is_child_stale(page, b->child[0]) || is_child_stale(page, b->child[1]))
            continue;
        b->hash = old->branches[was].hash;
        b->stale = false;
    }
}

cx_page *cx_page_make(const cx_alloc *alloc, const cx_pages_anchor *anchor, unsigned level,
                      uint64_t prefix, unsigned depth, const cx_page_item *items, size_t count,
                      const cx_page *old)
{
    CX_ASSERT(count <= PAGE_ITEMS_LIMIT);
    size_t branches = count == 0 ? 0 : count - 1;
    size_t size =
        sizeof(cx_page) + count * sizeof(cx_page_item) + branches * sizeof(cx_page_branch);
    cx_page *page = cx_alloc_new(alloc, size);
    if (page == NULL)
        return NULL;
    *page = (cx_page){.tree = anchor->tree,
                      .prefix = prefix,
                      .level = (uint8_t)level,
                      .depth = (uint8_t)depth,
                      .item_count = (uint32_t)count,
                      .size_bytes = size};
    page->items = (cx_page_item *)(void *)(page + 1);
    page->branches = (cx_page_branch *)(void *)(page->items + count);
    if (count == 0)
        return page;
    memcpy(page->items, items, count * sizeof *items);
    link_branches(page);
    if (old != NULL && level == 0 && anchor->scheme == CX_SCHEME_MATRIX_1)
        mark_moved_leaves(page, old);
    if (old != NULL)
        copy_branches(page, old);
    return page;
}

void cx_page_free(const cx_alloc *alloc, cx_page *page)
{
    if (page != NULL)
        cx_alloc_free(alloc, page, page->size_bytes);
}

bool cx_page_is_sound(const cx_page *page)
{
    bool sound = true;
    for (uint32_t i = 0; i < page->item_count && page->level > 0; i++) {
        const cx_page_item *item = &page->items[i];
        uint64_t prefix = page_item_prefix(item);
        sound = sound && item->depth == cx_page_item_depth(page, i) &&
                page_mask(prefix, item->depth) == prefix;
    }
    return sound;
}

/* --- finding --------------------------------------------------------------------------------- */

size_t cx_page_lower_bound(const cx_page *page, const cx_digest *key)
{
    size_t low = 0, high = page->item_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (memcmp(page->items[middle].key.bytes, key->bytes, sizeof key->bytes) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t cx_page_cover(const cx_page *page, const cx_digest *key)
{
    size_t at = cx_page_lower_bound(page, key);
    if (at < page->item_count && page_item_covers(&page->items[at], key))
        return at;
    if (at > 0 && page_item_covers(&page->items[at - 1], key))
        return at - 1;
    return page->item_count;
}

/* --- cutting --------------------------------------------------------------------------------- */

/*
 * Of the subtrees that begin with an item the largest one that fits.  It is right to take it
 * without a look at what comes before: the page before it ended where its own subtree would have
 * become too large, so the branch above both has more than fits.
 */
size_t cx_page_cut(const cx_page_item *items, size_t from, size_t count, int left, int right,
                   bool open, unsigned *out_depth, int *out_boundary)
{
    size_t best = 0;
    int low = SMT_DEPTH + 1;
    for (size_t length = 1; from + length <= count; length++) {
        bool last = from + length == count;
        if (last && open)
            break;
        int boundary =
            last ? right
                 : (int)cx_smt_difference(&items[from + length - 1].key, &items[from + length].key);
        if (boundary < low && (boundary < PAGE_CUT_BITS || last)) {
            best = length;
            *out_boundary = boundary;
            *out_depth = (unsigned)((boundary > left ? boundary : left) + 1);
        }
        if (boundary <= left || (length >= PAGE_ITEMS_MAX && best != 0))
            break;
        low = boundary < low ? boundary : low;
    }
    return best;
}
