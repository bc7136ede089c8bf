/*
 * test_near.c - nearest vectors against a plain search, and sums that have the same bits
 * everywhere.
 */
#include "memory/near.h"

#include <math.h>
#include <stdlib.h>

#include "tests/unit/memory/fixture.h"

static float random_float(uint64_t *state)
{
    return (float)((int64_t)(cx_test_random(state) >> 40) - (1 << 23)) / 8388608.0f;
}

/* The order of the header, one number at a time. */
static float plain_dot(const float *a, const float *b, size_t dim)
{
    volatile float lanes[32] = {0};
    for (size_t i = 0; i < dim; i++) {
        volatile float product = a[i] * b[i];
        lanes[i % 32] = lanes[i % 32] + product;
    }
    for (size_t width = 16; width != 0; width /= 2)
        for (size_t i = 0; i < width; i++)
            lanes[i] = lanes[i] + lanes[i + width];
    return lanes[0];
}

CX_TEST(dot_has_one_order_of_summation)
{
    uint64_t state = cx_test_seed();
    float a[300], b[300];
    for (size_t dim = 1; dim < 300; dim++) {
        float *exact_a = malloc(dim * sizeof *exact_a), *exact_b = malloc(dim * sizeof *exact_b);
        for (size_t i = 0; i < dim; i++) {
            a[i] = exact_a[i] = random_float(&state);
            b[i] = exact_b[i] = random_float(&state);
        }
        float expected = plain_dot(a, b, dim), got = cx_near_dot(exact_a, exact_b, dim),
              portable = cx_near_dot_portable(exact_a, exact_b, dim);
        if (memcmp(&expected, &got, sizeof got) != 0 ||
            memcmp(&expected, &portable, sizeof got) != 0)
            cx_test_fail(__FILE__, __LINE__, "%zu components: %a, %a, expected %a", dim,
                         (double)got, (double)portable, (double)expected);
        free(exact_a);
        free(exact_b);
    }
    CHECK(cx_near_dot(NULL, NULL, 0) == 0.0f);
}

typedef struct plain_hit {
    size_t row;
    float score;
} plain_hit;

static int compare_hits(const void *a, const void *b)
{
    const plain_hit *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->row < y->row ? -1 : 1;
}

static void check_search(uint64_t *state, size_t rows, size_t dim, size_t top,
                         cx_near_measure measure)
{
    float *matrix = malloc(rows * dim * sizeof *matrix + 1), query[64];
    plain_hit *all = malloc(rows * sizeof *all + 1);
    cx_near_hit *hits = malloc(top * sizeof *hits);
    size_t count = 99;
    cx_err err;
    /* Few different values, so that scores are often equal. */
    for (size_t i = 0; i < rows * dim; i++)
        matrix[i] = (float)(cx_test_random(state) % 3) - 1.0f;
    for (size_t i = 0; i < dim; i++)
        query[i] = (float)(cx_test_random(state) % 3) - 1.0f;
    for (size_t row = 0; row < rows; row++)
        all[row] = (plain_hit){row, cx_near_score(query, matrix + row * dim, dim, measure)};
    if (rows != 0)
        qsort(all, rows, sizeof *all, compare_hits);
    CHECK_STATUS(cx_near_search(matrix, rows, query, dim, measure, hits, top, &count, &err), &err);
    CHECK_INT(count, rows < top ? rows : top);
    for (size_t i = 0; i < count; i++)
        if (hits[i].row != all[i].row || hits[i].score != all[i].score)
            cx_test_fail(__FILE__, __LINE__, "hit %zu is row %zu, expected %zu", i, hits[i].row,
                         all[i].row);
    free(matrix);
    free(all);
    free(hits);
}

CX_TEST(search_against_sorting_everything)
{
    uint64_t state = cx_test_seed();
    for (size_t i = 0; i < 200; i++)
        check_search(&state, cx_test_random(&state) % 80, 1 + cx_test_random(&state) % 40,
                     1 + cx_test_random(&state) % 30, i % 2 == 0 ? CX_NEAR_COSINE : CX_NEAR_DOT);
}

CX_TEST(cosine)
{
    static const float x[] = {3, 0}, y[] = {0, 4}, xy[] = {2, 2}, zero[] = {0, 0},
                       minus[] = {-1, 0};
    CHECK(cx_near_score(x, x, 2, CX_NEAR_COSINE) == 1.0f);
    CHECK(cx_near_score(x, y, 2, CX_NEAR_COSINE) == 0.0f);
    CHECK(cx_near_score(x, minus, 2, CX_NEAR_COSINE) == -1.0f);
    CHECK(fabsf(cx_near_score(x, xy, 2, CX_NEAR_COSINE) - 0.70710677f) < 1e-7f);
    CHECK(cx_near_score(x, zero, 2, CX_NEAR_COSINE) == 0.0f);
    CHECK(cx_near_score(x, xy, 2, CX_NEAR_DOT) == 6.0f);
}

CX_TEST(search_refuses)
{
    float query[2] = {1, 0}, rows[4] = {1, 0, NAN, 1};
    cx_near_hit hits[2];
    size_t count;
    cx_err err;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++) {
        query[1] = bad[i];
        CHECK_INT(cx_near_search(rows, 2, query, 2, CX_NEAR_DOT, hits, 2, &count, &err).code,
                  CX_E_USAGE);
        CHECK_STR(fixture_tag(&err), "InvalidArgument");
    }
    query[1] = 0;
    CHECK_INT(cx_near_search(rows, 2, query, 0, CX_NEAR_DOT, hits, 2, &count, &err).code,
              CX_E_USAGE);
    CHECK_INT(
        cx_near_search(rows, 2, query, CX_NEAR_DIM_MAX + 1, CX_NEAR_DOT, hits, 2, &count, &err)
            .code,
        CX_E_USAGE);
    CHECK_INT(cx_near_search(rows, 2, query, 2, CX_NEAR_DOT, hits, 0, &count, &err).code,
              CX_E_USAGE);
    CHECK_INT(
        cx_near_search(rows, 2, query, 2, CX_NEAR_DOT, hits, CX_NEAR_TOP_MAX + 1, &count, &err)
            .code,
        CX_E_USAGE);
    /* A row without a score is left out. */
    CHECK_STATUS(cx_near_search(rows, 2, query, 2, CX_NEAR_DOT, hits, 2, &count, &err), &err);
    CHECK(count == 1 && hits[0].row == 0);
}
