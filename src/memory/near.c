/*
 * near.c - exact search for the nearest vectors: every row is compared.
 *
 * The kernel is written once over vectors of 8 floats and compiled twice, plain and for AVX2; only
 * multiplications and additions in a fixed order are used, so that both give the same bits.
 *
 * I1  the hits are a heap whose top is the worst of them.
 */
#include "memory/near.h"

#include <math.h>
#include <string.h>

#include "base/api.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

#define LANES 32

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_AVX2_KERNEL 1
#endif

/* --- the kernel ------------------------------------------------------------------------------ */

/* Eight floats at any address. */
typedef float floats8 __attribute__((vector_size(32), aligned(4), may_alias));

/* Adds the lanes by halves. */
static inline float sum_lanes(const float lanes[LANES])
{
    float half[LANES];
    memcpy(half, lanes, sizeof half);
    for (size_t width = LANES / 2; width != 0; width /= 2)
        for (size_t i = 0; i < width; i++)
            half[i] += half[i + width];
    return half[0];
}

__attribute__((always_inline)) static inline float dot_kernel(const float *a, const float *b,
                                                              size_t dim)
{
    floats8 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    float lanes[LANES];
    size_t i = 0;
    for (; i + LANES <= dim; i += LANES) {
        s0 += *(const floats8 *)(const void *)(a + i) * *(const floats8 *)(const void *)(b + i);
        s1 += *(const floats8 *)(const void *)(a + i + 8) *
              *(const floats8 *)(const void *)(b + i + 8);
        s2 += *(const floats8 *)(const void *)(a + i + 16) *
              *(const floats8 *)(const void *)(b + i + 16);
        s3 += *(const floats8 *)(const void *)(a + i + 24) *
              *(const floats8 *)(const void *)(b + i + 24);
    }
    memcpy(lanes, &s0, sizeof s0);
    memcpy(lanes + 8, &s1, sizeof s1);
    memcpy(lanes + 16, &s2, sizeof s2);
    memcpy(lanes + 24, &s3, sizeof s3);
    for (size_t lane = 0; i < dim; i++, lane++)
        lanes[lane] += a[i] * b[i];
    return sum_lanes(lanes);
}

float cx_near_dot_portable(const float *a, const float *b, size_t dim)
{
    return dot_kernel(a, b, dim);
}

#ifdef HAS_AVX2_KERNEL
__attribute__((target("avx2"))) static float dot_avx2(const float *a, const float *b, size_t dim)
{
    return dot_kernel(a, b, dim);
}
#endif

typedef float dot_function(const float *a, const float *b, size_t dim);

static dot_function *choose_dot(void)
{
#ifdef HAS_AVX2_KERNEL
    if (cx_processor_has(CX_PROCESSOR_X86_AVX2))
        return dot_avx2;
#endif
    return cx_near_dot_portable;
}

float cx_near_dot(const float *a, const float *b, size_t dim)
{
    return choose_dot()(a, b, dim);
}

/* --- scores ---------------------------------------------------------------------------------- */

cx_status cx_near_check(const float *vector, size_t dim, cx_err *err)
{
    if (dim < 1 || dim > CX_NEAR_DIM_MAX)
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "a vector of %zu components, expected 1 to %d", dim, CX_NEAR_DIM_MAX);
    for (size_t i = 0; i < dim; i++)
        if (!isfinite(vector[i]))
            return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                              "component %zu of the vector is not a finite number", i);
    return CX_SUCCESS;
}

static float length_of(const float *vector, size_t dim)
{
    return (float)sqrt((double)cx_near_dot(vector, vector, dim));
}

static float score_of(const float *query, float query_length, const float *vector, size_t dim,
                      cx_near_measure measure)
{
    float dot = cx_near_dot(query, vector, dim);
    if (measure == CX_NEAR_DOT)
        return dot;
    /* In double, so that the product of two lengths neither overflows nor underflows. */
    double lengths = (double)query_length * (double)length_of(vector, dim);
    return lengths > 0 ? (float)((double)dot / lengths) : 0.0f;
}

float cx_near_score(const float *a, const float *b, size_t dim, cx_near_measure measure)
{
    return score_of(a, measure == CX_NEAR_COSINE ? length_of(a, dim) : 0.0f, b, dim, measure);
}

/* --- the best of many ------------------------------------------------------------------------ */

/* Whether a ranks after b: a lower score, or the same score in a later row. */
static bool is_worse(const cx_near_hit *a, const cx_near_hit *b)
{
    return a->score < b->score || (a->score == b->score && a->row > b->row);
}

static void swap(cx_near_hit *a, cx_near_hit *b)
{
    cx_near_hit kept = *a;
    *a = *b;
    *b = kept;
}

static void sift_down(cx_near_hit *hits, size_t count)
{
    for (size_t at = 0;;) {
        size_t worst = at, left = 2 * at + 1, right = left + 1;
        if (left < count && is_worse(&hits[left], &hits[worst]))
            worst = left;
        if (right < count && is_worse(&hits[right], &hits[worst]))
            worst = right;
        if (worst == at)
            return;
        swap(&hits[at], &hits[worst]);
        at = worst;
    }
}

static void sift_up(cx_near_hit *hits, size_t at)
{
    while (at != 0 && is_worse(&hits[at], &hits[(at - 1) / 2])) {
        swap(&hits[at], &hits[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

cx_status cx_near_begin(cx_near *near, const float *query, size_t dim, cx_near_measure measure,
                        cx_near_hit *hits, size_t top, cx_err *err)
{
    CX_TRY(cx_near_check(query, dim, err));
    if (top < 1 || top > CX_NEAR_TOP_MAX)
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "%zu nearest vectors requested, expected 1 to %d", top, CX_NEAR_TOP_MAX);
    *near = (cx_near){.query = query,
                      .dim = dim,
                      .measure = measure,
                      .query_length = length_of(query, dim),
                      .hits = hits,
                      .top = top};
    return CX_SUCCESS;
}

void cx_near_offer(cx_near *near, size_t row, const float *vector)
{
    cx_near_hit hit = {row,
                       score_of(near->query, near->query_length, vector, near->dim, near->measure)};
    if (isnan(hit.score))
        return;
    if (near->count < near->top) {
        near->hits[near->count] = hit;
        sift_up(near->hits, near->count++);
    } else if (is_worse(&near->hits[0], &hit)) {
        near->hits[0] = hit;
        sift_down(near->hits, near->count);
    }
}

size_t cx_near_end(cx_near *near)
{
    for (size_t left = near->count; left > 1; left--) {
        swap(&near->hits[0], &near->hits[left - 1]);
        sift_down(near->hits, left - 1);
    }
    return near->count;
}

cx_status cx_near_search(const float *rows, size_t row_count, const float *query, size_t dim,
                         cx_near_measure measure, cx_near_hit *hits, size_t top, size_t *out_count,
                         cx_err *err)
{
    cx_near near;
    CX_TRY(cx_near_begin(&near, query, dim, measure, hits, top, err));
    for (size_t row = 0; row < row_count; row++)
        cx_near_offer(&near, row, rows + row * dim);
    *out_count = cx_near_end(&near);
    return CX_SUCCESS;
}
