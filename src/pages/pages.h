/*
 * pages.h - sparse Merkle trees whose nodes are ranges of rows.
 *
 * A tree has one row for each key (table `leaf`) and one for each page (table `page`).  A page is a
 * range of at most 64 rows that begin with one prefix: of keys at level 0, of pages of the level
 * below above it.  The page of all is the root page; its hash is the tree's root, and is kept by
 * the caller in a cx_pages_anchor.  Roots and proofs are those of cx_smt, byte for byte.
 *
 *   P1  The rows of a page are those that begin with its prefix, `depth` bits long.
 *   P2  A page with more than 64 rows is cut at the first bit in which they differ, again until
 *       none has more.  So the pages depend on the set of keys, never on the order of changes.
 *   P3  The hash of a page is that of the subtree below it, as seen at its depth.
 *   P4  A page that is used was folded to the hash in its row, and that page to the one above it,
 *       up to the anchor.  What does not fold is CX_E_FORMAT "DatabaseDamaged"; cx_pages_damage
 *       says where.
 *   P5  Rows are added or overwritten in place.
 *
 * All calls work on the caller's connection inside the caller's transaction: rows of trees and
 * whatever else the caller writes become durable together, or not at all.  A call that fails may
 * have written some rows: roll the transaction back and keep the anchor of before.  Nothing in
 * memory has to be told of a rollback: pages in memory are found by the hash in the row above.
 *
 * Snapshots have numbers that grow.  `next_snapshot` is the number that the next one gets: rows
 * that come now carry it, and snapshot T sees the rows that carry T or less.  What a retained
 * snapshot saw of a row that changes later is kept in the tables leaf_was, page_was and page_cut.
 *
 * Not thread-safe: a cx_pages belongs to the thread of its connection.
 */
#ifndef CX_PAGES_PAGES_H
#define CX_PAGES_PAGES_H

#include "base/api.h"
#include "db/api.h"
#include "tree/api.h"

typedef struct cx_pages cx_pages;

/* Makes the tables where they are missing. */
CX_RESULT cx_pages_create_tables(cx_db *db, cx_err *err);

typedef struct cx_pages_options {
    const cx_alloc *alloc;
    size_t cache_bytes; /* pages kept in memory between calls; a call adds to it while it works */
} cx_pages_options;
#define CX_PAGES_OPTIONS_INIT                                        \
    {                                                                \
        .alloc = cx_alloc_default(), .cache_bytes = (size_t)16 << 20 \
    }

/* Statements are prepared when they are first needed; the tables must be there by then.  Close it
 * before the connection. */
CX_RESULT cx_pages_open(cx_db *db, const cx_pages_options *options, cx_pages **out, cx_err *err);
void cx_pages_close(cx_pages *pages);
/* Drops all pages in memory; never needed for correctness. */
void cx_pages_forget(cx_pages *pages);

/* --- anchors ---------------------------------------------------------------------------------- */

/* What is known of a tree besides its rows.  A plain value, which a batch moves on. */
typedef struct cx_pages_anchor {
    uint64_t tree; /* the number that its rows carry; less than 2^63 */
    cx_scheme scheme;
    uint8_t height;     /* level of the root page */
    uint64_t key_count; /* not committed to by the root */
    cx_digest root;
} cx_pages_anchor;

/* scheme 1, height 1, tree 8, keys 8, root 32; big-endian. */
#define CX_PAGES_ANCHOR_SIZE 50

/* A tree without keys. */
cx_pages_anchor cx_pages_anchor_empty(uint64_t tree, cx_scheme scheme);
void cx_pages_anchor_encode(const cx_pages_anchor *anchor, uint8_t out[CX_PAGES_ANCHOR_SIZE]);
/* False when it is none. */
bool cx_pages_anchor_decode(cx_bytes bytes, cx_pages_anchor *out);

/* --- changes ---------------------------------------------------------------------------------- */

/* Where a batch stands between the snapshots of its tree. */
typedef struct cx_pages_moment {
    uint64_t next_snapshot; /* number that the next snapshot gets */
    bool has_newest;        /* a snapshot is retained */
    uint64_t newest;        /* the newest retained one; less than next_snapshot */
} cx_pages_moment;

/*
 * Sets the values of keys, in any order; of a key's values the last one stays.  Zeros are
 * CX_E_USAGE.  A snapshot ends a batch: changes before and after it are two calls.  Works on 1,024
 * changes at a time, so memory does not depend on `count` but for 80 bytes a change.
 */
CX_RESULT cx_pages_put(cx_pages *pages, cx_pages_anchor *anchor, const cx_smt_pair *pairs,
                       size_t count, const cx_pages_moment *moment, cx_err *err);

/* The next pair, keys ascending; *out_more is false when there is none. */
typedef cx_status cx_pages_next(void *arg, cx_smt_pair *out, bool *out_more, cx_err *err);

/* The same as cx_pages_put, in bounded memory, of changes that come sorted: each page is touched
 * once, however many they are.  Keys that do not ascend are CX_E_USAGE. */
CX_RESULT cx_pages_put_sorted(cx_pages *pages, cx_pages_anchor *anchor, cx_pages_next *next,
                              void *arg, const cx_pages_moment *moment, cx_err *err);

/*
 * Builds a tree that has no keys yet from all its pairs, in bounded memory.  Rows of it that are in
 * the tables are overwritten, but none is deleted.  Keys that do not ascend are CX_E_USAGE.
 */
CX_RESULT cx_pages_build(cx_pages *pages, cx_pages_anchor *anchor, cx_pages_next *next, void *arg,
                         uint64_t next_snapshot, cx_err *err);

/* Deletes at most `rows_max` rows of a tree from all tables; *out_done when none is left. */
CX_RESULT cx_pages_drop(cx_pages *pages, uint64_t tree, size_t rows_max, bool *out_done,
                        cx_err *err);

/* --- questions -------------------------------------------------------------------------------- */

typedef struct cx_pages_overlay cx_pages_overlay;

/* What is asked: the present, the present with changes that are not in the tables yet, or the past.
 */
typedef struct cx_pages_view {
    cx_pages_anchor anchor;    /* of the tree as it is seen */
    cx_pages_overlay *overlay; /* of that anchor, or NULL */
    bool past;                 /* as snapshot `snapshot` saw it, which must be retained */
    uint64_t snapshot;
    uint8_t height_now; /* past: the height of the tree in the tables */
} cx_pages_view;

cx_pages_view cx_pages_view_now(const cx_pages_anchor *anchor);
/* `then` is the anchor at the snapshot (its key count is not read), `now` that of the tables. */
cx_pages_view cx_pages_view_past(const cx_pages_anchor *then, const cx_pages_anchor *now,
                                 uint64_t snapshot);
/* The overlay must outlive the view, and not change while it is used. */
cx_pages_view cx_pages_view_overlay(cx_pages_overlay *overlay);

/* The root that the rows of the root page fold to, which is the anchor's, or the call fails. */
CX_RESULT cx_pages_root(cx_pages *pages, const cx_pages_view *view, cx_digest *out, cx_err *err);
/* *out_value is written when the key is there. */
CX_RESULT cx_pages_get(cx_pages *pages, const cx_pages_view *view, const cx_digest *key,
                       bool *out_found, cx_digest *out_value, cx_err *err);
/* One path a key, in the order asked, as from cx_smt_prove; memory from the arena. */
CX_RESULT cx_pages_prove(cx_pages *pages, const cx_pages_view *view, const cx_digest *keys,
                         size_t count, cx_arena *arena, const cx_smt_path **out, cx_err *err);

/* --- changes in memory alone ------------------------------------------------------------------ */

/*
 * Copies of the pages that changes touch; the tables are read and never written.  The tables must
 * stay as they were when it was opened (one read transaction, or the only writer waits): else calls
 * fail as for damaged tables.  Beyond `changes_max` changes CX_E_LIMIT.
 */
CX_RESULT cx_pages_overlay_open(cx_pages *pages, const cx_pages_anchor *anchor, size_t changes_max,
                                cx_pages_overlay **out, cx_err *err);
void cx_pages_overlay_close(cx_pages_overlay *overlay);
/* The same after a flush of some of its changes: its pages stay in the cache, where those that the
 * tables have now are found, by their hashes, without being read.  May be NULL. */
void cx_pages_overlay_end(cx_pages_overlay *overlay);
/* As cx_pages_put.  After a failure the overlay is as before. */
CX_RESULT cx_pages_overlay_put(cx_pages_overlay *overlay, const cx_smt_pair *pairs, size_t count,
                               cx_err *err);
/* What a flush of the same changes leads to. */
const cx_pages_anchor *cx_pages_overlay_anchor(const cx_pages_overlay *overlay);
/* Memory of its pages.  One change adds copies of a page or two at most, and of those above them,
 * which changes share; all pages of a tree have CX_PAGES_KEY_BYTES for each of its keys. */
size_t cx_pages_overlay_bytes(const cx_pages_overlay *overlay);
#define CX_PAGES_CHANGE_BYTES ((size_t)10 << 10)
#define CX_PAGES_KEY_BYTES ((size_t)192)

/* --- the past --------------------------------------------------------------------------------- */

/* How far a sweep of one tree is; zeros to begin with.  May be thrown away at any time. */
typedef struct cx_pages_sweep_position {
    unsigned table; /* 0 leaf_was, 1 page_was, 2 page_cut */
    bool inside;    /* the members below are the row that was looked at last */
    int64_t level;
    int64_t prefix;
    int64_t depth;
    uint64_t until;
    cx_digest key;
} cx_pages_sweep_position;

/*
 * Looks at no more than `rows_max` rows of the past and deletes those that none of the retained
 * snapshots (ascending) sees; these are all that are retained at this call, also those that were
 * made since the sweep began.  *out_done when the end was reached; the position is then at the
 * beginning again.  Rows of a snapshot that was dropped are harmless until then.
 */
CX_RESULT cx_pages_sweep(cx_pages *pages, uint64_t tree, const uint64_t *retained, size_t count,
                         size_t rows_max, cx_pages_sweep_position *position, bool *out_done,
                         cx_err *err);

/* --- damage ----------------------------------------------------------------------------------- */

/* The page that did not fold. */
typedef struct cx_pages_damage {
    uint64_t tree;
    uint8_t level;
    uint8_t depth;
    uint64_t prefix; /* `depth` bits, the others zero */
    bool past;       /* as a snapshot saw it: only a rebuild of the tables helps */
} cx_pages_damage;

/* The one that the last "DatabaseDamaged" of this object was about; false when there was none. */
bool cx_pages_last_damage(const cx_pages *pages, cx_pages_damage *out);

/* A page that does not fold, and why. */
typedef cx_status cx_pages_damaged(void *arg, const cx_pages_damage *where, const char *why,
                                   cx_err *err);
/*
 * Reads all pages of a tree as it is now, and names each that does not fold; what is below such a
 * page is not looked at.  Rows of the past, and when a row came, are not part of any hash of now.
 */
CX_RESULT cx_pages_check(cx_pages *pages, const cx_pages_anchor *anchor, cx_pages_damaged *damaged,
                         void *arg, uint64_t *out_checked, cx_err *err);
/*
 * Makes the rows below the page at `level` and `prefix` of the tree again.  `next` (or NULL, when
 * the leaves are right) gives all true pairs of the tree under that prefix, ascending; rows that
 * come back carry `born`.  With the leaves the pages below are made from them.  They must fold to
 * the hash in the row above, else CX_E_FORMAT "DatabaseDamaged" and the transaction is to be rolled
 * back.  Rows of the past are not touched.
 */
CX_RESULT cx_pages_repair(cx_pages *pages, const cx_pages_anchor *anchor, uint8_t level,
                          uint64_t prefix, cx_pages_next *next, void *arg, uint64_t born,
                          cx_err *err);

/* --- comparison ------------------------------------------------------------------------------- */

typedef struct cx_pages_difference {
    const char *table; /* "leaf" or "page" */
    bool missing_left; /* the row is only on the right */
    bool missing_right;
    uint8_t level;
    uint64_t prefix; /* first 64 bits of the key, or the page's prefix */
} cx_pages_difference;

/* Whether all rows of the tree in `leaf` and `page` are the same in both; the first difference. */
CX_RESULT cx_pages_compare(cx_db *left, cx_db *right, uint64_t tree, bool *out_same,
                           cx_pages_difference *out, cx_err *err);

/* --- figures ---------------------------------------------------------------------------------- */

typedef struct cx_pages_stats {
    uint64_t pages_read;    /* from rows, and folded */
    uint64_t pages_cached;  /* found in memory */
    uint64_t pages_written; /* with at least one row */
    uint64_t rows_written;
    uint64_t row_bytes_written; /* of keys, values, hashes and names; headers of rows not counted */
    uint64_t hashes;
    size_t memory_bytes; /* of the pages in memory now */
} cx_pages_stats;

cx_pages_stats cx_pages_stats_of(const cx_pages *pages);

#endif
