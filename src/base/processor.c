/*
 * processor.c - the features of this processor, asked for once.
 */
#include "base/processor.h"

#include <stdatomic.h>

/* Relaxed: the number is all that there is to see, and two threads that ask at the same time find
 * the same. */
bool cx_processor_has(unsigned features)
{
    static _Atomic unsigned known;
    unsigned found = atomic_load_explicit(&known, memory_order_relaxed);
    if (found == 0) {
        found = cx_processor_detect() | CX_PROCESSOR_ASKED;
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return (found & features) == features;
}
