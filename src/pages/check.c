/*
 * check.c - every page of a tree against the hash in the row above it (P4).
 */
#include "pages/internal.h"

typedef struct checking {
    cx_pages *pages;
    cx_page_source source;
    cx_pages_damaged *damaged;
    void *arg;
    uint64_t pages_checked;
} checking;

/* matrix-1 hashes the values of a page only when they are asked for. */
static cx_status check_values(const checking *c, const cx_page *page, cx_err *err)
{
    const cx_pages_anchor *anchor = &c->source.anchor;
    cx_digest ignored;
    for (size_t i = 0; anchor->scheme == CX_SCHEME_MATRIX_1 && i < page->item_count; i++)
        if (!cx_page_check_leaf(c->pages, anchor->scheme, page, i, cx_page_item_depth(page, i),
                                &ignored))
            return cx_pages_fail_damage(c->pages, anchor, 0, page->prefix, page->depth, false,
                                        "a value does not lead to its hash", err);
    return CX_SUCCESS;
}

/* The page; NULL when it was reported instead. */
static cx_status fetch_page(checking *c, unsigned level, const cx_page_want *want, cx_page **out,
                            cx_err *err)
{
    cx_err reason = {0};
    cx_pages_damage where;
    cx_status status = cx_pages_fetch(c->pages, &c->source, level, want, 1, out, &reason);
    if (!cx_failed(status) && level == 0)
        status = check_values(c, *out, &reason);
    c->pages_checked++;
    if (!cx_failed(status))
        return CX_SUCCESS;
    *out = NULL;
    if (status.code != CX_E_FORMAT || !cx_pages_last_damage(c->pages, &where))
        return cx_fail_at(err, status.code, reason.tag, CX_NO_OFFSET, "%s", reason.message);
    return c->damaged(c->arg, &where, reason.message, err);
}

/* Not deeper than the tree is high, which is at most PAGE_HEIGHT_MAX. */
static cx_status check_page(checking *c, unsigned level, const cx_page_want *want, cx_err *err)
{
    cx_page *page;
    CX_TRY(fetch_page(c, level, want, &page, err));
    if (page == NULL || level == 0)
        return CX_SUCCESS;
    const size_t count = page->item_count, size = (count + 1) * sizeof *want;
    cx_page_want *below = cx_alloc_new(c->pages->alloc, size);
    if (below == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        below[i] = (cx_page_want){page_item_prefix(&page->items[i]), (uint8_t)page->items[i].depth,
                                  page->items[i].hash};
    cx_page_store_trim(&c->pages->cache, c->pages->cache_max);
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < count && !cx_failed(status); i++)
        status = check_page(c, level - 1, &below[i], err);
    cx_alloc_free(c->pages->alloc, below, size);
    return status;
}

CX_RESULT cx_pages_check(cx_pages *pages, const cx_pages_anchor *anchor, cx_pages_damaged *damaged,
                         void *arg, uint64_t *out_checked, cx_err *err)
{
    checking c = {.pages = pages, .source = {.anchor = *anchor}, .damaged = damaged, .arg = arg};
    const cx_page_want root = {0, 0, anchor->root};
    *out_checked = 0;
    if (anchor->height > PAGE_HEIGHT_MAX)
        return cx_pages_fail_damage(pages, anchor, anchor->height, 0, 0, false,
                                    "the tree is higher than any", err);
    cx_pages_forget(pages); /* rows are to be read */
    CX_TRY(check_page(&c, anchor->height, &root, err));
    *out_checked = c.pages_checked;
    return CX_SUCCESS;
}
