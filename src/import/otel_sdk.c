/*
 * otel_sdk.c - spans in the format that OpenTelemetry SDKs print, any_agent's traces included
 * (§2.2).
 *
 *   {"spans":[{"name","context":{"trace_id","span_id"},"parent":{...}|null,"start_time",...}],
 *    "final_output":...}
 *
 * Ids are JSON integers of up to 128 bits: they are compared as decimal text and never converted to
 * a double.  Other exporters of the same shape write them as hex text, which is converted to lower
 * case.
 */
#include "import/gen_ai.h"

#define SPAN_SPACE 's'

/* An id as written: the digits of an integer, or text. */
static cx_str id_text(const cx_json *value)
{
    if (value == NULL || (value->type != CX_JSON_STRING && !cx_json_is_number(value)))
        return (cx_str){NULL, 0};
    return cx_json_text(value);
}

static cx_str span_key(cx_arena *arena, cx_str trace, cx_str span)
{
    if (span.size == 0)
        return (cx_str){NULL, 0};
    char *key = cx_arena_push(arena, trace.size + 1 + span.size, 1);
    if (key == NULL)
        return (cx_str){NULL, 0};
    if (trace.size != 0)
        memcpy(key, trace.data, trace.size);
    key[trace.size] = '/';
    memcpy(key + trace.size + 1, span.data, span.size);
    for (size_t i = 0; i < trace.size + 1 + span.size; i++)
        key[i] = (char)(key[i] >= 'A' && key[i] <= 'Z' ? key[i] | 0x20 : key[i]);
    return cx_str_from(key, trace.size + 1 + span.size);
}

/* Integer nanoseconds, or the ISO text that the SDK's own printer writes. */
static void set_time(cx_import_record *r, const cx_json *value)
{
    bool iso =
        value != NULL && value->type == CX_JSON_STRING && value->count > 4 && value->text[4] == '-';
    if (iso)
        cx_import_set_iso(r, value);
    else
        cx_import_set_ticks(r, value, 1);
}

static void refer_parent(cx_import_record *r, const cx_json *span, cx_str trace, cx_arena *arena)
{
    const cx_json *parent = CX_JSON_GET(span, "parent");
    cx_str parent_trace = trace;
    if (parent != NULL && parent->type == CX_JSON_OBJECT) {
        cx_str named = id_text(CX_JSON_GET(parent, "trace_id"));
        r->src_parent = id_text(CX_JSON_GET(parent, "span_id"));
        parent_trace = named.size != 0 ? named : trace;
    } else {
        r->src_parent = id_text(CX_JSON_GET(span, "parent_id"));
    }
    if (r->src_parent.size == 0)
        r->under_file = true;
    else
        cx_import_refer(r, SPAN_SPACE, span_key(arena, parent_trace, r->src_parent), CX_REF_NAMED);
}

static void refer_links(cx_import_record *r, const cx_json *span, cx_arena *arena)
{
    const cx_json *links = cx_json_get_typed(span, CX_STR("links"), CX_JSON_ARRAY);
    for (uint32_t i = 0; links != NULL && i < links->count; i++) {
        const cx_json *context = CX_JSON_GET(&links->items[i], "context");
        if (context == NULL)
            context = &links->items[i];
        cx_import_refer(r, SPAN_SPACE,
                        span_key(arena, id_text(CX_JSON_GET(context, "trace_id")),
                                 id_text(CX_JSON_GET(context, "span_id"))),
                        CX_REF_OPTIONAL);
    }
}

static cx_str service_of(const cx_json *span)
{
    const cx_json *resource = CX_JSON_GET(span, "resource");
    const cx_import_span view = {.attributes =
                                     resource == NULL ? NULL : CX_JSON_GET(resource, "attributes")};
    return cx_import_attribute_str(&view, CX_STR("service.name"));
}

static cx_status import_span(cx_import_sink *sink, const cx_json *span, cx_err *err)
{
    if (span->type != CX_JSON_OBJECT)
        return cx_import_bad(sink, span, UINT64_MAX, err);
    const cx_json *context = CX_JSON_GET(span, "context");
    const cx_json *status = CX_JSON_GET(span, "status");
    cx_str trace = {NULL, 0};
    cx_import_record *r = cx_import_begin(sink);
    r->raw = span;
    if (context != NULL) {
        trace = id_text(CX_JSON_GET(context, "trace_id"));
        r->src_id = id_text(CX_JSON_GET(context, "span_id"));
    }
    cx_import_define(r, SPAN_SPACE, span_key(sink->arena, trace, r->src_id), CX_DEFINE_FIRST);
    refer_parent(r, span, trace, sink->arena);
    refer_links(r, span, sink->arena);
    set_time(r, CX_JSON_GET(span, "start_time"));
    cx_import_field_str(r, CX_STR("trace_id"), trace);
    cx_import_field_str(r, CX_STR("name"), CX_JSON_GET_STR(span, "name"));
    const cx_import_span view = {
        .attributes = CX_JSON_GET(span, "attributes"),
        .arena = sink->arena,
        .name = CX_JSON_GET_STR(span, "name"),
        .fallback_agent = service_of(span),
        .scope = trace,
        .outcome =
            cx_import_span_outcome(status == NULL ? NULL : CX_JSON_GET(status, "status_code")),
    };
    CX_TRY(cx_import_gen_ai(r, &view, err));
    return cx_import_end(sink, NULL, err);
}

static cx_status otel_sdk_document(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    static const char *const records[] = {"spans", NULL};
    const cx_json *spans = cx_json_get_typed(document, CX_STR("spans"), CX_JSON_ARRAY);
    cx_json top;
    if (spans == NULL)
        return cx_import_shape(err, "an object with an array spans");
    CX_TRY(cx_import_without(document, records, sink->arena, &top, err));
    CX_TRY(cx_import_top(sink, &top, err));
    for (uint32_t i = 0; i < spans->count; i++)
        CX_TRY(import_span(sink, &spans->items[i], err));
    return CX_SUCCESS;
}

static void otel_sdk_content(cx_import_content *content, const cx_json *raw)
{
    const cx_json *status = CX_JSON_GET(raw, "status");
    cx_import_record times[2] = {0};
    cx_import_say_span(content, CX_JSON_GET(raw, "attributes"), CX_JSON_GET(raw, "events"),
                       status == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(status, "description"));
    set_time(&times[0], CX_JSON_GET(raw, "start_time"));
    set_time(&times[1], CX_JSON_GET(raw, "end_time"));
    if (times[0].has_time && times[1].has_time)
        cx_import_say_duration(content, times[0].t_ns, times[1].t_ns);
}

static int otel_sdk_detect(cx_bytes head, const cx_json *first)
{
    static const char name[] = "\"span_id\"", list[] = "\"spans\"";
    if (first != NULL)
        return cx_json_get_typed(first, CX_STR("spans"), CX_JSON_ARRAY) != NULL ? 80 : 0;
    return head.size != 0 && memmem(head.data, head.size, name, sizeof name - 1) != NULL &&
                   memmem(head.data, head.size, list, sizeof list - 1) != NULL
               ? 60
               : 0;
}

const cx_import_format cx_import_otel_sdk = {
    .info = {"otel-sdk", "OpenTelemetry SDK spans (any_agent)",
             "{\"spans\":[...],\"final_output\":...} with ids as integers or hex text", false},
    .document = otel_sdk_document,
    .content = otel_sdk_content,
    .detect = otel_sdk_detect,
};
