/*
 * settings.c - parser of settings files.
 */
#include "os/settings.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/api.h"

typedef struct reader {
    cx_str text;
    size_t at;
    cx_arena *arena;
    cx_setting *items;
    size_t count;
    cx_str section;
    cx_str sections[CX_SETTINGS_MAX]; /* headers seen */
    size_t section_count;
    cx_err *err;
} reader;

/* --- errors ----------------------------------------------------------------------------------- */

static void locate_offset(const reader *r, size_t at, unsigned *out_line, unsigned *out_column)
{
    *out_line = *out_column = 1;
    for (size_t i = 0; i < at; i++) {
        ++*out_column;
        if (r->text.data[i] == '\n') {
            ++*out_line;
            *out_column = 1;
        }
    }
}

static cx_status syntax_error(const reader *r, size_t at, const char *format, ...) CX_PRINTF(3, 4);
static cx_status syntax_error(const reader *r, size_t at, const char *format, ...)
{
    char text[200];
    unsigned line, column;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    locate_offset(r, at, &line, &column);
    return cx_fail_at(r->err, CX_E_FORMAT, "Settings", at, "line %u, column %u: %s", line, column,
                      text);
}

static int peek_byte(const reader *r)
{
    return r->at < r->text.size ? (unsigned char)r->text.data[r->at] : -1;
}

/* What is at the current position, for a message. */
static const char *describe_found(const reader *r, char out[24])
{
    int c = peek_byte(r);
    if (c == -1)
        return "the end of the file";
    if (c == '\n' || c == '\r')
        return "the end of the line";
    if (c < 0x20 || c >= 0x7f)
        (void)snprintf(out, 24, "byte 0x%02x", (unsigned)c);
    else
        (void)snprintf(out, 24, "'%c'", c);
    return out;
}

static cx_status expected_error(const reader *r, const char *what)
{
    char text[24];
    return syntax_error(r, r->at, "found %s, expected %s", describe_found(r, text), what);
}

/* --- blanks, comments, line ends -------------------------------------------------------------- */

static void skip_blanks(reader *r)
{
    while (peek_byte(r) == ' ' || peek_byte(r) == '\t')
        r->at++;
}

static void skip_comment(reader *r)
{
    if (peek_byte(r) == '#')
        while (peek_byte(r) != -1 && peek_byte(r) != '\n')
            r->at++;
}

/* A line's end: blanks, a comment, CR LF or LF, or the end of the file. */
static cx_status end_line(reader *r)
{
    skip_blanks(r);
    skip_comment(r);
    if (peek_byte(r) == '\r')
        r->at++;
    if (peek_byte(r) != -1 && peek_byte(r) != '\n')
        return expected_error(r, "the end of the line");
    r->at += peek_byte(r) == '\n';
    return CX_SUCCESS;
}

static void skip_lines(reader *r)
{
    for (;;) {
        skip_blanks(r);
        skip_comment(r);
        if (peek_byte(r) == '\r' && r->at + 1 < r->text.size && r->text.data[r->at + 1] == '\n')
            r->at++;
        if (peek_byte(r) != '\n')
            return;
        r->at++;
    }
}

/* --- names ------------------------------------------------------------------------------------ */

static bool is_name(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static cx_status read_name(reader *r, const char *what, cx_str *out)
{
    size_t start = r->at;
    while (is_name(peek_byte(r)))
        r->at++;
    if (r->at == start)
        return expected_error(r, what);
    if (r->at - start > CX_SETTING_NAME_MAX)
        return syntax_error(r, start, "a name may have %d bytes", CX_SETTING_NAME_MAX);
    *out = cx_str_from(r->text.data + start, r->at - start);
    return CX_SUCCESS;
}

static cx_status read_header(reader *r)
{
    size_t start = r->at++;
    skip_blanks(r);
    CX_TRY(read_name(r, "the name of a section, of letters, digits, '-' and '_'", &r->section));
    skip_blanks(r);
    if (peek_byte(r) != ']')
        return expected_error(r, "']'");
    r->at++;
    for (size_t i = 0; i < r->section_count; i++)
        if (cx_str_eq(r->sections[i], r->section))
            return syntax_error(r, start, "the section [%.*s] comes twice", (int)r->section.size,
                                r->section.data);
    if (r->section_count == CX_SETTINGS_MAX)
        return syntax_error(r, start, "more than %d sections", CX_SETTINGS_MAX);
    r->sections[r->section_count++] = r->section;
    return end_line(r);
}

/* --- values ----------------------------------------------------------------------------------- */

static int hex_of(int c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static cx_status read_code(reader *r, size_t digits, cx_buf *out)
{
    uint8_t bytes[4];
    uint32_t code = 0;
    size_t start = r->at;
    for (size_t i = 0; i < digits; i++, r->at++) {
        if (hex_of(peek_byte(r)) < 0)
            return expected_error(r, "a hex digit");
        code = code * 16 + (uint32_t)hex_of(peek_byte(r));
    }
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return syntax_error(r, start, "this is no character that a text may hold");
    cx_buf_add(out, bytes, cx_utf8_encode(code, bytes));
    return CX_SUCCESS;
}

static cx_status read_escape(reader *r, cx_buf *out)
{
    static const char names[] = "btnfr\"\\", meant[] = "\b\t\n\f\r\"\\";
    int c = peek_byte(r);
    const char *at = c <= 0 ? NULL : strchr(names, c);
    if (at != NULL) {
        cx_buf_add_byte(out, (uint8_t)meant[at - names]);
        r->at++;
        return CX_SUCCESS;
    }
    if (c != 'u' && c != 'U')
        return expected_error(r, "an escape: \\b \\t \\n \\f \\r \\\" \\\\ \\uXXXX \\UXXXXXXXX");
    r->at++;
    return read_code(r, c == 'u' ? 4 : 8, out);
}

static cx_status read_body(reader *r, int quote, cx_buf *out)
{
    for (;;) {
        int c = peek_byte(r);
        if (c == quote)
            break;
        if (c == -1 || (c < 0x20 && c != '\t') || c == 0x7f)
            return expected_error(r, quote == '"' ? "the closing '\"'" : "the closing \"'\"");
        r->at++;
        if (c == '\\' && quote == '"')
            CX_TRY(read_escape(r, out));
        else
            cx_buf_add_byte(out, (uint8_t)c);
    }
    r->at++;
    return cx_buf_check(out, r->err);
}

static cx_status read_text(reader *r, const char **out)
{
    int quote = peek_byte(r);
    cx_buf body;
    if (quote != '"' && quote != '\'')
        return expected_error(r, "a text in quotes");
    r->at++;
    cx_buf_init(&body, r->arena->alloc);
    cx_status status = read_body(r, quote, &body);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(r->arena, cx_buf_str(&body)).data;
        status = *out == NULL ? cx_fail_nomem(r->err) : CX_SUCCESS;
    }
    cx_buf_done(&body);
    return status;
}

static cx_status read_texts(reader *r, cx_setting *setting)
{
    const char **items = CX_ARENA_ARRAY(r->arena, const char *, CX_SETTING_TEXTS_MAX);
    if (items == NULL)
        return cx_fail_nomem(r->err);
    setting->kind = CX_SETTING_TEXTS;
    setting->values = items;
    setting->value_count = 0;
    r->at++;
    for (;;) {
        skip_lines(r);
        if (peek_byte(r) == ']')
            break;
        if (setting->value_count == CX_SETTING_TEXTS_MAX)
            return syntax_error(r, r->at, "more than %d texts", CX_SETTING_TEXTS_MAX);
        CX_TRY(read_text(r, &items[setting->value_count]));
        setting->value_count++;
        skip_lines(r);
        if (peek_byte(r) == ',')
            r->at++;
        else if (peek_byte(r) != ']')
            return expected_error(r, "',' or ']'");
    }
    r->at++;
    return CX_SUCCESS;
}

/* A number, true or false. */
static cx_status read_word(reader *r, cx_setting *setting, const char **value)
{
    size_t start = r->at;
    while (is_name(peek_byte(r)))
        r->at++;
    cx_str word = cx_str_from(r->text.data + start, r->at - start);
    bool flag = cx_str_is(word, "true") || cx_str_is(word, "false");
    bool number = word.size != 0 && word.size <= 19 && (word.size == 1 || word.data[0] != '0');
    for (size_t i = 0; number && i < word.size; i++)
        number = word.data[i] >= '0' && word.data[i] <= '9';
    if (!flag && !number) {
        r->at = start;
        return expected_error(r,
                              "a text in quotes, a whole number, true, false, or a list of texts");
    }
    setting->kind = flag ? CX_SETTING_FLAG : CX_SETTING_NUMBER;
    *value = cx_arena_copy_str(r->arena, word).data;
    return *value == NULL ? cx_fail_nomem(r->err) : CX_SUCCESS;
}

static cx_status read_value(reader *r, cx_setting *setting)
{
    const char **value = CX_ARENA_NEW(r->arena, const char *);
    if (value == NULL)
        return cx_fail_nomem(r->err);
    setting->values = value;
    setting->value_count = 1;
    if (peek_byte(r) == '[')
        return read_texts(r, setting);
    if (peek_byte(r) != '"' && peek_byte(r) != '\'')
        return read_word(r, setting, value);
    setting->kind = CX_SETTING_TEXT;
    return read_text(r, value);
}

static cx_status read_setting(reader *r)
{
    cx_setting setting = {.section = r->section};
    size_t start = r->at;
    locate_offset(r, start, &setting.line, &setting.column);
    CX_TRY(read_name(r, "a setting or a [section]", &setting.name));
    for (size_t i = 0; i < r->count; i++)
        if (cx_str_eq(r->items[i].section, setting.section) &&
            cx_str_eq(r->items[i].name, setting.name))
            return syntax_error(r, start, "'%.*s' comes twice; first in line %u",
                                (int)setting.name.size, setting.name.data, r->items[i].line);
    if (r->count == CX_SETTINGS_MAX)
        return syntax_error(r, start, "more than %d settings", CX_SETTINGS_MAX);
    skip_blanks(r);
    if (peek_byte(r) != '=')
        return expected_error(r, "'='");
    r->at++;
    skip_blanks(r);
    CX_TRY(read_value(r, &setting));
    r->items[r->count++] = setting;
    return end_line(r);
}

cx_status cx_settings_read(cx_str text, cx_arena *arena, const cx_setting **out, size_t *out_count,
                           cx_err *err)
{
    reader *r = CX_ARENA_NEW(arena, reader);
    if (r == NULL)
        return cx_fail_nomem(err);
    *r = (reader){.text = text, .arena = arena, .err = err, .section = CX_STR("")};
    r->items = CX_ARENA_ARRAY(arena, cx_setting, CX_SETTINGS_MAX);
    if (r->items == NULL)
        return cx_fail_nomem(err);
    if (text.size > CX_SETTINGS_BYTES_MAX)
        return syntax_error(r, 0, "the file has more than %zu bytes", CX_SETTINGS_BYTES_MAX);
    size_t good = cx_utf8_valid_prefix(text);
    if (good != text.size)
        return syntax_error(r, good, "this is not UTF-8");
    for (skip_lines(r); peek_byte(r) != -1; skip_lines(r))
        CX_TRY(peek_byte(r) == '[' ? read_header(r) : read_setting(r));
    *out = r->items;
    *out_count = r->count;
    return CX_SUCCESS;
}
