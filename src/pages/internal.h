/*
 * internal.h - what the files of this module share: a page in memory, where pages are kept, rows.
 *
 * A page in memory is sorted items and the branches between them.  Branch i is the one at which
 * items i and i + 1 part, so a page of n items has n - 1, and their order in memory is that of the
 * keys.  A branch holds its hash as seen below the branch above it (one-sided branches of the
 * format folded in), so a step of a proof reads one branch, and a changed key costs its path.
 *
 *   M1  items ascend; those of level 0 have the page's prefix, those above begin with it.
 *   M2  an item above level 0 stands right below the branch above it: its depth follows from its
 *       neighbours.
 *   M3  a page that is kept folds to `hash`, which is part of the name under which it is found.  So
 *       a page of another moment is never taken for one of this: nothing has to be thrown away when
 *       a transaction is rolled back.
 */
#ifndef CX_PAGES_INTERNAL_H
#define CX_PAGES_INTERNAL_H

#include "pages/pages.h"
#include "tree/smt_internal.h"

enum {
    PAGE_ITEMS_MAX = 64,        /* P2 */
    PAGE_CUT_BITS = 64,         /* below them nothing is cut */
    PAGE_ITEMS_LIMIT = 1 << 14, /* of keys that share the first 64 bits */
    PAGE_HEIGHT_MAX = 32,       /* one more level for each 6 bits: never reached */
    PAGE_DEPTH_NONE = 255,      /* of a row that is no page any more (a tombstone) */
    PAGE_CHUNK = 1024           /* changes worked on at a time */
};

typedef enum page_change { PAGE_SAME, PAGE_CHANGED, PAGE_NEW } page_change;

typedef struct cx_page_item {
    cx_digest key;      /* level 0: the key; above: the prefix and zeros */
    cx_digest value;    /* level 0 */
    cx_digest hash;     /* as seen below the branch above it */
    uint16_t depth;     /* above level 0: of the page below */
    uint16_t old_depth; /* of one that moved */
    uint8_t change;     /* page_change: what its row needs */
    bool stale;         /* `hash` is to be made of key and value */
    bool moved;         /* matrix-1: as seen at old_depth it must be the hash that was there */
    bool checked;       /* matrix-1: the value was hashed, and led to `hash` */
    uint32_t old;       /* while a page is remade: its place in the old one, or UINT32_MAX */
} cx_page_item;

#define PAGE_LEAF 0x8000u /* of a child: the rest is the number of an item, not of a branch */

typedef struct cx_page_branch {
    cx_digest hash; /* as seen at `depth` */
    uint16_t bit;
    uint16_t depth; /* below the branch above it, or of the page */
    uint16_t child[2];
    uint16_t order; /* branches[k].order is the k-th branch, those below a branch before it */
    bool stale;
} cx_page_branch;

typedef struct cx_page {
    struct cx_page *next; /* in the same bucket */
    struct cx_page *newer, *older;
    uint64_t tree;
    uint64_t prefix;
    uint8_t level;
    uint8_t depth;
    bool broken;  /* a value did not lead to the hash kept with it */
    uint16_t top; /* child: where its way begins; not used without items */
    uint32_t item_count;
    cx_digest hash;
    size_t size_bytes;
    cx_page_item *items;
    cx_page_branch *branches;
} cx_page;

/* Pages by name; a cache when it is trimmed, the pages of an overlay when not. */
typedef struct cx_page_store {
    const cx_alloc *alloc;
    cx_page **buckets; /* a power of two */
    size_t bucket_count;
    size_t page_count;
    size_t bytes;
    cx_page *newest, *oldest;
} cx_page_store;

/* A node to be hashed. */
typedef struct cx_page_task {
    uint32_t page;
    uint16_t branch;
    uint16_t bit;
} cx_page_task;

enum {
    SQL_LEAVES,
    SQL_LEAF,
    SQL_PUT_LEAF,
    SQL_SET_LEAF,
    SQL_KEEP_LEAF,
    SQL_PAGES,
    SQL_PAGE,
    SQL_PUT_PAGE,
    SQL_SET_PAGE,
    SQL_KEEP_PAGE,
    SQL_DELETE_PAGE,
    SQL_PREFIXES,
    SQL_KEEP_CUT,
    SQL_LEAF_THEN,
    SQL_PAGE_THEN,
    SQL_LEAVES_THEN,
    SQL_PAGES_THEN,
    SQL_CUT,
    SQL_SWEEP_LEAVES,
    SQL_SWEEP_PAGES,
    SQL_SWEEP_CUTS,
    SQL_DROP_LEAF_WAS,
    SQL_DROP_PAGE_WAS,
    SQL_DROP_CUT,
    SQL_DELETE_LEAF,
    SQL_REMOVE_PAGE,
    SQL_LEAVES_AFTER,
    SQL_REPAIR_LEAF,
    SQL_DELETE_NO_KEYS,
    SQL_COUNT
};

struct cx_pages {
    cx_db *db;
    const cx_alloc *alloc;
    size_t cache_max;
    cx_db_statement *statements[SQL_COUNT];
    cx_page_store cache;
    cx_arena arena; /* of one chunk */
    CX_VEC(cx_page_item) items;
    CX_VEC(cx_page_task) tasks, sorted;
    CX_VEC(uint8_t) names;
    cx_pages_stats stats;
    bool repairing; /* new leaves that are there keep when they came */
    bool damaged;
    cx_pages_damage damage;
};

struct cx_pages_overlay {
    cx_pages *pages;
    cx_pages_anchor anchor;
    size_t changes_left;
    cx_page_store store;
};

/* --- bits ------------------------------------------------------------------------------------- */

static inline uint64_t page_mask(uint64_t word, unsigned depth)
{
    return depth == 0 ? 0 : word & UINT64_MAX << (64 - depth);
}

static inline uint64_t page_item_prefix(const cx_page_item *item)
{
    return smt_word(&item->key, 0);
}

static inline cx_digest page_prefix_key(uint64_t prefix)
{
    cx_digest key = {{0}};
    for (unsigned i = 0; i < 8; i++)
        key.bytes[i] = (uint8_t)(prefix >> (56 - 8 * i));
    return key;
}

/* Above level 0: whether a key is below the item. */
static inline bool page_item_covers(const cx_page_item *item, const cx_digest *key)
{
    return page_mask(smt_word(key, 0) ^ smt_word(&item->key, 0), item->depth) == 0;
}

/* --- page.c ----------------------------------------------------------------------------------- */

/* A page of these items; NULL when out of memory.  All is stale, but for what `old` (or NULL) has
 * already, when items say where they were in it. */
cx_page *cx_page_make(const cx_alloc *alloc, const cx_pages_anchor *anchor, unsigned level,
                      uint64_t prefix, unsigned depth, const cx_page_item *items, size_t count,
                      const cx_page *old);
void cx_page_free(const cx_alloc *alloc, cx_page *page);
/* The depth at which an item's hash stands. */
unsigned cx_page_item_depth(const cx_page *page, size_t item);
/* M2, and prefixes without bits beyond their depth. */
bool cx_page_is_sound(const cx_page *page);
/* The first item whose key is not less; item_count when there is none. */
size_t cx_page_lower_bound(const cx_page *page, const cx_digest *key);
/* Above level 0: the item that covers the key, or item_count. */
size_t cx_page_cover(const cx_page *page, const cx_digest *key);
/*
 * How many items the page has that begins with `items[from]` (P2), and its depth.  `left` is the
 * bit at which that item parts from the one before it, `right` where the last one parts from what
 * follows.  0 when it cannot be told without more items: `open`, they do not end here.
 */
size_t cx_page_cut(const cx_page_item *items, size_t from, size_t count, int left, int right,
                   bool open, unsigned *out_depth, int *out_boundary);

/* --- hash.c ----------------------------------------------------------------------------------- */

/* Hashes what is stale in pages of one scheme, in lanes, and sets their hashes. */
CX_RESULT cx_page_hash(cx_pages *pages, cx_scheme scheme, cx_page **list, size_t count,
                       cx_err *err);
/* The subtree below a branch of the page, as seen at `depth`, which its branch does not pass. */
cx_digest cx_page_branch_at(cx_pages *pages, cx_scheme scheme, const cx_page *page, unsigned child,
                            unsigned depth);
/* matrix-1: whether an item's value leads to its hash; its hash as seen at `depth`, not above. */
bool cx_page_check_leaf(cx_pages *pages, cx_scheme scheme, const cx_page *page, size_t item,
                        unsigned depth, cx_digest *out);

/* --- store.c ---------------------------------------------------------------------------------- */

cx_page *cx_pages_find_page(cx_page_store *store, uint64_t tree, unsigned level, uint64_t prefix,
                            unsigned depth, const cx_digest *hash);
/* Takes the page, in place of one of the same name; false (and frees it) when out of memory. */
bool cx_page_keep(cx_page_store *store, cx_page *page);
void cx_page_remove(cx_page_store *store, cx_page *page);
/* All pages, of the same allocator; the newest stays the newest. */
void cx_page_store_move(cx_page_store *from, cx_page_store *to);
void cx_page_store_trim(cx_page_store *store, size_t bytes_max);
void cx_page_store_done(cx_page_store *store);

/* --- rows.c ----------------------------------------------------------------------------------- */

CX_RESULT cx_pages_statement(cx_pages *pages, unsigned which, cx_db_statement **out, cx_err *err);
void cx_pages_bind_prefix(cx_db_statement *statement, int index, uint64_t prefix);
uint64_t cx_pages_prefix(const cx_db_statement *statement, int column);

/* Where pages are looked for. */
typedef struct cx_page_source {
    cx_pages_anchor anchor;
    cx_page_store *own; /* of an overlay, or NULL */
    bool past;
    uint64_t snapshot;
    uint8_t height_now;
} cx_page_source;

typedef struct cx_page_want {
    uint64_t prefix;
    uint8_t depth;
    cx_digest hash;
} cx_page_want;

/* The pages of one level, checked (P4); borrowed until the cache is trimmed. */
CX_RESULT cx_pages_fetch(cx_pages *pages, const cx_page_source *source, unsigned level,
                         const cx_page_want *wants, size_t count, cx_page **out, cx_err *err);
CX_RESULT cx_pages_fetch_root(cx_pages *pages, const cx_page_source *source, cx_page **out,
                              cx_err *err);
/* Fills pages->items with the rows of a page as they are now. */
CX_RESULT cx_pages_read_items(cx_pages *pages, const cx_pages_anchor *anchor, unsigned level,
                              uint64_t prefix, unsigned depth, cx_err *err);
CX_RESULT cx_pages_fail_damage(cx_pages *pages, const cx_pages_anchor *anchor, unsigned level,
                               uint64_t prefix, unsigned depth, bool past, const char *what,
                               cx_err *err);

/* Writes the rows of the items of a page that say so. */
CX_RESULT cx_pages_write_items(cx_pages *pages, const cx_pages_anchor *anchor, const cx_page *page,
                               const cx_pages_moment *moment, cx_err *err);
/* The row of a page that is none any more. */
CX_RESULT cx_pages_write_gone(cx_pages *pages, uint64_t tree, unsigned level, uint64_t prefix,
                              const cx_pages_moment *moment, cx_err *err);
/* What a page had before it was cut, when a snapshot may see it.  Before its rows are written. */
CX_RESULT cx_pages_write_cut(cx_pages *pages, const cx_page *page, bool is_root,
                             const cx_pages_moment *moment, cx_err *err);

/* --- build.c ---------------------------------------------------------------------------------- */

typedef struct cx_page_builder cx_page_builder;

/* Prefixes of pages that were made, ascending. */
typedef struct cx_page_made {
    struct {
        uint64_t *items;
        size_t count;
        size_t capacity;
    } levels[PAGE_HEIGHT_MAX + 1];
} cx_page_made;

/* Where the pages that are made go: rows and the cache, or an overlay's store. */
typedef struct cx_page_sink {
    cx_pages *pages;
    cx_page_store *own; /* or NULL: rows are written */
    const cx_pages_moment *moment;
    cx_page_made *made; /* of a repair, or NULL */
    bool no_rows;       /* the tree has none yet */
} cx_page_sink;

/* Bytes of a leaf's row after its key. */
static inline size_t cx_page_leaf_size(cx_scheme scheme)
{
    return (scheme == CX_SCHEME_MATRIX_1 ? 2 : 1) * sizeof(cx_digest);
}

/* Of the range of `depth` bits, up to items of level `top` (which are given back, not written), or,
 * for top < 0, of a whole tree. */
CX_RESULT cx_page_builder_open(const cx_page_sink *sink, const cx_pages_anchor *anchor,
                               unsigned depth, int top, cx_page_builder **out, cx_err *err);
CX_RESULT cx_page_builder_add(cx_page_builder *builder, const cx_smt_pair *pair, cx_err *err);
/* The items of level `top`, borrowed until it is closed; of a whole tree one, whose depth is 0, and
 * its level. */
CX_RESULT cx_page_builder_end(cx_page_builder *builder, const cx_page_item **out, size_t *out_count,
                              unsigned *out_level, cx_err *err);
void cx_page_builder_close(cx_page_builder *builder);

/* --- put.c ------------------------------------------------------------------------------------ */

/* cx_pages_put and cx_pages_overlay_put. */
CX_RESULT cx_page_apply(const cx_page_sink *sink, cx_pages_anchor *anchor, const cx_smt_pair *pairs,
                        size_t count, cx_err *err);

#endif
