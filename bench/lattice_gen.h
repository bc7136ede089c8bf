/*
 * lattice_gen.h - writes large lattices for benchmarks and soak tests: always the same bytes for
 * the same arguments.
 */
#ifndef CX_BENCH_LATTICE_GEN_H
#define CX_BENCH_LATTICE_GEN_H

#include <stdint.h>

#include "base/buf.h"

typedef struct lattice_shape {
    uint32_t nodes;
    uint32_t agents; /* take turns; each writes its own branch */
    uint32_t
        merge_every;     /* one node in so many also has another agent's head as parent; 0 = none */
    uint32_t fork_every; /* one node in so many starts a typed twig of the same seq; 0 = none */
    uint32_t keys;       /* distinct memory keys an agent writes */
} lattice_shape;

#define LATTICE_SHAPE_BENCH    \
    {                          \
        1000000, 8, 16, 64, 64 \
    }

/* Calls `emit` with chunks of JSONL; stops at its first failure. */
cx_status lattice_generate(const lattice_shape *shape,
                           cx_status (*emit)(void *arg, cx_bytes chunk, cx_err *err), void *arg,
                           cx_err *err);

/* The recipe chain of docs/formats/lattice.md §9. */
cx_status lattice_generate_chain(uint32_t nodes,
                                 cx_status (*emit)(void *arg, cx_bytes chunk, cx_err *err),
                                 void *arg, cx_err *err);

#endif
