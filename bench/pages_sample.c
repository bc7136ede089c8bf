/*
 * pages_sample.c - see pages_sample.h.
 *
 * A range is built by the product's builder up to its pages of level 1; the levels above are made
 * by the same calls that a builder uses.
 */
#include "bench/pages_sample.h"

#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/diag.h"
#include "bench/must.h"
#include "pages/internal.h"

enum { RANGE_BITS = 13, RANGES = 1 << RANGE_BITS, COMMIT_RANGES = 8 };

typedef CX_VEC(cx_page_item) item_list;

typedef struct building {
    pages_sample *sample;
    cx_db *db;
    cx_pages *pages;
    cx_pages_moment moment;
    unsigned depth_1; /* of the pages of level 1 */
    uint64_t random;
    item_list items;
} building;

cx_smt_pair pages_sample_pair(uint64_t word, uint64_t number)
{
    const uint64_t other = ~number;
    cx_smt_pair pair = {cx_digest_of(cx_bytes_from(&number, sizeof number)),
                        cx_digest_of(cx_bytes_from(&other, sizeof other))};
    for (unsigned i = 0; i < 8; i++)
        pair.key.bytes[i] = (uint8_t)(word >> (56 - 8 * i));
    return pair;
}

static cx_status keep_item(building *b, cx_page_item item, cx_err *err)
{
    cx_page_item *copy = cx_vec_push(&b->items, b->pages->alloc);
    if (copy == NULL)
        return cx_fail_nomem(err);
    item.change = PAGE_NEW;
    item.old = UINT32_MAX;
    *copy = item;
    return CX_SUCCESS;
}

/* Keys at random: gaps between them are exponential. */
static cx_status add_keys(building *b, cx_page_builder *builder, uint64_t range, cx_err *err)
{
    pages_sample *s = b->sample;
    for (double at = 0;;) {
        double u = ((double)(bench_random(&b->random) >> 11) + 1) * 0x1p-53;
        at -= log(u) * RANGES / (double)s->whole;
        if (at >= 1)
            return CX_SUCCESS;
        uint64_t word = range << (64 - RANGE_BITS) | (uint64_t)(at * 0x1p51);
        if (fwrite(&word, sizeof word, 1, s->words) != 1)
            return cx_fail(err, CX_E_IO, "the file of keys could not be written");
        cx_smt_pair pair = pages_sample_pair(word, s->keys++);
        CX_TRY(cx_page_builder_add(builder, &pair, err));
    }
}

static cx_status build_range(building *b, uint64_t range, cx_err *err)
{
    const cx_page_sink sink = {b->pages, NULL, &b->moment, NULL, false};
    cx_page_builder *builder;
    const cx_page_item *made;
    size_t count;
    unsigned level;
    CX_TRY(cx_page_builder_open(&sink, &b->sample->anchor, RANGE_BITS, 1, &builder, err));
    cx_status status = add_keys(b, builder, range, err);
    if (!cx_failed(status))
        status = cx_page_builder_end(builder, &made, &count, &level, err);
    for (size_t i = 0; !cx_failed(status) && i < count; i++)
        status = keep_item(b, made[i], err);
    cx_page_builder_close(builder);
    return status;
}

/* Pages of level 1 of a range that is not there. */
static cx_status invent_range(building *b, uint64_t range, cx_err *err)
{
    uint64_t count = UINT64_C(1) << (b->depth_1 - RANGE_BITS);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t prefix = (range << (b->depth_1 - RANGE_BITS) | i) << (64 - b->depth_1);
        const cx_page_item item = {.key = page_prefix_key(prefix),
                                   .hash = cx_digest_of(cx_bytes_from(&prefix, sizeof prefix)),
                                   .depth = (uint16_t)b->depth_1};
        CX_TRY(keep_item(b, item, err));
    }
    return CX_SUCCESS;
}

static cx_status build_ranges(building *b, cx_err *err)
{
    const unsigned every = RANGES / b->sample->ranges;
    for (uint64_t range = 0; range < RANGES; range++) {
        if (range % every != 0) {
            CX_TRY(invent_range(b, range, err));
            continue;
        }
        CX_TRY(build_range(b, range, err));
        if (range / every % COMMIT_RANGES != COMMIT_RANGES - 1)
            continue;
        CX_TRY(cx_db_commit(b->db, err));
        CX_TRY(cx_db_begin_write(b->db, err));
    }
    return CX_SUCCESS;
}

/* The pages of one level out of the items below them, which take their place. */
static cx_status build_level(building *b, unsigned level, cx_err *err)
{
    const cx_alloc *alloc = b->pages->alloc;
    cx_pages_anchor *anchor = &b->sample->anchor;
    item_list below = b->items;
    int left = -1;
    cx_status status = CX_SUCCESS;
    b->items = (item_list){0};
    for (size_t from = 0; from < below.count && !cx_failed(status);) {
        unsigned depth = 0;
        const cx_page_item *items = below.items + from;
        size_t count = cx_page_cut(below.items, from, below.count, left, -1, false, &depth, &left);
        cx_page *page =
            cx_page_make(alloc, anchor, level, page_mask(page_item_prefix(items), depth), depth,
                         items, count, NULL);
        status = page == NULL ? cx_fail_nomem(err)
                              : cx_page_hash(b->pages, anchor->scheme, &page, 1, err);
        if (!cx_failed(status))
            status = cx_pages_write_items(b->pages, anchor, page, &b->moment, err);
        if (!cx_failed(status))
            status = keep_item(b,
                               (cx_page_item){.key = page_prefix_key(page->prefix),
                                              .hash = page->hash,
                                              .depth = page->depth},
                               err);
        cx_page_free(alloc, page);
        b->sample->page_rows += count;
        from += count;
    }
    cx_vec_done(&below, alloc);
    return status;
}

static cx_status build_all(building *b, cx_err *err)
{
    pages_sample *s = b->sample;
    unsigned level = 1;
    CX_TRY(cx_db_begin_write(b->db, err));
    CX_TRY(build_ranges(b, err));
    do {
        level++;
        CX_TRY(build_level(b, level, err));
    } while (b->items.count > 1);
    CX_TRY(cx_db_commit(b->db, err));
    CX_TRY(cx_db_empty_log(b->db, err));
    s->anchor.root = b->items.items[0].hash;
    s->anchor.height = (uint8_t)level;
    s->anchor.key_count = s->whole;
    return fflush(s->words) == 0 ? CX_SUCCESS
                                 : cx_fail(err, CX_E_IO, "the file of keys could not be written");
}

static cx_status build_here(pages_sample *s, cx_err *err)
{
    const cx_pages_options options = CX_PAGES_OPTIONS_INIT;
    building b = {.sample = s, .random = 88172645463325252u};
    /* Up to 64 pages of leaves, 64 to 128 a prefix of one bit less: at 45 keys a page. */
    b.depth_1 = (unsigned)ceil(log2((double)s->whole / 45 / PAGE_ITEMS_MAX));
    CX_TRY(cx_db_open(s->path, CX_DB_WRITE, &b.db, err));
    cx_status status = cx_pages_create_tables(b.db, err);
    if (!cx_failed(status))
        status = cx_pages_open(b.db, &options, &b.pages, err);
    if (!cx_failed(status)) {
        status = build_all(&b, err);
        cx_vec_done(&b.items, b.pages->alloc);
        cx_pages_close(b.pages);
    }
    cx_db_close(b.db);
    return status;
}

CX_RESULT pages_sample_build(pages_sample *sample, cx_err *err)
{
    int ends[2], status = 0;
    CX_ASSERT(sample->ranges > 0 && sample->ranges <= RANGES && pipe(ends) == 0);
    sample->anchor = cx_pages_anchor_empty(sample->tree, CX_SCHEME_CORTEX_1);
    pid_t child = fork();
    if (child == 0) {
        cx_err why = {0};
        bool failed = cx_failed(build_here(sample, &why));
        if (failed)
            (void)fprintf(stderr, "%s\n", why.message);
        _exit(failed || write(ends[1], sample, sizeof *sample) != (ssize_t)sizeof *sample);
    }
    (void)close(ends[1]);
    bool done = child > 0 && read(ends[0], sample, sizeof *sample) == (ssize_t)sizeof *sample;
    (void)close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || !done)
        return cx_fail(err, CX_E_IO, "the sample could not be made");
    return CX_SUCCESS;
}
