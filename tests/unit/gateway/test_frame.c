/*
 * test_frame.c - lines out of bytes (gateway/frame.h), and values out of texts (gateway/span.h).
 */
#include "gateway/api.h"

#include "tests/test.h"

typedef struct frames {
    char text[4096]; /* "[line]" for each message, "<id>" for one that was too long */
    size_t size;
} frames;

static void note(frames *f, cx_gateway_reader *r, cx_gateway_frame frame, cx_str line)
{
    if (frame == CX_GATEWAY_FRAME_MORE)
        return;
    bool whole = frame == CX_GATEWAY_FRAME_MESSAGE;
    f->size +=
        (size_t)snprintf(f->text + f->size, sizeof f->text - f->size, whole ? "[%.*s]" : "<%.*s%s>",
                         whole ? (int)line.size : (int)r->skim.id_size,
                         whole ? line.data : r->skim.id, r->skim.has_method ? " method" : "");
}

/* Feeds the text in pieces of `step` bytes. */
static void read_frames(const char *text, size_t step, size_t limit, frames *out)
{
    cx_gateway_reader reader;
    cx_gateway_frame frame;
    cx_str line = {"", 0};
    cx_err err;
    size_t size = strlen(text);
    out->size = 0;
    out->text[0] = 0;
    cx_gateway_reader_init(&reader, cx_alloc_default(), limit);
    for (size_t at = 0; at < size; at += step) {
        cx_bytes rest = cx_bytes_from(text + at, size - at < step ? size - at : step);
        while (rest.size != 0) {
            CHECK_STATUS(cx_gateway_reader_next(&reader, &rest, &frame, &line, &err), &err);
            note(out, &reader, frame, line);
        }
    }
    CHECK_STATUS(cx_gateway_reader_end(&reader, &frame, &line, &err), &err);
    note(out, &reader, frame, line);
    cx_gateway_reader_done(&reader);
}

CX_TEST(frames_are_the_same_in_pieces_of_any_size)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"", ""},
        {"\n \t\r\n", ""},
        {"a\nb\n", "[a][b]"},
        {"a\r\nlast", "[a\r][last]"},
        {"a\n\nb", "[a][b]"},
        {"0123456789abcdef\nb\n", "[0123456789abcdef][b]"},
        {"{\"id\" : 7, \"x\":\"0123456789\"}\nb\n", "<7>[b]"},
        {"{\"x\":\"01234\\\"}56789\",\"id\":\"q\"}\nb", "<\"q\">[b]"},
        {"{\"x\":{\"id\":1},\"y\":[{\"id\":2}],\"id\":3}", "<3>"},
        {"{\"method\":\"m\",\"id\":[1,2,3,4,5,6,7,8]}\n", "< method>"},
        {"[{\"id\":1},{\"id\":2},{\"id\":3}]\n", "<>"},
        {"{\"i\\u0064\":1,\"xxxxxxxx\":2}\n", "<>"},
        {"}}}}}}}}}}}}}}}}}}}}}}}}}]]]]\nb\n", "<>[b]"},
    };
    frames got;
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++)
        for (size_t step = 1; step < 20; step++) {
            read_frames(rows[i].text, step, 16, &got);
            CHECK_STR(cx_str_z(got.text), rows[i].expected);
        }
}

CX_TEST(spans_of_members_and_items)
{
    cx_str text =
        CX_STR(" { \"a\" : [1 , {\"b\":\"]\\\"\"} ,[ ] ] , \"\\u0062\":true,\"c\" :\"x\" } ");
    cx_str value, name, item;
    size_t offset = 0, count = 0;
    static const char *const items[] = {"1", "{\"b\":\"]\\\"\"}", "[ ]"};
    REQUIRE(cx_gateway_span_member(text, "a", &value));
    while (cx_gateway_span_next(value, &offset, &name, &item)) {
        REQUIRE(count < CX_COUNT_OF(items));
        CHECK_STR(item, items[count++]);
    }
    CHECK(count == 3);
    REQUIRE(cx_gateway_span_member(text, "b", &value));
    CHECK_STR(value, "true");
    REQUIRE(cx_gateway_span_member(text, "c", &value));
    CHECK_STR(value, "\"x\"");
    CHECK(!cx_gateway_span_member(text, "x", &value));
    CHECK(!cx_gateway_span_member(CX_STR("{}"), "x", &value));
    CHECK(!cx_gateway_span_member(CX_STR(""), "x", &value));
    CHECK_STR(cx_gateway_span_trim(CX_STR(" \t[1] \n")), "[1]");
}

CX_TEST(spans_of_texts_that_are_no_json_stay_inside)
{
    static const char *const texts[] = {"{",     "{\"", "{\"a",    "{\"a\"", "{\"a\":", "[,,,]",
                                        "[\"\\", "{}}", "[1 2 3]", "{a:b}",  "]"};
    for (size_t i = 0; i < CX_COUNT_OF(texts); i++) {
        cx_str text = cx_str_z(texts[i]), name, value;
        size_t offset = 0, rounds = 0;
        while (cx_gateway_span_next(text, &offset, &name, &value)) {
            CHECK(value.data >= text.data && value.data + value.size <= text.data + text.size);
            REQUIRE(++rounds < 20);
        }
    }
}
