/*
 * test_block.c - text looked at in blocks (internal.h, block_*.h), compared with one byte at a
 * time: every byte at every place, every length and alignment.
 */
#include "json/internal.h"

#include "json/shape.h"
#include "tests/test.h"

enum { LONGEST = 50, ROOM = LONGEST + 2 * CX_JSON_BLOCK };

static size_t plain_count(const uint8_t *at, size_t size)
{
    size_t count = 0;
    while (count < size && at[count] >= 0x20 && at[count] < 0x7f && at[count] != '"' &&
           at[count] != '\\')
        count++;
    return count;
}

static void check_text(const uint8_t *text, size_t size)
{
    uint8_t copy[ROOM];
    size_t expected = plain_count(text, size);
    const uint8_t *stop = cx_json_scan_plain(text, text + size);
    CHECK_INT(stop - text, expected);
    memset(copy, 0x5a, sizeof copy);
    CHECK_INT(cx_json_copy_plain(copy, text, text + size), expected);
    CHECK(memcmp(copy, text, expected) == 0);
    for (size_t i = size + CX_JSON_BLOCK; i < sizeof copy; i++) /* no further than it may */
        CHECK_INT(copy[i], 0x5a);
}

CX_TEST(block_stops_at_every_byte_at_every_place)
{
    uint8_t text[LONGEST];
    memset(text, 'a', sizeof text);
    for (size_t place = 0; place < LONGEST; place++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            text[place] = (uint8_t)byte;
            check_text(text, LONGEST);
        }
        text[place] = 'a';
    }
}

CX_TEST(block_of_every_length_and_alignment)
{
    uint8_t room[16 + LONGEST + 1];
    for (size_t at = 0; at < 16; at++) {
        for (size_t size = 0; size <= LONGEST; size++) {
            for (size_t i = 0; i < sizeof room; i++)
                room[i] = (uint8_t)(0x20 + (i * 7) % 0x5f == '"' || 0x20 + (i * 7) % 0x5f == '\\'
                                        ? 'x'
                                        : 0x20 + (i * 7) % 0x5f);
            room[at + size] = '"'; /* past the end: not looked at */
            check_text(room + at, size);
            if (size != 0) {
                room[at + size / 2] = '\n';
                check_text(room + at, size);
            }
        }
    }
}

CX_TEST(block_finds_every_difference)
{
    char a[16], b[16];
    for (size_t size = 0; size <= 16; size++) {
        for (size_t place = 0; place < 16; place++) {
            for (unsigned bit = 0; bit < 8; bit++) {
                memset(a, 'n', sizeof a);
                memset(b, 'n', sizeof b);
                CHECK(cx_json_same_16((const uint8_t *)a, b, size));
                b[place] = (char)(b[place] ^ 1 << bit);
                CHECK_INT(cx_json_same_16((const uint8_t *)a, b, size), place >= size);
            }
        }
    }
}

#ifdef CX_JSON_BLOCKS
CX_TEST(block_knows_digits)
{
    uint8_t text[16];
    memset(text, '7', sizeof text);
    CHECK(cx_json_block_not_digits(cx_json_block_load(text)) == 0);
    for (size_t place = 0; place < 16; place++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            text[place] = (uint8_t)byte;
            cx_json_mask others = cx_json_block_not_digits(cx_json_block_load(text));
            bool digit = byte >= '0' && byte <= '9';
            CHECK_INT(others == 0, digit);
            CHECK(digit || cx_json_mask_first(others) == place);
        }
        text[place] = '7';
    }
}
#endif
