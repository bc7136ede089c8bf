/*
 * prove.c - roots, values and paths out of pages (ledger.md §7, §8).
 *
 * The pages on the ways of some keys are found level by level, each once.  A path is then read off
 * the branches of its pages from the root down, as in smt_prove.c: what an absent key parts from is
 * its last sibling, raised to the depth where they part.
 */
#include <stdlib.h>

#include "pages/internal.h"

enum { PROVE_CHUNK = 256 };

typedef struct proving {
    cx_pages *pages;
    cx_page_source source;
    size_t levels; /* of pages on a way */
    size_t count;
    const cx_digest **keys; /* ascending */
    cx_page **ways;         /* of key k the page of level l at k * levels + l, or NULL */
} proving;

static cx_page_source view_source(const cx_pages_view *view)
{
    return (cx_page_source){.anchor = view->anchor,
                            .own = view->overlay == NULL ? NULL : &view->overlay->store,
                            .past = view->past,
                            .snapshot = view->snapshot,
                            .height_now = view->height_now};
}

/* --- ways ------------------------------------------------------------------------------------ */

/* The pages of level l - 1, below those of level l; keys ascend, so equal pages are neighbours. */
static cx_status go_down(proving *p, size_t l, cx_page_want *wants, cx_page **found, size_t *which,
                         cx_err *err)
{
    size_t count = 0, last_item = 0;
    const cx_page *last = NULL;
    for (size_t k = 0; k < p->count; k++) {
        const cx_page *page = p->ways[k * p->levels + l];
        which[k] = SIZE_MAX;
        if (page == NULL)
            continue;
        size_t at = cx_page_cover(page, p->keys[k]);
        if (at == page->item_count)
            continue;
        if (page != last || at != last_item) {
            const cx_page_item *item = &page->items[at];
            wants[count++] =
                (cx_page_want){page_item_prefix(item), (uint8_t)item->depth, item->hash};
        }
        last = page;
        last_item = at;
        which[k] = count - 1;
    }
    CX_TRY(cx_pages_fetch(p->pages, &p->source, (unsigned)l - 1, wants, count, found, err));
    for (size_t k = 0; k < p->count; k++)
        p->ways[k * p->levels + l - 1] = which[k] == SIZE_MAX ? NULL : found[which[k]];
    return CX_SUCCESS;
}

static cx_status find_ways(proving *p, cx_err *err)
{
    cx_arena *arena = &p->pages->arena;
    p->levels = p->source.anchor.height + (size_t)1;
    p->ways = CX_ARENA_ARRAY(arena, cx_page *, p->count * p->levels);
    cx_page_want *wants = CX_ARENA_ARRAY(arena, cx_page_want, p->count);
    cx_page **found = CX_ARENA_ARRAY(arena, cx_page *, p->count);
    size_t *which = CX_ARENA_ARRAY(arena, size_t, p->count);
    cx_page *root;
    if (p->ways == NULL || wants == NULL || found == NULL || which == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_pages_fetch_root(p->pages, &p->source, &root, err));
    for (size_t k = 0; k < p->count; k++)
        p->ways[k * p->levels + p->levels - 1] = root;
    for (size_t l = p->levels - 1; l > 0; l--)
        CX_TRY(go_down(p, l, wants, found, which, err));
    return CX_SUCCESS;
}

/* --- paths ----------------------------------------------------------------------------------- */

/* A path as it grows. */
typedef struct path_work {
    cx_pages *pages;
    const cx_page_source *source;
    cx_scheme scheme;
    cx_smt_path *path;
    cx_digest siblings[SMT_DEPTH];
    unsigned depth; /* siblings so far */
} path_work;

static void fill_empty(path_work *w, unsigned to)
{
    for (; w->depth < to; w->depth++)
        w->siblings[w->depth] = cx_scheme_smt_empty(w->scheme, w->depth + 1);
}

static void add_sibling(path_work *w, unsigned bit, const cx_digest *hash)
{
    fill_empty(w, bit);
    w->siblings[w->depth++] = *hash;
}

static cx_status check_leaf(path_work *w, const cx_page *page, size_t item, unsigned depth,
                            cx_digest *out, cx_err *err)
{
    if (cx_page_check_leaf(w->pages, w->scheme, page, item, depth, out))
        return CX_SUCCESS;
    return cx_pages_fail_damage(w->pages, &w->source->anchor, 0, page->prefix, page->depth,
                                w->source->past, "a value does not lead to the hash kept with it",
                                err);
}

/* The way ends at a leaf. */
static cx_status end_at_leaf(path_work *w, const cx_page *page, size_t at, cx_err *err)
{
    const cx_page_item *item = &page->items[at];
    cx_smt_path *path = w->path;
    cx_digest hash;
    unsigned differ = cx_smt_difference(&path->key, &item->key);
    path->member = differ == SMT_DEPTH;
    if (path->member)
        path->value = item->value;
    if (w->scheme == CX_SCHEME_MATRIX_1) {
        unsigned depth = path->member ? cx_page_item_depth(page, at) : differ + 1;
        CX_TRY(check_leaf(w, page, at, depth, &hash, err));
        if (!path->member)
            add_sibling(w, differ, &hash);
    } else if (!path->member) {
        path->has_other = true;
        path->other_key = item->key;
        path->other_value = item->value;
    }
    return CX_SUCCESS;
}

/* Follows the key through one page; *out_end when its way ends there. */
static cx_status follow_page(path_work *w, const cx_page *page, bool *out_end, cx_err *err)
{
    const cx_digest *key = &w->path->key;
    *out_end = true;
    if (page->item_count == 0)
        return CX_SUCCESS;
    unsigned child = page->top;
    while ((child & PAGE_LEAF) == 0) {
        const cx_page_branch *b = &page->branches[child];
        unsigned differ = cx_smt_difference(key, &page->items[child].key);
        if (differ < b->bit) {
            cx_digest hash = cx_page_branch_at(w->pages, w->scheme, page, child, differ + 1);
            add_sibling(w, differ, &hash);
            return CX_SUCCESS;
        }
        unsigned side = smt_bit(key, b->bit), other = b->child[1 - side];
        add_sibling(w, b->bit,
                    (other & PAGE_LEAF) != 0 ? &page->items[other & ~PAGE_LEAF].hash
                                             : &page->branches[other].hash);
        child = b->child[side];
    }
    if (page->level == 0)
        return end_at_leaf(w, page, child & ~PAGE_LEAF, err);
    *out_end = false;
    return CX_SUCCESS;
}

static cx_status prove_one(const proving *p, size_t k, cx_arena *arena, cx_smt_path *path,
                           cx_err *err)
{
    path_work w = {
        .pages = p->pages, .source = &p->source, .scheme = p->source.anchor.scheme, .path = path};
    bool end = false;
    memset(path, 0, sizeof *path);
    path->key = *p->keys[k];
    for (size_t l = p->levels; l > 0 && !end; l--) {
        const cx_page *page = p->ways[k * p->levels + l - 1];
        CX_ASSERT(page != NULL); /* M2: a way that does not end in a page goes on below it */
        CX_TRY(follow_page(&w, page, &end, err));
    }
    if (w.scheme == CX_SCHEME_MATRIX_1)
        fill_empty(&w, SMT_DEPTH);
    path->sibling_count = w.depth;
    if (w.depth == 0)
        return CX_SUCCESS;
    cx_digest *siblings = CX_ARENA_ARRAY(arena, cx_digest, w.depth);
    if (siblings == NULL)
        return cx_fail_nomem(err);
    memcpy(siblings, w.siblings, w.depth * sizeof *siblings);
    path->siblings = siblings;
    return CX_SUCCESS;
}

/* --- questions ------------------------------------------------------------------------------- */

static int compare_keys(const void *a, const void *b)
{
    const cx_digest *x = *(const cx_digest *const *)a, *y = *(const cx_digest *const *)b;
    int order = memcmp(x->bytes, y->bytes, sizeof x->bytes);
    return order != 0 ? order : (x > y) - (x < y);
}

static cx_status prove_chunk(cx_pages *pages, const cx_pages_view *view, const cx_digest *keys,
                             size_t count, cx_arena *arena, cx_smt_path *paths, cx_err *err)
{
    cx_arena_mark mark = cx_arena_mark_now(&pages->arena);
    proving p = {.pages = pages, .source = view_source(view), .count = count};
    p.keys = CX_ARENA_ARRAY(&pages->arena, const cx_digest *, count);
    cx_status status = p.keys == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    for (size_t i = 0; i < count && !cx_failed(status); i++)
        p.keys[i] = &keys[i];
    if (!cx_failed(status)) {
        qsort(p.keys, count, sizeof *p.keys, compare_keys);
        status = find_ways(&p, err);
    }
    for (size_t k = 0; k < count && !cx_failed(status); k++)
        status = prove_one(&p, k, arena, &paths[p.keys[k] - keys], err);
    cx_page_store_trim(&pages->cache, pages->cache_max);
    cx_arena_reset(&pages->arena, mark);
    return status;
}

CX_RESULT cx_pages_prove(cx_pages *pages, const cx_pages_view *view, const cx_digest *keys,
                         size_t count, cx_arena *arena, const cx_smt_path **out, cx_err *err)
{
    cx_smt_path *paths = CX_ARENA_ARRAY(arena, cx_smt_path, count);
    if (paths == NULL && count != 0)
        return cx_fail_nomem(err);
    for (size_t at = 0; at < count; at += PROVE_CHUNK) {
        size_t some = count - at < PROVE_CHUNK ? count - at : PROVE_CHUNK;
        CX_TRY(prove_chunk(pages, view, keys + at, some, arena, paths + at, err));
    }
    *out = paths;
    return CX_SUCCESS;
}

CX_RESULT cx_pages_get(cx_pages *pages, const cx_pages_view *view, const cx_digest *key,
                       bool *out_found, cx_digest *out_value, cx_err *err)
{
    cx_arena_mark mark = cx_arena_mark_now(&pages->arena);
    cx_smt_path path;
    cx_status status = prove_chunk(pages, view, key, 1, &pages->arena, &path, err);
    cx_arena_reset(&pages->arena, mark);
    CX_TRY(status);
    *out_found = path.member;
    if (path.member)
        *out_value = path.value;
    return CX_SUCCESS;
}

CX_RESULT cx_pages_root(cx_pages *pages, const cx_pages_view *view, cx_digest *out, cx_err *err)
{
    const cx_page_source source = view_source(view);
    cx_page *root;
    CX_TRY(cx_pages_fetch_root(pages, &source, &root, err));
    *out = root->hash;
    cx_page_store_trim(&pages->cache, pages->cache_max);
    return CX_SUCCESS;
}
