/*
 * span.c - see span.h: brackets and quotes, nothing else.
 */
#include "json/span.h"

#include "json/internal.h"

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

/* `at` is after an opening quote: the position after the closing one, or NULL. */
static const char *skip_string(const char *at, const char *end)
{
    const uint8_t *byte = (const uint8_t *)at, *stop = (const uint8_t *)end;
    for (;;) {
        byte = cx_json_scan_plain(byte, stop);
        if (byte == stop)
            return NULL;
        if (*byte == '"')
            return (const char *)byte + 1;
        if (*byte == '\\' && ++byte == stop)
            return NULL;
        byte++;
    }
}

/* The comma or bracket that ends the value which starts at `at`, or NULL. */
static const char *skip_value(const char *at, const char *end)
{
    size_t depth = 0;
    while (at < end) {
        switch (*at) {
        case '"':
            at = skip_string(at + 1, end);
            if (at == NULL)
                return NULL;
            continue;
        case '{':
        case '[': depth++; break;
        case '}':
        case ']':
            if (depth == 0)
                return at;
            depth--;
            break;
        case ',':
            if (depth == 0)
                return at;
            break;
        default: break;
        }
        at++;
    }
    return NULL;
}

/* Checks that only white space follows the closing bracket at span->at. */
static void finish_span(cx_json_span *span)
{
    span->at = skip_space(span->at + 1, span->end);
    span->done = true;
    span->bad = span->at != span->end;
}

bool cx_json_span_begin(cx_json_span *span, cx_str container)
{
    const char *start = container.data != NULL ? container.data : "";
    *span = (cx_json_span){.at = start, .end = start + container.size};
    span->at = skip_space(span->at, span->end);
    if (span->at == span->end || (*span->at != '{' && *span->at != '['))
        return false;
    span->close = *span->at == '{' ? '}' : ']';
    span->at = skip_space(span->at + 1, span->end);
    if (span->at < span->end && *span->at == span->close)
        finish_span(span);
    return true;
}

static bool fail_span(cx_json_span *span)
{
    span->bad = true;
    return false;
}

/* A name and its colon. */
static bool next_name(cx_json_span *span, cx_str *out)
{
    const char *start = span->at;
    if (start == span->end || *start != '"')
        return false;
    const char *after = skip_string(start + 1, span->end);
    if (after == NULL)
        return false;
    *out = (cx_str){start, (size_t)(after - start)};
    span->at = skip_space(after, span->end);
    if (span->at == span->end || *span->at != ':')
        return false;
    span->at++;
    return true;
}

bool cx_json_span_next(cx_json_span *span, cx_str *out_name, cx_str *out_value)
{
    cx_str name = {NULL, 0};
    if (span->done || span->bad)
        return false;
    span->at = skip_space(span->at, span->end);
    if (span->close == '}' && !next_name(span, &name))
        return fail_span(span);
    const char *start = skip_space(span->at, span->end);
    const char *stop = skip_value(start, span->end), *last = stop;
    if (stop == NULL || (*stop != ',' && *stop != span->close))
        return fail_span(span);
    while (last > start && skip_space(last - 1, last) == last)
        last--;
    if (last == start)
        return fail_span(span);
    *out_name = name;
    *out_value = (cx_str){start, (size_t)(last - start)};
    span->at = stop;
    if (*stop == ',')
        span->at++;
    else
        finish_span(span);
    return true;
}

/* --- the pointer of a position -------------------------------------------------------------- */

#define PLACE_DEPTH_MAX 64

typedef struct level {
    bool is_object;
    uint32_t index; /* of the element */
    cx_str name;    /* of the member, quoted; data NULL before it was read */
} level;

static bool add_name(cx_str quoted, cx_buf *out)
{
    cx_arena arena;
    cx_json name;
    cx_arena_init(&arena, out->alloc, 0);
    cx_status status = cx_json_parse_text(quoted, &arena, &name, NULL);
    if (!cx_failed(status))
        cx_json_pointer_add(out, cx_json_text(&name));
    else if (status.code == CX_E_NOMEM)
        out->failed = true;
    cx_arena_done(&arena);
    return !cx_failed(status);
}

static bool add_levels(const level *levels, size_t depth, cx_buf *out)
{
    for (size_t i = 0; i < depth; i++) {
        if (!levels[i].is_object)
            cx_buf_printf(out, "/%u", levels[i].index);
        else if (levels[i].name.data != NULL && !add_name(levels[i].name, out))
            return false;
    }
    return !out->failed;
}

/* Passes one byte, or one string, of valid JSON text; NULL when too deep or truncated. */
static const char *pass_token(const char *at, const char *end, level *levels, size_t *depth)
{
    level *top = *depth == 0 ? NULL : &levels[*depth - 1];
    if (*at == '"') {
        const char *after = skip_string(at + 1, end);
        if (after != NULL && top != NULL && top->is_object && top->name.data == NULL)
            top->name = (cx_str){at, (size_t)(after - at)};
        return after;
    }
    if (*at == '{' || *at == '[') {
        if (*depth == PLACE_DEPTH_MAX)
            return NULL;
        levels[(*depth)++] = (level){.is_object = *at == '{'};
    } else if (top != NULL && (*at == '}' || *at == ']')) {
        (*depth)--;
    } else if (top != NULL && *at == ',') {
        top->index++;
        top->name.data = NULL;
    }
    return at + 1;
}

bool cx_json_pointer_at(cx_str text, size_t offset, cx_buf *out)
{
    level levels[PLACE_DEPTH_MAX];
    size_t depth = 0, size_before = out->size;
    const char *at = text.data, *end = at + text.size, *place = at + offset;
    if (offset >= text.size)
        return false;
    while (at != NULL && at < place) {
        const char *after = pass_token(at, end, levels, &depth);
        if (*at == '"' && after != NULL && after > place)
            break;
        at = after;
    }
    /* A name belongs to its member from its first byte on, a closing bracket to what it closes. */
    if (at == place && depth != 0 && (*at == '"' || *at == '}' || *at == ']'))
        at = pass_token(at, end, levels, &depth);
    if (at != NULL && add_levels(levels, depth, out))
        return true;
    out->size = size_before;
    return false;
}
