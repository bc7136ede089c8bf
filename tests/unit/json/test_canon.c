/*
 * The canonical forms, byte for byte, and text for people.
 */
#include "base/io.h"
#include "json/json.h"
#include "tests/test.h"

/* Writes `text` in a style into `out`; the code of what failed, if anything. */
static cx_code canonical(cx_str text, cx_json_style style, cx_buf *out, cx_err *err)
{
    cx_arena arena;
    cx_json value;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_clear(out);
    cx_status status = cx_json_parse_text(text, &arena, &value, err);
    if (!cx_failed(status))
        status = cx_json_write(out, &value, style, err);
    cx_arena_done(&arena);
    return status.code;
}

typedef struct pair {
    const char *in, *out;
} pair;

static void check_pairs(const pair *pairs, size_t count, cx_json_style style)
{
    cx_buf out;
    cx_err err = {0};
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < count; i++) {
        cx_code code = canonical(cx_str_z(pairs[i].in), style, &out, &err);
        if (code != CX_OK || !cx_str_is(cx_buf_str(&out), pairs[i].out))
            cx_test_fail(__FILE__, __LINE__, "%s gives %.*s (%d), expected %s", pairs[i].in,
                         (int)out.size, (const char *)out.data, (int)code, pairs[i].out);
    }
    cx_buf_done(&out);
}

/* lattice.md §3.2 */
CX_TEST(python_compact_follows_the_tables)
{
    static const pair pairs[] = {
        {"1e15", "1000000000000000.0"},
        {"1e16", "1e+16"},
        {"9999999999999998.0", "9999999999999998.0"},
        {"99999999999999990.0", "9.999999999999998e+16"},
        {"0.0001", "0.0001"},
        {"0.00001", "1e-05"},
        {"1e-7", "1e-07"},
        {"1e23", "1e+23"},
        {"1E+2", "100.0"},
        {"100.0", "100.0"},
        {"-0.0", "-0.0"},
        {"1e-400", "0.0"},
        {"5e-324", "5e-324"},
        {"9007199254740993.0", "9007199254740992.0"},
        {"3.14159265358979323846", "3.141592653589793"},
        {"\"\\/\"", "\"/\""},
        {"\"\\u007f\"", "\"\\u007f\""},
        {"\"\x7f\"", "\"\\u007f\""},
        {"-0", "0"},
        {"[-0]", "[0]"},
        {"9007199254740993", "9007199254740993"},
        {"123456789012345678901234567890", "123456789012345678901234567890"},
        {"[1,1.0]", "[1,1.0]"},
        {" { } ", "{}"},
        {"[ ]", "[]"},
        {"[null,true,false]", "[null,true,false]"},
        {"\"\\b\\f\\n\\r\\t\\\"\\\\\\u0000\\u001F\\u000b\"",
         "\"\\b\\f\\n\\r\\t\\\"\\\\\\u0000\\u001f\\u000b\""},
        {"\"\xc3\xa9\xf0\x9f\x98\x80\"", "\"\\u00e9\\ud83d\\ude00\""},
        {"\"\\uD83D\\uDE00\"", "\"\\ud83d\\ude00\""},
        {"\"\\ud800\"", "\"\\ud800\""},
        {"\"\\udc00\\ud800x\"", "\"\\udc00\\ud800x\""},
        {"\"e\\u0301\"", "\"e\\u0301\""},
        {"{\"a\":1,\"_\":2,\"B\":3,\"2\":4,\"10\":5}",
         "{\"10\":5,\"2\":4,\"B\":3,\"_\":2,\"a\":1}"},
        {"{\"\xf0\x9f\x98\x80\":1,\"\xef\xbd\x9e\":2}", "{\"\\uff5e\":2,\"\\ud83d\\ude00\":1}"},
        {"{\"b\":[{\"z\":{},\"y\":[[]]}],\"a\":\"\"}",
         "{\"a\":\"\",\"b\":[{\"y\":[[]],\"z\":{}}]}"},
    };
    check_pairs(pairs, CX_COUNT_OF(pairs), CX_JSON_PY_COMPACT);
}

CX_TEST(python_default_puts_spaces)
{
    static const pair pairs[] = {
        {"{\"b\":[1,2,{}],\"a\":{\"\xc3\xa9\":null,\"z\":[]}}",
         "{\"a\": {\"z\": [], \"\\u00e9\": null}, \"b\": [1, 2, {}]}"},
        {"[]", "[]"},
        {"{\"a\":1}", "{\"a\": 1}"},
    };
    check_pairs(pairs, CX_COUNT_OF(pairs), CX_JSON_PY_DEFAULT);
}

/* RFC 8785 §3.2.2, §3.2.3 and its appendix B */
CX_TEST(rfc8785_follows_its_rules)
{
    static const pair pairs[] = {
        {"[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001]",
         "[333333333.3333333,1e+30,4.5,0.002,1e-27]"},
        {"\"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\"",
         "\"\xe2\x82\xac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\""},
        {"\"\\u007f\xf0\x9f\x98\x80\"", "\"\x7f\xf0\x9f\x98\x80\""},
        {"{\"\xf0\x9f\x98\x80\":1,\"\xef\xbd\x9e\":2,\"a\":3}",
         "{\"a\":3,\"\xf0\x9f\x98\x80\":1,\"\xef\xbd\x9e\":2}"},
        {"{\"x\xee\x80\x80\":{\"\xf4\x8f\xbf\xbf\":0,\"\xee\x80\x80\":1},\"x\xf0\x90\x80\x80\":2}",
         "{\"x\xf0\x90\x80\x80\":2,\"x\xee\x80\x80\":{\"\xf4\x8f\xbf\xbf\":0,\"\xee\x80\x80\":1}}"},
        {"1.0", "1"},
        {"-0", "0"},
        {"-0.0", "0"},
        {"1e15", "1000000000000000"},
        {"1e16", "10000000000000000"},
        {"1e21", "1e+21"},
        {"0.00001", "0.00001"},
        {"1e-7", "1e-7"},
        {"123.456", "123.456"},
        {"9007199254740993", "9007199254740992"},
        {"123456789012345678901234567890", "1.2345678901234568e+29"},
        {"-999999999999999", "-999999999999999"},
    };
    check_pairs(pairs, CX_COUNT_OF(pairs), CX_JSON_JCS);
}

CX_TEST(what_has_no_canonical_form_is_refused)
{
    static const struct {
        const char *text;
        cx_code python, jcs;
    } cases[] = {{"1e400", CX_E_FORMAT, CX_E_FORMAT},
                 {"{\"a\":[-1e999]}", CX_E_FORMAT, CX_E_FORMAT},
                 {"[\"\\ud800\"]", CX_OK, CX_E_FORMAT},
                 {"{\"\\udfff\":1}", CX_OK, CX_E_FORMAT}};
    cx_buf out;
    cx_err err;
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_str text = cx_str_z(cases[i].text);
        CHECK_INT(canonical(text, CX_JSON_PY_COMPACT, &out, &err), cases[i].python);
        CHECK_INT(canonical(text, CX_JSON_JCS, &out, &err), cases[i].jcs);
        CHECK_INT(out.size, 0);
    }
    /* An integer may be too large for RFC 8785 alone, and what was written before it goes. */
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, "[1,2");
    for (int i = 0; i < 310; i++)
        cx_buf_add_byte(&text, '9');
    cx_buf_add_byte(&text, ']');
    CHECK_INT(canonical(cx_buf_str(&text), CX_JSON_JCS, &out, &err), CX_E_FORMAT);
    CHECK_INT(out.size, 0);
    CHECK_INT(canonical(cx_buf_str(&text), CX_JSON_PY_COMPACT, &out, &err), CX_OK);
    CHECK(cx_str_eq(cx_buf_str(&out), cx_buf_str(&text)));
    cx_buf_done(&text);
    cx_buf_done(&out);
}

CX_TEST(rfc8785_test_suite)
{
    static const char *const names[] = {"arrays",  "french", "structures",
                                        "unicode", "values", "weird"};
    cx_buf input, expected, out;
    cx_err err;
    cx_buf_init(&input, cx_alloc_default());
    cx_buf_init(&expected, cx_alloc_default());
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        char path[64];
        cx_buf_clear(&input);
        cx_buf_clear(&expected);
        (void)snprintf(path, sizeof path, "suites/jcs/testdata/input/%s.json", names[i]);
        const char *found = cx_test_data(path);
        if (found == NULL) {
            cx_test_skip("no suites/jcs in CORTEX_TESTDATA");
            break;
        }
        CHECK_STATUS(cx_io_read_file(cx_io_system(), found, 1 << 20, &input, &err), &err);
        (void)snprintf(path, sizeof path, "suites/jcs/testdata/output/%s.json", names[i]);
        found = cx_test_data(path);
        if (found == NULL) {
            cx_test_fail(__FILE__, __LINE__, "%s is missing", path);
            break;
        }
        CHECK_STATUS(cx_io_read_file(cx_io_system(), found, 1 << 20, &expected, &err), &err);
        CHECK_INT(canonical(cx_buf_str(&input), CX_JSON_JCS, &out, &err), CX_OK);
        if (!cx_str_eq(cx_buf_str(&out), cx_buf_str(&expected)))
            cx_test_fail(__FILE__, __LINE__, "%s differs", names[i]);
    }
    cx_buf_done(&input);
    cx_buf_done(&expected);
    cx_buf_done(&out);
}

/* Strings of every length around the sizes of blocks, with one byte that needs care at each place:
 * against a writer that looks at one byte at a time. */
CX_TEST(escapes_are_found_wherever_they_stand)
{
    static const struct {
        const char *raw, *python, *jcs;
    } cares[] = {{"\"", "\\\"", "\\\""},
                 {"\\", "\\\\", "\\\\"},
                 {"\n", "\\n", "\\n"},
                 {"\x1f", "\\u001f", "\\u001f"},
                 {"\x7f", "\\u007f", "\x7f"},
                 {"\xc2\x80", "\\u0080", "\xc2\x80"},
                 {"\xf4\x8f\xbf\xbf", "\\udbff\\udfff", "\xf4\x8f\xbf\xbf"}};
    cx_buf text, expected, out;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&expected, cx_alloc_default());
    cx_buf_init(&out, cx_alloc_default());
    for (size_t size = 1; size < 70; size++) {
        for (size_t place = 0; place < size; place++) {
            for (size_t k = 0; k < 2 * CX_COUNT_OF(cares); k++) {
                bool jcs = k % 2 != 0;
                cx_buf_clear(&text);
                cx_buf_clear(&expected);
                cx_buf_clear(&out);
                cx_buf_add_byte(&expected, '"');
                for (size_t i = 0; i < size; i++) {
                    char plain[2] = {(char)(' ' + (i + size) % 2), 0};
                    bool care = i == place;
                    cx_buf_add_z(&text, care ? cares[k / 2].raw : plain);
                    cx_buf_add_z(&expected, !care ? plain
                                            : jcs ? cares[k / 2].jcs
                                                  : cares[k / 2].python);
                }
                cx_buf_add_byte(&expected, '"');
                cx_json_write_str(&out, cx_buf_str(&text), jcs ? CX_JSON_JCS : CX_JSON_PY_COMPACT);
                if (!cx_str_eq(cx_buf_str(&out), cx_buf_str(&expected)))
                    cx_test_fail(__FILE__, __LINE__, "size %zu, place %zu, case %zu", size, place,
                                 k);
            }
        }
    }
    cx_buf_done(&text);
    cx_buf_done(&expected);
    cx_buf_done(&out);
}

/* --- round trips --------------------------------------------------------------------------- */

/* Random text in code points; long enough at times to be written in several stretches. */
static cx_str random_text(cx_arena *arena, uint64_t *seed)
{
    static const char *const pieces[] = {"a",
                                         "\"",
                                         "\\",
                                         "\n",
                                         "\x01",
                                         "\x7f",
                                         "\xc3\xa9",
                                         "\xe2\x82\xac",
                                         "\xed\xa0\x80",
                                         "\xf0\x9f\x98\x80",
                                         "plain words, some of them"};
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    uint64_t left = cx_test_random(seed) % (cx_test_random(seed) % 50 == 0 ? 900 : 6);
    /* A high surrogate before a low one would be one code point when read again: only high. */
    while (left-- != 0)
        cx_buf_add_z(&text, pieces[cx_test_random(seed) % CX_COUNT_OF(pieces)]);
    cx_str copy = cx_arena_copy_str(arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return copy;
}

static cx_json random_double(cx_arena *arena, uint64_t *seed)
{
    uint64_t bits = cx_test_random(seed);
    double value;
    memcpy(&value, &bits, sizeof value);
    return cx_json_make_double(arena, value - value == 0 ? value : 0.5);
}

static cx_json random_value(cx_arena *arena, uint64_t *seed, unsigned depth)
{
    cx_json made = cx_json_make_null();
    cx_err err;
    switch (cx_test_random(seed) % (depth == 0 ? 6 : 9)) {
    case 0: return cx_json_make_bool(cx_test_random(seed) % 2 != 0);
    case 1: return cx_json_make_int(arena, (int64_t)cx_test_random(seed));
    case 2: return cx_json_make_uint(arena, cx_test_random(seed) % 1000);
    case 3: return random_double(arena, seed);
    case 4: return cx_json_make_str(random_text(arena, seed));
    case 5: return cx_json_make_null();
    default: break;
    }
    bool is_object = cx_test_random(seed) % 2 != 0;
    cx_json_list list = cx_json_list_begin(arena);
    for (uint64_t i = cx_test_random(seed) % 9; i != 0; i--) {
        cx_json item = random_value(arena, seed, depth - 1);
        cx_str name = random_text(arena, seed);
        if (is_object)
            cx_json_list_put(
                &list, cx_arena_printf(arena, "%.*s%u", (int)name.size, name.data, (unsigned)i),
                item);
        else
            cx_json_list_add(&list, item);
    }
    if (is_object)
        CHECK_STATUS(cx_json_list_end_object(&list, &made, &err), &err);
    else
        CHECK_STATUS(cx_json_list_end_array(&list, &made, &err), &err);
    return made;
}

static void check_again(cx_buf *out, const cx_json *value, cx_arena *arena, cx_json_style style)
{
    cx_json again = cx_json_make_null();
    cx_err err;
    cx_buf second;
    cx_buf_init(&second, cx_alloc_default());
    CHECK_STATUS(cx_json_parse_text(cx_buf_str(out), arena, &again, &err), &err);
    CHECK(style == CX_JSON_JCS || cx_json_equal(value, &again));
    CHECK_STATUS(cx_json_write(&second, &again, style, &err), &err);
    CHECK(cx_str_eq(cx_buf_str(out), cx_buf_str(&second)));
    cx_buf_done(&second);
}

CX_TEST(what_is_written_reads_back_the_same)
{
    uint64_t seed = cx_test_seed();
    cx_arena arena;
    cx_buf out;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    for (int round = 0; round < 2000; round++) {
        cx_json value = random_value(&arena, &seed, 5);
        for (int style = CX_JSON_PY_COMPACT; style <= CX_JSON_JCS; style++) {
            cx_buf_clear(&out);
            bool refused = style == CX_JSON_JCS && (value.flags & CX_JSON_SURROGATE) != 0;
            cx_code code = cx_json_write(&out, &value, (cx_json_style)style, &err).code;
            CHECK_INT(code, refused ? CX_E_FORMAT : CX_OK);
            if (!refused)
                check_again(&out, &value, &arena, (cx_json_style)style);
        }
        cx_buf_clear(&out);
        CHECK_STATUS(cx_json_write_pretty(&out, &value, 0, &err), &err);
        cx_json again = cx_json_make_null();
        CHECK_STATUS(cx_json_parse_text(cx_buf_str(&out), &arena, &again, &err), &err);
        CHECK(cx_json_equal(&value, &again));
        cx_arena_done(&arena);
        cx_arena_init(&arena, cx_alloc_default(), 0);
    }
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

CX_TEST(pretty_is_readable_and_harmless)
{
    cx_arena arena;
    cx_json value;
    cx_buf out;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STATUS(cx_json_parse_text(CX_STR("{\"b\":[1.50,{},[]],\"a\":{\"\xc3\xa9\":\"\\u001b[0m\\n"
                                           "\\u202e\\ud800\xe4\xb8\xad\"}}"),
                                    &arena, &value, &err),
                 &err);
    CHECK_STATUS(cx_json_write_pretty(&out, &value, 0, &err), &err);
    CHECK_STR(cx_buf_str(&out), "{\n  \"a\": {\n    \"\xc3\xa9\": "
                                "\"\\u001b[0m\\n\\u202e\\ud800\xe4\xb8\xad\"\n  },\n"
                                "  \"b\": [\n    1.50,\n    {},\n    []\n  ]\n}");
    cx_buf_clear(&out);
    CHECK_STATUS(cx_json_write_pretty(&out, CX_JSON_GET(&value, "b"), 1, &err), &err);
    CHECK_STR(cx_buf_str(&out), "[\n    1.50,\n    {},\n    []\n  ]");
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

/* --- memory running out -------------------------------------------------------------------- */

static size_t allocations_left;

static void *failing_resize(void *ctx, void *block, size_t old_size, size_t new_size)
{
    (void)ctx;
    if (new_size > 0) {
        if (allocations_left == 0)
            return NULL;
        allocations_left--;
    }
    return cx_alloc_default()->resize(cx_alloc_default()->ctx, block, old_size, new_size);
}

CX_TEST(writing_without_memory_is_an_error)
{
    static const cx_alloc failing = {failing_resize, NULL};
    cx_arena arena;
    cx_json value = cx_json_make_str(CX_STR("\xef\xbd\x9e"));
    cx_err err = {0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (int i = 0; i < 200; i++) {
        cx_json_list list = cx_json_list_begin(&arena);
        cx_json_list_put(&list, CX_STR("\xef\xbd\x9e"), value);
        cx_json_list_put(&list, CX_STR("\xf0\x9f\x98\x80"), cx_json_make_null());
        CHECK_STATUS(cx_json_list_end_object(&list, &value, &err), &err);
    }
    for (int style = CX_JSON_PY_COMPACT; style <= CX_JSON_JCS + 1; style++) {
        cx_code code = CX_E_NOMEM;
        size_t n = 0;
        for (; code == CX_E_NOMEM && n < 100; n++) {
            cx_buf out;
            allocations_left = n;
            cx_buf_init(&out, &failing);
            code = style <= CX_JSON_JCS
                       ? cx_json_write(&out, &value, (cx_json_style)style, &err).code
                       : cx_json_write_pretty(&out, &value, 0, &err).code;
            CHECK(code == CX_OK || out.size == 0);
            cx_buf_done(&out);
        }
        CHECK_INT(code, CX_OK);
        CHECK(n > 2);
    }
    cx_arena_done(&arena);
}
