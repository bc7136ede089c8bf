/*
 * Looking at values, making, copying and comparing them.
 */
#include "json/json.h"
#include "tests/test.h"

typedef struct fixture {
    cx_arena arena;
    cx_err err;
} fixture;

static void kit_init(fixture *kit)
{
    *kit = (fixture){0};
    cx_arena_init(&kit->arena, cx_alloc_default(), 0);
}

static cx_json parsed(fixture *kit, const char *text)
{
    cx_json value = cx_json_make_null();
    CHECK_STATUS(cx_json_parse_text(cx_str_z(text), &kit->arena, &value, &kit->err), &kit->err);
    return value;
}

CX_TEST(members_are_found_by_name)
{
    fixture kit;
    kit_init(&kit);
    cx_json small = parsed(&kit, "{\"b\":\"two\",\"a\":1,\"\":3,\"c\\n\":4}");
    CHECK(CX_JSON_GET(&small, "a") != NULL);
    CHECK(CX_JSON_GET(&small, "") != NULL);
    CHECK(CX_JSON_GET(&small, "c\n") != NULL);
    CHECK(CX_JSON_GET(&small, "c") == NULL);
    CHECK(cx_json_get(NULL, CX_STR("a")) == NULL);
    CHECK(CX_JSON_GET(CX_JSON_GET(&small, "a"), "a") == NULL);
    CHECK(cx_json_get_typed(&small, CX_STR("a"), CX_JSON_INT) != NULL);
    CHECK(cx_json_get_typed(&small, CX_STR("a"), CX_JSON_STRING) == NULL);
    CHECK_STR(CX_JSON_GET_STR(&small, "b"), "two");
    CHECK(CX_JSON_GET_STR(&small, "a").data == NULL);
    /* Many enough to be searched by halves. */
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    for (unsigned i = 0; i < 100; i++)
        cx_buf_printf(&text, "%c\"n%u\":%u", i == 0 ? '{' : ',', i * 37 % 100, i * 37 % 100);
    cx_buf_add_byte(&text, '}');
    cx_json large = parsed(&kit, cx_buf_z(&text));
    for (unsigned i = 0; i < 100; i++) {
        char name[8];
        int64_t number = -1;
        (void)snprintf(name, sizeof name, "n%u", i);
        const cx_json *value = cx_json_get(&large, cx_str_z(name));
        CHECK(value != NULL && cx_json_int64(value, &number) && number == i);
    }
    CHECK(CX_JSON_GET(&large, "n100") == NULL);
    CHECK(CX_JSON_GET(&large, "") == NULL);
    CHECK(CX_JSON_GET(&large, "z") == NULL);
    cx_buf_done(&text);
    cx_arena_done(&kit.arena);
}

CX_TEST(numbers_are_taken_only_when_they_fit)
{
    static const struct {
        const char *text;
        bool is_int64, is_uint64, is_double;
        int64_t int64;
        uint64_t uint64;
        double number;
    } cases[] = {
        {"0", true, true, true, 0, 0, 0.0},
        {"-0", true, true, true, 0, 0, -0.0},
        {"-1", true, false, true, -1, 0, -1.0},
        {"9223372036854775807", true, true, true, INT64_MAX, INT64_MAX, 9223372036854775807.0},
        {"9223372036854775808", false, true, true, 0, UINT64_C(9223372036854775808), 0x1p63},
        {"-9223372036854775808", true, false, true, INT64_MIN, 0, -0x1p63},
        {"-9223372036854775809", false, false, true, 0, 0, -0x1p63},
        {"18446744073709551615", false, true, true, 0, UINT64_MAX, 0x1p64},
        {"18446744073709551616", false, false, true, 0, 0, 0x1p64},
        {"99999999999999999999", false, false, true, 0, 0, 1e20},
        {"1.0", false, false, true, 0, 0, 1.0},
        {"1e400", false, false, false, 0, 0, 0},
        {"\"1\"", false, false, false, 0, 0, 0},
        {"null", false, false, false, 0, 0, 0},
    };
    fixture kit;
    kit_init(&kit);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        int64_t int64 = 0;
        uint64_t uint64 = 0;
        double number = 0;
        cx_json value = parsed(&kit, cases[i].text);
        bool right = cx_json_int64(&value, &int64) == cases[i].is_int64 &&
                     cx_json_uint64(&value, &uint64) == cases[i].is_uint64 &&
                     cx_json_double(&value, &number) == cases[i].is_double;
        if (!right || int64 != cases[i].int64 || uint64 != cases[i].uint64 ||
            number != cases[i].number)
            cx_test_fail(__FILE__, __LINE__, "%s: %lld %llu %g", cases[i].text, (long long)int64,
                         (unsigned long long)uint64, number);
    }
    cx_arena_done(&kit.arena);
}

static void check_written(const cx_json *value, const char *expected)
{
    cx_buf out;
    cx_err err;
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STATUS(cx_json_write(&out, value, CX_JSON_PY_COMPACT, &err), &err);
    CHECK_STR(cx_buf_str(&out), expected);
    cx_buf_done(&out);
}

CX_TEST(lists_build_objects_and_arrays)
{
    fixture kit;
    kit_init(&kit);
    cx_json array, object, empty;
    cx_json_list list = cx_json_list_begin(&kit.arena);
    for (int i = 0; i < 20; i++)
        cx_json_list_add(&list, cx_json_make_int(&kit.arena, i - 1));
    cx_json_list_add(&list, cx_json_make_int(&kit.arena, INT64_MIN));
    cx_json_list_add(&list, cx_json_make_uint(&kit.arena, UINT64_MAX));
    cx_json_list_add(&list, cx_json_make_double(&kit.arena, 1e16));
    cx_json_list_add(&list, cx_json_make_bool(true));
    CHECK_STATUS(cx_json_list_end_array(&list, &array, &kit.err), &kit.err);
    check_written(&array, "[-1,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,"
                          "-9223372036854775808,18446744073709551615,1e+16,true]");
    list = cx_json_list_begin(&kit.arena);
    cx_json_list_put(&list, CX_STR("z"), cx_json_make_str(CX_STR("plain")));
    cx_json_list_put(&list, CX_STR("caf\xc3\xa9"), cx_json_make_null());
    cx_json_list_put(&list, CX_STR(""), cx_json_make_str(CX_STR("\xed\xa0\x80")));
    cx_json_list_put(&list, CX_STR("m"), cx_json_make_bool(false));
    CHECK_STATUS(cx_json_list_end_object(&list, &object, &kit.err), &kit.err);
    CHECK_INT(object.flags, CX_JSON_SURROGATE);
    check_written(&object, "{\"\":\"\\ud800\",\"caf\\u00e9\":null,\"m\":false,\"z\":\"plain\"}");
    list = cx_json_list_begin(&kit.arena);
    CHECK_STATUS(cx_json_list_end_object(&list, &empty, &kit.err), &kit.err);
    check_written(&empty, "{}");
    list = cx_json_list_begin(&kit.arena);
    CHECK_STATUS(cx_json_list_end_array(&list, &empty, &kit.err), &kit.err);
    check_written(&empty, "[]");
    cx_arena_done(&kit.arena);
}

CX_TEST(a_name_put_twice_fails_the_list)
{
    fixture kit;
    kit_init(&kit);
    for (unsigned count = 2; count <= 200; count += 99) {
        char names[200][8];
        cx_json object = cx_json_make_null();
        cx_json_list list = cx_json_list_begin(&kit.arena);
        for (unsigned i = 0; i < count; i++) {
            (void)snprintf(names[i], sizeof names[i], "k%u", i == count - 1 ? 0 : i);
            cx_json_list_put(&list, cx_str_z(names[i]), cx_json_make_null());
        }
        CHECK_INT(cx_json_list_end_object(&list, &object, &kit.err).code, CX_E_EXISTS);
        CHECK(strstr(kit.err.message, "k0") != NULL);
        CHECK_INT(object.type, CX_JSON_NULL);
    }
    cx_arena_done(&kit.arena);
}

CX_TEST(a_list_without_memory_fails_at_its_end)
{
    cx_arena arena;
    cx_err err;
    cx_json out;
    cx_arena_init(&arena, cx_alloc_default(), 1);
    cx_json_list list = cx_json_list_begin(&arena);
    cx_json_list_add(&list, cx_json_make_null());
    cx_json_list_add(&list, cx_json_make_null());
    CHECK_INT(cx_json_list_end_array(&list, &out, &err).code, CX_E_NOMEM);
    CHECK(cx_json_make_int(&arena, 5).text == NULL);
    cx_arena_done(&arena);
    fixture kit;
    kit_init(&kit);
    cx_json no_memory = {.type = CX_JSON_INT};
    list = cx_json_list_begin(&kit.arena);
    cx_json_list_put(&list, CX_STR("a"), no_memory);
    cx_json_list_put(&list, CX_STR("b"), cx_json_make_null());
    CHECK_INT(cx_json_list_end_object(&list, &out, &err).code, CX_E_NOMEM);
    cx_arena_done(&kit.arena);
}

CX_TEST(a_copy_borrows_nothing)
{
    fixture kit;
    kit_init(&kit);
    char text[] = "{\"b\":[1.50,{\"c\":\"\\u00e9\",\"x\":[]},\"plain\"],\"a\":{},\"d\":-0}";
    cx_arena original;
    cx_json value, copy = cx_json_make_null();
    cx_arena_init(&original, cx_alloc_default(), 0);
    CHECK_STATUS(cx_json_parse_text(cx_str_z(text), &original, &value, &kit.err), &kit.err);
    CHECK_STATUS(cx_json_copy(&value, &kit.arena, &copy, &kit.err), &kit.err);
    CHECK(cx_json_equal(&value, &copy));
    cx_arena_done(&original);
    memset(text, 'x', sizeof text);
    check_written(&copy, "{\"a\":{},\"b\":[1.5,{\"c\":\"\\u00e9\",\"x\":[]},\"plain\"],\"d\":0}");
    cx_arena small;
    cx_arena_init(&small, cx_alloc_default(), 1);
    CHECK_INT(cx_json_copy(&copy, &small, &value, &kit.err).code, CX_E_NOMEM);
    cx_arena_done(&small);
    cx_arena_done(&kit.arena);
}

CX_TEST(equal_means_equal_canonical_text)
{
    static const struct {
        const char *a, *b;
        bool equal;
    } cases[] = {
        {"1", "1.0", false},
        {"1.0", "1.00", true},
        {"1.0", "10e-1", true},
        {"0", "-0", true},
        {"-0", "-0", true},
        {"-0", "1", false},
        {"0.0", "-0.0", false},
        {"100", "101", false},
        {"1e400", "1e400", true},
        {"1e400", "1e401", false},
        {"0.1", "0.1000000000000000055", true},
        {"0.1", "0.2", false},
        {"\"\\u00e9\"", "\"\xc3\xa9\"", true},
        {"\"e\"", "\"\xc3\xa9\"", false},
        {"true", "false", false},
        {"null", "null", true},
        {"[]", "{}", false},
        {"[]", "[ ]", true},
        {"[1,2]", "[1,2,3]", false},
        {"[1,2]", "[2,1]", false},
        {"{\"a\":1,\"b\":[{},2.0]}", "{\"b\":[{},2.00],\"a\":1}", true},
        {"{\"a\":1,\"b\":[{},2.0]}", "{\"b\":[{},2.01],\"a\":1}", false},
        {"{\"a\":1,\"b\":2}", "{\"a\":1,\"c\":2}", false},
        {"[[[1],2],3]", "[[[1],2],4]", false},
    };
    fixture kit;
    kit_init(&kit);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_json a = parsed(&kit, cases[i].a), b = parsed(&kit, cases[i].b);
        if (cx_json_equal(&a, &b) != cases[i].equal || cx_json_equal(&b, &a) != cases[i].equal)
            cx_test_fail(__FILE__, __LINE__, "%s and %s", cases[i].a, cases[i].b);
    }
    cx_arena_done(&kit.arena);
}

/* A value nested far deeper than the walk's own memory. */
static cx_json nested(fixture *kit, unsigned depth, int64_t inmost)
{
    cx_json value = cx_json_make_int(&kit->arena, inmost);
    for (unsigned i = 0; i < depth; i++) {
        cx_json_list list = cx_json_list_begin(&kit->arena);
        if (i % 2 == 0) {
            cx_json_list_add(&list, value);
            CHECK_STATUS(cx_json_list_end_array(&list, &value, &kit->err), &kit->err);
        } else {
            cx_json_list_put(&list, CX_STR("k"), value);
            CHECK_STATUS(cx_json_list_end_object(&list, &value, &kit->err), &kit->err);
        }
    }
    return value;
}

CX_TEST(depth_costs_no_stack)
{
    fixture kit;
    kit_init(&kit);
    cx_json a = nested(&kit, 20000, 1), b = nested(&kit, 20000, 1), c = nested(&kit, 20000, 2);
    cx_json copy = cx_json_make_null();
    CHECK(cx_json_equal(&a, &b));
    CHECK(!cx_json_equal(&a, &c));
    CHECK_STATUS(cx_json_copy(&a, &kit.arena, &copy, &kit.err), &kit.err);
    CHECK(cx_json_equal(&a, &copy));
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STATUS(cx_json_write(&out, &a, CX_JSON_PY_COMPACT, &kit.err), &kit.err);
    CHECK_INT(out.size, 10000 * 2 + 10000 * 6 + 1);
    cx_buf_clear(&out);
    CHECK_STATUS(cx_json_write(&out, &a, CX_JSON_JCS, &kit.err), &kit.err);
    CHECK_INT(out.size, 10000 * 2 + 10000 * 6 + 1);
    cx_buf_done(&out);
    cx_arena_done(&kit.arena);
}

CX_TEST(types_have_names)
{
    fixture kit;
    kit_init(&kit);
    static const char *const texts[] = {"null", "true", "1", "1.0", "\"\"", "[]", "{}"};
    static const char *const names[] = {"null",   "boolean", "integer", "number",
                                        "string", "array",   "object"};
    for (size_t i = 0; i < CX_COUNT_OF(texts); i++) {
        cx_json value = parsed(&kit, texts[i]);
        CHECK_STR(cx_str_z(cx_json_type_name(&value)), names[i]);
    }
    cx_arena_done(&kit.arena);
}

CX_TEST(strings_made_by_hand_know_their_flags)
{
    static const struct {
        cx_str text;
        uint8_t flags;
    } cases[] = {{{"", 0}, CX_JSON_PLAIN},
                 {{NULL, 0}, CX_JSON_PLAIN},
                 {{"plain text of more than sixteen bytes", 37}, CX_JSON_PLAIN},
                 {{"quote \" far behind the first block", 34}, 0},
                 {{"\x7f", 1}, 0},
                 {{"\xed\x9f\xbf", 3}, 0},
                 {{"\xed\x9f\xbf\xed\xa0\x80", 6}, CX_JSON_SURROGATE},
                 {{"x\xed\xbf\xbf", 4}, CX_JSON_SURROGATE}};
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++)
        CHECK_INT(cx_json_make_str(cases[i].text).flags, cases[i].flags);
}
