/*
 * sys/mman.h - advice about memory, which WebAssembly has no use for.
 */
#ifndef CX_WASM_SYS_MMAN_H
#define CX_WASM_SYS_MMAN_H

#include <stddef.h>

#define MADV_HUGEPAGE 14

static inline int madvise(void *block, size_t size, int advice)
{
    (void)block, (void)size, (void)advice;
    return 0;
}

#endif
