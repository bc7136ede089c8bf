/*
 * trivial.c - commands that test nothing (run.md §12, strict_acceptance): `true`, `:`, only quotes,
 * or an echo of a text that means success.
 */
#include "command/command.h"
#include "rules/api.h"

static bool is_blank(char c)
{
    return c == ' ' || (c >= 0x09 && c <= 0x0D);
}

static char ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Trimmed, blanks collapsed to one space, lower case.  `out` holds text.size bytes. */
static cx_str collapse_blanks(cx_str text, char *out)
{
    size_t used = 0;
    text = cx_run_token_trim(text);
    for (size_t i = 0; i < text.size; i++) {
        if (!is_blank(text.data[i]))
            out[used++] = ascii_lower(text.data[i]);
        else if (used != 0 && out[used - 1] != ' ')
            out[used++] = ' ';
    }
    return cx_str_from(out, used);
}

static bool is_only_quotes(cx_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] != '"' && text.data[i] != '\'')
            return false;
    }
    return true;
}

/* Whether the arguments of `echo`, joined by one space, are empty or mean success. */
static bool echoes_success(const cx_run_argv *argv)
{
    static const char *const success_texts[] = {"", "ok", "hello", "pass", "success", "done", "1"};
    char text[16];
    size_t used = 0;
    if (argv->count == 0 || !cx_run_token_same(argv->items[0], CX_STR("echo")))
        return false;
    for (size_t i = 1; i < argv->count; i++) {
        cx_str token = argv->items[i];
        if (token.size + 1 > sizeof text - used)
            return false;
        if (i > 1)
            text[used++] = ' ';
        for (size_t k = 0; k < token.size; k++)
            text[used++] = ascii_lower(token.data[k]);
    }
    cx_str joined = cx_str_from(text, used);
    for (size_t i = 0; i < CX_COUNT_OF(success_texts); i++) {
        if (cx_str_is(joined, success_texts[i]))
            return true;
    }
    return false;
}

cx_status cx_run_command_trivial(cx_str text, cx_arena *arena, bool *out, cx_err *err)
{
    cx_run_lexed lexed;
    char *buffer = CX_ARENA_ARRAY(arena, char, text.size + 1);
    if (buffer == NULL)
        return cx_fail_nomem(err);
    cx_str plain = collapse_blanks(text, buffer);
    if (is_only_quotes(plain) || cx_str_is(plain, "true") || cx_str_is(plain, ":")) {
        *out = true;
        return CX_SUCCESS;
    }
    CX_TRY(cx_run_lex(text, arena, &lexed, err));
    *out = lexed.rule == NULL && echoes_success(&lexed.argv);
    return CX_SUCCESS;
}
