/*
 * codex_config.c - removes the MCP servers from a config.toml (codex_home.h I2).
 *
 * Statements are located, not interpreted: a header, or a key and its value, with everything
 * between brackets and quotes.  The rest is copied byte for byte, so no reader can understand it
 * differently than before; text that is not TOML 1.0 is rejected, so that no other reader finds a
 * header where this one saw a value.
 */
#include "base/api.h"
#include "agent/codex_home.h"

#define SERVERS "mcp_servers"

typedef struct config_reader {
    cx_str text;
    size_t at;
    cx_arena *arena; /* of decoded keys and strings */
    cx_codex_secret *secret;
    void *arg;
    CX_VEC(cx_str) servers;
    cx_err *err;
} config_reader;

/* A key such as a."b".c: the parts that the filter needs. */
typedef struct toml_key {
    cx_str first, second, last;
    size_t count;
} toml_key;

static cx_status fail_config(const config_reader *r, const char *what)
{
    size_t line = 1;
    for (size_t i = 0; i < r->at && i < r->text.size; i++)
        line += r->text.data[i] == '\n';
    return cx_fail(r->err, CX_E_FORMAT, "line %zu: %s", line, what);
}

static int peek(const config_reader *r)
{
    return r->at < r->text.size ? (uint8_t)r->text.data[r->at] : -1;
}

static bool starts_with(const config_reader *r, const char *with)
{
    size_t size = strlen(with);
    return r->text.size - r->at >= size && memcmp(r->text.data + r->at, with, size) == 0;
}

static void skip_blanks(config_reader *r)
{
    while (peek(r) == ' ' || peek(r) == '\t')
        r->at++;
}

static void skip_comment(config_reader *r)
{
    if (peek(r) == '#')
        while (peek(r) != -1 && peek(r) != '\n')
            r->at++;
}

/* Requires UTF-8 without control characters except tab and line ends, which also checks strings and
 * comments. */
static cx_status check_characters(config_reader *r)
{
    r->at = cx_utf8_valid_prefix(r->text);
    if (r->at != r->text.size)
        return fail_config(r, "not UTF-8");
    for (r->at = 0; r->at < r->text.size; r->at++) {
        int c = peek(r);
        bool line_end = c == '\r' && starts_with(r, "\r\n");
        if ((c < 0x20 && c != '\t' && c != '\n' && !line_end) || c == 0x7F)
            return fail_config(r, "a control character");
    }
    r->at = 0;
    return starts_with(r, "\xEF\xBB\xBF") ? fail_config(r, "a byte order mark") : CX_SUCCESS;
}

/* --- strings ---------------------------------------------------------------------------------- */

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

static cx_status read_unicode_escape(config_reader *r, size_t digits, cx_buf *out)
{
    uint32_t code = 0;
    uint8_t bytes[4];
    if (r->text.size - r->at < digits)
        return fail_config(r, "an escape that ends too early");
    for (size_t i = 0; i < digits; i++) {
        int digit = hex_value(r->text.data[r->at++]);
        if (digit < 0 || code > 0xFFFFFFF)
            return fail_config(r, "an escape without its hexadecimal digits");
        code = code * 16 + (uint32_t)digit;
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        return fail_config(r, "an escape of an invalid character");
    cx_buf_add(out, bytes, cx_utf8_encode(code, bytes));
    return CX_SUCCESS;
}

/* The escape after a backslash. */
static cx_status read_escape(config_reader *r, bool multi, cx_buf *out)
{
    static const char names[] = "btnfr\"\\", meant[] = "\b\t\n\f\r\"\\";
    int c = peek(r);
    const char *found = c <= 0 ? NULL : strchr(names, c);
    if (found != NULL) {
        r->at++;
        cx_buf_add_byte(out, (uint8_t)meant[found - names]);
        return CX_SUCCESS;
    }
    if (c == 'u' || c == 'U') {
        r->at++;
        return read_unicode_escape(r, c == 'u' ? 4 : 8, out);
    }
    /* At the end of a line: white space up to the next character is not part of the string. */
    size_t from = r->at;
    skip_blanks(r);
    if (!multi || !(starts_with(r, "\n") || starts_with(r, "\r\n"))) {
        r->at = from;
        return fail_config(r, "an escape that TOML does not have");
    }
    while (peek(r) == ' ' || peek(r) == '\t' || peek(r) == '\r' || peek(r) == '\n')
        r->at++;
    return CX_SUCCESS;
}

/* Whether `mark` closes the string; up to two more quotes may precede a mark of three. */
static bool at_string_end(config_reader *r, const char *mark, cx_buf *out)
{
    size_t size = strlen(mark);
    if (!starts_with(r, mark))
        return false;
    r->at += size;
    for (int i = 0; size == 3 && i < 2 && peek(r) == mark[0]; i++) {
        r->at++;
        cx_buf_add_byte(out, (uint8_t)mark[0]);
    }
    return true;
}

static cx_status read_string_body(config_reader *r, const char *mark, cx_buf *out)
{
    bool multi = mark[1] != '\0', literal = mark[0] == '\'';
    while (!at_string_end(r, mark, out)) {
        int c = peek(r);
        if (c == -1 || (!multi && (c == '\n' || c == '\r')))
            return fail_config(r, "a string without an end");
        r->at++;
        if (c == '\\' && !literal)
            CX_TRY(read_escape(r, multi, out));
        else
            cx_buf_add_byte(out, (uint8_t)c);
    }
    return CX_SUCCESS;
}

static cx_status read_string(config_reader *r, bool may_be_multi, cx_str *out)
{
    static const char *const marks[] = {"\"\"\"", "'''", "\"", "'"};
    const char *mark = NULL;
    cx_buf text;
    for (size_t i = may_be_multi ? 0 : 2; i < CX_COUNT_OF(marks) && mark == NULL; i++)
        if (starts_with(r, marks[i]))
            mark = marks[i];
    if (mark == NULL)
        return fail_config(r, "expected a string");
    cx_buf_init(&text, r->arena->alloc);
    r->at += strlen(mark);
    cx_status status = read_string_body(r, mark, &text);
    if (!cx_failed(status))
        status = cx_buf_check(&text, r->err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(r->arena, cx_buf_str(&text));
        if (out->data == NULL)
            status = cx_fail_nomem(r->err);
    }
    cx_buf_done(&text);
    return status;
}

/* --- keys ------------------------------------------------------------------------------------- */

static bool is_bare_key_byte(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static cx_status read_key(config_reader *r, toml_key *out)
{
    *out = (toml_key){0};
    while (true) {
        cx_str part;
        skip_blanks(r);
        size_t from = r->at;
        if (peek(r) == '"' || peek(r) == '\'') {
            CX_TRY(read_string(r, false, &part));
        } else {
            while (is_bare_key_byte(peek(r)))
                r->at++;
            part = (cx_str){r->text.data + from, r->at - from};
            if (part.size == 0)
                return fail_config(r, "expected a key");
        }
        out->count++;
        out->last = part;
        if (out->count == 1)
            out->first = part;
        else if (out->count == 2)
            out->second = part;
        skip_blanks(r);
        if (peek(r) != '.')
            return CX_SUCCESS;
        r->at++;
    }
}

static cx_status record_server(config_reader *r, cx_str name)
{
    for (size_t i = 0; i < r->servers.count; i++)
        if (cx_str_eq(r->servers.items[i], name))
            return CX_SUCCESS;
    if (r->servers.count == CX_CODEX_FILES_MAX)
        return fail_config(r, "too many MCP servers");
    cx_str copy = cx_arena_copy_str(r->arena, name);
    cx_str *slot = copy.data == NULL ? NULL : cx_vec_push(&r->servers, r->arena->alloc);
    if (slot == NULL)
        return cx_fail_nomem(r->err);
    *slot = copy;
    return CX_SUCCESS;
}

/* --- values ----------------------------------------------------------------------------------- */

/* The keys and nesting around a value. */
typedef struct value_context {
    unsigned depth;
    bool secret;  /* under a key that names a secret */
    bool servers; /* in mcp_servers itself: its keys are names of servers */
} value_context;

static cx_status read_value(config_reader *r, value_context where);

/* White space in arrays: includes line ends and comments. */
static void skip_space(config_reader *r)
{
    size_t before;
    do {
        before = r->at;
        skip_blanks(r);
        skip_comment(r);
        if (starts_with(r, "\r\n"))
            r->at += 2;
        else if (peek(r) == '\n')
            r->at++;
    } while (r->at != before);
}

static cx_status read_array(config_reader *r, value_context where)
{
    r->at++;
    while (true) {
        skip_space(r);
        if (peek(r) == ']')
            break;
        CX_TRY(read_value(r, where));
        skip_space(r);
        if (peek(r) == ']')
            break;
        if (peek(r) != ',')
            return fail_config(r, "expected ',' or ']' in an array");
        r->at++;
    }
    r->at++;
    return CX_SUCCESS;
}

static cx_status read_inline_pair(config_reader *r, value_context where)
{
    toml_key key;
    CX_TRY(read_key(r, &key));
    if (where.servers)
        CX_TRY(record_server(r, key.first));
    where.servers = false;
    where.secret |= cx_run_mask_name(key.last);
    if (peek(r) != '=')
        return fail_config(r, "expected '='");
    r->at++;
    skip_blanks(r);
    return read_value(r, where);
}

static cx_status read_inline_table(config_reader *r, value_context where)
{
    r->at++;
    skip_blanks(r);
    if (peek(r) == '}') {
        r->at++;
        return CX_SUCCESS;
    }
    while (true) {
        CX_TRY(read_inline_pair(r, where));
        skip_blanks(r);
        int c = peek(r);
        if (c != ',' && c != '}')
            return fail_config(r, "expected ',' or '}' in an inline table");
        r->at++;
        if (c == '}')
            return CX_SUCCESS;
    }
}

static bool is_scalar_byte(int c)
{
    return is_bare_key_byte(c) || c == '+' || c == '.' || c == ':';
}

/* Finds the end of a number, date, true or false. */
static cx_status read_scalar(config_reader *r)
{
    static const char *const words[] = {"true", "false", "inf", "nan"};
    size_t from = r->at;
    while (is_scalar_byte(peek(r)))
        r->at++;
    cx_str text = {r->text.data + from, r->at - from};
    bool known = text.size != 0 && strchr("+-0123456789", text.data[0]) != NULL;
    for (size_t i = 0; i < CX_COUNT_OF(words); i++)
        known |= cx_str_is(text, words[i]);
    if (!known)
        return fail_config(r, "expected a value");
    /* "1979-05-27 07:32:00" */
    if (text.size == 10 && text.data[4] == '-' && text.data[7] == '-' && peek(r) == ' ' &&
        r->at + 1 < r->text.size && r->text.data[r->at + 1] >= '0' &&
        r->text.data[r->at + 1] <= '9')
        for (r->at++; is_scalar_byte(peek(r));)
            r->at++;
    return CX_SUCCESS;
}

static cx_status read_value(config_reader *r, value_context where)
{
    int c = peek(r);
    if (++where.depth > CX_CODEX_TOML_DEPTH_MAX)
        return fail_config(r, "values nested too deeply");
    if (c == '[')
        return read_array(r, where);
    if (c == '{')
        return read_inline_table(r, where);
    if (c != '"' && c != '\'')
        return read_scalar(r);
    cx_str text;
    CX_TRY(read_string(r, true, &text));
    return where.secret && r->secret != NULL ? r->secret(r->arg, text, r->err) : CX_SUCCESS;
}

/* --- statements ------------------------------------------------------------------------------- */

/* The table that the next statements belong to. */
typedef struct table_state {
    bool top;     /* no header yet */
    bool dropped; /* mcp_servers, or below it */
    bool servers; /* [mcp_servers] itself */
    bool secret;
} table_state;

static cx_status read_header(config_reader *r, table_state *t)
{
    toml_key key;
    bool many = starts_with(r, "[[");
    r->at += many ? 2 : 1;
    CX_TRY(read_key(r, &key));
    if (!starts_with(r, many ? "]]" : "]"))
        return fail_config(r, "a table's header without its end");
    r->at += many ? 2 : 1;
    bool dropped = cx_str_is(key.first, SERVERS);
    *t = (table_state){.dropped = dropped,
                       .servers = dropped && key.count == 1,
                       .secret = cx_run_mask_name(key.last)};
    return dropped && key.count > 1 ? record_server(r, key.second) : CX_SUCCESS;
}

static cx_status read_setting(config_reader *r, const table_state *t, bool *out_dropped)
{
    toml_key key;
    size_t from = r->at;
    CX_TRY(read_key(r, &key));
    r->at = from; /* parse the statement again, with its value */
    bool servers = t->top && cx_str_is(key.first, SERVERS);
    *out_dropped = t->dropped || servers;
    if (servers && key.count > 1)
        CX_TRY(record_server(r, key.second));
    if (t->servers)
        CX_TRY(record_server(r, key.first));
    if (servers && key.count == 1) {
        CX_TRY(read_key(r, &key));
        if (peek(r) != '=')
            return fail_config(r, "expected '='");
        r->at++;
        skip_blanks(r);
        return read_value(r, (value_context){.servers = true});
    }
    return read_inline_pair(r, (value_context){.secret = t->secret});
}

static cx_status expect_line_end(config_reader *r)
{
    skip_blanks(r);
    skip_comment(r);
    if (starts_with(r, "\r\n"))
        r->at++;
    if (peek(r) == -1)
        return CX_SUCCESS;
    if (peek(r) != '\n')
        return fail_config(r, "expected the end of the line");
    r->at++;
    return CX_SUCCESS;
}

static cx_status filter_statements(config_reader *r, cx_buf *out)
{
    table_state t = {.top = true};
    CX_TRY(check_characters(r));
    while (r->at < r->text.size) {
        size_t from = r->at;
        skip_blanks(r);
        int c = peek(r);
        bool empty = c == -1 || c == '#' || c == '\n' || c == '\r', dropped = t.dropped;
        if (c == '[') {
            CX_TRY(read_header(r, &t));
            dropped = t.dropped;
        } else if (!empty) {
            CX_TRY(read_setting(r, &t, &dropped));
        }
        CX_TRY(expect_line_end(r));
        if (!dropped)
            cx_buf_add(out, r->text.data + from, r->at - from);
    }
    return cx_buf_check(out, r->err);
}

cx_status cx_codex_config_filter(cx_str config, cx_codex_secret *secret, void *arg, cx_arena *arena,
                                 cx_json_list *removed, cx_buf *out, cx_err *err)
{
    CX_ASSERT(removed != NULL && out != NULL);
    config_reader r = {.text = config, .arena = arena, .secret = secret, .arg = arg, .err = err};
    if (config.size > CX_CODEX_CONFIG_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "longer than %d bytes", (int)CX_CODEX_CONFIG_BYTES_MAX);
    cx_status status = filter_statements(&r, out);
    for (size_t i = 0; i < r.servers.count && !cx_failed(status); i++)
        cx_json_list_add(removed, cx_json_make_str(r.servers.items[i]));
    cx_vec_done(&r.servers, arena->alloc);
    return status;
}
