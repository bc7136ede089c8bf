/*
 * mmr_rows.c - a journal tree of which one node in 256 is kept, and its right edge.
 *
 * A *block* is 256 neighbours of height 8 * level, leaves or folds, with all that is hashed from
 * them; the last block of a level may have fewer.
 *
 *   B1  A node of height 8 * level + j, 0 <= j < 8, is in one block of that level.
 *   B2  A block that is used leads to the edge: a whole one hashes to the fold above it, which is
 *       of a block that leads there; the peaks of one that is not whole are those of the edge.
 */
#include "base/api.h"
#include "tree/mmr_internal.h"

enum {
    LEVEL_BITS = 8,
    BLOCK_WIDTH = 1 << LEVEL_BITS,
    BLOCK_NODES = 2 * BLOCK_WIDTH - 1,
    BLOCKS_KEPT = 8
};

typedef struct block {
    unsigned level;
    uint64_t number;
    uint64_t used_at;             /* 0 = free */
    cx_digest nodes[BLOCK_NODES]; /* those of the block's height, then the next height, .. */
} block;

struct mmr_rows {
    cx_mmr_keeper keeper;
    cx_mmr_edge edge;
    uint64_t clock;
    block *blocks[BLOCKS_KEPT];
};

/* --- the edge -------------------------------------------------------------------------------- */

cx_status cx_mmr_edge_append(cx_mmr_edge *edge, cx_scheme scheme, const cx_alloc *alloc,
                             const cx_digest *leaf_hash, cx_mmr_fold out[CX_MMR_FOLDS_MAX],
                             size_t *out_count, cx_err *err)
{
    if (!cx_vec_reserve(&edge->peaks, edge->peaks.count + 1, alloc))
        return cx_fail_nomem(err);
    cx_digest node = cx_scheme_level0(scheme, leaf_hash);
    size_t folds = 0;
    for (unsigned height = 1; (edge->size >> (height - 1) & 1) != 0; height++) {
        node = cx_scheme_node(scheme, &edge->peaks.items[--edge->peaks.count], &node);
        if (height % LEVEL_BITS == 0)
            out[folds++] = (cx_mmr_fold){height / LEVEL_BITS, edge->size >> height, node};
    }
    edge->peaks.items[edge->peaks.count++] = node;
    edge->size++;
    *out_count = folds;
    return CX_SUCCESS;
}

cx_digest cx_mmr_edge_root(const cx_mmr_edge *edge, cx_scheme scheme)
{
    cx_digest acc = {{0}};
    for (size_t i = edge->peaks.count; i-- > 0;)
        acc = i + 1 == edge->peaks.count ? edge->peaks.items[i]
                                         : cx_scheme_bag(scheme, &edge->peaks.items[i], &acc);
    return cx_scheme_journal_root(scheme, edge->size, &acc);
}

/* The peak of that height, which the size has. */
static const cx_digest *peak_of(const cx_mmr_edge *edge, unsigned height)
{
    CX_ASSERT((edge->size >> height & 1) != 0);
    const uint64_t above = height == MMR_LEVEL_MAX - 1 ? 0 : edge->size >> (height + 1);
    return &edge->peaks.items[__builtin_popcountll(above)];
}

/* --- blocks ---------------------------------------------------------------------------------- */

/* Where the nodes of `height` above the block's own begin. */
static size_t row_of(unsigned height)
{
    return 2 * BLOCK_WIDTH - ((size_t)2 * BLOCK_WIDTH >> height);
}

/* How many nodes of its own height it has: BLOCK_WIDTH of a whole one. */
static size_t width_of(const mmr_rows *rows, unsigned level, uint64_t number)
{
    const uint64_t left = (rows->edge.size >> (LEVEL_BITS * level)) - (number << LEVEL_BITS);
    return left < BLOCK_WIDTH ? (size_t)left : BLOCK_WIDTH;
}

static cx_status fail_damaged(unsigned level, uint64_t number, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "the hashes that the tables keep of a journal's entries from %llu on do not"
                      " lead to its root (height %u); run 'cortex tables rebuild' (the log is the"
                      " truth, nothing is lost)",
                      (unsigned long long)(number << LEVEL_BITS << (LEVEL_BITS * level)),
                      LEVEL_BITS * level);
}

/* B2 */
static cx_status check_block(cx_mmr *mmr, const block *b, size_t width, cx_err *err)
{
    const cx_mmr_edge *edge = &mmr->rows->edge;
    const unsigned base = LEVEL_BITS * b->level;
    bool good = true;
    for (unsigned j = 0; j < LEVEL_BITS && width < BLOCK_WIDTH; j++) {
        if ((width >> j & 1) != 0)
            good = good &&
                   cx_digest_eq(&b->nodes[row_of(j) + (width >> j) - 1], peak_of(edge, base + j));
    }
    if (width == BLOCK_WIDTH) {
        cx_digest above;
        CX_TRY(mmr_rows_node(mmr, base + LEVEL_BITS, b->number, &above, err));
        good = cx_digest_eq(&b->nodes[row_of(LEVEL_BITS)], &above);
    }
    return good ? CX_SUCCESS : fail_damaged(b->level, b->number, err);
}

static cx_status read_block(cx_mmr *mmr, block *b, size_t width, cx_err *err)
{
    const cx_mmr_keeper *keeper = &mmr->rows->keeper;
    const uint64_t first = b->number << LEVEL_BITS;
    if (b->level != 0) {
        CX_TRY(keeper->folds(keeper->arg, b->level, first, width, b->nodes, err));
    } else {
        CX_TRY(keeper->leaves(keeper->arg, first, width, b->nodes, err));
        cx_scheme_level0_many(mmr->scheme, b->nodes, b->nodes, width);
    }
    for (unsigned j = 1; j <= LEVEL_BITS && width >> j != 0; j++)
        cx_scheme_nodes(mmr->scheme, &b->nodes[row_of(j - 1)], &b->nodes[row_of(j)], width >> j);
    return check_block(mmr, b, width, err);
}

static block *oldest_block(mmr_rows *rows, const cx_alloc *alloc)
{
    block **oldest = &rows->blocks[0];
    for (size_t i = 0; i < BLOCKS_KEPT; i++) {
        if (rows->blocks[i] == NULL)
            return rows->blocks[i] = cx_alloc_zeroed(alloc, 1, sizeof **rows->blocks);
        if (rows->blocks[i]->used_at < (*oldest)->used_at)
            oldest = &rows->blocks[i];
    }
    return *oldest;
}

static cx_status need_block(cx_mmr *mmr, unsigned level, uint64_t number, const block **out,
                            cx_err *err)
{
    mmr_rows *rows = mmr->rows;
    for (size_t i = 0; i < BLOCKS_KEPT; i++) {
        block *b = rows->blocks[i];
        if (b != NULL && b->used_at != 0 && b->level == level && b->number == number) {
            b->used_at = ++rows->clock;
            *out = b;
            return CX_SUCCESS;
        }
    }
    block *b = oldest_block(rows, mmr->alloc);
    if (b == NULL)
        return cx_fail_nomem(err);
    b->level = level;
    b->number = number;
    b->used_at = UINT64_MAX; /* those above it, which its check needs, do not take its place */
    cx_status status = read_block(mmr, b, width_of(rows, level, number), err);
    b->used_at = cx_failed(status) ? 0 : ++rows->clock;
    *out = b;
    return status;
}

cx_status mmr_rows_node(cx_mmr *mmr, unsigned height, uint64_t number, cx_digest *out, cx_err *err)
{
    const unsigned level = height / LEVEL_BITS, j = height % LEVEL_BITS;
    const block *b;
    CX_TRY(need_block(mmr, level, number >> (LEVEL_BITS - j), &b, err)); /* B1 */
    *out = b->nodes[row_of(j) + (size_t)(number % ((uint64_t)BLOCK_WIDTH >> j))];
    return CX_SUCCESS;
}

/* --- leaves ---------------------------------------------------------------------------------- */

/* Of one block: what is handed out must be what was hashed. */
static cx_status leaves_of_block(cx_mmr *mmr, uint64_t first, size_t count, cx_digest *out,
                                 cx_err *err)
{
    const cx_mmr_keeper *keeper = &mmr->rows->keeper;
    cx_digest hashes[BLOCK_WIDTH];
    const block *b;
    CX_TRY(need_block(mmr, 0, first >> LEVEL_BITS, &b, err));
    CX_TRY(keeper->leaves(keeper->arg, first, count, out, err));
    cx_scheme_level0_many(mmr->scheme, out, hashes, count);
    const bool same = memcmp(hashes, &b->nodes[first % BLOCK_WIDTH], count * sizeof *hashes) == 0;
    return same ? CX_SUCCESS : fail_damaged(0, first >> LEVEL_BITS, err);
}

cx_status mmr_rows_leaves(cx_mmr *mmr, uint64_t first, size_t count, cx_digest *out, cx_err *err)
{
    while (count != 0) {
        const size_t room = BLOCK_WIDTH - (size_t)(first % BLOCK_WIDTH);
        const size_t some = count < room ? count : room;
        CX_TRY(leaves_of_block(mmr, first, some, out, err));
        first += some;
        out += some;
        count -= some;
    }
    return CX_SUCCESS;
}

uint64_t mmr_rows_size(const mmr_rows *rows)
{
    return rows->edge.size;
}

/* --- opening --------------------------------------------------------------------------------- */

void mmr_rows_close(mmr_rows *rows, const cx_alloc *alloc)
{
    if (rows == NULL)
        return;
    for (size_t i = 0; i < BLOCKS_KEPT; i++)
        cx_alloc_free(alloc, rows->blocks[i], sizeof **rows->blocks);
    cx_vec_done(&rows->edge.peaks, alloc);
    cx_alloc_free(alloc, rows, sizeof *rows);
}

cx_status cx_mmr_open_kept(cx_scheme scheme, const cx_alloc *alloc, const cx_mmr_edge *edge,
                           const cx_mmr_keeper *keeper, cx_mmr **out, cx_err *err)
{
    const size_t count = edge->peaks.count;
    CX_ASSERT(count == (size_t)__builtin_popcountll(edge->size));
    cx_mmr *mmr;
    CX_TRY(cx_mmr_open(scheme, alloc, &mmr, err));
    mmr->rows = cx_alloc_zeroed(alloc, 1, sizeof *mmr->rows);
    if (mmr->rows == NULL || !cx_vec_reserve(&mmr->rows->edge.peaks, count, alloc)) {
        cx_mmr_close(mmr);
        return cx_fail_nomem(err);
    }
    mmr->rows->keeper = *keeper;
    mmr->rows->edge.size = edge->size;
    mmr->rows->edge.peaks.count = count;
    if (count != 0)
        memcpy(mmr->rows->edge.peaks.items, edge->peaks.items, count * sizeof *edge->peaks.items);
    *out = mmr;
    return CX_SUCCESS;
}
