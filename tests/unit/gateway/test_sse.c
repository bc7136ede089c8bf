/*
 * test_sse.c - messages out of server-sent events (gateway/sse.h).
 */
#include "gateway/api.h"

#include "tests/test.h"

static void read_events(const char *text, size_t step, char *out, size_t size)
{
    cx_gateway_sse sse;
    cx_gateway_frame frame;
    cx_str message = {"", 0};
    cx_err err;
    size_t length = strlen(text), used = 0;
    out[0] = 0;
    cx_gateway_sse_init(&sse, cx_alloc_default(), 100);
    for (size_t at = 0; at < length; at += step) {
        cx_bytes rest = cx_bytes_from(text + at, length - at < step ? length - at : step);
        while (rest.size != 0) {
            CHECK_STATUS(cx_gateway_sse_next(&sse, &rest, &frame, &message, &err), &err);
            if (frame == CX_GATEWAY_FRAME_MESSAGE)
                used += (size_t)snprintf(out + used, size - used, "[%.*s]", (int)message.size,
                                         message.data);
            if (frame == CX_GATEWAY_FRAME_TOO_LONG)
                used += (size_t)snprintf(out + used, size - used, "<%.*s>", (int)sse.skim.id_size,
                                         sse.skim.id);
        }
    }
    cx_gateway_sse_done(&sse);
}

#define TEN "xxxxxxxxxx"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

CX_TEST(events_are_the_same_in_pieces_of_any_size)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"", ""},
        {"data: a\n\n", "[a]"},
        {"data:a\r\n\r\ndata:  b\r\rdata\n\n", "[a][ b][]"},
        {"data: a\ndata: b\n\n", "[a\nb]"},
        {": comment\nid: 7\nretry: 5\nevent: message\ndata: a\n\n", "[a]"},
        {"event: other\ndata: a\n\ndata: b\n\n", "[b]"},
        {"event: other\n\ndata: b\n\n", "[b]"},
        {"\n\n\ndata: a\n\n\n", "[a]"},
        {"data: cut off\n", ""},
        {"\xef\xbb\xbf"
         "data: a\n\n",
         "[a]"},
        {"database: a\n\n", ""},
        {"data: {\"id\":5,\"x\":\"" HUNDRED "\"}\n\ndata: b\n\n", "<5>[b]"},
        {"data: {\"id\":6,\ndata: \"x\":\"" HUNDRED "\"}\n\ndata: b\n\n", "<6>[b]"},
        {":" HUNDRED HUNDRED "\ndata: b\n\n", "[b]"},
        {"event:" HUNDRED "\ndata: b\n\ndata: c\n\n", "[c]"},
        {"data: 0123456789012345678901234567890123456789012345678901234567890123456789\n\n",
         "[0123456789012345678901234567890123456789012345678901234567890123456789]"},
    };
    char got[1024];
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++)
        for (size_t step = 1; step < 80; step++) {
            read_events(rows[i].text, step, got, sizeof got);
            CHECK_STR(cx_str_z(got), rows[i].expected);
        }
}
