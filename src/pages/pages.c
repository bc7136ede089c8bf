/*
 * pages.c - opening and closing, anchors, views, overlays.
 */
#include "pages/internal.h"

CX_RESULT cx_pages_open(cx_db *db, const cx_pages_options *options, cx_pages **out, cx_err *err)
{
    cx_pages *pages = cx_alloc_zeroed(options->alloc, 1, sizeof *pages);
    if (pages == NULL)
        return cx_fail_nomem(err);
    pages->db = db;
    pages->alloc = pages->cache.alloc = options->alloc;
    pages->cache_max = options->cache_bytes;
    cx_arena_init(&pages->arena, options->alloc, 0);
    *out = pages;
    return CX_SUCCESS;
}

void cx_pages_close(cx_pages *pages)
{
    if (pages == NULL)
        return;
    for (size_t i = 0; i < SQL_COUNT; i++)
        cx_db_finish(pages->statements[i]);
    cx_page_store_done(&pages->cache);
    cx_arena_done(&pages->arena);
    cx_vec_done(&pages->items, pages->alloc);
    cx_vec_done(&pages->tasks, pages->alloc);
    cx_vec_done(&pages->sorted, pages->alloc);
    cx_vec_done(&pages->names, pages->alloc);
    cx_alloc_free(pages->alloc, pages, sizeof *pages);
}

void cx_pages_forget(cx_pages *pages)
{
    cx_page_store_done(&pages->cache);
}

cx_pages_stats cx_pages_stats_of(const cx_pages *pages)
{
    cx_pages_stats stats = pages->stats;
    stats.memory_bytes = pages->cache.bytes;
    return stats;
}

bool cx_pages_last_damage(const cx_pages *pages, cx_pages_damage *out)
{
    if (pages->damaged)
        *out = pages->damage;
    return pages->damaged;
}

/* --- anchors --------------------------------------------------------------------------------- */

cx_pages_anchor cx_pages_anchor_empty(uint64_t tree, cx_scheme scheme)
{
    return (cx_pages_anchor){
        .tree = tree, .scheme = scheme, .root = cx_scheme_smt_empty(scheme, 0)};
}

void cx_pages_anchor_encode(const cx_pages_anchor *anchor, uint8_t out[CX_PAGES_ANCHOR_SIZE])
{
    cx_writer w = cx_writer_over(out, CX_PAGES_ANCHOR_SIZE);
    cx_writer_uint(&w, (uint64_t)anchor->scheme, 1);
    cx_writer_uint(&w, anchor->height, 1);
    cx_writer_uint(&w, anchor->tree, 8);
    cx_writer_uint(&w, anchor->key_count, 8);
    cx_writer_put(&w, anchor->root.bytes, sizeof anchor->root.bytes);
    CX_ASSERT(cx_writer_ok(&w) && w.offset == CX_PAGES_ANCHOR_SIZE);
}

bool cx_pages_anchor_decode(cx_bytes bytes, cx_pages_anchor *out)
{
    cx_reader r = cx_reader_over(bytes);
    uint8_t scheme = cx_reader_u8(&r);
    cx_pages_anchor anchor = {.height = cx_reader_u8(&r)};
    anchor.tree = cx_reader_u64(&r);
    anchor.key_count = cx_reader_u64(&r);
    cx_bytes root = cx_reader_bytes(&r, sizeof anchor.root.bytes);
    if (!cx_reader_ok(&r) || cx_reader_left(&r) != 0 || scheme > CX_SCHEME_MATRIX_1 ||
        anchor.height > PAGE_HEIGHT_MAX || anchor.tree > INT64_MAX)
        return false;
    anchor.scheme = scheme == 0 ? CX_SCHEME_CORTEX_1 : CX_SCHEME_MATRIX_1;
    memcpy(anchor.root.bytes, root.data, root.size);
    *out = anchor;
    return true;
}

/* --- views ----------------------------------------------------------------------------------- */

cx_pages_view cx_pages_view_now(const cx_pages_anchor *anchor)
{
    return (cx_pages_view){.anchor = *anchor};
}

cx_pages_view cx_pages_view_past(const cx_pages_anchor *then, const cx_pages_anchor *now,
                                 uint64_t snapshot)
{
    return (cx_pages_view){
        .anchor = *then, .past = true, .snapshot = snapshot, .height_now = now->height};
}

cx_pages_view cx_pages_view_overlay(cx_pages_overlay *overlay)
{
    return (cx_pages_view){.anchor = overlay->anchor, .overlay = overlay};
}

/* --- overlays -------------------------------------------------------------------------------- */

CX_RESULT cx_pages_overlay_open(cx_pages *pages, const cx_pages_anchor *anchor, size_t changes_max,
                                cx_pages_overlay **out, cx_err *err)
{
    cx_pages_overlay *overlay = cx_alloc_zeroed(pages->alloc, 1, sizeof *overlay);
    if (overlay == NULL)
        return cx_fail_nomem(err);
    overlay->pages = pages;
    overlay->anchor = *anchor;
    overlay->changes_left = changes_max;
    overlay->store.alloc = pages->alloc;
    *out = overlay;
    return CX_SUCCESS;
}

void cx_pages_overlay_close(cx_pages_overlay *overlay)
{
    if (overlay == NULL)
        return;
    const cx_alloc *alloc = overlay->pages->alloc;
    cx_page_store_done(&overlay->store);
    cx_alloc_free(alloc, overlay, sizeof *overlay);
}

void cx_pages_overlay_end(cx_pages_overlay *overlay)
{
    if (overlay == NULL)
        return;
    cx_pages *pages = overlay->pages;
    cx_page_store_move(&overlay->store, &pages->cache);
    cx_page_store_trim(&pages->cache, pages->cache_max);
    cx_pages_overlay_close(overlay);
}

CX_RESULT cx_pages_overlay_put(cx_pages_overlay *overlay, const cx_smt_pair *pairs, size_t count,
                               cx_err *err)
{
    static const cx_pages_moment no_moment = {.next_snapshot = 0};
    const cx_page_sink sink = {
        .pages = overlay->pages, .own = &overlay->store, .moment = &no_moment};
    if (count > overlay->changes_left)
        return cx_fail(err, CX_E_LIMIT,
                       "more changes are waiting than fit into memory; flush first");
    CX_TRY(cx_page_apply(&sink, &overlay->anchor, pairs, count, err));
    overlay->changes_left -= count;
    return CX_SUCCESS;
}

size_t cx_pages_overlay_bytes(const cx_pages_overlay *overlay)
{
    return overlay->store.bytes;
}

const cx_pages_anchor *cx_pages_overlay_anchor(const cx_pages_overlay *overlay)
{
    return &overlay->anchor;
}
