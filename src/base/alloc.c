/*
 * alloc.c - the default allocator: the C library's.
 */
#include "base/alloc.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/platform.h"

/* Blocks of this size or more use huge pages: one page fault per 2 MiB rather than per 4 KiB. */
#define HUGE_BYTES ((size_t)4 << 20)
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

/* Aligned to a huge page: an unaligned block of this size is a quarter small pages. */
static void *align_huge_block(void *block, size_t size_bytes)
{
    if (block != NULL || size_bytes < HUGE_BYTES)
        return realloc(block, size_bytes);
    return posix_memalign(&block, HUGE_PAGE_BYTES, size_bytes) == 0 ? block : NULL;
}

static void *advise_huge_pages(void *block, size_t size_bytes)
{
    uintptr_t page = 4096, start = ((uintptr_t)block + page - 1) & ~(page - 1);
    size_t skipped = start - (uintptr_t)block;
    if (block != NULL && size_bytes >= HUGE_BYTES)
        cx_platform_advise_huge((uint8_t *)block + skipped, (size_bytes - skipped) & ~(page - 1));
    return block;
}

static void *resize_libc(void *ctx, void *block, size_t old_size_bytes, size_t new_size_bytes)
{
    (void)ctx;
    (void)old_size_bytes;
    if (new_size_bytes == 0) {
        free(block);
        return NULL;
    }
    return advise_huge_pages(align_huge_block(block, new_size_bytes), new_size_bytes);
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

void cx_alloc_return_large(void)
{
    cx_platform_return_large();
}
