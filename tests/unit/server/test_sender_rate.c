/*
 * test_sender_rate.c - token buckets: what a minute allows, refilling, one name apart from another,
 * a full table.
 */
#include <stdio.h>
#include <stdlib.h>

#include "server/sender_rate.h"
#include "tests/test.h"

#define SECOND_NS UINT64_C(1000000000)

CX_TEST(a_bucket_holds_what_a_minute_allows_and_refills)
{
    cx_sender_rate *rate = malloc(sizeof *rate);
    CHECK(rate != NULL);
    cx_sender_rate_init(rate, 7, 60, 60);
    for (int i = 0; i < 60; i++)
        CHECK(cx_sender_rate_take(rate, CX_STR("a"), 1, SECOND_NS));
    CHECK(!cx_sender_rate_take(rate, CX_STR("a"), 1, SECOND_NS));
    CHECK(cx_sender_rate_take(rate, CX_STR("b"), 60, SECOND_NS));
    /* One a second comes back, and never more than the bucket holds. */
    CHECK(cx_sender_rate_take(rate, CX_STR("a"), 2, 3 * SECOND_NS));
    CHECK(!cx_sender_rate_take(rate, CX_STR("a"), 1, 3 * SECOND_NS));
    CHECK(!cx_sender_rate_take(rate, CX_STR("a"), 61, 3600 * SECOND_NS));
    CHECK(cx_sender_rate_take(rate, CX_STR("a"), 60, 3600 * SECOND_NS));
    /* A clock that goes back gives nothing. */
    CHECK(!cx_sender_rate_take(rate, CX_STR("a"), 1, SECOND_NS));
    cx_sender_rate_done(rate);
    free(rate);
}

CX_TEST(a_flood_of_names_does_not_free_one_that_is_limited)
{
    cx_sender_rate *rate = malloc(sizeof *rate);
    char name[32];
    CHECK(rate != NULL);
    cx_sender_rate_init(rate, 9, 60, 100);
    CHECK(cx_sender_rate_take(rate, CX_STR("limited"), 100, SECOND_NS));
    for (int i = 0; i < 100000; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        CHECK(cx_sender_rate_take(rate, cx_str_z(name), 1, SECOND_NS));
    }
    CHECK(!cx_sender_rate_take(rate, CX_STR("limited"), 1, SECOND_NS));
    cx_sender_rate_done(rate);
    free(rate);
}
