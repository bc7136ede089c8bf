/* Settings files: what is read, and what is refused where. */
#include "os/settings.h"

#include "tests/test.h"

static cx_status read(const char *text, cx_arena *arena, const cx_setting **out, size_t *out_count,
                      cx_err *err)
{
    cx_arena_init(arena, cx_alloc_default(), 0);
    return cx_settings_read(cx_str_z(text), arena, out, out_count, err);
}

CX_TEST(settings_are_read)
{
    const cx_setting *s = NULL;
    size_t count = 0;
    cx_arena arena;
    cx_err err = {0};
    CHECK(!cx_failed(read("# c\n  a = \"x\\ty\\u00e9\" # d\r\nb='\\z'\n\n[s-1]\nn = 0\nf=false\n"
                          "l = [ \"p\", # one\n 'q',\n]\ne = []",
                          &arena, &s, &count, &err)));
    CHECK_INT(count, 6);
    CHECK_STR(cx_str_z(s[0].values[0]), "x\ty\xc3\xa9");
    CHECK(s[0].section.size == 0 && s[0].line == 2 && s[0].column == 3);
    CHECK_STR(cx_str_z(s[1].values[0]), "\\z");
    CHECK(cx_str_is(s[2].section, "s-1") && s[2].kind == CX_SETTING_NUMBER);
    CHECK(s[3].kind == CX_SETTING_FLAG && strcmp(s[3].values[0], "false") == 0);
    CHECK(s[4].kind == CX_SETTING_TEXTS && s[4].value_count == 2 && s[4].line == 8);
    CHECK(strcmp(s[4].values[1], "q") == 0 && s[5].value_count == 0);
    cx_arena_done(&arena);
}

CX_TEST(settings_are_refused_where)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"a", "line 1, column 2: found the end of the file, expected '='"},
        {"a =\n", "line 1, column 4: found the end of the line, expected a text in quotes"},
        {"\n\na = 01", "line 3, column 5"},
        {"a = -1", "line 1, column 5: found '-'"},
        {"a = 99999999999999999999", "line 1, column 5"},
        {"a = \"x", "line 1, column 7: found the end of the file, expected the closing"},
        {"a = \"x\ny\"", "expected the closing"},
        {"a = \"\\ud800\"", "no character"},
        {"a = \"\\u12", "a hex digit"},
        {"a = [\"x\" \"y\"]", "',' or ']'"},
        {"a = [1]", "a text in quotes"},
        {"a = {b = 1}", "line 1, column 5"},
        {"a = 1 2", "the end of the line"},
        {"a = 1\na = 2", "line 2, column 1: 'a' comes twice; first in line 1"},
        {"[a]\n[b]\n[a]", "line 3, column 1: the section [a] comes twice"},
        {"[a.b]", "line 1, column 3: found '.', expected ']'"},
        {"[[a]]", "the name of a section"},
        {"\"a\" = 1", "a setting or a [section]"},
        {"a = 1\r", ""},
        {"\x01", "byte 0x01"},
        {"a = \"\xff\"", "not UTF-8"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        const cx_setting *s = NULL;
        size_t count = 0;
        cx_arena arena;
        cx_err err = {0};
        cx_status status = read(cases[i].text, &arena, &s, &count, &err);
        if (cases[i].says[0] != 0) {
            CHECK_INT(status.code, CX_E_FORMAT);
            CHECK(strstr(err.message, cases[i].says) != NULL);
        }
        cx_arena_done(&arena);
    }
}
