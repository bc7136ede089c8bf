/*
 * The quick walk and the other one: the same answers for the same number of steps.
 *
 * A "format" that is unknown costs one step, asks nothing, and is more than the quick walk
 * understands: so each schema here is checked both ways.
 */
#include "schema/schema_quick.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "tests/test.h"

static cx_json parse(cx_arena *arena, const char *text)
{
    cx_json value = {0};
    cx_err err;
    if (cx_failed(
            cx_json_parse_text(cx_arena_copy_str(arena, cx_str_z(text)), arena, &value, &err)))
        cx_test_fail(__FILE__, __LINE__, "%s: %s", text, err.message);
    return value;
}

static cx_schema *compile(cx_arena *arena, const char *text)
{
    cx_schema_options options = CX_SCHEMA_OPTIONS_INIT;
    cx_schema *schema = NULL;
    cx_err err;
    cx_json document = parse(arena, text);
    if (cx_failed(cx_schema_compile(&options, &document, &schema, &err)))
        cx_test_fail(__FILE__, __LINE__, "%s: %s", text, err.message);
    return schema;
}

/* 1 valid, 0 not, -1 a limit */
static int ask(const cx_schema *schema, const cx_json *instance, unsigned depth, uint64_t steps)
{
    cx_schema_check_options how = CX_SCHEMA_CHECK_INIT;
    cx_schema_report report;
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    how.errors_max = 0;
    how.depth_max = depth;
    how.steps_max = steps;
    cx_status status = cx_schema_check(schema, instance, &how, &arena, &report, NULL);
    cx_arena_done(&arena);
    return cx_failed(status) ? -1 : report.valid;
}

static const struct {
    const char *schema; /* what is inside of the braces */
    const char *instances[8];
    bool plain; /* quick tables can be made of it */
} cases[] = {
    {"\"type\":\"string\",\"minLength\":2,\"maxLength\":3",
     {"\"a\"", "\"ab\"", "\"\xC3\xA9\xC3\xA9\xC3\xA9\"", "\"abcd\"", "1", "\"\""},
     true},
    {"\"type\":[\"integer\",\"null\"],\"minimum\":1,\"maximum\":10",
     {"0", "1", "10", "11", "-1", "2.0", "1e1", "null"},
     true},
    {"\"type\":\"number\",\"maximum\":12345678",
     {"1.5", "12345678", "123456789", "-2", "true"},
     true},
    {"\"enum\":[\"a\",\"bb\",\"a long word with more than sixteen letters\"]",
     {"\"a\"", "\"bb\"", "\"b\"", "\"a long word with more than sixteen letterz\"",
      "\"a long word with more than sixteen letters\"",
      "\"a long word w1th more than sixteen letters\"", "1"},
     true},
    {"\"pattern\":\"^[a-f]{2,70}$\"",
     {"\"ab\"", "\"a\"", "\"abg\"", "1",
      "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""},
     true},
    {"\"type\":\"array\",\"minItems\":1,\"maxItems\":2,\"items\":{\"type\":\"boolean\"}",
     {"[]", "[true]", "[true,false]", "[1]", "[true,true,true]", "{}"},
     true},
    {"\"required\":[\"b\",\"dd\"],\"additionalProperties\":false,\"properties\":{\"a\":{},"
     "\"b\":{\"type\":\"null\"},\"dd\":{\"minLength\":1},\"e name of eighteen\":{}}",
     {"{\"b\":null,\"dd\":\"x\"}", "{\"a\":1,\"b\":null,\"dd\":2,\"e name of eighteen\":3}",
      "{\"a\":1,\"dd\":\"x\"}", "{\"b\":null}", "{\"b\":null,\"c\":0,\"dd\":\"x\"}",
      "{\"b\":1,\"dd\":\"x\"}", "{\"b\":null,\"dd\":\"x\",\"e name 0f eighteen\":3}", "3"},
     true},
    {"\"required\":[\"b\"],\"properties\":{\"b\":{\"$ref\":\"#/$defs/"
     "x\"},\"c\":{\"type\":\"null\"}},"
     "\"$defs\":{\"x\":{\"type\":\"object\",\"properties\":{\"y\":{\"enum\":[\"u\",\"v\"]}}}}",
     {"{\"a\":1,\"b\":{\"y\":\"v\",\"z\":1},\"d\":2}", "{\"a\":1}", "{\"b\":{\"y\":\"w\"}}",
      "{\"b\":{},\"c\":1}", "{\"b\":{},\"c\":null,\"zz\":[]}", "{\"bb\":{}}"},
     true},
    {"\"properties\":{\"n\":{\"$ref\":\"#\"}}", {"{\"n\":{\"n\":{}}}", "{\"n\":1}", "{}"}, false},
    {"\"required\":[\"q\"]", {"{\"q\":1}", "{}"}, false},
    {"\"minimum\":-3", {"-3", "-4", "1"}, false},
    {"\"oneOf\":[{\"type\":\"null\"}]", {"null", "1"}, false},
};

static void compare(size_t at, const cx_schema *quick, const cx_schema *slow, const cx_json *value)
{
    const unsigned depth = 64;
    uint64_t steps = 0;
    while (steps < 1000 && ask(slow, value, depth, steps + 1) == -1)
        steps++;
    int expected = ask(slow, value, depth, 1000), got = ask(quick, value, depth, 1000);
    if (expected != got)
        cx_test_fail(__FILE__, __LINE__, "case %zu: %d, expected %d", at, got, expected);
    if (expected != 1 || !cases[at].plain)
        return;
    /* Without its "format" it takes one step less, and not one less than that. */
    CHECK_INT(ask(quick, value, depth, steps), 1);
    if (steps != 0 && ask(quick, value, depth, steps - 1) != -1)
        cx_test_fail(__FILE__, __LINE__, "case %zu: it takes less than %u steps", at,
                     (unsigned)steps);
    unsigned deep = 1;
    while (deep < depth && ask(slow, value, deep, 1000) == -1)
        deep++;
    CHECK_INT(ask(quick, value, deep, 1000), 1);
}

CX_TEST(the_quick_walk_says_and_costs_the_same)
{
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        char text[600];
        cx_arena arena;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        (void)snprintf(text, sizeof text, "{%s}", cases[i].schema);
        cx_schema *quick = compile(&arena, text);
        (void)snprintf(text, sizeof text, "{\"format\":\"nobody's\",%s}", cases[i].schema);
        cx_schema *slow = compile(&arena, text);
        if (quick != NULL && slow != NULL) {
            CHECK((quick->root->quick != NULL) == cases[i].plain);
            CHECK(slow->root->quick == NULL);
            for (size_t k = 0; k < 8 && cases[i].instances[k] != NULL; k++) {
                const cx_json value = parse(&arena, cases[i].instances[k]);
                compare(i, quick, slow, &value);
            }
        }
        cx_schema_close(quick);
        cx_schema_close(slow);
        cx_arena_done(&arena);
    }
}
