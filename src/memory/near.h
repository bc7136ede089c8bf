/*
 * near.h - exact search for the nearest vectors.
 *
 * Sums have one order everywhere: component i is added into lane i mod 32, and the lanes are then
 * added in halves (32 to 16 to 8 .. to 1), in float, without fused multiply-add.  So a score has
 * the same bits on every machine, whether AVX2 is there or not.
 */
#ifndef CX_MEMORY_NEAR_H
#define CX_MEMORY_NEAR_H

#include "base/api.h"

#define CX_NEAR_DIM_MAX 16384
#define CX_NEAR_TOP_MAX 10000

typedef enum cx_near_measure {
    CX_NEAR_COSINE, /* 0 when either has no length */
    CX_NEAR_DOT
} cx_near_measure;

typedef struct cx_near_hit {
    size_t row;
    float score;
} cx_near_hit;

/* Dimension within 1..max and every component a finite number: CX_E_USAGE "InvalidArgument". */
CX_RESULT cx_near_check(const float *vector, size_t dim, cx_err *err);

float cx_near_dot(const float *a, const float *b, size_t dim);
float cx_near_score(const float *a, const float *b, size_t dim, cx_near_measure measure);

/*
 * The `top` best of vectors that come one by one: begin, offer each, end.  Best first; equal scores
 * in order of row.  A score that is not a number is left out.  `hits` has space for `top` and
 * belongs to the caller.
 */
typedef struct cx_near {
    const float *query;
    size_t dim;
    cx_near_measure measure;
    float query_length;
    cx_near_hit *hits; /* a heap with the worst on top, until the end */
    size_t top;
    size_t count;
} cx_near;

/* CX_E_USAGE "InvalidArgument": a query that is not finite, a dimension or top out of bounds. */
CX_RESULT cx_near_begin(cx_near *near, const float *query, size_t dim, cx_near_measure measure,
                        cx_near_hit *hits, size_t top, cx_err *err);
void cx_near_offer(cx_near *near, size_t row, const float *vector);
/* The number of hits, now sorted. */
size_t cx_near_end(cx_near *near);

/* The same over rows that are contiguous in memory. */
CX_RESULT cx_near_search(const float *rows, size_t row_count, const float *query, size_t dim,
                         cx_near_measure measure, cx_near_hit *hits, size_t top, size_t *out_count,
                         cx_err *err);

/* For tests: the kernel without AVX2. */
float cx_near_dot_portable(const float *a, const float *b, size_t dim);

#endif
