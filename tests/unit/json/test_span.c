/*
 * Finding the parts of a text by brackets and quotes, and naming a place in it.
 */
#include "json/span.h"

#include "json/json.h"
#include "tests/test.h"

/* "name=value;" for each part, then "!" when the text is bad, "?" when it does not begin. */
static void parts(const char *text, cx_buf *out)
{
    cx_json_span span;
    cx_str name, value;
    cx_buf_clear(out);
    if (!cx_json_span_begin(&span, cx_str_z(text))) {
        cx_buf_add_byte(out, '?');
        return;
    }
    while (cx_json_span_next(&span, &name, &value)) {
        CHECK(value.size != 0 && (name.data != NULL) == (span.close == '}'));
        cx_buf_add_str(out, name);
        cx_buf_add_z(out, name.data != NULL ? "=" : "");
        cx_buf_add_str(out, value);
        cx_buf_add_byte(out, ';');
    }
    if (span.bad)
        cx_buf_add_byte(out, '!');
    CHECK(!cx_json_span_next(&span, &name, &value));
}

CX_TEST(spans_of_members_and_elements)
{
    static const struct {
        const char *text, *parts;
    } cases[] = {
        {"[]", ""},
        {" { } ", ""},
        {"[1]", "1;"},
        {" [ 1 ,\t\"a,b]\" , {\"x\":[1,2]} ]\r\n", "1;\"a,b]\";{\"x\":[1,2]};"},
        {"{\"a\":1,\"b\" : [ ] }", "\"a\"=1;\"b\"=[ ];"},
        {"{\"a\\\"}\":\"\\\\\",\"b\":null}", "\"a\\\"}\"=\"\\\\\";\"b\"=null;"},
        /* Not validated here. */
        {"[1 2,nan,{],tru]", "1 2;nan;{];tru;"},
        {"[\"\x01\xff\",2]", "\"\x01\xff\";2;"},
        {"{\"a\":1,\"a\":2}", "\"a\"=1;\"a\"=2;"},
        /* No list. */
        {"", "?"},
        {"  ", "?"},
        {"7", "?"},
        {"\"[]\"", "?"},
        {"[", "!"},
        {"{", "!"},
        {"[1", "!"},
        {"[1,", "1;!"},
        {"[1,]", "1;!"},
        {"[,1]", "!"},
        {"[1,,2]", "1;!"},
        {"[1}", "!"},
        {"{\"a\":1]", "!"},
        {"{\"a\"}", "!"},
        {"{\"a\" 1}", "!"},
        {"{\"a\":}", "!"},
        {"{\"a\":,\"b\":1}", "!"},
        {"{a:1}", "!"},
        {"{\"a\":1,}", "\"a\"=1;!"},
        {"{\"a", "!"},
        {"[\"a]", "!"},
        {"[\"a\\", "!"},
        {"[[1]", "!"},
        {"[1]]", "1;!"},
        {"[1] 2", "1;!"},
        {"{} x", "!"},
    };
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        parts(cases[i].text, &out);
        if (!cx_str_is(cx_buf_str(&out), cases[i].parts))
            cx_test_fail(__FILE__, __LINE__, "'%s' gives '%s'", cases[i].text, cx_buf_z(&out));
    }
    cx_buf_done(&out);
}

CX_TEST(spans_of_no_text_at_all)
{
    cx_json_span span;
    CHECK(!cx_json_span_begin(&span, (cx_str){NULL, 0}));
}

/* A million brackets cost no stack. */
CX_TEST(spans_are_not_nested_calls)
{
    enum { DEPTH = 1000000 };
    cx_json_span span;
    cx_str name, value;
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    for (int i = 0; i < DEPTH; i++)
        cx_buf_add_byte(&text, '[');
    for (int i = 0; i < DEPTH; i++)
        cx_buf_add_byte(&text, ']');
    CHECK(cx_json_span_begin(&span, cx_buf_str(&text)));
    CHECK(cx_json_span_next(&span, &name, &value) && !span.bad);
    CHECK_INT(value.size, 2 * DEPTH - 2);
    cx_buf_done(&text);
}

/* Cutting valid text anywhere gives slices that are JSON and a list that is bad. */
CX_TEST(spans_of_cut_text)
{
    static const char text[] = " {\"a\":[1,{\"b\":\"\\\"]\"}],\"c\\u0041\":{},\"d\":\"x\"}";
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    for (size_t size = 0; size + 1 < sizeof text; size++) {
        cx_json_span span;
        cx_str name, value;
        char cut[sizeof text];
        memcpy(cut, text, size);
        bool begun = cx_json_span_begin(&span, cx_str_from(cut, size));
        CHECK_INT(begun, size >= 2);
        while (begun && cx_json_span_next(&span, &name, &value)) {
            cx_arena arena;
            cx_json parsed;
            cx_arena_init(&arena, cx_alloc_default(), 0);
            CHECK(!cx_failed(cx_json_parse_text(value, &arena, &parsed, NULL)));
            cx_arena_done(&arena);
        }
        CHECK(!begun || span.bad);
    }
    parts(text, &out);
    CHECK_STR(cx_buf_str(&out), "\"a\"=[1,{\"b\":\"\\\"]\"}];\"c\\u0041\"={};\"d\"=\"x\";");
    cx_buf_done(&out);
}

CX_TEST(pointers_of_places)
{
    static const char text[] = "{\"a\":[1,{\"b/c\":\"x,y\"}],\"\\u0064\":{\"e\":[]}}";
    static const struct {
        size_t offset;
        const char *pointer;
    } cases[] = {{0, ""},           {1, "/a"},         {2, "/a"},        {5, "/a"},
                 {6, "/a/0"},       {8, "/a/1"},       {9, "/a/1/b~1c"}, {11, "/a/1/b~1c"},
                 {15, "/a/1/b~1c"}, {17, "/a/1/b~1c"}, {24, "/d"},       {26, "/d"},
                 {32, "/d"},        {33, "/d/e"},      {37, "/d/e"},     {38, "/d/e"},
                 {39, "/d"},        {40, ""}};
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_buf_clear(&out);
        CHECK(cx_json_pointer_at(CX_STR(text), cases[i].offset, &out));
        if (!cx_str_is(cx_buf_str(&out), cases[i].pointer))
            cx_test_fail(__FILE__, __LINE__, "byte %zu is at '%s', not '%s'", cases[i].offset,
                         cx_buf_z(&out), cases[i].pointer);
    }
    CHECK(!cx_json_pointer_at(CX_STR(text), sizeof text - 1, &out));
    cx_buf_clear(&out);
    CHECK(cx_json_pointer_at(CX_STR("7"), 0, &out) && out.size == 0);
    CHECK(!cx_json_pointer_at(CX_STR(""), 0, &out));
    cx_buf_done(&out);
}

CX_TEST(pointers_of_places_that_are_deep)
{
    char text[140];
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    memset(text, '[', sizeof text);
    CHECK(cx_json_pointer_at(cx_str_from(text, sizeof text), 64, &out));
    CHECK_INT(out.size, 128);
    cx_buf_clear(&out);
    cx_buf_add_byte(&out, 'k');
    CHECK(!cx_json_pointer_at(cx_str_from(text, sizeof text), 65, &out));
    CHECK_STR(cx_buf_str(&out), "k");
    cx_buf_done(&out);
}
