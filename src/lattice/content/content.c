/*
 * content.c - what a node says, text by text (content.h).
 */
#include "lattice/content/content.h"

#define DEPTH_MAX 64 /* of values inside values; what is deeper is in the whole */

void cx_content_init(content_reader *reader, const cx_lattice *lattice)
{
    *reader = (content_reader){.lattice = lattice};
    cx_arena_init(&reader->arena, lattice->alloc, 0);
    cx_buf_init(&reader->scratch, lattice->alloc);
}

void cx_content_done(content_reader *reader)
{
    cx_buf_done(&reader->scratch);
    cx_arena_done(&reader->arena);
}

CX_RESULT cx_content_read(content_reader *reader, cx_node which, cx_err *err)
{
    static const cx_json nothing = {.type = CX_JSON_OBJECT};
    cx_arena_reset(&reader->arena, (cx_arena_mark){0});
    CX_TRY(cx_lattice_source(reader->lattice, which, &reader->arena, &reader->source, err));
    reader->event = cx_json_get_typed(&reader->source, CX_STR("event"), CX_JSON_OBJECT);
    if (reader->event == NULL)
        reader->event = &nothing;
    return CX_SUCCESS;
}

const char *cx_content_part_name(content_part part)
{
    static const char *const names[] = {"message",   "given",  "thinking", "reason", "error",
                                        "arguments", "result", "event",    "change"};
    return names[part];
}

/* --- one value -------------------------------------------------------------------------------- */

typedef struct value_visit {
    content_reader *reader;
    content_text text;
    content_visit *visit;
    void *arg;
} value_visit;

static cx_status visit_leaf(const value_visit *v, cx_str text, cx_err *err)
{
    content_text one = v->text;
    one.text = text;
    return text.size == 0 ? CX_SUCCESS : v->visit(v->arg, &one, err);
}

static cx_status visit_leaves(const value_visit *v, const cx_json *value, unsigned depth,
                              cx_err *err)
{
    if (value->type == CX_JSON_STRING || cx_json_is_number(value))
        return visit_leaf(v, cx_json_text(value), err);
    if (depth == DEPTH_MAX)
        return CX_SUCCESS;
    for (uint32_t i = 0; value->type == CX_JSON_ARRAY && i < value->count; i++)
        CX_TRY(visit_leaves(v, &value->items[i], depth + 1, err));
    for (uint32_t i = 0; value->type == CX_JSON_OBJECT && i < value->count; i++)
        CX_TRY(visit_leaves(v, &value->members[i].value, depth + 1, err));
    return CX_SUCCESS;
}

static cx_status visit_value(const value_visit *v, const cx_json *value, cx_err *err)
{
    if (value == NULL || value->type == CX_JSON_NULL)
        return CX_SUCCESS;
    CX_TRY(visit_leaves(v, value, 0, err));
    if ((value->type != CX_JSON_OBJECT && value->type != CX_JSON_ARRAY) || value->count == 0)
        return CX_SUCCESS;
    content_text whole = v->text;
    whole.is_whole = true;
    cx_buf_clear(&v->reader->scratch);
    CX_TRY(cx_json_write_pretty(&v->reader->scratch, value, 0, err));
    CX_TRY(cx_buf_check(&v->reader->scratch, err));
    whole.text = cx_buf_str(&v->reader->scratch);
    return v->visit(v->arg, &whole, err);
}

cx_status cx_content_value(content_reader *reader, const cx_json *value, const content_text *like,
                           content_visit *visit, void *arg, cx_err *err)
{
    const value_visit v = {reader, *like, visit, arg};
    return visit_leaves(&v, value, 0, err);
}

/* --- one node --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    content_part part;
} parts[] = {{"text", CONTENT_MESSAGE},        {"thinking", CONTENT_THINKING},
             {"because", CONTENT_REASON},      {"error", CONTENT_ERROR},
             {"arguments", CONTENT_ARGUMENTS}, {"result", CONTENT_RESULT}};

static cx_status visit_calls(value_visit *v, const cx_json *calls, cx_err *err)
{
    const content_text outer = v->text;
    for (uint32_t i = 0; calls != NULL && i < calls->count; i++) {
        const cx_json *call = &calls->items[i];
        v->text.tool = CX_JSON_GET_STR(call, "tool");
        v->text.call_id = CX_JSON_GET_STR(call, "call_id");
        v->text.part = CONTENT_ARGUMENTS;
        v->text.name = CX_STR("arguments");
        CX_TRY(visit_value(v, CX_JSON_GET(call, "arguments"), err));
        v->text.part = CONTENT_RESULT;
        v->text.name = CX_STR("result");
        CX_TRY(visit_value(v, CX_JSON_GET(call, "result"), err));
    }
    v->text = outer;
    return CX_SUCCESS;
}

static cx_status visit_inputs(value_visit *v, const cx_json *inputs, cx_err *err)
{
    const content_text outer = v->text;
    v->text.part = CONTENT_GIVEN;
    v->text.name = CX_STR("input");
    for (uint32_t i = 0; inputs != NULL && i < inputs->count; i++) {
        v->text.role = CX_JSON_GET_STR(&inputs->items[i], "role");
        CX_TRY(visit_value(v, CX_JSON_GET(&inputs->items[i], "text"), err));
    }
    v->text = outer;
    return CX_SUCCESS;
}

/* Imported nodes have all that was in the source again, as `raw`. */
static bool is_imported(const cx_json *event)
{
    return CX_JSON_GET(event, "at") != NULL && CX_JSON_GET(event, "source") != NULL;
}

static bool is_part_name(cx_str name)
{
    for (size_t i = 0; i < CX_COUNT_OF(parts); i++)
        if (cx_str_is(name, parts[i].name))
            return true;
    return cx_str_is(name, "input") || cx_str_is(name, "tool_calls");
}

/* The members of an event that no convention names, and what changed. */
static cx_status visit_others(value_visit *v, cx_err *err)
{
    const cx_json *event = v->reader->event;
    v->text.part = CONTENT_EVENT;
    for (uint32_t i = 0; i < event->count; i++) {
        v->text.name = cx_json_text(&event->members[i].name);
        if (!is_part_name(v->text.name) && !cx_str_starts(v->text.name, CX_STR("__")))
            CX_TRY(visit_value(v, &event->members[i].value, err));
    }
    v->text.part = CONTENT_CHANGE;
    v->text.name = CX_STR("state_delta");
    return visit_value(v, CX_JSON_GET(&v->reader->source, "state_delta"), err);
}

cx_status cx_content_visit(content_reader *reader, content_visit *visit, void *arg, cx_err *err)
{
    const cx_json *event = reader->event;
    value_visit v = {reader,
                     {.role = CX_JSON_GET_STR(event, "role"),
                      .tool = CX_JSON_GET_STR(event, "tool"),
                      .call_id = CX_JSON_GET_STR(event, "call_id")},
                     visit,
                     arg};
    for (size_t i = 0; i < CX_COUNT_OF(parts); i++) {
        v.text.part = parts[i].part;
        v.text.name = cx_str_z(parts[i].name);
        CX_TRY(visit_value(&v, cx_json_get(event, v.text.name), err));
    }
    CX_TRY(visit_calls(&v, cx_json_get_typed(event, CX_STR("tool_calls"), CX_JSON_ARRAY), err));
    CX_TRY(visit_inputs(&v, cx_json_get_typed(event, CX_STR("input"), CX_JSON_ARRAY), err));
    return is_imported(event) ? CX_SUCCESS : visit_others(&v, err);
}

/* --- texts ------------------------------------------------------------------------------------ */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

void cx_content_normal(cx_buf *out, cx_str text)
{
    size_t at = 0;
    bool first = true;
    while (at < text.size) {
        size_t from;
        while (at < text.size && is_space(text.data[at]))
            at++;
        for (from = at; at < text.size && !is_space(text.data[at]);)
            at++;
        if (at == from)
            break;
        if (!first)
            cx_buf_add_byte(out, ' ');
        first = false;
        cx_buf_add(out, text.data + from, at - from);
    }
}

static bool is_inside(cx_str text, size_t at)
{
    return at < text.size && ((uint8_t)text.data[at] & 0xC0) == 0x80;
}

void cx_content_snippet(cx_buf *out, cx_str text, size_t at, size_t size, size_t most)
{
    size_t around = size < most ? (most - size) / 2 : 0;
    size_t from = at > around ? at - around : 0;
    size_t to = from + most < text.size ? from + most : text.size;
    if (to == text.size && to - from < most)
        from = to > most ? to - most : 0;
    while (from > 0 && is_inside(text, from))
        from--;
    while (to > from && is_inside(text, to))
        to--;
    if (from > 0)
        cx_buf_add_z(out, "\xe2\x80\xa6");
    cx_content_normal(out, cx_str_from(text.data + from, to - from));
    if (to < text.size)
        cx_buf_add_z(out, "\xe2\x80\xa6");
}
