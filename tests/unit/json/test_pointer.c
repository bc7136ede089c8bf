/*
 * RFC 6901: its own examples, and pointers that name nothing.
 */
#include "json/json.h"
#include "tests/test.h"

static const char document[] =
    "{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"e^f\":3,\"g|h\":4,\"i\\\\j\":5,"
    "\"k\\\"l\":6,\" \":7,\"m~n\":8,\"~1\":9,\"deep\":{\"\":{\"\":10}},\"~\":11,\"/\":12}";

CX_TEST(pointers_find_what_they_name)
{
    static const struct {
        const char *pointer;
        int64_t number; /* -1: an object or array */
    } cases[] = {{"", -1},        {"/foo", -1},  {"/", 0},     {"/a~1b", 1},
                 {"/c%d", 2},     {"/e^f", 3},   {"/g|h", 4},  {"/i\\j", 5},
                 {"/k\"l", 6},    {"/ ", 7},     {"/m~0n", 8}, {"/~01", 9},
                 {"/deep//", 10}, {"/deep", -1}, {"/~0", 11},  {"/~1", 12}};
    cx_arena arena;
    cx_err err;
    cx_json root;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_json_parse_text(CX_STR(document), &arena, &root, &err), &err);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        int64_t number = -1;
        const cx_json *value = cx_json_pointer(&root, cx_str_z(cases[i].pointer));
        if (value == NULL || cx_json_int64(value, &number) != (cases[i].number != -1) ||
            number != cases[i].number)
            cx_test_fail(__FILE__, __LINE__, "'%s' names %lld", cases[i].pointer,
                         (long long)number);
    }
    const cx_json *item = cx_json_pointer(&root, CX_STR("/foo/1"));
    REQUIRE(item != NULL);
    CHECK_STR(cx_json_text(item), "baz");
    cx_arena_done(&arena);
}

CX_TEST(other_pointers_find_nothing)
{
    static const char *const pointers[] = {
        "foo",     "/fo",     "/foo/2", "/foo/-",   "/foo/01",         "/foo/00",
        "/foo/+1", "/foo/1a", "/foo/",  "/foo/0/",  "/foo/0/x",        "/m~n",
        "/m~2n",   "/~",      "//",     "/deep///", "/foo/4294967296", "/foo/18446744073709551616",
        "/a/b"};
    cx_arena arena;
    cx_err err;
    cx_json root;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_json_parse_text(CX_STR(document), &arena, &root, &err), &err);
    for (size_t i = 0; i < CX_COUNT_OF(pointers); i++)
        if (cx_json_pointer(&root, cx_str_z(pointers[i])) != NULL)
            cx_test_fail(__FILE__, __LINE__, "'%s' names something", pointers[i]);
    cx_arena_done(&arena);
}

CX_TEST(tokens_added_are_found_again)
{
    cx_arena arena;
    cx_err err;
    cx_json root;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_json_parse_text(CX_STR(document), &arena, &root, &err), &err);
    for (uint32_t i = 0; i < root.count; i++) {
        cx_buf pointer;
        cx_buf_init(&pointer, cx_alloc_default());
        cx_json_pointer_add(&pointer, cx_json_text(&root.members[i].name));
        CHECK(cx_json_pointer(&root, cx_buf_str(&pointer)) == &root.members[i].value);
        cx_buf_done(&pointer);
    }
    cx_buf pointer;
    cx_buf_init(&pointer, cx_alloc_default());
    cx_json_pointer_add(&pointer, CX_STR("a/b~c"));
    cx_json_pointer_add(&pointer, CX_STR(""));
    CHECK_STR(cx_buf_str(&pointer), "/a~1b~0c/");
    cx_buf_done(&pointer);
    cx_arena_done(&arena);
}
