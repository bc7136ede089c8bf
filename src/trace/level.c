/*
 * level.c - finds the fields that a level does not allow (§2).
 *
 * Most traces keep their level, which walking the values shows.  Only on a violation is the text
 * walked too: pointers are reported in the order in which members were received, which sorted
 * members do not have.
 */
#include "trace/internal.h"

#include "crypto/api.h"
#include "json/api.h"

/* --- one member ------------------------------------------------------------------------------- */

/* Rule 1. */
static bool is_empty_value(const cx_json *value)
{
    return value->type == CX_JSON_NULL || (value->type >= CX_JSON_STRING && value->count == 0);
}

static bool is_token(cx_str text)
{
    if (text.size > 64)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!letter && (c == 0 || strchr("_.:+-", c) == NULL))
            return false;
    }
    return true;
}

/* Rule 5: a score must not contain text. */
static bool is_generic_value(cx_str name, const cx_json *value)
{
    cx_digest ignored;
    if (value->type >= CX_JSON_ARRAY)
        return false;
    if (value->type != CX_JSON_STRING)
        return true;
    if (cx_str_eq(name, CX_STR("audit_entry_hash")))
        return cx_digest_parse(cx_json_text(value), &ignored);
    return is_token(cx_json_text(value));
}

/* Rule 4, for values that are not objects. */
static cx_trace_level level_of_unknown(const cx_json *value)
{
    if (value->type < CX_JSON_STRING)
        return CX_LEVEL_GENERIC;
    if (value->type != CX_JSON_ARRAY)
        return CX_LEVEL_FULL;
    for (uint32_t i = 0; i < value->count; i++)
        if (value->items[i].type >= CX_JSON_STRING)
            return CX_LEVEL_FULL;
    return CX_LEVEL_DETAILED;
}

static const cx_field *find_field(const cx_level_place *place, cx_str name)
{
    const cx_field *field = place->scope == NULL ? NULL : cx_field_find(place->scope, name);
    if (field == NULL && place->is_top)
        field = cx_field_find(&cx_field_scope_any, name);
    return field;
}

static cx_trace_level level_of_field(const cx_field *field, bool stamped)
{
    if (stamped && field->stamped != CX_LEVEL_ABSENT)
        return (cx_trace_level)field->stamped;
    return (cx_trace_level)field->unstamped;
}

cx_level_answer cx_level_judge(const cx_level_place *place, cx_str name, const cx_json *value,
                               cx_level_place *out_inside)
{
    if (is_empty_value(value))
        return CX_LEVEL_KEEP;
    const cx_field *field = find_field(place, name);
    cx_trace_level allowed =
        field == NULL ? CX_LEVEL_ABSENT : level_of_field(field, place->stamped);
    if (allowed != CX_LEVEL_ABSENT) {
        bool kept = allowed <= place->level && (place->level != CX_LEVEL_GENERIC ||
                                                place->stamped || is_generic_value(name, value));
        return kept ? CX_LEVEL_KEEP : CX_LEVEL_REMOVE;
    }
    if (value->type != CX_JSON_OBJECT)
        return level_of_unknown(value) > place->level ? CX_LEVEL_REMOVE : CX_LEVEL_KEEP;
    *out_inside = *place;
    out_inside->is_top = false;
    out_inside->scope = field != NULL ? field->group : NULL;
    return CX_LEVEL_DESCEND;
}

cx_level_place cx_level_place_of(const cx_trace *trace, const cx_trace_component *component,
                                 cx_trace_level level)
{
    return (cx_level_place){.scope = cx_field_scope_of(component->event),
                            .is_top = true,
                            .stamped = trace->stamped,
                            .level = level};
}

/* --- over the values -------------------------------------------------------------------------- */

typedef struct looking {
    const cx_json_member *at;
    uint32_t left;
    cx_level_place place;
} looking;

static bool data_keeps_level(const cx_json *data, const cx_level_place *place)
{
    looking stack[CX_TRACE_DEPTH_MAX];
    size_t depth = 1;
    stack[0] = (looking){data->members, data->count, *place};
    while (depth != 0) {
        looking *top = &stack[depth - 1];
        cx_level_place below;
        if (top->left == 0) {
            depth--;
            continue;
        }
        const cx_json_member *member = top->at++;
        top->left--;
        switch (cx_level_judge(&top->place, cx_json_text(&member->name), &member->value, &below)) {
        case CX_LEVEL_KEEP: break;
        case CX_LEVEL_REMOVE: return false;
        case CX_LEVEL_DESCEND:
            CX_ASSERT(depth < CX_TRACE_DEPTH_MAX);
            stack[depth++] = (looking){member->value.members, member->value.count, below};
        }
    }
    return true;
}

static bool keeps_level(const cx_trace *trace, cx_trace_level level)
{
    for (uint32_t i = 0; i < trace->component_count; i++) {
        cx_level_place place = cx_level_place_of(trace, &trace->components[i], level);
        if (!data_keeps_level(trace->components[i].data, &place))
            return false;
    }
    return true;
}

/* --- over the text ---------------------------------------------------------------------------- */

typedef struct tracing {
    cx_arena *arena;
    cx_json_list paths;
    cx_buf pointer; /* of the object being walked */
    cx_err *err;
} tracing;

/* An object in the text together with its parsed value. */
typedef struct spelled {
    cx_json_span span;
    const cx_json *object;
    size_t pointer_size; /* of its own pointer */
    cx_level_place place;
} spelled;

/* Decodes a spelled name to the name it means. */
static cx_status name_of(tracing *t, cx_str quoted, cx_str *out)
{
    cx_json name;
    if (memchr(quoted.data, '\\', quoted.size) == NULL) {
        *out = (cx_str){quoted.data + 1, quoted.size - 2};
        return CX_SUCCESS;
    }
    CX_TRY(cx_json_parse_text(quoted, t->arena, &name, t->err));
    *out = cx_json_text(&name);
    return CX_SUCCESS;
}

static spelled begin_spelled(cx_str text, const cx_json *object, size_t pointer_size,
                             const cx_level_place *place)
{
    spelled s = {.object = object, .pointer_size = pointer_size, .place = *place};
    CX_ASSERT(cx_json_span_begin(&s.span, text));
    return s;
}

static cx_status add_path(tracing *t)
{
    cx_str path = cx_arena_copy_str(t->arena, cx_buf_str(&t->pointer));
    if (path.data == NULL)
        return cx_fail_nomem(t->err);
    cx_json_list_add(&t->paths, cx_json_make_str(path));
    return CX_SUCCESS;
}

/* Lists what violates inside one component's data, whose pointer t->pointer is. */
static cx_status trace_data(tracing *t, cx_str text, const cx_json *data,
                            const cx_level_place *place)
{
    spelled stack[CX_TRACE_DEPTH_MAX];
    size_t depth = 1;
    stack[0] = begin_spelled(text, data, t->pointer.size, place);
    while (depth != 0) {
        spelled *top = &stack[depth - 1];
        cx_level_place below;
        cx_str quoted, raw, name;
        if (!cx_json_span_next(&top->span, &quoted, &raw)) {
            depth--;
            continue;
        }
        CX_TRY(name_of(t, quoted, &name));
        const cx_json *value = cx_json_get(top->object, name);
        CX_ASSERT(value != NULL);
        t->pointer.size = top->pointer_size;
        cx_json_pointer_add(&t->pointer, name);
        CX_TRY(cx_buf_check(&t->pointer, t->err));
        cx_level_answer answer = cx_level_judge(&top->place, name, value, &below);
        if (answer == CX_LEVEL_REMOVE)
            CX_TRY(add_path(t));
        if (answer == CX_LEVEL_DESCEND) {
            CX_ASSERT(depth < CX_TRACE_DEPTH_MAX);
            stack[depth++] = begin_spelled(raw, value, t->pointer.size, &below);
        }
    }
    return CX_SUCCESS;
}

/* The text of a member of an object that has it. */
static cx_status find_member(tracing *t, cx_str object, cx_str wanted, cx_str *out)
{
    cx_json_span span;
    cx_str quoted, raw, name;
    CX_ASSERT(cx_json_span_begin(&span, object));
    do {
        CX_ASSERT(cx_json_span_next(&span, &quoted, &raw));
        CX_TRY(name_of(t, quoted, &name));
    } while (!cx_str_eq(name, wanted));
    *out = raw;
    return CX_SUCCESS;
}

static cx_status trace_components(tracing *t, const cx_trace *trace, cx_trace_level level)
{
    cx_json_span span;
    cx_str list, name, component, data;
    CX_TRY(find_member(t, cx_bytes_str(trace->bytes), CX_STR("components"), &list));
    CX_ASSERT(cx_json_span_begin(&span, list));
    for (uint32_t i = 0; i < trace->component_count; i++) {
        const cx_trace_component *c = &trace->components[i];
        cx_level_place place = cx_level_place_of(trace, c, level);
        CX_ASSERT(cx_json_span_next(&span, &name, &component));
        if (data_keeps_level(c->data, &place))
            continue;
        CX_TRY(find_member(t, component, CX_STR("data"), &data));
        cx_buf_clear(&t->pointer);
        cx_buf_printf(&t->pointer, "/components/%u/data", i);
        CX_TRY(cx_buf_check(&t->pointer, t->err));
        CX_TRY(trace_data(t, data, c->data, &place));
    }
    return CX_SUCCESS;
}

static cx_status collect_paths(tracing *t, const cx_str **out_paths, size_t *out_count)
{
    cx_json list;
    CX_TRY(cx_json_list_end_array(&t->paths, &list, t->err));
    cx_str *paths = CX_ARENA_ARRAY(t->arena, cx_str, list.count);
    if (paths == NULL)
        return cx_fail_nomem(t->err);
    for (uint32_t i = 0; i < list.count; i++)
        paths[i] = cx_json_text(&list.items[i]);
    *out_paths = paths;
    *out_count = list.count;
    return CX_SUCCESS;
}

cx_status cx_trace_violations(const cx_trace *trace, cx_trace_level level, cx_arena *arena,
                              const cx_str **out_paths, size_t *out_count, cx_err *err)
{
    if (level >= CX_LEVEL_FULL || keeps_level(trace, level)) {
        *out_paths = NULL;
        *out_count = 0;
        return CX_SUCCESS;
    }
    tracing t = {.arena = arena, .paths = cx_json_list_begin(arena), .err = err};
    cx_buf_init(&t.pointer, arena->alloc);
    cx_status status = trace_components(&t, trace, level);
    cx_buf_done(&t.pointer);
    return cx_failed(status) ? status : collect_paths(&t, out_paths, out_count);
}
