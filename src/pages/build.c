/*
 * build.c - pages out of sorted pairs, in one pass and in memory that does not depend on their
 * number.
 *
 * Each level holds the items whose page is not known yet: with more than 64 of them the first page
 * is (page.c).  Pages are hashed in groups; then each is an item of the level above.
 */
#include "pages/internal.h"

enum { BUILD_GROUP = 64, BUILD_MOVE = 512 };

typedef struct build_level {
    CX_VEC(cx_page_item) items;
    size_t start; /* those before it are in pages */
    int left;     /* the bit at which the first of them parts from the one before it */
    uint64_t emitted;
    cx_page *group[BUILD_GROUP]; /* not hashed yet */
    size_t group_count;
} build_level;

struct cx_page_builder {
    cx_page_sink sink;
    cx_pages_anchor anchor;
    unsigned depth;
    int top;
    build_level levels[PAGE_HEIGHT_MAX + 2];
};

CX_RESULT cx_page_builder_open(const cx_page_sink *sink, const cx_pages_anchor *anchor,
                               unsigned depth, int top, cx_page_builder **out, cx_err *err)
{
    CX_ASSERT(top <= PAGE_HEIGHT_MAX && depth <= PAGE_CUT_BITS);
    cx_page_builder *b = cx_alloc_zeroed(sink->pages->alloc, 1, sizeof *b);
    if (b == NULL)
        return cx_fail_nomem(err);
    b->sink = *sink;
    b->anchor = *anchor;
    b->depth = depth;
    b->top = top;
    for (size_t i = 0; i < CX_COUNT_OF(b->levels); i++)
        b->levels[i].left = (int)depth - 1;
    *out = b;
    return CX_SUCCESS;
}

void cx_page_builder_close(cx_page_builder *b)
{
    if (b == NULL)
        return;
    const cx_alloc *alloc = b->sink.pages->alloc;
    for (size_t l = 0; l < CX_COUNT_OF(b->levels); l++) {
        build_level *level = &b->levels[l];
        for (size_t i = 0; i < level->group_count; i++)
            cx_page_free(alloc, level->group[i]);
        cx_vec_done(&level->items, alloc);
    }
    cx_alloc_free(alloc, b, sizeof *b);
}

static cx_status add_item(cx_page_builder *b, unsigned l, const cx_page_item *item, cx_err *err);

/* Writes a page that was hashed, and keeps it; `page` is no longer the caller's. */
static cx_status emit_page(cx_page_builder *b, cx_page *page, cx_err *err)
{
    cx_pages *pages = b->sink.pages;
    cx_status status = CX_SUCCESS;
    if (b->sink.made != NULL) {
        uint64_t *prefix = cx_vec_push(&b->sink.made->levels[page->level], pages->alloc);
        if (prefix != NULL)
            *prefix = page->prefix;
        else
            status = cx_fail_nomem(err);
    }
    if (b->sink.own == NULL && !cx_failed(status))
        status = cx_pages_write_items(pages, &b->anchor, page, b->sink.moment, err);
    if (cx_failed(status)) {
        cx_page_free(pages->alloc, page);
        return status;
    }
    for (uint32_t i = 0; i < page->item_count; i++)
        page->items[i].change = PAGE_SAME;
    return cx_page_keep(b->sink.own == NULL ? &pages->cache : b->sink.own, page)
               ? CX_SUCCESS
               : cx_fail_nomem(err);
}

/* The leaves of a group's pages, one after the other. */
typedef struct leaf_list {
    const cx_page_builder *b;
    cx_page *const *pages;
    size_t page_count;
    uint32_t item; /* of the first page */
    cx_digest value[2];
} leaf_list;

/* cx_db_next_row.  An item that is written is not written again with its page. */
static cx_status next_leaf(void *arg, cx_db_value *columns, bool *out_more, cx_err *err)
{
    leaf_list *list = arg;
    const cx_pages_anchor *anchor = &list->b->anchor;
    (void)err;
    while (list->page_count != 0 && list->item == list->pages[0]->item_count) {
        list->pages++;
        list->page_count--;
        list->item = 0;
    }
    *out_more = list->page_count != 0;
    if (!*out_more)
        return CX_SUCCESS;
    cx_page_item *item = &list->pages[0]->items[list->item++];
    item->change = PAGE_SAME;
    list->value[0] = item->value;
    list->value[1] = item->hash;
    const size_t size = cx_page_leaf_size(anchor->scheme);
    columns[0] = (cx_db_value){.type = CX_DB_INT, .number = (int64_t)anchor->tree};
    columns[1] = (cx_db_value){.type = CX_DB_BYTES,
                               .bytes = cx_bytes_from(item->key.bytes, sizeof item->key.bytes)};
    columns[2] =
        (cx_db_value){.type = CX_DB_BYTES, .bytes = cx_bytes_from(list->value[0].bytes, size)};
    columns[3] =
        (cx_db_value){.type = CX_DB_INT, .number = (int64_t)list->b->sink.moment->next_snapshot};
    list->b->sink.pages->stats.rows_written++;
    list->b->sink.pages->stats.row_bytes_written += sizeof item->key + size;
    return CX_SUCCESS;
}

static cx_status write_leaves(cx_page_builder *b, cx_err *err)
{
    leaf_list list = {.b = b, .pages = b->levels[0].group, .page_count = b->levels[0].group_count};
    b->sink.pages->stats.pages_written += list.page_count;
    return list.page_count == 0
               ? CX_SUCCESS
               : cx_db_insert_rows(b->sink.pages->db, "leaf", 4, next_leaf, &list, err);
}

static cx_status emit_group(cx_page_builder *b, unsigned l, cx_err *err)
{
    build_level *level = &b->levels[l];
    cx_pages *pages = b->sink.pages;
    cx_page_item above[BUILD_GROUP];
    size_t count = level->group_count, done = 0;
    CX_TRY(cx_page_hash(pages, b->anchor.scheme, level->group, count, err));
    cx_status status = b->sink.no_rows && l == 0 ? write_leaves(b, err) : CX_SUCCESS;
    while (done < count && !cx_failed(status)) {
        cx_page *page = level->group[done];
        above[done++] = (cx_page_item){.key = page_prefix_key(page->prefix),
                                       .hash = page->hash,
                                       .depth = page->depth,
                                       .change = PAGE_NEW,
                                       .old = UINT32_MAX};
        status = emit_page(b, page, err);
    }
    level->group_count = count - done;
    memmove(level->group, level->group + done, level->group_count * sizeof *level->group);
    for (size_t i = 0; i < count && !cx_failed(status); i++)
        status = add_item(b, l + 1, &above[i], err);
    if (b->top < 0 || b->sink.made != NULL) /* otherwise a flush around this borrows pages */
        cx_page_store_trim(&pages->cache, pages->cache_max);
    return status;
}

/* Makes a page of what is at the start of a level. */
static cx_status cut_page(cx_page_builder *b, unsigned l, size_t count, unsigned depth, cx_err *err)
{
    build_level *level = &b->levels[l];
    const cx_page_item *items = level->items.items + level->start;
    uint64_t prefix = page_mask(page_item_prefix(items), depth);
    cx_page *page =
        cx_page_make(b->sink.pages->alloc, &b->anchor, l, prefix, depth, items, count, NULL);
    if (page == NULL)
        return cx_fail_nomem(err);
    level->group[level->group_count++] = page;
    level->start += count;
    level->emitted++;
    if (level->start >= BUILD_MOVE) {
        level->items.count -= level->start;
        memmove(level->items.items, level->items.items + level->start,
                level->items.count * sizeof *level->items.items);
        level->start = 0;
    }
    return level->group_count == BUILD_GROUP ? emit_group(b, l, err) : CX_SUCCESS;
}

/* Cuts all pages that are known; at the end (not `open`) these are all. */
static cx_status cut_pages(cx_page_builder *b, unsigned l, bool open, cx_err *err)
{
    build_level *level = &b->levels[l];
    while (level->items.count - level->start > (open ? PAGE_ITEMS_MAX : 0)) {
        unsigned depth = 0;
        int boundary = 0;
        size_t count = cx_page_cut(level->items.items, level->start, level->items.count,
                                   level->left, (int)b->depth - 1, open, &depth, &boundary);
        if (level->items.count - level->start > PAGE_ITEMS_LIMIT)
            return cx_fail(err, CX_E_LIMIT, "a tree has at most %d keys with the same 64 bits",
                           PAGE_ITEMS_LIMIT);
        if (count == 0)
            break;
        level->left = boundary;
        CX_TRY(cut_page(b, l, count, depth, err));
    }
    return CX_SUCCESS;
}

static cx_status add_item(cx_page_builder *b, unsigned l, const cx_page_item *item, cx_err *err)
{
    build_level *level = &b->levels[l];
    if (l >= CX_COUNT_OF(b->levels) - 1)
        return cx_fail(err, CX_E_LIMIT, "a tree has at most %d levels of pages", PAGE_HEIGHT_MAX);
    cx_page_item *copy = cx_vec_push(&level->items, b->sink.pages->alloc);
    if (copy == NULL)
        return cx_fail_nomem(err);
    *copy = *item;
    if (b->top >= 0 && l > (unsigned)b->top)
        return CX_SUCCESS;
    return cut_pages(b, l, true, err);
}

CX_RESULT cx_page_builder_add(cx_page_builder *b, const cx_smt_pair *pair, cx_err *err)
{
    const cx_page_item item = {.key = pair->key,
                               .value = pair->value,
                               .change = PAGE_NEW,
                               .stale = true,
                               .old = UINT32_MAX};
    return add_item(b, 0, &item, err);
}

CX_RESULT cx_page_builder_end(cx_page_builder *b, const cx_page_item **out, size_t *out_count,
                              unsigned *out_level, cx_err *err)
{
    unsigned l = 0;
    bool is_root = false;
    while (!is_root && (b->top < 0 || l <= (unsigned)b->top)) {
        if (l > PAGE_HEIGHT_MAX)
            return cx_fail(err, CX_E_LIMIT, "a tree has at most %d levels of pages",
                           PAGE_HEIGHT_MAX);
        CX_TRY(cut_pages(b, l, false, err));
        CX_TRY(emit_group(b, l, err));
        is_root = b->top < 0 && b->levels[l].emitted == 1;
        l++;
    }
    *out = b->levels[l].items.items + b->levels[l].start;
    *out_count = b->levels[l].items.count - b->levels[l].start;
    *out_level = l - 1;
    return CX_SUCCESS;
}

/* --- a whole tree ---------------------------------------------------------------------------- */

CX_RESULT cx_pages_build(cx_pages *pages, cx_pages_anchor *anchor, cx_pages_next *next, void *arg,
                         uint64_t next_snapshot, cx_err *err)
{
    static const cx_digest absent = {{0}};
    const cx_pages_moment moment = {.next_snapshot = next_snapshot};
    const cx_page_sink sink = {.pages = pages, .moment = &moment, .no_rows = !pages->repairing};
    cx_pages_anchor result = cx_pages_anchor_empty(anchor->tree, anchor->scheme);
    if (anchor->height != 0 || !cx_digest_eq(&anchor->root, &result.root))
        return cx_fail(err, CX_E_USAGE, "a tree that has keys is not built at once");
    cx_page_builder *b;
    cx_smt_pair pair, last = {{{0}}, {{0}}};
    const cx_page_item *root;
    size_t count;
    unsigned level;
    bool more = true;
    CX_TRY(cx_page_builder_open(&sink, anchor, 0, -1, &b, err));
    cx_status status;
    for (;;) {
        CX_TRY_GOTO(status, next(arg, &pair, &more, err));
        if (!more)
            break;
        if (cx_digest_eq(&pair.value, &absent) ||
            (result.key_count > 0 &&
             memcmp(last.key.bytes, pair.key.bytes, sizeof last.key.bytes) >= 0)) {
            status = cx_fail(err, CX_E_USAGE, "keys must ascend, and no value be zeros");
            goto done;
        }
        CX_TRY_GOTO(status, cx_page_builder_add(b, &pair, err));
        last = pair;
        result.key_count++;
    }
    if (result.key_count > 0) {
        CX_TRY_GOTO(status, cx_page_builder_end(b, &root, &count, &level, err));
        result.root = root->hash;
        result.height = (uint8_t)level;
    }
    *anchor = result;
done:
    cx_page_builder_close(b);
    return status;
}
