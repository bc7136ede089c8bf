/*
 * span.c - where a value is in a JSON text.
 */
#include "gateway/span.h"

#include <string.h>

#include "json/api.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t skip_space(cx_str text, size_t at)
{
    while (at < text.size && is_space(text.data[at]))
        at++;
    return at;
}

/* The offset after a string that begins at `at`. */
static size_t skip_string(cx_str text, size_t at)
{
    for (at++; at < text.size && text.data[at] != '"'; at++)
        at += text.data[at] == '\\';
    return at < text.size ? at + 1 : text.size;
}

static size_t skip_value(cx_str text, size_t at)
{
    size_t depth = 0;
    while (at < text.size) {
        char c = text.data[at];
        if (c == '"') {
            at = skip_string(text, at);
            if (depth == 0)
                return at;
            continue;
        }
        if (c == '{' || c == '[')
            depth++;
        if (depth == 0 && (c == ',' || c == '}' || c == ']' || is_space(c)))
            return at;
        at++;
        if ((c == '}' || c == ']') && --depth == 0)
            return at;
    }
    return at;
}

cx_str cx_gateway_span_trim(cx_str text)
{
    size_t begin = skip_space(text, 0), end = text.size;
    while (end > begin && is_space(text.data[end - 1]))
        end--;
    return cx_str_from(text.data + begin, end - begin);
}

bool cx_gateway_span_next(cx_str text, size_t *offset, cx_str *out_name, cx_str *out_value)
{
    size_t at = skip_space(text, *offset);
    bool object = false;
    if (*offset == 0) {
        if (at == text.size || (text.data[at] != '{' && text.data[at] != '['))
            return false;
        at = skip_space(text, at + 1);
    } else if (at < text.size && text.data[at] == ',') {
        at = skip_space(text, at + 1);
    }
    object = text.data[skip_space(text, 0)] == '{';
    *out_name = cx_str_from("", 0);
    if (at >= text.size || text.data[at] == '}' || text.data[at] == ']')
        return false;
    if (object) {
        size_t end = skip_string(text, at);
        *out_name = cx_str_from(text.data + at, end - at);
        at = skip_space(text, end);
        at = skip_space(text, at < text.size ? at + 1 : at);
    }
    size_t end = skip_value(text, at);
    if (end <= at && end < text.size) /* no JSON: do not stand still */
        end = at + 1;
    *out_value = cx_str_from(text.data + at, end - at);
    *offset = end;
    return true;
}

static bool name_is(cx_str spelled, const char *name)
{
    size_t size = strlen(name);
    if (memchr(spelled.data, '\\', spelled.size) == NULL)
        return spelled.size == size + 2 && memcmp(spelled.data + 1, name, size) == 0;
    cx_arena arena;
    cx_json value;
    cx_err ignored;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    bool same = !cx_failed(cx_json_parse_text(spelled, &arena, &value, &ignored)) &&
                value.type == CX_JSON_STRING && cx_str_is(cx_json_text(&value), name);
    cx_arena_done(&arena);
    return same;
}

bool cx_gateway_span_member(cx_str object, const char *name, cx_str *out)
{
    size_t offset = 0;
    cx_str spelled, value;
    while (cx_gateway_span_next(object, &offset, &spelled, &value))
        if (spelled.size >= 2 && name_is(spelled, name)) {
            *out = value;
            return true;
        }
    return false;
}
