/*
 * test_arena.c - bump allocation: alignment, marks, limits, reuse, what happens without memory.
 */
#include "base/arena.h"

#include "base/bytes.h"
#include "tests/support/fault.h"
#include "tests/test.h"

CX_TEST(arena_blocks_are_aligned_and_apart)
{
    cx_arena arena;
    uint64_t state = cx_test_seed();
    uint8_t *blocks[400];
    size_t sizes[400];
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (unsigned i = 0; i < 400; i++) {
        size_t align = (size_t)1 << (cx_test_random(&state) % 7);
        sizes[i] = (size_t)(cx_test_random(&state) % 300);
        blocks[i] = cx_arena_push(&arena, sizes[i], align);
        REQUIRE(blocks[i] != NULL);
        CHECK((uintptr_t)blocks[i] % align == 0);
        memset(blocks[i], (int)(i & 0xFF), sizes[i]);
    }
    for (unsigned i = 0; i < 400; i++)
        for (size_t k = 0; k < sizes[i]; k++)
            CHECK(blocks[i][k] == (i & 0xFF));
    cx_arena_done(&arena);
}

CX_TEST(arena_reset_to_a_mark_keeps_what_came_before)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_str before = cx_arena_copy_str(&arena, CX_STR("before"));
    cx_arena_mark mark = cx_arena_mark_now(&arena);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 100; i++)
            REQUIRE(cx_arena_push(&arena, 1000, 8) != NULL);
        cx_arena_reset(&arena, mark);
    }
    size_t total = arena.total_bytes;
    for (int i = 0; i < 100; i++)
        REQUIRE(cx_arena_push(&arena, 1000, 8) != NULL);
    CHECK_INT(arena.total_bytes, total); /* chunks are kept: no more memory is taken */
    CHECK_STR(before, "before");
    cx_arena_done(&arena);
}

CX_TEST(arena_marked_while_empty_is_reset_to_its_start)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_arena_mark mark = cx_arena_mark_now(&arena);
    cx_arena_reset(&arena, mark); /* no chunk yet: nothing to do */
    void *first = cx_arena_push(&arena, 64, 8);
    cx_arena_reset(&arena, mark);
    CHECK(cx_arena_push(&arena, 64, 8) == first);
    cx_arena_done(&arena);
}

CX_TEST(arena_holds_a_block_larger_than_any_chunk)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    uint8_t *small = cx_arena_push(&arena, 10, 1);
    uint8_t *large = cx_arena_push(&arena, (size_t)20 << 20, 64);
    uint8_t *after = cx_arena_push(&arena, 10, 1);
    REQUIRE(small != NULL && large != NULL && after != NULL);
    memset(large, 0xAA, (size_t)20 << 20);
    memset(small, 1, 10);
    memset(after, 2, 10);
    CHECK(large[0] == 0xAA && large[((size_t)20 << 20) - 1] == 0xAA && small[9] == 1);
    cx_arena_done(&arena);
}

CX_TEST(arena_limit_is_never_passed)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 100000);
    size_t given = 0;
    while (cx_arena_push(&arena, 777, 8) != NULL)
        given += 777;
    CHECK(given > 50000 && given < 100000);
    CHECK(arena.total_bytes <= 100000);
    CHECK(cx_arena_push(&arena, 200000, 8) == NULL);
    CHECK(cx_arena_push(&arena, SIZE_MAX, 8) == NULL);
    CHECK(cx_arena_push(&arena, SIZE_MAX - 4096, 64) == NULL);
    cx_arena_done(&arena);
}

CX_TEST(arena_arrays_refuse_sizes_that_overflow)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK(CX_ARENA_ARRAY(&arena, uint64_t, SIZE_MAX / 4) == NULL);
    CHECK(CX_ARENA_ARRAY(&arena, uint64_t, 3) != NULL);
    CHECK(cx_arena_push(&arena, 0, 1) != NULL); /* NULL is only ever a failure */
    cx_arena_done(&arena);
}

CX_TEST(arena_copies_are_terminated)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_str copy = cx_arena_copy_str(&arena, cx_str_from("abcdef", 3));
    CHECK_STR(copy, "abc");
    CHECK(copy.data[3] == 0);
    copy = cx_arena_copy_str(&arena, (cx_str){NULL, 0});
    CHECK(copy.data != NULL && copy.size == 0);
    CHECK_STR(cx_arena_printf(&arena, "%s-%d", "x", -7), "x--7");
    CHECK_STR(cx_arena_printf(&arena, "%s", ""), "");
    cx_arena_done(&arena);
}

CX_TEST(arena_without_memory_stays_usable)
{
    for (uint64_t at = 1; at < 6; at++) {
        fault_alloc memory;
        cx_arena arena;
        unsigned failed = 0;
        fault_alloc_init(&memory, at, false);
        cx_arena_init(&arena, &memory.alloc, 0);
        for (unsigned i = 0; i < 100; i++) {
            uint8_t *block = cx_arena_push(&arena, 1000, 8);
            failed += block == NULL;
            if (block != NULL)
                memset(block, 7, 1000);
        }
        CHECK_INT(failed, 1);
        cx_arena_done(&arena);
        CHECK_INT(memory.live_bytes, 0);
        CHECK(!memory.wrong_size);
    }
}
