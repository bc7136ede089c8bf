/*
 * vec.c - growing arrays.
 */
#include "base/vec.h"

#include "base/bytes.h"

bool cx_vec_reserve_raw(void *items, size_t *capacity, size_t needed, size_t item_size_bytes,
                        const cx_alloc *alloc)
{
    /* 1.5 times the capacity, or `needed` when that is more. */
    size_t wanted = *capacity < 8 ? 8 : *capacity;
    if (wanted < needed)
        wanted = wanted > SIZE_MAX / 2 ? needed : wanted + wanted / 2;
    if (wanted < needed)
        wanted = needed;
    size_t size;
    if (!cx_size_mul(wanted, item_size_bytes, &size))
        return false;
    void *old;
    memcpy(&old, items, sizeof old);
    void *grown = alloc->resize(alloc->ctx, old, *capacity * item_size_bytes, size);
    if (grown == NULL)
        return false;
    memcpy(items, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}
