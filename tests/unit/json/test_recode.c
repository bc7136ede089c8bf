/*
 * Recoding compared with parsing and writing: what it takes comes out the same, what it declines it
 * declines without a word, and it never looks or writes further than it may.
 */
#include <stdlib.h>

#include "json/recode.h"
#include "tests/test.h"

typedef struct fixture {
    cx_json_recoder recoder;
    char *text; /* with an LF and the slack after it, and not a byte more */
    size_t size;
    uint8_t *room;
    size_t written;
} fixture;

static bool kit_init(fixture *kit, cx_str text)
{
    const cx_json_limits limits = CX_JSON_LIMITS_INIT;
    *kit = (fixture){.size = text.size};
    cx_json_recoder_init(&kit->recoder, &limits, 0);
    kit->text = malloc(text.size + 1 + CX_JSON_RECODE_SLACK);
    kit->room = malloc(CX_JSON_RECODE_EXTRA_BYTES(text.size + 1));
    if (kit->text == NULL || kit->room == NULL)
        return false;
    memcpy(kit->text, text.data, text.size);
    kit->text[text.size] = '\n';
    /* What would go on, if it were looked at. */
    memset(kit->text + text.size + 1, '1', CX_JSON_RECODE_SLACK);
    return true;
}

static void kit_done(fixture *kit)
{
    free(kit->text);
    free(kit->room);
}

/* Whether all of the text is one value that is taken. */
static bool takes(fixture *kit, bool checks_only)
{
    const char *lf = kit->text + kit->size;
    const char *after =
        cx_json_recode(&kit->recoder, kit->text, lf, checks_only ? NULL : kit->room, &kit->written);
    return after != NULL && cx_json_recode_blanks(after) == lf;
}

static cx_str written(const fixture *kit)
{
    return (cx_str){(const char *)kit->room, kit->written};
}

/* The same by way of values; false when it is no JSON or has no canonical form. */
static bool by_values(cx_str text, cx_buf *out)
{
    cx_arena arena;
    cx_json value;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_clear(out);
    bool good = !cx_failed(cx_json_parse_text(text, &arena, &value, NULL)) &&
                !cx_failed(cx_json_write(out, &value, CX_JSON_PY_COMPACT, NULL));
    cx_arena_done(&arena);
    return good;
}

/* 1 taken and right, 0 declined, -1 wrong. */
static int compare(cx_str text)
{
    fixture kit;
    cx_buf expected;
    int answer = -1;
    cx_buf_init(&expected, cx_alloc_default());
    if (kit_init(&kit, text)) {
        bool taken = takes(&kit, false);
        answer = !taken ? 0
                 : by_values(text, &expected) && cx_str_eq(written(&kit), cx_buf_str(&expected))
                     ? 1
                     : -1;
        /* Checking has less to do and may take more; it never takes less, nor what is wrong. */
        bool checked = takes(&kit, true);
        if ((taken && !checked) || (checked && !by_values(text, &expected)))
            answer = -1;
    }
    if (answer < 0)
        cx_test_fail(__FILE__, __LINE__, "recoding %.*s goes wrong", (int)text.size, text.data);
    kit_done(&kit);
    cx_buf_done(&expected);
    return answer;
}

CX_TEST(recode_takes_what_is_ordinary)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "{ }",
        "[ ]",
        "0",
        "-1",
        "true",
        "\"\"",
        "[null,true,false]",
        "[1, 2, 3]",
        "[1,2 ,3]",
        "{\"a\":1,\"b\":2}",
        "{\"b\":1,\"a\":2}",
        "{\"b\":{\"d\":1,\"c\":[2,{\"z\":1,\"y\":2}]},\"a\":{}}",
        "{\"a\": {\"b\": [1, {\"c\": \"d\"}]}, \"e\": null}",
        "{\"aaaaaaaab\":1,\"aaaaaaaaa\":2,\"aaaaaaaa\":3}",
        "{\"aaaaaaaaa\":1,\"aaaaaaaab\":2}",
        "{\"\":1}",
        "{\"a\":1,\"\":2}",
        "[0.5,-0.0,1.0,1.5e0,0.10,100.50,1E-2,17.000]",
        "[0.1234567890123456789,3.14159265358979323846]",
        "[[0.10],0.5,[0.20,[0.30]]]",
        "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\"",
        "\"\\u00e4\\u20ac\\uffff\\u007f\"",
        "{\"long\":\"012345678901234567890123456789012345678901234567890123456789\"}",
        "{\"0123456789012345678901234567890123456789\":0,\"0\":1234567890123456789012}",
    };
    for (size_t i = 0; i < CX_COUNT_OF(texts); i++)
        if (compare(cx_str_z(texts[i])) != 1)
            cx_test_fail(__FILE__, __LINE__, "declined: %s", texts[i]);
}

CX_TEST(recode_declines_what_is_not)
{
    static const char *const texts[] = {
        /* wrong */
        "",
        "{",
        "[1",
        "[1,]",
        "[,1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\":1]",
        "[1}",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "1e+",
        "+1",
        "tru",
        "truex",
        "nul",
        "NaN",
        "-Infinity",
        "\"a",
        "\"\\x\"",
        "\"\\u12\"",
        "1 2",
        "{\"a\":1,\"a\":2}",
        "{\"b\":1,\"a\":2,\"b\":3}",
        "{\"aaaaaaaaaa\":1,\"aaaaaaaaaa\":2}",
        "[1e999]",
        "\"\xff\"",
        "\"\t\"",
        /* right, but not for here */
        "-0",
        "[1e5]",
        "\"\\/\"",
        "\"\\u0041\"",
        "\"\\u00E4\"",
        "\"\\ud83d\\ude00\"",
        "\"\\ud800\"",
        "\"\xc3\xa4\"",
        "\"\x7f\"",
        "{\"a\\n\":1}",
        "{\"\xc3\xa4\":1}",
        "[1,\t2]",
        "[1,\r2]",
    };
    for (size_t i = 0; i < CX_COUNT_OF(texts); i++)
        if (compare(cx_str_z(texts[i])) != 0)
            cx_test_fail(__FILE__, __LINE__, "taken: %s", texts[i]);
}

/* `count` times `piece`, %u in it the running number, between `open` and `close`. */
static cx_str repeated(cx_buf *out, const char *open, const char *piece, unsigned count,
                       const char *close)
{
    cx_buf_clear(out);
    cx_buf_add_z(out, open);
    for (unsigned i = 0; i < count; i++) {
        const char *number = strchr(piece, '#');
        cx_buf_add_str(out,
                       (cx_str){piece, number == NULL ? strlen(piece) : (size_t)(number - piece)});
        if (number != NULL)
            cx_buf_printf(out, "%03u%s", count - i, number + 1);
    }
    cx_buf_add_z(out, close);
    return cx_buf_str(out);
}

CX_TEST(recode_declines_beyond_its_limits)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    CHECK_INT(compare(repeated(&text, "", "[", CX_JSON_RECODE_DEPTH, "0]]]]]]]]]]]]]]]]")), 1);
    CHECK_INT(compare(repeated(&text, "", "[", CX_JSON_RECODE_DEPTH + 1, "0]]]]]]]]]]]]]]]]]")), 0);
    CHECK_INT(compare(repeated(&text, "{", "\"#\":1,", CX_JSON_RECODE_UNSORTED - 1, "\"000\":1}")),
              1);
    CHECK_INT(compare(repeated(&text, "{", "\"#\":1,", CX_JSON_RECODE_UNSORTED, "\"000\":1}")), 0);
    /* Items that follow each other are one part, those with a blank before them are not. */
    CHECK_INT(compare(repeated(&text, "[", "1,", 4 * CX_JSON_RECODE_PARTS, "1]")), 1);
    CHECK_INT(compare(repeated(&text, "[", "1, ", CX_JSON_RECODE_PARTS - 1, "1]")), 1);
    CHECK_INT(compare(repeated(&text, "[", "1, ", CX_JSON_RECODE_PARTS, "1]")), 0);
    /* Integers have a limit of digits, doubles have none. */
    CHECK_INT(compare(repeated(&text, "", "1", 4300, "")), 1);
    CHECK_INT(compare(repeated(&text, "", "1", 4301, "")), 0);
    cx_buf_done(&text);
}

/* Each level is composed once more: at some depth the room for pieces ends, and nothing else. */
CX_TEST(recode_declines_when_the_pieces_do_not_fit)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    int last = 1;
    for (unsigned depth = 1; depth <= CX_JSON_RECODE_DEPTH; depth++) {
        cx_buf_clear(&text);
        for (unsigned i = 0; i < depth; i++)
            cx_buf_add_z(&text, "{\"b\":");
        cx_buf_add_z(&text, "\"0123456789012345678901234567890123456789012345678901234567890123\"");
        for (unsigned i = 0; i < depth; i++)
            cx_buf_add_z(&text, ",\"a\":0}");
        int now = compare(cx_buf_str(&text));
        CHECK(now <= last);
        last = now;
    }
    CHECK_INT(last, 0);
    cx_buf_done(&text);
}

CX_TEST(recode_limits_come_from_the_reader)
{
    const cx_json_limits limits = {.depth = 3, .integer_digits = 4};
    fixture kit;
    REQUIRE(kit_init(&kit, CX_STR("[[1234]]")));
    cx_json_recoder_init(&kit.recoder, &limits, 1);
    CHECK(takes(&kit, false));
    cx_json_recoder_init(&kit.recoder, &limits, 2);
    CHECK(!takes(&kit, false));
    cx_json_recoder_init(&kit.recoder, &limits, 4);
    CHECK(!takes(&kit, false));
    kit_done(&kit);
    REQUIRE(kit_init(&kit, CX_STR("12345")));
    cx_json_recoder_init(&kit.recoder, &limits, 0);
    CHECK(!takes(&kit, false));
    kit_done(&kit);
}

CX_TEST(recode_tells_the_members_in_order)
{
    fixture kit;
    REQUIRE(kit_init(&kit, CX_STR("{\"c\": [1, 2],\"b\":{\"z\":0,\"y\":1},\"a\":\"x\"}")));
    CHECK(takes(&kit, false));
    CHECK_STR(written(&kit), "{\"a\":\"x\",\"b\":{\"y\":1,\"z\":0},\"c\":[1,2]}");
    REQUIRE(kit.recoder.part_count == 3);
    CHECK_STR(kit.recoder.parts[0].name, "a");
    CHECK_STR(kit.recoder.parts[0].value, "\"x\"");
    CHECK_STR(kit.recoder.parts[1].name, "b");
    CHECK_STR(kit.recoder.parts[1].value, "{\"y\":1,\"z\":0}");
    CHECK_STR(kit.recoder.parts[2].value, "[1,2]");
    kit_done(&kit);
    REQUIRE(kit_init(&kit, CX_STR("{}")));
    CHECK(takes(&kit, false));
    CHECK_INT(kit.recoder.part_count, 0);
    kit_done(&kit);
}

CX_TEST(recode_pieces_for_readers)
{
    static const char text[] =
        "  \"name\" : -12.50, \"a\\n\": x\n 11111111111111111111111111111111";
    const cx_json_limits limits = CX_JSON_LIMITS_INIT;
    cx_json_recoder recoder;
    cx_json value;
    cx_str name;
    cx_json_recoder_init(&recoder, &limits, 0);
    const char *at = cx_json_recode_name(text, &name);
    REQUIRE(at != NULL);
    CHECK_STR(name, "name");
    at = cx_json_recode_scalar(&recoder, at, &value);
    REQUIRE(at != NULL);
    CHECK_INT(value.type, CX_JSON_DOUBLE);
    CHECK_STR(cx_json_text(&value), "-12.50");
    CHECK(cx_json_recode_name(at, &name) == NULL);
    CHECK(cx_json_recode_name(at + 1, &name) == NULL);
    CHECK(cx_json_recode_scalar(&recoder, at + 1, &value) == NULL);
    CHECK(cx_json_recode_scalar(&recoder, strchr(at, 'x'), &value) == NULL);
}

/* --- texts of all kinds ---------------------------------------------------------------------- */

static const char *pick(uint64_t *random, const char *const *list, size_t count)
{
    return list[cx_test_random(random) % count];
}

static void add_value(cx_buf *out, uint64_t *random, unsigned depth)
{
    static const char *const scalars[] = {"0",
                                          "-1",
                                          "12345",
                                          "-0",
                                          "0.5",
                                          "-0.0",
                                          "1e3",
                                          "1.50",
                                          "123.456",
                                          "1E-7",
                                          "1e400",
                                          "true",
                                          "null",
                                          "false",
                                          "\"\"",
                                          "\"abc\"",
                                          "\"a\\nb\"",
                                          "\"\\/\"",
                                          "\"\\u00e9\"",
                                          "\"\\ud83d\"",
                                          "\"\xc3\xa9\"",
                                          "\"0123456789abcdef\"",
                                          "\"a longer text, of more than two blocks\""};
    static const char *const names[] = {"a",        "b",         "c",         "ab",
                                        "abcdefgh", "abcdefghi", "abcdefghj", "key_1",
                                        "key_2",    "",          "\\n",       "z"};
    static const char *const spaces[] = {"", "", "", "", "", "", " ", "  ", "\t"};
    unsigned kind = (unsigned)cx_test_random(random) % 4, count;
    if (depth == 0 || kind >= 2) {
        cx_buf_add_z(out, pick(random, scalars, CX_COUNT_OF(scalars)));
        return;
    }
    cx_buf_add_byte(out, kind == 0 ? '{' : '[');
    count = (unsigned)cx_test_random(random) % 5;
    for (unsigned i = 0; i < count; i++) {
        cx_buf_add_z(out, pick(random, spaces, CX_COUNT_OF(spaces)));
        if (kind == 0)
            cx_buf_printf(out, "\"%s\":%s", pick(random, names, CX_COUNT_OF(names)),
                          pick(random, spaces, CX_COUNT_OF(spaces)));
        add_value(out, random, depth - 1);
        cx_buf_add_z(out, i + 1 < count ? "," : "");
    }
    cx_buf_add_byte(out, kind == 0 ? '}' : ']');
}

CX_TEST(recode_agrees_with_parsing_and_writing)
{
    static const char bytes[] = "{}[],:\" \\u0e-.1\tx";
    uint64_t random = cx_test_seed();
    unsigned taken = 0, declined = 0;
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    for (unsigned i = 0; i < 30000; i++) {
        cx_buf_clear(&text);
        add_value(&text, &random, 4);
        uint64_t dice = cx_test_random(&random);
        if (dice % 4 == 0 && text.size != 0)
            text.data[(dice >> 8) % text.size] = (uint8_t)bytes[(dice >> 40) % (sizeof bytes - 1)];
        int answer = compare(cx_buf_str(&text));
        taken += answer == 1;
        declined += answer == 0;
    }
    /* Both happen, or this says nothing. */
    CHECK(taken > 3000);
    CHECK(declined > 3000);
    cx_buf_done(&text);
}
