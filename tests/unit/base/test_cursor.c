/*
 * test_cursor.c - readers and writers that check bounds once.
 */
#include "base/cursor.h"

#include "tests/test.h"

CX_TEST(cursor_reads_big_endian)
{
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    cx_reader reader = cx_reader_over(cx_bytes_from(bytes, sizeof bytes));
    CHECK_INT(cx_reader_u8(&reader), 0x01);
    CHECK_INT(cx_reader_u16(&reader), 0x0203);
    CHECK_INT(cx_reader_u32(&reader), 0x04050607);
    CHECK(cx_reader_u64(&reader) == 0x08090a0b0c0d0e0fu);
    CHECK_INT(cx_reader_left(&reader), 0);
    CHECK(cx_reader_ok(&reader));
}

CX_TEST(cursor_reader_that_ran_over_stays_failed)
{
    static const uint8_t bytes[] = {0xAA, 0xBB, 0xCC};
    cx_reader reader = cx_reader_over(cx_bytes_from(bytes, sizeof bytes));
    CHECK_INT(cx_reader_u32(&reader), 0); /* one byte too few */
    CHECK(!cx_reader_ok(&reader));
    CHECK_INT(cx_reader_u8(&reader), 0); /* there would be one, but the reader has failed */
    cx_bytes taken = cx_reader_bytes(&reader, 0);
    CHECK(taken.data == NULL && taken.size == 0);
    reader = cx_reader_over(cx_bytes_from(bytes, sizeof bytes));
    CHECK_INT(cx_reader_bytes(&reader, 3).size, 3);
    CHECK_INT(cx_reader_bytes(&reader, 0).size, 0);
    CHECK(cx_reader_ok(&reader));
    CHECK_INT(cx_reader_bytes(&reader, SIZE_MAX).size, 0);
    CHECK(!cx_reader_ok(&reader));
}

CX_TEST(cursor_reads_nothing_from_nothing)
{
    cx_reader reader = cx_reader_over((cx_bytes){NULL, 0});
    CHECK_INT(cx_reader_bytes(&reader, 0).size, 0);
    CHECK(cx_reader_ok(&reader));
    CHECK_INT(cx_reader_u8(&reader), 0);
    CHECK(!cx_reader_ok(&reader));
}

CX_TEST(cursor_writes_what_a_reader_reads)
{
    uint8_t memory[64];
    uint64_t state = cx_test_seed();
    for (size_t width = 1; width <= 8; width++) {
        uint64_t value = cx_test_random(&state) >> (64 - 8 * width);
        cx_writer writer = cx_writer_over(memory, sizeof memory);
        cx_writer_uint(&writer, value, width);
        CHECK_INT(writer.offset, width);
        cx_reader reader = cx_reader_over(cx_bytes_from(memory, writer.offset));
        CHECK(cx_reader_uint(&reader, width) == value);
    }
}

CX_TEST(cursor_writer_never_passes_its_end)
{
    uint8_t memory[5] = {0, 0, 0, 0, 0x5A};
    cx_writer writer = cx_writer_over(memory, 4);
    cx_writer_uint(&writer, 0x010203, 3);
    CHECK(cx_writer_ok(&writer));
    cx_writer_uint(&writer, 0xFFFF, 2);
    CHECK(!cx_writer_ok(&writer));
    cx_writer_put(&writer, "x", 1); /* would fit */
    CHECK_INT(writer.offset, 3);
    CHECK_INT(memory[3], 0);
    CHECK_INT(memory[4], 0x5A);
    writer = cx_writer_over(memory, 4);
    cx_writer_put(&writer, NULL, 0);
    CHECK(cx_writer_ok(&writer));
}
