/*
 * langfuse.c - exports of Langfuse (§2.3): record = observation, the trace stays on the file node.
 *
 *   {"trace":{"id","name",...},"observations":[{"id","type","parentObservationId",...}]}
 *
 * The API answers with the observations inside the trace; both places are read.  Observations come
 * also as a list, as a page of the API ({"data","meta"}) and as JSON lines, where the export to
 * a bucket spells its names with underscores.
 */
#include "import/turns.h"

#define OBSERVATION_SPACE 'o'

static cx_import_kind kind_of(cx_str type, bool *known)
{
    static const struct {
        const char *name;
        cx_import_kind kind;
    } kinds[] = {
        {"GENERATION", CX_KIND_REASON}, {"TOOL", CX_KIND_ACT},      {"RETRIEVER", CX_KIND_OBSERVE},
        {"EMBEDDING", CX_KIND_OBSERVE}, {"EVENT", CX_KIND_OBSERVE}, {"EVALUATOR", CX_KIND_OBSERVE},
        {"GUARDRAIL", CX_KIND_OBSERVE}, {"AGENT", CX_KIND_RUN},     {"CHAIN", CX_KIND_RUN},
        {"SPAN", CX_KIND_RUN},
    };
    *known = true;
    for (size_t i = 0; i < CX_COUNT_OF(kinds); i++) {
        if (cx_str_is(type, kinds[i].name))
            return kinds[i].kind;
    }
    *known = false;
    return CX_KIND_MESSAGE;
}

/* Ids are unique within a trace only. */
static cx_str observation_key(cx_arena *arena, cx_str trace, cx_str id)
{
    if (id.size == 0)
        return (cx_str){NULL, 0};
    char *key = cx_arena_push(arena, trace.size + 1 + id.size, 1);
    if (key == NULL)
        return (cx_str){NULL, 0};
    if (trace.size != 0)
        memcpy(key, trace.data, trace.size);
    key[trace.size] = '/';
    memcpy(key + trace.size + 1, id.data, id.size);
    return cx_str_from(key, trace.size + 1 + id.size);
}

/* A member in either spelling. */
static const cx_json *member(const cx_json *observation, const char *name, const char *other)
{
    const cx_json *found = cx_json_get(observation, cx_str_z(name));
    return found != NULL ? found : cx_json_get(observation, cx_str_z(other));
}

static cx_str text_member(const cx_json *observation, const char *name, const char *other)
{
    const cx_json *found = member(observation, name, other);
    return found != NULL && found->type == CX_JSON_STRING ? cx_json_text(found) : (cx_str){NULL, 0};
}

static const cx_json *not_null(const cx_json *value)
{
    return value == NULL || value->type == CX_JSON_NULL ? NULL : value;
}

/* The name of the nearest enclosing AGENT; itself included, and the trace last. */
static void set_agent(cx_import_record *r, const cx_json *observation, cx_str type, cx_str fallback)
{
    cx_str name = CX_JSON_GET_STR(observation, "name");
    if (cx_str_is(type, "AGENT") && name.data != NULL) {
        r->agent = name;
        r->fork = CX_IMPORT_FORK_NATURAL;
        r->fork_if_handed = r->fork_always = true;
    } else {
        r->agent = fallback;
        r->inherit_agent = true;
    }
}

/* level ERROR denies the claim of the observation; nothing else states success. */
static cx_status read_level(cx_import_record *r, const cx_json *observation, cx_arena *arena,
                            cx_err *err)
{
    r->status = CX_JSON_GET_STR(observation, "level");
    if (!cx_str_is(r->status, "ERROR") || r->src_id.size == 0)
        return CX_SUCCESS;
    char *name = cx_arena_push(arena, r->src_id.size + 3, 1);
    if (name == NULL)
        return cx_fail_nomem(err);
    memcpy(name, r->src_id.data, r->src_id.size);
    memcpy(name + r->src_id.size, "_ok", 3);
    cx_import_belief(r, cx_str_from(name, r->src_id.size + 3), cx_json_make_bool(false));
    return CX_SUCCESS;
}

static cx_status import_observation(cx_import_sink *sink, const cx_json *observation,
                                    const cx_json *raw, const cx_json *trace, cx_err *err)
{
    cx_str type = CX_JSON_GET_STR(observation, "type");
    cx_str id = CX_JSON_GET_STR(observation, "id");
    bool known;
    if (observation->type != CX_JSON_OBJECT || (type.size == 0 && id.size == 0))
        return cx_import_bad(sink, raw, UINT64_MAX, err);
    cx_str trace_id = text_member(observation, "traceId", "trace_id");
    if (trace_id.size == 0 && trace != NULL)
        trace_id = cx_json_get_str(trace, CX_STR("id"));

    cx_import_record *r = cx_import_begin(sink);
    r->raw = raw;
    r->kind = kind_of(type, &known);
    r->issues = known ? 0 : 1u << CX_ISSUE_UNKNOWN_TYPE;
    r->src_id = id;
    r->src_parent = text_member(observation, "parentObservationId", "parent_observation_id");
    cx_import_define(r, OBSERVATION_SPACE, observation_key(sink->arena, trace_id, id),
                     CX_DEFINE_FIRST);
    cx_import_refer(r, OBSERVATION_SPACE, observation_key(sink->arena, trace_id, r->src_parent),
                    CX_REF_NAMED);
    r->under_file = r->src_parent.size == 0;
    set_agent(r, observation, type,
              trace != NULL ? cx_json_get_str(trace, CX_STR("name"))
                            : text_member(observation, "traceName", "trace_name"));
    cx_import_set_iso(r, member(observation, "startTime", "start_time"));
    r->model = text_member(observation, "model", "provided_model_name");
    if (cx_str_is(type, "TOOL"))
        r->tool = CX_JSON_GET_STR(observation, "name");
    const cx_json *usage = member(observation, "usageDetails", "usage_details");
    if (usage == NULL)
        usage = CX_JSON_GET(observation, "usage");
    bool counted = usage != NULL && usage->type == CX_JSON_OBJECT && usage->count != 0;
    r->usage = counted ? usage : NULL;
    r->content = not_null(CX_JSON_GET(observation, "output"));
    cx_import_field_str(r, CX_STR("name"), CX_JSON_GET_STR(observation, "name"));
    cx_import_field_str(r, CX_STR("type"), type);
    cx_import_field_str(r, CX_STR("trace_id"), trace_id);
    CX_TRY(read_level(r, observation, sink->arena, err));
    return cx_import_end(sink, NULL, err);
}

/* raw_top: the document without the observations, in either place. */
static cx_status add_document_rest(cx_import_sink *sink, const cx_json *document, bool inside,
                                   cx_err *err)
{
    static const char *const records[] = {"observations", NULL};
    static const char *const place[] = {"trace", NULL};
    cx_json top, trace;
    CX_TRY(cx_import_without(document, inside ? place : records, sink->arena, &top, err));
    if (inside) {
        cx_json_list list = cx_json_list_begin(sink->arena);
        CX_TRY(
            cx_import_without(CX_JSON_GET(document, "trace"), records, sink->arena, &trace, err));
        for (uint32_t i = 0; i < top.count; i++)
            cx_json_list_put(&list, cx_json_text(&top.members[i].name), top.members[i].value);
        cx_json_list_put(&list, CX_STR("trace"), trace);
        CX_TRY(cx_json_list_end_object(&list, &top, err));
    }
    return cx_import_top(sink, &top, err);
}

/* Observations without their trace. */
static const cx_json *plain_list(const cx_json *document)
{
    return document->type == CX_JSON_ARRAY
               ? document
               : cx_json_get_typed(document, CX_STR("data"), CX_JSON_ARRAY);
}

static cx_status import_list(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    static const char *const records[] = {"data", NULL};
    const cx_json *list = plain_list(document);
    cx_json top;
    if (document->type == CX_JSON_OBJECT) {
        CX_TRY(cx_import_without(document, records, sink->arena, &top, err));
        CX_TRY(cx_import_top(sink, &top, err));
    }
    for (uint32_t i = 0; i < list->count; i++)
        CX_TRY(import_observation(sink, &list->items[i], &list->items[i], NULL, err));
    return CX_SUCCESS;
}

static cx_status langfuse_line(cx_import_sink *sink, const cx_json *value, cx_err *err)
{
    return import_observation(sink, value, NULL, NULL, err);
}

static cx_status langfuse_document(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    const cx_json *trace = cx_json_get_typed(document, CX_STR("trace"), CX_JSON_OBJECT);
    const cx_json *list = cx_json_get_typed(document, CX_STR("observations"), CX_JSON_ARRAY);
    bool inside = list == NULL && trace != NULL;
    if (list == NULL && trace == NULL && plain_list(document) != NULL)
        return import_list(sink, document, err);
    if (inside)
        list = cx_json_get_typed(trace, CX_STR("observations"), CX_JSON_ARRAY);
    if (list == NULL && trace == NULL)
        return cx_import_shape(err, "an object with a trace and an array observations");
    CX_TRY(add_document_rest(sink, document, inside && list != NULL, err));
    if (trace == NULL)
        trace = document; /* a trace that is the document itself */
    for (uint32_t i = 0; list != NULL && i < list->count; i++)
        CX_TRY(import_observation(sink, &list->items[i], &list->items[i], trace, err));
    return CX_SUCCESS;
}

/* Cost has been a number, an object of parts, and a member of its own. */
static void say_cost(cx_import_content *content, const cx_json *raw)
{
    const cx_json *details = member(raw, "costDetails", "cost_details");
    if (details != NULL && details->type == CX_JSON_OBJECT)
        cx_import_say_cost(content, CX_JSON_GET(details, "total"));
    cx_import_say_cost(content, CX_JSON_GET(raw, "calculatedTotalCost"));
    cx_import_say_cost(content, member(raw, "totalCost", "total_cost"));
}

static void langfuse_content(cx_import_content *content, const cx_json *raw)
{
    const cx_json *input = not_null(CX_JSON_GET(raw, "input"));
    const cx_json *output = not_null(CX_JSON_GET(raw, "output"));
    cx_str kind = CX_JSON_GET_STR(content->derived, "kind");
    bool failed = cx_str_is(CX_JSON_GET_STR(raw, "level"), "ERROR");
    int64_t start, end;
    if (cx_str_is(kind, "act")) {
        cx_import_say_call(content, CX_JSON_GET_STR(raw, "id"), CX_JSON_GET_STR(raw, "name"),
                           input);
        if (output != NULL)
            cx_import_say_result(content, CX_JSON_GET_STR(raw, "id"), CX_JSON_GET_STR(raw, "name"),
                                 failed, output);
    } else {
        cx_import_say_request(content, input);
        cx_import_say_response(content, output);
    }
    const cx_import_graph graph = {.name = CX_JSON_GET_STR(raw, "name"),
                                   .metadata = not_null(CX_JSON_GET(raw, "metadata")),
                                   .input = input,
                                   .output = output};
    cx_import_say_graph(content, &graph);
    if (failed)
        cx_import_say_error(content, text_member(raw, "statusMessage", "status_message"));
    if (cx_import_time_iso(text_member(raw, "startTime", "start_time"), &start) &&
        cx_import_time_iso(text_member(raw, "endTime", "end_time"), &end))
        cx_import_say_duration(content, start, end);
    say_cost(content, raw);
}

static bool is_observation(const cx_json *value)
{
    bool known = false;
    if (value == NULL || value->type != CX_JSON_OBJECT || !cx_import_has_str(value, "type"))
        return false;
    (void)kind_of(CX_JSON_GET_STR(value, "type"), &known);
    return known && (cx_import_has(value, "parentObservationId") ||
                     cx_import_has(value, "parent_observation_id"));
}

static int langfuse_detect(cx_bytes head, const cx_json *first)
{
    static const char name[] = "\"observations\"", other[] = "\"parentObservationId\"";
    if (first != NULL && is_observation(first))
        return 90;
    const cx_json *list = first == NULL ? NULL : plain_list(first);
    if (list != NULL)
        return is_observation(cx_import_first_object(list)) ? 90 : 0;
    if (first != NULL)
        return cx_json_get_typed(first, CX_STR("observations"), CX_JSON_ARRAY) != NULL ? 90 : 0;
    bool found = head.size != 0 && (memmem(head.data, head.size, name, sizeof name - 1) != NULL ||
                                    memmem(head.data, head.size, other, sizeof other - 1) != NULL);
    return found ? 70 : 0;
}

const cx_import_format cx_import_langfuse = {
    .info = {"langfuse", "Langfuse trace exports",
             "{\"trace\":{...},\"observations\":[...]}, a list of observations, or JSON lines of "
             "them",
             false},
    .document = langfuse_document,
    .line = langfuse_line,
    .content = langfuse_content,
    .detect = langfuse_detect,
};
