/*
 * test_buf.c - growing buffers: contents, numbers, and that a failed one never passes as whole.
 */
#include "base/buf.h"

#include "tests/support/fault.h"
#include "tests/test.h"

CX_TEST(buf_collects_what_is_added)
{
    cx_buf buf;
    cx_err err;
    cx_buf_init(&buf, cx_alloc_default());
    cx_buf_add(&buf, NULL, 0);
    CHECK_INT(buf.size, 0);
    cx_buf_add_z(&buf, "one");
    cx_buf_add_byte(&buf, ',');
    cx_buf_add_str(&buf, CX_STR("two"));
    cx_buf_printf(&buf, ";%05d;", 42);
    CHECK_STR(cx_buf_str(&buf), "one,two;00042;");
    CHECK_STATUS(cx_buf_check(&buf, &err), &err);
    cx_buf_clear(&buf);
    CHECK_INT(cx_buf_str(&buf).size, 0);
    cx_buf_done(&buf);
    CHECK(buf.data == NULL && buf.capacity == 0);
}

CX_TEST(buf_writes_whole_numbers_to_their_ends)
{
    cx_buf buf;
    cx_buf_init(&buf, cx_alloc_default());
    cx_buf_add_u64(&buf, 0);
    cx_buf_add_byte(&buf, ' ');
    cx_buf_add_u64(&buf, UINT64_MAX);
    cx_buf_add_byte(&buf, ' ');
    cx_buf_add_i64(&buf, INT64_MIN);
    cx_buf_add_byte(&buf, ' ');
    cx_buf_add_i64(&buf, INT64_MAX);
    cx_buf_add_byte(&buf, ' ');
    cx_buf_add_i64(&buf, -1);
    CHECK_STR(cx_buf_str(&buf),
              "0 18446744073709551615 -9223372036854775808 9223372036854775807 -1");
    cx_buf_done(&buf);
}

CX_TEST(buf_z_terminates_without_counting)
{
    cx_buf buf;
    cx_buf_init(&buf, cx_alloc_default());
    CHECK(strcmp(cx_buf_z(&buf), "") == 0);
    for (int i = 0; i < 200; i++) {
        cx_buf_add_byte(&buf, 'x');
        CHECK_INT(strlen(cx_buf_z(&buf)), i + 1);
    }
    CHECK_INT(buf.size, 200);
    cx_buf_done(&buf);
}

CX_TEST(buf_grows_under_random_appends)
{
    cx_buf buf;
    uint64_t state = cx_test_seed();
    static uint8_t expected[300000];
    size_t size = 0;
    cx_buf_init(&buf, cx_alloc_default());
    while (size < 250000) {
        uint8_t piece[2000];
        size_t count = (size_t)(cx_test_random(&state) % sizeof piece);
        memset(piece, (int)(state & 0xFF), count);
        memcpy(expected + size, piece, count);
        size += count;
        cx_buf_add(&buf, piece, count);
    }
    CHECK(cx_str_eq(cx_buf_str(&buf), cx_str_from((const char *)expected, size)));
    cx_buf_done(&buf);
}

CX_TEST(buf_that_failed_says_so_whatever_follows)
{
    fault_alloc memory;
    cx_buf buf;
    cx_err err;
    fault_alloc_init(&memory, 2, false);
    cx_buf_init(&buf, &memory.alloc);
    cx_buf_add_z(&buf, "fits");
    static const char large[500];
    cx_buf_add(&buf, large, sizeof large); /* the second allocation: fails */
    cx_buf_add_z(&buf, "more");            /* there would be room */
    CHECK(buf.failed);
    CHECK(cx_buf_check(&buf, &err).code == CX_E_NOMEM);
    CHECK(cx_buf_z(&buf) == NULL);
    cx_buf_add(&buf, large, sizeof large); /* memory is back, but what is lost is lost */
    CHECK(cx_buf_check(&buf, NULL).code == CX_E_NOMEM);
    cx_buf_clear(&buf);
    cx_buf_add(&buf, large, sizeof large);
    CHECK(!cx_failed(cx_buf_check(&buf, &err)));
    CHECK_INT(buf.size, sizeof large);
    cx_buf_done(&buf);
    CHECK_INT(memory.live_bytes, 0);
    CHECK(!memory.wrong_size);
}

CX_TEST(buf_refuses_sizes_that_overflow)
{
    cx_buf buf;
    cx_buf_init(&buf, cx_alloc_default());
    cx_buf_add_z(&buf, "x");
    CHECK(cx_buf_reserve(&buf, SIZE_MAX) == NULL);
    CHECK(buf.failed);
    cx_buf_done(&buf);
}

static bool is_word(const char *word, const char *expected)
{
    cx_buf buf;
    cx_buf_init(&buf, cx_alloc_default());
    cx_buf_add_sh_word(&buf, cx_str_z(word));
    bool same = cx_str_is(cx_buf_str(&buf), expected);
    cx_buf_done(&buf);
    return same;
}

CX_TEST(buf_words_mean_themselves_to_a_shell)
{
    CHECK(is_word("/srv/a-b_c.jsonl", "/srv/a-b_c.jsonl"));
    CHECK(is_word("", "''"));
    CHECK(is_word("a b", "'a b'"));
    CHECK(is_word("it's", "'it'\\''s'"));
    CHECK(is_word("$(x)", "'$(x)'"));
    CHECK(is_word("~", "'~'"));
    CHECK(is_word("A=b", "'A=b'"));
}
