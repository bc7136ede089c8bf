/*
 * shell.c - POSIX command lines, and what of bash agents write, as simple commands.
 */
#include "live/shell.h"

#include <string.h>

typedef struct splitter {
    cx_arena *arena;
    cx_str text;
    size_t at;
    unsigned depth;
    unsigned shells[CX_SHELL_DEPTH_MAX];
    unsigned *shell_count;               /* of the whole line */
    unsigned chains[CX_SHELL_DEPTH_MAX]; /* its own is `chain` */
    unsigned chain, loops;
    bool after_pipe, inverted;
    bool joined;                /* after "&&" or "|", with nothing since */
    cx_shell_command *commands; /* room for CX_SHELL_COMMANDS_MAX */
    size_t count;
    cx_shell_word *words; /* of the whole line, room for CX_SHELL_WORDS_MAX */
    size_t word_count, first_word;
    cx_shell_redirect *redirects; /* likewise */
    size_t redirect_count, first_redirect;
    bool assigns, in_list; /* in_list: the words after `for` */
    bool begins_here;      /* a here-document is its input */
    bool input_expands;
    cx_str here;
    cx_str delimiter; /* of a here-document that begins after this line; data NULL = none */
    bool delimiter_quoted, strip_tabs;
    size_t here_of; /* the command that gets it */
    const char *why;
    size_t why_at;
    bool no_memory;
} splitter;

static void stop_at(splitter *s, const char *why)
{
    if (s->why == NULL) {
        s->why = why;
        s->why_at = s->at;
    }
}

static bool is_stopped(const splitter *s)
{
    return s->why != NULL || s->no_memory;
}

static char char_at(const splitter *s, size_t ahead)
{
    return s->at + ahead < s->text.size ? s->text.data[s->at + ahead] : 0;
}

static bool at_end(const splitter *s)
{
    return s->at >= s->text.size;
}

/* --- commands --------------------------------------------------------------------------------- */

/* Where a loop's second round begins is where its first one ended. */
static bool moves_in_loop(const splitter *s, size_t words)
{
    static const char *const movers[] = {"cd", "pushd", "popd"};
    if (s->loops == 0 || words == 0 || s->in_list)
        return false;
    for (size_t i = 0; i < CX_COUNT_OF(movers); i++)
        if (cx_str_is(s->words[s->first_word].text, movers[i]))
            return true;
    return false;
}

/* Variables that shells and programs obey are written in capitals, but for these. */
static bool is_obeyed(cx_str name)
{
    static const char *const named[] = {"path",  "cdpath",  "fpath",     "prompt", "argv",
                                        "watch", "options", "histchars", "status", "psvar"};
    bool small = false;
    for (size_t i = 0; i < name.size; i++)
        small = small || (name.data[i] >= 'a' && name.data[i] <= 'z');
    for (size_t i = 0; i < CX_COUNT_OF(named); i++)
        if (cx_str_is(name, named[i]))
            return true;
    return (!small && name.size > 1) || cx_str_ends(name, CX_STR("_proxy")) ||
           cx_str_starts(name, CX_STR("npm_"));
}

/* The words after `for`: NAME, or NAME in WORDS.  A variable that others obey is set like any
 * other: as by a command of its own. */
static void end_list(splitter *s, size_t words)
{
    const cx_shell_word *list = s->words + s->first_word;
    bool plain = words != 0 && !list[0].opaque && !list[0].glob;
    if (!plain || (words > 1 && (!cx_str_is(list[1].text, "in") || list[1].opaque))) {
        stop_at(s, "a for loop in a form that is not known");
        return;
    }
    if (!is_obeyed(list[0].text))
        return;
    if (s->count == CX_SHELL_COMMANDS_MAX) {
        stop_at(s, "more than 64 commands");
        return;
    }
    s->commands[s->count] = (cx_shell_command){.assigns = true, .depth = s->depth};
    memcpy(s->commands[s->count].shells, s->shells, sizeof s->shells);
    memcpy(s->commands[s->count].chains, s->chains, sizeof s->chains);
    s->commands[s->count++].chains[s->depth] = s->chain;
}

static void end_command(splitter *s)
{
    size_t words = s->word_count - s->first_word;
    size_t redirects = s->redirect_count - s->first_redirect;
    if (s->in_list)
        end_list(s, words);
    if (s->begins_here)
        s->here_of = s->count;
    if ((words != 0 || redirects != 0 || s->assigns) && !s->in_list) {
        if (s->count == CX_SHELL_COMMANDS_MAX) {
            stop_at(s, "more than 64 commands");
            return;
        }
        if (moves_in_loop(s, words)) {
            stop_at(s, "a cd inside of a loop");
            return;
        }
        s->commands[s->count] = (cx_shell_command){.words = s->words + s->first_word,
                                                   .count = words,
                                                   .redirects = s->redirects + s->first_redirect,
                                                   .redirect_count = redirects,
                                                   .assigns = s->assigns,
                                                   .here = s->here,
                                                   .input_expands = s->input_expands,
                                                   .depth = s->depth,
                                                   .piped = s->after_pipe,
                                                   .inverted = s->inverted};
        cx_shell_command *command = &s->commands[s->count++];
        memcpy(command->shells, s->shells, sizeof s->shells);
        memcpy(command->chains, s->chains, sizeof s->chains);
        command->chains[s->depth] = s->chain;
    }
    s->first_word = s->word_count;
    s->first_redirect = s->redirect_count;
    s->assigns = s->in_list = s->after_pipe = s->inverted = false;
    s->begins_here = s->input_expands = false;
    s->here = (cx_str){NULL, 0};
}

static void split_inner(splitter *s, cx_str inner);

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Whether the "$" here begins an expansion; else it stands for itself. */
static bool dollar_expands(const splitter *s, bool in_quotes)
{
    char next = char_at(s, 1);
    if (next == '\'' || next == '"')
        return !in_quotes;
    return is_name_char(next) || (next != 0 && strchr("({?$!#@*-", next) != NULL);
}

/* After "(": the offset of its ")", or the end of the text when there is none. */
static size_t closing_paren(cx_str text, size_t at)
{
    unsigned open = 1;
    char quote = 0;
    for (; at < text.size; at++) {
        char c = text.data[at];
        if (quote != 0) {
            if (c == '\\' && quote == '"')
                at++;
            else if (c == quote)
                quote = 0;
            continue;
        }
        if (c == '\\')
            at++;
        else if (c == '\'' || c == '"')
            quote = c;
        else if (c == '(')
            open++;
        else if (c == ')' && --open == 0)
            return at;
    }
    return text.size;
}

/* At "(" of a substitution. */
static void take_parens(splitter *s)
{
    size_t end = closing_paren(s->text, s->at + 1);
    if (end >= s->text.size) {
        stop_at(s, "a parenthesis that is not closed");
        return;
    }
    cx_str inner = cx_str_from(s->text.data + s->at + 1, end - s->at - 1);
    s->at = end + 1;
    split_inner(s, inner);
}

/* At the first backtick. */
static void take_backticks(splitter *s)
{
    size_t end = s->at + 1;
    while (end < s->text.size && s->text.data[end] != '`')
        end += s->text.data[end] == '\\' ? 2 : 1;
    if (end >= s->text.size) {
        stop_at(s, "a backtick that is not closed");
        return;
    }
    cx_str inner = cx_str_from(s->text.data + s->at + 1, end - s->at - 1);
    if (inner.size != 0 && memchr(inner.data, '\\', inner.size) != NULL) {
        stop_at(s, "a backslash inside of backticks");
        return;
    }
    s->at = end + 1;
    split_inner(s, inner);
}

static bool is_all_of(cx_str text, const char *bytes)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == 0 || strchr(bytes, text.data[i]) == NULL)
            return false;
    return true;
}

/* What is inside of "${..}": why it does more than to become a text; NULL when it does not.  An
 * index, a length or a value can be an expression, in which shells run commands. */
static const char *why_expansion(cx_str inner)
{
    static const char acts[] = "an expansion that sets a variable, or works something out";
    size_t at = inner.size > 1 && inner.data[0] == '#' ? 1 : 0, name = at;
    while (at < inner.size && is_name_char(inner.data[at]))
        at++;
    if (at == name && at < inner.size && strchr("?$#@*-", inner.data[at]) != NULL)
        at++;
    if (at == name)
        return acts;
    if (at < inner.size && inner.data[at] == '[') {
        const char *close = memchr(inner.data + at, ']', inner.size - at);
        size_t end = close == NULL ? inner.size : (size_t)(close - inner.data);
        cx_str index = cx_str_from(inner.data + at + 1, end - at - 1);
        if (close == NULL || !is_all_of(index, "0123456789@*"))
            return acts;
        at = end + 1;
    }
    if (at == inner.size)
        return NULL;
    cx_str rest = cx_str_from(inner.data + at, inner.size - at);
    if (rest.data[0] == ':' && rest.size > 1 && strchr("-+?", rest.data[1]) == NULL)
        return is_all_of(rest, "0123456789: -") ? NULL : acts;
    return strchr(":-+?#%/^,", rest.data[0]) != NULL ? NULL : acts;
}

/* At "${". */
static void take_braces(splitter *s)
{
    size_t from = s->at + 2, end = from;
    while (end < s->text.size && s->text.data[end] != '}')
        end++;
    cx_str inner = cx_str_from(s->text.data + from, end - from);
    const char *why = end < s->text.size ? why_expansion(inner) : NULL;
    if (end >= s->text.size || (inner.size != 0 && (memchr(inner.data, '$', inner.size) != NULL ||
                                                    memchr(inner.data, '`', inner.size) != NULL)))
        why = "an expansion inside of an expansion";
    if (why != NULL)
        stop_at(s, why);
    else
        s->at = end + 1;
}

/* At "$": skips the expansion; commands inside of it are taken. */
static void take_dollar(splitter *s)
{
    char next = char_at(s, 1);
    if (next == '(' && char_at(s, 2) == '(') {
        stop_at(s, "arithmetic that a shell works out");
        return;
    }
    if (next == '(') {
        s->at++;
        take_parens(s);
        return;
    }
    if (next == '\'' || next == '"') {
        stop_at(s, "a $'..' or $\"..\" text");
        return;
    }
    if (next == '{') {
        take_braces(s);
        return;
    }
    s->at++;
    if (next != 0 && strchr("?$!#@*-", next) != NULL) {
        s->at++;
        return;
    }
    while (!at_end(s) && is_name_char(char_at(s, 0)))
        s->at++;
    if (char_at(s, 0) == '[') /* zsh; for bash a pattern */
        stop_at(s, "an index, which a shell works out");
}

static cx_status split_at_depth(cx_str text, const splitter *outer, cx_arena *arena,
                                cx_shell_line *out, cx_err *err);

static void split_inner(splitter *s, cx_str inner)
{
    if (s->depth + 1 >= CX_SHELL_DEPTH_MAX) {
        stop_at(s, "substitutions nested deeper than 8");
        return;
    }
    cx_shell_line line;
    cx_err err;
    cx_status status = split_at_depth(inner, s, s->arena, &line, &err);
    if (cx_failed(status)) {
        s->no_memory = true;
        return;
    }
    if (line.why != NULL) {
        stop_at(s, line.why);
        return;
    }
    for (size_t i = 0; i < line.count; i++) {
        if (s->count == CX_SHELL_COMMANDS_MAX) {
            stop_at(s, "more than 64 commands");
            return;
        }
        s->commands[s->count++] = line.commands[i];
    }
}

/* --- words ------------------------------------------------------------------------------------ */

static bool ends_word(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == ';' || c == '&' || c == '|' || c == '<' ||
           c == '>' || c == '(' || c == ')' || c == 0;
}

typedef struct word_builder {
    char *bytes; /* as long as what is left of the text */
    size_t size;
    cx_shell_word word;
    bool quoted;
    size_t from;
} word_builder;

static void take_double_quotes(splitter *s, word_builder *w)
{
    s->at++;
    for (;;) {
        char c = char_at(s, 0);
        if (at_end(s)) {
            stop_at(s, "a quote that is not closed");
            return;
        }
        if (c == '"')
            break;
        if (c == '$' && char_at(s, 1) == '\\' && char_at(s, 2) == '\n') {
            stop_at(s, "a $ that the next line continues");
            return;
        }
        if (c == '\\' && memchr("\"\\$`\n", char_at(s, 1), 5) != NULL && char_at(s, 1) != 0) {
            if (char_at(s, 1) != '\n')
                w->bytes[w->size++] = char_at(s, 1);
            s->at += 2;
        } else if (c == '`' || (c == '$' && dollar_expands(s, true))) {
            size_t from = s->at;
            w->word.opaque = true;
            if (c == '$')
                take_dollar(s);
            else
                take_backticks(s);
            if (is_stopped(s))
                return;
            memcpy(w->bytes + w->size, s->text.data + from, s->at - from);
            w->size += s->at - from;
        } else {
            w->bytes[w->size++] = c;
            s->at++;
        }
    }
    s->at++;
}

static void take_single_quotes(splitter *s, word_builder *w)
{
    const char *from = s->text.data + s->at + 1;
    const char *end = memchr(from, '\'', s->text.size - s->at - 1);
    if (end == NULL) {
        stop_at(s, "a quote that is not closed");
        return;
    }
    memcpy(w->bytes + w->size, from, (size_t)(end - from));
    w->size += (size_t)(end - from);
    s->at += (size_t)(end - from) + 2;
}

/* Outside of quotes; before the end of a line it is nothing. */
static void take_backslash(splitter *s, word_builder *w)
{
    if (s->at + 1 >= s->text.size) {
        stop_at(s, "a backslash at the end");
        return;
    }
    if (char_at(s, 1) != '\n') {
        w->bytes[w->size++] = char_at(s, 1);
        w->quoted = true;
    }
    s->at += 2;
}

/* What stands there stays in the word as it is written, and makes it opaque. */
static void take_expansion(splitter *s, word_builder *w)
{
    size_t from = s->at;
    char c = s->text.data[from];
    if (c == '$' && char_at(s, 1) == '\\' && char_at(s, 2) == '\n') {
        stop_at(s, "a $ that the next line continues");
        return;
    }
    if (c == '$' && !dollar_expands(s, false)) {
        w->bytes[w->size++] = c;
        s->at++;
        return;
    }
    w->word.opaque = true;
    if (c == '$')
        take_dollar(s);
    else
        take_backticks(s);
    if (!is_stopped(s)) {
        memcpy(w->bytes + w->size, s->text.data + from, s->at - from);
        w->size += s->at - from;
    }
}

/* A word from here to its end; *out_quoted tells whether any of it was quoted. */
static bool read_word(splitter *s, cx_shell_word *out, bool *out_quoted)
{
    word_builder w = {.from = s->at};
    w.bytes = cx_arena_push(s->arena, s->text.size - s->at + 1, 1);
    if (w.bytes == NULL) {
        s->no_memory = true;
        return false;
    }
    while (!at_end(s) && !is_stopped(s)) {
        char c = s->text.data[s->at];
        if (ends_word(c))
            break;
        switch (c) {
        case '\\': take_backslash(s, &w); break;
        case '\'':
            w.quoted = true;
            take_single_quotes(s, &w);
            break;
        case '"':
            w.quoted = true;
            take_double_quotes(s, &w);
            break;
        case '$':
        case '`': take_expansion(s, &w); break;
        case '*':
        case '?':
        case '[':
            w.word.glob = true;
            w.bytes[w.size++] = c;
            s->at++;
            break;
        case '{':
            if (s->at != w.from || !ends_word(char_at(s, 1)))
                w.word.opaque = true;
            w.bytes[w.size++] = c;
            s->at++;
            break;
        default: w.bytes[w.size++] = c; s->at++;
        }
    }
    if (is_stopped(s))
        return false;
    /* "[" alone is a program's name. */
    if (w.size == 1 && w.bytes[0] == '[')
        w.word.glob = false;
    w.word.text = cx_str_from(w.bytes, w.size);
    if (w.size != 0 && memchr(w.bytes, 0, w.size) != NULL) {
        stop_at(s, "a zero byte");
        return false;
    }
    *out = w.word;
    *out_quoted = w.quoted;
    return true;
}

static void add_word(splitter *s, const cx_shell_word *word)
{
    if (s->word_count == CX_SHELL_WORDS_MAX) {
        stop_at(s, "more than 1024 words");
        return;
    }
    s->words[s->word_count++] = *word;
}

static bool is_assignment(cx_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (c == '=' || (c == '+' && i + 1 < text.size && text.data[i + 1] == '='))
            return i != 0;
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && !(i != 0 && c >= '0' && c <= '9'))
            return false;
    }
    return false;
}

#define ENDING_KEYWORDS 7

/* Words of the shell's grammar where a command begins. */
static bool take_keyword(splitter *s, const cx_shell_word *word)
{
    /* After the first of these something else is or was run than what stands before them. */
    static const char *const skipped[] = {"then", "else",  "elif",  "fi", "do",   "done", "}",
                                          "if",   "while", "until", "!",  "time", "{"};
    static const char *const refused[] = {"case", "esac", "select", "function",
                                          "[[",   "((",   "coproc"};
    for (size_t i = 0; i < CX_COUNT_OF(skipped); i++)
        if (cx_str_is(word->text, skipped[i])) {
            s->loops += cx_str_is(word->text, "while") || cx_str_is(word->text, "until");
            s->loops -= s->loops != 0 && cx_str_is(word->text, "done");
            s->inverted = s->inverted || cx_str_is(word->text, "!");
            s->chain += i < ENDING_KEYWORDS;
            return true;
        }
    for (size_t i = 0; i < CX_COUNT_OF(refused); i++)
        if (cx_str_is(word->text, refused[i])) {
            stop_at(s, "a case, select, function, [[ or coproc");
            return true;
        }
    if (cx_str_is(word->text, "for")) {
        s->in_list = true;
        s->loops++;
        return true;
    }
    return false;
}

static void take_word(splitter *s)
{
    cx_shell_word word;
    bool quoted;
    size_t from = s->at;
    s->joined = false;
    if (!read_word(s, &word, &quoted))
        return;
    bool first = s->word_count == s->first_word;
    /* 2>file */
    if (!quoted && !at_end(s) && (char_at(s, 0) == '<' || char_at(s, 0) == '>') &&
        word.text.size == 1 && word.text.data[0] >= '0' && word.text.data[0] <= '9' &&
        s->at == from + 1)
        return;
    if (first && !quoted && !word.opaque && !s->in_list && take_keyword(s, &word))
        return;
    if (first && !s->in_list && char_at(s, 0) == '(') {
        stop_at(s, "a function");
        return;
    }
    if (first && !s->in_list && is_assignment(word.text)) {
        s->assigns = true;
        return;
    }
    add_word(s, &word);
}

/* --- redirections ----------------------------------------------------------------------------- */

static void skip_blanks(splitter *s)
{
    while (!at_end(s) && (char_at(s, 0) == ' ' || char_at(s, 0) == '\t' ||
                          (char_at(s, 0) == '\\' && char_at(s, 1) == '\n')))
        s->at += char_at(s, 0) == '\\' ? 2 : 1;
}

static void begin_here(splitter *s)
{
    cx_shell_word word;
    bool quoted;
    s->strip_tabs = char_at(s, 0) == '-';
    if (s->strip_tabs)
        s->at++;
    skip_blanks(s);
    if (s->delimiter.data != NULL) {
        stop_at(s, "two here-documents in one line");
        return;
    }
    if (!read_word(s, &word, &quoted))
        return;
    if (word.opaque || word.text.size == 0) {
        stop_at(s, "a here-document without a plain end");
        return;
    }
    s->delimiter = word.text;
    s->delimiter_quoted = quoted;
    s->begins_here = true;
}

/* "1", "12-", "-": of >& and <&; "1/x" is a file's name. */
static bool is_descriptor(cx_str text)
{
    size_t digits = 0;
    while (digits < text.size && text.data[digits] >= '0' && text.data[digits] <= '9')
        digits++;
    return text.size != 0 &&
           (digits == text.size || (digits + 1 == text.size && text.data[digits] == '-'));
}

/* At "<(" or ">(". */
static void take_process(splitter *s)
{
    const cx_shell_word word = {.text = CX_STR("<(..)"), .opaque = true};
    s->at++;
    take_parens(s);
    if (!is_stopped(s))
        add_word(s, &word);
}

/* After "<<<". */
static void take_here_string(splitter *s)
{
    cx_shell_word word;
    bool quoted;
    skip_blanks(s);
    if (read_word(s, &word, &quoted))
        s->input_expands = s->input_expands || word.opaque;
}

/* After the operator: a file's name, or with `descriptors` the number of one.  False when the line
 * is stopped, and for a descriptor. */
static bool read_target(splitter *s, bool descriptors, cx_shell_word *out)
{
    bool quoted;
    skip_blanks(s);
    if (!read_word(s, out, &quoted))
        return false;
    if (descriptors && is_descriptor(out->text))
        return false;
    if (out->text.size == 0)
        stop_at(s, "a redirection to nothing");
    else if (s->redirect_count == CX_SHELL_WORDS_MAX)
        stop_at(s, "more than 1024 redirections");
    return !is_stopped(s);
}

static void take_redirect(splitter *s)
{
    char c = char_at(s, 0), next = char_at(s, 1);
    cx_shell_redirect redirect = {.write = c == '>' || next == '>'};
    if (next == '(') {
        take_process(s);
        return;
    }
    s->at++;
    if (c == '<' && next == '<' && char_at(s, 1) == '<') {
        s->at += 2;
        take_here_string(s);
        return;
    }
    if (c == '<' && next == '<') {
        s->at++;
        begin_here(s);
        return;
    }
    s->at += next == '>' || (c == '>' && next == '|'); /* <> >> >| */
    bool descriptors = char_at(s, 0) == '&';           /* >&2, <&3, >&FILE */
    s->at += descriptors;
    if (read_target(s, descriptors, &redirect.to))
        s->redirects[s->redirect_count++] = redirect;
}

/* A here-document's text, of which shells expand what begins with "$". */
static void take_here_expansions(splitter *s, cx_str body, bool *out_expands)
{
    splitter in = {.arena = s->arena, .text = body};
    *out_expands = false;
    while (!at_end(&in) && !is_stopped(&in)) {
        char c = char_at(&in, 0);
        if (c == '\\') {
            in.at += in.at + 1 < body.size ? 2 : 1;
        } else if (c == '$' && dollar_expands(&in, true)) {
            *out_expands = true;
            take_dollar(&in);
        } else {
            in.at++;
        }
    }
    if (in.why != NULL)
        stop_at(s, in.why);
}

/* At the beginning of the line after a here-document's command. */
static void take_here(splitter *s)
{
    size_t from = s->at;
    while (!at_end(s)) {
        const char *line = s->text.data + s->at;
        const char *end = memchr(line, '\n', s->text.size - s->at);
        size_t size = end == NULL ? s->text.size - s->at : (size_t)(end - line), skip = 0;
        while (s->strip_tabs && skip < size && line[skip] == '\t')
            skip++;
        bool last = cx_str_eq(cx_str_from(line + skip, size - skip), s->delimiter);
        cx_str body = cx_str_from(s->text.data + from, s->at - from);
        s->at += size + (end != NULL);
        if (!last)
            continue;
        s->delimiter = (cx_str){NULL, 0};
        bool expands = false;
        if (!s->delimiter_quoted && body.size != 0 &&
            (memchr(body.data, '`', body.size) != NULL ||
             memmem(body.data, body.size, "$(", 2) != NULL))
            stop_at(s, "a substitution inside of a here-document");
        else if (!s->delimiter_quoted)
            take_here_expansions(s, body, &expands);
        if (s->here_of < s->count) {
            s->commands[s->here_of].here = body;
            s->commands[s->here_of].input_expands |= expands;
        }
        if (!s->delimiter_quoted && body.size != 0 &&
            memmem(body.data, body.size, "\\\n", 2) != NULL) /* joined before the end is found */
            stop_at(s, "a continued line inside of a here-document");
        return;
    }
    stop_at(s, "a here-document without its end");
}

/* --- the line --------------------------------------------------------------------------------- */

static void take_newline(splitter *s)
{
    s->at++;
    if (!s->joined) {
        end_command(s);
        s->chain++;
    }
    if (s->delimiter.data != NULL)
        take_here(s);
}

/* At ";", "&" or "|", once or twice, or "|&". */
static void take_separator(splitter *s)
{
    char c = char_at(s, 0);
    bool doubled = char_at(s, 1) == c;
    end_command(s);
    if (c == '|' && !doubled) {
        s->after_pipe = true;
        if (s->count != 0 && s->commands[s->count - 1].depth == s->depth)
            s->commands[s->count - 1].piped = true;
    } else if (c != '&' || !doubled) {
        s->chain++;
    }
    s->joined = c != ';' && (c == '|' ? !doubled : doubled);
    s->at += doubled || (c == '|' && char_at(s, 1) == '&') ? 2 : 1;
}

static void take_comment(splitter *s)
{
    while (!at_end(s) && char_at(s, 0) != '\n')
        s->at++;
}

/* At "(" of a subshell. */
static void take_subshell(splitter *s)
{
    if (s->word_count != s->first_word) {
        stop_at(s, "a parenthesis inside of a command");
        return;
    }
    s->joined = false;
    take_parens(s);
}

static void take_next(splitter *s)
{
    char c = char_at(s, 0);
    bool word_begins = s->at == 0 || ends_word(s->text.data[s->at - 1]);
    if (c == ' ' || c == '\t' || (c == '\\' && char_at(s, 1) == '\n')) {
        s->at += c == '\\' ? 2 : 1;
    } else if (c == '\n') {
        take_newline(s);
    } else if (c == '#' && word_begins) {
        take_comment(s);
    } else if (c == '&' && char_at(s, 1) == '>') {
        /* For bash a redirection; for sh the end of a command, and another one after it. */
        stop_at(s, "'&>' means something else to each shell; write '> FILE 2>&1'");
    } else if (c == ';' || c == '&' || c == '|') {
        take_separator(s);
    } else if (c == '(') {
        take_subshell(s);
    } else if (c == ')') {
        stop_at(s, "a parenthesis that was not opened");
    } else if (c == '<' || c == '>') {
        s->joined = false;
        take_redirect(s);
    } else if (c == 0) {
        stop_at(s, "a zero byte");
    } else {
        take_word(s);
    }
}

static void split_text(splitter *s)
{
    while (!at_end(s) && !is_stopped(s))
        take_next(s);
    if (is_stopped(s))
        return;
    if (s->delimiter.data != NULL)
        stop_at(s, "a here-document without its end");
    else
        end_command(s);
}

static cx_status split_at_depth(cx_str text, const splitter *outer, cx_arena *arena,
                                cx_shell_line *out, cx_err *err)
{
    unsigned shell_count = 1;
    splitter s = {.arena = arena, .text = text, .shell_count = &shell_count};
    memset(out, 0, sizeof *out);
    if (outer != NULL) {
        s.depth = outer->depth + 1;
        s.shell_count = outer->shell_count;
        memcpy(s.shells, outer->shells, sizeof s.shells);
        memcpy(s.chains, outer->chains, sizeof s.chains);
        s.chains[outer->depth] = outer->chain;
        s.shells[s.depth] = (*s.shell_count)++;
    }
    s.commands = CX_ARENA_ARRAY(arena, cx_shell_command, CX_SHELL_COMMANDS_MAX);
    s.words = CX_ARENA_ARRAY(arena, cx_shell_word, CX_SHELL_WORDS_MAX);
    s.redirects = CX_ARENA_ARRAY(arena, cx_shell_redirect, CX_SHELL_WORDS_MAX);
    if (s.commands == NULL || s.words == NULL || s.redirects == NULL)
        return cx_fail_nomem(err);
    split_text(&s);
    if (s.no_memory)
        return cx_fail_nomem(err);
    out->commands = s.commands;
    out->count = s.count;
    out->why = s.why;
    out->offset = s.why_at;
    return CX_SUCCESS;
}

cx_status cx_shell_split(cx_str text, cx_arena *arena, cx_shell_line *out, cx_err *err)
{
    if (text.size <= CX_SHELL_BYTES_MAX)
        return split_at_depth(text, NULL, arena, out, err);
    memset(out, 0, sizeof *out);
    out->why = "a text longer than 64 KiB";
    out->offset = CX_SHELL_BYTES_MAX;
    return CX_SUCCESS;
}

/* --- quoting --------------------------------------------------------------------------------- */

/* As the first word of a line: it would set a variable, or begin a loop. */
static bool means_more(cx_str word)
{
    static const char *const reserved[] = {"if",    "then",     "else",   "elif", "fi",    "for",
                                           "while", "until",    "do",     "done", "case",  "esac",
                                           "in",    "function", "select", "time", "coproc"};
    for (size_t i = 0; i < CX_COUNT_OF(reserved); i++)
        if (cx_str_is(word, reserved[i]))
            return true;
    return word.size != 0 && memchr(word.data, '=', word.size) != NULL;
}

void cx_shell_add_word(cx_buf *out, cx_str word)
{
    bool plain = word.size != 0 && (out->size != 0 || !means_more(word));
    if (out->size != 0)
        cx_buf_add_z(out, " ");
    for (size_t i = 0; i < word.size && plain; i++) {
        char c = word.data[i];
        plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                strchr("-_./:=@%+,", c) != NULL;
    }
    if (plain) {
        cx_buf_add_str(out, word);
        return;
    }
    cx_buf_add_sh_quoted(out, word);
}
