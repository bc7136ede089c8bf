/*
 * slots.c - an RFC 6962 tree whose leaves may be replaced.
 *
 * levels[0] holds H(00 ‖ leaf_hash) of each leaf, levels[h + 1] one node for each two of
 * levels[h]; the last of an odd number is taken over unhashed.  That is the tree of RFC 6962, which
 * divides at the largest power of two below the number of leaves.
 *
 *   I1  levels[h + 1].count is levels[h].count / 2, rounded up; the level with one node is the
 *       last, and all above it are empty.
 */
#include "tree/slots.h"

#include "base/api.h"

enum { LEVEL_MAX = 64 };

struct cx_slots {
    const cx_alloc *alloc;
    CX_VEC(cx_digest) levels[LEVEL_MAX];
};

cx_status cx_slots_open(const cx_alloc *alloc, cx_slots **out, cx_err *err)
{
    cx_slots *slots = cx_alloc_zeroed(alloc, 1, sizeof *slots);
    if (slots == NULL)
        return cx_fail_nomem(err);
    slots->alloc = alloc;
    *out = slots;
    return CX_SUCCESS;
}

void cx_slots_close(cx_slots *slots)
{
    if (slots == NULL)
        return;
    for (size_t h = 0; h < LEVEL_MAX; h++)
        cx_vec_done(&slots->levels[h], slots->alloc);
    cx_alloc_free(slots->alloc, slots, sizeof *slots);
}

uint64_t cx_slots_count(const cx_slots *slots)
{
    return slots->levels[0].count;
}

/* Room on every level before anything is changed, so that a failure leaves the tree as it was. */
static bool reserve_levels(cx_slots *slots, size_t count)
{
    for (size_t h = 0;; h++) {
        if (!cx_vec_reserve(&slots->levels[h], count, slots->alloc))
            return false;
        if (count <= 1)
            return true;
        count = count / 2 + count % 2;
    }
}

cx_status cx_slots_put(cx_slots *slots, uint64_t index, const cx_digest *leaf_hash, cx_err *err)
{
    CX_ASSERT(index <= slots->levels[0].count);
    size_t at = (size_t)index, count = slots->levels[0].count + (at == slots->levels[0].count);
    if (!reserve_levels(slots, count))
        return cx_fail_nomem(err);
    cx_digest node = cx_scheme_level0(CX_SCHEME_CORTEX_1, leaf_hash);
    for (size_t h = 0;; h++) {
        slots->levels[h].items[at] = node;
        slots->levels[h].count = count;
        if (count == 1)
            return CX_SUCCESS;
        const cx_digest *items = slots->levels[h].items;
        size_t left = at & ~(size_t)1;
        node = left + 1 < count ? cx_scheme_node(CX_SCHEME_CORTEX_1, &items[left], &items[left + 1])
                                : items[left];
        at /= 2;
        count = count / 2 + count % 2;
    }
}

cx_digest cx_slots_root(const cx_slots *slots)
{
    if (slots->levels[0].count == 0)
        return cx_scheme_journal_root(CX_SCHEME_CORTEX_1, 0, NULL);
    size_t top = 0;
    while (slots->levels[top].count > 1)
        top++;
    return slots->levels[top].items[0];
}

void cx_slots_inclusion(const cx_slots *slots, uint64_t index, cx_mmr_path *out)
{
    CX_ASSERT(index < slots->levels[0].count);
    size_t at = (size_t)index;
    out->count = 0;
    for (size_t h = 0; slots->levels[h].count > 1; h++, at /= 2) {
        size_t sibling = at ^ 1;
        if (sibling < slots->levels[h].count)
            out->hashes[out->count++] = slots->levels[h].items[sibling];
    }
}
