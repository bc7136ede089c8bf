/*
 * test_wide.c - products without a 128-bit type are those with one.
 */
#include "base/wide.h"
#include "tests/test.h"

static const uint64_t edges[] = {0,
                                 1,
                                 2,
                                 9,
                                 10,
                                 UINT32_MAX,
                                 (uint64_t)UINT32_MAX + 1,
                                 UINT64_C(9999999999999999999),
                                 UINT64_MAX - 1,
                                 UINT64_MAX};
enum { EDGES = sizeof edges / sizeof edges[0] };

static void check_pair(uint64_t a, uint64_t b)
{
    cx_wide product = cx_wide_product(a, b), plain = cx_wide_product_plain(a, b);
    CHECK(product.high == plain.high && product.low == plain.low);
    for (int i = 1; i < EDGES; i++) {
        uint64_t m = edges[i];
        CHECK(cx_wide_product_mod(a % m, b % m, m) == cx_wide_product_mod_plain(a % m, b % m, m));
    }
}

CX_TEST(wide_edges)
{
    for (int i = 0; i < EDGES; i++)
        for (int j = 0; j < EDGES; j++)
            check_pair(edges[i], edges[j]);
}

CX_TEST(wide_known_products)
{
    cx_wide square = cx_wide_product_plain(UINT64_MAX, UINT64_MAX);
    CHECK(square.high == UINT64_MAX - 1 && square.low == 1);
    /* (-1)^2 = 1 modulo anything. */
    CHECK(cx_wide_product_mod_plain(UINT64_C(9999999999999999998), UINT64_C(9999999999999999998),
                                    UINT64_C(9999999999999999999)) == 1);
    CHECK(cx_wide_sum_mod(UINT64_MAX - 1, UINT64_MAX - 1, UINT64_MAX) == UINT64_MAX - 2);
}

CX_TEST(wide_random_numbers)
{
    uint64_t state = 20261122;
    for (int i = 0; i < 2000; i++)
        check_pair(cx_test_random(&state), cx_test_random(&state));
}
