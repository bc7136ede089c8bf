/*
 * sys/random.h - getrandom over what WASI has.
 */
#ifndef CX_WASM_SYS_RANDOM_H
#define CX_WASM_SYS_RANDOM_H

#include <sys/types.h>
#include <unistd.h>

/* At most 256 bytes are given at once; callers ask again for the rest. */
static inline ssize_t getrandom(void *data, size_t size, unsigned flags)
{
    size_t count = size < 256 ? size : 256;
    (void)flags;
    return getentropy(data, count) == 0 ? (ssize_t)count : -1;
}

#endif
