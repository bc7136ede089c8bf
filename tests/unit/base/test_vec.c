/*
 * test_vec.c - growing arrays.
 */
#include "base/vec.h"

#include "tests/support/fault.h"
#include "tests/test.h"

CX_TEST(vec_keeps_its_items_while_growing)
{
    const cx_alloc *alloc = cx_alloc_default();
    CX_VEC(uint32_t) numbers = {0};
    for (uint32_t i = 0; i < 100000; i++) {
        uint32_t *slot = cx_vec_push(&numbers, alloc);
        REQUIRE(slot != NULL);
        *slot = i * 7;
    }
    CHECK_INT(numbers.count, 100000);
    for (uint32_t i = 0; i < 100000; i++)
        CHECK(numbers.items[i] == i * 7);
    cx_vec_done(&numbers, alloc);
    CHECK(numbers.items == NULL && numbers.count == 0 && numbers.capacity == 0);
    cx_vec_done(&numbers, alloc);
}

CX_TEST(vec_without_memory_keeps_what_it_has)
{
    fault_alloc memory;
    CX_VEC(uint64_t) numbers = {0};
    fault_alloc_init(&memory, 2, true);
    uint64_t *slot;
    while ((slot = cx_vec_push(&numbers, &memory.alloc)) != NULL)
        *slot = numbers.count;
    CHECK(numbers.count == numbers.capacity && numbers.count >= 8);
    for (size_t i = 0; i < numbers.count; i++)
        CHECK(numbers.items[i] == i + 1);
    CHECK(!cx_vec_reserve(&numbers, numbers.count + 1, &memory.alloc));
    CHECK(cx_vec_reserve(&numbers, numbers.count, &memory.alloc));
    cx_vec_done(&numbers, &memory.alloc);
    CHECK_INT(memory.live_bytes, 0);
    CHECK(!memory.wrong_size);
}

CX_TEST(vec_refuses_sizes_that_overflow)
{
    CX_VEC(uint64_t) numbers = {0};
    CHECK(!cx_vec_reserve(&numbers, SIZE_MAX / 4, cx_alloc_default()));
    CHECK(!cx_vec_reserve(&numbers, SIZE_MAX, cx_alloc_default()));
    CHECK(numbers.items == NULL);
    CHECK(cx_alloc_zeroed(cx_alloc_default(), SIZE_MAX / 2, 4) == NULL);
}
