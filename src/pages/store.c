/*
 * store.c - pages in memory, found by tree, level, prefix, depth and hash (M3), oldest out first.
 */
#include "pages/internal.h"

enum { BUCKETS_MIN = 256 };

static size_t bucket_of(const cx_page_store *store, uint64_t tree, unsigned level, uint64_t prefix,
                        const cx_digest *hash)
{
    uint64_t mixed = smt_word(hash, 0) ^ prefix ^ tree * UINT64_C(0x9e3779b97f4a7c15) ^ level;
    mixed ^= mixed >> 32;
    return (size_t)mixed & (store->bucket_count - 1);
}

static void unlink_page(cx_page_store *store, cx_page *page)
{
    *(page->newer == NULL ? &store->newest : &page->newer->older) = page->older;
    *(page->older == NULL ? &store->oldest : &page->older->newer) = page->newer;
}

static void link_newest(cx_page_store *store, cx_page *page)
{
    page->newer = NULL;
    page->older = store->newest;
    *(store->newest == NULL ? &store->oldest : &store->newest->newer) = page;
    store->newest = page;
}

cx_page *cx_pages_find_page(cx_page_store *store, uint64_t tree, unsigned level, uint64_t prefix,
                            unsigned depth, const cx_digest *hash)
{
    if (store->bucket_count == 0)
        return NULL;
    cx_page *page = store->buckets[bucket_of(store, tree, level, prefix, hash)];
    while (page != NULL && (page->tree != tree || page->level != level || page->prefix != prefix ||
                            page->depth != depth || !cx_digest_eq(&page->hash, hash)))
        page = page->next;
    if (page != NULL && store->newest != page) {
        unlink_page(store, page);
        link_newest(store, page);
    }
    return page;
}

static bool grow_buckets(cx_page_store *store)
{
    size_t count = store->bucket_count == 0 ? BUCKETS_MIN : 2 * store->bucket_count;
    cx_page **buckets = cx_alloc_zeroed(store->alloc, count, sizeof(cx_page *));
    if (buckets == NULL)
        return false;
    cx_alloc_free(store->alloc, store->buckets, store->bucket_count * sizeof *store->buckets);
    store->buckets = buckets;
    store->bucket_count = count;
    for (cx_page *page = store->newest; page != NULL; page = page->older) {
        size_t at = bucket_of(store, page->tree, page->level, page->prefix, &page->hash);
        page->next = buckets[at];
        buckets[at] = page;
    }
    return true;
}

bool cx_page_keep(cx_page_store *store, cx_page *page)
{
    cx_page *same =
        cx_pages_find_page(store, page->tree, page->level, page->prefix, page->depth, &page->hash);
    if (same != NULL)
        cx_page_remove(store, same);
    if (store->page_count >= store->bucket_count && !grow_buckets(store)) {
        cx_page_free(store->alloc, page);
        return false;
    }
    size_t at = bucket_of(store, page->tree, page->level, page->prefix, &page->hash);
    page->next = store->buckets[at];
    store->buckets[at] = page;
    link_newest(store, page);
    store->page_count++;
    store->bytes += page->size_bytes;
    return true;
}

static void take_out(cx_page_store *store, cx_page *page)
{
    cx_page **link =
        &store->buckets[bucket_of(store, page->tree, page->level, page->prefix, &page->hash)];
    while (*link != page)
        link = &(*link)->next;
    *link = page->next;
    unlink_page(store, page);
    store->page_count--;
    store->bytes -= page->size_bytes;
}

void cx_page_remove(cx_page_store *store, cx_page *page)
{
    take_out(store, page);
    cx_page_free(store->alloc, page);
}

void cx_page_store_move(cx_page_store *from, cx_page_store *to)
{
    while (from->oldest != NULL) {
        cx_page *page = from->oldest;
        take_out(from, page);
        (void)cx_page_keep(to, page); /* freed where there is no memory for it */
    }
}

void cx_page_store_trim(cx_page_store *store, size_t bytes_max)
{
    while (store->bytes > bytes_max)
        cx_page_remove(store, store->oldest);
}

void cx_page_store_done(cx_page_store *store)
{
    cx_page_store_trim(store, 0);
    cx_alloc_free(store->alloc, store->buckets, store->bucket_count * sizeof *store->buckets);
    store->buckets = NULL;
    store->bucket_count = 0;
}
