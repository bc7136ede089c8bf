/*
 * alloc.c - the default allocator: the C library's.
 */
#include "base/alloc.h"

#include <stdlib.h>

#include "base/bytes.h"

static void *resize_libc(void *ctx, void *block, size_t old_size_bytes, size_t new_size_bytes)
{
    (void)ctx;
    (void)old_size_bytes;
    if (new_size_bytes == 0) {
        free(block);
        return NULL;
    }
    return realloc(block, new_size_bytes);
}

const cx_alloc *cx_alloc_default(void)
{
    static const cx_alloc libc = {resize_libc, NULL};
    return &libc;
}

void *cx_alloc_zeroed(const cx_alloc *alloc, size_t count, size_t item_size_bytes)
{
    size_t size;
    if (!cx_size_mul(count, item_size_bytes, &size) || size == 0)
        return NULL;
    void *block = cx_alloc_new(alloc, size);
    if (block != NULL)
        memset(block, 0, size);
    return block;
}
