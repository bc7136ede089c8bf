/*
 * wrap_toml.c - servers in TOML: tables [mcp_servers.NAME] with one line a member (Codex).
 *
 * The text is only taken apart as far as that needs: tables, keys, and where a value ends.  Servers
 * in inline tables or dotted keys are not found (R3).
 */
#include <string.h>

#include "base/api.h"
#include "gateway/wrap.h"

typedef cx_status (*entry_taker)(void *arg, const cx_gateway_wrap_entry *entry, cx_err *err);

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* White space, line feeds too, and comments. */
static size_t skip_blank(cx_str text, size_t at)
{
    while (at < text.size && (is_blank(text.data[at]) || text.data[at] == '#')) {
        if (text.data[at] == '#')
            while (at < text.size && text.data[at] != '\n')
                at++;
        else
            at++;
    }
    return at;
}

/* After a string of one of the four kinds that begins at `at`. */
static size_t skip_string(cx_str text, size_t at)
{
    char quote = text.data[at];
    const char triple[] = {quote, quote, quote};
    bool many = text.size - at >= 3 && memcmp(text.data + at, triple, 3) == 0;
    for (at += many ? 3 : 1; at < text.size; at++) {
        if (quote == '"' && text.data[at] == '\\') {
            at++;
        } else if (text.data[at] == quote) {
            if (!many)
                return at + 1;
            if (text.size - at >= 3 && memcmp(text.data + at, triple, 3) == 0) {
                for (at += 3; at < text.size && text.data[at] == quote;)
                    at++;
                return at;
            }
        } else if (!many && text.data[at] == '\n') {
            return at;
        }
    }
    return text.size;
}

/* After the value that begins at `at`, without white space and comments after it. */
static size_t skip_value(cx_str text, size_t at)
{
    size_t depth = 0, end = at;
    while (at < text.size) {
        char c = text.data[at];
        if (c == '"' || c == '\'') {
            end = at = skip_string(text, at);
            continue;
        }
        if (c == '#') {
            while (at < text.size && text.data[at] != '\n')
                at++;
            continue;
        }
        if (depth == 0 && (c == '\n' || c == ',' || c == ']' || c == '}'))
            return end;
        depth += c == '[' || c == '{';
        at++;
        if (!is_blank(c))
            end = at;
        if ((c == ']' || c == '}') && --depth == 0)
            return at;
    }
    return end;
}

static cx_str decode(cx_str spelled, cx_arena *arena)
{
    cx_json value;
    cx_err ignored;
    size_t size = spelled.size;
    if (size >= 2 && spelled.data[0] == '\'' && spelled.data[size - 1] == '\'') {
        cx_str inner = cx_str_from(spelled.data + 1, size - 2);
        bool plain = memchr(inner.data, '\'', inner.size) == NULL &&
                     memchr(inner.data, '\n', inner.size) == NULL;
        return plain ? inner : (cx_str){NULL, 0};
    }
    /* Of basic strings those that JSON has, too. */
    if (cx_failed(cx_json_parse_text(spelled, arena, &value, &ignored)) ||
        value.type != CX_JSON_STRING)
        return (cx_str){NULL, 0};
    return cx_json_text(&value);
}

static bool next_item(cx_str array, size_t *offset, cx_str *out_item)
{
    size_t at = *offset == 0 ? 1 : *offset;
    if (array.size < 2 || array.data[0] != '[')
        return false;
    at = skip_blank(array, at);
    if (*offset != 0 && at < array.size && array.data[at] == ',')
        at = skip_blank(array, at + 1);
    if (at >= array.size || array.data[at] == ']')
        return false;
    size_t end = skip_value(array, at);
    if (end <= at)
        return false;
    *out_item = cx_str_from(array.data + at, end - at);
    *offset = end;
    return true;
}

/* The parts of a dotted key up to `close`; the count of them, 0 for what is none. */
static size_t read_key(cx_str text, size_t *at, cx_str *parts, size_t max, cx_arena *arena)
{
    size_t count = 0;
    while (count < max) {
        while (*at < text.size && (text.data[*at] == ' ' || text.data[*at] == '\t'))
            ++*at;
        size_t begin = *at;
        if (begin >= text.size)
            return 0;
        if (text.data[begin] == '"' || text.data[begin] == '\'') {
            *at = skip_string(text, begin);
            parts[count] = decode(cx_str_from(text.data + begin, *at - begin), arena);
        } else {
            while (*at < text.size && strchr(" \t.=]\n\r#", text.data[*at]) == NULL)
                ++*at;
            parts[count] = cx_str_from(text.data + begin, *at - begin);
        }
        if (parts[count].data == NULL || *at == begin)
            return 0;
        count++;
        while (*at < text.size && (text.data[*at] == ' ' || text.data[*at] == '\t'))
            ++*at;
        if (*at >= text.size || text.data[*at] != '.')
            return count;
        ++*at;
    }
    return 0;
}

static void read_member(cx_gateway_wrap_entry *entry, cx_str spelled, cx_str value)
{
    cx_str *place = cx_str_is(spelled, "command") ? &entry->command
                    : cx_str_is(spelled, "args")  ? &entry->args
                    : cx_str_is(spelled, "url")   ? &entry->url
                                                  : NULL;
    if (place != NULL) {
        entry->is_odd |= place->data != NULL || value.size == 0;
        *place = value;
    }
    if (place == &entry->url)
        entry->url_name = spelled;
    if (cx_str_starts(spelled, CX_STR("bearer_token")) ||
        cx_str_starts(spelled, CX_STR("http_headers")) ||
        cx_str_starts(spelled, CX_STR("env_http_headers")))
        entry->has_secrets = true;
}

/* "[a.b]": whether it is a server's table, whose name is then set. */
static size_t read_table(cx_str text, size_t at, cx_gateway_wrap_entry *entry, bool *out_server,
                         cx_arena *arena)
{
    cx_str parts[4];
    size_t key = at + 1;
    size_t count = read_key(text, &key, parts, CX_COUNT_OF(parts), arena);
    *out_server = count == 2 && cx_str_is(parts[0], "mcp_servers") && key < text.size &&
                  text.data[key] == ']';
    /* Tables below a server's, such as its headers, are of it. */
    if (count > 2 && cx_str_is(parts[0], "mcp_servers") && cx_str_eq(parts[1], entry->name) &&
        cx_str_starts(parts[2], CX_STR("http_headers")))
        entry->has_secrets = true;
    if (*out_server)
        *entry = (cx_gateway_wrap_entry){.name = parts[1]};
    while (at < text.size && text.data[at] != '\n')
        at++;
    return at;
}

typedef struct reading {
    cx_gateway_wrap_entry entry;
    bool has_entry, in_server;
} reading;

/* One table's head or one member; false at the end, or when it cannot go on. */
static bool read_step(cx_str text, size_t *at, reading *r, bool *out_done, cx_arena *arena)
{
    cx_str part;
    bool server;
    *out_done = false;
    size_t begin = *at = skip_blank(text, *at);
    if (begin >= text.size)
        return false;
    if (text.data[begin] == '[') {
        cx_gateway_wrap_entry before = r->entry;
        *at = read_table(text, begin, &r->entry, &server, arena);
        *out_done = server && r->has_entry;
        if (*out_done) { /* hand out the one before first */
            r->entry = before;
            r->has_entry = false;
            *at = begin;
            return true;
        }
        r->in_server = server;
        r->has_entry |= server;
        return true;
    }
    size_t count = read_key(text, at, &part, 1, arena);
    bool dotted = *at < text.size && text.data[*at] == '.';
    while (*at < text.size && text.data[*at] != '=' && text.data[*at] != '\n')
        ++*at;
    if ((count == 0 && !dotted) || *at >= text.size || text.data[*at] != '=')
        return false;
    ++*at;
    while (*at < text.size && (text.data[*at] == ' ' || text.data[*at] == '\t'))
        ++*at;
    size_t value = *at;
    *at = skip_value(text, value);
    if (r->in_server && count == 1)
        read_member(&r->entry, part, cx_str_from(text.data + value, *at - value));
    while (*at < text.size && text.data[*at] != '\n')
        ++*at;
    return true;
}

static cx_status each(cx_str text, const char *folder, cx_arena *arena, entry_taker take, void *arg,
                      cx_err *err)
{
    reading r = {0};
    size_t at = 0;
    bool done;
    (void)folder;
    while (read_step(text, &at, &r, &done, arena))
        if (done) {
            CX_TRY(take(arg, &r.entry, err));
            r.entry = (cx_gateway_wrap_entry){0};
            r.in_server = false;
        }
    if (at < text.size && skip_blank(text, at) < text.size) {
        uint64_t line, column;
        cx_json_locate(text, at, &line, &column);
        return cx_fail(err, CX_E_SYNTAX, "line %llu: expected a table or KEY = VALUE",
                       (unsigned long long)line);
    }
    return r.has_entry ? take(arg, &r.entry, err) : CX_SUCCESS;
}

const cx_gateway_wrap_syntax cx_gateway_wrap_toml = {.each = each,
                                                     .next_item = next_item,
                                                     .decode = decode,
                                                     .joiner = "\n",
                                                     .command_name = "command",
                                                     .args_name = "args"};
