/*
 * Strict reading: what is refused and where, limits, and that a cut text is never mistaken for a
 * wrong one.
 */
#include <stdlib.h>

#include "json/json.h"
#include "tests/test.h"

typedef struct fixture {
    cx_json_parser parser;
    cx_arena arena;
    cx_err err;
    cx_json value;
} fixture;

static void kit_init(fixture *kit, const cx_json_limits *limits)
{
    *kit = (fixture){0};
    cx_json_parser_init(&kit->parser, cx_alloc_default(), limits);
    cx_arena_init(&kit->arena, cx_alloc_default(), 0);
}

static void kit_done(fixture *kit)
{
    cx_json_parser_done(&kit->parser);
    cx_arena_done(&kit->arena);
}

/* Parses a copy that ends exactly where its memory ends, so that a sanitizer sees reads past it. */
static cx_code parse_exact(fixture *kit, cx_str text)
{
    char *copy = malloc(text.size + (text.size == 0));
    if (copy == NULL)
        return CX_E_NOMEM;
    if (text.size != 0)
        memcpy(copy, text.data, text.size);
    cx_code code =
        cx_json_parse(&kit->parser, (cx_str){copy, text.size}, &kit->arena, &kit->value, &kit->err)
            .code;
    free(copy);
    return code;
}

typedef struct refused {
    cx_str text;
    cx_code code;
    const char *tag;
    uint64_t offset, line, column;
    const char *message; /* NULL: not looked at */
} refused;

#define T(literal)                   \
    {                                \
        literal, sizeof(literal) - 1 \
    }

static const refused refused_texts[] = {
    {T(""), CX_E_MORE, "U_SYNTAX", 0, 1, 1, "found the end of the text, expected a value"},
    {T(" \n\t"), CX_E_MORE, "U_SYNTAX", 3, 2, 2, NULL},
    {T("tru"), CX_E_MORE, "U_SYNTAX", 3, 1, 4, "found the end of the text, expected true"},
    {T("[1"), CX_E_MORE, "U_SYNTAX", 2, 1, 3, NULL},
    {T("[1,"), CX_E_MORE, "U_SYNTAX", 3, 1, 4, NULL},
    {T("{\"a\""), CX_E_MORE, "U_SYNTAX", 4, 1, 5, "found the end of the text, expected ':'"},
    {T("{\"a\":"), CX_E_MORE, "U_SYNTAX", 5, 1, 6, NULL},
    {T("\"abc"), CX_E_MORE, "U_SYNTAX", 4, 1, 5, NULL},
    {T("\"\\"), CX_E_MORE, "U_SYNTAX", 2, 1, 3, NULL},
    {T("\"\\u12"), CX_E_MORE, "U_SYNTAX", 5, 1, 6, NULL},
    {T("\"\\ud83d\\ude"), CX_E_MORE, "U_SYNTAX", 11, 1, 12, NULL},
    {T("\"\xf0\x9f\x98"), CX_E_MORE, "U_SYNTAX", 4, 1, 5, NULL},
    {T("-"), CX_E_MORE, "U_SYNTAX", 1, 1, 2, NULL},
    {T("1."), CX_E_MORE, "U_SYNTAX", 2, 1, 3, NULL},
    {T("1e"), CX_E_MORE, "U_SYNTAX", 2, 1, 3, NULL},
    {T("1e+"), CX_E_MORE, "U_SYNTAX", 3, 1, 4, NULL},
    {T("trx"), CX_E_SYNTAX, "U_SYNTAX", 2, 1, 3, "found 'x', expected true"},
    {T("True"), CX_E_SYNTAX, "U_SYNTAX", 0, 1, 1, "found 'T', expected a value"},
    {T("truex"), CX_E_SYNTAX, "U_SYNTAX", 4, 1, 5, "found 'x', expected the end of the text"},
    {T("01"), CX_E_SYNTAX, "U_SYNTAX", 1, 1, 2, NULL},
    {T("-012"), CX_E_SYNTAX, "U_SYNTAX", 2, 1, 3, NULL},
    {T("+1"), CX_E_SYNTAX, "U_SYNTAX", 0, 1, 1, NULL},
    {T(".5"), CX_E_SYNTAX, "U_SYNTAX", 0, 1, 1, NULL},
    {T("[1.]"), CX_E_SYNTAX, "U_SYNTAX", 3, 1, 4, "found ']', expected a digit"},
    {T("[1.e1]"), CX_E_SYNTAX, "U_SYNTAX", 3, 1, 4, NULL},
    {T("--1"), CX_E_SYNTAX, "U_SYNTAX", 1, 1, 2, NULL},
    {T("0x1"), CX_E_SYNTAX, "U_SYNTAX", 1, 1, 2, NULL},
    {T("[1,]"), CX_E_SYNTAX, "U_SYNTAX", 3, 1, 4, "found ']', expected a value"},
    {T("[,1]"), CX_E_SYNTAX, "U_SYNTAX", 1, 1, 2, NULL},
    {T("[1 2]"), CX_E_SYNTAX, "U_SYNTAX", 3, 1, 4, "found '2', expected ',' or ']'"},
    {T("[1}"), CX_E_SYNTAX, "U_SYNTAX", 2, 1, 3, NULL},
    {T("{\n \"a\":1,\n}"), CX_E_SYNTAX, "U_SYNTAX", 10, 3, 1, "found '}', expected a name"},
    {T("{a:1}"), CX_E_SYNTAX, "U_SYNTAX", 1, 1, 2, "found 'a', expected a name or '}'"},
    {T("{\"a\" 1}"), CX_E_SYNTAX, "U_SYNTAX", 5, 1, 6, "found '1', expected ':'"},
    {T("]"), CX_E_SYNTAX, "U_SYNTAX", 0, 1, 1, NULL},
    {T("1 2"), CX_E_SYNTAX, "U_SYNTAX", 2, 1, 3, NULL},
    {T("{}\n[]"), CX_E_SYNTAX, "U_SYNTAX", 3, 2, 1, "found '[', expected the end of the text"},
    {T("\"a\tb\""), CX_E_SYNTAX, "U_SYNTAX", 2, 1, 3,
     "found U+0009, expected no raw control character in a string"},
    {T("\"a\\n\nb\""), CX_E_SYNTAX, "U_SYNTAX", 4, 1, 5, NULL},
    {T("\"\0\""), CX_E_SYNTAX, "U_SYNTAX", 1, 1, 2, NULL},
    {T("\"\\x41\""), CX_E_SYNTAX, "U_SYNTAX", 2, 1, 3, NULL},
    {T("\"\\u12g4\""), CX_E_SYNTAX, "U_SYNTAX", 5, 1, 6, "found 'g', expected four hex digits"},
    {T("\"\\ud83d\\uzz\""), CX_E_SYNTAX, "U_SYNTAX", 9, 1, 10, NULL},
    {T("[1]\0"), CX_E_SYNTAX, "U_SYNTAX", 3, 1, 4, NULL},
    {T("[\v1]"), CX_E_SYNTAX, "U_SYNTAX", 1, 1, 2, NULL},
    {T("[\xc2\xa0]"), CX_E_SYNTAX, "U_SYNTAX", 1, 1, 2, "found U+00A0, expected a value"},
    {T("\xef\xbb\xbf{}"), CX_E_SYNTAX, "U_BOM", 0, 1, 1, NULL},
    {T("[\xff]"), CX_E_SYNTAX, "U_UTF8", 1, 1, 2, "found byte 0xFF, expected valid UTF-8"},
    {T("\"\xc0\x80\""), CX_E_SYNTAX, "U_UTF8", 1, 1, 2, NULL},
    {T("\"\xe0\x80\x80\""), CX_E_SYNTAX, "U_UTF8", 1, 1, 2, NULL},
    {T("\"ab\xc3\""), CX_E_SYNTAX, "U_UTF8", 3, 1, 4, NULL},
    {T("\"\xed\xa0\x80\""), CX_E_SYNTAX, "U_UTF8", 1, 1, 2, NULL},
    {T("\"\xf4\x90\x80\x80\""), CX_E_SYNTAX, "U_UTF8", 1, 1, 2, NULL},
    {T("\"\\n\x80\""), CX_E_SYNTAX, "U_UTF8", 3, 1, 4, NULL},
    {T("\"\xe0\x80"), CX_E_SYNTAX, "U_UTF8", 1, 1, 2, NULL},
    {T("NaN"), CX_E_SYNTAX, "U_NUMBER", 0, 1, 1, "found NaN, expected a finite number"},
    {T("[Infinity]"), CX_E_SYNTAX, "U_NUMBER", 1, 1, 2, NULL},
    {T("[-Infinity]"), CX_E_SYNTAX, "U_NUMBER", 1, 1, 2, NULL},
    {T("-Inf"), CX_E_SYNTAX, "U_SYNTAX", 1, 1, 2, NULL},
    {T("{\"a\":1,\"b\":2,\"a\":3}"), CX_E_FORMAT, "U_DUPKEY", 13, 1, 14,
     "found the name \"a\" again, expected distinct names in an object"},
    {T("[{\"a,\\\"\":[{},{\"q\":0,\"z\":1}],\"\\u0061,\\\"\":3}]"), CX_E_FORMAT, "U_DUPKEY", 28, 1,
     29, NULL},
    {T("{\"\":1,\"\":2}"), CX_E_FORMAT, "U_DUPKEY", 6, 1, 7, NULL},
};

CX_TEST(every_refusal_says_what_and_where)
{
    fixture kit;
    kit_init(&kit, NULL);
    for (size_t i = 0; i < CX_COUNT_OF(refused_texts); i++) {
        const refused *want = &refused_texts[i];
        kit.value.type = 99;
        cx_code code = parse_exact(&kit, want->text);
        const cx_err *err = &kit.err;
        if (code != want->code || err->code != want->code || err->tag == NULL ||
            strcmp(err->tag, want->tag) != 0 || err->offset != want->offset ||
            err->line != want->line || err->column != want->column ||
            (want->message != NULL && strcmp(err->message, want->message) != 0))
            cx_test_fail(__FILE__, __LINE__, "text %zu: code %d %s at %llu (%llu:%llu) '%s'", i,
                         (int)code, err->tag ? err->tag : "-", (unsigned long long)err->offset,
                         (unsigned long long)err->line, (unsigned long long)err->column,
                         err->message);
        CHECK_INT(kit.value.type, 99);
    }
    kit_done(&kit);
}

CX_TEST(values_keep_their_spelling_and_know_their_kind)
{
    static const struct {
        cx_str text, inner;
        cx_json_type type;
        uint8_t flags;
    } cases[] = {
        {T(" null "), T(""), CX_JSON_NULL, 0},
        {T("true"), T(""), CX_JSON_TRUE, 0},
        {T("false"), T(""), CX_JSON_FALSE, 0},
        {T("0"), T("0"), CX_JSON_INT, CX_JSON_CANONICAL},
        {T("-0"), T("-0"), CX_JSON_INT, 0},
        {T("-17"), T("-17"), CX_JSON_INT, CX_JSON_CANONICAL},
        {T("1E+2"), T("1E+2"), CX_JSON_DOUBLE, 0},
        {T("1e400"), T("1e400"), CX_JSON_DOUBLE, CX_JSON_OVERFLOW},
        {T("[1e-400]"), T(""), CX_JSON_ARRAY, 0},
        {T("[1,[-1e999]]"), T(""), CX_JSON_ARRAY, CX_JSON_OVERFLOW},
        {T("\"\""), T(""), CX_JSON_STRING, CX_JSON_PLAIN},
        {T("\"a b~\""), T("a b~"), CX_JSON_STRING, CX_JSON_PLAIN},
        {T("\"a\x7f\""), T("a\x7f"), CX_JSON_STRING, 0},
        {T("\"\xc3\xa9\""), T("\xc3\xa9"), CX_JSON_STRING, 0},
        {T("\"\\u0041\\/\""), T("A/"), CX_JSON_STRING, CX_JSON_PLAIN},
        {T("\"\\u0022\""), T("\""), CX_JSON_STRING, 0},
        {T("\"\\b\\f\\n\\r\\t\\\"\\\\\""), T("\b\f\n\r\t\"\\"), CX_JSON_STRING, 0},
        {T("\"\\u0000\""), T("\0"), CX_JSON_STRING, 0},
        {T("\"\\ud83d\\uDE00\""), T("\xf0\x9f\x98\x80"), CX_JSON_STRING, 0},
        {T("\"\\ud83d\""), T("\xed\xa0\xbd"), CX_JSON_STRING, CX_JSON_SURROGATE},
        {T("\"\\ude00\\ud83d\""), T("\xed\xb8\x80\xed\xa0\xbd"), CX_JSON_STRING, CX_JSON_SURROGATE},
        {T("\"\\ud83d\\ud83d\\ude00\""), T("\xed\xa0\xbd\xf0\x9f\x98\x80"), CX_JSON_STRING,
         CX_JSON_SURROGATE},
        {T("\"\\ud83dx\""), T("\xed\xa0\xbdx"), CX_JSON_STRING, CX_JSON_SURROGATE},
        {T("{\"\\udfff\":[]}"), T(""), CX_JSON_OBJECT, CX_JSON_SURROGATE},
        {T("[{\"a\":\"\\udfff\"},1]"), T(""), CX_JSON_ARRAY, CX_JSON_SURROGATE},
        {T("[[\"\\udfff\"]]"), T(""), CX_JSON_ARRAY, CX_JSON_SURROGATE},
    };
    fixture kit;
    kit_init(&kit, NULL);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        CHECK_STATUS(cx_json_parse(&kit.parser, cases[i].text, &kit.arena, &kit.value, &kit.err),
                     &kit.err);
        bool texts = kit.value.type >= CX_JSON_INT && kit.value.type <= CX_JSON_STRING;
        if (kit.value.type != cases[i].type || kit.value.flags != cases[i].flags ||
            (texts && !cx_str_eq(cx_json_text(&kit.value), cases[i].inner)))
            cx_test_fail(__FILE__, __LINE__, "case %zu: type %d flags %d", i, kit.value.type,
                         kit.value.flags);
    }
    kit_done(&kit);
}

CX_TEST(nonfinite_numbers_are_read_on_request_only)
{
    cx_json_limits limits = CX_JSON_LIMITS_INIT;
    limits.allow_nonfinite = true;
    fixture kit;
    kit_init(&kit, &limits);
    cx_str text = CX_STR("{\"a\":[NaN,Infinity,-Infinity,-1],\"b\":1}");
    CHECK_STATUS(cx_json_parse(&kit.parser, text, &kit.arena, &kit.value, &kit.err), &kit.err);
    CHECK_INT(kit.value.flags, CX_JSON_NONFINITE);
    const cx_json *items = CX_JSON_GET(&kit.value, "a");
    REQUIRE(items != NULL && items->count == 4);
    CHECK_STR(cx_json_text(&items->items[0]), "NaN");
    CHECK_STR(cx_json_text(&items->items[2]), "-Infinity");
    CHECK_INT(items->items[2].type, CX_JSON_DOUBLE);
    CHECK_INT(parse_exact(&kit, CX_STR("-Inf")), CX_E_MORE);
    CHECK_INT(parse_exact(&kit, CX_STR("Na")), CX_E_MORE);
    CHECK_INT(parse_exact(&kit, CX_STR("Nan")), CX_E_SYNTAX);
    kit_done(&kit);
}

static cx_code parse_nested(fixture *kit, size_t depth, bool objects)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    for (size_t i = 0; i + 1 < depth; i++)
        cx_buf_add_z(&text, objects ? "{\"a\":" : "[");
    cx_buf_add_z(&text, objects ? "{}" : "[]");
    for (size_t i = 0; i + 1 < depth; i++)
        cx_buf_add_byte(&text, objects ? '}' : ']');
    cx_code code = parse_exact(kit, cx_buf_str(&text));
    cx_buf_done(&text);
    return code;
}

CX_TEST(nesting_is_limited_to_1024_brackets)
{
    fixture kit;
    kit_init(&kit, NULL);
    CHECK_INT(parse_nested(&kit, 1024, false), CX_OK);
    CHECK_INT(parse_nested(&kit, 1024, true), CX_OK);
    CHECK_INT(parse_nested(&kit, 1025, false), CX_E_LIMIT);
    CHECK_STR(cx_str_z(kit.err.tag), "U_DEPTH");
    CHECK_INT(kit.err.offset, 1024);
    CHECK_INT(parse_nested(&kit, 1025, true), CX_E_LIMIT);
    kit_done(&kit);
    cx_json_limits limits = {.depth = 100000, .integer_digits = 5};
    kit_init(&kit, &limits);
    CHECK_INT(parse_nested(&kit, 100000, true), CX_OK);
    kit_done(&kit);
}

static cx_code parse_digits(fixture *kit, size_t digits, const char *before, const char *after)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, before);
    for (size_t i = 0; i < digits; i++)
        cx_buf_add_byte(&text, (uint8_t)('1' + i % 9));
    cx_buf_add_z(&text, after);
    cx_code code = parse_exact(kit, cx_buf_str(&text));
    cx_buf_done(&text);
    return code;
}

CX_TEST(integers_are_limited_to_4300_digits)
{
    fixture kit;
    kit_init(&kit, NULL);
    CHECK_INT(parse_digits(&kit, 4300, "", ""), CX_OK);
    CHECK_INT(parse_digits(&kit, 4300, "[-", "]"), CX_OK);
    CHECK_INT(parse_digits(&kit, 4301, "", ""), CX_E_LIMIT);
    CHECK_STR(cx_str_z(kit.err.tag), "U_NUMBER");
    CHECK_INT(parse_digits(&kit, 4301, "\n[-", "]"), CX_E_LIMIT);
    CHECK_INT(kit.err.offset, 2);
    CHECK_INT(kit.err.line, 2);
    /* A double may be longer, and the end of the text may have cut one. */
    CHECK_INT(parse_digits(&kit, 4301, "[", ".5]"), CX_OK);
    CHECK_INT(kit.value.flags, CX_JSON_OVERFLOW);
    CHECK_INT(parse_digits(&kit, 4301, "[", ""), CX_E_MORE);
    kit_done(&kit);
}

CX_TEST(bytes_are_limited_on_request)
{
    cx_json_limits limits = CX_JSON_LIMITS_INIT;
    limits.bytes = 4;
    fixture kit;
    size_t used = 0;
    kit_init(&kit, &limits);
    CHECK_INT(parse_exact(&kit, CX_STR("[12]")), CX_OK);
    CHECK_INT(parse_exact(&kit, CX_STR("[12] ")), CX_E_LIMIT);
    CHECK_STR(cx_str_z(kit.err.tag), "U_LIMIT");
    CHECK_INT(kit.err.offset, 4);
    CHECK_INT(cx_json_parse_prefix(&kit.parser, CX_STR("[12] [3]"), false, &kit.arena, &kit.value,
                                   &used, &kit.err)
                  .code,
              CX_OK);
    CHECK_INT(used, 4);
    CHECK_INT(cx_json_parse_prefix(&kit.parser, CX_STR("[123]"), false, &kit.arena, &kit.value,
                                   &used, &kit.err)
                  .code,
              CX_E_LIMIT);
    CHECK_INT(cx_json_parse_prefix(&kit.parser, CX_STR("[123"), false, &kit.arena, &kit.value,
                                   &used, &kit.err)
                  .code,
              CX_E_LIMIT);
    CHECK_INT(cx_json_parse_prefix(&kit.parser, CX_STR("[12"), false, &kit.arena, &kit.value, &used,
                                   &kit.err)
                  .code,
              CX_E_MORE);
    kit_done(&kit);
}

CX_TEST(a_prefix_stops_after_its_value)
{
    static const struct {
        const char *text;
        bool is_last;
        cx_code code;
        size_t used;
    } cases[] = {
        {"12", false, CX_E_MORE, 0},   {"12", true, CX_OK, 2},       {"12 ", false, CX_OK, 2},
        {"-0", false, CX_E_MORE, 0},   {"1.5", false, CX_E_MORE, 0}, {"1.5", true, CX_OK, 3},
        {"1.5,", false, CX_OK, 3},     {" true", false, CX_OK, 5},   {"{}{}", false, CX_OK, 2},
        {"\"a\"\n1", false, CX_OK, 3}, {"tru", true, CX_E_MORE, 0},  {"[1", true, CX_E_MORE, 0},
        {"1e", true, CX_E_MORE, 0},
    };
    fixture kit;
    kit_init(&kit, NULL);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        size_t used = 0;
        cx_code code = cx_json_parse_prefix(&kit.parser, cx_str_z(cases[i].text), cases[i].is_last,
                                            &kit.arena, &kit.value, &used, &kit.err)
                           .code;
        if (code != cases[i].code || used != cases[i].used)
            cx_test_fail(__FILE__, __LINE__, "'%s': code %d, used %zu", cases[i].text, (int)code,
                         used);
    }
    kit_done(&kit);
}

/* --- random documents ---------------------------------------------------------------------- */

static const char *const pieces[] = {
    "a",
    "name",
    " ",
    "\\n",
    "\\\"",
    "\\u00e9",
    "\\ud83d\\ude00",
    "\\ud800",
    "\xc3\xa9",
    "\xe2\x82\xac",
    "\xf0\x9f\x98\x80",
    "\xed\x9f\xbf",
    "\x7f",
    "\\/",
    "a rather longer run of plain text, of more than thirty-two bytes",
    "\xe0\xa0\x80",
    "0123456"};
static const char *const numbers[] = {"0",
                                      "-0",
                                      "-17",
                                      "1.5",
                                      "1e5",
                                      "1E-7",
                                      "123456789",
                                      "1e400",
                                      "0.10",
                                      "-0.0e0",
                                      "12345678901234567890123"};

static void make_string(cx_buf *out, uint64_t *seed)
{
    cx_buf_add_byte(out, '"');
    for (uint64_t left = cx_test_random(seed) % 5; left != 0; left--)
        cx_buf_add_z(out, pieces[cx_test_random(seed) % CX_COUNT_OF(pieces)]);
    cx_buf_add_byte(out, '"');
}

/* Random JSON; `number` makes names distinct. */
static void make_value(cx_buf *out, uint64_t *seed, unsigned depth)
{
    uint64_t pick = cx_test_random(seed) % (depth == 0 ? 6 : 10);
    uint64_t count = cx_test_random(seed) % 6;
    if (pick < 2) {
        make_string(out, seed);
    } else if (pick < 4) {
        cx_buf_add_z(out, numbers[cx_test_random(seed) % CX_COUNT_OF(numbers)]);
    } else if (pick < 6) {
        cx_buf_add_z(out, count < 2 ? "true" : count < 4 ? "false" : "null");
    } else {
        bool is_object = pick >= 8;
        cx_buf_add_byte(out, is_object ? '{' : '[');
        for (uint64_t i = 0; i < count; i++) {
            cx_buf_add_z(out, i == 0 ? "" : cx_test_random(seed) % 2 ? "," : " ,\n");
            if (is_object) {
                make_string(out, seed);
                out->size--; /* the closing quote */
                cx_buf_printf(out, "%u\": ", (unsigned)((7 * i) % 10));
            }
            make_value(out, seed, depth - 1);
        }
        cx_buf_add_byte(out, is_object ? '}' : ']');
    }
}

/* Every proper prefix asks for more, or is a complete value. */
static void check_prefixes(fixture *kit, cx_str text, unsigned document)
{
    for (size_t size = 0; size < text.size; size++) {
        size_t used;
        char *copy = malloc(size + 1);
        if (copy == NULL)
            return;
        memcpy(copy, text.data, size);
        cx_code open = cx_json_parse_prefix(&kit->parser, (cx_str){copy, size}, false, &kit->arena,
                                            &kit->value, &used, &kit->err)
                           .code;
        cx_code last = parse_exact(kit, (cx_str){copy, size});
        free(copy);
        /* Only a top-level number has prefixes that are values, and those only at the end. */
        bool number = text.data[0] == '-' || (text.data[0] >= '0' && text.data[0] <= '9');
        if (open != CX_E_MORE || (last != CX_E_MORE && !(number && last == CX_OK)))
            cx_test_fail(__FILE__, __LINE__, "document %u cut at %zu: %d and %d: %.*s", document,
                         size, (int)open, (int)last, (int)size, text.data);
    }
}

CX_TEST(any_proper_prefix_asks_for_more)
{
    uint64_t seed = cx_test_seed();
    cx_buf text;
    fixture kit;
    kit_init(&kit, NULL);
    cx_buf_init(&text, cx_alloc_default());
    cx_arena_mark empty = cx_arena_mark_now(&kit.arena);
    for (unsigned i = 0; i < 400; i++) {
        cx_buf_clear(&text);
        make_value(&text, &seed, 4);
        cx_arena_reset(&kit.arena, empty);
        CHECK_INT(parse_exact(&kit, cx_buf_str(&text)), CX_OK);
        check_prefixes(&kit, cx_buf_str(&text), i);
    }
    cx_buf_done(&text);
    kit_done(&kit);
}

/* The name of key `i` of an object meant to be slow to sort: long common beginnings. */
static void hard_name(cx_buf *text, uint64_t i)
{
    cx_buf_printf(text, "\"common beginning of all names %06llu\":%llu",
                  (unsigned long long)(i * 7919 % 1000003), (unsigned long long)i);
}

CX_TEST(many_members_are_sorted)
{
    const uint32_t counts[] = {2, 31, 32, 33, 48, 49, 1000, 100000};
    fixture kit;
    kit_init(&kit, NULL);
    for (size_t k = 0; k < CX_COUNT_OF(counts); k++) {
        cx_buf text;
        cx_buf_init(&text, cx_alloc_default());
        for (uint32_t i = 0; i < counts[k]; i++) {
            cx_buf_add_byte(&text, i == 0 ? '{' : ',');
            hard_name(&text, i);
        }
        cx_buf_add_byte(&text, '}');
        CHECK_STATUS(
            cx_json_parse(&kit.parser, cx_buf_str(&text), &kit.arena, &kit.value, &kit.err),
            &kit.err);
        CHECK_INT(kit.value.count, counts[k]);
        for (uint32_t i = 1; i < kit.value.count; i++)
            if (cx_str_cmp(cx_json_text(&kit.value.members[i - 1].name),
                           cx_json_text(&kit.value.members[i].name)) >= 0)
                cx_test_fail(__FILE__, __LINE__, "%u members: %u is out of order", counts[k], i);
        /* One more that is there already. */
        size_t at = text.size;
        text.data[text.size - 1] = ',';
        hard_name(&text, counts[k] / 2);
        cx_buf_add_byte(&text, '}');
        CHECK_INT(parse_exact(&kit, cx_buf_str(&text)), CX_E_FORMAT);
        CHECK_INT(kit.err.offset, at);
        cx_buf_done(&text);
    }
    kit_done(&kit);
}

CX_TEST(locating_counts_lines_and_bytes)
{
    uint64_t line, column;
    cx_str text = CX_STR("a\n\nbc\r\nd");
    static const struct {
        size_t offset;
        uint64_t line, column;
    } cases[] = {{0, 1, 1}, {1, 1, 2}, {2, 2, 1}, {3, 3, 1},
                 {5, 3, 3}, {7, 4, 1}, {8, 4, 2}, {99, 4, 2}};
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_json_locate(text, cases[i].offset, &line, &column);
        CHECK_INT(line, cases[i].line);
        CHECK_INT(column, cases[i].column);
    }
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

CX_TEST(running_out_of_memory_is_an_error)
{
    static const cx_alloc failing = {failing_resize, NULL};
    cx_str text = CX_STR("{\"b\":[1,2,\"\\n\"],\"a\":{\"c\":null},\"d\":[]}");
    cx_code code = CX_E_NOMEM;
    size_t n = 0;
    for (; code == CX_E_NOMEM && n < 50; n++) {
        fixture kit = {0};
        allocations_left = n;
        cx_json_parser_init(&kit.parser, &failing, NULL);
        cx_arena_init(&kit.arena, &failing, 0);
        code = cx_json_parse(&kit.parser, text, &kit.arena, &kit.value, &kit.err).code;
        CHECK(code == CX_OK || kit.err.code == CX_E_NOMEM);
        kit_done(&kit);
    }
    CHECK_INT(code, CX_OK);
    CHECK(n > 4);
}
