/*
 * alloc.h - helpers over cx_alloc.  Callers pass the size when freeing, so that an allocator needs
 * no block headers.
 */
#ifndef CX_BASE_ALLOC_H
#define CX_BASE_ALLOC_H

#include <cortex/base.h>

static inline void *cx_alloc_new(const cx_alloc *alloc, size_t size_bytes)
{
    return alloc->resize(alloc->ctx, NULL, 0, size_bytes);
}

/* `block` may be NULL. */
static inline void cx_alloc_free(const cx_alloc *alloc, void *block, size_t size_bytes)
{
    if (block != NULL)
        (void)alloc->resize(alloc->ctx, block, size_bytes, 0);
}

/*
 * For long-lived processes and for work whose memory is bounded, to be called before threads start:
 * blocks of 1 MiB or more are mapped from the system and unmapped when freed.  By default the C
 * library raises that threshold to the largest block it has seen, and the memory of one large
 * response stays with its thread.
 */
void cx_alloc_return_large(void);

/* Zeroed; NULL on overflow or out of memory. */
void *cx_alloc_zeroed(const cx_alloc *alloc, size_t count, size_t item_size_bytes);

#endif
