/*
 * test_lex.c - the lexer of commands (run.md §8): every row of its table.
 */
#include "rules/lex.h"

#include "tests/test.h"

/* Words joined by '|', or "RULE@OFFSET". */
static void lex(cx_str text, char *out, size_t size)
{
    cx_arena arena;
    cx_run_lexed lexed;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    out[0] = 0;
    CHECK_STATUS(cx_run_lex(text, &arena, &lexed, &err), &err);
    if (lexed.rule != NULL) {
        (void)snprintf(out, size, "%s@%zu", lexed.rule, lexed.offset);
        CHECK(lexed.why != NULL);
    } else {
        size_t used = 0;
        CHECK(lexed.argv.words[lexed.argv.count] == NULL);
        for (size_t i = 0; i < lexed.argv.count && used < size; i++) {
            CHECK(strlen(lexed.argv.words[i]) == lexed.argv.items[i].size);
            used += (size_t)snprintf(out + used, size - used, "%s%s", i == 0 ? "" : "|",
                                     lexed.argv.words[i]);
        }
    }
    cx_arena_done(&arena);
}

typedef struct row {
    const char *text, *expected;
} row;

static void check_rows(const row *rows, size_t count)
{
    char got[512];
    for (size_t i = 0; i < count; i++) {
        lex(cx_str_z(rows[i].text), got, sizeof got);
        if (strcmp(got, rows[i].expected) != 0)
            cx_test_fail(__FILE__, __LINE__, "'%s' is '%s', expected '%s'", rows[i].text, got,
                         rows[i].expected);
    }
}

CX_TEST(lex_words)
{
    static const row rows[] = {
        {"", ""},
        {"  \t ", ""},
        {"pytest -q", "pytest|-q"},
        {"\ta\t \tb ", "a|b"},
        {"a'b'\"c\"d", "abcd"},
        {"''", ""},
        {"a '' b", "a||b"},
        {"'a b'  \"c d\"", "a b|c d"},
        {"a\\ b", "a b"},
        {"a\\\\b", "a\\b"},
        {"a\\'b \\\"", "a'b|\""},
        {"\\a\\#", "a#"},
        {"a#b a~b", "a#b|a~b"},
        {"''# ''~", "#|~"},
        {"'a$b`c;d|e&f<g>(h)*?[i]{j}!'", "a$b`c;d|e&f<g>(h)*?[i]{j}!"},
        {"\"a;b|c*\"", "a;b|c*"},
        {"\"a\\\"b\\\\c\\$d\\`e\"", "a\"b\\c$d`e"},
        {"\"a\\nb\\ c\"", "a\\nb\\ c"},
        {"'a\\'", "a\\"},
        {"\"a\tb\"", "a\tb"},
        {"\xc3\xa9\\\xc3\xa9", "\xc3\xa9\xc3\xa9"},
    };
    check_rows(rows, CX_COUNT_OF(rows));
}

CX_TEST(lex_refusals)
{
    static const row rows[] = {
        {"a\\", "C01@1"},          {"'a", "C01@2"},        {"\"a", "C01@2"},
        {"\"a\\\"", "C01@4"},      {"\"a\\", "C01@3"},     {"a \xff", "C01@2"},
        {"\xed\xa0\x80", "C01@0"}, {"a\nb", "C02@1"},      {"a\rb", "C02@1"},
        {"'a\nb'", "C02@2"},       {"\"a\x1b\"", "C02@2"}, {"a\x7f", "C02@1"},
        {"a\\\n", "C02@2"},        {"a;b", "C02@1"},       {"a\\;b", "C02@2"},
        {"a \\$b", "C02@3"},       {"\"$a\"", "C02@1"},    {"\"`a\"", "C02@1"},
        {"#a", "C02@0"},           {"a #b", "C02@2"},      {"~", "C02@0"},
        {"a !b", "C02@2"},         {"a{b", "C02@1"},       {"a\xc2\x80;", "C02@3"},
        {"; \"unclosed", "C02@0"},
    };
    check_rows(rows, CX_COUNT_OF(rows));
    static const char metacharacters[] = ";&|<>()$`*?[]{}!";
    for (size_t i = 0; i < sizeof metacharacters - 1; i++) {
        char text[2] = {metacharacters[i], 0}, got[64];
        lex(cx_str_z(text), got, sizeof got);
        CHECK_STR(cx_str_z(got), "C02@0");
    }
}

CX_TEST(lex_limits)
{
    static char text[CX_RUN_COMMAND_BYTES_MAX + 2];
    char got[2 * CX_RUN_COMMAND_BYTES_MAX];
    memset(text, 'a', sizeof text);
    lex(cx_str_from(text, CX_RUN_COMMAND_BYTES_MAX), got, sizeof got);
    CHECK_INT(strlen(got), CX_RUN_COMMAND_BYTES_MAX);
    lex(cx_str_from(text, CX_RUN_COMMAND_BYTES_MAX + 1), got, sizeof got);
    CHECK_STR(cx_str_z(got), "C01@8192");
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 2 == 0 ? 'a' : ' ';
    lex(cx_str_from(text, 2 * CX_RUN_COMMAND_TOKENS_MAX), got, sizeof got);
    CHECK_INT(strlen(got), 2 * CX_RUN_COMMAND_TOKENS_MAX - 1);
    lex(cx_str_from(text, 2 * CX_RUN_COMMAND_TOKENS_MAX + 1), got, sizeof got);
    CHECK_STR(cx_str_z(got), "C01@512");
    /* A NUL anywhere, whatever stands before it. */
    lex(cx_str_from("a; b\0c", 6), got, sizeof got);
    CHECK_STR(cx_str_z(got), "C01@4");
}

CX_TEST(lex_words_that_exist)
{
    cx_arena arena;
    cx_run_argv argv;
    cx_json json;
    cx_err err;
    const cx_str words[] = {CX_STR("a b"), CX_STR(""), CX_STR("$c")};
    const cx_str nul = {"a\0b", 3};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_run_argv_make(words, 3, &arena, &argv, &err), &err);
    CHECK_INT(argv.count, 3);
    CHECK_STR(argv.items[2], "$c");
    CHECK(strcmp(argv.words[0], "a b") == 0 && argv.words[3] == NULL);
    CHECK_STATUS(cx_run_argv_json(&argv, &arena, &json, &err), &err);
    CHECK(json.type == CX_JSON_ARRAY && json.count == 3);
    CHECK(cx_run_argv_make(&nul, 1, &arena, &argv, &err).code == CX_E_FORMAT);
    cx_arena_done(&arena);
}

/* Whatever the bytes, words are without quotes' meaning: lexing them quoted gives them back. */
CX_TEST(lex_quoting_gives_words_back)
{
    static const char alphabet[] = "ab '\"\\$;#~\t=/-";
    uint64_t state = cx_test_seed();
    for (int round = 0; round < 2000; round++) {
        char text[24], quoted[80], again[80], expected[80];
        size_t size = (size_t)(cx_test_random(&state) % 20), used = 0;
        for (size_t i = 0; i < size; i++)
            text[i] = alphabet[cx_test_random(&state) % (sizeof alphabet - 1)];
        text[size] = 0;
        quoted[used++] = '"';
        for (size_t i = 0; i < size; i++) {
            if (text[i] != 0 && strchr("\"\\$`", text[i]) != NULL)
                quoted[used++] = '\\';
            quoted[used++] = text[i];
        }
        quoted[used++] = '"';
        lex(cx_str_from(quoted, used), again, sizeof again);
        (void)snprintf(expected, sizeof expected, "%s", text);
        if (strcmp(again, expected) != 0)
            cx_test_fail(__FILE__, __LINE__, "%.*s is '%s'", (int)used, quoted, again);
    }
}
