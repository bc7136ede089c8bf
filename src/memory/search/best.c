/*
 * best.c - the best of any number of memories (best.h).
 *
 * I1  The array has at most 2 * keep items; once it was cut, all that are worse than `last` are
 *     refused.  So an item costs a comparison, and log(keep) more only if it is kept.
 */
#include "memory/search/best.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A rank that is no number comes last. */
static float order_of(float rank)
{
    return isnan(rank) ? -INFINITY : rank;
}

static int by_id(const void *a, const void *b)
{
    const cx_ranked *left = a, *right = b;
    return memcmp(left->id.bytes, right->id.bytes, sizeof left->id.bytes);
}

static int by_rank(const void *a, const void *b)
{
    const cx_ranked *left = a, *right = b;
    const float first = order_of(left->rank), second = order_of(right->rank);
    if (first != second)
        return first > second ? -1 : 1;
    return by_id(a, b);
}

static int by_id_and_rank(const void *a, const void *b)
{
    int order = by_id(a, b);
    return order != 0 ? order : by_rank(a, b);
}

void cx_best_begin(cx_best *best, const cx_ranked *after)
{
    CX_ASSERT(best->keep != 0);
    best->items.count = 0;
    best->cut = false;
    best->has_after = after != NULL;
    if (after != NULL)
        best->after = *after;
}

bool cx_best_is_low(const cx_best *best, const cx_id *id, float rank)
{
    const cx_ranked item = {*id, rank};
    return best->cut && by_rank(&item, &best->last) > 0;
}

/* Leaves one of each. */
static void unite(cx_best *best)
{
    size_t kept = 0;
    for (size_t i = 0; i < best->items.count; i++)
        if (kept == 0 || by_id(&best->items.items[kept - 1], &best->items.items[i]) != 0)
            best->items.items[kept++] = best->items.items[i];
    best->items.count = kept;
}

static void cut_to_size(cx_best *best)
{
    if (best->items.count > 1)
        qsort(best->items.items, best->items.count, sizeof *best->items.items, by_rank);
    unite(best);
    if (best->items.count > best->keep) {
        best->cut = true;
        best->items.count = best->keep;
    }
    if (best->cut)
        best->last = best->items.items[best->items.count - 1];
}

bool cx_best_wants(const cx_best *best, const cx_id *id, float rank)
{
    const cx_ranked item = {*id, rank};
    return !cx_best_is_low(best, id, rank) &&
           (!best->has_after || by_rank(&item, &best->after) > 0);
}

cx_status cx_best_add(cx_best *best, const cx_id *id, float rank, cx_err *err)
{
    if (!cx_best_wants(best, id, rank))
        return CX_SUCCESS;
    if (best->items.count == 2 * best->keep)
        cut_to_size(best);
    cx_ranked *slot = cx_vec_push(&best->items, best->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = (cx_ranked){*id, rank};
    return CX_SUCCESS;
}

void cx_best_end(cx_best *best)
{
    cut_to_size(best);
    /* A memory that changed between two offers may have two ranks. */
    if (best->items.count > 1)
        qsort(best->items.items, best->items.count, sizeof *best->items.items, by_id_and_rank);
    unite(best);
    if (best->items.count > 1)
        qsort(best->items.items, best->items.count, sizeof *best->items.items, by_rank);
}

void cx_best_done(cx_best *best)
{
    cx_vec_done(&best->items, best->alloc);
}
