/*
 * sched.h - the number of processors, for WebAssembly: not to be known, so one is used.
 */
#ifndef CX_WASM_SCHED_H
#define CX_WASM_SCHED_H

#include <stddef.h>

typedef struct {
    char unused;
} cpu_set_t;

#define CPU_COUNT(set) ((void)(set), 1)

static inline int sched_getaffinity(int process, size_t size, cpu_set_t *set)
{
    (void)process, (void)size, (void)set;
    return -1;
}

#endif
