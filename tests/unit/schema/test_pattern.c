/*
 * Patterns mean what ECMA-262 says, not what PCRE2 would.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "schema/pattern.h"
#include "tests/test.h"

/* 1 found, 0 not, -1 no pattern, -2 a limit while searching */
static int search(const char *pattern, cx_str text)
{
    cx_pattern *compiled;
    bool found = false;
    if (cx_failed(cx_pattern_compile(cx_str_z(pattern), NULL, &compiled, NULL)))
        return -1;
    cx_status status = cx_pattern_match(compiled, text, &found, NULL);
    cx_pattern_close(compiled);
    return cx_failed(status) ? -2 : found;
}

static void check(int line, const char *pattern, const char *text, int expected)
{
    int got = search(pattern, cx_str_z(text));
    if (got != expected)
        cx_test_fail(__FILE__, line, "/%s/ in '%s' gives %d, expected %d", pattern, text, got,
                     expected);
}

CX_TEST(patterns_search_anywhere_and_end_at_the_end)
{
    check(__LINE__, "b", "abc", 1);
    check(__LINE__, "^b", "abc", 0);
    check(__LINE__, "c$", "abc", 1);
    check(__LINE__, "^abc$", "abc\n", 0);
    check(__LINE__, "^abc$", "abc", 1);
    check(__LINE__, "^b", "a\nb", 0);
    check(__LINE__, "", "", 1);
    check(__LINE__, "^$", "", 1);
    check(__LINE__, "a.c", "a\nc", 0);
    check(__LINE__, "a.c", "a\rc", 0);
    check(__LINE__, "a.c",
          "a\xE2\x80\xA8"
          "c",
          0);
    check(__LINE__, "a.c",
          "a\xF0\x9F\x90\xB2"
          "c",
          1);
    check(__LINE__, "a[^]c", "a\nc", 1);
    check(__LINE__, "a[]c", "abc", 0);
    check(__LINE__, "^a[]*c$", "ac", 1);
}

CX_TEST(pattern_classes_are_those_of_the_standard)
{
    check(__LINE__, "^\\d$", "7", 1);
    check(__LINE__, "^\\d$", "\xD9\xA3", 0); /* ARABIC-INDIC DIGIT THREE */
    check(__LINE__, "^\\D$", "\xD9\xA3", 1);
    check(__LINE__, "^\\w$", "\xC3\xA9", 0);
    check(__LINE__, "^\\W$", "\xC3\xA9", 1);
    check(__LINE__, "^[\\w-]+$", "a-b_c", 1);
    check(__LINE__, "^\\s$", "\xC2\xA0", 1);
    check(__LINE__, "^\\s$", "\xEF\xBB\xBF", 1);
    check(__LINE__, "^\\s$", "\xE2\x80\x83", 1);
    check(__LINE__, "^\\S$", "\xE2\x80\x83", 0);
    check(__LINE__, "^\\s$", "\xE2\x80\x8B", 0); /* ZERO WIDTH SPACE is none */
    check(__LINE__, "^[\\s]$", "\v", 1);
    check(__LINE__, "^[\\S\\d]$", "x", 1);
    check(__LINE__, "^[^\\S]$", " ", 1);
    check(__LINE__, "^[[:alpha:]]$", ":]", 1); /* no POSIX classes: a class, then ']' */
    check(__LINE__, "^[a\\-z]$", "-", 1);
    check(__LINE__, "^[a\\-z]$", "m", 0);
    check(__LINE__, "^[-a]$", "-", 1);
    check(__LINE__, "^[a-]$", "-", 1);
    check(__LINE__, "^[\\b]$", "\b", 1);
    check(__LINE__, "^\\p{Letter}+$", "\xC3\xA9z", 1);
    check(__LINE__, "^\\p{L}+$", "1", 0);
    check(__LINE__, "^\\P{L}+$", "1", 1);
    check(__LINE__, "^\\p{Script=Greek}$", "\xCE\xB1", 1);
    check(__LINE__, "^\\p{Nd}$", "\xD9\xA3", 1);
    check(__LINE__, "^[\\p{Lu}\\d]$", "7", 1);
}

/* Each as PCRE2 before 10.40 spells it; NULL = it cannot. */
CX_TEST(patterns_are_spelled_for_an_older_pcre2)
{
    static const char *const pairs[][2] = {
        {"^\\p{Script=Greek}$", "^\\p{Greek}$"},
        {"^\\P{sc=Latin}\\p{Script=Greek}$", "^\\P{Latin}\\p{Greek}$"},
        {"^[\\p{sc=Greek}\\d]$", "^[\\p{Greek}\\d]$"},
        {"\\\\p\\{sc:Greek\\}", "\\x{5c}p\\x{7b}sc\\x{3a}Greek\\x{7d}"},
        {"\\\\\\p{sc=Greek}", "\\x{5c}\\p{Greek}"},
        {"\\p{L}", "\\p{L}"},
        {"\\\\", "\\x{5c}"},
        {"", ""},
        {"\\p{Script_Extensions=Greek}", NULL},
        {"a\\P{scx=Greek}", NULL},
    };
    for (size_t i = 0; i < CX_COUNT_OF(pairs); i++) {
        cx_buf translated, older;
        cx_err err;
        cx_buf_init(&translated, cx_alloc_default());
        cx_buf_init(&older, cx_alloc_default());
        CHECK_STATUS(cx_pattern_translate(cx_str_z(pairs[i][0]), &translated, &err), &err);
        cx_status status = cx_pattern_spell_older(cx_buf_str(&translated), &older, &err);
        if (pairs[i][1] == NULL) {
            CHECK_INT(status.code, CX_E_UNSUPPORTED);
            CHECK(strstr(err.message, "PCRE2 10.40 or newer is needed") != NULL);
        } else {
            CHECK_STATUS(status, &err);
            CHECK_STR(cx_buf_str(&older), pairs[i][1]);
        }
        cx_buf_done(&older);
        cx_buf_done(&translated);
    }
}

CX_TEST(pattern_escapes_are_those_of_the_standard)
{
    check(__LINE__, "^\\t\\n\\v\\f\\r$", "\t\n\v\f\r", 1);
    check(__LINE__, "^\\cA$", "\x01", 1);
    check(__LINE__, "^\\x41\\u0042\\u{43}$", "ABC", 1);
    check(__LINE__, "^\\uD83D\\uDC32$", "\xF0\x9F\x90\xB2", 1);
    check(__LINE__, "^\\u{1F432}*$", "\xF0\x9F\x90\xB2\xF0\x9F\x90\xB2", 1);
    check(__LINE__, "^\\.\\*\\+\\?\\(\\)\\[\\]\\{\\}\\|\\^\\$\\/\\\\$", ".*+?()[]{}|^$/\\", 1);
    check(__LINE__, "^a\\b", "a-", 1);
    check(__LINE__, "^a\\B", "ab", 1);
    check(__LINE__, "^{}]$", "{}]", 1);
    check(__LINE__, "^a{,5}$", "a{,5}", 1);
    check(__LINE__, "^a{2}b{1,}c{0,1}$", "aabbb", 1);
    check(__LINE__, "^#x$", "#x", 1);
    /* Of PCRE2, or of no engine. */
    static const char *const none[] = {"\\a",       "\\Z",
                                       "\\A",       "\\Qx\\E",
                                       "\\K",       "\\R",
                                       "\\X",       "\\h",
                                       "\\e",       "\\G",
                                       "(?i)x",     "(?#c)x",
                                       "(?>x)",     "(?|x)",
                                       "(?P<n>x)",  "(*UTF)x",
                                       "x++",       "x**",
                                       "*x",        "(*x)",
                                       "^*",        "(x",
                                       "x)",        "[x",
                                       "[z-a]",     "[\\d-z]",
                                       "x{2,1}",    "\\u12",
                                       "\\x1",      "\\c1",
                                       "\\01",      "\\u{110000}",
                                       "\\uD800",   "\\1",
                                       "(x)\\2",    "\\k<n>",
                                       "(?<1>x)",   "(?<n>x)(?<n>y)",
                                       "\\p{Nope}", "\\p{L",
                                       "\\pL",      "\\N",
                                       "\\",        "\\p{Foo=Bar}"};
    for (size_t i = 0; i < CX_COUNT_OF(none); i++)
        check(__LINE__, none[i], "x", -1);
}

CX_TEST(pattern_groups_and_references)
{
    check(__LINE__, "^(?:ab)+$", "abab", 1);
    check(__LINE__, "^(a)(b)\\2\\1$", "abba", 1);
    check(__LINE__, "^(?<one>a)\\k<one>$", "aa", 1);
    check(__LINE__, "^\\k<x>(?<x>a)$", "a", 1); /* not yet taken part: empty */
    check(__LINE__, "^(a)?\\1b$", "b", 1);
    check(__LINE__, "^(?=ab)a", "ab", 1);
    check(__LINE__, "^(?!ab)a", "ab", 0);
    check(__LINE__, "(?<=a)b", "ab", 1);
    check(__LINE__, "(?<!a)b", "ab", 0);
    check(__LINE__, "^a+?$", "aaa", 1);
    check(__LINE__, "[(]\\(?<x", "(<x", 1);
}

CX_TEST(patterns_have_limits)
{
    /* A search that would take for ever has no answer. */
    char text[64];
    memset(text, 'a', sizeof text);
    text[40] = '\0';
    CHECK_INT(search("^(a+)+(a+)+(a+)+$", cx_str_from(text, 41)), -2);
    static char long_pattern[CX_PATTERN_BYTES_MAX + 2];
    memset(long_pattern, 'a', CX_PATTERN_BYTES_MAX + 1);
    CHECK_INT(search(long_pattern, CX_STR("a")), -1);
    check(__LINE__, "^a{65536}$", "a", -1);
    /* A lone surrogate is one character that is not ASCII. */
    CHECK_INT(search("^.$", cx_str_from("\xED\xA0\x80", 3)), 1);
    CHECK_INT(search("^[a-z]$", cx_str_from("\xED\xA0\x80", 3)), 0);
    /* A zero byte is a character too. */
    CHECK_INT(search("^a\\0b$", cx_str_from("a\0b", 3)), 1);
    CHECK_INT(search("^a$", cx_str_from("a\0", 2)), 0);
}

CX_TEST(a_pattern_that_is_none_says_where)
{
    cx_pattern *compiled;
    cx_err err;
    CHECK(cx_pattern_compile(CX_STR("ab\\y"), NULL, &compiled, &err).code == CX_E_SYNTAX);
    CHECK_INT(err.offset, 2);
    CHECK_STR(cx_str_z(err.message), "the pattern has an escape that means nothing at byte 2");
    cx_pattern_close(NULL);
}
