/*
 * phoenix.c - spans as Phoenix exports them (§2.23): rows with columns like `context.trace_id` and
 * `attributes.llm.model_name`, or objects; a list, {"data"}, or a span a line.
 *
 * Attributes may be nested objects and lists; they are read under the flat names of OpenInference,
 * whose meaning is in gen_ai.c.
 */
#include "import/gen_ai.h"
#include "import/turns.h"

#define SPAN_SPACE 's'
#define FLAT_DEPTH_MAX 16
#define FLAT_COUNT_MAX 4096 /* attributes of one span; more stay in raw */
#define PREFIX "attributes."

static cx_str joined_name(cx_arena *arena, cx_str prefix, cx_str name)
{
    if (prefix.size == 0)
        return name;
    char *text = cx_arena_push(arena, prefix.size + 1 + name.size, 1);
    if (text == NULL)
        return (cx_str){NULL, 0};
    memcpy(text, prefix.data, prefix.size);
    text[prefix.size] = '.';
    if (name.size != 0)
        memcpy(text + prefix.size + 1, name.data, name.size);
    return cx_str_from(text, prefix.size + 1 + name.size);
}

static void flatten(cx_json_list *list, cx_arena *arena, cx_str prefix, const cx_json *value,
                    unsigned depth)
{
    bool nested = value->type == CX_JSON_OBJECT ||
                  (value->type == CX_JSON_ARRAY && cx_import_first_object(value) != NULL);
    if (list->count >= FLAT_COUNT_MAX || (prefix.data == NULL && depth != 0))
        return;
    if (!nested || depth == FLAT_DEPTH_MAX) {
        cx_json_list_put(list, prefix, *value);
        return;
    }
    for (uint32_t i = 0; i < value->count; i++) {
        bool object = value->type == CX_JSON_OBJECT;
        cx_str name = object ? cx_json_text(&value->members[i].name)
                             : cx_arena_printf(arena, "%u", (unsigned)i);
        flatten(list, arena, joined_name(arena, prefix, name),
                object ? &value->members[i].value : &value->items[i], depth + 1);
    }
}

/* Of a name that two spellings give, the first counts.  False when out of memory. */
static bool leave_first(cx_json_list *list)
{
    cx_map seen;
    uint32_t kept = 0;
    bool good = true;
    cx_map_init(&seen, list->arena->alloc, cx_io_seed(cx_io_system()));
    for (uint32_t i = 0; i < list->count && good; i++) {
        uint64_t *slot;
        bool is_new = false;
        good = !cx_failed(
            cx_map_put(&seen, cx_json_text(&list->members[i].name), &slot, &is_new, NULL));
        if (good && is_new)
            list->members[kept++] = list->members[i];
    }
    cx_map_done(&seen);
    if (good)
        list->count = kept;
    return good;
}

/* All attributes under flat names, and the span's kind under OpenInference's. */
static const cx_json *attributes_of(const cx_json *span, cx_arena *arena, bool *failed)
{
    cx_json_list list = cx_json_list_begin(arena);
    cx_json *out = CX_ARENA_NEW(arena, cx_json);
    const cx_json *nested = cx_json_get_typed(span, CX_STR("attributes"), CX_JSON_OBJECT);
    cx_str kind = CX_JSON_GET_STR(span, "span_kind");
    if (nested != NULL)
        flatten(&list, arena, (cx_str){NULL, 0}, nested, 0);
    for (uint32_t i = 0; i < span->count; i++) {
        cx_str name = cx_json_text(&span->members[i].name);
        if (cx_str_starts(name, CX_STR(PREFIX)))
            flatten(&list, arena,
                    cx_str_from(name.data + sizeof PREFIX - 1, name.size - sizeof PREFIX + 1),
                    &span->members[i].value, 1);
    }
    if (kind.size != 0)
        cx_json_put_str(&list, "openinference.span.kind", kind);
    if (out == NULL || list.failed || !leave_first(&list) ||
        cx_failed(cx_json_list_end_object(&list, out, NULL))) {
        *failed = true;
        return NULL;
    }
    return out;
}

static cx_str context_str(const cx_json *span, const char *column, const char *name)
{
    const cx_json *context = cx_json_get_typed(span, CX_STR("context"), CX_JSON_OBJECT);
    cx_str text = cx_json_get_str(span, cx_str_z(column));
    return text.size == 0 && context != NULL ? cx_json_get_str(context, cx_str_z(name)) : text;
}

static cx_str span_id(const cx_json *span)
{
    return context_str(span, "context.span_id", "span_id");
}

static cx_str span_key(cx_arena *arena, cx_str trace, cx_str id)
{
    return id.size == 0 ? id : joined_name(arena, trace, id);
}

static cx_status import_span(cx_import_sink *sink, const cx_json *span, const cx_json *raw,
                             cx_err *err)
{
    bool failed = false;
    if (span->type != CX_JSON_OBJECT || span_id(span).size == 0)
        return cx_import_bad(sink, raw, UINT64_MAX, err);
    const cx_json *attributes = attributes_of(span, sink->arena, &failed);
    cx_str trace = context_str(span, "context.trace_id", "trace_id");
    cx_import_record *r = cx_import_begin(sink);
    if (failed)
        return cx_fail_nomem(err);
    r->raw = raw;
    r->src_id = span_id(span);
    r->src_parent = CX_JSON_GET_STR(span, "parent_id");
    cx_import_define(r, SPAN_SPACE, span_key(sink->arena, trace, r->src_id), CX_DEFINE_FIRST);
    cx_import_refer(r, SPAN_SPACE, span_key(sink->arena, trace, r->src_parent), CX_REF_NAMED);
    r->under_file = r->src_parent.size == 0;
    cx_import_set_any_time(r, CX_JSON_GET(span, "start_time"));
    cx_import_field_str(r, CX_STR("trace_id"), trace);
    cx_import_field_str(r, CX_STR("name"), CX_JSON_GET_STR(span, "name"));
    const cx_import_span view = {.attributes = attributes,
                                 .arena = sink->arena,
                                 .name = CX_JSON_GET_STR(span, "name"),
                                 .scope = trace,
                                 .outcome =
                                     cx_import_span_outcome(CX_JSON_GET(span, "status_code"))};
    CX_TRY(cx_import_gen_ai(r, &view, err));
    return cx_import_end(sink, NULL, err);
}

static cx_status phoenix_document(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    static const char *const records[] = {"data", NULL};
    const cx_json *list = document->type == CX_JSON_ARRAY ? document : NULL;
    cx_json top;
    if (document->type == CX_JSON_OBJECT) {
        list = cx_import_array_at(document, "data");
        if (list == NULL && span_id(document).size != 0)
            return import_span(sink, document, document, err);
        if (list != NULL) {
            CX_TRY(cx_import_without(document, records, sink->arena, &top, err));
            CX_TRY(cx_import_top(sink, &top, err));
        }
    }
    if (list == NULL)
        return cx_import_shape(err, "a list of spans, or an object with an array data of them");
    for (uint32_t i = 0; i < list->count; i++)
        CX_TRY(import_span(sink, &list->items[i], &list->items[i], err));
    return CX_SUCCESS;
}

static cx_status phoenix_line(cx_import_sink *sink, const cx_json *value, cx_err *err)
{
    return import_span(sink, value, NULL, err);
}

static void phoenix_content(cx_import_content *content, const cx_json *raw)
{
    cx_import_record times[2] = {0};
    if (raw->type != CX_JSON_OBJECT)
        return;
    const cx_json *attributes = attributes_of(raw, content->arena, &content->failed);
    if (attributes == NULL)
        return;
    cx_import_say_span(content, attributes, CX_JSON_GET(raw, "events"),
                       CX_JSON_GET_STR(raw, "status_message"));
    cx_import_set_any_time(&times[0], CX_JSON_GET(raw, "start_time"));
    cx_import_set_any_time(&times[1], CX_JSON_GET(raw, "end_time"));
    if (times[0].has_time && times[1].has_time)
        cx_import_say_duration(content, times[0].t_ns, times[1].t_ns);
}

static bool is_row(const cx_json *span)
{
    const cx_json *context = cx_json_get_typed(span, CX_STR("context"), CX_JSON_OBJECT);
    if (cx_import_has(span, "context.span_id") || cx_import_has(span, "context.trace_id"))
        return true;
    return context != NULL && cx_import_has(context, "span_id") && cx_import_has(span, "span_kind");
}

static int phoenix_detect(cx_bytes head, const cx_json *record)
{
    static const char column[] = "\"context.span_id\"";
    if (record == NULL)
        return head.size != 0 && memmem(head.data, head.size, column, sizeof column - 1) != NULL
                   ? 70
                   : 0;
    if (record->type == CX_JSON_OBJECT && is_row(record))
        return 90;
    const cx_json *list =
        record->type == CX_JSON_ARRAY ? record : cx_import_array_at(record, "data");
    const cx_json *first = list == NULL ? NULL : cx_import_first_object(list);
    return first != NULL && is_row(first) ? 90 : 0;
}

const cx_import_format cx_import_phoenix = {
    .info = {"phoenix", "Phoenix span exports",
             "[{\"context.span_id\",\"attributes.llm.model_name\",...}], {\"data\"}, or JSON lines",
             false},
    .document = phoenix_document,
    .line = phoenix_line,
    .content = phoenix_content,
    .detect = phoenix_detect,
};
