/*
 * jaeger.c - traces as Jaeger's interface and API give them (§2.24):
 * {"data":[{"traceID","spans","processes"}]}.  Attributes are its tags; what they mean is in
 * gen_ai.c.
 */
#include "import/gen_ai.h"
#include "import/turns.h"

#define SPAN_SPACE 's'

static cx_str span_key(cx_arena *arena, cx_str trace, cx_str span)
{
    char *key = span.size == 0 ? NULL : cx_arena_push(arena, trace.size + 1 + span.size, 1);
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

/* [{"key","type","value"}] as an object; of a repeated key the first counts. */
static const cx_json *tags_of(const cx_json *tags, cx_arena *arena, bool *failed)
{
    cx_json_list list = cx_json_list_begin(arena);
    cx_json *out = CX_ARENA_NEW(arena, cx_json);
    for (uint32_t i = 0; tags != NULL && i < tags->count; i++) {
        cx_str key = CX_JSON_GET_STR(&tags->items[i], "key");
        const cx_json *value = CX_JSON_GET(&tags->items[i], "value");
        bool known = key.size == 0 || value == NULL;
        for (uint32_t j = 0; j < list.count && !known && tags->count <= 256; j++)
            known = cx_str_eq(cx_json_text(&list.members[j].name), key);
        if (!known)
            cx_json_list_put(&list, key, *value);
    }
    if (out == NULL || cx_failed(cx_json_list_end_object(&list, out, NULL))) {
        *failed = true;
        return NULL;
    }
    return out;
}

static cx_import_outcome outcome_of(const cx_json *tags)
{
    const cx_json *error = CX_JSON_GET(tags, "error");
    if (error != NULL && (error->type == CX_JSON_TRUE || (error->type == CX_JSON_STRING &&
                                                          cx_str_is(cx_json_text(error), "true"))))
        return CX_SPAN_ERROR;
    return cx_import_span_outcome(CX_JSON_GET(tags, "otel.status_code"));
}

/* The first reference CHILD_OF is the parent, the others are links. */
static void refer(cx_import_record *r, const cx_json *span, cx_str trace, cx_arena *arena)
{
    const cx_json *list = cx_import_array_at(span, "references");
    cx_str named = CX_JSON_GET_STR(span, "parentSpanID");
    for (uint32_t i = 0; list != NULL && i < list->count; i++) {
        const cx_json *reference = &list->items[i];
        cx_str id = CX_JSON_GET_STR(reference, "spanID");
        cx_str other = CX_JSON_GET_STR(reference, "traceID");
        bool parent =
            r->src_parent.size == 0 && cx_str_is(CX_JSON_GET_STR(reference, "refType"), "CHILD_OF");
        if (parent)
            r->src_parent = id;
        cx_import_refer(r, SPAN_SPACE, span_key(arena, other.size != 0 ? other : trace, id),
                        parent ? CX_REF_NAMED : CX_REF_OPTIONAL);
    }
    if (r->src_parent.size == 0 && named.size != 0) {
        r->src_parent = named;
        cx_import_refer(r, SPAN_SPACE, span_key(arena, trace, named), CX_REF_NAMED);
    }
    r->under_file = r->src_parent.size == 0;
}

static cx_str service_of(const cx_json *trace, const cx_json *span)
{
    const cx_json *processes = cx_json_get_typed(trace, CX_STR("processes"), CX_JSON_OBJECT);
    const cx_json *own = cx_json_get_typed(span, CX_STR("process"), CX_JSON_OBJECT);
    if (own == NULL && processes != NULL)
        own = cx_json_get(processes, CX_JSON_GET_STR(span, "processID"));
    return own == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(own, "serviceName");
}

static cx_status import_span(cx_import_sink *sink, const cx_json *span, const cx_json *trace,
                             cx_err *err)
{
    bool failed = false;
    cx_str id = CX_JSON_GET_STR(span, "spanID"), trace_id = CX_JSON_GET_STR(span, "traceID");
    if (span->type != CX_JSON_OBJECT || id.size == 0)
        return cx_import_bad(sink, span, UINT64_MAX, err);
    if (trace_id.size == 0)
        trace_id = CX_JSON_GET_STR(trace, "traceID");
    const cx_json *tags = tags_of(cx_import_array_at(span, "tags"), sink->arena, &failed);
    cx_import_record *r = cx_import_begin(sink);
    if (failed)
        return cx_fail_nomem(err);
    r->raw = span;
    r->src_id = id;
    cx_import_define(r, SPAN_SPACE, span_key(sink->arena, trace_id, id), CX_DEFINE_FIRST);
    refer(r, span, trace_id, sink->arena);
    cx_import_set_ticks(r, CX_JSON_GET(span, "startTime"), 1000);
    cx_import_field_str(r, CX_STR("trace_id"), trace_id);
    cx_import_field_str(r, CX_STR("name"), CX_JSON_GET_STR(span, "operationName"));
    const cx_import_span view = {.attributes = tags,
                                 .arena = sink->arena,
                                 .name = CX_JSON_GET_STR(span, "operationName"),
                                 .fallback_agent = service_of(trace, span),
                                 .scope = trace_id,
                                 .outcome = outcome_of(tags)};
    CX_TRY(cx_import_gen_ai(r, &view, err));
    return cx_import_end(sink, NULL, err);
}

static const cx_json *traces_of(const cx_json *document)
{
    const cx_json *data = cx_import_array_at(document, "data");
    return data != NULL ? data : document->type == CX_JSON_ARRAY ? document : NULL;
}

static cx_status import_trace(cx_import_sink *sink, const cx_json *trace, cx_err *err)
{
    const cx_json *spans = cx_import_array_at(trace, "spans");
    if (spans == NULL)
        return cx_import_bad(sink, trace, UINT64_MAX, err);
    for (uint32_t i = 0; i < spans->count; i++)
        CX_TRY(import_span(sink, &spans->items[i], trace, err));
    return CX_SUCCESS;
}

/* raw_top: the document with its traces' ids and processes, without the spans. */
static cx_status add_top(cx_import_sink *sink, const cx_json *traces, cx_err *err)
{
    static const char *const records[] = {"spans", NULL};
    cx_json_list list = cx_json_list_begin(sink->arena), top = list;
    cx_json value;
    for (uint32_t i = 0; i < traces->count; i++) {
        CX_TRY(cx_import_without(&traces->items[i], records, sink->arena, &value, err));
        if (value.type == CX_JSON_OBJECT)
            cx_json_list_add(&list, value);
    }
    cx_json_put_array(&top, "data", &list);
    CX_TRY(cx_json_list_end_object(&top, &value, err));
    return cx_import_top(sink, &value, err);
}

static cx_status jaeger_document(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    static const char *const records[] = {"spans", NULL};
    const cx_json *traces = traces_of(document);
    cx_json top;
    if (document->type == CX_JSON_OBJECT && cx_import_array_at(document, "spans") != NULL) {
        CX_TRY(cx_import_without(document, records, sink->arena, &top, err));
        CX_TRY(cx_import_top(sink, &top, err));
        return import_trace(sink, document, err);
    }
    if (traces == NULL)
        return cx_import_shape(err, "an object with an array data of traces, or one trace");
    CX_TRY(add_top(sink, traces, err));
    for (uint32_t i = 0; i < traces->count; i++)
        CX_TRY(import_trace(sink, &traces->items[i], err));
    return CX_SUCCESS;
}

/* Logs are the span's events: the field `event` is the name, the others are attributes. */
static const cx_json *events_of(cx_import_content *content, const cx_json *span)
{
    const cx_json *logs = cx_import_array_at(span, "logs");
    cx_json_list list = cx_json_list_begin(content->arena);
    cx_json *out = CX_ARENA_NEW(content->arena, cx_json);
    for (uint32_t i = 0; logs != NULL && i < logs->count; i++) {
        cx_json_list event = cx_json_list_begin(content->arena);
        const cx_json *fields = tags_of(cx_import_array_at(&logs->items[i], "fields"),
                                        content->arena, &content->failed);
        if (fields == NULL)
            continue;
        cx_json_put_str(&event, "name", CX_JSON_GET_STR(fields, "event"));
        cx_json_put(&event, "attributes", *fields);
        cx_json_add_object(&list, &event);
    }
    if (out == NULL || cx_failed(cx_json_list_end_array(&list, out, NULL))) {
        content->failed = true;
        return NULL;
    }
    return out;
}

static void jaeger_content(cx_import_content *content, const cx_json *raw)
{
    const cx_json *tags =
        tags_of(cx_import_array_at(raw, "tags"), content->arena, &content->failed);
    const cx_json *took = CX_JSON_GET(raw, "duration");
    int64_t us = 0;
    if (tags == NULL)
        return;
    cx_import_say_span(content, tags, events_of(content, raw),
                       CX_JSON_GET_STR(tags, "otel.status_description"));
    if (took != NULL && cx_json_int64(took, &us) && us >= 0 && us < INT64_MAX / 1000)
        cx_import_say_duration(content, 0, us * 1000);
}

static bool is_trace(const cx_json *trace)
{
    const cx_json *spans = trace == NULL ? NULL : cx_import_array_at(trace, "spans");
    const cx_json *first = spans == NULL ? NULL : cx_import_first_object(spans);
    return first != NULL && cx_import_has_str(first, "spanID") &&
           cx_import_has(first, "operationName");
}

static int jaeger_detect(cx_bytes head, const cx_json *record)
{
    static const char name[] = "\"operationName\"", id[] = "\"spanID\"";
    if (record == NULL)
        return head.size != 0 && memmem(head.data, head.size, name, sizeof name - 1) != NULL &&
                       memmem(head.data, head.size, id, sizeof id - 1) != NULL
                   ? 65
                   : 0;
    if (record->type == CX_JSON_OBJECT && is_trace(record))
        return 92;
    const cx_json *traces = traces_of(record);
    return traces != NULL && is_trace(cx_import_first_object(traces)) ? 92 : 0;
}

const cx_import_format cx_import_jaeger = {
    .info = {"jaeger", "Jaeger traces",
             "{\"data\":[{\"traceID\",\"spans\":[...],\"processes\"}]}, or one trace", false},
    .document = jaeger_document,
    .content = jaeger_content,
    .detect = jaeger_detect,
};
