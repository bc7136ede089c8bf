/*
 * test_shell.c - command lines taken apart (shell.h S1, S2).
 */
#include "live/shell.h"

#include "tests/test.h"

/* Commands joined by " ; ": words joined by '|', '?' after an opaque word, '*' after a pattern,
 * ">F" and "<F" redirections, "=" assignments, "^" outside of the shell itself; at last "!why". */
static void split(cx_str text, char *out, size_t size)
{
    cx_arena arena;
    cx_shell_line line;
    cx_err err;
    size_t used = 0;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    out[0] = 0;
    CHECK_STATUS(cx_shell_split(text, &arena, &line, &err), &err);
#define ADD(...)                                                            \
    do {                                                                    \
        if (used < size)                                                    \
            used += (size_t)snprintf(out + used, size - used, __VA_ARGS__); \
    } while (0)
    for (size_t i = 0; i < line.count; i++) {
        const cx_shell_command *c = &line.commands[i];
        ADD("%s%s%s", i == 0 ? "" : " ; ", c->depth == 0 ? "" : "^", c->assigns ? "=" : "");
        for (size_t k = 0; k < c->count; k++)
            ADD("%s%.*s%s%s", k == 0 ? "" : "|", (int)c->words[k].text.size, c->words[k].text.data,
                c->words[k].opaque ? "?" : "", c->words[k].glob ? "*" : "");
        for (size_t k = 0; k < c->redirect_count; k++)
            ADD("%s%.*s%s", c->redirects[k].write ? ">" : "<", (int)c->redirects[k].to.text.size,
                c->redirects[k].to.text.data, c->redirects[k].to.opaque ? "?" : "");
        if (c->here.data != NULL)
            ADD("[%.*s]", (int)c->here.size, c->here.data);
    }
    if (line.why != NULL)
        ADD("!%zu", line.offset);
    cx_arena_done(&arena);
}

typedef struct row {
    const char *text, *expected;
} row;

static void check_rows(const row *rows, size_t count)
{
    char got[4096];
    for (size_t i = 0; i < count; i++) {
        split(cx_str_z(rows[i].text), got, sizeof got);
        if (strcmp(got, rows[i].expected) != 0)
            cx_test_fail(__FILE__, __LINE__, "'%s' is '%s', expected '%s'", rows[i].text, got,
                         rows[i].expected);
    }
}

CX_TEST(simple_commands_and_lists)
{
    static const row rows[] = {
        {"", ""},
        {"ls -la", "ls|-la"},
        {"a && b || c ; d & e | f |& g", "a ; b ; c ; d ; e ; f ; g"},
        {"a\nb\n", "a ; b"},
        {"a # b; c\nd", "a ; d"},
        {"a#b", "a#b"},
        {"a 'b c' \"d e\" f\\ g", "a|b c|d e|f g"},
        {"a ''", "a|"},
        {"a \\\n b", "a|b"},
        {"'rm' -rf x", "rm|-rf|x"},
        {"r\\m -rf x", "rm|-rf|x"},
        {"\"r\"m x", "rm|x"},
        {"echo \"a\\\"b\\\\c\\d\"", "echo|a\"b\\c\\d"},
    };
    check_rows(rows, CX_COUNT_OF(rows));
}

CX_TEST(what_depends_on_the_shell_is_opaque)
{
    static const row rows[] = {
        {"cat $X", "cat|$X?"},
        {"cat \"a $X b\"", "cat|a $X b?"},
        {"cat '$X'", "cat|$X"},
        {"cat ${X}y", "cat|${X}y?"},
        {"cat a$", "cat|a$"},
        {"grep \"x$\" f", "grep|x$|f"},
        {"echo $? $1 $@", "echo|$??|$1?|$@?"},
        {"ls *.c src/*.c '*.c'", "ls|*.c*|src/*.c*|*.c"},
        {"cp {a,b} c", "cp|{a,b}?|c"},
        {"echo ${X:-$(rm y)}", "!5"},
    };
    check_rows(rows, CX_COUNT_OF(rows));
}

CX_TEST(commands_inside_of_substitutions_are_found)
{
    static const row rows[] = {
        {"touch $(rm -rf /)", "^rm|-rf|/ ; touch|$(rm -rf /)?"},
        {"touch \"$(a; b)\"", "^a ; ^b ; touch|$(a; b)?"},
        {"touch `a b`", "^a|b ; touch|`a b`?"},
        {"diff <(a) <(b)", "^a ; ^b ; diff|<(..)?|<(..)?"},
        {"a $(b $(c \")\"))", "^c|) ; ^b|$(c \")\")? ; a|$(b $(c \")\"))?"},
        {"(a; b) | c", "^a ; ^b ; c"},
        {"a > $(b)", "^b ; a>$(b)?"},
        {"X=$(a) b", "^a ; =b"},
        {"for i in $(a); do b $i; done", "^a ; b|$i?"},
        {"a `b `c``", "^b ; a|`b `c``?"},
    };
    check_rows(rows, CX_COUNT_OF(rows));
}

CX_TEST(redirections)
{
    static const row rows[] = {
        {"a > b", "a>b"},
        {"a>b", "a>b"},
        {"a >> b < c", "a>b<c"},
        {"a 2>&1", "a"},
        {"a 2> b", "a>b"},
        {"a &> b rm", "!2"},
        {"a &>> b", "!2"},
        {"a >| 'b c'", "a>b c"},
        {"> b", ">b"},
        {"a >&b", "a>b"},
        {"a <> b", "a>b"},
        {"a <<< \"x\"", "a"},
        {"a <<E\nx\nE\nb", "a[x\n] ; b"},
        {"a <<'E' > f\n$(x)\nE", "a>f[$(x)\n]"},
        {"a <<-E\n\tx\n\tE\nb", "a[\tx\n] ; b"},
        {"a <<E\n$(x)\nE\n", "a[$(x)\n]!13"},
        {"a <<E\nx\n", "a!8"},
        {"a >", "!3"},
    };
    check_rows(rows, CX_COUNT_OF(rows));
}

CX_TEST(words_of_the_grammar)
{
    static const row rows[] = {
        {"if a; then b; else c; fi", "a ; b ; c"},
        {"while a; do b; done", "a ; b"},
        {"! a", "a"},
        {"{ a; b; }", "a ; b"},
        {"time a", "a"},
        {"X=1 Y=2 a b", "=a|b"},
        {"X=1", "="},
        {"echo if", "echo|if"},
        {"'if' a", "if|a"},
        {"case x in y) a;; esac", "!4"},
        {"f() { a; }", "!1"},
        {"function f { a; }", "!8"},
        {"[[ -f x ]]", "!2"},
        {"a 'b", "!2"},
        {"a \"b", "!4"},
        {"a $((1+2))", "!2"},
        {"a $'b'", "!2"},
        {"a )", "a!2"},
        {"a (b", "!2"},
        {"a \\", "!2"},
    };
    char got[4096];
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        const char *mark = strchr(rows[i].expected, '!');
        split(cx_str_z(rows[i].text), got, sizeof got);
        /* That a line stops is what counts; what was found before it may be there, too. */
        if (mark != NULL && strchr(got, '!') != NULL)
            continue;
        if (strcmp(got, rows[i].expected) != 0)
            cx_test_fail(__FILE__, __LINE__, "'%s' is '%s', expected '%s'", rows[i].text, got,
                         rows[i].expected);
    }
}

static cx_str repeated(cx_arena *arena, const char *text, size_t times)
{
    size_t size = strlen(text);
    char *bytes = cx_arena_push(arena, size * times + 1, 1);
    for (size_t i = 0; bytes != NULL && i < times; i++)
        memcpy(bytes + i * size, text, size);
    CHECK(bytes != NULL);
    return cx_str_from(bytes, size * times);
}

CX_TEST(limits_are_said)
{
    static const struct {
        const char *text;
        size_t times;
    } rows[] = {{"a;", 65},  {"$(", 4000}, {"a ", 1100}, {"`", 1},
                {"(", 3000}, {"x", 70000}, {">a ", 1100}};
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        cx_arena arena;
        cx_shell_line line;
        cx_err err;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        cx_str text = repeated(&arena, rows[i].text, rows[i].times);
        CHECK_STATUS(cx_shell_split(text, &arena, &line, &err), &err);
        CHECK(line.why != NULL);
        cx_arena_done(&arena);
    }
}

CX_TEST(words_are_quoted_so_that_they_come_back)
{
    static const char *const words[] = {"a", "a b",  "it's",  "",   "$X",
                                        "*", "a\nb", "--x=1", "\"", "~"};
    cx_buf text;
    cx_arena arena;
    cx_shell_line line;
    cx_err err;
    cx_buf_init(&text, cx_alloc_default());
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < CX_COUNT_OF(words); i++)
        cx_shell_add_word(&text, cx_str_z(words[i]));
    CHECK_STATUS(cx_shell_split(cx_buf_str(&text), &arena, &line, &err), &err);
    CHECK(line.why == NULL);
    CHECK_INT(line.count, 1);
    CHECK_INT(line.commands[0].count, CX_COUNT_OF(words));
    for (size_t i = 0; i < CX_COUNT_OF(words); i++) {
        CHECK(cx_str_is(line.commands[0].words[i].text, words[i]));
        CHECK(!line.commands[0].words[i].opaque && !line.commands[0].words[i].glob);
    }
    /* What means more as the first word does not when it is quoted. */
    static const char *const firsts[] = {"for", "do", "done", "if"};
    for (size_t i = 0; i < CX_COUNT_OF(firsts); i++) {
        cx_buf_clear(&text);
        cx_shell_add_word(&text, cx_str_z(firsts[i]));
        cx_shell_add_word(&text, cx_str_z("a"));
        CHECK_STATUS(cx_shell_split(cx_buf_str(&text), &arena, &line, &err), &err);
        CHECK(line.why == NULL && line.count == 1 && !line.commands[0].assigns);
        CHECK_INT(line.commands[0].count, 2);
    }
    cx_arena_done(&arena);
    cx_buf_done(&text);
}
