/*
 * test_grpc_wire.c - gRPC as bytes: times, prefixes, texts, statuses.
 */
#include <stdio.h>

#include "server/grpc_wire.h"
#include "tests/test.h"

CX_TEST(grpc_content_types)
{
    CHECK(cx_grpc_is_content_type(CX_STR("application/grpc")));
    CHECK(cx_grpc_is_content_type(CX_STR("application/grpc+proto")));
    CHECK(cx_grpc_is_content_type(CX_STR("application/grpc; charset=x")));
    CHECK(cx_grpc_is_content_type(CX_STR("application/grpc+proto ;a=b")));
    CHECK(!cx_grpc_is_content_type(CX_STR("application/grpc+json")));
    CHECK(!cx_grpc_is_content_type(CX_STR("application/grpc-web")));
    CHECK(!cx_grpc_is_content_type(CX_STR("application/grp")));
    CHECK(!cx_grpc_is_content_type(CX_STR("")));
}

CX_TEST(grpc_timeouts)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {{"1n", 1},
                {"100m", 100000000},
                {"5S", UINT64_C(5000000000)},
                {"7u", 7000},
                {"2M", UINT64_C(120000000000)},
                {"00000001H", UINT64_C(3600000000000)},
                {"0S", 0},
                {"99999999H", UINT64_MAX}};
    static const char *const bad[] = {"",     "5",          "S",   "5s",  "-1S",
                                      "1.5S", "123456789S", " 5S", "5 S", "5SS"};
    uint64_t ns = 1;
    for (size_t i = 0; i < CX_COUNT_OF(good); i++) {
        CHECK(cx_grpc_timeout_parse(cx_str_z(good[i].text), &ns));
        CHECK(ns == good[i].ns);
    }
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++)
        CHECK(!cx_grpc_timeout_parse(cx_str_z(bad[i]), &ns));
}

CX_TEST(a_prefix_arrives_in_parts)
{
    static const uint8_t bytes[] = {1, 0x01, 0x02, 0x03, 0x04, 'x', 'y'};
    for (size_t step = 1; step <= sizeof bytes; step++) {
        cx_grpc_prefix prefix = {.size = 0};
        size_t at = 0;
        while (!cx_grpc_prefix_is_whole(&prefix)) {
            size_t part = sizeof bytes - at < step ? sizeof bytes - at : step;
            at += cx_grpc_prefix_take(&prefix, cx_bytes_from(bytes + at, part));
        }
        CHECK_INT(at, CX_GRPC_PREFIX_SIZE);
        CHECK_INT(cx_grpc_prefix_flag(&prefix), 1);
        CHECK_INT(cx_grpc_prefix_length(&prefix), 0x01020304);
        CHECK_INT(cx_grpc_prefix_take(&prefix, cx_bytes_from(bytes, 2)), 0);
    }
}

CX_TEST(a_message_has_its_length_in_front)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_grpc_message_add(&out, cx_bytes_from("", 0));
    cx_grpc_message_add(&out, cx_bytes_from("abc", 3));
    CHECK(cx_str_eq(cx_buf_str(&out), cx_str_from("\0\0\0\0\0\0\0\0\0\3abc", 13)));
    cx_buf_done(&out);
}

CX_TEST(texts_are_escaped_and_cut_between_characters)
{
    cx_buf out, text;
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_init(&text, cx_alloc_default());
    cx_grpc_text_add(&out, CX_STR("100% \n~\x7f\xc3\xa9"));
    CHECK(cx_str_is(cx_buf_str(&out), "100%25 %0A~%7F%C3%A9"));
    cx_buf_clear(&out);
    for (int i = 0; i < 999; i++)
        cx_buf_add_byte(&text, 'a');
    cx_buf_add_z(&text, "\xc3\xa9 and more");
    cx_grpc_text_add(&out, cx_buf_str(&text));
    CHECK_INT(out.size, 999);
    cx_buf_done(&out);
    cx_buf_done(&text);
}

static bool reads(const char *bytes, size_t size, unsigned code, const char *text)
{
    unsigned found = 99;
    cx_str message;
    return cx_grpc_status_read(cx_bytes_from(bytes, size), &found, &message) && found == code &&
           cx_str_is(message, text);
}

CX_TEST(statuses_are_read_strictly)
{
    CHECK(reads("\x08\x0e\x12\x02no", 6, 14, "no"));
    CHECK(reads("\x08\x03", 2, 3, ""));
    CHECK(!reads("", 0, 0, ""));                    /* OK is no failure */
    CHECK(!reads("\x08\x11", 2, 17, ""));           /* no such code */
    CHECK(!reads("\x08", 1, 0, ""));                /* cut */
    CHECK(!reads("\x08\x0e\x12\x03no", 6, 14, "")); /* a text that is cut */
    CHECK(!reads("\x08\x0e\x1a\x01x", 5, 14, ""));  /* another member */
    CHECK(!reads("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11, 14, ""));
}

CX_TEST(a_retry_is_a_status_with_details)
{
    cx_buf out, raw;
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_init(&raw, cx_alloc_default());
    cx_grpc_retry_add(&out, CX_GRPC_UNAVAILABLE, CX_STR("later"), 1);
    CHECK(cx_base64_decode(cx_buf_str(&out), CX_BASE64, &raw));
    static const char expected[] =
        "\x08\x0e\x12\x05later\x1a\x30\x0a\x28"
        "type.googleapis.com/google.rpc.RetryInfo\x12\x04\x0a\x02\x08\x01";
    CHECK(cx_str_eq(cx_buf_str(&raw), cx_str_from(expected, sizeof expected - 1)));
    cx_buf_done(&out);
    cx_buf_done(&raw);
}

CX_TEST(codes_have_names)
{
    CHECK(strcmp(cx_grpc_code_name(0), "OK") == 0);
    CHECK(strcmp(cx_grpc_code_name(14), "UNAVAILABLE") == 0);
    CHECK(cx_grpc_code_name(2) == NULL && cx_grpc_code_name(17) == NULL);
}
