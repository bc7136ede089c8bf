/*
 * vec.h - a growing array of any type.
 *
 *     CX_VEC(uint32_t) parents = {0};
 *     uint32_t *slot = cx_vec_push(&parents, alloc);     NULL when out of memory
 *     cx_vec_done(&parents, alloc);
 */
#ifndef CX_BASE_VEC_H
#define CX_BASE_VEC_H

#include "base/alloc.h"

#define CX_VEC(type)     \
    struct {             \
        type *items;     \
        size_t count;    \
        size_t capacity; \
    }

/*
 * Grows *capacity to at least `needed` items; false when out of memory, and the array is then
 * unchanged.  `items` is the address of a pointer to items of any type: it is copied bytewise,
 * never read as a void pointer.
 */
bool cx_vec_reserve_raw(void *items, size_t *capacity, size_t needed, size_t item_size_bytes,
                        const cx_alloc *alloc);

/* True when at least `needed` items fit. */
#define cx_vec_reserve(vec, needed, alloc) \
    ((needed) <= (vec)->capacity ||        \
     cx_vec_reserve_raw(&(vec)->items, &(vec)->capacity, (needed), sizeof *(vec)->items, (alloc)))

/* A pointer to one new uninitialised item, or NULL. */
#define cx_vec_push(vec, alloc) \
    (cx_vec_reserve((vec), (vec)->count + 1, (alloc)) ? &(vec)->items[(vec)->count++] : NULL)

#define cx_vec_done(vec, alloc)                                                       \
    do {                                                                              \
        cx_alloc_free((alloc), (vec)->items, (vec)->capacity * sizeof *(vec)->items); \
        (vec)->items = NULL;                                                          \
        (vec)->count = (vec)->capacity = 0;                                           \
    } while (0)

#endif
