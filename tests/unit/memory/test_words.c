/*
 * test_words.c - words of texts and of questions (memory/words.h).
 */
#include "memory/words.h"

#include "tests/test.h"

/* The words of a text, sorted, with '|' between them. */
static const char *words_of(const char *text, bool united)
{
    static char shown[4096];
    size_t used = 0;
    cx_arena arena;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_words words = {.arena = &arena};
    shown[0] = 0;
    CHECK_STATUS(cx_words_add(&words, cx_str_z(text), &err), &err);
    if (united)
        cx_words_unite(&words);
    for (size_t i = 0; i < words.count && used + words.items[i].size + 2 < sizeof shown; i++)
        used += (size_t)snprintf(shown + used, sizeof shown - used, "%s%.*s", i == 0 ? "" : "|",
                                 (int)words.items[i].size, words.items[i].data);
    cx_arena_done(&arena);
    return shown;
}

CX_TEST(words_are_letters_and_digits_folded)
{
    CHECK_STR(cx_str_z(words_of("The limit, is 500: the LIMIT!", false)),
              "the|limit|is|500|the|limit");
    CHECK_STR(cx_str_z(words_of("The limit, is 500: the LIMIT!", true)), "500|is|limit|the");
    CHECK_STR(cx_str_z(words_of("", true)), "");
    CHECK_STR(cx_str_z(words_of(" .,;-_/ ", true)), "");
    CHECK_STR(cx_str_z(words_of("snake_case-and/path", false)), "snake|case|and|path");
    CHECK_STR(cx_str_z(words_of("\xc3\x84rger \xc3\xa4RGER", true)), "\xc3\xa4rger");
    CHECK_STR(cx_str_z(words_of("\xce\xa3\xce\x91 \xd0\x9c\xd0\x98\xd0\xa0", false)),
              "\xcf\x83\xce\xb1|\xd0\xbc\xd0\xb8\xd1\x80");
    CHECK_STR(cx_str_z(words_of("\xc5\xbd\xc5\xa0 \xc4\x8c", false)), "\xc5\xbe\xc5\xa1|\xc4\x8d");
    /* Punctuation outside ASCII parts words; characters of CJK stand alone. */
    CHECK_STR(cx_str_z(words_of("a\xe2\x80\x94"
                                "b",
                                false)),
              "a|b");
    CHECK_STR(cx_str_z(words_of("x\xe6\x97\xa5\xe6\x9c\xac", false)),
              "x|\xe6\x97\xa5|\xe6\x9c\xac");
}

CX_TEST(words_have_a_greatest_size)
{
    char text[100], wanted[CX_WORD_SIZE_MAX + 1];
    memset(text, 'a', sizeof text);
    memset(wanted, 'a', sizeof wanted);
    wanted[CX_WORD_SIZE_MAX] = 0;
    text[99] = 0;
    CHECK_STR(cx_str_z(words_of(text, false)), wanted);
    text[CX_WORD_SIZE_MAX] = ' ';
    text[CX_WORD_SIZE_MAX + 1] = 0;
    CHECK_STR(cx_str_z(words_of(text, false)), wanted);
    /* A character is not cut: 37 bytes and one of two. */
    memcpy(text + 37, "\xc3\xa4z", 4);
    wanted[37] = 0;
    CHECK_STR(cx_str_z(words_of(text, false)), wanted);
}

CX_TEST(words_are_bounded)
{
    cx_arena arena;
    cx_buf text;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&text, cx_alloc_default());
    cx_words words = {.arena = &arena};
    for (unsigned i = 0; i < 40000; i++)
        cx_buf_printf(&text, "w%u ", i % 20000);
    CHECK_STATUS(cx_words_add(&words, cx_buf_str(&text), &err), &err);
    cx_words_unite(&words);
    CHECK(words.count <= CX_WORDS_MAX * 4 && words.count > CX_WORDS_MAX);
    words.count = 0;
    for (unsigned i = 0; i < 20000; i++)
        CHECK_STATUS(cx_words_add(&words, CX_STR("again and again"), &err), &err);
    cx_words_unite(&words);
    CHECK_INT(words.count, 2);
    cx_buf_done(&text);
    cx_arena_done(&arena);
}

CX_TEST(questions_are_words_and_beginnings)
{
    cx_arena arena;
    cx_words_query query;
    cx_err err;
    char many[200] = "";
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_words words = {.arena = &arena};
    CHECK_STATUS(cx_words_add(&words, CX_STR("the refund limit is 500"), &err), &err);
    cx_words_unite(&words);
    static const struct {
        const char *text;
        bool fits;
    } rows[] = {{"LIMIT", true}, {"limit refund", true}, {"limit 501", false}, {"lim", false},
                {"lim*", true},  {"lim* ref*", true},    {"limits*", false},   {"5*", true},
                {"zz*", false},  {"refund-limit", true}, {"is * 500", true}};
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        CHECK_STATUS(cx_words_query_parse(cx_str_z(rows[i].text), &arena, &query, &err), &err);
        if (cx_words_match(&query, &words) != rows[i].fits)
            cx_test_fail(__FILE__, __LINE__, "%s", rows[i].text);
    }
    CHECK_STATUS(cx_words_query_parse(CX_STR("aaaaaaa* bb ccc"), &arena, &query, &err), &err);
    CHECK_INT(cx_words_query_best(&query), 2);
    CHECK_INT(cx_words_query_parse(CX_STR(" *?"), &arena, &query, &err).code, CX_E_USAGE);
    for (size_t i = 0; i < 2 * CX_QUERY_WORDS_MAX + 2; i++)
        many[i] = i % 2 == 0 ? 'w' : ' ';
    CHECK_INT(cx_words_query_parse(cx_str_z(many), &arena, &query, &err).code, CX_E_USAGE);
    cx_arena_done(&arena);
}
