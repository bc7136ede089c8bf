/*
 * put.c - a batch of changes: down to the pages that they touch, and up again.
 *
 * Down: of each level all pages are found and checked together (P4).  Up: items are merged with
 * what changed, cut (P2), hashed together, and the rows that differ are written.  A page that was
 * cut comes back as several items of the page above it.  Keys below none of a page's items hang
 * between two of them; they get pages of their own, one a level, made as in a build.
 */
#include <stdlib.h>

#include "pages/internal.h"

/* A page that changes touch. */
typedef struct put_task {
    cx_page *page;
    uint32_t item; /* its place in the page above */
    uint32_t from, to;
    uint32_t first_child, child_count; /* tasks of the level below */
    uint32_t first_orphan, orphan_count;
    uint32_t first_piece, piece_count; /* what it is now; none: it is as it was */
} put_task;

/* Changes whose keys are below none of a page's items, and share `depth` bits. */
typedef struct put_orphan {
    uint32_t from, to;
    unsigned depth;
    uint32_t first_piece, piece_count;
} put_orphan;

/* A page that was made of a task's. */
typedef struct put_made {
    cx_page *page;
    put_task *task;
} put_made;

typedef struct put_gone {
    uint64_t prefix;
} put_gone;

typedef struct put_level {
    CX_VEC(put_task) tasks;
    CX_VEC(put_orphan) orphans;
} put_level;

typedef struct put {
    cx_page_sink sink;
    cx_pages *pages;
    cx_pages_anchor anchor;
    const cx_smt_pair *changes; /* of the chunk, ascending */
    put_level levels[PAGE_HEIGHT_MAX + 1];
    CX_VEC(cx_page_item) pieces, merged;
    CX_VEC(cx_page *) made;
    CX_VEC(put_task *) made_of;
    CX_VEC(put_gone) gone;
    CX_VEC(cx_page_want) wants;
    CX_VEC(cx_page *) found;
    CX_VEC(cx_page *) superseded; /* in an overlay */
} put;

static void put_done(put *p)
{
    const cx_alloc *alloc = p->pages->alloc;
    for (size_t l = 0; l < CX_COUNT_OF(p->levels); l++) {
        cx_vec_done(&p->levels[l].tasks, alloc);
        cx_vec_done(&p->levels[l].orphans, alloc);
    }
    cx_vec_done(&p->pieces, alloc);
    cx_vec_done(&p->merged, alloc);
    cx_vec_done(&p->made, alloc);
    cx_vec_done(&p->made_of, alloc);
    cx_vec_done(&p->gone, alloc);
    cx_vec_done(&p->wants, alloc);
    cx_vec_done(&p->found, alloc);
    cx_vec_done(&p->superseded, alloc);
}

/* --- down ------------------------------------------------------------------------------------ */

/* How many bits a key shares with the item nearest to it, which does not cover it; plus one. */
static unsigned orphan_depth(const cx_page *page, const cx_digest *key)
{
    size_t at = cx_page_lower_bound(page, key);
    unsigned left = at == 0 ? 0 : cx_smt_difference(key, &page->items[at - 1].key);
    unsigned right = at == page->item_count ? 0 : cx_smt_difference(key, &page->items[at].key);
    unsigned shared = left > right ? left : right;
    CX_ASSERT(shared < PAGE_CUT_BITS);
    return shared + 1;
}

/* Changes from `at` on that share `depth` bits. */
static uint32_t end_of_run(const put *p, uint32_t at, uint32_t end, unsigned depth)
{
    uint64_t first = smt_word(&p->changes[at].key, 0);
    while (at < end && page_mask(smt_word(&p->changes[at].key, 0) ^ first, depth) == 0)
        at++;
    return at;
}

static cx_status route_changes(put *p, unsigned l, put_task *task, cx_err *err)
{
    put_level *here = &p->levels[l], *below = &p->levels[l - 1];
    const cx_alloc *alloc = p->pages->alloc;
    task->first_child = (uint32_t)below->tasks.count;
    task->first_orphan = (uint32_t)here->orphans.count;
    for (uint32_t at = task->from, end; at < task->to; at = end) {
        const cx_digest *key = &p->changes[at].key;
        size_t item = cx_page_cover(task->page, key);
        bool covered = item < task->page->item_count;
        unsigned depth = covered ? task->page->items[item].depth : orphan_depth(task->page, key);
        end = end_of_run(p, at, task->to, depth);
        if (covered) {
            put_task *child = cx_vec_push(&below->tasks, alloc);
            if (child == NULL)
                return cx_fail_nomem(err);
            *child = (put_task){.item = (uint32_t)item, .from = at, .to = end};
        } else {
            put_orphan *orphan = cx_vec_push(&here->orphans, alloc);
            if (orphan == NULL)
                return cx_fail_nomem(err);
            *orphan = (put_orphan){.from = at, .to = end, .depth = depth};
        }
    }
    task->child_count = (uint32_t)below->tasks.count - task->first_child;
    task->orphan_count = (uint32_t)here->orphans.count - task->first_orphan;
    return CX_SUCCESS;
}

static cx_page_source source_of(const put *p)
{
    return (cx_page_source){.anchor = p->anchor, .own = p->sink.own};
}

/* The pages of the level below. */
static cx_status fetch_below(put *p, unsigned l, cx_err *err)
{
    const cx_page_source source = source_of(p);
    put_level *here = &p->levels[l], *below = &p->levels[l - 1];
    if (!cx_vec_reserve(&p->wants, below->tasks.count, p->pages->alloc) ||
        !cx_vec_reserve(&p->found, below->tasks.count, p->pages->alloc))
        return cx_fail_nomem(err);
    size_t count = 0;
    for (size_t t = 0; t < here->tasks.count; t++) {
        const put_task *task = &here->tasks.items[t];
        for (uint32_t c = 0; c < task->child_count; c++) {
            const put_task *child = &below->tasks.items[task->first_child + c];
            const cx_page_item *item = &task->page->items[child->item];
            p->wants.items[count++] =
                (cx_page_want){page_item_prefix(item), (uint8_t)item->depth, item->hash};
        }
    }
    CX_TRY(cx_pages_fetch(p->pages, &source, l - 1, p->wants.items, count, p->found.items, err));
    for (size_t i = 0; i < count; i++)
        below->tasks.items[i].page = p->found.items[i];
    return CX_SUCCESS;
}

static cx_status go_down(put *p, uint32_t count, cx_err *err)
{
    const cx_page_source source = source_of(p);
    unsigned height = p->anchor.height;
    cx_page *root;
    for (size_t l = 0; l < CX_COUNT_OF(p->levels); l++)
        p->levels[l].tasks.count = p->levels[l].orphans.count = 0;
    CX_TRY(cx_pages_fetch_root(p->pages, &source, &root, err));
    put_task *task = cx_vec_push(&p->levels[height].tasks, p->pages->alloc);
    if (task == NULL)
        return cx_fail_nomem(err);
    *task = (put_task){.page = root, .from = 0, .to = count};
    for (unsigned l = height; l > 0; l--) {
        for (size_t t = 0; t < p->levels[l].tasks.count; t++)
            CX_TRY(route_changes(p, l, &p->levels[l].tasks.items[t], err));
        CX_TRY(fetch_below(p, l, err));
    }
    return CX_SUCCESS;
}

/* --- merging --------------------------------------------------------------------------------- */

static cx_page_item *add_merged(put *p, const cx_page_item *item, page_change change, uint32_t old)
{
    cx_page_item *copy = cx_vec_push(&p->merged, p->pages->alloc);
    if (copy == NULL)
        return NULL;
    *copy = *item;
    copy->change = (uint8_t)change;
    copy->old = old;
    return copy;
}

/* Whether anything changed; the leaves of the page are then in `merged`. */
static cx_status merge_leaves(put *p, const put_task *task, bool *out_changed, cx_err *err)
{
    const cx_page *page = task->page;
    uint32_t at = task->from, i = 0;
    *out_changed = false;
    while (at < task->to || i < page->item_count) {
        const cx_smt_pair *change = at < task->to ? &p->changes[at] : NULL;
        int order = change == NULL ? -1
                    : i == page->item_count
                        ? 1
                        : memcmp(page->items[i].key.bytes, change->key.bytes, 32);
        bool same =
            order < 0 || (order == 0 && cx_digest_eq(&page->items[i].value, &change->value));
        cx_page_item *item;
        if (same) {
            item = add_merged(p, &page->items[i], PAGE_SAME, i);
        } else {
            const cx_page_item changed = {
                .key = change->key, .value = change->value, .stale = true};
            item = add_merged(p, &changed, order == 0 ? PAGE_CHANGED : PAGE_NEW,
                              order == 0 ? i : UINT32_MAX);
            p->anchor.key_count += order > 0;
            *out_changed = true;
        }
        if (item == NULL)
            return cx_fail_nomem(err);
        i += order <= 0;
        at += order >= 0;
    }
    return CX_SUCCESS;
}

/* Pages of their own for keys that are below no item: their items at level l - 1. */
static cx_status build_orphan(put *p, unsigned l, put_orphan *orphan, cx_err *err)
{
    cx_page_builder *b;
    const cx_page_item *items;
    size_t count;
    unsigned level;
    CX_TRY(cx_page_builder_open(&p->sink, &p->anchor, orphan->depth, (int)l - 1, &b, err));
    cx_status status = CX_SUCCESS;
    for (uint32_t i = orphan->from; i < orphan->to; i++)
        CX_TRY_GOTO(status, cx_page_builder_add(b, &p->changes[i], err));
    CX_TRY_GOTO(status, cx_page_builder_end(b, &items, &count, &level, err));
    if (!cx_vec_reserve(&p->pieces, p->pieces.count + count, p->pages->alloc)) {
        status = cx_fail_nomem(err);
        goto done;
    }
    orphan->first_piece = (uint32_t)p->pieces.count;
    orphan->piece_count = (uint32_t)count;
    memcpy(p->pieces.items + p->pieces.count, items, count * sizeof *items);
    p->pieces.count += count;
    p->anchor.key_count += orphan->to - orphan->from;
done:
    cx_page_builder_close(b);
    return status;
}

/* The items that a child's page became.  The first one may keep the row. */
static cx_status merge_child(put *p, const cx_page_item *was, uint32_t i, const put_task *child,
                             cx_err *err)
{
    const cx_page_item *pieces = p->pieces.items + child->first_piece;
    bool keeps_row = page_item_prefix(&pieces[0]) == page_item_prefix(was);
    for (uint32_t k = 0; k < child->piece_count; k++) {
        page_change change = k == 0 && keeps_row ? PAGE_CHANGED : PAGE_NEW;
        uint32_t old = child->piece_count == 1 && pieces[0].depth == was->depth ? i : UINT32_MAX;
        if (add_merged(p, &pieces[k], change, old) == NULL)
            return cx_fail_nomem(err);
    }
    if (!keeps_row) {
        put_gone *gone = cx_vec_push(&p->gone, p->pages->alloc);
        if (gone == NULL)
            return cx_fail_nomem(err);
        gone->prefix = page_item_prefix(was);
    }
    return CX_SUCCESS;
}

static cx_status merge_orphan(put *p, const put_orphan *orphan, cx_err *err)
{
    for (uint32_t k = 0; k < orphan->piece_count; k++)
        if (add_merged(p, &p->pieces.items[orphan->first_piece + k], PAGE_NEW, UINT32_MAX) == NULL)
            return cx_fail_nomem(err);
    return CX_SUCCESS;
}

static cx_status merge_pages(put *p, unsigned l, const put_task *task, bool *out_changed,
                             cx_err *err)
{
    const cx_page *page = task->page;
    const put_task *child = p->levels[l - 1].tasks.items + task->first_child;
    const put_task *child_end = child + task->child_count;
    put_orphan *orphan = p->levels[l].orphans.items + task->first_orphan;
    put_orphan *orphan_end = orphan + task->orphan_count;
    *out_changed = orphan != orphan_end;
    for (uint32_t i = 0;; i++) {
        const cx_page_item *item = i < page->item_count ? &page->items[i] : NULL;
        for (; orphan != orphan_end && (item == NULL || memcmp(p->changes[orphan->from].key.bytes,
                                                               item->key.bytes, 32) < 0);
             orphan++) {
            CX_TRY(build_orphan(p, l, orphan, err));
            CX_TRY(merge_orphan(p, orphan, err));
        }
        if (item == NULL)
            return CX_SUCCESS;
        bool touched = child != child_end && child->item == i;
        if (touched && child->piece_count != 0) {
            *out_changed = true;
            CX_TRY(merge_child(p, item, i, child, err));
        } else if (add_merged(p, item, PAGE_SAME, i) == NULL) {
            return cx_fail_nomem(err);
        }
        child += touched;
    }
}

/* --- up -------------------------------------------------------------------------------------- */

static cx_status add_made(put *p, cx_page *page, put_task *task, cx_err *err)
{
    cx_page **made = page == NULL ? NULL : cx_vec_push(&p->made, p->pages->alloc);
    put_task **of = made == NULL ? NULL : cx_vec_push(&p->made_of, p->pages->alloc);
    if (of == NULL) {
        p->made.count -= made != NULL;
        cx_page_free(p->pages->alloc, page);
        return cx_fail_nomem(err);
    }
    *made = page;
    *of = task;
    return CX_SUCCESS;
}

/* Pages of what is in `merged`, in place of the task's, which may be none. */
static cx_status cut_merged(put *p, unsigned l, put_task *task, cx_err *err)
{
    const cx_page *old = task->page;
    const cx_page_item *items = p->merged.items;
    size_t count = p->merged.count, piece_count = 0;
    unsigned outer = old == NULL ? 0 : old->depth, depth;
    int left = (int)outer - 1, boundary = 0;
    for (size_t from = 0, some; from < count; from += some) {
        some = cx_page_cut(items, from, count, left, (int)outer - 1, false, &depth, &boundary);
        if (some > PAGE_ITEMS_LIMIT)
            return cx_fail(err, CX_E_LIMIT, "a tree has at most %d keys with the same 64 bits",
                           PAGE_ITEMS_LIMIT);
        uint64_t prefix = page_mask(page_item_prefix(&items[from]), depth);
        CX_TRY(add_made(
            p, cx_page_make(p->pages->alloc, &p->anchor, l, prefix, depth, items + from, some, old),
            task, err));
        left = boundary;
        piece_count++;
    }
    if (piece_count > 1 && old != NULL && p->sink.own == NULL)
        return cx_pages_write_cut(p->pages, old, l == p->anchor.height, p->sink.moment, err);
    return CX_SUCCESS;
}

/* The page is kept for the next time, and is an item of the page above. */
static cx_status keep_made(put *p, cx_page *page, put_task *task, cx_err *err)
{
    cx_page_item *piece = cx_vec_push(&p->pieces, p->pages->alloc);
    if (piece == NULL) {
        cx_page_free(p->pages->alloc, page);
        return cx_fail_nomem(err);
    }
    *piece = (cx_page_item){
        .key = page_prefix_key(page->prefix), .hash = page->hash, .depth = page->depth};
    if (task->piece_count++ == 0)
        task->first_piece = (uint32_t)(p->pieces.count - 1);
    for (uint32_t i = 0; i < page->item_count; i++)
        page->items[i].change = PAGE_SAME;
    return cx_page_keep(p->sink.own == NULL ? &p->pages->cache : p->sink.own, page)
               ? CX_SUCCESS
               : cx_fail_nomem(err);
}

/* What a page was before: no longer needed in the cache; in an overlay until the call succeeds. */
static cx_status supersede(put *p, put_task *task, cx_err *err)
{
    cx_page *page = task->page;
    task->page = NULL;
    if (page == NULL)
        return CX_SUCCESS;
    if (p->sink.own == NULL) {
        cx_page_remove(&p->pages->cache, page);
        return CX_SUCCESS;
    }
    if (cx_pages_find_page(p->sink.own, page->tree, page->level, page->prefix, page->depth,
                           &page->hash) != page)
        return CX_SUCCESS;
    cx_page **at = cx_vec_push(&p->superseded, p->pages->alloc);
    if (at == NULL)
        return cx_fail_nomem(err);
    *at = page;
    return CX_SUCCESS;
}

static cx_status write_made(put *p, unsigned l, const cx_page *page, cx_err *err)
{
    if (page->broken)
        return cx_pages_fail_damage(p->pages, &p->anchor, l, page->prefix, page->depth, false,
                                    "a value does not lead to the hash kept with it", err);
    if (p->sink.own != NULL)
        return CX_SUCCESS;
    return cx_pages_write_items(p->pages, &p->anchor, page, p->sink.moment, err);
}

/* Hashes and writes what was made of a level's pages. */
static cx_status finish_level(put *p, unsigned l, cx_err *err)
{
    size_t done = 0;
    cx_status status = cx_page_hash(p->pages, p->anchor.scheme, p->made.items, p->made.count, err);
    for (size_t i = 0; i < p->gone.count && !cx_failed(status) && p->sink.own == NULL; i++)
        status = cx_pages_write_gone(p->pages, p->anchor.tree, l - 1, p->gone.items[i].prefix,
                                     p->sink.moment, err);
    while (done < p->made.count && !cx_failed(status)) {
        cx_page *page = p->made.items[done];
        put_task *task = p->made_of.items[done];
        status = write_made(p, l, page, err);
        if (cx_failed(status))
            break;
        done++;
        status = keep_made(p, page, task, err);
        if (!cx_failed(status) && task->piece_count == 1)
            status = supersede(p, task, err);
    }
    for (; done < p->made.count; done++)
        cx_page_free(p->pages->alloc, p->made.items[done]);
    p->made.count = p->made_of.count = p->gone.count = 0;
    return status;
}

static cx_status free_made(put *p, cx_status status)
{
    for (size_t i = 0; i < p->made.count; i++)
        cx_page_free(p->pages->alloc, p->made.items[i]);
    p->made.count = p->made_of.count = p->gone.count = 0;
    return status;
}

static cx_status go_up(put *p, unsigned l, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    for (size_t t = 0; t < p->levels[l].tasks.count && !cx_failed(status); t++) {
        put_task *task = &p->levels[l].tasks.items[t];
        bool changed;
        p->merged.count = 0;
        status =
            l == 0 ? merge_leaves(p, task, &changed, err) : merge_pages(p, l, task, &changed, err);
        if (!cx_failed(status) && changed)
            status = cut_merged(p, l, task, err);
    }
    return cx_failed(status) ? free_made(p, status) : finish_level(p, l, err);
}

/* A root page that was cut gets a root above its pieces. */
static cx_status grow(put *p, put_task root, cx_err *err)
{
    while (root.piece_count > 1) {
        if (p->anchor.height == PAGE_HEIGHT_MAX)
            return cx_fail(err, CX_E_LIMIT, "a tree has at most %d levels of pages",
                           PAGE_HEIGHT_MAX);
        put_task above = {.page = NULL};
        p->merged.count = 0;
        for (uint32_t k = 0; k < root.piece_count; k++)
            if (add_merged(p, &p->pieces.items[root.first_piece + k], PAGE_NEW, UINT32_MAX) == NULL)
                return cx_fail_nomem(err);
        p->anchor.height++;
        cx_status status = cut_merged(p, p->anchor.height, &above, err);
        if (cx_failed(status))
            return free_made(p, status);
        CX_TRY(finish_level(p, p->anchor.height, err));
        root = above;
    }
    p->anchor.root = p->pieces.items[root.first_piece].hash;
    return CX_SUCCESS;
}

static cx_status apply_chunk(put *p, const cx_smt_pair *changes, uint32_t count, cx_err *err)
{
    p->changes = changes;
    p->pieces.count = p->made.count = p->made_of.count = p->gone.count = 0;
    CX_TRY(go_down(p, count, err));
    for (unsigned l = 0; l <= p->anchor.height; l++)
        CX_TRY(go_up(p, l, err));
    put_task root = p->levels[p->anchor.height].tasks.items[0];
    if (root.piece_count != 0)
        CX_TRY(grow(p, root, err));
    cx_page_store_trim(&p->pages->cache, p->pages->cache_max);
    return CX_SUCCESS;
}

/* --- the changes ----------------------------------------------------------------------------- */

/* By key; equal keys as they were given, which is how they lie in memory. */
static int compare_pairs(const void *a, const void *b)
{
    const cx_smt_pair *x = *(const cx_smt_pair *const *)a, *y = *(const cx_smt_pair *const *)b;
    int order = memcmp(x->key.bytes, y->key.bytes, sizeof x->key.bytes);
    return order != 0 ? order : (x > y) - (x < y);
}

/* Sorted, of equal keys the last one; the caller frees `count` of them. */
static cx_status sort_changes(cx_pages *pages, const cx_smt_pair *pairs, size_t count,
                              cx_smt_pair **out, size_t *out_kept, cx_err *err)
{
    size_t size, kept = 0;
    if (!cx_size_mul(count, sizeof(cx_smt_pair), &size) || count > UINT32_MAX)
        return cx_fail_nomem(err);
    const cx_smt_pair **order = cx_alloc_new(pages->alloc, count * sizeof(const cx_smt_pair *));
    cx_smt_pair *sorted = order == NULL ? NULL : cx_alloc_new(pages->alloc, size);
    if (sorted == NULL) {
        cx_alloc_free(pages->alloc, order, count * sizeof *order);
        return cx_fail_nomem(err);
    }
    for (size_t i = 0; i < count; i++)
        order[i] = &pairs[i];
    qsort(order, count, sizeof *order, compare_pairs);
    for (size_t i = 0; i < count; i++)
        if (i + 1 == count || !cx_digest_eq(&order[i]->key, &order[i + 1]->key))
            sorted[kept++] = *order[i];
    cx_alloc_free(pages->alloc, order, count * sizeof *order);
    *out = sorted;
    *out_kept = kept;
    return CX_SUCCESS;
}

typedef struct pair_list {
    const cx_smt_pair *pairs;
    size_t count;
} pair_list;

/* A tree without keys is built. */
static cx_status build_all(put *p, const cx_smt_pair *pairs, size_t count, cx_err *err)
{
    cx_page_builder *b;
    const cx_page_item *root;
    size_t root_count;
    unsigned level;
    CX_TRY(cx_page_builder_open(&p->sink, &p->anchor, 0, -1, &b, err));
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < count; i++)
        CX_TRY_GOTO(status, cx_page_builder_add(b, &pairs[i], err));
    CX_TRY_GOTO(status, cx_page_builder_end(b, &root, &root_count, &level, err));
    p->anchor.root = root->hash;
    p->anchor.height = (uint8_t)level;
    p->anchor.key_count = count;
done:
    cx_page_builder_close(b);
    return status;
}

static cx_status apply_sorted(put *p, const cx_smt_pair *sorted, size_t count, cx_err *err)
{
    const cx_pages_anchor empty = cx_pages_anchor_empty(p->anchor.tree, p->anchor.scheme);
    if (p->anchor.height == 0 && cx_digest_eq(&p->anchor.root, &empty.root))
        return build_all(p, sorted, count, err);
    for (size_t at = 0; at < count; at += PAGE_CHUNK) {
        size_t some = count - at < PAGE_CHUNK ? count - at : PAGE_CHUNK;
        CX_TRY(apply_chunk(p, sorted + at, (uint32_t)some, err));
    }
    return CX_SUCCESS;
}

static put *open_put(const cx_page_sink *sink, const cx_pages_anchor *anchor)
{
    put *p = cx_alloc_zeroed(sink->pages->alloc, 1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->sink = *sink;
    p->pages = sink->pages;
    p->anchor = *anchor;
    return p;
}

static void close_put(put *p)
{
    const cx_alloc *alloc = p->pages->alloc;
    put_done(p);
    cx_alloc_free(alloc, p, sizeof *p);
}

static bool is_absent(const cx_smt_pair *pair)
{
    static const cx_digest absent = {{0}};
    return cx_digest_eq(&pair->value, &absent);
}

static cx_status fail_absent(cx_err *err)
{
    return cx_fail(err, CX_E_USAGE, "a value of zeros means absent");
}

CX_RESULT cx_page_apply(const cx_page_sink *sink, cx_pages_anchor *anchor, const cx_smt_pair *pairs,
                        size_t count, cx_err *err)
{
    cx_smt_pair *sorted = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (is_absent(&pairs[i]))
            return fail_absent(err);
    if (count == 0)
        return CX_SUCCESS;
    put *p = open_put(sink, anchor);
    if (p == NULL)
        return cx_fail_nomem(err);
    cx_status status = sort_changes(sink->pages, pairs, count, &sorted, &kept, err);
    if (!cx_failed(status)) {
        status = apply_sorted(p, sorted, kept, err);
        cx_alloc_free(sink->pages->alloc, sorted, count * sizeof *sorted);
    }
    if (!cx_failed(status)) {
        for (size_t i = 0; i < p->superseded.count; i++)
            cx_page_remove(sink->own, p->superseded.items[i]);
        *anchor = p->anchor;
    }
    close_put(p);
    return status;
}

CX_RESULT cx_pages_put(cx_pages *pages, cx_pages_anchor *anchor, const cx_smt_pair *pairs,
                       size_t count, const cx_pages_moment *moment, cx_err *err)
{
    CX_ASSERT(!moment->has_newest || moment->newest < moment->next_snapshot);
    const cx_page_sink sink = {.pages = pages, .moment = moment};
    return cx_page_apply(&sink, anchor, pairs, count, err);
}

/* --- changes that come sorted ----------------------------------------------------------------- */

/* The next changes of a batch; `chunk` has room for PAGE_CHUNK. */
static cx_status fill_chunk(cx_pages_next *next, void *arg, cx_smt_pair *chunk, size_t *count,
                            bool *more, cx_err *err)
{
    const cx_digest last = *count == 0 ? (cx_digest){{0}} : chunk[*count - 1].key;
    bool is_first = *count == 0;
    *count = 0;
    while (*count < PAGE_CHUNK) {
        cx_smt_pair *pair = &chunk[*count];
        const cx_digest *before = *count == 0 ? &last : &chunk[*count - 1].key;
        CX_TRY(next(arg, pair, more, err));
        if (!*more)
            return CX_SUCCESS;
        if (is_absent(pair))
            return fail_absent(err);
        if (!is_first && memcmp(before->bytes, pair->key.bytes, sizeof before->bytes) >= 0)
            return cx_fail(err, CX_E_USAGE, "keys must ascend");
        is_first = false;
        ++*count;
    }
    return CX_SUCCESS;
}

static cx_status apply_ascending(put *p, cx_pages_next *next, void *arg, cx_smt_pair *chunk,
                                 cx_err *err)
{
    size_t count = 0;
    for (bool more = true; more;) {
        CX_TRY(fill_chunk(next, arg, chunk, &count, &more, err));
        if (count != 0)
            CX_TRY(apply_sorted(p, chunk, count, err));
    }
    return CX_SUCCESS;
}

CX_RESULT cx_pages_put_sorted(cx_pages *pages, cx_pages_anchor *anchor, cx_pages_next *next,
                              void *arg, const cx_pages_moment *moment, cx_err *err)
{
    CX_ASSERT(!moment->has_newest || moment->newest < moment->next_snapshot);
    const cx_page_sink sink = {.pages = pages, .moment = moment};
    const size_t size = PAGE_CHUNK * sizeof(cx_smt_pair);
    put *p = open_put(&sink, anchor);
    if (p == NULL)
        return cx_fail_nomem(err);
    cx_smt_pair *chunk = cx_alloc_new(pages->alloc, size);
    cx_status status =
        chunk == NULL ? cx_fail_nomem(err) : apply_ascending(p, next, arg, chunk, err);
    cx_alloc_free(pages->alloc, chunk, size);
    if (!cx_failed(status))
        *anchor = p->anchor;
    close_put(p);
    return status;
}
