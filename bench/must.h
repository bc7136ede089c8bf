/*
 * must.h - what programs share that measure the tables by their own calls: an end at the first
 * failure, and numbers that are the same in each run.
 */
#ifndef CX_BENCH_MUST_H
#define CX_BENCH_MUST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* `err` is the program's own cx_err, which the call writes to. */
#define MUST(expression)                                                 \
    do {                                                                 \
        if (cx_failed(expression)) {                                     \
            (void)fprintf(stderr, "%s: %s\n", #expression, err.message); \
            exit(1);                                                     \
        }                                                                \
    } while (0)

/* xorshift64; the state must not be 0. */
static inline uint64_t bench_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#endif
