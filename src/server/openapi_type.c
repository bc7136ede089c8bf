/*
 * openapi_type.c - compiles the notation of types into JSON Schema.
 */
#include "server/openapi_type.h"

#include "json/api.h"

#define DEPTH_MAX 16

/* What is left to read, and the schema that is written. */
typedef struct reader {
    const char *at;
    cx_buf *out;
    unsigned depth;
} reader;

static void write_union(reader *r);

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void skip_spaces(reader *r)
{
    while (*r->at == ' ')
        r->at++;
}

static bool accept_char(reader *r, char c)
{
    skip_spaces(r);
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

static void expect_char(reader *r, char c)
{
    bool found = accept_char(r, c);
    CX_ASSERT(found);
}

static cx_str read_word(reader *r)
{
    skip_spaces(r);
    const char *start = r->at;
    while (is_word_char(*r->at))
        r->at++;
    CX_ASSERT(r->at != start);
    return cx_str_from(start, (size_t)(r->at - start));
}

/* --- objects ---------------------------------------------------------------------------------- */

/* The names of the required members of the object that starts at r->at. */
static void write_required(const reader *r)
{
    unsigned depth = 0;
    bool any = false;
    const char *name = r->at;
    for (const char *at = r->at; depth > 0 || *at != '}'; at++) {
        CX_ASSERT(*at != 0);
        if (*at == '{' || *at == '[' || *at == '(')
            depth++;
        else if (*at == '}' || *at == ']' || *at == ')')
            depth--;
        else if (depth == 0 && (*at == ',' || *at == ' '))
            name = at + 1;
        else if (depth == 0 && *at == ':' && at[-1] != '?' && at[-1] != '*') {
            cx_buf_add_z(r->out, any ? "," : ",\"required\":[");
            cx_json_write_str(r->out, cx_str_from(name, (size_t)(at - name)), CX_JSON_PY_COMPACT);
            any = true;
        }
    }
    if (any)
        cx_buf_add_byte(r->out, ']');
}

static void write_object(reader *r)
{
    cx_buf_add_z(r->out, "{\"type\":\"object\"");
    write_required(r);
    bool any = false, is_open = false;
    while (!accept_char(r, '}')) {
        if (any || is_open)
            expect_char(r, ',');
        if (accept_char(r, '*')) { /* the last one */
            expect_char(r, ':');
            is_open = true;
            cx_buf_add_z(r->out,
                         any ? "},\"additionalProperties\":" : ",\"additionalProperties\":");
            write_union(r);
            continue;
        }
        CX_ASSERT(!is_open);
        cx_str name = read_word(r);
        accept_char(r, '?');
        expect_char(r, ':');
        cx_buf_add_z(r->out, any ? "," : ",\"properties\":{");
        cx_json_write_str(r->out, name, CX_JSON_PY_COMPACT);
        cx_buf_add_byte(r->out, ':');
        write_union(r);
        any = true;
    }
    cx_buf_add_z(r->out, any && !is_open ? "}}" : "}");
}

/* --- types ------------------------------------------------------------------------------------ */

static void write_tuple(reader *r)
{
    unsigned count = 0;
    cx_buf_add_z(r->out, "{\"type\":\"array\",\"prefixItems\":[");
    while (!accept_char(r, ']')) {
        if (count++ > 0) {
            expect_char(r, ',');
            cx_buf_add_byte(r->out, ',');
        }
        write_union(r);
    }
    cx_buf_printf(r->out, "],\"items\":false,\"minItems\":%u}", count);
}

static void write_name(reader *r)
{
    static const char *const kinds[] = {"string", "integer", "number", "boolean", "null"};
    cx_str word = read_word(r);
    if (cx_str_is(word, "any")) {
        cx_buf_add_z(r->out, "{}");
        return;
    }
    bool is_kind = false;
    for (size_t i = 0; i < CX_COUNT_OF(kinds); i++)
        is_kind |= cx_str_is(word, kinds[i]);
    CX_ASSERT(is_kind || cx_api_type_find(word) != NULL);
    cx_buf_add_z(r->out, is_kind ? "{\"type\":\"" : "{\"$ref\":\"#/components/schemas/");
    cx_buf_add(r->out, word.data, word.size);
    cx_buf_add_z(r->out, "\"}");
}

static void write_word(reader *r)
{
    const char *end = strchr(r->at, '\'');
    CX_ASSERT(end != NULL);
    cx_buf_add_z(r->out, "{\"const\":");
    cx_json_write_str(r->out, cx_str_from(r->at, (size_t)(end - r->at)), CX_JSON_PY_COMPACT);
    cx_buf_add_byte(r->out, '}');
    r->at = end + 1;
}

/* How many "[]" follow the type at `at`, which is one of a union. */
static unsigned array_depth_after(const char *at)
{
    unsigned depth = 0, count = 0;
    for (; *at != 0; at++) {
        if (depth == 0 && at[0] == '[' && at[1] == ']') {
            count++;
            at++;
        } else if (*at == '{' || *at == '[' || *at == '(') {
            depth++;
        } else if (*at == '}' || *at == ']' || *at == ')') {
            if (depth-- == 0)
                return count;
        } else if (depth == 0 && (*at == '|' || *at == ',')) {
            return count;
        }
    }
    return count;
}

static void write_one(reader *r)
{
    skip_spaces(r);
    unsigned arrays = array_depth_after(r->at);
    for (unsigned i = 0; i < arrays; i++)
        cx_buf_add_z(r->out, "{\"type\":\"array\",\"items\":");
    if (accept_char(r, '{')) {
        write_object(r);
    } else if (accept_char(r, '[')) {
        write_tuple(r);
    } else if (accept_char(r, '(')) {
        write_union(r);
        expect_char(r, ')');
    } else if (accept_char(r, '\'')) {
        write_word(r);
    } else {
        write_name(r);
    }
    for (unsigned i = 0; i < arrays; i++) {
        expect_char(r, '[');
        expect_char(r, ']');
        cx_buf_add_byte(r->out, '}');
    }
}

/* Whether the type at `at` is one of several. */
static bool has_choice(const char *at)
{
    unsigned depth = 0;
    for (; *at != 0; at++) {
        if (*at == '{' || *at == '[' || *at == '(')
            depth++;
        else if (depth == 0 && (*at == '}' || *at == ']' || *at == ')' || *at == ','))
            return false;
        else if (*at == '}' || *at == ']' || *at == ')')
            depth--;
        else if (depth == 0 && *at == '|')
            return true;
    }
    return false;
}

static void write_union(reader *r)
{
    CX_ASSERT(r->depth < DEPTH_MAX);
    r->depth++;
    if (has_choice(r->at)) {
        cx_buf_add_z(r->out, "{\"anyOf\":[");
        write_one(r);
        while (accept_char(r, '|')) {
            cx_buf_add_byte(r->out, ',');
            write_one(r);
        }
        cx_buf_add_z(r->out, "]}");
    } else {
        write_one(r);
    }
    r->depth--;
}

void cx_api_type_schema(const char *notation, cx_buf *out)
{
    reader r = {.at = notation, .out = out};
    write_union(&r);
    skip_spaces(&r);
    CX_ASSERT(*r.at == 0);
}

const cx_api_type *cx_api_type_find(cx_str name)
{
    for (size_t i = 0; i < cx_api_type_count; i++)
        if (cx_str_is(name, cx_api_types[i].name))
            return &cx_api_types[i];
    return NULL;
}
