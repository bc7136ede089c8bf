/*
 * test_layout.c - the bytes of docs/formats/log.md §2, and that none of them can change unseen.
 */
#include "log/internal.h"

#include "tests/test.h"

static const uint8_t home[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static cx_log_header sample_header(void)
{
    cx_log_header header = {.version = CX_LOG_VERSION,
                            .number = 0x01020304,
                            .first_commit = 0x1112131415161718,
                            .size_bytes = 0x2122232425262728};
    memcpy(header.home_id, home, sizeof home);
    memset(header.previous_end.bytes, 0xaa, 32);
    return header;
}

CX_TEST(layout_header_has_its_offsets)
{
    static uint8_t bytes[CX_LOG_HEADER_SIZE];
    cx_log_header header = sample_header(), back;
    cx_log_header_encode(&header, bytes);
    CHECK(memcmp(bytes,
                 "\x89"
                 "CXLOG\r\n",
                 8) == 0);
    CHECK(memcmp(bytes + 8, "\0\0\0\1\1\2\3\4", 8) == 0);
    CHECK(memcmp(bytes + 16, home, 16) == 0);
    CHECK(memcmp(bytes + 32, "\x11\x12\x13\x14\x15\x16\x17\x18\x21\x22\x23\x24\x25\x26\x27\x28",
                 16) == 0);
    for (size_t i = 48; i < 80; i++)
        CHECK_INT(bytes[i], 0xaa);
    for (size_t i = 80; i < 4092; i++)
        CHECK_INT(bytes[i], 0);
    REQUIRE(cx_log_header_decode(bytes, &back));
    CHECK(back.number == header.number && back.first_commit == header.first_commit &&
          back.size_bytes == header.size_bytes && back.version == 1 &&
          memcmp(back.home_id, home, 16) == 0 &&
          cx_digest_eq(&back.previous_end, &header.previous_end));
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] ^= 0x10;
        CHECK(!cx_log_header_decode(bytes, &back));
        bytes[i] ^= 0x10;
    }
}

CX_TEST(layout_frame_has_its_offsets)
{
    uint8_t bytes[64];
    cx_log_frame frame = {cx_bytes_from("guard", 5), cx_bytes_from("erase", 5)};
    uint32_t guarded, erasable;
    CHECK_INT(cx_log_frame_bytes(5, 5), 40);
    CHECK_INT(cx_log_frame_bytes(8, 0), 24);
    CHECK_INT(cx_log_frame_bytes(1, 0), 24);
    CHECK_INT(cx_log_frame_bytes(9, 8), 48);
    memset(bytes, 0xee, sizeof bytes);
    cx_log_frame_encode(&frame, cx_log_seed(home, 7), 4096, bytes);
    CHECK(memcmp(bytes, "Frm\xf1\0\0\0\5\0\0\0\5", 12) == 0);
    CHECK(memcmp(bytes + 16, "guard\0\0\0", 8) == 0);
    CHECK(memcmp(bytes + 24, "Liv\xe1", 4) == 0);
    CHECK(memcmp(bytes + 32, "erase\0\0\0", 8) == 0);
    CHECK_INT(bytes[40], 0xee);
    REQUIRE(cx_log_frame_sizes(bytes, &guarded, &erasable));
    CHECK_INT(guarded, 5);
    CHECK_INT(erasable, 5);
}

/* Any byte of a frame changed: the guarded part is refused, or the erasable part is called spoilt.
 */
CX_TEST(layout_frame_shows_every_change)
{
    uint8_t bytes[40];
    cx_log_frame frame = {cx_bytes_from("guard", 5), cx_bytes_from("erase", 5)}, got;
    cx_log_erasable state;
    uint32_t seed = cx_log_seed(home, 7);
    cx_log_frame_encode(&frame, seed, 4096, bytes);
    REQUIRE(cx_log_frame_decode(bytes, seed, 4096, &got, &state));
    CHECK_INT(state, CX_LOG_LIVE);
    CHECK_STR(cx_bytes_str(got.guarded), "guard");
    CHECK_STR(cx_bytes_str(got.erasable), "erase");
    for (size_t i = 0; i < sizeof bytes; i++)
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] = (uint8_t)(bytes[i] ^ 1 << bit);
            uint32_t guarded = 0, erasable = 0;
            bool sized = cx_log_frame_sizes(bytes, &guarded, &erasable) &&
                         cx_log_frame_bytes(guarded, erasable) <= sizeof bytes;
            bool good = sized && cx_log_frame_decode(bytes, seed, 4096, &got, &state);
            if (i < 24)
                CHECK(!good);
            else
                CHECK(good && state == CX_LOG_SPOILT && got.erasable.size == 0);
            bytes[i] = (uint8_t)(bytes[i] ^ 1 << bit);
        }
    /* Elsewhere in the file, in another segment, in another home. */
    CHECK(!cx_log_frame_decode(bytes, seed, 4104, &got, &state));
    CHECK(!cx_log_frame_decode(bytes, cx_log_seed(home, 8), 4096, &got, &state));
    CHECK(!cx_log_frame_decode(bytes, cx_log_seed((const uint8_t *)"another home 016", 7), 4096,
                               &got, &state));
}

CX_TEST(layout_erased_is_said_not_guessed)
{
    uint8_t bytes[40];
    cx_log_frame frame = {cx_bytes_from("guard", 5), cx_bytes_from("erase", 5)}, got;
    cx_log_erasable state;
    uint32_t seed = cx_log_seed(home, 7);
    cx_log_frame_encode(&frame, seed, 4096, bytes);
    memset(bytes + 24, 0, 16); /* as if it had never been written */
    REQUIRE(cx_log_frame_decode(bytes, seed, 4096, &got, &state));
    CHECK_INT(state, CX_LOG_SPOILT);
    cx_log_frame_encode(&frame, seed, 4096, bytes);
    cx_log_erased_head(bytes + 24);
    REQUIRE(cx_log_frame_decode(bytes, seed, 4096, &got, &state));
    CHECK_INT(state, CX_LOG_HALF_ERASED);
    memset(bytes + 32, 0, 5);
    REQUIRE(cx_log_frame_decode(bytes, seed, 4096, &got, &state));
    CHECK_INT(state, CX_LOG_ERASED);
    CHECK_INT(got.erasable.size, 0);
    CHECK_STR(cx_bytes_str(got.guarded), "guard");
}

CX_TEST(layout_frame_sizes_have_limits)
{
    uint8_t head[16] = "Frm\xf1";
    uint32_t guarded, erasable;
    CHECK(!cx_log_frame_sizes(head, &guarded, &erasable)); /* nothing guarded */
    head[4] = 5;                                           /* 80 MiB */
    CHECK(cx_log_frame_sizes(head, &guarded, &erasable));
    head[7] = 1;
    CHECK(!cx_log_frame_sizes(head, &guarded, &erasable));
    head[7] = 0;
    head[8] = 0x40; /* 1 GiB */
    CHECK(cx_log_frame_sizes(head, &guarded, &erasable));
    CHECK_INT(erasable, CX_LOG_ERASABLE_MAX);
    head[11] = 1;
    CHECK(!cx_log_frame_sizes(head, &guarded, &erasable));
}

CX_TEST(layout_mark_has_its_offsets_and_shows_every_change)
{
    uint8_t bytes[32];
    cx_log_mark mark = {3, 0x0102030405060708, 0x1112131415161718, 0x21222324}, got;
    uint32_t seed = cx_log_seed(home, 7);
    cx_log_mark_encode(&mark, seed, 8192, bytes);
    CHECK(memcmp(bytes, "End\xd1\0\0\0\3\1\2\3\4\5\6\7\x08", 16) == 0);
    CHECK(memcmp(bytes + 16, "\x11\x12\x13\x14\x15\x16\x17\x18\x21\x22\x23\x24", 12) == 0);
    REQUIRE(cx_log_is_mark(bytes) && cx_log_mark_decode(bytes, seed, 8192, &got));
    CHECK(got.frame_count == 3 && got.commit == mark.commit && got.heads_crc == 0x21222324 &&
          got.group_bytes == mark.group_bytes);
    for (size_t i = 0; i < 32; i++)
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] = (uint8_t)(bytes[i] ^ 1 << bit);
            CHECK(!cx_log_mark_decode(bytes, seed, 8192, &got));
            bytes[i] = (uint8_t)(bytes[i] ^ 1 << bit);
        }
    CHECK(!cx_log_mark_decode(bytes, seed, 8200, &got));
    CHECK(!cx_log_mark_decode(bytes, cx_log_seed(home, 8), 8192, &got));
}

CX_TEST(layout_end_digest_depends_on_all_of_the_end)
{
    uint8_t mark[32] = {1, 2, 3};
    cx_log_header header = sample_header();
    cx_digest first = cx_log_end_digest(&header, 5000, mark), other;
    other = cx_log_end_digest(&header, 5008, mark);
    CHECK(!cx_digest_eq(&first, &other));
    mark[31] = 1;
    other = cx_log_end_digest(&header, 5000, mark);
    CHECK(!cx_digest_eq(&first, &other));
    mark[31] = 0;
    header.previous_end.bytes[0] = 0;
    other = cx_log_end_digest(&header, 5000, mark);
    CHECK(!cx_digest_eq(&first, &other));
}
