/*
 * lex.c - the lexer of run.md §8, one pass, byte by byte.
 *
 *     any       not UTF-8, NUL, > 8192 bytes, > 256 tokens: C01
 *               controls but TAB, 0x7F: C02
 *     unquoted  space and TAB end a token; quotes open
 *               '\' takes the next character literally, unless that is a metacharacter (C02) or the
 *               end (C01)
 *               metacharacters: C02; '#' and '~' at the start of a token: C02
 *     single    literal up to the next quote
 *     double    '\' escapes " \ $ ` and is literal before anything else; bare $ and ` : C02
 *
 * Properties of the text as a whole (length, UTF-8, NUL) are checked first.
 */
#include "rules/lex.h"

#include "base/api.h"

static const char METACHARACTERS[] = ";&|<>()$`*?[]{}!";

typedef struct lexer {
    cx_str text;
    size_t at;
    char *out; /* tokens, one after the other, each terminated */
    size_t used;
    size_t start; /* of the token being read */
    bool in_word;
    size_t starts[CX_RUN_COMMAND_TOKENS_MAX], ends[CX_RUN_COMMAND_TOKENS_MAX];
    size_t count;
    const char *rule, *why;
} lexer;

static bool is_metacharacter(char c)
{
    return c != 0 && strchr(METACHARACTERS, c) != NULL;
}

static void reject_text(lexer *lex, const char *rule, const char *why)
{
    if (lex->rule == NULL) {
        lex->rule = rule;
        lex->why = why;
    }
}

/* Starts a token, which may stay empty ('' or ""). */
static void open_token(lexer *lex)
{
    if (lex->in_word)
        return;
    if (lex->count == CX_RUN_COMMAND_TOKENS_MAX) {
        reject_text(lex, "C01", "more than 256 words");
        return;
    }
    lex->in_word = true;
    lex->start = lex->used;
}

static void close_token(lexer *lex)
{
    if (!lex->in_word)
        return;
    lex->in_word = false;
    lex->starts[lex->count] = lex->start;
    lex->ends[lex->count] = lex->used;
    lex->count++;
    lex->out[lex->used++] = 0;
}

static void add_byte(lexer *lex, char c)
{
    lex->out[lex->used++] = c;
}

/* Control characters affect terminals and line readers at any position. */
static bool check_byte(lexer *lex, char c)
{
    unsigned char byte = (unsigned char)c;
    if ((byte < 0x20 && byte != '\t') || byte == 0x7F)
        reject_text(lex, "C02", "a control character");
    return lex->rule == NULL;
}

static void read_single_quoted(lexer *lex)
{
    for (lex->at++; lex->at < lex->text.size; lex->at++) {
        char c = lex->text.data[lex->at];
        if (!check_byte(lex, c) || c == '\'')
            return;
        add_byte(lex, c);
    }
    reject_text(lex, "C01", "a single quote that is not closed");
}

static void read_double_quoted(lexer *lex)
{
    for (lex->at++; lex->at < lex->text.size; lex->at++) {
        char c = lex->text.data[lex->at];
        if (!check_byte(lex, c) || c == '"')
            return;
        if (c == '$' || c == '`') {
            reject_text(lex, "C02", "$ or ` between double quotes");
            return;
        }
        if (c == '\\' && lex->at + 1 < lex->text.size) {
            char next = lex->text.data[lex->at + 1];
            if (next == '"' || next == '\\' || next == '$' || next == '`') {
                c = next;
                lex->at++;
            }
        }
        add_byte(lex, c);
    }
    reject_text(lex, "C01", "a double quote that is not closed");
}

static void read_escape(lexer *lex)
{
    if (lex->at + 1 == lex->text.size) {
        reject_text(lex, "C01", "a backslash at the end");
        return;
    }
    char c = lex->text.data[++lex->at];
    if (is_metacharacter(c))
        reject_text(lex, "C02", "a shell metacharacter after a backslash");
    else if (check_byte(lex, c))
        add_byte(lex, c);
}

static void read_unquoted(lexer *lex, char c)
{
    if (is_metacharacter(c)) {
        reject_text(lex, "C02", "a shell metacharacter");
    } else if (c == ' ' || c == '\t') {
        close_token(lex);
    } else if (!lex->in_word && (c == '#' || c == '~')) {
        reject_text(lex, "C02", "# or ~ at the start of a word");
    } else {
        open_token(lex);
        if (lex->rule != NULL)
            return;
        if (c == '\'')
            read_single_quoted(lex);
        else if (c == '"')
            read_double_quoted(lex);
        else if (c == '\\')
            read_escape(lex);
        else
            add_byte(lex, c);
    }
}

static void lex_text(lexer *lex)
{
    if (lex->text.size > CX_RUN_COMMAND_BYTES_MAX) {
        lex->at = CX_RUN_COMMAND_BYTES_MAX;
        reject_text(lex, "C01", "more than 8192 bytes");
        return;
    }
    lex->at = cx_utf8_valid_prefix(lex->text);
    if (lex->at < lex->text.size) {
        reject_text(lex, "C01", "bytes that are not UTF-8");
        return;
    }
    const char *nul = lex->text.size == 0 ? NULL : memchr(lex->text.data, 0, lex->text.size);
    if (nul != NULL) {
        lex->at = (size_t)(nul - lex->text.data);
        reject_text(lex, "C01", "a NUL byte");
        return;
    }
    for (lex->at = 0; lex->at < lex->text.size && lex->rule == NULL; lex->at++) {
        char c = lex->text.data[lex->at];
        if (check_byte(lex, c))
            read_unquoted(lex, c);
        if (lex->rule != NULL)
            return;
    }
    close_token(lex);
}

/* Copies the tokens in two forms: with sizes, and as execve takes them. */
static cx_status copy_argv(const cx_str *words, size_t count, cx_arena *arena, cx_run_argv *out,
                           cx_err *err)
{
    cx_str *items = CX_ARENA_ARRAY(arena, cx_str, count + 1);
    const char **pointers = CX_ARENA_ARRAY(arena, const char *, count + 1);
    if (items == NULL || pointers == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        items[i] = words[i];
        pointers[i] = words[i].data;
    }
    items[count] = (cx_str){NULL, 0};
    pointers[count] = NULL;
    *out = (cx_run_argv){items, pointers, count};
    return CX_SUCCESS;
}

cx_status cx_run_lex(cx_str text, cx_arena *arena, cx_run_lexed *out, cx_err *err)
{
    cx_str words[CX_RUN_COMMAND_TOKENS_MAX];
    lexer *lex = CX_ARENA_NEW(arena, lexer);
    if (lex == NULL)
        return cx_fail_nomem(err);
    memset(lex, 0, sizeof *lex);
    lex->text = text;
    /* No token is longer than its source text, and each has its own terminator. */
    size_t text_size = text.size > CX_RUN_COMMAND_BYTES_MAX ? 0 : text.size;
    lex->out = CX_ARENA_ARRAY(arena, char, text_size + CX_RUN_COMMAND_TOKENS_MAX);
    if (lex->out == NULL)
        return cx_fail_nomem(err);
    lex_text(lex);
    memset(out, 0, sizeof *out);
    if (lex->rule != NULL) {
        out->rule = lex->rule;
        out->why = lex->why;
        out->offset = lex->at > text.size ? text.size : lex->at;
        return CX_SUCCESS;
    }
    for (size_t i = 0; i < lex->count; i++)
        words[i] = cx_str_from(lex->out + lex->starts[i], lex->ends[i] - lex->starts[i]);
    return copy_argv(words, lex->count, arena, &out->argv, err);
}

cx_status cx_run_argv_make(const cx_str *words, size_t count, cx_arena *arena, cx_run_argv *out,
                           cx_err *err)
{
    CX_ASSERT(count == 0 || words != NULL);
    cx_str *copies = CX_ARENA_ARRAY(arena, cx_str, count + 1);
    if (copies == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        if (words[i].size != 0 && memchr(words[i].data, 0, words[i].size) != NULL)
            return cx_fail(err, CX_E_FORMAT, "argument %zu of a command contains a NUL byte", i);
        copies[i] = cx_arena_copy_str(arena, words[i]);
        if (copies[i].data == NULL)
            return cx_fail_nomem(err);
    }
    return copy_argv(copies, count, arena, out, err);
}

cx_status cx_run_argv_json(const cx_run_argv *argv, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    for (size_t i = 0; i < argv->count; i++)
        cx_json_list_add(&list, cx_json_make_str(argv->items[i]));
    return cx_json_list_end_array(&list, out, err);
}
