/*
 * mmr_internal.h - what the files of the journal tree share.
 *
 * A tree has its nodes in memory (mmr.c), or reads those it needs from where they are kept
 * (mmr_rows.c).  Either way nodes are asked for by height and number.
 */
#ifndef CX_TREE_MMR_INTERNAL_H
#define CX_TREE_MMR_INTERNAL_H

#include "base/api.h"
#include "tree/mmr.h"

enum { MMR_LEVEL_MAX = 64 };

typedef CX_VEC(cx_digest) mmr_digests;
typedef struct mmr_rows mmr_rows;

struct cx_mmr {
    const cx_alloc *alloc;
    cx_scheme scheme;
    mmr_digests leaves; /* leaf_hash; in matrix-1 these are level 0 too */
    mmr_digests levels[MMR_LEVEL_MAX];
    mmr_rows *rows; /* NULL = in memory: the two above */
};

void mmr_rows_close(mmr_rows *rows, const cx_alloc *alloc);
uint64_t mmr_rows_size(const mmr_rows *rows);
/* The node covers leaves below the size only. */
CX_RESULT mmr_rows_node(cx_mmr *mmr, unsigned height, uint64_t number, cx_digest *out, cx_err *err);
CX_RESULT mmr_rows_leaves(cx_mmr *mmr, uint64_t first, size_t count, cx_digest *out, cx_err *err);

/* The largest power of two below n; n > 1. */
static inline uint64_t mmr_left_count(uint64_t n)
{
    return UINT64_C(1) << (63 - __builtin_clzll(n - 1));
}

#endif
