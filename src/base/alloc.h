/*
 * alloc.h - thin calls over cx_alloc.  Sizes are given back on free: allocators need no headers.
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
 * For a process that lives long, called before it starts threads: blocks from 1 MiB on come from
 * the system and go back to it when freed.  Left alone, the C library raises that limit to the
 * largest block it has seen, and what one large answer took stays with its thread for ever.
 */
void cx_alloc_return_large(void);

/* Zeroed; NULL on overflow or out of memory. */
void *cx_alloc_zeroed(const cx_alloc *alloc, size_t count, size_t item_size_bytes);

#endif
