/*
 * test_best.c - the best of many, against sorting all of them.
 */
#include "memory/search/best.h"

#include <math.h>
#include <stdlib.h>

#include "tests/unit/memory/fixture.h"

enum { MANY = 500 };

static int in_order(const void *a, const void *b)
{
    const cx_ranked *left = a, *right = b;
    if (left->rank != right->rank)
        return left->rank > right->rank ? -1 : 1;
    return memcmp(left->id.bytes, right->id.bytes, sizeof left->id.bytes);
}

/* Each is offered once or twice, in any order; then what comes after the last, until none is left.
 */
static void check_pages(cx_ranked *all, size_t count, size_t keep, uint64_t *state)
{
    cx_best best = {.alloc = cx_alloc_default(), .keep = keep};
    cx_err err;
    size_t seen = 0;
    cx_ranked after;
    cx_best_begin(&best, NULL);
    do {
        CHECK(seen <= count);
        for (size_t i = count; i-- > 0;)
            for (uint64_t times = 1 + cx_test_random(state) % 2; times-- > 0;)
                CHECK_STATUS(cx_best_add(&best, &all[i].id, all[i].rank, &err), &err);
        CHECK(best.items.capacity <= 4 * keep + 64);
        cx_best_end(&best);
        REQUIRE(best.items.count == (count - seen < keep ? count - seen : keep));
        CHECK_INT(best.cut, count - seen > keep);
        for (size_t i = 0; i < best.items.count; i++)
            CHECK(in_order(&best.items.items[i], &all[seen + i]) == 0);
        seen += best.items.count;
        after = best.last;
    } while (best.cut && (cx_best_begin(&best, &after), true));
    CHECK_INT(seen, count);
    cx_best_done(&best);
}

CX_TEST(best_are_those_of_sorting)
{
    uint64_t state = cx_test_seed();
    cx_ranked all[MANY];
    for (size_t round = 0; round < 40; round++) {
        const size_t count = cx_test_random(&state) % (MANY + 1);
        for (size_t i = 0; i < count; i++) {
            all[i] = (cx_ranked){fixture_id(i + 1), (float)(cx_test_random(&state) % 7) / 7.0f};
        }
        if (count != 0)
            qsort(all, count, sizeof *all, in_order);
        check_pages(all, count, 1 + cx_test_random(&state) % 40, &state);
    }
}

CX_TEST(best_puts_what_is_no_number_last)
{
    cx_best best = {.alloc = cx_alloc_default(), .keep = 2};
    cx_err err;
    const float ranks[] = {NAN, -1.0f, 0.5f};
    cx_best_begin(&best, NULL);
    for (size_t i = 0; i < CX_COUNT_OF(ranks); i++) {
        const cx_id id = fixture_id(i + 1);
        CHECK_STATUS(cx_best_add(&best, &id, ranks[i], &err), &err);
    }
    cx_best_end(&best);
    REQUIRE(best.items.count == 2);
    CHECK_INT(best.items.items[0].id.bytes[15], 3);
    CHECK_INT(best.items.items[1].id.bytes[15], 2);
    cx_best_done(&best);
}
